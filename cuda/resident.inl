// resident: a run of substeps by one kernel, for scenes so small that the gaps between launches cost more than what is launched. Its
// blocks stay on the GPU and go from pass to pass together, each over its own share of the tiles; the passes are those of the
// launches, and so are the bits but for products and sums that nvcc joins here and not there. What a pass reads others wrote during
// the same kernel: only through the cache that the barrier renews, so no pointer here is __restrict__; tests/cuda/coherent.sh looks.

// All blocks have done the pass before. gang: how they are on the GPU together
CQ_GPU void sync_gang(const cq_frame *s, const cq_gang gang) {
  if (gang.cluster)
    cq_sync_cluster();
  else
    cq_sync_grid(s->arrived);
}

// The frame into shared memory: behind every barrier each block would have to fetch it again. All threads of a block call it.
CQ_GPU void keep_frame(cq_frame *s, const cq_frame *given) {
  static_assert(sizeof *s % sizeof(int32_t) == 0, "copied by words");
  int32_t *to = (int32_t *)s;
  const int32_t *from = (const int32_t *)given;
  for (uint32_t k = threadIdx.x; k < sizeof *s / sizeof *to; k += blockDim.x) to[k] = from[k];
  __syncthreads();
}

static __global__ void __launch_bounds__(MARCH_THREADS, 2) resident(const cq_frame *given, int32_t count, cq_gang gang) {
  CQ_SHARED(cq_frame, s, 1);
  CQ_SHARED(Node, region, NODES);
  CQ_ROUND(round, MARCH_THREADS, 1);
  keep_frame(s, given);
  if (s->progress->over) return;
  clear_round(&round);
  march_pass<0, 1>(s, 0, region, &round);
  for (int32_t k = 0;; k++) {
    sync_gang(s, gang);
    // the same for all blocks: nobody finds anything before the next barrier
    if (is_over(s, k)) {
      if (blockIdx.x == 0 && threadIdx.x == 0) s->progress->over = 1;
      return;
    }
    grid_pass<0, MARCH_THREADS>(s, k);
    sync_gang(s, gang);
    if (k == count - 1) break;
    march_pass<1, 1>(s, k, region, &round);
  }
  march_pass<1, 0>(s, count - 1, region, &round);
}

static __global__ void __launch_bounds__(ADJ_THREADS, 2) resident_adj(const cq_frame *given, int32_t count, cq_gang gang) {
  CQ_SHARED(cq_frame, s, 1);
  CQ_SHARED(Node, region, NODES);
  CQ_ROUND(round, ADJ_THREADS, 1);
  Shared *shared = (Shared *)round.give;   // nobody scatters during the grid pass
  static_assert(ADJ_THREADS / CQ_TILE_NODES * sizeof(Shared) <= (1 + CQ_DIM) * Round<ADJ_THREADS>::ROW * sizeof(Node), "no room");
  keep_frame(s, given);
  clear_round(&round);
  grid_pass<1, ADJ_THREADS>(s, count - 1);
  sync_gang(s, gang);
  march_adj_pass<0, 1>(s, count - 1, region, &round);
  for (int32_t k = count - 1;; k--) {
    sync_gang(s, gang);
    grid_adj_pass<ADJ_THREADS>(s, k, k > 0, shared);
    sync_gang(s, gang);
    if (k == 0) break;
    march_adj_pass<1, 1>(s, k, region, &round);
  }
  march_adj_pass<1, 0>(s, 0, region, &round);
}
