// denormal: how a thread treats numbers too small for their full digits (below 1.2e-38 in float32, 2.2e-308 in
// float64). A processor takes several times as long over one of them, some a hundred times, and they are what waves
// end in that run into a body at rest, and adjoints in what the loss hardly depends on. While a thread works for the
// engine it flushes them: an operation takes such an operand for 0 and gives 0 where the result would be one
// (engine/physics/EQUATIONS.md says what that loses).
//
// The mode belongs to the thread, so the engine gives the caller's back. It is a whole one: rounding to nearest and no
// traps, whatever the caller asked for, or the results would depend on which thread did the work. On x86 by MXCSR, on
// 64-bit ARM by FPCR. On other machines nothing is flushed; only time is lost there.
#ifndef CQ_DENORMAL_H
#define CQ_DENORMAL_H

#include <stdint.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

typedef uint64_t cq_float_mode;

#if defined(__SSE2__)
#define CQ_FLUSHES 1
enum { CQ_FLUSH_RESULTS = 1 << 15, CQ_FLUSH_OPERANDS = 1 << 6, CQ_NO_TRAPS = 0x1f80 };
static const cq_float_mode cq_flushing = CQ_NO_TRAPS | CQ_FLUSH_RESULTS | CQ_FLUSH_OPERANDS;
// The mode in which this thread computes with floating-point numbers (MXCSR).
static inline cq_float_mode cq_float_mode_get(void) { return _mm_getcsr(); }
// Sets the mode of this thread.
static inline void cq_float_mode_set(cq_float_mode mode) { _mm_setcsr((unsigned)mode); }
#elif defined(__aarch64__)
#define CQ_FLUSHES 1
static const cq_float_mode cq_flushing = 1 << 24;   // FZ: operands and results
// The mode in which this thread computes with floating-point numbers (FPCR).
static inline cq_float_mode cq_float_mode_get(void) {
  cq_float_mode mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
// Sets the mode of this thread.
static inline void cq_float_mode_set(cq_float_mode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
#define CQ_FLUSHES 0
static const cq_float_mode cq_flushing = 0;
// 0: the mode of this machine is not known.
static inline cq_float_mode cq_float_mode_get(void) { return 0; }
// Does nothing.
static inline void cq_float_mode_set(cq_float_mode mode) { (void)mode; }
#endif

// This thread flushes from here on; returns the mode that it had, for cq_float_mode_set. Arithmetic that is to be
// flushed is called through a pointer in between: compilers move arithmetic across changes of the mode, but not across
// such a call.
static inline cq_float_mode cq_denormals_flush(void) {
  const cq_float_mode before = cq_float_mode_get();
  cq_float_mode_set(cq_flushing);
  return before;
}

#endif
