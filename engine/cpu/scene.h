// scene: one scene of a batch on the CPU: its state, and how particles and active nodes lie in memory. Arrays of reals
// are void pointers here, and the kernels of one {dimension, precision, instruction set} give them their type.
//
// Particles lie in chunks of 16, field by field (AoSoA-16), sorted by grid cell with the first axis slowest. They are
// split into a fixed number of ranges of chunks, so that sums do not depend on the number of threads: each range
// scatters to a slab, a node array of its own, and the grid pass adds the slabs in order. Between steps slabs are zero.
//
// Particles of bodies with reference grids come first, in the chunks and ranges of that layout (reference/); those on
// the spatial grid begin at first_chunk and first_range. Where there are both, nodes of reference grids are carriers on
// the spatial one: they bring mass and momentum to it, and take velocities back (carrier.inl).
#ifndef CQ_SCENE_H
#define CQ_SCENE_H

#include "../backend/backend.h"
#include "../world/state.h"
#include "reference/reference.h"
#include "implicit/state.h"
#include "worker.h"

enum {
  CQ_CHUNK = 16,             // particles of a chunk
  // ranges of a scene: more than cores that a small scene can feed, on reference grids and on the spatial one
  CQ_RANGES_MAX = 2 * CQ_BLOCKS_MAX,
  CQ_RANGE_CHUNKS = 48,      // chunks that are worth a range of their own
  CQ_MARGIN = 1,             // cells that particles may drift before they are sorted again
  CQ_STREAM_BYTES = 16 << 20,   // of a state that no cache holds until it is read again
  CQ_VOLUME_PART = 5,        // numbers of a particle while volumes are averaged
  CQ_DILATATION_FIELDS = 6,  // of a particle while dilatations are averaged, see dilatation.inl
  CQ_PULLED_NUMBERS = 12,    // room of a Pulled: three weights of each axis, a node, and two strides
  CQ_CABLE_NUMBERS = 7,      // room of a Cable (k, R, mu, u, the two of its law, its points) or of a Chamber
  // of a readout: the weight, and second moments of all quantities in 3D
  CQ_READ_SUMS_MAX = 1 + 81 * CQ_QUANTITY_COUNT,
};

// parameters of a particle, which every pass reads: mass, volume, and from CQ_PARAM_SLOTS on the slots of its material
enum { CQ_PARAM_MASS, CQ_PARAM_VOLUME, CQ_PARAM_SLOTS };

enum { CQ_SORTED_BEFORE = -2 };

typedef struct cq_column {
  int32_t x, y, z;           // first node
  int32_t count;             // nodes along the last axis, a multiple of 4
  int64_t node;              // of the first node in the window
  int64_t record;            // of the first node in a grid record
  int64_t wall_begin, wall_end;   // entries of the wall map
  uint32_t ranges;           // bit r: range r scatters into this column
} cq_column;

// How particles and active nodes lie in memory; immutable once made, shared by all slices of the same order.
typedef struct cq_arrangement {
  int32_t references;
  // identifies the order in a rollout: the engine step at which particles were sorted into it, -1: the user's order,
  // CQ_SORTED_BEFORE: the order that the rollout before left
  int64_t sorted_at;
  int32_t *order;            // {chunks * 16} particle of each slot, -1 for padding
  int32_t *slot;             // {n} slot of each particle
  void *params;              // {chunks, params, 16}
  uint32_t *materials;       // {chunks} mask of the materials in a chunk
  uint8_t *material;         // {chunks * 16} of each slot
  // {chunks * 16} bits of the drives (cq_drive_kind) that act on the particle of this slot
  uint8_t *slot_actuated;
  uint8_t *actuated;           // {chunks} of all particles of a chunk
  int32_t lower[3], size[3]; // window of nodes
  double room;               // cells from the outermost particle to the edge of the world, at least
  int32_t slab_lower[CQ_RANGES_MAX], slab_size[CQ_RANGES_MAX];   // of each range along the first axis
  cq_column *columns;
  int32_t column_count, column_capacity;
  int32_t column_block[CQ_RANGES_MAX + 1];   // columns split into as many blocks as there are ranges, by nodes
  int64_t record_nodes;
  struct cq_arrangement *next;               // in the free list
} cq_arrangement;

