// device: the CPU as a backend, a table of operations on all scenes of a rollout. A single scene is shared by all
// threads of the pool; of several scenes each is run by one thread.
#include "device.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
  TIMED_CHUNKS = 64,         // scenes with fewer chunks are not timed in every call
  TIMED_EVERY = 7,           // but in every seventh: a prime, because other work recurs every second or tenth call
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

// Ends the threads of a context and frees it; NULL: nothing.
static void context_destroy(cq_context *context) {
  if (!context) return;
  cq_thread_pool_destroy(context->thread_pool);
  cq_free(context);
}

// Creates *out, what all rollouts of a world share on the CPU: the kernels for its model, and a pool of threads. CQ_OK,
// CQ_MEMORY, or CQ_INVALID with a sentence: there are no such kernels here, or too many threads are asked for.
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

// The device in a few words, as cq_world_device returns it.
static const char *describe(const cq_context *context) { return context->description; }

// Sets seconds to the time spent in each phase since the last reset, as the first thread of the pool measures it.
// reset: 1 clears the timers.
static void timers(cq_context *context, double seconds[CQ_PHASE_COUNT], int32_t reset) {
  const double tick = cq_tick();
  for (int k = 0; k < CQ_PHASE_COUNT; k++) seconds[k] = context->ticks[k] * tick;
  if (reset) memset(context->ticks, 0, sizeof context->ticks);
}

// ---- running all scenes ---------------------------------------------------------------------------------------------

// work on one scene of a device, which `run` calls for each: index of the scene in the batch; argument: the work's own
typedef cq_status scene_work(cq_scene *scene, cq_worker *worker, int32_t index, void *argument);

typedef struct scene_job {
  cq_device *device;
  scene_work *work;
  void *argument;
  double weight;             // of the times of this call, 0: it is not timed
  atomic_int next;           // scene to take, when each has a thread of its own
  cq_status *status;         // {batch}
} scene_job;

// Keeps the status of scene number s in the job, and the sentence of a failure in the scene: cq_error belongs to the
// thread that failed, which may not be the caller's.
static void keep_status(const scene_job *j, int32_t s, cq_status status) {
  j->status[s] = status;
  if (status) snprintf(j->device->scenes[s].sentence, sizeof j->device->scenes[s].sentence, "%s", cq_error());
}

// Starts the phase timers of a worker for a job; a job of weight 0 is not timed.
static void start_timers(const scene_job *j, cq_worker *worker) {
  if (j->weight == 0) return;
  worker->timers = j->device->context->ticks;
  worker->weight = j->weight;
  worker->last = cq_ticks();
}

// Returns how many calls this one stands for in the phase timers, or 0 if it is not timed: with few particles, reading
// the clock would cost too much, so that only every seventh call is timed, and counts for all since the last one.
static double weight_of_call(cq_device *device) {
  const int32_t every = device->batch * device->scenes[0].chunks < TIMED_CHUNKS ? TIMED_EVERY : 1;
  device->untimed++;
  if (device->calls++ % every) return 0;
  const double weight = device->untimed;
  device->untimed = 0;
  return weight;
}

// The share of one thread (number `rank` of `size`) in a job, called by cq_thread_pool_run. argument: scene_job. If the
// device has one scene, the thread is one of its workers; of a batch it takes whole scenes in turn, until none is left.
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

// The number of threads that would have work: at most one for each scene of a batch, or one for each range of chunks of
// a single scene.
static int most_threads(const cq_device *device) {
  const int threads = cq_thread_pool_size(device->context->thread_pool),
            pieces = device->batch > 1 ? device->batch : device->scenes[0].ranges;
  return threads < pieces ? threads : pieces;
}

// Runs `work` on all scenes with the threads of the pool. argument: passed to the work. choice: chooses the number of
// threads for a single scene and records the time of this call; NULL: the number that suits forward steps. Returns
// CQ_OK or the status of the first scene that failed; a scene that became unstable is described in device->health.
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

// Frees a device (the scenes of one rollout) and their work memory; NULL: nothing.
static void destroy(cq_device *device) {
  if (!device) return;
  for (int32_t s = 0; device->scenes && s < device->batch; s++) cq_scene_destroy(&device->scenes[s]);
  cq_free(device->scenes);
  cq_free(device->status);
  cq_free(device->sums);
  cq_free(device);
}

// Creates *out, a device: `batch` scenes of the context's model, with adjoints if differentiable is 1. CQ_OK or
// CQ_MEMORY.
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
  int again;                 // the values are those of the last time
  const cq_device *from;     // NULL: none does
  const int32_t *scene;
} beginning;

// A scene_work (see run): starts a scene at step 0, with its values or in another rollout's state. argument: beginning.
static cq_status begin_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  const beginning *b = argument;
  if (worker->rank == 0) {
    scene->values = b->values[index];
    for (int r = 0; r < CQ_RANGES_MAX; r++) scene->rows_sorted_at[r] = -1;
  }
  cq_worker_wait(worker);
  if (!b->from || b->scene[index] < 0)
    return b->again ? cq_scene_begin_again(scene, worker) : cq_scene_begin(scene, worker);
  return cq_scene_begin_from(scene, worker, &b->from->scenes[b->scene[index]]);
}

