// wall: which nodes a wall holds, and along which normals.
#include "model.h"
#include <math.h>
#include <stdlib.h>

#include "wall.inl"

// Fills a wall with defaults: a sticky half-space, with its normal along y.
void cq_wall_init(cq_wall *wall) {
  *wall = (cq_wall){.shape = CQ_WALL_HALF_SPACE, .kind = CQ_CONTACT_STICKY, .normal = {0, 1, 0}, .height_count = {1, 1},
                    .height_spacing = {1, 1}};
}

// How many numbers describe the impulse of a wall in a control step: impulse {dim}, its part along the normals, its
// tangential part {dim}, and the part along the normals times the position {dim} (E70).
int32_t cq_contact_width(int32_t dim) { return 3 * dim + 1; }

// The number of contacts whose impulses are read in a world: its walls, then its groups of pins, at least one.
int32_t cq_contact_count(const cq_world_def *def) {
  return def->wall_count + (def->pin_group && def->pin_group_count > 1 ? def->pin_group_count : 1);
}

// Sets the unit normals with which a wall holds the point x; returns their number (several in a corner of a hollow
// box), 0 outside the solid. slack: how far outside x may be [length].
int32_t cq_wall_normals(const cq_wall *wall, int32_t dim, double slack, const double x[3], double normals[3][3]) {
  return wall_normals(wall, dim, slack, x, normals);
}

// As cq_wall_normals, with the slack along the normal; a height field has it along y there.
int32_t cq_wall_normals_within(const cq_wall *wall, int32_t dim, double slack, const double x[3],
                               double normals[3][3]) {
  return wall_normals_within(wall, dim, slack, x, normals);
}

// Adjoint of cq_wall_normals: adds to grad_x, from grad_n = dL/d(first normal); walls with several normals have
// constant ones.
void cq_wall_normals_adj(const cq_wall *wall, int32_t dim, const double x[3], const double grad_n[3],
                         double grad_x[3]) {
  wall_normals_adj(wall, dim, x, grad_n, grad_x);
}

// How far a point x lies within a wall widened by slack [length], along `normal`, one of its normals at x; sets slope
// to the derivative of this depth by x.
double cq_wall_depth(const cq_wall *wall, int32_t dim, double slack, const double x[3], const double normal[3],
                     double slope[3]) {
  return wall_depth(wall, dim, slack, x, normal, slope);
}

// ---- the map --------------------------------------------------------------------------------------------------------

typedef struct node_list {
  cq_wall_node *node;
  int64_t *column;
  int64_t count, capacity;
} node_list;

// Appends one held node, with the wall and normal that hold it, to the list. column: the index of the map's column, a
// line of nodes along the last axis, that the node lies in. CQ_OK or CQ_MEMORY.
static cq_status push(node_list *list, int64_t column, const cq_wall_node *node) {
  if (list->count == list->capacity) {
    const int64_t capacity = list->capacity ? list->capacity * 2 : 4096;
    cq_wall_node *nodes = realloc(list->node, (size_t)capacity * sizeof *nodes);
    if (nodes) list->node = nodes;
    int64_t *columns = realloc(list->column, (size_t)capacity * sizeof *columns);
    if (columns) list->column = columns;
    if (!nodes || !columns)
      return cq_fail(CQ_MEMORY, "out of memory: the walls hold more than %lld grid nodes", (long long)list->count);
    list->capacity = capacity;
  }
  list->node[list->count] = *node;
  list->column[list->count++] = column;
  return CQ_OK;
}

// Lists the nodes that resting walls hold: tests every node of the padded grid against each of them, in the order
// column, z, wall. CQ_OK, CQ_MEMORY, or CQ_INVALID where too many walls hold a node.
static cq_status gather_walls(const cq_model *m, node_list *list) {
  const cq_wall_map *map = &m->map;
  const int32_t last = m->dim - 1;
  for (int32_t cx = 0; cx < map->size[0]; cx++)
    for (int32_t cy = 0; cy < map->size[1]; cy++)
      for (int32_t z = -CQ_NODE_PAD; z <= m->cells[last] + CQ_NODE_PAD; z++) {
        double x[3] = {(cx + map->lower[0]) * m->dx, (cy + map->lower[1]) * m->dx, 0};
        x[last] = z * m->dx;
        int32_t held = 0;
        for (int32_t w = 0; w < m->wall_count; w++) {
          if (m->walls[w].moves) continue;
          cq_wall_node node = {.z = z, .wall = w};
          double normals[3][3] = {{0}};
          const int32_t count = cq_wall_normals(&m->walls[w], m->dim, 1e-6 * m->dx, x, normals);
          for (int32_t k = 0; k < count; k++) {
            for (int i = 0; i < 3; i++) node.normal[i] = normals[k][i];
            if (++held > CQ_CONTACTS_MAX)
              return cq_fail(CQ_INVALID, "more than %d walls hold the grid node at (%g, %g, %g); merge some of them",
                             CQ_CONTACTS_MAX, x[0], x[1], x[2]);
            cq_status status = push(list, (int64_t)cx * map->size[1] + cy, &node);
            if (status) return status;
          }
        }
      }
  return CQ_OK;
}

