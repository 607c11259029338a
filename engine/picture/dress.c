// dress: draws skins, on the plane cell by cell with an outline, in space as triangles with smooth normals.
#include "facet.h"
#include "skin.h"
#include "vector.h"

#define BALL  0.62               // radius of a particle that is drawn alone in space [root of its volume]
#define DISC  0.82               // and in the plane, where they are to leave no gaps [root of its volume]
// [sample] a cell of the plane that is larger has colours that pass into its neighbours'
#define BLEND 6

// Sets out {vertices} to the colour of each vertex of a skin: the mean of the colours rgba {n} of the particles that
// the vertex moves with, by their weights.
static void mix_colours(const cq_skin *s, const uint32_t *rgba, uint32_t *out) {
  for (int64_t v = 0; v < s->vertex_count; v++) {
    float sum[4] = { 0 }, weight = 0;
    for (int64_t k = s->bond_start[v]; k < s->bond_start[v + 1]; k++) {
      weight += s->bonds[k].weight;
      for (int c = 0; c < 4; c++)
        sum[c] += s->bonds[k].weight * (float)(rgba[s->bonds[k].particle] >> (24 - 8 * c) & 255);
    }
    out[v] = 0;
    for (int c = 0; c < 4 && weight > 0; c++) out[v] |= (uint32_t)fminf(sum[c] / weight + 0.5f, 255) << (24 - 8 * c);
  }
}

// ---- space ----------------------------------------------------------------------------------------------------------

// Draws in 3D, as balls, the particles that belong to no surface: liquids, and particles that have lost their
// neighbours. position {n, 3}, rgba {n}: of all particles. CQ_OK or CQ_MEMORY.
static cq_status draw_balls(cq_picture *p, const cq_skin *s, const double *position, const uint32_t *rgba) {
  double *centre = cq_alloc((size_t)s->n + 1, 4 * sizeof *centre, "particles of a picture"),
         *radius = centre + 3 * s->n;
  uint32_t *tint = cq_alloc((size_t)s->n + 1, sizeof *tint, "particles of a picture");
  cq_status status = centre && tint ? CQ_OK : CQ_MEMORY;
  int64_t count = 0;
  for (int32_t i = 0; i < s->n && !status; i++) {
    if (!(s->size[i] > 0)) continue;
    for (int d = 0; d < 3; d++) centre[3 * count + d] = position[3 * (int64_t)i + d];
    radius[count] = BALL * s->size[i];
    tint[count++] = rgba[i];
  }
  if (!status && count) status = cq_picture_spheres(p, count, centre, radius, tint);
  cq_free(centre);
  cq_free(tint);
  return status;
}

// The squared distance of two places.
static double length2(const double *a, const double *b) {
  double v[3] = { a[0] - b[0], a[1] - b[1], a[2] - b[2] };
  return dot3(v, v);
}

// Draws the faces of a body's surface in 3D, two triangles for each quadrangle, with normals at their corners. mixed
// {vertices}: colours of the vertices; NULL: each face has the colour of its particle in rgba {n}. CQ_OK or CQ_MEMORY.
static cq_status draw_faces(cq_picture *p, const cq_skin *s, const uint32_t *rgba, const uint32_t *mixed) {
  size_t most = 2 * (size_t)s->face_count + 1;
  double *corner = cq_alloc(most, 9 * sizeof *corner, "surface of a body"),
         *normal = cq_alloc(most, 9 * sizeof *normal, "surface of a body");
  uint32_t *tint = cq_alloc(most, 3 * sizeof *tint, "surface of a body");
  cq_status status = corner && normal && tint ? CQ_OK : CQ_MEMORY;
  int64_t count = 0;
  for (int64_t i = 0; i < s->face_count && !status; i++) {
    const face *f = &s->faces[i];
    const int32_t *v = f->vertex;
    int quad = v[3] >= 0,
        turn = quad && length2(s->x + 3 * v[1], s->x + 3 * v[3]) < length2(s->x + 3 * v[0], s->x + 3 * v[2]);
    for (int half = 0; half < 1 + quad; half++, count++)
      for (int k = 0; k < 3; k++) {
        // a quad is cut along its shorter diagonal
        int at = quad ? (turn + (half ? (k + 2) % 4 : k)) % 4 : k;
        for (int d = 0; d < 3; d++) {
          corner[9 * count + 3 * k + d] = s->x[3 * v[at] + d];
          normal[9 * count + 3 * k + d] = s->normal[3 * f->normal[at] + d];
        }
        tint[3 * count + k] = mixed ? mixed[v[at]] : rgba[f->particle];
      }
  }
  if (!status) status = draw_facets(p, count, corner, normal, tint);
  cq_free(corner);
  cq_free(normal);
  cq_free(tint);
  return status;
}

// ---- the plane ------------------------------------------------------------------------------------------------------

