// node_adj: the adjoint of one explicit step at the nodes (E116): from gradients of their velocities and displacements,
// through walls and pins, to those of forces, masses and the state before.

// gradients at a node: v of its velocity after contacts, mean of its mean velocity in the step, x of its place
typedef struct {
  real v[CQ_DIM], mean[CQ_DIM], mass;
  double x[CQ_DIM];
} NodeGrad;

// (E116) Adjoint of the contacts c of one node; v: its velocity before them. grad->v: dL/dv after them on entry, before
// them on return; grad->mean: that of its mean velocity in the step. Adds to the gradients of its mass, and of its
// place x before the step, and to those of walls in sum.
static void contacts_of_node_adj(const cq_scene *s, const StepWalls *walls, const NodeContacts *c,
                                 const real v[CQ_DIM], NodeGrad *grad, cq_partial *sum) {
  const real still[CQ_DIM] = {0};
  real at[CONTACTS + 1][CQ_DIM], mean[CONTACTS + 1][CQ_DIM];
  double grad_after[CQ_DIM] = {0};                         // of the place that v leads to
  real grad_v[CQ_DIM] = {0};
  EACH(i) at[0][i] = mean[0][i] = v[i];
  for (int k = 0; k < c->all.count; k++) {
    EACH(i) at[k + 1][i] = at[k][i];
    EACH(i) mean[k + 1][i] = mean[k][i];
    apply_contact(s, &c->all, k, at[k + 1]);
    apply_contact_in_step(s, walls, c, k, mean[k + 1]);
  }
  for (int k = c->all.count - 1; k >= 0; k--) {
    const int32_t w = c->all.wall[k];
    const StepContact *step = &c->step[k];
    const ContactLaw law = contact_law(s, &c->all, k, still);
    StepContactGrad of = {0};
    double grad_place[3];
    const Touch felt = contact_of_node_adj(s, &c->all, k, at + k, grad->v, &of.of);
    EACH(i) of.mean[i] = grad->mean[i];
    step_contact_adj(walls, step, &law, c->v, mean[k], &of);
    EACH(i) grad->mean[i] = of.mean[i];
    grad->mass += felt.mass;
    EACH(i) grad->x[i] += (double)felt.x[i];
    EACH(i) grad_v[i] += of.v[i];
    if (w < 0) continue;
    give_wall(sum, w, &of.of);
    step_contact_place_adj(walls, step, &of, grad_place);
    if (walls->walls[w].moves) wall_place_adj(sum, w, walls->seconds + (step->lands ? walls->dt : 0), grad_place);
    EACH(i) grad->x[i] += grad_place[i];
    if (step->lands) EACH(i) grad_after[i] += grad_place[i];
  }
  EACH(i) grad->v[i] += grad->mean[i] + grad_v[i] + (real)(walls->dt * grad_after[i]);
}

// Gradients at CQ_LANES nodes. v: of velocities after contacts, then before them; mean: of mean velocities in the step,
// on return 0 where contacts made these. To x, of places, and mass is added.
typedef struct {
  real near[CQ_LANES], v[CQ_DIM][CQ_LANES], mean[CQ_DIM][CQ_LANES], x[CQ_DIM][CQ_LANES], mass[CQ_LANES];
} __attribute__((aligned(64))) HeldGrad;

// Adjoint of hold_nodes for CQ_LANES nodes from o on; record {dim, nodes}: their velocities before walls; in: the state
// before the step. Adds to the gradients of walls in sum.
CQ_RARE void hold_nodes_adj(cq_scene *s, const cq_slice *in, const real *record, const int64_t o, HeldGrad *grad,
                            cq_partial *sum) {
  const int64_t nodes = s->reference.node_count;
  const StepWalls walls = walls_of(s);
  for (int l = 0; l < CQ_LANES; l++) {
    wall_real place[3];
    NodeContacts contacts;
    NodeGrad node = {0};
    real v[CQ_DIM];
    contacts.all.count = 0;
    if (grad->near[l] > 0) {
      EACH(i) v[i] = record[i * nodes + o + l];
      place_of_node(s, in, o + l, place);
      contacts_of_node(s, &walls, o + l, place, v, &contacts);
    }
    if (!contacts.all.count) {
      EACH(i) grad->v[i][l] += grad->mean[i][l];
      continue;
    }
    EACH(i) node.v[i] = grad->v[i][l];
    EACH(i) node.mean[i] = grad->mean[i][l];
    contacts_of_node_adj(s, &walls, &contacts, v, &node, sum);
    EACH(i) grad->mean[i][l] = 0;
    grad->mass[l] += node.mass;
    EACH(i) grad->v[i][l] = node.v[i];
    EACH(i) grad->x[i][l] += (real)node.x[i];
  }
}

typedef struct {
  Real gravity[CQ_DIM], damping;
} NodeTotals;

