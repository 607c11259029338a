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
  uint32_t changed;           // fields that were set since the last begin
  uint32_t wanted, computed;  // gradients: to be asked for; of the running adjoint
  int32_t began, adjoint, finished, failed;
};

// Can it go forward, or back, so many control steps? Is this a readout of it? Forward and backward with controls that were checked.
cq_status cq_rollout_ready(const cq_rollout *r, int32_t count);
cq_status cq_rollout_ready_adjoint(const cq_rollout *r, int32_t count);
cq_status cq_readout_check(const cq_rollout *r, const cq_readout *q);
cq_status cq_rollout_forward(cq_rollout *r, const cq_controls *controls);
cq_status cq_rollout_backward(cq_rollout *r, const cq_controls *controls);

#endif
