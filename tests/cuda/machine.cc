// The emulated GPU itself: threads and their barriers, memory, streams, graphs, and failures that are asked for.
#include "emulation/cuda_runtime.h"
#include "emulation/machine.h"
#include "../c/check.h"
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

// whether an atomic sum of T can be written at all
template <class T, class = void> struct has_atomic { static constexpr bool value = false; };
template <class T> struct has_atomic<T, std::void_t<decltype(atomicAdd((T *)nullptr, T()))>> {
  static constexpr bool value = true;
};
static_assert(has_atomic<int>::value && has_atomic<unsigned>::value && has_atomic<unsigned long long>::value,
              "integers can be added");
static_assert(!has_atomic<float>::value && !has_atomic<double>::value, "sums of floats would depend on the order");

cq_emulation *machine() { return cq_emulation_machine(); }

constexpr int blocks = 3, threads = 96, count = blocks * threads;

// memory of the device for the numbers of a test
template <class T> struct device_array {
  T *data;
  explicit device_array(size_t n) : data(nullptr) { cudaMalloc(&data, n * sizeof(T)); }
  ~device_array() { cudaFree(data); }
  std::vector<T> read(size_t n) const {
    std::vector<T> out(n);
    cudaMemcpy(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost);
    return out;
  }
};

// one launch in every order of threads and blocks; what it wrote
template <class K> std::vector<std::vector<int>> in_all_orders(K kernel) {
  std::vector<std::vector<int>> out;
  for (int order = CQ_EMULATION_FORWARD; order <= CQ_EMULATION_RANDOM; order++) {
    cq_emulation_reset();
    machine()->thread_order = machine()->block_order = order;
    device_array<int> a(count);
    cudaMemset(a.data, 0, count * sizeof(int));
    CQ_START(kernel, blocks, threads, nullptr, a.data);
    out.push_back(a.read(count));
  }
  return out;
}

// ---- threads of a block ---------------------------------------------------------------------------------------------

__global__ void turn_round(int *out) {
  CQ_SHARED(int, line, threads);
  line[threadIdx.x] = (int)threadIdx.x;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = line[threads - 1 - threadIdx.x] + 1000 * (int)blockIdx.x;
}

__global__ void turn_round_unsafely(int *out) {
  CQ_SHARED(int, line, threads);
  line[threadIdx.x] = (int)threadIdx.x;
  out[blockIdx.x * blockDim.x + threadIdx.x] = line[threads - 1 - threadIdx.x] + 1000 * (int)blockIdx.x;
}

__global__ void count_arrivals(int *out) {
  CQ_SHARED(int, arrived, 1);
  if (threadIdx.x == 0) arrived[0] = 0;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&arrived[0], 1);
}

void check_block() {
  for (const auto &a : in_all_orders(turn_round)) {
    int wrong = 0;
    for (int i = 0; i < count; i++) wrong += a[(size_t)i] != threads - 1 - i % threads + 1000 * (i / threads);
    CHECK(wrong == 0, "%d of %d threads read what another one had not written", wrong, count);
  }
  CHECK(machine()->faults == 0, "%s", machine()->fault);
  const auto unsafe = in_all_orders(turn_round_unsafely), arrivals = in_all_orders(count_arrivals);
  CHECK(unsafe[0] != unsafe[1], "a missing barrier shows in none of two orders");
  CHECK(arrivals[0][0] == 0 && arrivals[1][0] == threads - 1,
        "forward the first thread is number %d, backward number %d", arrivals[0][0], arrivals[1][0]);
  CHECK(arrivals[2] != arrivals[0] && arrivals[2] != arrivals[1], "the random order is one of the others");
  CHECK(arrivals[2] == in_all_orders(count_arrivals)[2], "one seed gives two orders");
}

