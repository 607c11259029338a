// nodes: the loops over nodes of an implicit step: residual, contacts, linear algebra. Each works on one block of
// columns, and adds to its sums, `sum` {CQ_SUM_COUNT}; end_sums adds those of all blocks in order.

// ---- forward --------------------------------------------------------------------------------------------------------

// Sets MOMENTUM of a block's nodes, momentum and mass, to the sums of the ranges' slabs (scatter buffers); clears these
// on the spatial grid.
static void take_momentum(cq_scene *s, const int32_t block) {
  real *momentum = grid_vector(s, CQ_GRID_MOMENTUM), *slab[CQ_RANGES_MAX];
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      const Row given = given_take(s, &slabs, column, at, 1);
      row_store(momentum + at, cq_is_reference(s->model) ? reference_momentum(s, at, given) : given);
    }
  }
}

// Makes the velocities in vector `which` of a block of nodes satisfy the active contacts and, unless slopes (derivative
// parts of dual numbers) are solved for, stops them at other walls, which become `touching`.
static void stop_all(cq_scene *s, const int32_t block, const int which) {
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  real *v = grid_vector(s, which);
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    Freedom f;
    if (s->implicit.tangent)
      contacts_keep(s, h, n, &f, v + 4 * n->node);   // what holds is settled
    else
      contacts_stop(s, h, n, v + 4 * n->node);
  }
}

// Adds m (dt^2 v^2 - dx^2) of a block's nodes with velocities VELOCITY to sum[CQ_SUM_FAR]: above 0, the mass moves by
// more than a cell in the mean square. Single light nodes may go far.
static void measure_way(cq_scene *s, const int32_t block, double *sum) {
  const real *v = grid_vector(s, CQ_GRID_VELOCITY), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  const double dt = s->model->dt, cell = s->model->dx;
  ROWS_EACH(s, block, at)
    for (int64_t node = at; node < at + 16; node += 4) {
      double square = 0;
      EACH(i) square += s_value(v[node + i]) * s_value(v[node + i]);
      sum[CQ_SUM_FAR] += s_value(momentum[node + CQ_DIM]) * (dt * dt * square - cell * cell);
    }
}

// Takes MOMENTUM of a block's nodes from the slabs, sets VELOCITY to where Newton's method begins, free flight (rest
// without inertia) stopped by walls, and lists the nodes that walls may hold; contacts that cannot let go are active.
// Adds to sum[CQ_SUM_FAR] as measure_way does.
static void start(cq_scene *s, int32_t block, double *sum) {
  take_momentum(s, block);
  const real *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  real *velocity = grid_vector(s, CQ_GRID_VELOCITY);
  const FreeMotion motion = free_motion(s);
  const int statics = s->model->integrator.statics;
  ROWS_EACH(s, block, at) {
    const Row p = row_load(momentum + at);
    row_store(velocity + at, statics ? row_zero() : free_velocities(&motion, p, inverse_mass(p)));
  }
  find_constrained(s, block);
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    for (int q = 0; q < n->count; q++)
      if (!may_let_go(s, node_contact(h, n, q))) n->active |= (uint64_t)1 << q;
  }
  stop_all(s, block, CQ_GRID_VELOCITY);
  measure_way(s, block, sum);
  // what rests on a wall from the start does not move towards it, and is held if it presses
  for (int32_t k = 0; statics && k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    for (int q = 0; q < n->count; q++)
      if (may_let_go(s, node_contact(h, n, q)) && !node_contact(h, n, q)->lands) n->touching |= (uint64_t)1 << q;
  }
}

