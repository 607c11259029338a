// run: several engine steps in sequence with one arrangement of the particles. The host launches them as a CUDA graph
// or as one kernel, and does not wait between them.
#include "batch.h"
#include "reference.h"
#include <limits.h>
#include <string.h>

// Waits until the GPU has done everything that was launched; then all upload buffers may be filled again. what: the
// work, for the sentence of an error.
static cq_status wait_for_stream(cq_device *d, const char *what) {
  d->pending = 0;
  return cq_cuda_check(cudaStreamSynchronize(d->context->stream), what);
}

// ---- the input of a run ---------------------------------------------------------------------------------------------

// Thread blocks of the transfer kernels that a large GPU runs at the same time. The number is the same for all GPUs,
// because the order of sums, and so the last bits of results, depend on it.
enum { BLOCKS_AT_ONCE = 264 };

// The number of thread blocks that share the particles of a tile (its parts): if there are few tiles, so many that each
// block needs one round for its share, else only so many that all blocks run on the GPU at once; at least 1.
static int32_t parts_of(const cq_device *d, const cq_arrangement *a) {
  const int32_t round = d->kernels->round, each = d->slots / a->tile_count;
  int32_t parts = (each + round - 1) / round;
  while (parts > 1 && (int64_t)parts * a->tile_count > BLOCKS_AT_ONCE) parts--;
  return parts < 1 ? 1 : parts;
}

// Chooses how a run of engine steps is launched: returns the number of blocks of the one kernel that computes all its
// steps (resident), or 0 for a launch of each pass. room: the most blocks of that kernel that the GPU can hold, 0 if it
// has none; parts: of all tiles (parts_of). The kernel is taken if every part has a block. Microseconds of an engine
// step on an H100, by launches and by one kernel (tests/bench/nvidia-h100-80gb-hbm3-ways.csv):
//
//               2d-1600      2d-6400      3d-8000      3d-64000
//   forward     20.5  15.9   26.9  20.1   35.3  35.6    49.5   48.6
//   backward    36.6  30.9   41.3  38.3   75.4 105.0   100.6  145.7, so that 3D has no such kernel backward
//
// The environment variable CQLUA_CUDA_RUN overrides the rule, and then a block may take several parts. Scenes with
// cables or chambers always have a launch for each pass: their forces must be known before any particle scatters.
static int32_t resident_blocks(const cq_device *d, int32_t room, int32_t parts) {
  const int32_t way = d->context->way;
  if (d->model->cables.all || way == CQ_WAY_LAUNCHES || (way == CQ_WAY_AUTO && parts > room)) return 0;
  return parts < room ? parts : room;
}

// The size in bytes of the nodes that the particles of `parts` parts of tiles scatter to (arena): a region for each.
static size_t arena_size(const cq_device *d, int32_t parts) {
  return (size_t)parts * (size_t)cq_region_nodes(d->model->dim) * cq_node_size(d);
}

// The number of sets of nodes that particles scatter to (arenas): two if one kernel computes all engine steps of a run,
// since it reads the nodes of a step while it writes those of the next; else one. parts: of all tiles.
static int32_t arenas_of(const cq_device *d, int32_t parts) {
  return resident_blocks(d, d->context->forward, parts) || resident_blocks(d, d->context->backward, parts) ? 2 : 1;
}

// Reserves device memory for the grid nodes of arrangement a: arenas (nodes that particles scatter to), velocities, and
// for the adjoint gradients of momenta. Nothing in total Lagrangian worlds.
static cq_status reserve(cq_device *d, const cq_arrangement *a) {
  if (d->reference) return CQ_OK;
  cq_pool *pool = &d->context->pool;
  const int32_t parts = a->tile_count * parts_of(d, a);
  const size_t node = cq_node_size(d), blocks = (size_t)a->block_count;
  cq_status status = cq_pool_reserve(pool, &d->arena, (size_t)arenas_of(d, parts) * arena_size(d, parts), "grid");
  if (!status) status = cq_pool_reserve(pool, &d->grid_v, blocks * CQ_TILE_NODES * node, "grid");
  if (!status && d->differentiable) status = cq_pool_reserve(pool, &d->grid_q, blocks * CQ_TILE_NODES * node, "grid");
  return status;
}

