// Gmsh files: the sections of MSH 2.2, 4.0 and 4.1, as text or bytes. Sections other than nodes, elements and groups
// are skipped.
#include "gmsh.h"
#include <math.h>
#include <string.h>

enum { TYPES = 32, TETRAHEDRON = 3, TRIANGLE = 2, LINE = 1 };

// Elements by Gmsh's number of their type: dimension, nodes, and whether they are lines, triangles or tetrahedra (of
// any order; the nodes at the corners come first).
static const struct { int8_t dim, nodes, simplex; } TYPE[TYPES] = {
  [1] = { 1, 2, 1 },   [2] = { 2, 3, 1 },   [3] = { 2, 4, 0 },   [4] = { 3, 4, 1 },   [5] = { 3, 8, 0 },
  [6] = { 3, 6, 0 },   [7] = { 3, 5, 0 },   [8] = { 1, 3, 1 },   [9] = { 2, 6, 1 },   [10] = { 2, 9, 0 },
  [11] = { 3, 10, 1 }, [12] = { 3, 27, 0 }, [13] = { 3, 18, 0 }, [14] = { 3, 14, 0 }, [15] = { 0, 1, 1 },
  [16] = { 2, 8, 0 },  [17] = { 3, 20, 0 }, [18] = { 3, 15, 0 }, [19] = { 3, 13, 0 }, [20] = { 2, 9, 1 },
  [21] = { 2, 10, 1 }, [22] = { 2, 12, 1 }, [23] = { 2, 15, 1 }, [24] = { 2, 15, 1 }, [25] = { 2, 21, 1 },
  [26] = { 1, 4, 1 },  [27] = { 1, 5, 1 },  [28] = { 1, 6, 1 },  [29] = { 3, 20, 1 }, [30] = { 3, 35, 1 },
  [31] = { 3, 56, 1 },
};

// The file being read: where, its version times ten (22, 40, 41), and what it says.
typedef struct gmsh { gmsh_scan scan; int version; gmsh_file *file; } gmsh;

// Appends a zeroed item of `size` bytes to a list and returns its address, good until the next gmsh_push to that list;
// NULL, with a sentence, without memory.
void *gmsh_push(gmsh_list *list, size_t size) {
  if (list->count == list->capacity) {
    const int64_t capacity = list->capacity ? 2 * list->capacity : 64;
    char *grown = cq_alloc((size_t)capacity, size, "a Gmsh file");
    if (!grown) return NULL;
    if (list->count) memcpy(grown, list->item, (size_t)list->count * size);
    cq_free(list->item);
    list->item = grown;
    list->capacity = capacity;
  }
  return (char *)list->item + (size_t)list->count++ * size;
}

// As gmsh_push, for a scan: without memory the scan fails. NULL then, or if it has failed before.
static void *push(gmsh *g, gmsh_list *list, size_t size) {
  void *item = g->scan.status ? NULL : gmsh_push(list, size);
  if (!item && !g->scan.status) g->scan.status = CQ_MEMORY;
  return item;
}

// Fails the scan if a count read from the file, with at least `least` bytes for each item, needs more bytes than are
// left: called before memory is taken for the items. what: name of the items, for the sentence. Returns the count, or 0
// on failure.
static int64_t check_count(gmsh *g, int64_t count, size_t least, const char *what) {
  gmsh_scan *s = &g->scan;
  const size_t left = (size_t)(s->end - s->at);
  if (!s->status && (uint64_t)count > left / least)
    gmsh_fail(s, "is cut off, or a count is wrong: $%s announces %lld %s, and %zu bytes follow", s->section,
              (long long)count, what, left);
  return s->status ? 0 : count;
}

// ---- header and names -----------------------------------------------------------------------------------------------

// Reads the section $MeshFormat: version, text or bytes, sizes of numbers. Fails the scan for versions other than 2.2,
// 4.0 and 4.1.
static void read_format(gmsh *g) {
  gmsh_scan *s = &g->scan;
  const double version = gmsh_real(s);
  const int64_t binary = gmsh_int(s), size = gmsh_int(s);
  if (s->status) return;
  const int tenths = (int)(version > 0 && version < 100 ? 10 * version + 0.5 : 0);
  g->version = tenths >= 20 && tenths <= 22 ? 22 : tenths;
  if (g->version != 22 && g->version != 40 && g->version != 41)
    gmsh_fail(s, "is of MSH version %g; 2.2, 4.0 and 4.1 are read: gmsh FILE -save -format msh41 -o NEW writes it again",
              version);
  else if (binary < 0 || binary > 1 || (size != 8 && !(size == 4 && g->version == 41)))
    gmsh_fail(s, "has the file type %lld and the data size %lld; 0 (text) or 1 (bytes), and 8, are allowed",
              (long long)binary, (long long)size);
  else if (binary && g->version == 40)
    gmsh_fail(s, "is of MSH version 4.0 in bytes, which Gmsh itself does not write; 4.1 is read");
  g->file->by_entity = g->version != 22;
  s->wide = (int)size;
  if (!binary) return;
  gmsh_end_line(s);
  s->binary = 1;
  const int64_t one = gmsh_int(s);
  s->swapped = one == 1 << 24;
  if (!s->status && one != 1 && !s->swapped)
    gmsh_fail(s, "is damaged: its mark of the order of bytes is %lld, not 1", (long long)one);
}

