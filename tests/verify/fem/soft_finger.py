# soft_finger: the finger of scenes/soft_finger.lua in the plane by finite elements: quadratic triangles, total
# Lagrangian, a follower pressure in the chambers. Its proofs go to stderr: Lame's ring (to 3e-5 of the growth of its
# hole) and Timoshenko's cantilever (to 0.2 % of its deflection).
#
#   pip install scikit-fem scipy
#   python3 soft_finger.py > soft_finger.csv          two meshes, clamped at 6 and at 8 mm; three minutes
#
# With three cells a mm (a mesh more in the last lines) the tip moves by 0.5 to 0.7 % more than with two. Newton's method
# goes from pressure to pressure by steps that halve where it fails.
#
# Units: mm and kPa. The law is Mooney's and Rivlin's with isochoric invariants and J U' = K / 2 (J^2 - 1), in plane
# strain, as engine/physics/EQUATIONS.md has it (E31, E32).
import sys

import numpy as np
from skfem import Basis, BilinearForm, ElementTriP2, ElementVector, FacetBasis, Functional, LinearForm, MeshTri, \
    condense, solve
from skfem.helpers import grad

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
        at, on = self.basis.interpolate(self.u), self.walls.interpolate(self.u)
        f, stiffness = deformation(at), self.stiffness(np.array(self.basis.global_coordinates()))
        stress, slopes, area = piola(f, stiffness), tangent(f, stiffness), cofactor(deformation(on))

        @LinearForm
        def inner(v, w):
            return np.einsum("ij...,ij...->...", stress, np.array(grad(v)))

        @BilinearForm
        def slope(du, v, w):
            return np.einsum("ijkl...,ij...,kl...->...", slopes, np.array(grad(v)), np.array(grad(du)))

        @LinearForm
        def push(v, w):
            return -pressure * np.einsum("ij...,j...,i...->...", area, w.n, np.array(v))

        @BilinearForm
        def push_slope(du, v, w):
            return -pressure * np.einsum("ij...,j...,i...->...", cofactor(np.array(grad(du))), w.n, np.array(v))

        r = inner.assemble(self.basis) - push.assemble(self.walls)
        k = slope.assemble(self.basis) - push_slope.assemble(self.walls)
        return r, k

    # Newton's method; False, with the displacement as it was, where it does not converge
    def balance(self, pressure):
        before = self.u.copy()
        for _ in range(12):
            r, k = self.system(pressure)
            step = solve(*condense(k, -r, D=self.held))
            if not np.abs(step).max() < 5:
                break
            self.u += step
            if np.abs(step).max() < 1e-9 * max(1, np.abs(self.u).max()):
                return True
        self.u = before
        return False

    # from one pressure to another, by steps that halve where Newton's method fails
    def load(self, start, end):
        step = end - start
        while start < end:
            if self.balance(min(start + step, end)):
                start = min(start + step, end)
            else:
                step /= 2
                if step < 1e-3:
                    raise RuntimeError("no balance beyond %g kPa" % start)

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
    body.load(0, pressure)
    # both ends of the quarter's wall lie on the axes, through which the place has no flux
    shear, nu = 2 * (C10 + C01), (3 * BULK - 4 * (C10 + C01)) / (2 * (3 * BULK + 2 * (C10 + C01)))
    exact = pressure * inner**2 / (2 * shear * (outer**2 - inner**2)) * ((1 - 2 * nu) + outer**2 / inner**2)
    return (body.chambers() / before)**0.5 - 1, exact


# a cantilever of length 20 and height 1 under a small pressure on its top, beside Timoshenko's beam in plane strain
def cantilever(pressure):
    length = 20
    mesh = MeshTri.init_tensor(np.linspace(0, length, 4 * length + 1), np.linspace(0, 1, 5))
    facets = mesh.boundary_facets()
    top = facets[mesh.p[1, mesh.facets[:, facets]].mean(axis=0) > 1 - 1e-9]
    def held(basis):                       # the root may grow thicker, as Timoshenko's does
        x, at_root = basis.doflocs, np.abs(basis.doflocs[0]) < 1e-9
        along = np.zeros(basis.N, dtype=bool)
        for dofs in (basis.nodal_dofs, basis.facet_dofs):
            along[dofs[0]] = True
        return np.flatnonzero(at_root & (along | (np.abs(x[1] - 0.5) < 1e-9)))

    body = Body(mesh, top, held, lambda x: np.ones_like(x[0]))
    body.load(0, pressure)
    shear = 2 * (C10 + C01)
    nu = (3 * BULK - 2 * shear) / (2 * (3 * BULK + shear))
    plane = 2 * shear * (1 + nu) / (1 - nu**2)
    x = body.basis.doflocs
    end = (x[0] > length - 1e-9) & (np.abs(x[1] - 0.5) < 1e-9)
    return -body.u[end].min(), pressure * (length**4 * 12 / (8 * plane) + length**2 / (2 * 5 / 6 * shear))


if __name__ == "__main__":
    for name, proof in (("ring: growth", ring(1e-3)), ("cantilever: deflection", cantilever(1e-5))):
        sys.stderr.write("%s %.6g, closed form %.6g\n" % ((name,) + proof))
    print("cells a mm,clamp [mm],pressure [kPa],tip lower by [mm],chambers by their first area")
    for cells, clamp in ((1, 6), (2, 6), (2, 8)):
        body, before = finger(cells, clamp), 0
        area = body.chambers()
        for pressure in (5, 10, 15, 20):
            body.load(before, pressure)
            before = pressure
            print("%d,%d,%g,%.4f,%.4f" % (cells, clamp, pressure, body.drop(lambda x: x[0] > TIP),
                                          body.chambers() / area), flush=True)
