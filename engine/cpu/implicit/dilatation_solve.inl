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

// What the implicit solve keeps for the averaged dilatation of chunk c, {SOLVED_FIELDS, 16}.
CQ_INLINE real *dilatation_solve_of(const cq_scene *s, const int32_t c) {
  return (real *)s->implicit.dilatation + AT(c, SOLVED_FIELDS, 0);
}

// The trace of a matrix.
CQ_INLINE Real trace_of(const Real m[CQ_DIM][CQ_DIM]) {
  Real sum = m[0][0];
  for (int i = 1; i < CQ_DIM; i++) sum += m[i][i];
  return sum;
}

// ---- one number of each node ----------------------------------------------------------------------------------------

// The means of one number at the nodes.
CQ_INLINE real *one_means(const cq_scene *s) { return grid_vector(s, CQ_GRID_MEANS); }
// For each node the inverse of the sum of w V over its particles, which turns sums into means; 0 where that is 0.
CQ_INLINE real *one_inverse(const cq_scene *s) { return grid_vector(s, CQ_GRID_MEANS) + 2 * s->implicit.capacity; }

// The slab of a range for one number a node, shifted so that indices of nodes in the window address it.
CQ_INLINE real *one_slab(const cq_scene *s, const int32_t range) {
  const cq_arrangement *a = s->arrangement;
  const int64_t plane = CQ_DIM == 3 ? (int64_t)a->size[1] * a->size[2] : a->size[1];
  return (real *)s->slab[range] - (int64_t)a->slab_lower[range] * plane;
}

// rows that particles of one cell share, until the next cell
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

// Begins the scatter of one number a node over a range, with sums of zero.
CQ_INLINE void one_begin(OneScatter *to, const cq_scene *s, const int32_t range) {
  to->slab = one_slab(s, range);
  to->current = -1;
  CQ_UNROLL for (int k = 0; k < ROWS; k++) to->rows[k] = quad_zero();
}

// Adds the sums of the present base node to the slab, and clears them.
CQ_INLINE void one_flush(OneScatter *to, const Strides *strides) {
  if (to->current < 0) return;
  CQ_UNROLL for (int k = 0; k < ROWS; k++) {
    real *at = to->slab + to->current + row_at(strides, k) / 4;
    quad_store(at, quad_add(quad_load(at), to->rows[k]));
    to->rows[k] = quad_zero();
  }
}

// Adds w times one number of a particle to the nodes of its stencil. node: the first one; w: its weights.
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

// One number at a particle's nodes, summed by its weights w, as four numbers whose sum it is. means: at its first
// node.
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

// (E101) Turns what particles gave the nodes of a block into means, by pass: VOLUME sets 1 / M, MEAN a, AGAIN 2 a - b.
// Clears the slabs.
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

// Scatters number {16} of the particles of chunk c to the nodes.
CQ_INLINE void one_scatter_chunk(const cq_scene *s, OneScatter *to, const Strides *strides, const int32_t c,
                                 const real number[CQ_CHUNK]) {
  const int32_t *node = kept_nodes(s, c);
  for (int l = 0; l < CQ_CHUNK; l++) one_scatter(to, strides, node[l], kept_weights(s, c)[l], number[l]);
}

// Sums the means at the nodes of each particle of chunk c by its weights, into the records of st; one_sum reads it.
CQ_INLINE void one_gather_chunk(const cq_scene *s, Stencils *st, const Strides *strides, const int32_t c) {
  const int32_t *node = kept_nodes(s, c);
  for (int l = 0; l < CQ_CHUNK; l++)
    quad_store(st->records[l].quad[SUM], one_gather(one_means(s) + node[l], strides, kept_weights(s, c)[l]));
}

// The number that one_gather_chunk has gathered for particles h, h + 1, ...
CQ_INLINE Real one_sum(const Stencils *st, const int h) {
  Real four[4];
  quads_load(st->records + h, SUM, four);
  return (four[0] + four[1]) + (four[2] + four[3]);
}

// ---- passes over particles ------------------------------------------------------------------------------------------

// (E101) At the start of a solve, over a range: keeps weights and nodes of its particles for all passes, and scatters
// V.
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