// One time slice; immutable once written.
typedef struct cq_slice {
  int32_t references;
  struct cq_slice *next;     // in the free list
  void *data;                // {chunks, fields, 16} of particles on the spatial grid, as if it began at chunk 0
  void *particles;           // the memory of data
  void *nodes;               // {2, dim, nodes} displacements and velocities of the nodes of reference grids
  void *internal;            // {chunks, internal variables, 16}, NULL where no material has any
  // {chunks, dim + dim dim, 16} v' and C' of the step that led here, which its particles moved by; NULL where these
  // are v and C, as of APIC
  void *motion;
} cq_slice;

// One engine step as its adjoint needs it: out is in the order of in.
typedef struct cq_step_record {
  cq_slice *in, *out;
  cq_arrangement *arrangement;
  // {record_nodes, 4} momentum and mass, of an implicit step velocity and mass; then with unresolved motion
  // {record_nodes, 4} momentum before stress and forces; then with carriers {record_nodes, 4} their momentum and mass
  void *grid;
  uint64_t *held;            // {record_nodes} contacts that hold at the end of an implicit step, as bits
  int64_t grid_capacity;
  // {dim, nodes} of explicit steps on reference grids: velocities before walls and pins; with carriers then those
  // before the spatial grid has changed them
  void *nodes;
  int64_t nodes_capacity;
} cq_step_record;

// What the passes over one range of chunks report of an engine step.
typedef struct cq_found {
  double fastest;            // largest |velocity component| after the step, or speed of a node of a reference grid
  double carrier;            // the same of those nodes of reference grids that take part on the spatial grid
  int32_t bad;               // something is not finite or inverted
} cq_found;

// What the adjoint of a readout takes of one group.
typedef struct cq_group_grad {
  const double *sums;                       // of the readout, as read_sums wrote them; not of a gather
  const double *grad[CQ_QUANTITY_COUNT];    // dL/d(out) of each quantity
} cq_group_grad;

// Sums of one range of chunks or block of columns: while sorting of base cells; in the adjoint gradients of gravity,
// damping and walls, which are added range by range in order, in double.
typedef struct cq_partial {
  int32_t outside;           // a position is not in the world, or not finite
  int32_t lower[3], upper[3];     // box of the base cells
  double gravity[3], damping, friction[CQ_WALLS_MAX], wall_velocity[CQ_WALLS_MAX][3], wall_place[CQ_WALLS_MAX][3];
} cq_partial;

// An interval of indices, both ends included; empty if lower is above upper.
typedef struct cq_reach {
  int32_t lower, upper;
} cq_reach;

struct cq_kernels;

