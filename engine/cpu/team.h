// team: the threads of a world. All run one function together; a crew is the part of the team that shares one scene.
#ifndef CQ_TEAM_H
#define CQ_TEAM_H

#include "crew.h"
#include <stdatomic.h>

typedef struct cq_barrier {
  _Alignas(64) atomic_int waiting;
  _Alignas(64) atomic_int sense;
  int size;
} cq_barrier;

typedef struct cq_team cq_team;
typedef void cq_team_function(void *argument, int rank, int size);

cq_team *cq_team_create(int threads);   // 0: one for each core that this process may use
void cq_team_destroy(cq_team *team);
int cq_team_size(const cq_team *team);
void cq_team_run(cq_team *team, cq_team_function *function, void *argument);

#endif
