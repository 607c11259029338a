// steps: the loops of steps on a reference grid, and their table. Included by kernels.c here, and over dual numbers by
// that of the spatial grid.
#include "../../physics/collision.inl"
#include "../../physics/piola.inl"
#include "../../world/touch.inl"

#include "stencil.inl"
#include "force.inl"
#include "node.inl"
#include "particle.inl"
#include "repel.inl"
#include "cable.inl"
#include "implicit.inl"
#if !defined(CQ_REAL_DUAL)
#include "node_adj.inl"
#include "adjoint.inl"
#endif

#if defined(CQ_REAL_DUAL)
static const cq_reference_kernels reference = {prepare, place_points, repel, NULL, forces, move, observe, observe_rim,
                                               NULL,    NULL,         NULL,  NULL, NULL,   NULL, NULL,    NULL, NULL,
                                               move_places, move_free, move_held, NULL, NULL,
                                               solve_momentum, solve_evaluate, solve_tensors, solve_diagonal,
                                               solve_product, NULL, NULL};
#endif
