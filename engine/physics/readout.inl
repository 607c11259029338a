// readout: quantities derived from the state and the constants of one particle (CQ_READOUTS in lists.h), each with its
// adjoint. No arrays: the devices load particles and weights. A new one is a row of the list, a case in readout and one
// in readout_adj. Stresses and energies are those of the material alone: actuation belongs to a control step, and a
// state lies between two.   (E51-E55)

enum { READOUT_WIDTH = CQ_DIM * CQ_DIM };   // of the widest one

// What a readout sees of a particle. Gradients have the same shape and are added to.
typedef struct {
  MaterialPoint material;        // law, constants, F and internal variables
  int slots;                     // constants that are there, of the law and of what stands beside it
  real dx;
  Real x[CQ_DIM], v[CQ_DIM], c[CQ_DIM][CQ_DIM];
} ReadoutPoint;

// Sets the material of a loaded particle: its law, and its constants from slot {at->slots}, in the order of
// cq_material_slots. C becomes the rate where the material is viscous. Positions, C and F are loaded before.
CQ_INLINE void readout_as(ReadoutPoint *at, const cq_material *material, const Real *slot) {
  at->material.law = material;
  for (int k = 0; k < at->slots; k++) *material_slot(material, &at->material, k) = slot[k];
  if (material->viscous) EACH(i) EACH(j) at->material.rate[i][j] = at->c[i][j];
}

// Before readout_adj: sets grad to zero, with the law of the particle. readout_grad_end follows readout_adj.
CQ_INLINE void readout_grad_begin(const ReadoutPoint *at, ReadoutPoint *grad) {
  memset((void *)grad, 0, sizeof *grad);
  grad->material.law = at->material.law;
}
// After readout_adj: where the material is viscous, adds the gradient of its rate to that of C, since the rate is C.
CQ_INLINE void readout_grad_end(ReadoutPoint *grad) {
  if (grad->material.law->viscous) EACH(i) EACH(j) grad->c[i][j] += grad->material.rate[i][j];
}

// ---- energy ---------------------------------------------------------------------------------------------------------

// The elastic energy density psi of a particle [energy for each initial volume], with Maxwell branches.
CQ_RARE Real readout_energy(const ReadoutPoint *at) { return material_energy(&at->material); }

// Adjoint of readout_energy: adds grad_psi's share to the gradients of F, constants and internal variables.
CQ_RARE void readout_energy_adj(const ReadoutPoint *at, MaterialPoint *grad, const Real grad_psi) {
  Real p[CQ_DIM][CQ_DIM];
  material_stress(&at->material, p);
  EACH(i) EACH(j) grad->f[i][j] += grad_psi * p[i][j];
  law_energy_grad(&at->material, at->slots - material_extras(at->material.law), grad, grad_psi);
  if (at->material.law->branches) maxwell_energy_grad(&at->material, grad, grad_psi);
}

// ---- stress ---------------------------------------------------------------------------------------------------------

#if CQ_DIM == 2
// (E52) The factor of -eta tr(C) by which viscosity adds to the Cauchy stress sigma_zz of a 2D particle. known 1 (P_zz
// of the law is known): 2/3, as in plane strain (E42); known 0: 1, since sigma_zz is then half the trace in the plane,
// which has eta tr(C) / 3.
CQ_INLINE real readout_viscous_across(const int known) { return known ? (real)(2.0 / 3) : (real)1; }
#endif

// (E51) Sets sigma to the Cauchy stress tau / J of a particle, with Maxwell branches and viscosity; returns J.
CQ_RARE Real readout_cauchy(const MaterialPoint *at, Real sigma[CQ_DIM][CQ_DIM]) {
  const Real jac = material_kirchhoff_plain(at, sigma);
  EACH(i) EACH(j) sigma[i][j] = sigma[i][j] / jac;
  return jac;
}

// Adjoint of readout_cauchy: adds to the gradients of F, constants, internal variables and the rate of a viscous
// material, from grad_sigma.
CQ_RARE void readout_cauchy_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_sigma[CQ_DIM][CQ_DIM]) {
  Real sigma[CQ_DIM][CQ_DIM], grad_tau[CQ_DIM][CQ_DIM], cof[CQ_DIM][CQ_DIM];
  const Real jac = readout_cauchy(at, sigma), along = mat_dot(grad_sigma, sigma) / jac;
  mat_cofactor(at->f, cof);
  EACH(i) EACH(j) {
    grad_tau[i][j] = grad_sigma[i][j] / jac;
    grad->f[i][j] -= along * cof[i][j];
  }
  material_kirchhoff_plain_adj(at, grad, grad_tau);
}

