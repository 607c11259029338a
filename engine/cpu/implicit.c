// implicit: Newton's method with conjugate gradients for a step of backward Euler, and the linear solve of its adjoint.
// All workers of a scene run these functions together: each works on its ranges and blocks, and takes the same
// decisions from sums that are added in the same order. So results do not depend on the number of threads.
#include "implicit.h"
#include "kernels.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum {
  HALVINGS = 30,             // of a step that is too long, or of a start that inverts
  RELEASES = 20,             // Newton iterations in which contacts may let go: later ones only take
};
static const double matrix_bytes = 1 << 30;   // of an assembled matrix, at most

// what one worker knows of the solve
typedef struct solve {
  cq_scene *s;
  cq_worker *worker;
  const cq_implicit_kernels *k;
  const cq_slice *in;
  int begin, end, parity;    // ranges, and as many blocks; the sums that are being written
  double sum[CQ_SUM_COUNT];  // of all blocks, of the last pass
  int32_t newton, linear;    // iterations made
  int assembled;             // the matrix is that of the tensors and of the contacts that hold
} solve;

cq_status cq_implicit_create(cq_scene *s) {
  const size_t matrix = (size_t)(s->model->dim * s->model->dim);
  s->implicit.tensor = cq_alloc((size_t)s->chunks * CQ_CHUNK * matrix * (matrix + 1) / 2,
                                (size_t)s->kernels->real_bytes, "implicit steps");
  s->implicit.weight = cq_alloc((size_t)s->chunks * CQ_CHUNK * (size_t)s->model->dim * 4,
                                (size_t)s->kernels->real_bytes, "implicit steps");
  s->implicit.node = cq_alloc((size_t)s->chunks * CQ_CHUNK, sizeof *s->implicit.node, "implicit steps");
  return s->implicit.tensor && s->implicit.weight && s->implicit.node ? CQ_OK : CQ_MEMORY;
}

void cq_implicit_destroy(cq_scene *s) {
  cq_free(s->implicit.tensor);
  cq_free(s->implicit.weight);
  cq_free(s->implicit.node);
  for (int v = 0; v < CQ_GRID_VECTORS; v++) cq_free(s->implicit.vector[v]);
  for (int v = 0; v < CQ_SWEEP_VECTORS; v++) cq_free(s->implicit.sweep[v]);
  cq_free(s->implicit.matrix);
  cq_free(s->implicit.own);
  cq_free(s->implicit.sides);
  cq_free(s->implicit.column_at);
  cq_free(s->implicit.cell_first);
  cq_free(s->implicit.cell_next);
  for (int r = 0; r < CQ_BLOCKS_MAX; r++) {
    cq_free(s->implicit.held[r].node);
    cq_free(s->implicit.held[r].contact);
  }
}

// an array of more elements than it had; what was in it is lost
static int reserve(void **array, int64_t *capacity, int64_t wanted, size_t size) {
  if (*capacity >= wanted) return 1;
  *capacity = 0;
  cq_free(*array);
  *array = cq_alloc((size_t)(wanted + wanted / 8), size, "implicit steps");
  if (*array) *capacity = wanted + wanted / 8;
  return *array != NULL;
}

