// physics_material: every law of engine/physics/material/. A new one is a row of `laws`.

struct range {
  double low, high;
};
struct law {
  int kind, power;
  const char *name;
  bool invariant;              // under rotations; and tau is symmetric
  // of each slot of the material, those beside the law first; low = high = 0: there is none
  range constant[CQ_SLOTS_MAX];
  range internal;              // of each internal variable
  int viscous = 0, branches = 0;
  bool kinked = false;         // P has no derivative at rest
};
static const law laws[] = {
    {CQ_MATERIAL_NEO_HOOKEAN, 0, "neo-Hookean", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_NEO_HOOKEAN, 2, "neo-Hookean, power 2", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_NEO_HOOKEAN, 8, "neo-Hookean, power 8", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_COROTATED, 0, "fixed corotated", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_COROTATED, 4, "fixed corotated, power 4", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_LINEAR, 0, "linear", false, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_LINEAR, 6, "linear, power 6", false, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_SAINT_VENANT_KIRCHHOFF, 0, "Saint Venant-Kirchhoff", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}},
    {CQ_MATERIAL_SAINT_VENANT_KIRCHHOFF,
     2,
     "Saint Venant-Kirchhoff, power 2",
     true,
     {{0.5, 10}, {0.5, 10}, {0.5, 10}},
     {0, 0}},
    {CQ_MATERIAL_MOONEY_RIVLIN, 0, "Mooney-Rivlin", true, {{0.5, 3}, {-0.2, 3}, {0.5, 100}}, {0, 0}},
    {CQ_MATERIAL_YEOH, 0, "Yeoh", true, {{0.5, 3}, {-0.1, 0.1}, {0.001, 0.01}, {0.5, 100}}, {0, 0}},
    {CQ_MATERIAL_OGDEN,
     0,
     "Ogden",
     true,
     {{0.5, 3}, {0.01, 0.1}, {-1, -0.01}, {1, 2}, {3, 6}, {-3, -0.5}, {0.5, 100}},
     {0, 0}},
    // as neo-Hookean, and with terms that are not used
    {CQ_MATERIAL_OGDEN,
     0,
     "Ogden of one term",
     true,
     {{0.5, 3}, {0, 0}, {0, 0}, {2, 2}, {0, 0}, {0, 0}, {0.5, 100}},
     {0, 0}},
    {CQ_MATERIAL_TRANSVERSELY_ISOTROPIC,
     0,
     "transversely isotropic",
     true,
     {{0.5, 3}, {5, 10}, {0.5, 2}, {0.005, 0.02}, {0.3, 1}, {0.3, 1}, {0, D == 3 ? 1 : 0}},
     {0, 0},
     0,
     0,
     true},
    {CQ_MATERIAL_OGDEN,
     0,
     "Ogden, viscous, a Maxwell branch",
     true,
     {{0.1, 2}, {0.2, 1}, {0.002, 0.1}, {0.5, 3}, {0.01, 0.1}, {-1, -0.01}, {1, 2}, {3, 6}, {-3, -0.5}, {0.5, 100}},
     {-1, 1},
     1,
     1},
    {CQ_MATERIAL_FLUID, 0, "fluid", true, {{0.5, 10}, {1, 8}, {0.01, 0.3}}, {0, 0}},
    {CQ_MATERIAL_FLUID, 0, "fluid, linear in the density", true, {{0.5, 10}, {1, 1}, {0.01, 0.3}}, {0, 0}},
    {CQ_MATERIAL_FLUID,
     0,
     "viscous fluid that bears any tension",
     true,
     {{0.1, 2}, {0.5, 1}, {6.5, 7.5}, {9, 10}},
     {0, 0},
     1},
    {CQ_MATERIAL_NEO_HOOKEAN,
     0,
     "neo-Hookean of Kelvin and Voigt",
     true,
     {{0.1, 2}, {0.5, 10}, {0.5, 10}, {0.5, 10}},
     {0, 0},
     1},
    {CQ_MATERIAL_LINEAR, 0, "viscous linear", false, {{0.1, 2}, {0.5, 10}, {0.5, 10}, {0.5, 10}}, {0, 0}, 1},
    {CQ_MATERIAL_VON_MISES, 0, "von Mises", true, {{0.5, 10}, {0.5, 10}, {0.5, 10}, {0.5, 5}, {0.1, 5}}, {0, 0.5}},
    {CQ_MATERIAL_VON_MISES,
     2,
     "von Mises, power 2",
     true,
     {{0.5, 10}, {0.5, 10}, {0.5, 10}, {0.01, 0.1}, {0.1, 5}},
     {0, 0.5}},
    {CQ_MATERIAL_DRUCKER_PRAGER, 0, "Drucker-Prager", true, {{0.5, 10}, {0.5, 10}, {0.2, 1.2}, {0.05, 1}}, {0, 0.3}},
    {CQ_MATERIAL_SNOW, 0, "snow", true, {{0.5, 10}, {0.5, 10}, {1, 5}, {0.05, 0.3}, {0.05, 0.3}}, {-0.3, 0.1}},
    {CQ_MATERIAL_NEO_HOOKEAN,
     2,
     "neo-Hookean, a Maxwell branch",
     true,
     {{0.2, 1}, {0.002, 0.1}, {0.5, 10}, {0.5, 10}, {0.5, 10}},
     {-1, 1},
     0,
     1},
    {CQ_MATERIAL_COROTATED,
     0,
     "corotated, viscous, three Maxwell branches",
     true,
     {{0.1, 2},
      {0.1, 0.5},
      {0.002, 0.1},
      {0.1, 0.5},
      {0.01, 0.1},
      {0.1, 0.5},
      {0.1, 10},
      {0.5, 10},
      {0.5, 10},
      {0.5, 10}},
     {-1, 1},
     1,
     3},
};

