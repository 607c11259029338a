// The handles behind cq.h.
#ifndef CQ_WORLD_H
#define CQ_WORLD_H

#include "../memo/memo.h"

struct cq_world {
  cq_model model;
  const cq_backend *backend;
  cq_context *context;
  cq_rollout *rollouts;       // all that are open
};

struct cq_rollout {
  cq_world *world;
  cq_rollout *previous, *next;
  cq_rollout_def def;
  cq_device *device;
  cq_memo *memo;              // NULL until the first begin
  double *owned[CQ_FIELD_COUNT];       // values that were set, {count} or {batch, count}
  int32_t per_scene[CQ_FIELD_COUNT];
  double *friction, *wall_velocity;    // the world's walls as fields
  cq_values *values;          // {batch}
  uint32_t wanted, computed;  // gradients: to be asked for; of the running adjoint
  int32_t began, adjoint, finished, failed;
};

#endif
