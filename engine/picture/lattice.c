// lattice: finds lattices. A particle whose nearest neighbours lie along perpendicular axes, at distances that give its
// volume, begins one; from there the lattice grows to each next place along its axes at which a particle lies.
#include "lattice.h"
#include "vector.h"
#include <stdlib.h>
#include <string.h>

enum { NEAR_MAX = 256 };

#define SEEN      2.2            // [root of the volume] how far a first particle looks for its axes
#define SQUARE    0.5            // cosine between axes of a lattice, at most: ground of 30 degrees is sheared so
#define AGREE     0.2            // share by which a volume may differ from that of the axes
#define OFF       0.3            // share of an axis by which a neighbour may lie beside its place
#define KINK      0.45           // share of an axis between where two particles across a kink say that their side is
#define DRIFT     0.3            // how much of an axis comes from the last step along it
#define SPECK     0.05           // share of a side that is not told from its end
#define WHOLE     0.7            // share of the particles that must be on a lattice for the body to have one

typedef struct finder {
  lattice *l;
  const double *x, *volume;
  const uint8_t *loose;
  bins boxes;
} finder;

// The position of particle p {dim}.
static const double *at(const finder *f, int32_t p) { return f->x + (size_t)p * (size_t)f->l->dim; }
// The vector {dim} from particle p to its next lattice neighbour along axis d, to be read or set.
static double *axis_of(const lattice *l, int32_t p, int d) {
  return l->axis + ((size_t)p * (size_t)l->dim + (size_t)d) * (size_t)l->dim;
}
// The lattice neighbour of particle p along axis d, below (side 0) or above (1), to be read or set; -1: none.
static int32_t *link_of(const lattice *l, int32_t p, int d, int side) {
  return l->link + ((size_t)p * (size_t)l->dim + (size_t)d) * 2 + side;
}

// The dot product of two vectors of dim components.
static double dot(const double *a, const double *b, int dim) {
  double sum = 0;
  for (int d = 0; d < dim; d++) sum += a[d] * b[d];
  return sum;
}

// The volume (area in 2D) of a cell, from its axes {dim, dim}.
static double cell_volume(const lattice *l, const double *axis) {
  if (l->dim == 2) return fabs(axis[0] * axis[3] - axis[1] * axis[2]);
  double across[3];
  cross3(axis, axis + 3, across);
  return fabs(dot3(across, axis + 6));
}

// ---- a first particle -----------------------------------------------------------------------------------------------

typedef struct near_one { double distance; int32_t particle; } near_one;
typedef struct near_list { near_one of[NEAR_MAX]; int count; int32_t self; const uint8_t *loose; } near_list;

// Callback of bins_visit: adds a particle to a near_list (context), with its distance from the particle `self` of the
// list, unless it is that particle or belongs to no lattice by the caller's wish (loose).
static void note(void *context, int32_t particle, double distance) {
  near_list *list = context;
  if (particle == list->self || !(distance > 0) || (list->loose && list->loose[particle]) || list->count == NEAR_MAX)
    return;
  list->of[list->count++] = (near_one){ distance, particle };
}

// Order of near_one for qsort: by distance, then by particle.
static int nearer(const void *a, const void *b) {
  const near_one *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return (x->particle > y->particle) - (x->particle < y->particle);
}

// Permutes and flips the axes of a lattice {dim, dim}, one in a row, in place, to be as near to the world's axes as
// possible, so that axis 0 of all lattices of a scene points in about the same direction, and so on.
static void order_axes(double *axis, int dim) {
  for (int d = 0; d < dim; d++) {
    int best = d;
    for (int k = d; k < dim; k++)
      if (fabs(axis[k * dim + d]) > fabs(axis[best * dim + d])) best = k;
    for (int i = 0; i < dim; i++) {
      double kept = axis[d * dim + i];
      axis[d * dim + i] = axis[best * dim + i];
      axis[best * dim + i] = kept;
    }
    if (axis[d * dim + d] < 0) for (int i = 0; i < dim; i++) axis[d * dim + i] = -axis[d * dim + i];
  }
}

