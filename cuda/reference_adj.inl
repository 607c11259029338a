// reference_adj: total Lagrangian steps backward (E116). node_move_adj turns gradients of velocities and displacements
// of nodes into gradients of forces; cell_forces_adj turns these into gradients of displacements before the step.

// ---- nodes ----------------------------------------------------------------------------------------------------------

// Gradients of a node: of v, its velocity after contacts, and mean, its mean velocity in the step; and, added to, of
// the velocity before contacts, the places before and after the step, and the mass.
typedef struct MoverGrad {
  real v[CQ_DIM], mean[CQ_DIM], before[CQ_DIM], mass;
  double x[CQ_DIM], after[CQ_DIM];
} MoverGrad;

// Adjoint of the impulse of a node's contact c, whose dL/d(impulse) is in s->grad_impulse: returns the gradients of the
// velocities before and after the contact, of its normal, and of the node's mass and place.
CQ_RARE Touch step_impulse_adj(const cq_frame *s, const Mover *m, const StepContact *c, const real before[CQ_DIM],
                               const real after[CQ_DIM]) {
  const double *given = s->grad_impulse + (int64_t)m->scene * s->impulse_count + impulse_at(s, c->wall);
  real grad_out[CONTACT_WIDTH];
  Touch t, grad = {};
  touch_of_step(m, c, before, after, &t);
  for (int i = 0; i < CONTACT_WIDTH; i++) grad_out[i] = (real)given[i];
  contact_impulse_adj(&t, &grad, grad_out);
  return grad;
}

// Reverses contact j of a node (0-based): grad, the gradients of velocities and places after the contact, become those
// before it; *grad_wall is set to the gradients of its wall. Returns the wall's index; -1: a pin, or j is negative.
CQ_RARE int32_t step_contact_back(const cq_frame *s, const Mover *m, const int32_t j, MoverGrad *grad,
                                  WallGrad *grad_wall) {
  const real still[CQ_DIM] = {0};
  real v[CQ_DIM], mean[CQ_DIM], after[CQ_DIM];
  double grad_place[3];
  StepContact c;
  StepContactGrad of = {};
  Touch felt = {};
  *grad_wall = {};
  if (j < 0) return -1;
  contacts_until(s, m, j, &c, v, mean);
  const ContactLaw law = law_of_step(s, m, &c, still);
  if (s->grad_impulse) {
    EACH(i) after[i] = v[i];
    contact(&law, after);
    felt = step_impulse_adj(s, m, &c, v, after);
    EACH(i) grad->v[i] += felt.after[i];
    EACH(i) of.of.n[i] = felt.normal[i];
    grad->mass += felt.mass;
    EACH(i) grad->x[i] += (double)felt.x[i];
  }
  contact_adj(&law, v, grad->v, &of.of);
  if (s->grad_impulse) EACH(i) grad->v[i] += felt.before[i];
  EACH(i) of.mean[i] = grad->mean[i];
  step_contact_adj(&m->walls, &c, &law, m->v, mean, &of);
  EACH(i) grad->mean[i] = of.mean[i];
  EACH(i) grad->before[i] += of.v[i];
  if (c.wall < 0) return -1;
  step_contact_place_adj(&m->walls, &c, &of, grad_place);
  EACH(i) grad->x[i] += grad_place[i];
  if (c.lands) EACH(i) grad->after[i] += grad_place[i];
  EACH(i) grad_wall->velocity[i] = of.of.w[i];
  grad_wall->friction = of.of.friction;
  if (!s->walls[c.wall].moves) return c.wall;
  const double seconds = m->walls.seconds + (c.lands ? m->walls.dt : 0);
  EACH(i) grad_wall->velocity[i] -= (real)(seconds * grad_place[i]);
  EACH(i) grad_wall->place[i] = -(real)grad_place[i];
  return c.wall;
}