// (E82) Sets RESIDUAL_TRIAL of a block's nodes to the residual, without friction, at the velocities in vector `which`,
// with the stress in the slabs (scatter buffers), which it clears on the spatial grid, and the impulses of cables in
// PULL. Adds inertia, given forces and friction to the potential, sum[CQ_SUM_ENERGY].
static void residual(cq_scene *s, int32_t block, int32_t which, double *sum) {
  const Row mask = velocity_mask(), fall = fall_row(s);
  const real inertia = inertia_of(s);
  const real *v = grid_vector(s, which), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  real *to = grid_vector(s, CQ_GRID_RESIDUAL_TRIAL), *slab[CQ_RANGES_MAX];
  const int pulls = cq_cables_follow(s->model);
  double energy = 0;
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      const Row p = row_load(momentum + at), mass = mass_of(p), u = row_load(v + at);
      const Row given = row_mul(row_fma(mass, fall, p), mask), moving = row_mul(row_scale(inertia, mass), u);
      const Row stress = given_take(s, &slabs, column, at, 1);
      const Row rest = row_sub(row_sub(moving, given), stress);
      row_store(to + at, row_mul(pulls ? row_sub(rest, row_load(grid_vector(s, CQ_GRID_PULL) + at)) : rest, mask));
  #if !defined(CQ_REAL_DUAL)
      energy += dot_rows(s, row_sub(row_scale((real)0.5, moving), given), u);
  #else
      real x[16], y[16];
      row_store(x, row_sub(row_scale((real)0.5, moving), given));
      row_store(y, u);
      for (int k = 0; k < 16; k++) energy += s_value(x[k]) * s_value(y[k]);
  #endif
    }
  }
  sum[CQ_SUM_ENERGY] += energy;
  friction_energy(s, block, which, sum);
}

// Sets a part of the nodes' diagonal blocks of the Hessian H on a block of columns to the sums of the ranges' slabs
// (scatter buffers), which it clears on the spatial grid. part: 0, the diagonal, in 2D all entries (CQ_GRID_DIAGONAL);
// 1, in 3D, the entries off the diagonal (CQ_GRID_CROSS).
static void gather_diagonal(cq_scene *s, int32_t block, int32_t part) {
  real *to = grid_vector(s, part ? CQ_GRID_CROSS : CQ_GRID_DIAGONAL), *slab[CQ_RANGES_MAX];
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      row_store(to + at, given_take(s, &slabs, column, at, 2));
    }
  }
}

// Sets out to the inverse of a symmetric matrix a, and returns 1. Returns 0, and leaves out as it is, where a is not
// positive definite, or nearly singular. It inverts a divided by its largest diagonal entry, because the determinant of
// masses in small units may underflow.
static int invert_block(const real a[CQ_DIM][CQ_DIM], real out[CQ_DIM][CQ_DIM]) {
  real m[CQ_DIM][CQ_DIM], largest = (real)0;
  EACH(i) if (a[i][i] > largest) largest = a[i][i];
  if (!(largest > (real)0)) return 0;
  EACH(i) EACH(j) m[i][j] = a[i][j] / largest;
#if CQ_DIM == 2
  const real det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
  if (!(m[0][0] > (real)0) || !(det > (real)1e-6 * m[0][0] * m[1][1])) return 0;
  const real scale = (real)1 / (det * largest);
  out[0][0] = scale * m[1][1];
  out[1][1] = scale * m[0][0];
  out[0][1] = out[1][0] = (real)0 - scale * m[0][1];
#else
  real c[3][3];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const int p = (i + 1) % 3, q = (i + 2) % 3, r = (j + 1) % 3, t = (j + 2) % 3;
      c[i][j] = m[p][r] * m[q][t] - m[p][t] * m[q][r];
    }
  const real det = m[0][0] * c[0][0] + m[0][1] * c[0][1] + m[0][2] * c[0][2];
  if (!(m[0][0] > (real)0) || !(c[2][2] > (real)0) || !(det > (real)1e-6 * m[0][0] * m[1][1] * m[2][2])) return 0;
  const real scale = (real)1 / (det * largest);
  EACH(i) EACH(j) out[i][j] = scale * c[i][j];
#endif
  return 1;
}

// (E85) Sets out to a node's block of M^-1: the inverse of `block`, its diagonal block of the Hessian, in the free
// directions f (NULL: all), 0 along the others. A block that is not positive definite is replaced by its largest
// diagonal entry.
static void invert_node(real block[CQ_DIM][CQ_DIM], const Freedom *f, real out[CQ_DIM][CQ_DIM]) {
  real half[CQ_DIM][CQ_DIM], within[CQ_DIM][CQ_DIM], largest = (real)0;
  EACH(i) {
    const real size = block[i][i] > (real)0 ? block[i][i] : (real)0 - block[i][i];
    if (size > largest) largest = size;
  }
  EACH(i) EACH(j) out[i][j] = (real)0;
  if (!(largest > (real)0)) return;
  if (f) {
    EACH(i) freedom_apply(f, block[i], half[i]);   // rows: B P
    EACH(i) EACH(j) {
      within[i][j] = largest * ((real)(i == j) - f->free[i][j]);
      EACH(k) within[i][j] = within[i][j] + f->free[i][k] * half[k][j];
    }
  } else {
    EACH(i) EACH(j) within[i][j] = block[i][j];
  }
  real inverse[CQ_DIM][CQ_DIM];
  if (!invert_block(within, inverse)) EACH(i) EACH(j) inverse[i][j] = i == j ? (real)1 / largest : (real)0;
  if (!f) {
    EACH(i) EACH(j) out[i][j] = inverse[i][j];
    return;
  }
  EACH(i) freedom_apply(f, inverse[i], half[i]);
  EACH(i) EACH(j) EACH(k) out[i][j] = out[i][j] + f->free[i][k] * half[k][j];
}

