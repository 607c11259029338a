// The table of laws, and the functions of them that the host calls in double.
#include <math.h>
#include <stddef.h>

#define CQ_DIM 3
#define CQ_LAW_TABLE
typedef double real, Real;
#define r_sqrt sqrt
#define r_log log
#define r_exp exp
#define r_abs fabs
// The larger of two numbers: r_max of math/real.h for a scalar, with which the law files are compiled here.
static inline double r_max(double a, double b) { return a > b ? a : b; }
// a where c > 0, else b: r_pick of math/real.h for a scalar, with which the law files are compiled here.
static inline double r_pick(double c, double a, double b) { return c > 0 ? a : b; }
#pragma GCC diagnostic ignored "-Wpedantic"   // const of arrays of arrays, as in the kernels
#include "../base/base.h"
#include "../math/real.h"
#include "../math/matrix.inl"
#include "../math/polar.inl"
#include "../math/eigen.inl"
#include "material.inl"

// The law of a kind of material (cq_material_kind); NULL if there is no such kind.
const cq_law *cq_law_of(int32_t kind) {
  switch (kind) {
#define CQ_LAW_CASE(ID, law, ...) case CQ_MATERIAL_##ID: return &law##_law;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  return NULL;
}

// Has the law a slot for the modulus of the Bonet-Wood term (E10)? 1 yes, 0 no.
int cq_law_is_volumetric(const cq_law *law) {
  int found = 0;
  for (int32_t k = 0; k < law->slot_count; k++) found |= law->slot[k] == CQ_SLOT_VOLUMETRIC;
  return found;
}

// Does the law of a kind (cq_material_kind) change F or internal variables after a step? 1 yes, 0 no: as its row of
// CQ_LAWS says.
static int has_update(int32_t kind) {
  enum { none, own };
#define CQ_LAW_UPDATE(ID, law, energy_grad, piola_zz, update, meaning) update,
  static const int of[CQ_MATERIAL_COUNT] = {CQ_LAWS(CQ_LAW_UPDATE)};
#undef CQ_LAW_UPDATE
  return of[kind];
}

// Is the law of a kind (cq_material_kind) elastic at finite strain, so that Maxwell branches may stand beside it? 1
// yes, 0 no.
int cq_law_is_hyperelastic(int32_t kind) {
  const cq_law *law = cq_law_of(kind);
  return !has_update(kind) && !law->small_strain && !law->internal_count[1];
}

// Sets slot to the constants that a material has, each a cq_field or CQ_SLOT_...: viscosity and Maxwell branches first
// (material_extras), then those of the law. Returns how many there are. Arrays of a material's constants have this
// order.
int32_t cq_material_slots(const cq_material *material, int32_t slot[CQ_SLOTS_MAX]) {
  static const int32_t branch[2 * CQ_BRANCHES_MAX] = {CQ_FIELD_BRANCH_MODULUS_1, CQ_FIELD_RELAXATION_TIME_1,
                                                      CQ_FIELD_BRANCH_MODULUS_2, CQ_FIELD_RELAXATION_TIME_2,
                                                      CQ_FIELD_BRANCH_MODULUS_3, CQ_FIELD_RELAXATION_TIME_3};
  const cq_law *law = cq_law_of(material->kind);
  int32_t count = 0;
  if (material->viscous) slot[count++] = CQ_FIELD_VISCOSITY;
  for (int32_t k = 0; k < 2 * material->branches && k < 2 * CQ_BRANCHES_MAX; k++) slot[count++] = branch[k];
  for (int32_t k = 0; k < law->slot_count; k++) slot[count++] = law->slot[k];
  return count;
}

// The number of internal variables of a particle of this material in `dim` dimensions: those of its Maxwell branches
// and of its law.
int32_t cq_material_internals(const cq_material *material, int32_t dim) {
  const int32_t branches = material->branches ? (1 + material->branches) * dim * (dim + 1) / 2 : 0;
  return branches + cq_law_of(material->kind)->internal_count[dim == 3];
}

// Does the material change F or internal variables after a step, by its law or by Maxwell branches (material_update)? 0
// no, another number yes.
int cq_material_updates(const cq_material *material) { return material->branches || has_update(material->kind); }

// CQ_OK if the constants of a particle are allowed together, else CQ_INVALID and a sentence that names the particle.
// slot: values of all constants, in the order of cq_material_slots; particle: its number from 1.
cq_status cq_material_check(const cq_material *material, const double *slot, int64_t particle) {
  const cq_law *law = cq_law_of(material->kind);
  return law->check ? law->check(slot + material_extras(material), particle) : CQ_OK;
}

// Upper bound on rho c^2 for waves about the state at rest [stress], for the Courant number. slot: values of all
// constants, in the order of cq_material_slots.
double cq_material_modulus(const cq_material *material, const double *slot) {
  const int32_t extras = material_extras(material);
  double modulus = cq_law_of(material->kind)->modulus(material, slot + extras);
  if (material->branches) modulus += maxwell_modulus(material, slot);
  return modulus;
}
