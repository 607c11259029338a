// step_adj: the adjoint of one engine step. g2p_adj scatters the gradients of node velocities from the particles; the
// grid pass turns them into gradients of momentum and mass; p2g_adj gathers these into the adjoint of the state before.

// Gradients of a chunk.
typedef struct {
  real *state, *params, *actuation, *internal;
} ChunkGrad;

// Returns the addresses of the adjoints of chunk c: of its state, constants, actuation and internal variables.
CQ_INLINE ChunkGrad chunk_grad_of(const cq_scene *s, const int32_t c) {
  return (ChunkGrad){(real *)s->adj + AT(c, FIELDS, 0), (real *)s->params_adj + AT(c, s->params, 0),
                     (real *)s->actuation_adj + AT(c, ACTUATION_FIELDS, 0),
                     s->internal_adj ? (real *)s->internal_adj + AT(c, s->model->internal_count, 0) : NULL};
}

// Adjoint of update_chunk: in adj (dL/dF) and in the chunk's gradient of internal variables, gradients after the laws'
// update become those before it; adds to gradients of constants. chunk: state before the step; next: v' and C'.
CQ_RARE void update_chunk_adj(const cq_scene *s, const Matter *m, const real *chunk, const real *next,
                              const ChunkGrad *grad_chunk, real *adj) {
  const uint32_t mask = updating(m);
  const int internals = m->model->internal_count, slots = m->model->slot_count;
  LANES_EACH(h)
    for (int k = 0; mask >> k; k++) {
      if (!(mask >> k & 1)) continue;
      MaterialPoint at, grad;
      Real def[CQ_DIM][CQ_DIM], affine_next[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM], grad_def[CQ_DIM][CQ_DIM];
      load_matrix(chunk, F, h, def);
      load_matrix(next, C, h, affine_next);
      mat_mul(affine_next, def, trial);
      EACH(i) EACH(j) trial[i][j] = def[i][j] + (real)s->model->dt * trial[i][j];
      const cq_material *law = &m->model->materials[k];
      point_of(m, law, h, trial, &at);
      load_matrix(adj, F, h, grad_def);
      EACH(i) EACH(j) grad.f[i][j] = grad_def[i][j];
      for (int q = 0; q < slots; q++) *material_slot(law, &grad, q) = r_set((real)0);
      for (int q = 0; q < internals; q++) grad.internal[q] = r_load(grad_chunk->internal + q * CQ_CHUNK + h);
      material_update_adj(&at, &grad);
      const Real mine = is_material(m, k, h);
      EACH(i) EACH(j) grad_def[i][j] = r_pick(mine, grad.f[i][j], grad_def[i][j]);
      store_matrix(adj, F, h, grad_def);
      for (int q = 0; q < slots; q++) {
        real *to = grad_chunk->params + (CQ_PARAM_SLOTS + q) * CQ_CHUNK + h;
        r_store(to, r_pick(mine, r_load(to) + *material_slot(law, &grad, q), r_load(to)));
      }
      for (int q = 0; q < internals; q++) {
        real *to = grad_chunk->internal + q * CQ_CHUNK + h;
        r_store(to, r_pick(mine, grad.internal[q], r_load(to)));
      }
    }
}

// Returns chunk c of s->kept_adj, whose V and C are the gradients of a particle's kept unresolved motion, b r and b S
// (E124).
CQ_INLINE real *kept_adj_of(const cq_scene *s, const int32_t c) {
  return (real *)s->kept_adj + AT(c, MOTION_FIELDS, 0) - V * CQ_CHUNK;
}

// (E124) Adjoint of keep_in_state for particles h, h + 1, ... of chunk c: in grad, the gradients of v'' and C'' become
// those of v' and C', with what an averaging has stored for that of C' (WANTED); the gradients of b r and b S go to
// s->kept_adj, for p2g_adj. out: the state after the step.
CQ_INLINE void keep_in_state_adj(const cq_scene *s, const cq_slice *out, const int32_t c, const int h, State *grad) {
  const GridStep step = grid_step_of(s);
  Motion moved, after, grad_after, grad_kept;
  motion_load(motion_of(out, c), h, &moved);
  motion_load((const real *)out->data + AT(c, FIELDS, 0), h, &after);
  EACH(i) grad_after.v[i] = grad->v[i];
  EACH(i) EACH(j) grad_after.c[i][j] = grad->c[i][j];
  keep_unresolved_adj(&step, &moved, &after, grad->c, &grad_kept, &grad_after);
  if (s->dilatation) EACH(i) grad->c[i][i] += r_load(dilatation_of(s, c) + WANTED * CQ_CHUNK + h);
  store_vector(kept_adj_of(s, c), V, h, grad_kept.v);
  store_matrix(kept_adj_of(s, c), C, h, grad_kept.c);
}

