// wall: which unit normals of a wall hold a point, and how these turn when the point moves. Plain C, for devices too,
// which define CQ_WALL, the qualifier of the functions. A test defines CQ_WALL_REAL and its own wall_real, a dual
// number.
//
// Which points a wall holds, and which face of a box or cell of a height field, changes in jumps: derivatives take it
// as fixed. Normals of planes and of boxes are constant on a face, those of a height field in 2D on a segment.
#ifndef CQ_WALL
#define CQ_WALL static inline
#endif
#ifndef CQ_WALL_REAL
typedef double wall_real;
#define wall_sqrt sqrt
#define wall_value(x) (x)
#endif

// Sets the normal along which a sphere holds a point x, if it does; returns the number of normals, 0 or 1. slack: how
// far outside of the solid x may be [length]. Shape and parameters as in wall_normals.
CQ_WALL int32_t sphere_normals(const cq_wall *w, int32_t dim, double slack, const wall_real x[3],
                               wall_real normals[3][3]) {
  wall_real r2 = 0;
  for (int i = 0; i < dim; i++) r2 += (x[i] - w->point[i]) * (x[i] - w->point[i]);
  const wall_real r = wall_sqrt(r2);
  if (w->hollow ? r < w->radius - slack : r > w->radius + slack) return 0;
  // at the centre any direction is as good as another
  for (int i = 0; i < dim; i++)
    normals[0][i] = r > 0 ? (x[i] - w->point[i]) / r * (w->hollow ? -1 : 1) : (wall_real)(i == 1);
  return 1;
}

// (E22) Adjoint of sphere_normals: dL/dx += (I - n n^T) / r dL/dn, with the sign of n; at the centre the normal is a
// constant.
CQ_WALL void sphere_normals_adj(const cq_wall *w, int32_t dim, const wall_real x[3], const wall_real grad_n[3],
                                wall_real grad_x[3]) {
  wall_real r2 = 0, along = 0;
  for (int i = 0; i < dim; i++) r2 += (x[i] - w->point[i]) * (x[i] - w->point[i]);
  if (!(r2 > 0)) return;
  for (int i = 0; i < dim; i++) along += (x[i] - w->point[i]) * grad_n[i];
  const wall_real turn = (wall_real)(w->hollow ? -1 : 1) / wall_sqrt(r2);
  for (int i = 0; i < dim; i++) grad_x[i] += turn * (grad_n[i] - along / r2 * (x[i] - w->point[i]));
}

// Sets the unit normals along which a box (a solid body, or a hollow room) holds a point x: of a room one for each face
// that holds x, of a body the normal of the nearest face. Returns their number. slack: how far outside of the solid x
// may be [length].
CQ_WALL int32_t box_normals(const cq_wall *w, int32_t dim, double slack, const wall_real x[3],
                            wall_real normals[3][3]) {
  int32_t count = 0;
  if (w->hollow) {
    for (int i = 0; i < dim; i++) {
      const int low = x[i] <= w->lower[i] + slack, high = x[i] >= w->upper[i] - slack;
      if (!low && !high) continue;
      for (int j = 0; j < dim; j++) normals[count][j] = i == j ? (low ? 1 : -1) : 0;
      count++;
    }
    return count;
  }
  // inside a solid box: out through the nearest face
  wall_real nearest = INFINITY;
  for (int i = 0; i < dim; i++) {
    const wall_real low = x[i] - w->lower[i], high = w->upper[i] - x[i];
    if (low < -slack || high < -slack) return 0;
    if (low < nearest) {
      nearest = low;
      for (int j = 0; j < dim; j++) normals[0][j] = i == j ? -1 : 0;
    }
    if (high < nearest) {
      nearest = high;
      for (int j = 0; j < dim; j++) normals[0][j] = i == j ? 1 : 0;
    }
  }
  return 1;
}

// Sets index and fraction to where coordinate x lies among `count` samples spaced evenly from `origin` on: the index of
// the sample before x and the fraction of the way to the next. Beyond the ends x counts as at the end.
CQ_WALL void sample_at(wall_real x, double origin, double spacing, int32_t count, int32_t *index, wall_real *fraction) {
  wall_real s = (x - origin) / spacing;
  if (!(s >= 0)) s = 0;     // where it is not finite too, as that of a node may be in a step that fails
  if (s > count - 1) s = count - 1;
  *index = (int32_t)wall_value(s);
  if (*index > count - 2) *index = count > 1 ? count - 2 : 0;
  *fraction = s - *index;
}

