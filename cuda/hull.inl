// hull: the nodes around a tile of cells of a reference grid, in shared memory: vector fields from there to
// particles, and what particles give to nodes, without atomics and always in the same order.

enum {
  HULL = SIDE + 2,
  HULL_NODES = CQ_DIM == 3 ? HULL * HULL * HULL : HULL * HULL,
  HULL_CELLS = CQ_DIM == 3 ? SIDE * SIDE * SIDE : SIDE * SIDE,
  TOUCHED = CQ_DIM == 3 ? 27 : 9,
  GIVEN = 1 << CQ_DIM,       // tiles that give to a node, at most
  SCATTER_ROWS = CQ_DIM * CQ_DIM + 2 * CQ_DIM,   // of a particle: slope, value, place in its cell
  // threads of a block: as many as 48 KiB of shared memory have room for
  CELL_THREADS = CQ_REAL_BYTES == 4 ? 256 : CQ_DIM == 2 ? 128 : 96,
};

// ---- nodes of a hull, and particles ---------------------------------------------------------------------------------

// components of a vector field apart, for particles of neighbouring cells are read together
typedef struct Hull {
  real c[CQ_DIM][HULL_NODES];
} Hull;

// Node `first` of an array of nodes.
CQ_GPU const Node *nodes_at(const void *data, const int64_t first) { return (const Node *)data + first; }

// Copies a vector field of the nodes around a tile of a reference grid to shared memory; 0 where there is no node. All
// threads of the block call it.
CQ_GPU void hull_load(const cq_shapes *r, Hull *hull, const Node *field, const int32_t tile) {
  for (int n = (int)threadIdx.x; n < HULL_NODES; n += CELL_THREADS) {
    const int32_t node = r->hull[(int64_t)tile * HULL_NODES + n];
    Node at = {{0, 0, 0, 0}};
    if (node >= 0) at = field[node];
    EACH(i) hull->c[i][n] = at.c[i];
  }
}

// weights of the three nodes around a particle along each axis, and their slopes [1/length]
typedef struct Axes {
  real w[CQ_DIM][3], d[CQ_DIM][3];
} Axes;

// Quadratic B-spline weights of a particle and their derivatives [1/length] along each axis; fraction: its place from
// the node of its cell, -1/2 to 1/2 [cells].
CQ_GPU void axes_of(const real inv_dx, const real fraction[CQ_DIM], Axes *a) {
  EACH(i) {
    spline(fraction[i] + (real)1, a->w[i]);
    spline_slope(fraction[i] + (real)1, a->d[i]);
    CQ_UNROLL for (int k = 0; k < 3; k++) a->d[i][k] *= inv_dx;
  }
}

// Sets fraction to the place of particle p from the node of its cell of the reference grid, -1/2 to 1/2 [cells].
CQ_GPU void fraction_load(const cq_shapes *r, const int32_t p, real fraction[CQ_DIM]) {
  EACH(i) fraction[i] = slot_in(r->fraction, CQ_DIM, p)[i * CQ_GROUP];
}

// Sets value = sum N q and slope = sum q (x) grad N over the nodes q around a particle. at(i, n): component i of the
// node n places behind the particle's lowest one in a hull.
template <class At>
CQ_GPU void field_at(const Axes *a, const At &at, real value[CQ_DIM], real slope[CQ_DIM][CQ_DIM]) {
  EACH(i) {
    value[i] = 0;
    EACH(j) slope[i][j] = 0;
    CQ_UNROLL for (int x = 0; x < 3; x++) {
      real n = 0, dy = 0, dz = 0;
      CQ_UNROLL for (int y = 0; y < ROWS_Y; y++) {
        real row = 0, row_z = 0;
        CQ_UNROLL for (int z = 0; z < 3; z++) {
          const real v = at(i, (CQ_DIM == 3 ? (x * HULL + y) * HULL : x * HULL) + z);
          row += a->w[LAST][z] * v;
          row_z += a->d[LAST][z] * v;
        }
        n += (CQ_DIM == 3 ? a->w[1][y] : (real)1) * row;
        dz += (CQ_DIM == 3 ? a->w[1][y] : (real)1) * row_z;
        if (CQ_DIM == 3) dy += a->d[1][y] * row;
      }
      value[i] += a->w[0][x] * n;
      slope[i][0] += a->d[0][x] * n;
      if (CQ_DIM == 3) slope[i][1] += a->w[0][x] * dy;
      slope[i][LAST] += a->w[0][x] * dz;
    }
  }
}

