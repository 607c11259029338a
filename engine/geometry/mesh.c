// Triangle meshes: reading, and inside tests by winding numbers. A ray's winding number is the sum of its crossings,
// each with the sign of the side that it comes from; six rays along the axes vote, so that small holes do no harm.
#include "mesh.h"
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// products of three coordinates stay in the range of a double, above and below
static const double COORDINATE_MAX = 1e100, LENGTH_MIN = 1e-100;

// Adds a part (a group or a material) of this name, of less than MESH_PART_NAME characters, to a mesh. CQ_OK or
// CQ_MEMORY.
cq_status mesh_begin_part(cq_mesh *m, const char *name) {
  if (m->part_count == m->part_capacity) {
    int32_t capacity = m->part_capacity ? 2 * m->part_capacity : 8;
    char (*grown)[MESH_PART_NAME] = cq_alloc((size_t)capacity, sizeof *grown, "mesh parts");
    if (!grown) return CQ_MEMORY;
    if (m->part_count) memcpy(grown, m->name, (size_t)m->part_count * sizeof *grown);
    cq_free(m->name);
    m->name = grown;
    m->part_capacity = capacity;
  }
  strncpy(m->name[m->part_count], name, MESH_PART_NAME - 1);
  m->part_count++;
  return CQ_OK;
}

// Appends a triangle of corners {3, 3} to a mesh, in a part and a material (-1: none). CQ_OK, CQ_MEMORY, or CQ_INVALID
// for coordinates that are not finite or too large, and for too many triangles.
cq_status mesh_add(cq_mesh *m, const double corner[9], int32_t part, int32_t material) {
  for (int i = 0; i < 9; i++)
    if (!(fabs(corner[i]) <= COORDINATE_MAX))
      return cq_fail(
          CQ_INVALID,
          "triangle %lld of mesh '%s' has a corner at %g: numbers that are finite and at most %g are allowed",
          (long long)m->triangle_count + 1, m->path, corner[i], COORDINATE_MAX);
  if (m->triangle_count >= MESH_TRIANGLE_MAX)
    return cq_fail(CQ_INVALID, "mesh '%s' has more than %d million triangles, the most allowed", m->path,
                   MESH_TRIANGLE_MAX / 1000000);
  if (m->triangle_count == m->triangle_capacity) {
    int64_t capacity = m->triangle_capacity ? 2 * m->triangle_capacity : 256;
    double *grown = cq_alloc((size_t)capacity, 9 * sizeof *grown, "mesh triangles");
    int32_t *parts = cq_alloc((size_t)capacity, sizeof *parts, "mesh triangles");
    int32_t *materials = cq_alloc((size_t)capacity, sizeof *materials, "mesh triangles");
    if (!grown || !parts || !materials) {
      cq_free(grown);
      cq_free(parts);
      cq_free(materials);
      return CQ_MEMORY;
    }
    if (m->triangle_count) {
      memcpy(grown, m->corner, (size_t)m->triangle_count * 9 * sizeof *grown);
      memcpy(parts, m->part, (size_t)m->triangle_count * sizeof *parts);
      memcpy(materials, m->material, (size_t)m->triangle_count * sizeof *materials);
    }
    cq_free(m->corner);
    cq_free(m->part);
    cq_free(m->material);
    m->corner = grown;
    m->part = parts;
    m->material = materials;
    m->triangle_capacity = capacity;
  }
  memcpy(m->corner + 9 * m->triangle_count, corner, 9 * sizeof *corner);
  m->part[m->triangle_count] = part;
  m->material[m->triangle_count++] = material;
  return CQ_OK;
}

// Frees a mesh; NULL: does nothing.
void cq_mesh_close(cq_mesh *m) {
  if (!m) return;
  for (int a = 0; a < 3; a++) {
    cq_free(m->bins[a].start);
    cq_free(m->bins[a].triangle);
  }
  cq_free(m->corner);
  cq_free(m->part);
  cq_free(m->material);
  cq_free(m->piece);
  cq_free(m->name);
  cq_free(m);
}

// ---- what is known of the whole -------------------------------------------------------------------------------------

