// cable: one cable along a path of points x {n, CQ_DIM}: its energy, its pull at the points, and its adjoint.
//
//     x_0 ---- x_1            d_s = x_s+1 - x_s,  e_s = d_s / |d_s|,  span L = sum |d_s|
//                \            T at the first point is the tension of a spring; at every turn
//                 x_2 ---- x_3     the sheath lets the part exp(-mu angle) of it through
//
// Over `wide` (math/real.h): the stretch is a small difference of lengths, so it is a double also where particles are
// float. A slack cable, L <= free length, neither pulls nor has a derivative, and where it just becomes taut the
// derivative is that of the slack side. With friction there is no energy, and a straight path is a kink: the derivative
// of an angle of zero is taken as zero.

typedef struct {
  wide stiffness, length, friction;   // k, R, mu
  wide signal;                        // u
  double offset, slope;               // of the free length
  int32_t points;                     // of its path
} Cable;

// (E60) The length at which a cable with the signal u = c->signal is just taut: max(0, R (offset + slope u)).
CQ_INLINE wide cable_free_length(const Cable *c) {
  const wide length = c->length * (c->offset + c->slope * c->signal);
  return length > 0 ? length : length - length;
}

// Adjoint of cable_free_length: adds grad_length's share to grad->length (R) and grad->signal; nothing where the free
// length is cut off at 0.
CQ_INLINE void cable_free_length_adj(const Cable *c, Cable *grad, const wide grad_length) {
  const wide factor = c->offset + c->slope * c->signal;
  if (!(c->length * factor > 0)) return;
  grad->length += factor * grad_length;
  grad->signal += c->slope * c->length * grad_length;
}

// Sets e to the unit vector from point a to point b, a segment of a cable's path; returns the segment's length. e is 0
// where the length is 0.
CQ_INLINE wide cable_segment(const wide *a, const wide *b, wide e[CQ_DIM]) {
  wide square = 0;
  EACH(i) {
    e[i] = b[i] - a[i];
    square += e[i] * e[i];
  }
  if (!(square > 0)) return square;
  const wide length = w_sqrt(square);
  EACH(i) e[i] = e[i] / length;
  return length;
}

// The lengths of a + b and of b - a, for two unit vectors a and b. The two vectors are perpendicular, so that the
// angle between a and b is 2 atan(difference / sum).
CQ_INLINE void cable_diagonals(const wide a[CQ_DIM], const wide b[CQ_DIM], wide *sum, wide *difference) {
  wide plus = 0, minus = 0;
  EACH(i) {
    plus += (a[i] + b[i]) * (a[i] + b[i]);
    minus += (b[i] - a[i]) * (b[i] - a[i]);
  }
  *sum = plus > 0 ? w_sqrt(plus) : plus;
  *difference = minus > 0 ? w_sqrt(minus) : minus;
}

// The angle between two unit vectors [rad], exact for small ones, where acos would round.
CQ_INLINE wide cable_turn(const wide a[CQ_DIM], const wide b[CQ_DIM]) {
  wide sum, difference;
  cable_diagonals(a, b, &sum, &difference);
  return difference > 0 ? 2 * w_atan2(difference, sum) : difference;
}

// Adjoint of cable_turn: adds to grad_a and grad_b, from grad_turn. Nothing at an angle of 0, where there is a kink,
// and of pi.
CQ_INLINE void cable_turn_adj(const wide a[CQ_DIM], const wide b[CQ_DIM], wide grad_a[CQ_DIM], wide grad_b[CQ_DIM],
                              const wide grad_turn) {
  wide sum, difference;
  cable_diagonals(a, b, &sum, &difference);
  if (!(sum > 0) || !(difference > 0)) return;
  const wide square = sum * sum + difference * difference;
  const wide by_difference = 2 * sum / square * grad_turn / difference;
  const wide by_sum = -2 * difference / square * grad_turn / sum;
  EACH(i) {
    const wide along = by_sum * (a[i] + b[i]), across = by_difference * (b[i] - a[i]);
    grad_a[i] += along - across;
    grad_b[i] += along + across;
  }
}

// By how much the path through the points x {n, CQ_DIM} is longer than the cable's free length; negative where it is
// slack.
CQ_INLINE wide cable_stretch(const Cable *c, const wide *x) {
  wide span = 0, e[CQ_DIM];
  for (int32_t s = 0; s + 1 < c->points; s++) span += cable_segment(x + s * CQ_DIM, x + (s + 1) * CQ_DIM, e);
  return span - cable_free_length(c);
}

