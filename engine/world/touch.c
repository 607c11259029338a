// touch: enters the surfaces of bodies into cells of the world, and finds two that touch, or all that are near.
#include "constants.h"
#include "grids.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "touch.inl"

// ---- how stiff ------------------------------------------------------------------------------------------------------

// The modulus by which surfaces push each other apart: that of a particle's material times the stiffness of
// collisions.
static double push_modulus(const cq_model *m, int64_t particle) {
  double slot[CQ_SLOTS_MAX];
  cq_constants_of(m, (const double *const *)m->value, particle, slot);
  return m->collision_stiffness * cq_material_modulus(&m->materials[m->material[particle]], slot);
}

double cq_touch_push(const cq_model *m, int64_t particle) {
  return push_modulus(m, particle) * pow(m->dx, m->dim - 1);
}

double cq_touch_modulus(const cq_model *m, int64_t particle, double modulus) {
  const double share = m->dim == 2 ? 1.35 : 1.8;
  return m->collision_stiffness > 0 ? 3.0 / 16 * modulus + share * push_modulus(m, particle) : 0;
}

// ---- surfaces that touch --------------------------------------------------------------------------------------------

typedef struct {
  int64_t cell;              // of the world, -1: free
  int32_t rim;               // the first one in it
} bucket;

// Enters surface place k into a cell of the table; returns the first one there.
static int32_t enter(bucket *table, int64_t size, int64_t cell, int32_t k) {
  int64_t at = (int64_t)((uint64_t)cell * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
  while (table[at].cell >= 0 && table[at].cell != cell) at = (at + 1) & (size - 1);
  if (table[at].cell < 0) table[at] = (bucket){cell, k};
  return table[at].rim;
}

cq_status cq_touch_find(const cq_model *m, const cq_rim *rim, const cq_rim_places *places, int32_t count,
                        int32_t pair[2], int *edge) {
  int64_t size = 16, all = 0;
  pair[0] = pair[1] = -1;
  for (int32_t k = 0; k < count; k++) all += places[k].all;
  while (size < 2 * all) size *= 2;
  bucket *table = malloc((size_t)size * sizeof *table);
  if (!table) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
  for (int64_t k = 0; k < size; k++) table[k].cell = -1;
  for (int32_t k = 0; k < count && pair[0] < 0; k++)
    for (int32_t n = 0; n < places[k].all && pair[0] < 0; n++) {
      const int64_t cell = touch_cell(m->dim, m->dx, m->cells, &places[k], n);
      if (cell < 0) *edge = 1;
      const int32_t other = cell < 0 ? k : enter(table, size, cell, k);
      if (!touch_apart(&rim[k], &rim[other])) continue;
      if (m->collision_stiffness > 0 && places[k].all == 1 && places[other].all == 1) continue;
      pair[0] = k;
      pair[1] = other;
    }
  free(table);
  return CQ_OK;
}

// ---- near each other ------------------------------------------------------------------------------------------------

typedef struct {
  const cq_model *m;
  const cq_rim *rim;
  const double *places;
  double reach;              // of a cell here
  int64_t size;
  int32_t *first, *next;     // {size} and {count} lists of rims by the hash of their cell
} search;

// The cell of the search that surface place k lies in.
static void cell_at(const search *s, int32_t k, int64_t cell[3]) {
  cell[2] = 0;
  for (int i = 0; i < s->m->dim; i++) cell[i] = (int64_t)floor(s->places[(int64_t)k * s->m->dim + i] / s->reach);
}

// The bucket of a cell in the search's table.
static int64_t hash_of(const search *s, const int64_t cell[3]) {
  const uint64_t key = (uint64_t)cell[0] * 73856093u ^ (uint64_t)cell[1] * 19349663u ^ (uint64_t)cell[2] * 83492791u;
  return (int64_t)(key * 0x9e3779b97f4a7c15u >> 20) & (s->size - 1);
}

// Are two surface places nearer than the reach of the search, and not neighbours in the undeformed body?
static int is_near(const search *s, int32_t a, int32_t b) {
  double square = 0;
  for (int i = 0; i < s->m->dim; i++) {
    const double way = s->places[(int64_t)a * s->m->dim + i] - s->places[(int64_t)b * s->m->dim + i];
    square += way * way;
  }
  return square < s->reach * s->reach && touch_apart(&s->rim[a], &s->rim[b]);
}

// Appends a pair of near nodes.
static cq_status add_pair(cq_near *near, int32_t a, int32_t b) {
  if (near->count == near->room) {
    const int32_t room = near->room ? 2 * near->room : 256;
    int32_t *more = realloc(near->pair, 2 * (size_t)room * sizeof *more);
    if (!more) return cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
    near->pair = more;
    near->room = room;
  }
  near->pair[2 * near->count] = a;
  near->pair[2 * near->count++ + 1] = b;
  return CQ_OK;
}

// All that came before k and are near it; then k is entered.
static cq_status find_near(search *s, cq_near *near, int32_t k) {
  int64_t cell[3], beside[3];
  const int32_t begin = near->count, cells = s->m->dim == 3 ? 27 : 9;
  cell_at(s, k, cell);
  for (int32_t n = 0; n < cells; n++) {
    for (int i = 0, rest = n; i < 3; i++, rest /= 3) beside[i] = cell[i] + (i < s->m->dim ? rest % 3 - 1 : 0);
    for (int32_t j = s->first[hash_of(s, beside)]; j >= 0; j = s->next[j]) {
      int64_t there[3];
      cell_at(s, j, there);
      if (memcmp(there, beside, sizeof there) || !is_near(s, k, j)) continue;
      const cq_status status = add_pair(near, k, j);
      if (status) return status;
      for (int32_t at = near->count - 1; at > begin && near->pair[2 * at - 1] > j; at--) {
        near->pair[2 * at + 1] = near->pair[2 * at - 1];
        near->pair[2 * at - 1] = j;
      }
    }
  }
  int32_t *first = &s->first[hash_of(s, cell)];
  s->next[k] = *first;
  *first = k;
  return CQ_OK;
}

// Has any surface node moved so far since the pairs were found that they must be found again?
static int has_moved(const cq_near *near, const cq_model *m, const double *places, int32_t count) {
  const double most = CQ_NEAR_WAY * m->dx;
  if (!near->at) return 1;
  for (int32_t k = 0; k < count; k++) {
    double square = 0;
    for (int i = 0; i < m->dim; i++) {
      const double way = places[(int64_t)k * m->dim + i] - near->at[(int64_t)k * m->dim + i];
      square += way * way;
    }
    if (!(square <= most * most)) return 1;
  }
  return 0;
}

cq_status cq_near_update(cq_near *near, const cq_model *m, const cq_rim *rim, const double *places, int32_t count) {
  if (!has_moved(near, m, places, count)) return CQ_OK;
  search s = {.m = m, .rim = rim, .places = places, .reach = (CQ_NEAR_REACH + 2 * CQ_NEAR_WAY) * m->dx, .size = 64};
  while (s.size < 2 * count) s.size *= 2;
  const size_t numbers = (size_t)count * (size_t)m->dim;
  double *at = realloc(near->at, (numbers ? numbers : 1) * sizeof *at);
  if (at) near->at = at;
  s.first = malloc((size_t)s.size * sizeof *s.first);
  s.next = malloc(((size_t)count + 1) * sizeof *s.next);
  cq_status status =
      at && s.first && s.next ? CQ_OK : cq_fail(CQ_MEMORY, "out of memory: surfaces of bodies");
  near->count = 0;
  if (!status) memcpy(at, places, numbers * sizeof *at);
  for (int64_t k = 0; k < s.size && !status; k++) s.first[k] = -1;
  // a place that is not finite is found by the step itself
  for (int32_t k = 0; k < count && !status; k++) status = find_near(&s, near, k);
  free(s.first);
  free(s.next);
  return status;
}

void cq_near_free(cq_near *near) {
  free(near->pair);
  free(near->at);
  *near = (cq_near){0};
}
