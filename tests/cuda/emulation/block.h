// block: runs the threads of a kernel's blocks.
#ifndef CQ_EMULATION_BLOCK_H
#define CQ_EMULATION_BLOCK_H

#include "kernel.h"
#include <functional>

namespace emulation {

constexpr unsigned threads_max = 1024;
constexpr size_t shared_max = 48 << 10;      // bytes that the arrays of a block may take, on every GPU

// false after a fault
bool run_blocks(const char *kernel, unsigned blocks, unsigned threads, company with, const std::function<void()> &body);

void fill_poison(void *memory, size_t bytes);
// tells what was used wrongly, on standard error and in the machine's count
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

}

#endif
