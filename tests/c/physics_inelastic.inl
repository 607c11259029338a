// physics_inelastic: what fluids, viscous and plastic materials do beyond the checks of every law: closed forms, and
// both sides of each kink. Included by physics_dual.inl.

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

// ---- fluid ----------------------------------------------------------------------------------------------------------

// It cavitates where its tension is the largest that it bears; below nothing is lost, above F takes no part. A linear
// equation of state has the bulk modulus as the slope of the pressure by the density.
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
  CHECK(fabs(tau[0][0] / most - 0.4) < 1e-12, "%dD fluid: it cavitates at a tension of %.15g of 0.4", D,
        tau[0][0] / most);
  for (int side = -1; side <= 1; side += 2) {
    MaterialPoint grad = {};
    const double jac = most * (1 + side * 1e-9), stretch = pow(jac, 1.0 / D);
    for (int i = 0; i < D; i++) at.f[i][i] = stretch;
    grad.f[0][0] = 1;
    material_update_adj(&at, &grad);
    material_update(&at);
    CHECK(fabs(mat_det(at.f) - (side < 0 ? jac : most)) < 1e-14, "%dD fluid at the kink: J is %.15g", D, mat_det(at.f));
    CHECK(side < 0 ? fabs(grad.f[0][0] - 1.0 / D) < 1e-12 && grad.c[FLUID_TENSION] == 0
                   : grad.f[0][0] == 0 && grad.c[FLUID_TENSION] > 0,
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
  CHECK(fabs(mat_det(at.f) / jac - 1) < 1e-11, "%dD fluid: J is off by %g after 1e5 updates", D,
        mat_det(at.f) / jac - 1);
  at.c[FLUID_EXPONENT] = 1;
  for (int i = 0; i < D; i++) at.f[i][i] = pow(0.5, 1.0 / D);
  material_stress(&at, p);
  material_kirchhoff_plain(&at, tau);
  CHECK(fabs(tau[0][0] / 0.5 + 10) < 1e-12, "%dD fluid of twice its density: pressure %g, bulk modulus 10", D,
        -tau[0][0] / 0.5);
  // shear at a rate of 3: stress eta times the rate
  cq_material viscous = material;
  viscous.viscous = 1;
  at = point_at(&viscous, 0.01);
  at.c[FLUID_BULK] = at.c[FLUID_EXPONENT] = 1;
  at.extra[0] = 0.2;
  at.rate[0][1] = 3;
  material_kirchhoff_plain(&at, tau);
  CHECK(fabs(tau[0][1] - 0.6) < 1e-15 && fabs(tau[1][0] - 0.6) < 1e-15 && tau[0][0] == 0,
        "%dD viscous fluid in shear: %g", D, tau[0][1]);
}

// ---- Maxwell branches -----------------------------------------------------------------------------------------------

// Simple shear of a neo-Hookean body, tau_12 = mu gamma. Held from half a step before the first one on, the
// stress of the branch is mu gamma beta exp(-t / tau); at a constant and small rate of shear it is mu rate
// beta tau (1 - exp(-t / tau)).
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
        wanted +=
            ramp ? mu * rate * beta[k] * time[k] * (1 - exp(-t / time[k])) : mu * gamma * beta[k] * exp(-t / time[k]);
      at.f[0][1] = ramp ? rate * t : gamma;
      material_update(&at);
      matrix tau;
      material_kirchhoff_plain(&at, tau);
      worst = fmax(worst, fabs(tau[0][1] / wanted - 1));
    }
    // the ramp: steps of dt, and a small strain
    CHECK(worst < (ramp ? 1e-4 : 1e-12), "%dD relaxation, %s: off by %g", D, ramp ? "shear at a rate" : "held shear",
          worst);
  }
}

// ---- the kink of a yield surface ------------------------------------------------------------------------------------

