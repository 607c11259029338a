// touch: enters the surfaces of bodies into cells of the world, and finds two that touch.
#include "grids.h"
#include <math.h>
#include <stdlib.h>

#include "touch.inl"

typedef struct {
  int64_t cell;              // of the world, -1: free
  int32_t rim;               // the first one in it
} bucket;

// Enters a place of the surfaces, which belongs to rim k, into a cell; returns the first one there.
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
      pair[0] = k;
      pair[1] = other;
    }
  free(table);
  return CQ_OK;
}
