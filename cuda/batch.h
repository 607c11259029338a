// batch: the scenes of a batch on the GPU. All scenes share one set of arrays and run in step. Holds the live state,
// the records and checkpoints, and the work memory of a rollout; the twin of engine/cpu/scene.h.
#ifndef CQ_CUDA_BATCH_H
#define CQ_CUDA_BATCH_H

#include "../engine/backend/backend.h"
#include "../engine/world/state.h"
#include "kernels.h"
#include "memory.h"

enum {
  CQ_RUN_MAX = 64,           // substeps that are launched at once
  CQ_RUNS_AHEAD = 64,        // runs that may be on their way to the GPU
  CQ_LISTS_MAX = 16,         // group lists of readouts that are kept on the device
};

// How particles lie in memory; immutable once made, shared by all slices of the same order.
typedef struct cq_arrangement {
  int32_t references;
  // the engine step at which particles were sorted so, counted from where cq_device.before is 0, -1 for the user's
  // order: it identifies the order in a rollout and in those that it goes on from
  int64_t sorted_at;
  int32_t tile_count, block_count;
  int32_t *order, *slot_of;  // {stride} user id of each slot, slot of each user id
  void *params;              // {params, slots}
  uint8_t *material;         // {stride}
  cq_tile *tiles;            // {block_count}
  int64_t *wall_entries;     // {block_count, CQ_TILE_NODES}
  int32_t *neighbors;        // {block_count, CQ_NEIGHBORS_MAX}
  cq_memory *by_slot, *by_tile;   // where these lie
} cq_arrangement;

// One time slice {fields, slots}, and {internals, slots} behind it; immutable once written.
typedef struct cq_slice {
  int32_t references;
  cq_memory *memory;
} cq_slice;

// One engine step as its adjoint needs it: out is in the order of in.
typedef struct cq_step_record {
  cq_slice *in, *out;
  cq_arrangement *arrangement;
  cq_memory *grid;           // {block_count, CQ_TILE_NODES} nodes
} cq_step_record;

struct cq_record {
  cq_step_record *steps;     // {substeps}
};

struct cq_mark {
  cq_slice *slice;
  cq_arrangement *arrangement;
  int64_t step;
};

// What the kernels of a run of engine steps read. It is copied to the device in one piece, with the motion of walls,
// the signals and the forces behind it. Progress is copied only with the first run after the host has waited.
typedef struct cq_upload {
  alignas(128) cq_progress progress;
  alignas(128) cq_frame frame;
  cq_shapes shapes;
  alignas(128) cq_actuation actuation;
  cq_substep substeps[CQ_RUN_MAX];
  unsigned fastest[CQ_RUN_MAX];
  int32_t edge[CQ_RUN_MAX + 1];
  alignas(128) unsigned arrived;
} cq_upload;

// The ways of a run: a launch for each pass, or one kernel whose blocks are a cooperative grid.
enum { CQ_WAY_AUTO, CQ_WAY_LAUNCHES, CQ_WAY_GRID };

// The launches of a run of one length, captured as a graph.
typedef struct cq_graph {
  cudaGraphExec_t exec;
  int32_t uses;
  int32_t tile_blocks, node_blocks;   // it was captured with
} cq_graph;

// A lap is the work between two events on the stream. The timer adds up laps by phase.
enum { CQ_LAPS = 32 };
typedef struct cq_lap {
  cudaEvent_t begin, end;
  int32_t phase;
} cq_lap;
typedef struct cq_timer {
  cq_lap lap[CQ_LAPS];      // a ring, the oldest at first
  int32_t first, count;
  double seconds[CQ_PHASE_COUNT];
} cq_timer;

struct cq_context {
  const cq_model *model;
  const cq_cuda_kernels *kernels;
  cq_pool pool;
  cudaStream_t stream;
  int32_t processors;
  int32_t way;               // that CQLUA_CUDA_RUN asks for
  int32_t forward, backward; // the most blocks of a kernel that stays during a run, 0: there is none
  cq_timer timer;
  char description[320];

