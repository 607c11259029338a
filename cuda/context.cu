// context: the GPU of a world, and the parts of the model that lie in its memory.
#include "batch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The table of kernels for the world's dimension and precision; NULL if this build has none.
static const cq_cuda_kernels *find_kernels(const cq_model *m) {
  if (m->dim == 2) return m->precision == CQ_FLOAT32 ? &cq_cuda_kernels_2_4 : &cq_cuda_kernels_2_8;
  return m->precision == CQ_FLOAT32 ? &cq_cuda_kernels_3_4 : &cq_cuda_kernels_3_8;
}

// Copies an array of `bytes` bytes to new device memory, which the context owns, and sets *to to its address. what:
// noun for error sentences. The host array may be freed only after the stream was waited for.
static cq_status upload(cq_context *c, const void *from, size_t bytes, const char *what, const void **to) {
  cq_memory *memory;
  cq_status status = cq_pool_take(&c->pool, bytes, what, &memory);
  if (status) return status;
  c->owned[c->owned_count++] = memory;
  *to = memory->data;
  if (!bytes) return CQ_OK;
  return cq_cuda_check(cudaMemcpyAsync(memory->data, from, bytes, cudaMemcpyHostToDevice, c->stream), what);
}
#define UPLOAD(c, from, count, what, to) upload(c, from, (size_t)(count) * sizeof *(from), what, (const void **)&(to))

// Copies walls, their height fields (terrain) and the wall map (nodes that walls at rest and pins hold) to the device.
static cq_status upload_walls(cq_context *c) {
  const cq_model *m = c->model;
  cq_wall walls[CQ_WALLS_MAX];
  cq_status status = CQ_OK;
  for (int32_t w = 0; w < m->wall_count && !status; w++) {
    walls[w] = m->walls[w];
    if (!walls[w].height) continue;
    const int64_t count = (int64_t)walls[w].height_count[0] * (m->dim == 3 ? walls[w].height_count[1] : 1);
    status = UPLOAD(c, m->heights[w], count, "the height field of a wall", walls[w].height);
  }
  if (!status) status = UPLOAD(c, walls, m->wall_count, "the walls", c->walls);
  const int64_t columns = (int64_t)m->map.size[0] * m->map.size[1];
  c->map = m->map;
  if (!status) status = UPLOAD(c, m->map.start, columns + 1, "the wall map", c->map.start);
  if (!status) status = UPLOAD(c, m->map.node, m->map.start[columns], "the wall map", c->map.node);
  // The copy must be done before this function returns: `walls` is local to it.
  return status ? status : cq_cuda_check(cudaStreamSynchronize(c->stream), "copying the walls");
}

// Copies the index of each particle's material {n} to the device, a byte each.
static cq_status upload_materials(cq_context *c) {
  const int64_t n = c->model->particle_count;
  uint8_t *material = (uint8_t *)cq_alloc((size_t)n, 1, "materials");
  if (!material) return CQ_MEMORY;
  for (int64_t p = 0; p < n; p++) material[p] = (uint8_t)c->model->material[p];
  cq_status status = UPLOAD(c, material, n, "the materials", c->material);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(c->stream), "copying the materials");
  cq_free(material);
  return status;
}

