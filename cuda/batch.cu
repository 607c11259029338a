// batch: memory of a rollout; slices and arrangements by reference; loading the values it begins with.
#include "batch.h"
#include "reference.h"
#include "../engine/world/constants.h"
#include <string.h>

// The number of thread blocks, of `threads` threads each, for a kernel that works on `count` items: one item for each
// thread, but at least 1 block, and at most 16 for each multiprocessor of the GPU.
int32_t cq_cuda_blocks(const cq_device *d, int64_t count, int32_t threads) {
  const int64_t blocks = (count + threads - 1) / threads, most = 16 * (int64_t)d->context->processors;
  return (int32_t)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

// ---- slices, arrangements, records ----------------------------------------------------------------------------------

// The size of one state of all scenes in bytes: of the particles, or in total Lagrangian worlds of displacement and
// velocity of all nodes of reference grids.
size_t cq_slice_size(const cq_device *d) {
  return d->reference ? 2 * (size_t)d->reference->shapes.nodes * cq_node_size(d) : cq_particles_size(d);
}

// Sets *out to a state slice with one reference and `bytes` of uninitialised device memory from the pool; to NULL on
// failure.
static cq_status create_slice(cq_device *d, size_t bytes, cq_slice **out) {
  *out = NULL;
  cq_slice *slice = (cq_slice *)cq_alloc(1, sizeof *slice, "state slice");
  if (!slice) return CQ_MEMORY;
  const cq_status status = cq_pool_take(&d->context->pool, bytes, "state slice", &slice->memory);
  if (status) {
    cq_free(slice);
    return status;
  }
  slice->references = 1;
  *out = slice;
  return CQ_OK;
}
// Sets *out to unfilled device memory for one state of all scenes, with one reference; to NULL on failure.
cq_status cq_cuda_slice_create(cq_device *d, cq_slice **out) { return create_slice(d, cq_slice_size(d), out); }
// Sets *out to device memory for x, v, C, F and internal variables of all particles, not filled; to NULL on failure. In
// total Lagrangian worlds a state consists of nodes, and particles are computed from it for readouts.
cq_status cq_cuda_particles_create(cq_device *d, cq_slice **out) { return create_slice(d, cq_particles_size(d), out); }

// Adds one to the reference count of a state, which checkpoints and records share; returns the state.
cq_slice *cq_cuda_slice_retain(cq_slice *slice) {
  slice->references++;
  return slice;
}

// Drops a reference to a state; the last one returns its memory to the pool. NULL: does nothing.
void cq_cuda_slice_release(cq_device *d, cq_slice *slice) {
  if (!slice || --slice->references) return;
  cq_pool_give(&d->context->pool, slice->memory);
  cq_free(slice);
}

// Sets *out to a new arrangement (order of particles in device memory) with one reference: memory for params, order,
// slot_of and material of all particle slots, not filled, and no tiles. To NULL on failure.
cq_status cq_cuda_arrangement_create(cq_device *d, cq_arrangement **out) {
  *out = NULL;
  cq_arrangement *a = (cq_arrangement *)cq_alloc(1, sizeof *a, "arrangement");
  if (!a) return CQ_MEMORY;
  const size_t slots = (size_t)d->stride, size = d->real_bytes;
  const cq_status status = cq_pool_take(&d->context->pool, slots * ((size_t)d->params * size + 2 * sizeof(int32_t) + 1),
                                        "arrangement", &a->by_slot);
  if (status) {
    cq_free(a);
    return status;
  }
  char *at = (char *)a->by_slot->data;
  a->params = at;
  a->order = (int32_t *)(at + slots * (size_t)d->params * size);
  a->slot_of = a->order + slots;
  a->material = (uint8_t *)(a->slot_of + slots);
  a->references = 1;
  *out = a;
  return CQ_OK;
}

// Adds one to the reference count of an arrangement (order of particles in memory); returns the arrangement.
cq_arrangement *cq_cuda_arrangement_retain(cq_arrangement *a) {
  a->references++;
  return a;
}

// Drops a reference to an arrangement (order of particles); the last one frees its memory. NULL: does nothing.
void cq_cuda_arrangement_release(cq_device *d, cq_arrangement *a) {
  if (!a || --a->references) return;
  cq_pool_give(&d->context->pool, a->by_slot);
  cq_pool_give(&d->context->pool, a->by_tile);
  cq_free(a);
}

// Drops the references of one engine step's record to its two states and its arrangement, so that the record can be
// filled again; the memory for its grid nodes stays.
void cq_cuda_step_record_clear(cq_device *d, cq_step_record *record) {
  cq_cuda_slice_release(d, record->in);
  cq_cuda_slice_release(d, record->out);
  cq_cuda_arrangement_release(d, record->arrangement);
  record->in = record->out = NULL;
  record->arrangement = NULL;
}

// Makes a state and an arrangement (its order of particles) the live ones, at engine step `step` of the rollout: adds a
// reference to each, and drops the references to the previous live ones.
void cq_cuda_resume(cq_device *d, cq_slice *slice, cq_arrangement *arrangement, int64_t step) {
  cq_cuda_slice_retain(slice);
  cq_cuda_arrangement_retain(arrangement);
  cq_cuda_slice_release(d, d->live);
  cq_cuda_arrangement_release(d, d->arrangement);
  d->live = slice;
  d->arrangement = arrangement;
  d->step = step;
}

// ---- rollout --------------------------------------------------------------------------------------------------------

// Allocates host memory for the gradients of all scenes (d->gradients): of each field, but of material constants by the
// slots of laws. Those of one field lie scene after scene, so that one copy fetches them from the device.
static cq_status alloc_gradients(cq_device *d) {
  const size_t n = (size_t)d->particles, batch = (size_t)d->batch, slots = (size_t)d->model->slot_count;
  size_t count[CQ_FIELD_COUNT], total = slots * n;
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) {
    count[f] = cq_constant_bits() & cq_bit(f) ? 0 : (size_t)cq_model_field_count(d->model, f);
    total += count[f];
  }
  d->gradients = (cq_gradients *)cq_alloc(batch, sizeof *d->gradients, "gradients");
  d->gradient_memory = (double *)cq_alloc(batch * total, sizeof(double), "gradients");
  if (!d->gradients || !d->gradient_memory) return CQ_MEMORY;
  double *at = d->gradient_memory;
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++)
    for (size_t s = 0; s < batch; s++, at += count[f]) d->gradients[s].value[f] = at;
  for (size_t k = 0; k < slots; k++)
    for (size_t s = 0; s < batch; s++, at += n) d->gradients[s].slot[k] = at;
  return CQ_OK;
}

