// device_read: readouts of all scenes on the CPU, and their adjoints. Long lists of particles are spread over the
// threads, in portions whose sums are added in order, so that results do not depend on the number of threads.
#include "device.h"
#include <string.h>

enum {
  READ_PART = 2048,          // entries of a list that one thread reads at a time
  READ_TOGETHER = 16384,     // entries, below which waking the threads costs more than they save
};

typedef struct reading {
  cq_device *device;
  const cq_readout *readout;
  int64_t count;             // elements of out of one scene
  double *out;
  const double *grad_out;
  uint32_t summed;           // fields whose sums are wanted
  int64_t parts;             // of all groups of one scene
  int32_t width;             // sums of a part
} reading;

// The number of portions, of READ_PART list entries, into which the sum over a group of a readout is cut. It depends on
// the group alone, so that sums do not depend on the number of threads.
static int64_t parts_of(const cq_readout *r, int32_t group) {
  return (r->group_start[group + 1] - r->group_start[group] + READ_PART - 1) / READ_PART;
}

// The index in one scene's output of a readout at which the numbers of quantity f begin for list entry `entry` (of a
// gather) or for `group` (of any other kind). dim: 2 or 3.
static int64_t offset_of(const cq_readout *r, int32_t dim, int32_t f, int64_t entry, int32_t group) {
  const uint32_t before = r->fields & ((1u << f) - 1), own = r->fields & 1u << f;
  const int64_t rows =
      r->kind == CQ_READOUT_GATHER ? r->group_start[r->group_count] - r->group_start[0] : r->group_count;
  const int64_t row = r->kind == CQ_READOUT_GATHER ? entry - r->group_start[0] : group;
  return rows * cq_readout_width(r->kind, before, dim) + row * cq_readout_width(r->kind, own, dim);
}

// The part of one thread (number `rank` of `size`) in a readout: for every size-th portion of the groups of all scenes,
// sums it into device->sums, or copies its entries to the output of a gather.
static void read_parts(const reading *job, int rank, int size) {
  const cq_readout *r = job->readout;
  int64_t index = 0;
  for (int32_t s = 0; s < job->device->batch; s++) {
    const cq_scene *scene = &job->device->scenes[s];
    for (int32_t g = 0; g < r->group_count; g++)
      for (int64_t k = r->group_start[g]; k < r->group_start[g + 1]; k += READ_PART, index++) {
        if (index % size != rank) continue;
        const int64_t end = k + READ_PART < r->group_start[g + 1] ? k + READ_PART : r->group_start[g + 1];
        if (r->kind != CQ_READOUT_GATHER) {
          scene->kernels->read_sums(scene, r, job->summed, k, end, job->device->sums + index * job->width);
          continue;
        }
        double *out[CQ_QUANTITY_COUNT];
        for (int32_t f = 0; f < CQ_QUANTITY_COUNT; f++)
          out[f] = job->out + s * job->count + offset_of(r, scene->model->dim, f, k, g);
        scene->kernels->read_fields(scene, r, k, end, out);
      }
  }
}

// Sets sums {job->width} to the sum of the portions of a group, in order. *part: the group's first portion in
// device->sums; moved on to that of the next group.
static void add_parts(const reading *job, int32_t group, const double **part, double *sums) {
  memset(sums, 0, (size_t)job->width * sizeof *sums);
  for (int64_t k = parts_of(job->readout, group); k > 0; k--, *part += job->width)
    for (int32_t i = 0; i < job->width; i++) sums[i] += (*part)[i];
}

// In worlds with reference grids, before a readout: computes the particles that readouts see from the state of the
// nodes, in all scenes, by all threads of the pool. Returns this thread (number `rank` of `size`) as a worker.
static cq_worker observe(const reading *job, int rank, int size) {
  cq_worker worker = {
      .rank = rank, .size = size, .barrier = cq_thread_pool_barrier(job->device->context->thread_pool, size)};
  for (int32_t s = 0; s < job->device->batch; s++) cq_reference_observe(&job->device->scenes[s], &worker);
  return worker;
}

// The share of thread number `rank` of `size` in a readout of all scenes, for cq_thread_pool_run. argument: reading.
static void read_job(void *argument, int rank, int size) {
  observe(argument, rank, size);
  read_parts(argument, rank, size);
}