// Stores a node's block of M^-1, out, column by column, in the vectors from CQ_GRID_INVERSE on.
CQ_INLINE void write_inverse(cq_scene *s, const int64_t node, const real out[CQ_DIM][CQ_DIM]) {
  EACH(j) {
    real *column = grid_vector(s, CQ_GRID_INVERSE + j) + 4 * node;
    for (int i = 0; i < 4; i++) column[i] = i < CQ_DIM ? out[i][j] : (real)0;
  }
}

// Sets block to the diagonal block of the Hessian H of a node: the sums that gather_diagonal has made, and inertia.
CQ_INLINE void read_block(const cq_scene *s, const int64_t node, real block[CQ_DIM][CQ_DIM]) {
  const real *first = grid_vector(s, CQ_GRID_DIAGONAL) + 4 * node;
  const real mass = resistance_of(s) * grid_vector(s, CQ_GRID_MOMENTUM)[4 * node + CQ_DIM];
#if CQ_DIM == 2
  block[0][1] = block[1][0] = first[2];
#else
  const real *second = grid_vector(s, CQ_GRID_CROSS) + 4 * node;
  block[0][1] = block[1][0] = second[0];
  block[0][2] = block[2][0] = second[1];
  block[1][2] = block[2][1] = second[2];
#endif
  EACH(i) block[i][i] = first[i] + mass;
}

// (E85) Sets the preconditioner M^-1 of the nodes of a block of columns: for each node the inverse of its diagonal
// block {dim, dim} of the Hessian H in the directions that contacts leave free; 0 where a node has no mass.
static void invert_node_blocks(cq_scene *s, int32_t block) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  int32_t k = 0;
  ROWS_EACH(s, block, at)
    for (int64_t node = at / 4; node < at / 4 + 4; node++) {
      real b[CQ_DIM][CQ_DIM], out[CQ_DIM][CQ_DIM] = {{(real)0}};
      const int is_constrained = k < h->count && constrained_node(h, k)->node == node;
      Freedom f;
      real v[CQ_DIM];
      if (is_constrained) {
        EACH(i) v[i] = (real)0;
        contacts_keep(s, h, constrained_node(h, k), &f, v);
      }
      if (momentum[4 * node + CQ_DIM] > (real)0) {
        read_block(s, node, b);
        if (is_constrained && s->model->walls_have_friction) friction_block(s, h, constrained_node(h, k), b);
        invert_node(b, is_constrained ? &f : NULL, out);
      }
      write_inverse(s, node, out);
      k += is_constrained;
    }
}

// (E86) Updates which contacts of a block are active. A contact that has stopped the last trial becomes active if the
// residual presses on it; with release 1, active contacts from which the residual pulls away become inactive. Adds to
// sum[CQ_SUM_CHANGED] the number of nodes whose VELOCITY this has changed.
static void activate(cq_scene *s, int32_t block, int32_t release, double *sum) {
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  real *velocity = grid_vector(s, CQ_GRID_VELOCITY);
  const real *r = grid_vector(s, CQ_GRID_RESIDUAL);
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    const uint64_t before = n->active;
    real *v = velocity + 4 * n->node, was[CQ_DIM], at[CQ_DIM];
    friction_node(s, h, n, v, at);
    EACH(i) at[i] = at[i] + r[4 * n->node + i];
    for (int q = 0; q < n->count; q++) {
      const NodeContact *c = node_contact(h, n, q);
      const uint64_t bit = (uint64_t)1 << q;
      if (!may_let_go(s, c)) continue;
      real force[CQ_DIM], press = (real)0;
      if (before & bit) {
        contact_share(s, h, n, q, at, force);
        EACH(i) press = press + force[i] * c->normal[i];
        if (release && press < (real)0) n->active &= ~bit;
      } else if (n->touching & bit) {
        real still[CQ_DIM] = {(real)0}, along[CQ_DIM];
        Freedom f;
        contacts_keep(s, h, n, &f, still);   // the part of the force that active contacts do not bear
        if (!(freedom_along(&f, c->normal, along) > (real)0)) continue;
        EACH(i) press = press + at[i] * along[i];
        if (press > (real)0) n->active |= bit;
      }
    }
    if (n->active == before) continue;
    double moved = 0;
    EACH(i) was[i] = v[i];
    contacts_stop(s, h, n, v);   // a wall that holds all components may push the node into another one
    EACH(i) moved += fabs(s_value(v[i] - was[i])) - 1e-6 * fabs(s_value(was[i]));
    if (moved > 0) sum[CQ_SUM_CHANGED]++;
  }
}

