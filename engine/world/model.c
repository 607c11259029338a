// model: checks a world's definition and copies it.
#include "constants.h"
#include "grids.h"
#include "model.h"
#include <math.h>
#include <string.h>

// Fills the definition of a world with defaults: 2D, float32, 64 cells of 1/64 along each axis, one engine step of 1e-3
// a control step, and nothing in it.
void cq_world_def_init(cq_world_def *def) {
  *def = (cq_world_def){
      .cookie = CQ_COOKIE,
      .dim = 2,
      .precision = CQ_FLOAT32,
      .cells = {64, 64, 64},
      .dx = 1.0 / 64,
      .dt = 1e-3,
      .substeps = 1,
  };
}

// A copy of an array of `count` numbers, or zeros if `from` is NULL, to be freed by cq_free; NULL without memory. what:
// its name for the sentence.
static double *copy_doubles(const double *from, int64_t count, const char *what) {
  double *to = cq_alloc((size_t)count, sizeof *to, what);
  if (to && from) memcpy(to, from, (size_t)count * sizeof *to);
  return to;
}

// CQ_OK, or CQ_INVALID for a wrong dimension, precision, number or size of cells, step, gravity, damping or smoothing
// of pressure.
static cq_status check_grid(const cq_world_def *def) {
  if (def->dim != 2 && def->dim != 3) return cq_fail(CQ_INVALID, "dim is %d; it must be 2 or 3", def->dim);
  if (def->precision != CQ_FLOAT32 && def->precision != CQ_FLOAT64)
    return cq_fail(CQ_INVALID, "precision is %d; it must be float32 or float64", def->precision);
  for (int i = 0; i < def->dim; i++)
    if (def->cells[i] < 4 || def->cells[i] > 16384)
      return cq_fail(CQ_INVALID, "cells[%d] is %d; it must be between 4 and 16384", i + 1, def->cells[i]);
  if (!(def->dx > 0) || !isfinite(def->dx)) return cq_fail(CQ_INVALID, "dx is %g; it must be positive", def->dx);
  if (!(def->dt > 0) || !isfinite(def->dt)) return cq_fail(CQ_INVALID, "dt is %g; it must be positive", def->dt);
  if (def->substeps < 1) return cq_fail(CQ_INVALID, "substeps is %d; it must be at least 1", def->substeps);
  for (int i = 0; i < def->dim; i++)
    if (!isfinite(def->gravity[i])) return cq_fail(CQ_INVALID, "gravity[%d] is %g", i + 1, def->gravity[i]);
  if (!(def->damping >= 0) || !isfinite(def->damping))
    return cq_fail(CQ_INVALID, "damping is %g; it must be finite and not negative", def->damping);
  if (!(def->pressure_smoothing >= 0) || !isfinite(def->pressure_smoothing))
    return cq_fail(CQ_INVALID, "pressure_smoothing is %g; it must be finite and not negative", def->pressure_smoothing);
  return CQ_OK;
}

// Sets keep and residual_decay of a model: the share of unresolved motion that stays after an engine step (E123), and
// its rate of decay, which is chosen if the definition's is negative; a rate of 0 leaves both 0 (APIC). CQ_OK, or
// CQ_INVALID for steps without this option.
static cq_status check_transfer(const cq_world_def *def, cq_model *m) {
  double rate = def->residual_decay;
  if (!isfinite(rate)) return cq_fail(CQ_INVALID, "transfer.decay is %g; it must be a positive rate", rate);
  if (rate == 0) return CQ_OK;
  if (cq_is_implicit(m))
    return cq_fail(CQ_INVALID, "transfer = { decay } is of explicit steps; leave out the integrator, or transfer");
  if (cq_is_reference(m) && !cq_is_mixed(m))
    return cq_fail(CQ_INVALID, "transfer = { decay } is of steps on the grid of the world, and total Lagrangian steps "
                   "have no transfers; leave it out, or take formulation = \"updated\"");
  if (rate < 0) rate = cq_model_residual_rate(m);
  if (!(rate > 0)) return cq_fail(CQ_INVALID, "transfer.decay: no waves give a rate; give a number");
  m->keep = exp(-rate * m->dt);
  m->residual_decay = rate;
  return CQ_OK;
}

