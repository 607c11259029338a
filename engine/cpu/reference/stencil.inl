// stencil: between the nodes of a reference grid and the particles of sixteen cells in a row, a lane each. The nodes of
// neighbouring lanes are neighbours too, so that all loads are contiguous.
//
// What cells give to nodes goes to the slab of their range. Along the last axis a cell reaches the node before its own,
// its own, and the one after; each of the three has an array of its own, which is indexed by the cell. So no two stores
// of a vector overlap, and the pass over nodes adds the arrays with a shift of one (node.inl).

enum {
  U = 0, W = CQ_DIM,         // components of a node in a slice: displacement, velocity
  SHIFTS = CQ_REFERENCE_SHIFTS,
  GIVEN = SHIFTS * CQ_DIM,   // arrays of a slab for one vector field
  PLACES = CQ_DIM == 3 ? 9 : 3,   // rows of nodes around a row of cells
};

#if CQ_LANES == 1
#define any_above(c) ((c) > (real)0)
#define r_loadu(p) (*(p))
#define r_storeu(p, x) (*(p) = (x))
#else
typedef real RealU __attribute__((vector_size(CQ_LANES * CQ_REAL_BYTES), may_alias, aligned(CQ_REAL_BYTES)));
#define any_above r_any
CQ_INLINE Real r_loadu(const real *p) { return *(const RealU *)p; }
CQ_INLINE void r_storeu(real *p, const Real x) { *(RealU *)p = x; }
#endif

// Weights of the three nodes around a particle along an axis, their slopes [1/length], and the slopes of the slopes.
typedef struct {
  Real w[3], d[3];
} Axis;

// second derivative of the weights by the place in the cell, times dx
#define SPLINE_BEND {(real)1, (real)-2, (real)1}

// fraction: of a particle from the middle node, in cells
CQ_INLINE void axis_of(const Real fraction, const real inv_dx, Axis *a) {
  const Real f = fraction + (real)1;
  spline(f, a->w);
  spline_slope(f, a->d);
  CQ_UNROLL for (int k = 0; k < 3; k++) a->d[k] *= inv_dx;
}

// vector fields over nodes: component c of field f is at data + (f CQ_DIM + c) nodes
CQ_INLINE const real *nodes_of(const cq_scene *s, const void *data, const int component) {
  return (const real *)data + component * s->reference.node_count;
}

// Cells of a row from lane h on, and where they lie among the nodes.
typedef struct {
  const cq_scene *s;
  int64_t node, stride[2];   // of the row's first cell; along the first axis, in 3D along the second one
  int h;
} Cells;

// The cells of lane group h in a run of cells: first node, and strides of the body's grid.
CQ_INLINE Cells cells_of(const cq_scene *s, const cq_cells *cells, const int h) {
  const cq_body *body = &s->reference.bodies[cells->body];
  return (Cells){s, cells->node, {body->stride[0], CQ_DIM == 3 ? body->stride[1] : 0}, h};
}

// first node of a row around the cells: place is 3 i + j, i and j from 0, or i in 2D
CQ_INLINE int64_t row_of(const Cells *c, const int place) {
#if CQ_DIM == 3
  return c->node + (place / 3 - 1) * c->stride[0] + (place % 3 - 1) * c->stride[1];
#else
  return c->node + (place - 1) * c->stride[0];
#endif
}

// The slab of a range, one vector field of it: array (shift, component), as if it began at node 0.
typedef struct {
  real *first;
  int64_t length;
} Slab;

CQ_INLINE int64_t slab_length(const cq_scene *s, const int32_t range) {
  return s->reference.window_size[range] + 2 * CQ_CHUNK;
}
// A range's slab of nodal sums for a field.
CQ_INLINE Slab slab_at(const cq_scene *s, const int32_t range, const int field) {
  const int64_t length = slab_length(s, range);
  return (Slab){(real *)s->slab[range] + field * GIVEN * length + CQ_CHUNK - s->reference.window[range], length};
}
// The array of one component in a slab; shift: of the node along the last but one axes.
CQ_INLINE real *slab_array(const Slab *slab, const int shift, const int component) {
  return slab->first + (shift * CQ_DIM + component) * slab->length;
}

