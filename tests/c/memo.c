// What is remembered of a rollout: the schedule against an exact search, the memo on a device that only counts, and on
// the real one the promises about budgets, early stops and memory.
#include "memo/memo.h"
#include "memo/schedule.h"
#include "rollout.h"
#include <malloc.h>
#include <math.h>

// ---- schedule -------------------------------------------------------------------------------------------------------

enum { LENGTH_MAX = 60, FREE_MAX = 8, STEPS_MOST = 47 };

// the fewest blocks advanced, by trying every split
static void check_schedule(void) {
  static int64_t best[LENGTH_MAX + 1][FREE_MAX + 1];
  int cost_off = 0, split_off = 0;
  for (int64_t l = 1; l <= LENGTH_MAX; l++)
    for (int64_t f = 0; f <= FREE_MAX; f++) {
      best[l][f] = l * (l - 1) / 2;
      for (int64_t k = 1; k < l && f > 0; k++) {
        const int64_t cost = k + best[l - k][f - 1] + best[k][f];
        if (cost < best[l][f]) best[l][f] = cost;
      }
      cost_off += cq_schedule_cost(l, f) != best[l][f];
      if (l < 2 || f < 1) continue;
      const int64_t k = cq_schedule_split(l, f);
      split_off += k < 1 || k >= l || k + best[l - k][f - 1] + best[k][f] != best[l][f];
    }
  CHECK(cost_off == 0, "cq_schedule_cost is not the least in %d cases", cost_off);
  CHECK(split_off == 0, "cq_schedule_split misses the least cost in %d cases", split_off);
  // far out it must neither overflow nor search
  CHECK(cq_schedule_cost(1000000, 20) < 10 * 1000000ll, "a million blocks cost %lld",
        (long long)cq_schedule_cost(1000000, 20));
}

// ---- a device that counts -------------------------------------------------------------------------------------------

// control steps that the device makes at once
enum { RECORD_BYTES = 10, MARK_BYTES = 7, FORWARD_MOST = 3, BACKWARD_MOST = 2 };

struct cq_device {
  int at, advances, reversed, errors;
  int records, marks, marks_most;
  int interrupt;             // after so many more calls, 0: never
  int halved;                // times that the adjoint was
};
struct cq_record { int step; };   // that it was made of, -1 when cleared
struct cq_mark { int at; };

static void count_call(cq_device *d) {
  if (d->interrupt && !--d->interrupt) cq_interrupt(1);
}

static cq_status count_advance(cq_device *d, const cq_controls *c, cq_record *const *records, int32_t *made) {
  count_call(d);
  *made = c->count < FORWARD_MOST ? c->count : FORWARD_MOST;
  for (int i = 0; i < *made; i++) {
    d->errors += c->signals[i] != 100 + d->at || c->forces[i] != 200 + d->at;
    if (records) records[i]->step = d->at;
    d->at++;
    d->advances++;
  }
  return CQ_OK;
}
static cq_status count_record_create(cq_device *d, cq_record **record) {
  d->records++;
  *record = cq_alloc(1, sizeof **record, "test");
  return *record ? CQ_OK : CQ_MEMORY;
}
static void count_record_clear(cq_device *d, cq_record *record) {
  (void)d;
  record->step = -1;
}
static void count_record_destroy(cq_device *d, cq_record *record) {
  if (record) d->records--;
  cq_free(record);
}
static cq_status count_mark_create(cq_device *d, cq_mark **mark) {
  if (++d->marks > d->marks_most) d->marks_most = d->marks;
  *mark = cq_alloc(1, sizeof **mark, "test");
  if (*mark) (*mark)->at = d->at;
  return *mark ? CQ_OK : CQ_MEMORY;
}
static void count_mark_destroy(cq_device *d, cq_mark *mark) {
  d->marks--;
  cq_free(mark);
}
static void count_resume(cq_device *d, const cq_mark *mark) { d->at = mark->at; }
static int64_t count_mark_bytes(const cq_device *d) { return (void)d, MARK_BYTES; }
static int64_t count_record_bytes(const cq_device *d) { return (void)d, RECORD_BYTES; }
static cq_status count_discount(cq_device *d, double factor) {
  d->errors += factor != 0.5;
  d->halved++;
  return CQ_OK;
}

