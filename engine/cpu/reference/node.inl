// node: the pass over nodes of an explicit step, from the forces of all ranges to velocities and displacements,
//   v' = d (v + dt f / m + dt g), v <- walls(v'), u <- u + dt (v' + share (v - v')), d = exp(-damping dt)        (E115)
// Walls act on the nodes that would be inside of them after the step; share is the part of the step for which a node is
// in contact (world/step_contact.inl).

// Sets f to a vector field that ranges have scattered to nodes o, o + 1, ...: the sum of its arrays in their slabs
// (scatter buffers), each shifted as its cells reach the nodes. n: the vector of nodes with o; field: its number.
CQ_INLINE void given_at(const cq_scene *s, const cq_nodes *n, const int field, const int64_t o, Real f[CQ_DIM]) {
  EACH(i) f[i] = r_set((real)0);
  for (int32_t range = 0; n->ranges >> range; range++) {
    if (!(n->ranges >> range & 1)) continue;
    const Slab slab = slab_at(s, range, field);
    EACH(i) {
      const real *before = slab_array(&slab, 0, i) + o, *here = slab_array(&slab, 1, i) + o,
                 *after = slab_array(&slab, 2, i) + o;
      f[i] += r_loadu(before + 1) + r_loadu(here) + r_loadu(after - 1);
    }
  }
}

// ---- walls ----------------------------------------------------------------------------------------------------------

// Returns a number above 0 in lanes whose nodes, at places x, may be inside of wall w, or come to it within the
// distance `reach`. It is rough, but misses no node: step_contacts asks exactly.
CQ_INLINE Real wall_depth_near(const cq_scene *s, const int32_t w, const Real reach, const Real x[CQ_DIM]) {
  const cq_wall *wall = &s->model->walls[w];
  const wall_real *made = (const wall_real *)s->wall_place + 3 * w;
  const real *speed = wall_velocity_of(s, w), seconds = (real)seconds_of(s);
  Real y[CQ_DIM], inside = r_set((real)0), far = reach;
  EACH(i) y[i] = x[i];
  if (wall->moves) {
    real square = (real)0;
    EACH(i) y[i] -= seconds * speed[i] + (real)made[i];
    EACH(i) square = square + speed[i] * speed[i];
    if (square > (real)0) far += (real)s->model->dt * s_sqrt(square);
  }
  if (wall->shape == CQ_WALL_HALF_SPACE) {
    EACH(i) inside += (real)wall->normal[i] * ((real)wall->point[i] - y[i]);
    inside += far;
  } else if (wall->shape == CQ_WALL_BOX && wall->hollow) {
    inside = (real)wall->lower[0] - y[0];
    EACH(i) inside = r_max(inside, r_max((real)wall->lower[i] - y[i], y[i] - (real)wall->upper[i]));
    inside += far;
  } else if (wall->shape == CQ_WALL_BOX) {
    Real outside = (real)wall->lower[0] - y[0];
    EACH(i) outside = r_max(outside, r_max((real)wall->lower[i] - y[i], y[i] - (real)wall->upper[i]));
    inside = far - outside;
  } else if (wall->shape == CQ_WALL_SPHERE) {
    Real square = r_set((real)0);
    EACH(i) square += (y[i] - (real)wall->point[i]) * (y[i] - (real)wall->point[i]);
    const Real limit = r_max(wall->hollow ? (real)wall->radius - far : (real)wall->radius + far, r_set((real)0));
    inside = wall->hollow ? square - limit * limit : limit * limit - square;
  } else {
    inside = (real)s->reference.highest[w] + far - y[1];
  }
  return inside;
}

// the contacts of one node in a step
typedef struct {
  Contacts all;
  real v[CQ_DIM];                 // velocity of the node before them
  StepContact step[CONTACTS];
} NodeContacts;

