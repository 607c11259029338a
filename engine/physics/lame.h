// lame: Lame's constants, which the laws work with, from Young's modulus and Poisson's ratio or from shear and bulk
// modulus, each with its adjoint. In double: they are computed once for a rollout.
#ifndef CQ_LAME_H
#define CQ_LAME_H

// (E6) Lame's constants mu and lambda [stress] from Young's modulus [stress] and Poisson's ratio. volumetric: the
// modulus of the Bonet-Wood term (E10) [stress], which is not the bulk modulus K.
static inline void cq_lame(const double young, const double poisson, double *mu, double *lambda, double *volumetric) {
  *mu = young / (2 * (1 + poisson));
  *lambda = young * poisson / ((1 + poisson) * (1 - 2 * poisson));
  *volumetric = young / (3 * (2 - 2 * poisson));   // as printed in advanced-chainqueen eq. 14
}

// (E20) Adjoint of cq_lame: adds dL/dE and dL/dnu to grad, from grad_lame = dL/d(mu, lambda, modulus of the Bonet-Wood
// term).
static inline void cq_lame_adj(const double young, const double poisson, double grad[2], const double grad_lame[3]) {
  const double a = 1 + poisson, b = 1 - 2 * poisson, c = 1 - poisson;
  const double grad_mu = grad_lame[0], grad_lambda = grad_lame[1], grad_volumetric = grad_lame[2];
  grad[0] += grad_mu / (2 * a) + grad_lambda * poisson / (a * b) + grad_volumetric / (6 * c);
  grad[1] += -grad_mu * young / (2 * a * a) + grad_lambda * young * (1 + 2 * poisson * poisson) / (a * a * b * b) +
             grad_volumetric * young / (6 * c * c);
}

// Lame's constants [stress] from a shear modulus and a bulk modulus K = lambda + 2 mu / 3 [stress]. volumetric: the
// modulus of the Bonet-Wood term that cq_lame gives for the same material; 0, with a derivative of 0, where both moduli
// are 0.
static inline void cq_lame_of_moduli(const double shear, const double bulk, double *mu, double *lambda,
                                     double *volumetric) {
  *mu = shear;
  *lambda = bulk - 2 * shear / 3;
  const double sum = 3 * bulk + 4 * shear;
  *volumetric = sum > 0 ? 3 * bulk * shear / sum : 0;
}

// Adjoint of cq_lame_of_moduli: adds the gradients of the shear and the bulk modulus to grad, from grad_lame =
// dL/d(mu, lambda, modulus of the Bonet-Wood term).
static inline void cq_lame_of_moduli_adj(const double shear, const double bulk, double grad[2],
                                         const double grad_lame[3]) {
  const double sum = 3 * bulk + 4 * shear, slope = sum > 0 ? grad_lame[2] / (sum * sum) : 0;
  grad[0] += grad_lame[0] - 2 * grad_lame[1] / 3 + 9 * bulk * bulk * slope;
  grad[1] += grad_lame[1] + 12 * shear * shear * slope;
}

#endif
