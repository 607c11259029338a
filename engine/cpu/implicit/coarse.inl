// coarse: motions of a whole body beside the blocks of nodes in the preconditioner of conjugate gradients (E104). They
// are linear between the nodes of a coarse lattice over the window, a hat for each of its nodes and components.
//
//     o . . . o . . . o      o  a node of the lattice, of few: what is far along a body is settled by these,
//     . . . . . . . . .      .  nodes of the grid        what is near by the blocks of nodes
//
// A hat is a basis function of that lattice, linear along each axis, 1 at one of its nodes and 0 at all others. The
// matrix of hats takes particles cell by cell: their tensors are summed, at the mean of their places.

#if !defined(CQ_REAL_DUAL)

enum { HATS = CQ_DIM == 3 ? 27 : 9, HATS_WIDE = HATS / 4 * 4 + 4 };   // that a stencil reaches, at most

// the two hats of one axis that are not 0 at a node of the grid: number `first` is 1 - part there, the next one part
typedef struct {
  int32_t first;
  double part;
} Hats;

// Returns the two hat functions of one axis that are not 0 at a node of the grid: the number of the lower one, and
// `part`, the value of the upper one. place: the node's index along that axis, from the lower edge of the arrangement.
CQ_INLINE Hats hats_at(const cq_coarse *m, const int32_t place) {
  const int32_t first = place / m->spacing;
  return (Hats){first, (double)(place - first * m->spacing) / m->spacing};
}

// Points to the index that coarse node (x, y, z) has in the coarse linear system, -1: it is not used. In 2D y is 0, and
// z counts along the second axis.
CQ_INLINE int32_t *lattice_at(const cq_coarse *m, const int32_t x, const int32_t y, const int32_t z) {
  return &m->index[((int64_t)x * m->size[1] + y) * m->size[2] + z];
}

// A column in the window: its hats across, at most four with their parts, and its first node along the last axis.
typedef struct {
  int32_t x[4], y[4];
  double part[4];
  int count;
  int32_t begin;
} ColumnHats;

// Returns the hat functions of coarse nodes, across a column of grid nodes (along all axes but the last), that are not
// 0 there, at most four with their values, and the index of the column's first node along the last axis.
CQ_INLINE ColumnHats column_hats(const cq_scene *s, const cq_column *column) {
  const cq_arrangement *a = s->arrangement;
  const cq_coarse *m = &s->implicit.coarse;
  ColumnHats out;
  out.count = 0;
  const Hats x = hats_at(m, column->x - a->lower[0]);
  const Hats y = CQ_DIM == 3 ? hats_at(m, column->y - a->lower[1]) : (Hats){0, 0};
  for (int k = 0; k < 4; k++) {
    const double part = (k / 2 ? x.part : 1 - x.part) * (k % 2 ? y.part : 1 - y.part);
    if (part == 0) continue;
    out.x[out.count] = x.first + k / 2;
    out.y[out.count] = y.first + k % 2;
    out.part[out.count++] = part;
  }
  out.begin = column->z - a->lower[LAST];
  return out;
}

// Points to the index, in the coarse linear system, of the coarse node at hat function k of those across a column
// (column_hats), and at place `last` along it.
CQ_INLINE int32_t *column_lattice(const cq_coarse *m, const ColumnHats *hats, const int k, const int32_t last) {
  return lattice_at(m, hats->x[k], hats->y[k], last);
}

// The mass of node k of a column, k from 0.
CQ_INLINE double mass_at(const cq_scene *s, const cq_column *column, const int32_t k) {
  return (double)grid_vector(s, CQ_GRID_MOMENTUM)[4 * (column->node + k) + CQ_DIM];
}

