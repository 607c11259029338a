// team: the threads of a world. All run one function together; a crew is the part of the team that shares one scene.
#ifndef CQ_TEAM_H
#define CQ_TEAM_H

#include "../base/base.h"
#include <stdatomic.h>

typedef struct cq_barrier {
  _Alignas(64) atomic_int waiting;
  _Alignas(64) atomic_int sense;
  int size;
} cq_barrier;

// The view of one thread: its place among those that work on the same scene.
typedef struct cq_crew {
  int rank, size;
  cq_barrier *barrier;        // NULL when alone
  double *timers;             // {CQ_PHASE_COUNT} seconds, NULL for all ranks but the first of the team
  double last;                // clock at the end of the last phase
} cq_crew;

typedef struct cq_team cq_team;
typedef void cq_team_function(void *argument, int rank, int size);

cq_team *cq_team_create(int threads);   // 0: one for each core that this process may use
void cq_team_destroy(cq_team *team);
int cq_team_size(const cq_team *team);
void cq_team_run(cq_team *team, cq_team_function *function, void *argument);
cq_barrier *cq_team_barrier(cq_team *team);

void cq_crew_wait(cq_crew *crew);                    // until all of the crew are here
void cq_crew_phase(cq_crew *crew, int phase);        // charges the time since the last call to a phase
// The part of count items that this rank works on: a contiguous block, the same for every call.
void cq_crew_share(const cq_crew *crew, int count, int *begin, int *end);

#endif
