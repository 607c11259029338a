// step_adj: what particles do in the adjoint of one engine step. A block works on a tile. As in step.inl, one kernel
// does what lies between two grid passes: the adjoint of scattering in step k, then that of gathering in step k - 1.
// AGAIN: there are too few registers to keep the state over the walk through the stencil, so it is loaded twice.

// Returns p, in a way that the compiler cannot see through: it then loads from p a second time where that is needed,
// and does not keep the values in registers.
CQ_GPU int32_t opaque(int32_t p) {
  CQ_OPAQUE(p);
  return p;
}

// Adds a value to the gradient of one parameter (CQ_PARAM_...) of particle p.
CQ_GPU void add_param(const cq_frame *s, const int which, const int32_t p, const real value) {
  slot_in(s->params_adj, s->param_count, p)[which * CQ_GROUP] += value;
}

// Adds the gradients of particle p's material constants and internal variables, which a law's adjoint has left in
// *grad, to the gradients of the rollout and to the adjoint of the state.
CQ_RARE void point_add(const cq_frame *s, const int32_t p, MaterialPoint *grad) {
  const cq_material *law = &s->materials[s->material[p]];
  for (int k = 0; k < s->param_count - CQ_PARAM_SLOTS; k++)
    add_param(s, CQ_PARAM_SLOTS + k, p, *material_slot(law, grad, k));
  real *internal = internal_in(s, s->adj, p);
  for (int k = 0; k < s->internals; k++) internal[k * CQ_GROUP] += grad->internal[k];
}

// Sets the gradients of a material point (F, velocity gradient, constants, internal variables) to zero.
CQ_RARE void point_clear(const cq_frame *s, MaterialPoint *grad) {
  for (int k = 0; k < CQ_SLOTS_MAX; k++) grad->c[k] = 0;
  for (int k = 0; k < CQ_EXTRAS_MAX; k++) grad->extra[k] = 0;
  for (int k = 0; k < s->internals; k++) grad->internal[k] = 0;
  EACH(i) EACH(j) grad->f[i][j] = grad->rate[i][j] = 0;
}

// dL/dF and dL/dC by way of the plain stress
typedef struct PlainGrad {
  real f[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM];
} PlainGrad;

// Adjoint of stress_of_plain: from grad_tau = dL/dtau sets *of to the gradients of F and C, and adds to the gradients
// of the particle's internal variables and constants.
CQ_RARE void stress_of_plain_adj(const cq_frame *s, const void *state, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                                 PlainGrad *of, const real grad_tau[CQ_DIM][CQ_DIM]) {
  MaterialPoint at, grad;
  point_load(s, state, p, f, &at);
  point_clear(s, &grad);
  material_kirchhoff_plain_adj(&at, &grad, grad_tau);
  EACH(i) EACH(j) of->f[i][j] = grad.f[i][j];
  EACH(i) EACH(j) of->rate[i][j] = grad.rate[i][j];
  point_add(s, p, &grad);
}

// Adjoint of update, the material's update of particle p after the step from state `in`. trial: F before the update.
// grad_f: dL/dF after the update becomes dL/d(trial). The gradients of internal variables in s->adj likewise.
CQ_RARE void update_adj(const cq_frame *s, const void *in, const int32_t p, const real trial[CQ_DIM][CQ_DIM],
                        real grad_f[CQ_DIM][CQ_DIM]) {
  MaterialPoint at, grad;
  point_load(s, in, p, trial, &at);
  point_clear(s, &grad);
  real *internal = internal_in(s, s->adj, p);
  for (int k = 0; k < s->internals; k++) {
    grad.internal[k] = internal[k * CQ_GROUP];
    internal[k * CQ_GROUP] = 0;
  }
  EACH(i) EACH(j) grad.f[i][j] = grad_f[i][j];
  material_update_adj(&at, &grad);
  EACH(i) EACH(j) grad_f[i][j] = grad.f[i][j];
  point_add(s, p, &grad);
}

// a particle, a state that holds it, and the nodes around it
typedef struct Around {
  const Node *region;
  const void *state;
  int32_t p;
} Around;

