// physics_drive: cables, chambers and pressures that follow their surface; included by physics_dual.inl.

enum { POINTS = 5 };

// taut, with friction at every turn, or slack; straight: along an axis, where the angles are zero
struct cable_map {
  double stretch;            // of its path over its free length, 1 is the kink
  double offset, slope;
  bool straight;
  enum { K = POINTS * D, R, MU, U, inputs, outputs = POINTS * D };
  void draw(double *in) const {
    double span = 0;
    for (int p = 0; p < POINTS; p++) {
      double square = 0;
      for (int i = 0; i < D; i++) {
        double &x = in[p * D + i];
        x = i == 0 ? 0.2 * p : straight ? 0.3 : 0;
        x += straight && i ? 0 : uniform(-0.05, 0.05);
        if (p) square += (x - in[(p - 1) * D + i]) * (x - in[(p - 1) * D + i]);
      }
      span += sqrt(square);
    }
    in[K] = uniform(1, 20);
    in[MU] = uniform(0.1, 0.6);
    in[U] = uniform(0.2, 0.9);
    in[R] = span / stretch / (offset + slope * in[U]);
  }
  template <typename Cable, typename T> Cable cable(const T *in) const {
    return {in[K], in[R], in[MU], in[U], offset, slope, POINTS};
  }
  void primal(const dual *in, dual *out) const {
    const auto c = cable<over_dual::Cable>(in);
    over_dual::cable_pull(&c, in, out);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    const auto c = cable<product::Cable>(in);
    product::Cable grad = {};
    double share[POINTS];
    product::cable_pull_adj(&c, in, &grad, grad_in, grad_out, share);
    grad_in[K] += grad.stiffness;
    grad_in[R] += grad.length;
    grad_in[MU] += grad.friction;
    grad_in[U] += grad.signal;
  }
};

// without friction the pull is that of an energy; with it, action is reaction all the same
static void check_pull(void) {
  double energy_error = 0, sum = 0, turn = 0, ratio = 0;
  for (int round = 0; round < DRAWS; round++) {
    const cable_map map = {1.3, 1, -0.4, false};
    double in[cable_map::inputs], direction[POINTS * D], force[POINTS * D], along = 0, size = 0;
    dual seeded[cable_map::inputs];
    map.draw(in);
    auto cable = map.cable<product::Cable>(in);
    product::cable_pull(&cable, in, force);
    double moment[3] = {0, 0, 0};
    for (int i = 0; i < D; i++) {
      double total = 0;
      for (int p = 0; p < POINTS; p++) {
        total += force[p * D + i];
        for (int j = 0; j < i; j++)
          moment[i + j - 1] += in[p * D + i] * force[p * D + j] - in[p * D + j] * force[p * D + i];
      }
      sum = fmax(sum, fabs(total));
    }
    for (double m : moment) turn = fmax(turn, fabs(m));
    // the tension that arrives, of what the capstan formula leaves
    double angles = 0, ends[2] = {0, 0};
    for (int p = 1; p + 1 < POINTS; p++) {
      double a[D], b[D];
      product::cable_segment(in + (p - 1) * D, in + p * D, a);
      product::cable_segment(in + p * D, in + (p + 1) * D, b);
      double cosine = 0;
      for (int i = 0; i < D; i++) cosine += a[i] * b[i];
      angles += acos(cosine);
    }
    for (int i = 0; i < D; i++) {
      ends[0] += force[i] * force[i];
      ends[1] += force[(POINTS - 1) * D + i] * force[(POINTS - 1) * D + i];
    }
    ratio = fmax(ratio, fabs(sqrt(ends[1] / ends[0]) / exp(-in[cable_map::MU] * angles) - 1));

    in[cable_map::MU] = 0;
    for (int k = 0; k < cable_map::inputs; k++) seeded[k] = in[k];
    for (int k = 0; k < POINTS * D; k++) seeded[k].slope = direction[k] = uniform(-1, 1);
    const auto over = map.cable<over_dual::Cable>(seeded);
    cable = map.cable<product::Cable>(in);
    product::cable_pull(&cable, in, force);
    for (int k = 0; k < POINTS * D; k++) along -= force[k] * direction[k], size += fabs(force[k] * direction[k]);
    energy_error =
        fmax(energy_error, fabs((double)over_dual::cable_energy(&over, seeded).slope - along) / size);
  }
  CHECK(energy_error < 1e-13, "%dD cable: its pull is the slope of its energy to %g", D, energy_error);
  CHECK(sum < 1e-13 && turn < 1e-13, "%dD cable: forces sum to %g, their moments to %g", D, sum, turn);
  CHECK(ratio < 1e-12, "%dD cable: the tension that arrives is the capstan's to %g", D, ratio);
}

// A straight path is a kink of the friction, where an angle is zero: it takes nothing, and has no gradient there.
static void check_straight(void) {
  const cable_map map = {1.3, 1, -0.4, true};
  double in[cable_map::inputs], force[POINTS * D], grad[cable_map::inputs] = {0}, weight[POINTS * D], inner = 0,
                                                   finite = 0;
  map.draw(in);
  const auto cable = map.cable<product::Cable>(in);
  product::cable_pull(&cable, in, force);
  for (int k = D; k < (POINTS - 1) * D; k++) inner = fmax(inner, fabs(force[k]));
  for (double &w : weight) w = uniform(-1, 1);
  map.adjoint(in, grad, weight);
  for (double g : grad) finite += g;
  CHECK(inner < 1e-13 && force[0] > 0.01, "%dD straight cable pulls %g at its end and %g between", D, force[0], inner);
  CHECK(isfinite(finite) && grad[cable_map::MU] == 0 && grad[cable_map::K] != 0,
        "%dD straight cable: gradients %g, of friction %g", D, finite, grad[cable_map::MU]);
}

