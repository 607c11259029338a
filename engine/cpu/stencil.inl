// stencil: the 3 or 9 rows of nodes around a particle; scatter to them and gather from them. Vector lanes compute 16
// particles field by field; for the work at nodes, each particle has a record of its numbers, in quads of four reals.

enum { ROWS = CQ_DIM == 3 ? 9 : 3 };

// the first quad of each part of a record: momentum and mass of the middle node, and their slopes along each axis;
// three weights of each axis; the terms that g2p_adj scattered; the gathered sums
enum {
  MOVE = 0, WEIGHT = 4, MOVE_ADJ = 8,
  SUM = 12, EXCHANGE = SUM + CQ_DIM + 1, RECORD_QUADS = 20,
};

typedef struct {
  real quad[RECORD_QUADS][4];
} Record;

#if CQ_LANES > 1
// indices of a shuffle that does the same in every group of four lanes
#if CQ_LANES == 16
#define GROUPS(i, j, k, l) \
  i, j, k, l, i + 4, j + 4, k + 4, l + 4, i + 8, j + 8, k + 8, l + 8, i + 12, j + 12, k + 12, l + 12
#elif CQ_LANES == 8
#define GROUPS(i, j, k, l) i, j, k, l, i + 4, j + 4, k + 4, l + 4
#else
#define GROUPS(i, j, k, l) i, j, k, l
#endif
#define B CQ_LANES   // first index of the second operand

// Transposes a 4 x 4 matrix in each group of four lanes of the vectors f[0..3], in place; its own inverse.
CQ_INLINE void groups_transpose(Real f[4]) {
  const Real s = __builtin_shufflevector(f[0], f[1], GROUPS(0, B, 1, B + 1));
  const Real t = __builtin_shufflevector(f[0], f[1], GROUPS(2, B + 2, 3, B + 3));
  const Real u = __builtin_shufflevector(f[2], f[3], GROUPS(0, B, 1, B + 1));
  const Real v = __builtin_shufflevector(f[2], f[3], GROUPS(2, B + 2, 3, B + 3));
  f[0] = __builtin_shufflevector(s, u, GROUPS(0, 1, B, B + 1));
  f[1] = __builtin_shufflevector(s, u, GROUPS(2, 3, B + 2, B + 3));
  f[2] = __builtin_shufflevector(t, v, GROUPS(0, 1, B, B + 1));
  f[3] = __builtin_shufflevector(t, v, GROUPS(2, 3, B + 2, B + 3));
}
#undef GROUPS
#undef B
#endif

// Stores sixteen fields f of CQ_LANES particles, each field a vector, as quads `quad` to quad + 3 of their records:
// records[0] is that of the first of these particles. A quad is four reals. f is overwritten.
CQ_INLINE void record_store(Record *records, const int quad, Real f[16]) {
#if CQ_LANES == 1
  for (int k = 0; k < 16; k++) records->quad[quad + k / 4][k % 4] = f[k];
#else
  CQ_UNROLL for (int s = 0; s < 4; s += QUADS) {
    CQ_UNROLL for (int k = 0; k < QUADS; k++) groups_transpose(f + 4 * (s + k));
    CQ_UNROLL for (int m = 0; m < 4; m++) {
      Real v[QUADS];
      CQ_UNROLL for (int k = 0; k < QUADS; k++) v[k] = f[4 * (s + k) + m];
      real_turn(v);
      CQ_UNROLL for (int g = 0; g < QUADS; g++) r_store(records[4 * g + m].quad[quad + s], v[g]);
    }
  }
#endif
}

// Stores four fields a, b, c, d of CQ_LANES particles as quad number `quad` (four reals) of their records: records[0]
// is that of the first of these particles.
CQ_INLINE void quads_store(Record *records, const int quad, const Real a, const Real b, const Real c, const Real d) {
#if CQ_LANES == 1
  const Real f[4] = {a, b, c, d};
  for (int k = 0; k < 4; k++) records->quad[quad][k] = f[k];
#else
  Real f[4] = {a, b, c, d};
  groups_transpose(f);
  CQ_UNROLL for (int m = 0; m < 4; m++) {
    Quad q[QUADS];
    real_split(f[m], q);
    CQ_UNROLL for (int g = 0; g < QUADS; g++) quad_store(records[4 * g + m].quad[quad], q[g]);
  }
#endif
}

// Sets out to four fields of CQ_LANES particles, from quad number `quad` (four reals) of records[0], records[1], ...:
// the inverse of quads_store.
CQ_INLINE void quads_load(const Record *records, const int quad, Real out[4]) {
#if CQ_LANES == 1
  for (int k = 0; k < 4; k++) out[k] = records->quad[quad][k];
#else
  CQ_UNROLL for (int m = 0; m < 4; m++) {
    Quad q[QUADS];
    CQ_UNROLL for (int g = 0; g < QUADS; g++) q[g] = quad_load(records[4 * g + m].quad[quad]);
    out[m] = real_join(q);
  }
  groups_transpose(out);
#endif
}

