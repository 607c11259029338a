#!/bin/sh
# Everything that needs a real GPU, in about ten minutes: builds the device for it, holds it against the CPU, lets NVIDIA's
# sanitizer watch, and measures.      make gpu-check, or sh tests/cuda/gpu-check.sh [build]
#
# Needs gcc, make and nvcc; what needs Lua runs only where the program can be built. Each stage stands alone: one that fails does not
# hide the next. Logs lie in build/gpu-check, speeds in tests/bench/<name of the GPU>.csv. The exit code is 1 if any stage failed.
set -u
cd "$(dirname "$0")/../.."
build=${1:-build}
make=${MAKE:-make}
logs=$build/gpu-check
failed=0
passed=0

nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "gpu-check: no NVIDIA GPU was found on this machine (nvidia-smi lists none); nothing was checked" >&2
  exit 1
fi
if [ -z "$nvcc" ]; then
  echo "gpu-check: nvcc was not found; install the CUDA Toolkit, or say where it is with NVCC=...; nothing was checked" >&2
  exit 1
fi
PATH=$PATH:$(dirname "$nvcc")
export PATH
mkdir -p "$logs"
export CQLUA_CUDA="${CQLUA_CUDA:-$(cd "$build" && pwd)/cqlua-cuda.so}"   # another one, to try this script without a GPU

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
file=tests/bench/$(echo "$gpu" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
echo "$gpu, driver $driver, compute capability $arch, $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/CUDA \1/p'), $(date -u +%Y-%m-%d)"

# stage NAME SECONDS COMMAND...: runs it, tells how it ended, and shows the last lines of what failed
stage() {
  name=$1
  seconds=$2
  shift 2
  began=$(date +%s)
  if timeout -k 10 "$seconds" "$@" >"$logs/$name.log" 2>&1; then
    passed=$((passed + 1))
    printf 'ok      %-22s %4d s  %s\n' "$name" $(($(date +%s) - began)) "$(tail -n 1 "$logs/$name.log" | cut -c1-100)"
  else
    code=$?
    failed=$((failed + 1))
    printf 'FAILED  %-22s %4d s  exit code %d, %s/%s.log\n' "$name" $(($(date +%s) - began)) $code "$logs" "$name"
    tail -n 12 "$logs/$name.log" | sed 's/^/          /'
  fi
}

skip() { printf 'skipped %-22s %s\n' "$1" "$2"; }

targets="$build/cqlua-cuda.so $build/tests/cuda/parity $build/tests/bench/speed"
for name in batch gradient health memo rollout32 rollout_dual walls; do targets="$targets $build/tests/$name"; done
# shellcheck disable=SC2086
stage build 400 $make --no-print-directory BUILD="$build" NVCC="$nvcc" CUDA_ARCHS="$arch" $targets
stage parity 240 "$build/tests/cuda/parity"
for name in batch gradient health memo rollout32 rollout_dual walls; do
  stage "$name" 60 env CQLUA_TEST_DEVICE=cuda "$build/tests/$name"
done
for name in gradient health; do
  stage "$name-launches" 60 env CQLUA_TEST_DEVICE=cuda CQLUA_CUDA_RUN=launches "$build/tests/$name"
done
stage speed 120 "$build/tests/bench/speed" --csv "$logs/speed.csv"
if grep -q cuda "$logs/speed.csv" 2>/dev/null; then
  { echo "# $gpu, driver $driver, $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p'); $(date -u +%Y-%m-%d); make gpu-check"
    cat "$logs/speed.csv"; } >"$file.csv"
  cut -c1-120 "$logs/speed.log" | sed 's/^/        /'
  echo "        speeds: $file.csv"
fi

# small scenes once more in each way that a run of substeps has over the GPU, for the rule that chooses one (gang_of in cuda/run.cu)
rows=$logs/ways.csv
: >"$rows"
for scene in 2d-1600 2d-6400 3d-8000; do
  for way in launches grid cluster; do
    [ $way = cluster ] && [ "$arch" -lt 90 ] && continue
    rm -f "$logs/way.csv"
    stage "speed-$scene-$way" 60 env CQLUA_CUDA_RUN=$way "$build/tests/bench/speed" --case $scene --csv "$logs/way.csv"
    [ -s "$rows" ] || sed -n 's/^case,/run,case,/p' "$logs/way.csv" >"$rows"
    sed -n "s/^\"/\"$way\",\"/p" "$logs/way.csv" >>"$rows"
    sed -n '3,$p' "$logs/speed-$scene-$way.log" | cut -c1-120 | sed "s/^/        $way  /"
  done
done
grep -q cuda "$rows" && cp "$rows" "$file-ways.csv" && echo "        speeds by way: $file-ways.csv"

# a few substeps of small scenes, in every way, with everything in them: the sanitizer makes kernels a hundred times slower
if command -v compute-sanitizer >/dev/null; then
  for pair in "memcheck 2D all walls" "memcheck 3D batch" "memcheck 3D float32 fast" "racecheck 3D float32 fast" "racecheck 2D batch" \
    "initcheck 3D batch" "synccheck 3D batch"; do
    tool=${pair%% *}
    scene=${pair#* }
    stage "$tool-$(echo "$scene" | tr 'A-Z ' 'a-z-')" 120 compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/cuda/parity" "$scene"
  done
else
  skip sanitizer "compute-sanitizer was not found beside nvcc"
fi

if $make --no-print-directory BUILD="$build" "$build/cqlua" >"$logs/program.log" 2>&1; then
  stage accuracy 120 "$build/cqlua" accuracy --device cuda
  stage bench 180 "$build/cqlua" bench --device cuda --csv "$logs/bench.csv"
  stage biped 120 "$build/cqlua" examples/biped.lua --device cuda --iterations 3 --render no --out "$logs/biped"
  grep -q cuda "$logs/bench.csv" 2>/dev/null && cp "$logs/bench.csv" "$file-program.csv" && echo "        speeds of the program: $file-program.csv"
else
  skip "accuracy, bench, biped" "the program was not built: $(tail -n 1 "$logs/program.log" | cut -c1-100)"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
