// linear: conjugate gradients for the linear systems of implicit steps: with the tensors of particles, and on an
// assembled matrix where there is one and it pays (E99).
#include "linear.h"
#include <math.h>

enum { PRODUCTS_OF_MATRIX = 10 };             // products with the tensors that take as long as to assemble a matrix
enum { PRODUCTS_OF_LATTICE = 6 };             // products before the coarse lattice is built
enum { PRODUCTS_OF_OLD_FACTOR = 6 };          // products with the factor of an earlier iteration, before a new one
static const double matrix_bytes = 1 << 30;   // of an assembled matrix, at most
static const double loose = 0.2;              // tolerance of a linear system

// Makes *array longer if it has fewer than `wanted` elements of `size` bytes; its contents are then lost. *capacity:
// its elements. Returns 1, or 0 without memory.
static int reserve(void **array, int64_t *capacity, int64_t wanted, size_t size) {
  if (*capacity >= wanted) return 1;
  *capacity = 0;
  cq_free(*array);
  *array = cq_alloc((size_t)(wanted + wanted / 8), size, "implicit steps");
  if (*array) *capacity = wanted + wanted / 8;
  return *array != NULL;
}

// Allocates the assembled matrix of the Hessian H (E99) for the scene's present order of particles, or frees it where
// there is none: in 3D, above a size, and where dilatations are averaged, whose means couple distant nodes. CQ_OK or
// CQ_MEMORY.
cq_status cq_matrix_reserve(cq_scene *s) {
  cq_implicit *m = &s->implicit;
  const cq_implicit_kernels *k = s->implicit.loops;
  const cq_arrangement *a = s->arrangement;
  const size_t real = (size_t)s->kernels->real_bytes;
  const int64_t groups = a->record_nodes / 4;
  const int has = k->matrix_reals && !s->model->averages_dilatation;
  if (!has || (double)groups * k->matrix_reals * (double)real > matrix_bytes) {
    cq_free(m->matrix);
    m->matrix = NULL;
    m->matrix_capacity = 0;
    return CQ_OK;
  }
  m->places = a->size[0];
  // rows of the matrix reach two nodes beyond the window at each side
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

// Frees the assembled matrix of a scene and the vectors of its sweeps.
void cq_matrix_destroy(cq_scene *s) {
  cq_implicit *m = &s->implicit;
  for (int v = 0; v < CQ_SWEEP_VECTORS; v++) cq_free(m->sweep[v]);
  cq_free(m->matrix);
  cq_free(m->own);
  cq_free(m->sides);
  cq_free(m->column_at);
  cq_free(m->cell_first);
  cq_free(m->cell_next);
}

// A pass (cq_dilatation_pass) of averaged dilatation over a worker's nodes, between barriers: turns the sums that all
// ranges have scattered to them into means.
static void means(solve *o, int32_t pass) {
  barrier(o);
  for (int b = o->begin; b < o->end; b++) o->k->dilatation_solve_nodes(o->s, b, pass);
  barrier(o);
}

// (E101) Averages twice: turns what particles have scattered to the nodes into means a, averages these at the particles
// for means b, and leaves 2 a - b at the nodes.
static void mean_again(solve *o) {
  means(o, CQ_DILATATION_MEAN);
  for (int r = o->begin; r < o->end; r++) o->k->dilatation_solve_again(o->s, o->in, r);
  means(o, CQ_DILATATION_AGAIN);
}

// Once a step, where dilatations are averaged: computes the volumes of nodes, which weigh the averages. Else nothing.
void cq_linear_open(solve *o) {
  if (!o->s->model->averages_dilatation) return;
  barrier(o);
  for (int r = o->begin; r < o->end; r++) o->k->dilatation_solve_open(o->s, o->in, r);
  means(o, CQ_DILATATION_VOLUME);
}

// Prepares a loop over particles that reads the vector `from`: on reference grids sets r->moved, the state that it
// leads to, which the loop reads; where dilatations are averaged, computes the means of its rates.
void cq_linear_gather(solve *o, int32_t from) {
  if (cq_is_reference(o->s->model)) {
    for (int b = o->begin; b < o->end; b++) o->k->spread(o->s, b, from);
    barrier(o);
  }
  if (!o->s->model->averages_dilatation) return;
  for (int r = o->begin; r < o->end; r++) o->k->dilatation_solve_first(o->s, o->in, r, from);
  mean_again(o);
}

// After a loop over particles that gives the nodes a stress or a product, where dilatations are averaged: averages the
// trace of the stress, and scatters the stress to the nodes. Else nothing.
void cq_linear_press(solve *o) {
  if (!o->s->model->averages_dilatation) return;
  mean_again(o);
  for (int r = o->begin; r < o->end; r++) o->k->dilatation_solve_last(o->s, o->in, r);
}

// Sets PRODUCT = H times the vector `from`, H the Hessian, and o->sum[CQ_SUM_DOT] = from . PRODUCT. of: in the
// directions that contacts leave free, with friction (CQ_PRODUCT_FREE; CQ_PRODUCT_FREE_SLOPE also sets
// o->sum[CQ_SUM_SLOPE] = from . REST), or all components without friction (CQ_PRODUCT_ALL).
void cq_linear_multiply(solve *o, int32_t from, cq_grid_product of) {
  start_phase(o, CQ_PHASE_SOLVE);
  if (pulls(o)) o->k->cables_product(o->s, from);
  cq_linear_gather(o, from);
  for (int r = o->begin; r < o->end; r++) o->k->product(o->s, o->in, r, from);
  cq_linear_press(o);
  barrier(o);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->multiply(o->s, b, from, of, sums(o, b));
  end_sums(o);
  start_phase(o, CQ_PHASE_PRODUCT);
}

// (E99) Assembles the matrix of the Hessian H in the directions that contacts leave free, and its preconditioner,
// unless they are up to date; clears the vectors of the sweeps.
static void assemble(solve *o) {
  if (o->assembled) return;
  o->assembled = 1;
  start_phase(o, CQ_PHASE_SOLVE);
  if (o->worker->rank == 0) {
    cq_implicit *m = &o->s->implicit;
    const size_t bytes = (size_t)(o->s->model->dim * m->sweep_stride * o->s->kernels->real_bytes);
    o->k->index_matrix(o->s);
    for (int v = 0; v < CQ_SWEEP_VECTORS; v++) memset(m->sweep[v], 0, bytes);
  }
  barrier(o);
  for (int b = o->begin; b < o->end; b++) o->k->assemble(o->s, o->in, b);
  barrier(o);
  for (int b = o->begin; b < o->end; b++) o->k->precondition(o->s, b);
  barrier(o);
  start_phase(o, CQ_PHASE_ASSEMBLY);
}

// a pass over blocks in conjugate gradients on the assembled matrix (sweep.inl)
typedef enum sweep_pass { SWEEP_FIRST, SWEEP_TURN, SWEEP_PRODUCT } sweep_pass;

// Runs one pass over a worker's blocks with even numbers (odd 0) or odd ones (odd 1): neighbouring blocks are coupled,
// and never swept at the same time. beta: of SWEEP_TURN, the factor of the last direction.
static void sweep_blocks(solve *o, sweep_pass pass, int odd, double beta) {
  for (int b = o->begin; b < o->end; b++) {
    if (b % 2 != odd) continue;
    if (pass == SWEEP_FIRST) o->k->sweep_first(o->s, b);
    if (pass == SWEEP_TURN) o->k->sweep_turn(o->s, b, beta);
    if (pass == SWEEP_PRODUCT) o->k->sweep_product(o->s, b, sums(o, b));
  }
}

// (E99) Continues conjugate gradients from STEP and its residual REST, with the assembled matrix and its Gauss-Seidel
// preconditioner, for at most `most` products. tolerance: relative to the residual here. truncated: 1 stops at a
// direction along which H is not positive. Returns how it ended.
static cg_end sweep(solve *o, double tolerance, int32_t most, int truncated) {
  assemble(o);
  for (int b = o->begin; b < o->end; b++) o->k->sweep_load(o->s, b);
  sweep_blocks(o, SWEEP_FIRST, 0, 0);
  barrier(o);
  sweep_blocks(o, SWEEP_FIRST, 1, 0);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->sweep_begin(o->s, b, sums(o, b));
  end_sums(o);
  const double enough = tolerance * tolerance * o->sum[CQ_SUM_SQUARE];
  double square = o->sum[CQ_SUM_SQUARE], beta = 0;
  cg_end end = CG_EXHAUSTED;
  for (int32_t i = 0; i < most && square > enough && isfinite(square); i++) {
    start_phase(o, CQ_PHASE_SOLVE);
    sweep_blocks(o, SWEEP_TURN, 1, beta);
    barrier(o);
    sweep_blocks(o, SWEEP_TURN, 0, beta);
    barrier(o);
    begin_sums(o);
    sweep_blocks(o, SWEEP_PRODUCT, 0, 0);
    barrier(o);
    sweep_blocks(o, SWEEP_PRODUCT, 1, 0);
    end_sums(o);
    const double curvature = o->sum[CQ_SUM_DOT];
    o->linear++;
    o->saddle += !truncated && curvature < 0;
    if (!(curvature > 0) && (truncated || curvature == 0)) {
      end = CG_CURVATURE;
      break;
    }
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->sweep_advance(o->s, b, square / curvature, sums(o, b));
    end_sums(o);
    start_phase(o, CQ_PHASE_PRODUCT);
    beta = o->sum[CQ_SUM_SQUARE] / square;
    square = o->sum[CQ_SUM_SQUARE];
  }
  for (int b = o->begin; b < o->end; b++) o->k->sweep_end(o->s, b);
  barrier(o);
  return square <= enough ? CG_CONVERGED : end;
}

// After the blocks have computed a first direction: waits for their sums, and where the coarse lattice is in use
// (E104), adds its correction to DIRECTION. Returns REST . M^-1 REST, M the whole preconditioner, REST the residual.
static double with_lattice(solve *o) {
  double y[3 * CQ_COARSE_NODES];
  for (int b = o->begin; o->coarse && b < o->end; b++) o->k->coarse_restrict(o->s, b, o->s->implicit.coarse.right[b]);
  end_sums(o);
  if (!o->coarse) return o->sum[CQ_SUM_SQUARE];
  const double square = o->sum[CQ_SUM_SQUARE] + cq_coarse_solve(o, y);
  for (int b = o->begin; b < o->end; b++) o->k->coarse_prolong(o->s, b, y);
  barrier(o);
  return square;
}

// Begins conjugate gradients for H STEP = sign RESIDUAL at STEP = 0: sets REST to the right side and DIRECTION to M^-1
// REST, M the preconditioner. Returns REST . M^-1 REST.
static double begin_gradients(solve *o, double sign) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->cg_start(o->s, b, sign, sums(o, b));
  return with_lattice(o);
}

