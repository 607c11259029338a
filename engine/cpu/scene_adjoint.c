// scene_adjoint: the adjoint of a scene between two control steps, and at its first state, where it passes to the last
// state of the scene that it goes on from.
#include "scene_adjoint.h"
#include <math.h>
#include <string.h>

// Multiplies the adjoint of the live state by a factor (0 clears NaN too) between control steps, by all workers. CQ_OK.
cq_status cq_scene_discount_adj(cq_scene *s, const cq_worker *worker, double factor) {
  int begin, end;
  cq_worker_share(worker, s->chunks, &begin, &end);
  s->kernels->discount_adj(s, begin, end, factor);
  if (cq_is_reference(s->model) && worker->rank == 0) s->kernels->reference->discount(s, factor);
  return CQ_OK;
}

// Returns the norm of the adjoint of the live state, and where that is larger than `most` scales the adjoint to the
// norm `most`. Called by one thread, so that the sum has one order.
double cq_scene_limit_adj(cq_scene *s, double most) {
  const cq_reference_kernels *reference = cq_is_reference(s->model) ? s->kernels->reference : NULL;
  const double norm = sqrt(s->kernels->adj_square(s) + (reference ? reference->square(s) : 0));
  if (!(norm > most)) return norm;
  s->kernels->discount_adj(s, 0, s->chunks, most / norm);
  if (reference) reference->discount(s, most / norm);
  return norm;
}

// ---- at the first state ---------------------------------------------------------------------------------------------

// Adds arrays of `reals` numbers of the scene's precision: to += from. A dual number of a test is two doubles.
static void add_reals(const cq_scene *s, void *to, const void *from, int64_t reals) {
  const int64_t size = s->kernels->real_bytes, count = reals * size / (size == 4 ? 4 : 8);
  for (int64_t k = 0; k < count; k++) {
    if (size == 4) ((float *)to)[k] += ((const float *)from)[k];
    else ((double *)to)[k] += ((const double *)from)[k];
  }
}

// At step 0 of s: adds `from` {chunks, fields, 16}, the adjoint of particles of s, to `to`, that of the scene `before`
// in whose last state s began, and clears it. before NULL: only clears. Particles are looked up, since a sort before
// the first step of s may have changed their order.
static void pass_particles(const cq_scene *s, const cq_scene *before, void *to, void *from, int32_t fields) {
  const int64_t size = s->kernels->real_bytes;
  for (int64_t p = 0; p < s->model->particle_count && before; p++) {
    const int64_t a = before->adj_arrangement->slot[p], b = s->adj_arrangement->slot[p];
    for (int32_t f = 0; f < fields; f++)
      add_reals(s, (char *)to + ((a / CQ_CHUNK * fields + f) * CQ_CHUNK + a % CQ_CHUNK) * size,
                (const char *)from + ((b / CQ_CHUNK * fields + f) * CQ_CHUNK + b % CQ_CHUNK) * size, 1);
  }
  memset(from, 0, (size_t)((int64_t)s->chunks * CQ_CHUNK * fields * size));
}

// At step 0 of a scene that began in the live state of another one (cq_scene_begin_from), by one worker: adds the
// adjoint of its first state to that of the live state of `from`, and clears it. from NULL: only clears.
void cq_scene_pass_adjoint(cq_scene *s, cq_scene *from) {
  if (cq_is_reference(s->model)) {
    cq_worker alone = {.size = 1};
    cq_reference_settle_adjoint(s, &alone);
    const int64_t reals = 2 * s->model->dim * s->reference.node_count;
    if (from) add_reals(s, from->reference.adj, s->reference.adj, reals);
    memset(s->reference.adj, 0, (size_t)(reals * s->kernels->real_bytes));
    if (!cq_is_mixed(s->model)) return;
  }
  pass_particles(s, from, from ? from->adj : NULL, s->adj, cq_scene_fields(s));
  if (s->internal_adj)
    pass_particles(s, from, from ? from->internal_adj : NULL, s->internal_adj, s->model->internal_count);
}
