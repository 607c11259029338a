// implicit: the loops over particles of implicit steps on reference grids (E125 to E127). F^ is that of the
// displacements u + seconds v, to which spread has set r->moved for a vector v; the rest of the method is ../implicit.

// the vectors of cells of a range, and then their chunks
#define CELLS_EACH(s, range, cells)                                                                                    \
  for (const cq_cells *cells = (s)->reference.cells + (s)->reference.cells_start[range],                               \
                      *stop_ = (s)->reference.cells + (s)->reference.cells_start[(range) + 1];                         \
       cells < stop_; cells++)
#define CHUNKS_OF(cells, chunk) for (int32_t chunk = (cells)->chunk; chunk < (cells)->chunk + (cells)->chunks; chunk++)

// The time over which the solve moves nodes: dt for backward Euler, dt / 2 for the midpoint rule.
CQ_INLINE real solve_seconds(const cq_scene *s) { return (real)cq_solve_seconds(s->model); }

// Sets u, at the nodes around cells, to the displacements in r->moved, where the method's velocities lead.
CQ_INLINE void moved_load(const Cells *c, Around *u) {
  around_load(c, nodes_of(c->s, c->s->reference.moved->nodes, U), u);
}

// Sets stretch to I + sum u (x) grad N of particles at->h, ..., and f to F = stretch F0, by the displacements u of the
// nodes around them and their weights w.
CQ_INLINE void deform_by(const Point *at, const Around *u, const Weights *w, Real stretch[CQ_DIM][CQ_DIM],
                         Real f[CQ_DIM][CQ_DIM]) {
  Real value[CQ_DIM], slope[CQ_DIM][CQ_DIM];
  field_at(u, w, value, slope);
  deform(at, slope, stretch, f);
}

// (E132) Is a particle of these cells viscous in implicit steps? 1 yes, 0 no: without inertia none is.
CQ_INLINE int flows_in(const cq_scene *s, const cq_cells *cells) { return cells->viscous && !is_still(s); }

// Sets slope to the gradient, by undeformed places, of the velocities v at the nodes around particles at->h, ..., with
// their weights w; 0 in lanes without a particle.
CQ_INLINE void speed_of(const Point *at, const Around *v, const Weights *w, Real slope[CQ_DIM][CQ_DIM]) {
  const Real volume = param(at->m, CQ_PARAM_VOLUME, at->h);
  Real value[CQ_DIM];
  field_at(v, w, value, slope);
  EACH(i) EACH(j) slope[i][j] = r_pick(volume, slope[i][j], r_set((real)0));
}

// (E132) Adds the viscosity of particles at->h, ... at the end of the span to their stress p (P) and energy density
// psi. speed: the gradient of velocities by undeformed places; stretch, f: of deform.
CQ_RARE void end_viscous_of(const Point *at, const Real speed[CQ_DIM][CQ_DIM], const Real stretch[CQ_DIM][CQ_DIM],
                            const Real f[CQ_DIM][CQ_DIM], Real p[CQ_DIM][CQ_DIM], Real *psi) {
  const Matter *m = at->m;
  const real span = span_of_steps(at->s);
  Real rate[CQ_DIM][CQ_DIM];
  rate_in_space(speed, stretch, rate);
  for (int k = 0; m->materials >> k; k++) {
    const cq_material *law = &m->model->materials[k];
    if (!(m->materials >> k & 1) || !law->viscous) continue;
    MaterialPoint point;
    Real part[CQ_DIM][CQ_DIM];
    point_at(at, law, f, rate, &point);
    EACH(i) EACH(j) part[i][j] = r_set((real)0);
    viscous_piola(&point, span, part);
    const Real potential = span_potential(&point, span), mine = m->only ? r_set((real)1) : is_material(m, k, at->h);
    EACH(i) EACH(j) p[i][j] += r_pick(mine, part[i][j], r_set((real)0));
    *psi += r_pick(mine, potential, r_set((real)0));
  }
}

