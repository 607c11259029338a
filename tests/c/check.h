// A C or C++ test program: CHECK(condition, "format", ...) as often as it likes, return check_report() at the end.
// The last line is "N passed, N failed", which tests/run.lua reads.
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>

static int check_passed, check_failed;

// the message says what was got and what was wanted
#define CHECK(condition, ...)                                                        \
  do {                                                                               \
    if (condition) {                                                                 \
      check_passed++;                                                                \
    } else {                                                                         \
      check_failed++;                                                                \
      printf("FAILED  %s:%d: %s: ", __FILE__, __LINE__, #condition);                 \
      printf(__VA_ARGS__);                                                           \
      printf("\n");                                                                  \
    }                                                                                \
  } while (0)

// The larger of two errors; a nan, which fmax passes over, is larger than any number.
static inline double check_worst(double a, double b) { return a != a || b <= a ? a : b; }

// relative to the larger of the two and of scale, so that two values near zero may differ by rounding
static inline int check_near(double got, double wanted, double relative, double scale) {
  const double size = fmax(fmax(fabs(got), fabs(wanted)), scale);
  return fabs(got - wanted) <= relative * size;    // false for nan
}

static inline int check_report(void) {
  printf("%d passed, %d failed\n", check_passed, check_failed);
  return check_failed > 0 || check_passed == 0;
}

#endif
