// implicit_adj: the adjoint of a step of backward Euler, the loop over particles. The solution y of the nodes' linear
// system is what the momentum of nodes gets (E89); what particles get of it is what the explicit step gives them, with K
// in place of tau, and what F^ gets through K beside it (E91, E92).

// Adjoint of piola_of: what P(F^) gets goes to F^, and to constants, internal variables and actuation.
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
    material_stress_adj(&at, &grad, grad_p);
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
  load_sigma(m, h, sigma);
  mat_mul(grad_p, sigma, t);
  EACH(i) EACH(j) grad_trial[i][j] += t[i][j];
  mat_mul_tn(trial, grad_p, t);
  EACH(i) EACH(j) {
    real *to = chunk->actuation + (SIGMA + sym_at(i, j)) * CQ_CHUNK + h;
    r_store(to, r_load(to) + t[i][j]);
  }
}

// Adjoint of viscous_of: to the viscosity, to F before the step and to the rate.
CQ_RARE void viscous_adj_of(const Matter *m, const int h, const Real f[CQ_DIM][CQ_DIM], const Real c[CQ_DIM][CQ_DIM],
                            const ChunkGrad *chunk, Real grad_f[CQ_DIM][CQ_DIM], Real grad_c[CQ_DIM][CQ_DIM],
                            const Real grad_k[CQ_DIM][CQ_DIM]) {
  for (int k = 0; m->materials >> k; k++) {
    const cq_material *law = &m->model->materials[k];
    if (!(m->materials >> k & 1) || !law->viscous) continue;
    const Real mine = m->only ? r_set((real)1) : is_material(m, k, h);
    MaterialPoint at, grad;
    viscous_point(m, law, h, f, c, &at);
    EACH(i) EACH(j) grad.f[i][j] = grad.rate[i][j] = r_set((real)0);
    grad.extra[0] = r_set((real)0);
    viscous_stress_adj(&at, &grad, grad_k);
    EACH(i) EACH(j) {
      grad_f[i][j] = r_pick(mine, grad_f[i][j] + grad.f[i][j], grad_f[i][j]);
      grad_c[i][j] = r_pick(mine, grad_c[i][j] + grad.rate[i][j], grad_c[i][j]);
    }
    real *to = chunk->params + CQ_PARAM_SLOTS * CQ_CHUNK + h;
    r_store(to, r_pick(mine, r_load(to) + grad.extra[0], r_load(to)));
  }
}

// what the first half has for the second
typedef struct {
  Real k[CQ_DIM][CQ_DIM], grad_f[CQ_DIM][CQ_DIM];   // K, and what F gets of it at once
} ImplicitStress;

// (E91) From Y = 4/dx sum w y (x_i - x_p): what K gets is -dt V Y. The adjoint of F', C' and m1 in the chunk become the
// complete ones, for F^ is F' and has been a cause of the stress as well.
CQ_INLINE void stress_adj(const cq_scene *s, const Matter *matter, const real *chunk, const real *next,
                          const ChunkGrad *grad, const int h, const Record *of, ImplicitStress *kept) {
  const real dx = (real)s->model->dx, dt = (real)s->model->dt, inv_dx = (real)(1 / s->model->dx);
  Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], n0[4], n1[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM];
  Real trial[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM], psi, grad_k[CQ_DIM][CQ_DIM], grad_p[CQ_DIM][CQ_DIM];
  Real change[CQ_DIM][CQ_DIM], grad_c[CQ_DIM][CQ_DIM], grad_trial[CQ_DIM][CQ_DIM];
  place(chunk, h, inv_dx, base, f, arm);
  sums_load(of, n0, n1);
  load_matrix(next, C, h, rate);
  load_matrix(chunk, F, h, def);
  trial_of(s, rate, def, trial);
  piola_of(matter, h, trial, p, &psi);
  mat_mul_nt(p, def, kept->k);
  const Real scale = (real)-4 / dx * dt * param(matter, CQ_PARAM_VOLUME, h);
  EACH(i) EACH(j) {
    grad_k[i][j] = scale * (n1[i][j] + n0[i] * arm[j]);
    change[i][j] = grad_c[i][j] = r_set((real)0);
  }
  mat_mul(grad_k, def, grad_p);
  mat_mul_tn(grad_k, p, kept->grad_f);
  piola_adj_of(matter, h, trial, grad, change, grad_p);
  if (is_viscous(matter)) {
    viscous_of(matter, h, def, rate, kept->k);
    viscous_adj_of(matter, h, def, rate, grad, kept->grad_f, grad_c, grad_k);
  }
  load_matrix(grad->state, F, h, grad_trial);
  EACH(i) EACH(j) grad_trial[i][j] += change[i][j];
  store_matrix(grad->state, F, h, grad_trial);

  Real through[CQ_DIM][CQ_DIM], gm0[CQ_DIM], gm1[CQ_DIM][CQ_DIM];
  mat_mul_nt(change, def, through);
  load_vector(grad->state, V, h, gm0);
  load_matrix(grad->state, C, h, gm1);
  EACH(i) EACH(j) {
    const Real more = (real)4 / dx * (dt * through[i][j] + grad_c[i][j]);
    gm1[i][j] += more;
    gm0[i] += more * arm[j];
  }
  store_vector(grad->state, V, h, gm0);
  store_matrix(grad->state, C, h, gm1);
}

