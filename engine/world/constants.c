// constants: the fields of the lists with their bounds, and the way from fields to slots of a law and back.
#include "constants.h"
#include "../physics/lame.h"
#include <math.h>

// ---- the list of fields ---------------------------------------------------------------------------------------------

#define ANY -INFINITY, INFINITY, 0
#define POSITIVE 0, INFINITY, 0
#define FROM_ZERO 0, INFINITY, 1
#define BETWEEN(a, b) a, b, 0
#define STATE_ROW(ID, name, rank, unit, bounds, value, meaning)                                                        \
  {#name, unit, meaning, CQ_OWNER_STATE, rank, bounds, value},
#define PARTICLE_ROW(ID, name, rank, unit, bounds, value, meaning)                                                     \
  {#name, unit, meaning, CQ_OWNER_PARTICLE, rank, bounds, value},
#define CONSTANT_ROW(ID, name, rank, unit, bounds, value, meaning)                                                     \
  {#name, unit, meaning, CQ_OWNER_CONSTANT, rank, bounds, value},
#define ENTRY_ROW(ID, name, rank, unit, bounds, value, meaning)                                                        \
  {#name, unit, meaning, CQ_OWNER_ENTRY, rank, bounds, value},
#define CABLE_ROW(ID, name, rank, unit, bounds, value, meaning)                                                        \
  {#name, unit, meaning, CQ_OWNER_CABLE, rank, bounds, value},
#define WORLD_ROW(ID, name, rank, unit, bounds, value, meaning) \
  {#name, unit, meaning, CQ_FIELD_##ID <= CQ_FIELD_DAMPING ? CQ_OWNER_WORLD : CQ_OWNER_WALL, rank, bounds, value},

// sets of fields are sums of powers of two in Lua's numbers
_Static_assert(CQ_FIELD_COUNT <= 53, "more fields than a double has bits");

// The name, unit, meaning, rank and bounds of a field (CQ_FIELD_...); NULL for an unknown one.
const cq_field_info *cq_field_describe(int32_t field) {
  static const cq_field_info info[CQ_FIELD_COUNT] = {CQ_STATE_FIELDS(STATE_ROW) CQ_PARTICLE_FIELDS(PARTICLE_ROW)
                                                         CQ_CONSTANT_FIELDS(CONSTANT_ROW) CQ_ENTRY_FIELDS(ENTRY_ROW)
                                                             CQ_CABLE_FIELDS(CABLE_ROW) CQ_WORLD_FIELDS(WORLD_ROW)};
  return field >= 0 && field < CQ_FIELD_COUNT ? &info[field] : NULL;
}

// [lame][incompressible][branches]: a cq_law_info for each combination of these; cq_law_describe picks that of the law
#define LAW_INFO(law, meaning, lame)                                                                                   \
  {                                                                                                                    \
    {{#law, meaning, lame, 0, 0}, {#law, meaning, lame, 0, 1}}, {                                                      \
      {#law, meaning, lame, 1, 0}, { #law, meaning, lame, 1, 1 }                                                       \
    }                                                                                                                  \
  }
#define LAW_ROW(ID, law, energy_grad, across, update, meaning) \
  {LAW_INFO(law, meaning, 0), LAW_INFO(law, meaning, 1)},

// The name and the properties of a kind of law (cq_material_kind); NULL for an unknown one.
const cq_law_info *cq_law_describe(int32_t kind) {
  static const cq_law_info info[CQ_MATERIAL_COUNT][2][2][2] = {CQ_LAWS(LAW_ROW)};
  const cq_law *law = cq_law_of(kind);
  return law ? &info[kind][law->slot[0] == CQ_SLOT_MU][cq_law_is_volumetric(law)][cq_law_is_hyperelastic(kind)] : NULL;
}

// CQ_OK if a value of a field is finite and within its bounds, else CQ_INVALID and a sentence: "young[3] is -1; ...".
// name: of the field, for the sentence; index: of the value, from 0.
cq_status cq_field_check(int32_t field, const char *name, int64_t index, double value) {
  const cq_field_info *info = cq_field_describe(field);
  const long long k = index + 1;   // users count from 1
  if (!isfinite(value)) return cq_fail(CQ_INVALID, "%s[%lld] is %g; every number must be finite", name, k, value);
  if (value > info->lower && value < info->upper) return CQ_OK;
  if (info->closed && value == info->lower) return CQ_OK;
  if (info->upper < INFINITY)
    return cq_fail(CQ_INVALID, "%s[%lld] is %g; it must be %s %g and below %g", name, k, value,
                   info->closed ? "at least" : "above", info->lower, info->upper);
  if (info->lower == 0)
    return cq_fail(CQ_INVALID, "%s[%lld] is %g; it must %s", name, k, value,
                   info->closed ? "not be negative" : "be positive");
  return cq_fail(CQ_INVALID, "%s[%lld] is %g; it must be %s %g", name, k, value, info->closed ? "at least" : "above",
                 info->lower);
}

// ---- slots ----------------------------------------------------------------------------------------------------------

// Sets field to the two fields by which the user gives the elasticity of a material: Young's modulus and Poisson's
// ratio, or shear and bulk modulus.
static void elasticity_fields(const cq_material *material, int32_t field[2]) {
  const int moduli = material->elasticity == CQ_ELASTICITY_SHEAR_BULK;
  field[0] = moduli ? CQ_FIELD_SHEAR : CQ_FIELD_YOUNG;
  field[1] = moduli ? CQ_FIELD_BULK : CQ_FIELD_POISSON;
}

// Sets lame to Lamé's mu and lambda of a particle and the modulus of the Bonet-Wood term [stress], from the two
// constants that its material is given by. value[field]: the user's arrays.
static void lame_of(const cq_material *material, const double *const *value, int64_t particle, double lame[3]) {
  int32_t field[2];
  elasticity_fields(material, field);
  const double a = value[field[0]][particle], b = value[field[1]][particle];
  if (material->elasticity == CQ_ELASTICITY_SHEAR_BULK)
    cq_lame_of_moduli(a, b, &lame[0], &lame[1], &lame[2]);
  else
    cq_lame(a, b, &lame[0], &lame[1], &lame[2]);
}

// The index of a particle's value of slot number `slot` (from 0) in the array of the slot's field; -1 if it has none.
// slots: the field of each slot. A vector takes as many slots as it has components in 3D.
static int64_t place_of(const cq_model *m, const int32_t *slots, int32_t slot, int64_t particle) {
  if (!cq_field_describe(slots[slot])->rank) return particle;
  int32_t component = 0;
  for (int32_t k = 0; k < slot; k++) component += slots[k] == slots[slot];
  return component < m->dim ? particle * m->dim + component : -1;
}

// Sets slot to the constants of a particle as the formulas of its material take them, from value[field], the user's
// arrays of all fields of particles.
void cq_constants_of(const cq_model *m, const double *const *value, int64_t particle, double slot[CQ_SLOTS_MAX]) {
  const cq_material *material = &m->materials[m->material[particle]];
  int32_t of[CQ_SLOTS_MAX];
  const int32_t count = cq_material_slots(material, of);
  double lame[3] = {0};
  for (int32_t k = 0; k < CQ_SLOTS_MAX; k++) {
    slot[k] = 0;
    if (k >= count) continue;
    if (of[k] == CQ_SLOT_MU) lame_of(material, value, particle, lame);
    if (of[k] < 0) {
      slot[k] = lame[-1 - of[k]];
      continue;
    }
    const int64_t at = place_of(m, of, k, particle);
    if (at >= 0) slot[k] = value[of[k]][at];
  }
}

// CQ_OK if the laws of all particles allow their constants together, else CQ_INVALID and a sentence. value[field]: the
// user's arrays of all fields of particles.
cq_status cq_constants_check(const cq_model *m, const double *const *value) {
  int32_t checked = 0;
  for (int32_t k = 0; k < m->material_count; k++) checked += cq_law_of(m->materials[k].kind)->check != NULL;
  for (int64_t p = 0; checked && p < m->particle_count; p++) {
    double slot[CQ_SLOTS_MAX];
    cq_constants_of(m, value, p, slot);
    const cq_status status = cq_material_check(&m->materials[m->material[p]], slot, p + 1);
    if (status) return status;
  }
  return CQ_OK;
}

// Adds the gradient of a field at a particle to grad, {1} or {dim}, from the gradients of its slots; nothing where its
// material has no such constant. value[field]: the user's arrays.
void cq_constants_adj(const cq_model *m, const double *const *value, int64_t particle, int32_t field, double *grad,
                      const double grad_slot[CQ_SLOTS_MAX]) {
  const cq_material *material = &m->materials[m->material[particle]];
  int32_t of[CQ_SLOTS_MAX], from[2], component = 0;
  const int32_t count = cq_material_slots(material, of);
  double lame[3] = {0}, pair[2] = {0};
  elasticity_fields(material, from);
  for (int32_t k = 0; k < count; k++) {
    if (of[k] < 0) lame[-1 - of[k]] = grad_slot[k];
    if (of[k] == field && place_of(m, of, k, particle) >= 0) grad[component++] += grad_slot[k];
  }
  if (cq_law_of(material->kind)->slot[0] != CQ_SLOT_MU || (field != from[0] && field != from[1])) return;
  const double a = value[from[0]][particle], b = value[from[1]][particle];
  if (material->elasticity == CQ_ELASTICITY_SHEAR_BULK)
    cq_lame_of_moduli_adj(a, b, pair, lame);
  else
    cq_lame_adj(a, b, pair, lame);
  grad[0] += pair[field == from[1]];
}

// Sets fields to the fields (CQ_FIELD_...) of the constants of a material, at most `most` of them; returns how many the
// material has, even if more than `most`.
int32_t cq_material_fields(const cq_material *material, int32_t *fields, int32_t most) {
  int32_t of[CQ_SLOTS_MAX], count = 0, from[2];
  const int32_t slots = cq_law_of(material->kind) ? cq_material_slots(material, of) : 0;
  elasticity_fields(material, from);
  for (int32_t k = 0; k < slots; k++) {
    const int32_t slot = of[k];
    if (slot == CQ_SLOT_VOLUMETRIC) continue;
    if (k && slot >= 0 && slot == of[k - 1]) continue;   // another component of a vector
    const int32_t field = slot >= 0 ? slot : from[slot == CQ_SLOT_LAMBDA];
    if (count < most) fields[count] = field;
    count++;
  }
  return count;
}

// Is the field a constant of the material? 1 yes, 0 no.
int cq_material_takes(const cq_material *material, int32_t field) {
  int32_t fields[CQ_SLOTS_MAX];
  const int32_t count = cq_material_fields(material, fields, CQ_SLOTS_MAX);
  for (int32_t k = 0; k < count; k++)
    if (fields[k] == field) return 1;
  return 0;
}
