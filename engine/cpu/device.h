// device: the scenes of a rollout on the CPU, and what all rollouts of a world share.
#ifndef CQ_CPU_DEVICE_H
#define CQ_CPU_DEVICE_H

#include "scene_adjoint.h"
#include "thread_choice.h"
#include "thread_pool.h"

struct cq_context {
  const cq_model *model;
  const cq_kernels *kernels;
  cq_thread_pool *thread_pool;
  cq_thread_choice forward, backward, reading, reading_adj;   // of all rollouts: each has the same particles
  double ticks[CQ_PHASE_COUNT];
  char description[128];
};

struct cq_device {
  cq_context *context;
  int32_t calls, untimed;    // that work on all scenes; those since one was timed
  int32_t batch;
  cq_scene *scenes;
  cq_status *status;         // {batch} of the last work on all scenes
  cq_health health;
  double *sums;              // of readouts
  int64_t sums_capacity;
};

// Computes a readout of the live state of all scenes into out {batch, count}, `count` numbers for each scene
// (cq_readout_count). CQ_OK or CQ_MEMORY.
cq_status cq_device_read(cq_device *device, const cq_readout *readout, int64_t count, double *out);
// Adjoint of cq_device_read: from grad_out {batch, count}, adds to the adjoint of the live state of all scenes and to
// the gradients of constants, mass and volume. CQ_OK or CQ_MEMORY.
cq_status cq_device_read_adjoint(cq_device *device, const cq_readout *readout, int64_t count, const double *grad_out);

#endif
