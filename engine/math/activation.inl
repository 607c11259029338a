// activation: the activation functions of networks, in double. The including file defines CQ_ACTIVATION: static inline,
// or the qualifier of a GPU function.

// f(z) of an activation function, `kind` CQ_UNARY_TANH, SIGMOID, SOFTPLUS or ELU; any other kind is computed as ReLU.
CQ_ACTIVATION double activation_value(int kind, double z) {
  const double e = exp(-fabs(z));
  switch (kind) {
    case CQ_UNARY_TANH: return tanh(z);
    case CQ_UNARY_SIGMOID: return z >= 0 ? 1 / (1 + e) : e / (1 + e);
    case CQ_UNARY_SOFTPLUS: return (z > 0 ? z : 0) + log1p(e);
    case CQ_UNARY_ELU: return z < 0 ? expm1(z) : z;
    default: return z < 0 ? 0 : z;   // not z > 0 ? z : 0, which would turn nan into 0
  }
}

// f'(z) of an activation function, `kind` as in activation_value, from its value y = f(z).
CQ_ACTIVATION double activation_slope(int kind, double y) {
  switch (kind) {
    case CQ_UNARY_TANH: return (1 - y) * (1 + y);
    case CQ_UNARY_SIGMOID: return y * (1 - y);
    case CQ_UNARY_SOFTPLUS: return -expm1(-y);
    case CQ_UNARY_ELU: return y < 0 ? 1 + y : 1;
    default: return y > 0;
  }
}
