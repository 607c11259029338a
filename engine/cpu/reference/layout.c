// layout: where particles lie on the grids of their bodies, and which of them are computed together.
//
// A surface lies midway between two nodes where it can: of a lattice of particles all surfaces do whose distance from
// the lowest one is a whole number of cells. The outermost nodes then stand half a cell outside, by which walls are
// moved back (node.inl). Along one axis, nodes (o), particles (.) and the cells around the inner nodes:
//
//    o  |  .  o  .  |  .  o  .  |  o        two particles a cell; the surface is at the outer bars
#include "../kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double lattice_tolerance = 1e-6;   // cells

// ---- grids ----------------------------------------------------------------------------------------------------------

// how far a body was moved from where the world was made with it: the mean over its particles
static void mean_shift(const cq_scene *s, const double *positions, double (*shift)[3]) {
  const cq_reference *r = &s->reference;
  const int32_t dim = s->model->dim;
  memset(shift, 0, (size_t)r->body_count * sizeof *shift);
  for (int64_t p = 0; p < s->model->particle_count; p++)
    for (int i = 0; i < dim; i++)
      shift[r->body_of[p]][i] += (positions[p * dim + i] - s->model->position[p * dim + i]);
  for (int32_t b = 0; b < r->body_count; b++)
    for (int i = 0; i < dim; i++) shift[b][i] /= (double)r->bodies[b].particles;
}

// The first node of each body stands half a cell below the surface of its lowest particle, by the positions that the
// world was made with.
static cq_status find_bodies(cq_scene *s) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  const int32_t dim = m->dim;
  r->body_count = m->body_count;
  r->bodies = cq_alloc((size_t)r->body_count, sizeof *r->bodies, "grids of bodies");
  r->body_of = cq_alloc((size_t)m->particle_count, sizeof *r->body_of, "grids of bodies");
  if (!r->bodies || !r->body_of) return CQ_MEMORY;
  for (int32_t b = 0; b < r->body_count; b++)
    for (int i = 0; i < 3; i++) r->bodies[b].origin[i] = i < dim ? INFINITY : 0;
  for (int64_t p = 0; p < m->particle_count; p++) {
    cq_body *body = &r->bodies[r->body_of[p] = m->body[p]];
    const double side = dim == 2 ? sqrt(m->volume[p]) : cbrt(m->volume[p]);
    body->particles++;
    for (int i = 0; i < dim; i++)
      body->origin[i] = fmin(body->origin[i], m->position[p * dim + i] - side / 2 - m->dx / 2);
  }
  return CQ_OK;
}

// The cell that a particle lies in, counted from the origin of its body, and where it is from the cell's node. The
// origin must stay until all particles have their cells: where one lies on the edge of two, other numbers may put it
// into the other.
static void place_in(const cq_model *m, const cq_body *body, const double shift[3], const double *x, int64_t cell[3],
                     double fraction[3]) {
  cell[0] = cell[1] = cell[2] = 0;
  for (int i = 0; i < m->dim; i++) {
    const double at = (x[i] - body->origin[i] - shift[i]) / m->dx;
    cell[i] = (int64_t)floor(at + 0.5);
    fraction[i] = at - (double)cell[i];
  }
}