// Starts a rollout at step 0 in all scenes. values {batch}: fields of each, kept by pointer; changed: bits of fields
// that differ from the last rollout (on the spatial grid all are loaded again, which costs about as much as a step).
// from: NULL, or the device in whose live states scenes begin; scene {batch}: which each takes, -1: its own values.
static cq_status begin(cq_device *device, const cq_values *values, uint64_t changed, const cq_device *from,
                       const int32_t *scene) {
  beginning b = {values, changed == 0, from, scene};
  device->health = (cq_health){0};
  return run(device, begin_scene, &b, NULL);
}

// the arguments of one control step
typedef struct one_step {
  const double *signals, *forces;
  cq_step_record *steps;
  double *grad_signals, *grad_forces;
  int64_t at, batch;         // its index in the rollout; scenes
  const cq_wall_track *track;
} one_step;

// Returns the arguments of control step number i, from 0, of `c`: its signals, forces, record and arrays for gradients.
// records {c->count}; NULL: nothing is recorded.
static one_step step_of(const cq_device *device, const cq_controls *c, cq_record *const *records, int32_t i) {
  const cq_model *m = device->context->model;
  const int64_t signals = (int64_t)i * device->batch * m->actuator_count,
                forces = (int64_t)i * device->batch * m->force_count * m->dim;
  return (one_step){
      c->signals + signals, c->forces ? c->forces + forces : NULL, records ? records[i]->steps : NULL,
      c->grad_signals ? c->grad_signals + signals : NULL, c->grad_forces ? c->grad_forces + forces : NULL,
      c->at + i, device->batch, c->track,
  };
}

// Before a scene's control step: loads the wall velocities and gravity that are given for that step, if any, and sets
// the scene's pointers to the arrays for impulses, gradients and solver reports. index: of the scene in the batch.
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
  scene->grad_wall_velocity = t->grad_velocity && t->velocity ? t->grad_velocity + velocity : NULL;
  scene->grad_wall_place = t->grad_place && t->place ? t->grad_place + velocity : NULL;
  scene->implicit.report = t->solver ? t->solver + row * m->substeps * CQ_SOLVER_WIDTH : NULL;
}

// A scene_work (see run): runs one control step of one scene forward. argument: one_step.
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

// Runs the first of the given control steps forward, in all scenes. *steps_done: set to 1, or 0 if it failed. records
// {count}: takes what the step's adjoint needs; NULL: nothing is recorded.
static cq_status advance(cq_device *device, const cq_controls *controls, cq_record *const *records,
                         int32_t *steps_done) {
  one_step first = step_of(device, controls, records, 0);
  const cq_status status = run(device, advance_scene, &first, &device->context->forward);
  *steps_done = !status;
  return status;
}

// The failure of the last run, as cq_rollout_health returns it: particle, scene and kind; `bad` is 0 if there is none.
static const cq_health *health(const cq_device *device) { return &device->health; }

// ---- records and marks ----------------------------------------------------------------------------------------------

// The number of engine steps in a record (of one control step): substeps times scenes.
static int64_t step_count(const cq_device *device) { return (int64_t)device->batch * device->context->model->substeps; }

// The scene to which engine step k of a record, counted scene by scene from 0, belongs.
static cq_scene *scene_of_step(const cq_device *device, int64_t k) {
  return &device->scenes[k / device->context->model->substeps];
}

// Creates *out, an empty record: what the adjoint of one control step needs of each engine step of all scenes. CQ_OK or
// CQ_MEMORY.
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

// Releases the slices and arrangements that a record refers to; the record may then be filled again.
static void record_clear(cq_device *device, cq_record *record) {
  for (int64_t k = 0; k < step_count(device); k++) cq_step_record_clear(scene_of_step(device, k), &record->steps[k]);
}

// Frees a record, and releases its slices and arrangements; NULL: nothing.
static void record_destroy(cq_device *device, cq_record *record) {
  if (!record) return;
  for (int64_t k = 0; k < step_count(device); k++) cq_step_record_destroy(scene_of_step(device, k), &record->steps[k]);
  cq_free(record->steps);
  cq_free(record);
}

// Creates *out, a checkpoint (mark) of the live states of all scenes: references to slices and arrangements, no copies.
// CQ_OK or CQ_MEMORY.
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

// Frees a checkpoint and releases its slices and arrangements; NULL: nothing.
static void mark_destroy(cq_device *device, cq_mark *mark) {
  if (!mark) return;
  for (int32_t s = 0; s < device->batch; s++) {
    cq_slice_release(&device->scenes[s], mark->scenes[s].slice);
    cq_arrangement_release(&device->scenes[s], mark->scenes[s].arrangement);
  }
  cq_free(mark->scenes);
  cq_free(mark);
}