// (E87) The size of the terms of which the residual of a node is a difference, inertia and forces. A contact of the
// node pulls if it does so by more than the tolerance times this.
static double node_scale(const cq_scene *s, const int64_t node) {
  const real *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * node, *p = grid_vector(s, CQ_GRID_MOMENTUM) + 4 * node;
  const real *r = grid_vector(s, CQ_GRID_RESIDUAL) + 4 * node, *gravity = (const real *)s->globals;
  double moves = 0, inner = 0, given = 0;
  EACH(i) {
    const double brought = s_value(p[i]) + s_value(p[CQ_DIM]) * cq_solve_seconds(s->model) * s_value(gravity[i]);
    const double moving = s_value(inertia_of(s)) * s_value(p[CQ_DIM]) * s_value(v[i]) - brought;
    moves += moving * moving;
    inner += (moving - s_value(r[i])) * (moving - s_value(r[i]));
    given += brought * brought;
  }
  return sqrt(moves) + sqrt(inner) + 0.01 * sqrt(given);
}

// (E106) Counts active contacts of a block that pull by more than the tolerance, in sum[CQ_SUM_PULLING], or in
// sum[CQ_SUM_UNSETTLED] if they were released RELEASED times at converged iterates; of the former it releases those
// that `which` asks for (CQ_RELEASE_FIRST ends there). The latter stay active: neither state of theirs fits the
// residual.
static void release(cq_scene *s, int32_t block, cq_release which, double *sum) {
  enum { RELEASED = 4 };
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *r = grid_vector(s, CQ_GRID_RESIDUAL);
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    const uint64_t before = n->active;
    real at[CQ_DIM];
    friction_node(s, h, n, grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node, at);
    EACH(i) at[i] = at[i] + r[4 * n->node + i];
    for (int q = 0; q < n->count; q++) {
      NodeContact *c = node_contact(h, n, q);
      if (!(before >> q & 1) || !may_let_go(s, c)) continue;
      real force[CQ_DIM];
      double press = 0;
      contact_share(s, h, n, q, at, force);
      EACH(i) press += s_value(force[i]) * s_value(c->normal[i]);
      if (!(press < -s->model->integrator.tolerance * node_scale(s, n->node))) continue;
      sum[c->released < RELEASED ? CQ_SUM_PULLING : CQ_SUM_UNSETTLED]++;
      if (which == CQ_RELEASE_NONE || c->released >= RELEASED) continue;
      n->active &= ~((uint64_t)1 << q);
      c->released++;
      if (which == CQ_RELEASE_FIRST) return;
    }
  }
}

// Keeps VELOCITY and the active contacts of a block (back 0), or returns to the kept ones (back 1).
static void keep(cq_scene *s, int32_t block, int32_t back) {
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  real *velocity = grid_vector(s, CQ_GRID_VELOCITY), *kept = grid_vector(s, CQ_GRID_KEPT);
  ROWS_EACH(s, block, at) row_store((back ? velocity : kept) + at, row_load((back ? kept : velocity) + at));
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    if (back)
      n->active = n->kept;
    else
      n->kept = n->active;
  }
}

