// fiber: a thread of execution that gives way only when it says so.
#ifndef CQ_EMULATION_FIBER_H
#define CQ_EMULATION_FIBER_H

#include <cstddef>

namespace emulation {

struct fiber;

fiber *fiber_create(void (*body)(void *), void *argument);   // runs when it is first entered; the body never returns
void fiber_enter(fiber *f);                                  // until it leaves
void fiber_leave(fiber *f);                                  // from within, back to who entered
// From within one straight to another, which then leaves to who entered the first: half the changes of stack. Where it
// is not known how, fibers only leave.
void fiber_pass(fiber *from, fiber *to);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
constexpr bool fibers_pass = true;
#else
constexpr bool fibers_pass = false;
#endif
// forgets where it was; from outside, at the body's beginning again
void fiber_restart(fiber *f);

}

#endif
