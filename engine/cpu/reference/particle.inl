// particle: at the start of a rollout, weights, masses and the first state of the nodes from particles; and particles
// from nodes, for readouts.
//   m = sum N m_p,  v = sum N m_p (v_p + C_p (X - X_p)) / m                  (E110, E111)
//   x = X_p + sum N u,  v = sum N v,  C = sum v (x) grad N (I + sum u (x) grad N)^-1            (E114)

// Sets index to the coordinates of a node in the lattice of its body's grid, counted from the grid's first node.
CQ_INLINE void indices_of(const cq_body *body, int64_t node, int64_t index[CQ_DIM]) {
  node -= body->first;
  EACH(i) {
    index[i] = node / body->stride[i];
    node %= body->stride[i];
  }
}

// the stencil of one particle on its body's reference grid
typedef struct {
  int32_t slot;
  int64_t node;              // of its cell
  const cq_body *body;
  real w[CQ_DIM][3];
} Placed;

// Sets p->w, the B-spline weights of the particle in slot p->slot along each axis, by its place in its cell.
CQ_INLINE void placed_weights(const cq_scene *s, Placed *p) {
  const real *fraction = (const real *)s->reference.fraction;
  EACH(i) {
    const real f = *slot_at((real *)fraction, CQ_DIM, p->slot, i), a = (real)0.5 - f, c = (real)0.5 + f;
    p->w[i][0] = (real)0.5 * a * a;
    p->w[i][1] = (real)0.75 - f * f;
    p->w[i][2] = (real)0.5 * c * c;
  }
}

// The number of node k, 0 to 3^dim - 1, last axis fastest, of a particle's stencil.
CQ_INLINE int64_t placed_node(const Placed *p, const int k) {
#if CQ_DIM == 3
  return p->node + (k / 9 - 1) * p->body->stride[0] + (k / 3 % 3 - 1) * p->body->stride[1] + k % 3 - 1;
#else
  return p->node + (k / 3 - 1) * p->body->stride[0] + k % 3 - 1;
#endif
}
// The B-spline weight of node k (placed_node) of a particle's stencil.
CQ_INLINE real placed_weight(const Placed *p, const int k) {
#if CQ_DIM == 3
  return p->w[0][k / 9] * p->w[1][k / 3 % 3] * p->w[2][k % 3];
#else
  return p->w[0][k / 3] * p->w[1][k % 3];
#endif
}
enum { TOUCHED = CQ_DIM == 3 ? 27 : 9 };

// The derivative of the weight of node k (placed_node) of a particle's stencil by the particle's place in its cell
// [cells] along an axis.
CQ_INLINE double placed_slope(const cq_scene *s, const Placed *p, const int k, const int axis) {
  const int at[3] = {CQ_DIM == 3 ? k / 9 : k / 3, CQ_DIM == 3 ? k / 3 % 3 : k % 3, k % 3};
  double slope = 1;
  EACH(a) {
    const double f = (double)s_value(*slot_at((real *)s->reference.fraction, CQ_DIM, p->slot, a));
    const double d[3] = {f - 0.5, -2 * f, f + 0.5};
    slope *= a == axis ? d[at[a]] : (double)s_value(p->w[a][at[a]]);
  }
  return slope;
}

// Sets r->origin to the place of the first node of each body's grid, which moves with the mean of the body's particles
// in r->seen; and r->rest to the undeformed places of all nodes.
static void set_origins(cq_scene *s) {
  const cq_model *m = s->model;
  const cq_reference *r = &s->reference;
  real *origin = (real *)r->origin;
  for (int32_t b = 0; b < r->body_count; b++) EACH(i) {
    wide sum = (wide)0;
    for (int64_t p = 0; p < m->particle_count; p++)
      if (r->body_of[p] == b)
        sum = sum + (wide)*slot_at((real *)r->seen->data, FIELDS, s->arrangement->slot[p], X + i) -
              (wide)(real)m->position[p * CQ_DIM + i];
    origin[b * CQ_DIM + i] = (real)(sum / (wide)r->bodies[b].particles + (wide)r->bodies[b].origin[i]);
  }
  for (int32_t b = 0; b < r->body_count; b++) {
    const int64_t end = b + 1 < r->body_count ? r->bodies[b + 1].first : r->node_count;
    for (int64_t node = r->bodies[b].first; node < end; node++) {
      int64_t index[CQ_DIM];
      indices_of(&r->bodies[b], node, index);
      EACH(i) ((real *)r->rest)[i * r->node_count + node] = origin[b * CQ_DIM + i] + (real)(index[i] * m->dx);
    }
  }
}

