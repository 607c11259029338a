// Memory of tensors. A script makes and drops thousands of tensors of a few sizes, so freed blocks are kept by size
// class, and found again without asking the system.
#include "tensor.h"
#include <stdlib.h>
#include <string.h>

enum {
  CLASS_SMALLEST = 8,      // 2^8 bytes
  CLASS_COUNT = 17,        // up to 2^24 bytes = 16 MiB; larger ones go back to the system at once
  KEPT_BYTES_MAX = 1 << 26 // of all free blocks together
};

// stands before the data; a whole alignment unit, so that the data keep theirs
typedef struct block {
  struct block *next;
  int32_t size_class;      // -1: too large to be kept
} block;

_Static_assert(sizeof(block) <= CQ_ALIGNMENT, "the head of a block fits its alignment");

static block *kept[CLASS_COUNT];
static int64_t kept_bytes;

// The index of the size class, a power of two, for a block of this size: the smallest power that holds it; -1 if the
// block is too large to be kept when freed.
static int32_t class_of(size_t bytes) {
  int32_t c = 0;
  while (c < CLASS_COUNT && ((size_t)1 << (c + CLASS_SMALLEST)) < bytes) c++;
  return c < CLASS_COUNT ? c : -1;
}

// Memory for `count` numbers; zeroed 1: all 0. Freed blocks are kept by size and reused. NULL without memory, with a
// sentence in cq_error().
double *cq_tensor_alloc(int64_t count, int32_t zeroed) {
  if (count < 0 || (uint64_t)count > (SIZE_MAX >> 1) / sizeof(double)) {
    cq_fail(CQ_MEMORY, "out of memory: a tensor of %lld elements is more than an address can hold", (long long)count);
    return NULL;
  }
  size_t bytes = (size_t)count * sizeof(double);
  int32_t c = class_of(bytes);
  block *head = c >= 0 ? kept[c] : NULL;
  if (head) {
    kept[c] = head->next;
    kept_bytes -= (int64_t)1 << (c + CLASS_SMALLEST);
  } else {
    size_t room = c >= 0 ? (size_t)1 << (c + CLASS_SMALLEST) : bytes;
    head = cq_alloc(CQ_ALIGNMENT + room, 1, "a tensor");
    if (!head) return NULL;
    head->size_class = c;
    zeroed = 0;            // it is new, and zero already
  }
  double *data = (double *)(void *)((char *)head + CQ_ALIGNMENT);
  if (zeroed) memset(data, 0, bytes);
  return data;
}

// Frees memory of cq_tensor_alloc, or keeps it for the next tensor of its size; NULL: does nothing.
void cq_tensor_free(double *data) {
  if (!data) return;
  block *head = (block *)(void *)((char *)data - CQ_ALIGNMENT);
  int64_t room = head->size_class >= 0 ? (int64_t)1 << (head->size_class + CLASS_SMALLEST) : 0;
  if (head->size_class < 0 || kept_bytes + room > KEPT_BYTES_MAX) {
    cq_free(head);
    return;
  }
  head->next = kept[head->size_class];
  kept[head->size_class] = head;
  kept_bytes += room;
}

// Gives every NaN of x {count} the bits that arithmetic gives it. LuaJIT tags its values by the bits of a NaN, so that
// another NaN read from memory would be taken for a Lua value. Called for numbers from files, other devices and users'
// memory before Lua reads them.
void cq_tensor_canonical(int64_t count, double *x) {
  const uint64_t quiet = 0x7ff8000000000000, sign = 0x8000000000000000;
  int any = 0;             // a loop of its own, which compilers make vectors of
  for (int64_t i = 0; i < count; i++) any |= x[i] != x[i];
  if (!any) return;
  for (int64_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, x + i, sizeof bits);
    if ((bits & ~sign) <= 0x7ff0000000000000 || (bits & ~sign) == quiet) continue;
    bits = sign | quiet;
    memcpy(x + i, &bits, sizeof bits);
  }
}

// Sets `count` numbers of x to a value.
void cq_tensor_fill(int64_t count, double value, double *x) {
  for (int64_t i = 0; i < count; i++) x[i] = value;
}