// Copies the actuation entries (particle, actuator, index in the user's order) to the device sorted by actuator, and by
// particle within one: the order in which the adjoint sums a signal's gradient.
static cq_status upload_by_actuator(cq_context *c) {
  const cq_model *m = c->model;
  const size_t entries = (size_t)m->actuation_count;
  cq_actuation *d = &c->actuation;
  int64_t *start = (int64_t *)cq_alloc((size_t)m->actuator_count + 2, sizeof *start, "actuation");
  int64_t *entry = (int64_t *)cq_alloc(entries, sizeof *entry, "actuation");
  int32_t *particle = (int32_t *)cq_alloc(entries, sizeof *particle, "actuation");
  int32_t *actuator = (int32_t *)cq_alloc(entries, sizeof *actuator, "actuation");
  cq_status status = start && entry && particle && actuator ? CQ_OK : CQ_MEMORY;
  if (!status) {
    // start[a + 2] counts, then start[a + 1] runs through the entries of a
    for (int64_t k = 0; k < m->actuation_count; k++) start[m->actuation_actuator[k] + 2]++;
    for (int32_t a = 0; a < m->actuator_count; a++) start[a + 2] += start[a + 1];
    for (int64_t p = 0; p < m->particle_count; p++)
      for (int64_t k = m->actuation_start[p]; k < m->actuation_start[p + 1]; k++) {
        const int64_t at = start[m->actuation_actuator[k] + 1]++;
        particle[at] = (int32_t)p;
        actuator[at] = m->actuation_actuator[k];
        entry[at] = m->actuation_entry[k];
      }
    status = UPLOAD(c, start, m->actuator_count + 1, "actuation", d->by_start);
  }
  if (!status) status = UPLOAD(c, particle, entries, "actuation", d->by_particle);
  if (!status) status = UPLOAD(c, actuator, entries, "actuation", d->by_actuator);
  if (!status) status = UPLOAD(c, entry, entries, "actuation", d->by_entry);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(c->stream), "copying the actuation");
  cq_free(start);
  cq_free(entry);
  cq_free(particle);
  cq_free(actuator);
  return status;
}

// Copies the constants of cables and chambers to the device: their points, which particles carry the points with which
// weights, and the faces of chambers.
static cq_status upload_cables(cq_context *c) {
  const cq_cables *from = &c->model->cables;
  cq_pulling *to = &c->actuation.cables;
  const int64_t n = from->count, all = from->all, points = from->points;
  to->count = from->count;
  to->chambers = from->chambers;
  to->all = from->all;
  to->points = points;
  to->pulled_count = from->pulled_count;
  if (!all) return CQ_OK;
  const int64_t corners = from->face_start[from->chambers] * c->model->dim;
  cq_status status = UPLOAD(c, from->actuator, all, "cables", to->actuator);
  if (!status) status = UPLOAD(c, from->offset, n, "cables", to->offset);
  if (!status) status = UPLOAD(c, from->slope, n, "cables", to->slope);
  if (!status) status = UPLOAD(c, from->start, all + 1, "cables", to->start);
  if (!status) status = UPLOAD(c, from->point_start, points + 1, "cables", to->point_start);
  if (!status) status = UPLOAD(c, from->particle, from->pairs, "cables", to->particle);
  if (!status) status = UPLOAD(c, from->weight, from->pairs, "cables", to->weight);
  if (!status) status = UPLOAD(c, from->anchor, points * c->model->dim, "cables", to->anchor);
  if (!status) status = UPLOAD(c, from->pulled, from->pulled_count, "cables", to->pulled);
  if (!status) status = UPLOAD(c, from->pull_start, from->pulled_count + 1, "cables", to->pull_start);
  if (!status) status = UPLOAD(c, from->pull_point, from->pairs, "cables", to->pull_point);
  if (!status) status = UPLOAD(c, from->pull_weight, from->pairs, "cables", to->pull_weight);
  if (!status) status = UPLOAD(c, from->face_start, from->chambers + 1, "chambers", to->face_start);
  if (!status) status = UPLOAD(c, from->face, corners, "chambers", to->face);
  if (!status) status = UPLOAD(c, from->corner_start, points + 1, "chambers", to->corner_start);
  if (!status) status = UPLOAD(c, from->corner, corners, "chambers", to->corner);
  if (status || !c->model->force_count) return status;
  int32_t *pulled_of = (int32_t *)cq_alloc((size_t)c->model->force_count, sizeof *pulled_of, "cables");
  if (!pulled_of) return CQ_MEMORY;
  memset(pulled_of, -1, (size_t)c->model->force_count * sizeof *pulled_of);
  for (int64_t k = 0; k < from->pulled_count; k++)
    if (c->model->force_of[from->pulled[k]] >= 0) pulled_of[c->model->force_of[from->pulled[k]]] = (int32_t)k;
  status = UPLOAD(c, pulled_of, c->model->force_count, "cables", to->pulled_of);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(c->stream), "copying the cables");
  cq_free(pulled_of);
  return status;
}

