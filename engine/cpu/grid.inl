// grid: from the slabs of all ranges to the velocity of each active node, with gravity and walls; and its adjoint.

// At the start of a rollout: sets the displacements of walls and the sums of their impulses to 0.
static void clear_walls(cq_scene *s) {
  const int64_t walls = s->model->wall_count, contacts = (int64_t)s->ranges * s->model->contact_count;
  for (int64_t k = 0; k < 3 * walls; k++) ((wall_real *)s->wall_place)[k] = (wall_real)0;
  for (int64_t k = 0; k < contacts * CONTACT_WIDTH; k++) ((wall_real *)s->impulse)[k] = (wall_real)0;
  s->wall_place_step = 0;
}

// Sets the velocities {walls, dim} of walls in the control step that begins with engine step `step`, and `place`
// {walls, dim}, how far they have moved before that step.
static void load_walls(cq_scene *s, const int64_t step, const double *velocity, const double *place) {
  for (int32_t w = 0; w < s->model->wall_count; w++)
    EACH(i) {
      ((real *)s->globals)[3 + s->model->wall_count + 3 * w + i] = (real)velocity[w * CQ_DIM + i];
      ((wall_real *)s->wall_place)[3 * w + i] = (wall_real)place[w * CQ_DIM + i];
    }
  s->wall_place_step = step;
}

// At the end of a control step: sets s->impulse_out {contact_count, CONTACT_WIDTH} to the impulses of walls and pins,
// summed over all blocks of columns, and clears these sums.
static void store_impulse(cq_scene *s) {
  const int32_t count = s->model->contact_count * CONTACT_WIDTH;
  for (int32_t k = 0; k < count; k++) {
    wall_real sum = (wall_real)0;
    for (int32_t r = 0; r < s->ranges; r++) sum = sum + impulse_of(s, r)[k];
    s->impulse_out[k] = (double)s_value(sum);
  }
  for (int64_t k = 0; k < (int64_t)s->ranges * count; k++) ((wall_real *)s->impulse)[k] = (wall_real)0;
}

// Adds to the contacts of a node those with moving walls, at the place where the walls are in this step. z: the node's
// number along the last axis, counted from the edge of the world.
static void contacts_add_moving(const cq_scene *s, const cq_column *column, const int32_t z, Contacts *contacts) {
  const cq_model *m = s->model;
  const StepWalls walls = walls_of(s);
  contacts->place[0] = column->x * m->dx;
  contacts->place[1] = column->y * m->dx;
  contacts->place[LAST] = z * m->dx;
  for (int32_t w = 0; w < m->wall_count; w++) {
    if (!m->walls[w].moves) continue;
    wall_real x[3], normals[3][3];
    wall_sees(&walls, w, walls.seconds, contacts->place, x);
    const int32_t count = wall_normals(&m->walls[w], CQ_DIM, 1e-6 * m->dx, x, normals);
    for (int32_t k = 0; k < count; k++) {
      real *normal = contacts_add(contacts, w);
      EACH(i) normal[i] = (real)normals[k][i];
    }
  }
}

// Returns the first node of a column, from number z on, that a wall or a pin may hold, and sets contacts to its
// contacts; returns column->count if there is none. z counts from the column's first node. *entry: position among the
// column's wall map entries, sorted by z; begins at wall_begin, and is moved on.
CQ_INLINE int32_t next_constrained(const cq_scene *s, const cq_column *column, const int32_t z, int64_t *entry,
                            Contacts *contacts) {
  const cq_wall_node *node = s->model->map.node;
  const int moving = s->model->moving_wall_count > 0;
  if (*entry >= column->wall_end && !moving) return column->count;
  const int32_t first = moving ? z : node[*entry].z - column->z;
  contacts->count = 0;
  int pinned = 0;
  for (; *entry < column->wall_end && node[*entry].z == column->z + first; ++*entry) {
    // a pin comes last, and no wall has a say beside it
    pinned = node[*entry].wall < 0;
    if (pinned) contacts->count = 0;
    real *normal = contacts_add(contacts, node[*entry].wall);
    EACH(i) normal[i] = (real)node[*entry].normal[i];
  }
  if (moving && !pinned && first < column->count) contacts_add_moving(s, column, column->z + first, contacts);
  return first;
}