// Removes from vector `which` of a block's nodes the directions that active contacts hold. Left in, constraint forces
// would drown the free directions in their rounding.
static void project(cq_scene *s, const int32_t block, const int which) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  real *x = grid_vector(s, which);
  for (int32_t k = 0; k < h->count; k++) {
    const ConstrainedNode *n = constrained_node(h, k);
    real *at = x + 4 * n->node, v[CQ_DIM] = {(real)0}, part[CQ_DIM];
    if (!n->active) continue;
    Freedom f;
    contacts_keep(s, h, n, &f, v);
    freedom_apply(&f, at, part);
    EACH(i) at[i] = part[i];
  }
}

// (E87) Adds to sum, for a block at VELOCITY, the squared norms by M^-1 that decide about convergence: CQ_SUM_RESIDUAL,
// INERTIA, INNER (forces), MOVED (momentum and given impulses), and NOISE (rounding of the residual). Sets REST to the
// residual, with friction, in the directions that contacts leave free.
static void norms(cq_scene *s, int32_t block, double *sum) {
  const Row mask = velocity_mask(), fall = fall_row(s);
  const real inertia = inertia_of(s);
  const real *v = grid_vector(s, CQ_GRID_VELOCITY), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  const real *residual_at = grid_vector(s, CQ_GRID_RESIDUAL), *noise = grid_vector(s, CQ_GRID_DIAGONAL);
  real *rest = grid_vector(s, CQ_GRID_REST);
  const int pulls = cq_cables_follow(s->model);
  ROWS_EACH(s, block, at) row_store(rest + at, row_load(residual_at + at));
  friction_residual(s, block, CQ_GRID_REST, CQ_GRID_VELOCITY);
  project(s, block, CQ_GRID_REST);
  ROWS_EACH(s, block, at) {
    const Row p = row_load(momentum + at), mass = mass_of(p);
    const Row r = row_load(residual_at + at), free = row_load(rest + at);
    const Row held = row_fma(mass, fall, p);
    const Row given = row_mul(pulls ? row_add(held, row_load(grid_vector(s, CQ_GRID_PULL) + at)) : held, mask);
    const Row moving = row_sub(row_mul(row_scale(inertia, mass), row_mul(row_load(v + at), mask)), given);
    const Row inner = row_sub(moving, r);
    sum[CQ_SUM_RESIDUAL] += dot_rows(s, free, conditioned(s, at, free));
    sum[CQ_SUM_INERTIA] += dot_rows(s, moving, conditioned(s, at, moving));
    sum[CQ_SUM_INNER] += dot_rows(s, inner, conditioned(s, at, inner));
    sum[CQ_SUM_MOVED] += dot_rows(s, given, conditioned(s, at, given));
    for (int64_t node = at; node < at + 16; node += 4) {
      const double n = s_value(noise[node + 3]);
      EACH(j) sum[CQ_SUM_NOISE] += n * n * s_value(grid_vector(s, CQ_GRID_INVERSE + j)[node + j]);
    }
  }
}

// ---- conjugate gradients --------------------------------------------------------------------------------------------

// (E84) Sets PRODUCT = H times vector `from` on a block's nodes, H the Hessian: the tensors' part, from the slabs,
// which it clears on the spatial grid, inertia and cables. Adds from . PRODUCT to sum[CQ_SUM_DOT]. of: as in
// cq_linear_multiply.
static void multiply(cq_scene *s, int32_t block, int32_t from, cq_grid_product of, double *sum) {
  const Row mask = velocity_mask();
  const real inertia = resistance_of(s);
  const real *x = grid_vector(s, from), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  real *to = grid_vector(s, CQ_GRID_PRODUCT), *slab[CQ_RANGES_MAX];
  const int pulls = cq_cables_follow(s->model);
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      const Row mass = mass_of(row_load(momentum + at)), p = row_load(x + at);
      const Row given = row_fma(row_scale(inertia, mass), p, given_take(s, &slabs, column, at, 1));
      const Row q = row_mul(pulls ? row_add(given, row_load(grid_vector(s, CQ_GRID_PULL) + at)) : given, mask);
      row_store(to + at, q);
      sum[CQ_SUM_DOT] += dot_rows(s, p, q);
      if (of == CQ_PRODUCT_FREE_SLOPE)
        sum[CQ_SUM_SLOPE] += dot_rows(s, p, row_load(grid_vector(s, CQ_GRID_REST) + at));
    }
  }
  if (of == CQ_PRODUCT_ALL) return;
  friction_multiply(s, block, from, sum);
  project(s, block, CQ_GRID_PRODUCT);
}