// Allocates device memory for the adjoints of the state, of all parameters and of signals and forces, the latter for
// d->control_rows control steps, which it sets; and host memory for the gradients. For differentiable batches only.
static cq_status alloc_adjoint(cq_device *d) {
  const cq_model *m = d->model;
  cq_pool *pool = &d->context->pool;
  const size_t stride = (size_t)d->stride, size = d->real_bytes, batch = (size_t)d->batch;
  const size_t actuation_fields = d->actuation_fields ? (size_t)d->actuation_fields : 1;
  const size_t entries = batch * (size_t)m->actuation_count, doubles = sizeof(double);
  const size_t controls = cq_signal_count(d) + cq_force_count(d), rows = CQ_STAGING / (controls + !controls);
  const size_t totals = (size_t)cq_total_state(d) + (size_t)d->fields * (size_t)d->slots;
  d->control_rows = rows < 1 ? 1 : rows < CQ_RUNS_AHEAD ? (int32_t)rows : CQ_RUNS_AHEAD;
  cq_status status = cq_pool_take(pool, cq_particles_size(d), "adjoint state", &d->adj);
  if (!status) status = cq_pool_take(pool, cq_particles_size(d), "adjoint state", &d->adj_other);
  if (!status) status = cq_pool_take(pool, stride * (size_t)d->params * size, "adjoint constants", &d->params_adj);
  if (!status) status = cq_pool_take(pool, stride * actuation_fields * size, "adjoint actuation", &d->actuation_adj);
  if (!status)
    status = cq_pool_take(pool, stride * actuation_fields * size, "adjoint actuation", &d->actuation_adj_other);
  if (!status) status = cq_pool_take(pool, totals * doubles, "gradients", &d->totals);
  if (!status) status = cq_pool_take(pool, entries * doubles, "adjoint weights", &d->grad_weight);
  if (!status) status = cq_pool_take(pool, entries * doubles, "adjoint signals", &d->share);
  if (!status && m->cables.all)
    status = cq_pool_take(pool, cq_cable_grads(d) * doubles, "adjoint cables", &d->grad_cables);
  if (!status)
    status = cq_pool_take(pool, (size_t)d->control_rows * controls * doubles, "adjoint signals", &d->grad_controls);
  const size_t norms = batch * (size_t)(d->control_rows + CQ_NORM_PORTIONS);
  if (!status) status = cq_pool_take(pool, norms * doubles, "norms of adjoints", &d->norms);
  return status ? status : alloc_gradients(d);
}

