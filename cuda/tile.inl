// tile: the particles of a tile and the nodes of its region. Particles gather from these nodes and scatter to them. A
// block works on a tile, in rounds of as many particles as it has threads.

enum {
  SIDE = CQ_DIM == 3 ? 4 : 8,        // cells of a tile along an axis
  REGION = SIDE + 4,                 // nodes of its region
  SPAN = SIDE + 2,                   // cells that its particles may be in
  NODES = CQ_DIM == 3 ? REGION * REGION * REGION : REGION * REGION,
  CELLS = CQ_DIM == 3 ? SPAN * SPAN * SPAN : SPAN * SPAN,
  LAST = CQ_DIM - 1,
  ROWS_Y = CQ_DIM == 3 ? 3 : 1,      // rows of a stencil in a plane of the first axis
  WARP = 32,
  // Threads of a block, forward and backward: as many as 48 KiB of shared memory have room for; for float half of that,
  // so that two blocks run at the same time.
  TRANSFER_THREADS = CQ_REAL_BYTES == 4 ? 256 : CQ_DIM == 2 ? 128 : 96,
  ADJ_THREADS = CQ_REAL_BYTES == 4 ? CQ_DIM == 2 ? 256 : 192 : CQ_DIM == 2 ? 128 : 96,
};
static_assert(ADJ_THREADS <= TRANSFER_THREADS, "parts of tiles are of ADJ_THREADS");
enum { X = 0, V = CQ_DIM, C = 2 * CQ_DIM, F = 2 * CQ_DIM + CQ_DIM * CQ_DIM };   // first field of each state quantity
enum { SIGMA = 0, FORCE = CQ_SYM, PRESSURE = CQ_SYM + CQ_DIM };
enum { FIELDS = 2 * CQ_DIM + 2 * CQ_DIM * CQ_DIM, ACTUATION_FIELDS = CQ_SYM + 2 * CQ_DIM };

// The address of a particle's first field in an array {fields, slots}; its next field is CQ_GROUP numbers further, so
// that neighbouring threads read neighbouring numbers.
CQ_GPU real *slot_in(const void *data, const int fields, const int32_t slot) {
  CQ_GLOBAL(data);
  return (real *)data + CQ_SLOT_AT(fields, (uint32_t)slot);
}

#if CQ_REAL_BYTES == 4
#define SCALES scales_4
#else
#define SCALES scales_8
#endif

// momentum and mass, or velocity: components first, then mass at CQ_DIM
typedef struct __align__(4 * CQ_REAL_BYTES) Node {
  real c[4];
} Node;

// Where a particle lies in its tile's region: first node of its stencil; (E3) position f in the stencil and arm to its
// middle, in cells.
typedef struct Place {
  int first[CQ_DIM];
  real f[CQ_DIM], arm[CQ_DIM];
} Place;

// Finds where a particle at x lies among the nodes of its tile's region. Returns 0 where some of its nodes are outside
// of that region, so that particles must be sorted, or x is not finite.
CQ_GPU int place(const cq_tile *tile, const real inv_dx, const real x[CQ_DIM], Place *p) {
  int inside = 1;
  EACH(i) {
    const real cell = inv_dx * x[i], base = r_floor(cell - (real)0.5), at = base - (real)(tile->lower[i] - 1);
    const int in = at >= 0 && at < SPAN;
    inside &= in;
    p->first[i] = in ? (int)at : 0;
    p->f[i] = cell - base;
    p->arm[i] = (real)1 - p->f[i];
  }
  return inside;
}

// The particles that one block works on, as a tile: a tile's particles are divided among several blocks, its parts.
// part: counted through all tiles.
CQ_GPU cq_tile part_of_tile(const cq_frame *s, const int32_t part) {
  const cq_tile *tiles = s->tiles;
  CQ_GLOBAL(tiles);
  cq_tile tile = tiles[part / s->parts];
  const int32_t each = ((tile.count + s->parts - 1) / s->parts + WARP - 1) / WARP * WARP,
                begin = part % s->parts * each;
  const int32_t left = tile.count > begin ? tile.count - begin : 0;
  tile.first += begin;
  tile.count = left < each ? left : each;
  return tile;
}

