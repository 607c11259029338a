// drives: the part of cq.h that says what acts on particles beside material, contact and gravity. cq.h includes it.
#ifndef CQ_DRIVES_H
#define CQ_DRIVES_H

typedef enum cq_drive_kind {            // see lists.h
  CQ_DRIVES(CQ_DRIVE_ID) CQ_DRIVE_COUNT
} cq_drive_kind;

// A cable along an ordered path of points. A point is the weighted mean of its particles, or, without
// particles, fixed in the world. Its free length is max(0, R (offset + slope u)): (0, 1) is eq. 17 of
// advanced-chainqueen, (1, -c) contracts by c u.
typedef struct cq_cable {
  int32_t actuator;                     // whose signal u it follows
  int32_t point_count;                  // at least 2; friction of the sheath lowers the tension from the first point on
  double offset, slope;
  const int64_t *point_start;           // {point_count + 1} offsets into particle and weight
  const int32_t *particle;
  const double *weight;                 // of a particle in the mean of its point, above 0; those of a point sum to 1
  const double *anchor;                 // {point_count, dim} where points without particles are [length]; NULL: none is
} cq_cable;

// A closed chamber. Its surface consists of points, each the weighted sum of particles, and of faces between them:
// lines in the plane, triangles in space. A pressure pushes the points by p dV/dx, V the volume inside.
typedef struct cq_chamber {
  int32_t actuator;                     // whose signal is the pressure [stress]
  int32_t point_count, face_count;
  const int64_t *point_start;           // {point_count + 1} offsets into particle and weight
  const int32_t *particle;
  const double *weight;                 // of a particle in its point, of any sign; those of a point sum to 1
  const int32_t *face;                  // {face_count, dim} points, turned so that V is positive
} cq_chamber;

#endif
