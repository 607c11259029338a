// device: the CPU behind the table of operations. A single scene is shared by all threads;
// several are spread over them.
#include "between.h"
#include "thread_choice.h"
#include "thread_pool.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct cq_context {
  const cq_model *model;
  const cq_kernels *kernels;
  cq_thread_pool *thread_pool;
  cq_thread_choice forward, backward, reading, reading_adj;   // of all rollouts: each has the same particles
  double ticks[CQ_PHASE_COUNT];
  char description[128];
};

enum {
  TIMED_CHUNKS = 64,         // scenes with fewer chunks are not timed in every call
  TIMED_EVERY = 7,           // but in every seventh: a prime, because other work recurs every second or tenth call
};

struct cq_device {
  cq_context *context;
  int32_t calls, untimed;    // that work on all scenes; those since one was timed
  int32_t batch;
  cq_scene *scenes;
  cq_status *status;         // {batch} of the last work on all scenes
  cq_health health;
  double *sums;              // of readouts
  int64_t sums_capacity;
};

struct cq_record {
  cq_step_record *steps;     // {batch, substeps}
};

typedef struct scene_mark {
  cq_slice *slice;
  cq_arrangement *arrangement;
  double drift;
  int64_t step;
} scene_mark;

struct cq_mark {
  scene_mark *scenes;        // {batch}
};

// ---- context --------------------------------------------------------------------------------------------------------

static void context_destroy(cq_context *context) {
  if (!context) return;
  cq_thread_pool_destroy(context->thread_pool);
  cq_free(context);
}

static cq_status context_create(const cq_model *model, cq_context **out) {
  const cq_kernels *kernels;
  const cq_status status = cq_kernels_choose(model, &kernels);
  if (status) return status;
  if (model->threads < 0) return cq_fail(CQ_INVALID, "threads is %d; it must be 0 (all cores) or more", model->threads);
  cq_context *context = cq_alloc(1, sizeof *context, "device");
  if (!context) return CQ_MEMORY;
  context->model = model;
  context->kernels = kernels;
  context->thread_pool = cq_thread_pool_create(model->threads);
  if (!context->thread_pool) {
    context_destroy(context);
    return CQ_MEMORY;
  }
  const int threads = cq_thread_pool_size(context->thread_pool);
  if (model->threads > threads) {
    context_destroy(context);
    return cq_fail(CQ_INVALID, "threads is %d; this machine could start %d", model->threads, threads);
  }
  snprintf(context->description, sizeof context->description, "CPU, %s, %d thread%s, float%d", kernels->name, threads,
           threads == 1 ? "" : "s", kernels->real_bytes * 8);
  *out = context;
  return CQ_OK;
}

static const char *describe(const cq_context *context) { return context->description; }

static void timers(cq_context *context, double seconds[CQ_PHASE_COUNT], int32_t reset) {
  const double tick = cq_tick();
  for (int k = 0; k < CQ_PHASE_COUNT; k++) seconds[k] = context->ticks[k] * tick;
  if (reset) memset(context->ticks, 0, sizeof context->ticks);
}

// ---- running all scenes ---------------------------------------------------------------------------------------------

// one piece of work for each scene of a device
typedef cq_status scene_work(cq_scene *scene, cq_worker *worker, int32_t index, void *argument);

typedef struct scene_job {
  cq_device *device;
  scene_work *work;
  void *argument;
  double weight;             // of the times of this call, 0: it is not timed
  atomic_int next;           // scene to take, when each has a thread of its own
  cq_status *status;         // {batch}
} scene_job;

// the sentence of a failure lives in the thread that met it
static void keep_status(const scene_job *j, int32_t s, cq_status status) {
  j->status[s] = status;
  if (status) snprintf(j->device->scenes[s].sentence, sizeof j->device->scenes[s].sentence, "%s", cq_error());
}

static void start_timers(const scene_job *j, cq_worker *worker) {
  if (j->weight == 0) return;
  worker->timers = j->device->context->ticks;
  worker->weight = j->weight;
  worker->last = cq_ticks();
}

// How many calls one timed call stands for: with few particles, reading the clock costs too much for each.
static double weight_of_call(cq_device *device) {
  const int32_t every = device->batch * device->scenes[0].chunks < TIMED_CHUNKS ? TIMED_EVERY : 1;
  device->untimed++;
  if (device->calls++ % every) return 0;
  const double weight = device->untimed;
  device->untimed = 0;
  return weight;
}

