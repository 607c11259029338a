#include "memo.h"
#include "schedule.h"
#include <string.h>

struct cq_memo {
  cq_memo_def def;
  cq_plan plan;
  int32_t at;                // live state
  int32_t made;              // control steps of the forward pass
  double *signals, *forces;  // {steps, ...} as they were given
  int32_t has_forces;
  int32_t block;             // control steps of a block: as many as there are records
  cq_record **records;       // {block}; record of step i is i % block
  int32_t record_capacity;
  int32_t recorded_begin, recorded_end;   // control steps whose records are here
  cq_mark **marks;           // a stack of checkpoints at block starts, the first at step 0
  int32_t *mark_at;
  int32_t mark_count, mark_capacity;
};

static const cq_backend *backend_of(const cq_memo *memo) { return memo->def.backend; }

static void forget(cq_memo *memo) {
  cq_device *device = memo->def.device;
  for (int32_t k = 0; k < memo->record_capacity; k++)
    if (memo->records[k]) backend_of(memo)->record_clear(device, memo->records[k]);
  while (memo->mark_count) backend_of(memo)->mark_destroy(device, memo->marks[--memo->mark_count]);
  memo->recorded_begin = memo->recorded_end = 0;
}

void cq_memo_destroy(cq_memo *memo) {
  if (!memo) return;
  forget(memo);
  for (int32_t k = 0; k < memo->record_capacity; k++) backend_of(memo)->record_destroy(memo->def.device, memo->records[k]);
  cq_free(memo->records);
  cq_free(memo->marks);
  cq_free(memo->mark_at);
  cq_free(memo->signals);
  cq_free(memo->forces);
  cq_free(memo);
}

cq_status cq_memo_create(const cq_memo_def *def, cq_memo **out) {
  cq_memo *memo = cq_alloc(1, sizeof *memo, "memo");
  if (!memo) return CQ_MEMORY;
  memo->def = *def;
  memo->signals = cq_alloc((size_t)def->steps * (size_t)def->signals, sizeof(double), "memo of the signals");
  memo->forces = cq_alloc((size_t)def->steps * (size_t)def->forces, sizeof(double), "memo of the forces");
  if (!memo->signals || !memo->forces) {
    cq_memo_destroy(memo);
    return CQ_MEMORY;
  }
  *out = memo;
  return CQ_OK;
}

// control steps made in all, for blocks of a size and so many checkpoints
static int64_t forward_steps(int64_t steps, int64_t block, int64_t marks) {
  const int64_t blocks = (steps + block - 1) / block;
  // every block is recorded once; the first pass is the first of the advances
  return steps + block * cq_schedule_cost(blocks, marks - 1);
}

// Block size and number of checkpoints with the fewest steps made again within the budget.
static cq_status make_plan(cq_memo *memo) {
  cq_plan *plan = &memo->plan;
  const int64_t steps = memo->def.steps, budget = memo->def.budget;
  *plan = (cq_plan){.recompute = 1};
  if (!memo->def.differentiable) return CQ_OK;
  plan->record_bytes = backend_of(memo)->record_bytes(memo->def.device);
  plan->slice_bytes = backend_of(memo)->mark_bytes(memo->def.device);
  if (steps <= budget / plan->record_bytes) {
    plan->records = (int32_t)steps;
    plan->bytes = steps * plan->record_bytes;
    return CQ_OK;
  }
  if (plan->record_bytes + plan->slice_bytes > budget)
    return cq_fail(CQ_MEMORY,
                   "the memo needs at least %.3g MiB (one control step of %.3g MiB and a checkpoint of %.3g MiB), its budget "
                   "is %.3g MiB: give it more memory, or make control steps shorter",
                   (double)(plan->record_bytes + plan->slice_bytes) / (1 << 20), (double)plan->record_bytes / (1 << 20),
                   (double)plan->slice_bytes / (1 << 20), (double)budget / (1 << 20));
  int64_t best = INT64_MAX;
  for (int64_t block = 1; block <= steps && block * plan->record_bytes + plan->slice_bytes <= budget; block++) {
    const int64_t blocks = (steps + block - 1) / block;
    int64_t marks = (budget - block * plan->record_bytes) / plan->slice_bytes;
    if (marks > blocks) marks = blocks;
    const int64_t cost = forward_steps(steps, block, marks);
    if (cost >= best) continue;
    best = cost;
    plan->records = (int32_t)block;
    plan->checkpoints = (int32_t)marks;
  }
  plan->bytes = plan->records * plan->record_bytes + plan->checkpoints * plan->slice_bytes;
  plan->recompute = (double)best / (double)steps;
  return CQ_OK;
}

static cq_status reserve(cq_memo *memo) {
  const cq_plan *plan = &memo->plan;
  if (memo->record_capacity < plan->records) {
    cq_record **records = cq_alloc((size_t)plan->records, sizeof *records, "memo");
    if (!records) return CQ_MEMORY;
    if (memo->records) memcpy(records, memo->records, (size_t)memo->record_capacity * sizeof *records);
    cq_free(memo->records);
    memo->records = records;
    memo->record_capacity = plan->records;
  }
  if (memo->mark_capacity < plan->checkpoints) {
    cq_free(memo->marks);
    cq_free(memo->mark_at);
    memo->mark_capacity = 0;
    memo->marks = cq_alloc((size_t)plan->checkpoints, sizeof *memo->marks, "memo");
    memo->mark_at = cq_alloc((size_t)plan->checkpoints, sizeof *memo->mark_at, "memo");
    if (!memo->marks || !memo->mark_at) return CQ_MEMORY;
    memo->mark_capacity = plan->checkpoints;
  }
  return CQ_OK;
}

