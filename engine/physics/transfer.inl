// transfer: what one particle gives to its nodes and takes from them, between the sums over nodes. Node
// offsets o run over {-1, 0, 1} from the middle node of the stencil, in cells; arm = position of the middle
// node from the particle, in cells.

// (E4) particle -> middle node momentum q and slope b, so that node o takes w (q + b o) and mass w m
//   b = dx (m C - 4/dx^2 dt V tau),  q = m v + dt f + b arm
CQ_INLINE void transfer_to_grid(const real dx, const real dt, const Real arm[CQ_DIM], const Real mass,
                                const Real volume, const Real v[CQ_DIM], const Real c[CQ_DIM][CQ_DIM],
                                const Real tau[CQ_DIM][CQ_DIM], const Real force[CQ_DIM], Real q[CQ_DIM],
                                Real b[CQ_DIM][CQ_DIM]) {
  const Real stress = (real)-4 / dx * dt * volume, inertia = dx * mass;
  EACH(i) {
    Real s = mass * v[i] + dt * force[i];
    EACH(j) {
      b[i][j] = stress * tau[i][j] + inertia * c[i][j];
      s += b[i][j] * arm[j];
    }
    q[i] = s;
  }
}

// From the sums over nodes n0 = sum w dL/dp, n1 = sum w dL/dp o^T, nm = sum w dL/dm. grad_arm takes what reaches
// the arm outside the weights.
CQ_INLINE void transfer_to_grid_adj(const real dx, const real dt, const Real arm[CQ_DIM], const Real mass,
                                    const Real volume, const Real v[CQ_DIM], const Real c[CQ_DIM][CQ_DIM],
                                    const Real tau[CQ_DIM][CQ_DIM], const Real b[CQ_DIM][CQ_DIM], Real grad_arm[CQ_DIM],
                                    Real *grad_mass, Real *grad_volume, Real grad_v[CQ_DIM],
                                    Real grad_c[CQ_DIM][CQ_DIM], Real grad_tau[CQ_DIM][CQ_DIM], Real grad_force[CQ_DIM],
                                    const Real n0[CQ_DIM], const Real n1[CQ_DIM][CQ_DIM], const Real nm) {
  const real stress = (real)-4 / dx * dt;
  Real gb[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) gb[i][j] = n1[i][j] + n0[i] * arm[j];
  Real gm = nm;
  EACH(i) {
    gm += v[i] * n0[i];
    grad_v[i] = mass * n0[i];
    grad_force[i] = dt * n0[i];
    EACH(j) {
      grad_arm[j] += b[i][j] * n0[i];
      grad_c[i][j] = dx * mass * gb[i][j];
      grad_tau[i][j] = stress * volume * gb[i][j];
    }
  }
  *grad_mass += gm + dx * mat_dot(c, gb);
  *grad_volume += stress * mat_dot(tau, gb);
}

// (E13) nodes -> particle from m0 = sum w v_i and m1 = sum w v_i o^T
//   v' = m0, C' = 4/dx (m1 + m0 arm^T), F' = (I + dt C') F, x' = x + dt v'
CQ_INLINE void transfer_to_particle(const real dx, const real dt, const Real arm[CQ_DIM], const Real m0[CQ_DIM],
                                    const Real m1[CQ_DIM][CQ_DIM], const Real x[CQ_DIM], const Real f[CQ_DIM][CQ_DIM],
                                    Real x_next[CQ_DIM], Real c_next[CQ_DIM][CQ_DIM], Real f_next[CQ_DIM][CQ_DIM]) {
  EACH(i) x_next[i] = x[i] + dt * m0[i];
  EACH(i) EACH(j) c_next[i][j] = (real)4 / dx * (m1[i][j] + m0[i] * arm[j]);
  mat_mul(c_next, f, f_next);
  EACH(i) EACH(j) f_next[i][j] = f[i][j] + dt * f_next[i][j];
}

// First half, before the nodes: adjoints of m0 and m1 (what the particle scatters), and the total adjoint of C'.
CQ_INLINE void transfer_to_particle_adj(const real dx, const real dt, const Real arm[CQ_DIM],
                                        const Real f[CQ_DIM][CQ_DIM], const Real grad_x[CQ_DIM],
                                        const Real grad_v[CQ_DIM], const Real grad_c[CQ_DIM][CQ_DIM],
                                        const Real grad_f[CQ_DIM][CQ_DIM], Real grad_m0[CQ_DIM],
                                        Real grad_m1[CQ_DIM][CQ_DIM]) {
  mat_mul_nt(grad_f, f, grad_m1);
  EACH(i) {
    Real s = grad_v[i] + dt * grad_x[i];
    EACH(j) {
      grad_m1[i][j] = (real)4 / dx * (grad_c[i][j] + dt * grad_m1[i][j]);
      s += grad_m1[i][j] * arm[j];
    }
    grad_m0[i] = s;
  }
}

// Second half: F, and the arm outside the weights: dL/darm_j += sum_i dL/dm1_ij m0_i, with m0 = v'.
CQ_INLINE void transfer_to_particle_adj_rest(const real dt, const Real v_next[CQ_DIM],
                                             const Real c_next[CQ_DIM][CQ_DIM], const Real grad_m1[CQ_DIM][CQ_DIM],
                                             Real grad_arm[CQ_DIM], Real grad_f[CQ_DIM][CQ_DIM]) {
  EACH(i) EACH(j) grad_arm[j] += grad_m1[i][j] * v_next[i];
  Real t[CQ_DIM][CQ_DIM];
  mat_mul_tn(c_next, grad_f, t);
  EACH(i) EACH(j) grad_f[i][j] += dt * t[i][j];
}
