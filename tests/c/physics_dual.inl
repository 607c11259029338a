// physics_dual: the maps of math and physics in CQ_DIM dimensions; included by physics_dual.cc once for each.

#undef CQ_REAL_H
namespace over_dual {
typedef dual real, Real, wide;
#include "physics_instance.inl"
}
#undef CQ_REAL_H
namespace product {
typedef double real, Real, wide;
#include "physics_instance.inl"
}

enum { D = CQ_DIM, DD = D * D, SYM = D * (D + 1) / 2 };
typedef double vector[D], matrix[D][D];
typedef dual dual_matrix[D][D];

template <typename T> static const T (*square(const T *flat))[D] { return (const T(*)[D])flat; }
template <typename T> static T (*square(T *flat))[D] { return (T(*)[D])flat; }

// ---- draws ----------------------------------------------------------------------------------------------------------

static double det(const double *f) { return product::mat_det(square(f)); }

static void random_rotation(matrix r) {
  double f[DD];
  do
    for (double &x : f) x = uniform(-1, 1);
  while (!(det(f) > 0.2));
  product::polar(square(f), r);
}

// how a deformation gradient is drawn: anything with det F > 0, or one of the cases where a decomposition might stumble
enum shape { ANY, IDENTITY, ROTATION, STRETCHED, REPEATED, NEARLY_REPEATED, SHAPES };
static const char *const shape_name[SHAPES] = {"any F", "F = I", "F a rotation", "stretches of 0.1 to 10",
                                               "repeated stretches", "nearly repeated stretches"};

static void random_deformation(shape kind, double *f) {
  matrix r, q, s = {{0}}, qs;
  switch (kind) {
    case ANY:
      do
        for (int k = 0; k < DD; k++) f[k] = (k % (D + 1) == 0) + uniform(-0.6, 0.6);
      while (!(det(f) > 0.1));
      return;
    case IDENTITY:
      for (int k = 0; k < DD; k++) f[k] = k % (D + 1) == 0;
      return;
    case ROTATION:
      random_rotation(square(f));
      return;
    default: {
      // R Q S Q^T, S = diag(a, a, b) if repeated
      random_rotation(r);
      random_rotation(q);
      double a = 1;
      while (fabs(a - 1) < 0.02) a = uniform(0.5, 1.5);   // close to rest the energy has no slope to speak of
      const double gap = kind == NEARLY_REPEATED ? 1e-9 : 0;
      for (int i = 0; i < D; i++) {
        s[i][i] = i < 2 ? a + i * gap : uniform(0.5, 1.5);
        if (kind == STRETCHED) s[i][i] = pow(10, uniform(-1, 1));
      }
      matrix rq;
      product::mat_mul(q, s, qs);
      product::mat_mul_nt(qs, q, s);
      product::mat_mul(r, s, rq);
      memcpy(f, rq, sizeof rq);
    }
  }
}

// ---- math -----------------------------------------------------------------------------------------------------------

struct spline_map {
  enum { inputs = 1, outputs = 3 };
  void draw(double *in) const { in[0] = uniform(0.5, 1.5); }
  void primal(const dual *in, dual *out) const { over_dual::spline(in[0], out); }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    double slope[3];
    product::spline_slope(in[0], slope);
    for (int i = 0; i < 3; i++) grad_in[0] += slope[i] * grad_out[i];
  }
};

struct det_map {
  enum { inputs = DD, outputs = 1 };
  void draw(double *in) const { random_deformation(ANY, in); }
  void primal(const dual *in, dual *out) const { out[0] = over_dual::mat_det(square(in)); }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    matrix c;
    product::mat_cofactor(square(in), c);
    for (int k = 0; k < DD; k++) grad_in[k] += grad_out[0] * c[k / D][k % D];
  }
};

struct polar_map {
  shape kind;
  enum { inputs = DD, outputs = DD };
  void draw(double *in) const { random_deformation(kind, in); }
  void primal(const dual *in, dual *out) const { over_dual::polar(square(in), square(out)); }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    matrix r;
    product::polar(square(in), r);
    product::polar_adj(square(in), r, square(grad_in), square(grad_out));
  }
};

