// implicit: a step of backward Euler, the loops over particles. F^ = (I + dt C(v)) F is the deformation that node
// velocities v lead to, and K = P(F^) F^T takes the place of the Kirchhoff stress in the explicit step (E80 to E92).
#include "implicit.h"

enum {
  MATRIX = CQ_DIM * CQ_DIM,
  TENSOR = MATRIX * (MATRIX + 1) / 2,    // entries of a packed symmetric tensor over matrices
  DIAGONAL_PARTS = CQ_DIM - 1,           // of a node's diagonal block: three entries each
};

CQ_INLINE real *grid_vector(const cq_scene *s, const int which) { return (real *)s->implicit.vector[which]; }

CQ_INLINE int tensor_at(const int a, const int b) { return a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a; }

CQ_INLINE double lanes_total(const Real x) {
  real lane[CQ_LANES] __attribute__((aligned(64)));
  double sum = 0;
  r_store(lane, x);
  for (int l = 0; l < CQ_LANES; l++) sum += (double)s_value(lane[l]);
  return sum;
}

// ---- gathering and scattering a range -------------------------------------------------------------------------------

typedef struct {
  Record records[CQ_CHUNK] __attribute__((aligned(64)));
  int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
} Stencils;

// weights and nodes of a chunk
CQ_INLINE void stencils_of(const cq_scene *s, const real *chunk, Stencils *st, const int slopes) {
  const real inv_dx = (real)(1 / s->model->dx);
  LANES_EACH(h) {
    Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
    place(chunk, h, inv_dx, base, f, arm);
    nodes_store(s->arrangement, st->node, h, base);
    weights_store(st->records + h, f, slopes);
  }
}

// The same as tensors() kept them for the products of a step; and how it keeps them.
typedef real KeptWeights[CQ_DIM][4];

CQ_INLINE void stencils_keep(const cq_scene *s, const int32_t c, const Stencils *st) {
  KeptWeights *to = (KeptWeights *)s->implicit.weight + c * CQ_CHUNK;
  for (int l = 0; l < CQ_CHUNK; l++) {
    memcpy((void *)to[l], (const void *)st->records[l].quad[WEIGHT], sizeof to[l]);
    s->implicit.node[c * CQ_CHUNK + l] = st->node[l];
  }
}

CQ_INLINE void stencils_take(const cq_scene *s, const int32_t c, Stencils *st) {
  const KeptWeights *from = (const KeptWeights *)s->implicit.weight + c * CQ_CHUNK;
  for (int l = 0; l < CQ_CHUNK; l++) {
    memcpy((void *)st->records[l].quad[WEIGHT], (const void *)from[l], sizeof from[l]);
    st->node[l] = s->implicit.node[c * CQ_CHUNK + l];
  }
}

CQ_INLINE void gather_chunk(Stencils *st, const real *grid, const Strides *strides) {
  for (int l = 0; l < CQ_CHUNK; l++) gather(&st->records[l], grid + 4 * (int64_t)st->node[l], strides);
}

// rows that particles of one cell share, until the next cell
typedef struct {
  real *grid;
  int64_t current;
  Row rows[ROWS];
} Scatter;

CQ_INLINE void scatter_begin(Scatter *to, const cq_scene *s, const int32_t range) {
  to->grid = slab_of(s, range);
  to->current = -1;
  CQ_UNROLL for (int k = 0; k < ROWS; k++) to->rows[k] = row_zero();
}

CQ_INLINE void scatter_to(Scatter *to, const Strides *strides, const int32_t node) {
  if (node == to->current) return;
  if (to->current >= 0) rows_flush(to->grid + 4 * to->current, strides, to->rows);
  to->current = node;
}

CQ_INLINE void scatter_chunk(Scatter *to, const Strides *strides, const Stencils *st) {
  for (int l = 0; l < CQ_CHUNK; l++) {
    scatter_to(to, strides, st->node[l]);
    scatter(to->rows, &st->records[l]);
  }
}

CQ_INLINE void scatter_end(Scatter *to, const Strides *strides) {
  if (to->current >= 0) rows_flush(to->grid + 4 * to->current, strides, to->rows);
}

