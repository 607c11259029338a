// matrix: the second derivative of a step of backward Euler in 2D as an assembled matrix over nodes, for linear systems
// that need many products. A node is coupled to the nodes within two cells of it, by blocks of 2 x 2:
//
//     . . . . .      o  a node        5 nodes in its own column and in each of the columns beside it, the sides, all of
//     . . . . .      .  nodes it is   which the matrix has. Where there are no nodes it is zero.
//     . . o . .         coupled to
//     . . . . .
//     . . . . .
//
// Four nodes that follow each other in a column are a group: the lanes of a SIMD vector. Each worker assembles the rows
// of its own nodes, from all particles that reach them, in an order that does not depend on the number of threads.
//
// In 3D a node is coupled to 125 nodes. To assemble their blocks takes as long as 60 explicit steps, and a product with
// them longer than with the tensors of particles, so that there is no matrix in 3D.

#if CQ_LANES > 1 && CQ_DIM == 2

enum {
  REACH = 5,                             // nodes of a column that a node is coupled to
  SIDES = 5,                             // columns around one and itself, in their order
  MIDDLE = SIDES / 2,
  NODES = 9,                             // of a stencil
  ACROSS = (NODES + CQ_LANES - 1) / CQ_LANES * CQ_LANES,
  GROUP = 4,
  WIDE = GROUP * CQ_DIM,                 // components of a group
  SIDE_REALS = REACH * MATRIX * GROUP,   // of a group: what couples it to one side,
  GROUP_REALS = SIDES * SIDE_REALS,      // and to all
  OWN = 0, INVERSE = WIDE * WIDE, OWN_REALS = 2 * WIDE * WIDE,   // its own block, and the inverse
};

typedef real Four __attribute__((vector_size(GROUP * CQ_REAL_BYTES), may_alias, aligned(CQ_REAL_BYTES)));

// Four reals from memory, which need not be aligned for the vector.
CQ_INLINE Four four_load(const real *p) { return *(const Four *)p; }
// Writes four reals to memory, which need not be aligned for the vector.
CQ_INLINE void four_store(real *p, const Four x) { *(Four *)p = x; }
// x in all four lanes.
CQ_INLINE Four four_set(const real x) { return x - (Four){0}; }

// The rows of the assembled matrix for a group, four nodes of a column, by its number: blocks that couple them to their
// own column and the columns beside it, GROUP_REALS numbers.
CQ_INLINE real *matrix_of(const cq_scene *s, const int64_t group) {
  return (real *)s->implicit.matrix + group * GROUP_REALS;
}
// The diagonal block of the assembled matrix for a group, four nodes of a column, by its number, and the block's
// inverse: OWN_REALS numbers.
CQ_INLINE real *own_of(const cq_scene *s, const int64_t group) {
  return (real *)s->implicit.own + group * OWN_REALS;
}

// The number, in the matrix, of the group of four nodes that has node z of a column, counted from the column's first.
CQ_INLINE int64_t group_at(const cq_column *column, const int32_t z) { return (column->record + z) / GROUP; }

// Has any of the nodes z to z + 3 of a column mass? 1 yes, 0 no.
CQ_INLINE int has_mass(const cq_scene *s, const cq_column *column, const int32_t z) {
  const real *momentum = grid_vector(s, CQ_GRID_MOMENTUM) + 4 * (column->node + z);
  for (int l = 0; l < GROUP; l++)
    if (momentum[4 * l + CQ_DIM] > (real)0) return 1;
  return 0;
}

// The distance, as a number of nodes in vectors over nodes, from a column to the column at side `side`, 0 to 4 from
// lower to higher x; 2 (MIDDLE) is the column itself.
CQ_INLINE int64_t side_at(const cq_arrangement *a, const int side) { return (int64_t)(side - MIDDLE) * a->size[1]; }