// inputs of all maps: F, slots, internal variables, C
enum { LAW_C = DD, LAW_Q = DD + CQ_SLOTS_MAX, LAW_R = LAW_Q + CQ_INTERNALS_MAX, LAW_INPUTS = LAW_R + DD };

template <typename Point, typename T> static void fill_point(Point *at, const cq_material *material, const T *in) {
  at->law = material;
  at->dt = 0.01;
  for (int k = 0; k < DD; k++) at->f[k / D][k % D] = in[k];
  for (int k = 0; k < DD; k++) at->rate[k / D][k % D] = in[LAW_R + k];
  for (int k = 0; k < CQ_SLOTS_MAX; k++) *material_slot(material, at, k) = in[LAW_C + k];
  for (int k = 0; k < CQ_INTERNALS_MAX; k++) at->internal[k] = in[LAW_Q + k];
}

static void clear_point(const cq_material *material, product::MaterialPoint *grad) {
  memset(grad, 0, sizeof *grad);
  grad->law = material;
}

static void add_point(double *grad_in, product::MaterialPoint *grad) {
  for (int k = 0; k < DD; k++) grad_in[k] += grad->f[k / D][k % D];
  for (int k = 0; k < DD; k++) grad_in[LAW_R + k] += grad->rate[k / D][k % D];
  for (int k = 0; k < CQ_SLOTS_MAX; k++) grad_in[LAW_C + k] += *product::material_slot(grad->law, grad, k);
  for (int k = 0; k < CQ_INTERNALS_MAX; k++) grad_in[LAW_Q + k] += grad->internal[k];
}

