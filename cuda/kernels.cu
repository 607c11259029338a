// kernels: the launches of all kernels, as the table of kernels.h. Compiled for each CQ_DIM {2, 3} and CQ_REAL_BYTES
// {4, 8}; exports this table and nothing else.
#include "kernels.h"
#include "scalar.h"

#include "../engine/math/real.h"
#include "../engine/math/matrix.inl"
#include "../engine/math/polar.inl"
#include "../engine/math/eigen.inl"
#include "../engine/math/spline.inl"
#include "../engine/physics/material.inl"
#include "../engine/physics/actuation.inl"
#include "../engine/physics/drive/cable.inl"
#include "../engine/physics/drive/chamber.inl"
#include "../engine/physics/drive/pressure.inl"
#include "../engine/physics/collision.inl"
#include "../engine/physics/contact.inl"
#include "../engine/physics/piola.inl"
#include "../engine/physics/transfer.inl"
#include "../engine/physics/readout.inl"
#include "../engine/world/state.h"
#define CQ_WALL static __device__ inline
#include "../engine/world/wall.inl"
#include "../engine/world/step_contact.inl"
#define CQ_TOUCH static __device__ inline
#include "../engine/world/touch.inl"

#include "tile.inl"
#include "wall.inl"
#include "grid.inl"
#include "impulse.inl"
#include "region.inl"
#include "step.inl"
#include "step_adj.inl"
#include "resident.inl"
#include "sort.inl"
#include "actuation.inl"
#include "norm.inl"
#include "cable.inl"
#include "readout.inl"
#include "hull.inl"
#include "reference.inl"
#include "take.inl"
#include "touch.inl"
#include "repel.inl"
#include "reference_adj.inl"

// defines a function that launches a kernel for engine step k of a run
#define CQ_LAUNCHER(name, threads, ...)                                                     \
  static void name(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k) { \
    const auto kernel = __VA_ARGS__;                                                        \
    CQ_LAUNCH(kernel, blocks, threads, stream, frame, k);                                   \
  }
CQ_LAUNCHER(launch_p2g, TRANSFER_THREADS, transfer<0, 1>)
CQ_LAUNCHER(launch_g2p2g, TRANSFER_THREADS, transfer<1, 1>)
CQ_LAUNCHER(launch_g2p, TRANSFER_THREADS, transfer<1, 0>)
CQ_LAUNCHER(launch_grid, GRID_THREADS, grid<0>)
CQ_LAUNCHER(launch_velocity, GRID_THREADS, grid<1>)
CQ_LAUNCHER(launch_impulse, CQ_TILE_NODES, impulse)
CQ_LAUNCHER(launch_g2p_adj, ADJ_THREADS, transfer_adj<0, 1>)
CQ_LAUNCHER(launch_step_adj, ADJ_THREADS, transfer_adj<1, 1>)
CQ_LAUNCHER(launch_p2g_adj, ADJ_THREADS, transfer_adj<1, 0>)

// Launches grid_adj, the adjoint of the grid pass of engine step k; more 1: it also computes the velocities of step
// k - 1 again.
static void launch_grid_adj(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k, int32_t more) {
  CQ_LAUNCH(grid_adj, blocks, CQ_TILE_NODES, stream, frame, k, more);
}

// ---- kernels whose blocks wait for each other -----------------------------------------------------------------------

typedef void resident_kernel(const cq_frame *frame, int32_t count);

// Launches a kernel cooperatively: all blocks are on the GPU at the same time, so that they can wait for each other.
// count: the number of engine steps, an argument of the kernel.
static void launch_together(resident_kernel *kernel, int32_t threads, cudaStream_t stream, int32_t blocks,
                            const cq_frame *frame, int32_t count) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3((unsigned)threads);
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  // as CQ_LAUNCH
  if (cudaPeekAtLastError() == cudaSuccess) cudaLaunchKernelEx(&config, kernel, frame, count);
}
// Sets *room to how many blocks of a cooperative kernel the GPU holds at once; 0 if it has no cooperative launches.
static cudaError_t room_of(resident_kernel *kernel, int32_t threads, const cudaDeviceProp *gpu, int32_t *room) {
  int each = 0;
  const cudaError_t error = gpu->cooperativeLaunch
                                ? cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, 0)
                                : cudaSuccess;
  *room = each * gpu->multiProcessorCount;
  return error;
}
// Launches the kernel `resident`, which computes all `count` engine steps of a run.
static void launch_resident(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t count) {
  launch_together(resident, TRANSFER_THREADS, stream, blocks, frame, count);
}
#if CQ_DIM == 2
// Launches the kernel `resident_adj`, which reverses all `count` engine steps of a run.
static void launch_resident_adj(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t count) {
  launch_together(resident_adj, ADJ_THREADS, stream, blocks, frame, count);
}
#else
static cq_cuda_resident *const launch_resident_adj = NULL;   // launches are faster
#endif
// Sets *forward and *backward to how many blocks of the kernels resident and resident_adj, which work on a whole run of
// engine steps, the GPU holds at once; 0: there is no such kernel.
static cudaError_t room(const cudaDeviceProp *gpu, int32_t *forward, int32_t *backward) {
  const cudaError_t error = room_of(resident, TRANSFER_THREADS, gpu, forward);
  *backward = 0;
#if CQ_DIM == 2
  if (!error) return room_of(resident_adj, ADJ_THREADS, gpu, backward);
#endif
  return error;
}

