// norm: the norm of each scene's adjoint, and adjoints scaled down to the longest one that is allowed. Portions of a
// scene have a block each, and are added up in order, so that a norm does not depend on the GPU.

#define NODE_NUMBERS 4   // reals of a node, of which the first CQ_DIM are used

// One thread's part of the squared norm of a scene's adjoint: of every so many-th particle of portion `portion` the
// squares of all state fields and internal variables, and of the nodes of reference grids.
CQ_GPU double square_share(const cq_norming *n, const int32_t scene, const int32_t portion) {
  double sum = 0;
  for (int32_t k = portion * SUM_THREADS + (int32_t)threadIdx.x; k < n->particles;
       k += CQ_NORM_PORTIONS * SUM_THREADS) {
    const int32_t slot = scene * n->particles + k;
    const real *adj = slot_in(n->adj, FIELDS, slot);
    for (int f = 0; f < FIELDS; f++) sum += (double)adj[f * CQ_GROUP] * (double)adj[f * CQ_GROUP];
    const real *internal = slot_in(n->internal, n->internals, slot);
    for (int f = 0; f < n->internals; f++) sum += (double)internal[f * CQ_GROUP] * (double)internal[f * CQ_GROUP];
  }
  for (int32_t at = portion * SUM_THREADS + (int32_t)threadIdx.x; at < n->node_count;
       at += CQ_NORM_PORTIONS * SUM_THREADS) {
    if (n->node_scene[at / CQ_TILE_NODES] != scene) continue;
    for (int field = 0; field < 2; field++) {
      const real *node = (const real *)n->nodes + ((int64_t)field * n->node_count + at) * NODE_NUMBERS;
      EACH (i) sum += (double)node[i] * (double)node[i];
    }
  }
  return sum;
}

// Kernel: the sum of squares of each portion of each scene's adjoint, a block for each. A scene has CQ_NORM_PORTIONS.
CQ_KERNEL square_portions(const cq_norming n) {
  CQ_SHARED(double, shared, SUM_THREADS);
  for (int32_t b = (int32_t)blockIdx.x; b < n.batch * CQ_NORM_PORTIONS; b += (int32_t)gridDim.x) {
    const double sum = block_sum(shared, square_share(&n, b / CQ_NORM_PORTIONS, b % CQ_NORM_PORTIONS));
    if (threadIdx.x == 0) n.portions[b] = sum;
  }
}

// Kernel: the norm of each scene's adjoint, the root of the sum of its portions; a thread for each scene.
CQ_KERNEL add_portions(const cq_norming n) {
  SLOTS_EACH(scene, n.batch) {
    double sum = 0;
    for (int32_t k = 0; k < CQ_NORM_PORTIONS; k++) sum += n.portions[scene * CQ_NORM_PORTIONS + k];
    n.norms[scene] = sqrt(sum);
  }
}

// Kernel: scales the adjoint of each scene whose norm is above the largest one allowed (n.most) down to it.
CQ_KERNEL limit_norms(const cq_norming n) {
  SLOTS_EACH(slot, n.batch * n.particles) {
    const double norm = n.norms[slot / n.particles];
    if (!(norm > n.most)) continue;
    const real by = (real)(n.most / norm);
    real *adj = slot_in(n.adj, FIELDS, slot), *internal = slot_in(n.internal, n.internals, slot);
    for (int f = 0; f < FIELDS; f++) adj[f * CQ_GROUP] *= by;
    for (int f = 0; f < n.internals; f++) internal[f * CQ_GROUP] *= by;
  }
  SLOTS_EACH(at, n.node_count) {
    const double norm = n.norms[n.node_scene[at / CQ_TILE_NODES]];
    if (!(norm > n.most)) continue;
    const real by = (real)(n.most / norm);
    for (int field = 0; field < 2; field++)
      EACH (i) ((real *)n.nodes)[((int64_t)field * n.node_count + at) * NODE_NUMBERS + i] *= by;
  }
}
