// memo: signals, records and checkpoints of a rollout, forward and backward.
#include "memo.h"
#include "schedule.h"
#include <string.h>

struct cq_memo {
  cq_memo_def def;
  cq_plan plan;
  int32_t at;                // live state
  int32_t forward_end;       // control steps that the forward pass ran
  double *signals, *forces;  // {steps, ...} kept for the adjoint, and those of a policy; forward only no forces
  int32_t has_forces;
  cq_controls given;         // forward only: those of the present call, from the control step given.at on
  int32_t block;             // control steps of a block: as many as there are records
  cq_record **records;       // {block}; record of step i is i % block
  int32_t record_capacity, record_count;  // places in `records`, and those that hold one
  int64_t budget;            // of the rollout: bytes of records, checkpoints and forces, at most def.budget
  int32_t watches;           // free memory is looked at before a record is created
  int32_t is_short;          // too little was free for the records that are still to be created
  int64_t granted;           // bytes of records that may be created before free memory is looked at again
  int32_t recorded_begin, recorded_end;   // control steps whose records are here
  cq_mark **marks;           // a stack of checkpoints at block starts, the first at step 0
  int32_t *mark_at;
  int32_t mark_count, mark_capacity;
  cq_mark *end;              // the last state of the forward pass, once it is left; NULL where not everything is kept
};

// The table of operations of the device that a memo uses.
static const cq_backend *backend_of(const cq_memo *memo) { return memo->def.backend; }

// Frees the checkpoint of the last state of the forward pass, if there is one.
static void drop_end(cq_memo *memo) {
  if (memo->end) backend_of(memo)->mark_destroy(memo->def.device, memo->end);
  memo->end = NULL;
}

// Empties all records for reuse and frees all checkpoints, before the device begins again, which may use their memory.
void cq_memo_forget(cq_memo *memo) {
  cq_device *device = memo->def.device;
  drop_end(memo);
  for (int32_t k = 0; k < memo->record_capacity; k++)
    if (memo->records[k]) backend_of(memo)->record_clear(device, memo->records[k]);
  while (memo->mark_count) backend_of(memo)->mark_destroy(device, memo->marks[--memo->mark_count]);
  memo->recorded_begin = memo->recorded_end = 0;
}

// Frees a memo with its records and checkpoints, before its device is closed; NULL: does nothing.
void cq_memo_destroy(cq_memo *memo) {
  if (!memo) return;
  cq_memo_forget(memo);
  for (int32_t k = 0; k < memo->record_capacity; k++)
    backend_of(memo)->record_destroy(memo->def.device, memo->records[k]);
  cq_free(memo->records);
  cq_free(memo->marks);
  cq_free(memo->mark_at);
  cq_free(memo->signals);
  cq_free(memo->forces);
  cq_free(memo);
}

// Sets out to a new memo of a device. CQ_OK or CQ_MEMORY.
cq_status cq_memo_create(const cq_memo_def *def, cq_memo **out) {
  cq_memo *memo = cq_alloc(1, sizeof *memo, "memo");
  if (!memo) return CQ_MEMORY;
  memo->def = *def;
  memo->signals = cq_alloc((size_t)def->steps * (size_t)def->signals, sizeof(double), "memo of the signals");
  const int32_t kept = def->differentiable ? def->steps : 0;
  memo->forces = cq_alloc((size_t)kept * (size_t)def->forces, sizeof(double), "memo of the forces");
  if (!memo->signals || !memo->forces) {
    cq_memo_destroy(memo);
    return CQ_MEMORY;
  }
  *out = memo;
  return CQ_OK;
}

// How many control steps run forward in all while `steps` of them are run once and reversed, recomputed ones included.
// block: control steps that are recorded together; marks: checkpoints, the one at the start included.
static int64_t forward_steps(int64_t steps, int64_t block, int64_t marks) {
  const int64_t blocks = (steps + block - 1) / block;
  // every block is recorded once; the first pass is the first of the advances
  return steps + block * cq_schedule_cost(blocks, marks - 1);
}

