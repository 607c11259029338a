// matrix: the second derivative of a step of backward Euler as an assembled matrix over nodes, for linear systems that
// need many products. A node is coupled to the nodes within two cells of it, by blocks of dim x dim:
//
//     . . . . .      o  a node        5 neighbours in its own column and in each of the columns within two cells, all
//     . . . . .      .  nodes it is   of which the matrix has, also where they are no nodes: zeros.
//     . . o . .         coupled to
//     . . . . .
//     . . . . .
//
// Four nodes that follow each other in a column are a group: what is computed together. Each worker assembles the rows
// of its own nodes, from all particles that reach them in the order of the particles, so that the bits do not depend on
// the number of threads.

#if CQ_LANES > 1

enum {
  REACH = 5,                             // nodes of a column that a node is coupled to
  SIDES = CQ_DIM == 3 ? 25 : 5,          // columns around one and itself, in the order of the columns
  MIDDLE = SIDES / 2,
  OFFSETS = SIDES * REACH,
  NODES = CQ_DIM == 3 ? 27 : 9,          // of a stencil
  ACROSS = (NODES + CQ_LANES - 1) / CQ_LANES * CQ_LANES,
  GROUP = 4,
  WIDE = GROUP * CQ_DIM,                 // components of a group
  GROUP_REALS = OFFSETS * MATRIX * GROUP,
  // of a group: its own block of the matrix as it is preconditioned by, the inverse of that, and whether it is another
  OWN = 0, INVERSE = WIDE * WIDE, REPLACED = 2 * WIDE * WIDE, OWN_REALS = 2 * WIDE * WIDE + GROUP,
};

typedef real Four __attribute__((vector_size(GROUP * CQ_REAL_BYTES), may_alias, aligned(CQ_REAL_BYTES)));

CQ_INLINE Four four_load(const real *p) { return *(const Four *)p; }
CQ_INLINE void four_store(real *p, const Four x) { *(Four *)p = x; }
CQ_INLINE Four four_set(const real x) { return x - (Four){0}; }

CQ_INLINE real *matrix_of(const cq_scene *s, const int64_t group) {
  return (real *)s->implicit.matrix + group * GROUP_REALS;
}
CQ_INLINE real *own_of(const cq_scene *s, const int64_t group) {
  return (real *)s->implicit.own + group * OWN_REALS;
}

// the groups of a column: that of four nodes from z on
CQ_INLINE int64_t group_at(const cq_column *column, const int32_t z) { return (column->record + z) / GROUP; }

// nodes of the window from a column to its neighbour of a side
CQ_INLINE int64_t side_at(const cq_arrangement *a, const int side) {
  return CQ_DIM == 3 ? ((int64_t)(side / 5 - 2) * a->size[1] + side % 5 - 2) * a->size[CQ_DIM - 1]
                     : (int64_t)(side - 2) * a->size[1];
}

// ---- which columns are there ----------------------------------------------------------------------------------------

// of each place of a column in the window the column, or -1; by one worker
static void index_columns(cq_scene *s) {
  const cq_arrangement *a = s->arrangement;
  for (int64_t k = 0; k < s->implicit.places; k++) s->implicit.column_at[k] = -1;
  for (int32_t c = 0; c < a->column_count; c++)
    s->implicit.column_at[a->columns[c].node / a->size[CQ_DIM - 1]] = c;
}

CQ_INLINE int32_t column_beside(const cq_scene *s, const cq_column *column, const int32_t dx, const int32_t dy) {
  const cq_arrangement *a = s->arrangement;
  const int32_t x = column->x - a->lower[0] + dx, y = CQ_DIM == 3 ? column->y - a->lower[1] + dy : 0;
  if (x < 0 || x >= a->size[0] || y < 0 || (CQ_DIM == 3 && y >= a->size[1])) return -1;
  return s->implicit.column_at[CQ_DIM == 3 ? (int64_t)x * a->size[1] + y : x];
}