__global__ void wait_in_vain(int *out, int how) {
  const int half = threadIdx.x < threads / 2;
  if (how == 0 && half) return;
  if (how == 1 && half) __syncthreads();
  if (how == 2) { if (half) __syncthreads(); else __syncwarp(); }
  if (how == 3 && threadIdx.x == 0) __shfl_sync(0xffffffffu, 1, 0);
  if (how == 4) __shfl_sync(threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u, 1, 3);
  if (how == 5) __syncwarp(1u << (threadIdx.x + 1) % 32);
  if (how == 6) { if (threadIdx.x % 2) __syncwarp(); else __ballot_sync(0xffffffffu, 1); }
  __syncthreads();
  *out = how;
}

#if !defined(__SANITIZE_ADDRESS__)   // which ends the process
__global__ void go_astray(int *out) {
  out[threadIdx.x] = *(volatile int *)(uintptr_t)(threadIdx.x == 5 ? 64 : (uintptr_t)out);
}
#endif

__global__ void share_too_much(int *out) {
  CQ_SHARED(double, large, 7000);
  large[0] = 0;
  *out = (int)large[0];
}

void check_divergence() {
  static const char *const words[] = {"48 of 96 threads have returned",
                                      "thread 0 is at the barrier",
                                      "wait for their block",
                                      "wait for their warp",
                                      "which the mask 0000ffff leaves out",
                                      "leaves out the lane itself",
                                      "with mask"};
  for (int how = 0; how < 7; how++)
    for (int order = CQ_EMULATION_FORWARD; order <= CQ_EMULATION_RANDOM; order++) {
      cq_emulation_reset();
      machine()->thread_order = order;
      device_array<int> out(1);
      CQ_START(wait_in_vain, 1, threads, nullptr, out.data, how);
      const cudaError_t error = cudaDeviceSynchronize();
      const bool told = strstr(machine()->fault, words[how]) || (how == 4 && strstr(machine()->fault, "leaves out"));
      CHECK(error == cudaErrorLaunchFailure && machine()->faults == 1 && told,
            "%d: error %d, %lld faults, \"%s\" (\"%s\" wanted)", how, error, (long long)machine()->faults,
            machine()->fault, words[how]);
    }
  cq_emulation_reset();
  device_array<int> out(1);
  CQ_START(share_too_much, 1, 32, nullptr, out.data);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure && strstr(machine()->fault, "56000 bytes"), "\"%s\"",
        machine()->fault);
#if !defined(__SANITIZE_ADDRESS__)
  cq_emulation_reset();
  device_array<int> some(32);
  CQ_START(go_astray, 1, 32, nullptr, some.data);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure && strstr(machine()->fault, "thread 5: the address 0x40"),
        "\"%s\"", machine()->fault);
#endif
  CHECK(in_all_orders(turn_round)[0][0] == threads - 1, "nothing runs after a fault");
}