// (E124) Stores in records[0], records[1], ..., from quad number `quad` on, what particles h, h + 1, ... of chunk c
// scatter to the gradients of v~_i at nodes, from s->kept_adj. arm: from the particle to its middle node.
CQ_INLINE void kept_adj_moves(const cq_scene *s, const int32_t c, const int h, const Real arm[CQ_DIM], Record *records,
                              const int quad) {
  const GridStep step = grid_step_of(s);
  Motion grad_kept;
  Exchange give;
  motion_load(kept_adj_of(s, c), h, &grad_kept);
  motion_seen_adj(&step, arm, &grad_kept, &give);
  give.m = r_set((real)0);
  move_store(records, quad, &give);
}

// Adjoint of G2P for a range of chunks (E15): adds dL/dv of nodes to its slab. s->adj holds dL/d(state after); its
// velocity and C become dL/dn0 and dL/dn1, gradients of the sums over nodes, which p2g_adj reads. keeps: 1: gradients
// of unresolved motion go to s->kept_adj (E124), and dL/dv~ of nodes to the second slab.
CQ_INLINE void g2p_adj_range(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, const int keeps) {
  const cq_arrangement *a = s->arrangement;
  const real inv_dx = (real)(1 / s->model->dx);
  const GridStep step = grid_step_of(s);
  const Strides strides = strides_of(a);
  real *grid_slab = slab_of(s, range);
  Row rows[ROWS];
  CQ_UNROLL for (int k = 0; k < ROWS; k++) rows[k] = row_zero();
  int64_t current = -1;
  Scatter inertia;
  if (keeps) inertia_scatter_begin(&inertia, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    real *adj = (real *)s->adj + AT(c, FIELDS, 0);
    Record records[CQ_CHUNK] __attribute__((aligned(64))), kept[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    if (s->updates) {
      const Matter matter = matter_of(s, in, c);
      const ChunkGrad chunk_grad = chunk_grad_of(s, c);
      if (updating(&matter))
        update_chunk_adj(s, &matter, chunk, motion_of(out, c), &chunk_grad, adj);
    }
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      place(chunk, h, inv_dx, base, f, arm);
      nodes_store(a, node, h, base);
      weights_store(records + h, f, 0);
      State grad;
      Exchange give;
      Real def[CQ_DIM][CQ_DIM];
      load_matrix(chunk, F, h, def);
      load_vector(adj, X, h, grad.x);
      load_vector(adj, V, h, grad.v);
      load_matrix(adj, C, h, grad.c);
      load_matrix(adj, F, h, grad.f);
      if (keeps) {
        keep_in_state_adj(s, out, c, h, &grad);
        kept_adj_moves(s, c, h, arm, kept + h, MOVE);
      }
      transfer_to_particle_adj(&step, arm, def, &grad, &give);
      give.m = r_set((real)0);
      store_vector(adj, V, h, give.q);
      store_matrix(adj, C, h, give.b);
      move_store(records + h, MOVE, &give);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      prefetch_next(chunk, FIELDS, 0, FIELDS, l);
      prefetch_next(adj, FIELDS, 0, FIELDS, l);
      if (node[l] != current) {
        if (current >= 0) rows_flush(grid_slab + 4 * current, &strides, rows);
        current = node[l];
      }
      scatter(rows, &records[l]);
    }
    if (keeps) scatter_beside(&inertia, &strides, kept, records, node);
  }
  if (current >= 0) rows_flush(grid_slab + 4 * current, &strides, rows);
  if (keeps) scatter_end(&inertia, &strides);
}

