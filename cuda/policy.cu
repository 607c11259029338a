// policy: the network that drives a rollout is kept on the device; between runs of substeps it sees the state and gives the signals.
#include "network.h"
#include "scene.h"
#include <string.h>

struct cq_follower {
  cq_network network;
  int32_t rows;              // control steps that are told of at once
  size_t told;               // doubles of one of them
  size_t sent_bytes;         // parameters, scale, shift, output
  char *sent, *next;         // of the host: what is on the device, what is to be there
  int32_t valid;             // it is there
  double *grad;              // of the host, as the parameters
  double *pinned;            // {rows, told}
  double *rows_told;         // {rows, told} of the device; backward {rows, batch, y} gradients of the outputs
  int32_t has_outputs;       // backward: there are such
  cq_memory *memory;
};

static const char *const what = "a policy";

static cq_status copy(cq_device *d, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return bytes ? cq_cuda_check(cudaMemcpyAsync(to, from, bytes, kind, d->context->stream), what) : CQ_OK;
}

void cq_cuda_policy_destroy(cq_device *d) {
  cq_follower *f = d->follower;
  if (!f) return;
  cq_pool_give(&d->context->pool, f->memory);
  cq_pinned_give(f->pinned);
  cq_free(f->sent);
  cq_free(f->next);
  cq_free(f->grad);
  cq_free(f);
  d->follower = NULL;
}

// ---- what it is -----------------------------------------------------------------------------------------------------------

static cq_network network_of(const cq_device *d, const cq_policy *p) {
  cq_network n = {};
  n.batch = d->batch;
  n.actuators = d->model->actuator_count;
  n.layers = p->layer_count;
  n.width[0] = p->layers[0].in;
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

// a follower for networks of these layers
static cq_status make(cq_device *d, const cq_network *layers) {
  cq_follower *f = (cq_follower *)cq_alloc(1, sizeof *f, what);
  if (!f) return CQ_MEMORY;
  d->follower = f;
  f->network = *layers;
  cq_network *n = &f->network;
  const size_t parameters = (size_t)n->parameter_count, values = (size_t)n->batch * (size_t)n->values, actuators = (size_t)n->actuators;
  f->told = (size_t)n->batch * (actuators + (size_t)n->width[n->layers]);
  const size_t fit = CQ_STAGING / f->told;
  f->rows = fit < 1 ? 1 : fit < CQ_RUNS_AHEAD ? (int32_t)fit : CQ_RUNS_AHEAD;
  f->sent_bytes = (parameters + 2 * actuators) * sizeof(double) + actuators * sizeof(int32_t);
  f->sent = (char *)cq_alloc(f->sent_bytes, 1, what);
  f->next = (char *)cq_alloc(f->sent_bytes, 1, what);
  f->grad = (double *)cq_alloc(parameters, sizeof *f->grad, what);
  if (!f->sent || !f->next || !f->grad) return CQ_MEMORY;
  const size_t rows = (size_t)f->rows * f->told;
  cq_status status = cq_pinned_take(rows * sizeof *f->pinned, what, (void **)&f->pinned);
  if (!status)
    status = cq_pool_take(&d->context->pool, (parameters + 2 * values + rows) * sizeof(double) + f->sent_bytes, what, &f->memory);
  if (status) return status;
  n->grad = (double *)f->memory->data;
  n->value = n->grad + parameters;
  n->delta = n->value + values;
  f->rows_told = n->delta + values;
  n->parameters = f->rows_told + rows;
  n->scale = n->parameters + parameters;
  n->shift = n->scale + actuators;
  n->output = (const int32_t *)(n->shift + actuators);
  return CQ_OK;
}

// as it lies on the device
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

static int32_t same_layers(const cq_network *a, const cq_network *b) {
  return a->layers == b->layers && !memcmp(a->width, b->width, sizeof a->width) && !memcmp(a->activation, b->activation, sizeof a->activation);
}

cq_status cq_cuda_policy_set(cq_device *d, const cq_policy *p) {
  const cq_network layers = network_of(d, p);
  cq_status status = CQ_OK;
  if (!d->follower || !same_layers(&d->follower->network, &layers)) {
    cq_cuda_policy_destroy(d);
    status = make(d, &layers);
    if (status) cq_cuda_policy_destroy(d);
  }
  if (status) return status;
  cq_follower *f = d->follower;
  pack(p, layers.actuators, f->next);
  if (f->valid && !memcmp(f->next, f->sent, f->sent_bytes)) return CQ_OK;
  memcpy(f->sent, f->next, f->sent_bytes);
  status = copy(d, (void *)f->network.parameters, f->sent, f->sent_bytes, cudaMemcpyHostToDevice);
  f->valid = !status;
  return status;
}

// ---- forward --------------------------------------------------------------------------------------------------------------

int32_t cq_cuda_policy_rows(const cq_device *d) { return d->follower->rows; }

cq_status cq_cuda_policy_drive(cq_device *d, const cq_policy *p, const cq_slice *state, int32_t row) {
  cq_follower *f = d->follower;
  cq_reading r;
  const cq_status status = cq_cuda_reading(d, p->observation, f->network.width[0], state, &r);
  if (status) return status;
  cq_upload *on_device = (cq_upload *)d->on_device->data;
  r.over = &on_device->progress.over;
  cq_cuda_reading_sums(d, &r);
  cq_network n = f->network;
  n.seen = r.out;
  n.signal = (double *)(on_device + 1);
  n.told = f->rows_told + (size_t)row * f->told;
  cq_network_drive(d->context->stream, &n);
  return cq_cuda_check(cudaGetLastError(), what);
}

cq_status cq_cuda_policy_fetch(cq_device *d, int32_t rows) {
  const cq_follower *f = d->follower;
  return copy(d, f->pinned, f->rows_told, (size_t)rows * f->told * sizeof *f->pinned, cudaMemcpyDeviceToHost);
}

void cq_cuda_policy_tell(const cq_device *d, int32_t row, double *signals, double *outputs) {
  const cq_follower *f = d->follower;
  const double *from = f->pinned + (size_t)row * f->told;
  const size_t count = cq_signal_count(d);
  if (count) memcpy(signals, from, count * sizeof *from);
  memcpy(outputs, from + count, (f->told - count) * sizeof *from);
}

// ---- backward -------------------------------------------------------------------------------------------------------------

static size_t output_count(const cq_device *d) { return d->follower->told - cq_signal_count(d); }

// the gradients of rows of outputs, to where the rows are forward
static cq_status send_outputs(cq_device *d, const double *grad_outputs, int32_t rows) {
  const cq_follower *f = d->follower;
  const size_t bytes = (size_t)rows * output_count(d) * sizeof *grad_outputs;
  memcpy(f->pinned, grad_outputs, bytes);
  return copy(d, f->rows_told, f->pinned, bytes, cudaMemcpyHostToDevice);
}

cq_status cq_cuda_policy_begin_adj(cq_device *d, const cq_policy *p, const double *grad_outputs, int32_t rows) {
  cq_follower *f = d->follower;
  f->has_outputs = grad_outputs != NULL;
  const cq_status status = grad_outputs ? send_outputs(d, grad_outputs, rows) : CQ_OK;
  if (status) return status;
  double *to = f->grad;
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count; l++) {
    const size_t weights = (size_t)l->in * (size_t)l->out, biases = (size_t)l->out;
    memcpy(to, l->grad_weight, weights * sizeof *to);
    memcpy(to + weights, l->grad_bias, biases * sizeof *to);
    to += weights + biases;
  }
  return copy(d, f->network.grad, f->grad, (size_t)f->network.parameter_count * sizeof *f->grad, cudaMemcpyHostToDevice);
}

