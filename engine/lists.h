// lists: what the engine, its devices and, through the FFI, the Lua library go over: the fields that a rollout
// can set and differentiate, the laws of materials, and the drives. Names, shapes, units, bounds and defaults
// stand nowhere else. To add a material constant: a row of CQ_CONSTANT_FIELDS, the law that uses it
// (physics/material/), and a row of its test.
#ifndef CQ_LISTS_H
#define CQ_LISTS_H

// ---- fields ---------------------------------------------------------------------------------------------------------

//  ID, name: CQ_FIELD_ID and the name that scripts use
//  rank      0 a number, 1 a vector {dim}, 2 a matrix {dim, dim}; of each particle, entry, cable, wall, or of the world
//  bounds    ANY, POSITIVE (> 0), FROM_ZERO (>= 0) or BETWEEN(a, b) (a < value < b)
//  value     that a particle has when nothing is given; NAN: it must be given where the field is used

//    ID                 name              rank  unit                bounds            value  meaning
#define CQ_STATE_FIELDS(F)                                                                                             \
  F(POSITION,    position,    1, "length",      ANY, NAN, "initial position x")                                        \
  F(VELOCITY,    velocity,    1, "length/time", ANY, 0,   "initial velocity v")                                        \
  F(AFFINE,      affine,      2, "1/time",      ANY, 0,   "initial affine velocity C")                                 \
  F(DEFORMATION, deformation, 2, "-",           ANY, 1,   "initial deformation gradient F, times the identity")

#define CQ_PARTICLE_FIELDS(F)                                                                                          \
  F(VOLUME, volume, 0, "length^dim", POSITIVE, NAN, "initial volume, area in 2D")                                      \
  F(MASS,   mass,   0, "mass",       POSITIVE, NAN, "mass")

// Constants of materials, by the names of the literature. The file of a law says which of them it has.
#define CQ_CONSTANT_FIELDS(F)                                                                                          \
  F(YOUNG, young, 0, "stress", FROM_ZERO, NAN, "Young's modulus E")                                                    \
  F(POISSON, poisson, 0, "-", BETWEEN(-1, 0.5), NAN, "Poisson's ratio nu")                                             \
  F(SHEAR, shear, 0, "stress", FROM_ZERO, NAN, "shear modulus mu at rest")                                             \
  F(BULK, bulk, 0, "stress", FROM_ZERO, NAN, "bulk modulus K at rest")                                                 \
  F(C10, c10,  0, "stress", ANY, NAN, "C10 of Mooney-Rivlin and Yeoh, of (I1 - 3)")                                    \
  F(C01, c01,  0, "stress", ANY, NAN, "C01 of Mooney-Rivlin, of (I2 - 3)")                                             \
  F(C20, c20,  0, "stress", ANY, 0, "C20 of Yeoh, of (I1 - 3)^2")                                                      \
  F(C30, c30,  0, "stress", ANY, 0, "C30 of Yeoh, of (I1 - 3)^3")                                                      \
  F(MU_1, mu_1, 0, "stress", ANY, NAN, "mu_1 of Ogden")                                                                \
  F(MU_2, mu_2, 0, "stress", ANY, 0, "mu_2 of Ogden")                                                                  \
  F(MU_3, mu_3, 0, "stress", ANY, 0, "mu_3 of Ogden")                                                                  \
  F(ALPHA_1, alpha_1, 0, "-", ANY, NAN, "alpha_1 of Ogden, the exponent of mu_1")                                      \
  F(ALPHA_2, alpha_2, 0, "-", ANY, 0, "alpha_2 of Ogden, the exponent of mu_2")                                        \
  F(ALPHA_3, alpha_3, 0, "-", ANY, 0, "alpha_3 of Ogden, the exponent of mu_3")                                        \
  F(K1,  k1,   0, "stress", FROM_ZERO, NAN, "stiffness k1 of fibres")                                                  \
  F(K2,  k2,   0, "-",  FROM_ZERO, 0, "exponent k2 of fibres, 0 for none")                                             \
  F(FIBRE, fibre, 1, "-", ANY, NAN, "direction of fibres, of any length")                                              \
  F(EXPONENT, exponent, 0, "-", POSITIVE, 7, "exponent gamma of Tait's equation of state")                             \
  F(TENSION, tension, 0, "stress", FROM_ZERO, 0, "largest tension that a fluid bears")                                 \
  F(VISCOSITY, viscosity, 0, "stress time", FROM_ZERO, NAN, "dynamic viscosity eta")                                   \
  F(BRANCH_MODULUS_1, branch_modulus_1, 0, "-", FROM_ZERO, NAN,                                                        \
    "modulus beta of the first Maxwell branch, relative to the law's")                                                 \
  F(RELAXATION_TIME_1, relaxation_time_1, 0, "time", POSITIVE, NAN, "relaxation time of the first Maxwell branch")     \
  F(BRANCH_MODULUS_2, branch_modulus_2, 0, "-", FROM_ZERO, NAN, "of the second")                                       \
  F(RELAXATION_TIME_2, relaxation_time_2, 0, "time", POSITIVE, NAN, "of the second")                                   \
  F(BRANCH_MODULUS_3, branch_modulus_3, 0, "-", FROM_ZERO, NAN, "of the third")                                        \
  F(RELAXATION_TIME_3, relaxation_time_3, 0, "time", POSITIVE, NAN, "of the third")                                    \
  F(YIELD_STRESS, yield_stress, 0, "stress", FROM_ZERO, NAN, "yield stress in tension at first flow")                  \
  F(HARDENING, hardening, 0, "stress", FROM_ZERO, 0, "linear hardening H by plastic strain")                           \
  F(FRICTION_ANGLE, friction_angle, 0, "rad", BETWEEN(0, 1.5707963267948966), NAN, "angle of internal friction phi")   \
  F(COHESION, cohesion, 0, "stress", FROM_ZERO, 0, "cohesion c")                                                       \
  F(SNOW_HARDENING, snow_hardening, 0, "-", FROM_ZERO, 10, "hardening coefficient xi of snow")                         \
  F(CRITICAL_COMPRESSION, critical_compression, 0, "-", BETWEEN(0, 1), 0.025,                                          \
    "compression theta_c at which snow flows")                                                                         \
  F(CRITICAL_STRETCH, critical_stretch, 0, "-", FROM_ZERO, 0.0075, "stretch theta_s at which snow flows")

