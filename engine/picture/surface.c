// surface: cells of a lattice, joined at their corners where particles are linked. In space the sides of cells that
// no neighbour covers are the surface; in the plane all cells are drawn, and such sides are the outline. What
// stands out by steps is smoothed.
//
//     o---o---o           corners of linked cells are one vertex;
//     | p | q |           a side between p and q is inside,
//     o---o---o           the others are faces
#include "skin.h"
#include <math.h>
#include <string.h>

enum { MELTINGS = 8, SMOOTHINGS = 12, LONG = 3, SHARP = 1, JOINED = 2 };

#define INWARDS  0.5             // of the way to the mean of its neighbours that a vertex goes
#define OUTWARDS -0.52           // and back, so that round bodies do not shrink
#define REACH    0.9             // [cell] that smoothing may move a vertex
#define BESIDE   0.3             // weight of a neighbour of the cells at a vertex, beside theirs of 1
#define BEVEL    0.16            // [cell] that edges of boxes lose in space

typedef struct joints { int32_t *parent; int32_t corners; } joints;

// The representative of element k's set in a union-find forest; shortens the path to it.
static int32_t root_of(int32_t *parent, int32_t k) {
  while (parent[k] != k) k = parent[k] = parent[parent[k]];
  return k;
}

// Joins the sets of elements a and b in a union-find forest.
static void join(int32_t *parent, int32_t a, int32_t b) {
  a = root_of(parent, a);
  b = root_of(parent, b);
  if (a < b) parent[b] = a;
  else parent[a] = b;
}

// The neighbour of particle p in its lattice at a side of its cell (2 axis + 0 below, 1 above); -1: there is none, the
// link to it is torn, or its level differs.
static int32_t neighbour(const cq_skin *s, int32_t p, int side) {
  if (s->broken[p] >> side & 1) return -1;
  int32_t q = s->lattice.link[(size_t)p * 2 * (size_t)s->dim + (size_t)side];
  return q >= 0 && s->level[q] == s->level[p] ? q : -1;
}

// Is the cell of particle p drawn: is p on a lattice, not torn off, and of a level above 0? 1 yes, 0 no.
static int is_shown(const cq_skin *s, int32_t p) { return s->lattice.on[p] && !s->apart[p] && s->level[p] > 0; }

// Has the cell of particle p no neighbour in its lattice at this side (as in `neighbour`) that is shown? 1 yes, 0 no.
static int is_bare(const cq_skin *s, int32_t p, int side) {
  int32_t q = neighbour(s, p, side);
  return q < 0 || !is_shown(s, q);
}

// Is this side of the cell of particle p on the body's surface: bare, and not covered by another lattice? 1 yes, 0 no.
static int is_open(const cq_skin *s, int32_t p, int side) {
  return is_bare(s, p, side) && !(s->lattice.covered[p] >> side & 1);
}

// Sets parent {n 2^dim} to a union-find forest of the corners of all cells, in which corners that cells of linked
// particles have in common are one set: each set becomes a vertex of the surface.
static void join_corners(const cq_skin *s, int32_t *parent) {
  int dim = s->dim, corners = 1 << dim;
  for (int32_t k = 0; k < s->n * corners; k++) parent[k] = k;
  for (int32_t p = 0; p < s->n; p++) {
    if (!is_shown(s, p)) continue;
    for (int d = 0; d < dim; d++) {
      int32_t q = neighbour(s, p, 2 * d + 1);
      if (q < 0 || !is_shown(s, q)) continue;
      for (int c = 0; c < corners; c++)
        if (c >> d & 1) join(parent, p * corners + c, q * corners + (c & ~(1 << d)));
    }
  }
}

// Sets corner to the four corners of a side of a 3D cell, across axis d, below (side 0) or above (1), in their order
// around it seen from outside. A corner's number has bit i if it lies above along axis i.
static void side_corners(int d, int side, int corner[4]) {
  int a = (d + 1) % 3, b = (d + 2) % 3, base = side ? 1 << d : 0;
  int ring[4] = { base, base | 1 << a, base | 1 << a | 1 << b, base | 1 << b };
  for (int k = 0; k < 4; k++) corner[k] = ring[side ? k : 3 - k];
}

