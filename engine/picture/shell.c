// shell: the mesh that a body came from, carried along by the particles near its vertices.
// Edges that were sharp stay so.
#include "skin.h"
#include "vector.h"
#include <stdlib.h>
#include <string.h>

// [root of the volume] beyond the nearest particle, from where particles carry a vertex
#define NEIGHBOURS  1.6
#define SHARP       0.7          // cosine between the normals of two sides that meet at a sharp edge, at most

typedef struct spot { double x[3]; int64_t corner; } spot;

// Order of triangle corners (spot) for qsort: by place, then by number.
static int by_place(const void *a, const void *b) {
  const spot *p = a, *q = b;
  for (int d = 0; d < 3; d++) if (p->x[d] != q->x[d]) return p->x[d] < q->x[d] ? -1 : 1;
  return (p->corner > q->corner) - (p->corner < q->corner);
}

// Sets vertices and faces of a skin from the triangles of a mesh, corner {triangles, 3, 3}: corners at equal places
// become one vertex. CQ_OK or CQ_MEMORY.
static cq_status number_vertices(cq_skin *s, int64_t triangles, const double *corner) {
  spot *spots = cq_alloc((size_t)(3 * triangles) + 1, sizeof *spots, "mesh of a body");
  s->faces = cq_alloc((size_t)triangles + 1, sizeof *s->faces, "mesh of a body");
  s->y = cq_alloc((size_t)(9 * triangles) + 1, sizeof *s->y, "mesh of a body");
  if (!spots || !s->faces || !s->y) {
    cq_free(spots);
    return CQ_MEMORY;
  }
  for (int64_t k = 0; k < 3 * triangles; k++) {
    memcpy(spots[k].x, corner + 3 * k, sizeof spots[k].x);
    spots[k].corner = k;
  }
  qsort(spots, (size_t)(3 * triangles), sizeof *spots, by_place);
  for (int64_t k = 0; k < 3 * triangles; k++) {
    if (k == 0 || memcmp(spots[k].x, spots[k - 1].x, sizeof spots[k].x))
      memcpy(s->y + 3 * s->vertex_count++, spots[k].x, sizeof spots[k].x);
    s->faces[spots[k].corner / 3].vertex[spots[k].corner % 3] = (int32_t)(s->vertex_count - 1);
  }
  s->face_count = triangles;
  for (int64_t i = 0; i < triangles; i++) s->faces[i].vertex[3] = -1;
  cq_free(spots);
  return CQ_OK;
}

// ---- normals: one for the sides around a vertex that join smoothly --------------------------------------------------

typedef struct wedge { int32_t vertex, face, corner; } wedge;

// Order of wedges (corners of faces) for qsort: by vertex, then by face.
static int by_vertex(const void *a, const void *b) {
  const wedge *p = a, *q = b;
  if (p->vertex != q->vertex) return p->vertex < q->vertex ? -1 : 1;
  return (p->face > q->face) - (p->face < q->face);
}

// Sets out to the unit normal of triangle number f of a skin, where its vertices are at rest.
static void flat_normal(const cq_skin *s, int32_t f, double out[3]) {
  const int32_t *v = s->faces[f].vertex;
  double a[3], b[3];
  for (int d = 0; d < 3; d++) {
    a[d] = s->y[3 * v[1] + d] - s->y[3 * v[0] + d];
    b[d] = s->y[3 * v[2] + d] - s->y[3 * v[0] + d];
  }
  cross3(a, b, out);
  normalize3(out);
}

// Numbers the normals of a mesh: triangles around a vertex share the vertex's normal if the surface is smooth there;
// triangles on different sides of a sharp edge have one for each side. CQ_OK or CQ_MEMORY.
static cq_status number_normals(cq_skin *s) {
  wedge *wedges = cq_alloc((size_t)(3 * s->face_count) + 1, sizeof *wedges, "mesh of a body");
  if (!wedges) return CQ_MEMORY;
  int64_t count = 0;
  for (int32_t f = 0; f < s->face_count; f++)
    for (int k = 0; k < 3; k++) wedges[count++] = (wedge){ s->faces[f].vertex[k], f, k };
  qsort(wedges, (size_t)count, sizeof *wedges, by_vertex);
  for (int64_t from = 0, to; from < count; from = to) {
    for (to = from; to < count && wedges[to].vertex == wedges[from].vertex; to++) {
      // the first side before this one that it joins smoothly, or a normal of its own
      double own[3], other[3];
      int32_t number = -1;
      flat_normal(s, wedges[to].face, own);
      for (int64_t k = from; k < to && number < 0; k++) {
        flat_normal(s, wedges[k].face, other);
        if (dot3(own, other) > SHARP) number = s->faces[wedges[k].face].normal[wedges[k].corner];
      }
      s->faces[wedges[to].face].normal[wedges[to].corner] = number >= 0 ? number : (int32_t)s->normal_count++;
    }
  }
  cq_free(wedges);
  return CQ_OK;
}

