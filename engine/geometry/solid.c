// Bodies of tetrahedra, or of triangles in the plane: cells and their faces, from the elements of a Gmsh file.
#include "solid.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 20000000 };
// A cell is flat if its volume is below this share of its longest edge to the power of dim: its corners were rounded,
// or lie in one plane. The worst slivers of meshing programs have 1e-5.
static const double FLAT = 1e-10;
static const double LENGTH_MIN = 1e-50;          // products of three lengths do not vanish

// "tetrahedron" or "triangle", as a cell of this body is called in error sentences.
static const char *noun(const cq_solid *s) { return s->dim == 3 ? "tetrahedron" : "triangle"; }

// ---- nodes ----------------------------------------------------------------------------------------------------------

// Order of nodes by the tag that the file gives them, for qsort.
static int by_tag(const void *a, const void *b) {
  const gmsh_node *p = a, *q = b;
  return (p->tag > q->tag) - (p->tag < q->tag);
}

// Sorts the nodes of the file by tag, and copies their coordinates into the body, whose nodes have the indices of that
// order. CQ_OK, CQ_MEMORY, or CQ_IO for two nodes of one tag.
static cq_status sort_nodes(cq_solid *s, gmsh_file *file, const char *path) {
  gmsh_node *node = file->node.item;
  int sorted = 1;
  for (int64_t k = 1; k < file->node.count && sorted; k++) sorted = node[k].tag > node[k - 1].tag;
  if (!sorted) qsort(node, (size_t)file->node.count, sizeof *node, by_tag);
  for (int64_t k = 1; k < file->node.count; k++)
    if (node[k].tag == node[k - 1].tag)
      return cq_fail(CQ_IO, "mesh '%s' has two nodes of the number %lld", path, (long long)node[k].tag);
  s->node_count = (int32_t)file->node.count;
  s->node = cq_alloc((size_t)s->node_count + 1, 3 * sizeof *s->node, "mesh nodes");
  if (!s->node) return CQ_MEMORY;
  for (int32_t k = 0; k < s->node_count; k++) memcpy(s->node + 3 * k, node[k].x, sizeof node[k].x);
  return CQ_OK;
}

// Replaces the node tags of elements, `corners` of each, by indices of nodes in the order of sort_nodes. what: the kind
// of element, for the sentence. CQ_OK, or CQ_IO for a node that the file does not have.
static cq_status resolve(const gmsh_file *file, gmsh_list *list, int corners, const char *what, const char *path) {
  gmsh_element *element = list->item;
  for (int64_t e = 0; e < list->count; e++)
    for (int k = 0; k < corners; k++) {
      const gmsh_node key = { .tag = element[e].node[k] }, *first = file->node.item,
                      *found = first ? bsearch(&key, first, (size_t)file->node.count, sizeof key, by_tag) : NULL;
      if (!found)
        return cq_fail(CQ_IO, "mesh '%s' has %s %lld with node %lld, which it does not have", path, what,
                       (long long)element[e].number, (long long)key.tag);
      element[e].node[k] = found - first;
    }
  return CQ_OK;
}

// ---- cells ----------------------------------------------------------------------------------------------------------

// Sorts the node indices of a cell or a face, at most four, in ascending order, so that equal faces compare equal.
static void ascend(int32_t *node, int count) {
  for (int i = 1; i < count; i++)
    for (int k = i; k > 0 && node[k] < node[k - 1]; k--) {
      const int32_t other = node[k];
      node[k] = node[k - 1];
      node[k - 1] = other;
    }
}

// Order of tuples by their nodes alone, for qsort and bsearch: -1, 0 or 1.
int solid_order_tuples(const void *a, const void *b) {
  const solid_tuple *p = a, *q = b;
  for (int k = 0; k < 4; k++)
    if (p->node[k] != q->node[k]) return p->node[k] < q->node[k] ? -1 : 1;
  return 0;
}

// Order of faces or cells by their nodes, then by where they come from, for qsort.
static int by_tuple(const void *a, const void *b) {
  const int order = solid_order_tuples(a, b);
  const solid_tuple *p = a, *q = b;
  return order ? order : (p->from > q->from) - (p->from < q->from);
}