// Over dual numbers, while their slopes (derivatives) are solved for: the row r with its values set to 0. Else r.
CQ_INLINE Row slopes_of(const cq_scene *s, Row r) {
#if defined(CQ_REAL_DUAL)
  real x[16];
  row_store(x, r);
  for (int k = 0; k < 16 && s->implicit.tangent; k++) x[k].value = 0;
  return row_load(x);
#else
  (void)s;
  return r;
#endif
}

// Begins conjugate gradients again on a block, from REST, the residual of the linear system: DIRECTION = M^-1 REST;
// adds REST . DIRECTION to sum[CQ_SUM_SQUARE].
static void cg_again(cq_scene *s, int32_t block, double *sum) {
  const real *rest = grid_vector(s, CQ_GRID_REST);
  ROWS_EACH(s, block, at) {
    const Row r = row_load(rest + at), z = conditioned(s, at, r);
    row_store(grid_vector(s, CQ_GRID_DIRECTION) + at, z);
    sum[CQ_SUM_SQUARE] += dot_rows(s, r, z);
  }
}

// Begins conjugate gradients on a block: STEP = 0, the residual REST = sign RESIDUAL (with friction where sign is -1)
// in the free directions, DIRECTION = M^-1 REST; adds REST . DIRECTION to sum[CQ_SUM_SQUARE].
static void cg_start(cq_scene *s, int32_t block, double sign, double *sum) {
  const real *residual_at = grid_vector(s, CQ_GRID_RESIDUAL);
  real *x = grid_vector(s, CQ_GRID_STEP), *rest = grid_vector(s, CQ_GRID_REST);
  ROWS_EACH(s, block, at) {
    row_store(x + at, row_zero());
    row_store(rest + at, row_load(residual_at + at));
  }
  if (sign < 0) friction_residual(s, block, CQ_GRID_REST, CQ_GRID_VELOCITY);
  project(s, block, CQ_GRID_REST);
  ROWS_EACH(s, block, at) row_store(rest + at, slopes_of(s, row_scale((real)sign, row_load(rest + at))));
  cg_again(s, block, sum);
}

// An iteration of conjugate gradients on a block: STEP += alpha DIRECTION, the residual REST -= alpha PRODUCT,
// CONDITIONED = M^-1 REST; adds REST . CONDITIONED to sum[CQ_SUM_SQUARE].
static void cg_advance(cq_scene *s, int32_t block, double alpha, double *sum) {
  real *x = grid_vector(s, CQ_GRID_STEP), *rest = grid_vector(s, CQ_GRID_REST);
  real *z = grid_vector(s, CQ_GRID_CONDITIONED);
  const real *p = grid_vector(s, CQ_GRID_DIRECTION), *q = grid_vector(s, CQ_GRID_PRODUCT);
  const real forward = (real)alpha, back = (real)-alpha;
  ROWS_EACH(s, block, at) {
    row_store(x + at, row_scale_add(forward, row_load(p + at), row_load(x + at)));
    const Row r = row_scale_add(back, row_load(q + at), row_load(rest + at)), c = conditioned(s, at, r);
    row_store(rest + at, r);
    row_store(z + at, c);
    sum[CQ_SUM_SQUARE] += dot_rows(s, r, c);
  }
}

// The next conjugate direction on a block: DIRECTION = CONDITIONED (preconditioned residual) + beta DIRECTION.
static void cg_turn(cq_scene *s, int32_t block, double beta) {
  const real *z = grid_vector(s, CQ_GRID_CONDITIONED);
  real *p = grid_vector(s, CQ_GRID_DIRECTION);
  ROWS_EACH(s, block, at)
    row_store(p + at, row_scale_add((real)beta, row_load(p + at), row_load(z + at)));
}

// Sets STEP = DIRECTION on a block: for steepest descent, and where a solve ends with its first direction, because H is
// not positive along it or it is not finite.
static void take_direction(cq_scene *s, int32_t block) {
  ROWS_EACH(s, block, at)
    row_store(grid_vector(s, CQ_GRID_STEP) + at, row_load(grid_vector(s, CQ_GRID_DIRECTION) + at));
}

// ---- line search ----------------------------------------------------------------------------------------------------

