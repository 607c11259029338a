// cq.h: the one public header of the engine.
//
// LuaJIT reads this same file (preprocessed at build time), so it holds declarations only: no macros with values that a
// user needs, no inline functions. Sizes are in elements unless a name says bytes. All arrays at this border are double
// or int32_t and in the user's particle order; the engine converts to its own precision and order.
//
// Errors: a function that can fail returns a cq_status and leaves one English sentence, read with cq_error().
// Definitions: fill a def struct with its ..._init function, set what differs, pass it by pointer.
#ifndef CQ_H
#define CQ_H

#include "lists.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- base -----------------------------------------------------------------------------------------------------------

enum { CQ_ABI = 17 };                   // changes with any change of this file that a caller can notice
enum { CQ_COOKIE = 0x43514C55 };        // marks a def struct that its init function has filled

typedef enum cq_status {
  CQ_OK = 0,
  CQ_INVALID,       // an argument is wrong; the sentence says which, what was got, what is allowed
  CQ_MEMORY,        // not enough memory; the sentence gives the plan
  CQ_IO,            // a file could not be read or written
  CQ_UNSTABLE,      // the simulation failed at a step: non-finite, inverted, or left the grid
  CQ_DEVICE,        // a device is missing or failed
  CQ_INTERRUPTED,   // the user asked to stop
  CQ_UNSUPPORTED,   // the device does not offer this; the CPU does
} cq_status;

const char *cq_error(void);             // sentence of this thread's last failure, "" if none
int32_t cq_abi(void);                   // CQ_ABI of the built engine
int64_t cq_struct_size(const char *name);   // sizeof a public struct by its name, -1 if unknown; Lua compares its own
void cq_interrupt(int32_t on);          // ask running rollouts to stop at the next control step, or take it back
int32_t cq_interrupted(void);
double cq_clock(void);                  // monotonic wall clock [s]
double cq_ticks(void);                  // count of the fastest clock there is, for timers of phases
double cq_tick(void);                   // time of one count of cq_ticks [s], more precise the longer the program runs
int64_t cq_memory_available(void);      // bytes to take within the process's limits; 1/16 of all is left to others
int32_t cq_processors(void);            // processors that this process may use

// ---- world: what is fixed during a run ------------------------------------------------------------------------------

typedef enum cq_precision { CQ_FLOAT32 = 4, CQ_FLOAT64 = 8 } cq_precision;

typedef enum cq_device_kind {
  CQ_DEVICE_CPU = 0,
  CQ_DEVICE_CUDA,                       // a GPU, or an error that says what is missing
  // a GPU if there is one and the world has enough particles for it, else the CPU: see cq_world_device
  CQ_DEVICE_AUTO,
} cq_device_kind;

typedef enum cq_field {                 // the fields that a rollout can set and differentiate: see lists.h
  CQ_FIELDS(CQ_FIELD_ID) CQ_FIELD_COUNT
} cq_field;

typedef enum cq_owner {                 // a field has a value for each of these
  CQ_OWNER_STATE = 0,                   // each particle in each state; readouts take these
  CQ_OWNER_PARTICLE,                    // each particle
  CQ_OWNER_CONSTANT,                    // each particle of a material that has the constant
  CQ_OWNER_ENTRY,                       // each actuation entry
  CQ_OWNER_WORLD,                       // the world
  CQ_OWNER_WALL,                        // each wall
  CQ_OWNER_CABLE,                       // each cable
} cq_owner;

typedef struct cq_field_info {
  const char *name, *unit, *meaning;
  int32_t owner;                        // cq_owner
  int32_t rank;                         // 0 a number, 1 {dim}, 2 {dim, dim}
  double lower, upper;                  // bounds; infinite: none
  int32_t closed;                       // 1: the lower bound itself is allowed; the upper never is
  double value;                         // the default, of a matrix times the identity; NaN: there is none
} cq_field_info;

const cq_field_info *cq_field_describe(int32_t field);   // by cq_field; NULL for an unknown one

