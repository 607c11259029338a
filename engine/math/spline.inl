// spline: quadratic B-spline weights of the three nodes around a particle, per axis.

// (E3) Sets w to the quadratic B-spline weights of three nodes along an axis. f in [1/2, 3/2): position from the first
// node, in cells.
CQ_INLINE void spline(const Real f, Real w[3]) {
  const Real a = (real)1.5 - f, b = f - (real)1, c = f - (real)0.5;
  w[0] = (real)0.5 * a * a;
  w[1] = (real)0.75 - b * b;
  w[2] = (real)0.5 * c * c;
}

// Sets dw to the slopes dw/df of the three weights of `spline` along an axis; the adjoint is grad_f += sum_i dw[i]
// grad_w[i].
CQ_INLINE void spline_slope(const Real f, Real dw[3]) {
  dw[0] = f - (real)1.5;
  dw[1] = (real)2 - (real)2 * f;
  dw[2] = f - (real)0.5;
}