// Begins a lattice at particle p, whose axes are the vectors to its nearest neighbours in about perpendicular
// directions. Returns 1, or 0 if there are too few such neighbours, or if the cell that the axes span differs in volume
// from the particle.
static int begin(const finder *f, int32_t p) {
  lattice *l = f->l;
  int dim = l->dim, found = 0;
  near_list list = { .self = p, .loose = f->loose };
  double h = pow(f->volume[p], 1.0 / dim), axis[9];
  bins_visit(&f->boxes, f->x, at(f, p), SEEN * h, note, &list);
  qsort(list.of, (size_t)list.count, sizeof *list.of, nearer);
  for (int k = 0; k < list.count && found < dim; k++) {
    double v[3] = { 0 };
    int square = 1;
    for (int d = 0; d < dim; d++) v[d] = at(f, list.of[k].particle)[d] - at(f, p)[d];
    for (int j = 0; j < found; j++)
      square &=
          fabs(dot(v, axis + j * dim, dim)) < SQUARE * sqrt(dot(v, v, dim) * dot(axis + j * dim, axis + j * dim, dim));
    if (square) memcpy(axis + dim * found++, v, (size_t)dim * sizeof *axis);
  }
  if (found < dim || fabs(cell_volume(l, axis) / f->volume[p] - 1) > AGREE) return 0;
  order_axes(axis, dim);
  memcpy(axis_of(l, p, 0), axis, (size_t)(dim * dim) * sizeof *axis);
  l->on[p] = 1;
  return 1;
}

// ---- growth ---------------------------------------------------------------------------------------------------------

typedef struct nearest { int32_t particle; double distance; int32_t self; const uint8_t *loose; } nearest;

// Callback of bins_visit: keeps the nearest particle in a `nearest` (context), except for that struct's own particle
// and those that belong to no lattice (loose).
static void keep_nearest(void *context, int32_t particle, double distance) {
  nearest *best = context;
  if (particle == best->self || (best->loose && best->loose[particle]) || !(distance < best->distance)) return;
  best->particle = particle;
  best->distance = distance;
}

// Links particle p with its neighbour in the lattice along axis d, below (side 0) or above (1), if a particle lies
// there that fits. Returns the neighbour if it was on no lattice before, so that the lattice grows on from it, else -1.
static int32_t grow(const finder *f, int32_t p, int d, int side) {
  lattice *l = f->l;
  int dim = l->dim;
  if (*link_of(l, p, d, side) >= 0) return -1;
  const double *axis = axis_of(l, p, d);
  double sign = side ? 1 : -1, place[3], length = sqrt(dot(axis, axis, dim));
  for (int i = 0; i < dim; i++) place[i] = at(f, p)[i] + sign * axis[i];
  nearest best = { -1, OFF * length, p, f->loose };
  bins_visit(&f->boxes, f->x, place, OFF * length, keep_nearest, &best);
  int32_t q = best.particle;
  if (q < 0 || *link_of(l, q, d, !side) >= 0) return -1;
  int fresh = !l->on[q];
  if (fresh) {
    double grown[9];
    memcpy(grown, axis_of(l, p, 0), (size_t)(dim * dim) * sizeof *grown);
    for (int i = 0; i < dim; i++) grown[d * dim + i] += DRIFT * (sign * (at(f, q)[i] - at(f, p)[i]) - axis[i]);
    double size = cell_volume(l, grown) / f->volume[q];
    if (!(size > 1 - 2 * AGREE && size < 1 + 2 * AGREE)) return -1;
    memcpy(axis_of(l, q, 0), grown, (size_t)(dim * dim) * sizeof *grown);
    l->on[q] = 1;
  } else {
    double square = 0;
    for (int i = 0; i < dim; i++) square += (axis_of(l, q, d)[i] - axis[i]) * (axis_of(l, q, d)[i] - axis[i]);
    if (square > OFF * OFF * length * length || fabs(f->volume[p] / f->volume[q] - 1) > 2 * AGREE) return -1;
  }
  *link_of(l, p, d, side) = q;
  *link_of(l, q, d, !side) = p;
  return fresh ? q : -1;
}

// Removes particle p from its lattice: it has no links then.
static void leave(lattice *l, int32_t p) {
  l->on[p] = 0;
  for (int k = 0; k < 2 * l->dim; k++) *link_of(l, p, 0, k) = -1;
}

// Finds all lattices of the particles, by growing each from a first particle in breadth-first order. queue {n}: work
// memory. Lattices of fewer than 2^dim particles are dissolved; all are, if few of the particles are on lattices.
static void find(const finder *f, int32_t *queue) {
  lattice *l = f->l;
  int32_t counted = 0, wanted = 0;
  for (int32_t first = 0; first < l->n; first++) {
    int alone = f->loose && f->loose[first];
    wanted += !alone;
    if (alone || l->on[first] || !(f->volume[first] > 0) || !isfinite(f->volume[first]) || !begin(f, first)) continue;
    int32_t head = 0, tail = 0;
    queue[tail++] = first;
    while (head < tail) {
      int32_t p = queue[head++];
      for (int k = 0; k < 2 * l->dim; k++) {
        int32_t q = grow(f, p, k / 2, k & 1);
        if (q >= 0) queue[tail++] = q;
      }
    }
    // a few particles that happen to lie so are no lattice
    if (tail < 1 << l->dim) for (int32_t k = 0; k < tail; k++) leave(l, queue[k]);
    else counted += tail;
  }
  if (counted < WHOLE * wanted) for (int32_t p = 0; p < l->n; p++) leave(l, p);
}