// Room for the matrix of the live arrangement, if it has any: in 2D (matrix.inl), and up to a size.
static cq_status reserve_matrix(cq_scene *s) {
  cq_implicit *m = &s->implicit;
  const cq_implicit_kernels *k = s->kernels->implicit;
  const cq_arrangement *a = s->arrangement;
  const size_t real = (size_t)s->kernels->real_bytes;
  const int64_t groups = a->record_nodes / 4;
  if (!k->matrix_reals || (double)groups * k->matrix_reals * (double)real > matrix_bytes) {
    cq_free(m->matrix);
    m->matrix = NULL;
    m->matrix_capacity = 0;
    return CQ_OK;
  }
  m->places = a->size[0];
  // a matrix asks for two nodes more to each side
  m->sweep_guard = 2 * a->size[1] + 8;
  m->sweep_stride = m->places * a->size[1] + 2 * m->sweep_guard;
  if (!m->cell_next) m->cell_next = cq_alloc((size_t)s->chunks * CQ_CHUNK, sizeof *m->cell_next, "implicit steps");
  if (!m->cell_next || !reserve(&m->own, &m->own_capacity, groups, (size_t)k->own_reals * real) ||
      !reserve(&m->matrix, &m->matrix_capacity, groups, (size_t)k->matrix_reals * real) ||
      !reserve((void **)&m->sides, &m->sides_capacity, groups, sizeof *m->sides) ||
      !reserve((void **)&m->column_at, &m->places_capacity, m->places, sizeof *m->column_at) ||
      !reserve((void **)&m->cell_first, &m->cells_capacity, m->places * a->size[1], sizeof *m->cell_first))
    return CQ_MEMORY;
  const int64_t capacity = m->sweep_capacity;
  for (int v = 0; v < CQ_SWEEP_VECTORS; v++) {
    m->sweep_capacity = capacity;
    if (!reserve(&m->sweep[v], &m->sweep_capacity, s->model->dim * m->sweep_stride, real)) return CQ_MEMORY;
  }
  return CQ_OK;
}

static cq_status reserve_vectors(cq_scene *s) {
  if (s->implicit.capacity >= s->grid_capacity) return CQ_OK;
  s->implicit.capacity = 0;
  for (int v = 0; v < CQ_GRID_VECTORS; v++) {
    cq_free(s->implicit.vector[v]);
    s->implicit.vector[v] = cq_alloc((size_t)s->grid_capacity, 4 * (size_t)s->kernels->real_bytes, "implicit steps");
    if (!s->implicit.vector[v]) return CQ_MEMORY;
  }
  s->implicit.capacity = s->grid_capacity;
  return CQ_OK;
}

cq_status cq_implicit_reserve(cq_scene *s) {
  const cq_status status = reserve_vectors(s);
  return status ? status : reserve_matrix(s);
}

// ---- passes and their sums ------------------------------------------------------------------------------------------

static double *sums(solve *o, int block) { return o->s->implicit.sum[o->parity][block]; }

// before a pass that sums up
static void begin_sums(solve *o) {
  for (int b = o->begin; b < o->end; b++) memset(sums(o, b), 0, CQ_SUM_COUNT * sizeof(double));
}

// after it, for all workers. The next pass writes other sums, so that nobody overtakes who still reads these.
static void end_sums(solve *o) {
  cq_worker_wait(o->worker);
  memset(o->sum, 0, sizeof o->sum);
  for (int b = 0; b < o->s->ranges; b++)
    for (int k = 0; k < CQ_SUM_COUNT; k++) o->sum[k] += sums(o, b)[k];
  o->parity ^= 1;
}

static void wait(solve *o) { cq_worker_wait(o->worker); }

static void phase(solve *o, int which) { cq_worker_phase(o->worker, which); }

// potential, residual and what is inverted, at a vector
static void evaluate(solve *o, int32_t at) {
  wait(o);
  phase(o, CQ_PHASE_SOLVE);
  begin_sums(o);
  for (int r = o->begin; r < o->end; r++) o->k->evaluate(o->s, o->in, r, at, sums(o, r));
  wait(o);
  for (int b = o->begin; b < o->end; b++) o->k->residual(o->s, b, at, sums(o, b));
  end_sums(o);
  phase(o, CQ_PHASE_STRESS);
}

// the trial that was evaluated last becomes where the method is; by one worker
static void swap(cq_scene *s, int a, int b) {
  void *was = s->implicit.vector[a];
  s->implicit.vector[a] = s->implicit.vector[b];
  s->implicit.vector[b] = was;
}

// what evaluate() made at VELOCITY becomes the residual there
static void take_residual(solve *o) {
  if (o->worker->rank == 0) swap(o->s, CQ_GRID_RESIDUAL, CQ_GRID_RESIDUAL_TRIAL);
  wait(o);
}

// the impulses by which walls with friction press, by a residual at VELOCITY; by how much the potential changes
static double press(solve *o, int32_t from) {
  if (!o->s->model->walls_rub) return 0;
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->press(o->s, b, from, sums(o, b));
  end_sums(o);
  return o->sum[CQ_SUM_ENERGY];
}

