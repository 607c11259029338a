// block: the threads of a block take turns, each until it waits for others or returns. When nobody can go on, the reason is told.
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

enum class condition { ready, at_block, at_warp, returned };

struct thread {
  fiber *fib;
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
  std::vector<thread> threads;
  std::vector<unsigned> order;
  unsigned count, returned, at_block;
  unsigned warp_waiting[threads_max / 32];   // bits of lanes that wait for others of their warp
  std::vector<shared_array> arrays;
  size_t array_bytes;
  bool failed, running;
};

running_block &now = *new running_block();   // to the end of the process, for its fibers

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

void thread_body(void *argument) {
  thread *t = (thread *)argument;
  for (;;) {
    (*now.body)();
    t->is = condition::returned;
    now.returned++;
    fiber_leave(t->fib);
  }
}

void wait(condition what, const char *file, int line) {
  self->is = what;
  self->file = file;
  self->line = line;
  fiber_leave(self->fib);
}

bool same_place(const char *file, int line, const thread &t) { return line == t.line && (file == t.file || !strcmp(file, t.file)); }

const char *name_of(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash ? slash + 1 : file;
}

// what the first thread in each condition is at
void tell_standstill() {
  char what[400] = "";
  size_t used = 0;
  const thread *told[4] = {};
  unsigned numbers[4] = {};
  for (unsigned i = 0; i < now.count; i++) {
    const thread &t = now.threads[i];
    numbers[(int)t.is]++;
    if (!told[(int)t.is]) told[(int)t.is] = &t;
  }
  for (int c = 1; c < 4; c++) {
    if (!numbers[c]) continue;
    const thread &t = *told[c];
    used += (size_t)snprintf(what + used, sizeof what - used, "%s%u of %u threads ", used ? ", " : "", numbers[c], now.count);
    if (c == (int)condition::returned)
      used += (size_t)snprintf(what + used, sizeof what - used, "have returned");
    else
      used += (size_t)snprintf(what + used, sizeof what - used, "wait for their %s (thread %u at %s:%d)",
                               c == (int)condition::at_block ? "block" : "warp", t.rank, name_of(t.file), t.line);
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
    fault("%s, block %u: thread 0 is at the barrier of %s:%d, thread %u at that of %s:%d", now.kernel, blockIdx.x, name_of(a.file),
          a.line, i, name_of(b.file), b.line);
    return false;
  }
  for (unsigned i = 0; i < now.count; i++) now.threads[i].is = condition::ready;
  now.at_block = 0;
  begin_interval();
  return true;
}

void run_block() {
  for (unsigned i = 0; i < now.count; i++) now.threads[i].is = condition::ready;
  for (unsigned w = 0; w < threads_max / 32; w++) now.warp_waiting[w] = 0;
  now.returned = now.at_block = 0;
  begin_interval();
  while (now.returned < now.count && !now.failed) {
    bool moved = false;
    const int32_t how = cq_emulation_machine()->thread_order;
    if (how == CQ_EMULATION_RANDOM) arrange(now.order, now.count, how);
    for (unsigned i = 0; i < now.count && !now.failed; i++) {
      self = &now.threads[now.order[i]];
      if (self->is != condition::ready) continue;
      moved = true;
      threadIdx.x = self->rank;
      race_run(&self->who);
      fiber_enter(self->fib);
      race_run(nullptr);
    }
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

void fail_here() {
  now.failed = true;
  fiber_leave(self->fib);   // never entered again
}

// An address that is none ends the kernel and not the process, as on a GPU. On a stack of its own: a thread's may be full.
void on_bad_address(int, siginfo_t *info, void *) {
  if (!now.running) {
    signal(SIGSEGV, SIG_DFL);   // the host's own fault: it comes again
    return;
  }
  fault("%s, block %u, thread %u: the address %p is none of the device", now.kernel, blockIdx.x, self->rank, info->si_addr);
  fail_here();
}

void catch_bad_addresses() {
#if !defined(__SANITIZE_ADDRESS__)   // which tells more
  static char stack[64 << 10];
  const stack_t alternate = {stack, 0, sizeof stack};
  struct sigaction action = {};
  action.sa_sigaction = on_bad_address;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaltstack(&alternate, nullptr);
  sigaction(SIGSEGV, &action, nullptr);
#endif
}

}

int lane() { return (int)(self->rank & 31); }

void meet_block(const char *file, int line) {
  now.at_block++;
  wait(condition::at_block, file, line);
}

uint64_t meet_warp(meeting kind, unsigned mask, uint64_t value, int source, const char *file, int line) {
  const unsigned warp = self->rank / 32, bit = 1u << lane();
  thread *lanes = &now.threads[warp * 32];
  const unsigned there = now.count - warp * 32 >= 32 ? ~0u : (1u << (now.count - warp * 32)) - 1;
  if (!(mask & bit) || mask & ~there) {
    fault("%s, block %u, thread %u at %s:%d: the mask %08x %s", now.kernel, blockIdx.x, self->rank, name_of(file), line, mask,
          mask & bit ? "names lanes that the block has not" : "leaves out the lane itself");
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
      fault("%s, block %u, thread %u at %s:%d: the shuffle reads lane %d, which the mask %08x leaves out", now.kernel, blockIdx.x, t.rank,
            name_of(file), line, t.source, mask);
    else
      fault("%s, block %u: thread %u is at %s:%d with mask %08x, thread %u at %s:%d with mask %08x", now.kernel, blockIdx.x, self->rank,
            name_of(file), line, mask, t.rank, name_of(t.file), t.line, t.mask);
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

bool run_blocks(const char *kernel, unsigned blocks, unsigned threads, const std::function<void()> &body) {
  const cq_emulation *machine = cq_emulation_machine();
  now.kernel = kernel;
  now.body = &body;
  now.count = threads;
  now.failed = false;
  static const bool caught = (catch_bad_addresses(), true);
  now.running = caught;
  if (now.threads.capacity() < threads_max) now.threads.reserve(threads_max);   // fibers keep pointers
  while (now.threads.size() < threads) {
    now.threads.push_back({});
    thread &t = now.threads.back();
    t.rank = (unsigned)now.threads.size() - 1;
    t.fib = fiber_create(thread_body, &t);
  }
  blockDim = dim3(threads);
  gridDim = dim3(blocks);
  threadIdx = blockIdx = {0, 0, 0};
  random_state = machine->seed;
  arrange(now.order, threads, machine->thread_order);
  const int64_t races = race_count();
  race_launch(kernel);
  std::vector<unsigned> block_order;
  arrange(block_order, blocks, machine->block_order);
  for (unsigned k = 0; k < blocks && !now.failed; k++) {
    blockIdx.x = block_order[k];
    run_block();
    release_arrays();
  }
  now.running = false;
  if (now.failed)
    for (thread &t : now.threads) fiber_restart(t.fib);
  return !now.failed && race_count() == races;
}

}
