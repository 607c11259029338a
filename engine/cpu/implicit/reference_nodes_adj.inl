// reference_nodes_adj: adjoint of implicit steps at the nodes of reference grids: the passes before and after their
// linear system, beside those of nodes_adj.inl, which both grids share.

// (E127) dL/dv of four nodes, v their velocities within the step, as a row, from the adjoint of the state after the
// step. at: index of the row in vectors over nodes; kept: their row of the step's record; 0 for nodes without mass.
static Row reference_wanted(const cq_scene *s, const int64_t at, const Row kept) {
  const real *adj = (const real *)s->reference.adj, dt = (real)s->model->dt, on = ahead(s);
  const int statics = s->model->integrator.statics;
  real out[16], record[16];
  row_store(record, kept);
  for (int n = 0; n < 4; n++) {
    const int64_t node = at / 4 + n;
    for (int i = 0; i < 4; i++) out[4 * n + i] = 0;
    if (!(record[4 * n + CQ_DIM] > 0)) continue;
    EACH(i) {
      const real end = reference_field(s, adj, NODE_VELOCITY + i)[node];
      out[4 * n + i] = dt * reference_field(s, adj, DISPLACEMENT + i)[node] + (statics ? 0 : (1 + on) * end);
    }
  }
  return row_load(out);
}

// (E127) For the midpoint rule: removes from dL/dv of a block, in RESIDUAL and TRIAL, the part of velocities after the
// step along directions that contacts hold, since nodes do not go on there.
static void hold_wanted(cq_scene *s, const int32_t block) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real on = ahead(s);
  if (!cq_is_midpoint(s->model)) return;
  for (int32_t k = 0; k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    real end[CQ_DIM], free[CQ_DIM], still[CQ_DIM] = {0};
    Freedom f;
    contacts_keep(s, h, n, &f, still);
    EACH(i) end[i] = reference_field(s, s->reference.adj, NODE_VELOCITY + i)[n->node];
    freedom_apply(&f, end, free);
    EACH(i) {
      grid_vector(s, CQ_GRID_RESIDUAL)[4 * n->node + i] -= on * (end[i] - free[i]);
      grid_vector(s, CQ_GRID_TRIAL)[4 * n->node + i] -= on * (end[i] - free[i]);
    }
  }
}

// (E98) Adjoint of the midpoint rule's second half, in which node n goes on only in its free directions: adds the
// gradient of contact k's normal to grad->n.
static void beyond_adj(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                       ContactGrad *grad) {
  real change[CQ_DIM], end[CQ_DIM];
  Shares held = {.x = change};
  if (!cq_is_midpoint(s->model)) return;
  velocity_beyond(s, n->node, change);
  EACH(i) end[i] = -reference_field(s, s->reference.adj, NODE_VELOCITY + i)[n->node];
  for (int q = 0; q < n->count; q++) {
    EACH(i) held.force[q][i] = end[i];
    EACH(i) held.lambda[q] += end[i] * node_contact(h, n, q)->normal[i];
  }
  normal_adj(s, h, n, k, &held, grad);
}

// a contact of a held node
typedef struct {
  const cq_constrained_nodes *all;
  const ConstrainedNode *node;
  int contact;
} HeldBy;

