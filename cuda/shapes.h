// shapes: the reference grids of all bodies of a batch, for total Lagrangian steps, as the kernels see them.
//
// Only nodes around cells with particles are numbered, scene after scene; those of a scene begin at a multiple of
// CQ_TILE_NODES. Cells are taken together by SIDE^dim, as tiles of space are. A tile of cells reads and writes the
// nodes of its hull, one more than cells along each axis and on either side:
//
//   node    .  o  o  o  o  .        SIDE = 4: the tile's own nodes (o), one for each cell, and the rest of its hull
//
// Particles lie sorted by tile, by cell and by the user's number, and stay so. What a tile gives to the nodes of its
// hull goes to its arena. A node lies in the hulls of at most two tiles along each axis: a table says where.
#ifndef CQ_CUDA_SHAPES_H
#define CQ_CUDA_SHAPES_H

#include "../engine/world/grids.h"
#include <stdint.h>

// of cells, with particles
typedef struct cq_cell_tile {
  int32_t first, count;      // its slots
  int32_t body, scene;       // body: counted through all scenes
} cq_cell_tile;

typedef struct cq_shapes {
  int32_t tiles, nodes, bodies, rims;   // of all scenes
  int32_t pinned;            // there are pins
  int32_t slots;
  int32_t dim, cells[3];     // of the world
  double dx, dt;
  int32_t viscous;           // some material is
  int32_t places;            // backward: gradients of positions are wanted
  int32_t volumes, starts;   // and those of volumes, and of F at rest

  // of the running run of engine steps
  int64_t check;             // number of its first check of surfaces
  unsigned *fastest;         // {count} bits of the square of the speed of the fastest node in each substep, a float
  int32_t *edge;             // {1 + count} of that state: 1 a surface is at the edge of the world, 2 the table is full
  void *seen;                // {fields, slots} particles of state k that cables are fixed to

  // of the layout
  const cq_cell_tile *tile;  // {tiles}
  const int32_t *hull;       // {tiles, (SIDE + 2)^dim} node, -1: none
  const int32_t *cell_start; // {tiles, SIDE^dim + 1} where the particles of each cell begin, from the tile's first
  const int32_t *corner;     // {slots} lowest node around a particle, in hull
  const int32_t *given;      // {nodes, 2^dim} where tiles give to a node, in an arena, -1: nowhere
  const int32_t *pin;        // {nodes} the pin that holds it, as a wall below 0; 0: none
  const int32_t *scene;      // {nodes / CQ_TILE_NODES}
  const cq_rim *rim;         // {rims} nodes of cells at surfaces; node: of the middle, unused
  const int32_t *rim_node;   // {rims, 1 + 2 dim} the node, then those before and after it along each axis
  const int32_t *rim_scene;  // {rims}
  const int32_t *body_tile;  // {bodies + 1} first tile of each body
  const int64_t *body_count; // {bodies} particles

  // reals; Nodes, of whose four numbers the first dim are used, unless it says otherwise
  const void *rest;          // {nodes} places of nodes
  void *mass;                // {nodes} mass, and its inverse
  const void *fraction;      // {dim, slots} of a particle from the node of its cell [cells]
  const void *place;         // {dim, slots} at rest
  const void *start;         // {dim * dim, slots} F at rest; NULL: the identity
  void *arena[2];            // {tiles, (SIDE + 2)^dim} what tiles give: to displacements or forces, to velocities

  // backward
  void *adj;                 // {2, nodes} of displacements and velocities of the live state
  void *force_adj;           // {nodes} dL/d(force) of the running step
  void *mass_adj, *rest_adj; // {nodes} reals, {nodes}
  void *fraction_adj, *place_adj, *start_adj;   // as fraction, place, and start
  double *origin_adj;        // {bodies, dim}

  // collisions: nodes of surfaces by their cells, in buckets whose words count for one state only; NULL without them
  void *push;                // {nodes} Nodes: the forces by which surfaces push each other apart
  double friction;           // of them
  double *near_at;           // {rims, dim} where nodes of surfaces are
  unsigned long long *near_first;   // {near_size} state and first rim of a bucket
  int32_t *near_next;        // {rims} the next one of the bucket, -1: none
  int64_t near_size;

  // surfaces that meet: a table of the cells of the world that they are in, whose entries count for one check only
  unsigned long long *touch_cell, *touch_rim;   // {touch_size}
  int64_t touch_size;
} cq_shapes;

// The particles that a first state is made of, in the order of the layout, and backward what they get.
typedef struct cq_given_particles {
  const void *state, *params;   // {fields, slots}, {params, slots}
  int32_t param_count;
  void *adj, *params_adj;
} cq_given_particles;

// The number of nodes in the hull of a tile of a reference grid: all nodes that particles in the tile's cells reach.
static inline int32_t cq_hull_nodes(int32_t dim) { return dim == 3 ? 6 * 6 * 6 : 10 * 10; }
// The number of cells of a tile of a reference grid.
static inline int32_t cq_tile_cells(int32_t dim) { return dim == 3 ? 4 * 4 * 4 : 8 * 8; }

#endif
