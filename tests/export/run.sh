#!/bin/sh
# run: what cqlua exports, opened by NumPy, VTK, plyfile and trimesh, and NumPy's arrays read by cqlua.
#   sh tests/export/run.sh -b build [-f FOLDER]        as tests/python/venv.sh says
set -eu
. tests/python/venv.sh
venv export "numpy, plyfile, trimesh, vtkmodules" "numpy<3 plyfile trimesh networkx vtk" "$@"
mkdir -p "$folder/files"
"$build/cqlua" --quiet tests/export/write.lua --folder "$folder/files"
"$python" tests/export/readers.py "$folder/files"
"$python" tests/export/readers.py "$folder/files" arrays
"$build/cqlua" tests/export/read.lua --folder "$folder/files"
