// dilatation_adj: the adjoint of the averaged dilatation (E38). Before g2p_adj passes over particles find what the
// trace of C' gets, with the means of nodes between them, as the step did; g2p_adj and p2g_adj do the rest. Implicit
// steps have two more such averages within their stress (E102).

// a chunk of particles in the adjoint of an averaged rate of dilatation
typedef struct {
  cq_scene *s;
  const real *chunk, *next;
  real *adj, *own, *volume_adj;
  Matter matter;
  real *solved;               // of implicit steps, else NULL
  const real *tensor;
  int32_t average;
} AveragedChunk;

// Returns what the adjoint of an averaging reads and writes of chunk c: states before and after the step, adjoints,
// materials and volumes. average: which averaging, a cq_average.
CQ_INLINE AveragedChunk averaged_chunk(cq_scene *s, const cq_slice *in, const cq_slice *out, const int32_t c,
                                       const int32_t average) {
  AveragedChunk w;
  w.solved = s->implicit.dilatation ? dilatation_solve_of(s, c) : NULL;
  w.tensor = s->implicit.dilatation ? tensor_of_chunk(s, c) : NULL;
  w.average = average;
  w.s = s;
  w.chunk = (const real *)in->data + AT(c, FIELDS, 0);
  w.next = motion_of(out, c);
  w.adj = (real *)s->adj + AT(c, FIELDS, 0);
  w.own = dilatation_of(s, c);
  w.volume_adj = (real *)s->params_adj + AT(c, s->params, CQ_PARAM_VOLUME);
  w.matter = matter_of(s, in, c);
  return w;
}

// ---- gradient with respect to an average ----------------------------------------------------------------------------

// (E38) dL/dy of particles h, h + 1, ..., with y the averaged rate that corrects F' at a step's end, from dL/dF'. own:
// share and volume of the particles.
CQ_INLINE Real grad_average_end(const AveragedChunk *w, const int h, const Averaged *own) {
  Real def[CQ_DIM][CQ_DIM], grad[CQ_DIM][CQ_DIM];
  load_matrix(w->chunk, F, h, def);
  load_matrix(w->adj, F, h, grad);
  return (real)(-1.0 / CQ_DIM) * (real)w->s->model->dt * own->share * mat_dot(grad, def);
}

// (E102) dL/dy of particles h, h + 1, ..., with y the averaged tr Y of an implicit step's adjoint, whose part in the
// loss is -dt V K : Y~, K the stress. own: share and volume of the particles.
CQ_INLINE Real grad_average_varied(const AveragedChunk *w, const int h, const Averaged *own) {
  Real rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM], p[CQ_DIM][CQ_DIM], k[CQ_DIM][CQ_DIM], psi;
  load_matrix(w->next, C, h, rate);
  EACH(i) rate[i][i] += r_load(w->own + EXCESS * CQ_CHUNK + h);
  load_matrix(w->chunk, F, h, def);
  trial_of(w->s, rate, def, trial);
  end_stress_of(&w->matter, h, trial, p, &psi);
  mat_mul_nt(p, def, k);
  if (is_viscous(&w->matter)) viscous_of(&w->matter, h, def, rate, k);
  return (real)(1.0 / CQ_DIM) * (real)w->s->model->dt * own->share * own->volume * trace_of(k);
}

// (E102) dL/dy of particles h, h + 1, ..., with y the averaged tr C' within the stress of an implicit step: from -h(Y~)
// and from pressures on surfaces. own: share and volume of the particles.
CQ_INLINE Real grad_average_stress(const AveragedChunk *w, const int h, const Averaged *own) {
  Real varied[CQ_DIM][CQ_DIM], grad[CQ_DIM][CQ_DIM];
  load_matrix(w->solved, SOLVED_RATE, h, varied);
  EACH(i) varied[i][i] += r_load(w->solved + STRETCH * CQ_CHUNK + h);
  tensor_multiply(w->tensor, h, varied, grad);
  return (real)(1.0 / CQ_DIM) * own->share * (trace_of(grad) - r_load(w->solved + THROUGH * CQ_CHUNK + h));
}

// dL/dy of particles h, h + 1, ..., with y the averaged rate: calls the function for the kind of averaging, w->average.
// own: share and volume of the particles.
CQ_INLINE Real grad_average(const AveragedChunk *w, const int h, const Averaged *own) {
  switch (w->average) {
  case CQ_AVERAGE_VARIED: return grad_average_varied(w, h, own);
  case CQ_AVERAGE_STRESS: return grad_average_stress(w, h, own);
  default: return grad_average_end(w, h, own);
  }
}

