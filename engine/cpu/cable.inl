// cable: the cables and chambers of one scene. Their points are weighted means of particles of any range, so one thread
// works on all of them, between two barriers: before a step it adds their forces to those of their particles, after the
// adjoint of a step it reads the gradients of these forces. s->cable has one entry, a Cable or a Chamber, for each.

static_assert(sizeof(Cable) <= CQ_CABLE_NUMBERS * sizeof(wide), "scene.c makes room for that many numbers");
static_assert(sizeof(Chamber) <= CQ_CABLE_NUMBERS * sizeof(wide), "scene.c makes room for that many numbers");

// Returns entry k of s->cable as a Cable, the constants and signal of cable k. Entries of chambers follow the cables.
CQ_INLINE Cable *cable_at(const cq_scene *s, const int32_t k) {
  return (Cable *)((wide *)s->cable + k * CQ_CABLE_NUMBERS);
}
// Returns the entry of chamber k, from 0, in s->cable: its pressure and the corners of its faces.
CQ_INLINE Chamber *chamber_at(const cq_scene *s, const int32_t k) {
  return (Chamber *)cable_at(s, s->model->cables.count + k);
}

// Sets k, R, mu and u (stiffness, rest length, friction, signal) of each cable and the pressure of each chamber for the
// running control step, and keeps the forces that their particles have without them in s->cable_base. After
// load_actuation.
static void load_cables(cq_scene *s) {
  const cq_cables *c = &s->model->cables;
  for (int32_t k = 0; k < c->count; k++)
    *cable_at(s, k) = (Cable){s->values.cable_stiffness[k],
                              s->values.cable_length[k],
                              s->values.cable_friction[k],
                              s->signals[c->actuator[k]],
                              c->offset[k],
                              c->slope[k],
                              (int32_t)(c->start[k + 1] - c->start[k])};
  for (int32_t k = 0; k < c->chambers; k++)
    *chamber_at(s, k) = (Chamber){s->signals[c->actuator[c->count + k]], c->face + c->face_start[k] * CQ_DIM,
                                  (int32_t)(c->face_start[k + 1] - c->face_start[k])};
  for (int64_t k = 0; k < c->pulled_count; k++) {
    const real *row = slot_at((real *)s->actuation, ACTUATION_FIELDS, s->arrangement->slot[c->pulled[k]], FORCE);
    for (int i = 0; i < CQ_DIM; i++) ((wide *)s->cable_base)[k * CQ_DIM + i] = row[i * CQ_CHUNK];
  }
}

// Sets s->cable_x {points, dim} to the positions of the points of all cables and chambers: weighted means of particles
// in the state `in`, or fixed anchors.
static void place_cables(cq_scene *s, const cq_slice *in) {
  const cq_cables *c = &s->model->cables;
  for (int64_t point = 0; point < c->points; point++) {
    wide *x = (wide *)s->cable_x + point * CQ_DIM;
    const int64_t begin = c->point_start[point], end = c->point_start[point + 1];
    for (int i = 0; i < CQ_DIM; i++) x[i] = begin == end ? c->anchor[point * CQ_DIM + i] : 0;
    for (int64_t k = begin; k < end; k++) {
      const real *from = slot_at((real *)in->data, FIELDS, s->arrangement->slot[c->particle[k]], X);
      for (int i = 0; i < CQ_DIM; i++) x[i] += c->weight[k] * (wide)from[i * CQ_CHUNK];
    }
  }
}

// Sets s->cable_force {points, dim}, the forces of cables and chambers on their points, from the positions s->cable_x.
// follows 0: of those whose force is that of the start of a step; 1: of those whose force is that of its end (implicit
// steps). Other points keep their force.
static void force_points(cq_scene *s, const int follows) {
  const cq_cables *c = &s->model->cables;
  for (int32_t k = 0; k < c->all; k++) {
    if (cq_cable_follows(s->model, k) != follows) continue;
    const int64_t first = c->start[k] * CQ_DIM, numbers = (c->start[k + 1] - c->start[k]) * CQ_DIM;
    wide *x = (wide *)s->cable_x + first, *force = (wide *)s->cable_force + first;
    if (k < c->count) {
      cable_pull(cable_at(s, k), x, force);
    } else {
      memset((void *)force, 0, (size_t)numbers * sizeof *force);
      chamber_push(chamber_at(s, k - c->count), x, force);
    }
  }
}

// Sets the total force of each particle on which cables and chambers act, in s->actuation: its force without them
// (s->cable_base) plus the forces of points, s->cable_force, times the particle's weight in each point.
static void force_particles(cq_scene *s) {
  const cq_cables *c = &s->model->cables;
  const wide *force = (const wide *)s->cable_force;
  for (int64_t k = 0; k < c->pulled_count; k++) {
    real *row = slot_at((real *)s->actuation, ACTUATION_FIELDS, s->arrangement->slot[c->pulled[k]], FORCE);
    for (int i = 0; i < CQ_DIM; i++) {
      wide sum = ((wide *)s->cable_base)[k * CQ_DIM + i];
      for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
        sum += c->pull_weight[at] * force[c->pull_point[at] * CQ_DIM + i];
      row[i * CQ_CHUNK] = (real)sum;
    }
  }
}

