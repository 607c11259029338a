// touch: do surfaces meet that steps on reference grids would let pass through each other? Nodes of the cells at the
// surface of bodies, which lie half a cell within, are put into cells of the world; two in one cell that are far apart
// at rest, or of different bodies, touch.
#include "../kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FAR = 4 };            // cells at rest, beyond which two nodes in one cell are no neighbours that were pressed

typedef struct {
  int64_t cell;              // of the world, -1: free
  int32_t place;             // on the rim
} bucket;

static int apart(const cq_scene *s, int32_t a, int32_t b) {
  const cq_reference *r = &s->reference;
  const int32_t p = r->rim_particle[a], q = r->rim_particle[b], dim = s->model->dim;
  if (r->body_of[p] != r->body_of[q]) return 1;
  const cq_body *body = &r->bodies[r->body_of[p]];
  int64_t x = r->rim[a] - body->first, y = r->rim[b] - body->first;
  for (int i = 0; i < dim; i++) {
    if (llabs(x / body->stride[i] - y / body->stride[i]) > FAR) return 1;
    x %= body->stride[i];
    y %= body->stride[i];
  }
  return 0;
}

// The cell of the world that place k of the surfaces lies in, -1 at its edge.
static int64_t cell_of(const cq_scene *s, int32_t k) {
  const cq_model *m = s->model;
  int64_t cell = 0;
  for (int i = 0; i < m->dim; i++) {
    const double at = s->reference.rim_place[(int64_t)k * m->dim + i] / m->dx;
    if (!(at >= 1 && at <= m->cells[i] - 1)) return -1;
    cell = cell * m->cells[i] + (int64_t)at;
  }
  return cell;
}

cq_status cq_reference_check_surfaces(cq_scene *s, int64_t step, int *edge) {
  const cq_reference *r = &s->reference;
  int64_t size = 16;
  while (size < 2 * (int64_t)r->rim_count) size *= 2;
  bucket *table = malloc((size_t)size * sizeof *table);
  if (!table) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
  for (int64_t k = 0; k < size; k++) table[k].cell = -1;
  s->kernels->reference->observe_rim(s, s->live);
  cq_status status = CQ_OK;
  for (int32_t k = 0; k < r->rim_count && !status; k++) {
    const int64_t cell = cell_of(s, k);
    int64_t at = (int64_t)((uint64_t)cell * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
    if (cell < 0) {
      *edge = 1;
      continue;
    }
    while (table[at].cell >= 0 && table[at].cell != cell) at = (at + 1) & (size - 1);
    if (table[at].cell < 0) {
      table[at] = (bucket){cell, k};
      continue;
    }
    if (!apart(s, k, table[at].place)) continue;
    s->health = (cq_health){.bad = CQ_HEALTH_TOUCHES,
                            .step = step,
                            .particle = r->rim_particle[k],
                            .value = r->rim_particle[table[at].place]};
    status = CQ_UNSTABLE;
  }
  free(table);
  return status;
}
