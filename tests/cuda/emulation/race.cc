// race: for each place in memory who touched it last, in each of the four ways.
#include "race.h"
#include "block.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <sys/mman.h>
#include <vector>

namespace emulation {

namespace {

enum { KINDS = 4, TOLD_MOST = 6 };

// one access
struct trace {
  uint32_t interval;         // 0: none
  uint32_t met;              // of its own __syncwarps the thread had behind it
  uint16_t rank;
  int32_t from;              // distance in the program from `origin`
};

// Of each kind of access the last one, and one that nothing orders with it, from as far away as there was: another
// block before another warp before another lane. These two show a race whenever any of all that came before does. (With
// masks that name a part of a warp a third lane may go unseen.)
struct place {
  trace last[KINDS], other[KINDS];
  bool parted;               // the bytes of this word have places of their own
};

struct area {
  uintptr_t begin, end;
  uint32_t born;             // intervals before it are of other memory
  place *places;             // one for each byte; of a word that is not parted the first counts
  const char *name;
};

struct shadow {
  place *places;
  size_t bytes;
};

struct detector {
  std::vector<area> areas;   // by address
  std::vector<shadow> spare; // that nothing is watched with; not cleared
  std::vector<unsigned> blocks;   // of each interval from `first` on
  uint32_t first = 1;        // intervals before it come before all that runs
  const witness *self = nullptr;
  const char *kernel = "";
  int64_t count = 0;
  std::set<std::pair<int32_t, int32_t>> told;   // in this launch, by their places in the program
};

detector &now = *new detector();   // to the end of the process
const char origin = 0;

// ---- what orders ----------------------------------------------------------------------------------------------------

bool is_before(const trace &t, uint32_t oldest) {
  if (t.interval < oldest) return true;
  if (t.interval != now.self->interval) return now.blocks[t.interval - now.first] == now.self->block;
  return t.rank == now.self->rank || (t.rank / 32u == now.self->rank / 32 && now.self->met[t.rank % 32] > t.met);
}

// from the running thread
int distance(const trace &t) {
  if (t.interval != now.self->interval) return 2;
  return t.rank / 32u != now.self->rank / 32;
}

bool can_race(access a, access b) {
  const bool writes = a >= access::write || b >= access::write;
  const bool atomic = (a == access::atomic_read || a == access::atomic_write) &&
                      (b == access::atomic_read || b == access::atomic_write);
  return writes && !atomic;
}

// ---- reports --------------------------------------------------------------------------------------------------------

// file and line of a place in the program, and not in kernel.h what was inlined from there; if addr2line can tell
void describe(int32_t from, char *to, size_t size) {
  const char *address = &origin + from;
  Dl_info object = {};
  snprintf(to, size, "an unknown line");
  if (!dladdr(address, &object) || !object.dli_fname) return;
  const uintptr_t offset = (uintptr_t)(address - 1 - (const char *)object.dli_fbase);   // in the call, not behind it
  char command[4400], line[256] = "";
  snprintf(command, sizeof command, "addr2line -s -i -e '%s' 0x%zx 2>/dev/null", object.dli_fname, (size_t)offset);
  FILE *pipe = popen(command, "r");
  if (!pipe) return;
  while (fgets(line, sizeof line, pipe) && !strncmp(line, "kernel.h:", 9)) continue;
  pclose(pipe);
  if (line[0] && line[0] != '?') snprintf(to, size, "%.*s", (int)strcspn(line, " \n"), line);
}

void tell(const area &a, uintptr_t at, const trace &before, access before_kind, const trace &after, access after_kind) {
  static const char *const does[KINDS] = {"reads", "atomically reads", "writes", "atomically writes"};
  static const char *const did[KINDS] = {"read", "atomically read", "wrote", "atomically wrote"};
  now.count++;
  if (now.told.size() >= TOLD_MOST || !now.told.insert({before.from, after.from}).second) return;
  char here[128], there[128];
  describe(after.from, here, sizeof here);
  describe(before.from, there, sizeof there);
  const unsigned block = now.blocks[before.interval - now.first];
  fault("%s: block %u, thread %u %s byte %zu of %s at %s, which block %u, thread %u %s at %s; nothing orders the two",
        now.kernel, now.self->block, now.self->rank, does[(int)after_kind], (size_t)(at - a.begin), a.name, here, block,
        (unsigned)before.rank, did[(int)before_kind], there);
}

// ---- accesses -------------------------------------------------------------------------------------------------------

void touch(const area &a, uintptr_t at, place *p, access kind, const trace &mine) {
  const uint32_t oldest = std::max(now.first, a.born);
  trace &last = p->last[(int)kind], &other = p->other[(int)kind];
  // has looked already: who came since has seen it
  if (last.interval == mine.interval && last.rank == mine.rank && last.met == mine.met) return;
  for (int k = 0; k < KINDS; k++) {
    if (!can_race((access)k, kind)) continue;
    const trace *first = !is_before(p->last[k], oldest)    ? &p->last[k]
                         : !is_before(p->other[k], oldest) ? &p->other[k]
                                                           : nullptr;
    if (!first) continue;
    tell(a, at, *first, (access)k, mine, kind);
    break;
  }
  if (!is_before(last, oldest) && (is_before(other, oldest) || distance(last) > distance(other))) other = last;
  last = mine;
}

const area *find(uintptr_t at) {
  const auto next =
      std::upper_bound(now.areas.begin(), now.areas.end(), at, [](uintptr_t x, const area &a) { return x < a.begin; });
  if (next == now.areas.begin() || at >= (next - 1)->end) return nullptr;
  return &*(next - 1);
}

// places for so many bytes, used before or new; those that are never touched take no memory
place *take_places(size_t bytes) {
  for (auto s = now.spare.begin(); s != now.spare.end(); ++s) {
    if (s->bytes != bytes) continue;
    place *const found = s->places;
    now.spare.erase(s);
    return found;
  }
  void *memory =
      mmap(nullptr, bytes * sizeof(place), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "emulation: no memory to look for races in %zu bytes\n", bytes);
    abort();
  }
  return (place *)memory;
}

size_t whole_words(size_t bytes) { return (bytes + 3) & ~(size_t)3; }

}

