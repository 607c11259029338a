// layout: from the positions of all scenes to the tables of their reference grids, on the host.
#include "layout.h"
#include "frame.h"
#include <limits.h>
#include <string.h>

static const char *const what = "grids of bodies";

// Reallocates an array for `room` elements of `size` bytes, keeps its first `used` ones. NULL: no memory; it is freed.
static void *grown(void *array, size_t used, size_t room, size_t size) {
  void *more = cq_alloc(room, size, what);
  if (more && used) memcpy(more, array, used * size);
  cq_free(array);
  return more;
}
#define GROW(array, used, room) (*(void **)&(array) = grown(array, (size_t)(used), (size_t)(room), sizeof *(array)))

// The capacity for `needed` entries: `room`, the present one, if they fit, else half more than needed.
static int32_t room_for(int32_t needed, int32_t room) { return needed <= room ? room : needed + needed / 2; }

// Makes the arrays of the layout large enough for `tiles` tiles of cells, `nodes` nodes and `rims` surface cells in
// all, and keeps their contents. CQ_OK or CQ_MEMORY.
static cq_status make_room(cq_shapes_layout *l, int32_t tiles, int32_t nodes, int32_t rims) {
  const int32_t tile_room = room_for(tiles, l->tile_room), node_room = room_for(nodes, l->node_room),
                rim_room = room_for(rims, l->rim_room);
  int ok = 1;
  if (tile_room > l->tile_room) {
    ok &= GROW(l->tile, l->tiles, tile_room) != NULL;
    ok &= GROW(l->hulls, (int64_t)l->tiles * l->hull, (int64_t)tile_room * l->hull) != NULL;
    ok &= GROW(l->cell_start, (int64_t)l->tiles * (l->cells + 1), (int64_t)tile_room * (l->cells + 1)) != NULL;
    l->tile_room = tile_room;
  }
  if (node_room > l->node_room) {
    ok &= GROW(l->given, (int64_t)l->nodes * l->axes, (int64_t)node_room * l->axes) != NULL;
    ok &= GROW(l->pins, l->nodes, node_room) != NULL;
    ok &= GROW(l->scene, l->nodes / CQ_TILE_NODES, node_room / CQ_TILE_NODES + 1) != NULL;
    ok &= GROW(l->rest, (int64_t)l->nodes * l->dim, (int64_t)node_room * l->dim) != NULL;
    l->node_room = node_room;
  }
  if (rim_room > l->rim_room) {
    ok &= GROW(l->rim, l->rims, rim_room) != NULL;
    ok &= GROW(l->rim_node, (int64_t)l->rims * (1 + 2 * l->dim), (int64_t)rim_room * (1 + 2 * l->dim)) != NULL;
    ok &= GROW(l->rim_scene, l->rims, rim_room) != NULL;
    l->rim_room = rim_room;
  }
  return ok ? CQ_OK : CQ_MEMORY;
}

// Frees all arrays of a layout of reference grids on the host.
void cq_shapes_free(cq_shapes_layout *l) {
  void *owned[] = {l->bodies,  l->grid_first, l->tile_first, l->number,     l->tile_number, l->pin,      l->cell,
                   l->box_tile, l->in_tile,   l->fraction,   l->tile,       l->hulls,       l->cell_start, l->corner,
                   l->given,   l->pins,       l->scene,      l->rim_node,   l->rim_scene,   l->body_tile, l->body_count,
                   l->rim,     l->order,      l->fractions,  l->places,     l->rest};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
}

// The number of tiles of cells along axis i of the box of nodes around a body; 1 for axis 2 in 2D.
static int32_t tiles_along(const cq_shapes_layout *l, const cq_body *body, int i) {
  return i < l->dim ? (body->count[i] - 2 + l->side - 1) / l->side : 1;
}