// ---- across kinks ---------------------------------------------------------------------------------------------------

// Where a row turns sharply, as on the top of a hill, the next particle does not lie where the last axis leads. Two
// particles are neighbours there too if they agree on where their common side is:
//
//         . s .            p + axis/2 = s = q - axis/2
//      p '     ' q
typedef struct meeting { const finder *f; int32_t p, d, side, best; double off; } meeting;

// Callback of bins_visit for join_kinks: keeps in a `meeting` (context) the particle q whose side fits best to the side
// without neighbour of the meeting's particle p: that of which the middles of both sides are nearest to each other.
static void note_meeting(void *context, int32_t q, double distance) {
  meeting *m = context;
  const lattice *l = m->f->l;
  (void)distance;
  if (q == m->p || !l->on[q] || *link_of(l, q, m->d, !m->side) >= 0) return;
  double sign = m->side ? 0.5 : -0.5, square = 0;
  for (int i = 0; i < l->dim; i++) {
    double apart = at(m->f, m->p)[i] + sign * (axis_of(l, m->p, m->d)[i] + axis_of(l, q, m->d)[i]) - at(m->f, q)[i];
    square += apart * apart;
  }
  if (square < m->off * m->off) m->off = sqrt(square), m->best = q;
}

// Can the two particles of a meeting be linked: have their cells about the same size and the same axes along the common
// side? 1 yes, 0 no.
static int fit(const finder *f, const meeting *m) {
  const lattice *l = f->l;
  double between[9], sign = m->side ? 1 : -1, ratio = f->volume[m->p] / f->volume[m->best];
  // smoothing would move the corners between cells of different sizes along the outline
  if (fabs(ratio - 1) > 2 * AGREE || fabs(1 / ratio - 1) > 2 * AGREE) return 0;
  memcpy(between, axis_of(l, m->p, 0), (size_t)(l->dim * l->dim) * sizeof *between);
  for (int i = 0; i < l->dim; i++)
    between[m->d * l->dim + i] = sign * (at(f, m->best)[i] - at(f, m->p)[i]);
  for (int d = 0; d < l->dim; d++) {
    if (d == m->d) continue;
    double square = 0;
    const double *a = axis_of(l, m->p, d), *b = axis_of(l, m->best, d);
    for (int i = 0; i < l->dim; i++) square += (a[i] - b[i]) * (a[i] - b[i]);
    if (square > OFF * OFF * dot(a, a, l->dim)) return 0;
  }
  return fabs(cell_volume(l, between) / f->volume[m->p] - 1) < 2 * AGREE;
}

// Links particles where a row turns too sharply for `grow`, as on the top of a hill, so that the body has one surface.
static void join_kinks(const finder *f) {
  lattice *l = f->l;
  for (int32_t p = 0; p < l->n; p++)
    for (int k = 0; l->on[p] && k < 2 * l->dim; k++) {
      if (*link_of(l, p, 0, k) >= 0) continue;
      const double *axis = axis_of(l, p, k / 2);
      double place[3], length = sqrt(dot(axis, axis, l->dim));
      meeting m = { f, p, k / 2, k & 1, -1, KINK * length };
      for (int i = 0; i < l->dim; i++) place[i] = at(f, p)[i] + (m.side ? axis[i] : -axis[i]);
      bins_visit(&f->boxes, f->x, place, length, note_meeting, &m);
      if (m.best < 0 || !fit(f, &m)) continue;
      *link_of(l, p, 0, k) = m.best;
      *link_of(l, m.best, m.d, !m.side) = p;
    }
}

// ---- where parts meet whose lattices do not fit ---------------------------------------------------------------------

//         . . p . .           places just beyond a side of p, from -1/2 to 1/2 along it:
//         '-------'           from `low` to `high` those that no cell of the other lattice holds
//       | q | q |
typedef struct covering {
  const finder *f;
  int32_t self;
  double place[3], along[3];     // middle of the side, a little outside; the way along it, 0 where it is a point
  double low, high;
  int found, changed;            // is the middle in a cell?
} covering;

