// readout: sums over groups of particles, and their adjoints, on the device. Group lists stay there, since a script
// reads the same groups at every step.
#include "batch.h"
#include "reference.h"
#include <string.h>

enum { PORTION = 1024 };     // particles of a list that a block sums up

// The list of groups of a readout, as the user gave it, and the tables that the kernels read.
struct cq_list {
  int64_t used;              // number of the last use, counted over all lists
  int32_t groups, listed, portions, distinct_count;
  int32_t *host;             // {groups + 1} starts from 0, {listed} particles
  cq_memory *memory;
  const int32_t *list, *group_of, *portion_start, *distinct, *place_start, *place;
  const cq_portion *portion;
};

// ---- lists ----------------------------------------------------------------------------------------------------------

// Frees the tables of a readout's groups of particles, on the device and on the host. NULL: does nothing.
static void list_free(cq_device *d, cq_list *l) {
  if (!l) return;
  cq_pool_give(&d->context->pool, l->memory);
  cq_free(l->host);
  cq_free(l);
}

// Frees all tables of groups of particles that the device keeps for repeated readouts.
void cq_cuda_lists_destroy(cq_device *d) {
  for (int32_t k = 0; k < CQ_LISTS_MAX; k++) list_free(d, d->lists[k]);
}

// Was list l made for the same groups of particles as readout r has, so that its tables can be used again? Not 0: yes.
// listed: the number of particles in all groups of r.
static int32_t is_list_of(const cq_list *l, const cq_readout *r, int64_t listed) {
  if (l->groups != r->group_count || l->listed != listed) return 0;
  for (int32_t g = 0; g <= l->groups; g++)
    if (l->host[g] != r->group_start[g] - r->group_start[0]) return 0;
  return !memcmp(l->host + l->groups + 1, r->particles + r->group_start[0], (size_t)listed * sizeof *r->particles);
}

// tables that the host makes of a list, in one piece for one copy
typedef struct Tables {
  int32_t *list, *group_of, *portion_start, *distinct, *place_start, *place;
  cq_portion *portion;
} Tables;

// Divides one block of memory, which begins at `at`, among the tables of a list of groups: sets their addresses in t,
// and returns their size in bytes. Called for a block on the host and for its copy on the device.
static size_t lay_out(const cq_list *l, char *at, Tables *t) {
  const size_t listed = (size_t)l->listed, size = sizeof(int32_t);
  t->portion = (cq_portion *)at;
  t->list = (int32_t *)(at + (size_t)l->portions * sizeof(cq_portion));
  t->group_of = t->list + listed;
  t->place = t->group_of + listed;
  t->portion_start = t->place + listed;
  t->distinct = t->portion_start + l->groups + 1;
  t->place_start = t->distinct + l->distinct_count;
  return (size_t)l->portions * sizeof(cq_portion) +
         (3 * listed + (size_t)l->groups + 1 + 2 * (size_t)l->distinct_count + 1) * size;
}

// Cuts each group of a list into portions of at most PORTION particles (in t), each of which a thread block sums.
static void cut_portions(const cq_list *l, const Tables *t) {
  int32_t count = 0;
  for (int32_t g = 0; g < l->groups; g++) {
    t->portion_start[g] = count;
    for (int32_t k = l->host[g]; k < l->host[g + 1]; k += PORTION) {
      const int32_t end = l->host[g + 1] - k < PORTION ? l->host[g + 1] : k + PORTION;
      t->portion[count++] = {g, k, end};
    }
  }
  t->portion_start[l->groups] = count;
}

// Fills the table from each distinct listed particle to its places in the list (distinct, place_start, place), with
// which a readout's adjoint adds up a particle's gradients. number {particles}: index of each particle among the
// distinct ones, or -1.
static void invert(const cq_list *l, const Tables *t, const int32_t *number) {
  memset(t->place_start, 0, ((size_t)l->distinct_count + 1) * sizeof(int32_t));
  for (int32_t k = 0; k < l->listed; k++) t->place_start[number[t->list[k]] + 1]++;
  for (int32_t w = 0; w < l->distinct_count; w++) t->place_start[w + 1] += t->place_start[w];
  for (int32_t k = l->listed; k-- > 0;) {
    const int32_t w = number[t->list[k]];
    t->distinct[w] = t->list[k];
    t->place[--t->place_start[w + 1]] = k;
  }
  // place_start[w + 1] is now where those of w begin
  for (int32_t w = 0; w < l->distinct_count; w++) t->place_start[w] = t->place_start[w + 1];
  t->place_start[l->distinct_count] = l->listed;
}

