// impulse: what walls and pins give to the nodes that they hold in implicit steps (E96), and its adjoint (E97). It is
// what is left of the residual there, by the shares of the walls; so it depends on all that the residual depends on.

// r to an impulse: the rest of the velocity it makes is damped within the step
CQ_INLINE real impulse_part(const cq_scene *s) { return s->model->integrator.statics ? (real)1 : decay_of(s); }

// the impulse of one contact that holds
static void held_impulse(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, const int k,
                         const real r[CQ_DIM], Touch *out) {
  const HeldContact *c = held_contact(h, n, k);
  const real part = impulse_part(s);
  memset((void *)out, 0, sizeof *out);
  out->mass = (real)1;
  contact_share(s, h, n, k, r, out->after);
  if (rubs(s, c)) {
    Slide at;
    slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, &at);
    const real limit = friction_of(s, c->wall) * c->impulse;
    EACH(i) out->after[i] = out->after[i] - limit * at.share * at.t[i];
  }
  EACH(i) {
    out->after[i] = part * out->after[i];
    out->normal[i] = c->wall < 0 ? (real)0 : c->normal[i];
    out->x[i] = (real)(n->place[i] * s->model->dx);
  }
}

// adds the impulses of a block to those of the control step, from the residual at VELOCITY
static void measure_held(cq_scene *s, const int32_t block) {
  const cq_held_nodes *h = &s->implicit.held[block];
  for (int32_t k = 0; s->impulse_out && k < h->count; k++) {
    const HeldNode *n = held_node(h, k);
    for (int q = 0; q < n->count; q++) {
      if (!(n->active >> q & 1)) continue;
      Touch touch;
      real out[CONTACT_WIDTH];
      held_impulse(s, h, n, q, grid_vector(s, CQ_GRID_RESIDUAL) + 4 * n->node, &touch);
      contact_impulse(&touch, out);
      wall_real *to = impulse_of(s, block) + impulse_at(s, held_contact(h, n, q)->wall);
      for (int i = 0; i < CONTACT_WIDTH; i++) to[i] = to[i] + (wall_real)out[i];
    }
  }
}

#if !defined(CQ_REAL_DUAL)

// dL/dr of one contact by its impulse, as if r were free of walls, and what its normal gets directly; the impulse.
static void held_weight(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, const int k, Touch *impulse,
                        Touch *grad) {
  const int32_t wall = held_contact(h, n, k)->wall;
  real wanted[CONTACT_WIDTH];
  for (int i = 0; i < CONTACT_WIDTH; i++) wanted[i] = (real)s->grad_impulse[impulse_at(s, wall) + i];
  held_impulse(s, h, n, k, grid_vector(s, CQ_GRID_RESIDUAL_TRIAL) + 4 * n->node, impulse);
  memset((void *)grad, 0, sizeof *grad);
  contact_impulse_adj(impulse, grad, wanted);
}

// (E97) what impulses give the residual of a node
static void impulse_to_residual(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, real out[CQ_DIM]) {
  const real part = impulse_part(s);
  EACH(i) out[i] = 0;
  for (int q = 0; s->grad_impulse && q < n->count; q++) {
    if (!(n->active >> q & 1)) continue;
    const HeldContact *c = held_contact(h, n, q);
    Touch impulse, grad;
    Slide at;
    real row[CQ_DIM], power = 0;
    held_weight(s, h, n, q, &impulse, &grad);
    EACH(j) {
      real unit[CQ_DIM], share[CQ_DIM];
      EACH(i) unit[i] = (real)(i == j);
      contact_share(s, h, n, q, unit, share);
      EACH(i) out[j] += part * grad.after[i] * share[i];
    }
    if (!rubs(s, c)) continue;
    slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, &at);
    impulse_row(s, h, n, q, row);
    EACH(i) power += at.share * at.t[i] * grad.after[i];
    EACH(i) out[i] -= part * friction_of(s, c->wall) * power * row[i];
  }
}

