// method: Newton's method for a step of backward Euler, and the linear system of its adjoint (linear.c).
// All workers of a scene run these functions together: each works on its ranges and blocks, and takes the same
// decisions from sums that are added in the same order. So results do not depend on the number of threads.
#include "linear.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum {
  HALVINGS = 30,             // of a step that is too long, or of a start that inverts
  FLOORS = 10,               // times what rounding leaves of a residual, where it may be all of it
  RELEASES = 20,             // Newton iterations, after a body is held, in which contacts let go before the end
  ROUNDS_OF_RELEASES = 200,  // at the end, at most
  HELD = 4,                  // times as many iterations, of a body that is held where it is
};

// Evaluates the node velocities in vector `at` (cq_grid_vector): sets RESIDUAL_TRIAL to the residual without friction,
// o->sum[CQ_SUM_ENERGY] to the potential with it, and o->sum[CQ_SUM_INVERTED] to the number of inverted particles.
static void evaluate(solve *o, int32_t at) {
  barrier(o);
  start_phase(o, CQ_PHASE_SOLVE);
  cq_linear_gather(o, at);
  begin_sums(o);
  if (pulls(o)) o->k->cables_evaluate(o->s, o->in, at, sums(o, 0));
  for (int r = o->begin; r < o->end; r++) o->k->evaluate(o->s, o->in, r, at, sums(o, r));
  cq_linear_press(o);
  barrier(o);
  for (int b = o->begin; b < o->end; b++) o->k->residual(o->s, b, at, sums(o, b));
  end_sums(o);
  start_phase(o, CQ_PHASE_STRESS);
}

// Exchanges vectors a and b over nodes (cq_grid_vector) of the scene; by one worker.
static void swap(cq_scene *s, int a, int b) {
  void *was = s->implicit.vector[a];
  s->implicit.vector[a] = s->implicit.vector[b];
  s->implicit.vector[b] = was;
}

// Turns RESIDUAL_TRIAL, which evaluate() has just computed at VELOCITY, into RESIDUAL.
static void take_residual(solve *o) {
  if (o->worker->rank == 0) swap(o->s, CQ_GRID_RESIDUAL, CQ_GRID_RESIDUAL_TRIAL);
  barrier(o);
}

// (E94) Computes again the impulses by which walls with friction press, from vector `from`, a residual at VELOCITY
// without friction. Returns by how much this changes the potential.
static double press(solve *o, int32_t from) {
  if (!o->s->model->walls_have_friction) return 0;
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->press(o->s, b, from, sums(o, b));
  end_sums(o);
  return o->sum[CQ_SUM_ENERGY];
}

// (E83) Computes the Hessian H at VELOCITY, as tensors of particles and diagonal blocks of nodes; matrix and factor of
// earlier tensors are then old. Returns the sum of volume times stiffness, for the rounding in search().
static double tensors(solve *o) {
  start_phase(o, CQ_PHASE_SOLVE);
  cq_linear_gather(o, CQ_GRID_VELOCITY);
  begin_sums(o);
  if (pulls(o)) o->k->cables_settle(o->s, o->in);
  for (int r = o->begin; r < o->end; r++) o->k->tensors(o->s, o->in, r, sums(o, r));
  end_sums(o);
  for (int part = 0; part < o->k->parts; part++) {
    for (int r = o->begin; r < o->end; r++) o->k->diagonal(o->s, o->in, r, part);
    barrier(o);
    for (int b = o->begin; b < o->end; b++) o->k->gather_diagonal(o->s, b, part);
    barrier(o);
  }
  start_phase(o, CQ_PHASE_TENSORS);
  o->assembled = o->coarse = 0;
  if (o->factored) o->factored = FACTOR_OLD;
  return o->sum[CQ_SUM_STIFFNESS];
}

// (E85) Computes the preconditioner M^-1: inverts the nodes' diagonal blocks of the Hessian H in the directions that
// contacts leave free.
static void invert(solve *o) {
  start_phase(o, CQ_PHASE_SOLVE);
  for (int b = o->begin; b < o->end; b++) o->k->invert_node_blocks(o->s, b);
  barrier(o);
  start_phase(o, CQ_PHASE_TENSORS);
}

