// step_adj: what particles do in the adjoint of one engine step, a block for each tile; as in step.inl, one kernel does what lies
// between two grid passes: the adjoint of scattering in step k, then that of gathering in the step before. AGAIN: what waits for its
// second use while the stencil is walked over is loaded once more, for there are not enough registers.

// the same slot, from which nobody knows what was loaded before
CQ_GPU int32_t unknown(int32_t p) {
  CQ_OPAQUE(p);
  return p;
}

CQ_GPU void add_param(const cq_frame *s, const int which, const int32_t p, const real value) {
  slot_in(s->params_adj, CQ_PARAM_COUNT, p)[which * CQ_GROUP] += value;
}

// adjoint of stress_of: gradients of constants are added to params_adj, of sigma to drive_adj
CQ_GPU void stress_of_adj(const cq_frame *s, const Matter *m, const int32_t p, const real f[CQ_DIM][CQ_DIM], const MaterialKept *kept,
                          real grad_f[CQ_DIM][CQ_DIM], const real grad_tau[CQ_DIM][CQ_DIM]) {
  real grad_mu = 0, grad_lambda = 0, grad_bulk = 0;
  material_stress_keep_adj(m->kind, m->power, f, m->mu, m->lambda, m->bulk, kept, grad_f, &grad_mu, &grad_lambda, &grad_bulk, grad_tau);
  add_param(s, CQ_PARAM_MU, p, grad_mu);
  add_param(s, CQ_PARAM_LAMBDA, p, grad_lambda);
  if (m->power) add_param(s, CQ_PARAM_BULK, p, grad_bulk);
  if (!s->drive) return;
  // again, for it would wait in registers
  real sigma[CQ_SYM], grad_sigma[CQ_SYM] = {0};
  sigma_load(s, p, sigma);
  actuation_stress_adj(f, sigma, grad_f, grad_sigma, grad_tau);
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) slot_in(s->drive_adj, DRIVES, p)[(SIGMA + k) * CQ_GROUP] += grad_sigma[k];
}

// Adjoint of scattering state q, which lies in `in`: of s->adj, which holds what the particle itself wants of x and F, adj becomes all
// of dL/d(state).
template <int AGAIN>
CQ_GPU void scatter_adj(const cq_frame *s, const Node region[NODES], const cq_tile *tile, const void *in, const int32_t p, State *q,
                        State *adj) {
  const real dx = s->SCALES.dx, dt = s->SCALES.dt, inv_dx = s->SCALES.inv_dx;
  Place at;
  Matter m;
  Exchange give;
  Sums sums = {};
  MaterialKept kept;
  real tau[CQ_DIM][CQ_DIM], slopes[CQ_DIM] = {0}, grad_arm[CQ_DIM] = {0}, grad_tau[CQ_DIM][CQ_DIM], grad_force[CQ_DIM];
  real grad_mass = 0, grad_volume = 0;
  place(tile, inv_dx, q->x, &at);
  matter_load(s, p, &m);
  stress_of(s, &m, p, q->f, &kept, tau);
  transfer_to_grid(dx, dt, at.arm, m.mass, m.volume, q->v, q->c, tau, m.force, give.q, give.b);
  give.m = m.mass;
  visit<1, 1, 1>(region, &at, &give, &sums, slopes);
  if (AGAIN) state_load(in, unknown(p), q);
  transfer_to_grid_adj(dx, dt, at.arm, m.mass, m.volume, q->v, q->c, tau, give.b, grad_arm, &grad_mass, &grad_volume, adj->v,
                       adj->c, grad_tau, grad_force, sums.n0, sums.n1, sums.nm);
  add_param(s, CQ_PARAM_MASS, p, grad_mass);
  add_param(s, CQ_PARAM_VOLUME, p, grad_volume);
  // not before: they would wait in registers
  load_vector(s->adj, X, p, adj->x);
  load_matrix(s->adj, F, p, adj->f);
  stress_of_adj(s, &m, p, q->f, &kept, adj->f, grad_tau);
  if (s->drive) EACH(i) slot_in(s->drive_adj, DRIVES, p)[(FORCE + i) * CQ_GROUP] += grad_force[i];
  EACH(i) adj->x[i] += inv_dx * (slopes[i] - grad_arm[i]);
}

// Adjoint of gathering, to the state q, which lies in `out`, of which velocity and affine count: adj holds dL/d(state after) and becomes what the particle
// itself wants of x and F; give is what it wants of the nodes.
template <int AGAIN>
CQ_GPU void gather_adj(const cq_frame *s, const Node region[NODES], const Place *at, const void *out, const int32_t p, State *q,
                       const Exchange *give, State *adj) {
  const real dt = s->SCALES.dt, inv_dx = s->SCALES.inv_dx;
  real slopes[CQ_DIM] = {0}, grad_arm[CQ_DIM] = {0};
  visit<0, 1, 0>(region, at, give, NULL, slopes);
  if (AGAIN) {
    load_vector(out, V, unknown(p), q->v);
    load_matrix(out, C, unknown(p), q->c);
  }
  transfer_to_particle_adj_rest(dt, q->v, q->c, give->b, grad_arm, adj->f);
  EACH(i) adj->x[i] += inv_dx * (slopes[i] - grad_arm[i]);
}

// P2G: adjoint of scattering in step k. G2P: of gathering in step k - 1, or in step k without P2G. MAKE: as for march_pass.
template <int P2G, int G2P, int MAKE>
CQ_GPU void march_adj_pass(const cq_frame *s, const int32_t k, Node *region, const Round<ADJ_THREADS> *round) {
  enum { AGAIN = CQ_DIM == 3 && (MAKE || CQ_REAL_BYTES == 8) };   // where the state would wait in stacks
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
        const void *in = s->substeps[k].in;
        state_load(in, p, &q);
        scatter_adj<AGAIN>(s, region, &tile, in, p, &q, &adj);
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
        transfer_to_particle_adj(s->SCALES.dx, s->SCALES.dt, at.arm, f, adj.x, adj.v, adj.c, adj.f, give.q, give.b);
        give.m = 0;
        gather_adj<AGAIN>(s, region, &at, step.out, p, &q, &give, &adj);
        store_vector(s->adj, X, p, adj.x);
        store_matrix(s->adj, F, p, adj.f);
      }
      scatter(round, mine, &at, &give, from == 0, arena_of(s, gathered, part));
    }
  }
}

template <int P2G, int G2P>
static __global__ void __launch_bounds__(ADJ_THREADS, 2) march_adj(const cq_frame *__restrict__ s, int32_t k) {
  CQ_SHARED(Node, region, NODES);
  CQ_ROUND(round, ADJ_THREADS, G2P);
  if ((int32_t)blockIdx.x >= s->tile_count * s->parts) return;
  if (G2P) clear_round(&round);
  march_adj_pass<P2G, G2P, 0>(s, k, region, &round);
}
