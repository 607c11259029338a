// grids: see grids.h.
//
// A surface lies midway between two nodes where it can: of a lattice of particles all surfaces do whose distance from
// the lowest one is a whole number of cells. The outermost nodes then stand half a cell outside, by which walls are
// moved back (step_contact.inl). Along one axis, nodes (o), particles (.) and the cells around the inner nodes:
//
//    o  |  .  o  .  |  .  o  .  |  o        two particles a cell; the surface is at the outer bars
#include "grids.h"
#include <math.h>
#include <string.h>

static const double lattice_tolerance = 1e-6;   // cells

// Sets *out to the grids of a model's bodies, {body_count}, to be freed by cq_free, with their origins: the first node
// of each stands half a cell below the surface of its lowest particle, by the positions that the world was made with.
// CQ_OK or CQ_MEMORY.
cq_status cq_grids_create(const cq_model *m, cq_body **out) {
  const int32_t dim = m->dim;
  cq_body *bodies = cq_alloc((size_t)m->body_count, sizeof *bodies, "grids of bodies");
  if (!bodies) return CQ_MEMORY;
  for (int32_t b = 0; b < m->body_count; b++)
    for (int i = 0; i < 3; i++) bodies[b].origin[i] = i < dim ? INFINITY : 0;
  for (int64_t p = 0; p < m->particle_count; p++) {
    if (m->body[p] < 0) continue;
    cq_body *body = &bodies[m->body[p]];
    const double side = dim == 2 ? sqrt(m->volume[p]) : cbrt(m->volume[p]);
    body->particles++;
    for (int i = 0; i < dim; i++)
      body->origin[i] = fmin(body->origin[i], m->position[p * dim + i] - side / 2 - m->dx / 2);
  }
  *out = bodies;
  return CQ_OK;
}

// Sets the shift of each body: the mean displacement of its particles at positions {n, dim} from their positions in the
// definition, by which its reference grid moves.
static void find_shifts(const cq_model *m, const double *positions, cq_body *bodies) {
  for (int32_t b = 0; b < m->body_count; b++) memset(bodies[b].shift, 0, sizeof bodies[b].shift);
  for (int64_t p = 0; p < m->particle_count; p++)
    for (int i = 0; i < m->dim && m->body[p] >= 0; i++)
      bodies[m->body[p]].shift[i] += positions[p * m->dim + i] - m->position[p * m->dim + i];
  for (int32_t b = 0; b < m->body_count; b++)
    for (int i = 0; i < m->dim; i++) bodies[b].shift[i] /= (double)bodies[b].particles;
}

// Sets cell to the cell of its body's grid that a point x lies in, counted from the body's origin, and fraction to its
// position from the node in the middle of the cell, in [-1/2, 1/2). The origin must not change until all particles have
// their cells: other rounding could put a particle on the edge of two cells into the other one.
void cq_grids_cell(const cq_model *m, const cq_body *body, const double *x, int64_t cell[3], double fraction[3]) {
  cell[0] = cell[1] = cell[2] = 0;
  for (int i = 0; i < m->dim; i++) {
    const double at = (x[i] - body->origin[i] - body->shift[i]) / m->dx;
    cell[i] = (int64_t)floor(at + 0.5);
    fraction[i] = at - (double)cell[i];
  }
}

// Sets shift, low and count of all bodies for positions {n, dim}: nodes around the cells of all particles. Cells begin
// at 1: a particle that positions put below the first cell makes the grid begin earlier. CQ_OK or CQ_MEMORY.
cq_status cq_grids_size(const cq_model *m, const double *positions, cq_body *bodies) {
  int64_t(*high)[3] = cq_alloc((size_t)m->body_count, sizeof *high, "grids of bodies");
  if (!high) return CQ_MEMORY;
  find_shifts(m, positions, bodies);
  for (int32_t b = 0; b < m->body_count; b++)
    for (int i = 0; i < 3; i++) {
      bodies[b].low[i] = INT64_MAX;
      high[b][i] = INT64_MIN;
    }
  for (int64_t p = 0; p < m->particle_count; p++) {
    if (m->body[p] < 0) continue;
    cq_body *body = &bodies[m->body[p]];
    int64_t cell[3], *most = high[m->body[p]];
    double fraction[3];
    cq_grids_cell(m, body, positions + p * m->dim, cell, fraction);
    for (int i = 0; i < 3; i++) {
      if (cell[i] < body->low[i]) body->low[i] = cell[i];
      if (cell[i] > most[i]) most[i] = cell[i];
    }
  }
  for (int32_t b = 0; b < m->body_count; b++)
    for (int i = 0; i < 3; i++) {
      bodies[b].count[i] = i < m->dim ? (int32_t)(high[b][i] - bodies[b].low[i] + 3) : 1;
      bodies[b].low[i] = i < m->dim ? bodies[b].low[i] - 1 : 0;
    }
  cq_free(high);
  return CQ_OK;
}

// Moves the origin of each body to its first node. Called once all particles have their cells (cq_grids_cell), which
// are counted from the origin before.
void cq_grids_settle(const cq_model *m, cq_body *bodies) {
  for (int32_t b = 0; b < m->body_count; b++)
    for (int i = 0; i < m->dim; i++) bodies[b].origin[i] += (double)bodies[b].low[i] * m->dx;
}

// Is a particle a quarter of a cell from the node of its cell along every axis, as on a lattice of two particles a
// side? Returns its corner there, a bit for each axis, 1 for the upper side, the last axis lowest; else -1. fraction:
// from the node [cells].
int32_t cq_grids_corner(int32_t dim, const double fraction[3]) {
  int32_t corner = 0;
  for (int i = 0; i < dim; i++) {
    const int32_t upper = fraction[i] > 0;
    if (fabs(fraction[i] - (upper ? 0.25 : -0.25)) > lattice_tolerance) return -1;
    corner = 2 * corner + upper;
  }
  return corner;
}