// (E127) Adjoint of a contact by the place of its node before the step: by the gap, the normal, and the moments of
// impulses. Adds to the gradients of displacements, undeformed places and, in sum, moving walls. share: the gradient of
// the velocity that the contact imposes; grad: of its normal.
static void reference_contact_adj(cq_scene *s, const HeldBy *held, const real share[CQ_DIM], const ContactGrad *grad,
                                  cq_partial *sum) {
  const cq_constrained_nodes *h = held->all;
  const ConstrainedNode *n = held->node;
  const int k = held->contact;
  const NodeContact *c = node_contact(h, n, k);
  const StepWalls walls = walls_of(s);
  wall_real place[3], x[3];
  double grad_n[3] = {0}, grad_x[3] = {0};
  real along = 0;
  reference_place(s, n->node, place);
  wall_sees(&walls, c->wall, walls.seconds, place, x);
  EACH(i) grad_n[i] = (double)grad->n[i];
  EACH(i) along += share[i] * c->normal[i];
  if (c->lands) EACH(i) grad_x[i] -= (double)(along * c->slope[i]) / s->model->dt;
  wall_normals_adj(&walls.walls[c->wall], CQ_DIM, x, grad_n, grad_x);
  if (s->grad_impulse) {
    Touch impulse, of = {0};
    constrained_weight(s, h, n, k, &impulse, &of);
    EACH(i) reference_field(s, s->reference.adj, DISPLACEMENT + i)[n->node] += of.x[i];
    if (s->wanted & cq_bit(CQ_FIELD_POSITION)) EACH(i) reference_field(s, s->reference.rest_adj, i)[n->node] += of.x[i];
  }
  if (walls.walls[c->wall].moves) wall_place_adj(sum, c->wall, walls.seconds, grad_x);
  EACH(i) {
    reference_field(s, s->reference.adj, DISPLACEMENT + i)[n->node] += (real)grad_x[i];
    if (s->wanted & cq_bit(CQ_FIELD_POSITION)) reference_field(s, s->reference.rest_adj, i)[n->node] += (real)grad_x[i];
  }
}

// (E127) From the solution y of the adjoint's linear system (s->grid_q), on a block of nodes: sets r->force_adj, the
// gradients of forces at F^, and the gradients of velocities before the step, in r->adj; adds to those of masses and
// damping. in: the state before the step.
static void begin_reference_adj(cq_scene *s, const cq_slice *in, int32_t block) {
  const cq_reference *r = &s->reference;
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *mass = (const real *)r->mass, *solved = (const real *)s->grid_q;
  const real *velocity = grid_vector(s, CQ_GRID_VELOCITY), off = back(s), half = half_decay(s);
  const real seconds = (real)cq_solve_seconds(s->model);
  const int statics = s->model->integrator.statics;
  double damped = 0;
  int32_t k = 0;
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++) {
      const int has = mass[node] > 0;
      real end[CQ_DIM], free[CQ_DIM], by_mass = has ? solved[4 * node + CQ_DIM] : 0, still[CQ_DIM] = {0};
      EACH(i) end[i] = free[i] = reference_field(s, r->adj, NODE_VELOCITY + i)[node];
      if (k < h->count && constrained_node(h, k)->node == node) {
        const ConstrainedNode *n = constrained_node(h, k++);
        real shared[CQ_DIM], beyond[CQ_DIM];
        Freedom f;
        contacts_keep(s, h, n, &f, still);
        freedom_apply(&f, end, free);
        // (E97) impulses take what is held of that velocity
        const real weight = impulse_beyond(s, n, beyond);
        if (weight != (real)0) {
          shares_weight(s, h, n, shared);
          EACH(i) free[i] += weight * shared[i];
          EACH(i) by_mass += weight / mass[node] * beyond[i] * shared[i];
        }
      }
      EACH(i) {
        const real y = has ? solved[4 * node + i] : 0, v = reference_field(s, in->nodes, NODE_VELOCITY + i)[node];
        reference_field(s, r->force_adj, i)[node] = seconds * y;
        by_mass += statics ? 0 : half * v * y;
        const real before = half * mass[node] * y - off * free[i];
        reference_field(s, r->adj, NODE_VELOCITY + i)[node] = statics || !has ? 0 : before;
        if (has) damped += 0.5 * half * mass[node] * v * y + (half * velocity[4 * node + i] - off * v) * free[i];
      }
      ((real *)r->mass_adj)[node] += by_mass;
    }
  if (cq_is_midpoint(s->model)) s->partial[block].damping -= s->model->dt * damped;
}
