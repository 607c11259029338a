// step: the particles in one engine step. A block works on a tile. G2P gathers the state after the step from the nodes;
// P2G scatters a state to them. Between two steps of one arrangement one kernel does both: it gathers, and scatters the
// new state while that is still in registers.

// Loads a vector field of particle p from the state.
CQ_GPU void load_vector(const void *data, const int field, const int32_t p, real out[CQ_DIM]) {
  EACH(i) out[i] = slot_in(data, FIELDS, p)[(field + i) * CQ_GROUP];
}
// Loads a matrix field of particle p from the state.
CQ_GPU void load_matrix(const void *data, const int field, const int32_t p, real out[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) out[i][j] = slot_in(data, FIELDS, p)[(field + i * CQ_DIM + j) * CQ_GROUP];
}
// Stores a vector field of particle p in the state.
CQ_GPU void store_vector(void *data, const int field, const int32_t p, const real in[CQ_DIM]) {
  EACH(i) slot_in(data, FIELDS, p)[(field + i) * CQ_GROUP] = in[i];
}
// Stores a matrix field of particle p in the state.
CQ_GPU void store_matrix(void *data, const int field, const int32_t p, const real in[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) slot_in(data, FIELDS, p)[(field + i * CQ_DIM + j) * CQ_GROUP] = in[i][j];
}

// Loads x, v, F and C of particle p.
CQ_GPU void state_load(const void *data, const int32_t p, State *q) {
  load_vector(data, X, p, q->x);
  load_vector(data, V, p, q->v);
  load_matrix(data, C, p, q->c);
  load_matrix(data, F, p, q->f);
}
// Stores x, v, F and C of particle p.
CQ_GPU void state_store(void *data, const int32_t p, const State *q) {
  store_vector(data, X, p, q->x);
  store_vector(data, V, p, q->v);
  store_matrix(data, C, p, q->c);
  store_matrix(data, F, p, q->f);
}

// What of a particle does not change during a control step.
typedef struct Matter {
  real mass, volume, force[CQ_DIM];
  MaterialPoint point;       // constants and F of a fused law: nothing else of it is set
} Matter;

// Adds the force of pressure on the open surfaces of particle p to force; f: its deformation gradient. The pressure
// times area was computed for the control step (load_actuation).
CQ_RARE void pressure_load(const cq_frame *s, const int32_t p, const real f[CQ_DIM][CQ_DIM], real force[CQ_DIM]) {
  real pressure[CQ_DIM];
  EACH(i) pressure[i] = slot_in(s->actuation, ACTUATION_FIELDS, p)[(PRESSURE + i) * CQ_GROUP];
  pressure_force(f, pressure, force);
}

// Fills m with what P2G of particle p needs beside its state: mass, volume, the constants of its law, its deformation
// gradient f, and the force on it, that of pressure included.
CQ_GPU void matter_load(const cq_frame *s, const int32_t p, const real f[CQ_DIM][CQ_DIM], Matter *m) {
  const real *params = slot_in(s->params, s->param_count, p);
  m->mass = params[CQ_PARAM_MASS * CQ_GROUP];
  m->volume = params[CQ_PARAM_VOLUME * CQ_GROUP];
  m->point.law = &s->materials[s->material[p]];
  CQ_UNROLL for (int k = 0; k < FUSED_SLOTS; k++)
    m->point.c[k] = CQ_PARAM_SLOTS + k < s->param_count ? params[(CQ_PARAM_SLOTS + k) * CQ_GROUP] : 0;
  EACH(i) EACH(j) m->point.f[i][j] = f[i][j];
  EACH(i) m->force[i] = s->actuation ? slot_in(s->actuation, ACTUATION_FIELDS, p)[(FORCE + i) * CQ_GROUP] : 0;
  if (s->pressed) pressure_load(s, p, f, m->force);
}

// The internal variables of particle p (plastic strains and the like) within a state, or within its adjoint.
CQ_GPU real *internal_in(const cq_frame *s, const void *state, const int32_t p) {
  return slot_in((char *)state + s->internal_offset, s->internals, p);
}

// Fills *at, the argument of material laws, for particle p: deformation gradient f, its constants and internal
// variables, and C of the state if the law is viscous.
CQ_RARE void point_load(const cq_frame *s, const void *state, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                        MaterialPoint *at) {
  const real *params = slot_in(s->params, s->param_count, p), *internal = internal_in(s, state, p);
  at->law = &s->materials[s->material[p]];
  at->dt = s->SCALES.dt;
  for (int k = 0; k < s->param_count - CQ_PARAM_SLOTS; k++)
    *material_slot(at->law, at, k) = params[(CQ_PARAM_SLOTS + k) * CQ_GROUP];
  for (int k = 0; k < s->internals; k++) at->internal[k] = internal[k * CQ_GROUP];
  if (at->law->viscous) load_matrix(state, C, p, at->rate);
  EACH(i) EACH(j) at->f[i][j] = f[i][j];
}

