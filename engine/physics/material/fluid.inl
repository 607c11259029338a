// fluid: weakly compressible, by Tait's equation of state in J = det F (Cole 1948; Monaghan 1994). Viscosity stands
// beside it (viscous.inl). In 2D J is the ratio of areas.
//   p = K / gamma (J^-gamma - 1), psi with d psi / dJ = -p, P = -p cof(F)                                         (E40)
// gamma = 7 is water's; gamma = 1 is linear in the density.
// After a step F <- J^(1/dim) I, so that of F the volume alone is kept. J is at most J_max, where the tension -p is the
// largest that the fluid bears: beyond, it cavitates, and further expansion is forgotten.                         (E41)

enum { FLUID_BULK, FLUID_EXPONENT, FLUID_TENSION, FLUID_COUNT };

#if defined(CQ_LAW_TABLE)
// The bulk modulus K [stress] out of slot, the law's constants: an upper bound on rho c^2 of sound at rest.
static double fluid_modulus(const cq_material *material, const double *slot) {
  (void)material;
  return slot[FLUID_BULK];
}
static const cq_law fluid_law = {.name = "fluid", .slot_count = FLUID_COUNT, .modulus = fluid_modulus,
                                 .slot = {CQ_FIELD_BULK, CQ_FIELD_EXPONENT, CQ_FIELD_TENSION}};
#endif

// (E40) J^-gamma of Tait's equation.
CQ_INLINE Real fluid_power(const MaterialPoint *at, const Real jac) {
  return r_exp(-(at->c[FLUID_EXPONENT] * r_log(jac)));
}

// (E40) The energy of compression from J = 1 without its factor: gamma psi / K = J - 1 - x exp_apart(a x, 0), x = log
// J, a = 1 - gamma. At gamma = 1 the last term is log J.
CQ_INLINE Real fluid_work(const MaterialPoint *at, const Real jac) {
  const Real x = r_log(jac), a = (real)1 - at->c[FLUID_EXPONENT];
  return jac - (real)1 - x * exp_apart(a * x, x * (real)0);
}
// (E40) The energy density psi of a fluid: the work of compression from J = 1 to det F.
CQ_INLINE Real fluid_energy(const MaterialPoint *at) {
  return at->c[FLUID_BULK] / at->c[FLUID_EXPONENT] * fluid_work(at, mat_det(at->f));
}

// (E55) Adds grad_psi dpsi/dK and grad_psi dpsi/dgamma to grad->c. The derivative of fluid_work by gamma is x^2
// exp_moment(a x).
CQ_INLINE void fluid_energy_grad(const MaterialPoint *at, MaterialPoint *grad, const Real grad_psi) {
  const Real jac = mat_det(at->f), x = r_log(jac), work = fluid_work(at, jac), gamma = at->c[FLUID_EXPONENT];
  const Real along = grad_psi / gamma;
  grad->c[FLUID_BULK] += along * work;
  grad->c[FLUID_EXPONENT] += along * at->c[FLUID_BULK] * (x * x * exp_moment(((real)1 - gamma) * x) - work / gamma);
}

// (E40) Sets p to P = -p cof(F), with Tait's pressure p = K / gamma (J^-gamma - 1).
CQ_INLINE void fluid_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real power = fluid_power(at, mat_det_of(at->f, cof));
  const Real pressure = at->c[FLUID_BULK] / at->c[FLUID_EXPONENT] * (power - (real)1);
  EACH(i) EACH(j) p[i][j] = -(pressure * cof[i][j]);
}

// Sets dp to the change of P by a change df of F: dP = K J^(-gamma - 1) <cof, dF> cof - p dcof.
CQ_INLINE void fluid_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                       Real dp[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM], dcof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  cofactor_derivative(at->f, df, dcof);
  const Real jac = mat_det_of(at->f, cof), power = fluid_power(at, jac), bulk = at->c[FLUID_BULK];
  const Real pressure = bulk / at->c[FLUID_EXPONENT] * (power - (real)1), slope = bulk * power / jac * mat_dot(cof, df);
  EACH(i) EACH(j) dp[i][j] = slope * cof[i][j] - pressure * dcof[i][j];
}

