// touch: do surfaces of bodies meet that total Lagrangian steps would let pass through each other
// (engine/world/touch.inl)? Places on the surfaces are entered into a hash table of the cells of the world, of which
// each keeps one place; then all places are compared with the one that their cell keeps.

// what touch_enter finds of a state
enum { SURFACES_AT_EDGE = 1, SURFACES_TOO_MANY = 2 };

// way: after which surfaces are looked at within a run [cells], as on the CPU
#define CHECKED_WAY 0.25

// Are surfaces looked at for contact after substep k? Not 0: yes, after the last of a run, and whenever something may
// have moved CHECKED_WAY cells since the last look. All threads of a block call it; shared: a word that they share.
CQ_GPU int is_checked(const cq_frame *s, const int32_t k, int32_t *shared) {
  if (k < 0 || k == s->count - 1) return 1;
  if (threadIdx.x == 0) {
    double way = 0;
    int checked = 0;
    for (int32_t j = 0; j <= k; j++) {
      if (checked) way = 0;
      way += sqrt((double)__uint_as_float(s->shapes->fastest[j])) * s->scales_8.dt * s->scales_8.inv_dx;
      checked = way >= CHECKED_WAY;
    }
    *shared = checked;
  }
  __syncthreads();
  return *shared;
}

// Where a surface node is in a state.
CQ_GPU void rim_node(const cq_shapes *r, const Node *state, const int32_t node, double x[3]) {
  EACH(i) x[i] = (double)(nodes_at(r->rest, 0)[node].c[i] + state[node].c[i]);
}

// The places that represent a surface node in a state, spread over its edges.
CQ_GPU void rim_places(const cq_shapes *r, const Node *state, const int32_t rim, cq_rim_places *places) {
  const int32_t *node = r->rim_node + (int64_t)rim * (1 + 2 * CQ_DIM);
  double at[3], before[3][3], after[3][3];
  rim_node(r, state, node[0], at);
  EACH(i) {
    rim_node(r, state, node[1 + 2 * i], before[i]);
    rim_node(r, state, node[2 + 2 * i], after[i]);
  }
  touch_place(CQ_DIM, r->dx, at, before, after, places);
}

// The key of a cell of a scene in the hash table of surface places.
CQ_GPU unsigned long long touch_key(const cq_shapes *r, const int32_t scene, const int64_t cell) {
  int64_t cells = 1;
  EACH(i) cells *= r->cells[i];
  return (unsigned long long)(scene * cells + cell);
}

// The place of a cell's entry in the hash table, by its key. enter not 0: the cell is entered if it is not there. -1:
// it is not there, or the table is full. The lower 20 bits of an entry are those of the number of the check that it
// belongs to.
CQ_GPU int64_t touch_slot(const cq_shapes *r, const unsigned long long key, const unsigned check, const int enter) {
  const unsigned long long mine = key << 20 | (check & 0xfffff);
  int64_t at = (int64_t)(key * 0x9e3779b97f4a7c15u >> 20) & (r->touch_size - 1);
  for (int64_t k = 0; k < r->touch_size; k++, at = (at + 1) & (r->touch_size - 1)) {
    unsigned long long there = load_volatile(&r->touch_cell[at]);
    while (enter && there != mine && (unsigned)(there & 0xfffff) != (check & 0xfffff)) {
      const unsigned long long was = atomicCAS(&r->touch_cell[at], there, mine);
      if (was == there) return at;
      there = was;
    }
    if (there == mine) return at;
    if (!enter && (unsigned)(there & 0xfffff) != (check & 0xfffff)) return -1;
  }
  return -1;
}

// What is written into touch_rim for a surface node. The upper half is the complement of the check's number, so that a
// newer check wins the atomicMin over an older one, and the table need not be cleared.
CQ_GPU unsigned long long touch_entry(const unsigned check, const int32_t rim) {
  return (unsigned long long)(~check) << 32 | (unsigned)rim;
}

// Calls visit(rim, cell) for each place in a state of the rims that this thread has; cell: that of the world that the
// place is in, negative: it is outside.
template <class Visit>
CQ_GPU void each_place(const cq_frame *s, const Node *state, const Visit &visit) {
  const cq_shapes *r = s->shapes;
  for (int32_t k = (int32_t)(blockIdx.x * SLOT_THREADS + threadIdx.x); k < r->rims;
       k += (int32_t)gridDim.x * SLOT_THREADS) {
    cq_rim_places places;
    rim_places(r, state, k, &places);
    for (int32_t n = 0; n < places.all; n++)
      visit(k, touch_cell(CQ_DIM, r->dx, r->cells, &places, n));
  }
}

