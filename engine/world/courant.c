// courant: how fast signals cross cells of a world.
#include "constants.h"
#include "grids.h"
#include "model.h"
#include <math.h>

// The largest stress that the actuators can give particle p with signals of 1, by which it gets stiffer. weight
// {entries}: actuation weights. weighed 1: the result is at least the stress of any one of its actuators with a weight
// of 1, since an optimisation may raise weights that far.
static double largest_actuation_stress(const cq_model *m, const double *weight, int64_t p, int weighed) {
  double stress = 0, alone = 0;
  for (int64_t k = m->actuation_start[p]; k < m->actuation_start[p + 1]; k++) {
    const double *s = m->actuator_direction + (int64_t)m->actuation_actuator[k] * m->dim * m->dim;
    double largest = 0;
    for (int i = 0; i < m->dim * m->dim; i++) largest = fmax(largest, fabs(s[i]));
    stress += fabs(weight[m->actuation_entry[k]]) * largest;
    alone = fmax(alone, largest);
  }
  return weighed ? fmax(stress, alone) : stress;
}

// The Courant number of a world: dt / dx times the fastest signal in a particle, sqrt((modulus + actuation) / rho), or
// the same for collisions, + 8/3 eta / (rho dx) + |v|; combined by hypot with the Courant number of cables.
// value[field]: the user's values, or NULL: the model's. weighed 1: as if any weight of actuation were at least 1.
double cq_model_courant(const cq_model *m, const double *const *value, int weighed) {
  const double *const *v = value ? value : (const double *const *)m->value;
  double fastest = 0;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const cq_material *material = &m->materials[m->material[p]];
    double slot[CQ_SLOTS_MAX], speed2 = 0;
    cq_constants_of(m, v, p, slot);
    const double modulus = cq_material_modulus(material, slot), viscosity = material->viscous ? slot[0] : 0;
    const double stress = largest_actuation_stress(m, v[CQ_FIELD_ACTUATION_WEIGHT], p, weighed);
    for (int i = 0; i < m->dim; i++)
      speed2 += v[CQ_FIELD_VELOCITY][p * m->dim + i] * v[CQ_FIELD_VELOCITY][p * m->dim + i];
    // explicit diffusion of momentum, as a speed: it is stable up to dt of about 3 rho dx^2 / (8 eta)
    const double per_mass = v[CQ_FIELD_VOLUME][p] / v[CQ_FIELD_MASS][p],
                 diffusion = 8.0 / 3 * viscosity * per_mass / m->dx;
    const double stiffest = fmax(modulus + stress, cq_touch_modulus(m, p, modulus));
    fastest = fmax(fastest, sqrt(stiffest * per_mass) + diffusion + sqrt(speed2));
  }
  // the stiffnesses of material and cables add up where they meet, and with them the squares of their Courant numbers
  return hypot(fastest * m->dt / m->dx, cq_cables_courant(m, v));
}

// The default rate [1/time] at which motion that the grid does not resolve decays (E123): the larger of 0.1 c / dx of
// solids and 2 c / dx of liquids, c the speed of waves in the slowest particle of each on the world's grid; or 0.
double cq_model_residual_rate(const cq_model *m) {
  // of the rate at which waves cross cells: in bodies, and in liquids, where no shear brings motion back
  static const double share[2] = {0.1, 2};
  double slowest[2] = {INFINITY, INFINITY}, rate = 0;
  for (int64_t p = 0; p < m->particle_count; p++) {
    const cq_material *law = &m->materials[m->material[p]];
    double slot[CQ_SLOTS_MAX], *of = &slowest[law->kind == CQ_MATERIAL_FLUID];
    if (cq_on_reference(m, p)) continue;
    cq_constants_of(m, (const double *const *)m->value, p, slot);
    *of = fmin(*of, sqrt(cq_material_modulus(law, slot) * m->value[CQ_FIELD_VOLUME][p] / m->value[CQ_FIELD_MASS][p]));
  }
  for (int k = 0; k < 2; k++)
    if (isfinite(slowest[k])) rate = fmax(rate, share[k] * slowest[k] / m->dx);
  return rate;
}
