// volume: J of a liquid's particles nears its mean over the grid, at the end of a control step (E49). What a stencil
// of nodes cannot see, particles of a cell that are squeezed and stretched by turns, would else stay in J for good: as
// noise of the pressure, and as a stiffness of liquid along a wall.
//   (A q)_p = sum_i w_ip a_i, a_i = sum_p w_ip V_p q_p / sum_p w_ip V_p;  J' = J - beta (1 - A)(1 - A) J
// A keeps the sum of V q, so that no volume is lost. Applied twice it leaves a profile that is straight over a few
// cells nearly as it is also where particles end, at walls and surfaces.
//
// One thread goes over all particles in the user's order: the bits depend neither on threads nor on sorting. Each
// liquid by itself. F is J^(1/dim) times I (E41).

enum { PATCH = CQ_DIM == 3 ? 27 : 9, PART = CQ_VOLUME_PART, NODE = 4 };

// numbers of a particle; sums of a node
enum { PART_J, PART_R, PART_RR, PART_GRAD, PART_GRAD_Q };
enum { NODE_VOLUME, NODE_SUM, NODE_GRAD, NODE_GRAD_VOLUME };

// the nodes around a particle
typedef struct {
  int64_t node[PATCH];
  wide weight[PATCH], slope[PATCH][CQ_DIM];
} Patch;

// the particles of one liquid in a slice, and the box of nodes that they touch
typedef struct {
  const cq_scene *s;
  real *data;
  int32_t law;
  int64_t lower[CQ_DIM], size[CQ_DIM], nodes;
  wide *part, *node;
} Liquid;

// Returns 1 if particle p (user's index) is of liquid q, else 0.
CQ_INLINE int in_liquid(const Liquid *q, const int64_t p) { return q->s->model->material[p] == q->law; }
// Returns the numbers {PART} (PART_J, ...) that are kept of particle p while volumes are averaged.
CQ_INLINE wide *part_of(const Liquid *q, const int64_t p) { return q->part + p * PART; }
// The slot (index in the sorted order) of particle p.
CQ_INLINE int32_t liquid_slot(const Liquid *q, const int64_t p) { return q->s->arrangement->slot[p]; }
// The initial volume of particle p.
CQ_INLINE wide liquid_volume(const Liquid *q, const int64_t p) {
  return (wide)*slot_at((real *)q->s->arrangement->params, q->s->params, liquid_slot(q, p), CQ_PARAM_VOLUME);
}

// (E3) Returns the coordinate of the base node of particle p along an axis, and sets f to the position from it [cells].
CQ_INLINE int64_t node_before(const Liquid *q, const int64_t p, const int axis, wide *f) {
  const wide x = (wide)*slot_at(q->data, FIELDS, liquid_slot(q, p), X + axis) * (1 / q->s->model->dx);
  const double base = floor((double)s_value(x) - 0.5);
  *f = x - base;
  return (int64_t)base;
}

// Sets out to the 9 or 27 nodes of the stencil of particle p of a liquid: where their sums lie in q->node, the weights
// of the quadratic B-spline, and the gradients of these by position.
static void patch_of(const Liquid *q, const int64_t p, Patch *out) {
  wide w[CQ_DIM][3], dw[CQ_DIM][3];
  int64_t first = 0;
  const double inv_dx = 1 / q->s->model->dx;
  for (int i = 0; i < CQ_DIM; i++) {
    wide f;
    first = first * q->size[i] + node_before(q, p, i, &f) - q->lower[i];
    w[i][0] = 0.5 * (1.5 - f) * (1.5 - f);
    w[i][1] = 0.75 - (f - 1.0) * (f - 1.0);
    w[i][2] = 0.5 * (f - 0.5) * (f - 0.5);
    dw[i][0] = inv_dx * (f - 1.5);
    dw[i][1] = inv_dx * (2.0 - 2.0 * f);
    dw[i][2] = inv_dx * (f - 0.5);
  }
  for (int k = 0; k < PATCH; k++) {
    int64_t at = 0;
    int of[CQ_DIM];
    for (int i = CQ_DIM - 1, rest = k; i >= 0; i--, rest /= 3) of[i] = rest % 3;
    out->weight[k] = 1;
    for (int i = 0; i < CQ_DIM; i++) {
      at = at * q->size[i] + of[i];
      out->weight[k] = out->weight[k] * w[i][of[i]];
    }
    for (int i = 0; i < CQ_DIM; i++) {
      out->slope[k][i] = dw[i][of[i]];
      for (int j = 0; j < CQ_DIM; j++)
        if (j != i) out->slope[k][i] = out->slope[k][i] * w[j][of[j]];
    }
    out->node[k] = (first + at) * NODE;
  }
}

