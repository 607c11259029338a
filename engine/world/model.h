// model: what is fixed during a run, checked and copied from the user's def, in double precision and the user's order.
#ifndef CQ_MODEL_H
#define CQ_MODEL_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CQ_WALLS_MAX = 64,          // of a world; wall ids index small tables in the kernels
  CQ_CONTACTS_MAX = 8,        // walls at rest that may hold one node; more is an error when the world is made
  CQ_MATERIALS_MAX = 31,      // a chunk's materials are a 32-bit mask, which loops shift until it is 0
  CQ_NODE_PAD = 4,            // node columns kept around the domain: half a stencil, the margin, and the row overhang
};

// One wall at one node.
typedef struct cq_wall_node {
  int32_t z;                  // along the last axis
  int32_t wall;               // index of the wall; below 0 for a pin: its group less the count of groups
  double normal[3];           // unit, out of the solid
} cq_wall_node;

// The nodes that walls and pins hold, by column: entries of column (x, y) are start[c] .. start[c
// + 1], sorted by z, then wall.
typedef struct cq_wall_map {
  int32_t lower[2], size[2];  // columns (x, y); y is 0 in 2D
  int64_t *start;             // {size[0] * size[1] + 1}
  cq_wall_node *node;
} cq_wall_map;

// The paths of all cables, then the surfaces of all closed chambers: both are points that particles carry, and give the
// points forces that follow from where these are. Points are numbered through: those of cable c are start[c] .. start[c
// + 1], those of chamber c start[count + c] .. start[count + c + 1].
typedef struct cq_cables {
  int32_t count, chambers, all;   // all: of both
  int32_t *actuator;          // {all}
  double *offset, *slope;     // {count} of the free length
  int64_t *start;             // {all + 1}
  int64_t *face_start;        // {chambers + 1}
  int32_t *face;              // {faces, dim} points of a chamber, from its first
  // the same by point: corner[corner_start[point]] .. are places in the faces of the point's chamber
  int64_t *corner_start;      // {points + 1}
  int32_t *corner;            // {faces, dim}
  int64_t points, pairs;      // of all; of a point with one of its particles
  int64_t *point_start;       // {points + 1} pairs of each point
  int32_t *particle;          // {pairs}
  double *weight;             // {pairs}
  double *anchor;             // {points, dim}, of points without particles
  // the same by particle: pulled[k] has the pairs pull_start[k] .. pull_start[k + 1]
  int64_t pulled_count;
  int32_t *pulled;            // {pulled_count} in the user's order
  int64_t *pull_start;        // {pulled_count + 1}
  int64_t *pull_point;        // {pairs}
  double *pull_weight;        // {pairs}
} cq_cables;

// Entries of surfaces by particle: those of p are start[p] .. start[p + 1].
typedef struct cq_surfaces {
  int64_t count;
  int64_t *start;             // {n + 1}, NULL without entries
  int32_t *actuator;          // {count}
  double *area;               // {count, dim} N A
} cq_surfaces;

