// team: the threads of a world. Some of them run one function together; a crew is those that share one scene.
#ifndef CQ_TEAM_H
#define CQ_TEAM_H

#include "crew.h"

typedef struct cq_team cq_team;
typedef void cq_team_function(void *argument, int rank, int size);

cq_team *cq_team_create(int threads);   // 0: one for each core that this process may use
void cq_team_destroy(cq_team *team);
int cq_team_size(const cq_team *team);
// Runs a function on `count` threads, of which the caller is the first, and waits for all. They flush denormals meanwhile.
void cq_team_run(cq_team *team, int count, cq_team_function *function, void *argument);
// Where all threads of a run of so many meet; NULL for one.
struct cq_barrier *cq_team_barrier(cq_team *team, int count);

#endif