__global__ void talk(int *out) {
  const int lane = (int)threadIdx.x % 32, i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int sum = lane, fine = 1;
  for (int bit = 16; bit; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
  fine &= sum == 31 * 32 / 2;
  fine &= __shfl_up_sync(0xffffffffu, lane, 3) == (lane < 3 ? lane : lane - 3);
  fine &= __shfl_down_sync(0xffffffffu, lane, 3) == (lane > 28 ? lane : lane + 3);
  fine &= __shfl_sync(0xffffffffu, lane, 5, 8) == lane / 8 * 8 + 5;
  fine &= __shfl_sync(0xffffffffu, 0.5 * lane, 7) == 3.5;
  fine &= __ballot_sync(0xffffffffu, lane % 2) == 0xaaaaaaaau;
  fine &= __any_sync(0xffffffffu, lane == 9) && !__any_sync(0xffffffffu, lane == 32);
  fine &= __all_sync(0xffffffffu, lane < 32) && !__all_sync(0xffffffffu, lane != 9);
  if (lane < 16) fine &= __shfl_sync(0x0000ffffu, lane, 15) == 15;   // half of a warp, while the others go on
  else fine &= __ballot_sync(0xffff0000u, 1) == 0xffff0000u;
  __syncwarp();
  out[i] = fine;
}

void check_warps() {
  for (const auto &a : in_all_orders(talk)) {
    int fine = 0;
    for (const int f : a) fine += f;
    CHECK(fine == count && machine()->faults == 0, "%d of %d threads heard what was said; %s", fine, count,
          machine()->fault);
  }
}

__global__ void integers(int *out) {
  int a = 5;
  unsigned b = 7;
  unsigned long long c = 0;
  int fine = atomicAdd(&a, 2) == 5 && a == 7;
  fine &= atomicMin(&a, 3) == 7 && a == 3 && atomicMax(&a, 9) == 3 && a == 9;
  fine &= atomicCAS(&b, 7u, 8u) == 7 && b == 8 && atomicCAS(&b, 7u, 9u) == 8 && b == 8;
  fine &= atomicExch(&b, 1u) == 8 && b == 1;
  fine &= atomicAdd(&c, 1ull << 40) == 0 && c == 1ull << 40;
  fine &= __float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x3f800000) == 1.0f && __ffs(8) == 4 && __popc(255) == 8;
  fine &= min(2, 3) == 2 && max(2.5f, 1.0f) == 2.5f && gridDim.x == blocks && warpSize == 32;
  out[blockIdx.x * blockDim.x + threadIdx.x] = fine;
}

// ---- blocks that wait for each other --------------------------------------------------------------------------------

// each block reads what the one before it wrote, of as many rounds; how: 1 without the barrier that keeps the next
// round away, 2 without that which waits for this one, 3 a block leaves, 4 a thread leaves, 5 two places
__global__ void pass_on(int *out, int how) {
  CQ_SHARED(int, mine, 1);
  const int last = (int)gridDim.x - 1, before = blockIdx.x ? (int)blockIdx.x - 1 : last;
  if (threadIdx.x == 0) mine[0] = (int)blockIdx.x;
  for (int round = 0; round < 3; round++) {
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = mine[0];
    if (how == 3 && (int)blockIdx.x == last) return;
    if (how == 4 && threadIdx.x == 7) return;
    if (how == 5 && blockIdx.x) cq_sync_grid(nullptr);
    else if (how != 2) cq_sync_grid(nullptr);
    if (threadIdx.x == 0) mine[0] = out[before] + 1;
    if (how != 1) cq_sync_grid(nullptr);
  }
}

cudaError_t launch_together(int all, int *out, int how) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  const cudaLaunchConfig_t config = {dim3((unsigned)all), dim3(threads), 0, nullptr, &together, 1};
  return cudaLaunchKernelEx(&config, pass_on, out, how);
}

void check_together() {
  int shown[3] = {};
  for (int how = 0; how < 3; how++)
    for (int order = CQ_EMULATION_FORWARD; order <= CQ_EMULATION_RANDOM; order++) {
      cq_emulation_reset();
      machine()->thread_order = machine()->block_order = order;
      device_array<int> out(7);
      cudaMemset(out.data, 0, 7 * sizeof(int));
      CHECK(launch_together(7, out.data, how) == cudaSuccess, "seven blocks are not launched");
      // what a block wrote in the third round began two blocks before, where it gained one for each
      int wrong = 0;
      for (int b = 0; b < 7; b++) wrong += out.read(7)[(size_t)b] != (b + 5) % 7 + 2;
      shown[how] += wrong > 0;
      CHECK(how || (!wrong && machine()->faults == 0), "order %d: %d of 7 blocks read what was not there; %s", order,
            wrong, machine()->fault);
    }
  CHECK(shown[1] && shown[2], "a missing barrier shows in %d and %d of 3 orders", shown[1], shown[2]);
}

