// touch: how surfaces push each other apart, and whether two touch, by entering them into cells of the world.
#include "constants.h"
#include "grids.h"
#include <math.h>
#include <stdlib.h>

#include "touch.inl"

// ---- stiffness of repulsion -----------------------------------------------------------------------------------------

// The modulus [stress] of the repulsion between the surface of a particle's cell and another surface: the P-wave
// modulus of its material times the world's stiffness of collisions.
static double push_modulus(const cq_model *m, int64_t particle) {
  double slot[CQ_SLOTS_MAX];
  cq_constants_of(m, (const double *const *)m->value, particle, slot);
  return m->collision_stiffness * cq_material_modulus(&m->materials[m->material[particle]], slot);
}

// The constant k of repulsion between surfaces (E117) for a particle's cell, the force by which its node pushes another
// one away at half the reach: by the values that the world was made with, so that it is a constant.
double cq_touch_push(const cq_model *m, int64_t particle) {
  return push_modulus(m, particle) * pow(m->dx, m->dim - 1);
}

// The P-wave modulus [stress] whose waves ask for as short a step as collisions do, for a particle whose material has
// the P-wave modulus `modulus` (E119); 0 without collisions.
double cq_touch_modulus(const cq_model *m, int64_t particle, double modulus) {
  const double share = m->dim == 2 ? 1.35 : 1.8;
  return m->collision_stiffness > 0 ? 3.0 / 16 * modulus + share * push_modulus(m, particle) : 0;
}

// ---- surfaces that touch --------------------------------------------------------------------------------------------

typedef struct {
  int64_t cell;              // of the world, -1: free
  int32_t rim;               // the first surface node that was entered under this cell
} bucket;

// Enters surface node k under a cell of the world into the hash table of `size` buckets (a power of 2); returns the
// node that was entered under this cell first, k itself if none was.
static int32_t enter(bucket *table, int64_t size, int64_t cell, int32_t k) {
  int64_t at = (int64_t)((uint64_t)cell * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
  while (table[at].cell >= 0 && table[at].cell != cell) at = (at + 1) & (size - 1);
  if (table[at].cell < 0) table[at] = (bucket){cell, k};
  return table[at].rim;
}

// Finds two surfaces of bodies that touch, by entering the points of their nodes into cells of the world: sets pair to
// the indices in rim of two nodes, -1 where none touch, and *edge to 1 if a point is at the edge of the world, else
// leaves it. In a world with collisions only surfaces that are stretched over more than a cell can touch: others push
// each other apart. CQ_OK or CQ_MEMORY.
cq_status cq_touch_find(const cq_model *m, const cq_rim *rim, const cq_rim_places *places, int32_t count,
                        int32_t pair[2], int *edge) {
  int64_t size = 16, all = 0;
  pair[0] = pair[1] = -1;
  for (int32_t k = 0; k < count; k++) all += places[k].all;
  if (m->collision_stiffness > 0 && all == count) {    // none is stretched
    for (int32_t k = 0; k < count; k++) *edge |= touch_cell(m->dim, m->dx, m->cells, &places[k], 0) < 0;
    return CQ_OK;
  }
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