// Reverses all contacts of CQ_TILE_NODES nodes, a thread for each; count: how many this thread's node has. The last
// contact comes first; threads of nodes with fewer contacts wait. grad: as in step_contact_back. The gradients of walls
// are added to sums, those of one wall by one thread, in the order of the nodes.
CQ_RARE void step_contacts_back(const cq_frame *s, const Mover *m, const int32_t count, MoverGrad *grad,
                                Shared *shared, double *sums) {
  const int n = (int)threadIdx.x, walls = s->wall_count;
  if (n == 0) shared->most = 0;
  __syncthreads();
  if (count) atomicMax(&shared->most, count);
  __syncthreads();
  const int32_t rounds = shared->most;
  for (int32_t r = 0; r < rounds; r++) {
    shared->wall[n] = step_contact_back(s, m, count - 1 - r, grad, &shared->grads[n]);
    __syncthreads();
    for (int w = n; w < walls; w += CQ_TILE_NODES) {
      double *friction = sums + CQ_AT_FRICTION + w, *velocity = sums + CQ_AT_FRICTION + walls + 3 * w,
             *place = velocity + 3 * walls;
      for (int at = 0; at < CQ_TILE_NODES; at++) {
        if (shared->wall[at] != w) continue;
        *friction += (double)shared->grads[at].friction;
        EACH(i) velocity[i] += (double)shared->grads[at].velocity[i];
        if (s->wall_place) EACH(i) place[i] += (double)shared->grads[at].place[i];
      }
    }
    __syncthreads();
  }
}

// Kernel: adjoint of node_move in total Lagrangian step k: from gradients of displacements and velocities after the
// step to those before it, in r->adj, and of forces; adds to those of masses, rest places, walls, gravity and damping.
// given: how many vector fields that cells left for nodes are added first (0, 1: displacements, 2: velocities too).
static __global__ void __launch_bounds__(CQ_TILE_NODES, 1) node_move_adj(const cq_frame *s, int32_t k, int32_t given) {
  CQ_SHARED(Shared, shared, 1);
  const cq_shapes *r = s->shapes;
  const cq_substep *step = &s->substeps[k];
  const Node *in = nodes_at(step->in, 0), *kept = step->grid ? nodes_at(step->grid, 0) : nodes_at(step->out, r->nodes);
  Node *adj = (Node *)r->adj;
  const real dt = s->SCALES.dt;
  for (int32_t block = (int32_t)blockIdx.x; block < r->nodes / CQ_TILE_NODES; block += (int32_t)gridDim.x) {
    const int32_t node = block * CQ_TILE_NODES + (int32_t)threadIdx.x, scene = r->scene[block];
    const Node mass = nodes_at(r->mass, 0)[node], v = kept[node];
    const real loss = loss_of(s, scene), *gravity = gravity_of(s, scene);
    const int moves = mass.c[0] > 0;
    double *sums = s->sums + (int64_t)block * s->sum_count;
    Node gu = adj[node], gv = adj[r->nodes + node];
    if (given > 0) {
      const Node more = given_to(r, 0, node);
      EACH(i) gu.c[i] += more.c[i];
    }
    if (given > 1) {
      const Node more = given_to(r, 1, node);
      EACH(i) gv.c[i] += more.c[i];
    }
    MoverGrad grad = {};
    EACH(i) grad.v[i] = moves ? gv.c[i] : 0;
    EACH(i) grad.mean[i] = moves ? dt * gu.c[i] : 0;
    if (s->wall_count || r->pinned) {
      Mover m = {};
      int32_t count = 0;
      StepContact c;
      real unused[CQ_DIM], mean[CQ_DIM];
      if (moves && may_hold(s, node)) {
        mover_of(s, k, node, mass.c[0], v.c, &m);
        count = contacts_until(s, &m, -1, &c, unused, mean);
      }
      step_contacts_back(s, &m, count, &grad, shared, sums);
    }
    EACH(i) grad.v[i] += grad.mean[i] + grad.before[i] + (real)(s->scales_8.dt * grad.after[i]);
    Node free = {{0, 0, 0, 0}}, back = free, force = free;
    double along = 0;
    EACH(i) {
      const real was = in[r->nodes + node].c[i] + dt * gravity[i];
      along += (double)v.c[i] * (double)grad.v[i];
      free.c[i] = back.c[i] = grad.v[i] + loss * grad.v[i];   // of p / m + dt g, and of v
      force.c[i] = dt * mass.c[1] * back.c[i];
      grad.mass -= mass.c[1] * grad.v[i] * (v.c[i] - (was + loss * was));
      gu.c[i] += (real)grad.x[i];
    }
    add_gravity(s, shared, &free, along, sums);
    if (r->places) EACH(i) ((Node *)r->rest_adj)[node].c[i] += (real)grad.x[i];
    if (moves) ((real *)r->mass_adj)[node] += grad.mass;
    ((Node *)r->force_adj)[node] = force;
    adj[node] = gu;
    adj[r->nodes + node] = back;
  }
}

