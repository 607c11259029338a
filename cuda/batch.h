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

// Numbers of a scene's globals: gravity {3}, decay in a step, friction {walls}, wall velocity {walls, 3}.
static inline int32_t cq_global_count(const cq_device *d) { return CQ_AT_FRICTION + 4 * d->model->wall_count; }
// Numbers of a scene that are summed over all particles and nodes: gravity, damping, and 7 for each wall.
static inline int32_t cq_sum_count(const cq_device *d) { return CQ_AT_FRICTION + 7 * d->model->wall_count; }
// Numbers of contact impulses of one scene in a control step: those of all walls and all groups of pins.
static inline int32_t cq_impulse_count(const cq_device *d) {
  return d->model->contact_count * cq_contact_width(d->model->dim);
}
// Doubles of the motion of walls in a control step: velocities, which are reals in the room of {batch, walls, 3}
// doubles, then places {batch, walls, 3}.
static inline size_t cq_wall_motion(const cq_device *d) { return 6 * (size_t)d->batch * (size_t)d->model->wall_count; }
// The most doubles of motion that an upload has: those of walls, then gravity, which is reals in the room of {batch,
// 3}.
static inline size_t cq_motion_most(const cq_device *d) { return cq_wall_motion(d) + 3 * (size_t)d->batch; }
// Numbers of motion that are sent with a run: none of walls that keep their velocity, none where gravity stays.
static inline size_t cq_motion_count(const cq_device *d) {
  if (!d->track) return 0;
  return (d->track->velocity ? cq_wall_motion(d) : 0) + (d->track->gravity ? 3 * (size_t)d->batch : 0);
}
// Bytes from the begin of a state to the internal variables of materials, which follow x, v, F and C of all particles.
static inline size_t cq_internal_offset(const cq_device *d) {
  return (size_t)d->fields * (size_t)d->stride * d->real_bytes;
}
// Bytes of the particles of all scenes, internal variables of materials included.
static inline size_t cq_particles_size(const cq_device *d) {
  return cq_internal_offset(d) + (size_t)d->internals * (size_t)d->stride * d->real_bytes;
}
// The internal variables of materials within a slice.
static inline void *cq_internal_of(const cq_device *d, const cq_memory *slice) {
  return (char *)slice->data + cq_internal_offset(d);
}
// Bytes of one node: momentum and mass, or velocity.
static inline size_t cq_node_size(const cq_device *d) { return 4 * d->real_bytes; }
// Signals of one control step of all scenes.
static inline size_t cq_signal_count(const cq_device *d) { return (size_t)d->batch * (size_t)d->model->actuator_count; }
// Components of a script's forces in one control step of all scenes.
static inline size_t cq_force_count(const cq_device *d) {
  return (size_t)d->batch * (size_t)d->model->force_count * (size_t)d->model->dim;
}
// Bytes of an upload: its struct, then the motion of walls and gravity, then the controls.
static inline size_t cq_upload_size(const cq_device *d) {
  const size_t bytes =
      sizeof(cq_upload) + (cq_motion_most(d) + cq_signal_count(d) + cq_force_count(d)) * sizeof(double);
  return (bytes + alignof(cq_upload) - 1) / alignof(cq_upload) * alignof(cq_upload);
}
// The motion of walls and gravity behind the header of an upload.
static inline double *cq_upload_motion(cq_upload *u) { return (double *)(u + 1); }
// The signals and forces behind the motion of walls and gravity of an upload.
static inline double *cq_upload_controls(const cq_device *d, cq_upload *u) {
  return cq_upload_motion(u) + cq_motion_count(d);
}
// Where the gradients of particles' parameters begin among the sums on the device.
static inline int64_t cq_total_params(const cq_device *d) { return (int64_t)d->batch * cq_sum_count(d); }
// Where the gradients of the initial state begin among the sums on the device.
static inline int64_t cq_total_state(const cq_device *d) { return cq_total_params(d) + (int64_t)d->params * d->slots; }
// Numbers of the gradients of the cables' own values: stiffness, rest length and friction of all scenes.
static inline size_t cq_cable_values(const cq_device *d) {
  return 3 * (size_t)d->batch * (size_t)d->model->cables.count;
}
// Numbers in grad_cables: those of cq_cable_values, then of one control step the gradients of the signals of cables and
// chambers {batch, all} and of the script's forces on pulled particles {batch, pulled, dim}.
static inline size_t cq_cable_grads(const cq_device *d) {
  const cq_cables *c = &d->model->cables;
  return cq_cable_values(d) + (size_t)d->batch * (size_t)(c->all + c->pulled_count * d->model->dim);
}
// blocks of a launch whose threads walk over `count` items
int32_t cq_cuda_blocks(const cq_device *d, int64_t count, int32_t threads);

// context.cu: the world on the device
cq_status cq_cuda_context_create(const cq_model *model, cq_context **context);
void cq_cuda_context_destroy(cq_context *context);

// timer.cu: laps follow each other and are not nested; a lap that was not ended is not counted
cq_status cq_cuda_timer_create(cq_timer *timer);
void cq_cuda_timer_destroy(cq_timer *timer);
cq_status cq_cuda_timer_begin(cq_context *c, int32_t phase);
cq_status cq_cuda_timer_end(cq_context *c);
void cq_cuda_timer_read(cq_context *c, double seconds[CQ_PHASE_COUNT], int32_t reset);   // waits for the last lap

