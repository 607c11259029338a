// stencil: gathers and scatters between the nodes of a reference grid and the particles of two runs of eight cells, a
// SIMD lane each. The nodes of neighbouring lanes of a run are neighbours too, so that a vector is one load, or two.
//
// Cells scatter to the slab of their range. Along the last axis a cell reaches the node before its own, its own, and
// the one after; for each of the three the slab has a separate array, which is indexed by the cell. So no two stores of
// a vector overlap, and the pass over nodes adds the arrays with a shift of one (node.inl).

#include "../rows.h"

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
// CQ_LANES numbers from memory that need not be aligned.
CQ_INLINE Real r_loadu(const real *p) { return *(const RealU *)p; }
// Writes all lanes to memory that need not be aligned.
CQ_INLINE void r_storeu(real *p, const Real x) { *(RealU *)p = x; }
#endif

// Weights of the three nodes around a particle along an axis, their slopes [1/length], and the slopes of the slopes.
typedef struct {
  Real w[3], d[3];
} Axis;

// second derivative of the weights by the place in the cell, times dx
#define SPLINE_BEND {(real)1, (real)-2, (real)1}

// Sets a to the three B-spline weights of particles along one axis and their slopes [1/length]; fraction: the
// particles' positions from the middle node [cells].
CQ_INLINE void axis_of(const Real fraction, const real inv_dx, Axis *a) {
  const Real f = fraction + (real)1;
  spline(f, a->w);
  spline_slope(f, a->d);
  CQ_UNROLL for (int k = 0; k < 3; k++) a->d[k] *= inv_dx;
}

// The numbers {nodes} of one component of vector fields over nodes. data: the fields, {components, nodes}; component c
// of field f has the index f CQ_DIM + c.
CQ_INLINE const real *nodes_of(const cq_scene *s, const void *data, const int component) {
  return (const real *)data + component * s->reference.node_count;
}

// Cells from lane h on, and where they lie among the nodes.
typedef struct {
  const cq_scene *s;
  int64_t node, apart;       // of the cell in lane h; from there to that in lane 8, where vectors hold both runs
  int64_t stride[2];         // along the first axis, in 3D along the second one
  int h;
} Cells;

// CQ_LANES cells of a SIMD vector of sixteen, those in the lanes h, h + 1, ...: the node of the first one, and strides.
CQ_INLINE Cells cells_of(const cq_scene *s, const cq_cells *cells, const int h) {
  const cq_body *body = &s->reference.bodies[cells->body];
  const int64_t apart = cells->node[1] - cells->node[0];
  return (Cells){s, cq_cells_node(cells, h), apart, {body->stride[0], CQ_DIM == 3 ? body->stride[1] : 0}, h};
}

// Do the nodes of CQ_LANES cells follow each other, so that they are one load? 0 no: they are of two runs apart; else
// yes. Asked for once before many loads.
CQ_INLINE int is_whole(const Cells *c) { return CQ_LANES <= CQ_REFERENCE_RUN || c->apart == CQ_REFERENCE_RUN; }

// Loads the numbers of an array over nodes at the nodes of CQ_LANES cells. p: at the node of the cell in lane h; whole:
// is_whole.
CQ_INLINE Real cells_load(const Cells *c, const int whole, const real *p) {
#if CQ_LANES == 16
  if (!whole) return r_join(p, p + c->apart);
#endif
  (void)c, (void)whole;
  return r_loadu(p);
}
// Adds x, a lane each, to the numbers that an array over nodes has at the nodes of CQ_LANES cells. p: at the node of
// the cell in lane h; whole: is_whole. The two runs have no node in common.
CQ_INLINE void cells_add(const Cells *c, const int whole, real *p, const Real x) {
#if CQ_LANES == 16
  if (!whole) {
    r_split(p, p + c->apart, r_join(p, p + c->apart) + x);
    return;
  }
#endif
  (void)c, (void)whole;
  r_storeu(p, r_loadu(p) + x);
}

// Have the lanes h, h + 1, ... (CQ_LANES) of a SIMD vector of sixteen cells any particle? 1 yes, 0 no.
CQ_INLINE int has_any(const cq_cells *cells, const int h) {
  return CQ_LANES == CQ_CHUNK || (cells->used >> h & ((1u << CQ_LANES) - 1)) != 0;
}

// Have the lanes h, h + 1, ... (CQ_LANES) of a chunk any particle? 1 yes, 0 no.
CQ_INLINE int is_used(const cq_scene *s, const int32_t chunk, const int h) {
  return CQ_LANES == CQ_CHUNK || (s->reference.used[chunk] >> h & ((1u << CQ_LANES) - 1)) != 0;
}