// (E3) For particles h, h + 1, ... of a chunk, in cells: sets base to the base node (lowest of the stencil), f to the
// position from it, and arm to the vector from the particle to the middle node.
CQ_INLINE void place(const real *chunk, const int h, const real inv_dx, Real base[CQ_DIM], Real f[CQ_DIM],
                     Real arm[CQ_DIM]) {
  EACH(i) {
    const Real x = inv_dx * r_load(chunk + (X + i) * CQ_CHUNK + h);
    base[i] = r_floor(x - (real)0.5);
    f[i] = x - base[i];
    arm[i] = (real)1 - f[i];
  }
}

// (E3) Stores in the records of CQ_LANES particles the B-spline weights w0, w1, w2 of each axis, from their positions f
// in the stencil, and beside them the factor that part_slope reads; 0 along the last axis, whose rows have a fourth
// node without weight. slopes: 1 stores also the slopes of the weights along the last axis, doubled as those of
// part_slope.
CQ_INLINE void weights_store(Record *records, const Real f[CQ_DIM], const int slopes) {
  const Real zero = f[0] - f[0];
  Real field[16], *slope = &field[4 * CQ_DIM];
  CQ_UNROLL for (int k = 0; k < 4; k++) slope[k] = zero;
  EACH(i) {
    spline(f[i], &field[4 * i]);
    field[4 * i + 3] = (real)2 * f[i] - (real)2;
  }
  if (slopes) spline_slope(f[LAST], slope);
  CQ_UNROLL for (int k = 0; k < 3; k++) slope[k] = slope[k] + slope[k];
  field[4 * LAST + 3] = zero;
#if CQ_DIM == 3
  record_store(records, WEIGHT, field);
#else
  CQ_UNROLL for (int k = 0; k < CQ_DIM + slopes; k++)
    quads_store(records, WEIGHT + k, field[4 * k], field[4 * k + 1], field[4 * k + 2], field[4 * k + 3]);
#endif
}

// Stores what CQ_LANES particles exchange with their nodes, momentum q, affine matrix b and mass m, in their records
// from quad number `quad` (four reals) on; scatter reads it.
CQ_INLINE void move_store(Record *records, const int quad, const Exchange *move) {
  const Real *q = move->q, mass = move->m, zero = mass - mass;
  const Real(*b)[CQ_DIM] = move->b;
#if CQ_DIM == 3
  Real field[16] = {q[0], q[1], q[2], mass, b[0][0], b[1][0], b[2][0], zero,
                    b[0][1], b[1][1], b[2][1], zero, b[0][2], b[1][2], b[2][2], zero};
  record_store(records, quad, field);
#else
  quads_store(records, quad, q[0], q[1], mass, zero);
  EACH(j) quads_store(records, quad + 1 + j, b[0][j], b[1][j], zero, zero);
#endif
}

// Sets sums from what gather has left in the records of CQ_LANES particles: weighted sums over each particle's nodes of
// their vectors (n0), of vectors times node offsets (n1), and of the last number of nodes (nm).
CQ_INLINE void sums_load(const Record *records, Sums *sums) {
  Real quad[4];
  quads_load(records, SUM, quad);
  EACH(i) sums->n0[i] = quad[i];
  sums->nm = quad[CQ_DIM];
  EACH(j) {
    quads_load(records, SUM + 1 + j, quad);
    EACH(i) sums->n1[i][j] = quad[i];
  }
}

// Sets node[h ...] to the index, in the arrangement's window of nodes, of the first node of each lane's stencil, from
// the base nodes.
CQ_INLINE void nodes_store(const cq_arrangement *a, int32_t node[CQ_CHUNK], const int h, const Real base[CQ_DIM]) {
#if CQ_LANES == 1
  int32_t n = (int32_t)s_value(base[0]) - a->lower[0];
  for (int i = 1; i < CQ_DIM; i++) n = n * a->size[i] + (int32_t)s_value(base[i]) - a->lower[i];
  node[h] = n;
#else
  typedef int32_t Ints __attribute__((vector_size(CQ_LANES * 4), may_alias, aligned(4)));
  Ints n = __builtin_convertvector(base[0], Ints) - a->lower[0];
  for (int i = 1; i < CQ_DIM; i++) n = n * a->size[i] + (__builtin_convertvector(base[i], Ints) - a->lower[i]);
  *(Ints *)(node + h) = n;
#endif
}

// reals from a row to the next one along the first axis, and in 3D along the second
typedef struct {
  int64_t x, y;
} Strides;

// Returns the distance [reals] from a node to its neighbour along each axis but the last, in grids over the window of
// an arrangement.
CQ_INLINE Strides strides_of(const cq_arrangement *a) {
#if CQ_DIM == 3
  return (Strides){(int64_t)a->size[1] * a->size[2] * 4, (int64_t)a->size[2] * 4};
#else
  return (Strides){(int64_t)a->size[1] * 4, 0};
#endif
}

// Returns the distance [reals] from the first row of a stencil to row k, 0 to ROWS - 1, the second axis fastest.
CQ_INLINE int64_t row_at(const Strides *s, const int k) {
  return CQ_DIM == 3 ? k / 3 * s->x + k % 3 * s->y : k * s->x;
}

