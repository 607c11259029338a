// readout: means, sums, second moments and gathers of the live state and of quantities derived from it
// (physics/readout.inl), with adjoints. Sums run in double and in the order of the user's list, every sixteenth entry
// in one lane: they depend neither on the sorting nor on threads.

enum {
  LANES = 16,                // of a sum, whatever the vectors of the machine
  BLOCK = 256,               // entries whose places are looked up before a component of all of them is read
};

// Some entries of a list: of each its place from the first one, the slot of its particle, where that lies in a
// chunked array, and its weight.
typedef struct entries {
  int count;
  int32_t place[BLOCK], slot[BLOCK];
  int64_t at[BLOCK];
  double weight[BLOCK];
} entries;

// a quantity of some entries, component by component
typedef double quantities[READOUT_WIDTH][BLOCK];

#define FIELDS_EACH(fields, f, width)                                                                                  \
  for (int32_t f = 0, width;                                                                                           \
       f < CQ_STATE_FIELD_COUNT && (width = (fields) >> f & 1 ? cq_state_width(f, CQ_DIM) : 0, 1); f++)

// Sets e to the entries [begin, end), at most BLOCK of them, of a readout's list of particles, with slots, addresses
// and weights of their particles.
static void find_entries(const cq_scene *s, const cq_readout *r, const int64_t begin, const int64_t end, entries *e) {
  const int32_t *slot = s->arrangement->slot, *list = r->particles + begin;
  const int count = end - begin < BLOCK ? (int)(end - begin) : BLOCK;
  const double *weights = cq_scene_weights(s, r);
  for (int k = 0; k < count; k++) {
    const uint32_t to = (uint32_t)slot[list[k]];
    e->slot[k] = (int32_t)to;
    e->at[k] = AT(to / CQ_CHUNK, FIELDS, 0) + to % CQ_CHUNK;
  }
  for (int k = 0; k < count; k++) e->weight[k] = weights ? weights[list[k]] : 1;
  for (int k = 0; k < count; k++) e->place[k] = k;
  e->count = count;
}

// Keeps only those entries of e whose particles lie in chunks [chunk_begin, chunk_end).
static void pick_entries(const int32_t chunk_begin, const int32_t chunk_end, entries *e) {
  const int64_t lower = AT(chunk_begin, FIELDS, 0), upper = AT(chunk_end, FIELDS, 0);
  int n = 0;
  for (int k = 0; k < e->count; k++) {
    const int64_t at = e->at[k];
    e->place[n] = k;
    e->slot[n] = e->slot[k];
    e->at[n] = at;
    e->weight[n] = e->weight[k];
    n += at >= lower && at < upper;
  }
  e->count = n;
}

// Fills e up to a multiple of LANES entries by copies of its first entry with weight zero: sums need no remainder.
static void pad_entries(entries *e) {
  for (; e->count % LANES; e->count++) {
    e->slot[e->count] = e->slot[0];
    e->at[e->count] = e->at[0];
    e->weight[e->count] = 0;
  }
}

// Adds the weights of list entries [begin, end) of a readout to sum, entry k to lane (k - begin) modulo LANES.
static void sum_weights(const cq_scene *s, const cq_readout *r, const int64_t begin, const int64_t end,
                        double sum[LANES]) {
  const double *weights = cq_scene_weights(s, r);
  int64_t k = begin;
  for (; k + LANES <= end; k += LANES)
    for (int l = 0; l < LANES; l++) sum[l] += weights ? weights[r->particles[k + l]] : 1;
  for (int l = 0; k + l < end; l++) sum[l] += weights ? weights[r->particles[k + l]] : 1;
}

// ---- derived quantities ---------------------------------------------------------------------------------------------