// Lists the 3^dim nodes around each pinned particle on the spatial grid. A node may come several times; the map keeps
// its entry of the first group. CQ_OK or CQ_MEMORY.
static cq_status gather_pins(const cq_model *m, node_list *list) {
  const cq_wall_map *map = &m->map;
  for (int64_t k = 0; k < m->pin_count; k++) {
    if (cq_on_reference(m, m->pins[k])) continue;   // it holds nodes of its body
    const double *x = m->position + (int64_t)m->pins[k] * m->dim;
    const int32_t group = m->pin_group ? m->pin_group[k] : 0, pin = m->wall_count + group - m->contact_count;
    int32_t base[3] = {0, 0, 0};
    for (int i = 0; i < m->dim; i++) base[i] = (int32_t)floor(x[i] / m->dx - 0.5);
    for (int32_t i = 0; i < 3; i++)
      for (int32_t j = 0; j < (m->dim == 3 ? 3 : 1); j++)
        for (int32_t l = 0; l < 3; l++) {
          cq_wall_node node = {.z = base[m->dim - 1] + l, .wall = pin};
          const int64_t cx = base[0] + i - map->lower[0];
          const int64_t cy = m->dim == 3 ? base[1] + j - map->lower[1] : 0;
          cq_status status = push(list, cx * map->size[1] + cy, &node);
          if (status) return status;
        }
  }
  return CQ_OK;
}

// Compares two held nodes of a column for qsort: by z, then by wall, pins last. -1, 0 or 1.
static int by_z_then_wall(const void *a, const void *b) {
  const cq_wall_node *x = a, *y = b;
  if (x->z != y->z) return x->z < y->z ? -1 : 1;
  // a pin comes last, so that nothing moves the node after it; of several that of the first group comes first
  const uint32_t u = (uint32_t)x->wall, v = (uint32_t)y->wall;
  if (u != v) return u < v ? -1 : 1;
  // the normals of a corner in the order of the axes
  for (int i = 0; i < 3; i++)
    if (fabs(x->normal[i]) != fabs(y->normal[i])) return fabs(x->normal[i]) > fabs(y->normal[i]) ? -1 : 1;
  return 0;
}

// Makes the map of a model: for each column, a line of nodes along the last axis, lists the nodes that resting walls
// and pins hold. CQ_OK, CQ_MEMORY, or CQ_INVALID where too many walls hold a node.
cq_status cq_wall_map_create(cq_model *m) {
  cq_wall_map *map = &m->map;
  map->lower[0] = -CQ_NODE_PAD;
  map->size[0] = m->cells[0] + 2 * CQ_NODE_PAD + 1;
  map->lower[1] = m->dim == 3 ? -CQ_NODE_PAD : 0;
  map->size[1] = m->dim == 3 ? m->cells[1] + 2 * CQ_NODE_PAD + 1 : 1;
  const int64_t columns = (int64_t)map->size[0] * map->size[1];
  map->start = cq_alloc((size_t)columns + 1, sizeof *map->start, "wall map");
  if (!map->start) return CQ_MEMORY;

  node_list list = {0};
  cq_status status = m->wall_count > m->moving_wall_count ? gather_walls(m, &list) : CQ_OK;
  if (!status) status = gather_pins(m, &list);
  if (!status) map->node = cq_alloc((size_t)list.count + 1, sizeof *map->node, "wall map");
  if (!status && !map->node) status = CQ_MEMORY;
  if (!status) {
    // counting sort by column, then each column by z and wall; a node is pinned once
    for (int64_t k = 0; k < list.count; k++) map->start[list.column[k] + 1]++;
    for (int64_t c = 0; c < columns; c++) map->start[c + 1] += map->start[c];
    for (int64_t k = list.count; k-- > 0;) {
      const int64_t c = list.column[k];
      map->node[--map->start[c + 1]] = list.node[k];
    }
    // start[c + 1] is now the begin of column c; shift back while sorting and dropping repeats
    int64_t out = 0;
    for (int64_t c = 0; c < columns; c++) {
      const int64_t begin = map->start[c + 1], end = c + 1 < columns ? map->start[c + 2] : list.count;
      qsort(map->node + begin, (size_t)(end - begin), sizeof *map->node, by_z_then_wall);
      map->start[c] = out;
      for (int64_t k = begin; k < end; k++) {
        const int repeat = out > map->start[c] && map->node[k].wall < 0 && map->node[out - 1].wall < 0 &&
                           map->node[out - 1].z == map->node[k].z;
        if (!repeat) map->node[out++] = map->node[k];
      }
    }
    map->start[columns] = out;
  }
  free(list.node);
  free(list.column);
  return status;
}

// Frees the map of walls.
void cq_wall_map_destroy(cq_wall_map *map) {
  cq_free(map->start);
  cq_free(map->node);
}

// Sets begin and end (exclusive) to the entries of map->node that lie in the column of nodes with the indices x, y (0
// in 2D) along the first axes; begin = end where it has none.
void cq_wall_map_column(const cq_wall_map *map, int32_t x, int32_t y, int64_t *begin, int64_t *end) {
  const int32_t cx = x - map->lower[0], cy = y - map->lower[1];
  *begin = *end = 0;
  if (cx < 0 || cx >= map->size[0] || cy < 0 || cy >= map->size[1]) return;
  const int64_t c = (int64_t)cx * map->size[1] + cy;
  *begin = map->start[c];
  *end = map->start[c + 1];
}