static cq_status count_reverse(cq_device *d, const cq_controls *c, cq_record *const *records, int32_t *made) {
  count_call(d);
  *made = c->count < BACKWARD_MOST ? c->count : BACKWARD_MOST;
  for (int i = c->count - 1; i >= c->count - *made; i--) {
    const int step = records[i]->step;
    if (c->rules && i < c->count - 1) count_discount(d, cq_adjoint_factor(c->rules, c->at + i + 1));
    d->errors += d->at != step + 1 && d->reversed == 0;
    d->errors += c->signals[i] != 100 + step || c->forces[i] != 200 + step;
    c->grad_signals[i] = ldexp(step, -d->halved);
    d->at = step;
    d->reversed++;
  }
  return CQ_OK;
}

static const cq_backend counting = {
    .name = "counting", .advance = count_advance,
    .record_create = count_record_create, .record_clear = count_record_clear, .record_destroy = count_record_destroy,
    .mark_create = count_mark_create, .mark_destroy = count_mark_destroy, .resume = count_resume,
    .mark_bytes = count_mark_bytes, .record_bytes = count_record_bytes, .reverse = count_reverse,
    .discount_adjoint = count_discount,
};

// to the end and back once more, from the first state and from halfway; the returns make no more steps than a rollout
// from the start
static int return_and_reverse(cq_memo *memo, cq_device *d, int steps, int stride, double *grad) {
  int wrong = 0;
  const int before = d->advances, whole = cq_memo_plan(memo)->checkpoints == 0;
  for (int k = 0; k < 2; k++) {
    const int first = k ? 0 : steps / 2;
    wrong += cq_memo_return(memo) != CQ_OK || cq_memo_at(memo) != steps || d->at != steps;
    wrong += cq_memo_return(memo) != CQ_OK;
    memset(grad, 0, (size_t)steps * sizeof *grad);
    for (int i = steps, count; i > first; i -= count) {
      count = i - first < stride ? i - first : stride;
      const cq_controls controls = {.count = count, .grad_signals = grad + i - count};
      wrong += cq_memo_reverse(memo, &controls, NULL) != CQ_OK || cq_memo_at(memo) != i - count;
    }
    for (int i = first; i < steps; i++) wrong += grad[i] != i;
  }
  const double most = whole ? 0 : 2 * cq_memo_plan(memo)->recompute * STEPS_MOST;
  wrong += d->advances - before > most;
  d->advances = before;
  return wrong + d->errors;
}

// forward some steps and all the way back, so many in a call; returns the number of things
// that were not as they should be
static int go_and_return(cq_memo *memo, cq_device *d, int steps, int stride) {
  int wrong = 0;
  double signals[STEPS_MOST], forces[STEPS_MOST], grad[STEPS_MOST] = {0};
  for (int i = 0; i < steps; i++) {
    signals[i] = 100 + i;
    forces[i] = 200 + i;
  }
  d->at = d->advances = d->reversed = 0;
  wrong += cq_memo_begin(memo) != CQ_OK;
  for (int i = 0, count; i < steps; i += count) {
    count = steps - i < stride ? steps - i : stride;
    wrong += cq_memo_run(memo, &(cq_controls){.count = count, .signals = signals + i, .forces = forces + i}) != CQ_OK ||
             cq_memo_at(memo) != i + count;
  }
  wrong += d->advances != steps;
  for (int i = steps, count; i > 0; i -= count) {
    count = i < stride ? i : stride;
    wrong += cq_memo_reverse(memo, &(cq_controls){.count = count, .grad_signals = grad + i - count}, NULL) != CQ_OK ||
             cq_memo_at(memo) != i - count;
  }
  for (int i = 0; i < steps; i++) wrong += grad[i] != i;
  return wrong + d->errors + return_and_reverse(memo, d, steps, stride, grad);
}

