// rows: four grid nodes along the last axis, each of four reals (momentum and mass, or velocity). The one
// place that knows how a row sits in registers, and the only one with intrinsics: a row is ROW_PARTS
// vectors of 4 / ROW_PARTS nodes.
#ifndef CQ_ROWS_H
#define CQ_ROWS_H

#include "lanes.h"

#define ROW_INLINE static inline __attribute__((always_inline, unused))

// ---- vectors of a row -----------------------------------------------------------------------------------------------

// A Quad is four reals: one node. A Part is one of the ROW_PARTS vectors of a row, 4 / ROW_PARTS nodes.
#if CQ_LANES == 1
typedef struct { real c[4]; } Part;
typedef Part Quad;
enum { ROW_PARTS = 4 };
#else
#if defined(__AVX2__)
#include <immintrin.h>
#endif
typedef real Quad __attribute__((vector_size(4 * CQ_REAL_BYTES), may_alias));
typedef real QuadU __attribute__((vector_size(4 * CQ_REAL_BYTES), may_alias, aligned(CQ_REAL_BYTES)));
#if CQ_REAL_BYTES == 4 && defined(__AVX512F__)
typedef __m512 Part;
enum { ROW_PARTS = 1 };
#elif CQ_REAL_BYTES == 4 && defined(__AVX2__)
typedef __m256 Part;
enum { ROW_PARTS = 2 };
#elif CQ_REAL_BYTES == 8 && defined(__AVX512F__)
typedef __m512d Part;
enum { ROW_PARTS = 2 };
#else
typedef Quad Part;         // whatever the machine makes of four reals
enum { ROW_PARTS = 4 };
#endif
#endif

// The four reals at p.
ROW_INLINE Quad quad_load(const real *p);
// Writes four reals to p.
ROW_INLINE void quad_store(real *p, Quad a);
// a + b
ROW_INLINE Quad quad_add(Quad a, Quad b);
// a b, real by real
ROW_INLINE Quad quad_mul(Quad a, Quad b);
// s a
ROW_INLINE Quad quad_scale(real s, Quad a);
// The nodes of a part from memory, one after the other.
ROW_INLINE Part part_load(const real *p);
// Writes the nodes of a part to memory, one after the other.
ROW_INLINE void part_store(real *p, Part a);
// a + b
ROW_INLINE Part part_add(Part a, Part b);
// a - b
ROW_INLINE Part part_sub(Part a, Part b);
// a b, real by real
ROW_INLINE Part part_mul(Part a, Part b);
// s a
ROW_INLINE Part part_scale(real s, Part a);
// A part that has the same four reals p[0..3] in each of its nodes.
ROW_INLINE Part part_comps(const real *p);
// From a row's four numbers p[0..3], one for each node, those of the nodes of part number `part`, each repeated in all
// four reals of its node.
ROW_INLINE Part part_nodes(const real *p, int part);
// 1 / a where a > 0, else 0
ROW_INLINE Part part_inverse(Part a);
// The sum of the nodes of a part, component by component.
ROW_INLINE Quad part_fold(Part a);
// part_comp(a, k): component k of each node, in all four reals of that node; a macro where the instruction takes no
// variable. r_stream and stream_end: below.

#if CQ_LANES == 1

