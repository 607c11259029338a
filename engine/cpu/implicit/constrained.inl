// constrained: the nodes that walls and pins may hold in a step of backward Euler, and what they leave free of a
// velocity.
// Contacts of a node are taken from the last to the first, as the explicit step leaves the last word to the last one:
// each may still fix what those before it left free.

typedef struct {
  int64_t node, record;      // in the window, and in a grid record
  int32_t place[CQ_DIM];     // of the node, of the grid of the world
  int32_t first, count;      // contacts
  uint64_t active, touching; // bits of contacts: those that hold, and those that the last trial was stopped by
  uint64_t kept;             // those that held where the method had converged
} ConstrainedNode;

typedef struct {
  int32_t wall;              // below 0: a pin
  real normal[CQ_DIM];
  real impulse;              // by which the wall presses, where it has friction
  int32_t released;          // times that it let go although the method had converged
  // on reference grids: does the node come to the wall in the step? At most with this speed; what the gap to the wall
  // changes by with the place of the node
  int32_t lands;
  real approach, slope[CQ_DIM];
} NodeContact;

// Node k of those of a block that walls or pins may hold.
CQ_INLINE ConstrainedNode *constrained_node(const cq_constrained_nodes *h, const int32_t k) {
  return (ConstrainedNode *)h->node + k;
}
// Contact k of a constrained node.
CQ_INLINE NodeContact *node_contact(const cq_constrained_nodes *h, const ConstrainedNode *n, const int32_t k) {
  return (NodeContact *)h->contact + n->first + k;
}

// The kind of contact (CQ_CONTACT_...) of a contact's wall; a pin is sticky.
CQ_INLINE int contact_kind(const cq_scene *s, const NodeContact *c) {
  return c->wall < 0 ? CQ_CONTACT_STICKY : s->model->walls[c->wall].kind;
}
// Does a contact of this kind let go of a node that moves away? 1 yes, 0 no.
CQ_INLINE int lets_go(const int kind) { return kind != CQ_CONTACT_STICKY && kind != CQ_CONTACT_SLIP; }
// Does a contact of this kind hold all components of the velocity, and not the normal one alone? 1 yes, 0 no.
CQ_INLINE int holds_all(const int kind) { return kind == CQ_CONTACT_STICKY || kind == CQ_CONTACT_HOLD; }

// May a contact let go of its node within the step? 0 no, else yes.
CQ_INLINE int may_let_go(const cq_scene *s, const NodeContact *c) { return c->lands || lets_go(contact_kind(s, c)); }

// The velocity w that a contact imposes on a node: that of the wall, 0 for a pin; for a wall that the node may only
// reach within the step, less the allowed speed of approach along the normal.
CQ_INLINE void contact_velocity(const cq_scene *s, const NodeContact *c, real w[CQ_DIM]) {
  EACH(i) w[i] = c->wall < 0 ? (real)0 : wall_velocity_of(s, c->wall)[i];
  if (c->lands) EACH(i) w[i] = w[i] - c->approach * c->normal[i];
}

// What is left free at a node, as a projection; each contact takes its part of it.
typedef struct {
  real free[CQ_DIM][CQ_DIM];
} Freedom;

// Sets f to all directions.
CQ_INLINE void freedom_all(Freedom *f) { EACH(i) EACH(j) f->free[i][j] = (real)(i == j); }

// Sets out to the projection of x onto the directions in which a node's contacts leave it free.
CQ_INLINE void freedom_apply(const Freedom *f, const real x[CQ_DIM], real out[CQ_DIM]) {
  EACH(i) {
    out[i] = (real)0;
    EACH(j) out[i] = out[i] + f->free[i][j] * x[j];
  }
}

// Sets along to the part of a normal n in the directions that are free; returns its square, 0 where nothing is free.
CQ_INLINE real freedom_along(const Freedom *f, const real n[CQ_DIM], real along[CQ_DIM]) {
  real square = (real)0;
  freedom_apply(f, n, along);
  EACH(i) square = square + along[i] * along[i];
  return square > (real)1e-8 ? square : (real)0;
}

