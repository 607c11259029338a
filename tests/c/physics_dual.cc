// Every adjoint of engine/math and engine/physics against the exact directional derivative of its primal, taken with
// dual numbers, and against central differences beside it. The product is instantiated twice in each dimension: over
// dual for the primals, over double for the adjoints.
#include "check.h"
#include "dual.h"
#include "twofold.h"
#include <string.h>

extern "C" {
#include "cq.h"
#include "physics/material/law.h"
}

typedef dual_of<twofold> dual;

// what engine/math/real.h asks of a Real that is one scalar
static inline double s_sqrt(double x) { return sqrt(x); }
static inline double r_sqrt(double x) { return sqrt(x); }
static inline double r_log(double x) { return log(x); }
static inline double r_exp(double x) { return exp(x); }
static inline dual r_sqrt(dual x) { return s_sqrt(x); }
static inline dual r_log(dual x) { return s_log(x); }
static inline dual r_exp(dual x) { return s_exp(x); }
static inline double w_sqrt(double x) { return sqrt(x); }
static inline double w_exp(double x) { return exp(x); }
static inline double w_atan2(double y, double x) { return atan2(y, x); }
static inline dual w_sqrt(dual x) { return s_sqrt(x); }
static inline dual w_exp(dual x) { return s_exp(x); }
static inline dual w_atan2(dual y, dual x) { return s_atan2(y, x); }
template <typename T> static inline T r_pick(T c, T a, T b) { return c > 0 ? a : b; }
template <typename T> static inline T r_max(T a, T b) { return a > b ? a : b; }
template <typename T> static inline T r_abs(T x) { return x < 0 ? -x : x; }

#include "dual_lame.h"

static uint64_t seed = 88172645463325252u;
static double uniform(double low, double high) {   // xorshift
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

enum { DRAWS = 100 };

// one bit for each input of a map; a readout of a material in space has more than 64
__extension__ typedef unsigned __int128 marks;

// A map of the engine: draw() takes inputs, primal() outputs, adjoint() adds gradients of inputs for gradients of
// outputs; silent: bit k says that input k has no influence; unchecked: that it may have some or none. Differences
// shrink with the step until rounding takes over. Inputs are moved by next to nothing, so that no two stretches are
// equal: a decomposition has no derivative there, while what is made of it has one.
template <typename Map>
static void hold(const Map &map, const char *name, marks silent = 0, marks unchecked = 0, double limit = 1e-12) {
  static_assert((int)Map::inputs <= 128, "a bit for each input");
  double worst = 0, worst_difference = 0, largest[Map::inputs] = {0};
  for (int round = 0; round < DRAWS; round++) {
    double in[Map::inputs], direction[Map::inputs], grad_in[Map::inputs] = {0}, grad_out[Map::outputs];
    map.draw(in);
    for (double &d : direction) d = uniform(-1, 1);
    for (double &g : grad_out) g = uniform(-1, 1);
    dual seeded[Map::inputs], out[Map::outputs];
    for (int k = 0; k < Map::inputs; k++) seeded[k] = {twofold(in[k]) + twofold(1e-16 * uniform(-1, 1)), direction[k]};
    map.primal(seeded, out);
    map.adjoint(in, grad_in, grad_out);
    double wanted = 0, got = 0, size = 0, best = 1e30;
    // relative to the terms of the two sums, which may cancel
    double terms = 0;
    for (int k = 0; k < Map::outputs; k++) {
      const double slope = (double)out[k].slope;
      wanted += grad_out[k] * slope;
      terms += fabs(grad_out[k] * slope);
    }
    for (int k = 0; k < Map::inputs; k++) {
      got += grad_in[k] * direction[k];
      size += fabs(grad_in[k] * direction[k]);
      largest[k] = fmax(largest[k], fabs(grad_in[k]));
    }
    // and to what rounding leaves of a stress that is nearly none: inputs are about one
    size = fmax(fmax(size, terms), 0.01);
    const double error = fabs(got - wanted) / fmax(size, 1e-300);
    worst = error > worst || error != error ? error : worst;
    for (double step = 1e-3; step > 1e-7; step /= 10) {
      double sides[2] = {0, 0};
      for (int side = 0; side < 2; side++) {
        for (int k = 0; k < Map::inputs; k++) seeded[k] = in[k] + (side ? -step : step) * direction[k];
        map.primal(seeded, out);
        for (int k = 0; k < Map::outputs; k++) sides[side] += grad_out[k] * (double)out[k].value;
      }
      best = fmin(best, fabs((sides[0] - sides[1]) / (2 * step) - got) / fmax(size, 1e-300));
    }
    worst_difference = best > worst_difference || best != best ? best : worst_difference;
  }
  CHECK(worst <= limit, "%s: relative error %.1e against dual numbers", name, worst);
  CHECK(worst_difference <= 1e-7, "%s: relative error %.1e against central differences", name, worst_difference);
  for (int k = 0; k < Map::inputs; k++)
    if (!(unchecked >> k & 1))
      CHECK((silent >> k & 1) ? largest[k] < 1e-13 : largest[k] > 1e-6, "%s: gradient of input %d is at most %g", name,
            k, largest[k]);
}

#define CQ_DIM 2
namespace plane {
#include "physics_dual.inl"
}
#undef CQ_DIM
#define CQ_DIM 3
namespace space {
#include "physics_dual.inl"
}

struct moduli_map {
  enum { inputs = 2, outputs = 3 };
  void draw(double *in) const {
    in[0] = uniform(0.5, 20);
    in[1] = uniform(0.5, 200);
  }
  void primal(const dual *in, dual *out) const {
    over_dual::cq_lame_of_moduli(in[0], in[1], &out[0], &out[1], &out[2]);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    cq_lame_of_moduli_adj(in[0], in[1], grad_in, grad_out);
  }
};

struct lame_map {
  enum { inputs = 2, outputs = 3 };
  void draw(double *in) const {
    in[0] = uniform(0.5, 20);
    in[1] = uniform(-0.8, 0.48);
  }
  void primal(const dual *in, dual *out) const { over_dual::cq_lame(in[0], in[1], &out[0], &out[1], &out[2]); }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    cq_lame_adj(in[0], in[1], grad_in, grad_out);
  }
};

#include "physics_wall.inl"

int main(void) {
  hold(lame_map{}, "Lame's constants");
  hold(moduli_map{}, "Lame's constants of moduli");
  check_walls();
  plane::all();
  space::all();
  return check_report();
}
