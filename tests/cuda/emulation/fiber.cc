// fiber: by a few instructions on x86-64, by ucontext elsewhere. AddressSanitizer is told of every change of stack.
#include "fiber.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulation {

namespace {
constexpr size_t stack_bytes = 256 << 10;   // pages that are never touched cost nothing

// Stacks begin at different places of their pages. At the same place all of them would share a few sets of the cache,
// and every change of stack would miss it.
constexpr size_t colour_bytes = 9 * 64;
size_t colour;
}

struct fiber {
  char *stack, *top;
  void (*body)(void *);
  void *argument;
#if defined(__x86_64__)
  void *inside, *outside;    // stack pointers
#else
  ucontext_t inside, outside;
#endif
#if defined(__SANITIZE_ADDRESS__)
  void *fake_inside, *fake_outside;
  const void *outside_bottom;
  size_t outside_bytes;
#endif
};

#if defined(__x86_64__)
// Saves what a call must keep, and the stack pointer to *save; then the same backwards from another stack. A ret would
// be predicted to go back to where this stack was entered from.
extern "C" __attribute__((visibility("hidden"))) void cq_fiber_switch(void **save, void *to);
asm(R"(
.text
.hidden cq_fiber_switch
.globl cq_fiber_switch
.type cq_fiber_switch, @function
cq_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size cq_fiber_switch, .-cq_fiber_switch
)");
#endif

namespace {

fiber *entered;   // the one whose body begins

void begin() {
  fiber *f = entered;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &f->outside_bottom, &f->outside_bytes);
#endif
  f->body(f->argument);
  abort();
}

}

void fiber_restart(fiber *f) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(f->stack, stack_bytes);
  f->fake_inside = nullptr;
#endif
#if defined(__x86_64__)
  void **top = (void **)f->top - 2;
  *--top = nullptr;                       // where begin() would return to: the stack is aligned as after a call
  *--top = (void *)begin;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f->inside = top;
#else
  getcontext(&f->inside);
  f->inside.uc_stack.ss_sp = f->stack;
  f->inside.uc_stack.ss_size = (size_t)(f->top - f->stack);
  f->inside.uc_link = nullptr;
  makecontext(&f->inside, begin, 0);
#endif
}

fiber *fiber_create(void (*body)(void *), void *argument) {
  fiber *f = (fiber *)calloc(1, sizeof *f);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = (char *)mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!f || memory == MAP_FAILED) {
    fprintf(stderr, "emulation: no memory for the stack of a thread\n");
    abort();
  }
  mprotect(memory, page, PROT_NONE);      // a stack that grows too far stops here
  f->stack = memory + page;
  f->top = f->stack + stack_bytes - colour;
  colour = (colour + colour_bytes) % 4096;
  f->body = body;
  f->argument = argument;
  fiber_restart(f);
  return f;
}

void fiber_enter(fiber *f) {
  entered = f;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&f->fake_outside, f->stack, stack_bytes);
#endif
#if defined(__x86_64__)
  cq_fiber_switch(&f->outside, f->inside);
#else
  swapcontext(&f->outside, &f->inside);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(f->fake_outside, nullptr, nullptr);
#endif
}

void fiber_pass(fiber *from, fiber *to) {
#if defined(__x86_64__)
  entered = to;
  to->outside = from->outside;
  cq_fiber_switch(&from->inside, to->inside);
#else
  (void)from, (void)to;
  abort();
#endif
}

void fiber_leave(fiber *f) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&f->fake_inside, f->outside_bottom, f->outside_bytes);
#endif
#if defined(__x86_64__)
  cq_fiber_switch(&f->inside, f->outside);
#else
  swapcontext(&f->inside, &f->outside);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(f->fake_inside, &f->outside_bottom, &f->outside_bytes);
#endif
}

}
