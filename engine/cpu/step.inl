// step: particles to grid, and grid to particles. One engine step is p2g, the grid pass (grid.inl), g2p.

// Returns the mask of the materials in a chunk that change F or internal variables after a step, bit k: material k.
CQ_INLINE uint32_t updating(const Matter *m) {
  uint32_t mask = 0;
  for (int k = 0; m->materials >> k; k++)
    if ((m->materials >> k & 1) && cq_material_updates(&m->model->materials[k])) mask |= 1u << k;
  return mask;
}

// After G2P: lets the material laws change F (in data, a chunk of the new state) and internal variables of a chunk's
// particles, in place: plastic flow, a fluid's F, Maxwell branches.
CQ_RARE void update_chunk(const Matter *m, real *data, real *internal) {
  const uint32_t mask = updating(m);
  const int internals = m->model->internal_count;
  LANES_EACH(h)
    for (int k = 0; mask >> k; k++) {
      if (!(mask >> k & 1)) continue;
      MaterialPoint at;
      Real def[CQ_DIM][CQ_DIM];
      load_matrix(data, F, h, def);
      point_of(m, &m->model->materials[k], h, def, &at);
      material_update(&at);
      const Real mine = is_material(m, k, h);
      EACH(i) EACH(j) def[i][j] = r_pick(mine, at.f[i][j], def[i][j]);
      store_matrix(data, F, h, def);
      for (int q = 0; q < internals; q++) {
        real *to = internal + q * CQ_CHUNK + h;
        r_store(to, r_pick(mine, at.internal[q], r_load(to)));
      }
    }
}

// Returns the slab of a range of chunks, the array of nodes that its particles alone scatter to, whichever worker has
// the range, shifted so that node indices of the arrangement's window address it.
CQ_INLINE real *slab_of(const cq_scene *s, const int32_t range) {
  const cq_arrangement *a = s->arrangement;
  const int64_t plane = CQ_DIM == 3 ? (int64_t)a->size[1] * a->size[2] : a->size[1];
  return (real *)s->slab[range] - (int64_t)a->slab_lower[range] * plane * 4;
}

// Returns the second slab of a range of chunks, for the momentum before stress and forces (E121), shifted as slab_of.
CQ_INLINE real *inertia_slab_of(const cq_scene *s, const int32_t range) {
  return (real *)s->inertia_slab[range] + (slab_of(s, range) - (real *)s->slab[range]);
}

// a running scatter to a grid: current is the first node of the rows that collect the particles of one cell
typedef struct {
  real *grid;
  int64_t current;
  Row rows[ROWS];
} Scatter;

// Begins the scatter of a range's particles: `to` gets the range's slab, and rows of zeros.
CQ_INLINE void scatter_begin(Scatter *to, const cq_scene *s, const int32_t range) {
  to->grid = slab_of(s, range);
  to->current = -1;
  CQ_UNROLL for (int k = 0; k < ROWS; k++) to->rows[k] = row_zero();
}

// Prepares `to` for a particle whose stencil begins at `node`: if that is not the current one, adds the collected rows
// to the slab and starts with rows of zeros. Particles of a cell thus share their rows.
CQ_INLINE void scatter_to(Scatter *to, const Strides *strides, const int32_t node) {
  if (node == to->current) return;
  if (to->current >= 0) rows_flush(to->grid + 4 * to->current, strides, to->rows);
  to->current = node;
}

// Ends a scatter: adds the rows that are still collected to the slab.
CQ_INLINE void scatter_end(Scatter *to, const Strides *strides) {
  if (to->current >= 0) rows_flush(to->grid + 4 * to->current, strides, to->rows);
}

// Returns what transfers read of a scene, as reals: cell size, time step, and the share of unresolved motion that a
// step keeps.
CQ_INLINE GridStep grid_step_of(const cq_scene *s) {
  return (GridStep){(real)s->model->dx, (real)s->model->dt, (real)s->model->keep};
}

// Returns chunk c of the motion v' and C' by which the step to the state `out` moved its particles, addressed by V and
// C as a chunk of a state; its other fields may not exist.
CQ_INLINE real *motion_of(const cq_slice *out, const int32_t c) {
  return out->motion ? (real *)out->motion + AT(c, MOTION_FIELDS, 0) - V * CQ_CHUNK
                     : (real *)out->data + AT(c, FIELDS, 0);
}