typedef enum cq_material_kind {         // see lists.h
  CQ_LAWS(CQ_LAW_ID) CQ_MATERIAL_COUNT
} cq_material_kind;

typedef struct cq_law_info {
  const char *name, *meaning;           // name of the constructor in Lua; a description for people
  int32_t lame;                         // 1: its constants are Lame's, which follow from any cq_elasticity
  int32_t incompressible;               // 1: it may have a Bonet-Wood term
  int32_t branches;                     // 1: Maxwell branches may stand beside it
} cq_law_info;

const cq_law_info *cq_law_describe(int32_t kind);        // by cq_material_kind; NULL for an unknown one

typedef enum cq_elasticity {            // the two constants by which the elasticity of an isotropic law is given
  CQ_ELASTICITY_YOUNG_POISSON = 0,      // CQ_FIELD_YOUNG and CQ_FIELD_POISSON
  CQ_ELASTICITY_SHEAR_BULK,             // CQ_FIELD_SHEAR and CQ_FIELD_BULK
  CQ_ELASTICITY_COUNT
} cq_elasticity;

typedef struct cq_material {
  int32_t kind;                         // cq_material_kind
  int32_t elasticity;                   // cq_elasticity, of laws with Lame's constants
  int32_t incompressible;               // power p of the Bonet-Wood term (eq. 14): 0 none, or 2, 4, 6, 8
  int32_t viscous;                      // 1: a viscosity beside the law, CQ_FIELD_VISCOSITY (Kelvin-Voigt damping)
  int32_t branches;                     // Maxwell branches beside a hyperelastic law: 0 to CQ_BRANCHES_MAX
} cq_material;
enum { CQ_BRANCHES_MAX = 3 };
// Writes the fields of the constants of a material, at most `most` of them, and returns how many there are.
int32_t cq_material_fields(const cq_material *material, int32_t *fields, int32_t most);

#include "drives.h"

typedef enum cq_contact_kind {
  CQ_CONTACT_STICKY = 0,                // v <- wall velocity
  CQ_CONTACT_SLIP,                      // no motion along the normal
  CQ_CONTACT_SEPARATE,                  // slip, but free to leave
  CQ_CONTACT_FRICTION,                  // separate with Coulomb friction
  CQ_CONTACT_HOLD,                      // v <- wall velocity of a node that moves into the wall; a node may leave
} cq_contact_kind;

typedef enum cq_wall_shape {
  CQ_WALL_HALF_SPACE = 0,               // solid where (x - point) . normal < 0
  CQ_WALL_BOX,                          // solid outside [lower, upper] if hollow, else inside it
  CQ_WALL_SPHERE,                       // solid inside, or outside if hollow; centre = point
  CQ_WALL_HEIGHT_FIELD,                 // solid below a height over the first axis (2D) or first axis x last axis (3D)
} cq_wall_shape;

typedef struct cq_wall {
  int32_t shape, kind;                  // cq_wall_shape, cq_contact_kind
  double friction;                      // Coulomb coefficient [-]
  double velocity[3];                   // of the surface [length/time]
  int32_t moves;                        // 1: the region moves with velocity; 0: it stays (a conveyor)
  int32_t hollow;
  double point[3], normal[3];           // normal points out of the solid
  double lower[3], upper[3];
  double radius;
  int32_t height_count[2];              // samples along the first axis, and along the last (1 in 2D)
  const double *height;                 // {height_count[0], height_count[1]}; linear between samples
  double height_origin[2], height_spacing[2];
} cq_wall;

typedef struct cq_world cq_world;

// Time integration of engine steps: explicit, or the minimum of an incremental potential over the velocities of nodes
typedef enum cq_integrator_kind { CQ_INTEGRATOR_EXPLICIT = 0, CQ_INTEGRATOR_IMPLICIT } cq_integrator_kind;

