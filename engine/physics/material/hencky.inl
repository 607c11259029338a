// hencky: elasticity in logarithmic strain, and plastic flow in it, for the laws that return a trial F to a yield
// surface (Simo 1992; Klar et al. 2016). F = U diag(s) V^T, strains e_i = log s_i.
//   psi = mu sum_i e_i^2 + lambda/2 (sum_i e_i)^2, P = U diag(h_i / s_i) V^T, h_i = 2 mu e_i + lambda sum_j e_j   (E45)
// A flow scales the deviator of the strains and sets their sum: e_i <- a dev(e)_i + t/dim, F <- U diag(exp e) V^T. It
// turns nothing, and where there is none F stays as it is, bit for bit.
// In 2D the law has two principal stretches, and nothing of it looks out of the plane.

typedef struct {
  Singular of;
  Real strain[CQ_DIM];
  Real sum;                     // of the strains: log J
  Real dev[CQ_DIM], size;       // their deviator, and its length
} Hencky;

// Sets h to the singular value decomposition of F, the logarithmic strains, their sum, their deviator and its length.
CQ_RARE void hencky_of(const Real f[CQ_DIM][CQ_DIM], Hencky *h) {
  singular(f, &h->of);
  h->sum = h->of.s[0] * (real)0;
  EACH(i) h->strain[i] = r_log(h->of.s[i]);
  EACH(i) h->sum += h->strain[i];
  Real square = h->sum * (real)0;
  EACH(i) {
    h->dev[i] = h->strain[i] - (real)(1.0 / CQ_DIM) * h->sum;
    square += h->dev[i] * h->dev[i];
  }
  h->size = r_pick(square, r_sqrt(r_pick(square, square, square + (real)1)), square);
}

// The divided difference (log s_i - log s_j) / (s_i - s_j) of two stretches, or its limit where they are equal.
CQ_INLINE Real hencky_apart(const Hencky *h, const int i, const int j) {
  return (real)1 / exp_apart(h->strain[i], h->strain[j]);
}

// ---- elasticity -----------------------------------------------------------------------------------------------------

// (E45) The energy density psi = mu sum_i e_i^2 + lambda/2 (sum_i e_i)^2, e_i = log s_i, s the singular values of F.
CQ_INLINE Real hencky_energy(const MaterialPoint *at) {
  Hencky h;
  hencky_of(at->f, &h);
  Real squares = h.strain[0] * h.strain[0];
  CQ_UNROLL for (int i = 1; i < CQ_DIM; i++) squares += h.strain[i] * h.strain[i];
  return at->c[LAME_MU] * squares + (real)0.5 * at->c[LAME_LAMBDA] * h.sum * h.sum;
}

// (E45) Sets p to P = U diag(h_i / s_i) V^T, h_i = 2 mu e_i + lambda sum_j e_j, e_i = log s_i.
CQ_INLINE void hencky_stress(const MaterialPoint *at, Real p[CQ_DIM][CQ_DIM]) {
  Hencky h;
  Real g[CQ_DIM];
  hencky_of(at->f, &h);
  EACH(i) g[i] = ((real)2 * at->c[LAME_MU] * h.strain[i] + at->c[LAME_LAMBDA] * h.sum) / h.of.s[i];
  singular_join(&h.of, g, p);
}

// (E23) Sets dp to the change of P by a change df of F, with divided differences of h_i / s_i.
CQ_INLINE void hencky_stress_derivative(const MaterialPoint *at, const Real df[CQ_DIM][CQ_DIM],
                                        Real dp[CQ_DIM][CQ_DIM]) {
  Hencky h;
  SingularSlopes slopes;
  Real tau[CQ_DIM];
  const Real mu = at->c[LAME_MU], lambda = at->c[LAME_LAMBDA];
  hencky_of(at->f, &h);
  EACH(i) tau[i] = (real)2 * mu * h.strain[i] + lambda * h.sum;
  EACH(i) EACH(j) {
    const Real a = h.of.s[i], b = h.of.s[j], area = a * b;
    slopes.slope[i][j] = lambda / area;
    if (i == j) slopes.slope[i][j] += ((real)2 * mu - tau[i]) / area;
    // of tau / s: the slope of the strains at the mean of 1/s, and that of 1/s at the mean of tau
    slopes.apart[i][j] = (mu * hencky_apart(&h, i, j) * (a + b) - (real)0.5 * (tau[i] + tau[j])) / area;
    slopes.along[i][j] = (tau[i] / a + tau[j] / b) / (a + b);
  }
  singular_derivative(&h.of, &slopes, df, dp);
}