// dL/dv, in TRIAL and RESIDUAL, with what impulses of friction get of the velocity itself
static void impulse_to_velocity(cq_scene *s, int32_t block) {
  const cq_held_nodes *h = &s->implicit.held[block];
  const real part = impulse_part(s);
  for (int32_t k = 0; k < h->count; k++) {
    const HeldNode *n = held_node(h, k);
    const int64_t at = 4 * n->node;
    for (int q = 0; q < n->count; q++) {
      const HeldContact *c = held_contact(h, n, q);
      if (!rubs(s, c)) continue;
      Touch impulse, grad;
      Slide sliding;
      real change[CQ_DIM];
      held_weight(s, h, n, q, &impulse, &grad);
      slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + at, &sliding);
      slide_change_adj(&sliding, c->normal, grad.after, change);
      EACH(i) {
        const real to = part * friction_of(s, c->wall) * c->impulse * change[i];
        grid_vector(s, CQ_GRID_TRIAL)[at + i] -= to;
        grid_vector(s, CQ_GRID_RESIDUAL)[at + i] -= to;
      }
    }
  }
}

// What a contact gets by its impulse directly: friction, the velocity and the normal of its wall. Returns what damping
// does.
static real held_impulse_adj(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, const int k,
                             ContactGrad *out) {
  const HeldContact *c = held_contact(h, n, k);
  const real part = impulse_part(s);
  Touch impulse, grad;
  real power = 0, along = 0;
  held_weight(s, h, n, k, &impulse, &grad);
  EACH(i) power += grad.after[i] * impulse.after[i];
  EACH(i) along += part * grad.after[i] * c->normal[i];
  EACH(i) out->n[i] += grad.normal[i];
  if (!rubs(s, c)) return power;
  const real friction = friction_of(s, c->wall);
  Slide at;
  real change[CQ_DIM], slid = 0;
  slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, &at);
  slide_change_adj(&at, c->normal, grad.after, change);
  EACH(i) slid += part * at.share * at.t[i] * grad.after[i];
  out->friction -= c->impulse * slid;
  EACH(i) {
    out->w[i] += part * friction * c->impulse * change[i];
    out->n[i] += friction * c->impulse * along * at.share * at.t[i];
  }
  return power;
}

// dL/d of the force of contact k, and for friction of the impulse that its wall has by it: y is the solution on what is
// free.
static real share_weight(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, const int k,
                         const real y[CQ_DIM], real force[CQ_DIM]) {
  const HeldContact *c = held_contact(h, n, k);
  Touch impulse, grad = {0};
  Slide at;
  real pressing = 0, power = 0;
  if (s->grad_impulse) held_weight(s, h, n, k, &impulse, &grad);
  EACH(i) force[i] = impulse_part(s) * grad.after[i];
  EACH(i) pressing += force[i] * c->normal[i];
  if (!rubs(s, c)) return pressing;
  slide_at(s, c, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, &at);
  EACH(i) power += at.share * at.t[i] * (force[i] + y[i]);
  return pressing - friction_of(s, c->wall) * power;
}

// (E98) The shares of walls depend on their normals N: lambda = N^+ r, and a wall that holds all has r - N lambda.
static void shares_adj(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, const int k, const real y[CQ_DIM],
                       ContactGrad *out) {
  const real *r = grid_vector(s, CQ_GRID_RESIDUAL_TRIAL) + 4 * n->node;
  real by_impulse[CQ_DIM] = {0}, rest[CQ_DIM], whole[CQ_DIM] = {0}, free[CQ_DIM] = {0}, row[CQ_DIM], force[CQ_DIM];
  EACH(i) rest[i] = r[i];
  for (int q = 0; q < n->count; q++) {
    const HeldContact *c = held_contact(h, n, q);
    if (!(n->active >> q & 1)) continue;
    const real weight = share_weight(s, h, n, q, y, force);
    if (holds_all(contact_kind(s, c))) {
      EACH(i) whole[i] = free[i] = force[i];
      continue;
    }
    real lambda = 0;
    impulse_row(s, h, n, q, row);
    EACH(i) lambda += row[i] * r[i];
    EACH(i) by_impulse[i] += weight * row[i];
    EACH(i) rest[i] -= lambda * c->normal[i];
  }
  for (int q = 0; q < n->count; q++) {
    const HeldContact *c = held_contact(h, n, q);
    if (!(n->active >> q & 1) || holds_all(contact_kind(s, c))) continue;
    real along = 0;
    impulse_row(s, h, n, q, row);
    EACH(i) along += row[i] * whole[i];
    EACH(i) free[i] -= along * c->normal[i];
  }
  real lambda = 0, turned = 0;
  impulse_row(s, h, n, k, row);
  share_weight(s, h, n, k, y, force);
  EACH(i) lambda += row[i] * r[i];
  EACH(i) turned += row[i] * (by_impulse[i] - whole[i]);
  EACH(i) out->n[i] += lambda * (force[i] - by_impulse[i] - free[i]) + turned * rest[i];
}

#endif