// Sets q to the liquid of material number `law` in the state `in`: the box of nodes that its particles reach, with
// memory for their sums. The scene owns that memory and the next liquid takes it over, so only one is open at a time.
// 1, or 0 without memory.
static int open_liquid(cq_scene *s, Liquid *q, const cq_slice *in, const int32_t law) {
  int64_t upper[CQ_DIM];
  q->s = s;
  q->data = (real *)in->data;
  q->law = law;
  q->part = (wide *)s->volume_part;
  for (int i = 0; i < CQ_DIM; i++) q->lower[i] = INT32_MAX, upper[i] = INT32_MIN;
  for (int64_t p = 0; p < s->model->particle_count; p++)
    for (int i = 0; i < CQ_DIM && in_liquid(q, p); i++) {
      wide f;
      const int64_t node = node_before(q, p, i, &f);
      if (node < q->lower[i]) q->lower[i] = node;
      if (node > upper[i]) upper[i] = node;
    }
  q->nodes = 1;
  for (int i = 0; i < CQ_DIM; i++) {
    q->size[i] = upper[i] < q->lower[i] ? 0 : upper[i] - q->lower[i] + 3;
    q->nodes *= q->size[i];
  }
  if (q->nodes > s->volume_capacity) {
    cq_free(s->volume_node);
    s->volume_capacity = 0;
    s->volume_node = cq_alloc((size_t)q->nodes * NODE, sizeof(wide), "volumes of the liquid");
    if (!s->volume_node) return 0;
    s->volume_capacity = q->nodes;
  }
  q->node = (wide *)s->volume_node;
  return 1;
}

// Sets one of the sums (NODE_...) to 0 at all nodes of a liquid.
static void clear_sums(const Liquid *q, const int sum) {
  for (int64_t k = 0; k < q->nodes; k++) q->node[k * NODE + sum] = 0;
}

// Sets J of each particle of a liquid (PART_J), and the sum of weight times initial volume at each node (NODE_VOLUME).
static void load_liquid(const Liquid *q) {
  clear_sums(q, NODE_VOLUME);
  for (int64_t p = 0; p < q->s->model->particle_count; p++) {
    if (!in_liquid(q, p)) continue;
    Patch at;
    const wide side = (wide)*slot_at(q->data, FIELDS, liquid_slot(q, p), F), volume = liquid_volume(q, p);
    part_of(q, p)[PART_J] = CQ_DIM == 2 ? side * side : side * side * side;
    patch_of(q, p, &at);
    for (int k = 0; k < PATCH; k++)
      q->node[at.node[k] + NODE_VOLUME] = q->node[at.node[k] + NODE_VOLUME] + at.weight[k] * volume;
  }
}

// Sets NODE_SUM of each node to the sum of w V q over a liquid's particles: w weight, V initial volume, q the
// particle's number `which` (PART_...).
static void sum_over_nodes(const Liquid *q, const int which) {
  clear_sums(q, NODE_SUM);
  for (int64_t p = 0; p < q->s->model->particle_count; p++) {
    if (!in_liquid(q, p)) continue;
    Patch at;
    const wide amount = liquid_volume(q, p) * part_of(q, p)[which];
    patch_of(q, p, &at);
    for (int k = 0; k < PATCH; k++)
      q->node[at.node[k] + NODE_SUM] = q->node[at.node[k] + NODE_SUM] + at.weight[k] * amount;
  }
}

