// carrier: bodies with reference grids on the spatial grid. In a step their nodes j, which forces have moved already,
// bring mass and momentum to the nodes i here, to a field b beside that of the particles, a:
//   m_b = sum w m_j,  p_b = sum w m_j v_j,  v_b = p_b / m_b.
// Where a node has mass of both, these share one velocity, which walls change,
//   v = (m_a v_a + m_b v_b) / (m_a + m_b);
// and nodes of the body take its change, and go with what nodes here can tell apart of their velocity, the more the
// less of the mass is the body's own:
//   v_j <- v_j + sum w (v - v_b),  x_j <- x_j + dt (v_j + sum w c (v_b - v_j)),  c = 1 - (m_b / (m_a + m_b))^8  (E130)
// Of what walls do to v a body gets m_a / (m_a + m_b), for it has its own contact with them; nodes that pins hold bring
// no momentum. Momentum and the centre of mass are kept to rounding for any c. With c = 0 a body would move by what
// nodes here cannot tell apart and its forces renew in each step: a liquid seeps into it, the faster the longer the
// step; with a power of 4 a fifth as fast, of 8 a thirtieth. If velocities lost that motion too, a body would lose
// motion in each step: a paddle of three cells in water would move a third of it. Where a body is alone nothing happens
// to it.

// For CQ_LANES nodes of reference grids from number o + h on, at their present places (r->node_place): sets node[h ...]
// to the first nodes of their stencils on the spatial grid, and stores their B-spline weights in records[h ...]. slopes
// 1: also the slopes of the weights, which an adjoint reads.
CQ_INLINE void carriers_place(const cq_scene *s, const int64_t o, const int h, const int slopes, Record *records,
                              int32_t *node) {
  const real *place = (const real *)s->reference.node_place, inv_dx = (real)(1 / s->model->dx);
  Real base[CQ_DIM], f[CQ_DIM];
  EACH(i) {
    const Real x = inv_dx * r_load(place + i * s->reference.node_count + o + h);
    base[i] = r_floor(x - (real)0.5);
    f[i] = x - base[i];
  }
  nodes_store(s->arrangement, node, h, base);
  weights_store(records + h, f, slopes);
}

// Sets r->node_base, the base cells on the spatial grid, of those nodes of a block of reference grids that scatter to
// it (carriers), and found: the bounding box of these cells; outside 1: a node is over two cells outside of the world.
static void carrier_bases(const cq_scene *s, int32_t block, cq_partial *found) {
  const cq_reference *r = &s->reference;
  const real inv_dx = (real)(1 / s->model->dx);
  found->outside = 0;
  for (int i = 0; i < 3; i++) {
    found->lower[i] = i == 1 && CQ_DIM == 2 ? 0 : INT32_MAX;
    found->upper[i] = i == 1 && CQ_DIM == 2 ? 0 : INT32_MIN;
  }
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    for (int l = 0; l < CQ_REFERENCE_VECTOR; l++) {
      const int64_t node = r->nodes[k].node + l;
      if (!(r->nodes[k].carriers >> l & 1)) continue;
      EACH(i) {
        const int axis = i == CQ_DIM - 1 ? 2 : i;
        const real x = inv_dx * ((const real *)r->node_place)[i * r->node_count + node];
        // a node may be a cell and a half outside of the particles, for which the window has room
        if (!(x > (real)-2 && x < (real)(s->model->cells[i] + 2))) {
          found->outside = 1;
          continue;
        }
        const int32_t base = (int32_t)floor((double)s_value(x) - 0.5);
        r->node_base[3 * node + axis] = base;
        if (base < found->lower[axis]) found->lower[axis] = base;
        if (base > found->upper[axis]) found->upper[axis] = base;
      }
    }
}

// Scatters the records {16} of the 16 reference-grid nodes of n, but only of its carriers, nodes that take part on the
// spatial grid. node {16}: the first spatial node of each stencil.
CQ_INLINE void carriers_scatter(Scatter *to, const Strides *strides, const cq_nodes *n, const int32_t *node,
                                const Record *records) {
  for (int l = 0; l < CQ_CHUNK; l++) {
    if (!(n->carriers >> l & 1)) continue;
    scatter_to(to, strides, node[l]);
    scatter(to->rows, &records[l]);
  }
}

// The mass that carries momentum from CQ_LANES reference-grid nodes, from number o on, to the spatial grid: r->carried,
// but 0 for nodes that pins hold. Forces on these are borne by the pins; a liquid that took them as momentum would be
// stirred for ever. n: the nodes' vector of 16, which says whether it has pins.
CQ_INLINE Real carried_freely(const cq_scene *s, const cq_nodes *n, const int64_t o) {
  const Real mass = r_load((const real *)s->reference.carried + o);
  real pinned[CQ_LANES] __attribute__((aligned(64)));
  if (!n->pinned) return mass;
  for (int l = 0; l < CQ_LANES; l++) pinned[l] = (real)(s->reference.pin[o + l] != 0);
  return r_pick(r_load(pinned), r_set((real)0), mass);
}

