// OBJ files, of Wavefront, read by tinyobjloader: vertices and faces, and parts: objects and groups of the file, then
// its materials. The loader takes any word for a number and tells no line, so that each line is looked at before the
// loader is given it; and its own numbers are off in the last digits, so that vertices are those of that look.
extern "C" {
#include "mesh.h"
}
#define TINYOBJLOADER_IMPLEMENTATION
#include <tiny_obj_loader.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

struct face { size_t first; int corners; int32_t part, material; };

struct obj {
  mesh_text text;
  cq_mesh *mesh;
  cq_status status = CQ_OK;
  long long count = 0;                       // vertices of the file
  double number[7];                          // of the vertex in the present line
  std::vector<double> vertex;                // {3 read}
  std::vector<int> corner;                   // vertices of all faces, from 0
  std::vector<face> faces;
  std::vector<std::string> materials;
  std::string name;                          // of the present group
  int32_t material = -1;                     // the present one
  bool begun = false;                        // has the present group a face

  // The number of vertices that were read so far.
  long long read() const { return (long long)vertex.size() / 3; }
};

// ---- lines ----------------------------------------------------------------------------------------------------------

// CQ_OK for a line "v" of three numbers, optionally with a weight, a colour or both, else CQ_IO. The numbers stay in
// o.number for add_vertex.
cq_status check_vertex(obj &o, char *numbers) {
  int count = mesh_text_numbers(&o.text, numbers, 7, o.number);
  if (count < 0) return CQ_IO;
  if (count < 3 || count == 5)
    return cq_fail(
        CQ_IO, "mesh '%s' has a vertex of %d numbers in line %ld: 3 are wanted, and a weight and a colour are allowed",
        o.text.path, count, o.text.line);
  return CQ_OK;
}

// CQ_OK for one corner of a line "f" ("7", "7/1", "7//2" or "7/1/2") whose vertex exists, else CQ_IO. The first number
// is the vertex: counted from 1, or, if negative, backward from the last one above the line.
cq_status check_corner(const obj &o, const char *word, int length) {
  char *end;
  long long number = strtoll(word, &end, 10);
  int slashes = 0;
  for (int k = 0; k < length; k++) slashes += word[k] == '/';
  if (end == word || (*end != '/' && end != word + length) || strspn(word, "0123456789+-/") < (size_t)length ||
      slashes > 2 || !number)
    return cq_fail(CQ_IO,
                   "mesh '%s' has a face with the corner '%.*s' in line %ld: a number of a vertex is wanted, from 1, "
                   "or -1 for the last",
                   o.text.path, length < 40 ? length : 40, word, o.text.line);
  long long most = number > 0 ? o.count : o.read();
  if (number > most || number < -most || number > INT_MAX)
    return cq_fail(CQ_IO, "mesh '%s' has a face with vertex %lld in line %ld, it has %lld%s", o.text.path, number,
                   o.text.line, most, number > 0 ? "" : " above it");
  return CQ_OK;
}

// CQ_OK for a line "f" of at least three corners of vertices that exist, else CQ_IO.
cq_status check_face(const obj &o, char *corners) {
  const char *word;
  int count = 0;
  for (int length; (length = mesh_text_word(&corners, &word)) > 0; count++)
    if (cq_status status = check_corner(o, word, length)) return status;
  if (count < 3)
    return cq_fail(CQ_IO, "mesh '%s' has a face of %d corners in line %ld, at least 3 are wanted", o.text.path, count,
                   o.text.line);
  return CQ_OK;
}

// Makes the first word of a line lower-case, in place: the loader knows no other keywords.
void lower_keyword(char *line) {
  line += strspn(line, " \t\v\f");
  for (; *line && !strchr(" \t\v\f", *line); line++)
    if (*line >= 'A' && *line <= 'Z') *line = (char)(*line + 'a' - 'A');
}

// The file as a stream for the loader: checks each line before the loader gets it, and ends after a wrong one.
class lines : public std::streambuf {
  obj &o;
  std::string line;

public:
  explicit lines(obj &given) : o(given) {}

protected:
  // Checks the next line and makes it the buffer of the stream; the end of the file after a wrong line.
  int_type underflow() override {
    char *next = o.status ? nullptr : mesh_text_line(&o.text);
    if (!next) return traits_type::eof();
    lower_keyword(next);
    if (mesh_text_is(next, "v")) o.status = check_vertex(o, next + 1);
    else if (mesh_text_is(next, "f")) o.status = check_face(o, next + 1);
    if (o.status) return traits_type::eof();
    // the loader knows no blanks but spaces and tabs, and takes a keyword for one before a blank alone
    line.assign(next).append(" \n");
    for (char &c : line)
      if (c == '\v' || c == '\f') c = ' ';
    setg(&line[0], &line[0], &line[0] + line.size());
    return traits_type::to_int_type(line[0]);
  }
};

// ---- what the loader finds ------------------------------------------------------------------------------------------

// Callback of the loader: appends the vertex that check_vertex has read.
void add_vertex(void *user, tinyobj::real_t, tinyobj::real_t, tinyobj::real_t, tinyobj::real_t) {
  obj &o = *static_cast<obj *>(user);
  o.vertex.insert(o.vertex.end(), o.number, o.number + 3);
}

// Callback of the loader: appends a face, and begins a part of the mesh if the face is the first of its group.
void add_face(void *user, tinyobj::index_t *index, int count) {
  obj &o = *static_cast<obj *>(user);
  if (o.status) return;
  if (!o.begun) o.status = mesh_begin_part(o.mesh, o.name.c_str());      // parts without a face are left out
  o.begun = true;
  o.faces.push_back({ o.corner.size(), count, o.mesh->part_count - 1, o.material });
  for (int k = 0; k < count; k++) {
    int number = index[k].vertex_index;
    o.corner.push_back(number > 0 ? number - 1 : (int)o.read() + number);
  }
}

