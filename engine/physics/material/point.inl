// point: the input of a material law for one particle. Gradients have the same shape and are added to.

typedef struct {
  const cq_material *law;
  real dt;                       // of one engine step, for laws that know time
  Real c[CQ_SLOTS_MAX];          // constants, by the slots of the law
  Real extra[CQ_EXTRAS_MAX];     // constants of viscosity and Maxwell branches: see material_extras
  Real f[CQ_DIM][CQ_DIM];        // deformation gradient; its elastic part where a law is plastic
  Real rate[CQ_DIM][CQ_DIM];     // affine velocity C, where the material is viscous
  Real internal[CQ_INTERNALS_MAX];
} MaterialPoint;

// How many constants of a material come before those of its law in the order of its slots: viscosity, then modulus and
// relaxation time of each Maxwell branch.
CQ_INLINE int material_extras(const cq_material *material) { return material->viscous + 2 * material->branches; }

// A pointer to constant k (from 0) of a particle, in the order of cq_material_slots: into at->extra (viscosity, Maxwell
// branches) or at->c (the law). at may be a gradient.
CQ_INLINE Real *material_slot(const cq_material *material, MaterialPoint *at, const int k) {
  const int extras = material_extras(material);
  return k < extras ? &at->extra[k] : &at->c[k - extras];
}

// Costly terms that the stress and its adjoint share: log J of neo-Hookean, the rotation of fixed corotated material.
typedef struct {
  Real log_jac, rotation[CQ_DIM][CQ_DIM];
} MaterialKept;

// slots of the laws that are given by Lame's constants
enum { LAME_MU, LAME_LAMBDA, LAME_VOLUMETRIC, LAME_COUNT };
#define LAME_SLOTS CQ_SLOT_MU, CQ_SLOT_LAMBDA, CQ_SLOT_VOLUMETRIC

// The P-wave modulus at rest [stress] of a law with Lame's constants: lambda + 2 mu, and 2 k of a Bonet-Wood term of
// power 2; higher powers add nothing at J = 1. slot: values of the law's constants.
static inline double lame_modulus(const cq_material *material, const double *slot) {
  return slot[LAME_LAMBDA] + 2 * slot[LAME_MU] + (material->incompressible == 2 ? 2 * slot[LAME_VOLUMETRIC] : 0);
}

// Sets out to the change of cof(F) by a change df of F. Symmetric in F and dF in 3D; in 2D cof is linear.
CQ_INLINE void cofactor_derivative(const Real f[CQ_DIM][CQ_DIM], const Real df[CQ_DIM][CQ_DIM],
                                   Real out[CQ_DIM][CQ_DIM]) {
#if CQ_DIM == 3
  CQ_UNROLL for (int i = 0; i < 3; i++) CQ_UNROLL for (int j = 0; j < 3; j++) {
    const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    out[i][j] = df[a][c] * f[b][d] + f[a][c] * df[b][d] - df[a][d] * f[b][c] - f[a][d] * df[b][c];
  }
#else
  (void)f;
  mat_cofactor(df, out);
#endif
}