// The residual in vector `which`, with friction at the velocities in vector `where`, times TRIAL - VELOCITY on a block,
// which is not along STEP where walls have stopped it. Held directions are left out: constraint forces times the
// rounding of velocities would drown the rest. Overwrites CONDITIONED.
static double along_way(cq_scene *s, int32_t block, const int which, const int where) {
  const real *velocity = grid_vector(s, CQ_GRID_VELOCITY), *to = grid_vector(s, CQ_GRID_TRIAL);
  const real *r = grid_vector(s, which);
  real *free = grid_vector(s, CQ_GRID_CONDITIONED);
  double sum = 0;
  ROWS_EACH(s, block, at) row_store(free + at, row_load(r + at));
  friction_residual(s, block, CQ_GRID_CONDITIONED, where);
  project(s, block, CQ_GRID_CONDITIONED);
  ROWS_EACH(s, block, at)
    sum += dot_rows(s, row_load(free + at), row_sub(row_load(to + at), row_load(velocity + at)));
  return sum;
}

// Sets TRIAL = VELOCITY + length STEP on a block, stopped by walls; adds RESIDUAL . (TRIAL - VELOCITY), as along_way,
// to its sum SLOPE.
static void trial(cq_scene *s, int32_t block, double length, double *sum) {
  const real *velocity = grid_vector(s, CQ_GRID_VELOCITY), *step = grid_vector(s, CQ_GRID_STEP);
  real *to = grid_vector(s, CQ_GRID_TRIAL);
  ROWS_EACH(s, block, at)
    row_store(to + at, row_scale_add((real)length, row_load(step + at), row_load(velocity + at)));
  stop_all(s, block, CQ_GRID_TRIAL);
  sum[CQ_SUM_SLOPE] += along_way(s, block, CQ_GRID_RESIDUAL, CQ_GRID_VELOCITY);
}

// Adds RESIDUAL_TRIAL . (TRIAL - VELOCITY) of a block, as along_way, to sum[CQ_SUM_DOT]: the slope at TRIAL.
static void slope(cq_scene *s, int32_t block, double *sum) {
  sum[CQ_SUM_DOT] += along_way(s, block, CQ_GRID_RESIDUAL_TRIAL, CQ_GRID_TRIAL);
}

// Multiplies VELOCITY of a block, where Newton's method begins, by a factor, and stops it at walls. Contacts that had
// stopped it stay `touching`, since whether it meets them now may be rounding, but for those it only lands on in the
// step, from which it now stays away. Adds to sum[CQ_SUM_FAR] as measure_way.
static void shrink(cq_scene *s, int32_t block, double factor, double *sum) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  real *velocity = grid_vector(s, CQ_GRID_VELOCITY);
  ROWS_EACH(s, block, at) row_store(velocity + at, row_scale((real)factor, row_load(velocity + at)));
  for (int32_t k = 0; k < h->count; k++) {
    ConstrainedNode *n = constrained_node(h, k);
    const uint64_t touched = n->touching;
    contacts_stop(s, h, n, velocity + 4 * n->node);
    for (int q = 0; q < n->count; q++)
      if (!node_contact(h, n, q)->lands) n->touching |= touched & ~n->active & (uint64_t)1 << q;
  }
  measure_way(s, block, sum);
}

// ---- the end of a step ----------------------------------------------------------------------------------------------

// Ends a step on a block of nodes: copies VELOCITY to s->grid_v, where G2P reads it; writes velocity and mass of each
// node to the step's record, reals {record_nodes, 4}, and for nodes that walls or pins may hold the bits of their
// active contacts to held {record_nodes}; adds the impulses of walls to those of the control step where they are read.
// record, held: or NULL.
static void finish(cq_scene *s, int32_t block, void *record, uint64_t *held) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *velocity = grid_vector(s, CQ_GRID_VELOCITY), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  const real at_mass[4] = {(real)0, (real)0, (real)(CQ_DIM == 2), (real)(CQ_DIM == 3)};
  const Row masses = row_comps(at_mass);
  ROWS_EACH(s, block, at) {
    const Row v = row_load(velocity + at);
    row_store((real *)s->grid_v + at, v);
    if (record)
      row_store((real *)record + at + 4 * (column->record - column->node),
                row_fma(row_load(momentum + at), masses, v));
  }
  for (int32_t k = 0; held && k < h->count; k++) held[constrained_node(h, k)->record] = constrained_node(h, k)->active;
  measure_constrained(s, block);
}
