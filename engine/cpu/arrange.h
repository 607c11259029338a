// arrange: sorting particles by cell, and finding the nodes that they can reach until they are sorted again.
#ifndef CQ_ARRANGE_H
#define CQ_ARRANGE_H

#include "kernels.h"

// Sorts the particles of the live state by grid cell and lists the nodes they can reach: a new slice (state) and a new
// arrangement (order and nodes) become live. Called by all workers of a scene at the start and whenever particles may
// have moved by a cell. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE with s->health for a particle outside the world or not finite.
cq_status cq_arrange(cq_scene *s, cq_worker *worker);
// Returns 1 if some particle of a slice (a state in memory) is outside the world or not finite, else 0. Also sets the
// base nodes of all particles and their boxes, which a sort reads. Called by all workers of a scene, at the start of a
// sort and when particles come near the edge of the world.
int cq_arrange_outside(cq_scene *s, cq_worker *worker, const cq_slice *slice);
// Makes a slice with undefined contents, in the user's order of particles, the live state at step 0. The caller then
// loads the initial values into it and sorts it. Called by one thread. CQ_OK or CQ_MEMORY.
cq_status cq_arrange_first(cq_scene *s);
// Makes all arrays over grid nodes large enough for the live arrangement: the slab (private node array that particles
// scatter to) of each range of chunks, and the shared grids. Called by one thread. CQ_OK or CQ_MEMORY.
cq_status cq_arrange_reserve(cq_scene *s);

#endif