// Sizes the box of nodes, and of tiles of cells, around each body of a scene by the positions of its particles, and
// clears the tables over these boxes. Per axis tile t has the cells around nodes 1 + t SIDE to (t + 1) SIDE. CQ_OK,
// or a status with a sentence.
static cq_status size_boxes(cq_shapes_layout *l, const double *positions) {
  const cq_model *m = l->model;
  cq_status status = cq_grids_size(m, positions, l->bodies);
  if (status) return status;
  double all = 0;
  for (int32_t b = 0; b < m->body_count; b++) {
    cq_body *body = &l->bodies[b];
    int64_t nodes = 1, tiles = 1;
    double box = 1;
    body->stride[l->dim - 1] = 1;
    for (int i = l->dim - 1; i-- > 0;) body->stride[i] = body->stride[i + 1] * body->count[i + 1];
    for (int i = 0; i < l->dim; i++) box *= body->count[i];
    all += box;
    if (all > INT_MAX)
      return cq_fail(CQ_MEMORY,
                     "out of memory: the boxes around all bodies hold %.3g grid nodes, at most %.3g are possible", all,
                     (double)INT_MAX);
    for (int i = 0; i < l->dim; i++) nodes *= body->count[i];
    for (int i = 0; i < l->dim; i++) tiles *= tiles_along(l, body, i);
    body->first = l->grid_first[b];
    l->grid_first[b + 1] = l->grid_first[b] + nodes;
    l->tile_first[b + 1] = l->tile_first[b] + tiles;
  }
  const int64_t boxes = l->grid_first[m->body_count], box_tiles = l->tile_first[m->body_count];
  if (boxes > l->boxes) {
    l->boxes = boxes;
    if (!GROW(l->number, 0, boxes) || !GROW(l->pin, 0, boxes)) return CQ_MEMORY;
  }
  if (box_tiles > l->box_tiles) {
    l->box_tiles = box_tiles;
    if (!GROW(l->tile_number, 0, box_tiles)) return CQ_MEMORY;
  }
  memset(l->number, -1, (size_t)boxes * sizeof *l->number);
  memset(l->pin, 0, (size_t)boxes * sizeof *l->pin);
  memset(l->tile_number, 0, (size_t)box_tiles * sizeof *l->tile_number);
  return CQ_OK;
}

// The index, in the boxes of all bodies, of node k (last axis fastest) of the 3^dim nodes around node `cell`.
static int64_t around(const cq_shapes_layout *l, const cq_body *body, int64_t cell, int k) {
  if (l->dim == 2) return cell + (k / 3 - 1) * body->stride[0] + k % 3 - 1;
  return cell + (k / 9 - 1) * body->stride[0] + (k / 3 % 3 - 1) * body->stride[1] + k % 3 - 1;
}

// Finds the cell of each particle of a scene in its body's reference grid, the cell's tile, and the particle's place in
// the cell; counts the particles of each tile, and marks the nodes around particles and those that pins hold.
static void find_cells(cq_shapes_layout *l, const double *positions) {
  const cq_model *m = l->model;
  const int touched = l->dim == 3 ? 27 : 9;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const cq_body *body = &l->bodies[m->body[p]];
    int64_t cell[3], tile = 0;
    double fraction[3];
    int32_t in = 0;
    cq_grids_cell(m, body, positions + p * l->dim, cell, fraction);
    const int32_t corner = cq_grids_corner(l->dim, fraction);
    l->cell[p] = body->first;
    for (int i = 0; i < l->dim; i++) {
      const int64_t at = cell[i] - body->low[i];   // from 1
      l->cell[p] += at * body->stride[i];
      tile = tile * tiles_along(l, body, i) + (at - 1) / l->side;
      in = in * l->side + (int32_t)((at - 1) % l->side);
      // of a lattice without the rounding of places
      l->fraction[p * l->dim + i] = corner < 0 ? fraction[i] : fraction[i] > 0 ? 0.25 : -0.25;
    }
    l->box_tile[p] = l->tile_first[m->body[p]] + tile;
    l->in_tile[p] = in;
    l->tile_number[l->box_tile[p]]++;
    for (int k = 0; k < touched; k++) l->number[around(l, body, l->cell[p], k)] = 1;
  }
  for (int32_t group = 0; group < m->contact_count - m->wall_count; group++)
    for (int64_t k = 0; k < m->pin_count; k++) {
      if ((m->pin_group ? m->pin_group[k] : 0) != group) continue;
      const cq_body *body = &l->bodies[m->body[m->pins[k]]];
      for (int n = 0; n < touched; n++) {
        int32_t *pin = &l->pin[around(l, body, l->cell[m->pins[k]], n)];
        if (!*pin) *pin = m->wall_count + group - m->contact_count;   // of repeats the first group's stays
      }
    }
}

