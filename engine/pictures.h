// pictures: the part of cq.h that draws: a canvas, scenes with a camera, and the surfaces of bodies. cq.h includes it.
#ifndef CQ_PICTURES_H
#define CQ_PICTURES_H

// A software canvas. Colours are 0xRRGGBBAA. Coordinates are pixels, x right and y down from the top left
// corner, until cq_picture_view maps the plane of a 2D scene; widths of lines, radii of discs of the view
// and sizes of text say which.
typedef struct cq_picture cq_picture;

// samples^2 of each pixel
cq_status cq_picture_create(int32_t width, int32_t height, int32_t samples, cq_picture **picture);
void cq_picture_destroy(cq_picture *picture);
// How many threads draw: 1 unless set; 0: one for each core. The picture is the same
void cq_picture_threads(cq_picture *picture, int32_t threads);
// Forgets everything drawn, the view and the camera; a vertical gradient fills the canvas.
void cq_picture_background(cq_picture *picture, uint32_t top, uint32_t bottom);
// From now on coordinates are those of a plane with y up: pixel = scale * (x - left), height - scale * (y -
// bottom). scale 0: pixels again.
void cq_picture_view(cq_picture *picture, double scale, double left, double bottom);
// {n, 2}, even-odd
cq_status cq_picture_polygon(cq_picture *picture, int64_t n, const double *points, uint32_t rgba);
// {n, 2}, width [pixel]
cq_status cq_picture_polyline(cq_picture *picture, int64_t n, const double *points, double width, uint32_t rgba);
// radius in view units
void cq_picture_discs(cq_picture *picture, int64_t n, const double *centre, const double *radius, const uint32_t *rgba);
typedef struct cq_text {                // of one line, in pixels
  double x, y;                          // where it begins, and its baseline
  double size, weight;                  // height of a capital, width of the strokes
  uint32_t rgba;
} cq_text;

// One line of ASCII. Returns its width; picture NULL: only that.
double cq_picture_text(cq_picture *picture, const cq_text *text, const char *line);

typedef struct cq_camera {              // perspective, with one directional light
  int32_t cookie;
  double eye[3], target[3], up[3];      // [length]
  double field_of_view;                 // vertical [rad]
  double light[3];                      // direction towards the light
  double focus[3], focus_radius;        // ball that throws shadows, and sets the scale of fading and occlusion [length]
} cq_camera;

typedef struct cq_plane {               // a flat surface with a grid of lines and a faint checkerboard
  int32_t cookie;
  uint32_t rgba, line;                  // colours of surface and lines
  double point[3], normal[3];
  double first[3];                      // direction of the first grid axis, made perpendicular to normal
  double cell;                          // between lines [length]; 0: none
  // extent along the grid axes from point; equal: endless, fading far from the focus
  double lower[2], upper[2];
} cq_plane;

void cq_camera_init(cq_camera *camera);
void cq_plane_init(cq_plane *plane);
// From now on surfaces can be drawn, hidden by depth; cq_picture_shade lights them, and 2D drawing after it lies on
// top. Spheres and triangles whose colour has an alpha below 255 let light through: they throw no shadow.
cq_status cq_picture_camera(cq_picture *picture, const cq_camera *camera);
// Balls of centre {n, 3}, radius {n} [length] and colour rgba {n}; cq_picture_shade lights them, as all surfaces.
cq_status cq_picture_spheres(cq_picture *picture, int64_t n, const double *centre, const double *radius,
                             const uint32_t *rgba);
// {n, 3, 3}, both sides seen
cq_status cq_picture_triangles(cq_picture *picture, int64_t n, const double *corner, const uint32_t *rgba);
cq_status cq_picture_plane(cq_picture *picture, const cq_plane *plane);
cq_status cq_picture_shade(cq_picture *picture);
// A line of some width [pixel] through points {n, 3} of a scene that was shaded; hidden: how visible it is behind
// surfaces, 0 to 1.
cq_status cq_picture_wire(cq_picture *picture, int64_t n, const double *points, double width, uint32_t rgba,
                          double hidden);
// {n, 3} to {n, 2}; behind: NaN
cq_status cq_picture_project(const cq_picture *picture, int64_t n, const double *points, double *pixels);

// The surface of a body, which its particles carry along: of the cells of the lattice that its shape was filled
// with, or the mesh that it came from. Particles that lie on no lattice, and those that have lost their
// neighbours, are drawn alone.
typedef struct cq_skin cq_skin;

typedef struct cq_skin_def {
  int32_t cookie;
  int32_t dim, particle_count;
  const double *position;               // {n, dim} where the lattice can be seen best, as at the start
  const double *deformation;            // {n, dim, dim} F there; NULL: none
  const double *volume;                 // {n} of particles without deformation
  // {n} 1 for particles that are always drawn alone, as those of liquids; NULL: none
  const uint8_t *loose;
  int64_t triangle_count;               // of the mesh, in 3D; 0: the cells of the lattice
  const double *corner;                 // {triangles, 3, 3} where the particles are at `position`
} cq_skin_def;

typedef struct cq_skin_info {
  int64_t vertex_count, face_count;     // in 2D the faces are the cells
  int64_t edge_count;                   // of the outline, in 2D
  double outline;                       // its length, in 2D
  int64_t alone_count;                  // particles that are drawn alone
} cq_skin_info;

void cq_skin_init(cq_skin_def *def);
cq_status cq_skin_create(const cq_skin_def *def, cq_skin **skin);
void cq_skin_destroy(cq_skin *skin);
// Moves the surface to where the particles are. level {n}: cells of different levels do not join, those of level 0 are
// not drawn; NULL: all are one. A mesh has no levels.
cq_status cq_skin_pose(cq_skin *skin, const double *position, const double *deformation, const uint8_t *level);
void cq_skin_describe(const cq_skin *skin, cq_skin_info *info);
// {v, dim}, {f, 4}, {n}; NULL: not wanted
void cq_skin_read(const cq_skin *skin, double *vertex, int32_t *face, uint8_t *alone);
// Draws a skin, with a colour for each particle {n}: each cell its own, or, if `blend`, one passing into the next. In
// 2D with an outline of some width [pixel], 0: none; in 3D into the surfaces of the camera. position {n, dim}.
cq_status cq_picture_skin(cq_picture *picture, const cq_skin *skin, const double *position, const uint32_t *rgba,
                          int32_t blend, double outline);

// Hatches the cells of some particles of a skin, marked {n}, in 2D.
void cq_picture_hatch(cq_picture *picture, const cq_skin *skin, const uint8_t *marked, uint32_t rgba);
// Copies a picture of as many samples onto another, its upper left corner at a pixel; what does not fit is cut off.
cq_status cq_picture_paste(cq_picture *picture, const cq_picture *from, int32_t x, int32_t y);

void cq_picture_pixels(const cq_picture *picture, uint8_t *rgba);         // sets {height, width, 4}, the top row first

// ---- files ----------------------------------------------------------------------------------------------------------

// Writes a whole file or leaves the old one as it was: a temporary beside it, renamed over it. Durable: flushed to disk
// first, so that it outlives a power cut. A device or a pipe is written to as it is; of a link the target is replaced.
cq_status cq_file_replace(const char *path, const void *bytes, int64_t size, int32_t durable);
// Writes pixels {height, width, 4}, the top row first, as a PNG file, replaced as by cq_file_replace.
cq_status cq_image_write(const char *path, int32_t width, int32_t height, const uint8_t *rgba);

#endif
