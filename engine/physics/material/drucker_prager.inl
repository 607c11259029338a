// Drucker-Prager plasticity of sand with a volume correction (Klar et al. 2016; Tampubolon et al. 2017) and cohesion:
// Hencky elasticity (hencky.inl), and a flow that keeps the volume, but at the tip of the cone, where the grains
// part. With k = lambda + 2 mu/dim, t = sum_i e_i + v the trace of the strains with the correction v, phi the angle
// of friction, c the cohesion:
//   b = k t sin(phi) - c cos(phi); tip: b >= 0; cone: y = |dev e| + dim/(2 mu) A b <= 0                           (E47)
//   at the tip:       dev e <- 0, sum e <- c cot(phi) / k, v <- t - sum e
//   on the cone, y > 0: dev e shrinks until y = 0;  y <= 0: as it is;  both: sum e <- t, v <- 0
// In 3D A = sqrt(2/3) 2 / (3 - sin phi), the cone around Mohr and Coulomb's pyramid, exact in compression. In 2D A = 1
// / sqrt(2): for two principal stresses that is Mohr and Coulomb's own. v is the volume that grains which parted have
// to lose before they press again.

enum { SAND_ANGLE = LAME_LAMBDA + 1, SAND_COHESION, SAND_COUNT };

#if defined(CQ_LAW_TABLE)
static const cq_law drucker_prager_law = {
    .name = "drucker_prager",
    .slot_count = SAND_COUNT,
    .internal_count = {1, 1},
    .slot = {CQ_SLOT_MU, CQ_SLOT_LAMBDA, CQ_FIELD_FRICTION_ANGLE, CQ_FIELD_COHESION},
    .modulus = lame_modulus};
#endif

// (E45) The energy density of the elastic F, Hencky's.
CQ_INLINE Real drucker_prager_energy(const MaterialPoint *at) { return hencky_energy(at); }
// (E45) Sets p to P = dpsi/dF of the elastic F, by Hencky's law.
CQ_INLINE void drucker_prager_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) { hencky_stress(at, p); }
// Sets dp to the change of P by a change df of the elastic F.
CQ_INLINE void drucker_prager_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                                Real dp[CQ_DIM][CQ_DIM]) {
  hencky_stress_derivative(at, df, dp);
}
// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void drucker_prager_grad_constants(const MaterialPoint *at, MaterialPoint *grad,
                                             const Real grad_p[CQ_DIM][CQ_DIM]) {
  hencky_grad_constants(at, grad, grad_p);
}

// the terms of the yield surface (E47)
typedef struct {
  Real sine, cosine;            // of the angle of friction
  Real stiffness;               // k
  Real slope;                   // A
  Real trace;                   // t
  Real excess;                  // b: above 0 at the tip
  Real cone;                    // y: above 0 on the cone
} SandYield;

// Sets sine and cosine of an angle x between 0 and pi/2 [rad], by their series.
CQ_INLINE void sine_cosine(const Real x, Real *sine, Real *cosine) {
  const Real x2 = x * x;
  Real s = x2 * (real)0 + (real)1, c = s;
  CQ_ROLL for (int k = 11; k >= 1; k--) {
    s = (real)1 - x2 * s * ((real)1 / (real)(2 * k * (2 * k + 1)));
    c = (real)1 - x2 * c * ((real)1 / (real)(2 * k * (2 * k - 1)));
  }
  *sine = x * s;
  *cosine = c;
}

// (E47) Yield test of Drucker and Prager for a particle with trial strains h: sets y, the terms of the yield surface,
// and flow, the strains after the return to it. flow->over <= 0: nothing changes.
CQ_RARE void sand_flow(const MaterialPoint *at, const Hencky *h, SandYield *y, Flow *flow) {
  const Real mu = at->c[LAME_MU], cohesion = at->c[SAND_COHESION], one = mu * (real)0 + (real)1;
  sine_cosine(at->c[SAND_ANGLE], &y->sine, &y->cosine);
  y->stiffness = at->c[LAME_LAMBDA] + (real)(2.0 / CQ_DIM) * mu;
#if CQ_DIM == 2
  y->slope = (real)0.70710678118654752440 * one;
#else
  y->slope = (real)1.63299316185545206546 / ((real)3 - y->sine);
#endif
  y->trace = h->sum + at->internal[0];
  y->excess = y->stiffness * y->trace * y->sine - cohesion * y->cosine;
  const Real cone = (real)(0.5 * CQ_DIM) / mu * y->slope * y->excess;
  y->cone = h->size + cone;
  const Real shrunk = -(cone / r_pick(h->size, h->size, one));
  const Real tip = cohesion * y->cosine / (y->stiffness * y->sine);
  flow->scale = r_pick(y->excess, one - one, r_pick(y->cone, shrunk, one));
  flow->sum = r_pick(y->excess, tip, y->trace);
  flow->over = r_pick(y->excess, one, r_pick(y->cone, one, at->internal[0]));
}

