// readout: means, second moments and gathered fields of the live state, with adjoints. Sums run in double over portions of the
// user's list, each in a fixed tree, and then over the portions in order: they do not depend on how particles lie.

enum { WIDTH_MAX = CQ_DIM * CQ_DIM };

CQ_DEVICE double weight_of(const cq_reading *r, const int64_t scene, const int32_t p) {
  return r->mass ? r->mass[scene * r->mass_stride + p] : 1;
}

CQ_DEVICE double field_at(const cq_reading *r, const int32_t slot, const int32_t k) {
  return (double)((const real *)r->state)[(int64_t)(r->first + k) * r->stride + slot];
}

// component c of what a particle adds to its group's sums: its weight, then that times q or q q^T
CQ_DEVICE double term_of(const cq_reading *r, const int64_t scene, const int32_t p, const int32_t c) {
  const double w = weight_of(r, scene, p);
  if (c == 0) return w;
  const int32_t slot = r->slot_of[scene * r->particles + p];
  if (r->kind == CQ_READOUT_MEAN) return w * field_at(r, slot, c - 1);
  return w * field_at(r, slot, (c - 1) / r->width) * field_at(r, slot, (c - 1) % r->width);
}

// a block for each {scene, portion, component}
CQ_KERNEL read_portions(const cq_reading r, int32_t components) {
  CQ_SHARED(double, shared, SUM_THREADS);
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

// a thread for each {scene, group, component}
CQ_KERNEL read_groups(const cq_reading r, int32_t components) {
  const int64_t all = (int64_t)r.batch * r.groups * components;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int32_t c = (int32_t)(n % components);
    const int64_t group = n / components % r.groups, scene = n / components / r.groups;
    double total = 0, sum = 0;
    for (int32_t k = r.portion_start[group]; k < r.portion_start[group + 1]; k++) {
      const double *partial = r.partial + (scene * r.portions + k) * r.components;
      total += partial[0];
      sum += partial[c];
    }
    r.sum[(scene * r.groups + group) * r.components + c] = sum;
    if (c) r.out[scene * r.count + group * (r.components - 1) + c - 1] = sum / total;
  }
}

CQ_KERNEL read_gather(const cq_reading r) {
  const int64_t all = (int64_t)r.batch * r.listed;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int64_t scene = n / r.listed;
    const int32_t slot = r.slot_of[scene * r.particles + r.list[n % r.listed]];
    for (int32_t k = 0; k < r.width; k++) r.out[n * r.width + k] = field_at(&r, slot, k);
  }
}

// With out = sum w q / W: dL/dq += w / W g; by mass, dL/dw += g . (q - out) / W. What one place in the list gives: to
// grad {width}; returns what it gives to dL/dw.
CQ_DEVICE double place_adj(const cq_reading *r, const int64_t scene, const int32_t p, const int32_t place, const double q[WIDTH_MAX],
                           double grad[WIDTH_MAX]) {
  const int32_t group = r->group_of[place];
  const double total = r->sum[(scene * r->groups + group) * r->components], share = weight_of(r, scene, p) / total;
  const int64_t at = scene * r->count + group * (r->components - 1);
  const double *g = r->grad_out + at, *out = r->out + at;
  double along = 0;
  for (int32_t i = 0; i < r->width; i++) {
    if (r->kind == CQ_READOUT_MEAN) {
      grad[i] = share * g[i];
      if (r->grad_mass) along += g[i] * (q[i] - out[i]);
      continue;
    }
    double sum = 0;
    for (int32_t j = 0; j < r->width; j++) {
      sum += (g[i * r->width + j] + g[j * r->width + i]) * q[j];
      if (r->grad_mass) along += g[i * r->width + j] * (q[i] * q[j] - out[i * r->width + j]);
    }
    grad[i] = share * sum;
  }
  return along / total;
}

// a thread for each {scene, particle that is listed}
CQ_KERNEL read_adj(const cq_reading r) {
  const int64_t all = (int64_t)r.batch * r.who_count;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int64_t scene = n / r.who_count, who = n % r.who_count;
    const int32_t p = r.who[who];
    const int64_t id = scene * r.particles + p;
    real *adj = (real *)r.adj + (int64_t)r.first * r.stride + r.adj_slot_of[id];
    double q[WIDTH_MAX], grad[WIDTH_MAX];
    for (int32_t i = 0; i < r.width; i++) q[i] = field_at(&r, r.slot_of[id], i);
    for (int32_t k = r.place_start[who]; k < r.place_start[who + 1]; k++) {
      const int32_t place = r.place[k];
      if (r.kind == CQ_READOUT_GATHER) {
        for (int32_t i = 0; i < r.width; i++) adj[(int64_t)i * r.stride] += (real)r.grad_out[scene * r.count + place * r.width + i];
        continue;
      }
      const double along = place_adj(&r, scene, p, place, q, grad);
      for (int32_t i = 0; i < r.width; i++) adj[(int64_t)i * r.stride] += (real)grad[i];
      if (r.grad_mass) r.grad_mass[id] += along;
    }
  }
}
