// constants: from the fields that scripts set to the slots that the laws of materials work with, and back.
#ifndef CQ_CONSTANTS_H
#define CQ_CONSTANTS_H

#include "../physics/material/law.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sets slot to the constants of a particle as the formulas of its material take them, from value[field], the user's
// arrays of all fields of particles.
void cq_constants_of(const cq_model *model, const double *const *value, int64_t particle, double slot[CQ_SLOTS_MAX]);

// Adds the gradient of a field at a particle to grad, {1} or {dim}, from the gradients of its slots; nothing where its
// material has no such constant.
void cq_constants_adj(const cq_model *model, const double *const *value, int64_t particle, int32_t field, double *grad,
                      const double grad_slot[CQ_SLOTS_MAX]);

// CQ_OK if the laws of all particles allow their constants, else CQ_INVALID and a sentence. value: as cq_constants_of.
cq_status cq_constants_check(const cq_model *model, const double *const *value);

// Is the field a constant of the material? 1 yes, 0 no.
int cq_material_takes(const cq_material *material, int32_t field);

// CQ_OK if a value of a field is within its bounds, else CQ_INVALID and a sentence: "young[3] is -1; ...". index: from
// 0, of the value.
cq_status cq_field_check(int32_t field, const char *name, int64_t index, double value);

#ifdef __cplusplus
}
#endif

#endif
