// frame: all that a kernel reads and writes, behind one pointer to device memory. So a captured graph of launches stays
// valid while arrangements, slices and work arrays are replaced. Reals are void pointers here; the kernels of one
// {dimension, precision} give them their type.
//
// Space is cut into tiles of SIDE^dim cells: 4 along an axis in 3D and 8 in 2D, so that a tile owns 64 nodes in both.
// Particles lie sorted by tile, in groups of 32 slots. A group has its fields one after another: CQ_SLOT_AT, or
// {fields, slots} for short. Tiles with particles come first. Then come their neighbours, which own nodes that these
// particles reach. Particles may drift one cell out of their tile before they are sorted again. So a tile works on its
// region of (SIDE + 4)^dim nodes. Along one axis, its own nodes (o) and the rest of its region (.):
//
//   node   -1  0  1  2  3  4  5  6        SIDE = 4
//           . [o  o  o  o] .  .  .
//
// A tile scatters into its arena, which has the shape of its region. A node lies in the arenas of at most two tiles
// along each axis, which are added in a fixed order: without atomics, and to the same bits always. If there are few
// tiles, several blocks of threads share one, and each takes a part of its particles.
#ifndef CQ_CUDA_FRAME_H
#define CQ_CUDA_FRAME_H

#include "../engine/world/model.h"
#include "shapes.h"

enum {
  CQ_TILE_NODES = 64,        // that a tile owns
  CQ_GROUP = 32,             // slots
  CQ_NEIGHBORS_MAX = 27,     // 3^dim, the tile itself in the middle, last axis fastest
  // entries of a node in the wall map: first * CQ_ENTRIES + count; CQ_PIN_ENTRY as count: a pin
  CQ_ENTRIES = 16,
  CQ_PIN_ENTRY = 15,
};

// Where the globals of a scene, and their gradients in the sums of a tile, begin; gravity is first. Friction {walls} is
// followed by wall velocity {walls, 3} and, in the sums, by wall place {walls, 3}.
enum { CQ_AT_DAMPING = 3, CQ_AT_FRICTION = 4 };

// Parameters of a particle, which every step reads: mass, volume, and the slots of its material from CQ_PARAM_SLOTS on.
enum { CQ_PARAM_MASS, CQ_PARAM_VOLUME, CQ_PARAM_SLOTS };

typedef struct cq_tile {
  int32_t lower[3];          // its first node
  int32_t scene;
  int32_t first, count;      // its slots; none beyond tile_count
  int32_t has_walls;         // some of its nodes have entries in the wall map
  int32_t unused;            // a multiple of 16 bytes
} cq_tile;

// one engine step of the running control step
typedef struct cq_substep {
  const void *in;            // {fields, slots} state before; internal variables follow at internal_offset
  void *out;                 // state after, in the order of in
  void *grid;                // {block_count, 64} nodes: momentum and mass, kept for the adjoint; NULL: not wanted
} cq_substep;

// What kernels have found since the host last read it, as an index of substeps counted from there; INT32_MAX: nothing.
// Once something is found, the kernels of later substeps and runs do nothing, until the host has sorted the particles
// or reported the failure.
typedef struct cq_progress {
  // first state in which surfaces of bodies meet, or one has left the world (touch.inl, repel.inl)
  int32_t touches;
  int32_t stop;              // first state with a particle outside of its tile's region: sort before this step
  int32_t bad;               // first step that fails: inverted before it; not finite or not in the world after it
  // Set once by the grid pass when `stop` or `bad` is set. Particle passes read this word and not `stop` or `bad`,
  // because they write those in the same launch.
  int32_t over;
} cq_progress;

// inv_dx = 1 / dx; dt: of one engine step; limit: largest coordinate [cells]: the cells of the axis and a little more,
// because rounding may put a particle on the upper edge
#define CQ_SCALES(type) struct { type dx, inv_dx, dt, limit[3]; }

