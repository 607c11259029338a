// Random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011). A
// block of 128 bits is a function of seed and position, so a generator is two numbers that can be stored, and the same
// everywhere: logarithms are computed here, because those of libraries differ in the last bit.
#include "tensor.h"
#include <math.h>

typedef struct bits {
  uint64_t a, b;
} bits;

// The next 128 random bits of a generator, by Philox 4x32-10; advances random->position by one.
static bits next(cq_random *random) {
  uint32_t key0 = (uint32_t)random->seed, key1 = (uint32_t)(random->seed >> 32);
  uint32_t c0 = (uint32_t)random->position, c1 = (uint32_t)(random->position >> 32), c2 = 0, c3 = 0;
  random->position++;
  for (int i = 0; i < 10; i++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
    c1 = (uint32_t)p1, c3 = (uint32_t)p0;
    c0 = n0, c2 = n2;
    key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;   // golden ratio, sqrt(3) - 1
  }
  return (bits){(uint64_t)c1 << 32 | c0, (uint64_t)c3 << 32 | c2};
}

// 64 random bits b as a number in [0, 1), of which it takes 53.
static double unit(uint64_t b) { return (double)(b >> 11) * 0x1p-53; }   // in [0, 1)

// Sets x {count} to random numbers uniform in [min, max). Advances random->position.
void cq_random_uniform(cq_random *random, int64_t count, double min, double max, double *x) {
  for (int64_t i = 0; i < count; i += 2) {
    bits b = next(random);
    x[i] = min + (max - min) * unit(b.a);
    if (i + 1 < count) x[i + 1] = min + (max - min) * unit(b.b);
  }
  // rounding may reach the end that is not included
  for (int64_t i = 0; i < count; i++)
    if (x[i] >= max && max > min) x[i] = nextafter(max, min);
}

// ln x of a positive normal number by additions and products alone, so that all machines give the same bits: x = 2^e m,
// ln m = 2 artanh((m-1)/(m+1)).
static double logarithm(double x) {
  int e;
  double m = frexp(x, &e);
  if (m < 0.70710678118654752) m *= 2, e--;
  double t = (m - 1) / (m + 1), t2 = t * t, sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;      // |t| < 0.172: the next term is below 1e-21
  return 2 * t * sum + e * 0.69314718055994531;
}

// Sets x {count} to normally distributed random numbers of a mean and a standard deviation, by Marsaglia's polar
// method: two numbers from a point in the unit disc. Advances random->position.
void cq_random_normal(cq_random *random, int64_t count, double mean, double deviation, double *x) {
  for (int64_t i = 0; i < count; i += 2) {
    double u, v, s;
    do {
      bits b = next(random);
      u = 2 * unit(b.a) - 1, v = 2 * unit(b.b) - 1;
      s = u * u + v * v;
    } while (s >= 1 || s < 0x1p-100);
    double scale = sqrt(-2 * logarithm(s) / s);
    x[i] = mean + deviation * (u * scale);
    if (i + 1 < count) x[i + 1] = mean + deviation * (v * scale);
  }
}

// A random whole number uniform in [0, limit). Draws in the incomplete last interval are rejected, so that no number is
// more likely.
static uint64_t below(cq_random *random, uint64_t limit) {
  uint64_t excess = (UINT64_MAX % limit + 1) % limit, b;
  do b = next(random).a;
  while (b > UINT64_MAX - excess);
  return b % limit;
}

// Sets x {count} to random whole numbers uniform from min to max, both included. Advances random->position.
void cq_random_integers(cq_random *random, int64_t count, int64_t min, int64_t max, double *x) {
  for (int64_t i = 0; i < count; i++) x[i] = (double)(min + (int64_t)below(random, (uint64_t)(max - min) + 1));
}

// Sets x {count} to a random permutation of 1 to count. Advances random->position.
void cq_random_permutation(cq_random *random, int64_t count, double *x) {
  for (int64_t i = 0; i < count; i++) {
    int64_t j = (int64_t)below(random, (uint64_t)i + 1);
    x[i] = x[j];
    x[j] = (double)(i + 1);
  }
}
