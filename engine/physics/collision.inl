// collision: surfaces that are near push each other apart, as in peridynamics (Silling and Askari, Computers and
// Structures 83 (2005)): nodes a and b of two surfaces, at a distance of d < r = 1.5 dx, by
//   f_a = k (r / d - 1) (x_a - x_b) / d,  f_b = -f_a                                                          (E117)
// The nodes lie half a cell within the surfaces, so that surfaces which lie on each other are at d = dx. Across that
// they rub on each other (E120). Exchanging a and b gives the same numbers with the other sign.

// Two near nodes a and b.
typedef struct {
  wide way[CQ_DIM], far;     // x_a - x_b, and its length
  // where there is friction: v_a - v_b, and N dt (1 / m_a + 1 / m_b) with N = 3 in the plane, 5 in space
  wide speed[CQ_DIM], slow;
  double push, reach;        // k and r
  double friction;
} Collision;

// N of E120: how many nodes push a node where two surfaces lie on each other
enum { COLLISION_SHARES = CQ_DIM == 2 ? 3 : 5 };

// The constant k of the repulsion (E117) between two surfaces, from the constants a and b of their materials: the
// smaller of the two, which is that of the softer material.
CQ_INLINE double collision_push(const double a, const double b) { return a < b ? a : b; }

// Are two nodes nearer than r, so that they push each other apart? Returns 1 and sets c->far to their distance, or 0.
// Reads c->way and c->reach.
CQ_INLINE int collision_near(Collision *c) {
  wide square = (wide)0;
  EACH(i) square = square + c->way[i] * c->way[i];
  if (!(square < (wide)(c->reach * c->reach))) return 0;
  c->far = w_sqrt(square);
  return 1;
}

// Friction: the normal force phi, its direction n, and the slip t = w - n (n.w), w the relative velocity. Friction
// grows with the slip up to about the speed e, by which full friction would change the slip in 3 steps, in space 5:
//   f_a = -mu phi t / s,  s^2 = t^2 + e^2,  e = mu slow (phi + k / 1000)                                      (E120)
typedef struct {
  wide phi, n[CQ_DIM], along, t[CQ_DIM], e, s;   // along: n.w
} Rubbing;

// (E120) The terms of the friction between two near nodes: normal force phi, unit normal n from b to a, the relative
// velocity along n and across it (t), and the smoothed length s of t. c->far is set (collision_near).
CQ_INLINE Rubbing collision_rubbing(const Collision *c) {
  Rubbing r;
  wide square;
  r.phi = (wide)c->push * ((wide)c->reach / c->far - (wide)1);
  r.along = (wide)0;
  EACH(i) r.n[i] = c->way[i] / c->far;
  EACH(i) r.along = r.along + r.n[i] * c->speed[i];
  r.e = (wide)c->friction * c->slow * (r.phi + (wide)(c->push / 1000));
  square = r.e * r.e;
  EACH(i) r.t[i] = c->speed[i] - r.along * r.n[i];
  EACH(i) square = square + r.t[i] * r.t[i];
  r.s = w_sqrt(square);
  return r;
}

// The gradients of way, speed and slow of a Collision.
typedef struct {
  wide way[CQ_DIM], speed[CQ_DIM], slow;
} CollisionGrad;

// Adjoint of the friction in collision_force: sets grad->speed and grad->slow, and adds to grad->way. With g = given =
// dL/df_a - dL/df_b, h = t / s and q = mu phi (h.g) / s:
//   dL/de = q e / s,  dL/dt = -mu phi g / s + q h,  dL/dphi = -mu (h.g) + mu slow dL/de,
//   dL/dslow = mu (phi + k / 1000) dL/de,  dL/dw = dL/dt - n (n.dL/dt),
//   dL/dn = -(n.w) dL/dt - (n.dL/dt) w                                                                           (E128)
CQ_INLINE void collision_rubbing_adj(const Collision *c, const wide given[CQ_DIM], CollisionGrad *grad) {
  const Rubbing r = collision_rubbing(c);
  const wide mu = (wide)c->friction;
  wide along = (wide)0, grad_t[CQ_DIM], across = (wide)0;
  EACH(i) along = along + r.t[i] * given[i] / r.s;
  const wide q = mu * r.phi * along / r.s, grad_e = q * r.e / r.s;
  const wide grad_phi = mu * (c->slow * grad_e - along);
  EACH(i) grad_t[i] = q * r.t[i] / r.s - mu * r.phi * given[i] / r.s;
  EACH(i) across = across + r.n[i] * grad_t[i];
  grad->slow = mu * (r.phi + (wide)(c->push / 1000)) * grad_e;
  EACH(i) grad->speed[i] = grad_t[i] - across * r.n[i];
  // n = way / far: what is along n goes nowhere; phi = k (r / d - 1)
  EACH(i) grad->way[i] = grad->way[i] +
                         ((wide)2 * r.along * across * r.n[i] - r.along * grad_t[i] - across * c->speed[i]) / c->far -
                         (wide)(c->push * c->reach) / (c->far * c->far) * grad_phi * r.n[i];
}

// (E117, E120) Sets force to that of node b on node a of a near pair, with friction if it is not 0; -force acts on b.
// c->far is set (collision_near).
CQ_INLINE void collision_force(const Collision *c, wide force[CQ_DIM]) {
  const wide by = (wide)c->push * ((wide)c->reach / c->far - (wide)1) / c->far;
  EACH(i) force[i] = by * c->way[i];
  if (!(c->friction > 0)) return;
  const Rubbing r = collision_rubbing(c);
  EACH(i) force[i] = force[i] - (wide)c->friction * r.phi * r.t[i] / r.s;
}

// (E118) Adjoint of collision_force, from given = g = dL/df_a - dL/df_b. Sets grad->way = dL/dx_a = -dL/dx_b, and with
// friction grad->speed = dL/dv_a = -dL/dv_b and grad->slow. The repulsion (E117) gives dL/dx_a = k ((r / d - 1) g - (2
// r / d - 1) n (n.g)) / d, n the unit vector from b to a.
CQ_INLINE void collision_force_adj(const Collision *c, const wide given[CQ_DIM], CollisionGrad *grad) {
  const wide share = (wide)c->reach / c->far;
  wide along = (wide)0;
  EACH(i) along = along + given[i] * c->way[i] / c->far;
  EACH(i) grad->way[i] = (wide)c->push / c->far *
                         ((share - (wide)1) * given[i] - ((wide)2 * share - (wide)1) * along * c->way[i] / c->far);
  if (c->friction > 0) collision_rubbing_adj(c, given, grad);
}