// H at VELOCITY, and its diagonal
static double tensors(solve *o) {
  phase(o, CQ_PHASE_SOLVE);
  begin_sums(o);
  for (int r = o->begin; r < o->end; r++) o->k->tensors(o->s, o->in, r, sums(o, r));
  end_sums(o);
  for (int part = 0; part < o->k->parts; part++) {
    for (int r = o->begin; r < o->end; r++) o->k->diagonal(o->s, o->in, r, part);
    wait(o);
    for (int b = o->begin; b < o->end; b++) o->k->gather_diagonal(o->s, b, part);
    wait(o);
  }
  phase(o, CQ_PHASE_TENSORS);
  o->assembled = 0;
  return o->sum[CQ_SUM_STIFFNESS];
}

static void invert(solve *o) {
  phase(o, CQ_PHASE_SOLVE);
  for (int b = o->begin; b < o->end; b++) o->k->invert_diagonal(o->s, b);
  wait(o);
  phase(o, CQ_PHASE_TENSORS);
}

// PRODUCT = H from; leaves from . PRODUCT in the sums
static void multiply(solve *o, int32_t from, int32_t all) {
  phase(o, CQ_PHASE_SOLVE);
  for (int r = o->begin; r < o->end; r++) o->k->product(o->s, o->in, r, from);
  wait(o);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->multiply(o->s, b, from, all, sums(o, b));
  end_sums(o);
  phase(o, CQ_PHASE_PRODUCT);
}

typedef enum cg_end { CG_CONVERGED, CG_CURVATURE, CG_EXHAUSTED } cg_end;

// The matrix of the tensors, on what contacts leave free.
static void assemble(solve *o) {
  if (o->assembled) return;
  o->assembled = 1;
  phase(o, CQ_PHASE_SOLVE);
  if (o->worker->rank == 0) {
    cq_implicit *m = &o->s->implicit;
    const size_t bytes = (size_t)(o->s->model->dim * m->sweep_stride * o->s->kernels->real_bytes);
    o->k->index_matrix(o->s);
    for (int v = 0; v < CQ_SWEEP_VECTORS; v++) memset(m->sweep[v], 0, bytes);
  }
  wait(o);
  for (int b = o->begin; b < o->end; b++) o->k->assemble(o->s, o->in, b);
  wait(o);
  for (int b = o->begin; b < o->end; b++) o->k->precondition(o->s, b);
  wait(o);
  phase(o, CQ_PHASE_TENSORS);
}

// Blocks with an even number, or those with an odd one.
typedef enum sweep_pass { SWEEP_FIRST, SWEEP_TURN, SWEEP_PRODUCT } sweep_pass;

static void sweep_blocks(solve *o, sweep_pass pass, int odd, double beta) {
  for (int b = o->begin; b < o->end; b++) {
    if (b % 2 != odd) continue;
    if (pass == SWEEP_FIRST) o->k->sweep_first(o->s, b);
    if (pass == SWEEP_TURN) o->k->sweep_turn(o->s, b, beta);
    if (pass == SWEEP_PRODUCT) o->k->sweep_product(o->s, b, sums(o, b));
  }
}

