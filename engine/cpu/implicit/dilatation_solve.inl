// dilatation_solve: averaged dilatation (E37) within the solve of an implicit step, loops over particles and nodes
// (E101). Node velocities strain a particle by C~ = C - s/dim R R tr C I, R = 1 - A, and its potential is that of C~;
// so its stress K gives the nodes K - 1/dim R R (s tr K) I in place of K. With W the weights, M = W V the volumes of
// nodes, a = M^-1 W V q and b = M^-1 W V W^T a,
//   R R q = q - W^T (2 a - b)
//
//   dilatation_solve_first   C of a vector over nodes, and V tr C to the nodes    then dilatation_solve_nodes: a
//   dilatation_solve_again   V W^T a to the nodes                                 then 2 a - b
//   the loop                 rates_of: C~; slope_give: V K, and s V tr K to the nodes    then a
//   dilatation_solve_again   the same of K                                        then 2 a - b
//   dilatation_solve_last    what the rest of K gives the nodes
//
// A node has one number here, in slabs and in CQ_GRID_MEANS.

// rates of a particle while it is solved for, {chunks, SOLVED_FIELDS, 16}: C, or V K; and of the adjoint the traces
// that are added: to Y, to what K gives, to what C gets through the stress
enum { SOLVED_RATE = 0, STRETCH = CQ_DIM * CQ_DIM, PRESS, THROUGH, SOLVED_FIELDS };

// What the solve keeps for averaged dilatation of the particles of chunk c, {SOLVED_FIELDS, 16}: rates, stress, traces.
CQ_INLINE real *dilatation_solve_of(const cq_scene *s, const int32_t c) {
  return (real *)s->implicit.dilatation + AT(c, SOLVED_FIELDS, 0);
}

// The trace of a matrix.
CQ_INLINE Real trace_of(const Real m[CQ_DIM][CQ_DIM]) {
  Real sum = m[0][0];
  for (int i = 1; i < CQ_DIM; i++) sum += m[i][i];
  return sum;
}

// ---- one number per node --------------------------------------------------------------------------------------------

// The volume-weighted means at the nodes {nodes} of a number that particles have scattered to them: tr C, or tr K.
CQ_INLINE real *one_means(const cq_scene *s) { return grid_vector(s, CQ_GRID_MEANS); }
// The inverse {nodes} of the volumes of nodes, sum w V of particles with averaged dilatation; 0 where there are none.
CQ_INLINE real *one_inverse(const cq_scene *s) { return grid_vector(s, CQ_GRID_MEANS) + 2 * s->implicit.capacity; }

// The scatter buffer (slab) of a range, with one number per node, shifted so that the index of a node in vectors over
// nodes addresses it.
CQ_INLINE real *one_slab(const cq_scene *s, const int32_t range) {
  const cq_arrangement *a = s->arrangement;
  const int64_t plane = CQ_DIM == 3 ? (int64_t)a->size[1] * a->size[2] : a->size[1];
  return (real *)s->slab[range] - (int64_t)a->slab_lower[range] * plane;
}

// sums at the nodes around one cell, for its particles one after another: added to the slab before the next cell
typedef struct {
  real *slab;
  int64_t current;
  Quad rows[ROWS];
} OneScatter;

// Four zeros.
CQ_INLINE Quad quad_zero(void) {
  const real zero[4] = {(real)0, (real)0, (real)0, (real)0};
  return quad_load(zero);
}

// Begins the scatter of one number per node from a range's particles to its slab (scatter buffer), by way of sums at
// the nodes around one cell, which are zero.
CQ_INLINE void one_begin(OneScatter *to, const cq_scene *s, const int32_t range) {
  to->slab = one_slab(s, range);
  to->current = -1;
  CQ_UNROLL for (int k = 0; k < ROWS; k++) to->rows[k] = quad_zero();
}

// Adds the sums at the nodes around the present cell to the slab, and clears them.
CQ_INLINE void one_flush(OneScatter *to, const Strides *strides) {
  if (to->current < 0) return;
  CQ_UNROLL for (int k = 0; k < ROWS; k++) {
    real *at = to->slab + to->current + row_at(strides, k) / 4;
    quad_store(at, quad_add(quad_load(at), to->rows[k]));
    to->rows[k] = quad_zero();
  }
}