// where everything is kept, the last state is too
// a memory of so many bytes for records and checkpoints, with the forces of all steps beside them
static cq_memo_def def_of(cq_device *d, int steps, int64_t budget) {
  return (cq_memo_def){.backend = &counting, .device = d, .steps = steps, .batch = 1, .signals = 1, .forces = 1,
                       .budget = budget + steps * (int64_t)sizeof(double), .differentiable = 1};
}

static int marks_of(const cq_plan *plan) { return plan->checkpoints ? plan->checkpoints : 1; }

static void check_counting(int steps, int64_t budget) {
  cq_device d = {0};
  cq_memo *memo;
  const cq_memo_def def = def_of(&d, steps, budget);
  REQUIRE(cq_memo_create(&def, &memo) == CQ_OK);
  int wrong = go_and_return(memo, &d, steps, 1);
  const cq_plan *plan = cq_memo_plan(memo);
  CHECK(wrong == 0, "%d steps, budget %d: %d mistakes on the way", steps, (int)budget, wrong);
  CHECK(d.records <= plan->records && d.marks_most <= marks_of(plan),
        "%d steps, budget %d: %d records and %d checkpoints, "
        "planned were %d and %d", steps, (int)budget, d.records, d.marks_most, plan->records, plan->checkpoints);
  const int64_t kept = plan->records * RECORD_BYTES + plan->checkpoints * MARK_BYTES;
  CHECK(kept <= budget && plan->bytes == kept + def.budget - budget, "%d steps, budget %d: the plan takes %d", steps,
        (int)budget, (int)plan->bytes);
  CHECK(d.advances <= plan->recompute * steps + 1e-9, "%d steps, budget %d: %d advances, planned %g", steps,
        (int)budget, d.advances, plan->recompute * steps);
  const int all = d.advances;
  // the same whatever is in a call
  for (int stride = 2; stride <= steps; stride += stride < 8 ? 1 : steps - stride > 8 ? 8 : 1) {
    wrong = go_and_return(memo, &d, steps, stride);
    CHECK(wrong == 0 && d.advances == all && d.records <= plan->records && d.marks_most <= marks_of(plan),
          "%d steps, %d at once, budget %d: %d mistakes, %d advances for %d, %d records, %d checkpoints", steps, stride,
          (int)budget, wrong, d.advances, all, d.records, d.marks_most);
  }
  // stopped early, and again from the start
  for (int stop = 1; stop < steps; stop += 1 + steps / 5) {
    wrong = go_and_return(memo, &d, stop, 1 + stop / 2);
    CHECK(wrong == 0 && d.records <= plan->records && d.marks_most <= marks_of(plan),
          "%d of %d steps, budget %d: %d mistakes, %d records, %d checkpoints", stop, steps, (int)budget, wrong,
          d.records, d.marks_most);
  }
  wrong = go_and_return(memo, &d, steps, 1);
  CHECK(wrong == 0 && d.advances == all, "%d steps again: %d mistakes, %d advances for %d", steps, wrong, d.advances,
        all);
  cq_memo_destroy(memo);
  CHECK(d.records == 0 && d.marks == 0, "%d records and %d checkpoints were not given back", d.records, d.marks);
}

