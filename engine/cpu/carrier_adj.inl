// carrier_adj: nodes of reference grids on the spatial grid, backward (E131).

// Gradients of the members of a Meeting: shared velocity before walls, velocity of the body, mass, c (taken), share.
typedef struct {
  real v[CQ_DIM], brought[CQ_DIM], mass, taken, share;   // mass: that on which walls act
} MeetingGrad;

// (E131) Adjoint of meet: from grad, sets a and b to dL/d(momentum, mass) {4} of particles and of bodies at a spatial
// node; adds to the gradients of gravity and damping in sum.
static void meet_adj(const cq_scene *s, const Meeting *m, const MeetingGrad *grad, real *a, real *b,
                     cq_partial *sum) {
  const real loss = loss_of(s);
  for (int i = 0; i < 4; i++) a[i] = b[i] = 0;
  if (!(m->a > 0)) return;
  real by_share = 0;
  a[CQ_DIM] = grad->mass;
  EACH(i) {
    const real own = (1 - m->share) * grad->v[i], back = own + loss * own;
    sum->gravity[i] += s->model->dt * (double)back;
    sum->damping -= s->model->dt * (double)(m->own[i] * own);
    a[i] = back / m->a;
    a[CQ_DIM] -= back * m->free[i] / m->a;
    by_share += grad->v[i] * (m->brought[i] - m->own[i]);
  }
  if (!(m->b > 0)) return;
  by_share += grad->share - m->b * grad->mass - 8 * seventh(m->share) * grad->taken;
  by_share /= m->a + m->b;      // a square of masses may be too small for a number
  a[CQ_DIM] -= by_share * m->share;
  b[CQ_DIM] = (1 - m->share) * grad->mass + by_share * (m->a / (m->a + m->b));
  EACH(i) {
    b[i] = (m->share * grad->v[i] + grad->brought[i]) / m->b;
    b[CQ_DIM] -= b[i] * m->brought[i];
  }
}

// (E131) Adjoint of carried_column, from dL/dv, dL/d(change) and dL/d(blend) in the slabs, which are cleared: sets
// grid_q and carrier_q to dL/d(momentum, mass) of particles and of bodies, and grid_v, carrier_change and carrier_blend
// to their own values again. Adds to the block's gradients of gravity, damping and walls.
static void carried_column_adj(cq_scene *s, const cq_column *column, const void *record, int32_t block) {
  real *velocity = (real *)s->grid_v + 4 * column->node, *change = (real *)s->carrier_change + 4 * column->node;
  real *grad = (real *)s->grid_q + 4 * column->node, *carried = (real *)s->carrier_q + 4 * column->node;
  real *blend = (real *)s->carrier_blend + 4 * column->node;
  const real *own = met_record(s, record, column, 0), *brought = met_record(s, record, column, 1);
  MetSlabs slabs;
  met_slabs_find(s, column, &slabs);
  for (int32_t z = 0; z < column->count; z += 4) {
    met_take(&slabs.own, z, grad + 4 * z, NULL);
    met_take(&slabs.brought, z, carried + 4 * z, NULL);
    met_take(&slabs.blended, z, blend + 4 * z, NULL);
    for (int k = z; k < z + 4; k++) {
      Meeting m;
      meet(s, own + 4 * k, brought + 4 * k, &m);
      for (int i = 0; i < 4; i++) velocity[4 * k + i] = 0;
      EACH(i) velocity[4 * k + i] = m.v[i];
      velocity[4 * k + CQ_DIM] = m.a > 0 ? m.a + (1 - m.share) * m.b : 0;
      for (int i = 0; i < 4 && !both_meet(&m); i++) carried[4 * k + i] = blend[4 * k + i] = 0;
      EACH(i) grad[4 * k + i] = m.a > 0 ? grad[4 * k + i] + (1 - m.share) * carried[4 * k + i] : 0;
    }
  }
  contacts_of_column_adj(s, column, velocity + CQ_DIM, velocity, grad, &s->partial[block]);
  for (int32_t k = 0; k < column->count; k++) {
    Meeting m;
    MeetingGrad of = {.mass = s->grad_impulse ? grad[4 * k + CQ_DIM] : 0, .taken = blend[4 * k + CQ_DIM]};
    real a[4], b[4];
    meet(s, own + 4 * k, brought + 4 * k, &m);
    for (int i = 0; i < 4; i++) change[4 * k + i] = 0;
    velocity[4 * k + CQ_DIM] = 0;
    EACH(i) {
      const real by = carried[4 * k + i], blended = blend[4 * k + i], turned = velocity[4 * k + i] - m.v[i];
      if (both_meet(&m)) change[4 * k + i] = m.v[i] + (1 - m.share) * turned - m.brought[i];
      of.v[i] = grad[4 * k + i] + m.share * by;
      of.brought[i] = m.taken * blended - by;
      of.taken += blended * m.brought[i];
      of.share -= by * turned;
    }
    blend_store(&m, blend + 4 * k);
    meet_adj(s, &m, &of, a, b, &s->partial[block]);
    memcpy(grad + 4 * k, a, sizeof a);
    memcpy(carried + 4 * k, b, sizeof b);
  }
  const real at_mass[4] = {0, 0, CQ_DIM == 2, CQ_DIM == 3};
  for (int32_t z = 0; z < column->count && slabs.inertia.count; z += 4) {
    const Row inverse = inverse_mass(row_load(own + 4 * z));
    const Row q = inertia_adj(s, &slabs.inertia, column, z, inverse, inertia_record(s, record, column));
    row_store(grad + 4 * z, row_fma(q, row_comps(at_mass), row_load(grad + 4 * z)));
  }
}