// Frees the state at step 0, which is kept on the device so that the next rollout need not load it; called before new
// values are loaded and when memory runs out. Returns 1, or 0 if none was kept.
int32_t cq_cuda_drop_start(cq_device *d) {
  const int32_t kept = d->start != NULL;
  cq_cuda_slice_release(d, d->start);
  cq_cuda_arrangement_release(d, d->start_arrangement);
  d->start = NULL;
  d->start_arrangement = NULL;
  return kept;
}

// Frees all memory of a rollout, on GPU and host, after waiting for the GPU to end its work. NULL: does nothing.
void cq_cuda_destroy(cq_device *d) {
  if (!d) return;
  // Work that is under way still uses the memory. After the device was lost nothing is under way, and the error is old.
  if (cudaStreamSynchronize(d->context->stream) != cudaSuccess) cudaGetLastError();
  cq_pool *pool = &d->context->pool;
  cq_cuda_drop_start(d);
  cq_cuda_slice_release(d, d->live);
  cq_cuda_arrangement_release(d, d->arrangement);
  cq_cuda_arrangement_release(d, d->adj_arrangement);
  cq_cuda_graphs_destroy(d);
  cq_cuda_lists_destroy(d);
  cq_cuda_policy_destroy(d);
  cq_cuda_reference_destroy(d);
  cq_memory *owned[] = {d->given.weight,   d->given.mass,    d->given.volume,
                        d->given.globals,  d->on_device,     d->sorting,
                        d->window,         d->found,         d->arena,
                        d->grid_v,         d->grid_q,        d->actuation,
                        d->reading,        d->adj,           d->adj_other,
                        d->params_adj,     d->actuation_adj, d->actuation_adj_other,
                        d->sums,           d->impulse,       d->impulse_rows,
                        d->impulse_before, d->grad_walls,    d->totals,
                        d->grad_weight,    d->share,         d->grad_controls,
                        d->norms,          d->cable_work,    d->grad_cables,
                        d->given.cable[0], d->given.cable[1], d->given.cable[2],
                        d->wall_age,       d->taken,         d->grad_gravity};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_pool_give(pool, owned[k]);
  cq_pinned_give(d->uploads);
  cq_pinned_give(d->progress);
  cq_pinned_give(d->found_host);
  cq_pinned_give(d->staging);
  cq_free(d->age);
  cq_free(d->gradients);
  cq_free(d->gradient_memory);
  cq_free(d);
}

static const size_t UPLOADS = 4 << 20;      // bytes of pinned memory for them, about

// Allocates the memory that forward steps need: pinned host memory for the arguments of kernels (uploads), for progress
// and for readouts, and device memory for sorting, actuation, cables and globals.
static cq_status alloc_work(cq_device *d) {
  cq_pool *pool = &d->context->pool;
  const size_t stride = (size_t)d->stride, batch = (size_t)d->batch;
  const size_t upload = cq_upload_size(d), fit = UPLOADS / upload;
  d->uploads_count = fit < 1 ? 1 : fit < CQ_RUNS_AHEAD ? (int32_t)fit : CQ_RUNS_AHEAD;
  cq_status status = cq_pinned_take((size_t)d->uploads_count * upload, "the controls", (void **)&d->uploads);
  if (!status) status = cq_pinned_take(sizeof *d->progress, "the controls", (void **)&d->progress);
  if (!status) status = cq_pinned_take(sizeof *d->found_host, "sorting", (void **)&d->found_host);
  if (!status) status = cq_pinned_take(CQ_STAGING * sizeof(double), "readouts", (void **)&d->staging);
  if (!status) status = cq_pool_take(pool, upload, "the controls", &d->on_device);
  if (!status) status = cq_pool_take(pool, stride * (4 * sizeof(int32_t) + 1), "sorting", &d->sorting);
  if (!status) status = cq_pool_take(pool, sizeof(cq_found), "sorting", &d->found);
  if (!status && d->actuation_fields)
    status = cq_pool_take(pool, stride * (size_t)d->actuation_fields * d->real_bytes, "actuation", &d->actuation);
  const size_t numbers = (size_t)d->model->cables.points * (3 * (size_t)d->model->dim + 1);
  if (!status && numbers) status = cq_pool_take(pool, batch * numbers * sizeof(double), "cables", &d->cable_work);
  if (!status)
    status = cq_pool_take(pool, batch * (size_t)cq_global_count(d) * d->real_bytes, "walls", &d->given.globals);
  return status;
}