// The nodes after engine step k of the run; before the first step if k is -1.
CQ_GPU const Node *state_after(const cq_frame *s, const int32_t k) {
  return nodes_at(k < 0 ? s->substeps[0].in : s->substeps[k].out, 0);
}

// Kernel touch_enter: enters the places on surfaces of bodies, in the state after step k, into a hash table of the
// cells of the world; each cell keeps the surface node with the lowest number. Nothing if k failed or is not checked.
static __global__ void __launch_bounds__(SLOT_THREADS) touch_enter(const cq_frame *s, int32_t k) {
  const cq_shapes *r = s->shapes;
  const unsigned check = (unsigned)(s->shapes->check + k);
  CQ_SHARED(int32_t, shared, 1);
  const int failed = load_volatile(&s->progress->bad) <= s->first + k;
  if (failed || is_over(s, k < 0 ? 0 : k) || !is_checked(s, k, shared)) return;
  each_place(s, state_after(s, k), [&](const int32_t rim, const int64_t cell) {
    if (cell < 0) {
      atomicMax(&s->shapes->edge[k + 1], SURFACES_AT_EDGE);
      return;
    }
    const int64_t at = touch_slot(r, touch_key(r, r->rim_scene[rim], cell), check, 1);
    if (at >= 0)
      atomicMin(&r->touch_rim[at], touch_entry(check, rim));
    else
      atomicMax(&s->shapes->edge[k + 1], SURFACES_TOO_MANY);
  });
}

// Do two surface nodes, a and b, with places in the same cell of the world touch? Not 0: yes. Neighbours in a body do
// not. In worlds with collisions, which push near surfaces apart, only surfaces stretched over more than a cell do.
CQ_RARE int do_touch(const cq_shapes *r, const Node *state, const int32_t a, const int32_t b) {
  if (!touch_apart(&r->rim[a], &r->rim[b])) return 0;
  if (!r->push) return 1;
  cq_rim_places first, second;
  rim_places(r, state, a, &first);
  rim_places(r, state, b, &second);
  return first.all > 1 || second.all > 1;
}

// Notes that touch_meet rejects the state after step k, which ends the run and makes step k the failed one.
CQ_GPU void fail_state(const cq_frame *s, const int32_t k) {
  atomicMin(&s->progress->touches, s->first + k + 1);
  atomicMin(&s->progress->bad, s->first + (k < 0 ? 0 : k));
}

// Kernel touch_meet, after touch_enter: compares each place on a surface with the surface node that its cell keeps, and
// ends the run after step k if two touch, if there are more places than the table holds, or if a particle has left the
// world; the host finds out which. It does nothing if k is not checked (is_checked).
static __global__ void __launch_bounds__(SLOT_THREADS) touch_meet(const cq_frame *s, int32_t k) {
  const cq_shapes *r = s->shapes;
  const unsigned check = (unsigned)(s->shapes->check + k);
  const Node *state = state_after(s, k);
  CQ_SHARED(int32_t, shared, 1);
  if (is_over(s, k < 0 ? 0 : k) || !is_checked(s, k, shared)) return;
  each_place(s, state, [&](const int32_t rim, const int64_t cell) {
    const int64_t at = cell < 0 ? -1 : touch_slot(r, touch_key(r, r->rim_scene[rim], cell), check, 0);
    if (at < 0) return;
    const unsigned long long entry = load_volatile(&r->touch_rim[at]);
    const int32_t other = (int32_t)(entry & 0xffffffffu);
    if ((unsigned)(entry >> 32) != ~check || !do_touch(r, state, rim, other)) return;
    fail_state(s, k);
  });
  const int32_t edge = load_volatile(&s->shapes->edge[k + 1]);
  if (edge == SURFACES_TOO_MANY) fail_state(s, k);
  if (edge != SURFACES_AT_EDGE) return;
  SLOTS_EACH(p, s->slots) {
    real x[CQ_DIM];
    particle_place(r, state, p, s->SCALES.inv_dx, x);
    if (in_world(s, s->SCALES.inv_dx, x)) continue;
    fail_state(s, k);
  }
}