// The share of thread number `rank` of `size` in the adjoint of a readout, for cq_thread_pool_run. argument: reading.
// Particles may be listed twice: each thread goes through all lists, and adds to particles of its own chunks.
static void read_adjoint_job(void *argument, int rank, int size) {
  reading *job = argument;
  const cq_readout *r = job->readout;
  cq_worker worker = observe(job, rank, size);
  if (r->kind != CQ_READOUT_GATHER) read_parts(job, rank, size);
  cq_worker_wait(&worker);
  const double *part = job->device->sums;
  for (int32_t s = 0; s < job->device->batch; s++) {
    cq_scene *scene = &job->device->scenes[s];
    int begin, end;
    cq_worker_share(&worker, scene->chunks, &begin, &end);
    for (int32_t g = 0; g < r->group_count; g++) {
      double sums[CQ_READ_SUMS_MAX];
      cq_group_grad out = {.sums = sums};
      if (r->kind != CQ_READOUT_GATHER) add_parts(job, g, &part, sums);
      for (int32_t f = 0; f < CQ_QUANTITY_COUNT; f++)
        out.grad[f] = job->grad_out + s * job->count + offset_of(r, scene->model->dim, f, r->group_start[g], g);
      scene->kernels->read_adj(scene, r, g, begin, end, &out);
    }
  }
}

// Fills in the rest of a job and runs `function`, read_job or read_adjoint_job, on as many threads as `choice` says;
// records the time in choice and in the phase timers. CQ_OK or CQ_MEMORY.
static cq_status read_together(reading *job, cq_thread_pool_function *function, cq_thread_choice *choice) {
  const double start = cq_clock(), ticks = cq_ticks();
  cq_device *device = job->device;
  const cq_readout *r = job->readout;
  const int64_t entries = (r->group_start[r->group_count] - r->group_start[0]) * device->batch;
  job->width = 1 + cq_readout_width(r->kind, job->summed, device->context->model->dim);
  for (int32_t g = 0; g < r->group_count; g++) job->parts += parts_of(r, g);
  const int64_t wanted = r->kind == CQ_READOUT_GATHER ? 0 : job->parts * job->width * device->batch;
  if (device->sums_capacity < wanted) {
    cq_free(device->sums);
    device->sums = cq_alloc((size_t)wanted, sizeof *device->sums, "readout");
    device->sums_capacity = device->sums ? wanted : 0;
    if (!device->sums) return CQ_MEMORY;
  }
  const int most = entries < READ_TOGETHER ? 1 : cq_thread_pool_size(device->context->thread_pool),
            threads = cq_thread_choice_next(choice, most);
  cq_thread_pool_run(device->context->thread_pool, threads, function, job);
  const double seconds = cq_clock() - start;
  // for each number that was read: readouts are of any size
  const double numbers = (double)entries * cq_readout_width(CQ_READOUT_MEAN, r->fields, device->context->model->dim);
  if (most > 1) cq_thread_choice_record(choice, threads, numbers, seconds);
  device->context->ticks[CQ_PHASE_READOUT] += cq_ticks() - ticks;
  return CQ_OK;
}

// Computes a readout of the live state of all scenes into out {batch, count}, `count` numbers for each scene
// (cq_readout_count). CQ_OK or CQ_MEMORY.
cq_status cq_device_read(cq_device *device, const cq_readout *readout, int64_t count, double *out) {
  reading job = {.device = device, .readout = readout, .count = count, .out = out, .summed = readout->fields};
  const cq_status status = read_together(&job, read_job, &device->context->reading);
  const double *part = device->sums;
  if (status || readout->kind == CQ_READOUT_GATHER) return status;
  const int32_t dim = device->context->model->dim;
  for (int32_t s = 0; s < device->batch; s++)
    for (int32_t g = 0; g < readout->group_count; g++) {
      double sums[CQ_READ_SUMS_MAX];
      add_parts(&job, g, &part, sums);
      for (int32_t f = 0, at = 1; f < CQ_QUANTITY_COUNT; f++) {
        const int32_t width = cq_readout_width(readout->kind, readout->fields & 1u << f, dim);
        double *to = out + s * count + offset_of(readout, dim, f, 0, g);
        for (int32_t i = 0; i < width; i++) to[i] = readout->kind == CQ_READOUT_SUM ? sums[at++] : sums[at++] / sums[0];
      }
    }
  return CQ_OK;
}

// Adjoint of cq_device_read: from grad_out {batch, count}, adds to the adjoint of the live state of all scenes and to
// the gradients of constants, mass and volume. CQ_OK or CQ_MEMORY.
cq_status cq_device_read_adjoint(cq_device *device, const cq_readout *readout, int64_t count, const double *grad_out) {
  const int by_weight = cq_scene_weights_adj(&device->scenes[0], readout) && readout->kind != CQ_READOUT_SUM;
  reading job = {.device = device, .readout = readout, .count = count, .grad_out = grad_out};
  job.summed = by_weight ? readout->fields : 0;
  for (int32_t s = 0; s < device->batch; s++) device->scenes[s].reference.read = 1;
  return read_together(&job, read_adjoint_job, &device->context->reading_adj);
}
