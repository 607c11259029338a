// material: the laws of materials. Each is a file in material/; laws.inl chooses between them. This file adds Maxwell
// branches and viscosity to any law, and derives from P the Kirchhoff stress tau = P F^T that the step needs, with its
// adjoint.
#include "material/law.h"
#include "material/point.inl"
#include "material/volumetric.inl"

// with a fused form, which the step inlines
#include "material/neo_hookean.inl"
#include "material/corotated.inl"
#include "material/linear.inl"

// ---- through all laws: laws.inl -------------------------------------------------------------------------------------

// A function that chooses between the laws is never inlined. The kernels of the CPU call those of an object beside
// them (cpu/laws.c), so that a change in a law compiles that object alone; elsewhere laws.inl stands at the end here.
#if !defined(CQ_LAW)
#define CQ_LAW CQ_RARE
#endif

// energy density psi of the law alone, without Maxwell branches
CQ_LAW Real law_energy(const MaterialPoint *at);
// P = d psi / dF
CQ_LAW void law_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]);
// dP in the direction dF: symmetric, <A, dP(B)> = <B, dP(A)>, so it is its own adjoint
CQ_LAW void law_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM], Real dp[CQ_DIM][CQ_DIM]);
// grad->c += <dP/dc, grad_p>, and the same of the law's internal variables
CQ_LAW void law_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]);
// (E55) grad->c += grad_psi dpsi/dc of the law's constants, `constants` in number, and the same of internal variables
CQ_LAW void law_energy_grad(const MaterialPoint *at, int constants, MaterialPoint *grad, Real grad_psi);
#if CQ_DIM == 2
// (E52) Sets p to P_zz, the stress out of the plane in plane strain (F_zz = 1), and returns 1; returns 0, and p stays,
// for a law without one: fluid, von Mises, Drucker-Prager.
CQ_LAW int law_piola_zz(const MaterialPoint *at, Real *p);
CQ_LAW void law_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, Real grad_p);
#endif
// What a law does to F <- (I + dt C) F and to the internal variables, in place: return mapping, viscous flow, keeping J
// alone. Only for materials that update (cq_material_updates).
CQ_LAW void material_update(MaterialPoint *at);
// at: before the update. grad: on entry the gradients of F and the internal variables after the update, on return of
// those before it; grad->c is added to.
CQ_LAW void material_update_adj(const MaterialPoint *at, MaterialPoint *grad);

// The power p of the Bonet-Wood term (E10) of a material: 2, 4, 6 or 8, or 0 if it has none.
CQ_INLINE int material_power(const cq_material *law) { return law->incompressible; }

// ---- with the Maxwell branches that stand beside it -----------------------------------------------------------------

#include "material/maxwell.inl"
#include "material/maxwell_end.inl"
#include "material/viscous.inl"

// The energy density psi of a particle, of its law and of the Maxwell branches beside it.
CQ_RARE Real material_energy(const MaterialPoint *at) {
  Real psi = law_energy(at);
  if (at->law->branches) psi += maxwell_energy(at);
  return psi;
}

// Sets p to the first Piola-Kirchhoff stress P = dpsi/dF of a particle: of its law and its Maxwell branches, without
// viscosity.
CQ_RARE void material_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  law_stress(at, p);
  if (at->law->branches) maxwell_stress(at, at->f, p);
}

// Sets dp to the change of P of material_stress by a change df of F. Symmetric, <A, dP(B)> = <B, dP(A)>, so it is its
// own adjoint.
CQ_RARE void material_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                        Real dp[CQ_DIM][CQ_DIM]) {
  law_stress_derivative(at, df, dp);
  if (at->law->branches) maxwell_stress(at, df, dp);
}

// Adjoint of material_stress, grad_p = dL/dP: grad->f += dP(grad_p), and adds the derivatives of <P, grad_p> by
// constants and internal variables to grad.
CQ_RARE void material_stress_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Real dp[CQ_DIM][CQ_DIM];
  material_stress_derivative(at, grad_p, dp);
  EACH(i) EACH(j) grad->f[i][j] += dp[i][j];
  law_grad_constants(at, grad, grad_p);
  if (at->law->branches) maxwell_grad_internal(at, grad, grad_p);
}