// (E49) Sets number `rest` (PART_...) of each particle of a liquid to q - A q, the difference from the mean over its
// nodes, with q the particle's number `which`.
static void subtract_mean(const Liquid *q, const int which, const int rest) {
  sum_over_nodes(q, which);
  for (int64_t p = 0; p < q->s->model->particle_count; p++) {
    if (!in_liquid(q, p)) continue;
    Patch at;
    wide mean = 0;
    patch_of(q, p, &at);
    for (int k = 0; k < PATCH; k++)
      mean = mean + at.weight[k] * q->node[at.node[k] + NODE_SUM] / q->node[at.node[k] + NODE_VOLUME];
    part_of(q, p)[rest] = part_of(q, p)[which] - mean;
  }
}

// Returns J^(1/dim), the diagonal of a liquid's F, by Newton's method from a first guess; in 2D by a square root.
CQ_INLINE wide side_of(const wide jac, const wide guess) {
#if CQ_DIM == 2
  (void)guess;
  return w_sqrt(jac);
#else
  wide side = guess;
  for (int k = 0; k < 8; k++) side = side - (side * side * side - jac) / (3.0 * side * side);
  return side;
#endif
}

// (E49) Sets the state `out` to `in` with J of each liquid's particles moved towards the mean of their neighbours. A
// particle that is inverted keeps its F, for the check of inverted particles. *status: set to CQ_MEMORY without memory.
static void average_volume(cq_scene *s, const cq_slice *in, cq_slice *out, cq_status *status) {
  const size_t slots = (size_t)s->chunks * CQ_CHUNK, spatial = slots - (size_t)s->first_chunk * CQ_CHUNK;
  memcpy(out->particles, in->particles, spatial * FIELDS * sizeof(real));
  if (out->nodes) memcpy(out->nodes, in->nodes, (size_t)(2 * CQ_DIM * s->reference.node_count) * sizeof(real));
  if (out->internal) memcpy(out->internal, in->internal, slots * (size_t)s->model->internal_count * sizeof(real));
  for (int32_t law = 0; law < s->model->material_count && !*status; law++) {
    if (s->model->materials[law].kind != CQ_MATERIAL_FLUID) continue;
    Liquid q;
    if (!open_liquid(s, &q, in, law)) {
      *status = CQ_MEMORY;
      return;
    }
    load_liquid(&q);
    subtract_mean(&q, PART_J, PART_R);
    subtract_mean(&q, PART_R, PART_RR);
    for (int64_t p = 0; p < s->model->particle_count; p++) {
      const wide *part = part_of(&q, p);
      if (!in_liquid(&q, p)) continue;
      const wide jac = part[PART_J] - s->model->volume_share * part[PART_RR];
      const wide side = (wide)*slot_at(q.data, FIELDS, liquid_slot(&q, p), F);
      if (!((double)s_value(jac) > 0) || !((double)s_value(side) > 0)) continue;
      const real next = (real)side_of(jac, side);
      for (int i = 0; i < CQ_DIM; i++)
        *slot_at((real *)out->data, FIELDS, liquid_slot(&q, p), F + i * CQ_DIM + i) = next;
    }
  }
}