typedef struct cq_integrator {          // of the implicit kind; zeros are defaults
  int32_t kind;                         // cq_integrator_kind
  int32_t statics;                      // 1: steps have no inertia: each ends in equilibrium
  int32_t pressure;                     // 1: acts on the surface at a step's end, as always in statics; 0: at its start
  int32_t cables;                       // 1: cables pull as at the end of a step, 0: as at its start
  int32_t midpoint;                     // 1: midpoint rule, on reference grids only; 0: backward Euler
  double tolerance;                     // of the residual, relative to inertia and internal force; 1e-3
  double adjoint_tolerance;             // of the adjoint's linear system, relative; 1e-6
  // at most, of a step (E103: 5 times), 60; of a linear system, 5000
  int32_t newton_iterations, linear_iterations;
  double stick_velocity;                // speed at a wall above which friction is Coulomb's [speed]; 1e-3 dx / step
} cq_integrator;

// What the solver of one engine step did.
enum {
  CQ_SOLVER_NEWTON, CQ_SOLVER_LINEAR,   // Newton iterations; products with the second derivative
  CQ_SOLVER_RESIDUAL,                   // relative residual at the end
  CQ_SOLVER_FLOOR,                      // relative residual that rounding alone leaves
  CQ_SOLVER_UNSETTLED,                  // contacts that hold although they pull: no consistent set of them was found
  CQ_SOLVER_ADJOINT,                    // products with the second derivative in the adjoint of the step; 0 before it
  CQ_SOLVER_SADDLE,                     // how many of these products met a negative second derivative
  CQ_SOLVER_WIDTH,
};

typedef struct cq_world_def {
  int32_t cookie;
  int32_t dim, formulation;             // 2 or 3; cq_formulation
  int32_t precision;                    // cq_precision
  int32_t device;                       // cq_device_kind
  int32_t threads;                      // of the CPU, 0: all cores
  int32_t simd;                         // of the CPU, 0: best of this machine; 1 baseline, 3 AVX2, 4 AVX-512
  int32_t cells[3];                     // grid cells along each axis; the domain is [0, cells * dx]
  double dx;                            // cell size [length]
  double dt;                            // time between control steps [time]
  int32_t substeps;                     // engine steps per control step; the engine's step is dt / substeps
  double gravity[3];
  double damping;                       // grid velocities decay by exp(-damping t), 0: none [1/time]
  cq_integrator integrator;
  // of motion that the grid does not resolve [1/time]; 0: at each step (APIC); below 0: 0.1 c / dx, in liquids 2 c / dx
  double residual_decay;
  double collision_stiffness;           // of surfaces that are near, in P-wave moduli; 0: those that meet are an error
  double collision_friction;            // of these surfaces
  double pressure_smoothing;            // J of liquids nears its mean over the grid at this rate, 0: never [1/time]

  int64_t particle_count;               // n
  // values in the user's order by their field's name, or value[field]: {n, ...} of particles,
  // {actuation_count} of entries. NULL: the default of the field; position, volume, mass and the constants of
  // the materials there are must be given
  CQ_FIELD_UNION(const double, CQ_BODY_FIELDS, CQ_FIELD_CONST_POINTER, CQ_FIELD_GRAVITY);
  const int32_t *material, *body;       // {n} index into materials, and of bodies; NULL: all 0
  int32_t material_count, body_count;   // bodies have grids of their own, body -1 that of the world; 0 of them: one
  const cq_material *materials;
  // {material_count} share of the dilatation of a step that is the mean of the neighbours (E37), against volumetric
  // locking, 0: none; NULL: all 0
  const double *f_bar;

  int32_t wall_count;
  const cq_wall *walls;
  int64_t pin_count;
  const int32_t *pins;                  // particles that are held where they start: every node they touch is sticky
  const int32_t *pin_group;             // {pins} groups from 0, each with an impulse of its own; NULL: all are of one
  int32_t pin_group_count;              // a node that two groups touch is of the first

  int32_t actuator_count;               // a stress sum_a w_pa u_a S_a in the material frame
  const double *actuator_direction;     // {actuators, dim, dim} symmetric S_a [stress]
  int64_t actuation_count;              // entries (particle, actuator, weight); any number for a particle
  const int32_t *actuation_particle, *actuation_actuator;

  // The signal of its actuator sets the free length of a cable, and is the pressure [stress] in a chamber and at an
  // entry of an open surface. An actuator may drive any number of stresses, cables, chambers and surfaces; one without
  // stresses has a direction of zeros.
  int32_t cable_count;
  const cq_cable *cables;               // stiffness, rest length and friction are fields
  int32_t chamber_count;
  const cq_chamber *chambers;
  int64_t surface_count;                // entries (particle, actuator, area vector); any number for a particle
  const int32_t *surface_particle, *surface_actuator;
  // {surface_count, dim} N A of the undeformed surface, N out of the solid [length^(dim-1)]
  const double *surface_area;

  int64_t force_count;                  // particles that take a force [mass length/time^2] at each control step
  const int32_t *force_particle;
} cq_world_def;