// As pull_cables with `out` NULL, but with s->cable_x already set: reference grids compute their points' positions.
static void pull_placed(cq_scene *s) {
  memset((void *)s->cable_force, 0, (size_t)s->model->cables.points * CQ_DIM * sizeof(wide));
  force_points(s, 0);
  force_particles(s);
}

// Sets the forces of cables and chambers on their particles in one engine step. Cables that pull by the start of a step
// take positions from the state `in`; those that follow its end (implicit steps) from `out`: NULL: they do not pull.
static void pull_cables(cq_scene *s, const cq_slice *in, const cq_slice *out) {
  memset((void *)s->cable_force, 0, (size_t)s->model->cables.points * CQ_DIM * sizeof(wide));
  place_cables(s, in);
  force_points(s, 0);
  if (out && cq_cables_follow(s->model)) {
    place_cables(s, out);
    force_points(s, 1);
  }
  force_particles(s);
}

#if !defined(CQ_REAL_DUAL)
// Sets s->cable_force to the gradients of the forces at points, from the gradients of particle forces of this engine
// step in s->actuation_adj, which are cleared, since each step has other forces. The user's forces on these particles
// get their gradient here, in s->forces_adj.
static void take_force_adj(cq_scene *s) {
  const cq_cables *c = &s->model->cables;
  wide *grad_force = (wide *)s->cable_force;
  memset(grad_force, 0, (size_t)c->points * CQ_DIM * sizeof *grad_force);
  for (int64_t k = 0; k < c->pulled_count; k++) {
    const int32_t p = c->pulled[k], f = s->model->force_of ? s->model->force_of[p] : -1;
    real *row = slot_at((real *)s->actuation_adj, ACTUATION_FIELDS, s->arrangement->slot[p], FORCE);
    for (int i = 0; i < CQ_DIM; i++) {
      const wide grad = row[i * CQ_CHUNK];
      row[i * CQ_CHUNK] = 0;
      if (f >= 0) s->forces_adj[f * CQ_DIM + i] += grad;
      for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
        grad_force[c->pull_point[at] * CQ_DIM + i] += c->pull_weight[at] * grad;
    }
  }
}

// Adjoint of force_points, with the same `follows`: from the gradients of the forces at points (s->cable_force), adds
// to the gradients of the cables' constants, of signals, and of the positions of points, grad_x {points, dim}.
static void cables_adj(cq_scene *s, wide *grad_x, const int follows) {
  const cq_cables *c = &s->model->cables;
  for (int32_t k = 0; k < c->all; k++) {
    if (cq_cable_follows(s->model, k) != follows) continue;
    const int64_t first = c->start[k] * CQ_DIM;
    const wide *x = (wide *)s->cable_x + first, *grad_force = (wide *)s->cable_force + first;
    if (k >= c->count) {
      wide grad = 0;
      chamber_push_adj(chamber_at(s, k - c->count), x, &grad, grad_x + first, grad_force);
      s->signals_partial[c->actuator[k]] += grad;
      continue;
    }
    Cable grad = {0};
    cable_pull_adj(cable_at(s, k), x, &grad, grad_x + first, grad_force, (wide *)s->cable_share);
    s->gradients.cable_stiffness[k] += grad.stiffness;
    s->gradients.cable_length[k] += grad.length;
    s->gradients.cable_friction[k] += grad.friction;
    s->signals_partial[c->actuator[k]] += grad.signal;
  }
}

// Adjoint of pull_placed: from the gradients of particle forces in s->actuation_adj, sets s->cable_grad {points, dim}
// to the gradients of the points' positions, and adds to those of constants, signals and the user's forces.
static void pull_placed_adj(cq_scene *s) {
  take_force_adj(s);
  memset(s->cable_grad, 0, (size_t)s->model->cables.points * CQ_DIM * sizeof(wide));
  cables_adj(s, (wide *)s->cable_grad, 0);
}

// Adjoint of pull_cables for cables and chambers that pull by the state `in` at the start of a step: adds to the
// gradients of positions in s->adj, the adjoint of that state, and to those of constants, signals and user's forces.
static void pull_cables_adj(cq_scene *s, const cq_slice *in) {
  const cq_cables *c = &s->model->cables;
  const wide *grad_x = (const wide *)s->cable_grad;
  place_cables(s, in);
  pull_placed_adj(s);
  for (int64_t k = 0; k < c->pulled_count; k++) {
    real *row = slot_at((real *)s->adj, FIELDS, s->arrangement->slot[c->pulled[k]], X);
    for (int i = 0; i < CQ_DIM; i++) {
      wide sum = row[i * CQ_CHUNK];
      for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
        sum += c->pull_weight[at] * grad_x[c->pull_point[at] * CQ_DIM + i];
      row[i * CQ_CHUNK] = (real)sum;
    }
  }
}
#endif