// Sets for every particle in r->seen its place in its cell (r->fraction), its undeformed place (r->place) and F0, its F
// there (r->start); r->started to 1 if some F0 is not the identity, or its gradient is wanted, else 0.
static void set_places(cq_scene *s) {
  cq_reference *r = &s->reference;
  const real inv_dx = (real)(1 / s->model->dx);
  r->started = 0;
  for (int32_t k = 0; k < r->cells_count; k++) {
    const cq_cells *cells = &r->cells[k];
    for (int32_t slot = cells->chunk * CQ_CHUNK; slot < (cells->chunk + cells->chunks) * CQ_CHUNK; slot++) {
      const int64_t node = cq_cells_node(cells, slot % CQ_CHUNK);
      const int here = r->order[slot] >= 0;
      EACH(i) {
        const real x = *slot_at((real *)r->seen->data, FIELDS, slot, X + i);
        real at = (real)0;
        if (here) at = inv_dx * (x - nodes_of(s, r->rest, i)[node]);
#if !defined(CQ_REAL_DUAL)
        // in a lattice exactly, without the rounding of places
        if (here && cells->lattice) at = at > 0 ? (real)0.25 : (real)-0.25;
#endif
        *slot_at((real *)r->fraction, CQ_DIM, slot, i) = at;
        *slot_at((real *)r->place, CQ_DIM, slot, i) = x;
        EACH(j) {
          const real f = *slot_at((real *)r->seen->data, FIELDS, slot, F + i * CQ_DIM + j);
          *slot_at((real *)r->start, CQ_DIM * CQ_DIM, slot, i * CQ_DIM + j) = f;
          r->started |= s_value(f) != (i == j);
        }
      }
    }
  }
#if defined(CQ_REAL_DUAL)
  r->started = 1;
#else
  if (s->adj && s->wanted & cq_bit(CQ_FIELD_DEFORMATION)) r->started = 1;
#endif
}

// Sets for each SIMD vector of cells the fused (inlined) law that its particles share (kind, -1: none), and whether
// some particle is viscous or has given forces, by which the passes choose their loops.
static void set_kinds(cq_scene *s) {
  const cq_reference *r = &s->reference;
  const cq_arrangement *a = s->arrangement;
  const uint8_t forcing = (uint8_t)(cq_drive_bit(CQ_DRIVE_FORCE) | cq_drive_bit(CQ_DRIVE_PRESSURE) |
                                    cq_drive_bit(CQ_DRIVE_CABLE) | cq_drive_bit(CQ_DRIVE_CHAMBER));
  for (int32_t k = 0; k < r->cells_count; k++) {
    cq_cells *cells = &r->cells[k];
    cells->kind = -2;        // none yet
    cells->viscous = cells->forced = 0;
    for (int32_t c = cells->chunk; c < cells->chunk + cells->chunks; c++) {
      const Matter m = matter_at(s, c);
      const int fused = m.only && material_has_fused_piola(m.only);
      const int kind = fused ? m.only->kind : -1;
      cells->kind = cells->kind == -2 || cells->kind == kind ? kind : -1;
      cells->forced |= (a->actuated[c] & forcing) != 0;
      for (int q = 0; m.materials >> q; q++)
        cells->viscous |= (m.materials >> q & 1) && s->model->materials[q].viscous;
    }
  }
}