// Stores mass and position of node number z of a column in its contacts, since the impulses of contacts need them.
CQ_INLINE void contacts_locate(const cq_scene *s, const cq_column *column, const int32_t z, const real mass,
                               Contacts *contacts) {
  const double dx = s->model->dx;
  contacts->mass = mass;
  contacts->x[0] = (real)(column->x * dx);
  contacts->x[1] = (real)(column->y * dx);
  contacts->x[LAST] = (real)((column->z + z) * dx);
}

// Writes the masses of four nodes, from p (momentum and mass), into the last component of their velocities {4, 4},
// where contact_and_measure_column finds them.
CQ_INLINE void masses_put(const Row p, real *velocity) {
  real row[16];
  row_store(row, p);
  for (int k = CQ_DIM; k < 16; k += 4) velocity[k] = row[k];
}

// Applies the contacts of a column to its node velocities {count, 4}, and adds their impulses to sum {contact_count,
// CONTACT_WIDTH}. Clears the masses that masses_put has left in the last components.
static void contact_and_measure_column(const cq_scene *s, const cq_column *column, real *velocity, wall_real *sum) {
  int64_t entry = column->wall_begin;
  Contacts contacts;
  for (int32_t z = 0; (z = next_constrained(s, column, z, &entry, &contacts)) < column->count; z++) {
    contacts_locate(s, column, z, velocity[4 * z + CQ_DIM], &contacts);
    for (int k = 0; k < contacts.count; k++) contact_and_measure(s, &contacts, k, velocity + 4 * z, sum);
  }
  for (int32_t z = 0; z < column->count; z++) velocity[4 * z + CQ_DIM] = (real)0;
}

// Returns 1 if a wall or a pin may hold nodes of this column: one that rests and is listed for it, or any wall that
// moves; else 0.
CQ_INLINE int column_has_contacts(const cq_scene *s, const cq_column *column) {
  return column->wall_end > column->wall_begin || s->model->moving_wall_count > 0;
}

// What makes the velocity of a node without walls from its momentum, in the components of each of a row's four nodes: 1
// for momentum, 0 for mass; the share d - 1 of damping, with d = exp(-damping dt) of E50; dt g.
typedef struct {
  Row momentum, loss, gravity;
} FreeMotion;

CQ_INLINE FreeMotion free_motion(const cq_scene *s) {
  const real loss = loss_of(s);
  const real one[4] = {(real)1, (real)1, (real)(CQ_DIM == 3), (real)0};
  const real d[4] = {loss, loss, CQ_DIM == 3 ? loss : (real)0, (real)0};
  real g[4] = {(real)0, (real)0, (real)0, (real)0};
  for (int i = 0; i < CQ_DIM; i++) g[i] = (real)s->model->dt * ((const real *)s->globals)[i];
  return (FreeMotion){row_comps(one), row_comps(d), row_comps(g)};
}
// (E14, E50) The velocities d (p / m + dt g) of a row of nodes before walls, 0 in the components of mass. p: momentum
// and mass; inverse: 1 / mass.
CQ_INLINE Row free_velocities(const FreeMotion *f, const Row p, const Row inverse) {
  const Row v = row_fma(p, row_mul(inverse, f->momentum), f->gravity);
  return row_fma(v, f->loss, v);
}

// 1 / mass in every component of each node of a row, 0 for nodes without mass. p: momentum and mass.
CQ_INLINE Row inverse_mass(const Row p) {
  return row_inverse(row_comp(p, CQ_DIM));
}

// the slabs of the ranges that have scattered to a column, in order, from the column's first node on
typedef struct {
  real *of[CQ_RANGES_MAX];
  int count;
} Slabs;

// Sets s to the slabs (private node arrays, one for each range of chunks) that contribute to a column, in the order of
// ranges, from the column's first node on. Their sum is the column's momentum and mass. slab {ranges}: all slabs.
CQ_INLINE void slabs_find(Slabs *s, real *const slab[CQ_RANGES_MAX], const cq_column *column) {
  s->count = 0;
  for (int r = 0; column->ranges >> r; r++)
    if (column->ranges >> r & 1) s->of[s->count++] = slab[r] + 4 * column->node;
}

// As slabs_find, but returns the slabs.
CQ_INLINE Slabs slabs_at(real *const slab[CQ_RANGES_MAX], const cq_column *column) {
  Slabs s;
  slabs_find(&s, slab, column);
  return s;
}

