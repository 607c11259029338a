// window: the tiles of the grid that the particles of a batch need, found anew at every sorting. A tile has particles
// (#), is beside such a tile (+), since particles reach its nodes, or is empty (.):
//
//   . + + + + .
//   . + # # + .        numbers go first to all #, scene by scene, then to all +
//   . + + # + .
//   . . + + + .
#include "window.h"

enum { THREADS = 256, TILE_CELLS = 64, ITEMS = CQ_SCAN / THREADS };

#define EACH_OF(p, count)                                                                                              \
  for (int32_t p = (int32_t)(blockIdx.x * THREADS + threadIdx.x); p < (count); p += (int32_t)gridDim.x * THREADS)

// ---- numbering ------------------------------------------------------------------------------------------------------

enum { IS_EMPTY, HAS_PARTICLES, IS_BESIDE };

// how many particles, tiles with particles and tiles beside these come before a tile
typedef struct Before {
  int32_t particles, tiles, ring;
} Before;

// Component-wise sum: particles, tiles with particles, and ring tiles.
CQ_GPU Before add(const Before a, const Before b) {
  return {a.particles + b.particles, a.tiles + b.tiles, a.ring + b.ring};
}
// The counts of one tile of a kind (HAS_PARTICLES, ...), as a summand of the prefix sum.
CQ_GPU Before of_tile(const int32_t particles, const int32_t kind) {
  return {particles, kind == HAS_PARTICLES, kind == IS_BESIDE};
}

// Sets at to the place of tile t in its window; in 2D there is one tile along the last axis.
CQ_GPU void place_of(const cq_sorting *s, const int32_t t, int32_t at[3]) {
  int32_t rest = t % s->tiles;
  at[2] = rest % s->size[2];
  rest /= s->size[2];
  at[1] = rest % s->size[1];
  at[0] = rest / s->size[1];
}

// The index, in the windows of all scenes as t, of neighbour k of 3^DIM (the last axis fastest) of tile t, which is at
// `at`; -1 where the window ends. A window has more than one tile along each axis.
template <int DIM>
CQ_GPU int32_t beside(const cq_sorting *s, const int32_t t, const int32_t at[3], int32_t k) {
  uint32_t index = (uint32_t)t, stride = 1, inside = 1;
  CQ_UNROLLED for (int i = DIM - 1; i >= 0; i--) {
    const int32_t step = k % 3 - 1;
    inside &= at[i] + step >= 0 && at[i] + step < s->size[i];
    index += (uint32_t)step * stride;
    stride *= (uint32_t)s->size[i];
    k /= 3;
  }
  return inside ? (int32_t)index : -1;
}

// What tile t of the window is: HAS_PARTICLES, IS_BESIDE (a neighbour has particles) or IS_EMPTY. All neighbours are
// loaded at once, so that the thread waits for memory once and not for each.
template <int DIM>
CQ_GPU int32_t kind_of(const cq_sorting *s, const int32_t t) {
  int32_t at[3], others = 0;
  if (s->count[t] > 0) return HAS_PARTICLES;
  place_of(s, t, at);
  CQ_UNROLLED for (int k = 0; k < (DIM == 3 ? 27 : 9); k++) {
    const int32_t other = beside<DIM>(s, t, at, k);
    if (other >= 0) others |= s->count[other];
  }
  return others ? IS_BESIDE : IS_EMPTY;
}

// Exclusive prefix sum over the threads of a block: returns the sum of `mine` of the threads before this one, and sets
// *sum to that of all. All threads call it.
CQ_GPU Before scan_block(Before *shared, const Before mine, Before *sum) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int d = 1; d < THREADS; d *= 2) {
    Before other = {0, 0, 0};
    if ((int)threadIdx.x >= d) other = shared[threadIdx.x - d];
    __syncthreads();
    shared[threadIdx.x] = add(shared[threadIdx.x], other);
    __syncthreads();
  }
  *sum = shared[THREADS - 1];
  Before before = {0, 0, 0};
  if (threadIdx.x > 0) before = shared[threadIdx.x - 1];
  __syncthreads();
  return before;
}