// Loads the particles of entries k, k + 1, ... into the lanes of at, and their material constants into slot_of; lanes
// beyond the last entry repeat entry k. Returns the mask of the particles' materials.
static uint32_t load_points(const cq_scene *s, const entries *e, const int k, ReadoutPoint *at,
                            Real slot_of[CQ_SLOTS_MAX]) {
  const cq_model *m = s->model;
  const cq_arrangement *a = s->arrangement;
  real lane[FIELDS + CQ_SLOTS_MAX + CQ_INTERNALS_MAX][CQ_LANES] __attribute__((aligned(64)));
  real(*constant)[CQ_LANES] = lane + FIELDS, (*internal)[CQ_LANES] = constant + CQ_SLOTS_MAX;
  uint32_t materials = 0;
  for (int l = 0; l < CQ_LANES; l++) {
    const int32_t slot = e->slot[k + l < e->count ? k + l : k], c = slot / CQ_CHUNK, in = slot % CQ_CHUNK;
    const real *fields = (const real *)cq_scene_seen(s)->data + AT(c, FIELDS, 0) + in,
               *params = (const real *)a->params + AT(c, s->params, 0) + in;
    const real *kept = NULL;
    if (m->internal_count) kept = (const real *)s->live->internal + AT(c, m->internal_count, 0) + in;
    for (int f = 0; f < FIELDS; f++) lane[f][l] = fields[f * CQ_CHUNK];
    for (int q = 0; q < m->slot_count; q++) constant[q][l] = params[(CQ_PARAM_SLOTS + q) * CQ_CHUNK];
    for (int q = 0; q < m->internal_count; q++) internal[q][l] = kept[q * CQ_CHUNK];
    materials |= 1u << a->material[slot];
  }
  at->slots = m->slot_count;
  at->dx = (real)m->dx;
  at->material.dt = (real)m->dt;
  EACH(i) at->x[i] = r_load(lane[X + i]);
  EACH(i) at->v[i] = r_load(lane[V + i]);
  EACH(i) EACH(j) at->c[i][j] = r_load(lane[C + i * CQ_DIM + j]);
  EACH(i) EACH(j) at->material.f[i][j] = r_load(lane[F + i * CQ_DIM + j]);
  for (int q = 0; q < m->slot_count; q++) slot_of[q] = r_load(constant[q]);
  for (int q = 0; q < m->internal_count; q++) at->material.internal[q] = r_load(internal[q]);
  return materials;
}

// Iterates over those lanes of a vector of entries k, k + 1, ... whose particle is of material m: moves *l, which
// begins at -1, on to the next such lane and returns 1, or 0 if there is none.
CQ_INLINE int next_of(const cq_scene *s, const entries *e, const int k, const int m, int *l) {
  while (++*l < CQ_LANES && k + *l < e->count)
    if (s->arrangement->material[e->slot[k + *l]] == m) return 1;
  return 0;
}

// Sets out {width, entries} to a derived quantity (CQ_DERIVED_...), such as stress, of the particle of each entry.
static void derive(const cq_scene *s, const entries *e, const int32_t quantity, quantities out) {
  const int width = cq_quantity_width(quantity, CQ_DIM);
  for (int k = 0; k < e->count; k += CQ_LANES) {
    ReadoutPoint at;
    Real slot[CQ_SLOTS_MAX];
    const uint32_t materials = load_points(s, e, k, &at, slot);
    for (int m = 0; materials >> m; m++) {
      if (!(materials >> m & 1)) continue;
      Real value[READOUT_WIDTH];
      real lane[READOUT_WIDTH][CQ_LANES] __attribute__((aligned(64)));
      readout_as(&at, &s->model->materials[m], slot);
      readout(quantity, &at, value);
      for (int i = 0; i < width; i++) r_store(lane[i], value[i]);
      for (int l = -1; next_of(s, e, k, m, &l);)
        for (int i = 0; i < width; i++) out[i][k + l] = (double)s_value(lane[i][l]);
    }
  }
}

