// layout: where particles lie on the grids of their bodies (world/grids.h), and which share a SIMD vector, a range.
#include "../kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- grids ----------------------------------------------------------------------------------------------------------

// Creates the reference grid of each body of the model, without nodes. CQ_OK or an error.
static cq_status find_bodies(cq_scene *s) {
  s->reference.body_count = s->model->body_count;
  s->reference.body_of = s->model->body;
  return cq_grids_create(s->model, &s->reference.bodies);
}

// Sets size and place of each body's grid for positions {n, dim}, and numbers the nodes of all grids one after another.
// CQ_OK, CQ_MEMORY where there are too many, or an error of a body.
static cq_status size_grids(cq_scene *s, const double *positions) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  int64_t total = 0;
  const cq_status status = cq_grids_size(m, positions, r->bodies);
  if (status) return status;
  for (int32_t b = 0; b < r->body_count; b++) {
    cq_body *body = &r->bodies[b];
    int32_t *last = &body->count[m->dim - 1];
    // not a multiple of sixteen, for rows a power of two apart share cache sets
    if (*last % CQ_REFERENCE_VECTOR == 0) (*last)++;
    body->stride[m->dim - 1] = 1;
    for (int i = m->dim - 1; i-- > 0;) body->stride[i] = body->stride[i + 1] * body->count[i + 1];
    body->first = total;
    // a vector of cells reaches beyond the last one
    total += body->stride[0] * body->count[0] + body->stride[0] + *last + 2 * CQ_REFERENCE_VECTOR;
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

// Frees the lists of particles by cell.
static void sorted_free(sorted *o) {
  free(o->cell);
  free(o->start);
  free(o->list);
  free(o->corner);
}

// Finds the cell of each particle, at positions {n, dim}, on its body's grid, and its corner in the cell, and sorts the
// particles by cell: fills o. CQ_OK or CQ_MEMORY.
static cq_status sort_cells(cq_scene *s, const double *positions, sorted *o) {
  const cq_model *m = s->model;
  const cq_reference *r = &s->reference;
  const size_t n = (size_t)m->particle_count;
  o->cell = malloc(n * sizeof *o->cell);
  o->start = calloc((size_t)r->node_count + 2, sizeof *o->start);
  o->list = malloc(n * sizeof *o->list);
  o->corner = malloc(n);
  if (!o->cell || !o->start || !o->list || !o->corner) return cq_fail(CQ_MEMORY, "out of memory: cells of particles");
  for (int64_t p = 0; p < m->particle_count; p++) {
    if (r->body_of[p] < 0) continue;
    const cq_body *body = &r->bodies[r->body_of[p]];
    int64_t cell[3];
    double fraction[3];
    cq_grids_cell(m, body, positions + p * m->dim, cell, fraction);
    const int32_t corner = cq_grids_corner(m->dim, fraction);
    o->cell[p] = body->first;
    o->corner[p] = corner < 0 ? UINT8_MAX : (uint8_t)corner;
    for (int i = 0; i < m->dim; i++) o->cell[p] += (cell[i] - body->low[i]) * body->stride[i];
    o->start[o->cell[p] + 2]++;
  }
  for (int64_t k = 0; k <= r->node_count; k++) o->start[k + 1] += o->start[k];
  for (int64_t p = 0; p < m->particle_count; p++)
    if (r->body_of[p] >= 0) o->list[o->start[o->cell[p] + 1]++] = (int32_t)p;
  cq_grids_settle(m, r->bodies);
  return CQ_OK;
}

// eight cells along the last axis
typedef struct {
  int64_t node;              // of the first
  int32_t chunks, lattice;
} run;

// The number of chunks that the particles of a run need, eight cells along the last axis from `node` on: the most
// particles in a cell, as a chunk holds one of each cell; in a lattice one for each corner. last: one past the body's
// last node. Sets `lattice` to 1 if each particle is at a corner of its own in a lattice of two along each axis, and no
// corner is empty in all cells, else 0.
static int32_t chunks_of(const cq_model *m, const sorted *o, int64_t node, int64_t last, int32_t *lattice) {
  const int32_t corners = 1 << m->dim;
  uint32_t seen = 0;
  int32_t most = 0;
  *lattice = 1;
  for (int64_t c = node; c < node + CQ_REFERENCE_RUN && c < last; c++) {
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

// One past the last node of a body, given by its number.
static int64_t end_of(const cq_reference *r, int32_t body) {
  return body + 1 < r->body_count ? r->bodies[body + 1].first : r->node_count;
}

// Adds a SIMD vector of cells, from run a (eight cells in a row) or two runs a and b (NULL: none), to the count, and to
// r->cells where that is allocated. Lanes without a run get the nodes beside run a. chunk: the vector's first one;
// returns the first chunk after it.
static int32_t add_cells(cq_reference *r, int32_t body, int32_t chunk, const run *a, const run *b) {
  const int32_t chunks = b && b->chunks > a->chunks ? b->chunks : a->chunks;
  if (r->cells)
    r->cells[r->cells_count] =
        (cq_cells){.node = {a->node, b ? b->node : a->node + CQ_REFERENCE_RUN}, .body = body, .chunk = chunk,
                   .chunks = chunks, .runs = b ? 2 : 1, .lattice = a->lattice, .kind = -1};
  r->cells_count++;
  return chunk + chunks;
}

// runs that wait to be paired with a run of as many chunks, the oldest first
typedef struct {
  run runs[32];
  int count;
} queue;

// The index in a queue of the run of cells that is most like `like`: both a lattice or both none, and of about as many
// chunks, or, if exactly is 1, of as many; -1 if there is none.
static int alike(const queue *q, const run *like, int exactly) {
  int best = -1;
  for (int k = 0; k < q->count; k++) {
    const int off = abs(q->runs[k].chunks - like->chunks);
    if (q->runs[k].lattice != like->lattice || (exactly && off)) continue;
    if (best < 0 || off < abs(q->runs[best].chunks - like->chunks)) best = k;
  }
  return best;
}

// Removes run k of cells from a queue, and returns it.
static run take(queue *q, int k) {
  const run taken = q->runs[k];
  q->count--;
  memmove(&q->runs[k], &q->runs[k + 1], (size_t)(q->count - k) * sizeof *q->runs);
  return taken;
}

// Pairs the oldest run of cells in a queue with the run that is most like it, if there is any, removes both, and adds
// their SIMD vector. body: the runs'; chunk: the vector's first one. Returns the first chunk after it.
static int32_t add_oldest(cq_reference *r, int32_t body, int32_t chunk, queue *q) {
  const run first = take(q, 0);
  const int k = alike(q, &first, 0);
  if (k < 0) return add_cells(r, body, chunk, &first, NULL);
  const run other = take(q, k);
  return add_cells(r, body, chunk, &first, &other);
}

// Pairs all runs of eight cells into SIMD vectors, about in the order of their nodes, and counts these; stores them in
// r->cells where that is allocated: called once to count, once to store. A run is paired with one of as many chunks
// that is not far behind, for empty lanes cost as much as full ones. Returns the number of chunks.
static int32_t make_cells(const cq_model *m, cq_reference *r, const sorted *o) {
  enum { FAR = 256 };        // nodes, beside two planes
  int32_t chunks = 0;
  r->cells_count = 0;
  for (int32_t b = 0; b < r->body_count; b++) {
    queue q = {.count = 0};
    for (int64_t node = r->bodies[b].first, end = end_of(r, b); node < end; node++) {
      if (o->start[node + 1] == o->start[node]) continue;
      run here = {.node = node};
      here.chunks = chunks_of(m, o, node, end, &here.lattice);
      while (q.count == (int)(sizeof q.runs / sizeof *q.runs) ||
             (q.count && node - q.runs[0].node > FAR + 2 * r->bodies[b].stride[0]))
        chunks = add_oldest(r, b, chunks, &q);
      const int k = alike(&q, &here, 1);
      if (k < 0) {
        q.runs[q.count++] = here;
      } else {
        const run other = take(&q, k);
        chunks = add_cells(r, b, chunks, &other, &here);
      }
      node += CQ_REFERENCE_RUN - 1;
    }
    while (q.count) chunks = add_oldest(r, b, chunks, &q);
  }
  return chunks;
}

// Sets r->order to the particle of each slot, by chunks of the vectors of cells, -1 for an empty slot, and
// r->cells_of_chunk to the vector of each chunk; marks lanes with particles in r->used and in `used` of r->cells.
static void fill_order(cq_reference *r, const sorted *o) {
  for (int64_t slot = 0; slot < (int64_t)r->chunks * CQ_CHUNK; slot++) r->order[slot] = -1;
  for (int32_t k = 0; k < r->cells_count; k++) {
    cq_cells *cells = &r->cells[k];
    for (int32_t c = cells->chunk; c < cells->chunk + cells->chunks; c++) r->cells_of_chunk[c] = k;
    for (int lane = 0; lane < cells->runs * CQ_REFERENCE_RUN; lane++) {
      const int64_t c = cq_cells_node(cells, lane);
      if (c >= r->node_count) continue;
      for (int32_t at = o->start[c]; at < o->start[c + 1]; at++) {
        const int32_t p = o->list[at], chunk = cells->lattice ? o->corner[p] : at - o->start[c];
        if (r->body_of[p] != cells->body) continue;
        r->order[(int64_t)(cells->chunk + chunk) * CQ_CHUNK + lane] = p;
        r->used[cells->chunk + chunk] |= (uint16_t)(1u << lane);
        cells->used |= 1u << lane;
      }
    }
  }
}

// ---- ranges and nodes -----------------------------------------------------------------------------------------------

// Splits the vectors of cells into ranges with about as many chunks each, and sets the scene's counts of both. A range
// reaches one plane of nodes further on both sides, and one of few planes would scatter more to its neighbours' nodes.
static void split_cells(cq_scene *s) {
  enum { PLANES = 3 };
  cq_reference *r = &s->reference;
  int64_t planes = 0;
  for (int32_t b = 0; b < r->body_count; b++) planes += r->bodies[b].count[0];
  int32_t ranges = r->chunks / CQ_RANGE_CHUNKS;
  if (ranges > planes / PLANES) ranges = (int32_t)(planes / PLANES);
  if (ranges > CQ_BLOCKS_MAX) ranges = CQ_BLOCKS_MAX;
  if (ranges > r->cells_count) ranges = r->cells_count;
  if (ranges < 1) ranges = 1;
  s->first_chunk = s->chunks = r->chunks;
  s->first_range = s->ranges = ranges;
  int32_t k = 0;
  for (int32_t range = 0; range <= ranges; range++) {
    const int64_t until = (int64_t)r->chunks * range / ranges;
    while (k < r->cells_count && r->cells[k].chunk < until) k++;
    r->cells_start[range] = range == ranges ? r->cells_count : k;
    s->range_start[range] = range == ranges ? r->chunks : k < r->cells_count ? r->cells[k].chunk : r->chunks;
  }
}

// Sets for each range the window of nodes that its cells reach, its first node and size, for which it has a slab.
static void find_windows(cq_scene *s) {
  cq_reference *r = &s->reference;
  for (int32_t range = 0; range < s->first_range; range++) {
    int64_t low = INT64_MAX, high = 0;
    for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) {
      const cq_body *body = &r->bodies[r->cells[k].body];
      int64_t reach = 1;
      for (int i = 0; i < s->model->dim - 1; i++) reach += body->stride[i];
      for (int half = 0; half < 2; half++) {
        const int64_t node = r->cells[k].node[half];
        if (node - reach < low) low = node - reach;
        if (node + reach + CQ_REFERENCE_RUN > high) high = node + reach + CQ_REFERENCE_RUN;
      }
    }
    r->window[range] = low;
    r->window_size[range] = high > low ? high - low : 0;
  }
}

// Sets mark {nodes} to `value`, where it is 0, at all nodes of the stencil around a cell. cell: its node.
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

// Sets r->pin {nodes}, where pinned particles touch a node, to the number (below 0) of the first such group of pins.
static void mark_pins(const cq_scene *s, const sorted *o) {
  const cq_model *m = s->model;
  const cq_reference *r = &s->reference;
  for (int32_t group = 0; group < m->contact_count - m->wall_count; group++)
    for (int64_t k = 0; k < m->pin_count; k++)
      if ((m->pin_group ? m->pin_group[k] : 0) == group && cq_on_reference(m, m->pins[k]))
        mark_around(m, &r->bodies[r->body_of[m->pins[k]]], o->cell[m->pins[k]], r->pin,
                    m->wall_count + group - m->contact_count);
}

// Lists in r->nodes the vectors of sixteen nodes that particles or pins reach, each with the ranges that scatter to it,
// and splits the list into blocks; sets r->pin. CQ_OK or CQ_MEMORY.
static cq_status find_nodes(cq_scene *s, const sorted *o) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  int32_t *mark = calloc((size_t)r->node_count, sizeof *mark);
  if (!mark) return cq_fail(CQ_MEMORY, "out of memory: nodes of the bodies");
  for (int64_t p = 0; p < m->particle_count; p++)
    if (r->body_of[p] >= 0) mark_around(m, &r->bodies[r->body_of[p]], o->cell[p], mark, 1);
  mark_pins(s, o);
  r->nodes_count = 0;
  for (int64_t node = 0; node < r->node_count; node += CQ_REFERENCE_VECTOR) {
    cq_nodes here = {.node = node};
    int any = 0;
    for (int l = 0; l < CQ_REFERENCE_VECTOR; l++) {
      here.touched |= (uint32_t)mark[node + l] << l;
      any |= mark[node + l];
      here.pinned |= r->pin[node + l] != 0;
    }
    if (!any) continue;
    // the arrays of a slab are shifted by a node
    for (int32_t range = 0; range < s->first_range; range++)
      if (node - 1 < r->window[range] + r->window_size[range] && node + CQ_REFERENCE_VECTOR + 1 > r->window[range])
        here.ranges |= 1u << range;
    r->nodes[r->nodes_count++] = here;
  }
  for (int32_t block = 0; block <= s->first_range; block++)
    r->nodes_start[block] = (int32_t)((int64_t)r->nodes_count * block / s->first_range);
  free(mark);
  return CQ_OK;
}

// Lists in r->rim the cells at the surfaces of bodies, beside which, along an axis, is a cell without particles: only
// there can another body come near. After reserve and fill_order.
static void find_rim(cq_scene *s, const sorted *o) {
  const cq_model *m = s->model;
  cq_reference *r = &s->reference;
  r->rim_count = 0;
  for (int32_t k = 0; k < r->cells_count; k++)
    for (int lane = 0; lane < CQ_CHUNK; lane++) {
      if (!(r->cells[k].used >> lane & 1)) continue;
      const cq_body *body = &r->bodies[r->cells[k].body];
      const int64_t c = cq_cells_node(&r->cells[k], lane);
      int open = 0;
      for (int i = 0; i < m->dim; i++)
        for (int side = -1; side <= 1; side += 2) {
          const int64_t beside = c + side * body->stride[i];
          open |= o->start[beside + 1] == o->start[beside];
        }
      if (!open) continue;
      cq_rim *rim = &r->rim[r->rim_count++];
      int64_t at = c - body->first;
      *rim = (cq_rim){.node = c, .particle = o->list[o->start[c]], .body = r->cells[k].body};
      rim->push = cq_touch_push(m, rim->particle);
      for (int i = 0; i < m->dim; i++, at %= body->stride[i - 1]) rim->cell[i] = (int32_t)(at / body->stride[i]);
    }
}

// ---- all of it ------------------------------------------------------------------------------------------------------

// Frees *array and allocates a zeroed one of `count` entries of `size` bytes in its place. what: its name in an error.
// NULL if there is no memory.
static void *renew(void **array, int64_t count, size_t size, const char *what) {
  cq_free(*array);
  return *array = cq_alloc((size_t)count, size, what);
}

// Allocates the arrays of the layout, whose sizes are known once cells are counted. CQ_OK or CQ_MEMORY.
static cq_status reserve(cq_scene *s) {
  cq_reference *r = &s->reference;
  const int64_t slots = (int64_t)r->chunks * CQ_CHUNK, vectors = r->node_count / CQ_REFERENCE_VECTOR;
  const int ok = renew((void **)&r->order, slots, sizeof *r->order, "order of particles") &&
                 renew((void **)&r->cells, r->cells_count, sizeof *r->cells, "cells of bodies") &&
                 renew((void **)&r->cells_of_chunk, r->chunks, sizeof *r->cells_of_chunk, "cells of bodies") &&
                 renew((void **)&r->used, r->chunks, sizeof *r->used, "cells of bodies") &&
                 renew((void **)&r->nodes, vectors, sizeof *r->nodes, "nodes of bodies") &&
                 renew((void **)&r->pin, r->node_count, sizeof *r->pin, "nodes of bodies") &&
                 renew((void **)&r->rim, s->model->particle_count, sizeof *r->rim, "surfaces of bodies") &&
                 renew((void **)&r->rim_at, s->model->particle_count * s->model->dim, sizeof *r->rim_at,
                       "surfaces of bodies") &&
                 renew((void **)&r->rim_place, s->model->particle_count, sizeof *r->rim_place, "surfaces of bodies") &&
                 renew((void **)&r->positions, s->model->particle_count * s->model->dim, sizeof *r->positions,
                       "positions of particles");
  return ok ? CQ_OK : CQ_MEMORY;
}

// Lays out reference grids for positions {n, dim}: grids, cells, order of particles, ranges, nodes, surfaces. o: lists
// of particles by cell, which it fills and the caller frees. CQ_OK or an error.
static cq_status lay_out(cq_scene *s, const double *positions, sorted *o) {
  cq_reference *r = &s->reference;
  cq_status status = size_grids(s, positions);
  if (!status) status = sort_cells(s, positions, o);
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
  cq_near_free(&r->near);
  memcpy(r->positions, positions, (size_t)(s->model->particle_count * s->model->dim) * sizeof *positions);
  return status;
}

// Makes the layout of a scene's reference grids for undeformed positions {n, dim}: grids, and the order of particles on
// them. The number of chunks may change. CQ_OK, CQ_MEMORY, or an error of a body.
cq_status cq_reference_layout(cq_scene *s, const double *positions) {
  sorted o = {0};
  cq_status status = s->reference.bodies ? CQ_OK : find_bodies(s);
  if (!status) status = lay_out(s, positions, &o);
  sorted_free(&o);
  return status;
}