typedef struct cq_model {
  int32_t dim, precision, threads, simd;
  int32_t cells[3], substeps;
  double dx, dt;              // dt: of one engine step
  double gravity[3], damping;
  cq_integrator integrator;
  int32_t formulation;        // cq_formulation
  int32_t body_count, *body;  // {n} of reference grids; -1: of a particle on the grid of the world
  int64_t spatial_count;      // particles on the grid of the world beside bodies with reference grids
  double collision_stiffness; // share of the softer P-wave modulus by which surfaces push each other apart, 0: never
  double collision_friction;
  double residual_decay;      // rate at which unresolved motion decays, 0: APIC
  double keep;                // share of unresolved motion that stays after an engine step, 0: APIC
  double volume_share;        // of the way of J of liquids to its mean over the grid, in a control step
  int32_t averages_dilatation;   // some material does
  double f_bar[CQ_MATERIALS_MAX];   // share of each
  int64_t particle_count;
  // values of the fields of particles and actuation entries; NULL: nothing in this world has the field
  CQ_FIELD_UNION(double, CQ_BODY_FIELDS, CQ_FIELD_POINTER, CQ_FIELD_GRAVITY);
  int32_t *material;
  int32_t material_count;
  int32_t slot_count;         // constants of a particle, the most that a law here has
  int32_t internal_count;     // internal variables of a particle, the most that a law here has
  cq_material materials[CQ_MATERIALS_MAX];
  int32_t wall_count, moving_wall_count;
  int32_t walls_have_friction;                    // of implicit steps: some walls have friction
  cq_wall walls[CQ_WALLS_MAX];
  double *heights[CQ_WALLS_MAX];   // owned copies
  int64_t pin_count;
  int32_t *pins, *pin_group;  // pin_group: NULL for one group
  int32_t contact_count;      // of walls, then of groups of pins: rows of impulses
  cq_wall_map map;            // of the walls that do not move, and of the pins
  int32_t actuator_count;
  double *actuator_direction; // {actuators, dim, dim}
  int64_t actuation_count;    // entries by particle: those of p are actuation_start[p] .. actuation_start[p + 1]
  int64_t *actuation_start;
  int32_t *actuation_actuator;
  int64_t *actuation_entry;   // the user's index of the entry, for weights and their gradient
  int64_t force_count;
  int32_t *force_particle;
  int32_t *force_of;          // {n} index of a particle's force, -1 for none; NULL without forces
  cq_cables cables;
  cq_surfaces surfaces;
  uint32_t drives;            // bits (1 << cq_drive_kind) of the drives that there are
  uint8_t *drives_of;         // {n} of those that act on a particle
} cq_model;

// Are steps implicit? 1 yes, 0 explicit.
static inline int cq_is_implicit(const cq_model *m) { return m->integrator.kind == CQ_INTEGRATOR_IMPLICIT; }

// Do implicit steps follow the midpoint rule, so that the state in the middle of a step is solved for? 0 no, else yes.
static inline int cq_is_midpoint(const cq_model *m) { return cq_is_implicit(m) && m->integrator.midpoint; }
// How long after the start of an implicit step the state lies that the step solves for [time]: dt, or dt / 2 by the
// midpoint rule.
static inline double cq_solve_seconds(const cq_model *m) { return cq_is_midpoint(m) ? 0.5 * m->dt : m->dt; }

// Does the model have bodies on reference grids (total Lagrangian steps)? 1 yes, 0 no.
static inline int cq_is_reference(const cq_model *m) { return m->formulation == CQ_FORMULATION_TOTAL_LAGRANGIAN; }
// Does the world have particles on the spatial grid beside bodies on reference grids? 1 yes, 0 no.
static inline int cq_is_mixed(const cq_model *m) { return m->spatial_count > 0; }
// Does a particle belong to a body with a reference grid? 1 yes, 0 no.
static inline int cq_on_reference(const cq_model *m, int64_t particle) {
  return cq_is_reference(m) && m->body[particle] >= 0;
}

// Do particles keep a share of the motion that the grid does not resolve (E123)? 1 yes, 0 no.
static inline int cq_keeps_unresolved(const cq_model *m) { return m->keep > 0; }

// The bit of a kind of drive (CQ_DRIVE_...) in masks of drives.
static inline uint32_t cq_drive_bit(int32_t kind) { return (uint32_t)1 << kind; }

// In implicit steps, is the pressure on open surfaces that at the end of the step (E93) instead of its start? 0 no,
// else yes.
static inline int cq_pressure_follows(const cq_model *m) {
  return (m->integrator.statics || m->integrator.pressure) && (m->drives & cq_drive_bit(CQ_DRIVE_PRESSURE));
}

// In implicit steps, are the forces of a cable or chamber those at the end of the step (E100) instead of its start? 0
// no, else yes. k: index of a cable, or cables.count + index of a chamber.
static inline int cq_cable_follows(const cq_model *m, int32_t k) {
  const int chamber = m->integrator.statics || m->integrator.pressure;
  return cq_is_implicit(m) && (k < m->cables.count ? m->integrator.cables : chamber);
}

// Has the world cables, which couple nodes far from each other, whose forces are those at the end of an implicit step
// (E100)? 0 no, else yes.
static inline int cq_pulls_follow(const cq_model *m) { return m->cables.count > 0 && cq_cable_follows(m, 0); }

// Has the world cables or chambers whose forces are those at the end of an implicit step (E100)? 1 yes, 0 no.
static inline int cq_cables_follow(const cq_model *m) {
  const cq_cables *c = &m->cables;
  return (c->count > 0 && cq_cable_follows(m, 0)) || (c->chambers > 0 && cq_cable_follows(m, c->count));
}

