// cable: the cables and chambers of one scene. Their points are sums of particles of any range, so one thread works on
// all of them, between two barriers: before a step it adds what they give to the forces of their particles, after the
// adjoint of a step it takes their part. Each takes the place of a Cable or of a Chamber in s->cable.

static_assert(sizeof(Cable) <= CQ_CABLE_NUMBERS * sizeof(wide), "scene.c makes room for that many numbers");
static_assert(sizeof(Chamber) <= CQ_CABLE_NUMBERS * sizeof(wide), "scene.c makes room for that many numbers");

// The place of cable k of a scene, counted with the chambers behind the cables.
CQ_INLINE Cable *cable_at(const cq_scene *s, const int32_t k) {
  return (Cable *)((wide *)s->cable + k * CQ_CABLE_NUMBERS);
}
// The place of chamber k of a scene, counted from 0 without the cables.
CQ_INLINE Chamber *chamber_at(const cq_scene *s, const int32_t k) {
  return (Chamber *)cable_at(s, s->model->cables.count + k);
}

// Sets k, R, mu and u of each cable and the pressure of each chamber for the running control step, and keeps the
// forces that particles have without them in s->cable_base. After load_actuation of all ranges.
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

// Sets s->cable_x to the places of the points of all cables and chambers in the state `in`.
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

// Sets s->cable_force at the points of cables and chambers: of those that pull by the state at the start of a step
// (follows 0), or by that of its end (follows 1); the other points keep theirs. s->cable_x is set.
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

// Sets the forces of the particles that cables and chambers act on: those of the control step, which cable_base keeps,
// plus those at the points times the particle's weight in each.
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

// Sets the forces on particles of cables and chambers that pull by the state at the start of a step, where s->cable_x
// is already set.
static void pull_placed(cq_scene *s) {
  memset((void *)s->cable_force, 0, (size_t)s->model->cables.points * CQ_DIM * sizeof(wide));
  force_points(s, 0);
  force_particles(s);
}

// Sets the forces of cables and chambers on particles: of those that pull by the start of a step by the state `in`, of
// those that follow its end by the state `out`, or none of these where it is NULL.
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
// Sets s->cable_force to the gradients of the forces at points, from those of particle forces in this step. The rows
// of pulled particles are settled and cleared at each step, since each step has other forces.
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
// to those of the constants of cables, of signals, and of the places of points, grad_x {points, dim}.
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

// Adjoint of pull_placed: sets s->cable_grad to the gradients of the places of points, and adds to those of constants,
// signals and forces.
static void pull_placed_adj(cq_scene *s) {
  take_force_adj(s);
  memset(s->cable_grad, 0, (size_t)s->model->cables.points * CQ_DIM * sizeof(wide));
  cables_adj(s, (wide *)s->cable_grad, 0);
}

// Adjoint of pull_cables for the cables and chambers that pull by the state at the start of a step, `in`: adds to
// s->adj, which is the adjoint of that state, and to gradients of constants, signals and forces.
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