// The sum of all lanes of a SIMD vector, in double.
CQ_INLINE double sum_of_lanes(const Real x) {
  real lane[CQ_LANES] __attribute__((aligned(64)));
  double sum = 0;
  r_store(lane, x);
  for (int l = 0; l < CQ_LANES; l++) sum += (double)lane[l];
  return sum;
}

// CQ_LANES nodes backward: gradients of displacements, velocities and masses; v: the velocities that gv is the gradient
// of.
typedef struct {
  Real gu[CQ_DIM], gv[CQ_DIM], v[CQ_DIM], mass;
} NodesGrad;

// Sets g to the adjoint of nodes o, o + 1, ...: r->adj plus the first `given` vector fields of the slabs (scatter
// buffers), of displacements and of velocities. n: the vector of nodes with o.
CQ_INLINE void take_adj(const cq_scene *s, const cq_nodes *n, const int64_t o, const int32_t given, NodesGrad *g) {
  const cq_reference *r = &s->reference;
  const Real mass = r_load((const real *)r->mass + o);
  Real more[CQ_DIM];
  EACH(i) g->gu[i] = r_load((const real *)r->adj + (U + i) * r->node_count + o);
  EACH(i) g->gv[i] = r_load((const real *)r->adj + (W + i) * r->node_count + o);
  if (given > 0) {
    given_at(s, n, 0, o, more);
    EACH(i) g->gu[i] += more[i];
  }
  if (given > 1) {
    given_at(s, n, 1, o, more);
    EACH(i) g->gv[i] += more[i];
  }
  EACH(i) g->gv[i] = r_pick(mass, g->gv[i], r_set((real)0));
  g->mass = r_set((real)0);
}

// A pass backward over the nodes of a block. in: the state before the step; before: velocities before the walls {dim,
// nodes}; sum: gradients of the block.
typedef struct {
  const cq_slice *in;
  const real *before;
  cq_partial *sum;
} NodesBack;

// (E116) Adjoint of hold_and_place for nodes o, o + 1, ...: turns the gradients in g from those after the step into
// those before walls; sets g->v to the velocities before the walls, and r->node_shift, if there is one, to its
// gradient; adds to those of walls and of undeformed places. n: the vector of nodes with o.
CQ_INLINE void hold_and_place_adj(cq_scene *s, const NodesBack *b, const cq_nodes *n, const int64_t o, NodesGrad *g) {
  const cq_reference *r = &s->reference;
  const cq_slice *in = b->in;
  const int64_t nodes = r->node_count;
  const Real mass = r_load((const real *)r->mass + o);
  Real gm[CQ_DIM], x[CQ_DIM];
  EACH(i) gm[i] = r_pick(mass, (real)s->model->dt * g->gu[i], r_set((real)0));
  EACH(i) g->v[i] = r_load(b->before + i * nodes + o);
  EACH(i) x[i] = r_load(nodes_of(s, r->rest, i) + o) + r_load(nodes_of(s, in->nodes, U + i) + o);
  const Real near = held_near(s, n, o, mass, x, g->v);
  real *shift = (real *)r->node_shift + o;
  if (r->node_shift) EACH(i) r_store(shift + i * nodes, gm[i]);
  if (!any_above(near)) {
    EACH(i) g->gv[i] += gm[i];
    return;
  }
  HeldGrad lanes;
  EACH(i) r_store(lanes.v[i], g->gv[i]);
  EACH(i) r_store(lanes.mean[i], gm[i]);
  EACH(i) r_store(lanes.x[i], r_set((real)0));
  r_store(lanes.mass, g->mass);
  r_store(lanes.near, near);
  hold_nodes_adj(s, in, b->before, o, &lanes, b->sum);
  if (r->node_shift) EACH(i) r_store(shift + i * nodes, r_load(lanes.mean[i]));
  g->mass = r_load(lanes.mass);
  EACH(i) g->gv[i] = r_load(lanes.v[i]);
  EACH(i) g->gu[i] += r_load(lanes.x[i]);
  real *rest = (real *)r->rest_adj + o;
  if (s->wanted & cq_bit(CQ_FIELD_POSITION))
    EACH(i) r_store(rest + i * nodes, r_load(rest + i * nodes) + r_load(lanes.x[i]));
}

// Adds grad to the gradients of the masses of nodes o, o + 1, ...
CQ_INLINE void give_node_mass(const cq_scene *s, const int64_t o, const Real grad) {
  const Real mass = r_load((const real *)s->reference.mass + o);
  real *to = (real *)s->reference.mass_adj + o;
  r_store(to, r_pick(mass, r_load(to) + grad, r_set((real)0)));
}

