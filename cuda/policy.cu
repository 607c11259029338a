// policy: a network that gives the signals of a rollout. Its parameters lie on the device. Between two control steps a
// kernel reads the state, evaluates the network and writes the signals of the next control step.
#include "network.h"
#include "batch.h"
#include <string.h>

struct cq_device_network {
  cq_network network;
  int32_t rows;              // control steps whose results are copied to the host at once
  size_t signals, outputs, changes;   // numbers of one control step, of all scenes
  size_t row_size;           // the sum of these three: the row that a control step sends to the host
  size_t sent_bytes;         // parameters, scale, shift, output
  char *sent, *next;         // on the host: the values that the device has, and those of the present policy
  int32_t valid;             // 1: the device has the values of `sent`
  double *grad;              // on the host: gradients of the parameters, then grad_before
  double *pinned;            // on the host {rows, row_size}, then {changes}
  // On the device, laid out as `pinned`. Backward: gradients of outputs {rows_back, outputs}, then {rows_back,
  // changes}.
  double *device_rows;
  int32_t rows_back;
  cq_memory *memory, *changing;       // changing: work memory of the readout whose change the policy sees
};

static const char *const what = "a policy";

// Begins a copy of `bytes` bytes in the direction `kind` on the device's stream; does nothing for 0 bytes.
static cq_status copy(cq_device *d, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return bytes ? cq_cuda_check(cudaMemcpyAsync(to, from, bytes, kind, d->context->stream), what) : CQ_OK;
}

// Frees d->network_state, the network of the policy that ran last, with its memory on device and host, if there is one.
void cq_cuda_policy_destroy(cq_device *d) {
  cq_device_network *f = d->network_state;
  if (!f) return;
  cq_pool_give(&d->context->pool, f->memory);
  cq_pool_give(&d->context->pool, f->changing);
  cq_pinned_give(f->pinned);
  cq_free(f->sent);
  cq_free(f->next);
  cq_free(f->grad);
  cq_free(f);
  d->network_state = NULL;
}

// ---- the network ----------------------------------------------------------------------------------------------------

// The sizes of the policy's network for the kernels: widths and activations of layers, and where each layer begins in
// the arrays of values and of parameters. Addresses are set later.
static cq_network network_of(const cq_device *d, const cq_policy_run *policy_run) {
  const cq_policy *p = policy_run->policy;
  cq_network n = {};
  n.batch = d->batch;
  n.actuators = d->model->actuator_count;
  n.layers = p->layer_count;
  n.width[0] = p->layers[0].in;
  n.changes = policy_run->changes;
  n.observed = n.width[0] - n.changes;
  for (int32_t l = 0; l < p->layer_count; l++) {
    const int64_t in = p->layers[l].in, out = p->layers[l].out;
    n.width[l + 1] = (int32_t)out;
    n.activation[l] = p->layers[l].activation;
    n.start[l] = n.values;
    n.values += (int32_t)out;
    n.weight[l] = n.parameter_count;
    n.parameter_count += (in + 1) * out;
  }
  return n;
}

// Sets d->network_state to a new network with the sizes in `layers`, and allocates its memory on the device and on the
// host. After a failure the caller destroys it.
static cq_status network_create(cq_device *d, const cq_network *layers) {
  cq_device_network *f = (cq_device_network *)cq_alloc(1, sizeof *f, what);
  if (!f) return CQ_MEMORY;
  d->network_state = f;
  f->network = *layers;
  cq_network *n = &f->network;
  const size_t batch = (size_t)n->batch, parameters = (size_t)n->parameter_count, actuators = (size_t)n->actuators;
  const size_t values = batch * (size_t)n->values, inputs = batch * (size_t)n->width[0];
  f->signals = batch * actuators;
  f->outputs = batch * (size_t)n->width[n->layers];
  f->changes = batch * (size_t)n->changes;
  f->row_size = f->signals + f->outputs + f->changes;
  const size_t fit = CQ_STAGING / f->row_size;
  f->rows = fit < 1 ? 1 : fit < CQ_RUNS_AHEAD ? (int32_t)fit : CQ_RUNS_AHEAD;
  f->sent_bytes = (parameters + 2 * actuators) * sizeof(double) + actuators * sizeof(int32_t);
  f->sent = (char *)cq_alloc(f->sent_bytes, 1, what);
  f->next = (char *)cq_alloc(f->sent_bytes, 1, what);
  f->grad = (double *)cq_alloc(parameters + f->changes, sizeof *f->grad, what);
  if (!f->sent || !f->next || !f->grad) return CQ_MEMORY;
  const size_t rows = (size_t)f->rows * f->row_size + f->changes,
               doubles = parameters + f->changes + inputs + 2 * values + rows;
  cq_status status = cq_pinned_take(rows * sizeof *f->pinned, what, (void **)&f->pinned);
  if (!status) status = cq_pool_take(&d->context->pool, doubles * sizeof(double) + f->sent_bytes, what, &f->memory);
  if (status) return status;
  n->grad = (double *)f->memory->data;
  n->grad_before = n->grad + parameters;
  n->inputs = n->grad_before + f->changes;
  n->value = n->inputs + inputs;
  n->delta = n->value + values;
  f->device_rows = n->delta + values;
  n->parameters = f->device_rows + rows;
  n->scale = n->parameters + parameters;
  n->shift = n->scale + actuators;
  n->output = (const int32_t *)(n->shift + actuators);
  return CQ_OK;
}