// Fails with CQ_MEMORY and a sentence for a memory budget that does not suffice for one control step. budget, forces:
// bytes, the latter of the memo's array of forces.
static cq_status too_little(const cq_plan *plan, int64_t budget, int64_t forces) {
  const cq_amount least = cq_amount_of(plan->record_bytes + plan->slice_bytes + forces), has = cq_amount_of(budget);
  const cq_amount record = cq_amount_of(plan->record_bytes), mark = cq_amount_of(plan->slice_bytes);
  if (forces) {
    const cq_amount force = cq_amount_of(forces);
    return cq_fail(CQ_MEMORY,
                   "the memo needs at least %.3g %s (one control step of %.3g %s, a checkpoint of %.3g %s, and %.3g %s "
                   "for forces of the user's of all control steps), its budget is %.3g %s: give memory more than that "
                   "(unless given it is three quarters of what is free: end other programs), put forces on fewer "
                   "particles, or make fewer control steps",
                   least.number, least.unit, record.number, record.unit, mark.number, mark.unit, force.number,
                   force.unit, has.number, has.unit);
  }
  return cq_fail(CQ_MEMORY,
                 "the memo needs at least %.3g %s (one control step of %.3g %s and a checkpoint of %.3g %s), its "
                 "budget is %.3g %s: give memory more than that (unless given it is three quarters of what is free: "
                 "end other programs), or make control steps shorter",
                 least.number, least.unit, record.number, record.unit, mark.number, mark.unit, has.number, has.unit);
}

// Sets memo->plan: all records where they fit into the budget of memory; else the block size and the number of
// checkpoints that fit and recompute the fewest control steps. CQ_OK, or CQ_MEMORY where not even one control step
// fits.
static cq_status make_plan(cq_memo *memo) {
  cq_plan *plan = &memo->plan;
  const int64_t steps = memo->def.steps, forces = steps * memo->def.forces * (int64_t)sizeof(double);
  const int64_t budget = memo->budget - forces;    // of records and checkpoints
  *plan = (cq_plan){.recompute = 1};
  if (!memo->def.differentiable) return CQ_OK;
  plan->record_bytes = backend_of(memo)->record_bytes(memo->def.device);
  plan->slice_bytes = backend_of(memo)->mark_bytes(memo->def.device);
  if (steps <= budget / plan->record_bytes) {
    plan->records = (int32_t)steps;
    plan->bytes = steps * plan->record_bytes + forces;
    return CQ_OK;
  }
  if (plan->record_bytes + plan->slice_bytes > budget) return too_little(plan, memo->budget, forces);
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
  plan->bytes = plan->records * plan->record_bytes + plan->checkpoints * plan->slice_bytes + forces;
  plan->recompute = (double)best / (double)steps;
  return CQ_OK;
}

// Bytes of the memo's array for forces that scripts give, of all control steps.
static int64_t force_bytes(const cq_memo *memo) {
  return memo->def.steps * memo->def.forces * (int64_t)sizeof(double);
}

// At the beginning of a rollout: makes the plan again, for less memory, where records and checkpoints that are still to
// be created need more than three quarters of what is free now. Never for less than one record and one checkpoint.
// CQ_OK or CQ_MEMORY.
static cq_status fit_memory(cq_memo *memo) {
  const cq_plan *plan = &memo->plan;
  const int64_t held = memo->record_count * plan->record_bytes + force_bytes(memo),
                least = plan->record_bytes + plan->slice_bytes + force_bytes(memo);
  if (plan->bytes <= held) return CQ_OK;
  const int64_t fits = held + memo->def.available(memo->def.context) / 4 * 3;
  if (plan->bytes <= fits) return CQ_OK;
  memo->budget = fits > least ? fits : least;
  return make_plan(memo);
}

// Is less memory free than 5/4 of what missing records of the plan need, and than a sixth of def.budget? 1 yes, 0 no.
static int lacks_memory(const cq_memo *memo) {
  const int64_t needed = (memo->plan.records - memo->record_count) * memo->plan.record_bytes / 4 * 5,
                most = memo->def.budget / 6;
  return memo->def.available(memo->def.context) < (needed < most ? needed : most);
}

// Makes room for the pointers to records and checkpoints of the plan. Records of an earlier rollout are used again;
// those beyond the plan are freed. CQ_OK or CQ_MEMORY.
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
  for (int32_t k = plan->records; k < memo->record_capacity; k++) {
    memo->record_count -= memo->records[k] != NULL;
    backend_of(memo)->record_destroy(memo->def.device, memo->records[k]);
    memo->records[k] = NULL;
  }
  const int32_t marks = plan->checkpoints ? plan->checkpoints : 1;
  if (memo->mark_capacity < marks) {
    cq_free(memo->marks);
    cq_free(memo->mark_at);
    memo->mark_capacity = 0;
    memo->marks = cq_alloc((size_t)marks, sizeof *memo->marks, "memo");
    memo->mark_at = cq_alloc((size_t)marks, sizeof *memo->mark_at, "memo");
    if (!memo->marks || !memo->mark_at) return CQ_MEMORY;
    memo->mark_capacity = marks;
  }
  return CQ_OK;
}

