// region: the nodes of a tile's region in the shared memory of a block. They come from a grid pass, or are computed
// here where there is none. A node of several regions is then computed in each of them, from the same arenas in the
// same order: all get the same bits.

// Returns which of the 3^dim tiles around a tile (CQ_NEIGHBORS_MAX) owns node `node` of its region, and sets `at` to
// the place of the node in that one.
CQ_GPU int owner_of(const int node, int at[CQ_DIM]) {
  int which = 0;
  node_at(node, REGION, at);
  EACH(i) {
    const unsigned from = (unsigned)at[i] + SIDE - 1;   // from the first node of the neighbour below
    which = which * 3 + (int)(from / SIDE);
    at[i] = (int)(from % SIDE);
  }
  return which;
}

// Sets region to the nodes of a tile's region, from grid, {block_count, 64} nodes of the tiles that own them; zeros
// where there is no tile. All threads of a block call it.
template <int THREADS>
CQ_GPU void region_load(Node region[NODES], const void *grid, const cq_frame *s, const int32_t tile) {
  const int32_t *neighbors = s->neighbors + (int64_t)tile * CQ_NEIGHBORS_MAX;
  CQ_GLOBAL(grid);
  CQ_GLOBAL(neighbors);
  enum { EACH_THREAD = (NODES + THREADS - 1) / THREADS };
  Node node[EACH_THREAD];
  int first = (int)threadIdx.x;
  CQ_OPAQUE(first);
  // all loads are issued before the first value is needed
  CQ_UNROLL for (int k = 0; k < EACH_THREAD; k++) {
    int at[CQ_DIM];
    const int which = owner_of(first + k * THREADS, at);
    const int32_t owner = NODES % THREADS == 0 || first + k * THREADS < NODES ? neighbors[which] : -1;
    node[k] = {{0, 0, 0, 0}};
    if (owner >= 0) node[k] = ((const Node *)grid)[(int64_t)owner * CQ_TILE_NODES + index_in(SIDE, at)];
  }
  __syncthreads();
  CQ_UNROLL for (int k = 0; k < EACH_THREAD; k++)
    if (NODES % THREADS == 0 || first + k * THREADS < NODES) region[first + k * THREADS] = node[k];
  __syncthreads();
}

// Sets region to the nodes of a tile's region, each by make(owner, n): n is the node, counted through all tiles, and
// owner its tile; zeros where there is no tile. All threads of a block call it.
template <int THREADS, class Make>
CQ_GPU void region_make(Node region[NODES], const cq_frame *s, const int32_t tile, const Make &make) {
  const int32_t *neighbors = s->neighbors + (int64_t)tile * CQ_NEIGHBORS_MAX;
  CQ_GLOBAL(neighbors);
  __syncthreads();
  CQ_ROLLED for (int n = (int)threadIdx.x; n < NODES; n += THREADS) {
    int at[CQ_DIM];
    const int32_t owner = neighbors[owner_of(n, at)];
    Node node = {{0, 0, 0, 0}};
    if (owner >= 0) node = make(owner, (int64_t)owner * CQ_TILE_NODES + index_in(SIDE, at));
    region[n] = node;
  }
  __syncthreads();
}

// Sets region to the velocities in step k of the nodes of a part's tile, from their momentum and mass: summed from the
// arenas, where the first part of a tile keeps those of the tile's own nodes in the record of the step; or, AGAIN, read
// from that record.
template <int AGAIN, int THREADS>
CQ_GPU void region_velocity(Node region[NODES], const cq_frame *s, const int32_t k, const int32_t part) {
  const int32_t tile = part / s->parts, keeper = part % s->parts == 0 ? tile : -1;
  Node *kept = (Node *)s->substeps[k].grid;
  region_make<THREADS>(region, s, tile, [&](const int32_t owner, const int64_t n) {
    const Node p = AGAIN ? kept[n] : node_sum(s, n, k);
    if (!AGAIN && kept && owner == keeper) kept[n] = p;
    return node_velocity(s, n, k, &p);
  });
}

// Sets region to dL/d(momentum, mass) in step k of the nodes of a part's tile: the adjoint of the grid pass, computed
// for each node; gradients of walls and gravity are not added.
template <int THREADS>
CQ_GPU void region_velocity_adj(Node region[NODES], const cq_frame *s, const int32_t k, const int32_t part) {
  const Node *kept = (const Node *)s->substeps[k].grid;
  region_make<THREADS>(region, s, part / s->parts, [&](const int32_t owner, const int64_t n) {
    const cq_tile *tile = &s->tiles[owner];
    const Node p = kept[n];
    Node grad = node_sum(s, n, k), v = {{0, 0, 0, 0}};
    const real inverse = free_velocity(s, tile->scene, &p, v.c);
    v.c[CQ_DIM] = p.c[CQ_DIM];
    if (may_touch(s, tile)) grad = node_contacts_adj_alone(s, n, k, v, grad);
    decay_adj(s, tile->scene, &v, &grad);
    return free_velocity_adj(&p, inverse, &grad);
  });
}

// Keeps momentum and mass of the nodes of tiles without particles in the record of step k, if there is one.
template <int THREADS>
CQ_GPU void keep_others(const cq_frame *s, const int32_t k) {
  Node *kept = (Node *)s->substeps[k].grid;
  const int64_t first = (int64_t)s->tile_count * CQ_TILE_NODES + (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t count = kept ? (int64_t)s->block_count * CQ_TILE_NODES : 0;
  for (int64_t n = first; n < count; n += (int64_t)gridDim.x * THREADS) kept[n] = node_sum(s, n, k);
}
