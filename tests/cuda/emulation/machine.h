// machine: the emulated GPU as a test sees and sets it. The object that carries the emulation exports
// cq_emulation_machine(); a process that cannot call it sets the environment variable CQLUA_EMULATION="memory=1e6
// thread_order=1 ...", names as below.
#ifndef CQ_EMULATION_MACHINE_H
#define CQ_EMULATION_MACHINE_H

#include <stdint.h>

enum cq_emulation_order { CQ_EMULATION_FORWARD, CQ_EMULATION_REVERSE, CQ_EMULATION_RANDOM };

typedef struct cq_emulation {
  // what the machine is
  int32_t devices;           // 0: none
  int32_t driver;            // CUDA version that the driver serves, 13000 for 13.0; 0: no driver
  int64_t memory;            // of the device [bytes]
  int64_t others;            // of it that other programs hold, or what they find free,
  int32_t others_after;      // from so many launches on
  int32_t processors;        // multiprocessors
  int32_t cooperative;       // 1: launches whose blocks are on the machine together

  int32_t looks_for_races;   // 1: kernels are compiled so that races show (race.h); no choice of the test

  // in which order threads and blocks take turns: cq_emulation_order
  int32_t thread_order, block_order;
  uint32_t seed;             // of random orders
  int32_t guard;             // 1: the host cannot touch device memory, as long as that is little

  // The call that will fail: after so many others of its name, with a cudaError_t. Names are those of the
  // runtime, "launch" for what a launch reports at once, "kernel" for what goes wrong while it runs; ""
  // matches every call but these two.
  char fail_call[48];
  int32_t fail_after;        // -1: none fails
  int32_t fail_error;
  int32_t fail_lost;         // 1: all calls after it fail as well

  // what happened so far
  int64_t calls, launches;   // launches: of kernels and of graphs, refused ones too
  int64_t launches_before;   // the call that failed, itself counted
  char refused[64];          // the kernel whose launch failed last
  int64_t kernels, grids;    // that ran, those of graphs too: all, cooperative ones
  int64_t memory_used, memory_peak;
  int64_t pinned_used;       // host memory from cudaMallocHost
  int64_t faults;            // wrong uses that a real device may not notice
  char fault[512];           // the sentence of the first one
} cq_emulation;

#ifdef __cplusplus
extern "C" {
#endif

cq_emulation *cq_emulation_machine(void);
void cq_emulation_reset(void);   // a whole machine again, with nothing counted but the memory in use

#ifdef __cplusplus
}
#endif

#endif
