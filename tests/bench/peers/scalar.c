// scalar: the same scenes in plain C, as one writes them down: arrays of structs, one thread, no intrinsics.
//
//   cc -std=c11 -O3 -march=native -DDIM=2 scalar.c -lm -o scalar2d;  scalar2d SCENE
//
// The state of every step is kept; the grid of a step is made again on the way back. Gradients reach the states, and W
// and b of the controller. Speaks as cqlua.lua does.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef DIM
#define DIM 2
#endif
#define EACH(i) for (int i = 0; i < DIM; i++)
enum { NODES = DIM == 2 ? 9 : 27 };

typedef float real;
typedef struct { real x[DIM], v[DIM], c[DIM][DIM], f[DIM][DIM]; } particle;   // or the adjoint of one
typedef struct { real p[DIM], m; } node;                                      // momentum, then velocity, and mass
typedef struct { real mass, volume, share; int group, signal; } constants;

static struct {
  int n, steps, cells[3], inset, corotated, groups, actuators, target, features;
  real dx, dt, gravity[DIM], friction, mu, lambda, strength, direction[DIM];
} scene;
static constants *constant;
static particle *state;              // {steps + 1, n}
static particle *grad_state;         // {n}
static node *grid, *grad_grid;       // {cells}
static size_t grid_count;
static real *z, *u;                  // {steps, features}, {steps, actuators}
static real *W, *b, *grad_W, *grad_b, *grad_z, *grad_u;   // {features, actuators}, {actuators}
static double loss;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t count, size_t size) {
  void *out = calloc(count ? count : 1, size);
  if (!out) {
    fprintf(stderr, "scalar: no memory for %zu bytes\n", count * size);
    exit(1);
  }
  return out;
}

// ---- small matrices -------------------------------------------------------------------------------------------------

// out = a b, a^T b, a b^T
static inline void mul(real a[DIM][DIM], real m[DIM][DIM], real out[DIM][DIM]) {
  EACH(i) EACH(j) {
    real s = 0;
    EACH(k) s += a[i][k] * m[k][j];
    out[i][j] = s;
  }
}
static inline void mul_tn(real a[DIM][DIM], real m[DIM][DIM], real out[DIM][DIM]) {
  EACH(i) EACH(j) {
    real s = 0;
    EACH(k) s += a[k][i] * m[k][j];
    out[i][j] = s;
  }
}
static inline void mul_nt(real a[DIM][DIM], real m[DIM][DIM], real out[DIM][DIM]) {
  EACH(i) EACH(j) {
    real s = 0;
    EACH(k) s += a[i][k] * m[j][k];
    out[i][j] = s;
  }
}

// returns det f
static inline real cofactor(real f[DIM][DIM], real out[DIM][DIM]) {
#if DIM == 2
  out[0][0] = f[1][1], out[0][1] = -f[1][0], out[1][0] = -f[0][1], out[1][1] = f[0][0];
  return f[0][0] * f[1][1] - f[0][1] * f[1][0];
#else
  EACH(i) EACH(j) {
    const int a = (i + 1) % 3, c = (i + 2) % 3, d = (j + 1) % 3, e = (j + 2) % 3;
    out[i][j] = f[a][d] * f[c][e] - f[a][e] * f[c][d];
  }
  return f[0][0] * out[0][0] + f[0][1] * out[0][1] + f[0][2] * out[0][2];
#endif
}

// ---- one particle ---------------------------------------------------------------------------------------------------

typedef struct { int base[DIM]; real fx[DIM], w[3][DIM], dw[3][DIM]; } spline;

static inline spline spline_at(const real x[DIM]) {
  spline s;
  EACH(i) {
    const real at = x[i] / scene.dx;
    s.base[i] = (int)floorf(at - (real)0.5);
    const real f = s.fx[i] = at - (real)s.base[i];
    s.w[0][i] = (real)0.5 * ((real)1.5 - f) * ((real)1.5 - f);
    s.w[1][i] = (real)0.75 - (f - 1) * (f - 1);
    s.w[2][i] = (real)0.5 * (f - (real)0.5) * (f - (real)0.5);
    s.dw[0][i] = (f - (real)1.5) / scene.dx;
    s.dw[1][i] = -2 * (f - 1) / scene.dx;
    s.dw[2][i] = (f - (real)0.5) / scene.dx;
  }
  return s;
}