// The address of a block of device memory; NULL if memory is NULL.
static void *data_of(const cq_memory *memory) { return memory ? memory->data : NULL; }

// Sets those fields of a run's frame (the kernels' arguments) that stay the same during a rollout: counts of scenes and
// particles, cell size, time step, walls, materials.
static void fill_world(const cq_device *d, cq_frame *f) {
  const cq_model *m = d->model;
  f->batch = d->batch;
  f->particles = d->particles;
  f->slots = d->slots;
  f->scales_8 = {m->dx, 1 / m->dx, m->dt, {}};
  for (int i = 0; i < 3; i++) f->scales_8.limit[i] = m->cells[i] * (1 + 1e-6);
  f->scales_4 = {(float)m->dx, (float)f->scales_8.inv_dx, (float)m->dt, {}};
  for (int i = 0; i < 3; i++) f->scales_4.limit[i] = (float)f->scales_8.limit[i];
  f->material_count = m->material_count;
  memcpy(f->materials, m->materials, sizeof f->materials);
  f->param_count = d->params;
  f->internals = d->internals;
  f->internal_offset = (int64_t)cq_internal_offset(d);
  f->updates = 0;
  for (int32_t k = 0; k < m->material_count; k++)
    if (cq_material_updates(&m->materials[k])) f->updates |= 1u << k;
  f->wall_count = m->wall_count;
  f->moving_wall_count = m->moving_wall_count;
  f->walls = d->context->walls;
  f->map = d->context->map;
  f->globals = d->given.globals->data;
  f->global_stride = cq_global_count(d);
}

// In total Lagrangian worlds fills u->shapes, the kernels' arguments about reference grids, with new numbers of checks,
// and points the frame to it; in other worlds sets that pointer to NULL. on_device: where u will be on the device.
static void fill_shapes(const cq_device *d, cq_upload *on_device, cq_upload *u) {
  cq_reference *r = d->reference;
  u->frame.shapes = NULL;
  if (!r) return;
  u->frame.shapes = &on_device->shapes;
  u->shapes = r->shapes;
  u->shapes.fastest = on_device->fastest;
  u->shapes.edge = on_device->edge;
  u->shapes.check = r->checks + 1;
  r->checks += CQ_RUN_MAX + 1;
  u->shapes.seen = r->seen->memory->data;
}

// Fills the frame of a run, which all kernels of its engine steps read, but for gravity, wall motion and step count.
// first: engine steps between the live state and the run; on_device: the upload's address on the device.
static void fill_frame(const cq_device *d, const cq_arrangement *a, int32_t first, cq_upload *on_device, cq_frame *f) {
  fill_world(d, f);
  f->tile_count = a->tile_count;
  f->block_count = a->block_count;
  f->parts = parts_of(d, a);
  f->tiles = a->tiles;
  f->neighbors = a->neighbors;
  f->wall_entries = a->wall_entries;
  f->order = a->order;
  f->params = a->params;
  f->material = a->material;
  f->actuation = data_of(d->actuation);
  f->pressed = d->model->surfaces.count > 0;
  f->step = d->step + first;
  f->first = first;
  f->substeps = on_device->substeps;
  f->progress = &on_device->progress;
  f->arrived = &on_device->arrived;
  const int32_t parts = f->tile_count * f->parts;
  if (d->arena) {
    f->arena[0] = d->arena->data;
    f->arena[1] = (char *)d->arena->data + (arenas_of(d, parts) > 1 ? arena_size(d, parts) : 0);
  }
  f->grid_v = data_of(d->grid_v);
  f->grid_q = data_of(d->grid_q);
  f->adj = data_of(d->adj);
  f->params_adj = data_of(d->params_adj);
  f->actuation_adj = d->actuation ? data_of(d->actuation_adj) : NULL;
  f->sums = (double *)data_of(d->sums);
  f->sum_count = cq_sum_count(d);
  f->sums_wanted = (d->wanted & (cq_bit(CQ_FIELD_GRAVITY) | cq_bit(CQ_FIELD_FRICTION) | cq_bit(CQ_FIELD_WALL_VELOCITY) |
                               cq_bit(CQ_FIELD_DAMPING))) != 0;
  f->damping_wanted = (d->wanted & cq_bit(CQ_FIELD_DAMPING)) != 0;
}