// Stores the totals for the host: tiles with particles, ring tiles.
CQ_GPU void store_counts(const cq_sorting *s, const Before all) {
  s->found->tiles = all.tiles;
  s->found->ring = all.ring;
}

// Kernel, the first of three that number the tiles: sets s.number of each tile to its kind for now, and counts
// particles and tiles of each kind in each portion of CQ_SCAN tiles. A single portion also sets the totals in s.found.
template <int DIM>
CQ_KERNEL scan_parts(const cq_sorting s) {
  CQ_SHARED(Before, shared, THREADS);
  Before mine = {0, 0, 0}, sum;
  const int32_t begin = (int32_t)(blockIdx.x * CQ_SCAN + threadIdx.x);
  for (int32_t t = begin; t < s.total && t < begin + CQ_SCAN; t += THREADS) {
    const int32_t kind = kind_of<DIM>(&s, t);
    s.number[t] = kind;
    mine = add(mine, of_tile(s.count[t], kind));
  }
  scan_block(shared, mine, &sum);
  if (threadIdx.x) return;
  ((Before *)s.partial)[blockIdx.x] = gridDim.x > 1 ? sum : Before{0, 0, 0};
  if (gridDim.x == 1) store_counts(&s, sum);
}

// Kernel, the second of three, if there are several portions (`parts`): from their counts to the numbers at which each
// begins, an exclusive prefix sum in one block; sets the totals in s.found.
CQ_KERNEL scan_sums(const cq_sorting s, int32_t parts) {
  CQ_SHARED(Before, shared, THREADS);
  Before *part = (Before *)s.partial, all = {0, 0, 0};
  for (int32_t from = 0; from < parts; from += THREADS) {
    const int32_t k = from + (int32_t)threadIdx.x;
    Before mine = {0, 0, 0}, sum;
    if (k < parts) mine = part[k];
    const Before before = scan_block(shared, mine, &sum);
    if (k < parts) part[k] = add(all, before);
    all = add(all, sum);
  }
  if (threadIdx.x == 0) store_counts(&s, all);
}

// Kernel, the third of three: from where portions begin, sets s.first and s.number of each tile (as in cq_sorting).
CQ_KERNEL scan_tiles(const cq_sorting s) {
  CQ_SHARED(Before, shared, THREADS);
  Before mine = {0, 0, 0}, item[ITEMS], sum;
  const int32_t begin = (int32_t)(blockIdx.x * CQ_SCAN + threadIdx.x * ITEMS);
  for (int32_t k = 0; k < ITEMS; k++) {
    item[k] = {0, 0, 0};
    if (begin + k < s.total) item[k] = of_tile(s.count[begin + k], s.number[begin + k]);
    mine = add(mine, item[k]);
  }
  Before before = add(((const Before *)s.partial)[blockIdx.x], scan_block(shared, mine, &sum));
  for (int32_t k = 0; k < ITEMS && begin + k < s.total; k++) {
    s.first[begin + k] = before.particles;
    s.number[begin + k] = item[k].tiles ? before.tiles : item[k].ring ? -2 - before.ring : -1;
    before = add(before, item[k]);
  }
}

// Launches the numbering of the window's tiles: from s->count, the particles in each tile, sets s->first and s->number
// of each tile, and in s->found how many tiles have particles and how many are neighbours of these.
void cq_window_number(cudaStream_t stream, const cq_sorting *s) {
  const int32_t parts = cq_scan_blocks(s->total);
  if (s->dim == 3)
    CQ_LAUNCH(scan_parts<3>, parts, THREADS, stream, *s);
  else
    CQ_LAUNCH(scan_parts<2>, parts, THREADS, stream, *s);
  if (parts > 1) CQ_LAUNCH(scan_sums, 1, THREADS, stream, *s, parts);
  CQ_LAUNCH(scan_tiles, parts, THREADS, stream, *s);
}