// F along a path of a fixed rotation and fixed directions: s = 0 is the identity
static void follow_path(product::MaterialPoint *at, const matrix turn, const vector rates, double s) {
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) at->f[i][j] = turn[i][j] * exp(s * rates[j]);
}

static bool is_changed(const product::MaterialPoint &before, const product::MaterialPoint &after) {
  return memcmp(before.f, after.f, sizeof before.f) != 0 ||
         memcmp(before.internal, after.internal, sizeof(double)) != 0;
}

// Along a path that leaves the elastic domain: before the kink the update and its adjoint change no bit; behind it the
// update goes on without a jump, and its adjoint is the slope on that side, which is another one.
static void check_kink(const char *name, product::MaterialPoint at, const vector rates) {
  using namespace product;
  matrix turn;
  random_rotation(turn);
  double inside = 0, outside = 0.5;
  MaterialPoint after;
  while (outside - inside > 1e-12) {
    const double s = (inside + outside) / 2;
    follow_path(&at, turn, rates, s);
    after = at;
    material_update(&after);
    (is_changed(at, after) ? outside : inside) = s;
  }
  CHECK(inside > 1e-3 && outside < 0.49, "%dD %s: it yields at %g", D, name, inside);
  MaterialPoint grad = {}, wanted;
  grad.law = at.law;
  for (int k = 0; k < DD; k++) grad.f[k / D][k % D] = uniform(-1, 1);
  grad.internal[0] = uniform(-1, 1);
  wanted = grad;
  follow_path(&at, turn, rates, inside * (1 - 1e-9));
  material_update_adj(&at, &grad);
  // what sand regains of its volume goes into F
  const bool kept = at.law->kind == CQ_MATERIAL_DRUCKER_PRAGER || grad.internal[0] == wanted.internal[0];
  CHECK(!memcmp(grad.f, wanted.f, sizeof grad.f) && kept, "%dD %s: the adjoint changes bits inside", D, name);
  double constants = 0, slope = 0, loss[2], along = 0;
  for (double c : grad.c) constants += fabs(c);
  CHECK(constants == 0, "%dD %s: gradients of constants inside", D, name);
  // behind the kink
  const double s = outside * (1 + 1e-9), h = 1e-5;
  MaterialPoint before = at;
  grad = wanted;
  follow_path(&at, turn, rates, s);
  material_update_adj(&at, &grad);
  for (int i = 0; i < D; i++)
    for (int j = 0; j < D; j++) {
      slope += grad.f[i][j] * at.f[i][j] * rates[j];
      along += wanted.f[i][j] * at.f[i][j] * rates[j];
    }
  double jump = 0;
  for (int k = 0; k < 2; k++) {
    follow_path(&before, turn, rates, s + k * h);
    after = before;
    material_update(&after);
    loss[k] = wanted.internal[0] * after.internal[0];
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        loss[k] += wanted.f[i][j] * after.f[i][j];
        if (k == 0) jump = fmax(jump, fabs(after.f[i][j] - before.f[i][j]));
      }
  }
  CHECK(jump < 1e-8, "%dD %s: it jumps by %g at the kink", D, name, jump);
  CHECK(fabs(slope - along) > 1e-3, "%dD %s: the slope is %g on both sides", D, name, slope);
  CHECK(fabs((loss[1] - loss[0]) / h - slope) < 1e-3 * (1 + fabs(slope)),
        "%dD %s: adjoint %g behind the kink, difference %g", D, name, slope, (loss[1] - loss[0]) / h);
}

// ---- von Mises ------------------------------------------------------------------------------------------------------

enum { SOFT = 10, RIGID = 7, YIELD = 1 };   // lambda, mu, yield stress

static product::MaterialPoint metal(const cq_material *material, double hardening) {
  product::MaterialPoint at = point_at(material, 0.01);
  at.c[product::LAME_MU] = RIGID;
  at.c[product::LAME_LAMBDA] = SOFT;
  at.c[product::VON_MISES_YIELD] = YIELD;
  at.c[product::VON_MISES_HARDENING] = hardening;
  return at;
}