// Sets the bounding box and the volume of a mesh, below 0 if its triangles face inward. CQ_OK, or CQ_INVALID for one
// that is nearly a point.
static cq_status measure(cq_mesh *m) {
  for (int d = 0; d < 3; d++) {
    m->lower[d] = INFINITY;
    m->upper[d] = -INFINITY;
  }
  m->volume = 0;
  for (int64_t t = 0; t < m->triangle_count; t++) {
    const double *a = m->corner + 9 * t, *b = a + 3, *c = a + 6;
    for (int i = 0; i < 9; i++) {
      m->lower[i % 3] = fmin(m->lower[i % 3], a[i]);
      m->upper[i % 3] = fmax(m->upper[i % 3], a[i]);
    }
    // of the tetrahedron with the origin
    m->volume +=
        (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])) /
        6;
  }
  double longest = 0;
  for (int d = 0; d < 3; d++) longest = fmax(longest, m->upper[d] - m->lower[d]);
  return longest >= LENGTH_MIN
             ? CQ_OK
             : cq_fail(CQ_INVALID, "mesh '%s' is %g long, at least %g is wanted", m->path, longest, LENGTH_MIN);
}

// ---- edges ----------------------------------------------------------------------------------------------------------

// Corners nearer to each other than this share of the longest side of the mesh's box are one vertex. Each triangle of
// an STL file has numbers of its own, and two triangles may have computed their common corner otherwise: that is a few
// times the rounding of float32, 6e-8. Triangles that particles can show are far larger.
static const double SAME_VERTEX = 1e-6;

// The first corners at each vertex, in buckets by the cell of a lattice that they lie in.
typedef struct vertex_table {
  double side;                   // of a cell [length]
  int32_t mask, *first, *next;   // {mask + 1} a corner in each bucket, {corners} the next one there; -1: none
} vertex_table;

// The bucket of a cell of the lattice.
static int32_t bucket_of(const vertex_table *t, int64_t i, int64_t j, int64_t k) {
  const uint64_t hash =
      (uint64_t)i * 0x9e3779b97f4a7c15u ^ (uint64_t)j * 0xc2b2ae3d27d4eb4fu ^ (uint64_t)k * 0x165667b19e3779f9u;
  return (int32_t)(hash >> 32 & (uint64_t)t->mask);
}

// The first corner of the file at the vertex of corner c of a mesh: of the corners in the table that are nearer than
// `reach`, the first one in the file; -1: there is none.
static int32_t first_corner_at(const cq_mesh *m, const vertex_table *t, const double *c, double reach) {
  int64_t low[3], high[3];
  int32_t found = -1;
  for (int d = 0; d < 3; d++) {
    low[d] = (int64_t)floor((c[d] - reach - m->lower[d]) / t->side);
    high[d] = (int64_t)floor((c[d] + reach - m->lower[d]) / t->side);
  }
  for (int64_t i = low[0]; i <= high[0]; i++)
    for (int64_t j = low[1]; j <= high[1]; j++)
      for (int64_t k = low[2]; k <= high[2]; k++)
        for (int32_t n = t->first[bucket_of(t, i, j, k)]; n >= 0; n = t->next[n]) {
          const double *other = m->corner + 3 * (int64_t)n;
          double square = 0;
          for (int d = 0; d < 3; d++) square += (c[d] - other[d]) / reach * ((c[d] - other[d]) / reach);
          if (square <= 1 && (found < 0 || n < found)) found = n;
        }
  return found;
}

