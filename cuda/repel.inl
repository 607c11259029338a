// repel: surfaces that are near push each other apart, and rub on each other (physics/collision.inl), the twin of
// engine/cpu/reference/repel.inl. The nodes of surfaces are entered into buckets by their cells, which are as long as
// the reach. Then each looks for those around it and adds up what they give it alone, in the order of their numbers: a
// pair is computed twice, to the same numbers, and nothing depends on which thread came first.

// The distance below which surfaces push each other apart [length].
CQ_GPU double near_reach(const cq_shapes *r) { return CQ_NEAR_REACH * r->dx; }

// The cell of the search grid that the place x lies in; returns 0 where x is not finite or absurdly far away, which the
// step reports by itself.
CQ_GPU int near_cell(const cq_shapes *r, const double *x, int64_t cell[3]) {
  int good = 1;
  cell[2] = 0;
  EACH(i) {
    const double at = x[i] / near_reach(r);
    good &= at > -1e9 && at < 1e9;
    cell[i] = good ? (int64_t)floor(at) : 0;
  }
  return good;
}

// The bucket of a cell of space in the table of surface nodes.
CQ_GPU int64_t near_bucket(const cq_shapes *r, const int32_t scene, const int64_t cell[3]) {
  const uint64_t key = (uint64_t)cell[0] * 73856093u ^ (uint64_t)cell[1] * 19349663u ^ (uint64_t)cell[2] * 83492791u;
  return (int64_t)((key + (uint64_t)scene) * 0x9e3779b97f4a7c15u >> 20) & (r->near_size - 1);
}

// The number of the check of state k, the upper half of a bucket's word: a bucket whose word has another one is empty.
CQ_GPU unsigned near_check(const cq_frame *s, const int32_t k) { return (unsigned)(s->shapes->check + k); }

// The node of surface place `rim`.
CQ_GPU int32_t node_of_rim(const cq_shapes *r, const int32_t rim) {
  return r->rim_node[(int64_t)rim * (1 + 2 * CQ_DIM)];
}

#define RIMS_EACH(k, r) \
  for (int32_t k = (int32_t)(blockIdx.x * SLOT_THREADS + threadIdx.x); k < (r)->rims; \
       k += (int32_t)gridDim.x * SLOT_THREADS)

// Kernel near_enter: enters all surface nodes of bodies, at their places before engine step k, into a hash table by
// cell, for the search of nodes that are near each other.
static __global__ void __launch_bounds__(SLOT_THREADS) near_enter(const cq_frame *s, int32_t k) {
  const cq_shapes *r = s->shapes;
  const unsigned check = near_check(s, k);
  const Node *in = nodes_at(s->substeps[k].in, 0);
  if (is_over(s, k)) return;
  RIMS_EACH(n, r) {
    double *x = r->near_at + (int64_t)n * CQ_DIM;
    const int32_t node = node_of_rim(r, n);
    int64_t cell[3];
    EACH(i) x[i] = (double)nodes_at(r->rest, 0)[node].c[i] + (double)in[node].c[i];
    r->near_next[n] = -1;
    if (!near_cell(r, x, cell)) continue;
    unsigned long long *first = &r->near_first[near_bucket(r, r->rim_scene[n], cell)], was;
    unsigned long long there = load_volatile(first);
    do {
      was = there;
      r->near_next[n] = (unsigned)(was >> 32) == check ? (int32_t)(was & 0xffffffffu) : -1;
      there = atomicCAS(first, was, (unsigned long long)check << 32 | (unsigned)n);
    } while (there != was);
  }
}

// Are surface nodes a and b, numbers of rims, near each other, and may they push each other apart? 1: yes, and c has
// way, reach, push and far; 0: no.
CQ_GPU int near_pair(const cq_shapes *r, const int32_t a, const int32_t b, Collision *c) {
  const cq_rim *first = &r->rim[a], *second = &r->rim[b];
  if (r->rim_scene[a] != r->rim_scene[b] || !touch_apart(first, second)) return 0;
  c->reach = near_reach(r);
  c->push = collision_push(first->push, second->push);
  EACH(i) c->way[i] = r->near_at[(int64_t)a * CQ_DIM + i] - r->near_at[(int64_t)b * CQ_DIM + i];
  return collision_near(c);
}

