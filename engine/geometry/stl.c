// STL files, binary and text.
#include "mesh.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 84, RECORD = 50 };         // [byte] of a binary file; a record is normal, three corners, two spare bytes
static const long FILE_MAX = 1L << 30;     // [byte]

static cq_status read_file(const char *path, char **text, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) return cq_fail(CQ_IO, "cannot open mesh '%s': %s", path, strerror(errno));
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  cq_status status = CQ_OK;
  if (size < 0) status = cq_fail(CQ_IO, "cannot read mesh '%s': %s", path, strerror(errno));
  else if (size > FILE_MAX) status = cq_fail(CQ_IO, "mesh file '%s' is larger than 1 GiB, the most that is read", path);
  else if (!(*text = cq_alloc((size_t)size + 1, 1, "mesh file"))) status = CQ_MEMORY;
  rewind(file);
  if (!status && fread(*text, 1, (size_t)size, file) != (size_t)size) status = cq_fail(CQ_IO, "cannot read mesh '%s': %s", path, strerror(errno));
  fclose(file);
  *length = size > 0 ? (size_t)size : 0;
  return status;
}

static uint32_t little_endian(const char *at) {
  const unsigned char *b = (const unsigned char *)at;
  return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static cq_status read_binary(cq_mesh *m, const char *text, uint32_t count) {
  cq_status status = mesh_begin_part(m, "");
  for (uint32_t t = 0; t < count && !status; t++) {
    double corner[9];
    for (int i = 0; i < 9; i++) {
      uint32_t bits = little_endian(text + HEADER + (size_t)t * RECORD + 12 + 4 * (size_t)i);
      float value;
      memcpy(&value, &bits, sizeof value);
      corner[i] = (double)value;
    }
    status = mesh_add(m, corner);
  }
  return status;
}

static cq_status read_text(cq_mesh *m, const char *path, char *text) {
  double corner[9];
  int have = 0;
  long number = 0;
  for (char *line = text, *next; line; line = next) {
    number++;
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    line += strspn(line, " \t\r");
    cq_status status = CQ_OK;
    if (!strncmp(line, "solid", 5)) {
      char name[MESH_PART_NAME] = "";
      sscanf(line + 5, " %63s", name);
      status = mesh_begin_part(m, name);
    } else if (!strncmp(line, "vertex", 6)) {
      char *at = line + 6, *end;
      if (have == 9) return cq_fail(CQ_IO, "mesh '%s' has a facet of more than three corners in line %ld", path, number);
      for (int i = 0; i < 3; i++, at = end) {
        corner[have + i] = strtod(at, &end);
        if (end == at) return cq_fail(CQ_IO, "mesh '%s' has a vertex without three numbers in line %ld", path, number);
      }
      have += 3;
    } else if (!strncmp(line, "endfacet", 8)) {
      if (have != 9) return cq_fail(CQ_IO, "mesh '%s' has a facet of %d corners in line %ld, three are wanted", path, have / 3, number);
      status = mesh_add(m, corner);
      have = 0;
    }
    if (status) return status;
  }
  return have ? cq_fail(CQ_IO, "mesh '%s' is cut off in a facet", path) : CQ_OK;
}

cq_status mesh_read_stl(cq_mesh *m, const char *path) {
  char *text = NULL;
  size_t length = 0;
  cq_status status = read_file(path, &text, &length);
  if (!status) {
    uint32_t count = length >= HEADER ? little_endian(text + HEADER - 4) : 0;
    size_t wanted = HEADER + (size_t)count * RECORD;
    // some binary files begin with solid as well: their length decides
    if (length >= HEADER && length == wanted) status = read_binary(m, text, count);
    else if (!strncmp(text, "solid", 5)) status = read_text(m, path, text);
    else if (length >= HEADER)
      status = cq_fail(CQ_IO, "mesh '%s' is cut off or no STL file: %u triangles take %zu bytes, it has %zu", path, count, wanted, length);
    else status = cq_fail(CQ_IO, "mesh '%s' is cut off or no STL file: it has %zu bytes", path, length);
  }
  cq_free(text);
  return status;
}
