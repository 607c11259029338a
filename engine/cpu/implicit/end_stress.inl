// end_stress: what an implicit step asks of materials, on the spatial grid and on reference grids: energy and stress at
// F^, the deformation gradient at the end of the step, and their derivative.

enum {
  MATRIX = CQ_DIM * CQ_DIM,
  TENSOR = MATRIX * (MATRIX + 1) / 2,    // entries of a packed symmetric tensor over matrices
  DIAGONAL_PARTS = CQ_DIM - 1,           // of a node's diagonal block: three entries each
};

// The index of entry (a, b) of a symmetric matrix that is packed as its lower triangle, row by row.
CQ_INLINE int tensor_at(const int a, const int b) { return a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a; }

// The sum of all lanes, in double.
CQ_INLINE double lanes_total(const Real x) {
  real lane[CQ_LANES] __attribute__((aligned(64)));
  double sum = 0;
  r_store(lane, x);
  for (int l = 0; l < CQ_LANES; l++) sum += (double)s_value(lane[l]);
  return sum;
}

// Sets sigma to the actuation stress of particles h, h + 1, ... of a chunk, as a full matrix.
CQ_INLINE void load_sigma_matrix(const Matter *m, const int h, Real sigma[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) sigma[i][j] = r_load(m->actuation + (SIGMA + sym_at(i, j)) * CQ_CHUNK + h);
}

// (E80) Sets p to the first Piola-Kirchhoff stress P(F^) of particles h, h + 1, ... of a chunk, each of its material,
// with Maxwell branches and actuation (F^ sigma), and psi to the energy density. trial: F^.
CQ_RARE void end_stress_of(const Matter *m, const int h, const Real trial[CQ_DIM][CQ_DIM], Real p[CQ_DIM][CQ_DIM],
                      Real *psi) {
  *psi = r_set((real)0);
  EACH(i) EACH(j) p[i][j] = *psi;
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    MaterialPoint at;
    Real part[CQ_DIM][CQ_DIM];
    point_of(m, &m->model->materials[k], h, trial, &at);
    const Real energy = material_end_stress(&at, part), mine = m->only ? r_set((real)1) : is_material(m, k, h);
    EACH(i) EACH(j) p[i][j] = r_pick(mine, part[i][j], p[i][j]);
    *psi = r_pick(mine, energy, *psi);
  }
  if (!m->actuation) return;
  Real sigma[CQ_DIM][CQ_DIM], fs[CQ_DIM][CQ_DIM];
  load_sigma_matrix(m, h, sigma);
  mat_mul(trial, sigma, fs);
  EACH(i) EACH(j) p[i][j] += fs[i][j];
  *psi += (real)0.5 * mat_dot(trial, fs);
}

// (E83) Sets out to the product of the tensors of particles h, h + 1, ... of a chunk with a matrix y. tensor: packed,
// symmetric over matrices, {TENSOR, 16}.
CQ_INLINE void tensor_multiply(const real *tensor, const int h, const Real y[CQ_DIM][CQ_DIM],
                               Real out[CQ_DIM][CQ_DIM]) {
  CQ_UNROLL for (int row = 0; row < MATRIX; row++) {
    Real sum = r_load(tensor + tensor_at(row, 0) * CQ_CHUNK + h) * y[0][0];
    CQ_UNROLL for (int k = 1; k < MATRIX; k++)
      sum += r_load(tensor + tensor_at(row, k) * CQ_CHUNK + h) * y[k / CQ_DIM][k % CQ_DIM];
    out[row / CQ_DIM][row % CQ_DIM] = sum;
  }
}

// The packed tensors {TENSOR, 16} of the particles of chunk c, second derivatives of their potential (tensors).
CQ_INLINE const real *tensor_of_chunk(const cq_scene *s, const int32_t c) {
  return (const real *)s->implicit.tensor + AT(c, TENSOR, 0);
}

// ---- tensors --------------------------------------------------------------------------------------------------------
// H of a particle, C -> (dP(C F)) F^T at F^ = A F, A = I + dt C(v), as its entries (a j, b l).

#define ENTRIES_EACH(row, column)                                                                                      \
  CQ_UNROLL for (int row = 0; row < MATRIX; row++) CQ_UNROLL for (int column = 0; column <= row; column++)