// One thread's share of a scene_work: its part of the only scene, or whole scenes of a batch.
static void run_job(void *argument, int rank, int size) {
  scene_job *j = argument;
  cq_device *device = j->device;
  if (device->batch == 1) {
    cq_worker worker = {
        .rank = rank, .size = size, .barrier = cq_thread_pool_barrier(device->context->thread_pool, size)};
    if (rank == 0) start_timers(j, &worker);
    const cq_status status = j->work(&device->scenes[0], &worker, 0, j->argument);
    if (rank == 0) keep_status(j, 0, status);
    return;
  }
  cq_worker alone = {.rank = 0, .size = 1};
  if (rank == 0) start_timers(j, &alone);
  for (int32_t s; (s = atomic_fetch_add(&j->next, 1)) < device->batch;)
    keep_status(j, s, j->work(&device->scenes[s], &alone, s, j->argument));
}

static int most_threads(const cq_device *device) {
  const int threads = cq_thread_pool_size(device->context->thread_pool),
            pieces = device->batch > 1 ? device->batch : device->scenes[0].ranges;
  return threads < pieces ? threads : pieces;
}

// Does a piece of work for all scenes, and returns the first failure. choice: number of threads for a single scene,
// which records this call; NULL: the number that suits forward steps.
static cq_status run(cq_device *device, scene_work *work, void *argument, cq_thread_choice *choice) {
  scene_job j = {.device = device, .work = work, .argument = argument, .status = device->status};
  j.weight = weight_of_call(device);
  const int most = most_threads(device), chosen = device->batch == 1 && most > 1;
  const int threads = !chosen ? most : choice ? cq_thread_choice_next(choice, most)
                                              : cq_thread_choice_best(&device->context->forward, most);
  const double start = chosen ? cq_clock() : 0;
  cq_thread_pool_run(device->context->thread_pool, threads, run_job, &j);
  if (chosen && choice) cq_thread_choice_record(choice, threads, 1, cq_clock() - start);
  int32_t first = 0;
  while (first < device->batch && !device->status[first]) first++;
  if (first == device->batch) return CQ_OK;
  const cq_scene *failed = &device->scenes[first];
  if (device->status[first] != CQ_UNSTABLE) return cq_fail(device->status[first], "%s", failed->sentence);
  device->health = failed->health;
  device->health.scene = first;
  return cq_health_fail(&device->health, device->batch);
}

// ---- device ---------------------------------------------------------------------------------------------------------

static void destroy(cq_device *device) {
  if (!device) return;
  for (int32_t s = 0; device->scenes && s < device->batch; s++) cq_scene_destroy(&device->scenes[s]);
  cq_free(device->scenes);
  cq_free(device->status);
  cq_free(device->sums);
  cq_free(device);
}

static cq_status create(cq_context *context, int32_t batch, int32_t differentiable, cq_device **out) {
  cq_device *device = cq_alloc(1, sizeof *device, "rollout");
  if (!device) return CQ_MEMORY;
  device->context = context;
  device->batch = batch;
  device->scenes = cq_alloc((size_t)batch, sizeof *device->scenes, "scenes of a batch");
  device->status = cq_alloc((size_t)batch, sizeof *device->status, "scenes of a batch");
  cq_status status = device->scenes && device->status ? CQ_OK : CQ_MEMORY;
  for (int32_t s = 0; s < batch && !status; s++)
    status = cq_scene_create(&device->scenes[s], context->model, context->kernels, differentiable);
  if (status)
    destroy(device);
  else
    *out = device;
  return status;
}

// where scenes begin: with their own values, or in scenes of another device
typedef struct beginning {
  const cq_values *values;
  const cq_device *from;     // NULL: none does
  const int32_t *scene;
} beginning;

static cq_status begin_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  const beginning *b = argument;
  if (worker->rank == 0) {
    scene->values = b->values[index];
    for (int r = 0; r < CQ_RANGES_MAX; r++) scene->rows_sorted_at[r] = -1;
  }
  cq_worker_wait(worker);
  if (!b->from || b->scene[index] < 0) return cq_scene_begin(scene, worker);
  return cq_scene_begin_from(scene, worker, &b->from->scenes[b->scene[index]]);
}

