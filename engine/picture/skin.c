// skin: made where a body is at rest, moved along with its particles, and drawn. Where a lattice is torn, its surface
// opens; a particle that has lost most of its neighbours is drawn alone.
#include "skin.h"
#include "picture.h"
#include "vector.h"
#include <string.h>

#define TORN  0.75               // [length of a link] between where two neighbours say that their common side is

// Fills the definition of a skin with defaults, before the caller sets its fields; cq_skin_create checks that it was.
void cq_skin_init(cq_skin_def *def) { *def = (cq_skin_def){ .cookie = CQ_COOKIE }; }

// Frees a skin; NULL: does nothing.
void cq_skin_destroy(cq_skin *s) {
  if (!s) return;
  surface_free(s);
  lattice_free(&s->lattice);
  cq_free(s->rest);
  cq_free(s->volume);
  cq_free(s->inverse);
  cq_free(s->loose);
  cq_free(s->apart);
  cq_free(s->broken);
  cq_free(s->broken_now);
  cq_free(s->level);
  cq_free(s->size);
  cq_free(s->cell);
  cq_free(s);
}

// The determinant of a matrix {dim, dim}.
static double det_of(const double *m, int dim) {
  if (dim == 2) return m[0] * m[3] - m[1] * m[2];
  double across[3];
  cross3(m + 3, m + 6, across);
  return dot3(m, across);
}

// Sets out to the inverse of a matrix m {dim, dim}; to the identity if m is singular or not finite.
static void invert(const double *m, int dim, double *out) {
  double det = det_of(m, dim);
  memset(out, 0, (size_t)(dim * dim) * sizeof *out);
  if (!(fabs(det) > 1e-12) || !isfinite(det)) {                // what is no deformation is taken for none
    for (int d = 0; d < dim; d++) out[d * dim + d] = 1;
  } else if (dim == 2) {
    out[0] = m[3] / det, out[1] = -m[1] / det, out[2] = -m[2] / det, out[3] = m[0] / det;
  } else {
    double row[3];
    for (int d = 0; d < 3; d++) {
      cross3(m + 3 * ((d + 1) % 3), m + 3 * ((d + 2) % 3), row);
      for (int i = 0; i < 3; i++) out[3 * i + d] = row[i] / det;
    }
  }
}

// Sets positions, volumes and inverse deformation gradients of the particles in the state at which the skin is made
// ("at rest"), and which particles are always drawn alone, from the definition.
static void bind_rest(cq_skin *s, const cq_skin_def *def) {
  int dim = s->dim;
  size_t square = (size_t)(dim * dim);
  memcpy(s->rest, def->position, (size_t)s->n * (size_t)dim * sizeof *s->rest);
  for (int32_t p = 0; p < s->n; p++) {
    double none[9] = { 0 };
    for (int d = 0; d < dim; d++) none[d * dim + d] = 1;
    const double *F = def->deformation ? def->deformation + (size_t)p * square : none;
    double det = fabs(det_of(F, dim));
    s->volume[p] = def->volume[p] * (isfinite(det) && det > 0 ? det : 1);
    invert(F, dim, s->inverse + (size_t)p * square);
    s->level[p] = 1;
    if (def->loose) s->loose[p] = s->apart[p] = def->loose[p] != 0;
  }
}

