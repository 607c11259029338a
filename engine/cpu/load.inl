// load: from the user's arrays to chunks, in the order of an arrangement; gradients back to the user's order; and which
// particle shows that a step failed.

// Returns the particle (user's index) whose values are loaded into a slot: the slot's own; for a padding slot, which
// has no mass and no volume, that of the last particle before it in its chunk, or of the first one after it.
CQ_INLINE int32_t padded_particle(const cq_arrangement *a, const int32_t slot) {
  const int32_t *order = a->order + slot / CQ_CHUNK * CQ_CHUNK;
  int l = slot % CQ_CHUNK;
  while (l > 0 && order[l] < 0) l--;
  while (l < CQ_CHUNK - 1 && order[l] < 0) l++;
  return order[l];
}

// Loads the initial state of particles (s->values, in the user's order) into chunks [chunk_begin, chunk_end) of a
// slice, in the order of the live arrangement; internal variables get their start values.
static void load_state(const cq_scene *s, cq_slice *out, int32_t chunk_begin, int32_t chunk_end) {
  real *data = (real *)out->data;
  const double *field[4] = {s->values.position, s->values.velocity, s->values.affine, s->values.deformation};
  const int32_t first[4] = {X, V, C, F}, width[4] = {CQ_DIM, CQ_DIM, CQ_DIM * CQ_DIM, CQ_DIM * CQ_DIM};
  for (int32_t slot = chunk_begin * CQ_CHUNK; slot < chunk_end * CQ_CHUNK; slot++) {
    const int64_t p = padded_particle(s->arrangement, slot);
    for (int q = 0; q < 4; q++)
      for (int k = 0; k < width[q]; k++)
        *slot_at(data, FIELDS, slot, first[q] + k) = (real)field[q][p * width[q] + k];
    const int32_t internals = out->internal ? s->model->internal_count : 0;
    if (!internals) continue;
    const double start = cq_law_of(s->model->materials[s->model->material[p]].kind)->internal_start;
    for (int32_t k = 0; k < internals; k++) *slot_at((real *)out->internal, internals, slot, k) = (real)start;
  }
}

// Loads mass, volume and constants of particles (in the user's order) into chunks [chunk_begin, chunk_end) of an
// arrangement, in its order, and sets the masks of their materials and drives. Padding slots get no mass and no volume.
static void load_params(const cq_scene *s, cq_arrangement *a, int32_t chunk_begin, int32_t chunk_end) {
  const cq_model *m = s->model;
  real *data = (real *)a->params;
  for (int32_t c = chunk_begin; c < chunk_end; c++) {
    a->materials[c] = 0;
    a->actuated[c] = 0;
    for (int32_t slot = c * CQ_CHUNK; slot < (c + 1) * CQ_CHUNK; slot++) {
      const int32_t p = padded_particle(a, slot), real_particle = a->order[slot] >= 0;
      *slot_at(data, s->params, slot, CQ_PARAM_MASS) = (real)(real_particle ? s->values.mass[p] : 0);
      *slot_at(data, s->params, slot, CQ_PARAM_VOLUME) = (real)(real_particle ? s->values.volume[p] : 0);
      for (int32_t k = 0; k < m->slot_count; k++)
        *slot_at(data, s->params, slot, CQ_PARAM_SLOTS + k) = (real)s->slot[k][p];
      a->material[slot] = (uint8_t)m->material[p];
      a->materials[c] |= 1u << m->material[p];
      a->slot_actuated[slot] = m->drives_of[p];
      a->actuated[c] |= a->slot_actuated[slot];
    }
  }
}