// Nodes of every body, around the cells of its particles. Cells begin at 1: a particle that positions of a rollout put
// below the first cell makes the grid begin earlier.
static cq_status size_grids(cq_scene *s, const double *positions, double (*shift)[3]) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  int64_t total = 0;
  for (int32_t b = 0; b < r->body_count; b++) {
    cq_body *body = &r->bodies[b];
    int64_t low[3] = {INT64_MAX, INT64_MAX, INT64_MAX}, high[3] = {INT64_MIN, INT64_MIN, INT64_MIN}, nodes = 1;
    for (int64_t p = 0; p < m->particle_count; p++) {
      int64_t cell[3];
      double fraction[3];
      if (r->body_of[p] != b) continue;
      place_in(m, body, shift[b], positions + p * m->dim, cell, fraction);
      for (int i = 0; i < 3; i++) {
        if (cell[i] < low[i]) low[i] = cell[i];
        if (cell[i] > high[i]) high[i] = cell[i];
      }
    }
    for (int i = 0; i < 3; i++) {
      const int used = i < m->dim;
      body->low[i] = used ? low[i] - 1 : 0;
      body->count[i] = used ? (int32_t)(high[i] - low[i] + 3) : 1;
      // not a multiple of sixteen, for rows a power of two apart share cache sets
      if (i == m->dim - 1 && body->count[i] % CQ_REFERENCE_VECTOR == 0) body->count[i]++;
      nodes *= body->count[i];
    }
    body->stride[m->dim - 1] = 1;
    for (int i = m->dim - 1; i-- > 0;) body->stride[i] = body->stride[i + 1] * body->count[i + 1];
    body->first = total;
    // a vector of cells reaches beyond the last one
    total += nodes + body->stride[0] + body->count[m->dim - 1] + 2 * CQ_REFERENCE_VECTOR;
    if (total >= INT32_MAX)
      return cq_fail(CQ_MEMORY,
                     "out of memory: the boxes around all bodies hold %.3g grid nodes, at most %.3g are possible",
                     (double)total, (double)INT32_MAX);
  }
  r->node_count = (total + CQ_REFERENCE_VECTOR - 1) / CQ_REFERENCE_VECTOR * CQ_REFERENCE_VECTOR;
  return CQ_OK;
}

// ---- cells ----------------------------------------------------------------------------------------------------------

// what the layout is made from
typedef struct {
  int64_t *cell;             // {n} node of the cell of each particle
  int32_t *start, *list;     // {nodes + 1}, {n} particles by cell, in the user's order
  uint8_t *corner;           // {n} place in a lattice of two a side, by bits; 255: in none
} sorted;

static void sorted_free(sorted *o) {
  free(o->cell);
  free(o->start);
  free(o->list);
  free(o->corner);
}

static cq_status sort_cells(cq_scene *s, const double *positions, double (*shift)[3], sorted *o) {
  const cq_model *m = s->model;
  const cq_reference *r = &s->reference;
  const size_t n = (size_t)m->particle_count;
  o->cell = malloc(n * sizeof *o->cell);
  o->start = calloc((size_t)r->node_count + 2, sizeof *o->start);
  o->list = malloc(n * sizeof *o->list);
  o->corner = malloc(n);
  if (!o->cell || !o->start || !o->list || !o->corner) return cq_fail(CQ_MEMORY, "out of memory: cells of particles");
  for (int64_t p = 0; p < m->particle_count; p++) {
    const cq_body *body = &r->bodies[r->body_of[p]];
    int64_t cell[3];
    double fraction[3];
    place_in(m, body, shift[r->body_of[p]], positions + p * m->dim, cell, fraction);
    o->cell[p] = body->first;
    o->corner[p] = 0;
    for (int i = 0; i < m->dim; i++) {
      o->cell[p] += (cell[i] - body->low[i]) * body->stride[i];
      const int upper = fraction[i] > 0;
      if (fabs(fraction[i] - (upper ? 0.25 : -0.25)) > lattice_tolerance) o->corner[p] = UINT8_MAX;
      if (o->corner[p] != UINT8_MAX) o->corner[p] = (uint8_t)(2 * o->corner[p] + upper);
    }
    o->start[o->cell[p] + 2]++;
  }
  for (int64_t k = 0; k <= r->node_count; k++) o->start[k + 1] += o->start[k];
  for (int64_t p = 0; p < m->particle_count; p++) o->list[o->start[o->cell[p] + 1]++] = (int32_t)p;
  for (int32_t b = 0; b < r->body_count; b++)
    for (int i = 0; i < m->dim; i++) r->bodies[b].origin[i] += (double)r->bodies[b].low[i] * m->dx;
  return CQ_OK;
}

