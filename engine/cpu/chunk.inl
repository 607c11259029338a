// chunk: 16 particles, field by field: fields of a chunked array, and how a Real of several particles is loaded.

enum {
  X = 0, V = CQ_DIM, C = 2 * CQ_DIM, F = 2 * CQ_DIM + CQ_DIM * CQ_DIM,   // first field of each state quantity
  FIELDS = 2 * CQ_DIM + 2 * CQ_DIM * CQ_DIM,
  MOTION_FIELDS = CQ_DIM + CQ_DIM * CQ_DIM,   // V and C
  LAST = CQ_DIM - 1,     // axis
  SIGMA = 0, FORCE = CQ_SYM, PRESSURE = CQ_SYM + CQ_DIM, ACTUATION_FIELDS = CQ_SYM + 2 * CQ_DIM,
};
#define AT(chunk, fields, field) (((int64_t)(chunk) * (fields) + (field)) * CQ_CHUNK)
#define LANES_EACH(h) for (int h = 0; h < CQ_CHUNK; h += CQ_LANES)

// Returns the address of field number `field` of the particle in `slot` (its index in the sorted order), in an array
// data {chunks, fields, 16}.
CQ_INLINE real *slot_at(real *data, const int32_t fields, const int32_t slot, const int32_t field) {
  return data + AT(slot / CQ_CHUNK, fields, field) + slot % CQ_CHUNK;
}

// Prefetches part number `share`, of CQ_CHUNK parts, of fields [first, first + count) of the chunk that follows
// `chunk`. fields: numbers of a particle in the array. Loops over the 16 particles of a chunk call it once for each:
// all at once, prefetches would delay the loads of the present chunk. Hardware does not foresee that the adjoint reads
// chunks of earlier states.
CQ_INLINE void prefetch_next(const real *chunk, const int fields, const int first, const int count, const int share) {
#if defined(__GNUC__) && !defined(CQ_REAL_DUAL)
  const char *next = (const char *)(chunk + (fields + first) * CQ_CHUNK) + 64 * share;
  CQ_UNROLL for (unsigned k = 0; k < count * CQ_CHUNK * sizeof(real); k += 64 * CQ_CHUNK) __builtin_prefetch(next + k);
#else
  (void)chunk, (void)fields, (void)first, (void)count, (void)share;
#endif
}

// Loads a vector of particles h, h + 1, ... of a chunk, as many as a Real holds. `field` is the number of its first
// component; components lie CQ_CHUNK numbers apart.
CQ_INLINE void load_vector(const real *chunk, const int field, const int h, Real out[CQ_DIM]) {
  EACH(i) out[i] = r_load(chunk + (field + i) * CQ_CHUNK + h);
}
// Loads a matrix of particles h, h + 1, ... of a chunk, as many as a Real holds. `field` is the number of its first
// entry; rows follow each other.
CQ_INLINE void load_matrix(const real *chunk, const int field, const int h, Real out[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) out[i][j] = r_load(chunk + (field + i * CQ_DIM + j) * CQ_CHUNK + h);
}
// Stores a vector of particles h, h + 1, ... of a chunk. `field` is the number of its first component.
CQ_INLINE void store_vector(real *chunk, const int field, const int h, const Real in[CQ_DIM]) {
  EACH(i) r_store(chunk + (field + i) * CQ_CHUNK + h, in[i]);
}
// Stores a matrix of particles h, h + 1, ... of a chunk. `field` is the number of its first entry.
CQ_INLINE void store_matrix(real *chunk, const int field, const int h, const Real in[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) r_store(chunk + (field + i * CQ_DIM + j) * CQ_CHUNK + h, in[i][j]);
}
