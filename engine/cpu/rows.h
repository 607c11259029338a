// rows: four grid nodes along the last axis, each of four reals (momentum and mass, or velocity). The one place that knows
// how a row sits in registers: one 512-bit vector of floats, two of doubles, or four small vectors.
#ifndef CQ_ROWS_H
#define CQ_ROWS_H

#include "lanes.h"

#define ROW_INLINE static inline __attribute__((always_inline, unused))

#if CQ_LANES == 1

typedef struct { real v[4][4]; } Row;
#define ROW_EACH for (int i = 0; i < 4; i++) for (int c = 0; c < 4; c++)
ROW_INLINE Row row_load(const real *p) { Row r; ROW_EACH r.v[i][c] = p[4 * i + c]; return r; }
ROW_INLINE void row_store(real *p, Row a) { ROW_EACH p[4 * i + c] = a.v[i][c]; }
ROW_INLINE Row row_add(Row a, Row b) { ROW_EACH a.v[i][c] += b.v[i][c]; return a; }
ROW_INLINE Row row_sub(Row a, Row b) { ROW_EACH a.v[i][c] -= b.v[i][c]; return a; }
ROW_INLINE Row row_mul(Row a, Row b) { ROW_EACH a.v[i][c] *= b.v[i][c]; return a; }
ROW_INLINE Row row_scale(real s, Row a) { ROW_EACH a.v[i][c] *= s; return a; }
ROW_INLINE Row row_comps(const real *p) { Row r; ROW_EACH r.v[i][c] = p[c]; return r; }   // p[4] in each node
ROW_INLINE Row row_nodes(const real *p) { Row r; ROW_EACH r.v[i][c] = p[i]; return r; }   // p[i] in node i
// component k of each node in all four; 1/a where a > 0, else 0
ROW_INLINE Row row_comp(Row a, int k) { Row r; ROW_EACH r.v[i][c] = a.v[i][k]; return r; }
ROW_INLINE Row row_inverse(Row a) { ROW_EACH a.v[i][c] = a.v[i][c] > 0 ? 1 / a.v[i][c] : (real)0; return a; }
// out[4] = sum over nodes
ROW_INLINE void row_sum(real *out, Row a) { for (int c = 0; c < 4; c++) out[c] = (a.v[0][c] + a.v[1][c]) + (a.v[2][c] + a.v[3][c]); }

#else

typedef real Quad __attribute__((vector_size(4 * CQ_REAL_BYTES), may_alias));
typedef real QuadU __attribute__((vector_size(4 * CQ_REAL_BYTES), may_alias, aligned(CQ_REAL_BYTES)));

#if CQ_REAL_BYTES == 4 && CQ_SIMD == 4
typedef real Row __attribute__((vector_size(64), may_alias));
typedef real RowU __attribute__((vector_size(64), may_alias, aligned(4)));
#define ROW_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
ROW_INLINE Row row_load(const real *p) { return *(const RowU *)p; }
ROW_INLINE void row_store(real *p, Row a) { *(RowU *)p = a; }
ROW_INLINE Row row_add(Row a, Row b) { return a + b; }
ROW_INLINE Row row_sub(Row a, Row b) { return a - b; }
ROW_INLINE Row row_mul(Row a, Row b) { return a * b; }
ROW_INLINE Row row_scale(real s, Row a) { return s * a; }
ROW_INLINE Row row_comps(const real *p) {
  const Quad q = *(const QuadU *)p;
  return ROW_SHUFFLE(q, q, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}
ROW_INLINE Row row_nodes(const real *p) {
  const Quad q = *(const QuadU *)p;
  return ROW_SHUFFLE(q, q, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
}
#define row_comp(a, k) ROW_SHUFFLE(a, a, k, k, k, k, 4 + k, 4 + k, 4 + k, 4 + k, 8 + k, 8 + k, 8 + k, 8 + k, 12 + k, 12 + k, 12 + k, 12 + k)
ROW_INLINE Row row_inverse(Row a) {
  const Row inverse = (real)1 / a;
  typedef int32_t Bits __attribute__((vector_size(64)));
  return (Row)((Bits)(a > (Row){0}) & (Bits)inverse);
}
ROW_INLINE void row_sum(real *out, Row a) {
  typedef real Half __attribute__((vector_size(32)));
  const Half h = ROW_SHUFFLE(a, a, 0, 1, 2, 3, 4, 5, 6, 7) + ROW_SHUFFLE(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
  *(QuadU *)out = ROW_SHUFFLE(h, h, 0, 1, 2, 3) + ROW_SHUFFLE(h, h, 4, 5, 6, 7);
}
#else
typedef struct { Quad v[4]; } Row;
#define ROW_EACH _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
ROW_INLINE Row row_load(const real *p) { Row r; ROW_EACH r.v[i] = *(const QuadU *)(p + 4 * i); return r; }
ROW_INLINE void row_store(real *p, Row a) { ROW_EACH *(QuadU *)(p + 4 * i) = a.v[i]; }
ROW_INLINE Row row_add(Row a, Row b) { ROW_EACH a.v[i] += b.v[i]; return a; }
ROW_INLINE Row row_sub(Row a, Row b) { ROW_EACH a.v[i] -= b.v[i]; return a; }
ROW_INLINE Row row_mul(Row a, Row b) { ROW_EACH a.v[i] *= b.v[i]; return a; }
ROW_INLINE Row row_scale(real s, Row a) { ROW_EACH a.v[i] *= s; return a; }
ROW_INLINE Row row_comps(const real *p) { Row r; ROW_EACH r.v[i] = *(const QuadU *)p; return r; }
ROW_INLINE Row row_nodes(const real *p) { Row r; ROW_EACH r.v[i] = (Quad){p[i], p[i], p[i], p[i]}; return r; }
ROW_INLINE Row row_comp(Row a, int k) {
  Row r;
  ROW_EACH r.v[i] = (Quad){a.v[i][k], a.v[i][k], a.v[i][k], a.v[i][k]};
  return r;
}
ROW_INLINE Row row_inverse(Row a) {
#if CQ_REAL_BYTES == 4
  typedef int32_t Bits __attribute__((vector_size(16)));
#else
  typedef int64_t Bits __attribute__((vector_size(32)));
#endif
  Row r;
  ROW_EACH {
    const Quad inverse = (real)1 / a.v[i];
    r.v[i] = (Quad)((Bits)(a.v[i] > (Quad){0}) & (Bits)inverse);
  }
  return r;
}
ROW_INLINE void row_sum(real *out, Row a) { *(QuadU *)out = (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]); }
#endif
#endif

ROW_INLINE Row row_zero(void) {
  const real zero[4] = {(real)0, (real)0, (real)0, (real)0};
  return row_comps(zero);
}
// a b + c and s b + c; the compiler contracts them
ROW_INLINE Row row_fma(Row a, Row b, Row c) { return row_add(row_mul(a, b), c); }
ROW_INLINE Row row_scale_add(real s, Row b, Row c) { return row_add(row_scale(s, b), c); }

#endif