#define PART_EACH for (int c = 0; c < 4; c++)
ROW_INLINE Part part_load(const real *p) { Part r; PART_EACH r.c[c] = p[c]; return r; }
ROW_INLINE void part_store(real *p, Part a) { PART_EACH p[c] = a.c[c]; }
ROW_INLINE Part part_add(Part a, Part b) { PART_EACH a.c[c] = a.c[c] + b.c[c]; return a; }
ROW_INLINE Part part_sub(Part a, Part b) { PART_EACH a.c[c] = a.c[c] - b.c[c]; return a; }
ROW_INLINE Part part_mul(Part a, Part b) { PART_EACH a.c[c] = a.c[c] * b.c[c]; return a; }
ROW_INLINE Part part_scale(real s, Part a) { PART_EACH a.c[c] = s * a.c[c]; return a; }
ROW_INLINE Part part_comps(const real *p) { return part_load(p); }
ROW_INLINE Part part_nodes(const real *p, int part) { Part r; PART_EACH r.c[c] = p[part]; return r; }
// Component k of each node, in all four reals of that node.
ROW_INLINE Part part_comp(Part a, int k) { Part r; PART_EACH r.c[c] = a.c[k]; return r; }
ROW_INLINE Part part_inverse(Part a) { PART_EACH a.c[c] = a.c[c] > 0 ? (real)1 / a.c[c] : (real)0; return a; }
// A store that bypasses the caches where the machine has one; here an ordinary one.
ROW_INLINE void r_stream(real *p, Real x) { r_store(p, x); }
// Ends a series of r_stream; here nothing.
ROW_INLINE void stream_end(void) {}
ROW_INLINE Quad part_fold(Part a) { return a; }
ROW_INLINE Quad quad_add(Quad a, Quad b) { return part_add(a, b); }
ROW_INLINE void quad_store(real *p, Quad a) { part_store(p, a); }
ROW_INLINE Quad quad_load(const real *p) { return part_load(p); }
ROW_INLINE Quad quad_mul(Quad a, Quad b) { return part_mul(a, b); }
ROW_INLINE Quad quad_scale(real s, Quad a) { return part_scale(s, a); }

#else

ROW_INLINE Quad quad_load(const real *p) { return *(const QuadU *)p; }
ROW_INLINE Quad quad_add(Quad a, Quad b) { return a + b; }
ROW_INLINE void quad_store(real *p, Quad a) { *(QuadU *)p = a; }
ROW_INLINE Quad quad_mul(Quad a, Quad b) { return a * b; }
ROW_INLINE Quad quad_scale(real s, Quad a) { return s * a; }

#if CQ_REAL_BYTES == 4 && defined(__AVX512F__)

ROW_INLINE Part part_comps(const real *p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }
ROW_INLINE Part part_nodes(const real *p, int part) {
  (void)part;
  const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  return _mm512_permutexvar_ps(spread, _mm512_castps128_ps512(_mm_loadu_ps(p)));
}
#define part_comp(a, k) _mm512_permute_ps(a, (k) * 0x55)
ROW_INLINE Part part_inverse(Part a) {
  const __mmask16 some = _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ);
  return _mm512_maskz_div_ps(some, _mm512_set1_ps(1), a);
}
ROW_INLINE Quad part_fold(Part a) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}

#elif CQ_REAL_BYTES == 4 && defined(__AVX2__)

ROW_INLINE Part part_comps(const real *p) { return _mm256_broadcast_ps((const __m128 *)p); }
ROW_INLINE Part part_nodes(const real *p, int part) {
  const __m128 low = _mm_broadcast_ss(p + 2 * part), high = _mm_broadcast_ss(p + 2 * part + 1);
  return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
#define part_comp(a, k) _mm256_permute_ps(a, (k) * 0x55)
ROW_INLINE Part part_inverse(Part a) {
  const Part some = _mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ);
  return _mm256_and_ps(_mm256_div_ps(_mm256_set1_ps(1), a), some);
}
ROW_INLINE Quad part_fold(Part a) { return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); }

#elif CQ_REAL_BYTES == 8 && defined(__AVX512F__)

ROW_INLINE Part part_comps(const real *p) { return _mm512_broadcast_f64x4(_mm256_loadu_pd(p)); }
ROW_INLINE Part part_nodes(const real *p, int part) {
  const __m256d low = _mm256_broadcast_sd(p + 2 * part), high = _mm256_broadcast_sd(p + 2 * part + 1);
  return _mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
}
#define part_comp(a, k) _mm512_permutex_pd(a, (k) * 0x55)
ROW_INLINE Part part_inverse(Part a) {
  const __mmask8 some = _mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_GT_OQ);
  return _mm512_maskz_div_pd(some, _mm512_set1_pd(1), a);
}
ROW_INLINE Quad part_fold(Part a) { return _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1)); }

#else