// Returns the sum over a column's slabs for a row of four nodes, and clears it in the slabs. at: the row's distance
// from the column's first node [reals].
CQ_INLINE Row slabs_take(const Slabs *s, const int64_t at) {
  Row sum = row_load(s->of[0] + at);
  row_store(s->of[0] + at, row_zero());
  for (int k = 1; k < s->count; k++) {
    sum = row_add(sum, row_load(s->of[k] + at));
    row_store(s->of[k] + at, row_zero());
  }
  return sum;
}

// (E121) Sets s->inertia_v, the velocities before stress and forces, of the row of four nodes at z of a column, from
// the slabs of that momentum, which are cleared. inverse: 1 / mass; kept: NULL, or the column's part of the step's
// record, which takes the momentum.
CQ_INLINE void inertia_velocities(const cq_scene *s, const Slabs *slabs, const cq_column *column, const Row inverse,
                                  const int32_t z, real *kept) {
  const Row p = slabs_take(slabs, 4 * z);
  if (kept) row_store(kept + 4 * z, p);
  row_store((real *)s->inertia_v + 4 * (column->node + z), row_mul(p, inverse));
}

// Returns where a step's record has the momentum of a column before stress and forces (E121); NULL without a record, or
// without unresolved motion.
CQ_INLINE real *inertia_record(const cq_scene *s, const void *record, const cq_column *column) {
  if (!record || !cq_keeps_unresolved(s->model)) return NULL;
  return (real *)record + 4 * (s->arrangement->record_nodes + column->record);
}

// Returns 1 if nodes of reference grids (carriers) scatter to a column of the spatial grid, else 0.
CQ_INLINE int has_carriers(const cq_scene *s, const cq_column *column) {
  return cq_is_mixed(s->model) && (column->ranges & ((1u << s->first_range) - 1)) != 0;
}
static void carried_column(cq_scene *s, const cq_column *column, void *record, int32_t block);

// The grid pass for a block of columns: sets s->grid_v to the node velocities v = d (p / m + dt g), d = exp(-damping
// dt), then applies walls (E12, E50), and adds up their impulses if they are read. Clears the slabs. record: NULL, or
// takes momentum and mass (cq_step_record.grid).
static void grid(cq_scene *s, void *record, int32_t block) {
  const cq_arrangement *a = s->arrangement;
  const FreeMotion motion = free_motion(s);
  const int keeps = cq_keeps_unresolved(s->model);
  real *slab[CQ_RANGES_MAX], *inertia[CQ_RANGES_MAX];
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  for (int r = 0; keeps && r < s->ranges; r++) inertia[r] = inertia_slab_of(s, r);
  for (int32_t c = a->column_block[block]; c < a->column_block[block + 1]; c++) {
    const cq_column *column = &a->columns[c];
    if (has_carriers(s, column)) {
      carried_column(s, column, record, block);
      continue;
    }
    Slabs slabs, beside;
    slabs_find(&slabs, slab, column);
    slabs_find(&beside, keeps ? inertia : slab, column);
    real *velocity = (real *)s->grid_v + 4 * column->node;
    real *kept_inertia = inertia_record(s, record, column);
    real *kept = record ? (real *)record + 4 * column->record : NULL;
    const int has_contacts = column_has_contacts(s, column), read = has_contacts && s->impulse_out;
    for (int32_t z = 0; z < column->count; z += 4) {
      const Row p = slabs_take(&slabs, 4 * z);
      if (kept) row_store(kept + 4 * z, p);
      if (keeps) inertia_velocities(s, &beside, column, inverse_mass(p), z, kept_inertia);
      row_store(velocity + 4 * z, free_velocities(&motion, p, inverse_mass(p)));
      if (read) masses_put(p, velocity + 4 * z);
    }
    if (!has_contacts) continue;
    int64_t entry = column->wall_begin;
    Contacts contacts;
    if (read) {
      contact_and_measure_column(s, column, velocity, impulse_of(s, block));
      continue;
    }
    for (int32_t z = 0; (z = next_constrained(s, column, z, &entry, &contacts)) < column->count; z++)
      for (int k = 0; k < contacts.count; k++) apply_contact(s, &contacts, k, velocity + 4 * z);
  }
}

#if !defined(CQ_REAL_DUAL)

