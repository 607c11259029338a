// values: comparing the values that scenes of rollouts begin with.
#include "backend.h"
#include <string.h>

// Have two scenes of a model the same masses, volumes and constants of materials, of all particles? 1 yes, 0 no.
int cq_values_have_same_constants(const cq_model *m, const cq_values *a, const cq_values *b) {
  const uint64_t wanted = cq_constant_bits() | cq_bit(CQ_FIELD_MASS) | cq_bit(CQ_FIELD_VOLUME);
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) {
    const double *one = a->value[f], *other = b->value[f];
    if (!(wanted >> f & 1) || one == other) continue;
    const int64_t count = m->particle_count * (cq_field_describe(f)->rank ? m->dim : 1);
    if (!one || !other || memcmp(one, other, (size_t)count * sizeof *one) != 0) return 0;
  }
  return 1;
}

// Have two scenes of a model the same initial positions of all particles on reference grids, so that these have the
// same undeformed shapes? 1 yes, also without such particles; 0 no, also for a body that is only shifted.
int cq_values_have_same_shapes(const cq_model *m, const cq_values *a, const cq_values *b) {
  const size_t width = (size_t)m->dim;
  if (!cq_is_reference(m) || a->position == b->position) return 1;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const size_t at = (size_t)p * width;
    if (cq_on_reference(m, p) && memcmp(a->position + at, b->position + at, width * sizeof(double)) != 0) return 0;
  }
  return 1;
}