// Reads the section $PhysicalNames: appends dimension, tag and name of each physical group to the file's list.
static void read_names(gmsh *g) {
  gmsh_scan *s = &g->scan;
  const int binary = s->binary;
  s->binary = 0;                 // text in every version
  const int64_t count = check_count(g, gmsh_count(s), 6, "names");
  for (int64_t k = 0; k < count && !s->status; k++) {
    gmsh_name *name = push(g, &g->file->name, sizeof *name);
    if (!name) break;
    name->dim = (int32_t)gmsh_int(s);
    name->tag = (int32_t)gmsh_int(s);
    gmsh_quoted(s, name->text);
  }
  s->binary = binary;
}

// ---- entities: which groups their elements are in -------------------------------------------------------------------

// Reads one entity (dim 0 to 3: a point, curve, surface or volume) and appends its tag and the physical groups of its
// elements to the file's lists. Skips its bounding box and the tags of its boundary.
static void read_entity(gmsh *g, int32_t dim) {
  gmsh_scan *s = &g->scan;
  gmsh_entity *entity = push(g, &g->file->entity, sizeof *entity);
  if (!entity) return;
  *entity = (gmsh_entity){ .dim = dim, .tag = (int32_t)gmsh_int(s), .first = (int32_t)g->file->physical.count };
  for (int k = dim == 0 && g->version == 41 ? 3 : 6; k > 0; k--) gmsh_real(s);
  const int64_t groups = gmsh_count(s), most = GMSH_GROUPS_MAX;
  if (groups > most)
    gmsh_fail(s, "has an entity of dimension %d in %lld physical groups, at most %lld are allowed", dim,
              (long long)groups, (long long)most);
  for (int64_t k = 0; k < groups && !s->status; k++) {
    int32_t *tag = push(g, &g->file->physical, sizeof *tag);
    if (!tag) return;
    const int64_t value = gmsh_int(s);
    *tag = (int32_t)(value < 0 ? -(value + (value == INT32_MIN)) : value);       // the sign is an orientation
    entity->count++;
  }
  for (int64_t k = dim ? gmsh_count(s) : 0; k > 0 && !s->status; k--) gmsh_int(s);
}