// Callback of bins_visit for find_covered: notes in a `covering` (context) whether the cell of particle q covers the
// middle of a side, and shortens the side's uncovered part, low to high, by the part that the cell covers.
static void note_cell(void *context, int32_t q, double distance) {
  covering *c = context;
  const lattice *l = c->f->l;
  (void)distance;
  if (q == c->self || !l->on[q]) return;
  double v[3], from = -0.5, to = 0.5;
  int holds_middle = 1;
  for (int i = 0; i < l->dim; i++) v[i] = c->place[i] - at(c->f, q)[i];
  for (int d = 0; d < l->dim; d++) {
    const double *axis = axis_of(l, q, d);
    double off = dot(v, axis, l->dim), rise = dot(c->along, axis, l->dim), most = 0.52 * dot(axis, axis, l->dim);
    if (fabs(off) > most) holds_middle = 0;
    if (fabs(rise) > 1e-9 * most) {
      from = fmax(from, (-off - copysign(most, rise)) / rise);
      to = fmin(to, (-off + copysign(most, rise)) / rise);
    } else if (fabs(off) > most) {
      return;
    }
  }
  if (holds_middle) c->found = 1;
  if (!(from < to)) return;
  if (from <= c->low && to > c->low) c->low = to, c->changed = 1;
  if (to >= c->high && from < c->high) c->high = from, c->changed = 1;
}

// Finds sides of cells that have no neighbour in their lattice but are covered by cells of another lattice, as where
// parts of a body meet: they are not on the body's surface. Sets `covered` and, in 2D, `open` of the lattice. reach:
// the distance within which covering cells are searched for [length].
static void find_covered(const finder *f, double reach) {
  lattice *l = f->l;
  for (int32_t p = 0; p < l->n; p++)
    for (int side = 0; l->on[p] && side < 2 * l->dim; side++) {
      if (*link_of(l, p, 0, side) >= 0) continue;
      double sign = side & 1 ? 0.7 : -0.7;
      covering c = { .f = f, .self = p, .low = -0.5, .high = 0.5, .changed = 1 };
      for (int i = 0; i < l->dim; i++) {
        c.place[i] = at(f, p)[i] + sign * axis_of(l, p, side / 2)[i];
        if (l->dim == 2) c.along[i] = axis_of(l, p, 1 - side / 2)[i];
      }
      // cells come in any order: again, until none covers more
      while (c.changed) {
        c.changed = 0;
        bins_visit(&f->boxes, f->x, c.place, reach, note_cell, &c);
      }
      if (c.found) l->covered[p] |= (uint8_t)(1 << side);
      if (l->dim == 3) continue;
      float *open = l->open + ((size_t)p * 4 + (size_t)side) * 2;
      double low = c.low < SPECK - 0.5 ? -0.5 : c.low, high = c.high > 0.5 - SPECK ? 0.5 : c.high;
      int none = high - low < SPECK;
      open[0] = none ? 1 : (float)(low + 0.5), open[1] = none ? 0 : (float)(high + 0.5);
    }
}

// Fills *l with the lattices that particles at position {n, dim} lie on: links to neighbours, axes of cells, and
// covered sides. volume {n}: of the particles; loose {n}: not 0 for particles that are to be on no lattice, NULL: none
// is. CQ_OK or CQ_MEMORY.
cq_status lattice_find(lattice *l, int32_t dim, int32_t n, const double *position, const double *volume,
                       const uint8_t *loose) {
  *l = (lattice){ .dim = dim, .n = n };
  size_t count = (size_t)n, wide = (size_t)dim;
  l->link = cq_alloc(count * wide * 2 + 1, sizeof *l->link, "lattice of a picture");
  l->axis = cq_alloc(count * wide * wide + 1, sizeof *l->axis, "lattice of a picture");
  l->on = cq_alloc(count + 1, 1, "lattice of a picture");
  l->covered = cq_alloc(count + 1, 1, "lattice of a picture");
  l->open = cq_alloc(dim == 2 ? 8 * count + 1 : 1, sizeof *l->open, "lattice of a picture");
  int32_t *queue = cq_alloc(count + 1, sizeof *queue, "lattice of a picture");
  finder f = { .l = l, .x = position, .volume = volume, .loose = loose };
  double mean = 0, largest = 0;
  for (int32_t p = 0; p < n; p++) {
    double h = pow(fabs(volume[p]), 1.0 / dim);
    mean += h / n;
    if (h > largest && isfinite(h)) largest = h;
  }
  if (!(isfinite(mean) && mean > 0)) mean = 1;
  cq_status status = CQ_MEMORY;
  if (l->link && l->axis && l->on && l->covered && l->open && queue)
    status = bins_fill(&f.boxes, dim, n, position, mean);
  if (!status) {
    memset(l->link, -1, count * wide * 2 * sizeof *l->link);
    for (size_t k = 0; dim == 2 && k < 4 * count; k++) l->open[2 * k + 1] = 1;
    find(&f, queue);
    join_kinks(&f);
    find_covered(&f, 1.5 * largest);
  }
  bins_free(&f.boxes);
  cq_free(queue);
  if (status) lattice_free(l);
  return status;
}

// Frees the arrays of a lattice, and empties the struct.
void lattice_free(lattice *l) {
  cq_free(l->link);
  cq_free(l->axis);
  cq_free(l->on);
  cq_free(l->covered);
  cq_free(l->open);
  *l = (lattice){ 0 };
}
