// Triangle meshes: the arrays that the readers fill and the winding test reads. Inside the geometry room.
#ifndef CQ_MESH_H
#define CQ_MESH_H

#include "../base/base.h"

enum {
  MESH_PART_NAME = 256,          // [byte] room for a name and the zero after it
  MESH_TRIANGLE_MAX = 20000000,
  MESH_BINS_MAX = 512,           // along a side of the square bins
  MESH_LEVELS = 10,              // 2^9 = MESH_BINS_MAX
  MESH_TOUCHED_MAX = 16,         // square bins that one triangle may lie in
};

// Bins of one size, and where theirs begin among all bins of an axis.
typedef struct mesh_grid { int32_t u, v, first; } mesh_grid;

// Triangles sorted into rectangular bins by their shadow, the projection along one axis. A triangle is listed in the
// bins of one grid: that of small squares unless it would touch more than MESH_TOUCHED_MAX of them, else one whose bins
// are so wide and so high that it touches at most four along each axis. So it is listed at most MESH_TOUCHED_MAX times.
typedef struct mesh_bins {
  int32_t grid_count;
  mesh_grid grid[1 + MESH_LEVELS * MESH_LEVELS];     // the squares first
  int32_t *start, *triangle;                         // {bins + 1}, {start[bins]}
} mesh_bins;

struct cq_mesh {
  const char *path;              // while it is read: for sentences
  int64_t triangle_count, triangle_capacity;
  double *corner;                // {triangles, 3, 3}
  int32_t *part;                 // {triangles} group of each
  int32_t *material;             // {triangles} -1: none; materials are the last parts
  int32_t part_count, part_capacity, material_count;
  uint8_t *piece;                // {part_count} 1: its triangles are a piece of a surface that other parts close
  char (*name)[MESH_PART_NAME];
  double lower[3], upper[3], volume;
  int64_t open_edges;
  mesh_bins bins[3];
};

// Begins a part; then triangles are added. Both return CQ_OK or CQ_MEMORY; mesh_add also CQ_INVALID beyond
// MESH_TRIANGLE_MAX, and for coordinates whose products could overflow. part: of the triangle; material: a part, or -1.
cq_status mesh_begin_part(cq_mesh *mesh, const char *name);
cq_status mesh_add(cq_mesh *mesh, const double corner[9], int32_t part, int32_t material);
cq_status mesh_finish(cq_mesh *mesh);                     // after the last triangle: box, volume, open edges and bins
cq_status mesh_read_stl(cq_mesh *mesh, const char *path);
cq_status mesh_read_obj(cq_mesh *mesh, const char *path);

// A file in memory, and where its lines are read. Blanks are spaces, tabs and what prints nothing.
typedef struct mesh_text {
  const char *path;
  char *bytes;                   // {length + 1}, ends with a zero
  size_t length;
  char *at, *cut, was;           // the rest; where a zero ends the line, and what stands there
  long line;                     // from 1
} mesh_text;

cq_status mesh_text_read(mesh_text *text, const char *path);
void mesh_text_free(mesh_text *text);
size_t mesh_text_mark(const mesh_text *text);             // bytes of a UTF-8 byte order mark at the beginning: 3 or 0
// Returns to the first line. CQ_IO if the text holds a zero byte.
cq_status mesh_text_begin(mesh_text *text);
char *mesh_text_line(mesh_text *text);                    // without its first blanks and its end; NULL after the last
int mesh_text_is(const char *line, const char *keyword);  // does a line begin with this word, in upper or lower case
int mesh_text_word(char **at, const char **word);         // finds the next word and returns its length; 0: none is left
// The line without blanks around it. CQ_IO for one that is too long for a name.
cq_status mesh_text_name(const mesh_text *text, const char *line, char name[MESH_PART_NAME]);
// A word of a text that ends with a zero, as a finite number: 1, or 0 if it is none.
int mesh_text_number(const char *word, int length, double *number);
// Reads at most `most` numbers of a line and returns how many; -1, with a sentence, if there are more, or a word is not
// a finite number.
int mesh_text_numbers(const mesh_text *text, char *at, int most, double *number);

#endif
