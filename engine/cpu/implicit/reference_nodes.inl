// reference_nodes: the nodes of reference grids in implicit steps (E125 to E127). They move: their displacements before
// the step and their velocities give F^, and a wall holds a node that would pass its surface within the step. The rest
// is as for nodes of the spatial grid; the loops over particles are in ../reference/implicit.inl.

// The numbers {nodes} of one component of fields over the nodes of reference grids. data: the fields, {components,
// nodes}, as displacement and velocity in a slice.
CQ_INLINE real *reference_field(const cq_scene *s, const void *data, const int component) {
  return (real *)data + component * s->reference.node_count;
}
enum { DISPLACEMENT = 0, NODE_VELOCITY = CQ_DIM };   // in a slice

// Returns, as a row, what the cells of reference grids have scattered to four nodes, summed over ranges
// (../reference/stencil.inl) in slabs that stay as they are: the components of `fields` vector fields, as many as a row
// has room for. at: index of the row in vectors over nodes.
static Row reference_given(const cq_scene *s, const cq_column *column, const int64_t at, const int fields) {
  enum { SHIFTS_OF_CELLS = CQ_REFERENCE_SHIFTS };
  real out[16];
  for (int k = 0; k < 16; k++) out[k] = (real)0;
  for (int32_t range = 0; column->ranges >> range; range++) {
    if (!(column->ranges >> range & 1)) continue;
    const int64_t length = s->reference.window_size[range] + 2 * CQ_CHUNK;
    const real *first = (const real *)s->reference.slab[range] + CQ_CHUNK - s->reference.window[range] + at / 4;
    for (int c = 0; c < fields * CQ_DIM && c < 4; c++) {
      const int field = c / CQ_DIM, component = c % CQ_DIM;
      const real *before = first + (field * SHIFTS_OF_CELLS * CQ_DIM + component) * length;
      const real *here = before + CQ_DIM * length, *after = here + CQ_DIM * length;
      for (int n = 0; n < 4; n++) out[4 * n + c] = out[4 * n + c] + before[n + 1] + here[n] + after[n - 1];
    }
  }
  return row_load(out);
}

// The sum of what particles have scattered to a row of four nodes, on either grid: momentum, stress or a product. On
// the spatial grid it is cleared. at: index of the row in vectors over nodes; fields: of reference_given.
CQ_INLINE Row given_take(const cq_scene *s, const Slabs *slabs, const cq_column *column, const int64_t at,
                         const int fields) {
  if (cq_is_reference(s->model)) return reference_given(s, column, at, fields);
  return slabs_take(slabs, at - 4 * column->node);
}

// (E125) Momentum and mass of four nodes of reference grids, as a row: `given`, the impulse of given forces, plus their
// momentum before the step, damped for half of it by the midpoint rule, 0 without inertia. at: the row's index.
static Row reference_momentum(const cq_scene *s, const int64_t at, const Row given) {
  const cq_reference *r = &s->reference;
  real out[16];
  row_store(out, given);
  for (int n = 0; n < 4; n++) {
    const int64_t node = at / 4 + n;
    const real mass = ((const real *)r->mass)[node], moving = half_decay(s) * mass;
    EACH(i) {
      real *to = out + 4 * n + i;
      if (!(mass > (real)0)) *to = (real)0;
      else if (!s->model->integrator.statics)
        *to = *to + moving * reference_field(s, r->from->nodes, NODE_VELOCITY + i)[node];
    }
    for (int i = CQ_DIM; i < 4; i++) out[4 * n + i] = (real)0;
    out[4 * n + CQ_DIM] = mass;
  }
  return row_load(out);
}

// Sets s->reference.moved, the state that loops over particles read, on a block of nodes to where the velocities v in
// vector `from` lead: displacements u + h v, h of cq_solve_seconds, and velocities v.
static void spread(cq_scene *s, int32_t block, int32_t from) {
  const cq_reference *r = &s->reference;
  const real *v = grid_vector(s, from), seconds = (real)cq_solve_seconds(s->model);
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++)
      EACH(i) {
        const real speed = v[4 * node + i];
        reference_field(s, r->moved->nodes, NODE_VELOCITY + i)[node] = speed;
        reference_field(s, r->moved->nodes, DISPLACEMENT + i)[node] =
            reference_field(s, r->from->nodes, DISPLACEMENT + i)[node] + seconds * speed;
      }
}

// ---- walls ----------------------------------------------------------------------------------------------------------

