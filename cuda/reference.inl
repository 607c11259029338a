// reference: total Lagrangian steps (E110 to E115). A block works on a tile of cells: it gathers displacements of the
// hull's nodes to particles, and scatters their forces to the hull (hull.inl). A thread then works on a node. The twin
// of engine/cpu/reference; shapes.h has the tables.

// ---- forces ---------------------------------------------------------------------------------------------------------

// Fills `at`, the argument of an elastic law, for particle p: deformation gradient f, its constants, the step, and the
// velocity gradient `rate` if the law is viscous.
CQ_GPU void elastic_point(const cq_frame *s, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                          const real rate[CQ_DIM][CQ_DIM], MaterialPoint *at) {
  const real *params = slot_in(s->params, s->param_count, p);
  at->law = &s->materials[s->material[p]];
  at->dt = s->SCALES.dt;
  for (int k = 0; k < s->param_count - CQ_PARAM_SLOTS; k++)
    *material_slot(at->law, at, k) = params[(CQ_PARAM_SLOTS + k) * CQ_GROUP];
  EACH(i) EACH(j) at->f[i][j] = f[i][j];
  if (at->law->viscous) EACH(i) EACH(j) at->rate[i][j] = rate[i][j];
}

// Sets out to the first Piola-Kirchhoff stress P of particle p, by any material law. For laws that are not inlined into
// the kernel (material_is_fused says which are). f: deformation gradient; rate: velocity gradient of viscous laws.
CQ_RARE void piola_of_any(const cq_frame *s, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                          const real rate[CQ_DIM][CQ_DIM], real out[CQ_DIM][CQ_DIM]) {
  MaterialPoint at;
  elastic_point(s, p, f, rate, &at);
  piola_of_law(&at, (real)0, out);
}

// Has the material of particle p a viscosity?
CQ_GPU int is_viscous(const cq_frame *s, const int32_t p) { return s->materials[s->material[p]].viscous; }

// The first Piola-Kirchhoff stress P of particle p by its law, plus that of its actuation. m: its constants and F.
CQ_GPU void piola_of(const cq_frame *s, const Matter *m, const int32_t p, const real rate[CQ_DIM][CQ_DIM],
                     real out[CQ_DIM][CQ_DIM]) {
  if (material_is_fused(m->point.law))
    material_piola_of(m->point.law->kind, &m->point, out);
  else
    piola_of_any(s, p, m->point.f, rate, out);
  if (!s->actuation) return;
  real sigma[CQ_SYM];
  sigma_load(s, p, sigma);
  actuation_piola(m->point.f, sigma, out);
}

// The velocity gradient in space at a particle, which viscous laws need: the gradient of the hull's velocities v in the
// undeformed body, times the inverse of the stretch.
CQ_GPU void rate_of(const Hull *v, const int corner, const Axes *a, const real stretch[CQ_DIM][CQ_DIM],
                    real rate[CQ_DIM][CQ_DIM]) {
  real value[CQ_DIM], slope[CQ_DIM][CQ_DIM];
  hull_at(v, corner, a, value, slope);
  rate_in_space(slope, stretch, rate);
}

// The hulls that a particle reads, and where it lies in them; want: backward, dL/d(force).
typedef struct AroundCell {
  const Hull *u, *v, *want;
  int corner;
  Axes axes;
} AroundCell;

// What particle p gives to the nodes around it: slope = -V P F0^T, which goes by grad N, and its force (script,
// pressure, cables), which goes by N. Returns det F.
CQ_GPU real force_of(const cq_frame *s, const int32_t p, const AroundCell *at, real slope[CQ_DIM][CQ_DIM],
                     real force[CQ_DIM]) {
  const cq_shapes *r = s->shapes;
  real value[CQ_DIM], stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM], out[CQ_DIM][CQ_DIM];
  hull_at(at->u, at->corner, &at->axes, value, slope);
  deform(r, p, slope, stretch, f);
  if (is_viscous(s, p)) rate_of(at->v, at->corner, &at->axes, stretch, rate);
  Matter m;
  matter_load(s, p, f, &m);
  piola_of(s, &m, p, rate, out);
  EACH(i) EACH(j) slope[i][j] = -m.volume * out[i][j];
  times_initial_f(r, p, slope);
  EACH(i) force[i] = m.force[i];
  return mat_det(f);
}