void race_watch(const void *memory, size_t bytes, const char *name) {
  const uintptr_t begin = (uintptr_t)memory, end = begin + whole_words(bytes);
  const uint32_t born = now.self ? now.self->interval : now.first + (uint32_t)now.blocks.size();
  const area a = {begin, end, born, take_places(end - begin), name};
  now.areas.insert(std::upper_bound(now.areas.begin(), now.areas.end(), a,
                                    [](const area &x, const area &y) { return x.begin < y.begin; }),
                   a);
}

void race_forget(const void *memory) {
  const area *a = find((uintptr_t)memory);
  now.spare.push_back({a->places, a->end - a->begin});
  now.areas.erase(now.areas.begin() + (a - now.areas.data()));
}

void race_launch(const char *kernel) {
  now.kernel = kernel;
  now.told.clear();
  race_order_all();
}

void race_order_all() {
  now.first += (uint32_t)now.blocks.size();
  now.blocks.clear();
}

uint32_t race_interval(unsigned block) {
  now.blocks.push_back(block);
  return now.first + (uint32_t)now.blocks.size() - 1;
}

void race_meet(witness *const lanes[32], unsigned mask) {
  uint32_t met[32] = {};
  for (int i = 0; i < 32; i++) {
    if (!(mask >> i & 1)) continue;
    lanes[i]->met[i]++;
    for (int k = 0; k < 32; k++) met[k] = std::max(met[k], lanes[i]->met[k]);
  }
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) memcpy(lanes[i]->met, met, sizeof met);
}

void race_run(const witness *who) { now.self = who; }

int64_t race_count() { return now.count; }

void race_access(access kind, const void *memory, size_t bytes, const void *from) {
  if (!now.self) return;
  const uintptr_t begin = (uintptr_t)memory;
  const area *a = find(begin);
  if (!a) return;
  const uintptr_t end = std::min(begin + bytes, a->end);
  const trace mine = {now.self->interval, now.self->met[now.self->rank % 32], (uint16_t)now.self->rank,
                      (int32_t)((const char *)from - &origin)};
  for (uintptr_t word = begin & ~(uintptr_t)3; word < end; word += 4) {
    place *p = a->places + (word - a->begin);
    if (!p->parted && begin <= word && word + 4 <= end) {
      touch(*a, word, p, kind, mine);
      continue;
    }
    if (!p->parted)
      for (int k = 3; k >= 0; k--) (p[k] = p[0]).parted = true;
    for (uintptr_t at = std::max(begin, word); at < std::min(end, word + 4); at++)
      touch(*a, at, p + (at - word), kind, mine);
  }
}

}
