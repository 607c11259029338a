// dilatation: the rate of volume change of a solid's particles, averaged over the grid before F takes it (E37). Four
// particles of a cell that must each keep their volume leave the two components of a node no way to bend: the grid
// locks. With the mean of a cell in the place of each they have one volume to keep for each node.
//   (A q)_p = sum_i w_ip a_i, a_i = sum_p w_ip V_p q_p / sum_p w_ip V_p           as that of liquids (E49, volume.inl)
//   F' = (I + dt (C' - s/dim y I)) F, y = (1 - A)(1 - A) tr C'
//
// Particles give nodes what they know in one pass and take means in the next, with slabs, columns and the order of sums
// of p2g. A node holds three numbers: the mean a, for the adjoint b, the same of what is wanted of y, and a b.

enum { REST, EXCESS, WANTED, PLACE, DILATATION_FIELDS = CQ_DILATATION_FIELDS };

// Returns the array {nodes, 4} in which the means over nodes lie while dilatations are averaged: that of the node
// velocities, or, in implicit steps, whose velocities are still read, an array of its own.
CQ_INLINE real *means_of(const cq_scene *s) {
  return cq_is_implicit(s->model) ? grid_vector(s, CQ_GRID_MEANS) : (real *)s->grid_v;
}

typedef struct {
  Real share, volume;        // 0 of materials whose dilatation is their own
} Averaged;

// Returns, for particles h, h + 1, ... of a chunk, the share s of their dilatation that is averaged (E37), and their
// volume, the weight in means; both 0 where nothing is averaged.
CQ_INLINE Averaged averaged_of(const Matter *m, const int h) {
  Averaged out;
  const double *share = m->model->f_bar;
  if (m->only) {
    out.share = r_set((real)share[m->only - m->model->materials]);
  } else {
    real lane[CQ_LANES] __attribute__((aligned(64)));
    for (int l = 0; l < CQ_LANES; l++) lane[l] = (real)share[m->material[h + l]];
    out.share = r_load(lane);
  }
  out.volume = r_pick(out.share, param(m, CQ_PARAM_VOLUME, h), r_set((real)0));
  return out;
}

// Returns what averaging keeps for the particles of chunk c, {DILATATION_FIELDS, 16}: REST (1 - A) q, EXCESS on the
// diagonal of C', WANTED dL/dy, and PLACE, gradients of positions.
CQ_INLINE real *dilatation_of(const cq_scene *s, const int32_t c) {
  return (real *)s->dilatation + AT(c, DILATATION_FIELDS, 0);
}

// Stores three numbers of particles h, h + 1, ... in their records, the work memory of scatter and gather, from quad
// `quad` (four reals) on, as values without slopes: a scatter then adds weight times number to each node.
CQ_INLINE void store_three(Stencils *st, const int h, const int quad, const Real three[3]) {
  Exchange give;
  const Real zero = three[0] - three[0];
  give.m = zero;
  EACH(i) {
    give.q[i] = three[i];
    EACH(j) give.b[i][j] = zero;
  }
  if (CQ_DIM == 2)
    give.m = three[2];
  else
    give.q[CQ_DIM - 1] = three[2];
  move_store(st->records + h, quad, &give);
}

// Stores what particles h, h + 1, ... scatter for a mean over nodes: V q of their rate q, the gradient `wanted` (0 in a
// step forward), and the volume V.
CQ_INLINE void give_rate(Stencils *st, const int h, const Averaged *own, const Real q, const Real wanted) {
  const Real three[3] = {own->volume * q, wanted, own->volume};
  store_three(st, h, MOVE, three);
}

// The rate of dilatation tr C' of particles h, h + 1, ... of a chunk; next: the chunk after the step, which has C'.
CQ_INLINE Real rate_of(const real *next, const int h) {
  Real sum = r_load(next + C * CQ_CHUNK + h);
  for (int i = 1; i < CQ_DIM; i++) sum += r_load(next + (C + i * CQ_DIM + i) * CQ_CHUNK + h);
  return sum;
}

// (1 - A) q of particles h, h + 1, ...: their rate q less its mean over the grid, A q, which their records have
// gathered; 0 for particles whose dilatation is not averaged.
CQ_INLINE Real rest_of(const Stencils *st, const int h, const Averaged *own, const Real q) {
  Real sum[4];
  quads_load(st->records + h, SUM, sum);
  return r_pick(own->share, q - sum[0], r_set((real)0));
}

// (E38) Between two passes over particles, for a block of columns: turns the sums that particles have scattered into
// three numbers of each node: mean a of the rate, mean b of the gradient `wanted`, and a b. Clears the slabs.
static void dilatation_nodes(cq_scene *s, int32_t block) {
  const real two[4] = {(real)1, (real)1, (real)0, (real)0}, third[4] = {(real)0, (real)0, (real)1, (real)0};
  const Row means = row_comps(two), last = row_comps(third);
  real *to = means_of(s), *slab[CQ_RANGES_MAX];
  for (int r = 0; r < s->ranges; r++) slab[r] = slab_of(s, r);
  COLUMNS_EACH(s, block, column) {
    const Slabs slabs = slabs_at(slab, column);
    COLUMN_ROWS(column, at) {
      const Row sum = slabs_take(&slabs, at - 4 * column->node);
      const Row mean = row_mul(sum, row_inverse(row_comp(sum, 2))), a = row_comp(mean, 0), b = row_comp(mean, 1);
      row_store(to + at, row_fma(row_mul(a, b), last, row_mul(mean, means)));
    }
  }
}

// (E37) One pass over the particles of a range of chunks in the averaging of a step's dilatation: pass 0 scatters their
// rates, pass 1 the rates less their mean, pass 2 corrects F of out by y. dilatation_nodes comes after 0 and 1. in,
// out: states before and after the step.
static void dilatation(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, int32_t pass) {
  const real dt = (real)s->model->dt;
  const Strides strides = strides_of(s->arrangement);
  const Real none = r_set((real)0);
  Scatter to;
  scatter_begin(&to, s, range);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    real *next = (real *)out->data + AT(c, FIELDS, 0), *own = dilatation_of(s, c);
    const real *moved = motion_of(out, c);
    const Matter matter = matter_of(s, in, c);
    Stencils st;
    stencils_of(s, chunk, &st, 0);
    if (pass) gather_chunk(&st, means_of(s), &strides);
    LANES_EACH(h) {
      const Averaged of = averaged_of(&matter, h);
      if (pass == 0) {
        give_rate(&st, h, &of, rate_of(moved, h), none);
      } else if (pass == 1) {
        const Real rest = rest_of(&st, h, &of, rate_of(moved, h));
        r_store(own + REST * CQ_CHUNK + h, rest);
        give_rate(&st, h, &of, rest, none);
      } else {
        const Real rest = rest_of(&st, h, &of, r_load(own + REST * CQ_CHUNK + h));
        const Real scale = (real)(-1.0 / CQ_DIM) * dt * of.share * rest;
        Real def[CQ_DIM][CQ_DIM], after[CQ_DIM][CQ_DIM];
        load_matrix(chunk, F, h, def);
        load_matrix(next, F, h, after);
        EACH(i) EACH(j) after[i][j] += scale * def[i][j];
        store_matrix(next, F, h, after);
      }
    }
    if (pass < 2) scatter_chunk(&to, &strides, &st);
  }
  scatter_end(&to, &strides);
}
