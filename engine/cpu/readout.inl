// readout: means, second moments and gathered fields of the live state, with adjoints. Sums run in double and in the order of
// the user's list, so they depend neither on the sorting nor on threads.

enum { WIDTH_MAX = CQ_DIM * CQ_DIM };

CQ_INLINE double weight_of(const cq_scene *s, const cq_readout *r, const int32_t p) {
  return r->weighting == CQ_WEIGHT_MASS ? s->values.mass[p] : 1;
}

CQ_INLINE void field_of(const cq_scene *s, const int32_t p, const int32_t first, const int32_t width, double q[WIDTH_MAX]) {
  real *at = slot_at((real *)s->live->data, FIELDS, s->arrangement->slot[p], first);
  for (int i = 0; i < width; i++) q[i] = (double)s_value(at[i * CQ_CHUNK]);
}

static void read_group(const cq_scene *s, const cq_readout *r, int32_t group, double *out) {
  const int32_t first = cq_state_offset(r->field, CQ_DIM), width = cq_state_width(r->field, CQ_DIM);
  const int64_t begin = r->group_start[group], end = r->group_start[group + 1];
  double q[WIDTH_MAX], total = 0, sum[WIDTH_MAX * WIDTH_MAX] = {0};
  for (int64_t k = begin; k < end; k++) {
    const int32_t p = r->particles[k];
    field_of(s, p, first, width, q);
    if (r->kind == CQ_READOUT_GATHER) {
      for (int i = 0; i < width; i++) out[(k - begin) * width + i] = q[i];
      continue;
    }
    const double w = weight_of(s, r, p);
    total += w;
    if (r->kind == CQ_READOUT_MEAN)
      for (int i = 0; i < width; i++) sum[i] += w * q[i];
    else
      for (int i = 0; i < width; i++)
        for (int j = 0; j < width; j++) sum[i * width + j] += w * q[i] * q[j];
  }
  if (r->kind == CQ_READOUT_GATHER) return;
  for (int i = 0; i < (r->kind == CQ_READOUT_MEAN ? width : width * width); i++) out[i] = sum[i] / total;
}

// With out = sum w q / W: dL/dq += w / W g; by mass, dL/dw += g . (q - out) / W. For particles of some chunks.
static void read_group_adj(cq_scene *s, const cq_readout *r, int32_t group, int32_t chunk_begin, int32_t chunk_end,
                           const double *grad_out) {
  const int32_t first = cq_state_offset(r->field, CQ_DIM), width = cq_state_width(r->field, CQ_DIM);
  const int by_mass = r->weighting == CQ_WEIGHT_MASS && (s->wanted >> CQ_FIELD_MASS & 1);
  const int64_t begin = r->group_start[group], end = r->group_start[group + 1];
  double q[WIDTH_MAX], out[WIDTH_MAX * WIDTH_MAX], total = 0;
  if (r->kind != CQ_READOUT_GATHER) {
    if (by_mass) read_group(s, r, group, out);
    for (int64_t k = begin; k < end; k++) total += weight_of(s, r, r->particles[k]);
  }
  for (int64_t k = begin; k < end; k++) {
    const int32_t p = r->particles[k];
    const int32_t slot = s->arrangement->slot[p];
    if (slot < chunk_begin * CQ_CHUNK || slot >= chunk_end * CQ_CHUNK) continue;
    real *adj = slot_at((real *)s->adj, FIELDS, slot, first);
    if (r->kind == CQ_READOUT_GATHER) {
      for (int i = 0; i < width; i++) adj[i * CQ_CHUNK] += (real)grad_out[(k - begin) * width + i];
      continue;
    }
    const double share = weight_of(s, r, p) / total;
    double along = 0;
    if (r->kind == CQ_READOUT_SECOND_MOMENT || by_mass) field_of(s, p, first, width, q);
    if (r->kind == CQ_READOUT_MEAN) {
      for (int i = 0; i < width; i++) {
        adj[i * CQ_CHUNK] += (real)(share * grad_out[i]);
        if (by_mass) along += grad_out[i] * (q[i] - out[i]);
      }
    } else {
      for (int i = 0; i < width; i++) {
        double g = 0;
        for (int j = 0; j < width; j++) {
          g += (grad_out[i * width + j] + grad_out[j * width + i]) * q[j];
          if (by_mass) along += grad_out[i * width + j] * (q[i] * q[j] - out[i * width + j]);
        }
        adj[i * CQ_CHUNK] += (real)(share * g);
      }
    }
    if (by_mass) s->gradients.mass[p] += along / total;
  }
}
