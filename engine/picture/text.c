// text: text by strokes: a small sans-serif alphabet of lines and quadratic B-splines, drawn at any size and weight.
#include "picture.h"

// A glyph is its width, then strokes. A point is two digits 0-9A-H: x from the left, y upwards; the baseline is 4,
// small letters end at C, capitals at G. A stroke that begins with ~ is a B-spline between its ends, with @ a closed
// one, else straight lines; two equal points are a dot.
static const char *const glyphs[95] = {
  "4", "2 1G18 1414", "4 0G0D 4G4D", "A 244G 648G 0898 1CAC", "8 ~8E8G0G0A8A840406 4I42",
  "A 04AG @0C4C4G0G @64A4A868", "9 ~941D2G6G6C0904749A", "2 1G1D", "3 ~3H0E0632", "3 ~0H3E3602",
  "6 3F39 0E6A 0A6E", "8 4D45 0989", "2 1402", "6 0969", "2 1414", "6 036H",
  "8 @04848G0G", "8 1D4G44 1474", "8 ~0D0G8G8B04 0484", "8 ~0E0G7G7A3A ~3A8A840406", "8 646G0787",
  "8 7G1G0A ~0A2C8C840406", "8 @04848C0C ~7G0F08", "8 0G8G34", "8 @04848A0A @1A7A7G1G", "8 @08888G0G ~14858C",
  "2 1414 1B1B", "2 1402 1B1B", "8 7D0975", "8 0787 0B8B", "8 0D7905", "7 ~0D0G7G7B3A37 3434", "A @04A4AG0G @37777D3D",
  "8 044G84 1777", "8 4G0G0444 0A4A ~4G7G7A4A ~4A8A8444", "8 ~8D8G0G048487", "8 3G0G0434 ~3G8G8434", "7 7G0G0474 0A6A",
  "7 7G0G04 0A6A", "8 ~8D8G0G04848A 8A5A", "8 040G 848G 0A8A", "2 141G", "6 6G68 ~68640407", "8 040G 8G09 3B84",
  "7 0G0474", "A 040G58AGA4", "8 040G848G", "9 @04949G0G", "8 040G4G 0949 ~4G8G8949", "9 @04949G0G 5793",
  "8 040G4G 0949 ~4G8G8949 4984", "8 ~8E8G0G0A8A840406", "8 0G8G 4G44", "8 0G08 ~08048488 888G", "8 0G448G",
  "A 0G245E84AG", "8 048G 0G84", "8 0G4A8G 4A44", "8 0G8G0484",
  "3 3H0H0232", "6 0H63", "3 0H3H3202", "6 0D3G6D", "8 0282", "2 0G2E",
  "7 @04747C0C 7C74", "7 0G04 @04747C0C", "7 ~7A7C0C047476", "7 7G74 @04747C0C", "7 0878 ~787C0C047476",
  "5 ~5G2G2C 2C24 0C5C", "7 @04747C0C 7C74 ~74700001", "7 0G04 ~080C7C78 7874", "2 1C14 1F1F", "4 3C33 ~333000 3F3F",
  "6 0G04 6C07 2964", "3 0G07 ~070424", "A 0C04 ~080C5C58 5854 ~585CACA8 A8A4", "7 0C04 ~080C7C78 7874", "7 @04747C0C",
  "7 0C00 @04747C0C", "7 7C70 @04747C0C", "5 0C04 ~080C5C", "6 ~6B6C0C0868640405", "5 2F27 ~272454 0C5C",
  "7 0C08 ~08047478 7C74", "6 0C346C", "A 0C245B84AC", "6 046C 0C64", "6 0C34 6C3410", "6 0C6C0464",
  "4 ~4H2H2A0A ~0A2A2242", "2 1H12", "4 ~0H2H2A4A ~4A2A2202", "8 ~082C668A",
};
static const char unknown[] = "6 04640G6G 040G 646G";

enum { BASELINE = 4, CAPITAL = 12, GAP = 3, CURVE_STEPS = 6, POINTS_MAX = 24 };

