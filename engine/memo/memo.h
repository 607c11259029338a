// memo: the records and checkpoints of a rollout, within a budget of memory. All records are kept if they fit.
// Otherwise there are checkpoints on the binomial schedule, from which blocks of control steps are computed again.
// Devices hold the records; the memo only decides which of them exist.
#ifndef CQ_MEMO_H
#define CQ_MEMO_H

#include "../backend/backend.h"

typedef struct cq_memo cq_memo;

typedef struct cq_memo_def {
  const cq_backend *backend;
  cq_device *device;
  int32_t steps;             // control steps at most
  int32_t batch;             // scenes
  int64_t signals, forces;   // doubles of one control step, all scenes
  int64_t budget;            // bytes
  int32_t differentiable;
  const cq_wall_track *track;   // of the rollout, which keeps it
  // bytes that are free now; NULL: the budget is the memo's own. Other programs may have planned with the same memory:
  // a rollout plans with what is free when it begins, and where too little is left for the records of the plan, the
  // memo makes do with those that it has.
  int64_t (*available)(const cq_context *context);
  const cq_context *context;
} cq_memo_def;

// Sets memo to a new memo of a device. CQ_OK or CQ_MEMORY.
cq_status cq_memo_create(const cq_memo_def *def, cq_memo **memo);
// Frees a memo with its records and checkpoints, before its device is closed; NULL: does nothing.
void cq_memo_destroy(cq_memo *memo);
// Empties all records for reuse and frees all checkpoints, before the device begins again, which may use their memory.
void cq_memo_forget(cq_memo *memo);
// After the device has begun a rollout: plans records and checkpoints, and makes the first checkpoint if the plan may
// need one. CQ_OK, CQ_MEMORY, or an error of the device.
cq_status cq_memo_begin(cq_memo *memo);
// How the memory of a rollout is spent: records, checkpoints, and how often control steps are recomputed.
const cq_plan *cq_memo_plan(const cq_memo *memo);
// The forces {steps, batch, forces, dim} of all control steps that a memo keeps; NULL: forward only.
double *cq_memo_forces(cq_memo *memo);
// The index of the live state: how many control steps lead to it from the start.
int32_t cq_memo_at(const cq_memo *memo);
// Runs controls->count control steps forward from the live state, with controls as cq_rollout_run or
// cq_rollout_run_policy have them. CQ_OK, CQ_INVALID after steps were reversed, CQ_INTERRUPTED, or the error of a step.
// After an error the live state may be an earlier one than before the call, where memory ran short meanwhile.
cq_status cq_memo_run(cq_memo *memo, const cq_controls *controls);
// Reverses the last controls->count control steps, with controls as cq_rollout_run_adjoint and
// cq_rollout_run_policy_adjoint have them; records that were dropped are recomputed. rules: how the adjoint goes from
// one control step to the one before; NULL: exactly. CQ_OK, CQ_INVALID for a memo that is forward only, CQ_INTERRUPTED,
// or the error of a step.
cq_status cq_memo_reverse(cq_memo *memo, const cq_controls *controls, const cq_adjoint_rules *rules);
// Returns the device to the last state of the forward pass, from which control steps can be reversed again. Recomputes
// nothing where all records are kept. CQ_OK or the error of a step.
cq_status cq_memo_return(cq_memo *memo);

#endif