// Begins conjugate gradients again at the present STEP and its residual REST, when the coarse lattice has joined the
// preconditioner M: sets DIRECTION to M^-1 REST. Returns REST . M^-1 REST.
static double begin_again(solve *o) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->cg_again(o->s, b, sums(o, b));
  return with_lattice(o);
}

// One iteration of conjugate gradients after cq_linear_multiply: moves STEP along DIRECTION, and sets the next
// DIRECTION. square: REST . M^-1 REST before; curvature: DIRECTION . H DIRECTION. Returns REST . M^-1 REST after it,
// whose part by the blocks of nodes is left in o->sum[CQ_SUM_SQUARE]. The length minimises the energy along the
// direction, so that rounding, where stiff friction cancels motions of the lattice, never leads away.
static double advance(solve *o, double square, double curvature) {
  double y[3 * CQ_COARSE_NODES], now = 0;
  const double length = (o->coarse ? o->sum[CQ_SUM_SLOPE] : square) / curvature;
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) {
    o->k->cg_advance(o->s, b, length, sums(o, b));
    if (o->coarse) o->k->coarse_restrict(o->s, b, o->s->implicit.coarse.right[b]);
  }
  end_sums(o);
  if (o->coarse) now = cq_coarse_solve(o, y);
  now += o->sum[CQ_SUM_SQUARE];
  for (int b = o->begin; b < o->end; b++) {
    o->k->cg_turn(o->s, b, now / square);
    if (o->coarse) o->k->coarse_prolong(o->s, b, y);
  }
  barrier(o);
  return now;
}

