// Walls and pins: which points each shape holds and along which normals, that the map of nodes says the same, and what
// each kind does to a particle that is all inside.
#include "api/world.h"
#include "check.h"
#include "scene.h"

enum { SLIDES = 40 };

static cq_wall wall_of(int shape, int kind) {
  cq_wall w;
  cq_wall_init(&w);
  w.shape = shape;
  w.kind = kind;
  return w;
}

static double vector3(double v[3], double x, double y, double z) {
  v[0] = x;
  v[1] = y;
  v[2] = z;
  return sqrt(x * x + y * y + z * z);
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

// how many normals hold a point, and the first of them
static void check_point(const char *what, const cq_wall *w, int dim, double x, double y, double z, int count, double nx,
                        double ny, double nz) {
  const double at[3] = {x, y, z}, wanted[3] = {nx, ny, nz};
  double normals[3][3] = {{0}}, off = 0;
  const int got = cq_wall_normals(w, dim, 1e-9, at, normals);
  for (int i = 0; i < dim && count; i++) off = check_worst(off, fabs(normals[0][i] - wanted[i]));
  CHECK(got == count && off < 1e-12, "%dD %s at (%g, %g, %g): %d normals, first (%g, %g, %g)", dim, what, x, y, z, got,
        normals[0][0], normals[0][1], normals[0][2]);
}

static void check_shapes(void) {
  cq_wall w = wall_of(CQ_WALL_HALF_SPACE, CQ_CONTACT_SLIP);
  vector3(w.point, 1, 1, 1);
  vector3(w.normal, 0.6, 0.8, 0);
  check_point("half space", &w, 3, 1, 0.9, 5, 1, 0.6, 0.8, 0);
  check_point("half space", &w, 2, 1, 1.1, 0, 0, 0, 0, 0);
  check_point("half space, on its face", &w, 2, 1, 1, 0, 1, 0.6, 0.8, 0);

  w = wall_of(CQ_WALL_SPHERE, CQ_CONTACT_SLIP);
  w.radius = 2;
  check_point("sphere", &w, 3, 0, 0, -1, 1, 0, 0, -1);
  check_point("sphere", &w, 2, 0.6, 0.8, 9, 1, 0.6, 0.8, 0);
  check_point("sphere, outside", &w, 3, 1.5, 1.5, 0, 0, 0, 0, 0);
  check_point("sphere, its centre", &w, 3, 0, 0, 0, 1, 0, 1, 0);
  w.hollow = 1;
  check_point("hollow sphere", &w, 3, 0, 3, 0, 1, 0, -1, 0);
  check_point("hollow sphere, inside", &w, 3, 0, 1, 0, 0, 0, 0, 0);

  w = wall_of(CQ_WALL_BOX, CQ_CONTACT_SLIP);
  vector3(w.upper, 4, 2, 3);
  check_point("box, near its top", &w, 3, 2, 1.8, 1, 1, 0, 1, 0);
  check_point("box, near its left", &w, 2, 0.1, 1, 0, 1, -1, 0, 0);
  check_point("box, near its back", &w, 3, 2, 1, 2.9, 1, 0, 0, 1);
  check_point("box, outside", &w, 2, 2, 2.1, 0, 0, 0, 0, 0);
  w.hollow = 1;
  check_point("hollow box", &w, 3, 2, 1, 1, 0, 0, 0, 0);
  check_point("hollow box, a face", &w, 2, 2, -0.1, 0, 1, 0, 1, 0);
  check_point("hollow box, an edge", &w, 3, 4.1, -0.1, 1, 2, -1, 0, 0);
  check_point("hollow box, a corner", &w, 3, -0.1, 2.1, 3.1, 3, 1, 0, 0);

  // {3}; {3, 2}: a ridge that climbs along the last axis
  static const double slope[3] = {1, 2, 1}, hill[6] = {0, 1, 1, 2, 0, 1};
  w = wall_of(CQ_WALL_HEIGHT_FIELD, CQ_CONTACT_SLIP);
  w.height = slope;
  w.height_count[0] = 3;
  w.height_origin[0] = 10;
  w.height_spacing[0] = 2;
  const double l2 = sqrt(1.25), l3 = sqrt(1 + 0.25 + 0.0625);
  check_point("slope up", &w, 2, 11, 1.4, 0, 1, -0.5 / l2, 1 / l2, 0);
  check_point("slope up, above", &w, 2, 11, 1.6, 0, 0, 0, 0, 0);
  check_point("slope down", &w, 2, 13, 1.4, 0, 1, 0.5 / l2, 1 / l2, 0);
  check_point("beside its left end", &w, 2, 5, 0.9, 0, 1, -0.5 / l2, 1 / l2, 0);
  check_point("beside its right end, above", &w, 2, 20, 1.1, 0, 0, 0, 0, 0);
  w.height = hill;
  w.height_count[1] = 2;
  w.height_spacing[1] = 4;
  check_point("hill", &w, 3, 11, 0.9, 2, 1, -0.5 / l3, 1 / l3, -0.25 / l3);
  check_point("hill, above", &w, 3, 11, 1.1, 2, 0, 0, 0, 0);
  check_point("hill, further in", &w, 3, 13, 1.2, 3, 1, 0.5 / l3, 1 / l3, -0.25 / l3);
}

// ---- the map --------------------------------------------------------------------------------------------------------

static int touches(const test_scene *s, int32_t particle, const double at[3]) {
  int touched = 1;
  for (int i = 0; i < s->def.dim; i++)
    touched &= fabs(at[i] - s->position[particle * s->def.dim + i]) <= 1.5 * s->def.dx;
  return touched;
}

// every node of the padded grid: the walls that hold it, in order, then one pin, of the first group that touches it
static void check_map(int dim) {
  test_scene s;
  cq_world *world;
  test_scene_make(&s, dim, 6, CQ_FLOAT64, 4);
  test_scene_add_mover(&s);   // which the map must not know
  test_scene_add_pin_groups(&s);
  REQUIRE(cq_world_create(&s.def, &world) == CQ_OK);
  const cq_model *m = &world->model;
  const int last = dim - 1;
  int wrong = 0, held = 0, of_group[2] = {0, 0};
  for (int x = -CQ_NODE_PAD; x <= m->cells[0] + CQ_NODE_PAD; x++)
    for (int y = dim == 3 ? -CQ_NODE_PAD : 0; y <= (dim == 3 ? m->cells[1] + CQ_NODE_PAD : 0); y++) {
      int64_t begin, end;
      cq_wall_map_column(&m->map, x, y, &begin, &end);
      for (int z = -CQ_NODE_PAD; z <= m->cells[last] + CQ_NODE_PAD; z++) {
        double at[3] = {x * m->dx, y * m->dx, 0}, normals[3][3];
        at[last] = z * m->dx;
        for (int w = 0; w < 3; w++)
          for (int k = cq_wall_normals(&m->walls[w], dim, 1e-6 * m->dx, at, normals); k > 0; k--, begin++, held++)
            wrong += begin >= end || m->map.node[begin].z != z || m->map.node[begin].wall != w;
        // a pin holds the nodes within one and a half cells of its particle
        int group = 0;
        while (group < 2 && !touches(&s, s.pins[group], at)) group++;
        if (group == 2) continue;
        wrong += begin >= end || m->map.node[begin].z != z || m->map.node[begin].wall != group - 2;
        of_group[group]++;
        begin++;
      }
      wrong += begin != end;
    }
  CHECK(wrong == 0 && held > 100, "%dD: %d of %d entries of the map are wrong", dim, wrong, held);
  CHECK(of_group[0] == (dim == 3 ? 27 : 9), "%dD: a pin holds %d nodes", dim, of_group[0]);
  CHECK(of_group[1] > 0 && of_group[1] < of_group[0], "%dD: the pin beside it holds %d more", dim, of_group[1]);
  cq_world_destroy(world);
  test_scene_free(&s);
}

// ---- kinds ----------------------------------------------------------------------------------------------------------

// A particle without stress or weight, and walls. A uniform velocity stays so on the nodes around it, where these lie
// on one side of a plane: the particle takes what the wall makes of its velocity.
typedef struct {
  cq_world *world;
  cq_rollout *rollout;
} probe;

static const double probe_dt = 0.01;

static probe open_probe(int dim, const double x[3], const double v[3], const cq_wall *walls, int count) {
  probe t;
  cq_world_def d;
  cq_rollout_def r;
  const double one = 1, none = 0, third = 0.3;
  const cq_material material = {.kind = CQ_MATERIAL_NEO_HOOKEAN};
  cq_world_def_init(&d);
  d.dim = dim;
  d.precision = CQ_FLOAT64;
  d.threads = 1;
  d.cells[0] = d.cells[1] = d.cells[2] = 20;
  d.dx = 1;
  d.dt = probe_dt;
  d.particle_count = 1;
  d.position = x;
  d.velocity = v;
  d.volume = d.mass = &one;
  d.young = &none;
  d.poisson = &third;
  d.material_count = 1;
  d.materials = &material;
  d.walls = walls;
  d.wall_count = count;
  REQUIRE(cq_world_create(&d, &t.world) == CQ_OK);
  cq_rollout_def_init(&r);
  r.steps = 2000;
  r.differentiable = 0;
  REQUIRE(cq_rollout_create(t.world, &r, &t.rollout) == CQ_OK && cq_rollout_begin(t.rollout) == CQ_OK);
  return t;
}

static void read_probe(const probe *t, int32_t field, double out[3]) {
  const int64_t start[2] = {0, 1};
  const int32_t first = 0;
  cq_readout r;
  cq_readout_init(&r);
  r.kind = CQ_READOUT_GATHER;
  r.fields = 1u << field;
  r.group_count = 1;
  r.group_start = start;
  r.particles = &first;
  REQUIRE(cq_rollout_read(t->rollout, &r, out) == CQ_OK);
}

static void step_probe(const probe *t, int steps) {
  for (int i = 0; i < steps; i++) REQUIRE(cq_rollout_run(t->rollout, 1, NULL, NULL) == CQ_OK);
}

// one step of a particle deep inside of a wall with normal n; the laws as cq.h says them
static void check_kind(int dim, cq_wall w, const double n[3], const double x[3]) {
  static const char *const kinds[] = {"sticky", "slip", "separate", "friction", "hold"};
  for (int k = 0; k < SLIDES; k++) {
    double v[3] = {0}, wanted[3], got[3], tangent[3], l = 0, slide = 0, off = 0;
    for (int i = 0; i < dim; i++) {
      w.velocity[i] = k % 2 ? 0.4 * test_random() : 0;
      v[i] = test_random();
    }
    for (int i = 0; i < dim; i++) l += (v[i] - w.velocity[i]) * n[i];
    for (int i = 0; i < dim; i++) {
      tangent[i] = v[i] - w.velocity[i] - l * n[i];
      slide += tangent[i] * tangent[i];
    }
    slide = sqrt(slide);
    for (int i = 0; i < dim; i++) {
      wanted[i] = w.velocity[i];
      if (w.kind == CQ_CONTACT_SLIP || (w.kind == CQ_CONTACT_SEPARATE && l < 0)) wanted[i] += tangent[i];
      if (w.kind >= CQ_CONTACT_SEPARATE && l >= 0) wanted[i] = v[i];
      if (w.kind == CQ_CONTACT_FRICTION && l < 0) wanted[i] += tangent[i] * fmax(0, slide + w.friction * l) / slide;
    }
    const probe t = open_probe(dim, x, v, &w, 1);
    step_probe(&t, 1);
    read_probe(&t, CQ_FIELD_VELOCITY, got);
    for (int i = 0; i < dim; i++) off = check_worst(off, fabs(got[i] - wanted[i]));
    CHECK(off < 1e-13, "%dD %s, shape %d: velocity (%g, %g) is off by %g", dim, kinds[w.kind], w.shape, got[0], got[1],
          off);
    cq_world_destroy(t.world);
  }
}

static void check_kinds(int dim) {
  double n[3] = {0}, x[3];
  for (int kind = CQ_CONTACT_STICKY; kind <= CQ_CONTACT_HOLD; kind++) {
    cq_wall w = wall_of(CQ_WALL_HALF_SPACE, kind);
    w.friction = 0.6;
    const double length = vector3(n, 2, 3, dim == 3 ? -1 : 0);
    memcpy(w.normal, n, sizeof n);   // the world makes it a unit one
    for (int i = 0; i < 3; i++) n[i] /= length;
    vector3(w.point, 12, 12, 12);
    vector3(x, 8.2, 7.7, 10.4);
    check_kind(dim, w, n, x);

    w = wall_of(CQ_WALL_BOX, kind);
    w.friction = 0.3;
    w.hollow = 1;
    vector3(w.lower, 6, 0, 0);
    vector3(w.upper, 20, 20, 20);
    vector3(n, 1, 0, 0);
    vector3(x, 4.3, 9.1, 8.8);
    check_kind(dim, w, n, x);

    static const double ramp[4] = {4, 4, 14, 14};   // {2, 2} and, in 2D, its first two samples: flat
    w = wall_of(CQ_WALL_HEIGHT_FIELD, kind);
    w.friction = 0.5;
    w.height = dim == 3 ? ramp : ramp + 1;
    w.height_count[0] = 2;
    w.height_count[1] = dim == 3 ? 2 : 1;
    w.height_spacing[0] = w.height_spacing[1] = 20;
    vector3(n, -0.5 / sqrt(1.25), 1 / sqrt(1.25), 0);
    vector3(x, 12.4, 4.6, 6.1);
    check_kind(dim, w, n, x);
  }
}

// a ball around the world and a ball in it: what moves towards them is turned along them
static void check_spheres(int dim) {
  for (int hollow = 0; hollow < 2; hollow++) {
    cq_wall w = wall_of(CQ_WALL_SPHERE, CQ_CONTACT_SEPARATE);
    double x[3], v[3], out[3], r2 = 0;
    vector3(w.point, 10, 10, 10);
    w.hollow = hollow;
    w.radius = hollow ? 6 : 4;
    vector3(x, hollow ? 10 : 2.5, 10.5, 10);
    vector3(v, 3, 0, 0);
    const probe t = open_probe(dim, x, v, &w, 1);
    step_probe(&t, 600);
    read_probe(&t, CQ_FIELD_POSITION, out);
    for (int i = 0; i < dim; i++) r2 += (out[i] - 10) * (out[i] - 10);
    CHECK(hollow ? sqrt(r2) < 6.5 : sqrt(r2) > 3.5, "%dD %s: ends %g from its centre", dim,
          hollow ? "hollow sphere" : "sphere", sqrt(r2));
    // away from the middle of the ball's face; along the shell to the point where it is met head-on
    CHECK(hollow ? fabs(out[1] - 10) < 0.45 : out[1] > 11, "%dD %s: is not turned aside, (%g, %g)", dim,
          hollow ? "hollow sphere" : "sphere", out[0], out[1]);
    cq_world_destroy(t.world);
  }
}

// A sticky floor that rises with its velocity reaches the particle and takes it along; one
// whose region stays is a conveyor.
static void check_moving(int dim) {
  for (int moves = 0; moves < 2; moves++) {
    cq_wall w = wall_of(CQ_WALL_HALF_SPACE, CQ_CONTACT_STICKY);
    double x[3], v[3] = {0}, out[3], start[3];
    w.moves = moves;
    vector3(w.point, 0, 4, 0);
    vector3(w.velocity, 0.5, 2, dim == 3 ? 0.25 : 0);
    vector3(x, 6, 9, 6);
    memcpy(start, x, sizeof x);
    const probe t = open_probe(dim, x, v, &w, 1);
    step_probe(&t, 150);   // the floor is at 7, the lowest node of the particle at 8
    read_probe(&t, CQ_FIELD_POSITION, out);
    CHECK(!memcmp(out, start, (size_t)dim * sizeof *out), "%dD: moved to (%g, %g) before a wall came", dim, out[0],
          out[1]);
    step_probe(&t, 150);   // at 10, where the particle is
    read_probe(&t, CQ_FIELD_VELOCITY, out);
    double off = 0;
    for (int i = 0; i < dim; i++) off = check_worst(off, fabs(out[i] - (moves ? w.velocity[i] : 0)));
    CHECK(moves ? out[1] > 1 : off == 0, "%dD, moves = %d: velocity (%g, %g)", dim, moves, out[0], out[1]);
    cq_world_destroy(t.world);
    // all of it inside: exactly the velocity of the wall, moving or not
    vector3(x, 6, 1.6, 6);
    const probe inside = open_probe(dim, x, v, &w, 1);
    step_probe(&inside, 3);
    read_probe(&inside, CQ_FIELD_VELOCITY, out);
    off = 0;
    for (int i = 0; i < dim; i++) off = check_worst(off, fabs(out[i] - w.velocity[i]));
    CHECK(off < 1e-15, "%dD, inside: velocity (%g, %g)", dim, out[0], out[1]);
    cq_world_destroy(inside.world);
  }
}

// ---- pins -----------------------------------------------------------------------------------------------------------

// a pinned particle keeps its place and shape to the bit, whatever pulls at it and whichever wall runs through it
static void check_pins(int dim) {
  test_scene s;
  cq_world *world;
  cq_rollout *rollout;
  cq_rollout_def r;
  test_scene_make(&s, dim, 8, CQ_FLOAT32, 4);
  test_scene_add_mover(&s);
  test_scene_add_pins(&s);
  s.pins[0] = 3;   // in the lower left, where the ball and the floor are
  for (int w = 0; w < 4; w++) s.walls[w].kind = CQ_CONTACT_STICKY;
  REQUIRE(cq_world_create(&s.def, &world) == CQ_OK);
  cq_rollout_def_init(&r);
  r.steps = 30;
  REQUIRE(cq_rollout_create(world, &r, &rollout) == CQ_OK && cq_rollout_begin(rollout) == CQ_OK);
  const int64_t start[2] = {0, 1};
  cq_readout q;
  cq_readout_init(&q);
  q.kind = CQ_READOUT_GATHER;
  q.group_count = 1;
  q.group_start = start;
  q.particles = s.pins;
  double before[3], after[3], velocity[3], size = 0;
  REQUIRE(cq_rollout_read(rollout, &q, before) == CQ_OK);
  for (int i = 0; i < 30; i++) {
    double u[3], f[15];
    for (int a = 0; a < 3; a++) u[a] = test_signal(i, a);
    for (int k = 0; k < 15; k++) f[k] = test_force(i, k);
    REQUIRE(cq_rollout_run(rollout, 1, u, f) == CQ_OK);
  }
  REQUIRE(cq_rollout_read(rollout, &q, after) == CQ_OK);
  q.fields = 1u << CQ_FIELD_VELOCITY;
  REQUIRE(cq_rollout_read(rollout, &q, velocity) == CQ_OK);
  for (int i = 0; i < dim; i++) size += fabs(velocity[i]);
  CHECK(!memcmp(before, after, (size_t)dim * sizeof *after) && size == 0, "%dD: a pin moved by (%g, %g), velocity %g",
        dim, after[0] - before[0], after[1] - before[1], size);
  const int32_t other = (int32_t)s.n - 1;
  q.particles = &other;
  REQUIRE(cq_rollout_read(rollout, &q, velocity) == CQ_OK);
  CHECK(velocity[0] != 0, "%dD: what is not pinned stands still", dim);
  cq_world_destroy(world);
  test_scene_free(&s);
}

int main(void) {
  check_shapes();
  for (int dim = 2; dim <= 3; dim++) {
    check_map(dim);
    check_kinds(dim);
    check_spheres(dim);
    check_moving(dim);
    check_pins(dim);
  }
  return check_report();
}