// Copies which body each particle of a total Lagrangian world belongs to, -1 for the grid of the world; all belong to
// body 0 where def->body is NULL. Sets body_count, and spatial_count, how many have -1. CQ_OK, CQ_MEMORY, or CQ_INVALID
// for an unknown body, or if all have -1.
static cq_status copy_bodies(const cq_world_def *def, cq_model *m) {
  const int64_t n = def->particle_count;
  m->body_count = def->body_count > 0 ? def->body_count : 1;
  m->body = cq_alloc((size_t)n, sizeof *m->body, "bodies");
  if (!m->body) return CQ_MEMORY;
  if (!def->body) return CQ_OK;
  for (int64_t p = 0; p < n; p++) {
    if (def->body[p] < -1 || def->body[p] >= m->body_count)
      return cq_fail(CQ_INVALID, "body of particle %lld is %lld; there are %d", (long long)p + 1, def->body[p] + 1ll,
                     m->body_count);
    m->body[p] = def->body[p];
    m->spatial_count += m->body[p] < 0;
  }
  if (m->spatial_count < n) return CQ_OK;
  return cq_fail(CQ_INVALID, "no particle has a body; total Lagrangian steps are of bodies");
}

// The materials that have particles on reference grids, a bit for each.
static uint32_t materials_on_reference(const cq_world_def *def, const cq_model *m) {
  uint32_t mask = 0;
  for (int64_t p = 0; p < m->particle_count; p++)
    if (m->body[p] >= 0) mask |= 1u << (def->material ? def->material[p] : 0);
  return mask;
}