// Sets STEP = -M^-1 RESIDUAL, with friction, in the directions that contacts leave free, M the nodes' diagonal blocks
// of the Hessian: steepest descent, where Newton's step leads nowhere.
void cq_linear_descend(solve *o) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) {
    o->k->cg_start(o->s, b, -1, sums(o, b));
    o->k->take_direction(o->s, b);
  }
  end_sums(o);
}

// Computes the Cholesky factor of the Hessian H on reference grids, by all workers; where H is not positive definite,
// of H plus a part of its diagonal, more and more until there is a factor or the part exceeds 1e6.
static void make_factor(solve *o) {
  static const double first = 1e-3, more = 8, most = 1e6;
  cq_implicit *m = &o->s->implicit;
  const int threads = o->worker->size, rank = o->worker->rank;
  o->factored = FACTOR_NEW;
  start_phase(o, CQ_PHASE_SOLVE);
  o->k->factor_assemble(o->s, rank, threads);
  barrier(o);
  for (double shift = 0;; shift = shift > 0 ? more * shift : first) {
    o->k->factor_take(o->s, rank, threads, shift);
    barrier(o);
    if (rank == 0) m->factor.positive = cq_factor_make(&m->factor, o->s->reference.bodies);
    barrier(o);
    if (m->factor.positive || !(shift < most)) break;
  }
  start_phase(o, CQ_PHASE_ASSEMBLY);
}

