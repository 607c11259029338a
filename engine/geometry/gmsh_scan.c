// Words and numbers of a Gmsh file, as text or as bytes.
#include "gmsh.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char SPACE[] = " \t\r\n\v\f";

// Fails the scan with CQ_IO and a sentence that begins with "mesh 'PATH' ", unless it has failed before.
void gmsh_fail(gmsh_scan *s, const char *format, ...) {
  if (s->status) return;
  char sentence[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  s->status = cq_fail(CQ_IO, "mesh '%s' %s", s->text.path, sentence);
}

// Fails the scan with the sentence that the file ends within the present section or, without one, is no Gmsh file.
static void cut_off(gmsh_scan *s) {
  if (s->section) gmsh_fail(s, "is cut off: it ends within $%s", s->section);
  else gmsh_fail(s, "is cut off, or no Gmsh file: it has %zu bytes", s->text.length);
}

// ---- text -----------------------------------------------------------------------------------------------------------

// Skips white space and counts lines.
static void skip_space(gmsh_scan *s) {
  for (; s->at < s->end && *s->at && strchr(SPACE, *s->at); s->at++) s->line += *s->at == '\n';
}

// Finds the next word between blanks and moves behind it: sets *word to its first character and returns its length,
// 2^20 at most; 0, and the scan fails, at the end of the file.
static int next_word(gmsh_scan *s, const char **word) {
  if (s->status) return 0;
  skip_space(s);
  *word = s->at;
  while (s->at < s->end && !(*s->at && strchr(SPACE, *s->at))) s->at++;
  if (s->at == *word) cut_off(s);
  size_t length = (size_t)(s->at - *word);
  return length < 1 << 20 ? (int)length : 1 << 20;
}

// Fails the scan at a word, by a sentence with the word, its line and section, and `wanted`, the kind of word that must
// stand in its position.
static void refuse_word(gmsh_scan *s, const char *word, int length, const char *wanted) {
  gmsh_fail(s, "has '%.*s' in line %ld, in $%s, where %s is wanted", length < 40 ? length : 40, word, s->line,
            s->section ? s->section : "", wanted);
}

// Reads a whole number of at most 18 digits, so that it fits an int64_t; 0, and the scan fails, for another word.
static int64_t whole(gmsh_scan *s) {
  const char *word = NULL;
  int length = next_word(s, &word);
  if (!length) return 0;
  int sign = *word == '-' || *word == '+', digits = length - sign;
  int64_t value = 0;
  for (int i = sign; i < length && i < 40; i++) {
    if (word[i] < '0' || word[i] > '9' || digits > 18) {
      refuse_word(s, word, length, "a whole number");
      return 0;
    }
    value = 10 * value + (word[i] - '0');
  }
  if (digits < 1 || digits > 18) refuse_word(s, word, length, "a whole number");
  return s->status ? 0 : *word == '-' ? -value : value;
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

// Reads `size` bytes of a binary file into `out`, in the byte order of this machine; returns 1, or 0 if the scan has
// failed or the file ends before.
static int take(gmsh_scan *s, size_t size, void *out) {
  if (s->status) return 0;
  if ((size_t)(s->end - s->at) < size) {
    cut_off(s);
    return 0;
  }
  unsigned char *to = out;
  for (size_t i = 0; i < size; i++) to[s->swapped ? size - 1 - i : i] = (unsigned char)s->at[i];
  s->at += size;
  return 1;
}

// Reads a signed whole number of 32 bits, from text or bytes; 0, and the scan fails, where there is none.
int64_t gmsh_int(gmsh_scan *s) {
  if (s->binary) {
    int32_t value = 0;
    return take(s, sizeof value, &value) ? value : 0;
  }
  int64_t value = whole(s);
  if (value >= INT32_MIN && value <= INT32_MAX) return value;
  gmsh_fail(s, "has the number %lld in line %ld, in $%s, where at most 32 bits are allowed", (long long)value, s->line,
            s->section);
  return 0;
}

// Reads a count or a number of a node or an element, as wide as the file says, at least 0; 0, and the scan fails, where
// there is none.
int64_t gmsh_count(gmsh_scan *s) {
  int64_t value = 0;
  uint32_t narrow = 0;
  if (!s->binary) value = whole(s);
  else if (s->wide == 8) value = take(s, sizeof value, &value) ? value : 0;
  else value = take(s, sizeof narrow, &narrow) ? (int64_t)narrow : 0;
  if (value >= 0) return value;
  gmsh_fail(s, "has the count or number %lld in $%s, which cannot be below 0", (long long)value, s->section);
  return 0;
}

// Reads a finite number; 0, and the scan fails, where there is none.
double gmsh_real(gmsh_scan *s) {
  double value = 0;
  if (!s->binary) {
    const char *word = NULL;
    int length = next_word(s, &word);
    if (length && !mesh_text_number(word, length, &value)) refuse_word(s, word, length, "a finite number");
  } else if (take(s, sizeof value, &value) && !isfinite(value)) {
    gmsh_fail(s, "has a number that is not finite in $%s", s->section);
  }
  return s->status ? 0 : value;
}

// ---- sections -------------------------------------------------------------------------------------------------------

// Moves behind the end of the present line; the scan fails if anything but blanks stands before it.
void gmsh_end_line(gmsh_scan *s) {
  if (s->status) return;
  while (s->at < s->end && *s->at != '\n' && *s->at && strchr(SPACE, *s->at)) s->at++;
  if (s->at == s->end) return;
  if (*s->at == '\n') {
    s->at++;
    s->line++;
  } else {
    gmsh_fail(s, "has more than one number or word in a line where $%s begins", s->section ? s->section : "");
  }
}

// Reads a count that stands alone in a line, as text in binary files too, where it also moves behind the line; 0, and
// the scan fails, where there is none.
int64_t gmsh_line_count(gmsh_scan *s) {
  int binary = s->binary;
  s->binary = 0;
  int64_t count = gmsh_count(s);
  s->binary = binary;
  if (binary) gmsh_end_line(s);
  return count;
}

// Reads the "$NAME" with which a section begins, and sets name, and the scan's section to point to it. Returns 1; 0 at
// the end of the file, or on failure.
int gmsh_next_section(gmsh_scan *s, char name[GMSH_NAME]) {
  s->section = NULL;
  if (s->status) return 0;
  skip_space(s);
  if (s->at == s->end) return 0;
  const char *word = NULL;
  int length = next_word(s, &word);
  if (*word != '$' || length < 2 || length > GMSH_NAME) {
    gmsh_fail(s, "has '%.*s' in line %ld where a section, such as $Nodes, is wanted", length < 40 ? length : 40, word,
              s->line);
    return 0;
  }
  memcpy(name, word + 1, (size_t)length - 1);
  name[length - 1] = 0;
  s->section = name;
  gmsh_end_line(s);
  return !s->status;
}

// Reads the "$EndNAME" of the present section; the scan fails at another word.
void gmsh_end_section(gmsh_scan *s) {
  const char *word = NULL;
  int length = next_word(s, &word), known = (int)strlen(s->section);
  if (!length || (length == known + 4 && !strncmp(word, "$End", 4) && !strncmp(word + 4, s->section, (size_t)known)))
    return;
  int plain = length <= 40;      // a word that can be shown
  for (int k = 0; k < length && plain; k++) plain = word[k] > ' ' && word[k] <= '~';
  gmsh_fail(s, "has %s%.*s%s after the last of $%s, where $End%s is wanted: a count is wrong, or it is damaged",
            plain ? "'" : "something else", plain ? length : 0, word, plain ? "'" : "", s->section, s->section);
}

// Moves behind the end of the present section without reading it; the scan fails if the section has no end.
void gmsh_skip_section(gmsh_scan *s) {
  const size_t known = strlen(s->section);
  for (; !s->status && s->at < s->end; s->at++) {
    s->line += *s->at == '\n';
    if (*s->at != '$' || (size_t)(s->end - s->at) < known + 4 || memcmp(s->at, "$End", 4)) continue;
    if (memcmp(s->at + 4, s->section, known)) continue;
    s->at += known + 4;
    return;
  }
  cut_off(s);
}

// Reads a name in quotes into text, with a zero at its end; the scan fails where there is none, or one that is empty or
// too long.
void gmsh_quoted(gmsh_scan *s, char text[GMSH_NAME]) {
  if (s->status) return;
  skip_space(s);
  size_t length = 0;
  if (s->at < s->end && *s->at == '"')
    for (s->at++; s->at < s->end && *s->at != '"' && *s->at != '\n' && *s->at && length < GMSH_NAME; s->at++)
      text[length++] = *s->at;
  if (s->at == s->end) cut_off(s);
  else if (*s->at != '"' || !length || length == GMSH_NAME)
    gmsh_fail(s, "has no name in quotes, of at most %d characters, in line %ld, in $%s", GMSH_NAME - 1, s->line,
              s->section);
  if (s->status) return;
  s->at++;
  text[length] = 0;
}
