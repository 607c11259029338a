// law: the properties of a material law that the engine needs beside its formulas. Each file of a law in this folder
// defines one cq_law.
#ifndef CQ_LAW_H
#define CQ_LAW_H

#include "../../cq.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CQ_SLOTS_MAX = 16,         // constants of a material
  // constants beside those of a law: a viscosity, and two for each Maxwell branch
  CQ_EXTRAS_MAX = 1 + 2 * CQ_BRANCHES_MAX,
  CQ_INTERNALS_MAX = 24,     // internal variables of a particle
};

// A slot is a constant as the formulas have it. Most slots are a field that scripts set; Lame's constants,
// and the modulus of the Bonet-Wood term, come from two fields of the elasticity that the material is
// given by (world/constants.c).
enum { CQ_SLOT_MU = -1, CQ_SLOT_LAMBDA = -2, CQ_SLOT_VOLUMETRIC = -3 };

typedef struct cq_law {
  const char *name;                      // that of the constructor in Lua
  int32_t slot_count;
  int32_t slot[CQ_SLOTS_MAX];            // cq_field of each, or CQ_SLOT_MU, CQ_SLOT_LAMBDA, CQ_SLOT_VOLUMETRIC
  int32_t internal_count[2];             // internal variables of a particle in 2D and in 3D
  double internal_start;                 // their value at the start
  // 1: the stress changes if the body turns, so no Maxwell branch can stand beside the law
  int32_t small_strain;
  // Upper bound on rho c^2 for waves about the state at rest [stress], from the slots.
  double (*modulus)(const cq_material *material, const double *slot);
  // cq_material_check from the law's slots; NULL: constants that keep their bounds are good. The particle is counted
  // from 1, as the sentence names it.
  cq_status (*check)(const double *slot, int64_t particle);
} cq_law;

// NULL for a kind that there is none of.
const cq_law *cq_law_of(int32_t kind);

int cq_law_is_volumetric(const cq_law *law);     // it may have the Bonet-Wood term
int cq_law_is_hyperelastic(int32_t kind);        // of finite strain: Maxwell branches may stand beside it

// The slots of a material: viscosity and Maxwell branches first (material_extras), then those of the law. Returns how
// many.
int32_t cq_material_slots(const cq_material *material, int32_t slot[CQ_SLOTS_MAX]);
int32_t cq_material_internals(const cq_material *material, int32_t dim);   // internal variables of a particle
// Do F or the internal variables change after the step (material_update)?
int cq_material_updates(const cq_material *material);
// Are the constants of a particle good together? From all slots of the material; else a sentence.
cq_status cq_material_check(const cq_material *material, const double *slot, int64_t particle);
// Upper bound on rho c^2 for waves about the state at rest [stress], from all slots of the material.
double cq_material_modulus(const cq_material *material, const double *slot);

#ifdef __cplusplus
}
#endif

#endif
