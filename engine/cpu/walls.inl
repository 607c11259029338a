// walls: the contacts of a node: which walls and pins hold it, how they change its velocity, and their impulses.

// The coefficient of friction of wall number `wall`.
CQ_INLINE real friction_of(const cq_scene *s, const int32_t wall) { return ((const real *)s->globals)[3 + wall]; }
// The velocity of wall number `wall` in this control step, three components.
CQ_INLINE const real *wall_velocity_of(const cq_scene *s, const int32_t wall) {
  return (const real *)s->globals + 3 + s->model->wall_count + 3 * wall;
}

// places of nodes relative to a wall: in double, or over the dual numbers of a test, where normals turn with their wall
#if defined(CQ_REAL_DUAL)
#define CQ_WALL_REAL
typedef real wall_real;
#define wall_sqrt s_sqrt
#define wall_value s_value
#include "../world/wall.inl"
#else
typedef double wall_real;
#define wall_normals cq_wall_normals
#define wall_normals_within cq_wall_normals_within
#define wall_normals_adj cq_wall_normals_adj
#define wall_depth cq_wall_depth
#endif
#include "../world/step_contact.inl"

// the contacts that hold one node: first those with resting walls, then those with moving walls, one for each normal
enum { CONTACTS = CQ_CONTACTS_MAX + 3 * CQ_WALLS_MAX };

typedef struct {
  int count;
  int32_t wall[CONTACTS];
  real normal[CONTACTS][CQ_DIM];
  wall_real place[3];        // of the node, where walls that move were asked for it
  real mass, x[CQ_DIM];      // of the node, where impulses are read
} Contacts;

// Adds a contact with a wall (its number; below 0: a group of pins) to the contacts of a node; returns the contact's
// normal {dim}, which the caller sets.
CQ_INLINE real *contacts_add(Contacts *contacts, const int32_t wall) {
  contacts->wall[contacts->count] = wall;
  return contacts->normal[contacts->count++];
}

// The time since walls have had their present velocities and displacements: since the start of the rollout, or, where
// velocities change, since the running control step began.
CQ_INLINE double seconds_of(const cq_scene *s) { return (double)(s->step - s->wall_place_step) * s->model->dt; }

// The walls of a scene with their displacements and velocities in this step, as step_contact.inl reads them.
CQ_INLINE StepWalls walls_of(const cq_scene *s) {
  const cq_model *m = s->model;
  return (StepWalls){m->walls, m->wall_count, wall_velocity_of(s, 0), (const wall_real *)s->wall_place, seconds_of(s),
                     m->dt, m->dx};
}

// The law of contact k of a node: kind, friction, normal, and velocity of the wall. A pin is a sticky wall at rest.
// still: zeros, as a pin's velocity; must outlive the result.
CQ_INLINE ContactLaw contact_law(const cq_scene *s, const Contacts *contacts, const int k, const real still[CQ_DIM]) {
  const int32_t w = contacts->wall[k];
  ContactLaw law;
  law.kind = w < 0 ? CQ_CONTACT_STICKY : s->model->walls[w].kind;
  law.friction = w < 0 ? (real)0 : friction_of(s, w);
  law.n = contacts->normal[k];
  law.w = w < 0 ? still : wall_velocity_of(s, w);
  return law;
}

// Applies contact k of a node to its velocity, in place (E12).
CQ_INLINE void apply_contact(const cq_scene *s, const Contacts *contacts, const int k, real v[CQ_DIM]) {
  const real still[CQ_DIM] = {(real)0, (real)0};
  const ContactLaw law = contact_law(s, contacts, k, still);
  contact(&law, v);
}

// The numbers from which the impulse of contact k of a node is computed: mass, normal, position, and the velocities
// before and after the contact.
CQ_INLINE Touch touch_of(const Contacts *contacts, const int k, const real before[CQ_DIM], const real after[CQ_DIM]) {
  Touch t;
  t.mass = contacts->mass;
  EACH(i) t.normal[i] = contacts->normal[k][i];
  EACH(i) t.x[i] = contacts->x[i];
  EACH(i) t.before[i] = before[i];
  EACH(i) t.after[i] = after[i];
  return t;
}

// The index at which the impulse of a wall, or of a group of pins (below 0), begins in an array {contact_count,
// CONTACT_WIDTH}.
CQ_INLINE int32_t impulse_at(const cq_scene *s, const int32_t wall) {
  return CONTACT_WIDTH * (wall < 0 ? s->model->contact_count + wall : wall);
}

