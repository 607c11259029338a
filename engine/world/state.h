// state: the fields of one time slice, listed once. Everything that allocates, copies, sorts or reads a state goes over
// this list. Widths are in reals for CQ_DIM d.
#ifndef CQ_STATE_H
#define CQ_STATE_H

#include "../base/base.h"

//        name         field                  width
#define CQ_STATE_FIELDS(F)                            \
  F(position,    CQ_FIELD_POSITION,    d)             \
  F(velocity,    CQ_FIELD_VELOCITY,    d)             \
  F(affine,      CQ_FIELD_AFFINE,      d * d)         \
  F(deformation, CQ_FIELD_DEFORMATION, d * d)

// Width of a state field, 0 for another field.
static inline int32_t cq_state_width(int32_t field, int32_t d) {
#define CQ_WIDTH_OF(name, id, width) if (field == id) return width;
  CQ_STATE_FIELDS(CQ_WIDTH_OF)
#undef CQ_WIDTH_OF
  return 0;
}

// Reals of one particle before this field; of a whole particle for CQ_FIELD_COUNT.
static inline int32_t cq_state_offset(int32_t field, int32_t d) {
  int32_t offset = 0;
#define CQ_OFFSET_OF(name, id, width) if (field == id) return offset; offset += width;
  CQ_STATE_FIELDS(CQ_OFFSET_OF)
#undef CQ_OFFSET_OF
  return offset;
}

// What a readout gives of one group, or of one particle of a gather: of all its fields.
static inline int32_t cq_readout_width(int32_t kind, uint32_t fields, int32_t d) {
  int32_t sum = 0;
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++)
    if (fields >> f & 1) sum += cq_state_width(f, d) * (kind == CQ_READOUT_SECOND_MOMENT ? cq_state_width(f, d) : 1);
  return sum;
}

#endif