static cq_status begin_from(cq_device *device, const cq_values *values, const cq_device *from, const int32_t *scene) {
  beginning b = {values, from, scene};
  device->health = (cq_health){0};
  return run(device, begin_scene, &b, NULL);
}

// Begins a rollout of all scenes. All values are loaded again, changed or not: that costs about as much as a step.
static cq_status begin(cq_device *device, const cq_values *values, uint64_t changed) {
  (void)changed;
  return begin_from(device, values, NULL, NULL);
}

// the arguments of one control step
typedef struct one_step {
  const double *signals, *forces;
  cq_step_record *steps;
  double *grad_signals, *grad_forces;
  int64_t at, batch;         // its index in the rollout; scenes
  const cq_wall_track *track;
} one_step;

// control step i of some
static one_step step_of(const cq_device *device, const cq_controls *c, cq_record *const *records, int32_t i) {
  const cq_model *m = device->context->model;
  const int64_t signals = (int64_t)i * device->batch * m->actuator_count,
                forces = i * device->batch * m->force_count * m->dim;
  return (one_step){
      c->signals + signals, c->forces ? c->forces + forces : NULL, records ? records[i]->steps : NULL,
      c->grad_signals ? c->grad_signals + signals : NULL, c->grad_forces ? c->grad_forces + forces : NULL,
      c->at + i, device->batch, c->track,
  };
}

// Sets the velocities of walls and the gravity of a scene in a control step, and the arrays that take impulses and
// gradients.
static void set_walls(cq_scene *scene, int32_t index, const one_step *c) {
  const cq_model *m = scene->model;
  const cq_wall_track *t = c->track;
  const int64_t row = c->at * c->batch + index, velocity = row * m->wall_count * m->dim;
  const int64_t impulse = row * m->contact_count * cq_contact_width(m->dim);
  if (t->velocity) scene->kernels->load_walls(scene, c->at * m->substeps, t->velocity + velocity, t->place + velocity);
  if (t->gravity) scene->kernels->load_gravity(scene, t->gravity + row * m->dim);
  scene->grad_gravity = t->grad_gravity && t->gravity ? t->grad_gravity + row * m->dim : NULL;
  scene->impulse_out = t->impulse ? t->impulse + impulse : NULL;
  scene->grad_impulse = t->grad_impulse ? t->grad_impulse + impulse : NULL;
  scene->grad_wall_velocity = t->grad_velocity ? t->grad_velocity + velocity : NULL;
  scene->grad_wall_place = t->grad_place ? t->grad_place + velocity : NULL;
  scene->implicit.report = t->solver ? t->solver + row * m->substeps * CQ_SOLVER_WIDTH : NULL;
}

static cq_status advance_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  const one_step *c = argument;
  const cq_model *m = scene->model;
  if (worker->rank == 0) {
    scene->signals = c->signals + (int64_t)index * m->actuator_count;
    scene->forces = c->forces ? c->forces + index * m->force_count * m->dim : NULL;
    set_walls(scene, index, c);
  }
  cq_worker_wait(worker);
  return cq_scene_advance(scene, worker, c->steps ? c->steps + (int64_t)index * m->substeps : NULL);
}

// makes the first of the control steps
static cq_status advance(cq_device *device, const cq_controls *controls, cq_record *const *records,
                         int32_t *steps_done) {
  one_step first = step_of(device, controls, records, 0);
  const cq_status status = run(device, advance_scene, &first, &device->context->forward);
  *steps_done = !status;
  return status;
}

static const cq_health *health(const cq_device *device) { return &device->health; }

// ---- records and marks ----------------------------------------------------------------------------------------------

static int64_t step_count(const cq_device *device) { return (int64_t)device->batch * device->context->model->substeps; }

static cq_scene *scene_of_step(const cq_device *device, int64_t k) {
  return &device->scenes[k / device->context->model->substeps];
}

static cq_status record_create(cq_device *device, cq_record **out) {
  cq_record *record = cq_alloc(1, sizeof *record, "memo record");
  if (!record) return CQ_MEMORY;
  record->steps = cq_alloc((size_t)step_count(device), sizeof *record->steps, "memo record");
  if (!record->steps) {
    cq_free(record);
    return CQ_MEMORY;
  }
  *out = record;
  return CQ_OK;
}

