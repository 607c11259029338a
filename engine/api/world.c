// world: entry points that make, describe and destroy worlds.
#include "world.h"
#include <stdio.h>
#include <string.h>

// Device "auto" takes a GPU from this number of particles on. Below it, launches take longer than several CPU cores
// need for the work. Two cores of a Zen 5 are faster than an H100 with 1,600 particles in 2D, and half as fast with
// 6,400 (tests/bench); more cores move that up, to an extent that was not measured.
enum { AUTO_CUDA_PARTICLES = 20000 };

// Makes the context of a world on a GPU if there is one and it pays, else on the CPU; no GPU is no error. why {size}:
// set to the reason for the CPU, for the world's description. CQ_OK, CQ_INVALID, or an error of the CPU.
static cq_status open_gpu_or_cpu(cq_world *world, char *why, size_t size) {
  const long long particles = (long long)world->model.particle_count;
  if (particles >= AUTO_CUDA_PARTICLES) {
    cq_status status = cq_cuda_load(&world->backend);
    if (!status) status = world->backend->context_create(&world->model, &world->context);
    if (!status || status == CQ_INVALID) return status;
    snprintf(why, size, "; no GPU was taken: %s", cq_error());
  } else {
    snprintf(why, size, "; a GPU pays from %d particles, there are %lld", (int)AUTO_CUDA_PARTICLES, particles);
  }
  world->backend = cq_backend_cpu();
  return world->backend->context_create(&world->model, &world->context);
}

// If a model needs a feature that only the CPU has: the sentence that says so, with a remedy; else NULL.
static const char *only_on_cpu(const cq_model *m) {
  if (cq_is_implicit(m)) return "implicit steps are made on the CPU only; take device = \"cpu\"";
  if (cq_keeps_unresolved(m))
    return "transfer = { decay } is there on the CPU only; take device = \"cpu\", or leave transfer out";
  if (cq_is_mixed(m))
    return "bodies of both formulations in one world are there on the CPU only; take device = \"cpu\", or one "
           "formulation for all";
  return NULL;
}

// Chooses the device of a world by its kind (CQ_DEVICE_...) and makes its context. CQ_OK, or an error: the device is
// missing, or lacks a feature that the model needs.
static cq_status open_device(cq_world *world, int32_t kind) {
  const char *refused = only_on_cpu(&world->model);
  if (refused && kind == CQ_DEVICE_CUDA) return cq_fail(CQ_UNSUPPORTED, "%s", refused);
  if (refused && kind == CQ_DEVICE_AUTO) kind = CQ_DEVICE_CPU;
  if (kind < CQ_DEVICE_CPU || kind > CQ_DEVICE_AUTO)
    return cq_fail(CQ_INVALID, "device is %d; it must be 0 (CPU), 1 (CUDA) or 2 (auto)", kind);
  char why[512] = "";
  cq_status status = CQ_OK;
  if (kind == CQ_DEVICE_AUTO) {
    status = open_gpu_or_cpu(world, why, sizeof why);
  } else {
    world->backend = cq_backend_cpu();
    if (kind == CQ_DEVICE_CUDA) status = cq_cuda_load(&world->backend);
    if (!status) status = world->backend->context_create(&world->model, &world->context);
  }
  if (!status)
    snprintf(world->description, sizeof world->description, "%s%s", world->backend->describe(world->context), why);
  return status;
}

// Sets out to a new world, checked and copied from its definition, with its device. CQ_OK, or an error with a sentence,
// and out stays.
cq_status cq_world_create(const cq_world_def *def, cq_world **out) {
  cq_world *world = cq_alloc(1, sizeof *world, "world");
  if (!world) return CQ_MEMORY;
  cq_status status = cq_model_create(def, &world->model);
  if (!status) status = open_device(world, def->device);
  if (status) {
    cq_model_destroy(&world->model);
    cq_free(world);
    return status;
  }
  *out = world;
  return CQ_OK;
}

// Frees a world and its rollouts; NULL: does nothing.
void cq_world_destroy(cq_world *world) {
  if (!world) return;
  while (world->rollouts) cq_rollout_destroy(world->rollouts);
  world->backend->context_destroy(world->context);
  cq_model_destroy(&world->model);
  cq_free(world);
}