// Sets *skin to a new skin, the surface of a body of particles, from the lattice that the particles lie on or from a
// mesh; to NULL on failure. CQ_OK, CQ_MEMORY, or CQ_INVALID for values of the definition that are not allowed.
cq_status cq_skin_create(const cq_skin_def *def, cq_skin **skin) {
  *skin = NULL;
  if (def->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "the skin was not filled by cq_skin_init");
  if (def->dim != 2 && def->dim != 3)
    return cq_fail(CQ_INVALID, "a skin of dimension %d is wanted, 2 and 3 are allowed", def->dim);
  if (def->particle_count < 1 || def->particle_count > 100000000)
    return cq_fail(CQ_INVALID, "a skin of %d particles is wanted, from 1 to 100000000 are allowed",
                   def->particle_count);
  if (def->triangle_count && def->dim == 2)
    return cq_fail(CQ_INVALID, "a skin by a mesh is wanted in 2D, only bodies in 3D have one");
  cq_skin *s = cq_alloc(1, sizeof *s, "skin");
  if (!s) return CQ_MEMORY;
  size_t n = (size_t)def->particle_count, dim = (size_t)def->dim;
  s->dim = def->dim;
  s->n = def->particle_count;
  s->is_mesh = def->triangle_count > 0;
  s->rest = cq_alloc(n * dim, sizeof *s->rest, "skin");
  s->inverse = cq_alloc(n * dim * dim, sizeof *s->inverse, "skin");
  s->volume = cq_alloc(n, sizeof *s->volume, "skin");
  s->size = cq_alloc(n, sizeof *s->size, "skin");
  s->cell = cq_alloc(n * 4, sizeof *s->cell, "skin");
  s->loose = cq_alloc(n, 1, "skin");
  s->apart = cq_alloc(n, 1, "skin");
  s->level = cq_alloc(n, 1, "skin");
  s->broken = cq_alloc(n, sizeof *s->broken, "skin");
  s->broken_now = cq_alloc(n, sizeof *s->broken_now, "skin");
  cq_status status = CQ_MEMORY;
  if (s->rest && s->inverse && s->volume && s->size && s->cell && s->loose && s->apart && s->level && s->broken &&
      s->broken_now) {
    bind_rest(s, def);
    status = s->is_mesh ? shell_make(s, def->triangle_count, def->corner)
                        : lattice_find(&s->lattice, s->dim, s->n, s->rest, s->volume, def->loose ? s->loose : NULL);
  }
  if (status) {
    cq_skin_destroy(s);
    return status;
  }
  *skin = s;
  return CQ_OK;
}

// ---- what still hangs together --------------------------------------------------------------------------------------

// Sets out to the place of a point that moves with particle p: x_p + F_p r. x {n, dim}: places of the particles; F {n,
// dim, dim}: their deformation gradients, NULL: the identity; r: the undeformed vector from the particle to the point.
static void carry(const cq_skin *s, const double *x, const double *F, int32_t p, const double r[3], double out[3]) {
  int dim = s->dim;
  const double *at = x + (size_t)p * (size_t)dim, *m = F ? F + (size_t)p * (size_t)(dim * dim) : NULL;
  for (int i = 0; i < dim; i++) {
    out[i] = at[i];
    for (int j = 0; j < dim; j++) out[i] += m ? m[i * dim + j] * r[j] : (i == j) * r[j];
  }
}

// Is the lattice torn between particle p and its neighbour q along axis d: do the two particles, by their places x {n,
// dim} and deformation gradients F, disagree on where the common side of their cells is? 1 yes, 0 no.
static int is_torn(const cq_skin *s, const double *x, const double *F, int32_t p, int32_t q, int d) {
  int dim = s->dim;
  const double *axis = s->lattice.axis + ((size_t)p * (size_t)dim + (size_t)d) * (size_t)dim;
  double forth[3] = { 0 }, back[3] = { 0 }, a[3], b[3], gap = 0, length = 0;
  for (int i = 0; i < dim; i++) {
    length += axis[i] * axis[i];
    for (int j = 0; j < dim; j++) {
      size_t k = (size_t)(i * dim + j);
      forth[i] += 0.5 * s->inverse[(size_t)p * (size_t)(dim * dim) + k] * axis[j];
      back[i] -= 0.5 * s->inverse[(size_t)q * (size_t)(dim * dim) + k] * axis[j];
    }
  }
  carry(s, x, F, p, forth, a);
  carry(s, x, F, q, back, b);
  for (int i = 0; i < dim; i++) gap += (a[i] - b[i]) * (a[i] - b[i]);
  return !(gap < TORN * TORN * length);
}

