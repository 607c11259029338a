// matter: what a pass over particles reads of a chunk beside the grid, and the stress and the forces of its particles.

// everything about one chunk that stays during a pass over it
typedef struct {
  const cq_model *model;
  const real *params, *actuation;    // actuation is NULL for a chunk without actuation and forces
  const real *state;             // of the chunk
  int pressed;                   // some particle of the chunk is on a surface with a pressure
  const real *internal;          // NULL where no material has internal variables
  const cq_material *only;       // the material of a chunk that has but one
  const uint8_t *material;
  uint32_t materials;
} Matter;

// Returns what a pass over particles reads of chunk c apart from their state: constants, materials and actuation.
CQ_INLINE Matter matter_at(const cq_scene *s, const int32_t c) {
  const cq_arrangement *a = s->arrangement;
  Matter m;
  m.model = s->model;
  m.params = (const real *)a->params + AT(c, s->params, 0);
  m.state = m.internal = NULL;
  m.actuation = a->actuated[c] ? (const real *)s->actuation + AT(c, ACTUATION_FIELDS, 0) : NULL;
  m.pressed = a->actuated[c] >> CQ_DRIVE_PRESSURE & 1;
  m.material = a->material + c * CQ_CHUNK;
  m.materials = a->materials[c];
  m.only = NULL;
  for (int k = 0; m.materials >> k; k++)
    if (m.materials == 1u << k) m.only = &s->model->materials[k];
  return m;
}

// As matter_at, with the state and internal variables of the chunk's particles in the slice `in`.
CQ_INLINE Matter matter_of(const cq_scene *s, const cq_slice *in, const int32_t c) {
  Matter m = matter_at(s, c);
  m.state = (const real *)in->data + AT(c, FIELDS, 0);
  if (in->internal) m.internal = (const real *)in->internal + AT(c, s->model->internal_count, 0);
  return m;
}

// Number `which` of the params of particles h, h + 1, ... of a chunk: CQ_PARAM_MASS, CQ_PARAM_VOLUME, or a constant of
// their material from CQ_PARAM_SLOTS on.
CQ_INLINE Real param(const Matter *m, const int which, const int h) { return r_load(m->params + which * CQ_CHUNK + h); }

// Sets force to the force on each of particles h, h + 1, ... of a chunk: given by the user, by cables and chambers, and
// by pressures on their surface, which follow the deformation gradient f.
CQ_INLINE void force_of(const Matter *m, const int h, const Real f[CQ_DIM][CQ_DIM], Real force[CQ_DIM]) {
  EACH(i) force[i] = r_set((real)0);
  if (m->actuation) load_vector(m->actuation, FORCE, h, force);
  if (!m->pressed) return;
  Real pressure[CQ_DIM];
  load_vector(m->actuation, PRESSURE, h, pressure);
  pressure_force(f, pressure, force);
}

// A mask of particles h, h + 1, ... of a chunk: 1 where the material is number k, else 0.
CQ_INLINE Real is_material(const Matter *m, const int k, const int h) {
  real lane[CQ_LANES] __attribute__((aligned(64)));
  for (int l = 0; l < CQ_LANES; l++) lane[l] = (real)(m->material[h + l] == k);
  return r_load(lane);
}

// Sets at to what a fused law, whose stress the step inlines (material_is_fused), reads of particles h, h + 1, ...: F
// and constants.
CQ_INLINE void point_of_fused(const Matter *m, const cq_material *law, const int h, const Real f[CQ_DIM][CQ_DIM],
                              MaterialPoint *at) {
  at->law = law;
  CQ_UNROLL for (int k = 0; k < FUSED_SLOTS; k++) at->c[k] = param(m, CQ_PARAM_SLOTS + k, h);
  EACH(i) EACH(j) at->f[i][j] = f[i][j];
}

// Sets at to what any law reads of particles h, h + 1, ...: F, constants and internal variables; on the grid of the
// world also C, the rate of a viscous law.
static void point_of(const Matter *m, const cq_material *law, const int h, const Real f[CQ_DIM][CQ_DIM],
                     MaterialPoint *at) {
  at->law = law;
  at->dt = (real)m->model->dt;
  for (int k = 0; k < m->model->slot_count; k++) *material_slot(law, at, k) = param(m, CQ_PARAM_SLOTS + k, h);
  for (int k = 0; k < m->model->internal_count; k++) at->internal[k] = r_load(m->internal + k * CQ_CHUNK + h);
  if (law->viscous && m->state) load_matrix(m->state, C, h, at->rate);
  EACH(i) EACH(j) at->f[i][j] = f[i][j];
}

// Sets tau to the Kirchhoff stress P F^T of particles h, h + 1, ... by a law that is not inlined (fused); returns det
// F.
CQ_RARE Real stress_of_plain(const Matter *m, const cq_material *law, const int h, const Real f[CQ_DIM][CQ_DIM],
                             Real tau[CQ_DIM][CQ_DIM]) {
  MaterialPoint at;
  point_of(m, law, h, f, &at);
  return material_kirchhoff_plain(&at, tau);
}

// Sets tau to the Kirchhoff stress of particles h, h + 1, ... by `law`, as if all were of it, inlined if it is fused;
// returns det F. kept: terms that a fused law sets for its adjoint.
CQ_INLINE Real stress_of_law(const Matter *m, const cq_material *law, const int h, const Real f[CQ_DIM][CQ_DIM],
                             MaterialKept *kept, Real tau[CQ_DIM][CQ_DIM]) {
  if (!material_is_fused(law)) return stress_of_plain(m, law, h, f, tau);
  MaterialPoint at;
  point_of_fused(m, law, h, f, &at);
  return material_kirchhoff_fused(&at, kept, tau);
}

// Sets tau to the Kirchhoff stress of particles h, h + 1, ... of a chunk, each by its own material, with active stress;
// returns det F. kept: terms for the adjoint, valid if the chunk has one material.
CQ_INLINE Real stress_of(const Matter *m, const int h, const Real f[CQ_DIM][CQ_DIM], MaterialKept *kept,
                         Real tau[CQ_DIM][CQ_DIM]) {
  Real jac = f[0][0];
  if (m->only) jac = stress_of_law(m, m->only, h, f, kept, tau);
  if (!m->only) EACH(i) EACH(j) tau[i][j] = jac;   // overwritten: every lane has a material
  for (int k = 0; !m->only && m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    Real t[CQ_DIM][CQ_DIM];
    jac = stress_of_law(m, &m->model->materials[k], h, f, kept, t);
    const Real mine = is_material(m, k, h);
    EACH(i) EACH(j) tau[i][j] = r_pick(mine, t[i][j], tau[i][j]);
  }
  if (m->actuation) {
    Real sigma[CQ_SYM];
    for (int k = 0; k < CQ_SYM; k++) sigma[k] = r_load(m->actuation + (SIGMA + k) * CQ_CHUNK + h);
    actuation_stress(f, sigma, tau);
  }
  return jac;
}
