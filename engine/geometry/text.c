// Text files of meshes: read whole, then line by line, and numbers that are numbers whatever the locale says.
#include "mesh.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const long FILE_MAX = 1L << 30;     // [byte]
static const char BLANK[] = " \t\v\f";

// Reads a whole mesh file into text->bytes, with a zero at its end. CQ_OK, CQ_MEMORY, or CQ_IO for a folder, too large
// a file, or one that cannot be read.
static cq_status read_all(FILE *file, const char *path, mesh_text *text) {
  struct stat kind;
  if (!fstat(fileno(file), &kind) && S_ISDIR(kind.st_mode))
    return cq_fail(CQ_IO, "cannot read mesh '%s': it is a folder", path);
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  if (size < 0) return cq_fail(CQ_IO, "cannot read mesh '%s': %s", path, strerror(errno));
  if (size > FILE_MAX) return cq_fail(CQ_IO, "mesh file '%s' is larger than 1 GiB, the most that is read", path);
  text->bytes = cq_alloc((size_t)size + 1, 1, "mesh file");
  if (!text->bytes) return CQ_MEMORY;
  rewind(file);
  text->length = (size_t)size;
  if (fread(text->bytes, 1, text->length, file) == text->length) return CQ_OK;
  return ferror(file) ? cq_fail(CQ_IO, "cannot read mesh '%s': %s", path, strerror(errno))
                      : cq_fail(CQ_IO, "cannot read mesh '%s': it became shorter while it was read", path);
}

// Reads a whole mesh file into memory; mesh_text_free frees it, also after a failure. CQ_OK, CQ_IO or CQ_MEMORY.
cq_status mesh_text_read(mesh_text *text, const char *path) {
  *text = (mesh_text){ .path = path };
  FILE *file = fopen(path, "rb");
  if (!file) return cq_fail(CQ_IO, "cannot open mesh '%s': %s", path, strerror(errno));
  cq_status status = read_all(file, path, text);
  fclose(file);
  return status;
}

// Moves to the first line of a text. CQ_OK, or CQ_IO if the text contains a zero byte.
cq_status mesh_text_begin(mesh_text *text) {
  if (memchr(text->bytes, 0, text->length))
    return cq_fail(CQ_IO, "mesh '%s' is no text: it holds a byte of zero", text->path);
  text->at = text->bytes + mesh_text_mark(text);
  text->cut = NULL;
  text->line = 0;
  return CQ_OK;
}

// The length in bytes, 3 or 0, of a UTF-8 byte order mark at the beginning of a text.
size_t mesh_text_mark(const mesh_text *text) {
  return text->length >= 3 && !memcmp(text->bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
}

// The next line without leading blanks and its end, within text->bytes and ended by a zero until the next call; NULL
// after the last. A line ends at a line feed, a carriage return or both. A backslash before the end joins the next
// line; the joint becomes a vertical tab, so that lines can be counted again in another pass.
char *mesh_text_line(mesh_text *text) {
  if (text->cut) *text->cut = text->was;
  text->cut = NULL;
  if (!*text->at) return NULL;
  char *line = text->at, *end = line;
  text->line++;
  for (;; end++) {
    end += strcspn(end, "\v\r\n");
    int joined = end > line && end[-1] == '\\' && *end;
    if (*end != '\v' && !joined) break;
    if (joined) end[-1] = ' ';
    if (end[0] == '\r' && end[1] == '\n') *end++ = ' ';
    *end = '\v';
    text->line++;
  }
  text->at = end + (*end ? 1 + (end[0] == '\r' && end[1] == '\n') : 0);
  text->cut = end;
  text->was = *end;
  *end = 0;
  return line + strspn(line, BLANK);
}

// Sets *word to the next word of a line and moves *at behind it; returns the word's length, 0 if there is none.
int mesh_text_word(char **at, const char **word) {
  char *begin = *at + strspn(*at, BLANK);
  size_t length = strcspn(begin, BLANK);
  *at = begin + length;
  *word = begin;
  return (int)length;
}

// Copies the rest of a line, without blanks around it, into name. CQ_OK, or CQ_IO for one that is too long for a name.
cq_status mesh_text_name(const mesh_text *text, const char *line, char name[MESH_PART_NAME]) {
  line += strspn(line, BLANK);
  size_t length = strlen(line);
  while (length && strchr(BLANK, line[length - 1])) length--;
  name[0] = 0;
  if (length > MESH_PART_NAME - 1)
    return cq_fail(CQ_IO, "mesh '%s' has a name of %zu characters in line %ld: at most %d are allowed", text->path,
                   length, text->line, MESH_PART_NAME - 1);
  memcpy(name, line, length);
  name[length] = 0;
  return CQ_OK;
}

// Does a line begin with this word, in upper or lower case?
int mesh_text_is(const char *line, const char *keyword) {
  size_t n = strlen(keyword);
  return !strncasecmp(line, keyword, n) && (!line[n] || strchr(BLANK, line[n]));
}

// Reads the first `length` characters of a word as a decimal number, with or without an exponent, into number. Returns
// 1, or 0 if they are no number or not finite. strtod alone would follow the locale's decimal point, and take
// hexadecimal numbers, infinity and NaN.
int mesh_text_number(const char *word, int length, double *number) {
  static locale_t plain;
  if (!plain) plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  char *end;
  if (!plain || strspn(word, "0123456789+-.eE") < (size_t)length) return 0;
  *number = strtod_l(word, &end, plain);
  return end == word + length && isfinite(*number);
}

// Reads the numbers of a line from `at` on, at most `most`, into number; returns how many there are; -1, with a
// sentence, if there are more, or a word is not a finite number.
int mesh_text_numbers(const mesh_text *text, char *at, int most, double *number) {
  const char *word;
  int count = 0;
  for (int length; (length = mesh_text_word(&at, &word)) > 0; count++) {
    if (count == most) {
      cq_fail(CQ_IO, "mesh '%s' has more than %d numbers for a vertex in line %ld", text->path, most, text->line);
      return -1;
    }
    if (!mesh_text_number(word, length, number + count)) {
      cq_fail(CQ_IO, "mesh '%s' has '%.*s' in line %ld: it is no number, or not finite", text->path,
              length < 40 ? length : 40, word, text->line);
      return -1;
    }
  }
  return count;
}

// Frees the bytes of a text.
void mesh_text_free(mesh_text *text) { cq_free(text->bytes); }