// Sets vertex {triangles, 3} to the vertex of each corner, a number of the first corner there (SAME_VERTEX). In linear
// time, and by the order of the file. CQ_OK or CQ_MEMORY.
static cq_status find_vertices(const cq_mesh *m, int32_t *vertex) {
  const int32_t count = (int32_t)(3 * m->triangle_count);
  double reach = 0;
  for (int d = 0; d < 3; d++) reach = fmax(reach, SAME_VERTEX * (m->upper[d] - m->lower[d]));
  // few corners are near the side of a cell that is four times as wide, and have more than one cell to look at
  vertex_table t = { .side = 4 * reach, .mask = 1 };
  while (t.mask < count) t.mask = 2 * t.mask + 1;
  t.first = cq_alloc((size_t)t.mask + 1, sizeof *t.first, "mesh vertices");
  t.next = t.first ? cq_alloc((size_t)count, sizeof *t.next, "mesh vertices") : NULL;
  for (int64_t k = 0; t.next && k <= t.mask; k++) t.first[k] = -1;
  for (int32_t n = 0; t.next && n < count; n++) {
    const double *c = m->corner + 3 * (int64_t)n;
    int64_t cell[3];
    vertex[n] = first_corner_at(m, &t, c, reach);
    if (vertex[n] >= 0) continue;
    vertex[n] = n;
    for (int d = 0; d < 3; d++) cell[d] = (int64_t)floor((c[d] - m->lower[d]) / t.side);
    int32_t *first = t.first + bucket_of(&t, cell[0], cell[1], cell[2]);
    t.next[n] = *first;
    *first = n;
  }
  const cq_status status = t.next ? CQ_OK : CQ_MEMORY;
  cq_free(t.first);
  cq_free(t.next);
  return status;
}

typedef struct edge { int32_t low, high, part, turn; } edge;

// Order of edges by their two vertices, then by part, for qsort.
static int compare_edges(const void *x, const void *y) {
  const edge *a = x, *b = y;
  if (a->low != b->low) return a->low < b->low ? -1 : 1;
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->part > b->part) - (a->part < b->part);
}

// Counts the open edges of a mesh, and marks, in piece, the parts that others close: those with an edge that is open in
// the part and closed in the mesh. An edge is closed if as many triangles pass it in one direction as in the other.
// vertex {triangles, 3}: of each corner; of {triangles}: the part of each triangle, a group or a material, -1: none.
// CQ_OK or CQ_MEMORY.
static cq_status look_at_edges(cq_mesh *m, const int32_t *vertex, const int32_t *of) {
  edge *edges = cq_alloc((size_t)m->triangle_count, 3 * sizeof *edges, "mesh edges");
  if (!edges) return CQ_MEMORY;
  int64_t n = 0;
  for (int64_t t = 0; t < m->triangle_count; t++)
    for (int i = 0; i < 3; i++) {
      const int32_t a = vertex[3 * t + i], b = vertex[3 * t + (i + 1) % 3];
      if (a != b) edges[n++] = (edge){ a < b ? a : b, a < b ? b : a, of[t], a < b ? -1 : 1 };
    }
  qsort(edges, (size_t)n, sizeof *edges, compare_edges);
  m->open_edges = 0;
  for (int64_t i = 0, end; i < n; i = end) {
    int64_t sum = 0;
    for (end = i; end < n && edges[end].low == edges[i].low && edges[end].high == edges[i].high; end++)
      sum += edges[end].turn;
    m->open_edges += sum != 0;
    for (int64_t k = i, next; k < end && !sum; k = next) {
      int64_t own = 0;
      for (next = k; next < end && edges[next].part == edges[k].part; next++) own += edges[next].turn;
      if (own && edges[k].part >= 0) m->piece[edges[k].part] = 1;
    }
  }
  cq_free(edges);
  return CQ_OK;
}

// Finds the open edges of a mesh, and the parts that are pieces of a closed surface. CQ_OK or CQ_MEMORY.
static cq_status find_edges(cq_mesh *m) {
  int32_t *vertex = cq_alloc((size_t)m->triangle_count, 3 * sizeof *vertex, "mesh vertices");
  m->piece = cq_alloc((size_t)m->part_count, sizeof *m->piece, "mesh parts");
  cq_status status = vertex && m->piece ? find_vertices(m, vertex) : CQ_MEMORY;
  if (!status) status = look_at_edges(m, vertex, m->part);
  if (!status && m->material_count) status = look_at_edges(m, vertex, m->material);
  cq_free(vertex);
  return status;
}

// Does triangle t belong to part `part`, a group or a material of the file? -1: every triangle does.
static int is_of(const cq_mesh *m, int64_t t, int32_t part) {
  return part < 0 || m->part[t] == part || m->material[t] == part;
}

// ---- bins -----------------------------------------------------------------------------------------------------------

