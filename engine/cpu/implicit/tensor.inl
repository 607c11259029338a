// tensor: the second derivative H of an implicit step's potential: tensors of particles, and diagonal blocks of nodes.

// (E81, E83) Adds the viscosity's part, the derivative of K by the rate over dt, to the packed tensors t of particles
// h, h + 1, ... of a chunk, as tensor_of sets them, before they are multiplied by V dt^2. f: F before the step.
CQ_RARE void viscous_tensor(const Matter *m, const int h, const Real f[CQ_DIM][CQ_DIM], Real t[TENSOR]) {
  const Real rate_of = r_set((real)(1 / m->model->dt));   // the elastic tensors are derivatives by dt C
  for (int column = 0; column < MATRIX; column++) {
    Real rate[CQ_DIM][CQ_DIM], out[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) {
      rate[i][j] = r_set((real)(i * CQ_DIM + j == column));
      out[i][j] = r_set((real)0);
    }
    viscous_of(m, h, f, rate, out);
    for (int row = column; row < MATRIX; row++)
      t[tensor_at(row, column)] += rate_of * out[row / CQ_DIM][row % CQ_DIM];
  }
}

// (E83) Sets s->implicit.tensor of a range's particles, V dt^2 times their second derivative at VELOCITY, and keeps
// their weights and nodes. Adds volume times stiffness to sum[CQ_SUM_STIFFNESS], for the rounding of the potential.
static void tensors(cq_scene *s, const cq_slice *in, int32_t range, double *sum) {
  const real dt = (real)s->model->dt;
  const Strides strides = strides_of(s->arrangement);
  double stiffness = 0;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    real *tensor = (real *)s->implicit.tensor + AT(c, TENSOR, 0);
    const Matter matter = matter_of(s, in, c);
    const Chunk here = {s, &matter, c};
    const int viscous = is_viscous(&matter);
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    stencils_keep(s, c, &st);
    rates_gather(s, &st, CQ_GRID_VELOCITY, &strides, c);
    LANES_EACH(h) {
      Real arm[CQ_DIM], a[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], t[TENSOR], trace = r_set((real)0);
      rates_of(&here, &st, h, arm, a);
      EACH(i) EACH(j) a[i][j] = dt * a[i][j] + (real)(i == j);
      load_matrix(chunk, F, h, def);
      tensor_of(&matter, h, a, def, t);
      if (viscous) viscous_tensor(&matter, h, def, t);
      const Real scale = dt * dt * param(&matter, CQ_PARAM_VOLUME, h);
      for (int k = 0; k < TENSOR; k++) r_store(tensor + k * CQ_CHUNK + h, scale * t[k]);
      for (int k = 0; k < MATRIX; k++) trace += scale * r_abs(t[tensor_at(k, k)]);
      stiffness += lanes_total(trace);
    }
  }
  sum[CQ_SUM_STIFFNESS] += stiffness / (MATRIX * s->model->dt * s->model->dt);
}

// ---- the diagonal ---------------------------------------------------------------------------------------------------

// Sets q to the coefficients of entry (a, b) of a node's diagonal block, which is quadratic in the node's distance r
// from the particle: scale times the sum of q[j l] r_j r_l, j >= l. tensor: of the particle, from its lane on.
CQ_INLINE void block_of(const real *tensor, const int a, const int b, const real scale, Real q[CQ_SYM]) {
  CQ_UNROLL for (int j = 0; j < CQ_DIM; j++) CQ_UNROLL for (int l = 0; l <= j; l++) {
    Real sum = r_load(tensor + tensor_at(a * CQ_DIM + j, b * CQ_DIM + l) * CQ_CHUNK);
    if (j != l) sum += r_load(tensor + tensor_at(a * CQ_DIM + l, b * CQ_DIM + j) * CQ_CHUNK);
    q[tensor_at(j, l)] = scale * sum;
  }
}

// what CQ_LANES particles contribute to the diagonal blocks of their nodes is computed from
typedef struct {
  Real q[3][CQ_SYM];         // of three entries
  Real base[CQ_DIM], arm[CQ_DIM], w[CQ_DIM][3];
  Real noise;                // rounding of what a particle gives the residual
} Blocks;