static void check_plans(void) {
  double before = 1e9;
  for (int64_t budget = RECORD_BYTES + MARK_BYTES; budget <= 47 * RECORD_BYTES; budget += 1 + budget / 8) {
    check_counting(STEPS_MOST, budget);
    cq_device d = {0};
    cq_memo *memo;
    const cq_memo_def def = def_of(&d, 47, budget);
    REQUIRE(cq_memo_create(&def, &memo) == CQ_OK && cq_memo_begin(memo) == CQ_OK);
    CHECK(cq_memo_plan(memo)->recompute <= before, "budget %d costs more than a smaller one", (int)budget);
    before = cq_memo_plan(memo)->recompute;
    cq_memo_destroy(memo);
  }
  check_counting(1, 10);
  check_counting(2, 17);
  check_counting(24, 24 * RECORD_BYTES);
  cq_device d = {0};
  cq_memo *memo;
  cq_memo_def small = def_of(&d, 9, RECORD_BYTES + MARK_BYTES - 1);
  const cq_memo_def with_forces = small;
  small.forces = 0;
  small.budget = RECORD_BYTES + MARK_BYTES - 1;
  REQUIRE(cq_memo_create(&small, &memo) == CQ_OK);
  CHECK_FAILS(cq_memo_begin(memo), CQ_MEMORY,
              "the memo needs at least 17 bytes (one control step of 10 bytes and a checkpoint of 7 bytes), its budget "
              "is 16 bytes");
  cq_memo_destroy(memo);
  REQUIRE(cq_memo_create(&with_forces, &memo) == CQ_OK);
  CHECK_FAILS(cq_memo_begin(memo), CQ_MEMORY,
              "the memo needs at least 89 bytes (one control step of 10 bytes, a checkpoint of 7 bytes, and 72 bytes "
              "for forces of the user's of all control steps), its budget is 88 bytes");
  cq_memo_destroy(memo);
}

// A chain is reversed by an advance to its next checkpoint, its rest, and its beginning, whatever its length.
static void check_long_chains(void) {
  for (int64_t length = 10; length < 3000000000;
       length = length < INT32_MAX && length * 10 > INT32_MAX ? INT32_MAX : length * 10)
    for (int64_t free = 1; free <= 6; free++) {
      const int64_t split = cq_schedule_split(length, free);
      const int64_t parts = split + cq_schedule_cost(length - split, free - 1) + cq_schedule_cost(split, free);
      CHECK(cq_schedule_cost(length, free) == parts,
            "%lld blocks, %lld checkpoints: %lld advances, its parts make %lld", (long long)length, (long long)free,
            (long long)cq_schedule_cost(length, free), (long long)parts);
    }
}

// Who asks to stop in the middle of a call is heard before the next steps of the device, and what was made stays.
static void check_interrupt(void) {
  cq_device d = {0};
  cq_memo *memo;
  const double controls[10] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109},
               forces[10] = {200, 201, 202, 203, 204, 205, 206, 207, 208, 209};
  double grad[10] = {0};
  const cq_memo_def def = def_of(&d, 10, 1000);
  REQUIRE(cq_memo_create(&def, &memo) == CQ_OK && cq_memo_begin(memo) == CQ_OK);
  d.interrupt = 2;
  cq_controls all = {.count = 10, .signals = controls, .forces = forces, .grad_signals = grad}, rest = all;
  CHECK_FAILS(cq_memo_run(memo, &all), CQ_INTERRUPTED, "interrupted at control step 6");
  cq_interrupt(0);
  rest = (cq_controls){.count = 4, .signals = controls + 6, .forces = forces + 6};
  CHECK(cq_memo_at(memo) == 6 && cq_memo_run(memo, &rest) == CQ_OK, "it does not go on at %d", cq_memo_at(memo));
  d.interrupt = 3;
  CHECK_FAILS(cq_memo_reverse(memo, &all, NULL), CQ_INTERRUPTED, "interrupted at control step 4, in the backward pass");
  cq_interrupt(0);
  all.count = 4;
  CHECK(cq_memo_reverse(memo, &all, NULL) == CQ_OK && d.errors == 0, "%d errors", d.errors);
  for (int i = 0; i < 10; i++) CHECK(grad[i] == i, "gradient %d is %g", i, grad[i]);
  cq_memo_destroy(memo);
}

