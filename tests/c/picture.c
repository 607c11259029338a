// picture: the canvas, surfaces and light through cq.h alone; the same pixels by any number of threads, and
// sentences for what cannot be.
#include "check.h"
#include "cq.h"
#include <stdlib.h>
#include <string.h>

enum { WIDE = 97, HIGH = 61, SIDE = 6, COUNT = SIDE * SIDE * SIDE };

static double position[COUNT][3], volume[COUNT];
static uint32_t colour[COUNT];

static void make_cube(void) {
  for (int p = 0; p < COUNT; p++) {
    int k[3] = { p / SIDE / SIDE, p / SIDE % SIDE, p % SIDE };
    for (int d = 0; d < 3; d++) position[p][d] = 0.1 * (k[d] + 0.5);
    volume[p] = 1e-3;
    colour[p] = k[0] < SIDE / 2 ? 0xC81E1EFF : 0x1E1EC880;
  }
}

static cq_skin *skin_of(int dim, int count, const double *x) {
  cq_skin_def def;
  cq_skin *skin = NULL;
  cq_skin_init(&def);
  def.dim = dim;
  def.particle_count = count;
  def.position = x;
  def.volume = volume;
  CHECK(cq_skin_create(&def, &skin) == CQ_OK, "%s", cq_error());
  CHECK(cq_skin_pose(skin, x, NULL, NULL) == CQ_OK, "%s", cq_error());
  return skin;
}

// a scene with all that can be drawn in one
static void draw(int threads, int samples, uint8_t *pixels) {
  cq_picture *p = NULL;
  cq_camera camera;
  cq_plane plane;
  CHECK(cq_picture_create(WIDE, HIGH, samples, &p) == CQ_OK, "%s", cq_error());
  cq_picture_threads(p, threads);
  cq_picture_background(p, 0xFFFFFFFF, 0xC0D0E0FF);
  cq_camera_init(&camera);
  cq_plane_init(&plane);
  memcpy(camera.eye, (double[3]){ 1.5, 1.2, 2.2 }, sizeof camera.eye);
  memcpy(camera.target, (double[3]){ 0.3, 0.3, 0.3 }, sizeof camera.target);
  camera.focus_radius = 1;
  plane.cell = 0.2;
  cq_skin *skin = skin_of(3, COUNT, position[0]);
  const double ball[3] = { 0.8, 0.2, 0.4 }, radius = 0.1, line[6] = { 0, 0.7, 0, 0.6, 0, 0.6 };
  const double corner[9] = { 0, 0, 0.9, 0.4, 0, 0.9, 0, 0.4, 0.9 };
  const uint32_t green = 0x20A040FF, glass = 0x20A04060;
  CHECK(cq_picture_camera(p, &camera) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_skin(p, skin, position[0], colour, 0, 0) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_spheres(p, 1, ball, &radius, &glass) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_triangles(p, 1, corner, &green) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_plane(p, &plane) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_shade(p) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_wire(p, 2, line, 2, 0x000000FF, 0.5) == CQ_OK, "%s", cq_error());
  cq_picture_pixels(p, pixels);
  cq_skin_destroy(skin);
  cq_picture_destroy(p);
}

static void check_threads(void) {
  static uint8_t one[WIDE * HIGH * 4], other[WIDE * HIGH * 4];
  for (int samples = 1; samples <= 3; samples++) {
    draw(1, samples, one);
    for (int threads = 2; threads <= 5; threads++) {
      memset(other, 0, sizeof other);
      draw(threads, samples, other);
      CHECK(!memcmp(one, other, sizeof one), "%d samples, %d threads: other pixels than by one", samples, threads);
    }
  }
}

