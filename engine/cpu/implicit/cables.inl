// cables: cables and chambers whose forces are those at the end of an implicit step (E100). Chambers, and cables
// without friction, have an energy; taken where their points are at the end of the step, x + dt sum w v, it is a part
// of the potential that the step minimises. One thread works on all of them, and writes the impulses that nodes get
// to the vector CQ_GRID_PULL, which the loops over nodes read.

// a pulled particle: one that points of cables or chambers are attached to, with the nodes and weights of its stencil
typedef struct {
  real weight[CQ_DIM][3];
  int64_t node, stride[2];   // the first; to the next one along the first axis, and in 3D along the second one
} Pulled;

static_assert(sizeof(Pulled) <= CQ_PULLED_NUMBERS * sizeof(wide), "scene.c makes room for that many numbers");

// The stencil of pulled particle number k, from 0 in the order of the model's list cables.pulled: the particles that
// points of cables and of pressure chambers are attached to.
CQ_INLINE Pulled *pulled_at(const cq_scene *s, const int64_t k) { return (Pulled *)s->cable_pulled + k; }

// Returns the index, in vectors over nodes, of node k of a pulled particle's stencil, and sets *weight to its B-spline
// weight. k: 0 to 3^dim - 1, the last axis fastest.
CQ_INLINE int64_t pulled_node(const Pulled *p, const int k, real *weight) {
  const int x = CQ_DIM == 3 ? k / 9 : k / 3, y = k / 3 % 3, z = k % 3;
  *weight = p->weight[0][x] * p->weight[LAST][z];
  if (CQ_DIM == 3) *weight = *weight * p->weight[CQ_DIM - 2][y];
  return p->node + x * p->stride[0] + (CQ_DIM == 3 ? y : 0) * p->stride[1] + z;
}
enum { PULLED_NODES = CQ_DIM == 3 ? 27 : 9 };

// Sets p to the B-spline weights and the stencil, on its body's reference grid, of the particle in a slot, its place in
// the scene's order of particles.
static void reference_pulled(const cq_scene *s, const int32_t slot, Pulled *p) {
  const cq_reference *r = &s->reference;
  const cq_cells *cells = &r->cells[r->cells_of_chunk[slot / CQ_CHUNK]];
  const cq_body *body = &r->bodies[cells->body];
  EACH(i) {
    const real f = *slot_at((real *)r->fraction, CQ_DIM, slot, i), a = (real)0.5 - f, b = (real)0.5 + f;
    p->weight[i][0] = (real)0.5 * a * a;
    p->weight[i][1] = (real)0.75 - f * f;
    p->weight[i][2] = (real)0.5 * b * b;
  }
  p->stride[0] = body->stride[0];
  p->stride[1] = CQ_DIM == 3 ? body->stride[1] : 0;
  p->node = cq_cells_node(cells, slot % CQ_CHUNK) - p->stride[0] - p->stride[1] - 1;
}

// Sets s->cable_x to the places of the points of all cables and pressure chambers in the state `in`, for particles of
// the spatial grid or of reference grids.
static void place_in(cq_scene *s, const cq_slice *in) {
  if (cq_is_reference(s->model)) s->kernels->reference->place_points(s, in);
  else place_cables(s, in);
}

// Starts a step, by one worker: stores the weights and nodes of every particle that cables or pressure chambers act on,
// and clears CQ_GRID_PULL. in: the state before the step.
static void cables_begin(cq_scene *s, const cq_slice *in) {
  const cq_cables *c = &s->model->cables;
  real *pull = grid_vector(s, CQ_GRID_PULL);
  memset((void *)pull, 0, (size_t)s->implicit.capacity * 4 * sizeof *pull);
  for (int64_t k = 0; k < c->pulled_count; k++) {
    const int32_t slot = s->arrangement->slot[c->pulled[k]];
    Pulled *p = pulled_at(s, k);
    if (cq_is_reference(s->model)) {
      reference_pulled(s, slot, p);
      continue;
    }
    Stencils st;
    const Strides strides = strides_of(s->arrangement);
    stencils_of(s, (const real *)in->data + AT(slot / CQ_CHUNK, FIELDS, 0), &st, 0);
    p->stride[0] = strides.x / 4;
    p->stride[1] = strides.y / 4;
    EACH(i) for (int o = 0; o < 3; o++) p->weight[i][o] = st.records[slot % CQ_CHUNK].quad[WEIGHT + i][o];
    p->node = st.node[slot % CQ_CHUNK];
  }
}

// Adds factor times the velocities of the points of cables and pressure chambers to out {points, dim}. They are
// interpolated from `which`, a vector over nodes (cq_grid_vector).
static void cables_move(const cq_scene *s, const int which, const double factor, wide *out) {
  const cq_cables *c = &s->model->cables;
  const real *grid = grid_vector(s, which);
  for (int64_t k = 0; k < c->pulled_count; k++) {
    wide v[CQ_DIM];
    EACH(i) v[i] = 0;
    for (int n = 0; n < PULLED_NODES; n++) {
      real w;
      const real *at = grid + 4 * pulled_node(pulled_at(s, k), n, &w);
      EACH(i) v[i] += (wide)w * (wide)at[i];
    }
    for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
      EACH(i) out[c->pull_point[at] * CQ_DIM + i] += factor * c->pull_weight[at] * v[i];
  }
}

