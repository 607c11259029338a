// volumetric: the near-incompressibility of Bonet and Wood, of a power p = 2, 4, 6 or 8, that a law
// with Lame's constants may have.
//   psi = k (J - 1)^p, P = k p (J - 1)^(p - 1) cof(F)                                                             (E10)

// e^(power - 1) with e = J - 1, for a power of 2, 4, 6 or 8.
CQ_INLINE Real volumetric_odd_power(const Real e, const int power) {
  Real out = e;
  for (int i = 2; i < power; i += 2) out = out * (e * e);
  return out;
}

// e^(power - 2) with e = J - 1, for a power of 2, 4, 6 or 8: volumetric_odd_power divided by e, also where e = 0.
CQ_INLINE Real volumetric_even_power(const Real e, const int power) {
  Real out = e * (real)0 + (real)1;
  for (int i = 2; i < power; i += 2) out = out * (e * e);
  return out;
}

// (E10) The energy density k (J - 1)^power of the Bonet-Wood term, k its modulus.
CQ_INLINE Real volumetric_energy(const int power, const Real k, const Real jac) {
  const Real e = jac - (real)1;
  return k * e * volumetric_odd_power(e, power);
}

// (E10) Adds P of the Bonet-Wood term to p: k power (J - 1)^(power - 1) cof(F). k: its modulus; jac, cofactor: those
// of F.
CQ_INLINE void volumetric_stress(const int power, const Real k, const Real jac, const Real cofactor[CQ_DIM][CQ_DIM],
                                 Real p[CQ_DIM][CQ_DIM]) {
  const Real slope = (real)power * k * volumetric_odd_power(jac - (real)1, power);
  EACH(i) EACH(j) p[i][j] += slope * cofactor[i][j];
}

// Adds the change of P of the Bonet-Wood term by a change df of F to dp. k: its modulus.
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