// ---- tiles ----------------------------------------------------------------------------------------------------------

// The number of tile t of the window among all that are needed, of which `tiles` have particles and come first; -1: it
// is not needed, or t is -1.
CQ_GPU int32_t number_of(const cq_sorting *s, const int32_t tiles, const int32_t t) {
  const int32_t number = t < 0 ? -1 : s->number[t];
  return number >= -1 ? number : tiles - 2 - number;
}

// Writes the tiles of the new arrangement (place, scene, particles) and the numbers of their neighbours.
template <int DIM>
CQ_KERNEL write_tiles(const cq_sorting s, cq_tile *tiles, int32_t *neighbors) {
  const int32_t side = DIM == 3 ? 4 : 8, with_particles = s.found->tiles;
  for (int64_t n = (int64_t)blockIdx.x * THREADS + threadIdx.x; n < s.total; n += (int64_t)gridDim.x * THREADS) {
    const int32_t t = (int32_t)n, number = number_of(&s, with_particles, t);
    if (number < 0) continue;
    cq_tile tile = {{0, 0, 0}, t / s.tiles, 0, s.count[t], 0, 0};
    if (tile.count) tile.first = s.first[t];
    int32_t at[3], around[DIM == 3 ? 27 : 9];
    place_of(&s, t, at);
    for (int i = 0; i < DIM; i++) tile.lower[i] = (s.lower[i] + at[i]) * side;
    tiles[number] = tile;
    CQ_UNROLLED for (int k = 0; k < (DIM == 3 ? 27 : 9); k++) around[k] =
        number_of(&s, with_particles, beside<DIM>(&s, t, at, k));
    CQ_UNROLLED for (int k = 0; k < (DIM == 3 ? 27 : 9); k++) neighbors[(int64_t)number * CQ_NEIGHBORS_MAX + k] =
        around[k];
  }
}

// Launches write_tiles: sets the tiles {block_count} of the new order of particles, and the numbers of their neighbours
// {block_count, CQ_NEIGHBORS_MAX}. blocks: of threads.
void cq_window_tiles(cudaStream_t stream, int32_t blocks, const cq_sorting *s, cq_tile *tiles, int32_t *neighbors) {
  if (s->dim == 3)
    CQ_LAUNCH(write_tiles<3>, blocks, THREADS, stream, *s, tiles, neighbors);
  else
    CQ_LAUNCH(write_tiles<2>, blocks, THREADS, stream, *s, tiles, neighbors);
}

// Entries of the node (x, y, z) in the wall map, packed as in cq_frame.wall_entries; 0: none. x and y are counted from
// the map's lower corner.
CQ_GPU int64_t wall_entries_at(const cq_wall_map *map, const int32_t x, const int32_t y, const int32_t z) {
  if (x < 0 || x >= map->size[0] || y < 0 || y >= map->size[1]) return 0;
  const int64_t column = (int64_t)x * map->size[1] + y, end = map->start[column + 1];
  int64_t low = map->start[column], high = end;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (map->node[middle].z < z)
      low = middle + 1;
    else
      high = middle;
  }
  int64_t last = low;
  while (last < end && map->node[last].z == z) last++;
  if (last == low) return 0;
  // a pin is the last entry, and overrides all walls
  return map->node[last - 1].wall < 0 ? (last - 1) * CQ_ENTRIES + CQ_PIN_ENTRY : low * CQ_ENTRIES + last - low;
}