// Changes v, within the directions that are free, so that it satisfies a contact with the wall velocity w. all: 1, the
// contact holds all components; 0, the normal one. take: 1, those directions are then no longer free.
CQ_INLINE void contact_keep(const NodeContact *c, const int all, const real w[CQ_DIM], Freedom *f, real v[CQ_DIM],
                            const int take) {
  real along[CQ_DIM], lack[CQ_DIM], part[CQ_DIM];
  EACH(i) lack[i] = w[i] - v[i];
  if (all) {
    freedom_apply(f, lack, part);
    EACH(i) v[i] = v[i] + part[i];
    if (take) EACH(i) EACH(j) f->free[i][j] = (real)0;
    return;
  }
  const real square = freedom_along(f, c->normal, along);
  if (!(square > (real)0)) return;
  real normal_lack = (real)0;
  EACH(i) normal_lack = normal_lack + lack[i] * c->normal[i];
  EACH(i) v[i] = v[i] + normal_lack / square * along[i];
  if (take) EACH(i) EACH(j) f->free[i][j] = f->free[i][j] - along[i] * along[j] / square;
}

// Changes the velocity v of a node so that it satisfies all contacts that hold; sets f to what they leave free.
CQ_INLINE void contacts_keep(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n, Freedom *f,
                             real v[CQ_DIM]) {
  freedom_all(f);
  for (int32_t k = n->count - 1; k >= 0; k--) {
    if (!(n->active >> k & 1)) continue;
    const NodeContact *c = node_contact(h, n, k);
    real w[CQ_DIM];
    contact_velocity(s, c, w);
    contact_keep(c, holds_all(contact_kind(s, c)), w, f, v, 1);
  }
}

// Does a node with velocity v move into a wall, or along it? 1 yes, 0 no. Along it: its speed away from the wall is
// below a billionth of a cell per step, and rounding. A node that another wall stops may move exactly along this one,
// and whether this one holds it too must not depend on the last bit.
CQ_INLINE int meets_wall(const cq_scene *s, const NodeContact *c, const real v[CQ_DIM]) {
  const double rounding = sizeof(real) == 4 ? 4e-6 : 1e-14;
  real w[CQ_DIM], separation_speed = (real)0;
  double slack = 1e-9 * s->model->dx / s->model->dt;
  contact_velocity(s, c, w);
  EACH(i) {
    separation_speed = separation_speed + (v[i] - w[i]) * c->normal[i];
    slack += rounding * (fabs(s_value(v[i])) + fabs(s_value(w[i])));
  }
  return s_value(separation_speed) < slack;
}

// Stops the velocity v of a node at walls that it would enter, beside the contacts that hold already, and notes these
// walls in n->touching. A contact that holds all components while it is pressed does so only once the residual has
// said so. One wall may turn a node against another one, so that all are asked until none objects; a direction that
// one has stopped stays as it is when another stops the node.
CQ_INLINE void contacts_stop(const cq_scene *s, const cq_constrained_nodes *h, ConstrainedNode *n, real v[CQ_DIM]) {
  Freedom f;
  contacts_keep(s, h, n, &f, v);
  n->touching = 0;
  for (uint64_t before = ~(uint64_t)0; before != n->touching;) {
    before = n->touching;
    for (int32_t k = n->count - 1; k >= 0; k--) {
      const NodeContact *c = node_contact(h, n, k);
      if (((n->active | n->touching) >> k & 1) || !meets_wall(s, c, v)) continue;
      real w[CQ_DIM];
      contact_velocity(s, c, w);
      contact_keep(c, 0, w, &f, v, 1);
      n->touching |= (uint64_t)1 << k;
    }
  }
}