  // the model in device memory
  cq_memory *owned[CQ_WALLS_MAX + 48];
  int32_t owned_count;
  cq_wall *walls;
  cq_wall_map map;
  uint8_t *material;         // {n}
  cq_actuation actuation;            // what stays of it
};

typedef struct cq_reference cq_reference;   // of total Lagrangian steps (reference.h)
typedef struct cq_list cq_list;   // of a readout, on the device
typedef struct cq_device_network cq_device_network;   // the network of a policy, on the device

// values of a rollout that the step does not have in its own form
typedef struct cq_given {
  cq_memory *weight, *mass, *volume, *globals;
  int64_t weight_stride, mass_stride, volume_stride;   // 0: the same for all scenes
  cq_memory *cable[3];       // stiffness, rest length, friction
  int64_t cable_stride[3];
} cq_given;

struct cq_device {
  cq_context *context;
  const cq_model *model;
  const cq_cuda_kernels *kernels;
  int32_t batch, differentiable;
  int32_t particles, slots, stride, fields, actuation_fields, params, internals;
  size_t real_bytes;
  cq_health health;
  const cq_values *values;   // {batch} of the rollout
  cq_given given;

  // the state at step 0, sorted, as long as its values and the constants in its arrangement stay and nothing else needs
  // its memory; NULL: it must be loaded
  cq_slice *start;
  cq_arrangement *start_arrangement;

  // the live state
  cq_slice *live;
  cq_arrangement *arrangement;
  int64_t step;              // engine steps made
  int64_t before;            // engine steps of rollouts before it, whose order of particles it has taken over
  int64_t *age;              // {batch} engine steps that a scene made in the rollouts that it goes on from
  int64_t span;              // engine steps that the last arrangement served, to guess when particles are sorted next

  // what a run is made of
  char *uploads;             // pinned {uploads_count}, as on_device: each may be on its way
  int32_t uploads_count, pending;
  cq_upload *upload;         // the one that is being filled
  cq_memory *on_device;
  cq_progress *progress;     // pinned: what was found
  cq_graph forward[CQ_RUN_MAX + 1], backward[CQ_RUN_MAX + 1];
  const double *signals, *forces;   // of the running control step
  const cq_wall_track *track;
  int32_t control_step;      // its index in the rollout
  int32_t control_row, control_rows;   // where the gradients of its controls go; steps that there is room for

  // work arrays
  cq_memory *sorting, *window, *found;
  cq_found *found_host;      // pinned
  cq_memory *arena, *grid_v, *grid_q, *actuation;
  double *staging;           // pinned: small readouts and gradients of signals and forces
  cq_list *lists[CQ_LISTS_MAX];
  int64_t list_uses;
  cq_memory *reading;        // sums and out of a readout
  cq_reference *reference;   // NULL: particles move on the spatial grid
  cq_device_network *network_state;     // of the policy that ran last