// Sets s->globals, in reals, from s->values: gravity, friction and velocities of walls, and damping.
static void load_globals(cq_scene *s) {
  real *g = (real *)s->globals;
  for (int i = 0; i < CQ_DIM; i++) g[i] = (real)s->values.gravity[i];
  for (int w = 0; w < s->model->wall_count; w++) g[3 + w] = (real)s->values.friction[w];
  for (int w = 0; w < s->model->wall_count; w++)
    for (int i = 0; i < CQ_DIM; i++)
      g[3 + s->model->wall_count + 3 * w + i] = (real)s->values.wall_velocity[w * CQ_DIM + i];
  g[3 + 4 * s->model->wall_count] = (real)s->values.damping[0];
}

// Sets gravity {dim} in s->globals for the running control step, in rollouts where it changes from step to step.
static void load_gravity(cq_scene *s, const double *gravity) {
  for (int i = 0; i < CQ_DIM; i++) ((real *)s->globals)[i] = (real)gravity[i];
}

// Adds the gradients of mass, volume and constants in chunks [chunk_begin, chunk_end) to those in the user's order and
// clears them: at the end, and before the order changes. Nothing where none of them is wanted.
static void store_params_adj(cq_scene *s, int32_t chunk_begin, int32_t chunk_end) {
  if (!(s->wanted & (cq_bit(CQ_FIELD_VOLUME) | cq_bit(CQ_FIELD_MASS) | cq_constant_bits()))) return;
  real *data = (real *)s->params_adj;
  cq_gradients *g = &s->gradients;
  double *out[CQ_PARAM_SLOTS + CQ_SLOTS_MAX] = {g->mass, g->volume};
  for (int32_t k = 0; k < s->model->slot_count; k++) out[CQ_PARAM_SLOTS + k] = g->slot[k];
  for (int32_t slot = chunk_begin * CQ_CHUNK; slot < chunk_end * CQ_CHUNK; slot++) {
    const int32_t p = s->arrangement->order[slot];
    for (int32_t k = 0; k < s->params; k++) {
      real *value = slot_at(data, s->params, slot, k);
      if (p >= 0) out[k][p] += (double)s_value(*value);
      *value = (real)0;
    }
  }
}

// Multiplies reals [begin, end) of data by a factor; a factor of 0 also removes what is not finite.
static void discount_reals(void *data, const int64_t begin, const int64_t end, const real factor) {
  if (s_value(factor) == 0) memset((void *)((real *)data + begin), 0, (size_t)(end - begin) * sizeof(real));
  for (int64_t i = begin; i < end && s_value(factor) != 0; i++) ((real *)data)[i] *= factor;
}

