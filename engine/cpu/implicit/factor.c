// factor: the sparse Cholesky factor of the second derivative on reference grids, where which nodes touch never
// changes. Nodes are put in order once a layout, by nested dissection of each body's grid; then each factor is a pass
// over dense fronts (Duff and Reid, ACM Transactions on Mathematical Software 9, 1983), in double.
#include "factor.h"
#include "../../base/base.h"
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  REACH = 2,                 // cells between nodes that a particle couples
  LEAF = 32,                 // nodes that are not dissected any more
  PANEL = 48,                // columns of a dense factor at a time
};

// The node at offset k from a node of a body, or -1 where that is outside of the body's grid. k numbers the square, or
// cube, of five nodes a side around the node, the last axis fastest: 12 in 2D, or 62 in 3D, is the node itself.
int64_t cq_factor_near(const cq_body *body, int32_t dim, int64_t node, int k) {
  const int side = 2 * REACH + 1, before = dim == 3 ? k / side : k;
  const int way[3] = {before / side, before % side, k % side};
  int64_t left = node - body->first, near = node;
  for (int i = 0; i < dim; i++) {
    const int64_t at = left / body->stride[i] + way[i] - REACH;
    left %= body->stride[i];
    if (at < 0 || at >= body->count[i]) return -1;
    near += (way[i] - REACH) * body->stride[i];
  }
  return near;
}

// ---- order ----------------------------------------------------------------------------------------------------------

typedef struct builder {
  cq_factor *f;
  const cq_body *body;
  const uint8_t *active;     // {nodes}
  int32_t dim, front_capacity;
  int failed;
} builder;

typedef struct box {
  int64_t low[3], high[3];   // both inside
} box;

// The number of the node at lattice coordinates `at` of the builder's present body.
static int64_t node_at(const builder *b, const int64_t at[3]) {
  int64_t node = b->body->first;
  for (int i = 0; i < b->dim; i++) node += at[i] * b->body->stride[i];
  return node;
}

// Moves `at` to the next lattice place of a box, the last axis fastest, and returns 1; returns 0 after the last one.
static int next_place(const builder *b, const box *within, int64_t at[3]) {
  for (int i = b->dim - 1; i >= 0; i--) {
    if (++at[i] <= within->high[i]) return 1;
    at[i] = within->low[i];
  }
  return 0;
}

// The number of nodes with mass in a box of the lattice of the builder's present body.
static int64_t count_active(const builder *b, const box *within) {
  int64_t at[3], count = 0;
  memcpy(at, within->low, sizeof at);
  do count += b->active[node_at(b, at)];
  while (next_place(b, within, at));
  return count;
}

// Appends a front to the factor: the nodes with mass of a box, eliminated together. Without memory b->failed is 1.
static void add_front(builder *b, const box *within) {
  cq_factor *f = b->f;
  int64_t at[3];
  if (f->fronts == b->front_capacity) {
    const int32_t room = 2 * b->front_capacity + 64;
    cq_front *more = cq_alloc((size_t)room, sizeof *more, "implicit steps");
    if (!more) {
      b->failed = 1;
      return;
    }
    if (f->fronts) memcpy(more, f->front, (size_t)f->fronts * sizeof *more);
    cq_free(f->front);
    f->front = more;
    b->front_capacity = room;
  }
  cq_front *front = &f->front[f->fronts++];
  *front = (cq_front){.first = f->count, .parent = -1};
  memcpy(at, within->low, sizeof at);
  do {
    const int64_t node = node_at(b, at);
    if (!b->active[node]) continue;
    f->position[node] = f->count;
    f->node[f->count++] = node;
  } while (next_place(b, within, at));
  front->own = f->count - front->first;
}

// Orders the nodes with mass of a box by nested dissection, and appends them to the factor as fronts: first both halves
// of the box, then the two planes of nodes between them, across which no particle couples nodes.
static void dissect(builder *b, const box *within) {
  int64_t count = 0, longest = 0;
  int axis = 0;
  for (int i = 0; i < b->dim; i++) {
    const int64_t length = within->high[i] - within->low[i] + 1;
    if (length < 1) return;
    if (length > longest) {
      longest = length;
      axis = i;
    }
  }
  count = count_active(b, within);
  if (!count || b->failed) return;
  if (count <= LEAF || longest <= 2 * REACH) {
    add_front(b, within);
    return;
  }
  const int64_t middle = within->low[axis] + (longest - REACH) / 2;
  box left = *within, right = *within, between = *within;
  left.high[axis] = middle - 1;
  between.low[axis] = middle;
  between.high[axis] = middle + REACH - 1;
  right.low[axis] = middle + REACH;
  dissect(b, &left);
  dissect(b, &right);
  if (count_active(b, &between)) add_front(b, &between);
}