void check_together_faults() {
  static const char *const words[] = {"1 of 7 blocks have returned", "1 of 96 threads have returned",
                                      "block 0 waits for its launch at"};
  for (int how = 3; how < 6; how++)
    for (int order = CQ_EMULATION_FORWARD; order <= CQ_EMULATION_RANDOM; order++) {
      cq_emulation_reset();
      machine()->thread_order = machine()->block_order = order;
      device_array<int> out(7);
      launch_together(7, out.data, how);
      CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure && machine()->faults == 1 &&
                strstr(machine()->fault, words[how - 3]),
            "%d: %lld faults, \"%s\" (\"%s\" wanted)", how, (long long)machine()->faults, machine()->fault,
            words[how - 3]);
    }
  cq_emulation_reset();
  device_array<int> out(16);
  CQ_START(pass_on, 1, threads, nullptr, out.data, 0);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure && strstr(machine()->fault, "were not launched as"), "\"%s\"",
        machine()->fault);
  cq_emulation_reset();
  CHECK(launch_together(9, out.data, 0) == cudaErrorCooperativeLaunchTooLarge, "more blocks than there is room for");
  machine()->processors = 4;
  CHECK(launch_together(9, out.data, 0) == cudaSuccess, "as many as there is room for");
  machine()->cooperative = 0;
  CHECK(launch_together(4, out.data, 0) == cudaErrorNotSupported, "a cooperative launch on an old machine");
}

// ---- memory ---------------------------------------------------------------------------------------------------------

__global__ void read_poison(int *out) {
  CQ_SHARED(float, floats, 4);
  CQ_SHARED(double, doubles, 4);
  out[threadIdx.x] = isnan(floats[threadIdx.x]) && isnan(doubles[threadIdx.x]);
  __syncthreads();
  floats[threadIdx.x] = 0;   // gone in the next block
  doubles[threadIdx.x] = 0;
}

struct followed { const int *here; int32_t other; };