// Makes the states of a checkpoint live again, in all scenes.
static void resume(cq_device *device, const cq_mark *mark) {
  for (int32_t s = 0; s < device->batch; s++) {
    const scene_mark *m = &mark->scenes[s];
    cq_scene_resume(&device->scenes[s], m->slice, m->arrangement, m->drift, m->step);
  }
}

// The approximate bytes of a checkpoint of all scenes, by which the memo plans how many it can keep.
static int64_t mark_bytes(const cq_device *device) { return device->batch * cq_scene_mark_bytes(&device->scenes[0]); }

// The approximate bytes of the record of one control step of all scenes, by which the memo plans.
static int64_t record_bytes(const cq_device *device) {
  int64_t bytes = 0;
  for (int32_t s = 0; s < device->batch; s++) bytes += cq_scene_record_bytes(&device->scenes[s]);
  return bytes;
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

// A scene_work (see run): sets the adjoint and all gradients of one scene to zero.
static cq_status begin_adjoint_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  (void)index, (void)argument;
  cq_scene_begin_adjoint(scene, worker);   // all adjoints and gradients are 0
  return CQ_OK;
}

// Begins the reverse pass: sets the adjoints and gradients of all scenes to zero. wanted: bits (1 << cq_field) of the
// gradients that will be read.
static cq_status begin_adjoint(cq_device *device, uint64_t wanted) {
  for (int32_t s = 0; s < device->batch; s++) device->scenes[s].wanted = wanted;
  return run(device, begin_adjoint_scene, NULL, NULL);
}

// A scene_work (see run): reverses one control step of one scene. argument: one_step, of whose grad_signals and
// grad_forces the scene's rows are overwritten with its gradients (NULL: they are not wanted).
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

// A scene_work (see run): multiplies the adjoint of one scene's live state by a factor. argument: the factor, a double.
static cq_status discount_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  (void)index;
  return cq_scene_discount_adj(scene, worker, *(const double *)argument);
}

// Multiplies the adjoint of the live state of all scenes by a factor, between two control steps of a reverse pass.
static cq_status discount_adjoint(cq_device *device, double factor) {
  return run(device, discount_scene, &factor, NULL);
}

// At step 0 of a reverse pass: adds the adjoint of each scene's first state to that of the scene of `from` in which it
// began (scene {batch}, -1: in none), and clears it. from NULL: only clears. One by one, as several may share one.
static cq_status pass_adjoint(cq_device *device, cq_device *from, const int32_t *scene) {
  for (int32_t s = 0; s < device->batch; s++)
    if (scene[s] >= 0) cq_scene_pass_adjoint(&device->scenes[s], from ? &from->scenes[scene[s]] : NULL);
  return CQ_OK;
}

// Reverses the last of the given control steps, in all scenes. Before that, where controls->rules has norms, notes the
// norm of each scene's adjoint there and scales longer ones to rules->most. *steps_done: set to 1, or 0 if it failed.
static cq_status reverse(cq_device *device, const cq_controls *controls, cq_record *const *records,
                         int32_t *steps_done) {
  const cq_adjoint_rules *rules = controls->rules;
  one_step last = step_of(device, controls, records, controls->count - 1);
  for (int32_t s = 0; s < device->batch && rules && rules->norms; s++)
    rules->norms[(int64_t)(controls->at + controls->count - 1) * device->batch + s] =
        cq_scene_limit_adj(&device->scenes[s], rules->most);
  const cq_status status = run(device, reverse_scene, &last, &device->context->backward);
  *steps_done = !status;
  return status;
}

// A scene_work (see run): adds the adjoint of one scene's first state to its gradients (cq_scene_finish).
static cq_status finish_scene(cq_scene *scene, cq_worker *worker, int32_t index, void *argument) {
  (void)index, (void)argument;
  cq_scene_finish(scene, worker);
  return CQ_OK;
}

// Ends the reverse pass at step 0, for all scenes: their gradients, in the user's order, are then complete.
static cq_status finish(cq_device *device) { return run(device, finish_scene, NULL, NULL); }

// Gradients of scene number `scene` by fields or slots (constants of laws), in the user's order; complete after finish.
static const cq_gradients *gradients(const cq_device *d, int32_t scene) { return &d->scenes[scene].gradients; }

// Returns the CPU backend: its table of operations on contexts, devices, records and checkpoints.
const cq_backend *cq_backend_cpu(void) {
  static const cq_backend cpu = {
      .name = "cpu",
      .context_create = context_create, .context_destroy = context_destroy, .describe = describe, .timers = timers,
      .create = create, .destroy = destroy, .begin = begin, .advance = advance, .health = health,
      .record_create = record_create, .record_clear = record_clear, .record_destroy = record_destroy,
      .mark_create = mark_create, .mark_destroy = mark_destroy, .resume = resume,
      .mark_bytes = mark_bytes, .record_bytes = record_bytes,
      .begin_adjoint = begin_adjoint, .reverse = reverse, .finish = finish, .gradients = gradients,
      .read = cq_device_read, .read_adjoint = cq_device_read_adjoint,
      .pass_adjoint = pass_adjoint, .discount_adjoint = discount_adjoint,
  };
  return &cpu;
}
