// arrange: sorting particles by cell, and finding the nodes that they can reach until they are sorted again.
#ifndef CQ_ARRANGE_H
#define CQ_ARRANGE_H

#include "kernels.h"

// Sorts the particles of the live state by cell: makes a new arrangement and a new slice live. Called by all workers of
// a scene. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health with the particle that is outside the world or not
// finite.
cq_status cq_arrange(cq_scene *s, cq_worker *worker);
// Is some particle of a slice outside the world, or not finite? 1 yes, 0 no. Finds the base nodes of all particles too.
// Called by all workers of a scene, between sortings.
int cq_arrange_outside(cq_scene *s, cq_worker *worker, const cq_slice *slice);
// Makes an empty slice in the user's order live, to be loaded and sorted. Called by one thread. CQ_OK or CQ_MEMORY.
cq_status cq_arrange_first(cq_scene *s);
// Makes slabs and grids large enough for the live arrangement. Called by one thread. CQ_OK or CQ_MEMORY.
cq_status cq_arrange_reserve(cq_scene *s);

#endif
