// collision: surfaces that are near push each other apart, as in peridynamics (Silling and Askari, Computers and
// Structures 83 (2005)): nodes a and b of two surfaces, at a distance of d < r = 1.5 dx, by
//   f_a = k (r / d - 1) (x_a - x_b) / d,  f_b = -f_a                                                          (E117)
// The nodes lie half a cell within the surfaces, so that surfaces which lie on each other are at d = dx. Exchanging a
// and b gives the same numbers with the other sign.

// Two nodes that are near.
typedef struct {
  wide way[CQ_DIM], far;     // from b to a, and how long it is
  double push, reach;        // k and r
} Collision;

// The force by which the softer of two surfaces pushes.
CQ_INLINE double collision_push(const double a, const double b) { return a < b ? a : b; }

// way, push and reach are set. 0: the nodes are not near.
CQ_INLINE int collision_near(Collision *c) {
  wide square = (wide)0;
  EACH(i) square = square + c->way[i] * c->way[i];
  if (!(square < (wide)(c->reach * c->reach))) return 0;
  c->far = w_sqrt(square);
  return 1;
}

// the force on a
CQ_INLINE void collision_force(const Collision *c, wide force[CQ_DIM]) {
  const wide by = (wide)c->push * ((wide)c->reach / c->far - (wide)1) / c->far;
  EACH(i) force[i] = by * c->way[i];
}

// (E118) Adjoint of collision_force. given = dL/df_a - dL/df_b; grad: dL/dx_a = -dL/dx_b = k ((r / d - 1) w - (2 r / d
// - 1) n (n.w)) / d, with w = given and n from b to a; symmetric.
CQ_INLINE void collision_force_adj(const Collision *c, const wide given[CQ_DIM], wide grad[CQ_DIM]) {
  const wide share = (wide)c->reach / c->far;
  wide along = (wide)0;
  EACH(i) along = along + given[i] * c->way[i] / c->far;
  EACH(i) grad[i] = (wide)c->push / c->far *
                    ((share - (wide)1) * given[i] - ((wide)2 * share - (wide)1) * along * c->way[i] / c->far);
}
