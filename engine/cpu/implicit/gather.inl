// gather: how the particles of a range gather from the nodes of the window and scatter to them, chunk by chunk: for
// implicit steps and for averaged dilatations.

// One of the solve's vectors over nodes, number `which` of cq_grid_vector, four reals a node.
CQ_INLINE real *grid_vector(const cq_scene *s, const int which) { return (real *)s->implicit.vector[which]; }

typedef struct {
  Record records[CQ_CHUNK] __attribute__((aligned(64)));
  int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
} Stencils;

// Sets st to B-spline weights and first stencil nodes of a chunk's particles; chunk: their state. slopes: 1 also sets
// the slopes of the weights, which gather_adj reads.
CQ_INLINE void stencils_of(const cq_scene *s, const real *chunk, Stencils *st, const int slopes) {
  const real inv_dx = (real)(1 / s->model->dx);
  LANES_EACH(h) {
    Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
    place(chunk, h, inv_dx, base, f, arm);
    nodes_store(s->arrangement, st->node, h, base);
    weights_store(st->records + h, f, slopes);
  }
}

// the B-spline weights of a particle along each axis, three and a 0, as they are kept for all passes of a step
typedef real KeptWeights[CQ_DIM][4];

// Keeps the weights and first nodes in st of the particles of chunk c for the whole step, whose iterations do not move
// particles.
CQ_INLINE void stencils_keep(const cq_scene *s, const int32_t c, const Stencils *st) {
  KeptWeights *to = (KeptWeights *)s->implicit.weight + c * CQ_CHUNK;
  for (int l = 0; l < CQ_CHUNK; l++) {
    memcpy((void *)to[l], (const void *)st->records[l].quad[WEIGHT], sizeof to[l]);
    s->implicit.node[c * CQ_CHUNK + l] = st->node[l];
  }
}

// For each particle of a chunk: gathers sums of w v over its stencil, and of w v o, into its record in st; v: in grid,
// a vector over nodes, o: a node's offset from the middle one.
CQ_INLINE void gather_chunk(Stencils *st, const real *grid, const Strides *strides) {
  for (int l = 0; l < CQ_CHUNK; l++) gather(&st->records[l], grid + 4 * (int64_t)st->node[l], strides);
}

// The B-spline weights {16} of the particles of chunk c, kept for all products of a step.
CQ_INLINE const KeptWeights *kept_weights(const cq_scene *s, const int32_t c) {
  return (const KeptWeights *)s->implicit.weight + c * CQ_CHUNK;
}
// The first nodes {16} of the stencils of chunk c, kept for all products of a step.
CQ_INLINE const int32_t *kept_nodes(const cq_scene *s, const int32_t c) { return s->implicit.node + c * CQ_CHUNK; }

// Does the same as gather_chunk for the particles of chunk c, by the weights and nodes that stencils_keep has kept.
CQ_INLINE void gather_kept(const cq_scene *s, const int32_t c, Stencils *st, const real *grid,
                           const Strides *strides) {
  const int32_t *node = kept_nodes(s, c);
  for (int l = 0; l < CQ_CHUNK; l++)
    gather_by(&st->records[l], kept_weights(s, c)[l], grid + 4 * (int64_t)node[l], strides);
}

// Scatters the contributions of a chunk's particles, in the records of st, to their stencil nodes, by the weights
// there.
CQ_INLINE void scatter_chunk(Scatter *to, const Strides *strides, const Stencils *st) {
  for (int l = 0; l < CQ_CHUNK; l++) {
    scatter_to(to, strides, st->node[l]);
    scatter(to->rows, &st->records[l]);
  }
}

// Scatters the contributions of the particles of chunk c, in the records of st, to their stencil nodes, by the weights
// and nodes that stencils_keep has kept.
CQ_INLINE void scatter_kept(const cq_scene *s, const int32_t c, Scatter *to, const Strides *strides,
                            const Stencils *st) {
  const int32_t *node = kept_nodes(s, c);
  for (int l = 0; l < CQ_CHUNK; l++) {
    scatter_to(to, strides, node[l]);
    scatter_by(to->rows, &st->records[l], kept_weights(s, c)[l]);
  }
}

// (E13) Sets c to the affine velocity C of particles h, h + 1, ... of a chunk, from the sums that st has gathered, and
// arm to the position of their stencil's middle node from the particle [cells]. chunk: their state.
CQ_INLINE void affine_of(const cq_scene *s, const real *chunk, const Stencils *st, const int h, Real arm[CQ_DIM],
                         Real c[CQ_DIM][CQ_DIM]) {
  Real base[CQ_DIM], f[CQ_DIM];
  Sums v;
  place(chunk, h, (real)(1 / s->model->dx), base, f, arm);
  sums_load(st->records + h, &v);
  EACH(i) EACH(j) c[i][j] = (real)(4 / s->model->dx) * (v.n1[i][j] + v.n0[i] * arm[j]);
}

// (E80) Sets trial to F^ = (I + dt C) F, the deformation gradient after the step: C = c the rate, F = f before it.
CQ_INLINE void trial_of(const cq_scene *s, const Real c[CQ_DIM][CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                        Real trial[CQ_DIM][CQ_DIM]) {
  mat_mul(c, f, trial);
  EACH(i) EACH(j) trial[i][j] = f[i][j] + (real)s->model->dt * trial[i][j];
}

// Stores in the records of particles h, h + 1, ... of a chunk what they scatter: w b (o + arm) to the stencil's node at
// offset o from the middle one.
CQ_INLINE void store_slope(Stencils *st, const int h, const Real arm[CQ_DIM], const Real b[CQ_DIM][CQ_DIM]) {
  Exchange give;
  give.m = r_set((real)0);
  EACH(i) {
    give.q[i] = b[i][0] * arm[0];
    CQ_UNROLL for (int j = 1; j < CQ_DIM; j++) give.q[i] += b[i][j] * arm[j];
    EACH(j) give.b[i][j] = b[i][j];
  }
  move_store(st->records + h, MOVE, &give);
}
