// kernel: what a CUDA kernel may use, on the host. The threads of a block are fibers that take turns at barriers. There
// is no atomic operation on floating point here: results would depend on the order of threads.
#ifndef CQ_EMULATION_KERNEL_H
#define CQ_EMULATION_KERNEL_H

#include <math.h>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct float3 { float x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulation {

enum class meeting { sync, shuffle, ballot };

// how the blocks of a launch are on the machine: one after another, or all together as a cooperative grid
enum class company { none, grid };

// All threads of all blocks come to one place of the source.
void meet_all(company with, const char *file, int line);
// All threads of the block, or the lanes of a warp that the mask names, come to one place of the source. exchange:
// value is what this lane gives; it gets that of the lane source, or for a ballot the bits of all.
void meet_block(const char *file, int line);
uint64_t meet_warp(meeting kind, unsigned mask, uint64_t value, int source, const char *file, int line);
int lane();
// Memory that the threads of a block share: the same for one site, made and filled with poison for each block anew.
void *shared(const void *site, size_t bytes, const char *name);

template <class T> T shuffle(unsigned mask, T value, int source, const char *file, int line) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable<T>::value,
                "up to 8 plain bytes can be shuffled");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = meet_warp(meeting::shuffle, mask, bits, source, file, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}

// ---- barriers and shuffles; file and line are where they stand in the source ----------------------------------------

#define CQ_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CQ_HERE) { emulation::meet_block(file, line); }
inline void __syncwarp(unsigned mask = 0xffffffff, CQ_HERE) {
  emulation::meet_warp(emulation::meeting::sync, mask, 0, 0, file, line);
}

// of cuda/launch.h
inline void cq_sync_grid(unsigned *, CQ_HERE) { emulation::meet_all(emulation::company::grid, file, line); }

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, CQ_HERE) {
  const int lane = emulation::lane();
  return emulation::shuffle(mask, value, (lane & -width) + (source & (width - 1)), file, line);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CQ_HERE) {
  const int lane = emulation::lane(), source = lane - (int)delta;
  return emulation::shuffle(mask, value, source >= (lane & -width) ? source : lane, file, line);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CQ_HERE) {
  const int lane = emulation::lane(), source = lane + (int)delta;
  return emulation::shuffle(mask, value, source < (lane & -width) + width ? source : lane, file, line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CQ_HERE) {
  const int lane = emulation::lane(), source = lane ^ bits;
  return emulation::shuffle(mask, value, source < (lane & -width) + width ? source : lane, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CQ_HERE) {
  return (unsigned)emulation::meet_warp(emulation::meeting::ballot, mask, predicate != 0, 0, file, line);
}
inline int __any_sync(unsigned mask, int predicate, CQ_HERE) { return __ballot_sync(mask, predicate, file, line) != 0; }
inline int __all_sync(unsigned mask, int predicate, CQ_HERE) {
  return __ballot_sync(mask, predicate, file, line) == mask;
}
inline int __syncthreads_or(int, CQ_HERE) = delete;   // not here: use a ballot and shared memory
#undef CQ_HERE

inline void __threadfence() {}
inline void __threadfence_block() {}

// ---- atomics on integers --------------------------------------------------------------------------------------------

// relaxed, as on the device: they order nothing else; two steps, for threads take turns only at barriers
#define CQ_ATOMIC(name, type, result)                        \
  inline type name(type *to, type value) {                   \
    const type old = __atomic_load_n(to, __ATOMIC_RELAXED);  \
    __atomic_store_n(to, (type)(result), __ATOMIC_RELAXED);  \
    return old;                                              \
  }
#define CQ_ATOMICS(type)                                            \
  CQ_ATOMIC(atomicAdd, type, old + value)                           \
  CQ_ATOMIC(atomicMin, type, value < old ? value : old)             \
  CQ_ATOMIC(atomicMax, type, value > old ? value : old)             \
  CQ_ATOMIC(atomicExch, type, value)                                \
  CQ_ATOMIC(atomicAnd, type, old & value)                           \
  CQ_ATOMIC(atomicOr, type, old | value)                            \
  inline type atomicCAS(type *to, type compare, type value) {       \
    const type old = __atomic_load_n(to, __ATOMIC_RELAXED);         \
    if (old == compare) __atomic_store_n(to, value, __ATOMIC_RELAXED); \
    return old;                                                     \
  }
CQ_ATOMICS(int)
CQ_ATOMICS(unsigned)
CQ_ATOMICS(unsigned long long)
#undef CQ_ATOMICS
#undef CQ_ATOMIC
template <class T> T atomicAdd(T *, T) = delete;
template <class T> T atomicMin(T *, T) = delete;
template <class T> T atomicMax(T *, T) = delete;
template <class T> T atomicExch(T *, T) = delete;

// ---- arithmetic -----------------------------------------------------------------------------------------------------

template <class T> T __ldg(const T *from) { return *from; }
template <class T> T __ldcs(const T *from) { return *from; }
template <class T> T __ldcg(const T *from) { return *from; }
template <class T> void __stcs(T *to, T value) { *to = value; }
template <class T> void __stcg(T *to, T value) { *to = value; }

namespace emulation {
template <class To, class From> To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
}
inline int __float_as_int(float x) { return emulation::bits<int>(x); }
inline float __int_as_float(int x) { return emulation::bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulation::bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulation::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulation::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulation::bits<double>(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

#define CQ_EXTREMES(type)                                             \
  inline type min(type a, type b) { return b < a ? b : a; }           \
  inline type max(type a, type b) { return a < b ? b : a; }
CQ_EXTREMES(int)
CQ_EXTREMES(unsigned)
CQ_EXTREMES(long)
CQ_EXTREMES(unsigned long)
CQ_EXTREMES(long long)
CQ_EXTREMES(unsigned long long)
#undef CQ_EXTREMES
inline float min(float a, float b) { return fmin(a, b); }
inline float max(float a, float b) { return fmax(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline float rsqrtf(float x) { return 1 / sqrt(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

// an array that the threads of a block share; under the emulation a pointer to memory of its own
#define CQ_SHARED(type, name, count)                                                                            \
  static const char name##_site = 0;                                                                            \
  type *const name = static_cast<type *>(emulation::shared(&name##_site, sizeof(type) * (size_t)(count), #name))

#endif