// (E14) Returns dL/d(momentum, mass) of a row of nodes: dL/dp = g / m, dL/dm = -(p / m).g / m, g = dL/d(p / m), whose
// component of mass is 0. inverse: 1 / mass.
CQ_INLINE Row momentum_adj(const Row p, const Row inverse, const Row g) {
  const Row gp = row_mul(g, inverse), t = row_mul(row_mul(p, inverse), gp);
  Row along = row_add(row_comp(t, 0), row_comp(t, 1));
#if CQ_DIM == 3
  along = row_add(along, row_comp(t, 2));
  const real at_mass[4] = {0, 0, 0, 1};
#else
  const real at_mass[4] = {0, 0, 1, 0};
#endif
  return row_sub(gp, row_mul(along, row_comps(at_mass)));
}

// sums over the nodes of a block: of dL/d(p / m + dt g), and of v . dL/dv where it is wanted
typedef struct {
  Row gravity, damping;
  int damps;
} NodeSums;

// (E14, E50) Returns dL/d(momentum, mass) of a row of four nodes, from grad_v = dL/dv before the walls. p: momentum and
// mass; inverse: 1 / mass; v = d (p / m + dt g). Adds to the sums, which the caller then multiplies by dt for
// dL/d(gravity) and by -dt for dL/d(damping).
CQ_INLINE Row node_adj(NodeSums *sums, const FreeMotion *f, const Row p, const Row inverse, const Row v,
                       const Row grad_v) {
  if (sums->damps) sums->damping = row_add(sums->damping, row_mul(v, grad_v));
  const Row kept = row_mul(grad_v, f->momentum), g = row_fma(kept, f->loss, kept);
  sums->gravity = row_add(sums->gravity, g);
  return momentum_adj(p, inverse, g);
}

// (E121) Adjoint of inertia_velocities for the row of four nodes at z: from the slabs, which hold dL/dv~ and are
// cleared, sets s->inertia_q = dL/d(momentum before stress and forces), and s->inertia_v = v~ again. Returns inertia_q;
// its component of mass is for the caller to add to dL/dm. kept: the momentum, from the step's record.
CQ_INLINE Row inertia_adj(const cq_scene *s, const Slabs *slabs, const cq_column *column, const int32_t z,
                          const Row inverse, const real *kept) {
  const Row p = row_load(kept + 4 * z), q = momentum_adj(p, inverse, slabs_take(slabs, 4 * z));
  row_store((real *)s->inertia_v + 4 * (column->node + z), row_mul(p, inverse));
  row_store((real *)s->inertia_q + 4 * (column->node + z), q);
  return q;
}

// (E22) Carries the gradient of a contact's normal, grad->n, on to the wall's displacement and velocity in sum: where a
// moving wall is decides which normal a node sees. place: of the node. Nothing for walls that rest.
static void turn_adj(const cq_scene *s, const int32_t wall, const double place[3], const ContactGrad *grad,
                     cq_partial *sum) {
  double x[3], grad_x[3] = {0}, grad_n[3] = {0};
  const StepWalls walls = walls_of(s);
  if (!s->model->walls[wall].moves) return;
  wall_sees(&walls, wall, walls.seconds, place, x);
  EACH(i) grad_n[i] = (double)grad->n[i];
  cq_wall_normals_adj(&s->model->walls[wall], CQ_DIM, x, grad_n, grad_x);
  wall_place_adj(sum, wall, walls.seconds, grad_x);
}

// Adjoint of all contacts of a node. v: velocity before them on entry, after them on return; grad_v: dL/dv after them
// on entry, before them on return. Adds to the gradients of walls in sum. Returns dL/d(mass) by way of the impulses.
static real contacts_adj(const cq_scene *s, const Contacts *contacts, real v[CQ_DIM], real grad_v[CQ_DIM],
                         cq_partial *sum) {
  real at[CONTACTS + 1][CQ_DIM], grad_mass = 0;
  for (int k = 0; k < contacts->count; k++) {
    EACH(i) at[k][i] = v[i];
    apply_contact(s, contacts, k, v);
  }
  EACH(i) at[contacts->count][i] = v[i];
  for (int k = contacts->count - 1; k >= 0; k--) {
    const int32_t w = contacts->wall[k];
    ContactGrad grad = {0};
    grad_mass += contact_of_node_adj(s, contacts, k, at + k, grad_v, &grad).mass;
    if (w < 0) continue;
    give_wall(sum, w, &grad);
    turn_adj(s, w, contacts->place, &grad, sum);
  }
  return grad_mass;
}

