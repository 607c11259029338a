// adjoint: the adjoint of one step on reference grids. move_adj (node_adj.inl) turns gradients of the nodes' velocities
// and displacements into those of forces; forces_adj turns these into gradients of displacements before the step.
// Weights are constants, so that one gather of u and of dL/df, and one scatter, are all: with B = sum dL/df (x) grad N,
//   dL/dP = - V B F0,  dL/du += dL/dF F0^T grad N              (E116)

// ---- particles ------------------------------------------------------------------------------------------------------

// Which gradients of particles the scene is asked for: of constants of materials, volume, F0, position; 1 yes, 0 no.
CQ_INLINE Wanted wanted_of(const cq_scene *s) {
  const uint64_t constants = cq_constant_bits();
  return (Wanted){(s->wanted & constants) != 0, (s->wanted & cq_bit(CQ_FIELD_VOLUME)) != 0,
                  (s->wanted & cq_bit(CQ_FIELD_DEFORMATION)) != 0, (s->wanted & cq_bit(CQ_FIELD_POSITION)) != 0};
}

// Adds the lanes of x to CQ_LANES reals in memory.
CQ_INLINE void add_real(real *at, const Real x) { r_store(at, r_load(at) + x); }

// Sets p to P of particles at->h, ... as piola_of does, from f and rate. It is not inlined: only gradients of volumes,
// F0 and positions need P again.
CQ_RARE void piola_again(const Point *at, const Real f[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                         Real p[CQ_DIM][CQ_DIM]) {
  piola_of(at, f, rate, p);
}

// Adjoint of piola_of_any: from grad_p = dL/dP, adds to grad_f = dL/dF, grad_rate = dL/d(rate) where a law is viscous,
// and the gradients of constants.
CQ_RARE void piola_of_any_adj(const Point *at, const Real f[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                              Real grad_f[CQ_DIM][CQ_DIM], Real grad_rate[CQ_DIM][CQ_DIM],
                              const Real grad_p[CQ_DIM][CQ_DIM]) {
  const Matter *m = at->m;
  const cq_scene *s = at->s;
  real *constants = (real *)s->params_adj + AT(at->chunk, s->params, CQ_PARAM_SLOTS) + at->h;
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    const cq_material *law = &m->model->materials[k];
    const Real mine = is_material(m, k, at->h);
    MaterialPoint point, grad;
    point_at(at, law, f, rate, &point);
    for (int q = 0; q < m->model->slot_count; q++) *material_slot(law, &grad, q) = r_set((real)0);
    EACH(i) EACH(j) grad.f[i][j] = grad.rate[i][j] = r_set((real)0);
    piola_of_law_adj(&point, span_of_steps(s), &grad, grad_p);
    if (law->viscous)
      EACH(i) EACH(j) grad_rate[i][j] = r_pick(mine, grad_rate[i][j] + grad.rate[i][j], grad_rate[i][j]);
    EACH(i) EACH(j) grad_f[i][j] = r_pick(mine, grad_f[i][j] + grad.f[i][j], grad_f[i][j]);
    for (int q = 0; q < m->model->slot_count; q++) {
      real *to = constants + q * CQ_CHUNK;
      r_store(to, r_pick(mine, r_load(to) + *material_slot(law, &grad, q), r_load(to)));
    }
  }
}

// Adds along / V to the gradients of the volumes V of particles at->h, ...; along: a part of V dL/dV = P : dL/dP.
CQ_INLINE void add_to_volume(const Point *at, const Real along) {
  const cq_scene *s = at->s;
  const Real volume = param(at->m, CQ_PARAM_VOLUME, at->h);
  add_real((real *)s->params_adj + AT(at->chunk, s->params, CQ_PARAM_VOLUME) + at->h,
           r_pick(volume, along / volume, r_set((real)0)));
}

// Adjoint of piola_of at the deformation d: from grad_p = dL/dP, adds to grad_f, grad_rate and the gradients of
// constants and actuation, and, for a fused law, actuation's part to those of volumes (volume_adj adds the rest).
CQ_INLINE void piola_of_adj(const Point *at, const Deformed *d, Real grad_f[CQ_DIM][CQ_DIM],
                            Real grad_rate[CQ_DIM][CQ_DIM], const Real grad_p[CQ_DIM][CQ_DIM]) {
  const cq_scene *s = at->s;
  if (at->kind < 0) {
    piola_of_any_adj(at, d->f, d->rate, grad_f, grad_rate, grad_p);
  } else {
    MaterialPoint point, grad;
    fused_point_at(at, d->f, d->rate, &point);
    EACH(i) EACH(j) grad.f[i][j] = grad_f[i][j];
    CQ_UNROLL for (int q = 0; q < FUSED_SLOTS; q++) grad.c[q] = r_set((real)0);
    material_piola_of_adj(at->kind, &point, &grad, grad_p);
    if (at->viscous) {
      grad.extra[0] = r_set((real)0);
      EACH(i) EACH(j) grad.rate[i][j] = grad_rate[i][j];
      viscous_piola_adj(&point, span_of_steps(s), &grad, grad_p);
      EACH(i) EACH(j) grad_rate[i][j] = grad.rate[i][j];
    }
    EACH(i) EACH(j) grad_f[i][j] = grad.f[i][j];
    if (at->wanted.constants || at->wanted.volume) {
      real *constants = (real *)s->params_adj + AT(at->chunk, s->params, CQ_PARAM_SLOTS) + at->h;
      if (at->viscous) {
        add_real(constants, grad.extra[0]);
        constants += CQ_CHUNK;
      }
      add_real(constants + LAME_MU * CQ_CHUNK, grad.c[LAME_MU]);
      add_real(constants + LAME_LAMBDA * CQ_CHUNK, grad.c[LAME_LAMBDA]);
      if (material_power(point.law)) add_real(constants + LAME_VOLUMETRIC * CQ_CHUNK, grad.c[LAME_VOLUMETRIC]);
    }
  }
  if (!at->m->actuation) return;
  Real sigma[CQ_SYM], grad_sigma[CQ_SYM];
  real *actuation = (real *)s->actuation_adj + AT(at->chunk, ACTUATION_FIELDS, SIGMA) + at->h;
  load_sigma(at->m, at->h, sigma);
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) grad_sigma[k] = r_set((real)0);
  actuation_piola_adj(d->f, sigma, grad_f, grad_sigma, grad_p);
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) add_real(actuation + k * CQ_CHUNK, grad_sigma[k]);
  if (!at->wanted.volume || at->kind < 0) return;
  Real along = r_set((real)0);
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) along += sigma[k] * grad_sigma[k];
  add_to_volume(at, along);
}