// ---- a step ---------------------------------------------------------------------------------------------------------

// The relative rounding error (epsilon) of the scene's precision.
static double rounding(const cq_scene *s) { return s->kernels->real_bytes == 4 ? (double)FLT_EPSILON : DBL_EPSILON; }

// Brings momentum and mass to the nodes, lists those that walls may hold, sets VELOCITY to where Newton's method
// begins, and evaluates there: free flight (rest without inertia), stopped at walls and halved until the mass moves by
// at most a cell in the mean square and no particle is inverted. From farther away Newton's method cannot come back
// where a law stiffens. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE: particles are inverted even at rest.
static cq_status begin_step(solve *o) {
  barrier(o);
  for (int r = o->begin; r < o->end; r++) o->k->momentum(o->s, o->in, r, CQ_GRID_VECTORS);
  barrier(o);
  start_phase(o, CQ_PHASE_P2G);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->start(o->s, b, sums(o, b));
  end_sums(o);
  if (o->sum[CQ_SUM_CHANGED] > 0) return CQ_MEMORY;
  for (int k = 0; k <= HALVINGS; k++) {
    if (!(o->sum[CQ_SUM_FAR] > 0) || k == HALVINGS) {
      evaluate(o, CQ_GRID_VELOCITY);
      if (o->sum[CQ_SUM_INVERTED] == 0 && isfinite(o->sum[CQ_SUM_ENERGY])) return CQ_OK;
    }
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->shrink(o->s, b, k < HALVINGS - 1 ? 0.5 : 0, sums(o, b));
    end_sums(o);
  }
  return CQ_UNSTABLE;
}

typedef struct progress {
  double residual, floor;    // norm, and what rounding leaves of it, both relative to inertia and forces
  double first;              // residual where Newton's method began
} progress;

// The square root of a sum of squares, which rounding may leave below 0: then 0; NaN stays NaN.
static double root(double square) { return square < 0 ? 0 : sqrt(square); }

// (E87) Measures how far Newton's method is from convergence: sets p->residual to the residual's norm relative to
// inertia and forces, and p->floor to what rounding leaves of it.
static void measure(solve *o, progress *p) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->norms(o->s, b, sums(o, b));
  end_sums(o);
  const double *q = o->sum;
  const double against = root(q[CQ_SUM_INERTIA]) + root(q[CQ_SUM_INNER]) + 0.01 * root(q[CQ_SUM_MOVED]);
  p->residual = against == 0 ? 0 : root(q[CQ_SUM_RESIDUAL]) / against;
  p->floor = against == 0 ? 0 : rounding(o->s) * root(q[CQ_SUM_NOISE]) / against;
}

// (E88) Line search along STEP, from VELOCITY with the potential `energy`: halves the step until no particle is
// inverted and the potential falls or, where the fall is within rounding, the slope along the way has become less
// steep. stiffness: of tensors(), for that rounding. Leaves TRIAL, RESIDUAL_TRIAL, and the potential in
// o->sum[CQ_SUM_ENERGY]. Returns the length, 1 for all of STEP; 0 if none will do.
static double search(solve *o, double energy, double stiffness) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->trial(o->s, b, 1, sums(o, b));
  end_sums(o);
  double length = 1, along = o->sum[CQ_SUM_SLOPE];
  for (int i = 0; i < HALVINGS; i++, length *= 0.5) {
    if (i) {
      barrier(o);
      begin_sums(o);
      for (int b = o->begin; b < o->end; b++) o->k->trial(o->s, b, length, sums(o, b));
      end_sums(o);
      along = o->sum[CQ_SUM_SLOPE];
    }
    evaluate(o, CQ_GRID_TRIAL);
    const double there = o->sum[CQ_SUM_ENERGY];
    if (o->sum[CQ_SUM_INVERTED] > 0 || !isfinite(there)) continue;
    int good;
    if (-along > 100 * rounding(o->s) * (stiffness + fabs(energy))) {
      good = there <= energy + 1e-4 * along;
    } else {
      begin_sums(o);
      for (int b = o->begin; b < o->end; b++) o->k->slope(o->s, b, sums(o, b));
      end_sums(o);
      const double rest = o->sum[CQ_SUM_DOT];
      // the slope of friction changes at once: where it is still downhill and no steeper, the potential has fallen
      const int falls = o->s->model->walls_have_friction && rest <= 0 && rest >= along;
      good = falls || fabs(rest) <= 0.9 * fabs(along);
      o->sum[CQ_SUM_ENERGY] = there;
    }
    if (good) return length;
  }
  return 0;
}

