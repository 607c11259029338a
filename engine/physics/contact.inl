// contact: the effect of a wall on the velocity of a grid node (advanced-chainqueen 3.2 and B1-B15, re-derived). In
// scalar reals, because few nodes touch a wall. The laws have kinks; the subgradient is that of the branch that the
// value took: a node that leaves at exactly zero speed is free, one that friction holds does not move.

// The law of a contact at a node, with the unit normal n out of the solid and the velocity w of the wall.
typedef struct {
  int kind;
  real friction;
  const real *n, *w;
} ContactLaw;

// (E12) Lets a wall act on the velocity v of a node, in place: v <- w + law(v - w), w the velocity of the wall. law: as
// c->kind says, sticky, slip, separate, friction or hold.
CQ_INLINE void contact(const ContactLaw *c, real v[CQ_DIM]) {
  const int kind = c->kind;
  const real friction = c->friction, *n = c->n, *w = c->w;
  real u[CQ_DIM], normal = 0;
  EACH(i) u[i] = v[i] - w[i];
  EACH(i) normal = normal + u[i] * n[i];
  if (kind == CQ_CONTACT_STICKY) {
    EACH(i) v[i] = w[i];
    return;
  }
  if (kind != CQ_CONTACT_SLIP && !(normal < 0)) return;
  if (kind == CQ_CONTACT_HOLD) {
    EACH(i) v[i] = w[i];
    return;
  }
  real slide2 = 0;
  EACH(i) u[i] = u[i] - normal * n[i];
  EACH(i) slide2 = slide2 + u[i] * u[i];
  real keep = 1;
  if (kind == CQ_CONTACT_FRICTION) {
    // Coulomb: the tangential speed falls by friction times the normal impulse, not below zero
    const real slide = s_sqrt(slide2);
    keep = slide + friction * normal;
    if (keep > 0)
      keep = keep / slide;
    else
      keep = 0;
  }
  EACH(i) v[i] = w[i] + keep * u[i];
}

// Gradients, added up, of what a contact depends on beside the velocity.
typedef struct {
  real friction, w[CQ_DIM], n[CQ_DIM];
} ContactGrad;

// (E21) Adjoint of contact. v: the velocity before the contact. grad_v: dL/dv' on entry, dL/dv on return. Adds the
// gradients of friction, w and n to grad.
CQ_INLINE void contact_adj(const ContactLaw *c, const real v[CQ_DIM], real grad_v[CQ_DIM], ContactGrad *grad) {
  const int kind = c->kind;
  const real friction = c->friction, *n = c->n, *w = c->w;
  real u[CQ_DIM], normal = 0;
  EACH(i) u[i] = v[i] - w[i];
  EACH(i) normal = normal + u[i] * n[i];
  if (kind != CQ_CONTACT_STICKY && kind != CQ_CONTACT_SLIP && !(normal < 0)) return;
  if (kind == CQ_CONTACT_STICKY || kind == CQ_CONTACT_HOLD) {
    EACH(i) {
      grad->w[i] = grad->w[i] + grad_v[i];
      grad_v[i] = 0;
    }
    return;
  }
  real g[CQ_DIM], grad_normal = 0, gn = 0;
  EACH(i) u[i] = u[i] - normal * n[i];
  EACH(i) g[i] = grad_v[i];
  if (kind == CQ_CONTACT_FRICTION) {
    // v' = w + (1 + c l / |t|) t: dL/dt = (1 + c l / |t|) g - (g.t) c l / |t|^3 t, dL/dl = (g.t) c / |t|
    real slide2 = 0, gt = 0;
    EACH(i) slide2 = slide2 + u[i] * u[i];
    EACH(i) gt = gt + g[i] * u[i];
    const real slide = s_sqrt(slide2);
    if (slide + friction * normal > 0) {
      const real ratio = friction * normal / slide;
      EACH(i) g[i] = (ratio + 1) * g[i] - gt * ratio / slide2 * u[i];
      grad_normal = gt * friction / slide;
      grad->friction = grad->friction + gt * normal / slide;
    } else {
      EACH(i) g[i] = 0;
    }
  }
  // t = u - l n, l = n.u: dL/dn = (dL/dl - n.dL/dt) u - l dL/dt, and u[] holds t
  EACH(i) gn = gn + g[i] * n[i];
  const real gl = grad_normal - gn;
  EACH(i) {
    const real gu = g[i] + gl * n[i];
    grad->n[i] = grad->n[i] + gl * (u[i] + normal * n[i]) - normal * g[i];
    grad->w[i] = grad->w[i] + grad_v[i] - gu;
    grad_v[i] = gu;
  }
}

// ---- friction of implicit steps, which need a force that follows from the velocity ----------------------------------

// Friction mu lambda g(t) of a node that slides along a wall, lambda the normal impulse of the wall.
typedef struct {
  real t[CQ_DIM];            // speed along the wall
  real share, change;        // g = share t, dg = share dt + change (t.dt) t
  real potential;            // whose derivative is g
} Slide;

