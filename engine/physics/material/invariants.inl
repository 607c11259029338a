// invariants: laws of rubber that are an energy of the isochoric invariants and of J,
//   psi = W(I1, I2) + U(J),  I1 = J^(-2/3) tr(C),  I2 = J^(-4/3) (tr(C)^2 - tr(C^2)) / 2,  C = F^T F              (E31)
//   U(J) = K/4 (J^2 - 1 - 2 log J), which grows without bound as J -> 0 and as J -> infinity                      (E32)
// 2D is plane strain: F has a third stretch of 1, so tr(C) = |F|^2 + 1 and the second of C is |F|^2 + J^2.

// I1, I2 and their derivatives by F; I2 only if `second` is set, which is a constant where this is inlined
typedef struct {
  Real cof[CQ_DIM][CQ_DIM], jac, root;              // root = J^(-2/3)
  Real first, grad_first[CQ_DIM][CQ_DIM];           // I1, dI1/dF = 2 root F - 2/3 I1/J cof(F)
  // I2, dI2/dF = root^2 H - 4/3 I2/J cof(F), H that of the second of C
  Real second, grad_second[CQ_DIM][CQ_DIM];
} Invariants;

// (E31) Sets of to cof(F), J, J^(-2/3), I1 and dI1/dF of a deformation gradient f; and to I2 and dI2/dF if `second` is
// 1.
CQ_INLINE void invariants(const Real f[CQ_DIM][CQ_DIM], const int second, Invariants *of) {
  mat_cofactor(f, of->cof);
  const Real jac = of->jac = mat_det_of(f, of->cof), root = of->root = r_exp((real)(-2.0 / 3) * r_log(jac));
  of->first = root * (mat_dot(f, f) + (real)(3 - CQ_DIM));
  const Real inward = (real)(2.0 / 3) * of->first / jac;
  EACH(i) EACH(j) of->grad_first[i][j] = (real)2 * root * f[i][j] - inward * of->cof[i][j];
  if (!second) return;
  // the second invariant of C is |cof F|^2 in 3D
  Real h[CQ_DIM][CQ_DIM];
#if CQ_DIM == 3
  cofactor_derivative(f, of->cof, h);
  of->second = root * root * mat_dot(of->cof, of->cof);
#else
  EACH(i) EACH(j) h[i][j] = f[i][j] + jac * of->cof[i][j];
  of->second = root * root * (mat_dot(f, f) + jac * jac);
#endif
  const Real inner = (real)(4.0 / 3) * of->second / jac;
  EACH(i) EACH(j) of->grad_second[i][j] = (real)2 * root * root * h[i][j] - inner * of->cof[i][j];
}

// the derivatives of W and U by I1, I2 and J, from which the stress is computed
typedef struct {
  Real first, second, volume;
} InvariantSlopes;

// (E32) The volumetric energy density U(J) = K/4 (J^2 - 1 - 2 log J). bulk: K; jac: J.
CQ_INLINE Real bulk_energy(const Real bulk, const Real jac) {
  return (real)0.25 * bulk * (jac * jac - (real)1 - (real)2 * r_log(jac));
}
// (E32) U'(J) = K/2 (J - 1/J), the derivative of bulk_energy by J.
CQ_INLINE Real bulk_slope(const Real bulk, const Real jac) { return (real)0.5 * bulk * (jac - (real)1 / jac); }
// (E32) U''(J) = K/2 (1 + 1/J^2), the second derivative of bulk_energy by J.
CQ_INLINE Real bulk_curve(const Real bulk, const Real jac) {
  return (real)0.5 * bulk * ((real)1 + (real)1 / (jac * jac));
}

// Sets p to P = W_1 dI1/dF + W_2 dI2/dF + U' cof(F). w: the derivatives W_1, W_2, U' of the energy; second: 0 leaves
// I2 out.
CQ_INLINE void invariants_stress(const Invariants *of, const int second, const InvariantSlopes *w,
                                 Real p[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) {
    p[i][j] = w->first * of->grad_first[i][j] + w->volume * of->cof[i][j];
    if (second) p[i][j] += w->second * of->grad_second[i][j];
  }
}