// the k-th node of a particle: its place in the grid, position relative to the particle, weight, gradient of the weight
static inline size_t spline_node(const spline *s, int k, real dpos[DIM], real *w, real dw[DIM]) {
  const int o[3] = {DIM == 2 ? k / 3 : k / 9, DIM == 2 ? k % 3 : k / 3 % 3, k % 3};
  size_t at = 0;
  *w = 1;
  EACH(i) {
    at = at * (size_t)scene.cells[i] + (size_t)(s->base[i] + o[i]);
    dpos[i] = ((real)o[i] - s->fx[i]) * scene.dx;
    *w *= s->w[o[i]][i];
  }
  EACH(i) {
    dw[i] = 1;
    EACH(j) dw[i] *= i == j ? s->dw[o[j]][j] : s->w[o[j]][j];
  }
  return at;
}

#if DIM == 2
static real rotation(real f[2][2], real r[2][2]) {
  const real a = f[0][0] + f[1][1], s = f[1][0] - f[0][1], length = sqrtf(a * a + s * s);
  r[0][0] = r[1][1] = a / length;
  r[1][0] = s / length;
  r[0][1] = -r[1][0];
  return length;
}
#endif

// tau = P F^T; sigma: actuation along y in the material frame
static void stress(real f[DIM][DIM], real sigma, real tau[DIM][DIM]) {
  real cof[DIM][DIM];
  const real J = cofactor(f, cof);
  real pressure;
#if DIM == 2
  if (scene.corotated) {
    real r[2][2], d[2][2];
    rotation(f, r);
    EACH(i) EACH(j) d[i][j] = 2 * scene.mu * (f[i][j] - r[i][j]);
    mul_nt(d, f, tau);
    pressure = scene.lambda * (J - 1) * J;
  } else
#endif
  {
    mul_nt(f, f, tau);
    EACH(i) EACH(j) tau[i][j] *= scene.mu;
    pressure = scene.lambda * logf(J) - scene.mu;
  }
  EACH(i) tau[i][i] += pressure;
  EACH(i) EACH(j) tau[i][j] += sigma * f[i][1] * f[j][1];
}

static void stress_adj(real f[DIM][DIM], real sigma, real grad_f[DIM][DIM], real *grad_sigma, real g[DIM][DIM]) {
  real cof[DIM][DIM], grad_J, trace = 0;
  const real J = cofactor(f, cof);
  EACH(i) trace += g[i][i];
#if DIM == 2
  if (scene.corotated) {
    real r[2][2], d[2][2], gd[2][2], gtd[2][2];
    const real length = rotation(f, r);
    EACH(i) EACH(j) d[i][j] = f[i][j] - r[i][j];
    mul(g, f, gd);
    mul_tn(g, d, gtd);
    EACH(i) EACH(j) grad_f[i][j] += 2 * scene.mu * (gtd[i][j] + gd[i][j]);
    // through the angle of the rotation
    const real c = r[0][0] / length, s = r[1][0] / length;
    const real angle = 2 * scene.mu * (r[1][0] * (gd[0][0] + gd[1][1]) + r[0][0] * (gd[0][1] - gd[1][0]));
    grad_f[0][0] -= s * angle;
    grad_f[1][1] -= s * angle;
    grad_f[1][0] += c * angle;
    grad_f[0][1] -= c * angle;
    grad_J = scene.lambda * trace * (2 * J - 1);
  } else
#endif
  {
    EACH(i) EACH(j) EACH(k) grad_f[i][j] += scene.mu * (g[i][k] + g[k][i]) * f[k][j];
    grad_J = scene.lambda * trace / J;
  }
  EACH(i) EACH(j) {
    grad_f[i][j] += grad_J * cof[i][j];
    grad_f[i][1] += sigma * (g[i][j] + g[j][i]) * f[j][1];
    *grad_sigma += g[i][j] * f[i][1] * f[j][1];
  }
}

// ---- one node -------------------------------------------------------------------------------------------------------

// which sides of the box hold a node: the sign of the normal along each axis, or 0
static inline int sides(const int at[DIM], int normal[DIM]) {
  int any = 0;
  EACH(i) {
    normal[i] = at[i] <= scene.inset ? 1 : at[i] >= scene.cells[i] - scene.inset ? -1 : 0;
    any |= normal[i];
  }
  return any;
}