  // adjoint of the live state; in the order it was left in, for the live state may be made again
  // from a checkpoint in another
  cq_memory *adj, *adj_other, *params_adj, *actuation_adj, *actuation_adj_other;
  cq_arrangement *adj_arrangement;
  uint64_t wanted;           // bits (1 << cq_field) of the gradients that will be asked for
  cq_memory *sums;           // {block_count, sum_count} of the frame
  // walls.cu: impulses of each tile in the running control step; those of control steps in a row {..,
  // batch, impulse_count}, or their gradients; {batch, impulse_count} what the running control step had
  // before the runs that were launched
  cq_memory *impulse, *impulse_rows, *impulse_before;
  cq_memory *wall_age;       // {batch} age, where walls move at one speed and some scene goes on; NULL: no such scene
  cq_memory *taken;          // lists of scenes, for kernels that take them over
  cq_memory *grad_gravity;   // {control_rows, batch, 3} of each control step
  cq_memory *grad_walls;     // {control_rows, batch, walls, 3} of velocities, then of places, of each control step
  cq_memory *totals;         // doubles: {batch, sum_count}; by user id {params, slots}, state fields {slots, width}
  cq_memory *grad_weight, *share;
  cq_memory *cable_work;     // {batch, points, 3 dim + 1} of cq_pulling
  // {batch, 3 cables}, then of the running control step {batch, cables}, {batch, pulled, dim}
  cq_memory *grad_cables;
  cq_memory *grad_controls;  // {control_rows, batch, actuators}, then {control_rows, batch, forces, dim}
  cq_memory *norms;          // {control_rows, batch} of the adjoint, then {batch, CQ_NORM_PORTIONS} of a square
  double *gradient_memory;   // of the host
  cq_gradients *gradients;   // {batch}
};

enum { CQ_STAGING = 8192 };  // doubles

// How many reals the globals of one scene are: gravity {3}, share of damping in an engine step, friction {walls}, wall
// velocity {walls, 3}.
static inline int32_t cq_global_count(const cq_device *d) { return CQ_AT_FRICTION + 4 * d->model->wall_count; }
// How many gradients of one scene are sums over all nodes: of gravity {3}, of damping, and 7 for each wall (friction,
// velocity {3}, place {3}).
static inline int32_t cq_sum_count(const cq_device *d) { return CQ_AT_FRICTION + 7 * d->model->wall_count; }
// How many numbers the contact impulses of one scene are in a control step: cq_contact_width for each wall and for each
// group of pins.
static inline int32_t cq_impulse_count(const cq_device *d) {
  return d->model->contact_count * cq_contact_width(d->model->dim);
}
// The size of the motion of all walls in a control step, in doubles: velocities {batch, walls, 3}, which are reals in
// memory for as many doubles, then displacements {batch, walls, 3}.
static inline size_t cq_wall_motion(const cq_device *d) { return 6 * (size_t)d->batch * (size_t)d->model->wall_count; }
// The largest size of the motion in an upload, in doubles: the motion of all walls, then gravity {batch, 3}.
static inline size_t cq_motion_most(const cq_device *d) { return cq_wall_motion(d) + 3 * (size_t)d->batch; }
// The size of the motion that is sent with a run of engine steps, in doubles: the motion of walls if wall velocities
// change between control steps, and gravity if gravity does.
static inline size_t cq_motion_count(const cq_device *d) {
  if (!d->track) return 0;
  return (d->track->velocity ? cq_wall_motion(d) : 0) + (d->track->gravity ? 3 * (size_t)d->batch : 0);
}
// The offset in bytes, within a state of particles, of the internal variables of materials (plastic strain and the
// like), which follow x, v, C and F of all particles.
static inline size_t cq_internal_offset(const cq_device *d) {
  return (size_t)d->fields * (size_t)d->stride * d->real_bytes;
}
// The size in bytes of a state of all particles of all scenes, with the internal variables of materials.
static inline size_t cq_particles_size(const cq_device *d) {
  return cq_internal_offset(d) + (size_t)d->internals * (size_t)d->stride * d->real_bytes;
}
// The address of the internal variables of materials within a state of particles (or its adjoint), on the device.
static inline void *cq_internal_of(const cq_device *d, const cq_memory *slice) {
  return (char *)slice->data + cq_internal_offset(d);
}
// The size of one grid node in bytes: four reals, for momentum and mass or for velocity.
static inline size_t cq_node_size(const cq_device *d) { return 4 * d->real_bytes; }
// How many signals all scenes have together in one control step.
static inline size_t cq_signal_count(const cq_device *d) { return (size_t)d->batch * (size_t)d->model->actuator_count; }
// How many components the script's forces on particles of all scenes have together in one control step.
static inline size_t cq_force_count(const cq_device *d) {
  return (size_t)d->batch * (size_t)d->model->force_count * (size_t)d->model->dim;
}
// The size of an upload in bytes, aligned: cq_upload, the motion of walls and gravity, then signals and forces.
static inline size_t cq_upload_size(const cq_device *d) {
  const size_t bytes =
      sizeof(cq_upload) + (cq_motion_most(d) + cq_signal_count(d) + cq_force_count(d)) * sizeof(double);
  return (bytes + alignof(cq_upload) - 1) / alignof(cq_upload) * alignof(cq_upload);
}
// The address of the motion of walls and gravity, which follows the struct of an upload.
static inline double *cq_upload_motion(cq_upload *u) { return (double *)(u + 1); }
// The address of signals and forces in an upload, which follow its motion of walls and gravity.
static inline double *cq_upload_controls(const cq_device *d, cq_upload *u) {
  return cq_upload_motion(u) + cq_motion_count(d);
}
// The index in d->totals at which the gradients of particles' parameters {params, slots} begin.
static inline int64_t cq_total_params(const cq_device *d) { return (int64_t)d->batch * cq_sum_count(d); }
// The index in d->totals at which the gradients of the initial state begin.
static inline int64_t cq_total_state(const cq_device *d) { return cq_total_params(d) + (int64_t)d->params * d->slots; }
// How many numbers the gradients of the cables' constants are: stiffness, rest length and friction {3, batch, cables}.
static inline size_t cq_cable_values(const cq_device *d) {
  return 3 * (size_t)d->batch * (size_t)d->model->cables.count;
}
// The length of grad_cables: gradients of the cables' constants (cq_cable_values), then, of one control step, of the
// signals of cables and chambers {batch, all} and of the script's forces on the particles that cables or chambers act
// on {batch, pulled, dim}.
static inline size_t cq_cable_grads(const cq_device *d) {
  const cq_cables *c = &d->model->cables;
  return cq_cable_values(d) + (size_t)d->batch * (size_t)(c->all + c->pulled_count * d->model->dim);
}
// The number of thread blocks for a kernel that works on `count` items with `threads` threads in a block.
int32_t cq_cuda_blocks(const cq_device *d, int64_t count, int32_t threads);