// ---- total Lagrangian steps -----------------------------------------------------------------------------------------

CQ_LAUNCHER(launch_cell_forces, CELL_THREADS, cell_forces)
CQ_LAUNCHER(launch_node_move, GRID_THREADS, node_move)
CQ_LAUNCHER(launch_node_impulse, CQ_TILE_NODES, node_impulse)
CQ_LAUNCHER(launch_cell_forces_adj, CELL_THREADS, cell_forces_adj)
CQ_LAUNCHER(launch_cell_settle, CELL_THREADS, cell_settle)
CQ_LAUNCHER(launch_node_collect, GRID_THREADS, node_collect)

// Launches node_move_adj, the adjoint of the pass over nodes in total Lagrangian step k. given: how many vector fields
// that cells left for nodes are first added to the adjoint of nodes (0, 1: displacements, 2: velocities too).
static void launch_node_move_adj(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k,
                                 int32_t given) {
  CQ_LAUNCH(node_move_adj, blocks, CQ_TILE_NODES, stream, frame, k, given);
}
// Launches the search for surfaces of bodies that are near each other before total Lagrangian step k, and the forces by
// which they push each other apart.
static void launch_repel(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k) {
  CQ_LAUNCH(near_enter, blocks, SLOT_THREADS, stream, frame, k);
  CQ_LAUNCH(near_push, blocks, SLOT_THREADS, stream, frame, k);
}
// Launches the search for near surfaces as launch_repel does, and the adjoint of the forces between them.
static void launch_repel_adj(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k) {
  CQ_LAUNCH(near_enter, blocks, SLOT_THREADS, stream, frame, k);
  CQ_LAUNCH(near_push_adj, blocks, SLOT_THREADS, stream, frame, k);
}
// Launches the test whether surfaces of bodies meet after total Lagrangian step k of a run; k -1: before step 0.
static void launch_touch(cudaStream_t stream, int32_t blocks, const cq_frame *frame, int32_t k) {
  CQ_LAUNCH(touch_enter, blocks, SLOT_THREADS, stream, frame, k);
  CQ_LAUNCH(touch_meet, blocks, SLOT_THREADS, stream, frame, k);
}
// Launches the kernel that computes, in total Lagrangian worlds, where the particles of cables and chambers are before
// engine step k, from the nodes of reference grids.
static void launch_reference_pulled(cudaStream_t stream, int32_t blocks, const cq_frame *frame,
                                    const cq_actuation *actuation, int32_t k) {
  CQ_LAUNCH(reference_pulled, blocks, SLOT_THREADS, stream, frame, actuation, k);
}
// Launches the kernels that compute mass and velocity of the nodes of reference grids at the start of a rollout, from
// the particles `given`, write the nodes' first state, and keep the particles' F if some begin deformed.
static void launch_reference_begin(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes,
                                   const cq_given_particles *given, void *state) {
  CQ_LAUNCH(reference_nodes, blocks, CQ_TILE_NODES, stream, *shapes, *given, state);
  if (shapes->start) CQ_LAUNCH(reference_starts, blocks, SLOT_THREADS, stream, *shapes, given->state);
}
// Launches the kernel that computes x, v, F and C of particles, `to`, from a state of nodes, for readouts.
static void launch_reference_observe(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes, const void *state,
                                     void *to) {
  CQ_LAUNCH(reference_particles, blocks, SLOT_THREADS, stream, *shapes, state, to);
}
// Launches the kernels that move gradients of particles, which readouts have added to adj, to the adjoint of the nodes
// that the particles are computed from. state: of the nodes.
static void launch_reference_settle(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes, const void *state,
                                    void *adj) {
  CQ_LAUNCH(reference_settle, blocks, CELL_THREADS, stream, *shapes, state, adj);
  CQ_LAUNCH(reference_collect, blocks, GRID_THREADS, stream, *shapes, 2);
}
// Launches the kernels that turn the adjoint of the nodes' first state into gradients of the particles that the rollout
// began with (given): x, v, C, F and masses. state: the nodes' first state.
static void launch_reference_finish(cudaStream_t stream, int32_t blocks, const cq_shapes *shapes,
                                    const cq_given_particles *given, const void *state) {
  CQ_LAUNCH(reference_masses, blocks, GRID_THREADS, stream, *shapes, state);
  CQ_LAUNCH(reference_given, blocks, SLOT_THREADS, stream, *shapes, *given);
  if (!shapes->places) return;
  CQ_LAUNCH(reference_origins, blocks, SUM_THREADS, stream, *shapes);
  CQ_LAUNCH(reference_shift, blocks, SLOT_THREADS, stream, *shapes, given->adj);
}