// arm of lanes, and the affine velocity C that was gathered for them (E13)
CQ_INLINE void affine_of(const cq_scene *s, const real *chunk, const Stencils *st, const int h, Real arm[CQ_DIM],
                         Real c[CQ_DIM][CQ_DIM]) {
  Real base[CQ_DIM], f[CQ_DIM];
  Sums v;
  place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
  sums_load(st->records + h, &v);
  EACH(i) EACH(j) c[i][j] = (real)(4 / s->model->dx) * (v.n1[i][j] + v.n0[i] * arm[j]);
}

// F^ = (I + dt C) F
CQ_INLINE void trial_of(const cq_scene *s, const Real c[CQ_DIM][CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                        Real trial[CQ_DIM][CQ_DIM]) {
  mat_mul(c, f, trial);
  EACH(i) EACH(j) trial[i][j] = f[i][j] + (real)s->model->dt * trial[i][j];
}

// what a particle gives its nodes: w b (o + arm)
CQ_INLINE void store_slope(Stencils *st, const int h, const Real arm[CQ_DIM], const Real b[CQ_DIM][CQ_DIM]) {
  Exchange give;
  give.m = r_set((real)0);
  EACH(i) {
    give.q[i] = b[i][0] * arm[0];
    CQ_UNROLL for (int j = 1; j < CQ_DIM; j++) give.q[i] += b[i][j] * arm[j];
    EACH(j) give.b[i][j] = b[i][j];
  }
  move_store(st->records + h, MOVE, &give);
}

// ---- stress at F^ ---------------------------------------------------------------------------------------------------

CQ_INLINE void load_sigma(const Matter *m, const int h, Real sigma[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) sigma[i][j] = r_load(m->actuation + (SIGMA + sym_at(i, j)) * CQ_CHUNK + h);
}

// (E80) P(F^) and energy density of all materials of a chunk, with the stress of actuation, P = F sigma
CQ_RARE void piola_of(const Matter *m, const int h, const Real trial[CQ_DIM][CQ_DIM], Real p[CQ_DIM][CQ_DIM],
                      Real *psi) {
  *psi = r_set((real)0);
  EACH(i) EACH(j) p[i][j] = *psi;
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    MaterialPoint at;
    Real part[CQ_DIM][CQ_DIM];
    point_of(m, &m->model->materials[k], h, trial, &at);
    material_stress(&at, part);
    const Real energy = material_energy(&at), mine = m->only ? r_set((real)1) : is_material(m, k, h);
    EACH(i) EACH(j) p[i][j] = r_pick(mine, part[i][j], p[i][j]);
    *psi = r_pick(mine, energy, *psi);
  }
  if (!m->actuation) return;
  Real sigma[CQ_DIM][CQ_DIM], fs[CQ_DIM][CQ_DIM];
  load_sigma(m, h, sigma);
  mat_mul(trial, sigma, fs);
  EACH(i) EACH(j) p[i][j] += fs[i][j];
  *psi += (real)0.5 * mat_dot(trial, fs);
}

// At rest nothing is viscous.
CQ_INLINE int is_viscous(const Matter *m) {
  if (m->model->integrator.statics) return 0;
  for (int k = 0; m->materials >> k; k++)
    if ((m->materials >> k & 1) && m->model->materials[k].viscous) return 1;
  return 0;
}

// a point as the viscosity beside a law sees it: F before the step, for its volume, and the rate C(v)
CQ_INLINE void viscous_point(const Matter *m, const cq_material *law, const int h, const Real f[CQ_DIM][CQ_DIM],
                             const Real c[CQ_DIM][CQ_DIM], MaterialPoint *at) {
  point_of(m, law, h, f, at);
  EACH(i) EACH(j) at->rate[i][j] = c[i][j];
}

// (E81) K += 2 eta J(F) (D(C) - tr D / 3): linear in C, and the derivative by C of the potential <K, C> / 2
CQ_RARE void viscous_of(const Matter *m, const int h, const Real f[CQ_DIM][CQ_DIM], const Real c[CQ_DIM][CQ_DIM],
                        Real k_stress[CQ_DIM][CQ_DIM]) {
  const Real jac = mat_det(f);
  for (int k = 0; m->materials >> k; k++) {
    const cq_material *law = &m->model->materials[k];
    if (!(m->materials >> k & 1) || !law->viscous) continue;
    MaterialPoint at;
    Real part[CQ_DIM][CQ_DIM];
    viscous_point(m, law, h, f, c, &at);
    EACH(i) EACH(j) part[i][j] = r_set((real)0);
    viscous_stress(&at, jac, part);
    const Real mine = m->only ? r_set((real)1) : is_material(m, k, h);
    EACH(i) EACH(j) k_stress[i][j] += r_pick(mine, part[i][j], r_set((real)0));
  }
}