// The coordinates of node number `node` of a cube of side^dim nodes whose last axis is fastest. Unsigned, so that
// powers of two become shifts.
CQ_GPU void node_at(const int node, const int side, int at[CQ_DIM]) {
  const unsigned n = (unsigned)node, s = (unsigned)side;
  at[LAST] = (int)(n % s);
#if CQ_DIM == 3
  at[1] = (int)(n / s % s);
  at[0] = (int)(n / (s * s));
#else
  at[0] = (int)(n / s);
#endif
}

// Index of a place in a block of side^DIM nodes.
CQ_GPU int index_in(const int side, const int at[CQ_DIM]) {
  int n = at[0];
  CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) n = n * side + at[i];
  return n;
}

// ---- gather ---------------------------------------------------------------------------------------------------------

// Walks through the stencil of a particle once; g: the node at offset o. SUMS: adds sum w g, sum w g o^T and, with
// MASS, sum w g_mass to n0, n1 and nm of *sums. SLOPES: slopes_i += sum dw/df_i e, e = g . (q + b o) + g_mass m, with
// q, b and m of `give`. MASS: nodes have a last component, g_mass.
template <int SUMS, int SLOPES, int MASS>
CQ_GPU void visit(const Node region[NODES], const Place *p, const Exchange *give, Sums *sums, real slopes[CQ_DIM]) {
  real w[CQ_DIM][3], dw[CQ_DIM][3];
  EACH(i) spline(p->f[i], w[i]);
  if (SLOPES) EACH(i) spline_slope(p->f[i], dw[i]);
  const Node *corner = region + index_in(REGION, p->first);
  CQ_UNROLL for (int i = 0; i < 3; i++) {
    real plane[CQ_DIM] = {0}, plane_y[CQ_DIM] = {0}, plane_z[CQ_DIM] = {0}, plane_m = 0, e = 0, e_y = 0, e_z = 0;
    CQ_UNROLL for (int j = 0; j < ROWS_Y; j++) {
      const real wy = CQ_DIM == 3 ? w[1][j] : (real)1, *wz = w[LAST];
      const Node *g = corner + (CQ_DIM == 3 ? (i * REGION + j) * REGION : i * REGION);
      const Node low = g[0], middle = g[1], high = g[2];
      real row[CQ_DIM], row_z[CQ_DIM], row_m = 0, row_e = 0, row_ez = 0;
      if (SUMS) {
        EACH(r) {
          const real up = wz[2] * high.c[r];
          row[r] = wz[0] * low.c[r] + up + wz[1] * middle.c[r];
          row_z[r] = up - wz[0] * low.c[r];
        }
        if (MASS) row_m = wz[0] * low.c[CQ_DIM] + wz[1] * middle.c[CQ_DIM] + wz[2] * high.c[CQ_DIM];
      }
      if (SLOPES) {
        real at_low = 0, at_middle = 0, at_high = 0;
        if (MASS) {
          at_low = low.c[CQ_DIM] * give->m;
          at_middle = middle.c[CQ_DIM] * give->m;
          at_high = high.c[CQ_DIM] * give->m;
        }
        EACH(r) {
          real u = give->q[r] + (real)(i - 1) * give->b[r][0];
          if (CQ_DIM == 3) u += (real)(j - 1) * give->b[r][1];
          at_low += low.c[r] * (u - give->b[r][LAST]);
          at_middle += middle.c[r] * u;
          at_high += high.c[r] * (u + give->b[r][LAST]);
        }
        row_e = wz[0] * at_low + wz[1] * at_middle + wz[2] * at_high;
        row_ez = dw[LAST][0] * at_low + dw[LAST][1] * at_middle + dw[LAST][2] * at_high;
      }
      if (SUMS) {
        EACH(r) {
          const real wr = wy * row[r];
          plane[r] += wr;
          if (CQ_DIM == 3 && j != 1) plane_y[r] += j == 0 ? -wr : wr;
          plane_z[r] += wy * row_z[r];
        }
        plane_m += wy * row_m;
      }
      if (SLOPES) {
        e += wy * row_e;
        e_z += wy * row_ez;
        if (CQ_DIM == 3) e_y += dw[1][j] * row_e;
      }
    }
    if (SUMS) {
      EACH(r) {
        const real wp = w[0][i] * plane[r];
        sums->n0[r] += wp;
        if (i != 1) sums->n1[r][0] += i == 0 ? -wp : wp;
        if (CQ_DIM == 3) sums->n1[r][1] += w[0][i] * plane_y[r];
        sums->n1[r][LAST] += w[0][i] * plane_z[r];
      }
      sums->nm += w[0][i] * plane_m;
    }
    if (SLOPES) {
      slopes[0] += dw[0][i] * e;
      if (CQ_DIM == 3) slopes[1] += w[0][i] * e_y;
      slopes[LAST] += w[0][i] * e_z;
    }
  }
}