// Sets cell_of of each element to the index of the first element with the same nodes: version 2.2 lists an element once
// for each of its groups, and these copies become one cell. CQ_OK or CQ_MEMORY.
static cq_status join_copies(const cq_solid *s, const gmsh_file *file, int32_t *cell_of) {
  const int32_t count = (int32_t)file->cell.count;
  const gmsh_element *element = file->cell.item;
  solid_tuple *tuple = cq_alloc((size_t)count, sizeof *tuple, "mesh cells");
  if (!tuple) return CQ_MEMORY;
  for (int32_t e = 0; e < count; e++) {
    tuple[e] = (solid_tuple){ .node = { -1, -1, -1, -1 }, .from = e };
    for (int k = 0; k <= s->dim; k++) tuple[e].node[k] = (int32_t)element[e].node[k];
    ascend(tuple[e].node, s->dim + 1);
  }
  qsort(tuple, (size_t)count, sizeof *tuple, by_tuple);
  for (int32_t i = 0, first = 0; i < count; i++) {
    if (solid_order_tuples(tuple + i, tuple + first)) first = i;
    cell_of[tuple[i].from] = tuple[first].from;
  }
  cq_free(tuple);
  return CQ_OK;
}

// Volume (area in 2D) of a cell from its corner nodes; sets *longest to the length of its longest edge.
static double volume_of(const cq_solid *s, const int32_t *corner, double *longest) {
  const double *a = s->node + 3 * corner[0];
  double e[3][3] = { { 0 }, { 0 }, { 0, 0, 1 } };
  *longest = 0;
  for (int i = 0; i <= s->dim; i++)
    for (int j = 0; j < i; j++) {
      const double *p = s->node + 3 * corner[i], *q = s->node + 3 * corner[j];
      *longest = fmax(*longest, hypot(hypot(p[0] - q[0], p[1] - q[1]), p[2] - q[2]));
    }
  for (int i = 0; i < s->dim; i++)
    for (int d = 0; d < s->dim; d++) e[i][d] = s->node[3 * corner[i + 1] + d] - a[d];
  const double det = e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) +
                     e[0][1] * (e[1][2] * e[2][0] - e[1][0] * e[2][2]) +
                     e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0]);
  return fabs(det) / (s->dim == 3 ? 6 : 2);
}

// Appends an element of the file to the body's cells, with its corners and its volume (area in 2D), and widens the
// bounding box. CQ_OK, or CQ_IO for a flat cell.
static cq_status take_cell(cq_solid *s, const gmsh_element *element, const char *path) {
  const size_t width = (size_t)s->dim + 1;
  int32_t *corner = s->corner + (size_t)s->cell_count * width;
  double longest;
  for (size_t k = 0; k < width; k++) corner[k] = (int32_t)element->node[k];
  for (size_t k = 0; k < width; k++)
    for (int d = 0; d < 3; d++) {
      s->lower[d] = fmin(s->lower[d], s->node[3 * corner[k] + d]);
      s->upper[d] = fmax(s->upper[d], s->node[3 * corner[k] + d]);
    }
  const double volume = volume_of(s, corner, &longest);
  if (!(longest >= LENGTH_MIN) || !(volume > FLAT * pow(longest, s->dim)))
    return cq_fail(CQ_IO, "mesh '%s' has %s %lld that is flat: its %s is %g, with edges of up to %g", path, noun(s),
                   (long long)element->number, s->dim == 3 ? "volume" : "area", volume, longest);
  s->volume[s->cell_count++] = volume;
  return CQ_OK;
}

// Makes the cells of the body from the elements of the file, whatever the order of their corners. cell_of: set to the
// cell index of each element. CQ_OK, CQ_MEMORY, or CQ_IO for a flat cell.
static cq_status take_cells(cq_solid *s, const gmsh_file *file, int32_t *cell_of, const char *path) {
  const int32_t count = (int32_t)file->cell.count;
  const gmsh_element *element = file->cell.item;
  for (int32_t e = 0; e < count; e++) cell_of[e] = e;
  cq_status status = file->by_entity ? CQ_OK : join_copies(s, file, cell_of);
  s->corner = cq_alloc((size_t)count, ((size_t)s->dim + 1) * sizeof *s->corner, "mesh cells");
  s->volume = cq_alloc((size_t)count, sizeof *s->volume, "mesh cells");
  if (!s->corner || !s->volume) return CQ_MEMORY;
  for (int32_t e = 0; e < count && !status; e++) {
    const int32_t first = cell_of[e];
    cell_of[e] = first < e ? cell_of[first] : s->cell_count;
    if (first == e) status = take_cell(s, element + e, path);
  }
  return status;
}

// ---- faces ----------------------------------------------------------------------------------------------------------

// Sets node to the node indices of a face (numbered as in solid.h), ascending; -1 for a third in 2D.
void solid_face_nodes(const cq_solid *s, int32_t face, int32_t node[3]) {
  const int width = s->dim + 1;
  const int32_t *corner = s->corner + (size_t)(face / width) * (size_t)width;
  int count = 0;
  node[2] = -1;
  for (int k = 0; k < width; k++)
    if (k != face % width) node[count++] = corner[k];
  ascend(node, count);
}