// The index of the bin, of `count` along an axis, that coordinate x lies in. It never decreases with x, so that the
// bins of a triangle hold all points of its shadow.
static int32_t bin_of(const cq_mesh *m, int32_t count, int axis, double x) {
  double width = m->upper[axis] - m->lower[axis], i = width > 0 ? floor((x - m->lower[axis]) / width * count) : 0;
  return i < 0 ? 0 : i >= count ? count - 1 : (int32_t)i;
}

// Sets extent to the bounding box of triangle t seen along an axis: least and greatest u, then v, the coordinates along
// the next two axes in cyclic order.
static void shadow(const cq_mesh *m, int64_t t, int axis, double extent[4]) {
  const double *c = m->corner + 9 * t;
  for (int k = 0; k < 2; k++) {
    int d = (axis + 1 + k) % 3;
    extent[2 * k] = fmin(c[d], fmin(c[3 + d], c[6 + d]));
    extent[2 * k + 1] = fmax(c[d], fmax(c[3 + d], c[6 + d]));
  }
}

// Sets range to the bins of grid g that a triangle's shadow (extent) touches: first and last along u, then along v.
static void touched(const cq_mesh *m, const mesh_grid *g, int axis, const double extent[4], int32_t range[4]) {
  for (int k = 0; k < 4; k++) range[k] = bin_of(m, k < 2 ? g->u : g->v, (axis + 1 + k / 2) % 3, extent[k]);
}

// How often a bin of the mesh's width along an axis can be halved so that a shadow of this extent still touches at most
// four bins; at most `most` times.
static int level_of(double width, double extent, int most) {
  int level = 0;
  while (level < most && extent * (double)(2 << level) <= 3 * width) level++;
  return level;
}

// The number of the grid of bins that a triangle is listed in, by the extent of its shadow: 0 for the grid of small
// squares, else 1 + MESH_LEVELS times its level along u, plus its level along v (level_of).
static int grid_of(const cq_mesh *m, int axis, const mesh_grid *squares, const double extent[4]) {
  int32_t r[4];
  touched(m, squares, axis, extent, r);
  if ((int64_t)(r[1] - r[0] + 1) * (r[3] - r[2] + 1) <= MESH_TOUCHED_MAX) return 0;
  int most = 0, level[2];
  while (2 << most <= squares->u) most++;
  for (int k = 0; k < 2; k++) {
    int d = (axis + 1 + k) % 3;
    level[k] = level_of(m->upper[d] - m->lower[d], extent[2 * k + 1] - extent[2 * k], most);
  }
  return 1 + level[0] * MESH_LEVELS + level[1];
}

// Sets up the bins for rays along an axis: the small squares, and each further grid that some triangle needs. number,
// zeros before: set to the index in b->grid of each grid by its number (grid_of). Returns the count of all bins.
static int32_t lay_out(const cq_mesh *m, mesh_bins *b, int axis, int32_t number[1 + MESH_LEVELS * MESH_LEVELS]) {
  double side = ceil(sqrt((double)m->triangle_count));
  int32_t squares = side < MESH_BINS_MAX ? (int32_t)side : MESH_BINS_MAX, bins = squares * squares;
  b->grid[0] = (mesh_grid){ squares, squares, 0 };
  b->grid_count = 1;
  for (int64_t t = 0; t < m->triangle_count; t++) {
    double extent[4];
    shadow(m, t, axis, extent);
    int which = grid_of(m, axis, b->grid, extent);
    if (!which || number[which]) continue;
    mesh_grid grid = { 1 << (which - 1) / MESH_LEVELS, 1 << (which - 1) % MESH_LEVELS, bins };
    bins += grid.u * grid.v;
    number[which] = b->grid_count;
    b->grid[b->grid_count++] = grid;
  }
  return bins;
}