// ---- scatter --------------------------------------------------------------------------------------------------------

// Scattering without atomics, so that the bits are always the same. The particles of a round are sorted by cell. The
// stencil of a cell has three planes across the first axis. A thread takes one such plane of one cell. It adds up, in
// registers, what all particles of the cell give to the nodes of the plane. Then the threads add their sums to the
// nodes in shared memory, in turns: in one turn each adds to the same place of its plane, so no two add to the same
// node.
enum {
  // of the region's nodes: three, one for each plane of a stencil; or one, and three times as many turns
  COPIES = CQ_DIM == 3 && CQ_REAL_BYTES == 8 ? 1 : 3,
  PLANE = NODES / REGION,            // nodes of a plane across the first axis
  PLANE_CELLS = CELLS / SPAN,
  // Nodes of a copy: a plane of nodes for each plane of cells. The 3 more let the next copy begin in another bank.
  COPY = COPIES == 1 ? NODES : SPAN * PLANE + 3,
};

// What the particles of a round give, sorted by cell. Each has 1 + dim rows of a Node: {q, m}, and {b_j, f_j} for each
// axis j.
template <int THREADS>
struct Round {
  enum { ROW = THREADS + THREADS / 8 };   // of give; particles 8 apart lie in different banks
  Node *give;                // {1 + dim, ROW}
  Node *sums;                // {COPIES, COPY} zero between rounds
  // {CELLS + 2} where each cell's particles begin, then the number of cells with particles; zero between rounds
  int32_t *start;
  int32_t *list;             // {THREADS}
  uint8_t *filled;           // {CELLS} cells with particles
};

