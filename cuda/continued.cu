// continued: rollouts whose scenes begin in live states of another rollout, and pass their adjoint on to it.
#include "batch.h"
#include "reference.h"
#include <string.h>

static const char *const what = "going on from a state";

// The size in bytes of the index lists by which scenes of `to` take states from scenes of `from` (send_lists): where
// the part of each scene of `to` begins, the list of scenes, and the first node of each scene of both rollouts.
static size_t lists_size(const cq_device *to, const cq_device *from) {
  const size_t taken = (size_t)(to->batch > from->batch ? to->batch : from->batch);
  return ((size_t)to->batch + 1 + taken + (size_t)to->batch + (size_t)from->batch) * sizeof(int32_t);
}

// Writes, as a compressed list, the scene from whose state each scene of d continues: to first {batch + 1} where the
// part of each scene of d begins in the list (a part has one entry or none), and the list behind it. scene {batch}: the
// index of that scene in the other rollout, -1: none. Returns the end of the list.
static int32_t *list_sources(const cq_device *d, const int32_t *scene, int32_t *first) {
  int32_t *list = first + d->batch + 1, count = 0;
  for (int32_t s = 0; s < d->batch; s++) {
    first[s] = count;
    if (scene[s] >= 0) list[count++] = scene[s];
  }
  first[d->batch] = count;
  return list + count;
}

// The inverse of list_sources, for adjoints: writes, for each scene of `from`, the scenes of d that continue from it.
// To first {batch of from + 1} where the part of each scene of `from` begins in the list, and the list behind it.
// scene: as in list_sources. Returns the end of the list.
static int32_t *list_followers(const cq_device *d, const cq_device *from, const int32_t *scene, int32_t *first) {
  int32_t *list = first + from->batch + 1;
  memset(first, 0, ((size_t)from->batch + 1) * sizeof *first);
  for (int32_t s = 0; s < d->batch; s++)
    if (scene[s] >= 0) first[scene[s] + 1]++;
  for (int32_t s = 0; s < from->batch; s++) first[s + 1] += first[s];
  const int32_t count = first[from->batch];
  // each first is the next free place of its scene while the list is filled, and moves on by what the scene has
  for (int32_t s = 0; s < d->batch; s++)
    if (scene[s] >= 0) list[first[scene[s]]++] = s;
  for (int32_t s = from->batch; s > 0; s--) first[s] = first[s - 1];
  first[0] = 0;
  return list + count;
}

// Sends the index lists for copying scenes of the rollout `from` into scenes of the rollout `to` to the device, in
// memory of d, and sets their addresses in t. d: the rollout that continues the other one, equal to `to` for states or
// to `from` for adjoints; scene {batch of d}: as in list_sources.
static cq_status send_lists(cq_device *d, const cq_device *to, const cq_device *from, const int32_t *scene,
                            cq_taking *t) {
  const size_t bytes = lists_size(to, from);
  cq_status status = cq_pool_reserve(&d->context->pool, &d->taken, bytes, what);
  if (status) return status;
  int32_t *lists = (int32_t *)cq_alloc(1, bytes, what);
  if (!lists) return CQ_MEMORY;
  int32_t *nodes = to == d ? list_sources(d, scene, lists) : list_followers(d, to, scene, lists);
  const int32_t *on_device = (const int32_t *)d->taken->data;
  t->first = on_device;
  t->scene = on_device + to->batch + 1;
  if (d->reference) {
    t->first_to = on_device + (nodes - lists);
    t->first_from = t->first_to + to->batch;
    memcpy(nodes, to->reference->first_node, (size_t)to->batch * sizeof *nodes);
    memcpy(nodes + to->batch, from->reference->first_node, (size_t)from->batch * sizeof *nodes);
  }
  cudaStream_t stream = d->context->stream;
  status = cq_cuda_check(cudaMemcpyAsync(d->taken->data, lists, bytes, cudaMemcpyHostToDevice, stream), what);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(stream), what);
  cq_free(lists);
  return status;
}

// Sets in t, the arguments of the `take` kernels, the particle arrays to copy: from memory_from of the rollout `from`
// to memory_to of the rollout `to`. Both hold states of particles, or adjoints in the same layout.
static void set_particles(const cq_device *to, const cq_device *from, const cq_memory *memory_to,
                          const cq_memory *memory_from, cq_taking *t) {
  t->particles = to->particles;
  t->slots = to->slots;
  t->fields[0] = to->fields;
  t->fields[1] = to->internals;
  t->to[0] = memory_to->data;
  t->to[1] = cq_internal_of(to, memory_to);
  t->from[0] = memory_from->data;
  t->from[1] = cq_internal_of(from, memory_from);
}

// Sets in t the arrays of reference grid nodes {2, nodes} (displacements and velocities, or their adjoints) to copy
// from nodes_from of the rollout `from` to nodes_to of the rollout `to`.
static void set_nodes(const cq_device *to, const cq_device *from, void *nodes_to, const void *nodes_from,
                      cq_taking *t) {
  t->nodes_to = to->reference->shapes.nodes;
  t->nodes_from = from->reference->shapes.nodes;
  t->node_to = nodes_to;
  t->node_from = nodes_from;
  t->node_scene = to->reference->shapes.scene;
}

// Launches the kernels that copy, add or clear scenes by the arguments t: their particles and nodes of reference grids.
static cq_status launch(cq_device *d, const cq_taking *t) {
  const int64_t count = t->slots > t->nodes_to ? t->slots : t->nodes_to;
  d->kernels->take(d->context->stream, cq_cuda_blocks(d, count, 256), t);
  return cq_cuda_check(cudaGetLastError(), what);
}

// ---- states ---------------------------------------------------------------------------------------------------------

