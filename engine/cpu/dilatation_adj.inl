// dilatation_adj: the adjoint of the averaged dilatation (E38). Before g2p_adj passes over particles find what the
// trace of C' gets, with the means of nodes between them, as the step did; g2p_adj and p2g_adj do the rest.

// a range of particles in a pass
typedef struct {
  cq_scene *s;
  const real *chunk, *next;
  real *adj, *own, *volume_adj;
  Matter matter;
} Swelling;

CQ_INLINE Swelling swelling_of(cq_scene *s, const cq_slice *in, const cq_slice *out, const int32_t c) {
  Swelling w;
  w.s = s;
  w.chunk = (const real *)in->data + AT(c, FIELDS, 0);
  w.next = (const real *)out->data + AT(c, FIELDS, 0);
  w.adj = (real *)s->adj + AT(c, FIELDS, 0);
  w.own = dilatation_of(s, c);
  w.volume_adj = (real *)s->params_adj + AT(c, s->params, CQ_PARAM_VOLUME);
  w.matter = matter_of(s, in, c);
  return w;
}

// what is wanted of y, from dL/dF'
CQ_INLINE Real wanted_of(const Swelling *w, const int h, const Averaged *own) {
  Real def[CQ_DIM][CQ_DIM], grad[CQ_DIM][CQ_DIM];
  load_matrix(w->chunk, F, h, def);
  load_matrix(w->adj, F, h, grad);
  return (real)(-1.0 / CQ_DIM) * (real)w->s->model->dt * own->share * mat_dot(grad, def);
}

// After the means of tr C': its rest (1 - A) tr C' to the nodes, and what is wanted of (1 - A) of that.
static void dilatation_wanted(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Swelling w = swelling_of(s, in, out, c);
    Stencils st;
    stencils_of(s, w.chunk, &st, 0);
    gather_chunk(&st, (const real *)s->grid_v, &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&w.matter, h);
      const Real rest = rest_of(&st, h, &of, rate_of(w.next, h)), wanted = wanted_of(&w, h, &of);
      r_store(w.own + REST * CQ_CHUNK + h, rest);
      r_store(w.own + WANTED * CQ_CHUNK + h, wanted);
      EACH(i) r_store(w.own + (PLACE + i) * CQ_CHUNK + h, r_set((real)0));
      give_rate(&st, h, &of, rest, wanted);
    }
    scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// Adjoint of y = q - A q in lanes, from the sums over their nodes. With a node's b = sum w g / sum w V, g = dL/dy:
//   dL/dq = g - V sum w b, dL/dV = sum w (a b - q b), dL/dw = -(g a + V q b - V a b)
CQ_INLINE Real rest_adj(const Swelling *w, const Stencils *st, const int h, const Averaged *own, const Real q) {
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

// the q of an application of 1 - A: tr C' of the first, its rest of the second
CQ_INLINE Real averaged_rate(const Swelling *w, const int h, const int second) {
  return second ? r_load(w->own + REST * CQ_CHUNK + h) : rate_of(w->next, h);
}

// sums over nodes of w (a, b, a b), and over the slopes of weights of g a + V q b - V a b
CQ_INLINE void gather_rates(const Swelling *w, Stencils *st, const Strides *strides, const int second) {
  LANES_EACH(h) {
    const Averaged of = averaged_of(&w->matter, h);
    const Real q = averaged_rate(w, h, second), none = r_set((real)0), nothing[3] = {none, none, none};
    const Real three[3] = {r_load(w->own + WANTED * CQ_CHUNK + h), of.volume * q, none - of.volume};
    store_three(st, h, MOVE, three);
    store_three(st, h, MOVE_ADJ, nothing);
  }
  for (int l = 0; l < CQ_CHUNK; l++) {
    const real *at = (const real *)w->s->grid_v + 4 * (int64_t)st->node[l];
    gather_adj(&st->records[l], at, at, strides);
  }
}

// The second application of 1 - A backward, with EXCESS: the trace that F' has beside that of C'; then the first one,
// whose dL/dq is that of the trace of C'.
static void dilatation_adj(cq_scene *s, const cq_slice *in, const cq_slice *out, int32_t range, int32_t second) {
  const Strides strides = strides_of(s->arrangement);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const Swelling w = swelling_of(s, in, out, c);
    Stencils st;
    stencils_of(s, w.chunk, &st, 1);
    gather_rates(&w, &st, &strides, second);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&w.matter, h);
      const Real q = averaged_rate(&w, h, second), grad = rest_adj(&w, &st, h, &of, q);
      if (second) {
        r_store(w.own + EXCESS * CQ_CHUNK + h, (real)(-1.0 / CQ_DIM) * of.share * rest_of(&st, h, &of, q));
        r_store(w.own + WANTED * CQ_CHUNK + h, grad);
        give_rate(&st, h, &of, rate_of(w.next, h), grad);
        continue;
      }
      EACH(i) {
        real *at = w.adj + (C + i * CQ_DIM + i) * CQ_CHUNK + h;
        r_store(at, r_load(at) + grad);
      }
    }
    if (second) scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}

// what places get of it, after g2p_adj has read what is wanted of those at the step's end
static void dilatation_places_adj(cq_scene *s, int32_t range) {
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    real *at = (real *)s->adj + AT(c, FIELDS, X);
    const real *more = dilatation_of(s, c) + PLACE * CQ_CHUNK;
    for (int k = 0; k < CQ_DIM * CQ_CHUNK; k++) at[k] += more[k];
  }
}
