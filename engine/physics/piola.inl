// piola: P of any elastic law at a point of a reference grid, with its adjoint; and the velocity gradient in space from
// that in the undeformed body.

// Finite deformation of a particle over the time h of an implicit step that ends at F (E132), from the velocity
// gradient C at its end: A = I - h C, with its cofactors, determinant and inverse G; L = C G; the strain rate E = D + h
// L L^T / 2, D = sym(L); and `shape`, S, the deviator of E.
typedef struct {
  Real cof[CQ_DIM][CQ_DIM], det, g[CQ_DIM][CQ_DIM], l[CQ_DIM][CQ_DIM], e[CQ_DIM][CQ_DIM], shape[CQ_DIM][CQ_DIM];
} Span;

// (E132) Sets s to the finite deformation of a particle over the last `span` of time [time], from at->rate, the
// velocity gradient at its end: what the viscosity of an implicit step depends on.
CQ_INLINE void span_of(const MaterialPoint *at, const real span, Span *s) {
  Real a[CQ_DIM][CQ_DIM], ll[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) a[i][j] = (real)(i == j) - span * at->rate[i][j];
  mat_cofactor(a, s->cof);
  s->det = mat_det_of(a, s->cof);
  const Real by = (real)1 / s->det;
  EACH(i) EACH(j) s->g[i][j] = by * s->cof[j][i];
  mat_mul(at->rate, s->g, s->l);
  mat_mul_nt(s->l, s->l, ll);
  EACH(i) EACH(j) s->e[i][j] = (real)0.5 * (s->l[i][j] + s->l[j][i] + span * ll[i][j]);
  viscous_rate(s->e, s->shape);
}

// (E132) The incremental potential of a particle's viscosity over an implicit step of duration `span`, for each unit of
// undeformed volume: part of the energy that the step minimises.
CQ_INLINE Real span_potential(const MaterialPoint *at, const real span) {
  Span s;
  span_of(at, span, &s);
  return at->extra[0] * span * mat_det(at->f) * s.det * mat_dot(s.e, s.shape);
}

// (E42, E132) Sets out to D of the viscous stress 2 eta J D: the deviatoric strain rate, over an implicit step of
// duration `span` that ends at F; span 0: the deviator of sym(C) of the present state, as in explicit steps.
CQ_INLINE void piola_rate(const MaterialPoint *at, const real span, Real out[CQ_DIM][CQ_DIM]) {
  if (!(span > (real)0)) {
    viscous_rate(at->rate, out);
    return;
  }
  Span s;
  Real t[CQ_DIM][CQ_DIM];
  span_of(at, span, &s);
  mat_mul(s.e, s.shape, t);
  EACH(i) EACH(j) out[i][j] = s.det * (s.shape[i][j] + (real)2 * span * t[i][j]);
}

// Adjoint of piola_rate: sets back to dL/dC, C = at->rate, from grad = dL/dD. F is not in D.
CQ_INLINE void piola_rate_adj(const MaterialPoint *at, const real span, const Real grad[CQ_DIM][CQ_DIM],
                              Real back[CQ_DIM][CQ_DIM]) {
  if (!(span > (real)0)) {
    viscous_rate(grad, back);
    return;
  }
  Span s;
  Real q[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM], of_e[CQ_DIM][CQ_DIM], of_shape[CQ_DIM][CQ_DIM];
  const real twice = (real)2 * span;
  span_of(at, span, &s);
  mat_mul(s.e, s.shape, t);
  EACH(i) EACH(j) t[i][j] = s.shape[i][j] + twice * t[i][j];
  const Real of_det = mat_dot(grad, t);
  EACH(i) EACH(j) q[i][j] = s.det * grad[i][j];
  mat_mul(s.e, q, t);
  EACH(i) EACH(j) of_shape[i][j] = q[i][j] + twice * t[i][j];
  mat_mul(q, s.shape, t);
  viscous_rate(of_shape, of_e);
  EACH(i) EACH(j) of_e[i][j] += (real)0.5 * twice * (t[i][j] + t[j][i]);
  // E to L, which is C G, and G = I + h L
  mat_mul(of_e, s.g, q);
  mat_mul_tn(s.g, q, t);
  mat_mul_nt(t, s.g, back);
  EACH(i) EACH(j) back[i][j] -= span * of_det * s.cof[i][j];
}