cq_status cq_cuda_policy_adj(cq_device *d, const cq_policy *p) {
  const cq_follower *f = d->follower;
  cq_reading r;
  const cq_status status = cq_cuda_reading(d, p->observation, f->network.width[0], d->live, &r);
  if (status) return status;
  cq_cuda_reading_sums(d, &r);
  cq_network n = f->network;
  n.seen = r.out;
  n.grad_seen = (double *)r.grad_out;
  n.grad_signal = (const double *)d->grad_controls->data + (size_t)d->control_row * cq_signal_count(d);
  if (f->has_outputs) n.grad_output = f->rows_told + (size_t)d->control_row * output_count(d);
  cq_network_adj(d->context->stream, cq_cuda_blocks(d, n.parameter_count, 128), &n);
  cq_cuda_reading_adj(d, &r);
  return cq_cuda_check(cudaGetLastError(), what);
}

cq_status cq_cuda_policy_end_adj(cq_device *d, const cq_policy *p) {
  const cq_follower *f = d->follower;
  cq_status status = copy(d, f->grad, f->network.grad, (size_t)f->network.parameter_count * sizeof *f->grad, cudaMemcpyDeviceToHost);
  if (!status) status = cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
  const double *from = f->grad;
  for (const cq_layer *l = p->layers; l < p->layers + p->layer_count && !status; l++) {
    const size_t weights = (size_t)l->in * (size_t)l->out, biases = (size_t)l->out;
    memcpy(l->grad_weight, from, weights * sizeof *from);
    memcpy(l->grad_bias, from + weights, biases * sizeof *from);
    from += weights + biases;
  }
  return status;
}