#define CQ_ROUND(name, threads, used)                                                \
  CQ_SHARED(Node, name##_give, (used) ? (1 + CQ_DIM) * Round<threads>::ROW : 1);     \
  CQ_SHARED(Node, name##_sums, (used) ? COPIES * COPY : 1);                          \
  CQ_SHARED(int32_t, name##_start, (used) ? CELLS + 2 : 1);                          \
  CQ_SHARED(int32_t, name##_list, (used) ? (threads) : 1);                           \
  CQ_SHARED(uint8_t, name##_filled, (used) ? CELLS : 1);                             \
  const Round<threads> name = {name##_give, name##_sums, name##_start, name##_list, name##_filled}

// Clears the sums and the starts of cells in shared memory before the first round; each round leaves them zero.
template <int THREADS>
CQ_GPU void clear_round(const Round<THREADS> *round) {
  const Node zero = {{0, 0, 0, 0}};
  for (int n = (int)threadIdx.x; n < COPIES * COPY; n += THREADS) round->sums[n] = zero;
  for (int c = (int)threadIdx.x; c < CELLS + 2; c += THREADS) round->start[c] = 0;
  __syncthreads();
}

// Prefix sum by the first warp: start, from particle counts (a cell's count stands one entry further), becomes the
// first place of each cell; also lists the cells with particles.
template <int THREADS>
CQ_GPU void count_up(const Round<THREADS> *round) {
  // one sum holds both counts: particles in its lower 16 bits, cells with particles in its upper ones
  enum { EACH_LANE = (CELLS + WARP - 1) / WARP, FILLED = 1 << 16 };
  if (threadIdx.x >= WARP) return;
  const int begin = (int)threadIdx.x * EACH_LANE;
  uint32_t count[EACH_LANE], sum = 0;
  CQ_UNROLL for (int k = 0; k < EACH_LANE; k++) {
    count[k] = begin + k < CELLS ? (uint32_t)round->start[begin + k + 1] : 0;
    if (count[k]) count[k] += FILLED;
    sum += count[k];
  }
  uint32_t before = sum;
  for (int d = 1; d < WARP; d *= 2) {
    const uint32_t below = __shfl_up_sync(0xffffffffu, before, d);
    if ((int)threadIdx.x >= d) before += below;
  }
  if (threadIdx.x == WARP - 1) round->start[CELLS + 1] = (int32_t)(before / FILLED);
  before -= sum;
  CQ_UNROLL for (int k = 0; k < EACH_LANE; k++) {
    if (count[k]) round->filled[before / FILLED] = (uint8_t)(begin + k);
    before += count[k];
    if (begin + k < CELLS) round->start[begin + k + 1] = (int32_t)(before % FILLED);
  }
}

// Sorts the particles of a round by cell, and those of a cell by thread, so that the order of arrival at a counter does
// not matter. Returns the place of this thread's particle. All threads of a block call it; mine: this one has a
// particle.
template <int THREADS>
CQ_GPU int sort_round(const Round<THREADS> *round, const int mine, const int cell) {
  const int32_t arrived = mine ? atomicAdd(&round->start[cell + 1], 1) : 0;
  __syncthreads();
  count_up(round);
  __syncthreads();
  if (mine) round->list[round->start[cell] + arrived] = (int32_t)threadIdx.x;
  __syncthreads();
  if (!mine) return 0;
  const int32_t begin = round->start[cell], end = round->start[cell + 1];
  int at = begin;
  for (int32_t k = begin; k < end; k++) at += round->list[k] < (int32_t)threadIdx.x;
  return at;
}

// What the particles of one cell give to the nodes of plane i of their stencil: the sums of w (q + b o), momentum, and
// w m, mass.
template <int THREADS>
CQ_GPU void plane_sums(const Round<THREADS> *round, const int cell, const int i, Node sums[ROWS_Y][3]) {
  const int32_t begin = round->start[cell], end = round->start[cell + 1];
  // w = flat + bend (f - middle)^2, as spline() has it
  const real side = (real)(i - 1), middle = (real)1 - (real)0.5 * side;
  const real flat = i == 1 ? (real)0.75 : 0, bend = i == 1 ? (real)-1 : (real)0.5;
  for (int32_t k = begin; k < end; k++) {
    const Node *at = round->give + k + k / 8;
    const Node give = at[0], along_x = at[Round<THREADS>::ROW], along_z = at[CQ_DIM * Round<THREADS>::ROW];
    const real d = along_x.c[CQ_DIM] - middle, wx = flat + bend * d * d;
    const Node along_y = at[CQ_DIM == 3 ? 2 * Round<THREADS>::ROW : 0];
    real wy[3] = {1, 0, 0}, wz[3], u[CQ_DIM];
    if (CQ_DIM == 3) spline(along_y.c[CQ_DIM], wy);
    spline(along_z.c[CQ_DIM], wz);
    EACH(r) u[r] = give.c[r] + side * along_x.c[r] - (CQ_DIM == 3 ? along_y.c[r] : 0);
    CQ_UNROLL for (int j = 0; j < ROWS_Y; j++) {
      CQ_UNROLL for (int n = 0; n < 3; n++) {
        const real w = wx * wy[j] * wz[n];
        EACH(r) sums[j][n].c[r] += w * (u[r] + (real)(n - 1) * along_z.c[r]);
        sums[j][n].c[CQ_DIM] += w * give.c[CQ_DIM];
      }
      EACH(r) u[r] += along_y.c[r];
    }
  }
}

// Adds momentum and mass of one node to another's.
CQ_GPU void add_node(Node *to, const Node *node) {
  Node sum = *to;
  for (int r = 0; r < 4; r++) sum.c[r] += node->c[r];
  *to = sum;
}

// Scatters one particle of each thread into the arena of the tile: the first round writes, later rounds add. All
// threads of a block call it; mine: this one has a particle.
template <int THREADS>
CQ_GPU void scatter(const Round<THREADS> *round, const int mine, const Place *p, const Exchange *give,
                    const int first_round, Node *arena) {
  CQ_GLOBAL(arena);
  const int at = sort_round(round, mine, index_in(SPAN, p->first));
  if (mine) {
    Node *to = round->give + at + at / 8, node = {{0, 0, 0, 0}};
    EACH(r) node.c[r] = give->q[r];
    node.c[CQ_DIM] = give->m;
    to[0] = node;
    EACH(j) {
      EACH(r) node.c[r] = give->b[r][j];
      node.c[CQ_DIM] = p->f[j];
      to[(1 + j) * Round<THREADS>::ROW] = node;
    }
  }
  __syncthreads();
  const int cells = round->start[CELLS + 1], planes = 3 * cells;
  for (int from = 0; from < planes; from += THREADS) {
    const int task = from + (int)threadIdx.x, i = task % 3;
    Node sums[ROWS_Y][3] = {}, *corner = NULL;
    if (task < planes) {
      const int cell = round->filled[task / 3];
      int first[CQ_DIM];
      node_at(cell, SPAN, first);
      plane_sums(round, cell, i, sums);
      corner = round->sums + i * (COPIES == 1 ? PLANE : COPY) + index_in(REGION, first);
    }
    for (int turn = 0; turn < 3 / COPIES; turn++)
      CQ_UNROLL for (int j = 0; j < ROWS_Y; j++) CQ_UNROLL for (int n = 0; n < 3; n++) {
        __syncthreads();
        if (corner && (COPIES == 3 || i == turn)) add_node(&corner[j * REGION + n], &sums[j][n]);
      }
  }
  // Without cells it is zero already. It must not be cleared then: no turn, and so no barrier, lies between this line
  // and threads that still read the number of cells.
  for (int c = (int)threadIdx.x; cells && c < CELLS + 2; c += THREADS) round->start[c] = 0;
  __syncthreads();
  const Node zero = {{0, 0, 0, 0}};
  // the planes of cells with particles: a later round adds to the nodes that these reach and to no others
  const int low = cells ? round->filled[0] / PLANE_CELLS : SPAN,
            high = cells ? round->filled[cells - 1] / PLANE_CELLS : -1;
  const int begin = first_round ? 0 : low * PLANE, end = first_round ? NODES : (high + 3) * PLANE;
  for (int n = begin + (int)threadIdx.x; n < end; n += THREADS) {
    Node sum = zero;
    CQ_UNROLL for (int i = 0; i < COPIES; i++) {
      const int x = COPIES == 1 ? low : n / PLANE - i;
      if (x < low || x > high) continue;
      Node *part = &round->sums[COPIES == 1 ? n : i * COPY + n - i * PLANE];
      add_node(&sum, part);
      *part = zero;
    }
    if (first_round)
      arena[n] = sum;
    else
      add_node(&arena[n], &sum);
  }
}
