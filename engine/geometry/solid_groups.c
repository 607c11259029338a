// Groups and walls of a body of cells: those of the physical groups of a Gmsh file, of cells and of faces.
#include "solid.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A cell or face (`of`) in a physical group (dim, tag). between 1: the face lies between two cells.
typedef struct membership { int32_t dim, tag, of, between; } membership;

// Order of entities by dimension and tag, for qsort.
static int by_entity(const void *a, const void *b) {
  const gmsh_entity *p = a, *q = b;
  return p->dim != q->dim ? (p->dim > q->dim) - (p->dim < q->dim) : (p->tag > q->tag) - (p->tag < q->tag);
}

// Order of physical names by dimension and tag, for qsort.
static int by_name(const void *a, const void *b) {
  const gmsh_name *p = a, *q = b;
  return p->dim != q->dim ? (p->dim > q->dim) - (p->dim < q->dim) : (p->tag > q->tag) - (p->tag < q->tag);
}

// Order of groups by their names, for qsort.
static int by_text(const void *a, const void *b) {
  const solid_group *const *p = a, *const *q = b;
  return strcmp((*p)->name, (*q)->name);
}

// Order of memberships by their groups for qsort and bsearch: groups of cells first, then by tag.
static int by_tag(const void *a, const void *b) {
  const membership *p = a, *q = b;
  if (p->dim != q->dim) return p->dim > q->dim ? -1 : 1;
  return (p->tag > q->tag) - (p->tag < q->tag);
}

// Order of memberships by dimension and tag of the group, then by cell or face, for qsort.
static int by_group(const void *a, const void *b) {
  const membership *p = a, *q = b;
  const int order = by_tag(a, b);
  return order ? order : (p->of > q->of) - (p->of < q->of);
}

// Sets *tags to the tags of the physical groups of an element of dimension dim, and returns how many there are, 0 if it
// is in none.
static int32_t groups_of(const gmsh_file *file, const gmsh_element *element, int32_t dim, const int32_t **tags) {
  *tags = &element->owner;
  if (!file->by_entity) return element->owner != 0;
  const gmsh_entity key = { .dim = dim, .tag = element->owner };
  const gmsh_entity *found = file->entity.count ? bsearch(&key, file->entity.item, (size_t)file->entity.count,
                                                          sizeof key, by_entity) : NULL;
  *tags = found && found->count ? (const int32_t *)file->physical.item + found->first : NULL;
  return found ? found->count : 0;
}

// Appends one membership to a list. CQ_OK or CQ_MEMORY.
static cq_status add(gmsh_list *list, membership one) {
  membership *item = gmsh_push(list, sizeof *item);
  if (!item) return CQ_MEMORY;
  *item = one;
  return CQ_OK;
}

// Appends the memberships of all cells in physical groups to a list. cell_of: the cell index of each element. CQ_OK or
// CQ_MEMORY.
static cq_status add_cells(const gmsh_file *file, const int32_t *cell_of, gmsh_list *list) {
  const gmsh_element *element = file->cell.item;
  for (int64_t e = 0; e < file->cell.count; e++) {
    const int32_t *tag, count = groups_of(file, element + e, file->dim, &tag);
    for (int32_t k = 0; k < count; k++)
      if (add(list, (membership){ file->dim, tag[k], cell_of[e], 0 })) return CQ_MEMORY;
  }
  return CQ_OK;
}

// How many cells have the face that a face element of the file describes, 0 to 2; sets *first to the first of their
// entries in s->tuple, which are neighbours.
static int32_t cells_with(const cq_solid *s, const gmsh_element *face, const solid_tuple **first) {
  solid_tuple key = { .node = { -1, -1, -1, -1 } };
  const solid_tuple *end = s->tuple + (size_t)s->cell_count * ((size_t)s->dim + 1), *at;
  for (int k = 0; k < s->dim; k++) {
    int i = k;
    for (; i > 0 && key.node[i - 1] > (int32_t)face->node[k]; i--) key.node[i] = key.node[i - 1];
    key.node[i] = (int32_t)face->node[k];
  }
  at = bsearch(&key, s->tuple, (size_t)(end - s->tuple), sizeof key, solid_order_tuples);
  if (!at) return 0;
  if (at > s->tuple && !solid_order_tuples(at - 1, &key)) at--;
  *first = at;
  return at + 1 < end && !solid_order_tuples(at + 1, &key) ? 2 : 1;
}