// Sets tau to the Kirchhoff stress of particle p, with deformation gradient f, by a material law that is not inlined
// into the kernel. state: holds its internal variables and C. Returns det F.
CQ_RARE real stress_of_plain(const cq_frame *s, const void *state, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                             real tau[CQ_DIM][CQ_DIM]) {
  MaterialPoint at;
  point_load(s, state, p, f, &at);
  return material_kirchhoff_plain(&at, tau);
}

// The material's update (plastic flow and the like) of particle p after the step from state `in` to state `out`: f, the
// trial F, in place; internal variables from `in` into `out`.
CQ_RARE void update(const cq_frame *s, const void *in, void *out, const int32_t p, real f[CQ_DIM][CQ_DIM]) {
  MaterialPoint at;
  point_load(s, in, p, f, &at);
  material_update(&at);
  EACH(i) EACH(j) f[i][j] = at.f[i][j];
  real *internal = internal_in(s, out, p);
  for (int k = 0; k < s->internals; k++) internal[k * CQ_GROUP] = at.internal[k];
}

// Does the law of particle p have an update after the step (plastic flow, viscous branches)? Not 0: yes.
CQ_GPU int is_updated(const cq_frame *s, const int32_t p) { return s->updates && (s->updates >> s->material[p] & 1); }

// After the step from state `in` to state `out`: the material's update of particle p, F in place and internal variables
// into `out`; or, where its law has none, a copy of the internal variables.
CQ_GPU void after_step(const cq_frame *s, const void *in, void *out, const int32_t p, real f[CQ_DIM][CQ_DIM]) {
  if (is_updated(s, p)) {
    update(s, in, out, p, f);
    return;
  }
  for (int k = 0; k < s->internals; k++) internal_in(s, out, p)[k * CQ_GROUP] = internal_in(s, in, p)[k * CQ_GROUP];
}

// Loads the actuation stress sigma of particle p, in the material frame; only where the world has actuators.
CQ_GPU void sigma_load(const cq_frame *s, const int32_t p, real sigma[CQ_SYM]) {
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) sigma[k] =
      slot_in(s->actuation, ACTUATION_FIELDS, p)[(SIGMA + k) * CQ_GROUP];
}

// Kirchhoff stress tau of particle p by its law, plus that of actuation; `kept` holds what the adjoint uses again.
// Returns det F.
CQ_GPU real stress_of(const cq_frame *s, const Matter *m, const void *state, const int32_t p, MaterialKept *kept,
                      real tau[CQ_DIM][CQ_DIM]) {
  const int fused = material_is_fused(m->point.law);
  const real jac =
      fused ? material_kirchhoff_fused(&m->point, kept, tau) : stress_of_plain(s, state, p, m->point.f, tau);
  real sigma[CQ_SYM];
  if (s->actuation) {
    sigma_load(s, p, sigma);
    actuation_stress(m->point.f, sigma, tau);
  }
  return jac;
}

// Is a particle in the world? No if its position is not finite.
CQ_GPU int in_world(const cq_frame *s, const real inv_dx, const real x[CQ_DIM]) {
  int in = 1;
  EACH(i) in &= inv_dx * x[i] >= 0 && inv_dx * x[i] <= s->SCALES.limit[i];
  return in;
}

// Cell size and time step, as reals.
CQ_GPU GridStep grid_step_of(const cq_frame *s) { return {s->SCALES.dx, s->SCALES.dt, 0}; }

// The Source of a particle: all that transfer_to_grid reads. tau (Kirchhoff stress) is a variable of its own because
// functions that are not inlined take its address: as a part of the Source it would put all of it on the stack.
CQ_GPU void source_of(const Matter *m, const State *q, const Place *at, const real tau[CQ_DIM][CQ_DIM], Source *p) {
  p->mass = m->mass;
  p->volume = m->volume;
  EACH(i) p->arm[i] = at->arm[i];
  EACH(i) p->v[i] = q->v[i];
  EACH(i) p->force[i] = m->force[i];
  EACH(i) EACH(j) p->c[i][j] = q->c[i][j];
  EACH(i) EACH(j) p->tau[i][j] = tau[i][j];
}