// Stretches a bar along the first axis by a factor; the others follow until they bear no stress.
// Returns the stress along the first.
static double pull(product::MaterialPoint *at, double factor) {
  using namespace product;
  double low = 0.9, high = 1.1;
  MaterialPoint next;
  matrix tau;
  for (int k = 0; k < 60; k++) {
    const double side = (low + high) / 2;
    next = *at;
    for (int j = 0; j < D; j++) {
      next.f[0][j] *= factor;
      for (int i = 1; i < D; i++) next.f[i][j] *= side;
    }
    material_update(&next);
    material_kirchhoff_plain(&next, tau);
    (tau[1][1] > 0 ? high : low) = side;
  }
  *at = next;
  return tau[0][0];
}

// A bar in tension, in Kirchhoff stress and logarithmic strain e: E e up to the yield stress, then the strain is tau /
// E and the plastic one, whose equivalent alpha hardens. Between walls in the plane, in 2D, sqrt(3)/2 tau is what
// yields, and E is 4 mu (l + mu) / (l + 2 mu).
static void check_bar(void) {
  const cq_material material = plain_material(CQ_MATERIAL_VON_MISES);
  const double hardening = 3, q = D == 3 ? 1 : sqrt(0.75), l = SOFT, mu = RIGID;
  const double young = D == 3 ? mu * (3 * l + 2 * mu) / (l + mu) : 4 * mu * (l + mu) / (l + 2 * mu);
  product::MaterialPoint bar = metal(&material, hardening);
  double worst = 0, e = 0, tau = 0;
  for (int n = 0; n < 60; n++) {
    e += 0.004;
    tau = pull(&bar, exp(0.004));
    const double plastic = (YIELD + hardening * e / q) / (q + hardening / (young * q));
    worst = fmax(worst, fabs(tau - fmin(young * e, plastic)));
    CHECK(fabs(bar.internal[0] - (e - tau / young) / q) < 1e-9, "%dD bar: plastic strain %g", D, bar.internal[0]);
  }
  CHECK(worst < 1e-9 && e > 3 * YIELD / young, "%dD bar in tension: stress off by %g", D, worst);
  // let go it shortens by the elastic strain alone
  const double alpha = bar.internal[0];
  CHECK(fabs(pull(&bar, exp(-tau / young))) < 1e-9 && bar.internal[0] == alpha, "%dD bar let go: plastic strain %g", D,
        bar.internal[0]);
  vector rates = {1, -0.3};
  check_kink("von Mises", metal(&material, hardening), rates);
}

// ---- Drucker-Prager -------------------------------------------------------------------------------------------------

static product::MaterialPoint sand(const cq_material *material, double cohesion) {
  product::MaterialPoint at = point_at(material, 0.01);
  at.c[product::LAME_MU] = RIGID;
  at.c[product::LAME_LAMBDA] = SOFT;
  at.c[product::SAND_ANGLE] = 0.6;
  at.c[product::SAND_COHESION] = cohesion;
  return at;
}

