// impulse: the impulses that walls and pins give to the nodes they hold in implicit steps (E96), a readout, with the
// adjoint (E97). A contact's impulse is its share of the node's residual, and depends on all that the residual does.

// (E96) The factor that turns the residual of a held node into an impulse, the force of its contacts times dt: 1; 2 for
// the midpoint rule, solved over h = dt / 2. Damping has no part in it: the residual has the damped velocity.
CQ_INLINE real impulse_part(const cq_scene *s) { return (real)(s->model->dt / cq_solve_seconds(s->model)); }

// (E125) For the midpoint rule: sets beyond to the velocity that node n goes on with after the middle of the step, if
// nothing holds it. Contacts take its held part by an impulse: it counts like a residual of the returned weight times
// beyond. For backward Euler and without inertia both are 0.
CQ_INLINE real impulse_beyond(const cq_scene *s, const ConstrainedNode *n, real beyond[CQ_DIM]) {
  EACH(i) beyond[i] = (real)0;
  if (!cq_is_midpoint(s->model) || s->model->integrator.statics) return (real)0;
  velocity_beyond(s, n->node, beyond);
  return (real)0 - ((const real *)s->reference.mass)[n->node] / impulse_part(s);
}

// (E96) Sets all to the vector at node n that its contacts divide into impulses: the residual r with friction, and for
// the midpoint rule the velocity after the middle of the step (impulse_beyond).
CQ_INLINE void impulse_shared(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                              const real r[CQ_DIM], real all[CQ_DIM]) {
  real beyond[CQ_DIM];
  const real weight = impulse_beyond(s, n, beyond);
  friction_node(s, h, n, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, all);   // other walls stand against friction
  EACH(i) all[i] = all[i] + r[i] + weight * beyond[i];
}

// (E96) Computes the impulse of contact k, an active one, on node n in the step, from the node's residual r without
// friction. out: a Touch of mass 1 whose velocity `after` is that impulse, as contact_impulse takes it.
static void constrained_impulse(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                         const real r[CQ_DIM], Touch *out) {
  const NodeContact *c = node_contact(h, n, k);
  const real part = impulse_part(s), *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node;
  real all[CQ_DIM];
  memset((void *)out, 0, sizeof *out);
  out->mass = (real)1;
  impulse_shared(s, h, n, r, all);
  contact_share(s, h, n, k, all, out->after);
  if (has_friction(s, c)) {
    Slide at;
    slide_at(s, c, v, &at);
    const real limit = friction_of(s, c->wall) * c->impulse;
    EACH(i) out->after[i] = out->after[i] - limit * at.share * at.t[i];
  }
  EACH(i) {
    out->after[i] = part * out->after[i];
    out->normal[i] = c->wall < 0 ? (real)0 : c->normal[i];
    out->x[i] = cq_is_reference(s->model) ? reference_place_of(s, n->node, i) : (real)(n->place[i] * s->model->dx);
  }
}

// (E96) Where a readout asks for impulses of walls: adds those on a block's nodes in this step, from RESIDUAL at
// VELOCITY, to the sums of the control step.
static void measure_constrained(cq_scene *s, const int32_t block) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; s->impulse_out && k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    for (int q = 0; q < n->count; q++) {
      if (!(n->active >> q & 1)) continue;
      Touch touch;
      real out[CONTACT_WIDTH];
      constrained_impulse(s, h, n, q, grid_vector(s, CQ_GRID_RESIDUAL) + 4 * n->node, &touch);
      contact_impulse(&touch, out);
      wall_real *to = impulse_of(s, block) + impulse_at(s, node_contact(h, n, q)->wall);
      for (int i = 0; i < CONTACT_WIDTH; i++) to[i] = to[i] + (wall_real)out[i];
    }
  }
}

#if !defined(CQ_REAL_DUAL)