// Sets CQ_GRID_PULL, at the nodes that cables reach, to factor times the forces on nodes that follow from `force`
// {points, dim}, the forces at the points of cables: the transpose of cables_move.
static void cables_give(cq_scene *s, const wide *force, const double factor) {
  const cq_cables *c = &s->model->cables;
  real *to = grid_vector(s, CQ_GRID_PULL);
  for (int add = 0; add < 2; add++)
    for (int64_t k = 0; k < c->pulled_count; k++) {
      wide f[CQ_DIM];
      EACH(i) f[i] = 0;
      for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
        EACH(i) f[i] += factor * c->pull_weight[at] * force[c->pull_point[at] * CQ_DIM + i];
      for (int n = 0; n < PULLED_NODES; n++) {
        real w;
        real *at = to + 4 * pulled_node(pulled_at(s, k), n, &w);
        EACH(i) at[i] = add ? at[i] + w * (real)f[i] : (real)0;
      }
    }
}

// (E100) For the node velocities in vector `at` (cq_grid_vector): adds the energy at the end of the step of those
// cables and chambers whose forces are taken there to sum[CQ_SUM_ENERGY], and sets CQ_GRID_PULL to the impulses of
// their forces on nodes. in: the state before the step.
static void cables_evaluate(cq_scene *s, const cq_slice *in, int32_t at, double *sum) {
  const cq_cables *c = &s->model->cables;
  wide *x = (wide *)s->cable_x, *force = (wide *)s->cable_force;
  place_in(s, in);
  cables_move(s, at, cq_solve_seconds(s->model), x);
  memset((void *)force, 0, (size_t)c->points * CQ_DIM * sizeof *force);
  force_points(s, 1);
  for (int32_t k = 0; k < c->all; k++) {
    if (!cq_cable_follows(s->model, k)) continue;
    const wide *own = x + c->start[k] * CQ_DIM;
    const wide energy =
        k < c->count ? cable_energy(cable_at(s, k), own) : chamber_energy(chamber_at(s, k - c->count), own);
    sum[CQ_SUM_ENERGY] += (double)s_value(energy);
  }
  cables_give(s, force, cq_solve_seconds(s->model));
}

// Keeps in s->cable_end where the points of cables are at the end of a step with the velocities VELOCITY: there
// cables_product takes their second derivative. in: the state before the step.
static void cables_settle(cq_scene *s, const cq_slice *in) {
  place_in(s, in);
  cables_move(s, CQ_GRID_VELOCITY, cq_solve_seconds(s->model), (wide *)s->cable_x);
  memcpy(s->cable_end, s->cable_x, (size_t)s->model->cables.points * CQ_DIM * sizeof(wide));
}

// (E100) Sets CQ_GRID_PULL to the product of vector `from` with the second derivative of the energies that
// cables_evaluate adds, where cables_settle has kept their points. It is symmetric, so that the adjoint uses it too.
static void cables_product(cq_scene *s, int32_t from) {
  const cq_cables *c = &s->model->cables;
  wide *way = (wide *)s->cable_x, *out = (wide *)s->cable_grad;
  const double dt = cq_solve_seconds(s->model);
  memset((void *)way, 0, (size_t)c->points * CQ_DIM * sizeof *way);
  memset((void *)out, 0, (size_t)c->points * CQ_DIM * sizeof *out);
  cables_move(s, from, 1, way);
  for (int32_t k = 0; k < c->all; k++) {
    if (!cq_cable_follows(s->model, k)) continue;
    const int64_t first = c->start[k] * CQ_DIM;
    const wide *x = (wide *)s->cable_end + first;
    Cable unused;   // gradients of its numbers
    memset((void *)&unused, 0, sizeof unused);
    if (k < c->count) cable_pull_adj(cable_at(s, k), x, &unused, out + first, way + first, (wide *)s->cable_share);
    else chamber_push_adj(chamber_at(s, k - c->count), x, &unused.signal, out + first, way + first);
  }
  cables_give(s, out, -dt * dt);
}

#if !defined(CQ_REAL_DUAL)
// (E100) Adjoint of the cables and chambers whose forces are those at the end of a step, from the solution y of the
// adjoint's linear system in STEP. Adds to the gradients of cables and signals, and to the adjoint of the places of
// particles after the step, which also depend on the step's velocities. out: the state after the step.
static void cables_follow_adj(cq_scene *s, const cq_slice *out) {
  const cq_cables *c = &s->model->cables;
  wide *grad_force = (wide *)s->cable_force, *grad_x = (wide *)s->cable_grad;
  const size_t bytes = (size_t)c->points * CQ_DIM * sizeof(wide);
  if (cq_is_reference(s->model) && s->wanted & cq_bit(CQ_FIELD_POSITION)) {
    memset((void *)s->cable_force, 0, bytes);
    place_in(s, out);
    force_points(s, 1);
    s->kernels->reference->give_points_adj(s);
  }
  memset(grad_force, 0, bytes);
  memset(grad_x, 0, bytes);
  cables_move(s, CQ_GRID_STEP, cq_solve_seconds(s->model), grad_force);
  place_in(s, out);
  cables_adj(s, grad_x, 1);
  if (cq_is_reference(s->model)) {
    s->kernels->reference->place_points_adj(s, out);
    return;
  }
  for (int64_t k = 0; k < c->pulled_count; k++) {
    const int32_t slot = s->arrangement->slot[c->pulled[k]];
    real *x = slot_at((real *)s->adj, FIELDS, slot, X), *v = slot_at((real *)s->adj, FIELDS, slot, V);
    for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
      EACH(i) {
        const wide grad = c->pull_weight[at] * grad_x[c->pull_point[at] * CQ_DIM + i];
        x[i * CQ_CHUNK] += (real)grad;
        v[i * CQ_CHUNK] += (real)(s->model->dt * grad);
      }
  }
}
#endif
