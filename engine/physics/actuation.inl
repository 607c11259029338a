// actuation: a symmetric stress sigma in the material frame, P += F sigma (advanced-chainqueen eq. 15, A1).

// (E11) Adds the stress of actuators to the Kirchhoff stress of a particle: tau += F sigma F^T. sigma is symmetric, in
// the material frame, and packed (sym_at).
CQ_INLINE void actuation_stress(const Real f[CQ_DIM][CQ_DIM], const Real sigma[CQ_SYM], Real tau[CQ_DIM][CQ_DIM]) {
  Real full[CQ_DIM][CQ_DIM], fs[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) full[i][j] = sigma[sym_at(i, j)];
  mat_mul(f, full, fs);
  mat_mul_nt(fs, f, t);
  EACH(i) EACH(j) tau[i][j] += t[i][j];
}

// (E19) Adjoint of actuation_stress, G = grad_tau = dL/dtau: dL/dF += (G + G^T) F sigma, dL/dsigma += F^T G F. An
// entry of the packed dL/dsigma off the diagonal gets both entries of its pair.
CQ_INLINE void actuation_stress_adj(const Real f[CQ_DIM][CQ_DIM], const Real sigma[CQ_SYM],
                                    Real grad_f[CQ_DIM][CQ_DIM], Real grad_sigma[CQ_SYM],
                                    const Real grad_tau[CQ_DIM][CQ_DIM]) {
  Real full[CQ_DIM][CQ_DIM], fs[CQ_DIM][CQ_DIM], sym[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) full[i][j] = sigma[sym_at(i, j)];
  EACH(i) EACH(j) sym[i][j] = grad_tau[i][j] + grad_tau[j][i];
  mat_mul(f, full, fs);
  mat_mul(sym, fs, t);
  EACH(i) EACH(j) grad_f[i][j] += t[i][j];
  mat_mul(grad_tau, f, fs);
  mat_mul_tn(f, fs, t);
  EACH(i) EACH(j) grad_sigma[sym_at(i, j)] += t[i][j];
}

// (E11) Adds the stress of actuators to the first Piola-Kirchhoff stress of a particle: P += F sigma, sigma as in
// actuation_stress. For total Lagrangian steps, on a reference grid.
CQ_INLINE void actuation_piola(const Real f[CQ_DIM][CQ_DIM], const Real sigma[CQ_SYM], Real p[CQ_DIM][CQ_DIM]) {
  Real full[CQ_DIM][CQ_DIM], fs[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) full[i][j] = sigma[sym_at(i, j)];
  mat_mul(f, full, fs);
  EACH(i) EACH(j) p[i][j] += fs[i][j];
}

// Adjoint of actuation_piola, G = grad_p = dL/dP: dL/dF += G sigma, dL/dsigma += F^T G. An entry of the packed
// dL/dsigma off the diagonal gets both entries of its pair.
CQ_INLINE void actuation_piola_adj(const Real f[CQ_DIM][CQ_DIM], const Real sigma[CQ_SYM], Real grad_f[CQ_DIM][CQ_DIM],
                                   Real grad_sigma[CQ_SYM], const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real full[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) full[i][j] = sigma[sym_at(i, j)];
  mat_mul(grad_p, full, t);
  EACH(i) EACH(j) grad_f[i][j] += t[i][j];
  mat_mul_tn(f, grad_p, t);
  EACH(i) EACH(j) grad_sigma[sym_at(i, j)] += t[i][j];
}