// Adjoint of force_of for particles at->h, ...: from grad_force, adds to the gradients of forces and pressures given to
// them, and to grad_f = dL/dF, for the force of a pressure depends on F.
CQ_INLINE void given_force_adj(const Point *at, const Real f[CQ_DIM][CQ_DIM], Real grad_f[CQ_DIM][CQ_DIM],
                               const Real grad_force[CQ_DIM]) {
  if (!at->m->actuation) return;
  real *actuation = (real *)at->s->actuation_adj + AT(at->chunk, ACTUATION_FIELDS, 0);
  EACH(i) add_real(actuation + (FORCE + i) * CQ_CHUNK + at->h, grad_force[i]);
  if (!at->m->pressed) return;
  Real pressure[CQ_DIM], grad_pressure[CQ_DIM];
  load_vector(at->m->actuation, PRESSURE, at->h, pressure);
  load_vector(actuation, PRESSURE, at->h, grad_pressure);
  pressure_force_adj(f, pressure, grad_f, grad_pressure, grad_force);
  store_vector(actuation, PRESSURE, at->h, grad_pressure);
}

// Adjoint of deform: sets grad_stretch, the gradient of `stretch`, from grad_f = dL/dF; 0 in lanes without a particle.
// Adds to the gradient of F0 if that is wanted.
CQ_INLINE void deform_adj(const Point *at, const Real stretch[CQ_DIM][CQ_DIM],
                          const Real grad_f[CQ_DIM][CQ_DIM], Real grad_stretch[CQ_DIM][CQ_DIM]) {
  const cq_reference *r = &at->s->reference;
  const Real volume = param(at->m, CQ_PARAM_VOLUME, at->h);
  EACH(i) EACH(j) grad_stretch[i][j] = grad_f[i][j];
  if (r->started) {
    Real start[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
    load_matrix((const real *)r->start + AT(at->chunk, CQ_DIM * CQ_DIM, 0), 0, at->h, start);
    mat_mul_nt(grad_f, start, grad_stretch);
    if (at->wanted.start) {
      real *to = (real *)r->start_adj + AT(at->chunk, CQ_DIM * CQ_DIM, 0) + at->h;
      mat_mul_tn(stretch, grad_f, t);
      EACH(i) EACH(j) add_real(to + (i * CQ_DIM + j) * CQ_CHUNK, t[i][j]);
    }
  }
  EACH(i) EACH(j) grad_stretch[i][j] = r_pick(volume, grad_stretch[i][j], r_set((real)0));
}

// (E116) Adjoint of the forces of particles at->h, ... on nodes: from want, B = sum dL/df (x) grad N, and want_force,
// sum N dL/df, or NULL, sets grad_stretch; adds to grad_rate where a particle is viscous, and to the gradients of
// constants, F0, actuation, and volumes (of fused laws without the part of volume_adj). d: their deformation.
CQ_INLINE void particle_adj(const Point *at, const Deformed *d, const Real want[CQ_DIM][CQ_DIM],
                            const Real want_force[CQ_DIM], Real grad_stretch[CQ_DIM][CQ_DIM],
                            Real grad_rate[CQ_DIM][CQ_DIM]) {
  const cq_scene *s = at->s;
  const cq_reference *r = &s->reference;
  const Real volume = param(at->m, CQ_PARAM_VOLUME, at->h);
  Real along[CQ_DIM][CQ_DIM], grad_p[CQ_DIM][CQ_DIM], grad_f[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) along[i][j] = want[i][j];
  if (r->started) {
    Real start[CQ_DIM][CQ_DIM];
    load_matrix((const real *)r->start + AT(at->chunk, CQ_DIM * CQ_DIM, 0), 0, at->h, start);
    mat_mul(want, start, along);
  }
  EACH(i) EACH(j) grad_p[i][j] = (real)0 - volume * along[i][j];
  EACH(i) EACH(j) grad_f[i][j] = r_set((real)0);
  piola_of_adj(at, d, grad_f, grad_rate, grad_p);
  if (at->wanted.start || (at->wanted.volume && at->kind < 0)) {
    Real p[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
    piola_again(at, d->f, d->rate, p);
    if (at->kind < 0) add_to_volume(at, mat_dot(p, grad_p));
    mat_mul_tn(want, p, t);
    real *start = (real *)r->start_adj + AT(at->chunk, CQ_DIM * CQ_DIM, 0) + at->h;
    if (at->wanted.start)
      EACH(i) EACH(j) add_real(start + (i * CQ_DIM + j) * CQ_CHUNK, (real)0 - volume * t[i][j]);
  }
  if (want_force) given_force_adj(at, d->f, grad_f, want_force);
  deform_adj(at, d->stretch, grad_f, grad_stretch);
}

// Adjoint of rate_in_space at particles at->h, ...: from grad_rate, adds to grad_stretch, and sets grad_slope, the
// gradient of the slope of velocities. Lanes without a particle get 0.
CQ_INLINE void deformed_rate_adj(const Point *at, const Deformed *d, const Real grad_rate[CQ_DIM][CQ_DIM],
                                 Real grad_stretch[CQ_DIM][CQ_DIM], Real grad_slope[CQ_DIM][CQ_DIM]) {
  const Real volume = param(at->m, CQ_PARAM_VOLUME, at->h), none = r_set((real)0);
  rate_in_space_adj(d->stretch, d->rate, grad_rate, grad_slope, grad_stretch);
  EACH(i) EACH(j) grad_slope[i][j] = r_pick(volume, grad_slope[i][j], none);
  EACH(i) EACH(j) grad_stretch[i][j] = r_pick(volume, grad_stretch[i][j], none);
}

// (E116) Adjoint of lattice_forces_of, for a SIMD vector of cells: scatters the gradients of displacements to slab[0],
// and of velocities, if viscous is 1, to slab[1]; adds to the gradients of constants, volumes and actuation, not of F0
// and places. in: the state before the step; kind: the law of all particles (CQ_MATERIAL_...), -1: any.
CQ_INLINE void lattice_forces_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab slab[2],
                                  const int kind, const int viscous) {
  const real factor = slope_factor(s);
  Wanted wanted = wanted_of(s);
  wanted.start = wanted.place = 0;
  LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Across have, want, flow;
    Along from, back, flows;
    across_load(&c, nodes_of(s, in->nodes, U), &have);
    across_load(&c, (const real *)s->reference.force_adj, &want);
    if (viscous) across_load(&c, nodes_of(s, in->nodes, W), &flow);
    CQ_ROLL for (int q = 0; q < 2 * SECONDS; q++) {
      const int first = q / SECONDS, second = q % SECONDS;
      Real slope[2][CQ_DIM][CQ_DIM], want_slope[2][CQ_DIM][CQ_DIM], speed[2][CQ_DIM][CQ_DIM], force[2][CQ_DIM];
      CQ_UNROLL for (int last = 0; last < 2; last++) EACH(i) force[last][i] = r_set((real)0);
      if (second == 0) {
        along_load(&have, first, &from);
        along_load(&want, first, &back);
        if (viscous) along_load(&flow, first, &flows);
      }
      slopes_at(&from, second, factor, slope);
      slopes_at(&back, second, factor, want_slope);
      if (viscous) slopes_at(&flows, second, is_still(s) ? (real)0 : factor, speed);
      if (cells->forced) values_at(&back, second, force);
      CQ_ROLL for (int last = 0; last < 2; last++) {
        const int32_t chunk = cells->chunk + 2 * q + last;
        const Matter m = matter_at(s, chunk);
        const Point at = {s, &m, chunk, h, kind, viscous && one_is_viscous(&m), wanted};
        Deformed d;
        Real grad_rate[CQ_DIM][CQ_DIM];
        EACH(i) EACH(j) grad_rate[i][j] = r_set((real)0);
        deform(&at, slope[last], d.stretch, d.f);
        if (viscous) rate_in_space(speed[last], d.stretch, d.rate);
        particle_adj(&at, &d, want_slope[last], cells->forced ? force[last] : NULL, slope[last], grad_rate);
        if (viscous) deformed_rate_adj(&at, &d, grad_rate, slope[last], speed[last]);
      }
      slopes_give(&from, second, factor, slope);
      if (viscous) slopes_give(&flows, second, factor, speed);
      if (second < SECONDS - 1) continue;
      along_store(&have, first, &from);
      if (viscous) along_store(&flow, first, &flows);
    }
    across_store(&slab[0], &c, &have);
    if (viscous) across_store(&slab[1], &c, &flow);
  }
}