struct law_map {
  const law *l;
  shape drawn;
  cq_material material;
  enum { inputs = LAW_INPUTS };
  law_map(const law *of, shape kind) : l(of), drawn(kind), material{} {
    material.kind = of->kind;
    material.incompressible = of->power;
    material.viscous = of->viscous;
    material.branches = of->branches;
  }
  int internals() const { return cq_material_internals(&material, D); }
  int extras() const { return product::material_extras(&material); }
  void draw(double *in) const {
    random_deformation(drawn, in);
    for (int k = 0; k < CQ_SLOTS_MAX; k++) in[LAW_C + k] = uniform(l->constant[k].low, l->constant[k].high);
    for (int k = 0; k < CQ_INTERNALS_MAX; k++)
      in[LAW_Q + k] =
          k < internals() ? cq_law_of(l->kind)->internal_start + uniform(l->internal.low, l->internal.high) : 0;
    for (int k = 0; k < DD; k++) in[LAW_R + k] = uniform(-1, 1);
  }
  // inputs that the stress does not have: constants of the update, of branches, and in P
  // without the viscosity that of tau
  marks absent(bool kirchhoff) const {
    marks mask = 0;
    for (int k = 0; k < CQ_SLOTS_MAX; k++) {
      const int own = k - extras();
      const bool volumetric = own >= 0 && cq_law_of(l->kind)->slot[own] == CQ_SLOT_VOLUMETRIC;
      const bool viscosity = k == 0 && l->viscous && kirchhoff, modulus = own >= 0 && (!volumetric || l->power);
      mask |= (marks)(l->constant[k].high == 0 || !(viscosity || (modulus && !of_update(own)))) << (LAW_C + k);
    }
    // of branches the stress has Q, not S; of laws that of snow has what was compacted
    const int first = l->branches ? SYM : l->kind == CQ_MATERIAL_SNOW ? 0 : internals();
    for (int k = 0; k < CQ_INTERNALS_MAX; k++) mask |= (marks)(k < first || k >= internals()) << (LAW_Q + k);
    for (int k = 0; k < DD; k++) mask |= (marks)!(l->viscous && kirchhoff) << (LAW_R + k);
    return mask;
  }
  // constants of the law that its stress does not have
  bool of_update(int own) const {
    switch (l->kind) {
      case CQ_MATERIAL_FLUID: return own == product::FLUID_TENSION;
      case CQ_MATERIAL_VON_MISES: return own >= product::VON_MISES_YIELD;
      case CQ_MATERIAL_DRUCKER_PRAGER: return own >= product::SAND_ANGLE;
      case CQ_MATERIAL_SNOW: return own >= product::SNOW_COMPRESSION;
    }
    return false;
  }
};

// of F alone: P is the derivative of the energy by F
struct energy_map : law_map {
  using law_map::law_map;
  enum { outputs = 1 };
  mutable double last[LAW_INPUTS];
  void draw(double *in) const {
    law_map::draw(in);
    memcpy(last, in, sizeof last);
  }
  void primal(const dual *in, dual *out) const {
    over_dual::MaterialPoint at;
    dual fixed[LAW_INPUTS];
    for (int k = 0; k < LAW_INPUTS; k++) fixed[k] = k < DD ? in[k] : dual(last[k]);
    fill_point(&at, &material, fixed);
    out[0] = over_dual::material_energy(&at);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::MaterialPoint at;
    matrix p;
    fill_point(&at, &material, in);
    product::material_stress(&at, p);
    for (int k = 0; k < DD; k++) grad_in[k] += grad_out[0] * p[k / D][k % D];
  }
};

struct stress_map : law_map {
  using law_map::law_map;
  enum { outputs = DD };
  void primal(const dual *in, dual *out) const {
    over_dual::MaterialPoint at;
    fill_point(&at, &material, in);
    over_dual::material_stress(&at, square(out));
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::MaterialPoint at, grad;
    fill_point(&at, &material, in);
    clear_point(&material, &grad);
    product::material_stress_adj(&at, &grad, square(grad_out));
    add_point(grad_in, &grad);
  }
};

// The same with branches at the end of a step (E105): these have moduli, times and S of the start as well.
struct end_energy_map : energy_map {
  using energy_map::energy_map;
  void primal(const dual *in, dual *out) const {
    over_dual::MaterialPoint at;
    dual fixed[LAW_INPUTS], p[DD];
    for (int k = 0; k < LAW_INPUTS; k++) fixed[k] = k < DD ? in[k] : dual(last[k]);
    fill_point(&at, &material, fixed);
    out[0] = over_dual::material_end_stress(&at, square(p));
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::MaterialPoint at;
    matrix p;
    fill_point(&at, &material, in);
    product::material_end_stress(&at, p);
    for (int k = 0; k < DD; k++) grad_in[k] += grad_out[0] * p[k / D][k % D];
  }
};

struct end_stress_map : stress_map {
  using stress_map::stress_map;
  void primal(const dual *in, dual *out) const {
    over_dual::MaterialPoint at;
    fill_point(&at, &material, in);
    over_dual::material_end_stress(&at, square(out));
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::MaterialPoint at, grad;
    fill_point(&at, &material, in);
    clear_point(&material, &grad);
    product::material_end_stress_adj(&at, &grad, square(grad_out));
    add_point(grad_in, &grad);
  }
  marks absent() const {
    marks mask = stress_map::absent(false);
    for (int k = l->viscous; k < extras(); k++) mask &= ~((marks)1 << (LAW_C + k));
    for (int k = 0; k < SYM; k++) mask &= ~((marks)1 << (LAW_Q + k));
    return mask;
  }
};

