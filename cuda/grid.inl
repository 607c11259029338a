// grid: from the arenas to the velocity of each node, with gravity and walls; and its adjoint. A thread for each node: of all blocks
// in a pass of its own, or of one region in a block that needs them.

CQ_GPU const real *globals_of(const cq_frame *s, const int32_t scene) {
  return (const real *)s->globals + (int64_t)scene * s->global_stride;
}
CQ_GPU real friction_of(const cq_frame *s, const int32_t scene, const int32_t wall) { return globals_of(s, scene)[3 + wall]; }
CQ_GPU const real *wall_velocity_of(const cq_frame *s, const int32_t scene, const int32_t wall) {
  return globals_of(s, scene) + 3 + s->wall_count + 3 * wall;
}

// what damping leaves of a velocity in a step
CQ_GPU real decay_of(const cq_frame *s, const int32_t scene) { return globals_of(s, scene)[3 + 4 * s->wall_count]; }

// the arena of a part of a tile's particles, after so many substeps
CQ_GPU Node *arena_of(const cq_frame *s, const int32_t substep, const int32_t part) {
  return (Node *)s->arena[substep & 1] + (int64_t)part * NODES;
}

// Sum of the arenas that hold a node: its own tile's, and along each axis that of one neighbour at most; always in the same order.
CQ_GPU Node arenas_sum(const cq_frame *s, const int32_t k, const int32_t block, const int at[CQ_DIM]) {
  const int32_t *neighbors = s->neighbors + (int64_t)block * CQ_NEIGHBORS_MAX;
  const Node *arena = arena_of(s, k, 0);
  CQ_GLOBAL(neighbors);
  CQ_GLOBAL(arena);
  const Node zero = {{0, 0, 0, 0}};
  Node sum = zero;
  int beside[CQ_DIM];
  EACH(i) beside[i] = at[i] <= REGION - SIDE - 2 ? -1 : at[i] == SIDE - 1 ? 1 : 0;
  CQ_ROLLED for (int32_t part = 0; part < s->parts; part++) {
    // all loads are on their way before the first is waited for
    Node of[1 << CQ_DIM];
    CQ_UNROLL for (int mask = 0; mask < 1 << CQ_DIM; mask++) {
      int which = 0, node = 0, holds = 1;
      EACH(i) {
        const int b = mask >> i & 1 ? beside[i] : 0;
        if ((mask >> i & 1) && !b) holds = 0;
        which = which * 3 + b + 1;
        node = node * REGION + at[i] - b * SIDE + 1;
      }
      const int32_t t = neighbors[which];
      holds &= t >= 0 && t < s->tile_count;
      of[mask] = zero;
      if (holds) of[mask] = arena[((int64_t)t * s->parts + part) * NODES + node];
    }
    CQ_UNROLL for (int mask = 0; mask < 1 << CQ_DIM; mask++) CQ_UNROLL for (int r = 0; r < 4; r++) sum.c[r] += of[mask].c[r];
  }
  return sum;
}

// ---- walls --------------------------------------------------------------------------------------------------------------

// a node, and its entries in the wall map
typedef struct Where {
  int32_t at[3], scene;      // first axes and last, as the wall map counts: y is 0 in 2D
  double time;
  const cq_wall_node *entry;
  int32_t count;             // entries
  int32_t pinned;            // the one entry is a pin: no wall has a say beside it
} Where;

// Can anything hold nodes of a tile?
CQ_GPU int may_touch(const cq_frame *s, const cq_tile *tile) { return tile->held || s->moving_wall_count; }

CQ_GPU void find_node(const cq_frame *s, const int64_t n, const int32_t k, Where *w) {
  const cq_tile *tile = &s->tiles[n / CQ_TILE_NODES];
  const int64_t held = s->held[n];
  int at[CQ_DIM];
  node_at((int)(n % CQ_TILE_NODES), SIDE, at);
  w->at[0] = tile->lower[0] + at[0];
  w->at[1] = CQ_DIM == 3 ? tile->lower[1] + at[1] : 0;
  w->at[2] = tile->lower[LAST] + at[LAST];
  w->scene = tile->scene;
  w->time = (double)(s->step + k) * s->scales_8.dt;
  w->entry = s->map.node + held / CQ_HELD;
  w->pinned = held % CQ_HELD == CQ_HELD_PIN;
  w->count = w->pinned ? 1 : (int32_t)(held % CQ_HELD);
}

typedef struct Contact {
  int32_t wall;              // -1: a pin
  real normal[CQ_DIM];
} Contact;

// where a node is for a wall that has moved away from its place at the start
CQ_GPU void place_for(const cq_frame *s, const Where *w, const int32_t wall, double x[3]) {
  const real *velocity = wall_velocity_of(s, w->scene, wall);
  x[0] = w->at[0] * s->scales_8.dx;
  x[1] = w->at[1] * s->scales_8.dx;
  x[2] = 0;
  x[LAST] = w->at[2] * s->scales_8.dx;
  EACH(i) x[i] -= w->time * (double)velocity[i];
}

