# newton_mpm: the falling cube of a scene file by Newton's implicit MPM, on one thread.
#
#   python newton_mpm.py SCENE --dt 0.005 --tolerance 1e-4 --duration 0.1
#
# Speaks as cqlua.lua does; "run" answers processor time, and 0 for the way back, which this solver has not. The material
# is Newton's own elastic one of the same constants, the floor a plane of the same friction.
import argparse
import sys
import time

import numpy as np
import warp as wp

arguments = argparse.ArgumentParser()
arguments.add_argument("scene")
arguments.add_argument("--dt", type=float, required=True)
arguments.add_argument("--tolerance", type=float, required=True)
arguments.add_argument("--duration", type=float, required=True)
arguments = arguments.parse_args()

wp.config.quiet = True
import newton  # noqa: E402
from newton.solvers import SolverImplicitMPM  # noqa: E402

data = np.fromfile(arguments.scene)
head, data = data[:32], data[32:]
dim, n, dx = int(head[0]), int(head[1]), head[6]
position, velocity = data[:n * dim].reshape(n, dim), data[n * dim:2 * n * dim].reshape(n, dim)
mass, volume = data[2 * n * dim:2 * n * dim + n], data[2 * n * dim + n:2 * n * dim + 2 * n]
floor = head[12] * dx

with wp.ScopedDevice("cpu"):
    builder = newton.ModelBuilder(up_axis=newton.Axis.Y)
    SolverImplicitMPM.register_custom_attributes(builder)
    start = position - np.array([0, floor, 0])
    builder.add_particles(pos=start.tolist(), vel=velocity.tolist(), mass=mass.tolist(),
                          radius=(0.5 * volume ** (1 / 3)).tolist())
    builder.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=head[11]))
    model = builder.finalize()
    model.set_gravity(tuple(head[8:11]))
    model.mpm.young_modulus.fill_(head[14])
    model.mpm.poisson_ratio.fill_(head[15])
    model.mpm.tensile_yield_ratio.fill_(1.0)
    solver = SolverImplicitMPM(model, config=SolverImplicitMPM.Config(
        voxel_size=dx, tolerance=arguments.tolerance, air_drag=0.0))
steps = round(arguments.duration / arguments.dt)


def run():
    with wp.ScopedDevice("cpu"):
        state, other = model.state(), model.state()
        begin = time.process_time()
        for _ in range(steps):
            solver.step(state, other, None, None, arguments.dt)
            state, other = other, state
        spent = time.process_time() - begin
    return spent, state.particle_q.numpy().mean(axis=0)[1] + floor


_, height = run()
print("first %.9g" % height, flush=True)
for line in sys.stdin:
    if line.split() != ["run"]:
        break
    spent, height = run()
    print("time %.9f 0" % spent, flush=True)
