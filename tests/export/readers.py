# readers: what cqlua exports, opened by programs that are not ours: NumPy, VTK, plyfile, trimesh and Python's csv. The
# folder holds what write.lua has written, and expect.json, what cqlua itself says of it.
import csv
import glob
import json
import os
import sys

import numpy
import plyfile
import trimesh
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

folder = sys.argv[1]
failures = []


def check(name, fine, said=""):
    print(f"{'ok  ' if fine else 'FAIL'} {name} {said}")
    if not fine:
        failures.append(name)


def near(a, b, tolerance=1e-5):
    a, b = numpy.asarray(a, dtype=float), numpy.asarray(b, dtype=float)
    return a.shape == b.shape and bool(numpy.all(numpy.abs(a - b) <= tolerance * (1 + numpy.abs(b))))


def vtp(path):
    reader = vtkXMLPolyDataReader()
    reader.SetFileName(path)
    reader.Update()
    assert reader.GetErrorCode() == 0, path
    return reader.GetOutput()


def surface(name, mesh, expect, tolerance=0.02):
    check(f"{name}: every edge in two faces", mesh.is_watertight and mesh.is_winding_consistent)
    volume = abs(mesh.volume) / expect["volume"] - 1
    check(f"{name}: volume of its particles", abs(volume) < tolerance, f"{100 * volume:+.2f} %")


def one(dim, expect):
    at = os.path.join(folder, f"{dim}d")
    n, points = expect["count"], numpy.array(expect["position"])
    space = numpy.hstack([points, numpy.zeros((n, 3 - dim))])

    data = vtp(os.path.join(at, "one.vtp"))
    check(f"{dim}D vtp points", near(vtk_to_numpy(data.GetPoints().GetData()), space))
    check(f"{dim}D vtp cells", data.GetNumberOfVerts() == n and data.GetNumberOfCells() == n)
    values = data.GetPointData()
    for name in ("velocity", "deformation", "cauchy", "von_mises", "young", "group"):
        check(f"{dim}D vtp {name}", values.GetArray(name) is not None)
    F = vtk_to_numpy(values.GetArray("deformation"))
    check(f"{dim}D vtp F", near(F, numpy.array(expect["deformation"]).reshape(n, dim * dim)))
    check(f"{dim}D vtp groups", near(vtk_to_numpy(values.GetArray("group")), expect["group"]))

    vertex = plyfile.PlyData.read(os.path.join(at, "one.ply"))["vertex"]
    check(f"{dim}D ply points", near(numpy.stack([vertex["x"], vertex["y"], vertex["z"]], 1), space))
    check(f"{dim}D ply F", near(vertex["deformation_xy"], numpy.array(expect["deformation"])[:, 0, 1]))
    check(f"{dim}D ply groups", near(vertex["group"], expect["group"]))

    arrays = numpy.load(os.path.join(at, "one.npz"))
    check(f"{dim}D npz F", near(arrays["deformation"], expect["deformation"]))
    check(f"{dim}D npz names", [s.decode() for s in arrays["group_names"]] == ["none", "foot", "trunk"])

    with open(os.path.join(at, "one.csv"), newline="") as file:
        rows = list(csv.reader(file))
    check(f"{dim}D csv", rows[0][:2] == ["x [length]", "y [length]"] and len(rows) == n + 1)
    check(f"{dim}D csv points", near([[float(c) for c in r[:dim]] for r in rows[1:]], points))

    for kind in ("obj", "stl", "glb", "ply"):
        path = os.path.join(at, "skin.ply" if kind == "ply" else f"one.{kind}")
        mesh = trimesh.load(path, force="mesh", process=kind == "stl")
        surface(f"{dim}D {kind}", mesh, expect)
    skin = vtp(os.path.join(at, "skin.vtp"))
    check(f"{dim}D vtp surface", skin.GetNumberOfPolys() == len(trimesh.load(os.path.join(at, "one.obj"), force="mesh").faces))