// Contact j of a node: what stays comes first, then the walls that move, where they are now. 0: there are not so many.
CQ_GPU int contact_of(const cq_frame *s, const Where *w, const int32_t j, Contact *contact) {
  if (j < w->count) {
    contact->wall = w->entry[j].wall;
    EACH(i) contact->normal[i] = (real)w->entry[j].normal[i];
    return 1;
  }
  if (!s->moving_wall_count || w->pinned) return 0;
  int32_t left = j - w->count;
  for (int32_t m = 0; m < s->wall_count; m++) {
    if (!s->walls[m].moves) continue;
    double x[3], normals[3][3];
    place_for(s, w, m, x);
    const int32_t count = wall_normals(&s->walls[m], CQ_DIM, 1e-6 * s->scales_8.dx, x, normals);
    if (left < count) {
      contact->wall = m;
      EACH(i) contact->normal[i] = (real)normals[left][i];
      return 1;
    }
    left -= count;
  }
  return 0;
}

CQ_GPU void meet(const cq_frame *s, const int32_t scene, const Contact *c, real v[CQ_DIM]) {
  const real still[3] = {0, 0, 0};
  if (c->wall < 0)
    contact(CQ_CONTACT_STICKY, 0, c->normal, still, v);
  else
    contact(s->walls[c->wall].kind, friction_of(s, scene, c->wall), c->normal, wall_velocity_of(s, scene, c->wall), v);
}

// velocity after the first contacts, at most `most` of them; returns how many there were
CQ_GPU int32_t meet_walls(const cq_frame *s, const Where *w, const int32_t most, real v[CQ_DIM]) {
  Contact c;
  int32_t j = 0;
  for (; j < most && contact_of(s, w, j, &c); j++) meet(s, w->scene, &c, v);
  return j;
}

// (E14) v = d (p / m + dt g), d what damping leaves; a node without mass falls too, and nobody asks it
CQ_GPU real free_velocity(const cq_frame *s, const int32_t scene, const Node *p, real v[CQ_DIM]) {
  const real inverse = p->c[CQ_DIM] > 0 ? (real)1 / p->c[CQ_DIM] : (real)0;
  const real *gravity = globals_of(s, scene);
  const real decay = decay_of(s, scene);
  EACH(i) v[i] = (p->c[i] * inverse + s->SCALES.dt * gravity[i]) * decay;
  return inverse;
}

CQ_RARE Node touch_walls(const cq_frame *s, const int64_t n, const int32_t k, Node v) {
  Where w;
  find_node(s, n, k, &w);
  meet_walls(s, &w, INT32_MAX, v.c);
  return v;
}

// of node n of all blocks, from its momentum and mass
CQ_GPU Node node_velocity(const cq_frame *s, const int64_t n, const int32_t k, const Node *p) {
  const cq_tile *tile = &s->tiles[n / CQ_TILE_NODES];
  Node v = {{0, 0, 0, 0}};
  free_velocity(s, tile->scene, p, v.c);
  return may_touch(s, tile) ? touch_walls(s, n, k, v) : v;
}

// ---- kernels ------------------------------------------------------------------------------------------------------------

enum { GRID_THREADS = 256 };

// Later steps than one that failed, or that needs another arrangement, do nothing. What is found in the meantime is found of later
// states, and does not change the answer.
CQ_GPU int is_over(const cq_frame *s, const int32_t k) {
  return load_volatile(&s->progress->bad) < s->first + k || load_volatile(&s->progress->stop) <= s->first + k;
}

// momentum and mass of node n of all blocks
CQ_GPU Node node_sum(const cq_frame *s, const int64_t n, const int32_t k) {
  int at[CQ_DIM];
  node_at((int)(n % CQ_TILE_NODES), SIDE, at);
  return arenas_sum(s, k, (int32_t)(n / CQ_TILE_NODES), at);
}

// AGAIN: from the record of the step, not from the arenas
template <int AGAIN>
CQ_GPU void grid_pass(const cq_frame *s, const int32_t k) {
  Node *kept = (Node *)s->substeps[k].grid;
  const int64_t count = (int64_t)s->block_count * CQ_TILE_NODES;
  for (int64_t n = (int64_t)blockIdx.x * GRID_THREADS + threadIdx.x; n < count; n += (int64_t)gridDim.x * GRID_THREADS) {
    const Node p = AGAIN ? kept[n] : node_sum(s, n, k);
    if (!AGAIN && kept) kept[n] = p;
    ((Node *)s->grid_v)[n] = node_velocity(s, n, k, &p);
  }
}

