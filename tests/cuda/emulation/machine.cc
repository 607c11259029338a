// machine: settings, errors and properties of the emulated GPU.
#include "machine.h"
#include "block.h"
#include "runtime.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace emulation {

namespace {

cudaError_t last_error = cudaSuccess, lost_error = cudaSuccess;

void set_whole(cq_emulation *m) {
  const cq_emulation before = *m;
  *m = {};
  m->devices = 1;
  m->driver = 13000;
  m->memory = (int64_t)1 << 30;
  m->processors = 2;
  m->cooperative = 1;
  m->seed = 1;
  m->guard = 1;
  m->looks_for_races = before.looks_for_races;
  m->fail_after = -1;
  m->memory_used = m->memory_peak = before.memory_used;
  m->pinned_used = before.pinned_used;
}

// one setting of the environment, "name=value"
void set_one(cq_emulation *m, const char *name, const char *value) {
  const double number = atof(value);
  const struct { const char *name; int32_t *to;
  } integers[] = {
      {"devices", &m->devices},           {"driver", &m->driver},             {"processors", &m->processors},
      {"cooperative", &m->cooperative},   {"thread_order", &m->thread_order}, {"block_order", &m->block_order},
      {"guard", &m->guard},               {"fail_after", &m->fail_after},     {"fail_error", &m->fail_error},
      {"fail_lost", &m->fail_lost},       {"others_after", &m->others_after}};
  for (const auto &i : integers)
    if (!strcmp(i.name, name)) {
      *i.to = (int32_t)number;
      return;
    }
  if (!strcmp(name, "memory")) m->memory = (int64_t)number;
  else if (!strcmp(name, "others")) m->others = (int64_t)number;
  else if (!strcmp(name, "seed")) m->seed = (uint32_t)number;
  else if (!strcmp(name, "fail_call")) snprintf(m->fail_call, sizeof m->fail_call, "%s", value);
  else fault("CQLUA_EMULATION has no setting %s", name);
}

void set_from_environment(cq_emulation *m) {
  const char *all = getenv("CQLUA_EMULATION");
  char name[48], value[48];
  int used = 0;
  for (; all && sscanf(all, " %47[a-z_]=%47[^ ]%n", name, value, &used) == 2; all += used) set_one(m, name, value);
}

// a program that used the machine wrongly does not end well, even if its results were right
void end_badly_after_faults() {
  if (!cq_emulation_machine()->faults) return;
  fflush(stdout);
  _exit(1);
}

cq_emulation *machine() {
  static cq_emulation m;
  static bool made;
  if (!made) {
    made = true;
    set_whole(&m);
    set_from_environment(&m);
    atexit(end_badly_after_faults);
  }
  return &m;
}

struct named_error { cudaError_t error; const char *name, *sentence; };
#define CQ_ERROR(name, sentence) {cudaError##name, "cudaError" #name, sentence}
const named_error errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    CQ_ERROR(InvalidValue, "invalid argument"),
    CQ_ERROR(MemoryAllocation, "out of memory"),
    CQ_ERROR(InitializationError, "initialization error"),
    CQ_ERROR(InvalidConfiguration, "invalid configuration argument"),
    CQ_ERROR(InvalidDevicePointer, "invalid device pointer"),
    CQ_ERROR(InvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CQ_ERROR(InsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    CQ_ERROR(CallRequiresNewerDriver, "API call is not supported in the installed CUDA driver"),
    CQ_ERROR(DevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    CQ_ERROR(InvalidDeviceFunction, "invalid device function"),
    CQ_ERROR(NoDevice, "no CUDA-capable device is detected"),
    CQ_ERROR(InvalidDevice, "invalid device ordinal"),
    CQ_ERROR(NoKernelImageForDevice, "no kernel image is available for execution on the device"),
    CQ_ERROR(ECCUncorrectable, "uncorrectable ECC error encountered"),
    CQ_ERROR(UnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain."),
    CQ_ERROR(OperatingSystem, "OS call failed or operation not supported on this OS"),
    CQ_ERROR(InvalidResourceHandle, "invalid resource handle"),
    CQ_ERROR(NotReady, "device not ready"),
    CQ_ERROR(IllegalAddress, "an illegal memory access was encountered"),
    CQ_ERROR(LaunchOutOfResources, "too many resources requested for launch"),
    CQ_ERROR(LaunchTimeout, "the launch timed out and was terminated"),
    CQ_ERROR(LaunchFailure, "unspecified launch failure"),
    CQ_ERROR(CooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    CQ_ERROR(NotSupported, "operation not supported"),
    CQ_ERROR(SystemNotReady, "system not yet initialized"),
    CQ_ERROR(SystemDriverMismatch, "system has unsupported display driver / cuda driver combination"),
    CQ_ERROR(CompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW"),
    CQ_ERROR(MpsMaxClientsReached, "the hardware resources required to support another MPS client have been exhausted"),
    CQ_ERROR(StreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    CQ_ERROR(StreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    CQ_ERROR(StreamCaptureUnmatched, "capture was not initiated in this stream"),
    CQ_ERROR(StreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"),
    CQ_ERROR(Unknown, "unknown error"),
};

const named_error *find_error(cudaError_t error) {
  for (const named_error &e : errors)
    if (e.error == error) return &e;
  return nullptr;
}

}

void fault(const char *format, ...) {
  cq_emulation *m = machine();
  char sentence[sizeof m->fault];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  if (!m->faults++) memcpy(m->fault, sentence, sizeof sentence);
  fprintf(stderr, "emulation: %s\n", sentence);
}

// A NaN as float and double, a large index as an integer and no address: what uses it shows.
void fill_poison(void *memory, size_t bytes) {
  static const uint32_t pattern = 0x7FF5A5A5;
  char *to = (char *)memory;
  size_t k = 0;
  for (; k + sizeof pattern <= bytes; k += sizeof pattern) memcpy(to + k, &pattern, sizeof pattern);
  memcpy(to + k, &pattern, bytes - k);
}

cudaError_t keep(cudaError_t error) {
  if (error) last_error = error;
  return error;
}

void lose(cudaError_t error) {
  if (!lost_error) lost_error = error;
  last_error = lost_error;
}

bool is_lost() { return lost_error != cudaSuccess; }

cudaError_t call(const char *name) {
  cq_emulation *m = machine();
  m->calls++;
  if (lost_error) return keep(lost_error);
  const bool works = !strcmp(name, "launch") || !strcmp(name, "kernel");
  const bool matches = m->fail_call[0] ? !strcmp(m->fail_call, name) : !works;
  if (m->fail_after >= 0 && matches && m->fail_after-- == 0) {
    m->launches_before = m->launches;
    if (m->fail_lost) lose((cudaError_t)m->fail_error);
    return keep((cudaError_t)m->fail_error);
  }
  const bool asks = !strcmp(name, "cudaDriverGetVersion") || !strcmp(name, "cudaRuntimeGetVersion");
  if (!asks && m->driver < 13000) return keep(cudaErrorInsufficientDriver);
  if (!asks && m->devices < 1) return keep(cudaErrorNoDevice);
  return cudaSuccess;
}

cudaError_t function_call(const char *name) { return call(name); }
int blocks_of(int threads) { return threads > 512 ? 1 : threads > 256 ? 2 : threads > 192 ? 3 : 4; }

// ---- blocks that are on the machine together ------------------------------------------------------------------------

cudaError_t find_company(const cudaLaunchConfig_t *config, company *with) {
  const unsigned blocks = config->gridDim.x, threads = config->blockDim.x;
  *with = company::none;
  for (unsigned k = 0; k < config->numAttrs; k++) {
    const cudaLaunchAttribute &a = config->attrs[k];
    if (a.id == cudaLaunchAttributeCooperative && a.val.cooperative) {
      *with = company::grid;
      if (!machine()->cooperative) return keep(cudaErrorNotSupported);
      if ((int)blocks > blocks_of((int)threads) * machine()->processors)
        return keep(cudaErrorCooperativeLaunchTooLarge);
    }
  }
  return cudaSuccess;
}

}

using namespace emulation;

extern "C" __attribute__((visibility("default"))) cq_emulation *cq_emulation_machine(void) { return machine(); }

extern "C" __attribute__((visibility("default"))) void cq_emulation_reset(void) {
  set_whole(machine());
  last_error = lost_error = cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error) {
  const named_error *e = find_error(error);
  return e ? e->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  const named_error *e = find_error(error);
  return e ? e->sentence : "unrecognized error code";
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  last_error = lost_error;
  return error;
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = machine()->driver;
  return call("cudaDriverGetVersion");
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = 13000;
  return call("cudaRuntimeGetVersion");
}

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  const cudaError_t error = call("cudaGetDeviceCount");
  if (!error) *count = machine()->devices;
  return error;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device) {
  const cudaError_t error = call("cudaGetDeviceProperties");
  if (error) return error;
  if (device < 0 || device >= machine()->devices) return keep(cudaErrorInvalidDevice);
  *p = {};
  snprintf(p->name, sizeof p->name, "Emulated GPU");
  p->totalGlobalMem = (size_t)machine()->memory;
  p->sharedMemPerBlock = shared_max;
  p->sharedMemPerBlockOptin = p->sharedMemPerMultiprocessor = 64 << 10;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = p->maxThreadsPerMultiProcessor = threads_max;
  p->maxBlocksPerMultiProcessor = 16;
  p->major = 7;
  p->minor = 5;
  p->multiProcessorCount = machine()->processors;
  p->l2CacheSize = 1 << 20;
  p->concurrentKernels = p->unifiedAddressing = 1;
  p->cooperativeLaunch = machine()->cooperative;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const cudaError_t error = call("cudaSetDevice");
  return error ? error : keep(device >= 0 && device < machine()->devices ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return call("cudaGetDevice");
}

cudaError_t cudaSetDeviceFlags(unsigned) { return call("cudaSetDeviceFlags"); }