// Sets b for particles h, h + 1, ... of a chunk: place, weights, and the coefficients (block_of) of the three entries
// that part `part` (diagonal_part) of a node's diagonal block has. chunk: their state; tensor: their tensors.
CQ_INLINE void blocks_of(const cq_scene *s, const real *chunk, const real *tensor, const int h, const int part,
                         Blocks *b) {
  const real inv_dx = (real)(1 / s->model->dx);
  Real f[CQ_DIM], trace = r_set((real)0);
  place(chunk, h, inv_dx, b->base, f, b->arm);
  EACH(i) spline(f[i], b->w[i]);
  CQ_UNROLL for (int k = 0; k < MATRIX; k++) trace += r_load(tensor + tensor_at(k, k) * CQ_CHUNK + h);
  b->noise = (real)(2 / (s->model->dx * MATRIX * s->model->dt)) * r_abs(trace);
  CQ_UNROLL for (int e = 0; e < 3; e++)
    block_of(tensor + h, diagonal_entry[part][e][0], diagonal_entry[part][e][1], (real)16 * inv_dx * inv_dx, b->q[e]);
}

// Stores in the records of CQ_LANES particles, from `of` on, their part of the Hessian's diagonal blocks of three
// nodes, row k of plane i of their stencil; with each, if part (diagonal_part) is 0, its residual's rounding.
CQ_INLINE void diagonal_row(Record *of, const Blocks *b, const int i, const int k, const int part) {
  const Real r0 = b->arm[0] + (real)(i - 1), r1 = b->arm[CQ_DIM - 2] + (real)(k - 1), zero = r0 - r0;
  Real across = b->w[0][i], c[3][3];
  if (CQ_DIM == 3) across = across * b->w[CQ_DIM - 2][k];
  const Real square = across * across;
  CQ_UNROLL for (int e = 0; e < 3; e++) {
    const Real *q = b->q[e];
    c[e][2] = square * q[tensor_at(LAST, LAST)];
    c[e][1] = r0 * q[tensor_at(LAST, 0)];
    c[e][0] = r0 * r0 * q[0];
    if (CQ_DIM == 3) {
      c[e][1] += r1 * q[tensor_at(LAST, 1)];
      c[e][0] += r1 * (r1 * q[tensor_at(1, 1)] + r0 * q[tensor_at(1, 0)]);
    }
    c[e][1] = square * c[e][1];
    c[e][0] = square * c[e][0];
  }
  CQ_UNROLL for (int z = 0; z < 3; z++) {
    const Real rz = b->arm[LAST] + (real)(z - 1), w = b->w[LAST][z], weight = w * w;
    Real f[3], beside = zero;
    if (!part) beside = across * w * b->noise;
    CQ_UNROLL for (int e = 0; e < 3; e++) f[e] = weight * (c[e][0] + rz * (c[e][1] + rz * c[e][2]));
    quads_store(of, 4 * k + z, f[0], f[1], f[2], beside);
  }
}

// Scatters part `part` of the nodes' diagonal blocks of the Hessian H from the particles of a range: 0, the diagonal
// (in 2D all entries); 1, the entries off the diagonal. in: the state before the step.
CQ_INLINE void diagonal_part(cq_scene *s, const cq_slice *in, const int32_t range, const int part) {
  const Strides strides = strides_of(s->arrangement);
  Record plane[3][CQ_CHUNK] __attribute__((aligned(64)));
  Scatter to;
  memset((void *)plane, 0, sizeof plane);   // each row has a fourth node that nothing reaches
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const real *tensor = (const real *)s->implicit.tensor + AT(c, TENSOR, 0);
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    LANES_EACH(h) {
      Blocks b;
      blocks_of(s, chunk, tensor, h, part, &b);
      nodes_store(s->arrangement, node, h, b.base);
      for (int i = 0; i < 3; i++)
        for (int k = 0; k < ROWS / 3; k++) diagonal_row(plane[i] + h, &b, i, k, part);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      scatter_to(&to, &strides, node[l]);
      CQ_UNROLL for (int k = 0; k < ROWS; k++)
        to.rows[k] = row_add(to.rows[k], row_load(plane[k / (ROWS / 3)][l].quad[4 * (k % (ROWS / 3))]));
    }
  }
  scatter_end(&to, &strides);
}

// (E85) Scatters to the nodes part `part` (diagonal_part) of the diagonal blocks of the Hessian H from a range's
// particles, and with part 0 the rounding error of their forces.
static void diagonal(cq_scene *s, const cq_slice *in, int32_t range, int32_t part) {
  if (part)
    diagonal_part(s, in, range, DIAGONAL_PARTS - 1);
  else
    diagonal_part(s, in, range, 0);
}