// Completes the kernels' arguments about cables and chambers: the cables' constants, work memory, and gradients.
static void fill_cables(const cq_device *d, cq_pulling *out) {
  const size_t places = (size_t)d->batch * (size_t)out->points * (size_t)d->model->dim;
  for (int k = 0; k < 3 && out->count; k++) {
    out->value[k] = (const double *)d->given.cable[k]->data;
    out->value_stride[k] = d->given.cable_stride[k];
  }
  out->x = (double *)d->cable_work->data;
  out->force = out->x + places;
  out->grad = out->force + places;
  out->share = out->grad + places;
  if (!d->differentiable) return;
  out->grad_value = (double *)d->grad_cables->data;
  out->grad_signals = out->grad_value + cq_cable_values(d);
  out->grad_base = out->grad_signals + (size_t)d->batch * (size_t)out->all;
}

// Fills *out, the kernels' arguments about actuation for a run with arrangement a: entries, weights, signals, forces,
// and where gradients go. controls: where signals and forces will be on the device.
static void fill_actuation(const cq_device *d, const cq_arrangement *a, double *controls, cq_actuation *out) {
  const size_t signals = cq_signal_count(d), row = (size_t)d->control_row, rows = (size_t)d->control_rows;
  *out = d->context->actuation;
  out->weight = (const double *)d->given.weight->data;
  out->weight_stride = d->given.weight_stride;
  out->signals = controls;
  out->force = d->forces ? controls + signals : NULL;
  out->out = data_of(d->actuation);
  out->slot_of = a->slot_of;
  if (out->cables.all) fill_cables(d, &out->cables);
  if (!d->differentiable) return;
  out->share = (double *)d->share->data;
  out->grad_weight = (double *)d->grad_weight->data;
  double *grad = (double *)d->grad_controls->data;
  out->grad_signals = grad + row * signals;
  out->grad_force = d->model->force_count ? grad + rows * signals + row * cq_force_count(d) : NULL;
}

// Fills d->upload, the arguments of the kernels of the next run of engine steps with arrangement a, except for its
// substeps and their number; waits for the GPU if no buffer is free. first: engine steps between the live state and the
// run, which are launched already.
cq_status cq_cuda_prepare(cq_device *d, const cq_arrangement *a, int32_t first) {
  cq_status status = reserve(d, a);
  if (!status && d->pending == d->uploads_count) status = wait_for_stream(d, "the runs before");
  if (status) return status;
  cq_upload *on_device = (cq_upload *)d->on_device->data,
            *u = (cq_upload *)(d->uploads + (size_t)d->pending * cq_upload_size(d));
  const size_t signals = cq_signal_count(d), forces = cq_force_count(d);
  double *controls = cq_upload_controls(d, u);
  d->upload = u;
  fill_frame(d, a, first, on_device, &u->frame);
  fill_shapes(d, on_device, u);
  cq_cuda_walls_fill(d, on_device);
  fill_actuation(d, a, cq_upload_controls(d, on_device), &u->actuation);
  u->progress = {INT_MAX, INT_MAX, INT_MAX, 0};
  memset(u->fastest, 0, sizeof u->fastest);
  memset(u->edge, 0, sizeof u->edge);
  u->arrived = 0;
  if (signals) memcpy(controls, d->signals, signals * sizeof *controls);
  if (d->forces) memcpy(controls + signals, d->forces, forces * sizeof *controls);
  return CQ_OK;
}

