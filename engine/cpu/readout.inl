// readout: means, second moments and gathered fields of the live state, with adjoints. Sums run in double and in the order of
// the user's list, every sixteenth entry in one lane: they depend neither on the sorting nor on threads.

enum {
  LANES = 16,                // of a sum, whatever the vectors of the machine
  BLOCK = 256,               // entries whose places are looked up before a component of all of them is read
  PAIRS = 2 * CQ_DIM * CQ_DIM * (1 + CQ_DIM * CQ_DIM),    // entries of the second moments of all fields
};

// Some entries of a list: of each its place from the first one, where its particle lies in a chunked array, and its weight.
typedef struct entries {
  int count;
  int32_t place[BLOCK];
  int64_t at[BLOCK];
  double weight[BLOCK];
} entries;

#define FIELDS_EACH(fields, f, width) \
  for (int32_t f = 0, width; f < CQ_STATE_FIELD_COUNT && (width = (fields) >> f & 1 ? cq_state_width(f, CQ_DIM) : 0, 1); f++)

CQ_INLINE double weight_of(const cq_scene *s, const cq_readout *r, const int32_t p) {
  return r->weighting == CQ_WEIGHT_MASS ? s->values.mass[p] : 1;
}

// the entries from begin on, at most a block
static void find_entries(const cq_scene *s, const cq_readout *r, const int64_t begin, const int64_t end, entries *e) {
  const int32_t *slot = s->arrangement->slot, *list = r->particles + begin;
  const int count = end - begin < BLOCK ? (int)(end - begin) : BLOCK;
  for (int k = 0; k < count; k++) {
    const uint32_t to = (uint32_t)slot[list[k]];
    e->at[k] = AT(to / CQ_CHUNK, FIELDS, 0) + to % CQ_CHUNK;
  }
  for (int k = 0; k < count; k++) e->weight[k] = weight_of(s, r, list[k]);
  for (int k = 0; k < count; k++) e->place[k] = k;
  e->count = count;
}

// leaves those whose particles lie in some chunks
static void pick_entries(const int32_t chunk_begin, const int32_t chunk_end, entries *e) {
  const int64_t lower = AT(chunk_begin, FIELDS, 0), upper = AT(chunk_end, FIELDS, 0);
  int n = 0;
  for (int k = 0; k < e->count; k++) {
    const int64_t at = e->at[k];
    e->place[n] = k;
    e->at[n] = at;
    e->weight[n] = e->weight[k];
    n += at >= lower && at < upper;
  }
  e->count = n;
}

// fills the last lanes with the first entry once more, with weight zero
static void pad_entries(entries *e) {
  for (; e->count % LANES; e->count++) {
    e->at[e->count] = e->at[0];
    e->weight[e->count] = 0;
  }
}

// without fields: the weights alone
static void sum_weights(const cq_scene *s, const cq_readout *r, const int64_t begin, const int64_t end, double sum[LANES]) {
  int64_t k = begin;
  for (; k + LANES <= end; k += LANES)
    for (int l = 0; l < LANES; l++) sum[l] += weight_of(s, r, r->particles[k + l]);
  for (int l = 0; k + l < end; l++) sum[l] += weight_of(s, r, r->particles[k + l]);
}

static void read_sums(const cq_scene *s, const cq_readout *r, uint32_t fields, int64_t begin, int64_t end, double *sums) {
  const int total = 1 + cq_readout_width(r->kind, fields, CQ_DIM);
  double lanes[1 + PAIRS][LANES];
  memset(lanes, 0, (size_t)total * sizeof *lanes);
  sum_weights(s, r, begin, end, lanes[0]);
  for (int64_t first = begin; first < end && fields; first += BLOCK) {
    entries e;
    find_entries(s, r, first, end, &e);
    pad_entries(&e);
    double(*sum)[LANES] = lanes + 1;
    FIELDS_EACH(fields, f, width) {
      const real *q = (const real *)s->live->data + cq_state_offset(f, CQ_DIM) * CQ_CHUNK;
      const int32_t pairs = r->kind == CQ_READOUT_MEAN ? 1 : width;
      for (int32_t i = 0; i < width; i++)
        for (int32_t j = 0; j < pairs; j++, sum++) {
          double along[LANES];
          memcpy(along, *sum, sizeof along);
          for (int k = 0; k < e.count; k += LANES)
            for (int l = 0; l < LANES; l++) {
              const real *at = q + e.at[k + l];
              const double one = e.weight[k + l] * (double)s_value(at[i * CQ_CHUNK]);
              along[l] += r->kind == CQ_READOUT_MEAN ? one : one * (double)s_value(at[j * CQ_CHUNK]);
            }
          memcpy(*sum, along, sizeof along);
        }
    }
  }
  for (int c = 0; c < total; c++) {
    sums[c] = 0;
    for (int l = 0; l < LANES; l++) sums[c] += lanes[c][l];
  }
}

