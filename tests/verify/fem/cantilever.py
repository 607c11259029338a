# cantilever: the beam of tests/verify/cantilever.lua under its own weight, by the finite elements of soft_finger.py;
# its root is held whole.
#
#   pip install scikit-fem scipy
#   python3 cantilever.py > cantilever.csv            two meshes; a quarter of a minute
import numpy as np
from skfem import LinearForm, MeshTri

import soft_finger
from soft_finger import Body, cofactor

LENGTH, HEIGHT, YOUNG, POISSON = 0.4, 0.05, 1, 0.3
SHEAR, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
STEPS = 10


def neo_hookean(f, stiffness):
    j = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
    return stiffness * (SHEAR * f + (LAMBDA * np.log(j) - SHEAR) / j * cofactor(f))


class Heavy(Body):
    def system(self, weight):
        @LinearForm
        def down(v, w):
            return -weight * np.array(v)[1]

        r, k = Body.system(self, 0)
        return r - down.assemble(self.basis), k


# Timoshenko's deflection by gravity, of density 1: gravities of the case are told by it
def timoshenko():
    plane = YOUNG / (1 - POISSON**2)
    return LENGTH**2 * (12 * LENGTH**2 / (8 * plane * HEIGHT**2) + 1 / (2 * 5 / 6 * SHEAR))


def sink(part, cells):
    mesh = MeshTri.init_tensor(np.linspace(0, LENGTH, 8 * cells + 1), np.linspace(0, HEIGHT, cells + 1))
    body = Heavy(mesh, mesh.boundary_facets(), lambda basis: np.flatnonzero(basis.doflocs[0] < 1e-9),
                 lambda x: np.ones_like(x[0]))
    weight = part * LENGTH / timoshenko()
    for k in range(STEPS):
        body.load(weight * k / STEPS, weight * (k + 1) / STEPS)
    x = body.basis.doflocs
    end = (x[0] > LENGTH - 1e-9) & (np.abs(x[1] - HEIGHT / 2) < 1e-9)
    return -body.u[end].min() / LENGTH


if __name__ == "__main__":
    soft_finger.piola = neo_hookean
    print("cells across,deflection by Timoshenko,tip lower by [length]")
    for part in (0.02, 0.5):
        for cells in (4, 8):
            print("%d,%g,%.5f" % (cells, part, sink(part, cells)), flush=True)