// bits of the sides where a column has a neighbour: in its own block, and in others
static void find_sides(cq_scene *s, const int32_t block) {
  const cq_arrangement *a = s->arrangement;
  const int32_t begin = a->column_block[block], end = a->column_block[block + 1];
  for (int32_t c = begin; c < end; c++) {
    const cq_column *column = &a->columns[c];
    cq_sides *sides = &s->implicit.sides[c];
    *sides = (cq_sides){0, 0};
    for (int side = 0; side < SIDES; side++) {
      const int32_t dx = CQ_DIM == 3 ? side / 5 - 2 : side - 2, dy = CQ_DIM == 3 ? side % 5 - 2 : 0;
      const int32_t found = column_beside(s, column, dx, dy);
      if (found < 0) continue;
      if (found >= begin && found < end)
        sides->own |= 1u << side;
      else
        sides->other |= 1u << side;
    }
  }
}

// ---- what particles give --------------------------------------------------------------------------------------------

// What the particles of one cell give the rows of their nodes: for a node and an entry (a, b) of a block, all nodes
// that it is coupled to.
typedef struct {
  real sum[NODES][MATRIX][ACROSS] __attribute__((aligned(64)));
  real slope[CQ_DIM][ACROSS] __attribute__((aligned(64)));             // 4/dx w (o + arm) of each node
  real part[MATRIX * CQ_DIM][ACROSS] __attribute__((aligned(64)));     // h times it: of (a, b, l), for each node
  int64_t node, lower, upper;            // of the cell, -1: none yet; rows of nodes from lower to upper, without it
  uint32_t rows;                         // bits of the stencil's columns that are among these
} CellMatrix;

// (E84) 4/dx w (o + arm) of each node of a particle
CQ_INLINE void cell_slopes(CellMatrix *m, const KeptWeights w, const real arm[CQ_DIM], const real inv_dx4) {
  for (int k = 0; k < NODES; k++) {
    const int o[3] = {CQ_DIM == 3 ? k / 9 : k / 3, CQ_DIM == 3 ? k / 3 % 3 : k % 3, k % 3};
    real weight = inv_dx4;
    EACH(i) weight *= w[i][o[i]];
    EACH(i) m->slope[i][k] = weight * (arm[i] + (real)(o[i] - 1));
  }
}

// One particle: sum += (4/dx)^2 w_i w_j h : (o_i + arm) (o_j + arm)
static void cell_add(CellMatrix *m, const real *tensor) {
  for (int l = 0; l < CQ_DIM; l++)
    for (int ab = 0; ab < MATRIX; ab++) {
      const int a = ab / CQ_DIM, b = ab % CQ_DIM;
      for (int h = 0; h < ACROSS; h += CQ_LANES) {
        Real sum = tensor[tensor_at(a * CQ_DIM, b * CQ_DIM + l) * CQ_CHUNK] * r_load(m->slope[0] + h);
        CQ_UNROLL for (int j = 1; j < CQ_DIM; j++)
          sum += tensor[tensor_at(a * CQ_DIM + j, b * CQ_DIM + l) * CQ_CHUNK] * r_load(m->slope[j] + h);
        r_store(m->part[ab * CQ_DIM + l] + h, sum);
      }
    }
  for (int k = 0; k < NODES; k++) {
    if (!(m->rows >> k / 3 & 1)) continue;
    for (int h = 0; h < ACROSS; h += CQ_LANES) {
      Real slope[CQ_DIM];
      EACH(l) slope[l] = r_load(m->slope[l] + h);
      CQ_UNROLL for (int ab = 0; ab < MATRIX; ab++) {
        Real sum = r_load(m->sum[k][ab] + h);
        EACH(l) sum += m->part[ab * CQ_DIM + l][k] * slope[l];
        r_store(m->sum[k][ab] + h, sum);
      }
    }
  }
}