// Sets p to what transfer_to_grid reads of particles h, h + 1, ... of a chunk, from their constants, state and forces;
// arm: from the particle to its middle node [cells], f: the F that surface pressures follow, tau: Kirchhoff stress. tau
// is a variable of its own until here, because functions that are not inlined take its address: as a part of the Source
// it would put all of the Source on the stack.
CQ_INLINE void source_of(const Matter *m, const int h, const Real arm[CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                         const Real tau[CQ_DIM][CQ_DIM], Source *p) {
  EACH(i) p->arm[i] = arm[i];
  p->mass = param(m, CQ_PARAM_MASS, h);
  p->volume = param(m, CQ_PARAM_VOLUME, h);
  load_vector(m->state, V, h, p->v);
  load_matrix(m->state, C, h, p->c);
  EACH(i) EACH(j) p->tau[i][j] = tau[i][j];
  force_of(m, h, f, p->force);
}

// Sets velocity and C of p to 0: in steps without inertia particles bring none to the nodes. p may be a gradient.
CQ_INLINE void source_still(Source *p) {
  EACH(i) {
    p->v[i] = r_set((real)0);
    EACH(j) p->c[i][j] = p->v[i];
  }
}

// Scatters the records `given` of a chunk's particles with the weights in the records `weighed`. node {16}: first nodes
// of their stencils. A loop of its own, so that its rows stay in registers.
CQ_INLINE void scatter_beside(Scatter *to, const Strides *strides, const Record *given, const Record *weighed,
                              const int32_t *node) {
  for (int l = 0; l < CQ_CHUNK; l++) {
    scatter_to(to, strides, node[l]);
    scatter_by(to->rows, &given[l], weights_of(&weighed[l]));
  }
}

// Begins the scatter of a range to its second slab: of momentum before stress and forces (E121), or of its adjoint.
CQ_INLINE void inertia_scatter_begin(Scatter *to, const cq_scene *s, const int32_t range) {
  scatter_begin(to, s, range);
  to->grid = inertia_slab_of(s, range);
}

// P2G of a range of chunks (E2, E4): adds momentum and mass of its particles to its slab. Sets found->bad to 1 if a
// particle has det F <= 0, else 0. keeps 1: also adds momentum before stress and forces (E121) to its second slab.
CQ_INLINE void p2g_range(cq_scene *s, const cq_slice *in, int32_t range, cq_found *found, const int keeps) {
  const cq_arrangement *a = s->arrangement;
  const real inv_dx = (real)(1 / s->model->dx);
  const GridStep step = grid_step_of(s);
  const Strides strides = strides_of(a);
  real *grid = slab_of(s, range);
  Row rows[ROWS];
  CQ_UNROLL for (int k = 0; k < ROWS; k++) rows[k] = row_zero();
  int64_t current = -1;
  Scatter inertia;
  if (keeps) inertia_scatter_begin(&inertia, s, range);
  Real smallest = r_set((real)1);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    const Matter matter = matter_of(s, in, c);
    Record records[CQ_CHUNK] __attribute__((aligned(64)));
    Record inertias[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      place(chunk, h, inv_dx, base, f, arm);
      nodes_store(a, node, h, base);
      weights_store(records + h, f, 0);
      Source p;
      Real def[CQ_DIM][CQ_DIM], tau[CQ_DIM][CQ_DIM];
      load_matrix(chunk, F, h, def);
      MaterialKept kept;
      const Real jac = stress_of(&matter, h, def, &kept, tau);
      smallest = r_pick(smallest - jac, jac, smallest);
      source_of(&matter, h, arm, def, tau, &p);
      Exchange give;
      transfer_to_grid(&step, &p, &give);
      move_store(records + h, MOVE, &give);
      if (keeps) {
        transfer_inertia(&step, &p, &give);
        give.m = r_set((real)0);
        move_store(inertias + h, MOVE, &give);
      }
    }
    // particles of one cell follow each other: their rows stay in registers
    for (int l = 0; l < CQ_CHUNK; l++) {
      prefetch_next(chunk, FIELDS, 0, FIELDS, l);
      if (node[l] != current) {
        if (current >= 0) rows_flush(grid + 4 * current, &strides, rows);
        current = node[l];
      }
      scatter(rows, &records[l]);
    }
    if (keeps) scatter_beside(&inertia, &strides, inertias, records, node);
  }
  if (current >= 0) rows_flush(grid + 4 * current, &strides, rows);
  if (keeps) scatter_end(&inertia, &strides);
  found->bad = !(r_smallest(smallest) > 0);
}

// P2G of a range of chunks from the state `in`: calls p2g_range with or without unresolved motion, as the world has it.
static void p2g(cq_scene *s, const cq_slice *in, int32_t range, cq_found *found) {
  if (cq_keeps_unresolved(s->model))
    p2g_range(s, in, range, found, 1);
  else
    p2g_range(s, in, range, found, 0);
}

// Stores x as field number `field` of particles h, h + 1, ... of a chunk; stream: 1 bypasses the caches.
CQ_INLINE void write(real *chunk, const int field, const int h, const Real x, const int stream) {
  if (stream)
    r_stream(chunk + field * CQ_CHUNK + h, x);
  else
    r_store(chunk + field * CQ_CHUNK + h, x);
}

// Sets out to v and C of particles h, h + 1, ... of a chunk.
CQ_INLINE void motion_load(const real *chunk, const int h, Motion *out) {
  load_vector(chunk, V, h, out->v);
  load_matrix(chunk, C, h, out->c);
}