// Adjoint of G2P for a range of chunks: calls g2p_adj_range with or without unresolved motion, as the world has it. in,
// out: states before and after the step.
static void g2p_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  if (cq_keeps_unresolved(s->model))
    g2p_adj_range(s, in, out, range, 1);
  else
    g2p_adj_range(s, in, out, range, 0);
}

// The sum w0 a + w1 b + w2 c over three rows along an axis, for w0 + w1 + w2 = 1, in differences from the middle row b:
// half of the work goes to adders, which multiplications leave idle. weight: of the axis.
CQ_INLINE Part part_interpolate(const real *weight, const Part a, const Part b, const Part c) {
  return part_scale_add(weight[0], part_sub(a, b), part_scale_add(weight[2], part_sub(c, b), b));
}
// Twice the derivative of part_interpolate's sum along the axis. weight[3]: the factor that weights_store has left.
CQ_INLINE Part part_slope(const real *weight, const Part a, const Part b, const Part c) {
  return part_scale_add(weight[3], part_add(part_sub(a, b), part_sub(c, b)), part_sub(c, a));
}

// Sums over the nodes of one particle for p2g_adj, into its record. At SUM, as gather leaves them: of dL/d(p, m) of
// nodes (grads). At EXCHANGE, for each axis, doubled, component by component: sums of the slopes of the weights times
// e, the gradient of what each node exchanges with the particle by the node's weight,
//   e = dL/dp . (q + b o) + dL/dm m + v . (dL/dn0 + dL/dn1 o)
// q and b of MOVE, dL/dn of MOVE_ADJ, v velocities of nodes (vels). weight: of this record, or of another one instead.
// grads, vels: addresses of the stencil's first node.
CQ_INLINE void gather_adj_by(Record *record, const real (*weight)[4], const real *grads, const real *vels,
                             const Strides *strides) {
  const real(*move)[4] = &record->quad[MOVE], (*move_adj)[4] = &record->quad[MOVE_ADJ];
  RowSum sum_m, sum_x, sum_last, exchange_x, exchange_last;
#if CQ_DIM == 3
  RowSum sum_y, exchange_y;
#endif
  PARTS_EACH(part) {
    const Part w = part_nodes(weight[LAST], part), dw = part_nodes(weight[CQ_DIM], part), ramp = part_ramp(part);
    const Part b0 = part_comps(move[1]), c0 = part_comps(move_adj[1]);
    const Part u1 = part_fma(part_comps(move[1 + LAST]), ramp, part_comps(move[0]));
    const Part t1 = part_fma(part_comps(move_adj[1 + LAST]), ramp, part_comps(move_adj[0]));
    const Part u[3] = {part_sub(u1, b0), u1, part_add(u1, b0)}, t[3] = {part_sub(t1, c0), t1, part_add(t1, c0)};
    const real *grad = grads + PART_REALS * part, *vel = vels + PART_REALS * part;
    Part e[3], sum[3];
#if CQ_DIM == 3
    const Part b1 = part_comps(move[2]), c1 = part_comps(move_adj[2]);
    Part d[3], slope_y = w;   // written at i = 0
    CQ_UNROLL for (int i = 0; i < 3; i++) {
      Part g[3], ex[3];
      CQ_UNROLL for (int j = 0; j < 3; j++) g[j] = part_load(grad + row_at(strides, 3 * i + j));
      CQ_UNROLL for (int j = 0; j < 3; j++) {
        const Part uj = j == 0 ? part_sub(u[i], b1) : j == 1 ? u[i] : part_add(u[i], b1);
        const Part tj = j == 0 ? part_sub(t[i], c1) : j == 1 ? t[i] : part_add(t[i], c1);
        ex[j] = part_fma(g[j], uj, part_mul(part_load(vel + row_at(strides, 3 * i + j)), tj));
      }
      e[i] = part_interpolate(weight[1], ex[0], ex[1], ex[2]);
      d[i] = part_slope(weight[1], ex[0], ex[1], ex[2]);
      const Part a = part_scale(weight[1][0], g[0]), c = part_scale(weight[1][2], g[2]), y = part_sub(c, a);
      sum[i] = part_scale(weight[0][i], part_scale_add(weight[1][1], g[1], part_add(a, c)));
      slope_y = i ? part_scale_add(weight[0][i], y, slope_y) : part_scale(weight[0][i], y);
    }
    sum_take(&sum_y, part, part_mul(slope_y, w));
    sum_take(&exchange_y, part, part_mul(part_interpolate(weight[0], d[0], d[1], d[2]), w));
#else
    CQ_UNROLL for (int i = 0; i < 3; i++) {
      const Part g = part_load(grad + row_at(strides, i));
      e[i] = part_fma(g, u[i], part_mul(part_load(vel + row_at(strides, i)), t[i]));
      sum[i] = part_scale(weight[0][i], g);
    }
#endif
    const Part middle = part_mul(part_add(part_add(sum[0], sum[2]), sum[1]), w);
    sum_take(&exchange_x, part, part_mul(part_slope(weight[0], e[0], e[1], e[2]), w));
    sum_take(&exchange_last, part, part_mul(part_interpolate(weight[0], e[0], e[1], e[2]), dw));
    sum_take(&sum_m, part, middle);
    sum_take(&sum_x, part, part_mul(part_sub(sum[2], sum[0]), w));
    sum_take(&sum_last, part, part_mul(middle, ramp));
  }
#if CQ_DIM == 3
  sums_store(record->quad[SUM], &sum_m, &sum_x, &sum_y, &sum_last);
  sums_store(record->quad[EXCHANGE], &exchange_x, &exchange_y, &exchange_last, &exchange_x);
#else
  sums_store(record->quad[SUM], &sum_m, &sum_x, &sum_last, &exchange_x);
  sum_store(record->quad[EXCHANGE + 1], &exchange_last);
#endif
}

