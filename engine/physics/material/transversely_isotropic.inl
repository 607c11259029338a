// transversely isotropic: a neo-Hookean matrix with one family of fibres (Holzapfel, Gasser and Ogden 2000) along d.
//   psi = mu/2 (I1 - 3) + U(J) + k1/(2 k2) (exp(k2 <I4 - 1>^2) - 1), I4 = |F d|^2 / |d|^2, <x> = max(x, 0)        (E36)
// I1 and U are those of invariants.inl. I4 is the square of the fibre's whole stretch, as Nolan et al. 2014 have it:
// the isochoric one of the first paper leaves fibres without stress where a body swells. k2 = 0 is the limit k1/2 <I4 -
// 1>^2, the standard reinforcing model.
// Fibres only pull. At I4 = 1 the stress has a kink: dP is that of slack fibres up to there, that of taut ones beyond,
// with a jump of 4 k1 along the fibre. Rest is on the slack side.

enum { FIBRES_SHEAR, FIBRES_BULK, FIBRES_K1, FIBRES_K2, FIBRES_ALONG, FIBRES_COUNT = FIBRES_ALONG + 3 };

#if defined(CQ_LAW_TABLE)
// cq_law.check: CQ_OK if the shear modulus is positive and the fibre has a length, else CQ_INVALID and a sentence that
// names the particle.
static cq_status transversely_isotropic_check(const double *slot, int64_t particle) {
  const double *d = slot + FIBRES_ALONG;
  if (!(slot[FIBRES_SHEAR] > 0))
    return cq_fail(CQ_INVALID,
                   "shear of particle %lld is %g; the matrix of a transversely isotropic material has a positive one",
                   (long long)particle, slot[FIBRES_SHEAR]);
  if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > 0) return CQ_OK;
  return cq_fail(CQ_INVALID, "fibre of particle %lld has no length; it is the direction of the fibres",
                 (long long)particle);
}
// An upper bound on rho c^2 at rest [stress], K + 4/3 mu + 4 k1: with taut fibres, the stiffer side of the kink at I4 =
// 1.
static double transversely_isotropic_modulus(const cq_material *material, const double *slot) {
  (void)material;
  return slot[FIBRES_BULK] + 4.0 / 3 * slot[FIBRES_SHEAR] + 4 * slot[FIBRES_K1];
}
static const cq_law transversely_isotropic_law = {
    .name = "transversely_isotropic", .slot_count = FIBRES_COUNT,
    .slot = {CQ_FIELD_SHEAR, CQ_FIELD_BULK, CQ_FIELD_K1, CQ_FIELD_K2, CQ_FIELD_FIBRE, CQ_FIELD_FIBRE, CQ_FIELD_FIBRE},
    .modulus = transversely_isotropic_modulus, .check = transversely_isotropic_check};
#endif

// The fibre at F, with the derivatives of its energy by I4: slope = k1 e exp(k2 e^2), curve; e = <I4 - 1>
typedef struct {
  Real along[CQ_DIM], moved[CQ_DIM], inverse;   // d, F d, 1 / |d|^2
  Real e, growth, slope, curve;                 // growth = exp(k2 e^2)
} Fibre;

// Sets q for a particle: the fibre d, F d, e = max(I4 - 1, 0), and the derivatives of the fibre's energy by I4.
CQ_INLINE void fibre(const MaterialPoint *at, Fibre *q) {
  Real length = at->c[FIBRES_ALONG] * (real)0, stretched = length;
  const Real zero = length;
  EACH(i) q->along[i] = at->c[FIBRES_ALONG + i];
  EACH(i) {
    q->moved[i] = zero;
    EACH(j) q->moved[i] += at->f[i][j] * q->along[j];
    length += q->along[i] * q->along[i];
    stretched += q->moved[i] * q->moved[i];
  }
  q->inverse = (real)1 / length;
  const Real x = stretched * q->inverse - (real)1, k1 = at->c[FIBRES_K1], k2 = at->c[FIBRES_K2];
  q->e = r_max(x, zero);
  q->growth = r_exp(k2 * q->e * q->e);
  q->slope = k1 * q->e * q->growth;
  q->curve = r_pick(x, k1 * ((real)1 + (real)2 * k2 * q->e * q->e) * q->growth, zero);
}