// CQ_OK, or CQ_IO for a quadrangle in a physical group, which would be a hole in its wall.
static cq_status check_quads(const gmsh_file *file, const char *path) {
  const gmsh_element *element = file->quad.item;
  for (int64_t e = 0; e < file->quad.count; e++) {
    const int32_t *tag;
    if (groups_of(file, element + e, file->dim - 1, &tag))
      return cq_fail(CQ_IO, "mesh '%s' has quadrangle %lld, in a physical group, that is no face of a tetrahedron: mesh "
                     "it without recombining", path, (long long)element[e].number);
  }
  return CQ_OK;
}

// Appends the memberships of all faces in physical groups to a list, one for each cell that a face belongs to. CQ_OK,
// CQ_MEMORY, or CQ_IO for a face of no cell.
static cq_status add_faces(const cq_solid *s, const gmsh_file *file, gmsh_list *list, const char *path) {
  const gmsh_element *element = file->face.item;
  for (int64_t e = 0; e < file->face.count; e++) {
    const int32_t *tag, count = groups_of(file, element + e, file->dim - 1, &tag);
    const solid_tuple *first = NULL;
    const int32_t cells = count ? cells_with(s, element + e, &first) : 0;
    if (count && !cells)
      return cq_fail(CQ_IO, "mesh '%s' has %s %lld, in a physical group, that is no %s", path,
                     s->dim == 3 ? "triangle" : "line", (long long)element[e].number,
                     s->dim == 3 ? "face of a tetrahedron" : "side of a triangle");
    for (int32_t k = 0; k < count; k++)
      for (int32_t c = 0; c < cells; c++)
        if (add(list, (membership){ file->dim - 1, tag[k], first[c].from, cells > 1 })) return CQ_MEMORY;
  }
  return CQ_OK;
}

// ---- names ----------------------------------------------------------------------------------------------------------

// Sets out to the name of a membership's physical group; to "surface_3" (kind and tag) if it has none.
static void name_group(const gmsh_file *file, const membership *one, char out[GMSH_NAME]) {
  const gmsh_name key = { .dim = one->dim, .tag = one->tag };
  const gmsh_name *found = file->name.count ? bsearch(&key, file->name.item, (size_t)file->name.count, sizeof key,
                                                      by_name) : NULL;
  static const char *const kind[] = { "curve", "surface", "volume" };
  if (found) memcpy(out, found->text, sizeof found->text);
  else snprintf(out, GMSH_NAME, "%s_%d", kind[one->dim - 1], one->tag);
}

// CQ_OK, CQ_MEMORY, or CQ_IO for a body with two groups of one name.
static cq_status check_names(const cq_solid *s, const char *path) {
  const solid_group **list = cq_alloc((size_t)s->group_count + 1, sizeof *list, "mesh groups");
  if (!list) return CQ_MEMORY;
  for (int32_t g = 0; g < s->group_count; g++) list[g] = s->group + g;
  qsort(list, (size_t)s->group_count, sizeof *list, by_text);
  cq_status status = CQ_OK;
  for (int32_t g = 1; g < s->group_count && !status; g++)
    if (!strcmp(list[g]->name, list[g - 1]->name))
      status = cq_fail(CQ_IO, "mesh '%s' has two physical groups of the name \"%s\"", path, list[g]->name);
  cq_free(list);
  return status;
}

// ---- from memberships to groups and walls ---------------------------------------------------------------------------

// Fills the last group of the body from its `count` memberships: its cells, each once, and, if it is a group of faces,
// its wall. members, walls: filled entries of s->member and s->wall_face, which it advances.
static void fill_group(cq_solid *s, const membership *list, int64_t count, int32_t *members, int32_t *walls) {
  solid_group *group = s->group + s->group_count - 1;
  const int faces = list[0].dim < s->dim;
  solid_wall *wall = faces ? s->wall + s->wall_count++ : NULL;
  group->first = *members;
  if (wall) {
    memcpy(wall->name, group->name, sizeof wall->name);
    wall->first = *walls;
  }
  for (int64_t k = 0; k < count; k++) {
    if (k > 0 && list[k].of == list[k - 1].of) continue;
    const int32_t cell = faces ? list[k].of / (s->dim + 1) : list[k].of;
    if (*members == group->first || s->member[*members - 1] != cell) s->member[(*members)++] = cell;
    if (wall && list[k].between) wall->between++;
    else if (wall) s->wall_face[(*walls)++] = list[k].of;
  }
  group->count = *members - group->first;
  if (!wall) return;
  wall->count = *walls - wall->first;
  wall->between /= 2;            // each was found in both of its cells
}

