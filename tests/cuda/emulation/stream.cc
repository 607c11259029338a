// stream: work waits in its stream until somebody waits for it, as late as a real device might do it; so a missing
// synchronization shows. Graphs are lists of recorded work.
#include "block.h"
#include "machine.h"
#include "runtime.h"
#include "base/denormal.h"
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <vector>

// one recording of an event
struct recording {
  cq_emulated_stream *stream;
  uint64_t ticket;
  bool done;
  std::chrono::steady_clock::time_point when;
};

struct cq_emulated_event {
  std::shared_ptr<recording> last;
};

struct operation {
  uint64_t ticket;
  std::function<void()> work;
};

typedef std::shared_ptr<std::vector<std::function<void()>>> recorded_work;

struct cq_emulated_stream {
  bool blocking;             // waits for the default stream, and that for it
  std::deque<operation> queue;
  recorded_work captured;    // what is captured now
};

struct cq_emulated_graph { recorded_work work; };
struct cq_emulated_exec { recorded_work work; };

namespace emulation {

namespace {

std::set<cq_emulated_stream *> streams;
uint64_t tickets;

cq_emulated_stream *default_stream() {
  static cq_emulated_stream stream = {true, {}, nullptr};
  streams.insert(&stream);
  return &stream;
}

cq_emulated_stream *real(cudaStream_t stream) { return stream ? stream : default_stream(); }

// all work of a stream up to a ticket
void run_until(cq_emulated_stream *stream, uint64_t ticket) {
  open_memory();
  while (!stream->queue.empty() && stream->queue.front().ticket <= ticket) {
    const operation next = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (!is_lost()) next.work();
  }
  close_memory();
}

// the default stream and the blocking ones go in the order of the calls
void run_blocking_until(uint64_t ticket) {
  for (;;) {
    cq_emulated_stream *first = nullptr;
    for (cq_emulated_stream *s : streams)
      if (s->blocking && !s->queue.empty() && (!first || s->queue.front().ticket < first->queue.front().ticket))
        first = s;
    if (!first || first->queue.front().ticket > ticket) return;
    run_until(first, first->queue.front().ticket);
  }
}

void run_up_to(cq_emulated_stream *stream, uint64_t ticket) {
  if (stream->blocking) run_blocking_until(ticket);
  else run_until(stream, ticket);
}

// begins a call that must not happen during a capture
cudaError_t call_outside(const char *name) {
  const cudaError_t error = call(name);
  return !error && captures_anywhere() ? keep(cudaErrorStreamCaptureUnsupported) : error;
}

}

bool is_capturing(cudaStream_t stream) { return real(stream)->captured != nullptr; }

bool captures_anywhere() {
  for (cq_emulated_stream *s : streams)
    if (s->captured) return true;
  return false;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  cq_emulated_stream *s = real(stream);
  if (s->captured) s->captured->push_back(std::move(work));
  else s->queue.push_back({++tickets, std::move(work)});
}

void drain(cudaStream_t stream) { run_up_to(real(stream), UINT64_MAX); }

void drain_all() {
  run_blocking_until(UINT64_MAX);
  for (cq_emulated_stream *s : streams) run_until(s, UINT64_MAX);
}

// run_blocks calls the kernel through a pointer, so that its arithmetic stays between the changes of the mode.
static bool run_flushing(const launched &what, const std::function<void()> &body) {
  const cq_float_mode before = what.flushes ? cq_denormals_flush() : cq_float_mode_get();
  const bool fine = run_blocks(what.name, what.blocks, what.threads, what.with, body);
  cq_float_mode_set(before);
  return fine;
}

cudaError_t enqueue_launch(const launched &what, cudaStream_t stream, std::function<void()> body) {
  cq_emulation_machine()->launches++;
  const cudaError_t refused = call("launch");
  if (refused) snprintf(cq_emulation_machine()->refused, sizeof cq_emulation_machine()->refused, "%s", what.name);
  if (refused) return refused;
  if (!what.blocks || what.blocks > 0x7fffffff || !what.threads || what.threads > threads_max) {
    fault("%s: a launch of %u blocks of %u threads", what.name, what.blocks, what.threads);
    return keep(cudaErrorInvalidConfiguration);
  }
  if (!stream && captures_anywhere()) return keep(cudaErrorStreamCaptureImplicit);
  enqueue(stream, [=] {
    cq_emulation_machine()->kernels++;
    cq_emulation_machine()->grids += what.with == company::grid;
    const cudaError_t error = call("kernel");
    if (error || !run_flushing(what, body)) lose(error ? error : cudaErrorLaunchFailure);
  });
  return cudaSuccess;
}

}