// Compares two int32_t for qsort: below 0, 0 or above 0.
static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

// Symbolic factorisation: lists the rows below each front, the later nodes that its own nodes are coupled to and those
// that its child fronts pass on. Links each front to its parent, and adds the factor's floating-point operations to
// *work. CQ_OK or CQ_MEMORY.
static cq_status find_rows(cq_factor *f, const cq_body *bodies, int32_t dim, double *work) {
  int32_t *mark = cq_alloc((size_t)f->count, sizeof *mark, "implicit steps"),
          *found = cq_alloc((size_t)f->count, sizeof *found, "implicit steps"),
          *front_of = cq_alloc((size_t)f->count, sizeof *front_of, "implicit steps");
  int64_t capacity = 0, used = 0;
  cq_status status = mark && found && front_of ? CQ_OK : CQ_MEMORY;
  for (int32_t k = 0; k < f->fronts && !status; k++)
    for (int32_t p = f->front[k].first; p < f->front[k].first + f->front[k].own; p++) front_of[p] = k;
  for (int32_t k = 0; k < f->fronts && !status; k++) {
    cq_front *front = &f->front[k];
    const int32_t end = front->first + front->own;
    int32_t count = 0;
    for (int32_t p = front->first; p < end; p++) {
      for (int o = 0; o < 2 * cq_factor_offsets(dim) - 1; o++) {
        const int64_t near = cq_factor_near(&bodies[f->body[p]], dim, f->node[p], o);
        const int32_t q = near < 0 ? -1 : f->position[near];
        if (q < end || mark[q] == k + 1) continue;
        mark[q] = k + 1;
        found[count++] = q;
      }
    }
    for (int32_t child = front->child; child; child = f->front[child - 1].sibling) {
      const cq_front *c = &f->front[child - 1];
      for (int32_t i = 0; i < c->below; i++) {
        const int32_t q = f->row[c->rows + i];
        if (q < end || mark[q] == k + 1) continue;
        mark[q] = k + 1;
        found[count++] = q;
      }
    }
    qsort(found, (size_t)count, sizeof *found, ascending);
    if (used + count > capacity) {
      capacity = 2 * (used + count) + 1024;
      int32_t *more = cq_alloc((size_t)capacity, sizeof *more, "implicit steps");
      if (!more) {
        status = CQ_MEMORY;
        break;
      }
      if (used) memcpy(more, f->row, (size_t)used * sizeof *more);
      cq_free(f->row);
      f->row = more;
    }
    front->rows = used;
    front->below = count;
    if (count) memcpy(f->row + used, found, (size_t)count * sizeof *found);
    used += count;
    const double own = (double)front->own * dim, all = own + (double)count * dim;
    *work += own * all * all;
    if (!count) continue;
    front->parent = front_of[found[0]];
    front->sibling = f->front[front->parent].child;
    f->front[front->parent].child = k + 1;
  }
  cq_free(mark);
  cq_free(found);
  cq_free(front_of);
  return status;
}

// Frees everything that a factor holds, and leaves it empty.
void cq_factor_destroy(cq_factor *f) {
  void *owned[] = {f->position, f->node, f->body, f->held, f->front, f->row, f->block, f->x, f->below,
                   f->active, f->target};
  for (size_t k = 0; k < sizeof owned / sizeof *owned; k++) cq_free(owned[k]);
  for (int32_t k = 0; f->work && k < f->fronts; k++) cq_free(f->work[k]);
  cq_free(f->work);
  *f = (cq_factor){0};
}