// Adds w times one number of a particle to the nodes of its stencil. node: the first of them; w: B-spline weights along
// each axis. The sums are flushed before if they are those of another cell.
CQ_INLINE void one_scatter(OneScatter *to, const Strides *strides, const int32_t node, const real w[CQ_DIM][4],
                           const real number) {
  if (node != to->current) {
    one_flush(to, strides);
    to->current = node;
  }
  const Quad last = quad_scale(number, quad_load(w[LAST]));
  CQ_UNROLL for (int i = 0; i < 3; i++) {
    const Quad across = quad_scale(w[0][i], last);
    if (CQ_DIM == 2)
      to->rows[i] = quad_add(to->rows[i], across);
    else
      CQ_UNROLL for (int j = 0; j < 3; j++)
        to->rows[CQ_DIM == 2 ? i : 3 * i + j] = quad_add(to->rows[CQ_DIM == 2 ? i : 3 * i + j],
                                                         quad_scale(w[CQ_DIM - 2][j], across));
  }
}

// Interpolates one number per node at a particle: returns four partial sums of w m over its stencil, m in means, which
// points to the stencil's first node. w: B-spline weights along each axis.
CQ_INLINE Quad one_gather(const real *means, const Strides *strides, const real w[CQ_DIM][4]) {
  Quad sum = quad_zero();
  CQ_UNROLL for (int i = 0; i < 3; i++) {
    if (CQ_DIM == 2) {
      sum = quad_add(sum, quad_scale(w[0][i], quad_load(means + row_at(strides, i) / 4)));
    } else {
      Quad line = quad_zero();
      CQ_UNROLL for (int j = 0; j < 3; j++)
        line = quad_add(line, quad_scale(w[CQ_DIM - 2][j], quad_load(means + row_at(strides, 3 * i + j) / 4)));
      sum = quad_add(sum, quad_scale(w[0][i], line));
    }
  }
  return quad_mul(sum, quad_load(w[LAST]));
}

// (E101) Turns the sums scattered to the nodes of a block into means. pass (cq_dilatation_pass): VOLUME sets 1 / M, M
// the volumes of nodes; MEAN sets a, the means; AGAIN sets 2 a - b, b the means of the means. Clears the slabs.
static void dilatation_solve_nodes(cq_scene *s, int32_t block, int32_t pass) {
  real *slab[CQ_RANGES_MAX], *means = one_means(s), *inverse = one_inverse(s);
  for (int r = 0; r < s->ranges; r++) slab[r] = one_slab(s, r);
  COLUMNS_EACH(s, block, column)
    for (int64_t node = column->node; node < column->node + column->count; node += 4) {
      Quad sum = quad_zero();
      for (int r = 0; column->ranges >> r; r++) {
        if (!(column->ranges >> r & 1)) continue;
        sum = quad_add(sum, quad_load(slab[r] + node));
        quad_store(slab[r] + node, quad_zero());
      }
      if (pass == CQ_DILATATION_VOLUME) {
        real volume[4];
        quad_store(volume, sum);
        for (int k = 0; k < 4; k++) inverse[node + k] = volume[k] > (real)0 ? (real)1 / volume[k] : (real)0;
        continue;
      }
      const Quad mean = quad_mul(sum, quad_load(inverse + node)), was = quad_load(means + node);
      const Quad twice = quad_add(quad_scale((real)2, was), quad_scale((real)-1, mean));
      quad_store(means + node, pass == CQ_DILATATION_MEAN ? mean : twice);
    }
}

// Scatters one number of each particle of chunk c, number {16}, to the nodes, by the weights kept for the step.
CQ_INLINE void one_scatter_chunk(const cq_scene *s, OneScatter *to, const Strides *strides, const int32_t c,
                                 const real number[CQ_CHUNK]) {
  const int32_t *node = kept_nodes(s, c);
  for (int l = 0; l < CQ_CHUNK; l++) one_scatter(to, strides, node[l], kept_weights(s, c)[l], number[l]);
}