// Writes the policy's parameters (weights and biases of each layer), then scale, shift and output of each actuator, to
// host memory `to`, in the order that they have on the device.
static void pack(const cq_policy *p, int32_t actuators, char *to) {
  const auto put = [&](const void *from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
    to += bytes;
  };
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count; l++) {
    put(l->weight, (size_t)l->in * (size_t)l->out * sizeof(double));
    put(l->bias, (size_t)l->out * sizeof(double));
  }
  put(p->scale, (size_t)actuators * sizeof(double));
  put(p->shift, (size_t)actuators * sizeof(double));
  put(p->output, (size_t)actuators * sizeof(int32_t));
}

// Have two networks equal layers, so that the memory of one serves the other? 1 yes, 0 no.
static int32_t same_layers(const cq_network *a, const cq_network *b) {
  if (a->layers != b->layers || a->changes != b->changes) return 0;
  return !memcmp(a->width, b->width, sizeof a->width) && !memcmp(a->activation, b->activation, sizeof a->activation);
}

// Prepares the device for a policy: allocates a network if the last policy had different layers, and sends parameters,
// scale, shift and output if they differ from those on the device. Called before control steps forward and backward.
cq_status cq_cuda_policy_set(cq_device *d, const cq_policy_run *policy_run) {
  const cq_network layers = network_of(d, policy_run);
  cq_status status = CQ_OK;
  if (!d->network_state || !same_layers(&d->network_state->network, &layers)) {
    cq_cuda_policy_destroy(d);
    status = network_create(d, &layers);
    if (status) cq_cuda_policy_destroy(d);
  }
  if (status) return status;
  cq_device_network *f = d->network_state;
  f->network.interval = policy_run->policy->interval;
  pack(policy_run->policy, layers.actuators, f->next);
  if (f->valid && !memcmp(f->next, f->sent, f->sent_bytes)) return CQ_OK;
  memcpy(f->sent, f->next, f->sent_bytes);
  status = copy(d, (void *)f->network.parameters, f->sent, f->sent_bytes, cudaMemcpyHostToDevice);
  f->valid = !status;
  return status;
}

// ---- readouts -------------------------------------------------------------------------------------------------------

// The two readouts of a state that a policy may take: one as it is, one by its change since the last control step.
typedef struct Observed {
  cq_reading observation, change;
} Observed;

// Fills *r for reading `readout` from a state (cq_cuda_reading); does nothing and returns CQ_OK if readout is NULL.
// count: numbers of the readout in a scene; *room: device memory for it, which grows.
static cq_status read_one(cq_device *d, const cq_readout *readout, int64_t count, const cq_slice *state,
                          cq_memory **room, cq_reading *r) {
  return readout ? cq_cuda_reading(d, readout, count, state, room, r) : CQ_OK;
}

// Launches the one or two readouts of a state that policy p observes, and describes them in *observed. over: a word on
// the device that is not 0 if the state was not computed, so that nothing is read; NULL: it was computed.
static cq_status read_state(cq_device *d, const cq_policy *p, const cq_slice *state, const int32_t *over,
                            Observed *observed) {
  cq_device_network *f = d->network_state;
  *observed = {};
  cq_status status = read_one(d, p->observation, f->network.observed, state, &d->reading, &observed->observation);
  if (!status) status = read_one(d, p->change, f->network.changes, state, &f->changing, &observed->change);
  if (status) return status;
  observed->observation.over = observed->change.over = over;
  if (p->observation) cq_cuda_reading_sums(d, &observed->observation);
  if (p->change) cq_cuda_reading_sums(d, &observed->change);
  return CQ_OK;
}