// Is at least a part of this side of the cell of particle p on the body's outline, in 2D? 1 yes, 0 no.
static int is_outline(const cq_skin *s, int32_t p, int side) {
  const float *open = s->lattice.open + ((size_t)p * 4 + (size_t)side) * 2;
  return is_bare(s, p, side) && open[0] < open[1];
}

// A function for each side of a shown cell that belongs to the surface. In 3D these are all bare sides: covered ones
// close gaps between two parts of a body.
typedef void each_side(cq_skin *s, const int32_t *parent, int32_t p, int side);

// Calls visit(s, parent, particle, side) for each side of a cell that belongs to the surface, or in 2D to the outline.
static void visit_sides(cq_skin *s, const int32_t *parent, each_side *visit) {
  for (int32_t p = 0; p < s->n; p++) {
    if (!is_shown(s, p)) continue;
    for (int side = 0; side < 2 * s->dim; side++) {
      if (s->dim == 3 ? is_bare(s, p, side) : is_outline(s, p, side)) visit(s, parent, p, side);
    }
  }
}

// An each_side that only counts: a face in 3D, an edge of the outline in 2D.
static void count_side(cq_skin *s, const int32_t *parent, int32_t p, int side) {
  (void)parent, (void)p, (void)side;
  if (s->dim == 3) s->face_count++;
  else s->edge_count++;
}

// An each_side that adds the side of the cell of particle p to the surface: as a face in 3D, an edge of the outline in
// 2D. Vertices are corners of cells (particle 2^dim + corner) until number_vertices.
static void add_side(cq_skin *s, const int32_t *parent, int32_t p, int side) {
  (void)parent;
  int corners = 1 << s->dim;
  if (s->dim == 3) {
    int ring[4];
    face *f = &s->faces[s->face_count++];
    side_corners(side / 2, side & 1, ring);
    for (int k = 0; k < 4; k++) f->vertex[k] = p * corners + ring[k];
    f->particle = p;
  } else {
    int d = side / 2, base = side & 1 ? 1 << d : 0;
    memcpy(s->span + 2 * s->edge_count, s->lattice.open + ((size_t)p * 4 + (size_t)side) * 2, 2 * sizeof *s->span);
    int32_t *e = s->edge + 2 * s->edge_count++;
    e[0] = p * corners + base;
    e[1] = p * corners + (base | 1 << (1 - d));
  }
}

// In 2D: adds the cell of each particle that is shown to the faces of the skin.
static void add_cells(cq_skin *s) {
  for (int32_t p = 0; p < s->n; p++)
    if (is_shown(s, p))
      s->faces[s->face_count++] = (face){.vertex = {4 * p, 4 * p + 1, 4 * p + 3, 4 * p + 2}, .particle = p};
}

// ---- vertices -------------------------------------------------------------------------------------------------------

// Numbers the vertices that faces and outline use, and replaces corners of cells in both by vertex numbers. parent:
// from join_corners; number {n 2^dim}: set to the vertex of each representative corner, -1 if no face uses it.
static void number_vertices(cq_skin *s, int32_t *parent, int32_t *number) {
  int32_t all = s->n << s->dim;
  for (int32_t k = 0; k < all; k++) number[k] = -1;
  for (int64_t i = 0; i < s->face_count; i++)
    for (int k = 0; k < 4; k++) {
      int32_t root = root_of(parent, s->faces[i].vertex[k]);
      if (number[root] < 0) number[root] = (int32_t)s->vertex_count++;
      s->faces[i].vertex[k] = s->faces[i].normal[k] = number[root];
    }
  for (int64_t i = 0; i < 2 * s->edge_count; i++) s->edge[i] = number[root_of(parent, s->edge[i])];
}