// Begins to copy the prepared d->upload to the device, before the run's kernels are launched; progress is included, and
// so reset, only with the first run from the live state. controls 0: without signals and forces.
cq_status cq_cuda_send(cq_device *d, int32_t controls) {
  const size_t motion = cq_motion_count(d), numbers = motion + (controls ? cq_signal_count(d) + cq_force_count(d) : 0);
  const size_t from = d->upload->frame.first ? offsetof(cq_upload, frame) : 0,
               to = sizeof(cq_upload) + numbers * sizeof(double);
  d->pending++;
  return cq_cuda_check(cudaMemcpyAsync((char *)d->on_device->data + from, (char *)d->upload + from, to - from,
                                       cudaMemcpyHostToDevice, d->context->stream),
                       "sending the controls");
}

// ---- launches -------------------------------------------------------------------------------------------------------

// Numbers of blocks of a launch. They are powers of two, so that a captured graph serves until the scene has doubled.
typedef struct Sizes {
  int32_t tile;              // for the parts of tiles with particles
  int32_t node, few;         // for tiles with nodes, one to a block, or four
} Sizes;

// The number of thread blocks for `count` tiles: the least power of two that is at least `count`, limited by the size
// of the GPU (cq_cuda_blocks).
static int32_t power_of_two(const cq_device *d, int32_t count) {
  int64_t blocks = 1;
  while (blocks < count) blocks *= 2;
  return cq_cuda_blocks(d, blocks, 1);
}

// The numbers of thread blocks for the kernels of the prepared run, rounded to powers of two so that a captured graph
// of launches can be used again after small changes of the scene.
static Sizes sizes_of(const cq_device *d) {
  const cq_frame *f = &d->upload->frame;
  const int32_t node = power_of_two(d, f->block_count);
  const int32_t tiles = d->reference ? d->reference->shapes.tiles : f->tile_count * f->parts;
  return {power_of_two(d, tiles), node, node < 4 ? 1 : node / 4};
}

// Launches the kernel that computes stress, force and pressure of all particles from the control step's signals and
// forces, if the world has any actuation. u: the upload, on the device.
static void load_actuation(cq_device *d, const cq_upload *u) {
  if (d->actuation)
    d->kernels->load_actuation(d->context->stream, cq_cuda_blocks(d, d->slots, 256), &u->frame, &u->actuation);
}

// Launches the forces of cables and chambers on particles for engine step k of the run, if the world has any.
static void pull_cables(cq_device *d, const cq_upload *u, int32_t k) {
  if (d->model->cables.all)
    d->kernels->pull_cables(d->context->stream, cq_cuda_blocks(d, d->batch, 1), &u->frame, &u->actuation, k);
}

// In total Lagrangian worlds with cables or chambers: launches the computation of their particles' positions before
// engine step k from the nodes of reference grids, then their forces.
static void place_cables(cq_device *d, const cq_upload *u, int32_t k) {
  if (!d->model->cables.all) return;
  const int64_t pulled = d->batch * d->model->cables.pulled_count;
  d->kernels->reference_pulled(d->context->stream, cq_cuda_blocks(d, pulled, 256), &u->frame, &u->actuation, k);
  pull_cables(d, u, k);
}

// Does the rollout read impulses of contacts? Not 0: yes. The answer is the same for all its runs, so that captured
// graphs of launches stay valid.
static int32_t reads_contact(const cq_device *d) { return d->track->impulse != NULL; }

// Launches the passes of `count` engine steps in a world with cables or chambers. G2P and the P2G of the next step are
// two kernels here, not one (g2p2g): forces of cables and chambers need the positions after G2P, and P2G needs the
// forces. sizes: numbers of thread blocks.
static void launch_forward_cables(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count) {
  cudaStream_t stream = d->context->stream;
  load_actuation(d, u);
  for (int32_t k = 0; k < count; k++) {
    pull_cables(d, u, k);
    d->kernels->p2g(stream, sizes.tile, &u->frame, k);
    d->kernels->grid(stream, sizes.few, &u->frame, k);
    if (reads_contact(d)) d->kernels->impulse(stream, sizes.node, &u->frame, k);
    d->kernels->g2p(stream, sizes.tile, &u->frame, k);
  }
}

