// mpi: the few operations of MPI that ranks need, behind plain C types, because those of MPI differ between its makers.
// Built into cqlua-mpi.so, which lua/cq/ranks/mpi.lua loads. Nothing is added up here: a sum by MPI_Allreduce has other
// bits on other numbers of ranks.
#include "mpi.h"
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

static MPI_Request pending = MPI_REQUEST_NULL;
static char sentence[MPI_MAX_ERROR_STRING + 64];

// one tag: messages between two ranks come in the order in which they were sent
enum { TAG = 14 };

static int32_t result_of(int code, const char *call) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  text[length] = 0;
  snprintf(sentence, sizeof sentence, "%s failed: %s", call, text);
  return 1;
}

PUBLIC int32_t cq_mpi_abi(void) { return CQ_MPI_ABI; }
PUBLIC const char *cq_mpi_error(void) { return sentence; }

// Processes of the job on this machine, and the cores that they may use together: mpirun may have bound each to its
// own, or all to the same ones.
static int count_cores(cq_mpi_place *place) {
  MPI_Comm machine;
  int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  if (code != MPI_SUCCESS) return code;
  cpu_set_t mine, together;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
  int local = 1;
  MPI_Comm_size(machine, &local);
  code = MPI_Allreduce(&mine, &together, sizeof mine, MPI_BYTE, MPI_BOR, machine);
  place->local = local;
  place->cores = CPU_COUNT(&together);
  MPI_Comm_free(&machine);
  return code;
}

PUBLIC int32_t cq_mpi_begin(cq_mpi_place *place) {
  int granted = 0, rank = 0, size = 1, length = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  memset(place, 0, sizeof *place);
  if (result_of(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &granted), "MPI_Init_thread")) return 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  place->rank = rank;
  place->size = size;
  char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
  MPI_Get_processor_name(host, &length);
  snprintf(place->host, sizeof place->host, "%.*s", (int)sizeof place->host - 1, host);
  MPI_Get_library_version(text, &length);
  // only the name and its version, which stand before the first comma
  snprintf(place->library, sizeof place->library, "%.*s", (int)strcspn(text, ",\n") % CQ_MPI_NAME, text);
  return result_of(count_cores(place), "MPI_Allreduce");
}

PUBLIC int32_t cq_mpi_end(void) { return result_of(MPI_Finalize(), "MPI_Finalize"); }

PUBLIC void cq_mpi_leave(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

// The FNV-1a hash of some bytes, by words of 64 bits and then the bytes that are left: ranks compare it to see that
// they hold the same.
PUBLIC uint64_t cq_mpi_hash(const void *data, int64_t bytes, uint64_t seed) {
  const unsigned char *at = data;
  uint64_t hash = seed ^ 0xcbf29ce484222325u;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;                          // a product's high bits would else never reach the low ones
  }
  for (; bytes > 0; bytes--) hash = (hash ^ *at++) * 0x100000001b3u;
  return hash;
}

PUBLIC int32_t cq_mpi_minimum(uint64_t *values, int32_t count) {
  return result_of(MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD, &pending),
                   "MPI_Iallreduce");
}

PUBLIC int32_t cq_mpi_gather(const void *mine, void *all, int32_t bytes) {
  return result_of(MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, &pending),
                   "MPI_Iallgather");
}

PUBLIC int32_t cq_mpi_broadcast(void *data, int32_t bytes, int32_t from) {
  return result_of(MPI_Ibcast(data, bytes, MPI_BYTE, from, MPI_COMM_WORLD, &pending), "MPI_Ibcast");
}

PUBLIC int32_t cq_mpi_send(const double *data, int32_t count, int32_t to) {
  return result_of(MPI_Isend(data, count, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD, &pending), "MPI_Isend");
}

PUBLIC int32_t cq_mpi_receive(double *data, int32_t count, int32_t from) {
  return result_of(MPI_Irecv(data, count, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, &pending), "MPI_Irecv");
}

PUBLIC int32_t cq_mpi_test(int32_t *done) {
  int flag = 0;
  const int code = MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
  *done = flag;
  return result_of(code, "MPI_Test");
}