// Blends colour rgba over the samples in a quadrangle of corners q {4, 2} [sample]; a sample on the edge of two belongs
// to one. stripes: the period [sample] of slanted stripes, a quarter of which is drawn; 0: all samples are filled.
static void fill_quad(cq_picture *p, const double q[8], uint32_t rgba, int32_t stripes) {
  double low = fmin(fmin(q[1], q[3]), fmin(q[5], q[7])), high = fmax(fmax(q[1], q[3]), fmax(q[5], q[7]));
  uint32_t solid = premultiply(rgba, 255);
  if (!isfinite(low + high)) return;
  for (int32_t row = clamp_index(ceil(low - 0.5), p->h), end = clamp_index(ceil(high - 0.5), p->h); row < end; row++) {
    double y = row + 0.5, crossing[4];
    int count = 0;
    for (int i = 0, j = 3; i < 4; j = i++)
      if ((q[2 * i + 1] <= y) != (q[2 * j + 1] <= y))
        crossing[count++] = edge_crossing(q[2 * j], q[2 * j + 1], q[2 * i], q[2 * i + 1], y);
    for (int i = 1; i < count; i++)
      for (int j = i; j > 0 && crossing[j] < crossing[j - 1]; j--) {
        double kept = crossing[j];
        crossing[j] = crossing[j - 1];
        crossing[j - 1] = kept;
      }
    uint32_t *line = p->colour + (size_t)row * (size_t)p->w;
    for (int i = 0; i + 1 < count; i += 2)
      for (int32_t x = clamp_index(ceil(crossing[i] - 0.5), p->w),
                   last = clamp_index(ceil(crossing[i + 1] - 0.5), p->w);
           x < last; x++)
        if (!stripes || (x + row) % stripes < stripes / 4) line[x] = over(solid, line[x]);
  }
}

// The colour at (a, b), each 0 to 1, within a quadrangle, by bilinear interpolation of its corners' colours tint {4}.
static uint32_t between(const uint32_t tint[4], double a, double b) {
  uint32_t out = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    double c[4];
    for (int k = 0; k < 4; k++) c[k] = tint[k] >> shift & 255;
    out |= (uint32_t)((1 - b) * ((1 - a) * c[0] + a * c[1]) + b * ((1 - a) * c[3] + a * c[2]) + 0.5) << shift;
  }
  return out;
}

// Fills a quadrangle of corners q {4, 2} [sample] with colours that are interpolated between its corners' colours tint
// {4}, as parts x parts patches of one colour each. For cells of a body that are large on the canvas.
static void fill_blended(cq_picture *p, const double q[8], const uint32_t tint[4], int parts) {
  for (int i = 0; i < parts; i++)
    for (int j = 0; j < parts; j++) {
      double patch[8];
      static const int corner[4][2] = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } };
      for (int k = 0; k < 4; k++) {
        double a = (double)(i + corner[k][0]) / parts, b = (double)(j + corner[k][1]) / parts;
        for (int d = 0; d < 2; d++)
          patch[2 * k + d] = (1 - b) * ((1 - a) * q[d] + a * q[2 + d]) + b * ((1 - a) * q[6 + d] + a * q[4 + d]);
      }
      fill_quad(p, patch, between(tint, (i + 0.5) / parts, (j + 0.5) / parts), 0);
    }
}

// Sets q {4, 2} to the corners [sample] of a particle's cell f in 2D.
static void quad_of(const cq_picture *p, const cq_skin *s, const face *f, double q[8]) {
  for (int k = 0; k < 4; k++) {
    q[2 * k] = sample_x(p, s->x[2 * f->vertex[k]]);
    q[2 * k + 1] = sample_y(p, s->x[2 * f->vertex[k] + 1]);
  }
}

// Draws slanted stripes of colour rgba over the 2D cells of a skin whose particles are marked {n} (not 0).
void cq_picture_hatch(cq_picture *p, const cq_skin *s, const uint8_t *marked, uint32_t rgba) {
  for (int64_t i = 0; i < s->face_count && s->dim == 2; i++) {
    double q[8];
    quad_of(p, s, &s->faces[i], q);
    if (marked[s->faces[i].particle]) fill_quad(p, q, rgba, 7 * p->samples);
  }
}

// Draws in 2D, before the cells, a thick line along each side of a cell where a part of the body with a different
// lattice of particles meets it, to close small gaps between the parts. rgba {n}: colours of the particles.
static void draw_joints(cq_picture *p, const cq_skin *s, const uint32_t *rgba) {
  static const int corner[4][2] = { { 0, 3 }, { 1, 2 }, { 0, 1 }, { 3, 2 } };
  for (int64_t i = 0; i < s->face_count && !s->is_mesh; i++) {
    int32_t of = s->faces[i].particle;
    double q[8];
    if (!s->lattice.covered[of] || (rgba[of] & 255) < 255) continue;
    quad_of(p, s, &s->faces[i], q);
    for (int side = 0; side < 4; side++) {
      const double *a = q + 2 * corner[side][0], *b = q + 2 * corner[side][1];
      if (!(s->lattice.covered[of] >> side & 1)) continue;
      // its round ends must not stand out at the ends of the joint
      double from[2] = { a[0] + 0.2 * (b[0] - a[0]), a[1] + 0.2 * (b[1] - a[1]) };
      double to[2] = { b[0] - 0.2 * (b[0] - a[0]), b[1] - 0.2 * (b[1] - a[1]) };
      mask_capsule(p, from, to, fmin(0.2 * hypot(b[0] - a[0], b[1] - a[1]), p->w));
    }
    mask_paint(p, rgba[of]);
  }
}