// conjugate_gradients() from REST on an assembled matrix, whose own preconditioner M is
static cg_end sweep(solve *o, double tolerance, int32_t most, int truncated) {
  assemble(o);
  for (int b = o->begin; b < o->end; b++) o->k->sweep_load(o->s, b);
  sweep_blocks(o, SWEEP_FIRST, 0, 0);
  wait(o);
  sweep_blocks(o, SWEEP_FIRST, 1, 0);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->sweep_begin(o->s, b, sums(o, b));
  end_sums(o);
  const double first = o->sum[CQ_SUM_SQUARE];
  double square = first, beta = 0;
  cg_end end = CG_EXHAUSTED;
  int direction = 0;
  for (int32_t i = 0; i <= most; i++) {
    if (square <= tolerance * tolerance * first) end = CG_CONVERGED;
    if (end == CG_CONVERGED || !isfinite(square) || i == most) break;
    phase(o, CQ_PHASE_SOLVE);
    sweep_blocks(o, SWEEP_TURN, 1, beta);
    wait(o);
    sweep_blocks(o, SWEEP_TURN, 0, beta);
    wait(o);
    begin_sums(o);
    sweep_blocks(o, SWEEP_PRODUCT, 0, 0);
    wait(o);
    sweep_blocks(o, SWEEP_PRODUCT, 1, 0);
    end_sums(o);
    const double curvature = o->sum[CQ_SUM_DOT];
    o->linear++;
    if (!(curvature > 0) && (truncated || curvature == 0)) {
      direction = i == 0;
      end = CG_CURVATURE;
      break;
    }
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->sweep_advance(o->s, b, square / curvature, sums(o, b));
    end_sums(o);
    phase(o, CQ_PHASE_PRODUCT);
    beta = o->sum[CQ_SUM_SQUARE] / square;
    square = o->sum[CQ_SUM_SQUARE];
  }
  for (int b = o->begin; b < o->end; b++) o->k->sweep_end(o->s, b, direction);
  wait(o);
  return end;
}

// H STEP = sign RESIDUAL on free components, to a relative residual in the norm of M^-1. Truncated: stops where H is
// not positive along a direction, with what there is; else it goes on, for the solver of a saddle may pass such
// directions.
static cg_end conjugate_gradients(solve *o, double sign, double tolerance, int32_t most, int truncated) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->cg_start(o->s, b, sign, sums(o, b));
  end_sums(o);
  const double first = o->sum[CQ_SUM_SQUARE];
  double square = first;
  if (!isfinite(first)) {   // what is no number stays none, for those who look at the result
    for (int b = o->begin; b < o->end; b++) o->k->take_direction(o->s, b);
    wait(o);
    return CG_CONVERGED;
  }
  if (o->s->implicit.matrix) return sweep(o, tolerance, most, truncated);
  for (int32_t i = 0; i < most; i++) {
    if (square <= tolerance * tolerance * first) return CG_CONVERGED;
    if (!isfinite(square)) return CG_EXHAUSTED;
    multiply(o, CQ_GRID_DIRECTION, 0);
    const double curvature = o->sum[CQ_SUM_DOT];
    o->linear++;
    if (!(curvature > 0) && (truncated || curvature == 0)) {
      if (i == 0)
        for (int b = o->begin; b < o->end; b++) o->k->take_direction(o->s, b);
      wait(o);
      return CG_CURVATURE;
    }
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->cg_advance(o->s, b, square / curvature, sums(o, b));
    end_sums(o);
    const double before = square;
    square = o->sum[CQ_SUM_SQUARE];
    for (int b = o->begin; b < o->end; b++) o->k->cg_turn(o->s, b, square / before);
    wait(o);
  }
  return square <= tolerance * tolerance * first ? CG_CONVERGED : CG_EXHAUSTED;
}

// ---- a step ---------------------------------------------------------------------------------------------------------

static double rounding(const cq_scene *s) { return s->kernels->real_bytes == 4 ? (double)FLT_EPSILON : DBL_EPSILON; }

// Where the method begins: free flight with walls, made shorter until no particle is inverted.
static cq_status begin_step(solve *o) {
  wait(o);
  for (int r = o->begin; r < o->end; r++) o->k->momentum(o->s, o->in, r, CQ_GRID_VECTORS);
  wait(o);
  phase(o, CQ_PHASE_P2G);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->start(o->s, b);
  end_sums(o);
  if (o->sum[CQ_SUM_CHANGED] > 0) return CQ_MEMORY;
  for (int k = 0; k <= HALVINGS; k++) {
    evaluate(o, CQ_GRID_VELOCITY);
    if (o->sum[CQ_SUM_INVERTED] == 0 && isfinite(o->sum[CQ_SUM_ENERGY])) return CQ_OK;
    for (int b = o->begin; b < o->end; b++) o->k->shrink(o->s, b, k < HALVINGS ? 0.5 : 0);
    wait(o);
  }
  return CQ_UNSTABLE;
}

typedef struct progress {
  double residual, floor;    // relative to what the residual is a difference of
} progress;