// Sets *out to a new cq_device, the memory of a rollout of `batch` scenes, with adjoints if differentiable is not 0. On
// failure CQ_MEMORY or CQ_DEVICE, with nothing left allocated.
cq_status cq_cuda_create(cq_context *context, int32_t batch, int32_t differentiable, cq_device **out) {
  const cq_model *m = context->model;
  const int64_t slots = batch * m->particle_count;
  if (slots > 2000000000)
    return cq_fail(CQ_MEMORY, "out of memory: %d scenes of %lld particles are %.3g, at most 2e9 are possible", batch,
                   (long long)m->particle_count, (double)slots);
  cq_device *d = (cq_device *)cq_alloc(1, sizeof *d, "rollout");
  if (!d) return CQ_MEMORY;
  d->context = context;
  d->model = m;
  d->kernels = context->kernels;
  d->batch = batch;
  d->differentiable = differentiable;
  d->particles = (int32_t)m->particle_count;
  d->slots = (int32_t)slots;
  d->stride = (int32_t)((slots + 31) / 32 * 32);
  d->fields = cq_state_offset(CQ_STATE_FIELD_COUNT, m->dim);
  d->params = CQ_PARAM_SLOTS + m->slot_count;
  d->internals = m->internal_count;
  d->actuation_fields = m->drives ? m->dim * (m->dim + 1) / 2 + 2 * m->dim : 0;
  d->real_bytes = (size_t)context->kernels->real_bytes;
  d->age = (int64_t *)cq_alloc((size_t)batch, sizeof *d->age, "rollout");
  cq_status status = d->age ? alloc_work(d) : CQ_MEMORY;
  if (!status && differentiable) status = alloc_adjoint(d);
  if (!status) status = cq_cuda_reference_create(d);
  if (status)
    cq_cuda_destroy(d);
  else
    *out = d;
  return status;
}

// ---- values ---------------------------------------------------------------------------------------------------------

// Where to find, for each scene, the pointer to its array of doubles.
typedef struct Source {
  const char *at;
  size_t step;               // bytes from scene to scene
} Source;

// Where the host keeps the pointers to one field's (CQ_FIELD_...) arrays of all scenes. values: {batch}.
static Source value_of(const cq_values *values, int32_t field) {
  return {(const char *)&values->value[field], sizeof *values};
}
// The host array of scene number `scene`, of the field that value_of has found.
static const double *array_of(const Source *source, int32_t scene) {
  return *(const double *const *)(source->at + (size_t)scene * source->step);
}

// Copies each scene's array of `count` numbers to device memory, or a single array if all scenes share it; *to grows
// where needed. *every: set to the stride between scenes on the device in numbers, 0 where they share one array. what:
// noun for error sentences.
static cq_status upload_values(cq_device *d, const Source *source, int64_t count, const char *what, cq_memory **to,
                               int64_t *every) {
  int32_t scenes = 1;
  for (int32_t s = 1; s < d->batch; s++)
    if (array_of(source, s) != array_of(source, 0)) scenes = d->batch;
  *every = scenes == 1 ? 0 : count;
  cq_status status = cq_pool_reserve(&d->context->pool, to, (size_t)(scenes * count) * sizeof(double), what);
  for (int32_t s = 0; s < scenes && !status && count; s++)
    status = cq_cuda_check(cudaMemcpyAsync((double *)(*to)->data + s * count, array_of(source, s),
                                           (size_t)count * sizeof(double), cudaMemcpyHostToDevice, d->context->stream),
                           what);
  return status;
}

// fields first .. first + width of an array {fields, slots} of reals by user id
typedef struct Target {
  void *to;
  int32_t fields, first, width;
} Target;

// Copies each scene's array of doubles {particles, width} to device memory, *work, and from there, converted to reals,
// into some fields of a device array (target). Particles are still in the user's order.
static cq_status load_values(cq_device *d, const Source source, const Target target, cq_memory **work) {
  cq_loading l = {};
  const cq_status status =
      upload_values(d, &source, (int64_t)target.width * d->particles, "the values of a rollout", work, &l.every);
  if (status) return status;
  l.from = (const double *)(*work)->data;
  l.particles = d->particles;
  l.slots = d->slots;
  l.fields = target.fields;
  l.first = target.first;
  l.width = target.width;
  l.to = target.to;
  d->kernels->load(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &l);
  return cq_cuda_check(cudaGetLastError(), "loading the values of a rollout");
}

