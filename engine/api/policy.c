// policy: a rollout that is driven by a network which sees readouts of its states.
#include "world.h"
#include <math.h>
#include <string.h>

#define CQ_UNIT static inline
#include "../math/network.inl"

enum { LAYERS_MAX = 16 };

void cq_policy_init(cq_policy *policy) { *policy = (cq_policy){.cookie = CQ_COOKIE}; }

static cq_status check_layers(const cq_policy *p, int64_t seen) {
  int64_t width = seen;
  for (int32_t l = 0; l < p->layer_count; l++) {
    const cq_layer *layer = &p->layers[l];
    const int32_t f = layer->activation;
    if (layer->in != width || layer->out < 1)
      return cq_fail(CQ_INVALID, "layer %d of a policy takes %d numbers and gives %d; it is given %lld", l + 1, layer->in, layer->out,
                     (long long)width);
    if (f != CQ_UNARY_TANH && f != CQ_UNARY_SIGMOID && f != CQ_UNARY_RELU && f != CQ_UNARY_SOFTPLUS)
      return cq_fail(CQ_INVALID, "layer %d of a policy has activation %d; it must be tanh, sigmoid, relu or softplus", l + 1, f);
    width = layer->out;
  }
  return CQ_OK;
}

static cq_status check_policy(const cq_rollout *r, const cq_policy *p) {
  if (p->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "a cq_policy was not filled by cq_policy_init");
  if (p->layer_count < 1 || p->layer_count > LAYERS_MAX)
    return cq_fail(CQ_INVALID, "a policy has %d layers; it must have 1 to %d", p->layer_count, LAYERS_MAX);
  cq_status status = cq_readout_check(r, p->observation);
  if (!status) status = check_layers(p, cq_readout_count(r->world, p->observation));
  const int32_t outputs = cq_policy_outputs(p);
  for (int32_t a = 0; a < r->world->model.actuator_count && !status; a++)
    if (p->output[a] < 0 || p->output[a] >= outputs)
      status = cq_fail(CQ_INVALID, "actuator %d takes output %d of a policy that gives %d", a + 1, p->output[a], outputs);
  return status;
}

// ---- step by step -------------------------------------------------------------------------------------------------------

// numbers of one control step; of a scene: what was seen, then what each layer gives
typedef struct Work {
  int64_t seen, values, outputs, signals;
  double *observation;       // {batch, seen}
  double *value, *grad;      // {seen + values} of one scene
  double *signal;            // {batch, actuators}
} Work;

static cq_status work_take(const cq_rollout *r, const cq_policy *p, Work *w) {
  *w = (Work){.seen = p->layers[0].in, .outputs = cq_policy_outputs(p), .signals = r->world->model.actuator_count};
  for (int32_t l = 0; l < p->layer_count; l++) w->values += p->layers[l].out;
  const int64_t batch = r->def.batch, all = w->seen + w->values;
  w->observation = cq_alloc((size_t)(batch * (w->seen + w->signals) + 2 * all), sizeof(double), "a policy");
  w->signal = w->observation + batch * w->seen;
  w->value = w->signal + batch * w->signals;
  w->grad = w->value + all;
  return w->observation ? CQ_OK : CQ_MEMORY;
}

// value: what was seen; the rest of it is made. Returns where y begins.
static const double *network_values(const cq_policy *p, double *value) {
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count; l++) {
    double *y = value + l->in;
    memset(y, 0, (size_t)l->out * sizeof *y);
    for (int32_t i = 0; i < l->in; i++)
      for (int32_t j = 0; j < l->out; j++) y[j] += value[i] * l->weight[(int64_t)i * l->out + j];
    for (int32_t j = 0; j < l->out; j++) y[j] = unit_value(l->activation, y[j] + l->bias[j]);
    value = y;
  }
  return value;
}

// grad: dL/dy in its place; what lies before it is made, down to what was seen. Weights and biases are added to.
static void network_adj(const cq_policy *p, const Work *w) {
  int64_t at = w->seen + w->values;
  for (const cq_layer *l = p->layers + p->layer_count - 1; l >= p->layers; l--) {
    double *y = w->value + at - l->out, *grad_y = w->grad + at - l->out, *x = y - l->in, *grad_x = grad_y - l->in;
    for (int32_t j = 0; j < l->out; j++) {
      grad_y[j] *= unit_slope(l->activation, y[j]);
      l->grad_bias[j] += grad_y[j];
    }
    for (int32_t i = 0; i < l->in; i++) {
      double sum = 0;
      for (int32_t j = 0; j < l->out; j++) {
        sum += l->weight[(int64_t)i * l->out + j] * grad_y[j];
        l->grad_weight[(int64_t)i * l->out + j] += x[i] * grad_y[j];
      }
      grad_x[i] = sum;
    }
    at -= l->out;
  }
}

