// maxwell: viscoelasticity of finite strain, as Maxwell branches beside a hyperelastic law (Simo 1987; Holzapfel,
// Nonlinear Solid Mechanics, 2000, section 6.10). A branch k holds an overstress Q_k, in the material frame, that
// follows the isochoric part of the law's second Piola-Kirchhoff stress S with a modulus beta_k relative to the law,
// and relaxes in the time tau_k:
//   P = P_law + F sum_k Q_k, Q' + Q / tau = beta S_iso'                                                           (E43)
//   after a step: Q <- e Q + g beta (S_iso(F) - S), S <- S_iso(F), e = exp(-dt / tau), g = exp(-dt / (2 tau))     (E44)
// S_iso is the stress of the energy psi(J^(-1/dim) F): volume changes are elastic, and a modulus mu of the law becomes
// mu (1 + sum beta) for what is quick. In 2D the isochoric part is that of the plane, with J^(-1/2).
// Internal variables: S_iso of the last step, then each Q_k, packed as a symmetric matrix. All are 0 at the start, so
// that an initial F is imposed by the first step.

// The index in MaterialPoint.extra of the modulus beta of branch k; its relaxation time follows. A viscosity stands
// before the branches.
CQ_INLINE int maxwell_first(const cq_material *law, const int k) { return law->viscous + 2 * k; }

// Sets q to the overstress of all branches, sum of Q_k.
CQ_INLINE void maxwell_overstress(const MaterialPoint *at, Real q[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) {
    q[i][j] = at->internal[CQ_SYM + sym_at(i, j)];
    for (int k = 1; k < at->law->branches; k++) q[i][j] += at->internal[(1 + k) * CQ_SYM + sym_at(i, j)];
  }
}

// (E43) The energy density of the branches at constant overstress Q: <Q, F^T F - I> / 2.
CQ_INLINE Real maxwell_energy(const MaterialPoint *at) {
  Real q[CQ_DIM][CQ_DIM], green[CQ_DIM][CQ_DIM];
  maxwell_overstress(at, q);
  mat_mul_tn(at->f, at->f, green);
  return (real)0.5 * (mat_dot(q, green) - mat_trace(q));
}

// Adds grad_psi times the derivative of maxwell_energy by each Q_k to grad->internal. A packed entry off the diagonal
// gets both entries of its pair.
CQ_INLINE void maxwell_energy_grad(const MaterialPoint *at, MaterialPoint *grad, const Real grad_psi) {
  Real green[CQ_DIM][CQ_DIM];
  mat_mul_tn(at->f, at->f, green);
  EACH(i) green[i][i] -= (real)1;
  for (int k = 0; k < at->law->branches; k++)
    EACH(i) EACH(j) grad->internal[(1 + k) * CQ_SYM + sym_at(i, j)] += (real)0.5 * grad_psi * green[i][j];
}

// (E43) Adds the stress of the branches to p: P += f Q. With f = F it is P, with f = dF it is the change of P by dF.
CQ_INLINE void maxwell_stress(const MaterialPoint *at, const Real f[CQ_DIM][CQ_DIM], Real p[CQ_DIM][CQ_DIM]) {
  Real q[CQ_DIM][CQ_DIM], fq[CQ_DIM][CQ_DIM];
  maxwell_overstress(at, q);
  mat_mul(f, q, fq);
  EACH(i) EACH(j) p[i][j] += fq[i][j];
}

// Adds the derivative of <P, grad_p> by each Q_k, F^T grad_p, to grad->internal. A packed entry off the diagonal gets
// both entries of its pair.
CQ_INLINE void maxwell_grad_internal(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real gq[CQ_DIM][CQ_DIM];
  mat_mul_tn(at->f, grad_p, gq);
  for (int k = 0; k < at->law->branches; k++)
    EACH(i) EACH(j) grad->internal[(1 + k) * CQ_SYM + sym_at(i, j)] += gq[i][j];
}

// ---- the isochoric part of a law ------------------------------------------------------------------------------------

typedef struct {
  MaterialPoint bar;                // at J^(-1/dim) F
  Real scale;                       // J^(-1/dim)
  Real g[CQ_DIM][CQ_DIM];           // F^-T
  Real p[CQ_DIM][CQ_DIM];           // P of the law at bar
} Isochoric;