// A field of the nodes of a hull at a particle: value, and its gradient slope[i][j] = d value_i / dX_j. corner: the
// lowest node around the particle, in the hull.
CQ_GPU void hull_at(const Hull *hull, const int corner, const Axes *a, real value[CQ_DIM], real slope[CQ_DIM][CQ_DIM]) {
  field_at(a, [&](const int i, const int n) { return hull->c[i][corner + n]; }, value, slope);
}

// The stretch I + slope of particle p, and its F = stretch F0. slope: sum u (x) grad N of the displacements u of the
// hull's nodes.
CQ_GPU void deform(const cq_shapes *r, const int32_t p, const real slope[CQ_DIM][CQ_DIM],
                   real stretch[CQ_DIM][CQ_DIM], real f[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) stretch[i][j] = slope[i][j] + (real)(i == j);
  EACH(i) EACH(j) f[i][j] = stretch[i][j];
  if (!r->start) return;
  real start[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) start[i][j] = slot_in(r->start, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP];
  mat_mul(stretch, start, f);
}

// Replaces a by a F0^T, where F0 is the deformation gradient that particle p begins the rollout with; leaves it where
// all begin undeformed.
CQ_GPU void times_initial_f(const cq_shapes *r, const int32_t p, real a[CQ_DIM][CQ_DIM]) {
  if (!r->start) return;
  real start[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) start[i][j] = slot_in(r->start, CQ_DIM * CQ_DIM, p)[(i * CQ_DIM + j) * CQ_GROUP];
  mat_mul_nt(a, start, t);
  EACH(i) EACH(j) a[i][j] = t[i][j];
}

// ---- scatter --------------------------------------------------------------------------------------------------------

// What the particles of a round give to the nodes of the hull: N value + slope grad N. As in tile.inl, a thread takes
// one of the three planes of a cell's nodes across the first axis, adds up what all particles of the cell give to it,
// and then threads add to shared memory in turns; each plane has a copy of the nodes.
typedef struct Scatter {
  real rows[SCATTER_ROWS][CELL_THREADS + CELL_THREADS / 8];   // particles 8 apart lie in different banks
  real sums[3][CQ_DIM][HULL_NODES];
  int32_t start[HULL_CELLS + 1];
} Scatter;

enum { ROW_VALUE = CQ_DIM * CQ_DIM, ROW_FRACTION = ROW_VALUE + CQ_DIM };

// The place of entry k in shared memory, where a gap after every eight avoids bank conflicts.
CQ_GPU int column_of(const int k) { return k + k / 8; }

// Clears the sums of a tile, and loads where the particles of each cell begin.
CQ_GPU void scatter_begin(const cq_shapes *r, Scatter *s, const int32_t tile) {
  for (int n = (int)threadIdx.x; n < 3 * CQ_DIM * HULL_NODES; n += CELL_THREADS) (&s->sums[0][0][0])[n] = 0;
  for (int c = (int)threadIdx.x; c < HULL_CELLS + 1; c += CELL_THREADS)
    s->start[c] = r->cell_start[(int64_t)tile * (HULL_CELLS + 1) + c];
}

// Stores what this thread's particle will scatter to nodes in its column of shared memory: a matrix that goes by grad N
// (slope), a vector that goes by N (value, NULL: zeros), and its place in the cell.
CQ_GPU void scatter_put(Scatter *s, const real fraction[CQ_DIM], const real *value, const real slope[CQ_DIM][CQ_DIM]) {
  const int at = column_of((int)threadIdx.x);
  EACH(i) EACH(j) s->rows[i * CQ_DIM + j][at] = slope[i][j];
  EACH(i) s->rows[ROW_VALUE + i][at] = value ? value[i] : 0;
  EACH(i) s->rows[ROW_FRACTION + i][at] = fraction[i];
}