// By one worker: finds for each x the column of nodes there, and for each cell its particles, as linked lists.
// Particles are sorted by the cells of an earlier step, and listed by those they are in now.
static void index_matrix(cq_scene *s) {
  const cq_arrangement *a = s->arrangement;
  const int64_t nodes = s->implicit.places * a->size[1];
  for (int64_t k = 0; k < nodes; k++) s->implicit.cell_first[k] = -1;
  for (int32_t slot = s->chunks * CQ_CHUNK - 1; slot >= 0; slot--) {
    int32_t *first = &s->implicit.cell_first[s->implicit.node[slot]];
    s->implicit.cell_next[slot] = *first;
    *first = slot;
  }
  for (int64_t k = 0; k < s->implicit.places; k++) s->implicit.column_at[k] = -1;
  for (int32_t c = 0; c < a->column_count; c++)
    s->implicit.column_at[a->columns[c].node / a->size[1]] = c;
}

// The number of the column at side `side` (side_at) of a column; -1 where there is none.
CQ_INLINE int32_t column_beside(const cq_scene *s, const cq_column *column, const int side) {
  const int32_t x = column->x - s->arrangement->lower[0] + side - MIDDLE;
  return x < 0 || x >= s->implicit.places ? -1 : s->implicit.column_at[x];
}

// ---- the order of a sweep -------------------------------------------------------------------------------------------
// Blocks of columns are swept side by side, those with an even number before those with an odd one: all that a block
// of two planes and more is coupled to is then earlier or later than it, and that of the same kind is far away.

// The number of the block that a column, given by its number, belongs to.
CQ_INLINE int32_t block_of_column(const cq_arrangement *a, const int32_t column) {
  int32_t block = 0;
  while (column >= a->column_block[block + 1]) block++;
  return block;
}

// Returns masks of the sides (side_at) at which a column has a neighbour, by when a sweep comes to the neighbour:
// before the column, after it, or at the same time. block: the column's.
static cq_sides sides_of(const cq_scene *s, const cq_column *column, const int32_t block) {
  const cq_arrangement *a = s->arrangement;
  cq_sides sides = {0, 0, 0, 0};
  for (int side = 0; side < SIDES; side++) {
    const int32_t found = side == MIDDLE ? -1 : column_beside(s, column, side);
    if (found < 0) continue;
    const int32_t other = block_of_column(a, found);
    if (other == block ? side < MIDDLE : other % 2 < block % 2)
      sides.before |= 1u << side;
    else if (other == block || other % 2 > block % 2)
      sides.after |= 1u << side;
    else
      sides.across |= 1u << side;
  }
  return sides;
}

// Returns the masks `sides` of the column of a group (four nodes, by its number) without those sides whose nodes the
// group is not coupled to: all its blocks for them are zero.
static cq_sides sides_within(const cq_scene *s, const int64_t group, cq_sides sides) {
  const real *m = matrix_of(s, group);
  uint32_t some = 0;
  for (int side = 0; side < SIDES; side++, m += SIDE_REALS)
    for (int k = 0; k < SIDE_REALS; k++) some |= (uint32_t)(m[k] != (real)0) << side;
  return (cq_sides){sides.before & some, sides.after & some, sides.across & some, 0};
}

// ---- from tensors of particles --------------------------------------------------------------------------------------

enum { TOGETHER = 16 };      // particles of a cell, at most, that are summed up before the matrix takes them

// The particles of one cell that reach the rows of a block. sum: of one node, entry (a, b) of the blocks that couple it
// to all nodes of the stencil.
typedef struct {
  real slope[TOGETHER][CQ_DIM][ACROSS] __attribute__((aligned(64)));           // 4/dx w (o + arm) of each node
  real part[TOGETHER][MATRIX * CQ_DIM][ACROSS] __attribute__((aligned(64)));   // h times it: (a, b, l), of each node
  real sum[MATRIX][ACROSS] __attribute__((aligned(64)));
  int64_t node;              // of the cell
  int64_t lower, upper;      // rows are those of nodes from lower to upper, without it
  int count;
} CellMatrix;

// (E84) Sets slope to 4/dx w (o + arm) of each node of a particle's stencil, by which the node's velocity enters the
// rate C. w: B-spline weights along each axis; arm: the middle node from the particle [cells]; inv_dx4: 4/dx.
CQ_RARE void cell_slopes(real slope[CQ_DIM][ACROSS], const KeptWeights w, const real arm[CQ_DIM],
                           const real inv_dx4) {
  real along[CQ_DIM][3];
  EACH(i) for (int o = 0; o < 3; o++) along[i][o] = arm[i] + (real)(o - 1);
  for (int k = 0; k < NODES; k++) {
    const real weight = inv_dx4 * w[0][k / 3] * w[1][k % 3];
    slope[0][k] = weight * along[0][k / 3];
    slope[1][k] = weight * along[1][k % 3];
  }
}