void cq_world_def_init(cq_world_def *def);
void cq_wall_init(cq_wall *wall);
cq_status cq_world_create(const cq_world_def *def, cq_world **world);
void cq_world_destroy(cq_world *world);
// Courant number of waves, viscosity and cables; weighed 1: as if any weight of actuation were at least 1
double cq_world_courant(const cq_world *world, int32_t weighed);
double cq_world_residual_decay(const cq_world *world);   // rate [1/time] that the world uses; 0: APIC
const char *cq_world_device(const cq_world *world);      // for people: device, instruction set, threads
int32_t cq_world_device_kind(const cq_world *world);     // CQ_DEVICE_CPU or CQ_DEVICE_CUDA
typedef struct cq_gpu {
  char name[256];
  int64_t memory, memory_available;     // [bytes]
  int32_t processors, compute;          // multiprocessors; compute capability, 90 for 9.0
  // CUDA version that the driver serves, and that cqlua was built with: 13000 for 13.0
  int32_t driver, runtime;
  int32_t count;                        // GPUs of this machine
} cq_gpu;
cq_status cq_gpu_find(int32_t index, cq_gpu *gpu);       // index from 0; CQ_DEVICE, and a sentence why, without it

// ---- rollout: a batch of scenes through time, and back --------------------------------------------------------------

typedef struct cq_rollout cq_rollout;

enum { CQ_BATCH_MAX = 65536 };          // scenes of a rollout

typedef struct cq_rollout_def {
  int32_t cookie;
  int32_t batch;                        // scenes, 1 to CQ_BATCH_MAX
  int32_t steps;                        // control steps at most
  int32_t differentiable;               // 0: forward only, without memo
  int32_t contact;                      // 1: sums impulses of walls and pins: cq_rollout_contact
  int64_t memory;                       // budget for the memo [bytes]; 0: three quarters of what is available
} cq_rollout_def;

typedef struct cq_plan {                // the plan of the memo within its budget
  int64_t bytes;                        // that the memo takes at most
  int64_t record_bytes, slice_bytes;    // of one control step kept for its adjoint; of one checkpoint
  int32_t records, checkpoints;         // how many of each
  // control steps that are run forward for each control step of the rollout, 1 if all records are kept
  double recompute;
} cq_plan;

typedef struct cq_health {              // of the first bad step, or zeros
  int32_t bad;                          // cq_health_kind
  int32_t scene;
  int64_t step;                         // engine step from the start of the rollout
  int64_t particle;                     // user's index
  double value;                         // determinant, coordinate, velocity, or as the kind says
  int32_t axis;                         // of a particle that left
} cq_health;

typedef enum cq_health_kind {
  CQ_HEALTH_GOOD = 0, CQ_HEALTH_NOT_FINITE, CQ_HEALTH_INVERTED, CQ_HEALTH_LEFT_GRID,
  // of implicit steps; value: relative residual, cells moved, number of products
  CQ_HEALTH_NOT_CONVERGED, CQ_HEALTH_TOO_FAR, CQ_HEALTH_NO_GRADIENT, CQ_HEALTH_SADDLE, CQ_HEALTH_TOUCHES,
  CQ_HEALTH_PRESSURE,                   // at the end of a step: relative residual by its last change
} cq_health_kind;