// Sets out to the place of corner c (as in side_corners) of the cell of particle p at rest.
static void corner_place(const cq_skin *s, int32_t p, int c, double out[3]) {
  int dim = s->dim;
  const double *axis = s->lattice.axis + (size_t)p * (size_t)(dim * dim);
  for (int i = 0; i < dim; i++) {
    out[i] = s->rest[(size_t)p * (size_t)dim + (size_t)i];
    for (int d = 0; d < dim; d++) out[i] += (c >> d & 1 ? 0.5 : -0.5) * axis[d * dim + i];
  }
}

// Appends to `to` (NULL: only counts) the bonds by which a vertex moves with particle p, one of whose cell's corners it
// is; in 3D also, with lower weight, those with p's neighbours, which smooths noise of F. Returns their number.
static int add_bonds(const cq_skin *s, int32_t p, bond *to) {
  int count = 1;
  if (to) to[0] = (bond){ .particle = p, .weight = 1 };
  for (int side = 0; s->dim == 3 && side < 6; side++) {
    int32_t q = neighbour(s, p, side);
    if (q < 0 || !is_shown(s, q)) continue;
    if (to) to[count] = (bond){ .particle = q, .weight = (float)BESIDE };
    count++;
  }
  return count;
}

// Sets for each vertex the particles with which it moves, with weights, and its place at rest, the mean of the corners
// of its cells. parent, number: as in number_vertices; cells {vertices}: set to the number of cells at each vertex.
// CQ_OK or CQ_MEMORY.
static cq_status bond_vertices(cq_skin *s, int32_t *parent, const int32_t *number, int32_t *cells) {
  int dim = s->dim, corners = 1 << dim;
  int64_t *start = s->bond_start + 1;
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t p = 0; p < s->n; p++) {
      if (!is_shown(s, p)) continue;
      for (int c = 0; c < corners; c++) {
        int32_t v = number[root_of(parent, p * corners + c)];
        if (v < 0) continue;
        if (pass == 0) {
          start[v + 1] += add_bonds(s, p, NULL);
          continue;
        }
        double place[3];
        corner_place(s, p, c, place);
        for (int i = 0; i < dim; i++) s->y[(int64_t)v * dim + i] += place[i];
        start[v] += add_bonds(s, p, s->bonds + start[v]);
        cells[v]++;
      }
    }
    if (pass) break;
    for (int64_t v = 0; v < s->vertex_count; v++) start[v + 1] += start[v];
    s->bonds = cq_alloc((size_t)start[s->vertex_count] + 1, sizeof *s->bonds, "surface of a body");
    if (!s->bonds) return CQ_MEMORY;
  }
  for (int64_t v = 0; v < s->vertex_count; v++) {
    float sum = 0;
    for (int i = 0; i < dim; i++) s->y[v * dim + i] /= (double)cells[v];
    for (int64_t k = s->bond_start[v]; k < s->bond_start[v + 1]; k++) sum += s->bonds[k].weight;
    for (int64_t k = s->bond_start[v]; k < s->bond_start[v + 1]; k++) s->bonds[k].weight /= sum;
  }
  return CQ_OK;
}

// ---- smoothing ------------------------------------------------------------------------------------------------------

typedef struct smoothing {
  double *sum, *before;          // {vertices, dim} of the neighbours; where vertices were
  int32_t *count;                // {vertices} neighbours
  uint8_t *fixed;                // {vertices} not 0: stays
  double most;                   // [cell] that a vertex may move
} smoothing;

// Adds the place of vertex b to the sum of the neighbours of vertex a.
static void add_edge(const cq_skin *s, int32_t a, int32_t b, const smoothing *m) {
  for (int i = 0; i < s->dim; i++) m->sum[(int64_t)a * s->dim + i] += s->y[(int64_t)b * s->dim + i];
  m->count[a]++;
}