#define CQ_ENTRY_FIELDS(F)                                                                                             \
  F(ACTUATION_WEIGHT, actuation_weight, 0, "-", ANY, 1, "weight of an actuator at a particle")

#define CQ_CABLE_FIELDS(F)                                                                                             \
  F(CABLE_STIFFNESS, cable_stiffness, 0, "force/length", FROM_ZERO, NAN, "stiffness k of a cable")                     \
  F(CABLE_LENGTH,    cable_length,    0, "length",       FROM_ZERO, NAN, "rest length R of a cable")                   \
  F(CABLE_FRICTION,  cable_friction,  0, "-",            FROM_ZERO, 0,   "Coulomb's coefficient of a cable's sheath")

#define CQ_WORLD_FIELDS(F)                                                                                             \
  F(GRAVITY,       gravity,       1, "length/time^2", ANY,       0, "gravity")                                         \
  F(DAMPING,       damping,       0, "1/time",        FROM_ZERO, 0, "rate at which all motion decays")                 \
  F(FRICTION,      friction,      0, "-",             FROM_ZERO, 0, "Coulomb's coefficient of a wall")                 \
  F(WALL_VELOCITY, wall_velocity, 1, "length/time",   ANY,       0, "velocity of a wall's surface")

// of particles, actuation entries and cables; all
#define CQ_BODY_FIELDS(F)                                                                                              \
  CQ_STATE_FIELDS(F) CQ_PARTICLE_FIELDS(F) CQ_CONSTANT_FIELDS(F) CQ_ENTRY_FIELDS(F) CQ_CABLE_FIELDS(F)
#define CQ_FIELDS(F) CQ_BODY_FIELDS(F) CQ_WORLD_FIELDS(F)

#define CQ_FIELD_ID(ID, name, rank, unit, bounds, value, meaning) CQ_FIELD_##ID,
#define CQ_FIELD_CONST_POINTER(ID, name, rank, unit, bounds, value, meaning) const double *name;
#define CQ_FIELD_POINTER(ID, name, rank, unit, bounds, value, meaning) double *name;
// an array for each field of a list, by its name and by its CQ_FIELD_ID
#define CQ_FIELD_UNION(type, LIST, POINTER, count) \
  __extension__ union { type *value[count]; __extension__ struct { LIST(POINTER) }; }

// ---- laws of materials ----------------------------------------------------------------------------------------------

// Each is a file of physics/material/ with a cq_law and the functions LAW_energy, LAW_stress, LAW_stress_derivative and
// LAW_grad_constants. A row says of each further hook whether the law has its own or none; physics/laws.inl makes the
// calls of all hooks from this list, so a function that a row names and no file defines is an error of the build.
//  energy_grad  LAW_energy_grad; none: the energy is linear in the constants and knows no internal variables
//  piola_zz     LAW_piola_zz and LAW_piola_zz_adj, of 2D builds; none: P_zz is not known
//  update       LAW_update and LAW_update_adj; none: F and internal variables stay as the step left them