// Sets area vector, out of its cell, and centre of a face. Returns 1 if its nodes in ascending order turn
// counterclockwise seen from the tip of the vector (in the plane: along them, the cell is on the left), else -1.
int solid_face(const cq_solid *s, int32_t face, double area[3], double center[3]) {
  int32_t node[3];
  const int width = s->dim + 1;
  solid_face_nodes(s, face, node);
  const double *a = s->node + 3 * node[0], *b = s->node + 3 * node[1],
               *c = s->dim == 3 ? s->node + 3 * node[2] : NULL,
               *apex = s->node + 3 * s->corner[(size_t)(face / width) * (size_t)width + (size_t)(face % width)];
  if (c) {
    for (int i = 0; i < 3; i++) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      area[i] = ((b[j] - a[j]) * (c[k] - a[k]) - (b[k] - a[k]) * (c[j] - a[j])) / 2;
      center[i] = (a[i] + b[i] + c[i]) / 3;
    }
  } else {
    area[0] = b[1] - a[1], area[1] = a[0] - b[0], area[2] = 0;
    for (int i = 0; i < 3; i++) center[i] = (a[i] + b[i]) / 2;
  }
  double out = 0;
  for (int i = 0; i < 3; i++) out += area[i] * (a[i] - apex[i]);
  for (int i = 0; i < 3 && out < 0; i++) area[i] = -area[i];
  return out < 0 ? -1 : 1;
}

// Does the corner of a face's cell opposite of the face lie on the side that the area vector points to? `face` belongs
// to another cell with the same nodes, for which area and center were computed.
static int beyond(const cq_solid *s, int32_t face, const double area[3], const double center[3]) {
  const int width = s->dim + 1;
  const double *apex = s->node + 3 * s->corner[(size_t)(face / width) * (size_t)width + (size_t)(face % width)];
  double side = 0;
  for (int d = 0; d < 3; d++) side += area[d] * (apex[d] - center[d]);
  return side > 0;
}

// CQ_OK, or CQ_IO for two cells that share a face and lie on the same side of it, as when nodes were moved so far that
// a cell was inverted. pair: the face in both cells; number {cells}: of each cell in the file, for the sentence.
static cq_status check_pair(const cq_solid *s, const solid_tuple *pair, const int64_t *number, const char *path) {
  double area[3], center[3];
  solid_face(s, pair[0].from, area, center);
  if (beyond(s, pair[1].from, area, center)) return CQ_OK;
  return cq_fail(CQ_IO, "mesh '%s' has the %s %lld and %lld on the same side of the face that they share: one of them "
                 "is inverted, or they lie on each other", path, s->dim == 3 ? "tetrahedra" : "triangles",
                 (long long)number[pair[0].from / (s->dim + 1)], (long long)number[pair[1].from / (s->dim + 1)]);
}

// Order of two int32_t, for qsort.
static int by_number(const void *a, const void *b) {
  const int32_t *p = a, *q = b;
  return (*p > *q) - (*p < *q);
}

// Sorts the faces of all cells by their nodes into s->tuple, and puts those that belong to one cell alone, the surface,
// into s->face, ascending. number {cells}: of each cell in the file. CQ_OK, CQ_MEMORY, or CQ_IO for overlapping cells.
static cq_status find_faces(cq_solid *s, const int64_t *number, const char *path) {
  const int32_t count = s->cell_count * (s->dim + 1);
  s->tuple = cq_alloc((size_t)count, sizeof *s->tuple, "mesh faces");
  s->face = cq_alloc((size_t)count, sizeof *s->face, "mesh faces");
  if (!s->tuple || !s->face) return CQ_MEMORY;
  for (int32_t f = 0; f < count; f++) {
    s->tuple[f] = (solid_tuple){ .node = { -1, -1, -1, -1 }, .from = f };
    solid_face_nodes(s, f, s->tuple[f].node);
  }
  qsort(s->tuple, (size_t)count, sizeof *s->tuple, by_tuple);
  cq_status status = CQ_OK;
  for (int32_t i = 0, j; i < count && !status; i = j) {
    for (j = i + 1; j < count && !solid_order_tuples(s->tuple + i, s->tuple + j);) j++;
    if (j == i + 1) s->face[s->face_count++] = s->tuple[i].from;
    else if (j == i + 2) status = check_pair(s, s->tuple + i, number, path);
    else status = cq_fail(CQ_IO, "mesh '%s' has a face that %d %s share, number %lld among them: some lie on each other",
                          path, j - i, s->dim == 3 ? "tetrahedra" : "triangles",
                          (long long)number[s->tuple[i].from / (s->dim + 1)]);
  }
  qsort(s->face, (size_t)s->face_count, sizeof *s->face, by_number);
  return status;
}