// Adds the contributions of all tiles to the adjoint of the nodes. given: 1 displacements, 2 velocities too.
CQ_GPU void collect_nodes(const cq_shapes *r, const int32_t given) {
  Node *adj = (Node *)r->adj;
  for (int32_t node = (int32_t)(blockIdx.x * GRID_THREADS + threadIdx.x); node < r->nodes;
       node += (int32_t)gridDim.x * GRID_THREADS)
    for (int field = 0; field < given; field++) {
      const Node more = given_to(r, field, node);
      EACH(i) adj[(int64_t)field * r->nodes + node].c[i] += more.c[i];
    }
}
// The pass collect_nodes as a kernel, outside of runs: adds what reference_settle left for nodes.
CQ_KERNEL reference_collect(const __grid_constant__ cq_shapes r, int32_t given) { collect_nodes(&r, given); }
// The pass collect_nodes as a kernel, at the end of a run backward and, with cables, within each of its steps.
CQ_KERNEL node_collect(const cq_frame *s, int32_t given) { collect_nodes(s->shapes, given); }

// ---- particles ------------------------------------------------------------------------------------------------------

// Adds to r->fraction_adj the gradient by particle p's place in its cell, through the weights N and grad N of the
// field `hull` of nodes around its tile; corner: the particle's lowest node in it. value, slope: the gradients of the
// interpolated value and its slope, or, for a scattered field's adjoint, the scattered value and slope.
CQ_RARE void fraction_adj(const cq_shapes *r, const int32_t p, const Hull *hull, const int corner,
                          const real value[CQ_DIM], const real slope[CQ_DIM][CQ_DIM]) {
  const real dx = (real)r->dx, by = (real)(1 / r->dx);
  real fraction[CQ_DIM];
  Axes a;
  fraction_load(r, p, fraction);
  axes_of(by, fraction, &a);
  for (int k = 0; k < TOUCHED; k++) {
    const int at[3] = {CQ_DIM == 3 ? k / 9 : k / 3, CQ_DIM == 3 ? k / 3 % 3 : k % 3, k % 3};
    int n = at[0];
    for (int i = 1; i < CQ_DIM; i++) n = n * HULL + at[i];
    real alpha = 0, beta[CQ_DIM] = {0};
    EACH(i) {
      const real x = hull->c[i][corner + n];
      alpha += x * value[i];
      EACH(j) beta[j] += x * slope[i][j];
    }
    EACH(e) {
      // of the weight, then of its slope along each axis
      real sum = alpha;
      EACH(axis) sum *= axis == e ? dx * a.d[axis][at[axis]] : a.w[axis][at[axis]];
      EACH(j) {
        real g = beta[j];
        EACH(axis) {
          if (axis == e && axis == j) g *= by * (at[axis] == 1 ? (real)-2 : (real)1);   // second derivative of N
          else if (axis == e) g *= dx * a.d[axis][at[axis]];
          else if (axis == j) g *= a.d[axis][at[axis]];
          else g *= a.w[axis][at[axis]];
        }
        sum += g;
      }
      slot_in(r->fraction_adj, CQ_DIM, p)[e * CQ_GROUP] += sum;
    }
  }
}