// (E115) Sets c to a node's contacts in a step, its pin alone or walls. place: where it is; v: velocity without them.
CQ_INLINE void contacts_of_node(const cq_scene *s, const StepWalls *walls, const int64_t node,
                                const wall_real place[3], const real v[CQ_DIM], NodeContacts *c) {
  const int32_t pin = s->reference.pin[node];
  wall_real after[3] = {place[0], place[1], place[2]};
  EACH(i) after[i] = after[i] + s->model->dt * (wall_real)v[i];
  EACH(i) c->v[i] = v[i];
  c->all.count = 0;
  EACH(i) c->all.x[i] = (real)place[i];
  c->all.mass = ((const real *)s->reference.mass)[node];
  if (pin) {
    c->step[0].wall = pin;
    c->step[0].lands = 0;
    real *normal = contacts_add(&c->all, pin);
    EACH(i) normal[i] = (real)0;
    return;
  }
  for (int32_t w = 0; w < walls->count; w++) {
    StepContact *of = c->step + c->all.count;
    const int32_t found = step_contacts(walls, w, place, after, of);
    for (int32_t k = 0; k < found; k++) {
      real *normal = contacts_add(&c->all, w);
      EACH(i) normal[i] = of[k].normal[i];
    }
  }
}

// (E115) Applies contact k of a node to `mean`, its mean velocity in the step, by which it is displaced.
CQ_INLINE void apply_contact_in_step(const cq_scene *s, const StepWalls *walls, const NodeContacts *c, const int k,
                                     real mean[CQ_DIM]) {
  const real still[CQ_DIM] = {(real)0, (real)0};
  const ContactLaw law = contact_law(s, &c->all, k, still);
  step_contact(walls, &c->step[k], &law, c->v, mean);
}

// Returns a number above 0 in the lanes from node o on that have mass and that walls or pins may hold in the step. n:
// the vector of nodes with o; x: places, v: velocities before walls.
CQ_INLINE Real held_near(const cq_scene *s, const cq_nodes *n, const int64_t o, const Real mass, const Real x[CQ_DIM],
                         const Real v[CQ_DIM]) {
  Real near = r_set((real)-1), way = r_set((real)0);
  EACH(i) way += r_abs(v[i]);
  way = (real)s->model->dt * way - (real)(0.49 * s->model->dx);
  for (int32_t w = 0; w < s->model->wall_count; w++) near = r_max(near, wall_depth_near(s, w, way, x));
  if (n->pinned) {
    real lane[CQ_LANES] __attribute__((aligned(64)));
    for (int l = 0; l < CQ_LANES; l++) lane[l] = (real)(s->reference.pin[o + l] != 0);
    near = r_max(near, r_load(lane));
  }
  return r_pick(mass, near, r_set((real)-1));
}

// Sets place to where a node is in the state `in`: undeformed place plus displacement.
CQ_INLINE void place_of_node(const cq_scene *s, const cq_slice *in, const int64_t node, wall_real place[3]) {
  place[2] = 0;
  EACH(i)
    place[i] = (wall_real)nodes_of(s, s->reference.rest, i)[node] + (wall_real)nodes_of(s, in->nodes, U + i)[node];
}

// CQ_LANES nodes. near: of held_near; v: velocities before their contacts, then after them; mean: mean ones in the step
typedef struct {
  real near[CQ_LANES], v[CQ_DIM][CQ_LANES], mean[CQ_DIM][CQ_LANES];
} __attribute__((aligned(64))) HeldLanes;