// Lists for each bin of rays along an axis the triangles that a ray in it may cross. CQ_OK or CQ_MEMORY.
static cq_status fill_bins(cq_mesh *m, int axis) {
  mesh_bins *b = &m->bins[axis];
  int32_t number[1 + MESH_LEVELS * MESH_LEVELS] = { 0 }, bins = lay_out(m, b, axis, number);
  b->start = cq_alloc((size_t)bins + 1, sizeof *b->start, "mesh bins");
  if (!b->start) return CQ_MEMORY;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t t = 0; t < m->triangle_count; t++) {
      double extent[4];
      int32_t r[4];
      shadow(m, t, axis, extent);
      const mesh_grid *g = b->grid + number[grid_of(m, axis, b->grid, extent)];
      touched(m, g, axis, extent, r);
      for (int32_t u = r[0]; u <= r[1]; u++)
        for (int32_t v = r[2]; v <= r[3]; v++) {
          int32_t *count = b->start + g->first + u * g->v + v;
          if (pass) b->triangle[--*count] = (int32_t)t;
          else ++*count;
        }
    }
    if (pass) break;
    // ends for now; the second pass walks them back to starts
    for (int32_t i = 1; i <= bins; i++) b->start[i] += b->start[i - 1];
    b->triangle = cq_alloc((size_t)b->start[bins], sizeof *b->triangle, "mesh bins");
    if (!b->triangle) return CQ_MEMORY;
  }
  return CQ_OK;
}

// ---- inside ---------------------------------------------------------------------------------------------------------

// Twice the signed area of the triangle a, b, p, with the same rounding for both directions of the edge a b; *positive:
// 1 if it is above 0. Zero counts as if p lay a little off, in the same direction for all edges, so that a ray through
// an edge or a corner crosses exactly one triangle.
static double side_of(const double a[2], const double b[2], const double p[2], int *positive) {
  int swap = b[0] < a[0] || (b[0] == a[0] && b[1] < a[1]);
  const double *q = swap ? b : a, *r = swap ? a : b;
  double e = (r[0] - q[0]) * (p[1] - q[1]) - (r[1] - q[1]) * (p[0] - q[0]);
  *positive = (e >= 0) != swap;
  return swap ? -e : e;
}

// Adds a triangle of corners c {3, 3} to the winding numbers of the rays from x up and down an axis, winding[0] and
// [1].
static void cross_triangle(const double *c, int axis, const double x[3], int32_t winding[2]) {
  int u = (axis + 1) % 3, v = (axis + 2) % 3, sign[3];
  double p[2] = { x[u], x[v] }, q[3][2], e[3];
  for (int i = 0; i < 3; i++) {
    q[i][0] = c[3 * i + u];
    q[i][1] = c[3 * i + v];
  }
  for (int i = 0; i < 3; i++) e[i] = side_of(q[(i + 1) % 3], q[(i + 2) % 3], p, &sign[i]);
  if (sign[0] != sign[1] || sign[1] != sign[2]) return;
  double area = e[0] + e[1] + e[2];
  if (area == 0) return;
  double height = (e[0] * c[axis] + e[1] * c[3 + axis] + e[2] * c[6 + axis]) / area;
  int up = sign[0] ? 1 : -1;     // does the triangle face up the axis
  if (height > x[axis]) winding[0] += up;
  else winding[1] -= up;
}

// Is x within a part of the mesh (-1: within the mesh)? The majority of six winding numbers decides, of two rays along
// each axis.
static int inside(const cq_mesh *m, int32_t part, const double x[3]) {
  for (int d = 0; d < 3; d++)
    if (!(x[d] >= m->lower[d] && x[d] <= m->upper[d])) return 0;
  int votes = 0, turn = m->volume < 0 ? -1 : 1;      // a mesh inside out is meant the other way
  for (int axis = 0; axis < 3; axis++) {
    const mesh_bins *b = &m->bins[axis];
    int u = (axis + 1) % 3, v = (axis + 2) % 3;
    int32_t winding[2] = { 0, 0 };
    for (const mesh_grid *g = b->grid; g < b->grid + b->grid_count; g++) {
      int32_t bin = g->first + bin_of(m, g->u, u, x[u]) * g->v + bin_of(m, g->v, v, x[v]);
      for (int32_t k = b->start[bin]; k < b->start[bin + 1]; k++) {
        int32_t t = b->triangle[k];
        if (is_of(m, t, part)) cross_triangle(m->corner + 9 * (size_t)t, axis, x, winding);
      }
    }
    // a part that faces inward, as the wall of a cavity, has an inside, too
    for (int k = 0; k < 2; k++) votes += part < 0 ? turn * winding[k] > 0 : winding[k] != 0;
  }
  return votes > 3;
}