static void record_clear(cq_device *device, cq_record *record) {
  for (int64_t k = 0; k < step_count(device); k++) cq_step_record_clear(scene_of_step(device, k), &record->steps[k]);
}

static void record_destroy(cq_device *device, cq_record *record) {
  if (!record) return;
  for (int64_t k = 0; k < step_count(device); k++) cq_step_record_destroy(scene_of_step(device, k), &record->steps[k]);
  cq_free(record->steps);
  cq_free(record);
}

static cq_status mark_create(cq_device *device, cq_mark **out) {
  cq_mark *mark = cq_alloc(1, sizeof *mark, "checkpoint");
  if (!mark) return CQ_MEMORY;
  mark->scenes = cq_alloc((size_t)device->batch, sizeof *mark->scenes, "checkpoint");
  if (!mark->scenes) {
    cq_free(mark);
    return CQ_MEMORY;
  }
  for (int32_t s = 0; s < device->batch; s++) {
    const cq_scene *scene = &device->scenes[s];
    mark->scenes[s] = (scene_mark){cq_slice_retain(scene->live), cq_arrangement_retain(scene->arrangement),
                                   scene->drift, scene->step};
  }
  *out = mark;
  return CQ_OK;
}

static void mark_destroy(cq_device *device, cq_mark *mark) {
  if (!mark) return;
  for (int32_t s = 0; s < device->batch; s++) {
    cq_slice_release(&device->scenes[s], mark->scenes[s].slice);
    cq_arrangement_release(&device->scenes[s], mark->scenes[s].arrangement);
  }
  cq_free(mark->scenes);
  cq_free(mark);
}

static void resume(cq_device *device, const cq_mark *mark) {
  for (int32_t s = 0; s < device->batch; s++) {
    const scene_mark *m = &mark->scenes[s];
    cq_scene_resume(&device->scenes[s], m->slice, m->arrangement, m->drift, m->step);
  }
}

static int64_t mark_bytes(const cq_device *device) { return device->batch * cq_scene_mark_bytes(&device->scenes[0]); }

static int64_t record_bytes(const cq_device *device) {
  int64_t bytes = 0;
  for (int32_t s = 0; s < device->batch; s++) bytes += cq_scene_record_bytes(&device->scenes[s]);
  return bytes;
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

static cq_status begin_adjoint_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  (void)index, (void)argument;
  cq_scene_begin_adjoint(scene, worker);   // all adjoints and gradients are 0
  return CQ_OK;
}

static cq_status begin_adjoint(cq_device *device, uint64_t wanted) {
  for (int32_t s = 0; s < device->batch; s++) device->scenes[s].wanted = wanted;
  return run(device, begin_adjoint_scene, NULL, NULL);
}

static cq_status reverse_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  const one_step *c = argument;
  const cq_model *m = scene->model;
  const int64_t forces = m->force_count * m->dim;
  if (worker->rank == 0) {
    scene->signals = c->signals + (int64_t)index * m->actuator_count;
    scene->forces = c->forces ? c->forces + index * forces : NULL;
    set_walls(scene, index, c);
  }
  cq_worker_wait(worker);
  const cq_status status = cq_scene_reverse(scene, worker, c->steps + (int64_t)index * m->substeps);
  if (worker->rank == 0 && c->grad_signals)
    memcpy(c->grad_signals + (int64_t)index * m->actuator_count, scene->signals_adj,
           (size_t)m->actuator_count * sizeof(double));
  if (worker->rank == 0 && c->grad_forces)
    memcpy(c->grad_forces + index * forces, scene->forces_adj, (size_t)forces * sizeof(double));
  return status;
}

static cq_status discount_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  (void)index;
  return cq_scene_discount_adj(scene, worker, *(const double *)argument);
}

static cq_status discount_adjoint(cq_device *device, double factor) {
  return run(device, discount_scene, &factor, NULL);
}

// The norm of each scene's adjoint; adjoints longer than `most` are scaled down to it.
static cq_status adjoint_norms(cq_device *device, double most, double *norms) {
  for (int32_t s = 0; s < device->batch; s++) norms[s] = cq_scene_limit_adj(&device->scenes[s], most);
  return CQ_OK;
}

// In the order of the scenes, for several may have gone on from one.
static cq_status pass_adjoint(cq_device *device, cq_device *from, const int32_t *scene) {
  for (int32_t s = 0; s < device->batch; s++)
    if (scene[s] >= 0) cq_scene_pass_adjoint(&device->scenes[s], from ? &from->scenes[scene[s]] : NULL);
  return CQ_OK;
}