// The viscosity of particles h, h + 1, ... of a chunk, 0 where they have none.
CQ_INLINE Real viscosity_of(const Matter *m, const int h) {
  Real out = r_set((real)0);
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1) || !m->model->materials[k].viscous) continue;
    const Real eta = param(m, CQ_PARAM_SLOTS, h), mine = m->only ? r_set((real)1) : is_material(m, k, h);
    out = r_pick(mine, eta, out);
  }
  return out;
}

// (E132) Adds to the tensors t of particles at->h, ... the part of the viscosity, X -> dP F0^T for a change X of the
// stretch, by Z = (I + sum u (x) grad N)^-1 of the state before the step. speed, stretch: see end_viscous_of; start:
// F0.
CQ_RARE void end_viscous_tensor(const Point *at, const Real speed[CQ_DIM][CQ_DIM], const Real stretch[CQ_DIM][CQ_DIM],
                                const Real start[CQ_DIM][CQ_DIM], Real t[TENSOR]) {
  const real span = span_of_steps(at->s), by = (real)1 / span;
  Real before[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM], l[CQ_DIM][CQ_DIM], g[CQ_DIM][CQ_DIM], d[CQ_DIM][CQ_DIM];
  Real ll[CQ_DIM][CQ_DIM], shape[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) before[i][j] = stretch[i][j] - span * speed[i][j];
  mat_cofactor(before, cof);
  const Real inverse = (real)1 / mat_det_of(before, cof), size = (real)2 * viscosity_of(at->m, at->h) * mat_det(start);
  mat_mul_nt(speed, cof, l);
  EACH(i) EACH(j) l[i][j] *= inverse;
  mat_mul_tn(l, l, ll);
  EACH(i) EACH(j) {
    g[i][j] = (real)(i == j) + span * l[i][j];
    d[i][j] = l[i][j] + (real)0.5 * span * ll[i][j];
  }
  viscous_rate(d, shape);
  for (int column = 0; column < MATRIX; column++) {
    const int row = column / CQ_DIM, of = column % CQ_DIM;
    Real y[CQ_DIM][CQ_DIM], more[CQ_DIM][CQ_DIM], out[CQ_DIM][CQ_DIM];
    // Y = X Z, of which one row is not 0; Z is cof(before)^T / det(before)
    EACH(i) EACH(j) y[i][j] = r_set((real)0);
    EACH(j) y[row][j] = inverse * cof[j][of];
    mat_mul_tn(g, y, more);
    EACH(i) EACH(j) more[i][j] *= by;
    viscous_rate(more, d);
    mat_mul(g, d, more);
    mat_mul(y, shape, out);
    EACH(i) EACH(j) more[i][j] += out[i][j];
    mat_mul(more, cof, out);
    for (int k = column; k < MATRIX; k++) t[tensor_at(k, column)] += size * out[k / CQ_DIM][k % CQ_DIM];
  }
}