static void slab_clear(cq_scene *s, const int32_t range, const int fields) {
  const int64_t count = fields * GIVEN * slab_length(s, range);
#if defined(CQ_REAL_DUAL)
  for (int64_t k = 0; k < count; k++) ((real *)s->slab[range])[k] = (real)0;
#else
  memset(s->slab[range], 0, (size_t)count * sizeof(real));
#endif
}

// ---- particles anywhere in their cells ------------------------------------------------------------------------------

typedef struct {
  Axis axis[CQ_DIM];
} Weights;

CQ_INLINE void weights_of(const Cells *c, const int32_t chunk, Weights *w) {
  const real *fraction = (const real *)c->s->reference.fraction + AT(chunk, CQ_DIM, 0) + c->h;
  const real inv_dx = (real)(1 / c->s->model->dx);
  EACH(i) axis_of(r_load(fraction + i * CQ_CHUNK), inv_dx, &w->axis[i]);
}

// sum of N a, and of a (x) grad N, over the nodes: data holds the components of a field one after the other
CQ_INLINE void field_at(const Cells *c, const real *data, const Weights *w, Real value[CQ_DIM],
                        Real slope[CQ_DIM][CQ_DIM]) {
  EACH(i) {
    const real *at = nodes_of(c->s, data, i) + c->h;
#if CQ_DIM == 3
    Real n = r_set((real)0), g0 = n, g1 = n, g2 = n;
    CQ_UNROLL for (int a = 0; a < 3; a++) {
      Real nn = r_set((real)0), nd = nn, dn = nn;
      CQ_UNROLL for (int b = 0; b < 3; b++) {
        const real *row = at + row_of(c, 3 * a + b);
        const Real x = r_loadu(row - 1), y = r_loadu(row), z = r_loadu(row + 1);
        const Real v = w->axis[2].w[0] * x + w->axis[2].w[1] * y + w->axis[2].w[2] * z;
        const Real d = w->axis[2].d[0] * x + w->axis[2].d[1] * y + w->axis[2].d[2] * z;
        nn += w->axis[1].w[b] * v;
        nd += w->axis[1].d[b] * v;
        dn += w->axis[1].w[b] * d;
      }
      n += w->axis[0].w[a] * nn;
      g0 += w->axis[0].d[a] * nn;
      g1 += w->axis[0].w[a] * nd;
      g2 += w->axis[0].w[a] * dn;
    }
    value[i] = n;
    slope[i][0] = g0;
    slope[i][1] = g1;
    slope[i][LAST] = g2;
#else
    Real n = r_set((real)0), g0 = n, g1 = n;
    CQ_UNROLL for (int a = 0; a < 3; a++) {
      const real *row = at + row_of(c, a);
      const Real x = r_loadu(row - 1), y = r_loadu(row), z = r_loadu(row + 1);
      const Real v = w->axis[1].w[0] * x + w->axis[1].w[1] * y + w->axis[1].w[2] * z;
      const Real d = w->axis[1].d[0] * x + w->axis[1].d[1] * y + w->axis[1].d[2] * z;
      n += w->axis[0].w[a] * v;
      g0 += w->axis[0].d[a] * v;
      g1 += w->axis[0].w[a] * d;
    }
    value[i] = n;
    slope[i][0] = g0;
    slope[i][1] = g1;
#endif
  }
}

CQ_INLINE void add_to(real *at, const Real x) { r_storeu(at, r_loadu(at) + x); }