// ---- particles anywhere, and their places on the grid ---------------------------------------------------------------

// Adds to r->fraction_adj, the gradient of the particles' places in their cells, the derivative of sum_k a_k . (value
// N_k + slope grad N_k) by these, a_k the field `around` at the nodes of a stencil. chunk: of the particles.
CQ_RARE void place_adj(const Cells *c, const Around *around, const int32_t chunk, const Real value[CQ_DIM],
                       const Real slope[CQ_DIM][CQ_DIM]) {
  const cq_scene *s = c->s;
  static const real bend[3] = SPLINE_BEND;
  const real dx = (real)s->model->dx, by = (real)(1 / s->model->dx);
  real *out = (real *)s->reference.fraction_adj + AT(chunk, CQ_DIM, 0) + c->h;
  Weights w;
  weights_of(c, chunk, &w);
  for (int k = 0; k < (CQ_DIM == 3 ? 27 : 9); k++) {
    const int at[3] = {CQ_DIM == 3 ? k / 9 : k / 3, CQ_DIM == 3 ? k / 3 % 3 : k % 3, k % 3};
    Real alpha = r_set((real)0), beta[CQ_DIM];
    EACH(j) beta[j] = alpha;
    EACH(i) {
      const Real x = around->at[i][k / 3][k % 3];
      alpha += x * value[i];
      EACH(j) beta[j] += x * slope[i][j];
    }
    EACH(e) {
      // of the weight, then of its slope along each axis
      Real n = alpha;
      EACH(a) {
        if (a == e) n *= dx * w.axis[a].d[at[a]];
        else n *= w.axis[a].w[at[a]];
      }
      EACH(j) {
        Real g = beta[j];
        EACH(a) {
          if (a == e && a == j) g *= by * bend[at[a]];
          else if (a == e) g *= dx * w.axis[a].d[at[a]];
          else if (a == j) g *= w.axis[a].d[at[a]];
          else g *= w.axis[a].w[at[a]];
        }
        n += g;
      }
      add_real(out + e * CQ_CHUNK, n);
    }
  }
}

