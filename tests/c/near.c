// The nodes of surfaces that are near each other, against every pair of them; and when they are found again.
#include "check.h"
#include "world/grids.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 300 };
static cq_rim rim[MOST];
static double places[MOST * 3];

static double random_to(double most) { return most * rand() / RAND_MAX; }

// What `near` should hold: pairs within `reach`, of two bodies or far apart at rest, in order.
static int matches(const cq_near *near, int dim, int32_t count, double reach) {
  int32_t at = 0;
  for (int32_t a = 0; a < count; a++)
    for (int32_t b = 0; b < a; b++) {
      double square = 0;
      int apart = rim[a].body != rim[b].body;
      for (int i = 0; i < dim; i++) square += pow(places[a * dim + i] - places[b * dim + i], 2);
      for (int i = 0; i < 3; i++) apart |= abs(rim[a].cell[i] - rim[b].cell[i]) > 4;
      if (!(square < reach * reach) || !apart) continue;
      if (at == near->count || near->pair[2 * at] != a || near->pair[2 * at + 1] != b) return 0;
      at++;
    }
  return at == near->count;
}

// Nodes anywhere in a box `size` cells wide. wild: one of them is far away, and one nowhere.
static void scatter(int dim, int32_t count, double size, int wild) {
  for (int32_t k = 0; k < count; k++) {
    rim[k].body = rand() % 2;
    for (int i = 0; i < 3; i++) rim[k].cell[i] = i < dim ? rand() % 12 : 0;
    for (int i = 0; i < dim; i++) places[k * dim + i] = random_to(size);
  }
  if (!wild) return;
  places[1] = 1e12;
  places[dim] = NAN;
}

static void check_found(int dim, int32_t count, double size, int wild) {
  const cq_model m = {.dim = dim, .dx = 1};
  cq_near near = {0};
  scatter(dim, count, size, wild);
  CHECK(cq_near_update(&near, &m, rim, places, count) == CQ_OK, "%d nodes in %dD", count, dim);
  CHECK(matches(&near, dim, count, CQ_NEAR_REACH + 2 * CQ_NEAR_WAY), "%d nodes within %g cells in %dD, %d pairs", count,
        size, dim, near.count);
  cq_near_free(&near);
}

// Nodes that move together keep their pairs; when one goes a way of its own they are found again.
static void check_moved(int dim) {
  const cq_model m = {.dim = dim, .dx = 1};
  cq_near near = {0};
  scatter(dim, MOST, 12, 0);
  cq_near_update(&near, &m, rim, places, MOST);
  for (int32_t k = 0; k < MOST; k++)
    for (int i = 0; i < dim; i++) places[k * dim + i] += 100 + random_to(0.9 * CQ_NEAR_WAY / sqrt(3));
  const int32_t count = near.count;
  near.count = 0;                              // not found again: stays so
  cq_near_update(&near, &m, rim, places, MOST);
  CHECK(near.count == 0, "found again after all moved together");
  near.count = count;
  places[0] += 2 * CQ_NEAR_WAY;
  cq_near_update(&near, &m, rim, places, MOST);
  CHECK(matches(&near, dim, MOST, CQ_NEAR_REACH + 2 * CQ_NEAR_WAY), "pairs after a node has moved, in %dD", dim);
  cq_near_free(&near);
}

int main(void) {
  static const int32_t counts[] = {1, 2, 17, MOST};
  static const double sizes[] = {0, 1.9, 6, 40};
  for (int dim = 2; dim <= 3; dim++) {
    for (size_t n = 0; n < 4; n++)
      for (size_t k = 0; k < 4; k++) check_found(dim, counts[n], sizes[k], 0);
    check_found(dim, MOST, 8, 1);
    check_found(dim, 0, 1, 0);
    check_moved(dim);
  }
  return check_report();
}
