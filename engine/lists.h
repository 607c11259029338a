// lists: what the engine, its devices and, through the FFI, the Lua library go over: the fields that a rollout can set and
// differentiate, and the laws of materials. Names, shapes, units, bounds and defaults stand nowhere else. To add a material
// constant: a row of CQ_CONSTANT_FIELDS, the law that uses it (physics/material/), and a row of its test.
#ifndef CQ_LISTS_H
#define CQ_LISTS_H

// ---- fields -------------------------------------------------------------------------------------------------------------

//  ID, name: CQ_FIELD_ID and the name that scripts use
//  rank      0 a number, 1 a vector {dim}, 2 a matrix {dim, dim}; of each particle, entry, wall, or of the world
//  bounds    ANY, POSITIVE (> 0), FROM_ZERO (>= 0) or BETWEEN(a, b) (a < value < b)
//  value     that a particle has when nothing is given; NAN: it must be given where the field is used

//    ID                 name              rank  unit                bounds            value  meaning
#define CQ_STATE_FIELDS(F)                                                                                                       \
  F(POSITION,            position,            1, "length",           ANY,              NAN, "initial position x")                  \
  F(VELOCITY,            velocity,            1, "length/time",      ANY,                0, "initial velocity v")                  \
  F(AFFINE,              affine,              2, "1/time",           ANY,                0, "initial affine velocity C")           \
  F(DEFORMATION,         deformation,         2, "-",                ANY,                1, "initial deformation gradient F, times the identity")

#define CQ_PARTICLE_FIELDS(F)                                                                                                    \
  F(VOLUME,              volume,              0, "length^dim",       POSITIVE,         NAN, "initial volume, area in 2D")          \
  F(MASS,                mass,                0, "mass",             POSITIVE,         NAN, "mass")

// Constants of materials, by the names of the literature. Which of them a material has is told by its file.
#define CQ_CONSTANT_FIELDS(F)                                                                                                    \
  F(YOUNG,               young,               0, "stress",           FROM_ZERO,        NAN, "Young's modulus E")                   \
  F(POISSON,             poisson,             0, "-",                BETWEEN(-1, 0.5), NAN, "Poisson's ratio nu")                  \
  F(SHEAR,               shear,               0, "stress",           FROM_ZERO,        NAN, "shear modulus mu at rest")            \
  F(BULK,                bulk,                0, "stress",           FROM_ZERO,        NAN, "bulk modulus K at rest")

#define CQ_ENTRY_FIELDS(F)                                                                                                       \
  F(ACTUATION_WEIGHT,    actuation_weight,    0, "-",                ANY,                1, "weight of an actuator at a particle")

#define CQ_WORLD_FIELDS(F)                                                                                                       \
  F(GRAVITY,             gravity,             1, "length/time^2",    ANY,                0, "gravity")                             \
  F(DAMPING,             damping,             0, "1/time",           FROM_ZERO,          0, "rate at which all motion decays")     \
  F(FRICTION,            friction,            0, "-",                FROM_ZERO,          0, "Coulomb's coefficient of a wall")     \
  F(WALL_VELOCITY,       wall_velocity,       1, "length/time",      ANY,                0, "velocity of a wall's surface")

// of particles and actuation entries; all
#define CQ_BODY_FIELDS(F) CQ_STATE_FIELDS(F) CQ_PARTICLE_FIELDS(F) CQ_CONSTANT_FIELDS(F) CQ_ENTRY_FIELDS(F)
#define CQ_FIELDS(F) CQ_BODY_FIELDS(F) CQ_WORLD_FIELDS(F)

#define CQ_FIELD_ID(ID, name, rank, unit, bounds, value, meaning) CQ_FIELD_##ID,
#define CQ_FIELD_CONST_POINTER(ID, name, rank, unit, bounds, value, meaning) const double *name;
#define CQ_FIELD_POINTER(ID, name, rank, unit, bounds, value, meaning) double *name;
// an array for each field of a list, by its name and by its CQ_FIELD_ID
#define CQ_FIELD_UNION(type, LIST, POINTER, count) \
  __extension__ union { type *value[count]; __extension__ struct { LIST(POINTER) }; }

// ---- laws of materials -------------------------------------------------------------------------------------------------

// Each is a file of physics/material/ that holds the functions LAW_energy, LAW_stress, ... and a cq_law.
//    ID             law            meaning
#define CQ_LAWS(L)                                                                                       \
  L(NEO_HOOKEAN,     neo_hookean,   "neo-Hookean")                                                       \
  L(COROTATED,       corotated,     "fixed corotated")                                                   \
  L(LINEAR,          linear,        "small-strain linear elasticity")

#define CQ_LAW_ID(ID, law, meaning) CQ_MATERIAL_##ID,

// ---- derived readouts --------------------------------------------------------------------------------------------------

// What follows from the state and the constants of one particle (physics/readout.inl). All are intensive: an energy or a momentum
// is their sum weighted by mass or by volume.
//  rank    0 a number, 1 a vector {dim}, 2 a matrix {dim, dim}, 3 an axial vector: one number in 2D, {3} in 3D

//    ID                 name              rank  unit              meaning
#define CQ_READOUTS(R)                                                                                                           \
  R(PIOLA,               piola,               2, "stress",         "first Piola-Kirchhoff stress P of the material, without actuation") \
  R(CAUCHY,              cauchy,              2, "stress",         "Cauchy stress P F^T / J of the material, without actuation")  \
  R(VON_MISES,           von_mises,           0, "stress",         "von Mises stress of the Cauchy stress; in 2D of plane strain")  \
  R(ENERGY_DENSITY,      energy_density,      0, "stress",         "strain energy for each unit of initial volume")               \
  R(JACOBIAN,            jacobian,            0, "-",              "volume ratio J = det F")                                     \
  R(SPEED,               speed,               0, "length/time",    "length of the velocity")                                     \
  R(KINETIC_ENERGY,      kinetic_energy,      0, "length^2/time^2", "kinetic energy for each unit of mass, with that of C")        \
  R(ANGULAR_MOMENTUM,    angular_momentum,    3, "length^2/time",  "angular momentum about the origin for each unit of mass, with that of C")

#define CQ_DERIVED_ID(ID, name, rank, unit, meaning) CQ_DERIVED_##ID,

#endif