// The words of a line without blanks around them; an error, in o.status, if they are too long for a name.
std::string trimmed(obj &o, const char *words) {
  char name[MESH_PART_NAME];
  const cq_status status = mesh_text_name(&o.text, words, name);
  if (!o.status) o.status = status;
  return name;
}

// Callback of the loader for a line "g": keeps the name of the part to which the next faces belong.
void begin_group(void *user, const char **names, int count) {
  obj &o = *static_cast<obj *>(user);
  std::string all;
  for (int k = 0; k < count; k++) all += (k ? " " : "") + std::string(names[k]);
  o.name = trimmed(o, all.c_str());
  o.begun = false;
}

// Callback of the loader for a line "o": keeps the name of the part to which the next faces belong, as for a group.
void begin_object(void *user, const char *name) {
  obj &o = *static_cast<obj *>(user);
  o.name = trimmed(o, name);
  o.begun = false;
}

// Callback of the loader for a line "usemtl": finds or adds the material of the next faces, -1 without a name.
void use_material(void *user, const char *words, int) {
  obj &o = *static_cast<obj *>(user);
  std::string name = trimmed(o, words);
  o.material = name.empty() ? -1 : 0;
  while (o.material >= 0 && o.material < (int32_t)o.materials.size() && o.materials[(size_t)o.material] != name)
    o.material++;
  if (o.material == (int32_t)o.materials.size()) o.materials.push_back(name);
}

// ---- triangles ------------------------------------------------------------------------------------------------------

// The squared distance of two vertices.
double distance2(const double *a, const double *b) {
  double sum = 0;
  for (int d = 0; d < 3; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

// Adds the triangle of the corners a, b and c of a face (indices within the face, from 0) to the mesh, in the face's
// group and material. CQ_OK or the error of mesh_add.
cq_status add_triangle(obj &o, const face &f, int a, int b, int c) {
  const int *v = &o.corner[f.first];
  double corner[9];
  const int which[3] = { v[a], v[b], v[c] };
  for (int k = 0; k < 3; k++) memcpy(corner + 3 * k, &o.vertex[3 * (size_t)which[k]], 3 * sizeof *corner);
  return mesh_add(o.mesh, corner, f.part, f.material);
}

// Adds the triangles of a face to the mesh. A quadrilateral is cut along its shorter diagonal. Other polygons become
// fans: in a polygon that is not convex, triangles of the fan overlap with opposite signs, so that winding numbers and
// volume are still those of the polygon. CQ_OK or the error of mesh_add.
cq_status cut(obj &o, const face &f) {
  const int *v = &o.corner[f.first];
  auto at = [&](int k) { return &o.vertex[3 * (size_t)v[k]]; };
  int k = f.corners == 4 && distance2(at(0), at(2)) >= distance2(at(1), at(3));
  cq_status status = CQ_OK;
  for (int i = 1; i < f.corners - 1 && !status; i++)
    status = add_triangle(o, f, k, (k + i) % f.corners, (k + i + 1) % f.corners);
  return status;
}

// Runs the file through the loader, which calls back for each vertex, face, group and material. CQ_OK, or the error of
// a line or of the loader.
cq_status load(obj &o) {
  lines buffer(o);
  std::istream stream(&buffer);
  tinyobj::callback_t found;
  found.vertex_cb = add_vertex;
  found.index_cb = add_face;
  found.group_cb = begin_group;
  found.object_cb = begin_object;
  found.usemtl_cb = use_material;
  std::string warning, problem;
  bool fine = tinyobj::LoadObjWithCallback(stream, found, &o, nullptr, &warning, &problem);
  if (o.status || fine) return o.status;
  return cq_fail(CQ_IO, "mesh '%s' cannot be read: %s", o.text.path, problem.c_str());
}

// Reads the whole file into o.mesh: counts its vertices, loads it, and cuts its faces into triangles. The mesh's parts
// are the groups, then the materials. CQ_OK or an error.
cq_status read(obj &o) {
  cq_status status = mesh_text_begin(&o.text);
  if (status) return status;
  for (char *line; (line = mesh_text_line(&o.text));) o.count += mesh_text_is(line, "v");
  status = mesh_text_begin(&o.text);
  if (!status) status = load(o);
  for (size_t k = 0; k < o.faces.size() && !status; k++) {
    face f = o.faces[k];
    if (f.material >= 0) f.material += o.mesh->part_count;               // they follow the groups
    status = cut(o, f);
  }
  int32_t groups = o.mesh->part_count;
  for (size_t k = 0; k < o.materials.size() && !status; k++)
    status = mesh_begin_part(o.mesh, o.materials[k].c_str());
  o.mesh->material_count = o.mesh->part_count - groups;
  return status;
}

}  // namespace

// Reads the triangles, groups and materials of an OBJ file into a mesh. CQ_OK, CQ_IO, CQ_MEMORY, or CQ_INVALID for
// triangles that are not allowed (mesh_add).
extern "C" cq_status mesh_read_obj(cq_mesh *m, const char *path) {
  obj o;
  o.mesh = m;
  cq_status status = mesh_text_read(&o.text, path);
  try {
    if (!status) status = read(o);
  } catch (const std::bad_alloc &) {
    status = cq_fail(CQ_MEMORY, "no memory for mesh '%s'", path);
  }
  mesh_text_free(&o.text);
  return status;
}