// reverses the last of the control steps
static cq_status reverse(cq_device *device, const cq_controls *controls, cq_record *const *records,
                         int32_t *steps_done) {
  one_step last = step_of(device, controls, records, controls->count - 1);
  const cq_status status = run(device, reverse_scene, &last, &device->context->backward);
  *steps_done = !status;
  return status;
}

static cq_status finish_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  (void)index, (void)argument;
  cq_scene_finish(scene, worker);
  return CQ_OK;
}

static cq_status finish(cq_device *device) { return run(device, finish_scene, NULL, NULL); }

static const cq_gradients *gradients(const cq_device *d, int32_t scene) { return &d->scenes[scene].gradients; }

// ---- readouts -------------------------------------------------------------------------------------------------------

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

static int64_t parts_of(const cq_readout *r, int32_t group) {
  return (r->group_start[group + 1] - r->group_start[group] + READ_PART - 1) / READ_PART;
}

// elements of a scene's out before the part of field f that belongs to entry (of a gather) or group
static int64_t offset_of(const cq_readout *r, int32_t dim, int32_t f, int64_t entry, int32_t group) {
  const uint32_t before = r->fields & ((1u << f) - 1), own = r->fields & 1u << f;
  const int64_t rows =
      r->kind == CQ_READOUT_GATHER ? r->group_start[r->group_count] - r->group_start[0] : r->group_count;
  const int64_t row = r->kind == CQ_READOUT_GATHER ? entry - r->group_start[0] : group;
  return rows * cq_readout_width(r->kind, before, dim) + row * cq_readout_width(r->kind, own, dim);
}

// parts of all groups of all scenes over the threads
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

static void add_parts(const reading *job, int32_t group, const double **part, double *sums) {
  memset(sums, 0, (size_t)job->width * sizeof *sums);
  for (int64_t k = parts_of(job->readout, group); k > 0; k--, *part += job->width)
    for (int32_t i = 0; i < job->width; i++) sums[i] += (*part)[i];
}

// the particles that readouts see, of steps that have none
static cq_worker observe(const reading *job, int rank, int size) {
  cq_worker worker = {
      .rank = rank, .size = size, .barrier = cq_thread_pool_barrier(job->device->context->thread_pool, size)};
  for (int32_t s = 0; s < job->device->batch; s++) cq_reference_observe(&job->device->scenes[s], &worker);
  return worker;
}

static void read_job(void *argument, int rank, int size) {
  observe(argument, rank, size);
  read_parts(argument, rank, size);
}

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

// Runs a job of a readout on as many threads as choice says, and records its time.
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

static cq_status read_scenes(cq_device *device, const cq_readout *readout, int64_t count, double *out) {
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

static cq_status read_adjoint(cq_device *device, const cq_readout *readout, int64_t count, const double *grad_out) {
  const int by_weight = cq_scene_weights_adj(&device->scenes[0], readout) && readout->kind != CQ_READOUT_SUM;
  reading job = {.device = device, .readout = readout, .count = count, .grad_out = grad_out};
  job.summed = by_weight ? readout->fields : 0;
  for (int32_t s = 0; s < device->batch; s++) device->scenes[s].reference.read = 1;
  return read_together(&job, read_adjoint_job, &device->context->reading_adj);
}

const cq_backend *cq_backend_cpu(void) {
  static const cq_backend cpu = {
      .name = "cpu",
      .context_create = context_create, .context_destroy = context_destroy, .describe = describe, .timers = timers,
      .create = create, .destroy = destroy, .begin = begin, .advance = advance, .health = health,
      .record_create = record_create, .record_clear = record_clear, .record_destroy = record_destroy,
      .mark_create = mark_create, .mark_destroy = mark_destroy, .resume = resume,
      .mark_bytes = mark_bytes, .record_bytes = record_bytes,
      .begin_adjoint = begin_adjoint, .reverse = reverse, .finish = finish, .gradients = gradients,
      .read = read_scenes, .read_adjoint = read_adjoint, .changes_gravity = 1,
      .begin_from = begin_from, .pass_adjoint = pass_adjoint,
      .discount_adjoint = discount_adjoint, .adjoint_norms = adjoint_norms,
  };
  return &cpu;
}