// Adds lane l of grad, the gradient of a derived quantity's inputs, to the adjoint of the particle in `slot`, and to
// the gradients of that particle's constants.
static void store_point_adj(cq_scene *s, const int32_t slot, ReadoutPoint *grad, const int l) {
  const cq_model *m = s->model;
  const int32_t p = s->arrangement->order[slot];
  real *adj = slot_at((real *)s->adj, FIELDS, slot, 0);
  EACH(i) adj[(X + i) * CQ_CHUNK] += ((const real *)&grad->x[i])[l];
  EACH(i) adj[(V + i) * CQ_CHUNK] += ((const real *)&grad->v[i])[l];
  EACH(i) EACH(j) adj[(C + i * CQ_DIM + j) * CQ_CHUNK] += ((const real *)&grad->c[i][j])[l];
  EACH(i) EACH(j) adj[(F + i * CQ_DIM + j) * CQ_CHUNK] += ((const real *)&grad->material.f[i][j])[l];
  for (int q = 0; q < m->slot_count; q++) {
    const Real *constant = material_slot(grad->material.law, &grad->material, q);
    s->gradients.slot[q][p] += (double)s_value(((const real *)constant)[l]);
  }
  for (int q = 0; q < m->internal_count; q++)
    *slot_at((real *)s->internal_adj, m->internal_count, slot, q) += ((const real *)&grad->material.internal[q])[l];
}

// Adjoint of derive: from by {width, entries} = dL/d(quantity), adds to the adjoint of the entries' particles and to
// the gradients of their constants.
static void derive_adj(cq_scene *s, const entries *e, const int32_t quantity, quantities by) {
  const int width = cq_quantity_width(quantity, CQ_DIM);
  for (int k = 0; k < e->count; k += CQ_LANES) {
    ReadoutPoint at;
    Real wanted[READOUT_WIDTH], slot[CQ_SLOTS_MAX];
    const uint32_t materials = load_points(s, e, k, &at, slot);
    for (int i = 0; i < width; i++) {
      real lane[CQ_LANES] __attribute__((aligned(64)));
      for (int l = 0; l < CQ_LANES; l++) lane[l] = (real)(k + l < e->count ? by[i][k + l] : 0);
      wanted[i] = r_load(lane);
    }
    for (int m = 0; materials >> m; m++) {
      if (!(materials >> m & 1)) continue;
      ReadoutPoint grad;
      readout_as(&at, &s->model->materials[m], slot);
      readout_grad_begin(&at, &grad);
      readout_adj(quantity, &at, &grad, wanted);
      readout_grad_end(&grad);
      for (int l = -1; next_of(s, e, k, m, &l);) store_point_adj(s, e->slot[k + l], &grad, l);
    }
  }
}

// ---- sums -----------------------------------------------------------------------------------------------------------

// Adds w q (for second moments w q q^T) of each entry to sum {components, LANES}, entry k to lane k modulo LANES.
// quantity: which derived quantity q is, such as stress; w: the entry's weight.
static void sum_derived(const cq_scene *s, const cq_readout *r, const entries *e, const int32_t quantity,
                        double sum[][LANES]) {
  const int width = cq_quantity_width(quantity, CQ_DIM), pairs = r->kind == CQ_READOUT_SECOND_MOMENT ? width : 1;
  quantities value;
  derive(s, e, quantity, value);
  for (int c = 0; c < width * pairs; c++)
    for (int k = 0; k < e->count; k += LANES)
      for (int l = 0; l < LANES; l++) {
        const double one = e->weight[k + l] * value[c / pairs][k + l];
        sum[c][l] += r->kind == CQ_READOUT_SECOND_MOMENT ? one * value[c % pairs][k + l] : one;
      }
}

#define DERIVED_EACH(fields, q, width)                                                                                 \
  for (int32_t q = CQ_STATE_FIELD_COUNT, width;                                                                        \
       q < CQ_QUANTITY_COUNT && (width = (fields) >> q & 1 ? cq_quantity_width(q, CQ_DIM) : 0, 1); q++)