// Sixteen cells from a node on: how many chunks they need; lattice: each particle at a corner of its own, and no corner
// empty in all of them.
static int32_t chunks_of(const cq_model *m, const sorted *o, int64_t node, int64_t last, int32_t *lattice) {
  const int32_t corners = 1 << m->dim;
  uint32_t seen = 0;
  int32_t most = 0;
  *lattice = 1;
  for (int64_t c = node; c < node + CQ_CHUNK && c < last; c++) {
    uint32_t here = 0;
    if (o->start[c + 1] - o->start[c] > most) most = o->start[c + 1] - o->start[c];
    for (int32_t k = o->start[c]; k < o->start[c + 1]; k++) {
      const uint8_t corner = o->corner[o->list[k]];
      if (corner == UINT8_MAX || here >> corner & 1)
        *lattice = 0;
      else
        here |= 1u << corner;
    }
    seen |= here;
  }
  if (seen != (1u << corners) - 1) *lattice = 0;
  return *lattice ? corners : most;
}

static int64_t end_of(const cq_reference *r, int32_t body) {
  return body + 1 < r->body_count ? r->bodies[body + 1].first : r->node_count;
}

// All vectors of cells, in the order of their nodes; into r->cells where that is not NULL. Returns how many chunks.
static int32_t make_cells(const cq_model *m, cq_reference *r, const sorted *o) {
  int32_t chunks = 0;
  r->cells_count = 0;
  for (int32_t b = 0; b < r->body_count; b++)
    for (int64_t node = r->bodies[b].first, end = end_of(r, b); node < end; node++) {
      if (o->start[node + 1] == o->start[node]) continue;
      int32_t lattice;
      const int32_t needed = chunks_of(m, o, node, end, &lattice);
      if (r->cells)
        r->cells[r->cells_count] =
            (cq_cells){.node = node, .body = b, .chunk = chunks, .chunks = needed, .lattice = lattice, .kind = -1};
      r->cells_count++;
      chunks += needed;
      node += CQ_CHUNK - 1;
    }
  return chunks;
}

static void fill_order(cq_reference *r, const sorted *o) {
  for (int64_t slot = 0; slot < (int64_t)r->chunks * CQ_CHUNK; slot++) r->order[slot] = -1;
  for (int32_t k = 0; k < r->cells_count; k++) {
    const cq_cells *cells = &r->cells[k];
    for (int32_t c = cells->chunk; c < cells->chunk + cells->chunks; c++) r->cells_of_chunk[c] = k;
    for (int lane = 0; lane < CQ_CHUNK; lane++) {
      const int64_t c = cells->node + lane;
      if (c >= r->node_count) break;
      for (int32_t at = o->start[c]; at < o->start[c + 1]; at++) {
        const int32_t p = o->list[at], chunk = cells->lattice ? o->corner[p] : at - o->start[c];
        if (r->body_of[p] == cells->body) r->order[(int64_t)(cells->chunk + chunk) * CQ_CHUNK + lane] = p;
      }
    }
  }
}

// ---- ranges and nodes -----------------------------------------------------------------------------------------------

// Ranges of cells with about as many chunks each. A range reaches one plane of nodes further on both sides, so that one
// of few planes would give more to nodes that others have too than to its own.
static void split_cells(cq_scene *s) {
  enum { PLANES = 3 };
  cq_reference *r = &s->reference;
  int64_t planes = 0;
  for (int32_t b = 0; b < r->body_count; b++) planes += r->bodies[b].count[0];
  int32_t ranges = r->chunks / CQ_RANGE_CHUNKS;
  if (ranges > planes / PLANES) ranges = (int32_t)(planes / PLANES);
  if (ranges > CQ_RANGES_MAX) ranges = CQ_RANGES_MAX;
  if (ranges > r->cells_count) ranges = r->cells_count;
  if (ranges < 1) ranges = 1;
  s->chunks = r->chunks;
  s->ranges = ranges;
  int32_t k = 0;
  for (int32_t range = 0; range <= ranges; range++) {
    const int64_t until = (int64_t)r->chunks * range / ranges;
    while (k < r->cells_count && r->cells[k].chunk < until) k++;
    r->cells_start[range] = range == ranges ? r->cells_count : k;
    s->range_start[range] = range == ranges ? r->chunks : k < r->cells_count ? r->cells[k].chunk : r->chunks;
  }
}