// (E61) The energy k/2 max(0, stretch)^2 of a cable without friction, with its path through the points x.
CQ_RARE wide cable_energy(const Cable *c, const wide *x) {
  const wide stretch = cable_stretch(c, x);
  return stretch > 0 ? 0.5 * c->stiffness * stretch * stretch : stretch - stretch;
}

// The derivative dL/dT of the loss by the tension of one segment, h.e, e its unit vector. Sets h = dL/df_s - dL/df_s+1;
// grad_force points to dL/df_s of the segment's first point, followed by that of its second.
CQ_INLINE wide cable_worth(const wide *grad_force, const wide e[CQ_DIM], wide h[CQ_DIM]) {
  wide sum = 0;
  EACH(i) {
    h[i] = grad_force[i] - grad_force[CQ_DIM + i];
    sum += h[i] * e[i];
  }
  return sum;
}

// (E62) The forces of a cable on the points x {n, CQ_DIM} of its path, into force: force_s = T_s e_s - T_s-1 e_s-1,
// T_0 = k max(0, stretch), T_s = T_s-1 exp(-mu angle(e_s-1, e_s)).
CQ_RARE void cable_pull(const Cable *c, const wide *x, wide *force) {
  const wide stretch = cable_stretch(c, x);
  wide tension = stretch > 0 ? c->stiffness * stretch : stretch - stretch, before[CQ_DIM], e[CQ_DIM];
  for (int32_t k = 0; k < c->points * CQ_DIM; k++) force[k] = 0;
  for (int32_t s = 0; s + 1 < c->points; s++) {
    cable_segment(x + s * CQ_DIM, x + (s + 1) * CQ_DIM, e);
    if (s) tension = tension * w_exp(-c->friction * cable_turn(before, e));
    EACH(i) {
      force[s * CQ_DIM + i] += tension * e[i];
      force[(s + 1) * CQ_DIM + i] -= tension * e[i];
      before[i] = e[i];
    }
  }
}

// (E65) Adjoint of cable_pull: adds the gradients of the cable's constants and signal to grad, of the points to grad_x,
// from grad_force. share {n}: memory to work in; it holds T_s / T_0 of each segment.
CQ_RARE void cable_pull_adj(const Cable *c, const wide *x, Cable *grad, wide *grad_x, const wide *grad_force,
                            wide *share) {
  const wide stretch = cable_stretch(c, x);
  if (!(stretch > 0)) return;
  const wide tension = c->stiffness * stretch;
  wide grad_tension = 0, e[CQ_DIM], before[CQ_DIM], h[CQ_DIM], grad_e[CQ_DIM], carried[CQ_DIM];
  for (int32_t s = 0; s + 1 < c->points; s++) {
    cable_segment(x + s * CQ_DIM, x + (s + 1) * CQ_DIM, e);
    share[s] = s ? share[s - 1] * w_exp(-c->friction * cable_turn(before, e)) : 1;
    grad_tension += share[s] * cable_worth(grad_force + s * CQ_DIM, e, h);
    EACH(i) before[i] = e[i];
  }
  const wide grad_stretch = c->stiffness * grad_tension;
  grad->stiffness += stretch * grad_tension;
  cable_free_length_adj(c, grad, -grad_stretch);
  // from the last segment to the first: grad_share is the derivative by this segment's share, through all later ones
  wide grad_share = 0;
  EACH(i) carried[i] = 0;
  for (int32_t s = c->points - 2; s >= 0; s--) {
    const wide length = cable_segment(x + s * CQ_DIM, x + (s + 1) * CQ_DIM, e);
    grad_share += tension * cable_worth(grad_force + s * CQ_DIM, e, h);
    EACH(i) {
      grad_e[i] = carried[i] + tension * share[s] * h[i];
      carried[i] = 0;
    }
    if (s) {
      cable_segment(x + (s - 1) * CQ_DIM, x + s * CQ_DIM, before);
      const wide turn = cable_turn(before, e), factor = share[s] * grad_share;
      grad->friction -= turn * factor;
      cable_turn_adj(before, e, carried, grad_e, -c->friction * factor);
      grad_share = w_exp(-c->friction * turn) * grad_share;
    }
    if (!(length > 0)) continue;
    wide along = 0;
    EACH(i) along += grad_e[i] * e[i];
    EACH(i) {
      const wide grad_d = (grad_e[i] - along * e[i]) / length + grad_stretch * e[i];
      grad_x[s * CQ_DIM + i] -= grad_d;
      grad_x[(s + 1) * CQ_DIM + i] += grad_d;
    }
  }
}
