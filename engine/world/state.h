// state: the fields of one time slice, which are the first of lists.h. Everything that allocates, copies, sorts or
// reads a state goes over them. Widths are in reals for CQ_DIM d.
#ifndef CQ_STATE_H
#define CQ_STATE_H

#include "../base/base.h"

enum { CQ_STATE_FIELD_COUNT = CQ_FIELD_VOLUME };   // they come first in cq_field

// Numbers of a state field of a particle in d dimensions; 0 for a field that is not of the state.
static inline int32_t cq_state_width(int32_t field, int32_t d) {
  static const int32_t rank[] = {
#define CQ_RANK_OF(ID, name, rank, unit, bounds, value, meaning) rank,
      CQ_STATE_FIELDS(CQ_RANK_OF)
#undef CQ_RANK_OF
  };
  if (field < 0 || field >= CQ_STATE_FIELD_COUNT) return 0;
  return rank[field] == 2 ? d * d : d;
}

// Where a state field begins among the numbers of a particle in d dimensions: x, v, C and F stand one after another.
// For CQ_STATE_FIELD_COUNT: how many numbers there are in all.
static inline int32_t cq_state_offset(int32_t field, int32_t d) {
  int32_t offset = 0;
  for (int32_t f = 0; f < field; f++) offset += cq_state_width(f, d);
  return offset;
}

// How many numbers a quantity of readouts, a state field or a derived one, has for one particle in d dimensions; 0 for
// an unknown one.
static inline int32_t cq_quantity_width(int32_t quantity, int32_t d) {
  static const int32_t rank[] = {
#define CQ_RANK_OF(ID, name, rank, unit, meaning) rank,
      CQ_READOUTS(CQ_RANK_OF)
#undef CQ_RANK_OF
  };
  if (quantity < CQ_STATE_FIELD_COUNT || quantity >= CQ_QUANTITY_COUNT) return cq_state_width(quantity, d);
  switch (rank[quantity - CQ_STATE_FIELD_COUNT]) {
    case 0: return 1;
    case 1: return d;
    case 2: return d * d;
    default: return d == 2 ? 1 : 3;
  }
}

// How many numbers a readout gives for each group, or for each particle if kind is CQ_READOUT_GATHER: the sum of the
// widths of its quantities, a bit of `fields` for each; squared widths for second moments.
static inline int32_t cq_readout_width(int32_t kind, uint32_t fields, int32_t d) {
  int32_t sum = 0;
  for (int32_t q = 0; q < CQ_QUANTITY_COUNT; q++)
    if (fields >> q & 1)
      sum += cq_quantity_width(q, d) * (kind == CQ_READOUT_SECOND_MOMENT ? cq_quantity_width(q, d) : 1);
  return sum;
}

#endif