// what the particle gave to the grid, with K in it, and the adjoint moves beside it
CQ_INLINE void implicit_moves(const cq_scene *s, const Matter *matter, const real *chunk, const real *adj, const int h,
                              Record *of, const ImplicitStress *kept, Real b[CQ_DIM][CQ_DIM]) {
  Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], v[CQ_DIM], affine[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], force[CQ_DIM];
  Real q[CQ_DIM], gm0[CQ_DIM], gm1[CQ_DIM][CQ_DIM];
  place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
  load_vector(chunk, V, h, v);
  load_matrix(chunk, C, h, affine);
  load_matrix(chunk, F, h, def);
  force_of(matter, h, def, force);
  const Real mass = param(matter, CQ_PARAM_MASS, h);
  transfer_to_grid((real)s->model->dx, (real)s->model->dt, arm, mass, param(matter, CQ_PARAM_VOLUME, h), v, affine,
                   kept->k, force, q, b);
  if (!of) return;
  move_store(of, MOVE, mass, q, b);
  load_vector(adj, V, h, gm0);
  load_matrix(adj, C, h, gm1);
  move_store(of, MOVE_ADJ, mass - mass, gm0, gm1);
}

// (E92) from the sums over nodes to the adjoint of the state before
CQ_INLINE void implicit_particle_adj(const cq_scene *s, const Matter *matter, const real *chunk, const real *next,
                                     const ChunkGrad *grad, const int h, const Record *of, const ImplicitStress *kept) {
  const real dx = (real)s->model->dx, dt = (real)s->model->dt, inv_dx = (real)(1 / s->model->dx);
  real *adj = grad->state, *params_adj = grad->params;
  Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], n0[4], n1[CQ_DIM][CQ_DIM], grad_arm[CQ_DIM];
  Real b[CQ_DIM][CQ_DIM], v[CQ_DIM], affine[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM];
  place(chunk, h, inv_dx, base, f, arm);
  sums_load(of, n0, n1);
  implicit_moves(s, matter, chunk, adj, h, NULL, kept, b);
  load_vector(chunk, V, h, v);
  load_matrix(chunk, C, h, affine);
  load_matrix(chunk, F, h, def);

  Real v_next[CQ_DIM], affine_next[CQ_DIM][CQ_DIM], gm1[CQ_DIM][CQ_DIM], grad_def[CQ_DIM][CQ_DIM];
  load_vector(next, V, h, v_next);
  load_matrix(next, C, h, affine_next);
  load_matrix(adj, C, h, gm1);
  load_matrix(adj, F, h, grad_def);
  EACH(i) grad_arm[i] = r_set((real)0);
  transfer_to_particle_adj_rest(dt, v_next, affine_next, gm1, grad_arm, grad_def);
  EACH(i) EACH(j) grad_def[i][j] += kept->grad_f[i][j];

  Real grad_v[CQ_DIM], grad_c[CQ_DIM][CQ_DIM], grad_k[CQ_DIM][CQ_DIM], grad_force[CQ_DIM];
  const Real mass = param(matter, CQ_PARAM_MASS, h), volume = param(matter, CQ_PARAM_VOLUME, h);
  Real grad_mass = r_load(params_adj + CQ_PARAM_MASS * CQ_CHUNK + h);
  Real grad_volume = r_load(params_adj + CQ_PARAM_VOLUME * CQ_CHUNK + h);
  transfer_to_grid_adj(dx, dt, arm, mass, volume, v, affine, kept->k, b, grad_arm, &grad_mass, &grad_volume, grad_v,
                       grad_c, grad_k, grad_force, n0, n1, n0[CQ_DIM]);
  r_store(params_adj + CQ_PARAM_MASS * CQ_CHUNK + h, grad_mass);
  r_store(params_adj + CQ_PARAM_VOLUME * CQ_CHUNK + h, grad_volume);
  if (matter->actuation)
    EACH(i) {
      real *at = grad->actuation + (FORCE + i) * CQ_CHUNK + h;
      r_store(at, r_load(at) + grad_force[i]);
    }
  if (matter->pressed) {
    Real pressure[CQ_DIM], grad_pressure[CQ_DIM];
    load_vector(matter->actuation, PRESSURE, h, pressure);
    load_vector(grad->actuation, PRESSURE, h, grad_pressure);
    pressure_force_adj(def, pressure, grad_def, grad_pressure, grad_force);
    store_vector(grad->actuation, PRESSURE, h, grad_pressure);
  }
  EACH(i) {
    Real quad[4];
    quads_load(of, EXCHANGE + i, quad);
    Real sum = quad[0] + quad[1] + quad[2];
    if (CQ_DIM == 3) sum += quad[3];
    real *at = adj + (X + i) * CQ_CHUNK + h;
    r_store(at, r_load(at) + inv_dx * ((real)0.5 * sum - grad_arm[i]));
  }
  store_vector(adj, V, h, grad_v);
  store_matrix(adj, C, h, grad_c);
  store_matrix(adj, F, h, grad_def);
}

static void implicit_p2g_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  const real *velocity = (const real *)s->grid_v, *gradient = (const real *)s->grid_q;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0), *next = (const real *)out->data + AT(c, FIELDS, 0);
    const ChunkGrad grad = chunk_grad_of(s, c);
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    ImplicitStress kept[CQ_CHUNK / CQ_LANES];
    stencils_of(s, chunk, &st, 1);
    gather_chunk(&st, gradient, &strides);
    LANES_EACH(h) {
      Real b[CQ_DIM][CQ_DIM];
      stress_adj(s, &matter, chunk, next, &grad, h, st.records + h, &kept[h / CQ_LANES]);
      implicit_moves(s, &matter, chunk, grad.state, h, st.records + h, &kept[h / CQ_LANES], b);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      const int64_t node = 4 * (int64_t)st.node[l];
      gather_adj(&st.records[l], gradient + node, velocity + node, &strides);
    }
    LANES_EACH(h)
      implicit_particle_adj(s, &matter, chunk, next, &grad, h, st.records + h, &kept[h / CQ_LANES]);
  }
}