// Checks the options of implicit steps in a definition and copies them to out, with defaults in the place of zeros, but
// for stick_velocity (cq_integrator_complete), and without midpoint in statics. CQ_OK or CQ_INVALID.
cq_status cq_integrator_check(const cq_world_def *def, cq_integrator *out);
// Checks that walls and materials of a complete model suit implicit steps, and sets its stick_velocity, where it is 0,
// and walls_have_friction; does nothing for explicit steps. CQ_OK or CQ_INVALID.
cq_status cq_integrator_complete(cq_model *m);

// Fills a zeroed model from the definition of a world. CQ_OK, or why not, with the model destroyed.
cq_status cq_model_create(const cq_world_def *def, cq_model *model);
// Frees all that a model owns, and zeroes it.
void cq_model_destroy(cq_model *model);
// The Courant number of the world with the user's value[field], or NULL: the model's values. weighed 1: as if any
// weight of actuation were at least 1.
double cq_model_courant(const cq_model *model, const double *const *value, int weighed);
// CQ_OK, or CQ_INVALID if a body of total Lagrangian steps has too few particles along a cell. volumes {n}: of the
// particles.
cq_status cq_model_check_density(const cq_model *m, const double *volumes);
// The default rate [1/time] at which motion that the grid does not resolve decays (E123): the larger of 0.1 c / dx of
// solids and 2 c / dx of liquids, c the speed of waves in the slowest particle of each on the world's grid; or 0.
double cq_model_residual_rate(const cq_model *model);
// How many numbers a field has in one scene; -1: there is no such field.
int64_t cq_model_field_count(const cq_model *model, int32_t field);

// The number of components of the velocities of all walls.
static inline int32_t cq_wall_numbers(const cq_model *m) { return m->wall_count * m->dim; }

// Sets the unit normals with which a wall holds the point x; returns their number (several in a corner of a hollow
// box), 0 outside the solid. slack: how far outside x may be [length].
int32_t cq_wall_normals(const cq_wall *wall, int32_t dim, double slack, const double x[3], double normals[3][3]);
// As cq_wall_normals, with the slack along the normal; a height field has it along y there.
int32_t cq_wall_normals_within(const cq_wall *wall, int32_t dim, double slack, const double x[3],
                               double normals[3][3]);
// Adjoint of cq_wall_normals: adds to grad_x, from grad_n = dL/d(first normal); walls with several normals have
// constant ones.
void cq_wall_normals_adj(const cq_wall *wall, int32_t dim, const double x[3], const double grad_n[3], double grad_x[3]);
// How far a point x lies within a wall widened by slack [length], along `normal`, one of its normals at x; sets slope
// to the derivative of this depth by x.
double cq_wall_depth(const cq_wall *wall, int32_t dim, double slack, const double x[3], const double normal[3],
                     double slope[3]);
// Sets begin and end (exclusive) to the entries of map->node that lie in the column (x, y) of nodes.
void cq_wall_map_column(const cq_wall_map *map, int32_t x, int32_t y, int64_t *begin, int64_t *end);
// Checks cables and chambers of a definition and copies them, with the constants of cables, into the model; its
// positions and actuators are there already. CQ_OK, CQ_MEMORY or CQ_INVALID.
cq_status cq_cables_create(const cq_world_def *def, cq_model *model);
// CQ_OK, or CQ_INVALID if `field` is the friction of cables, value is not 0, and cables have the forces of the end of
// an implicit step: these need an energy, which friction does not have.
cq_status cq_cables_check(const cq_model *m, int32_t field, double value);
void cq_cables_destroy(cq_cables *cables);
cq_status cq_surfaces_create(const cq_world_def *def, cq_model *model);
void cq_surfaces_destroy(cq_surfaces *surfaces);
// The Courant number of the stiffest cable; 0 without cables, INFINITY without memory. value[field]: arrays of all
// fields, not NULL.
double cq_cables_courant(const cq_model *model, const double *const *value);
cq_status cq_wall_map_create(cq_model *model);
void cq_wall_map_destroy(cq_wall_map *map);

#ifdef __cplusplus
}
#endif

#endif
