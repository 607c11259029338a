// OBJ files, of Wavefront: vertices and faces. A part is an object or a group of the file; what else stands
// there says nothing of the shape.
#include "mesh.h"
#include <stdlib.h>
#include <string.h>

typedef struct obj {
  mesh_text text;
  cq_mesh *mesh;
  double *vertex;                // {count, 3}
  int64_t count, read;           // vertices of the file; those above the present line
} obj;

// ---- vertices -------------------------------------------------------------------------------------------------------

// x, y, z; then nothing, a weight, a colour, or both
static cq_status read_vertex(obj *o, char *numbers) {
  double number[7];
  int count = mesh_text_numbers(&o->text, numbers, 7, number);
  if (count < 0) return CQ_IO;
  if (count < 3 || count == 5)
    return cq_fail(
        CQ_IO, "mesh '%s' has a vertex of %d numbers in line %ld: 3 are wanted, and a weight and a colour are allowed",
        o->text.path, count, o->text.line);
  memcpy(o->vertex + 3 * o->read++, number, 3 * sizeof *number);
  return CQ_OK;
}

static cq_status read_vertices(obj *o) {
  int64_t count = 0;
  cq_status status = mesh_text_begin(&o->text);
  if (status) return status;
  for (char *line; (line = mesh_text_line(&o->text));) count += mesh_text_is(line, "v");
  o->vertex = cq_alloc((size_t)count, 3 * sizeof *o->vertex, "mesh vertices");
  if (!o->vertex) return CQ_MEMORY;
  status = mesh_text_begin(&o->text);
  for (char *line; !status && (line = mesh_text_line(&o->text));)
    if (mesh_text_is(line, "v")) status = read_vertex(o, line + 1);
  o->count = o->read;
  return status;
}

// ---- faces ----------------------------------------------------------------------------------------------------------

// "7", "7/1", "7//2" or "7/1/2"; the first number is the vertex: from 1, or negative, back from those above the line
static cq_status read_corner(const obj *o, const char *word, int length, int64_t *vertex) {
  char *end;
  long long number = strtoll(word, &end, 10);
  if (end == word || (*end != '/' && end != word + length) || strspn(word, "0123456789+-/") < (size_t)length || !number)
    return cq_fail(CQ_IO,
                   "mesh '%s' has a face with the corner '%.*s' in line %ld: a number of a vertex is wanted, from 1, "
                   "or -1 for the last",
                   o->text.path, length < 40 ? length : 40, word, o->text.line);
  // the difference of two numbers of 64 bits could overflow
  int64_t most = number > 0 ? o->count : o->read;
  if (number > most || number < -most)
    return cq_fail(CQ_IO, "mesh '%s' has a face with vertex %lld in line %ld, it has %lld%s", o->text.path, number,
                   o->text.line, (long long)most, number > 0 ? "" : " above it");
  *vertex = number > 0 ? number - 1 : o->read + number;
  return CQ_OK;
}

static double distance2(const double *a, const double *b) {
  double sum = 0;
  for (int d = 0; d < 3; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

static cq_status add_triangle(const obj *o, int64_t a, int64_t b, int64_t c) {
  double corner[9];
  memcpy(corner, o->vertex + 3 * a, 3 * sizeof *corner);
  memcpy(corner + 3, o->vertex + 3 * b, 3 * sizeof *corner);
  memcpy(corner + 6, o->vertex + 3 * c, 3 * sizeof *corner);
  return mesh_add(o->mesh, corner);
}

// A quadrilateral is cut along its shorter diagonal. Other polygons become fans: where one is not convex, triangles of
// its fan lie on each other with opposite signs, and winding numbers and volume are those of the polygon.
static cq_status read_face(obj *o, char *corners) {
  int64_t v[4] = { 0 };
  const char *word;
  cq_status status = CQ_OK;
  int count = 0;
  for (int length; !status && (length = mesh_text_word(&corners, &word)) > 0; count++) {
    int64_t next = 0;
    status = read_corner(o, word, length, &next);
    if (status) return status;
    if (count < 4) {
      v[count] = next;
      continue;
    }
    if (count == 4) {
      status = add_triangle(o, v[0], v[1], v[2]);
      if (!status) status = add_triangle(o, v[0], v[2], v[3]);
    }
    if (!status) status = add_triangle(o, v[0], v[3], next);
    v[3] = next;
  }
  if (status || count > 4) return status;
  if (count < 3)
    return cq_fail(CQ_IO, "mesh '%s' has a face of %d corners in line %ld, at least 3 are wanted", o->text.path, count,
                   o->text.line);
  if (count == 3) return add_triangle(o, v[0], v[1], v[2]);
  int k = distance2(o->vertex + 3 * v[0], o->vertex + 3 * v[2]) < distance2(o->vertex + 3 * v[1], o->vertex + 3 * v[3])
              ? 0
              : 1;
  status = add_triangle(o, v[k], v[k + 1], v[k + 2]);
  return status ? status : add_triangle(o, v[k], v[k + 2], v[(k + 3) % 4]);
}

static cq_status read_faces(obj *o) {
  char name[MESH_PART_NAME] = "";
  o->read = 0;
  int begun = 0;
  cq_status status = mesh_text_begin(&o->text);
  for (char *line; !status && (line = mesh_text_line(&o->text));) {
    if (mesh_text_is(line, "v")) {
      o->read++;
    } else if (mesh_text_is(line, "g") || mesh_text_is(line, "o")) {
      mesh_text_rest(line + 1, name);
      begun = 0;
    } else if (mesh_text_is(line, "f")) {
      // parts without a face are left out
      if (!begun) status = mesh_begin_part(o->mesh, name);
      begun = 1;
      if (!status) status = read_face(o, line + 1);
    }
  }
  return status;
}

cq_status mesh_read_obj(cq_mesh *m, const char *path) {
  obj o = { .mesh = m };
  cq_status status = mesh_text_read(&o.text, path);
  if (!status) status = read_vertices(&o);
  if (!status) status = read_faces(&o);
  cq_free(o.vertex);
  mesh_text_free(&o.text);
  return status;
}