// Pushes a checkpoint of the live state, which is at the start of a block, onto the stack of checkpoints. CQ_OK or an
// error of the device.
static cq_status push_mark(cq_memo *memo) {
  const cq_status status = backend_of(memo)->mark_create(memo->def.device, &memo->marks[memo->mark_count]);
  if (!status) memo->mark_at[memo->mark_count++] = memo->at;
  return status;
}

// After the device has begun a rollout: plans records and checkpoints, and makes the first checkpoint if the plan may
// need one. CQ_OK, CQ_MEMORY, or an error of the device.
cq_status cq_memo_begin(cq_memo *memo) {
  cq_memo_forget(memo);
  memo->at = memo->forward_end = 0;
  memo->has_forces = 0;
  memo->given = (cq_controls){0};
  memo->budget = memo->def.budget;
  cq_status status = make_plan(memo);
  if (!status && memo->def.available) status = fit_memory(memo);
  if (!status) status = reserve(memo);
  memo->block = memo->plan.records ? memo->plan.records : 1;
  // where memory may run short, the pass begins once more from here
  if (!status && (memo->plan.checkpoints || (memo->def.available && memo->plan.records))) status = push_mark(memo);
  return status;
}

// The forces {steps, batch, forces, dim} of all control steps that a memo keeps; NULL: forward only.
double *cq_memo_forces(cq_memo *memo) { return memo->def.differentiable ? memo->forces : NULL; }

// The plan of a memo: how many records and checkpoints, their bytes, and how often control steps are recomputed.
const cq_plan *cq_memo_plan(const cq_memo *memo) { return &memo->plan; }
// The index of the live state: how many control steps lead to it from the start.
int32_t cq_memo_at(const cq_memo *memo) { return memo->at; }

// The row of a control step in an array {steps, width}; NULL where there is no array.
static double *at_step(double *all, int64_t width, int64_t step) { return all ? all + step * width : NULL; }

// Row number `row` of an array {.., width} that the caller gave; NULL where there is no array.
static const double *given_at(const double *given, int64_t width, int32_t row) {
  return given ? given + row * width : NULL;
}

// The arguments by which the device runs or reverses `count` control steps from number `from` on: signals and forces
// from memo->given.
static cq_controls controls_of(const cq_memo *memo, int32_t from, int32_t count) {
  const cq_controls *given = &memo->given;
  return (cq_controls){.at = from,
                       .count = count,
                       .track = memo->def.track,
                       .signals = given_at(given->signals, memo->def.signals, from - given->at),
                       .forces = given_at(given->forces, memo->def.forces, from - given->at)};
}

// Creates the records that are missing for the next `count` control steps, which are within one block. If these do not
// follow on recorded ones, those count no longer. CQ_OK or an error of the device; where the memo watches memory,
// CQ_MEMORY and memo->is_short, without a sentence, if too little is free for more records.
static cq_status take_records(cq_memo *memo, int32_t count) {
  for (int64_t i = memo->at; i < memo->at + count; i++) {
    cq_record **slot = &memo->records[i % memo->block];
    if (*slot) continue;
    if (memo->watches && memo->record_count > 1 && (memo->granted -= memo->plan.record_bytes) < 0) {
      memo->is_short = lacks_memory(memo);
      memo->granted = memo->def.budget / 64;
    }
    const cq_status status = memo->is_short ? CQ_MEMORY : backend_of(memo)->record_create(memo->def.device, slot);
    if (status) return status;
    memo->record_count++;
  }
  if (memo->recorded_end != memo->at) memo->recorded_begin = memo->recorded_end = memo->at;
  return CQ_OK;
}

// How many of the next `count` control steps one call of the device makes and records: all where their records exist;
// else few where memory may run short, since records take their memory as they are filled.
static int32_t recorded_at_once(const cq_memo *memo, int32_t count) {
  int32_t ready = 0;
  while (ready < count && memo->records[(memo->at + ready) % memo->block]) ready++;
  const int32_t few = 1 + memo->block / 64;
  return !memo->watches || ready == count ? count : ready ? ready : few < count ? few : count;
}

// Runs `count` control steps from the live state. recorded: 1, they are within one block, and their records are filled;
// policy_run: NULL, or the policy that computes their signals. CQ_OK, CQ_INTERRUPTED, or the error of a step.
static cq_status advance(cq_memo *memo, int32_t count, int recorded, const cq_policy_run *policy_run) {
  cq_status status = CQ_OK;
  for (const int32_t end = memo->at + count; memo->at < end && !status;) {
    if (cq_interrupted()) return cq_fail(CQ_INTERRUPTED, "interrupted at control step %d", memo->at);
    const int32_t most = recorded ? recorded_at_once(memo, end - memo->at) : end - memo->at;
    if (recorded) status = take_records(memo, most);
    if (status) return status;
    cq_controls controls = controls_of(memo, memo->at, most);
    controls.policy_run = policy_run;
    controls.policy_signals = at_step(memo->signals, memo->def.signals, memo->at);
    int32_t steps_done = 0;
    status = backend_of(memo)->advance(memo->def.device, &controls,
                                       recorded ? &memo->records[memo->at % memo->block] : NULL, &steps_done);
    memo->at += steps_done;
    if (recorded) memo->recorded_end = memo->at;
  }
  return status;
}