// One step of Laplacian smoothing of the vertices at rest: moves each by `factor` of the way to the mean of its
// neighbours (negative: away from it), but not farther than m->most cells from m->before; m->fixed ones stay.
static void smooth_once(cq_skin *s, const smoothing *m, double factor) {
  memset(m->sum, 0, (size_t)(s->vertex_count * s->dim) * sizeof *m->sum);
  memset(m->count, 0, (size_t)s->vertex_count * sizeof *m->count);
  if (s->dim == 3) {
    for (int64_t i = 0; i < s->face_count; i++)
      for (int k = 0; k < 4; k++) add_edge(s, s->faces[i].vertex[k], s->faces[i].vertex[(k + 1) % 4], m);
  } else {
    for (int64_t i = 0; i < s->edge_count; i++) {
      add_edge(s, s->edge[2 * i], s->edge[2 * i + 1], m);
      add_edge(s, s->edge[2 * i + 1], s->edge[2 * i], m);
    }
  }
  for (int64_t v = 0; v < s->vertex_count; v++) {
    if (!m->count[v] || m->fixed[v]) continue;
    double *y = s->y + v * s->dim, moved = 0,
           most = m->most * pow(fabs(s->volume[s->bonds[s->bond_start[v]].particle]), 1.0 / s->dim);
    const double *old = m->before + v * s->dim;
    for (int i = 0; i < s->dim; i++) {
      y[i] += factor * (m->sum[v * s->dim + i] / m->count[v] - y[i]);
      moved += (y[i] - old[i]) * (y[i] - old[i]);
    }
    for (int i = 0; i < s->dim && moved > most * most; i++) y[i] = old[i] + (y[i] - old[i]) * most / sqrt(moved);
  }
}

// The number of cells in a row, beginning with that of particle p and going away from its side `away`, whose side
// `open` is on the surface; at most LONG, and LONG if the row ends with the body.
static int run_length(const cq_skin *s, int32_t p, int away, int open) {
  for (int n = 1; n < LONG; n++) {
    int32_t q = neighbour(s, p, away ^ 1);
    if (q < 0 || !is_shown(s, q)) return LONG;
    int32_t beside = neighbour(s, q, open);
    if (beside >= 0 && is_shown(s, beside)) return n;
    p = q;
  }
  return LONG;
}

// Does the edge of the cell of p between its open sides a and b continue in neighbouring cells for LONG cells, or as
// long as the body, so that it is no step of a staircase? 1 yes, 0 no; always 1 in 2D, where it is a point.
static int is_long_edge(const cq_skin *s, int32_t p, int a, int b) {
  if (s->dim == 2) return 1;
  int along = 3 - a / 2 - b / 2, length = 1, covered = 0;
  for (int side = 2 * along; side <= 2 * along + 1; side++) {
    int32_t q = p;
    for (int n = 1; n < LONG; n++) {
      q = neighbour(s, q, side);
      if (q < 0 || !is_shown(s, q)) break;
      if (!is_open(s, q, a) || !is_open(s, q, b)) {
        covered = 1;
        break;
      }
      length++;
    }
  }
  return length >= LONG || !covered;
}

// Are LONG cells in a row, beginning with that of particle p and going to its side `towards`, all shown with their side
// `open` on the surface? 1 yes, 0 no; p may be -1: no.
static int is_long_row(const cq_skin *s, int32_t p, int towards, int open) {
  for (int n = 0; n < LONG; n++, p = neighbour(s, p, towards))
    if (p < 0 || !is_shown(s, p) || !is_open(s, p, open)) return 0;
  return 1;
}

