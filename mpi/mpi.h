// mpi.h: what cqlua asks of MPI, as lua/cq/ranks/mpi.lua reads it. One operation is under way at a time: each of the
// functions that return at once begins one, which cq_mpi_test says the end of. All of them return 0, or 1 and leave a
// sentence in cq_mpi_error.
#ifndef CQ_MPI_H
#define CQ_MPI_H
#include <stdint.h>

enum { CQ_MPI_ABI = 1, CQ_MPI_NAME = 256 };

typedef struct cq_mpi_place {
  int32_t rank, size;                            // of this process among all
  int32_t local;                                 // processes of the job on this machine
  int32_t cores;                                 // that they may use together
  char host[CQ_MPI_NAME], library[CQ_MPI_NAME];  // "Open MPI v4.1.4"
} cq_mpi_place;

int32_t cq_mpi_abi(void);
const char *cq_mpi_error(void);
int32_t cq_mpi_begin(cq_mpi_place *place);       // once; waits for all processes
int32_t cq_mpi_end(void);                        // waits for all processes
void cq_mpi_leave(void);                         // ends this process and the job, where no others can be waited for
uint64_t cq_mpi_hash(const void *data, int64_t bytes, uint64_t seed);

// return at once; what they are given stays untouched until cq_mpi_test says that they are done
int32_t cq_mpi_minimum(uint64_t *values, int32_t count);                  // each the least of all ranks
int32_t cq_mpi_gather(const void *mine, void *all, int32_t bytes);        // all: {size, bytes}
int32_t cq_mpi_broadcast(void *data, int32_t bytes, int32_t from);
int32_t cq_mpi_send(const double *data, int32_t count, int32_t to);
int32_t cq_mpi_receive(double *data, int32_t count, int32_t from);
int32_t cq_mpi_test(int32_t *done);

#endif
