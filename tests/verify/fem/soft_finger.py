# soft_finger: the finger of scenes/soft_finger.lua in the plane by finite elements: quadratic triangles, total
# Lagrangian, a follower pressure in the chambers. Proven on Lame's ring first.
#
#   pip install scikit-fem scipy
#   python3 soft_finger.py > soft_finger.csv          two meshes, clamped at 6 and at 8 mm; a minute
#
# Units: mm and kPa. The law is Mooney's and Rivlin's with isochoric invariants and J U' = K / 2 (J^2 - 1), in plane
# strain, as engine/physics/EQUATIONS.md has it (E31, E32).
import sys

import numpy as np
from skfem import Basis, BilinearForm, ElementTriP2, ElementVector, FacetBasis, Functional, LinearForm, MeshTri, \
    condense, solve
from skfem.helpers import ddot, grad

C10, C01 = 23.028, 1.19
BULK = 20 * 2 * (C10 + C01)
LENGTH, HEIGHT, BASE, TIP = 80, 16, 2, 76
CHAMBERS = [(10 + 8 * k, 6, 4, 6) for k in range(8)]   # x, y, width, height


def cofactor(f):
    return np.array([[f[1, 1], -f[1, 0]], [-f[0, 1], f[0, 0]]])


def product(a, b):
    return np.einsum("ik...,kj...->ij...", a, b)


def piola(f, stiffness):
    cof = cofactor(f)
    c = product(np.swapaxes(f, 0, 1), f)
    j = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
    i1 = c[0, 0] + c[1, 1] + 1
    i2 = (i1**2 - (c[0, 0]**2 + c[1, 1]**2 + 2 * c[0, 1]**2 + 1)) / 2
    first = 2 * j**(-2 / 3) * f - 2 / 3 * i1 * j**(-5 / 3) * cof
    second = 2 * j**(-4 / 3) * (i1 * f - product(f, c)) - 4 / 3 * i2 * j**(-7 / 3) * cof
    return stiffness * (C10 * first + C01 * second + BULK / 2 * (j - 1 / j) * cof)


def tangent(f, stiffness):
    h, out = 1e-6, np.zeros((2, 2) + f.shape)
    for k in range(2):
        for l in range(2):
            d = np.zeros_like(f)
            d[k, l] = h
            out[:, :, k, l] = (piola(f + d, stiffness) - piola(f - d, stiffness)) / (2 * h)
    return out


def deformation(u):
    g = np.array(grad(u))
    g[0, 0] = g[0, 0] + 1
    g[1, 1] = g[1, 1] + 1
    return g


class Body:
    def __init__(self, mesh, walls, held, stiffness):
        element = ElementVector(ElementTriP2())
        self.basis = Basis(mesh, element, intorder=4)
        self.walls = FacetBasis(mesh, element, facets=walls, intorder=4)
        self.held = held(self.basis)
        self.stiffness = stiffness
        self.u = np.zeros(self.basis.N)

    # residual of the balance, and its derivative
    def system(self, pressure):
        stiffness = self.stiffness

        @LinearForm
        def inner(v, w):
            return ddot(piola(deformation(w["u"]), stiffness(w.x)), grad(v))

        @BilinearForm
        def slope(du, v, w):
            a = tangent(deformation(w["u"]), stiffness(w.x))
            return np.einsum("ijkl...,ij...,kl...->...", a, np.array(grad(v)), np.array(grad(du)))

        @LinearForm
        def push(v, w):
            return -pressure * np.einsum("ij...,j...,i...->...", cofactor(deformation(w["u"])), w.n, np.array(v))

        @BilinearForm
        def push_slope(du, v, w):
            return -pressure * np.einsum("ij...,j...,i...->...", cofactor(np.array(grad(du))), w.n, np.array(v))

        at, on = self.basis.interpolate(self.u), self.walls.interpolate(self.u)
        r = inner.assemble(self.basis, u=at) - push.assemble(self.walls, u=on)
        k = slope.assemble(self.basis, u=at) - push_slope.assemble(self.walls, u=on)
        return r, k

    def settle(self, pressure):
        for _ in range(40):
            r, k = self.system(pressure)
            step = solve(*condense(k, -r, D=self.held))
            self.u += step
            if np.abs(step).max() < 1e-9 * max(1, np.abs(self.u).max()):
                return
        raise RuntimeError("Newton's method came to no end at %g kPa" % pressure)

    # the area of the chambers, by the flux of the place through their walls: N points out of the solid
    def chambers(self):
        @Functional
        def flux(w):
            y = w.x + np.array(w["u"])
            return -np.einsum("i...,ij...,j...->...", y, cofactor(deformation(w["u"])), w.n) / 2

        return flux.assemble(self.walls, u=self.walls.interpolate(self.u))

    # the mean of the displacement down, over where `inside` is 1
    def drop(self, inside):
        @Functional
        def sum_of(w):
            return -np.array(w["u"])[1] * inside(w.x)

        @Functional
        def area(w):
            return inside(w.x)

        at = self.basis.interpolate(self.u)
        return sum_of.assemble(self.basis, u=at) / area.assemble(self.basis, u=at)