static inline void friction(int axis, int normal, real v[DIM]) {
  const real l = (real)normal * v[axis];
  if (!(l < 0)) return;
  v[axis] = 0;
  real speed = 0;
  EACH(i) speed += v[i] * v[i];
  speed = sqrtf(speed);
  const real keep = speed + scene.friction * l;
  EACH(i) v[i] = keep > 0 ? v[i] * (keep / speed) : 0;
}

// v: before; g: dL/dv' becomes dL/dv
static inline void friction_adj(int axis, int normal, const real v[DIM], real g[DIM]) {
  const real l = (real)normal * v[axis];
  if (!(l < 0)) return;
  real t[DIM], speed2 = 0, gt = 0;
  EACH(i) t[i] = i == axis ? 0 : v[i];
  EACH(i) speed2 += t[i] * t[i], gt += g[i] * t[i];
  const real speed = sqrtf(speed2);
  if (!(speed + scene.friction * l > 0)) {
    EACH(i) g[i] = 0;
    return;
  }
  const real ratio = scene.friction * l / speed;
  EACH(i) g[i] = (1 + ratio) * g[i] - gt * ratio / speed2 * t[i];
  g[axis] = (real)normal * gt * scene.friction / speed;
}

static inline void node_index(size_t k, int at[DIM]) {
  for (int i = DIM - 1; i >= 0; i--) {
    at[i] = (int)(k % (size_t)scene.cells[i]);
    k /= (size_t)scene.cells[i];
  }
}

// ---- the step -------------------------------------------------------------------------------------------------------

static real signal_of(int s, int p) {
  return constant[p].signal < 0 ? 0 : scene.strength * u[s * scene.actuators + constant[p].signal];
}

// G = m C - 4/dx^2 dt V tau
static void affine_of(const particle *q, const constants *k, real tau[DIM][DIM], real out[DIM][DIM]) {
  const real factor = -4 / (scene.dx * scene.dx) * scene.dt * k->volume;
  EACH(i) EACH(j) out[i][j] = factor * tau[i][j] + k->mass * q->c[i][j];
}

static void p2g(int s) {
  memset(grid, 0, grid_count * sizeof *grid);
  for (int p = 0; p < scene.n; p++) {
    particle *q = &state[(size_t)s * (size_t)scene.n + (size_t)p];
    const constants *k = &constant[p];
    real tau[DIM][DIM], g[DIM][DIM], dpos[DIM], w, dw[DIM];
    stress(q->f, signal_of(s, p), tau);
    affine_of(q, k, tau, g);
    const spline at = spline_at(q->x);
    for (int a = 0; a < NODES; a++) {
      node *to = &grid[spline_node(&at, a, dpos, &w, dw)];
      EACH(i) {
        real m = k->mass * q->v[i];
        EACH(j) m += g[i][j] * dpos[j];
        to->p[i] += w * m;
      }
      to->m += w * k->mass;
    }
  }
}

static void update_node(size_t k, real v[DIM], int walls) {
  EACH(i) v[i] = grid[k].p[i] / grid[k].m + scene.dt * scene.gravity[i];
  int at[DIM], normal[DIM];
  node_index(k, at);
  if (!walls || !sides(at, normal)) return;
  EACH(i) if (normal[i]) friction(i, normal[i], v);
}

// velocities take the place of momenta
static void update_grid(void) {
  for (size_t k = 0; k < grid_count; k++) {
    if (!(grid[k].m > 0)) continue;
    real v[DIM];
    update_node(k, v, 1);
    EACH(i) grid[k].p[i] = v[i];
  }
}

static void g2p(int s) {
  for (int p = 0; p < scene.n; p++) {
    particle *q = &state[(size_t)s * (size_t)scene.n + (size_t)p], *to = q + scene.n;
    const spline at = spline_at(q->x);
    real v[DIM] = {0}, c[DIM][DIM] = {{0}}, dpos[DIM], w, dw[DIM];
    for (int a = 0; a < NODES; a++) {
      const node *from = &grid[spline_node(&at, a, dpos, &w, dw)];
      EACH(i) v[i] += w * from->p[i];
      EACH(i) EACH(j) c[i][j] += w * from->p[i] * dpos[j];
    }
    EACH(i) EACH(j) to->c[i][j] = 4 / (scene.dx * scene.dx) * c[i][j];
    mul(to->c, q->f, to->f);
    EACH(i) EACH(j) to->f[i][j] = q->f[i][j] + scene.dt * to->f[i][j];
    EACH(i) to->v[i] = v[i];
    EACH(i) to->x[i] = q->x[i] + scene.dt * v[i];
  }
}

