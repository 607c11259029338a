// tasks: the arguments of kernels beside those of the step: for sorting, controls and readouts. Reals are void
// pointers, as in the frame.
#ifndef CQ_CUDA_TASKS_H
#define CQ_CUDA_TASKS_H

#include "../engine/world/model.h"
#include <stdint.h>

// ---- sorting --------------------------------------------------------------------------------------------------------

// the result of a sorting
typedef struct cq_found {
  int32_t outside;           // a position is not in the world, or not finite
  int32_t lower[3], upper[3];     // box of the tiles with particles; unset if the window is the world
  int32_t tiles, ring;       // with particles; beside them
} cq_found;

// The window is a box of tiles around the particles of all scenes, with one more tile on every side. All scenes have
// the same window. Its tiles are numbered with the last axis fastest, scene after scene.
typedef struct cq_sorting {
  int32_t dim, slots, particles;
  double inv_dx, limit[3];   // as in the frame
  int32_t lower[3], size[3]; // window [tiles]; an axis that is not there has one
  int32_t tiles, total;      // of a window, of all scenes
  const void *state;         // {fields, slots}
  const int32_t *order;      // {slots} of the state
  int32_t *key, *rank;       // {slots} tile; arrival in it, in any order
  uint8_t *cell;             // {slots} cell in the tile
  int32_t *placed, *by_cell; // {slots} old slots by tile; user ids by tile and cell
  int32_t *count;            // {total} particles of a tile
  int32_t *first;            // {total} slot of its first one
  int32_t *number;           // {total} of a tile with particles, -1: none, -2 - k: the k-th beside them
  int32_t *partial;          // of scans, three for each block
  cq_found *found;
} cq_sorting;

// Copies values of the user, {particles, width} doubles, to fields first .. first + width. Those of the next scene lie
// `every` doubles further; 0: all scenes have the same.
typedef struct cq_loading {
  const double *from;
  int64_t every;
  int32_t particles, slots, fields, first, width;
  void *to;                  // {fields, slots} by user id
} cq_loading;

// Moves up to three arrays {fields, slots} of reals, and one {slots} of bytes, from one order into another. NULL: none.
typedef struct cq_moving {
  const void *from[3];
  void *to[3];
  int32_t fields[3], slots;  // no fields: no array
  const uint8_t *bytes_from;
  uint8_t *bytes_to;
  const int32_t *order;      // {slots} of to
  const int32_t *slot_of;    // {slots} of from
} cq_moving;

// Takes scenes of one rollout over into scenes of another one: those of scene s are scene[first[s]] to before
// scene[first[s + 1]]. Copies what they have, adds it (of adjoints), or clears what scene s has if it takes any.
enum { CQ_TAKE_COPY, CQ_TAKE_ADD, CQ_TAKE_CLEAR };
typedef struct cq_taking {
  int32_t mode;
  const int32_t *first, *scene;  // {scenes of to + 1}, {taken}
  // particles: two arrays {fields, slots}, of which `from` is not read to clear
  int32_t particles, slots;      // of a scene, of all scenes of to
  int32_t fields[2];
  const void *from[2];
  void *to[2];
  const int32_t *order;          // {slots} of to
  const int32_t *slot_of;        // {slots} of from
  // nodes of reference grids: {2, nodes} Nodes of each rollout; no nodes: nothing
  int32_t nodes_from, nodes_to;
  const void *node_from;
  void *node_to;
  const int32_t *node_scene;     // {nodes_to / CQ_TILE_NODES} of to
  const int32_t *first_from, *first_to;   // {scenes} the first node of a scene
} cq_taking;

// Copies gradients to doubles in the order of user ids. Those of the state go to one array {slots, width} for each
// quantity, one after another. Those of constants are added to an array {fields, slots}, and cleared in `from`.
typedef struct cq_storing {
  void *from;                // {fields, slots}
  int32_t fields, slots;
  const int32_t *order;
  double *to;
} cq_storing;

// ---- actuation ------------------------------------------------------------------------------------------------------

// The cables and chambers of all scenes: the lists are the model's (cq_cables), particles are those of a scene.
typedef struct cq_pulling {
  int32_t count, chambers, all;  // of a scene; all: of both, 0: there are none
  int64_t points, pulled_count;
  const int32_t *actuator, *particle, *pulled;
  const double *offset, *slope, *weight, *anchor, *pull_weight;
  const int64_t *start, *point_start, *pull_start, *pull_point, *face_start, *corner_start;
  const int32_t *face, *corner;
  const int32_t *pulled_of;      // {forces} place in pulled of a particle with a force, -1: none; NULL: no forces
  const double *value[3];        // stiffness, rest length, friction {count}, of each scene value_stride further
  int64_t value_stride[3];
  // work {batch, points, dim}: places, pulls or their gradient, gradient of the places; {batch, points}
  double *x, *force, *grad, *share;
  // backward, added to
  double *grad_value;            // {3, batch, count}
  double *grad_signals;          // {batch, all} of the running control step
  // {batch, pulled, dim} of the forces that a script gives pulled particles in the running control step
  double *grad_base;
} cq_pulling;

