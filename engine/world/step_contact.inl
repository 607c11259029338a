// step_contact: what walls do to a moving node of a reference grid within one engine step (E115, E116). In scalar
// reals, for CPU and GPU; wall.inl and physics/contact.inl are included before.
//
// A node stops exactly at a wall, within its step. If it stopped at the end of the step in which it arrives, gradients
// would be exact and of no use: its final position would have the derivative 1 by its first one, between jumps back.
// Walls begin half a cell inside their surface, for the outermost nodes stand half a cell outside of their body.

// the walls of a world during one step
typedef struct {
  const cq_wall *walls;
  int32_t count;
  const real *velocity;           // {count, 3}
  const wall_real *displacement;  // {count, 3} of walls before the present control step; NULL: none
  double seconds;                 // since walls have had these velocities
  double dt, dx;
} StepWalls;

// One normal of a wall that holds a node, or to which the node comes in the step.
typedef struct {
  int32_t wall;
  int lands;                      // 1: the node comes to the wall in this step; 0: it was at it, and depth is 0
  real normal[CQ_DIM];
  wall_real place[3];             // of the node relative to the wall, at which normal and depth are taken
  wall_real depth, slope[3];      // depth of place within the wall, and its derivative by place
} StepContact;

enum { STEP_CONTACTS = 6 };       // most normals of one wall: those that hold a node, and those to which it comes

// Sets x to the position `place` of a node in the frame of wall w, whose shape is defined where the wall was when the
// world was made. seconds: how long the wall has had its present velocity.
CQ_INLINE void wall_sees(const StepWalls *s, const int32_t w, const double seconds, const wall_real place[3],
                         wall_real x[3]) {
  x[2] = 0;
  EACH(i) x[i] = place[i];
  if (!s->walls[w].moves) return;
  EACH(i) x[i] = x[i] - seconds * (wall_real)s->velocity[3 * w + i];
  if (s->displacement) EACH(i) x[i] = x[i] - s->displacement[3 * w + i];
}

// How far rounding moves a node that rests on a wall [length]: a node nearer to it than this touches it.
CQ_INLINE double resting_gap(const StepWalls *s) { return 1e-6 * s->dx; }
// The slack (wall_normals) with which nodes of reference grids ask walls [length]: the resting gap less half a cell. It
// is negative, since for these nodes a wall begins half a cell inside its surface.
CQ_INLINE double wall_slack(const StepWalls *s) { return -0.5 * s->dx + resting_gap(s); }

// Does a wall also hold a node that moves away from it, as sticky and slip walls do? 1 yes, 0 no.
CQ_INLINE int is_two_sided(const cq_wall *wall) {
  return wall->kind == CQ_CONTACT_STICKY || wall->kind == CQ_CONTACT_SLIP;
}

// Sets out to the contact with wall w, along its unit normal n, of a node at x in the wall's frame (wall_sees). lands:
// 1 if the node comes to the wall in this step; then out also has the depth by which it would pass the surface.
CQ_INLINE void step_contact_of(const StepWalls *s, const int32_t w, const int lands, const wall_real x[3],
                               const wall_real n[3], StepContact *out) {
  out->wall = w;
  out->lands = lands;
  out->depth = 0;
  for (int i = 0; i < 3; i++) out->place[i] = x[i];
  for (int i = 0; i < 3; i++) out->slope[i] = 0;
  if (lands) out->depth = wall_depth(&s->walls[w], CQ_DIM, wall_slack(s), x, n, out->slope);
  EACH(i) out->normal[i] = (real)n[i];
}

// The scalar product of two vectors.
CQ_INLINE wall_real wall_dot(const wall_real a[3], const wall_real b[3]) {
  wall_real sum = 0;
  EACH(i) sum = sum + a[i] * b[i];
  return sum;
}

// Sets out to the contacts of a node with wall w in a step: the normals that hold it already, and those to which it
// comes. place: where the node is; after: where it would be after the step without this wall. Returns how many there
// are.
CQ_INLINE int32_t step_contacts(const StepWalls *s, const int32_t w, const wall_real place[3], const wall_real after[3],
                                StepContact out[STEP_CONTACTS]) {
  const cq_wall *wall = &s->walls[w];
  const int several = wall->shape == CQ_WALL_BOX && wall->hollow, solid = wall->shape == CQ_WALL_BOX && !wall->hollow;
  wall_real x[3], to[3], way[3] = {0}, held[3][3], normals[3][3];
  int32_t found = 0;
  wall_sees(s, w, s->seconds, place, x);
  const int32_t held_count = wall_normals_within(wall, CQ_DIM, wall_slack(s) + resting_gap(s), x, held);
  for (int32_t k = 0; k < held_count; k++) step_contact_of(s, w, 0, x, held[k], &out[found++]);
  if (held_count && !several) return found;
  wall_sees(s, w, s->seconds + s->dt, after, to);
  const int32_t count = wall_normals_within(wall, CQ_DIM, wall_slack(s), to, normals);
  EACH(i) way[i] = to[i] - x[i];
  // a box is entered by the face that the node comes from, although another may be nearer then
  if (count && solid) {
    const double reach = sqrt((double)s_value(wall_dot(way, way)));
    wall_normals_within(wall, CQ_DIM, wall_slack(s) + reach, x, normals);
  }
  for (int32_t k = 0; k < count; k++) {
    int known = 0;
    for (int32_t j = 0; j < held_count; j++) known |= wall_dot(normals[k], held[j]) > 0.5;
    if (!known) step_contact_of(s, w, 1, to, normals[k], &out[found++]);
  }
  // rounding may move a node off a wall that keeps it
  if (held_count || count || !is_two_sided(wall)) return found;
  const int32_t kept = wall_normals_within(wall, CQ_DIM, wall_slack(s) + 1e-3 * s->dx, x, held);
  for (int32_t k = 0; k < kept; k++)
    if (!(wall_dot(way, held[k]) < 0)) step_contact_of(s, w, 0, x, held[k], &out[found++]);
  return found;
}