// (E115) Applies walls and pins to those of CQ_LANES nodes from o on that are near one, and adds their impulses to
// those of the block, if they are read. in: the state before the step.
CQ_RARE void hold_nodes(cq_scene *s, const cq_slice *in, const int64_t o, HeldLanes *lanes, const int32_t block) {
  const StepWalls walls = walls_of(s);
  for (int l = 0; l < CQ_LANES; l++) {
    if (!(lanes->near[l] > (real)0)) continue;
    wall_real place[3];
    NodeContacts contacts;
    real v[CQ_DIM], mean[CQ_DIM];
    EACH(i) v[i] = mean[i] = lanes->v[i][l];
    place_of_node(s, in, o + l, place);
    contacts_of_node(s, &walls, o + l, place, v, &contacts);
    if (!contacts.all.count) continue;       // the mean velocity of a carrier stays as it is
    for (int k = 0; k < contacts.all.count; k++) {
      apply_contact_in_step(s, &walls, &contacts, k, mean);
      if (s->impulse_out)
        contact_and_measure(s, &contacts.all, k, v, impulse_of(s, block));
      else
        apply_contact(s, &contacts.all, k, v);
    }
    EACH(i) lanes->v[i][l] = v[i];
    EACH(i) lanes->mean[i][l] = mean[i];
  }
}

// ---- the pass -------------------------------------------------------------------------------------------------------

// (E115) Sets v to the velocities of nodes o, o + 1, ... by forces, gravity and damping, before walls; 0 for a node
// without mass. n: the vector of nodes with o; in: the state before the step.
CQ_INLINE void free_velocity(const cq_scene *s, const cq_slice *in, const cq_nodes *n, const int64_t o,
                             const Real mass, Real v[CQ_DIM]) {
  const cq_reference *r = &s->reference;
  const real dt = (real)s->model->dt, loss = loss_of(s), *gravity = (const real *)s->globals;
  const Real by = dt * r_load((const real *)r->inverse + o);
  Real f[CQ_DIM];
  given_at(s, n, 0, o, f);
  if (r->push) EACH(i) f[i] += r_load((const real *)r->push + i * r->node_count + o);
  EACH(i) v[i] = r_load(nodes_of(s, in->nodes, W + i) + o) + by * f[i] + dt * gravity[i];
  EACH(i) v[i] = r_pick(mass, v[i] + loss * v[i], r_set((real)0));
}

// What a pass over nodes finds: squares of the largest speed, and of that of nodes which take part on the spatial grid;
// and 0 as long as everything is finite.
typedef struct {
  Real fastest, carrier, poison;
} NodesFound;

// A pass over the nodes of a block, from one state to the next. record: of velocities before the walls, or NULL.
typedef struct {
  const cq_slice *in;
  cq_slice *out;
  void *record;
  int32_t block;
} NodesMove;

// (E115) Ends a step of nodes o, o + 1, ... with velocities v, which m->record takes if not NULL: applies walls and
// pins to v, moves displacements, and writes both to the state after it. n: the vector of nodes with o. Updates found.
CQ_INLINE void hold_and_place(cq_scene *s, const NodesMove *m, const cq_nodes *n, const int64_t o, Real v[CQ_DIM],
                              NodesFound *found) {
  const cq_reference *r = &s->reference;
  const cq_slice *in = m->in;
  const int64_t nodes = r->node_count;
  const real dt = (real)s->model->dt;
  const Real mass = r_load((const real *)r->mass + o);
  Real u[CQ_DIM], x[CQ_DIM], mean[CQ_DIM];
  EACH(i) u[i] = r_load(nodes_of(s, in->nodes, U + i) + o);
  EACH(i) x[i] = r_load(nodes_of(s, r->rest, i) + o) + u[i];
  if (m->record) EACH(i) r_store((real *)m->record + i * nodes + o, v[i]);
  const Real near = held_near(s, n, o, mass, x, v);
  EACH(i) mean[i] = v[i];
  if (r->node_shift) EACH(i) mean[i] += r_load((const real *)r->node_shift + i * nodes + o);
  if (any_above(near)) {
    HeldLanes lanes;
    EACH(i) r_store(lanes.v[i], v[i]);
    EACH(i) r_store(lanes.mean[i], mean[i]);
    r_store(lanes.near, near);
    hold_nodes(s, in, o, &lanes, m->block);
    EACH(i) v[i] = r_load(lanes.v[i]);
    EACH(i) mean[i] = r_load(lanes.mean[i]);
  }
  Real square = r_set((real)0), moved = square;
  EACH(i) square += v[i] * v[i];
  EACH(i) moved += mean[i] * mean[i];
  found->fastest = r_max(found->fastest, square);
  if (r->carried)
    found->carrier = r_max(found->carrier, r_pick(r_load((const real *)r->carried + o), moved, r_set((real)0)));
  EACH(i) {
    const Real next = u[i] + dt * mean[i];
    r_store((real *)m->out->nodes + (U + i) * nodes + o, next);
    r_store((real *)m->out->nodes + (W + i) * nodes + o, v[i]);
    found->poison += (real)0 * next;
  }
}

