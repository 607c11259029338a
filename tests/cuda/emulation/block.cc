// block: the threads of a block take turns, each until it waits for others or returns. When nobody
// can go on, the reason is told.
#include "block.h"
#include "fiber.h"
#include "kernel.h"
#include "machine.h"
#include "race.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulation {

namespace {

enum class condition { ready, at_block, at_warp, at_all, returned };
constexpr int conditions = 5;

struct thread {
  fiber *fib;                // while it runs or waits
  unsigned rank;
  condition is;
  const char *file;          // where it waits
  int line;
  // its part in what a warp does together
  meeting kind;
  unsigned mask;
  int source;
  uint64_t value, result;
  witness who;
};

struct shared_array {
  const void *site;
  const char *name;
  void *memory;
  size_t bytes;
};

struct running_block {
  const char *kernel;
  const std::function<void()> *body;
  company with;
  std::vector<thread> threads;
  std::vector<unsigned> order, warps;
  unsigned count, returned, at_block, at_all;
  unsigned warp_waiting[threads_max / 32];   // bits of lanes that wait for others of their warp
  std::vector<shared_array> arrays;
  size_t array_bytes;
  bool failed, running;
};

// to the end of the process; of blocks that run together all but one are parked
running_block &now = *new running_block();
std::vector<running_block> &parked = *new std::vector<running_block>();
// Fibers without a thread. The last that was left is the first to be taken, so threads that wait for nobody all run on
// one stack, which stays in the cache.
std::vector<fiber *> &idle = *new std::vector<fiber *>();

thread *self;
uint32_t random_state;

uint32_t draw(uint32_t below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)random_state * below >> 32);
}

void arrange(std::vector<unsigned> &order, unsigned count, int32_t how) {
  order.resize(count);
  for (unsigned i = 0; i < count; i++) order[i] = how == CQ_EMULATION_REVERSE ? count - 1 - i : i;
  for (unsigned i = count; how == CQ_EMULATION_RANDOM && i > 1; i--) std::swap(order[i - 1], order[draw(i)]);
}

// Threads that take turns now, by their place in the block, and which of them come next.
struct turns {
  const unsigned *order;
  unsigned count, next;
} turn;

thread *next_ready() {
  while (turn.next < turn.count && !now.failed) {
    thread &t = now.threads[turn.order[turn.next++]];
    if (t.is == condition::ready) return &t;
  }
  return nullptr;
}

void run_bodies(void *);

// This thread is the one that runs from here on.
void become(thread *t) {
  self = t;
  threadIdx.x = t->rank;
  race_run(&t->who);
  if (t->fib) return;
  if (idle.empty()) {
    t->fib = fiber_create(run_bodies, nullptr);
  } else {
    t->fib = idle.back();
    idle.pop_back();
  }
}

// The running thread stops here, and the next one goes on, without a way through the scheduler where that can be.
void stop(fiber *mine) {
  thread *next = fibers_pass ? next_ready() : nullptr;
  if (!next) {
    fiber_leave(mine);
    return;
  }
  become(next);
  if (next->fib != mine) fiber_pass(mine, next->fib);
}

// of a fiber: one thread after another
void run_bodies(void *) {
  for (;;) {
    (*now.body)();
    fiber *const mine = self->fib;
    self->is = condition::returned;
    self->fib = nullptr;
    now.returned++;
    idle.push_back(mine);
    stop(mine);
  }
}

void wait(condition what, const char *file, int line) {
  self->is = what;
  self->file = file;
  self->line = line;
  stop(self->fib);
}

bool same_place(const char *file, int line, const thread &t) {
  return line == t.line && (file == t.file || !strcmp(file, t.file));
}

const char *name_of(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash ? slash + 1 : file;
}