// Adds the derivatives of <P, grad_p> by K and gamma to grad->c.
CQ_INLINE void fluid_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), power = fluid_power(at, jac), along = -mat_dot(cof, grad_p);
  const Real bulk = at->c[FLUID_BULK], gamma = at->c[FLUID_EXPONENT], slope = (power - (real)1) / gamma;
  grad->c[FLUID_BULK] += slope * along;
  grad->c[FLUID_EXPONENT] -= bulk / gamma * (slope + power * r_log(jac)) * along;
}

// ---- after the step (E41) -------------------------------------------------------------------------------------------

// The volume at which the fluid cavitates: J_max = x^(-1/gamma), x = 1 - gamma tension / K; none where x <= 0.
typedef struct {
  Real x, log_x, jac;
} FluidCap;

// (E41) The J at which a fluid cavitates, from its tension, exponent and bulk modulus, and the terms that its
// derivatives need. Where x <= 0 the fluid bears any tension: jac is then 1 and no bound, and fluid_excess tells so.
CQ_INLINE FluidCap fluid_cap(const MaterialPoint *at) {
  FluidCap cap;
  cap.x = (real)1 - at->c[FLUID_EXPONENT] * at->c[FLUID_TENSION] / at->c[FLUID_BULK];
  cap.log_x = r_log(r_pick(cap.x, cap.x, at->c[FLUID_BULK] * (real)0 + (real)1));
  cap.jac = r_exp(-(cap.log_x / at->c[FLUID_EXPONENT]));
  return cap;
}

// J minus the J at which the fluid cavitates: above 0 where it has expanded further. At most 0 for a fluid that never
// cavitates.
CQ_INLINE Real fluid_excess(const FluidCap *cap, const Real jac) { return r_pick(cap->x, jac - cap->jac, cap->x); }

// J^(1/dim), the stretch of each side of a fluid's particle with the volume ratio J.
CQ_INLINE Real fluid_side(const Real jac) {
#if CQ_DIM == 2
  return r_sqrt(jac);
#else
  // a step of Newton's method after it, for the rounding of exp would add up over many steps
  const Real side = r_exp(r_log(jac) * (real)(1.0 / 3));
  return side - (side * side * side - jac) / ((real)3 * side * side);
#endif
}

// (E41) After a step F <- min(J, J_max)^(1/dim) I. F of a particle that is inverted stays as it is, for the check of
// inverted particles.
CQ_INLINE void fluid_update(MaterialPoint *at) {
  const Real jac = mat_det(at->f);
  const FluidCap cap = fluid_cap(at);
  const Real side = fluid_side(r_pick(fluid_excess(&cap, jac), cap.jac, jac));
  EACH(i) EACH(j) at->f[i][j] = r_pick(jac, side * (real)(i == j), at->f[i][j]);
}

// Adjoint of fluid_update; at: the particle before the update. grad->f: on entry the gradient of F after the update, on
// return of F before it. Adds to the gradients of K, gamma and tension.
CQ_INLINE void fluid_update_adj(const MaterialPoint *at, MaterialPoint *grad) {
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), gamma = at->c[FLUID_EXPONENT], bulk = at->c[FLUID_BULK],
             zero = jac * (real)0;
  const FluidCap cap = fluid_cap(at);
  const Real over = fluid_excess(&cap, jac), kept = r_pick(over, cap.jac, jac);
  // of J as it is kept: d side / dJ = side / (dim J)
  const Real grad_kept = mat_trace(grad->f) * fluid_side(kept) / ((real)CQ_DIM * kept);
  const Real grad_jac = r_pick(over, zero, grad_kept), grad_cap = r_pick(over, grad_kept, zero);
  EACH(i) EACH(j) grad->f[i][j] = grad_jac * cof[i][j];
  const Real grad_x = r_pick(over, -(grad_cap * cap.jac / (gamma * cap.x)), zero);
  grad->c[FLUID_EXPONENT] +=
      r_pick(over, grad_cap * cap.jac * cap.log_x / (gamma * gamma) - grad_x * at->c[FLUID_TENSION] / bulk, zero);
  grad->c[FLUID_TENSION] -= r_pick(over, grad_x * gamma / bulk, zero);
  grad->c[FLUID_BULK] += r_pick(over, grad_x * gamma * at->c[FLUID_TENSION] / (bulk * bulk), zero);
}