// At the end of a pass over a block's nodes: sets the speeds in found from `all`, found->bad to 1 if something is not
// finite.
CQ_INLINE void nodes_found(const NodesFound *all, cq_found *found) {
  if (!r_finite(all->poison)) found->bad = 1;
  found->fastest = sqrt((double)s_value(-r_smallest(-all->fastest)));
  found->carrier = sqrt((double)s_value(-r_smallest(-all->carrier)));
}

// (E115) The pass over the nodes of a block in an explicit step: from the forces in the slabs and the state `in` to the
// state `out`. record: takes velocities before the walls {dim, nodes}, or NULL.
static void move(cq_scene *s, const cq_slice *in, cq_slice *out, void *record, int32_t block, cq_found *found) {
  const cq_reference *r = &s->reference;
  const NodesMove m = {in, out, record, block};
  NodesFound all = {r_set((real)0), r_set((real)0), r_set((real)0)};
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      Real v[CQ_DIM];
      free_velocity(s, in, &r->nodes[k], o, r_load((const real *)r->mass + o), v);
      hold_and_place(s, &m, &r->nodes[k], o, v, &all);
    }
  nodes_found(&all, found);
}

// ---- in two parts, around the pass over nodes of the spatial grid ---------------------------------------------------

// The part of a step's record with the velocities {dim, nodes} of nodes before the spatial grid changes them.
CQ_INLINE real *free_part(const cq_scene *s, const void *record) {
  return (real *)record + CQ_DIM * s->reference.node_count;
}

// Sets r->node_place to where the nodes of a block are in the state `in`, for their stencils on the spatial grid.
static void move_places(cq_scene *s, const cq_slice *in, int32_t block) {
  const cq_reference *r = &s->reference;
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      EACH(i)
        r_store((real *)r->node_place + i * r->node_count + o,
                r_load(nodes_of(s, r->rest, i) + o) + r_load(nodes_of(s, in->nodes, U + i) + o));
    }
}

// First part of `move` in a world that also has particles on the spatial grid: sets r->node_velocity of a block's
// nodes, by the forces in the slabs, before walls; copies it to record, if not NULL. in: the state before the step.
static void move_free(cq_scene *s, const cq_slice *in, void *record, int32_t block) {
  const cq_reference *r = &s->reference;
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      Real v[CQ_DIM];
      free_velocity(s, in, &r->nodes[k], o, r_load((const real *)r->mass + o), v);
      EACH(i) r_store((real *)r->node_velocity + i * r->node_count + o, v[i]);
      if (record) EACH(i) r_store(free_part(s, record) + i * r->node_count + o, v[i]);
    }
}

// Second part of `move`: from r->node_velocity, which the spatial grid has changed, to the state `out` after the step;
// arguments as of `move`.
static void move_held(cq_scene *s, const cq_slice *in, cq_slice *out, void *record, int32_t block, cq_found *found) {
  const cq_reference *r = &s->reference;
  const NodesMove m = {in, out, record, block};
  NodesFound all = {r_set((real)0), r_set((real)0), r_set((real)0)};
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      Real v[CQ_DIM];
      EACH(i) v[i] = r_load((const real *)r->node_velocity + i * r->node_count + o);
      hold_and_place(s, &m, &r->nodes[k], o, v, &all);
    }
  nodes_found(&all, found);
}