// A discount comes between two control steps of a call, and not before the first, whatever is remembered.
static void check_discount(void) {
  enum { COUNT = 10 };
  const cq_adjoint_rules halving = {.discount = 0.5, .most = INFINITY};
  double signals[COUNT], forces[COUNT], grad[COUNT];
  for (int i = 0; i < COUNT; i++) {
    signals[i] = 100 + i;
    forces[i] = 200 + i;
  }
  for (int64_t budget = RECORD_BYTES + MARK_BYTES; budget <= COUNT * RECORD_BYTES; budget += 9) {
    cq_device d = {0};
    cq_memo *memo;
    const cq_memo_def def = def_of(&d, COUNT, budget);
    const cq_controls all = {.count = COUNT, .signals = signals, .forces = forces, .grad_signals = grad};
    REQUIRE(cq_memo_create(&def, &memo) == CQ_OK && cq_memo_begin(memo) == CQ_OK && cq_memo_run(memo, &all) == CQ_OK);
    CHECK(cq_memo_reverse(memo, &all, &halving) == CQ_OK && d.errors == 0 && d.halved == COUNT - 1,
          "budget %d: %d errors, halved %d times", (int)budget, d.errors, d.halved);
    for (int i = 0; i < COUNT; i++)
      CHECK(grad[i] == ldexp(i, i + 1 - COUNT), "budget %d: gradient %d is %g", (int)budget, i, grad[i]);
    cq_memo_destroy(memo);
  }
}

// ---- other programs take memory ------------------------------------------------------------------------------------

static const cq_device *planner;         // whose memo plans
static int64_t machine, others;          // bytes: of all, and what others take for each record of the memo
static int64_t left_over(const cq_context *context) {
  (void)context;
  return machine - planner->records * (RECORD_BYTES + others);
}

// Makes all control steps, `stride` of them in a call, and reverses them; returns the most records that there were.
static int run_and_reverse(cq_memo *memo, cq_device *d, int stride, int64_t before_reverse) {
  double signals[STEPS_MOST], forces[STEPS_MOST], grad[STEPS_MOST] = {0};
  for (int i = 0; i < STEPS_MOST; i++) {
    signals[i] = 100 + i;
    forces[i] = 200 + i;
  }
  d->at = d->advances = d->reversed = 0;
  REQUIRE(cq_memo_begin(memo) == CQ_OK);
  int most = 0;
  for (int i = 0, count; i < STEPS_MOST; i += count) {
    count = STEPS_MOST - i < stride ? STEPS_MOST - i : stride;
    REQUIRE(cq_memo_run(memo, &(cq_controls){.count = count, .signals = signals + i, .forces = forces + i}) == CQ_OK);
    CHECK(cq_memo_at(memo) == i + count && d->at == i + count, "at %d, the device at %d", cq_memo_at(memo), d->at);
    most = d->records > most ? d->records : most;
  }
  const int64_t rest = machine;
  if (before_reverse) machine = before_reverse;
  const int forward = d->advances;
  for (int i = STEPS_MOST; i > 0; i--)
    REQUIRE(cq_memo_reverse(memo, &(cq_controls){.count = 1, .grad_signals = grad + i - 1}, NULL) == CQ_OK);
  for (int i = 0; i < STEPS_MOST; i++) CHECK(grad[i] == i, "gradient %d is %g", i, grad[i]);
  CHECK(d->errors == 0, "%d errors", d->errors);
  machine = rest;
  d->advances = forward;
  return most;
}

static cq_memo *watching(cq_device *d, int64_t bytes, int64_t taken) {
  cq_memo *memo;
  planner = d;
  others = taken;
  machine = bytes;
  cq_memo_def def = def_of(d, STEPS_MOST, machine * 3 / 4);
  def.available = left_over;
  REQUIRE(cq_memo_create(&def, &memo) == CQ_OK);
  return memo;
}