// Adjoint of deform: turns dL/dF in grad_f into dL/d(stretch). Where the initial F0 has a gradient, adds stretch^T
// dL/dF to it.
CQ_GPU void deform_adj(const cq_shapes *r, const int32_t p, const real stretch[CQ_DIM][CQ_DIM],
                       real grad_f[CQ_DIM][CQ_DIM]) {
  if (r->starts) {
    real t[CQ_DIM][CQ_DIM];
    mat_mul_tn(stretch, grad_f, t);
    EACH(i) EACH(j) slot_in(r->start_adj, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP] += t[i][j];
  }
  times_initial_f(r, p, grad_f);
}

// what F and, where it is viscous, C of a particle get by its stress; added to
typedef struct StressGrad {
  real f[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM];
} StressGrad;

// Adjoint of piola_of_any: from grad_p = dL/dP adds to the gradients of F and of the velocity gradient (in *of), and of
// the particle's material constants.
CQ_RARE void piola_of_any_adj(const cq_frame *s, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                              const real rate[CQ_DIM][CQ_DIM], StressGrad *of, const real grad_p[CQ_DIM][CQ_DIM]) {
  MaterialPoint at, grad;
  elastic_point(s, p, f, rate, &at);
  const int slots = s->param_count - CQ_PARAM_SLOTS;
  for (int k = 0; k < slots; k++) *material_slot(at.law, &grad, k) = 0;
  EACH(i) EACH(j) grad.f[i][j] = grad.rate[i][j] = 0;
  piola_of_law_adj(&at, (real)0, &grad, grad_p);
  EACH(i) EACH(j) of->f[i][j] += grad.f[i][j];
  EACH(i) EACH(j) of->rate[i][j] += at.law->viscous ? grad.rate[i][j] : 0;
  for (int k = 0; k < slots; k++) add_param(s, CQ_PARAM_SLOTS + k, p, *material_slot(at.law, &grad, k));
}

// Adjoint of piola_of: from dL/dP adds to the gradients of F and rate (in *of), constants and actuation.
CQ_GPU void piola_of_adj(const cq_frame *s, const Matter *m, const int32_t p, const real rate[CQ_DIM][CQ_DIM],
                         StressGrad *of, const real grad_p[CQ_DIM][CQ_DIM]) {
  if (material_is_fused(m->point.law)) {
    MaterialPoint grad;
    EACH(i) EACH(j) grad.f[i][j] = of->f[i][j];
    CQ_UNROLL for (int q = 0; q < FUSED_SLOTS; q++) grad.c[q] = 0;
    material_piola_of_adj(m->point.law->kind, &m->point, &grad, grad_p);
    EACH(i) EACH(j) of->f[i][j] = grad.f[i][j];
    CQ_UNROLL for (int q = 0; q < FUSED_SLOTS; q++)
      if (CQ_PARAM_SLOTS + q < s->param_count) add_param(s, CQ_PARAM_SLOTS + q, p, grad.c[q]);
  } else {
    // a variable of its own, for of would lie on the stack
    StressGrad any = *of;
    piola_of_any_adj(s, p, m->point.f, rate, &any, grad_p);
    *of = any;
  }
  if (!s->actuation) return;
  real sigma[CQ_SYM], grad_sigma[CQ_SYM] = {0};
  sigma_load(s, p, sigma);
  actuation_piola_adj(m->point.f, sigma, of->f, grad_sigma, grad_p);
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++)
    slot_in(s->actuation_adj, ACTUATION_FIELDS, p)[(SIGMA + k) * CQ_GROUP] += grad_sigma[k];
}