// What CQ_LANES reference-grid nodes from number o on scatter in the adjoint of carrier_g2p: sets change to their part
// of dL/d(carrier_change), blend to that of dL/d(carrier_blend). Reads dL/d(velocity after carrier_g2p) in r->adj and
// dL/d(shift) in r->node_shift. moving {dim, nodes}: node velocities before carrier_g2p.
CQ_INLINE void taken_adj(const cq_scene *s, const real *moving, const int64_t o, Exchange *change, Exchange *blend) {
  const cq_reference *r = &s->reference;
  const int64_t nodes = r->node_count;
  const real *adj = (const real *)r->adj + CQ_DIM * nodes + o, *shift = (const real *)r->node_shift + o;
  const Real mass = r_load((const real *)r->carried + o), none = r_set((real)0);
  change->m = blend->m = none;
  EACH(i) {
    change->q[i] = r_pick(mass, r_load(adj + i * nodes), none);
    blend->q[i] = r_pick(mass, r_load(shift + i * nodes), none);
    blend->m -= blend->q[i] * r_load(moving + i * nodes + o);
    EACH(j) change->b[i][j] = blend->b[i][j] = none;
  }
}

// Adjoint of carrier_g2p for a block of reference-grid nodes: from dL/d(velocities after it) in r->adj and dL/d(shift)
// in r->node_shift, scatters dL/d(carrier_change) and dL/d(carrier_blend) to the two slabs of the block. velocity {dim,
// nodes}: node velocities before carrier_g2p.
static void carrier_g2p_adj(cq_scene *s, const void *velocity, int32_t block) {
  const cq_reference *r = &s->reference;
  const Strides strides = strides_of(s->arrangement);
  Scatter to, blended;
  scatter_begin(&to, s, block);
  inertia_scatter_begin(&blended, s, block);
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++) {
    Record records[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    const int64_t o = r->nodes[k].node;
    Exchange change, blend[CQ_CHUNK / CQ_LANES];
    LANES_EACH(h) {
      carriers_place(s, o, h, 0, records, node);
      taken_adj(s, (const real *)velocity, o + h, &change, &blend[h / CQ_LANES]);
      move_store(records + h, MOVE, &change);
    }
    carriers_scatter(&to, &strides, &r->nodes[k], node, records);
    LANES_EACH(h) move_store(records + h, MOVE, &blend[h / CQ_LANES]);
    carriers_scatter(&blended, &strides, &r->nodes[k], node, records);
  }
  scatter_end(&to, &strides);
  scatter_end(&blended, &strides);
}