// Chooses the second derivative of friction (E94): of its chord from rest (secant 1), or its true slope (0). Friction
// falls off only next to rest, so that by its slope a node that comes to rest overshoots.
static void choose_slope(solve *o, int secant) {
  if (!o->s->model->walls_have_friction) return;
  barrier(o);
  if (o->worker->rank == 0) o->s->implicit.secant = secant;
  barrier(o);
}

// By the first worker: writes of implicit step number `step` of the running control step its Newton and linear
// iterations, residual and floor (p), and unsettled contacts into the scene's report, if any; 0 for its adjoint.
static void report(const solve *o, int32_t step, const progress *p) {
  double *to = o->s->implicit.report;
  if (!to || o->worker->rank) return;
  to += step * CQ_SOLVER_WIDTH;
  to[CQ_SOLVER_NEWTON] = o->newton;
  to[CQ_SOLVER_LINEAR] = o->linear;
  to[CQ_SOLVER_RESIDUAL] = p->residual;
  to[CQ_SOLVER_FLOOR] = p->floor;
  to[CQ_SOLVER_UNSETTLED] = o->unsettled;
  to[CQ_SOLVER_ADJOINT] = to[CQ_SOLVER_SADDLE] = 0;
}

// (E103) Adjusts the force by which a body is held at the present iterate after a line search of this length: weaker
// after a whole step (1), stronger after a short one; 0 stays 0. Returns 1 if it is stronger now, so that another step
// may help, else 0.
static int choose_hold(solve *o, double length) {
  // shares of the body's mass: the least moves a solution by less than rounding, with the most nothing moves
  const double was = o->s->implicit.hold, least = 1e-6, most = 1e6, less = 0.25, more = 8, is_short = 0.25;
  double now = was;
  if (length == 1) now = was < least ? 0 : less * was;
  if (length < is_short) now = fmin(more * was, most);
  barrier(o);
  if (o->worker->rank == 0) o->s->implicit.hold = now;
  barrier(o);
  return now > was;
}

// Rounds in which contacts were released although the method had converged: how many, and the Newton iteration of the
// last; the fewest contacts that pulled, and the fewest of those that may be released.
typedef struct releases {
  int rounds, last;
  double fewest, fewest_free;
} releases;

// Returns the number of active contacts that pull on their nodes instead of pressing; sets may_let_go to how many of
// them have not been released too often.
static double count_pulling(solve *o, double *may_let_go) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->release(o->s, b, CQ_RELEASE_NONE, sums(o, b));
  end_sums(o);
  *may_let_go = o->sum[CQ_SUM_PULLING];
  return o->sum[CQ_SUM_PULLING] + o->sum[CQ_SUM_UNSETTLED];
}

// (E106) When Newton's method has converged with the active contacts: sets o->unsettled to how many of them pull, keeps
// velocities and contacts with the fewest, and releases those that were not released too often, all if they are fewer
// than ever before, else the first. so_far: all rounds, with this one. Returns 1 if any was released, so that Newton's
// method goes on, else 0.
static int release(solve *o, releases *so_far) {
  double pulling;
  o->unsettled = count_pulling(o, &pulling);
  const int go_on = pulling > 0 && so_far->rounds < ROUNDS_OF_RELEASES;
  if (!go_on && so_far->rounds == 0) return 0;
  int first = 0;
  while (go_on && !(o->s->implicit.sum[o->parity ^ 1][first][CQ_SUM_PULLING] > 0)) first++;
  if (o->unsettled < so_far->fewest) {
    so_far->fewest = o->unsettled;
    for (int b = o->begin; b < o->end; b++) o->k->keep(o->s, b, 0);
  }
  if (!go_on) return 0;
  const int all = pulling < so_far->fewest_free;
  if (all) so_far->fewest_free = pulling;
  so_far->rounds++;
  so_far->last = o->newton;
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++)
    if (all || b == first) o->k->release(o->s, b, all ? CQ_RELEASE_ALL : CQ_RELEASE_FIRST, sums(o, b));
  end_sums(o);
  return 1;
}