// (E42, E132) Adds the first Piola-Kirchhoff stress of a particle's viscosity to p: tau F^-T = 2 eta J D F^-T = 2 eta D
// cof(F). span: as in piola_rate.
CQ_INLINE void viscous_piola(const MaterialPoint *at, const real span, Real p[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  piola_rate(at, span, rate);
  mat_cofactor(at->f, cof);
  mat_mul(rate, cof, t);
  EACH(i) EACH(j) p[i][j] += (real)2 * at->extra[0] * t[i][j];
}

// Adjoint of viscous_piola: adds the gradients of F, rate and viscosity to grad, from B = grad_p = dL/dP. dL/deta = 2
// <D, B cof^T>, dL/dD = 2 eta B cof^T, and the cofactors get 2 eta D B, whose derivative is its own adjoint.
CQ_INLINE void viscous_piola_adj(const MaterialPoint *at, const real span, MaterialPoint *grad,
                                 const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
  const Real twice = (real)2 * at->extra[0];
  piola_rate(at, span, rate);
  mat_cofactor(at->f, cof);
  mat_mul_nt(grad_p, cof, t);
  grad->extra[0] += (real)2 * mat_dot(rate, t);
  piola_rate_adj(at, span, t, back);
  EACH(i) EACH(j) grad->rate[i][j] += twice * back[i][j];
  mat_mul(rate, grad_p, t);
  cofactor_derivative(at->f, t, back);
  EACH(i) EACH(j) grad->f[i][j] += twice * back[i][j];
}

// Sets p to the first Piola-Kirchhoff stress P of a particle of any law, with Maxwell branches and viscosity, for total
// Lagrangian steps. span: as in piola_rate.
CQ_INLINE void piola_of_law(const MaterialPoint *at, const real span, Real p[CQ_DIM][CQ_DIM]) {
  material_stress(at, p);
  if (at->law->viscous) viscous_piola(at, span, p);
}

// Adjoint of piola_of_law: adds the gradients of F, rate, constants and internal variables to grad, from grad_p =
// dL/dP.
CQ_INLINE void piola_of_law_adj(const MaterialPoint *at, const real span, MaterialPoint *grad,
                                const Real grad_p[CQ_DIM][CQ_DIM]) {
  material_stress_adj(at, grad, grad_p);
  if (at->law->viscous) viscous_piola_adj(at, span, grad, grad_p);
}

// (E114) Sets rate to the spatial velocity gradient C = W H^-1. slope: W = sum v_i (x) grad N_i, by undeformed
// positions; stretch: H = I + sum u_i (x) grad N_i, the deformation since the reference state.
CQ_INLINE void rate_in_space(const Real slope[CQ_DIM][CQ_DIM], const Real stretch[CQ_DIM][CQ_DIM],
                             Real rate[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(stretch, cof);
  const Real by = (real)1 / mat_det_of(stretch, cof);
  mat_mul_nt(slope, cof, rate);
  EACH(i) EACH(j) rate[i][j] *= by;
}

// Adjoint of rate_in_space, C = W H^-1: sets grad_slope = dL/dW and adds dL/dH to grad_stretch, from grad_rate =
// dL/dC.
CQ_INLINE void rate_in_space_adj(const Real stretch[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                                 const Real grad_rate[CQ_DIM][CQ_DIM], Real grad_slope[CQ_DIM][CQ_DIM],
                                 Real grad_stretch[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  mat_cofactor(stretch, cof);
  const Real by = (real)1 / mat_det_of(stretch, cof);
  mat_mul(grad_rate, cof, grad_slope);
  EACH(i) EACH(j) grad_slope[i][j] *= by;
  mat_mul_tn(rate, grad_slope, t);
  EACH(i) EACH(j) grad_stretch[i][j] -= t[i][j];
}