// ---- the step backward; the grid holds velocities -------------------------------------------------------------------

// grad_state: in, of the state after the step; out, what reaches x and F of the state before it, with v and C cleared
static void g2p_adj(int s) {
  memset(grad_grid, 0, grid_count * sizeof *grad_grid);
  const real four = 4 / (scene.dx * scene.dx);
  for (int p = 0; p < scene.n; p++) {
    particle *q = &state[(size_t)s * (size_t)scene.n + (size_t)p], *after = q + scene.n, *g = &grad_state[p];
    const spline at = spline_at(q->x);
    real gv[DIM], gc[DIM][DIM], gf[DIM][DIM], dpos[DIM], w, dw[DIM];
    mul_nt(g->f, q->f, gc);
    EACH(i) EACH(j) gc[i][j] = four * (g->c[i][j] + scene.dt * gc[i][j]);
    EACH(i) gv[i] = g->v[i] + scene.dt * g->x[i];
    mul_tn(after->c, g->f, gf);
    EACH(i) EACH(j) g->f[i][j] += scene.dt * gf[i][j];
    for (int a = 0; a < NODES; a++) {
      const size_t k = spline_node(&at, a, dpos, &w, dw);
      const node *from = &grid[k];
      real e = 0;
      EACH(i) {
        real h = gv[i];
        EACH(j) h += gc[i][j] * dpos[j];
        grad_grid[k].p[i] += w * h;
        e += from->p[i] * h;
        EACH(j) g->x[j] -= w * from->p[i] * gc[i][j];
      }
      EACH(j) g->x[j] += e * dw[j];
    }
    EACH(i) g->v[i] = 0;
    EACH(i) EACH(j) g->c[i][j] = 0;
  }
}

// momenta are made again before it: grid holds them; grad_grid becomes that of momentum and mass
static void update_grid_adj(void) {
  for (size_t k = 0; k < grid_count; k++) {
    if (!(grid[k].m > 0)) continue;
    int at[DIM], normal[DIM];
    real v[DIM], before[DIM][DIM] = {{0}}, *g = grad_grid[k].p;
    node_index(k, at);
    if (sides(at, normal)) {
      update_node(k, v, 0);
      EACH(i) if (normal[i]) {
        EACH(j) before[i][j] = v[j];
        friction(i, normal[i], v);
      }
      for (int i = DIM - 1; i >= 0; i--)
        if (normal[i]) friction_adj(i, normal[i], before[i], g);
    }
    EACH(i) g[i] /= grid[k].m;
    EACH(i) grad_grid[k].m -= g[i] * grid[k].p[i] / grid[k].m;
  }
}

static void p2g_adj(int s) {
  for (int p = 0; p < scene.n; p++) {
    particle *q = &state[(size_t)s * (size_t)scene.n + (size_t)p], *g = &grad_state[p];
    const constants *k = &constant[p];
    const real sigma = signal_of(s, p), factor = -4 / (scene.dx * scene.dx) * scene.dt * k->volume;
    real tau[DIM][DIM], affine[DIM][DIM], ga[DIM][DIM] = {{0}}, dpos[DIM], w, dw[DIM], grad_sigma = 0;
    stress(q->f, sigma, tau);
    affine_of(q, k, tau, affine);
    const spline at = spline_at(q->x);
    for (int a = 0; a < NODES; a++) {
      const node *from = &grad_grid[spline_node(&at, a, dpos, &w, dw)];
      real e = from->m * k->mass;
      EACH(i) {
        real m = k->mass * q->v[i];
        EACH(j) {
          m += affine[i][j] * dpos[j];
          ga[i][j] += w * from->p[i] * dpos[j];
          g->x[j] -= w * affine[i][j] * from->p[i];
        }
        g->v[i] += w * k->mass * from->p[i];
        e += from->p[i] * m;
      }
      EACH(j) g->x[j] += e * dw[j];
    }
    EACH(i) EACH(j) g->c[i][j] += k->mass * ga[i][j];
    EACH(i) EACH(j) ga[i][j] *= factor;
    stress_adj(q->f, sigma, g->f, &grad_sigma, ga);
    if (k->signal >= 0) grad_u[k->signal] += scene.strength * grad_sigma;
  }
}

