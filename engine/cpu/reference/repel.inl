// repel: forces between surfaces of bodies that are near each other: repulsion and friction (physics/collision.inl).

// Sets r->rim_at {rim_count, dim} to where the nodes at the surfaces of bodies are in the state `in`, and searches for
// near pairs again if some node has moved far enough. CQ_OK or CQ_MEMORY.
static cq_status place_rims(cq_scene *s, const cq_slice *in) {
  cq_reference *r = &s->reference;
  for (int32_t k = 0; k < r->rim_count; k++) {
    double x[3];
    rim_node(s, in, r->rim[k].node, x);
    EACH(i) r->rim_at[(int64_t)k * CQ_DIM + i] = x[i];
  }
  return cq_near_update(&r->near, s->model, r->rim, r->rim_at, r->rim_count);
}

// Component i of the place of a node in the state `in`: its undeformed place plus its displacement.
CQ_INLINE wide place_of_rim(const cq_scene *s, const cq_slice *in, const int64_t node, const int i) {
  return (wide)nodes_of(s, s->reference.rest, i)[node] + (wide)nodes_of(s, in->nodes, U + i)[node];
}

// Sets c->speed to the relative velocity of two surface nodes a and b in the state `in`, and c->slow, by which their
// friction is smoothed (E120).
static void speed_of_pair(const cq_scene *s, const cq_slice *in, const int64_t a, const int64_t b, Collision *c) {
  const real *inverse = (const real *)s->reference.inverse;
  EACH(i) c->speed[i] = (wide)nodes_of(s, in->nodes, W + i)[a] - (wide)nodes_of(s, in->nodes, W + i)[b];
  c->slow = (wide)(COLLISION_SHARES * s->model->dt) * ((wide)inverse[a] + (wide)inverse[b]);
}

// Sets a, b to the nodes of near pair k of r->near, and c to what their repulsion and friction are computed from.
// Returns 1, or 0 if they are too far from each other in the state `in` to push.
static int near_pair(const cq_scene *s, const cq_slice *in, const int32_t k, int64_t *a, int64_t *b, Collision *c) {
  const cq_reference *r = &s->reference;
  const cq_rim *first = &r->rim[r->near.pair[2 * k]], *second = &r->rim[r->near.pair[2 * k + 1]];
  *a = first->node;
  *b = second->node;
  c->reach = CQ_NEAR_REACH * s->model->dx;
  c->push = collision_push(first->push, second->push);
  EACH(i) c->way[i] = place_of_rim(s, in, *a, i) - place_of_rim(s, in, *b, i);
  c->friction = s->model->collision_friction;
  if (!collision_near(c)) return 0;
  if (c->friction > 0) speed_of_pair(s, in, *a, *b, c);
  return 1;
}

// (E117, E120) Sets r->push to the forces between surfaces that are near in the state `in`, and r->meet to the indices
// in r->rim of two nodes whose surfaces are inside of each other, where it stops, or -1. CQ_OK or CQ_MEMORY.
static cq_status repel(cq_scene *s, const cq_slice *in) {
  cq_reference *r = &s->reference;
  const cq_status status = place_rims(s, in);
  r->meet[0] = r->meet[1] = -1;
  if (status) return status;
  for (int32_t k = 0; k < r->rim_count; k++) EACH(i) ((real *)r->push)[i * r->node_count + r->rim[k].node] = (real)0;
  for (int32_t k = 0; k < r->near.count; k++) {
    Collision c;
    int64_t a, b;
    wide force[CQ_DIM];
    if (!near_pair(s, in, k, &a, &b, &c)) continue;
    if (!(c.far > (wide)(CQ_NEAR_LEAST * s->model->dx))) {
      r->meet[0] = r->near.pair[2 * k];
      r->meet[1] = r->near.pair[2 * k + 1];
      return CQ_OK;
    }
    collision_force(&c, force);
    EACH(i) {
      real *to = (real *)r->push + i * r->node_count;
      to[a] = to[a] + (real)force[i];
      to[b] = to[b] - (real)force[i];
    }
  }
  return CQ_OK;
}

#if !defined(CQ_REAL_DUAL)
// (E128) From the gradient of the friction of two surface nodes a and b, adds to those of their velocities and masses.
static void rubbing_adj(cq_scene *s, const CollisionGrad *grad, const int64_t a, const int64_t b) {
  cq_reference *r = &s->reference;
  const real *inverse = (const real *)r->inverse;
  const double by_inverse = COLLISION_SHARES * s->model->dt * grad->slow;
  real *mass = (real *)r->mass_adj;
  EACH(i) {
    real *adj = (real *)r->adj + (W + i) * r->node_count;
    adj[a] += (real)grad->speed[i];
    adj[b] -= (real)grad->speed[i];
  }
  mass[a] -= (real)(by_inverse * (double)inverse[a] * (double)inverse[a]);
  mass[b] -= (real)(by_inverse * (double)inverse[b] * (double)inverse[b]);
}

// (E118, E128) Adjoint of repel: from r->force_adj, adds to r->adj, the adjoint of displacements and velocities, and to
// the gradients of masses and undeformed places. in: the state of repel. CQ_OK or CQ_MEMORY.
static cq_status repel_adj(cq_scene *s, const cq_slice *in) {
  cq_reference *r = &s->reference;
  const int64_t nodes = r->node_count;
  const real *force_adj = (const real *)r->force_adj;
  const int by_place = (s->wanted & cq_bit(CQ_FIELD_POSITION)) != 0;
  const cq_status status = place_rims(s, in);
  for (int32_t k = 0; k < r->near.count && !status; k++) {
    Collision c;
    int64_t a, b;
    wide given[CQ_DIM];
    CollisionGrad grad;
    if (!near_pair(s, in, k, &a, &b, &c)) continue;
    EACH(i) given[i] = (wide)force_adj[i * nodes + a] - (wide)force_adj[i * nodes + b];
    collision_force_adj(&c, given, &grad);
    if (c.friction > 0) rubbing_adj(s, &grad, a, b);
    EACH(i) {
      real *adj = (real *)r->adj + (U + i) * nodes, *rest = (real *)r->rest_adj + i * nodes;
      adj[a] += (real)grad.way[i];
      adj[b] -= (real)grad.way[i];
      if (!by_place) continue;
      rest[a] += (real)grad.way[i];
      rest[b] -= (real)grad.way[i];
    }
  }
  return status;
}
#endif
