// lists: what the engine, its devices and, through the FFI, the Lua library go over: the fields that a rollout can set and
// differentiate, the laws of materials, and the drives. Names, shapes, units, bounds and defaults stand nowhere else. To add a material
// constant: a row of CQ_CONSTANT_FIELDS, the law that uses it (physics/material/), and a row of its test.
#ifndef CQ_LISTS_H
#define CQ_LISTS_H

// ---- fields -------------------------------------------------------------------------------------------------------------

//  ID, name: CQ_FIELD_ID and the name that scripts use
//  rank      0 a number, 1 a vector {dim}, 2 a matrix {dim, dim}; of each particle, entry, cable, wall, or of the world
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

#define CQ_CABLE_FIELDS(F)                                                                                                       \
  F(CABLE_STIFFNESS,     cable_stiffness,     0, "force/length",     FROM_ZERO,        NAN, "stiffness k of a cable")              \
  F(CABLE_LENGTH,        cable_length,        0, "length",           FROM_ZERO,        NAN, "rest length R of a cable")            \
  F(CABLE_FRICTION,      cable_friction,      0, "-",                FROM_ZERO,          0, "Coulomb's coefficient of a cable's sheath")

#define CQ_WORLD_FIELDS(F)                                                                                                       \
  F(GRAVITY,             gravity,             1, "length/time^2",    ANY,                0, "gravity")                             \
  F(FRICTION,            friction,            0, "-",                FROM_ZERO,          0, "Coulomb's coefficient of a wall")     \
  F(WALL_VELOCITY,       wall_velocity,       1, "length/time",      ANY,                0, "velocity of a wall's surface")

// of particles, actuation entries and cables; all
#define CQ_BODY_FIELDS(F) CQ_STATE_FIELDS(F) CQ_PARTICLE_FIELDS(F) CQ_CONSTANT_FIELDS(F) CQ_ENTRY_FIELDS(F) CQ_CABLE_FIELDS(F)
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

// ---- drives ------------------------------------------------------------------------------------------------------------

// What acts on particles beside their material, contact and gravity. Signals and forces are held over a control step; stresses,
// pulls and pressures follow F and the positions at every engine step.
//    ID        name        meaning
#define CQ_DRIVES(D)                                                                                     \
  D(STRESS,     stress,     "a stress in the material frame (physics/actuation.inl)")                    \
  D(FORCE,      force,      "a force that a script gives for a control step")                            \
  D(CABLE,      cable,      "the pull of a cable along a path of points (physics/drive/cable.inl)")      \
  D(PRESSURE,   pressure,   "a pressure that follows the surface (physics/drive/pressure.inl)")

#define CQ_DRIVE_ID(ID, name, meaning) CQ_DRIVE_##ID,

#endif