// Marks in broken_now all links between particle p and its neighbours as torn, for p and for the neighbours.
static void break_links(cq_skin *s, int32_t p) {
  for (int side = 0; side < 2 * s->dim; side++) {
    int32_t q = s->lattice.link[(size_t)p * 2 * (size_t)s->dim + (size_t)side];
    if (q >= 0) s->broken_now[q] |= 1u << (side ^ 1);
    s->broken_now[p] |= 1u << side;
  }
}

// Sets s->broken to the links of the lattice that are torn if particles are at x {n, dim} with deformation gradients F,
// and s->apart to the particles that have lost most of their links and are drawn alone, whatever was torn before.
// Returns 0 if both are as before; else the surface must be made again.
static int find_torn(cq_skin *s, const double *x, const double *F) {
  memset(s->broken_now, 0, (size_t)s->n * sizeof *s->broken_now);
  for (int32_t p = 0; p < s->n; p++)
    for (int d = 0; d < s->dim; d++) {
      int32_t q = s->lattice.link[((size_t)p * (size_t)s->dim + (size_t)d) * 2 + 1];
      if (q < 0 || !is_torn(s, x, F, p, q, d)) continue;
      s->broken_now[p] |= 1u << (2 * d + 1);
      s->broken_now[q] |= 1u << 2 * d;
    }
  int changed = 0;
  for (int32_t p = 0; p < s->n; p++) {
    int links = 0, torn = 0;
    for (int side = 0; side < 2 * s->dim; side++) {
      links += s->lattice.link[(size_t)p * 2 * (size_t)s->dim + (size_t)side] >= 0;
      torn += (int)(s->broken_now[p] >> side & 1);
    }
    uint8_t apart = !s->lattice.on[p] || 2 * torn > links;
    if (apart != s->apart[p]) changed = 1;
    s->apart[p] = apart;
  }
  for (int32_t p = 0; p < s->n; p++) if (s->apart[p]) break_links(s, p);
  changed |= memcmp(s->broken, s->broken_now, (size_t)s->n * sizeof *s->broken) != 0;
  memcpy(s->broken, s->broken_now, (size_t)s->n * sizeof *s->broken);
  return changed;
}

// ---- where it is now ------------------------------------------------------------------------------------------------

// Sets the vertices of a skin's surface to the weighted means of where the particles that they move with carry them (x,
// F: as in `carry`).
static void place_vertices(cq_skin *s, const double *x, const double *F) {
  int dim = s->dim;
  for (int64_t v = 0; v < s->vertex_count; v++) {
    double sum[3] = { 0 };
    for (int64_t k = s->bond_start[v]; k < s->bond_start[v + 1]; k++) {
      const bond *b = &s->bonds[k];
      double r[3] = { b->r[0], b->r[1], b->r[2] }, at[3];
      carry(s, x, F, b->particle, r, at);
      for (int i = 0; i < dim; i++) sum[i] += b->weight * at[i];
    }
    for (int i = 0; i < dim; i++) s->x[v * dim + i] = sum[i];
  }
}

// Sets the unit normals of the deformed surface in 3D: the mean over the faces that share a normal, by area.
static void find_normals(cq_skin *s) {
  memset(s->normal, 0, (size_t)s->normal_count * 3 * sizeof *s->normal);
  for (int64_t i = 0; i < s->face_count; i++) {
    const face *f = &s->faces[i];
    int quad = f->vertex[3] >= 0;
    const double *a = s->x + 3 * f->vertex[0], *b = s->x + 3 * f->vertex[1], *c = s->x + 3 * f->vertex[2],
                 *d = quad ? s->x + 3 * f->vertex[3] : a;
    double first[3], second[3], normal[3];
    for (int k = 0; k < 3; k++) {
      first[k] = quad ? c[k] - a[k] : b[k] - a[k];
      second[k] = quad ? d[k] - b[k] : c[k] - a[k];
    }
    cross3(first, second, normal);
    for (int k = 0; k < 3 + quad; k++)
      for (int j = 0; j < 3; j++) s->normal[3 * f->normal[k] + j] += normal[j];
  }
  for (int64_t k = 0; k < s->normal_count; k++) normalize3(s->normal + 3 * k);
}

