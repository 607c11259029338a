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

// The law of a kind of material (cq_material_kind); NULL if there is no such kind.
const cq_law *cq_law_of(int32_t kind);

// Has the law a slot for the modulus of the Bonet-Wood term (E10)? 1 yes, 0 no.
int cq_law_is_volumetric(const cq_law *law);
// Is the law of a kind elastic at finite strain, so that Maxwell branches may stand beside it? 1 yes, 0 no.
int cq_law_is_hyperelastic(int32_t kind);

// Sets slot to the constants that a material has, each a cq_field or CQ_SLOT_...: viscosity and Maxwell branches first
// (material_extras), then those of the law. Returns how many there are.
int32_t cq_material_slots(const cq_material *material, int32_t slot[CQ_SLOTS_MAX]);
// The number of internal variables of a particle, in `dim` dimensions: those of Maxwell branches and of the law.
int32_t cq_material_internals(const cq_material *material, int32_t dim);
// Do F or the internal variables of a material change after a step (material_update)? 0 no, another number yes.
int cq_material_updates(const cq_material *material);
// CQ_OK if the constants of a particle are allowed together, else CQ_INVALID and a sentence that names the particle.
// slot: values of all constants, in the order of cq_material_slots; particle: its number from 1.
cq_status cq_material_check(const cq_material *material, const double *slot, int64_t particle);
// Upper bound on rho c^2 for waves about the state at rest [stress], from all slots of the material.
double cq_material_modulus(const cq_material *material, const double *slot);

#ifdef __cplusplus
}
#endif

#endif