// Copies the entries of open surfaces under pressure (particle, actuator, area vector) to the device in two orders: by
// particle for the forces, by actuator for the gradients of signals.
static cq_status upload_surfaces(cq_context *c) {
  const cq_model *m = c->model;
  const cq_surfaces *s = &m->surfaces;
  const int64_t dim = m->dim;
  cq_actuation *d = &c->actuation;
  if (!s->count) return CQ_OK;
  int64_t *start = (int64_t *)cq_alloc((size_t)m->actuator_count + 2, sizeof *start, "surfaces");
  int32_t *particle = (int32_t *)cq_alloc((size_t)s->count, sizeof *particle, "surfaces");
  double *area = (double *)cq_alloc((size_t)(s->count * dim), sizeof *area, "surfaces");
  cq_status status = start && particle && area ? CQ_OK : CQ_MEMORY;
  if (!status) {
    // start[a + 2] counts, then start[a + 1] runs through the entries of a
    for (int64_t k = 0; k < s->count; k++) start[s->actuator[k] + 2]++;
    for (int32_t a = 0; a < m->actuator_count; a++) start[a + 2] += start[a + 1];
    for (int64_t p = 0; p < m->particle_count; p++)
      for (int64_t k = s->start[p]; k < s->start[p + 1]; k++) {
        const int64_t at = start[s->actuator[k] + 1]++;
        particle[at] = (int32_t)p;
        memcpy(area + at * dim, s->area + k * dim, (size_t)dim * sizeof *area);
      }
    status = UPLOAD(c, start, m->actuator_count + 1, "surfaces", d->surface_by_start);
  }
  if (!status) status = UPLOAD(c, particle, s->count, "surfaces", d->surface_by_particle);
  if (!status) status = UPLOAD(c, area, s->count * dim, "surfaces", d->surface_by_area);
  if (!status) status = UPLOAD(c, s->start, m->particle_count + 1, "surfaces", d->surface_start);
  if (!status) status = UPLOAD(c, s->actuator, s->count, "surfaces", d->surface_actuator);
  if (!status) status = UPLOAD(c, s->area, s->count * dim, "surfaces", d->surface_area);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(c->stream), "copying the surfaces");
  cq_free(start);
  cq_free(particle);
  cq_free(area);
  return status;
}

// Uploads everything of actuation that stays the same: entries (particle, actuator), stress directions of actuators,
// cables, chambers, surfaces under pressure, and which particles scripts apply forces to.
static cq_status upload_drive(cq_context *c) {
  const cq_model *m = c->model;
  cq_actuation *d = &c->actuation;
  d->actuators = m->actuator_count;
  d->forces = (int32_t)m->force_count;
  d->entries = m->actuation_count;
  const int64_t directions = (int64_t)m->actuator_count * m->dim * m->dim;
  cq_status status = UPLOAD(c, m->actuation_start, m->particle_count + 1, "actuation", d->start);
  if (!status) status = UPLOAD(c, m->actuation_actuator, m->actuation_count, "actuation", d->actuator);
  if (!status) status = UPLOAD(c, m->actuation_entry, m->actuation_count, "actuation", d->entry);
  if (!status) status = UPLOAD(c, m->actuator_direction, directions, "actuation", d->direction);
  if (!status) status = upload_by_actuator(c);
  if (!status) status = upload_cables(c);
  if (!status) status = upload_surfaces(c);
  if (status || !m->force_of) return status;
  status = UPLOAD(c, m->force_of, m->particle_count, "forces", d->force_of);
  return status ? status : UPLOAD(c, m->force_particle, m->force_count, "forces", d->force_particle);
}

// Reads CQLUA_CUDA_RUN, by which tests and benches choose how engine steps are launched: `auto`, `launches` (a kernel
// for each pass) or `grid` (one kernel for many steps). Errors: another word, or a GPU without the kernels of `grid`.
static cq_status choose_way(cq_context *c) {
  static const char *const names[] = {"auto", "launches", "grid"};
  const char *chosen = getenv("CQLUA_CUDA_RUN");
  c->way = CQ_WAY_AUTO;
  while (chosen && c->way <= CQ_WAY_GRID && strcmp(chosen, names[c->way])) c->way++;
  if (c->way > CQ_WAY_GRID)
    return cq_fail(CQ_INVALID, "CQLUA_CUDA_RUN is %s; it must be auto, launches or grid", chosen);
  if (c->way == CQ_WAY_GRID && !c->forward)
    return cq_fail(CQ_DEVICE, "CQLUA_CUDA_RUN is grid: this GPU cannot launch blocks as one");
  return CQ_OK;
}