// Does the binomial schedule want a checkpoint at the start of control step i? 1 yes, 0 no. last: the index of the last
// block that is to be reversed.
static int wants_mark(const cq_memo *memo, int64_t i, int64_t last) {
  if (!memo->mark_count || i % memo->block) return 0;
  const int64_t from = memo->mark_at[memo->mark_count - 1] / memo->block, here = i / memo->block;
  const int64_t length = last + 1 - from, free = memo->plan.checkpoints - memo->mark_count;
  if (here <= from || here > last || free < 1 || length < 2) return 0;
  return here - from == cq_schedule_split(length, free);
}

// Runs control steps from the live state up to number `end` (exclusive). last: index of the block of plan.records
// control steps that will be reversed first: its steps are recorded, and the checkpoints that the binomial schedule
// wants before it are made; -1: no records and no checkpoints. policy_run: as in advance. CQ_OK or the error of a step.
static cq_status run_to(cq_memo *memo, int64_t end, int64_t last, const cq_policy_run *policy_run) {
  const int64_t start = last < 0 ? INT64_MAX : last * memo->block;
  cq_status status = CQ_OK;
  while (memo->at < end && !status) {
    if (wants_mark(memo, memo->at, last)) status = push_mark(memo);
    int64_t to = memo->at + 1;
    while (to < end && to != start && !wants_mark(memo, to, last)) to++;
    if (!status) status = advance(memo, (int32_t)(to - memo->at), memo->at >= start, policy_run);
  }
  return status;
}

// Copies `count` numbers into the memo's own array; nothing where the caller has written them there (from == to).
static void keep(double *to, const double *from, int64_t count) {
  if (count && to != from) memcpy(to, from, (size_t)count * sizeof *to);
}

// Sets memo->given to signals and forces of the coming control steps: copies of them where the rollout is
// differentiable, else the caller's arrays.
static void take_controls(cq_memo *memo, const cq_controls *c) {
  const int64_t signals = c->count * memo->def.signals, forces = c->count * memo->def.forces;
  double *to_signals = at_step(memo->signals, memo->def.signals, memo->at);
  if (!memo->def.differentiable) {
    memo->given = (cq_controls){.at = memo->at, .signals = c->policy_run ? to_signals : c->signals,
                                .forces = c->forces};
    return;
  }
  double *to_forces = at_step(memo->forces, memo->def.forces, memo->at);
  if (!c->policy_run) keep(to_signals, c->signals, signals);
  if (c->forces) keep(to_forces, c->forces, forces), memo->has_forces = 1;
  else if (forces) memset(to_forces, 0, (size_t)forces * sizeof *to_forces);
  memo->given = (cq_controls){.signals = memo->signals, .forces = memo->has_forces ? memo->forces : NULL};
}

// Where memory runs short before the budget is spent: makes a new plan within the memory that records and checkpoints
// take so far, and recomputes the control steps from the first one to the live state, for its checkpoints. CQ_OK,
// CQ_MEMORY, or the error of a step.
static cq_status make_do(cq_memo *memo) {
  const int32_t at = memo->at;
  memo->budget = memo->record_count * memo->plan.record_bytes + memo->mark_count * memo->plan.slice_bytes +
                 force_bytes(memo);
  memo->watches = memo->is_short = 0;
  backend_of(memo)->resume(memo->def.device, memo->marks[0]);
  cq_memo_forget(memo);
  memo->at = 0;
  cq_status status = make_plan(memo);
  if (!status) status = reserve(memo);
  if (status) return status;
  memo->block = memo->plan.records;
  status = push_mark(memo);
  return status ? status : run_to(memo, at, (memo->def.steps - 1) / memo->block, NULL);
}