// Builds the tables of a list of groups and copies them to the device. number: as in `invert`.
static cq_status list_upload(cq_device *d, cq_list *l, const int32_t *number) {
  Tables t, on_device;
  const size_t bytes = lay_out(l, NULL, &t);
  char *tables = (char *)cq_alloc(bytes, 1, "readout");
  if (!tables) return CQ_MEMORY;
  lay_out(l, tables, &t);
  for (int32_t g = 0; g < l->groups; g++)
    for (int32_t k = l->host[g]; k < l->host[g + 1]; k++) t.group_of[k] = g;
  memcpy(t.list, l->host + l->groups + 1, (size_t)l->listed * sizeof(int32_t));
  cut_portions(l, &t);
  invert(l, &t, number);
  cq_status status = cq_pool_take(&d->context->pool, bytes, "readout", &l->memory);
  if (!status)
    status = cq_cuda_check(cudaMemcpyAsync(l->memory->data, tables, bytes, cudaMemcpyHostToDevice, d->context->stream),
                           "a readout");
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "a readout");
  cq_free(tables);
  if (status) return status;
  lay_out(l, (char *)l->memory->data, &on_device);
  l->list = on_device.list;
  l->group_of = on_device.group_of;
  l->portion_start = on_device.portion_start;
  l->distinct = on_device.distinct;
  l->place_start = on_device.place_start;
  l->place = on_device.place;
  l->portion = on_device.portion;
  return CQ_OK;
}

// Fills list l from the groups of particles of readout r: offsets, particles, and the numbers of portions and of
// distinct particles; then builds its tables and uploads them.
static cq_status list_fill(cq_device *d, const cq_readout *r, cq_list *l) {
  l->host = (int32_t *)cq_alloc((size_t)l->groups + 1 + (size_t)l->listed, sizeof *l->host, "readout");
  int32_t *number = (int32_t *)cq_alloc((size_t)d->particles, sizeof *number, "readout");
  cq_status status = l->host && number ? CQ_OK : CQ_MEMORY;
  if (!status) {
    for (int32_t g = 0; g <= l->groups; g++) l->host[g] = (int32_t)(r->group_start[g] - r->group_start[0]);
    for (int32_t g = 0; g < l->groups; g++) l->portions += (l->host[g + 1] - l->host[g] + PORTION - 1) / PORTION;
    memcpy(l->host + l->groups + 1, r->particles + r->group_start[0], (size_t)l->listed * sizeof *l->host);
    for (int32_t p = 0; p < d->particles; p++) number[p] = -1;
    for (int32_t k = 0; k < l->listed; k++) {
      const int32_t p = l->host[l->groups + 1 + k];
      if (number[p] < 0) number[p] = l->distinct_count++;
    }
    status = list_upload(d, l, number);
  }
  cq_free(number);
  return status;
}

// Sets *out to the tables of a readout's groups on the device: kept ones of an earlier readout with the same groups, or
// new ones, which replace the least recently used. CQ_MEMORY if there are too many particles.
static cq_status find_list(cq_device *d, const cq_readout *r, cq_list **out) {
  const int64_t listed = r->group_start[r->group_count] - r->group_start[0];
  int32_t oldest = 0;
  if (listed > INT32_MAX - PORTION)
    return cq_fail(CQ_MEMORY, "a readout of %lld particles is too long", (long long)listed);
  for (int32_t k = 0; k < CQ_LISTS_MAX; k++) {
    cq_list *l = d->lists[k];
    if (l && is_list_of(l, r, listed)) {
      l->used = ++d->list_uses;
      *out = l;
      return CQ_OK;
    }
    if (d->lists[oldest] && (!l || l->used < d->lists[oldest]->used)) oldest = k;
  }
  cq_list *l = (cq_list *)cq_alloc(1, sizeof *l, "readout");
  if (!l) return CQ_MEMORY;
  l->groups = r->group_count;
  l->listed = (int32_t)listed;
  l->used = ++d->list_uses;
  const cq_status status = list_fill(d, r, l);
  if (status) {
    list_free(d, l);
    return status;
  }
  list_free(d, d->lists[oldest]);
  d->lists[oldest] = *out = l;
  return CQ_OK;
}

// ---- readouts -------------------------------------------------------------------------------------------------------

// Sets in *r, the arguments of a readout's kernels, the addresses and sizes of the tables of its groups of particles.
static void fill_list(const cq_list *l, cq_reading *r) {
  r->groups = l->groups;
  r->listed = l->listed;
  r->portions = l->portions;
  r->list = l->list;
  r->portion = l->portion;
  r->portion_start = l->portion_start;
  r->distinct_count = l->distinct_count;
  r->distinct = l->distinct;
  r->place_start = l->place_start;
  r->place = l->place;
  r->group_of = l->group_of;
}

