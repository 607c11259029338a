// physics_readout: every derived readout of engine/physics/readout.inl, of every law. A new one needs no row:
// all of CQ_READOUTS are held.

struct readout_map : law_map {
  int quantity;
  enum {
    FIRST_X = LAW_INPUTS,
    FIRST_V = FIRST_X + D,
    FIRST_AFFINE = FIRST_V + D,
    inputs = FIRST_AFFINE + DD,
    outputs = DD
  };
  readout_map(const law *of, int what) : law_map(of, ANY), quantity(what) {}
  int width() const {
    const int widths[] = {1, D, DD, D == 2 ? 1 : 3};
    return widths[rank()];
  }
  int rank() const {
    static const int ranks[] = {
#define RANK_OF(ID, name, rank, unit, meaning) rank,
        CQ_READOUTS(RANK_OF)
#undef RANK_OF
    };
    return ranks[quantity - CQ_DERIVED_PIOLA];
  }
  // does it have a term of the volume alone, which may be as large as it likes?
  bool is_stiff() const {
    bool found = l->power;
    for (int k = 0; k < cq_law_of(l->kind)->slot_count; k++) found |= cq_law_of(l->kind)->slot[k] == CQ_FIELD_BULK;
    return found;
  }
  void draw(double *in) const {
    // with a large pressure von Mises is a small difference of large numbers
    do law_map::draw(in);
    while (quantity == CQ_DERIVED_VON_MISES && is_stiff() && fabs(det(in) - 1) > 0.3);
    for (int k = FIRST_X; k < inputs; k++) in[k] = uniform(-1, 1);
  }
  template <typename Point, typename T> void fill(Point *at, const T *in) const {
    fill_point(&at->material, &material, in);
    at->slots = extras() + cq_law_of(l->kind)->slot_count;
    at->dx = 0.7;
    for (int i = 0; i < D; i++) {
      at->x[i] = in[FIRST_X + i];
      at->v[i] = in[FIRST_V + i];
    }
    for (int k = 0; k < DD; k++) at->c[k / D][k % D] = in[FIRST_AFFINE + k];
  }
  void primal(const dual *in, dual *out) const {
    over_dual::ReadoutPoint at;
    fill(&at, in);
    for (int k = 0; k < DD; k++) out[k] = 0;
    over_dual::readout(quantity, &at, out);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    product::ReadoutPoint at, grad;
    fill(&at, in);
    product::readout_grad_begin(&at, &grad);
    product::readout_adj(quantity, &at, &grad, grad_out);
    add_point(grad_in, &grad.material);
    for (int i = 0; i < D; i++) {
      grad_in[FIRST_X + i] += grad.x[i];
      grad_in[FIRST_V + i] += grad.v[i];
    }
    for (int k = 0; k < DD; k++) grad_in[FIRST_AFFINE + k] += grad.c[k / D][k % D];
  }
};

// the value at one point, by the law of the material
static void value_at(const readout_map &map, const double *in, double *out) {
  product::ReadoutPoint at;
  map.fill(&at, in);
  product::readout(map.quantity, &at, out);
}

// What stands in the books of small strains: in uniaxial stretch von Mises is 2 mu e, and in 2D the stress
// across the plane nu (s_x + s_y).
static void check_small_strain(const law &l) {
  const readout_map map(&l, CQ_DERIVED_VON_MISES);
  double in[readout_map::inputs] = {0}, out[DD] = {0};
  const int slots = LAW_C + map.extras();
  const bool lame = cq_law_of(l.kind)->slot[0] == CQ_SLOT_MU,
             across = D == 3 || product::material_is_fused(&map.material);
  if (!lame || !across || l.power == 2) return;   // of power 2 the extra term counts in small strains
  random_deformation(IDENTITY, in);
  in[0] += 1e-6;
  in[slots] = 3;
  in[slots + 1] = 5;
  for (int k = 0; k < map.internals(); k++) in[LAW_Q + k] = cq_law_of(l.kind)->internal_start;
  value_at(map, in, out);
  CHECK(fabs(out[0] / 6e-6 - 1) < 1e-4, "%dD %s: von Mises of a stretch e is %g times 2 mu e", D, l.name,
        out[0] / 6e-6);
}

// at rest all stresses are zero, and so are their gradients where von Mises has its kink
static void check_at_rest(const law &l) {
  const readout_map map(&l, CQ_DERIVED_VON_MISES);
  double in[readout_map::inputs] = {0}, out[DD] = {0}, grad[readout_map::inputs] = {0};
  const double wanted[DD] = {1};
  map.draw(in);
  random_deformation(IDENTITY, in);
  for (int k = 0; k < map.internals(); k++) in[LAW_Q + k] = cq_law_of(l.kind)->internal_start;
  for (int k = 0; k < DD; k++) in[LAW_R + k] = 0;
  value_at(map, in, out);
  map.adjoint(in, grad, wanted);
  double most = 0;
  for (double g : grad) most = g == g ? fmax(most, out[0] > 0 ? 0 : fabs(g)) : INFINITY;
  CHECK(out[0] < 1e-12 && most == 0, "%dD %s: von Mises at rest is %g, a gradient %g", D, l.name, out[0], most);
}

static void check_derived(void) {
  for (const law &l : laws) {
    check_small_strain(l);
    check_at_rest(l);
    for (int q = CQ_DERIVED_PIOLA; q < CQ_QUANTITY_COUNT; q++) {
      // von Mises of a fluid without viscosity is 0, where it has a kink
      if (q == CQ_DERIVED_VON_MISES && l.kind == CQ_MATERIAL_FLUID && !l.viscous) continue;
      char name[128];
      snprintf(name, sizeof name, "%dD readout %s of %s", D, cq_quantity_describe(q)->name, l.name);
      const readout_map map(&l, q);
      // under pressure von Mises is a small difference of large numbers
      hold(map, name, 0, ~(marks)0, q == CQ_DERIVED_VON_MISES && map.is_stiff() ? 1e-11 : 1e-12);
    }
  }
}
