// cable: the cables and chambers of all scenes, a block for each scene; between its passes the threads of a block wait
// for each other, so that the order of all sums is the same always. A thread works on a cable, or on a point of a
// chamber.

enum { CABLE_THREADS = 128 };

// The stiffness (which = 0), rest length (1) or friction (2) of a cable in a scene.
CQ_GPU double cable_value(const cq_pulling *c, const int which, const int64_t scene, const int32_t cable) {
  return c->value[which][scene * c->value_stride[which] + cable];
}

// Cable k of a scene, as the formulas of physics/drive take it: stiffness, rest length, friction, signal, how its free
// length follows from the signal (offset, slope), and its number of points.
CQ_GPU Cable cable_of(const cq_actuation *d, const int64_t scene, const int32_t k) {
  const cq_pulling *c = &d->cables;
  return {cable_value(c, 0, scene, k), cable_value(c, 1, scene, k), cable_value(c, 2, scene, k),
          d->signals[scene * d->actuators + c->actuator[k]], c->offset[k], c->slope[k],
          (int32_t)(c->start[k + 1] - c->start[k])};
}

// Chamber k of a scene: its signal and the faces of its surface.
CQ_GPU Chamber chamber_of(const cq_actuation *d, const int64_t scene, const int32_t k) {
  const cq_pulling *c = &d->cables;
  return {d->signals[scene * d->actuators + c->actuator[c->count + k]], c->face + c->face_start[k] * CQ_DIM,
          (int32_t)(c->face_start[k + 1] - c->face_start[k])};
}

// Sets the force on each point of a scene's chambers to the force of the chamber's pressure, for points at x. If grad
// is not NULL it is the adjoint: `force` then holds dL/dforce, grad is set to dL/dx, and share to each point's part of
// dL/d(pressure).
CQ_GPU void push_points(const cq_actuation *d, const int64_t scene, const double *x, double *force, double *grad,
                        double *share) {
  const cq_pulling *c = &d->cables;
  for (int32_t k = 0; k < c->chambers; k++) {
    const Chamber chamber = chamber_of(d, scene, k);
    const int64_t first = c->start[c->count + k], end = c->start[c->count + k + 1];
    for (int64_t point = first + threadIdx.x; point < end; point += CABLE_THREADS) {
      double sum[CQ_DIM] = {0}, worth = 0;
      for (int64_t n = c->corner_start[point]; n < c->corner_start[point + 1]; n++) {
        if (grad) chamber_corner_adj(&chamber, c->corner[n], x + first * CQ_DIM, &worth, sum, force + first * CQ_DIM);
        else chamber_corner(&chamber, c->corner[n], x + first * CQ_DIM, sum);
      }
      EACH(i) (grad ? grad : force)[point * CQ_DIM + i] = sum[i];
      if (grad) share[point] = worth;
    }
  }
}

// Computes where the points of a scene's cables and chambers are in state `in`: weighted means of particles, or anchors
// in the world. Writes x {points, dim}; all threads of the block call it.
CQ_GPU void place_points(const cq_frame *s, const cq_actuation *d, const int64_t scene, const void *in, double *x) {
  const cq_pulling *c = &d->cables;
  for (int64_t point = threadIdx.x; point < c->points; point += CABLE_THREADS) {
    const int64_t begin = c->point_start[point], end = c->point_start[point + 1];
    double sum[CQ_DIM];
    EACH(i) sum[i] = begin == end ? c->anchor[point * CQ_DIM + i] : 0;
    for (int64_t k = begin; k < end; k++) {
      const real *from = slot_in(in, FIELDS, d->slot_of[scene * s->particles + c->particle[k]]);
      EACH(i) sum[i] += c->weight[k] * (double)from[(X + i) * CQ_GROUP];
    }
    EACH(i) x[point * CQ_DIM + i] = sum[i];
  }
  __syncthreads();
}

// Kernel: the forces of cables and chambers on particles, from the positions in state k (before engine step k of the
// run). Sets the force of each particle that cables or chambers act on to the script's force plus theirs; P2G of step k
// reads that force. A block for each scene. d: the actuation, with cables and chambers.
static __global__ void pull_cables(const cq_frame *s, const cq_actuation *d, int32_t k) {
  const cq_pulling *c = &d->cables;
  if (s->progress->over) return;
  for (int64_t scene = blockIdx.x; scene < s->batch; scene += gridDim.x) {
    double *x = c->x + scene * c->points * CQ_DIM, *force = c->force + scene * c->points * CQ_DIM;
    place_points(s, d, scene, s->shapes ? s->shapes->seen : s->substeps[k].in, x);
    for (int32_t n = (int32_t)threadIdx.x; n < c->count; n += CABLE_THREADS) {
      const Cable cable = cable_of(d, scene, n);
      const int64_t first = c->start[n] * CQ_DIM;
      cable_pull(&cable, x + first, force + first);
    }
    push_points(d, scene, x, force, NULL, NULL);
    __syncthreads();
    for (int64_t n = threadIdx.x; n < c->pulled_count; n += CABLE_THREADS) {
      const int32_t p = c->pulled[n], f = d->force_of && d->force ? d->force_of[p] : -1;
      real *row = slot_in(d->out, ACTUATION_FIELDS, d->slot_of[scene * s->particles + p]);
      EACH(i) {
        double sum = f >= 0 ? (double)(real)d->force[(scene * d->forces + f) * CQ_DIM + i] : 0;
        for (int64_t at = c->pull_start[n]; at < c->pull_start[n + 1]; at++)
          sum += c->pull_weight[at] * force[c->pull_point[at] * CQ_DIM + i];
        row[(FORCE + i) * CQ_GROUP] = (real)sum;
      }
    }
    __syncthreads();   // before the next scene: a block's work lies apart, but its threads go on together
  }
}