#if !defined(CQ_REAL_DUAL)
// The adjoint of y = A q, with q each particle's number `which` (PART_...) and dL/dy in PART_GRAD: writes dL/dq to
// PART_GRAD_Q, and adds to the gradients of volumes and positions. A node has a = S / M, S = sum_p w V q, M = sum_p w
// V; with g = sum_p w dL/dy, dL/dS = g / M and dL/dM = -a g / M.
static void mean_adj(const Liquid *q, const int which) {
  cq_scene *s = (cq_scene *)q->s;
  sum_over_nodes(q, which);
  clear_sums(q, NODE_GRAD);
  Patch at;
  for (int64_t p = 0; p < s->model->particle_count; p++) {
    if (!in_liquid(q, p)) continue;
    patch_of(q, p, &at);
    for (int k = 0; k < PATCH; k++) q->node[at.node[k] + NODE_GRAD] += at.weight[k] * part_of(q, p)[PART_GRAD];
  }
  for (wide *node = q->node; node < q->node + q->nodes * NODE; node += NODE) {
    if (!(node[NODE_VOLUME] > 0)) continue;
    node[NODE_SUM] /= node[NODE_VOLUME];
    node[NODE_GRAD] /= node[NODE_VOLUME];
    node[NODE_GRAD_VOLUME] = -node[NODE_SUM] * node[NODE_GRAD];
  }
  for (int64_t p = 0; p < s->model->particle_count; p++) {
    if (!in_liquid(q, p)) continue;
    wide *part = part_of(q, p);
    const wide volume = liquid_volume(q, p);
    wide grad_q = 0, grad_volume = 0, grad_x[CQ_DIM] = {0};
    patch_of(q, p, &at);
    for (int k = 0; k < PATCH; k++) {
      const wide *node = q->node + at.node[k];
      const wide each = node[NODE_GRAD_VOLUME] + part[which] * node[NODE_GRAD];
      const wide grad_w = part[PART_GRAD] * node[NODE_SUM] + volume * each;
      grad_q += at.weight[k] * volume * node[NODE_GRAD];
      grad_volume += at.weight[k] * each;
      for (int i = 0; i < CQ_DIM; i++) grad_x[i] += at.slope[k][i] * grad_w;
    }
    part[PART_GRAD_Q] = grad_q;
    *slot_at((real *)s->params_adj, s->params, liquid_slot(q, p), CQ_PARAM_VOLUME) += (real)grad_volume;
    for (int i = 0; i < CQ_DIM; i++) *slot_at((real *)s->adj, FIELDS, liquid_slot(q, p), X + i) += (real)grad_x[i];
  }
}

// Adjoint of average_volume: s->adj of the state after it becomes that of `in`, the state before it, in the same order
// of particles; adds to the gradients of volume. *status: set to CQ_MEMORY without memory.
static void average_volume_adj(cq_scene *s, const cq_slice *in, cq_status *status) {
  for (int32_t law = 0; law < s->model->material_count; law++) {
    if (s->model->materials[law].kind != CQ_MATERIAL_FLUID) continue;
    Liquid q;
    if (!open_liquid(s, &q, in, law)) {
      *status = CQ_MEMORY;
      return;
    }
    load_liquid(&q);
    subtract_mean(&q, PART_J, PART_R);
    subtract_mean(&q, PART_R, PART_RR);
    // dL/dJ' from that of the sides; J' = J - beta RR, RR = R - A R, R = J - A J
    for (int64_t p = 0; p < s->model->particle_count; p++) {
      if (!in_liquid(&q, p)) continue;
      wide *part = part_of(&q, p), sum = 0;
      const wide jac = part[PART_J] - s->model->volume_share * part[PART_RR];
      const wide side = side_of(jac, (wide)*slot_at(q.data, FIELDS, liquid_slot(&q, p), F));
      for (int i = 0; i < CQ_DIM; i++)
        sum += (wide)*slot_at((real *)s->adj, FIELDS, liquid_slot(&q, p), F + i * CQ_DIM + i);
      part[PART_RR] = sum * side / (CQ_DIM * jac);
      part[PART_GRAD] = s->model->volume_share * part[PART_RR];
    }
    mean_adj(&q, PART_R);
    for (int64_t p = 0; p < s->model->particle_count; p++) {
      if (!in_liquid(&q, p)) continue;
      wide *part = part_of(&q, p);
      const wide grad_r = part[PART_GRAD_Q] - part[PART_GRAD];
      part[PART_GRAD] = -grad_r;
      part[PART_RR] += grad_r;
    }
    mean_adj(&q, PART_J);
    for (int64_t p = 0; p < s->model->particle_count; p++) {
      if (!in_liquid(&q, p)) continue;
      const wide side = (wide)*slot_at(q.data, FIELDS, liquid_slot(&q, p), F);
      const wide grad = (part_of(&q, p)[PART_RR] + part_of(&q, p)[PART_GRAD_Q]) * (CQ_DIM == 2 ? side : side * side);
      for (int i = 0; i < CQ_DIM; i++)
        *slot_at((real *)s->adj, FIELDS, liquid_slot(&q, p), F + i * CQ_DIM + i) = (real)grad;
    }
  }
}
#endif