// Kernel cell_forces: P2G of total Lagrangian step k of a run. Scatters internal forces and forces of actuation of all
// particles to the nodes of reference grids; a block for each tile of cells, which has its own copy of the nodes that
// its particles reach. Notes particles with det F <= 0 in s->progress.
static __global__ void __launch_bounds__(CELL_THREADS, CQ_REAL_BYTES == 4 ? 2 : 1)
    cell_forces(const cq_frame *s, int32_t k) {
  CQ_SHARED(Hull, u, 1);
  CQ_SHARED(Hull, v, 1);
  CQ_SHARED(Scatter, scatter, 1);
  const cq_shapes *r = s->shapes;
  const real inv_dx = s->SCALES.inv_dx;
  if (is_over(s, k)) return;
  for (int32_t t = (int32_t)blockIdx.x; t < r->tiles; t += (int32_t)gridDim.x) {
    const cq_cell_tile tile = r->tile[t];
    hull_load(r, u, nodes_at(s->substeps[k].in, 0), t);
    if (r->viscous) hull_load(r, v, nodes_at(s->substeps[k].in, r->nodes), t);
    scatter_begin(r, scatter, t);
    __syncthreads();
    for (int32_t from = 0; from < tile.count; from += CELL_THREADS) {
      const int32_t at = from + (int32_t)threadIdx.x, p = tile.first + at;
      if (at < tile.count) {
        real fraction[CQ_DIM], slope[CQ_DIM][CQ_DIM], force[CQ_DIM];
        AroundCell around = {u, v, NULL, r->corner[p] - t * HULL_NODES, {}};
        fraction_load(r, p, fraction);
        axes_of(inv_dx, fraction, &around.axes);
        if (!(force_of(s, p, &around, slope, force) > 0))
          atomicMin(&s->progress->bad, s->first + k);
        scatter_put(scatter, fraction, force, slope);
      }
      scatter_round(scatter, inv_dx, from, tile.count);
    }
    scatter_end(scatter, arena_at(r, 0, t), 1);
  }
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

// A node and its walls in a step.
typedef struct Mover {
  StepWalls walls;
  int32_t scene, pin;
  real mass, v[CQ_DIM];      // velocity before walls
  double place[3], after[3]; // where it is, and where it would be after the step
} Mover;

// The walls of a scene as they stand in step k.
CQ_GPU StepWalls walls_of(const cq_frame *s, const int32_t scene, const int32_t k) {
  const double *moved = s->wall_place ? s->wall_place + 3 * (int64_t)scene * s->wall_count : NULL;
  return {s->walls, s->wall_count, wall_velocity_of(s, scene, 0), moved,
          wall_time_of(s, scene, k), s->scales_8.dt, s->scales_8.dx};
}

// Fills m for a node of a reference grid before contacts: scene, mass, velocity v, pin, the walls of the step, and its
// places before the step and after it without contacts.
CQ_GPU void mover_of(const cq_frame *s, const int32_t k, const int32_t node, const real mass, const real v[CQ_DIM],
                     Mover *m) {
  const cq_shapes *r = s->shapes;
  const Node rest = nodes_at(r->rest, 0)[node], u = nodes_at(s->substeps[k].in, 0)[node];
  m->scene = r->scene[node / CQ_TILE_NODES];
  m->walls = walls_of(s, m->scene, k);
  m->pin = r->pin[node];
  m->mass = mass;
  m->place[2] = m->after[2] = 0;
  EACH(i) m->v[i] = v[i];
  EACH(i) m->place[i] = (double)rest.c[i] + (double)u.c[i];
  EACH(i) m->after[i] = m->place[i] + m->walls.dt * (double)v[i];
}

// Calls visit(contact) for each contact of a node, its pin alone or in the order of walls, until it returns 0.
template <class Visit>
CQ_GPU void each_contact(const Mover *m, const Visit &visit) {
  StepContact of[STEP_CONTACTS];
  if (m->pin) {
    of[0].wall = m->pin;
    of[0].lands = 0;
    EACH(i) of[0].normal[i] = 0;
    visit(&of[0]);
    return;
  }
  for (int32_t w = 0; w < m->walls.count; w++) {
    const int32_t count = step_contacts(&m->walls, w, m->place, m->after, of);
    for (int32_t n = 0; n < count; n++)
      if (!visit(&of[n])) return;
  }
}

// The contact law of a node at a wall or a pin: friction, and the velocity of the wall. still: zeros, the velocity of
// a pin.
CQ_GPU ContactLaw law_of_step(const cq_frame *s, const Mover *m, const StepContact *c, const real still[CQ_DIM]) {
  if (c->wall < 0) return {CQ_CONTACT_STICKY, 0, c->normal, still};
  return {s->walls[c->wall].kind, friction_of(s, m->scene, c->wall), c->normal, m->walls.velocity + 3 * c->wall};
}

// Applies a contact of a node to its velocity and its mean velocity over the step.
CQ_GPU void apply_step_contact(const cq_frame *s, const Mover *m, const StepContact *c, real v[CQ_DIM],
                               real mean[CQ_DIM]) {
  const real still[CQ_DIM] = {0};
  const ContactLaw law = law_of_step(s, m, c, still);
  step_contact(&m->walls, c, &law, m->v, mean);
  contact(&law, v);
}

// Applies all contacts of a node of a reference grid with walls, or its pin. v: the node's velocity; mean: its mean
// velocity over the step, by which it moves; both before contacts, replaced by those after them.
CQ_RARE void hold_node(const cq_frame *s, const Mover *m, real v[CQ_DIM], real mean[CQ_DIM]) {
  each_contact(m, [&](const StepContact *c) {
    apply_step_contact(s, m, c, v, mean);
    return 1;
  });
}

// Can a wall or a pin hold this node?
CQ_GPU int may_hold(const cq_frame *s, const int32_t node) { return s->wall_count || s->shapes->pin[node]; }

// (E115) The velocity of a node after step k if nothing held it, d (v + dt f / m + dt g): f sums what particles and
// near surfaces give, d is the damping. mass: of the node, with 1 / m behind it.
CQ_GPU void velocity_before(const cq_frame *s, const int32_t k, const int32_t node, const Node mass, real v[CQ_DIM]) {
  const cq_shapes *r = s->shapes;
  const int32_t scene = r->scene[node / CQ_TILE_NODES];
  const real dt = s->SCALES.dt, loss = loss_of(s, scene), *gravity = gravity_of(s, scene);
  const Node was = nodes_at(s->substeps[k].in, r->nodes)[node];
  Node f = given_to(r, 0, node);
  if (r->push) EACH(i) f.c[i] += nodes_at(r->push, 0)[node].c[i];
  EACH(i) {
    const real free = was.c[i] + dt * mass.c[1] * f.c[i] + dt * gravity[i];
    v[i] = free + loss * free;
  }
}

// Kernel: the node pass of total Lagrangian step k of a run: each node's velocity after forces, gravity, damping and
// contacts (that before them to the record) and displacement. Notes the fastest speed, and nodes that are not finite.
static __global__ void __launch_bounds__(GRID_THREADS, 2) node_move(const cq_frame *s, int32_t k) {
  const cq_shapes *r = s->shapes;
  const real dt = s->SCALES.dt;
  if (is_over(s, k)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) s->progress->over = 1;
    return;
  }
  const Node *in = nodes_at(s->substeps[k].in, 0);
  Node *out = (Node *)s->substeps[k].out, *kept = (Node *)s->substeps[k].grid;
  float fastest = 0;
  int bad = 0;
  for (int32_t node = (int32_t)(blockIdx.x * GRID_THREADS + threadIdx.x); node < r->nodes;
       node += (int32_t)gridDim.x * GRID_THREADS) {
    const Node mass = nodes_at(r->mass, 0)[node], u = in[node];
    Node v = {{0, 0, 0, 0}}, next = u;
    if (mass.c[0] > 0) velocity_before(s, k, node, mass, v.c);
    if (kept) kept[node] = v;
    if (mass.c[0] > 0) {
      real mean[CQ_DIM], poison = 0, square = 0;
      EACH(i) mean[i] = v.c[i];
      if (may_hold(s, node)) {
        Mover m;
        mover_of(s, k, node, mass.c[0], v.c, &m);
        hold_node(s, &m, v.c, mean);
      }
      EACH(i) next.c[i] = u.c[i] + dt * mean[i];
      EACH(i) poison += (real)0 * next.c[i];   // stays zero unless something is not finite
      EACH(i) square += v.c[i] * v.c[i];
      bad |= !(poison == 0);
      if ((float)square > fastest) fastest = (float)square;
    }
    out[node] = next;
    out[r->nodes + node] = v;
  }
  if (bad) atomicMin(&s->progress->bad, s->first + k);
  for (int d = WARP / 2; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, fastest, d);
    if (other > fastest) fastest = other;
  }
  // floats that are not negative are in the order of their bits
  if (threadIdx.x % WARP == 0 && fastest > 0) atomicMax(&s->shapes->fastest[k], __float_as_uint(fastest));
}