// Sets m->part of the next particle in a cell: its tensor times m->slope of all nodes of its stencil. tensor: the first
// entry of its packed tensor; entries are CQ_CHUNK reals apart.
CQ_RARE void cell_parts(CellMatrix *m, const real *tensor) {
  const real(*slope)[ACROSS] = (const real(*)[ACROSS])m->slope[m->count];
  CQ_UNROLL for (int ab = 0; ab < MATRIX; ab++) EACH(l) {
    const int a = ab / CQ_DIM, b = ab % CQ_DIM;
    for (int h = 0; h < ACROSS; h += CQ_LANES) {
      Real sum = tensor[tensor_at(a * CQ_DIM, b * CQ_DIM + l) * CQ_CHUNK] * r_load(slope[0] + h);
      CQ_UNROLL for (int j = 1; j < CQ_DIM; j++)
        sum += tensor[tensor_at(a * CQ_DIM + j, b * CQ_DIM + l) * CQ_CHUNK] * r_load(slope[j] + h);
      r_store(m->part[m->count][ab * CQ_DIM + l] + h, sum);
    }
  }
}

// (E84) Sets m->sum to the blocks that couple node k of a cell's stencil to each of its nodes q: (4/dx)^2 w_k w_q h :
// (o_k + arm) (o_q + arm), summed over the cell's particles, h their tensors.
CQ_RARE void cell_sum(CellMatrix *m, const int k) {
  for (int h = 0; h < ACROSS; h += CQ_LANES) {
    Real sum[MATRIX];
    CQ_UNROLL for (int ab = 0; ab < MATRIX; ab++) sum[ab] = r_set((real)0);
    for (int p = 0; p < m->count; p++) {
      Real slope[CQ_DIM];
      EACH(l) slope[l] = r_load(m->slope[p][l] + h);
      CQ_UNROLL for (int ab = 0; ab < MATRIX; ab++) EACH(l) sum[ab] += m->part[p][ab * CQ_DIM + l][k] * slope[l];
    }
    CQ_UNROLL for (int ab = 0; ab < MATRIX; ab++) r_store(m->sum[ab] + h, sum[ab]);
  }
}

// Adds m->sum, the blocks of node k of a cell's stencil, to that node's row of the assembled matrix, from `row` on.
CQ_RARE void cell_give(const CellMatrix *m, const int k, real *row) {
  for (int q = 0; q < NODES; q++) {
    real *at = row + (q / 3 - k / 3 + 2) * SIDE_REALS + (q % 3 - k % 3 + 2) * MATRIX * GROUP;
    CQ_UNROLL for (int ab = 0; ab < MATRIX; ab++) at[ab * GROUP] += m->sum[ab][q];
  }
}

// Adds the collected particles of a cell to the matrix rows of the block's own nodes, and empties the cell.
static void cell_flush(const cq_scene *s, CellMatrix *m) {
  const cq_arrangement *a = s->arrangement;
  const int32_t size = a->size[1];
  for (int line = 0; m->count && line < 3; line++) {
    const int64_t node = m->node + line * size;
    if (node < m->lower || node >= m->upper) continue;
    const cq_column *column = &a->columns[s->implicit.column_at[node / size]];
    for (int k = 0; k < 3; k++) {
      const int32_t z = (int32_t)(node + k - column->node);
      cell_sum(m, 3 * line + k);
      cell_give(m, 3 * line + k, matrix_of(s, group_at(column, z)) + z % GROUP);
    }
  }
  m->count = 0;
}