// ---- bonds ----------------------------------------------------------------------------------------------------------

typedef struct gathering {
  cq_skin *s;
  double least, reach;
  int64_t count, room;
  int failed;
} gathering;

// Callback of bins_visit: keeps the least distance of all visited particles in a `gathering` (context).
static void find_least(void *context, int32_t particle, double distance) {
  gathering *g = context;
  (void)particle;
  g->least = fmin(g->least, distance);
}

// Callback of bins_visit: adds a bond, between the vertex of a mesh that bond_vertices works on and a particle near it,
// with a weight that falls with the distance. context: a `gathering`.
static void gather(void *context, int32_t particle, double distance) {
  gathering *g = context;
  double share = 1 - distance / g->reach;
  if (share <= 0 || g->failed) return;
  if (g->count == g->room) {
    int64_t room = 2 * g->room + 4096;
    bond *larger = cq_alloc((size_t)room, sizeof *larger, "mesh of a body");
    if (!larger) {
      g->failed = 1;
      return;
    }
    if (g->count) memcpy(larger, g->s->bonds, (size_t)g->count * sizeof *larger);
    cq_free(g->s->bonds);
    g->s->bonds = larger;
    g->room = room;
  }
  g->s->bonds[g->count++] = (bond){ .particle = particle, .weight = (float)(share * share) };
}

// Finds for each vertex of the mesh the particles near it with which it will move, and their weights, whose sum is 1.
// CQ_OK or CQ_MEMORY.
static cq_status bond_vertices(cq_skin *s) {
  double mean = 0, side = 0;
  for (int32_t p = 0; p < s->n; p++) mean += cbrt(fabs(s->volume[p])) / s->n;
  bins b;
  gathering g = { .s = s };
  cq_status status = bins_fill(&b, 3, s->n, s->rest, mean > 0 ? mean : 1);
  for (int d = 0; d < 3; d++) side += b.count[d] * b.size;
  for (int64_t v = 0; v < s->vertex_count && !status; v++) {
    // ever farther, until there is a particle: a mesh may reach far beyond what fills it
    g.least = INFINITY;
    for (double radius = 2 * mean; !isfinite(g.least) && radius < 64 * (side + mean); radius *= 2)
      bins_visit(&b, s->rest, s->y + 3 * v, radius, find_least, &g);
    g.reach = g.least + NEIGHBOURS * mean;
    s->bond_start[v] = g.count;
    if (isfinite(g.reach)) bins_visit(&b, s->rest, s->y + 3 * v, g.reach, gather, &g);
    float sum = 0;
    for (int64_t k = s->bond_start[v]; k < g.count; k++) sum += s->bonds[k].weight;
    for (int64_t k = s->bond_start[v]; k < g.count; k++) s->bonds[k].weight /= sum;
    if (g.failed) status = CQ_MEMORY;
  }
  s->bond_start[s->vertex_count] = g.count;
  bins_free(&b);
  return status;
}

// Sets the particle whose colour each triangle has: the one with the largest weight in one of its vertices.
static void choose_particles(cq_skin *s) {
  for (int64_t i = 0; i < s->face_count; i++) {
    float most = -1;
    for (int k = 0; k < 3; k++) {
      int32_t v = s->faces[i].vertex[k];
      for (int64_t j = s->bond_start[v]; j < s->bond_start[v + 1]; j++)
        if (s->bonds[j].weight > most) {
          most = s->bonds[j].weight;
          s->faces[i].particle = s->bonds[j].particle;
        }
    }
  }
}

// Makes the surface of a skin from the mesh that the body was filled from, corner {triangles, 3, 3}, which lies where
// the particles are at rest: vertices, normals, and the particles with which vertices move. CQ_OK or CQ_MEMORY.
cq_status shell_make(cq_skin *s, int64_t triangles, const double *corner) {
  cq_status status = number_vertices(s, triangles, corner);
  if (!status) status = number_normals(s);
  if (status) return status;
  s->bond_start = cq_alloc((size_t)s->vertex_count + 2, sizeof *s->bond_start, "mesh of a body");
  s->x = cq_alloc((size_t)s->vertex_count + 1, 3 * sizeof *s->x, "mesh of a body");
  s->normal = cq_alloc((size_t)s->normal_count + 1, 3 * sizeof *s->normal, "mesh of a body");
  if (!s->bond_start || !s->x || !s->normal) return CQ_MEMORY;
  status = bond_vertices(s);
  if (status) return status;
  surface_bind(s);
  choose_particles(s);
  return CQ_OK;
}
