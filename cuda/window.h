// window: the part of sorting that knows no reals: numbering the tiles of the window, and the
// order of the particles in them.
#ifndef CQ_CUDA_WINDOW_H
#define CQ_CUDA_WINDOW_H

#include "batch.h"
#include "frame.h"
#include "launch.h"
#include "tasks.h"

enum { CQ_SCAN = 2048 };     // tiles that one thread block of a prefix sum covers
// The number of thread blocks for a prefix sum over `total` tiles.
static inline int32_t cq_scan_blocks(int64_t total) { return (int32_t)((total + CQ_SCAN - 1) / CQ_SCAN); }

// From count: first and number of each tile, and in found how many there are.
void cq_window_number(cudaStream_t stream, const cq_sorting *s);
// Writes the tiles that are needed, and the numbers of each tile's neighbours, each at the tile's number.
void cq_window_tiles(cudaStream_t stream, int32_t blocks, const cq_sorting *s, cq_tile *tiles, int32_t *neighbors);
// Sets, for each node of each tile, the entries of the wall map (walls at rest, pins) that hold the node: wall_entries
// {block_count, CQ_TILE_NODES}; and has_walls of each tile.
void cq_window_walls(cudaStream_t stream, int32_t block_count, int32_t dim, cq_wall_map map, cq_tile *tiles,
                     int64_t *wall_entries);
// The new order: by tile, in it by cell, in it by user id; and its inverse.
void cq_window_order(cudaStream_t stream, int32_t blocks, const cq_sorting *s, const cq_arrangement *a);

// Sets the arrangement `a` to the user's order of particles {slots}, with their materials. of {particles}: material of
// each particle of a scene.
void cq_window_first(cudaStream_t stream, int32_t blocks, int32_t slots, int32_t particles, const uint8_t *of,
                     const cq_arrangement *a);
// Completes the arrangement `a` of a total Lagrangian world: slot_of, the inverse of its order, and a tile for each
// CQ_TILE_NODES nodes of the reference grids, of scene number scene[tile].
void cq_window_blocks(cudaStream_t stream, int32_t blocks, int32_t slots, const cq_arrangement *a,
                      const int32_t *scene);
// Adds up numbers of tiles, those of a scene in the order of its tiles, and clears them.
typedef struct cq_summing {
  int32_t batch, tile_count, block_count;
  const cq_tile *tiles;
  double *sums;              // {block_count, width}, of which numbers [first, first + count) are taken
  int32_t width, first, count;
  double *totals;            // {batch, count}; added to
  // 1: the tiles are in the middle of a run that ended, nothing is done; NULL: it is done in any case
  const int32_t *over;
} cq_summing;
void cq_window_sum(cudaStream_t stream, const cq_summing *s);

#endif