// its transpose: node += N value + slope grad N
CQ_INLINE void field_give(const Slab *slab, const Cells *c, const Weights *w, const Real value[CQ_DIM],
                          const Real slope[CQ_DIM][CQ_DIM]) {
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) {
    real *at = slab_array(slab, k, i) + c->h;
    const Axis *last = &w->axis[LAST];
    const Real v = last->w[k] * value[i] + last->d[k] * slope[i][LAST], d0 = last->w[k] * slope[i][0];
#if CQ_DIM == 3
    const Real d1 = last->w[k] * slope[i][1];
    CQ_UNROLL for (int b = 0; b < 3; b++) {
      const Real n = w->axis[1].w[b] * v + w->axis[1].d[b] * d1, d = w->axis[1].w[b] * d0;
      CQ_UNROLL for (int a = 0; a < 3; a++)
        add_to(at + row_of(c, 3 * a + b), w->axis[0].w[a] * n + w->axis[0].d[a] * d);
    }
#else
    CQ_UNROLL for (int a = 0; a < 3; a++) add_to(at + row_of(c, a), w->axis[0].w[a] * v + w->axis[0].d[a] * d0);
#endif
  }
}

// ---- a lattice of two particles along each axis of a cell -----------------------------------------------------------
// The weights are the same in all cells: numbers, for vectors of cells. Axes are summed one after the other: the first
// axis for both places of a particle, then the second, then the last.

typedef struct {
  real w[2][3], d[2][3];     // of the lower and the upper particle
} Pair;

CQ_INLINE Pair pair_of(const cq_scene *s) {
  const real by = (real)(1 / s->model->dx);
  return (Pair){{{(real)0.28125, (real)0.6875, (real)0.03125}, {(real)0.03125, (real)0.6875, (real)0.28125}},
                {{(real)-0.75 * by, (real)0.5 * by, (real)0.25 * by},
                 {(real)-0.25 * by, (real)-0.5 * by, (real)0.75 * by}}};
}

enum {
  ROW = CQ_DIM == 3 ? 9 : 3,       // nodes across the first axis: 3 j + k, or k
  SECONDS = CQ_DIM == 3 ? 2 : 1,   // places along the second axis, where it is not the last
};

// What the nodes across the first axis have, or get, for both places along it: values, and slopes along the first axis.
typedef struct {
  Real n[2][CQ_DIM][ROW], d[2][CQ_DIM][ROW];
} Across;

// Loads the nodes around a group of cells, combined across the last axis for a pair of lattice particles.
CQ_INLINE void across_load(const Cells *c, const real *data, const Pair *p, Across *out) {
  EACH(i) {
    const real *at = nodes_of(c->s, data, i) + c->node + c->h;
    CQ_UNROLL for (int j = 0; j < ROW; j++) {
#if CQ_DIM == 3
      const real *row = at + (j / 3 - 1) * c->stride[1] + j % 3 - 1;
#else
      const real *row = at + j - 1;
#endif
      const Real x = r_loadu(row - c->stride[0]), y = r_loadu(row), z = r_loadu(row + c->stride[0]);
      CQ_UNROLL for (int q = 0; q < 2; q++) {
        out->n[q][i][j] = p->w[q][0] * x + p->w[q][1] * y + p->w[q][2] * z;
        out->d[q][i][j] = p->d[q][0] * x + p->d[q][1] * y + p->d[q][2] * z;
      }
    }
  }
}

// Adjoint of across_load: adds to the nodes of a slab.
CQ_INLINE void across_store(const Slab *slab, const Cells *c, const Pair *p, const Across *in) {
  EACH(i) CQ_UNROLL for (int j = 0; j < ROW; j++) {
#if CQ_DIM == 3
    real *row = slab_array(slab, j % 3, i) + c->node + (j / 3 - 1) * c->stride[1] + c->h;
#else
    real *row = slab_array(slab, j, i) + c->node + c->h;
#endif
    CQ_UNROLL for (int a = 0; a < 3; a++)
      add_to(row + (a - 1) * c->stride[0], p->w[0][a] * in->n[0][i][j] + p->d[0][a] * in->d[0][i][j] +
                                               p->w[1][a] * in->n[1][i][j] + p->d[1][a] * in->d[1][i][j]);
  }
}

