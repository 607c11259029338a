// What control groups and resource limits leave of memory and processors, on made-up control groups.
#include "base/base.h"
#include "check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/cq-limits-XXXXXX";

// Writes a file below the root, with the folders that it needs.
static void put(const char *path, const char *text) {
  char whole[512];
  snprintf(whole, sizeof whole, "%s/%s", root, path);
  for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    mkdir(whole, 0700);
    *at = '/';
  }
  FILE *file = fopen(whole, "w");
  if (!file) abort();
  fputs(text, file);
  fclose(file);
}

static void check_limits(const char *name, const char *groups, int64_t memory, int32_t processors) {
  char path[512];
  put("groups", groups);
  snprintf(path, sizeof path, "%s/groups", root);
  const int64_t bytes = cq_group_memory(path, root);
  const int32_t count = cq_group_processors(path, root);
  CHECK(bytes == memory && count == processors, "%s: %lld bytes, %d processors, wanted %lld, %d", name,
        (long long)bytes, count, (long long)memory, processors);
}

int main(void) {
  if (!mkdtemp(root)) return 1;
  CHECK(cq_group_memory("/nowhere/cgroup", root) == INT64_MAX, "memory without groups");
  CHECK(cq_group_processors("/nowhere/cgroup", root) == INT32_MAX, "processors without groups");
  check_limits("no files", "0::/\n", INT64_MAX, INT32_MAX);
  check_limits("not a list of groups", "\n::\n0:/\nmemory\n1:memory:\n:memory:a\n", INT64_MAX, INT32_MAX);

  // version 2: the tightest of the groups that lie around each other
  put("job/memory.max", "1000000\n");
  put("job/memory.current", "400000\n");
  put("job/memory.stat", "anon 100\nfile 5\ninactive_file 100000\nactive_file 50000\n");
  put("job/cpu.max", "max 100000\n");
  put("job/step/memory.max", "max\n");
  put("job/step/memory.current", "390000\n");
  put("job/step/cpu.max", "250000 100000\n");
  check_limits("within a job", "0::/job/step\n", 750000, 3);
  check_limits("a job", "0::/job\n", 750000, INT32_MAX);
  check_limits("a group that has gone", "0::/job/other/one\n", 750000, INT32_MAX);
  put("job/memory.current", "1200000\n");
  check_limits("a job that is over its limit", "0::/job\n", 0, INT32_MAX);
  put("job/memory.high", "900000\n");
  put("job/memory.current", "500000\n");
  check_limits("a job that is slowed down above less", "0::/job\n", 550000, INT32_MAX);
  put("job/cpu.max", "17592186044415 1000\n");
  check_limits("as many processors as there are", "0::/job\n", 550000, INT32_MAX);
  put("job/cpu.max", "1 100000\n");
  check_limits("less than a processor", "0::/job\n", 550000, 1);
  // a container sees its own group as the root
  put("memory.max", "5000\n");
  put("memory.current", "1000\n");
  put("cpu.max", "50000 100000\n");
  check_limits("a container", "0::/\n", 4000, 1);

  // version 1: a tree for each controller, here with one of version 2 beside it that has no memory
  put("memory/slurm/memory.limit_in_bytes", "8000000\n");
  put("memory/slurm/memory.usage_in_bytes", "3000000\n");
  put("memory/slurm/memory.stat", "inactive_file 1\ntotal_inactive_file 1000000\n");
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/memory.usage_in_bytes", "100\n");
  put("cpu/slurm/cpu.cfs_quota_us", "400000\n");
  put("cpu/slurm/cpu.cfs_period_us", "100000\n");
  put("cpu/cpu.cfs_quota_us", "-1\n");
  put("cpu/cpu.cfs_period_us", "100000\n");
  check_limits("version 1", "3:cpuacct,cpu:/slurm\n2:cpuset:/slurm\n1:memory:/slurm\n", 6000000, 4);
  put("memory/memory.stat", "total_inactive_file 8192\n");
  check_limits("no limit, and more files than memory", "1:memory:/\n", 9223372036854771712, INT32_MAX);
  put("memory/memory.stat", "total_inactive_file 0\n");
  check_limits("no limit in version 1", "2:cpu:/\n1:memory:/\n", 9223372036854771712 - 100, INT32_MAX);
  check_limits("a container of version 1", "1:memory:/docker/ab12\n", 9223372036854771712 - 100, INT32_MAX);

  // resource limits of this process, and what it has of them
  const int64_t free = cq_memory_available();
  CHECK(free > 0 && cq_processors() >= 1, "%lld bytes, %d processors", (long long)free, cq_processors());
  // a sixteenth of the machine's memory is left to others; half of that for what these take or give back meanwhile
  const int64_t sixteenth = (int64_t)sysconf(_SC_PHYS_PAGES) / 16 * sysconf(_SC_PAGESIZE);
  long long available = 0;
  char line[256];
  FILE *memory = fopen("/proc/meminfo", "r");
  while (memory && fgets(line, sizeof line, memory))
    if (sscanf(line, "MemAvailable: %lld kB", &available) == 1) break;
  if (memory) fclose(memory);
  CHECK(free <= available * 1024 - sixteenth / 2 || available == 0, "%lld bytes of %lld kB: none is left",
        (long long)free, available);
  const int resources[] = { RLIMIT_DATA, RLIMIT_AS };
  for (int k = 0; k < 2; k++) {
    struct rlimit whole, tight;
    if (getrlimit(resources[k], &whole)) return 1;
    tight = whole;
    long long size, data;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lld %*d %*d %*d %*d %lld", &size, &data) != 2) return 1;
    fclose(file);
    tight.rlim_cur = (rlim_t)((k ? size : data) * sysconf(_SC_PAGESIZE) + (64 << 20));
    if (whole.rlim_cur != RLIM_INFINITY || setrlimit(resources[k], &tight)) continue;
    const int64_t left = cq_memory_available();
    setrlimit(resources[k], &whole);
    CHECK(left > 48 << 20 && left <= 64 << 20, "resource %d: %lld bytes of %d", k, (long long)left, 64 << 20);
  }
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", root);
  CHECK(system(command) == 0, "the files could not be removed");
  return check_report();
}