// what kills a child that runs it, 0: nothing
template <class F> int killed_by(F act) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void check_memory() {
  cq_emulation_reset();
  const int64_t before = machine()->memory_used;
  {
    device_array<double> a(100);
    for (const double x : a.read(100)) CHECK(std::isnan(x), "new memory holds %g", x);
    device_array<int> out(4);
    CQ_START(read_poison, 2, 4, nullptr, out.data);
    CHECK(out.read(4) == std::vector<int>(4, 1), "shared memory is not poisoned for each block");
    CHECK(machine()->memory_used > before, "memory in use is not counted");

    double host[100] = {};
    CHECK(cudaMemcpy(a.data + 1, host, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue &&
              strstr(machine()->fault, "reaches beyond"),
          "\"%s\"", machine()->fault);
    cq_emulation_reset();
    CHECK(cudaMemcpy(host, host + 50, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue &&
              strstr(machine()->fault, "is not memory of the device"),
          "\"%s\"", machine()->fault);
    cq_emulation_reset();
    CHECK(cudaMemcpy(host, a.data, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue && machine()->faults,
          "a copy in the wrong direction");
    cq_emulation_reset();
    const int here = 1;
    const followed wrong = {&here, 0}, right = {out.data, 0}, empty = {out.data + 4, 0};   // nothing of it, and its end
    cudaMemcpy(a.data, &right, sizeof right, cudaMemcpyHostToDevice);
    cudaMemcpy(a.data, &empty, sizeof empty, cudaMemcpyHostToDevice);
    CHECK(machine()->faults == 0, "%s", machine()->fault);
    cudaMemcpy(a.data, &wrong, sizeof wrong, cudaMemcpyHostToDevice);
    CHECK(machine()->faults == 1 && strstr(machine()->fault, "begins an address of the host"), "\"%s\"",
          machine()->fault);
    cq_emulation_reset();
    float table[6] = {1, 2, 3, 4, 5, 6};
    CHECK(cudaMemcpy2DAsync(a.data, 32, table, 12, 8, 2, cudaMemcpyHostToDevice) == cudaSuccess, "rows are not copied");
    const auto rows = a.read(5);
    float pair[2];
    memcpy(pair, &rows[4], 8);
    CHECK(pair[0] == 4 && pair[1] == 5, "the second row is %g %g", pair[0], pair[1]);
#if !defined(__SANITIZE_ADDRESS__)
    CHECK(killed_by([&] { *(volatile double *)a.data = 1; }) == SIGSEGV, "the host writes to memory of the device");
#endif
    machine()->memory = machine()->memory_used + 1000;
    void *more = nullptr;
    CHECK(cudaMalloc(&more, 2000) == cudaErrorMemoryAllocation && !more, "more memory than there is");
    size_t available = 0, total = 0;
    CHECK(cudaMemGetInfo(&available, &total) == cudaSuccess && available == 1000 && (int64_t)total == machine()->memory,
          "%zu of %zu bytes", available, total);
  }
  CHECK(machine()->memory_used == before, "%lld bytes are left", (long long)(machine()->memory_used - before));
}

// ---- streams and graphs ---------------------------------------------------------------------------------------------

__global__ void add(int *to, const int *what) {
  if (threadIdx.x == 0) *to += *what;
}

void check_streams() {
  cq_emulation_reset();
  device_array<int> sum(1), what(1);
  int *pinned = nullptr, one = 1;
  cudaMallocHost(&pinned, sizeof(int));
  cudaStream_t first, second;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaMemset(sum.data, 0, sizeof(int));
  cudaMemcpy(what.data, &one, sizeof(int), cudaMemcpyHostToDevice);
  *pinned = -1;
  CQ_START(add, 1, 32, first, sum.data, what.data);
  cudaMemcpyAsync(pinned, sum.data, sizeof(int), cudaMemcpyDeviceToHost, first);
  CHECK(*pinned == -1 && cudaStreamQuery(first) == cudaErrorNotReady, "work is done before anybody waits: %d", *pinned);
  cudaStreamSynchronize(first);
  CHECK(*pinned == 1 && cudaStreamQuery(first) == cudaSuccess, "the sum is %d", *pinned);

  cudaMemcpyAsync(what.data, pinned, sizeof(int), cudaMemcpyHostToDevice, first);
  cudaStreamSynchronize(first);
  CHECK(machine()->faults == 0, "%s", machine()->fault);
  cudaMemcpyAsync(what.data, pinned, sizeof(int), cudaMemcpyHostToDevice, first);
  *pinned = 7;
  cudaStreamSynchronize(first);
  CHECK(machine()->faults == 1 && strstr(machine()->fault, "before the copy was made"),
        "a source that changes under way: \"%s\"", machine()->fault);
  cq_emulation_reset();
  cudaMemcpy(what.data, &one, sizeof(int), cudaMemcpyHostToDevice);

  cudaEvent_t event, later;
  cudaEventCreate(&event);
  cudaEventCreateWithFlags(&later, cudaEventDefault);
  CQ_START(add, 1, 32, first, sum.data, what.data);
  cudaEventRecord(event, first);
  cudaMemcpyAsync(pinned, sum.data, sizeof(int), cudaMemcpyDeviceToHost, second);
  cudaStreamSynchronize(second);
  CHECK(*pinned == 1, "a stream waited for another one that it was not told of");
  cudaStreamWaitEvent(second, event);
  cudaMemcpyAsync(pinned, sum.data, sizeof(int), cudaMemcpyDeviceToHost, second);
  cudaEventRecord(later, second);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, event, later) == cudaErrorNotReady,
        "time between events that have not happened");
  cudaGetLastError();
  cudaEventSynchronize(later);
  CHECK(*pinned == 2 && cudaEventElapsedTime(&milliseconds, event, later) == cudaSuccess && milliseconds >= 0,
        "%d after %g ms", *pinned, milliseconds);

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal);
  for (int k = 0; k < 3; k++) CQ_START(add, 1, 32, first, sum.data, what.data);
  CHECK(cudaStreamSynchronize(first) == cudaErrorStreamCaptureUnsupported,
        "a stream that is captured can be waited for");
  void *memory;
  CHECK(cudaMalloc(&memory, 16) == cudaErrorStreamCaptureUnsupported, "memory is taken during a capture");
  cudaStreamEndCapture(first, &graph);
  cudaGetLastError();
  cudaGraphInstantiate(&exec, graph);
  cudaGraphDestroy(graph);
  cudaStreamSynchronize(first);
  CHECK(sum.read(1)[0] == 2, "what was captured ran at once: %d", sum.read(1)[0]);
  int ten = 10;
  cudaMemcpy(what.data, &ten, sizeof(int), cudaMemcpyHostToDevice);   // a graph reads memory when it runs
  cudaGraphLaunch(exec, first);
  cudaGraphLaunch(exec, first);
  cudaStreamSynchronize(first);
  CHECK(sum.read(1)[0] == 62, "two runs of the graph make %d of 2", sum.read(1)[0]);
  cudaGraphExecDestroy(exec);
  cudaEventDestroy(event);
  cudaEventDestroy(later);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaFreeHost(pinned);
  CHECK(machine()->faults == 0 && machine()->pinned_used == 0, "%s", machine()->fault);
}