// (E116) Adjoint of scattered_forces, for a SIMD vector of cells whose particles lie anywhere in them: scatters
// gradients of displacements to slab[0], and, where one is viscous, of velocities to slab[1]; adds to the gradients of
// particles, also of undeformed places if they are wanted. in: the state before the step.
CQ_RARE void scattered_forces_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab slab[2]) {
  const Wanted wanted = wanted_of(s);
  LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Around u, v, force, give_u, give_v;
    around_load(&c, nodes_of(s, in->nodes, U), &u);
    around_load(&c, (const real *)s->reference.force_adj, &force);
    around_clear(&give_u);
    if (cells->viscous) {
      around_load(&c, nodes_of(s, in->nodes, W), &v);
      around_clear(&give_v);
    }
    for (int32_t chunk = cells->chunk; chunk < cells->chunk + cells->chunks; chunk++) {
      if (!is_used(s, chunk, h)) continue;
      const Matter m = matter_at(s, chunk);
      const Point at = {s, &m, chunk, h, cells->kind, one_is_viscous(&m), wanted};
      Weights w;
      Deformed d;
      Real value[CQ_DIM], none[CQ_DIM], slope[CQ_DIM][CQ_DIM];
      Real grad_stretch[CQ_DIM][CQ_DIM], grad_rate[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
      EACH(i) none[i] = r_set((real)0);
      EACH(i) EACH(j) grad_rate[i][j] = r_set((real)0);
      weights_of(&c, chunk, &w);
      field_at(&u, &w, value, slope);
      deform(&at, slope, d.stretch, d.f);
      if (cells->viscous) {
        field_at(&v, &w, value, slope);
        if (is_still(s)) EACH(i) EACH(j) slope[i][j] = r_set((real)0);
        rate_in_space(slope, d.stretch, d.rate);
      }
      field_at(&force, &w, value, slope);
      particle_adj(&at, &d, slope, value, grad_stretch, grad_rate);
      if (cells->viscous) {
        deformed_rate_adj(&at, &d, grad_rate, grad_stretch, back);
        field_give(&give_v, &w, none, back);
        if (wanted.place && !is_still(s)) place_adj(&c, &v, chunk, none, back);
      }
      field_give(&give_u, &w, none, grad_stretch);
      if (!wanted.place) continue;
      place_adj(&c, &u, chunk, none, grad_stretch);
      Real p[CQ_DIM][CQ_DIM];
      piola_again(&at, d.f, d.rate, p);
      given_of(&at, p, slope);
      force_of(&m, h, d.f, value);
      place_adj(&c, &force, chunk, value, slope);
    }
    around_give(&slab[0], &c, &give_u);
    if (cells->viscous) around_give(&slab[1], &c, &give_v);
  }
}

