// device: CUDA behind the table of operations. All scenes of a batch are in one set of arrays and go in step. Timers
// are the GPU's own: control steps count as p2g, and p2g_adj backward, whose kernels do grid and g2p too, with the
// network that gives their signals; sorting, readouts and the adjoint of the controls have their own.
#include "batch.h"
#include <string.h>

// A sentence about the GPU (name, driver, precision), for `cqlua info`.
static const char *describe(const cq_context *context) { return context->description; }

// The number of bytes that rollouts may still take: free memory of the GPU, and unused memory in the world's pool.
static int64_t memory_available(const cq_context *context) {
  size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) cudaGetLastError();   // of a device that is lost: none
  return (int64_t)(available + context->pool.bytes - context->pool.used);
}

// The failure that ended the rollout: kind, step, scene, particle and value; its `bad` is 0 if there was none.
static const cq_health *health(const cq_device *d) { return &d->health; }

// ---- records and marks ----------------------------------------------------------------------------------------------

// Sets *out to an empty record. A record keeps, for each engine step of one control step, the states and grid nodes
// that the adjoint needs. CQ_OK or CQ_MEMORY.
static cq_status record_create(cq_device *d, cq_record **out) {
  cq_record *record = (cq_record *)cq_alloc(1, sizeof *record, "memo record");
  if (!record) return CQ_MEMORY;
  record->steps = (cq_step_record *)cq_alloc((size_t)d->model->substeps, sizeof *record->steps, "memo record");
  if (!record->steps) {
    cq_free(record);
    return CQ_MEMORY;
  }
  *out = record;
  return CQ_OK;
}

// Drops a record's references to states and arrangements; the record may then be filled again.
static void record_clear(cq_device *d, cq_record *record) {
  for (int32_t k = 0; k < d->model->substeps; k++) cq_cuda_step_record_clear(d, &record->steps[k]);
}

// Frees a record; NULL: does nothing.
static void record_destroy(cq_device *d, cq_record *record) {
  if (!record) return;
  record_clear(d, record);
  for (int32_t k = 0; k < d->model->substeps; k++) cq_pool_give(&d->context->pool, record->steps[k].grid);
  cq_free(record->steps);
  cq_free(record);
}

// Sets *out to a checkpoint: references to the live state and its order of particles, and its step. CQ_OK or CQ_MEMORY.
static cq_status mark_create(cq_device *d, cq_mark **out) {
  cq_mark *mark = (cq_mark *)cq_alloc(1, sizeof *mark, "checkpoint");
  if (!mark) return CQ_MEMORY;
  *mark = {cq_cuda_slice_retain(d->live), cq_cuda_arrangement_retain(d->arrangement), d->step};
  *out = mark;
  return CQ_OK;
}

// Frees a checkpoint; NULL: does nothing.
static void mark_destroy(cq_device *d, cq_mark *mark) {
  if (!mark) return;
  cq_cuda_slice_release(d, mark->slice);
  cq_cuda_arrangement_release(d, mark->arrangement);
  cq_free(mark);
}

// Makes the state of a checkpoint live again: its memory, its order of particles and its step.
static void resume(cq_device *d, const cq_mark *m) { cq_cuda_resume(d, m->slice, m->arrangement, m->step); }

// The size in bytes of a block of device memory; 0 if memory is NULL.
static int64_t bytes_of(const cq_memory *memory) { return memory ? (int64_t)memory->bytes : 0; }
// The size in bytes of the live arrangement (order of particles, their constants, tiles).
static int64_t arrangement_bytes(const cq_device *d) {
  return bytes_of(d->arrangement->by_slot) + bytes_of(d->arrangement->by_tile);
}

// The size in bytes of a checkpoint, by which checkpoints are scheduled.
static int64_t mark_bytes(const cq_device *d) { return bytes_of(d->live->memory) + arrangement_bytes(d); }

// An estimate of the bytes that the record of a control step takes: for each engine step a state and grid nodes, which
// may grow by half. Sorting, in one engine step of ten, costs another state.
static int64_t record_bytes(const cq_device *d) {
  const int64_t grid = (int64_t)d->arrangement->block_count * CQ_TILE_NODES * (int64_t)cq_node_size(d);
  // nothing is sorted, and nodes are kept where walls or pins may hold them
  if (d->reference) return d->model->substeps * (bytes_of(d->live->memory) + (cq_cuda_keeps_grid(d) ? grid : 0));
  return d->model->substeps * (bytes_of(d->live->memory) + grid + grid / 2 + mark_bytes(d) / 10);
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

// The gradients of scene number `scene` on the host, complete after cq_cuda_finish.
static const cq_gradients *gradients(const cq_device *d, int32_t scene) { return &d->gradients[scene]; }

// The CUDA backend as a table of functions (cq_backend), through which the engine calls every device.
static cq_backend make_table(void) {
  cq_backend b = {};
  b.name = "cuda";
  b.context_create = cq_cuda_context_create;
  b.context_destroy = cq_cuda_context_destroy;
  b.describe = describe;
  b.timers = cq_cuda_timer_read;
  b.create = cq_cuda_create;
  b.destroy = cq_cuda_destroy;
  b.begin = cq_cuda_begin;
  b.advance = cq_cuda_advance;
  b.health = health;
  b.record_create = record_create;
  b.record_clear = record_clear;
  b.record_destroy = record_destroy;
  b.mark_create = mark_create;
  b.mark_destroy = mark_destroy;
  b.resume = resume;
  b.mark_bytes = mark_bytes;
  b.record_bytes = record_bytes;
  b.begin_adjoint = cq_cuda_begin_adjoint;
  b.pass_adjoint = cq_cuda_pass_adjoint;
  b.discount_adjoint = cq_cuda_discount_adjoint;
  b.reverse = cq_cuda_reverse;
  b.finish = cq_cuda_finish;
  b.gradients = gradients;
  b.read = cq_cuda_read;
  b.read_adjoint = cq_cuda_read_adjoint;
  b.runs_policies = 1;
  b.memory_available = memory_available;
  return b;
}

// The table of the CUDA backend's functions, filled at the first call; an exported function of the shared object.
const cq_backend *cq_backend_cuda(void) {
  static const cq_backend table = make_table();
  return &table;
}