// Does each scene s of d continue from scene s of `from`, with the same constants of particles, so that both rollouts
// can share the state and the order of particles? 1 yes, 0 no. scene: as in cq_cuda_begin.
static int32_t is_same(const cq_device *d, const cq_device *from, const int32_t *scene) {
  if (d->batch != from->batch) return 0;
  for (int32_t s = 0; s < d->batch; s++)
    if (scene[s] != s || !cq_values_have_same_constants(d->model, &d->values[s], &from->values[s])) return 0;
  return 1;
}

// Sets *out to a new state: a copy of d->live, in which each scene s with scene[s] >= 0 has the live state of scene[s]
// of `from`.
static cq_status copy_scenes(cq_device *d, const cq_device *from, const int32_t *scene, cq_slice **out) {
  cq_taking t = {};
  t.mode = CQ_TAKE_COPY;
  cq_status status = send_lists(d, d, from, scene, &t);
  if (!status) status = cq_cuda_slice_create(d, out);
  if (!status)
    status = cq_cuda_check(cudaMemcpyAsync((*out)->memory->data, d->live->memory->data, cq_slice_size(d),
                                           cudaMemcpyDeviceToDevice, d->context->stream), what);
  if (status) return status;
  if (d->reference) {
    set_nodes(d, from, (*out)->memory->data, from->live->memory->data, &t);
  } else {
    set_particles(d, from, (*out)->memory, from->live->memory, &t);
    t.order = d->arrangement->order;
    t.slot_of = from->arrangement->slot_of;
  }
  return launch(d, &t);
}

// Begins each scene s of d with scene[s] >= 0 in the live state of scene[s] of `from`, after all scenes have begun with
// their own values. If d continues `from` scene by scene (is_same), both share the state and the order of particles, so
// that results are those of one long rollout to the last bit; else particles are sorted again.
static cq_status go_on(cq_device *d, const cq_device *from, const int32_t *scene) {
  if (is_same(d, from, scene)) {
    cq_cuda_resume(d, from->live, d->reference ? d->arrangement : from->arrangement, 0);
    d->before = from->before + from->step;
    return CQ_OK;
  }
  cq_slice *slice = NULL;
  cq_status status = copy_scenes(d, from, scene, &slice);
  if (!status) cq_cuda_resume(d, slice, d->arrangement, 0);
  cq_cuda_slice_release(d, slice);
  return status || d->reference ? status : cq_cuda_arrange(d);
}

// Sets d->age {batch}, how many engine steps the rollouts before this one have computed for each scene. Sends the ages
// to the device if the world has moving walls, whose places depend on them, and some age is not 0; else d->wall_age is
// NULL. from, scene: as in cq_cuda_begin.
static cq_status set_ages(cq_device *d, const cq_device *from, const int32_t *scene) {
  int32_t aged = 0;
  for (int32_t s = 0; s < d->batch; s++) {
    d->age[s] = from && scene[s] >= 0 ? from->age[scene[s]] + from->step : 0;
    aged |= d->age[s] > 0;
  }
  if (!aged || !d->model->moving_wall_count) {
    cq_pool_give(&d->context->pool, d->wall_age);
    d->wall_age = NULL;
    return CQ_OK;
  }
  const size_t bytes = (size_t)d->batch * sizeof *d->age;
  const cq_status status = cq_pool_reserve(&d->context->pool, &d->wall_age, bytes, "walls");
  if (status) return status;
  return cq_cuda_check(
      cudaMemcpyAsync(d->wall_age->data, d->age, bytes, cudaMemcpyHostToDevice, d->context->stream), what);
}

// Begins a rollout: all scenes with their own values, of which the fields in `changed` (bits 1 << cq_field) are sent;
// then, if `from` is not NULL, each scene s with scene[s] >= 0 in the live state of scene[s] of the rollout `from`.
cq_status cq_cuda_begin(cq_device *d, const cq_values *values, uint64_t changed, const cq_device *from,
                        const int32_t *scene) {
  cq_status status = cq_cuda_begin_own(d, values, changed);
  if (!status) status = set_ages(d, from, scene);
  return status || !from ? status : go_on(d, from, scene);
}

// ---- adjoints -------------------------------------------------------------------------------------------------------

// Clears the adjoint of the first state of each scene s with scene[s] >= 0: it began in a state of another rollout, so
// that no gradient goes to its own initial values.
static cq_status clear_scenes(cq_device *d, const int32_t *scene) {
  cq_taking t = {};
  t.mode = CQ_TAKE_CLEAR;
  const cq_status status = send_lists(d, d, d, scene, &t);
  if (status) return status;
  set_particles(d, d, d->adj, d->adj, &t);
  t.order = d->adj_arrangement->order;
  if (d->reference) set_nodes(d, d, d->reference->shapes.adj, NULL, &t);
  return launch(d, &t);
}

// At step 0 of the reverse pass: adds the adjoint of the first state of each scene s with scene[s] >= 0 to the adjoint
// of the live state of scene[s] of the rollout `from`, and clears it in d. from NULL: it is cleared only.
cq_status cq_cuda_pass_adjoint(cq_device *d, cq_device *from, const int32_t *scene) {
  cq_status status = d->reference ? cq_cuda_reference_settle(d) : CQ_OK;
  cq_taking t = {};
  t.mode = CQ_TAKE_ADD;
  if (!status && from) status = send_lists(d, from, d, scene, &t);
  if (!status && from) {
    if (d->reference) {
      set_nodes(from, d, from->reference->shapes.adj, d->reference->shapes.adj, &t);
    } else {
      set_particles(from, d, from->adj, d->adj, &t);
      t.order = from->adj_arrangement->order;
      t.slot_of = d->adj_arrangement->slot_of;
    }
    status = launch(d, &t);
  }
  return status ? status : clear_scenes(d, scene);
}