// Provides a factor to precondition with. One from an earlier Newton iteration of the same step does for a few products
// if the same contacts hold; else a new one is computed.
static void find_factor(solve *o) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->factor_mark(o->s, b, sums(o, b));
  end_sums(o);
  if (o->factored == FACTOR_NEW || (o->factored == FACTOR_OLD && o->sum[CQ_SUM_CHANGED] == 0)) return;
  make_factor(o);
}

// Preconditions by the factor: sets CONDITIONED to its solution for the right side REST; returns REST . CONDITIONED.
static double by_factor(solve *o) {
  for (int b = o->begin; b < o->end; b++) o->k->factor_load(o->s, b);
  barrier(o);
  if (o->worker->rank == 0) cq_factor_solve(&o->s->implicit.factor);
  barrier(o);
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->factor_store(o->s, b, sums(o, b));
  end_sums(o);
  return o->sum[CQ_SUM_SQUARE];
}

// Does the work of cq_linear_solve on reference grids, where H has a Cholesky factor: conjugate gradients that it
// preconditions. Without cables that follow the step's end it is of the whole of H, and one or two directions suffice.
static cg_end with_factor(solve *o, double sign, double tolerance, int32_t most, int truncated) {
  begin_sums(o);
  for (int b = o->begin; b < o->end; b++) o->k->cg_start(o->s, b, sign, sums(o, b));
  end_sums(o);
  const double enough = tolerance * tolerance * o->sum[CQ_SUM_SQUARE];
  double norm = o->sum[CQ_SUM_SQUARE], square = 1;
  if (!isfinite(norm)) {   // what is no number stays none, for those who look at the result
    for (int b = o->begin; b < o->end; b++) o->k->take_direction(o->s, b);
    barrier(o);
    return CG_CONVERGED;
  }
  find_factor(o);
  for (int32_t i = 0; i < most && norm > enough; i++) {
    const int renew = o->factored == FACTOR_OLD && i == PRODUCTS_OF_OLD_FACTOR;
    if (renew) make_factor(o);
    const double now = by_factor(o);
    if (!isfinite(now)) return CG_EXHAUSTED;
    for (int b = o->begin; b < o->end; b++) o->k->cg_turn(o->s, b, i && !renew ? now / square : 0);
    barrier(o);
    square = now;
    cq_linear_multiply(o, CQ_GRID_DIRECTION, CQ_PRODUCT_FREE);
    const double curvature = o->sum[CQ_SUM_DOT];
    o->linear++;
    o->saddle += !truncated && curvature < 0;
    if (!(curvature > 0) && (truncated || curvature == 0)) {
      for (int b = o->begin; b < o->end && i == 0; b++) o->k->take_direction(o->s, b);
      barrier(o);
      return CG_CURVATURE;
    }
    begin_sums(o);
    for (int b = o->begin; b < o->end; b++) o->k->cg_advance(o->s, b, square / curvature, sums(o, b));
    end_sums(o);
    norm = o->sum[CQ_SUM_SQUARE];
  }
  return norm <= enough ? CG_CONVERGED : CG_EXHAUSTED;
}