// ---- impulses -------------------------------------------------------------------------------------------------------

// Collects what the impulse of a contact depends on: mass, normal, place, and the velocity before and after it.
CQ_GPU void touch_of_step(const Mover *m, const StepContact *c, const real before[CQ_DIM], const real after[CQ_DIM],
                          Touch *t) {
  t->mass = m->mass;
  EACH(i) t->normal[i] = c->normal[i];
  EACH(i) t->x[i] = (real)m->place[i];
  EACH(i) t->before[i] = before[i];
  EACH(i) t->after[i] = after[i];
}

// Applies the contacts of a node before contact j (0-based), in order, which gives v and mean as they are before it
// (velocity, mean velocity over the step), and sets *found to contact j. Returns j + 1, or the number of contacts if
// there are fewer. j -1: counts all contacts.
CQ_RARE int32_t contacts_until(const cq_frame *s, const Mover *m, const int32_t j, StepContact *found, real v[CQ_DIM],
                               real mean[CQ_DIM]) {
  int32_t count = 0;
  EACH(i) v[i] = mean[i] = m->v[i];
  each_contact(m, [&](const StepContact *c) {
    if (count++ == j) {
      *found = *c;
      return 0;
    }
    apply_step_contact(s, m, c, v, mean);
    return 1;
  });
  return count;
}