// (E125) Sets the slab (scatter buffer) of a range to the impulses, at the nodes, of forces that do not change within
// the solve. in and at, which the same loop of the spatial grid needs, are not read.
static void solve_momentum(cq_scene *s, const cq_slice *in, int32_t range, int32_t at) {
  const real seconds = solve_seconds(s);
  const Slab slab = slab_at(s, range, 0);
  (void)in, (void)at;
  slab_clear(s, range, 1);
  CELLS_EACH(s, range, cells) LANES_EACH(h) {
    if (!cells->forced || !has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Around given;
    around_clear(&given);
    CHUNKS_OF(cells, chunk) {
      const Matter m = matter_at(s, chunk);
      Weights w;
      Real force[CQ_DIM], none[CQ_DIM][CQ_DIM], still[CQ_DIM][CQ_DIM];
      EACH(i) EACH(j) {
        none[i][j] = r_set((real)0);
        still[i][j] = r_set((real)(i == j));
      }
      weights_of(&c, chunk, &w);
      force_of(&m, h, still, force);   // pressure of open surfaces, which asks for F, is refused by the model
      EACH(i) force[i] = seconds * force[i];
      field_give(&given, &w, force, none);
    }
    around_give(&slab, &c, &given);
  }
}

// (E125) For the vector that r->moved is set from, over a range: adds the particles' strain energy to
// sum[CQ_SUM_ENERGY] and how many are inverted to sum[CQ_SUM_INVERTED]; sets the range's slab to -h V P F0^T grad N, h
// the solve's time, at the nodes. in and at are not read.
static void solve_evaluate(cq_scene *s, const cq_slice *in, int32_t range, int32_t at, double *sum) {
  const real seconds = solve_seconds(s);
  const Slab slab = slab_at(s, range, 0);
  double energy = 0, inverted = 0;
  (void)in, (void)at;
  slab_clear(s, range, 1);
  CELLS_EACH(s, range, cells) LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    const int flows = flows_in(s, cells);
    Around u, v, given;
    moved_load(&c, &u);
    if (flows) around_load(&c, nodes_of(s, s->reference.moved->nodes, W), &v);
    around_clear(&given);
    CHUNKS_OF(cells, chunk) {
      if (!is_used(s, chunk, h)) continue;
      const Matter m = matter_at(s, chunk);
      const Point point = {s, &m, chunk, h, -1, 0, NONE_WANTED};
      const Real volume = param(&m, CQ_PARAM_VOLUME, h);
      Weights w;
      Real stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM], none[CQ_DIM], psi;
      weights_of(&c, chunk, &w);
      deform_by(&point, &u, &w, stretch, f);
      end_stress_of(&m, h, f, p, &psi);
      if (flows) {
        Real speed[CQ_DIM][CQ_DIM];
        speed_of(&point, &v, &w, speed);
        end_viscous_of(&point, speed, stretch, f, p, &psi);
      }
      energy += lanes_total(volume * psi);
      inverted += lanes_total(r_pick(mat_det(f), r_set((real)0), r_set((real)1)));
      given_of(&point, p, f);
      EACH(i) none[i] = r_set((real)0);
      EACH(i) EACH(j) f[i][j] = seconds * f[i][j];
      field_give(&given, &w, none, f);
    }
    around_give(&slab, &c, &given);
  }
  sum[CQ_SUM_ENERGY] += energy;
  sum[CQ_SUM_INVERTED] += inverted;
}

// (E127) Sets s->implicit.tensor of a range's particles: h^2 V, h the solve's time, times the derivative of P F0^T by
// the gradient of displacements. Adds volume times stiffness to sum[CQ_SUM_STIFFNESS], for the rounding of the
// potential.
static void solve_tensors(cq_scene *s, const cq_slice *in, int32_t range, double *sum) {
  const real seconds = solve_seconds(s);
  double stiffness = 0;
  (void)in;
  CELLS_EACH(s, range, cells) LANES_EACH(h) {
    const Cells c = cells_of(s, cells, h);
    const int flows = flows_in(s, cells);
    Around u, v;
    moved_load(&c, &u);
    if (flows) around_load(&c, nodes_of(s, s->reference.moved->nodes, W), &v);
    CHUNKS_OF(cells, chunk) {
      const Matter m = matter_at(s, chunk);
      const Point point = {s, &m, chunk, h, -1, 0, NONE_WANTED};
      const Real scale = seconds * seconds * param(&m, CQ_PARAM_VOLUME, h);
      real *tensor = (real *)s->implicit.tensor + AT(chunk, TENSOR, 0);
      Weights w;
      Real stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], t[TENSOR], trace = r_set((real)0);
      weights_of(&c, chunk, &w);
      deform_by(&point, &u, &w, stretch, f);
      EACH(i) EACH(j) f[i][j] = r_set((real)(i == j));
      if (s->reference.started)
        load_matrix((const real *)s->reference.start + AT(chunk, CQ_DIM * CQ_DIM, 0), 0, h, f);
      tensor_of(&m, h, stretch, f, t);
      if (flows) {
        Real speed[CQ_DIM][CQ_DIM];
        speed_of(&point, &v, &w, speed);
        end_viscous_tensor(&point, speed, stretch, f, t);
      }
      for (int k = 0; k < TENSOR; k++) r_store(tensor + k * CQ_CHUNK + h, scale * t[k]);
      for (int k = 0; k < MATRIX; k++) trace += scale * r_abs(t[tensor_at(k, k)]);
      stiffness += lanes_total(trace);
    }
  }
  sum[CQ_SUM_STIFFNESS] += stiffness / (MATRIX * cq_solve_seconds(s->model) * cq_solve_seconds(s->model));
}