// Launches the adjoint of launch_forward_cables, the passes of `count` engine steps backward in a world with cables or
// chambers.
static void launch_backward_cables(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count) {
  cudaStream_t stream = d->context->stream;
  load_actuation(d, u);
  d->kernels->velocity(stream, sizes.few, &u->frame, count - 1);
  for (int32_t k = count - 1; k >= 0; k--) {
    d->kernels->g2p_adj(stream, sizes.tile, &u->frame, k);
    d->kernels->grid_adj(stream, sizes.node, &u->frame, k, k > 0);
    pull_cables(d, u, k);
    d->kernels->p2g_adj(stream, sizes.tile, &u->frame, k);
    d->kernels->pull_cables_adj(stream, cq_cuda_blocks(d, d->batch, 1), &u->frame, &u->actuation, k);
  }
}

// Launches the passes of `count` total Lagrangian steps: forces of cables and chambers, collisions, forces of cells,
// then nodes with contacts, and the check whether surfaces meet.
static void launch_forward_reference(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count) {
  const cq_cuda_kernels *kernels = d->kernels;
  cudaStream_t stream = d->context->stream;
  load_actuation(d, u);
  for (int32_t k = 0; k < count; k++) {
    place_cables(d, u, k);
    if (d->reference->shapes.push) kernels->repel(stream, sizes.few, &u->frame, k);
    kernels->cell_forces(stream, sizes.tile, &u->frame, k);
    kernels->node_move(stream, sizes.few, &u->frame, k);
    if (reads_contact(d)) kernels->node_impulse(stream, sizes.node, &u->frame, k);
    kernels->touch(stream, sizes.few, &u->frame, k);
  }
}

// Launches the adjoint of launch_forward_reference, `count` total Lagrangian steps backward. Gradients that cells leave
// for nodes are added to the adjoint of nodes by the next node pass, or at the end of the run.
static void launch_backward_reference(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count) {
  const cq_cuda_kernels *kernels = d->kernels;
  cudaStream_t stream = d->context->stream;
  const int32_t fields = d->reference->shapes.viscous ? 2 : 1, cables = d->model->cables.all;
  load_actuation(d, u);
  for (int32_t k = count - 1; k >= 0; k--) {
    kernels->node_move_adj(stream, sizes.node, &u->frame, k, cables || k == count - 1 ? 0 : fields);
    if (d->reference->shapes.push) kernels->repel_adj(stream, sizes.few, &u->frame, k);
    place_cables(d, u, k);
    kernels->cell_forces_adj(stream, sizes.tile, &u->frame, k);
    if (!cables) continue;
    kernels->node_collect(stream, sizes.few, &u->frame, fields);
    kernels->pull_cables_adj(stream, cq_cuda_blocks(d, d->batch, 1), &u->frame, &u->actuation, k);
    kernels->cell_settle(stream, sizes.tile, &u->frame, k);
    kernels->node_collect(stream, sizes.few, &u->frame, 2);
  }
  if (!cables) kernels->node_collect(stream, sizes.few, &u->frame, fields);
}

// Launches the passes of `count` MPM steps: P2G, then for each step the grid pass and, as one kernel (g2p2g), G2P and
// the P2G of the next step. u: the upload on the device; sizes: numbers of thread blocks.
static void launch_forward(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count) {
  const cq_cuda_kernels *kernels = d->kernels;
  cudaStream_t stream = d->context->stream;
  if (d->model->cables.all) {
    launch_forward_cables(d, u, sizes, count);
    return;
  }
  load_actuation(d, u);
  kernels->p2g(stream, sizes.tile, &u->frame, 0);
  for (int32_t k = 0; k < count; k++) {
    kernels->grid(stream, sizes.few, &u->frame, k);
    if (reads_contact(d)) kernels->impulse(stream, sizes.node, &u->frame, k);
    if (k < count - 1)
      kernels->g2p2g(stream, sizes.tile, &u->frame, k);
    else
      kernels->g2p(stream, sizes.tile, &u->frame, k);
  }
}