// R is a rotation and R^T F symmetric with a positive trace
static void check_polar(shape kind) {
  double off = 0, skew = 0, trace = 1e9;   // skew: relative to the stretch
  for (int round = 0; round < DRAWS; round++) {
    double f[DD];
    matrix r, rr, s;
    random_deformation(kind, f);
    product::polar(square(f), r);
    product::mat_mul_tn(r, r, rr);
    product::mat_mul_tn(r, square(f), s);
    trace = fmin(trace, product::mat_trace(s));
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        off = fmax(off, fabs(rr[i][j] - (i == j)));
        skew = fmax(skew, fabs(s[i][j] - s[j][i]) / fmax(1, product::mat_trace(s)));
      }
  }
  CHECK(off < 1e-14 * 8 && skew < 1e-14 * 8 && trace > 0, "%dD polar, %s: R^T R - I is %g, S - S^T is %g, tr S is %g",
        D, shape_name[kind], off, skew, trace);
}

// G = U diag(g) V^T with g_i = log s_i + sum_j s_j^2 / 10, whose slopes are not symmetric
struct singular_map {
  shape kind;
  enum { inputs = DD, outputs = DD };
  void draw(double *in) const { random_deformation(kind, in); }
  void primal(const dual *in, dual *out) const {
    over_dual::Singular of;
    dual g[D], sum = 0;
    over_dual::singular(square(in), &of);
    for (int i = 0; i < D; i++) sum += of.s[i] * of.s[i] / 10;
    for (int i = 0; i < D; i++) g[i] = r_log(of.s[i]) + sum;
    over_dual::singular_join(&of, g, square(out));
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::Singular of;
    product::SingularSlopes slopes;
    double g[D], sum = 0;
    product::singular(square(in), &of);
    for (int i = 0; i < D; i++) sum += of.s[i] * of.s[i] / 10;
    for (int i = 0; i < D; i++) g[i] = log(of.s[i]) + sum;
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++) {
        slopes.slope[j][i] = of.s[j] / 5 + (i == j) / of.s[i];   // transposed
        slopes.apart[i][j] = 1 / product::exp_apart(log(of.s[i]), log(of.s[j]));
        slopes.along[i][j] = (g[i] + g[j]) / (of.s[i] + of.s[j]);
      }
    product::singular_derivative(&of, &slopes, square(grad_out), square(grad_in));
  }
};

// ---- material and actuation -----------------------------------------------------------------------------------------

#include "physics_material.inl"
#include "physics_inelastic.inl"

struct actuation_map {
  enum { inputs = DD + SYM + DD, outputs = DD };   // F, sigma, and the stress it is added to
  void draw(double *in) const {
    random_deformation(ANY, in);
    for (int k = DD; k < inputs; k++) in[k] = uniform(-1, 1);
  }
  void primal(const dual *in, dual *out) const {
    for (int k = 0; k < DD; k++) out[k] = in[DD + SYM + k];
    over_dual::actuation_stress(square(in), in + DD, square(out));
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::actuation_stress_adj(square(in), in + DD, square(grad_in), grad_in + DD, square(grad_out));
    for (int k = 0; k < DD; k++) grad_in[DD + SYM + k] += grad_out[k];
  }
};

// ---- transfer -------------------------------------------------------------------------------------------------------

static const double dx = 0.7, dt = 0.3, keep = 0.8;   // keep: share of unresolved motion that stays

// numbers of an array or a struct of nothing else
template <class To, class From> static void put(To *to, const From *from, size_t count) {
  for (size_t k = 0; k < count; k++) to[k] = from[k];
}

struct to_grid_map {
  // inputs as Source has them, outputs as Exchange
  enum { ARM = 0, MASS = D, VOLUME, V, C = V + D, TAU = C + DD, FORCE = TAU + DD, inputs = FORCE + D };
  enum { outputs = D + DD + 1 };
  static_assert(sizeof(product::Source) == inputs * sizeof(double), "Source holds other numbers");
  static_assert(sizeof(product::Exchange) == outputs * sizeof(double), "Exchange holds other numbers");
  static_assert(sizeof(product::Sums) == outputs * sizeof(double), "Sums holds other numbers");
  void draw(double *in) const {
    for (int k = 0; k < inputs; k++) in[k] = uniform(-1, 1);
    in[MASS] = uniform(0.5, 2);
    in[VOLUME] = uniform(0.5, 2);
  }
  void primal(const dual *in, dual *out) const {
    const over_dual::GridStep step = {dx, dt, keep};
    over_dual::transfer_to_grid(&step, (const over_dual::Source *)in, (over_dual::Exchange *)out);
  }
  void adjoint(const double *in, double *g, const double *grad_out) const {
    const product::GridStep step = {dx, dt, keep};
    const product::Source *p = (const product::Source *)in;
    product::Exchange give;
    product::transfer_to_grid(&step, p, &give);
    product::transfer_to_grid_adj(&step, p, &give, (product::Source *)g, (const product::Sums *)grad_out);
  }
};