// the force falls to zero at the free length, and a slack cable has none
static void check_slack(void) {
  for (int side = -1; side <= 1; side += 2) {
    const cable_map map = {1 + side * 1e-9, 0, 1, false};
    double in[cable_map::inputs], force[POINTS * D], grad[cable_map::inputs] = {0}, ones[POINTS * D], largest = 0,
                                                     slope = 0;
    map.draw(in);
    const auto cable = map.cable<product::Cable>(in);
    product::cable_pull(&cable, in, force);
    for (double f : force) largest = fmax(largest, fabs(f));
    for (int k = 0; k < POINTS * D; k++) ones[k] = k < D;
    map.adjoint(in, grad, ones);
    for (double g : grad) slope = fmax(slope, fabs(g));
    CHECK(largest < 1e-7 && (side < 0 ? largest == 0 && slope == 0 : largest > 0 && slope > 0.1),
          "%dD cable on the %s side of its kink: force %g, gradient %g", D, side < 0 ? "slack" : "taut", largest,
          slope);
  }
}

// a square, or a tetrahedron, whose faces are turned outwards
struct chamber_map {
  enum { CORNERS = 4, P = CORNERS * D, inputs, outputs = CORNERS * D };
  static const int32_t *faces(void) {
    static const int32_t plane[] = {0, 1, 1, 2, 2, 3, 3, 0}, space[] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};
    return D == 2 ? plane : space;
  }
  void draw(double *in) const {
    static const double plane[4][3] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}}, space[4][3] = {{0}, {1}, {0, 1}, {0, 0, 1}};
    for (int k = 0; k < CORNERS; k++)
      for (int i = 0; i < D; i++) in[k * D + i] = 3 + (D == 2 ? plane : space)[k][i] + uniform(-0.2, 0.2);
    in[P] = uniform(-2, 2);
  }
  void primal(const dual *in, dual *out) const {
    const over_dual::Chamber c = {in[P], faces(), 4};
    for (int k = 0; k < outputs; k++) out[k] = 0;
    over_dual::chamber_push(&c, in, out);
  }
  void adjoint(const double *in, double *g, const double *grad_out) const {
    const product::Chamber c = {in[P], faces(), 4};
    product::chamber_push_adj(&c, in, g + P, g, grad_out);
  }
};

// the force is the slope of the energy, and has neither sum nor moment
static void check_chamber(void) {
  double energy_error = 0, sum = 0, turn = 0, volume = 0;
  for (int round = 0; round < DRAWS; round++) {
    double in[chamber_map::inputs], direction[chamber_map::outputs], force[chamber_map::outputs] = {0}, along = 0,
                                                                     size = 0, moment[3] = {0};
    dual seeded[chamber_map::inputs];
    const chamber_map map;
    map.draw(in);
    const product::Chamber c = {in[chamber_map::P], map.faces(), 4};
    product::chamber_push(&c, in, force);
    for (int i = 0; i < D; i++) {
      double total = 0;
      for (int k = 0; k < chamber_map::CORNERS; k++) {
        total += force[k * D + i];
        for (int j = 0; j < i; j++)
          moment[i + j - 1] += in[k * D + i] * force[k * D + j] - in[k * D + j] * force[k * D + i];
      }
      sum = fmax(sum, fabs(total));
    }
    for (double m : moment) turn = fmax(turn, fabs(m));
    for (int k = 0; k < chamber_map::inputs; k++) seeded[k] = in[k];
    for (int k = 0; k < chamber_map::outputs; k++) {
      seeded[k].slope = direction[k] = uniform(-1, 1);
      along -= force[k] * direction[k], size += fabs(force[k] * direction[k]);
    }
    const over_dual::Chamber over = {seeded[chamber_map::P], map.faces(), 4};
    energy_error = fmax(energy_error, fabs((double)over_dual::chamber_energy(&over, seeded).slope - along) / size);
    volume = fmax(volume, -product::chamber_energy(&c, in) / in[chamber_map::P]);
  }
  CHECK(energy_error < 1e-12, "%dD chamber: its force is the slope of its energy to %g", D, energy_error);
  CHECK(sum < 1e-13 && turn < 1e-12, "%dD chamber: forces sum to %g, their moments to %g", D, sum, turn);
  CHECK(volume > 0.1 && volume < 3, "%dD chamber: a volume of %g", D, volume);
}

struct pressure_map {
  enum { H = DD, FORCE = DD + D, inputs = FORCE + D, outputs = D };
  void draw(double *in) const {
    random_deformation(ANY, in);
    for (int k = DD; k < inputs; k++) in[k] = uniform(-1, 1);
  }
  void primal(const dual *in, dual *out) const {
    for (int i = 0; i < D; i++) out[i] = in[FORCE + i];
    over_dual::pressure_force(square(in), in + H, out);
  }
  void adjoint(const double *in, double *g, const double *grad_out) const {
    product::pressure_force_adj(square(in), in + H, square(g), g + H, grad_out);
    for (int i = 0; i < D; i++) g[FORCE + i] += grad_out[i];
  }
};

static void check_drives(void) {
  const marks all = ((marks)1 << cable_map::inputs) - 1;
  hold(cable_map{1.3, 1, -0.4, false}, "cable that contracts");
  hold(cable_map{1.1, 0, 1, false}, "cable that is spooled");
  hold(cable_map{0.9, 1, -0.4, false}, "slack cable", all);
  check_pull();
  check_straight();
  check_slack();
  hold(chamber_map{}, "chamber");
  check_chamber();
  hold(pressure_map{}, "follower pressure");
}