void cq_rollout_def_init(cq_rollout_def *def);
cq_status cq_rollout_create(cq_world *world, const cq_rollout_def *def, cq_rollout **rollout);
void cq_rollout_destroy(cq_rollout *rollout);
void cq_rollout_plan(const cq_rollout *rollout, cq_plan *plan);
// The memo's forces {steps, B, force_count, dim}; those written here are not copied. NULL: forward only.
double *cq_rollout_forces(cq_rollout *rollout);
// {steps, B, substeps, CQ_SOLVER_WIDTH} iterations and residuals of all implicit steps so far; NULL: explicit steps.
const double *cq_rollout_solver(const cq_rollout *rollout);
// Elements of a field for one scene.
int64_t cq_field_count(const cq_world *world, int32_t field);
// Sets a field for all scenes (per_scene = 0: data {count}) or for each (per_scene = 1: data {B, count}).
// Takes effect at the next cq_rollout_begin. Fields never set have the world's values.
cq_status cq_rollout_set(cq_rollout *rollout, int32_t field, const double *data, int32_t per_scene);
// The largest Courant number of all scenes, with the values that were set.
double cq_rollout_courant(const cq_rollout *rollout);
cq_status cq_rollout_begin(cq_rollout *rollout);         // takes the values that were set; live state of control step 0
// The same, in the live state of another rollout of this world, internal variables and places of walls included: scene
// s goes on from its scene[s], or begins with values of its own where that is -1.
cq_status cq_rollout_begin_from(cq_rollout *rollout, const cq_rollout *from, const int32_t *scene);
// Runs `count` control steps with signals {count, B, actuators} and forces {count, B, force_count, dim} (NULL: none). A
// GPU runs all of them before it answers; results do not depend on how control steps are divided among calls.
cq_status cq_rollout_run(cq_rollout *rollout, int32_t count, const double *signals, const double *forces);
int32_t cq_rollout_at(const cq_rollout *rollout);         // index of the live state: control steps since the start
void cq_rollout_health(const cq_rollout *rollout, cq_health *health);     // sets health to the last failure, or zeros

// The adjoint begins at the live state. Then, from the last control step to the first: add the adjoints of readouts of
// the live state with cq_rollout_read_adjoint, and reverse all control steps up to the next state with readouts.
cq_status cq_rollout_begin_adjoint(cq_rollout *rollout);
// Which gradients will be read from the next cq_rollout_begin_adjoint on: bit (1 << cq_field) of each. Default: all.
void cq_rollout_want(cq_rollout *rollout, uint64_t fields);
// How the adjoint of the state goes from one control step of a call to the one before: times discount (1 unless set);
// times 0 at multiples of window (0: nowhere); scaled to a norm of at most `most` for each scene (INFINITY: any).
// Between two calls cq_rollout_discount multiplies by the same factor; it does not limit the norm.
cq_status cq_rollout_set_adjoint(cq_rollout *rollout, double discount, int32_t window, double most);
cq_status cq_rollout_discount(cq_rollout *rollout);
// {steps, B} norms of the adjoint of the state after each control step that was reversed; NULL: forward only.
const double *cq_rollout_adjoint_norms(const cq_rollout *rollout);
// Reverses the last `count` control steps; the live state is then the one before them. grad_signals {count, B,
// actuators} and grad_forces {count, B, force_count, dim}, in the order of time, are overwritten; NULL: not wanted.
cq_status cq_rollout_run_adjoint(cq_rollout *rollout, int32_t count, double *grad_signals, double *grad_forces);
// Returns to the last state of the forward pass, where another adjoint can begin; recomputes dropped records.
cq_status cq_rollout_return(cq_rollout *rollout);
// At step 0 of a rollout that went on from `from`, before gradients are read: adds the adjoint of its first state to
// that of the live state of `from`, whose adjoint has begun, and clears it; from NULL: only clears it.
cq_status cq_rollout_pass_adjoint(cq_rollout *rollout, cq_rollout *from, const int32_t *scene);
// Gradient of a field, summed over scenes (per_scene = 0) or for each; complete once step 0 is reached.
cq_status cq_rollout_gradient(cq_rollout *rollout, int32_t field, double *out, int32_t per_scene);