// a cube without its corner cell, one that flies away, and one whose particles are no numbers
static void check_skin(void) {
  cq_skin *skin = skin_of(3, COUNT, position[0]);
  cq_skin_info info;
  cq_skin_describe(skin, &info);
  CHECK(info.face_count == 6 * SIDE * SIDE && info.alone_count == 0, "%lld faces, %lld alone",
        (long long)info.face_count, (long long)info.alone_count);
  static double moved[COUNT][3];
  memcpy(moved, position, sizeof moved);
  moved[0][1] = -3;
  CHECK(cq_skin_pose(skin, moved[0], NULL, NULL) == CQ_OK, "%s", cq_error());
  cq_skin_describe(skin, &info);
  CHECK(info.face_count == 6 * SIDE * SIDE && info.alone_count == 1, "%lld faces, %lld alone",
        (long long)info.face_count, (long long)info.alone_count);
  for (int p = 0; p < COUNT; p++) moved[p][0] = NAN;
  CHECK(cq_skin_pose(skin, moved[0], NULL, NULL) == CQ_OK, "%s", cq_error());
  cq_skin_describe(skin, &info);
  CHECK(info.face_count == 0 && info.alone_count == COUNT, "%lld faces, %lld alone", (long long)info.face_count,
        (long long)info.alone_count);
  CHECK(cq_skin_pose(skin, position[0], NULL, NULL) == CQ_OK, "%s", cq_error());
  cq_skin_describe(skin, &info);
  CHECK(info.face_count == 6 * SIDE * SIDE && info.alone_count == 0, "it came back with %lld faces",
        (long long)info.face_count);
  cq_skin_destroy(skin);
}

static void check_refused(void) {
  cq_picture *p = NULL, *q = NULL;
  cq_skin_def def = { 0 };
  cq_skin *skin = NULL;
  cq_plane plane;
  const double line[6] = { 0 };
  CHECK(cq_skin_create(&def, &skin) == CQ_INVALID && strstr(cq_error(), "cq_skin_init"), "\"%s\"", cq_error());
  cq_skin_init(&def);
  def.dim = 4;
  CHECK(cq_skin_create(&def, &skin) == CQ_INVALID && strstr(cq_error(), "dimension 4"), "\"%s\"", cq_error());
  def.dim = 2;
  CHECK(cq_skin_create(&def, &skin) == CQ_INVALID && strstr(cq_error(), "a skin of 0 particles"), "\"%s\"", cq_error());
  def.particle_count = def.triangle_count = 1;
  CHECK(cq_skin_create(&def, &skin) == CQ_INVALID && strstr(cq_error(), "only bodies in 3D"), "\"%s\"", cq_error());
  CHECK(cq_picture_create(WIDE, HIGH, 2, &p) == CQ_OK && cq_picture_create(9, 9, 3, &q) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_paste(p, q, 0, 0) == CQ_INVALID && strstr(cq_error(), "must have as many"), "\"%s\"", cq_error());
  CHECK(cq_picture_paste(p, p, -1, 0) == CQ_INVALID && strstr(cq_error(), "from (0, 0) on"), "\"%s\"", cq_error());
  cq_plane_init(&plane);
  CHECK(cq_picture_shade(p) == CQ_INVALID && cq_picture_plane(p, &plane) == CQ_INVALID &&
            strstr(cq_error(), "no camera"),
        "\"%s\"", cq_error());
  cq_camera camera;
  cq_camera_init(&camera);
  CHECK(cq_picture_camera(p, &camera) == CQ_OK, "%s", cq_error());
  CHECK(cq_picture_wire(p, 1, line, 1, 0, 0) == CQ_INVALID && strstr(cq_error(), "at least 2"), "\"%s\"", cq_error());
  CHECK(cq_picture_wire(p, 2, line, 0, 0, 0) == CQ_INVALID && strstr(cq_error(), "above 0"), "\"%s\"", cq_error());
  CHECK(cq_picture_wire(p, 2, line, 1, 0, 2) == CQ_INVALID && strstr(cq_error(), "from 0 to 1"), "\"%s\"", cq_error());
  for (int k = 0; k < 64; k++) CHECK(cq_picture_plane(p, &plane) == CQ_OK, "plane %d: %s", k, cq_error());
  CHECK(cq_picture_plane(p, &plane) == CQ_INVALID && strstr(cq_error(), "at most 64 planes"), "\"%s\"", cq_error());
  cq_picture_destroy(p);
  cq_picture_destroy(q);
}

int main(void) {
  make_cube();
  check_threads();
  check_skin();
  check_refused();
  return check_report();
}