// (E110, E111) Adds the mass of the particle with the stencil p, by its weights, to r->mass of its nodes, and its
// momentum there to the velocities in `out`, which prepare() divides by mass.
static void give_mass(cq_scene *s, cq_slice *out, const Placed *p) {
  const cq_reference *r = &s->reference;
  const real *state = (const real *)r->seen->data;
  real *mass = (real *)r->mass, v[CQ_DIM], c[CQ_DIM][CQ_DIM], place[CQ_DIM];
  const real m = *slot_at((real *)s->arrangement->params, s->params, p->slot, CQ_PARAM_MASS);
  EACH(i) v[i] = *slot_at((real *)state, FIELDS, p->slot, V + i);
  EACH(i) EACH(j) c[i][j] = *slot_at((real *)state, FIELDS, p->slot, C + i * CQ_DIM + j);
  EACH(i) place[i] = *slot_at((real *)r->place, CQ_DIM, p->slot, i);
  for (int k = 0; k < TOUCHED; k++) {
    const int64_t node = placed_node(p, k);
    const real nm = placed_weight(p, k) * m;
    real from[CQ_DIM];
    EACH(j) from[j] = nodes_of(s, r->rest, j)[node] - place[j];
    mass[node] = mass[node] + nm;
    EACH(i) {
      real at = v[i];
      EACH(j) at = at + c[i][j] * from[j];
      real *to = (real *)out->nodes + (W + i) * r->node_count + node;
      *to = *to + nm * at;
    }
  }
}

// The stencil of the particle in a slot of the vector of cells `cells`: node of its cell, body and B-spline weights.
static Placed placed_at(const cq_scene *s, const cq_cells *cells, const int32_t slot) {
  Placed p;
  p.slot = slot;
  p.node = cq_cells_node(cells, slot % CQ_CHUNK);
  p.body = &s->reference.bodies[cells->body];
  placed_weights(s, &p);
  return p;
}

// Adds the volume of the particle with the stencil p, by its weights, to its nodes in to {nodes}.
static void give_volume(const cq_scene *s, const Placed *p, real *to) {
  const real volume = *slot_at((real *)s->arrangement->params, s->params, p->slot, CQ_PARAM_VOLUME);
  for (int k = 0; k < TOUCHED; k++) to[placed_node(p, k)] = to[placed_node(p, k)] + placed_weight(p, k) * volume;
}

// Sets r->carried {nodes} to the mass of each node that takes part on the spatial grid, 0 for the others, and the bits
// of these nodes in r->nodes: those around which more than 0.02 of a cell is filled. A node with less has few particles
// at the edge of its reach, and moves far out for little strain of these. Does nothing without spatial particles.
static void set_carriers(cq_scene *s) {
  static const double least = 0.02;
  cq_reference *r = &s->reference;
  real *carried = (real *)r->carried;
  double cell = 1;
  if (!carried) return;
  EACH(i) cell *= s->model->dx;
  for (int64_t k = 0; k < r->node_count; k++) carried[k] = (real)0;
  for (int32_t k = 0; k < r->cells_count; k++) {
    const cq_cells *cells = &r->cells[k];
    for (int32_t slot = cells->chunk * CQ_CHUNK; slot < (cells->chunk + cells->chunks) * CQ_CHUNK; slot++) {
      if (r->order[slot] < 0) continue;
      const Placed p = placed_at(s, cells, slot);
      give_volume(s, &p, carried);
    }
  }
  for (int64_t k = 0; k < r->node_count; k++)
    carried[k] = (double)s_value(carried[k]) > least * cell ? ((const real *)r->mass)[k] : (real)0;
  for (int32_t k = 0; k < r->nodes_count; k++) {
    r->nodes[k].carriers = 0;
    for (int l = 0; l < CQ_REFERENCE_VECTOR; l++)
      if (((const real *)r->carried)[r->nodes[k].node + l] > (real)0) r->nodes[k].carriers |= 1u << l;
  }
}

