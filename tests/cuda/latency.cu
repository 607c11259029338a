// latency: what a GPU takes for the small things that a step is made of, in microseconds: launches, barriers of blocks,
// short copies, waiting of the host. For the rule that chooses how a run goes over the GPU (resident_blocks in
// cuda/run.cu), and for what a sorting costs.
// Only for a real GPU.       make gpu-check ONLY=latency
#include "../../cuda/launch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 256, MANY = 200, GRAPH = 64, BYTES = 65536 };

static cudaStream_t stream;
static int *words;           // of the device: one of each thread, then the counter of the grid's barrier
static int *pinned;
static unsigned *arrived;

static void must(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  printf("latency: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static __global__ void nothing(int *word) {
  if (!word) __syncthreads();
}

// each thread leaves a word for another block before a barrier, and reads one after it
static __global__ void meet(int *word, unsigned *arrived, int count) {
  const unsigned all = gridDim.x * THREADS, mine = blockIdx.x * THREADS + threadIdx.x;
  int sum = 0;
  for (int k = 0; k < count; k++) {
    word[mine] = k + sum;
    cq_sync_grid(arrived);
    sum += word[(mine + THREADS * (k % 3 + 1)) % all] & 1;
  }
  word[mine] = sum;
}

// ---- what is timed --------------------------------------------------------------------------------------------------

static void launches(int count, int blocks) {
  for (int k = 0; k < count; k++) CQ_LAUNCH(nothing, blocks, THREADS, stream, words);
}
static void memsets(int count, int bytes) {
  for (int k = 0; k < count; k++) must(cudaMemsetAsync(words, 0, (size_t)bytes, stream), "clearing");
}
static void copies(int count, int bytes) {
  for (int k = 0; k < count; k++) {
    must(cudaMemcpyAsync(words, pinned, (size_t)bytes, cudaMemcpyHostToDevice, stream), "copying");
    CQ_LAUNCH(nothing, 1, THREADS, stream, words);
  }
}
static void looks(int count, int bytes) {
  for (int k = 0; k < count; k++) {
    CQ_LAUNCH(nothing, 1, THREADS, stream, words);
    must(cudaMemcpyAsync(pinned, words, (size_t)bytes, cudaMemcpyDeviceToHost, stream), "copying");
    must(cudaStreamSynchronize(stream), "waiting");
  }
}
static void together(int blocks, int count) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3(THREADS);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  must(cudaLaunchKernelEx(&config, meet, words, arrived, count), "a launch of blocks that meet");
}
static void grids(int count, int blocks) {
  for (int k = 0; k < count; k++) together(blocks, 0);
}
static void grid_barriers(int count, int blocks) { together(blocks, count); }

static cudaGraphExec_t graph;
static void graphs(int count, int blocks) {
  cudaGraph_t recorded;
  if (!graph) {
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
    launches(GRAPH, blocks);
    must(cudaStreamEndCapture(stream, &recorded), "recording");
    must(cudaGraphInstantiate(&graph, recorded, 0), "recording");
  }
  for (int k = 0; k < count / GRAPH; k++) must(cudaGraphLaunch(graph, stream), "a graph");
}

// the best of some tries, for each of `count` things; size: blocks or bytes
static void time_of(const char *name, void (*things)(int, int), int count, int size) {
  double best = 1e30;
  for (int k = 0; k < 6; k++) {
    must(cudaStreamSynchronize(stream), name);
    const double start = now();
    things(count, size);
    must(cudaGetLastError(), name);
    must(cudaStreamSynchronize(stream), name);
    if (k && now() - start < best) best = now() - start;
  }
  printf("%-52s %6d  %8.2f\n", name, size, best / count);
  fflush(stdout);
}

int main(void) {
  cudaDeviceProp gpu;
  must(cudaGetDeviceProperties(&gpu, 0), "looking for a GPU");
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "opening the GPU");
  const int most = 2 * gpu.multiProcessorCount;
  const size_t bytes = BYTES + (size_t)most * THREADS * sizeof *words;
  must(cudaMalloc((void **)&words, bytes + sizeof *arrived), "memory");
  must(cudaMallocHost((void **)&pinned, BYTES), "memory");
  memset(pinned, 0, BYTES);
  must(cudaMemsetAsync(words, 0, bytes + sizeof *arrived, stream), "clearing");
  arrived = (unsigned *)((char *)words + bytes);
  printf("%s, microseconds for each, at best\n", gpu.name);
  time_of("a kernel after another, blocks", launches, MANY, 1);
  time_of("a kernel after another, blocks", launches, MANY, most);
  time_of("a kernel after another in a graph, blocks", graphs, 4 * GRAPH, most);
  time_of("clearing, bytes", memsets, MANY, 4096);
  time_of("copy to the GPU and a kernel, bytes", copies, MANY, 4096);
  time_of("copy to the GPU and a kernel, bytes", copies, MANY, BYTES);
  time_of("kernel, copy to the host and wait, bytes", looks, MANY, 12);
  const int sizes[] = {1, 8, 16, 32, 64, most / 2, most};
  for (size_t k = 0; gpu.cooperativeLaunch && k < sizeof sizes / sizeof *sizes; k++) {
    time_of("a cooperative launch, blocks", grids, MANY, sizes[k]);
    time_of("barrier of a cooperative grid, blocks", grid_barriers, 4 * MANY, sizes[k]);
  }
  return 0;
}