// (E106) Returns to the velocities and active contacts that release() has kept, with the fewest contacts that pull, and
// computes residual, tensors and norms p for them.
static void take_fewest(solve *o, releases *so_far, progress *p) {
  double pulling;
  barrier(o);
  for (int b = o->begin; b < o->end; b++) o->k->keep(o->s, b, 1);
  evaluate(o, CQ_GRID_VELOCITY);
  take_residual(o);
  press(o, CQ_GRID_RESIDUAL);
  tensors(o);
  invert(o);
  measure(o, p);
  o->unsettled = count_pulling(o, &pulling);
  so_far->fewest = o->unsettled;
}

// The relative tolerance of the linear system in a Newton iteration (Eisenstat and Walker): tighter as the method
// converges, but not below the rounding of the residual, where conjugate gradients stall. p: of measure().
static double forcing(const progress *p) { return fmin(0.25, fmax(sqrt(p->residual), p->floor / p->residual)); }

// Newton's method from VELOCITY, where evaluate() was just called: active set, linear system, line search, until the
// residual p has converged or is rounding; o->newton counts from 0. CQ_OK, the solution in VELOCITY, or CQ_UNSTABLE.
static cq_status newton(solve *o, progress *p) {
  const cq_integrator *set = &o->s->model->integrator;
  const int32_t most = o->s->implicit.hold > 0 ? HELD * set->newton_iterations : set->newton_iterations;
  double energy = o->sum[CQ_SUM_ENERGY];
  int stuck = 0, known = 0, lets_go = RELEASES;
  releases so_far = {0, 0, INFINITY, INFINITY};
  double stiffness = 0, length = 1;
  take_residual(o);
  choose_slope(o, 1);
  for (o->newton = 0;; o->newton++) {
    // a body that is held passes walls on its way
    if (o->s->implicit.hold > 0) lets_go = o->newton + RELEASES;
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++)
      o->k->activate(o->s, b, o->newton < lets_go, sums(o, b));
    end_sums(o);
    if (o->sum[CQ_SUM_CHANGED] > 0) {
      stuck = 0;
      evaluate(o, CQ_GRID_VELOCITY);
      energy = o->sum[CQ_SUM_ENERGY];
      take_residual(o);
    }
    energy += press(o, CQ_GRID_RESIDUAL);
    // the norm by the tensors of the iteration before shows convergence as well, and costs no new tensors
    if (known) {
      invert(o);
      measure(o, p);
      if (stuck) break;
      if (p->residual <= set->tolerance) {
        if (release(o, &so_far)) continue;
        break;
      }
    }
    if (so_far.rounds && o->newton - so_far.last == RELEASES) break;
    if (!so_far.rounds && o->newton == most) return CQ_UNSTABLE;
    stiffness = tensors(o);
    invert(o);
    if (!known) {
      measure(o, p);
      p->first = p->residual;
    }
    known = 1;
    if (p->residual <= set->tolerance || p->residual <= p->floor) {
      if (release(o, &so_far)) continue;
      break;
    }
    choose_slope(o, p->residual > 0.1 || length < 1);
    cq_linear_solve(o, -1, forcing(p), set->linear_iterations, 1);
    length = search(o, energy, stiffness);
    // Where walls stop Newton's step at many nodes, what is left of it may lead up. Steepest descent leads down at each
    // node by itself, whatever walls stop.
    if (!(length > 0) && p->residual > FLOORS * p->floor) {
      cq_linear_descend(o);
      length = search(o, energy, stiffness);
    }
    if (choose_hold(o, length) && !(length > 0)) continue;
    // again with the slope of the chord
    if (!(length > 0) && o->s->implicit.secant == 0 && o->s->model->walls_have_friction) continue;
    if (!(length > 0)) {
      stuck = 1;
      continue;
    }
    energy = o->sum[CQ_SUM_ENERGY];
    barrier(o);
    if (o->worker->rank == 0) swap(o->s, CQ_GRID_VELOCITY, CQ_GRID_TRIAL);
    take_residual(o);
  }
  double pulling;
  if (stuck) o->unsettled = count_pulling(o, &pulling);
  if (so_far.rounds && !(p->residual <= set->tolerance && o->unsettled <= so_far.fewest)) take_fewest(o, &so_far, p);
  // A body that nothing holds has no equilibrium, and rounding takes all of its residual.
  const double reach = set->statics ? fmin(FLOORS * p->floor, 0.01) : FLOORS * p->floor;
  return p->residual <= fmax(set->tolerance, reach) ? CQ_OK : CQ_UNSTABLE;
}