// Adjoint of force_of for particle p: from the gradients of what nodes got (in at->want) sets those of the displacement
// gradient (out) and of the velocity gradient (back), and adds to those of constants, actuation, and, where wanted,
// volume, F0 and place.
CQ_GPU void force_of_adj(const cq_frame *s, const int32_t p, const AroundCell *at, real out[CQ_DIM][CQ_DIM],
                         real back[CQ_DIM][CQ_DIM]) {
  const cq_shapes *r = s->shapes;
  const int viscous = is_viscous(s, p);
  real value[CQ_DIM], slope[CQ_DIM][CQ_DIM], stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM];
  real along[CQ_DIM][CQ_DIM], grad_p[CQ_DIM][CQ_DIM];
  StressGrad grad = {};
  hull_at(at->u, at->corner, &at->axes, value, slope);
  deform(r, p, slope, stretch, f);
  if (viscous) rate_of(at->v, at->corner, &at->axes, stretch, rate);
  hull_at(at->want, at->corner, &at->axes, value, slope);
  Matter m;
  matter_load(s, p, f, &m);
  EACH(i) EACH(j) along[i][j] = slope[i][j];
  if (r->start) {
    real start[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) start[i][j] = slot_in(r->start, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP];
    mat_mul(slope, start, along);
  }
  EACH(i) EACH(j) grad_p[i][j] = -m.volume * along[i][j];
  if (r->volumes || r->starts || r->places) {
    real piola[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
    piola_of(s, &m, p, rate, piola);
    if (r->volumes) add_param(s, CQ_PARAM_VOLUME, p, -mat_dot(piola, along));
    if (r->starts) {
      mat_mul_tn(slope, piola, t);
      EACH(i) EACH(j) slot_in(r->start_adj, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP] -= m.volume * t[i][j];
    }
    if (r->places) {
      EACH(i) EACH(j) t[i][j] = -m.volume * piola[i][j];
      times_initial_f(r, p, t);
      fraction_adj(r, p, at->want, at->corner, m.force, t);
    }
  }
  piola_of_adj(s, &m, p, rate, &grad, grad_p);
  EACH(i) EACH(j) out[i][j] = grad.f[i][j];
  if (s->pressed) pressure_load_adj(s, p, f, out, value);
  if (s->actuation) EACH(i) slot_in(s->actuation_adj, ACTUATION_FIELDS, p)[(FORCE + i) * CQ_GROUP] += value[i];
  deform_adj(r, p, stretch, out);
  EACH(i) EACH(j) back[i][j] = 0;
  if (viscous) rate_in_space_adj(stretch, rate, grad.rate, back, out);
}