// a checkpoint of the live state, which is at a block start
static cq_status push_mark(cq_memo *memo) {
  const cq_status status = backend_of(memo)->mark_create(memo->def.device, &memo->marks[memo->mark_count]);
  if (!status) memo->mark_at[memo->mark_count++] = memo->at;
  return status;
}

cq_status cq_memo_begin(cq_memo *memo) {
  forget(memo);
  memo->at = memo->made = 0;
  memo->has_forces = 0;
  cq_status status = make_plan(memo);
  if (!status) status = reserve(memo);
  memo->block = memo->plan.records ? memo->plan.records : 1;
  if (!status && memo->plan.checkpoints) status = push_mark(memo);
  return status;
}

const cq_plan *cq_memo_plan(const cq_memo *memo) { return &memo->plan; }
int32_t cq_memo_at(const cq_memo *memo) { return memo->at; }

// One control step from the live state, recorded or not.
static cq_status advance(cq_memo *memo, int recorded) {
  const int64_t i = memo->at;
  cq_record *record = NULL;
  if (recorded) {
    cq_record **slot = &memo->records[i % memo->block];
    if (!*slot) {
      const cq_status status = backend_of(memo)->record_create(memo->def.device, slot);
      if (status) return status;
    }
    record = *slot;
    if (memo->recorded_end != i) memo->recorded_begin = memo->recorded_end = (int32_t)i;
  }
  const cq_status status = backend_of(memo)->advance(memo->def.device, memo->signals + i * memo->def.signals,
                                                     memo->has_forces ? memo->forces + i * memo->def.forces : NULL, record);
  if (status) return status;
  memo->at++;
  if (recorded) memo->recorded_end = memo->at;
  return CQ_OK;
}

// At a block start on the way to block `last`, the last one of a chain: is this where the schedule wants a checkpoint?
static int wants_mark(const cq_memo *memo, int64_t last) {
  const int64_t from = memo->mark_at[memo->mark_count - 1] / memo->block, here = memo->at / memo->block;
  const int64_t length = last + 1 - from, free = memo->plan.checkpoints - memo->mark_count;
  if (memo->at % memo->block || here <= from || here > last || free < 1 || length < 2) return 0;
  return here - from == cq_schedule_split(length, free);
}

cq_status cq_memo_step(cq_memo *memo, const double *signals, const double *forces) {
  const int64_t i = memo->at;
  if (i >= memo->def.steps)
    return cq_fail(CQ_INVALID, "this rollout was made for %d control steps; it has made them all", memo->def.steps);
  if (i != memo->made) return cq_fail(CQ_INVALID, "a rollout that goes backward cannot step forward; begin again");
  if (memo->def.signals) memcpy(memo->signals + i * memo->def.signals, signals, (size_t)memo->def.signals * sizeof *signals);
  if (forces) {
    memcpy(memo->forces + i * memo->def.forces, forces, (size_t)memo->def.forces * sizeof *forces);
    memo->has_forces = 1;
  } else {
    memset(memo->forces + i * memo->def.forces, 0, (size_t)memo->def.forces * sizeof *memo->forces);
  }
  int recorded = 0;
  if (memo->def.differentiable) {
    const int64_t last = (memo->def.steps - 1) / memo->block;
    recorded = i / memo->block == last;
    if (memo->plan.checkpoints && i && wants_mark(memo, last)) {
      const cq_status status = push_mark(memo);
      if (status) return status;
    }
  }
  const cq_status status = advance(memo, recorded);
  if (!status) memo->made = memo->at;
  return status;
}

// Makes the records of the block that holds step i, up to i; the live state is then i + 1 again.
static cq_status record_block(cq_memo *memo, int64_t i) {
  const int64_t block = i / memo->block, start = block * memo->block;
  while (memo->mark_count && memo->mark_at[memo->mark_count - 1] > start)
    backend_of(memo)->mark_destroy(memo->def.device, memo->marks[--memo->mark_count]);
  memo->at = memo->mark_at[memo->mark_count - 1];
  backend_of(memo)->resume(memo->def.device, memo->marks[memo->mark_count - 1]);
  while (memo->at <= i) {
    cq_status status = wants_mark(memo, block) ? push_mark(memo) : CQ_OK;
    if (!status) status = advance(memo, memo->at >= start);
    if (status) return status;
  }
  return CQ_OK;
}

cq_status cq_memo_reverse(cq_memo *memo, double *grad_signals, double *grad_forces) {
  if (!memo->def.differentiable) return cq_fail(CQ_INVALID, "this rollout was made forward only; nothing is remembered of it");
  if (memo->at == 0) return cq_fail(CQ_INVALID, "this rollout is at its first state; there is no step to reverse");
  const int64_t i = memo->at - 1;
  if (i < memo->recorded_begin || i >= memo->recorded_end) {
    const cq_status status = record_block(memo, i);
    if (status) return status;
  }
  const cq_status status = backend_of(memo)->reverse(
      memo->def.device, memo->signals + i * memo->def.signals, memo->has_forces ? memo->forces + i * memo->def.forces : NULL,
      memo->records[i % memo->block], grad_signals, grad_forces);
  if (!status) memo->at--;
  return status;
}
