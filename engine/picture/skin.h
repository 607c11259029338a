// skin: the surface of a body inside the picture room.
#ifndef CQ_PICTURE_SKIN_H
#define CQ_PICTURE_SKIN_H

#include "lattice.h"

typedef struct face {            // of the surface in space, the whole cell of a particle in the plane
  int32_t vertex[4];             // in their order around it; the last is -1 for a triangle
  int32_t normal[4];             // numbers of the normals at these corners
  int32_t particle;              // whose colour it has
} face;

// A vertex goes with particles: its place is the weighted mean of x + F r over them, r its
// way from the particle at rest.
typedef struct bond {
  int32_t particle;
  float weight, r[3];
} bond;

struct cq_skin {
  int32_t dim, n;
  lattice lattice;
  double *rest, *volume;         // {n, dim}, {n} where the skin was bound
  double *inverse;               // {n, dim, dim} inverse of F there
  uint8_t *loose;                // {n} is drawn alone, by the caller's wish
  uint8_t *apart;                // {n} is drawn alone now
  uint32_t *broken, *broken_now; // {n} bits of links that hold no more
  uint8_t *level;                // {n} as the surface was made with
  int is_mesh, made;
  int64_t vertex_count, face_count, normal_count, edge_count;
  face *faces;
  int32_t *edge;                 // {edges, 2} outline in the plane
  float *span;                   // {edges, 2} the part of each that is outside, 0 to 1
  int64_t *bond_start;           // {vertices + 1}
  bond *bonds;
  double *y;                     // {vertices, dim} at rest
  double *x;                     // {vertices, dim} now
  double *normal;                // {normals, 3} now
  double *size;                  // {n} root of the volume now, for particles that are drawn alone; 0: they are not
  double *cell;                  // {n, 2, 2} in the plane, the half edges of their squares, as columns
};

// Sets the ends of an edge of the outline as it lies now.
void skin_edge(const cq_skin *s, int64_t edge, double from[2], double to[2]);

// ---- surface.c: faces and vertices of the lattice, as far as it hangs together
cq_status surface_make(cq_skin *s);
void surface_free(cq_skin *s);
// Binds vertices that lie at y to particles: those of each vertex, with weights, are in bonds; fills the ways r.
void surface_bind(cq_skin *s);

// ---- shell.c: the mesh that a body came from
cq_status shell_make(cq_skin *s, int64_t triangles, const double *corner);

#endif
