// sweep: conjugate gradients on an assembled matrix, preconditioned by symmetric Gauss-Seidel over groups of nodes.
// With A = L + D + L^T + R, D the diagonal blocks of groups, L the blocks between a group and those that are swept
// earlier, and R the blocks between columns that are swept at the same time, the preconditioner is M = K D^-1 K^T,
// K = D + L. Eisenstat's trick makes product and preconditioner of an iteration out of one pass over the matrix (E99):
//
//     K^-1 A K^-T p = t + K^-1 (p - D t + R t),  K^T t = p
//
// Vectors are kept component by component, with room for the nodes that a matrix asks for beyond the window.

#if CQ_LANES > 1 && CQ_DIM == 2

// 1 for the lanes of a group whose neighbour in their own column, two below to two above, belongs to an earlier group,
// to a later one, or to their own
static const real earlier_lanes[REACH][GROUP] = {{1, 1}, {1}};
static const real later_lanes[REACH][GROUP] = {{0}, {0}, {0}, {0, 0, 0, 1}, {0, 0, 1, 1}};
static const real own_lanes[REACH][GROUP] = {{0, 0, 1, 1}, {0, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1}, {1, 1}};

// One of the vectors over nodes of the sweeps, number `which` of cq_sweep_vector, past the zeros before its first node.
CQ_INLINE real *sweep_vector(const cq_scene *s, const int which) {
  return (real *)s->implicit.sweep[which] + s->implicit.sweep_guard;
}
#define SWEEP(s, which, node, i) (sweep_vector(s, which) + (i) * (s)->implicit.sweep_stride + (node))

// all groups of a block that have mass: `node` in the window, `group` in the matrix
#define GROUPS_EACH(s, block, node, group)                                                                             \
  COLUMNS_EACH(s, block, column_)                                                                                      \
  for (int64_t node = column_->node, group = group_at(column_, 0); node < column_->node + column_->count;              \
       node += GROUP, group++)                                                                                         \
    if ((s)->implicit.sides[group].kind)

// Adds to sum, entry by entry of the blocks, the products of vector x with the matrix blocks m that couple a group
// (four nodes of a column) to one of the columns beside it. x: at the node there that is level with the group's first
// one; stride: from one component of x to the next.
CQ_INLINE void couple(const real *m, const real *x, const int64_t stride, Four sum[MATRIX]) {
  CQ_UNROLL for (int dz = 0; dz < REACH; dz++) EACH(j) {
    const Four at = four_load(x + j * stride + dz - 2);
    EACH(i) sum[i * CQ_DIM + j] += four_load(m + (dz * MATRIX + i * CQ_DIM + j) * GROUP) * at;
  }
}

// Adds to sum the products of a group's matrix blocks m with nodes x of its own column. lanes: for each neighbour, two
// below to two above, 1 for the lanes (nodes) of the group that take it. x, stride: as in couple.
CQ_INLINE void couple_lanes(const real *m, const real *x, const int64_t stride, const real lanes[REACH][GROUP],
                            Four sum[MATRIX]) {
  for (int dz = 0; dz < REACH; dz++) EACH(j) {
    const Four at = four_load(lanes[dz]) * four_load(x + j * stride + dz - 2);
    EACH(i) sum[i * CQ_DIM + j] += four_load(m + (dz * MATRIX + i * CQ_DIM + j) * GROUP) * at;
  }
}

// Adds to sum the products of a group's matrix blocks with vector `which` (cq_sweep_vector), at the columns beside its
// own that the mask `sides` has. node: index of the group's first node; group: its number.
CQ_INLINE void couple_sides(const cq_scene *s, const int64_t node, const int64_t group, const int which,
                            uint32_t sides, Four sum[MATRIX]) {
  const real *m = matrix_of(s, group), *x = sweep_vector(s, which) + node;
  for (; sides; sides &= sides - 1) {
    const int side = __builtin_ctz(sides);
    couple(m + side * SIDE_REALS, x + side_at(s->arrangement, side), s->implicit.sweep_stride, sum);
  }
}

// Adds to sum the products of a group's matrix blocks with vector `which` (cq_sweep_vector) within its own column;
// lanes: as in couple_lanes. node: index of the group's first node; group: its number.
CQ_INLINE void couple_column(const cq_scene *s, const int64_t node, const int64_t group, const int which,
                             const real lanes[REACH][GROUP], Four sum[MATRIX]) {
  couple_lanes(matrix_of(s, group) + MIDDLE * SIDE_REALS, sweep_vector(s, which) + node, s->implicit.sweep_stride,
               lanes, sum);
}

// Sets the sums for all entries (i, j) of a group's blocks to zero.
CQ_INLINE void sums_begin(Four sum[MATRIX]) { for (int k = 0; k < MATRIX; k++) sum[k] = (Four){0}; }

