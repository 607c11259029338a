// touch: do surfaces meet that steps on reference grids would let pass through each other? Nodes of the cells at the
// surface of bodies, which lie half a cell within, are put into cells of the world, with places between them where the
// body is stretched; two in one cell that are far apart at rest, or of different bodies, touch.
#include "../kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  FAR = 4,                   // cells at rest, beyond which two nodes in one cell are no neighbours that were pressed
  MOST = 16,       // places along an edge
};
static const double allowed_stretch = 0.25;   // of an edge, in cells, up to which one place is enough

typedef struct {
  int64_t cell;              // of the world, -1: free
  int32_t place;             // on the rim
} bucket;

// May these two surface particles touch? Not if they are neighbours in the undeformed body.
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

// The cell of the world that a place lies in, -1 at its edge.
static int64_t cell_of(const cq_model *m, const double *x) {
  int64_t cell = 0;
  for (int i = 0; i < m->dim; i++) {
    const double at = x[i] / m->dx;
    if (!(at >= 1 && at <= m->cells[i] - 1)) return -1;
    cell = cell * m->cells[i] + (int64_t)at;
  }
  return cell;
}

// Places within the cell at rest of a node, as far apart as cells of the world: one along an edge that is not
// stretched.
typedef struct {
  const double *node, *edge;  // {dim}, {dim, dim}
  int32_t count[3], all;
} places;

static places places_of(const cq_scene *s, int32_t k) {
  const int32_t dim = s->model->dim;
  places p = {.node = s->reference.rim_place + (int64_t)k * dim * (1 + dim), .count = {1, 1, 1}, .all = 1};
  p.edge = p.node + dim;
  for (int j = 0; j < dim; j++) {
    double square = 0;
    for (int i = 0; i < dim; i++) square += p.edge[j * dim + i] * p.edge[j * dim + i];
    const double cells = sqrt(square) / s->model->dx;
    p.count[j] = cells < MOST ? (int32_t)ceil(cells - allowed_stretch) : MOST;
    if (p.count[j] < 1) p.count[j] = 1;
    p.all *= p.count[j];
  }
  return p;
}

static void place_at(const cq_model *m, const places *p, int32_t k, double x[3]) {
  for (int i = 0; i < m->dim; i++) x[i] = p->node[i];
  for (int j = 0; j < m->dim; k /= p->count[j++])
    for (int i = 0; i < m->dim; i++) x[i] += ((k % p->count[j] + 0.5) / p->count[j] - 0.5) * p->edge[j * m->dim + i];
}

// Enters place k of the surfaces into a cell; returns the place that it touches there, or -1.
static int32_t enter(const cq_scene *s, bucket *table, int64_t size, int64_t cell, int32_t k) {
  int64_t at = (int64_t)((uint64_t)cell * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
  while (table[at].cell >= 0 && table[at].cell != cell) at = (at + 1) & (size - 1);
  if (table[at].cell < 0) table[at] = (bucket){cell, k};
  return apart(s, k, table[at].place) ? table[at].place : -1;
}

cq_status cq_reference_check_surfaces(cq_scene *s, int64_t step, int *edge) {
  const cq_reference *r = &s->reference;
  int64_t size = 16, count = 0;
  s->kernels->reference->observe_rim(s, s->live);
  for (int32_t k = 0; k < r->rim_count; k++) count += places_of(s, k).all;
  while (size < 2 * count) size *= 2;
  bucket *table = malloc((size_t)size * sizeof *table);
  if (!table) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
  for (int64_t k = 0; k < size; k++) table[k].cell = -1;
  cq_status status = CQ_OK;
  for (int32_t k = 0; k < r->rim_count && !status; k++) {
    const places p = places_of(s, k);
    for (int32_t n = 0; n < p.all && !status; n++) {
      double x[3];
      place_at(s->model, &p, n, x);
      const int64_t cell = cell_of(s->model, x);
      if (cell < 0) *edge = 1;
      const int32_t other = cell < 0 ? -1 : enter(s, table, size, cell, k);
      if (other < 0) continue;
      s->health = (cq_health){.bad = CQ_HEALTH_TOUCHES,
                              .step = step,
                              .particle = r->rim_particle[k],
                              .value = r->rim_particle[other]};
      status = CQ_UNSTABLE;
    }
  }
  free(table);
  return status;
}