// What is left along the last axis: values, and slopes along each axis, at a place along those before.
typedef struct {
  Real n[CQ_DIM][3], slope[CQ_DIM][LAST][3];
} Along;

// q: place along the first axis, r: along the second one of three
CQ_INLINE void along_load(const Across *a, const int q, const int r, const Pair *p, Along *out) {
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) {
#if CQ_DIM == 3
    const Real *n = &a->n[q][i][k], *d = &a->d[q][i][k];
    out->n[i][k] = p->w[r][0] * n[0] + p->w[r][1] * n[3] + p->w[r][2] * n[6];
    out->slope[i][0][k] = p->w[r][0] * d[0] + p->w[r][1] * d[3] + p->w[r][2] * d[6];
    out->slope[i][1][k] = p->d[r][0] * n[0] + p->d[r][1] * n[3] + p->d[r][2] * n[6];
#else
    (void)r, (void)p;
    out->n[i][k] = a->n[q][i][k];
    out->slope[i][0][k] = a->d[q][i][k];
#endif
  }
}

CQ_INLINE void along_clear(Along *a) {
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) {
    a->n[i][k] = r_set((real)0);
    CQ_UNROLL for (int j = 0; j < LAST; j++) a->slope[i][j][k] = a->n[i][k];
  }
}

// of both places along the second axis
CQ_INLINE void along_store(Across *a, const int q, const Pair *p, const Along in[SECONDS]) {
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) {
#if CQ_DIM == 3
    CQ_UNROLL for (int b = 0; b < 3; b++) {
      a->n[q][i][3 * b + k] = p->w[0][b] * in[0].n[i][k] + p->d[0][b] * in[0].slope[i][1][k] +
                              p->w[1][b] * in[1].n[i][k] + p->d[1][b] * in[1].slope[i][1][k];
      a->d[q][i][3 * b + k] = p->w[0][b] * in[0].slope[i][0][k] + p->w[1][b] * in[1].slope[i][0][k];
    }
#else
    (void)p;
    a->n[q][i][k] = in[0].n[i][k];
    a->d[q][i][k] = in[0].slope[i][0][k];
#endif
  }
}

// at: place along the last axis
CQ_INLINE void slope_at(const Along *a, const int at, const Pair *p, Real slope[CQ_DIM][CQ_DIM]) {
  EACH(i) {
    CQ_UNROLL for (int j = 0; j < LAST; j++)
      slope[i][j] = p->w[at][0] * a->slope[i][j][0] + p->w[at][1] * a->slope[i][j][1] + p->w[at][2] * a->slope[i][j][2];
    slope[i][LAST] = p->d[at][0] * a->n[i][0] + p->d[at][1] * a->n[i][1] + p->d[at][2] * a->n[i][2];
  }
}
// Interpolates along the last axis: the field's value at a particle.
CQ_INLINE void value_at(const Along *a, const int at, const Pair *p, Real value[CQ_DIM]) {
  EACH(i) value[i] = p->w[at][0] * a->n[i][0] + p->w[at][1] * a->n[i][1] + p->w[at][2] * a->n[i][2];
}

// Adjoints of slope_at and value_at: they scatter a slope or a value to the nodes of a row.
CQ_INLINE void slope_give(Along *a, const int at, const Pair *p, const Real slope[CQ_DIM][CQ_DIM]) {
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) {
    CQ_UNROLL for (int j = 0; j < LAST; j++) a->slope[i][j][k] += p->w[at][k] * slope[i][j];
    a->n[i][k] += p->d[at][k] * slope[i][LAST];
  }
}
// Adjoint of value_at: adds a particle's value to the nodes along the last axis.
CQ_INLINE void value_give(Along *a, const int at, const Pair *p, const Real value[CQ_DIM]) {
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) a->n[i][k] += p->w[at][k] * value[i];
}
