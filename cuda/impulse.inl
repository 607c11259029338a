// impulse: impulses that walls and pins give to the nodes of a tile in an engine step, for rollouts that read contacts.
// It is a pass beside the grid pass and reads the same arenas. physics/contact.inl has the numbers of a contact.

// Shared by a group of threads, one for each node of a tile: the numbers of one contact of each node.
typedef struct Impulses {
  real value[CQ_TILE_NODES][CONTACT_WIDTH];
  // wall: pins after the walls; -1: this node has no such contact. most: as in Shared
  int32_t wall[CQ_TILE_NODES], most;
} Impulses;

// as Group
typedef struct ImpulseGroup {
  Impulses *shared;
  int32_t *most;
  double *sums;
} ImpulseGroup;

// Sets value to the numbers of the impulse of contact j of a node; v, its velocity before the contact, becomes that
// after it. Returns the place of its wall, or group of pins, among those of the impulses, as in Impulses.wall; -1:
// there is no such contact, and nothing is set.
CQ_GPU int32_t contact_impulse_of(const cq_frame *s, const GridNode *w, const int32_t j, const real mass,
                                  real v[CQ_DIM], real value[CONTACT_WIDTH]) {
  Contact c;
  Touch t;
  if (!contact_of(s, w, j, &c)) return -1;
  touch_of(s, w, &c, mass, v, &t);
  contact_impulse(&t, value);
  return impulse_at(s, c.wall) / CONTACT_WIDTH;
}

// Adds the impulses that walls and pins give to the nodes of a tile in engine step k to group.sums, if that is not
// NULL, in a fixed order: contact after contact, for each in the order of the nodes. A thread for each node: n is its
// node, counted through all tiles, and p the node's momentum and mass. Called if the rollout reads impulses.
CQ_RARE void tile_impulse(const cq_frame *s, const int64_t n, const int32_t k, const Node p,
                          const ImpulseGroup group) {
  Impulses *shared = group.shared;
  double *sums = group.sums;
  const int node = group_node();
  GridNode w;
  Node v = {{0, 0, 0, 0}};
  find_node(s, n, k, &w);
  free_velocity(s, w.scene, &p, v.c);
  Node after = v;
  const int32_t count = apply_contacts(s, &w, INT32_MAX, after.c);
  if (threadIdx.x == 0) *group.most = 0;
  __syncthreads();
  if (count) atomicMax(group.most, count);
  __syncthreads();
  const int32_t rounds = *group.most;
  for (int32_t j = 0; j < rounds; j++) {
    shared->wall[node] = contact_impulse_of(s, &w, j, p.c[CQ_DIM], v.c, shared->value[node]);
    __syncthreads();
    for (int at = node; sums && at < s->impulse_count; at += CQ_TILE_NODES) {
      const int wall = at / CONTACT_WIDTH, i = at % CONTACT_WIDTH;
      double sum = 0;
      for (int m = 0; m < CQ_TILE_NODES; m++)
        if (shared->wall[m] == wall) sum += (double)shared->value[m][i];
      sums[at] += sum;
    }
    __syncthreads();
  }
  __syncthreads();   // before the next tile's most = 0
}

// Adds the impulses of walls and pins in step k to the sums of every tile that owns nodes; a group of CQ_TILE_NODES of
// the block's THREADS threads works on each.
template <int THREADS>
CQ_GPU void impulse_pass(const cq_frame *s, const int32_t k, Impulses *of_groups) {
  enum { GROUPS = THREADS / CQ_TILE_NODES };
  Impulses *shared = of_groups + group_of_thread();
  for (int32_t first = (int32_t)blockIdx.x * GROUPS; first < s->block_count; first += (int32_t)gridDim.x * GROUPS) {
    if (!groups_may_touch<GROUPS>(s, first)) continue;
    const int32_t own = group_tile<GROUPS>(s, first), block = own < 0 ? first : own;
    const int64_t n = (int64_t)block * CQ_TILE_NODES + group_node();
    double *sums = own < 0 ? NULL : s->impulse + (int64_t)block * s->impulse_count;
    tile_impulse(s, n, k, node_sum(s, n, k), {shared, &of_groups->most, sums});
  }
}

// Kernel: adds the impulses of walls and pins in engine step k to the sums of each tile, a block for each tile
// (impulse_pass). Does nothing if an earlier step failed or particles must be sorted.
static __global__ void __launch_bounds__(CQ_TILE_NODES, 1) impulse(const cq_frame *__restrict__ s, int32_t k) {
  CQ_SHARED(Impulses, shared, 1);
  if (!s->progress->over) impulse_pass<CQ_TILE_NODES>(s, k, shared);
}