// <F d, A d> / |d|^2 of the fibre d and a matrix A = a: half of dI4 where A is dF, I4 where A is F.
CQ_INLINE Real fibre_dot(const Fibre *q, const Real a[CQ_DIM][CQ_DIM]) {
  Real sum = q->inverse * (real)0;
  EACH(i) EACH(j) sum += q->moved[i] * a[i][j] * q->along[j];
  return sum * q->inverse;
}

// (E36) The energy density psi of matrix and fibres.
CQ_INLINE Real transversely_isotropic_energy(const MaterialPoint *at) {
  Invariants of;
  Fibre q;
  invariants(at->f, 0, &of);
  fibre(at, &q);
  const Real e2 = q.e * q.e;
  return (real)0.5 * at->c[FIBRES_SHEAR] * (of.first - (real)3) + bulk_energy(at->c[FIBRES_BULK], of.jac) +
         (real)0.5 * at->c[FIBRES_K1] * e2 * exp_apart(at->c[FIBRES_K2] * e2, e2 * (real)0);
}

// The derivatives of the matrix's energy by I1, I2 (0) and J, without the fibres.
CQ_INLINE InvariantSlopes transversely_isotropic_slopes(const MaterialPoint *at, const Invariants *of) {
  const InvariantSlopes w = {(real)0.5 * at->c[FIBRES_SHEAR], of->jac * (real)0,
                             bulk_slope(at->c[FIBRES_BULK], of->jac)};
  return w;
}

// (E36) Sets p to P = dpsi/dF: P of the matrix, and 2 slope F d d^T / |d|^2 of the fibres.
CQ_INLINE void transversely_isotropic_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Invariants of;
  Fibre q;
  invariants(at->f, 0, &of);
  fibre(at, &q);
  const InvariantSlopes w = transversely_isotropic_slopes(at, &of);
  invariants_stress(&of, 0, &w, p);
  const Real pull = (real)2 * q.slope * q.inverse;
  EACH(i) EACH(j) p[i][j] += pull * q.moved[i] * q.along[j];
}

// Sets dp to the change of P by a change df of F. The fibres' part: 2 slope dF d d^T / |d|^2 + 2 curve dI4 F d d^T /
// |d|^2, dI4 = 2 <F d, dF d> / |d|^2.
CQ_INLINE void transversely_isotropic_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                                        Real dp[CQ_DIM][CQ_DIM]) {
  Invariants of;
  Fibre q;
  invariants(at->f, 0, &of);
  fibre(at, &q);
  const InvariantSlopes w = transversely_isotropic_slopes(at, &of);
  invariants_stress_derivative(at->f, &of, 0, &w, df, dp);
  const Real volume = bulk_curve(at->c[FIBRES_BULK], of.jac) * mat_dot(of.cof, df);
  const Real pull = (real)2 * q.slope * q.inverse, more = (real)4 * q.curve * fibre_dot(&q, df) * q.inverse;
  EACH(i) {
    Real moving = q.inverse * (real)0;
    EACH(j) moving += df[i][j] * q.along[j];
    EACH(j) dp[i][j] += volume * of.cof[i][j] + (pull * moving + more * q.moved[i]) * q.along[j];
  }
}