// (E97) Where gradients of impulses are given and contact k is active: sets impulse to that of contact k
// (constrained_impulse), and grad to its gradient: grad->normal of the normal where it enters directly, grad->after =
// dL/d(the contact's share of the residual with friction). Else grad is 0, impulse not set.
static void constrained_weight(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                               Touch *impulse,
                        Touch *grad) {
  const int32_t wall = node_contact(h, n, k)->wall;
  const real part = impulse_part(s);
  real wanted[CONTACT_WIDTH];
  memset((void *)grad, 0, sizeof *grad);
  if (!s->grad_impulse || !(n->active >> k & 1)) return;
  for (int i = 0; i < CONTACT_WIDTH; i++) wanted[i] = (real)s->grad_impulse[impulse_at(s, wall) + i];
  constrained_impulse(s, h, n, k, grid_vector(s, CQ_GRID_RESIDUAL_TRIAL) + 4 * n->node, impulse);
  contact_impulse_adj(impulse, grad, wanted);
  EACH(i) grad->after[i] *= part;
}

// (E97) Sets out to dL/d(residual with friction) of node n, from the gradients of the impulses of all its contacts.
static void shares_weight(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                          real out[CQ_DIM]) {
  EACH(i) out[i] = 0;
  for (int q = 0; s->grad_impulse && q < n->count; q++) {
    if (!(n->active >> q & 1)) continue;
    Touch impulse, grad;
    constrained_weight(s, h, n, q, &impulse, &grad);
    EACH(j) {
      real unit[CQ_DIM], share[CQ_DIM];
      EACH(i) unit[i] = (real)(i == j);
      contact_share(s, h, n, q, unit, share);
      EACH(i) out[j] += grad.after[i] * share[i];
    }
  }
}

// (E97) Sets out to dL/d(friction force on node n at contact k), from gradients of impulses; the force is minus the
// derivative of the friction potential. It is a part of the contact's impulse, and the shares of all contacts balance
// it.
static void friction_weight(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                            real out[CQ_DIM]) {
  Touch impulse, grad;
  real all[CQ_DIM];
  constrained_weight(s, h, n, k, &impulse, &grad);
  shares_weight(s, h, n, all);
  EACH(i) out[i] = grad.after[i] - all[i];
}

// (E97) Sets out to the gradient of node n's residual, from the gradients of the impulses that readouts ask for.
static void impulse_to_residual(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                                real out[CQ_DIM]) {
  shares_weight(s, h, n, out);
  for (int q = 0; s->grad_impulse && q < n->count; q++) {
    const NodeContact *c = node_contact(h, n, q);
    if (!has_friction(s, c)) continue;
    Slide at;
    real row[CQ_DIM], weight[CQ_DIM], power = 0;
    friction_weight(s, h, n, q, weight);
    slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, &at);
    impulse_row(s, h, n, q, row);
    EACH(i) power += at.share * at.t[i] * weight[i];
    EACH(i) out[i] -= friction_of(s, c->wall) * power * row[i];
  }
}

// (E97) Adds to dL/dv of a block's nodes, which TRIAL and RESIDUAL hold, the gradients of impulses by the velocity
// itself: through the slope of friction, and through the second half of the midpoint rule.
static void impulse_to_velocity(cq_scene *s, int32_t block) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    const int64_t at = 4 * n->node;
    real beyond[CQ_DIM], shared[CQ_DIM];
    const real scale = ahead(s) * impulse_beyond(s, n, beyond);
    if (cq_is_midpoint(s->model)) {
      shares_weight(s, h, n, shared);
      EACH(i) grid_vector(s, CQ_GRID_TRIAL)[at + i] += scale * shared[i];
      EACH(i) grid_vector(s, CQ_GRID_RESIDUAL)[at + i] += scale * shared[i];
    }
    for (int q = 0; q < n->count; q++) {
      const NodeContact *c = node_contact(h, n, q);
      if (!has_friction(s, c)) continue;
      Slide sliding;
      real weight[CQ_DIM], change[CQ_DIM];
      friction_weight(s, h, n, q, weight);
      slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + at, &sliding);
      slide_change_adj(&sliding, c->normal, weight, change);
      EACH(i) {
        const real to = friction_of(s, c->wall) * c->impulse * change[i];
        grid_vector(s, CQ_GRID_TRIAL)[at + i] -= to;
        grid_vector(s, CQ_GRID_RESIDUAL)[at + i] -= to;
      }
    }
  }
}