// context.cu: the world on the device
cq_status cq_cuda_context_create(const cq_model *model, cq_context **context);
void cq_cuda_context_destroy(cq_context *context);

// timer.cu: a lap is the GPU work between begin and end. Laps are not nested; a lap that was not ended is not counted.
cq_status cq_cuda_timer_create(cq_timer *timer);
void cq_cuda_timer_destroy(cq_timer *timer);
cq_status cq_cuda_timer_begin(cq_context *c, int32_t phase);
cq_status cq_cuda_timer_end(cq_context *c);
// Waits for the last lap and sets seconds to the GPU time of each phase; reset not 0: then clears them.
void cq_cuda_timer_read(cq_context *c, double seconds[CQ_PHASE_COUNT], int32_t reset);

// Must the record of an engine step keep a value of each node for the adjoint? That is momentum and mass on the spatial
// grid, always; on reference grids the velocity before contacts, where there are walls or pins. 1 yes, 0 no.
static inline int32_t cq_cuda_keeps_grid(const cq_device *d) {
  return !d->reference || d->model->wall_count + d->model->pin_count > 0;
}

// batch.cu: memory of a rollout. Slices and arrangements are shared by reference.
cq_status cq_cuda_create(cq_context *context, int32_t batch, int32_t differentiable, cq_device **device);
void cq_cuda_destroy(cq_device *d);
// The size of one state in bytes: of all particles, or in total Lagrangian worlds of all nodes of reference grids.
size_t cq_slice_size(const cq_device *d);
cq_status cq_cuda_slice_create(cq_device *d, cq_slice **out);
cq_status cq_cuda_particles_create(cq_device *d, cq_slice **out);
cq_slice *cq_cuda_slice_retain(cq_slice *slice);
void cq_cuda_slice_release(cq_device *d, cq_slice *slice);
// Sets *out to a new arrangement (order of particles in device memory), not filled and without tiles.
cq_status cq_cuda_arrangement_create(cq_device *d, cq_arrangement **out);
cq_arrangement *cq_cuda_arrangement_retain(cq_arrangement *a);
void cq_cuda_arrangement_release(cq_device *d, cq_arrangement *a);
// Drops a record's references to states and arrangement, and keeps its memory for grid nodes.
void cq_cuda_step_record_clear(cq_device *d, cq_step_record *record);
void cq_cuda_resume(cq_device *d, cq_slice *slice, cq_arrangement *arrangement, int64_t step);
// Begins a rollout with its own values {batch}; changed: bits (1 << cq_field) of the fields that may have changed.
cq_status cq_cuda_begin_own(cq_device *d, const cq_values *values, uint64_t changed);
// Frees the sorted state at step 0, which is kept to begin again. 1, or 0 if none was kept.
int32_t cq_cuda_drop_start(cq_device *d);