// Returns the share of a step during which a contact holds a node, 0 to 1. v: the node's velocity before all contacts;
// mean: its mean velocity in the step without this contact. *towards: set to the speed towards the wall where the share
// depends on that speed, else to 0. A wall that rests is reached at the same moment whatever velocity it then gives.
CQ_INLINE real step_share(const StepWalls *s, const StepContact *c, const real v[CQ_DIM], const real mean[CQ_DIM],
                          real *towards) {
  const real dt = (real)s->dt, *n = c->normal;
  real speed = (real)0, back = (real)0;
  *towards = (real)0;
  if (!c->lands) return (real)1;
  EACH(i) speed = speed - n[i] * mean[i];
  if (s->walls[c->wall].moves) EACH(i) speed = speed + n[i] * s->velocity[3 * c->wall + i];
  // contacts before this one may have held the node back on its way to where the depth is from
  EACH(i) back = back + n[i] * (mean[i] - v[i]);
  const real way = dt * speed, depth = (real)c->depth - dt * back;
  if (!(depth > (real)0)) return (real)0;
  if (!(depth < way - (real)resting_gap(s))) return (real)1;
  *towards = speed;
  return depth / way;
}

// Changes a node's mean velocity over the step by one contact, for the share of the step in which the contact holds it.
// v: the node's velocity before all contacts.
CQ_INLINE void step_contact(const StepWalls *s, const StepContact *c, const ContactLaw *law, const real v[CQ_DIM],
                            real mean[CQ_DIM]) {
  real after[CQ_DIM], towards;
  const real share = step_share(s, c, v, mean, &towards);
  EACH(i) after[i] = mean[i];
  contact(law, after);
  EACH(i) mean[i] = mean[i] + share * (after[i] - mean[i]);
}

#if !defined(CQ_REAL_DUAL)
// gradients of what a contact depends on
typedef struct {
  ContactGrad of;
  double depth;
  real v[CQ_DIM], mean[CQ_DIM];   // the velocity before all contacts, the mean one in the step
} StepContactGrad;

// Adjoint of step_contact. grad->mean: on entry the gradient of the mean velocity after the contact, on return of that
// before it; adds to the rest of grad. v, mean: as step_contact got them.
CQ_INLINE void step_contact_adj(const StepWalls *s, const StepContact *c, const ContactLaw *law, const real v[CQ_DIM],
                                const real mean[CQ_DIM], StepContactGrad *grad) {
  real *grad_mean = grad->mean, after[CQ_DIM], back[CQ_DIM], towards, grad_share = 0;
  const real share = step_share(s, c, v, mean, &towards);
  EACH(i) after[i] = mean[i];
  contact(law, after);
  EACH(i) grad_share += grad_mean[i] * (after[i] - mean[i]);
  EACH(i) back[i] = share * grad_mean[i];
  EACH(i) grad_mean[i] -= back[i];
  contact_adj(law, mean, back, &grad->of);
  EACH(i) grad_mean[i] += back[i];
  if (!(towards > 0)) return;
  // share = (depth - dt n.(mean - v)) / (dt towards), towards = -n.(mean - w), with w of walls that move
  const int moves = s->walls[c->wall].moves;
  const real *n = c->normal, *w = s->velocity + 3 * c->wall, grad_back = -grad_share / towards,
             grad_towards = share * grad_back;
  grad->depth += (double)(grad_share / towards) / s->dt;
  EACH(i) {
    grad_mean[i] += (grad_back - grad_towards) * n[i];
    grad->v[i] -= grad_back * n[i];
    grad->of.w[i] += moves ? grad_towards * n[i] : (real)0;
    grad->of.n[i] += grad_back * (mean[i] - v[i]);
    grad->of.n[i] -= grad_towards * (mean[i] - (moves ? w[i] : (real)0));
  }
}

// Sets grad_place to the gradient of the node's position relative to the wall, from the gradients of a contact's normal
// and depth in grad.
CQ_INLINE void step_contact_place_adj(const StepWalls *s, const StepContact *c, const StepContactGrad *grad,
                                      double grad_place[3]) {
  double grad_n[3] = {0};
  for (int i = 0; i < 3; i++) grad_place[i] = 0;
  EACH(i) grad_n[i] = (double)grad->of.n[i];
  wall_normals_adj(&s->walls[c->wall], CQ_DIM, c->place, grad_n, grad_place);
  if (c->lands) EACH(i) grad_place[i] += grad->depth * c->slope[i];
}
#endif
