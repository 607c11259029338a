// backend: the table of operations that a device offers to memo and api. A context belongs to a world
// (threads, streams, the uploaded model); a device is the working memory of one rollout: a batch of scenes
// with their live state and adjoint. Records and marks are the device's own memory; whoever holds one gives it
// back before the device is closed.
#ifndef CQ_BACKEND_H
#define CQ_BACKEND_H

#include "../physics/material/law.h"
#include "../world/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cq_context cq_context;
typedef struct cq_device cq_device;
typedef struct cq_record cq_record;   // one control step of all scenes, as its adjoint needs it
typedef struct cq_mark cq_mark;       // the live state of all scenes, to come back to

// Values of a rollout for one scene, in the user's order; may be shared between scenes.
// NULL: no particle has the field.
typedef struct cq_values {
  CQ_FIELD_UNION(const double, CQ_FIELDS, CQ_FIELD_CONST_POINTER, CQ_FIELD_COUNT);
} cq_values;

// Have two scenes of a model the same masses, volumes and constants of materials, of all particles? 1 yes, 0 no.
int cq_values_have_same_constants(const cq_model *model, const cq_values *a, const cq_values *b);
// Have two scenes of a model the same initial positions of all particles on reference grids, so that these have the
// same undeformed shapes? 1 yes, also without such particles; 0 no, also for a body that is only shifted.
int cq_values_have_same_shapes(const cq_model *model, const cq_values *a, const cq_values *b);

// Gradients of one scene since begin_adjoint, in the user's order. Those of material constants are in `slot`, which api
// turns into fields; `value` has none of them.
typedef struct cq_gradients {
  CQ_FIELD_UNION(double, CQ_FIELDS, CQ_FIELD_POINTER, CQ_FIELD_COUNT);
  double *slot[CQ_SLOTS_MAX];           // {n} of each
} cq_gradients;

// The bit of a field (cq_field) in a set of fields.
static inline uint64_t cq_bit(int32_t field) { return (uint64_t)1 << field; }
// The set of all fields that are material constants, a bit (1 << cq_field) for each.
static inline uint64_t cq_constant_bits(void) { return cq_bit(CQ_FIELD_ACTUATION_WEIGHT) - cq_bit(CQ_FIELD_YOUNG); }

// A policy that computes the signals of control steps, with its results. Only for devices with runs_policies.
typedef struct cq_policy_run {
  const cq_policy *policy;
  int32_t first;                         // control step of the rollout that the rows of outputs begin with
  double *outputs;                       // forward {.., batch, y}: outputs of the network
  const double *grad_outputs;            // backward the same; NULL: none
  int32_t changes;                       // numbers of a scene whose change the policy sees
  double *kept;                          // {steps of the rollout, batch, changes}: them, written forward, read backward
  // {batch, changes} backward: gradient of the numbers one control step before the live state, until they are reached
  double *grad_kept;
} cq_policy_run;

// Motion of walls, gravity, and impulses of walls at each control step of a rollout: arrays {steps, batch, ...}, of
// which a device uses the rows of the control step that it runs. Owned by the rollout.
typedef struct cq_wall_track {
  // {.., walls, dim}: velocity in a control step, and the way that moving walls have made before it; NULL: none changes
  const double *velocity, *place;
  // backward: the same, overwritten; NULL: not wanted
  double *grad_velocity, *grad_place;
  // {.., contact_count, cq_contact_width}: of each wall and each group of pins; NULL: not wanted
  double *impulse;
  const double *grad_impulse;            // backward: the same; NULL: none
  // {.., substeps, CQ_SOLVER_WIDTH}: iterations and residuals of implicit steps; NULL: steps are explicit
  double *solver;
  const double *gravity;                 // {.., dim}; NULL: that of all times
  double *grad_gravity;                  // backward: the same, overwritten; NULL: not wanted
} cq_wall_track;

// How the adjoint of the state goes from one control step to the one before it.
typedef struct cq_adjoint_rules {
  double discount;   // factor between two control steps
  int32_t window;    // control steps; at its multiples the adjoint is set to 0; 0: never
  double most;       // largest norm of a scene's adjoint, to which a longer one is scaled; INFINITY: any
  double *norms;     // {steps, batch} after each control step, before they are scaled; NULL: not asked for
} cq_adjoint_rules;

// The factor by which the adjoint of the state after `at` control steps is multiplied before it goes on to the control
// step before: the discount, or 0 at the multiples of the window.
static inline double cq_adjoint_factor(const cq_adjoint_rules *rules, int32_t at) {
  return rules->window && at && at % rules->window == 0 ? 0 : rules->discount;
}

// The input of consecutive control steps. A device runs at least one of them unless it fails, and says how many
// (steps_done).
typedef struct cq_controls {
  int32_t at, count;                     // at: control step of the rollout that the first one is
  // {count, batch, actuators}, {count, batch, force_count, dim}; forces NULL: none
  const double *signals, *forces;
  double *grad_signals, *grad_forces;    // backward: the same; NULL: not wanted
  // NULL, or the policy that computes the signals: forward the device writes them to policy_signals, backward the
  // adjoint of the signals continues through the policy to the readouts.
  const cq_policy_run *policy_run;
  double *policy_signals;                // {count, batch, actuators}
  const cq_wall_track *track;            // of the whole rollout
  // backward, NULL: exact. Between two of the control steps a device multiplies the adjoint by cq_adjoint_factor;
  // before each it notes the norms, and scales an adjoint that is longer than `most`.
  const cq_adjoint_rules *rules;
} cq_controls;