// the root of a sum of squares, which rounding may leave below 0; NaN stays NaN
static double root(double square) { return square < 0 ? 0 : sqrt(square); }

// (E87) how far the method is from the end
static progress measure(solve *o) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->norms(o->s, b, sums(o, b));
  end_sums(o);
  const double *q = o->sum;
  const double against = root(q[CQ_SUM_INERTIA]) + root(q[CQ_SUM_INNER]) + 0.01 * root(q[CQ_SUM_MOVED]);
  if (against == 0) return (progress){0, 0};
  return (progress){root(q[CQ_SUM_RESIDUAL]) / against, rounding(o->s) * root(q[CQ_SUM_NOISE]) / against};
}

// Goes along STEP as far as the potential falls (E88). Where it falls by less than it rounds, the slope along the way
// must become less steep. The length; 0: none will do.
static double search(solve *o, double energy, double stiffness) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->trial(o->s, b, 1, sums(o, b));
  end_sums(o);
  double length = 1, along = o->sum[CQ_SUM_SLOPE];
  for (int i = 0; i < HALVINGS; i++, length *= 0.5) {
    if (i) {
      wait(o);
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
      const int falls = o->s->model->walls_rub && rest <= 0 && rest >= along;
      good = falls || fabs(rest) <= 0.9 * fabs(along);
      o->sum[CQ_SUM_ENERGY] = there;
    }
    if (good) return length;
  }
  return 0;
}

// Friction falls as the speed does only next to rest: by its slope, steps of what comes to rest go too far.
static void choose_slope(solve *o, int secant) {
  if (!o->s->model->walls_rub) return;
  wait(o);
  if (o->worker->rank == 0) o->s->implicit.secant = secant;
  wait(o);
}

static void report(const solve *o, int32_t step, const progress *p) {
  double *to = o->s->implicit.report;
  if (!to || o->worker->rank) return;
  to += step * CQ_SOLVER_WIDTH;
  to[CQ_SOLVER_NEWTON] = o->newton;
  to[CQ_SOLVER_LINEAR] = o->linear;
  to[CQ_SOLVER_RESIDUAL] = p->residual;
  to[CQ_SOLVER_FLOOR] = p->floor;
}

// Newton's iterations from VELOCITY, whose potential and residual are known.
static cq_status newton(solve *o, progress *p) {
  const cq_integrator *set = &o->s->model->integrator;
  double energy = o->sum[CQ_SUM_ENERGY];
  int stuck = 0, known = 0;
  double stiffness = 0, length = 1;
  take_residual(o);
  choose_slope(o, 1);
  for (o->newton = 0;; o->newton++) {
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++)
      o->k->activate(o->s, b, o->newton < RELEASES, sums(o, b));
    end_sums(o);
    if (o->sum[CQ_SUM_CHANGED] > 0) {
      stuck = 0;
      evaluate(o, CQ_GRID_VELOCITY);
      energy = o->sum[CQ_SUM_ENERGY];
      take_residual(o);
    }
    energy += press(o, CQ_GRID_RESIDUAL);
    // the norm of the iteration before tells an end as well, and costs no new tensors
    if (known) {
      invert(o);
      *p = measure(o);
      if (p->residual <= set->tolerance || stuck) break;
    }
    if (o->newton == set->newton) return CQ_UNSTABLE;
    stiffness = tensors(o);
    invert(o);
    if (!known) *p = measure(o);
    known = 1;
    if (p->residual <= set->tolerance || p->residual <= p->floor) break;
    choose_slope(o, p->residual > 0.1 || length < 1);
    conjugate_gradients(o, -1, fmin(0.25, sqrt(p->residual)), set->linear, 1);
    length = search(o, energy, stiffness);
    if (!(length > 0) && o->s->implicit.secant == 0 && o->s->model->walls_rub) continue;   // by the chord then
    if (!(length > 0)) {
      stuck = 1;
      continue;
    }
    energy = o->sum[CQ_SUM_ENERGY];
    wait(o);
    if (o->worker->rank == 0) swap(o->s, CQ_GRID_VELOCITY, CQ_GRID_TRIAL);
    take_residual(o);
  }
  // A body that nothing holds has no equilibrium, and rounding takes all of its residual.
  const double reach = set->statics ? fmin(10 * p->floor, 0.01) : 10 * p->floor;
  return p->residual <= fmax(set->tolerance, reach) ? CQ_OK : CQ_UNSTABLE;
}