// ---- the nearest triangle -------------------------------------------------------------------------------------------

// The dot product of two vectors.
static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// The squared distance from a point x to the segment between a and b.
static double to_segment(const double x[3], const double a[3], const double b[3]) {
  double along[3], from[3];
  for (int d = 0; d < 3; d++) {
    along[d] = b[d] - a[d];
    from[d] = x[d] - a[d];
  }
  double length = dot(along, along), share = length > 0 ? fmin(fmax(dot(from, along) / length, 0), 1) : 0;
  for (int d = 0; d < 3; d++) from[d] -= share * along[d];
  return dot(from, from);
}

// Squared distance from x to a triangle of corners c {3, 3}: to its plane where x projects into it, else to its sides.
static double to_triangle(const double x[3], const double *c) {
  double u[3], v[3], w[3];
  for (int d = 0; d < 3; d++) {
    u[d] = c[3 + d] - c[d];
    v[d] = c[6 + d] - c[d];
    w[d] = x[d] - c[d];
  }
  double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), wu = dot(w, u), wv = dot(w, v), area = uu * vv - uv * uv;
  double s = wu * vv - wv * uv, t = wv * uu - wu * uv;
  if (area > 0 && s >= 0 && t >= 0 && s + t <= area) {
    for (int d = 0; d < 3; d++) w[d] -= (s * u[d] + t * v[d]) / area;
    return dot(w, w);
  }
  return fmin(to_segment(x, c, c + 3), fmin(to_segment(x, c + 3, c + 6), to_segment(x, c + 6, c)));
}

enum { BLOCK = 64 };      // triangles that follow each other in the file, which mostly lie beside each other

// Sets box {2, 3} to the lower and the upper corner of the box around the triangles of block b.
static void box_of_block(const cq_mesh *m, int64_t b, double *box) {
  for (int d = 0; d < 3; d++) {
    box[d] = INFINITY;
    box[3 + d] = -INFINITY;
  }
  for (int64_t t = b * BLOCK; t < (b + 1) * BLOCK && t < m->triangle_count; t++)
    for (int k = 0; k < 9; k++) {
      box[k % 3] = fmin(box[k % 3], m->corner[9 * t + k]);
      box[3 + k % 3] = fmax(box[3 + k % 3], m->corner[9 * t + k]);
    }
}

// The squared distance from x to a box {2, 3}; 0 inside.
static double to_box(const double x[3], const double *box) {
  double out = 0;
  for (int d = 0; d < 3; d++) {
    const double off = fmax(box[d] - x[d], x[d] - box[3 + d]);
    if (off > 0) out += off * off;
  }
  return out;
}

// The triangle nearest to x; of several at the same distance, the first. box {blocks, 2, 3}: of box_of_block; guess: a
// triangle that may be near.
static int64_t nearest_triangle(const cq_mesh *m, const double *box, const double x[3], int64_t guess) {
  // a little farther than the guess, so that an earlier triangle at its distance is found
  double least = to_triangle(x, m->corner + 9 * guess) * (1 + 1e-9) + DBL_MIN;
  int64_t nearest = guess;
  for (int64_t b = 0; b * BLOCK < m->triangle_count; b++) {
    if (to_box(x, box + 6 * b) >= least) continue;
    for (int64_t t = b * BLOCK; t < (b + 1) * BLOCK && t < m->triangle_count; t++) {
      const double distance = to_triangle(x, m->corner + 9 * t);
      if (distance >= least) continue;
      least = distance;
      nearest = t;
    }
  }
  return nearest;
}

// Sets part {n, 2} to the group and the material (-1: none) of the triangle nearest to each of points {n, 3}. CQ_OK or
// CQ_MEMORY.
cq_status cq_mesh_nearest(const cq_mesh *m, int64_t n, const double *points, int32_t *part) {
  const int64_t blocks = (m->triangle_count + BLOCK - 1) / BLOCK;
  double *box = cq_alloc((size_t)blocks, 6 * sizeof *box, "mesh boxes");
  if (!box) return CQ_MEMORY;
  for (int64_t b = 0; b < blocks; b++) box_of_block(m, b, box + 6 * b);
  int64_t t = 0;                   // points that follow each other are beside each other
  for (int64_t i = 0; i < n; i++) {
    t = nearest_triangle(m, box, points + 3 * i, t);
    part[2 * i] = m->part[t];
    part[2 * i + 1] = m->material[t];
  }
  cq_free(box);
  return CQ_OK;
}

