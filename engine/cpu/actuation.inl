// actuation: from the signals u and forces of one control step to the actuation numbers of each particle: the stress
// sigma = sum_a w_pa u_a S_a, the force, and pressure times area, which F turns into a force at every engine step; and
// the adjoint. A weight row is one actuator on one chunk: the weights of the chunk's sixteen particles, and the user's
// entries that these weights belong to.

// Returns entry (row, column) of S, the symmetric direction matrix of an actuator [stress at signal 1].
CQ_INLINE double direction_at(const cq_model *m, const int32_t actuator, const int row, const int column) {
  return m->actuator_direction[((int64_t)actuator * CQ_DIM + row) * CQ_DIM + column];
}

// Returns the index of a weight row (the weights of one actuator on the 16 particles of a chunk) of `actuator` that has
// no entry yet for particle `lane`, 0 to 15, of the chunk; appends a row if there is none. first, count: index of the
// chunk's first row, and how many rows it has so far. hint: number within the chunk of the row tried first, the one
// after the last row found, because particles of a chunk mostly list the same actuators in the same order.
static int64_t find_weight_row(cq_scene *s, const int64_t first, int32_t *count, const int32_t hint,
                               const int32_t actuator, const int lane) {
  for (int32_t k = 0, at = hint; k < *count; k++, at++) {
    if (at >= *count) at = 0;
    if (s->row_actuator[first + at] == actuator && s->row_entry[(first + at) * CQ_CHUNK + lane] < 0) return first + at;
  }
  const int64_t weight_row = first + (*count)++;
  s->row_actuator[weight_row] = actuator;
  memset((void *)((real *)s->row_weight + weight_row * CQ_CHUNK), 0, CQ_CHUNK * sizeof(real));
  memset(s->row_entry + weight_row * CQ_CHUNK, -1, CQ_CHUNK * sizeof *s->row_entry);
  return weight_row;
}

// Builds the weight rows (as in find_weight_row) of all chunks in a range of chunks, in the particle order of the live
// state: once after each begin and each sort. The rows of a chunk follow those of the chunk before.
static void make_weight_rows(cq_scene *s, const int32_t range) {
  const cq_model *m = s->model;
  const cq_arrangement *a = s->arrangement;
  int64_t first = (int64_t)s->range_start[range] * s->row_width;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    int32_t count = 0, hint = 0;
    for (int l = 0; l < CQ_CHUNK && a->actuated[c]; l++) {
      const int32_t p = a->order[c * CQ_CHUNK + l];
      for (int64_t k = p < 0 ? 0 : m->actuation_start[p]; p >= 0 && k < m->actuation_start[p + 1]; k++) {
        const int64_t weight_row = find_weight_row(s, first, &count, hint, m->actuation_actuator[k], l);
        ((real *)s->row_weight)[weight_row * CQ_CHUNK + l] = (real)s->values.actuation_weight[m->actuation_entry[k]];
        s->row_entry[weight_row * CQ_CHUNK + l] = m->actuation_entry[k];
        hint = (int32_t)(weight_row - first) + 1;
      }
    }
    s->weight_rows[c] = count;
    first += count;
  }
  s->rows_sorted_at[range] = a->sorted_at;
}

// Sets the components FORCE in `chunk`, the actuation numbers of chunk c, to the forces that the user gives in this
// control step; 0 for particles without one. Cables and chambers add to them later.
static void load_forces(const cq_scene *s, const int32_t c, real *chunk) {
  for (int l = 0; l < CQ_CHUNK; l++) {
    const int32_t p = s->arrangement->order[c * CQ_CHUNK + l],
                  f = p >= 0 && s->forces && s->model->force_of ? s->model->force_of[p] : -1;
    for (int i = 0; i < CQ_DIM; i++) chunk[(FORCE + i) * CQ_CHUNK + l] = (real)(f >= 0 ? s->forces[f * CQ_DIM + i] : 0);
  }
}

// Sets the components PRESSURE in `chunk`, the actuation numbers of chunk c, to the sum of p N A over the surface
// entries of each particle: p the actuator's signal, N A the undeformed area vector. F turns it into a force at every
// engine step.
static void load_pressure(const cq_scene *s, const int32_t c, real *chunk) {
  const cq_surfaces *surfaces = &s->model->surfaces;
  for (int l = 0; l < CQ_CHUNK; l++) {
    const int32_t p = s->arrangement->order[c * CQ_CHUNK + l];
    double sum[CQ_DIM] = {0};
    for (int64_t k = p < 0 ? 0 : surfaces->start[p]; p >= 0 && k < surfaces->start[p + 1]; k++)
      for (int i = 0; i < CQ_DIM; i++) sum[i] += s->signals[surfaces->actuator[k]] * surfaces->area[k * CQ_DIM + i];
    for (int i = 0; i < CQ_DIM; i++) chunk[(PRESSURE + i) * CQ_CHUNK + l] = (real)sum[i];
  }
}

// Adjoint of load_pressure: from the gradients of PRESSURE in `chunk`, adds to the gradients of signals {actuators}.
static void load_pressure_adj(const cq_scene *s, const int32_t c, const real *chunk, double *signals) {
  const cq_surfaces *surfaces = &s->model->surfaces;
  for (int l = 0; l < CQ_CHUNK; l++) {
    const int32_t p = s->arrangement->order[c * CQ_CHUNK + l];
    for (int64_t k = p < 0 ? 0 : surfaces->start[p]; p >= 0 && k < surfaces->start[p + 1]; k++)
      for (int i = 0; i < CQ_DIM; i++)
        signals[surfaces->actuator[k]] +=
            surfaces->area[k * CQ_DIM + i] * (double)s_value(chunk[(PRESSURE + i) * CQ_CHUNK + l]);
  }
}

