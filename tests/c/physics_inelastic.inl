// physics_inelastic: what fluids, viscous and plastic materials do beyond the checks of every law: closed forms, and both sides of
// each kink. Included by physics_dual.inl.

static cq_material plain_material(int kind) {
  cq_material m = {};
  m.kind = kind;
  return m;
}

static product::MaterialPoint point_at(const cq_material *material, double step) {
  product::MaterialPoint at = {};
  at.law = material;
  at.dt = step;
  for (int i = 0; i < D; i++) at.f[i][i] = 1;
  return at;
}

// ---- fluid ------------------------------------------------------------------------------------------------------------------

// It cavitates where its tension is the largest that it bears; below nothing is lost, above F takes no part. A linear equation of
// state has the bulk modulus as the slope of the pressure by the density.
static void check_fluid(void) {
  using namespace product;
  const cq_material material = plain_material(CQ_MATERIAL_FLUID);
  MaterialPoint at = point_at(&material, 0.01);
  at.c[FLUID_BULK] = 10;
  at.c[FLUID_EXPONENT] = 7;
  at.c[FLUID_TENSION] = 0.4;
  matrix p, tau;
  for (int i = 0; i < D; i++) at.f[i][i] = 3;
  material_update(&at);
  const double most = mat_det(at.f);
  material_kirchhoff_plain(&at, tau);
  CHECK(fabs(tau[0][0] / most - 0.4) < 1e-12, "%dD fluid: it cavitates at a tension of %.15g of 0.4", D, tau[0][0] / most);
  for (int side = -1; side <= 1; side += 2) {
    MaterialPoint grad = {};
    const double jac = most * (1 + side * 1e-9), stretch = pow(jac, 1.0 / D);
    for (int i = 0; i < D; i++) at.f[i][i] = stretch;
    grad.f[0][0] = 1;
    material_update_adj(&at, &grad);
    material_update(&at);
    CHECK(fabs(mat_det(at.f) - (side < 0 ? jac : most)) < 1e-14, "%dD fluid at the kink: J is %.15g", D, mat_det(at.f));
    CHECK(side < 0 ? fabs(grad.f[0][0] - 1.0 / D) < 1e-12 && grad.c[FLUID_TENSION] == 0 : grad.f[0][0] == 0 && grad.c[FLUID_TENSION] > 0,
          "%dD fluid at the kink: gradients %g by F and %g by the tension", D, grad.f[0][0], grad.c[FLUID_TENSION]);
  }
  // any tension: no cut
  at.c[FLUID_TENSION] = 2;
  for (int i = 0; i < D; i++) at.f[i][i] = 3;
  material_update(&at);
  CHECK(fabs(mat_det(at.f) - pow(3.0, (int)D)) < 1e-12, "%dD fluid that bears any tension: J is %g", D, mat_det(at.f));
  // the volume does not drift: a step to and fro, many times over
  double jac = 0.9;
  for (int i = 0; i < D; i++) at.f[i][i] = pow(jac, 1.0 / D);
  for (int k = 0; k < 100000; k++) material_update(&at);
  CHECK(fabs(mat_det(at.f) / jac - 1) < 1e-11, "%dD fluid: J is off by %g after 1e5 updates", D, mat_det(at.f) / jac - 1);
  at.c[FLUID_EXPONENT] = 1;
  for (int i = 0; i < D; i++) at.f[i][i] = pow(0.5, 1.0 / D);
  material_stress(&at, p);
  material_kirchhoff_plain(&at, tau);
  CHECK(fabs(tau[0][0] / 0.5 + 10) < 1e-12, "%dD fluid of twice its density: pressure %g, bulk modulus 10", D, -tau[0][0] / 0.5);
  // shear at a rate of 3: stress eta times the rate
  cq_material viscous = material;
  viscous.viscous = 1;
  at = point_at(&viscous, 0.01);
  at.c[FLUID_BULK] = at.c[FLUID_EXPONENT] = 1;
  at.extra[0] = 0.2;
  at.rate[0][1] = 3;
  material_kirchhoff_plain(&at, tau);
  CHECK(fabs(tau[0][1] - 0.6) < 1e-15 && fabs(tau[1][0] - 0.6) < 1e-15 && tau[0][0] == 0, "%dD viscous fluid in shear: %g", D, tau[0][1]);
}

// ---- Maxwell branches -------------------------------------------------------------------------------------------------------

// Simple shear of a neo-Hookean body, tau_12 = mu gamma. Held from half a step before the first one on, the stress of the branch is
// mu gamma beta exp(-t / tau); at a constant and small rate of shear it is mu rate beta tau (1 - exp(-t / tau)).
static void check_relaxation(void) {
  using namespace product;
  cq_material material = plain_material(CQ_MATERIAL_NEO_HOOKEAN);
  material.branches = 2;
  const double mu = 2, beta[2] = {0.7, 0.3}, time[2] = {0.05, 0.4}, gamma = 0.3, rate = 1e-4, step = 0.001;
  for (int ramp = 0; ramp < 2; ramp++) {
    MaterialPoint at = point_at(&material, step);
    at.c[LAME_MU] = mu;
    at.c[LAME_LAMBDA] = 3;
    for (int k = 0; k < 2; k++) {
      at.extra[2 * k] = beta[k];
      at.extra[2 * k + 1] = time[k];
    }
    double worst = 0;
    for (int n = 1; n <= 500; n++) {
      const double t = ramp ? n * step : (n - 0.5) * step;
      double wanted = ramp ? mu * rate * t : mu * gamma;
      for (int k = 0; k < 2; k++)
        wanted += ramp ? mu * rate * beta[k] * time[k] * (1 - exp(-t / time[k])) : mu * gamma * beta[k] * exp(-t / time[k]);
      at.f[0][1] = ramp ? rate * t : gamma;
      material_update(&at);
      matrix tau;
      material_kirchhoff_plain(&at, tau);
      worst = fmax(worst, fabs(tau[0][1] / wanted - 1));
    }
    // the ramp: steps of dt, and a small strain
    CHECK(worst < (ramp ? 1e-4 : 1e-12), "%dD relaxation, %s: off by %g", D, ramp ? "shear at a rate" : "held shear", worst);
  }
}

static void check_inelastic(void) {
  check_fluid();
  check_relaxation();
}