// Solves H STEP = sign RESIDUAL (with friction if sign is -1) in the directions that contacts leave free by conjugate
// gradients, with at most `most` products. They end when the residual's norm in the blocks of nodes, by which Newton's
// method ends as well, is `tolerance` times the first: in the lattice's norm the rounding of the sum of all forces
// would drown the rest. For a loose tolerance a few products may suffice; otherwise the matrix is assembled, or the
// lattice built. Where H is not positive, the blocks of nodes give better directions than the matrix. truncated: 1
// stops there, with the STEP so far, or that direction if it is the first; 0 goes on. Returns how it ended;
// CG_CONVERGED, with such a STEP, if RESIDUAL is not finite.
cg_end cq_linear_solve(solve *o, double sign, double tolerance, int32_t most, int truncated) {
  if (o->s->implicit.factor.count) return with_factor(o, sign, tolerance, most, truncated);
  const int lattice = cq_coarse_has(o);
  if (lattice && !o->coarse && tolerance <= loose) cq_coarse_build(o);
  double square = begin_gradients(o, sign), norm = o->sum[CQ_SUM_SQUARE];
  const double first = norm;
  if (!isfinite(square)) {   // what is no number stays none, for those who look at the result
    for (int b = o->begin; b < o->end; b++) o->k->take_direction(o->s, b);
    barrier(o);
    return CG_CONVERGED;
  }
  // a cable couples nodes that are far from each other
  const int matrix = o->s->implicit.matrix && !cq_cables_follow(o->s->model);
  int32_t matrix_from = !matrix ? most : tolerance > loose ? PRODUCTS_OF_MATRIX : 0;
  for (int32_t i = 0; i < most; i++) {
    if (norm <= tolerance * tolerance * first) return CG_CONVERGED;
    if (!isfinite(square)) return CG_EXHAUSTED;
    if (i == matrix_from) {
      const cg_end end = sweep(o, tolerance * sqrt(first / norm), most - i, truncated);
      if (i || end != CG_CURVATURE || !truncated) return end;
      matrix_from = most;
      square = begin_gradients(o, sign);
    }
    if (lattice && !o->coarse && i == PRODUCTS_OF_LATTICE) {
      cq_coarse_build(o);
      square = begin_again(o);
    }
    cq_linear_multiply(o, CQ_GRID_DIRECTION, o->coarse ? CQ_PRODUCT_FREE_SLOPE : CQ_PRODUCT_FREE);
    const double curvature = o->sum[CQ_SUM_DOT];
    o->linear++;
    o->saddle += !truncated && curvature < 0;
    if (!(curvature > 0) && (truncated || curvature == 0)) {
      if (i == 0)
        for (int b = o->begin; b < o->end; b++) o->k->take_direction(o->s, b);
      barrier(o);
      return CG_CURVATURE;
    }
    square = advance(o, square, curvature);
    norm = o->sum[CQ_SUM_SQUARE];
  }
  return norm <= tolerance * tolerance * first ? CG_CONVERGED : CG_EXHAUSTED;
}
