// crew: the threads that share one scene, as one of them sees it. C++ reads this too, for tests of the kernels.
#ifndef CQ_CREW_H
#define CQ_CREW_H

#include "../base/base.h"

struct cq_barrier;

typedef struct cq_crew {
  int rank, size;
  struct cq_barrier *barrier; // NULL when alone
  double *timers;             // {CQ_PHASE_COUNT} ticks, NULL for all ranks but the first of the team
  double last;                // ticks at the end of the last phase
  double weight;              // of the times that are charged
} cq_crew;

void cq_crew_wait(cq_crew *crew);                    // until all of the crew are here
void cq_crew_phase(cq_crew *crew, int phase);        // charges the time since the last call to a phase
// The part of count items that this rank works on: a contiguous block, the same for every call.
void cq_crew_share(const cq_crew *crew, int count, int *begin, int *end);

#endif
