// factor: copies between the solve's vectors over nodes and the Cholesky factor of H on reference grids (factor.c),
// which is in double: the matrix, projected onto what contacts leave free, and right sides.

// Sets f->held, for the nodes of a block, to their entries in the block's list of constrained nodes, 0: not in it. Adds
// to sum[CQ_SUM_CHANGED] how many nodes have other active contacts than at the last call, which make an old factor
// useless.
static void factor_mark(cq_scene *s, int32_t block, double *sum) {
  cq_factor *f = &s->implicit.factor;
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++)
      if (f->position[node] >= 0) f->held[f->position[node]] = 0;
  for (int32_t k = 0; k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    const int32_t position = f->position[n->node];
    f->held[position] = ((int64_t)block << 32) + k + 1;
    sum[CQ_SUM_CHANGED] += f->active[position] != n->active;
    f->active[position] = n->active;
  }
}

// Sets free to the directions that contacts leave free for the node at a position of the elimination order, and returns
// 1; returns 0 where no contact holds the node.
static int factor_freedom(const cq_scene *s, const int32_t position, Freedom *free) {
  const int64_t held = s->implicit.factor.held[position];
  real still[CQ_DIM] = {0};
  if (!held) return 0;
  const cq_constrained_nodes *h = &s->implicit.constrained[held >> 32];
  const ConstrainedNode *n = constrained_node(h, (int32_t)(held & 0xffffffff) - 1);
  if (!n->active) return 0;
  contacts_keep(s, h, n, free, still);
  return 1;
}

// Projects a, the block of the Hessian H between two nodes, onto their free directions: `row` of the node of its rows,
// `column` of the node of its columns; NULL: all are free.
static void factor_project(const Freedom *row, const Freedom *column, real a[CQ_DIM][CQ_DIM]) {
  real t[CQ_DIM][CQ_DIM];
  if (row) {
    EACH(i) EACH(j) {
      t[i][j] = 0;
      EACH(k) t[i][j] += row->free[i][k] * a[k][j];
    }
    EACH(i) EACH(j) a[i][j] = t[i][j];
  }
  if (!column) return;
  EACH(i) EACH(j) {
    t[i][j] = 0;
    EACH(k) t[i][j] += a[i][k] * column->free[k][j];
  }
  EACH(i) EACH(j) a[i][j] = t[i][j];
}

// Completes a, the sum of the tensors in the diagonal block of the Hessian H of the node at a position: adds inertia,
// friction, and shift times its largest entry. free: the node's free directions, NULL: all; along held directions only
// the largest entry of its diagonal stays.
static void factor_diagonal(const cq_scene *s, const int32_t position, const Freedom *free, const double shift,
                            real a[CQ_DIM][CQ_DIM]) {
  const cq_factor *f = &s->implicit.factor;
  const int64_t node = f->node[position], held = f->held[position];
  const real mass = resistance_of(s) * grid_vector(s, CQ_GRID_MOMENTUM)[4 * node + CQ_DIM];
  real largest = 0;
  EACH(i) a[i][i] += mass;
  if (held && s->model->walls_have_friction) {
    const cq_constrained_nodes *h = &s->implicit.constrained[held >> 32];
    friction_block(s, h, constrained_node(h, (int32_t)(held & 0xffffffff) - 1), a);
  }
  EACH(i) largest = (real)fmax(largest, fabs(a[i][i]));
  if (!(largest > 0)) largest = 1;   // no particle reaches it
  EACH(i) a[i][i] += (real)shift * largest + (a[i][i] == 0);
  if (!free) return;
  factor_project(free, free, a);
  EACH(i) EACH(j) a[i][j] += largest * ((real)(i == j) - free->free[i][j]);
}

// Copies the Hessian H, projected onto what contacts leave free, to the factor's matrix f->block: a worker's share of
// the positions, every shares-th from number `share` on. shift: part of each node's largest entry that its diagonal
// gets.
static void factor_take(cq_scene *s, int32_t share, int32_t shares, double shift) {
  const cq_factor *f = &s->implicit.factor;
  const int64_t nodes = s->reference.node_count;
  const int32_t offsets = cq_factor_offsets(CQ_DIM);
  for (int32_t p = share; p < f->count; p += shares) {
    const cq_body *body = &s->reference.bodies[f->body[p]];
    double *to = f->block + (int64_t)p * offsets * MATRIX;
    Freedom row, column;
    const int of_row = factor_freedom(s, p, &row);
    for (int32_t o = 0; o < offsets; o++, to += MATRIX) {
      const int64_t near = cq_factor_near(body, CQ_DIM, f->node[p], offsets - 1 + o);
      const int32_t q = near < 0 ? -1 : f->position[near];
      if (q < 0) continue;
      real a[CQ_DIM][CQ_DIM];
      const real *from = (const real *)s->implicit.block + o * MATRIX * nodes + f->node[p];
      EACH(i) EACH(j) a[i][j] = from[(i * CQ_DIM + j) * nodes];
      if (o == 0) {
        factor_diagonal(s, p, of_row ? &row : NULL, shift, a);
      } else {
        const int of_column = factor_freedom(s, q, &column);
        factor_project(of_row ? &row : NULL, of_column ? &column : NULL, a);
      }
      EACH(i) EACH(j) to[i * CQ_DIM + j] = (double)a[i][j];
    }
  }
}

// Copies REST, the residual of the linear system, of a block's nodes to f->x, as the factor's right side.
static void factor_load(cq_scene *s, int32_t block) {
  const cq_factor *f = &s->implicit.factor;
  const real *rest = grid_vector(s, CQ_GRID_REST);
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++)
      if (f->position[node] >= 0) EACH(i) f->x[(int64_t)f->position[node] * CQ_DIM + i] = (double)rest[4 * node + i];
}

// Copies the factor's solution f->x to CONDITIONED on a block of nodes, and adds REST . CONDITIONED to
// sum[CQ_SUM_SQUARE].
static void factor_store(cq_scene *s, int32_t block, double *sum) {
  const cq_factor *f = &s->implicit.factor;
  const real *rest = grid_vector(s, CQ_GRID_REST);
  real *to = grid_vector(s, CQ_GRID_CONDITIONED);
  ROWS_EACH(s, block, at) row_store(to + at, row_zero());
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++)
      if (f->position[node] >= 0) EACH(i) {
        const double x = f->x[(int64_t)f->position[node] * CQ_DIM + i];
        to[4 * node + i] = (real)x;
        sum[CQ_SUM_SQUARE] += (double)rest[4 * node + i] * x;
      }
}
