// lattice: which particles of a body are neighbours in the lattice that its shape was filled with. Nobody says so: it
// is found from where the particles lie, so that it holds for any shape, turned, stretched or joined of parts that fit.
#ifndef CQ_PICTURE_LATTICE_H
#define CQ_PICTURE_LATTICE_H

#include "../base/base.h"

typedef struct lattice {
  int32_t dim, n;
  int32_t *link;                 // {n, dim, 2} the neighbour against and along each axis; -1: there is none
  double *axis;                  // {n, dim, dim} row d: the way to the next particle along axis d [length]
  uint8_t *on;                   // {n} 0: the particle is on no lattice
  // {n} bits of sides without a neighbour where a cell of another lattice lies, as where parts meet
  uint8_t *covered;
  // {n, 4, 2} in 2D: from where to where, 0 to 1 along the other axis, no cell of another lattice lies at a side.
  // A wide part may reach beyond a narrow one by less than a cell. From 1 to 0 where there is no such place.
  float *open;
} lattice;

// Fills *l with the lattices that particles at position {n, dim} lie on. volume {n}: of each particle at this position;
// loose {n}: 1 for particles that are to be on no lattice, NULL: there are none. CQ_OK or CQ_MEMORY.
cq_status lattice_find(lattice *l, int32_t dim, int32_t n, const double *position, const double *volume,
                       const uint8_t *loose);
void lattice_free(lattice *l);

// Boxes of space with the particles in them.
typedef struct bins {
  int32_t dim, count[3];
  double lower[3], size;
  int32_t *start, *particle;     // {boxes + 1}, {n}
} bins;

cq_status bins_fill(bins *b, int32_t dim, int32_t n, const double *position, double size);
void bins_free(bins *b);
// Calls visit on all particles within a radius of a place, always in the same order. position: as given to bins_fill.
void bins_visit(const bins *b, const double *position, const double place[3], double radius,
                void (*visit)(void *context, int32_t particle, double distance), void *context);

#endif