// Sets out to the product of a group's blocks with a vector, from sums that are kept entry by entry of the blocks.
CQ_INLINE void sums_take(const Four sum[MATRIX], Four out[CQ_DIM]) {
  EACH(i) {
    out[i] = sum[i * CQ_DIM];
    CQ_UNROLL for (int j = 1; j < CQ_DIM; j++) out[i] += sum[i * CQ_DIM + j];
  }
}

// Sets out to own x, `own` a group's diagonal block or its inverse (own_of).
CQ_INLINE void own_multiply(const real *own, const Four x[CQ_DIM], Four out[CQ_DIM]) {
  Four sum[CQ_DIM];
  EACH(i) sum[i] = (Four){0};
  CQ_UNROLL for (int j = 0; j < CQ_DIM; j++) CQ_UNROLL for (int l = 0; l < GROUP; l++)
    EACH(i) sum[i] += four_load(own + (j * GROUP + l) * WIDE + i * GROUP) * x[j][l];
  EACH(i) out[i] = sum[i];
}

// The sum of four numbers, in double.
CQ_INLINE double fours_total(const Four x) { return (double)x[0] + (double)x[1] + (double)x[2] + (double)x[3]; }

// Sets Q = K^-1 u of a group, K = D + L the lower block triangle of the matrix, when the groups swept before it have
// theirs. first 1: u is REST; 0: u is P - D T + R T. node: index of its first node; group: its number.
CQ_RARE void forward_group(const cq_scene *s, const int64_t node, const int64_t group, const int first) {
  const cq_sides *sides = &s->implicit.sides[group];
  const real *own = own_of(s, group);
  Four sum[MATRIX], before[CQ_DIM], given[CQ_DIM], out[CQ_DIM];
  sums_begin(sum);
  couple_sides(s, node, group, CQ_SWEEP_Q, sides->before, sum);
  couple_column(s, node, group, CQ_SWEEP_Q, earlier_lanes, sum);
  sums_take(sum, before);
  EACH(i) given[i] = first ? four_load(SWEEP(s, CQ_SWEEP_REST, node, i)) - before[i] : (Four){0} - before[i];
  if (!first && (sides->across || sides->kind == CQ_GROUP_REPLACED)) {
    Four across[CQ_DIM], t[CQ_DIM];
    sums_begin(sum);
    couple_sides(s, node, group, CQ_SWEEP_T, sides->across, sum);
    if (sides->kind == CQ_GROUP_REPLACED) couple_column(s, node, group, CQ_SWEEP_T, own_lanes, sum);
    sums_take(sum, across);
    EACH(i) given[i] += across[i];
    if (sides->kind == CQ_GROUP_REPLACED) {
      EACH(i) t[i] = four_load(SWEEP(s, CQ_SWEEP_T, node, i));
      own_multiply(own + OWN, t, across);
      EACH(i) given[i] -= across[i];
    }
  }
  own_multiply(own + INVERSE, given, out);
  EACH(i) {
    if (!first) out[i] += four_load(SWEEP(s, CQ_SWEEP_SOLVED, node, i)) - four_load(SWEEP(s, CQ_SWEEP_T, node, i));
    four_store(SWEEP(s, CQ_SWEEP_Q, node, i), out[i]);
  }
}

// Sets T = K^-T P of a group, K = D + L the lower block triangle of the matrix, when the groups swept after it have
// theirs. SOLVED = D^-1 P is set before. node: index of its first node; group: its number.
CQ_INLINE void backward_group(const cq_scene *s, const int64_t node, const int64_t group) {
  Four sum[MATRIX], after[CQ_DIM], out[CQ_DIM];
  sums_begin(sum);
  couple_sides(s, node, group, CQ_SWEEP_T, s->implicit.sides[group].after, sum);
  couple_column(s, node, group, CQ_SWEEP_T, later_lanes, sum);
  sums_take(sum, after);
  own_multiply(own_of(s, group) + INVERSE, after, out);
  EACH(i) four_store(SWEEP(s, CQ_SWEEP_T, node, i), four_load(SWEEP(s, CQ_SWEEP_SOLVED, node, i)) - out[i]);
}

// Sets REST of a group to `rest`, K^-1 r of the residual r, and CONDITIONED = D REST (K = D + L, the lower block
// triangle). Returns their product, r . M^-1 r, M = K D^-1 K^T the preconditioner.
CQ_INLINE double condition_group(const cq_scene *s, const int64_t node, const int64_t group,
                                 const Four rest[CQ_DIM]) {
  Four out[CQ_DIM];
  double square = 0;
  own_multiply(own_of(s, group) + OWN, rest, out);
  EACH(i) {
    four_store(SWEEP(s, CQ_SWEEP_REST, node, i), rest[i]);
    four_store(SWEEP(s, CQ_SWEEP_CONDITIONED, node, i), out[i]);
    square += fours_total(rest[i] * out[i]);
  }
  return square;
}