// (E93) Computes MOMENTUM again, with the impulse of the pressure on the surface as VELOCITY deforms it.
static void renew_momentum(solve *o) {
  barrier(o);
  cq_linear_gather(o, CQ_GRID_VELOCITY);
  for (int r = o->begin; r < o->end; r++) o->k->momentum(o->s, o->in, r, CQ_GRID_VELOCITY);
  barrier(o);
  for (int b = o->begin; b < o->end; b++) o->k->take_momentum(o->s, b);
}

// (E93) Solves a step whose pressure acts on the surface at the step's end, as a fixed point: each round solves the
// step with the pressure on the surface at the end of the round before as a given force, until Newton's method leaves
// the velocities as they are. Sets settled to 0 if there were too many rounds. CQ_OK or CQ_UNSTABLE.
static cq_status follow(solve *o, progress *p, int *settled) {
  enum { ROUNDS = 200 };
  int32_t made = o->newton;
  for (int i = 0; i < ROUNDS; i++) {
    renew_momentum(o);
    evaluate(o, CQ_GRID_VELOCITY);
    const cq_status status = newton(o, p);
    made += o->newton;
    if (status || o->newton == 0) {
      o->newton = made;
      return status;
    }
  }
  *settled = 0;
  return CQ_UNSTABLE;
}

// For tests over dual numbers, when the values of the velocities are solved for: solves residual = 0 for their slopes,
// the derivative parts, in which it is linear, and adds these to VELOCITY.
static void solve_slopes(solve *o) {
  // a second round takes what rounding left to the first; a pressure that follows and friction are fixed points
  const int follows = cq_pressure_follows(o->s->model), rounds = follows || o->s->model->walls_have_friction ? 60 : 2;
  barrier(o);
  if (o->worker->rank == 0) {
    o->s->implicit.tangent = 1;
    o->s->implicit.secant = 0;
  }
  barrier(o);
  tensors(o);
  invert(o);
  for (int i = 0; i < rounds; i++) {
    if (follows) renew_momentum(o);
    evaluate(o, CQ_GRID_VELOCITY);
    take_residual(o);
    press(o, CQ_GRID_RESIDUAL);
    cq_linear_solve(o, -1, i ? 1e-3 : 1e-12, i ? 50 : o->s->model->integrator.linear_iterations, 0);
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->trial(o->s, b, 1, sums(o, b));
    end_sums(o);
    if (o->worker->rank == 0) swap(o->s, CQ_GRID_VELOCITY, CQ_GRID_TRIAL);
    barrier(o);
  }
  if (o->worker->rank == 0) o->s->implicit.tangent = 0;
  evaluate(o, CQ_GRID_VELOCITY);
  take_residual(o);
  press(o, CQ_GRID_RESIDUAL);
}

// A worker's state for the solve of a step from the state `in`: its ranges, the scene's loops, no sums. The first
// worker also finds the stencils of the particles that cables act on.
static solve open_solve(cq_scene *s, cq_worker *worker, const cq_slice *in) {
  solve o = {.s = s, .worker = worker, .k = s->implicit.loops, .in = in};
  cq_worker_share(worker, s->ranges, &o.begin, &o.end);
  if (pulls(&o)) o.k->cables_begin(s, in);   // for the same worker, and the nodes after a barrier
  return o;
}

