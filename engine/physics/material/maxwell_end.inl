// maxwell_end: a material in a step of backward Euler, where Maxwell branches beside its law have the overstress of the
// step's end. It follows from F^, F at that end, alone, and has an energy. Overstress of the step's start would act as
// the force of an explicit step, and grow from step to step where branches are stiffer than the law.
//   sum_k Q_k after E44 is R + b S_iso(F^), R = sum_k e_k Q_k - b S, b = sum_k g_k beta_k; so                    (E105)
//   psi = psi_law + <R, F^T F - I> / 2 + b psi_law(J^(-1/dim) F),  P = P_law + F R + b P_iso

// (E105) Returns g_k beta_k, the factor of branch k by which the isochoric stress at the end of a step adds to its
// overstress. Sets half to g_k = exp(-dt / (2 tau)), whose square is e_k.
CQ_INLINE Real maxwell_rise(const MaterialPoint *at, const int k, Real *half) {
  const Real *c = &at->extra[maxwell_first(at->law, k)];
  *half = r_exp((real)-0.5 * at->dt / c[1]);
  return *half * c[0];
}

// (E105) Sets rest to R = sum_k e_k Q_k - b S, the part of the branches' overstress that does not depend on the end of
// the step: Q_k and S = S_iso of its start, in at->internal; returns b = sum_k g_k beta_k (maxwell_rise).
CQ_INLINE Real maxwell_rest(const MaterialPoint *at, Real rest[CQ_DIM][CQ_DIM]) {
  Real sum = at->f[0][0] * (real)0;
  EACH(i) EACH(j) rest[i][j] = sum;
  for (int k = 0; k < at->law->branches; k++) {
    Real half;
    const Real rise = maxwell_rise(at, k, &half);
    sum += rise;
    EACH(i) EACH(j) {
      const int n = sym_at(i, j);
      rest[i][j] += half * half * at->internal[(1 + k) * CQ_SYM + n] - rise * at->internal[n];
    }
  }
  return sum;
}

// Adjoint of the terms of branch k in R and b (maxwell_rest): from the gradients of R (grad_rest, packed) and of b
// (grad_share), adds to the gradients of Q_k and S of the start, beta and tau.
CQ_INLINE void maxwell_rest_grad(const MaterialPoint *at, MaterialPoint *grad, const int k,
                                 const Real grad_rest[CQ_SYM], const Real grad_share) {
  const int first = maxwell_first(at->law, k);
  const Real time = at->extra[first + 1];
  Real half, grad_rise = grad_share, grad_half = grad_share * (real)0;
  const Real rise = maxwell_rise(at, k, &half);
  for (int n = 0; n < CQ_SYM; n++) {
    grad->internal[(1 + k) * CQ_SYM + n] += half * half * grad_rest[n];
    grad->internal[n] -= rise * grad_rest[n];
    grad_rise -= at->internal[n] * grad_rest[n];
    grad_half += (real)2 * half * at->internal[(1 + k) * CQ_SYM + n] * grad_rest[n];
  }
  grad_half += at->extra[first] * grad_rise;
  grad->extra[first] += half * grad_rise;
  // d half / d tau = half dt / (2 tau^2)
  grad->extra[first + 1] += grad_half * half * ((real)0.5 * at->dt) / (time * time);
}

// (E105) Sets p to the stress P at the end of an implicit step, at->f, with Maxwell branches that relax within the
// step; returns the energy density psi there. at->internal: of the start of the step.
CQ_RARE Real material_end_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Real psi = law_energy(at), rest[CQ_DIM][CQ_DIM], green[CQ_DIM][CQ_DIM], more[CQ_DIM][CQ_DIM];
  Isochoric iso;
  law_stress(at, p);
  if (!at->law->branches) return psi;
  const Real share = maxwell_rest(at, rest);
  isochoric_of(at, &iso);
  mat_mul_tn(at->f, at->f, green);
  psi += (real)0.5 * (mat_dot(rest, green) - mat_trace(rest)) + share * law_energy(&iso.bar);
  mat_mul(at->f, rest, more);
  EACH(i) EACH(j) p[i][j] += more[i][j];
  isochoric_stress(at, &iso, more);
  EACH(i) EACH(j) p[i][j] += share * more[i][j];
  return psi;
}

// Sets dp to the change of P of material_end_stress by a change df of F. Symmetric, so it is its own adjoint.
CQ_RARE void material_end_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                            Real dp[CQ_DIM][CQ_DIM]) {
  Real rest[CQ_DIM][CQ_DIM], more[CQ_DIM][CQ_DIM];
  Isochoric iso;
  law_stress_derivative(at, df, dp);
  if (!at->law->branches) return;
  const Real share = maxwell_rest(at, rest);
  isochoric_of(at, &iso);
  mat_mul(df, rest, more);
  EACH(i) EACH(j) dp[i][j] += more[i][j];
  isochoric_derivative(at, &iso, df, more);
  EACH(i) EACH(j) dp[i][j] += share * more[i][j];
}

// Adjoint of material_end_stress: grad->f += dP(grad_p), and adds the derivatives of <P, grad_p> by constants and
// internal variables to grad.
CQ_RARE void material_end_stress_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real part[CQ_DIM][CQ_DIM], rest[CQ_DIM][CQ_DIM], grad_rest[CQ_SYM];
  Isochoric iso;
  material_end_stress_derivative(at, grad_p, part);
  EACH(i) EACH(j) grad->f[i][j] += part[i][j];
  law_grad_constants(at, grad, grad_p);
  if (!at->law->branches) return;
  const Real share = maxwell_rest(at, rest);
  isochoric_of(at, &iso);
  isochoric_stress(at, &iso, part);
  const Real grad_share = mat_dot(part, grad_p);
  // P_iso by the constants of the law at J^(-1/dim) F
  isochoric_part(at, &iso, grad_p, part);
  EACH(i) EACH(j) part[i][j] = share * part[i][j];
  law_grad_constants(&iso.bar, grad, part);
  // dL/dR = F^T dL/dP, both entries of a pair into the packed one
  mat_mul_tn(at->f, grad_p, part);
  for (int n = 0; n < CQ_SYM; n++) grad_rest[n] = grad_share * (real)0;
  EACH(i) EACH(j) grad_rest[sym_at(i, j)] += part[i][j];
  for (int k = 0; k < at->law->branches; k++) maxwell_rest_grad(at, grad, k, grad_rest, grad_share);
}