struct to_particle_map {
  // arm; the sums but that of masses; position and F of the state before
  enum { ARM = 0, M0 = D, M1 = M0 + D, POSITION = M1 + DD, F = POSITION + D, inputs = F + DD };
  enum { X_NEXT = 0, V_NEXT = D, C_NEXT = V_NEXT + D, F_NEXT = C_NEXT + DD, outputs = F_NEXT + DD };
  // as State has them
  static_assert(sizeof(product::State) == outputs * sizeof(double), "State holds other numbers");
  void draw(double *in) const {
    for (int k = 0; k < inputs; k++) in[k] = uniform(-1, 1);
  }
  void primal(const dual *in, dual *out) const {
    const over_dual::GridStep step = {dx, dt, keep};
    over_dual::Sums sums;
    over_dual::State before;
    put(sums.n0, in + M0, D);
    put(&sums.n1[0][0], in + M1, DD);
    put(before.x, in + POSITION, D);
    put(&before.f[0][0], in + F, DD);
    over_dual::transfer_to_particle(&step, in + ARM, &sums, &before, (over_dual::State *)out);
  }
  void adjoint(const double *in, double *g, const double *grad_out) const {
    const product::GridStep step = {dx, dt, keep};
    product::Sums sums;
    product::State before, after;
    product::Exchange give;
    put(sums.n0, in + M0, D);
    put(&sums.n1[0][0], in + M1, DD);
    put(before.x, in + POSITION, D);
    put(&before.f[0][0], in + F, DD);
    product::transfer_to_particle(&step, in + ARM, &sums, &before, &after);
    product::transfer_to_particle_adj(&step, in + ARM, before.f, (const product::State *)grad_out, &give);
    put(g + M0, give.q, D);
    put(g + M1, &give.b[0][0], DD);
    // the adjoint of F' becomes that of F in place, as in the step
    put(g + F, grad_out + F_NEXT, DD);
    product::transfer_to_particle_adj_rest(&step, &after, &give, g + ARM, square(g + F));
    for (int i = 0; i < D; i++) g[POSITION + i] += grad_out[X_NEXT + i];
  }
};

struct inertia_map {
  enum { outputs = D + DD };
  enum { ARM = 0, MASS = D, V, C = V + D, inputs = C + DD };
  template <class Source, class From> static void source(const From *in, Source *p) {
    put(p->arm, in + ARM, D);
    p->mass = in[MASS];
    put(p->v, in + V, D);
    put(&p->c[0][0], in + C, DD);
  }
  void draw(double *in) const {
    for (int k = 0; k < inputs; k++) in[k] = uniform(-1, 1);
    in[MASS] = uniform(0.5, 2);
  }
  void primal(const dual *in, dual *out) const {
    const over_dual::GridStep step = {dx, dt, keep};
    over_dual::Source p;
    over_dual::Exchange give;
    source(in, &p);
    over_dual::transfer_inertia(&step, &p, &give);
    put(out, give.q, D);
    put(out + D, &give.b[0][0], DD);
  }
  void adjoint(const double *in, double *g, const double *grad_out) const {
    const product::GridStep step = {dx, dt, keep};
    product::Source p, grad;
    product::Exchange give;
    product::Sums sums;
    source(in, &p);
    put(sums.n0, grad_out, D);
    put(&sums.n1[0][0], grad_out + D, DD);
    product::source_clear(&grad, 0);
    product::transfer_inertia(&step, &p, &give);
    product::transfer_inertia_adj(&step, &p, &give, &grad, &sums);
    put(g + ARM, grad.arm, D);
    g[MASS] = grad.mass;
    put(g + V, grad.v, D);
    put(g + C, &grad.c[0][0], DD);
  }
};

