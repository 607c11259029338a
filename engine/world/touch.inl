// touch: do surfaces meet that steps on reference grids would let pass through each other? Nodes of the cells at the
// surface of bodies, which lie half a cell within, are put into cells of the world, with places between them where the
// body is stretched; two in one cell that are far apart at rest, or of different bodies, touch. Plain C, so that a
// device may ask it too: it says what its functions are.
#ifndef CQ_TOUCH
#define CQ_TOUCH static inline
#endif

enum {
  TOUCH_FAR = 4,             // cells at rest, beyond which two nodes in one cell are no neighbours that were pressed
  TOUCH_MOST = 16,           // places along an edge
};
#define TOUCH_STRETCH 0.25   // of an edge, in cells, up to which one place is enough

// Can two surface nodes touch? 1 yes, 0 no: they are neighbours in the undeformed body.
CQ_TOUCH int touch_apart(const cq_rim *a, const cq_rim *b) {
  if (a->body != b->body) return 1;
  for (int i = 0; i < 3; i++) {
    const int32_t cells = a->cell[i] - b->cell[i];
    if (cells > TOUCH_FAR || cells < -TOUCH_FAR) return 1;
  }
  return 0;
}

// Sets how many places represent a surface node, so that they are no farther apart than the search reaches, from its
// edges.
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

// Sets p to a surface node's place and the edges of its cell, from the node and those before and after it along each
// axis: of the two edges along an axis the shorter one, since an outer node has next to no mass and may be anywhere.
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

// The cell of the world that place k lies in, -1 at the edge of the world.
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