// The value of a character of glyphs[] as a digit: 0 to 9, then A = 10, B = 11, ...
static int digit(char c) { return c <= '9' ? c - '0' : c - 'A' + 10; }

typedef struct pen {
  cq_picture *picture;
  double x, y, unit, radius;     // origin of the glyph [sample]
} pen;

// Adds a straight stroke from a to b, in the coordinates of glyphs[], to the coverage mask; k: place, scale and width.
static void dash(const pen *k, const double a[2], const double b[2]) {
  double p[2] = { k->x + a[0] * k->unit, k->y - (a[1] - BASELINE) * k->unit };
  double q[2] = { k->x + b[0] * k->unit, k->y - (b[1] - BASELINE) * k->unit };
  // a dot is a little bolder
  mask_capsule(k->picture, p, q, a[0] == b[0] && a[1] == b[1] ? 1.3 * k->radius : k->radius);
}

// Adds a quadratic Bezier curve from a to c with control point b, in the coordinates of glyphs[], to the coverage mask
// as short straight strokes: one piece of a quadratic B-spline.
static void arc(const pen *k, const double a[2], const double b[2], const double c[2]) {
  double last[2] = { a[0], a[1] };
  for (int i = 1; i <= CURVE_STEPS; i++) {
    double t = (double)i / CURVE_STEPS, s = 1 - t, next[2];
    for (int d = 0; d < 2; d++) next[d] = s * s * a[d] + 2 * s * t * b[d] + t * t * c[d];
    dash(k, last, next);
    last[0] = next[0];
    last[1] = next[1];
  }
}

// Adds one stroke of a glyph with n points q to the coverage mask: a polyline through them (kind 0), or a quadratic
// B-spline with these control points, open ('~') or closed ('@').
static void stroke(const pen *k, char kind, int n, double (*q)[2]) {
  if (kind == 0) {
    for (int i = 0; i + 1 < n; i++) dash(k, q[i], q[i + 1]);
    return;
  }
  int closed = kind == '@';
  for (int i = closed ? 0 : 1; i < (closed ? n : n - 1); i++) {
    const double *before = q[(i + n - 1) % n], *at = q[i], *after = q[(i + 1) % n];
    double from[2], to[2];
    for (int d = 0; d < 2; d++) {
      from[d] = !closed && i == 1 ? before[d] : 0.5 * (before[d] + at[d]);
      to[d] = !closed && i == n - 2 ? after[d] : 0.5 * (at[d] + after[d]);
    }
    arc(k, from, at, to);
  }
}

// Adds all strokes of a character, an entry of glyphs[], to the coverage mask. k: place, scale and width of strokes.
static void draw_glyph(const pen *k, const char *glyph) {
  for (const char *c = glyph + 1; *c;) {
    double q[POINTS_MAX][2];
    int n = 0;
    char kind = 0;
    while (*c == ' ') c++;
    if (*c == '~' || *c == '@') kind = *c++;
    for (; *c && *c != ' ' && n < POINTS_MAX; c += 2, n++) {
      q[n][0] = digit(c[0]);
      q[n][1] = digit(c[1]);
    }
    stroke(k, kind, n, q);
  }
}

// Draws one line of ASCII text in the colour, size and place of `text`, in pixels whatever the view; other characters
// appear as a crossed box. Returns the width of the line [pixel]. p NULL: draws nothing.
double cq_picture_text(cq_picture *p, const cq_text *text, const char *line) {
  const double unit = text->size / CAPITAL, start = text->x;
  double x = start;
  for (const unsigned char *c = (const unsigned char *)line; *c; c++) {
    if (*c >= 0x80 && *c < 0xC0) continue;                          // the rest of a character beyond ASCII
    const char *glyph = *c >= ' ' && *c < 127 ? glyphs[*c - ' '] : unknown;
    if (p) {
      pen k = { p, x * p->samples, text->y * p->samples, unit * p->samples, 0.5 * text->weight * p->samples };
      draw_glyph(&k, glyph);
    }
    x += (digit(glyph[0]) + GAP) * unit;
  }
  if (p) mask_paint(p, text->rgba);
  return x > start ? x - start - GAP * unit : 0;
}