// Sums over the nodes of one particle for p2g_adj, into its record: gather_adj_by with the record's own weights.
CQ_INLINE void gather_adj(Record *record, const real *grads, const real *vels, const Strides *strides) {
  gather_adj_by(record, weights_of(record), grads, vels, strides);
}

// results of the first half of p2g_adj for the second
typedef struct {
  Real tau[CQ_DIM][CQ_DIM];
  MaterialKept kept;
} Stress;

// the lanes of a chunk from h on, and where their gradients go
typedef struct {
  const Matter *matter;
  const ChunkGrad *grad;
  int h;
} Lanes;

// Adjoint of stress_of_plain (a law that is not inlined), for those lanes whose material is number k (k < 0: all): from
// grad_tau, adds to grad_f and to the chunk's gradients of C, constants and internal variables.
CQ_RARE void stress_of_plain_adj(const Lanes lanes, const int k, const Real f[CQ_DIM][CQ_DIM],
                                 Real grad_f[CQ_DIM][CQ_DIM], const Real grad_tau[CQ_DIM][CQ_DIM]) {
  MaterialPoint at, grad;
  const Matter *m = lanes.matter;
  const ChunkGrad *chunk = lanes.grad;
  const int h = lanes.h;
  const cq_material *law = k < 0 ? m->only : &m->model->materials[k];
  point_of(m, law, h, f, &at);
  const Real mine = k < 0 ? r_set((real)1) : is_material(m, k, h);
  for (int q = 0; q < m->model->slot_count; q++) *material_slot(law, &grad, q) = r_set((real)0);
  for (int q = 0; q < m->model->internal_count; q++) grad.internal[q] = r_set((real)0);
  EACH(i) EACH(j) grad.f[i][j] = grad.rate[i][j] = r_set((real)0);
  material_kirchhoff_plain_adj(&at, &grad, grad_tau);
  // lanes of other laws may hold anything
  EACH(i) EACH(j) grad_f[i][j] = r_pick(mine, grad_f[i][j] + grad.f[i][j], grad_f[i][j]);
  if (law->viscous)
    EACH(i) EACH(j) {
      real *to = chunk->state + (C + i * CQ_DIM + j) * CQ_CHUNK + h;
      r_store(to, r_pick(mine, r_load(to) + grad.rate[i][j], r_load(to)));
    }
  for (int q = 0; q < m->model->slot_count; q++) {
    real *to = chunk->params + (CQ_PARAM_SLOTS + q) * CQ_CHUNK + h;
    r_store(to, r_pick(mine, r_load(to) + *material_slot(law, &grad, q), r_load(to)));
  }
  for (int q = 0; q < m->model->internal_count; q++) {
    real *to = chunk->internal + q * CQ_CHUNK + h;
    r_store(to, r_pick(mine, r_load(to) + grad.internal[q], r_load(to)));
  }
}