// (E51) Sets the deviator of a particle's Cauchy stress: s along the axes, and in 2D `across` out of the plane (0 in
// 3D); returns the mean stress.
CQ_RARE Real readout_deviator(const MaterialPoint *at, Real s[CQ_DIM][CQ_DIM], Real *across) {
  const Real jac = readout_cauchy(at, s);
  Real trace = mat_trace(s);
  *across = jac * (real)0;
#if CQ_DIM == 2
  Real p = *across;
  const int known = law_piola_zz(at, &p);
  *across = known ? p / jac : (real)0.5 * trace;      // where it is not known, that of an incompressible solid
  if (at->law->viscous) *across -= readout_viscous_across(known) * at->extra[0] * mat_trace(at->rate);
  trace += *across;
#endif
  const Real mean = trace / (real)3;
  EACH(i) s[i][i] -= mean;
#if CQ_DIM == 2
  *across -= mean;
#endif
  return mean;
}

// Adjoint of readout_deviator: adds to the gradients of F, constants, internal variables and rate, from those of the
// deviator, which are `scale` times s and `across` themselves.
CQ_RARE void readout_deviator_adj(const MaterialPoint *at, MaterialPoint *grad, const Real s[CQ_DIM][CQ_DIM],
                                  const Real across, const Real scale) {
  Real grad_sigma[CQ_DIM][CQ_DIM];
  EACH(i) EACH(j) grad_sigma[i][j] = scale * s[i][j];
#if CQ_DIM == 2
  Real p = scale * (real)0;
  const Real jac = mat_det(at->f), grad_across = scale * across;
  const int known = law_piola_zz(at, &p);
  if (at->law->viscous) {
    const Real share = readout_viscous_across(known) * grad_across;
    grad->extra[0] -= share * mat_trace(at->rate);
    EACH(i) grad->rate[i][i] -= share * at->extra[0];
  }
  if (known) {
    Real cof[CQ_DIM][CQ_DIM];
    mat_cofactor(at->f, cof);
    const Real slope = grad_across * p / (jac * jac);
    EACH(i) EACH(j) grad->f[i][j] -= slope * cof[i][j];
    law_piola_zz_adj(at, grad, grad_across / jac);
  } else {
    EACH(i) grad_sigma[i][i] += (real)0.5 * grad_across;
  }
#else
  (void)across;
#endif
  readout_cauchy_adj(at, grad, grad_sigma);
}

// (E51) Returns the von Mises stress of a particle, 0 where rounding alone leaves a deviator, and sets the deviator as
// readout_deviator does.
CQ_RARE Real readout_von_mises(const MaterialPoint *at, Real s[CQ_DIM][CQ_DIM], Real *across) {
  const Real mean = readout_deviator(at, s, across);
  const Real sum = mat_dot(s, s) + *across * *across;
  // a deviator that rounding alone left, as that of a fluid at rest, has no direction
  const Real floor = (sizeof(real) == 4 ? (real)2e-6 : (real)1e-14) * mean;
  return r_sqrt((real)1.5 * r_pick(sum - floor * floor, sum, sum * (real)0));
}

// Adjoint of readout_von_mises: adds grad_out's share to the gradients of F, constants, internal variables and rate.
// Where von Mises is 0 it has a kink, and the derivative is taken as zero; also where it is no larger than what a few
// roundings of F would make of it, as in sand at the tip of its cone.
CQ_RARE void readout_von_mises_adj(const MaterialPoint *at, MaterialPoint *grad, const Real grad_out) {
  Real s[CQ_DIM][CQ_DIM], across;
  const Real size = readout_von_mises(at, s, &across), zero = size * (real)0;
  const Real scale = r_pick(size, (real)1.5 / r_pick(size, size, zero + (real)1), zero);
  MaterialPoint unit;
  memset((void *)&unit, 0, sizeof unit);
  unit.law = at->law;
  readout_deviator_adj(at, &unit, s, across, scale);
  const real few = sizeof(real) == 4 ? (real)2.5e-7 : (real)4e-15;
  const Real rounding = few * few * mat_dot(unit.f, unit.f) * mat_dot(at->f, at->f);
  readout_deviator_adj(at, grad, s, across, r_pick(size * size - rounding, scale * grad_out, zero));
}

// ---- motion: with quadratic splines the affine velocity C stands for a spread of dx^2/4 of the particle's mass ------

// The second moment dx^2/4 of a quadratic B-spline along an axis [length^2]: the inertia of the affine velocity C for
// each unit of mass (E53).
CQ_INLINE real readout_spread(const ReadoutPoint *at) { return (real)0.25 * at->dx * at->dx; }

// (E53) The kinetic energy of a particle for each unit of mass, with that of its affine velocity C: (|v|^2 + dx^2/4
// |C|^2) / 2.
CQ_INLINE Real readout_kinetic(const ReadoutPoint *at) {
  Real sum = readout_spread(at) * mat_dot(at->c, at->c);
  EACH(i) sum += at->v[i] * at->v[i];
  return (real)0.5 * sum;
}

// The length of a particle's velocity.
CQ_INLINE Real readout_speed(const ReadoutPoint *at) {
  Real sum = at->v[0] * at->v[0];
  for (int i = 1; i < CQ_DIM; i++) sum += at->v[i] * at->v[i];
  return r_sqrt(sum);
}

