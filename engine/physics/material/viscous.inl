// viscous: a Newtonian viscosity beside any law: that of a fluid, or the damping of Kelvin and Voigt in a solid.
// It works on the rate of deformation D = sym(C) of the state, without its change of volume (Stokes'
// hypothesis), also in 2D where D_zz = 0.
//   tau += 2 eta J (D - tr(D)/3 I)                                                                                (E42)

// Sets out to D - tr(D)/3 I, D = sym(C), the part of a rate C that changes shape. Symmetric as a map, so it is its own
// adjoint.
CQ_INLINE void viscous_rate(const Real c[CQ_DIM][CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
  const Real mean = mat_trace(c) * (real)(1.0 / 3);
  EACH(i) EACH(j) out[i][j] = (real)0.5 * (c[i][j] + c[j][i]);
  EACH(i) out[i][i] -= mean;
}

// (E42) Adds the viscous Kirchhoff stress 2 eta J (D - tr(D)/3 I) to tau. jac: det F.
CQ_INLINE void viscous_stress(const MaterialPoint *at, const Real jac, Real tau[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM];
  viscous_rate(at->rate, rate);
  EACH(i) EACH(j) tau[i][j] += (real)2 * at->extra[0] * jac * rate[i][j];
}

// Adjoint of viscous_stress: adds to the gradients of viscosity, rate and F, from grad_tau.
CQ_INLINE void viscous_stress_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_tau[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM];
  viscous_rate(at->rate, rate);
  viscous_rate(grad_tau, back);
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), power = (real)2 * mat_dot(rate, grad_tau);
  grad->extra[0] += jac * power;
  EACH(i) EACH(j) {
    grad->rate[i][j] += (real)2 * at->extra[0] * jac * back[i][j];
    grad->f[i][j] += at->extra[0] * power * cof[i][j];
  }
}
