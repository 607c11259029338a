// outcome: everything that a rollout gives, in named parts, to be compared between devices; and the emulated GPU.
#ifndef TEST_CUDA_OUTCOME_H
#define TEST_CUDA_OUTCOME_H

#include "../c/rollout.h"
#include "emulation/machine.h"
#include <dlfcn.h>

enum { PARTS_MAX = 96 };

typedef struct {
  int count;
  const char *name[PARTS_MAX];
  double *data[PARTS_MAX];
  int64_t size[PARTS_MAX];
} outcome;

static inline double *add_part(outcome *o, const char *name, int64_t size) {
  o->name[o->count] = name;
  o->size[o->count] = size;
  return o->data[o->count++] = test_array(size);
}

static inline void free_outcome(outcome *o) {
  for (int k = 0; k < o->count; k++) free(o->data[k]);
  o->count = 0;
}

// the part that is most wrong, relative to the largest number of that part; a nan is more wrong than any number
static inline double difference(const outcome *a, const outcome *b, const char **where) {
  double most = 0;
  for (int k = 0; k < a->count; k++) {
    double size = 0, worst = 0;
    for (int64_t i = 0; i < a->size[k]; i++) {
      size = fmax(size, fabs(a->data[k][i]));
      worst = check_worst(worst, fabs(a->data[k][i] - b->data[k][i]));
    }
    const double relative = worst > 0 || worst != worst ? worst / size : 0;
    if (most == most && !(relative <= most)) {
      most = relative;
      *where = a->name[k];
    }
  }
  return most;
}

static inline uint64_t hash_of(const outcome *o) {
  uint64_t hash = 1469598103934665603u;
  for (int k = 0; k < o->count; k++) hash = test_hash(hash, o->data[k], (size_t)o->size[k] * sizeof(double));
  return hash;
}

// The emulated GPU that the tests run on; NULL: on a real one.
static inline cq_emulation *find_machine(void) {
  const char *path = getenv("CQLUA_CUDA");
  void *object = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  cq_emulation *(*machine)(void) = NULL;
  if (object) *(void **)&machine = dlsym(object, "cq_emulation_machine");
  return machine ? machine() : NULL;
}

#endif
