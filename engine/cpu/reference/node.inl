// node: from the forces of all ranges to the velocities and displacements of nodes,
//   v <- walls(d (v + dt f / m + dt g)), u <- u + dt v, d = exp(-damping dt)                                     (E115)
// Walls act on nodes where these are now. They begin half a cell later, for the outermost nodes stand as far outside of
// the surface (layout.c).

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

CQ_INLINE double wall_slack(const cq_scene *s) { return -0.5 * s->model->dx + 1e-6 * s->model->dx; }

// How far nodes are inside of a wall, above 0 where it may hold them; x: their places. In float, and so that no node is
// missed: contacts_of_node asks exactly.
CQ_INLINE Real wall_depth(const cq_scene *s, const int32_t w, const Real x[CQ_DIM]) {
  const cq_wall *wall = &s->model->walls[w];
  const wall_real *made = (const wall_real *)s->wall_place + 3 * w;
  const real *speed = wall_velocity_of(s, w);
  const real depth = (real)(0.49 * s->model->dx);
  Real y[CQ_DIM], inside = r_set((real)0);
  EACH(i) y[i] = x[i];
  if (wall->moves) EACH(i) y[i] -= (real)((real)seconds_of(s) * speed[i] + (real)made[i]);
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

// The contacts of one node. place: where it is.
CQ_INLINE void contacts_of_node(const cq_scene *s, const int64_t node, const wall_real place[3], Contacts *contacts) {
  const int32_t pin = s->reference.pin[node];
  contacts->count = 0;
  contacts->place[2] = 0;
  for (int i = 0; i < CQ_DIM; i++) contacts->place[i] = place[i];
  EACH(i) contacts->x[i] = (real)place[i];
  contacts->mass = ((const real *)s->reference.mass)[node];
  if (pin) {
    real *normal = contacts_add(contacts, pin);
    EACH(i) normal[i] = (real)0;
    return;
  }
  for (int32_t w = 0; w < s->model->wall_count; w++) {
    wall_real x[3], normals[3][3];
    x[2] = 0;
    EACH(i) x[i] = place[i];
    if (s->model->walls[w].moves) place_relative_to(s, w, place, x);
    const int32_t count = wall_normals(&s->model->walls[w], CQ_DIM, wall_slack(s), x, normals);
    for (int32_t k = 0; k < count; k++) {
      real *normal = contacts_add(contacts, w);
      EACH(i) normal[i] = (real)normals[k][i];
    }
  }
}

// Above 0 in the lanes from node o on that have mass and that walls or pins may hold.
CQ_INLINE Real held_near(const cq_scene *s, const cq_nodes *n, const int64_t o, const Real mass,
                         const Real x[CQ_DIM]) {
  Real near = r_set((real)-1);
  for (int32_t w = 0; w < s->model->wall_count; w++) near = r_max(near, wall_depth(s, w, x));
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

// velocities of CQ_LANES nodes after their contacts; near: as held_near
CQ_RARE void hold_nodes(cq_scene *s, const cq_slice *in, const int64_t o, const real *near, real *velocity[CQ_DIM],
                        const int32_t block) {
  for (int l = 0; l < CQ_LANES; l++) {
    if (!(near[l] > (real)0)) continue;
    wall_real place[3];
    Contacts contacts;
    place_of_node(s, in, o + l, place);
    contacts_of_node(s, o + l, place, &contacts);
    if (!contacts.count) continue;
    real v[CQ_DIM];
    EACH(i) v[i] = velocity[i][l];
    if (s->impulse_out)
      contact_and_measure_node(s, &contacts, v, impulse_of(s, block));
    else
      for (int k = 0; k < contacts.count; k++) apply_contact(s, &contacts, k, v);
    EACH(i) velocity[i][l] = v[i];
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
      const Real near = held_near(s, n, o, mass, x);
      if (any_above(near)) {
        real *to[CQ_DIM], lanes[CQ_LANES] __attribute__((aligned(64)));
        EACH(i) to[i] = (real *)out->data + (W + i) * nodes + o;
        EACH(i) r_store(to[i], v[i]);
        r_store(lanes, near);
        hold_nodes(s, in, o, lanes, to, block);
        EACH(i) v[i] = r_load(to[i]);
      }
      Real square = r_set((real)0);
      EACH(i) square += v[i] * v[i];
      fastest = r_max(fastest, square);
      EACH(i) {
        const Real next = u[i] + dt * v[i];
        r_store((real *)out->data + (U + i) * nodes + o, next);
        r_store((real *)out->data + (W + i) * nodes + o, v[i]);
        poison += (real)0 * next;   // stays zero unless something is not finite
      }
    }
  if (!r_finite(poison)) found->bad = 1;
  found->fastest = sqrt((double)s_value(-r_smallest(-fastest)));
}
