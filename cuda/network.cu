// network: evaluates the layers of a policy, forward and backward. A block works on a scene. Scenes share the
// parameters: the gradient of each parameter is summed over the scenes by one thread. All sums have a fixed order.
#include "network.h"
#include <math.h>

#define CQ_ACTIVATION CQ_GPU
#include "../engine/math/activation.inl"

enum { THREADS = 128 };

// The inputs {width[l]} of layer l in a scene: the outputs of the layer before it, or of layer 0 those of the network.
CQ_GPU const double *layer_in(const cq_network *n, const int64_t scene, const int l) {
  return l ? n->value + scene * n->values + n->start[l - 1] : n->inputs + scene * n->width[0];
}
// The units {width[l + 1]} of layer l of a scene, in an array `values` that is laid out as n->value.
CQ_GPU double *units_of(const cq_network *n, double *values, const int64_t scene, const int l) {
  return values + scene * n->values + n->start[l];
}

// Sets a scene's inputs of the network: the observation, then the rate of change of the second readout, 0 where there
// is none before.
CQ_GPU void load_inputs(const cq_network *n, const int64_t scene) {
  double *inputs = n->inputs + scene * n->width[0];
  for (int32_t i = (int32_t)threadIdx.x; i < n->observed; i += THREADS)
    inputs[i] = n->observation[scene * n->observed + i];
  for (int32_t i = (int32_t)threadIdx.x; i < n->changes; i += THREADS) {
    const int64_t at = scene * n->changes + i;
    inputs[n->observed + i] = n->before ? (n->now[at] - n->before[at]) / n->interval : 0;
  }
}

// Takes grad = dL/d(input i) on to readouts: it is the gradient of the observation, or, of a rate of change (now -
// before) / interval, grad_now = grad_before of the next control step + grad / interval, then grad_before = -grad /
// interval.
CQ_GPU void load_inputs_adj(const cq_network *n, const int64_t scene, const int32_t i, const double grad) {
  if (i < n->observed) {
    n->grad_observation[scene * n->observed + i] = grad;
    return;
  }
  const int64_t at = scene * n->changes + i - n->observed;
  const double share = n->before ? grad / n->interval : 0;
  n->grad_now[at] = n->grad_before[at] + share;
  n->grad_before[at] = -share;
}

// Loads the inputs of a scene and evaluates all layers. All threads of its block call it.
CQ_GPU void network_values(const cq_network *n, const int64_t scene) {
  load_inputs(n, scene);
  __syncthreads();
  for (int l = 0; l < n->layers; l++) {
    const int32_t in = n->width[l], out = n->width[l + 1];
    const double *x = layer_in(n, scene, l), *w = n->parameters + n->weight[l], *b = w + (int64_t)in * out;
    double *y = units_of(n, n->value, scene, l);
    for (int32_t j = (int32_t)threadIdx.x; j < out; j += THREADS) {
      double sum = 0;
      CQ_UNROLLED_16 for (int32_t i = 0; i < in; i++) sum += x[i] * w[(int64_t)i * out + j];
      y[j] = activation_value(n->activation[l], sum + b[j]);
    }
    __syncthreads();
  }
}

// A block for each scene: evaluates the network, writes the signals of the next control step, and keeps what the host
// stores of it.
CQ_KERNEL network_signals(const cq_network n) {
  for (int64_t scene = blockIdx.x; scene < n.batch; scene += gridDim.x) {
    const int32_t outputs = n.width[n.layers];
    const double *y = units_of(&n, n.value, scene, n.layers - 1);
    double *host_outputs = n.host_row + (int64_t)n.batch * n.actuators + scene * outputs;
    double *host_now = n.host_row + (int64_t)n.batch * (n.actuators + outputs) + scene * n.changes;
    network_values(&n, scene);
    for (int32_t a = (int32_t)threadIdx.x; a < n.actuators; a += THREADS) {
      // the host computes the same signals from y, and does not contract the product and the sum
      const double signal = CQ_PRODUCT(n.scale[a], y[n.output[a]]) + n.shift[a];
      n.signals[scene * n.actuators + a] = n.host_row[scene * n.actuators + a] = signal;
    }
    for (int32_t j = (int32_t)threadIdx.x; j < outputs; j += THREADS) host_outputs[j] = y[j];
    for (int32_t i = (int32_t)threadIdx.x; i < n.changes; i += THREADS) host_now[i] = n.now[scene * n.changes + i];
  }
}

// The adjoint of network_signals, a block for each scene: sets n.delta and the gradients of both readouts;
// add_gradients then sums those of the parameters over scenes.
CQ_KERNEL network_signals_adj(const cq_network n) {
  const int last = n.layers - 1;
  for (int64_t scene = blockIdx.x; scene < n.batch; scene += gridDim.x) {
    network_values(&n, scene);
    for (int32_t j = (int32_t)threadIdx.x; j < n.width[n.layers]; j += THREADS) {
      double grad = n.grad_output[scene * n.width[n.layers] + j];
      for (int32_t a = 0; a < n.actuators; a++)
        if (n.output[a] == j) grad += n.scale[a] * n.grad_signals[scene * n.actuators + a];
      units_of(&n, n.delta, scene, last)[j] =
          grad * activation_slope(n.activation[last], units_of(&n, n.value, scene, last)[j]);
    }
    for (int l = last; l >= 0; l--) {
      const int32_t in = n.width[l], out = n.width[l + 1];
      const double *w = n.parameters + n.weight[l], *x = layer_in(&n, scene, l),
                   *delta = units_of(&n, n.delta, scene, l);
      __syncthreads();
      for (int32_t i = (int32_t)threadIdx.x; i < in; i += THREADS) {
        double grad = 0;
        CQ_UNROLLED_16 for (int32_t j = 0; j < out; j++) grad += w[(int64_t)i * out + j] * delta[j];
        if (l)
          units_of(&n, n.delta, scene, l - 1)[i] = grad * activation_slope(n.activation[l - 1], x[i]);
        else
          load_inputs_adj(&n, scene, i, grad);
      }
    }
  }
}

// Adds the gradient of each parameter in this control step, summed over scenes in a fixed order, to n.grad.
CQ_KERNEL add_gradients(const cq_network n) {
  for (int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x; p < n.parameter_count;
       p += (int64_t)gridDim.x * THREADS) {
    int l = n.layers - 1;
    while (p < n.weight[l]) l--;
    const int32_t in = n.width[l], out = n.width[l + 1];
    const int32_t i = (int32_t)((p - n.weight[l]) / out), j = (int32_t)((p - n.weight[l]) % out);
    double sum = n.grad[p];
    for (int64_t scene = 0; scene < n.batch; scene++)
      sum += (i < in ? layer_in(&n, scene, l)[i] : 1) * units_of(&n, n.delta, scene, l)[j];
    n.grad[p] = sum;
  }
}

// Launches network_signals: evaluates a policy's network n for all scenes, from the observations to the signals of the
// next control step.
void cq_network_signals(cudaStream_t stream, const cq_network *n) {
  CQ_LAUNCH(network_signals, n->batch, THREADS, stream, *n);
}

// Launches the adjoint of network_signals for all scenes: sets the gradients of observations, then adds to those of the
// network's parameters, summed over scenes. blocks: for the second kernel, whose threads work on parameters.
void cq_network_adj(cudaStream_t stream, int32_t blocks, const cq_network *n) {
  CQ_LAUNCH(network_signals_adj, n->batch, THREADS, stream, *n);
  CQ_LAUNCH(add_gradients, blocks, THREADS, stream, *n);
}