// The controls of one control step, and the way to and from them. Lists are the model's; p
// counts the particles of a scene.
typedef struct cq_actuation {
  int32_t actuators, forces;     // of a scene
  int64_t entries;               // of a scene
  const int64_t *start;          // {particles + 1} entries of a particle
  const int32_t *actuator;       // {entries}
  const int64_t *entry;          // {entries} the user's index
  const double *direction;       // {actuators, dim, dim}
  const int32_t *force_of;       // {particles} NULL: no forces
  const double *weight;          // {entries} by the user's index, of each scene weight_stride further
  int64_t weight_stride;
  const double *signals, *force; // {batch, actuators}, {batch, forces, dim}; force NULL: none in this control step
  void *out;                     // {CQ_SYM + 2 dim, slots}
  const int64_t *surface_start;  // {particles + 1} entries of surfaces of a particle; NULL: there are none
  const int32_t *surface_actuator;
  const double *surface_area;    // {entries, dim}
  const int64_t *surface_by_start;     // {actuators + 1} the same by actuator
  const int32_t *surface_by_particle;
  const double *surface_by_area;
  cq_pulling cables;
  // backward, with the entries by actuator
  const int32_t *slot_of;        // {slots} of the adjoint
  const int64_t *by_start;       // {actuators + 1}
  const int32_t *by_particle, *by_actuator;   // {entries}
  const int64_t *by_entry;       // {entries} the user's index
  const int32_t *force_particle; // {forces}
  double *share;                 // {batch, entries} of each entry in its signal's gradient
  double *grad_weight;           // {batch, entries} by the user's index; added to
  double *grad_signals, *grad_force;
} cq_actuation;

// ---- readout --------------------------------------------------------------------------------------------------------

typedef struct cq_portion {
  int32_t group, begin, end;     // some of the particles of a group
} cq_portion;

// One quantity in a readout.
typedef struct cq_part {
  int32_t quantity;              // a cq_field of the state, or a cq_derived
  int32_t first, width;          // fields; of a derived quantity: numbers of a row of derived
  int32_t component, components; // of the sums
  int64_t out;                   // where its first group, or first particle, is in out
} cq_part;

// The norms of the adjoint of the state of all scenes: of particles and, with total Lagrangian steps, of nodes.
enum { CQ_NORM_PORTIONS = 32 };  // of a scene, whose squares are added up by a block each
typedef struct cq_norming {
  int32_t batch, particles, internals;   // scenes; particles and internal variables of one
  void *adj, *internal;          // {fields, slots}, {internals, slots}
  void *nodes;                   // {2, node_count} Nodes; NULL: there are none
  const int32_t *node_scene;     // {node_count / CQ_TILE_NODES}
  int32_t node_count;
  double most;                   // longer ones are scaled to it; INFINITY: any
  double *portions;              // {batch, CQ_NORM_PORTIONS}
  double *norms;                 // {batch}
} cq_norming;

// A readout of all scenes. Sums have a fixed order: of portions, then over those of a group.
typedef struct cq_reading {
  int32_t kind;                  // cq_readout_kind
  int32_t parts;
  cq_part part[CQ_QUANTITY_COUNT];
  int32_t batch, particles;
  int32_t groups, listed, portions, components;   // components: total weight, then sums
  int64_t count;                 // of out, for a scene
  const int32_t *list;           // {listed} particles
  const cq_portion *portion;
  const int32_t *portion_start;  // {groups + 1}
  const void *state;
  const int32_t *slot_of;        // {slots} of the state
  const double *weight;          // NULL: every particle counts 1
  int64_t weight_stride;         // from scene to scene
  // not 0: an earlier step of the run failed or stopped, so the state was not computed and is not read; NULL: it was
  const int32_t *over;
  double *partial, *sum;         // {batch, portions, components}, {batch, groups, components}
  double *out;                   // {batch, count}
  // backward, by particle
  int32_t distinct_count;
  const int32_t *distinct;       // {distinct_count} the listed particles, each once
  const int32_t *place_start;    // {distinct_count + 1}
  const int32_t *place;          // {listed} places in the list
  const int32_t *group_of;       // {listed} by place
  const double *grad_out;        // {batch, count}
  void *adj;                     // {fields, slots}
  const int32_t *adj_slot_of;    // {slots}
  double *grad_weight;           // {slots} by user id, added to; NULL: not wanted
  double *grad_slots;            // {constants, slots} by user id, added to: those of materials
  // derived quantities, which are computed before they are summed
  int32_t derived_width;         // numbers of a particle, 0: there are none
  double *derived;               // {batch, listed, derived_width}
  const void *params;            // {params, slots} in the order of the state
  const uint8_t *material;       // {slots}
  int32_t param_count, internals, slots;
  int64_t internal_offset;       // as in the frame
  double dx, dt;
  cq_material materials[CQ_MATERIALS_MAX];
} cq_reading;

#endif
