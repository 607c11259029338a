// What is asked of a scene's adjoint between two control steps.
#ifndef CQ_SCENE_ADJOINT_H
#define CQ_SCENE_ADJOINT_H

#include "kernels.h"

// Multiplies the adjoint of the live state by a factor, by all workers of the scene together. Returns CQ_OK.
cq_status cq_scene_discount_adj(cq_scene *s, const cq_worker *worker, double factor);
// Returns the norm of the adjoint of the live state, and scales the adjoint to the norm `most` where it is larger. By
// one thread, so that the sum has one order.
double cq_scene_limit_adj(cq_scene *s, double most);

#endif