// ---- controller -----------------------------------------------------------------------------------------------------

static void act(int s) {
  real *zs = z + s * scene.features, *us = u + s * scene.actuators;
  memset(zs, 0, (size_t)scene.features * sizeof *zs);
  for (int p = 0; p < scene.n; p++) {
    const particle *q = &state[(size_t)s * (size_t)scene.n + (size_t)p];
    const constants *k = &constant[p];
    EACH(i) zs[k->group * DIM + i] += k->share * q->x[i];
    EACH(i) zs[(scene.groups + k->group) * DIM + i] += k->share * q->v[i];
  }
  for (int a = 0; a < scene.actuators; a++) {
    us[a] = b[a];
    for (int f = 0; f < scene.features; f++) us[a] += W[f * scene.actuators + a] * zs[f];
    us[a] = tanhf(us[a]);
  }
}

static void act_adj(int s) {
  const real *zs = z + s * scene.features, *us = u + s * scene.actuators;
  memset(grad_z, 0, (size_t)scene.features * sizeof *grad_z);
  for (int a = 0; a < scene.actuators; a++) {
    const real g = grad_u[a] * (1 - us[a] * us[a]);
    grad_b[a] += g;
    grad_u[a] = 0;
    for (int f = 0; f < scene.features; f++) {
      grad_W[f * scene.actuators + a] += g * zs[f];
      grad_z[f] += g * W[f * scene.actuators + a];
    }
  }
  for (int p = 0; p < scene.n; p++) {
    const constants *k = &constant[p];
    EACH(i) grad_state[p].x[i] += k->share * grad_z[k->group * DIM + i];
    EACH(i) grad_state[p].v[i] += k->share * grad_z[(scene.groups + k->group) * DIM + i];
  }
}

// ---- there and back -------------------------------------------------------------------------------------------------

static void forward(void) {
  for (int s = 0; s < scene.steps; s++) {
    if (scene.actuators) act(s);
    p2g(s);
    update_grid();
    g2p(s);
  }
  loss = 0;
  for (int p = 0; p < scene.n; p++)
    if (constant[p].group == scene.target)
      EACH (i)
        loss += scene.direction[i] * constant[p].share * state[(size_t)scene.steps * (size_t)scene.n + (size_t)p].x[i];
}

static void backward(void) {
  memset(grad_state, 0, (size_t)scene.n * sizeof *grad_state);
  memset(grad_W, 0, (size_t)(scene.features * scene.actuators) * sizeof *grad_W);
  memset(grad_b, 0, (size_t)scene.actuators * sizeof *grad_b);
  for (int p = 0; p < scene.n; p++)
    if (constant[p].group == scene.target) EACH(i) grad_state[p].x[i] = scene.direction[i] * constant[p].share;
  node *momenta = allocate(grid_count, sizeof *momenta);
  for (int s = scene.steps - 1; s >= 0; s--) {
    p2g(s);
    memcpy(momenta, grid, grid_count * sizeof *grid);
    update_grid();
    g2p_adj(s);
    memcpy(grid, momenta, grid_count * sizeof *grid);
    update_grid_adj();
    p2g_adj(s);
    if (scene.actuators) act_adj(s);
  }
  free(momenta);
}

// ---- files ----------------------------------------------------------------------------------------------------------

static double *read_doubles(FILE *file, int count) {
  double *out = allocate((size_t)count, sizeof *out);
  if (fread(out, sizeof *out, (size_t)count, file) != (size_t)count) {
    fprintf(stderr, "scalar: the scene is truncated\n");
    exit(1);
  }
  return out;
}

static void read_head(FILE *file) {
  double *h = read_doubles(file, 32);
  if ((int)h[0] != DIM) {
    fprintf(stderr, "scalar: the scene is %gD, this program was compiled for %dD\n", h[0], DIM);
    exit(1);
  }
  scene.n = (int)h[1], scene.steps = (int)h[2], scene.inset = (int)h[12], scene.corotated = (int)h[13];
  scene.groups = (int)h[16], scene.actuators = (int)h[17], scene.target = (int)h[19];
  scene.features = 2 * DIM * scene.groups;
  scene.dx = (real)h[6], scene.dt = (real)h[7], scene.friction = (real)h[11], scene.strength = (real)h[18];
  scene.mu = (real)(h[14] / (2 * (1 + h[15])));
  scene.lambda = (real)(h[14] * h[15] / ((1 + h[15]) * (1 - 2 * h[15])));
  grid_count = 1;
  EACH(i) {
    scene.cells[i] = (int)h[3 + i];
    scene.gravity[i] = (real)h[8 + i], scene.direction[i] = (real)h[20 + i];
    grid_count *= (size_t)scene.cells[i];
  }
  free(h);
  if (scene.corotated && DIM == 3) {
    fprintf(stderr, "scalar: the corotated material is here in 2D only\n");
    exit(1);
  }
}