// The number of engine steps since the particles were last sorted by tile.
static inline int64_t cq_cuda_since_sorted(const cq_device *d) {
  return d->before + d->step - d->arrangement->sorted_at;
}

// continued.cu: rollouts that begin in states of another rollout, `from`. scene {batch}: the scene of `from` in whose
// live state each scene begins; -1: in its own values. pass_adjoint adds the adjoints of these first states to `from`.
cq_status cq_cuda_begin(cq_device *d, const cq_values *values, uint64_t changed, const cq_device *from,
                        const int32_t *scene);
cq_status cq_cuda_pass_adjoint(cq_device *d, cq_device *from, const int32_t *scene);

// arrange.cu: sorts the particles of the live state by grid tile, and makes the sorted state live.
cq_status cq_cuda_arrange(cq_device *d);
// Makes an unfilled state live, with particles in the user's order and no tiles; values are loaded into it.
cq_status cq_cuda_arrange_first(cq_device *d);

// run.cu: runs of engine steps. cq_cuda_prepare makes work arrays for an arrangement and fills the upload, except for
// its substeps. first: the number of engine steps between the live state and the run, which are launched already.
cq_status cq_cuda_prepare(cq_device *d, const cq_arrangement *a, int32_t first);
// Sends the prepared upload to the GPU, for the run that follows. controls 0: without signals and forces.
cq_status cq_cuda_send(cq_device *d, int32_t controls);
cq_status cq_cuda_run_forward(cq_device *d, int32_t count);
cq_status cq_cuda_run_backward(cq_device *d, int32_t count);
// After the last run of a control step backward: gradients of its signals, actuation weights and forces.
cq_status cq_cuda_run_load_actuation_adj(cq_device *d);
// Launches P2G of the live state alone, after a failed step, to learn whether that state is inverted itself.
cq_status cq_cuda_run_probe(cq_device *d);
// Waits for all runs, and copies what the kernels found (cq_progress) to d->progress.
cq_status cq_cuda_read_progress(cq_device *d);
void cq_cuda_graphs_destroy(cq_device *d);

// control_step.cu
cq_status cq_cuda_advance(cq_device *d, const cq_controls *controls, cq_record *const *records, int32_t *steps_done);
cq_status cq_cuda_begin_adjoint(cq_device *d, uint64_t wanted);
cq_status cq_cuda_reverse(cq_device *d, const cq_controls *controls, cq_record *const *records, int32_t *steps_done);
cq_status cq_cuda_discount_adjoint(cq_device *d, double factor);
cq_status cq_cuda_finish(cq_device *d);