// Sets iso for a particle: F without its change of volume, J^(-1/dim) F; P of the law at it; and F^-T.
CQ_RARE void isochoric_of(const MaterialPoint *at, Isochoric *iso) {
  mat_cofactor(at->f, iso->g);
  const Real jac = mat_det_of(at->f, iso->g);
#if CQ_DIM == 2
  iso->scale = (real)1 / r_sqrt(jac);
#else
  iso->scale = r_exp(r_log(jac) * (real)(-1.0 / 3));
#endif
  iso->bar = *at;
  EACH(i) EACH(j) {
    iso->g[i][j] = iso->g[i][j] / jac;
    iso->bar.f[i][j] = iso->scale * at->f[i][j];
  }
  law_stress(&iso->bar, iso->p);
}

// (E43) Sets p to the stress of the energy psi(J^(-1/dim) F): P_iso = s (P - <P, F>/dim F^-T), with s = J^(-1/dim) and
// P = iso->p, the law's stress at J^(-1/dim) F.
CQ_RARE void isochoric_stress(const MaterialPoint *at, const Isochoric *iso, Real p[CQ_DIM][CQ_DIM]) {
  const Real mean = mat_dot(iso->p, at->f) * (real)(1.0 / CQ_DIM);
  EACH(i) EACH(j) p[i][j] = iso->scale * (iso->p[i][j] - mean * iso->g[i][j]);
}

// Sets out to the change of J^(-1/dim) F by a change df of F: s (dF - <F^-T, dF>/dim F), s = J^(-1/dim).
CQ_INLINE void isochoric_part(const MaterialPoint *at, const Isochoric *iso, const Real df[CQ_DIM][CQ_DIM],
                              Real out[CQ_DIM][CQ_DIM]) {
  const Real mean = mat_dot(iso->g, df) * (real)(1.0 / CQ_DIM);
  EACH(i) EACH(j) out[i][j] = iso->scale * (df[i][j] - mean * at->f[i][j]);
}

// Sets dp to the change of P_iso (isochoric_stress) by a change df of F. Symmetric, as any derivative of a stress that
// has an energy.
CQ_RARE void isochoric_derivative(const MaterialPoint *at, const Isochoric *iso, const Real df[CQ_DIM][CQ_DIM],
                                  Real dp[CQ_DIM][CQ_DIM]) {
  Real dbar[CQ_DIM][CQ_DIM], da[CQ_DIM][CQ_DIM], gdf[CQ_DIM][CQ_DIM], dg[CQ_DIM][CQ_DIM];
  isochoric_part(at, iso, df, dbar);
  law_stress_derivative(&iso->bar, dbar, da);
  // d(F^-T) = -F^-T dF^T F^-T
  mat_mul_nt(iso->g, df, gdf);
  mat_mul(gdf, iso->g, dg);
  const real part = (real)(1.0 / CQ_DIM);
  const Real mean = part * mat_dot(iso->p, at->f), dmean = part * (mat_dot(da, at->f) + mat_dot(iso->p, df));
  const Real shrink = part * mat_dot(iso->g, df);
  EACH(i) EACH(j)
      dp[i][j] = iso->scale *
                 (da[i][j] - dmean * iso->g[i][j] + mean * dg[i][j] - shrink * (iso->p[i][j] - mean * iso->g[i][j]));
}

// Sets s to the second Piola-Kirchhoff stress of the isochoric part, S_iso = F^-1 P_iso.
CQ_RARE void isochoric_second(const MaterialPoint *at, const Isochoric *iso, Real s[CQ_DIM][CQ_DIM]) {
  Real p[CQ_DIM][CQ_DIM];
  isochoric_stress(at, iso, p);
  mat_mul_tn(iso->g, p, s);
}

// ---- after the step (E44) -------------------------------------------------------------------------------------------

// (E44) Adjoint of the update of branch k (from 0). grad->internal of Q_k: on entry the gradient of Q_k after the
// update, on return of Q_k before it. Adds the gradients of the stored S (grad->internal), of S_iso(F) (grad_s,
// packed), and of beta and tau (grad->extra). s: S_iso(F), packed.
CQ_INLINE void maxwell_branch_grad(const MaterialPoint *at, MaterialPoint *grad, const int k, const Real s[CQ_SYM],
                                   Real grad_s[CQ_SYM]) {
  const int first = maxwell_first(at->law, k);
  const Real beta = at->extra[first], time = at->extra[first + 1], half = r_exp((real)-0.5 * at->dt / time);
  const Real *q = &at->internal[(1 + k) * CQ_SYM];
  Real *gq = &grad->internal[(1 + k) * CQ_SYM], grad_half = beta * (real)0;
  for (int n = 0; n < CQ_SYM; n++) {
    const Real step = s[n] - at->internal[n], wanted = gq[n];
    grad->extra[first] += half * step * wanted;
    grad_half += ((real)2 * half * q[n] + beta * step) * wanted;
    grad_s[n] += half * beta * wanted;
    grad->internal[n] -= half * beta * wanted;
    gq[n] = half * half * wanted;
  }
  // d half / d tau = half dt / (2 tau^2)
  grad->extra[first + 1] += grad_half * half * ((real)0.5 * at->dt) / (time * time);
}

