#!/bin/sh
# run: what cqlua exports, opened by NumPy, VTK, plyfile and trimesh, and NumPy's arrays read by cqlua.
#   sh tests/export/run.sh -b build [-f FOLDER]
# The readers come from PyPI into a virtual environment of their own in FOLDER (build/export unless given; it stays for
# the next time). Needs python3 with venv, and the network at the first time.
set -eu
build=build
folder=
while getopts b:f: option; do
  case $option in
    b) build=$OPTARG ;;
    f) folder=$OPTARG ;;
    *) exit 2 ;;
  esac
done
folder=${folder:-$build/export}
mkdir -p "$folder/files"
python=$folder/venv/bin/python
if ! "$python" -c "import numpy, plyfile, trimesh, vtkmodules" 2>/dev/null; then
  echo "installing the readers into $folder/venv"
  python3 -m venv --clear "$folder/venv" || { echo "run.sh: python3 has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
  "$python" -m pip install --quiet --disable-pip-version-check "numpy<3" plyfile trimesh networkx vtk >"$folder/pip.log" 2>&1 || {
    cat "$folder/pip.log" >&2
    exit 1
  }
fi
"$build/cqlua" --quiet tests/export/write.lua --folder "$folder/files"
"$python" tests/export/readers.py "$folder/files"
"$python" tests/export/readers.py "$folder/files" arrays
"$build/cqlua" tests/export/read.lua --folder "$folder/files"