// ---- what particles bring -------------------------------------------------------------------------------------------

// (E82) momentum, mass and the impulse of given forces; without stress. at: the vector at whose F^ pressure follows its
// surface, or CQ_GRID_VECTORS: that of F before the step.
static void momentum(cq_scene *s, const cq_slice *in, int32_t range, int32_t at) {
  const GridStep step = grid_step_of(s);
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    const int follows = matter.pressed && at < CQ_GRID_VECTORS;
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    if (follows) gather_chunk(&st, grid_vector(s, at), &strides);
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], def[CQ_DIM][CQ_DIM], none[CQ_DIM][CQ_DIM];
      Source p;
      Exchange give;
      place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
      load_matrix(chunk, F, h, def);
      if (follows) {
        Real rate[CQ_DIM][CQ_DIM], before[CQ_DIM][CQ_DIM];
        affine_of(s, chunk, &st, h, arm, rate);
        load_matrix(chunk, F, h, before);
        trial_of(s, rate, before, def);
      }
      EACH(i) EACH(j) none[i][j] = r_set((real)0);
      source_of(&matter, h, arm, def, none, &p);
      if (s->model->integrator.statics) source_still(&p);
      transfer_to_grid(&step, &p, &give);
      move_store(st.records + h, MOVE, &give);
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// (E80, E82) the potential of strain at node velocities, and what stress gives the nodes: -dt V 4/dx K (o + arm)
static void evaluate(cq_scene *s, const cq_slice *in, int32_t range, int32_t at, double *sum) {
  const real dx = (real)s->model->dx, dt = (real)s->model->dt, *grid = grid_vector(s, at);
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  double energy = 0, inverted = 0;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    const int viscous = is_viscous(&matter);
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    gather_chunk(&st, grid, &strides);
    LANES_EACH(h) {
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM];
      Real b[CQ_DIM][CQ_DIM], psi, damped = r_set((real)0);
      affine_of(s, chunk, &st, h, arm, rate);
      load_matrix(chunk, F, h, def);
      trial_of(s, rate, def, trial);
      piola_of(&matter, h, trial, p, &psi);
      mat_mul_nt(p, def, b);
      if (viscous) {
        Real k[CQ_DIM][CQ_DIM];
        EACH(i) EACH(j) k[i][j] = damped;
        viscous_of(&matter, h, def, rate, k);
        damped = (real)0.5 * dt * mat_dot(k, rate);
        EACH(i) EACH(j) b[i][j] += k[i][j];
      }
      const Real volume = param(&matter, CQ_PARAM_VOLUME, h), scale = (real)-4 / dx * dt * volume;
      energy += lanes_total(volume * (psi + damped));
      inverted += lanes_total(r_pick(mat_det(trial), r_set((real)0), r_set((real)1)));
      EACH(i) EACH(j) b[i][j] = scale * b[i][j];
      store_slope(&st, h, arm, b);
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
  sum[CQ_SUM_ENERGY] += energy;
  sum[CQ_SUM_INVERTED] += inverted;
}

// ---- the second derivative ------------------------------------------------------------------------------------------

// (E84) what the tensors make of a vector
static void product(cq_scene *s, const cq_slice *in, int32_t range, int32_t from) {
  const real inv_dx4 = (real)(4 / s->model->dx), *grid = grid_vector(s, from);
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const real *tensor = (const real *)s->implicit.tensor + AT(c, TENSOR, 0);
    Stencils st;
    stencils_take(s, c, &st);
    gather_chunk(&st, grid, &strides);
    LANES_EACH(h) {
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], b[CQ_DIM][CQ_DIM];
      affine_of(s, chunk, &st, h, arm, rate);
      EACH(i) EACH(j) rate[i][j] = inv_dx4 * rate[i][j];
      CQ_UNROLL for (int row = 0; row < MATRIX; row++) {
        Real sum = r_load(tensor + tensor_at(row, 0) * CQ_CHUNK + h) * rate[0][0];
        CQ_UNROLL for (int k = 1; k < MATRIX; k++)
          sum += r_load(tensor + tensor_at(row, k) * CQ_CHUNK + h) * rate[k / CQ_DIM][k % CQ_DIM];
        b[row / CQ_DIM][row % CQ_DIM] = sum;
      }
      store_slope(&st, h, arm, b);
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}