// Kernel node_impulse: adds the impulses that walls and pins give to nodes of reference grids in total Lagrangian step
// k to the sums of each block of CQ_TILE_NODES nodes, contact after contact, each in the order of the nodes.
static __global__ void __launch_bounds__(CQ_TILE_NODES, 1) node_impulse(const cq_frame *s, int32_t k) {
  CQ_SHARED(Impulses, shared, 1);
  const cq_shapes *r = s->shapes;
  if (s->progress->over || is_over(s, k)) return;
  for (int32_t block = (int32_t)blockIdx.x; block < r->nodes / CQ_TILE_NODES; block += (int32_t)gridDim.x) {
    const int node = (int)threadIdx.x;
    const int32_t n = block * CQ_TILE_NODES + node;
    const Node mass = nodes_at(r->mass, 0)[n];
    double *sums = s->impulse + (int64_t)block * s->impulse_count;
    real v[CQ_DIM] = {0}, mean[CQ_DIM];
    StepContact c;
    Mover m = {};
    int32_t count = 0;
    if (mass.c[0] > 0 && may_hold(s, n)) {
      velocity_before(s, k, n, mass, v);
      mover_of(s, k, n, mass.c[0], v, &m);
      count = contacts_until(s, &m, -1, &c, v, mean);
    }
    __syncthreads();
    if (node == 0) shared->most = 0;
    __syncthreads();
    if (count) atomicMax(&shared->most, count);
    __syncthreads();
    const int32_t rounds = shared->most;
    for (int32_t j = 0; j < rounds; j++) {
      shared->wall[node] = -1;
      if (j < count) {
        real after[CQ_DIM];
        Touch t;
        contacts_until(s, &m, j, &c, v, mean);
        EACH(i) after[i] = v[i];
        apply_step_contact(s, &m, &c, after, mean);
        touch_of_step(&m, &c, v, after, &t);
        contact_impulse(&t, shared->value[node]);
        shared->wall[node] = impulse_at(s, c.wall) / CONTACT_WIDTH;
      }
      __syncthreads();
      for (int at = node; at < s->impulse_count; at += CQ_TILE_NODES) {
        double sum = 0;
        for (int w = 0; w < CQ_TILE_NODES; w++)
          if (shared->wall[w] == at / CONTACT_WIDTH) sum += (double)shared->value[w][at % CONTACT_WIDTH];
        sums[at] += sum;
      }
      __syncthreads();
    }
  }
}

