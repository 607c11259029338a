// readout: means, sums, second moments and gathers of the live state and of quantities derived from it, with adjoints.
// Sums run in double over portions of the user's list, each in a fixed tree, and then over the portions in another
// fixed tree, so that they do not depend on the order of particles in memory.

// Weight of particle p in the mean of its group: its mass, its volume or 1.
CQ_GPU double weight_of(const cq_reading *r, const int64_t scene, const int32_t p) {
  return r->weight ? r->weight[scene * r->weight_stride + p] : 1;
}

// Is this part of a readout computed from the state, as a stress is, and not a field of it?
CQ_GPU int is_derived(const cq_part *part) { return part->quantity >= CQ_STATE_FIELD_COUNT; }

// Component i of a quantity of the particle at place `place` of the list: read from the state, or computed before by
// read_derive.
CQ_GPU double value_at(const cq_reading *r, const int64_t scene, const int64_t place, const cq_part *part,
                       const int32_t i) {
  if (is_derived(part)) return r->derived[(scene * r->listed + place) * r->derived_width + part->first + i];
  const int32_t slot = r->slot_of[scene * r->particles + r->list[place]];
  return (double)slot_in(r->state, FIELDS, slot)[(part->first + i) * CQ_GROUP];
}

// Which quantity of a readout its component c belongs to; component 0 is the weight and belongs to none.
CQ_GPU const cq_part *part_of(const cq_reading *r, const int32_t c) {
  const cq_part *part = r->part;
  while (c >= part->component + part->components) part++;
  return part;
}

// Component c of the term that the particle at a place of the list adds to its group's sums: its weight w, then w q or
// w q q^T.
CQ_GPU double term_of(const cq_reading *r, const int64_t scene, const int64_t place, const int32_t c) {
  const double w = weight_of(r, scene, r->list[place]);
  if (c == 0) return w;
  const cq_part *part = part_of(r, c);
  const int32_t k = c - part->component;
  if (r->kind != CQ_READOUT_SECOND_MOMENT) return w * value_at(r, scene, place, part, k);
  return w * value_at(r, scene, place, part, k / part->width) * value_at(r, scene, place, part, k % part->width);
}

// Is there a state to read? Not if an engine step before it ended the run.
CQ_GPU int is_computed(const cq_reading *r) { return !r->over || !*r->over; }

// ---- derived quantities ---------------------------------------------------------------------------------------------

// Fills *at, the argument of the formulas for derived quantities (stress, energy, ...), with a particle of the state:
// x, v, C, F, internal variables and material constants. slot: the particle's index in the device's arrays.
CQ_RARE void readout_point(const cq_reading *r, const int32_t slot, ReadoutPoint *at) {
  const real *params = slot_in(r->params, r->param_count, slot);
  const real *internal = slot_in((const char *)r->state + r->internal_offset, r->internals, slot);
  const cq_material *material = &r->materials[r->material[slot]];
  at->material.dt = (real)r->dt;
  at->dx = (real)r->dx;
  at->slots = r->param_count - CQ_PARAM_SLOTS;
  for (int k = 0; k < r->internals; k++) at->material.internal[k] = internal[k * CQ_GROUP];
  load_vector(r->state, X, slot, at->x);
  load_vector(r->state, V, slot, at->v);
  load_matrix(r->state, C, slot, at->c);
  load_matrix(r->state, F, slot, at->material.f);
  real constant[CQ_SLOTS_MAX];
  for (int k = 0; k < at->slots; k++) constant[k] = params[(CQ_PARAM_SLOTS + k) * CQ_GROUP];
  readout_as(at, material, constant);
}

// Adjoint of a derived quantity of one particle, such as its stress: from by = dL/d(quantity) adds to the gradients of
// the particle's state, material constants and internal variables. id: scene * particles + particle.
CQ_RARE void derived_adj(const cq_reading *r, const int64_t id, const int32_t quantity, const real by[READOUT_WIDTH]) {
  ReadoutPoint at, grad;
  const int32_t slot = r->adj_slot_of[id];
  readout_point(r, r->slot_of[id], &at);
  readout_grad_begin(&at, &grad);
  readout_adj(quantity, &at, &grad, by);
  readout_grad_end(&grad);
  real *adj = slot_in(r->adj, FIELDS, slot),
       *internal = slot_in((char *)r->adj + r->internal_offset, r->internals, slot);
  EACH(i) adj[(X + i) * CQ_GROUP] += grad.x[i];
  EACH(i) adj[(V + i) * CQ_GROUP] += grad.v[i];
  EACH(i) EACH(j) adj[(C + i * CQ_DIM + j) * CQ_GROUP] += grad.c[i][j];
  EACH(i) EACH(j) adj[(F + i * CQ_DIM + j) * CQ_GROUP] += grad.material.f[i][j];
  for (int k = 0; k < at.slots; k++)
    r->grad_slots[(int64_t)k * r->slots + id] += (double)*material_slot(grad.material.law, &grad.material, k);
  for (int k = 0; k < r->internals; k++) internal[k * CQ_GROUP] += grad.material.internal[k];
}

// ---- kernels --------------------------------------------------------------------------------------------------------

// __grid_constant__: pointers walk over the parts of a reading where it lies; else each
// thread would copy it to its stack.