// ---- what is inside -------------------------------------------------------------------------------------------------

// Sets the corners of a face {3, 3}: in 3D in the order whose normal points out of its cell; in 2D by ascending node
// index, and zeros for a third.
static void face_corners(const cq_solid *s, int32_t face, double corner[9]) {
  int32_t node[3];
  double area[3], center[3];
  solid_face_nodes(s, face, node);
  const int turned = solid_face(s, face, area, center) < 0 && s->dim == 3;
  for (int k = 0; k < 3; k++) {
    const int32_t from = node[turned && k > 0 ? 3 - k : k];
    for (int d = 0; d < 3; d++) corner[3 * k + d] = from < 0 ? 0 : s->node[3 * from + d];
  }
}

// Copies the corners of the faces of a body's surface {faces, dim, dim}, in 3D turned outward.
void cq_solid_corners(const cq_solid *s, double *corner) {
  for (int32_t k = 0; k < s->face_count; k++) {
    double own[9];
    face_corners(s, s->face[k], own);
    for (int i = 0; i < s->dim; i++)
      memcpy(corner + ((size_t)k * (size_t)s->dim + (size_t)i) * (size_t)s->dim, own + 3 * i,
             (size_t)s->dim * sizeof *corner);
  }
}

// Makes the triangle mesh of a solid's surface, for inside tests. CQ_OK or an error of the mesh.
static cq_status make_surface(cq_solid *s, const char *path) {
  s->surface = cq_alloc(1, sizeof *s->surface, "mesh");
  if (!s->surface) return CQ_MEMORY;
  s->surface->path = path;
  cq_status status = mesh_begin_part(s->surface, "");
  for (int32_t k = 0; k < s->face_count && !status; k++) {
    double corner[9];
    face_corners(s, s->face[k], corner);
    status = mesh_add(s->surface, corner, 0, -1);
  }
  if (!status) status = mesh_finish(s->surface);
  s->surface->path = NULL;
  return status;
}

// Does a point of the plane lie in the body? It does if a ray from it to the right crosses an odd number of edges.
static int inside_plane(const cq_solid *s, const double x[2]) {
  int crossings = 0;
  for (int32_t k = 0; k < s->face_count; k++) {
    int32_t node[3];
    solid_face_nodes(s, s->face[k], node);
    const double *a = s->node + 3 * node[0], *b = s->node + 3 * node[1];
    if ((a[1] > x[1]) == (b[1] > x[1])) continue;
    crossings += a[0] + (x[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0]) > x[0];
  }
  return crossings % 2;
}

