// Walls of a body of cells: cavities that the file does not name, and the area vectors that a pressure needs.
#include "solid.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- what closes a surface ------------------------------------------------------------------------------------------

// A rim of a face: an edge of a triangle, or an end of a line (high is -1), by its nodes low < high. `face` is the
// index of the face in a list, and `turn` the direction, 1 or -1, in which the face passes the rim. A surface is closed
// where the turns of every rim sum to zero: then, and only then, its area vectors are sure to.
typedef struct rim { int32_t low, high, face, turn; } rim;

// Order of rims by their two nodes, then by face, for qsort.
static int by_rim(const void *a, const void *b) {
  const rim *p = a, *q = b;
  if (p->low != q->low) return p->low < q->low ? -1 : 1;
  if (p->high != q->high) return p->high < q->high ? -1 : 1;
  return (p->face > q->face) - (p->face < q->face);
}

// The rims of `count` faces: the edges of triangles, in 2D the ends of lines, `dim` of each. Sorted, so that faces that
// share an edge are neighbours in the list {count * dim}; NULL without memory. The caller frees it.
static rim *rims_of(const cq_solid *s, const int32_t *face, int32_t count) {
  rim *list = cq_alloc((size_t)count + 1, (size_t)s->dim * sizeof *list, "walls of a mesh");
  for (int32_t k = 0; k < count && list; k++) {
    int32_t node[3];
    double area[3], center[3];
    solid_face_nodes(s, face[k], node);
    const int turn = solid_face(s, face[k], area, center);
    for (int i = 0; i < s->dim; i++)
      list[s->dim * k + i] = s->dim == 2 ? (rim){ node[i], -1, k, i == 0 ? -turn : turn }
                                         : (rim){ node[i == 2], node[i == 0 ? 1 : 2], k, i == 1 ? -turn : turn };
  }
  if (list) qsort(list, (size_t)count * (size_t)s->dim, sizeof *list, by_rim);
  return list;
}

// The index of the first entry after i in a sorted list of rims that is another edge; `end` if there is none.
static int32_t next_rim(const rim *list, int32_t i, int32_t end) {
  int32_t j = i + 1;
  while (j < end && list[j].low == list[i].low && list[j].high == list[i].high) j++;
  return j;
}

// ---- cavities -------------------------------------------------------------------------------------------------------

// A connected piece of the surface: the face that stands for it, the volume that it encloses, its area and centre.
typedef struct piece { int32_t root; double volume, area, center[3]; } piece;

// The root of k's set in a union-find forest; shortens the path to it.
static int32_t root_of(int32_t *parent, int32_t k) {
  while (parent[k] != k) k = parent[k] = parent[parent[k]];
  return k;
}

// Order of pieces of a surface by their centres, so that walls have the same numbers whatever the file's order, for
// qsort.
static int by_place(const void *a, const void *b) {
  const piece *p = a, *q = b;
  for (int d = 0; d < 3; d++)
    if (p->center[d] != q->center[d]) return p->center[d] < q->center[d] ? -1 : 1;
  return (p->root > q->root) - (p->root < q->root);
}

// Joins the faces of the surface that share an edge into pieces: root_of(parent, f) is then the first face of the piece
// of f, both indices into s->face. CQ_OK or CQ_MEMORY.
static cq_status join_faces(const cq_solid *s, int32_t *parent) {
  const int32_t end = s->face_count * s->dim;
  rim *list = rims_of(s, s->face, s->face_count);
  if (!list) return CQ_MEMORY;
  for (int32_t k = 0; k < s->face_count; k++) parent[k] = k;
  for (int32_t i = 0, j; i < end; i = j) {
    j = next_rim(list, i, end);
    for (int32_t k = i + 1; k < j; k++) {
      const int32_t a = root_of(parent, list[i].face), b = root_of(parent, list[k].face);
      if (a != b) parent[a > b ? a : b] = a > b ? b : a;
    }
  }
  cq_free(list);
  return CQ_OK;
}

// The volume of the pyramid (in 2D the area of the triangle) between a face and the point `from`, positive where the
// face's area vector, out of the solid, points towards `from`; the sum over the wall of a cavity is the cavity's
// volume. *size, center: set to area and middle of the face.
static double share(const cq_solid *s, int32_t face, const double from[3], double *size, double center[3]) {
  double area[3], sum = 0, square = 0;
  solid_face(s, face, area, center);
  for (int d = 0; d < 3; d++) {
    sum -= area[d] * (center[d] - from[d]);
    square += area[d] * area[d];
  }
  *size = sqrt(square);
  return sum / s->dim;
}