// G2P of one particle: reads the tile's nodes and makes its state after the step in `next`, with F before the
// material's update (after_step). Returns 0 where that is not finite, or outside of the world.
CQ_GPU int move(const cq_frame *s, const Node region[NODES], const cq_tile *tile, const void *in, const int32_t p,
                State *next) {
  const GridStep step = grid_step_of(s);
  const real inv_dx = s->SCALES.inv_dx;
  real poison = 0;
  State before;
  load_vector(in, X, p, before.x);
  load_matrix(in, F, p, before.f);
  Place at;
  Sums sums = {};
  place(tile, inv_dx, before.x, &at);
  visit<1, 0, 0>(region, &at, NULL, &sums, NULL);
  transfer_to_particle(&step, at.arm, &sums, &before, next);
  EACH(i) EACH(j) poison += (real)0 * next->f[i][j];   // stays zero unless something is not finite
  return in_world(s, inv_dx, next->x) && poison == 0;
}

// The first half of P2G of one particle: computes momentum, mass and the affine term that it gives to its nodes;
// scatter sums them. Returns 0 if the particle is inverted (det F <= 0).
CQ_GPU int give_to_grid(const cq_frame *s, const void *state, const int32_t p, const State *q, const Place *at,
                        Exchange *give) {
  const GridStep step = grid_step_of(s);
  real tau[CQ_DIM][CQ_DIM];
  Matter m;
  Source source;
  matter_load(s, p, q->f, &m);
  MaterialKept kept;
  const real jac = stress_of(s, &m, state, p, &kept, tau);
  source_of(&m, q, at, tau, &source);
  transfer_to_grid(&step, &source, give);
  return jac > 0;
}

// The particle pass of substep k. GATHER: G2P of state k, then the new state k + 1. SCATTER: P2G of state k + 1, or
// without GATHER of state k, to the arenas. MAKE: the block computes the velocities of its region itself; otherwise a
// grid pass has. Marks in progress steps that fail and states that must be sorted.
template <int GATHER, int SCATTER, int MAKE>
CQ_GPU void transfer_pass(const cq_frame *s, const int32_t k, Node *region, const Round<TRANSFER_THREADS> *round) {
  const int32_t parts = s->tile_count * s->parts;
  const void *in = s->substeps[k].in;
  void *out = s->substeps[k].out;
  for (int32_t part = (int32_t)blockIdx.x; part < parts; part += (int32_t)gridDim.x) {
    const cq_tile tile = part_of_tile(s, part);
    if (GATHER && MAKE) region_velocity<0, TRANSFER_THREADS>(region, s, k, part);
    if (GATHER && !MAKE) region_load<TRANSFER_THREADS>(region, s->grid_v, s, part / s->parts);
    // a part without particles clears its arena all the same
    for (int32_t from = 0; from == 0 || from < tile.count; from += TRANSFER_THREADS) {
      const int32_t p = tile.first + from + (int32_t)threadIdx.x;
      int mine = p < tile.first + tile.count;
      State q;
      if (GATHER && mine) {
        if (!move(s, region, &tile, in, p, &q)) atomicMin(&s->progress->bad, s->first + k);
        if (s->internals || s->updates) after_step(s, in, out, p, q.f);
        state_store(out, p, &q);
      }
      if (!SCATTER) continue;
      Place at = {};
      Exchange give;
      if (mine) {
        if (!GATHER) state_load(in, p, &q);
        mine = place(&tile, s->SCALES.inv_dx, q.x, &at);
        if (!mine) atomicMin(&s->progress->stop, s->first + k + GATHER);
      }
      if (mine) {
        if (!give_to_grid(s, GATHER ? out : in, p, &q, &at, &give)) atomicMin(&s->progress->bad, s->first + k + GATHER);
      }
      scatter(round, mine, &at, &give, from == 0, arena_of(s, k + GATHER, part));
    }
  }
}

// transfer_pass of step k as a kernel; does nothing once progress->over is set.
template <int GATHER, int SCATTER>
static __global__ void __launch_bounds__(TRANSFER_THREADS, 2) transfer(const cq_frame *s, int32_t k) {
  CQ_SHARED(Node, region, GATHER ? NODES : 1);
  CQ_ROUND(round, TRANSFER_THREADS, SCATTER);
  if ((int32_t)blockIdx.x >= s->tile_count * s->parts) return;
  const int over = s->progress->over;
  if (SCATTER) clear_round(&round);
  if (!over) transfer_pass<GATHER, SCATTER, 0>(s, k, region, &round);
}