// Sets out {n} to 1 for points {n, dim} that lie in the body, else 0. CQ_OK.
cq_status cq_solid_inside(const cq_solid *s, int64_t n, const double *points, uint8_t *out) {
  if (s->dim == 3) return cq_mesh_inside(s->surface, -1, n, points, out);
  for (int64_t k = 0; k < n; k++) out[k] = (uint8_t)inside_plane(s, points + 2 * k);
  return CQ_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------------

// CQ_OK, or CQ_IO for a body in 2D whose nodes have different z.
static cq_status check_plane(const cq_solid *s, const char *path) {
  const double size = fmax(s->upper[0] - s->lower[0], s->upper[1] - s->lower[1]), depth = s->upper[2] - s->lower[2];
  if (s->dim == 3 || depth <= 1e-9 * size) return CQ_OK;
  return cq_fail(CQ_IO, "mesh '%s' has triangles at z from %g to %g: a body in the plane has one z", path, s->lower[2],
                 s->upper[2]);
}

// CQ_OK, or CQ_IO for a mesh without cells, or with too many.
static cq_status check_count(const cq_solid *s, const gmsh_file *file, const char *path) {
  if (file->cell.count > CELLS_MAX || file->node.count > 4 * (int64_t)CELLS_MAX)
    return cq_fail(CQ_IO, "mesh '%s' has %lld %s and %lld nodes; at most %d, and four times as many, are allowed", path,
                   (long long)file->cell.count, s->dim == 3 ? "tetrahedra" : "triangles", (long long)file->node.count,
                   CELLS_MAX);
  if (file->cell.count > 0) return CQ_OK;
  if (s->dim == 3 && file->face.count > 0)
    return cq_fail(CQ_IO, "mesh '%s' has no tetrahedra, but %lld triangle%s: mesh its volumes (gmsh -3), or take "
                   "cq.Shape.triangles for a body in the plane", path, (long long)file->face.count,
                   file->face.count > 1 ? "s" : "");
  return cq_fail(CQ_IO, "mesh '%s' has no %s", path, s->dim == 3 ? "tetrahedra" : "triangles");
}

// Makes a body of cells, with its faces, groups and cavities, out of the elements of a Gmsh file. CQ_OK or an error,
// whose sentence names the element.
static cq_status build(cq_solid *s, gmsh_file *file, const char *path) {
  cq_status status = check_count(s, file, path);
  if (status) return status;
  int32_t *cell_of = cq_alloc((size_t)file->cell.count, sizeof *cell_of, "mesh cells");
  int64_t *number = cq_alloc((size_t)file->cell.count, sizeof *number, "mesh cells");
  if (!cell_of || !number) status = CQ_MEMORY;
  if (!status) status = sort_nodes(s, file, path);
  if (!status) status = resolve(file, &file->cell, s->dim + 1, noun(s), path);
  if (!status) status = resolve(file, &file->face, s->dim, s->dim == 3 ? "triangle" : "line", path);
  if (!status) status = take_cells(s, file, cell_of, path);
  for (int64_t e = 0; e < file->cell.count && !status; e++)
    number[cell_of[e]] = ((gmsh_element *)file->cell.item)[e].number;
  if (!status) status = check_plane(s, path);
  if (!status) status = find_faces(s, number, path);
  if (!status) status = solid_find_groups(s, file, cell_of, path);
  if (!status) status = solid_find_cavities(s);
  if (!status && s->dim == 3) status = make_surface(s, path);
  cq_free(s->tuple);             // groups were found by it
  s->tuple = NULL;
  cq_free(cell_of);
  cq_free(number);
  return status;
}

// Reads a Gmsh file into a new body, *solid, NULL on failure: of its tetrahedra (dim 3), or of its triangles, which
// have one z (2). cq_solid_close frees it. CQ_OK, CQ_IO, CQ_MEMORY, or CQ_INVALID for another dim.
cq_status cq_solid_open(const char *path, int32_t dim, cq_solid **solid) {
  *solid = NULL;
  if (dim != 2 && dim != 3) return cq_fail(CQ_INVALID, "a body of %dD is wanted, 2 and 3 are allowed", dim);
  cq_solid *s = cq_alloc(1, sizeof *s, "mesh");
  if (!s) return CQ_MEMORY;
  s->dim = dim;
  for (int d = 0; d < 3; d++) {
    s->lower[d] = INFINITY;
    s->upper[d] = -INFINITY;
  }
  gmsh_file file = { .dim = dim };
  cq_status status = gmsh_read(&file, path);
  if (!status) status = build(s, &file, path);
  gmsh_free(&file);
  if (status) cq_solid_close(s);
  else *solid = s;
  return status;
}

// Frees a body; NULL: does nothing.
void cq_solid_close(cq_solid *s) {
  if (!s) return;
  cq_free(s->node);
  cq_free(s->corner);
  cq_free(s->volume);
  cq_free(s->face);
  cq_free(s->group);
  cq_free(s->member);
  cq_free(s->wall);
  cq_free(s->wall_face);
  cq_mesh_close(s->surface);
  cq_free(s);
}

// Fills info with the counts and the box of a body.
void cq_solid_describe(const cq_solid *s, cq_solid_info *info) {
  *info = (cq_solid_info){ .cell_count = s->cell_count, .face_count = s->face_count, .group_count = s->group_count,
                           .wall_count = s->wall_count, .cavity_count = s->cavity_count };
  memcpy(info->lower, s->lower, sizeof info->lower);
  memcpy(info->upper, s->upper, sizeof info->upper);
}

// Sets the centre {cells, dim} and the volume {cells} (area in 2D) of each cell.
void cq_solid_cells(const cq_solid *s, double *center, double *volume) {
  const int width = s->dim + 1;
  memcpy(volume, s->volume, (size_t)s->cell_count * sizeof *volume);
  for (int32_t c = 0; c < s->cell_count; c++)
    for (int d = 0; d < s->dim; d++) {
      double sum = 0;
      for (int k = 0; k < width; k++) sum += s->node[3 * s->corner[(size_t)c * (size_t)width + (size_t)k] + d];
      center[(size_t)c * (size_t)s->dim + (size_t)d] = sum / width;
    }
}