// Sums up volume, area and centre of the connected pieces of the surface in `list` {faces}, zeros before; moves those
// that enclose a cavity to its front, sorted by their centres, and returns how many there are. parent {faces}: the
// first face of each face's piece.
static int32_t measure_pieces(const cq_solid *s, const int32_t *parent, piece *list) {
  int32_t count = 0;
  for (int32_t k = 0; k < s->face_count; k++) {
    double size, center[3];
    piece *one = list + parent[k];
    one->root = parent[k];
    one->volume += share(s, s->face[k], s->lower, &size, center);
    one->area += size;
    for (int d = 0; d < s->dim; d++) one->center[d] += size * center[d];
  }
  for (int32_t k = 0; k < s->face_count; k++) {
    if (parent[k] != k || !(list[k].volume > 0)) continue;
    piece one = list[k];
    for (int d = 0; d < s->dim; d++) one.center[d] /= one.area;
    list[count++] = one;
  }
  qsort(list, (size_t)count, sizeof *list, by_place);
  return count;
}

// Appends a wall to the body for each cavity. parent {faces}: the first face of each face's piece; list: the cavities'
// pieces; place {faces}: set, at the first face of each piece, to its cavity, -1 if it is none. CQ_OK or CQ_MEMORY.
static cq_status append(cq_solid *s, const int32_t *parent, const piece *list, int32_t *place) {
  const int32_t before = s->wall_count ? s->wall[s->wall_count - 1].first + s->wall[s->wall_count - 1].count : 0;
  solid_wall *wall = cq_alloc((size_t)(s->wall_count + s->cavity_count), sizeof *wall, "walls of a mesh");
  int32_t *face = cq_alloc((size_t)(before + s->face_count), sizeof *face, "walls of a mesh");
  if (wall && s->wall_count) memcpy(wall, s->wall, (size_t)s->wall_count * sizeof *wall);
  if (face && before) memcpy(face, s->wall_face, (size_t)before * sizeof *face);
  cq_free(s->wall);
  cq_free(s->wall_face);
  s->wall = wall;
  s->wall_face = face;
  if (!wall || !face) return CQ_MEMORY;
  for (int32_t k = 0; k < s->face_count; k++) place[k] = -1;
  for (int32_t c = 0; c < s->cavity_count; c++) place[list[c].root] = c;
  solid_wall *own = wall + s->wall_count;
  for (int32_t k = 0; k < s->face_count; k++)
    if (place[parent[k]] >= 0) own[place[parent[k]]].count++;
  for (int32_t c = 0, first = before; c < s->cavity_count; first += own[c++].count) {
    snprintf(own[c].name, sizeof own[c].name, "cavity_%d", c + 1);
    own[c].first = first;
  }
  for (int32_t k = 0; k < s->face_count; k++) {
    const int32_t c = place[parent[k]];
    if (c >= 0) face[own[c].first++] = s->face[k];
  }
  for (int32_t c = 0; c < s->cavity_count; c++) own[c].first -= own[c].count;
  s->wall_count += s->cavity_count;
  return CQ_OK;
}

// Appends a wall "cavity_1", ... for each cavity of the body, in the order of their centres. CQ_OK or CQ_MEMORY.
cq_status solid_find_cavities(cq_solid *s) {
  const size_t n = (size_t)s->face_count + 1;
  static const char what[] = "walls of a mesh";
  int32_t *parent = cq_alloc(n, sizeof *parent, what), *place = cq_alloc(n, sizeof *place, what);
  piece *list = cq_alloc(n, sizeof *list, what);
  cq_status status = parent && place && list ? join_faces(s, parent) : CQ_MEMORY;
  if (!status) {
    for (int32_t k = 0; k < s->face_count; k++) parent[k] = root_of(parent, k);
    s->cavity_count = measure_pieces(s, parent, list);
    if (s->cavity_count) status = append(s, parent, list, place);
  }
  cq_free(parent);
  cq_free(place);
  cq_free(list);
  return status;
}

// ---- readouts -------------------------------------------------------------------------------------------------------

// Sets open_count of info to the number of edges along which a wall is open, since a pressure needs a closed one, and
// open_at to the middle of the first, for the error. CQ_OK or CQ_MEMORY.
static cq_status find_open(const cq_solid *s, const solid_wall *w, cq_solid_wall_info *info) {
  const int32_t end = w->count * s->dim;
  if (!end) return CQ_OK;
  rim *list = rims_of(s, s->wall_face + w->first, w->count);
  if (!list) return CQ_MEMORY;
  for (int32_t i = 0, j; i < end; i = j) {
    int32_t sum = 0;
    j = next_rim(list, i, end);
    for (int32_t k = i; k < j; k++) sum += list[k].turn;
    if (!sum) continue;
    const double *a = s->node + 3 * list[i].low, *b = list[i].high < 0 ? a : s->node + 3 * list[i].high;
    for (int d = 0; d < 3 && !info->open_count; d++) info->open_at[d] = (a[d] + b[d]) / 2;
    info->open_count++;
  }
  cq_free(list);
  return CQ_OK;
}

