// transfer: P2G and G2P of one particle without the sums over nodes. Node offsets o run over {-1, 0, 1} from the middle
// node of the stencil, in cells; arm = position of the middle node from the particle, in cells.

typedef struct GridStep {
  real dx, dt;               // side of a cell, duration of an engine step
  real keep;                 // share of unresolved motion that stays after a step (E123), 0: APIC
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

// velocity and C of a particle: its own, or those that it gathers from nodes
typedef struct Motion {
  Real v[CQ_DIM], c[CQ_DIM][CQ_DIM];
} Motion;

// What P2G reads of a particle; tau is the Kirchhoff stress, with that of the actuation.
typedef struct Source {
  Real arm[CQ_DIM], mass, volume, v[CQ_DIM], c[CQ_DIM][CQ_DIM], tau[CQ_DIM][CQ_DIM], force[CQ_DIM];
} Source;

// Sets the gradient of a Source to zero. zero: a Real of 0 in all lanes.
CQ_INLINE void source_clear(Source *grad, const Real zero) {
  grad->mass = grad->volume = zero;
  EACH(i) {
    grad->arm[i] = grad->v[i] = grad->force[i] = zero;
    EACH(j) grad->c[i][j] = grad->tau[i][j] = zero;
  }
}

// (E4) What a particle gives to its nodes in P2G, into give: the node at offset o gets the momentum w (q + b o) and the
// mass w m. p->arm: from the particle to the middle node of its stencil, in cells.
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

// (E16, E17) Adjoint of transfer_to_grid: adds to grad from sums, the weighted sums of dL/dp and dL/dm over the
// particle's nodes. give: as transfer_to_grid set it. grad->arm gets the gradient of the arm without that of the
// weights.
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

// (E13) State of a particle after G2P from sums, the weighted sums over its nodes' velocities; of the state before it
// reads x and F. arm: from the particle to the middle node, in cells.
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

// (E15) First half of the adjoint of transfer_to_particle, before P2G of adjoints: sets q = dL/dn0 and b = dL/dn1 of
// give, of which the node at offset o gets w (q + b o). f: F before the step.
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

// (E18, E19) Second half of the adjoint of transfer_to_particle; give: of the first half. grad_f: dL/dF' on entry,
// dL/dF on return. Adds the gradient of the arm without that of the weights to grad_arm: dL/darm_j += sum_i dL/dn1_ij
// n0_i, n0 = v'.
CQ_INLINE void transfer_to_particle_adj_rest(const GridStep *step, const State *after, const Exchange *give,
                                             Real grad_arm[CQ_DIM], Real grad_f[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) grad_arm[j] += give->b[i][j] * after->v[i];
  Real t[CQ_DIM][CQ_DIM];
  mat_mul_tn(after->c, grad_f, t);
  EACH(i) EACH(j) grad_f[i][j] += step->dt * t[i][j];
}

// ---- unresolved motion ----------------------------------------------------------------------------------------------

// (E121) What a particle gives to the momentum of its nodes before stress and forces, for the motion that the grid
// resolves, into give: q = m v + b arm, b = dx m C. give->m stays as it is.
CQ_INLINE void transfer_inertia(const GridStep *step, const Source *p, Exchange *give) {
  EACH(i) {
    Real s = p->mass * p->v[i];
    EACH(j) {
      give->b[i][j] = step->dx * p->mass * p->c[i][j];
      s += give->b[i][j] * p->arm[j];
    }
    give->q[i] = s;
  }
}

// Adjoint of transfer_inertia: adds to the gradients of mass, velocity, C and arm, from the sums of dL/dp~ over the
// particle's nodes.
CQ_INLINE void transfer_inertia_adj(const GridStep *step, const Source *p, const Exchange *give, Source *grad,
                                    const Sums *sums) {
  Real gb[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) gb[i][j] = sums->n1[i][j] + sums->n0[i] * p->arm[j];
  EACH(i) {
    grad->mass += p->v[i] * sums->n0[i];
    grad->v[i] += p->mass * sums->n0[i];
    EACH(j) {
      grad->arm[j] += give->b[i][j] * sums->n0[i];
      grad->c[i][j] += step->dx * p->mass * gb[i][j];
    }
  }
  grad->mass += step->dx * mat_dot(p->c, gb);
}

// (E122) H = dt (C - C^T) / 4, half of the angle by which a step turns a particle, as an axial matrix: H x = h x x
// (cross product). Returns 2 / (1 + |h|^2).
CQ_INLINE Real half_turn(const real dt, const Real c[CQ_DIM][CQ_DIM], Real h[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) h[i][j] = (real)0.25 * dt * (c[i][j] - c[j][i]);
  return (real)4 / ((real)2 + mat_dot(h, h));
}

// (E122) Sets q to the rotation of a particle in a step by the skew part of C, Cayley's transform of H = dt (C - C^T) /
// 4 with the axial vector h: Q = I + 2 / (1 + |h|^2) (H + H H), a rotation for any H.
CQ_INLINE void step_turn(const real dt, const Real c[CQ_DIM][CQ_DIM], Real q[CQ_DIM][CQ_DIM]) {
  Real h[CQ_DIM][CQ_DIM];
  const Real s = half_turn(dt, c, h);
  mat_mul(h, h, q);
  EACH(i) EACH(j) q[i][j] = s * (h[i][j] + q[i][j]);
  EACH(i) q[i][i] += (real)1;
}

// Adjoint of step_turn: adds dL/dC to grad_c, from grad_q = dL/dQ.
CQ_INLINE void step_turn_adj(const real dt, const Real c[CQ_DIM][CQ_DIM], Real grad_c[CQ_DIM][CQ_DIM],
                             const Real grad_q[CQ_DIM][CQ_DIM]) {
  Real h[CQ_DIM][CQ_DIM], a[CQ_DIM][CQ_DIM], b[CQ_DIM][CQ_DIM];
  const Real s = half_turn(dt, c, h);
  mat_mul(h, h, a);
  EACH(i) EACH(j) a[i][j] += h[i][j];
  const Real along = (real)0.5 * s * s * mat_dot(grad_q, a);
  mat_mul_nt(grad_q, h, a);
  mat_mul_tn(h, grad_q, b);
  EACH(i) EACH(j) a[i][j] = s * (grad_q[i][j] + a[i][j] + b[i][j]) - along * h[i][j];
  EACH(i) EACH(j) grad_c[i][j] += (real)0.25 * dt * (a[i][j] - a[j][i]);
}

// (E121) Sets out to v~ and C~ of a particle, the motion that the grid resolves, from the weighted sums over its nodes'
// velocities v~_i before stress and forces (as E13). arm: from the particle to the middle node, in cells.
CQ_INLINE void motion_seen(const GridStep *step, const Real arm[CQ_DIM], const Sums *sums, Motion *out) {
  EACH(i) out->v[i] = sums->n0[i];
  EACH(i) EACH(j) out->c[i][j] = (real)4 / step->dx * (sums->n1[i][j] + sums->n0[i] * arm[j]);
}

// (E124) First half of the adjoint of motion_seen, before the nodes: sets q = dL/dn0 and b = dL/dn1 of give, of which
// the node at offset o gets w (q + b o). grad_kept: dL/d(b r) and dL/d(b S) of keep_unresolved, there with b =
// step->keep.
CQ_INLINE void motion_seen_adj(const GridStep *step, const Real arm[CQ_DIM], const Motion *grad_kept, Exchange *give) {
  EACH(i) {
    Real s = -step->keep * grad_kept->v[i];
    EACH(j) {
      give->b[i][j] = (real)-4 / step->dx * step->keep * grad_kept->c[i][j];
      s += give->b[i][j] * arm[j];
    }
    give->q[i] = s;
  }
}

// (E124) Second half, after the nodes: adds to grad the gradients of v and C before the step, whose unresolved parts
// are r and S, and of the arm. grad_kept as in motion_seen_adj; kept: b r (kept_velocity); v: the velocity before the
// step.
CQ_INLINE void motion_seen_adj_rest(const GridStep *step, const Motion *grad_kept, const Real kept[CQ_DIM],
                                    Source *grad, const Real v[CQ_DIM]) {
  EACH(i) {
    const Real seen = (real)4 / step->dx * (step->keep * v[i] - kept[i]);
    grad->v[i] += step->keep * grad_kept->v[i];
    EACH(j) {
      grad->arm[j] -= grad_kept->c[i][j] * seen;
      grad->c[i][j] += step->keep * grad_kept->c[i][j];
    }
  }
}

// (E123) Adds motion that the grid does not resolve to v' and C' after the step. before: v, C; seen: v~, C~, the part
// of them that the grid resolves; moved: v', C'. Sets after: v'' = v' + b Q r, C'' = C' + b Q S Q^T, with r = v - v~
// and S = sym(C - C~).
CQ_INLINE void keep_unresolved(const GridStep *step, const Motion *before, const Motion *seen, const Motion *moved,
                               Motion *after) {
  Real q[CQ_DIM][CQ_DIM], r[CQ_DIM], s[CQ_DIM][CQ_DIM], qs[CQ_DIM][CQ_DIM], qsq[CQ_DIM][CQ_DIM];
  step_turn(step->dt, moved->c, q);
  EACH(i) r[i] = step->keep * (before->v[i] - seen->v[i]);
  EACH(i) EACH(j)
    s[i][j] = (real)0.5 * step->keep * (before->c[i][j] - seen->c[i][j] + before->c[j][i] - seen->c[j][i]);
  mat_mul(q, s, qs);
  mat_mul_nt(qs, q, qsq);
  EACH(i) {
    after->v[i] = moved->v[i];
    EACH(j) after->v[i] += q[i][j] * r[j];
    EACH(j) after->c[i][j] = moved->c[i][j] + qsq[i][j];
  }
}

// (E124) Adjoint of keep_unresolved: sets grad_kept to dL/d(b r) and dL/d(b S), and adds to grad_moved the part of
// dL/dC' that goes through Q alone; the caller passes grad_after = dL/d(v'', C'') on to v' and C'.
CQ_INLINE void keep_unresolved_adj(const GridStep *step, const Motion *moved, const Motion *after,
                                   Real grad_moved[CQ_DIM][CQ_DIM], Motion *grad_kept, const Motion *grad_after) {
  Real q[CQ_DIM][CQ_DIM], both[CQ_DIM][CQ_DIM], rest[CQ_DIM][CQ_DIM], t[CQ_DIM][CQ_DIM];
  step_turn(step->dt, moved->c, q);
  EACH(i) EACH(j) both[i][j] = grad_after->c[i][j] + grad_after->c[j][i];
  // dL/dQ = (dL/dv'' (v'' - v')^T + (dL/dC'' + dL/dC''^T) (C'' - C')) Q
  EACH(i) EACH(j) rest[i][j] = after->c[i][j] - moved->c[i][j];
  mat_mul(both, rest, t);
  EACH(i) EACH(j) t[i][j] += grad_after->v[i] * (after->v[j] - moved->v[j]);
  mat_mul(t, q, rest);
  step_turn_adj(step->dt, moved->c, grad_moved, rest);
  mat_mul_tn(q, both, t);
  mat_mul(t, q, rest);
  EACH(i) {
    grad_kept->v[i] = q[0][i] * grad_after->v[0];
    CQ_UNROLL for (int j = 1; j < CQ_DIM; j++) grad_kept->v[i] += q[j][i] * grad_after->v[j];
    EACH(j) grad_kept->c[i][j] = (real)0.5 * rest[i][j];
  }
}

// (E123) Sets out to b r = b (v - v~), the unresolved velocity that a step kept, in the frame before its turn: Q^T (v''
// - v'). moved: v', C' before that motion was added; after: v'', C'' with it.
CQ_INLINE void kept_velocity(const GridStep *step, const Motion *moved, const Motion *after, Real out[CQ_DIM]) {
  Real q[CQ_DIM][CQ_DIM];
  step_turn(step->dt, moved->c, q);
  EACH(i) {
    out[i] = q[0][i] * (after->v[0] - moved->v[0]);
    CQ_UNROLL for (int j = 1; j < CQ_DIM; j++) out[i] += q[j][i] * (after->v[j] - moved->v[j]);
  }
}
