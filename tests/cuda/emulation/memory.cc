// memory: of the device and of the host. Device memory begins as poison, ends at a page that nobody may touch,
// and is out of the host's reach while no work of the device runs. Copies must stay within one piece of it, in
// the direction that they name.
#include "block.h"
#include "machine.h"
#include "race.h"
#include "runtime.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace emulation {

namespace {

struct piece {
  size_t bytes;
  char *pages;               // what was mapped, without the guard behind it
  size_t page_bytes;
};

constexpr size_t alignment = 256;

std::map<const char *, piece> device_pieces, host_pieces;
constexpr int64_t guarded_most = 64 << 20;   // bytes: more takes too long to close and open

int opened;
bool closed;

size_t page_size() {
  static const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  return size;
}

// Pages full of poison that cost nothing until they are written to: copies of one file.
char *map_poison(size_t bytes) {
  constexpr size_t file_bytes = 4 << 20;
  static const int file = [] {
    const int made = memfd_create("poison", 0);
    std::vector<char> poison(file_bytes);
    fill_poison(poison.data(), file_bytes);
    if (made >= 0 && write(made, poison.data(), file_bytes) != (ssize_t)file_bytes) abort();
    return made;
  }();
  char *pages =
      (char *)mmap(nullptr, bytes + page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  for (size_t at = 0; at < bytes; at += file_bytes) {
    const size_t some = bytes - at < file_bytes ? bytes - at : file_bytes;
    if (mmap(pages + at, some, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED)
      abort();
  }
  return pages;
}

void protect_all(int protection) {
  for (const auto &p : device_pieces) mprotect(p.second.pages, p.second.page_bytes, protection);
}

// the piece that holds an address
const std::pair<const char *const, piece> *find(const std::map<const char *, piece> &pieces, const void *memory) {
  auto next = pieces.upper_bound((const char *)memory);
  if (next == pieces.begin()) return nullptr;
  --next;
  return (const char *)memory < next->first + next->second.bytes ? &*next : nullptr;
}

bool within(const std::map<const char *, piece> &pieces, const void *memory, size_t bytes) {
  const auto *p = find(pieces, memory);
  return p && (const char *)memory + bytes <= p->first + p->second.bytes;
}

// bytes of the device that nobody holds
int64_t bytes_left() {
  const cq_emulation *m = cq_emulation_machine();
  const int64_t others = m->launches >= m->others_after ? m->others : 0;
  return m->memory > m->memory_used + others ? m->memory - m->memory_used - others : 0;
}

// Is there memory of the process at an address? A sanitizer reserves so much that two small integers may look like an
// address there: what nobody has touched is none.
bool is_mapped(uintptr_t address) {
  unsigned char resident;
  if (mincore((void *)(address & ~(page_size() - 1)), 1, &resident)) return false;
#ifdef __SANITIZE_ADDRESS__
  return resident & 1;
#else
  return true;
#endif
}

// A structure for the device with an address of the host in it would be followed there: words that look like one are.
// The end of a piece is where an array without elements may lie.
void look_for_host_pointers(const void *from, size_t bytes, const char *call_name) {
  for (size_t k = 0; k + 8 <= bytes; k += 8) {
    uintptr_t word;
    memcpy(&word, (const char *)from + k, sizeof word);
    if (word < (uintptr_t)0x500000000000 || word >= (uintptr_t)0x800000000000) continue;
    if (find(device_pieces, (void *)word) || find(device_pieces, (void *)(word - 1)) ||
        find(host_pieces, (void *)word) || !is_mapped(word))
      continue;
    fault("%s: byte %zu of %zu begins an address of the host, %p, which a kernel cannot follow", call_name, k, bytes,
          (void *)word);
    return;
  }
}

enum side { host_side, device_side };

// that memory lies where the direction says; false after a fault
bool check_side(const char *call_name, const void *memory, size_t bytes, side wanted, const char *role) {
  const bool inside = within(device_pieces, memory, bytes), touches = inside || find(device_pieces, memory);
  if (wanted == device_side ? inside : !touches) return true;
  fault("%s: the %s, %zu bytes at %p, %s", call_name, role, bytes, memory,
        wanted == host_side ? "is memory of the device"
        : touches           ? "reaches beyond its piece of device memory"
                            : "is not memory of the device");
  return false;
}

bool directions(cudaMemcpyKind kind, const void *to, const void *from, side *to_side, side *from_side) {
  *to_side = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? device_side : host_side;
  *from_side = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? device_side : host_side;
  if (kind == cudaMemcpyDefault) {
    *to_side = find(device_pieces, to) ? device_side : host_side;
    *from_side = find(device_pieces, from) ? device_side : host_side;
  }
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

struct area {
  char *to;
  const char *from;
  size_t to_pitch, from_pitch, width, height;
};

void copy_rows(const area &a, const char *from) {
  open_memory();
  for (size_t row = 0; row < a.height; row++) memmove(a.to + row * a.to_pitch, from + row * a.from_pitch, a.width);
  close_memory();
}

uint64_t hash_rows(const area &a) {
  uint64_t hash = 1469598103934665603u;
  for (size_t row = 0; row < a.height; row++)
    for (size_t k = 0; k < a.width; k++) hash = (hash ^ (unsigned char)a.from[row * a.from_pitch + k]) * 1099511628211u;
  return hash;
}

// a copy that reads memory of the host when the stream gets there: it must be as it was when the copy was asked for
void enqueue_upload(const char *name, const area &a, cudaStream_t stream) {
  const uint64_t asked = hash_rows(a);
  enqueue(stream, [=] {
    if (hash_rows(a) != asked)
      fault("%s: the host wrote to the source, %zu bytes at %p, before the copy was made", name, a.width,
            (const void *)a.from);
    copy_rows(a, a.from);
  });
}

cudaError_t copy_async(const char *name, const area &a, cudaMemcpyKind kind, cudaStream_t stream) {
  const cudaError_t error = call(name);
  if (error || !a.width || !a.height) return error;
  side to_side, from_side;
  if (!directions(kind, a.to, a.from, &to_side, &from_side)) return keep(cudaErrorInvalidMemcpyDirection);
  const size_t to_bytes = (a.height - 1) * a.to_pitch + a.width, from_bytes = (a.height - 1) * a.from_pitch + a.width;
  if (!check_side(name, a.to, to_bytes, to_side, "destination") ||
      !check_side(name, a.from, from_bytes, from_side, "source"))
    return keep(cudaErrorInvalidValue);
  const bool upload = to_side == device_side && from_side == host_side;
  if (upload) look_for_host_pointers(a.from, from_bytes, name);
  // pageable memory is read before the call returns, and written too
  if (upload && !is_capturing(stream) && !is_pinned(a.from, from_bytes)) {
    auto staged = std::make_shared<std::vector<char>>(a.from, a.from + from_bytes);
    enqueue(stream, [a, staged] { copy_rows(a, staged->data()); });
  } else if (upload && !is_capturing(stream)) {
    enqueue_upload(name, a, stream);
  } else {
    enqueue(stream, [a] { copy_rows(a, a.from); });
    if (to_side == host_side && !is_capturing(stream) && !is_pinned(a.to, to_bytes)) drain(stream);
  }
  return is_lost() ? call(name) : cudaSuccess;
}

cudaError_t take_host(const char *name, void **memory, size_t bytes) {
  const cudaError_t error = call(name);
  if (error) return error;
  char *taken = nullptr;
  if (!bytes || posix_memalign((void **)&taken, alignment, bytes)) return keep(cudaErrorMemoryAllocation);
  fill_poison(taken, bytes);
  host_pieces[taken] = {bytes, taken, bytes};
  cq_emulation_machine()->pinned_used += (int64_t)bytes;
  *memory = taken;
  return cudaSuccess;
}

}

void open_memory() {
  if (!opened++ && closed) protect_all(PROT_READ | PROT_WRITE);
  closed = false;
}

void close_memory() {
  const cq_emulation *m = cq_emulation_machine();
  if (--opened || !m->guard || m->memory_used > guarded_most) return;
  protect_all(PROT_NONE);
  closed = true;
}

bool is_pinned(const void *memory, size_t bytes) { return within(host_pieces, memory, bytes); }

}

using namespace emulation;

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  const cudaError_t error = call("cudaMemGetInfo");
  if (error) return error;
  *total = (size_t)cq_emulation_machine()->memory;
  *available = (size_t)bytes_left();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  cudaError_t error = call("cudaMalloc");
  if (!error && captures_anywhere()) error = keep(cudaErrorStreamCaptureUnsupported);
  if (error) return error;
  *memory = nullptr;
  if (!bytes) return cudaSuccess;
  cq_emulation *m = cq_emulation_machine();
  const size_t rounded = (bytes + alignment - 1) & ~(alignment - 1), page = page_size();
  const size_t page_bytes = (rounded + page - 1) & ~(page - 1);
  if ((int64_t)rounded > bytes_left()) return keep(cudaErrorMemoryAllocation);
  char *pages = map_poison(page_bytes);
  if (!pages) return keep(cudaErrorMemoryAllocation);
  char *taken = pages + page_bytes - rounded;
  device_pieces[taken] = {bytes, pages, page_bytes};
  if (closed) mprotect(pages, page_bytes, PROT_NONE);
  m->memory_used += (int64_t)rounded;
  if (m->memory_used > m->memory_peak) m->memory_peak = m->memory_used;
  *memory = taken;
  race_watch(taken, bytes, "device memory");
  return cudaSuccess;
}

// also when the device is lost: a process gives back what it holds
cudaError_t cudaFree(void *memory) {
  cudaError_t error = call("cudaFree");
  if (!memory) return error;
  if (!error && captures_anywhere()) return keep(cudaErrorStreamCaptureUnsupported);
  if (!error) drain_all();
  const auto found = device_pieces.find((const char *)memory);
  if (found == device_pieces.end()) {
    fault("cudaFree: %p is not what cudaMalloc gave", memory);
    return keep(cudaErrorInvalidValue);
  }
  const piece p = found->second;
  race_forget(memory);
  munmap(p.pages, p.page_bytes + page_size());
  cq_emulation_machine()->memory_used -= (int64_t)((p.bytes + alignment - 1) & ~(alignment - 1));
  device_pieces.erase(found);
  return error;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) { return take_host("cudaMallocHost", memory, bytes); }
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) { return take_host("cudaHostAlloc", memory, bytes); }

