#!/bin/sh
# Everything that needs a real GPU, in nine minutes: builds the device for it, holds it against the CPU, measures, and
# lets NVIDIA's
# sanitizer watch.       make gpu-check, or make gpu-check ONLY="parity speed", or
#   sh tests/cuda/gpu-check.sh [-b build] [-o folder] [-s seconds] [stage...]
# Stages are build, parity, tests, latency, speed, ways, sanitizer and program, or what the name of one of their parts
# begins with (memcheck-2d); all of them unless some are named. profile, NVIDIA's counters of the kernels of a step,
# runs only if it is named.
#   -o   folder, seen from the root of the sources, for all results: summary.txt, log.txt, speed.csv, ways.csv and
#        program.csv. Without it speeds go to tests/bench/<name of the GPU>*.csv, the others to build/gpu-check
#   -s   seconds that all stages have together (540); those that find none left are skipped
#
# Needs gcc, make and nvcc; what needs Lua runs only where the program can be built. Each stage stands alone: one that
# fails or hangs does not hide the next, and what is known is in the files at once. The exit code is 1 if any stage
# failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=build
out=
limit=540
while getopts b:o:s: option; do
  case $option in
    b) build=$OPTARG ;;
    o) out=$OPTARG ;;
    s) limit=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
only=$*
make=${MAKE:-make}
logs=$build/gpu-check
failed=0
passed=0
start=$(date +%s)

nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
if [ -z "$nvcc" ]; then
  echo "gpu-check: nvcc was not found; install the CUDA Toolkit, or say where it is with NVCC=...; nothing was checked" >&2
  exit 1
fi
PATH=$PATH:$(dirname "$nvcc"):/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer:/usr/local/nvidia/bin
export PATH
if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "gpu-check: no NVIDIA GPU was found on this machine (nvidia-smi lists none); nothing was checked" >&2
  exit 1
fi
mkdir -p "$logs" "${out:-$logs}" || exit 1
export CQLUA_CUDA="${CQLUA_CUDA:-$(cd "$build" && pwd)/cqlua-cuda.so}"   # another one, to try this script without a GPU

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
summary=${out:-$logs}/summary.txt
log=${out:-$logs}/log.txt
head="# $gpu, driver $driver, nvcc $release; $(date -u +%Y-%m-%d); make gpu-check"
table=tests/bench/$(echo "$gpu" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
if [ -n "$out" ]; then speeds=$out/speed.csv ways=$out/ways.csv program=$out/program.csv
else speeds=$table.csv ways=$table-ways.csv program=$table-program.csv; fi
: >"$summary"
: >"$log"

# a line to whoever looks on, and to the summary
say() {
  # shellcheck disable=SC2059
  printf "$@" | tee -a "$summary"
}

# is a stage, part of so named ones, asked for?
wanted() {
  [ -z "$only" ] && [ "$2" != profile ] && return 0
  for word in $only; do
    [ "$word" = "$2" ] && return 0
    case $1 in "$word"*) return 0 ;; esac
  done
  return 1
}

left() { echo $((limit - $(date +%s) + start)); }

# stage NAME PART-OF SECONDS COMMAND...: runs it, tells how it ended, and shows the last lines of what failed; false if
# it did not pass
stage() {
  name=$1
  wanted "$name" "$2" || return 1
  seconds=$(left)
  [ "$seconds" -lt "$3" ] || seconds=$3
  shift 3
  if [ "$seconds" -lt 3 ]; then
    say 'skipped %-22s no time is left\n' "$name"
    return 1
  fi
  began=$(date +%s)
  echo "==== $name: $*" >>"$log"
  {
    timeout -k 5 "$seconds" "$@" 2>&1
    echo $? >"$logs/code"
  } | tee -a "$log" >"$logs/$name.log"
  code=$(cat "$logs/code")
  if [ "$code" -eq 0 ]; then
    passed=$((passed + 1))
    say 'ok      %-22s %4d s  %s\n' "$name" $(($(date +%s) - began)) "$(tail -n 1 "$logs/$name.log" | cut -c1-100)"
    return 0
  fi
  failed=$((failed + 1))
  say 'FAILED  %-22s %4d s  exit code %d, %s\n' "$name" $(($(date +%s) - began)) "$code" "$logs/$name.log"
  tail -n 12 "$logs/$name.log" | cut -c1-200 | sed 's/^/          /' | tee -a "$summary"
  return 1
}

say '%s, driver %s, compute capability %s, CUDA %s, %d cores, %s\n' "$gpu" "$driver" "$arch" "$release" "$(nproc)" "$(date -u +%Y-%m-%d)"

# always: it is soon done where nothing has changed
targets="$build/cqlua-cuda.so $build/tests/cuda/parity $build/tests/cuda/continued $build/tests/cuda/latency $build/tests/bench/speed"
for name in batch gradient health memo rollout32 rollout_dual walls; do targets="$targets $build/tests/$name"; done
[ -z "$only" ] || only="build $only"
# shellcheck disable=SC2086
stage build build 400 $make --no-print-directory BUILD="$build" NVCC="$nvcc" CUDA_ARCHS="$arch" $targets || exit 1

# each way that a run of substeps has over the GPU: a barrier of blocks that hangs shows alone
for way in launches grid; do
  rm -f "$logs/parity-$way.bits"
  stage parity-$way parity 120 env CQLUA_CUDA_RUN=$way "$build/tests/cuda/parity"
  sed -n 's/^\(.\{22\}\) .* \([0-9a-f]\{16\}\)  .*/\1 \2/p' "$logs/parity-$way.log" >"$logs/parity-$way.bits" 2>/dev/null
  if wanted parity-$way parity && [ $way != launches ] && [ -s "$logs/parity-launches.bits" ] && [ -s "$logs/parity-$way.bits" ]; then
    say '        %s: the bits of launches in %d of %d cases\n' $way "$(grep -cxFf "$logs/parity-launches.bits" "$logs/parity-$way.bits")" \
      "$(grep -c . "$logs/parity-$way.bits")"
  fi
