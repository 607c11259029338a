// swell: averaged dilatation (E37) within the solve of an implicit step, loops over particles (E101). What node
// velocities strain a particle by is C~ = C - s/dim R R tr C I, R = 1 - A, and its potential is that of C~; so what its
// stress K gives the nodes has K - 1/dim R R (s tr K) I in place of K. A product with the second derivative goes the
// same way there and back.
//
//   swell_first   C of a vector over nodes, and V tr C to the nodes          means of nodes (dilatation_nodes)
//   swell_again   its rest R tr C, and V times it to the nodes               means of nodes
//   the loop      averaged_affine: C~; give_stress: K, and s V tr K to the nodes       means of nodes
//   swell_again   pressing: R (s tr K), and V times it to the nodes          means of nodes
//   swell_last    what the rest of K gives the nodes

// rates of a particle while it is solved for, {chunks, SWELL_FIELDS, 16}: C, or V K; and of the adjoint the traces that
// are added: to Y, to what K gives, to what C gets through the stress
enum { SWELL_RATE = 0, STRETCH = CQ_DIM * CQ_DIM, PRESS, THROUGH, SWELL_FIELDS };

CQ_INLINE real *swell_of(const cq_scene *s, const int32_t c) {
  return (real *)s->implicit.swell + AT(c, SWELL_FIELDS, 0);
}

CQ_INLINE Real trace_of(const Real m[CQ_DIM][CQ_DIM]) {
  Real sum = m[0][0];
  for (int i = 1; i < CQ_DIM; i++) sum += m[i][i];
  return sum;
}

// weights and nodes of a range, for all passes of the solve
static void swell_open(cq_scene *s, const cq_slice *in, int32_t range) {
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    Stencils st;
    stencils_of(s, (const real *)in->data + AT(c, FIELDS, 0), &st, 0);
    stencils_keep(s, c, &st);
  }
}

static void swell_first(cq_scene *s, const cq_slice *in, int32_t range, int32_t from) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    stencils_take(s, c, &st);
    gather_chunk(&st, grid_vector(s, from), &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&matter, h);
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM];
      affine_of(s, chunk, &st, h, arm, rate);
      store_matrix(swell_of(s, c), SWELL_RATE, h, rate);
      give_rate(&st, h, &of, trace_of(rate), r_set((real)0));
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// The trace that is averaged: of C; pressing: s tr K, from V K.
CQ_INLINE Real swell_rate(const cq_scene *s, const int32_t c, const int h, const Averaged *of, const int pressing) {
  Real rate[CQ_DIM][CQ_DIM];
  load_matrix(swell_of(s, c), SWELL_RATE, h, rate);
  const Real trace = trace_of(rate);
  return pressing ? r_pick(of->volume, of->share * trace / of->volume, r_set((real)0)) : trace;
}

static void swell_again(cq_scene *s, const cq_slice *in, int32_t range, int32_t pressing) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    stencils_take(s, c, &st);
    gather_chunk(&st, means_of(s), &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&matter, h);
      const Real rest = rest_of(&st, h, &of, swell_rate(s, c, h, &of, pressing));
      r_store(dilatation_of(s, c) + REST * CQ_CHUNK + h, rest);
      give_rate(&st, h, &of, rest, r_set((real)0));
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// C~ of lanes, after the means of R tr C were gathered
CQ_INLINE void averaged_affine(const cq_scene *s, const Matter *matter, const int32_t c, const Stencils *st,
                               const int h, Real rate[CQ_DIM][CQ_DIM]) {
  const Averaged of = averaged_of(matter, h);
  const Real rest = rest_of(st, h, &of, r_load(dilatation_of(s, c) + REST * CQ_CHUNK + h));
  load_matrix(swell_of(s, c), SWELL_RATE, h, rate);
  EACH(i) rate[i][i] -= (real)(1.0 / CQ_DIM) * of.share * rest;
}

// b = V K, up to a factor, is kept for swell_last, and its trace goes to the nodes.
CQ_INLINE void give_stress(const cq_scene *s, const Matter *matter, const int32_t c, Stencils *st, const int h,
                           const Real b[CQ_DIM][CQ_DIM]) {
  const Averaged of = averaged_of(matter, h);
  const Real three[3] = {of.share * trace_of(b), r_set((real)0), of.volume};
  store_matrix(swell_of(s, c), SWELL_RATE, h, b);
  store_three(st, h, MOVE, three);
}

static void swell_last(cq_scene *s, const cq_slice *in, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    stencils_take(s, c, &st);
    gather_chunk(&st, means_of(s), &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&matter, h);
      const Real rest = rest_of(&st, h, &of, r_load(dilatation_of(s, c) + REST * CQ_CHUNK + h));
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM], b[CQ_DIM][CQ_DIM];
      place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
      load_matrix(swell_of(s, c), SWELL_RATE, h, b);
      EACH(i) b[i][i] -= (real)(1.0 / CQ_DIM) * of.volume * rest;
      store_slope(&st, h, arm, b);
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// What a loop over particles gathers: rates at a vector over nodes, or the means of their rest.
CQ_INLINE void rates_gather(const cq_scene *s, Stencils *st, const int32_t at, const Strides *strides) {
  gather_chunk(st, s->model->averages_dilatation ? means_of(s) : grid_vector(s, at), strides);
}

// C~ of lanes, and their arm
CQ_INLINE void rates_of(const cq_scene *s, const Matter *matter, const int32_t c, const Stencils *st, const int h,
                        Real arm[CQ_DIM], Real rate[CQ_DIM][CQ_DIM]) {
  if (!s->model->averages_dilatation) {
    affine_of(s, matter->state, st, h, arm, rate);
    return;
  }
  Real base[CQ_DIM], f[CQ_DIM];
  place(matter->state, h, (real)(1 / s->model->dx), base, f, arm);
  averaged_affine(s, matter, c, st, h, rate);
}

// What they give their nodes: w b (o + arm), or the trace of b alone
CQ_INLINE void slope_give(const cq_scene *s, const Matter *matter, const int32_t c, Stencils *st, const int h,
                          const Real arm[CQ_DIM], const Real b[CQ_DIM][CQ_DIM]) {
  if (s->model->averages_dilatation)
    give_stress(s, matter, c, st, h, b);
  else
    store_slope(st, h, arm, b);
}