typedef struct cq_scene {
  const cq_model *model;
  const struct cq_kernels *kernels;
  int32_t differentiable;
  int32_t chunks, ranges, range_start[CQ_RANGES_MAX + 1];   // in chunks
  int32_t first_chunk, first_range;    // on the spatial grid
  cq_values values;
  int32_t updates;                     // some law changes F or internal variables after a step
  int32_t params;                      // of a particle: CQ_PARAM_SLOTS and the slots of its material
  double *slot[CQ_SLOTS_MAX];          // {n} of values
  void *globals;                       // reals: gravity {3}, friction {walls}, wall velocity {walls, 3}, damping

  // walls: displacement of each up to an engine step, doubles {walls, 3}; its impulses in the running control step,
  // doubles {ranges, contact_count, contact width}
  void *wall_place, *impulse;
  int64_t wall_place_step;

  // the live state
  cq_slice *live;
  cq_arrangement *arrangement;
  int64_t widest;                      // most nodes that a step's record has had
  double drift;                        // cells that the fastest particle has moved since the arrangement was made
  int64_t step;                        // engine steps made
  cq_health health;

  // the running step or sorting: prepared by the first worker for the others
  cq_status status;
  char sentence[1024];                 // of the last failure
  cq_slice *next;
  cq_arrangement *next_arrangement;
  void *record, *nodes_record;

  // work arrays
  void *slab[CQ_RANGES_MAX];
  int64_t slab_capacity[CQ_RANGES_MAX];   // nodes
  void *grid_v, *grid_q;               // window: velocity; adjoint of momentum and mass
  int64_t grid_capacity;
  // the same of what particles had before stress and forces, NULL without unresolved motion, and the adjoint of what
  // they keep of it, {chunks, dim + dim dim, 16}; slabs of ranges on reference grids: the adjoint of carrier_blend
  void *inertia_slab[CQ_RANGES_MAX], *inertia_v, *inertia_q, *kept_adj;
  // of carriers {nodes, 4} (carrier.inl): what velocities of bodies' nodes take here, and what their places do; adjoint
  // of the momentum and mass that they bring
  void *carrier_change, *carrier_blend, *carrier_q;
  int64_t carrier_capacity;            // nodes
  void *actuation, *actuation_adj;             // {chunks, CQ_SYM + 2 dim, 16}: sigma, force, pressure times area
  // cables, see cable.inl: {cables}; {points, dim} places, pulls or their gradient, gradient of the
  // places; {points}; {pulled, dim}
  void *cable, *cable_x, *cable_force, *cable_grad, *cable_share, *cable_base;
  // of those that pull at the end of a step, see implicit/cables.inl: {points, dim} places; {pulled}
  void *cable_end, *cable_pulled;
  // volumes of liquids, see volume.inl: {n, 5} numbers of particles, {nodes, 4} sums of nodes
  void *volume_part, *volume_node;
  int64_t volume_capacity;             // nodes
  void *dilatation;                    // {chunks, CQ_DILATATION_FIELDS, 16}, NULL where no material averages it

  // sorting
  int32_t *base;                       // {chunks, 3, 16} base cells: x, y (0 in 2D), last axis
  int32_t *source, *source_other;      // {chunks * 16} old slot of each new one
  int32_t *plane;                      // first new slot of each x
  int32_t *tally;                      // {ranges, tally_stride} as many counters as the world has cells along any axis
  int64_t tally_stride;
  cq_reach *reach;                     // of one range after another: planes of its slab, first of them at reach_start
  int64_t reach_start[CQ_RANGES_MAX], reach_capacity;

  cq_implicit implicit;                // empty where steps are explicit
  cq_reference reference;              // empty where steps are on the spatial grid

  const double *signals, *forces;      // of the running control step
  double *impulse_out;                 // {contact_count, contact width} of it, NULL: nobody reads impulses
  const double *grad_impulse;          // backward the same, NULL: none
  // {walls, dim} of it; NULL: velocities of walls are those of all times
  double *grad_wall_velocity, *grad_wall_place;
  double *grad_gravity;                // {dim} of it; NULL: gravity is that of all times

  // actuators of each chunk, see actuation.inl; rows of a range stand together, from row_width times its first chunk on
  int32_t row_width;                  // of a chunk, at most
  int32_t *weight_rows;                      // {chunks}
  int32_t *row_actuator;              // {chunks * row_width}
  void *row_weight;                   // {chunks * row_width, 16}
  int64_t *row_entry;                 // {chunks * row_width, 16} the user's, -1: none
  int64_t rows_sorted_at[CQ_RANGES_MAX];   // sorted_at of the arrangement that a range has weight rows for, -1: none

  // adjoint of the live state; in the order it was left in, for the live state may be made again
  // from a checkpoint in another
  void *adj, *adj_other;
  void *internal_adj, *internal_adj_other;   // of the internal variables, NULL where there are none
  cq_arrangement *adj_arrangement;
  void *params_adj;                    // {chunks, params, 16}
  uint64_t wanted;                     // bits (1 << cq_field) of the gradients that will be asked for
  cq_gradients gradients;
  double *signals_adj, *forces_adj;    // {actuators}, {forces, dim}
  double *signals_partial;             // {ranges, actuators}
  cq_partial partial[CQ_RANGES_MAX];
  cq_found found[2][CQ_RANGES_MAX];    // of even and odd steps: one is read while the other is written

  cq_arrangement *free_arrangements;
  cq_slice *free_slices;
} cq_scene;

// Sets begin and end (exclusive) to the ranges of chunks of particles on the spatial grid that a worker (one of the
// threads that share the scene) processes.
static inline void cq_scene_share_spatial(const cq_scene *s, const cq_worker *worker, int *begin, int *end) {
  cq_worker_share(worker, s->ranges - s->first_range, begin, end);
  *begin += s->first_range;
  *end += s->first_range;
}
// As cq_scene_share_spatial, for the ranges of chunks of particles on reference grids.
static inline void cq_scene_share_reference(const cq_scene *s, const cq_worker *worker, int *begin, int *end) {
  cq_worker_share(worker, s->first_range, begin, end);
}
// The number of reals that an engine step records for its adjoint at each node of the spatial grid: 4 of momentum and
// mass; with unresolved motion 4 of momentum before stress and forces; in mixed worlds 4 of what bodies bring.
static inline int32_t cq_scene_grid_reals(const cq_model *m) {
  return 4 * (1 + cq_keeps_unresolved(m) + cq_is_mixed(m));
}
// The number of reals that an explicit engine step records for its adjoint at each node of reference grids: velocities
// before walls and pins, and in mixed worlds also those before the spatial grid changes them; 0 without all of these.
static inline int32_t cq_scene_node_reals(const cq_model *m) {
  return m->dim * ((m->wall_count + m->pin_count > 0 || cq_is_mixed(m)) + cq_is_mixed(m));
}
// The number of particles on the spatial grid.
static inline int64_t cq_scene_spatial_count(const cq_scene *s) {
  return cq_is_reference(s->model) ? s->model->spatial_count : s->model->particle_count;
}
// One past the slot (index in the sorted order) of the last particle on the spatial grid; padding slots follow.
static inline int32_t cq_scene_spatial_end(const cq_scene *s) {
  return (int32_t)(s->first_chunk * CQ_CHUNK + cq_scene_spatial_count(s));
}