// lattice_forces_adj for the neo-Hookean law without viscosity. Each law that is inlined has a function of its own, and
// all others share one: in one function for all they take a quarter longer in 3D.
CQ_RARE void lattice_neo_hookean_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  lattice_forces_adj(s, in, cells, slab, CQ_MATERIAL_NEO_HOOKEAN, 0);
}
// lattice_forces_adj for the fixed corotated law without viscosity (see lattice_neo_hookean_adj).
CQ_RARE void lattice_corotated_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  lattice_forces_adj(s, in, cells, slab, CQ_MATERIAL_COROTATED, 0);
}
// lattice_forces_adj for the law of linear elasticity without viscosity (see lattice_neo_hookean_adj).
CQ_RARE void lattice_linear_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  lattice_forces_adj(s, in, cells, slab, CQ_MATERIAL_LINEAR, 0);
}
// lattice_forces_adj for all other laws without viscosity, and for cells of several materials.
CQ_RARE void lattice_any_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  lattice_forces_adj(s, in, cells, slab, -1, 0);
}
// lattice_forces_adj for cells where a particle is viscous.
CQ_RARE void lattice_viscous_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  lattice_forces_adj(s, in, cells, slab, cells->kind, 1);
}

// Adjoint of forces_of for a SIMD vector of cells, in the variant that fits its particles, their law, and the gradients
// that are wanted. in: the state before the step; slab: two fields, for gradients of displacements and of velocities.
CQ_INLINE void forces_of_adj(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab slab[2]) {
  const uint64_t rare = cq_bit(CQ_FIELD_POSITION) | cq_bit(CQ_FIELD_DEFORMATION);
  if (!cells->lattice || s->wanted & rare) {
    scattered_forces_adj(s, in, cells, slab);
    return;
  }
  switch (cells->viscous ? -2 : cells->kind) {
    case -2: lattice_viscous_adj(s, in, cells, slab); break;
    case CQ_MATERIAL_NEO_HOOKEAN: lattice_neo_hookean_adj(s, in, cells, slab); break;
    case CQ_MATERIAL_COROTATED: lattice_corotated_adj(s, in, cells, slab); break;
    case CQ_MATERIAL_LINEAR: lattice_linear_adj(s, in, cells, slab); break;
    default: lattice_any_adj(s, in, cells, slab);
  }
}

