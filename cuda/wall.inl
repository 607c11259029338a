// wall: the contacts of one node of the grid with walls and pins, the impulse of each contact, and their adjoints. In
// scalar reals, because few nodes touch a wall.

// The globals of a scene: gravity {3}, decay in a step, friction {walls}, wall velocity {walls, 3}.
CQ_GPU const real *globals_of(const cq_frame *s, const int32_t scene) {
  return (const real *)s->globals + (int64_t)scene * s->global_stride;
}
// The gravity of a scene in this control step.
CQ_GPU const real *gravity_of(const cq_frame *s, const int32_t scene) {
  return (const real *)s->gravity + (int64_t)scene * s->gravity_stride;
}
// The friction coefficient of a wall in a scene.
CQ_GPU real friction_of(const cq_frame *s, const int32_t scene, const int32_t wall) {
  return globals_of(s, scene)[CQ_AT_FRICTION + wall];
}
// The three components of a wall's velocity in this control step.
CQ_GPU const real *wall_velocity_of(const cq_frame *s, const int32_t scene, const int32_t wall) {
  return (const real *)s->wall_velocity + (int64_t)scene * s->wall_stride + 3 * wall;
}

// The time at substep k since the walls of a scene took their present velocities.
CQ_GPU double wall_time_of(const cq_frame *s, const int32_t scene, const int32_t k) {
  return (double)(s->step + k - s->wall_step + (s->wall_age ? s->wall_age[scene] : 0)) * s->scales_8.dt;
}

// ---- contacts of a node ---------------------------------------------------------------------------------------------

// a node, and its entries in the wall map
typedef struct GridNode {
  int32_t at[3], scene;      // first axes and last, as the wall map counts: y is 0 in 2D
  double time;               // [time] since the walls took their present velocities
  const cq_wall_node *entry;
  int32_t count;             // entries
  int32_t pinned;            // the one entry is a pin, which overrides all walls
} GridNode;

// Can a wall or a pin hold nodes of this tile? Not 0: yes.
CQ_GPU int may_touch(const cq_frame *s, const cq_tile *tile) { return tile->has_walls || s->moving_wall_count; }

// Sets w to node n, counted through all tiles, in step k: its coordinates, scene, time, and the contacts that the wall
// map lists for it.
CQ_GPU void find_node(const cq_frame *s, const int64_t n, const int32_t k, GridNode *w) {
  const cq_tile *tile = &s->tiles[n / CQ_TILE_NODES];
  const int64_t entries = s->wall_entries[n];
  int at[CQ_DIM];
  node_at((int)(n % CQ_TILE_NODES), SIDE, at);
  w->at[0] = tile->lower[0] + at[0];
  w->at[1] = CQ_DIM == 3 ? tile->lower[1] + at[1] : 0;
  w->at[2] = tile->lower[LAST] + at[LAST];
  w->scene = tile->scene;
  w->time = wall_time_of(s, w->scene, k);
  w->entry = s->map.node + entries / CQ_ENTRIES;
  w->pinned = entries % CQ_ENTRIES == CQ_PIN_ENTRY;
  w->count = w->pinned ? 1 : (int32_t)(entries % CQ_ENTRIES);
}

typedef struct Contact {
  int32_t wall;              // below 0: a pin, as in cq_wall_node
  real normal[CQ_DIM];
} Contact;

// Sets x to the place of a node relative to a wall that moves: as if the wall stood where it began.
CQ_GPU void place_relative_to(const cq_frame *s, const GridNode *w, const int32_t wall, double x[3]) {
  const real *velocity = wall_velocity_of(s, w->scene, wall);
  const double *displacement = s->wall_place ? s->wall_place + 3 * ((int64_t)w->scene * s->wall_count + wall) : NULL;
  x[0] = w->at[0] * s->scales_8.dx;
  x[1] = w->at[1] * s->scales_8.dx;
  x[2] = 0;
  x[LAST] = w->at[2] * s->scales_8.dx;
  EACH(i) x[i] -= w->time * (double)velocity[i] + (displacement ? displacement[i] : 0);
}

