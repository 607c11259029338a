// between: what is asked of a scene between two rollouts, and of its adjoint between two control steps.
#include "between.h"
#include <math.h>
#include <string.h>

int cq_scene_has_same_constants(const cq_scene *s, const cq_scene *from) {
  const uint64_t wanted = cq_constant_bits() | cq_bit(CQ_FIELD_MASS) | cq_bit(CQ_FIELD_VOLUME);
  for (int32_t f = 0; f < CQ_FIELD_COUNT; f++) {
    const double *a = s->values.value[f], *b = from->values.value[f];
    if (!(wanted >> f & 1) || a == b) continue;
    const int64_t count = s->model->particle_count * (cq_field_describe(f)->rank ? s->model->dim : 1);
    if (!a || !b || memcmp(a, b, (size_t)count * sizeof *a) != 0) return 0;
  }
  return 1;
}

cq_status cq_scene_discount_adj(cq_scene *s, const cq_worker *worker, double factor) {
  int begin, end;
  cq_worker_share(worker, s->chunks, &begin, &end);
  s->kernels->discount_adj(s, begin, end, factor);
  if (cq_is_reference(s->model) && worker->rank == 0) s->kernels->reference->discount(s, factor);
  return CQ_OK;
}

double cq_scene_limit_adj(cq_scene *s, double most) {
  const cq_reference_kernels *reference = cq_is_reference(s->model) ? s->kernels->reference : NULL;
  const double norm = sqrt(s->kernels->adj_square(s) + (reference ? reference->square(s) : 0));
  if (!(norm > most)) return norm;
  s->kernels->discount_adj(s, 0, s->chunks, most / norm);
  if (reference) reference->discount(s, most / norm);
  return norm;
}
