// race: finds two accesses to one place of which one writes and nothing orders them, in whatever order the threads
// happen to run. What orders is what a GPU promises, and no more: a launch comes after those before it, __syncthreads
// orders the threads of a block, __syncwarp those lanes that its mask names. A shuffle or a ballot orders no memory,
// nor does an atomic, nor that lanes are one warp. Atomic and volatile accesses do not race among themselves. Order by
// flags and __threadfence is not known here.
//
// block.cc and memory.cc tell of threads, barriers and memory; accesses come from kernels that are compiled with
// -fsanitize=thread, by instrument.cc. Kernels that are compiled without it are not looked at.
#ifndef CQ_EMULATION_RACE_H
#define CQ_EMULATION_RACE_H

#include <cstddef>
#include <cstdint>

namespace emulation {

// A thread as the detector knows it, kept by who runs it.
struct witness {
  unsigned block, rank;
  uint32_t interval;         // what lies between two barriers of a block has a number that nothing else has
  uint32_t met[32];          // of each lane of the warp, how many of its __syncwarps came before what is now
};

// Memory that threads share. As it is watched, nobody has touched it yet.
void race_watch(const void *memory, size_t bytes, const char *name);
void race_forget(const void *memory);

void race_launch(const char *kernel);                       // all that ran so far comes before what follows
// so does a barrier of a whole grid; each block then needs a new interval
void race_order_all();
// a new one, when a block begins and behind each of its barriers
uint32_t race_interval(unsigned block);
void race_meet(witness *const lanes[32], unsigned mask);    // __syncwarp of the lanes in the mask
// whose accesses follow; nullptr: those of the host, which are free
void race_run(const witness *who);
int64_t race_count();                                       // races found so far

enum class access { read, atomic_read, write, atomic_write };
void race_access(access kind, const void *at, size_t bytes, const void *from);   // from: where in the program

}

#endif