// The rate q of particles h, h + 1, ... that is averaged: tr C', or tr Y for CQ_AVERAGE_VARIED.
CQ_INLINE Real first_rate(const AveragedChunk *w, const int h) {
  Real varied[CQ_DIM][CQ_DIM];
  if (w->average != CQ_AVERAGE_VARIED) return rate_of(w->next, h);
  load_matrix(w->solved, SOLVED_RATE, h, varied);
  return trace_of(varied);
}

// (E93) Sets grad to the part of dL/dF^ of particles h, h + 1, ... that comes from a pressure that follows F^.
// records[0], ...: of these particles, with their sums over nodes of y, the solution of the implicit step's adjoint.
CQ_INLINE void pressure_at_end_adj(const AveragedChunk *w, const Record *records, const int h,
                                   Real grad[CQ_DIM][CQ_DIM]) {
  Real rate[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM], trial[CQ_DIM][CQ_DIM], pressure[CQ_DIM], unused[CQ_DIM];
  Real force[CQ_DIM];
  Sums y;
  sums_load(records, &y);
  load_matrix(w->next, C, h, rate);
  EACH(i) rate[i][i] += r_load(w->own + EXCESS * CQ_CHUNK + h);
  load_matrix(w->chunk, F, h, def);
  trial_of(w->s, rate, def, trial);
  load_vector(w->matter.actuation, PRESSURE, h, pressure);
  EACH(i) {
    unused[i] = r_set((real)0);
    force[i] = (real)w->s->model->dt * y.n0[i];
    EACH(j) grad[i][j] = unused[i];
  }
  pressure_force_adj(trial, pressure, grad, unused, force);
}

// ---- the passes -----------------------------------------------------------------------------------------------------

// (E102) First pass of the adjoint of the two averages within an implicit step, for a range of chunks: keeps Y of the
// adjoint solution y (STEP of nodes), and what a pressure that follows F^ adds to the gradient of tr C~; scatters V tr
// Y for its mean.
static void dilatation_solve_first_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  const real dt = (real)s->model->dt;
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const AveragedChunk w = averaged_chunk(s, in, out, c, CQ_AVERAGE_VARIED);
    Stencils st;
    stencils_of(s, w.chunk, &st, 0);
    gather_chunk(&st, grid_vector(s, CQ_GRID_STEP), &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&w.matter, h);
      Real arm[CQ_DIM], rate[CQ_DIM][CQ_DIM], through = r_set((real)0);
      affine_of(s, w.chunk, &st, h, arm, rate);
      store_matrix(w.solved, SOLVED_RATE, h, rate);
      if (cq_pressure_follows(s->model) && w.matter.pressed) {
        Real grad[CQ_DIM][CQ_DIM], def[CQ_DIM][CQ_DIM];
        pressure_at_end_adj(&w, st.records + h, h, grad);
        load_matrix(w.chunk, F, h, def);
        through = dt * mat_dot(grad, def);
      }
      r_store(w.solved + THROUGH * CQ_CHUNK + h, through);
      give_rate(&st, h, &of, trace_of(rate), r_set((real)0));
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// (E38) Second pass of the adjoint of an averaging, for a range of chunks, after the means of its rate q: keeps (1 - A)
// q and dL/dy of each particle, by grad_average, and scatters both to the nodes. average: a cq_average. Clears the
// gradients of positions, but for CQ_AVERAGE_STRESS, which adds to those before.
static void dilatation_wanted(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t average) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const AveragedChunk w = averaged_chunk(s, in, out, c, average);
    Stencils st;
    stencils_of(s, w.chunk, &st, 0);
    gather_chunk(&st, means_of(s), &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&w.matter, h);
      const Real rest = rest_of(&st, h, &of, first_rate(&w, h)), wanted = grad_average(&w, h, &of);
      r_store(w.own + REST * CQ_CHUNK + h, rest);
      r_store(w.own + WANTED * CQ_CHUNK + h, wanted);
      if (average != CQ_AVERAGE_STRESS)   // which adds to that before
        EACH(i) r_store(w.own + (PLACE + i) * CQ_CHUNK + h, r_set((real)0));
      give_rate(&st, h, &of, rest, wanted);
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// (E38) Adjoint of y = q - A q of particles h, h + 1, ..., from the sums over their nodes in st: returns dL/dq, and
// adds to the gradients of volumes and positions. With a node's mean rate a and b = sum w g / sum w V, g = dL/dy:
//   dL/dq = g - V sum w b, dL/dV = sum w (a b - q b), dL/dw = -(g a + V q b - V a b)
CQ_INLINE Real rest_adj(const AveragedChunk *w, const Stencils *st, const int h, const Averaged *own, const Real q) {
  const real half_inv_dx = (real)(0.5 / w->s->model->dx);
  const Real none = r_set((real)0);
  Real sum[4];
  quads_load(st->records + h, SUM, sum);
  r_store(w->volume_adj + h, r_load(w->volume_adj + h) + r_pick(own->share, sum[2] - q * sum[1], none));
  EACH(i) {
    Real quad[4];
    quads_load(st->records + h, EXCHANGE + i, quad);
    real *at = w->own + (PLACE + i) * CQ_CHUNK + h;
    r_store(at, r_load(at) - half_inv_dx * (quad[0] + quad[1] + quad[2]));
  }
  return r_load(w->own + WANTED * CQ_CHUNK + h) - own->volume * sum[1];
}

