#!/bin/sh
# run: cqlua env from Python: Gymnasium's own check_env, PPO of Stable-Baselines3, and what goes wrong.
#   sh tests/python/run.sh -b build [-f FOLDER]
# Both come from PyPI into a virtual environment of their own in FOLDER (build/python unless given; it stays for the
# next time). Needs python3 with venv, and the network at the first time; PyTorch without CUDA, where its own index is
# reached, else with it (3 GB).
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
folder=${folder:-$build/python}
mkdir -p "$folder"
python=$folder/venv/bin/python
if ! "$python" -c "import gymnasium, stable_baselines3" 2>/dev/null; then
  echo "installing Gymnasium and Stable-Baselines3 into $folder/venv"
  python3 -m venv --clear "$folder/venv" || { echo "run.sh: python3 has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
  pip="$python -m pip install --quiet --disable-pip-version-check"
  $pip --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu torch >"$folder/pip.log" 2>&1 || true
  $pip gymnasium stable-baselines3 >"$folder/pip.log" 2>&1 || {
    cat "$folder/pip.log" >&2
    exit 1
  }
fi
CQLUA=$build/cqlua "$python" tests/python/check.py