// First part of pull_cables_adj: turns dL/dforce of particles into dL/dforce of the points of cables and chambers, by
// the weights of particles in points. Adds dL/dforce of particles to the gradients of the script's forces too, and
// clears it in the particles' rows, since each engine step has forces of its own; sets the points' dL/dx to zero.
CQ_GPU void take_forces(const cq_frame *s, const cq_actuation *d, const int64_t scene) {
  const cq_pulling *c = &d->cables;
  for (int64_t point = threadIdx.x; point < c->points; point += CABLE_THREADS) {
    double sum[CQ_DIM] = {0};
    for (int64_t k = c->point_start[point]; k < c->point_start[point + 1]; k++) {
      const real *row = slot_in(s->actuation_adj, ACTUATION_FIELDS, d->slot_of[scene * s->particles + c->particle[k]]);
      EACH(i) sum[i] += c->weight[k] * (double)row[(FORCE + i) * CQ_GROUP];
    }
    EACH(i) {
      c->force[(scene * c->points + point) * CQ_DIM + i] = sum[i];
      c->grad[(scene * c->points + point) * CQ_DIM + i] = 0;
    }
  }
  __syncthreads();
  for (int64_t n = threadIdx.x; n < c->pulled_count; n += CABLE_THREADS) {
    real *row = slot_in(s->actuation_adj, ACTUATION_FIELDS, d->slot_of[scene * s->particles + c->pulled[n]]);
    EACH(i) {
      c->grad_base[(scene * c->pulled_count + n) * CQ_DIM + i] += (double)row[(FORCE + i) * CQ_GROUP];
      row[(FORCE + i) * CQ_GROUP] = 0;
    }
  }
  __syncthreads();
}

// Kernel: adjoint of pull_cables, after P2G of engine step k was reversed. From dL/dforce of particles adds to the
// gradients of signals of cables and chambers, of the cables' constants, and of positions (in the adjoint of state k).
static __global__ void pull_cables_adj(const cq_frame *s, const cq_actuation *d, int32_t k) {
  const cq_pulling *c = &d->cables;
  for (int64_t scene = blockIdx.x; scene < s->batch; scene += gridDim.x) {
    const int64_t points = scene * c->points * CQ_DIM;
    place_points(s, d, scene, s->shapes ? s->shapes->seen : s->substeps[k].in, c->x + points);
    take_forces(s, d, scene);
    for (int32_t n = (int32_t)threadIdx.x; n < c->count; n += CABLE_THREADS) {
      const Cable cable = cable_of(d, scene, n);
      const int64_t first = points + c->start[n] * CQ_DIM, all = (int64_t)s->batch * c->count,
                    at = scene * c->count + n;
      Cable grad = {};
      cable_pull_adj(&cable, c->x + first, &grad, c->grad + first, c->force + first,
                     c->share + scene * c->points + c->start[n]);
      c->grad_value[at] += grad.stiffness;
      c->grad_value[all + at] += grad.length;
      c->grad_value[2 * all + at] += grad.friction;
      c->grad_signals[scene * c->all + n] += grad.signal;
    }
    push_points(d, scene, c->x + points, c->force + points, c->grad + points, c->share + scene * c->points);
    __syncthreads();
    for (int32_t n = (int32_t)threadIdx.x; n < c->chambers; n += CABLE_THREADS)
      for (int64_t point = c->start[c->count + n]; point < c->start[c->count + n + 1]; point++)
        c->grad_signals[scene * c->all + c->count + n] += c->share[scene * c->points + point];
    for (int64_t n = threadIdx.x; n < c->pulled_count; n += CABLE_THREADS) {
      real *row = slot_in(s->adj, FIELDS, d->slot_of[scene * s->particles + c->pulled[n]]);
      EACH(i) {
        double sum = (double)row[(X + i) * CQ_GROUP];
        for (int64_t at = c->pull_start[n]; at < c->pull_start[n + 1]; at++)
          sum += c->pull_weight[at] * c->grad[points + c->pull_point[at] * CQ_DIM + i];
        row[(X + i) * CQ_GROUP] = (real)sum;
      }
    }
    __syncthreads();
  }
}