// Adds what the particles [begin, end) of a round, those of one cell, give to the nodes of the cell's plane x of three:
// N value + slope grad N. sums: of the plane's nodes.
CQ_GPU void scatter_plane(const Scatter *s, const real inv_dx, const int begin, const int end, const int x,
                          real sums[ROWS_Y][3][CQ_DIM]) {
  for (int k = begin; k < end; k++) {
    const int at = column_of(k);
    real fraction[CQ_DIM];
    Axes a;
    EACH(i) fraction[i] = s->rows[ROW_FRACTION + i][at];
    axes_of(inv_dx, fraction, &a);
    const real wx = x == 0 ? a.w[0][0] : x == 1 ? a.w[0][1] : a.w[0][2];
    const real dx = x == 0 ? a.d[0][0] : x == 1 ? a.d[0][1] : a.d[0][2];
    EACH(i) {
      const real *slope = &s->rows[i * CQ_DIM][at];
      enum { NEXT = CELL_THREADS + CELL_THREADS / 8 };
      const real n = wx * s->rows[ROW_VALUE + i][at] + dx * slope[0], along_z = wx * slope[LAST * NEXT],
                 along_y = CQ_DIM == 3 ? wx * slope[NEXT] : 0;
      CQ_UNROLL for (int y = 0; y < ROWS_Y; y++) {
        const real wy = CQ_DIM == 3 ? a.w[1][y] : (real)1;
        const real m = CQ_DIM == 3 ? wy * n + a.d[1][y] * along_y : n, z = wy * along_z;
        CQ_UNROLL for (int w = 0; w < 3; w++) sums[y][w][i] += a.w[LAST][w] * m + a.d[LAST][w] * z;
      }
    }
  }
}

// Adds what the particles of a round have stored by scatter_put to the tile's sums: those from number `from` of the
// tile's `count` on, one for each thread. All threads of the block call it.
CQ_GPU void scatter_round(Scatter *s, const real inv_dx, const int32_t from, const int32_t count) {
  const int32_t to = from + CELL_THREADS < count ? from + CELL_THREADS : count;
  __syncthreads();
  for (int first = 0; first < 3 * HULL_CELLS; first += CELL_THREADS) {
    const int task = first + (int)threadIdx.x, cell = task / 3, x = task % 3;
    real sums[ROWS_Y][3][CQ_DIM] = {};
    int at = -1;
    if (task < 3 * HULL_CELLS) {
      const int begin = max(s->start[cell], from) - from, end = min(s->start[cell + 1], to) - from;
      int corner[CQ_DIM];
      if (begin < end) {
        scatter_plane(s, inv_dx, begin, end, x, sums);
        node_at(cell, SIDE, corner);
        corner[0] += x;
        at = index_in(HULL, corner);
      }
    }
    CQ_UNROLL for (int y = 0; y < ROWS_Y; y++) CQ_UNROLL for (int w = 0; w < 3; w++) {
      __syncthreads();
      if (at >= 0) EACH(i) s->sums[x][i][at + y * HULL + w] += sums[y][w][i];
    }
  }
  __syncthreads();
}

// Writes the tile's sums to its arena in global memory and clears them, after the last round. first: overwrites the
// arena, else adds to it.
CQ_GPU void scatter_end(Scatter *s, Node *arena, const int first) {
  CQ_GLOBAL(arena);
  for (int n = (int)threadIdx.x; n < HULL_NODES; n += CELL_THREADS) {
    Node sum = {{0, 0, 0, 0}};
    EACH(i) {
      sum.c[i] = s->sums[0][i][n] + s->sums[1][i][n] + s->sums[2][i][n];
      s->sums[0][i][n] = s->sums[1][i][n] = s->sums[2][i][n] = 0;
    }
    if (!first) add_node(&sum, &arena[n]);
    arena[n] = sum;
  }
  __syncthreads();
}

// The nodes of a tile in arena `field` (0: displacements or forces, 1: velocities).
CQ_GPU Node *arena_at(const cq_shapes *r, const int field, const int32_t tile) {
  return (Node *)r->arena[field] + (int64_t)tile * HULL_NODES;
}

// What a node of a reference grid gets in all: the sum of its entries in the arenas of the tiles around it, always in
// the same order.
CQ_GPU Node given_to(const cq_shapes *r, const int field, const int32_t node) {
  Node sum = {{0, 0, 0, 0}}, part[GIVEN];
  const Node *arena = (const Node *)r->arena[field];
  const int32_t *given = r->given + (int64_t)node * GIVEN;
  CQ_GLOBAL(arena);
  CQ_GLOBAL(given);
  CQ_UNROLL for (int k = 0; k < GIVEN; k++) {
    const int32_t at = given[k];
    part[k] = {{0, 0, 0, 0}};
    if (at >= 0) part[k] = arena[at];
  }
  CQ_UNROLL for (int k = 0; k < GIVEN; k++) EACH(i) sum.c[i] += part[k].c[i];
  return sum;
}