// That stress is the one at F^ after the update of a step that has come there.
static void check_end(const law &l) {
  const law_map map(&l, ANY);
  double worst = 0;
  for (int round = 0; round < DRAWS; round++) {
    double in[LAW_INPUTS];
    product::MaterialPoint at;
    matrix end, after;
    map.draw(in);
    fill_point(&at, &map.material, in);
    product::material_end_stress(&at, end);
    product::material_update(&at);
    product::material_stress(&at, after);
    for (int k = 0; k < DD; k++)
      worst = fmax(worst, fabs(end[k / D][k % D] - after[k / D][k % D]) / (1 + fabs(after[k / D][k % D])));
  }
  CHECK(worst < 1e-12, "%dD %s: the stress at the end of a step is off that after it by %g", D, l.name, worst);
}

struct kirchhoff_map : law_map {
  bool fused;
  kirchhoff_map(const law *of, shape kind, bool by_fused) : law_map(of, kind), fused(by_fused) {}
  enum { outputs = DD };
  void primal(const dual *in, dual *out) const {
    over_dual::MaterialPoint at;
    over_dual::MaterialKept kept;
    fill_point(&at, &material, in);
    if (fused)
      over_dual::material_kirchhoff_fused(&at, &kept, square(out));
    else
      over_dual::material_kirchhoff_plain(&at, square(out));
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::MaterialPoint at, grad;
    product::MaterialKept kept;
    fill_point(&at, &material, in);
    clear_point(&material, &grad);
    product::material_keep(l->kind, at.f, det(in), &kept);
    if (fused)
      product::material_kirchhoff_fused_adj(&at, &kept, &grad, square(grad_out));
    else
      product::material_kirchhoff_plain_adj(&at, &grad, square(grad_out));
    add_point(grad_in, &grad);
  }
};

struct update_map : law_map {
  using law_map::law_map;
  enum { outputs = DD + CQ_INTERNALS_MAX };
  void primal(const dual *in, dual *out) const {
    over_dual::MaterialPoint at;
    fill_point(&at, &material, in);
    over_dual::material_update(&at);
    for (int k = 0; k < DD; k++) out[k] = at.f[k / D][k % D];
    for (int k = 0; k < CQ_INTERNALS_MAX; k++) out[DD + k] = at.internal[k];
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::MaterialPoint at, grad;
    fill_point(&at, &material, in);
    clear_point(&material, &grad);
    for (int k = 0; k < DD; k++) grad.f[k / D][k % D] = grad_out[k];
    for (int k = 0; k < CQ_INTERNALS_MAX; k++) grad.internal[k] = grad_out[DD + k];
    product::material_update_adj(&at, &grad);
    add_point(grad_in, &grad);
  }
};

static double kirchhoff_at(const cq_material *material, const double *in, matrix tau) {
  product::MaterialPoint at;
  fill_point(&at, material, in);
  return product::material_kirchhoff_plain(&at, tau);
}