// Finds each node's place in the wall map, 0 where no wall holds it, and marks the tiles that have any. A block for
// each tile, a thread for each node.
CQ_KERNEL fill_wall_entries(int32_t block_count, int32_t dim, const cq_wall_map map, cq_tile *tiles,
                            int64_t *wall_entries) {
  const int32_t n = (int32_t)threadIdx.x, side = dim == 3 ? 4 : 8;
  for (int32_t t = (int32_t)blockIdx.x; t < block_count; t += (int32_t)gridDim.x) {
    const int32_t *lower = tiles[t].lower;
    const int32_t x = lower[0] + (dim == 3 ? n / 16 : n / 8), y = dim == 3 ? lower[1] + n / 4 % 4 : 0,
                  z = lower[dim - 1] + n % side;
    const int64_t at = wall_entries_at(&map, x - map.lower[0], y - map.lower[1], z);
    wall_entries[(int64_t)t * CQ_TILE_NODES + n] = at;
    if (at) store_volatile(&tiles[t].has_walls, 1);
  }
}

// Launches the search for each node's entries in the wall map (which nodes walls at rest and pins hold): sets
// wall_entries {block_count, CQ_TILE_NODES}, and has_walls of tiles {block_count}.
void cq_window_walls(cudaStream_t stream, int32_t block_count, int32_t dim, cq_wall_map map, cq_tile *tiles,
                     int64_t *wall_entries) {
  CQ_LAUNCH(fill_wall_entries, block_count < 65535 ? block_count : 65535, CQ_TILE_NODES, stream, block_count, dim, map,
            tiles, wall_entries);
}

// ---- order ----------------------------------------------------------------------------------------------------------

// Lists the particles tile by tile: each stands at the first place of its tile plus its rank there.
CQ_KERNEL place_slots(const cq_sorting s) {
  EACH_OF(p, s.slots) s.placed[s.first[s.key[p]] + s.rank[p]] = p;
}

// Sorts the particles of each tile by cell, and those of a cell by user id; a block for each tile. order: user id by
// slot; slot_of: its inverse.
CQ_KERNEL order_tiles(const cq_sorting s, const cq_tile *tiles, int32_t tile_count, int32_t *order, int32_t *slot_of) {
  CQ_SHARED(int32_t, count, TILE_CELLS);
  CQ_SHARED(int32_t, start, TILE_CELLS + 1);
  for (int32_t t = (int32_t)blockIdx.x; t < tile_count; t += (int32_t)gridDim.x) {
    const int32_t first = tiles[t].first, end = first + tiles[t].count;
    if (threadIdx.x < TILE_CELLS) count[threadIdx.x] = 0;
    __syncthreads();
    for (int32_t k = first + (int32_t)threadIdx.x; k < end; k += THREADS) atomicAdd(&count[s.cell[s.placed[k]]], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
      start[0] = first;
      for (int c = 0; c < TILE_CELLS; c++) start[c + 1] = start[c] + count[c];
    }
    __syncthreads();
    if (threadIdx.x < TILE_CELLS) count[threadIdx.x] = start[threadIdx.x];
    __syncthreads();
    for (int32_t k = first + (int32_t)threadIdx.x; k < end; k += THREADS) {
      const int32_t p = s.placed[k];
      s.by_cell[atomicAdd(&count[s.cell[p]], 1)] = s.order[p];
    }
    __syncthreads();
    for (int32_t k = first + (int32_t)threadIdx.x; k < end; k += THREADS) {
      const int32_t p = s.placed[k], id = s.order[p], cell = s.cell[p];
      int32_t to = start[cell];
      for (int32_t m = start[cell]; m < start[cell + 1]; m++) to += s.by_cell[m] < id;
      order[to] = id;
      slot_of[id] = to;
    }
  }
}

// Launches the sorting of particles: sets a->order, by tile, cell and user's number, and its inverse a->slot_of.
void cq_window_order(cudaStream_t stream, int32_t blocks, const cq_sorting *s, const cq_arrangement *a) {
  CQ_LAUNCH(place_slots, blocks, THREADS, stream, *s);
  CQ_LAUNCH(order_tiles, blocks, THREADS, stream, *s, a->tiles, a->tile_count, a->order, a->slot_of);
}

// The first arrangement: slots in the user's order, and the material of each slot. of: material by particle of a
// scene.
CQ_KERNEL write_first(int32_t slots, int32_t particles, const uint8_t *of, int32_t *order, int32_t *slot_of,
                      uint8_t *material) {
  EACH_OF(p, slots) {
    order[p] = slot_of[p] = p;
    material[p] = of[p % particles];
  }
}

