// runtime: what the parts of the emulated runtime share.
#ifndef CQ_EMULATION_RUNTIME_H
#define CQ_EMULATION_RUNTIME_H

#include "cuda_runtime.h"
#include <functional>

namespace emulation {

// Every call begins with it: counts, and gives the error that the call must fail with, if any.
cudaError_t call(const char *name);
cudaError_t keep(cudaError_t error);          // for cudaGetLastError
void lose(cudaError_t error);                 // all calls fail from now on
bool is_lost();

// memory
void open_memory();                           // the host may touch device memory until it is closed as often
void close_memory();
bool is_pinned(const void *memory, size_t bytes);

// streams
void enqueue(cudaStream_t stream, std::function<void()> work);
bool is_capturing(cudaStream_t stream);
bool captures_anywhere();
void drain(cudaStream_t stream);              // NULL: all streams that wait for the default one
void drain_all();

}

#endif
