# taichi_mpm: the same scenes on Taichi's CPU back end, in the manner of DiffTaichi (Hu et al., ICLR 2020): the state of every
# step stays in fields; the grid of a step is made again on the way back; kernels and their gradients are called step by step.
#
#   python taichi_mpm.py SCENE [--threads N] [--cache DIR] [--clock processor]
#
# Written from the equations: the MLS-MPM step with quadratic splines, neo-Hookean or fixed corotated material, a box with
# Coulomb friction, actuation along y, and the controller u = tanh(W z + b). It is asked for less than cqlua gives: gradients
# reach the states, and W and b; masses, volumes and material constants are without. Speaks as cqlua.lua does.
import argparse
import os
import sys
import time

import numpy as np

os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "0"
import taichi as ti  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("scene")
arguments.add_argument("--threads", type=int, default=0)
arguments.add_argument("--cache", help="folder where compiled kernels are kept; without, nothing is kept")
arguments.add_argument("--clock", choices=["wall", "processor"], default="wall")
arguments = arguments.parse_args()
clock = time.process_time if arguments.clock == "processor" else time.perf_counter

options = {"cpu_max_num_threads": arguments.threads} if arguments.threads > 0 else {}
if arguments.cache:
    options["offline_cache_file_path"] = arguments.cache
ti.init(arch=ti.cpu, default_fp=ti.f32, log_level=ti.ERROR, offline_cache=arguments.cache is not None, **options)
real = ti.f32

# ---- the scene ------------------------------------------------------------------------------------------------------

data = np.fromfile(arguments.scene)
head, data = data[:32], data[32:]
dim, n, steps = int(head[0]), int(head[1]), int(head[2])
cells = [int(c) for c in head[3:3 + dim]]
dx, dt, friction, inset = head[6], head[7], head[11], int(head[12])
gravity = ti.Vector([float(g) for g in head[8:8 + dim]])
corotated = head[13] == 1
young, poisson = head[14], head[15]
groups, actuators, strength, target = int(head[16]), int(head[17]), head[18], int(head[19])
direction = ti.Vector([float(d) for d in head[20:20 + dim]])
features = 2 * groups * dim
mu, la = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
inv_dx = 1 / dx


def take(*shape):
    global data
    count = int(np.prod(shape))
    out, data = data[:count].reshape(shape), data[count:]
    return out


position, velocity, masses, volumes, group_of = take(n, dim), take(n, dim), take(n), take(n), take(n).astype(np.int32)
signal_of_group = np.full(groups, -1, dtype=np.int32)
if actuators:
    signal_of_group[take(actuators).astype(int)] = np.arange(actuators)
    weights, biases = take(features, actuators), take(actuators)
group_mass = np.bincount(group_of, weights=masses, minlength=groups)

# ---- fields ---------------------------------------------------------------------------------------------------------

vector = lambda: ti.Vector.field(dim, real)  # noqa: E731
matrix = lambda: ti.Matrix.field(dim, dim, real)  # noqa: E731
x, v, C, F = vector(), vector(), matrix(), matrix()
grid_p, grid_v, grid_m = vector(), vector(), ti.field(real)
mass, volume, share, group, signal = ti.field(real), ti.field(real), ti.field(real), ti.field(ti.i32), ti.field(ti.i32)
loss = ti.field(real)

ti.root.dense(ti.i, steps + 1).dense(ti.j, n).place(x, v, C, F)
ti.root.dense(ti.ijk if dim == 3 else ti.ij, cells).place(grid_p, grid_v, grid_m)
ti.root.dense(ti.i, n).place(mass, volume, share, group, signal)
ti.root.place(loss)
if actuators:
    z, u, W, b = ti.field(real), ti.field(real), ti.field(real), ti.field(real)
    ti.root.dense(ti.ij, (steps, features)).place(z)
    ti.root.dense(ti.ij, (steps, actuators)).place(u)
    ti.root.dense(ti.ij, (features, actuators)).place(W)
    ti.root.dense(ti.i, actuators).place(b)
ti.root.lazy_grad()