// momentum with the pressure of the surface at VELOCITY
static void follow_once(solve *o) {
  wait(o);
  for (int r = o->begin; r < o->end; r++) o->k->momentum(o->s, o->in, r, CQ_GRID_VELOCITY);
  wait(o);
  for (int b = o->begin; b < o->end; b++) o->k->take_momentum(o->s, b);
}

// A step under a pressure that follows its surface to the end: that under a given force, again and again with the force
// at the end of the one before (E93). Each is a minimum; and the first that Newton leaves as it is, is the one wanted.
static cq_status follow(solve *o, progress *p) {
  enum { ROUNDS = 200 };
  int32_t made = o->newton;
  for (int i = 0; i < ROUNDS; i++) {
    follow_once(o);
    evaluate(o, CQ_GRID_VELOCITY);
    const cq_status status = newton(o, p);
    made += o->newton;
    if (status || o->newton == 0) {
      o->newton = made;
      return status;
    }
  }
  return CQ_UNSTABLE;
}

// Over dual numbers: the velocities are those of the step, their slopes are not yet. r(v, slopes) = 0 is linear in
// them.
static void solve_slopes(solve *o) {
  // a second round takes what rounding left to the first; a pressure that follows and friction are fixed points
  const int follows = cq_pressure_follows(o->s->model), rounds = follows || o->s->model->walls_rub ? 60 : 2;
  wait(o);
  if (o->worker->rank == 0) {
    o->s->implicit.tangent = 1;
    o->s->implicit.secant = 0;
  }
  wait(o);
  tensors(o);
  invert(o);
  for (int i = 0; i < rounds; i++) {
    if (follows) follow_once(o);
    evaluate(o, CQ_GRID_VELOCITY);
    take_residual(o);
    press(o, CQ_GRID_RESIDUAL);
    conjugate_gradients(o, -1, i ? 1e-3 : 1e-12, i ? 50 : o->s->model->integrator.linear, 0);
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->trial(o->s, b, 1, sums(o, b));
    end_sums(o);
    if (o->worker->rank == 0) swap(o->s, CQ_GRID_VELOCITY, CQ_GRID_TRIAL);
    wait(o);
  }
  if (o->worker->rank == 0) o->s->implicit.tangent = 0;
  evaluate(o, CQ_GRID_VELOCITY);
  take_residual(o);
  press(o, CQ_GRID_RESIDUAL);
}

static solve open_solve(cq_scene *s, cq_worker *worker, const cq_slice *in) {
  solve o = {.s = s, .worker = worker, .k = s->kernels->implicit, .in = in};
  cq_worker_share(worker, s->ranges, &o.begin, &o.end);
  return o;
}

static cq_status fail(const solve *o, int32_t bad, double value) {
  if (o->worker->rank == 0) o->s->health = (cq_health){.bad = bad, .step = o->s->step, .value = value};
  return CQ_UNSTABLE;
}

cq_status cq_implicit_solve(cq_scene *s, cq_worker *worker, const cq_slice *in, cq_step_record *record, int32_t step) {
  solve o = open_solve(s, worker, in);
  progress p = {INFINITY, 0};
  cq_status status = begin_step(&o);
  if (!status) status = newton(&o, &p);
  if (!status && cq_pressure_follows(s->model)) status = follow(&o, &p);
  report(&o, step, &p);
  if (status == CQ_UNSTABLE) return fail(&o, CQ_HEALTH_NOT_CONVERGED, p.residual);
  if (status) return status;
  if (o.k->tangent) solve_slopes(&o);
  phase(&o, CQ_PHASE_SOLVE);
  for (int b = o.begin; b < o.end; b++)
    o.k->finish(s, b, record ? record->grid : NULL, record ? record->held : NULL);
  wait(&o);
  phase(&o, CQ_PHASE_GRID);
  return CQ_OK;
}