// (E116) Adjoint of forces for a range of cells: from r->force_adj, sets the range's slab (scatter buffer) to the
// gradients of displacements and, with given 2, of velocities. in: the state before the step.
static void forces_adj(cq_scene *s, const cq_slice *in, int32_t range, int32_t given) {
  const cq_reference *r = &s->reference;
  const Slab slab[2] = {slab_at(s, range, 0), slab_at(s, range, 1)};
  slab_clear(s, range, given);
  for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) forces_of_adj(s, in, &r->cells[k], slab);
}

// ---- readouts -------------------------------------------------------------------------------------------------------

// Adjoint of observe for a range of cells: from the gradients of particles that readouts have left in s->adj, sets the
// range's slab (scatter buffer) to those of displacements and velocities of nodes; clears them in s->adj. in: the state
// read.
static void observe_adj(cq_scene *s, const cq_slice *in, int32_t range) {
  const cq_reference *r = &s->reference;
  const Slab slab[2] = {slab_at(s, range, 0), slab_at(s, range, 1)};
  const Wanted wanted = wanted_of(s);
  slab_clear(s, range, 2);
  for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) LANES_EACH(h) {
    if (!has_any(&r->cells[k], h)) continue;
    const Cells c = cells_of(s, &r->cells[k], h);
    Around u, v, give_u, give_v;
    around_load(&c, nodes_of(s, in->nodes, U), &u);
    around_load(&c, nodes_of(s, in->nodes, W), &v);
    around_clear(&give_u);
    around_clear(&give_v);
    for (int32_t chunk = r->cells[k].chunk; chunk < r->cells[k].chunk + r->cells[k].chunks; chunk++) {
      if (!is_used(s, chunk, h)) continue;
      real *from = (real *)s->adj + AT(chunk, FIELDS, 0);
      const Matter m = matter_at(s, chunk);
      const Point at = {s, &m, chunk, h, -1, 0, wanted};
      Weights w;
      Real value[CQ_DIM], slope[CQ_DIM][CQ_DIM], stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM];
      Real rate[CQ_DIM][CQ_DIM], grad[CQ_DIM][CQ_DIM], grad_stretch[CQ_DIM][CQ_DIM], back[CQ_DIM][CQ_DIM];
      weights_of(&c, chunk, &w);
      field_at(&u, &w, value, slope);
      deform(&at, slope, stretch, f);
      field_at(&v, &w, value, slope);
      rate_in_space(slope, stretch, rate);
      load_matrix(from, F, h, grad);
      deform_adj(&at, stretch, grad, grad_stretch);
      load_matrix(from, C, h, grad);
      rate_in_space_adj(stretch, rate, grad, back, grad_stretch);
      load_vector(from, X, h, value);
      field_give(&give_u, &w, value, grad_stretch);
      if (wanted.place) {
        place_adj(&c, &u, chunk, value, grad_stretch);
        real *place = (real *)r->place_adj + AT(chunk, CQ_DIM, 0) + h;
        EACH(i) add_real(place + i * CQ_CHUNK, value[i]);
      }
      load_vector(from, V, h, value);
      field_give(&give_v, &w, value, back);
      if (wanted.place) place_adj(&c, &v, chunk, value, back);
    }
    around_give(&slab[0], &c, &give_u);
    around_give(&slab[1], &c, &give_v);
  }
  for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++)
    memset((real *)s->adj + AT(r->cells[k].chunk, FIELDS, 0), 0,
           sizeof(real) * FIELDS * CQ_CHUNK * (size_t)r->cells[k].chunks);
}