// Reads the section $Entities: points, curves, surfaces, volumes, in this order.
static void read_entities(gmsh *g) {
  gmsh_scan *s = &g->scan;
  int64_t count[4];
  for (int dim = 0; dim < 4; dim++) count[dim] = check_count(g, gmsh_count(s), 8, "entities");
  for (int dim = 0; dim < 4; dim++)
    for (int64_t k = 0; k < count[dim] && !s->status; k++) read_entity(g, dim);
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

// Reads the coordinates of a node into node->x, and skips `parameters` parametric ones. Fails the scan for coordinates
// beyond 1e50.
static void read_place(gmsh *g, gmsh_node *node, int64_t parameters) {
  for (int d = 0; d < 3; d++) node->x[d] = gmsh_real(&g->scan);
  for (int d = 0; d < 3; d++)
    if (!(fabs(node->x[d]) <= 1e50))
      gmsh_fail(&g->scan, "has node %lld at %g; at most 1e+50 is allowed", (long long)node->tag, node->x[d]);
  for (int64_t k = 0; k < parameters; k++) gmsh_real(&g->scan);
}

// Reads the nodes of a file of version 2.2, tag and coordinates of each, and appends them to the file's list.
static void read_nodes_2(gmsh *g) {
  gmsh_scan *s = &g->scan;
  const int64_t count = check_count(g, gmsh_line_count(s), s->binary ? 28 : 8, "nodes");
  for (int64_t k = 0; k < count && !s->status; k++) {
    gmsh_node *node = push(g, &g->file->node, sizeof *node);
    if (!node) return;
    node->tag = gmsh_int(s);
    read_place(g, node, 0);
  }
}

// Reads a block of nodes of a file of version 4, those of one entity, and appends them to the file's list: in 4.0 tag
// and coordinates of each, in 4.1 first all tags, then all coordinates.
static void read_node_block(gmsh *g) {
  gmsh_scan *s = &g->scan;
  int64_t dim = gmsh_int(s);
  const int64_t other = gmsh_int(s);
  if (g->version == 40) dim = other;
  const int64_t parametric = gmsh_int(s), parameters = parametric ? dim : 0;
  const int64_t count = check_count(g, gmsh_count(s), 8, "nodes in a block");
  if (!s->status && (dim < 0 || dim > 3 || parametric < 0 || parametric > 1))
    gmsh_fail(s, "has a block of nodes of dimension %lld and the parametric mark %lld; 0 to 3, and 0 or 1, are allowed",
              (long long)dim, (long long)parametric);
  const int64_t first = g->file->node.count;
  for (int64_t k = 0; k < count && !s->status; k++) {
    gmsh_node *node = push(g, &g->file->node, sizeof *node);
    if (!node) return;
    node->tag = g->version == 40 ? gmsh_int(s) : gmsh_count(s);
    if (g->version == 40) read_place(g, node, parameters);
  }
  for (int64_t k = 0; k < count && !s->status && g->version == 41; k++)
    read_place(g, (gmsh_node *)g->file->node.item + first + k, parameters);
}

// Reads the section $Nodes of any version.
static void read_nodes(gmsh *g) {
  if (g->version == 22) {
    read_nodes_2(g);
    return;
  }
  const int64_t blocks = gmsh_count(&g->scan);
  gmsh_count(&g->scan);
  for (int k = 0; k < 2 && g->version == 41; k++) gmsh_count(&g->scan);
  for (int64_t k = 0; k < blocks && !g->scan.status; k++) read_node_block(g);
}

// ---- elements -------------------------------------------------------------------------------------------------------

// Returns Gmsh's number `type` of an element type if the engine can read it. Returns 0 and fails the scan if the type
// is unknown, or of a body's dimension and no tetrahedron (in 2D: no triangle), or of a higher one.
static int64_t checked_type(gmsh *g, int64_t type) {
  gmsh_scan *s = &g->scan;
  if (s->status) return 0;
  if (type < 1 || type >= TYPES || !TYPE[type].nodes) {
    gmsh_fail(s, "has an element of type %lld in $%s, which is not known", (long long)type, s->section);
    return 0;
  }
  const int dim = TYPE[type].dim, wanted = g->file->dim;
  if (dim > wanted || (dim == wanted && !TYPE[type].simplex))
    gmsh_fail(s, dim > wanted ? "is a mesh of space (it has elements of type %lld), and a body in the plane is wanted"
                              : "has elements of type %lld, which are no %s: mesh it without recombining or extruding",
              (long long)type, wanted == 3 ? "tetrahedra" : "triangles");
  return s->status ? 0 : type;
}

// Reads the nodes of an element, whose number was read before, and appends it to the file's list of cells or, one
// dimension lower, of faces or of quads; others are skipped. owner: its entity, or its physical group in version 2.2.
static void read_element(gmsh *g, int64_t type, int64_t number, int64_t owner) {
  gmsh_scan *s = &g->scan;
  gmsh_file *file = g->file;
  const int dim = TYPE[type].dim, wanted = file->dim;
  gmsh_list *faces = TYPE[type].simplex ? &file->face : &file->quad;
  gmsh_list *list = dim == wanted ? &file->cell : dim == wanted - 1 ? faces : NULL;
  gmsh_element *element = list ? push(g, list, sizeof *element) : NULL;
  if (list && !element) return;
  if (element) *element = (gmsh_element){ .number = number, .owner = (int32_t)owner };
  for (int k = 0; k < TYPE[type].nodes && !s->status; k++) {
    const int64_t node = g->version == 41 ? gmsh_count(s) : gmsh_int(s);
    if (element && k <= dim) element->node[k] = node;
  }
}

// Reads `count` tags of an element of version 2.2; returns the first, its physical group, or 0 if it has none.
static int64_t read_tags(gmsh *g, int64_t count) {
  int64_t physical = 0;
  for (int64_t k = 0; k < count && !g->scan.status; k++) {
    const int64_t tag = gmsh_int(&g->scan);
    if (k == 0) physical = tag < 0 ? -(tag + (tag == INT32_MIN)) : tag;
  }
  return physical;
}

// Reads the elements of a file of version 2.2, each with its type and its tags, and appends them to the file's lists.
static void read_elements_2(gmsh *g) {
  gmsh_scan *s = &g->scan;
  const int64_t count = check_count(g, gmsh_line_count(s), s->binary ? 8 : 7, "elements");
  for (int64_t done = 0; done < count && !s->status;) {
    int64_t number = s->binary ? 0 : gmsh_int(s);
    const int64_t type = checked_type(g, gmsh_int(s)), follow = s->binary ? gmsh_int(s) : 1, tags = gmsh_int(s);
    if (!s->status && (follow < 1 || follow > count - done || tags < 0))
      gmsh_fail(s, "has a run of %lld elements with %lld tags, of %lld that are left", (long long)follow,
                (long long)tags, (long long)(count - done));
    for (int64_t k = 0; k < follow && !s->status; k++, done++) {
      if (s->binary) number = gmsh_int(s);
      const int64_t physical = read_tags(g, tags);
      if (!s->status) read_element(g, type, number, physical);
    }
  }
}

// Reads a block of elements of a file of version 4, all of one entity and one type.
static void read_element_block(gmsh *g) {
  gmsh_scan *s = &g->scan;
  const int64_t first = gmsh_int(s), second = gmsh_int(s);
  const int64_t dim = g->version == 40 ? second : first, tag = g->version == 40 ? first : second;
  const int64_t type = checked_type(g, gmsh_int(s)), count = check_count(g, gmsh_count(s), 4, "elements in a block");
  if (!s->status && TYPE[type].dim != dim)
    gmsh_fail(s, "has elements of type %lld, which are of dimension %d, in an entity of dimension %lld",
              (long long)type, TYPE[type].dim, (long long)dim);
  for (int64_t k = 0; k < count && !s->status; k++) {
    const int64_t number = g->version == 40 ? gmsh_int(s) : gmsh_count(s);
    if (!s->status) read_element(g, type, number, tag);
  }
}

// Reads the section $Elements of any version.
static void read_elements(gmsh *g) {
  if (g->version == 22) {
    read_elements_2(g);
    return;
  }
  const int64_t blocks = gmsh_count(&g->scan);
  gmsh_count(&g->scan);
  for (int k = 0; k < 2 && g->version == 41; k++) gmsh_count(&g->scan);
  for (int64_t k = 0; k < blocks && !g->scan.status; k++) read_element_block(g);
}

// ---- the file -------------------------------------------------------------------------------------------------------

static const struct { const char *name; void (*read)(gmsh *g); } SECTION[] = {
  { "MeshFormat", read_format }, { "PhysicalNames", read_names }, { "Entities", read_entities },
  { "Nodes", read_nodes }, { "Elements", read_elements },
};

// Reads the section of this name if the engine uses it, else skips it. Fails the scan for versions and partitions that
// are not read.
static void read_section(gmsh *g, const char *name) {
  gmsh_scan *s = &g->scan;
  if (!strcmp(name, "NOD") || !strcmp(name, "NOE")) {
    gmsh_fail(s, "is of MSH version 1; 2.2, 4.0 and 4.1 are read: gmsh FILE -save -format msh41 -o NEW writes it again");
    return;
  }
  if (!strcmp(name, "PartitionedEntities")) {
    gmsh_fail(s, "is cut into partitions, which have elements and groups of their own; save it without");
    return;
  }
  for (size_t k = 0; k < sizeof SECTION / sizeof *SECTION; k++)
    if (!strcmp(name, SECTION[k].name)) {
      if (k > 0 && !g->version) gmsh_fail(s, "has $%s before $MeshFormat, which says how to read it", name);
      if (k == 0 && g->version) gmsh_fail(s, "has $MeshFormat twice");
      if (!s->status) SECTION[k].read(g);
      gmsh_end_section(s);
      return;
    }
  gmsh_skip_section(s);
}

// Reads nodes, elements, entities and names of a Gmsh file into `file`, whose dim says whether cells are tetrahedra (3)
// or triangles (2); gmsh_free frees the lists, also after a failure. CQ_OK, CQ_IO or CQ_MEMORY.
cq_status gmsh_read(gmsh_file *file, const char *path) {
  gmsh g = { .file = file, .scan = { .line = 1, .wide = 8 } };
  gmsh_scan *s = &g.scan;
  s->status = mesh_text_read(&s->text, path);
  if (!s->status) {
    char name[GMSH_NAME];
    s->at = s->text.bytes + mesh_text_mark(&s->text);
    s->end = s->text.bytes + s->text.length;
    const char *first = s->at;
    while (first < s->end && (*first == '\n' || *first == '\r' || *first == ' ')) first++;
    if (first == s->end || *first != '$')
      gmsh_fail(s, "is no Gmsh file: %s", first == s->end ? "it is empty" : "it does not begin with $MeshFormat");
    while (gmsh_next_section(s, name)) read_section(&g, name);
    if (!g.version) gmsh_fail(s, "is no Gmsh file: it has no $MeshFormat");
  }
  mesh_text_free(&s->text);
  return s->status;
}

// Frees the lists of a file that gmsh_read has filled.
void gmsh_free(gmsh_file *file) {
  cq_free(file->node.item);
  cq_free(file->cell.item);
  cq_free(file->face.item);
  cq_free(file->quad.item);
  cq_free(file->entity.item);
  cq_free(file->physical.item);
  cq_free(file->name.item);
}