// (E44) After a step: relaxes the overstress Q_k of each branch, and stores S_iso of the end of the step, in
// at->internal.
CQ_RARE void maxwell_update(MaterialPoint *at) {
  Isochoric iso;
  Real s[CQ_DIM][CQ_DIM];
  isochoric_of(at, &iso);
  isochoric_second(at, &iso, s);
  for (int k = 0; k < at->law->branches; k++) {
    const Real *c = &at->extra[maxwell_first(at->law, k)];
    Real *q = &at->internal[(1 + k) * CQ_SYM];
    const Real half = r_exp((real)-0.5 * at->dt / c[1]), rise = half * c[0];
    EACH(i) CQ_UNROLL for (int j = i; j < CQ_DIM; j++) {
      const int n = sym_at(i, j);
      q[n] = half * half * q[n] + rise * ((real)0.5 * (s[i][j] + s[j][i]) - at->internal[n]);
    }
  }
  EACH(i) CQ_UNROLL for (int j = i; j < CQ_DIM; j++) at->internal[sym_at(i, j)] = (real)0.5 * (s[i][j] + s[j][i]);
}

// Adjoint of maxwell_update; at: the particle before the update. grad->internal: on entry gradients of the values after
// the update, on return of those before it. Adds to the gradients of F and of the constants of law and branches.
CQ_RARE void maxwell_update_adj(const MaterialPoint *at, MaterialPoint *grad) {
  Isochoric iso;
  Real s[CQ_DIM][CQ_DIM], packed[CQ_SYM], grad_s[CQ_SYM], w[CQ_DIM][CQ_DIM], gw[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
  isochoric_of(at, &iso);
  isochoric_second(at, &iso, s);
  EACH(i) CQ_UNROLL for (int j = i; j < CQ_DIM; j++) packed[sym_at(i, j)] = (real)0.5 * (s[i][j] + s[j][i]);
  for (int n = 0; n < CQ_SYM; n++) {
    grad_s[n] = grad->internal[n];
    grad->internal[n] = grad_s[n] * (real)0;
  }
  for (int k = 0; k < at->law->branches; k++) maxwell_branch_grad(at, grad, k, packed, grad_s);
  // S_iso = F^-1 P_iso with W = dL/dS: dL/dP_iso = F^-T W, dL/dF -= F^-T W S^T
  EACH(i) EACH(j) w[i][j] = grad_s[sym_at(i, j)] * (real)(i == j ? 1 : 0.5);
  mat_mul(iso.g, w, gw);
  mat_mul_nt(gw, s, back);
  EACH(i) EACH(j) grad->f[i][j] -= back[i][j];
  isochoric_derivative(at, &iso, gw, back);
  EACH(i) EACH(j) grad->f[i][j] += back[i][j];
  isochoric_part(at, &iso, gw, back);
  law_grad_constants(&iso.bar, grad, back);
}

#if defined(CQ_LAW_TABLE)
// The stiffness that Maxwell branches add to rho c^2 at rest [stress], an upper bound. Each adds at most beta times the
// largest eigenvalue of dP_iso (2 mu of an isotropic law), found by the power method. slot: values of all constants, in
// the order of cq_material_slots.
static double maxwell_modulus(const cq_material *material, const double *slot) {
  MaterialPoint at = {.law = material};
  double sum = 0, size = 0, a[3][3] = {{0.3, 1, -0.2}, {0.8, -0.5, 0.6}, {0.1, -0.7, 0.4}};
  for (int k = 0; k < CQ_SLOTS_MAX; k++) *material_slot(material, &at, k) = slot[k];
  for (int k = 0; k < material->branches; k++) sum += slot[maxwell_first(material, k)];
  EACH(i) at.f[i][i] = 1;
  Isochoric iso;
  isochoric_of(&at, &iso);
  for (int step = 0; step < 16; step++) {
    double dp[3][3], was = sqrt(mat_dot(a, a));
    isochoric_derivative(&at, &iso, a, dp);
    size = was > 0 ? sqrt(mat_dot(dp, dp)) / was : 0;
    EACH(i) EACH(j) a[i][j] = size > 0 ? dp[i][j] / (size * was) : 0;
  }
  return sum * size;
}
#endif