static void read_scene(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  read_head(file);
  const int n = scene.n;
  const size_t features = (size_t)scene.features, actuators = (size_t)scene.actuators;
  constant = allocate((size_t)n, sizeof *constant);
  state = allocate((size_t)(scene.steps + 1) * (size_t)n, sizeof *state);
  grad_state = allocate((size_t)n, sizeof *grad_state);
  grid = allocate(grid_count, sizeof *grid);
  grad_grid = allocate(grid_count, sizeof *grad_grid);
  z = allocate((size_t)scene.steps * features, sizeof *z);
  u = allocate((size_t)scene.steps * actuators, sizeof *u);
  W = allocate(features * actuators, sizeof *W);
  grad_W = allocate(features * actuators, sizeof *grad_W);
  b = allocate(actuators, sizeof *b);
  grad_b = allocate(actuators, sizeof *grad_b);
  grad_u = allocate(actuators, sizeof *grad_u);
  grad_z = allocate(features, sizeof *grad_z);
  double *x = read_doubles(file, n * DIM), *v = read_doubles(file, n * DIM), *mass = read_doubles(file, n);
  double *volume = read_doubles(file, n), *group = read_doubles(file, n),
         *total = allocate((size_t)scene.groups, sizeof *total);
  for (int p = 0; p < n; p++) total[(int)group[p]] += mass[p];
  for (int p = 0; p < n; p++) {
    EACH(i) state[p].x[i] = (real)x[p * DIM + i], state[p].v[i] = (real)v[p * DIM + i], state[p].f[i][i] = 1;
    constant[p] =
        (constants){(real)mass[p], (real)volume[p], (real)(mass[p] / total[(int)group[p]]), (int)group[p], -1};
  }
  if (scene.actuators) {
    double *actuated = read_doubles(file, scene.actuators), *w = read_doubles(file, scene.features * scene.actuators);
    double *bias = read_doubles(file, scene.actuators);
    for (int p = 0; p < n; p++)
      for (int a = 0; a < scene.actuators; a++)
        if ((int)actuated[a] == constant[p].group) constant[p].signal = a;
    for (size_t k = 0; k < features * actuators; k++) W[k] = (real)w[k];
    for (size_t a = 0; a < actuators; a++) b[a] = (real)bias[a];
    free(actuated), free(w), free(bias);
  }
  free(x), free(v), free(mass), free(volume), free(group), free(total);
  fclose(file);
}

static void put(FILE *file, double value) { fwrite(&value, sizeof value, 1, file); }

static void save(const char *path) {
  FILE *file = fopen(path, "wb");
  if (!file) {
    perror(path);
    exit(1);
  }
  put(file, loss);
  if (scene.actuators) {
    for (int k = 0; k < scene.features * scene.actuators; k++) put(file, grad_W[k]);
    for (int k = 0; k < scene.actuators; k++) put(file, grad_b[k]);
  } else {
    for (int p = 0; p < scene.n; p++) EACH(i) put(file, grad_state[p].x[i]);
    for (int p = 0; p < scene.n; p++) EACH(i) put(file, grad_state[p].v[i]);
  }
  fclose(file);
}

int main(int count, char **arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: %s SCENE\n", arguments[0]);
    return 2;
  }
  read_scene(arguments[1]);
  forward();
  backward();
  printf("first %.9g\n", loss);
  fflush(stdout);
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "save ", 5) == 0) {
      save(line + 5);
      printf("saved\n");
    } else if (strcmp(line, "run") == 0) {
      const double start = now();
      forward();
      const double turn = now();
      backward();
      printf("time %.9f %.9f\n", turn - start, now() - turn);
    } else {
      break;
    }
    fflush(stdout);
  }
  return 0;
}