// Sets share to the part of contact `which` in the constraint forces on a node. x is dual to a velocity (a force or a
// gradient); its part in held directions is a sum of forces along the contacts' normals, of which this is one; for a
// contact that holds all components, the whole force.
CQ_INLINE void contact_share(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                             const int which,
                             const real x[CQ_DIM], real share[CQ_DIM]) {
  // v = ... + along_k (n_k.(w_k - v)) / |along_k|^2, k from the last to the first; back from the first to the last
  real left[CQ_DIM];
  EACH(i) {
    left[i] = x[i];
    share[i] = (real)0;
  }
  for (int k = 0; k <= which; k++) {
    if (!(n->active >> k & 1)) continue;
    const NodeContact *c = node_contact(h, n, k);
    Freedom f;
    freedom_all(&f);
    for (int32_t q = n->count - 1; q > k; q--) {
      const NodeContact *other = node_contact(h, n, q);
      real still[CQ_DIM] = {(real)0}, w[CQ_DIM] = {(real)0};
      if (n->active >> q & 1) contact_keep(other, holds_all(contact_kind(s, other)), w, &f, still, 1);
    }
    EACH(i) share[i] = (real)0;
    if (holds_all(contact_kind(s, c))) {
      freedom_apply(&f, left, share);
    } else {
      real along[CQ_DIM], scale = (real)0;
      const real square = freedom_along(&f, c->normal, along);
      EACH(i) scale = scale + along[i] * left[i];
      if (square > (real)0) EACH(i) share[i] = scale / square * c->normal[i];
    }
    EACH(i) left[i] = left[i] - share[i];
  }
}

// Makes room for `wanted` entries of `size` bytes in an array, and keeps its contents. 1, or 0 without memory.
static int constrained_reserve(void **array, int32_t *capacity, const int32_t wanted, const size_t size) {
  if (*capacity >= wanted) return 1;
  const int32_t room = wanted + wanted / 2 + 64;
  void *larger = cq_alloc((size_t)room, size, "contacts of the grid");
  if (!larger) return 0;
  if (*array) memcpy(larger, *array, (size_t)*capacity * size);
  cq_free(*array);
  *array = larger;
  *capacity = room;
  return 1;
}

// Adds node z of a column with its contacts to the constrained nodes of a block. 1, or 0 without memory.
static int constrained_add(cq_constrained_nodes *h, const cq_column *column, const int32_t z,
                           const Contacts *contacts) {
  if (!constrained_reserve(&h->node, &h->capacity, h->count + 1, sizeof(ConstrainedNode)) ||
      !constrained_reserve(&h->contact, &h->contact_capacity, h->contacts + contacts->count, sizeof(NodeContact)))
    return 0;
  ConstrainedNode *n = constrained_node(h, h->count++);
  memset((void *)n, 0, sizeof *n);
  n->node = column->node + z;
  n->record = column->record + z;
  n->place[0] = column->x;
  n->place[1] = column->y;
  n->place[CQ_DIM - 1] = column->z + z;
  n->first = h->contacts;
  n->count = contacts->count;   // at most 64, which the model sees to
  h->contacts += n->count;
  for (int k = 0; k < n->count; k++) {
    NodeContact *c = node_contact(h, n, k);
    c->wall = contacts->wall[k];
    EACH(i) c->normal[i] = contacts->normal[k][i];
    c->impulse = (real)0;
    c->released = c->lands = 0;
  }
  return 1;
}

static void find_constrained_reference(cq_scene *s, int32_t block);

// Lists the nodes of a block with mass that walls or pins may hold in this step. Without memory the sum CHANGED is
// infinite.
static void find_constrained(cq_scene *s, const int32_t block) {
  if (cq_is_reference(s->model)) {
    find_constrained_reference(s, block);
    return;
  }
  const cq_arrangement *a = s->arrangement;
  cq_constrained_nodes *h = &s->implicit.constrained[block];
  const real *momentum = grid_vector(s, CQ_GRID_MOMENTUM);
  h->count = h->contacts = 0;
  for (int32_t c = a->column_block[block]; c < a->column_block[block + 1]; c++) {
    const cq_column *column = &a->columns[c];
    if (!column_has_contacts(s, column)) continue;
    int64_t entry = column->wall_begin;
    Contacts contacts;
    for (int32_t z = 0; (z = next_constrained(s, column, z, &entry, &contacts)) < column->count; z++) {
      if (!contacts.count || !(momentum[4 * (column->node + z) + CQ_DIM] > (real)0)) continue;
      if (constrained_add(h, column, z, &contacts)) continue;
      s->implicit.sum[0][block][CQ_SUM_CHANGED] = INFINITY;   // read by implicit.c
      return;
    }
  }
}
