// friction: Coulomb friction at the nodes of implicit steps (E94, E95). It follows from the impulse by which a wall
// presses, which follows from the velocities. Newton's method keeps the impulses during an iteration, and computes them
// again for the next; in the adjoint their dependence gives the solution a part along held directions (lean).

// Does Coulomb friction act at a contact? 1 where its wall has friction and presses, else 0. A wall that has let go has
// no impulse from the next call of press() on.
CQ_INLINE int has_friction(const cq_scene *s, const NodeContact *c) {
  return c->impulse > (real)0 && contact_kind(s, c) == CQ_CONTACT_FRICTION;
}

// (E94) Sets out to the state of sliding of a node with velocity v along the wall of contact c: the sliding velocity,
// and from it direction, slope and potential of the smoothed friction.
CQ_INLINE void slide_at(const cq_scene *s, const NodeContact *c, const real v[CQ_DIM], Slide *out) {
  real w[CQ_DIM];
  contact_velocity(s, c, w);
  slide(s->model->integrator.stick_velocity, c->normal, w, v, out);
}

// (E94) Returns the friction potential of node n with velocity v, the sum over its contacts; sets force to its
// derivative by v. h: the block's list of constrained nodes, to which n belongs.
CQ_INLINE real friction_node(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                             const real v[CQ_DIM],
                        real force[CQ_DIM]) {
  real potential = (real)0;
  EACH(i) force[i] = (real)0;
  for (int k = 0; k < n->count; k++) {
    const NodeContact *c = node_contact(h, n, k);
    if (!has_friction(s, c)) continue;
    Slide at;
    slide_at(s, c, v, &at);
    const real limit = friction_of(s, c->wall) * c->impulse;
    EACH(i) force[i] = force[i] + limit * at.share * at.t[i];
    potential = potential + limit * at.potential;
  }
  return potential;
}

// (E94) Sets out to the second derivative of the friction potential of node n with velocity v, times x. Where
// s->implicit.secant is set, the slope of friction is that of its chord from rest.
CQ_INLINE void friction_product(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                                const real v[CQ_DIM],
                           const real x[CQ_DIM], real out[CQ_DIM]) {
  EACH(i) out[i] = (real)0;
  for (int k = 0; k < n->count; k++) {
    const NodeContact *c = node_contact(h, n, k);
    if (!has_friction(s, c)) continue;
    Slide at;
    real part[CQ_DIM];
    slide_at(s, c, v, &at);
    if (s->implicit.secant) at.change = (real)0;
    slide_change(&at, c->normal, x, part);
    const real limit = friction_of(s, c->wall) * c->impulse;
    EACH(i) out[i] = out[i] + limit * part[i];
  }
}

// (E94) Sets the impulses by which walls with friction press on the nodes of a block, from vector `from`, a residual at
// VELOCITY without friction; 0 where they pull. Adds the change of the friction potential to sum[CQ_SUM_ENERGY].
static void press(cq_scene *s, const int32_t block, const int32_t from, double *sum) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    const real *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, *r = grid_vector(s, from) + 4 * n->node;
    real force[CQ_DIM];
    sum[CQ_SUM_ENERGY] -= s_value(friction_node(s, h, n, v, force));
    for (int q = 0; q < n->count; q++) {
      NodeContact *c = node_contact(h, n, q);
      c->impulse = (real)0;
      if (!(n->active >> q & 1) || contact_kind(s, c) != CQ_CONTACT_FRICTION) continue;
      contact_share(s, h, n, q, r, force);
      EACH(i) c->impulse = c->impulse + force[i] * c->normal[i];
      if (!(c->impulse > (real)0)) c->impulse = (real)0;
    }
    sum[CQ_SUM_ENERGY] += s_value(friction_node(s, h, n, v, force));
  }
}

// Adds the friction potential of a block's nodes at the velocities in vector `at` to sum[CQ_SUM_ENERGY].
static void friction_energy(const cq_scene *s, const int32_t block, const int32_t at, double *sum) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; s->model->walls_have_friction && k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    real force[CQ_DIM];
    sum[CQ_SUM_ENERGY] += s_value(friction_node(s, h, n, grid_vector(s, at) + 4 * n->node, force));
  }
}

// Adds minus the friction forces of a block's nodes at the velocities in vector `at` to vector `to`, a residual there.
static void friction_residual(cq_scene *s, const int32_t block, const int32_t to, const int32_t at) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; s->model->walls_have_friction && k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    real *x = grid_vector(s, to) + 4 * n->node, force[CQ_DIM];
    friction_node(s, h, n, grid_vector(s, at) + 4 * n->node, force);
    EACH(i) x[i] = x[i] + force[i];
  }
}