static void read_fields(const cq_scene *s, const cq_readout *r, int64_t begin, int64_t end, double *const out[CQ_STATE_FIELD_COUNT]) {
  for (int64_t first = begin; first < end; first += BLOCK) {
    entries e;
    find_entries(s, r, first, end, &e);
    FIELDS_EACH(r->fields, f, width)
      for (int k = 0; k < e.count; k++)
        for (int32_t i = 0; i < width; i++)
          out[f][(first - begin + k) * width + i] =
              (double)s_value(((const real *)s->live->data)[e.at[k] + (cq_state_offset(f, CQ_DIM) + i) * CQ_CHUNK]);
  }
}

// Derivatives of g . q, or g . q q^T, or those of a gather, by component i of a field of some entries. q: of the field.
static void derivative(const cq_readout *r, const entries *e, const real *q, const double *grad, const int32_t width,
                       const int32_t i, double by[BLOCK]) {
  for (int k = 0; k < e->count; k++)
    by[k] = r->kind == CQ_READOUT_MEAN ? grad[i] : r->kind == CQ_READOUT_GATHER ? grad[e->place[k] * width + i] : 0;
  for (int32_t j = 0; j < width && r->kind == CQ_READOUT_SECOND_MOMENT; j++)
    for (int k = 0; k < e->count; k++)
      by[k] += (grad[i * width + j] + grad[j * width + i]) * (double)s_value(q[e->at[k] + j * CQ_CHUNK]);
}

// With out = sum w q / W: dL/dq += w / W g; by mass, dL/dw += g . (q - out) / W. For particles of some chunks.
static void read_adj(cq_scene *s, const cq_readout *r, int32_t group, int32_t chunk_begin, int32_t chunk_end, const double *sums,
                     const double *const grad[CQ_STATE_FIELD_COUNT]) {
  const int by_mass = cq_scene_reads_mass(s, r), whole = r->kind == CQ_READOUT_GATHER;
  const double half = r->kind == CQ_READOUT_SECOND_MOMENT ? 0.5 : 1;     // q stands twice in q q^T
  const int64_t begin = r->group_start[group], end = r->group_start[group + 1];
  double mean = 0, by[BLOCK], along[BLOCK];    // g . out; g . q of each
  if (by_mass) {
    const double *sum = sums + 1;
    FIELDS_EACH(r->fields, f, width)
      for (int32_t i = 0; i < (r->kind == CQ_READOUT_MEAN ? width : width * width); i++) mean += grad[f][i] * *sum++ / sums[0];
  }
  for (int64_t first = begin; first < end; first += BLOCK) {
    entries e;
    find_entries(s, r, first, end, &e);
    if (chunk_begin > 0 || chunk_end < s->chunks) pick_entries(chunk_begin, chunk_end, &e);
    memset(along, 0, sizeof along);
    for (int k = 0; k < e.count; k++) e.weight[k] = whole ? 1 : e.weight[k] / sums[0];
    FIELDS_EACH(r->fields, f, width) {
      const int32_t at = cq_state_offset(f, CQ_DIM) * CQ_CHUNK;
      const real *q = (const real *)s->live->data + at;
      real *adj = (real *)s->adj + at;
      for (int32_t i = 0; i < width; i++) {
        derivative(r, &e, q, grad[f] + (whole ? (first - begin) * width : 0), width, i, by);
        for (int k = 0; k < e.count; k++) adj[e.at[k] + i * CQ_CHUNK] += (real)(e.weight[k] * by[k]);
        for (int k = 0; k < e.count && by_mass; k++) along[k] += half * by[k] * (double)s_value(q[e.at[k] + i * CQ_CHUNK]);
      }
    }
    for (int k = 0; k < e.count && by_mass; k++) s->gradients.mass[r->particles[first + e.place[k]]] += (along[k] - mean) / sums[0];
  }
}
