// sort: finds the tile and the cell of each particle, moves particles into another order, and copies from and to arrays
// in the user's order. A thread works on a slot, then on the one that lies as many slots further as the launch has
// threads.

enum { SLOT_THREADS = 256 };

#define SLOTS_EACH(p, count)                                                                                           \
  for (int32_t p = (int32_t)(blockIdx.x * SLOT_THREADS + threadIdx.x); p < (count);                                    \
       p += (int32_t)gridDim.x * SLOT_THREADS)

// Sets base to the coordinates of the lowest of the 3^dim nodes around the particle in slot p, from -1 on. Returns 1,
// or 0 where the particle is outside of the world or not finite.
CQ_GPU int base_of(const cq_sorting *s, const int32_t p, int32_t base[CQ_DIM]) {
  int inside = 1;
  EACH(i) {
    const real x = (real)s->inv_dx * slot_in(s->state, FIELDS, p)[(X + i) * CQ_GROUP];
    const int in = x >= 0 && x <= (real)s->limit[i];
    inside &= in;
    base[i] = in ? (int32_t)r_floor(x - (real)0.5) : 0;
  }
  return inside;
}

// The tile along an axis of a particle with this base node; bases begin at -1.
CQ_GPU int32_t tile_of(const int32_t base) { return (base + SIDE) / SIDE - 1; }

// Kernel: widens the box of tiles in s.found to all particles, and sets its `outside` to 1 if one has left the world.
CQ_KERNEL find_box(const cq_sorting s) {
  int32_t lower[CQ_DIM], upper[CQ_DIM];
  EACH(i) lower[i] = INT32_MAX, upper[i] = INT32_MIN;
  SLOTS_EACH(p, s.slots) {
    int32_t base[CQ_DIM];
    if (!base_of(&s, p, base)) {
      store_volatile(&s.found->outside, 1);
      continue;
    }
    EACH(i) {
      lower[i] = min(lower[i], tile_of(base[i]));
      upper[i] = max(upper[i], tile_of(base[i]));
    }
  }
  EACH(i) {
    for (int d = WARP / 2; d > 0; d /= 2) {
      lower[i] = min(lower[i], __shfl_xor_sync(0xffffffffu, lower[i], d));
      upper[i] = max(upper[i], __shfl_xor_sync(0xffffffffu, upper[i], d));
    }
    if (threadIdx.x % WARP) continue;
    // most warps are not at the edge of the box, and need no atomic to find out
    if (lower[i] < load_volatile(&s.found->lower[i])) atomicMin(&s.found->lower[i], lower[i]);
    if (upper[i] > load_volatile(&s.found->upper[i])) atomicMax(&s.found->upper[i], upper[i]);
  }
}

// Kernel: sets key, cell and rank of each particle (tile of the window, cell of the tile, arrival there in any order),
// and counts the particles of each tile in s.count. s.found->outside: set to 1 if a particle has left the world.
CQ_KERNEL find_keys(const cq_sorting s) {
  SLOTS_EACH(p, s.slots) {
    int32_t base[CQ_DIM], key = s.order[p] / s.particles, cell = 0;
    if (!base_of(&s, p, base)) {
      store_volatile(&s.found->outside, 1);
      continue;
    }
    EACH(i) {
      const int32_t tile = tile_of(base[i]);
      key = key * s.size[i] + tile - s.lower[i];
      cell = cell * SIDE + base[i] - tile * SIDE;
    }
    s.key[p] = key;
    s.cell[p] = (uint8_t)cell;
    s.rank[p] = atomicAdd(&s.count[key], 1);
  }
}

// Copies the fields of a slot, with eight loads under way at once. The compiler would not reorder them itself: as far
// as it knows, a store could change what is loaded next.
CQ_GPU void move_fields(const real *from, real *to, const int32_t fields) {
  enum { TOGETHER = 8 };
  for (int32_t first = 0; first < fields; first += TOGETHER) {
    real value[TOGETHER];
    CQ_UNROLL for (int32_t f = 0; f < TOGETHER; f++) value[f] = first + f < fields ? from[(first + f) * CQ_GROUP] : 0;
    CQ_UNROLL for (int32_t f = 0; f < TOGETHER; f++)
      if (first + f < fields) to[(first + f) * CQ_GROUP] = value[f];
  }
}

// Copies the fields of all particles into the order of another arrangement.
CQ_KERNEL move_slots(const cq_moving m) {
  SLOTS_EACH(p, m.slots) {
    const int32_t was = m.slot_of[m.order[p]];
    CQ_UNROLL for (int k = 0; k < 3; k++)
      if (m.fields[k]) move_fields(slot_in(m.from[k], m.fields[k], was), slot_in(m.to[k], m.fields[k], p), m.fields[k]);
    if (m.bytes_to) m.bytes_to[p] = m.bytes_from[was];
  }
}

// Copies some fields of each particle from the user's doubles into the slot of the same number: slots are still in the
// user's order.
CQ_KERNEL load_values(const cq_loading l) {
  SLOTS_EACH(id, l.slots) {
    const double *from = l.from + id / l.particles * l.every + (int64_t)(id % l.particles) * l.width;
    for (int32_t k = 0; k < l.width; k++) slot_in(l.to, l.fields, id)[(l.first + k) * CQ_GROUP] = (real)from[k];
  }
}

// Copies the adjoints of position, velocity, C and F into the user's order.
CQ_KERNEL store_state_adj(const cq_storing s) {
  const int32_t first[4] = {X, V, C, F}, width[4] = {CQ_DIM, CQ_DIM, CQ_DIM * CQ_DIM, CQ_DIM * CQ_DIM};
  SLOTS_EACH(p, s.slots) {
    const int64_t id = s.order[p];
    for (int q = 0; q < 4; q++)
      for (int k = 0; k < width[q]; k++)
        s.to[(int64_t)first[q] * s.slots + id * width[q] + k] =
            (double)slot_in(s.from, FIELDS, p)[(first[q] + k) * CQ_GROUP];
  }
}

// Adds the gradients of particles' parameters to those in the user's order, and clears them in the slots.
CQ_KERNEL store_params_adj(const cq_storing s) {
  SLOTS_EACH(p, s.slots) {
    const int64_t id = s.order[p];
    real *from = slot_in(s.from, s.fields, p);
    for (int k = 0; k < s.fields; k++) {
      s.to[(int64_t)k * s.slots + id] += (double)from[k * CQ_GROUP];
      from[k * CQ_GROUP] = 0;
    }
  }
}

// adj *= factor for `count` numbers, as a kernel; a factor of 0 also removes what is not finite.
CQ_KERNEL discount_reals(void *adj, const int64_t count, const double factor) {
  for (int64_t k = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; k < count; k += (int64_t)gridDim.x * SLOT_THREADS)
    ((real *)adj)[k] = factor == 0 ? (real)0 : ((real *)adj)[k] * (real)factor;
}