// (E123) Adds the unresolved motion of particles h, h + 1, ... of a chunk (the state before the step) to `after`: v'
// and C' become v'' and C''. motion: a chunk that takes v' and C', or NULL; seen: v~ and C~, the resolved part.
CQ_INLINE void keep_in_state(const GridStep *step, const real *chunk, real *motion, const int h, const Motion *seen,
                             State *after) {
  Motion before, moved, next;
  motion_load(chunk, h, &before);
  EACH(i) moved.v[i] = after->v[i];
  EACH(i) EACH(j) moved.c[i][j] = after->c[i][j];
  keep_unresolved(step, &before, seen, &moved, &next);
  if (motion) {
    store_vector(motion, V, h, moved.v);
    store_matrix(motion, C, h, moved.c);
  }
  EACH(i) after->v[i] = next.v[i];
  EACH(i) EACH(j) after->c[i][j] = next.c[i][j];
}

enum { G2P_PLAIN, G2P_STREAM, G2P_KEEP };

// G2P of a range of chunks (E13): computes the state `out` from the state `in` and node velocities, with the laws'
// updates. Sets found->fastest, and found->bad to 1 if something is not finite. how: G2P_STREAM: the state is larger
// than the caches, and is written past them; G2P_KEEP: with unresolved motion (E123); else G2P_PLAIN.
CQ_INLINE void g2p_range(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, cq_found *found,
                         const int how) {
  const int stream = how == G2P_STREAM, keeps = how == G2P_KEEP;
  const cq_arrangement *a = s->arrangement;
  const real inv_dx = (real)(1 / s->model->dx);
  const GridStep step = grid_step_of(s);
  const Strides strides = strides_of(a);
  const real *grid = (const real *)s->grid_v, *inertia = (const real *)s->inertia_v;
  Real fastest = r_set((real)0), poison = r_set((real)0);
  for (int32_t c = s->range_start[range]; c < s->range_start[range + 1]; c++) {
    const real *chunk = (const real *)in->data + AT(c, FIELDS, 0);
    real *next = (real *)out->data + AT(c, FIELDS, 0);
    Record records[CQ_CHUNK] __attribute__((aligned(64)));
    Record inertias[CQ_CHUNK] __attribute__((aligned(64)));
    int32_t node[CQ_CHUNK] __attribute__((aligned(64)));
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      place(chunk, h, inv_dx, base, f, arm);
      nodes_store(a, node, h, base);
      weights_store(records + h, f, 0);
    }
    for (int l = 0; l < CQ_CHUNK; l++) {
      if (!stream) prefetch_next(next, FIELDS, 0, FIELDS, l);
      gather(&records[l], grid + 4 * (int64_t)node[l], &strides);
    }
    for (int l = 0; keeps && l < CQ_CHUNK; l++)
      gather_by(&inertias[l], weights_of(&records[l]), inertia + 4 * (int64_t)node[l], &strides);
    LANES_EACH(h) {
      Real base[CQ_DIM], f[CQ_DIM], arm[CQ_DIM];
      Sums sums;
      State before, after;
      place(chunk, h, inv_dx, base, f, arm);
      sums_load(records + h, &sums);
      load_vector(chunk, X, h, before.x);
      load_matrix(chunk, F, h, before.f);
      transfer_to_particle(&step, arm, &sums, &before, &after);
      EACH(i) fastest = r_max(fastest, r_abs(after.v[i]));
      if (keeps) {
        Motion seen;
        sums_load(inertias + h, &sums);
        motion_seen(&step, arm, &sums, &seen);
        keep_in_state(&step, chunk, out->motion ? motion_of(out, c) : NULL, h, &seen, &after);
      }
      EACH(i) {
        write(next, X + i, h, after.x[i], stream);
        write(next, V + i, h, after.v[i], stream);
        EACH(j) write(next, C + i * CQ_DIM + j, h, after.c[i][j], stream);
        EACH(j) write(next, F + i * CQ_DIM + j, h, after.f[i][j], stream);
        // stays zero unless something is not finite
        poison += (real)0 * after.x[i];
        EACH(j) poison += (real)0 * after.f[i][j];
      }
    }
    if (s->updates) {
      const Matter matter = matter_of(s, in, c);
      real *internal = out->internal ? (real *)out->internal + AT(c, s->model->internal_count, 0) : NULL;
      if (internal)
        memcpy((void *)internal, (const void *)matter.internal,
               sizeof(real) * CQ_CHUNK * (size_t)s->model->internal_count);
      if (updating(&matter)) update_chunk(&matter, next, internal);
    }
  }
  if (stream) stream_end();
  found->fastest = (double)s_value(r_largest(fastest));
  if (!r_finite(poison)) found->bad = 1;
}

// G2P of a range of chunks from the state `in` to the state `out`: calls g2p_range in the variant for unresolved
// motion, for states larger than the caches, or the plain one.
static void g2p(cq_scene *s, const cq_slice *in, cq_slice *out, int32_t range, cq_found *found) {
  if (cq_keeps_unresolved(s->model))
    g2p_range(s, in, out, range, found, G2P_KEEP);
  else if ((double)s->chunks * CQ_CHUNK * FIELDS * sizeof(real) > CQ_STREAM_BYTES && !s->updates)
    g2p_range(s, in, out, range, found, G2P_STREAM);
  else
    g2p_range(s, in, out, range, found, G2P_PLAIN);
}
