// reference: total Lagrangian steps on the GPU, the twin of engine/cpu/reference: the layout of the reference grids of
// all scenes, their memory, and what is done with them beside the runs of engine steps.
#ifndef CQ_CUDA_REFERENCE_H
#define CQ_CUDA_REFERENCE_H

#include "batch.h"
#include "shapes.h"

typedef struct cq_reference {
  cq_shapes shapes;
  cq_memory *tables, *reals, *arenas, *backward, *touch, *near;
  cq_slice *seen;            // particles of some state
  cq_slice *first;           // those that the first state was made of; NULL: not differentiable
  int32_t read;              // the adjoint of particles has not reached the nodes yet
  int64_t checks;            // of surfaces, that were begun
  // of the host
  double *positions;         // {batch, n, dim} that the layout is for
  int32_t *first_node;       // {batch} of each scene
  int32_t *order;            // {slots}
  double *rests;             // {nodes, dim}
  cq_rim *rim;
  int32_t *rim_node, *rim_scene;
} cq_reference;

cq_status cq_cuda_reference_create(cq_device *d);
void cq_cuda_reference_destroy(cq_device *d);

// After values were loaded as particles in the user's order: lays them out, and makes the first state.
cq_status cq_cuda_reference_begin(cq_device *d, const cq_values *values);
// Particles of a state, until the next call.
cq_status cq_cuda_reference_observe(cq_device *d, const cq_slice *state, const cq_slice **out);
// Names what failed in the step after the live state.
cq_status cq_cuda_reference_diagnose(cq_device *d, const cq_slice *after);

cq_status cq_cuda_reference_begin_adjoint(cq_device *d);
cq_status cq_cuda_reference_discount(cq_device *d, double factor);
// Sets, in the arguments of the kernels for the adjoint's norm, the adjoints of the nodes of reference grids.
void cq_cuda_reference_norm(const cq_device *d, cq_norming *norming);
// What readouts gave to the adjoint of particles goes to that of the nodes.
cq_status cq_cuda_reference_settle(cq_device *d);
// From the adjoint of the first state to that of the particles that it was made from.
cq_status cq_cuda_reference_finish(cq_device *d);

#endif