// Returns the weight N of node k, 0 to 3^dim - 1, last axis fastest, of the particles' stencils, by their weights w
// along the axes; sets slope to grad N [1/length].
CQ_INLINE Real weight_at(const Weights *w, const int k, Real slope[CQ_DIM]) {
  const int at[3] = {CQ_DIM == 3 ? k / 9 : k / 3, CQ_DIM == 3 ? k / 3 % 3 : k % 3, k % 3};
  Real n = w->axis[0].w[at[0]];
  CQ_UNROLL for (int a = 1; a < CQ_DIM; a++) n *= w->axis[a].w[at[a]];
  EACH(j) {
    slope[j] = j == 0 ? w->axis[0].d[at[0]] : w->axis[0].w[at[0]];
    CQ_UNROLL for (int a = 1; a < CQ_DIM; a++) slope[j] *= a == j ? w->axis[a].d[at[a]] : w->axis[a].w[at[a]];
  }
  return n;
}

// (E85) Sets the slab (scatter buffer) of a range to part `part` of the nodes' diagonal blocks of the Hessian H, from
// its particles: the three entries (diagonal_entry), and as a fourth number the rounding error of the node's forces.
// They fill the components of its two vector fields one after another.
static void solve_diagonal(cq_scene *s, const cq_slice *in, int32_t range, int32_t part) {
  const Slab slab[2] = {slab_at(s, range, 0), slab_at(s, range, 1)};
  const real rounds = (real)(2 / (s->model->dx * MATRIX * cq_solve_seconds(s->model)));
  (void)in;
  slab_clear(s, range, 2);
  CELLS_EACH(s, range, cells) LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Around first, second;   // entries 0 to dim - 1, and the others
    around_clear(&first);
    around_clear(&second);
    CHUNKS_OF(cells, chunk) {
      if (!is_used(s, chunk, h)) continue;
      const real *tensor = tensor_of_chunk(s, chunk) + h;
      Weights w;
      Real trace = r_set((real)0);
      weights_of(&c, chunk, &w);
      for (int k = 0; k < MATRIX; k++) trace += r_load(tensor + tensor_at(k, k) * CQ_CHUNK);
      for (int k = 0; k < TOUCHED; k++) {
        Real slope[CQ_DIM], give[4];
        give[3] = rounds * r_abs(trace) * weight_at(&w, k, slope);
        for (int e = 0; e < 3; e++) {
          const int a = diagonal_entry[part][e][0], b = diagonal_entry[part][e][1];
          give[e] = r_set((real)0);
          EACH(j) EACH(l)
            give[e] += slope[j] * slope[l] * r_load(tensor + tensor_at(a * CQ_DIM + j, b * CQ_DIM + l) * CQ_CHUNK);
        }
        for (int e = 0; e < 4; e++)
          (e < CQ_DIM ? &first : &second)->at[e % CQ_DIM][k / 3][k % 3] += give[e];
      }
    }
    around_give(&slab[0], &c, &first);
    around_give(&slab[1], &c, &second);
  }
}

// (E84) Sets the slab (scatter buffer) of a range to the product, at the nodes, of its particles' tensors with the
// vector that r->moved is set from. in and from are not read.
static void solve_product(cq_scene *s, const cq_slice *in, int32_t range, int32_t from) {
  const Slab slab = slab_at(s, range, 0);
  (void)in, (void)from;
  slab_clear(s, range, 1);
  CELLS_EACH(s, range, cells) LANES_EACH(h) {
    if (!has_any(cells, h)) continue;
    const Cells c = cells_of(s, cells, h);
    Around v, given;
    around_load(&c, nodes_of(s, s->reference.moved->nodes, W), &v);
    around_clear(&given);
    CHUNKS_OF(cells, chunk) {
      if (!is_used(s, chunk, h)) continue;
      Weights w;
      Real value[CQ_DIM], slope[CQ_DIM][CQ_DIM], out[CQ_DIM][CQ_DIM];
      weights_of(&c, chunk, &w);
      field_at(&v, &w, value, slope);
      tensor_multiply(tensor_of_chunk(s, chunk), h, slope, out);
      EACH(i) value[i] = r_set((real)0);
      field_give(&given, &w, value, out);
    }
    around_give(&slab, &c, &given);
  }
}

