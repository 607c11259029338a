#!/bin/sh
# run.sh: cqlua beside Taichi, in DiffTaichi's manner, and beside plain C: the same scenes, in turn, on this machine.
#
#   tests/bench/peers/run.sh [--keep DIR] [--out FILE.csv] [--cases 2d-1600,walker] [--repeats 7]
#   [--steps N] [--threads N] [--quick]
#
# Installs Taichi from PyPI into a throw-away environment (about 60 MB are fetched; --keep DIR keeps it there
# for the next time), compiles scalar.c, and hands the other options to compare.py. Needs python3 with venv,
# a C compiler and build/cqlua.
set -eu

TAICHI=1.7.4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cqlua=${CQLUA:-$root/build/cqlua}
compiler=${CC:-cc}

keep=
if [ "${1:-}" = --keep ]; then
  [ $# -ge 2 ] || { echo "run.sh: --keep needs a folder" >&2; exit 2; }
  keep=$2
  shift 2
fi

[ -x "$cqlua" ] || { echo "run.sh: $cqlua is missing; build it with make" >&2; exit 1; }
command -v python3 >/dev/null || { echo "run.sh: python3 is missing" >&2; exit 1; }
command -v "$compiler" >/dev/null || { echo "run.sh: the C compiler $compiler is missing" >&2; exit 1; }

if [ -n "$keep" ]; then
  mkdir -p "$keep"
  folder=$(cd "$keep" && pwd)
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT TERM
fi

python=$folder/venv/bin/python
if ! "$python" -c "import taichi, sys; sys.exit(taichi.__version__ != tuple(map(int, '$TAICHI'.split('.'))))" >/dev/null 2>&1; then
  echo "installing Taichi $TAICHI into $folder/venv"
  python3 -m venv --clear "$folder/venv" || { echo "run.sh: python3 has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
  "$python" -m pip install --quiet --disable-pip-version-check "taichi==$TAICHI" "numpy<3" >"$folder/pip.log" 2>&1 || {
    cat "$folder/pip.log" >&2
    echo "run.sh: Taichi $TAICHI could not be installed for $(python3 --version)" >&2
    exit 1
  }
fi

flags="-std=c11 -O3 -march=native -ffp-contract=fast"
for dim in 2 3; do
  "$compiler" $flags -DDIM=$dim "$here/scalar.c" -lm -o "$folder/scalar${dim}d"
done

cd "$root"
"$python" "$here/compare.py" --cqlua "$cqlua" --folder "$folder" --compiler "$("$compiler" --version | head -n 1), $flags" \
  --command "tests/bench/peers/run.sh $*" "$@"