// (E83) Sets t to the packed tensor C -> dP(C F) F^T of neo-Hookean particles at F^ = A F, A = a and F = f. Its P = mu
// F + p cof(F) has the derivative mu dF + p dcof + s <cof, dF> cof, and with cof(A F) = cof(A) cof(F) little is left of
// F. dcof(A; C) is the sum over m, n of eps_abm eps_jln A_mn C_bl.
CQ_INLINE void neo_hookean_tensor(const MaterialPoint *at, const Real a[CQ_DIM][CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                                  Real t[TENSOR]) {
  const int power = material_power(at->law);
  Real left[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM];
  mat_mul_nt(f, f, left);
  mat_cofactor(a, cof);
  const Real volume = mat_det(f), jac = volume * mat_det_of(a, cof), mu = at->c[LAME_MU], lambda = at->c[LAME_LAMBDA];
  Real pressure = (lambda * r_log(jac) - mu) / jac, slope = (lambda / jac - pressure) / jac;
  if (power) {
    const Real e = jac - (real)1, k = (real)power * at->c[LAME_VOLUMETRIC];
    pressure += k * volumetric_odd_power(e, power);
    slope += (real)(power - 1) * k * volumetric_even_power(e, power);
  }
  pressure = pressure * volume;
  slope = slope * volume * volume;
  ENTRIES_EACH(row, column) {
    const int i = row / CQ_DIM, j = row % CQ_DIM, b = column / CQ_DIM, l = column % CQ_DIM;
    Real sum = slope * cof[i][j] * cof[b][l];
    if (i == b) sum += mu * left[j][l];
    if (i != b && j != l) {
      const int odd = ((b - i + 3) % 3 == 1) != ((l - j + 3) % 3 == 1);
      Real size = pressure;
      if (CQ_DIM == 3) size = size * a[(3 - i - b) % CQ_DIM][(3 - j - l) % CQ_DIM];
      if (odd)
        sum -= size;
      else
        sum += size;
    }
    t[tensor_at(row, column)] = sum;
  }
}

// (E83) Sets t to the packed tensor C -> dP(C F) F^T of particles of one law with its Maxwell branches, at F^ = A F, A
// = a and F = f: in closed form for neo-Hookean material, else by one derivative for each entry of C.
CQ_RARE void law_tensor(const MaterialPoint *at, const Real a[CQ_DIM][CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                        Real t[TENSOR]) {
  if (at->law->kind == CQ_MATERIAL_NEO_HOOKEAN && !at->law->branches) {
    neo_hookean_tensor(at, a, f, t);
    return;
  }
  const Real zero = f[0][0] - f[0][0];
  for (int column = 0; column < MATRIX; column++) {
    Real df[CQ_DIM][CQ_DIM], dp[CQ_DIM][CQ_DIM], out[CQ_DIM][CQ_DIM];
    EACH(i) EACH(j) df[i][j] = zero;
    EACH(j) df[column / CQ_DIM][j] = f[column % CQ_DIM][j];
    material_end_stress_derivative(at, df, dp);
    mat_mul_nt(dp, f, out);
    for (int row = column; row < MATRIX; row++) t[tensor_at(row, column)] = out[row / CQ_DIM][row % CQ_DIM];
  }
}

// (E83) Sets t to the packed tensors C -> dP(C F) F^T of particles h, h + 1, ... of a chunk, each of its material, at
// F^ = A F, A = a and F = f; actuation adds the map C -> C F sigma F^T.
CQ_RARE void tensor_of(const Matter *m, const int h, const Real a[CQ_DIM][CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                         Real t[TENSOR]) {
  Real trial[CQ_DIM][CQ_DIM];
  mat_mul(a, f, trial);
  for (int k = 0; k < TENSOR; k++) t[k] = r_set((real)0);
  for (int k = 0; m->materials >> k; k++) {
    if (!(m->materials >> k & 1)) continue;
    MaterialPoint at;
    Real part[TENSOR];
    point_of(m, &m->model->materials[k], h, trial, &at);
    law_tensor(&at, a, f, part);
    const Real mine = m->only ? r_set((real)1) : is_material(m, k, h);
    for (int e = 0; e < TENSOR; e++) t[e] = r_pick(mine, part[e], t[e]);
  }
  if (!m->actuation) return;
  Real sigma[CQ_DIM][CQ_DIM], fs[CQ_DIM][CQ_DIM], turned[CQ_DIM][CQ_DIM];
  load_sigma_matrix(m, h, sigma);
  mat_mul(f, sigma, fs);
  mat_mul_nt(fs, f, turned);
  ENTRIES_EACH(row, column)
    if (row / CQ_DIM == column / CQ_DIM) t[tensor_at(row, column)] += turned[row % CQ_DIM][column % CQ_DIM];
}

// entries (a, b) of a node's diagonal block of H that each part of it has
static const int diagonal_entry[DIAGONAL_PARTS][3][2] = {
#if CQ_DIM == 2
    {{0, 0}, {1, 1}, {0, 1}},
#else
    {{0, 0}, {1, 1}, {2, 2}}, {{0, 1}, {0, 2}, {1, 2}},
#endif
};