// ---- sorting, actuation, readouts -----------------------------------------------------------------------------------

// Launches find_box, which finds the bounding box of all particles, in grid tiles.
static void launch_box(cudaStream_t stream, int32_t blocks, const cq_sorting *s) {
  CQ_LAUNCH(find_box, blocks, SLOT_THREADS, stream, *s);
}
// Launches the kernel that writes tile, cell and rank of each particle, and counts the particles of tiles.
static void launch_key(cudaStream_t stream, int32_t blocks, const cq_sorting *s) {
  CQ_LAUNCH(find_keys, blocks, SLOT_THREADS, stream, *s);
}
// Launches the kernel that copies fields of particles from one order of particles into another.
static void launch_move(cudaStream_t stream, int32_t blocks, const cq_moving *m) {
  CQ_LAUNCH(move_slots, blocks, SLOT_THREADS, stream, *m);
}
// Launches the kernel that copies the user's values of one quantity into the fields of a device array of particles.
static void launch_load(cudaStream_t stream, int32_t blocks, const cq_loading *l) {
  CQ_LAUNCH(load_values, blocks, SLOT_THREADS, stream, *l);
}
// Launches the kernels that copy, add or clear scenes between rollouts: their particles, and nodes of reference grids.
static void launch_take(cudaStream_t stream, int32_t blocks, const cq_taking *t) {
  if (t->slots) CQ_LAUNCH(take_slots, blocks, SLOT_THREADS, stream, *t);
  if (t->nodes_to) CQ_LAUNCH(take_nodes, blocks, SLOT_THREADS, stream, *t);
}
// Launches the kernel that copies the adjoint of the particles' state, as doubles, into the user's order.
static void launch_store_state(cudaStream_t stream, int32_t blocks, const cq_storing *s) {
  CQ_LAUNCH(store_state_adj, blocks, SLOT_THREADS, stream, *s);
}
// Launches the kernel that adds the gradients of particles' parameters to those in the user's order, and clears them.
static void launch_store_params_adj(cudaStream_t stream, int32_t blocks, const cq_storing *s) {
  CQ_LAUNCH(store_params_adj, blocks, SLOT_THREADS, stream, *s);
}
// Launches the kernels that compute the norm of each scene's adjoint and scale adjoints above n->most down to it.
static void launch_norm(cudaStream_t stream, int32_t blocks, const cq_norming *n) {
  CQ_LAUNCH(square_portions, n->batch * CQ_NORM_PORTIONS, SUM_THREADS, stream, *n);
  CQ_LAUNCH(add_portions, (n->batch + SLOT_THREADS - 1) / SLOT_THREADS, SLOT_THREADS, stream, *n);
  if (n->most < INFINITY) CQ_LAUNCH(limit_norms, blocks, SLOT_THREADS, stream, *n);
}
// Launches adj *= factor for the first `count` reals of an adjoint.
static void launch_discount(cudaStream_t stream, int32_t blocks, void *adj, int64_t count, double factor) {
  CQ_LAUNCH(discount_reals, blocks, SLOT_THREADS, stream, adj, count, factor);
}
// Launches the kernel that writes stresses, forces and pressures of particles from signals and the script's forces.
static void launch_load_actuation(cudaStream_t stream, int32_t blocks, const cq_frame *frame,
                              const cq_actuation *actuation) {
  CQ_LAUNCH(load_actuation, blocks, SLOT_THREADS, stream, frame, actuation);
}
// Launches the adjoint of load_actuation: gradients of actuation weights and of the script's forces, then of signals.
static void launch_load_actuation_adj(cudaStream_t stream, int32_t blocks, const cq_frame *frame,
                             const cq_actuation *actuation) {
  CQ_LAUNCH(actuation_shares, blocks, SLOT_THREADS, stream, frame, actuation);
  CQ_LAUNCH(actuation_signals, blocks, SUM_THREADS, stream, frame, actuation);
}
// Launches the kernel that computes the derived quantities of a readout (stress, energy, ...), if it has any.
static void read_derived(cudaStream_t stream, const cq_reading *r) {
  const int64_t blocks = ((int64_t)r->batch * r->listed + SLOT_THREADS - 1) / SLOT_THREADS;
  if (r->derived_width) CQ_LAUNCH(read_derive, blocks < 4096 ? blocks : 4096, SLOT_THREADS, stream, *r);
}
// Launches the forces of cables and chambers on particles, from positions before engine step k; a block for each scene.
static void launch_pull_cables(cudaStream_t stream, int32_t blocks, const cq_frame *frame,
                               const cq_actuation *actuation, int32_t k) {
  CQ_LAUNCH(pull_cables, blocks, CABLE_THREADS, stream, frame, actuation, k);
}
// Launches the adjoint of pull_cables of engine step k: of the forces of cables and chambers on particles.
static void launch_pull_cables_adj(cudaStream_t stream, int32_t blocks, const cq_frame *frame,
                                   const cq_actuation *actuation, int32_t k) {
  CQ_LAUNCH(pull_cables_adj, blocks, CABLE_THREADS, stream, frame, actuation, k);
}
// Launches the sums of a readout over each group of particles in two stages: over portions of a group, then over the
// portions. components: how many numbers are summed for each group; 1: the weights alone.
static void read_sums(cudaStream_t stream, int32_t blocks, const cq_reading *r, int32_t components) {
  CQ_LAUNCH(read_portions, blocks, SUM_THREADS, stream, *r, components);
  // a warp for each sum, where a portion takes a block
  const int64_t sums = (int64_t)r->batch * r->groups * components;
  const int64_t most = (sums * WARP + SLOT_THREADS - 1) / SLOT_THREADS;
  CQ_LAUNCH(read_groups, most < blocks ? most : blocks, SLOT_THREADS, stream, *r, components);
}
// Launches a readout: sums over groups, or the values of single particles.
static void launch_read(cudaStream_t stream, int32_t blocks, const cq_reading *r) {
  read_derived(stream, r);
  if (r->kind == CQ_READOUT_GATHER)
    CQ_LAUNCH(read_gather, blocks, SLOT_THREADS, stream, *r);
  else
    read_sums(stream, blocks, r, r->components);
}
// Launches the sums of the particles' weights in each group of a readout, which its adjoint divides by.
static void launch_read_weights(cudaStream_t stream, int32_t blocks, const cq_reading *r) {
  read_derived(stream, r);
  read_sums(stream, blocks, r, 1);
}
// Launches the adjoint of a readout: from the gradients of its result to the adjoint of the listed particles.
static void launch_read_adj(cudaStream_t stream, int32_t blocks, const cq_reading *r) {
  CQ_LAUNCH(read_adj, blocks, SLOT_THREADS, stream, *r);
}

