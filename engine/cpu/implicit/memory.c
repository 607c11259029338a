// memory: the arrays that a scene keeps for implicit steps, and on reference grids the factor's elimination order.
#include "linear.h"

// Sets the scene's table of loops of implicit steps: loops over particles are those of reference grids or of the
// spatial grid. Reference grids have neither a coarse lattice nor an assembled matrix. CQ_OK or CQ_MEMORY.
static cq_status choose_loops(cq_scene *s) {
  cq_implicit_kernels *k = s->implicit.loops = cq_alloc(1, sizeof *k, "implicit steps");
  const cq_reference_kernels *reference = s->kernels->reference;
  if (!k) return CQ_MEMORY;
  *k = *s->kernels->implicit;
  if (!cq_is_reference(s->model)) return CQ_OK;
  k->momentum = reference->solve_momentum;
  k->evaluate = reference->solve_evaluate;
  k->tensors = reference->solve_tensors;
  k->diagonal = reference->solve_diagonal;
  k->product = reference->solve_product;
  k->factor_assemble = reference->solve_assemble;
  k->coarse_index = NULL;
  k->matrix_reals = 0;
  return CQ_OK;
}

// Chooses the loops of implicit steps of a scene, and on the spatial grid allocates their arrays over particles; those
// of reference grids wait for the layout (cq_implicit_lay_out). CQ_OK or CQ_MEMORY.
cq_status cq_implicit_create(cq_scene *s) {
  const cq_status status = choose_loops(s);
  if (status || cq_is_reference(s->model)) return status;   // the rest waits for the layout
  const size_t matrix = (size_t)(s->model->dim * s->model->dim);
  s->implicit.tensor = cq_alloc((size_t)s->chunks * CQ_CHUNK * matrix * (matrix + 1) / 2,
                                (size_t)s->kernels->real_bytes, "implicit steps");
  s->implicit.weight = cq_alloc((size_t)s->chunks * CQ_CHUNK * (size_t)s->model->dim * 4,
                                (size_t)s->kernels->real_bytes, "implicit steps");
  s->implicit.node = cq_alloc((size_t)s->chunks * CQ_CHUNK, sizeof *s->implicit.node, "implicit steps");
  if (s->model->averages_dilatation)
    s->implicit.dilatation =
        cq_alloc((size_t)s->chunks * CQ_CHUNK * (size_t)s->kernels->implicit->dilatation_solve_fields,
                 (size_t)s->kernels->real_bytes, "dilatation");
  const int complete = s->implicit.dilatation || !s->model->averages_dilatation;
  return s->implicit.tensor && s->implicit.weight && s->implicit.node && complete ? CQ_OK : CQ_MEMORY;
}

// Frees all memory that a scene has for implicit steps.
void cq_implicit_destroy(cq_scene *s) {
  cq_free(s->implicit.loops);
  cq_free(s->implicit.tensor);
  cq_free(s->implicit.weight);
  cq_free(s->implicit.node);
  cq_free(s->implicit.dilatation);
  for (int v = 0; v < CQ_GRID_VECTORS; v++) cq_free(s->implicit.vector[v]);
  cq_free(s->implicit.block);
  cq_factor_destroy(&s->implicit.factor);
  cq_matrix_destroy(s);
  cq_coarse_destroy(s);
  for (int r = 0; r < CQ_BLOCKS_MAX; r++) {
    cq_free(s->implicit.constrained[r].node);
    cq_free(s->implicit.constrained[r].contact);
  }
}

// Makes each of the solve's vectors over nodes long enough for the scene's present grid, four reals a node (a vector
// and padding, or mass); if they grow, their contents are lost. CQ_OK or CQ_MEMORY.
static cq_status reserve_vectors(cq_scene *s) {
  if (s->implicit.capacity >= s->grid_capacity) return CQ_OK;
  s->implicit.capacity = 0;
  for (int v = 0; v < CQ_GRID_VECTORS; v++) {
    cq_free(s->implicit.vector[v]);
    s->implicit.vector[v] = cq_alloc((size_t)s->grid_capacity, 4 * (size_t)s->kernels->real_bytes, "implicit steps");
    if (!s->implicit.vector[v]) return CQ_MEMORY;
  }
  s->implicit.capacity = s->grid_capacity;
  return CQ_OK;
}

// Makes vectors over nodes, assembled matrix and coarse lattice large enough for the scene's present order of
// particles. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_reserve(cq_scene *s) {
  const cq_status status = reserve_vectors(s);
  if (status) return status;
  const cq_status matrix = cq_matrix_reserve(s);
  return matrix ? matrix : cq_coarse_reserve(s);
}

// Orders the nodes of reference grids for the Cholesky factor, and allocates it; none where it would be too large, or
// over dual numbers. CQ_OK or CQ_MEMORY.
static cq_status order_factor(cq_scene *s) {
  cq_implicit *m = &s->implicit;
  const cq_reference *r = &s->reference;
  const size_t offsets = (size_t)cq_factor_offsets(s->model->dim), matrix = (size_t)(s->model->dim * s->model->dim);
  if (!m->loops->factor_assemble) return CQ_OK;
  uint8_t *active = cq_alloc((size_t)r->node_count, 1, "implicit steps");
  if (!active) return CQ_MEMORY;
  for (int32_t k = 0; k < r->nodes_count; k++)
    for (int l = 0; l < CQ_REFERENCE_VECTOR; l++) active[r->nodes[k].node + l] = r->nodes[k].touched >> l & 1;
  const cq_status status =
      cq_factor_order(&m->factor, r->bodies, r->body_count, r->node_count, s->model->dim, active);
  cq_free(active);
  if (status || !m->factor.count) return status;
  m->block = cq_alloc(offsets * matrix * (size_t)r->node_count, (size_t)s->kernels->real_bytes, "implicit steps");
  return m->block ? CQ_OK : CQ_MEMORY;
}

// Allocates anew the arrays of implicit steps whose sizes follow from the layout of reference grids, s->grid_v and
// s->grid_q, and orders the nodes for the factor. CQ_OK or CQ_MEMORY.
cq_status cq_implicit_lay_out(cq_scene *s) {
  cq_implicit *m = &s->implicit;
  const size_t dim = (size_t)s->model->dim, matrix = dim * dim, real = (size_t)s->kernels->real_bytes;
  cq_free(m->tensor);
  cq_free(m->block);
  m->block = NULL;
  cq_free(s->grid_v);
  cq_free(s->grid_q);
  m->capacity = 0;
  s->grid_capacity = s->reference.node_count;
  m->tensor = cq_alloc((size_t)s->chunks * CQ_CHUNK * matrix * (matrix + 1) / 2, real, "implicit steps");
  s->grid_v = cq_alloc((size_t)s->grid_capacity, 4 * real, "implicit steps");
  s->grid_q = cq_alloc((size_t)s->grid_capacity, 4 * real, "implicit steps");
  cq_slice_free(s->reference.moved);
  s->reference.moved = cq_slice_create(s);
  if (!m->tensor || !s->grid_v || !s->grid_q || !s->reference.moved) return CQ_MEMORY;
  const cq_status status = reserve_vectors(s);
  return status ? status : order_factor(s);
}