// the sums of a cell to the matrix, and clear
static void cell_flush(const cq_scene *s, CellMatrix *m) {
  const cq_arrangement *a = s->arrangement;
  const int32_t size = a->size[CQ_DIM - 1];
  if (m->node < 0) return;
  for (int k = 0; k < NODES; k++) {
    if (!(m->rows >> k / 3 & 1)) continue;
    const int64_t node = m->node + (CQ_DIM == 3 ? ((int64_t)(k / 9) * a->size[1] + k / 3 % 3) * size : k / 3 * size);
    const int64_t place = node / size;                       // of the column in the window
    const cq_column *column = &a->columns[s->implicit.column_at[place]];
    const int32_t z = (int32_t)(node + k % 3 - column->node);
    real *to = matrix_of(s, group_at(column, z)) + z % GROUP;
    for (int q = 0; q < NODES; q++) {
      const int side = CQ_DIM == 3 ? (q / 9 - k / 9 + 2) * 5 + q / 3 % 3 - k / 3 % 3 + 2 : q / 3 - k / 3 + 2;
      real *at = to + (side * REACH + q % 3 - k % 3 + 2) * MATRIX * GROUP;
      for (int ab = 0; ab < MATRIX; ab++) at[ab * GROUP] += m->sum[k][ab][q];
    }
    memset(m->sum[k], 0, sizeof m->sum[k]);
  }
}

// the cell of a particle becomes that of the sums
CQ_INLINE void cell_begin(const cq_scene *s, CellMatrix *m, const int64_t node) {
  const cq_arrangement *a = s->arrangement;
  const int32_t size = a->size[CQ_DIM - 1];
  m->node = node;
  m->rows = 0;
  for (int k = 0; k < NODES / 3; k++) {
    const int64_t row = node + (CQ_DIM == 3 ? ((int64_t)(k / 3) * a->size[1] + k % 3) * size : k * size);
    if (row >= m->lower && row < m->upper) m->rows |= 1u << k;
  }
}

static void assemble_particles(cq_scene *s, const cq_slice *in, CellMatrix *m) {
  const cq_arrangement *a = s->arrangement;
  const real inv_dx = (real)(1 / s->model->dx);
  const int64_t stencil = side_at(a, SIDES - 1) + 3;   // nodes from its first to behind its last
  for (int32_t c = 0; c < s->chunks; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const int32_t *node = s->implicit.node + c * CQ_CHUNK;
    int reached = 0;
    for (int l = 0; l < CQ_CHUNK; l++) reached |= node[l] < m->upper && node[l] + stencil > m->lower;
    if (!reached) continue;
    real arms[CQ_DIM][CQ_CHUNK] __attribute__((aligned(64)));
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      place(chunk, h, inv_dx, base, f, arm);
      EACH(i) r_store(arms[i] + h, arm[i]);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      if (node[l] != m->node) {
        cell_flush(s, m);
        cell_begin(s, m, node[l]);
      }
      if (!m->rows) continue;
      real arm[CQ_DIM];
      EACH(i) arm[i] = arms[i][l];
      cell_slopes(m, ((const KeptWeights *)s->implicit.weight)[c * CQ_CHUNK + l], arm, 4 * inv_dx);
      cell_add(m, (const real *)s->implicit.tensor + AT(c, TENSOR, 0) + l);
    }
  }
  cell_flush(s, m);
}

