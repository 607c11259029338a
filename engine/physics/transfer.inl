// transfer: P2G and G2P of one particle without the sums over nodes. Node offsets o run over {-1, 0, 1} from the middle
// node of the stencil, in cells; arm = position of the middle node from the particle, in cells.

typedef struct GridStep {
  real dx, dt;               // side of a cell, duration of an engine step
} GridStep;

// What a particle exchanges with the node at o: momentum w (q + b o) and mass w m, or the adjoint of these.
typedef struct Exchange {
  Real q[CQ_DIM], b[CQ_DIM][CQ_DIM], m;
} Exchange;

// Sums over the nodes of a stencil, for a vector g and a number g_mass at each node:
//   n0 = sum w g, n1 = sum w g o^T, nm = sum w g_mass
typedef struct Sums {
  Real n0[CQ_DIM], n1[CQ_DIM][CQ_DIM], nm;
} Sums;

// a particle between two engine steps
typedef struct State {
  Real x[CQ_DIM], v[CQ_DIM], c[CQ_DIM][CQ_DIM], f[CQ_DIM][CQ_DIM];
} State;

// What P2G reads of a particle; tau is the Kirchhoff stress, with that of the actuation.
typedef struct Source {
  Real arm[CQ_DIM], mass, volume, v[CQ_DIM], c[CQ_DIM][CQ_DIM], tau[CQ_DIM][CQ_DIM], force[CQ_DIM];
} Source;

// a gradient of a Source that nothing was added to yet
CQ_INLINE void source_clear(Source *grad, const Real zero) {
  grad->mass = grad->volume = zero;
  EACH(i) {
    grad->arm[i] = grad->v[i] = grad->force[i] = zero;
    EACH(j) grad->c[i][j] = grad->tau[i][j] = zero;
  }
}

// (E4) particle -> momentum q of the middle node and slope b
//   b = dx (m C - 4/dx^2 dt V tau),  q = m v + dt f + b arm
CQ_INLINE void transfer_to_grid(const GridStep *step, const Source *p, Exchange *give) {
  const real dx = step->dx, dt = step->dt;
  const Real stress = (real)-4 / dx * dt * p->volume, inertia = dx * p->mass;
  EACH(i) {
    Real s = p->mass * p->v[i] + dt * p->force[i];
    EACH(j) {
      give->b[i][j] = stress * p->tau[i][j] + inertia * p->c[i][j];
      s += give->b[i][j] * p->arm[j];
    }
    give->q[i] = s;
  }
  give->m = p->mass;
}

// sums: over dL/dp and dL/dm of the nodes. grad->arm takes what reaches the arm outside the weights.
CQ_INLINE void transfer_to_grid_adj(const GridStep *step, const Source *p, const Exchange *give, Source *grad,
                                    const Sums *sums) {
  const real dx = step->dx, dt = step->dt, stress = (real)-4 / dx * dt;
  const Real *n0 = sums->n0;
  Real gb[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) gb[i][j] = sums->n1[i][j] + n0[i] * p->arm[j];
  Real gm = sums->nm;
  EACH(i) {
    gm += p->v[i] * n0[i];
    grad->v[i] += p->mass * n0[i];
    grad->force[i] += dt * n0[i];
    EACH(j) {
      grad->arm[j] += give->b[i][j] * n0[i];
      grad->c[i][j] += dx * p->mass * gb[i][j];
      grad->tau[i][j] += stress * p->volume * gb[i][j];
    }
  }
  grad->mass += gm + dx * mat_dot(p->c, gb);
  grad->volume += stress * mat_dot(p->tau, gb);
}

// (E13) nodes -> particle from the sums over their velocities; of the state before, it reads x and F
//   v' = n0, C' = 4/dx (n1 + n0 arm^T), F' = (I + dt C') F, x' = x + dt v'
CQ_INLINE void transfer_to_particle(const GridStep *step, const Real arm[CQ_DIM], const Sums *sums,
                                    const State *before, State *after) {
  const real dx = step->dx, dt = step->dt;
  EACH(i) after->v[i] = sums->n0[i];
  EACH(i) after->x[i] = before->x[i] + dt * sums->n0[i];
  EACH(i) EACH(j) after->c[i][j] = (real)4 / dx * (sums->n1[i][j] + sums->n0[i] * arm[j]);
  mat_mul(after->c, before->f, after->f);
  EACH(i) EACH(j) after->f[i][j] = before->f[i][j] + dt * after->f[i][j];
}

// First half, before the nodes: the particle's terms q = dL/dn0 and b = dL/dn1, which has all of dL/dC'.
CQ_INLINE void transfer_to_particle_adj(const GridStep *step, const Real arm[CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                                        const State *grad_after, Exchange *give) {
  const real dx = step->dx, dt = step->dt;
  mat_mul_nt(grad_after->f, f, give->b);
  EACH(i) {
    Real s = grad_after->v[i] + dt * grad_after->x[i];
    EACH(j) {
      give->b[i][j] = (real)4 / dx * (grad_after->c[i][j] + dt * give->b[i][j]);
      s += give->b[i][j] * arm[j];
    }
    give->q[i] = s;
  }
}

// Second half, after the nodes. grad_f holds dL/dF' and becomes dL/dF; and the arm outside the weights:
//   dL/darm_j += sum_i dL/dn1_ij n0_i, with n0 = v'
CQ_INLINE void transfer_to_particle_adj_rest(const GridStep *step, const State *after, const Exchange *give,
                                             Real grad_arm[CQ_DIM], Real grad_f[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) grad_arm[j] += give->b[i][j] * after->v[i];
  Real t[CQ_DIM][CQ_DIM];
  mat_mul_tn(after->c, grad_f, t);
  EACH(i) EACH(j) grad_f[i][j] += step->dt * t[i][j];
}
