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
} cq_memo_def;

cq_status cq_memo_create(const cq_memo_def *def, cq_memo **memo);
void cq_memo_destroy(cq_memo *memo);
void cq_memo_forget(cq_memo *memo);                   // before the device begins again, which may use the memory
cq_status cq_memo_begin(cq_memo *memo);               // the device has begun: plans, and forgets what it had
const cq_plan *cq_memo_plan(const cq_memo *memo);
double *cq_memo_forces(cq_memo *memo);                // {steps, batch, ...} that it keeps; NULL: forward only
int32_t cq_memo_at(const cq_memo *memo);              // index of the live state
// Control steps forward from the live state and back from it, of which there are as many, with controls as
// cq_rollout_run, cq_rollout_run_policy and their adjoints have them.
cq_status cq_memo_run(cq_memo *memo, const cq_controls *controls);
// rules: NULL: exact ones.
cq_status cq_memo_reverse(cq_memo *memo, const cq_controls *controls, const cq_adjoint_rules *rules);
// Back to the last state of the forward pass, to be reversed again. Makes nothing again where everything is kept.
cq_status cq_memo_return(cq_memo *memo);

#endif