// component k: x_a v_b - x_b v_a + dx^2/4 (C_ba - C_ab)
#define READOUT_AXES(k, a, b) const int a = CQ_DIM == 2 ? 0 : ((k) + 1) % 3, b = CQ_DIM == 2 ? 1 : ((k) + 2) % 3
enum { READOUT_TURNS = CQ_DIM == 2 ? 1 : 3 };

// (E54) The angular momentum of a particle about the origin for each unit of mass, with that of its affine velocity C:
// one number in 2D, three in 3D.
CQ_INLINE void readout_angular(const ReadoutPoint *at, Real out[READOUT_WIDTH]) {
  for (int k = 0; k < READOUT_TURNS; k++) {
    READOUT_AXES(k, a, b);
    out[k] = at->x[a] * at->v[b] - at->x[b] * at->v[a] + readout_spread(at) * (at->c[b][a] - at->c[a][b]);
  }
}

// Adjoint of readout_angular: adds to the gradients of position, velocity and C.
CQ_INLINE void readout_angular_adj(const ReadoutPoint *at, ReadoutPoint *grad, const Real grad_out[READOUT_WIDTH]) {
  for (int k = 0; k < READOUT_TURNS; k++) {
    READOUT_AXES(k, a, b);
    const Real g = grad_out[k];
    grad->x[a] += g * at->v[b];
    grad->x[b] -= g * at->v[a];
    grad->v[b] += g * at->x[a];
    grad->v[a] -= g * at->x[b];
    grad->c[b][a] += readout_spread(at) * g;
    grad->c[a][b] -= readout_spread(at) * g;
  }
}

// ---- all of them ----------------------------------------------------------------------------------------------------

// Sets out to a derived quantity of a particle (stress, energy density, J, speed, ...): quantity is a CQ_DERIVED_...,
// which fills as many numbers as its rank in CQ_READOUTS says, a matrix by rows. Of stresses, P leaves viscosity out.
CQ_RARE void readout(const int quantity, const ReadoutPoint *at, Real out[READOUT_WIDTH]) {
  Real m[CQ_DIM][CQ_DIM], across;
  switch (quantity) {
    case CQ_DERIVED_PIOLA: material_stress(&at->material, m); EACH(i) EACH(j) out[i * CQ_DIM + j] = m[i][j]; return;
    case CQ_DERIVED_CAUCHY: readout_cauchy(&at->material, m); EACH(i) EACH(j) out[i * CQ_DIM + j] = m[i][j]; return;
    case CQ_DERIVED_VON_MISES: out[0] = readout_von_mises(&at->material, m, &across); return;
    case CQ_DERIVED_ENERGY_DENSITY: out[0] = readout_energy(at); return;
    case CQ_DERIVED_JACOBIAN: out[0] = mat_det(at->material.f); return;
    case CQ_DERIVED_SPEED: out[0] = readout_speed(at); return;
    case CQ_DERIVED_KINETIC_ENERGY: out[0] = readout_kinetic(at); return;
    case CQ_DERIVED_ANGULAR_MOMENTUM: readout_angular(at, out); return;
  }
}

// Adjoint of readout: adds grad_out's share to the gradients of the particle's state and constants.
CQ_RARE void readout_adj(const int quantity, const ReadoutPoint *at, ReadoutPoint *grad,
                         const Real grad_out[READOUT_WIDTH]) {
  Real m[CQ_DIM][CQ_DIM];
  if (quantity == CQ_DERIVED_PIOLA || quantity == CQ_DERIVED_CAUCHY) EACH(i) EACH(j) m[i][j] = grad_out[i * CQ_DIM + j];
  switch (quantity) {
    case CQ_DERIVED_PIOLA: material_stress_adj(&at->material, &grad->material, m); return;
    case CQ_DERIVED_CAUCHY: readout_cauchy_adj(&at->material, &grad->material, m); return;
    case CQ_DERIVED_VON_MISES: readout_von_mises_adj(&at->material, &grad->material, grad_out[0]); return;
    case CQ_DERIVED_ENERGY_DENSITY: readout_energy_adj(at, &grad->material, grad_out[0]); return;
    case CQ_DERIVED_JACOBIAN:
      mat_cofactor(at->material.f, m);
      EACH(i) EACH(j) grad->material.f[i][j] += grad_out[0] * m[i][j];
      return;
    case CQ_DERIVED_SPEED: {
      // a kink at rest, where the derivative is taken as zero
      const Real speed = readout_speed(at), zero = speed * (real)0;
      const Real scale = r_pick(speed, grad_out[0] / r_pick(speed, speed, zero + (real)1), zero);
      EACH(i) grad->v[i] += scale * at->v[i];
      return;
    }
    case CQ_DERIVED_KINETIC_ENERGY:
      EACH(i) grad->v[i] += grad_out[0] * at->v[i];
      EACH(i) EACH(j) grad->c[i][j] += readout_spread(at) * grad_out[0] * at->c[i][j];
      return;
    case CQ_DERIVED_ANGULAR_MOMENTUM: readout_angular_adj(at, grad, grad_out); return;
  }
}
