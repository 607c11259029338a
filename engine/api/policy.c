// policy: a rollout whose signals come from a network that sees readouts of its states, and how they change.
#include "world.h"
#include <math.h>
#include <string.h>

// Fills a policy with defaults: no layers and no readouts.
void cq_policy_init(cq_policy *policy) { *policy = (cq_policy){.cookie = CQ_COOKIE}; }

// CQ_OK, or CQ_INVALID and a sentence if the layers of a policy do not fit: each must take as many numbers as the one
// before gives, and have an activation that policies have. inputs: how many numbers the first layer gets.
static cq_status check_layers(const cq_policy *p, int64_t inputs) {
  int64_t width = inputs;
  for (int32_t l = 0; l < p->layer_count; l++) {
    const cq_layer *layer = &p->layers[l];
    const int32_t f = layer->activation;
    if (layer->in != width || layer->out < 1)
      return cq_fail(CQ_INVALID, "layer %d of a policy takes %d numbers and gives %d; it is given %lld", l + 1,
                     layer->in, layer->out, (long long)width);
    if (f < CQ_UNARY_TANH || f > CQ_UNARY_ELU)
      return cq_fail(CQ_INVALID, "layer %d of a policy has activation %d; it must be tanh, sigmoid, relu, softplus or "
                     "elu", l + 1, f);
    width = layer->out;
  }
  return CQ_OK;
}

// The number of values of a policy's readout in one scene; 0 where it has none (NULL).
static int64_t readout_count(const cq_rollout *r, const cq_readout *q) { return q ? cq_readout_count(r->world, q) : 0; }

// CQ_OK, or CQ_INVALID and a sentence for a definition of a policy that a rollout cannot run.
static cq_status check_policy(const cq_rollout *r, const cq_policy *p) {
  if (p->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "a cq_policy was not filled by cq_policy_init");
  if (p->layer_count < 1 || p->layer_count > CQ_LAYERS_MAX)
    return cq_fail(CQ_INVALID, "a policy has %d layers; it must have 1 to %d", p->layer_count, CQ_LAYERS_MAX);
  if (!p->observation && !p->change)
    return cq_fail(CQ_INVALID, "a policy sees nothing; it needs an observation, a change, or both");
  if (p->change && !(p->interval > 0 && isfinite(p->interval)))
    return cq_fail(CQ_INVALID, "the interval of a policy is %g; it must be positive", p->interval);
  cq_status status = p->observation ? cq_readout_check(r, p->observation) : CQ_OK;
  if (!status && p->change) status = cq_readout_check(r, p->change);
  if (!status) status = check_layers(p, readout_count(r, p->observation) + readout_count(r, p->change));
  const int32_t outputs = cq_policy_outputs(p);
  for (int32_t a = 0; a < r->world->model.actuator_count && !status; a++)
    if (p->output[a] < 0 || p->output[a] >= outputs)
      status =
          cq_fail(CQ_INVALID, "actuator %d takes output %d of a policy that gives %d", a + 1, p->output[a], outputs);
  return status;
}

// ---- step by step ---------------------------------------------------------------------------------------------------

// Numbers of one control step. Of a scene, `value` holds the inputs of the network, then the outputs of each layer.
typedef struct Work {
  int64_t observed, changes, inputs, values, outputs, signal_count;
  double *observation;       // {batch, observed}; backward its gradient
  double *grad_change;       // {batch, changes}
  double *value, *grad;      // {inputs + values} of one scene
  double *signals;           // {batch, actuators}; backward their gradient
} Work;

// Allocates in w the work memory by which the host runs a policy: readouts and signals of all scenes, and the inputs
// and layer outputs of one scene; the caller frees w->observation, which holds all of it. CQ_OK or CQ_MEMORY.
static cq_status work_take(const cq_rollout *r, const cq_policy *p, Work *w) {
  *w = (Work){.inputs = p->layers[0].in, .outputs = cq_policy_outputs(p)};
  w->signal_count = r->world->model.actuator_count;
  w->changes = readout_count(r, p->change);
  w->observed = w->inputs - w->changes;
  for (int32_t l = 0; l < p->layer_count; l++) w->values += p->layers[l].out;
  const int64_t batch = r->def.batch, all = w->inputs + w->values;
  w->observation = cq_alloc((size_t)(batch * (w->inputs + w->signal_count) + 2 * all), sizeof(double), "a policy");
  w->grad_change = w->observation + batch * w->observed;
  w->signals = w->observation + batch * w->inputs;
  w->value = w->signals + batch * w->signal_count;
  w->grad = w->value + all;
  return w->observation ? CQ_OK : CQ_MEMORY;
}