// Adds the second derivative of the friction potential at VELOCITY, times vector `from`, to PRODUCT on a block's nodes,
// and its dot product with `from` to sum[CQ_SUM_DOT].
static void friction_multiply(cq_scene *s, const int32_t block, const int32_t from, double *sum) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; s->model->walls_have_friction && k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    const real *x = grid_vector(s, from) + 4 * n->node, *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node;
    real *to = grid_vector(s, CQ_GRID_PRODUCT) + 4 * n->node, part[CQ_DIM];
    friction_product(s, h, n, v, x, part);
    EACH(i) {
      to[i] = to[i] + part[i];
      sum[CQ_SUM_DOT] += dot_value(s, x[i], part[i]);
    }
  }
}

// Adds the second derivative of the friction potential of node n at VELOCITY to `block`, the node's diagonal block of
// the Hessian H.
static void friction_block(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                           real block[CQ_DIM][CQ_DIM]) {
  const real *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node;
  EACH(j) {
    real unit[CQ_DIM], part[CQ_DIM];
    EACH(i) unit[i] = (real)(i == j);
    friction_product(s, h, n, v, unit, part);
    EACH(i) block[i][j] = block[i][j] + part[i];
  }
}

#if !defined(CQ_REAL_DUAL)

// Sets row to l of lambda = l . r, by which the impulse lambda of contact k of node n follows from the node's residual
// r: the wall's normal where no other wall holds the node.
static void impulse_row(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, const int k,
                        real row[CQ_DIM]) {
  const NodeContact *c = node_contact(h, n, k);
  EACH(j) {
    real unit[CQ_DIM], share[CQ_DIM];
    EACH(i) unit[i] = (real)(i == j);
    contact_share(s, h, n, k, unit, share);
    row[j] = (real)0;
    EACH(i) row[j] += share[i] * c->normal[i];
  }
}

static void impulse_to_residual(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                                real out[CQ_DIM]);

// (E95, E97) Adds to STEP, the adjoint's solution in the free directions, its part along held directions: the gradient
// of each wall's pressing impulse, times its impulse_row, less dL/d(residual) by the impulses that readouts ask for.
// DIRECTION keeps the part, which straighten() subtracts again.
static void lean(cq_scene *s, int32_t block) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  real *to = grid_vector(s, CQ_GRID_DIRECTION), *step = grid_vector(s, CQ_GRID_STEP);
  ROWS_EACH(s, block, at) row_store(to + at, row_zero());
  for (int32_t k = 0; k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    const int64_t at = 4 * n->node;
    for (int q = 0; q < n->count; q++) {
      const NodeContact *c = node_contact(h, n, q);
      if (!has_friction(s, c)) continue;
      Slide sliding;
      real row[CQ_DIM], power = 0;
      slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + at, &sliding);
      impulse_row(s, h, n, q, row);
      EACH(i) power += sliding.share * sliding.t[i] * step[at + i];
      EACH(i) to[at + i] += friction_of(s, c->wall) * power * row[i];
    }
    real felt[CQ_DIM];
    impulse_to_residual(s, h, n, felt);
    EACH(i) to[at + i] -= felt[i];
    EACH(i) step[at + i] += to[at + i];
  }
}

// Subtracts from STEP, on a block's nodes, the part along held directions that lean() has added.
static void straighten(cq_scene *s, int32_t block) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; k < h->count; k++) {
    const int64_t at = 4 * constrained_node(h, k)->node;
    EACH(i) grid_vector(s, CQ_GRID_STEP)[at + i] -= grid_vector(s, CQ_GRID_DIRECTION)[at + i];
  }
}

// (E95) Adjoint of friction at contact c of a node with velocity v, from y, the adjoint's solution in the free
// directions: adds to grad the gradients of the coefficient of friction and of the wall's velocity.
static void friction_adj(const cq_scene *s, const NodeContact *c, const real v[CQ_DIM], const real y[CQ_DIM],
                    ContactGrad *grad) {
  const real friction = friction_of(s, c->wall);
  Slide at;
  real power = 0, change[CQ_DIM];
  slide_at(s, c, v, &at);
  slide_change(&at, c->normal, y, change);
  EACH(i) power += at.share * at.t[i] * y[i];
  grad->friction -= c->impulse * power;
  EACH(i) grad->w[i] += friction * c->impulse * change[i];
}

#endif