// (E84) the rows of a block of columns, after tensors(): of particles, and inertia
static void assemble(cq_scene *s, const cq_slice *in, int32_t block) {
  const cq_arrangement *a = s->arrangement;
  const int32_t begin = a->column_block[block], end = a->column_block[block + 1];
  if (begin == end) return;
  const cq_column *first = &a->columns[begin], *last = &a->columns[end - 1];
  const real inertia = inertia_of(s), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  CellMatrix m;
  memset(&m, 0, sizeof m);
  m.node = -1;
  const int32_t size = a->size[CQ_DIM - 1];
  m.lower = first->node / size * size;
  m.upper = last->node / size * size + size;
  const int64_t groups = group_at(last, last->count) - group_at(first, 0);
  memset(matrix_of(s, group_at(first, 0)), 0, (size_t)(groups * GROUP_REALS) * sizeof(real));
  find_sides(s, block);
  assemble_particles(s, in, &m);
  COLUMNS_EACH(s, block, column) for (int32_t z = 0; z < column->count; z++) {
    real *to = matrix_of(s, group_at(column, z)) + (MIDDLE * REACH + 2) * MATRIX * GROUP + z % GROUP;
    EACH(i) to[i * (CQ_DIM + 1) * GROUP] += inertia * momentum[4 * (column->node + z) + CQ_DIM];
  }
}

// ---- what contacts hold ---------------------------------------------------------------------------------------------

// entry (i, j) of the block that couples node z of a column to another one
CQ_INLINE real *entry_at(const cq_scene *s, const cq_column *column, const int32_t z, const int offset, const int i,
                         const int j) {
  return matrix_of(s, group_at(column, z)) + ((offset * CQ_DIM + i) * CQ_DIM + j) * GROUP + z % GROUP;
}

// Node z of a column is coupled to a held node by `offset`: of that, what is free there remains.
static void hold_column(const cq_scene *s, const cq_column *column, const int32_t z, const int offset,
                        const Freedom *f) {
  EACH(i) {
    real row[CQ_DIM], free[CQ_DIM];
    EACH(j) row[j] = *entry_at(s, column, z, offset, i, j);
    freedom_apply(f, row, free);
    EACH(j) *entry_at(s, column, z, offset, i, j) = free[j];
  }
}

// the row of a held node: what is free, and on what is held the unit times its largest entry
static void hold_row(const cq_scene *s, const cq_held_nodes *h, const HeldNode *n, const cq_column *column,
                     const Freedom *f) {
  const int32_t z = (int32_t)(n->node - column->node);
  const int centre = MIDDLE * REACH + 2;
  if (s->model->walls_rub) {
    real block[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) block[i][j] = *entry_at(s, column, z, centre, i, j);
    rub_block(s, h, n, block);
    EACH(i) EACH(j) *entry_at(s, column, z, centre, i, j) = block[i][j];
  }
  real largest = (real)0;
  EACH(i) largest += fabs(*entry_at(s, column, z, centre, i, i));
  for (int offset = 0; offset < OFFSETS; offset++) EACH(j) {
    real row[CQ_DIM], free[CQ_DIM];
    EACH(i) row[i] = *entry_at(s, column, z, offset, i, j);
    freedom_apply(f, row, free);
    EACH(i) *entry_at(s, column, z, offset, i, j) = free[i];
  }
  hold_column(s, column, z, centre, f);
  EACH(i) EACH(j) *entry_at(s, column, z, centre, i, j) += largest * ((real)(i == j) - f->free[i][j]);
}

// The matrix on what contacts leave free: rows of the block, and columns of all nodes that are held.
static void hold_matrix(cq_scene *s, int32_t block) {
  const cq_arrangement *a = s->arrangement;
  const int32_t begin = a->column_block[block], end = a->column_block[block + 1], size = a->size[CQ_DIM - 1];
  for (int32_t other = 0; other < s->ranges; other++) {
    const cq_held_nodes *h = &s->implicit.held[other];
    for (int32_t k = 0; k < h->count; k++) {
      const HeldNode *n = held_node(h, k);
      if (!n->active && !s->model->walls_rub) continue;
      real still[CQ_DIM] = {(real)0};
      Freedom f;
      contacts_keep(s, h, n, &f, still);
      for (int side = 0; side < SIDES; side++) {
        const int64_t place = n->node / size - side_at(a, side) / size;   // of whom the held node is at this side
        if (place < 0 || place >= s->implicit.places) continue;
        const int32_t c = s->implicit.column_at[place];
        if (c < begin || c >= end) continue;
        const cq_column *column = &a->columns[c];
        for (int dz = 0; dz < REACH; dz++) {
          const int32_t z = (int32_t)(n->node - side_at(a, side) - (dz - 2) - column->node);
          if (z < 0 || z >= column->count) continue;
          if (side == MIDDLE && dz == 2)
            hold_row(s, h, n, column, &f);
          else
            hold_column(s, column, z, side * REACH + dz, &f);
        }
      }
    }
  }
}