#define CQ_JOIN_(a, b, c) a##b##_##c
#define CQ_JOIN(a, b, c) CQ_JOIN_(a, b, c)
#define CQ_TABLE CQ_JOIN(cq_cuda_kernels_, CQ_DIM, CQ_REAL_BYTES)

const cq_cuda_kernels CQ_TABLE = {
    CQ_DIM, sizeof(real), ADJ_THREADS,
    launch_p2g, launch_grid, launch_impulse, launch_g2p2g, launch_g2p,
    launch_velocity, launch_g2p_adj, launch_grid_adj, launch_step_adj, launch_p2g_adj,
    launch_resident, launch_resident_adj, room,
    launch_box, launch_key, launch_move, launch_load, launch_take, launch_store_state, launch_store_params_adj,
    launch_discount, launch_norm,
    launch_load_actuation, launch_load_actuation_adj, launch_pull_cables, launch_pull_cables_adj,
    launch_reference_begin, launch_reference_observe, launch_reference_settle, launch_reference_finish,
    launch_repel, launch_cell_forces, launch_node_move, launch_node_impulse, launch_touch, launch_reference_pulled,
    launch_node_move_adj, launch_repel_adj, launch_cell_forces_adj, launch_cell_settle, launch_node_collect,
    launch_read, launch_read_weights, launch_read_adj,
};
