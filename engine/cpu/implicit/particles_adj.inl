// particles_adj: adjoint of an implicit step, the loop over particles. The solution y of the nodes' linear system is
// the gradient of their momentum (E89). From it particles get the gradients of the explicit step, with K in place of
// tau, and those through F^, on which K depends (E91, E92).

// Adjoint of end_stress_of for particles h, h + 1, ... of a chunk: from grad_p = dL/dP, adds to grad_trial = dL/dF^ and
// to the chunk's gradients of constants, internal variables and actuation. trial: F^.
CQ_RARE void piola_adj_of(const Matter *m, const int h, const Real trial[CQ_DIM][CQ_DIM], const ChunkGrad *chunk,
                          Real grad_trial[CQ_DIM][CQ_DIM], const Real grad_p[CQ_DIM][CQ_DIM]) {
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    const cq_material *law = &m->model->materials[k];
    const Real mine = m->only ? r_set((real)1) : is_material(m, k, h);
    MaterialPoint at, grad;
    point_of(m, law, h, trial, &at);
    for (int q = 0; q < m->model->slot_count; q++) *material_slot(law, &grad, q) = r_set((real)0);
    for (int q = 0; q < m->model->internal_count; q++) grad.internal[q] = r_set((real)0);
    EACH(i) EACH(j) grad.f[i][j] = r_set((real)0);
    material_end_stress_adj(&at, &grad, grad_p);
    EACH(i) EACH(j) grad_trial[i][j] = r_pick(mine, grad_trial[i][j] + grad.f[i][j], grad_trial[i][j]);
    for (int q = 0; q < m->model->slot_count; q++) {
      real *to = chunk->params + (CQ_PARAM_SLOTS + q) * CQ_CHUNK + h;
      r_store(to, r_pick(mine, r_load(to) + *material_slot(law, &grad, q), r_load(to)));
    }
    for (int q = 0; q < m->model->internal_count; q++) {
      real *to = chunk->internal + q * CQ_CHUNK + h;
      r_store(to, r_pick(mine, r_load(to) + grad.internal[q], r_load(to)));
    }
  }
  if (!m->actuation) return;
  Real sigma[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  load_sigma_matrix(m, h, sigma);
  mat_mul(grad_p, sigma, t);
  EACH(i) EACH(j) grad_trial[i][j] += t[i][j];
  mat_mul_tn(trial, grad_p, t);
  EACH(i) EACH(j) {
    real *to = chunk->actuation + (SIGMA + sym_at(i, j)) * CQ_CHUNK + h;
    r_store(to, r_load(to) + t[i][j]);
  }
}

// F before a step and the rate C, or their gradients
typedef struct {
  Real f[CQ_DIM][CQ_DIM], c[CQ_DIM][CQ_DIM];
} Rate;

// Adjoint of viscous_of for particles h, h + 1, ... of a chunk: from grad_k = dL/dK, adds to grad_flow, the gradients
// of F before the step and of the rate, and to the chunk's gradient of viscosity. flow: F and the rate.
CQ_RARE void viscous_adj_of(const Matter *m, const int h, const Rate *flow, const ChunkGrad *chunk, Rate *grad_flow,
                            const Real grad_k[CQ_DIM][CQ_DIM]) {
  for (int k = 0; m->materials >> k; k++) {
    const cq_material *law = &m->model->materials[k];
    if (!(m->materials >> k & 1) || !law->viscous) continue;
    const Real mine = m->only ? r_set((real)1) : is_material(m, k, h);
    MaterialPoint at, grad;
    viscous_point(m, law, h, flow->f, flow->c, &at);
    EACH(i) EACH(j) grad.f[i][j] = grad.rate[i][j] = r_set((real)0);
    grad.extra[0] = r_set((real)0);
    viscous_stress_adj(&at, &grad, grad_k);
    EACH(i) EACH(j) {
      grad_flow->f[i][j] = r_pick(mine, grad_flow->f[i][j] + grad.f[i][j], grad_flow->f[i][j]);
      grad_flow->c[i][j] = r_pick(mine, grad_flow->c[i][j] + grad.rate[i][j], grad_flow->c[i][j]);
    }
    real *to = chunk->params + CQ_PARAM_SLOTS * CQ_CHUNK + h;
    r_store(to, r_pick(mine, r_load(to) + grad.extra[0], r_load(to)));
  }
}