static void find_windows(cq_scene *s) {
  cq_reference *r = &s->reference;
  for (int32_t range = 0; range < s->ranges; range++) {
    int64_t low = INT64_MAX, high = 0;
    for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) {
      const cq_body *body = &r->bodies[r->cells[k].body];
      int64_t reach = 1;
      for (int i = 0; i < s->model->dim - 1; i++) reach += body->stride[i];
      if (r->cells[k].node - reach < low) low = r->cells[k].node - reach;
      if (r->cells[k].node + reach + CQ_CHUNK > high) high = r->cells[k].node + reach + CQ_CHUNK;
    }
    r->window[range] = low;
    r->window_size[range] = high > low ? high - low : 0;
  }
}

// {nodes} marks all nodes around a cell
static void mark_around(const cq_model *m, const cq_body *body, int64_t cell, int32_t *mark, int32_t value) {
  for (int i = -1; i <= 1; i++)
    for (int j = m->dim == 3 ? -1 : 0; j <= (m->dim == 3 ? 1 : 0); j++)
      for (int k = -1; k <= 1; k++) {
        int32_t *to = &mark[cell + i * body->stride[0] + j * body->stride[1] + k];
        if (m->dim == 2) to = &mark[cell + i * body->stride[0] + k];
        // of repeats the first group's stays
        if (!*to) *to = value;
      }
}

// every node that a pinned particle touches
static void mark_pins(const cq_scene *s, const sorted *o) {
  const cq_model *m = s->model;
  const cq_reference *r = &s->reference;
  for (int32_t group = 0; group < m->contact_count - m->wall_count; group++)
    for (int64_t k = 0; k < m->pin_count; k++)
      if ((m->pin_group ? m->pin_group[k] : 0) == group)
        mark_around(m, &r->bodies[r->body_of[m->pins[k]]], o->cell[m->pins[k]], r->pin,
                    m->wall_count + group - m->contact_count);
}

static cq_status find_nodes(cq_scene *s, const sorted *o) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  int32_t *mark = calloc((size_t)r->node_count, sizeof *mark);
  if (!mark) return cq_fail(CQ_MEMORY, "out of memory: nodes of the bodies");
  for (int64_t p = 0; p < m->particle_count; p++) mark_around(m, &r->bodies[r->body_of[p]], o->cell[p], mark, 1);
  mark_pins(s, o);
  r->nodes_count = 0;
  for (int64_t node = 0; node < r->node_count; node += CQ_REFERENCE_VECTOR) {
    cq_nodes here = {.node = node};
    int any = 0;
    for (int l = 0; l < CQ_REFERENCE_VECTOR; l++) {
      any |= mark[node + l];
      here.pinned |= r->pin[node + l] != 0;
    }
    if (!any) continue;
    // the arrays of a slab are shifted by a node
    for (int32_t range = 0; range < s->ranges; range++)
      if (node - 1 < r->window[range] + r->window_size[range] && node + CQ_REFERENCE_VECTOR + 1 > r->window[range])
        here.ranges |= 1u << range;
    r->nodes[r->nodes_count++] = here;
  }
  for (int32_t block = 0; block <= s->ranges; block++)
    r->nodes_start[block] = (int32_t)((int64_t)r->nodes_count * block / s->ranges);
  free(mark);
  return CQ_OK;
}