// Applies contact k of a node to its velocity v, in place, and adds its impulse to sum {contact_count, CONTACT_WIDTH}.
static void contact_and_measure(const cq_scene *s, const Contacts *contacts, const int k, real v[CQ_DIM],
                                wall_real *sum) {
  real before[CQ_DIM], out[CONTACT_WIDTH];
  EACH(i) before[i] = v[i];
  apply_contact(s, contacts, k, v);
  const Touch t = touch_of(contacts, k, before, v);
  contact_impulse(&t, out);
  wall_real *to = sum + impulse_at(s, contacts->wall[k]);
  for (int i = 0; i < CONTACT_WIDTH; i++) to[i] = to[i] + (wall_real)out[i];
}

// The sums of impulses on the nodes of a block of columns in this control step, {contact_count, CONTACT_WIDTH}; blocks
// have their own, so that threads do not collide.
CQ_INLINE wall_real *impulse_of(const cq_scene *s, const int32_t block) {
  return (wall_real *)s->impulse + (int64_t)block * s->model->contact_count * CONTACT_WIDTH;
}

// Minus the share of a velocity that damping takes in a step, exp(-damping dt) - 1 (E50); exactly 0 without damping. In
// short steps the share itself has digits in float32 that the rest, next to 1, would not have.
CQ_INLINE real loss_of(const cq_scene *s) {
  return s_expm1(-(real)s->model->dt * ((const real *)s->globals)[3 + 4 * s->model->wall_count]);
}
// The share exp(-damping dt) that damping leaves; exactly 1 without damping.
CQ_INLINE real decay_of(const cq_scene *s) { return (real)1 + loss_of(s); }

#if !defined(CQ_REAL_DUAL)

// (E72) Carries grad_x = dL/dx on to the gradients of a moving wall's velocity and of its displacement before the
// control step, in sum; x is a node's position less the wall's displacement. seconds: time since the control step
// began.
static void wall_place_adj(cq_partial *sum, const int32_t wall, const double seconds, const double grad_x[3]) {
  EACH(i) sum->wall_velocity[wall][i] -= seconds * grad_x[i];
  EACH(i) sum->wall_place[wall][i] -= grad_x[i];
}

// Adjoint of apply_contact for contact k of a node. before: the node's velocity before the contact; grad_v: dL/dv after
// it on entry, before it on return. Adds the gradients of friction, wall velocity and normal to grad, which may already
// hold those of the impulse.
static void apply_contact_adj(const cq_scene *s, const Contacts *contacts, const int k, const real before[CQ_DIM],
                            real grad_v[CQ_DIM], ContactGrad *grad) {
  const real still[CQ_DIM] = {0};
  const ContactLaw law = contact_law(s, contacts, k, still);
  contact_adj(&law, before, grad_v, grad);
}

// The gradient, by s->grad_impulse, of the numbers from which the impulse of contact k is computed: mass, normal,
// position and velocities before and after it.
CQ_INLINE Touch impulse_adj(const cq_scene *s, const Contacts *contacts, const int k, const real before[CQ_DIM],
                            const real after[CQ_DIM]) {
  Touch grad = {0};
  real grad_out[CONTACT_WIDTH];
  const Touch t = touch_of(contacts, k, before, after);
  for (int i = 0; i < CONTACT_WIDTH; i++) grad_out[i] = (real)s->grad_impulse[impulse_at(s, contacts->wall[k]) + i];
  contact_impulse_adj(&t, &grad, grad_out);
  return grad;
}

// Adjoint of contact_and_measure for contact k of a node. at: velocities {2, dim} before and after it; grad_v: dL/dv
// after it on entry, before it on return; adds to grad. Returns the gradient by way of the impulse, of which mass and
// position are left for the caller.
static Touch contact_of_node_adj(const cq_scene *s, const Contacts *contacts, const int k, real (*at)[CQ_DIM],
                                 real grad_v[CQ_DIM], ContactGrad *grad) {
  Touch felt = {0};
  if (s->grad_impulse) {
    felt = impulse_adj(s, contacts, k, at[0], at[1]);
    EACH(i) grad_v[i] += felt.after[i];
    EACH(i) grad->n[i] += felt.normal[i];
  }
  apply_contact_adj(s, contacts, k, at[0], grad_v, grad);
  if (s->grad_impulse) EACH(i) grad_v[i] += felt.before[i];
  return felt;
}

// Adds a contact's gradients of friction and wall velocity to those of its wall in sum.
static void give_wall(cq_partial *sum, const int32_t wall, const ContactGrad *grad) {
  sum->friction[wall] += grad->friction;
  EACH(i) sum->wall_velocity[wall][i] += grad->w[i];
}

#endif