// Reads the observation of the live state into w. Where the policy also sees the change of a second readout, keeps
// that one in the rollout, for the next control step to subtract. CQ_OK or an error of the readout.
static cq_status read_state(cq_rollout *r, const cq_policy *p, const Work *w) {
  const cq_backend *b = r->world->backend;
  const cq_status status = p->observation ? b->read(r->device, p->observation, w->observed, w->observation) : CQ_OK;
  if (status || !p->change) return status;
  return b->read(r->device, p->change, w->changes, r->changing.kept + cq_rollout_at(r) * r->changing.width);
}

// Sets the network's inputs in w for a scene: the observation, then the second readout's rate of change, 0 at step 0.
static void load_inputs(const cq_rollout *r, const cq_policy *p, const Work *w, int64_t scene) {
  if (w->observed) memcpy(w->value, w->observation + scene * w->observed, (size_t)w->observed * sizeof(double));
  if (!w->changes) return;
  const double *now = r->changing.kept + cq_rollout_at(r) * r->changing.width + scene * w->changes;
  for (int64_t k = 0; k < w->changes; k++)
    w->value[w->observed + k] = cq_rollout_at(r) ? (now[k] - now[k - r->changing.width]) / p->interval : 0;
}

// Adjoint of load_inputs: turns the gradients of the inputs of a scene, in w->grad, into gradients of the two readouts.
// The second readout of the control step before gets a part, which stays in changing.grad until that step is reached.
static void load_inputs_adj(cq_rollout *r, const cq_policy *p, const Work *w, int64_t scene) {
  if (w->observed) memcpy(w->observation + scene * w->observed, w->grad, (size_t)w->observed * sizeof(double));
  if (!w->changes) return;
  double *grad = w->grad_change + scene * w->changes, *before = r->changing.grad + scene * w->changes;
  for (int64_t k = 0; k < w->changes; k++) {
    const double share = cq_rollout_at(r) ? w->grad[w->observed + k] / p->interval : 0;
    grad[k] = before[k] + share;
    before[k] = -share;
  }
}

// A layer of a policy as the description that cq_tensor_dense takes.
static cq_dense dense_of(const cq_layer *l) {
  return (cq_dense){.rows = 1, .in = l->in, .out = l->out, .activation = l->activation};
}

// Evaluates all layers: value begins with the inputs, and the outputs of each layer are written behind them. Returns
// the outputs of the last layer.
static const double *network_values(const cq_policy *p, double *value) {
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count; l++) {
    const cq_dense dense = dense_of(l);
    cq_tensor_dense(&dense, value, l->weight, l->bias, value + l->in);
    value += l->in;
  }
  return value;
}

// Backpropagation: w->grad ends with dL/d(outputs of the last layer); writes the gradients of earlier layers' outputs
// and of the inputs before it, and adds to the gradients of weights and biases.
static void network_adj(const cq_policy *p, const Work *w) {
  int64_t at = w->inputs + w->values - w->outputs;
  memset(w->grad, 0, (size_t)at * sizeof(double));
  for (const cq_layer *l = p->layers + p->layer_count - 1; l >= p->layers; l--) {
    const cq_dense dense = dense_of(l);
    const int64_t x = at - l->in;
    const cq_dense_grad grad = {w->grad + x, l->grad_weight, l->grad_bias};
    cq_tensor_dense_adj(&dense, w->value + x, l->weight, w->value + at, &grad, w->grad + at);
    at = x;
  }
}

// Runs one control step by the policy: reads the observation, evaluates the network for each scene, and runs the engine
// with its signals. outputs {batch, y}: set to the outputs of the last layer. CQ_OK or the error of a step.
static cq_status policy_step(cq_rollout *r, const cq_policy *p, const Work *w, double *outputs) {
  cq_status status = read_state(r, p, w);
  for (int32_t s = 0; s < r->def.batch && !status; s++) {
    load_inputs(r, p, w, s);
    const double *y = network_values(p, w->value);
    memcpy(outputs + s * w->outputs, y, (size_t)w->outputs * sizeof(double));
    for (int64_t a = 0; a < w->signal_count; a++)
      w->signals[s * w->signal_count + a] = p->scale[a] * y[p->output[a]] + p->shift[a];
  }
  return status ? status : cq_rollout_forward(r, &(cq_controls){.count = 1, .signals = w->signals});
}