// Runs controls->count control steps forward from the live state, with controls as cq_rollout_run or
// cq_rollout_run_policy have them. CQ_OK, CQ_INVALID after steps were reversed, CQ_INTERRUPTED, or the error of a step.
// After an error the live state may be an earlier one than before the call, where memory ran short meanwhile.
cq_status cq_memo_run(cq_memo *memo, const cq_controls *controls) {
  const int32_t i = memo->at, count = controls->count;
  if (i != memo->forward_end)
    return cq_fail(CQ_INVALID, "a rollout that goes backward cannot step forward; begin again");
  take_controls(memo, controls);
  drop_end(memo);
  cq_status status = CQ_OK;
  memo->watches = memo->def.available && memo->def.differentiable;
  do {
    if (memo->is_short) status = make_do(memo);
    const int32_t last = memo->def.differentiable ? (memo->def.steps - 1) / memo->block : -1;
    if (!status) status = run_to(memo, (int64_t)i + count, last, controls->policy_run);
  } while (memo->is_short);
  memo->watches = 0;   // the backward pass makes records that are in the plan
  memo->forward_end = memo->at;
  return status;
}

// Recomputes the block that contains control step i from the last checkpoint before it (later ones are freed), up to i,
// and records it: i and the block's earlier steps can then be reversed. The live state is i + 1. CQ_OK or an error.
static cq_status record_block(cq_memo *memo, int64_t i) {
  const int64_t block = i / memo->block;
  while (memo->mark_count && memo->mark_at[memo->mark_count - 1] > block * memo->block)
    backend_of(memo)->mark_destroy(memo->def.device, memo->marks[--memo->mark_count]);
  memo->at = memo->mark_at[memo->mark_count - 1];
  // of a block before it, perhaps, and its records must not count as the beginning of this one
  memo->recorded_begin = memo->recorded_end = memo->at;
  backend_of(memo)->resume(memo->def.device, memo->marks[memo->mark_count - 1]);
  return run_to(memo, i + 1, block, NULL);
}

// Reverses the last wanted->count control steps, with controls as cq_rollout_run_adjoint and
// cq_rollout_run_policy_adjoint have them; records that were dropped are recomputed. rules: how the adjoint goes from
// one control step to the one before; NULL: exactly. CQ_OK, CQ_INVALID for a memo that is forward only, CQ_INTERRUPTED,
// or the error of a step.
cq_status cq_memo_reverse(cq_memo *memo, const cq_controls *wanted, const cq_adjoint_rules *rules) {
  const int32_t count = wanted->count;
  if (!memo->def.differentiable)
    return cq_fail(CQ_INVALID, "this rollout was made forward only; nothing is remembered of it");
  const int32_t first = memo->at - count, last = memo->at;
  // Where all records are kept there is no checkpoint to make the last state from again. It shares its memory with the
  // last record.
  if (count && !memo->end && !memo->plan.checkpoints) {
    const cq_status status = backend_of(memo)->mark_create(memo->def.device, &memo->end);
    if (status) return status;
  }
  while (memo->at > first) {
    if (cq_interrupted()) return cq_fail(CQ_INTERRUPTED, "interrupted at control step %d, in the backward pass",
                                          memo->at);
    const int32_t i = memo->at - 1;
    cq_status status = i < memo->recorded_begin || i >= memo->recorded_end ? record_block(memo, i) : CQ_OK;
    if (status) return status;
    const int32_t from = first > memo->recorded_begin ? first : memo->recorded_begin;
    cq_controls controls = controls_of(memo, from, memo->at - from);
    controls.grad_signals = at_step(wanted->grad_signals, memo->def.signals, from - first);
    controls.grad_forces = at_step(wanted->grad_forces, memo->def.forces, from - first);
    controls.policy_run = wanted->policy_run;
    controls.rules = rules;
    int32_t steps_done = 0;
    // the last state of the call had its factor before
    const double factor = rules && memo->at < last ? cq_adjoint_factor(rules, memo->at) : 1;
    if (factor != 1) status = backend_of(memo)->discount_adjoint(memo->def.device, factor);
    if (status) return status;
    status = backend_of(memo)->reverse(memo->def.device, &controls, &memo->records[from % memo->block], &steps_done);
    if (status) return status;
    memo->at -= steps_done;
  }
  return CQ_OK;
}

// Returns the device to the last state of the forward pass, from which control steps can be reversed again. Recomputes
// nothing where all records are kept. CQ_OK or the error of a step.
cq_status cq_memo_return(cq_memo *memo) {
  if (memo->at == memo->forward_end) return CQ_OK;
  if (!memo->end) {
    // the schedule is the best one from the first checkpoint on
    while (memo->mark_count > 1) backend_of(memo)->mark_destroy(memo->def.device, memo->marks[--memo->mark_count]);
    return record_block(memo, memo->forward_end - 1);
  }
  backend_of(memo)->resume(memo->def.device, memo->end);
  memo->at = memo->forward_end;
  return CQ_OK;
}
