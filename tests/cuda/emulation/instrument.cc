// instrument: what code compiled with -fsanitize=thread calls at each access of memory; the sanitizer's own library is
// not linked. Atomic operations of kernel.h are loads and stores here: threads take turns only at barriers.
#include "machine.h"
#include "race.h"

using emulation::access;

#define CQ_HERE __builtin_return_address(0)
#define CQ_ACCESS(name, kind, bytes) \
  void name(void *at) { emulation::race_access(access::kind, at, bytes, CQ_HERE); }
#define CQ_ACCESSES(bytes)                                         \
  CQ_ACCESS(__tsan_read##bytes, read, bytes)                       \
  CQ_ACCESS(__tsan_write##bytes, write, bytes)                     \
  CQ_ACCESS(__tsan_unaligned_read##bytes, read, bytes)             \
  CQ_ACCESS(__tsan_unaligned_write##bytes, write, bytes)           \
  CQ_ACCESS(__tsan_volatile_read##bytes, atomic_read, bytes)       \
  CQ_ACCESS(__tsan_volatile_write##bytes, atomic_write, bytes)
#define CQ_ATOMIC(bits, type)                                                      \
  type __tsan_atomic##bits##_load(const volatile type *at, int) {                  \
    emulation::race_access(access::atomic_read, (const void *)at, sizeof(type), CQ_HERE); \
    return *at;                                                                    \
  }                                                                                \
  void __tsan_atomic##bits##_store(volatile type *at, type value, int) {           \
    emulation::race_access(access::atomic_write, (const void *)at, sizeof(type), CQ_HERE); \
    *at = value;                                                                   \
  }

extern "C" {
CQ_ACCESSES(1)
CQ_ACCESSES(2)
CQ_ACCESSES(4)
CQ_ACCESSES(8)
CQ_ACCESSES(16)
CQ_ATOMIC(8, uint8_t)   // guards of static variables
CQ_ATOMIC(32, uint32_t)
CQ_ATOMIC(64, uint64_t)
void __tsan_read_range(void *at, size_t bytes) { emulation::race_access(access::read, at, bytes, CQ_HERE); }
void __tsan_write_range(void *at, size_t bytes) { emulation::race_access(access::write, at, bytes, CQ_HERE); }
void __tsan_vptr_read(void **) {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_init() { cq_emulation_machine()->looks_for_races = 1; }
}