// Sums over list entries [begin, end) of a readout, into sums: first of the weights, then of weight times each
// component of the quantities in `fields` (bits), or times each pair of components for second moments.
static void read_sums(const cq_scene *s, const cq_readout *r, uint32_t fields, int64_t begin, int64_t end,
                      double *sums) {
  const int total = 1 + cq_readout_width(r->kind, fields, CQ_DIM);
  double lanes[CQ_READ_SUMS_MAX][LANES];
  memset(lanes, 0, (size_t)total * sizeof *lanes);
  sum_weights(s, r, begin, end, lanes[0]);
  for (int64_t first = begin; first < end && fields; first += BLOCK) {
    entries e;
    find_entries(s, r, first, end, &e);
    pad_entries(&e);
    double(*sum)[LANES] = lanes + 1;
    FIELDS_EACH(fields, f, width) {
      const real *q = (const real *)cq_scene_seen(s)->data + cq_state_offset(f, CQ_DIM) * CQ_CHUNK;
      const int32_t pairs = r->kind == CQ_READOUT_SECOND_MOMENT ? width : 1;
      for (int32_t i = 0; i < width; i++)
        for (int32_t j = 0; j < pairs; j++, sum++) {
          double along[LANES];
          memcpy(along, *sum, sizeof along);
          for (int k = 0; k < e.count; k += LANES)
            for (int l = 0; l < LANES; l++) {
              const real *at = q + e.at[k + l];
              const double one = e.weight[k + l] * (double)s_value(at[i * CQ_CHUNK]);
              along[l] += r->kind == CQ_READOUT_SECOND_MOMENT ? one * (double)s_value(at[j * CQ_CHUNK]) : one;
            }
          memcpy(*sum, along, sizeof along);
        }
    }
    DERIVED_EACH(fields, q, width) {
      if (!width) continue;
      sum_derived(s, r, &e, q, sum);
      sum += cq_readout_width(r->kind, 1u << q, CQ_DIM);
    }
  }
  for (int c = 0; c < total; c++) {
    sums[c] = 0;
    for (int l = 0; l < LANES; l++) sums[c] += lanes[c][l];
  }
}