// Sets the spacing of the coarse lattice [cells], and numbers those of its nodes whose hat functions reach a grid node
// with mass, from 0; the others get -1. Returns how many are numbered.
static int32_t number_lattice(cq_scene *s, const int32_t spacing) {
  const cq_arrangement *a = s->arrangement;
  cq_coarse *m = &s->implicit.coarse;
  m->spacing = spacing;
  for (int i = 0; i < 3; i++) m->size[i] = 1;
  m->size[0] = a->size[0] / spacing + 2;
  if (CQ_DIM == 3) m->size[1] = a->size[1] / spacing + 2;
  m->size[2] = a->size[CQ_DIM - 1] / spacing + 2;
  const int64_t total = (int64_t)m->size[0] * m->size[1] * m->size[2];
  for (int64_t k = 0; k < total; k++) m->index[k] = -1;
  for (int32_t c = 0; c < a->column_count; c++) {
    const cq_column *column = &a->columns[c];
    const ColumnHats hats = column_hats(s, column);
    for (int32_t k = 0; k < column->count; k++) {
      if (!(mass_at(s, column, k) > 0)) continue;
      const Hats last = hats_at(m, hats.begin + k);
      for (int q = 0; q < hats.count; q++) {
        *column_lattice(m, &hats, q, last.first) = 0;
        if (last.part > 0) *column_lattice(m, &hats, q, last.first + 1) = 0;
      }
    }
  }
  int32_t count = 0;
  for (int64_t k = 0; k < total; k++)
    if (m->index[k] == 0) m->index[k] = count++;
  return count;
}

// By one worker: chooses the smallest spacing of the coarse lattice with at most CQ_COARSE_NODES numbered nodes, and
// numbers them. Spacings at which grid nodes with mass fill more cells than that are not tried: each cell needs a node.
static void coarse_index(cq_scene *s) {
  const cq_arrangement *a = s->arrangement;
  double nodes = 0;
  for (int32_t c = 0; c < a->column_count; c++)
    for (int32_t k = 0; k < a->columns[c].count; k++) nodes += mass_at(s, &a->columns[c], k) > 0;
  int32_t spacing = CQ_COARSE_SPACING, count;
  while (pow(spacing, CQ_DIM) * CQ_COARSE_NODES < nodes) spacing++;
  while ((count = number_lattice(s, spacing)) > CQ_COARSE_NODES) spacing++;
  s->implicit.coarse.count = count;
}

// ---- the matrix -----------------------------------------------------------------------------------------------------

// the particles of one cell
typedef struct {
  double h[TENSOR], place[CQ_DIM], weight;
  int32_t node;
} CoarseCell;

// Of one axis, for each hat that a stencil reaches: value = sum w hat and slope = sum w hat (o + arm) over its nodes.
typedef struct {
  int32_t first;
  double value[3], slope[3];
} AxisHats;

// For a particle, along one axis: the values and slopes of the coarse hat functions at its stencil's three nodes,
// summed with the B-spline weights. node: the first of these, as `place` of hats_at; f: its distance from it [cells].
static AxisHats axis_hats(const cq_coarse *m, const int32_t node, const double f) {
  const double w[3] = {0.5 * (1.5 - f) * (1.5 - f), 0.75 - (f - 1) * (f - 1), 0.5 * (f - 0.5) * (f - 0.5)};
  AxisHats out = {node / m->spacing, {0, 0, 0}, {0, 0, 0}};
  for (int k = 0; k < 3; k++) {
    const Hats hats = hats_at(m, node + k);
    const int at = hats.first - out.first;
    const double arm = k - f;
    out.value[at] += w[k] * (1 - hats.part);
    out.slope[at] += w[k] * (1 - hats.part) * arm;
    if (at + 1 > 2) continue;   // the last node of a stencil on the last hat: part is 0
    out.value[at + 1] += w[k] * hats.part;
    out.slope[at + 1] += w[k] * hats.part * arm;
  }
  return out;
}

typedef struct {
  int32_t index[HATS];
  double slope[CQ_DIM][HATS_WIDE];    // 4/dx sum w hat (o + arm) over the stencil
  int count;
} CoarseReach;