// Adjoint of the contacts of a column of nodes: in grad {count, 4}, dL/dv after them becomes dL/dv before them; in
// velocity, v before them becomes v after them. dL/d(mass) by way of the impulses goes to the last component of grad,
// which node_adj ignores. masses: every fourth number is one. Adds to the gradients of walls in sum.
static void contacts_of_column_adj(const cq_scene *s, const cq_column *column, const real *masses, real *velocity,
                                   real *grad, cq_partial *sum) {
  int64_t entry = column->wall_begin;
  Contacts contacts;
  for (int32_t z = 0; s->grad_impulse && z < column->count; z++) grad[4 * z + CQ_DIM] = 0;
  for (int32_t z = 0; (z = next_constrained(s, column, z, &entry, &contacts)) < column->count; z++) {
    const real mass = masses[4 * z];
    if (!contacts.count || !(mass > 0)) continue;
    contacts_locate(s, column, z, mass, &contacts);
    const real grad_mass = contacts_adj(s, &contacts, velocity + 4 * z, grad + 4 * z, sum);
    if (s->grad_impulse) grad[4 * z + CQ_DIM] = grad_mass;
  }
}

static void carried_column_adj(cq_scene *s, const cq_column *column, const void *record, int32_t block);

// Adjoint of grid for a block of columns: from the slabs, which hold dL/dv of the nodes and are cleared, sets s->grid_q
// = dL/d(momentum, mass) (E14), and s->grid_v = v again from the record. Adds to the block's gradients of gravity,
// damping and walls.
static void grid_adj(cq_scene *s, const void *record, int32_t block) {
  const cq_arrangement *a = s->arrangement;
  cq_partial *sum = &s->partial[block];
  const real at_mass[4] = {0, 0, CQ_DIM == 2, CQ_DIM == 3};
  const Row masses = row_comps(at_mass);
  const FreeMotion motion = free_motion(s);
  NodeSums sums = {row_zero(), row_zero(), (s->wanted & cq_bit(CQ_FIELD_DAMPING)) != 0};
  const int keeps = cq_keeps_unresolved(s->model);
  real *slab[CQ_RANGES_MAX], *inertia[CQ_RANGES_MAX];
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  for (int r = 0; keeps && r < s->ranges; r++) inertia[r] = inertia_slab_of(s, r);
  for (int32_t c = a->column_block[block]; c < a->column_block[block + 1]; c++) {
    const cq_column *column = &a->columns[c];
    if (has_carriers(s, column)) {
      carried_column_adj(s, column, record, block);
      continue;
    }
    Slabs slabs, beside;
    slabs_find(&slabs, slab, column);
    slabs_find(&beside, keeps ? inertia : slab, column);
    const real *kept_inertia = inertia_record(s, record, column);
    real *velocity = (real *)s->grid_v + 4 * column->node, *grad = (real *)s->grid_q + 4 * column->node;
    const real *kept = (const real *)record + 4 * column->record;
    const int walls = column_has_contacts(s, column);
    for (int32_t z = 0; z < column->count; z += 4) {
      const Row p = row_load(kept + 4 * z), inverse = inverse_mass(p), v = free_velocities(&motion, p, inverse);
      row_store(velocity + 4 * z, v);
      Row g = slabs_take(&slabs, 4 * z);
      if (!walls) g = node_adj(&sums, &motion, p, inverse, v, g);
      if (keeps && !walls)
        g = row_fma(inertia_adj(s, &beside, column, z, inverse, kept_inertia), masses, g);
      row_store(grad + 4 * z, g);
    }
    if (!walls) continue;
    contacts_of_column_adj(s, column, kept + CQ_DIM, velocity, grad, sum);
    for (int32_t z = 0; z < column->count; z += 4) {
      const Row p = row_load(kept + 4 * z), inverse = inverse_mass(p), v = free_velocities(&motion, p, inverse);
      const Row g = row_load(grad + 4 * z);
      Row q = node_adj(&sums, &motion, p, inverse, v, g);
      if (keeps) q = row_fma(inertia_adj(s, &beside, column, z, inverse, kept_inertia), masses, q);
      row_store(grad + 4 * z, s->grad_impulse ? row_add(q, row_mul(g, masses)) : q);
    }
  }
  real total[4];
  row_sum(total, sums.gravity);
  for (int i = 0; i < CQ_DIM; i++) sum->gravity[i] += s->model->dt * (double)total[i];
  row_sum(total, sums.damping);
  for (int i = 0; i < CQ_DIM; i++) sum->damping -= s->model->dt * (double)total[i];
}

#endif