// (E116) Adjoint of free_velocity for nodes o, o + 1, ... with the gradients g; g->v: the velocities that it gave. Sets
// r->force_adj and r->adj of the state before, adds to the gradients of mass and, in totals, of gravity and damping.
CQ_INLINE void free_velocity_adj(cq_scene *s, const cq_slice *in, const int64_t o, NodesGrad *g, NodeTotals *totals) {
  const cq_reference *r = &s->reference;
  const int64_t nodes = r->node_count;
  const real dt = (real)s->model->dt, loss = loss_of(s), *gravity = (const real *)s->globals;
  const Real inverse = r_load((const real *)r->inverse + o);
  EACH(i) {
    const Real back = g->gv[i] + loss * g->gv[i];
    const Real free = r_load(nodes_of(s, in->nodes, W + i) + o) + dt * gravity[i];
    totals->damping += g->v[i] * g->gv[i];
    totals->gravity[i] += back;
    g->mass -= inverse * g->gv[i] * (g->v[i] - (free + loss * free));
    r_store((real *)r->force_adj + i * nodes + o, dt * inverse * back);
    r_store((real *)r->adj + (U + i) * nodes + o, g->gu[i]);
    r_store((real *)r->adj + (W + i) * nodes + o, back);
  }
  give_node_mass(s, o, g->mass);
}

// Sums over a block's nodes for the gradients of gravity and damping, all 0.
CQ_INLINE NodeTotals no_totals(void) {
  NodeTotals totals;
  EACH(i) totals.gravity[i] = r_set((real)0);
  totals.damping = totals.gravity[0];
  return totals;
}

// Adds the sums over a block's nodes, times dt and -dt, to the gradients of gravity and of damping in sum.
CQ_INLINE void give_totals(const cq_scene *s, const NodeTotals *totals, cq_partial *sum) {
  EACH(i) sum->gravity[i] += s->model->dt * sum_of_lanes(totals->gravity[i]);
  sum->damping -= s->model->dt * sum_of_lanes(totals->damping);
}

// (E116) Adjoint of `move` for a block of nodes: turns r->adj of the state `out` into that of `in`, but for the part
// through forces, for which it sets r->force_adj. record: velocities before the walls, NULL: those of out; given:
// vector fields that the slabs hold, which are added to r->adj first.
static void move_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, const void *record, int32_t block,
                     int32_t given) {
  const cq_reference *r = &s->reference;
  const real *before = record ? (const real *)record : (const real *)out->nodes + W * r->node_count;
  const NodesBack back = {in, before, &s->partial[block]};
  NodeTotals totals = no_totals();
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      NodesGrad g;
      take_adj(s, &r->nodes[k], o, given, &g);
      hold_and_place_adj(s, &back, &r->nodes[k], o, &g);
      free_velocity_adj(s, in, o, &g, &totals);
    }
  give_totals(s, &totals, back.sum);
}

// Adjoint of move_held for a block of nodes: turns r->adj of the state after the step into that of displacements before
// it, and of velocities before the walls. record and given as of move_adj.
static void move_held_adj(cq_scene *s, const cq_slice *in, const void *record, int32_t block, int32_t given) {
  const cq_reference *r = &s->reference;
  const NodesBack back = {in, (const real *)record, &s->partial[block]};
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      NodesGrad g;
      take_adj(s, &r->nodes[k], o, given, &g);
      hold_and_place_adj(s, &back, &r->nodes[k], o, &g);
      EACH(i) r_store((real *)r->adj + (U + i) * r->node_count + o, g.gu[i]);
      EACH(i) r_store((real *)r->adj + (W + i) * r->node_count + o, g.gv[i]);
      give_node_mass(s, o, g.mass);
    }
}

// Adjoint of move_free for a block of nodes: turns r->adj of velocities before the spatial grid changed them into that
// of the state `in` before the step; sets r->force_adj. record: of the step.
static void move_free_adj(cq_scene *s, const cq_slice *in, const void *record, int32_t block) {
  const cq_reference *r = &s->reference;
  NodeTotals totals = no_totals();
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) {
      const int64_t o = r->nodes[k].node + h;
      NodesGrad g;
      take_adj(s, &r->nodes[k], o, 0, &g);
      EACH(i) g.v[i] = r_load(free_part(s, record) + i * r->node_count + o);
      free_velocity_adj(s, in, o, &g, &totals);
    }
  give_totals(s, &totals, &s->partial[block]);
}

// Adds to r->adj of a block's nodes the vector fields that all ranges have scattered to their slabs. given: 1,
// gradients of displacements alone; 2, of velocities as well.
static void collect(cq_scene *s, int32_t block, int32_t given) {
  const cq_reference *r = &s->reference;
  for (int32_t k = r->nodes_start[block]; k < r->nodes_start[block + 1]; k++)
    LANES_EACH(h) for (int field = 0; field < given; field++) {
      const cq_nodes *n = &r->nodes[k];
      Real more[CQ_DIM];
      given_at(s, n, field, n->node + h, more);
      EACH(i) {
        real *to = (real *)r->adj + (field * CQ_DIM + i) * r->node_count + n->node + h;
        r_store(to, r_load(to) + more[i]);
      }
    }
}