// ---- tau = P F^T, of any law, and the viscosity beside it -----------------------------------------------------------

// Sets tau to the Kirchhoff stress P F^T of a particle of any law, with Maxwell branches and viscosity; returns det F,
// for the check of inverted particles.
CQ_RARE Real material_kirchhoff_plain(const MaterialPoint *at, Real tau[CQ_DIM][CQ_DIM]) {
  Real p[CQ_DIM][CQ_DIM];
  const Real jac = mat_det(at->f);
  material_stress(at, p);
  mat_mul_nt(p, at->f, tau);
  if (at->law->viscous) viscous_stress(at, jac, tau);
  return jac;
}

// Adjoint of material_kirchhoff_plain, G = grad_tau: adds to the gradients of F, constants, internal variables and
// rate. dL/dP = G F, dL/dF += G^T P, then through P.
CQ_RARE void material_kirchhoff_plain_adj(const MaterialPoint *at, MaterialPoint *grad,
                                          const Real grad_tau[CQ_DIM][CQ_DIM]) {
  Real p[CQ_DIM][CQ_DIM], grad_p[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  material_stress(at, p);
  mat_mul_tn(grad_tau, p, t);
  EACH(i) EACH(j) grad->f[i][j] += t[i][j];
  mat_mul(grad_tau, at->f, grad_p);
  material_stress_adj(at, grad, grad_p);
  if (at->law->viscous) viscous_stress_adj(at, grad, grad_tau);
}

// ---- tau of the laws that have a fused form -------------------------------------------------------------------------
// The step spends most of its arithmetic here. A law that is used much may write tau without P, and keep for its
// adjoint what is dear; tests hold it to the plain form. Everything of it is inlined.

// Has a material's law an inlined P (neo-Hookean, fixed corotated, linear) for total Lagrangian steps,
// material_piola_of? 1 yes; 0: the step calls piola_of_law. A viscosity may stand beside the law.
CQ_INLINE int material_has_fused_piola(const cq_material *law) {
  const int kind = law->kind;
  return !law->branches &&
         (kind == CQ_MATERIAL_NEO_HOOKEAN || kind == CQ_MATERIAL_COROTATED || kind == CQ_MATERIAL_LINEAR);
}
// Has a material an inlined Kirchhoff stress tau for MPM steps, material_kirchhoff_fused? 1 yes; 0: the step calls
// material_kirchhoff_plain.
CQ_INLINE int material_is_fused(const cq_material *law) { return !law->viscous && material_has_fused_piola(law); }

// constants that a fused law reads
enum { FUSED_SLOTS = LAME_COUNT };

// Sets kept to the costly terms that the stress of a law with a fused form and its adjoint share: log J for neo-Hookean
// (kind), the rotation R of F for fixed corotated. jac: det F.
CQ_INLINE void material_keep(const int kind, const Real f[CQ_DIM][CQ_DIM], const Real jac, MaterialKept *kept) {
  kept->log_jac = jac;
  EACH(i) EACH(j) kept->rotation[i][j] = f[i][j];
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) kept->log_jac = r_log(jac);
  if (kind == CQ_MATERIAL_COROTATED) polar(f, kept->rotation);
}

// Sets tau to the Kirchhoff stress P F^T of a particle whose law has an inlined form (material_is_fused); returns det
// F, and sets kept for the adjoint.
CQ_INLINE Real material_kirchhoff_fused(const MaterialPoint *at, MaterialKept *kept, Real tau[CQ_DIM][CQ_DIM]) {
  const int kind = at->law->kind, power = material_power(at->law);
  const Real jac = mat_det(at->f);
  material_keep(kind, at->f, jac, kept);
  Real pressure = at->c[LAME_MU] * (real)0;
  if (kind == CQ_MATERIAL_NEO_HOOKEAN)
    pressure = neo_hookean_kirchhoff(at, kept, tau);
  else if (kind == CQ_MATERIAL_COROTATED)
    pressure = corotated_kirchhoff(at, kept, jac, tau);
  else
    linear_kirchhoff(at, tau);
  if (power) pressure += (real)power * at->c[LAME_VOLUMETRIC] * volumetric_odd_power(jac - (real)1, power) * jac;
  EACH(i) tau[i][i] += pressure;
  return jac;
}