// Sets out {n} to 1 for points {n, 3} inside a part (-1: inside the mesh) by winding numbers, else to 0. CQ_OK, or
// CQ_INVALID for an unknown part.
cq_status cq_mesh_inside(const cq_mesh *m, int32_t part, int64_t n, const double *points, uint8_t *out) {
  if (part < -1 || part >= m->part_count)
    return cq_fail(CQ_INVALID, "mesh part %d is wanted, it has %d (-1: all)", part, m->part_count);
  for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)inside(m, part, points + 3 * i);
  return CQ_OK;
}

// Fills info: counts, box, volume (never below 0), and whether the triangles face inward.
void cq_mesh_describe(const cq_mesh *m, cq_mesh_info *info) {
  *info = (cq_mesh_info){ .triangle_count = m->triangle_count, .open_edges = m->open_edges, .part_count = m->part_count,
                          .material_count = m->material_count, .inward = m->volume < 0, .volume = fabs(m->volume) };
  memcpy(info->lower, m->lower, sizeof info->lower);
  memcpy(info->upper, m->upper, sizeof info->upper);
}

// Copies the corners of all triangles {triangles, 3, 3}.
void cq_mesh_corners(const cq_mesh *m, double *corner) {
  memcpy(corner, m->corner, (size_t)m->triangle_count * 9 * sizeof *corner);
}

// The name of a part, "" if it has none; NULL beyond the last.
const char *cq_mesh_part_name(const cq_mesh *m, int32_t part) {
  return part >= 0 && part < m->part_count ? m->name[part] : NULL;
}

// Is a part only a piece of a closed surface, which other parts close? 1 yes, 0 no, and beyond the last part.
int32_t cq_mesh_part_is_piece(const cq_mesh *m, int32_t part) {
  return part >= 0 && part < m->part_count && m->piece[part];
}

// Does a path end with this ending, given in lower case, whatever the case of the path's letters?
static int ends_with(const char *path, const char *ending) {
  size_t n = strlen(path), k = strlen(ending);
  if (n < k) return 0;
  for (size_t i = 0; i < k; i++)
    if (tolower((unsigned char)path[n - k + i]) != ending[i]) return 0;
  return 1;
}

// Computes box, volume, open edges and bins of a mesh after its last triangle was added. CQ_OK, CQ_MEMORY, or
// CQ_INVALID for a mesh that is nearly a point.
cq_status mesh_finish(cq_mesh *m) {
  cq_status status = measure(m);
  if (!status) status = find_edges(m);
  for (int axis = 0; axis < 3 && !status; axis++) status = fill_bins(m, axis);
  return status;
}

// Reads an OBJ or STL file into a new mesh, *mesh, NULL on failure; cq_mesh_close frees it. CQ_OK, CQ_IO, CQ_MEMORY, or
// CQ_INVALID for another ending of the path or for triangles that are not allowed (mesh_add).
cq_status cq_mesh_open(const char *path, cq_mesh **mesh) {
  *mesh = NULL;
  int stl = ends_with(path, ".stl");
  if (!stl && !ends_with(path, ".obj")) return cq_fail(CQ_INVALID, "mesh '%s' must end in .stl or .obj", path);
  cq_mesh *m = cq_alloc(1, sizeof *m, "mesh");
  if (!m) return CQ_MEMORY;
  m->path = path;
  cq_status status = stl ? mesh_read_stl(m, path) : mesh_read_obj(m, path);
  if (!status && !m->triangle_count) status = cq_fail(CQ_IO, "mesh '%s' has no triangles", path);
  if (!status) status = mesh_finish(m);
  m->path = NULL;
  if (status) cq_mesh_close(m);
  else *mesh = m;
  return status;
}