// No stress at rest, det F comes with the stress, and what the law promises about rotations; the
// fused form is the plain one.
static void check_law(const law &l) {
  const law_map map(&l, ANY);
  double rest = 0, turned = 0, skew = 0, volume = 0, apart = 0;
  for (int round = 0; round < DRAWS; round++) {
    double in[LAW_INPUTS], still[LAW_INPUTS], rotated[LAW_INPUTS];
    matrix q, tau, tau_q, qt, qtq, other;
    map.draw(in);
    memcpy(still, in, sizeof in);
    memcpy(rotated, in, sizeof in);
    random_deformation(IDENTITY, still);
    for (int k = 0; k < map.internals(); k++) still[LAW_Q + k] = cq_law_of(l.kind)->internal_start;
    for (int k = 0; k < DD; k++) still[LAW_R + k] = 0;
    random_rotation(q);
    product::mat_mul(q, square(in), square(rotated));
    product::mat_mul(q, square(in + LAW_R), qt);
    product::mat_mul_nt(qt, q, square(rotated + LAW_R));
    kirchhoff_at(&map.material, still, tau);
    for (int k = 0; k < DD; k++) rest = fmax(rest, fabs(tau[k / D][k % D]));
    volume = fmax(volume, fabs(kirchhoff_at(&map.material, in, tau) - det(in)));
    kirchhoff_at(&map.material, rotated, tau_q);
    product::mat_mul(q, tau, qt);
    product::mat_mul_nt(qt, q, qtq);
    double size = 1;
    for (int k = 0; k < DD; k++) size = fmax(size, fabs(tau[k / D][k % D]));
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        turned = fmax(turned, fabs(qtq[i][j] - tau_q[i][j]) / size);
        skew = fmax(skew, fabs(tau[i][j] - tau[j][i]) / size);
      }
    if (!product::material_is_fused(&map.material)) continue;
    product::MaterialPoint at;
    product::MaterialKept kept;
    fill_point(&at, &map.material, in);
    product::material_kirchhoff_fused(&at, &kept, other);
    for (int k = 0; k < DD; k++) apart = fmax(apart, fabs(other[k / D][k % D] - tau[k / D][k % D]) / size);
  }
  CHECK(rest < 1e-13, "%dD %s: stress at rest is %g", D, l.name, rest);
  CHECK(volume < 1e-14, "%dD %s: det F is off by %g", D, l.name, volume);
  if (l.invariant)
    CHECK(turned < 1e-12 && skew < 1e-12, "%dD %s: off by %g under rotation, skew by %g", D, l.name, turned, skew);
  if (product::material_is_fused(&map.material))
    CHECK(apart < 1e-13, "%dD %s: the fused form is off by %g", D, l.name, apart);
}

// The bound on the wave speed holds for every direction at rest, and is not far above: rho c^2 is an eigenvalue of the
// acoustic tensor Q a = dP(a n^T) n.
static void check_modulus(const law &l) {
  const law_map map(&l, IDENTITY);
  const cq_law *of = cq_law_of(l.kind);
  double above = 0, below = 0;
  for (int round = 0; round < DRAWS; round++) {
    double in[LAW_INPUTS], length = 0, fastest = 0;
    product::MaterialPoint at;
    vector n;
    map.draw(in);
    for (int k = 0; k < map.internals(); k++) in[LAW_Q + k] = of->internal_start;
    fill_point(&at, &map.material, in);
    for (double &x : n) length += (x = uniform(-1, 1), x * x);
    // the power method, along whatever the first direction holds
    vector a;
    for (int i = 0; i < D; i++) a[i] = n[i] + 0.3 * uniform(-1, 1);
    for (int step = 0; step < 200; step++) {
      matrix df, dp;
      double size = 0;
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) df[i][j] = a[i] * n[j] / sqrt(length);
      product::material_stress_derivative(&at, df, dp);
      for (int i = 0; i < D; i++) {
        a[i] = 0;
        for (int j = 0; j < D; j++) a[i] += dp[i][j] * n[j] / sqrt(length);
        size += a[i] * a[i];
      }
      fastest = sqrt(size);
      for (int i = 0; i < D; i++) a[i] /= fastest;
    }
    const double bound = cq_material_modulus(&map.material, in + LAW_C);
    above = fmax(above, fastest / bound);
    below = fmax(below, bound / fastest);
  }
  CHECK(above < 1 + 1e-9, "%dD %s: a wave has %.6f times the bound on rho c^2", D, l.name, above);
  CHECK(below < 3, "%dD %s: the bound on rho c^2 is %.2f times that of the fastest wave", D, l.name, below);
}

// The kink of fibres that only pull, on both sides: stretched along the fibre by next to nothing they have a stiffness,
// and squeezed as little no part in the stress.
struct fibre_map : stress_map {
  double stretch;
  fibre_map(const law *of, double by) : stress_map(of, ANY), stretch(by) {}
  void draw(double *in) const {
    matrix r, s;
    double length = 0;
    law_map::draw(in);
    const double *d = in + LAW_C + product::FIBRES_ALONG;
    for (int i = 0; i < D; i++) length += d[i] * d[i];
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) s[i][j] = (i == j) + stretch * d[i] * d[j] / length;
    random_rotation(r);
    product::mat_mul(r, s, square(in));
  }
};

