// limits: how much memory and how many processors this process may take: what the machine has free, resource limits,
// and the control groups in which containers and batch systems run a process (versions 1 and 2).
#include "base.h"
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_SIZE = 1024 };

// The first number of the file root/folder/name, after `word` at the beginning of a line, if it is given; -1 if there
// is no such file, or it has a word there, as "max".
static int64_t number_of(const char *root, const char *folder, const char *name, const char *word) {
  char path[3 * PATH_SIZE], line[256];
  snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
  FILE *file = fopen(path, "r");
  if (!file) return -1;
  long long value = -1;
  const size_t skip = word ? strlen(word) : 0;
  while (fgets(line, sizeof line, file)) {
    if (word && (strncmp(line, word, skip) || line[skip] != ' ')) continue;
    if (sscanf(line + skip, "%lld", &value) != 1) value = -1;
    break;
  }
  fclose(file);
  return value;
}

// The names of files of control groups, by their version. Memory that is taken counts files that the system keeps to
// read them again, which it gives back.
typedef struct group_files {
  const char *controller;                         // its folder below the root; "": all are in one
  const char *limits[2], *used, *cached[2];       // [bytes]; the latter words of memory.stat
  const char *quota, *period;                     // [us]
} group_files;

static const group_files one_tree = { "", { "memory.max", "memory.high" }, "memory.current",
                                      { "inactive_file", "active_file" }, "cpu.max", NULL };
static const group_files memory_tree = { "/memory", { "memory.limit_in_bytes", NULL },
                                         "memory.usage_in_bytes", { "total_inactive_file", "total_active_file" },
                                         NULL, NULL };
static const group_files cpu_tree = { "/cpu", { NULL, NULL }, NULL, { NULL, NULL }, "cpu.cfs_quota_us",
                                      "cpu.cfs_period_us" };

// Lowers the number of bytes that may be taken to what one control group leaves. folder: its path below root.
static void lower_memory(const group_files *files, const char *root, const char *folder, int64_t *memory) {
  int64_t most = -1;
  for (int k = 0; k < 2; k++) {
    const int64_t limit = files->limits[k] ? number_of(root, folder, files->limits[k], NULL) : -1;
    if (limit >= 0 && (most < 0 || limit < most)) most = limit;
  }
  const int64_t used = most < 0 ? -1 : number_of(root, folder, files->used, NULL);
  if (used < 0 || most - used >= *memory) return;
  int64_t cached = 0;
  for (int k = 0; k < 2; k++) {
    const int64_t bytes = number_of(root, folder, "memory.stat", files->cached[k]);
    if (bytes > 0) cached += bytes;
  }
  if (cached > used) cached = used;
  const int64_t left = most - used + cached;
  if (left < *memory) *memory = left > 0 ? left : 0;
}

// Lowers the number of processors to those that one control group has time for. folder: its path below root.
static void lower_processors(const group_files *files, const char *root, const char *folder, int32_t *processors) {
  const int64_t quota = number_of(root, folder, files->quota, NULL);
  if (quota <= 0) return;
  // version 2 has both in one line, "200000 100000"
  char word[32];
  snprintf(word, sizeof word, "%lld", (long long)quota);
  const int64_t period = files->period ? number_of(root, folder, files->period, NULL)
                                       : number_of(root, folder, files->quota, word);
  if (period <= 0) return;
  const int64_t count = quota / period + (quota % period != 0);
  if (count < *processors) *processors = (int32_t)count;
}

// Lowers what is asked for, memory or processors (the other is NULL), to what a control group and all groups around it
// leave. path: "/a/b", of the innermost one.
static void lower_by_path(const group_files *files, const char *root, const char *path, int64_t *memory,
                          int32_t *processors) {
  char folder[2 * PATH_SIZE];
  snprintf(folder, sizeof folder, "%s%s", files->controller, path);
  const size_t top = strlen(files->controller);
  for (;;) {
    size_t length = strlen(folder);
    while (length > top && folder[length - 1] == '/') folder[--length] = 0;
    if (memory) lower_memory(files, root, folder, memory);
    if (processors) lower_processors(files, root, folder, processors);
    char *slash = strrchr(folder + top, '/');
    if (!slash) return;
    *slash = 0;
  }
}