def finger(cells, clamp):
    mesh = MeshTri.init_tensor(np.linspace(0, LENGTH, LENGTH * cells + 1), np.linspace(0, HEIGHT, HEIGHT * cells + 1))
    middle = mesh.p[:, mesh.t].mean(axis=1)
    hollow = np.zeros(middle.shape[1], dtype=bool)
    for x, y, w, h in CHAMBERS:
        hollow |= (middle[0] > x) & (middle[0] < x + w) & (middle[1] > y) & (middle[1] < y + h)
    mesh = mesh.remove_elements(np.flatnonzero(hollow))
    facets = mesh.boundary_facets()
    at = mesh.p[:, mesh.facets[:, facets]].mean(axis=1)
    outside = (at[0] < 1e-6) | (at[0] > LENGTH - 1e-6) | (at[1] < 1e-6) | (at[1] > HEIGHT - 1e-6)
    return Body(mesh, facets[~outside], lambda basis: np.flatnonzero(basis.doflocs[0] <= clamp + 1e-9),
                lambda x: np.where(x[1] < BASE, 10.0, 1.0))


# A ring, of which a quarter is enough: growth of its hole by Lame's closed form for small strains.
def ring(pressure):
    inner, outer, n = 1.0, 1.6, 12
    mesh = MeshTri.init_tensor(np.linspace(inner, outer, n + 1), np.linspace(0, np.pi / 2, 3 * n + 1))
    facets = mesh.boundary_facets()
    at = mesh.p[:, mesh.facets[:, facets]].mean(axis=1)
    walls = facets[at[0] < inner + 1e-9]
    r, a = mesh.p
    mesh = MeshTri(np.array([r * np.cos(a), r * np.sin(a)]), mesh.t)

    def held(basis):
        x = basis.doflocs
        axis = np.zeros(basis.N, dtype=int)
        for i in range(2):
            for k in (basis.nodal_dofs, basis.facet_dofs):
                axis[k[i]] = i
        return np.flatnonzero(((axis == 0) & (np.abs(x[0]) < 1e-9)) | ((axis == 1) & (np.abs(x[1]) < 1e-9)))

    body = Body(mesh, walls, held, lambda x: np.ones_like(x[0]))
    before = body.chambers()
    body.settle(pressure)
    # both ends of the quarter's wall lie on the axes, through which the place has no flux
    shear, nu = 2 * (C10 + C01), (3 * BULK - 4 * (C10 + C01)) / (2 * (3 * BULK + 2 * (C10 + C01)))
    exact = pressure * inner**2 / (2 * shear * (outer**2 - inner**2)) * ((1 - 2 * nu) + outer**2 / inner**2)
    return (body.chambers() / before)**0.5 - 1, exact


if __name__ == "__main__":
    grown, exact = ring(1e-3)
    print("cells a mm,clamp [mm],pressure [kPa],tip lower by [mm],chambers by their first area")
    sys.stderr.write("ring: growth %.6g, Lame %.6g\n" % (grown, exact))
    for cells, clamp in ((1, 6), (2, 6), (2, 8)):
        body = finger(cells, clamp)
        before = body.chambers()
        for pressure in np.arange(2.5, 20.1, 2.5):   # each from the one before: Newton's method fails over longer ways
            body.settle(pressure)
            if pressure % 5:
                continue
            print("%d,%d,%g,%.4f,%.4f" % (cells, clamp, pressure, body.drop(lambda x: x[0] > TIP),
                                          body.chambers() / before), flush=True)