static void check_fibres(const law &l) {
  marks fibres = 0;
  for (int k = product::FIBRES_K1; k < product::FIBRES_COUNT; k++) fibres |= (marks)1 << (LAW_C + k);
  const fibre_map taut(&l, 1e-3), slack(&l, -1e-3);
  char name[64];
  snprintf(name, sizeof name, "%dD taut fibres", D);
  hold(taut, name, taut.absent(false), (marks)1 << (LAW_C + product::FIBRES_K2));   // of third order in the stretch
  snprintf(name, sizeof name, "%dD slack fibres", D);
  hold(slack, name, slack.absent(false) | fibres);
  // the jump of dP along the fibre
  double worst = 0;
  for (int round = 0; round < DRAWS; round++) {
    double in[LAW_INPUTS], along[2] = {0, 0}, length = 0;
    slack.draw(in);
    for (int i = 0; i < D; i++) length += pow(in[LAW_C + product::FIBRES_ALONG + i], 2);
    for (int side = 0; side < 2; side++) {
      product::MaterialPoint at;
      matrix f, n, dp;
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
          n[i][j] = in[LAW_C + product::FIBRES_ALONG + i] * in[LAW_C + product::FIBRES_ALONG + j] / length;
          f[i][j] = (i == j) + (side ? 1e-9 : -1e-9) * n[i][j];
        }
      memcpy(in, f, sizeof f);
      fill_point(&at, &slack.material, in);
      product::material_stress_derivative(&at, n, dp);
      for (int k = 0; k < DD; k++) along[side] += n[k / D][k % D] * dp[k / D][k % D];
    }
    const double k1 = in[LAW_C + product::FIBRES_K1];
    worst = fmax(worst, fabs(along[1] - along[0] - 4 * k1) / k1);
  }
  CHECK(worst < 1e-6, "%dD fibres: the jump of dP is off 4 k1 by %g", D, worst);
}

static void check_materials(void) {
  for (const law &l : laws) {
    char name[128];
    const marks constants = (((marks)1 << (LAW_INPUTS - DD)) - 1) << DD;
    check_law(l);
    check_modulus(l);
    if (l.kind == CQ_MATERIAL_TRANSVERSELY_ISOTROPIC) check_fibres(l);
    if (l.branches) check_end(l);
    for (int k = 0; k < SHAPES; k++) {
      const shape drawn = (shape)k;
      // where the body is at rest constants have no influence, and F none on the energy
      const marks unchecked = drawn == ANY ? 0 : ~(marks)0;
      snprintf(name, sizeof name, "%dD energy of %s, %s", D, l.name, shape_name[k]);
      // at rest it has no slope: check_law looks at the stress there
      // stretches a hundred times apart: cofactors have lost four digits
      if (drawn != IDENTITY && drawn != ROTATION)
        hold(energy_map(&l, drawn), name, constants, unchecked, drawn == STRETCHED ? 1e-11 : 1e-12);
      if (l.kinked && (drawn == IDENTITY || drawn == ROTATION)) continue;
      const stress_map stress(&l, drawn);
      snprintf(name, sizeof name, "%dD stress of %s, %s", D, l.name, shape_name[k]);
      hold(stress, name, stress.absent(false), unchecked);
      snprintf(name, sizeof name, "%dD Kirchhoff stress of %s, %s", D, l.name, shape_name[k]);
      hold(kirchhoff_map(&l, drawn, false), name, stress.absent(true), unchecked);
      if (product::material_is_fused(&stress.material)) {
        snprintf(name, sizeof name, "%dD fused stress of %s, %s", D, l.name, shape_name[k]);
        hold(kirchhoff_map(&l, drawn, true), name, stress.absent(true), unchecked);
      }
      if (l.branches) {
        const end_stress_map end(&l, drawn);
        snprintf(name, sizeof name, "%dD stress at the end of a step of %s, %s", D, l.name, shape_name[k]);
        hold(end, name, end.absent(), unchecked);
        if (drawn != IDENTITY && drawn != ROTATION)
          hold(end_energy_map(&l, drawn), name, constants, unchecked, drawn == STRETCHED ? 1e-11 : 1e-12);
      }
      if (cq_material_updates(&stress.material)) {
        snprintf(name, sizeof name, "%dD update of %s, %s", D, l.name, shape_name[k]);
        hold(update_map(&l, drawn), name, 0, ~(marks)0);
      }
    }
  }
}