// (E102) Where dilatations are averaged, for particles h, h + 1, ... of chunk c: turns k, their stress K, into the one
// that was scattered to the nodes, with its averaged trace, and adds the gradient of V by the difference.
CQ_INLINE void press_adj(const cq_scene *s, const ChunkStep *c, const int h, Real k[CQ_DIM][CQ_DIM]) {
  const real dt = (real)s->model->dt;
  const Real volume = param(c->matter, CQ_PARAM_VOLUME, h), none = r_set((real)0);
  const Real press = r_pick(volume, r_load(c->solved + PRESS * CQ_CHUNK + h) / volume, none);
  Real varied[CQ_DIM][CQ_DIM];
  load_matrix(c->solved, SOLVED_RATE, h, varied);
  real *to = c->grad->params + CQ_PARAM_VOLUME * CQ_CHUNK + h;
  r_store(to, r_load(to) - dt * r_load(c->solved + STRETCH * CQ_CHUNK + h) * trace_of(k) - press * trace_of(varied));
  EACH(i) k[i][i] -= press / dt;
}

// (E91) Adjoint of the stress at the end of a step of particles h, h + 1, ... of chunk c: with Y = 4/dx sum w y (o +
// arm)^T the gradient of K is -dt V Y. Completes the gradients of F' and of the sums n0 and n1 in c->adj (in V and C),
// since F^ = F' caused the stress as well; adds to those of constants and actuation; sets stress->tau = K, and grad_f
// to the gradient of F by it. of: the particles' records, with the sums of y over nodes.
CQ_INLINE void stress_adj(const cq_scene *s, const ChunkStep *c, const int h, const Record *of, Stress *stress,
                          Real grad_f[CQ_DIM][CQ_DIM]) {
  const real dx = (real)s->model->dx, dt = (real)s->model->dt;
  const Matter *matter = c->matter;
  Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM];
  Real p[CQ_DIM][CQ_DIM], psi, grad_k[CQ_DIM][CQ_DIM], grad_p[CQ_DIM][CQ_DIM], grad_trial[CQ_DIM][CQ_DIM];
  Real change[CQ_DIM][CQ_DIM], grad_c[CQ_DIM][CQ_DIM];
  Sums y;
  place(matter->state, h, (real)(1 / s->model->dx), base, f, arm);
  sums_load(of, &y);
  rate_after(c, h, rate);
  load_matrix(matter->state, F, h, def);
  trial_of(s, rate, def, trial);
  end_stress_of(matter, h, trial, p, &psi);
  mat_mul_nt(p, def, stress->tau);
  const Real scale = (real)-4 / dx * dt * param(matter, CQ_PARAM_VOLUME, h);
  EACH(i) EACH(j) {
    grad_k[i][j] = scale * (y.n1[i][j] + y.n0[i] * arm[j]);
    change[i][j] = grad_c[i][j] = r_set((real)0);
  }
  if (c->solved) EACH(i) {
    grad_k[i][i] -= dt * param(matter, CQ_PARAM_VOLUME, h) * r_load(c->solved + STRETCH * CQ_CHUNK + h);
    grad_c[i][i] = r_load(c->solved + THROUGH * CQ_CHUNK + h);
  }
  mat_mul(grad_k, def, grad_p);
  mat_mul_tn(grad_k, p, grad_f);
  piola_adj_of(matter, h, trial, c->grad, change, grad_p);
  if (is_viscous(matter)) {
    viscous_of(matter, h, def, rate, stress->tau);
    Rate flow, grad;
    EACH(i) EACH(j) {
      flow.f[i][j] = def[i][j];
      flow.c[i][j] = rate[i][j];
      grad.f[i][j] = grad.c[i][j] = r_set((real)0);
    }
    viscous_adj_of(matter, h, &flow, c->grad, &grad, grad_k);
    EACH(i) EACH(j) {
      grad_f[i][j] += grad.f[i][j];
      grad_c[i][j] += grad.c[i][j];
    }
  }
  if (c->follows && matter->pressed) {
    Real pressure[CQ_DIM], grad_pressure[CQ_DIM], grad_force[CQ_DIM];
    load_vector(matter->actuation, PRESSURE, h, pressure);
    load_vector(c->grad->actuation, PRESSURE, h, grad_pressure);
    EACH(i) grad_force[i] = dt * y.n0[i];
    pressure_force_adj(trial, pressure, change, grad_pressure, grad_force);
    store_vector(c->grad->actuation, PRESSURE, h, grad_pressure);
  }
  if (c->solved) press_adj(s, c, h, stress->tau);
  load_matrix(c->adj, F, h, grad_trial);
  EACH(i) EACH(j) grad_trial[i][j] += change[i][j];
  store_matrix(c->adj, F, h, grad_trial);

  Real through[CQ_DIM][CQ_DIM];
  Exchange given;
  mat_mul_nt(change, def, through);
  load_vector(c->adj, V, h, given.q);
  load_matrix(c->adj, C, h, given.b);
  EACH(i) EACH(j) {
    const Real more = (real)4 / dx * (dt * through[i][j] + grad_c[i][j]);
    given.b[i][j] += more;
    given.q[i] += more * arm[j];
  }
  store_vector(c->adj, V, h, given.q);
  store_matrix(c->adj, C, h, given.b);
}