// Adds to the gradients of angle, cohesion, lambda and mu (through y->stiffness alone) in grad->c, from the gradients
// of y->excess (grad_excess), y->slope (grad_slope) and the sum of the strains at the tip of the cone (grad_tip).
CQ_INLINE void sand_yield_grad(const MaterialPoint *at, MaterialPoint *grad, const SandYield *y, const Real grad_excess,
                              const Real grad_slope, const Real grad_tip) {
  const Real cohesion = at->c[SAND_COHESION], per = grad_tip / (y->stiffness * y->sine),
             tip = cohesion * y->cosine * per;
  Real grad_sine = grad_excess * y->stiffness * y->trace - tip / y->sine;
  if (CQ_DIM == 3) grad_sine += grad_slope * y->slope / ((real)3 - y->sine);
  const Real grad_cosine = cohesion * (per - grad_excess);
  const Real grad_stiffness = grad_excess * y->trace * y->sine - tip / y->stiffness;
  grad->c[SAND_ANGLE] += y->cosine * grad_sine - y->sine * grad_cosine;
  grad->c[SAND_COHESION] += y->cosine * (per - grad_excess);
  grad->c[LAME_LAMBDA] += grad_stiffness;
  grad->c[LAME_MU] += (real)(2.0 / CQ_DIM) * grad_stiffness;
}

// (E47) After a step: returns F to the yield surface, and sets the volume correction v, the internal variable, in
// place.
CQ_INLINE void drucker_prager_update(MaterialPoint *at) {
  Hencky h;
  SandYield y;
  Flow flow;
  hencky_of(at->f, &h);
  sand_flow(at, &h, &y, &flow);
  flow_update(at, &h, &flow);
  at->internal[0] = r_pick(y.excess, y.trace - flow.sum, at->c[LAME_MU] * (real)0);
}

// Adjoint of drucker_prager_update; at: the particle before the update. grad->f and grad->internal: on entry gradients
// of the values after the update, on return of those before it. Adds to the gradients of constants.
CQ_INLINE void drucker_prager_update_adj(const MaterialPoint *at, MaterialPoint *grad) {
  Hencky h;
  SandYield y;
  Flow flow;
  FlowGrad g;
  hencky_of(at->f, &h);
  sand_flow(at, &h, &y, &flow);
  flow_grad(&h, &flow, grad->f, &g);
  const Real mu = at->c[LAME_MU], zero = mu * (real)0, grad_v = r_pick(y.excess, grad->internal[0], zero);
  const Real size = r_pick(h.size, h.size, h.size + (real)1);
  // v = t - sum at the tip
  const Real grad_sum = g.sum - grad_v, grad_tip = r_pick(y.excess, grad_sum, zero);
  // on the cone scale = -dim/(2 mu) A b / size
  const Real grad_scale = r_pick(y.excess, zero, r_pick(y.cone, g.scale, zero));
  const Real per = (real)(-0.5 * CQ_DIM) / (mu * size) * grad_scale, grad_excess = per * y.slope;
  const Real grad_trace = grad_v + (grad_sum - grad_tip) + grad_excess * y.stiffness * y.sine;
  EACH(i) g.strain[i] += grad_trace;
  flow_size_grad(&h, -(flow.scale * grad_scale / size), &g);
  sand_yield_grad(at, grad, &y, grad_excess, per * y.excess, grad_tip);
  grad->c[LAME_MU] -= flow.scale * grad_scale / mu;
  flow_update_adj(&h, &flow, &g, grad->f);
  grad->internal[0] = grad_trace;
}