// Copies the user's values of x, v, C and F into the live state. *work: device memory for one field, which grows.
static cq_status load_state(cq_device *device, const cq_values *values, cq_memory **work) {
  const int32_t d = device->model->dim;
  void *to = device->live->memory->data;
  cq_status status = CQ_OK;
  for (int32_t f = 0; f < CQ_STATE_FIELD_COUNT && !status; f++)
    status = load_values(device, value_of(values, f),
                         {to, device->fields, cq_state_offset(f, d), cq_state_width(f, d)}, work);
  return status;
}

// Sets the internal variables of materials (plastic strain and the like) in the live state to their values at the
// start, which are the same for all scenes. *work: as in load_state.
static cq_status load_internals(cq_device *d, cq_memory **work) {
  const cq_model *m = d->model;
  const int64_t width = d->internals;
  if (!width) return CQ_OK;
  double *start = (double *)cq_alloc((size_t)(width * m->particle_count), sizeof *start, "internal variables");
  if (!start) return CQ_MEMORY;
  for (int64_t k = 0; k < width * m->particle_count; k++)
    start[k] = cq_law_of(m->materials[m->material[k / width]].kind)->internal_start;
  const Target target = {cq_internal_of(d, d->live->memory), d->internals, 0, d->internals};
  cq_status status = load_values(d, {(const char *)&start, 0}, target, work);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "loading internal variables");
  cq_free(start);
  return status;
}

// The target of load_values for parameter `which` (CQ_PARAM_...): its field in the live arrangement's params.
static Target param_of(const cq_device *d, int32_t which) { return {d->arrangement->params, d->params, which, 1}; }

// Do all scenes share their arrays of material constants, so that one copy serves all scenes? 1 yes, 0 no.
static int32_t shared_constants(const cq_device *d, const cq_values *values) {
  for (int32_t s = 1; s < d->batch; s++)
    for (int32_t f = CQ_FIELD_YOUNG; f < CQ_FIELD_ACTUATION_WEIGHT; f++)
      if (values[s].value[f] != values->value[f]) return 0;
  return 1;
}

// Computes from the user's constants (E, nu, ...) the constants that material laws use (such as mu and lambda; slots),
// and loads them into the live arrangement's params. *work: as in load_state.
static cq_status load_slots(cq_device *d, const cq_values *values, cq_memory **work) {
  const int64_t n = d->particles, slots = d->model->slot_count;
  const int32_t scenes = shared_constants(d, values) ? 1 : d->batch;
  double *all = (double *)cq_alloc((size_t)(slots * scenes * n), sizeof *all, "material constants");
  const double **of = (const double **)cq_alloc((size_t)slots * (size_t)d->batch, sizeof *of, "material constants");
  cq_status status = all && of ? CQ_OK : CQ_MEMORY;
  for (int32_t s = 0; s < d->batch && !status; s++) {
    double *scene = all + (s < scenes ? slots * s * n : 0);
    for (int64_t p = 0; p < n && s < scenes; p++) {
      double slot[CQ_SLOTS_MAX];
      cq_constants_of(d->model, values[s].value, p, slot);
      for (int64_t k = 0; k < slots; k++) scene[k * n + p] = slot[k];
    }
    for (int64_t k = 0; k < slots; k++) of[slots * s + k] = scene + k * n;
  }
  for (int32_t k = 0; k < slots && !status; k++)
    status = load_values(d, {(const char *)(of + k), (size_t)slots * sizeof *of}, param_of(d, CQ_PARAM_SLOTS + k),
                         work);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "loading the material constants");
  cq_free(all);
  cq_free(of);
  return status;
}

