// Triangle meshes inside the geometry room: what the readers fill and the winding test asks.
#ifndef CQ_MESH_H
#define CQ_MESH_H

#ifdef __cplusplus
extern "C" {
#endif

#include "../base/base.h"

enum { MESH_PART_NAME = 64, MESH_TRIANGLE_MAX = 20000000, MESH_BINS_MAX = 512 };

// triangles sorted into square bins of their shadow along one axis
typedef struct mesh_bins {
  int32_t side;                  // bins along both other axes
  int32_t *start, *triangle;     // {side^2 + 1}, {start[side^2]}
} mesh_bins;

struct cq_mesh {
  int64_t triangle_count, triangle_capacity;
  double *corner;                // {triangles, 3, 3}
  int32_t *part;                 // {triangles}
  int32_t part_count, part_capacity;
  char (*name)[MESH_PART_NAME];
  double lower[3], upper[3], volume;
  int64_t open_edges;
  mesh_bins bins[3];
};

// A part is begun, then triangles are added to it. Both fail for want of memory, or beyond MESH_TRIANGLE_MAX.
cq_status mesh_begin_part(cq_mesh *mesh, const char *name);
cq_status mesh_add(cq_mesh *mesh, const double corner[9]);
cq_status mesh_read_stl(cq_mesh *mesh, const char *path);
cq_status mesh_read_obj(cq_mesh *mesh, const char *path);

#ifdef __cplusplus
}
#endif

#endif