// (E103) Repeats Newton's method from the start where it did not converge, with the body held at each iterate by a
// force in proportion to its mass, which fades. This helps bodies that swing, turn, or hang by cables that are slack at
// first, and steps whose contacts or rounding led astray. CQ_OK, CQ_MEMORY or CQ_UNSTABLE.
static cq_status newton_held(solve *o, progress *p) {
  const int32_t made = o->newton;
  barrier(o);
  if (o->worker->rank == 0) o->s->implicit.hold = 1;
  barrier(o);
  cq_status status = begin_step(o);
  if (!status) status = newton(o, p);
  barrier(o);
  if (o->worker->rank == 0) o->s->implicit.hold = 0;
  barrier(o);
  o->newton += made;
  return status;
}

// Ends a step as failed: the first worker sets the scene's health to the kind of failure `bad` (CQ_HEALTH_...) and its
// number. Returns CQ_UNSTABLE.
static cq_status fail(const solve *o, int32_t bad, double value) {
  if (o->worker->rank == 0) o->s->health = (cq_health){.bad = bad, .step = o->s->step, .value = value};
  return CQ_UNSTABLE;
}

// Solves for the velocities of nodes at the end of one implicit step, by all workers of a scene together, and leaves
// them in s->grid_v, where G2P reads them. in: the state before the step; record: NULL, or takes what the adjoint
// needs; step: its index in the running control step. CQ_OK, CQ_MEMORY, or CQ_UNSTABLE, which leaves s->health.
cq_status cq_implicit_solve(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_step_record *record, int32_t step) {
  solve o = open_solve(s, worker, in);
  progress p = {INFINITY, 0, 0};
  int settled = 1;
  cq_linear_open(&o);
  cq_status status = begin_step(&o);
  if (!status) status = newton(&o, &p);
  if (status == CQ_UNSTABLE) status = newton_held(&o, &p);
  if (!status && cq_pressure_follows(s->model)) status = follow(&o, &p, &settled);
  report(&o, step, &p);
  if (status == CQ_UNSTABLE && !settled) return fail(&o, CQ_HEALTH_PRESSURE, p.first);
  if (status == CQ_UNSTABLE) return fail(&o, CQ_HEALTH_NOT_CONVERGED, p.residual);
  if (status) return status;
  if (o.k->tangent) solve_slopes(&o);
  start_phase(&o, CQ_PHASE_SOLVE);
  for (int b = o.begin; b < o.end; b++)
    o.k->finish(s, b, record ? record->grid : NULL, record ? record->held : NULL);
  barrier(&o);
  start_phase(&o, CQ_PHASE_GRID);
  return CQ_OK;
}

// Does the adjoint's solution have a part along directions that contacts hold, by friction (E95) or impulses that are
// read (E97)? 0 no, else yes.
static int leans(const cq_scene *s) { return s->model->walls_have_friction || s->grad_impulse; }

// Sets RESIDUAL, the right side of the adjoint's linear system, to dL/dv plus the terms of pressure that follows the
// surface (E93), friction (E95) and impulses (E97), by the solution y so far, in STEP, to which it adds the held part.
// out: the state after the step. Returns the right side's relative change: solve_adj repeats until it is small.
static double follow_adj(solve *o, const cq_slice *out) {
  if (leans(o->s)) {
    for (int b = o->begin; b < o->end; b++) o->k->lean(o->s, b);
    barrier(o);
    cq_linear_multiply(o, CQ_GRID_DIRECTION, CQ_PRODUCT_ALL);
  }
  if (cq_pressure_follows(o->s->model)) {
    for (int r = o->begin; r < o->end; r++) o->k->follow(o->s, o->in, out, r);
    cq_linear_press(o);
    barrier(o);
  }
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->add_followed(o->s, b, sums(o, b));
  end_sums(o);
  return o->sum[CQ_SUM_INERTIA] == 0 ? 0 : sqrt(o->sum[CQ_SUM_RESIDUAL] / o->sum[CQ_SUM_INERTIA]);
}