// Sets out to the coarse nodes whose hat functions the particles of a cell reach, as one particle at their mean place,
// and to the gradients of these functions as the particle's B-spline interpolates them.
static void reach_of(const cq_scene *s, const CoarseCell *cell, CoarseReach *out) {
  const cq_arrangement *a = s->arrangement;
  const cq_coarse *m = &s->implicit.coarse;
  AxisHats axis[CQ_DIM];
  int32_t node = cell->node, at[CQ_DIM];
  for (int i = CQ_DIM - 1; i >= 0; i--) {
    at[i] = i ? node % a->size[i] : node;
    node /= a->size[i];
    axis[i] = axis_hats(m, at[i], cell->place[i] / cell->weight - at[i]);
  }
  out->count = 0;
  for (int k = 0; k < HATS; k++) {
    int o[CQ_DIM], rest = k;
    double across = 4 / s->model->dx;
    EACH(i) {
      o[i] = rest % 3;
      rest /= 3;
      across *= axis[i].value[o[i]];
    }
    if (across == 0) continue;
    const int32_t y = CQ_DIM == 3 ? axis[1 % CQ_DIM].first + o[1] : 0;
    out->index[out->count] = *lattice_at(m, axis[0].first + o[0], y, axis[LAST].first + o[LAST]);
    EACH(i) out->slope[i][out->count] = across / axis[i].value[o[i]] * axis[i].slope[o[i]];
    out->count += out->index[out->count] >= 0;
  }
}

// The sum over successive cells that reach the same hats: for hats p and q entry (i, b) of their block of the matrix.
typedef struct {
  double sum[HATS][MATRIX][HATS_WIDE];
  int32_t index[HATS];
  int count;
} CoarseSum;

// Adds a sum over cells (CoarseSum) to the lower triangle of the coarse matrix {count dim, count dim}, and clears it.
static void sum_flush(const cq_coarse *m, CoarseSum *cells, double *matrix) {
  const int n = m->count * CQ_DIM;
  for (int p = 0; p < cells->count; p++)
    for (int q = 0; q < cells->count; q++) {
      if (cells->index[q] > cells->index[p]) continue;
      double *to = matrix + (int64_t)cells->index[p] * CQ_DIM * n + cells->index[q] * CQ_DIM;
      EACH(i) EACH(b) to[i * n + b] += cells->sum[p][i * CQ_DIM + b][q];
    }
  memset(cells->sum, 0, (size_t)cells->count * sizeof cells->sum[0]);
  cells->count = 0;
}

// Adds a cell's summed tensors to the running sum `to` over cells that reach the same coarse nodes, and empties the
// cell for the next one. If it reaches different coarse nodes, `to` is first added to the matrix.
static void coarse_flush(const cq_scene *s, CoarseCell *cell, CoarseSum *to, double *matrix) {
  CoarseReach reach;
  memset(&reach, 0, sizeof reach);   // the hats behind the last one have no slope
  if (cell->weight > 0) reach_of(s, cell, &reach);
  if (reach.count != to->count || memcmp(reach.index, to->index, (size_t)reach.count * sizeof *reach.index)) {
    sum_flush(&s->implicit.coarse, to, matrix);
    memcpy(to->index, reach.index, sizeof to->index);
    to->count = reach.count;
  }
  const int padded = (reach.count + 3) / 4 * 4;
  for (int p = 0; p < reach.count; p++)
    EACH(i) EACH(b) {
      double part[CQ_DIM], *sum = to->sum[p][i * CQ_DIM + b];
      EACH(l) {
        part[l] = 0;
        EACH(j) part[l] += cell->h[tensor_at(i * CQ_DIM + j, b * CQ_DIM + l)] * reach.slope[j][p];
      }
      for (int q = 0; q < padded; q++) {
        double more = part[0] * reach.slope[0][q];
        CQ_UNROLL for (int l = 1; l < CQ_DIM; l++) more += part[l] * reach.slope[l][q];
        sum[q] += more;
      }
    }
  memset(cell, 0, sizeof *cell);
  cell->node = -1;
}