// Begins the sweeps on a block: copies the solve's residual REST to the sweeps' REST; STEP, P and SOLVED = 0.
static void sweep_load(cq_scene *s, int32_t block) {
  const real *from = grid_vector(s, CQ_GRID_REST);
  GROUPS_EACH(s, block, node, group) EACH(i) {
    for (int l = 0; l < GROUP; l++) SWEEP(s, CQ_SWEEP_REST, node, i)[l] = from[4 * (node + l) + i];
    four_store(SWEEP(s, CQ_SWEEP_STEP, node, i), (Four){0});
    four_store(SWEEP(s, CQ_SWEEP_SOLVED, node, i), (Four){0});
    four_store(SWEEP(s, CQ_SWEEP_P, node, i), (Four){0});
  }
}

// Sets Q = K^-1 REST on a block, K = D + L the lower block triangle of the matrix: the first half of M^-1.
static void sweep_first(cq_scene *s, int32_t block) {
  GROUPS_EACH(s, block, node, group) forward_group(s, node, group, 1);
}

// Sets REST = Q, which is K^-1 r of the residual r, and CONDITIONED = D REST on a block, D the matrix's diagonal
// blocks; adds r . M^-1 r to sum[CQ_SUM_SQUARE].
static void sweep_begin(cq_scene *s, int32_t block, double *sum) {
  GROUPS_EACH(s, block, node, group) {
    Four rest[CQ_DIM];
    EACH(i) rest[i] = four_load(SWEEP(s, CQ_SWEEP_Q, node, i));
    sum[CQ_SUM_SQUARE] += condition_group(s, node, group, rest);
  }
}

// The next direction of conjugate gradients on a block: P = CONDITIONED + beta P, SOLVED = REST + beta SOLVED, which is
// D^-1 P, and T = K^-T P, the direction over nodes.
static void sweep_turn(cq_scene *s, int32_t block, double beta) {
  const cq_arrangement *a = s->arrangement;
  const Four b = four_set((real)beta);
  for (int32_t c = a->column_block[block + 1]; c-- > a->column_block[block];) {
    const cq_column *column = &a->columns[c];
    for (int32_t z = column->count - GROUP; z >= 0; z -= GROUP) {
      const int64_t node = column->node + z, group = group_at(column, z);
      if (!s->implicit.sides[group].kind) continue;
      EACH(i) {
        real *p = SWEEP(s, CQ_SWEEP_P, node, i), *solved = SWEEP(s, CQ_SWEEP_SOLVED, node, i);
        four_store(p, four_load(SWEEP(s, CQ_SWEEP_CONDITIONED, node, i)) + b * four_load(p));
        four_store(solved, four_load(SWEEP(s, CQ_SWEEP_REST, node, i)) + b * four_load(solved));
      }
      backward_group(s, node, group);
    }
  }
}

// Sets Q = K^-1 (P - D T + R T) on a block, so that T + Q = K^-1 A K^-T P, A the matrix (E99); adds P . (T + Q), the
// curvature along P, to sum[CQ_SUM_DOT].
static void sweep_product(cq_scene *s, int32_t block, double *sum) {
  GROUPS_EACH(s, block, node, group) {
    forward_group(s, node, group, 0);
    EACH(i)
      sum[CQ_SUM_DOT] += fours_total(four_load(SWEEP(s, CQ_SWEEP_P, node, i)) *
                                     (four_load(SWEEP(s, CQ_SWEEP_T, node, i)) +
                                      four_load(SWEEP(s, CQ_SWEEP_Q, node, i))));
  }
}
// Moves along the direction T on a block: STEP += alpha T, REST -= alpha (T + Q), CONDITIONED = D REST; adds r . M^-1 r
// of the new residual r to sum[CQ_SUM_SQUARE].
static void sweep_advance(cq_scene *s, int32_t block, double alpha, double *sum) {
  const Four forward = four_set((real)alpha);
  GROUPS_EACH(s, block, node, group) {
    Four rest[CQ_DIM];
    EACH(i) {
      const Four t = four_load(SWEEP(s, CQ_SWEEP_T, node, i)), q = four_load(SWEEP(s, CQ_SWEEP_Q, node, i));
      real *step = SWEEP(s, CQ_SWEEP_STEP, node, i);
      four_store(step, four_load(step) + forward * t);
      rest[i] = four_load(SWEEP(s, CQ_SWEEP_REST, node, i)) - forward * (t + q);
    }
    sum[CQ_SUM_SQUARE] += condition_group(s, node, group, rest);
  }
}

// Adds the solution of the sweeps on a block to STEP, the solve's vector over nodes.
static void sweep_end(cq_scene *s, int32_t block) {
  real *to = grid_vector(s, CQ_GRID_STEP);
  GROUPS_EACH(s, block, node, group)
    for (int l = 0; l < GROUP; l++) EACH(i) to[4 * (node + l) + i] += SWEEP(s, CQ_SWEEP_STEP, node, i)[l];
}

#endif