// Opens GPU 0: creates the stream and the timers, and notes the number of multiprocessors, how many blocks of the
// cooperative kernels fit on the GPU, and a description for users.
static cq_status open_device(cq_context *c) {
  int count = 0, driver = 0;
  cudaDeviceProp properties;
  cq_status status = cq_cuda_check(cudaGetDeviceCount(&count), "looking for a GPU");
  if (!status && !count) status = cq_cuda_check(cudaErrorNoDevice, "looking for a GPU");
  if (!status) status = cq_cuda_check(cudaSetDevice(0), "opening the GPU");
  if (!status) status = cq_cuda_check(cudaGetDeviceProperties(&properties, 0), "asking the GPU what it is");
  if (!status) status = cq_cuda_check(cudaDriverGetVersion(&driver), "asking the driver for its version");
  if (!status) status = cq_cuda_check(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "opening the GPU");
  if (!status) status = cq_cuda_timer_create(&c->timer);
  if (!status)
    status = cq_cuda_check(c->kernels->room(&properties, &c->forward, &c->backward), "asking the GPU what it is");
  if (!status) status = choose_way(c);
  if (status) return status;
  c->processors = properties.multiProcessorCount;
  snprintf(c->description, sizeof c->description, "CUDA, %s, driver %d.%d, float%d", properties.name, driver / 1000,
           driver % 1000 / 10, c->kernels->real_bytes * 8);
  return CQ_OK;
}

// Frees what a world owns on the GPU: constants, memory pool, timers, stream. NULL: does nothing.
void cq_cuda_context_destroy(cq_context *c) {
  if (!c) return;
  for (int32_t k = 0; k < c->owned_count; k++) cq_pool_give(&c->pool, c->owned[k]);
  cq_pool_close(&c->pool);
  cq_cuda_timer_destroy(&c->timer);
  // this fails where the device is lost
  if (c->stream && cudaStreamDestroy(c->stream) != cudaSuccess) cudaGetLastError();
  cq_free(c);
}

// Fails for options that CUDA does not support (pressure_smoothing, f_bar), and for values of threads and simd that the
// CPU backend would reject, though a GPU does not use these two.
static cq_status check_choices(const cq_model *m) {
  if (m->threads < 0) return cq_fail(CQ_INVALID, "threads is %d; it must be 0 (all cores) or more", m->threads);
  if (m->simd != 0 && m->simd != 1 && m->simd != 3 && m->simd != 4)
    return cq_fail(CQ_INVALID, "simd level %d is not one of this machine; 0 takes the best, 1 is the baseline",
                   m->simd);
  if (m->volume_share > 0)
    return cq_fail(CQ_UNSUPPORTED, "pressure_smoothing is not there on CUDA; take device \"cpu\", or leave pressure_smoothing at 0");
  if (m->averages_dilatation)
    return cq_fail(CQ_UNSUPPORTED, "f_bar is not there on CUDA; take device \"cpu\", or leave it away");
  return CQ_OK;
}

// Creates the context of a world on the GPU, *out: opens the GPU, and copies walls, materials and actuation of the
// model to it. On failure a status with a sentence, and nothing stays allocated.
cq_status cq_cuda_context_create(const cq_model *model, cq_context **out) {
  cq_status status = check_choices(model);
  if (status) return status;
  cq_context *c = (cq_context *)cq_alloc(1, sizeof *c, "device");
  if (!c) return CQ_MEMORY;
  c->model = model;
  c->kernels = find_kernels(model);
  if (!c->kernels)
    status = cq_fail(CQ_INVALID, "this build has no %dD float%d kernels for CUDA: `make cuda` builds all of them",
                     model->dim, model->precision == CQ_FLOAT64 ? 64 : 32);
  if (!status) status = open_device(c);
  if (!status) status = upload_walls(c);
  if (!status) status = upload_materials(c);
  if (!status) status = upload_drive(c);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(c->stream), "copying the world to the GPU");
  if (status)
    cq_cuda_context_destroy(c);
  else
    *out = c;
  return status;
}