ROW_INLINE Part part_comps(const real *p) { return quad_load(p); }
ROW_INLINE Part part_nodes(const real *p, int part) { return (Part){p[part], p[part], p[part], p[part]}; }
// Component k of each node, in all four reals of that node.
ROW_INLINE Part part_comp(Part a, int k) { return (Part){a[k], a[k], a[k], a[k]}; }
ROW_INLINE Part part_inverse(Part a) {
#if CQ_REAL_BYTES == 4
  typedef int32_t Bits __attribute__((vector_size(16)));
#else
  typedef int64_t Bits __attribute__((vector_size(32)));
#endif
  const Part inverse = (real)1 / a;
  return (Part)((Bits)(a > (Part){0}) & (Bits)inverse);
}
ROW_INLINE Quad part_fold(Part a) { return a; }

#endif

typedef real PartU __attribute__((vector_size(sizeof(Part)), may_alias, aligned(CQ_REAL_BYTES)));
ROW_INLINE Part part_load(const real *p) { return (Part) * (const PartU *)p; }
ROW_INLINE void part_store(real *p, Part a) { *(PartU *)p = (PartU)a; }
ROW_INLINE Part part_add(Part a, Part b) { return a + b; }
ROW_INLINE Part part_sub(Part a, Part b) { return a - b; }
ROW_INLINE Part part_mul(Part a, Part b) { return a * b; }
ROW_INLINE Part part_scale(real s, Part a) { return s * a; }

// ---- lanes and quads ------------------------------------------------------------------------------------------------

enum { QUADS = CQ_LANES / 4 };   // quads that make up a Real

// A store that bypasses the caches, for data that is not read again soon. Other threads see it after stream_end.
ROW_INLINE void r_stream(real *p, Real x) {
#if CQ_LANES == 16
  _mm512_stream_ps(p, (__m512)x);
#elif CQ_LANES == 8 && CQ_REAL_BYTES == 4
  _mm256_stream_ps(p, (__m256)x);
#elif CQ_LANES == 8
  _mm512_stream_pd(p, (__m512d)x);
#else
  r_store(p, x);
#endif
}
// Ends a series of r_stream: its stores are in memory before any store that follows.
ROW_INLINE void stream_end(void) {
#if CQ_LANES >= 8
  _mm_sfence();
#endif
}

#if CQ_LANES == 16
// A vector whose first eight lanes are p[0..7] and whose last are q[0..7].
ROW_INLINE Real r_join(const real *p, const real *q) {
  return (Real)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(q), 1);
}
// Writes the first eight lanes of x to p[0..7] and the last to q[0..7].
ROW_INLINE void r_split(real *p, real *q, Real x) {
  _mm256_storeu_ps(p, _mm512_castps512_ps256((__m512)x));
  _mm256_storeu_ps(q, _mm512_extractf32x8_ps((__m512)x, 1));
}
#endif

// The Real that consists of these quads, without a detour through memory; the inverse of real_split.
ROW_INLINE Real real_join(const Quad q[QUADS]) {
#if CQ_LANES == 16
  const __m512 a = _mm512_insertf32x4(_mm512_castps128_ps512(q[0]), q[1], 1);
  return (Real)_mm512_insertf32x4(_mm512_insertf32x4(a, q[2], 2), q[3], 3);
#elif CQ_LANES == 8 && CQ_REAL_BYTES == 4
  return (Real)_mm256_insertf128_ps(_mm256_castps128_ps256(q[0]), q[1], 1);
#elif CQ_LANES == 8
  return (Real)_mm512_insertf64x4(_mm512_castpd256_pd512(q[0]), q[1], 1);
#else
  return (Real)q[0];
#endif
}

// Sets q to the quads that a Real consists of: four lanes each, in order.
ROW_INLINE void real_split(Real x, Quad q[QUADS]) {
#if CQ_LANES == 16
  q[0] = _mm512_castps512_ps128((__m512)x);
  q[1] = _mm512_extractf32x4_ps((__m512)x, 1);
  q[2] = _mm512_extractf32x4_ps((__m512)x, 2);
  q[3] = _mm512_extractf32x4_ps((__m512)x, 3);
#elif CQ_LANES == 8 && CQ_REAL_BYTES == 4
  q[0] = _mm256_castps256_ps128((__m256)x);
  q[1] = _mm256_extractf128_ps((__m256)x, 1);
#elif CQ_LANES == 8
  q[0] = _mm512_castpd512_pd256((__m512d)x);
  q[1] = _mm512_extractf64x4_pd((__m512d)x, 1);
#else
  q[0] = (Quad)x;
#endif
}

