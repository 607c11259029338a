// physics_contact: each law of contact on each of its branches, and what is promised where the branches meet.

enum branch { LEAVING, PRESSING, HELD };   // HELD: pressed so hard that friction allows no sliding

struct contact_map {
  int kind;
  branch side;
  vector normal;
  enum { V = 0, FRICTION = D, W = D + 1, N = 2 * D + 1, inputs = 3 * D + 1, outputs = D };

  // relative velocity along the normal and its tangent, away from the kinks by at least a tenth
  void draw(double *in) const {
    vector t;
    double tn = 0, length = 0;
    do {
      tn = length = 0;
      for (double &x : t) x = uniform(-1, 1);
      for (int i = 0; i < D; i++) tn += t[i] * normal[i];
      for (int i = 0; i < D; i++) t[i] -= tn * normal[i];
      for (int i = 0; i < D; i++) length += t[i] * t[i];
    } while (length < 0.01);
    in[FRICTION] = uniform(0.2, 0.8);
    const double l = side == LEAVING ? uniform(0.1, 1) : uniform(-1, -0.1), slip = -in[FRICTION] * l;
    const double slide = side == HELD ? uniform(0.2, 0.8) * slip : fmax(slip, 0) + uniform(0.1, 1);
    for (int i = 0; i < D; i++) {
      in[W + i] = uniform(-1, 1);
      in[N + i] = normal[i];
      in[V + i] = in[W + i] + l * normal[i] + slide * t[i] / sqrt(length);
    }
  }
  void primal(const dual *in, dual *out) const {
    for (int i = 0; i < D; i++) out[i] = in[V + i];
    const over_dual::ContactLaw law = {kind, in[FRICTION], in + N, in + W};
    over_dual::contact(&law, out);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::ContactGrad grad = {};
    for (int i = 0; i < D; i++) grad_in[V + i] = grad_out[i];
    const product::ContactLaw law = {kind, in[FRICTION], in + N, in + W};
    product::contact_adj(&law, in + V, grad_in + V, &grad);
    grad_in[FRICTION] = grad.friction;
    for (int i = 0; i < D; i++) {
      grad_in[W + i] = grad.w[i];
      grad_in[N + i] = grad.n[i];
    }
  }
};

// what one contact gives, by mass, normal, velocity before and after; its node stands still
struct impulse_map {
  enum { M = 0, N = 1, BEFORE = N + D, AFTER = BEFORE + D, inputs = AFTER + D, outputs = 3 * D + 1 };
  template <typename T, typename touch> static void fill(const T *in, touch *t) {
    t->mass = in[M];
    for (int i = 0; i < D; i++) {
      t->normal[i] = in[N + i];
      t->x[i] = 0.7 * i - 0.4;
      t->before[i] = in[BEFORE + i];
      t->after[i] = in[AFTER + i];
    }
  }
  void draw(double *in) const {
    for (int k = 0; k < inputs; k++) in[k] = uniform(-1, 1);
    in[M] = uniform(0.1, 2);
  }
  void primal(const dual *in, dual *out) const {
    over_dual::Touch t;
    fill(in, &t);
    over_dual::contact_impulse(&t, out);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::Touch t, grad = {};
    fill(in, &t);
    product::contact_impulse_adj(&t, &grad, grad_out);
    grad_in[M] = grad.mass;
    for (int i = 0; i < D; i++) {
      grad_in[N + i] = grad.normal[i];
      grad_in[BEFORE + i] = grad.before[i];
      grad_in[AFTER + i] = grad.after[i];
    }
  }
};

static contact_map contact_with(int kind, branch side) {
  contact_map map = {};
  map.kind = kind;
  map.side = side;
  double length = 0;
  for (double &x : map.normal) x = uniform(-1, 1);
  for (double x : map.normal) length += x * x;
  for (double &x : map.normal) x /= sqrt(length);
  return map;
}

// At a kink the branch that the value took gives the derivative. The node slides along x and presses along y; free: it
// is not touched, else it moves with the wall. Neither may give anything that is not finite.
static void check_kink(const char *name, int kind, double friction, double slide, double pressing, bool free) {
  const vector n = {0, 1};
  vector w, v, after, g, grad_v;
  product::ContactGrad grad = {};
  double off = 0, grad_off = 0;
  for (int i = 0; i < D; i++) {
    w[i] = 0.25 * (i + 1);   // exact sums, so that the kink is hit
    v[i] = after[i] = w[i] + (i == 0 ? slide : i == 1 ? -pressing : 0);
    g[i] = grad_v[i] = uniform(-1, 1);
  }
  const product::ContactLaw law = {kind, friction, n, w};
  product::contact(&law, after);
  product::contact_adj(&law, v, grad_v, &grad);
  for (int i = 0; i < D; i++) {
    off = fmax(off, fabs(after[i] - (free ? v[i] : w[i])));
    grad_off =
        fmax(grad_off, fabs(grad_v[i] - (free ? g[i] : 0)) + fabs(grad.w[i] - (free ? 0 : g[i])) + fabs(grad.n[i]));
  }
  CHECK(off == 0, "%dD %s: velocity is off by %g", D, name, off);
  CHECK(grad_off == 0 && grad.friction == 0, "%dD %s: gradients are off by %g, of friction %g", D, name, grad_off,
        grad.friction);
}

static void check_contacts(void) {
  static const char *const kinds[] = {"sticky", "slip", "separate", "friction", "hold"}, *const sides[] = {"leaving",
                                                                                                           "pressing",
                                                                                                           "held"};
  const marks velocity = ((marks)1 << D) - 1, friction = (marks)1 << D, wall = velocity << (D + 1),
                 normal = wall << D;
  for (int kind = CQ_CONTACT_STICKY; kind <= CQ_CONTACT_HOLD; kind++)
    for (int side = LEAVING; side <= HELD; side++) {
      if (side == HELD && kind != CQ_CONTACT_FRICTION) continue;
      char name[64];
      snprintf(name, sizeof name, "%dD %s, %s", D, kinds[kind], sides[side]);
      const bool free = side == LEAVING && kind >= CQ_CONTACT_SEPARATE;
      const bool still = kind == CQ_CONTACT_STICKY || side == HELD || (kind == CQ_CONTACT_HOLD && !free);
      const bool slides = kind == CQ_CONTACT_FRICTION && side == PRESSING;
      for (int k = 0; k < 5; k++)
        hold(contact_with(kind, (branch)side), name,
             (free ? wall : 0) | (still ? velocity : 0) | (free || still ? normal : 0) | (slides ? 0 : friction));
    }
  char name[64];
  snprintf(name, sizeof name, "%dD impulse", D);
  hold(impulse_map{}, name);
  check_kink("separate at zero normal speed", CQ_CONTACT_SEPARATE, 0, 0.5, 0, true);
  check_kink("hold at zero normal speed", CQ_CONTACT_HOLD, 0, 0.5, 0, true);
  check_kink("hold, pressed by next to nothing", CQ_CONTACT_HOLD, 0, 0.5, 1e-15, false);
  check_kink("friction at zero normal speed", CQ_CONTACT_FRICTION, 0.5, 0.5, 0, true);
  check_kink("friction on the edge of its cone", CQ_CONTACT_FRICTION, 0.5, 0.5, 1, false);
  check_kink("friction without sliding", CQ_CONTACT_FRICTION, 0.5, 0, 1, false);
  check_kink("zero friction without sliding", CQ_CONTACT_FRICTION, 0, 0, 1, false);
}
