// laws: the choice between the laws of materials, by functions that material.inl declares and that are never inlined. A
// law without a fused form is included here alone.
#include "material/saint_venant_kirchhoff.inl"
#include "material/invariants.inl"
#include "material/mooney_rivlin.inl"
#include "material/yeoh.inl"
#include "material/ogden.inl"
#include "material/transversely_isotropic.inl"
#include "material/fluid.inl"
#include "material/hencky.inl"
#include "material/von_mises.inl"
#include "material/drucker_prager.inl"
#include "material/snow.inl"

// A switch over the laws is made from CQ_LAWS. Of a hook that a law need not have, its case holds the call where the
// law's row says `own`, and nothing where it says `none`.
#define CQ_HOOK_own(...) __VA_ARGS__
#define CQ_HOOK_none(...)

// ---- energy density, first Piola-Kirchhoff stress, its derivative ---------------------------------------------------

// The energy density psi of the law of a particle, with the Bonet-Wood term (E10), without Maxwell branches.
CQ_LAW Real law_energy(const MaterialPoint *at) {
  Real psi = at->f[0][0] * (real)0;
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, ...) case CQ_MATERIAL_##ID: psi = law##_energy(at); break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const int power = material_power(at->law);
  if (power) psi += volumetric_energy(power, at->c[LAME_VOLUMETRIC], mat_det(at->f));
  return psi;
}

// Sets p to the first Piola-Kirchhoff stress P = dpsi/dF of the law, with the Bonet-Wood term, without Maxwell
// branches.
CQ_LAW void law_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) p[i][j] = at->f[i][j] * (real)0;
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, ...) case CQ_MATERIAL_##ID: law##_stress(at, p); break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const int power = material_power(at->law);
  if (!power) return;
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  volumetric_stress(power, at->c[LAME_VOLUMETRIC], mat_det_of(at->f, cof), cof, p);
}

// Sets dp to the change of P (law_stress) by a change df of F. Symmetric, <A, dP(B)> = <B, dP(A)>: its own adjoint.
CQ_LAW void law_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM], Real dp[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) dp[i][j] = df[i][j] * (real)0;
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, ...) case CQ_MATERIAL_##ID: law##_stress_derivative(at, df, dp); break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const int power = material_power(at->law);
  if (power) volumetric_stress_derivative(power, at->c[LAME_VOLUMETRIC], at->f, df, dp);
}

// Adds to grad the derivatives of <P, grad_p> by the law's constants (grad->c) and internal variables, P of law_stress.
CQ_LAW void law_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, ...) case CQ_MATERIAL_##ID: law##_grad_constants(at, grad, grad_p); break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const int power = material_power(at->law);
  if (!power) return;
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real e = mat_det_of(at->f, cof) - (real)1;
  grad->c[LAME_VOLUMETRIC] += (real)power * volumetric_odd_power(e, power) * mat_dot(cof, grad_p);
}

// (E55) Adds grad_psi times the derivatives of the energy density by the law's constants, of which there are
// `constants`, and by its internal variables to grad. A law whose energy is linear in its constants needs no code: the
// derivative by one is the energy with that one 1 and the others 0. Another law has LAW_energy_grad.
CQ_LAW void law_energy_grad(const MaterialPoint *at, const int constants, MaterialPoint *grad, const Real grad_psi) {
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, energy_grad, piola_zz, update, meaning) \
  case CQ_MATERIAL_##ID: CQ_HOOK_##energy_grad(law##_energy_grad(at, grad, grad_psi); return;) break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const Real zero = grad_psi * (real)0;
  MaterialPoint unit = *at;
  for (int k = 0; k < CQ_SLOTS_MAX; k++) unit.c[k] = zero;
  for (int k = 0; k < constants; k++) {
    unit.c[k] = zero + (real)1;
    grad->c[k] += grad_psi * law_energy(&unit);
    unit.c[k] = zero;
  }
}

// ---- stress out of the plane ----------------------------------------------------------------------------------------

#if CQ_DIM == 2
// (E52) Sets p to P_zz, the stress out of the plane in plane strain (F_zz = 1), and returns 1; returns 0, and p stays,
// for a law without one: fluid, von Mises, Drucker-Prager.
CQ_LAW int law_piola_zz(const MaterialPoint *at, Real *p) {
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, energy_grad, piola_zz, update, meaning) \
  case CQ_MATERIAL_##ID: CQ_HOOK_##piola_zz(*p = law##_piola_zz(at); break;) return 0;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const int power = material_power(at->law);
  const Real jac = mat_det(at->f);
  if (power) *p += (real)power * at->c[LAME_VOLUMETRIC] * volumetric_odd_power(jac - (real)1, power) * jac;
  return 1;
}

// Adjoint of law_piola_zz: adds grad_p's share to the gradients of F, the constants and, for snow, J_P; nothing for a
// law without P_zz.
CQ_LAW void law_piola_zz_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p) {
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, energy_grad, piola_zz, update, meaning) \
  case CQ_MATERIAL_##ID: CQ_HOOK_##piola_zz(law##_piola_zz_adj(at, grad, grad_p); break;) return;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  const int power = material_power(at->law);
  if (!power) return;
  Real cof[CQ_DIM][CQ_DIM];
  mat_cofactor(at->f, cof);
  const Real jac = mat_det_of(at->f, cof), e = jac - (real)1, even = volumetric_even_power(e, power);
  grad->c[LAME_VOLUMETRIC] += (real)power * grad_p * even * e * jac;
  const Real slope = (real)power * at->c[LAME_VOLUMETRIC] * grad_p * even * ((real)power * jac - (real)1);
  EACH(i) EACH(j) grad->f[i][j] += slope * cof[i][j];
}
#endif

// ---- after the step -------------------------------------------------------------------------------------------------

// After a step: lets the law change F and the internal variables of a particle (return mapping of plastic laws; a fluid
// keeps only J), then relaxes Maxwell branches. In place; on entry at->f is F of the end of the step.
CQ_LAW void material_update(MaterialPoint *at) {
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, energy_grad, piola_zz, update, meaning) \
  case CQ_MATERIAL_##ID: CQ_HOOK_##update(law##_update(at);) break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  if (at->law->branches) maxwell_update(at);
}

// Adjoint of material_update; at: the particle before the update. grad->f and grad->internal: on entry the gradients of
// F and internal variables after the update, on return of those before it. Adds to the gradients of constants.
CQ_LAW void material_update_adj(const MaterialPoint *at, MaterialPoint *grad) {
  switch (at->law->kind) {
#define CQ_LAW_CASE(ID, law, energy_grad, piola_zz, update, meaning) \
  case CQ_MATERIAL_##ID: CQ_HOOK_##update(law##_update_adj(at, grad);) break;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  if (at->law->branches) maxwell_update_adj(at, grad);
}
