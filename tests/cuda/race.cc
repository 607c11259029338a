// The race detector of the emulation: kernels with one step of theirs left out, which it must find in every order of
// threads and blocks, and the same kernels whole, which it must let pass. Compiled as the device is for cuda-race.so.
#include "emulation/cuda_runtime.h"
#include "emulation/machine.h"
#include "../../cuda/launch.h"
#include "../c/check.h"

namespace {

cq_emulation *machine() { return cq_emulation_machine(); }

constexpr int blocks = 3, threads = 96, count = blocks * threads;

CQ_GPU int rank_of() { return (int)threadIdx.x; }
CQ_GPU int index_of() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

// ---- within a block -------------------------------------------------------------------------------------------------

// whole: the barrier between what one thread writes and another reads
__global__ void read_after_write(int *out, int whole) {
  CQ_SHARED(int, line, threads);
  line[rank_of()] = rank_of();
  if (whole) __syncthreads();
  out[index_of()] = line[threads - 1 - rank_of()];
}

// whole: the barrier before the next turn writes again
__global__ void write_after_read(int *out, int whole) {
  CQ_SHARED(int, line, threads);
  int sum = 0;
  for (int turn = 0; turn < 3; turn++) {
    line[rank_of()] = turn;
    __syncthreads();
    sum += line[threads - 1 - rank_of()];
    if (whole) __syncthreads();
  }
  out[index_of()] = sum;
}

// whole: one thread writes what all read, not another one each turn
__global__ void write_together(int *out, int whole) {
  CQ_SHARED(int, word, 1);
  if (rank_of() == 7 || (!whole && rank_of() == 80)) *word = 5;
  __syncthreads();
  out[index_of()] = *word;
}

// whole: a barrier parts all that read from the one that writes; without it only one reader is in the way
__global__ void one_of_many(int *out, int whole) {
  CQ_SHARED(int, word, 1);
  if (rank_of() == 33) *word = 5;
  __syncthreads();
  if (rank_of() == 33 || rank_of() == 34) out[index_of()] = *word;
  if (whole) __syncthreads();
  if (rank_of() == 33) *word = 6;
}

// whole: each thread has a byte of its own, and nobody reads a word of them before the barrier
__global__ void bytes(int *out, int whole) {
  CQ_SHARED(uint8_t, byte, threads + 4);
  byte[rank_of()] = (uint8_t)rank_of();
  if (!whole && rank_of() == 50) byte[51] = 0;
  __syncthreads();
  out[index_of()] = byte[threads - 1 - rank_of()];
}

__global__ void bytes_of_a_word(int *out, int whole) {
  CQ_SHARED(int32_t, word, threads);
  ((uint8_t *)word)[rank_of()] = (uint8_t)rank_of();
  if (whole) __syncthreads();
  if (rank_of() == 0) out[index_of()] = word[7];
}

// whole: a structure is copied behind the barrier, of which another thread writes one member
__global__ void members(int *out, int whole) {
  CQ_SHARED(float4, four, 2);
  if (rank_of() < 8) ((float *)four)[rank_of()] = 1;
  if (whole) __syncthreads();
  const float4 copy = four[rank_of() % 2];
  out[index_of()] = (int)(copy.x + copy.w);
}

// whole: memory of the device too is ordered by a barrier of the block
__global__ void through_the_device(int *out, int whole) {
  out[index_of()] = 1;
  if (whole) __syncthreads();
  int *const other = &out[blockIdx.x * blockDim.x + (unsigned)(threads - 1 - rank_of())];
  const int sum = *other + 1;
  __syncthreads();
  out[index_of()] = sum;
}

// ---- within a warp --------------------------------------------------------------------------------------------------

// whole: lanes wait for each other; that they are one warp orders nothing
__global__ void lanes_together(int *out, int whole) {
  CQ_SHARED(int, line, threads);
  line[rank_of()] = rank_of();
  for (int d = 16; d; d /= 2) {
    if (whole) __syncwarp();
    const int sum = line[rank_of()] + line[rank_of() ^ d];
    if (whole) __syncwarp();
    line[rank_of()] = sum;
  }
  out[index_of()] = line[rank_of()];
}

// whole: neither a shuffle nor a ballot orders memory
__global__ void exchange(int *out, int whole) {
  CQ_SHARED(int, line, threads);
  line[rank_of()] = __shfl_xor_sync(0xffffffffu, rank_of(), 1);
  if (whole) __syncwarp();
  const unsigned odd = __ballot_sync(0xffffffffu, rank_of() & 1);
  out[index_of()] = line[rank_of() ^ 2] + (int)odd;
}

// whole: lanes of one half meet, and only those read from each other
__global__ void halves(int *out, int whole) {
  CQ_SHARED(int, line, threads);
  line[rank_of()] = rank_of();
  __syncwarp(rank_of() % 32 < 16 ? 0x0000ffffu : 0xffff0000u);
  out[index_of()] = line[rank_of() ^ (whole ? 1 : 16)];
}

// whole: lanes that met others which met others are behind all of them
__global__ void chain(int *out, int whole) {
  CQ_SHARED(int, word, 3);
  if (rank_of() > 2) return;
  if (rank_of() == 0) word[blockIdx.x % 3] = 1;
  if (rank_of() < 2) __syncwarp(3);
  __ballot_sync(7, 1);
  if (rank_of() > 0 && whole) __syncwarp(6);
  if (rank_of() == 2) out[blockIdx.x] = word[blockIdx.x % 3];
}

// whole: a warp has no say over another one
__global__ void two_warps(int *out, int whole) {
  CQ_SHARED(int, line, threads);
  line[rank_of()] = rank_of();
  __syncwarp();
  out[index_of()] = line[whole ? rank_of() ^ 3 : (rank_of() + 32) % threads];
}

// ---- between blocks -------------------------------------------------------------------------------------------------

// whole: no two blocks write to one place
__global__ void blocks_write(int *out, int whole) {
  if (rank_of() == 0) out[whole ? blockIdx.x : 0] = 1;
}

// whole: no block reads what another one writes
__global__ void blocks_read(int *out, int whole) {
  const int from = whole ? (int)blockIdx.x : ((int)blockIdx.x + 1) % blocks;
  if (rank_of() == 0) out[count + blockIdx.x] = out[from];
  if (rank_of() == 40) out[threads + blockIdx.x] = 1;
  __syncthreads();
  if (rank_of() == 80) out[blockIdx.x] = 1;
}

// whole: a barrier parts the threads of the one block that reads and writes; other blocks look elsewhere
__global__ void barriers_of_blocks(int *out, int whole) {
  if (blockIdx.x == 1 || !whole) out[index_of()] = out[0];
  __syncthreads();
  __syncthreads();
  if (blockIdx.x == 1 && rank_of() == 3) out[0] = 1;
}

// whole: the place is read as a whole and anew
__global__ void most(int *out, int whole) {
  int seen = whole ? load_volatile(out) : *out;
  if (index_of() > seen) atomicMax(out, index_of());
}

// whole: the flag that many set is written as one
__global__ void flag(int *out, int whole) {
  if (rank_of() % 3) return;
  if (whole) store_volatile(out, 1);
  else *out = 1;
}

__global__ void count_up(int *out, int whole) {
  atomicAdd(out, 1);
  if (!whole && index_of() == 100) *out = 0;
}

// ---- all of them ----------------------------------------------------------------------------------------------------

typedef void kernel(int *out, int whole);
#define CQ_CASE(name) {#name, name}
const struct { const char *name; kernel *run;
} cases[] = {
    CQ_CASE(read_after_write),
    CQ_CASE(write_after_read),
    CQ_CASE(write_together),
    CQ_CASE(one_of_many),
    CQ_CASE(bytes),
    CQ_CASE(bytes_of_a_word),
    CQ_CASE(members),
    CQ_CASE(through_the_device),
    CQ_CASE(lanes_together),
    CQ_CASE(exchange),
    CQ_CASE(halves),
    CQ_CASE(chain),
    CQ_CASE(two_warps),
    CQ_CASE(blocks_write),
    CQ_CASE(blocks_read),
    CQ_CASE(barriers_of_blocks),
    CQ_CASE(most),
    CQ_CASE(flag),
    CQ_CASE(count_up),
};

// one launch after another that follows from it; what the machine found
void launch_twice(kernel *run, const char *name, int whole) {
  int *out;
  cudaMalloc(&out, 2 * count * sizeof(int));
  cudaMemset(out, 0, 2 * count * sizeof(int));
  for (int k = 0; k < 2; k++)
    emulation::launch({name, (unsigned)blocks, (unsigned)threads, emulation::company::none, false}, nullptr, run, out,
                      whole);
  const cudaError_t error = cudaDeviceSynchronize();
  CHECK((machine()->faults > 0) == (error == cudaErrorLaunchFailure), "%s: %lld faults, but error %d", name,
        (long long)machine()->faults, error);
  cudaFree(out);
}

}

int main() {
  for (const auto &c : cases)
    for (int order = 0; order < 9; order++)
      for (int whole = 0; whole < 2; whole++) {
        cq_emulation_reset();
        machine()->thread_order = order % 3;
        machine()->block_order = order / 3;
        launch_twice(c.run, c.name, whole);
        if (whole) CHECK(machine()->faults == 0, "%s whole, order %d: %s", c.name, order, machine()->fault);
        else
          CHECK(strstr(machine()->fault, "nothing orders the two") && strstr(machine()->fault, c.name) &&
                    strstr(machine()->fault, "race.cc:"),
                "%s, order %d: no race is told, but \"%s\"", c.name, order, machine()->fault);
      }
  cq_emulation_reset();
  return check_report();
}