#if !defined(CQ_REAL_DUAL)

enum { SIDE = 5, OFFSETS = CQ_DIM == 3 ? 63 : 13 };

// The offset from node a to node b of a particle's stencil (0 to 3^dim - 1, last axis fastest) as the factor's matrix
// numbers it: 0 for a itself, then through a square, or cube, of five nodes a side; negative if b comes before a.
CQ_INLINE int offset_of(const int a, const int b) {
  const int from[3] = {CQ_DIM == 3 ? a / 9 : a / 3, CQ_DIM == 3 ? a / 3 % 3 : a % 3, a % 3};
  const int to[3] = {CQ_DIM == 3 ? b / 9 : b / 3, CQ_DIM == 3 ? b / 3 % 3 : b % 3, b % 3};
  int way = 0;
  for (int i = 0; i < CQ_DIM; i++) way = SIDE * way + to[i] - from[i];
  return way;
}

// Sets the matrix of the Hessian H {offsets, dim, dim, nodes}, s->implicit.block, from the tensors of all particles: a
// worker's share of the offsets (offset_of), every shares-th from number `share` on.
static void solve_assemble(cq_scene *s, int32_t share, int32_t shares) {
  const int64_t nodes = s->reference.node_count;
  real *to = (real *)s->implicit.block;
  int32_t pair[TOUCHED * TOUCHED], pairs = 0;
  for (int a = 0; a < TOUCHED; a++)
    for (int b = 0; b < TOUCHED; b++) {
      const int offset = offset_of(a, b);
      if (offset >= 0 && offset % shares == share) pair[pairs++] = TOUCHED * a + b;
    }
  for (int o = share; o < OFFSETS; o += shares)
    memset(to + o * MATRIX * nodes, 0, (size_t)(MATRIX * nodes) * sizeof *to);
  for (int32_t range = 0; range < s->ranges; range++)
  CELLS_EACH(s, range, cells) CHUNKS_OF(cells, chunk) LANES_EACH(h) {
    if (!is_used(s, chunk, h)) continue;
    const Cells c = cells_of(s, cells, h);
    const real *tensor = tensor_of_chunk(s, chunk) + h;
    Weights w;
    Real slope[TOUCHED][CQ_DIM], half[CQ_DIM][CQ_DIM][CQ_DIM];
    weights_of(&c, chunk, &w);
    for (int k = 0; k < TOUCHED; k++) weight_at(&w, k, slope[k]);
    memset((void *)half, 0, sizeof half);
    for (int32_t k = 0, last = -1; k < pairs; k++) {
      const int a = pair[k] / TOUCHED, b = pair[k] % TOUCHED;
      if (a != last)
        EACH(i) EACH(m) EACH(l) {
          half[i][m][l] = r_set((real)0);
          EACH(j) half[i][m][l] += slope[a][j] * r_load(tensor + tensor_at(i * CQ_DIM + j, m * CQ_DIM + l) * CQ_CHUNK);
        }
      last = a;
      real *at = to + offset_of(a, b) * MATRIX * nodes + row_of(&c, a / 3) + a % 3 - 1;
      EACH(i) EACH(m) {
        Real sum = half[i][m][0] * slope[b][0];
        CQ_UNROLL for (int l = 1; l < CQ_DIM; l++) sum += half[i][m][l] * slope[b][l];
        cells_add(&c, is_whole(&c), at + (i * CQ_DIM + m) * nodes, sum);
      }
    }
  }
}

#endif
