// touch: do surfaces meet that steps on reference grids would let pass through each other? The nodes of the cells at
// the surface of bodies, which lie half a cell within, are entered into cells of the world, and where the body is
// stretched also points between them. Two in one cell touch if they are of different bodies or far apart at rest. Plain
// C, for devices too, which define CQ_TOUCH, the qualifier of the functions.
#ifndef CQ_TOUCH
#define CQ_TOUCH static inline
#endif

enum {
  TOUCH_FAR = 4,             // cells at rest, beyond which two nodes in one cell are no neighbours that were pressed
  TOUCH_MOST = 16,           // points along an edge
};
#define TOUCH_STRETCH 0.25   // an edge may be 1 + this many cells long with one point

// Were two surface nodes apart in the undeformed bodies, so that they touch if they come near? 1 yes; 0 no: they are
// neighbours of one body.
CQ_TOUCH int touch_apart(const cq_rim *a, const cq_rim *b) {
  if (a->body != b->body) return 1;
  for (int i = 0; i < 3; i++) {
    const int32_t cells = a->cell[i] - b->cell[i];
    if (cells > TOUCH_FAR || cells < -TOUCH_FAR) return 1;
  }
  return 0;
}

// Sets how many points along each edge represent a surface node's cell (count) and in all, so that points are at most
// about dx apart. Reads the edges.
CQ_TOUCH void touch_count(const int32_t dim, const double dx, cq_rim_places *p) {
  p->all = 1;
  for (int j = 0; j < dim; j++) {
    double square = 0;
    for (int i = 0; i < dim; i++) square += p->edge[j][i] * p->edge[j][i];
    const double cells = sqrt(square) / dx;
    p->count[j] = cells < TOUCH_MOST ? (int32_t)ceil(cells - TOUCH_STRETCH) : TOUCH_MOST;
    if (p->count[j] < 1) p->count[j] = 1;
    p->all *= p->count[j];
  }
}

// Sets p to the position of a surface node, the edges of its cell and the counts of points (touch_count). before[axis],
// after[axis]: positions of its neighbours along an axis. Of the two edges along an axis it takes the shorter one,
// since an outer node has next to no mass and may be anywhere.
CQ_TOUCH void touch_place(const int32_t dim, const double dx, const double node[3], const double before[3][3],
                          const double after[3][3], cq_rim_places *p) {
  for (int i = 0; i < dim; i++) p->node[i] = node[i];
  for (int j = 0; j < dim; j++) {
    double low = 0, high = 0;
    for (int i = 0; i < dim; i++) {
      low += (node[i] - before[j][i]) * (node[i] - before[j][i]);
      high += (after[j][i] - node[i]) * (after[j][i] - node[i]);
    }
    for (int i = 0; i < dim; i++) p->edge[j][i] = low < high ? node[i] - before[j][i] : after[j][i] - node[i];
  }
  touch_count(dim, dx, p);
}

// The cell of the world that point k (0 to p->all - 1) of a surface node's cell lies in, -1 at the edge of the world.
CQ_TOUCH int64_t touch_cell(const int32_t dim, const double dx, const int32_t cells[3], const cq_rim_places *p,
                            int32_t k) {
  double x[3];
  int64_t cell = 0;
  for (int i = 0; i < dim; i++) x[i] = p->node[i];
  for (int j = 0; j < dim; k /= p->count[j++])
    for (int i = 0; i < dim; i++) x[i] += ((k % p->count[j] + 0.5) / p->count[j] - 0.5) * p->edge[j][i];
  for (int i = 0; i < dim; i++) {
    const double at = x[i] / dx;
    if (!(at >= 1 && at <= cells[i] - 1)) return -1;
    cell = cell * cells[i] + (int64_t)at;
  }
  return cell;
}