// (E94) For friction in implicit steps: sets out to the slip t of a node with velocity v along a wall with normal n and
// velocity w, and to factors that give the direction g(t) of friction and its derivative. slow: the speed above which
// friction is Coulomb's; below, it is smoothed.
CQ_INLINE void slide(const double slow, const real n[CQ_DIM], const real w[CQ_DIM], const real v[CQ_DIM], Slide *out) {
  const real by = (real)(1 / slow);
  real normal = (real)0, square = (real)0, speed = (real)0;
  EACH(i) out->t[i] = v[i] - w[i];
  EACH(i) normal = normal + out->t[i] * n[i];
  EACH(i) out->t[i] = out->t[i] - normal * n[i];
  EACH(i) square = square + out->t[i] * out->t[i];
  if (square > (real)0) speed = s_sqrt(square);
  if (speed * by > (real)1) {
    out->share = (real)1 / speed;
    out->change = (real)0 - out->share * out->share * out->share;
    out->potential = speed - (real)(slow / 3);
    return;
  }
  const real part = speed * by;
  out->share = by * ((real)2 - part);
  out->change = square > (real)0 ? (real)0 - by * by / speed : (real)0;
  out->potential = square * by * ((real)1 - part * (real)(1.0 / 3));
}

// (E94) Sets out to dg, the change of friction's direction g (slide) by a change dv of the node's velocity. n: normal
// of the wall.
CQ_INLINE void slide_change(const Slide *at, const real n[CQ_DIM], const real dv[CQ_DIM], real out[CQ_DIM]) {
  real normal = (real)0, along = (real)0, dt[CQ_DIM];
  EACH(i) normal = normal + dv[i] * n[i];
  EACH(i) dt[i] = dv[i] - normal * n[i];
  EACH(i) along = along + at->t[i] * dt[i];
  EACH(i) out[i] = at->share * dt[i] + at->change * along * at->t[i];
}

// Transpose of slide_change: out = dL/dv of the node, from dg = dL/dg, the gradient of friction's direction.
CQ_INLINE void slide_change_adj(const Slide *at, const real n[CQ_DIM], const real dg[CQ_DIM], real out[CQ_DIM]) {
  real normal = (real)0, along = (real)0;
  EACH(i) along = along + at->t[i] * dg[i];
  EACH(i) out[i] = at->share * dg[i] + at->change * along * at->t[i];
  EACH(i) normal = normal + out[i] * n[i];
  EACH(i) out[i] = out[i] - normal * n[i];
}

// ---- impulses: what a wall gives to a node, a readout of a step -----------------------------------------------------

// numbers of a contact; those of a wall are their sums over its nodes and over the engine steps of a control step
enum {
  CONTACT_IMPULSE,
  CONTACT_NORMAL = CQ_DIM,
  CONTACT_TANGENTIAL,
  CONTACT_MOMENT = CONTACT_TANGENTIAL + CQ_DIM,
  CONTACT_WIDTH = CONTACT_MOMENT + CQ_DIM,
};

// A node with its velocity before and after one contact. A pin has no normal: it is zero.
typedef struct {
  real mass, normal[CQ_DIM], x[CQ_DIM], before[CQ_DIM], after[CQ_DIM];
} Touch;

// (E70) The impulse of one contact on one node, into out: J = m (v' - v), its normal part N = n.J, its tangential part
// J - N n, and N x, whose sum over nodes divided by that of N is the centre of pressure.
CQ_INLINE void contact_impulse(const Touch *t, real out[CONTACT_WIDTH]) {
  real normal = 0;
  EACH(i) out[CONTACT_IMPULSE + i] = t->mass * (t->after[i] - t->before[i]);
  EACH(i) normal = normal + t->normal[i] * out[CONTACT_IMPULSE + i];
  out[CONTACT_NORMAL] = normal;
  EACH(i) out[CONTACT_TANGENTIAL + i] = out[CONTACT_IMPULSE + i] - normal * t->normal[i];
  EACH(i) out[CONTACT_MOMENT + i] = normal * t->x[i];
}

// (E71) Adjoint of contact_impulse: adds the gradients of mass, normal, position and of the velocities before and after
// the contact to grad, from grad_out. Only nodes of reference grids, which move, use the gradient of the position x.
CQ_INLINE void contact_impulse_adj(const Touch *t, Touch *grad, const real grad_out[CONTACT_WIDTH]) {
  real out[CONTACT_WIDTH], grad_normal = grad_out[CONTACT_NORMAL];
  contact_impulse(t, out);
  EACH (i)
    grad_normal =
        grad_normal + grad_out[CONTACT_MOMENT + i] * t->x[i] - grad_out[CONTACT_TANGENTIAL + i] * t->normal[i];
  EACH(i) {
    const real g = grad_out[CONTACT_IMPULSE + i] + grad_out[CONTACT_TANGENTIAL + i] + grad_normal * t->normal[i];
    grad->normal[i] = grad->normal[i] + grad_normal * out[CONTACT_IMPULSE + i] -
                      out[CONTACT_NORMAL] * grad_out[CONTACT_TANGENTIAL + i];
    grad->mass = grad->mass + g * (t->after[i] - t->before[i]);
    grad->before[i] = grad->before[i] - t->mass * g;
    grad->after[i] = grad->after[i] + t->mass * g;
    grad->x[i] = grad->x[i] + out[CONTACT_NORMAL] * grad_out[CONTACT_MOMENT + i];
  }
}
