// Compiled for each CQ_DIM {2, 3}, CQ_REAL_BYTES {4, 8} and CQ_SIMD {1, 3, 4}; exports one table and nothing else.
#include "kernels.h"
#include "lanes.h"
#include "rows.h"
#include <assert.h>
#include <string.h>

#if !defined(CQ_REAL_DUAL)
#define CQ_LAWS_APART     // in laws.c
#include "laws.h"
#endif

#include "../math/real.h"
#include "../math/matrix.inl"
#include "../math/polar.inl"
#include "../math/eigen.inl"
#include "../math/spline.inl"
#include "../physics/material.inl"
#include "../physics/actuation.inl"
#include "../physics/drive/cable.inl"
#include "../physics/drive/chamber.inl"
#include "../physics/drive/pressure.inl"
#include "../physics/contact.inl"
#include "../physics/transfer.inl"
#include "../physics/readout.inl"

#include "chunk.inl"
#include "load.inl"
#include "stencil.inl"
#include "sort.inl"
#include "actuation.inl"
#include "cable.inl"
#include "matter.inl"
#include "step.inl"
#include "walls.inl"
#include "grid.inl"
#include "carrier.inl"
#include "implicit/gather.inl"
#include "implicit/node_loops.inl"
#include "dilatation.inl"
#include "implicit/dilatation_solve.inl"
#include "implicit/end_stress.inl"
#include "implicit/particles.inl"
#include "implicit/cables.inl"
#include "implicit/tensor.inl"
#include "implicit/constrained.inl"
#include "implicit/reference_nodes.inl"
#include "implicit/friction.inl"
#include "implicit/impulse.inl"
#include "implicit/nodes.inl"
#if !defined(CQ_REAL_DUAL)
#include "implicit/factor.inl"
#endif
#include "implicit/coarse.inl"
#include "implicit/matrix.inl"
#include "implicit/sweep.inl"
#include "volume.inl"
#if !defined(CQ_REAL_DUAL)
#include "step_adj.inl"
#include "carrier_adj.inl"
#include "implicit/reference_nodes_adj.inl"
#include "implicit/nodes_adj.inl"
#include "implicit/particles_adj.inl"
#include "dilatation_adj.inl"
#endif
#include "readout.inl"
#if defined(CQ_REAL_DUAL)
#include "reference/steps.inl"
#endif

#define CQ_JOIN_(a, b, c, d) a##b##_##c##_##d
#define CQ_JOIN(a, b, c, d) CQ_JOIN_(a, b, c, d)
#define CQ_TABLE CQ_JOIN(cq_kernels_, CQ_DIM, CQ_REAL_BYTES, CQ_SIMD)
#if defined(CQ_REAL_DUAL)
#define CQ_REFERENCE_TABLE reference
#define IS_DUAL 1
#define NO_DUAL(function) NULL          // dual numbers go forward alone
#else
#define IS_DUAL 0
#define NO_DUAL(function) function
#define CQ_REFERENCE_TABLE CQ_JOIN(cq_reference_kernels_, CQ_DIM, CQ_REAL_BYTES, CQ_SIMD)
extern const cq_reference_kernels CQ_REFERENCE_TABLE;
#endif
#if CQ_LANES > 1 && CQ_DIM == 2
#define IN_LANES(there, otherwise) there
#else
#define IN_LANES(there, otherwise) otherwise
#endif

static const cq_implicit_kernels implicit = {
    IS_DUAL,
    momentum,
    start,
    SOLVED_FIELDS,
    dilatation_solve_open,
    dilatation_solve_first,
    dilatation_solve_again,
    dilatation_solve_last,
    dilatation_solve_nodes,
    evaluate,
    residual,
    DIAGONAL_PARTS,
    tensors,
    diagonal,
    gather_diagonal,
    invert_node_blocks,
    cables_begin,
    cables_evaluate,
    cables_settle,
    cables_product,
    NO_DUAL(cables_follow_adj),
    activate,
    release,
    keep,
    press,
    norms,
    product,
    multiply,
    cg_start,
    cg_advance,
    cg_turn,
    take_direction,
    cg_again,
    NO_DUAL(coarse_index),
    NO_DUAL(coarse_gather),
    NO_DUAL(coarse_nodes),
    NO_DUAL(coarse_restrict),
    NO_DUAL(coarse_prolong),
    IN_LANES(GROUP_REALS, 0),
    IN_LANES(OWN_REALS, 0),
    IN_LANES(index_matrix, NULL),
    IN_LANES(assemble, NULL),
    IN_LANES(precondition, NULL),
    IN_LANES(sweep_load, NULL),
    IN_LANES(sweep_first, NULL),
    IN_LANES(sweep_begin, NULL),
    IN_LANES(sweep_turn, NULL),
    IN_LANES(sweep_product, NULL),
    IN_LANES(sweep_advance, NULL),
    IN_LANES(sweep_end, NULL),
    trial,
    slope,
    shrink,
    finish,
    NO_DUAL(load_record),
    take_momentum,
    NO_DUAL(impulse_to_velocity),
    NO_DUAL(follow),
    NO_DUAL(lean),
    NO_DUAL(straighten),
    NO_DUAL(add_followed),
    NO_DUAL(finish_adj),
    spread,
    end_on_reference,
    NO_DUAL(begin_reference_adj),
    NO_DUAL(factor_mark),
    NO_DUAL(factor_take),
    NO_DUAL(factor_load),
    NO_DUAL(factor_store),
    NULL,
    NO_DUAL(dilatation_solve_first_adj),
    NO_DUAL(implicit_p2g_adj),
};

extern const cq_kernels CQ_TABLE;
const cq_kernels CQ_TABLE = {
    CQ_SIMD == 4   ? "AVX-512"
    : CQ_SIMD == 3 ? "AVX2"
                   : "baseline",
    CQ_DIM,
    sizeof(real),
    CQ_LANES,
    load_state,
    load_params,
    reorder_params,
    load_globals,
    load_actuation,
    load_actuation_adj,
    load_cables,
    pull_cables,
    pull_placed,
    clear_walls,
    load_walls,
    load_gravity,
    store_impulse,
    find_bases,
    reorder,
    p2g,
    grid,
    g2p,
    carrier_bases,
    carrier_p2g,
    carrier_g2p,
    average_volume,
    dilatation,
    dilatation_nodes,
    NO_DUAL(g2p_adj),
    NO_DUAL(grid_adj),
    NO_DUAL(p2g_adj),
    NO_DUAL(carrier_g2p_adj),
    NO_DUAL(carrier_p2g_adj),
    NO_DUAL(pull_cables_adj),
    NO_DUAL(pull_placed_adj),
    NO_DUAL(average_volume_adj),
    NO_DUAL(dilatation_wanted),
    NO_DUAL(dilatation_adj),
    NO_DUAL(dilatation_places_adj),
    discount_adj,
    adj_square,
    store_params_adj,
    store_state_adj,
    read_sums,
    read_fields,
    read_adj,
    &implicit,
    &CQ_REFERENCE_TABLE,
    diagnose,
};