// ---- the first state, and particles of a state ----------------------------------------------------------------------

// Kernel, once in a rollout: r.mass and the first `state` of nodes from particles (E110, E111); a thread for each node.
CQ_KERNEL reference_nodes(const __grid_constant__ cq_shapes r, const cq_given_particles given, void *state) {
  for (int32_t node = (int32_t)(blockIdx.x * CQ_TILE_NODES + threadIdx.x); node < r.nodes;
       node += (int32_t)gridDim.x * CQ_TILE_NODES) {
    const Node rest = nodes_at(r.rest, 0)[node];
    const real inv_dx = (real)(1 / r.dx);
    real mass = 0, momentum[CQ_DIM] = {0};
    for (int g = 0; g < GIVEN; g++) {
      const int32_t at = r.given[(int64_t)node * GIVEN + g], t = at / HULL_NODES;
      if (at < 0) continue;
      int place[CQ_DIM];
      node_at(at % HULL_NODES, HULL, place);
      // cell c has nodes c to c + 2 of the hull along each axis
      for (int around = 0; around < TOUCHED; around++) {
        int cell[CQ_DIM], which[CQ_DIM], inside = 1, rest_of = around;
        for (int i = CQ_DIM - 1; i >= 0; i--, rest_of /= 3) {
          which[i] = rest_of % 3;
          cell[i] = place[i] - which[i];
          inside &= cell[i] >= 0 && cell[i] < SIDE;
        }
        if (!inside) continue;
        const int32_t *start = r.cell_start + (int64_t)t * (HULL_CELLS + 1) + index_in(SIDE, cell);
        for (int32_t p = r.tile[t].first + start[0]; p < r.tile[t].first + start[1]; p++) {
          real fraction[CQ_DIM], weight = 1, c[CQ_DIM][CQ_DIM], v[CQ_DIM];
          Axes a;
          fraction_load(&r, p, fraction);
          axes_of(inv_dx, fraction, &a);
          EACH(i) weight *= a.w[i][which[i]];
          const real m = weight * slot_in(given.params, given.param_count, p)[CQ_PARAM_MASS * CQ_GROUP];
          load_vector(given.state, V, p, v);
          load_matrix(given.state, C, p, c);
          mass += m;
          EACH(j) {
            const real arm = rest.c[j] - slot_in(r.place, CQ_DIM, p)[j * CQ_GROUP];
            EACH(i) v[i] += c[i][j] * arm;
          }
          EACH(i) momentum[i] += m * v[i];
        }
      }
    }
    const real inverse = mass > 0 ? (real)1 / mass : (real)0;
    Node u = {{0, 0, 0, 0}}, v = {{0, 0, 0, 0}};
    EACH(i) v.c[i] = inverse * momentum[i];
    ((Node *)r.mass)[node] = {{mass, inverse, 0, 0}};
    ((Node *)state)[node] = u;
    ((Node *)state)[r.nodes + node] = v;
  }
}