cudaError_t cudaFreeHost(void *memory) {
  const cudaError_t error = call("cudaFreeHost");
  if (!memory) return error;
  if (!error) drain_all();
  const auto found = host_pieces.find((const char *)memory);
  if (found == host_pieces.end()) {
    fault("cudaFreeHost: %p is not what cudaMallocHost gave", memory);
    return keep(cudaErrorInvalidValue);
  }
  cq_emulation_machine()->pinned_used -= (int64_t)found->second.bytes;
  host_pieces.erase(found);
  free(memory);
  return error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_async("cudaMemcpyAsync", {(char *)to, (const char *)from, bytes, bytes, bytes, 1}, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_async("cudaMemcpy2DAsync", {(char *)to, (const char *)from, to_pitch, from_pitch, width, height}, kind,
                    stream);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  if (captures_anywhere()) return keep(cudaErrorStreamCaptureImplicit);
  const cudaError_t error =
      copy_async("cudaMemcpy", {(char *)to, (const char *)from, bytes, bytes, bytes, 1}, kind, nullptr);
  if (error) return error;
  drain(nullptr);
  return is_lost() ? call("cudaMemcpy") : cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  const cudaError_t error = call("cudaMemsetAsync");
  if (error || !bytes) return error;
  if (!check_side("cudaMemsetAsync", memory, bytes, device_side, "destination")) return keep(cudaErrorInvalidValue);
  enqueue(stream, [=] {
    open_memory();
    memset(memory, value, bytes);
    close_memory();
  });
  return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) { return cudaMemsetAsync(memory, value, bytes, nullptr); }