template <int AGAIN>
static __global__ void __launch_bounds__(GRID_THREADS, 2) grid(const cq_frame *__restrict__ s, int32_t k) {
  if (AGAIN || !is_over(s, k))
    grid_pass<AGAIN>(s, k);
  else if (blockIdx.x == 0 && threadIdx.x == 0)
    s->progress->over = 1;
}

// ---- adjoint ------------------------------------------------------------------------------------------------------------

// A tile's nodes have a group of as many threads, of which a block may have several. What the threads of a group share:
typedef struct Shared {
  Node grads[CQ_TILE_NODES];
  double half[2 * CQ_DIM + 2];
  int32_t wall[CQ_TILE_NODES], most;
} Shared;

CQ_GPU int group_of_thread(void) { return (int)(threadIdx.x / CQ_TILE_NODES); }
CQ_GPU int group_node(void) { return (int)(threadIdx.x % CQ_TILE_NODES); }
// THREADS: of the block
template <int THREADS>
CQ_GPU void sync_group(void) {
  if (THREADS == CQ_TILE_NODES)
    __syncthreads();
  else
    cq_sync_some(1 + group_of_thread(), CQ_TILE_NODES);
}

// the velocity of a wall has brought it to where its normals are: (E22)
CQ_GPU void turn_adj(const cq_frame *s, const Where *w, const int32_t wall, ContactGrad *grad) {
  double x[3], grad_n[3] = {0, 0, 0}, grad_x[3] = {0, 0, 0};
  place_for(s, w, wall, x);
  EACH(i) grad_n[i] = (double)grad->n[i];
  wall_normals_adj(&s->walls[wall], CQ_DIM, x, grad_n, grad_x);
  EACH(i) grad->w[i] -= (real)(w->time * grad_x[i]);
}

// Contact j of a node backward; v0: velocity before all walls; grad_wall: of the wall's velocity, then of its friction. Returns the
// wall, -1 if there is none.
CQ_GPU int32_t meet_adj(const cq_frame *s, const Where *w, const int32_t j, const real v0[CQ_DIM], real grad_v[CQ_DIM], Node *grad_wall) {
  real v[CQ_DIM];
  ContactGrad grad = {};
  const real still[3] = {0, 0, 0};
  Contact c;
  c.wall = -1;
  if (j >= 0 && contact_of(s, w, j, &c)) {
    EACH(i) v[i] = v0[i];
    meet_walls(s, w, j, v);
    if (c.wall < 0) {
      contact_adj(CQ_CONTACT_STICKY, 0, c.normal, still, v, grad_v, &grad);
    } else {
      contact_adj(s->walls[c.wall].kind, friction_of(s, w->scene, c.wall), c.normal, wall_velocity_of(s, w->scene, c.wall), v,
                  grad_v, &grad);
      if (s->walls[c.wall].moves) turn_adj(s, w, c.wall, &grad);
    }
  }
  EACH(i) grad_wall->c[i] = grad.w[i];
  grad_wall->c[CQ_DIM] = grad.friction;
  return c.wall;
}

// The j-th contact of node n of the group: its wall's gradients of all nodes are added in the order of the nodes.
template <int THREADS>
CQ_GPU void group_contact_adj(const cq_frame *s, const Where *w, const int32_t j, const real v0[CQ_DIM], real grad_v[CQ_DIM], Shared *shared,
                          double *sums) {
  const int n = group_node();
  Node *grads = shared->grads;
  shared->wall[n] = meet_adj(s, w, j, v0, grad_v, &grads[n]);
  sync_group<THREADS>();
  if (n < s->wall_count)
    for (int m = 0; m < CQ_TILE_NODES; m++) {
      if (shared->wall[m] != n) continue;
      sums[3 + n] += (double)grads[m].c[CQ_DIM];
      EACH(i) sums[3 + s->wall_count + 3 * n + i] += (double)grads[m].c[i];
    }
  sync_group<THREADS>();
}

// All contacts of the nodes of a tile backward, the last first; nodes with fewer of them wait. v: velocity before them; returns dL/dv
// from grad, what it is after them.
template <int THREADS>
CQ_RARE Node touch_walls_adj(const cq_frame *s, const int64_t n, const int32_t k, const Node v, Node grad, Shared *shared, double *sums) {
  Where w;
  Node after = v;
  find_node(s, n, k, &w);
  const int32_t count = meet_walls(s, &w, INT32_MAX, after.c);
  if (group_node() == 0) shared->most = 0;
  sync_group<THREADS>();
  if (count) atomicMax(&shared->most, count);
  sync_group<THREADS>();
  const int32_t rounds = shared->most;
  for (int32_t r = 0; r < rounds; r++) group_contact_adj<THREADS>(s, &w, count - 1 - r, v.c, grad.c, shared, sums);
  return grad;   // the barriers of add_gravity lie before the next tile's most = 0
}