// Sets place to where a node of a reference grid is in the state that the step begins with [length].
static void reference_place(const cq_scene *s, const int64_t node, wall_real place[3]) {
  place[2] = 0;
  EACH(i)
    place[i] = (wall_real)reference_field(s, s->reference.rest, i)[node] +
               (wall_real)reference_field(s, s->reference.from->nodes, DISPLACEMENT + i)[node];
}

// Component i of the place of a node of a reference grid in the state that the step begins with [length].
static real reference_place_of(const cq_scene *s, const int64_t node, const int i) {
  return reference_field(s, s->reference.rest, i)[node] +
         reference_field(s, s->reference.from->nodes, DISPLACEMENT + i)[node];
}

// Does a node at x, outside of a solid box, lie over the face with this normal? Only then can it meet the face. slack:
// the distance by which the box is widened [length]. 1 yes, and for walls of any other shape; 0 no.
static int is_over_face(const cq_wall *wall, const double slack, const wall_real x[3], const wall_real normal[3]) {
  for (int i = 0; wall->shape == CQ_WALL_BOX && !wall->hollow && i < CQ_DIM; i++) {
    const double at = (double)s_value(x[i]);
    if (s_value(normal[i]) == 0 && (at < wall->lower[i] - slack || at > wall->upper[i] + slack)) return 0;
  }
  return 1;
}

// (E126) Appends to the contacts of node n, the last one of h, those that wall w has with it or may have within the
// step. reach: how far the node may go in the step [length]. 1, or 0 without memory.
static int add_wall(cq_scene *s, cq_constrained_nodes *h, ConstrainedNode *n, const StepWalls *walls, const int32_t w,
                    const double reach) {
  const cq_wall *wall = &walls->walls[w];
  const double slack = -0.5 * s->model->dx;   // walls begin half a cell later
  wall_real place[3], x[3], normals[3][3], slope[3];
  reference_place(s, n->node, place);
  wall_sees(walls, w, walls->seconds, place, x);
  double room = slack + reach;
  // inside of a hollow box a node may come to the nearer one of two opposite sides
  for (int i = 0; wall->shape == CQ_WALL_BOX && wall->hollow && i < CQ_DIM; i++)
    room = fmin(room, 0.5 * (wall->upper[i] - wall->lower[i]));
  const int32_t count = wall_normals_within(wall, CQ_DIM, room, x, normals);
  for (int32_t k = 0; k < count; k++) {
    if (!is_over_face(wall, slack, x, normals[k])) continue;
    const wall_real gap = -wall_depth(wall, CQ_DIM, slack, x, normals[k], slope);
    if (!constrained_reserve(&h->contact, &h->contact_capacity, h->contacts + 1, sizeof(NodeContact))) return 0;
    NodeContact *c = (NodeContact *)h->contact + h->contacts++;
    memset((void *)c, 0, sizeof *c);
    n->count++;
    c->wall = w;
    c->lands = s_value(gap) > resting_gap(walls);
    EACH(i) c->normal[i] = (real)normals[k][i];
    EACH(i) c->slope[i] = (real)0 - (real)slope[i];
    if (c->lands) c->approach = (real)(gap / (wall_real)s->model->dt);
  }
  return 1;
}

// Appends a pin (its number is below 0) as the one contact of node n of h. 1, or 0 without memory.
static int add_pin(cq_constrained_nodes *h, ConstrainedNode *n, const int32_t pin) {
  if (!constrained_reserve(&h->contact, &h->contact_capacity, h->contacts + 1, sizeof(NodeContact))) return 0;
  NodeContact *c = (NodeContact *)h->contact + h->contacts++;
  memset((void *)c, 0, sizeof *c);
  c->wall = pin;
  n->count = 1;
  return 1;
}

// Appends a node of a reference grid to the constrained nodes h, if a pin, then its only contact, or a wall that it may
// reach in the step, may hold it. node: its number over all bodies. 1, or 0 without memory.
static int add_node(cq_scene *s, cq_constrained_nodes *h, const StepWalls *walls, const int64_t node) {
  const cq_reference *r = &s->reference;
  double speed = 0;
  if (!constrained_reserve(&h->node, &h->capacity, h->count + 1, sizeof(ConstrainedNode))) return 0;
  ConstrainedNode *n = constrained_node(h, h->count);
  memset((void *)n, 0, sizeof *n);
  n->node = n->record = node;
  n->first = h->contacts;
  if (r->pin[node]) {
    if (!add_pin(h, n, r->pin[node])) return 0;
  } else {
    EACH(i) speed += fabs((double)s_value(reference_field(s, r->from->nodes, NODE_VELOCITY + i)[node]));
    for (int32_t w = 0; w < walls->count; w++) {
      double of_wall = 0;
      EACH(i) of_wall += fabs((double)s_value(wall_velocity_of(s, w)[i]));
      const double reach = 2 * s->model->dx + 2 * s->model->dt * (speed + of_wall);
      // a body that settles may go anywhere
      if (!add_wall(s, h, n, walls, w, s->model->integrator.statics ? INFINITY : reach)) return 0;
    }
  }
  h->count += n->count > 0;
  return 1;
}