// The offsets -1, 0, 1 (and 2, without weight) of the nodes of part number `part` of a row from the middle node, along
// the last axis.
CQ_INLINE Part part_ramp(const int part) {
  static const real ramp[4] = {(real)-1, (real)0, (real)1, (real)2};
  return part_nodes(ramp, part);
}

// Adds what one particle gives to the rows of its stencil, as E4: rows += w (q + b o), with q and b from MOVE of its
// record and the weights {axis, 4} in `weight`. The last component of q is the mass.
CQ_INLINE void scatter_by(Row rows[ROWS], const Record *record, const real (*weight)[4]) {
  const real(*move)[4] = &record->quad[MOVE];
  PARTS_REACHED(part) {
    const Part w = part_nodes(weight[LAST], part), b0 = part_comps(move[1]);
    const Part middle = part_fma(part_comps(move[1 + LAST]), part_ramp(part), part_comps(move[0]));
    const Part line[3] = {part_sub(middle, b0), middle, part_add(middle, b0)};
    CQ_UNROLL for (int i = 0; i < 3; i++) {
      const Part wx = part_scale(weight[0][i], w);
#if CQ_DIM == 3
      const Part across = part_mul(wx, line[i]), b = part_mul(wx, part_comps(move[2]));
      Part *const at[3] = {&rows[3 * i].v[part], &rows[3 * i + 1].v[part], &rows[3 * i + 2].v[part]};
      *at[0] = part_scale_add(weight[1][0], part_sub(across, b), *at[0]);
      *at[1] = part_scale_add(weight[1][1], across, *at[1]);
      *at[2] = part_scale_add(weight[1][2], part_add(across, b), *at[2]);
#else
      rows[i].v[part] = part_fma(wx, line[i], rows[i].v[part]);
#endif
    }
  }
}

// Returns the B-spline weights in a particle's record: {axis, 4}.
CQ_INLINE const real (*weights_of(const Record *record))[4] { return (const real (*)[4])&record->quad[WEIGHT]; }

// Adds the momentum and mass that one particle gives to the rows of its stencil: scatter_by with the record's own
// weights.
CQ_INLINE void scatter(Row rows[ROWS], const Record *record) {
  scatter_by(rows, record, weights_of(record));
}

// Adds the rows of a stencil to a grid, and sets them to zero. grid: address of the stencil's first node.
CQ_INLINE void rows_flush(real *grid, const Strides *s, Row rows[ROWS]) {
  CQ_UNROLL for (int k = 0; k < ROWS; k++) {
    PARTS_REACHED(part) {
      real *at = grid + row_at(s, k) + PART_REALS * part;
      part_store(at, part_add(part_load(at), rows[k].v[part]));
    }
    rows[k] = row_zero();
  }
}

// Sums over the nodes of one particle, of the four numbers v of each node, into SUM of its record: sum w v, sum w v
// o_x, in 3D sum w v o_y, sum w v o_last. grid: address of the stencil's first node; weight {axis, 4}.
CQ_INLINE void gather_by(Record *record, const real (*weight)[4], const real *grid, const Strides *strides) {
  RowSum sum_m, sum_x, sum_last;
#if CQ_DIM == 3
  RowSum sum_y;
#endif
  PARTS_EACH(part) {
    const real *at = grid + PART_REALS * part;
    const Part w = part_nodes(weight[LAST], part);
    Part sum[3];
#if CQ_DIM == 3
    Part slope_y = w;   // written at i = 0
    CQ_UNROLL for (int i = 0; i < 3; i++) {
      const Part a = part_scale(weight[1][0], part_load(at + row_at(strides, 3 * i)));
      const Part b = part_load(at + row_at(strides, 3 * i + 1));
      const Part c = part_scale(weight[1][2], part_load(at + row_at(strides, 3 * i + 2)));
      sum[i] = part_scale(weight[0][i], part_scale_add(weight[1][1], b, part_add(a, c)));
      const Part y = part_sub(c, a);
      slope_y = i ? part_scale_add(weight[0][i], y, slope_y) : part_scale(weight[0][i], y);
    }
    sum_take(&sum_y, part, part_mul(slope_y, w));
#else
    CQ_UNROLL for (int i = 0; i < 3; i++) sum[i] = part_scale(weight[0][i], part_load(at + row_at(strides, i)));
#endif
    const Part middle = part_mul(part_add(part_add(sum[0], sum[2]), sum[1]), w);
    sum_take(&sum_m, part, middle);
    sum_take(&sum_x, part, part_mul(part_sub(sum[2], sum[0]), w));
    sum_take(&sum_last, part, part_mul(middle, part_ramp(part)));
  }
#if CQ_DIM == 3
  sums_store(record->quad[SUM], &sum_m, &sum_x, &sum_y, &sum_last);
#else
  sums_store(record->quad[SUM], &sum_m, &sum_x, &sum_last, &sum_m);
#endif
}

// Sums over the nodes of one particle, into SUM of its record: gather_by with the record's own weights.
CQ_INLINE void gather(Record *record, const real *grid, const Strides *strides) {
  gather_by(record, weights_of(record), grid, strides);
}