// Cells that have an empty one beside them: others may come near these alone.
static void find_rim(cq_scene *s, const sorted *o) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  r->rim_count = 0;
  for (int32_t k = 0; k < r->cells_count; k++)
    for (int64_t c = r->cells[k].node; c < r->cells[k].node + CQ_CHUNK && c < r->node_count; c++) {
      const cq_body *body = &r->bodies[r->cells[k].body];
      int open = 0;
      if (o->start[c + 1] == o->start[c]) continue;
      for (int i = 0; i < m->dim; i++)
        for (int side = -1; side <= 1; side += 2) {
          const int64_t beside = c + side * body->stride[i];
          open |= o->start[beside + 1] == o->start[beside];
        }
      if (!open) continue;
      r->rim[r->rim_count] = c;
      r->rim_particle[r->rim_count++] = o->list[o->start[c]];
    }
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void *fresh(void **array, int64_t count, size_t size, const char *what) {
  cq_free(*array);
  return *array = cq_alloc((size_t)count, size, what);
}

// Allocates the arrays of the layout, whose sizes are known by now.
static cq_status reserve(cq_scene *s) {
  cq_reference *r = &s->reference;
  const int64_t slots = (int64_t)r->chunks * CQ_CHUNK, vectors = r->node_count / CQ_REFERENCE_VECTOR;
  const int ok = fresh((void **)&r->order, slots, sizeof *r->order, "order of particles") &&
                 fresh((void **)&r->cells, r->cells_count, sizeof *r->cells, "cells of bodies") &&
                 fresh((void **)&r->cells_of_chunk, r->chunks, sizeof *r->cells_of_chunk, "cells of bodies") &&
                 fresh((void **)&r->nodes, vectors, sizeof *r->nodes, "nodes of bodies") &&
                 fresh((void **)&r->pin, r->node_count, sizeof *r->pin, "nodes of bodies") &&
                 fresh((void **)&r->rim, s->model->particle_count, sizeof *r->rim, "surfaces of bodies") &&
                 fresh((void **)&r->rim_particle, s->model->particle_count, sizeof *r->rim_particle,
                       "surfaces of bodies") &&
                 fresh((void **)&r->rim_place, s->model->particle_count * s->model->dim * (1 + s->model->dim),
                       sizeof *r->rim_place, "surfaces of bodies") &&
                 fresh((void **)&r->positions, s->model->particle_count * s->model->dim, sizeof *r->positions,
                       "positions of particles");
  return ok ? CQ_OK : CQ_MEMORY;
}

static cq_status lay_out(cq_scene *s, const double *positions, double (*shift)[3], sorted *o) {
  cq_reference *r = &s->reference;
  mean_shift(s, positions, shift);
  cq_status status = size_grids(s, positions, shift);
  if (!status) status = sort_cells(s, positions, shift, o);
  if (status) return status;
  cq_free(r->cells);
  r->cells = NULL;
  r->chunks = make_cells(s->model, r, o);
  status = reserve(s);
  if (status) return status;
  make_cells(s->model, r, o);
  fill_order(r, o);
  split_cells(s);
  find_windows(s);
  status = find_nodes(s, o);
  find_rim(s, o);
  memcpy(r->positions, positions, (size_t)(s->model->particle_count * s->model->dim) * sizeof *positions);
  return status;
}

cq_status cq_reference_layout(cq_scene *s, const double *positions) {
  sorted o = {0};
  cq_status status = s->reference.bodies ? CQ_OK : find_bodies(s);
  double(*shift)[3] = status ? NULL : malloc((size_t)s->reference.body_count * sizeof *shift);
  if (!status && !shift) status = cq_fail(CQ_MEMORY, "out of memory: grids of bodies");
  if (!status) status = lay_out(s, positions, shift, &o);
  sorted_free(&o);
  free(shift);
  return status;
}