static cq_status follow_step(cq_rollout *r, const cq_policy *p, const Work *w, double *outputs) {
  cq_status status = r->world->backend->read(r->device, p->observation, w->seen, w->observation);
  for (int32_t s = 0; s < r->def.batch && !status; s++) {
    memcpy(w->value, w->observation + s * w->seen, (size_t)w->seen * sizeof(double));
    const double *y = network_values(p, w->value);
    memcpy(outputs + s * w->outputs, y, (size_t)w->outputs * sizeof(double));
    for (int64_t a = 0; a < w->signals; a++) w->signal[s * w->signals + a] = p->scale[a] * y[p->output[a]] + p->shift[a];
  }
  return status ? status : cq_rollout_forward(r, &(cq_controls){.count = 1, .signals = w->signal});
}

// grad_outputs {batch, outputs} NULL: none
static cq_status follow_step_adj(cq_rollout *r, const cq_policy *p, const Work *w, const double *grad_outputs) {
  const cq_backend *b = r->world->backend;
  cq_status status = cq_rollout_backward(r, &(cq_controls){.count = 1, .grad_signals = w->signal});
  if (!status) status = b->read(r->device, p->observation, w->seen, w->observation);
  for (int32_t s = 0; s < r->def.batch && !status; s++) {
    double *seen = w->observation + s * w->seen, *grad_y = w->grad + w->seen + w->values - w->outputs;
    memcpy(w->value, seen, (size_t)w->seen * sizeof *seen);
    network_values(p, w->value);
    for (int64_t j = 0; j < w->outputs; j++) grad_y[j] = grad_outputs ? grad_outputs[s * w->outputs + j] : 0;
    for (int64_t a = 0; a < w->signals; a++) grad_y[p->output[a]] += p->scale[a] * w->signal[s * w->signals + a];
    network_adj(p, w);
    memcpy(seen, w->grad, (size_t)w->seen * sizeof *seen);
  }
  return status ? status : b->read_adjoint(r->device, p->observation, w->seen, w->observation);
}

// ---- both ways ----------------------------------------------------------------------------------------------------------

// the first output that is not finite, of the control steps made and of the one that failed
static cq_status check_outputs(const cq_rollout *r, const double *outputs, int32_t first, int64_t width, int64_t steps) {
  for (int64_t k = 0; k < steps * width * r->def.batch; k++)
    if (!isfinite(outputs[k]))
      return cq_fail(CQ_INVALID, "a policy gave %g for signal %lld at control step %lld; every signal must be finite", outputs[k],
                     (long long)(k % width) + 1, (long long)(first + k / (width * r->def.batch)));
  return CQ_OK;
}

cq_status cq_rollout_follow(cq_rollout *r, const cq_policy *policy, int32_t count, double *outputs) {
  cq_status status = cq_rollout_ready(r, count);
  if (!status) status = check_policy(r, policy);
  if (status) return status;
  const int32_t first = cq_rollout_at(r), width = cq_policy_outputs(policy);
  if (r->world->backend->follows) {
    status = cq_rollout_forward(r, &(cq_controls){.count = count, .policy = policy, .outputs = outputs});
  } else {
    Work work;
    status = work_take(r, policy, &work);
    for (int32_t i = 0; i < count && !status; i++)
      status = follow_step(r, policy, &work, outputs + (int64_t)i * width * r->def.batch);
    cq_free(work.observation);
  }
  if (status && status != CQ_UNSTABLE) return status;
  const cq_status checked = check_outputs(r, outputs, first, width, cq_rollout_at(r) - first + (status == CQ_UNSTABLE));
  return checked ? checked : status;
}

cq_status cq_rollout_follow_adjoint(cq_rollout *r, const cq_policy *policy, int32_t count, const double *grad_outputs) {
  cq_status status = cq_rollout_ready_adjoint(r, count);
  if (!status) status = check_policy(r, policy);
  if (status) return status;
  if (r->world->backend->follows) {
    status = cq_rollout_backward(r, &(cq_controls){.count = count, .policy = policy, .grad_outputs = grad_outputs});
  } else {
    Work work;
    status = work_take(r, policy, &work);
    const int64_t outputs = r->def.batch * work.outputs;
    for (int32_t i = count - 1; i >= 0 && !status; i--)
      status = follow_step_adj(r, policy, &work, grad_outputs ? grad_outputs + i * outputs : NULL);
    cq_free(work.observation);
  }
  return status;
}