// Marks as SHARP, in 2D, the vertices of true inner corners of the outline, where two long rows of cells meet, so that
// smoothing leaves them. parent, number: as in number_vertices; sharp {vertices}.
//
//     | q |
//     o---o               a: the side of r where p lies, open at q
//     | r | p |           b: the side where q lies, open at p
static void find_inner(const cq_skin *s, int32_t *parent, const int32_t *number, uint8_t *sharp) {
  for (int32_t r = 0; r < s->n; r++) {
    for (int a = 0; a < 2 && is_shown(s, r); a++)
      for (int b = 2; b < 4; b++) {
        if (!is_long_row(s, neighbour(s, r, a), a, b) || !is_long_row(s, neighbour(s, r, b), b, a)) continue;
        uint8_t *mark = &sharp[number[root_of(parent, r * 4 + (a & 1) + 2 * (b & 1))]];
        if (*mark != JOINED) *mark = SHARP;
      }
  }
}

// Marks, in sharp {vertices}, the vertices that smoothing must not move: SHARP on true edges, where two sides meet that
// are longer than steps of a staircase; JOINED where one part of the body meets another. parent, number: as in
// number_vertices.
static void find_sharp(const cq_skin *s, int32_t *parent, const int32_t *number, uint8_t *sharp) {
  int dim = s->dim, corners = 1 << dim;
  if (dim == 2) find_inner(s, parent, number, sharp);
  for (int32_t p = 0; p < s->n; p++) {
    if (!is_shown(s, p)) continue;
    int open[6];
    for (int side = 0; side < 2 * dim; side++) {
      open[side] = is_open(s, p, side);
      for (int c = 0; c < corners && !open[side] && is_bare(s, p, side); c++)
        if ((c >> (side / 2) & 1) == (side & 1)) sharp[number[root_of(parent, p * corners + c)]] = JOINED;
    }
    for (int a = 0; a < 2 * dim; a++)
      for (int b = a + 1; b < 2 * dim; b++) {
        if (a / 2 == b / 2 || !open[a] || !open[b] || !is_long_edge(s, p, a, b)) continue;
        if (run_length(s, p, a, b) < LONG || run_length(s, p, b, a) < LONG) continue;
        for (int c = 0; c < corners; c++) {
          if ((c >> (a / 2) & 1) != (a & 1) || (c >> (b / 2) & 1) != (b & 1)) continue;
          uint8_t *mark = &sharp[number[root_of(parent, p * corners + c)]];
          if (*mark != JOINED) *mark = SHARP;
        }
      }
  }
}

// Smooths the surface's vertices at rest, so that the staircase of the lattice's cells disappears. m: work memory, with
// the vertices that stay in m->fixed.
static void smooth_all(cq_skin *s, smoothing *m) {
  size_t size = (size_t)(s->vertex_count * s->dim) * sizeof *m->before;
  memcpy(m->before, s->y, size);
  m->most = REACH;
  // stairs of a few cells melt at once; longer ones need many passes, which must not shrink the body
  for (int k = 0; k < MELTINGS; k++) smooth_once(s, m, INWARDS);
  for (int k = 0; k < SMOOTHINGS; k++) {
    smooth_once(s, m, INWARDS);
    smooth_once(s, m, OUTWARDS);
  }
  if (s->dim == 2) return;
  // last, the edges of boxes become a little round
  memcpy(m->before, s->y, size);
  for (int64_t v = 0; v < s->vertex_count; v++) m->fixed[v] = m->fixed[v] != SHARP;
  m->most = BEVEL;
  smooth_once(s, m, INWARDS);
}

// ---- the surface ----------------------------------------------------------------------------------------------------

// Sets r of each bond between a vertex and a particle: the undeformed vector from the particle to the vertex, from the
// vertices' places at rest (y) and the particles' places and F at rest.
void surface_bind(cq_skin *s) {
  int dim = s->dim;
  for (int64_t v = 0; v < s->vertex_count; v++)
    for (int64_t k = s->bond_start[v]; k < s->bond_start[v + 1]; k++) {
      bond *b = &s->bonds[k];
      const double *inverse = s->inverse + (size_t)b->particle * (size_t)(dim * dim),
                   *x = s->rest + (size_t)b->particle * (size_t)dim;
      for (int i = 0; i < dim; i++) {
        double way = 0;
        for (int j = 0; j < dim; j++) way += inverse[i * dim + j] * (s->y[v * dim + j] - x[j]);
        b->r[i] = (float)way;
      }
    }
}