// The Courant number of a world by its own values: of waves, viscosity and cables together. weighed 1: as if any weight
// of actuation were at least 1.
double cq_world_courant(const cq_world *world, int32_t weighed) {
  return cq_model_courant(&world->model, NULL, weighed);
}
// The rate at which particles lose the motion that the grid does not resolve [1/time] (E123); 0: they lose all of it in
// each step (APIC).
double cq_world_residual_decay(const cq_world *world) { return world->model.residual_decay; }
// The device of a world in a few words for people, with the reason where it was chosen automatically.
const char *cq_world_device(const cq_world *world) { return world->description; }
// The kind of device that a world is on: CQ_DEVICE_CPU or CQ_DEVICE_CUDA.
int32_t cq_world_device_kind(const cq_world *world) {
  return world->backend == cq_backend_cpu() ? CQ_DEVICE_CPU : CQ_DEVICE_CUDA;
}
// Fills gpu with the properties of GPU number `index`, from 0. CQ_OK, or CQ_DEVICE and a sentence that says why there
// is none.
cq_status cq_gpu_find(int32_t index, cq_gpu *gpu) { return cq_cuda_find_gpu(index, gpu); }

// Sets seconds to the time of each phase (CQ_PHASE_...) since the last reset, on the CPU as the first thread measures
// it. reset 1: times begin again at 0.
void cq_world_timers(cq_world *world, double seconds[14], int32_t reset) {
  _Static_assert(CQ_PHASE_COUNT == 14, "cq.h says how many timers there are");
  world->backend->timers(world->context, seconds, reset);
}

// The name of a phase of the timers (CQ_PHASE_...), "" for an unknown one.
const char *cq_phase_name(int32_t phase) {
  static const char *const names[CQ_PHASE_COUNT] = {"sort", "p2g", "grid", "g2p", "g2p_adj", "grid_adj", "p2g_adj",
                                                    "readout", "actuation", "stress", "tensors", "assembly",
                                                    "product", "solve"};
  return phase >= 0 && phase < CQ_PHASE_COUNT ? names[phase] : "";
}

// The size of a public struct in bytes, by its name, for Lua to compare with its own; -1 for an unknown one.
int64_t cq_struct_size(const char *name) {
  static const struct { const char *name; int64_t size; } sizes[] = {
      {"cq_material", sizeof(cq_material)}, {"cq_cable", sizeof(cq_cable)}, {"cq_chamber", sizeof(cq_chamber)},
      {"cq_field_info", sizeof(cq_field_info)},
      {"cq_law_info", sizeof(cq_law_info)}, {"cq_wall", sizeof(cq_wall)}, {"cq_world_def", sizeof(cq_world_def)},
      {"cq_integrator", sizeof(cq_integrator)},
      {"cq_rollout_def", sizeof(cq_rollout_def)}, {"cq_plan", sizeof(cq_plan)}, {"cq_health", sizeof(cq_health)},
      {"cq_readout", sizeof(cq_readout)}, {"cq_quantity_info", sizeof(cq_quantity_info)},
      {"cq_layout", sizeof(cq_layout)}, {"cq_product", sizeof(cq_product)}, {"cq_dense", sizeof(cq_dense)},
      {"cq_dense_grad", sizeof(cq_dense_grad)}, {"cq_text", sizeof(cq_text)},
      {"cq_layer", sizeof(cq_layer)}, {"cq_policy", sizeof(cq_policy)}, {"cq_convolution", sizeof(cq_convolution)},
      {"cq_channels", sizeof(cq_channels)}, {"cq_splat", sizeof(cq_splat)},
      {"cq_splat_points", sizeof(cq_splat_points)}, {"cq_sparse", sizeof(cq_sparse)},
      {"cq_neighbours", sizeof(cq_neighbours)},
      {"cq_neighbour_list", sizeof(cq_neighbour_list)}, {"cq_random", sizeof(cq_random)},
      {"cq_camera", sizeof(cq_camera)}, {"cq_plane", sizeof(cq_plane)}, {"cq_skin_def", sizeof(cq_skin_def)},
      {"cq_skin_info", sizeof(cq_skin_info)}, {"cq_mesh_info", sizeof(cq_mesh_info)},
      {"cq_solid_info", sizeof(cq_solid_info)}, {"cq_solid_wall_info", sizeof(cq_solid_wall_info)},
      {"cq_gpu", sizeof(cq_gpu)},
  };
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    if (!strcmp(sizes[k].name, name)) return sizes[k].size;
  return -1;
}
