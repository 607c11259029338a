// readout: means, second moments and gathered fields of the live state, with adjoints. Sums run in double over portions of the
// user's list, each in a fixed tree, and then over the portions in another: they do not depend on how particles lie.

CQ_GPU double weight_of(const cq_reading *r, const int64_t scene, const int32_t p) {
  return r->mass ? r->mass[scene * r->mass_stride + p] : 1;
}

CQ_GPU double field_at(const cq_reading *r, const int32_t slot, const int32_t field) {
  return (double)slot_in(r->state, FIELDS, slot)[field * CQ_GROUP];
}

// the part that component c, which is not the weight, belongs to
CQ_GPU const cq_part *part_of(const cq_reading *r, const int32_t c) {
  const cq_part *part = r->part;
  while (c >= part->component + part->components) part++;
  return part;
}

// component c of what a particle adds to its group's sums: its weight, then that times q or q q^T
CQ_GPU double term_of(const cq_reading *r, const int64_t scene, const int32_t p, const int32_t c) {
  const double w = weight_of(r, scene, p);
  if (c == 0) return w;
  const cq_part *part = part_of(r, c);
  const int32_t slot = r->slot_of[scene * r->particles + p], k = c - part->component;
  if (r->kind == CQ_READOUT_MEAN) return w * field_at(r, slot, part->first + k);
  return w * field_at(r, slot, part->first + k / part->width) * field_at(r, slot, part->first + k % part->width);
}

CQ_GPU int is_made(const cq_reading *r) { return !r->over || !*r->over; }

// __grid_constant__: pointers walk over the parts of a reading where it lies; else each thread would copy it to its stack.

// a block for each {scene, portion, component}
CQ_KERNEL read_portions(const __grid_constant__ cq_reading r, int32_t components) {
  CQ_SHARED(double, shared, SUM_THREADS);
  if (!is_made(&r)) return;
  for (int64_t n = blockIdx.x; n < (int64_t)r.batch * r.portions * components; n += gridDim.x) {
    const int32_t c = (int32_t)(n % components);
    const int64_t portion = n / components % r.portions, scene = n / components / r.portions;
    const cq_portion at = r.portion[portion];
    double sum = 0;
    for (int32_t k = at.begin + (int32_t)threadIdx.x; k < at.end; k += SUM_THREADS) sum += term_of(&r, scene, r.list[k], c);
    sum = block_sum(shared, sum);
    if (threadIdx.x == 0) r.partial[(scene * r.portions + portion) * r.components + c] = sum;
  }
}

// a warp for each {scene, group, component}, whose lanes take the portions in turn
CQ_KERNEL read_groups(const __grid_constant__ cq_reading r, int32_t components) {
  const int64_t all = is_made(&r) ? (int64_t)r.batch * r.groups * components : 0, first = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x;
  const int32_t lane = (int32_t)threadIdx.x % WARP;
  for (int64_t n = first / WARP; n < all; n += (int64_t)gridDim.x * (SLOT_THREADS / WARP)) {
    const int32_t c = (int32_t)(n % components);
    const int64_t group = n / components % r.groups, scene = n / components / r.groups;
    double total = 0, sum = 0;
    for (int32_t k = r.portion_start[group] + lane; k < r.portion_start[group + 1]; k += WARP) {
      const double *partial = r.partial + (scene * r.portions + k) * r.components;
      total += partial[0];
      sum += partial[c];
    }
    for (int d = WARP / 2; d > 0; d /= 2) {
      total += __shfl_xor_sync(0xffffffffu, total, d);
      sum += __shfl_xor_sync(0xffffffffu, sum, d);
    }
    if (lane) continue;
    r.sum[(scene * r.groups + group) * r.components + c] = sum;
    if (!c) continue;
    const cq_part *part = part_of(&r, c);
    r.out[scene * r.count + part->out + group * part->components + c - part->component] = sum / total;
  }
}

CQ_KERNEL read_gather(const __grid_constant__ cq_reading r) {
  const int64_t all = is_made(&r) ? (int64_t)r.batch * r.listed : 0;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int64_t scene = n / r.listed, place = n % r.listed;
    const int32_t slot = r.slot_of[scene * r.particles + r.list[place]];
    for (const cq_part *part = r.part; part < r.part + r.parts; part++)
      for (int32_t k = 0; k < part->width; k++)
        r.out[scene * r.count + part->out + place * part->width + k] = field_at(&r, slot, part->first + k);
  }
}

// With out = sum w q / W: dL/dq += w / W g; by mass, dL/dw += g . (q - out) / W. What one place in the list gives to the adjoint of
// a part of its particle; returns g . (q - out).
CQ_GPU double part_adj(const cq_reading *r, const int64_t scene, const int64_t id, const int32_t place, const cq_part *part,
                          const double share) {
  real *adj = slot_in(r->adj, FIELDS, r->adj_slot_of[id]) + part->first * CQ_GROUP;
  const int32_t width = part->width, gather = r->kind == CQ_READOUT_GATHER;
  const int64_t at = scene * r->count + part->out + (gather ? (int64_t)place * width : (int64_t)r->group_of[place] * part->components);
  const double *g = r->grad_out + at, *out = r->out + at;
  const int32_t slot = r->slot_of[id];
  double along = 0;
  for (int32_t i = 0; i < width; i++) {
    const double q = field_at(r, slot, part->first + i);
    double by = gather || r->kind == CQ_READOUT_MEAN ? g[i] : 0;
    if (r->grad_mass && !gather && r->kind == CQ_READOUT_MEAN) along += g[i] * (q - out[i]);
    for (int32_t j = 0; j < width && r->kind == CQ_READOUT_SECOND_MOMENT; j++) {
      const double other = field_at(r, slot, part->first + j);
      by += (g[i * width + j] + g[j * width + i]) * other;
      if (r->grad_mass) along += g[i * width + j] * (q * other - out[i * width + j]);
    }
    adj[i * CQ_GROUP] += (real)(share * by);
  }
  return along;
}

// a thread for each {scene, particle that is listed}
CQ_KERNEL read_adj(const __grid_constant__ cq_reading r) {
  const int64_t all = (int64_t)r.batch * r.who_count;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int64_t scene = n / r.who_count, who = n % r.who_count, id = scene * r.particles + r.who[who];
    for (int32_t k = r.place_start[who]; k < r.place_start[who + 1]; k++) {
      double total = 1, share = 1, along = 0;
      if (r.kind != CQ_READOUT_GATHER) {
        total = r.sum[(scene * r.groups + r.group_of[r.place[k]]) * r.components];
        share = weight_of(&r, scene, r.who[who]) / total;
      }
      for (const cq_part *part = r.part; part < r.part + r.parts; part++) along += part_adj(&r, scene, id, r.place[k], part, share);
      if (r.grad_mass) r.grad_mass[id] += along / total;
    }
  }
}