done

stage continued tests 60 "$build/tests/cuda/continued"

# small scenes are one kernel of themselves
for name in batch gradient health memo rollout32 rollout_dual walls; do
  stage "$name" tests 60 env CQLUA_TEST_DEVICE=cuda "$build/tests/$name"
done
for name in gradient health rollout_dual; do
  stage "$name-launches" tests 60 env CQLUA_TEST_DEVICE=cuda CQLUA_CUDA_RUN=launches "$build/tests/$name"
done
stage health-grid tests 60 env CQLUA_TEST_DEVICE=cuda CQLUA_CUDA_RUN=grid "$build/tests/health"

stage latency latency 30 "$build/tests/cuda/latency" && sed 's/^/        /' "$logs/latency.log" | tee -a "$summary"

if wanted speed speed; then
  rm -f "$logs/speed.csv"
  stage speed speed 150 "$build/tests/bench/speed" --csv "$logs/speed.csv"
  if grep -q cuda "$logs/speed.csv" 2>/dev/null; then
    { echo "$head"; cat "$logs/speed.csv"; } >"$speeds"
    cut -c1-120 "$logs/speed.log" | sed 's/^/        /' | tee -a "$summary"
    say '        speeds: %s\n' "$speeds"
  fi
fi

# small scenes, and the largest that a grid holds, once more in each way, for the rule that chooses one
# (resident_blocks in cuda/run.cu)
: >"$logs/ways.csv"
for scene in 2d-1600 2d-6400 3d-8000 3d-64000; do
  for way in launches grid; do
    stage "ways-$scene-$way" ways 40 env CQLUA_CUDA_RUN=$way "$build/tests/bench/speed" --case $scene --csv "$logs/way.csv" || continue
    [ -s "$logs/ways.csv" ] || sed -n 's/^case,/run,case,/p' "$logs/way.csv" >"$logs/ways.csv"
    sed -n "s/^\"/\"$way\",\"/p" "$logs/way.csv" >>"$logs/ways.csv"
    { echo "$head"; cat "$logs/ways.csv"; } >"$ways"
    sed -n '3,$p' "$logs/ways-$scene-$way.log" | cut -c1-120 | sed "s/^/        $way  /" | tee -a "$summary"
  done
done
[ ! -s "$logs/ways.csv" ] || say '        speeds by way: %s\n' "$ways"

# a few substeps of small scenes, in every way, with everything in them: the sanitizer makes kernels a hundred times
# slower
if wanted sanitizer sanitizer && ! command -v compute-sanitizer >/dev/null; then
  say 'skipped %-22s compute-sanitizer was not found beside nvcc\n' sanitizer
else
  for pair in "memcheck 2D all walls" "memcheck 3D batch" "memcheck 3D float32 fast" "racecheck 3D float32 fast" "racecheck 2D batch" \
    "initcheck 3D batch" "synccheck 3D batch"; do
    tool=${pair%% *}
    scene=${pair#* }
    most=60
    [ "$tool" = racecheck ] && most=120   # it took longer than 60 s of a scene in 3D
    stage "$tool-$(echo "$scene" | tr 'A-Z ' 'a-z-')" sanitizer $most \
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/cuda/parity" "$scene"
  done
fi

if wanted accuracy program || wanted bench program || wanted biped program; then
  : >"$logs/program.log"
  # shellcheck disable=SC2086
  if [ "$(left)" -gt 3 ] && timeout -k 5 "$(left)" \
    $make --no-print-directory BUILD="$build" NVCC="$nvcc" CUDA_ARCHS="$arch" "$build/cqlua" >"$logs/program.log" 2>&1; then
    stage accuracy program 120 "$build/cqlua" accuracy --device cuda
    stage bench program 180 "$build/cqlua" bench --device cuda --csv "$logs/bench.csv"
    stage biped program 120 "$build/cqlua" examples/biped.lua --device cuda --iterations 3 --render no --out "$logs/biped"
    grep -q cuda "$logs/bench.csv" 2>/dev/null && cp "$logs/bench.csv" "$program" && say '        speeds of the program: %s\n' "$program"
  else
    say 'skipped %-22s the program was not built: %s\n' program "$(tail -n 1 "$logs/program.log" | cut -c1-100)"
  fi
fi

# what limits the kernels of a step: in a large scene there and back, and those that stay in a small one
stage profile-3d-512000 profile 120 ncu --clock-control none --kernel-name 'regex:transfer|grid' --launch-skip 60 --launch-count 8 \
  --section SpeedOfLight --section Occupancy --section LaunchStats --section MemoryWorkloadAnalysis --section WarpStateStats \
  "$build/tests/bench/speed" --case 3d-512000 --steps 20 --repeat 1
stage profile-2d-6400 profile 120 ncu --clock-control none --kernel-name 'regex:resident' --launch-skip 8 --launch-count 4 \
  --section SpeedOfLight --section Occupancy --section LaunchStats --section WarpStateStats \
  "$build/tests/bench/speed" --case 2d-6400 --steps 100 --repeat 1

say '%d passed, %d failed in %d s\n' "$passed" "$failed" $(($(date +%s) - start))
[ "$failed" -eq 0 ]
