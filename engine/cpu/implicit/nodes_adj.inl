// nodes_adj: the adjoint of a step of backward Euler, the loops over nodes, before and after its linear system.

// Starts the adjoint of a step on a block of nodes: takes VELOCITY, masses and active contacts from the step's record,
// sets RESIDUAL and TRIAL to dL/dv, from the slabs, which it clears, or, on reference grids, the adjoint of their
// nodes, and STEP to 0. held {record_nodes}: bits of active contacts.
static void load_record(cq_scene *s, int32_t block, const void *record, const uint64_t *held) {
  real *velocity = grid_vector(s, CQ_GRID_VELOCITY), *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  real *to = grid_vector(s, CQ_GRID_RESIDUAL), *slab[CQ_RANGES_MAX];
  const Row mask = velocity_mask();
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      const Row kept = row_load((const real *)record + at + 4 * (column->record - column->node));
      const Row v = row_mul(kept, mask);
      const int lagrangian = cq_is_reference(s->model);
      const Row wanted = lagrangian ? reference_wanted(s, at, kept) : given_take(s, &slabs, column, at, 1);
      row_store(velocity + at, v);
      row_store(momentum + at, row_sub(kept, v));
      row_store(to + at, wanted);
      row_store(grid_vector(s, CQ_GRID_TRIAL) + at, wanted);
      row_store(grid_vector(s, CQ_GRID_STEP) + at, row_zero());
    }
  }
  find_constrained(s, block);
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  for (int32_t k = 0; k < h->count; k++) constrained_node(h, k)->active = held[constrained_node(h, k)->record];
  hold_wanted(s, block);
}

// Sets RESIDUAL of a block to dL/dv, which TRIAL keeps, plus the terms of pressure that follows the surface, from the
// slabs, which it clears on the spatial grid, less PRODUCT, the terms of friction and impulses. Adds the squared norm
// by M^-1 of the change to sum[CQ_SUM_RESIDUAL], and that of the result to sum[CQ_SUM_INERTIA].
static void add_followed(cq_scene *s, int32_t block, double *sum) {
  const Row mask = velocity_mask();
  const int follows = cq_pressure_follows(s->model);
  const real *kept = grid_vector(s, CQ_GRID_TRIAL);
  real *to = grid_vector(s, CQ_GRID_RESIDUAL), *slab[CQ_RANGES_MAX];
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      Row with = row_load(kept + at);
      if (follows) with = row_fma(given_take(s, &slabs, column, at, 1), mask, with);
      if (s->model->walls_have_friction || s->grad_impulse)
        with = row_sub(with, row_load(grid_vector(s, CQ_GRID_PRODUCT) + at));
      const Row change = row_sub(with, row_load(to + at));
      sum[CQ_SUM_RESIDUAL] += dot_rows(s, change, conditioned(s, at, change));
      sum[CQ_SUM_INERTIA] += dot_rows(s, with, conditioned(s, at, with));
      row_store(to + at, with);
    }
  }
}

// (E72) Adjoint of the normal of moving wall number `wall` at a held node n, on the spatial grid: adds to sum the
// gradients of the wall's velocity and place, with which the normal changes. grad: of the contact.
static void constrained_turn_adj(const cq_scene *s, const int32_t wall, const ConstrainedNode *n,
                                 const ContactGrad *grad, cq_partial *sum) {
  double place[3] = {0};
  EACH(i) place[i] = n->place[i] * s->model->dx;
  turn_adj(s, wall, place, grad, sum);
}

// (E90) Adds to grad->n a second term by which the velocity v of node n depends on the normal of contact k, where a
// contact holds all that the normals N leave: v = N^+ (n_k.w_k) + (I - N^+ N) w. rest: b - H y of the adjoint's system.
static void normal_beside_whole_adj(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                                    const int k,
                                    const real rest[CQ_DIM], ContactGrad *grad) {
  const real *v = grid_vector(s, CQ_GRID_VELOCITY) + 4 * n->node;
  int whole = n->count - 1;
  while (whole >= 0 && !((n->active >> whole & 1) && holds_all(contact_kind(s, node_contact(h, n, whole))))) whole--;
  if (whole < 0) return;
  real w[CQ_DIM], row[CQ_DIM], share[CQ_DIM], along = 0;
  contact_velocity(s, node_contact(h, n, whole), w);
  impulse_row(s, h, n, k, row);
  EACH(i) along += row[i] * (v[i] - w[i]);
  contact_share(s, h, n, whole, rest, share);
  EACH(i) grad->n[i] += along * share[i];
}