// Adjoint of carrier_p2g for a block of reference-grid nodes, and of the nodes' places in carrier_p2g and carrier_g2p:
// in r->adj, dL/d(velocities after carrier_g2p) becomes dL/d(velocities before both). Adds to dL/d(displacements) in
// r->adj, to r->mass_adj, and to r->rest_adj if gradients of positions are wanted. velocity: as in carrier_g2p_adj.
static void carrier_p2g_adj(cq_scene *s, const void *velocity, int32_t block) {
  const cq_reference *r = &s->reference;
  const Strides strides = strides_of(s->arrangement);
  const real *moving = (const real *)velocity, inv_dx = (real)(1 / s->model->dx);
  const int64_t nodes = r->node_count;
  real *by_place = (real *)r->adj, *by_velocity = by_place + CQ_DIM * nodes;
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++) {
    Record records[CQ_CHUNK] __attribute__((aligned(64))), blends[CQ_CHUNK] __attribute__((aligned(64)));
    Record taken[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    const int64_t o = r->nodes[k].node;
    LANES_EACH(h) {
      Exchange change, blend;
      carriers_place(s, o, h, 1, records, node);
      taken_adj(s, moving, o + h, &change, &blend);
      move_store(records + h, MOVE_ADJ, &change);
      move_store(blends + h, MOVE_ADJ, &blend);
      EACH(i) blend.q[i] = r_set((real)0);
      blend.m = blend.q[0];
      move_store(blends + h, MOVE, &blend);                  // these bring nothing
      const Real free = carried_freely(s, &r->nodes[k], o + h);
      change.m = r_load((const real *)r->carried + o + h);
      EACH(i) change.q[i] = free * r_load(moving + i * nodes + o + h);
      move_store(records + h, MOVE, &change);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      const real(*weights)[4] = weights_of(&records[l]);
      const real *blend = (const real *)s->carrier_blend + 4 * (int64_t)node[l];
      const real *change = (const real *)s->carrier_change + 4 * (int64_t)node[l];
      const real *brought = (const real *)s->carrier_q + 4 * (int64_t)node[l];
      if (!(r->nodes[k].carriers >> l & 1)) continue;
      gather_by(&taken[l], weights, blend, &strides);
      gather_adj(&records[l], brought, change, &strides);
      gather_adj_by(&blends[l], weights, brought, blend, &strides);
    }
    LANES_EACH(h) {
      const Real mass = r_load((const real *)r->carried + o + h), none = r_set((real)0);
      const Real free = carried_freely(s, &r->nodes[k], o + h);
      real *mass_adj = (real *)r->mass_adj + o + h;
      Sums blend, grad;
      sums_load(taken + h, &blend);
      sums_load(records + h, &grad);
      Real by_mass = grad.nm;
      EACH(i) {
        real *at = by_velocity + i * nodes + o + h, *place = by_place + i * nodes + o + h;
        Real quad[4], second[4];
        by_mass += r_pick(free, r_load(moving + i * nodes + o + h), none) * grad.n0[i];
        const Real v = r_load(at), shift = r_load((const real *)r->node_shift + i * nodes + o + h);
        r_store(at, r_pick(mass, v - blend.nm * shift + free * grad.n0[i], v));
        quads_load(records + h, EXCHANGE + i, quad);
        quads_load(blends + h, EXCHANGE + i, second);
        Real along = quad[0] + second[0];
        CQ_UNROLL for (int j = 1; j < CQ_DIM + 1; j++) along += quad[j] + second[j];
        const Real x = r_pick(mass, (real)0.5 * inv_dx * along, none);
        r_store(place, r_load(place) + x);
        real *rest = (real *)r->rest_adj + i * nodes + o + h;
        if (s->wanted & cq_bit(CQ_FIELD_POSITION)) r_store(rest, r_load(rest) + x);
      }
      r_store(mass_adj, r_load(mass_adj) + r_pick(mass, by_mass, none));
    }
  }
}