// Adjoint of material_kirchhoff_fused: adds to the gradients of F and constants, from grad_tau = dL/dtau, which need
// not be symmetric.
CQ_INLINE void material_kirchhoff_fused_adj(const MaterialPoint *at, const MaterialKept *kept, MaterialPoint *grad,
                                            const Real grad_tau[CQ_DIM][CQ_DIM]) {
  const int kind = at->law->kind, power = material_power(at->law);
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof);
  Real grad_jac = at->c[LAME_MU] * (real)0;
  if (kind == CQ_MATERIAL_NEO_HOOKEAN)
    grad_jac = neo_hookean_kirchhoff_adj(at, kept, jac, grad, grad_tau);
  else if (kind == CQ_MATERIAL_COROTATED)
    grad_jac = corotated_kirchhoff_adj(at, kept, jac, grad, grad_tau);
  else
    linear_kirchhoff_adj(at, grad, grad_tau);
  if (power) {
    // d/dJ [(J-1)^(p-1) J] = (J-1)^(p-2) (p J - 1)
    const Real e = jac - (real)1, even = volumetric_even_power(e, power), trace = mat_trace(grad_tau);
    grad->c[LAME_VOLUMETRIC] += (real)power * trace * even * e * jac;
    grad_jac += (real)power * at->c[LAME_VOLUMETRIC] * trace * even * ((real)power * jac - (real)1);
  }
  EACH(i) EACH(j) grad->f[i][j] += grad_jac * cof[i][j];
}

// ---- P of the laws that have a fused form --------------------------------------------------------------------------
// Steps on a reference grid inline them: kind is a number in the source.

// Sets p to the first Piola-Kirchhoff stress P, with the Bonet-Wood term, of a law with an inlined form
// (material_has_fused_piola). kind: the law, a constant where this is inlined.
CQ_INLINE void material_piola_of(const int kind, const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  const int power = material_power(at->law);
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) neo_hookean_stress(at, p);
  else if (kind == CQ_MATERIAL_COROTATED) corotated_stress(at, p);
  else linear_stress(at, p);
  if (!power) return;
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  volumetric_stress(power, at->c[LAME_VOLUMETRIC], mat_det_of(at->f, cof), cof, p);
}

// Adjoint of material_piola_of, grad_p = dL/dP: grad->f += dP(grad_p), grad->c += <dP/dc, grad_p>.
CQ_INLINE void material_piola_of_adj(const int kind, const MaterialPoint *at, MaterialPoint *grad,
                                     const Real grad_p[CQ_DIM][CQ_DIM]) {
  const int power = material_power(at->law);
  Real dp[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) dp[i][j] = grad_p[i][j] * (real)0;
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) neo_hookean_stress_derivative(at, grad_p, dp);
  if (kind == CQ_MATERIAL_COROTATED) corotated_stress_derivative(at, grad_p, dp);
  if (kind == CQ_MATERIAL_LINEAR) linear_stress_derivative(at, grad_p, dp);
  if (kind == CQ_MATERIAL_NEO_HOOKEAN) neo_hookean_grad_constants(at, grad, grad_p);
  if (kind == CQ_MATERIAL_COROTATED) corotated_grad_constants(at, grad, grad_p);
  if (kind == CQ_MATERIAL_LINEAR) linear_grad_constants(at, grad, grad_p);
  if (power) {
    Real cof[CQ_DIM][CQ_DIM];
    mat_cofactor(at->f, cof);
    const Real e = mat_det_of(at->f, cof) - (real)1;
    volumetric_stress_derivative(power, at->c[LAME_VOLUMETRIC], at->f, grad_p, dp);
    grad->c[LAME_VOLUMETRIC] += (real)power * volumetric_odd_power(e, power) * mat_dot(cof, grad_p);
  }
  EACH(i) EACH(j) grad->f[i][j] += dp[i][j];
}

#if !defined(CQ_LAWS_APART)
#include "laws.inl"
#endif