// Draws the cells of a body's particles in 2D. mixed {vertices}: colours of the vertices, between which cells that are
// large on the canvas are blended; NULL: each cell has the colour of its particle in rgba {n}.
static void draw_cells(cq_picture *p, const cq_skin *s, const uint32_t *rgba, const uint32_t *mixed) {
  draw_joints(p, s, rgba);
  for (int64_t i = 0; i < s->face_count; i++) {
    const face *f = &s->faces[i];
    double q[8], size;
    quad_of(p, s, f, q);
    size = fmax(hypot(q[4] - q[0], q[5] - q[1]), hypot(q[6] - q[2], q[7] - q[3]));
    // under the patches, whose edges may leave a sample open
    uint32_t tint[4] = { rgba[f->particle] };
    int blend = mixed && (rgba[f->particle] & 255) == 255 && size > BLEND && size < 1e6;
    fill_quad(p, q, mixed && !blend ? mixed[f->vertex[0]] : rgba[f->particle], 0);
    for (int k = 0; k < 4 && blend; k++) tint[k] = mixed[f->vertex[k]];
    if (blend) fill_blended(p, q, tint, size < 128 ? 1 + (int)(size / BLEND) : 22);
  }
}

// Draws the outline of a body in 2D, dark grey; width in pixels.
static void draw_outline(cq_picture *p, const cq_skin *s, double width) {
  for (int64_t i = 0; i < s->edge_count; i++) {
    double a[2], b[2];
    skin_edge(s, i, a, b);
    double from[2] = { sample_x(p, a[0]), sample_y(p, a[1]) }, to[2] = { sample_x(p, b[0]), sample_y(p, b[1]) };
    mask_capsule(p, from, to, 0.5 * width * p->samples);
  }
  mask_paint(p, 0x2B3440FF);
}

// Draws in 2D the particles that belong to no surface: liquids as discs, others (torn off) as squares deformed by F.
// position {n, 2}, rgba {n}: of all particles.
static void draw_alone(cq_picture *p, const cq_skin *s, const double *position, const uint32_t *rgba) {
  for (int32_t i = 0; i < s->n; i++) {
    const double *x = position + 2 * (size_t)i, *m = s->cell + 4 * (size_t)i;
    if (!(s->size[i] > 0)) continue;
    if (s->loose[i]) {
      double radius = DISC * s->size[i];
      cq_picture_discs(p, 1, x, &radius, rgba + i);
      continue;
    }
    static const double sign[4][2] = { { -1, -1 }, { 1, -1 }, { 1, 1 }, { -1, 1 } };
    double q[8];
    for (int k = 0; k < 4; k++) {
      q[2 * k] = sample_x(p, x[0] + sign[k][0] * m[0] + sign[k][1] * m[1]);
      q[2 * k + 1] = sample_y(p, x[1] + sign[k][0] * m[2] + sign[k][1] * m[3]);
    }
    fill_quad(p, q, rgba[i], 0);
  }
}

// Draws a skin, the surface of a body, with colours rgba {n} of its particles: each cell in its own colour, or, if
// blend is not 0 or s is a mesh, interpolated. position {n, dim}: of the particles. In 2D with an outline of width
// `outline` [pixel], 0: none; in 3D into the depth buffer, which is lit later. CQ_OK, CQ_MEMORY, or CQ_INVALID in 3D
// without a camera.
cq_status cq_picture_skin(cq_picture *p, const cq_skin *s, const double *position, const uint32_t *rgba, int32_t blend,
                          double outline) {
  if (s->dim == 3 && !p->space) return no_camera();
  uint32_t *mixed =
      blend || s->is_mesh ? cq_alloc((size_t)s->vertex_count + 1, sizeof *mixed, "colours of a body") : NULL;
  if ((blend || s->is_mesh) && !mixed) return CQ_MEMORY;
  if (mixed) mix_colours(s, rgba, mixed);
  cq_status status;
  if (s->dim == 3) {
    status = draw_faces(p, s, rgba, mixed);
    if (!status) status = draw_balls(p, s, position, rgba);
  } else {
    draw_cells(p, s, rgba, mixed);
    draw_alone(p, s, position, rgba);
    status = CQ_OK;
    if (outline > 0) draw_outline(p, s, outline);
  }
  cq_free(mixed);
  return status;
}
