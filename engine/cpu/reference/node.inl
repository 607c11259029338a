// node: from the forces of all ranges to the velocities and displacements of nodes,
//   v' = d (v + dt f / m + dt g), v <- walls(v'), u <- u + dt (v' + share (v - v')), d = exp(-damping dt)        (E115)
// Walls act on the nodes that would be inside of them after the step; share is the part of the step for which a node is
// in contact, so that it stops at the wall, wherever it comes from. A node that stopped where a step happens to end
// would give gradients that are exact and of no use: those of where it ends by where it began are then 1, between jumps
// back. Walls begin half a cell later, for the outermost nodes stand as far outside of the surface (layout.c).

// sum of the slabs of a vector field at nodes from o on, shifted as cells reach them
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

// resting_gap: how far rounding moves a node that rests on a wall. wall_slack widens walls by it, less half a cell.
CQ_INLINE double resting_gap(const cq_scene *s) { return 1e-6 * s->model->dx; }
CQ_INLINE double wall_slack(const cq_scene *s) { return -0.5 * s->model->dx + resting_gap(s); }

// Does a wall act on what leaves it too?
CQ_INLINE int is_two_sided(const cq_wall *wall) {
  return wall->kind == CQ_CONTACT_STICKY || wall->kind == CQ_CONTACT_SLIP;
}

// How far nodes are inside of a wall, above 0 where it may hold them; x: their places seconds after the place of the
// wall was made. In float, and so that no node is missed: contacts_of_node asks exactly.
CQ_INLINE Real wall_depth_near(const cq_scene *s, const int32_t w, const real seconds, const Real x[CQ_DIM]) {
  const cq_wall *wall = &s->model->walls[w];
  const wall_real *made = (const wall_real *)s->wall_place + 3 * w;
  const real *speed = wall_velocity_of(s, w);
  const real depth = (real)(0.49 * s->model->dx);
  Real y[CQ_DIM], inside = r_set((real)0);
  EACH(i) y[i] = x[i];
  if (wall->moves) EACH(i) y[i] -= (real)(seconds * speed[i] + (real)made[i]);
  if (wall->shape == CQ_WALL_HALF_SPACE) {
    EACH(i) inside += (real)wall->normal[i] * ((real)wall->point[i] - y[i]);
    inside -= depth;
  } else if (wall->shape == CQ_WALL_BOX && wall->hollow) {
    inside = (real)wall->lower[0] - y[0];
    EACH(i) inside = r_max(inside, r_max((real)wall->lower[i] - y[i], y[i] - (real)wall->upper[i]));
    inside -= depth;
  } else if (wall->shape == CQ_WALL_BOX) {
    Real outside = (real)wall->lower[0] - y[0];
    EACH(i) outside = r_max(outside, r_max((real)wall->lower[i] - y[i], y[i] - (real)wall->upper[i]));
    inside = (real)0 - outside - depth;
  } else if (wall->shape == CQ_WALL_SPHERE) {
    Real square = r_set((real)0);
    EACH(i) square += (y[i] - (real)wall->point[i]) * (y[i] - (real)wall->point[i]);
    const double reach = wall->hollow ? wall->radius + 0.49 * s->model->dx : wall->radius - 0.49 * s->model->dx;
    const real limit = (real)(reach > 0 ? reach * reach : 0);
    inside = wall->hollow ? square - limit : limit - square;
  } else {
    inside = (real)s->reference.highest[w] - depth - y[1];
  }
  return inside;
}

typedef struct {
  Contacts all;
  real v[CQ_DIM];                 // of the node before them
  wall_real place[CONTACTS][3];   // of the node relative to the wall, where normal and depth are from
  wall_real depth[CONTACTS], slope[CONTACTS][3];   // how deep it is there, and the derivative of that by its place
  int lands[CONTACTS];            // does the node come to the wall in the step? Else it was there, and has no depth.
} NodeContacts;

// place: of the node now, or after the step, as a wall sees it; seconds: since the place of the wall was made
CQ_INLINE void seen_from_wall(const cq_scene *s, const int32_t w, const double seconds, const wall_real place[3],
                              wall_real x[3]) {
  x[2] = 0;
  EACH(i) x[i] = place[i];
  if (!s->model->walls[w].moves) return;
  const wall_real *made = (const wall_real *)s->wall_place + 3 * w;
  EACH(i) x[i] = x[i] - (seconds * (wall_real)wall_velocity_of(s, w)[i] + made[i]);
}

CQ_INLINE void node_contacts_add(const cq_scene *s, NodeContacts *c, const int32_t w, const int lands,
                                 const wall_real x[3], const wall_real n[3]) {
  const int at = c->all.count;
  c->lands[at] = lands;
  for (int i = 0; i < 3; i++) c->place[at][i] = x[i];
  if (lands) c->depth[at] = wall_depth(&s->model->walls[w], CQ_DIM, wall_slack(s), x, n, c->slope[at]);
  real *normal = contacts_add(&c->all, w);
  EACH(i) normal[i] = (real)n[i];
}

