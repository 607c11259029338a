// particles: a step of backward Euler, the loops over particles. F^ = (I + dt C(v)) F is the deformation that node
// velocities v lead to, and K = P(F^) F^T takes the place of the Kirchhoff stress in the explicit step (E80 to E92).
#include "implicit.h"

enum {
  MATRIX = CQ_DIM * CQ_DIM,
  TENSOR = MATRIX * (MATRIX + 1) / 2,    // entries of a packed symmetric tensor over matrices
  DIAGONAL_PARTS = CQ_DIM - 1,           // of a node's diagonal block: three entries each
};

// Index of entry (a, b) of a symmetric matrix stored as its lower triangle.
CQ_INLINE int tensor_at(const int a, const int b) { return a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a; }

CQ_INLINE double lanes_total(const Real x) {
  real lane[CQ_LANES] __attribute__((aligned(64)));
  double sum = 0;
  r_store(lane, x);
  for (int l = 0; l < CQ_LANES; l++) sum += (double)s_value(lane[l]);
  return sum;
}

// ---- stress at F^ ---------------------------------------------------------------------------------------------------

// Loads the actuation stress of lane group h as a full matrix.
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
    const Real energy = material_end_stress(&at, part), mine = m->only ? r_set((real)1) : is_material(m, k, h);
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
    const Chunk here = {s, &matter, c};
    const int follows = matter.pressed && at < CQ_GRID_VECTORS;
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    if (follows) rates_gather(s, &st, at, &strides, c);
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], def[CQ_DIM][CQ_DIM], none[CQ_DIM][CQ_DIM];
      Source p;
      Exchange give;
      place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
      load_matrix(chunk, F, h, def);
      if (follows) {
        Real rate[CQ_DIM][CQ_DIM], before[CQ_DIM][CQ_DIM];
        rates_of(&here, &st, h, arm, rate);
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
  const real dx = (real)s->model->dx, dt = (real)s->model->dt;
  const Strides strides = strides_of(s->arrangement);
  SlopeScatter to;
  slopes_begin(&to, s, range);
  double energy = 0, inverted = 0;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    const Chunk here = {s, &matter, c};
    const int viscous = is_viscous(&matter);
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    rates_gather(s, &st, at, &strides, c);
    LANES_EACH(h) {
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM];
      Real b[CQ_DIM][CQ_DIM], psi, damped = r_set((real)0);
      rates_of(&here, &st, h, arm, rate);
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
      slope_give(&here, &st, h, arm, b, &to);
    }
    slopes_scatter(s, &to, &strides, c, &st);
  }
  slopes_end(s, &to, &strides);
  sum[CQ_SUM_ENERGY] += energy;
  sum[CQ_SUM_INVERTED] += inverted;
}

// ---- the second derivative ------------------------------------------------------------------------------------------

// (E83) a tensor of lanes times a matrix
CQ_INLINE void tensor_multiply(const real *tensor, const int h, const Real y[CQ_DIM][CQ_DIM],
                               Real out[CQ_DIM][CQ_DIM]) {
  CQ_UNROLL for (int row = 0; row < MATRIX; row++) {
    Real sum = r_load(tensor + tensor_at(row, 0) * CQ_CHUNK + h) * y[0][0];
    CQ_UNROLL for (int k = 1; k < MATRIX; k++)
      sum += r_load(tensor + tensor_at(row, k) * CQ_CHUNK + h) * y[k / CQ_DIM][k % CQ_DIM];
    out[row / CQ_DIM][row % CQ_DIM] = sum;
  }
}

CQ_INLINE const real *tensor_of_chunk(const cq_scene *s, const int32_t c) {
  return (const real *)s->implicit.tensor + AT(c, TENSOR, 0);
}

// (E84) what the tensors make of a vector
static void product_plain(cq_scene *s, const cq_slice *in, const int32_t range, const int32_t from) {
  const real inv_dx4 = (real)(4 / s->model->dx), *grid = grid_vector(s, from);
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    Stencils st;
    gather_kept(s, c, &st, grid, &strides);
    LANES_EACH(h) {
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], b[CQ_DIM][CQ_DIM];
      affine_of(s, chunk, &st, h, arm, rate);
      EACH(i) EACH(j) rate[i][j] = inv_dx4 * rate[i][j];
      tensor_multiply(tensor_of_chunk(s, c), h, rate, b);
      store_slope(&st, h, arm, b);
    }
    scatter_kept(s, c, &to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// The same of averaged rates; its trace alone goes to the nodes (E101).
static void product_averaged(cq_scene *s, const cq_slice *in, const int32_t range) {
  const real inv_dx4 = (real)(4 / s->model->dx);
  const Strides strides = strides_of(s->arrangement);
  OneScatter to;
  one_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    real number[CQ_CHUNK] __attribute__((aligned(64)));
    one_gather_chunk(s, &st, &strides, c);
    LANES_EACH(h) {
      Real rate[CQ_DIM][CQ_DIM], b[CQ_DIM][CQ_DIM];
      averaged_affine(s, &matter, c, &st, h, rate);
      EACH(i) EACH(j) rate[i][j] = inv_dx4 * rate[i][j];
      tensor_multiply(tensor_of_chunk(s, c), h, rate, b);
      keep_stress(s, &matter, c, h, b, number);
    }
    one_scatter_chunk(s, &to, &strides, c, number);
  }
  one_flush(&to, &strides);
}

// Product of the particles' Hessian with a grid vector (`from`), scattered to the nodes of a range.
static void product(cq_scene *s, const cq_slice *in, int32_t range, int32_t from) {
  if (s->model->averages_dilatation)
    product_averaged(s, in, range);
  else
    product_plain(s, in, range, from);
}
