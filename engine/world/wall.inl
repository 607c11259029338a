// wall: which unit normals of a wall hold a point. Plain C, so that a device may ask it too: it says what its functions are.
#ifndef CQ_WALL
#define CQ_WALL static inline
#endif

CQ_WALL int32_t sphere_normals(const cq_wall *w, int32_t dim, double slack, const double x[3], double normals[3][3]) {
  double r2 = 0;
  for (int i = 0; i < dim; i++) r2 += (x[i] - w->point[i]) * (x[i] - w->point[i]);
  const double r = sqrt(r2);
  if (w->hollow ? r < w->radius - slack : r > w->radius + slack) return 0;
  // at the centre any direction is as good as another
  for (int i = 0; i < dim; i++) normals[0][i] = r > 0 ? (x[i] - w->point[i]) / r * (w->hollow ? -1 : 1) : i == 1;
  return 1;
}

CQ_WALL int32_t box_normals(const cq_wall *w, int32_t dim, double slack, const double x[3], double normals[3][3]) {
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
  double nearest = INFINITY;
  for (int i = 0; i < dim; i++) {
    const double low = x[i] - w->lower[i], high = w->upper[i] - x[i];
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

// index and fraction of a coordinate in equally spaced samples, held at the ends
CQ_WALL void sample_at(double x, double origin, double spacing, int32_t count, int32_t *index, double *fraction) {
  double s = (x - origin) / spacing;
  if (s < 0) s = 0;
  if (s > count - 1) s = count - 1;
  *index = (int32_t)s;
  if (*index > count - 2) *index = count > 1 ? count - 2 : 0;
  *fraction = s - *index;
}

CQ_WALL int32_t height_normals(const cq_wall *w, int32_t dim, double slack, const double x[3], double normals[3][3]) {
  int32_t i, k = 0;
  double a, b = 0;
  const int32_t nx = w->height_count[0], nz = dim == 3 ? w->height_count[1] : 1;
  sample_at(x[0], w->height_origin[0], w->height_spacing[0], nx, &i, &a);
  if (dim == 3) sample_at(x[2], w->height_origin[1], w->height_spacing[1], nz, &k, &b);
  const int32_t i1 = nx > 1 ? i + 1 : i, k1 = nz > 1 ? k + 1 : k;
  const double h00 = w->height[(int64_t)i * nz + k], h10 = w->height[(int64_t)i1 * nz + k];
  const double h01 = w->height[(int64_t)i * nz + k1], h11 = w->height[(int64_t)i1 * nz + k1];
  const double h = (1 - a) * ((1 - b) * h00 + b * h01) + a * ((1 - b) * h10 + b * h11);
  if (x[1] > h + slack) return 0;
  const double sx = ((1 - b) * (h10 - h00) + b * (h11 - h01)) / w->height_spacing[0];
  const double sz = dim == 3 ? ((1 - a) * (h01 - h00) + a * (h11 - h10)) / w->height_spacing[1] : 0;
  const double length = sqrt(1 + sx * sx + sz * sz);
  normals[0][0] = -sx / length;
  normals[0][1] = 1 / length;
  normals[0][2] = -sz / length;
  return 1;
}

CQ_WALL int32_t wall_normals(const cq_wall *w, int32_t dim, double slack, const double x[3], double normals[3][3]) {
  switch (w->shape) {
    case CQ_WALL_SPHERE: return sphere_normals(w, dim, slack, x, normals);
    case CQ_WALL_BOX: return box_normals(w, dim, slack, x, normals);
    case CQ_WALL_HEIGHT_FIELD: return height_normals(w, dim, slack, x, normals);
    default: break;
  }
  double distance = 0;
  for (int i = 0; i < dim; i++) distance += (x[i] - w->point[i]) * w->normal[i];
  if (distance > slack) return 0;
  for (int i = 0; i < dim; i++) normals[0][i] = w->normal[i];
  return 1;
}