// The number of the node, for the cell in lane h, in the middle of a row of three nodes around the cells. place: of the
// row along the axes before the last, 3 i + j in 3D, i in 2D, i and j from 0 to 2.
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

// The number of reals of one array in the slab of a range, its scatter buffer: window of nodes and padding.
CQ_INLINE int64_t slab_length(const cq_scene *s, const int32_t range) {
  return s->reference.window_size[range] + 2 * CQ_CHUNK;
}
// Vector field number `field` of the slab (scatter buffer) of a range.
CQ_INLINE Slab slab_at(const cq_scene *s, const int32_t range, const int field) {
  const int64_t length = slab_length(s, range);
  real *first = (real *)s->reference.slab[range] + field * GIVEN * length;
  return (Slab){first + CQ_CHUNK - s->reference.window[range], length};
}
// The array of one component of a field in a slab, indexed by the cell's node; shift: 0, 1 or 2, for the sums at the
// node before the cell's, at it, or after it along the last axis.
CQ_INLINE real *slab_array(const Slab *slab, const int shift, const int component) {
  return slab->first + (shift * CQ_DIM + component) * slab->length;
}

// Sets the first `fields` vector fields of the slab (scatter buffer) of a range to 0.
static void slab_clear(cq_scene *s, const int32_t range, const int fields) {
  const int64_t count = fields * GIVEN * slab_length(s, range);
#if defined(CQ_REAL_DUAL)
  for (int64_t k = 0; k < count; k++) ((real *)s->reference.slab[range])[k] = (real)0;
#else
  memset(s->reference.slab[range], 0, (size_t)count * sizeof(real));
#endif
}

// ---- particles anywhere in their cells ------------------------------------------------------------------------------

typedef struct {
  Axis axis[CQ_DIM];
} Weights;

// Sets w to the B-spline weights, and their slopes, of the particles of a chunk in the lanes of c, along each axis.
CQ_INLINE void weights_of(const Cells *c, const int32_t chunk, Weights *w) {
  const real *fraction = (const real *)c->s->reference.fraction + AT(chunk, CQ_DIM, 0) + c->h;
  const real inv_dx = (real)(1 / c->s->model->dx);
  EACH(i) axis_of(r_load(fraction + i * CQ_CHUNK), inv_dx, &w->axis[i]);
}

// A vector field at the nodes around CQ_LANES cells, or sums that are scattered to them: component, row (row_of), node
// of three in a row. It is loaded, or stored, once for all particles of the cells.
typedef struct {
  Real at[CQ_DIM][PLACES][3];
} Around;

// Sets a to a vector field at the nodes around cells. data: its components, {dim, nodes}; whole: is_whole, as a
// constant.
CQ_INLINE void around_load_as(const Cells *c, const int whole, const real *data, Around *a) {
  CQ_ROLL for (int i = 0; i < CQ_DIM; i++) CQ_ROLL for (int place = 0; place < PLACES; place++) {
    const real *row = nodes_of(c->s, data, i) + row_of(c, place);
    CQ_UNROLL for (int k = 0; k < 3; k++) a->at[i][place][k] = cells_load(c, whole, row + k - 1);
  }
}
// Sets a to a vector field at the nodes around cells. data: its components, {dim, nodes}.
CQ_INLINE void around_load(const Cells *c, const real *data, Around *a) {
  if (is_whole(c)) around_load_as(c, 1, data, a);
  else around_load_as(c, 0, data, a);
}
// Sets a field at the nodes around cells to 0, before particles add to it.
CQ_INLINE void around_clear(Around *a) {
  for (int k = 0; k < CQ_DIM * PLACES * 3; k++) (&a->at[0][0][0])[k] = r_set((real)0);
}
// Adds the sums a at the nodes around cells to a slab; whole: is_whole, as a constant.
CQ_INLINE void around_give_as(const Slab *slab, const Cells *c, const int whole, const Around *a) {
  CQ_ROLL for (int i = 0; i < CQ_DIM; i++) CQ_ROLL for (int k = 0; k < 3; k++) {
    real *to = slab_array(slab, k, i);
    CQ_UNROLL for (int place = 0; place < PLACES; place++)
      cells_add(c, whole, to + row_of(c, place), a->at[i][place][k]);
  }
}
// Adds the sums a at the nodes around cells to a slab.
CQ_INLINE void around_give(const Slab *slab, const Cells *c, const Around *a) {
  if (is_whole(c)) around_give_as(slab, c, 1, a);
  else around_give_as(slab, c, 0, a);
}

