// Bodies of tetrahedra, or of triangles in the plane. Inside the geometry room.
#ifndef CQ_SOLID_H
#define CQ_SOLID_H

#include "gmsh.h"

// A face of a cell is numbered cell * (dim + 1) + k, where k is the corner of the cell that it lies opposite of.
// A tuple is a face or a cell by its nodes in ascending order; sorted, equal ones lie side by side.
typedef struct solid_tuple { int32_t node[4], from; } solid_tuple;

// A part of the surface that a pressure may push on: the faces of it that belong to one cell alone.
typedef struct solid_wall {
  char name[GMSH_NAME];
  int32_t first, count;          // in wall_face, ascending
  int32_t between;               // faces that two cells share, on which no pressure acts; they are not in the list
} solid_wall;

typedef struct solid_group { char name[GMSH_NAME]; int32_t dim, first, count; } solid_group;       // in member

struct cq_solid {
  int32_t dim, cell_count, node_count, face_count;
  double *node;                  // {nodes, 3}
  int32_t *corner;               // {cells, dim + 1}
  double *volume;                // {cells}
  double lower[3], upper[3];
  int32_t *face;                 // {faces} those of one cell alone, ascending: the surface
  solid_tuple *tuple;            // {cells * (dim + 1)} sorted; while it is made
  int32_t group_count, wall_count, cavity_count;
  solid_group *group;
  int32_t *member;               // cells of the groups, ascending
  solid_wall *wall;              // by the names of the file; then the cavities
  int32_t *wall_face;
  cq_mesh *surface;              // in 3D: what is inside
};

int solid_order_tuples(const void *a, const void *b);     // order of two solid_tuple by nodes alone, for qsort
// Sets area vector, out of its cell, and centre of a face. Returns 1 if its nodes in ascending order turn
// counterclockwise seen from the tip of the vector (in the plane: along them, the cell is on the left), else -1.
int solid_face(const cq_solid *solid, int32_t face, double area[3], double center[3]);
void solid_face_nodes(const cq_solid *solid, int32_t face, int32_t node[3]);     // ascending; node[2] = -1 in 2D
// Fills groups and walls from the file. cell_of {file->cell}: the cell index of each element.
cq_status solid_find_groups(cq_solid *solid, const gmsh_file *file, const int32_t *cell_of, const char *path);
cq_status solid_find_cavities(cq_solid *solid);

#endif