// Launches the adjoint of launch_forward, `count` MPM steps backward. The kernel step_adj is the adjoint of P2G of one
// step and of G2P of the step before it.
static void launch_backward(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count) {
  const cq_cuda_kernels *kernels = d->kernels;
  cudaStream_t stream = d->context->stream;
  if (d->model->cables.all) {
    launch_backward_cables(d, u, sizes, count);
    return;
  }
  load_actuation(d, u);
  kernels->velocity(stream, sizes.few, &u->frame, count - 1);
  kernels->g2p_adj(stream, sizes.tile, &u->frame, count - 1);
  for (int32_t k = count - 1; k > 0; k--) {
    kernels->grid_adj(stream, sizes.node, &u->frame, k, 1);
    kernels->step_adj(stream, sizes.tile, &u->frame, k);
  }
  kernels->grid_adj(stream, sizes.node, &u->frame, 0, 0);
  kernels->p2g_adj(stream, sizes.tile, &u->frame, 0);
}

typedef void launch_run(cq_device *d, const cq_upload *u, Sizes sizes, int32_t count);

// Frees a captured CUDA graph and its count of uses, so that the next run launches its kernels one by one.
static void drop_graph(cq_graph *graph) {
  if (graph->exec && cudaGraphExecDestroy(graph->exec) != cudaSuccess) cudaGetLastError();
  graph->exec = NULL;
  graph->uses = 0;
}

// Captures the launches of a run of `count` engine steps, without running them, as a CUDA graph, so that later runs
// take one call. launch: the function that launches them, e.g. launch_forward; sizes: numbers of thread blocks.
static cq_status capture(cq_device *d, cq_graph *graph, launch_run *launch, Sizes sizes, int32_t count) {
  const char *const what = "recording the launches of a run";
  cudaGraph_t recorded = NULL;
  cudaStream_t stream = d->context->stream;
  cq_status status = cq_cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), what);
  if (status) return status;
  launch(d, (const cq_upload *)d->on_device->data, sizes, count);
  const cudaError_t launched = cudaGetLastError(), ended = cudaStreamEndCapture(stream, &recorded);
  status = cq_cuda_check(launched != cudaSuccess ? launched : ended, what);
  if (!status) status = cq_cuda_check(cudaGraphInstantiate(&graph->exec, recorded, 0), what);
  if (recorded && cudaGraphDestroy(recorded) != cudaSuccess) cudaGetLastError();
  graph->tile_blocks = sizes.tile;
  graph->node_blocks = sizes.node;
  return status;
}

// Launches the passes of a run of `count` engine steps by `launch`. When a run with the same numbers of blocks comes
// for the second time, its launches are captured in *graph, and from then on that graph is launched.
static cq_status launch_passes(cq_device *d, cq_graph *graph, launch_run *launch, int32_t count) {
  const Sizes sizes = sizes_of(d);
  cq_status status = CQ_OK;
  if (graph->tile_blocks != sizes.tile || graph->node_blocks != sizes.node) drop_graph(graph);
  graph->tile_blocks = sizes.tile;
  graph->node_blocks = sizes.node;
  if (graph->uses++ == 1) status = capture(d, graph, launch, sizes, count);
  if (status) return status;
  if (graph->exec) return cq_cuda_check(cudaGraphLaunch(graph->exec, d->context->stream), "a run of substeps");
  launch(d, (const cq_upload *)d->on_device->data, sizes, count);
  return cq_cuda_check(cudaGetLastError(), "a run of substeps");
}

// ---- one kernel for a run -------------------------------------------------------------------------------------------

