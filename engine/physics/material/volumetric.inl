// volumetric: the near-incompressibility of Bonet and Wood, of a power p = 2, 4, 6 or 8, that a law
// with Lame's constants may have.
//   psi = k (J - 1)^p, P = k p (J - 1)^(p - 1) cof(F)                                                             (E10)

// (J - 1)^(power - 1) for power 2, 4, 6, 8
CQ_INLINE Real volumetric_odd_power(const Real e, const int power) {
  Real out = e;
  for (int i = 2; i < power; i += 2) out = out * (e * e);
  return out;
}

// (J - 1)^(power - 2): an odd power divided by e, written without division
CQ_INLINE Real volumetric_even_power(const Real e, const int power) {
  Real out = e * (real)0 + (real)1;
  for (int i = 2; i < power; i += 2) out = out * (e * e);
  return out;
}

// k (J - 1) times an odd power of J - 1: the volumetric energy density up to its factor.
CQ_INLINE Real volumetric_energy(const int power, const Real k, const Real jac) {
  const Real e = jac - (real)1;
  return k * e * volumetric_odd_power(e, power);
}

// P += ...; jac and cofactor are those of F
CQ_INLINE void volumetric_stress(const int power, const Real k, const Real jac, const Real cofactor[CQ_DIM][CQ_DIM],
                                 Real p[CQ_DIM][CQ_DIM]) {
  const Real slope = (real)power * k * volumetric_odd_power(jac - (real)1, power);
  EACH(i) EACH(j) p[i][j] += slope * cofactor[i][j];
}

// Adds to dP the derivative of the extra volumetric stress in the direction dF.
CQ_INLINE void volumetric_stress_derivative(const int power, const Real k, const Real f[CQ_DIM][CQ_DIM],
                                            const Real df[CQ_DIM][CQ_DIM], Real dp[CQ_DIM][CQ_DIM]) {
  Real cof[CQ_DIM][CQ_DIM], dcof[CQ_DIM][CQ_DIM];
  mat_cofactor(f, cof);
  cofactor_derivative(f, df, dcof);
  const Real e = mat_det_of(f, cof) - (real)1;
  const Real slope = (real)power * k * volumetric_odd_power(e, power);
  const Real curve = (real)(power * (power - 1)) * k * volumetric_even_power(e, power) * mat_dot(cof, df);
  EACH(i) EACH(j) dp[i][j] += curve * cof[i][j] + slope * dcof[i][j];
}