struct unresolved_map {
  // arm; sums over nodes before forces; v and C before the step; v' and C'. Outputs: v and C after it
  enum { ARM = 0, N0 = D, N1 = N0 + D, BEFORE = N1 + DD, MOVED = BEFORE + D + DD, inputs = MOVED + D + DD };
  enum { outputs = D + DD };
  static_assert(sizeof(product::Motion) == outputs * sizeof(double), "Motion holds other numbers");
  void draw(double *in) const {
    for (int k = 0; k < inputs; k++) in[k] = uniform(-1, 1);
    for (int k = MOVED; k < inputs; k++) in[k] *= 4;   // turns by half a radian and more
  }
  void primal(const dual *in, dual *out) const {
    const over_dual::GridStep step = {dx, dt, keep};
    over_dual::Sums sums;
    over_dual::Motion seen;
    put(sums.n0, in + N0, D);
    put(&sums.n1[0][0], in + N1, DD);
    over_dual::motion_seen(&step, in + ARM, &sums, &seen);
    over_dual::keep_unresolved(&step, (const over_dual::Motion *)(in + BEFORE), &seen,
                               (const over_dual::Motion *)(in + MOVED), (over_dual::Motion *)out);
  }
  void adjoint(const double *in, double *g, const double *grad_out) const {
    const product::GridStep step = {dx, dt, keep};
    const product::Motion *before = (const product::Motion *)(in + BEFORE),
                          *moved = (const product::Motion *)(in + MOVED);
    product::Sums sums;
    product::Motion seen, after, grad_kept;
    product::Exchange give;
    product::Source grad;
    double kept[D];
    put(sums.n0, in + N0, D);
    put(&sums.n1[0][0], in + N1, DD);
    product::motion_seen(&step, in + ARM, &sums, &seen);
    product::keep_unresolved(&step, before, &seen, moved, &after);
    put(g + MOVED, grad_out, D + DD);
    product::keep_unresolved_adj(&step, moved, &after, square(g + MOVED + D), &grad_kept,
                                 (const product::Motion *)grad_out);
    product::motion_seen_adj(&step, in + ARM, &grad_kept, &give);
    put(g + N0, give.q, D);
    put(g + N1, &give.b[0][0], DD);
    product::source_clear(&grad, 0);
    product::kept_velocity(&step, moved, &after, kept);
    product::motion_seen_adj_rest(&step, &grad_kept, kept, &grad, before->v);
    put(g + ARM, grad.arm, D);
    put(g + BEFORE, grad.v, D);
    put(g + BEFORE + D, &grad.c[0][0], DD);
  }
};

// The turn of a step is a rotation, and to second order that of the skew part of dt C'.
static void check_turn(void) {
  double off = 0, angle = 0;
  for (int round = 0; round < DRAWS; round++) {
    matrix c, q, qq;
    for (int k = 0; k < DD; k++) c[k / D][k % D] = uniform(-1, 1);
    product::step_turn(dt, c, q);
    product::mat_mul_tn(q, q, qq);
    for (int k = 0; k < DD; k++) off = fmax(off, fabs(qq[k / D][k % D] - (k % (D + 1) == 0)));
    product::step_turn(1e-4, c, q);
    for (int i = 0; i < D; i++)
      for (int j = 0; j < D; j++)
        angle = fmax(angle, fabs(q[i][j] - (i == j) - 0.5e-4 * (c[i][j] - c[j][i])));
  }
  CHECK(off < 1e-14 && angle < 3e-8, "%dD turn of a step: Q^T Q - I is %g, Q less its first order is %g", D, off, angle);
}

#include "physics_contact.inl"
#include "physics_readout.inl"
#include "physics_drive.inl"

static void all(void) {
  hold(spline_map{}, "spline");
  hold(det_map{}, "det");
  for (int k = 0; k < SHAPES; k++) {
    char name[96];
    snprintf(name, sizeof name, "%dD polar, %s", D, shape_name[k]);
    marks diagonal = 0;   // which turns nothing where there is no rotation
    for (int i = 0; i < D; i++) diagonal |= (marks)(k == IDENTITY) << i * (D + 1);
    hold(polar_map{(shape)k}, name, diagonal);
    check_polar((shape)k);
    snprintf(name, sizeof name, "%dD function of stretches, %s", D, shape_name[k]);
    hold(singular_map{(shape)k}, name);
  }
  check_materials();
  check_inelastic();
  check_derived();
  hold(actuation_map{}, "actuation");
  hold(to_grid_map{}, "transfer to the grid");
  hold(to_particle_map{}, "transfer to the particle");
  hold(inertia_map{}, "transfer of inertia to the grid");
  hold(unresolved_map{}, "unresolved motion");
  check_turn();
  check_contacts();
  check_drives();
}
