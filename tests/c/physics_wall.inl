// physics_wall: the normals of walls, and how they turn when the point moves that they hold;
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

static void check_walls(void) {
  static double height[16];
  for (double &h : height) h = uniform(-0.5, 0.5);
  for (int dim = 2; dim <= 3; dim++) {
    const marks flat = dim == 2 ? 1u << 2 : 0;
    normals_map map = {};
    cq_wall_init(&map.wall);
    map.dim = dim;
    map.wall.shape = CQ_WALL_SPHERE;
    map.wall.radius = 10;
    map.wall.point[0] = -1;
    hold(map, dim == 2 ? "2D sphere's normals" : "3D sphere's normals", flat);
    map.wall.hollow = 1;
    map.wall.radius = 4;
    hold(map, dim == 2 ? "2D hollow sphere's normals" : "3D hollow sphere's normals", flat);
    map.wall.hollow = 0;
    map.wall.shape = CQ_WALL_HEIGHT_FIELD;
    map.wall.height = height;
    map.wall.height_count[0] = 4;
    map.wall.height_count[1] = dim == 3 ? 4 : 1;
    // in 2D a segment has one normal; in 3D its height has no say
    hold(map, dim == 2 ? "2D height field's normals" : "3D height field's normals", dim == 2 ? 7 : 1u << 1);
    // beside the field, where its end is held: the slope along x is that of the last cell
    // there, and changes along z alone
    map.wall.height_origin[0] = 10;
    hold(map, dim == 2 ? "2D normals beside a height field" : "3D normals beside a height field", dim == 2 ? 7 : 3);
  }
}
