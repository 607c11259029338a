// integrator: what implicit steps ask of the definition of a world.
#include "model.h"
#include "constants.h"
#include <math.h>

// Checks the options of implicit steps in a world's definition and copies them to out, with defaults instead of zeros,
// but for stick_velocity (cq_integrator_complete), and without midpoint in statics. CQ_OK or CQ_INVALID.
cq_status cq_integrator_check(const cq_world_def *def, cq_integrator *out) {
  *out = def->integrator;
  if (out->kind != CQ_INTEGRATOR_EXPLICIT && out->kind != CQ_INTEGRATOR_IMPLICIT)
    return cq_fail(CQ_INVALID, "integrator.kind is %d; it must be 0 (explicit) or 1 (implicit)", out->kind);
  if (out->pressure != 0 && out->pressure != 1)
    return cq_fail(CQ_INVALID, "integrator.pressure is %d; it must be 0 (lagged) or 1 (implicit)", out->pressure);
  if (out->cables != 0 && out->cables != 1)
    return cq_fail(CQ_INVALID, "integrator.cables is %d; it must be 0 (lagged) or 1 (implicit)", out->cables);
  if (out->midpoint != 0 && out->midpoint != 1)
    return cq_fail(CQ_INVALID, "integrator.midpoint is %d; it must be 0 or 1", out->midpoint);
  if (out->midpoint && def->formulation != CQ_FORMULATION_TOTAL_LAGRANGIAN)
    return cq_fail(CQ_INVALID, "the midpoint rule is of total Lagrangian steps: add formulation = "
                   "\"total_lagrangian\", or take scheme = \"backward_euler\"");
  out->midpoint &= !out->statics;   // at rest there is no time
  if (out->tolerance == 0) out->tolerance = 1e-3;
  if (out->adjoint_tolerance == 0) out->adjoint_tolerance = 1e-6;
  if (out->newton_iterations == 0) out->newton_iterations = 60;
  if (out->linear_iterations == 0) out->linear_iterations = 5000;
  const double least = def->precision == CQ_FLOAT32 ? 1e-7 : 1e-15;
  if (!(out->tolerance >= least && out->tolerance < 1))
    return cq_fail(CQ_INVALID, "tolerance is %g; it must be below 1, and at least %g, for numbers here round so",
                   out->tolerance, least);
  if (!(out->adjoint_tolerance >= least && out->adjoint_tolerance < 1))
    return cq_fail(CQ_INVALID, "adjoint tolerance is %g; it must be below 1, and at least %g, for numbers here round so",
                   out->adjoint_tolerance, least);
  if (out->newton_iterations < 1)
    return cq_fail(CQ_INVALID, "newton_iterations is %d; it must be at least 1", out->newton_iterations);
  if (out->linear_iterations < 1)
    return cq_fail(CQ_INVALID, "linear_iterations is %d; it must be at least 1", out->linear_iterations);
  if (!(out->stick_velocity >= 0) || !isfinite(out->stick_velocity))
    return cq_fail(CQ_INVALID, "stick_velocity is %g; it must be a positive speed", out->stick_velocity);
  return CQ_OK;
}

// Checks that walls and materials of a complete model suit implicit steps, and sets its stick_velocity, where it is 0,
// and walls_have_friction; does nothing for explicit steps. CQ_OK or CQ_INVALID.
cq_status cq_integrator_complete(cq_model *m) {
  enum { CONTACTS = 64, OF_MOVING = 3, MOST = (CONTACTS - CQ_CONTACTS_MAX) / OF_MOVING };   // bits of a node's contacts
  if (!cq_is_implicit(m)) return CQ_OK;
  if (m->integrator.stick_velocity == 0) m->integrator.stick_velocity = 1e-3 * m->dx / m->dt;
  for (int32_t w = 0; w < m->wall_count; w++) m->walls_have_friction |= m->walls[w].kind == CQ_CONTACT_FRICTION;
  if (m->moving_wall_count > MOST)
    return cq_fail(CQ_INVALID, "%d walls move; implicit steps take at most %d", m->moving_wall_count, (int)MOST);
  int32_t normals = 0;   // that may hold one node
  for (int32_t w = 0; w < m->wall_count; w++)
    normals += m->walls[w].shape == CQ_WALL_BOX && m->walls[w].hollow ? m->dim : 1;
  if (cq_is_reference(m) && normals > CONTACTS)
    return cq_fail(CQ_INVALID, "%d walls have %d normals, a hollow box one for each axis; implicit total Lagrangian "
                   "steps take at most %d", m->wall_count, normals, (int)CONTACTS);
  for (int32_t k = 0; m->integrator.statics && k < m->material_count; k++)
    if (cq_material_updates(&m->materials[k]))
      return cq_fail(CQ_INVALID, "material %d (%s%s) flows or relaxes with time: where it comes to rest depends on the "
                     "way there; make steps with inertia", k + 1, cq_law_of(m->materials[k].kind)->name,
                     m->materials[k].branches ? " with Maxwell branches" : "");
  return CQ_OK;
}