// the same of a node alone, where nobody asks for gradients of walls
CQ_RARE Node leave_walls_adj(const cq_frame *s, const int64_t n, const int32_t k, const Node v, Node grad) {
  Where w;
  Node after = v, grad_wall;
  find_node(s, n, k, &w);
  for (int32_t j = meet_walls(s, &w, INT32_MAX, after.c) - 1; j >= 0; j--) meet_adj(s, &w, j, v.c, grad.c, &grad_wall);
  return grad;
}

// the sum over the nodes of a tile, in a fixed order, in two halves
CQ_GPU void half_sums(Shared *shared, const int which, double sum) {
  const int n = group_node();
  for (int d = WARP / 2; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (n % WARP == 0) shared->half[2 * which + n / WARP] = sum;
}

// Gradients by gravity, from those of p / m + dt g at the nodes of a tile; and by damping, from v . dL/dv (E50).
template <int THREADS>
CQ_GPU void add_gravity(const cq_frame *s, Shared *shared, const Node *grad, const double along, double *sums) {
  const int n = group_node(), damping = s->damping_wanted;
  const double dt = s->scales_8.dt;
  EACH(i) half_sums(shared, i, (double)grad->c[i]);
  if (damping) half_sums(shared, CQ_DIM, along);
  sync_group<THREADS>();
  if (n < CQ_DIM) sums[n] += dt * (shared->half[2 * n] + shared->half[2 * n + 1]);
  if (n == CQ_DIM && damping) sums[3 + 4 * s->wall_count] -= dt * (shared->half[2 * CQ_DIM] + shared->half[2 * CQ_DIM + 1]);
  sync_group<THREADS>();
}

// Through the decay: grad is dL/dv and becomes that of p / m + dt g; returns v . dL/dv.
CQ_GPU double decay_adj(const cq_frame *s, const int32_t scene, const Node *v, Node *grad) {
  const real decay = decay_of(s, scene);
  double along = 0;
  EACH(i) {
    along += (double)v->c[i] * (double)grad->c[i];
    grad->c[i] *= decay;
  }
  return along;
}

// (E14) dL/dp = dL/dv / m, dL/dm = -(p / m) . dL/dv / m; grad_v: of velocity before walls
CQ_GPU Node free_velocity_adj(const Node *p, const real inverse, const Node *grad_v) {
  Node q;
  real along = 0;
  EACH(i) {
    q.c[i] = grad_v->c[i] * inverse;
    along += p->c[i] * inverse * q.c[i];
  }
  for (int r = CQ_DIM; r < 4; r++) q.c[r] = r == CQ_DIM ? -along : 0;
  return q;
}

// The arenas hold dL/dv; what all nodes of a tile have in common is added to its sums. STORE: grid_q = dL/d(momentum, mass), and for
// more the velocities of the step before, from its record.
template <int THREADS, int STORE>
CQ_GPU void grid_adj_pass(const cq_frame *s, const int32_t k, const int32_t more, Shared *of_groups) {
  enum { GROUPS = THREADS / CQ_TILE_NODES };
  if (group_of_thread() >= GROUPS) return;
  Shared *shared = of_groups + group_of_thread();
  const Node *kept = (const Node *)s->substeps[k].grid, *before = more ? (const Node *)s->substeps[k - 1].grid : NULL;
  const int32_t first = (int32_t)blockIdx.x * GROUPS + group_of_thread();
  for (int32_t block = first; block < s->block_count; block += (int32_t)gridDim.x * GROUPS) {
    int node = group_node(), at[CQ_DIM];
    CQ_OPAQUE(node);
    node_at(node, SIDE, at);
    const int64_t n = (int64_t)block * CQ_TILE_NODES + node;
    const cq_tile *tile = &s->tiles[block];
    double *sums = s->sums + (int64_t)block * (4 + 4 * s->wall_count);
    const Node p = kept[n];
    Node grad = arenas_sum(s, k, block, at), v = {{0, 0, 0, 0}};
    const real inverse = free_velocity(s, tile->scene, &p, v.c);
    if (may_touch(s, tile)) grad = touch_walls_adj<THREADS>(s, n, k, v, grad, shared, sums);
    const double along = decay_adj(s, tile->scene, &v, &grad);
    add_gravity<THREADS>(s, shared, &grad, along, sums);
    if (!STORE) continue;
    ((Node *)s->grid_q)[n] = free_velocity_adj(&p, inverse, &grad);
    if (more) ((Node *)s->grid_v)[n] = node_velocity(s, n, k - 1, &before[n]);
  }
}

static __global__ void __launch_bounds__(CQ_TILE_NODES, 1) grid_adj(const cq_frame *__restrict__ s, int32_t k, int32_t more) {
  CQ_SHARED(Shared, shared, 1);
  grid_adj_pass<CQ_TILE_NODES, 1>(s, k, more, shared);
}