# ---- the step -------------------------------------------------------------------------------------------------------


@ti.kernel
def clear_grid():
    for I in ti.grouped(grid_m):
        grid_p[I] = ti.zero(grid_p[I])
        grid_m[I] = 0.0


@ti.kernel
def clear_grid_grad():
    for I in ti.grouped(grid_m):
        grid_p.grad[I] = ti.zero(grid_p[I])
        grid_v.grad[I] = ti.zero(grid_p[I])
        grid_m.grad[I] = 0.0


# base node and weights of a particle: quadratic B-spline
@ti.func
def spline(position_of):
    base = ti.cast(ti.floor(position_of * inv_dx - 0.5), ti.i32)
    fx = position_of * inv_dx - ti.cast(base, real)
    return base, fx, [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]


# tau = P F^T
@ti.func
def kirchhoff(F_p):
    identity = ti.Matrix.identity(real, dim)
    J = F_p.determinant()
    tau = ti.Matrix.zero(real, dim, dim)
    if ti.static(corotated):
        # the rotation nearest to F, in 2D
        a, s = F_p[0, 0] + F_p[1, 1], F_p[1, 0] - F_p[0, 1]
        scale = 1.0 / ti.sqrt(a * a + s * s)
        R = ti.Matrix([[a * scale, -s * scale], [s * scale, a * scale]])
        tau = 2 * mu * (F_p - R) @ F_p.transpose() + identity * (la * (J - 1) * J)
    else:
        tau = mu * (F_p @ F_p.transpose() - identity) + identity * (la * ti.log(J))
    return tau


@ti.kernel
def p2g(s: ti.i32):
    for p in range(n):
        base, fx, w = spline(x[s, p])
        F_p = F[s, p]
        tau = kirchhoff(F_p)
        if ti.static(actuators > 0):
            if signal[p] >= 0:
                # F sigma F^T with sigma = u strength along y
                column = ti.Vector([F_p[0, 1], F_p[1, 1]])
                tau += column.outer_product(column) * (strength * u[s, signal[p]])
        affine = tau * (-4.0 * inv_dx * inv_dx * dt * volume[p]) + mass[p] * C[s, p]
        for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * dim)))):
            dpos = (ti.cast(offset, real) - fx) * dx
            weight = ti.cast(1.0, real)
            for d in ti.static(range(dim)):
                weight *= w[offset[d]][d]
            grid_p[base + offset] += weight * (mass[p] * v[s, p] + affine @ dpos)
            grid_m[base + offset] += weight * mass[p]


@ti.kernel
def grid_op():
    for I in ti.grouped(grid_m):
        v_out = ti.Vector.zero(real, dim)
        # the gradient divides by the square of the mass, which must not vanish in float32
        if grid_m[I] > 1e-18:
            v_out = grid_p[I] / grid_m[I] + dt * gravity
            # the sides of the box, one axis after the other
            for d in ti.static(range(dim)):
                normal = ti.Vector([1.0 if k == d else 0.0 for k in range(dim)])
                if I[d] >= cells[d] - inset:
                    normal = -normal
                if I[d] <= inset or I[d] >= cells[d] - inset:
                    lin = v_out.dot(normal)
                    if lin < 0:
                        slide = v_out - lin * normal
                        # the tiny number keeps 0 / 0 out of the gradient of the root
                        speed = ti.sqrt(slide.dot(slide) + 1e-20)
                        if speed + friction * lin <= 0:
                            v_out = ti.zero(v_out)
                        else:
                            v_out = (1.0 + friction * lin / speed) * slide
        grid_v[I] = v_out


@ti.kernel
def g2p(s: ti.i32):
    for p in range(n):
        base, fx, w = spline(x[s, p])
        new_v = ti.Vector.zero(real, dim)
        new_C = ti.Matrix.zero(real, dim, dim)
        for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * dim)))):
            dpos = (ti.cast(offset, real) - fx) * dx
            weight = ti.cast(1.0, real)
            for d in ti.static(range(dim)):
                weight *= w[offset[d]][d]
            node = grid_v[base + offset]
            new_v += weight * node
            new_C += 4.0 * inv_dx * inv_dx * weight * node.outer_product(dpos)
        v[s + 1, p] = new_v
        C[s + 1, p] = new_C
        F[s + 1, p] = (ti.Matrix.identity(real, dim) + dt * new_C) @ F[s, p]
        x[s + 1, p] = x[s, p] + dt * new_v