// Kernel cell_forces_adj: adjoint of cell_forces in total Lagrangian step k: from gradients of forces on nodes to
// gradients of the nodes' displacements (arena 0) and, for viscous materials, velocities (arena 1), which each tile of
// cells leaves in its own copy of nodes; and to gradients of particles' constants and actuation.
static __global__ void __launch_bounds__(CELL_THREADS, CQ_REAL_BYTES == 4 ? 2 : 1)
    cell_forces_adj(const cq_frame *s, int32_t k) {
  CQ_SHARED(Hull, u, 1);
  CQ_SHARED(Hull, v, 1);
  CQ_SHARED(Hull, want, 1);
  CQ_SHARED(Scatter, scatter, 1);
  const cq_shapes *r = s->shapes;
  const real inv_dx = s->SCALES.inv_dx;
  const real none[CQ_DIM] = {0};
  for (int32_t t = (int32_t)blockIdx.x; t < r->tiles; t += (int32_t)gridDim.x) {
    const cq_cell_tile tile = r->tile[t];
    hull_load(r, u, nodes_at(s->substeps[k].in, 0), t);
    if (r->viscous) hull_load(r, v, nodes_at(s->substeps[k].in, r->nodes), t);
    hull_load(r, want, nodes_at(r->force_adj, 0), t);
    scatter_begin(r, scatter, t);
    __syncthreads();
    for (int32_t from = 0; from < tile.count; from += CELL_THREADS) {
      const int32_t here = from + (int32_t)threadIdx.x, p = tile.first + here;
      real fraction[CQ_DIM], grad[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
      if (here < tile.count) {
        AroundCell at = {u, v, want, r->corner[p] - t * HULL_NODES, {}};
        fraction_load(r, p, fraction);
        axes_of(inv_dx, fraction, &at.axes);
        force_of_adj(s, p, &at, grad, back);
        if (r->places) {
          fraction_adj(r, p, u, at.corner, none, grad);
          if (r->viscous) fraction_adj(r, p, v, at.corner, none, back);
        }
        scatter_put(scatter, fraction, NULL, grad);
      }
      scatter_round(scatter, inv_dx, from, tile.count);
      if (!r->viscous) continue;
      scatter_end(scatter, arena_at(r, 0, t), from == 0);
      if (here < tile.count) scatter_put(scatter, fraction, NULL, back);
      scatter_round(scatter, inv_dx, from, tile.count);
      scatter_end(scatter, arena_at(r, 1, t), from == 0);
    }
    if (!r->viscous) scatter_end(scatter, arena_at(r, 0, t), 1);
  }
}

// ---- readouts, and the first state ----------------------------------------------------------------------------------

// Moves dL/d(x, v, F, C) of particles, as readouts and cables leave them in adj {fields, slots}, to the nodes that the
// particles follow: into the arenas of displacements and velocities. Clears adj.
CQ_GPU void settle_tiles(const cq_shapes *r, const void *state, void *adj, Hull *u, Hull *v, Scatter *scatter) {
  const real inv_dx = (real)(1 / r->dx);
  for (int32_t t = (int32_t)blockIdx.x; t < r->tiles; t += (int32_t)gridDim.x) {
    const cq_cell_tile tile = r->tile[t];
    hull_load(r, u, nodes_at(state, 0), t);
    hull_load(r, v, nodes_at(state, r->nodes), t);
    scatter_begin(r, scatter, t);
    __syncthreads();
    for (int32_t from = 0; from < tile.count; from += CELL_THREADS) {
      const int32_t here = from + (int32_t)threadIdx.x, p = tile.first + here;
      State q;
      real fraction[CQ_DIM], back[CQ_DIM][CQ_DIM];
      if (here < tile.count) {
        const int corner = r->corner[p] - t * HULL_NODES;
        real value[CQ_DIM], slope[CQ_DIM][CQ_DIM], stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM];
        Axes a;
        State zero = {};
        fraction_load(r, p, fraction);
        axes_of(inv_dx, fraction, &a);
        hull_at(u, corner, &a, value, slope);
        deform(r, p, slope, stretch, f);
        rate_of(v, corner, &a, stretch, rate);
        state_load(adj, p, &q);
        state_store(adj, p, &zero);
        deform_adj(r, p, stretch, q.f);
        rate_in_space_adj(stretch, rate, q.c, back, q.f);
        if (r->places) {
          fraction_adj(r, p, u, corner, q.x, q.f);
          fraction_adj(r, p, v, corner, q.v, back);
          EACH(i) slot_in(r->place_adj, CQ_DIM, p)[i * CQ_GROUP] += q.x[i];
        }
        scatter_put(scatter, fraction, q.x, q.f);
      }
      scatter_round(scatter, inv_dx, from, tile.count);
      scatter_end(scatter, arena_at(r, 0, t), from == 0);
      if (here < tile.count) scatter_put(scatter, fraction, q.v, back);
      scatter_round(scatter, inv_dx, from, tile.count);
      scatter_end(scatter, arena_at(r, 1, t), from == 0);
    }
  }
}