// Adjoint of stress_of_law for an inlined law, for those lanes whose material is number k (k < 0: all): from grad_tau,
// adds to grad_f and to the chunk's gradients of constants. kept: terms that stress_of_law has set.
CQ_INLINE void stress_of_fused_adj(const Lanes lanes, const int k, const Real f[CQ_DIM][CQ_DIM],
                                   const MaterialKept *kept, Real grad_f[CQ_DIM][CQ_DIM],
                                   const Real grad_tau[CQ_DIM][CQ_DIM]) {
  MaterialPoint at, grad;
  const Matter *m = lanes.matter;
  const int h = lanes.h;
  real *out = lanes.grad->params + CQ_PARAM_SLOTS * CQ_CHUNK + h;
  point_of_fused(m, k < 0 ? m->only : &m->model->materials[k], h, f, &at);
  EACH(i) EACH(j) grad.f[i][j] = grad_f[i][j];
  CQ_UNROLL for (int q = 0; q < FUSED_SLOTS; q++) grad.c[q] = r_load(out + q * CQ_CHUNK);
  material_kirchhoff_fused_adj(&at, kept, &grad, grad_tau);
  if (k < 0) {
    EACH(i) EACH(j) grad_f[i][j] = grad.f[i][j];
    CQ_UNROLL for (int q = 0; q < FUSED_SLOTS; q++) r_store(out + q * CQ_CHUNK, grad.c[q]);
    return;
  }
  const Real mine = is_material(m, k, h);
  EACH(i) EACH(j) grad_f[i][j] = r_pick(mine, grad.f[i][j], grad_f[i][j]);
  CQ_UNROLL for (int q = 0; q < FUSED_SLOTS; q++) {
    real *to = out + q * CQ_CHUNK;
    r_store(to, r_pick(mine, grad.c[q], r_load(to)));
  }
}

// Adjoint of stress_of for particles at.h, at.h + 1, ...: from grad_tau, adds to grad_f and to the chunk's gradients of
// constants, C, active stress and internal variables.
CQ_INLINE void stress_of_adj(const Lanes at, const Real f[CQ_DIM][CQ_DIM], const Stress *stress,
                             Real grad_f[CQ_DIM][CQ_DIM], const Real grad_tau[CQ_DIM][CQ_DIM]) {
  const Matter *m = at.matter;
  const ChunkGrad *chunk = at.grad;
  const int h = at.h;
  if (m->only && material_is_fused(m->only))
    stress_of_fused_adj(at, -1, f, &stress->kept, grad_f, grad_tau);
  else if (m->only)
    stress_of_plain_adj(at, -1, f, grad_f, grad_tau);
  for (int k = 0; !m->only && m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    const cq_material *law = &m->model->materials[k];
    if (!material_is_fused(law)) {
      stress_of_plain_adj(at, k, f, grad_f, grad_tau);
      continue;
    }
    MaterialKept kept;
    material_keep(law->kind, f, mat_det(f), &kept);
    stress_of_fused_adj(at, k, f, &kept, grad_f, grad_tau);
  }
  if (!m->actuation) return;
  Real sigma[CQ_SYM], grad_sigma[CQ_SYM];
  for (int k = 0; k < CQ_SYM; k++) sigma[k] = r_load(m->actuation + (SIGMA + k) * CQ_CHUNK + h);
  for (int k = 0; k < CQ_SYM; k++) grad_sigma[k] = r_load(chunk->actuation + (SIGMA + k) * CQ_CHUNK + h);
  actuation_stress_adj(f, sigma, grad_f, grad_sigma, grad_tau);
  for (int k = 0; k < CQ_SYM; k++) r_store(chunk->actuation + (SIGMA + k) * CQ_CHUNK + h, grad_sigma[k]);
}

// what the adjoint of unresolved motion of a chunk knows: sums over nodes, the state after, and what r and S get
typedef struct {
  const Record *of;
  const real *after, *adj;
} KeptStep;

