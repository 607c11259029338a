// physics_wall: the normals of walls, how they turn when the point moves that they hold, and how deep it is in them;
// included by physics_dual.cc.

namespace wall_over_dual {
#define CQ_WALL_REAL
typedef dual wall_real;
#define wall_sqrt s_sqrt
#define wall_value s_value
#include "world/wall.inl"
}
#include "world/model.h"

struct normals_map {
  cq_wall wall;
  int dim;
  enum { inputs = 3, outputs = 3 };

  // within the solid, away from edges of cells and the sphere's centre
  void draw(double *in) const {
    for (int i = 0; i < 3; i++) in[i] = (int)uniform(0, 3) + uniform(0.1, 0.9);
    if (wall.shape == CQ_WALL_HEIGHT_FIELD) in[1] = -3;
    if (wall.hollow) in[0] += 5;
  }
  void primal(const dual *in, dual *out) const {
    dual normals[3][3] = {{0}};
    wall_over_dual::wall_normals(&wall, dim, 1e-9, in, normals);
    for (int i = 0; i < 3; i++) out[i] = i < dim ? normals[0][i] : dual(0);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    cq_wall_normals_adj(&wall, dim, in, grad_out, grad_in);
  }
};

// how deep the same points are along their normals, in the wall or, with a negative slack, in a smaller one
struct depth_map : normals_map {
  double slack = 1e-9;
  enum { inputs = 3, outputs = 1 };
  void primal(const dual *in, dual *out) const {
    dual normals[3][3] = {{0}}, slope[3];
    const int32_t count = wall_over_dual::wall_normals(&wall, dim, slack, in, normals);
    out[0] = wall_over_dual::wall_depth(&wall, dim, slack, in, normals[count - 1], slope);
  }
  void adjoint(const double *in, double *grad_in, const double *grad_out) const {
    double normals[3][3] = {{0}}, slope[3];
    const int32_t count = cq_wall_normals(&wall, dim, slack, in, normals);
    const double depth = cq_wall_depth(&wall, dim, slack, in, normals[count - 1], slope);
    CHECK(depth >= 0, "a point that a wall holds is %g inside", depth);
    for (int i = 0; i < 3; i++) grad_in[i] += grad_out[0] * slope[i];
  }
};

static void check_walls(void) {
  static double height[16];
  for (double &h : height) h = uniform(-0.5, 0.5);
  for (int dim = 2; dim <= 3; dim++) {
    const marks flat = dim == 2 ? 1u << 2 : 0;
    normals_map map = {};
    depth_map depth;
    cq_wall *wall = &map.wall;
    cq_wall_init(wall);
    map.dim = dim;
    const auto holds = [&](const char *name, marks silent, marks silent_depth) {
      static_cast<normals_map &>(depth) = map;
      if (silent != 7) hold(map, name, silent);
      hold(depth, name, silent_depth | flat);
    };
    wall->normal[0] = 0.6;
    wall->normal[1] = -0.8;
    wall->point[1] = -20;
    holds("depth below a plane", 7, 1u << 2);
    for (int i = 0; i < 3; i++) wall->lower[i] = -1;
    for (int i = 0; i < 3; i++) wall->upper[i] = 4;
    wall->shape = CQ_WALL_BOX;
    holds("depth in a box", 7, 0);
    wall->hollow = 1;
    holds("depth outside of a hollow box", 7, 6);
    wall->hollow = 0;
    wall->shape = CQ_WALL_SPHERE;
    wall->radius = 10;
    wall->point[0] = -1;
    wall->point[1] = 0;
    holds("a sphere's normals and depth", flat, 0);
    wall->hollow = 1;
    wall->radius = 4;
    holds("a hollow sphere's normals and depth", flat, 0);
    wall->hollow = 0;
    wall->shape = CQ_WALL_HEIGHT_FIELD;
    depth.slack = -0.5;
    wall->height = height;
    wall->height_count[0] = 4;
    wall->height_count[1] = dim == 3 ? 4 : 1;
    // in 2D a segment has one normal; in 3D its height has no say
    holds("a height field's normals and depth", dim == 2 ? 7 : 1u << 1, 0);
    // beside the field, where its end is held: the slope along x is that of the last cell
    // there, and changes along z alone
    wall->height_origin[0] = 10;
    holds("normals and depth beside a height field", dim == 2 ? 7 : 3, 1);
  }
}