// Sets at {3} to the integer coordinates of a node in the box of its body. node: its index in the boxes of all bodies.
static void coordinates(const cq_shapes_layout *l, const cq_body *body, int64_t node, int32_t at[3]) {
  node -= body->first;
  at[0] = at[1] = at[2] = 0;
  for (int i = 0; i < l->dim; i++, node %= body->stride[i - 1]) at[i] = (int32_t)(node / body->stride[i]);
}

// Numbers the nodes that find_cells has marked, on from those of the scenes before, and appends their rest places, pins
// and scene to the layout; padded to a multiple of CQ_TILE_NODES. CQ_OK or CQ_MEMORY.
static cq_status number_nodes(cq_shapes_layout *l, int32_t scene) {
  const cq_model *m = l->model;
  int64_t count = 0;
  for (int64_t k = 0; k < l->grid_first[m->body_count]; k++) count += l->number[k] == 1;
  const int64_t padded = (count + CQ_TILE_NODES - 1) / CQ_TILE_NODES * CQ_TILE_NODES;
  if (l->nodes + padded > INT_MAX / 2)
    return cq_fail(CQ_MEMORY, "out of memory: all scenes have more than %.3g grid nodes", (double)INT_MAX / 2);
  cq_status status = make_room(l, l->tiles, l->nodes + (int32_t)padded, l->rims);
  if (status) return status;
  int32_t next = l->nodes;
  for (int32_t b = 0; b < m->body_count; b++) {
    const cq_body *body = &l->bodies[b];
    for (int64_t k = l->grid_first[b]; k < l->grid_first[b + 1]; k++) {
      if (l->number[k] != 1) continue;
      int32_t at[3];
      coordinates(l, body, k, at);
      for (int i = 0; i < l->dim; i++)
        l->rest[(int64_t)next * l->dim + i] =
            body->origin[i] + body->shift[i] + ((double)body->low[i] + at[i]) * m->dx;
      l->pins[next] = l->pin[k];
      l->number[k] = next++;
    }
  }
  for (int32_t n = next; n < l->nodes + padded; n++) l->pins[n] = 0;
  for (int64_t n = (int64_t)next * l->dim; n < (l->nodes + padded) * l->dim; n++) l->rest[n] = 0;
  for (int64_t n = (int64_t)l->nodes * l->axes; n < (l->nodes + padded) * l->axes; n++) l->given[n] = -1;
  for (int64_t n = l->nodes / CQ_TILE_NODES; n < (l->nodes + padded) / CQ_TILE_NODES; n++) l->scene[n] = scene;
  l->nodes += (int32_t)padded;
  return CQ_OK;
}

// Fills the hull of tile t of body b: the numbers of the nodes that particles in the tile reach. Also adds each hull
// entry to the list of its node, which sums contributions of several tiles. box_tile: the tile's index among the tiles
// of all boxes.
static void make_hull(cq_shapes_layout *l, int32_t b, int64_t box_tile, int32_t t) {
  const cq_body *body = &l->bodies[b];
  const int32_t side = l->side + 2;
  int32_t first[3] = {0, 0, 0};
  int64_t at = box_tile - l->tile_first[b];
  for (int i = l->dim; i-- > 0; at /= tiles_along(l, body, i))
    first[i] = (int32_t)(at % tiles_along(l, body, i)) * l->side;
  for (int32_t n = 0; n < l->hull; n++) {
    int64_t node = body->first;
    int32_t in = n, which = 0, inside = 1;
    for (int i = l->dim; i-- > 0; in /= side) {
      const int32_t x = first[i] + in % side;
      inside &= x < body->count[i];
      node += x * body->stride[i];
      // the second tile of a node along an axis is the one below, of whose hull it is at the upper end
      if (in % side >= l->side) which |= 1 << i;
    }
    const int32_t number = inside ? l->number[node] : -1;
    l->hulls[(int64_t)t * l->hull + n] = number;
    if (number >= 0) l->given[(int64_t)number * l->axes + which] = t * l->hull + n;
  }
}

