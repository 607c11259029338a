// grid: from the arenas to the velocity of each node, with gravity and walls; and its adjoint. A thread for each node.

CQ_GPU const real *globals_of(const cq_frame *s, const int32_t scene) {
  return (const real *)s->globals + (int64_t)scene * s->global_stride;
}
CQ_GPU real friction_of(const cq_frame *s, const int32_t scene, const int32_t wall) { return globals_of(s, scene)[3 + wall]; }
CQ_GPU const real *wall_velocity_of(const cq_frame *s, const int32_t scene, const int32_t wall) {
  return globals_of(s, scene) + 3 + s->wall_count + 3 * wall;
}

// Sum of the arenas that hold a node: its own tile's, and along each axis that of one neighbour at most; always in the same order.
CQ_GPU Node arenas_sum(const cq_frame *s, const int32_t block, const int at[CQ_DIM]) {
  const int32_t *neighbors = s->neighbors + (int64_t)block * CQ_NEIGHBORS_MAX;
  Node sum = {{0, 0, 0, 0}};
  int beside[CQ_DIM];
  EACH(i) beside[i] = at[i] <= REGION - SIDE - 2 ? -1 : at[i] == SIDE - 1 ? 1 : 0;
  CQ_UNROLL for (int mask = 0; mask < 1 << CQ_DIM; mask++) {
    int which = 0, node = 0, holds = 1;
    EACH(i) {
      const int b = mask >> i & 1 ? beside[i] : 0;
      if ((mask >> i & 1) && !b) holds = 0;
      which = which * 3 + b + 1;
      node = node * REGION + at[i] - b * SIDE + 1;
    }
    const int32_t t = neighbors[which];
    if (!holds || t < 0 || t >= s->tile_count) continue;
    const Node part = ((const Node *)s->arena)[(int64_t)t * NODES + node];
    for (int r = 0; r < 4; r++) sum.c[r] += part.c[r];
  }
  return sum;
}

// ---- walls --------------------------------------------------------------------------------------------------------------

// a node, and its entries in the wall map
typedef struct Where {
  int32_t at[3], scene;      // first axes and last, as the wall map counts: y is 0 in 2D
  double time;
  const cq_wall_node *entry;
  int32_t count;             // entries, of which a pin alone counts
  int32_t pinned;
} Where;

CQ_GPU void find_node(const cq_frame *s, const int32_t block, const int at[CQ_DIM], const int32_t k, Where *w) {
  const cq_tile *tile = &s->tiles[block];
  w->at[0] = tile->lower[0] + at[0];
  w->at[1] = CQ_DIM == 3 ? tile->lower[1] + at[1] : 0;
  w->at[2] = tile->lower[LAST] + at[LAST];
  w->scene = tile->scene;
  w->time = (double)(s->step + k) * s->dt;
  w->entry = NULL;
  w->count = w->pinned = 0;
  const int32_t x = w->at[0] - s->map.lower[0], y = w->at[1] - s->map.lower[1];
  if (x < 0 || x >= s->map.size[0] || y < 0 || y >= s->map.size[1]) return;
  const int64_t column = (int64_t)x * s->map.size[1] + y;
  int64_t low = s->map.start[column], high = s->map.start[column + 1];
  const int64_t end = high;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (s->map.node[middle].z < w->at[2])
      low = middle + 1;
    else
      high = middle;
  }
  w->entry = s->map.node + low;
  while (low + w->count < end && w->entry[w->count].z == w->at[2]) w->count++;
  // a pin comes last, and no wall has a say beside it
  if (!w->count || w->entry[w->count - 1].wall >= 0) return;
  w->entry += w->count - 1;
  w->count = w->pinned = 1;
}

typedef struct Contact {
  int32_t wall;              // -1: a pin
  real normal[CQ_DIM];
} Contact;

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
    const real *velocity = wall_velocity_of(s, w->scene, m);
    double x[3] = {w->at[0] * s->dx, w->at[1] * s->dx, 0}, normals[3][3];
    x[LAST] = w->at[2] * s->dx;
    EACH(i) x[i] -= w->time * (double)velocity[i];
    const int32_t count = wall_normals(&s->walls[m], CQ_DIM, 1e-6 * s->dx, x, normals);
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

// (E14) v = p / m + dt g; a node without mass falls too, and nobody asks it
CQ_GPU real free_velocity(const cq_frame *s, const int32_t scene, const Node *p, real v[CQ_DIM]) {
  const real inverse = p->c[CQ_DIM] > 0 ? (real)1 / p->c[CQ_DIM] : (real)0;
  const real *gravity = globals_of(s, scene);
  EACH(i) v[i] = p->c[i] * inverse + (real)s->dt * gravity[i];
  return inverse;
}

CQ_GPU Node node_velocity(const cq_frame *s, const int32_t block, const int at[CQ_DIM], const int32_t k, const Node *p) {
  Where w;
  Node out = {{0, 0, 0, 0}};
  real v[CQ_DIM];
  find_node(s, block, at, k, &w);
  free_velocity(s, w.scene, p, v);
  meet_walls(s, &w, INT32_MAX, v);
  EACH(i) out.c[i] = v[i];
  return out;
}

// ---- kernels ------------------------------------------------------------------------------------------------------------

enum { GRID_THREADS = 256 };