// Interpolates a field at one chunk's particles in the lanes of some cells: sets value to the sum of N a over the
// nodes, and slope to that of a (x) grad N. around: the field at the nodes; w: the particles' weights.
CQ_INLINE void field_at(const Around *around, const Weights *w, Real value[CQ_DIM], Real slope[CQ_DIM][CQ_DIM]) {
  EACH(i) {
#if CQ_DIM == 3
    Real n = r_set((real)0), g0 = n, g1 = n, g2 = n;
    CQ_UNROLL for (int a = 0; a < 3; a++) {
      Real nn = r_set((real)0), nd = nn, dn = nn;
      CQ_UNROLL for (int b = 0; b < 3; b++) {
        const Real *row = around->at[i][3 * a + b], x = row[0], y = row[1], z = row[2];
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
      const Real *row = around->at[i][a], x = row[0], y = row[1], z = row[2];
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

// The transpose of field_at: adds N value + slope grad N of particles to the sums at the nodes around them.
CQ_INLINE void field_give(Around *around, const Weights *w, const Real value[CQ_DIM],
                          const Real slope[CQ_DIM][CQ_DIM]) {
  const Axis *last = &w->axis[LAST];
  EACH(i) CQ_UNROLL for (int k = 0; k < 3; k++) {
    const Real v = last->w[k] * value[i] + last->d[k] * slope[i][LAST], d0 = last->w[k] * slope[i][0];
#if CQ_DIM == 3
    const Real d1 = last->w[k] * slope[i][1];
    CQ_UNROLL for (int b = 0; b < 3; b++) {
      const Real n = w->axis[1].w[b] * v + w->axis[1].d[b] * d1, d = w->axis[1].w[b] * d0;
      CQ_UNROLL for (int a = 0; a < 3; a++)
        around->at[i][3 * a + b][k] += w->axis[0].w[a] * n + w->axis[0].d[a] * d;
    }
#else
    CQ_UNROLL for (int a = 0; a < 3; a++) around->at[i][a][k] += w->axis[0].w[a] * v + w->axis[0].d[a] * d0;
#endif
  }
}

// ---- a lattice of two particles along each axis of a cell -----------------------------------------------------------
// The weights are the same in all cells. Axes are summed one after the other: the first axis for the lower and the
// upper particle along it, then the second, then the last. For three nodes x, y, z in a line the two particles have
//   values  (9 x + 22 y + z, x + 22 y + 9 z) / 32        = 5/32 (x + z + 4.4 y -+ 0.8 (z - x))
//   slopes  (-3 x + 2 y + z, -x - 2 y + 3 z) / (4 dx)    = 1/(2 dx) (z - x +- (y - (x + z) / 2)),
// so that the two share most operations. Factors are left out here; a value takes value_factor for all axes, a slope
// slope_factor.

enum {
  ROW = CQ_DIM == 3 ? 9 : 3,       // nodes across the first axis: 3 j + k, or k
  SECONDS = CQ_DIM == 3 ? 2 : 1,   // places along the second axis, where it is not the last
};

#define LATTICE_VALUE 0.15625      // 5/32

// The factor 5/32 for each axis by which interpolated values at the particles of a lattice, two along each axis of a
// cell, are multiplied last: the sums along axes leave it out.
CQ_INLINE real value_factor(void) { return (real)(LATTICE_VALUE * LATTICE_VALUE * (CQ_DIM == 3 ? LATTICE_VALUE : 1)); }
// The factor by which interpolated slopes at the particles of a lattice, two along each axis of a cell, are multiplied
// last: the sums along axes leave it out [1/length].
CQ_INLINE real slope_factor(const cq_scene *s) {
  return (real)(LATTICE_VALUE * (CQ_DIM == 3 ? LATTICE_VALUE : 1) / (2 * s->model->dx));
}

// Sets low and high to the values at the lower and the upper of two particles in a cell along an axis, from three nodes
// x, y, z in a line, without the factor 5/32.
CQ_INLINE void both_values(const Real x, const Real y, const Real z, Real *low, Real *high) {
  const Real middle = (x + z) + (real)4.4 * y, by = (real)0.8 * (z - x);
  *low = middle - by;
  *high = middle + by;
}
// Sets low and high to the slopes at the lower and the upper of two particles in a cell along an axis, from three nodes
// x, y, z in a line, without the factor 1/(2 dx).
CQ_INLINE void both_slopes(const Real x, const Real y, const Real z, Real *low, Real *high) {
  const Real across = z - x, bend = y - (real)0.5 * (x + z);
  *low = across + bend;
  *high = across - bend;
}
// Sets node to the gradients of three nodes in a line, from those of values and slopes at the lower [0] and the upper
// [1] particle: the adjoint of both_values and both_slopes, without their factors.
CQ_INLINE void both_give(const Real value[2], const Real slope[2], Real node[3]) {
  const Real sum = value[0] + value[1], by = (real)0.8 * (value[0] - value[1]);
  const Real across = slope[0] + slope[1], bend = slope[0] - slope[1];
  const Real ends = sum - (real)0.5 * bend, apart = by - across;
  node[0] = ends + apart;
  node[1] = bend + (real)4.4 * sum;
  node[2] = ends - apart;
}
// Sets node to the gradients of three nodes in a line, from those of the values at the lower [0] and the upper [1]
// particle: the adjoint of both_values, without its factor.
CQ_INLINE void both_give_value(const Real value[2], Real node[3]) {
  const Real sum = value[0] + value[1], by = (real)0.8 * (value[0] - value[1]);
  node[0] = sum + by;
  node[1] = (real)4.4 * sum;
  node[2] = sum - by;
}

// A field summed along the first axis, or its gradient: at each line of nodes along that axis, for the lower and the
// upper particle, n: values, d: slopes along the first axis.
typedef struct {
  Real n[CQ_DIM][ROW][2], d[CQ_DIM][ROW][2];
} Across;

// Sets out to a vector field around cells with a lattice of particles, two along each axis, summed along the first axis
// for the lower and the upper one: values and slopes, without factors. data {dim, nodes}: components; whole: is_whole.
CQ_INLINE void across_load_as(const Cells *c, const int whole, const real *data, Across *out) {
  CQ_ROLL for (int i = 0; i < CQ_DIM; i++) {
    const real *at = nodes_of(c->s, data, i) + c->node;
    CQ_UNROLL for (int j = 0; j < ROW; j++) {
#if CQ_DIM == 3
      const real *row = at + (j / 3 - 1) * c->stride[1] + j % 3 - 1;
#else
      const real *row = at + j - 1;
#endif
      const Real x = cells_load(c, whole, row - c->stride[0]), y = cells_load(c, whole, row);
      const Real z = cells_load(c, whole, row + c->stride[0]);
      both_values(x, y, z, &out->n[i][j][0], &out->n[i][j][1]);
      both_slopes(x, y, z, &out->d[i][j][0], &out->d[i][j][1]);
    }
  }
}

// Sets out to a vector field around cells with a lattice of particles, two along each axis, summed along the first axis
// for the lower and the upper one: values and slopes, without factors. data: its components, {dim, nodes}.
CQ_INLINE void across_load(const Cells *c, const real *data, Across *out) {
  if (is_whole(c)) across_load_as(c, 1, data, out);
  else across_load_as(c, 0, data, out);
}

// Adjoint of across_load: adds the gradients of nodes, from those of sums, in, to a slab; whole: is_whole, as a
// constant.
CQ_INLINE void across_store_as(const Slab *slab, const Cells *c, const int whole, const Across *in) {
  CQ_ROLL for (int i = 0; i < CQ_DIM; i++) CQ_UNROLL for (int j = 0; j < ROW; j++) {
#if CQ_DIM == 3
    real *row = slab_array(slab, j % 3, i) + c->node + (j / 3 - 1) * c->stride[1];
#else
    real *row = slab_array(slab, j, i) + c->node;
#endif
    Real node[3];
    both_give(in->n[i][j], in->d[i][j], node);
    CQ_UNROLL for (int a = 0; a < 3; a++) cells_add(c, whole, row + (a - 1) * c->stride[0], node[a]);
  }
}
// Adjoint of across_load: adds the gradients of nodes, from those of sums, in, to a slab.
CQ_INLINE void across_store(const Slab *slab, const Cells *c, const Across *in) {
  if (is_whole(c)) across_store_as(slab, c, 1, in);
  else across_store_as(slab, c, 0, in);
}

// A field summed along all axes but the last, or its gradient, at three nodes along that: n: values, slope: along each
// axis before, for each particle along the second axis.
typedef struct {
  Real n[CQ_DIM][3][SECONDS], slope[CQ_DIM][LAST][3][SECONDS];
} Along;

// Sets out to values and slopes, without their factors, of a field that is summed along all axes but the last, for the
// lower (q 0) or the upper (q 1) of two particles along the first axis. In 3D it sums along the second axis, for both
// particles; in 2D it copies.
CQ_INLINE void along_load(const Across *a, const int q, Along *out) {
  CQ_ROLL for (int i = 0; i < CQ_DIM; i++) CQ_UNROLL for (int k = 0; k < 3; k++) {
#if CQ_DIM == 3
    const Real x = a->n[i][k][q], y = a->n[i][3 + k][q], z = a->n[i][6 + k][q];
    both_values(x, y, z, &out->n[i][k][0], &out->n[i][k][1]);
    both_slopes(x, y, z, &out->slope[i][1][k][0], &out->slope[i][1][k][1]);
    both_values(a->d[i][k][q], a->d[i][3 + k][q], a->d[i][6 + k][q], &out->slope[i][0][k][0], &out->slope[i][0][k][1]);
#else
    out->n[i][k][0] = a->n[i][k][q];
    out->slope[i][0][k][0] = a->d[i][k][q];
#endif
  }
}

// Adjoint of along_load: sets the gradients in a for the lower (q 0) or the upper (q 1) particle along the first axis,
// from those in `in`.
CQ_INLINE void along_store(Across *a, const int q, const Along *in) {
  CQ_ROLL for (int i = 0; i < CQ_DIM; i++) CQ_UNROLL for (int k = 0; k < 3; k++) {
#if CQ_DIM == 3
    Real n[3], d[3];
    both_give(in->n[i][k], in->slope[i][1][k], n);
    both_give_value(in->slope[i][0][k], d);
    CQ_UNROLL for (int b = 0; b < 3; b++) {
      a->n[i][3 * b + k][q] = n[b];
      a->d[i][3 * b + k][q] = d[b];
    }
#else
    a->n[i][k][q] = in->n[i][k][0];
    a->d[i][k][q] = in->slope[i][0][k][0];
#endif
  }
}

// Sets the slopes of a field at the two particles along the last axis, lower [0] and upper [1]. r: in 3D the lower (0)
// or the upper (1) particle along the second axis, in 2D 0; factor: slope_factor.
CQ_INLINE void slopes_at(const Along *a, const int r, const real factor, Real slope[2][CQ_DIM][CQ_DIM]) {
  EACH(i) {
    Real low, high;
    CQ_UNROLL for (int j = 0; j < LAST; j++) {
      both_values(a->slope[i][j][0][r], a->slope[i][j][1][r], a->slope[i][j][2][r], &low, &high);
      slope[0][i][j] = factor * low;
      slope[1][i][j] = factor * high;
    }
    both_slopes(a->n[i][0][r], a->n[i][1][r], a->n[i][2][r], &low, &high);
    slope[0][i][LAST] = factor * low;
    slope[1][i][LAST] = factor * high;
  }
}
// Sets the values of a field at the two particles along the last axis, lower [0] and upper [1]. r: as in slopes_at.
CQ_INLINE void values_at(const Along *a, const int r, Real value[2][CQ_DIM]) {
  EACH(i) {
    both_values(a->n[i][0][r], a->n[i][1][r], a->n[i][2][r], &value[0][i], &value[1][i]);
    CQ_UNROLL for (int last = 0; last < 2; last++) value[last][i] *= value_factor();
  }
}

// Adjoint of slopes_at: sets gradients in a for particle r along the second axis, from those of slopes. Same factor.
CQ_INLINE void slopes_give(Along *a, const int r, const real factor, const Real slope[2][CQ_DIM][CQ_DIM]) {
  const Real none[2] = {r_set((real)0), r_set((real)0)};
  EACH(i) {
    Real node[3];
    CQ_UNROLL for (int j = 0; j < LAST; j++) {
      const Real both[2] = {factor * slope[0][i][j], factor * slope[1][i][j]};
      both_give_value(both, node);
      CQ_UNROLL for (int k = 0; k < 3; k++) a->slope[i][j][k][r] = node[k];
    }
    const Real both[2] = {factor * slope[0][i][LAST], factor * slope[1][i][LAST]};
    both_give(none, both, node);
    CQ_UNROLL for (int k = 0; k < 3; k++) a->n[i][k][r] = node[k];
  }
}
// Adjoint of values_at: adds to the gradients in a for particle r, which slopes_give has set, those of values.
CQ_INLINE void values_give(Along *a, const int r, const Real value[2][CQ_DIM]) {
  EACH(i) {
    Real node[3];
    const Real both[2] = {value_factor() * value[0][i], value_factor() * value[1][i]};
    both_give_value(both, node);
    CQ_UNROLL for (int k = 0; k < 3; k++) a->n[i][k][r] += node[k];
  }
}