// what the first thread in each condition is at
void tell_standstill() {
  char what[400] = "";
  size_t used = 0;
  static const char *const partners[conditions] = {"", "block", "warp", "launch", ""};
  const thread *told[conditions] = {};
  unsigned numbers[conditions] = {};
  for (unsigned i = 0; i < now.count; i++) {
    const thread &t = now.threads[i];
    numbers[(int)t.is]++;
    if (!told[(int)t.is]) told[(int)t.is] = &t;
  }
  for (int c = 1; c < conditions; c++) {
    if (!numbers[c]) continue;
    const thread &t = *told[c];
    used += (size_t)snprintf(what + used, sizeof what - used, "%s%u of %u threads ", used ? ", " : "", numbers[c],
                             now.count);
    if (c == (int)condition::returned)
      used += (size_t)snprintf(what + used, sizeof what - used, "have returned");
    else
      used += (size_t)snprintf(what + used, sizeof what - used, "wait for their %s (thread %u at %s:%d)",
                               partners[c], t.rank, name_of(t.file), t.line);
  }
  fault("%s, block %u: a barrier that not all reach: %s", now.kernel, blockIdx.x, what);
  now.failed = true;
}

// what the threads of the block did so far comes before what they do from now on
void begin_interval() {
  const uint32_t interval = race_interval(blockIdx.x);
  for (unsigned i = 0; i < now.count; i++) {
    witness &who = now.threads[i].who;
    who.block = blockIdx.x;
    who.rank = i;
    who.interval = interval;
  }
}

// all of the block wait at one barrier
bool release_block() {
  for (unsigned i = 1; i < now.count; i++) {
    const thread &a = now.threads[0], &b = now.threads[i];
    if (same_place(a.file, a.line, b)) continue;
    fault("%s, block %u: thread 0 is at the barrier of %s:%d, thread %u at that of %s:%d", now.kernel, blockIdx.x,
          name_of(a.file), a.line, i, name_of(b.file), b.line);
    return false;
  }
  for (unsigned i = 0; i < now.count; i++) now.threads[i].is = condition::ready;
  now.at_block = 0;
  begin_interval();
  return true;
}

void begin_block() {
  for (unsigned i = 0; i < now.count; i++) now.threads[i].is = condition::ready;
  for (unsigned w = 0; w < threads_max / 32; w++) now.warp_waiting[w] = 0;
  now.returned = now.at_block = now.at_all = 0;
  begin_interval();
}

// Each of these threads goes on until it waits or returns. Could any?
bool run_threads(const unsigned *order, unsigned count) {
  bool moved = false;
  turn = {order, count, 0};
  while (thread *t = next_ready()) {
    moved = true;
    become(t);
    fiber_enter(t->fib);
    race_run(nullptr);
  }
  return moved;
}

// Each warp goes on until all its lanes wait for more than their warp, or have returned: the stacks of one warp fit
// into the cache, those of a block do not, and most meetings are of warps.
bool run_warps(int32_t how) {
  bool moved = false;
  arrange(now.warps, (now.count + 31) / 32, how);
  for (const unsigned warp : now.warps) {
    const unsigned first = warp * 32, count = now.count - first < 32 ? now.count - first : 32;
    arrange(now.order, count, how);
    for (unsigned &lane : now.order) lane += first;
    while (run_threads(now.order.data(), count)) moved = true;
  }
  return moved;
}

// Until all its threads have returned, or wait for other blocks. In random order, the lanes of different warps take
// turns in one of eight blocks.
void run_block() {
  const int32_t how = cq_emulation_machine()->thread_order;
  const bool mixed = how == CQ_EMULATION_RANDOM && draw(8) == 0;
  while (now.returned < now.count && now.at_all < now.count && !now.failed) {
    if (mixed) arrange(now.order, now.count, how);
    const bool moved = mixed ? run_threads(now.order.data(), now.count) : run_warps(how);
    if (now.failed) return;
    if (now.at_block == now.count)
      now.failed = !release_block();
    else if (!moved)
      tell_standstill();
  }
}

void release_arrays() {
  for (const shared_array &a : now.arrays) {
    race_forget(a.memory);
    free(a.memory);
  }
  now.arrays.clear();
  now.array_bytes = 0;
}

