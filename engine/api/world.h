// The handles behind cq.h.
#ifndef CQ_WORLD_H
#define CQ_WORLD_H

#include "../memo/memo.h"

struct cq_world {
  cq_model model;
  const cq_backend *backend;
  cq_context *context;
  cq_rollout *rollouts;       // all that are open
  char description[768];      // of the device, and why it was taken
};

// The readout whose change a policy sees, before each control step from the first one on, and
// its adjoint on the way back.
typedef struct cq_changing {
  int64_t width;              // doubles of a control step, all scenes
  int32_t steps;              // control steps that kept is of
  int32_t pending;            // there is something on its way in grad
  double *kept;               // {steps, width}
  double *grad;               // {width} to the readout before the control step before the live state
} cq_changing;

// What walls do and give at each control step. begun is that of the last begin, next that of the next one.
typedef struct cq_walls {
  double *velocity, *place;   // {steps, batch, walls, dim}
} cq_walls;

struct cq_rollout {
  cq_world *world;
  cq_rollout *previous, *next;
  cq_rollout_def def;
  cq_device *device;
  cq_memo *memo;
  // values that were set, {count} or {batch, count}; two of each, so that what a rollout began with stays as it was
  double *owned[CQ_FIELD_COUNT][2];
  int64_t capacity[CQ_FIELD_COUNT][2];
  int32_t latest[CQ_FIELD_COUNT], begun[CQ_FIELD_COUNT];   // the one set last; the one of the last begin
  double *friction, *wall_velocity;    // the world's walls as fields
  cq_values *values, *values_next;     // {batch} of the last begin; for the next
  uint64_t changed;           // fields that were set since the last begin
  cq_changing changing;
  cq_wall_track track;        // as devices have it
  cq_walls walls_begun, walls_next;
  int32_t walls_set, walls_changed;   // are there velocities for the next begin? Have they been set since the last?
  double *grad_impulse;       // as track.impulse
  uint64_t wanted, computed;  // gradients: to be asked for; of the running adjoint
  int32_t began, adjoint, finished, failed;
};

// Can it go forward, or back, so many control steps? Is this a readout of it? Forward and backward
// with controls that were checked.
cq_status cq_rollout_ready(const cq_rollout *r, int32_t count);
cq_status cq_rollout_ready_adjoint(const cq_rollout *r, int32_t count);
// Gradients of a field can be asked for now, if it was wanted.
cq_status cq_rollout_complete(cq_rollout *r, int32_t field);
// The part that walls.c has in making, beginning and giving back a rollout, and in beginning its adjoint.
cq_status cq_walls_open(cq_rollout *r);
cq_status cq_walls_begin(cq_rollout *r);
void cq_walls_begin_adjoint(cq_rollout *r);
void cq_walls_close(cq_rollout *r);
cq_status cq_readout_check(const cq_rollout *r, const cq_readout *q);
cq_status cq_changing_done(const cq_rollout *r);   // CQ_INVALID while a part of its gradient is on its way
cq_status cq_rollout_forward(cq_rollout *r, const cq_controls *controls);
cq_status cq_rollout_backward(cq_rollout *r, const cq_controls *controls);

#endif