// Is `word` one of the words of a list that commas separate, `length` characters long?
static int lists(const char *list, size_t length, const char *word) {
  const size_t size = strlen(word);
  for (const char *end = list + length; list < end;) {
    const char *comma = memchr(list, ',', (size_t)(end - list));
    const size_t here = (size_t)((comma ? comma : end) - list);
    if (here == size && !memcmp(list, word, size)) return 1;
    list += here + 1;
  }
  return 0;
}

// Lowers what is asked for to what the control groups of a process leave. groups: the file /proc/self/cgroup, with
// lines "number:controllers:path", version 2 without controllers; root: where groups are mounted.
static void lower_by_groups(const char *groups, const char *root, int64_t *memory, int32_t *processors) {
  FILE *file = fopen(groups, "r");
  if (!file) return;
  char line[PATH_SIZE];
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || path[1] != '/') continue;
    controllers++;
    const size_t length = (size_t)(path - controllers);
    if (!length) lower_by_path(&one_tree, root, path + 1, memory, processors);
    if (memory && lists(controllers, length, "memory"))
      lower_by_path(&memory_tree, root, path + 1, memory, NULL);
    if (processors && lists(controllers, length, "cpu")) lower_by_path(&cpu_tree, root, path + 1, NULL, processors);
  }
  fclose(file);
}

// Bytes that control groups let a process take beside those it has; INT64_MAX where they do not limit it.
int64_t cq_group_memory(const char *groups, const char *root) {
  int64_t memory = INT64_MAX;
  lower_by_groups(groups, root, &memory, NULL);
  return memory;
}

// Processors that control groups give a process time for; INT32_MAX where they do not limit it.
int32_t cq_group_processors(const char *groups, const char *root) {
  int32_t processors = INT32_MAX;
  lower_by_groups(groups, root, NULL, &processors);
  return processors;
}

static const char own_groups[] = "/proc/self/cgroup", group_root[] = "/sys/fs/cgroup";

// The bytes that a resource limit leaves (ulimit -v, -d). resource: RLIMIT_AS or RLIMIT_DATA; taken: pages of that kind
// that the process has.
static int64_t left_of(int resource, long long taken) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX) return INT64_MAX;
  const int64_t left = (int64_t)limit.rlim_cur - (int64_t)taken * sysconf(_SC_PAGESIZE);
  return left > 0 ? left : 0;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// a share of the machine's memory that is left to other programs: where several take all that is free, the system ends
// one of them
enum { LEFT_TO_OTHERS = 16 };

// Bytes of memory that this process can take without swapping, within its limits, so that a sixteenth of the machine's
// is left; 1 GiB where the system does not say.
int64_t cq_memory_available(void) {
  const int64_t unknown = (int64_t)1 << 30;
  FILE *file = fopen("/proc/meminfo", "r");
  if (!file) return unknown;
  char line[256];
  long long kib = 0, all = 0;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "MemTotal: %lld kB", &all) == 1) continue;
    if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1) break;
  }
  fclose(file);
  const int64_t free = (int64_t)(kib - all / LEFT_TO_OTHERS) * 1024;
  int64_t available = kib <= 0 ? unknown : free > 0 ? free : 0;
  long long size, data;      // [pages]
  file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%lld %*d %*d %*d %*d %lld", &size, &data) == 2)
    available = least(available, least(left_of(RLIMIT_AS, size), left_of(RLIMIT_DATA, data)));
  if (file) fclose(file);
  return least(available, cq_group_memory(own_groups, group_root));
}

// Processors that this process may use: those it may run on, at most as many as its control group has time for; 1
// where the system does not say.
int32_t cq_processors(void) {
  cpu_set_t set;
  const int32_t cores =
      sched_getaffinity(0, sizeof set, &set) ? (int32_t)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
  const int32_t most = cq_group_processors(own_groups, group_root);
  const int32_t count = cores < most ? cores : most;
  return count > 0 ? count : 1;
}