// the block that works now, before its threads begin
void set_up(const char *kernel, unsigned threads, company with, const std::function<void()> &body) {
  now.kernel = kernel;
  now.body = &body;
  now.with = with;
  now.count = threads;
  now.failed = false;
  now.running = true;
  while (now.threads.size() < threads) {
    now.threads.push_back({});
    now.threads.back().rank = (unsigned)now.threads.size() - 1;
  }
}

void put_away() {
  release_arrays();
  now.running = false;
  for (thread &t : now.threads) {
    if (!t.fib) continue;      // else it was left in the middle of its body, by a failure
    fiber_restart(t.fib);
    idle.push_back(t.fib);
    t.fib = nullptr;
  }
}

// all threads of all blocks wait: at the same barrier?
bool release_all(unsigned blocks) {
  const thread &first = parked[0].threads[0];
  for (unsigned k = 0; k < blocks; k++) {
    for (unsigned i = 0; i < parked[k].count; i++) {
      thread &t = parked[k].threads[i];
      t.is = condition::ready;
      if (same_place(first.file, first.line, t)) continue;
      fault("%s: block 0 waits for its launch at %s:%d, block %u at %s:%d", parked[k].kernel, name_of(first.file),
            first.line, k, name_of(t.file), t.line);
      return false;
    }
    parked[k].at_all = 0;
  }
  return true;
}

// Blocks that are on the machine together take turns, each until it waits for the others.
bool run_together(unsigned blocks, const std::function<void()> &begin) {
  if (parked.size() < blocks) parked.resize(blocks);
  bool failed = false;
  std::vector<unsigned> order;
  const auto each = [&](const std::function<void()> &act) {
    arrange(order, blocks, cq_emulation_machine()->block_order);
    for (const unsigned k : order) {
      blockIdx.x = k;
      std::swap(now, parked[k]);
      if (!failed) act();
      failed |= now.failed;
      std::swap(now, parked[k]);
    }
  };
  each(begin);
  while (!failed) {
    unsigned returned = 0, waiting = 0;
    each([&] {
      begin_interval();
      run_block();
      ++(now.at_all ? waiting : returned);
    });
    if (failed || !waiting) break;
    if (returned) {
      fault("%s: %u of %u blocks have returned, the others wait for them", parked[0].kernel, returned, blocks);
      failed = true;
    } else {
      failed = !release_all(blocks);
      race_order_all();
    }
  }
  for (unsigned k = 0; k < blocks; k++) {
    std::swap(now, parked[k]);
    now.failed = failed;
    put_away();
    std::swap(now, parked[k]);
  }
  return !failed;
}

void fail_here() {
  now.failed = true;
  fiber_leave(self->fib);   // never entered again
}

#if defined(__SANITIZE_ADDRESS__)
void catch_bad_addresses() {}   // the sanitizer does, and tells more
#else
// An address that is none ends the kernel and not the process, as on a GPU. On a stack of its
// own: a thread's may be full.
void on_bad_address(int, siginfo_t *info, void *) {
  if (!now.running) {
    signal(SIGSEGV, SIG_DFL);   // the host's own fault: it comes again
    return;
  }
  fault("%s, block %u, thread %u: the address %p is none of the device", now.kernel, blockIdx.x, self->rank,
        info->si_addr);
  fail_here();
}

void catch_bad_addresses() {
  static char stack[64 << 10];
  const stack_t alternate = {stack, 0, sizeof stack};
  struct sigaction action = {};
  action.sa_sigaction = on_bad_address;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaltstack(&alternate, nullptr);
  sigaction(SIGSEGV, &action, nullptr);
}
#endif

}

int lane() { return (int)(self->rank & 31); }

void meet_block(const char *file, int line) {
  now.at_block++;
  wait(condition::at_block, file, line);
}

void meet_all(company with, const char *file, int line) {
  if (with != now.with) {
    fault("%s, block %u at %s:%d: the blocks were not launched as what waits here", now.kernel, blockIdx.x,
          name_of(file), line);
    fail_here();
  }
  now.at_all++;
  wait(condition::at_all, file, line);
}