CQ_INLINE wall_real wall_dot(const wall_real a[3], const wall_real b[3]) {
  wall_real sum = 0;
  EACH(i) sum = sum + a[i] * b[i];
  return sum;
}

// A wall that is near a node: those of its normals that hold it already, and those that it comes to in the step.
CQ_INLINE void contacts_of_wall(const cq_scene *s, const int32_t w, const wall_real place[3],
                                const wall_real after[3], NodeContacts *c) {
  const cq_wall *wall = &s->model->walls[w];
  const int several = wall->shape == CQ_WALL_BOX && wall->hollow, solid = wall->shape == CQ_WALL_BOX && !wall->hollow;
  wall_real x[3], to[3], way[3] = {0}, held[3][3], normals[3][3];
  seen_from_wall(s, w, seconds_of(s), place, x);
  const int32_t held_count = wall_normals(wall, CQ_DIM, wall_slack(s) + resting_gap(s), x, held);
  for (int32_t k = 0; k < held_count; k++) node_contacts_add(s, c, w, 0, x, held[k]);
  if (held_count && !several) return;
  seen_from_wall(s, w, seconds_of(s) + s->model->dt, after, to);
  const int32_t count = wall_normals(wall, CQ_DIM, wall_slack(s), to, normals);
  EACH(i) way[i] = to[i] - x[i];
  // a box is entered by the face that the node comes from, although another may be nearer then
  if (count && solid) {
    const double reach = sqrt((double)s_value(wall_dot(way, way)));
    wall_normals(wall, CQ_DIM, wall_slack(s) + reach, x, normals);
  }
  for (int32_t k = 0; k < count; k++) {
    int known = 0;
    for (int32_t j = 0; j < held_count; j++) known |= wall_dot(normals[k], held[j]) > 0.5;
    if (!known) node_contacts_add(s, c, w, 1, to, normals[k]);
  }
  // rounding may move a node off a wall that keeps it
  if (held_count || count || !is_two_sided(wall)) return;
  const int32_t kept = wall_normals(wall, CQ_DIM, wall_slack(s) + 1e-3 * s->model->dx, x, held);
  for (int32_t k = 0; k < kept; k++)
    if (!(wall_dot(way, held[k]) < 0)) node_contacts_add(s, c, w, 0, x, held[k]);
}

// The contacts of one node. place: where it is; v: with what velocity it would go on.
CQ_INLINE void contacts_of_node(const cq_scene *s, const int64_t node, const wall_real place[3], const real v[CQ_DIM],
                                NodeContacts *c) {
  const int32_t pin = s->reference.pin[node];
  wall_real after[3] = {place[0], place[1], place[2]};
  EACH(i) after[i] = after[i] + s->model->dt * (wall_real)v[i];
  EACH(i) c->v[i] = v[i];
  c->all.count = 0;
  EACH(i) c->all.x[i] = (real)place[i];
  c->all.mass = ((const real *)s->reference.mass)[node];
  if (pin) {
    c->lands[0] = 0;
    real *normal = contacts_add(&c->all, pin);
    EACH(i) normal[i] = (real)0;
    return;
  }
  for (int32_t w = 0; w < s->model->wall_count; w++) contacts_of_wall(s, w, place, after, c);
}

// For which share of a step does contact k hold a node? mean: its mean velocity in the step without this contact;
// towards: 0, or the speed towards the wall where the share depends on it. A wall that stays is reached at the same
// moment whatever the velocity that it gives.
CQ_INLINE real share_of_contact(const cq_scene *s, const NodeContacts *c, const int k, const real mean[CQ_DIM],
                                real *towards) {
  const real dt = (real)s->model->dt;
  real speed = (real)0, back = (real)0;
  *towards = (real)0;
  if (!c->lands[k]) return (real)1;
  const int32_t w = c->all.wall[k];
  const real *n = c->all.normal[k];
  EACH(i) speed = speed - n[i] * mean[i];
  if (s->model->walls[w].moves) EACH(i) speed = speed + n[i] * wall_velocity_of(s, w)[i];
  // contacts before this one may have held the node back on its way to where the depth is from
  EACH(i) back = back + n[i] * (mean[i] - c->v[i]);
  const real way = dt * speed, depth = (real)c->depth[k] - dt * back;
  if (!(depth > 0)) return (real)0;
  if (!(depth < way - (real)resting_gap(s))) return (real)1;
  *towards = speed;
  return depth / way;
}

// Contact k to the mean velocity in the step.
CQ_INLINE void apply_contact_in_step(const cq_scene *s, const NodeContacts *c, const int k, real mean[CQ_DIM]) {
  real held[CQ_DIM], towards;
  const real share = share_of_contact(s, c, k, mean, &towards);
  EACH(i) held[i] = mean[i];
  apply_contact(s, &c->all, k, held);
  EACH(i) mean[i] = mean[i] + share * (held[i] - mean[i]);
}

