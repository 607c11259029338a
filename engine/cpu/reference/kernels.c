// Compiled for each CQ_DIM, CQ_REAL_BYTES and CQ_SIMD, as ../kernels.c; exports one table and nothing else.
#include "../kernels.h"
#include "../lanes.h"
#include <assert.h>
#include <string.h>

#define CQ_LAWS_APART     // in ../laws.c
#include "../laws.h"

#include "../../math/real.h"
#include "../../math/matrix.inl"
#include "../../math/polar.inl"
#include "../../math/eigen.inl"
#include "../../math/spline.inl"
#include "../../physics/material.inl"
#include "../../physics/actuation.inl"
#include "../../physics/drive/pressure.inl"
#include "../../physics/contact.inl"

#include "../chunk.inl"
#include "../matter.inl"
#include "../walls.inl"
#include "../implicit/end_stress.inl"
#include "steps.inl"

#define CQ_JOIN_(a, b, c, d) a##b##_##c##_##d
#define CQ_JOIN(a, b, c, d) CQ_JOIN_(a, b, c, d)
#define CQ_TABLE CQ_JOIN(cq_reference_kernels_, CQ_DIM, CQ_REAL_BYTES, CQ_SIMD)

extern const cq_reference_kernels CQ_TABLE;
const cq_reference_kernels CQ_TABLE = {
    prepare,  place_points, repel,            repel_adj,   forces,  move,     observe, observe_rim,
    move_adj, forces_adj,   place_points_adj, observe_adj, collect, discount, square,  volume_adj, complete,
    move_places, move_free, move_held, move_held_adj, move_free_adj,
    solve_momentum, solve_evaluate, solve_tensors, solve_diagonal, solve_product, solve_assemble,
    give_points_adj,
};