typedef struct cq_frame {
  // of the world and the batch
  int32_t batch, particles;  // scenes; particles of one
  int32_t slots;             // batch * particles
  CQ_SCALES(double) scales_8;
  CQ_SCALES(float) scales_4; // the same, for kernels in float: converting is slow there
  int32_t material_count;
  cq_material materials[CQ_MATERIALS_MAX];
  uint32_t updates;          // mask of the materials that change F or internal variables after a step
  int32_t param_count;       // of a particle: CQ_PARAM_SLOTS and the slots of its material
  int32_t internals;         // internal variables of a particle
  int64_t internal_offset;   // of {internals, slots} behind the fields of a state, and of adj [bytes]
  int32_t wall_count, moving_wall_count;
  const cq_wall *walls;      // their heights in device memory too
  cq_wall_map map;           // arrays in device memory
  // {batch, global_stride} reals: gravity {3}, decay in a step, friction {walls}, wall velocity {walls, 3}
  const void *globals;
  int32_t global_stride, wall_stride, gravity_stride;

  // the arrangement
  int32_t tile_count;        // tiles with particles
  int32_t block_count;       // and with their neighbours
  int32_t parts;             // of a tile's particles: each has a block of threads and an arena of its own
  const cq_tile *tiles;      // {block_count}
  const int32_t *neighbors;  // {block_count, CQ_NEIGHBORS_MAX} -1: none
  const int64_t *wall_entries;   // {block_count, 64} entries of each node in the wall map
  const int32_t *order;      // {slots} scene * particles + particle of each slot
  const void *params;        // {params, slots}
  const uint8_t *material;   // {slots}
  const void *actuation;         // {CQ_SYM + 2 dim, slots} sigma, force, pressure times area; NULL: none anywhere
  int32_t pressed;           // some particle has a pressure

  // the running control step
  int64_t step;              // engine step of substep 0
  const void *gravity;       // reals {3}, those of each scene gravity_stride further
  const void *wall_velocity; // reals {walls, 3}, those of each scene wall_stride further
  const double *wall_place;  // {batch, walls, 3} the way that moving walls have made before wall_step; NULL: none
  int64_t wall_step;         // engine step from which on the walls have had these velocities
  const int64_t *wall_age;   // {batch} engine steps before the rollout in which they had them as well; NULL: none
  // {block_count, impulse_count} impulses at each tile's own nodes, of each wall, then of groups of pins: added to.
  // NULL: not wanted
  double *impulse;
  const double *grad_impulse;  // {batch, impulse_count} backward: their gradients; NULL: none
  int32_t impulse_count;     // contact_count * CONTACT_WIDTH
  int32_t first;             // index of substep 0 in progress
  int32_t count;             // substeps of the run
  const cq_substep *substeps;
  cq_progress *progress;
  unsigned *arrived;         // the counter of cq_sync_grid

  const cq_shapes *shapes;   // of total Lagrangian steps; NULL: particles move on the spatial grid

  // work arrays
  // {tile_count, parts, (SIDE + 4)^dim} nodes, for even and for odd engine steps. Both are the same memory where a grid
  // pass of its own lies between writing and reading.
  void *arena[2];
  void *grid_v, *grid_q;     // {block_count, 64} nodes: velocity; adjoint of momentum and mass

  // the adjoint of the live state
  void *adj;                 // {fields, slots}, and internal variables as in a state
  void *params_adj;          // {params, slots}
  void *actuation_adj;           // {CQ_SYM + 2 dim, slots}, NULL where actuation is
  // {block_count, sum_count} of each tile's own nodes: gravity {3}, damping, friction {walls}, wall velocity {walls,
  // 3}, wall place {walls, 3}; added to
  double *sums;
  int32_t sum_count;
  int32_t sums_wanted;       // some gradient of them will be asked for
  int32_t damping_wanted;    // that of damping will be
} cq_frame;

// index of a slot's first field; the next is CQ_GROUP further, so that a thread finds all fields from one address
#define CQ_SLOT_AT(fields, slot) ((int64_t)((slot) / CQ_GROUP) * ((fields) * CQ_GROUP) + (slot) % CQ_GROUP)

// The number of grid cells of a tile along each axis, which is also the number of nodes that it owns along that axis.
static inline int32_t cq_tile_side(int32_t dim) { return dim == 3 ? 4 : 8; }
// The number of nodes in a tile's region: the tile's own nodes, and the margin around them that its particles reach.
static inline int32_t cq_region_nodes(int32_t dim) { return dim == 3 ? 8 * 8 * 8 : 12 * 12; }

#endif