// Adds the particle in a slot (its place in the order of particles) to the collected particles of its cell. Those of
// another cell, or of a full one, are flushed first. in: the state before the step.
static void cell_add(const cq_scene *s, CellMatrix *m, const cq_slice *in, const int32_t slot) {
  const int32_t c = slot / CQ_CHUNK, l = slot % CQ_CHUNK;
  const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
  real arm[CQ_DIM];
  EACH(i) {
    const real x = (real)(1 / s->model->dx) * chunk[(X + i) * CQ_CHUNK + l];
    arm[i] = (real)1 - (x - s_floor(x - (real)0.5));
  }
  if (m->count == TOGETHER || s->implicit.node[slot] != m->node) cell_flush(s, m);
  m->node = s->implicit.node[slot];
  cell_slopes(m->slope[m->count], ((const KeptWeights *)s->implicit.weight)[slot], arm, (real)(4 / s->model->dx));
  cell_parts(m, (const real *)s->implicit.tensor + AT(c, TENSOR, 0) + l);
  m->count++;
}

// (E84) Sets the matrix rows of the groups with mass of a block of columns, after tensors() and index_matrix(): the sum
// over all particles that reach its nodes, and inertia. in: the state before the step.
static void assemble(cq_scene *s, const cq_slice *in, int32_t block) {
  const cq_arrangement *a = s->arrangement;
  const int32_t begin = a->column_block[block], end = a->column_block[block + 1], size = a->size[1];
  if (begin == end) return;
  const int64_t stencil = side_at(a, SIDES - 1) + 3;   // nodes from its first to behind its last
  const real inertia = resistance_of(s), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  CellMatrix m;
  m.count = 0;
  memset((void *)m.slope, 0, sizeof m.slope);          // the lanes behind the last node
  m.lower = a->columns[begin].node / size * size;
  m.upper = a->columns[end - 1].node / size * size + size;
  COLUMNS_EACH(s, block, column) for (int32_t z = 0; z < column->count; z += GROUP)
    if (has_mass(s, column, z)) memset(matrix_of(s, group_at(column, z)), 0, GROUP_REALS * sizeof(real));
  for (int64_t node = m.lower > stencil ? m.lower - stencil : 0; node < m.upper; node++)
    for (int32_t slot = s->implicit.cell_first[node]; slot >= 0; slot = s->implicit.cell_next[slot])
      cell_add(s, &m, in, slot);
  cell_flush(s, &m);
  COLUMNS_EACH(s, block, column) for (int32_t z = 0; z < column->count; z++) {
    const real mass = momentum[4 * (column->node + z) + CQ_DIM];
    real *to = matrix_of(s, group_at(column, z)) + MIDDLE * SIDE_REALS + 2 * MATRIX * GROUP + z % GROUP;
    if (mass > (real)0) EACH(i) to[i * (CQ_DIM + 1) * GROUP] += inertia * mass;
  }
}

// ---- what contacts hold ---------------------------------------------------------------------------------------------

// The address of entry (i, j) of the matrix block that couples node z of a column to the node at `offset`: REACH times
// the side (side_at), plus 2, plus how far that node is from z along its column, -2 to 2.
CQ_INLINE real *entry_at(const cq_scene *s, const cq_column *column, const int32_t z, const int offset, const int i,
                         const int j) {
  return matrix_of(s, group_at(column, z)) + ((offset * CQ_DIM + i) * CQ_DIM + j) * GROUP + z % GROUP;
}

// Removes from the matrix block of node z of a column and the held node at `offset` (entry_at) the directions in which
// the latter is held. f: its free directions.
static void hold_column(const cq_scene *s, const cq_column *column, const int32_t z, const int offset,
                        const Freedom *f) {
  EACH(i) {
    real row[CQ_DIM], free[CQ_DIM];
    EACH(j) row[j] = *entry_at(s, column, z, offset, i, j);
    freedom_apply(f, row, free);
    EACH(j) *entry_at(s, column, z, offset, i, j) = free[j];
  }
}

