// tile: the particles of a tile and the nodes of its region; gathering from them and scattering to them. A block works on a tile,
// in rounds of as many particles as it has threads.

enum {
  SIDE = CQ_DIM == 3 ? 4 : 8,        // cells of a tile along an axis
  REGION = SIDE + 4,                 // nodes of its region
  SPAN = SIDE + 2,                   // cells that its particles may be in
  NODES = CQ_DIM == 3 ? REGION * REGION * REGION : REGION * REGION,
  CELLS = CQ_DIM == 3 ? SPAN * SPAN * SPAN : SPAN * SPAN,
  LAST = CQ_DIM - 1,
  ROWS_Y = CQ_DIM == 3 ? 3 : 1,      // rows of a stencil in a plane of the first axis
  THREADS = CQ_REAL_BYTES == 4 ? 256 : 128,   // of a block: what the shared memory holds
  WARP = 32,
};
enum { X = 0, V = CQ_DIM, C = 2 * CQ_DIM, F = 2 * CQ_DIM + CQ_DIM * CQ_DIM };   // first field of each state quantity
enum { SIGMA = 0, FORCE = CQ_SYM };

// momentum and mass, or velocity: components first, then mass at CQ_DIM
typedef struct __align__(4 * CQ_REAL_BYTES) Node {
  real c[4];
} Node;

// Where a particle lies in its tile's region: first node of its stencil; (E3) position f in the stencil and arm to its middle,
// in cells. 0: not in the region, or not finite.
typedef struct Place {
  int first[CQ_DIM];
  real f[CQ_DIM], arm[CQ_DIM];
} Place;

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

// coordinates of a node counted through a cube with the last axis fastest
CQ_GPU void node_at(const int n, const int side, int at[CQ_DIM]) {
  at[LAST] = n % side;
#if CQ_DIM == 3
  at[1] = n / side % side;
  at[0] = n / (side * side);
#else
  at[0] = n / side;
#endif
}

CQ_GPU int index_in(const int side, const int at[CQ_DIM]) {
  int n = at[0];
  CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) n = n * side + at[i];
  return n;
}

// The nodes of a tile's region, from the tiles that own them. All threads of a block call it.
CQ_GPU void region_load(Node region[NODES], const void *grid, const int32_t *neighbors) {
  __syncthreads();
  for (int n = (int)threadIdx.x; n < NODES; n += THREADS) {
    int at[CQ_DIM], which = 0;
    node_at(n, REGION, at);
    EACH(i) {
      const int beside = at[i] < 1 ? 0 : at[i] <= SIDE ? 1 : 2;
      which = which * 3 + beside;
      at[i] -= 1 + (beside - 1) * SIDE;
    }
    const int32_t owner = neighbors[which];
    Node node = {{0, 0, 0, 0}};
    if (owner >= 0) node = ((const Node *)grid)[(int64_t)owner * CQ_TILE_NODES + index_in(SIDE, at)];
    region[n] = node;
  }
  __syncthreads();
}

// ---- gather -------------------------------------------------------------------------------------------------------------

// sums over the nodes of a stencil: n0 = sum w g, n1 = sum w g o^T, nm = sum w g_mass, for offsets o in {-1, 0, 1} from the middle
typedef struct Sums {
  real n0[CQ_DIM], n1[CQ_DIM][CQ_DIM], nm;
} Sums;

// what a particle exchanges with the node at o: e = g . (q + b o) + g_mass m
typedef struct Exchange {
  real q[CQ_DIM], b[CQ_DIM][CQ_DIM], m;
} Exchange;