// ---- failures -------------------------------------------------------------------------------------------------------

void check_failures() {
  cq_emulation_reset();
  device_array<int> a(1);
  int number = 0;
  void *memory = nullptr;
  snprintf(machine()->fail_call, sizeof machine()->fail_call, "cudaMalloc");
  machine()->fail_after = 1;
  machine()->fail_error = cudaErrorMemoryAllocation;
  CHECK(cudaMalloc(&memory, 8) == cudaSuccess && cudaFree(memory) == cudaSuccess, "the first call fails too");
  CHECK(cudaMalloc(&memory, 8) == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation,
        "the second one does not");
  CHECK(cudaMalloc(&memory, 8) == cudaSuccess && cudaGetLastError() == cudaSuccess && cudaFree(memory) == cudaSuccess,
        "nor does it recover");

  cq_emulation_reset();
  snprintf(machine()->fail_call, sizeof machine()->fail_call, "kernel");
  machine()->fail_after = 0;
  machine()->fail_error = cudaErrorIllegalAddress;
  CQ_START(add, 1, 32, nullptr, a.data, a.data);
  CHECK(cudaGetLastError() == cudaSuccess, "a kernel fails before it runs");
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress && cudaDeviceSynchronize() == cudaErrorIllegalAddress,
        "it does not when it runs");
  CHECK(cudaMemcpy(&number, a.data, 4, cudaMemcpyDeviceToHost) == cudaErrorIllegalAddress &&
            cudaGetLastError() == cudaErrorIllegalAddress,
        "a device that is lost works again");

  cq_emulation_reset();
  machine()->devices = 0;
  CHECK(cudaGetDeviceCount(&number) == cudaErrorNoDevice && number == 0, "no device, but %d", number);
  cq_emulation_reset();
  machine()->driver = 11040;
  CHECK(cudaGetDeviceCount(&number) == cudaErrorInsufficientDriver && cudaDriverGetVersion(&number) == cudaSuccess &&
            number == 11040,
        "the driver is of %d", number);
  cq_emulation_reset();
  CHECK(strstr(cudaGetErrorString(cudaErrorDevicesUnavailable), "busy") &&
            !strcmp(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice"),
        "errors have other names");
}

}

int main() {
  check_block();
  check_divergence();
  check_warps();
  check_together();
  check_together_faults();
  CHECK(in_all_orders(integers)[0] == std::vector<int>(count, 1), "atomics or bits are wrong");
  check_memory();
  check_streams();
  check_failures();
  return check_report();
}
