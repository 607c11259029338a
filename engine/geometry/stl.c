// STL files, binary and text.
#include "mesh.h"
#include <string.h>
#include <strings.h>

// [byte] of a binary file; a record is normal, three corners, two spare bytes
enum { HEADER = 84, RECORD = 50 };

// The unsigned number of four bytes, the least significant first, as in STL files.
static uint32_t little_endian(const char *at) {
  const unsigned char *b = (const unsigned char *)at;
  return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

// Reads `count` triangles of a binary STL file into a mesh. CQ_OK or the error of mesh_add.
static cq_status read_binary(cq_mesh *m, const char *bytes, uint32_t count) {
  cq_status status = mesh_begin_part(m, "");
  for (uint32_t t = 0; t < count && !status; t++) {
    double corner[9];
    for (int i = 0; i < 9; i++) {
      uint32_t bits = little_endian(bytes + HEADER + (size_t)t * RECORD + 12 + 4 * (size_t)i);
      float value;
      memcpy(&value, &bits, sizeof value);
      corner[i] = (double)value;
    }
    status = mesh_add(m, corner, m->part_count - 1, -1);
  }
  return status;
}

// the corners of a facet, as far as they were read; have: numbers of them
typedef struct facet { double corner[9]; int have; } facet;

// Reads the three numbers of a "vertex" line of a text STL file into the facet. CQ_OK or CQ_IO.
static cq_status read_vertex(mesh_text *text, char *numbers, facet *f) {
  if (f->have == 9)
    return cq_fail(CQ_IO, "mesh '%s' has a facet of more than three corners in line %ld", text->path, text->line);
  int count = mesh_text_numbers(text, numbers, 3, f->corner + f->have);
  if (count < 0) return CQ_IO;
  if (count < 3)
    return cq_fail(CQ_IO, "mesh '%s' has a vertex without three numbers in line %ld", text->path, text->line);
  f->have += 3;
  return CQ_OK;
}

// Ends a facet of a text STL file: adds its triangle to the mesh, in the last part, and empties the facet. CQ_OK, CQ_IO
// for another count of corners than three, or the error of mesh_add.
static cq_status end_facet(cq_mesh *m, const mesh_text *text, facet *f) {
  if (f->have != 9)
    return cq_fail(CQ_IO, "mesh '%s' has a facet of %d corners in line %ld, three are wanted", text->path, f->have / 3,
                   text->line);
  f->have = 0;
  cq_status status = m->part_count ? CQ_OK : mesh_begin_part(m, "");      // the first line may be "solid-state"
  return status ? status : mesh_add(m, f->corner, m->part_count - 1, -1);
}

// Where a line of a text STL file is. The file may end after "endsolid" only.
typedef enum place { IN_FACET, BETWEEN_FACETS, AFTER_SOLID } place;

// Reads the triangles of an STL file of text, a part for each "solid". CQ_OK or an error.
static cq_status read_text(cq_mesh *m, mesh_text *text) {
  facet f = { .have = 0 };
  place at = BETWEEN_FACETS;
  cq_status status = mesh_text_begin(text);
  for (char *line; !status && (line = mesh_text_line(text));) {
    const int begins = mesh_text_is(line, "facet") || mesh_text_is(line, "vertex");
    if (mesh_text_is(line, "endsolid")) at = f.have ? IN_FACET : AFTER_SOLID;
    else if (mesh_text_is(line, "solid") || mesh_text_is(line, "endfacet")) at = BETWEEN_FACETS;
    else if (begins || (*line && at != AFTER_SOLID)) at = IN_FACET;
    if (mesh_text_is(line, "solid")) {
      char name[MESH_PART_NAME];
      status = mesh_text_name(text, line + 5, name);
      if (!status) status = mesh_begin_part(m, name);
    } else if (mesh_text_is(line, "vertex")) {
      status = read_vertex(text, line + 6, &f);
    } else if (mesh_text_is(line, "endfacet")) {
      status = end_facet(m, text, &f);
    }
  }
  if (status || at == AFTER_SOLID) return status;
  return at == IN_FACET ? cq_fail(CQ_IO, "mesh '%s' is cut off in a facet", text->path)
                        : cq_fail(CQ_IO, "mesh '%s' is cut off: it ends without \"endsolid\"", text->path);
}

// Reads the triangles of an STL file, binary or text, into a mesh. CQ_OK, CQ_IO, CQ_MEMORY, or CQ_INVALID for triangles
// that are not allowed (mesh_add).
cq_status mesh_read_stl(cq_mesh *m, const char *path) {
  mesh_text text;
  cq_status status = mesh_text_read(&text, path);
  if (!status) {
    size_t length = text.length, mark = mesh_text_mark(&text);
    uint32_t count = length >= HEADER ? little_endian(text.bytes + HEADER - 4) : 0;
    size_t wanted = HEADER + (size_t)count * RECORD;
    // some binary files begin with solid as well: their length decides
    if (length >= HEADER && length == wanted) status = read_binary(m, text.bytes, count);
    else if (!strncasecmp(text.bytes + mark, "solid", 5)) status = read_text(m, &text);
    else if (length >= HEADER)
      status = cq_fail(CQ_IO, "mesh '%s' is cut off or no STL file: %u triangles take %zu bytes, it has %zu", path,
                       count, wanted, length);
    else status = cq_fail(CQ_IO, "mesh '%s' is cut off or no STL file: it has %zu bytes", path, length);
  }
  mesh_text_free(&text);
  return status;
}
