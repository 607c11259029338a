// resident: one kernel computes all engine steps of a run. It is for small scenes, where the gaps between launches take
// longer than the kernels. Its blocks stay on the GPU, and each has its share of the tiles. All blocks meet at one
// barrier in an engine step. There is no grid pass: each block computes the nodes that it needs. There are two sets of
// arenas in turn, so that the arenas of an engine step can be read while those of the next are written.
//
// The kernel calls the same pass functions as the launched kernels. Results may differ in the last bit: nvcc may
// contract a*b+c into an FMA in one kernel and not in the other. A pass reads what other blocks wrote during this
// kernel, through the cache that the barrier renews. So no pointer here is __restrict__, which tests/cuda/coherent.sh
// checks.

// Shared memory of a block. The frame is in it too, or each block would load the frame again after every barrier.
template <int THREADS>
struct Own {
  Node region[NODES];
  Node give[(1 + CQ_DIM) * Round<THREADS>::ROW], sums[COPIES * COPY];
  cq_frame frame;
  int32_t start[CELLS + 2], list[THREADS];
  uint8_t filled[CELLS];
};

// The work memory of a round of particles within a block's shared memory.
template <int THREADS>
CQ_GPU Round<THREADS> round_of(Own<THREADS> *own) {
  return {own->give, own->sums, own->start, own->list, own->filled};
}

// Copies the frame of a run to the block's shared memory, so that it is not loaded again after every barrier, and
// clears the block's work memory for scattering. All threads of the block call it.
template <int THREADS>
CQ_GPU void own_begin(Own<THREADS> *own, const cq_frame *given) {
  static_assert(sizeof *given % sizeof(int32_t) == 0, "copied by words");
  int32_t *to = (int32_t *)&own->frame;
  const int32_t *from = (const int32_t *)given;
  const Round<THREADS> round = round_of(own);
  for (uint32_t k = threadIdx.x; k < sizeof *given / sizeof *to; k += THREADS) to[k] = from[k];
  clear_round(&round);
}

// ---- forward: passes are called and not inlined, so that each has all registers -------------------------------------

// The particle pass of engine step k (GATHER: G2P, SCATTER: P2G of the state after) within the kernel resident. Not
// inlined, so that its registers do not count for the kernel. own: the block's shared memory.
template <int GATHER, int SCATTER>
CQ_RARE void call_transfer(Own<TRANSFER_THREADS> *own, const int32_t k) {
  CQ_BLOCKS_OWN(own);
  const Round<TRANSFER_THREADS> round = round_of(own);
  transfer_pass<GATHER, SCATTER, 1>(&own->frame, k, own->region, &round);
}

// Adds the impulses of walls and pins in engine step k to the tiles' sums (impulse_pass), within the kernel resident.
// A function that is not inlined, so that its registers do not count for the kernel. own: the block's shared memory.
CQ_RARE void call_impulse(Own<TRANSFER_THREADS> *own, const int32_t k) {
  CQ_BLOCKS_OWN(own);
  Impulses *shared = (Impulses *)own->give;   // nobody scatters in the meantime
  enum { GROUPS = (TRANSFER_THREADS + CQ_TILE_NODES - 1) / CQ_TILE_NODES };   // the last may have few threads, no tile
  static_assert(GROUPS * sizeof(Impulses) <= sizeof own->give, "no room");
  impulse_pass<TRANSFER_THREADS>(&own->frame, k, shared);
}

// Computes `count` engine steps in one cooperative kernel, with a barrier of all blocks between one step's scatter and
// gather; ends early if a step fails or particles must be sorted. given: the arguments of the run, in global memory.
static __global__ void __launch_bounds__(TRANSFER_THREADS, 2) resident(const cq_frame *given, int32_t count) {
  CQ_SHARED(Own<TRANSFER_THREADS>, own, 1);
  own_begin(own, given);
  const cq_frame *s = &own->frame;
  if (s->progress->over) return;
  call_transfer<0, 1>(own, 0);
  for (int32_t k = 0;; k++) {
    cq_sync_grid(s->arrived);   // all blocks have done the step before
    if (is_over(s, k)) {
      if (blockIdx.x == 0 && threadIdx.x == 0) s->progress->over = 1;
      return;
    }
    keep_others<TRANSFER_THREADS>(s, k);
    if (s->impulse) call_impulse(own, k);
    if (k == count - 1) break;
    call_transfer<1, 1>(own, k);
  }
  call_transfer<1, 0>(own, count - 1);
}

// ---- backward -------------------------------------------------------------------------------------------------------

#if CQ_DIM == 2   // in 3D launches are faster (run.cu)
// The adjoint of the particle pass of engine step k within the kernel resident_adj (P2G, G2P: as in transfer_adj_pass).
// Not inlined, as call_transfer.
template <int P2G, int G2P>
CQ_RARE void call_transfer_adj(Own<ADJ_THREADS> *own, const int32_t k) {
  CQ_BLOCKS_OWN(own);
  const Round<ADJ_THREADS> round = round_of(own);
  transfer_adj_pass<P2G, G2P, 1>(&own->frame, k, own->region, &round);
}

// Adds the gradients of walls, gravity and damping in engine step k to the tiles' sums (grid_adj_pass), within the
// kernel resident_adj. Not inlined, so that its registers do not count for the kernel. own: the block's shared memory.
CQ_RARE void call_sums(Own<ADJ_THREADS> *own, const int32_t k) {
  CQ_BLOCKS_OWN(own);
  Shared *shared = (Shared *)own->give;   // nobody scatters in the meantime
  enum { GROUPS = ADJ_THREADS / CQ_TILE_NODES };
  static_assert(ADJ_THREADS % CQ_TILE_NODES == 0 && GROUPS * sizeof(Shared) <= sizeof own->give, "no room");
  grid_adj_pass<ADJ_THREADS, 0>(&own->frame, k, 0, shared);
}

// Reverses `count` engine steps in one cooperative kernel, the last one first, with a barrier of all blocks between
// particle passes. given: the arguments of the run, in global memory.
static __global__ void __launch_bounds__(ADJ_THREADS, 2) resident_adj(const cq_frame *given, int32_t count) {
  CQ_SHARED(Own<ADJ_THREADS>, own, 1);
  own_begin(own, given);
  const cq_frame *s = &own->frame;
  call_transfer_adj<0, 1>(own, count - 1);
  for (int32_t k = count - 1;; k--) {
    cq_sync_grid(s->arrived);   // all blocks have done the step before
    if (s->sums_wanted) call_sums(own, k);
    if (k == 0) break;
    call_transfer_adj<1, 1>(own, k);
  }
  call_transfer_adj<1, 0>(own, 0);
}
#endif
