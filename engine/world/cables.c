// cables: the paths of cables, the faces of chambers and the entries of surfaces, checked and sorted, and how stiff a
// cable is for the grid.
#include "constants.h"
#include "model.h"
#include <math.h>
#include <string.h>

// ---- checks ---------------------------------------------------------------------------------------------------------

// The points of a cable or chamber of a definition, each a weighted sum of particles.
typedef struct point_list {
  const char *noun;          // for sentences, with its number from 1
  int32_t number, count, actuator;
  const int64_t *start;
  const int32_t *particle;
  const double *weight, *anchor;   // anchor: NULL in a chamber, whose weights may have any sign
} point_list;

// The points of cable k (from 0) of a definition, in the form that the checks and copies of cables and chambers share.
static point_list points_of_cable(const cq_world_def *def, int32_t k) {
  const cq_cable *c = def->cables + k;
  return (point_list){"cable", k + 1, c->point_count, c->actuator, c->point_start, c->particle, c->weight, c->anchor};
}

// The points of chamber k (from 0) of a definition, in the form that the checks and copies of cables and chambers
// share.
static point_list points_of_chamber(const cq_world_def *def, int32_t k) {
  const cq_chamber *c = def->chambers + k;
  return (point_list){"chamber", k + 1, c->point_count, c->actuator, c->point_start, c->particle, c->weight, NULL};
}

// CQ_OK, or CQ_INVALID for the weight of a particle in a point (its index from 0): in a cable it must be in (0, 1], in
// a chamber finite.
static cq_status check_weight(const point_list *list, int32_t point, double weight) {
  const int any = list->noun[1] == 'h';   // in a chamber
  if (any ? isfinite(weight) : weight > 0 && weight <= 1) return CQ_OK;
  return cq_fail(CQ_INVALID, "a weight in point %d of %s %d is %g; it must be %s", point + 1, list->noun, list->number,
                 weight, any ? "finite" : "above 0 and at most 1");
}

// CQ_OK, or CQ_INVALID for a point (its index from 0) of a cable or a chamber whose particles do not exist, or whose
// weights are wrong or do not sum to 1.
static cq_status check_point(const cq_world_def *def, const point_list *list, int32_t point) {
  const int64_t begin = list->start[point], end = list->start[point + 1];
  double sum = 0;
  if (end < begin)
    return cq_fail(CQ_INVALID, "point %d of %s %d has fewer particles than none", point + 1, list->noun, list->number);
  for (int i = 0; begin == end && i < def->dim; i++)
    if (!list->anchor || !isfinite(list->anchor[point * def->dim + i]))
      return cq_fail(CQ_INVALID, "point %d of %s %d has neither particles nor a place in the world", point + 1,
                     list->noun, list->number);
  for (int64_t k = begin; k < end; k++) {
    const int32_t p = list->particle[k];
    if (p < 0 || p >= def->particle_count)
      return cq_fail(CQ_INVALID, "point %d of %s %d is particle %lld; there are %lld", point + 1, list->noun,
                     list->number, p + 1ll, (long long)def->particle_count);
    const cq_status status = check_weight(list, point, list->weight[k]);
    if (status) return status;
    sum += list->weight[k];
  }
  if (end > begin && fabs(sum - 1) > 1e-9)
    return cq_fail(CQ_INVALID, "the weights in point %d of %s %d sum to %.12g; they must sum to 1", point + 1,
                   list->noun, list->number, sum);
  return CQ_OK;
}