// Multiplies r->adj, the adjoint of the nodes' displacements and velocities, by a factor, as the user asks between
// control steps; 0 also removes what is not finite.
static void discount(cq_scene *s, double factor) {
  real *adj = (real *)s->reference.adj;
  for (int64_t k = 0; k < 2 * CQ_DIM * s->reference.node_count; k++)
    adj[k] = factor == 0 ? (real)0 : adj[k] * (real)factor;
}

// The sum of squares of r->adj, the adjoint of the nodes' displacements and velocities.
static double square(const cq_scene *s) {
  const real *adj = (const real *)s->reference.adj;
  double sum = 0;
  for (int64_t k = 0; k < 2 * CQ_DIM * s->reference.node_count; k++)
    sum += (double)s_value(adj[k]) * (double)s_value(adj[k]);
  return sum;
}

// At the end of the backward pass: adds to the gradients of volumes of a range's particles the part by constants c of
// fused (inlined) laws, in which P is linear: V dL/dV = sum c dL/dc. Actuation has added its part at each step.
static void volume_adj(cq_scene *s, int32_t range) {
  const cq_reference *r = &s->reference;
  const Wanted wanted = wanted_of(s);
  for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) {
    const cq_cells *cells = &r->cells[k];
    for (int32_t chunk = cells->chunk; cells->kind >= 0 && chunk < cells->chunk + cells->chunks; chunk++) {
      const Matter m = matter_at(s, chunk);
      const real *constants = (const real *)s->params_adj + AT(chunk, s->params, CQ_PARAM_SLOTS);
      LANES_EACH(h) {
        const Point at = {s, &m, chunk, h, cells->kind, one_is_viscous(&m), wanted};
        Real along = r_set((real)0);
        for (int q = 0; q < FUSED_SLOTS + at.viscous; q++)
          along += param(&m, CQ_PARAM_SLOTS + q, h) * r_load(constants + q * CQ_CHUNK + h);
        add_to_volume(&at, along);
      }
    }
  }
}

// ---- the first state ------------------------------------------------------------------------------------------------