// ---- readouts of the live state, with their adjoints ----------------------------------------------------------------

typedef enum cq_readout_kind {
  CQ_READOUT_MEAN = 0,                  // {groups, width}: weighted mean of a quantity over each group
  CQ_READOUT_SECOND_MOMENT,             // {groups, width, width}: weighted mean of q q^T about the origin
  CQ_READOUT_GATHER,                    // {particles, width}: the quantity itself, groups are joined
  CQ_READOUT_SUM,                       // {groups, width}: weighted sum over each group
} cq_readout_kind;

// weight of a particle: mass, 1, or initial volume
typedef enum cq_weighting { CQ_WEIGHT_MASS = 0, CQ_WEIGHT_PARTICLE, CQ_WEIGHT_VOLUME } cq_weighting;

typedef enum cq_derived {               // quantities that follow the state fields: see lists.h
  CQ_DERIVED_BEFORE = CQ_FIELD_VOLUME - 1,
  CQ_READOUTS(CQ_DERIVED_ID) CQ_QUANTITY_COUNT
} cq_derived;

typedef struct cq_quantity_info {       // of a state field or a derived quantity
  const char *name, *unit, *meaning;
  int32_t rank;                         // 0 a number, 1 {dim}, 2 {dim, dim}, 3 axial: a number in 2D, {3} in 3D
} cq_quantity_info;
// by cq_field or cq_derived; NULL: an unknown quantity
const cq_quantity_info *cq_quantity_describe(int32_t quantity);

typedef struct cq_readout {             // out: for each scene one quantity after the other, in the order of their bits
  int32_t cookie;
  int32_t kind;                         // cq_readout_kind
  // bits (1 << cq_field) of state fields and (1 << cq_derived) of derived quantities
  uint32_t fields;
  int32_t weighting;                    // cq_weighting, of mean, moment and sum
  int32_t group_count;
  const int64_t *group_start;           // {group_count + 1} offsets into particles
  const int32_t *particles;             // user's indices
} cq_readout;

void cq_readout_init(cq_readout *readout);
int64_t cq_readout_count(const cq_world *world, const cq_readout *readout);   // elements of out for one scene
cq_status cq_rollout_read(cq_rollout *rollout, const cq_readout *readout, double *out);
// Adds the adjoint of a readout of the live state; grad_out has the layout of out.
cq_status cq_rollout_read_adjoint(cq_rollout *rollout, const cq_readout *readout, const double *grad_out);

// ---- readouts of a step: impulses of walls and pins; walls whose velocity changes -----------------------------------

// Numbers of a wall in a control step, sums over its nodes and over the engine steps: the impulse {dim} on the nodes
// [mass length/time]; its part along the normals; its tangential part {dim}; and the part along the normal times the
// place {dim}, which divided by the part along the normals is the centre of pressure. The impulse of pins is all
// tangential.
int32_t cq_contact_width(int32_t dim);
int32_t cq_contact_count(const cq_world_def *def);   // walls, then groups of pins, at least one: rows of impulses
// {steps, B, cq_contact_count, width} of all control steps so far. NULL: the rollout was created without contact.
const double *cq_rollout_contact(const cq_rollout *rollout);
// Adds to the gradient {count, B, cq_contact_count, width} of control steps, before these are reversed.
cq_status cq_rollout_contact_adjoint(cq_rollout *rollout, int32_t step, int32_t count, const double *grad);