// Adds the derivatives of <P, grad_p> by mu and lambda to grad->c.
CQ_INLINE void hencky_grad_constants(const MaterialPoint *at, MaterialPoint *grad, const Real grad_p[CQ_DIM][CQ_DIM]) {
  Hencky h;
  Real g[CQ_DIM], p[CQ_DIM][CQ_DIM];
  hencky_of(at->f, &h);
  EACH(i) g[i] = (real)2 * h.strain[i] / h.of.s[i];
  singular_join(&h.of, g, p);
  grad->c[LAME_MU] += mat_dot(p, grad_p);
  EACH(i) g[i] = h.sum / h.of.s[i];
  singular_join(&h.of, g, p);
  grad->c[LAME_LAMBDA] += mat_dot(p, grad_p);
}

// ---- flow -----------------------------------------------------------------------------------------------------------

typedef struct {
  Real over;                    // above 0: the strains flow
  Real scale, sum;              // of the deviator, and the sum of the strains after it
} Flow;

// gradients of a loss with respect to scale and sum of a Flow, and to the strains before it
typedef struct {
  Real strain[CQ_DIM], scale, sum;
} FlowGrad;

// The principal logarithmic strain i after the flow: scale dev(e)_i + sum/dim.
CQ_INLINE Real flow_strain(const Hencky *h, const Flow *flow, const int i) {
  return flow->scale * h->dev[i] + (real)(1.0 / CQ_DIM) * flow->sum;
}

// First half of the adjoint of a flow, before flow_update_adj: sets grad to the gradients of the flow's scale and sum,
// and of the strains at constant scale and sum, from grad_f, the gradient of F after the flow. The law then turns scale
// and sum into gradients of strains and of its variables.
CQ_RARE void flow_grad(const Hencky *h, const Flow *flow, const Real grad_f[CQ_DIM][CQ_DIM], FlowGrad *grad) {
  Real t[CQ_DIM][CQ_DIM], m[CQ_DIM][CQ_DIM], along[CQ_DIM], mean = h->sum * (real)0;
  mat_mul_tn(h->of.u, grad_f, t);
  mat_mul(t, h->of.v, m);
  EACH(i) along[i] = m[i][i] * r_exp(flow_strain(h, flow, i));
  EACH(i) mean += (real)(1.0 / CQ_DIM) * along[i];
  grad->sum = mean;
  grad->scale = mean * (real)0;
  EACH(i) grad->scale += along[i] * h->dev[i];
  EACH(i) grad->strain[i] = flow->scale * (along[i] - mean);
}

// Adds the share of grad_size, the gradient of the deviator's length, to the gradients of the strains.
CQ_INLINE void flow_size_grad(const Hencky *h, const Real grad_size, FlowGrad *grad) {
  const Real share = grad_size / r_pick(h->size, h->size, h->size + (real)1);
  EACH(i) grad->strain[i] += share * h->dev[i];
}

// (E45) After a step: sets F to U diag(exp e') V^T, e' the strains after the flow, in place. F stays as it is where
// flow->over <= 0.
CQ_RARE void flow_update(MaterialPoint *at, const Hencky *h, const Flow *flow) {
  Real stretch[CQ_DIM], f[CQ_DIM][CQ_DIM];
  EACH(i) stretch[i] = r_exp(flow_strain(h, flow, i));
  singular_join(&h->of, stretch, f);
  EACH(i) EACH(j) at->f[i][j] = r_pick(flow->over, f[i][j], at->f[i][j]);
}

// Second half of the adjoint of a flow. grad_f: on entry the gradient of F after the flow, on return of F before it,
// the same where flow->over <= 0. grad: its strain, which flow_grad and the law have set, is read.
CQ_RARE void flow_update_adj(const Hencky *h, const Flow *flow, const FlowGrad *grad, Real grad_f[CQ_DIM][CQ_DIM]) {
  SingularSlopes slopes;
  Real strain[CQ_DIM], along[CQ_DIM], pairs[CQ_DIM][CQ_DIM], own[CQ_DIM][CQ_DIM];
  EACH(i) strain[i] = flow_strain(h, flow, i);
  EACH(i) EACH(j) {
    slopes.slope[i][j] = strain[i] * (real)0;
    slopes.apart[i][j] = exp_apart(strain[i], strain[j]) * flow->scale * hencky_apart(h, i, j);
    slopes.along[i][j] = (r_exp(strain[i]) + r_exp(strain[j])) / (h->of.s[i] + h->of.s[j]);
  }
  singular_derivative(&h->of, &slopes, grad_f, pairs);
  EACH(i) along[i] = grad->strain[i] / h->of.s[i];
  singular_join(&h->of, along, own);
  EACH(i) EACH(j) grad_f[i][j] = r_pick(flow->over, pairs[i][j] + own[i][j], grad_f[i][j]);
}