uint64_t meet_warp(meeting kind, unsigned mask, uint64_t value, int source, const char *file, int line) {
  const unsigned warp = self->rank / 32, bit = 1u << lane();
  thread *lanes = &now.threads[warp * 32];
  const unsigned there = now.count - warp * 32 >= 32 ? ~0u : (1u << (now.count - warp * 32)) - 1;
  if (!(mask & bit) || mask & ~there) {
    fault("%s, block %u, thread %u at %s:%d: the mask %08x %s", now.kernel, blockIdx.x, self->rank, name_of(file), line,
          mask, mask & bit ? "names lanes that the block has not" : "leaves out the lane itself");
    fail_here();
  }
  self->kind = kind;
  self->mask = mask;
  self->value = value;
  self->source = source;
  self->file = file;
  self->line = line;
  now.warp_waiting[warp] |= bit;
  if ((now.warp_waiting[warp] & mask) != mask) {
    wait(condition::at_warp, file, line);
    return self->result;
  }
  unsigned ballot = 0;
  for (int i = 0; i < 32; i++) {
    if (!(mask >> i & 1)) continue;
    const thread &t = lanes[i];
    ballot |= t.value ? 1u << i : 0;
    const bool together = t.kind == kind && t.mask == mask && same_place(file, line, t);
    if (together && (kind != meeting::shuffle || mask >> t.source & 1)) continue;
    if (together)
      fault("%s, block %u, thread %u at %s:%d: the shuffle reads lane %d, which the mask %08x leaves out", now.kernel,
            blockIdx.x, t.rank, name_of(file), line, t.source, mask);
    else
      fault("%s, block %u: thread %u is at %s:%d with mask %08x, thread %u at %s:%d with mask %08x", now.kernel,
            blockIdx.x, self->rank, name_of(file), line, mask, t.rank, name_of(t.file), t.line, t.mask);
    fail_here();
  }
  for (int i = 0; i < 32; i++) {
    if (!(mask >> i & 1)) continue;
    lanes[i].result = kind == meeting::shuffle ? lanes[lanes[i].source].value : ballot;
    lanes[i].is = condition::ready;
  }
  now.warp_waiting[warp] &= ~mask;
  // the others exchange values and order no memory
  witness *all[32];
  for (int i = 0; i < 32; i++) all[i] = &lanes[i].who;
  if (kind == meeting::sync) race_meet(all, mask);
  return self->result;
}

void *shared(const void *site, size_t bytes, const char *name) {
  for (const shared_array &a : now.arrays)
    if (a.site == site) return a.memory;
  void *memory = nullptr;
  if (posix_memalign(&memory, 128, bytes)) abort();
  fill_poison(memory, bytes);
  race_watch(memory, bytes, name);
  now.arrays.push_back({site, name, memory, bytes});
  now.array_bytes += (bytes + 15) & ~(size_t)15;
  if (now.array_bytes > shared_max) {
    fault("%s: the block shares %zu bytes with %s; %zu are allowed", now.kernel, now.array_bytes, name, shared_max);
    fail_here();
  }
  return memory;
}

bool run_blocks(const char *kernel, unsigned blocks, unsigned threads, company with,
                const std::function<void()> &body) {
  const cq_emulation *machine = cq_emulation_machine();
  static const bool caught = (catch_bad_addresses(), true);
  (void)caught;
  blockDim = dim3(threads);
  gridDim = dim3(blocks);
  threadIdx = blockIdx = {0, 0, 0};
  random_state = machine->seed;
  const int64_t races = race_count();
  race_launch(kernel);
  if (with != company::none) {
    const auto begin = [&] {
      set_up(kernel, threads, with, body);
      begin_block();
    };
    return run_together(blocks, begin) && race_count() == races;
  }
  set_up(kernel, threads, with, body);
  std::vector<unsigned> block_order;
  arrange(block_order, blocks, machine->block_order);
  for (unsigned k = 0; k < blocks && !now.failed; k++) {
    blockIdx.x = block_order[k];
    begin_block();
    run_block();
    release_arrays();
  }
  put_away();
  return !now.failed && race_count() == races;
}
}