// a chunk in the adjoint of a step; its matter has the state before it
typedef struct {
  const Matter *matter;
  const real *next;          // v' and C': of the state after, or of motion_of it
  real *adj;
  const ChunkGrad *grad;
  int still, follows;        // implicit steps: without the motion of particles; with pressure at the end of the step
  const real *excess;        // what the trace of C' was more for F, NULL: nothing (dilatation.inl)
  const real *solved;        // of implicit steps the same within their stress (dilatation_solve.inl)
  const KeptStep *kept;      // NULL without unresolved motion
} ChunkStep;

// The numbers {16} that averaging of dilatations adds to each diagonal entry of C' of chunk c when the step updates F,
// -s/dim y (E37); NULL where nothing is averaged.
CQ_INLINE const real *dilatation_excess(const cq_scene *s, const int32_t c) {
  return s->dilatation ? dilatation_of(s, c) + EXCESS * CQ_CHUNK : NULL;
}

// Sets rate to the velocity gradient with which the step updated F of particles h, h + 1, ..., F' = (I + dt rate) F:
// C', with averaged dilatation where there is one.
CQ_INLINE void rate_after(const ChunkStep *c, const int h, Real rate[CQ_DIM][CQ_DIM]) {
  load_matrix(c->next, C, h, rate);
  if (c->excess) EACH(i) rate[i][i] += r_load(c->excess + h);
}

// Adjoint of force_of for particles h, h + 1, ...: from grad_force, adds to grad_f and to the chunk's gradients of
// forces and pressures. Leaves out a pressure that follows F^ (c->follows), which has an adjoint of its own.
CQ_INLINE void force_of_adj(const Matter *m, const int h, const Real f[CQ_DIM][CQ_DIM], const ChunkStep *c,
                            Real grad_f[CQ_DIM][CQ_DIM], const Real grad_force[CQ_DIM]) {
  const ChunkGrad *chunk = c->grad;
  if (m->actuation)
    EACH(i) {
      real *at = chunk->actuation + (FORCE + i) * CQ_CHUNK + h;
      r_store(at, r_load(at) + grad_force[i]);
    }
  if (!m->pressed || c->follows) return;
  Real pressure[CQ_DIM], grad_pressure[CQ_DIM];
  load_vector(m->actuation, PRESSURE, h, pressure);
  load_vector(chunk->actuation, PRESSURE, h, grad_pressure);
  pressure_force_adj(f, pressure, grad_f, grad_pressure, grad_force);
  store_vector(chunk->actuation, PRESSURE, h, grad_pressure);
}

// Sets f to the deformation gradient that turns surface pressures of particles h, h + 1, ... into forces: F at the
// start of the step, or F^ at its end in implicit steps that ask for it (c->follows).
CQ_INLINE void surface_deformation(const cq_scene *s, const ChunkStep *c, const int h, Real f[CQ_DIM][CQ_DIM]) {
  load_matrix(c->matter->state, F, h, f);
  if (!c->follows) return;
  Real rate[CQ_DIM][CQ_DIM], before[CQ_DIM][CQ_DIM];
  rate_after(c, h, rate);
  load_matrix(c->matter->state, F, h, before);
  trial_of(s, rate, before, f);
}

// For the adjoint of unresolved motion (E121): stores in records[0], ... what particles h, h + 1, ... gave to nodes
// before stress and forces (MOVE), computed again, and what they give to the gradients of v~_i (MOVE_ADJ).
CQ_INLINE void kept_moves_again(const cq_scene *s, const ChunkStep *c, const int32_t chunk, const int h,
                                const Real arm[CQ_DIM], Record *records) {
  const GridStep step = grid_step_of(s);
  Source p;
  Exchange give;
  EACH(i) p.arm[i] = arm[i];
  p.mass = param(c->matter, CQ_PARAM_MASS, h);
  load_vector(c->matter->state, V, h, p.v);
  load_matrix(c->matter->state, C, h, p.c);
  transfer_inertia(&step, &p, &give);
  give.m = r_set((real)0);
  move_store(records, MOVE, &give);
  kept_adj_moves(s, chunk, h, arm, records, MOVE_ADJ);
}