// On the cone it bears what Mohr and Coulomb say, (tau_3 - tau_1)/2 = c cos(phi) - sin(phi) (tau_1 + tau_3)/2, in
// compression; pulled apart c cot(phi). Grains that parted press again when the volume that they gained is gone.
static void check_sand(void) {
  using namespace product;
  const cq_material material = plain_material(CQ_MATERIAL_DRUCKER_PRAGER);
  for (int cohesive = 0; cohesive < 2; cohesive++) {
    const double c = cohesive ? 0.3 : 0;
    MaterialPoint at = sand(&material, c);
    matrix tau;
    at.f[0][0] = 0.8;
    for (int i = 1; i < D; i++) at.f[i][i] = 1.1;
    const double pressed = mat_det(at.f);
    material_update(&at);
    material_kirchhoff_plain(&at, tau);
    const double apart = (tau[1][1] - tau[0][0]) / 2, mean = (tau[1][1] + tau[0][0]) / 2;
    CHECK(fabs(apart - c * cos(0.6) + sin(0.6) * mean) < 1e-12 && apart > 0.1,
          "%dD sand on the cone: %g at a mean of %g", D, apart, mean);
    CHECK(fabs(mat_det(at.f) - pressed) < 1e-14 && at.internal[0] == 0, "%dD sand on the cone: J is %g", D,
          mat_det(at.f));
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) at.f[i][j] *= 1.5;
    const double volume = log(mat_det(at.f));
    material_update(&at);
    material_kirchhoff_plain(&at, tau);
    for (int k = 0; k < DD; k++)
      CHECK(fabs(tau[k / D][k % D] - (k % (D + 1) ? 0 : c / tan(0.6))) < 1e-12, "%dD sand pulled apart: %g", D,
            tau[k / D][k % D]);
    CHECK(fabs(log(mat_det(at.f)) + at.internal[0] - volume) < 1e-13, "%dD sand pulled apart: volume", D);
    // half of the volume back: nothing; all of it and a tenth: that tenth
    const double gained = at.internal[0];
    for (int turn = 0; turn < 2; turn++) {
      const double s = exp(-(turn ? gained / 2 + 0.1 : gained / 2) / D), was = log(mat_det(at.f));
      for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) at.f[i][j] *= s;
      material_update(&at);
      const double wanted = turn ? -0.1 : 0;
      CHECK(fabs(log(mat_det(at.f)) - was - wanted) < 1e-12, "%dD sand pressed together again, turn %d: %g", D, turn,
            log(mat_det(at.f)) - was);
    }
    CHECK(at.internal[0] == 0, "%dD sand pressed together again: it misses %g", D, at.internal[0]);
  }
  // the tip and the cone, from the cohesive domain around the identity
  vector part, shear = {-1, 0.4};
  for (double &x : part) x = 1;
  check_kink("sand at the tip", sand(&material, 0.3), part);
  check_kink("sand on the cone", sand(&material, 0.3), shear);
}

// ---- snow -----------------------------------------------------------------------------------------------------------

static void check_snow(void) {
  using namespace product;
  const cq_material material = plain_material(CQ_MATERIAL_SNOW);
  MaterialPoint at = point_at(&material, 0.01);
  at.internal[0] = 1;
  at.c[LAME_MU] = RIGID;
  at.c[LAME_LAMBDA] = SOFT;
  at.c[SNOW_HARDENING] = 8;
  at.c[SNOW_COMPRESSION] = 0.03;
  at.c[SNOW_STRETCH] = 0.01;
  vector shorter = {-1, 0.1}, longer = {1, -0.2};
  check_kink("snow pressed", at, shorter);
  check_kink("snow pulled", at, longer);
  // what is pressed by a tenth keeps the critical stretch, and is the harder for the volume that it lost
  MaterialPoint pressed = at;
  matrix tau, harder;
  pressed.f[0][0] = 0.9;
  material_update(&pressed);
  CHECK(fabs(pressed.f[0][0] - 0.97) < 1e-15 && fabs(pressed.internal[0] - 0.9 / 0.97) < 1e-14,
        "%dD snow pressed: F %g, J_P %g", D, pressed.f[0][0], pressed.internal[0]);
  at.f[0][0] = pressed.f[0][0];
  material_kirchhoff_plain(&at, tau);
  material_kirchhoff_plain(&pressed, harder);
  CHECK(fabs(harder[0][0] / tau[0][0] - exp(8 * (1 - 0.9 / 0.97))) < 1e-12, "%dD snow pressed: %g times as hard", D,
        harder[0][0] / tau[0][0]);
}

static void check_inelastic(void) {
  check_fluid();
  check_relaxation();
  check_bar();
  check_sand();
  check_snow();
}