// Adjoint of stress_of: grad_tau = dL/dtau gives gradients of F and C (added to adj), of constants (params_adj) and of
// actuation stress (actuation_adj).
CQ_GPU void stress_of_adj(const cq_frame *s, const Matter *m, const Around *of, const MaterialKept *kept, State *adj,
                          const real grad_tau[CQ_DIM][CQ_DIM]) {
  const void *state = of->state;
  const int32_t p = of->p;
  if (material_is_fused(m->point.law)) {
    MaterialPoint grad;
    CQ_UNROLL for (int k = 0; k < FUSED_SLOTS; k++) grad.c[k] = 0;
    EACH(i) EACH(j) grad.f[i][j] = adj->f[i][j];
    material_kirchhoff_fused_adj(&m->point, kept, &grad, grad_tau);
    EACH(i) EACH(j) adj->f[i][j] = grad.f[i][j];
    add_param(s, CQ_PARAM_SLOTS + LAME_MU, p, grad.c[LAME_MU]);
    add_param(s, CQ_PARAM_SLOTS + LAME_LAMBDA, p, grad.c[LAME_LAMBDA]);
    if (material_power(m->point.law)) add_param(s, CQ_PARAM_SLOTS + LAME_VOLUMETRIC, p, grad.c[LAME_VOLUMETRIC]);
  } else {
    PlainGrad grad;
    stress_of_plain_adj(s, state, p, m->point.f, &grad, grad_tau);
    EACH(i) EACH(j) adj->f[i][j] += grad.f[i][j];
    EACH(i) EACH(j) adj->c[i][j] += grad.rate[i][j];
  }
  if (!s->actuation) return;
  // loaded again, so that it takes no registers in the meantime
  real sigma[CQ_SYM], grad_sigma[CQ_SYM] = {0};
  sigma_load(s, p, sigma);
  actuation_stress_adj(m->point.f, sigma, adj->f, grad_sigma, grad_tau);
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) slot_in(s->actuation_adj, ACTUATION_FIELDS, p)[(SIGMA + k) * CQ_GROUP] +=
      grad_sigma[k];
}

// Adjoint of pressure_load: from dL/dforce to dL/dF, added to grad_f, and to dL/d(pressure times area), added to
// actuation_adj.
CQ_RARE void pressure_load_adj(const cq_frame *s, const int32_t p, const real f[CQ_DIM][CQ_DIM],
                               real grad_f[CQ_DIM][CQ_DIM], const real grad_force[CQ_DIM]) {
  real pressure[CQ_DIM], grad_pressure[CQ_DIM] = {0};
  EACH(i) pressure[i] = slot_in(s->actuation, ACTUATION_FIELDS, p)[(PRESSURE + i) * CQ_GROUP];
  pressure_force_adj(f, pressure, grad_f, grad_pressure, grad_force);
  EACH(i) slot_in(s->actuation_adj, ACTUATION_FIELDS, p)[(PRESSURE + i) * CQ_GROUP] += grad_pressure[i];
}

// Adjoint of the P2G of state q. s->adj holds dL/dx and dL/dF by the particle's own update in the later step; adj
// becomes dL/d(state), with the part by way of the grid. Adds to gradients of mass, volume, constants, actuation.
template <int AGAIN>
CQ_GPU void scatter_adj(const cq_frame *s, const Around *of, const cq_tile *tile, State *q, State *adj) {
  const void *in = of->state;
  const int32_t p = of->p;
  const GridStep step = grid_step_of(s);
  const real inv_dx = s->SCALES.inv_dx;
  Place at;
  Matter m;
  Source source, grad;
  Exchange give;
  Sums sums = {};
  real tau[CQ_DIM][CQ_DIM], slopes[CQ_DIM] = {0};
  place(tile, inv_dx, q->x, &at);
  matter_load(s, p, q->f, &m);
  MaterialKept kept;
  stress_of(s, &m, in, p, &kept, tau);
  source_of(&m, q, &at, tau, &source);
  transfer_to_grid(&step, &source, &give);
  visit<1, 1, 1>(of->region, &at, &give, &sums, slopes);
  if (AGAIN) {
    state_load(in, opaque(p), q);
    source_of(&m, q, &at, tau, &source);
    EACH(i) EACH(j) m.point.f[i][j] = q->f[i][j];
  }
  source_clear(&grad, 0);
  transfer_to_grid_adj(&step, &source, &give, &grad, &sums);
  // Variables of their own, because functions that are not inlined take their addresses: grad would lie on the stack.
  real grad_tau[CQ_DIM][CQ_DIM], grad_force[CQ_DIM];
  EACH(i) EACH(j) grad_tau[i][j] = grad.tau[i][j];
  EACH(i) grad_force[i] = grad.force[i];
  add_param(s, CQ_PARAM_MASS, p, grad.mass);
  add_param(s, CQ_PARAM_VOLUME, p, grad.volume);
  EACH(i) adj->v[i] = grad.v[i];
  EACH(i) EACH(j) adj->c[i][j] = grad.c[i][j];
  // loaded here and not before, so that they take no registers in the meantime
  load_vector(s->adj, X, p, adj->x);
  load_matrix(s->adj, F, p, adj->f);
  stress_of_adj(s, &m, of, &kept, adj, grad_tau);
  if (s->pressed) pressure_load_adj(s, p, m.point.f, adj->f, grad_force);
  if (s->actuation) EACH(i) slot_in(s->actuation_adj, ACTUATION_FIELDS, p)[(FORCE + i) * CQ_GROUP] += grad_force[i];
  EACH(i) adj->x[i] += inv_dx * (slopes[i] - grad.arm[i]);
}

