// scene_adjoint: what is done to the adjoint of a scene's state between two control steps.
#ifndef CQ_SCENE_ADJOINT_H
#define CQ_SCENE_ADJOINT_H

#include "kernels.h"

// Multiplies the adjoint of the live state by a factor (0 clears NaN too) between control steps, by all workers. CQ_OK.
cq_status cq_scene_discount_adj(cq_scene *s, const cq_worker *worker, double factor);
// Returns the norm of the adjoint of the live state, and where that is larger than `most` scales the adjoint to the
// norm `most`. Called by one thread, so that the sum has one order.
double cq_scene_limit_adj(cq_scene *s, double most);

#endif