// Interpolates the volume-weighted means at nodes (one_means) at each particle of chunk c, into the records of st as
// four partial sums, which one_sum adds.
CQ_INLINE void one_gather_chunk(const cq_scene *s, Stencils *st, const Strides *strides, const int32_t c) {
  const int32_t *node = kept_nodes(s, c);
  for (int l = 0; l < CQ_CHUNK; l++)
    quad_store(st->records[l].quad[SUM], one_gather(one_means(s) + node[l], strides, kept_weights(s, c)[l]));
}

// The mean that one_gather_chunk has interpolated at particles h, h + 1, ... of a chunk.
CQ_INLINE Real one_sum(const Stencils *st, const int h) {
  Real four[4];
  quads_load(st->records + h, SUM, four);
  return (four[0] + four[1]) + (four[2] + four[3]);
}

// ---- passes over particles ------------------------------------------------------------------------------------------

// (E101) At the start of a solve, over a range: keeps B-spline weights and stencil nodes of its particles for all
// passes, and scatters their volumes V. in: the state before the step.
static void dilatation_solve_open(cq_scene *s, const cq_slice *in, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  OneScatter to;
  one_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    real volume[CQ_CHUNK] __attribute__((aligned(64)));
    stencils_of(s, matter.state, &st, 0);
    stencils_keep(s, c, &st);
    LANES_EACH(h) r_store(volume + h, averaged_of(&matter, h).volume);
    one_scatter_chunk(s, &to, &strides, c, volume);
  }
  one_flush(&to, &strides);
}

// (E101) First pass of the averaging, over a range: keeps the rate C of each particle, gathered from vector `from`
// (cq_grid_vector), and scatters V tr C to the nodes. in: the state before the step.
static void dilatation_solve_first(cq_scene *s, const cq_slice *in, int32_t range, int32_t from) {
  const Strides strides = strides_of(s->arrangement);
  OneScatter to;
  one_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    real number[CQ_CHUNK] __attribute__((aligned(64)));
    gather_kept(s, c, &st, grid_vector(s, from), &strides);
    LANES_EACH(h) {
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM];
      affine_of(s, matter.state, &st, h, arm, rate);
      store_matrix(dilatation_solve_of(s, c), SOLVED_RATE, h, rate);
      r_store(number + h, averaged_of(&matter, h).volume * trace_of(rate));
    }
    one_scatter_chunk(s, &to, &strides, c, number);
  }
  one_flush(&to, &strides);
}

// (E101) Second pass of the averaging, over a range: interpolates the means at its particles and scatters V times them
// to the nodes, since the average is taken twice.
static void dilatation_solve_again(cq_scene *s, const cq_slice *in, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  OneScatter to;
  one_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    real number[CQ_CHUNK] __attribute__((aligned(64)));
    one_gather_chunk(s, &st, &strides, c);
    LANES_EACH(h) r_store(number + h, averaged_of(&matter, h).volume * one_sum(&st, h));
    one_scatter_chunk(s, &to, &strides, c, number);
  }
  one_flush(&to, &strides);
}

// (E101) Sets rate to C~, the rate C with its averaged dilatation, of particles h, h + 1, ... of chunk c. st: records
// into which 2 a - b, the result of both averages, was gathered.
CQ_INLINE void averaged_affine(const cq_scene *s, const Matter *matter, const int32_t c, const Stencils *st,
                               const int h, Real rate[CQ_DIM][CQ_DIM]) {
  load_matrix(dilatation_solve_of(s, c), SOLVED_RATE, h, rate);
  const Real more = (real)(1.0 / CQ_DIM) * averaged_of(matter, h).share * (trace_of(rate) - one_sum(st, h));
  EACH(i) rate[i][i] -= more;
}

// Keeps b, V K up to a factor (K the stress), of particles h, h + 1, ... of chunk c for dilatation_solve_last, over
// their rates; sets number[h ...] to its trace times the averaged share of dilatation, which the caller scatters.
CQ_INLINE void keep_stress(const cq_scene *s, const Matter *matter, const int32_t c, const int h,
                           const Real b[CQ_DIM][CQ_DIM], real number[CQ_CHUNK]) {
  store_matrix(dilatation_solve_of(s, c), SOLVED_RATE, h, b);
  r_store(number + h, averaged_of(matter, h).share * trace_of(b));
}

