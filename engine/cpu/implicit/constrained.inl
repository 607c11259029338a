// constrained: constrained nodes, which walls or pins may hold in an implicit step, and the directions in which their
// active contacts leave a velocity free.
// Contacts of a node are applied from the last to the first, since in an explicit step the last one decides: each
// fixes only directions that those applied before it have left free.

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

// Constrained node number k, from 0, of a block's list h: a node with mass that walls or pins may hold.
CQ_INLINE ConstrainedNode *constrained_node(const cq_constrained_nodes *h, const int32_t k) {
  return (ConstrainedNode *)h->node + k;
}
// Contact number k, from 0, of a constrained node n of the list h.
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

// May a contact let go of its node within the step? 0 no: a pin, or a sticky or slipping wall that the node touches
// from the start; else yes.
CQ_INLINE int may_let_go(const cq_scene *s, const NodeContact *c) { return c->lands || lets_go(contact_kind(s, c)); }

// Sets w to the velocity that a contact imposes on its node: that of the wall, 0 for a pin. For a wall that the node
// may only reach within the step (c->lands) less the speed at which it may approach, along the normal.
CQ_INLINE void contact_velocity(const cq_scene *s, const NodeContact *c, real w[CQ_DIM]) {
  EACH(i) w[i] = c->wall < 0 ? (real)0 : wall_velocity_of(s, c->wall)[i];
  if (c->lands) EACH(i) w[i] = w[i] - c->approach * c->normal[i];
}

// The directions that contacts leave free at a node, as a projection; each contact removes its own.
typedef struct {
  real free[CQ_DIM][CQ_DIM];
} Freedom;

// Sets f to all directions: no contact holds the node.
CQ_INLINE void freedom_all(Freedom *f) { EACH(i) EACH(j) f->free[i][j] = (real)(i == j); }

// Sets out to the projection of x onto the directions in which a node's contacts leave it free.
CQ_INLINE void freedom_apply(const Freedom *f, const real x[CQ_DIM], real out[CQ_DIM]) {
  EACH(i) {
    out[i] = (real)0;
    EACH(j) out[i] = out[i] + f->free[i][j] * x[j];
  }
}

// Sets along to the part of a normal n in the free directions f. Returns its squared length, or 0 where that is next to
// 0: the contacts applied before hold this direction already.
CQ_INLINE real freedom_along(const Freedom *f, const real n[CQ_DIM], real along[CQ_DIM]) {
  real square = (real)0;
  freedom_apply(f, n, along);
  EACH(i) square = square + along[i] * along[i];
  return square > (real)1e-8 ? square : (real)0;
}

// Changes the velocity v of a node, within its free directions f, so that it satisfies contact c, which imposes the
// velocity w. all: 1, the contact holds all components; 0, the normal one. take: 1, its directions are removed from f.
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

// Changes the velocity v of a constrained node n of the list h so that it satisfies all active contacts; sets f to the
// directions that they leave free.
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

// Does a node with velocity v move into the wall of contact c, or along it? 1 yes, 0 no. Along it: its speed away from
// the wall is below 1e-9 cells per step, plus rounding. A node that another wall stops may move exactly along this one,
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

// Makes the velocity v of node n, of the list h, satisfy its active contacts, and stops it at other walls that it would
// enter; sets n->touching to the bits of these walls. Only normal components are stopped: a wall that holds all
// components while pressed becomes active once the residual presses. One wall may turn the node into another one, so
// that walls are tried until none changes v; a direction that one wall has stopped stays stopped.
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

// Sets share to the part of contact number `which`, an active one, in the constraint force on node n. x {dim}: a force
// or a gradient. Its part in held directions is a sum of forces along the normals of the active contacts, of which this
// is one; a contact that holds all components has a force in all directions.
CQ_INLINE void contact_share(const cq_scene *s, const cq_constrained_nodes *h, const ConstrainedNode *n,
                             const int which,
                             const real x[CQ_DIM], real share[CQ_DIM]) {
  // contacts_keep adds along_k (n_k.(w_k - v)) / |along_k|^2, k from the last on; its transpose goes from the first on
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

// Makes room for at least `wanted` entries of `size` bytes in *array, with its contents, and updates *capacity. Returns
// 1, or 0 without memory.
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

// Appends node z of a column, from 0, with its contacts to h, the constrained nodes of a block. 1, or 0 without memory.
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

// Lists in s->implicit.constrained[block] the nodes with mass of a block that walls or pins may hold in this step, with
// their contacts. Without memory the block's sum CQ_SUM_CHANGED is infinite.
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
      s->implicit.sum[0][block][CQ_SUM_CHANGED] = INFINITY;   // read by method.c
      return;
    }
  }
}