// The memo plans for all records, and finds in the middle of the forward pass that others take as much as it does, or
// more: it goes on with those it has, from the first step. Once memory is free again it keeps everything.
static void check_others(int stride, int64_t taken) {
  cq_device d = {0};
  // the forces of the user's are there already
  cq_memo *memo = watching(&d, 4 * (STEPS_MOST + 1) * RECORD_BYTES / 3, taken);
  for (int pass = 0; pass < 3; pass++) {
    const int back = pass == 2;
    if (back) others = 0, machine *= 2;
    const int most = run_and_reverse(memo, &d, stride, 0), whole = !taken || back;
    CHECK((cq_memo_plan(memo)->checkpoints == 0) == whole, "pass %d, %d: %d checkpoints", pass, (int)taken,
          cq_memo_plan(memo)->checkpoints);
    CHECK((most == STEPS_MOST) == whole && d.advances >= STEPS_MOST && d.advances < 2 * STEPS_MOST,
          "pass %d, %d: %d records at most, %d advances", pass, (int)taken, most, d.advances);
    CHECK(left_over(NULL) >= 0, "%d bytes are left", (int)left_over(NULL));
  }
  cq_memo_destroy(memo);
  CHECK(d.records == 0 && d.marks == 0, "%d records and %d checkpoints were not given back", d.records, d.marks);
}

// What a memo needs of the memory, and not what was free, decides: others may leave a little of much.
static void check_little(void) {
  cq_device d = {0};
  cq_memo *memo = watching(&d, 100000, 0);
  machine = 2 * STEPS_MOST * RECORD_BYTES;
  const int most = run_and_reverse(memo, &d, 3, 0);
  CHECK(most == STEPS_MOST && d.advances == STEPS_MOST, "%d records, %d advances", most, d.advances);
  cq_memo_destroy(memo);
}

// Where memory is gone after the forward pass, records that the plan has are made all the same.
static void check_gone(void) {
  cq_device d = {0};
  cq_memo *memo = watching(&d, 400, 0);
  run_and_reverse(memo, &d, 5, 1);
  CHECK(cq_memo_plan(memo)->records < STEPS_MOST && STEPS_MOST % cq_memo_plan(memo)->records, "%d records",
        cq_memo_plan(memo)->records);
  cq_memo_destroy(memo);
}

// ---- the real device ------------------------------------------------------------------------------------------------

enum { STEPS = 27 };   // long enough for two sortings

// so fast that particles are sorted every few steps
static void fast(test_scene *s) {
  for (int i = 0; i < 3; i++) s->def.cells[i] = 64;
  for (int64_t p = 0; p < s->n; p++)
    for (int i = 0; i < s->def.dim; i++) s->velocity[p * s->def.dim + i] += i == 1 ? 1 : 6 - 3 * (double)i;
}

// The bits of control step after control step, whatever number of them is in a call and whatever is remembered.
static void check_calls(int dim, int side, int substeps, int batch) {
  test_choice choice = {.dim = dim,
                        .side = side,
                        .precision = CQ_FLOAT32,
                        .threads = 2,
                        .substeps = substeps,
                        .batch = batch,
                        .steps = STEPS,
                        .change = fast};
  cq_plan all, plan;
  const uint64_t one = test_hash_of(&choice, &all);
  const int strides[] = {7, STEPS, 2};
  for (int k = 0; k < test_of(3, 2); k++) {
    choice.stride = strides[k];
    choice.memory = 0;
    const uint64_t kept = test_hash_of(&choice, NULL);
    choice.memory = test_memory_of(&all, 5, 2);
    const uint64_t made_again = test_hash_of(&choice, &plan);
    CHECK(kept == one && made_again == one && plan.recompute > 1,
          "%dD, %d substeps, batch %d: %d control steps at once give other bits", dim, substeps, batch, strides[k]);
  }
}

// The bits of a second and of a third way back over one way there; the second is given up halfway.
static void check_return(const test_choice *choice, uint64_t expected) {
  test_run t;
  test_run_open(&t, choice);
  const double loss = test_run_forward(&t, STEPS);
  CHECK(test_run_hash_back(&t, STEPS, loss) == expected, "a way back gives other bits than the same again");
  REQUIRE(cq_rollout_return(t.rollout) == CQ_OK && cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  test_run_seed(&t);
  REQUIRE(cq_rollout_run_adjoint(t.rollout, STEPS / 2, NULL, NULL) == CQ_OK && cq_rollout_return(t.rollout) == CQ_OK);
  CHECK_FAILS(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL), CQ_INVALID, "begin the adjoint");
  CHECK(test_run_hash_back(&t, STEPS, loss) == expected, "the way back gives other bits after a return");
  test_run_close(&t);
}