// Appends the tiles of a scene that have particles to the layout, in the order of bodies, with their hulls (nodes that
// their particles reach), and with the particles of each tile sorted by cell. CQ_OK or CQ_MEMORY.
static cq_status make_tiles(cq_shapes_layout *l, int32_t scene, const double *positions) {
  const cq_model *m = l->model;
  const int64_t n = m->particle_count, box_tiles = l->tile_first[m->body_count];
  const int32_t before = l->tiles, side = l->side + 2;
  int32_t count = 0;
  for (int64_t k = 0; k < box_tiles; k++) count += l->tile_number[k] > 0;
  // numbers of nodes in hulls are of 32 bits
  if (((int64_t)l->tiles + count) * l->hull > INT_MAX)
    return cq_fail(CQ_MEMORY, "out of memory: all scenes have more than %.3g tiles of cells", (double)INT_MAX / l->hull);
  cq_status status = make_room(l, l->tiles + count, l->nodes, l->rims);
  if (status) return status;
  int32_t slot = (int32_t)(scene * n);
  for (int32_t b = 0; b < m->body_count; b++) {
    l->body_tile[scene * m->body_count + b] = l->tiles;
    l->body_count[scene * m->body_count + b] = l->bodies[b].particles;
    for (int64_t k = l->tile_first[b]; k < l->tile_first[b + 1]; k++) {
      const int32_t particles = l->tile_number[k], t = l->tiles;
      l->tile_number[k] = particles ? t : -1;
      if (!particles) continue;
      l->tile[t] = {slot, particles, scene * m->body_count + b, scene};
      slot += particles;
      memset(l->cell_start + (int64_t)t * (l->cells + 1), 0, (size_t)(l->cells + 1) * sizeof *l->cell_start);
      make_hull(l, b, k, t);
      l->tiles++;
    }
  }
  // counts of cells, then where each begins, then where its next particle goes
  for (int64_t p = 0; p < n; p++)
    l->cell_start[(int64_t)l->tile_number[l->box_tile[p]] * (l->cells + 1) + l->in_tile[p] + 1]++;
  for (int32_t t = before; t < l->tiles; t++)
    for (int32_t c = 0; c < l->cells; c++)
      l->cell_start[(int64_t)t * (l->cells + 1) + c + 1] += l->cell_start[(int64_t)t * (l->cells + 1) + c];
  int32_t *next = (int32_t *)cq_alloc((size_t)count * (size_t)l->cells, sizeof *next, what);
  if (!next) return CQ_MEMORY;
  for (int32_t t = before; t < l->tiles; t++)
    memcpy(next + (int64_t)(t - before) * l->cells, l->cell_start + (int64_t)t * (l->cells + 1),
           (size_t)l->cells * sizeof *next);
  for (int64_t p = 0; p < n; p++) {
    const int32_t t = l->tile_number[l->box_tile[p]], in = l->in_tile[p];
    const int64_t at = l->tile[t].first + next[(int64_t)(t - before) * l->cells + in]++;
    int32_t corner = 0, rest = in, scale = 1;
    for (int i = l->dim; i-- > 0; rest /= l->side, scale *= side) corner += rest % l->side * scale;
    l->order[at] = (int32_t)(scene * n + p);
    l->corner[at] = t * l->hull + corner;
    memcpy(l->fractions + at * l->dim, l->fraction + p * l->dim, (size_t)l->dim * sizeof(double));
    memcpy(l->places + at * l->dim, positions + p * l->dim, (size_t)l->dim * sizeof(double));
  }
  cq_free(next);
  return CQ_OK;
}