// Second half of the adjoint of a particle's G2P; give: of the first, transfer_to_particle_adj. q: the state after the
// step (v and C are read). adj: dL/dx and dL/dF after it become those before by the particle's own update.
template <int AGAIN>
CQ_GPU void gather_adj(const cq_frame *s, const Around *of, const Place *at, State *q, const Exchange *give,
                       State *adj) {
  const GridStep step = grid_step_of(s);
  const real inv_dx = s->SCALES.inv_dx;
  real slopes[CQ_DIM] = {0}, grad_arm[CQ_DIM] = {0};
  visit<0, 1, 0>(of->region, at, give, NULL, slopes);
  if (AGAIN) {
    load_vector(of->state, V, opaque(of->p), q->v);
    load_matrix(of->state, C, opaque(of->p), q->c);
  }
  transfer_to_particle_adj_rest(&step, q, give, grad_arm, adj->f);
  EACH(i) adj->x[i] += inv_dx * (slopes[i] - grad_arm[i]);
}

// The adjoint of the particle passes between two grid passes, in place in s->adj. P2G: adjoint of scattering in step k.
// G2P: adjoint of gathering in step k - 1, or in step k without P2G, whose dL/d(velocity) of nodes goes to the arenas.
// MAKE: as for transfer_pass.
template <int P2G, int G2P, int MAKE>
CQ_GPU void transfer_adj_pass(const cq_frame *s, const int32_t k, Node *region, const Round<ADJ_THREADS> *round) {
  enum { AGAIN = CQ_DIM == 3 && CQ_REAL_BYTES == 8 };   // where the state would be spilled to the stack
  const int32_t parts = s->tile_count * s->parts, gathered = P2G ? k - 1 : k;
  for (int32_t part = (int32_t)blockIdx.x; part < parts; part += (int32_t)gridDim.x) {
    const cq_tile tile = part_of_tile(s, part);
    // a part without particles clears its arena all the same
    for (int32_t from = 0; from == 0 || from < tile.count; from += ADJ_THREADS) {
      const int32_t p = tile.first + from + (int32_t)threadIdx.x;
      const int mine = p < tile.first + tile.count;
      State q, adj;
      if (P2G && MAKE) region_velocity_adj<ADJ_THREADS>(region, s, k, part);
      if (P2G && !MAKE) region_load<ADJ_THREADS>(region, s->grid_q, s, part / s->parts);
      if (P2G && mine) {
        const Around before = {region, s->substeps[k].in, p};
        state_load(before.state, p, &q);
        scatter_adj<AGAIN>(s, &before, &tile, &q, &adj);
      }
      if (!G2P) {
        if (mine) state_store(s->adj, p, &adj);
        continue;
      }
      const cq_substep step = s->substeps[gathered];
      Place at = {};
      Exchange give;
      if (MAKE)
        region_velocity<1, ADJ_THREADS>(region, s, gathered, part);
      else
        region_load<ADJ_THREADS>(region, s->grid_v, s, part / s->parts);
      if (mine) {
        if (!P2G) {
          state_load(s->adj, p, &adj);
          load_vector(step.out, V, p, q.v);
          load_matrix(step.out, C, p, q.c);
        }
        real x[CQ_DIM], f[CQ_DIM][CQ_DIM];
        load_vector(step.in, X, p, x);
        load_matrix(step.in, F, p, f);
        place(&tile, s->SCALES.inv_dx, x, &at);
        if (is_updated(s, p)) {
          real trial[CQ_DIM][CQ_DIM];
          mat_mul(q.c, f, trial);
          EACH(i) EACH(j) trial[i][j] = f[i][j] + s->SCALES.dt * trial[i][j];
          update_adj(s, step.in, p, trial, adj.f);
        }
        const GridStep grid_step = grid_step_of(s);
        transfer_to_particle_adj(&grid_step, at.arm, f, &adj, &give);
        give.m = 0;
        const Around after = {region, step.out, p};
        gather_adj<AGAIN>(s, &after, &at, &q, &give, &adj);
        store_vector(s->adj, X, p, adj.x);
        store_matrix(s->adj, F, p, adj.f);
      }
      scatter(round, mine, &at, &give, from == 0, arena_of(s, gathered, part));
    }
  }
}

// transfer_adj_pass of step k as a kernel.
template <int P2G, int G2P>
static __global__ void __launch_bounds__(ADJ_THREADS, 2) transfer_adj(const cq_frame *__restrict__ s, int32_t k) {
  CQ_SHARED(Node, region, NODES);
  CQ_ROUND(round, ADJ_THREADS, G2P);
  if ((int32_t)blockIdx.x >= s->tile_count * s->parts) return;
  if (G2P) clear_round(&round);
  transfer_adj_pass<P2G, G2P, 0>(s, k, region, &round);
}