// The rate of particles h, h + 1, ... to which 1 - A is applied: the first time (second 0) first_rate, the second time
// (second 1) what the first one has left, REST.
CQ_INLINE Real averaged_rate(const AveragedChunk *w, const int h, const int second) {
  return second ? r_load(w->own + REST * CQ_CHUNK + h) : first_rate(w, h);
}

// Returns where a chunk keeps what an averaging adds to each diagonal entry of C' (or of Y), {16}.
CQ_INLINE real *excess_of(const AveragedChunk *w) {
  return w->average == CQ_AVERAGE_VARIED ? w->solved + STRETCH * CQ_CHUNK : w->own + EXCESS * CQ_CHUNK;
}

// Takes grad, the gradient of the averaged rate of particles h, h + 1, ...: adds it to dL/dC', or stores it for
// g2p_adj, if C' is not C of the state (unresolved motion), or for p2g_adj, after an averaging within an implicit step.
CQ_INLINE void give_rate_adj(const AveragedChunk *w, const int h, const Real grad) {
  if (cq_keeps_unresolved(w->s->model)) {
    r_store(w->own + WANTED * CQ_CHUNK + h, grad);
    return;
  }
  if (w->average != CQ_AVERAGE_END) {
    r_store(w->solved + (w->average == CQ_AVERAGE_VARIED ? PRESS : THROUGH) * CQ_CHUNK + h, grad);
    return;
  }
  EACH(i) {
    real *at = w->adj + (C + i * CQ_DIM + i) * CQ_CHUNK + h;
    r_store(at, r_load(at) + grad);
  }
}

// Gathers from the nodes of a chunk's particles into the records of st: sum w (a, b, a b), and the sums of the slopes
// of weights times g a + V q b - V a b, for gradients of positions. second: as in averaged_rate.
CQ_INLINE void gather_rates(const AveragedChunk *w, Stencils *st, const Strides *strides, const int second) {
  LANES_EACH(h) {
    const Averaged of = averaged_of(&w->matter, h);
    const Real q = averaged_rate(w, h, second), none = r_set((real)0), nothing[3] = {none, none, none};
    const Real three[3] = {r_load(w->own + WANTED * CQ_CHUNK + h), of.volume * q, none - of.volume};
    store_three(st, h, MOVE, three);
    store_three(st, h, MOVE_ADJ, nothing);
  }
  for (int l = 0; l < CQ_CHUNK; l++) {
    const real *at = means_of(w->s) + 4 * (int64_t)st->node[l];
    gather_adj(&st->records[l], at, at, strides);
  }
}

// (E38) Last two passes of the adjoint of an averaging, for a range of chunks, with dilatation_nodes before each.
// second 1: adjoint of the second application of 1 - A; also sets EXCESS to -s/dim y, which F' has on the diagonal
// beside C'. second 0: adjoint of the first application, which gives the gradient of tr C'.
static void dilatation_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t average,
                           int32_t second) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const AveragedChunk w = averaged_chunk(s, in, out, c, average);
    Stencils st;
    stencils_of(s, w.chunk, &st, 1);
    gather_rates(&w, &st, &strides, second);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&w.matter, h);
      const Real q = averaged_rate(&w, h, second), grad = rest_adj(&w, &st, h, &of, q);
      if (second) {
        r_store(excess_of(&w) + h, (real)(-1.0 / CQ_DIM) * of.share * rest_of(&st, h, &of, q));
        r_store(w.own + WANTED * CQ_CHUNK + h, grad);
        give_rate(&st, h, &of, first_rate(&w, h), grad);
        continue;
      }
      give_rate_adj(&w, h, grad);
    }
    if (second) scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// Adds the gradients of positions by averaging to s->adj, for a range of chunks; after g2p_adj, which still reads the
// adjoint of the positions at the step's end.
static void dilatation_places_adj(cq_scene *s, int32_t range) {
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    real *at = (real *)s->adj + AT(c, FIELDS, X);
    const real *more = dilatation_of(s, c) + PLACE * CQ_CHUNK;
    for (int k = 0; k < CQ_DIM * CQ_CHUNK; k++) at[k] += more[k];
  }
}