// Kernel reference_settle, between control steps of the reverse pass, after readouts have added gradients of particles
// to adj: moves these to the nodes that the particles follow (settle_tiles). state: displacements and velocities of
// nodes.
static __global__ void __launch_bounds__(CELL_THREADS) reference_settle(const __grid_constant__ cq_shapes r,
                                                                       const void *state, void *adj) {
  CQ_SHARED(Hull, u, 1);
  CQ_SHARED(Hull, v, 1);
  CQ_SHARED(Scatter, scatter, 1);
  settle_tiles(&r, state, adj, u, v, scatter);
}
// Kernel cell_settle, within a run backward, after the adjoint of cables has added gradients of particles' positions in
// state k to s->adj: moves these to the nodes that the particles follow (settle_tiles).
static __global__ void __launch_bounds__(CELL_THREADS) cell_settle(const cq_frame *s, int32_t k) {
  CQ_SHARED(Hull, u, 1);
  CQ_SHARED(Hull, v, 1);
  CQ_SHARED(Scatter, scatter, 1);
  settle_tiles(s->shapes, s->substeps[k].in, s->adj, u, v, scatter);
}

// Kernel, once at the end of the reverse pass: nodes began with v = p / m, so that each mass gets -v . dL/dv / m;
// reference_given takes the gradients of masses and momenta on to particles.
CQ_KERNEL reference_masses(const __grid_constant__ cq_shapes r, const void *state) {
  for (int32_t node = (int32_t)(blockIdx.x * GRID_THREADS + threadIdx.x); node < r.nodes;
       node += (int32_t)gridDim.x * GRID_THREADS) {
    const Node mass = nodes_at(r.mass, 0)[node], back = nodes_at(r.adj, r.nodes)[node],
               v = nodes_at(state, r.nodes)[node];
    real sum = 0;
    EACH(i) sum += back.c[i] * v.c[i];
    ((real *)r.mass_adj)[node] -= mass.c[1] * sum;
  }
}

// Kernel: sets given.adj, gradients of the particles that the rollout began with, from those of nodes' mass and
// momentum and what fraction_adj, place_adj and start_adj hold; adds to those of masses. Then place_adj is set to each
// one's share in the gradient by the origin of its body's grid.
CQ_KERNEL reference_given(const __grid_constant__ cq_shapes r, const cq_given_particles given) {
  const real dx = (real)r.dx, by = (real)(1 / r.dx);
  SLOTS_EACH(p, r.slots) {
    const int32_t *hull = r.hull + r.corner[p];
    const real m = slot_in(given.params, given.param_count, p)[CQ_PARAM_MASS * CQ_GROUP];
    real fraction[CQ_DIM], place[CQ_DIM], grad_mass = 0;
    State q, grad = {};
    Axes a;
    double by_place[CQ_DIM] = {0}, by_fraction[CQ_DIM] = {0}, origin[CQ_DIM] = {0};
    fraction_load(&r, p, fraction);
    axes_of(by, fraction, &a);
    state_load(given.state, p, &q);
    EACH(i) place[i] = slot_in(r.place, CQ_DIM, p)[i * CQ_GROUP];
    for (int k = 0; k < TOUCHED; k++) {
      const int at[3] = {CQ_DIM == 3 ? k / 9 : k / 3, CQ_DIM == 3 ? k / 3 % 3 : k % 3, k % 3};
      int n = at[0];
      for (int i = 1; i < CQ_DIM; i++) n = n * HULL + at[i];
      const int32_t node = hull[n];
      const Node rest = nodes_at(r.rest, 0)[node], back = nodes_at(r.adj, r.nodes)[node];
      const real inverse = nodes_at(r.mass, 0)[node].c[1];
      real weight = 1, share = ((const real *)r.mass_adj)[node], arm[CQ_DIM];
      EACH(i) weight *= a.w[i][at[i]];
      EACH(j) arm[j] = rest.c[j] - place[j];
      EACH(i) {
        const real g = inverse * back.c[i];
        real v = q.v[i];
        EACH(j) v += q.c[i][j] * arm[j];
        share += g * v;
        grad.v[i] += weight * m * g;
        EACH(j) {
          grad.c[i][j] += weight * m * g * arm[j];
          by_place[j] -= (double)(weight * m * g * q.c[i][j]);
          origin[j] += (double)(weight * m * g * q.c[i][j]);
        }
      }
      grad_mass += weight * share;
      EACH(e) {
        real slope = m * share;
        EACH(axis) slope *= axis == e ? dx * a.d[axis][at[axis]] : a.w[axis][at[axis]];
        by_fraction[e] += (double)slope;
      }
    }
    EACH(e) {
      by_fraction[e] += (double)slot_in(r.fraction_adj, CQ_DIM, p)[e * CQ_GROUP];
      by_place[e] += (double)slot_in(r.place_adj, CQ_DIM, p)[e * CQ_GROUP];
      grad.x[e] = (real)(by_place[e] + by_fraction[e] / r.dx);
      slot_in(r.place_adj, CQ_DIM, p)[e * CQ_GROUP] = (real)(origin[e] - by_fraction[e] / r.dx);
    }
    EACH(i) EACH(j) grad.f[i][j] = slot_in(r.start_adj, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP];
    state_store(given.adj, p, &grad);
    slot_in(given.params_adj, given.param_count, p)[CQ_PARAM_MASS * CQ_GROUP] += grad_mass;
  }
}

