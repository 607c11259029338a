// grid: the velocity of each node from the arenas, with gravity and walls, and its adjoint. A thread works on a node:
// on one of all tiles in a grid pass, or on one of a region where a block computes its own nodes.

// Minus the share of a velocity that damping takes in one engine step, exp(-damping dt) - 1.
CQ_GPU real loss_of(const cq_frame *s, const int32_t scene) { return globals_of(s, scene)[CQ_AT_DAMPING]; }

// The arena that a part of a tile's particles scatters engine step `substep` into; part: counted through all tiles.
CQ_GPU Node *arena_of(const cq_frame *s, const int32_t substep, const int32_t part) {
  return (Node *)s->arena[substep & 1] + (int64_t)part * NODES;
}

// The sum of the entries of the node at `at` in tile `block`, in the arenas of step k of the tiles that reach it: its
// own tile, and at most one neighbour along each axis; always in the same order.
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
    // all loads are issued before the first value is needed
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
    CQ_UNROLL for (int mask = 0; mask < 1 << CQ_DIM; mask++) CQ_UNROLL for (int r = 0; r < 4; r++) sum.c[r] +=
        of[mask].c[r];
  }
  return sum;
}

// (E14) Sets v = d (p / m + dt g), the velocity of a node before contacts, d the factor of damping; returns 1 / m. A
// node without mass has a velocity too, which no particle reads, and returns 0.
CQ_GPU real free_velocity(const cq_frame *s, const int32_t scene, const Node *p, real v[CQ_DIM]) {
  const real inverse = p->c[CQ_DIM] > 0 ? (real)1 / p->c[CQ_DIM] : (real)0;
  const real *gravity = gravity_of(s, scene);
  const real loss = loss_of(s, scene);
  EACH(i) {
    const real free = p->c[i] * inverse + s->SCALES.dt * gravity[i];
    v[i] = free + loss * free;
  }
  return inverse;
}

