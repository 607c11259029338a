// layout: the reference grids of all scenes as the host makes them (layout.cu), before they go to the device.
#ifndef CQ_CUDA_LAYOUT_H
#define CQ_CUDA_LAYOUT_H

#include "../engine/backend/backend.h"
#include "shapes.h"

// What the host makes of the positions of all scenes. Arrays of nodes and tiles grow with the scenes.
typedef struct cq_shapes_layout {
  const cq_model *model;
  int32_t batch, dim, side, hull, cells, axes;   // hull: nodes, cells: of a tile; axes: 2^dim
  cq_body *bodies;           // of a scene
  int64_t *grid_first;       // {bodies + 1} of a scene, of the boxes around the bodies
  int64_t *tile_first;       // of their tiles
  int32_t *number;           // {boxes} of nodes: 1 around a cell, then number of a node; -1: none
  int32_t *tile_number;      // {tiles of the boxes} particles, then number; -1: none
  int64_t boxes, box_tiles;  // room of these
  int32_t *pin;              // {boxes}
  int64_t *cell;             // {n} of a scene: node of a particle's cell, in its boxes
  int64_t *box_tile;         // {n} tile of it
  int32_t *in_tile;          // {n} cell in the tile
  double *fraction;          // {n, dim}
  int32_t tiles, nodes, rims;
  cq_cell_tile *tile;
  int32_t *hulls, *cell_start, *corner, *given, *pins, *scene, *rim_node, *rim_scene, *body_tile;
  int64_t *body_count;
  int32_t tile_room, node_room, rim_room;
  cq_rim *rim;
  int32_t *order;
  double *fractions, *places, *rest;
} cq_shapes_layout;

// For the positions of all scenes. l: zeroed; to be freed after a failure too.
cq_status cq_shapes_lay_out(const cq_model *m, const cq_values *values, int32_t batch, cq_shapes_layout *l);
void cq_shapes_free(cq_shapes_layout *l);

#endif