# ---- controller and loss --------------------------------------------------------------------------------------------


@ti.kernel
def clear_features():
    for I in ti.grouped(z):
        z[I] = 0.0


@ti.kernel
def observe(s: ti.i32):
    for p in range(n):
        for d in ti.static(range(dim)):
            z[s, group[p] * dim + d] += share[p] * x[s, p][d]
            z[s, (groups + group[p]) * dim + d] += share[p] * v[s, p][d]


@ti.kernel
def act(s: ti.i32):
    for a in range(actuators):
        total = b[a]
        for k in ti.static(range(features)):
            total += W[k, a] * z[s, k]
        u[s, a] = ti.tanh(total)


@ti.kernel
def compute_loss():
    for p in range(n):
        if group[p] == target:
            loss[None] += share[p] * direction.dot(x[steps, p])


# ---- there and back -------------------------------------------------------------------------------------------------


def forward():
    if actuators:
        clear_features()
    for s in range(steps):
        if actuators:
            observe(s)
            act(s)
        clear_grid()
        p2g(s)
        grid_op()
        g2p(s)
    loss[None] = 0.0
    compute_loss()


def backward():
    ti.ad.clear_all_gradients()
    loss.grad[None] = 1.0
    compute_loss.grad()
    for s in reversed(range(steps)):
        clear_grid()
        clear_grid_grad()
        p2g(s)
        grid_op()
        g2p.grad(s)
        grid_op.grad()
        p2g.grad(s)
        if actuators:
            act.grad(s)
            observe.grad(s)


@ti.kernel
def gather_start(out_x: ti.types.ndarray(), out_v: ti.types.ndarray()):
    for p in range(n):
        for d in ti.static(range(dim)):
            out_x[p, d] = x.grad[0, p][d]
            out_v[p, d] = v.grad[0, p][d]


def gradients():
    if actuators:
        return [W.grad.to_numpy(), b.grad.to_numpy()]
    out = np.empty((n, dim), dtype=np.float32), np.empty((n, dim), dtype=np.float32)
    gather_start(*out)
    return list(out)


@ti.kernel
def set_start(position_0: ti.types.ndarray(), velocity_0: ti.types.ndarray()):
    for p in range(n):
        for d in ti.static(range(dim)):
            x[0, p][d] = position_0[p, d]
            v[0, p][d] = velocity_0[p, d]
        C[0, p] = ti.Matrix.zero(real, dim, dim)
        F[0, p] = ti.Matrix.identity(real, dim)


def set_up():
    set_start(position.astype(np.float32), velocity.astype(np.float32))
    mass.from_numpy(masses.astype(np.float32))
    volume.from_numpy(volumes.astype(np.float32))
    share.from_numpy((masses / group_mass[group_of]).astype(np.float32))
    group.from_numpy(group_of)
    signal.from_numpy(signal_of_group[group_of])
    if actuators:
        W.from_numpy(weights.astype(np.float32))
        b.from_numpy(biases.astype(np.float32))


def run():
    start = clock()
    forward()
    ti.sync()
    turn = clock()
    backward()
    result = [np.array([loss[None]]), *gradients()]
    return turn - start, clock() - turn, result


set_up()
_, _, result = run()
print("first %.9g" % result[0][0], flush=True)
for line in sys.stdin:
    words = line.split()
    if words and words[0] == "save":
        np.concatenate([part.ravel().astype(np.float64) for part in result]).tofile(words[1])
        print("saved", flush=True)
    elif words == ["run"]:
        forward_s, backward_s, result = run()
        print("time %.9f %.9f" % (forward_s, backward_s), flush=True)
    else:
        break