// The velocity of node n, counted through all tiles, after gravity, damping and contacts in step k, from its momentum
// and mass p.
CQ_GPU Node node_velocity(const cq_frame *s, const int64_t n, const int32_t k, const Node *p) {
  const cq_tile *tile = &s->tiles[n / CQ_TILE_NODES];
  Node v = {{0, 0, 0, 0}};
  free_velocity(s, tile->scene, p, v.c);
  return may_touch(s, tile) ? node_contacts(s, n, k, v) : v;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

enum { GRID_THREADS = 256 };

// Has a step before k failed, or must particles be sorted before k? Then step k does nothing. 1 yes, 0 no. Other blocks
// of the same launch may write these words, but only about later states, so the answer is the same for all.
CQ_GPU int is_over(const cq_frame *s, const int32_t k) {
  return load_volatile(&s->progress->bad) < s->first + k || load_volatile(&s->progress->stop) <= s->first + k;
}

// Momentum and mass of node n, counted through all tiles, from the arenas.
CQ_GPU Node node_sum(const cq_frame *s, const int64_t n, const int32_t k) {
  int at[CQ_DIM];
  node_at((int)(n % CQ_TILE_NODES), SIDE, at);
  return arenas_sum(s, k, (int32_t)(n / CQ_TILE_NODES), at);
}

// The grid pass of engine step k: the velocity of every node of all tiles, to grid_v, from its momentum and mass, which
// are summed from the arenas and kept in the record of the step if there is one. AGAIN: momentum and mass are read from
// the record.
template <int AGAIN>
CQ_GPU void grid_pass(const cq_frame *s, const int32_t k) {
  Node *kept = (Node *)s->substeps[k].grid;
  const int64_t count = (int64_t)s->block_count * CQ_TILE_NODES;
  for (int64_t n = (int64_t)blockIdx.x * GRID_THREADS + threadIdx.x; n < count;
       n += (int64_t)gridDim.x * GRID_THREADS) {
    const Node p = AGAIN ? kept[n] : node_sum(s, n, k);
    if (!AGAIN && kept) kept[n] = p;
    ((Node *)s->grid_v)[n] = node_velocity(s, n, k, &p);
  }
}

// The grid pass as a kernel. Forward it only sets progress->over once a step has failed or particles must be sorted;
// AGAIN, before the adjoint of the step, it always runs.
template <int AGAIN>
static __global__ void __launch_bounds__(GRID_THREADS, 2) grid(const cq_frame *__restrict__ s, int32_t k) {
  if (AGAIN || !is_over(s, k))
    grid_pass<AGAIN>(s, k);
  else if (blockIdx.x == 0 && threadIdx.x == 0)
    s->progress->over = 1;
}

// ---- adjoint --------------------------------------------------------------------------------------------------------

// A group of CQ_TILE_NODES threads works on the nodes of a tile, a thread on a node. A block may have several groups,
// which meet at the same barriers: all of them make as many rounds as the group with most contacts. Barriers for each
// group (barrier.sync) would let a group go on alone, but with them NVIDIA's racecheck reported 20 hazards of accesses
// that __syncthreads keeps apart, and without them none. A group without a tile repeats the work of the first group,
// and discards its sums. Returns the number of this thread's group in its block.
CQ_GPU int group_of_thread(void) { return (int)(threadIdx.x / CQ_TILE_NODES); }
// The node of a tile, 0 to CQ_TILE_NODES - 1, that this thread works on.
CQ_GPU int group_node(void) { return (int)(threadIdx.x % CQ_TILE_NODES); }

// The tile of this thread's group, where the block's first group has tile `first`; -1 where there are no more tiles.
template <int GROUPS>
CQ_GPU int32_t group_tile(const cq_frame *s, const int32_t first) {
  const int32_t tile = first + group_of_thread();
  return group_of_thread() < GROUPS && tile < s->block_count ? tile : -1;
}

// Can a wall or a pin hold any node of the tiles that the groups of threads of this block work on, from tile `first`
// on? Not 0: yes; the same for all threads of the block.
template <int GROUPS>
CQ_GPU int groups_may_touch(const cq_frame *s, const int32_t first) {
  int touch = 0;
  for (int32_t tile = first; tile < first + GROUPS && tile < s->block_count; tile++)
    touch |= may_touch(s, &s->tiles[tile]);
  return touch;
}

// The threads of a group share this memory.
typedef struct Shared {
  WallGrad grads[CQ_TILE_NODES];
  double half[2 * CQ_DIM + 2];
  int32_t wall[CQ_TILE_NODES], most;   // most: contacts of a node; all groups share that of the first
} Shared;

typedef struct Group {
  Shared *shared;
  int32_t *most;
  double *sums;              // of the tile; NULL: it is another group's
} Group;

// Reverses contact j of each node of the group: grad, dL/dv of this thread's node after the contact, becomes dL/dv
// before it; v0: the node's velocity before all contacts, and mass. The gradients of walls (friction, velocity, place)
// are added to the tile's sums, each wall by one thread in the order of the nodes. j below 0: no contact of this node.
CQ_GPU void group_contact_adj(const cq_frame *s, const GridNode *w, const int32_t j, const Node *v0, Node *grad,
                              const Group *group) {
  Shared *shared = group->shared;
  double *sums = group->sums;
  const int n = group_node(), walls = s->wall_count;
  const WallGrad *grads = shared->grads;
  shared->wall[n] = reverse_contact(s, w, j, v0, grad, &shared->grads[n]);
  __syncthreads();
  if (sums && n < walls) {
    double *friction = sums + CQ_AT_FRICTION + n, *velocity = sums + CQ_AT_FRICTION + walls + 3 * n,
           *place = velocity + 3 * walls;
    for (int m = 0; m < CQ_TILE_NODES; m++) {
      if (shared->wall[m] != n) continue;
      *friction += (double)grads[m].friction;
      EACH(i) velocity[i] += (double)grads[m].velocity[i];
      if (s->wall_place) EACH(i) place[i] += (double)grads[m].place[i];
    }
  }
  __syncthreads();
}

// Reverses all contacts (walls, pins) of the nodes of a tile in engine step k, the last contact first; a thread for
// each node, and threads of nodes with fewer contacts wait. n: the thread's node, counted through all tiles; v: its
// velocity before the contacts, and mass; grad: dL/dv after them. Returns dL/dv before them, and, where impulses are
// read, dL/d(mass) through the impulses. Adds gradients of walls to group.sums.
CQ_RARE Node node_contacts_adj(const cq_frame *s, const int64_t n, const int32_t k, const Node v, Node grad,
                             const Group group) {
  GridNode w;
  Node after = v;
  find_node(s, n, k, &w);
  const int32_t count = apply_contacts(s, &w, INT32_MAX, after.c);
  if (threadIdx.x == 0) *group.most = 0;
  __syncthreads();
  if (count) atomicMax(group.most, count);
  __syncthreads();
  const int32_t rounds = *group.most;
  for (int32_t r = 0; r < rounds; r++) group_contact_adj(s, &w, count - 1 - r, &v, &grad, &group);
  return grad;   // the barriers of add_gravity lie before the next tile's most = 0
}

// Reverses all contacts of node n in engine step k, as node_contacts_adj does, but for one node alone: without barriers
// and without gradients of walls. For blocks that compute the nodes of their region themselves.
CQ_RARE Node node_contacts_adj_alone(const cq_frame *s, const int64_t n, const int32_t k, const Node v, Node grad) {
  GridNode w;
  Node after = v;
  WallGrad unused;
  find_node(s, n, k, &w);
  for (int32_t j = apply_contacts(s, &w, INT32_MAX, after.c) - 1; j >= 0; j--)
    reverse_contact(s, &w, j, &v, &grad, &unused);
  return grad;
}

// Adds up `sum` over the nodes of a tile in a fixed order. Two warps do it; they leave the sums of their halves in
// shared->half[2 * which] and shared->half[2 * which + 1].
CQ_GPU void half_sums(Shared *shared, const int which, double sum) {
  const int n = group_node();
  for (int d = WARP / 2; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (n % WARP == 0) shared->half[2 * which + n / WARP] = sum;
}

// Adds the gradients of gravity and damping to the tile's sums (NULL: does not): of gravity from grad, dL/d(p / m +
// dt g) of this thread's node; of damping from along = v . dL/dv of the node (E50). All threads of a group call it.
CQ_GPU void add_gravity(const cq_frame *s, Shared *shared, const Node *grad, const double along, double *sums) {
  const int n = group_node(), damping = s->damping_wanted;
  const double dt = s->scales_8.dt;
  EACH(i) half_sums(shared, i, (double)grad->c[i]);
  if (damping) half_sums(shared, CQ_DIM, along);
  __syncthreads();
  if (sums && n < CQ_DIM) sums[n] += dt * (shared->half[2 * n] + shared->half[2 * n + 1]);
  if (sums && n == CQ_DIM && damping)
    sums[CQ_AT_DAMPING] -= dt * (shared->half[2 * CQ_DIM] + shared->half[2 * CQ_DIM + 1]);
  __syncthreads();
}

// Adjoint of damping at a node: multiplies grad, dL/dv, by the factor of damping, which gives dL/d(p / m + dt g).
// Returns v . dL/dv, for the gradient of damping.
CQ_GPU double decay_adj(const cq_frame *s, const int32_t scene, const Node *v, Node *grad) {
  const real loss = loss_of(s, scene);
  double along = 0;
  EACH(i) {
    along += (double)v->c[i] * (double)grad->c[i];
    grad->c[i] += loss * grad->c[i];
  }
  return along;
}

// (E14) Adjoint of v = p / m of a node: returns dL/dp = dL/dv / m and dL/dm = -v . dL/dv / m. p: momentum and mass;
// inverse: 1 / m; grad_v: dL/dv before contacts, and behind its components dL/dm through impulses.
CQ_GPU Node free_velocity_adj(const Node *p, const real inverse, const Node *grad_v) {
  Node q;
  real along = 0;
  EACH(i) {
    q.c[i] = grad_v->c[i] * inverse;
    along += p->c[i] * inverse * q.c[i];
  }
  for (int r = CQ_DIM; r < 4; r++) q.c[r] = r == CQ_DIM ? grad_v->c[CQ_DIM] - along : 0;
  return q;
}

// Adjoint of the grid pass of step k: sums dL/dv of each node from the arenas, and adds the gradients of gravity,
// damping and walls to the sums of each tile. STORE: also writes dL/d(momentum, mass) to grid_q, and, if `more` is set,
// the velocities of step k - 1, computed again from its record, to grid_v.
template <int THREADS, int STORE>
CQ_GPU void grid_adj_pass(const cq_frame *s, const int32_t k, const int32_t more, Shared *of_groups) {
  enum { GROUPS = THREADS / CQ_TILE_NODES };
  Shared *shared = of_groups + group_of_thread();
  const Node *kept = (const Node *)s->substeps[k].grid, *before = more ? (const Node *)s->substeps[k - 1].grid : NULL;
  for (int32_t first = (int32_t)blockIdx.x * GROUPS; first < s->block_count; first += (int32_t)gridDim.x * GROUPS) {
    const int32_t own = group_tile<GROUPS>(s, first), block = own < 0 ? first : own;
    int node = group_node(), at[CQ_DIM];
    CQ_OPAQUE(node);
    node_at(node, SIDE, at);
    const int64_t n = (int64_t)block * CQ_TILE_NODES + node;
    const cq_tile *tile = &s->tiles[block];
    double *sums = own < 0 ? NULL : s->sums + (int64_t)block * s->sum_count;
    const Node p = kept[n];
    Node grad = arenas_sum(s, k, block, at), v = {{0, 0, 0, 0}};
    const real inverse = free_velocity(s, tile->scene, &p, v.c);
    v.c[CQ_DIM] = p.c[CQ_DIM];
    if (groups_may_touch<GROUPS>(s, first))
      grad = node_contacts_adj(s, n, k, v, grad, {shared, &of_groups->most, sums});
    const double along = decay_adj(s, tile->scene, &v, &grad);
    add_gravity(s, shared, &grad, along, sums);
    if (!STORE) continue;
    ((Node *)s->grid_q)[n] = free_velocity_adj(&p, inverse, &grad);
    if (more) ((Node *)s->grid_v)[n] = node_velocity(s, n, k - 1, &before[n]);
  }
}

// Kernel grid_adj: adjoint of the grid pass (momentum to velocity, gravity, contacts) of engine step k. dL/dv of nodes,
// which the particles' adjoint has left in the tiles' arenas, becomes dL/d(momentum, mass) in grid_q; gradients of
// gravity, damping and walls are added to the tiles' sums. more 1: also computes the velocities of step k - 1 again.
static __global__ void __launch_bounds__(CQ_TILE_NODES, 1)
    grid_adj(const cq_frame *__restrict__ s, int32_t k, int32_t more) {
  CQ_SHARED(Shared, shared, 1);
  grid_adj_pass<CQ_TILE_NODES, 1>(s, k, more, shared);
}
