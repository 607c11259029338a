// lame: Lame's constants, which the laws work with, from the two constants of an elasticity. In
// double: made once for a rollout.
#ifndef CQ_LAME_H
#define CQ_LAME_H

// (E6) Lame's constants from Young's modulus and Poisson's ratio, and the modulus of the Bonet-Wood term,
// which is not the bulk modulus K
static inline void cq_lame(const double young, const double poisson, double *mu, double *lambda, double *volumetric) {
  *mu = young / (2 * (1 + poisson));
  *lambda = young * poisson / ((1 + poisson) * (1 - 2 * poisson));
  *volumetric = young / (3 * (2 - 2 * poisson));   // as printed in advanced-chainqueen eq. 14
}

static inline void cq_lame_adj(const double young, const double poisson, double *grad_young, double *grad_poisson,
                               const double grad_mu, const double grad_lambda, const double grad_volumetric) {
  const double a = 1 + poisson, b = 1 - 2 * poisson, c = 1 - poisson;
  *grad_young += grad_mu / (2 * a) + grad_lambda * poisson / (a * b) + grad_volumetric / (6 * c);
  *grad_poisson += -grad_mu * young / (2 * a * a) +
                   grad_lambda * young * (1 + 2 * poisson * poisson) / (a * a * b * b) +
                   grad_volumetric * young / (6 * c * c);
}

// The same from the shear modulus and the bulk modulus K = lambda + 2 mu / 3; the third one is E6 with E and nu of
// these, and 0, with no slope, where both are 0.
static inline void cq_lame_of_moduli(const double shear, const double bulk, double *mu, double *lambda,
                                     double *volumetric) {
  *mu = shear;
  *lambda = bulk - 2 * shear / 3;
  const double sum = 3 * bulk + 4 * shear;
  *volumetric = sum > 0 ? 3 * bulk * shear / sum : 0;
}

static inline void cq_lame_of_moduli_adj(const double shear, const double bulk, double *grad_shear, double *grad_bulk,
                                         const double grad_mu, const double grad_lambda, const double grad_volumetric) {
  const double sum = 3 * bulk + 4 * shear, slope = sum > 0 ? grad_volumetric / (sum * sum) : 0;
  *grad_shear += grad_mu - 2 * grad_lambda / 3 + 9 * bulk * bulk * slope;
  *grad_bulk += grad_lambda + 12 * shear * shear * slope;
}

#endif