// Orders the nodes with mass of all bodies for elimination, by nested dissection, and allocates the factor f anew; its
// count is 0 where it would be too large. active {node_count}: 1 for nodes with mass. CQ_OK or CQ_MEMORY.
cq_status cq_factor_order(cq_factor *f, const cq_body *bodies, int32_t body_count, int64_t node_count, int32_t dim,
                          const uint8_t *active) {
  // beyond these, conjugate gradients with the blocks of nodes are quicker: 648 nodes in space take as long by both,
  // with 4e5 operations a node, and 3,400 twice as long by the factor, with 2.8e6
  static const double most_bytes = 2e9, most_work = 5e5;
  cq_factor_destroy(f);
  f->dim = dim;
  f->position = cq_alloc((size_t)node_count, sizeof *f->position, "implicit steps");
  f->node = cq_alloc((size_t)node_count, sizeof *f->node, "implicit steps");
  f->body = cq_alloc((size_t)node_count, sizeof *f->body, "implicit steps");
  if (!f->position || !f->node || !f->body) return CQ_MEMORY;
  for (int64_t k = 0; k < node_count; k++) f->position[k] = -1;
  builder b = {.f = f, .active = active, .dim = dim};
  for (int32_t k = 0; k < body_count; k++) {
    box all = {{0}, {0}};
    const int32_t before = f->count;
    b.body = &bodies[k];
    for (int i = 0; i < dim; i++) all.high[i] = b.body->count[i] - 1;
    dissect(&b, &all);
    for (int32_t p = before; p < f->count; p++) f->body[p] = k;
  }
  double work = 0, bytes = 0;
  cq_status status = b.failed ? CQ_MEMORY : find_rows(f, bodies, dim, &work);
  if (status) return status;
  const int32_t offsets = cq_factor_offsets(dim);
  for (int32_t k = 0; k < f->fronts; k++) bytes += 8.0 * pow((double)dim * (f->front[k].own + f->front[k].below), 2);
  bytes += 8.0 * (double)f->count * offsets * dim * dim;
  if (bytes > most_bytes || work > most_work * f->count) {
    cq_factor_destroy(f);
    return CQ_OK;
  }
  f->held = cq_alloc((size_t)f->count, sizeof *f->held, "implicit steps");
  f->block = cq_alloc((size_t)f->count * (size_t)(offsets * dim * dim), sizeof *f->block, "implicit steps");
  f->x = cq_alloc((size_t)(f->count * dim), sizeof *f->x, "implicit steps");
  f->below = cq_alloc((size_t)(f->count * dim), sizeof *f->below, "implicit steps");
  f->active = cq_alloc((size_t)f->count, sizeof *f->active, "implicit steps");
  f->target = cq_alloc((size_t)f->count, sizeof *f->target, "implicit steps");
  f->work = cq_alloc((size_t)f->fronts, sizeof *f->work, "implicit steps");
  if (!f->target || !f->held || !f->block || !f->x || !f->below || !f->active || !f->work)
    return CQ_MEMORY;
  for (int32_t k = 0; k < f->fronts; k++) {
    const size_t all = (size_t)dim * (size_t)(f->front[k].own + f->front[k].below);
    f->work[k] = cq_alloc(all * all, sizeof *f->work[k], "implicit steps");
    if (!f->work[k]) return CQ_MEMORY;
  }
  return CQ_OK;
}

// ---- dense fronts ---------------------------------------------------------------------------------------------------

// Cholesky factorisation of the first `own` columns of a symmetric matrix a {all, all}, its lower triangle stored by
// columns; the Schur complement stays in the other columns. Returns 1, or 0 where the matrix is not positive definite.
static int factor_front(double *a, int own, int all) {
  for (int j = 0; j < own; j += PANEL) {
    const int width = own - j < PANEL ? own - j : PANEL, rest = all - j - width;
    double *d = a + j + (size_t)j * all;
    for (int c = 0; c < width; c++) {
      double *column = d + (size_t)c * all;
      for (int q = 0; q < c; q++) {
        const double by = d[c + (size_t)q * all];
        for (int i = c; i < width; i++) column[i] -= by * d[i + (size_t)q * all];
      }
      if (!(column[c] > 0) || !isfinite(column[c])) return 0;
      const double root = sqrt(column[c]);
      for (int i = c; i < width; i++) column[i] /= root;
    }
    if (!rest) continue;
    double *below = d + width, *right = d + width + (size_t)width * all;
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, rest, width, 1, d, all, below, all);
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, rest, width, -1, below, all, 1, right, all);
  }
  return 1;
}

// The row, counted in nodes, that position p of the elimination order has in a front's dense matrix: its own nodes come
// first, then those below.
static int32_t index_in(const cq_factor *f, const cq_front *front, int32_t p) {
  if (p < front->first + front->own) return p - front->first;
  int32_t low = 0, high = front->below - 1;
  const int32_t *row = f->row + front->rows;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (row[middle] < p) low = middle + 1;
    else high = middle;
  }
  return front->own + low;
}

