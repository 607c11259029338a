// network: the layers of a policy on the GPU, in double; compiled once for all dimensions and precisions.
#ifndef CQ_CUDA_NETWORK_H
#define CQ_CUDA_NETWORK_H

#include "../engine/cq.h"
#include "launch.h"

// The values of a scene are the outputs of its layers, one layer after another. Parameters are weights {in, out}, then
// biases {out}, of each layer.
typedef struct cq_network {
  int32_t batch, actuators, layers, values;
  int32_t observed, changes;          // numbers of a scene in the two readouts: as they are, and by their change
  double interval;                    // [time] between two control steps, by which the change is divided
  int64_t parameter_count;
  int32_t width[CQ_LAYERS_MAX + 1];   // of the inputs, then of each layer
  int32_t activation[CQ_LAYERS_MAX];
  int32_t start[CQ_LAYERS_MAX];       // of a layer in the values
  int64_t weight[CQ_LAYERS_MAX];      // of a layer in the parameters
  const double *parameters;
  const int32_t *output;              // {actuators} signal a = scale[a] * y[output[a]] + shift[a]
  const double *scale, *shift;
  const double *observation;          // {batch, observed}
  const double *now, *before;         // {batch, changes}, and a control step earlier; before NULL: there was none
  double *inputs;                     // {batch, width[0]} the observation, then the rate of change of `now`
  double *value;                      // {batch, values}
  double *signals;                    // {batch, actuators}
  double *host_row;                   // {batch, actuators} signals, then {batch, y}, then now: copied to the host
  // backward
  const double *grad_signals;
  const double *grad_output;          // {batch, y} from elsewhere
  double *grad_observation, *grad_now;   // as they are
  // in: the gradient of `now` from the next control step; out: that of `before` from this one
  double *grad_before;
  double *delta;                      // as value: gradients of the sums of the units
  double *grad;                       // as the parameters, added to
} cq_network;

void cq_network_signals(cudaStream_t stream, const cq_network *network);
// blocks: of the kernel that walks over parameters
void cq_network_adj(cudaStream_t stream, int32_t blocks, const cq_network *network);

#endif
