// chamber: a pressure in a closed chamber pushes its surface by p dV/dx (E64), V the volume that the surface encloses.
// Its points x {n, CQ_DIM} are carried by particles. Its faces, lines in the plane and triangles in space, are given by
// their points, in an order that makes V positive. Net force and moment are zero, because V does not change where the
// surface is moved or turned; and there is an energy, -p V.
//
//       b             V = sum over faces of  a x b / 2   in the plane
//      /|                                    a . (b x c) / 6   in space
//     / |
//    o--a  face       dV/da = b x / 2 and so on: linear in the other points of the face
//
// Over `wide` (math/real.h), as cables are: V is a small difference of products.

typedef struct {
  wide pressure;
  const int32_t *face;   // {faces, CQ_DIM} points
  int32_t faces;
} Chamber;

// Sets grad to the gradient of a chamber's volume by point k (0 to CQ_DIM - 1) of one face. at: the CQ_DIM points of
// the face. The gradient does not depend on point k itself.
CQ_INLINE void chamber_slope(const wide *const at[CQ_DIM], const int k, wide grad[CQ_DIM]) {
#if CQ_DIM == 2
  const wide *other = at[1 - k];
  grad[0] = (k ? -0.5 : 0.5) * other[1];
  grad[1] = (k ? 0.5 : -0.5) * other[0];
#else
  const wide *b = at[(k + 1) % 3], *c = at[(k + 2) % 3];
  EACH(i) {
    const int j = (i + 1) % 3, l = (i + 2) % 3;
    grad[i] = (b[j] * c[l] - b[l] * c[j]) / 6;
  }
#endif
}

// Sets at to the points of the face of a corner, out of x {n, CQ_DIM}; returns which of them the corner is, 0 to CQ_DIM
// - 1. Corners are counted over all faces: face * CQ_DIM + point.
CQ_INLINE int chamber_points(const Chamber *c, const int32_t corner, const wide *x, const wide *at[CQ_DIM]) {
  const int32_t *point = c->face + corner / CQ_DIM * CQ_DIM;
  EACH(k) at[k] = x + point[k] * CQ_DIM;
  return corner % CQ_DIM;
}

// (E64) The energy -p V of a chamber under the pressure p; V is the volume within its points x {n, CQ_DIM}.
CQ_RARE wide chamber_energy(const Chamber *c, const wide *x) {
  wide volume = 0, grad[CQ_DIM];
  const wide *at[CQ_DIM];
  for (int32_t f = 0; f < c->faces; f++) {
    chamber_points(c, f * CQ_DIM, x, at);
    chamber_slope(at, 0, grad);
    EACH(i) volume += at[0][i] * grad[i];
  }
  return -c->pressure * volume;
}

// (E64) Adds p dV/dx by one corner of one face (chamber_points) to force, the force on the corner's point.
CQ_INLINE void chamber_corner(const Chamber *c, const int32_t corner, const wide *x, wide force[CQ_DIM]) {
  wide grad[CQ_DIM];
  const wide *at[CQ_DIM];
  const int k = chamber_points(c, corner, x, at);
  chamber_slope(at, k, grad);
  EACH(i) force[i] += c->pressure * grad[i];
}

// (E66) Adjoint of chamber_corner, with g = grad_force {n, CQ_DIM} = dL/dforce of all points: adds g.dV/dx to dL/dp,
// and p d2V/dx2 g, whose second derivative is symmetric, to grad_x, dL/dx of the corner's point.
CQ_INLINE void chamber_corner_adj(const Chamber *c, const int32_t corner, const wide *x, wide *grad_pressure,
                                  wide grad_x[CQ_DIM], const wide *grad_force) {
  wide grad[CQ_DIM];
  const wide *at[CQ_DIM], *by[CQ_DIM];
  const int k = chamber_points(c, corner, x, at);
  chamber_points(c, corner, grad_force, by);
  chamber_slope(at, k, grad);
  EACH(i) *grad_pressure += by[k][i] * grad[i];
#if CQ_DIM == 2
  chamber_slope(by, k, grad);
  EACH(i) grad_x[i] += c->pressure * grad[i];
#else
  const int b = (k + 1) % 3, d = (k + 2) % 3;
  const wide *mixed[3] = {at[0], at[1], at[2]};
  for (int which = 0; which < 2; which++) {
    mixed[b] = which ? at[b] : by[b];
    mixed[d] = which ? by[d] : at[d];
    chamber_slope(mixed, k, grad);
    EACH(i) grad_x[i] += c->pressure * grad[i];
  }
#endif
}

// (E64) Adds the forces p dV/dx of a chamber's pressure to force {n, CQ_DIM}, at the points x of its faces.
CQ_RARE void chamber_push(const Chamber *c, const wide *x, wide *force) {
  for (int32_t n = 0; n < c->faces * CQ_DIM; n++) chamber_corner(c, n, x, force + c->face[n] * CQ_DIM);
}

// (E66) Adjoint of chamber_push: adds dL/dp to grad_pressure and dL/dx to grad_x {n, CQ_DIM}, from grad_force.
CQ_RARE void chamber_push_adj(const Chamber *c, const wide *x, wide *grad_pressure, wide *grad_x,
                              const wide *grad_force) {
  for (int32_t n = 0; n < c->faces * CQ_DIM; n++)
    chamber_corner_adj(c, n, x, grad_pressure, grad_x + c->face[n] * CQ_DIM, grad_force);
}