// Sets dp to the change of P by a change df of F with W_1, W_2 and U' constant, by each invariant's own curvature:
//   d(dI1/dF) = 2 root dF + 2 droot F - 2/3 (dI1/J - I1 dJ/J^2) cof - 2/3 I1/J dcof, and likewise of I2
// The law adds dW_1 dI1/dF + dW_2 dI2/dF + dU' cof for their change.
CQ_INLINE void invariants_stress_derivative(const Real f[CQ_DIM][CQ_DIM], const Invariants *of, const int second,
                                            const InvariantSlopes *w, const Real df[CQ_DIM][CQ_DIM],
                                            Real dp[CQ_DIM][CQ_DIM]) {
  Real dcof[CQ_DIM][CQ_DIM];
  cofactor_derivative(f, df, dcof);
  const Real root = of->root, grow = mat_dot(of->cof, df) / of->jac;   // dJ / J
  const Real inward = (real)(2.0 / 3) / of->jac, shift = inward * (of->first * grow - mat_dot(of->grad_first, df));
  EACH(i) EACH(j)
    dp[i][j] = w->first * ((real)2 * root * (df[i][j] - (real)(2.0 / 3) * grow * f[i][j]) + shift * of->cof[i][j] -
                           inward * of->first * dcof[i][j]) +
               w->volume * dcof[i][j];
  if (!second) return;
  Real h[CQ_DIM][CQ_DIM], dh[CQ_DIM][CQ_DIM];
#if CQ_DIM == 3
  Real t[3][3];
  cofactor_derivative(f, of->cof, h);
  cofactor_derivative(df, of->cof, dh);
  cofactor_derivative(f, dcof, t);
  EACH(i) EACH(j) dh[i][j] += t[i][j];
#else
  EACH(i) EACH(j) {
    h[i][j] = f[i][j] + of->jac * of->cof[i][j];
    dh[i][j] = df[i][j] + of->jac * (grow * of->cof[i][j] + dcof[i][j]);
  }
#endif
  const Real twice = (real)2 * inward, moved = twice * (of->second * grow - mat_dot(of->grad_second, df));
  EACH(i) EACH(j)
      dp[i][j] += w->second * ((real)2 * root * root * (dh[i][j] - (real)(4.0 / 3) * grow * h[i][j]) +
                               moved * of->cof[i][j] - twice * of->second * dcof[i][j]);
}

#if CQ_DIM == 2
// (E56) P_zz in plane strain of a law psi = W + U(J), where W is isochoric in 3D. The trace of its Kirchhoff stress in
// 3D is 3 J U', and the part of that trace in the plane is <P, F>; P_zz is the difference, since F_zz = 1. bulk: the
// index in at->c of the law's bulk modulus.
CQ_RARE Real isochoric_piola_zz(const MaterialPoint *at, const int bulk) {
  Real p[CQ_DIM][CQ_DIM];
  const Real jac = mat_det(at->f);
  law_stress(at, p);
  return (real)3 * jac * bulk_slope(at->c[bulk], jac) - mat_dot(p, at->f);
}

// Adjoint of isochoric_piola_zz: adds grad_p's share to the gradients of F and the constants.
CQ_RARE void isochoric_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const int bulk, const Real grad_p) {
  Real p[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM], dp[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), thrice = (real)3 * grad_p * jac;
  EACH(i) EACH(j) back[i][j] = -grad_p * at->f[i][j];
  law_stress(at, p);
  law_stress_derivative(at, back, dp);
  law_grad_constants(at, grad, back);
  // d(J U')/dJ = K J
  EACH(i) EACH(j) grad->f[i][j] += dp[i][j] - grad_p * p[i][j] + thrice * at->c[bulk] * cof[i][j];
  grad->c[bulk] += thrice * bulk_slope(jac * (real)0 + (real)1, jac);
}
#endif