// The number of reals of a particle in a slice (a state in memory): position, velocity, C and F.
static inline int32_t cq_scene_fields(const cq_scene *s) {
  return cq_state_offset(CQ_STATE_FIELD_COUNT, s->model->dim);
}
// The number of reals of a particle in s->actuation: stress, force, and pressure times area.
static inline int32_t cq_scene_actuation_fields(const cq_scene *s) {
  return s->model->dim * (s->model->dim + 1) / 2 + 2 * s->model->dim;
}

// Initialises *s as a scene of a model, with work memory but no state yet. kernels: typed loops for the model's
// dimension and precision; differentiable: 1 for adjoints. CQ_OK, or an error that leaves nothing to free: no memory,
// or a layout of reference grids that fails.
cq_status cq_scene_create(cq_scene *s, const cq_model *model, const struct cq_kernels *kernels, int differentiable);
// Frees all memory of a scene and clears *s; does nothing for a scene that is all zero.
void cq_scene_destroy(cq_scene *s);
// The approximate bytes of a checkpoint of a scene, a slice and an arrangement.
int64_t cq_scene_mark_bytes(const cq_scene *s);
// The estimated bytes of the record of one control step of a scene, what its adjoint needs of each engine step. Assumes
// that one step of ten sorts, which takes one more slice and arrangement, and that the grid grows by half, or as far as
// it did in earlier rollouts.
int64_t cq_scene_record_bytes(const cq_scene *s);
// Makes the reference grids of a scene for undeformed positions {n, dim}, and allocates again all memory that depends
// on them; the scene's states are released. CQ_OK, CQ_MEMORY, or an error of the layout.
cq_status cq_scene_lay_out(cq_scene *s, const double *positions);
// The slice that readouts read: the live state, or in worlds with reference grids the particle fields that
// cq_reference_observe has computed from the nodes.
static inline const cq_slice *cq_scene_seen(const cq_scene *s) {
  return cq_is_reference(s->model) ? s->reference.seen : s->live;
}

// The weights {n} of all particles in a readout, in the user's order: masses or initial volumes; NULL: all are 1.
static inline const double *cq_scene_weights(const cq_scene *s, const cq_readout *r) {
  return r->weighting == CQ_WEIGHT_MASS ? s->values.mass : r->weighting == CQ_WEIGHT_VOLUME ? s->values.volume : NULL;
}
// The array {n} that takes the gradient of a readout's weights (mass or volume), in the user's order; NULL: the readout
// has no weights, or nobody asks for their gradient.
static inline double *cq_scene_weights_adj(const cq_scene *s, const cq_readout *r) {
  const int32_t field = r->weighting == CQ_WEIGHT_MASS ? CQ_FIELD_MASS : CQ_FIELD_VOLUME;
  if (r->kind == CQ_READOUT_GATHER || r->weighting == CQ_WEIGHT_PARTICLE || !(s->wanted & cq_bit(field))) return NULL;
  return s->gradients.value[field];
}

// Slices and arrangements are shared by reference; those without references wait in a list for reuse.