// Sets *contact to contact j of a node and returns 1; returns 0 if it has fewer. Walls at rest come first, then walls
// that move, at their present place.
CQ_GPU int contact_of(const cq_frame *s, const GridNode *w, const int32_t j, Contact *contact) {
  if (j < w->count) {
    contact->wall = w->entry[j].wall;
    EACH(i) contact->normal[i] = (real)w->entry[j].normal[i];
    return 1;
  }
  if (!s->moving_wall_count || w->pinned) return 0;
  int32_t left = j - w->count;
  for (int32_t m = 0; m < s->wall_count; m++) {
    if (!s->walls[m].moves) continue;
    double x[3], normals[3][3];
    place_relative_to(s, w, m, x);
    const int32_t count = wall_normals(&s->walls[m], CQ_DIM, 1e-6 * s->scales_8.dx, x, normals);
    if (left < count) {
      contact->wall = m;
      EACH(i) contact->normal[i] = (real)normals[left][i];
      return 1;
    }
    left -= count;
  }
  return 0;
}

// The law of a contact: kind, friction, normal and velocity of its wall.
CQ_GPU ContactLaw law_of(const cq_frame *s, const int32_t scene, const Contact *c) {
  return {s->walls[c->wall].kind, friction_of(s, scene, c->wall), c->normal, wall_velocity_of(s, scene, c->wall)};
}

// Changes the velocity v of a node by one contact: it sticks, slides or is slowed by friction, by the wall's kind.
CQ_GPU void apply_contact(const cq_frame *s, const int32_t scene, const Contact *c, real v[CQ_DIM]) {
  const real still[3] = {0, 0, 0};
  if (c->wall < 0) {
    const ContactLaw pin = {CQ_CONTACT_STICKY, 0, c->normal, still};
    contact(&pin, v);
  } else {
    const ContactLaw law = law_of(s, scene, c);
    contact(&law, v);
  }
}

// Applies the first contacts of a node, at most `most`, to its velocity v, and returns how many it applied.
CQ_GPU int32_t apply_contacts(const cq_frame *s, const GridNode *w, const int32_t most, real v[CQ_DIM]) {
  Contact c;
  int32_t j = 0;
  for (; j < most && contact_of(s, w, j, &c); j++) apply_contact(s, w->scene, &c, v);
  return j;
}

// The velocity of node n, counted through all tiles, after all its contacts with walls and pins in engine step k. v:
// its velocity before them.
CQ_RARE Node node_contacts(const cq_frame *s, const int64_t n, const int32_t k, Node v) {
  GridNode w;
  find_node(s, n, k, &w);
  apply_contacts(s, &w, INT32_MAX, v.c);
  return v;
}

// ---- impulses -------------------------------------------------------------------------------------------------------

// Where the numbers of the impulse of a wall (0 or more), or of a group of pins (negative), begin among those of a
// scene.
CQ_GPU int32_t impulse_at(const cq_frame *s, const int32_t wall) {
  return (wall < 0 ? s->impulse_count : 0) + CONTACT_WIDTH * wall;
}

// Applies a contact of a node of this mass to its velocity v, and describes it in t for the impulse.
CQ_GPU void touch_of(const cq_frame *s, const GridNode *w, const Contact *c, const real mass, real v[CQ_DIM],
                     Touch *t) {
  t->mass = mass;
  t->x[0] = (real)(w->at[0] * s->scales_8.dx);
  t->x[1] = (real)(w->at[1] * s->scales_8.dx);
  t->x[LAST] = (real)(w->at[2] * s->scales_8.dx);
  EACH(i) t->normal[i] = c->normal[i];
  EACH(i) t->before[i] = v[i];
  apply_contact(s, w->scene, c, v);
  EACH(i) t->after[i] = v[i];
}