// Sets s->actuation for a range of chunks: active stress, force, and pressure times area of each particle, from the
// signals and forces of the running control step. Chunks without an actuated particle are skipped.
static void load_actuation(cq_scene *s, int32_t range) {
  const cq_model *m = s->model;
  const cq_arrangement *a = s->arrangement;
  if (s->rows_sorted_at[range] != a->sorted_at) make_weight_rows(s, range);
  int64_t weight_row = (int64_t)s->range_start[range] * s->row_width;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    if (!a->actuated[c]) continue;
    real *chunk = (real *)s->actuation + AT(c, ACTUATION_FIELDS, 0);
    Real sigma[CQ_CHUNK / CQ_LANES][CQ_SYM];
    for (int h = 0; h < CQ_CHUNK / CQ_LANES; h++)
      for (int k = 0; k < CQ_SYM; k++) sigma[h][k] = r_set((real)0);
    for (const int64_t end = weight_row + s->weight_rows[c]; weight_row < end; weight_row++) {
      const int32_t actuator = s->row_actuator[weight_row];
      const real *weight = (const real *)s->row_weight + weight_row * CQ_CHUNK;
      for (int i = 0; i < CQ_DIM; i++)
        for (int j = 0; j <= i; j++) {
          const real stress = (real)(s->signals[actuator] * direction_at(m, actuator, i, j));
          for (int h = 0; h < CQ_CHUNK / CQ_LANES; h++)
            sigma[h][sym_at(i, j)] += stress * r_load(weight + h * CQ_LANES);
        }
    }
    for (int h = 0; h < CQ_CHUNK / CQ_LANES; h++)
      for (int k = 0; k < CQ_SYM; k++) r_store(chunk + (SIGMA + k) * CQ_CHUNK + h * CQ_LANES, sigma[h][k]);
    if ((m->drives & cq_drive_bit(CQ_DRIVE_FORCE)) || m->cables.all) load_forces(s, c, chunk);
    if (a->actuated[c] & cq_drive_bit(CQ_DRIVE_PRESSURE)) load_pressure(s, c, chunk);
  }
}

// Returns the dot product of the 16 numbers x and y of a chunk, in double, summed pairwise, an order that vector
// instructions can keep.
CQ_INLINE double dot_of_chunk(const real *x, const real *y) {
  double part[CQ_CHUNK];
  for (int l = 0; l < CQ_CHUNK; l++) part[l] = (double)s_value(x[l]) * (double)s_value(y[l]);
  for (int width = CQ_CHUNK / 2; width; width /= 2)
    for (int l = 0; l < width; l++) part[l] += part[l + width];
  return part[0];
}

// Adjoint of load_actuation for a range of chunks, which may run beside other ranges: from s->actuation_adj (gradients
// of stresses, forces and pressures) adds to the range's row of s->signals_partial, which sum_signals adds up, to
// s->forces_adj, and to the gradients of actuation weights if they are wanted; then clears s->actuation_adj.
static void load_actuation_adj(cq_scene *s, int32_t range) {
  const cq_model *m = s->model;
  const cq_arrangement *a = s->arrangement;
  const int by_weight = (s->wanted & cq_bit(CQ_FIELD_ACTUATION_WEIGHT)) != 0;
  double *signals = s->signals_partial + (int64_t)range * m->actuator_count;
  if (s->rows_sorted_at[range] != a->sorted_at) make_weight_rows(s, range);
  int64_t weight_row = (int64_t)s->range_start[range] * s->row_width;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    if (!a->actuated[c]) continue;
    real *chunk = (real *)s->actuation_adj + AT(c, ACTUATION_FIELDS, 0);
    for (const int64_t end = weight_row + s->weight_rows[c]; weight_row < end; weight_row++) {
      const int32_t actuator = s->row_actuator[weight_row];
      real along[CQ_CHUNK] __attribute__((aligned(64)));
      for (int h = 0; h < CQ_CHUNK; h += CQ_LANES) {
        Real sum = r_set((real)0);
        for (int i = 0; i < CQ_DIM; i++)
          for (int j = 0; j <= i; j++)
            sum += (real)direction_at(m, actuator, i, j) * r_load(chunk + (SIGMA + sym_at(i, j)) * CQ_CHUNK + h);
        r_store(along + h, sum);
      }
      signals[actuator] += dot_of_chunk((const real *)s->row_weight + weight_row * CQ_CHUNK, along);
      const int64_t *entry = s->row_entry + weight_row * CQ_CHUNK;
      for (int l = 0; l < CQ_CHUNK && by_weight; l++)
        if (entry[l] >= 0) s->gradients.actuation_weight[entry[l]] += s->signals[actuator] * (double)s_value(along[l]);
    }
    for (int l = 0; l < CQ_CHUNK && m->force_of; l++) {
      const int32_t p = a->order[c * CQ_CHUNK + l], f = p >= 0 ? m->force_of[p] : -1;
      for (int i = 0; i < CQ_DIM && f >= 0; i++)
        s->forces_adj[f * CQ_DIM + i] += (double)s_value(chunk[(FORCE + i) * CQ_CHUNK + l]);
    }
    if (a->actuated[c] & cq_drive_bit(CQ_DRIVE_PRESSURE)) load_pressure_adj(s, c, chunk, signals);
    memset((void *)chunk, 0, sizeof(real) * ACTUATION_FIELDS * CQ_CHUNK);
  }
}