// Where a point is over a height field: the heights at the corners of its cell (h10 the next along the first axis, h01
// along the last), and its position within the cell, from 0 to 1.
typedef struct wall_cell {
  double h00, h01, h10, h11;
  wall_real a, b;            // along the first axis and the last one
} wall_cell;

// The cell of a height field below or above x: the heights of its corners and the position of x within it.
CQ_WALL wall_cell height_cell(const cq_wall *w, int32_t dim, const wall_real x[3]) {
  wall_cell c;
  int32_t i, k = 0;
  const int32_t nx = w->height_count[0], nz = dim == 3 ? w->height_count[1] : 1;
  c.b = 0;
  sample_at(x[0], w->height_origin[0], w->height_spacing[0], nx, &i, &c.a);
  if (dim == 3) sample_at(x[2], w->height_origin[1], w->height_spacing[1], nz, &k, &c.b);
  const int32_t i1 = nx > 1 ? i + 1 : i, k1 = nz > 1 ? k + 1 : k;
  c.h00 = w->height[(int64_t)i * nz + k];
  c.h10 = w->height[(int64_t)i1 * nz + k];
  c.h01 = w->height[(int64_t)i * nz + k1];
  c.h11 = w->height[(int64_t)i1 * nz + k1];
  return c;
}

// Sets rise to the gradient of y - height(x, z) in a cell of a height field: the normal of the ground before it has
// unit length. Returns its length.
CQ_WALL wall_real height_rise(const cq_wall *w, int32_t dim, const wall_cell *c, wall_real rise[3]) {
  const wall_real sx = ((1 - c->b) * (c->h10 - c->h00) + c->b * (c->h11 - c->h01)) / w->height_spacing[0];
  wall_real sz = 0;
  if (dim == 3) sz = ((1 - c->a) * (c->h01 - c->h00) + c->a * (c->h11 - c->h10)) / w->height_spacing[1];
  rise[0] = -sx;
  rise[1] = 1;
  rise[2] = -sz;
  return wall_sqrt(1 + sx * sx + sz * sz);
}

// The height of a height field in a cell, by bilinear interpolation.
CQ_WALL wall_real height_of(const wall_cell *c) {
  return (1 - c->a) * ((1 - c->b) * c->h00 + c->b * c->h01) + c->a * ((1 - c->b) * c->h10 + c->b * c->h11);
}

// Does a point x lie within the extent of a height field along an axis (0 or 2), so that the height may change with x?
// 1 yes, 0 no: beyond the ends of the field the height is constant.
CQ_WALL int height_inclines(const cq_wall *w, int axis, const wall_real x[3]) {
  const wall_real at = (x[axis] - w->height_origin[axis / 2]) / w->height_spacing[axis / 2];
  return at >= 0 && at <= w->height_count[axis / 2] - 1;
}

// Sets the normal along which a height field holds a point x, if it does; returns the number of normals, 0 or 1. slack:
// how far above the ground x may be, along y [length].
CQ_WALL int32_t height_normals(const cq_wall *w, int32_t dim, double slack, const wall_real x[3],
                               wall_real normals[3][3]) {
  const wall_cell c = height_cell(w, dim, x);
  if (x[1] > height_of(&c) + slack) return 0;
  wall_real rise[3];
  const wall_real length = height_rise(w, dim, &c, rise);
  for (int i = 0; i < 3; i++) normals[0][i] = rise[i] / length;
  return 1;
}

// (E22) Adjoint of height_normals: adds to grad_x, from grad_n = dL/d(normal); nothing in 2D. In 3D a cell is twisted:
// its slope along one axis changes along the other, by as much for both.
CQ_WALL void height_normals_adj(const cq_wall *w, int32_t dim, const wall_real x[3], const wall_real grad_n[3],
                                wall_real grad_x[3]) {
  if (dim < 3) return;
  const wall_cell c = height_cell(w, dim, x);
  wall_real rise[3], along = 0;
  const wall_real length = height_rise(w, dim, &c, rise);
  for (int i = 0; i < 3; i++) along += rise[i] / length * grad_n[i];
  const double twist = (c.h11 - c.h10 - c.h01 + c.h00) / (w->height_spacing[0] * w->height_spacing[1]);
  for (int i = 0; i < 3; i += 2) {
    if (!height_inclines(w, i, x)) continue;
    grad_x[i] += -twist / length * (grad_n[2 - i] - along * rise[2 - i] / length);
  }
}