using namespace emulation;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  const cudaError_t error = call("cudaStreamCreateWithFlags");
  if (error) return error;
  *stream = new cq_emulated_stream{!(flags & cudaStreamNonBlocking), {}, nullptr};
  streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!streams.count(stream)) {
    fault("cudaStreamDestroy: no such stream");
    return keep(cudaErrorInvalidResourceHandle);
  }
  const cudaError_t error = call("cudaStreamDestroy");
  drain(stream);
  streams.erase(stream);
  delete stream;
  return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t error = call("cudaStreamSynchronize");
  if (error) return error;
  if (is_capturing(stream)) return keep(cudaErrorStreamCaptureUnsupported);
  drain(stream);
  return is_lost() ? call("cudaStreamSynchronize") : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  const cudaError_t error = call_outside("cudaDeviceSynchronize");
  if (error) return error;
  drain_all();
  return is_lost() ? call("cudaDeviceSynchronize") : cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const cudaError_t error = call("cudaStreamQuery");
  if (error) return error;
  return real(stream)->queue.empty() ? cudaSuccess : keep(cudaErrorNotReady);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  const cudaError_t error = call("cudaEventCreateWithFlags");
  if (!error) *event = new cq_emulated_event{};
  return error;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t error = call("cudaEventDestroy");
  delete event;
  return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const cudaError_t error = call("cudaEventRecord");
  if (error) return error;
  auto record = std::make_shared<recording>();
  record->stream = real(stream);
  enqueue(stream, [record] {
    record->when = std::chrono::steady_clock::now();
    record->done = true;
  });
  record->ticket = tickets;
  event->last = record;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const cudaError_t error = call("cudaStreamWaitEvent");
  if (error || !event->last) return error;
  const auto record = event->last;
  enqueue(stream, [record] {
    if (!record->done) run_up_to(record->stream, record->ticket);
  });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const cudaError_t error = call("cudaEventSynchronize");
  if (error || !event->last) return error;
  if (!event->last->done) run_up_to(event->last->stream, event->last->ticket);
  return is_lost() ? call("cudaEventSynchronize") : cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const cudaError_t error = call("cudaEventQuery");
  return error || !event->last || event->last->done ? error : keep(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const cudaError_t error = call("cudaEventElapsedTime");
  if (error) return error;
  if (!start->last || !end->last) return keep(cudaErrorInvalidResourceHandle);
  if (!start->last->done || !end->last->done) return keep(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->last->when - start->last->when).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const cudaError_t error = call("cudaStreamBeginCapture");
  if (error) return error;
  if (!stream || stream->captured) return keep(cudaErrorStreamCaptureUnsupported);
  stream->captured = std::make_shared<std::vector<std::function<void()>>>();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  *graph = nullptr;
  const cudaError_t error = call("cudaStreamEndCapture");
  if (!stream || !stream->captured) return keep(cudaErrorStreamCaptureUnmatched);
  if (!error) *graph = new cq_emulated_graph{stream->captured};
  stream->captured = nullptr;
  return error;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
  const cudaError_t error = call("cudaGraphInstantiate");
  if (error) return error;
  *exec = new cq_emulated_exec{graph->work};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return call("cudaGraphUpload"); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  cq_emulation_machine()->launches++;
  const cudaError_t error = call("cudaGraphLaunch");
  if (error) return error;
  const recorded_work work = exec->work;
  enqueue(stream, [work] {
    for (const auto &step : *work)
      if (!is_lost()) step();
  });
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return call("cudaGraphDestroy");
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return call("cudaGraphExecDestroy");
}