// walls.cu: walls whose velocity changes from one control step to the next, and impulses that are read for each control
// step.
// - cq_cuda_walls_fill writes the motion of walls into an upload.
// - Impulses: `begin` comes before the runs of a chain. `add` comes after each run and adds to the row of its control
//   step. `fetch` copies the rows of whole control steps, from a given one on, to the host. `keep` is for a chain that
//   ended within a control step: the next chain continues its row.
// - Backward: `begin_adj` is for a number of control steps from a given one on. `sum` comes at the end of a control
//   step, and before the tiles change. `fetch` copies the gradients to the host.
void cq_cuda_walls_fill(const cq_device *d, cq_upload *on_device);
int32_t cq_cuda_impulse_rows(const cq_device *d);
cq_status cq_cuda_impulse_begin(cq_device *d, int32_t within);
cq_status cq_cuda_impulse_add(cq_device *d, int32_t row);
cq_status cq_cuda_impulse_fetch(cq_device *d, int32_t step, int32_t rows);
cq_status cq_cuda_impulse_keep(cq_device *d, int32_t row);
cq_status cq_cuda_walls_begin_adj(cq_device *d, int32_t step, int32_t rows);
cq_status cq_cuda_walls_sum(cq_device *d);
cq_status cq_cuda_walls_fetch(cq_device *d, int32_t step, int32_t rows);

// health.cu: names the particle that failed in a step. out: the state after it, NULL where there is none. Returns
// CQ_UNSTABLE, or the error that kept it from finding out.
cq_status cq_cuda_diagnose(cq_device *d, const cq_slice *in, const cq_slice *out);

// readout.cu
cq_status cq_cuda_read(cq_device *d, const cq_readout *readout, int64_t count, double *out);
cq_status cq_cuda_read_adjoint(cq_device *d, const cq_readout *readout, int64_t count, const double *grad_out);
void cq_cuda_lists_destroy(cq_device *d);
// A readout in three functions that do not wait for the GPU, for policies. cq_cuda_reading fills *r with the arguments
// of the kernels for a readout of `state` (particles in the live order) with `count` numbers in a scene, and reserves
// device memory *room. The next function launches the readout, and the last one its adjoint.
cq_status cq_cuda_reading(cq_device *d, const cq_readout *readout, int64_t count, const cq_slice *state,
                          cq_memory **room, cq_reading *r);
void cq_cuda_reading_sums(cq_device *d, const cq_reading *r);
void cq_cuda_reading_adj(cq_device *d, cq_reading *r);

// policy.cu: the policy of a rollout.
// - set copies the weights to the device.
// - signals computes the signals of a control step from the state before it. Call it after cq_cuda_send. Rows on the
//   device keep the signals of consecutive control steps, from row 0.
// - fetch starts the copy of rows to the host; after the host has waited, store copies one row to the caller's arrays.
// - begin_adj, adj, end_adj reverse `rows` control steps, the first of which is `step`. adj turns the gradients of the
//   signals of one control step into the adjoint of the state before it.
cq_status cq_cuda_policy_set(cq_device *d, const cq_policy_run *f);
int32_t cq_cuda_policy_rows(const cq_device *d);
// Launches the policy on `state`: the signals of control step `step`, which are also kept in row `row`.
cq_status cq_cuda_policy_signals(cq_device *d, const cq_policy_run *f, int32_t step, const cq_slice *state,
                                 int32_t row);
cq_status cq_cuda_policy_fetch(cq_device *d, int32_t rows);
void cq_cuda_policy_store(const cq_device *d, const cq_policy_run *f, int32_t step, int32_t row, double *signals);
cq_status cq_cuda_policy_begin_adj(cq_device *d, const cq_policy_run *f, int32_t step, int32_t rows);
cq_status cq_cuda_policy_adj(cq_device *d, const cq_policy_run *f, int32_t step);
cq_status cq_cuda_policy_end_adj(cq_device *d, const cq_policy_run *f);
void cq_cuda_policy_destroy(cq_device *d);

#endif
