// actuation: from the signals and forces of one control step to the stress sigma = sum_a w_pa u_a S_a, the force and
// the pressure of each particle, and the adjoint.

enum { SUM_THREADS = 256 };

// Entry of the symmetric direction matrix S of an actuator, by row and column.
CQ_GPU double direction_at(const cq_actuation *d, const int32_t actuator, const int row, const int column) {
  return d->direction[((int64_t)actuator * CQ_DIM + row) * CQ_DIM + column];
}

// Kernel, at the begin of a run of engine steps: writes for each particle what its actuators give by the present
// signals: the actuation stress sigma, the force that the script gives and, with pressed surfaces, the pressure times
// area. All engine steps of the run read it.
CQ_KERNEL load_actuation(const cq_frame *s, const cq_actuation *d) {
  const int rows = d->surface_start ? (int)ACTUATION_FIELDS : (int)PRESSURE;
  SLOTS_EACH(slot, s->slots) {
    const int32_t id = s->order[slot], scene = id / s->particles, p = id % s->particles;
    real sum[ACTUATION_FIELDS] = {0};
    for (int64_t k = d->start[p]; k < d->start[p + 1]; k++) {
      const int32_t actuator = d->actuator[k];
      const double amount =
          d->weight[scene * d->weight_stride + d->entry[k]] * d->signals[(int64_t)scene * d->actuators + actuator];
      EACH (i)
        for (int j = 0; j <= i; j++) sum[SIGMA + sym_at(i, j)] += (real)(amount * direction_at(d, actuator, i, j));
    }
    const int32_t f = d->force_of && d->force ? d->force_of[p] : -1;
    for (int64_t k = d->surface_start ? d->surface_start[p] : 0; d->surface_start && k < d->surface_start[p + 1]; k++) {
      const double pressure = d->signals[(int64_t)scene * d->actuators + d->surface_actuator[k]];
      EACH(i) sum[PRESSURE + i] += (real)(pressure * d->surface_area[k * CQ_DIM + i]);
    }
    EACH(i) if (f >= 0) sum[FORCE + i] = (real)d->force[((int64_t)scene * d->forces + f) * CQ_DIM + i];
    for (int k = 0; k < rows; k++) slot_in(d->out, ACTUATION_FIELDS, slot)[k * CQ_GROUP] = sum[k];
  }
}

// Adjoint of load_actuation for entries (a particle, its actuator and a weight) and for the script's forces. A thread
// for each entry adds dL/dweight to grad_weight and writes its share of dL/dsignal, which actuation_signals sums; a
// thread for each force writes dL/dforce.
CQ_KERNEL actuation_shares(const cq_frame *s, const cq_actuation *d) {
  const int64_t entries = s->batch * d->entries, all = entries + (int64_t)s->batch * d->forces;
  for (int64_t n = (int64_t)blockIdx.x * SLOT_THREADS + threadIdx.x; n < all; n += (int64_t)gridDim.x * SLOT_THREADS) {
    if (n >= entries) {
      const int64_t m = n - entries, scene = m / d->forces;
      const int32_t slot = d->slot_of[scene * s->particles + d->force_particle[m % d->forces]];
      const int32_t pulled = d->cables.all ? d->cables.pulled_of[m % d->forces] : -1;
      EACH(i) {
        const double base =
            pulled < 0 ? 0 : d->cables.grad_base[(scene * d->cables.pulled_count + pulled) * CQ_DIM + i];
        d->grad_force[m * CQ_DIM + i] =
            base + (double)slot_in(s->actuation_adj, ACTUATION_FIELDS, slot)[(FORCE + i) * CQ_GROUP];
      }
      continue;
    }
    const int64_t scene = n / d->entries, k = n % d->entries;
    const int32_t slot = d->slot_of[scene * s->particles + d->by_particle[k]], actuator = d->by_actuator[k];
    double along = 0;
    EACH(i) for (int j = 0; j <= i; j++)
        along += (double)slot_in(s->actuation_adj, ACTUATION_FIELDS, slot)[(SIGMA + sym_at(i, j)) * CQ_GROUP] *
                 direction_at(d, actuator, i, j);
    d->share[n] = d->weight[scene * d->weight_stride + d->by_entry[k]] * along;
    d->grad_weight[scene * d->entries + d->by_entry[k]] += d->signals[scene * d->actuators + actuator] * along;
  }
}

// The sum of a value over all threads of a block, returned to its first thread; always in the same order. All threads
// of the block call it.
CQ_GPU double block_sum(double *shared, const double value) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  return shared[threadIdx.x];   // its own: no barrier
}

// A thread's part of dL/dsignal of an actuator that presses on surfaces: of the entries threadIdx.x, threadIdx.x +
// SUM_THREADS, ... of its surface, the area times dL/d(pressure times area).
CQ_GPU double pressure_share(const cq_frame *s, const cq_actuation *d, const int64_t scene, const int64_t actuator) {
  double sum = 0;
  for (int64_t k = d->surface_by_start[actuator] + threadIdx.x; k < d->surface_by_start[actuator + 1];
       k += SUM_THREADS) {
    const int32_t slot = d->slot_of[scene * s->particles + d->surface_by_particle[k]];
    EACH (i)
      sum += d->surface_by_area[k * CQ_DIM + i] *
             (double)slot_in(s->actuation_adj, ACTUATION_FIELDS, slot)[(PRESSURE + i) * CQ_GROUP];
  }
  return sum;
}

// Adjoint of actuation, a block for each signal: sets its gradient to the sum of the shares of particles, of pressure
// on surfaces, and of cables and chambers.
CQ_KERNEL actuation_signals(const cq_frame *s, const cq_actuation *d) {
  CQ_SHARED(double, shared, SUM_THREADS);
  for (int64_t n = blockIdx.x; n < (int64_t)s->batch * d->actuators; n += gridDim.x) {
    const int64_t scene = n / d->actuators, actuator = n % d->actuators;
    double sum = 0;
    for (int64_t k = d->by_start[actuator] + threadIdx.x; k < d->by_start[actuator + 1]; k += SUM_THREADS)
      sum += d->share[scene * d->entries + k];
    if (d->surface_start) sum += pressure_share(s, d, scene, actuator);
    sum = block_sum(shared, sum);
    if (threadIdx.x) continue;
    for (int32_t c = 0; c < d->cables.all; c++)
      if (d->cables.actuator[c] == actuator) sum += d->cables.grad_signals[scene * d->cables.all + c];
    d->grad_signals[n] = sum;
  }
}