// Adds the derivatives of <P, G> by the constants to grad->c, G = grad_p. With x = <F d, G d> / |d|^2 the fibres have
// <P, G> = 2 slope x, so
//   dL/dd = 2 slope (F^T G d + G^T F d - 2 x d) / |d|^2 + 4 curve x (F^T F d - I4 d) / |d|^2
CQ_INLINE void transversely_isotropic_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                                     const Real grad_p[CQ_DIM][CQ_DIM]) {
  Invariants of;
  Fibre q;
  invariants(at->f, 0, &of);
  fibre(at, &q);
  const Real one = of.jac * (real)0 + (real)1, x = fibre_dot(&q, grad_p), fourth = fibre_dot(&q, at->f);
  grad->c[FIBRES_SHEAR] += (real)0.5 * mat_dot(of.grad_first, grad_p);
  grad->c[FIBRES_BULK] += bulk_slope(one, of.jac) * mat_dot(of.cof, grad_p);
  grad->c[FIBRES_K1] += (real)2 * q.e * q.growth * x;
  grad->c[FIBRES_K2] += (real)2 * q.slope * q.e * q.e * x;
  EACH(j) {
    Real twist = -(real)2 * x * q.along[j], turn = -fourth * q.along[j];
    EACH(i) {
      Real pulled = of.jac * (real)0;
      EACH(k) pulled += grad_p[i][k] * q.along[k];
      twist += at->f[i][j] * pulled + grad_p[i][j] * q.moved[i];
      turn += at->f[i][j] * q.moved[i];
    }
    grad->c[FIBRES_ALONG + j] += ((real)2 * q.slope * twist + (real)4 * q.curve * x * turn) * q.inverse;
  }
}

// (E55) Adds grad_psi times the derivatives of psi by the constants to grad->c: dpsi/dk2 = k1/2 e^4 exp_moment(k2
// e^2), dpsi/dd = 2 slope (F^T F d - I4 d) / |d|^2.
CQ_INLINE void transversely_isotropic_energy_grad(const MaterialPoint *at, MaterialPoint *grad, const Real grad_psi) {
  Invariants of;
  Fibre q;
  invariants(at->f, 0, &of);
  fibre(at, &q);
  const Real e2 = q.e * q.e, half = (real)0.5 * grad_psi, z = at->c[FIBRES_K2] * e2, fourth = fibre_dot(&q, at->f);
  grad->c[FIBRES_SHEAR] += half * (of.first - (real)3);
  grad->c[FIBRES_BULK] += grad_psi * bulk_energy(z * (real)0 + (real)1, of.jac);
  grad->c[FIBRES_K1] += half * e2 * exp_apart(z, z * (real)0);
  grad->c[FIBRES_K2] += half * at->c[FIBRES_K1] * e2 * e2 * exp_moment(z);
  EACH(j) {
    Real turn = -fourth * q.along[j];
    EACH(i) turn += at->f[i][j] * q.moved[i];
    grad->c[FIBRES_ALONG + j] += (real)2 * grad_psi * q.slope * turn * q.inverse;
  }
}

#if CQ_DIM == 2
// (E52) P_zz of plane strain: of the matrix alone, for fibres lie in the plane. It is mu/2 a + J U', a = dI1/dF_zz = 2
// J^(-2/3) - 2/3 I1.
CQ_INLINE Real transversely_isotropic_piola_zz(const MaterialPoint *at) {
  Invariants of;
  invariants(at->f, 0, &of);
  return at->c[FIBRES_SHEAR] * (of.root - (real)(1.0 / 3) * of.first) + bulk_slope(at->c[FIBRES_BULK], of.jac) * of.jac;
}
// Adjoint of transversely_isotropic_piola_zz: adds grad_p's share to the gradients of F, shear and bulk modulus.
CQ_INLINE void transversely_isotropic_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  Invariants of;
  invariants(at->f, 0, &of);
  const Real shear = at->c[FIBRES_SHEAR], bulk = at->c[FIBRES_BULK], one = of.jac * (real)0 + (real)1;
  const Real volume = grad_p * (bulk * of.jac - (real)(2.0 / 3) * shear * of.root / of.jac);
  grad->c[FIBRES_SHEAR] += grad_p * (of.root - (real)(1.0 / 3) * of.first);
  grad->c[FIBRES_BULK] += grad_p * bulk_slope(one, of.jac) * of.jac;
  EACH(i) EACH(j) grad->f[i][j] += volume * of.cof[i][j] - (real)(1.0 / 3) * grad_p * shear * of.grad_first[i][j];
}
#endif
