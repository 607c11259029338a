// force: from the displacements of nodes to F of particles, their stress, and the forces on nodes:
//   F = (I + sum u (x) grad N) F0,  f = -sum V P(F) F0^T grad N + sum N force                      (E112, E113)
// Particles of a lattice have the same weights in all cells; particles anywhere have their own (stencil.inl).

// backward: which gradients of particles are wanted: of constants, volume, F0, and place
typedef struct {
  int constants, volume, start, place;
} Wanted;

#define NONE_WANTED {0, 0, 0, 0}   // of a point forward

// CQ_LANES particles of a chunk, from lane h on. kind: a fused law that all have, -1: any; viscous: it has a viscosity
typedef struct {
  const cq_scene *s;
  const Matter *m;
  int32_t chunk;
  int h, kind, viscous;
  Wanted wanted;
} Point;

// Is a chunk of one material only, and this viscous? 0 no, else yes.
CQ_INLINE int one_is_viscous(const Matter *m) { return m->only && m->only->viscous; }

// How particles are deformed: I + sum u (x) grad N, F, and C where it is wanted.
typedef struct {
  Real stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM];
} Deformed;

// (E112) Sets stretch to I + sum u (x) grad N of particles p->h, ..., and f to F = stretch F0. slope: sum u (x) grad N.
// Lanes without a particle have the identity, for the nodes around them may be anywhere.
CQ_INLINE void deform(const Point *p, const Real slope[CQ_DIM][CQ_DIM], Real stretch[CQ_DIM][CQ_DIM],
                      Real f[CQ_DIM][CQ_DIM]) {
  const Real volume = param(p->m, CQ_PARAM_VOLUME, p->h);
  EACH(i) EACH(j) stretch[i][j] = r_pick(volume, slope[i][j], r_set((real)0)) + (real)(i == j);
  EACH(i) EACH(j) f[i][j] = stretch[i][j];
  if (!p->s->reference.started) return;
  Real start[CQ_DIM][CQ_DIM];
  load_matrix((const real *)p->s->reference.start + AT(p->chunk, CQ_DIM * CQ_DIM, 0), 0, p->h, start);
  mat_mul(stretch, start, f);
}

// (E132) The time within a step over which velocities lead to the displacements that F is computed from: in implicit
// steps that of the solve; 0 in explicit ones, where velocities and displacements are of one state.
CQ_INLINE real span_of_steps(const cq_scene *s) {
  return cq_is_implicit(s->model) ? (real)cq_solve_seconds(s->model) : (real)0;
}

// Are steps implicit and without inertia? 1 yes: nothing is viscous, and velocities count as 0 for the rate; 0 no.
CQ_INLINE int is_still(const cq_scene *s) { return cq_is_implicit(s->model) && s->model->integrator.statics; }

// Sets at to the input of any law at particles p->h, ...: F, constants, and the rate if the law is viscous.
CQ_INLINE void point_at(const Point *p, const cq_material *law, const Real f[CQ_DIM][CQ_DIM],
                        const Real rate[CQ_DIM][CQ_DIM], MaterialPoint *at) {
  at->law = law;
  at->dt = (real)p->s->model->dt;
  for (int k = 0; k < p->s->model->slot_count; k++) *material_slot(law, at, k) = param(p->m, CQ_PARAM_SLOTS + k, p->h);
  EACH(i) EACH(j) at->f[i][j] = f[i][j];
  if (law->viscous) EACH(i) EACH(j) at->rate[i][j] = rate[i][j];
}

// Sets p to the first Piola-Kirchhoff stress P of particles at->h, ..., each of its material, without actuation. rate:
// C, read where one is viscous.
CQ_RARE void piola_of_any(const Point *at, const Real f[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                          Real p[CQ_DIM][CQ_DIM]) {
  const Matter *m = at->m;
  EACH(i) EACH(j) p[i][j] = r_set((real)0);
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    const cq_material *law = &m->model->materials[k];
    MaterialPoint point;
    Real part[CQ_DIM][CQ_DIM];
    point_at(at, law, f, rate, &point);
    piola_of_law(&point, span_of_steps(at->s), part);
    const Real mine = is_material(m, k, at->h);
    EACH(i) EACH(j) p[i][j] = r_pick(mine, part[i][j], p[i][j]);
  }
}