// (E130) For the carriers of a block of reference-grid nodes (those that take part on the spatial grid): scatters their
// mass and momentum to the spatial grid, into the slab of the range with the block's number.
static void carrier_p2g(cq_scene *s, int32_t block) {
  const cq_reference *r = &s->reference;
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, block);
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++) {
    Record records[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    const int64_t o = r->nodes[k].node;
    LANES_EACH(h) {
      Exchange give;
      carriers_place(s, o, h, 0, records, node);
      const Real free = carried_freely(s, &r->nodes[k], o + h);
      give.m = r_load((const real *)r->carried + o + h);
      EACH(i) give.q[i] = free * r_load((const real *)r->node_velocity + i * r->node_count + o + h);
      EACH(i) EACH(j) give.b[i][j] = r_set((real)0);
      move_store(records + h, MOVE, &give);
    }
    carriers_scatter(&to, &strides, &r->nodes[k], node, records);
  }
  scatter_end(&to, &strides);
}

// (E130) For the carriers of a block of reference-grid nodes: adds the interpolated velocity change s->carrier_change
// to r->node_velocity, and sets r->node_shift, an extra velocity by which only their places move. Other nodes keep
// their velocity, and have a shift of 0.
static void carrier_g2p(cq_scene *s, int32_t block) {
  const cq_reference *r = &s->reference;
  const Strides strides = strides_of(s->arrangement);
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++) {
    Record records[CQ_CHUNK] __attribute__((aligned(64)));
    Record blends[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    const int64_t o = r->nodes[k].node;
    LANES_EACH(h) carriers_place(s, o, h, 0, records, node);
    for (int l = 0; l < CQ_CHUNK; l++) {
      const int64_t at = 4 * (int64_t)node[l];
      if (!(r->nodes[k].carriers >> l & 1)) continue;
      gather(&records[l], (const real *)s->carrier_change + at, &strides);
      gather_by(&blends[l], weights_of(&records[l]), (const real *)s->carrier_blend + at, &strides);
    }
    LANES_EACH(h) {
      const Real mass = r_load((const real *)r->carried + o + h), none = r_set((real)0);
      Sums change, blend;
      sums_load(records + h, &change);
      sums_load(blends + h, &blend);
      EACH(i) {
        real *at = (real *)r->node_velocity + i * r->node_count + o + h;
        const Real v = r_load(at);
        r_store(at, r_pick(mass, v + change.n0[i], v));
        r_store((real *)r->node_shift + i * r->node_count + o + h, r_pick(mass, blend.n0[i] - blend.nm * v, none));
      }
    }
  }
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

// A node with mass of particles on the spatial grid (a) and of bodies with reference grids (b), before walls.
typedef struct {
  real a, b, share, taken, free[CQ_DIM], own[CQ_DIM], brought[CQ_DIM], v[CQ_DIM];   // taken: c
} Meeting;

// The seventh power of a share m_b / (m_a + m_b): E130 has the eighth, and its derivative this one.
CQ_INLINE real seventh(const real share) {
  const real square = share * share;
  return square * square * square * share;
}

// (E130) Sets m to how particles and bodies meet at a node of the spatial grid, before walls. a, b: momentum and
// mass {4} of particles and of bodies. Sets masses a and b, velocities p / m (free), own (with gravity and damping)
// and brought, share = m_b / (m_a + m_b), their common velocity v and taken = 1 - share^8. If particles have no mass
// all but the masses is 0; if bodies have none, v is the particles'.
CQ_INLINE void meet(const cq_scene *s, const real *a, const real *b, Meeting *m) {
  const real loss = loss_of(s), dt = (real)s->model->dt, *gravity = (const real *)s->globals;
  m->a = a[CQ_DIM];
  m->b = b[CQ_DIM];
  m->share = m->taken = (real)0;
  EACH(i) m->free[i] = m->own[i] = m->brought[i] = m->v[i] = (real)0;
  if (!(m->a > (real)0)) return;
  EACH(i) {
    m->free[i] = a[i] / m->a;
    const real moved = m->free[i] + dt * gravity[i];
    m->own[i] = m->v[i] = moved + loss * moved;
  }
  if (!(m->b > (real)0)) return;
  m->share = m->b / (m->a + m->b);
  m->taken = (real)1 - seventh(m->share) * m->share;
  EACH(i) m->brought[i] = b[i] / m->b;
  EACH(i) m->v[i] = m->own[i] + m->share * (m->brought[i] - m->own[i]);
}

// Returns 1 if particles and bodies both have mass at the node of m, else 0.
CQ_INLINE int both_meet(const Meeting *m) { return m->a > (real)0 && m->b > (real)0; }

// Sets blend {4} of a node, from which carrier_g2p gathers the nodes' shift: c v_b and, in the component of the mass,
// c. Both are 0 where particles or bodies have no mass.
CQ_INLINE void blend_store(const Meeting *m, real *blend) {
  for (int i = 0; i < 4; i++) blend[i] = (real)0;
  EACH(i) blend[i] = m->taken * m->brought[i];
  blend[CQ_DIM] = m->taken;
}

// The slabs that reach a column: of particles (own); of reference-grid nodes (brought), and the second slab that these
// have in the adjoint (blended); of the particles' momentum before stress and forces, if unresolved motion is kept.
typedef struct {
  Slabs own, brought, blended, inertia;
} MetSlabs;

// Sets out to the slabs (private node arrays of ranges) that hold contributions to a column of nodes, sorted by what
// they hold (MetSlabs). Each pointer is to the column's first node.
CQ_INLINE void met_slabs_find(const cq_scene *s, const cq_column *column, MetSlabs *out) {
  const int keeps = cq_keeps_unresolved(s->model);
  out->own.count = out->brought.count = out->blended.count = out->inertia.count = 0;
  for (int r = 0; column->ranges >> r; r++) {
    if (!(column->ranges >> r & 1)) continue;
    Slabs *to = r < s->first_range ? &out->brought : &out->own;
    to->of[to->count++] = slab_of(s, r) + 4 * column->node;
    Slabs *second = r < s->first_range ? &out->blended : &out->inertia;
    if (keeps || r < s->first_range) second->of[second->count++] = inertia_slab_of(s, r) + 4 * column->node;
  }
}

// Sets out {16} to the sum over slabs of four nodes of a column, z to z + 3, and clears them in the slabs. kept: the
// column's part of the step's record, which gets the same numbers; NULL without a record.
CQ_INLINE void met_take(const Slabs *slabs, const int32_t z, real *out, real *kept) {
  const Row p = slabs->count ? slabs_take(slabs, 4 * z) : row_zero();
  row_store(out, p);
  if (kept) row_store(kept + 4 * z, p);
}

// Returns where a step's record has momentum and mass {nodes, 4} of a column's nodes: of particles (carriers 0), or of
// bodies with reference grids (carriers 1); NULL without a record.
CQ_INLINE real *met_record(const cq_scene *s, const void *record, const cq_column *column, const int carriers) {
  const int before = carriers ? 1 + cq_keeps_unresolved(s->model) : 0;
  return record ? (real *)record + 4 * (before * s->arrangement->record_nodes + column->record) : NULL;
}

// (E130) The grid pass for one column of nodes that reference-grid nodes reach, from the slabs, which are cleared: sets
// grid_v; carrier_change {nodes, 4}, v - v_b with the particles' share of what walls do to v; and carrier_blend {nodes,
// 4}, c v_b and c. record: as of grid. Adds impulses of walls to those of the block, if they are read.
static void carried_column(cq_scene *s, const cq_column *column, void *record, int32_t block) {
  real *velocity = (real *)s->grid_v + 4 * column->node, *change = (real *)s->carrier_change + 4 * column->node;
  real *blend = (real *)s->carrier_blend + 4 * column->node;
  real *kept_own = met_record(s, record, column, 0), *kept_brought = met_record(s, record, column, 1);
  MetSlabs slabs;
  met_slabs_find(s, column, &slabs);
  for (int32_t z = 0; z < column->count; z += 4) {
    real own[16] __attribute__((aligned(64))), brought[16] __attribute__((aligned(64)));
    met_take(&slabs.own, z, own, kept_own);
    met_take(&slabs.brought, z, brought, kept_brought);
    if (slabs.inertia.count)
      inertia_velocities(s, &slabs.inertia, column, inverse_mass(row_load(own)), z, inertia_record(s, record, column));
    for (int k = 0; k < 4; k++) {
      real *v = velocity + 4 * (z + k), *d = change + 4 * (z + k);
      Meeting m;
      meet(s, own + 4 * k, brought + 4 * k, &m);
      for (int i = 0; i < 4; i++) v[i] = d[i] = (real)0;
      EACH(i) v[i] = m.v[i];
      EACH(i) d[i] = m.brought[i];
      blend_store(&m, blend + 4 * (z + k));
      // until the walls have seen them: the mass on which these act, and below 0 where the body is not touched
      v[CQ_DIM] = m.a > (real)0 ? m.a + ((real)1 - m.share) * m.b : (real)0;
      d[CQ_DIM] = both_meet(&m) ? m.share : (real)-1;
    }
  }
  Contacts contacts;
  int64_t entry = column->wall_begin;
  for (int32_t z = 0; (z = next_constrained(s, column, z, &entry, &contacts)) < column->count; z++) {
    real *v = velocity + 4 * z, *d = change + 4 * z, before[CQ_DIM];
    if (!(v[CQ_DIM] > (real)0)) continue;
    contacts_locate(s, column, z, v[CQ_DIM], &contacts);
    EACH(i) before[i] = v[i];
    for (int k = 0; k < contacts.count; k++) {
      if (s->impulse_out) contact_and_measure(s, &contacts, k, v, impulse_of(s, block));
      else apply_contact(s, &contacts, k, v);
    }
    EACH(i) d[i] += d[CQ_DIM] * (v[i] - before[i]);
  }
  for (int32_t z = 0; z < column->count; z++) {
    real *v = velocity + 4 * z, *d = change + 4 * z;
    const int both = d[CQ_DIM] >= (real)0;
    EACH(i) d[i] = both ? v[i] - d[i] : (real)0;
    d[CQ_DIM] = v[CQ_DIM] = (real)0;
  }
}