// Kernel: computes the quantities that are no state fields (stress, energy, ...) for each particle of the list in each
// scene, for the sums and gathers after it.
CQ_KERNEL read_derive(const __grid_constant__ cq_reading r) {
  const int64_t all = is_computed(&r) ? (int64_t)r.batch * r.listed : 0;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    ReadoutPoint at;
    real value[READOUT_WIDTH];
    readout_point(&r, r.slot_of[n / r.listed * r.particles + r.list[n % r.listed]], &at);
    for (const cq_part *part = r.part; part < r.part + r.parts; part++) {
      if (!is_derived(part)) continue;
      readout(part->quantity, &at, value);
      for (int32_t i = 0; i < part->width; i++) r.derived[n * r.derived_width + part->first + i] = (double)value[i];
    }
  }
}

// Kernel: sets r.partial to sums over portions of groups, a block for each {scene, portion, component of `components`}.
CQ_KERNEL read_portions(const __grid_constant__ cq_reading r, int32_t components) {
  CQ_SHARED(double, shared, SUM_THREADS);
  if (!is_computed(&r)) return;
  for (int64_t n = blockIdx.x; n < (int64_t)r.batch * r.portions * components; n += gridDim.x) {
    const int32_t c = (int32_t)(n % components);
    const int64_t portion = n / components % r.portions, scene = n / components / r.portions;
    const cq_portion at = r.portion[portion];
    double sum = 0;
    for (int32_t k = at.begin + (int32_t)threadIdx.x; k < at.end; k += SUM_THREADS) sum += term_of(&r, scene, k, c);
    sum = block_sum(shared, sum);
    if (threadIdx.x == 0) r.partial[(scene * r.portions + portion) * r.components + c] = sum;
  }
}

// Kernel after read_portions: sets r.sum to the sums over portions of each {scene, group, component}, in a fixed order,
// and r.out to these, or for a mean or moment to these over component 0, the weight. Nothing where the run has ended.
// components: their number, 1 for weights alone. A warp works on each sum; its lanes take portions in turn.
CQ_KERNEL read_groups(const __grid_constant__ cq_reading r, int32_t components) {
  const int64_t all = is_computed(&r) ? (int64_t)r.batch * r.groups * components : 0,
                first = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x;
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
    r.out[scene * r.count + part->out + group * part->components + c - part->component] =
        r.kind == CQ_READOUT_SUM ? sum : sum / total;
  }
}

// Kernel of a readout without groups: copies each quantity of each listed particle of each scene to its place in the
// result.
CQ_KERNEL read_gather(const __grid_constant__ cq_reading r) {
  const int64_t all = is_computed(&r) ? (int64_t)r.batch * r.listed : 0;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int64_t scene = n / r.listed, place = n % r.listed;
    for (const cq_part *part = r.part; part < r.part + r.parts; part++)
      for (int32_t k = 0; k < part->width; k++)
        r.out[scene * r.count + part->out + place * part->width + k] = value_at(&r, scene, place, part, k);
  }
}

// Adds the adjoint of one list entry to a part of its particle's state: dL/dq += share g, with share = w / W where out
// = sum w q / W (a sum: w, a gather: 1); a second moment has q q^T for q. Returns g . (q - out), or g . q of a sum, for
// the gradient of w; 0 where that is not wanted.
CQ_GPU double part_adj(const cq_reading *r, const int64_t scene, const int64_t id, const int32_t place,
                       const cq_part *part, const double share) {
  const int32_t width = part->width, gather = r->kind == CQ_READOUT_GATHER,
                moment = r->kind == CQ_READOUT_SECOND_MOMENT;
  const int64_t at =
      scene * r->count + part->out + (gather ? (int64_t)place * width : (int64_t)r->group_of[place] * part->components);
  const double *g = r->grad_out + at, *out = r->out + at, mean = r->kind == CQ_READOUT_SUM ? 0 : 1;
  real wanted[READOUT_WIDTH];
  double along = 0;
  for (int32_t i = 0; i < width; i++) {
    const double q = moment || r->grad_weight ? value_at(r, scene, place, part, i) : 0;
    double by = moment ? 0 : g[i];
    if (r->grad_weight && !gather && !moment) along += g[i] * (q - mean * out[i]);
    for (int32_t j = 0; j < width && moment; j++) {
      const double other = value_at(r, scene, place, part, j);
      by += (g[i * width + j] + g[j * width + i]) * other;
      if (r->grad_weight) along += g[i * width + j] * (q * other - out[i * width + j]);
    }
    wanted[i] = (real)(share * by);
  }
  if (is_derived(part)) {
    derived_adj(r, id, part->quantity, wanted);
  } else {
    real *adj = slot_in(r->adj, FIELDS, r->adj_slot_of[id]) + part->first * CQ_GROUP;
    for (int32_t i = 0; i < width; i++) adj[i * CQ_GROUP] += wanted[i];
  }
  return along;
}

// Adjoint of a readout, a thread for each {scene, listed particle}: adds to gradients of its state, weight, constants.
CQ_KERNEL read_adj(const __grid_constant__ cq_reading r) {
  const int64_t all = (int64_t)r.batch * r.distinct_count;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    const int64_t scene = n / r.distinct_count, member = n % r.distinct_count,
                  id = scene * r.particles + r.distinct[member];
    for (int32_t k = r.place_start[member]; k < r.place_start[member + 1]; k++) {
      double total = 1, share = 1, along = 0;
      if (r.kind != CQ_READOUT_GATHER) {
        if (r.kind != CQ_READOUT_SUM) total = r.sum[(scene * r.groups + r.group_of[r.place[k]]) * r.components];
        share = weight_of(&r, scene, r.distinct[member]) / total;
      }
      for (const cq_part *part = r.part; part < r.part + r.parts; part++)
        along += part_adj(&r, scene, id, r.place[k], part, share);
      if (r.grad_weight) r.grad_weight[id] += along / total;
    }
  }
}