// Adds a group to the body for each run of equal groups in the sorted list of memberships.
static void fill_groups(cq_solid *s, const gmsh_file *file, const membership *list, int64_t count) {
  int32_t members = 0, walls = 0;
  for (int64_t i = 0, j; i < count; i = j) {
    for (j = i + 1; j < count && list[j].dim == list[i].dim && list[j].tag == list[i].tag;) j++;
    solid_group *group = s->group + s->group_count++;
    group->dim = list[i].dim;
    name_group(file, list + i, group->name);
    fill_group(s, list + i, j - i, &members, &walls);
  }
}

// Adds a wall without faces for each surface that the file names but has no element of. list: memberships, sorted.
static void add_empty_walls(cq_solid *s, const gmsh_file *file, const gmsh_list *list) {
  const gmsh_name *name = file->name.item;
  for (int64_t n = 0; n < file->name.count; n++) {
    const membership key = { .dim = name[n].dim, .tag = name[n].tag };
    if (key.dim != s->dim - 1) continue;
    if (list->count && bsearch(&key, list->item, (size_t)list->count, sizeof key, by_tag)) continue;
    const solid_wall *last = s->wall_count ? s->wall + s->wall_count - 1 : NULL;
    solid_wall *wall = s->wall + s->wall_count++;
    memcpy(wall->name, name[n].text, sizeof wall->name);
    wall->first = last ? last->first + last->count : 0;
  }
}

// The number of groups in a sorted list of memberships.
static int64_t count_runs(const membership *list, int64_t count) {
  int64_t runs = count > 0;
  for (int64_t k = 1; k < count; k++) runs += list[k].dim != list[k - 1].dim || list[k].tag != list[k - 1].tag;
  return runs;
}

// Fills groups and walls of a body from the physical groups of the file. cell_of: the cell index of each element.
// CQ_OK, CQ_MEMORY, or CQ_IO for a face of no cell, a quadrangle in a group, or two groups of one name.
cq_status solid_find_groups(cq_solid *s, const gmsh_file *file, const int32_t *cell_of, const char *path) {
  gmsh_list list = { 0 };
  if (file->entity.count) qsort(file->entity.item, (size_t)file->entity.count, sizeof(gmsh_entity), by_entity);
  if (file->name.count) qsort(file->name.item, (size_t)file->name.count, sizeof(gmsh_name), by_name);
  cq_status status = add_cells(file, cell_of, &list);
  if (!status) status = check_quads(file, path);
  if (!status) status = add_faces(s, file, &list, path);
  if (!status && list.count > INT32_MAX / 2)
    status = cq_fail(CQ_IO, "mesh '%s' has elements in more than a billion groups", path);
  if (!status && (list.count || file->name.count)) {
    if (list.count) qsort(list.item, (size_t)list.count, sizeof(membership), by_group);
    const size_t runs = (size_t)count_runs(list.item, list.count), members = (size_t)list.count + 1;
    s->group = cq_alloc(runs + 1, sizeof *s->group, "mesh groups");
    s->wall = cq_alloc(runs + (size_t)file->name.count, sizeof *s->wall, "mesh groups");
    s->member = cq_alloc(members, sizeof *s->member, "mesh groups");
    s->wall_face = cq_alloc(members, sizeof *s->wall_face, "mesh groups");
    if (s->group && s->wall && s->member && s->wall_face) {
      fill_groups(s, file, list.item, list.count);
      add_empty_walls(s, file, &list);
    } else {
      status = CQ_MEMORY;
    }
  }
  cq_free(list.item);
  return status ? status : check_names(s, path);
}

// The name of a group (from 0) of cells, or of the cells at a group of faces; sets *count to the number of its cells.
// NULL beyond the last.
const char *cq_solid_group(const cq_solid *s, int32_t group, int64_t *count) {
  if (group < 0 || group >= s->group_count) return NULL;
  *count = s->group[group].count;
  return s->group[group].name;
}

// Sets cell {count} to the indices of a group's cells, ascending, from 0.
void cq_solid_group_cells(const cq_solid *s, int32_t group, int32_t *cell) {
  const solid_group *g = s->group + group;
  memcpy(cell, s->member + g->first, (size_t)g->count * sizeof *cell);
}