// (E101) First pass of a product over a range: keeps the rate C of each particle by vector `from`, and scatters V tr C
// to the nodes.
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

// (E101) Second pass of a product over a range: gathers the means of dilatation at its particles and scatters V times
// them, since the average is taken twice.
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

// (E101) Sets rate to C~ of particles h, h + 1, ... of chunk c, after 2 a - b was gathered into st.
CQ_INLINE void averaged_affine(const cq_scene *s, const Matter *matter, const int32_t c, const Stencils *st,
                               const int h, Real rate[CQ_DIM][CQ_DIM]) {
  load_matrix(dilatation_solve_of(s, c), SOLVED_RATE, h, rate);
  const Real more = (real)(1.0 / CQ_DIM) * averaged_of(matter, h).share * (trace_of(rate) - one_sum(st, h));
  EACH(i) rate[i][i] -= more;
}

// Keeps b = V K, up to a factor, of particles h, h + 1, ... of chunk c for dilatation_solve_last; sets number[h ...]
// to its trace times the averaged share, for the nodes.
CQ_INLINE void keep_stress(const cq_scene *s, const Matter *matter, const int32_t c, const int h,
                           const Real b[CQ_DIM][CQ_DIM], real number[CQ_CHUNK]) {
  store_matrix(dilatation_solve_of(s, c), SOLVED_RATE, h, b);
  r_store(number + h, averaged_of(matter, h).share * trace_of(b));
}

// (E101) Last pass of a product over a range: scatters to the nodes the kept stress, with the averaged part of its
// trace.
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

// ---- loops that are the same with and without -----------------------------------------------------------------------

// where what particles give goes: nodes, or their means
typedef struct {
  Scatter all;
  OneScatter one;
  real number[CQ_CHUNK] __attribute__((aligned(64)));
} SlopeScatter;

// Begins the scatter of a range in an implicit loop: of one number a node where dilatations are averaged, else of
// vectors.
CQ_INLINE void slopes_begin(SlopeScatter *to, const cq_scene *s, const int32_t range) {
  if (s->model->averages_dilatation)
    one_begin(&to->one, s, range);
  else
    scatter_begin(&to->all, s, range);
}

// Scatters what slope_give has prepared for chunk c: one number a particle where dilatations are averaged, else
// vectors.
CQ_INLINE void slopes_scatter(const cq_scene *s, SlopeScatter *to, const Strides *strides, const int32_t c,
                              const Stencils *st) {
  if (s->model->averages_dilatation)
    one_scatter_chunk(s, &to->one, strides, c, to->number);
  else
    scatter_chunk(&to->all, strides, st);
}

// Ends the scatter of a range: adds the rows that it still holds to the grid.
CQ_INLINE void slopes_end(const cq_scene *s, SlopeScatter *to, const Strides *strides) {
  if (s->model->averages_dilatation)
    one_flush(&to->one, strides);
  else
    scatter_end(&to->all, strides);
}

// Gathers what rates_of reads, for chunk c: rates of its particles by vector `at` over nodes, or means of dilatation
// where these are averaged.
CQ_INLINE void rates_gather(const cq_scene *s, Stencils *st, const int32_t at, const Strides *strides,
                            const int32_t c) {
  if (s->model->averages_dilatation)
    one_gather_chunk(s, st, strides, c);
  else
    gather_chunk(st, grid_vector(s, at), strides);
}

// a chunk in such a loop
typedef struct {
  const cq_scene *s;
  const Matter *matter;
  int32_t c;
} Chunk;

// Sets rate to the affine velocity of particles h, h + 1, ... of a chunk by the gathered vector, C~ where dilatations
// are averaged (E101), and arm to the position of their middle node.
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

// Prepares what particles h, h + 1, ... of a chunk give their nodes: w b (o + arm), or the trace of b alone where
// dilatations are averaged.
CQ_INLINE void slope_give(const Chunk *k, Stencils *st, const int h, const Real arm[CQ_DIM],
                          const Real b[CQ_DIM][CQ_DIM], SlopeScatter *to) {
  if (k->s->model->averages_dilatation)
    keep_stress(k->s, k->matter, k->c, h, b, to->number);
  else
    store_slope(st, h, arm, b);
}