// (E101) Last pass of the averaging, over a range: scatters to the nodes the stress that keep_stress has kept, with the
// averaged part of its trace. in: the state before the step.
static void dilatation_solve_last(cq_scene *s, const cq_slice *in, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    one_gather_chunk(s, &st, &strides, c);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&matter, h);
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], b[CQ_DIM][CQ_DIM];
      place(matter.state, h, (real)(1 / s->model->dx), base, f, arm);
      load_matrix(dilatation_solve_of(s, c), SOLVED_RATE, h, b);
      const Real more = (real)(1.0 / CQ_DIM) * (of.share * trace_of(b) - of.volume * one_sum(&st, h));
      EACH(i) b[i][i] -= more;
      store_slope(&st, h, arm, b);
    }
    scatter_kept(s, c, &to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// ---- loops that are the same with and without averaging -------------------------------------------------------------

// a scatter to nodes: of vectors, or, where dilatations are averaged, of one number per node
typedef struct {
  Scatter all;
  OneScatter one;
  real number[CQ_CHUNK] __attribute__((aligned(64)));
} SlopeScatter;

// Begins the scatter of a range's stress, or product with the tangent, to the nodes: one number per node where
// dilatations are averaged, else vectors.
CQ_INLINE void slopes_begin(SlopeScatter *to, const cq_scene *s, const int32_t range) {
  if (s->model->averages_dilatation)
    one_begin(&to->one, s, range);
  else
    scatter_begin(&to->all, s, range);
}

// Scatters what slope_give has prepared for the particles of chunk c: one number each where dilatations are averaged,
// else vectors.
CQ_INLINE void slopes_scatter(const cq_scene *s, SlopeScatter *to, const Strides *strides, const int32_t c,
                              const Stencils *st) {
  if (s->model->averages_dilatation)
    one_scatter_chunk(s, &to->one, strides, c, to->number);
  else
    scatter_chunk(&to->all, strides, st);
}

// Ends the scatter of a range: adds the sums at the nodes around the last cell to the slab.
CQ_INLINE void slopes_end(const cq_scene *s, SlopeScatter *to, const Strides *strides) {
  if (s->model->averages_dilatation)
    one_flush(&to->one, strides);
  else
    scatter_end(&to->all, strides);
}

// Gathers what rates_of reads for the particles of chunk c into the records of st: sums over vector `at`
// (cq_grid_vector), or the means that cq_linear_gather has left at nodes where dilatations are averaged.
CQ_INLINE void rates_gather(const cq_scene *s, Stencils *st, const int32_t at, const Strides *strides,
                            const int32_t c) {
  if (s->model->averages_dilatation)
    one_gather_chunk(s, st, strides, c);
  else
    gather_chunk(st, grid_vector(s, at), strides);
}

// a chunk in a loop over particles
typedef struct {
  const cq_scene *s;
  const Matter *matter;
  int32_t c;
} Chunk;

// Sets rate to the rate C of particles h, h + 1, ... of a chunk by what rates_gather has gathered, C~ where dilatations
// are averaged (E101); and arm to the position of their stencil's middle node from the particle [cells].
CQ_INLINE void rates_of(const Chunk *k, const Stencils *st, const int h, Real arm[CQ_DIM],
                        Real rate[CQ_DIM][CQ_DIM]) {
  const real *state = k->matter->state;
  if (!k->s->model->averages_dilatation) {
    affine_of(k->s, state, st, h, arm, rate);
    return;
  }
  Real base[CQ_DIM], f[CQ_DIM];
  place(state, h, (real)(1 / k->s->model->dx), base, f, arm);
  averaged_affine(k->s, k->matter, k->c, st, h, rate);
}

// Prepares what particles h, h + 1, ... of a chunk scatter for a stress b: w b (o + arm) for the node at offset o from
// the middle node; or the trace of b alone where dilatations are averaged.
CQ_INLINE void slope_give(const Chunk *k, Stencils *st, const int h, const Real arm[CQ_DIM],
                          const Real b[CQ_DIM][CQ_DIM], SlopeScatter *to) {
  if (k->s->model->averages_dilatation)
    keep_stress(k->s, k->matter, k->c, h, b, to->number);
  else
    store_slope(st, h, arm, b);
}
