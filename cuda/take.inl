// take: states of scenes of one rollout, or their adjoints, go over into another rollout. A thread of `to` takes from
// all scenes that are listed for its own, in their order, so that sums have the same bits always.

// Copies `count` numbers that lie `apart` numbers from each other, adds them to `to`, or clears `to`, by mode
// (CQ_TAKE_...).
CQ_GPU void take_reals(const int32_t mode, const real *from, real *to, const int32_t count, const int32_t apart) {
  for (int32_t f = 0; f < count; f++) {
    const real before = mode == CQ_TAKE_ADD ? to[f * apart] : (real)0;
    to[f * apart] = mode == CQ_TAKE_CLEAR ? (real)0 : before + from[f * apart];
  }
}

// Kernel: takes fields and internal variables of particles over, for each particle of `to` from all scenes that are
// listed for its own.
CQ_KERNEL take_slots(const cq_taking t) {
  SLOTS_EACH(p, t.slots) {
    const int32_t id = t.order[p], scene = id / t.particles;
    for (int32_t k = t.first[scene]; k < t.first[scene + 1]; k++) {
      const int32_t was = t.mode == CQ_TAKE_CLEAR ? p : t.slot_of[t.scene[k] * t.particles + id % t.particles];
      CQ_UNROLL for (int a = 0; a < 2; a++) {
        if (!t.fields[a]) continue;
        real *to = slot_in(t.to[a], t.fields[a], p);
        take_reals(t.mode, t.mode == CQ_TAKE_CLEAR ? to : slot_in(t.from[a], t.fields[a], was), to, t.fields[a],
                   CQ_GROUP);
      }
    }
  }
}

// Kernel: takes displacements and velocities of nodes of reference grids over, for each node of `to` from all scenes
// that are listed for its own.
CQ_KERNEL take_nodes(const cq_taking t) {
  SLOTS_EACH(node, t.nodes_to) {
    const int32_t scene = t.node_scene[node / CQ_TILE_NODES];
    for (int32_t k = t.first[scene]; k < t.first[scene + 1]; k++) {
      const int32_t was = t.mode == CQ_TAKE_CLEAR ? node : node - t.first_to[scene] + t.first_from[t.scene[k]];
      for (int32_t half = 0; half < 2; half++) {
        Node *to = (Node *)t.node_to + half * t.nodes_to + node;
        const Node *from = t.mode == CQ_TAKE_CLEAR ? to : (const Node *)t.node_from + half * t.nodes_from + was;
        take_reals(t.mode, from->c, to->c, 4, 1);
      }
    }
  }
}
