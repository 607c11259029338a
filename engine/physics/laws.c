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
// The larger of two numbers, as the laws' functions call it for lanes.
static inline double r_max(double a, double b) { return a > b ? a : b; }
// a where c > 0, else b, as the laws' functions call it for lanes.
static inline double r_pick(double c, double a, double b) { return c > 0 ? a : b; }
#pragma GCC diagnostic ignored "-Wpedantic"   // const of arrays of arrays, as in the kernels
#include "../base/base.h"
#include "../math/real.h"
#include "../math/matrix.inl"
#include "../math/polar.inl"
#include "../math/eigen.inl"
#include "material.inl"

const cq_law *cq_law_of(int32_t kind) {
  switch (kind) {
#define CQ_LAW_CASE(ID, law, ...) case CQ_MATERIAL_##ID: return &law##_law;
    CQ_LAWS(CQ_LAW_CASE)
#undef CQ_LAW_CASE
  }
  return NULL;
}

int cq_law_is_volumetric(const cq_law *law) {
  int found = 0;
  for (int32_t k = 0; k < law->slot_count; k++) found |= law->slot[k] == CQ_SLOT_VOLUMETRIC;
  return found;
}

// Does the row of CQ_LAWS name an update of its own, after a step? 1 yes, 0 no. kind: a cq_material_kind.
static int has_update(int32_t kind) {
  enum { none, own };
#define CQ_LAW_UPDATE(ID, law, energy_grad, piola_zz, update, meaning) update,
  static const int of[CQ_MATERIAL_COUNT] = {CQ_LAWS(CQ_LAW_UPDATE)};
#undef CQ_LAW_UPDATE
  return of[kind];
}

int cq_law_is_hyperelastic(int32_t kind) {
  const cq_law *law = cq_law_of(kind);
  return !has_update(kind) && !law->small_strain && !law->internal_count[1];
}

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

int32_t cq_material_internals(const cq_material *material, int32_t dim) {
  const int32_t branches = material->branches ? (1 + material->branches) * dim * (dim + 1) / 2 : 0;
  return branches + cq_law_of(material->kind)->internal_count[dim == 3];
}

int cq_material_updates(const cq_material *material) { return material->branches || has_update(material->kind); }

cq_status cq_material_check(const cq_material *material, const double *slot, int64_t particle) {
  const cq_law *law = cq_law_of(material->kind);
  return law->check ? law->check(slot + material_extras(material), particle) : CQ_OK;
}

double cq_material_modulus(const cq_material *material, const double *slot) {
  const int32_t extras = material_extras(material);
  double modulus = cq_law_of(material->kind)->modulus(material, slot + extras);
  if (material->branches) modulus += maxwell_modulus(material, slot);
  return modulus;
}