// Launches write_first: sets the arrangement a to the user's order of particles, and sets their materials. of
// {particles}: material of each particle of a scene.
void cq_window_first(cudaStream_t stream, int32_t blocks, int32_t slots, int32_t particles, const uint8_t *of,
                     const cq_arrangement *a) {
  CQ_LAUNCH(write_first, blocks, THREADS, stream, slots, particles, of, a->order, a->slot_of, a->material);
}

// The arrangement of a total Lagrangian world, whose order never changes: slot_of, the inverse of order, and tiles
// with their scenes.
CQ_KERNEL write_blocks(int32_t slots, const int32_t *order, int32_t *slot_of, int32_t count, cq_tile *tiles,
                       const int32_t *scene) {
  const int32_t first = (int32_t)(blockIdx.x * THREADS + threadIdx.x), step = (int32_t)gridDim.x * THREADS;
  for (int32_t p = first; p < slots; p += step) slot_of[order[p]] = p;
  for (int32_t t = first; t < count; t += step) {
    cq_tile tile = {};
    tile.scene = scene[t];
    tile.has_walls = 1;
    tiles[t] = tile;
  }
}
// Launches write_blocks for the arrangement of a total Lagrangian world: sets a->slot_of, the inverse of its order, and
// a tile for each CQ_TILE_NODES nodes of the reference grids. scene: of each tile.
void cq_window_blocks(cudaStream_t stream, int32_t blocks, int32_t slots, const cq_arrangement *a,
                      const int32_t *scene) {
  CQ_LAUNCH(write_blocks, blocks, THREADS, stream, slots, a->order, a->slot_of, a->block_count, a->tiles, scene);
}

// ---- sums -----------------------------------------------------------------------------------------------------------

// The first of the sorted tiles [begin, end) that belongs to this scene or a later one.
CQ_GPU int32_t scene_begin(const cq_tile *tiles, int32_t begin, int32_t end, const int32_t scene) {
  while (begin < end) {
    const int32_t middle = begin + (end - begin) / 2;
    if (tiles[middle].scene < scene)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// Adds the sum of each {scene, component} over the scene's tiles, those with particles first, to totals, and clears the
// components summed; a block for each. Does nothing if *over is not 0.
CQ_KERNEL sum_tiles(const cq_summing s) {
  CQ_SHARED(double, shared, THREADS);
  if (s.over && *s.over) return;
  for (int64_t n = blockIdx.x; n < (int64_t)s.batch * s.count; n += gridDim.x) {
    const int32_t scene = (int32_t)(n / s.count), which = s.first + (int32_t)(n % s.count);
    double sum = 0;
    for (int part = 0; part < 2; part++) {
      const int32_t from = part ? s.tile_count : 0, to = part ? s.block_count : s.tile_count;
      const int32_t end = scene_begin(s.tiles, from, to, scene + 1);
      for (int32_t t = scene_begin(s.tiles, from, to, scene) + (int32_t)threadIdx.x; t < end; t += THREADS) {
        sum += s.sums[(int64_t)t * s.width + which];
        s.sums[(int64_t)t * s.width + which] = 0;
      }
    }
    __syncthreads();   // the sums of the turn before were read
    shared[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
      __syncthreads();
      if ((int)threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0) s.totals[n] += shared[0];
  }
}

// Launches sum_tiles: adds s->count of the numbers that tiles have collected (impulses, gradients) to the totals of
// their scene, in a fixed order, and clears them in the tiles; nothing if *s->over is not 0 then.
void cq_window_sum(cudaStream_t stream, const cq_summing *s) {
  const int64_t all = (int64_t)s->batch * s->count, most = 1024;   // about as many as a large GPU runs at once
  CQ_LAUNCH(sum_tiles, all < most ? all : most, THREADS, stream, *s);
}