//  ID                      law                     energy_grad, piola_zz, update; meaning
#define CQ_LAWS(L)                                                                                                     \
  L(NEO_HOOKEAN,            neo_hookean,            none, own,  none, "neo-Hookean")                                   \
  L(COROTATED,              corotated,              none, own,  none, "fixed corotated")                               \
  L(LINEAR,                 linear,                 none, own,  none, "small-strain linear elasticity")                \
  L(SAINT_VENANT_KIRCHHOFF, saint_venant_kirchhoff, none, own,  none, "Saint Venant-Kirchhoff")                        \
  L(MOONEY_RIVLIN,          mooney_rivlin,          none, own,  none, "Mooney-Rivlin")                                 \
  L(YEOH,                   yeoh,                   none, own,  none, "Yeoh of three terms")                           \
  L(OGDEN,                  ogden,                  own,  own,  none, "Ogden of three terms")                          \
  L(TRANSVERSELY_ISOTROPIC, transversely_isotropic, own,  own,  none, "neo-Hookean with one family of fibres")         \
  L(FLUID,                  fluid,                  own,  none, own,  "weakly compressible fluid")                     \
  L(VON_MISES,              von_mises,              none, none, own,  "von Mises plasticity")                          \
  L(DRUCKER_PRAGER,         drucker_prager,         none, none, own,  "Drucker-Prager sand")                           \
  L(SNOW,                   snow,                   own,  own,  own,  "snow")

// Where weights and velocities live. Updated: on one grid of the world, which particles cross (MLS-MPM). Total
// Lagrangian: each body has a grid of its own undeformed shape, on which its particles stay.
typedef enum cq_formulation { CQ_FORMULATION_UPDATED = 0, CQ_FORMULATION_TOTAL_LAGRANGIAN } cq_formulation;

#define CQ_LAW_ID(ID, ...) CQ_MATERIAL_##ID,

// ---- derived readouts -----------------------------------------------------------------------------------------------

// What follows from the state and the constants of one particle (physics/readout.inl). All are intensive: an energy or
// a momentum is their sum weighted by mass or by volume.
//  rank    0 a number, 1 a vector {dim}, 2 a matrix {dim, dim}, 3 an axial vector: one number in 2D, {3} in 3D

//    ID                 name              rank  unit              meaning
#define CQ_READOUTS(R)                                                                                                 \
  R(PIOLA, piola, 2, "stress", "first Piola-Kirchhoff stress P of the material, without actuation")                    \
  R(CAUCHY, cauchy, 2, "stress", "Cauchy stress P F^T / J of the material, without actuation")                         \
  R(VON_MISES, von_mises, 0, "stress", "von Mises stress of the Cauchy stress; in 2D of plane strain")                 \
  R(ENERGY_DENSITY, energy_density, 0, "stress", "strain energy for each unit of initial volume")                      \
  R(JACOBIAN, jacobian, 0, "-", "volume ratio J = det F")                                                              \
  R(SPEED, speed, 0, "length/time", "length of the velocity")                                                          \
  R(KINETIC_ENERGY, kinetic_energy, 0, "length^2/time^2", "kinetic energy for each unit of mass, with that of C")      \
  R(ANGULAR_MOMENTUM, angular_momentum, 3, "length^2/time",                                                            \
    "angular momentum about the origin for each unit of mass, with that of C")

#define CQ_DERIVED_ID(ID, name, rank, unit, meaning) CQ_DERIVED_##ID,

// ---- drives ---------------------------------------------------------------------------------------------------------

// What acts on particles beside their material, contact and gravity. Signals and forces are held over a control step;
// stresses, pulls and pressures follow F and the positions at every engine step.
//    ID        name        meaning
#define CQ_DRIVES(D)                                                                                     \
  D(STRESS,     stress,     "a stress in the material frame (physics/actuation.inl)")                    \
  D(FORCE,      force,      "a force that a script gives for a control step")                            \
  D(CABLE,      cable,      "the pull of a cable along a path of points (physics/drive/cable.inl)")      \
  D(CHAMBER,    chamber,    "a pressure in a closed chamber (physics/drive/chamber.inl)")                \
  D(PRESSURE,   pressure,   "a pressure that follows an open surface (physics/drive/pressure.inl)")

#define CQ_DRIVE_ID(ID, name, meaning) CQ_DRIVE_##ID,

#endif