// AGAIN: from the record of the step, not from the arenas
template <int AGAIN>
static __global__ void __launch_bounds__(GRID_THREADS) grid(const cq_frame *__restrict__ s, int32_t k) {
  if (!AGAIN && is_over(s, k)) return;
  Node *kept = (Node *)s->substeps[k].grid;
  const int64_t count = (int64_t)s->block_count * CQ_TILE_NODES;
  for (int64_t n = (int64_t)blockIdx.x * GRID_THREADS + threadIdx.x; n < count; n += (int64_t)gridDim.x * GRID_THREADS) {
    const int32_t block = (int32_t)(n / CQ_TILE_NODES);
    int at[CQ_DIM];
    node_at((int)(n % CQ_TILE_NODES), SIDE, at);
    const Node p = AGAIN ? kept[n] : arenas_sum(s, block, at);
    if (!AGAIN && kept) kept[n] = p;
    ((Node *)s->grid_v)[n] = node_velocity(s, block, at, k, &p);
  }
}

// One contact of each node backward, j-th of node n of the block: its wall's gradients of all nodes are added in the order of the
// nodes. v0: velocity before all walls.
CQ_GPU void meet_adj(const cq_frame *s, const Where *w, const int32_t j, const real v0[CQ_DIM], real grad_v[CQ_DIM],
                        int32_t wall[CQ_TILE_NODES], Node grads[CQ_TILE_NODES], double *sums) {
  const int n = (int)threadIdx.x;
  real v[CQ_DIM], grad_friction = 0, grad_w[CQ_DIM] = {0};
  const real still[3] = {0, 0, 0};
  wall[n] = -1;
  Contact c;
  if (j >= 0 && contact_of(s, w, j, &c)) {
    EACH(i) v[i] = v0[i];
    meet_walls(s, w, j, v);
    if (c.wall < 0) {
      contact_adj(CQ_CONTACT_STICKY, 0, c.normal, still, v, grad_v, &grad_friction, grad_w);
    } else {
      wall[n] = c.wall;
      contact_adj(s->walls[c.wall].kind, friction_of(s, w->scene, c.wall), c.normal, wall_velocity_of(s, w->scene, c.wall), v,
                  grad_v, &grad_friction, grad_w);
    }
  }
  EACH(i) grads[n].c[i] = grad_w[i];
  grads[n].c[CQ_DIM] = grad_friction;
  __syncthreads();
  if (n < s->wall_count)
    for (int m = 0; m < CQ_TILE_NODES; m++) {
      if (wall[m] != n) continue;
      sums[3 + n] += (double)grads[m].c[CQ_DIM];
      EACH(i) sums[3 + s->wall_count + 3 * n + i] += (double)grads[m].c[i];
    }
  __syncthreads();
}

// sum over the nodes of a block, in a fixed order, times scale
CQ_GPU void add_gravity(Node grads[CQ_TILE_NODES], const real grad_v[CQ_DIM], const double scale, double *sums) {
  EACH(i) grads[threadIdx.x].c[i] = grad_v[i];
  __syncthreads();
  if (threadIdx.x < CQ_DIM) {
    double sum = 0;
    for (int m = 0; m < CQ_TILE_NODES; m++) sum += (double)grads[m].c[threadIdx.x];
    sums[threadIdx.x] += scale * sum;
  }
  __syncthreads();
}

// The arenas hold dL/dv; grid_q = dL/d(momentum, mass). MORE: the velocities of the step before, from its record.
//   (E14) dL/dp = dL/dv / m, dL/dm = -(p / m) . dL/dv / m
static __global__ void __launch_bounds__(CQ_TILE_NODES) grid_adj(const cq_frame *__restrict__ s, int32_t k, int32_t more) {
  CQ_SHARED(int32_t, wall, CQ_TILE_NODES);
  CQ_SHARED(Node, grads, CQ_TILE_NODES);
  CQ_SHARED(int32_t, most, 1);
  const Node *kept = (const Node *)s->substeps[k].grid, *before = more ? (const Node *)s->substeps[k - 1].grid : NULL;
  int at[CQ_DIM];
  node_at((int)threadIdx.x, SIDE, at);
  for (int32_t block = (int32_t)blockIdx.x; block < s->block_count; block += (int32_t)gridDim.x) {
    const int64_t n = (int64_t)block * CQ_TILE_NODES + threadIdx.x;
    double *sums = s->sums + (int64_t)block * (3 + 4 * s->wall_count);
    const Node p = kept[n], grad = arenas_sum(s, block, at);
    Where w;
    real v[CQ_DIM], g[CQ_DIM];
    find_node(s, block, at, k, &w);
    const real inverse = free_velocity(s, w.scene, &p, v);
    EACH(i) g[i] = grad.c[i];
    // walls, the last first; nodes with fewer of them wait
    real after[CQ_DIM];
    EACH(i) after[i] = v[i];
    const int32_t count = meet_walls(s, &w, INT32_MAX, after);
    if (threadIdx.x == 0) most[0] = 0;
    __syncthreads();
    if (count) atomicMax(&most[0], count);
    __syncthreads();
    const int32_t rounds = most[0];
    for (int32_t r = 0; r < rounds; r++) meet_adj(s, &w, count - 1 - r, v, g, wall, grads, sums);
    add_gravity(grads, g, s->dt, sums);
    Node q = {{0, 0, 0, 0}};
    real along = 0;
    EACH(i) {
      q.c[i] = g[i] * inverse;
      along += p.c[i] * inverse * q.c[i];
    }
    q.c[CQ_DIM] = -along;
    ((Node *)s->grid_q)[n] = q;
    if (more) ((Node *)s->grid_v)[n] = node_velocity(s, block, at, k - 1, &before[n]);
  }
}