// does the solution of the adjoint lean out of what walls leave free?
static int leans(const cq_scene *s) { return s->model->walls_rub || s->grad_impulse; }

// What STEP gives through pressure that follows (E93), friction (E95) and impulses (E97); returns by how much of it
// that has changed.
static double follow_adj(solve *o, const cq_slice *out) {
  if (leans(o->s)) {
    for (int b = o->begin; b < o->end; b++) o->k->lean(o->s, b);
    wait(o);
    multiply(o, CQ_GRID_DIRECTION, 1);
  }
  if (cq_pressure_follows(o->s->model)) {
    for (int r = o->begin; r < o->end; r++) o->k->follow(o->s, o->in, out, r);
    wait(o);
  }
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->add_followed(o->s, b, sums(o, b));
  end_sums(o);
  return o->sum[CQ_SUM_INERTIA] == 0 ? 0 : sqrt(o->sum[CQ_SUM_RESIDUAL] / o->sum[CQ_SUM_INERTIA]);
}

// H y = b, and with what follows the velocities, T its part of the second derivative: (H + T)^T y = b, where T^T y goes
// to the right, and the last y into it, until that changes nothing. Leaves PRODUCT = H y, and STEP = y which leans.
static cg_end solve_adj(solve *o, const cq_slice *out) {
  enum { ROUNDS = 200 };
  const cq_integrator *set = &o->s->model->integrator;
  const int lean = leans(o->s), fixed = lean || cq_pressure_follows(o->s->model);
  if (o->s->grad_impulse) follow_adj(o, out);   // STEP is 0: what impulses give alone
  cg_end end = conjugate_gradients(o, 1, set->gradient_tolerance, set->linear, 0);
  for (int i = 0; fixed && end == CG_CONVERGED && follow_adj(o, out) > set->gradient_tolerance; i++) {
    if (i == ROUNDS) return CG_EXHAUSTED;
    end = conjugate_gradients(o, 1, set->gradient_tolerance, set->linear, 0);
  }
  for (int b = o->begin; lean && b < o->end; b++) o->k->straighten(o->s, b);
  wait(o);
  multiply(o, CQ_GRID_STEP, 1);
  for (int b = o->begin; lean && b < o->end; b++) o->k->lean(o->s, b);
  return end;
}

cq_status cq_implicit_solve_adj(cq_scene *s, cq_worker *worker, const cq_step_record *record, int32_t step) {
  solve o = open_solve(s, worker, record->in);
  begin_sums(&o);
  for (int b = o.begin; b < o.end; b++) o.k->load(s, b, record->grid, record->held);
  end_sums(&o);
  if (o.sum[CQ_SUM_CHANGED] > 0) return CQ_MEMORY;
  if (s->model->moving_wall_count || s->model->walls_rub || s->grad_impulse) {
    // how hard they press is wanted, and momentum is not in the record
    const int32_t at = cq_pressure_follows(s->model) ? CQ_GRID_VELOCITY : CQ_GRID_VECTORS;
    for (int r = o.begin; r < o.end; r++) o.k->momentum(s, o.in, r, at);
    wait(&o);
    for (int b = o.begin; b < o.end; b++) o.k->take_momentum(s, b);
    evaluate(&o, CQ_GRID_VELOCITY);
    press(&o, CQ_GRID_RESIDUAL_TRIAL);
    for (int b = o.begin; s->grad_impulse && b < o.end; b++) o.k->impulse_to_velocity(s, b);
    wait(&o);
  }
  tensors(&o);
  choose_slope(&o, 0);
  invert(&o);
  const cg_end end = solve_adj(&o, record->out);
  for (int b = o.begin; b < o.end; b++) o.k->finish_adj(s, b);
  wait(&o);
  if (s->implicit.report && worker->rank == 0)
    s->implicit.report[step * CQ_SOLVER_WIDTH + CQ_SOLVER_ADJOINT] = o.linear;
  return end == CG_CONVERGED ? CQ_OK : fail(&o, CQ_HEALTH_NO_GRADIENT, o.linear);
}
