// particles: the loops over particles of an implicit step. F^ = (I + dt C(v)) F is the deformation gradient that node
// velocities v lead to, and K = P(F^) F^T takes the place of the Kirchhoff stress in the explicit step (E80 to E92).
#include "implicit.h"

// Is any material of a chunk viscous in implicit steps? 1 yes, 0 no: without inertia nothing is.
CQ_INLINE int is_viscous(const Matter *m) {
  if (m->model->integrator.statics) return 0;
  for (int k = 0; m->materials >> k; k++)
    if ((m->materials >> k & 1) && m->model->materials[k].viscous) return 1;
  return 0;
}

// Sets at to what the viscous stress of a law takes of particles h, h + 1, ... of a chunk: F before the step, whose
// volume counts, and the rate C(v) = c.
CQ_INLINE void viscous_point(const Matter *m, const cq_material *law, const int h, const Real f[CQ_DIM][CQ_DIM],
                             const Real c[CQ_DIM][CQ_DIM], MaterialPoint *at) {
  point_of(m, law, h, f, at);
  EACH(i) EACH(j) at->rate[i][j] = c[i][j];
}

// (E81) Adds the viscous stress of particles h, h + 1, ... of a chunk to k_stress: K += 2 eta J(F) (D(C) - tr D / 3 I),
// D the symmetric part of C = c, F = f before the step. It is linear in C, and the derivative by C of <K, C> / 2.
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

// (E82) Scatters momentum (0 without inertia) and mass of a range's particles to the nodes, and the impulses of given
// forces, without stress. in: the state before the step; at: a vector over nodes, whose velocities move the surface
// that pressure acts on (E93), or CQ_GRID_VECTORS: pressure acts on the surface before the step.
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

// (E80, E82) For the node velocities in vector `at`: adds the strain energy of a range's particles to
// sum[CQ_SUM_ENERGY], and how many are inverted to sum[CQ_SUM_INVERTED]; scatters the impulses of their stress, -dt V
// 4/dx K (o + arm), or only their traces where dilatations are averaged (slope_give).
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
      end_stress_of(&matter, h, trial, p, &psi);
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

// (E84) Scatters to the nodes the contribution of a range's particles, by their tensors, to the product of the Hessian
// H with vector `from`; without averaged dilatation.
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

// (E101) Product with the Hessian H where dilatations are averaged: multiplies the averaged rates of a range's
// particles by their tensors, keeps the products for dilatation_solve_last, and scatters their traces alone.
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

// (E84) Scatters to the nodes the contribution of a range's particles to the product of the Hessian H with vector
// `from`; where dilatations are averaged, the part for their means.
static void product(cq_scene *s, const cq_slice *in, int32_t range, int32_t from) {
  if (s->model->averages_dilatation)
    product_averaged(s, in, range);
  else
    product_plain(s, in, range, from);
}