// Adjoint of policy_step. grad_outputs {batch, y}: gradients of the outputs of the last layer from elsewhere, or NULL.
// Adds to the gradients of the layers and, through the readouts, to the adjoint of the state. CQ_OK or an error.
static cq_status policy_step_adj(cq_rollout *r, const cq_policy *p, const Work *w, const double *grad_outputs) {
  const cq_backend *b = r->world->backend;
  cq_status status = cq_rollout_backward(r, &(cq_controls){.count = 1, .grad_signals = w->signals});
  if (!status) status = read_state(r, p, w);
  for (int32_t s = 0; s < r->def.batch && !status; s++) {
    double *grad_y = w->grad + w->inputs + w->values - w->outputs;
    load_inputs(r, p, w, s);
    network_values(p, w->value);
    for (int64_t j = 0; j < w->outputs; j++) grad_y[j] = grad_outputs ? grad_outputs[s * w->outputs + j] : 0;
    for (int64_t a = 0; a < w->signal_count; a++)
      grad_y[p->output[a]] += p->scale[a] * w->signals[s * w->signal_count + a];
    network_adj(p, w);
    load_inputs_adj(r, p, w, s);
  }
  if (!status && p->observation) status = b->read_adjoint(r->device, p->observation, w->observed, w->observation);
  return status || !p->change ? status : b->read_adjoint(r->device, p->change, w->changes, w->grad_change);
}

// ---- the change of a readout ----------------------------------------------------------------------------------------

// CQ_OK, or CQ_INVALID while the reverse pass of a policy that sees the change of a readout must go on: part of that
// readout's gradient still belongs to the control step before.
cq_status cq_policy_change_done(const cq_rollout *r) {
  if (!r->changing.pending) return CQ_OK;
  return cq_fail(CQ_INVALID,
                 "a policy that sees a change went back to control step %d; it must go on, or the adjoint begin again",
                 cq_rollout_at(r));
}

// Before control steps of a policy that sees the change of a readout: allocates room for that readout at all control
// steps. CQ_OK, CQ_MEMORY, or CQ_INVALID where earlier control steps ran without such a policy or with a readout of
// another size.
static cq_status begin_change(cq_rollout *r, const cq_policy *p) {
  cq_policy_change *c = &r->changing;
  const int64_t width = r->def.batch * readout_count(r, p->change);
  if (!p->change) return CQ_OK;
  if (cq_rollout_at(r) && (c->steps != cq_rollout_at(r) || c->width != width))
    return cq_fail(
        CQ_INVALID,
        "a policy that sees a change must give the signals from the first control step on; this one begins at %d",
        cq_rollout_at(r));
  if (c->width == width) return CQ_OK;
  cq_free(c->kept);
  cq_free(c->grad);
  c->kept = cq_alloc((size_t)r->def.steps * (size_t)width, sizeof *c->kept, "a policy");
  c->grad = cq_alloc((size_t)width, sizeof *c->grad, "a policy");
  c->width = c->kept && c->grad ? width : 0;
  return c->width ? CQ_OK : CQ_MEMORY;
}

// Before control steps are reversed through a policy: CQ_OK if their forward run kept the readout whose change it sees,
// else CQ_INVALID. Sets changing.pending, and clears changing.grad unless later control steps left a gradient in it.
static cq_status begin_change_adj(cq_rollout *r, const cq_policy *p) {
  cq_policy_change *c = &r->changing;
  if (!p->change) return cq_policy_change_done(r);
  if (c->steps < cq_rollout_at(r) || c->width != r->def.batch * readout_count(r, p->change))
    return cq_fail(CQ_INVALID, "the control steps before %d were not made by a policy that sees this change",
                   cq_rollout_at(r));
  if (!c->pending) memset(c->grad, 0, (size_t)c->width * sizeof *c->grad);
  c->pending = 1;
  return CQ_OK;
}