// Adjoint of give_mass, the first scatter of mass and momentum to nodes (E110, E111), for one particle with the stencil
// p: adds to its gradients of position, velocity, C and mass, and to `origin`, that of the place of its grid. Position
// also gets what steps have left in r->fraction_adj and r->place_adj.
static void give_mass_adj(cq_scene *s, const Placed *p, const int64_t particle, double origin[CQ_DIM]) {
  const cq_reference *r = &s->reference;
  cq_gradients *g = &s->gradients;
  const double m = s->values.mass[particle], *v = s->values.velocity + particle * CQ_DIM,
               *c = s->values.affine + particle * CQ_DIM * CQ_DIM;
  double by_place[CQ_DIM] = {0}, by_fraction[CQ_DIM] = {0};
  for (int k = 0; k < TOUCHED; k++) {
    const int64_t node = placed_node(p, k);
    const double weight = (double)placed_weight(p, k), inverse = (double)((const real *)r->inverse)[node];
    double by_share = (double)((const real *)r->mass_adj)[node], arm[CQ_DIM];
    EACH(j)
      arm[j] = (double)nodes_of(s, r->rest, j)[node] - (double)*slot_at((real *)r->place, CQ_DIM, p->slot, j);
    EACH(i) {
      const double back = inverse * (double)nodes_of(s, r->adj, W + i)[node];
      double q = v[i];
      EACH(j) q += c[i * CQ_DIM + j] * arm[j];
      by_share += back * q;
      g->velocity[particle * CQ_DIM + i] += weight * m * back;
      EACH(j) {
        g->affine[(particle * CQ_DIM + i) * CQ_DIM + j] += weight * m * back * arm[j];
        by_place[j] -= weight * m * back * c[i * CQ_DIM + j];
        origin[j] += weight * m * back * c[i * CQ_DIM + j];
      }
    }
    g->mass[particle] += weight * by_share;
    EACH(e) by_fraction[e] += m * by_share * placed_slope(s, p, k, e);
  }
  EACH(e) {
    by_fraction[e] += (double)*slot_at((real *)r->fraction_adj, CQ_DIM, p->slot, e);
    by_place[e] += (double)*slot_at((real *)r->place_adj, CQ_DIM, p->slot, e);
    g->position[particle * CQ_DIM + e] += by_place[e] + by_fraction[e] / s->model->dx;
    origin[e] -= by_fraction[e] / s->model->dx;
  }
}

// At the end of the backward pass, at the first state: turns the adjoint of the nodes into the user's gradients of
// position, velocity, C, F and mass. Grids move with the mean position of their particles.
static void complete(cq_scene *s) {
  cq_reference *r = &s->reference;
  cq_gradients *g = &s->gradients;
  for (int64_t k = 0; k < r->node_count; k++) {
    real *to = (real *)r->mass_adj + k;
    EACH(i)
      *to -= ((const real *)r->inverse)[k] * nodes_of(s, r->adj, W + i)[k] * nodes_of(s, s->live->nodes, W + i)[k];
  }
  for (int32_t b = 0; b < r->body_count; b++) {
    double origin[CQ_DIM] = {0};
    const int64_t end = b + 1 < r->body_count ? r->bodies[b + 1].first : r->node_count;
    for (int64_t k = r->bodies[b].first; k < end; k++)
      EACH(i) origin[i] += (double)nodes_of(s, r->rest_adj, i)[k];
    for (int32_t k = 0; k < r->cells_count; k++) {
      const cq_cells *cells = &r->cells[k];
      for (int32_t slot = cells->chunk * CQ_CHUNK; slot < (cells->chunk + cells->chunks) * CQ_CHUNK; slot++) {
        const int64_t particle = r->order[slot];
        if (particle < 0 || cells->body != b) continue;
        const Placed p = placed_at(s, cells, slot);
        give_mass_adj(s, &p, particle, origin);
        for (int i = 0; i < CQ_DIM * CQ_DIM; i++)
          g->deformation[particle * CQ_DIM * CQ_DIM + i] +=
              (double)*slot_at((real *)r->start_adj, CQ_DIM * CQ_DIM, slot, i);
      }
    }
    for (int64_t p = 0; p < s->model->particle_count; p++)
      if (r->body_of[p] == b)
        EACH(i) g->position[p * CQ_DIM + i] += origin[i] / (double)r->bodies[b].particles;
  }
}