// Appends the surface cells (rims) of a scene to the layout: cells with particles that have an empty cell beside them,
// which alone can touch another body. filled: work memory, a byte for each node of the boxes. CQ_OK or CQ_MEMORY.
static cq_status find_rim(cq_shapes_layout *l, int32_t scene, uint8_t *filled) {
  const cq_model *m = l->model;
  memset(filled, 0, (size_t)l->grid_first[m->body_count]);
  for (int64_t p = 0; p < m->particle_count; p++) filled[l->cell[p]] = 1;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const int64_t c = l->cell[p];
    const cq_body *body = &l->bodies[m->body[p]];
    int open = 0;
    if (filled[c] != 1) continue;
    for (int i = 0; i < l->dim; i++)
      for (int way = -1; way <= 1; way += 2) open |= !filled[c + way * body->stride[i]];
    filled[c] = 2;           // asked already
    if (!open) continue;
    const cq_status status = make_room(l, l->tiles, l->nodes, l->rims + 1);
    if (status) return status;
    cq_rim *rim = &l->rim[l->rims];
    int32_t *node = l->rim_node + (int64_t)l->rims * (1 + 2 * l->dim);
    memset(rim, 0, sizeof *rim);              // its padding, too: it is sent to the GPU as it is
    rim->node = c;
    rim->particle = (int32_t)p;
    rim->body = m->body[p];
    rim->push = cq_touch_push(m, p);
    coordinates(l, body, c, rim->cell);
    *node++ = l->number[c];
    for (int i = 0; i < l->dim; i++)
      for (int way = -1; way <= 1; way += 2) *node++ = l->number[c + way * body->stride[i]];
    l->rim_scene[l->rims++] = scene;
  }
  return CQ_OK;
}

// Appends the reference grids of one scene's bodies to the layout: cells of particles, nodes, tiles and surface cells.
// positions {n, dim}: of the scene's particles at step 0.
static cq_status lay_out_scene(cq_shapes_layout *l, int32_t scene, const double *positions) {
  cq_status status = size_boxes(l, positions);
  if (status) return status;
  find_cells(l, positions);
  status = number_nodes(l, scene);
  if (!status) status = make_tiles(l, scene, positions);
  uint8_t *filled = status ? NULL : (uint8_t *)cq_alloc((size_t)l->grid_first[l->model->body_count], 1, what);
  if (!status && !filled) status = CQ_MEMORY;
  if (!status) status = find_rim(l, scene, filled);
  cq_free(filled);
  return status;
}

// Lays out the reference grids of all scenes on the host: tables of nodes, tiles of cells and surface cells, from the
// positions in values {batch}. l: zeroed; the caller frees it, after a failure too. CQ_OK or a status with a sentence.
cq_status cq_shapes_lay_out(const cq_model *m, const cq_values *values, int32_t batch, cq_shapes_layout *l) {
  const size_t n = (size_t)m->particle_count, bodies = (size_t)m->body_count, slots = (size_t)batch * n,
               dim = (size_t)m->dim;
  l->model = m;
  l->batch = batch;
  l->dim = m->dim;
  l->side = cq_tile_side(m->dim);
  l->hull = cq_hull_nodes(m->dim);
  l->cells = cq_tile_cells(m->dim);
  l->axes = 1 << m->dim;
  l->grid_first = (int64_t *)cq_alloc(bodies + 1, sizeof *l->grid_first, what);
  l->tile_first = (int64_t *)cq_alloc(bodies + 1, sizeof *l->tile_first, what);
  l->cell = (int64_t *)cq_alloc(n, sizeof *l->cell, what);
  l->box_tile = (int64_t *)cq_alloc(n, sizeof *l->box_tile, what);
  l->in_tile = (int32_t *)cq_alloc(n, sizeof *l->in_tile, what);
  l->fraction = (double *)cq_alloc(n * dim, sizeof *l->fraction, what);
  l->corner = (int32_t *)cq_alloc(slots, sizeof *l->corner, what);
  l->order = (int32_t *)cq_alloc(slots, sizeof *l->order, what);
  l->fractions = (double *)cq_alloc(slots * dim, sizeof *l->fractions, what);
  l->places = (double *)cq_alloc(slots * dim, sizeof *l->places, what);
  l->body_tile = (int32_t *)cq_alloc((size_t)batch * bodies + 1, sizeof *l->body_tile, what);
  l->body_count = (int64_t *)cq_alloc((size_t)batch * bodies, sizeof *l->body_count, what);
  if (!l->grid_first || !l->tile_first || !l->cell || !l->box_tile || !l->in_tile || !l->fraction || !l->corner ||
      !l->order || !l->fractions || !l->places || !l->body_tile || !l->body_count)
    return CQ_MEMORY;
  cq_status status = cq_grids_create(m, &l->bodies);
  for (int32_t s = 0; s < batch && !status; s++) status = lay_out_scene(l, s, values[s].position);
  l->body_tile[(size_t)batch * bodies] = l->tiles;
  return status;
}
