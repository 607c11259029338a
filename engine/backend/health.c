// health: the sentence of a simulation that became unstable.
#include "backend.h"
#include <stdio.h>

// Returns CQ_UNSTABLE with a sentence that says what failed (h->bad) at which engine step, and if one shows it at which
// particle. batch: the number of scenes; if it is above 1 the sentence names the scene.
cq_status cq_health_fail(const cq_health *h, int32_t batch) {
  char what[96], scene[32] = "";
  if (batch > 1) snprintf(scene, sizeof scene, " of scene %d", h->scene + 1);
  if (h->bad == CQ_HEALTH_NOT_CONVERGED)
    return cq_fail(CQ_UNSTABLE, "implicit step %lld%s did not converge: its relative residual stays at %.3g",
                   (long long)h->step + 1, scene, h->value);
  if (h->bad == CQ_HEALTH_PRESSURE)
    return cq_fail(CQ_UNSTABLE, "the pressure at the end of implicit step %lld%s still changes the residual by %.3g",
                   (long long)h->step + 1, scene, h->value);
  if (h->bad == CQ_HEALTH_TOO_FAR)
    return cq_fail(CQ_UNSTABLE, "in implicit step %lld%s a particle moves by %.3g cells; one is the most",
                   (long long)h->step + 1, scene, h->value);
  if (h->bad == CQ_HEALTH_SADDLE)
    return cq_fail(CQ_UNSTABLE,
                   "the adjoint of implicit step %lld%s did not converge in %.0f products: the step ended at a saddle",
                   (long long)h->step + 1, scene, h->value);
  if (h->bad == CQ_HEALTH_NO_GRADIENT)
    return cq_fail(CQ_UNSTABLE, "the adjoint of implicit step %lld%s did not converge in %.0f products",
                   (long long)h->step + 1, scene, h->value);
  if (h->bad == CQ_HEALTH_TOUCHES)
    return cq_fail(CQ_UNSTABLE,
                   "surfaces meet at engine step %lld%s, of particles %lld and %.0f: total Lagrangian steps do not "
                   "feel that",
                   (long long)h->step + 1, scene, (long long)h->particle + 1, h->value + 1);
  if (h->bad == CQ_HEALTH_LEFT_GRID)
    snprintf(what, sizeof what, "left the world, its coordinate %d is %g", h->axis + 1, h->value);
  else if (h->bad == CQ_HEALTH_INVERTED)
    snprintf(what, sizeof what, "was turned inside out, its det F is %g", h->value);
  else
    snprintf(what, sizeof what, "is no longer finite: %g", h->value);
  return cq_fail(CQ_UNSTABLE, "the simulation became unstable at engine step %lld: particle %lld%s %s",
                 (long long)h->step + 1, (long long)h->particle + 1, scene, what);
}