// (E97) Adjoint of the impulse of contact k of node n by what it depends on directly: adds to out the gradients of
// friction, wall velocity and normal.
static void constrained_impulse_adj(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                                    const int k,
                             ContactGrad *out) {
  const NodeContact *c = node_contact(h, n, k);
  Touch impulse, grad;
  constrained_weight(s, h, n, k, &impulse, &grad);
  EACH(i) out->n[i] += grad.normal[i];
  if (!has_friction(s, c)) return;
  const real friction = friction_of(s, c->wall);
  Slide at;
  real weight[CQ_DIM], change[CQ_DIM], slid = 0, along = 0;
  friction_weight(s, h, n, k, weight);
  slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, &at);
  slide_change_adj(&at, c->normal, weight, change);
  EACH(i) slid += at.share * at.t[i] * weight[i];
  EACH(i) along += weight[i] * c->normal[i];
  out->friction -= c->impulse * slid;
  EACH(i) {
    out->w[i] += friction * c->impulse * change[i];
    out->n[i] += friction * c->impulse * along * at.share * at.t[i];
  }
}

// The shares of a vector x by the normals N of walls that hold a node: lambda = N^+ x, and a wall that holds all has
// x - N lambda. lambda, force {contacts}: the gradients of these two.
typedef struct {
  const real *x;
  real lambda[64], force[64][CQ_DIM];
} Shares;

// (E98) Adjoint of dividing a vector into the shares of node n's contacts: adds the gradient of contact k's normal to
// out->n. shares: the vector, and the gradients of its shares.
static void normal_adj(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                       const Shares *shares,
                       ContactGrad *out) {
  real by_impulse[CQ_DIM] = {0}, rest[CQ_DIM], whole[CQ_DIM] = {0}, free[CQ_DIM] = {0}, row[CQ_DIM];
  EACH(i) rest[i] = shares->x[i];
  for (int pass = 0; pass < 2; pass++)
    for (int q = 0; q < n->count; q++) {
      const NodeContact *c = node_contact(h, n, q);
      if (!(n->active >> q & 1)) continue;
      if (holds_all(contact_kind(s, c))) {
        if (pass == 0) EACH(i) whole[i] = free[i] = shares->force[q][i];
        continue;
      }
      real lambda = 0, along = 0;
      impulse_row(s, h, n, q, row);
      EACH(i) lambda += row[i] * shares->x[i];
      EACH(i) along += row[i] * whole[i];
      if (pass == 0) {
        EACH(i) by_impulse[i] += shares->lambda[q] * row[i];
        EACH(i) rest[i] -= lambda * c->normal[i];
      } else {
        EACH(i) free[i] -= along * c->normal[i];
      }
    }
  real lambda = 0, turned = 0;
  impulse_row(s, h, n, k, row);
  EACH(i) lambda += row[i] * shares->x[i];
  EACH(i) turned += row[i] * (by_impulse[i] - whole[i]);
  EACH(i) out->n[i] += lambda * (shares->force[k][i] - by_impulse[i] - free[i]) + turned * rest[i];
}

// (E98) Adds to out->n the gradient of contact k's normal through the shares that contacts have of node n's residual:
// by which walls with friction press, and which are read as impulses. y: the adjoint's solution in free directions.
static void shares_adj(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                       const real y[CQ_DIM],
                       ContactGrad *out) {
  const real *r = grid_vector(s, CQ_GRID_RESIDUAL_TRIAL) + 4 * n->node;
  const real *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node;
  real all[CQ_DIM];
  Shares rubbing = {.x = r}, given = {.x = all};
  impulse_shared(s, h, n, r, all);
  for (int q = 0; q < n->count; q++) {
    const NodeContact *c = node_contact(h, n, q);
    Touch impulse, grad;
    constrained_weight(s, h, n, q, &impulse, &grad);
    EACH(i) given.force[q][i] = grad.after[i];
    EACH(i) given.lambda[q] += grad.after[i] * c->normal[i];
    if (!has_friction(s, c)) continue;
    Slide at;
    real weight[CQ_DIM], power = 0;
    friction_weight(s, h, n, q, weight);
    slide_at(s, c, v, &at);
    EACH(i) power += at.share * at.t[i] * (weight[i] + y[i]);
    rubbing.lambda[q] -= friction_of(s, c->wall) * power;
  }
  normal_adj(s, h, n, k, &rubbing, out);
  normal_adj(s, h, n, k, &given, out);
}

#endif
