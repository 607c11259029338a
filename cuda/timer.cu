// timer: how long the GPU works on each phase. An event on the stream before its launches and one behind them make a
// lap. The host does not wait for events: laps stay in a ring until somebody asks for the times, or the ring is full.
#include "batch.h"
#include <string.h>

static const char *const what = "the timers";

// Creates the CUDA events at the begin and end of each lap in the ring of a zeroed timer.
cq_status cq_cuda_timer_create(cq_timer *t) {
  cq_status status = CQ_OK;
  for (int k = 0; k < CQ_LAPS && !status; k++) {
    status = cq_cuda_check(cudaEventCreate(&t->lap[k].begin), what);
    if (!status) status = cq_cuda_check(cudaEventCreate(&t->lap[k].end), what);
  }
  return status;
}

// Destroys the events of a timer, and zeroes it.
void cq_cuda_timer_destroy(cq_timer *t) {
  for (int k = 0; k < CQ_LAPS; k++) {
    // this fails where the device is lost
    if (t->lap[k].begin && cudaEventDestroy(t->lap[k].begin) != cudaSuccess) cudaGetLastError();
    if (t->lap[k].end && cudaEventDestroy(t->lap[k].end) != cudaSuccess) cudaGetLastError();
  }
  *t = {};
}

// Waits for the GPU to end the oldest lap in the ring, adds its time to the seconds of its phase, and frees its place.
static cq_status add_oldest(cq_timer *t) {
  const cq_lap *lap = &t->lap[t->first];
  float milliseconds = 0;
  t->first = (t->first + 1) % CQ_LAPS;
  t->count--;
  cq_status status = cq_cuda_check(cudaEventSynchronize(lap->end), what);
  if (!status) status = cq_cuda_check(cudaEventElapsedTime(&milliseconds, lap->begin, lap->end), what);
  t->seconds[lap->phase] += milliseconds / 1e3;
  return status;
}

// Begins a lap: GPU work that is launched from here to cq_cuda_timer_end counts as time of `phase` (CQ_PHASE_...).
cq_status cq_cuda_timer_begin(cq_context *c, int32_t phase) {
  cq_timer *t = &c->timer;
  const cq_status status = t->count == CQ_LAPS ? add_oldest(t) : CQ_OK;
  if (status) return status;
  cq_lap *lap = &t->lap[(t->first + t->count) % CQ_LAPS];
  lap->phase = phase;
  return cq_cuda_check(cudaEventRecord(lap->begin, c->stream), what);
}

// Ends the lap that was begun last, by an event on the stream behind the work launched so far.
cq_status cq_cuda_timer_end(cq_context *c) {
  cq_timer *t = &c->timer;
  const cq_status status = cq_cuda_check(cudaEventRecord(t->lap[(t->first + t->count) % CQ_LAPS].end, c->stream), what);
  if (!status) t->count++;
  return status;
}

// Sets seconds to the time that the GPU worked on each phase since the last reset; waits for the last lap. reset not 0:
// times begin again at 0.
void cq_cuda_timer_read(cq_context *c, double seconds[CQ_PHASE_COUNT], int32_t reset) {
  cq_timer *t = &c->timer;
  // The device is lost: its times stay as they are. The next call that uses it reports the loss.
  while (t->count && !add_oldest(t)) continue;
  t->first = t->count = 0;
  memcpy(seconds, t->seconds, sizeof t->seconds);
  if (reset) memset(t->seconds, 0, sizeof t->seconds);
}
