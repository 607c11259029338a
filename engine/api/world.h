// The handles behind cq.h.
#ifndef CQ_WORLD_H
#define CQ_WORLD_H

#include "../memo/memo.h"

struct cq_world {
  cq_model model;
  const cq_backend *backend;
  cq_context *context;
  cq_rollout *rollouts;       // that were not destroyed yet
  char description[768];      // of the device, and why it was taken
};

// A policy may see how a readout changes. This keeps the readout before each control step, and backward its gradient.
typedef struct cq_policy_change {
  int64_t width;              // doubles of a control step, all scenes
  int32_t steps;              // rows of `kept` that are filled
  int32_t pending;            // grad must still be added to the control step before
  double *kept;               // {steps, width}
  double *grad;               // {width} of the readout one control step before the live state
} cq_policy_change;

// How walls move in each control step.
typedef struct cq_walls {
  double *velocity, *place;   // {steps, batch, walls, dim}
} cq_walls;

struct cq_rollout {
  cq_world *world;
  cq_rollout *previous, *next;
  cq_rollout_def def;
  cq_device *device;
  cq_memo *memo;
  // Values that were set, {count} or {batch, count}. There are two arrays of each: one holds what the rollout began
  // with, the other takes what is set afterwards.
  double *owned[CQ_FIELD_COUNT][2];
  int64_t capacity[CQ_FIELD_COUNT][2];
  int32_t latest[CQ_FIELD_COUNT], begun[CQ_FIELD_COUNT];   // array of the last set; of the last begin
  double *friction, *wall_velocity;    // the world's walls as fields
  cq_values *values, *values_next;     // {batch} of the last begin; for the next
  uint64_t changed;           // fields that were set since the last begin
  cq_policy_change changing;
  cq_wall_track track;        // what the device reads and writes of walls
  cq_walls walls_begun, walls_next;   // of the last begin, for the next one
  int32_t walls_set;          // walls_next holds velocities
  int32_t walls_changed;      // and they were set since the last begin
  // {batch, walls, dim}: gradient of the displacements of walls at the end, from rollouts that went on from this one
  // (cq_rollout_pass_adjoint); NULL: none
  double *grad_place_end;
  double *grad_impulse;       // as track.impulse
  // {steps, batch, dim} of the last begin, for the next one; as walls_set and walls_changed
  double *gravity_begun, *gravity_next;
  int32_t gravity_set, gravity_changed;
  cq_adjoint_rules rules;     // of the adjoint between control steps
  uint64_t wanted, computed;  // bits of the gradients that will be asked for; that the running adjoint computes
  int32_t began, adjoint, finished, failed;
};

// CQ_OK if a rollout can run `count` control steps from its live state, else CQ_INVALID and a sentence.
cq_status cq_rollout_ready(const cq_rollout *r, int32_t count);
// CQ_OK if the last `count` control steps of a rollout can be reversed, else CQ_INVALID and a sentence.
cq_status cq_rollout_ready_adjoint(const cq_rollout *r, int32_t count);
// Lets the device complete all gradients, once the adjoint has reached step 0, before that of `field` is read.
// CQ_INVALID before step 0, or if this gradient was not wanted.
cq_status cq_rollout_complete(cq_rollout *r, int32_t field);
// What walls.c does when a rollout is created, begins, passes its adjoint on, begins its adjoint and is destroyed.
cq_status cq_walls_open(cq_rollout *r);
cq_status cq_walls_begin(cq_rollout *r, const cq_rollout *from, const int32_t *scene);
cq_status cq_walls_pass_adjoint(const cq_rollout *r, cq_rollout *from, const int32_t *scene);
void cq_walls_begin_adjoint(cq_rollout *r);
void cq_walls_close(cq_rollout *r);
// And gravity.c.
void cq_gravity_begin(cq_rollout *r);
void cq_gravity_begin_adjoint(cq_rollout *r);
void cq_gravity_close(cq_rollout *r);
// Values that change from one control step to the next: arrays {steps, batch, width}, from rows of the user, which are
// {steps, width} for all scenes (per_scene 0) or {batch, steps, width} for each (1).

// Allocates *array, {steps, batch, width}, unless it is allocated; `what` names it in a sentence. 1, or 0 without
// memory.
int cq_step_rows_reserve(const cq_rollout *r, double **array, int64_t width, const char *what);
// Copies the rows of the user, `from`, to `to`, {steps, batch, width}.
void cq_step_rows_copy(const cq_rollout *r, double *to, const double *from, int64_t width, int32_t per_scene);
// The index in the user's array of row number `row` of {steps, batch}: the array is {steps}, or {batch, steps}
// with per_scene 1.
static inline int64_t cq_step_row(const cq_rollout *r, int64_t row, int32_t per_scene) {
  return (per_scene ? row % r->def.batch * r->def.steps : 0) + row / r->def.batch;
}
// CQ_OK, or CQ_INVALID and a sentence for a readout that this rollout cannot make.
cq_status cq_readout_check(const cq_rollout *r, const cq_readout *q);
// CQ_OK, or CQ_INVALID while the reverse pass of a policy that sees the change of a readout must go on.
cq_status cq_policy_change_done(const cq_rollout *r);
// Runs control steps, checked before by cq_rollout_ready, and notes whether the rollout failed. CQ_OK, which ends an
// adjoint that had begun, or the error of a step.
cq_status cq_rollout_forward(cq_rollout *r, const cq_controls *controls);
// Reverses control steps, checked before by cq_rollout_ready_adjoint. CQ_OK or an error; after any but CQ_INVALID the
// rollout must begin again.
cq_status cq_rollout_backward(cq_rollout *r, const cq_controls *controls);

#endif