// Launches the one cooperative kernel (`launch`: forward or backward) that computes all `count` engine steps of a run,
// in `blocks` thread blocks.
static cq_status launch_resident(cq_device *d, cq_cuda_resident *launch, int32_t blocks, int32_t count) {
  const cq_upload *u = (const cq_upload *)d->on_device->data;
  load_actuation(d, u);
  launch(d->context->stream, blocks, &u->frame, count);
  return cq_cuda_check(cudaGetLastError(), "a run of substeps");
}

// ---- runs -----------------------------------------------------------------------------------------------------------

// Waits for all launched runs, and copies to d->progress how far they came and whether a step failed.
cq_status cq_cuda_read_progress(cq_device *d) {
  const cq_upload *on_device = (const cq_upload *)d->on_device->data;
  const cq_status status = cq_cuda_check(cudaMemcpyAsync(d->progress, &on_device->progress, sizeof *d->progress,
                                                         cudaMemcpyDeviceToHost, d->context->stream),
                                         "a run of substeps");
  return status ? status : wait_for_stream(d, "a run of substeps");
}

// Launches the prepared run of `count` engine steps: MPM steps of a small scene as one cooperative kernel, else a
// kernel for each pass, in a captured graph from the second such run on. The first run of a total Lagrangian rollout
// looks for surfaces that meet before its first step too.
cq_status cq_cuda_run_forward(cq_device *d, int32_t count) {
  const cq_frame *f = &d->upload->frame;
  if (d->reference) {
    const cq_upload *u = (const cq_upload *)d->on_device->data;
    // do surfaces meet before the first step?
    if (f->step == 0) d->kernels->touch(d->context->stream, sizes_of(d).few, &u->frame, -1);
    return launch_passes(d, &d->forward[count], launch_forward_reference, count);
  }
  const int32_t blocks =
      resident_blocks(d, d->context->forward, d->upload->frame.tile_count * d->upload->frame.parts);
  return blocks ? launch_resident(d, d->kernels->resident, blocks, count)
                : launch_passes(d, &d->forward[count], launch_forward, count);
}

// Launches the adjoint of a run of `count` engine steps, in the same ways as cq_cuda_run_forward.
cq_status cq_cuda_run_backward(cq_device *d, int32_t count) {
  if (d->reference) return launch_passes(d, &d->backward[count], launch_backward_reference, count);
  const int32_t blocks =
      resident_blocks(d, d->context->backward, d->upload->frame.tile_count * d->upload->frame.parts);
  return blocks ? launch_resident(d, d->kernels->resident_adj, blocks, count)
                : launch_passes(d, &d->backward[count], launch_backward, count);
}

// Launches the adjoint of a control step's actuation: from the gradients of actuation stress, force and pressure,
// summed over its engine steps, to the gradients of signals, actuation weights and the script's forces.
cq_status cq_cuda_run_load_actuation_adj(cq_device *d) {
  const cq_upload *u = (const cq_upload *)d->on_device->data;
  const int64_t shares = d->batch * (d->model->actuation_count + d->model->force_count);
  d->kernels->load_actuation_adj(d->context->stream, cq_cuda_blocks(d, shares, 256), &u->frame, &u->actuation);
  return cq_cuda_check(cudaGetLastError(), "the adjoint of the controls");
}

// Launches P2G of the live state again, after the step that follows it has failed: d->progress then tells whether the
// live state is inverted itself, which fail_step asks.
cq_status cq_cuda_run_probe(cq_device *d) {
  const cq_upload *u = (const cq_upload *)d->on_device->data;
  load_actuation(d, u);
  pull_cables(d, u, 0);
  d->kernels->p2g(d->context->stream, sizes_of(d).tile, &u->frame, 0);
  return cq_cuda_check(cudaGetLastError(), "looking for what failed");
}

// Frees the captured CUDA graphs of all lengths of runs, forward and backward.
void cq_cuda_graphs_destroy(cq_device *d) {
  for (int32_t k = 0; k <= CQ_RUN_MAX; k++) {
    drop_graph(&d->forward[k]);
    drop_graph(&d->backward[k]);
  }
}
