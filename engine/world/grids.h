// grids: the grid of each body's undeformed shape, for steps on reference grids (total Lagrangian steps).
#ifndef CQ_GRIDS_H
#define CQ_GRIDS_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

// The grid of one body. Nodes lie with the first axis slowest; the outermost ones stand half a cell or more outside of
// all particles. A device that numbers nodes otherwise leaves first and stride.
typedef struct cq_body {
  int64_t first;             // its first node
  int32_t count[3];          // nodes along each axis
  int64_t stride[3];         // of nodes along each axis; 1 along the last
  double origin[3];          // place of the first node, with the positions that the world was made with
  double shift[3];           // mean displacement of its particles from these positions, by which the grid moves
  int64_t low[3];            // lowest cell of its particles, counted from the origin, while a layout is made
  int64_t particles;
} cq_body;

// a surface node: the node of a cell at the surface of a body
typedef struct cq_rim {
  int64_t node;
  int32_t particle;          // one of the cell
  int32_t body, cell[3];
  double push;               // force by which it pushes others away at half their reach; 0 without collisions
} cq_rim;

// Points within the cell of a surface node, by which a search for surfaces that touch represents it (touch.inl): spread
// over the deformed cell at most about dx apart, so that there is one along an edge that is not stretched.
typedef struct cq_rim_places {
  double node[3], edge[3][3];
  int32_t count[3], all;
} cq_rim_places;

// Sets bodies to those of a model, {body_count}, to be freed by cq_free. The first node of each stands half a cell
// below the surface of its lowest particle, by the positions that the world was made with. CQ_OK or CQ_MEMORY.
cq_status cq_grids_create(const cq_model *m, cq_body **bodies);
// Sets shift, low and count of all bodies for positions {n, dim}: nodes around the cells of all particles. Cells begin
// at 1: a particle that positions put below the first cell makes the grid begin earlier. CQ_OK or CQ_MEMORY.
cq_status cq_grids_size(const cq_model *m, const double *positions, cq_body *bodies);
// Sets cell to the cell that a place x lies in, counted from the origin of its body, and fraction to where it is from
// the node in the middle of the cell, in [-1/2, 1/2). The origin must stay until all particles have their cells: where
// one lies on the edge of two, other numbers may put it into the other.
void cq_grids_cell(const cq_model *m, const cq_body *body, const double *x, int64_t cell[3], double fraction[3]);
// After all particles have their cells: moves the origin of each body to its first node.
void cq_grids_settle(const cq_model *m, cq_body *bodies);

// Is a particle a quarter of a cell from the node of its cell along every axis, as on a lattice of two particles a
// side? Returns its corner there, a bit for each axis, 1 for the upper side, the last axis lowest; else -1. fraction:
// from the node [cells].
int32_t cq_grids_corner(int32_t dim, const double fraction[3]);

// The constant k of repulsion between surfaces (E117) for a particle's cell, the force by which its node pushes another
// one away at half the reach: by the values that the world was made with, so that it is a constant.
double cq_touch_push(const cq_model *m, int64_t particle);
// The P-wave modulus [stress] whose waves ask for as short a step as collisions do, for a particle whose material has
// the P-wave modulus `modulus` (E119); 0 without collisions.
double cq_touch_modulus(const cq_model *m, int64_t particle, double modulus);

// Enters the surfaces of bodies into cells of the world. Sets pair to two that touch, -1 where none do, and edge to 1
// where one is at the edge of the world (touch.inl), else leaves it. In a world with collisions only surfaces that are
// stretched over more than a cell can touch: the others push each other apart. CQ_OK or CQ_MEMORY.
cq_status cq_touch_find(const cq_model *m, const cq_rim *rim, const cq_rim_places *places, int32_t count,
                        int32_t pair[2], int *edge);

// Pairs of surface nodes that are near and were apart in the undeformed body, the greater index of a pair first, sorted
// by that index, then by the second. They contain all pairs within CQ_NEAR_REACH cells until some node has moved by
// CQ_NEAR_WAY cells.
#define CQ_NEAR_REACH 1.5
#define CQ_NEAR_WAY 0.25
#define CQ_NEAR_LEAST 0.25   // cells, from which on two are inside of each other
typedef struct cq_near {
  int32_t count, room, *pair;   // {count, 2} rims
  double *at;                // {rims, dim} positions of nodes when the pairs were found; NULL: never
} cq_near;
// Finds the pairs of near nodes again if some node has moved so far that there may be others; else keeps them.
// positions {count, dim}: of the nodes of rim. CQ_OK or CQ_MEMORY.
cq_status cq_near_update(cq_near *near, const cq_model *m, const cq_rim *rim, const double *positions, int32_t count);
// Frees the pairs of near nodes, and zeroes the struct; the next update finds them again.
void cq_near_free(cq_near *near);

#ifdef __cplusplus
}
#endif

#endif