// (E104) Adds the contribution of a range's particles to the Hessian, from their tensors, to the lower triangle of the
// coarse matrix {count dim, count dim}, cell by cell. in: the state before the step.
static void coarse_gather(cq_scene *s, const cq_slice *in, int32_t range, double *matrix) {
  const cq_arrangement *a = s->arrangement;
  const double inv_dx = 1 / s->model->dx;
  CoarseCell cell;
  CoarseSum sum;
  memset(&cell, 0, sizeof cell);
  memset(&sum, 0, sizeof sum);
  cell.node = -1;
  for (int32_t slot = s->range_start[range] * CQ_CHUNK; slot < s->range_start[range + 1] * CQ_CHUNK; slot++) {
    const int32_t c = slot / CQ_CHUNK, l = slot % CQ_CHUNK;
    const real *tensor = (const real *)s->implicit.tensor + AT(c, TENSOR, 0) + l;
    const double volume = (double)*slot_at((real *)a->params, s->params, slot, CQ_PARAM_VOLUME);
    if (s->implicit.node[slot] != cell.node) coarse_flush(s, &cell, &sum, matrix);
    cell.node = s->implicit.node[slot];
    cell.weight += volume;
    for (int k = 0; k < TENSOR; k++) cell.h[k] += (double)tensor[k * CQ_CHUNK];
    EACH(i)
      cell.place[i] += volume * (inv_dx * (double)*slot_at((real *)in->data, FIELDS, slot, X + i) - a->lower[i]);
  }
  coarse_flush(s, &cell, &sum, matrix);
  sum_flush(&s->implicit.coarse, &sum, matrix);
}

// Adds `block`, one grid node's own contribution to the Hessian H, to the lower triangle of the coarse matrix {count
// dim, count dim}, times the hat functions at the node: `hats` across the node's column, `last` along it.
static void coarse_node(const cq_coarse *m, const ColumnHats *hats, const Hats last, const double block[CQ_DIM][CQ_DIM],
                        double *matrix) {
  const int n = m->count * CQ_DIM;
  int32_t index[8];
  double part[8];
  int count = 0;
  for (int k = 0; k < 2 * hats->count; k++) {
    part[count] = hats->part[k / 2] * (k % 2 ? last.part : 1 - last.part);
    if (part[count] == 0) continue;
    index[count++] = *column_lattice(m, hats, k / 2, last.first + k % 2);
  }
  for (int p = 0; p < count; p++)
    for (int q = 0; q < count; q++) {
      if (index[q] > index[p]) continue;
      double *to = matrix + (int64_t)index[p] * CQ_DIM * n + index[q] * CQ_DIM;
      EACH(i) EACH(j) to[i * n + j] += part[p] * part[q] * block[i][j];
    }
}

// (E104) Adds the contributions of the nodes themselves, in one block of columns, to the lower triangle of the coarse
// matrix: inertia, friction, and along directions that contacts hold the largest entry of the node's block of H.
static void coarse_nodes(cq_scene *s, int32_t block, double *matrix) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const cq_coarse *m = &s->implicit.coarse;
  const double inertia = (double)resistance_of(s);
  int32_t held = 0;
  COLUMNS_EACH(s, block, column) {
    const ColumnHats hats = column_hats(s, column);
    for (int32_t k = 0; k < column->count; k++) {
      const int is_held = held < h->count && constrained_node(h, held)->node == column->node + k;
      const ConstrainedNode *n = is_held ? constrained_node(h, held++) : NULL;
      const double mass = mass_at(s, column, k);
      if (!(mass > 0)) continue;
      double own[CQ_DIM][CQ_DIM];
      EACH(i) EACH(j) own[i][j] = i == j ? inertia * mass : 0;
      if (n && (n->active || s->model->walls_have_friction)) {
        real rubbed[CQ_DIM][CQ_DIM], all[CQ_DIM][CQ_DIM], still[CQ_DIM], largest = (real)0;
        Freedom f;
        read_block(s, n->node, all);
        EACH(i) {
          largest = all[i][i] > largest ? all[i][i] : largest;
          still[i] = (real)0;
          EACH(j) rubbed[i][j] = (real)0;
        }
        contacts_keep(s, h, n, &f, still);
        if (s->model->walls_have_friction) friction_block(s, h, n, rubbed);
        EACH(i) EACH(j)
          own[i][j] += (double)rubbed[i][j] + (double)largest * ((i == j) - (double)f.free[i][j]);
      }
      coarse_node(m, &hats, hats_at(m, hats.begin + k), (const double (*)[CQ_DIM])own, matrix);
    }
  }
}

