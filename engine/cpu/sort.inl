// sort: finds the base nodes of particles, and moves arrays of particles into the sorted order.

// Writes the lanes of x, which are whole numbers, to out as int32_t.
CQ_INLINE void integer_store(int32_t *out, const Real x) {
#if CQ_LANES == 1
  *out = (int32_t)s_value(x);
#else
  typedef int32_t Ints __attribute__((vector_size(CQ_LANES * 4), may_alias, aligned(4)));
  *(Ints *)out = __builtin_convertvector(x, Ints);
#endif
}

// The smaller of a and b, lane by lane.
CQ_INLINE Real r_min(const Real a, const Real b) { return r_pick(b - a, a, b); }

// First pass of a sort: sets s->base, the base nodes (lowest nodes of the stencils), of all slots in chunks
// [chunk_begin, chunk_end) of the state `in`, and found: their bounding box, and outside 1: a position is outside the
// world or not finite.
static void find_bases(const cq_scene *s, const cq_slice *in, int32_t chunk_begin, int32_t chunk_end,
                       cq_partial *found) {
  const real *data = (const real *)in->data, inv_dx = (real)(1 / s->model->dx);
  Real poison = r_set((real)0);
  found->outside = 0;
  found->lower[1] = found->upper[1] = 0;
  for (int i = 0; i < CQ_DIM; i++) {
    const int axis = i == CQ_DIM - 1 ? 2 : i;
    Real low = inv_dx * r_load(data + AT(chunk_begin, FIELDS, X + i)), high = low;
    Real first = r_floor(low - (real)0.5), last = first;
    for (int32_t c = chunk_begin; c < chunk_end; c++)
      LANES_EACH(h) {
        const Real x = inv_dx * r_load(data + AT(c, FIELDS, X + i) + h), base = r_floor(x - (real)0.5);
        low = r_min(low, x);
        high = r_max(high, x);
        first = r_min(first, base);
        last = r_max(last, base);
        poison += (real)0 * x;   // stays zero unless something is not finite
        integer_store(s->base + AT(c, 3, axis) + h, base);
      }
    found->lower[axis] = (int32_t)s_value(r_smallest(first));
    found->upper[axis] = (int32_t)s_value(r_largest(last));
    if (!in_world(s->model, i, r_smallest(low)) || !in_world(s->model, i, r_largest(high))) found->outside = 1;
  }
  if (!r_finite(poison)) found->outside = 1;
}

// ---- into another order ---------------------------------------------------------------------------------------------

#if CQ_LANES == 16
// the old chunks that particles of a new chunk come from: from[k] fills lanes[k]; slots {16}: old slot of each lane
typedef struct {
  int count;
  __m512i slots;
  const real *from[CQ_CHUNK];
  __mmask16 lanes[CQ_CHUNK];
} Merged;

// Sets fields [first, first + fields), at most four, of the new chunk `to`, by permuting lanes of the old chunks in m.
CQ_INLINE void merge_chunks(real *to, const Merged *m, const int first, const int fields) {
  __m512 out[4];
  for (int f = 0; f < fields; f++) out[f] = _mm512_setzero_ps();
  for (int k = 0; k < m->count; k++)
    for (int f = 0; f < fields; f++)
      out[f] = _mm512_mask_permutexvar_ps(out[f], m->lanes[k], m->slots,
                                          _mm512_load_ps(m->from[k] + (first + f) * CQ_CHUNK));
  for (int f = 0; f < fields; f++) _mm512_store_ps(to + (first + f) * CQ_CHUNK, out[f]);
}
#endif

// Sets one chunk of a reordered array with `fields` numbers a particle: slot l gets the numbers of old slot source[l]
// of data. Sources lie in few chunks, since the order changes little.
CQ_INLINE void take_chunk(real *to, const real *data, const int32_t source[CQ_CHUNK], const int fields) {
#if CQ_LANES == 16
  Merged m;
  m.count = 0;
  m.slots = _mm512_loadu_si512(source);
  const __m512i chunks = _mm512_srli_epi32(m.slots, 4);
  for (uint32_t left = 0xffff; left; left &= ~(uint32_t)m.lanes[m.count++]) {
    const int32_t chunk = source[__builtin_ctz(left)] / CQ_CHUNK;
    m.lanes[m.count] = _mm512_cmpeq_epi32_mask(chunks, _mm512_set1_epi32(chunk));
    m.from[m.count] = data + AT(chunk, fields, 0);
  }
  int f = 0;
  for (; f + 4 <= fields; f += 4) merge_chunks(to, &m, f, 4);
  for (; f < fields; f++) merge_chunks(to, &m, f, 1);
#else
  // eight at a time: as many pointers as there are registers for
  for (int h = 0; h < CQ_CHUNK; h += 8) {
    const real *from[8];
    for (int l = 0; l < 8; l++) from[l] = slot_at((real *)data, fields, source[h + l], 0);
    for (int f = 0; f < fields; f++)
      for (int l = 0; l < 8; l++) to[f * CQ_CHUNK + h + l] = from[l][f * CQ_CHUNK];
  }
#endif
}

// Copies an array with `fields` numbers a particle from the old order to the new one, for chunks [chunk_begin,
// chunk_end) of the new one: each slot gets the old slot s->source[slot].
static void reorder(const cq_scene *s, const void *in, void *out, int32_t fields, int32_t chunk_begin,
                    int32_t chunk_end) {
  if (fields == FIELDS) {   // a number that the compiler knows
    for (int32_t c = chunk_begin; c < chunk_end; c++)
      take_chunk((real *)out + AT(c, FIELDS, 0), (const real *)in, s->source + c * CQ_CHUNK, FIELDS);
    return;
  }
  for (int32_t c = chunk_begin; c < chunk_end; c++)
    take_chunk((real *)out + AT(c, fields, 0), (const real *)in, s->source + c * CQ_CHUNK, fields);
}

// Copies constants, materials and drives of particles from the old arrangement `from` to the new one, by s->source, for
// chunks [chunk_begin, chunk_end) of the new one. Padding slots get no mass and no volume.
static void reorder_params(const cq_scene *s, const cq_arrangement *from, cq_arrangement *to, int32_t chunk_begin,
                           int32_t chunk_end) {
  // writes of bytes may alias anything; they go to arrays on the stack, so that loads stay out of the loop
  const uint8_t *material = from->material, *slot_actuated = from->slot_actuated;
  for (int32_t c = chunk_begin; c < chunk_end; c++) {
    const int32_t *source = s->source + c * CQ_CHUNK;
    take_chunk((real *)to->params + AT(c, s->params, 0), (const real *)from->params, source, s->params);
    uint8_t kind[CQ_CHUNK], actuation[CQ_CHUNK], actuated = 0;
    uint32_t materials = 0;
    for (int l = 0; l < CQ_CHUNK; l++) {
      kind[l] = material[source[l]];
      actuation[l] = slot_actuated[source[l]];
      materials |= 1u << kind[l];
      actuated |= actuation[l];
    }
    memcpy(to->material + c * CQ_CHUNK, kind, sizeof kind);
    memcpy(to->slot_actuated + c * CQ_CHUNK, actuation, sizeof actuation);
    to->materials[c] = materials;
    to->actuated[c] = actuated;
  }
  // padding slots copy the last particle, but without mass and volume
  for (int32_t slot = cq_scene_spatial_end(s); slot < chunk_end * CQ_CHUNK; slot++) {
    *slot_at((real *)to->params, s->params, slot, CQ_PARAM_MASS) = (real)0;
    *slot_at((real *)to->params, s->params, slot, CQ_PARAM_VOLUME) = (real)0;
  }
}