// Sets the unit normals, out of the solid, with which a wall of any shape holds a point x; returns their number, 0
// where x is outside. slack: how far outside x may be [length]; a negative one shrinks the wall.
CQ_WALL int32_t wall_normals(const cq_wall *w, int32_t dim, double slack, const wall_real x[3],
                             wall_real normals[3][3]) {
  switch (w->shape) {
    case CQ_WALL_SPHERE: return sphere_normals(w, dim, slack, x, normals);
    case CQ_WALL_BOX: return box_normals(w, dim, slack, x, normals);
    case CQ_WALL_HEIGHT_FIELD: return height_normals(w, dim, slack, x, normals);
    default: break;
  }
  wall_real distance = 0;
  for (int i = 0; i < dim; i++) distance += (x[i] - w->point[i]) * w->normal[i];
  if (distance > slack) return 0;
  for (int i = 0; i < dim; i++) normals[0][i] = w->normal[i];
  return 1;
}

// As wall_normals, with the slack along the normal; a height field has it along y there.
CQ_WALL int32_t wall_normals_within(const cq_wall *w, int32_t dim, double slack, const wall_real x[3],
                                    wall_real normals[3][3]) {
  if (w->shape == CQ_WALL_HEIGHT_FIELD) {
    const wall_cell c = height_cell(w, dim, x);
    wall_real rise[3];
    slack *= (double)wall_value(height_rise(w, dim, &c, rise));
  }
  return wall_normals(w, dim, slack, x, normals);
}

// Adjoint of wall_normals: adds to grad_x. grad_n {3}: gradient of the first normal; walls with several have constant
// ones.
CQ_WALL void wall_normals_adj(const cq_wall *w, int32_t dim, const wall_real x[3], const wall_real grad_n[3],
                              wall_real grad_x[3]) {
  if (w->shape == CQ_WALL_SPHERE) sphere_normals_adj(w, dim, x, grad_n, grad_x);
  if (w->shape == CQ_WALL_HEIGHT_FIELD) height_normals_adj(w, dim, x, grad_n, grad_x);
}

// How far a point x lies within a wall widened by slack [length], along `normal`, one of its normals at x; sets slope
// to the derivative of this depth by x.
CQ_WALL wall_real wall_depth(const cq_wall *w, int32_t dim, double slack, const wall_real x[3],
                             const wall_real normal[3], wall_real slope[3]) {
  wall_real depth = slack, r2 = 0;
  for (int i = 0; i < 3; i++) slope[i] = i < dim ? -normal[i] : (wall_real)0;
  if (w->shape == CQ_WALL_SPHERE) {
    for (int i = 0; i < dim; i++) r2 += (x[i] - w->point[i]) * (x[i] - w->point[i]);
    const wall_real r = r2 > 0 ? wall_sqrt(r2) : (wall_real)0;
    return w->hollow ? depth + r - w->radius : depth + w->radius - r;
  }
  if (w->shape == CQ_WALL_HEIGHT_FIELD) {
    const wall_cell c = height_cell(w, dim, x);
    wall_real rise[3];
    const wall_real length = height_rise(w, dim, &c, rise);
    const double twist =
        dim == 3 ? (c.h11 - c.h10 - c.h01 + c.h00) / (w->height_spacing[0] * w->height_spacing[1]) : 0;
    const wall_real below = (height_of(&c) - x[1]) / length;
    for (int i = 0; i < dim; i += 2)
      slope[i] = height_inclines(w, i, x) ? slope[i] + below * twist * rise[2 - i] / (length * length) : (wall_real)0;
    return depth + below;
  }
  for (int i = 0; i < dim; i++) {
    double face = w->point[i];
    if (w->shape == CQ_WALL_BOX) face = (normal[i] > 0) != (w->hollow != 0) ? w->upper[i] : w->lower[i];
    depth += normal[i] * (face - x[i]);
  }
  return depth;
}