// The number of outputs that a policy's network has for a scene.
static inline int32_t cq_policy_outputs(const cq_policy *p) { return p->layers[p->layer_count - 1].out; }

typedef struct cq_backend {
  const char *name;

  // REQUIRED: context of a world
  cq_status (*context_create)(const cq_model *model, cq_context **context);
  void (*context_destroy)(cq_context *context);
  const char *(*describe)(const cq_context *context);
  void (*timers)(cq_context *context, double seconds[CQ_PHASE_COUNT], int32_t reset);

  // REQUIRED: device of a rollout
  cq_status (*create)(cq_context *context, int32_t batch, int32_t differentiable, cq_device **device);
  void (*destroy)(cq_device *device);
  // values {batch}, kept by pointer; changed: bits (1 << cq_field) of the fields that may differ from the last begin
  // that succeeded. A device may reuse its copies of the others. from NULL: all scenes begin with their values; else
  // scene s where scene[s] is not negative begins in the live state of that scene of another device of the context.
  cq_status (*begin)(cq_device *device, const cq_values *values, uint64_t changed, const cq_device *from,
                     const int32_t *scene);
  cq_status (*advance)(cq_device *device, const cq_controls *controls, cq_record *const *records, int32_t *steps_done);
  const cq_health *(*health)(const cq_device *device);                     // of the first scene that failed

  cq_status (*record_create)(cq_device *device, cq_record **record);
  void (*record_clear)(cq_device *device, cq_record *record);              // forget, keep the memory
  void (*record_destroy)(cq_device *device, cq_record *record);
  cq_status (*mark_create)(cq_device *device, cq_mark **mark);             // of the live state
  void (*mark_destroy)(cq_device *device, cq_mark *mark);
  void (*resume)(cq_device *device, const cq_mark *mark);
  int64_t (*mark_bytes)(const cq_device *device);                          // one mark, about
  int64_t (*record_bytes)(const cq_device *device);                        // one record, about

  // The adjoint begins with zero at the live state. reverse takes the last of the given control steps, with the
  // controls that they had forward. wanted: bits (1 << cq_field) of the gradients that will be read.
  cq_status (*begin_adjoint)(cq_device *device, uint64_t wanted);
  cq_status (*reverse)(cq_device *device, const cq_controls *controls, cq_record *const *records, int32_t *steps_done);
  cq_status (*discount_adjoint)(cq_device *device, double factor);         // of the live state, times a factor; 0: none
  // At step 0: adds the adjoints of first states that are live states of `from` to the adjoints of these and clears
  // them; from NULL: only clears them.
  cq_status (*pass_adjoint)(cq_device *device, cq_device *from, const int32_t *scene);
  cq_status (*finish)(cq_device *device);                                  // at step 0: gradients are complete
  const cq_gradients *(*gradients)(const cq_device *device, int32_t scene);

  // count: per scene
  cq_status (*read)(cq_device *device, const cq_readout *readout, int64_t count, double *out);
  cq_status (*read_adjoint)(cq_device *device, const cq_readout *readout, int64_t count, const double *grad_out);

  // OPTIONAL: 1: the device runs a policy in controls; else api evaluates the policy between control steps
  int32_t runs_policies;
  // OPTIONAL: bytes that its memo may count on; NULL: those of the host
  int64_t (*memory_available)(const cq_context *context);
} cq_backend;

// Returns CQ_UNSTABLE with a sentence that says what failed at which engine step, and if one shows it at which
// particle. batch: the number of scenes; if it is above 1 the sentence names the scene.
cq_status cq_health_fail(const cq_health *health, int32_t batch);

const cq_backend *cq_backend_cpu(void);

// ---- the CUDA device: a shared object that is loaded when it is wanted ----------------------------------------------

// Finds and loads the object. On failure CQ_DEVICE, and a sentence with a remedy. CQLUA_CUDA may name the file.
cq_status cq_cuda_load(const cq_backend **backend);
// Fills gpu with the properties of GPU number `index`, from 0. CQ_OK, or CQ_DEVICE and a sentence.
cq_status cq_cuda_find_gpu(int32_t index, cq_gpu *gpu);

// The functions that the object exports. The number differs for an object of another build, even if CQ_ABI was not
// raised.
#define CQ_BACKEND_EXPORT __attribute__((visibility("default")))
CQ_BACKEND_EXPORT const cq_backend *cq_backend_cuda(void);
CQ_BACKEND_EXPORT int64_t cq_backend_cuda_abi(void);
CQ_BACKEND_EXPORT cq_status cq_backend_cuda_gpu(int32_t index, cq_gpu *gpu);

// A number that differs between builds whose structs of this header differ in size, or whose CQ_ABI does; never
// negative.
static inline int64_t cq_backend_abi(void) {
  const int64_t sizes[] = {sizeof(cq_backend), sizeof(cq_model),    sizeof(cq_values),     sizeof(cq_gradients),
                           sizeof(cq_readout), sizeof(cq_controls), sizeof(cq_wall_track), sizeof(cq_policy_run),
                           sizeof(cq_policy),  sizeof(cq_layer)};
  uint64_t abi = CQ_ABI;   // it may wrap
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) abi = abi * 3571 + (uint64_t)sizes[k];
  return (int64_t)(abi >> 1);
}

#ifdef __cplusplus
}
#endif

#endif
