// What is asked of a scene between two rollouts, and of its adjoint between two control steps.
#ifndef CQ_BETWEEN_H
#define CQ_BETWEEN_H

#include "kernels.h"

// Do particles have the mass, volume and constants that those of another scene began with?
int cq_scene_has_same_constants(const cq_scene *s, const cq_scene *from);
// The adjoint of the live state times a factor. CQ_OK.
cq_status cq_scene_discount_adj(cq_scene *s, const cq_worker *worker, double factor);
// The norm of the adjoint of the live state, which is scaled to `most` where it is larger. One thread, so that the sum
// has one order.
double cq_scene_limit_adj(cq_scene *s, double most);

#endif