// The arguments of the network's kernels for one control step: sizes and memory of f, the readouts, and `before`, on
// the device, the second readout a control step earlier (NULL: there is none). The caller adds where signals are
// written to, or their gradients read from.
static cq_network network_at(const cq_device_network *f, const Observed *observed, const double *before) {
  cq_network n = f->network;
  n.observation = observed->observation.out;
  n.now = observed->change.out;
  n.before = before;
  n.grad_observation = (double *)observed->observation.grad_out;
  n.grad_now = (double *)observed->change.grad_out;
  return n;
}

// ---- forward --------------------------------------------------------------------------------------------------------

// For how many control steps the device can keep signals, network outputs and second readouts before they are fetched.
int32_t cq_cuda_policy_rows(const cq_device *d) { return d->network_state->rows; }

// Sets *before to where the device has the second readout of the control step before `step`: in the row before `row`;
// for row 0 it is copied from the host. NULL if step is 0 or the policy has no second readout.
static cq_status find_before(cq_device *d, const cq_policy_run *policy_run, int32_t step, int32_t row,
                             const double **before) {
  const cq_device_network *f = d->network_state;
  const size_t bytes = f->changes * sizeof *f->pinned, end = (size_t)f->rows * f->row_size;
  *before = NULL;
  if (!step || !f->changes) return CQ_OK;
  *before = row ? f->device_rows + (size_t)row * f->row_size - f->changes : f->device_rows + end;
  if (row) return CQ_OK;
  memcpy(f->pinned + end, policy_run->kept + (size_t)(step - 1) * f->changes, bytes);
  return copy(d, f->device_rows + end, f->pinned + end, bytes, cudaMemcpyHostToDevice);
}

// Launches the policy before control step `step` of the rollout: from the state to signals, which the control step
// reads on the device, and which row `row` keeps for the host. The upload was sent before.
cq_status cq_cuda_policy_signals(cq_device *d, const cq_policy_run *policy_run, int32_t step, const cq_slice *state,
                                 int32_t row) {
  cq_device_network *f = d->network_state;
  cq_upload *on_device = (cq_upload *)d->on_device->data;
  const double *before;
  Observed observed;
  cq_status status = find_before(d, policy_run, step, row, &before);
  if (!status) status = read_state(d, policy_run->policy, state, &on_device->progress.over, &observed);
  if (status) return status;
  cq_network n = network_at(f, &observed, before);
  n.signals = cq_upload_controls(d, on_device);
  n.host_row = f->device_rows + (size_t)row * f->row_size;
  cq_network_signals(d->context->stream, &n);
  return cq_cuda_check(cudaGetLastError(), what);
}

// Begins to copy the first `rows` rows, one for each control step, to pinned host memory (see cq_cuda_policy_store).
cq_status cq_cuda_policy_fetch(cq_device *d, int32_t rows) {
  const cq_device_network *f = d->network_state;
  return copy(d, f->pinned, f->device_rows, (size_t)rows * f->row_size * sizeof *f->pinned, cudaMemcpyDeviceToHost);
}

// Copies `count` doubles on the host; for count 0 pointers may be NULL.
static void put_doubles(double *to, const double *from, size_t count) {
  if (count) memcpy(to, from, count * sizeof *from);
}

// Copies fetched row `row`, of control step `step`, to the rollout's arrays on the host: signals of all scenes to
// `signals`, outputs of the network and second readout to arrays of policy_run.
void cq_cuda_policy_store(const cq_device *d, const cq_policy_run *policy_run, int32_t step, int32_t row,
                          double *signals) {
  const cq_device_network *f = d->network_state;
  const double *from = f->pinned + (size_t)row * f->row_size;
  put_doubles(signals, from, f->signals);
  put_doubles(policy_run->outputs + (size_t)(step - policy_run->first) * f->outputs, from + f->signals, f->outputs);
  if (f->changes) put_doubles(policy_run->kept + (size_t)step * f->changes, from + f->signals + f->outputs, f->changes);
}

// ---- backward -------------------------------------------------------------------------------------------------------