// CQ_OK, or CQ_INVALID for implicit steps or f_bar, which worlds with bodies of both formulations do not have.
static cq_status check_mixed(const cq_model *m) {
  static const char both[] = "bodies of both formulations in one world";
  if (cq_is_implicit(m)) return cq_fail(CQ_INVALID, "%s need explicit steps; leave out the integrator", both);
  for (int32_t k = 0; k < m->material_count; k++)
    if (m->f_bar[k] > 0)
      return cq_fail(CQ_INVALID, "material %d has f_bar, which %s do not have; leave it away", k + 1, both);
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a body with fewer than 1.5 particles along a cell, by their volumes {n}: quadratic splines
// with one particle in a cell let nodes swing against their neighbours without any stress, and a body then sinks half a
// cell into a floor.
cq_status cq_model_check_density(const cq_model *m, const double *volumes) {
  static const double least = 1.5, slack = 5e-3;   // particles along a cell; what is said has three digits
  for (int32_t b = 0; b < m->body_count; b++) {
    double volume = 0, count = 0;
    for (int64_t p = 0; p < m->particle_count; p++)
      if (m->body[p] == b) {
        volume += volumes[p];
        count++;
      }
    const double along = count ? m->dx / pow(volume / count, 1.0 / m->dim) : least;
    if (along < least - slack)
      return cq_fail(CQ_INVALID, "body %d has %.3g particles along a cell; total Lagrangian steps need %g, or nodes "
                     "swing against each other without any stress: take more particles (spacing = dx / 2) or larger "
                     "cells, or formulation = \"updated\"", b + 1, along, least);
  }
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a solid box or sphere of at most one cell in total Lagrangian worlds, where walls begin half
// a cell below their surface: nothing would be left of it.
static cq_status check_thickness(const cq_world_def *def) {
  static const double rounding = 1e-6;
  for (int32_t k = 0; k < def->wall_count; k++) {
    const cq_wall *w = &def->walls[k];
    double least = INFINITY;
    if (w->hollow) continue;
    if (w->shape == CQ_WALL_SPHERE) least = 2 * w->radius;
    for (int i = 0; w->shape == CQ_WALL_BOX && i < def->dim; i++) least = fmin(least, w->upper[i] - w->lower[i]);
    // one without any extent has a sentence of its own
    if (least > 0 && least <= (1 + rounding) * def->dx)
      return cq_fail(CQ_INVALID, "wall %d is %.3g cells thick, and total Lagrangian steps feel nothing of a wall of one "
                     "cell or less: make it thicker, take smaller cells, or formulation = \"updated\"", k + 1,
                     least / def->dx);
  }
  return CQ_OK;
}

// Copies formulation, collisions and bodies of a definition to the model. CQ_OK, CQ_MEMORY, or CQ_INVALID for what
// total Lagrangian steps do not support: laws that flow, f_bar, smoothing of pressure, walls or spacings that are too
// thin.
static cq_status check_reference(const cq_world_def *def, cq_model *m) {
  static const char instead[] = "take formulation = \"updated\"";
  if (def->formulation != CQ_FORMULATION_UPDATED && def->formulation != CQ_FORMULATION_TOTAL_LAGRANGIAN)
    return cq_fail(CQ_INVALID, "formulation is %d; it must be 0 (updated) or 1 (total Lagrangian)", def->formulation);
  m->formulation = def->formulation;
  m->collision_stiffness = def->collision_stiffness;
  if (!(def->collision_stiffness >= 0) || !isfinite(def->collision_stiffness))
    return cq_fail(CQ_INVALID, "collisions.stiffness is %g; it must be finite and not negative",
                   def->collision_stiffness);
  m->collision_friction = def->collision_friction;
  if (!(def->collision_friction >= 0) || !isfinite(def->collision_friction))
    return cq_fail(CQ_INVALID, "collisions.friction is %g; it must be finite and not negative", def->collision_friction);
  if (!cq_is_reference(m) && def->collision_stiffness > 0)
    return cq_fail(CQ_INVALID, "collisions are of formulation = \"total_lagrangian\"; on the grid of the world bodies "
                   "press on each other without them");
  if (!cq_is_reference(m)) return CQ_OK;
  if (cq_is_implicit(m) && def->collision_stiffness > 0)
    return cq_fail(CQ_INVALID, "collisions are of explicit total Lagrangian steps; leave out the integrator");
  cq_status status = copy_bodies(def, m);
  if (!status && cq_is_mixed(m)) status = check_mixed(m);
  if (status) return status;
  const uint32_t used = materials_on_reference(def, m);
  for (int32_t k = 0; k < m->material_count; k++) {
    const cq_material *material = &m->materials[k];
    if (!(used >> k & 1)) continue;
    if (cq_material_updates(material))
      return cq_fail(CQ_INVALID, "material %d (%s%s) flows or relaxes with time, which total Lagrangian steps do not "
                     "follow: %s for its robot or the world", k + 1, cq_law_of(material->kind)->name,
                     material->branches ? " with Maxwell branches" : "", instead);
    if (m->f_bar[k] > 0)
      return cq_fail(CQ_INVALID, "material %d has f_bar, which total Lagrangian steps do not have: %s",
                     k + 1, instead);
  }
  if (def->pressure_smoothing > 0 && !cq_is_mixed(m))
    return cq_fail(CQ_INVALID, "total Lagrangian steps have no liquids, whose pressure could be smoothed; leave out "
                   "pressure_smoothing, or %s", instead);
  status = check_thickness(def);
  return status ? status : cq_model_check_density(m, def->volume);
}

// CQ_OK, or CQ_INVALID for a wrong number of particles, one that starts outside of the world, or no volumes and masses.
static cq_status check_particles(const cq_world_def *def) {
  const int64_t n = def->particle_count, d = def->dim;
  if (n < 1) return cq_fail(CQ_INVALID, "the world has no particles");
  if (n > 1000000000) return cq_fail(CQ_INVALID, "%lld particles are more than 1e9", (long long)n);
  if (!def->position || !def->volume || !def->mass)
    return cq_fail(CQ_INVALID, "position, volume and mass are needed for every particle");
  for (int64_t k = 0; k < n * d; k++) {
    const double x = def->position[k], limit = def->cells[k % d] * def->dx;
    if (!(x >= 0 && x <= limit))
      return cq_fail(CQ_INVALID, "particle %lld starts outside the world: coordinate %d is %g, the world is [0, %g]",
                     (long long)(k / d) + 1, (int)(k % d) + 1, x, limit);
  }
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a viscosity or Maxwell branches that a material with this law may not have.
static cq_status check_beside(const cq_material *m, const cq_law *law) {
  if (m->viscous != 0 && m->viscous != 1) return cq_fail(CQ_INVALID, "viscous is %d; it must be 0 or 1", m->viscous);
  if (m->branches < 0 || m->branches > CQ_BRANCHES_MAX)
    return cq_fail(CQ_INVALID, "%d Maxwell branches; a material has 0 to %d", m->branches, CQ_BRANCHES_MAX);
  if (m->branches && !cq_law_is_hyperelastic(m->kind))
    return cq_fail(CQ_INVALID, "%d Maxwell branches beside the law %s; they need a hyperelastic law of finite strain",
                   m->branches, law->name);
  if (m->viscous + 2 * m->branches + law->slot_count > CQ_SLOTS_MAX)
    return cq_fail(CQ_INVALID, "the law %s with %d Maxwell branches has more than %d constants", law->name, m->branches,
                   CQ_SLOTS_MAX);
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a wrong f_bar, the share of averaged dilatation, from 0 to 1: above 0 only for hyperelastic
// laws without branches, since a flow and a branch change or remember F.
static cq_status check_averaging(const cq_material *m, const cq_law *law, double share) {
  if (!(share >= 0 && share <= 1))
    return cq_fail(CQ_INVALID, "f_bar is %g; it is a share, from 0 (none) to 1", share);
  if (share > 0 && (!cq_law_is_hyperelastic(m->kind) || m->branches))
    return cq_fail(CQ_INVALID, "f_bar stands beside the law %s%s; it needs a hyperelastic law of finite "
                   "strain, without Maxwell branches", law->name, m->branches ? " with Maxwell branches" : "");
  return CQ_OK;
}

// CQ_OK, or CQ_INVALID for a wrong material: kind of law, elasticity, incompressibility, viscosity, branches or f_bar,
// or a particle whose material index does not exist.
static cq_status check_materials(const cq_world_def *def) {
  if (def->material_count < 1 || def->material_count > CQ_MATERIALS_MAX || !def->materials)
    return cq_fail(CQ_INVALID, "%d materials; a world has 1 to %d", def->material_count, CQ_MATERIALS_MAX);
  for (int32_t k = 0; k < def->material_count; k++) {
    const cq_material *m = &def->materials[k];
    const cq_law *law = cq_law_of(m->kind);
    if (!law) return cq_fail(CQ_INVALID, "material %d has the unknown kind %d", k + 1, m->kind);
    if (m->elasticity != CQ_ELASTICITY_YOUNG_POISSON && m->elasticity != CQ_ELASTICITY_SHEAR_BULK)
      return cq_fail(CQ_INVALID, "material %d has the unknown elasticity %d", k + 1, m->elasticity);
    if (m->incompressible && !cq_law_is_volumetric(law))
      return cq_fail(CQ_INVALID, "incompressible is %d; the law %s has no such term", m->incompressible, law->name);
    if (m->incompressible < 0 || m->incompressible > 8 || m->incompressible % 2)
      return cq_fail(CQ_INVALID, "incompressible is %d; the power is 0 (none), 2, 4, 6 or 8: an odd one would push a "
                     "compressed material further in", m->incompressible);
    cq_status status = check_beside(m, law);
    if (!status && def->f_bar) status = check_averaging(m, law, def->f_bar[k]);
    if (status) return status;
  }
  for (int64_t p = 0; def->material && p < def->particle_count; p++)
    if (def->material[p] < 0 || def->material[p] >= def->material_count)
      return cq_fail(CQ_INVALID, "material of particle %lld is %lld; there are %d", (long long)p + 1,
                     def->material[p] + 1ll, def->material_count);
  return CQ_OK;
}

// Does any material of this world have the constant (CQ_FIELD_...)? 1 yes, 0 no.
static int is_taken(const cq_world_def *def, int32_t field) {
  for (int32_t k = 0; k < def->material_count; k++)
    if (cq_material_takes(&def->materials[k], field)) return 1;
  return 0;
}

// Sets m->value[field], a field of particles, to the values given in the definition, or to its default; constants that
// no material of this world has stay NULL. CQ_OK, CQ_MEMORY, or CQ_INVALID for a value that is out of bounds, or needed
// and missing.
static cq_status copy_field(const cq_world_def *def, cq_model *m, int32_t field) {
  const cq_field_info *info = cq_field_describe(field);
  const int constant = info->owner == CQ_OWNER_CONSTANT;
  const int64_t count = cq_model_field_count(m, field), width = count / m->particle_count, d = m->dim;
  if (constant && !is_taken(def, field)) return CQ_OK;
  const double *given = def->value[field];
  if (!given && isnan(info->value)) return cq_fail(CQ_INVALID, "%s is needed for every particle", info->name);
  double *to = m->value[field] = copy_doubles(given, count, info->name);
  if (!to) return CQ_MEMORY;
  for (int64_t k = 0; k < count; k++) {
    if (!given) to[k] = info->rank < 2 || k % width % (d + 1) == 0 ? info->value : 0;
    // nobody reads a constant where the material has none
    if (constant && !cq_material_takes(&m->materials[m->material[k / width]], field)) {
      to[k] = 0;
      continue;
    }
    const cq_status status = cq_field_check(field, info->name, k, to[k]);
    if (status) return status;
  }
  return CQ_OK;
}

// Copies the material of each particle and the values of its fields, and sets slot_count and internal_count, the most
// constants and internal variables that any material here has. CQ_OK, CQ_MEMORY, or CQ_INVALID.
static cq_status copy_particles(const cq_world_def *def, cq_model *m) {
  const int64_t n = m->particle_count;
  m->material = cq_alloc((size_t)n, sizeof *m->material, "materials");
  if (!m->material) return CQ_MEMORY;
  if (def->material) memcpy(m->material, def->material, (size_t)n * sizeof *m->material);
  m->material_count = def->material_count;
  memcpy(m->materials, def->materials, (size_t)def->material_count * sizeof *m->materials);
  for (int32_t k = 0; k < m->material_count; k++) {
    int32_t slot[CQ_SLOTS_MAX];
    const int32_t slots = cq_material_slots(&m->materials[k], slot),
                  internals = cq_material_internals(&m->materials[k], m->dim);
    if (slots > m->slot_count) m->slot_count = slots;
    if (internals > m->internal_count) m->internal_count = internals;
  }
  cq_status status = CQ_OK;
  for (int32_t f = 0; f < CQ_FIELD_ACTUATION_WEIGHT && !status; f++) status = copy_field(def, m, f);
  return status ? status : cq_constants_check(m, (const double *const *)m->value);
}

// How many numbers a field has in one scene; -1 for an unknown field.
int64_t cq_model_field_count(const cq_model *m, int32_t field) {
  const cq_field_info *info = cq_field_describe(field);
  if (!info) return -1;
  const int64_t of[] = {m->particle_count, m->particle_count, m->particle_count, m->actuation_count, 1,
                        m->wall_count,     m->cables.count};
  const int64_t width[] = {1, m->dim, m->dim * m->dim};
  return of[info->owner] * width[info->rank];
}

// CQ_OK, or CQ_INVALID for wrong numbers in a wall's shape and velocity. number: the wall's, from 1, for the sentence.
static cq_status check_wall(const cq_wall *w, int32_t number, int32_t dim) {
  for (int i = 0; i < dim; i++) {
    if (!isfinite(w->velocity[i]))
      return cq_fail(CQ_INVALID, "velocity of wall %d is %g along axis %d; it must be finite", number, w->velocity[i],
                     i + 1);
    if ((w->shape == CQ_WALL_HALF_SPACE || w->shape == CQ_WALL_SPHERE) && !isfinite(w->point[i]))
      return cq_fail(CQ_INVALID, "point of wall %d is %g along axis %d; it must be finite", number, w->point[i], i + 1);
    if (w->shape == CQ_WALL_BOX && !(w->lower[i] < w->upper[i]))
      return cq_fail(CQ_INVALID, "box of wall %d is empty along axis %d: from %g to %g", number, i + 1, w->lower[i],
                     w->upper[i]);
  }
  if (w->shape == CQ_WALL_SPHERE && !(w->radius > 0 && isfinite(w->radius)))
    return cq_fail(CQ_INVALID, "radius of wall %d is %g; it must be positive", number, w->radius);
  return CQ_OK;
}

// Checks and copies walls, their normals made unit vectors, and pins; makes the map of the nodes that they hold. CQ_OK,
// CQ_MEMORY, or CQ_INVALID.
static cq_status copy_walls(const cq_world_def *def, cq_model *m) {
  if (def->wall_count < 0 || def->wall_count > CQ_WALLS_MAX)
    return cq_fail(CQ_INVALID, "%d walls; a world has at most %d", def->wall_count, CQ_WALLS_MAX);
  m->wall_count = def->wall_count;
  for (int32_t k = 0; k < def->wall_count; k++) {
    cq_wall *w = &m->walls[k];
    *w = def->walls[k];
    if (w->kind < CQ_CONTACT_STICKY || w->kind > CQ_CONTACT_HOLD || w->shape < CQ_WALL_HALF_SPACE ||
        w->shape > CQ_WALL_HEIGHT_FIELD)
      return cq_fail(CQ_INVALID, "wall %d has an unknown shape or kind", k + 1);
    if (!(w->friction >= 0) || !isfinite(w->friction))
      return cq_fail(CQ_INVALID, "friction of wall %d is %g; it must not be negative", k + 1, w->friction);
    const cq_status shaped = check_wall(w, k + 1, def->dim);
    if (shaped) return shaped;
    double length = 0;
    for (int i = 0; i < def->dim; i++) length += w->normal[i] * w->normal[i];
    if (w->shape == CQ_WALL_HALF_SPACE && !(length > 0 && isfinite(length)))
      return cq_fail(CQ_INVALID, "normal of wall %d has no length", k + 1);
    for (int i = 0; i < 3; i++) w->normal[i] = i < def->dim && length > 0 ? w->normal[i] / sqrt(length) : 0;
    if (w->shape == CQ_WALL_HEIGHT_FIELD) {
      const int64_t nx = w->height_count[0], nz = def->dim == 3 ? w->height_count[1] : 1;
      if (nx < 1 || nz < 1 || !w->height || !(w->height_spacing[0] > 0) ||
          (def->dim == 3 && !(w->height_spacing[1] > 0)))
        return cq_fail(CQ_INVALID, "height field of wall %d needs heights and a positive spacing", k + 1);
      m->heights[k] = copy_doubles(w->height, nx * nz, "height field");
      if (!m->heights[k]) return CQ_MEMORY;
      w->height = m->heights[k];
      for (int64_t i = 0; i < nx * nz; i++)
        if (!isfinite(w->height[i]))
          return cq_fail(CQ_INVALID, "height of wall %d, sample %lld, is %g; every height must be finite", k + 1,
                         (long long)i, w->height[i]);
    }
    if (w->moves) m->moving_wall_count++;
  }
  if (def->pin_count < 0)
    return cq_fail(CQ_INVALID, "%lld pins; there must not be fewer than none", (long long)def->pin_count);
  if (def->pin_group_count < 0 || def->pin_group_count > def->pin_count)
    return cq_fail(CQ_INVALID, "%d groups of pins; there are %lld pins", def->pin_group_count,
                   (long long)def->pin_count);
  m->pin_count = def->pin_count;
  m->contact_count = cq_contact_count(def);
  m->pins = cq_alloc((size_t)def->pin_count, sizeof *m->pins, "pins");
  if (!m->pins) return CQ_MEMORY;
  if (def->pin_group) {
    m->pin_group = cq_alloc((size_t)def->pin_count, sizeof *m->pin_group, "pins");
    if (!m->pin_group) return CQ_MEMORY;
  }
  for (int64_t k = 0; k < def->pin_count; k++) {
    if (def->pins[k] < 0 || def->pins[k] >= def->particle_count)
      return cq_fail(CQ_INVALID, "pin %lld is particle %lld; there are %lld", (long long)k + 1, def->pins[k] + 1ll,
                     (long long)def->particle_count);
    m->pins[k] = def->pins[k];
    if (!def->pin_group) continue;
    if (def->pin_group[k] < 0 || def->pin_group[k] >= def->pin_group_count)
      return cq_fail(CQ_INVALID, "pin %lld is of group %lld; there are %d", (long long)k + 1, def->pin_group[k] + 1ll,
                     def->pin_group_count);
    m->pin_group[k] = def->pin_group[k];
  }
  return cq_wall_map_create(m);
}

// Checks and copies the directions of actuators and the entries of actuation: their weights in the user's order, their
// actuators sorted by particle, beside the user's index of each entry. CQ_OK, CQ_MEMORY, or CQ_INVALID.
static cq_status copy_actuation(const cq_world_def *def, cq_model *m) {
  const int64_t n = def->particle_count, entries = def->actuation_count, dd = def->dim * def->dim;
  if (def->actuator_count < 0 || entries < 0) return cq_fail(CQ_INVALID, "a count of actuators is negative");
  m->actuator_count = def->actuator_count;
  m->actuation_count = entries;
  m->actuator_direction = copy_doubles(def->actuator_direction, def->actuator_count * dd, "actuator directions");
  m->actuation_weight = copy_doubles(def->actuation_weight, entries, "actuator weights");
  m->actuation_start = cq_alloc((size_t)n + 1, sizeof *m->actuation_start, "actuator weights");
  m->actuation_actuator = cq_alloc((size_t)entries, sizeof *m->actuation_actuator, "actuator weights");
  m->actuation_entry = cq_alloc((size_t)entries, sizeof *m->actuation_entry, "actuator weights");
  if (!m->actuator_direction || !m->actuation_weight || !m->actuation_start || !m->actuation_actuator ||
      !m->actuation_entry)
    return CQ_MEMORY;
  for (int64_t k = 0; k < entries; k++) {
    const int32_t p = def->actuation_particle[k], a = def->actuation_actuator[k];
    if (p < 0 || p >= n || a < 0 || a >= def->actuator_count)
      return cq_fail(CQ_INVALID, "actuator entry %lld is (particle %lld, actuator %lld); there are %lld and %d",
                     (long long)k + 1, p + 1ll, a + 1ll, (long long)n, def->actuator_count);
    if (!def->actuation_weight) m->actuation_weight[k] = 1;
    if (!isfinite(m->actuation_weight[k]))
      return cq_fail(CQ_INVALID, "weight of actuator entry %lld is %g; every number must be finite", (long long)k + 1,
                     m->actuation_weight[k]);
    m->actuation_start[p + 1]++;
  }
  for (int64_t k = 0; k < def->actuator_count * dd; k++)
    if (!isfinite(def->actuator_direction[k]))
      return cq_fail(CQ_INVALID, "direction of actuator %lld is %g; every number must be finite",
                     (long long)(k / dd) + 1, def->actuator_direction[k]);
  for (int32_t a = 0; a < def->actuator_count; a++)
    for (int i = 0; i < def->dim; i++)
      for (int j = 0; j < i; j++)
        if (m->actuator_direction[a * dd + i * def->dim + j] != m->actuator_direction[a * dd + j * def->dim + i])
          return cq_fail(CQ_INVALID, "direction of actuator %d is not symmetric", a + 1);
  // by particle, in the user's order within a particle
  for (int64_t p = 0; p < n; p++) m->actuation_start[p + 1] += m->actuation_start[p];
  for (int64_t k = entries; k-- > 0;) {
    const int64_t at = --m->actuation_start[def->actuation_particle[k] + 1];
    m->actuation_actuator[at] = def->actuation_actuator[k];
    m->actuation_entry[at] = k;
  }
  for (int64_t p = 0; p < n; p++) m->actuation_start[p] = m->actuation_start[p + 1];
  m->actuation_start[n] = entries;
  return CQ_OK;
}

// Checks and copies the particles on which forces of scripts act; force_of stays NULL without any. CQ_OK, CQ_MEMORY, or
// CQ_INVALID.
static cq_status copy_forces(const cq_world_def *def, cq_model *m) {
  if (def->force_count < 0)
    return cq_fail(CQ_INVALID, "%lld forces; there must not be fewer than none", (long long)def->force_count);
  m->force_count = def->force_count;
  if (!def->force_count) return CQ_OK;
  m->force_particle = cq_alloc((size_t)def->force_count, sizeof *m->force_particle, "forces");
  m->force_of = cq_alloc((size_t)def->particle_count, sizeof *m->force_of, "forces");
  if (!m->force_particle || !m->force_of) return CQ_MEMORY;
  for (int64_t p = 0; p < def->particle_count; p++) m->force_of[p] = -1;
  for (int64_t k = 0; k < def->force_count; k++) {
    const int32_t p = def->force_particle[k];
    if (p < 0 || p >= def->particle_count)
      return cq_fail(CQ_INVALID, "force %lld is on particle %lld; there are %lld", (long long)k + 1, p + 1ll,
                     (long long)def->particle_count);
    if (m->force_of[p] >= 0)
      return cq_fail(CQ_INVALID, "forces %d and %lld are on the same particle %d; add them up", m->force_of[p] + 1,
                     (long long)k + 1, p + 1);
    m->force_of[p] = (int32_t)k;
    m->force_particle[k] = p;
  }
  return CQ_OK;
}

// Sets drives_of {n}, a bit for each kind of drive (stress, force, pressure, cable, chamber) that acts on a particle,
// and drives, the bits of all particles. CQ_OK, CQ_MEMORY, or CQ_INVALID for drives that the formulation does not have.
static cq_status note_drives(cq_model *m) {
  m->drives_of = cq_alloc((size_t)m->particle_count, sizeof *m->drives_of, "actuation");
  if (!m->drives_of) return CQ_MEMORY;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const int stress = m->actuation_start[p + 1] > m->actuation_start[p], force = m->force_of && m->force_of[p] >= 0;
    const int pressure = m->surfaces.count && m->surfaces.start[p + 1] > m->surfaces.start[p];
    m->drives_of[p] = (uint8_t)(stress << CQ_DRIVE_STRESS | force << CQ_DRIVE_FORCE | pressure << CQ_DRIVE_PRESSURE);
  }
  for (int32_t c = 0; c < m->cables.all; c++) {
    const int64_t *pair = m->cables.point_start, *start = m->cables.start + c;
    const int is_cable = c < m->cables.count;
    const uint8_t drive = 1 << (is_cable ? CQ_DRIVE_CABLE : CQ_DRIVE_CHAMBER);
    for (int64_t k = pair[start[0]]; k < pair[start[1]]; k++) {
      const int32_t p = m->cables.particle[k];
      if (cq_is_mixed(m) && !cq_on_reference(m, p))
        return cq_fail(CQ_INVALID, "%s %d is fastened to particle %d, whose robot has updated steps; where robots have "
                       "both formulations, cables and chambers need formulation = \"total_lagrangian\"",
                       is_cable ? "cable" : "chamber", is_cable ? c + 1 : c - m->cables.count + 1, p + 1);
      m->drives_of[p] |= drive;
    }
  }
  for (int64_t p = 0; p < m->particle_count; p++) m->drives |= m->drives_of[p];
  if (cq_is_reference(m) && cq_is_implicit(m) && m->drives & cq_drive_bit(CQ_DRIVE_PRESSURE))
    return cq_fail(CQ_INVALID, "implicit total Lagrangian steps have no pressure on open surfaces: close the surface "
                   "to a chamber, leave out the integrator, or take formulation = \"updated\"");
  return CQ_OK;
}

// Copies how much of its dilatation each material averages (f_bar, 0 to 1), and notes whether any does.
static void copy_averaging(const cq_world_def *def, cq_model *m) {
  for (int32_t k = 0; def->f_bar && k < def->material_count; k++) {
    m->f_bar[k] = def->f_bar[k];
    m->averages_dilatation |= def->f_bar[k] > 0;
  }
}

// Has a definition any fluid among its materials? 1 yes, 0 no.
static int has_liquid(const cq_world_def *def) {
  for (int32_t k = 0; k < def->material_count; k++)
    if (def->materials[k].kind == CQ_MATERIAL_FLUID) return 1;
  return 0;
}

// Fills a zeroed model from the definition of a world. CQ_OK, or CQ_INVALID or CQ_MEMORY with the model destroyed.
cq_status cq_model_create(const cq_world_def *def, cq_model *m) {
  if (def->cookie != CQ_COOKIE) return cq_fail(CQ_INVALID, "a cq_world_def was not filled by cq_world_def_init");
  cq_status status = check_grid(def);
  if (!status) status = cq_integrator_check(def, &m->integrator);
  if (!status) status = check_particles(def);
  if (!status) status = check_materials(def);
  if (!status) {
    m->dim = def->dim;
    m->particle_count = def->particle_count;
    m->precision = def->precision;
    m->threads = def->threads;
    m->simd = def->simd;
    m->substeps = def->substeps;
    m->dx = def->dx;
    m->dt = def->dt / def->substeps;
    m->damping = def->damping;
    copy_averaging(def, m);
    m->volume_share = has_liquid(def) ? -expm1(-def->pressure_smoothing * def->dt) : 0;
    for (int i = 0; i < 3; i++) {
      m->cells[i] = i < def->dim ? def->cells[i] : 1;
      m->gravity[i] = i < def->dim ? def->gravity[i] : 0;
    }
    status = copy_particles(def, m);
  }
  if (!status) status = check_reference(def, m);
  if (!status) status = check_transfer(def, m);
  if (!status) status = copy_walls(def, m);
  if (!status) status = cq_integrator_complete(m);
  if (!status) status = copy_actuation(def, m);
  if (!status) status = copy_forces(def, m);
  if (!status) status = cq_cables_create(def, m);
  if (!status) status = cq_surfaces_create(def, m);
  if (!status) status = note_drives(m);
  if (status) cq_model_destroy(m);
  return status;
}

// Frees all that a model owns, and zeroes it.
void cq_model_destroy(cq_model *m) {
  for (int32_t f = 0; f < CQ_FIELD_GRAVITY; f++) cq_free(m->value[f]);
  cq_free(m->material);
  cq_free(m->body);
  for (int k = 0; k < CQ_WALLS_MAX; k++) cq_free(m->heights[k]);
  cq_free(m->pins);
  cq_free(m->pin_group);
  cq_wall_map_destroy(&m->map);
  cq_free(m->actuator_direction);
  cq_free(m->actuation_start);
  cq_free(m->actuation_actuator);
  cq_free(m->actuation_entry);
  cq_free(m->force_particle);
  cq_free(m->force_of);
  cq_cables_destroy(&m->cables);
  cq_surfaces_destroy(&m->surfaces);
  cq_free(m->drives_of);
  *m = (cq_model){0};
}
