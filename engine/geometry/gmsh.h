// The contents of a Gmsh file (MSH 2.2, 4.0 or 4.1) as they were read. Inside the geometry room.
#ifndef CQ_GMSH_H
#define CQ_GMSH_H

#include "mesh.h"

enum {
  GMSH_NAME = 128,               // Gmsh's own limit, with the zero
  GMSH_GROUPS_MAX = 64,          // physical groups that one entity may be in
};

typedef struct gmsh_node { int64_t tag; double x[3]; } gmsh_node;

// A tetrahedron, triangle or line by the nodes at its corners, which Gmsh names first. `owner` is its entity in
// versions 4, and its physical group (0: none) in version 2.2.
typedef struct gmsh_element { int64_t number, node[4]; int32_t owner; } gmsh_element;

typedef struct gmsh_entity { int32_t dim, tag, first, count; } gmsh_entity;       // its groups in `physical`
typedef struct gmsh_name { int32_t dim, tag; char text[GMSH_NAME]; } gmsh_name;

// An array that grows: {count} of what was read so far, so that memory follows the bytes of the file and never a count
// that the file announces.
typedef struct gmsh_list { void *item; int64_t count, capacity; } gmsh_list;

typedef struct gmsh_file {
  int32_t dim;                   // set by the caller: cells are tetrahedra (3) or triangles (2)
  int32_t by_entity;             // versions 4: groups by way of entities
  gmsh_list node, cell, face;    // gmsh_node; gmsh_element of dimension dim; and of dimension dim - 1
  gmsh_list quad;                // gmsh_element of dimension dim - 1 that is no triangle, by its number and owner
  gmsh_list entity, physical, name;      // gmsh_entity, int32_t, gmsh_name
} gmsh_file;

cq_status gmsh_read(gmsh_file *file, const char *path);       // file->dim is set before; gmsh_free follows
void gmsh_free(gmsh_file *file);
void *gmsh_push(gmsh_list *list, size_t size);                // appends a zeroed item; NULL, with a sentence: no memory

// ---- words and numbers ----------------------------------------------------------------------------------------------

// The position of reading in a file. A read that fails sets status and leaves a sentence; all reads after it give 0, so
// that a caller checks the status when a section is done, and in the condition of each loop.
typedef struct gmsh_scan {
  mesh_text text;
  const char *at, *end, *section;
  long line;                     // from 1, while the file is read as text
  int binary, swapped;           // numbers are bytes; in the other order than this machine's
  int wide;                      // bytes of a count
  cq_status status;
} gmsh_scan;

int64_t gmsh_int(gmsh_scan *scan);                // reads a signed number of 32 bits
int64_t gmsh_count(gmsh_scan *scan);              // reads a number of `wide` bytes, at least 0
double gmsh_real(gmsh_scan *scan);                // reads a finite number
int64_t gmsh_line_count(gmsh_scan *scan);         // reads a count alone in a line, as text in binary files too
int gmsh_next_section(gmsh_scan *scan, char name[GMSH_NAME]);     // reads "$NAME": 1, or 0 at the end of the file
void gmsh_end_line(gmsh_scan *scan);              // moves behind the end of a line; fails if words are left on it
void gmsh_end_section(gmsh_scan *scan);           // reads "$EndNAME" of the section
void gmsh_skip_section(gmsh_scan *scan);
void gmsh_quoted(gmsh_scan *scan, char text[GMSH_NAME]);
// Fails with "mesh 'PATH' " before the sentence, unless something failed before.
void gmsh_fail(gmsh_scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