// Fills r->part with the quantities of a readout: where each is read from, its width, and where its result goes.
static void fill_parts(const cq_readout *readout, int32_t dim, cq_reading *r) {
  const int64_t rows = readout->kind == CQ_READOUT_GATHER ? r->listed : r->groups;
  int64_t out = 0;
  r->components = 1;
  for (int32_t q = 0; q < CQ_QUANTITY_COUNT; q++) {
    const int32_t width = readout->fields >> q & 1 ? cq_quantity_width(q, dim) : 0;
    if (!width) continue;
    const int32_t components = cq_readout_width(readout->kind, 1u << q, dim), derived = q >= CQ_STATE_FIELD_COUNT;
    r->part[r->parts++] = {q,  derived ? r->derived_width : cq_state_offset(q, dim), width, r->components, components,
                           out};
    if (derived) r->derived_width += width;
    r->components += components;
    out += rows * components;
  }
}

// Sets in *r, the arguments of a readout's kernels, where they find constants, materials and internal variables of
// particles, from which derived quantities such as stress are computed.
static void fill_points(const cq_device *d, cq_reading *r) {
  const cq_model *m = d->model;
  r->params = d->arrangement->params;
  r->material = d->arrangement->material;
  r->param_count = d->params;
  r->internals = d->internals;
  r->slots = d->slots;
  r->internal_offset = (int64_t)cq_internal_offset(d);
  r->dx = m->dx;
  r->dt = m->dt;
  memcpy(r->materials, m->materials, sizeof r->materials);
}

// Sets the weights of particles in a readout's means: masses, volumes, or none (CQ_WEIGHT_PARTICLE: each counts 1).
static void fill_weights(const cq_device *d, int32_t weighting, cq_reading *r) {
  if (weighting == CQ_WEIGHT_PARTICLE) return;
  const int32_t by_mass = weighting == CQ_WEIGHT_MASS;
  r->weight = (const double *)(by_mass ? d->given.mass : d->given.volume)->data;
  r->weight_stride = by_mass ? d->given.mass_stride : d->given.volume_stride;
}

// Prepares a readout of `state`: finds or uploads the tables of its groups, fills *r, the arguments of its kernels, and
// reserves device memory *room for sums, result and gradient. count: numbers of the result in a scene. In total
// Lagrangian worlds launches the computation of particles from the nodes in `state`; else launches nothing.
cq_status cq_cuda_reading(cq_device *d, const cq_readout *readout, int64_t count, const cq_slice *state,
                          cq_memory **room, cq_reading *r) {
  cq_list *l = NULL;
  cq_status status = find_list(d, readout, &l);
  if (!status && d->reference) status = cq_cuda_reference_observe(d, state, &state);
  if (status) return status;
  *r = {};
  fill_list(l, r);
  fill_parts(readout, d->model->dim, r);
  r->kind = readout->kind;
  r->batch = d->batch;
  r->particles = d->particles;
  r->count = count;
  r->state = state->memory->data;
  r->slot_of = d->arrangement->slot_of;
  fill_weights(d, readout->weighting, r);
  fill_points(d, r);
  const size_t out = (size_t)d->batch * (size_t)count,
               sums = r->kind == CQ_READOUT_GATHER ? 0 : (size_t)d->batch * (size_t)r->components;
  const size_t derived = (size_t)d->batch * (size_t)r->listed * (size_t)r->derived_width;
  const size_t doubles = 2 * out + sums * (size_t)(r->portions + r->groups) + derived;
  status = cq_pool_reserve(&d->context->pool, room, doubles * sizeof(double), "readout");
  if (status) return status;
  r->out = (double *)(*room)->data;
  r->grad_out = r->out + out;
  r->partial = r->out + 2 * out;
  r->sum = r->partial + sums * (size_t)r->portions;
  r->derived = r->sum + sums * (size_t)r->groups;
  return CQ_OK;
}

// The number of thread blocks for a readout's kernels: a thread for each particle of a gather, else a block for each
// portion of each group and each of `components` sums.
static int32_t blocks_of(const cq_device *d, const cq_reading *r, int32_t components) {
  if (r->kind == CQ_READOUT_GATHER) return cq_cuda_blocks(d, (int64_t)d->batch * r->listed, 256);
  return cq_cuda_blocks(d, (int64_t)d->batch * r->portions * components, 1);
}