// Frees the faces and vertices of a skin's surface, and sets their counts to 0.
void surface_free(cq_skin *s) {
  cq_free(s->faces);
  cq_free(s->edge);
  cq_free(s->span);
  cq_free(s->bond_start);
  cq_free(s->bonds);
  cq_free(s->x);
  cq_free(s->y);
  cq_free(s->normal);
  s->faces = NULL, s->edge = NULL, s->span = NULL, s->bond_start = NULL, s->bonds = NULL;
  s->x = s->y = s->normal = NULL;
  s->vertex_count = s->face_count = s->normal_count = s->edge_count = 0;
}

// Makes the surface of a skin from the cells of its lattices: faces, outline, vertices, and the particles with which
// these move. parent, number {n 2^dim}: work memory. CQ_OK, or CQ_MEMORY, after which the caller frees the surface.
static cq_status make(cq_skin *s, int32_t *parent, int32_t *number) {
  int dim = s->dim;
  join_corners(s, parent);
  visit_sides(s, parent, count_side);
  s->faces = cq_alloc((size_t)(dim == 3 ? s->face_count : s->n) + 1, sizeof *s->faces, "surface of a body");
  s->edge = cq_alloc((size_t)s->edge_count + 1, 2 * sizeof *s->edge, "surface of a body");
  s->span = cq_alloc((size_t)s->edge_count + 1, 2 * sizeof *s->span, "surface of a body");
  if (!s->faces || !s->edge || !s->span) return CQ_MEMORY;
  s->face_count = s->edge_count = 0;
  visit_sides(s, parent, add_side);
  if (dim == 2) add_cells(s);
  number_vertices(s, parent, number);
  size_t vertices = (size_t)s->vertex_count;
  s->bond_start = cq_alloc(vertices + 2, sizeof *s->bond_start, "surface of a body");
  s->y = cq_alloc(vertices * (size_t)dim + 1, sizeof *s->y, "surface of a body");
  s->x = cq_alloc(vertices * (size_t)dim + 1, sizeof *s->x, "surface of a body");
  s->normal = cq_alloc(vertices + 1, 3 * sizeof *s->normal, "surface of a body");
  if (!s->bond_start || !s->x || !s->y || !s->normal) return CQ_MEMORY;
  s->normal_count = s->vertex_count;
  smoothing m = { 0 };
  m.sum = cq_alloc(vertices * (size_t)dim + 1, sizeof *m.sum, "surface of a body");
  m.before = cq_alloc(vertices * (size_t)dim + 1, sizeof *m.before, "surface of a body");
  m.count = cq_alloc(vertices + 1, sizeof *m.count, "surface of a body");
  m.fixed = cq_alloc(vertices + 1, 1, "surface of a body");
  cq_status status = m.sum && m.before && m.count && m.fixed ? bond_vertices(s, parent, number, m.count) : CQ_MEMORY;
  if (!status) {
    find_sharp(s, parent, number, m.fixed);
    smooth_all(s, &m);
    surface_bind(s);
  }
  cq_free(m.sum);
  cq_free(m.before);
  cq_free(m.count);
  cq_free(m.fixed);
  return status;
}

// Replaces the surface of a skin by a new one from its lattice and the links that are not torn. CQ_OK, or CQ_MEMORY,
// and then the skin has no surface.
cq_status surface_make(cq_skin *s) {
  surface_free(s);
  int32_t *parent = cq_alloc(((size_t)s->n << s->dim) + 1, sizeof *parent, "surface of a body");
  int32_t *number = cq_alloc(((size_t)s->n << s->dim) + 1, sizeof *number, "surface of a body");
  cq_status status = parent && number ? make(s, parent, number) : CQ_MEMORY;
  cq_free(parent);
  cq_free(number);
  if (status) surface_free(s);
  return status;
}