// The lowest number above `last` of the surface nodes that are near node a and may push it; -1: there is none. Called
// again and again it lists the neighbours in one order, whatever order the table was filled in.
CQ_GPU int32_t near_after(const cq_shapes *r, const unsigned check, const int32_t a, const int32_t last) {
  int32_t found = r->rims;
  int64_t cell[3];
  Collision c;
  if (!near_cell(r, r->near_at + (int64_t)a * CQ_DIM, cell)) return -1;
  for (int n = 0; n < TOUCHED; n++) {
    int64_t beside[3] = {cell[0] + n % 3 - 1, cell[1] + n / 3 % 3 - 1, CQ_DIM == 3 ? cell[2] + n / 9 - 1 : 0};
    const unsigned long long first = r->near_first[near_bucket(r, r->rim_scene[a], beside)];
    if ((unsigned)(first >> 32) != check) continue;
    for (int32_t b = (int32_t)(first & 0xffffffffu); b >= 0; b = r->near_next[b]) {
      int64_t there[3];
      if (b <= last || b >= found || !near_pair(r, a, b, &c)) continue;
      // two cells may share a bucket, whose rims count once
      near_cell(r, r->near_at + (int64_t)b * CQ_DIM, there);
      if (there[0] == beside[0] && there[1] == beside[1] && there[2] == beside[2]) found = b;
    }
  }
  return found == r->rims ? -1 : found;
}

// Calls visit(node, collision) for the node of each rim b near rim a in state k, in the order of the rims.
template <class Visit>
CQ_GPU void each_near(const cq_frame *s, const int32_t k, const int32_t a, const Visit &visit) {
  const cq_shapes *r = s->shapes;
  const unsigned check = near_check(s, k);
  const Node *v = nodes_at(s->substeps[k].in, r->nodes), *mass = nodes_at(r->mass, 0);
  const int32_t node = node_of_rim(r, a);
  for (int32_t b = near_after(r, check, a, -1); b >= 0; b = near_after(r, check, a, b)) {
    const int32_t other = node_of_rim(r, b);
    Collision c = {};
    near_pair(r, a, b, &c);
    c.friction = r->friction;
    if (c.friction > 0) {
      EACH(i) c.speed[i] = (double)v[node].c[i] - (double)v[other].c[i];
      c.slow = COLLISION_SHARES * r->dt * ((double)mass[node].c[1] + (double)mass[other].c[1]);
    }
    visit(other, &c);
  }
}

// Kernel near_push: sets the collision force on each surface node, before engine step k, to the sum of the forces from
// near surface nodes of other bodies, or of distant parts of its own. Nodes that are too near end the run at this step.
static __global__ void __launch_bounds__(SLOT_THREADS) near_push(const cq_frame *s, int32_t k) {
  const cq_shapes *r = s->shapes;
  if (is_over(s, k)) return;
  RIMS_EACH(a, r) {
    double sum[CQ_DIM] = {0};
    int meets = 0;
    each_near(s, k, a, [&](const int32_t, const Collision *c) {
      double force[CQ_DIM];
      meets |= !(c->far > CQ_NEAR_LEAST * r->dx);
      collision_force(c, force);
      EACH(i) sum[i] += force[i];
    });
    Node push = {{0, 0, 0, 0}};
    EACH(i) push.c[i] = (real)sum[i];
    ((Node *)r->push)[node_of_rim(r, a)] = push;
    if (!meets) continue;
    atomicMin(&s->progress->touches, s->first + k);
    atomicMin(&s->progress->bad, s->first + k);
  }
}

// Kernel near_push_adj: adjoint of near_push for engine step k, after node_move_adj: from gradients of forces on nodes
// to gradients of their places, velocities and masses, which are added to.
static __global__ void __launch_bounds__(SLOT_THREADS) near_push_adj(const cq_frame *s, int32_t k) {
  const cq_shapes *r = s->shapes;
  const Node *want = nodes_at(r->force_adj, 0);
  RIMS_EACH(a, r) {
    const int32_t node = node_of_rim(r, a);
    CollisionGrad sum = {};
    each_near(s, k, a, [&](const int32_t other, const Collision *c) {
      double given[CQ_DIM];
      CollisionGrad grad = {};
      EACH(i) given[i] = (double)want[node].c[i] - (double)want[other].c[i];
      collision_force_adj(c, given, &grad);
      EACH(i) sum.way[i] += grad.way[i];
      EACH(i) sum.speed[i] += grad.speed[i];
      sum.slow += grad.slow;
    });
    Node *adj = (Node *)r->adj;
    EACH(i) adj[node].c[i] += (real)sum.way[i];
    if (r->places) EACH(i) ((Node *)r->rest_adj)[node].c[i] += (real)sum.way[i];
    if (!(r->friction > 0)) continue;
    const double inverse = (double)nodes_at(r->mass, 0)[node].c[1];
    EACH(i) adj[r->nodes + node].c[i] += (real)sum.speed[i];
    ((real *)r->mass_adj)[node] -= (real)(COLLISION_SHARES * r->dt * sum.slow * inverse * inverse);
  }
}