// Completes the matrix row of a held node n, in `column`: adds friction to its diagonal block, then removes the held
// directions; along these the diagonal block has the sum of its diagonal. f: the node's free directions.
static void hold_row(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                     const cq_column *column,
                     const Freedom *f) {
  const int32_t z = (int32_t)(n->node - column->node);
  const int centre = MIDDLE * REACH + 2;
  if (s->model->walls_have_friction) {
    real block[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) block[i][j] = *entry_at(s, column, z, centre, i, j);
    friction_block(s, h, n, block);
    EACH(i) EACH(j) *entry_at(s, column, z, centre, i, j) = block[i][j];
  }
  real largest = (real)0;
  EACH(i) largest += fabs(*entry_at(s, column, z, centre, i, i));
  for (int offset = 0; offset < SIDES * REACH; offset++) EACH(j) {
    real row[CQ_DIM], free[CQ_DIM];
    EACH(i) row[i] = *entry_at(s, column, z, offset, i, j);
    freedom_apply(f, row, free);
    EACH(i) *entry_at(s, column, z, offset, i, j) = free[i];
  }
  hold_column(s, column, z, centre, f);
  EACH(i) EACH(j) *entry_at(s, column, z, centre, i, j) += largest * ((real)(i == j) - f->free[i][j]);
}

// Projects the matrix rows of a block onto what contacts leave free: rows of its own held nodes, and columns of the
// held nodes of all blocks.
static void hold_matrix(cq_scene *s, int32_t block) {
  const cq_arrangement *a = s->arrangement;
  const int32_t begin = a->column_block[block], end = a->column_block[block + 1], size = a->size[1];
  for (int32_t other = 0; other < s->ranges; other++) {
    const cq_constrained_nodes *h = &s->implicit.constrained[other];
    for (int32_t k = 0; k < h->count; k++) {
      const ConstrainedNode *n = constrained_node(h, k);
      if (!n->active && !s->model->walls_have_friction) continue;
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
          if (z < 0 || z >= column->count || !has_mass(s, column, z / GROUP * GROUP)) continue;
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

// Sets out to the inverse of a group's diagonal block a, by its Cholesky factor, and returns 1; returns 0 where a is
// not positive definite.
static int invert_group(const real a[WIDE][WIDE], real out[WIDE][WIDE]) {
  real low[WIDE][WIDE] = {{0}}, over[WIDE];
  for (int i = 0; i < WIDE; i++)
    for (int j = 0; j <= i; j++) {
      real sum = a[i][j];
      for (int k = 0; k < j; k++) sum -= low[i][k] * low[j][k];
      if (i != j) {
        low[i][j] = sum * over[j];
        continue;
      }
      if (!(sum > (real)1e-6 * a[i][i])) return 0;
      low[i][i] = s_sqrt(sum);
      over[i] = 1 / low[i][i];
    }
  // all columns of the unit at once
  for (int i = 0; i < WIDE; i++) {
    for (int c = 0; c < WIDE; c++) out[i][c] = (real)(i == c);
    for (int k = 0; k < i; k++)
      for (int c = 0; c < WIDE; c++) out[i][c] -= low[i][k] * out[k][c];
    for (int c = 0; c < WIDE; c++) out[i][c] *= over[i];
  }
  for (int i = WIDE - 1; i >= 0; i--) {
    for (int k = i + 1; k < WIDE; k++)
      for (int c = 0; c < WIDE; c++) out[i][c] -= low[k][i] * out[k][c];
    for (int c = 0; c < WIDE; c++) out[i][c] *= over[i];
  }
  return 1;
}

// Sets own_of of a group of four nodes: its diagonal block, with the x of its nodes before their y, and the inverse.
// Nodes without mass have the unit; a block that is not positive definite is replaced by the largest diagonal entry of
// each node. Returns 1 if it is replaced, else 0.
static int precondition_group(const cq_scene *s, const int64_t group) {
  const real *from = matrix_of(s, group) + MIDDLE * SIDE_REALS;
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
  return replaced;
}

// (E99) Makes the preconditioner of a block of columns: projects contacts out of the matrix, inverts the diagonal
// blocks of groups, and finds at which sides each group is coupled to other columns.
static void precondition(cq_scene *s, int32_t block) {
  hold_matrix(s, block);
  COLUMNS_EACH(s, block, column) {
    const cq_sides sides = sides_of(s, column, block);
    for (int32_t z = 0; z < column->count; z += GROUP) {
      const int64_t group = group_at(column, z);
      cq_sides *to = &s->implicit.sides[group];
      *to = (cq_sides){0, 0, 0, 0};
      if (!has_mass(s, column, z)) continue;
      *to = sides_within(s, group, sides);
      to->kind = precondition_group(s, group) ? CQ_GROUP_REPLACED : CQ_GROUP_OWN;
    }
  }
}

#endif