// Sets sigma to the actuation stress of particles h, h + 1, ... of a chunk, packed as a symmetric matrix (sym_at).
CQ_INLINE void load_sigma(const Matter *m, const int h, Real sigma[CQ_SYM]) {
  CQ_UNROLL for (int k = 0; k < CQ_SYM; k++) sigma[k] = r_load(m->actuation + (SIGMA + k) * CQ_CHUNK + h);
}

// Sets at to the input of the one law of a chunk, which has a fused form, at particles p->h, ...: F, constants, and the
// rate if it is viscous.
CQ_INLINE void fused_point_at(const Point *p, const Real f[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                              MaterialPoint *at) {
  const int first = CQ_PARAM_SLOTS + p->viscous;    // the viscosity comes before the constants of the law
  at->law = p->m->only;
  CQ_UNROLL for (int k = 0; k < FUSED_SLOTS; k++) at->c[k] = param(p->m, first + k, p->h);
  EACH(i) EACH(j) at->f[i][j] = f[i][j];
  EACH(i) EACH(j) at->rate[i][j] = r_set((real)0);
  if (!p->viscous) return;
  at->extra[0] = param(p->m, CQ_PARAM_SLOTS, p->h);
  EACH(i) EACH(j) at->rate[i][j] = rate[i][j];
}

// (E113) Sets p to the first Piola-Kirchhoff stress P of particles at->h, ..., with actuation, by the law at->kind, -1:
// any. rate: C, read where a law is viscous.
CQ_INLINE void piola_of(const Point *at, const Real f[CQ_DIM][CQ_DIM], const Real rate[CQ_DIM][CQ_DIM],
                        Real p[CQ_DIM][CQ_DIM]) {
  if (at->kind < 0) {
    piola_of_any(at, f, rate, p);
  } else {
    MaterialPoint point;
    fused_point_at(at, f, rate, &point);
    material_piola_of(at->kind, &point, p);
    if (at->viscous) viscous_piola(&point, span_of_steps(at->s), p);
  }
  if (!at->m->actuation) return;
  Real sigma[CQ_SYM];
  load_sigma(at->m, at->h, sigma);
  actuation_piola(f, sigma, p);
}

// (E113) Sets out to -V P F0^T of particles at->h, ..., p their P: grad N times it is their force on a node.
CQ_INLINE void given_of(const Point *at, const Real p[CQ_DIM][CQ_DIM], Real out[CQ_DIM][CQ_DIM]) {
  const Real by = (real)0 - param(at->m, CQ_PARAM_VOLUME, at->h);
  EACH(i) EACH(j) out[i][j] = by * p[i][j];
  if (!at->s->reference.started) return;
  Real start[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  load_matrix((const real *)at->s->reference.start + AT(at->chunk, CQ_DIM * CQ_DIM, 0), 0, at->h, start);
  mat_mul_nt(out, start, t);
  EACH(i) EACH(j) out[i][j] = t[i][j];
}

// (E113) Scatters the forces of a SIMD vector of cells to a slab (scatter buffer), where particles are a lattice, two
// along each axis of a cell; returns the smallest det F in each lane, at most 1. viscous: 1, velocities are read too.
// in: the state before the step. One loop for all laws is as quick as one for each.
CQ_INLINE Real lattice_forces_of(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab,
                                 const int viscous) {
  const real *u = nodes_of(s, in->nodes, U), factor = slope_factor(s);
  Real smallest = r_set((real)1);
  LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Across have, flow;
    Along from, flows;
    across_load(&c, u, &have);
    if (viscous) across_load(&c, nodes_of(s, in->nodes, W), &flow);
    CQ_ROLL for (int q = 0; q < 2 * SECONDS; q++) {
      const int first = q / SECONDS, second = q % SECONDS;
      Real slope[2][CQ_DIM][CQ_DIM], speed[2][CQ_DIM][CQ_DIM], force[2][CQ_DIM];
      CQ_UNROLL for (int last = 0; last < 2; last++) EACH(i) force[last][i] = r_set((real)0);
      if (second == 0) {
        along_load(&have, first, &from);
        if (viscous) along_load(&flow, first, &flows);
      }
      slopes_at(&from, second, factor, slope);
      if (viscous) slopes_at(&flows, second, factor, speed);
      CQ_UNROLL for (int last = 0; last < 2; last++) {
        const int32_t chunk = cells->chunk + 2 * q + last;
        const Matter m = matter_at(s, chunk);
        const Point at = {s, &m, chunk, h, cells->kind, viscous && one_is_viscous(&m), NONE_WANTED};
        Real stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM], rate[CQ_DIM][CQ_DIM];
        deform(&at, slope[last], stretch, f);
        if (viscous) rate_in_space(speed[last], stretch, rate);
        piola_of(&at, f, viscous ? rate : NULL, p);
        const Real jac = mat_det(f);
        smallest = r_pick(smallest - jac, jac, smallest);
        given_of(&at, p, slope[last]);
        if (cells->forced) force_of(&m, h, f, force[last]);
      }
      slopes_give(&from, second, factor, slope);
      if (cells->forced) values_give(&from, second, force);
      if (second == SECONDS - 1) along_store(&have, first, &from);
    }
    across_store(slab, &c, &have);
  }
  return smallest;
}
// lattice_forces_of for cells without a viscous particle; its result is the smallest det F in each lane, at most 1.
CQ_RARE Real lattice_forces(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  return lattice_forces_of(s, in, cells, slab, 0);
}
// lattice_forces_of for cells with a viscous particle; its result is the smallest det F in each lane, at most 1.
CQ_RARE Real lattice_forces_viscous(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  return lattice_forces_of(s, in, cells, slab, 1);
}