// Above 0 in the lanes from node o on that have mass and that walls or pins may hold; x: their places, v: velocities.
CQ_INLINE Real held_near(const cq_scene *s, const cq_nodes *n, const int64_t o, const Real mass, const Real x[CQ_DIM],
                         const Real v[CQ_DIM]) {
  const real dt = (real)s->model->dt, seconds = (real)seconds_of(s);
  Real near = r_set((real)-1), after[CQ_DIM];
  EACH(i) after[i] = x[i] + dt * v[i];
  for (int32_t w = 0; w < s->model->wall_count; w++) {
    near = r_max(near, wall_depth_near(s, w, seconds, x));
    near = r_max(near, wall_depth_near(s, w, seconds + dt, after));
  }
  if (n->pinned) {
    real lane[CQ_LANES] __attribute__((aligned(64)));
    for (int l = 0; l < CQ_LANES; l++) lane[l] = (real)(s->reference.pin[o + l] != 0);
    near = r_max(near, r_load(lane));
  }
  return r_pick(mass, near, r_set((real)-1));
}

CQ_INLINE void place_of_node(const cq_scene *s, const cq_slice *in, const int64_t node, wall_real place[3]) {
  place[2] = 0;
  EACH(i) place[i] = (wall_real)nodes_of(s, s->reference.rest, i)[node] + (wall_real)nodes_of(s, in->data, U + i)[node];
}

// CQ_LANES nodes: velocities before their contacts become those after, and mean those in the step.
typedef struct {
  real near[CQ_LANES], v[CQ_DIM][CQ_LANES], mean[CQ_DIM][CQ_LANES];
} __attribute__((aligned(64))) HeldLanes;

CQ_RARE void hold_nodes(cq_scene *s, const cq_slice *in, const int64_t o, HeldLanes *lanes, const int32_t block) {
  for (int l = 0; l < CQ_LANES; l++) {
    if (!(lanes->near[l] > (real)0)) continue;
    wall_real place[3];
    NodeContacts contacts;
    real v[CQ_DIM], mean[CQ_DIM];
    EACH(i) v[i] = mean[i] = lanes->v[i][l];
    place_of_node(s, in, o + l, place);
    contacts_of_node(s, o + l, place, v, &contacts);
    for (int k = 0; k < contacts.all.count; k++) {
      apply_contact_in_step(s, &contacts, k, mean);
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

// record {dim, nodes} takes velocities before the walls, or is NULL.
static void move(cq_scene *s, const cq_slice *in, cq_slice *out, void *record, int32_t block, cq_found *found) {
  const cq_reference *r = &s->reference;
  const int64_t nodes = r->node_count;
  const real dt = (real)s->model->dt, decay = decay_of(s), *gravity = (const real *)s->globals;
  Real poison = r_set((real)0), fastest = poison;
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const cq_nodes *n = &r->nodes[k];
      const int64_t o = n->node + h;
      const Real mass = r_load((const real *)r->mass + o), by = dt * r_load((const real *)r->inverse + o);
      Real f[CQ_DIM], v[CQ_DIM], u[CQ_DIM], x[CQ_DIM];
      given_at(s, n, 0, o, f);
      EACH(i) u[i] = r_load(nodes_of(s, in->data, U + i) + o);
      EACH(i) x[i] = r_load(nodes_of(s, r->rest, i) + o) + u[i];
      EACH(i) v[i] = decay * (r_load(nodes_of(s, in->data, W + i) + o) + by * f[i] + dt * gravity[i]);
      // a node without mass stays where it is
      EACH(i) v[i] = r_pick(mass, v[i], r_set((real)0));
      if (record) EACH(i) r_store((real *)record + i * nodes + o, v[i]);
      const Real near = held_near(s, n, o, mass, x, v);
      Real mean[CQ_DIM];
      EACH(i) mean[i] = v[i];
      if (any_above(near)) {
        HeldLanes lanes;
        EACH(i) r_store(lanes.v[i], v[i]);
        EACH(i) r_store(lanes.mean[i], v[i]);
        r_store(lanes.near, near);
        hold_nodes(s, in, o, &lanes, block);
        EACH(i) v[i] = r_load(lanes.v[i]);
        EACH(i) mean[i] = r_load(lanes.mean[i]);
      }
      Real square = r_set((real)0);
      EACH(i) square += v[i] * v[i];
      fastest = r_max(fastest, square);
      EACH(i) {
        const Real next = u[i] + dt * mean[i];
        r_store((real *)out->data + (U + i) * nodes + o, next);
        r_store((real *)out->data + (W + i) * nodes + o, v[i]);
        poison += (real)0 * next;   // stays zero unless something is not finite
      }
    }
  if (!r_finite(poison)) found->bad = 1;
  found->fastest = sqrt((double)s_value(-r_smallest(-fastest)));
}