// Kernel: copies the initial F of all particles, from the state `given`, to r.start.
CQ_KERNEL reference_starts(const __grid_constant__ cq_shapes r, const void *given) {
  SLOTS_EACH(p, r.slots) EACH(i) EACH(j) slot_in(r.start, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP] =
      slot_in(given, FIELDS, p)[(F + i * CQ_DIM + j) * CQ_GROUP];
}

// Value and gradient of a field of all nodes at particle p, read from global memory: for kernels that run once and do
// not load a tile's hull.
CQ_GPU void global_at(const cq_shapes *r, const Node *field, const int32_t p, const real inv_dx, real value[CQ_DIM],
                      real slope[CQ_DIM][CQ_DIM]) {
  const int32_t *hull = r->hull + r->corner[p];
  real fraction[CQ_DIM];
  Axes a;
  fraction_load(r, p, fraction);
  axes_of(inv_dx, fraction, &a);
  field_at(&a, [&](const int i, const int n) { return field[hull[n]].c[i]; }, value, slope);
}

// World position of particle p: its rest place plus the displacement field of its grid there.
CQ_GPU void particle_place(const cq_shapes *r, const Node *state, const int32_t p, const real inv_dx,
                           real x[CQ_DIM]) {
  real slope[CQ_DIM][CQ_DIM];
  global_at(r, state, p, inv_dx, x, slope);
  EACH(i) x[i] += slot_in(r->place, CQ_DIM, p)[i * CQ_GROUP];
}

// Writes the particle fields (x, v, F, C) that readouts see from the state of the reference grids.
CQ_KERNEL reference_particles(const __grid_constant__ cq_shapes r, const void *state, void *to) {
  const real inv_dx = (real)(1 / r.dx);
  SLOTS_EACH(p, r.slots) {
    State q;
    real slope[CQ_DIM][CQ_DIM], stretch[CQ_DIM][CQ_DIM];
    global_at(&r, nodes_at(state, 0), p, inv_dx, q.x, slope);
    deform(&r, p, slope, stretch, q.f);
    EACH(i) q.x[i] += slot_in(r.place, CQ_DIM, p)[i * CQ_GROUP];
    global_at(&r, nodes_at(state, r.nodes), p, inv_dx, q.v, slope);
    rate_in_space(slope, stretch, q.c);
    state_store(to, p, &q);
  }
}

// Kernel: sets in shapes->seen the positions, in state k, of the particles that cables and chambers are fixed to.
CQ_KERNEL reference_pulled(const cq_frame *s, const cq_actuation *d, int32_t k) {
  const cq_pulling *c = &d->cables;
  const int64_t all = (int64_t)s->batch * c->pulled_count;
  if (s->progress->over) return;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int32_t slot = d->slot_of[n / c->pulled_count * s->particles + c->pulled[n % c->pulled_count]];
    real x[CQ_DIM];
    particle_place(s->shapes, nodes_at(s->substeps[k].in, 0), slot, s->SCALES.inv_dx, x);
    store_vector(s->shapes->seen, X, slot, x);
  }
}