// Copies the entries of f->block in the columns of a front's own nodes to its dense matrix a {all, all}, stored by
// columns.
static void take_entries(const cq_factor *f, const cq_body *bodies, const cq_front *front, double *a, int all) {
  const int32_t dim = f->dim, offsets = cq_factor_offsets(dim);
  const int half = offsets - 1;
  for (int32_t p = front->first; p < front->first + front->own; p++)
    for (int o = 0; o < 2 * half + 1; o++) {
      // the block of two nodes is with the first of them
      const int64_t near = cq_factor_near(&bodies[f->body[p]], dim, f->node[p], o);
      const int32_t q = near < 0 ? -1 : f->position[near];
      if (q < p) continue;
      const int forward = o >= half;
      const int64_t at = forward ? p : q;
      const double *block = f->block + (at * offsets + (forward ? o - half : half - o)) * dim * dim;
      const int32_t row = index_in(f, front, q) * dim, column = (p - front->first) * dim;
      for (int i = 0; i < dim; i++)
        for (int j = 0; j < dim; j++)
          a[row + i + (size_t)(column + j) * (size_t)all] = forward ? block[j * dim + i] : block[i * dim + j];
    }
}

// Adds the Schur complement that front number `child` has left to the dense matrix a {all, all} of `front`, its parent.
static void take_child(cq_factor *f, const cq_front *front, int32_t child, double *a, int all) {
  const cq_front *c = &f->front[child];
  const int dim = f->dim, from = (c->own + c->below) * dim;
  const double *left = f->work[child];
  int32_t *to = f->target;
  for (int32_t i = 0; i < c->below; i++) to[i] = index_in(f, front, f->row[c->rows + i]);
  for (int32_t j = 0; j < c->below; j++)
    for (int cj = 0; cj < dim; cj++) {
      const double *column = left + (size_t)((c->own + j) * dim + cj) * (size_t)from + c->own * dim;
      double *target = a + (size_t)(to[j] * dim + cj) * (size_t)all;
      for (int32_t i = j; i < c->below; i++)
        for (int ci = i == j ? cj : 0; ci < dim; ci++) target[to[i] * dim + ci] += column[i * dim + ci];
    }
}

// Computes the Cholesky factor of the matrix in f->block, front by front. Returns 1, or 0 where the matrix is not
// positive definite: there is no factor then.
int cq_factor_make(cq_factor *f, const cq_body *bodies) {
  const int dim = f->dim;
  for (int32_t k = 0; k < f->fronts; k++) {
    const cq_front *front = &f->front[k];
    const int own = front->own * dim, all = own + front->below * dim;
    double *a = f->work[k];
    memset(a, 0, (size_t)all * (size_t)all * sizeof *a);
    take_entries(f, bodies, front, a, all);
    for (int32_t child = front->child; child; child = f->front[child - 1].sibling)
      take_child(f, front, child - 1, a, all);
    if (!factor_front(a, own, all)) return 0;
  }
  return 1;
}

// The address of the numbers {dim} in f->x of the i-th node below a front.
static double *x_below(const cq_factor *f, const cq_front *front, int32_t i) {
  return f->x + (size_t)f->row[front->rows + i] * (size_t)f->dim;
}

// Solves with the factor, front by front: replaces the right side f->x {count, dim} by the solution.
void cq_factor_solve(cq_factor *f) {
  const int dim = f->dim;
  const size_t node = (size_t)dim * sizeof *f->x;
  for (int32_t k = 0; k < f->fronts; k++) {
    const cq_front *front = &f->front[k];
    const int own = front->own * dim, below = front->below * dim, all = own + below;
    const double *l = f->work[k];
    double *x = f->x + (size_t)front->first * (size_t)dim;
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, own, l, all, x, 1);
    if (below) cblas_dgemv(CblasColMajor, CblasNoTrans, below, own, 1, l + own, all, x, 1, 0, f->below, 1);
    for (int32_t i = 0; i < front->below; i++)
      for (int c = 0; c < dim; c++) x_below(f, front, i)[c] -= f->below[i * dim + c];
  }
  for (int32_t k = f->fronts - 1; k >= 0; k--) {
    const cq_front *front = &f->front[k];
    const int own = front->own * dim, below = front->below * dim, all = own + below;
    const double *l = f->work[k];
    double *x = f->x + (size_t)front->first * (size_t)dim;
    for (int32_t i = 0; i < front->below; i++) memcpy(f->below + i * dim, x_below(f, front, i), node);
    if (below) cblas_dgemv(CblasColMajor, CblasTrans, below, own, -1, l + own, all, f->below, 1, 1, x, 1);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, own, l, all, x, 1);
  }
}