// ---- the blocks of groups -------------------------------------------------------------------------------------------

// The inverse of a symmetric matrix by its Cholesky factor; 0 where it is not positive.
static int invert_group(const real a[WIDE][WIDE], real out[WIDE][WIDE]) {
  real low[WIDE][WIDE] = {{0}};
  for (int i = 0; i < WIDE; i++)
    for (int j = 0; j <= i; j++) {
      real sum = a[i][j];
      for (int k = 0; k < j; k++) sum -= low[i][k] * low[j][k];
      if (i == j) {
        if (!(sum > (real)1e-6 * a[i][i])) return 0;
        low[i][i] = s_sqrt(sum);
      } else {
        low[i][j] = sum / low[j][j];
      }
    }
  for (int column = 0; column < WIDE; column++) {
    real x[WIDE];
    for (int i = 0; i < WIDE; i++) {
      x[i] = (real)(i == column);
      for (int k = column; k < i; k++) x[i] -= low[i][k] * x[k];
      x[i] = x[i] / low[i][i];
    }
    for (int i = WIDE - 1; i >= 0; i--) {
      for (int k = i + 1; k < WIDE; k++) x[i] -= low[k][i] * x[k];
      x[i] = x[i] / low[i][i];
      out[i][column] = x[i];
    }
  }
  return 1;
}

// The block of a group, component by component of its nodes, and its inverse. Nodes without mass have the unit; a block
// that is not positive is replaced by its largest entries, node by node.
static void precondition_group(const cq_scene *s, const int64_t group) {
  const real *from = matrix_of(s, group) + MIDDLE * REACH * MATRIX * GROUP;
  real own[WIDE][WIDE] = {{0}}, inverse[WIDE][WIDE], *to = own_of(s, group);
  for (int l = 0; l < GROUP; l++) {
    for (int m = l > 2 ? l - 2 : 0; m < GROUP && m <= l + 2; m++)
      EACH(i) EACH(j)
        own[i * GROUP + l][j * GROUP + m] = from[((m - l + 2) * MATRIX + i * CQ_DIM + j) * GROUP + l];
    EACH(i) if (own[i * GROUP + l][i * GROUP + l] == (real)0) own[i * GROUP + l][i * GROUP + l] = (real)1;
  }
  const int replaced = !invert_group((const real (*)[WIDE])own, inverse);
  if (replaced) {
    memset((void *)inverse, 0, sizeof inverse);
    for (int l = 0; l < GROUP; l++) {
      real largest = (real)0;
      EACH(i) largest = (real)fmax((double)largest, fabs((double)own[i * GROUP + l][i * GROUP + l]));
      EACH(i) inverse[i * GROUP + l][i * GROUP + l] = 1 / largest;
      EACH(i) for (int q = 0; q < WIDE; q++) own[i * GROUP + l][q] = q == i * GROUP + l ? largest : (real)0;
    }
  }
  memcpy(to + INVERSE, inverse, sizeof inverse);
  memcpy(to + OWN, own, sizeof own);
  to[REPLACED] = (real)replaced;
}

static void precondition(cq_scene *s, int32_t block) {
  hold_matrix(s, block);
  COLUMNS_EACH(s, block, column)
    for (int32_t z = 0; z < column->count; z += GROUP) precondition_group(s, group_at(column, z));
}

#endif