// Checks the actuator and all points of a cable or chamber: enough points, particles that exist, weights that sum to 1
// in each point that has particles. Adds the number of pairs of a point and one of its particles to `particles`. CQ_OK
// or CQ_INVALID.
static cq_status check_points(const cq_world_def *def, const point_list *list, int64_t *particles) {
  if (list->actuator < 0 || list->actuator >= def->actuator_count)
    return cq_fail(CQ_INVALID, "%s %d follows actuator %lld; there are %d", list->noun, list->number,
                   list->actuator + 1ll, def->actuator_count);
  if (list->count < 2)
    return cq_fail(CQ_INVALID, "%s %d has %d point%s; it must have 2 or more", list->noun, list->number, list->count,
                   list->count == 1 ? "" : "s");
  for (int32_t k = 0; k < list->count; k++) {
    const cq_status status = check_point(def, list, k);
    if (status) return status;
    *particles += list->start[k + 1] - list->start[k];
  }
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for cable k (from 0) of the definition with wrong points, actuator or free length.
static cq_status check_cable(const cq_world_def *def, int32_t k) {
  const point_list list = points_of_cable(def, k);
  int64_t particles = 0;
  const cq_status status = check_points(def, &list, &particles);
  if (status) return status;
  const cq_cable *cable = def->cables + k;
  if (!isfinite(cable->offset) || !isfinite(cable->slope))
    return cq_fail(CQ_INVALID, "the free length of cable %d is R (%g + %g u); both numbers must be finite", k + 1,
                   cable->offset, cable->slope);
  if (!particles)
    return cq_fail(CQ_INVALID, "cable %d pulls at no particle: all of its points are fixed in the world", k + 1);
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for chamber k (from 0) of the definition with wrong faces, points or actuator.
static cq_status check_chamber(const cq_world_def *def, int32_t k) {
  const point_list list = points_of_chamber(def, k);
  const cq_chamber *chamber = def->chambers + k;
  int64_t particles = 0;
  const cq_status status = check_points(def, &list, &particles);
  if (status) return status;
  if (chamber->face_count <= def->dim)
    return cq_fail(CQ_INVALID, "chamber %d has %d face%s; it must have %d or more", k + 1, chamber->face_count,
                   chamber->face_count == 1 ? "" : "s", def->dim + 1);
  for (int64_t f = 0; f < (int64_t)chamber->face_count * def->dim; f++)
    if (chamber->face[f] < 0 || chamber->face[f] >= chamber->point_count)
      return cq_fail(CQ_INVALID, "face %lld of chamber %d has point %lld; there are %d", (long long)(f / def->dim) + 1,
                     k + 1, chamber->face[f] + 1ll, chamber->point_count);
  return CQ_OK;
}

// ---- paths ----------------------------------------------------------------------------------------------------------

// Allocates all arrays of cables and chambers, whose counts are set, and fills the starts of faces; 1, or 0 if there
// is no memory. cq_cables_destroy frees them either way.
static int alloc_cables(const cq_world_def *def, cq_cables *c) {
  const size_t count = (size_t)c->count, all = (size_t)c->all, points = (size_t)c->points, pairs = (size_t)c->pairs;
  c->actuator = cq_alloc(all, sizeof *c->actuator, "cables");
  c->offset = cq_alloc(count, sizeof *c->offset, "cables");
  c->slope = cq_alloc(count, sizeof *c->slope, "cables");
  c->start = cq_alloc(all + 1, sizeof *c->start, "cables");
  c->face_start = cq_alloc((size_t)c->chambers + 1, sizeof *c->face_start, "chambers");
  for (int32_t k = 0; k < c->chambers && c->face_start; k++)
    c->face_start[k + 1] = c->face_start[k] + def->chambers[k].face_count;
  const size_t faces = c->face_start ? (size_t)c->face_start[c->chambers] : 0;
  c->face = cq_alloc(faces * (size_t)def->dim, sizeof *c->face, "chambers");
  c->corner = cq_alloc(faces * (size_t)def->dim, sizeof *c->corner, "chambers");
  c->corner_start = cq_alloc(points + 1, sizeof *c->corner_start, "chambers");
  c->point_start = cq_alloc(points + 1, sizeof *c->point_start, "cables");
  c->particle = cq_alloc(pairs, sizeof *c->particle, "cables");
  c->weight = cq_alloc(pairs, sizeof *c->weight, "cables");
  c->anchor = cq_alloc(points * (size_t)def->dim, sizeof *c->anchor, "cables");
  c->pulled = cq_alloc(pairs, sizeof *c->pulled, "cables");
  c->pull_start = cq_alloc(pairs + 1, sizeof *c->pull_start, "cables");
  c->pull_point = cq_alloc(pairs, sizeof *c->pull_point, "cables");
  c->pull_weight = cq_alloc(pairs, sizeof *c->pull_weight, "cables");
  return c->actuator && c->offset && c->slope && c->start && c->face_start && c->face && c->corner &&
         c->corner_start && c->point_start && c->particle && c->weight && c->anchor && c->pulled && c->pull_start &&
         c->pull_point && c->pull_weight;
}

// Copies actuator and points of a cable or chamber into the arrays of c, as number `index` of all cables, then
// chambers: the particles and weights of each point, or the anchor of a point without particles. Called in the order of
// `index`, since each begins where the one before ends.
static void copy_points(const point_list *list, int32_t dim, cq_cables *c, int32_t index) {
  const int64_t first = c->start[index], pairs = c->point_start[first];
  const int64_t from = list->start[0], count = list->start[list->count] - from;
  c->actuator[index] = list->actuator;
  c->start[index + 1] = first + list->count;
  for (int32_t k = 0; k < list->count; k++) {
    c->point_start[first + k + 1] = pairs + list->start[k + 1] - from;
    for (int32_t i = 0; i < dim && list->start[k] == list->start[k + 1]; i++)
      c->anchor[(first + k) * dim + i] = list->anchor[k * dim + i];
  }
  memcpy(c->particle + pairs, list->particle + from, (size_t)count * sizeof *c->particle);
  memcpy(c->weight + pairs, list->weight + from, (size_t)count * sizeof *c->weight);
}

// Copies the points of all cables and chambers and the faces of chambers from the user's definition into c, which is
// allocated.
static void copy_all(const cq_world_def *def, cq_cables *c) {
  for (int32_t k = 0; k < c->count; k++) {
    const point_list list = points_of_cable(def, k);
    copy_points(&list, def->dim, c, k);
    c->offset[k] = def->cables[k].offset;
    c->slope[k] = def->cables[k].slope;
  }
  for (int32_t k = 0; k < c->chambers; k++) {
    const point_list list = points_of_chamber(def, k);
    copy_points(&list, def->dim, c, c->count + k);
    memcpy(c->face + c->face_start[k] * def->dim, def->chambers[k].face,
           (size_t)(def->chambers[k].face_count * def->dim) * sizeof *c->face);
  }
}

// Lists the pairs of a particle and a point that it carries by particle (pulled, pull_start, pull_point, pull_weight),
// in the order of the points within one, so that each particle sums its forces in one order. first {particle_count}:
// work memory, zeros.
static void sort_pulls(cq_cables *c, int64_t particle_count, int64_t *first) {
  for (int64_t k = 0; k < c->pairs; k++) first[c->particle[k]]++;
  int64_t sum = 0;
  for (int64_t p = 0; p < particle_count; p++) {
    const int64_t here = first[p];
    if (here) {
      c->pulled[c->pulled_count] = (int32_t)p;
      c->pull_start[c->pulled_count++] = sum;
    }
    first[p] = sum;
    sum += here;
  }
  c->pull_start[c->pulled_count] = sum;
  for (int64_t point = 0; point < c->points; point++)
    for (int64_t k = c->point_start[point]; k < c->point_start[point + 1]; k++) {
      const int64_t at = first[c->particle[k]]++;
      c->pull_point[at] = point;
      c->pull_weight[at] = c->weight[k];
    }
}

// Sets x to the position of a point of a cable or chamber: the weighted mean of its particles, or its anchor in the
// world. point: its index among all points; position {n, dim}.
static void place_point(const cq_cables *c, int32_t dim, int64_t point, const double *position, double x[3]) {
  for (int32_t i = 0; i < dim; i++) {
    x[i] = c->point_start[point] == c->point_start[point + 1] ? c->anchor[point * dim + i] : 0;
    for (int64_t k = c->point_start[point]; k < c->point_start[point + 1]; k++)
      x[i] += c->weight[k] * position[c->particle[k] * dim + i];
  }
}

// The distance of two points [length].
static double distance(const double a[3], const double b[3], int32_t dim) {
  double square = 0;
  for (int32_t i = 0; i < dim; i++) square += (b[i] - a[i]) * (b[i] - a[i]);
  return sqrt(square);
}

// CQ_OK, or CQ_INVALID for a cable with two successive points at the same position, since a segment without length has
// no direction. position {n, dim}.
static cq_status check_segments(const cq_cables *c, int32_t dim, const double *position) {
  for (int32_t index = 0; index < c->count; index++)
    for (int64_t point = c->start[index]; point + 1 < c->start[index + 1]; point++) {
      double a[3], b[3];
      place_point(c, dim, point, position, a);
      place_point(c, dim, point + 1, position, b);
      if (distance(a, b, dim) > 0) continue;
      return cq_fail(
          CQ_INVALID,
          "points %lld and %lld of cable %d are at the same place; a cable needs a length between its points",
          (long long)(point - c->start[index]) + 1, (long long)(point - c->start[index]) + 2, index + 1);
    }
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a chamber (its index from 0) that is open: the area vectors of its faces do not sum to zero.
// position {n, dim}.
static cq_status check_closed(const cq_cables *c, int32_t dim, const double *position, int32_t chamber) {
  double sum[3] = {0}, size = 0;
  for (int64_t f = c->face_start[chamber]; f < c->face_start[chamber + 1]; f++) {
    double x[3][3] = {{0}}, area[3] = {0}, square = 0;
    for (int k = 0; k < dim; k++)
      place_point(c, dim, c->start[c->count + chamber] + c->face[f * dim + k], position, x[k]);
    if (dim == 2) {
      area[0] = x[1][1] - x[0][1];
      area[1] = x[0][0] - x[1][0];
    }
    for (int i = 0; i < 3 && dim == 3; i++) {
      const int j = (i + 1) % 3, l = (i + 2) % 3;
      area[i] = ((x[1][j] - x[0][j]) * (x[2][l] - x[0][l]) - (x[1][l] - x[0][l]) * (x[2][j] - x[0][j])) / 2;
    }
    for (int i = 0; i < dim; i++) {
      sum[i] += area[i];
      square += area[i] * area[i];
    }
    size += sqrt(square);
  }
  for (int i = 0; i < dim; i++)
    if (!(fabs(sum[i]) <= 1e-9 * size))
      return cq_fail(CQ_INVALID, "chamber %d is open: the area vectors of its faces sum to %g along axis %d",
                     chamber + 1, sum[i], i + 1);
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID if `field` is the friction of cables, value is not 0, and cables have the forces of the end of
// an implicit step: these need an energy, which friction does not have.
cq_status cq_cables_check(const cq_model *m, int32_t field, double value) {
  if (field != CQ_FIELD_CABLE_FRICTION || value == 0 || !cq_is_implicit(m) || !m->integrator.cables) return CQ_OK;
  return cq_fail(CQ_INVALID, "a cable has a friction of %g, and friction in a sheath has no energy: with it the cables "
                 "of cq.Implicit must be lagged, or the friction 0", value);
}

// Copies and checks the constants of each cable. CQ_OK, CQ_MEMORY, or CQ_INVALID where one is wrong, or needed and
// missing.
static cq_status copy_fields(const cq_world_def *def, cq_model *m) {
  for (int32_t f = CQ_FIELD_CABLE_STIFFNESS; f < CQ_FIELD_GRAVITY; f++) {
    const cq_field_info *info = cq_field_describe(f);
    if (!def->value[f] && isnan(info->value)) return cq_fail(CQ_INVALID, "%s is needed for every cable", info->name);
    m->value[f] = cq_alloc((size_t)def->cable_count, sizeof(double), info->name);
    if (!m->value[f]) return CQ_MEMORY;
    for (int32_t k = 0; k < def->cable_count; k++) {
      m->value[f][k] = def->value[f] ? def->value[f][k] : info->value;
      cq_status status = cq_field_check(f, info->name, k, m->value[f][k]);
      if (!status) status = cq_cables_check(m, f, m->value[f][k]);
      if (status) return status;
    }
  }
  return CQ_OK;
}

// Lists the corners of chambers' faces by their point (corner_start, corner), in the order of the faces within one, so
// that each point sums its forces in one order.
static void sort_corners(cq_cables *c, int32_t dim) {
  for (int turn = 0; turn < 2; turn++) {
    for (int32_t k = 0; k < c->chambers; k++)
      for (int64_t n = c->face_start[k] * dim; n < c->face_start[k + 1] * dim; n++) {
        const int64_t point = c->start[c->count + k] + c->face[n];
        if (turn) c->corner[c->corner_start[point]++] = (int32_t)(n - c->face_start[k] * dim);
        else c->corner_start[point + 1]++;
      }
    for (int64_t p = 0; p < c->points && !turn; p++) c->corner_start[p + 1] += c->corner_start[p];
  }
  // each start is now the end of its point, that is the start of the next
  for (int64_t p = c->points; p > 0; p--) c->corner_start[p] = c->corner_start[p - 1];
  c->corner_start[0] = 0;
}

// Checks all cables and chambers of a definition, and sets the numbers of points and pairs in c. CQ_OK or CQ_INVALID.
static cq_status check_all(const cq_world_def *def, cq_cables *c) {
  cq_status status = CQ_OK;
  for (int32_t k = 0; k < def->cable_count && !status; k++) {
    status = check_cable(def, k);
    if (status) break;
    c->points += def->cables[k].point_count;
    c->pairs += def->cables[k].point_start[def->cables[k].point_count] - def->cables[k].point_start[0];
  }
  for (int32_t k = 0; k < def->chamber_count && !status; k++) {
    status = check_chamber(def, k);
    if (status) break;
    c->points += def->chambers[k].point_count;
    c->pairs += def->chambers[k].point_start[def->chambers[k].point_count] - def->chambers[k].point_start[0];
  }
  return status;
}

// Checks cables and chambers of a definition and copies them, with the constants of cables, into the model; its
// positions and actuators are there already. CQ_OK, CQ_MEMORY or CQ_INVALID.
cq_status cq_cables_create(const cq_world_def *def, cq_model *m) {
  cq_cables *c = &m->cables;
  if (def->cable_count < 0)
    return cq_fail(CQ_INVALID, "%d cables; there must not be fewer than none", def->cable_count);
  if (def->chamber_count < 0)
    return cq_fail(CQ_INVALID, "%d chambers; there must not be fewer than none", def->chamber_count);
  if (!def->cable_count && !def->chamber_count) return CQ_OK;
  cq_status status = check_all(def, c);
  if (status) return status;
  c->count = def->cable_count;
  c->chambers = def->chamber_count;
  c->all = c->count + c->chambers;
  if (!alloc_cables(def, c)) return CQ_MEMORY;
  copy_all(def, c);
  sort_corners(c, def->dim);
  int64_t *first = cq_alloc((size_t)def->particle_count, sizeof *first, "cables");
  if (!first) return CQ_MEMORY;
  sort_pulls(c, def->particle_count, first);
  cq_free(first);
  status = check_segments(c, def->dim, m->position);
  for (int32_t k = 0; k < c->chambers && !status; k++) status = check_closed(c, def->dim, m->position, k);
  return status || !c->count ? status : copy_fields(def, m);
}

// Frees the cables and chambers of a model.
void cq_cables_destroy(cq_cables *c) {
  void *owned[] = {c->actuator, c->offset, c->slope,  c->start,      c->point_start, c->particle,   c->weight,
                   c->anchor,   c->pulled, c->pull_start, c->pull_point, c->pull_weight, c->face_start, c->face,
                   c->corner,   c->corner_start};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
}

// ---- stability ------------------------------------------------------------------------------------------------------
//
// A cable is a spring between the nodes that take its pull, with the share q_i of node i, and its mass m_i. Along the
// cable, pulls d_j at all points give the squared frequency k sum_i |q_i|^2 / m_i; across it, a point between segments
// of lengths a and b is a spring of 2 T (1/a + 1/b). Segments shorter than a cell count as one cell long.

// the box of grid nodes around all particles that cables pull
typedef struct nodes {
  int32_t lower[3], size[3];
  double *mass, *share;       // {size}, {size, dim}
} nodes;

// Sets base to the first of the three nodes around x along each axis, and w[axis][node] to their quadratic B-spline
// weights.
static void weights_of(const cq_model *m, const double *x, int32_t base[3], double w[3][3]) {
  for (int i = 0; i < m->dim; i++) {
    base[i] = (int32_t)floor(x[i] / m->dx - 0.5);
    const double f = x[i] / m->dx - base[i];
    w[i][0] = 0.5 * (1.5 - f) * (1.5 - f);
    w[i][1] = 0.75 - (f - 1) * (f - 1);
    w[i][2] = 0.5 * (f - 0.5) * (f - 0.5);
  }
}

// Returns the index, in the box of nodes n, of node k (0 to 3^dim - 1) of the stencil with the first node `base` and
// the weights w; -1 if it lies outside of the box. Sets weight to the product of its weights.
static int64_t node_at(const cq_model *m, const nodes *n, const int32_t base[3], double w[3][3], int k,
                       double *weight) {
  int64_t at = 0;
  *weight = 1;
  for (int i = 0; i < m->dim; i++, k /= 3) {
    const int32_t node = base[i] + k % 3 - n->lower[i];
    if (node < 0 || node >= n->size[i]) return -1;
    at = at * n->size[i] + node;
    *weight *= w[i][k % 3];
  }
  return at;
}

// Sets n, zeros before, to the box of nodes around the particles that cables and chambers act on, and computes the mass
// of each node, on which the frequency of a cable depends. v[field]: values. The caller frees n->mass and n->share,
// also after CQ_MEMORY. CQ_OK or CQ_MEMORY.
static cq_status open_nodes(const cq_model *m, const double *const *v, nodes *n) {
  const int corners = m->dim == 3 ? 27 : 9;
  int32_t base[3], upper[3] = {0};
  double w[3][3], weight;
  for (int64_t k = 0; k < m->cables.pulled_count; k++) {
    weights_of(m, v[CQ_FIELD_POSITION] + (int64_t)m->cables.pulled[k] * m->dim, base, w);
    for (int i = 0; i < m->dim; i++) {
      if (!k || base[i] < n->lower[i]) n->lower[i] = base[i];
      if (!k || base[i] > upper[i]) upper[i] = base[i];
    }
  }
  size_t count = 1;
  for (int i = 0; i < m->dim; i++) count *= (size_t)(n->size[i] = upper[i] - n->lower[i] + 3);
  n->mass = cq_alloc(count, sizeof *n->mass, "the nodes of cables");
  n->share = cq_alloc(count * (size_t)m->dim, sizeof *n->share, "the nodes of cables");
  if (!n->mass || !n->share) return CQ_MEMORY;
  for (int64_t p = 0; p < m->particle_count; p++) {
    weights_of(m, v[CQ_FIELD_POSITION] + p * m->dim, base, w);
    for (int k = 0; k < corners; k++) {
      const int64_t at = node_at(m, n, base, w, k, &weight);
      if (at >= 0) n->mass[at] += weight * v[CQ_FIELD_MASS][p];
    }
  }
  return CQ_OK;
}

// Spreads a pull over nodes, or sums up what was spread. With d {dim}, a pull at a point of a cable: adds the point's
// share of it to n->share at each node around it, and returns 0. With d NULL: returns the sum of |share|^2 / mass over
// the nodes of this point, and sets their shares to zero.
static double point_nodes(const cq_model *m, const double *position, nodes *n, int64_t point, const double *d) {
  const cq_cables *c = &m->cables;
  const int corners = m->dim == 3 ? 27 : 9;
  double sum = 0, weight, w[3][3];
  int32_t base[3];
  for (int64_t pair = c->point_start[point]; pair < c->point_start[point + 1]; pair++) {
    weights_of(m, position + (int64_t)c->particle[pair] * m->dim, base, w);
    for (int k = 0; k < corners; k++) {
      const int64_t at = node_at(m, n, base, w, k, &weight);
      double *share = n->share + at * m->dim;
      for (int i = 0; i < m->dim; i++) {
        if (d) {
          share[i] += c->weight[pair] * weight * d[i];
          continue;
        }
        if (n->mass[at] > 0) sum += share[i] * share[i] / n->mass[at];
        share[i] = 0;
      }
    }
  }
  return sum;
}

// Sets x {end - begin, dim} to the positions of the points [begin, end) of a cable; returns the length of the path
// along them.
static double lay_points(const cq_model *m, const double *position, int64_t begin, int64_t end, double *x) {
  double span = 0;
  for (int64_t point = begin; point < end; point++) {
    double place[3];
    place_point(&m->cables, m->dim, point, position, place);
    memcpy(x + (point - begin) * m->dim, place, (size_t)m->dim * sizeof *x);
    if (point > begin) span += distance(x + (point - begin - 1) * m->dim, place, m->dim);
  }
  return span;
}

// Sets pull to the force of a cable with tension 1 on point k (from 0) of its path x {count, dim}; returns 1/a + 1/b of
// the lengths of the segments beside the point, each at least dx.
static double pull_of(const cq_model *m, const double *x, int64_t k, int64_t count, double pull[3]) {
  double inverse = 0;
  memset(pull, 0, 3 * sizeof *pull);
  for (int side = -1; side <= 1; side += 2) {
    if (k + side < 0 || k + side >= count) continue;
    const double *here = x + k * m->dim, *other = x + (k + side) * m->dim, length = distance(here, other, m->dim);
    for (int i = 0; i < m->dim && length > 0; i++) pull[i] += (other[i] - here[i]) / length;
    inverse += 1 / fmax(length, m->dx);
  }
  return inverse;
}

// The square of the Courant number of cable number `index` as a spring between nodes of the grid, for the world's step.
// v[field]: values; n: from open_nodes; x: work memory for the cable's points.
static double courant_of(const cq_model *m, const double *const *v, nodes *n, int32_t index, double *x) {
  const cq_cables *c = &m->cables;
  const int64_t begin = c->start[index], count = c->start[index + 1] - begin;
  const double k = v[CQ_FIELD_CABLE_STIFFNESS][index], *position = v[CQ_FIELD_POSITION], axis[3] = {1};
  const double span = lay_points(m, position, begin, begin + count, x);
  const double free_length = v[CQ_FIELD_CABLE_LENGTH][index] * fmax(0, c->offset[index] - fabs(c->slope[index]));
  double along = 0, across = 0, pull[3];
  for (int64_t point = 0; point < count; point++) {
    point_nodes(m, position, n, begin + point, axis);
    across = fmax(across, point_nodes(m, position, n, begin + point, NULL) * pull_of(m, x, point, count, pull));
  }
  for (int64_t point = 0; point < count; point++) {
    pull_of(m, x, point, count, pull);
    point_nodes(m, position, n, begin + point, pull);
  }
  for (int64_t point = 0; point < count; point++) along += point_nodes(m, position, n, begin + point, NULL);
  return m->dt * m->dt * (k * along / 4 + k * fmax(0, span - free_length) * across / 2);
}

// The Courant number of the stiffest cable; 0 without cables, INFINITY without memory. value[field]: arrays of all
// fields, not NULL.
double cq_cables_courant(const cq_model *m, const double *const *value) {
  double largest = 0;
  if (!m->cables.count) return 0;
  nodes n = {0};
  double *x = cq_alloc((size_t)(m->cables.points * m->dim), sizeof *x, "the points of cables");
  if (x && open_nodes(m, value, &n) == CQ_OK)
    for (int32_t k = 0; k < m->cables.count; k++) largest = fmax(largest, courant_of(m, value, &n, k, x));
  else
    largest = INFINITY;   // without memory nothing is known to be stable
  cq_free(n.mass);
  cq_free(n.share);
  cq_free(x);
  return sqrt(largest);
}

// ---- surfaces -------------------------------------------------------------------------------------------------------

// CQ_OK, or CQ_INVALID for entry k (from 0) of the open surfaces under pressure with a wrong particle, actuator or
// area.
static cq_status check_surface(const cq_world_def *def, int64_t k) {
  const int32_t p = def->surface_particle[k], a = def->surface_actuator[k];
  if (p < 0 || p >= def->particle_count || a < 0 || a >= def->actuator_count)
    return cq_fail(CQ_INVALID, "surface entry %lld is (particle %lld, actuator %lld); there are %lld and %d",
                   (long long)k + 1, p + 1ll, a + 1ll, (long long)def->particle_count, def->actuator_count);
  for (int i = 0; i < def->dim; i++)
    if (!isfinite(def->surface_area[k * def->dim + i]))
      return cq_fail(CQ_INVALID, "area of surface entry %lld is %g along axis %d; it must be finite", (long long)k + 1,
                     def->surface_area[k * def->dim + i], i + 1);
  return CQ_OK;
}

// Checks the entries of open surfaces under pressure of a definition, and copies them into the model, sorted by
// particle. CQ_OK or an error.
cq_status cq_surfaces_create(const cq_world_def *def, cq_model *m) {
  cq_surfaces *s = &m->surfaces;
  const int64_t n = def->particle_count, count = def->surface_count;
  if (count < 0)
    return cq_fail(CQ_INVALID, "%lld surface entries; there must not be fewer than none", (long long)count);
  if (!count) return CQ_OK;
  s->start = cq_alloc((size_t)n + 1, sizeof *s->start, "surfaces");
  s->actuator = cq_alloc((size_t)count, sizeof *s->actuator, "surfaces");
  s->area = cq_alloc((size_t)(count * def->dim), sizeof *s->area, "surfaces");
  if (!s->start || !s->actuator || !s->area) return CQ_MEMORY;
  s->count = count;
  for (int64_t k = 0; k < count; k++) {
    const cq_status status = check_surface(def, k);
    if (status) return status;
    s->start[def->surface_particle[k] + 1]++;
  }
  // by particle, in the user's order within a particle: filled from the last on, each start is moved to its begin
  for (int64_t p = 0; p < n; p++) s->start[p + 1] += s->start[p];
  for (int64_t k = count; k-- > 0;) {
    const int64_t at = --s->start[def->surface_particle[k] + 1];
    s->actuator[at] = def->surface_actuator[k];
    memcpy(s->area + at * def->dim, def->surface_area + k * def->dim, (size_t)def->dim * sizeof *s->area);
  }
  for (int64_t p = 0; p < n; p++) s->start[p] = s->start[p + 1];
  s->start[n] = count;
  return CQ_OK;
}

// Frees the surfaces of a model.
void cq_surfaces_destroy(cq_surfaces *s) {
  cq_free(s->start);
  cq_free(s->actuator);
  cq_free(s->area);
}
