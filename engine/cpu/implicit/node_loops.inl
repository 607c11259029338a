// node_loops: loops over the nodes of an implicit step, block by block, in rows of four nodes, and what they share.

// all columns of a block; all rows of four nodes of a column, or of a block; at: a row's index in vectors over nodes
#define COLUMNS_EACH(s, block, column)                                                                                 \
  for (const cq_column *column = (s)->arrangement->columns + (s)->arrangement->column_block[block],                    \
                       *end_ = (s)->arrangement->columns + (s)->arrangement->column_block[(block) + 1];                \
       column < end_; column++)
#define COLUMN_ROWS(column, at) for (int64_t at = 4 * column->node; at < 4 * (column->node + column->count); at += 16)
#define ROWS_EACH(s, block, at) COLUMNS_EACH(s, block, column) COLUMN_ROWS(column, at)

// A row of four nodes with 1 in the components of each node that a velocity has, else 0.
CQ_INLINE Row velocity_mask(void) {
  const real mask[4] = {(real)1, (real)1, (real)(CQ_DIM == 3), (real)0};
  return row_comps(mask);
}

// The factor by which damping slows a velocity within the solve (E80): exp(-a dt); 1 for the midpoint rule, which damps
// half before the solve and half after it (E125).
CQ_INLINE real solve_decay(const cq_scene *s) { return cq_is_midpoint(s->model) ? (real)1 : decay_of(s); }
// The factor by which damping slows a velocity in half a step, for the midpoint rule; 1 for backward Euler.
CQ_INLINE real half_decay(const cq_scene *s) { return cq_is_midpoint(s->model) ? s_sqrt(decay_of(s)) : (real)1; }

// Minus the derivative of the logarithm of solve_decay by the damping rate [time]: dt, or 0 for the midpoint rule.
CQ_INLINE double damped_seconds(const cq_scene *s) { return cq_is_midpoint(s->model) ? 0 : s->model->dt; }

// (E82) The factor of the mass in residual and potential, exp(a dt) = 1 / solve_decay; 0 where steps have no inertia.
CQ_INLINE real inertia_of(const cq_scene *s) {
  return s->model->integrator.statics ? (real)0 : (real)1 / solve_decay(s);
}

// The factor of the mass in the second derivative: inertia_of, plus the force that holds a body at the iterate (E103).
CQ_INLINE real resistance_of(const cq_scene *s) {
  return inertia_of(s) + (real)s->implicit.hold;
}

// The masses of a row's four nodes, each in all four components of its node. momentum: their row of MOMENTUM.
CQ_INLINE Row mass_of(const Row momentum) {
  return row_comp(momentum, CQ_DIM);
}

// A row of four nodes with the velocity that gravity adds in the time of the solve, cq_solve_seconds: dt, or half of it
// by the midpoint rule.
CQ_INLINE Row fall_row(const cq_scene *s) {
  real g[4] = {(real)0, (real)0, (real)0, (real)0};
  for (int i = 0; i < CQ_DIM; i++) g[i] = (real)cq_solve_seconds(s->model) * ((const real *)s->globals)[i];
  return row_comps(g);
}

// The product of a and b, in double; over dual numbers, while their slopes (derivatives) are solved for, that of the
// slopes.
CQ_INLINE double dot_value(const cq_scene *s, const real a, const real b) {
#if defined(CQ_REAL_DUAL)
  if (s->implicit.tangent) return (double)a.slope * (double)b.slope;
#endif
  (void)s;
  return s_value(a) * s_value(b);
}

// The dot product of two rows of four nodes. Sums over nodes are in the scene's precision, that of components in
// double.
CQ_INLINE double dot_rows(const cq_scene *s, const Row a, const Row b) {
#if defined(CQ_REAL_DUAL)
  double sum = 0;
  real x[16], y[16];
  row_store(x, a);
  row_store(y, b);
  for (int k = 0; k < 16; k++) sum += dot_value(s, x[k], y[k]);
  return sum;
#else
  real total[4];
  (void)s;
  row_sum(total, row_mul(a, b));
  return (double)total[0] + (double)total[1] + (double)total[2] + (double)total[3];
#endif
}

// (E85) M^-1 times r, M the nodes' diagonal blocks of the Hessian. r: a row of four nodes; at: its index in such
// vectors.
CQ_INLINE Row conditioned(const cq_scene *s, const int64_t at, const Row r) {
  Row sum = row_zero();
  EACH(k) sum = row_fma(row_load(grid_vector(s, CQ_GRID_INVERSE + k) + at), row_comp(r, k), sum);
  return sum;
}