// Walks over the stencil once: sums of what SUMS, slopes_i = sum dw/df_i e of what SLOPES; MASS: the nodes' last component counts.
template <int SUMS, int SLOPES, int MASS>
CQ_GPU void visit(const Node region[NODES], const Place *p, const Exchange *give, Sums *sums, real slopes[CQ_DIM]) {
  real w[CQ_DIM][3], dw[CQ_DIM][3];
  EACH(i) spline(p->f[i], w[i]);
  if (SLOPES) EACH(i) spline_slope(p->f[i], dw[i]);
  const Node *corner = region + index_in(REGION, p->first);
  CQ_UNROLL for (int i = 0; i < 3; i++) {
    real plane[CQ_DIM] = {0}, plane_y[CQ_DIM] = {0}, plane_z[CQ_DIM] = {0}, plane_m = 0, e = 0, e_y = 0, e_z = 0;
    CQ_UNROLL for (int j = 0; j < ROWS_Y; j++) {
      const real wy = CQ_DIM == 3 ? w[1][j] : (real)1;
      real row[CQ_DIM] = {0}, row_z[CQ_DIM] = {0}, row_m = 0, row_e = 0, row_ez = 0;
      CQ_UNROLL for (int k = 0; k < 3; k++) {
        const Node g = corner[CQ_DIM == 3 ? (i * REGION + j) * REGION + k : i * REGION + k];
        if (SUMS) {
          EACH(r) {
            const real wg = w[LAST][k] * g.c[r];
            row[r] += wg;
            if (k != 1) row_z[r] += k == 0 ? -wg : wg;
          }
          if (MASS) row_m += w[LAST][k] * g.c[CQ_DIM];
        }
        if (SLOPES) {
          real at_node = MASS ? g.c[CQ_DIM] * give->m : (real)0;
          EACH(r) {
            real u = give->q[r] + (real)(i - 1) * give->b[r][0] + (real)(k - 1) * give->b[r][LAST];
            if (CQ_DIM == 3) u += (real)(j - 1) * give->b[r][1];
            at_node += g.c[r] * u;
          }
          row_e += w[LAST][k] * at_node;
          row_ez += dw[LAST][k] * at_node;
        }
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

// ---- scatter ------------------------------------------------------------------------------------------------------------

// What the particles of a round give, sorted by cell: 1 + dim nodes each, {q, m} and, for each axis j, {b_j, f_j}; f of the last
// axis counts from the region's edge, and q is short of b arm along it.
typedef struct Round {
  Node *give;                // {1 + dim, THREADS}
  int32_t *start;            // {CELLS + 1} of each cell's particles
  int32_t *list;             // {THREADS}
} Round;

// start from the number of particles in each cell, which lies one further; by the first warp
CQ_GPU void count_up(int32_t start[CELLS + 1]) {
  enum { EACH_LANE = (CELLS + WARP - 1) / WARP };
  if (threadIdx.x >= WARP) return;
  const int begin = (int)threadIdx.x * EACH_LANE + 1;
  int32_t sum = 0;
  for (int c = begin; c < begin + EACH_LANE && c <= CELLS; c++) sum += start[c];
  int32_t before = sum;
  for (int d = 1; d < WARP; d *= 2) {
    const int32_t below = __shfl_up_sync(0xffffffffu, before, d);
    if ((int)threadIdx.x >= d) before += below;
  }
  before -= sum;
  for (int c = begin; c < begin + EACH_LANE && c <= CELLS; c++) start[c] = before += start[c];
}

// Sorts the particles of a round by cell, those of a cell by thread: who comes first at a counter does not matter. Returns the
// place of this thread's one. All threads of a block call it; mine: this one has a particle.
CQ_GPU int sort_round(const Round *round, const int mine, const int cell) {
  __syncthreads();
  for (int c = (int)threadIdx.x; c <= CELLS; c += THREADS) round->start[c] = 0;
  __syncthreads();
  const int32_t arrived = mine ? atomicAdd(&round->start[cell + 1], 1) : 0;
  __syncthreads();
  count_up(round->start);
  __syncthreads();
  if (mine) round->list[round->start[cell] + arrived] = (int32_t)threadIdx.x;
  __syncthreads();
  if (!mine) return 0;
  int at = round->start[cell];
  for (int32_t k = round->start[cell]; k < round->start[cell + 1]; k++) at += round->list[k] < (int32_t)threadIdx.x;
  return at;
}

// weight of a node at distance d [cells], |d| <= 3/2
CQ_GPU real spline_at(const real d) {
  const real a = r_abs(d), b = (real)1.5 - a;
  return a < (real)0.5 ? (real)0.75 - d * d : (real)0.5 * b * b;
}

// what the particles of a round give to the node at `at` of the region: w (q + b o), w m
CQ_GPU Node node_sum(const Round *round, const int at[CQ_DIM]) {
  Node sum = {{0, 0, 0, 0}};
  const int low = at[LAST] < 2 ? 0 : at[LAST] - 2, high = at[LAST] < SPAN ? at[LAST] : SPAN - 1;
  CQ_UNROLL for (int i = 0; i < 3; i++) CQ_UNROLL for (int j = 0; j < ROWS_Y; j++) {
    const int x = at[0] - i, y = CQ_DIM == 3 ? at[1] - j : 0;
    if (x < 0 || x >= SPAN || y < 0 || y >= SPAN) continue;
    // the cells of a row hold their particles one after another
    const int32_t *row = round->start + (CQ_DIM == 3 ? x * SPAN + y : x) * SPAN;
    for (int32_t k = row[low]; k < row[high + 1]; k++) {
      const Node give = round->give[k], along_x = round->give[THREADS + k], along_z = round->give[CQ_DIM * THREADS + k];
      const real d = (real)at[LAST] - along_z.c[CQ_DIM];
      real wx[3];
      spline(along_x.c[CQ_DIM], wx);
      real w = wx[i] * spline_at(d);
      real u[CQ_DIM];
      EACH(r) u[r] = give.c[r] + (real)(i - 1) * along_x.c[r] + d * along_z.c[r];
#if CQ_DIM == 3
      const Node along_y = round->give[2 * THREADS + k];
      real wy[3];
      spline(along_y.c[3], wy);
      w *= wy[j];
      EACH(r) u[r] += (real)(j - 1) * along_y.c[r];
#endif
      EACH(r) sum.c[r] += w * u[r];
      sum.c[CQ_DIM] += w * give.c[CQ_DIM];
    }
  }
  return sum;
}

// Scatters one particle of each thread into the arena of the tile; the first round writes, later ones add. All threads of a
// block call it; mine: this one has a particle.
CQ_GPU void scatter(const Round *round, const int mine, const Place *p, const Exchange *give, const int first_round, Node *arena) {
  const int at = sort_round(round, mine, index_in(SPAN, p->first));
  if (mine) {
    Node node = {{0, 0, 0, 0}};
    EACH(r) node.c[r] = give->q[r] - give->b[r][LAST] * p->arm[LAST];
    node.c[CQ_DIM] = give->m;
    round->give[at] = node;
    EACH(j) {
      EACH(r) node.c[r] = give->b[r][j];
      node.c[CQ_DIM] = j == LAST ? p->f[j] + (real)p->first[j] : p->f[j];
      round->give[(1 + j) * THREADS + at] = node;
    }
  }
  __syncthreads();
  for (int n = (int)threadIdx.x; n < NODES; n += THREADS) {
    int node[CQ_DIM];
    node_at(n, REGION, node);
    Node sum = node_sum(round, node);
    if (!first_round) {
      const Node before = arena[n];
      for (int r = 0; r < 4; r++) sum.c[r] += before.c[r];
    }
    arena[n] = sum;
  }
}