// Must the record of an engine step keep what its nodes had for the adjoint: the velocity before walls on reference
// grids, the momentum on the spatial grid?
static inline int32_t cq_cuda_keeps_grid(const cq_device *d) {
  return !d->reference || d->model->wall_count + d->model->pin_count > 0;
}

// batch.cu: memory of a rollout. Slices and arrangements are shared by reference.
cq_status cq_cuda_create(cq_context *context, int32_t batch, int32_t differentiable, cq_device **device);
void cq_cuda_destroy(cq_device *d);
size_t cq_slice_size(const cq_device *d);   // of a state: of particles, or of the nodes of reference grids [bytes]
cq_status cq_cuda_slice_create(cq_device *d, cq_slice **out);
cq_status cq_cuda_particles_create(cq_device *d, cq_slice **out);
cq_slice *cq_cuda_slice_retain(cq_slice *slice);
void cq_cuda_slice_release(cq_device *d, cq_slice *slice);
cq_status cq_cuda_arrangement_create(cq_device *d, cq_arrangement **out);   // without tiles
cq_arrangement *cq_cuda_arrangement_retain(cq_arrangement *a);
void cq_cuda_arrangement_release(cq_device *d, cq_arrangement *a);
void cq_cuda_step_record_clear(cq_device *d, cq_step_record *record);       // drops references, keeps the grid memory
void cq_cuda_resume(cq_device *d, cq_slice *slice, cq_arrangement *arrangement, int64_t step);
cq_status cq_cuda_begin_own(cq_device *d, const cq_values *values, uint64_t changed);   // with the values of all scenes
// Frees the sorted state at step 0, which is kept to begin again. 1, or 0 if none was kept.
int32_t cq_cuda_drop_start(cq_device *d);

// Engine steps since particles were sorted.
static inline int64_t cq_cuda_since_sorted(const cq_device *d) {
  return d->before + d->step - d->arrangement->sorted_at;
}

// continued.cu: rollouts that go on from another one
cq_status cq_cuda_begin(cq_device *d, const cq_values *values, uint64_t changed, const cq_device *from,
                        const int32_t *scene);
cq_status cq_cuda_pass_adjoint(cq_device *d, cq_device *from, const int32_t *scene);

// arrange.cu
cq_status cq_cuda_arrange(cq_device *d);             // sorts the live state
cq_status cq_cuda_arrange_first(cq_device *d);       // the user's order, with constants but no tiles

// run.cu: runs of engine steps. cq_cuda_prepare makes work arrays for an arrangement and fills the upload, except for
// its substeps. first: the number of engine steps between the live state and the run, which are launched already.
cq_status cq_cuda_prepare(cq_device *d, const cq_arrangement *a, int32_t first);
// Sends the prepared upload to the GPU, for the run that follows. controls 0: without signals and forces.
cq_status cq_cuda_send(cq_device *d, int32_t controls);
cq_status cq_cuda_run_forward(cq_device *d, int32_t count);
cq_status cq_cuda_run_backward(cq_device *d, int32_t count);
cq_status cq_cuda_run_load_actuation_adj(cq_device *d);                 // the adjoint of the controls of the last run
cq_status cq_cuda_run_probe(cq_device *d);                         // P2G of state 0 alone
cq_status cq_cuda_read_progress(cq_device *d);                     // waits for all runs, and copies progress
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
// A readout in pieces that do not wait for the GPU: reading prepares that of a state in the live order, and makes room;
// the next ones launch its sums and results, and then its adjoint, to the adjoint of the live state.
cq_status cq_cuda_reading(cq_device *d, const cq_readout *readout, int64_t count, const cq_slice *state,
                          cq_memory **room, cq_reading *r);
void cq_cuda_reading_sums(cq_device *d, const cq_reading *r);
void cq_cuda_reading_adj(cq_device *d, cq_reading *r);

// policy.cu: the policy of a rollout.
// - set copies the weights to the device.
// - signals computes the signals of a run that was sent, from the state before its control step, and copies them to a
//   row. The rows of consecutive control steps follow each other, beginning with row 0.
// - fetch starts the copy of rows to the host; after the host has waited, store copies one to the caller's arrays.
// - begin_adj, adj, end_adj reverse `rows` control steps, the first of which is `step`. adj turns the gradients of the
//   signals of one control step into the adjoint of the state before it.
cq_status cq_cuda_policy_set(cq_device *d, const cq_policy_run *f);
int32_t cq_cuda_policy_rows(const cq_device *d);
cq_status cq_cuda_policy_signals(cq_device *d, const cq_policy_run *f, int32_t step, const cq_slice *state,
                                 int32_t row);
cq_status cq_cuda_policy_fetch(cq_device *d, int32_t rows);
void cq_cuda_policy_store(const cq_device *d, const cq_policy_run *f, int32_t step, int32_t row, double *signals);
cq_status cq_cuda_policy_begin_adj(cq_device *d, const cq_policy_run *f, int32_t step, int32_t rows);
cq_status cq_cuda_policy_adj(cq_device *d, const cq_policy_run *f, int32_t step);
cq_status cq_cuda_policy_end_adj(cq_device *d, const cq_policy_run *f);
void cq_cuda_policy_destroy(cq_device *d);

#endif