// For a gather: copies state fields and derived quantities of the particles of list entries [begin, end) to
// out[quantity] {entries, width}, without weights.
static void read_fields(const cq_scene *s, const cq_readout *r, int64_t begin, int64_t end,
                        double *const out[CQ_QUANTITY_COUNT]) {
  const real *data = (const real *)cq_scene_seen(s)->data;
  for (int64_t first = begin; first < end; first += BLOCK) {
    entries e;
    find_entries(s, r, first, end, &e);
    FIELDS_EACH(r->fields, f, width)
      for (int k = 0; k < e.count; k++)
        for (int32_t i = 0; i < width; i++)
          out[f][(first - begin + k) * width + i] =
              (double)s_value(data[e.at[k] + (cq_state_offset(f, CQ_DIM) + i) * CQ_CHUNK]);
    DERIVED_EACH(r->fields, q, width) {
      quantities value;
      if (width) derive(s, &e, q, value);
      for (int k = 0; k < e.count; k++)
        for (int32_t i = 0; i < width; i++) out[q][(first - begin + k) * width + i] = value[i][k];
    }
  }
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

// a quantity of some entries, and its gradient
typedef struct {
  int width;
  quantities value, by;
} wanted;

// Sets q->by {width, entries} to the gradient of a readout by one quantity q of each entry, times e->weight (w / W of
// read_adj). grad: g, the gradient of the group's numbers of that quantity (of all entries in a gather). along: NULL,
// or adds g.q of each entry (second moments: q.g q) for the gradient of weights; it and second moments read q->value.
static void quantity_adj(const cq_readout *r, const entries *e, const double *grad, double *along, wanted *q) {
  const int width = q->width, moment = r->kind == CQ_READOUT_SECOND_MOMENT;
  for (int i = 0; i < width; i++) {
    double *by = q->by[i];
    for (int k = 0; k < e->count; k++)
      by[k] = r->kind == CQ_READOUT_GATHER ? grad[e->place[k] * width + i] : moment ? 0 : grad[i];
    for (int j = 0; j < width && moment; j++)
      for (int k = 0; k < e->count; k++) by[k] += (grad[i * width + j] + grad[j * width + i]) * q->value[j][k];
    for (int k = 0; k < e->count && along; k++)
      along[k] += (moment ? 0.5 : 1) * by[k] * q->value[i][k];   // q stands twice in q q^T
    for (int k = 0; k < e->count; k++) by[k] *= e->weight[k];
  }
}

// Adjoint of a readout of state field f: adds to s->adj of the particle of each entry. grad, along: as in quantity_adj.
static void field_adj(cq_scene *s, const cq_readout *r, const entries *e, const int32_t f, const double *grad,
                      double *along) {
  const int32_t at = cq_state_offset(f, CQ_DIM) * CQ_CHUNK;
  const real *from = (const real *)cq_scene_seen(s)->data + at;
  real *adj = (real *)s->adj + at;
  wanted q;
  q.width = cq_state_width(f, CQ_DIM);
  for (int i = 0; i < q.width && (along || r->kind == CQ_READOUT_SECOND_MOMENT); i++)
    for (int k = 0; k < e->count; k++) q.value[i][k] = (double)s_value(from[e->at[k] + i * CQ_CHUNK]);
  quantity_adj(r, e, grad, along, &q);
  for (int i = 0; i < q.width; i++)
    for (int k = 0; k < e->count; k++) adj[e->at[k] + i * CQ_CHUNK] += (real)q.by[i][k];
}

// Adjoint of a readout of a derived quantity, such as stress: adds to the adjoint of the particle of each entry, and to
// the gradients of its constants. grad, along: as in quantity_adj.
static void derived_adj(cq_scene *s, const cq_readout *r, const entries *e, const int32_t quantity, const double *grad,
                        double *along) {
  wanted q;
  q.width = cq_quantity_width(quantity, CQ_DIM);
  if (along || r->kind == CQ_READOUT_SECOND_MOMENT) derive(s, e, quantity, q.value);
  quantity_adj(r, e, grad, along, &q);
  derive_adj(s, e, quantity, q.by);
}

// Returns g . out of a group: out its mean or second moment, computed from its sums, g the gradient by it. With this
// number weights get the part of their gradient that comes from the total weight.
static double dot_of_means(const cq_readout *r, const cq_group_grad *out) {
  double mean = 0;
  const double *sum = out->sums + 1;
  for (int32_t q = 0; q < CQ_QUANTITY_COUNT; q++)
    for (int32_t i = 0; i < cq_readout_width(r->kind, r->fields & 1u << q, CQ_DIM); i++)
      mean += out->grad[q][i] * *sum++ / out->sums[0];
  return mean;
}

// Adjoint of a readout for one group, for particles of chunks [chunk_begin, chunk_end): adds to the adjoint of state
// and to the gradients of constants and weights. With out = sum w q / W, W = sum w, g = dL/dout: dL/dq += w / W g,
// dL/dw += g . (q - out) / W; for a sum, w g and g . q. out: the group's sums and gradients.
static void read_adj(cq_scene *s, const cq_readout *r, int32_t group, int32_t chunk_begin, int32_t chunk_end,
                     const cq_group_grad *out) {
  double *by_weight = cq_scene_weights_adj(s, r);
  const int whole = r->kind == CQ_READOUT_GATHER,
            mean = r->kind == CQ_READOUT_MEAN || r->kind == CQ_READOUT_SECOND_MOMENT;
  const int64_t begin = r->group_start[group], end = r->group_start[group + 1];
  const double total = mean ? out->sums[0] : 1, middle = by_weight && mean ? dot_of_means(r, out) : 0;
  double sum[BLOCK], *along = by_weight ? sum : NULL;    // g . q of each
  for (int64_t first = begin; first < end; first += BLOCK) {
    entries e;
    find_entries(s, r, first, end, &e);
    if (chunk_begin > 0 || chunk_end < s->chunks) pick_entries(chunk_begin, chunk_end, &e);
    memset(sum, 0, sizeof sum);
    for (int k = 0; k < e.count; k++) e.weight[k] = whole ? 1 : e.weight[k] / total;
    FIELDS_EACH(r->fields, f, width)
      if (width) field_adj(s, r, &e, f, out->grad[f] + (whole ? (first - begin) * width : 0), along);
    DERIVED_EACH(r->fields, q, width)
      if (width) derived_adj(s, r, &e, q, out->grad[q] + (whole ? (first - begin) * width : 0), along);
    for (int k = 0; k < e.count && by_weight; k++)
      by_weight[r->particles[first + e.place[k]]] += (sum[k] - middle) / total;
  }
}
