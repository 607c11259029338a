// repel: surfaces that are near push each other away, as in peridynamics (Silling and Askari, Computers and Structures
// 83 (2005)): nodes a and b of two surfaces, at a distance of d < r = 1.5 dx, by
//   f_a = k (r / d - 1) (x_a - x_b) / d,  f_b = -f_a                                                          (E117)
// The nodes lie half a cell within the surfaces, so that surfaces which lie on each other are at d = dx.

// where nodes are; the list of pairs follows
static cq_status place_rims(cq_scene *s, const cq_slice *in) {
  cq_reference *r = &s->reference;
  for (int32_t k = 0; k < r->rim_count; k++) {
    double x[3];
    rim_node(s, in, r->rim[k].node, x);
    EACH(i) r->rim_at[(int64_t)k * CQ_DIM + i] = x[i];
  }
  return cq_near_update(&r->near, s->model, r->rim, r->rim_at, r->rim_count);
}

// Two nodes that are near: the way from b to a, and how long it is.
typedef struct {
  int64_t a, b;              // nodes
  wide way[CQ_DIM], far;
  double force, reach;       // force: at half the reach
} NearPair;

CQ_INLINE wide place_of_rim(const cq_scene *s, const cq_slice *in, const int64_t node, const int i) {
  return (wide)nodes_of(s, s->reference.rest, i)[node] + (wide)nodes_of(s, in->data, U + i)[node];
}

// 0: they are not near
static int near_pair(const cq_scene *s, const cq_slice *in, const int32_t k, NearPair *p) {
  const cq_reference *r = &s->reference;
  const int32_t a = r->near.pair[2 * k], b = r->near.pair[2 * k + 1];
  wide square = (wide)0;
  p->reach = CQ_NEAR_REACH * s->model->dx;
  p->a = r->rim[a].node;
  p->b = r->rim[b].node;
  p->force = r->rim_push[a] < r->rim_push[b] ? r->rim_push[a] : r->rim_push[b];
  EACH(i) p->way[i] = place_of_rim(s, in, p->a, i) - place_of_rim(s, in, p->b, i);
  EACH(i) square = square + p->way[i] * p->way[i];
  if (!(square < (wide)(p->reach * p->reach))) return 0;
  p->far = w_sqrt(square);
  return 1;
}

// Forces to push; meet: two nodes that are nearer than a quarter of a cell.
static cq_status repel(cq_scene *s, const cq_slice *in) {
  cq_reference *r = &s->reference;
  const cq_status status = place_rims(s, in);
  r->meet[0] = r->meet[1] = -1;
  if (status) return status;
  for (int32_t k = 0; k < r->rim_count; k++) EACH(i) ((real *)r->push)[i * r->node_count + r->rim[k].node] = (real)0;
  for (int32_t k = 0; k < r->near.count; k++) {
    NearPair p;
    if (!near_pair(s, in, k, &p)) continue;
    if (!(p.far > (wide)(0.25 * s->model->dx))) {
      r->meet[0] = r->near.pair[2 * k];
      r->meet[1] = r->near.pair[2 * k + 1];
      return CQ_OK;
    }
    const wide by = (wide)p.force * ((wide)p.reach / p.far - (wide)1) / p.far;
    EACH(i) {
      real *a = (real *)r->push + i * r->node_count + p.a, *b = (real *)r->push + i * r->node_count + p.b;
      *a = *a + (real)(by * p.way[i]);
      *b = *b - (real)(by * p.way[i]);
    }
  }
  return CQ_OK;
}

#if !defined(CQ_REAL_DUAL)
// From what forces get to what places of nodes get: df_a = k ((r / d - 1) w - (2 r / d - 1) n (n.w)) / d, n from b to
// a, w = dx_a - dx_b; symmetric                                                                               (E118)
static cq_status repel_adj(cq_scene *s, const cq_slice *in) {
  cq_reference *r = &s->reference;
  const int64_t nodes = r->node_count;
  const real *force_adj = (const real *)r->force_adj;
  const int by_place = (s->wanted & cq_bit(CQ_FIELD_POSITION)) != 0;
  const cq_status status = place_rims(s, in);
  for (int32_t k = 0; k < r->near.count && !status; k++) {
    NearPair p;
    double given[CQ_DIM], along = 0;
    if (!near_pair(s, in, k, &p)) continue;
    EACH(i) given[i] = (double)force_adj[i * nodes + p.a] - (double)force_adj[i * nodes + p.b];
    EACH(i) along += given[i] * p.way[i] / p.far;
    EACH(i) {
      const double share = p.reach / p.far;
      const real back = (real)(p.force / p.far * ((share - 1) * given[i] - (2 * share - 1) * along * p.way[i] / p.far));
      real *adj = (real *)r->adj + (U + i) * nodes, *rest = (real *)r->rest_adj + i * nodes;
      adj[p.a] += back;
      adj[p.b] -= back;
      if (!by_place) continue;
      rest[p.a] += back;
      rest[p.b] -= back;
    }
  }
  return status;
}
#endif