// Kernel: sets origin_adj to what each particle gets by the origin of its body's grid, the mean of places; a block for
// each {body, axis}.
CQ_KERNEL reference_origins(const __grid_constant__ cq_shapes r) {
  CQ_SHARED(double, shared, SUM_THREADS);
  for (int32_t n = (int32_t)blockIdx.x; n < r.bodies * CQ_DIM; n += (int32_t)gridDim.x) {
    const int32_t body = n / CQ_DIM, i = n % CQ_DIM, first = r.body_tile[body], end = r.body_tile[body + 1];
    double sum = 0;
    const int32_t begin_slot = r.tile[first].first, end_slot = r.tile[end - 1].first + r.tile[end - 1].count;
    for (int32_t p = begin_slot + (int32_t)threadIdx.x; p < end_slot; p += SUM_THREADS)
      sum += (double)slot_in(r.place_adj, CQ_DIM, p)[i * CQ_GROUP];
    // a node counts once, where the first of its tiles has it
    for (int32_t at = first * HULL_NODES + (int32_t)threadIdx.x; at < end * HULL_NODES; at += SUM_THREADS) {
      const int32_t node = r.hull[at];
      if (node < 0) continue;
      int32_t owner = -1;
      for (int g = GIVEN - 1; g >= 0; g--)
        if (r.given[(int64_t)node * GIVEN + g] >= 0) owner = r.given[(int64_t)node * GIVEN + g];
      if (owner == at) sum += (double)nodes_at(r.rest_adj, 0)[node].c[i];
    }
    sum = block_sum(shared, sum);
    if (threadIdx.x == 0) r.origin_adj[n] = sum / (double)r.body_count[body];
  }
}

// Adds the gradients of body origins to those of the particles' initial positions.
CQ_KERNEL reference_shift(const __grid_constant__ cq_shapes r, void *adj) {
  for (int32_t t = (int32_t)blockIdx.x; t < r.tiles; t += (int32_t)gridDim.x) {
    const cq_cell_tile tile = r.tile[t];
    for (int32_t p = tile.first + (int32_t)threadIdx.x; p < tile.first + tile.count; p += SLOT_THREADS)
      EACH(i) slot_in(adj, FIELDS, p)[(X + i) * CQ_GROUP] += (real)r.origin_adj[tile.body * CQ_DIM + i];
  }
}