// The number of cells that have faces in a wall. The wall's faces are ascending, so that faces of one cell are
// neighbours.
static int32_t count_cells(const cq_solid *s, const solid_wall *w) {
  const int32_t *face = s->wall_face + w->first, width = s->dim + 1;
  int32_t count = 0;
  for (int32_t k = 0; k < w->count; k++) count += k == 0 || face[k] / width != face[k - 1] / width;
  return count;
}

// Fills info of a wall (from 0): its name, counts, area, enclosed volume and open edges. CQ_OK, CQ_MEMORY, or
// CQ_INVALID for an unknown wall.
cq_status cq_solid_wall(const cq_solid *s, int32_t wall, cq_solid_wall_info *info) {
  if (wall < 0 || wall >= s->wall_count)
    return cq_fail(CQ_INVALID, "wall %d of a mesh is wanted, it has %d", wall, s->wall_count);
  const solid_wall *w = s->wall + wall;
  *info = (cq_solid_wall_info){ .name = w->name, .between = w->between, .face_count = w->count,
                                .cell_count = count_cells(s, w) };
  for (int32_t k = 0; k < w->count; k++) {
    double size, center[3], area[3];
    info->volume += share(s, s->wall_face[w->first + k], s->lower, &size, center);
    info->area += size;
    solid_face(s, s->wall_face[w->first + k], area, center);
    for (int d = 0; d < 3; d++) info->sum[d] += area[d];
  }
  return find_open(s, w, info);
}

// Sets, for `count` faces of one cell, one area vector, the sum of their N A, and one arm from the cell's centre c to
// the wall. A face with centre c_f sweeps the volume J (c_f - c) . N A under the cell's deformation; one arm for all
// faces needs arm . sum(N A) = sum((c_f - c) . N A): it is the mean of c_f - c by area, corrected along sum(N A).
static void fold(const cq_solid *s, const int32_t *face, int32_t count, double *area, double *arm) {
  const int width = s->dim + 1;
  const int32_t *corner = s->corner + (size_t)(face[0] / width) * (size_t)width;
  double middle[3] = { 0 }, size = 0, wanted = 0, got = 0, square = 0;
  double sum[3] = { 0 }, mean[3] = { 0 };
  for (int k = 0; k < width; k++)
    for (int d = 0; d < s->dim; d++) middle[d] += s->node[3 * corner[k] + d] / width;
  for (int32_t f = 0; f < count; f++) {
    double own[3], center[3], length = 0;
    solid_face(s, face[f], own, center);
    for (int d = 0; d < s->dim; d++) length += own[d] * own[d];
    length = sqrt(length);
    for (int d = 0; d < s->dim; d++) {
      sum[d] += own[d];
      mean[d] += length * (center[d] - middle[d]);
      wanted += own[d] * (center[d] - middle[d]);
    }
    size += length;
  }
  for (int d = 0; d < s->dim; d++) {
    mean[d] /= size;
    got += mean[d] * sum[d];
    square += sum[d] * sum[d];
  }
  const double along = square > 1e-6 * size * size ? (wanted - got) / square : 0;
  for (int d = 0; d < s->dim; d++) {
    area[d] = sum[d];
    arm[d] = mean[d] + along * sum[d];
  }
}

// Sets the cells of a wall {cells}, their area vectors N A out of the solid, and arms from the cell's centre to the
// wall {cells, dim}: with them the volume of a closed wall is exact under any deformation of the cells.
void cq_solid_wall_cells(const cq_solid *s, int32_t wall, int32_t *cell, double *area, double *arm) {
  const solid_wall *w = s->wall + wall;
  const int32_t *face = s->wall_face + w->first, width = s->dim + 1;
  for (int32_t i = 0, j, n = 0; i < w->count; i = j, n++) {
    for (j = i + 1; j < w->count && face[j] / width == face[i] / width;) j++;
    cell[n] = face[i] / width;
    fold(s, face + i, j - i, area + (size_t)n * (size_t)s->dim, arm + (size_t)n * (size_t)s->dim);
  }
}

// Sets `to` to the node indices of a wall's faces {faces, dim}, in the order that makes their area vectors point into
// the solid, and corner to the nodes' coordinates {faces, dim, dim}.
void cq_solid_wall_faces(const cq_solid *s, int32_t wall, int32_t *to, double *corner) {
  const solid_wall *w = s->wall + wall;
  for (int32_t f = 0; f < w->count; f++) {
    int32_t node[3];
    double area[3], center[3];
    solid_face_nodes(s, s->wall_face[w->first + f], node);
    // solid_face tells how the order of the nodes turns around the vector out of the solid
    const int reversed = solid_face(s, s->wall_face[w->first + f], area, center) > 0;
    for (int k = 0; k < s->dim; k++) {
      const int32_t n = node[reversed ? s->dim - 1 - k : k];
      to[f * s->dim + k] = n;
      for (int i = 0; i < s->dim; i++) corner[(f * s->dim + k) * s->dim + i] = s->node[3 * n + i];
    }
  }
}