// the bits of everything kept, with so many records; single engine steps and batches too
static void check_bits(int dim, int side, int substeps, int batch) {
  test_choice choice = {.dim = dim,
                        .side = side,
                        .precision = CQ_FLOAT32,
                        .threads = 2,
                        .substeps = substeps,
                        .batch = batch,
                        .steps = STEPS,
                        .running = batch > 1};
  cq_plan all, plan;
  const uint64_t kept = test_hash_of(&choice, &all);
  check_return(&choice, kept);
  CHECK(all.records == STEPS && all.checkpoints == 0, "%d records and %d checkpoints", all.records, all.checkpoints);
  for (int records = 1; records <= 9; records += records < 3 ? 1 : 3) {
    choice.memory = test_memory_of(&all, records, records % 2 ? 1 : 3);
    const uint64_t hash = test_hash_of(&choice, &plan);
    CHECK(plan.recompute > 1 && plan.bytes <= choice.memory, "recompute %g, %lld bytes", plan.recompute,
          (long long)plan.bytes);
    CHECK(hash == kept, "%dD, %d substeps, batch %d: %d records and %d checkpoints give other bits", dim, substeps,
          batch, plan.records, plan.checkpoints);
    if (records == 2 && dim == 3) check_return(&choice, kept);
  }
}

static int64_t bytes_in_use(void) {
  const struct mallinfo2 m = mallinfo2();
  return (int64_t)(m.uordblks + m.hblkhd);
}

static void check_reuse(int64_t records) {
  test_choice choice = {.dim = 2, .side = test_of(32, 16), .precision = CQ_FLOAT32, .threads = 1, .steps = STEPS};
  cq_plan plan;
  test_hash_of(&choice, &plan);
  choice.memory = records ? test_memory_of(&plan, records, 2) : 0;
  test_run t;
  test_run_open(&t, &choice);
  const int64_t empty = bytes_in_use();
  const uint64_t first = test_run_hash(&t, STEPS);
  cq_rollout_plan(t.rollout, &plan);
  // beside the memo: the live state and its neighbours, the grid, sorting
  const int64_t taken = bytes_in_use() - empty, beside = 8 * plan.slice_bytes + 2 * plan.record_bytes;
  CHECK(taken <= plan.bytes + beside, "the rollout takes %lld bytes, planned were %lld", (long long)taken,
        (long long)plan.bytes);
  const uint64_t short_first = test_run_hash(&t, 5);
  int64_t settled = 0;
  for (int k = 0; k < test_of(8, 5); k++) {
    CHECK(test_run_hash(&t, 5) == short_first, "a short rollout after others gives other bits");
    CHECK(test_run_hash(&t, STEPS) == first, "a rollout used again gives other bits");
    // given up half way, forward and backward
    test_run_forward(&t, 3 + k % 4);
    REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
    REQUIRE(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL) == CQ_OK);
    // every path has been taken after four of them
    if (k == 3) settled = bytes_in_use();
  }
  CHECK(bytes_in_use() <= settled + 1024, "using a rollout again takes %lld bytes more",
        (long long)(bytes_in_use() - settled));
  test_run_close(&t);
}