// At the start of a rollout, from the particles in r->seen: sets places of grids and particles, kinds of cells, masses
// of nodes (E110), and the first state, in `out`: velocities of nodes (E111), displacements of 0.
static void prepare(cq_scene *s, cq_slice *out) {
  cq_reference *r = &s->reference;
  set_origins(s);
  set_places(s);
  set_kinds(s);
  for (int64_t k = 0; k < 2 * CQ_DIM * r->node_count; k++) ((real *)out->nodes)[k] = (real)0;
  for (int64_t k = 0; k < r->node_count; k++) ((real *)r->mass)[k] = (real)0;
  for (int32_t k = 0; k < r->cells_count; k++) {
    const cq_cells *cells = &r->cells[k];
    for (int32_t slot = cells->chunk * CQ_CHUNK; slot < (cells->chunk + cells->chunks) * CQ_CHUNK; slot++) {
      if (r->order[slot] < 0) continue;
      const Placed p = placed_at(s, cells, slot);
      give_mass(s, out, &p);
    }
  }
  for (int64_t k = 0; k < r->node_count; k++) {
    const real m = ((const real *)r->mass)[k];
    real by = (real)0;
    if (m > (real)0) by = (real)1 / m;
    ((real *)r->inverse)[k] = by;
    EACH(i) {
      real *v = (real *)out->nodes + (W + i) * r->node_count + k;
      *v = by * *v;
    }
  }
  set_carriers(s);
}

// ---- particles for readouts -----------------------------------------------------------------------------------------

// (E114) For readouts: sets the particles (x, v, C and F) of a range in r->seen, from displacements and velocities of
// the nodes in the state `in`.
static void observe(cq_scene *s, const cq_slice *in, int32_t range) {
  const cq_reference *r = &s->reference;
  for (int32_t k = r->cells_start[range]; k < r->cells_start[range + 1]; k++) LANES_EACH(h) {
    const Cells c = cells_of(s, &r->cells[k], h);
    Around u, v;
    around_load(&c, nodes_of(s, in->nodes, U), &u);
    around_load(&c, nodes_of(s, in->nodes, W), &v);
    for (int32_t chunk = r->cells[k].chunk; chunk < r->cells[k].chunk + r->cells[k].chunks; chunk++) {
      real *to = (real *)r->seen->data + AT(chunk, FIELDS, 0);
      const Matter m = matter_at(s, chunk);
      const Point at = {s, &m, chunk, h, -1, 0, NONE_WANTED};
      Weights w;
      Real value[CQ_DIM], slope[CQ_DIM][CQ_DIM], stretch[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM], x[CQ_DIM];
      weights_of(&c, chunk, &w);
      field_at(&u, &w, value, slope);
      deform(&at, slope, stretch, f);
      load_vector((const real *)r->place + AT(chunk, CQ_DIM, 0), 0, h, x);
      EACH(i) x[i] += value[i];
      store_vector(to, X, h, x);
      store_matrix(to, F, h, f);
      field_at(&v, &w, value, slope);
      store_vector(to, V, h, value);
      rate_in_space(slope, stretch, f);
      store_matrix(to, C, h, f);
    }
  }
}

// ---- surfaces -------------------------------------------------------------------------------------------------------

// Sets x {dim} to the place of a node in the state `in` [length]. node: its number among all bodies' nodes.
static void rim_node(const cq_scene *s, const cq_slice *in, int64_t node, double x[3]) {
  EACH(i) x[i] = (double)s_value(nodes_of(s, s->reference.rest, i)[node] + nodes_of(s, in->nodes, U + i)[node]);
}

// Sets r->rim_place: where the nodes at the surfaces of bodies are in the state `in`, and the edges of the cells around
// them, to find surfaces that meet.
static void observe_rim(cq_scene *s, const cq_slice *in) {
  const cq_reference *r = &s->reference;
  for (int32_t k = 0; k < r->rim_count; k++) {
    const int64_t node = r->rim[k].node, *stride = r->bodies[r->rim[k].body].stride;
    double at[3], before[3][3], after[3][3];
    rim_node(s, in, node, at);
    EACH(j) rim_node(s, in, node - stride[j], before[j]);
    EACH(j) rim_node(s, in, node + stride[j], after[j]);
    touch_place(CQ_DIM, s->model->dx, at, before, after, &r->rim_place[k]);
  }
}