// (E124) From the sums of unresolved motion that particles h, h + 1, ... have gathered: adds to grad, the gradients of
// v, C, mass and arm before the step. p: the particles as P2G read them.
CQ_INLINE void kept_motion_adj(const cq_scene *s, const ChunkStep *c, const int h, const Source *p, Source *grad) {
  const GridStep step = grid_step_of(s);
  Exchange give;
  Sums sums;
  Motion moved, after, grad_kept;
  Real left[CQ_DIM];
  sums_load(c->kept->of + h, &sums);
  transfer_inertia(&step, p, &give);
  transfer_inertia_adj(&step, p, &give, grad, &sums);
  motion_load(c->next, h, &moved);
  motion_load(c->kept->after, h, &after);
  motion_load(c->kept->adj, h, &grad_kept);
  kept_velocity(&step, &moved, &after, left);
  motion_seen_adj_rest(&step, &grad_kept, left, grad, p->v);
}

// Stores in records[0], ... what particles h, h + 1, ... gave to nodes in P2G with this stress (MOVE), computed again,
// and what they give to the gradients of node velocities (MOVE_ADJ); gather_adj reads both.
CQ_INLINE void moves_with(const cq_scene *s, const ChunkStep *c, const int h, const Real arm[CQ_DIM], Record *records,
                          const Stress *stress) {
  const GridStep step = grid_step_of(s);
  Source p;
  Exchange give;
  Real def[CQ_DIM][CQ_DIM];
  surface_deformation(s, c, h, def);
  source_of(c->matter, h, arm, def, stress->tau, &p);
  if (c->still) source_still(&p);
  transfer_to_grid(&step, &p, &give);
  move_store(records, MOVE, &give);
  load_vector(c->adj, V, h, give.q);
  load_matrix(c->adj, C, h, give.b);
  give.m = r_set((real)0);
  move_store(records, MOVE_ADJ, &give);
}

// As moves_with, with the stress of the particles' state, which is computed again and left in `stress`.
CQ_INLINE void moves_again(const cq_scene *s, const ChunkStep *c, const int h, const Real arm[CQ_DIM],
                           Record *records, Stress *stress) {
  Real def[CQ_DIM][CQ_DIM];
  load_matrix(c->matter->state, F, h, def);
  stress_of(c->matter, h, def, &stress->kept, stress->tau);
  moves_with(s, c, h, arm, records, stress);
}

// (E16 to E19) Last part of p2g_adj, for particles h, h + 1, ...: from their sums over nodes in records[0], ...,
// computes the adjoint of their state before the step, in the chunk's adjoint and gradients. grad_f: the gradient of F
// that an implicit step has already computed; NULL: it is computed here from the stress.
CQ_INLINE void particle_adj(const cq_scene *s, const ChunkStep *c, const int h, const Record *records,
                            const Stress *stress, const Real grad_f[CQ_DIM][CQ_DIM]) {
  const real inv_dx = (real)(1 / s->model->dx);
  const GridStep step = grid_step_of(s);
  const Matter *matter = c->matter;
  real *adj = c->adj, *params_adj = c->grad->params;
  Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], def[CQ_DIM][CQ_DIM], grad_def[CQ_DIM][CQ_DIM];
  Sums sums;
  Source p, grad;
  Exchange give, given;
  place(matter->state, h, inv_dx, base, f, arm);
  sums_load(records, &sums);
  load_matrix(matter->state, F, h, def);
  Real at_surface[CQ_DIM][CQ_DIM];
  surface_deformation(s, c, h, at_surface);
  source_of(matter, h, arm, at_surface, stress->tau, &p);
  if (c->still) source_still(&p);
  transfer_to_grid(&step, &p, &give);

  // C', F' and v'
  State after;
  load_vector(c->next, V, h, after.v);
  rate_after(c, h, after.c);
  load_matrix(adj, C, h, given.b);
  load_matrix(adj, F, h, grad_def);
  source_clear(&grad, r_set((real)0));
  transfer_to_particle_adj_rest(&step, &after, &given, grad.arm, grad_def);

  // momentum and mass
  grad.mass = r_load(params_adj + CQ_PARAM_MASS * CQ_CHUNK + h);
  grad.volume = r_load(params_adj + CQ_PARAM_VOLUME * CQ_CHUNK + h);
  transfer_to_grid_adj(&step, &p, &give, &grad, &sums);
  if (c->kept) kept_motion_adj(s, c, h, &p, &grad);
  if (c->still) source_still(&grad);
  // a call takes its address; all of grad would lie in the stack with it
  Real grad_tau[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) grad_tau[i][j] = grad.tau[i][j];
  r_store(params_adj + CQ_PARAM_MASS * CQ_CHUNK + h, grad.mass);
  r_store(params_adj + CQ_PARAM_VOLUME * CQ_CHUNK + h, grad.volume);
  store_matrix(adj, C, h, grad.c);   // a viscous material adds to it
  if (grad_f)
    EACH(i) EACH(j) grad_def[i][j] += grad_f[i][j];
  else
    stress_of_adj((Lanes){matter, c->grad, h}, def, stress, grad_def, grad_tau);
  force_of_adj(matter, h, def, c, grad_def, grad.force);

  // position: x' = x + ..., and through weights and arm, f = x / dx - base, arm = 1 - f
  EACH(i) {
    Real quad[4];
    quads_load(records, EXCHANGE + i, quad);
    Real s_i = quad[0] + quad[1] + quad[2];
    if (CQ_DIM == 3) s_i += quad[3];
    if (c->kept) {
      quads_load(c->kept->of + h, EXCHANGE + i, quad);
      s_i += quad[0] + quad[1];
      if (CQ_DIM == 3) s_i += quad[2];
    }
    real *at = adj + (X + i) * CQ_CHUNK + h;
    r_store(at, r_load(at) + inv_dx * ((real)0.5 * s_i - grad.arm[i]));
  }
  store_vector(adj, V, h, grad.v);
  store_matrix(adj, F, h, grad_def);
}