// (E113) Scatters the forces of a SIMD vector of cells, with particles anywhere in them and of any law, to a slab
// (scatter buffer); returns the smallest det F in each lane, at most 1. One function for all laws: the gather costs
// more than the choice of a law. in: the state before the step.
CQ_RARE Real scattered_forces(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
  Real smallest = r_set((real)1);
  LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Around u, v, given;
    around_load(&c, nodes_of(s, in->nodes, U), &u);
    if (cells->viscous) around_load(&c, nodes_of(s, in->nodes, W), &v);
    around_clear(&given);
    for (int32_t chunk = cells->chunk; chunk < cells->chunk + cells->chunks; chunk++) {
      if (!is_used(s, chunk, h)) continue;
      const Matter m = matter_at(s, chunk);
      const Point at = {s, &m, chunk, h, cells->kind, one_is_viscous(&m), NONE_WANTED};
      Weights w;
      Real value[CQ_DIM], slope[CQ_DIM][CQ_DIM], stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM];
      Real rate[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM];
      weights_of(&c, chunk, &w);
      field_at(&u, &w, value, slope);
      deform(&at, slope, stretch, f);
      if (cells->viscous) {
        field_at(&v, &w, value, slope);
        rate_in_space(slope, stretch, rate);
      }
      piola_of(&at, f, rate, p);
      const Real jac = mat_det(f);
      smallest = r_pick(smallest - jac, jac, smallest);
      given_of(&at, p, slope);
      force_of(&m, h, f, value);
      field_give(&given, &w, value, slope);
    }
    around_give(slab, &c, &given);
  }
  return smallest;
}

// Scatters the forces of a SIMD vector of cells to a slab (scatter buffer), in the variant that fits its particles;
// returns the smallest det F in each lane, at most 1. in: the state before the step.
CQ_INLINE Real forces_of(cq_scene *s, const cq_slice *in, const cq_cells *cells, const Slab *slab) {
#if defined(CQ_REAL_DUAL)   // the constant weights of a lattice have no slope by places
  return scattered_forces(s, in, cells, slab);
#else
  if (!cells->lattice) return scattered_forces(s, in, cells, slab);
  return cells->viscous ? lattice_forces_viscous(s, in, cells, slab) : lattice_forces(s, in, cells, slab);
#endif
}

// (E113) Sets the slab (scatter buffer) of a range of cells to the forces of their particles on the nodes, in the state
// `in`. found->bad: 1 if a particle is inverted, else 0.
static void forces(cq_scene *s, const cq_slice *in, int32_t range, cq_found *found) {
  const cq_reference *r = &s->reference;
  const Slab slab = slab_at(s, range, 0);
  Real smallest = r_set((real)1);
  slab_clear(s, range, 1);
  for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) {
    const Real jac = forces_of(s, in, &r->cells[k], &slab);
    smallest = r_pick(smallest - jac, jac, smallest);
  }
  found->bad = !(r_smallest(smallest) > 0);
}