// Transposes the matrix whose entry (i, j) is quad j of vector i, in place; its own inverse.
ROW_INLINE void real_turn(Real v[QUADS]) {
#if CQ_LANES == 16
  const __m512 a = (__m512)v[0], b = (__m512)v[1], c = (__m512)v[2], d = (__m512)v[3];
  const __m512 s = _mm512_shuffle_f32x4(a, b, 0x44), t = _mm512_shuffle_f32x4(c, d, 0x44);
  const __m512 u = _mm512_shuffle_f32x4(a, b, 0xEE), w = _mm512_shuffle_f32x4(c, d, 0xEE);
  v[0] = (Real)_mm512_shuffle_f32x4(s, t, 0x88);
  v[1] = (Real)_mm512_shuffle_f32x4(s, t, 0xDD);
  v[2] = (Real)_mm512_shuffle_f32x4(u, w, 0x88);
  v[3] = (Real)_mm512_shuffle_f32x4(u, w, 0xDD);
#elif CQ_LANES == 8
  const Real s = v[0], t = v[1];
  v[0] = __builtin_shufflevector(s, t, 0, 1, 2, 3, 8, 9, 10, 11);
  v[1] = __builtin_shufflevector(s, t, 4, 5, 6, 7, 12, 13, 14, 15);
#else
  (void)v;
#endif
}

#endif

// a b + c, which the compiler contracts
ROW_INLINE Part part_fma(Part a, Part b, Part c) { return part_add(part_mul(a, b), c); }
// s b + c
ROW_INLINE Part part_scale_add(real s, Part b, Part c) { return part_add(part_scale(s, b), c); }

// ---- rows -----------------------------------------------------------------------------------------------------------

typedef struct { Part v[ROW_PARTS]; } Row;
#define ROW_EACH _Pragma("GCC unroll 4") for (int i = 0; i < ROW_PARTS; i++)
// The parts of a row that a stencil reaches: its fourth node has no weight. One after the other, for work that fills
// the registers, or at once.
enum { REACHED = ROW_PARTS == 4 ? 3 : ROW_PARTS };
#define PARTS_EACH(part) _Pragma("GCC unroll 1") for (int part = 0; part < REACHED; part++)
#define PARTS_REACHED(part) _Pragma("GCC unroll 4") for (int part = 0; part < REACHED; part++)
enum { PART_REALS = 16 / ROW_PARTS };