// (E93) For a pressure that acts on the surface at F^: scatters to the nodes, from a range's particles, -T^T y, T the
// derivative of its impulses by velocities, which is not symmetric, and y in STEP. in, out: states before and after it.
static void follow(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  const real dt = (real)s->model->dt, scale = (real)(4 / s->model->dx) * dt * dt;
  const real *y = grid_vector(s, CQ_GRID_STEP);
  const Strides strides = strides_of(s->arrangement);
  SlopeScatter to;
  slopes_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0), *next = (const real *)out->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    const Chunk here = {s, &matter, c};
    const ChunkStep step = {.matter = &matter, .next = next, .excess = dilatation_excess(s, c)};
    if (!matter.pressed && !step.excess) continue;
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    gather_chunk(&st, y, &strides);
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM];
      Real pressure[CQ_DIM], unused[CQ_DIM], grad[CQ_DIM][CQ_DIM], b[CQ_DIM][CQ_DIM];
      Sums sums;
      place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
      sums_load(st.records + h, &sums);
      rate_after(&step, h, rate);
      load_matrix(chunk, F, h, def);
      trial_of(s, rate, def, trial);
      EACH(i) {
        pressure[i] = unused[i] = r_set((real)0);
        EACH(j) grad[i][j] = unused[i];
      }
      if (matter.pressed) load_vector(matter.actuation, PRESSURE, h, pressure);
      pressure_force_adj(trial, pressure, grad, unused, sums.n0);
      mat_mul_nt(grad, def, b);
      EACH(i) EACH(j) b[i][j] = scale * b[i][j];
      slope_give(&here, &st, h, arm, b, &to);
    }
    slopes_scatter(s, &to, &strides, c, &st);
  }
  slopes_end(s, &to, &strides);
}

// (E92) Adjoint of an implicit step at the particles of a range: from the solution of the nodes' linear system,
// s->grid_q, turns s->adj into the adjoint of `in`, the state before the step; adds to the gradients of constants and
// actuation. out: the state after the step.
static void implicit_p2g_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  const real *velocity = (const real *)s->grid_v, *gradient = (const real *)s->grid_q;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0), *next = (const real *)out->data + AT(c, FIELDS, 0);
    const ChunkGrad grad = chunk_grad_of(s, c);
    const Matter matter = matter_of(s, in, c);
    const ChunkStep step = {&matter, next, grad.state, &grad, s->model->integrator.statics,
                            cq_pressure_follows(s->model), dilatation_excess(s, c),
                            s->implicit.dilatation ? dilatation_solve_of(s, c) : NULL, NULL};
    Stencils st;
    Stress stress[CQ_CHUNK / CQ_LANES];
    Real grad_f[CQ_CHUNK / CQ_LANES][CQ_DIM][CQ_DIM];
    stencils_of(s, chunk, &st, 1);
    gather_chunk(&st, gradient, &strides);
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
      stress_adj(s, &step, h, st.records + h, &stress[h / CQ_LANES], grad_f[h / CQ_LANES]);
      moves_with(s, &step, h, arm, st.records + h, &stress[h / CQ_LANES]);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      const int64_t node = 4 * (int64_t)st.node[l];
      gather_adj(&st.records[l], gradient + node, velocity + node, &strides);
    }
    LANES_EACH(h)
      particle_adj(s, &step, h, st.records + h, &stress[h / CQ_LANES], (const Real (*)[CQ_DIM])grad_f[h / CQ_LANES]);
  }
}