// Launches a readout that cq_cuda_reading has prepared: sums over groups, or a gather, to r->out on the device.
void cq_cuda_reading_sums(cq_device *d, const cq_reading *r) {
  d->kernels->read(d->context->stream, blocks_of(d, r, r->components), r);
}

// Is the readout weighed by masses or volumes, and are gradients of these wanted? 1 yes, 0 no.
static int32_t reads_weights(const cq_device *d, const cq_reading *r) {
  const int32_t field = r->weight == d->given.mass->data ? CQ_FIELD_MASS : CQ_FIELD_VOLUME;
  return r->weight && d->wanted & cq_bit(field) && r->kind != CQ_READOUT_GATHER;
}

// Launches the adjoint of a readout that was prepared and read: from r->grad_out adds to the adjoint of the live state
// (of its particles, in total Lagrangian worlds until cq_cuda_reference_settle moves that to nodes), and to the
// gradients of masses or volumes, if wanted, and of material constants.
void cq_cuda_reading_adj(cq_device *d, cq_reading *r) {
  if (d->reference) d->reference->read = 1;
  r->adj = d->adj->data;
  r->adj_slot_of = d->adj_arrangement->slot_of;
  double *params = (double *)d->totals->data + cq_total_params(d);
  const int32_t which = r->weight == d->given.mass->data ? CQ_PARAM_MASS : CQ_PARAM_VOLUME;
  if (reads_weights(d, r)) r->grad_weight = params + (int64_t)which * d->slots;
  r->grad_slots = params + (int64_t)CQ_PARAM_SLOTS * d->slots;
  d->kernels->read_adj(d->context->stream, cq_cuda_blocks(d, (int64_t)d->batch * r->distinct_count, 256), r);
}

// Computes a readout of the live state and copies the result to out {batch, count} on the host; waits for it.
static cq_status read_state(cq_device *d, const cq_readout *readout, int64_t count, double *out) {
  cq_reading r;
  cq_status status = cq_cuda_reading(d, readout, count, d->live, &d->reading, &r);
  if (status) return status;
  const size_t all = (size_t)d->batch * (size_t)count;
  double *to = all <= CQ_STAGING ? d->staging : out;
  cq_cuda_reading_sums(d, &r);
  status = cq_cuda_check(cudaGetLastError(), "a readout");
  if (!status)
    status = cq_cuda_check(cudaMemcpyAsync(to, r.out, all * sizeof *out, cudaMemcpyDeviceToHost, d->context->stream),
                           "a readout");
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "a readout");
  if (!status && to != out) memcpy(out, to, all * sizeof *out);
  return status;
}

// Launches the adjoint of a readout of the live state: sends grad_out {batch, count}, the gradients of its result, sums
// again what the adjoint needs, and adds as cq_cuda_reading_adj does.
static cq_status read_state_adjoint(cq_device *d, const cq_readout *readout, int64_t count, const double *grad_out) {
  cq_reading r;
  cq_status status = cq_cuda_reading(d, readout, count, d->live, &d->reading, &r);
  if (status) return status;
  status =
      cq_cuda_check(cudaMemcpyAsync((double *)r.grad_out, grad_out, (size_t)d->batch * (size_t)count * sizeof *grad_out,
                                    cudaMemcpyHostToDevice, d->context->stream),
                    "the adjoint of a readout");
  if (status) return status;
  if (reads_weights(d, &r))
    cq_cuda_reading_sums(d, &r);
  else if (r.kind != CQ_READOUT_GATHER)
    d->kernels->read_weights(d->context->stream, blocks_of(d, &r, 1), &r);
  cq_cuda_reading_adj(d, &r);
  return cq_cuda_check(cudaGetLastError(), "the adjoint of a readout");
}

// Computes a readout of the live state into out {batch, count} on the host, and times that as CQ_PHASE_READOUT.
cq_status cq_cuda_read(cq_device *d, const cq_readout *readout, int64_t count, double *out) {
  cq_status status = cq_cuda_timer_begin(d->context, CQ_PHASE_READOUT);
  if (!status) status = read_state(d, readout, count, out);
  return status ? status : cq_cuda_timer_end(d->context);
}

// Adjoint of cq_cuda_read: from grad_out {batch, count} on the host adds to the adjoint of the live state and to the
// gradients of masses or volumes and of material constants; times that as CQ_PHASE_READOUT.
cq_status cq_cuda_read_adjoint(cq_device *d, const cq_readout *readout, int64_t count, const double *grad_out) {
  cq_status status = cq_cuda_timer_begin(d->context, CQ_PHASE_READOUT);
  if (!status) status = read_state_adjoint(d, readout, count, grad_out);
  return status ? status : cq_cuda_timer_end(d->context);
}
