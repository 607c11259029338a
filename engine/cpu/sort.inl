// sort: where particles are, and moving them into another order.

// Base cells of the slots, {slots, 3}: x, y (0 in 2D), last axis. outside: some position is not in the world, or
// not finite.
static void bases(const cq_scene *s, const cq_slice *in, int32_t chunk_begin, int32_t chunk_end, int32_t *base,
                  int32_t lower[3], int32_t upper[3], int32_t *outside) {
  const cq_model *m = s->model;
  const real *data = (const real *)in->data, inv_dx = (real)(1 / m->dx);
  *outside = 0;
  for (int i = 0; i < 3; i++) {
    lower[i] = INT32_MAX;
    upper[i] = INT32_MIN;
  }
  for (int32_t slot = chunk_begin * CQ_CHUNK; slot < chunk_end * CQ_CHUNK; slot++) {
    int32_t *b = base + 3 * (int64_t)slot;
    b[1] = 0;
    for (int i = 0; i < CQ_DIM; i++) {
      const real x = inv_dx * *slot_at((real *)data, FIELDS, slot, X + i);
      if (!in_world(m, i, x)) {
        *outside = 1;
        return;
      }
      const int axis = i == CQ_DIM - 1 ? 2 : i;
      b[axis] = (int32_t)s_value(s_floor(x - (real)0.5));
      if (b[axis] < lower[axis]) lower[axis] = b[axis];
      if (b[axis] > upper[axis]) upper[axis] = b[axis];
    }
  }
  if (CQ_DIM == 2) lower[1] = upper[1] = 0;
}

// Particles of one order into another.
static void reorder(const cq_scene *s, const void *in, void *out, const cq_arrangement *from, const cq_arrangement *to,
                    int32_t chunk_begin, int32_t chunk_end) {
  real *source = (real *)in;
  for (int32_t c = chunk_begin; c < chunk_end; c++) {
    const real *at[CQ_CHUNK];
    for (int l = 0; l < CQ_CHUNK; l++)
      at[l] = slot_at(source, FIELDS, from->slot[padded_particle(s, to, c * CQ_CHUNK + l)], 0);
    real *chunk = (real *)out + AT(c, FIELDS, 0);
    for (int f = 0; f < FIELDS; f++)
      for (int l = 0; l < CQ_CHUNK; l++) chunk[f * CQ_CHUNK + l] = at[l][f * CQ_CHUNK];
  }
}