// Adjoint of the contacts that hold node n, after the linear system H y = b: adds the gradients of walls to sum, from
// b - H y, from the residual where walls turn (E90), by friction (E95) and by impulses (E97).
static void constrained_adj(cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, cq_partial *sum) {
  const int64_t at = 4 * n->node;
  const real *b = grid_vector(s, CQ_GRID_RESIDUAL) + at, *y = grid_vector(s, CQ_GRID_STEP) + at;
  const real *hy = grid_vector(s, CQ_GRID_PRODUCT) + at, *v = grid_vector(s, CQ_GRID_VELOCITY) + at;
  const real *residual_at = grid_vector(s, CQ_GRID_RESIDUAL_TRIAL) + at;
  real force[CQ_DIM], rest[CQ_DIM], free[CQ_DIM], rubbed[CQ_DIM], still[CQ_DIM] = {0};
  Freedom f;
  contacts_keep(s, h, n, &f, still);
  freedom_apply(&f, y, free);
  friction_product(s, h, n, v, free, rubbed);
  EACH(i) rest[i] = b[i] - hy[i] - rubbed[i];
  friction_node(s, h, n, v, force);   // other walls stand against friction
  EACH(i) force[i] += residual_at[i];
  for (int k = 0; k < n->count; k++) {
    const NodeContact *c = node_contact(h, n, k);
    if (!(n->active >> k & 1)) continue;
    ContactGrad grad = {0};
    if (s->grad_impulse) constrained_impulse_adj(s, h, n, k, &grad);
    if (c->wall < 0) continue;
    real share[CQ_DIM];
    contact_share(s, h, n, k, rest, share);
    EACH(i) sum->wall_velocity[c->wall][i] += (double)share[i];
    if (has_friction(s, c)) friction_adj(s, c, v, free, &grad);
    sum->friction[c->wall] += (double)grad.friction;
    EACH(i) sum->wall_velocity[c->wall][i] += (double)grad.w[i];
    if (!s->model->walls[c->wall].moves && !cq_is_reference(s->model)) continue;
    // friction is of the velocity less w of the contact, which has the normal where the node lands
    EACH(i) grad.n[i] -= c->lands * c->approach * grad.w[i];
    if (holds_all(contact_kind(s, c))) {
      EACH(i) grad.n[i] -= c->lands * c->approach * share[i];
    } else {
      real press = 0, pull = 0, pressed[CQ_DIM];
      beyond_adj(s, h, n, k, &grad);
      if (s->model->walls_have_friction || s->grad_impulse) shares_adj(s, h, n, k, free, &grad);
      EACH(i) pull += share[i] * c->normal[i];
      contact_share(s, h, n, k, force, pressed);
      EACH(i) press += pressed[i] * c->normal[i];
      EACH(i) grad.n[i] += press * free[i] - pull * (v[i] - wall_velocity_of(s, c->wall)[i]);
      normal_beside_whole_adj(s, h, n, k, rest, &grad);
    }
    const HeldBy held = {h, n, k};
    if (cq_is_reference(s->model)) reference_contact_adj(s, &held, share, &grad, sum);
    else constrained_turn_adj(s, c->wall, n, &grad, sum);
  }
}

// (E89) Ends the adjoint of the solve on a block of nodes, from STEP, its solution y: sets s->grid_q = dL/d(momentum,
// mass) and s->grid_v = VELOCITY, for particles, and adds to the gradients of gravity, damping and walls in s->partial.
static void finish_adj(cq_scene *s, int32_t block) {
  cq_partial *sum = &s->partial[block];
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *momentum = grid_vector(s, CQ_GRID_MOMENTUM), *velocity = grid_vector(s, CQ_GRID_VELOCITY);
  const real *step = grid_vector(s, CQ_GRID_STEP), inertia = inertia_of(s);
  const Row fall = fall_row(s), mask = velocity_mask();
  Row weight = row_zero(), power = row_zero();
  ROWS_EACH(s, block, at) {
    const Row y = row_load(step + at), v = row_load(velocity + at), mass = mass_of(row_load(momentum + at));
    const Row slowed = row_mul(row_scale(inertia, v), y);
    real given[16], out[16];
    row_store(given, row_mul(row_sub(row_mul(fall, y), slowed), mask));
    row_store(out, y);
    for (int n = 0; n < 16; n += 4) {
      real total = 0;
      EACH(i) total += given[n + i];
      out[n + CQ_DIM] = total;
      for (int i = CQ_DIM + 1; i < 4; i++) out[n + i] = 0;
    }
    row_store((real *)s->grid_q + at, row_load(out));
    row_store((real *)s->grid_v + at, v);
    weight = row_fma(mass, y, weight);
    power = row_fma(mass, slowed, power);
  }
  real total[4];
  row_sum(total, weight);
  for (int i = 0; i < CQ_DIM; i++) sum->gravity[i] += cq_solve_seconds(s->model) * (double)total[i];
  row_sum(total, power);
  for (int i = 0; i < CQ_DIM; i++) sum->damping -= damped_seconds(s) * (double)total[i];
  for (int32_t k = 0; k < h->count; k++) constrained_adj(s, h, constrained_node(h, k), sum);
}