// Adjoint of P2G for a range of chunks: p2g_adj without (keeps 0) or with (keeps 1) unresolved motion (E124).
CQ_INLINE void p2g_adj_range(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, const int keeps) {
  const cq_arrangement *a = s->arrangement;
  const real inv_dx = (real)(1 / s->model->dx);
  const Strides strides = strides_of(a);
  const real *velocity = (const real *)s->grid_v, *gradient = (const real *)s->grid_q;
  const real *inertia_v = (const real *)s->inertia_v, *inertia_q = (const real *)s->inertia_q;
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0), *next = motion_of(out, c);
    real *adj = (real *)s->adj + AT(c, FIELDS, 0);
    const ChunkGrad chunk_grad = chunk_grad_of(s, c);
    const Matter matter = matter_of(s, in, c);
    Record records[CQ_CHUNK] __attribute__((aligned(64))), kept[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    const KeptStep kept_step = {kept, (const real *)out->data + AT(c, FIELDS, 0), keeps ? kept_adj_of(s, c) : NULL};
    const ChunkStep step = {.matter = &matter, .next = next, .adj = adj, .grad = &chunk_grad,
                            .excess = dilatation_excess(s, c), .kept = keeps ? &kept_step : NULL};
    Stress stress[CQ_CHUNK / CQ_LANES];
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      place(chunk, h, inv_dx, base, f, arm);
      nodes_store(a, node, h, base);
      weights_store(records + h, f, 1);
      moves_again(s, &step, h, arm, records + h, &stress[h / CQ_LANES]);
      if (keeps) kept_moves_again(s, &step, c, h, arm, kept + h);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      prefetch_next(chunk, FIELDS, 0, FIELDS, l);
      prefetch_next(next, keeps ? MOTION_FIELDS : FIELDS, V, MOTION_FIELDS, l);
      prefetch_next(adj, FIELDS, 0, FIELDS, l);
      gather_adj(&records[l], gradient + 4 * (int64_t)node[l], velocity + 4 * (int64_t)node[l], &strides);
    }
    for (int l = 0; keeps && l < CQ_CHUNK; l++) {
      const int64_t at = 4 * (int64_t)node[l];
      gather_adj_by(&kept[l], weights_of(&records[l]), inertia_q + at, inertia_v + at, &strides);
    }
    LANES_EACH(h) particle_adj(s, &step, h, records + h, &stress[h / CQ_LANES], NULL);
  }
}

// Adjoint of P2G for a range of chunks: from dL/d(momentum, mass) of nodes (s->grid_q) and what g2p_adj has left in it,
// s->adj becomes the adjoint of the state `in`. in, out: states before and after the step.
static void p2g_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  if (cq_keeps_unresolved(s->model))
    p2g_adj_range(s, in, out, range, 1);
  else
    p2g_adj_range(s, in, out, range, 0);
}
