# genesis_mpm: the falling cube of a scene file by Genesis's explicit MPM on its CPU back end, on one thread.
#
#   python genesis_mpm.py SCENE [--gradient]
#
# Speaks as cqlua.lua does; "run" answers processor time, forward and, with --gradient, of the way back to initial
# positions. The scene's law is neo-Hookean in both; Genesis's box has no friction, and so has the scene's.
import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("QD_CPU_MAX_NUM_THREADS", "1")
os.environ.setdefault("PYOPENGL_PLATFORM", "egl")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import genesis as gs  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("scene")
arguments.add_argument("--gradient", action="store_true")
arguments = arguments.parse_args()

torch.set_num_threads(1)
gs.init(backend=gs.cpu, precision="32", logging_level="error")
data = np.fromfile(arguments.scene)
head, data = data[:32], data[32:]
dim, n, steps, dx = int(head[0]), int(head[1]), int(head[2]), head[6]
position, velocity = data[:n * dim].reshape(n, dim), data[n * dim:2 * n * dim].reshape(n, dim)
mass, volume = data[2 * n * dim:2 * n * dim + n], data[2 * n * dim + n:2 * n * dim + 2 * n]

size = tuple(float(c * dx) for c in head[3:6])
scene = gs.Scene(
    sim_options=gs.options.SimOptions(dt=float(head[7]), substeps=1, gravity=tuple(float(g) for g in head[8:11]),
                                      substeps_local=steps, requires_grad=arguments.gradient),
    mpm_options=gs.options.MPMOptions(grid_density=1 / dx, particle_size=float(volume[0] ** (1 / 3)),
                                      lower_bound=(0.0, 0.0, 0.0), upper_bound=size),
    show_viewer=False)
low, high = position.min(axis=0), position.max(axis=0)
side = n ** (1 / 3) * volume[0] ** (1 / 3)
cube = scene.add_entity(
    morph=gs.morphs.Box(pos=tuple((low + high) / 2), size=(side, side, side)),
    material=gs.materials.MPM.Elastic(E=float(head[14]), nu=float(head[15]), rho=float(mass[0] / volume[0]),
                                      model="neohooken", sampler="regular"))
scene.build(n_envs=0)
if cube.n_particles != n:
    sys.exit("genesis_mpm.py: Genesis made %d particles, and the scene has %d" % (cube.n_particles, n))


def run():
    scene.reset()
    start = torch.tensor(position, dtype=torch.float32, requires_grad=arguments.gradient)
    cube.set_position(start)
    cube.set_velocity(torch.tensor(velocity, dtype=torch.float32))
    begin = time.process_time()
    for _ in range(steps):
        scene.step()
    at = cube.get_state().pos
    loss = at.mean(dim=-2).sum()
    turn = time.process_time()
    if not arguments.gradient:
        return turn - begin, 0, float(loss)
    loss.backward()
    return turn - begin, time.process_time() - turn, float(loss.detach())


loss = run()[2]
print("first %.9g" % loss, flush=True)
for line in sys.stdin:
    if line.split() != ["run"]:
        break
    print("time %.9f %.9f" % run()[:2], flush=True)