// Solves the adjoint's system (H + T)^T y = b, b in RESIDUAL and TRIAL, by H y = b - T^T y until nothing changes; T, of
// pressure, friction and impulses, is not symmetric. out: the state after the step. Leaves H times the free part of y
// in PRODUCT, without friction, and y, also along held directions, in STEP; returns how the last linear system ended.
static cg_end solve_adj(solve *o, const cq_slice *out) {
  enum { ROUNDS = 200 };
  const cq_integrator *set = &o->s->model->integrator;
  const int lean = leans(o->s), fixed = lean || cq_pressure_follows(o->s->model);
  if (o->s->grad_impulse) follow_adj(o, out);   // STEP is 0: what impulses give alone
  cg_end end = cq_linear_solve(o, 1, set->adjoint_tolerance, set->linear_iterations, 0);
  for (int i = 0; fixed && end == CG_CONVERGED && follow_adj(o, out) > set->adjoint_tolerance; i++) {
    if (i == ROUNDS) return CG_EXHAUSTED;
    end = cq_linear_solve(o, 1, set->adjoint_tolerance, set->linear_iterations, 0);
  }
  for (int b = o->begin; lean && b < o->end; b++) o->k->straighten(o->s, b);
  barrier(o);
  cq_linear_multiply(o, CQ_GRID_STEP, CQ_PRODUCT_ALL);
  for (int b = o->begin; lean && b < o->end; b++) o->k->lean(o->s, b);
  return end;
}

// Do the normals of walls depend on where nodes are: are there spheres or height fields, and reference grids, whose
// nodes move? 1 yes, 0 no.
static int has_round_walls(const cq_model *m) {
  for (int32_t w = 0; cq_is_reference(m) && w < m->wall_count; w++)
    if (m->walls[w].shape == CQ_WALL_SPHERE || m->walls[w].shape == CQ_WALL_HEIGHT_FIELD) return 1;
  return 0;
}

// Adjoint of cq_implicit_solve for a recorded step, between g2p_adj and the implicit p2g_adj: from dL/dv of nodes in
// the slabs, or of r->adj on reference grids, sets s->grid_q = dL/d(momentum, mass) (E89) and s->grid_v, the
// velocities; adds to the gradients of gravity, damping and walls. step: its index in the control step. CQ_OK,
// CQ_MEMORY, or CQ_UNSTABLE where the linear system is not solved: s->health says why.
cq_status cq_implicit_solve_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t step) {
  solve o = open_solve(s, worker, record->in);
  begin_sums(&o);
  for (int b = o.begin; b < o.end; b++) o.k->load(s, b, record->grid, record->held);
  end_sums(&o);
  if (o.sum[CQ_SUM_CHANGED] > 0) return CQ_MEMORY;
  cq_linear_open(&o);
  if (s->model->moving_wall_count || s->model->walls_have_friction || s->grad_impulse || has_round_walls(s->model)) {
    // how hard they press is wanted, and momentum is not in the record
    const int32_t at = cq_pressure_follows(s->model) ? CQ_GRID_VELOCITY : CQ_GRID_VECTORS;
    cq_linear_gather(&o, CQ_GRID_VELOCITY);
    for (int r = o.begin; r < o.end; r++) o.k->momentum(s, o.in, r, at);
    barrier(&o);
    for (int b = o.begin; b < o.end; b++) o.k->take_momentum(s, b);
    evaluate(&o, CQ_GRID_VELOCITY);
    press(&o, CQ_GRID_RESIDUAL_TRIAL);
    for (int b = o.begin; s->grad_impulse && b < o.end; b++) o.k->impulse_to_velocity(s, b);
    barrier(&o);
  }
  tensors(&o);
  choose_slope(&o, 0);
  invert(&o);
  const cg_end end = solve_adj(&o, record->out);
  for (int b = o.begin; b < o.end; b++) o.k->finish_adj(s, b);
  barrier(&o);
  if (s->implicit.report && worker->rank == 0) {
    double *to = s->implicit.report + step * CQ_SOLVER_WIDTH;
    to[CQ_SOLVER_ADJOINT] = o.linear;
    to[CQ_SOLVER_SADDLE] = o.saddle;
  }
  return end == CG_CONVERGED ? CQ_OK : fail(&o, o.saddle ? CQ_HEALTH_SADDLE : CQ_HEALTH_NO_GRADIENT, o.linear);
}