// Velocities of walls, constant over each control step, in the place of CQ_FIELD_WALL_VELOCITY: {steps, walls, dim} for
// all scenes, or {B, steps, walls, dim} for each. Their integral is the displacement of a moving wall. NULL: those of
// the field again. Takes effect at the next cq_rollout_begin.
cq_status cq_rollout_set_walls(cq_rollout *rollout, const double *velocity, int32_t per_scene);
// Their gradient, as cq_rollout_gradient gives those of fields.
cq_status cq_rollout_walls_gradient(cq_rollout *rollout, double *out, int32_t per_scene);

// Gravity, constant over each control step, in the place of CQ_FIELD_GRAVITY: {steps, dim} for all scenes, or {B,
// steps, dim} for each. NULL: that of the field again. Takes effect at the next cq_rollout_begin.
cq_status cq_rollout_set_gravity(cq_rollout *rollout, const double *gravity, int32_t per_scene);
// Its gradient, as cq_rollout_gradient gives those of fields.
cq_status cq_rollout_gravity_gradient(cq_rollout *rollout, double *out, int32_t per_scene);

// ---- a policy: a network from readouts of the state to the signals --------------------------------------------------

enum { CQ_LAYERS_MAX = 16 };            // of a policy

typedef struct cq_layer {               // y {out} = f(x {in} w {in, out} + b {out})
  int32_t in, out;
  int32_t activation;                   // f: CQ_UNARY_TANH, SIGMOID, RELU, SOFTPLUS or ELU
  const double *weight, *bias;
  double *grad_weight, *grad_bias;      // the adjoint adds to them
} cq_layer;

typedef struct cq_policy {
  int32_t cookie;
  int32_t layer_count;                  // 1 to CQ_LAYERS_MAX
  const cq_layer *layers;               // the first one takes the inputs of a scene, the last one gives y
  // The inputs: a readout, then the change of another one since the control step before, divided by the interval; 0
  // before the first control step. NULL: there is none.
  const cq_readout *observation, *change;
  double interval;                      // [time]
  const int32_t *output;                // {actuators} the signal of actuator a is scale[a] * y[output[a]] + shift[a]
  const double *scale, *shift;
} cq_policy;

void cq_policy_init(cq_policy *policy);
// As cq_rollout_run, with signals that the policy computes from the state before each control step; its outputs {count,
// B, y} are written. A policy with a change must run from the first control step on, in any number of calls, and the
// adjoint must reverse all of its control steps.
cq_status cq_rollout_run_policy(cq_rollout *rollout, const cq_policy *policy, int32_t count, double *outputs);
// Reverses the last `count` control steps of a policy, through signals, network and readouts; adds to the gradients of
// its layers. grad_outputs {count, B, y}, in the order of time: gradients of the outputs from elsewhere; NULL: none.
cq_status cq_rollout_run_policy_adjoint(cq_rollout *rollout, const cq_policy *policy, int32_t count,
                                        const double *grad_outputs);

// ---- timers: always on ----------------------------------------------------------------------------------------------

typedef enum cq_phase {
  CQ_PHASE_SORT = 0, CQ_PHASE_P2G, CQ_PHASE_GRID, CQ_PHASE_G2P,
  CQ_PHASE_G2P_ADJ, CQ_PHASE_GRID_ADJ, CQ_PHASE_P2G_ADJ, CQ_PHASE_READOUT, CQ_PHASE_ACTUATION,
  // of implicit steps, forward and backward: potential and stress at a trial; tensors of particles with the diagonal
  // of nodes; the matrix that is assembled of them, in 2D of nodes, in 3D of the coarse lattice; products with the
  // second derivative; all else that is done to vectors over nodes
  CQ_PHASE_STRESS, CQ_PHASE_TENSORS, CQ_PHASE_ASSEMBLY, CQ_PHASE_PRODUCT, CQ_PHASE_SOLVE, CQ_PHASE_COUNT
} cq_phase;
void cq_world_timers(cq_world *world, double seconds[14], int32_t reset);
const char *cq_phase_name(int32_t phase);

#include "bodies.h"
#include "pictures.h"
#include "tensors.h"

#ifdef __cplusplus
}
#endif
#endif
