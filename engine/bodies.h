// bodies: the part of cq.h that particles are made by: pixels of images, clusters, meshes of triangles, and bodies of
// tetrahedra. cq.h includes it.
#ifndef CQ_BODIES_H
#define CQ_BODIES_H

// Size and pixels of a PNG file. Both functions check header and checksums, and refuse an enormous picture, before they
// allocate memory.
cq_status cq_image_size(const char *path, int32_t size[2]);               // sets size to {width, height} [pixel]
// Sets rgba {height, width, 4}, of `bytes` bytes, to the pixels, the top row first.
cq_status cq_image_read(const char *path, int64_t bytes, uint8_t *rgba);

// Labels 0..k-1 of points {n, dim}, no cluster empty, numbered by their centres (first coordinate first).
cq_status cq_kmeans(int64_t n, int32_t dim, const double *points, int32_t k, uint64_t seed, int32_t *labels);

typedef struct cq_mesh cq_mesh;         // triangles of an OBJ or STL file

typedef struct cq_mesh_info {
  int64_t triangle_count;
  int64_t open_edges;                   // that are not shared by two triangles; 0: closed, and the volume is exact
  int32_t part_count;                   // groups of the file, then its materials
  int32_t material_count;
  // 1: its triangles face inward, and inside tests turn them round; 0: they face out of the body
  int32_t inward;
  double lower[3], upper[3];            // corners of the box that holds it
  double volume;
} cq_mesh_info;

cq_status cq_mesh_open(const char *path, cq_mesh **mesh);
void cq_mesh_close(cq_mesh *mesh);
void cq_mesh_describe(const cq_mesh *mesh, cq_mesh_info *info);
void cq_mesh_corners(const cq_mesh *mesh, double *corner);                // sets corner {triangles, 3, 3}
const char *cq_mesh_part_name(const cq_mesh *mesh, int32_t part);         // "" without a name, NULL beyond the last
// 1: a part's triangles are only a piece of a surface that other parts close, so that nothing is inside of it; else 0.
int32_t cq_mesh_part_is_piece(const cq_mesh *mesh, int32_t part);
// Which of points {n, 3} lie inside a part (-1: inside the mesh) by winding numbers: out {n} 1 or 0.
cq_status cq_mesh_inside(const cq_mesh *mesh, int32_t part, int64_t n, const double *points, uint8_t *out);
// Sets part {n, 2} to the group and the material (-1: none) of the triangle nearest to each of points {n, 3}. CQ_OK or
// CQ_MEMORY.
cq_status cq_mesh_nearest(const cq_mesh *mesh, int64_t n, const double *points, int32_t *part);

typedef struct cq_solid cq_solid;       // tetrahedra, or triangles in the plane, of a Gmsh file (MSH 2.2, 4.0, 4.1)

typedef struct cq_solid_info {
  int64_t cell_count, face_count;       // tetrahedra (triangles), and faces (edges) of its surface
  // walls: by the names of the file, one for each group of surfaces; the last cavity_count are the cavities
  int32_t group_count, wall_count, cavity_count;
  double lower[3], upper[3];            // corners of the box that holds it
} cq_solid_info;

typedef struct cq_solid_wall_info {
  const char *name;                     // for as long as the solid is open
  int64_t cell_count, face_count;       // cells that have faces of it
  int64_t open_count;                   // edges where a face has no neighbour; 0: closed
  int64_t between;                      // faces that two cells share, on which no pressure acts; not in face_count
  double open_at[3];                    // the middle of an open edge
  double sum[3], area;                  // of area vectors out of the solid, and of their lengths
  double volume;                        // volume that a closed wall encloses; below 0 for the outside of a body
} cq_solid_wall_info;

// dim 3: a body of the file's tetrahedra; 2: of its triangles, which have one z.
cq_status cq_solid_open(const char *path, int32_t dim, cq_solid **solid);
void cq_solid_close(cq_solid *solid);
void cq_solid_describe(const cq_solid *solid, cq_solid_info *info);
void cq_solid_cells(const cq_solid *solid, double *center, double *volume);        // sets {cells, dim} and {cells}
void cq_solid_corners(const cq_solid *solid, double *corner);             // of its surface's faces {faces, dim, dim}
// The name of a group (from 0) of cells, or of the cells at a group of faces; count: of its cells. NULL beyond the
// last.
const char *cq_solid_group(const cq_solid *solid, int32_t group, int64_t *count);
void cq_solid_group_cells(const cq_solid *solid, int32_t group, int32_t *cell);
cq_status cq_solid_wall(const cq_solid *solid, int32_t wall, cq_solid_wall_info *info);
// The cells of a wall {cells}, area vectors N A out of the solid, and arms from the cell's centre to the wall {cells,
// dim}: with them the volume of a closed wall is exact under any deformation of the cells.
void cq_solid_wall_cells(const cq_solid *solid, int32_t wall, int32_t *cell, double *area, double *arm);
// The faces of a wall, turned so that their area vectors point into the solid: node {faces, dim}, indices of nodes, and
// corner {faces, dim, dim}, their coordinates.
void cq_solid_wall_faces(const cq_solid *solid, int32_t wall, int32_t *node, double *corner);
// Sets out {n} to 1 for points {n, dim} that lie in the body, else to 0.
cq_status cq_solid_inside(const cq_solid *solid, int64_t n, const double *points, uint8_t *out);

#endif