// The arguments by which a device runs a policy itself, from control step `first` on.
static cq_policy_run policy_run_of(const cq_rollout *r, const cq_policy *p, int32_t first) {
  return (cq_policy_run){.policy = p,
                         .first = first,
                         .changes = (int32_t)readout_count(r, p->change),
                         .kept = r->changing.kept,
                         .grad_kept = r->changing.grad};
}

// ---- both ways ------------------------------------------------------------------------------------------------------

// CQ_OK, or CQ_INVALID and a sentence that names the first output of the policy that is not finite. outputs {steps,
// batch, width}: of control steps from number `first` on, that of a failed step included.
static cq_status check_outputs(const cq_rollout *r, const double *outputs, int32_t first, int64_t width,
                               int64_t steps) {
  for (int64_t k = 0; k < steps * width * r->def.batch; k++)
    if (!isfinite(outputs[k]))
      return cq_fail(CQ_INVALID, "a policy gave %g for signal %lld at control step %lld; every signal must be finite",
                     outputs[k], (long long)(k % width) + 1, (long long)(first + k / (width * r->def.batch)) + 1);
  return CQ_OK;
}

// Runs `count` control steps with signals that the policy computes from the state before each; sets its outputs {count,
// B, y}. A policy that sees the change of a readout must run from the first control step on, in any number of calls.
// CQ_OK, CQ_INVALID for a policy that does not fit or gives a number that is not finite, CQ_MEMORY, or the error of a
// step.
cq_status cq_rollout_run_policy(cq_rollout *r, const cq_policy *policy, int32_t count, double *outputs) {
  cq_status status = cq_rollout_ready(r, count);
  if (!status) status = check_policy(r, policy);
  if (!status) status = begin_change(r, policy);
  if (status) return status;
  const int32_t first = cq_rollout_at(r), width = cq_policy_outputs(policy);
  if (r->world->backend->runs_policies) {
    cq_policy_run policy_run = policy_run_of(r, policy, first);
    policy_run.outputs = outputs;
    status = cq_rollout_forward(r, &(cq_controls){.count = count, .policy_run = &policy_run});
  } else {
    Work work;
    status = work_take(r, policy, &work);
    for (int32_t i = 0; i < count && !status; i++)
      status = policy_step(r, policy, &work, outputs + (int64_t)i * width * r->def.batch);
    cq_free(work.observation);
  }
  if (policy->change) r->changing.steps = cq_rollout_at(r);
  if (status && status != CQ_UNSTABLE) return status;
  const cq_status checked = check_outputs(r, outputs, first, width, cq_rollout_at(r) - first + (status == CQ_UNSTABLE));
  return checked ? checked : status;
}

// Reverses the last `count` control steps, made by this policy, through signals, network and readouts: adds to the
// gradients of its layers and to the adjoint of the state. grad_outputs {count, B, y}, in the order of time: gradients
// of the outputs from elsewhere; NULL: none. CQ_OK or an error.
cq_status cq_rollout_run_policy_adjoint(cq_rollout *r, const cq_policy *policy, int32_t count,
                                        const double *grad_outputs) {
  cq_status status = cq_rollout_ready_adjoint(r, count);
  if (!status) status = check_policy(r, policy);
  if (!status && count) status = begin_change_adj(r, policy);
  if (status) return status;
  if (r->world->backend->runs_policies) {
    cq_policy_run policy_run = policy_run_of(r, policy, cq_rollout_at(r) - count);
    policy_run.grad_outputs = grad_outputs;
    const int32_t each = r->rules.discount == 1 && !r->rules.window ? count : 1;
    for (int32_t left = count; left > 0 && !status; left -= each) {
      if (left < count) status = cq_rollout_discount(r);
      if (!status) status = cq_rollout_backward(r, &(cq_controls){.count = each, .policy_run = &policy_run});
    }
  } else {
    Work work;
    status = work_take(r, policy, &work);
    const int64_t outputs = r->def.batch * work.outputs;
    for (int32_t i = count - 1; i >= 0 && !status; i--) {
      if (i < count - 1) status = cq_rollout_discount(r);
      if (!status) status = policy_step_adj(r, policy, &work, grad_outputs ? grad_outputs + i * outputs : NULL);
    }
    cq_free(work.observation);
  }
  return status;
}