// Does the work of find_constrained on reference grids: lists the nodes of a block that pins, or walls that they may
// reach in this step, may hold. Without memory the block's sum CQ_SUM_CHANGED is infinite.
static void find_constrained_reference(cq_scene *s, const int32_t block) {
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  const StepWalls walls = walls_of(s);
  const real *mass = (const real *)s->reference.mass;
  h->count = h->contacts = 0;
  if (s->model->wall_count + s->model->pin_count == 0) return;
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++)
      if (mass[node] > (real)0 && !add_node(s, h, &walls, node)) {
        s->implicit.sum[0][block][CQ_SUM_CHANGED] = INFINITY;   // read by method.c
        return;
      }
}

// ---- the end of a step ----------------------------------------------------------------------------------------------

// (E125) The factor 2 q - 1 of VELOCITY v in (2 q - 1) v - q^2 v_n, the velocity by which the midpoint rule goes on
// after the middle of the step where no contact holds: q the damping of half a step, v_n the velocity before the step.
// 0 for backward Euler.
CQ_INLINE real ahead(const cq_scene *s) {
  return cq_is_midpoint(s->model) ? (real)2 * half_decay(s) - (real)1 : (real)0;
}
// (E125) The factor q^2 of the velocity v_n before the step in (2 q - 1) v - q^2 v_n (ahead); 0 for backward Euler.
CQ_INLINE real back(const cq_scene *s) { return cq_is_midpoint(s->model) ? decay_of(s) : (real)0; }

// (E125) Sets change to (2 q - 1) v - q^2 v_n of a node, the velocity by which it goes on after the middle of the step
// where no contact holds it (ahead).
CQ_INLINE void velocity_beyond(const cq_scene *s, const int64_t node, real change[CQ_DIM]) {
  EACH(i)
    change[i] = ahead(s) * grid_vector(s, CQ_GRID_VELOCITY)[4 * node + i] -
                back(s) * reference_field(s, s->reference.from->nodes, NODE_VELOCITY + i)[node];
}

// (E125) Sets displacements and velocities (0 without inertia) of a block's nodes after the step, in `out`, from
// VELOCITY and the state `in` before it; found->fastest to VELOCITY's largest speed, found->bad to 1 if not finite.
static void end_on_reference(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t block, cq_found *found) {
  const cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *velocity = grid_vector(s, CQ_GRID_VELOCITY), *mass = (const real *)s->reference.mass;
  const real dt = (real)s->model->dt, on = ahead(s), off = back(s);
  const int statics = s->model->integrator.statics;
  double fastest = 0;
  int32_t k = 0;
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node++) {
      real v[CQ_DIM], change[CQ_DIM], free[CQ_DIM], still[CQ_DIM] = {(real)0};
      double square = 0;
      EACH(i) v[i] = mass[node] > (real)0 ? velocity[4 * node + i] : (real)0;
      EACH(i) change[i] = on * v[i] - off * reference_field(s, in->nodes, NODE_VELOCITY + i)[node];
      EACH(i) free[i] = change[i];
      if (k < h->count && constrained_node(h, k)->node == node) {
        Freedom f;
        contacts_keep(s, h, constrained_node(h, k++), &f, still);
        freedom_apply(&f, change, free);
      }
      EACH(i) {
        real *u = reference_field(s, out->nodes, DISPLACEMENT + i) + node;
        *u = reference_field(s, in->nodes, DISPLACEMENT + i)[node] + dt * v[i];
        const real end = statics ? (real)0 : v[i] + free[i];
        reference_field(s, out->nodes, NODE_VELOCITY + i)[node] = end;
        square += (double)s_value(v[i]) * (double)s_value(v[i]);
      }
      if (square > fastest) fastest = square;
    }
  found->fastest = sqrt(fastest);
  found->bad = !isfinite(found->fastest);
}