def series(dim, expect):
    at = os.path.join(folder, f"{dim}d")
    arrays = numpy.load(os.path.join(at, "all.npz"))
    frames, n = expect["frames"], expect["count"]
    check(f"{dim}D npz frames", arrays["position"].shape == (frames, n, dim) and near(arrays["position"][-1], expect["position"]))
    check(f"{dim}D npz signals", near(arrays["signals"], expect["signals"]))
    check(f"{dim}D npz forces", near(arrays["wall_force"], expect["force"]))
    with open(os.path.join(at, "all.csv"), newline="") as file:
        table = list(csv.DictReader(file))
    check(f"{dim}D csv rows", len(table) == frames - 1)
    check(f"{dim}D csv centre", near([float(table[-1]["body x [m]"])], [expect["center"][0]]))
    check(f"{dim}D csv signal", near([float(table[-1]["signal foot [1]"])], [expect["signals"][-1][0]]))
    files = sorted(glob.glob(os.path.join(at, "all", "*.vtp")))
    check(f"{dim}D pvd", len(files) == frames and open(os.path.join(at, "all.pvd")).read().count("<DataSet") == frames)
    last = vtp(files[-1])
    check(f"{dim}D vtp time", near(last.GetFieldData().GetArray("TimeValue").GetValue(0), expect["time"], 1e-12))
    check(f"{dim}D vtp last", near(vtk_to_numpy(last.GetPoints().GetData())[:, :dim], expect["position"]))
    moving(dim, at, expect)


# trimesh reads no morph targets: the file's own arrays
def moving(dim, at, expect):
    raw = open(os.path.join(at, "all.glb"), "rb").read()
    size = int.from_bytes(raw[12:16], "little")
    document, body = json.loads(raw[20:20 + size]), raw[28 + size:]

    def array(k):
        accessor = document["accessors"][k]
        view = document["bufferViews"][accessor["bufferView"]]
        width = {"SCALAR": 1, "VEC3": 3}[accessor["type"]]
        kind = {5126: "<f4", 5125: "<u4"}[accessor["componentType"]]
        return numpy.frombuffer(body, kind, accessor["count"] * width, view["byteOffset"]).reshape(-1, width)

    primitive = document["meshes"][0]["primitives"][0]
    frames = len(primitive["targets"]) + 1
    check(f"{dim}D glb frames", frames == expect["glb_frames"], frames)
    vertices = array(primitive["attributes"]["POSITION"]) + array(primitive["targets"][-1]["POSITION"])
    mesh = trimesh.Trimesh(vertices, array(primitive["indices"]).reshape(-1, 3), process=False)
    surface(f"{dim}D glb's last target", mesh, expect)
    sampler = document["animations"][0]["samplers"][0]
    weights = array(sampler["output"]).reshape(frames, frames - 1)
    check(f"{dim}D glb weights", near(weights[1:], numpy.eye(frames - 1)) and not weights[0].any())


def tensors():
    table = numpy.load(os.path.join(folder, "tensor.npy"))
    check("npy of a tensor", table.dtype == "<f8" and near(table, numpy.arange(24).reshape(2, 3, 4) / 7, 1e-16))


if len(sys.argv) > 2:          # arrays for cqlua to read
    base = numpy.arange(24).reshape(2, 3, 4)
    numpy.save(os.path.join(folder, "c.npy"), base / 7)
    numpy.save(os.path.join(folder, "fortran.npy"), numpy.asfortranarray(base / 7))
    for name in ("float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"):
        numpy.save(os.path.join(folder, f"{name}.npy"), base.astype(name))
    numpy.save(os.path.join(folder, "zero.npy"), numpy.float64(2.5))
    numpy.save(os.path.join(folder, "complex.npy"), base * 1j)
    sys.exit(0)

with open(os.path.join(folder, "expect.json")) as file:
    said = json.load(file)
for d in (2, 3):
    one(d, said[f"d{d}"])
    series(d, said[f"d{d}"])
tensors()
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