// Sends the input of the policy's adjoint for control steps step .. step + rows - 1: the gradients of its outputs, and
// for each control step the second readout of the one before it.
static cq_status send_rows(cq_device *d, const cq_policy_run *policy_run, int32_t step, int32_t rows) {
  cq_device_network *f = d->network_state;
  const size_t outputs = (size_t)rows * f->outputs, changes = (size_t)rows * f->changes,
               skipped = step ? 0 : f->changes;
  const double *grad = policy_run->grad_outputs;
  f->rows_back = rows;
  memset(f->pinned, 0, (outputs + changes) * sizeof *f->pinned);
  if (grad) put_doubles(f->pinned, grad + (size_t)(step - policy_run->first) * f->outputs, outputs);
  // row k has the readout of control step step + k - 1; control step 0 has none
  if (f->changes)
    put_doubles(f->pinned + outputs + skipped, policy_run->kept + (size_t)step * f->changes + skipped - f->changes,
                changes - skipped);
  return copy(d, f->device_rows, f->pinned, (outputs + changes) * sizeof *f->pinned, cudaMemcpyHostToDevice);
}

// The size in bytes of the gradients of a policy's parameters and of its second readout a control step earlier.
static size_t grad_bytes(const cq_device_network *f) {
  return ((size_t)f->network.parameter_count + f->changes) * sizeof(double);
}

// Before control steps step .. step + rows - 1 are reversed: sends the gradients of the policy's outputs and its kept
// second readouts, and the gradients so far of the policy's parameters and of the last step's second readout.
cq_status cq_cuda_policy_begin_adj(cq_device *d, const cq_policy_run *policy_run, int32_t step, int32_t rows) {
  const cq_device_network *f = d->network_state;
  const cq_policy *p = policy_run->policy;
  const cq_status status = send_rows(d, policy_run, step, rows);
  if (status) return status;
  double *to = f->grad;
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count; l++) {
    const size_t weights = (size_t)l->in * (size_t)l->out, biases = (size_t)l->out;
    memcpy(to, l->grad_weight, weights * sizeof *to);
    memcpy(to + weights, l->grad_bias, biases * sizeof *to);
    to += weights + biases;
  }
  put_doubles(to, policy_run->grad_kept, f->changes);
  return copy(d, f->network.grad, f->grad, grad_bytes(f), cudaMemcpyHostToDevice);
}

// Launches the policy's adjoint for control step `step`, whose state is live again: from the gradients of its signals
// adds to the gradients of the policy's parameters, and to the adjoint of that state.
cq_status cq_cuda_policy_adj(cq_device *d, const cq_policy_run *policy_run, int32_t step) {
  const cq_device_network *f = d->network_state;
  const cq_policy *p = policy_run->policy;
  const size_t row = (size_t)d->control_row;
  Observed observed;
  const cq_status status = read_state(d, p, d->live, NULL, &observed);
  if (status) return status;
  const double *before = f->device_rows + (size_t)f->rows_back * f->outputs + row * f->changes;
  cq_network n = network_at(f, &observed, step && f->changes ? before : NULL);
  n.grad_signals = (const double *)d->grad_controls->data + row * f->signals;
  n.grad_output = f->device_rows + row * f->outputs;
  cq_network_adj(d->context->stream, cq_cuda_blocks(d, n.parameter_count, 128), &n);
  if (p->observation) cq_cuda_reading_adj(d, &observed.observation);
  if (p->change) cq_cuda_reading_adj(d, &observed.change);
  return cq_cuda_check(cudaGetLastError(), what);
}

// Copies the gradients of the policy's parameters, and of the second readout before these control steps, to the host,
// in the place of those that the device began with (cq_cuda_policy_begin_adj) and has added to.
cq_status cq_cuda_policy_end_adj(cq_device *d, const cq_policy_run *policy_run) {
  const cq_device_network *f = d->network_state;
  const cq_policy *p = policy_run->policy;
  cq_status status = copy(d, f->grad, f->network.grad, grad_bytes(f), cudaMemcpyDeviceToHost);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
  if (status) return status;
  const double *from = f->grad;
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count; l++) {
    const size_t weights = (size_t)l->in * (size_t)l->out, biases = (size_t)l->out;
    memcpy(l->grad_weight, from, weights * sizeof *from);
    memcpy(l->grad_bias, from + weights, biases * sizeof *from);
    from += weights + biases;
  }
  put_doubles(policy_run->grad_kept, from, f->changes);
  return CQ_OK;
}