// The four nodes of a row from memory, 16 reals.
ROW_INLINE Row row_load(const real *p) { Row r; ROW_EACH r.v[i] = part_load(p + PART_REALS * i); return r; }
// Writes the four nodes of a row to memory, 16 reals.
ROW_INLINE void row_store(real *p, Row a) { ROW_EACH part_store(p + PART_REALS * i, a.v[i]); }
// a + b
ROW_INLINE Row row_add(Row a, Row b) { ROW_EACH a.v[i] = part_add(a.v[i], b.v[i]); return a; }
// a - b
ROW_INLINE Row row_sub(Row a, Row b) { ROW_EACH a.v[i] = part_sub(a.v[i], b.v[i]); return a; }
// a b, real by real
ROW_INLINE Row row_mul(Row a, Row b) { ROW_EACH a.v[i] = part_mul(a.v[i], b.v[i]); return a; }
// s a
ROW_INLINE Row row_scale(real s, Row a) { ROW_EACH a.v[i] = part_scale(s, a.v[i]); return a; }
// A row that has the same four reals p[0..3] in each node.
ROW_INLINE Row row_comps(const real *p) { Row r; ROW_EACH r.v[i] = part_comps(p); return r; }
// Component k of each node, in all four reals of that node. A switch, because the intrinsics take no variable, and not
// every compiler unrolls a loop over k in time.
ROW_INLINE Row row_comp(Row a, int k) {
  switch (k) {
  case 0: ROW_EACH a.v[i] = part_comp(a.v[i], 0); break;
  case 1: ROW_EACH a.v[i] = part_comp(a.v[i], 1); break;
  case 2: ROW_EACH a.v[i] = part_comp(a.v[i], 2); break;
  default: ROW_EACH a.v[i] = part_comp(a.v[i], 3);
  }
  return a;
}
// 1 / a where a > 0, else 0
ROW_INLINE Row row_inverse(Row a) { ROW_EACH a.v[i] = part_inverse(a.v[i]); return a; }
// The sum over a row's nodes, component by component: out[4].
ROW_INLINE void row_sum(real *out, Row a) {
  Quad sum = part_fold(a.v[0]);
  for (int i = 1; i < ROW_PARTS; i++) sum = quad_add(sum, part_fold(a.v[i]));
  quad_store(out, sum);
}
// For each of the rows a, b, c, d the sum over its nodes, component by component: out[16].
ROW_INLINE void row_sums(real *out, Row a, Row b, Row c, Row d) {
#if CQ_LANES > 1 && CQ_REAL_BYTES == 4 && defined(__AVX512F__)
  const __m512 s = _mm512_shuffle_f32x4(a.v[0], b.v[0], 0x44) + _mm512_shuffle_f32x4(a.v[0], b.v[0], 0xEE);
  const __m512 t = _mm512_shuffle_f32x4(c.v[0], d.v[0], 0x44) + _mm512_shuffle_f32x4(c.v[0], d.v[0], 0xEE);
  _mm512_storeu_ps(out, _mm512_shuffle_f32x4(s, t, 0x88) + _mm512_shuffle_f32x4(s, t, 0xDD));
#else
  row_sum(out, a);
  row_sum(out + 4, b);
  row_sum(out + 8, c);
  row_sum(out + 12, d);
#endif
}
#if CQ_LANES > 1 && (defined(__AVX512F__) || (CQ_REAL_BYTES == 4 && defined(__AVX2__)))
#define REACHED_ALONE 0      // ROW_PARTS == 4: a part is a node
#else
#define REACHED_ALONE 1
#endif
// Sums over the nodes of a stencil, part by part as PARTS_EACH goes over them. Where a part is a node they are one
// vector.
#if REACHED_ALONE
typedef struct { Part sum; } RowSum;
// Adds a, which is part number `part` of the rows of a stencil, to the sum over its nodes; part 0 begins the sum.
ROW_INLINE void sum_take(RowSum *s, int part, Part a) { s->sum = part ? part_add(s->sum, a) : a; }
// Writes the sums over nodes of four rows: out[16].
ROW_INLINE void sums_store(real *out, const RowSum *a, const RowSum *b, const RowSum *c, const RowSum *d) {
  part_store(out, a->sum);
  part_store(out + 4, b->sum);
  part_store(out + 8, c->sum);
  part_store(out + 12, d->sum);
}
// Writes the sum over the nodes of one row: out[4].
ROW_INLINE void sum_store(real *out, const RowSum *a) { part_store(out, a->sum); }
#else
typedef struct { Row sum; } RowSum;
// Adds a, which is part number `part` of the rows of a stencil, to the sum over its nodes; part 0 begins the sum.
ROW_INLINE void sum_take(RowSum *s, int part, Part a) { s->sum.v[part] = a; }
// Writes the sums over nodes of four rows: out[16].
ROW_INLINE void sums_store(real *out, const RowSum *a, const RowSum *b, const RowSum *c, const RowSum *d) {
  row_sums(out, a->sum, b->sum, c->sum, d->sum);
}
// Writes the sum over the nodes of one row: out[4].
ROW_INLINE void sum_store(real *out, const RowSum *a) { row_sum(out, a->sum); }
#endif
// A row of zeros.
ROW_INLINE Row row_zero(void) {
  const real zero[4] = {(real)0, (real)0, (real)0, (real)0};
  return row_comps(zero);
}
// a b + c, in one instruction where there is one.
ROW_INLINE Row row_fma(Row a, Row b, Row c) { return row_add(row_mul(a, b), c); }
// s b + c
ROW_INLINE Row row_scale_add(real s, Row b, Row c) { return row_add(row_scale(s, b), c); }

#endif
