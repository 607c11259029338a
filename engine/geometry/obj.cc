// OBJ files, by tinyobjloader. A part is an object or a group of the file.
#include "mesh.h"

#define TINYOBJLOADER_USE_DOUBLE
#define TINYOBJLOADER_IMPLEMENTATION
#include <tiny_obj_loader.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

static cq_status read(cq_mesh *m, const char *path) {
  std::ifstream file(path);
  if (!file) return cq_fail(CQ_IO, "cannot open mesh '%s': %s", path, strerror(errno));
  tinyobj::attrib_t attributes;
  std::vector<tinyobj::shape_t> shapes;
  std::string warning, error;
  bool fine = tinyobj::LoadObj(&attributes, &shapes, nullptr, &warning, &error, &file, nullptr, true);      // polygons become triangles
  if (!fine || !error.empty()) {
    size_t end = error.find('\n');
    return cq_fail(CQ_IO, "mesh '%s' is damaged: %s", path, error.substr(0, end).c_str());
  }
  for (const tinyobj::shape_t &shape : shapes) {
    if (shape.mesh.indices.empty()) continue;
    if (cq_status status = mesh_begin_part(m, shape.name.c_str())) return status;
    for (size_t t = 0; t + 2 < shape.mesh.indices.size(); t += 3) {
      double corner[9];
      for (size_t i = 0; i < 3; i++) {
        int v = shape.mesh.indices[t + i].vertex_index;
        if (v < 0 || 3 * (size_t)v + 2 >= attributes.vertices.size())
          return cq_fail(CQ_IO, "mesh '%s' has a face with vertex %d, it has %zu", path, v + 1, attributes.vertices.size() / 3);
        for (size_t d = 0; d < 3; d++) corner[3 * i + d] = attributes.vertices[3 * (size_t)v + d];
      }
      if (cq_status status = mesh_add(m, corner)) return status;
    }
  }
  return CQ_OK;
}

cq_status mesh_read_obj(cq_mesh *m, const char *path) {
  try {
    return read(m, path);
  } catch (const std::bad_alloc &) {
    return cq_fail(CQ_MEMORY, "out of memory: reading mesh '%s'", path);
  } catch (const std::exception &problem) {
    return cq_fail(CQ_IO, "mesh '%s' cannot be read: %s", path, problem.what());
  }
}
