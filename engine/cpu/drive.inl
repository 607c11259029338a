// drive: what the controls of one control step make of each particle, sigma = sum_a w_pa u_a S_a and a force, and back.

// packed entry k of the symmetric direction of an actuator; a pair counts once, as sigma has it once
CQ_INLINE double direction_at(const cq_model *m, const int32_t actuator, const int row, const int column) {
  return m->actuator_direction[((int64_t)actuator * CQ_DIM + row) * CQ_DIM + column];
}

static void load_drive(const cq_scene *s, int32_t range) {
  const cq_model *m = s->model;
  const cq_arrangement *a = s->arrangement;
  real *data = (real *)s->drive;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    if (!a->driven[c]) continue;
    real *chunk = data + AT(c, DRIVES, 0);
    memset((void *)chunk, 0, sizeof(real) * DRIVES * CQ_CHUNK);
    for (int l = 0; l < CQ_CHUNK; l++) {
      const int32_t p = a->order[c * CQ_CHUNK + l];
      if (p < 0) continue;
      for (int64_t k = m->actuation_start[p]; k < m->actuation_start[p + 1]; k++) {
        const int32_t actuator = m->actuation_actuator[k];
        const double amount = s->values.actuation_weight[m->actuation_entry[k]] * s->signals[actuator];
        for (int i = 0; i < CQ_DIM; i++)
          for (int j = 0; j <= i; j++)
            chunk[(SIGMA + sym_at(i, j)) * CQ_CHUNK + l] += (real)(amount * direction_at(m, actuator, i, j));
      }
      const int32_t f = m->force_of && s->forces ? m->force_of[p] : -1;
      for (int i = 0; i < CQ_DIM && f >= 0; i++) chunk[(FORCE + i) * CQ_CHUNK + l] = (real)s->forces[f * CQ_DIM + i];
    }
  }
}

// drive_adj of one range to weights, forces and this range's signals_partial; drive_adj is cleared
static void drive_adj(cq_scene *s, int32_t range) {
  const cq_model *m = s->model;
  const cq_arrangement *a = s->arrangement;
  real *data = (real *)s->drive_adj;
  double *signals = s->signals_partial + (int64_t)range * m->actuator_count;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    if (!a->driven[c]) continue;
    real *chunk = data + AT(c, DRIVES, 0);
    for (int l = 0; l < CQ_CHUNK; l++) {
      const int32_t p = a->order[c * CQ_CHUNK + l];
      if (p < 0) continue;
      for (int64_t k = m->actuation_start[p]; k < m->actuation_start[p + 1]; k++) {
        const int32_t actuator = m->actuation_actuator[k];
        const int64_t entry = m->actuation_entry[k];
        double along = 0;
        for (int i = 0; i < CQ_DIM; i++)
          for (int j = 0; j <= i; j++)
            along += (double)s_value(chunk[(SIGMA + sym_at(i, j)) * CQ_CHUNK + l]) * direction_at(m, actuator, i, j);
        signals[actuator] += s->values.actuation_weight[entry] * along;
        s->gradients.actuation_weight[entry] += s->signals[actuator] * along;
      }
      const int32_t f = m->force_of ? m->force_of[p] : -1;
      for (int i = 0; i < CQ_DIM && f >= 0; i++)
        s->forces_adj[f * CQ_DIM + i] += (double)s_value(chunk[(FORCE + i) * CQ_CHUNK + l]);
    }
    memset((void *)chunk, 0, sizeof(real) * DRIVES * CQ_CHUNK);
  }
}
