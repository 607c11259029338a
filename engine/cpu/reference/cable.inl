// cable: the points of cables and chambers on reference grids. A point is a weighted sum of particles, whose places
// follow from nodes:
//   x = X_p + sum N u                                                                                         (E114)

// The stencil of a particle, by the user's number, on its body's reference grid: cell, B-spline weights, nodes.
static Placed placed_particle(const cq_scene *s, const int32_t particle) {
  const int32_t slot = s->arrangement->slot[particle];
  return placed_at(s, &s->reference.cells[s->reference.cells_of_chunk[slot / CQ_CHUNK]], slot);
}

// (E114) Sets s->cable_x {points, dim} to the places of all points of cables and pressure chambers, from the
// displacements of nodes in the state `in`.
static void place_points(cq_scene *s, const cq_slice *in) {
  const cq_cables *c = &s->model->cables;
  for (int64_t point = 0; point < c->points; point++) {
    wide *x = (wide *)s->cable_x + point * CQ_DIM;
    const int64_t begin = c->point_start[point], end = c->point_start[point + 1];
    EACH(i) x[i] = begin == end ? c->anchor[point * CQ_DIM + i] : 0;
    for (int64_t k = begin; k < end; k++) {
      const Placed p = placed_particle(s, c->particle[k]);
      wide at[CQ_DIM];
      EACH(i) at[i] = *slot_at((real *)s->reference.place, CQ_DIM, p.slot, i);
      for (int n = 0; n < TOUCHED; n++)
        EACH(i) at[i] += (wide)placed_weight(&p, n) * (wide)nodes_of(s, in->nodes, U + i)[placed_node(&p, n)];
      EACH(i) x[i] += c->weight[k] * at[i];
    }
  }
}

#if !defined(CQ_REAL_DUAL)
// Adjoint of place_points: from s->cable_grad {points, dim}, adds to r->adj, the adjoint of displacements, and to the
// gradients of where particles lie on their grids. in: the state.
static void place_points_adj(cq_scene *s, const cq_slice *in) {
  const cq_cables *c = &s->model->cables;
  const cq_reference *r = &s->reference;
  const wide *grad_x = (const wide *)s->cable_grad;
  for (int64_t k = 0; k < c->pulled_count; k++) {
    const Placed p = placed_particle(s, c->pulled[k]);
    double grad[CQ_DIM] = {0}, by_fraction[CQ_DIM] = {0};
    for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
      EACH(i) grad[i] += c->pull_weight[at] * grad_x[c->pull_point[at] * CQ_DIM + i];
    for (int n = 0; n < TOUCHED; n++) {
      const int64_t node = placed_node(&p, n);
      double along = 0;
      EACH(i) {
        real *to = (real *)r->adj + (U + i) * r->node_count + node;
        *to += placed_weight(&p, n) * (real)grad[i];
        along += (double)nodes_of(s, in->nodes, U + i)[node] * grad[i];
      }
      EACH(e) by_fraction[e] += along * placed_slope(s, &p, n, e);
    }
    EACH(i) {
      *slot_at((real *)r->place_adj, CQ_DIM, p.slot, i) += (real)grad[i];
      *slot_at((real *)r->fraction_adj, CQ_DIM, p.slot, i) += (real)by_fraction[i];
    }
  }
}

// Adjoint of the scatter of forces at points of cables, s->cable_force, to nodes: from r->force_adj, adds to
// r->fraction_adj, the gradients of where particles lie in their cells.
static void give_points_adj(cq_scene *s) {
  const cq_cables *c = &s->model->cables;
  const cq_reference *r = &s->reference;
  const wide *force = (const wide *)s->cable_force;
  for (int64_t k = 0; k < c->pulled_count; k++) {
    const Placed p = placed_particle(s, c->pulled[k]);
    double pull[CQ_DIM] = {0}, by_fraction[CQ_DIM] = {0};
    for (int64_t at = c->pull_start[k]; at < c->pull_start[k + 1]; at++)
      EACH(i) pull[i] += c->pull_weight[at] * force[c->pull_point[at] * CQ_DIM + i];
    for (int n = 0; n < TOUCHED; n++) {
      double along = 0;
      EACH(i) along += pull[i] * (double)nodes_of(s, r->force_adj, i)[placed_node(&p, n)];
      EACH(e) by_fraction[e] += along * placed_slope(s, &p, n, e);
    }
    EACH(i) *slot_at((real *)r->fraction_adj, CQ_DIM, p.slot, i) += (real)by_fraction[i];
  }
}
#endif