// Adjoint of the impulse of contact c at a node, whose dL/d(impulse) is in s->grad_impulse: returns the gradients of
// mass, normal, and the velocities before and after the contact. v: velocity before the contact, and mass.
CQ_RARE Touch impulse_adj(const cq_frame *s, const GridNode *w, const Contact *c, const Node v) {
  const double *given = s->grad_impulse + (int64_t)w->scene * s->impulse_count + impulse_at(s, c->wall);
  real after[CQ_DIM], grad_out[CONTACT_WIDTH];
  Touch t, grad = {};
  EACH(i) after[i] = v.c[i];
  touch_of(s, w, c, v.c[CQ_DIM], after, &t);
  for (int i = 0; i < CONTACT_WIDTH; i++) grad_out[i] = (real)given[i];
  contact_impulse_adj(&t, &grad, grad_out);
  return grad;
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

// gradients of a wall by one contact of a node
typedef struct WallGrad {
  real friction, velocity[CQ_DIM], place[CQ_DIM];
} WallGrad;

// (E22) Adds the gradient of a moving wall's normal at a node to the gradients of the wall's velocity and place.
CQ_GPU void turn_adj(const cq_frame *s, const GridNode *w, const int32_t wall, const ContactGrad *of, WallGrad *grad) {
  double x[3], grad_n[3] = {0, 0, 0}, grad_x[3] = {0, 0, 0};
  place_relative_to(s, w, wall, x);
  EACH(i) grad_n[i] = (double)of->n[i];
  wall_normals_adj(&s->walls[wall], CQ_DIM, x, grad_n, grad_x);
  EACH(i) grad->velocity[i] -= (real)(w->time * grad_x[i]);
  EACH(i) grad->place[i] = -(real)grad_x[i];
}

// Adjoint of apply_contact. v: velocity before the contact. grad_v: dL/dv after it becomes dL/dv before it. of:
// gradients of friction, wall velocity and normal are added to.
CQ_GPU void apply_contact_adj(const cq_frame *s, const GridNode *w, const Contact *c, const real v[CQ_DIM],
                              real grad_v[CQ_DIM], ContactGrad *of) {
  const real still[3] = {0, 0, 0};
  if (c->wall < 0) {
    const ContactLaw pin = {CQ_CONTACT_STICKY, 0, c->normal, still};
    contact_adj(&pin, v, grad_v, of);
  } else {
    const ContactLaw law = law_of(s, w->scene, c);
    contact_adj(&law, v, grad_v, of);
  }
}

// Reverses contact j of a node. v0: velocity before all contacts, and mass. grad: dL/dv after the contact becomes dL/dv
// before it, with dL/dm by way of the impulse beside it. grad_wall is written. Returns the wall; -1: there is none.
CQ_GPU int32_t reverse_contact(const cq_frame *s, const GridNode *w, const int32_t j, const Node *v0, Node *grad,
                        WallGrad *grad_wall) {
  Node v = *v0;
  ContactGrad of = {};
  Touch felt = {};
  Contact c;
  c.wall = -1;
  *grad_wall = {};
  if (j < 0 || !contact_of(s, w, j, &c)) return -1;
  apply_contacts(s, w, j, v.c);
  if (s->grad_impulse) {
    felt = impulse_adj(s, w, &c, v);
    EACH(i) grad->c[i] += felt.after[i];
    EACH(i) of.n[i] = felt.normal[i];
    grad->c[CQ_DIM] += felt.mass;
  }
  apply_contact_adj(s, w, &c, v.c, grad->c, &of);
  if (s->grad_impulse) EACH(i) grad->c[i] += felt.before[i];
  if (c.wall < 0) return -1;
  EACH(i) grad_wall->velocity[i] = of.w[i];
  grad_wall->friction = of.friction;
  if (s->walls[c.wall].moves) turn_adj(s, w, c.wall, &of, grad_wall);
  return c.wall;
}