// ---- to the lattice and from it -------------------------------------------------------------------------------------

// Restricts REST, the residual of a linear system, from a block's nodes to the coarse lattice: sets to {coarse.count
// dim} to the sum over these nodes of each hat function times REST.
static void coarse_restrict(cq_scene *s, int32_t block, double *to) {
  const cq_coarse *m = &s->implicit.coarse;
  const real *rest = grid_vector(s, CQ_GRID_REST);
  const double step = 1.0 / m->spacing;
  memset(to, 0, (size_t)m->count * CQ_DIM * sizeof *to);
  COLUMNS_EACH(s, block, column) {
    const ColumnHats hats = column_hats(s, column);
    for (int32_t k = 0; k < column->count;) {
      const int32_t first = (hats.begin + k) / m->spacing, end = (first + 1) * m->spacing - hats.begin;
      double low[CQ_DIM] = {0}, high[CQ_DIM] = {0};
      for (; k < column->count && k < end; k++) {
        const double part = (hats.begin + k - first * m->spacing) * step;
        const real *r = rest + 4 * (column->node + k);
        EACH(i) {
          low[i] += (1 - part) * (double)r[i];
          high[i] += part * (double)r[i];
        }
      }
      for (int q = 0; q < hats.count; q++) {
        const int32_t below = *column_lattice(m, &hats, q, first), above = *column_lattice(m, &hats, q, first + 1);
        EACH(i) {
          if (below >= 0) to[below * CQ_DIM + i] += hats.part[q] * low[i];
          if (above >= 0) to[above * CQ_DIM + i] += hats.part[q] * high[i];
        }
      }
    }
  }
}

// Adds to DIRECTION of a block's nodes the solution `from` {count dim} of the coarse system, interpolated by its hat
// functions, in the directions that contacts leave free.
static void coarse_prolong(cq_scene *s, int32_t block, const double *from) {
  const cq_coarse *m = &s->implicit.coarse;
  const double step = 1.0 / m->spacing;
  real *direction = grid_vector(s, CQ_GRID_DIRECTION);
  COLUMNS_EACH(s, block, column) {
    const ColumnHats hats = column_hats(s, column);
    for (int32_t k = 0; k < column->count;) {
      const int32_t first = (hats.begin + k) / m->spacing, end = (first + 1) * m->spacing - hats.begin;
      double low[CQ_DIM] = {0}, high[CQ_DIM] = {0};
      for (int q = 0; q < hats.count; q++) {
        const int32_t below = *column_lattice(m, &hats, q, first), above = *column_lattice(m, &hats, q, first + 1);
        EACH(i) {
          if (below >= 0) low[i] += hats.part[q] * from[below * CQ_DIM + i];
          if (above >= 0) high[i] += hats.part[q] * from[above * CQ_DIM + i];
        }
      }
      for (; k < column->count && k < end; k++) {
        const double part = (hats.begin + k - first * m->spacing) * step;
        real *p = direction + 4 * (column->node + k);
        if (!(mass_at(s, column, k) > 0)) continue;
        EACH(i) p[i] += (real)((1 - part) * low[i] + part * high[i]);
      }
    }
  }
  project(s, block, CQ_GRID_DIRECTION);
}

#endif