// Sets size of particle p, the root of its present volume, if it is drawn alone, else 0; in 2D also cell, the half
// edges of its square deformed by F. deformation {n, dim, dim}; NULL: undeformed.
static void measure_alone(cq_skin *s, int32_t p, const double *deformation) {
  int dim = s->dim;
  s->size[p] = 0;
  if (!s->apart[p] || !s->level[p]) return;
  const double *F = deformation ? deformation + (size_t)p * (size_t)(dim * dim) : NULL;
  double rest = s->volume[p] * fabs(det_of(s->inverse + (size_t)p * (size_t)(dim * dim), dim)),
         half = 0.5 * pow(rest, 1.0 / dim);
  s->size[p] = pow(rest * (F ? fabs(det_of(F, dim)) : 1), 1.0 / dim);
  for (int k = 0; k < 4 && dim == 2; k++) s->cell[4 * (size_t)p + (size_t)k] = half * (F ? F[k] : k % 3 == 0);
}

// Moves the surface of a skin along with its particles, to position {n, dim} and deformation {n, dim, dim} (NULL:
// none), and opens it where the lattice is torn in this state; a tear that has closed is forgotten. level {n}: cells of
// different levels are not joined, and cells of level 0 are not drawn; NULL: all have level 1. A mesh has no levels and
// is never opened. CQ_OK or CQ_MEMORY.
cq_status cq_skin_pose(cq_skin *s, const double *position, const double *deformation, const uint8_t *level) {
  if (!s->is_mesh) {
    int changed = find_torn(s, position, deformation) | !s->made;
    for (int32_t p = 0; p < s->n; p++) {
      uint8_t now = level ? level[p] : 1;
      changed |= now != s->level[p];
      s->level[p] = now;
    }
    if (changed) {
      cq_status status = surface_make(s);
      s->made = !status;
      if (status) return status;
    }
  }
  place_vertices(s, position, deformation);
  if (s->dim == 3) find_normals(s);
  for (int32_t p = 0; p < s->n; p++) measure_alone(s, p, deformation);
  return CQ_OK;
}

// Sets the present end points of edge number `edge` of a 2D skin's outline, without parts that other cells cover.
void skin_edge(const cq_skin *s, int64_t edge, double from[2], double to[2]) {
  const double *a = s->x + 2 * s->edge[2 * edge], *b = s->x + 2 * s->edge[2 * edge + 1];
  const float *span = s->span + 2 * edge;
  for (int i = 0; i < 2; i++) {
    from[i] = a[i] + span[0] * (b[i] - a[i]);
    to[i] = a[i] + span[1] * (b[i] - a[i]);
  }
}

// Fills info with the counts of a skin's vertices, faces, outline edges and lone particles, and the outline's length.
void cq_skin_describe(const cq_skin *s, cq_skin_info *info) {
  *info = (cq_skin_info){ .vertex_count = s->vertex_count, .face_count = s->face_count, .edge_count = s->edge_count };
  for (int32_t p = 0; p < s->n; p++) info->alone_count += s->apart[p] && s->level[p];
  for (int64_t i = 0; i < s->edge_count; i++) {
    double from[2], to[2];
    skin_edge(s, i, from, to);
    info->outline += hypot(to[0] - from[0], to[1] - from[1]);
  }
}

// Copies the present vertices of a skin {v, dim}, the vertex indices of its faces {f, 4} (-1 as the last: a triangle),
// and which particles are drawn alone {n}; NULL: not wanted.
void cq_skin_read(const cq_skin *s, double *vertex, int32_t *faces, uint8_t *alone) {
  if (vertex) memcpy(vertex, s->x, (size_t)(s->vertex_count * s->dim) * sizeof *vertex);
  for (int64_t i = 0; i < s->face_count && faces; i++) memcpy(faces + 4 * i, s->faces[i].vertex, 4 * sizeof *faces);
  if (alone) for (int32_t p = 0; p < s->n; p++) alone[p] = s->apart[p] && s->level[p];
}