static void check_misuse(void) {
  test_choice choice = {.dim = 2, .side = 8, .precision = CQ_FLOAT64, .threads = 1, .steps = STEPS};
  test_run t;
  test_run_open(&t, &choice);
  CHECK_FAILS(test_run_step(&t, 0), CQ_INVALID, "begin the rollout");
  CHECK_FAILS(cq_rollout_begin_adjoint(t.rollout), CQ_INVALID, "begin it first");
  CHECK_FAILS(cq_rollout_return(t.rollout), CQ_INVALID, "begin it first");
  CHECK_FAILS(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL), CQ_INVALID, "begin the adjoint");
  test_run_forward(&t, STEPS);
  CHECK_FAILS(test_run_step(&t, 0), CQ_INVALID, "made for 27 control steps; after 27");
  double g[2];
  CHECK_FAILS(cq_rollout_gradient(t.rollout, CQ_FIELD_GRAVITY, g, 0), CQ_INVALID, "step 27");
  test_run_forward(&t, 4);
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK && cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL) == CQ_OK);
  CHECK(cq_rollout_at(t.rollout) == 3, "at %d after a step back from 4", cq_rollout_at(t.rollout));
  CHECK_FAILS(test_run_step(&t, 3), CQ_INVALID, "cannot step forward");
  CHECK_FAILS(cq_rollout_gradient(t.rollout, CQ_FIELD_GRAVITY, g, 0), CQ_INVALID, "step 3");
  for (int i = 0; i < 3; i++) REQUIRE(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL) == CQ_OK);
  CHECK_FAILS(cq_rollout_run_adjoint(t.rollout, 1, NULL, NULL), CQ_INVALID, "first state");
  CHECK_FAILS(cq_rollout_run(t.rollout, -1, t.signals, NULL), CQ_INVALID, "-1 control steps");
  CHECK_FAILS(cq_rollout_run_adjoint(t.rollout, -1, NULL, NULL), CQ_INVALID, "-1 control steps");
  test_run_forward(&t, 2);
  REQUIRE(cq_rollout_begin_adjoint(t.rollout) == CQ_OK);
  CHECK_FAILS(cq_rollout_run_adjoint(t.rollout, 3, NULL, NULL), CQ_INVALID, "cannot go back 3");
  test_run_close(&t);

  cq_plan plan;
  test_hash_of(&choice, &plan);
  choice.memory = test_memory_of(&plan, 1, 1) - 1;
  test_run_open(&t, &choice);
  CHECK_FAILS(cq_rollout_begin(t.rollout), CQ_MEMORY, "one control step of");
  CHECK_FAILS(test_run_step(&t, 0), CQ_INVALID, "begin the rollout");
  test_run_close(&t);
}

static void check_forward_only(void) {
  test_choice choice = {.dim = 3, .side = 7, .precision = CQ_FLOAT32, .threads = 1, .steps = STEPS};
  test_run both, only;
  test_run_open(&both, &choice);
  choice.forward_only = 1;
  test_run_open(&only, &choice);
  const double loss = test_run_forward(&both, STEPS);
  CHECK(test_run_forward(&only, STEPS) == loss, "a forward only rollout gives another state");
  const int64_t before = bytes_in_use();
  CHECK(test_run_forward(&only, STEPS) == loss, "a forward only rollout gives another state the second time");
  // an emulated GPU keeps lists of its own
  CHECK(test_device() == CQ_DEVICE_CUDA || bytes_in_use() == before, "a forward only rollout remembers something");
  cq_plan plan;
  cq_rollout_plan(only.rollout, &plan);
  CHECK(plan.bytes == 0 && plan.records == 0 && plan.recompute == 1, "the plan takes %lld bytes",
        (long long)plan.bytes);
  CHECK_FAILS(cq_rollout_begin_adjoint(only.rollout), CQ_INVALID, "forward only");
  CHECK_FAILS(cq_rollout_run_adjoint(only.rollout, 1, NULL, NULL), CQ_INVALID, "begin the adjoint");
  test_run_close(&both);
  test_run_close(&only);
}

int main(void) {
  check_schedule();
  check_plans();
  check_long_chains();
  check_interrupt();
  check_discount();
  for (int stride = 1; stride < STEPS_MOST; stride = 3 * stride + 1)
    for (int64_t taken = 0; taken <= 3 * RECORD_BYTES; taken += RECORD_BYTES) check_others(stride, taken);
  check_little();
  check_gone();
  check_bits(2, test_of(20, 10), 1, 1);
  check_bits(2, test_of(12, 7), 3, 3);
  check_bits(3, test_of(8, 5), 1, 2);
  check_calls(2, test_of(12, 8), 3, 2);
  check_calls(3, test_of(6, 5), 2, 1);
  check_reuse(0);
  check_reuse(3);
  check_misuse();
  check_forward_only();
  return check_report();
}