// Returns a slice (a state in memory) with one reference, the caller's; its contents are undefined, since memory is
// reused. NULL without memory.
cq_slice *cq_slice_create(cq_scene *s);
// Frees a slice (a state in memory), however many references there are; NULL: nothing.
void cq_slice_free(cq_slice *slice);
// Adds a reference to a slice, and returns it.
cq_slice *cq_slice_retain(cq_slice *slice);
// Drops a reference to a slice; without references it waits for reuse by cq_slice_create. NULL: nothing.
void cq_slice_release(cq_scene *s, cq_slice *slice);
// Returns an arrangement (particle order, constants, active nodes) with one reference, the caller's, and no columns of
// nodes, for the caller to fill. NULL without memory.
cq_arrangement *cq_arrangement_create(cq_scene *s);
// Adds a reference to an arrangement, and returns it.
cq_arrangement *cq_arrangement_retain(cq_arrangement *a);
// Drops a reference to an arrangement; without references it waits for reuse by cq_arrangement_create. NULL: nothing.
void cq_arrangement_release(cq_scene *s, cq_arrangement *a);
// Copies displacements and velocities of the nodes of reference grids from one slice to another.
void cq_slice_copy_nodes(const cq_scene *s, const cq_slice *from, cq_slice *to);
// Returns a new slice of scene s with the state of `slice`, which belongs to another scene of the model. The motion v'
// and C' of the step before it is not copied. NULL without memory.
cq_slice *cq_slice_copy(cq_scene *s, const cq_slice *slice);
// Returns a copy for scene s of `a`, an arrangement of another scene of the model, with the particles' constants,
// marked as left by the rollout before (CQ_SORTED_BEFORE). NULL without memory.
cq_arrangement *cq_arrangement_copy(cq_scene *s, const cq_arrangement *a);
// Releases the slices and the arrangement of a step's record, and keeps its arrays over nodes for another step.
void cq_step_record_clear(cq_scene *s, cq_step_record *record);
// Releases the slices and the arrangement of a step's record, and frees its arrays over nodes.
void cq_step_record_destroy(cq_scene *s, cq_step_record *record);

// The calls below are made by every worker of the scene together, unless a head says otherwise.

// Sets s->slot {slot_count, n}: the constants that each particle's material law reads (as Lame's constants), computed
// from the user's fields of this rollout (as Young's modulus). Called by all workers.
void cq_scene_make_slots(cq_scene *s, const cq_worker *worker);
// Starts a rollout at step 0, by all workers: loads state and constants in s->values, clears walls, and sorts particles
// on the spatial grid. CQ_OK, CQ_MEMORY, CQ_UNSTABLE (one is outside the world), or an error of reference grids.
cq_status cq_scene_begin(cq_scene *s, cq_worker *worker);
// Starts a rollout with the same values as the last one: a scene all on reference grids goes back to its first state if
// it has kept one, any other one calls cq_scene_begin. Called by all workers. Returns as cq_scene_begin.
cq_status cq_scene_begin_again(cq_scene *s, cq_worker *worker);
// Starts a rollout of s at step 0 with a copy of the live state of `from`, another scene of the same model; constants
// and other fields are those of s->values. Called by all workers. CQ_OK, CQ_MEMORY, or an error of reference grids.
cq_status cq_scene_begin_from(cq_scene *s, cq_worker *worker, const cq_scene *from);
// Runs one control step forward (all its engine steps), by all workers. records {substeps}: takes what the adjoint of
// each engine step needs; NULL: nothing is recorded. CQ_OK, an error, or CQ_UNSTABLE with s->health.
cq_status cq_scene_advance(cq_scene *s, cq_worker *worker, cq_step_record *records);
// Reverses one control step from its records {substeps}, by all workers: s->adj, the adjoint of the live state, becomes
// that of the state before the control step, which becomes the live one. Sets the gradients of the step's signals and
// forces, and of its wall velocities and gravity where they are given by control steps. CQ_OK, or a step's error.
cq_status cq_scene_reverse(cq_scene *s, cq_worker *worker, const cq_step_record *records);
// Begins the reverse pass at the live state, by all workers: sets its adjoint and all gradients to zero.
void cq_scene_begin_adjoint(cq_scene *s, cq_worker *worker);
// Ends the reverse pass at step 0, by all workers: adds the adjoints of the initial state and of the constants, and
// those of gravity, damping and walls, to s->gradients, which are in the user's order.
void cq_scene_finish(cq_scene *s, cq_worker *worker);
// At step 0 of a scene that began in the live state of another one (cq_scene_begin_from), by one worker: adds the
// adjoint of its first state to that of the live state of `from`, and clears it. from NULL: only clears.
void cq_scene_pass_adjoint(cq_scene *s, cq_scene *from);
// Makes a slice live, with an arrangement as its particle order, and releases the old ones; the caller keeps its own
// references. drift: cells that the fastest particle may have moved in that order; step: engine steps before the state.
void cq_scene_resume(cq_scene *s, cq_slice *slice, cq_arrangement *arrangement, double drift, int64_t step);

#endif