// Uploads the globals of all scenes in the device's precision: gravity, minus the share of velocities that damping
// takes in an engine step, friction of walls, velocities of walls.
static cq_status load_globals(cq_device *d, const cq_values *values) {
  const cq_model *m = d->model;
  const int64_t count = cq_global_count(d);
  char *all = (char *)cq_alloc((size_t)(d->batch * count), d->real_bytes, "walls");
  if (!all) return CQ_MEMORY;
  const auto put = [&](int64_t k, double value) {
    if (d->real_bytes == 4)
      ((float *)all)[k] = (float)value;
    else
      ((double *)all)[k] = value;
  };
  for (int32_t s = 0; s < d->batch; s++) {
    const int64_t at = s * count;
    for (int i = 0; i < m->dim; i++) put(at + i, values[s].gravity[i]);
    put(at + CQ_AT_DAMPING, expm1(-values[s].damping[0] * m->dt));
    for (int32_t w = 0; w < m->wall_count; w++) {
      put(at + CQ_AT_FRICTION + w, values[s].friction[w]);
      for (int i = 0; i < m->dim; i++)
        put(at + CQ_AT_FRICTION + m->wall_count + 3 * w + i, values[s].wall_velocity[w * m->dim + i]);
    }
  }
  cq_status status =
      cq_cuda_check(cudaMemcpyAsync(d->given.globals->data, all, (size_t)(d->batch * count) * d->real_bytes,
                                    cudaMemcpyHostToDevice, d->context->stream),
                    "loading the walls");
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), "loading the walls");
  cq_free(all);
  return status;
}

// Loads the state at step 0: positions, velocities, C, F, masses, volumes, constants and internal variables of all
// particles. Then sorts the particles, or in total Lagrangian worlds computes the nodes of reference grids, and keeps
// this state in d->start for later rollouts.
static cq_status load_start(cq_device *d, const cq_values *values) {
  cq_memory *work = NULL;
  const Source mass = value_of(values, CQ_FIELD_MASS), volume = value_of(values, CQ_FIELD_VOLUME);
  cq_cuda_drop_start(d);
  cq_status status = cq_cuda_arrange_first(d);
  if (!status) status = load_state(d, values, &work);
  if (!status) status = load_values(d, mass, param_of(d, CQ_PARAM_MASS), &work);
  if (!status) status = load_values(d, volume, param_of(d, CQ_PARAM_VOLUME), &work);
  if (!status) status = load_slots(d, values, &work);
  if (!status) status = load_internals(d, &work);
  if (!status) status = upload_values(d, &mass, d->particles, "masses", &d->given.mass, &d->given.mass_stride);
  if (!status) status = upload_values(d, &volume, d->particles, "volumes", &d->given.volume, &d->given.volume_stride);
  cq_pool_give(&d->context->pool, work);
  if (!status) status = d->reference ? cq_cuda_reference_begin(d, values) : cq_cuda_arrange(d);
  if (status) return status;
  d->start = cq_cuda_slice_retain(d->live);
  d->start_arrangement = cq_cuda_arrangement_retain(d->arrangement);
  return CQ_OK;
}

// Begins a rollout with its own values {batch}, kept by pointer: sends them, and makes the state of step 0 live.
// `changed` has a bit (1 << cq_field) for each field that may have changed: of gravity, damping and walls together,
// actuation weights, and cables only changed groups are sent. All other fields are sent if any of them has changed, or
// if the state at step 0 is no longer on the device.
cq_status cq_cuda_begin_own(cq_device *d, const cq_values *values, uint64_t changed) {
  const uint64_t weights = cq_bit(CQ_FIELD_ACTUATION_WEIGHT);
  const uint64_t globals = cq_bit(CQ_FIELD_GRAVITY) | cq_bit(CQ_FIELD_DAMPING) | cq_bit(CQ_FIELD_FRICTION) |
                           cq_bit(CQ_FIELD_WALL_VELOCITY);
  const uint64_t cables =
      cq_bit(CQ_FIELD_CABLE_STIFFNESS) | cq_bit(CQ_FIELD_CABLE_LENGTH) | cq_bit(CQ_FIELD_CABLE_FRICTION);
  const Source weight = value_of(values, CQ_FIELD_ACTUATION_WEIGHT);
  cq_status status = CQ_OK;
  d->values = values;
  d->health = {};
  d->before = 0;
  if (d->reference) d->reference->read = 0;
  if (changed & globals) status = load_globals(d, values);
  if (!status && changed & weights)
    status = upload_values(d, &weight, d->model->actuation_count, "weights", &d->given.weight, &d->given.weight_stride);
  for (int32_t k = 0; k < 3 && !status && d->model->cables.count && changed & cables; k++) {
    const Source value = value_of(values, CQ_FIELD_CABLE_STIFFNESS + k);
    status = upload_values(d, &value, d->model->cables.count, "cables", &d->given.cable[k], &d->given.cable_stride[k]);
  }
  if (status) return status;
  if (!d->start || changed & ~(globals | weights | cables)) return load_start(d, values);
  cq_cuda_resume(d, d->start, d->start_arrangement, 0);
  return CQ_OK;
}