// The sum of squares of the first `count` reals of data, in double. count: a multiple of 8.
static double square_of(const void *data, const int64_t count) {
  double sum[8] = {0};
  for (int64_t i = 0; i < count / 8; i++)
    for (int k = 0; k < 8; k++) {
      const double x = (double)s_value(((const real *)data)[8 * i + k]);
      sum[k] += x * x;
    }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// The sum of squares of the adjoint of the live state and its internal variables. Padding slots must be zero.
static double adj_square(const cq_scene *s) {
  const int64_t slots = (int64_t)s->chunks * CQ_CHUNK;
  const double internal = s->internal_adj ? square_of(s->internal_adj, slots * s->model->internal_count) : 0;
  return square_of(s->adj, slots * FIELDS) + internal;
}

// Multiplies the adjoint of the live state in chunks [chunk_begin, chunk_end) by a factor, internal variables included.
static void discount_adj(cq_scene *s, int32_t chunk_begin, int32_t chunk_end, double factor) {
  const int64_t begin = (int64_t)chunk_begin * CQ_CHUNK, end = (int64_t)chunk_end * CQ_CHUNK;
  const int64_t internals = s->model->internal_count;
  discount_reals(s->adj, begin * FIELDS, end * FIELDS, (real)factor);
  if (s->internal_adj) discount_reals(s->internal_adj, begin * internals, end * internals, (real)factor);
}

// At step 0: adds the adjoints of position, velocity, C and F in chunks [chunk_begin, chunk_end) to the gradients in
// the user's order.
static void store_state_adj(cq_scene *s, int32_t chunk_begin, int32_t chunk_end) {
  real *data = (real *)s->adj;
  double *out[4] = {s->gradients.position, s->gradients.velocity, s->gradients.affine, s->gradients.deformation};
  const int32_t first[4] = {X, V, C, F}, width[4] = {CQ_DIM, CQ_DIM, CQ_DIM * CQ_DIM, CQ_DIM * CQ_DIM};
  for (int32_t slot = chunk_begin * CQ_CHUNK; slot < chunk_end * CQ_CHUNK; slot++) {
    const int64_t p = s->arrangement->order[slot];
    for (int q = 0; q < 4 && p >= 0; q++)
      for (int k = 0; k < width[q]; k++)
        out[q][p * width[q] + k] += (double)s_value(*slot_at(data, FIELDS, slot, first[q] + k));
  }
}

// Returns 1 if a coordinate x along an axis [cells] is in the world, 0 if not or NaN. Rounding may put what lies on the
// upper edge just above it.
CQ_INLINE int in_world(const cq_model *m, const int axis, const real x) {
  return s_value(x) >= 0 && s_value(x) <= m->cells[axis] * (1 + 1e-6);
}

// Returns the first axis along which the particle of a slot is outside the world; CQ_DIM if it is inside. data:
// particles of a slice.
static int axis_outside(const cq_scene *s, real *data, const int32_t slot) {
  const real inv_dx = (real)(1 / s->model->dx);
  for (int i = 0; i < CQ_DIM; i++)
    if (!in_world(s->model, i, inv_dx * *slot_at(data, FIELDS, slot, X + i))) return i;
  return CQ_DIM;
}

// After a failed step: finds the first particle of a slice, in the user's order, that is not finite, else the first
// outside of the world, else the first with det F <= 0, and sets health. If there is none, health->bad stays, and its
// value and particle are the smallest det F.
static void diagnose(const cq_scene *s, const cq_slice *slice, cq_health *health) {
  real *data = (real *)slice->data;
  for (int32_t p = 0; p < s->model->particle_count; p++) {
    const int32_t slot = s->arrangement->slot[p];
    for (int k = 0; k < FIELDS; k++) {
      const double value = (double)s_value(*slot_at(data, FIELDS, slot, k));
      if (value - value == 0) continue;
      health->bad = CQ_HEALTH_NOT_FINITE;
      health->particle = p;
      health->value = value;
      return;
    }
  }
  for (int32_t p = 0; p < s->model->particle_count; p++) {
    const int32_t slot = s->arrangement->slot[p];
    const int axis = axis_outside(s, data, slot);
    if (axis == CQ_DIM) continue;
    health->bad = CQ_HEALTH_LEFT_GRID;
    health->particle = p;
    health->value = (double)s_value(*slot_at(data, FIELDS, slot, X + axis));
    health->axis = axis;
    return;
  }
  health->value = INFINITY;
  for (int32_t p = 0; p < s->model->particle_count; p++) {
    double f[CQ_DIM][CQ_DIM];
    for (int i = 0; i < CQ_DIM; i++)
      for (int j = 0; j < CQ_DIM; j++)
        f[i][j] = (double)s_value(*slot_at(data, FIELDS, s->arrangement->slot[p], F + i * CQ_DIM + j));
#if CQ_DIM == 2
    const double det = f[0][0] * f[1][1] - f[0][1] * f[1][0];
#else
    const double det = f[0][0] * (f[1][1] * f[2][2] - f[1][2] * f[2][1]) -
                       f[0][1] * (f[1][0] * f[2][2] - f[1][2] * f[2][0]) +
                       f[0][2] * (f[1][0] * f[2][1] - f[1][1] * f[2][0]);
#endif
    if (det >= health->value) continue;
    health->particle = p;
    health->value = det;
    if (det > 0) continue;
    health->bad = CQ_HEALTH_INVERTED;
    return;
  }
}
