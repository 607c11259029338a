#!/bin/sh
# Holds what the assembler says of every kernel for compute capability 9.0 (H100, H200), whose figures differ from those
# of others, against tests/cuda/budget.txt: registers of a thread, bytes of its stack, bytes spilled by it and by what
# it calls. A kernel that is not in the table fails, and so does one that needs more. So does a warning of nvcc for any
# GPU, which make does not show.
#   sh tests/cuda/budget.sh [build]           make cuda-budget
#   sh tests/cuda/budget.sh build --write     prints the table as it is now
set -u
cd "$(dirname "$0")/../.."
build=${1:-build}
logs=$(ls "$build"/cuda/*.cuda.o.log 2>/dev/null)
[ -n "$logs" ] || { echo "budget: there are no objects of nvcc in $build/cuda; make cuda builds them" >&2; exit 1; }
filter=$(command -v cu++filt || ls /usr/local/cuda/bin/cu++filt 2>/dev/null || command -v c++filt)

capability=sm_90
# object, kernel and its three figures
figures() {
  for log in $logs; do
    awk -v object="$(basename "$log" .cuda.o.log)" -v capability="$capability" '
      # of a kernel, then of the functions that it calls; a stack frame with theirs
      function put() { if (kernel != "") print object, kernel, registers, stack, spill }
      /Compiling entry function/ { put(); split($0, part, "\047"); kernel = part[4] == capability ? part[2] : ""; spill = 0 }
      /bytes spill stores/ { for (i = 1; i < NF; i++) if ($(i + 1) == "bytes" && $(i + 2) == "spill") spill += $i }
      /Used [0-9]+ registers/ {
        stack = 0
        for (i = 1; i < NF; i++) { if ($i == "Used") registers = $(i + 1); if ($(i + 1) == "bytes" && $(i + 2) == "cumulative") stack = $i }
      }
      END { put() }' "$log"
  done | "$filter" | sed 's/(anonymous namespace):://g; s/ void / /; s/(\(int\|bool\))//g; s/\([a-z_0-9]*\)\(<[^>]*>\)\{0,1\}([^)]*)/\1\2/; s/, /,/g'
}

# the largest of kernels that have one name here
largest() {
  awk '{ key = $1 " " $2; for (k = 3; k <= 5; k++) if ($k > most[key, k]) most[key, k] = $k + 0; keys[key] = 1 }
    END { for (key in keys) print key, most[key, 3] + 0, most[key, 4] + 0, most[key, 5] + 0 }' | sort
}

if [ "${2:-}" = --write ]; then
  figures | largest | awk 'BEGIN { print "# object  kernel  registers  stack  spilled [bytes]: at most, on sm_90. sh tests/cuda/budget.sh build --write" }
    { printf "%-14s %-28s %4d %5d %5d\n", $1, $2, ($3 > 248 ? 255 : int(($3 + 7) / 8) * 8), $4, $5 }'
  exit 0
fi
# shellcheck disable=SC2086
grep -q "for '$capability'" $logs || echo "the kernels were not built for $capability: their figures are held by CUDA_ARCHS=90"
# shellcheck disable=SC2086
{ grep -h 'warning' $logs; figures | largest; } | awk '
  /warning/ { print "FAILED  " $0; failed++; next }
  BEGIN {
    split("registers,bytes of stack,bytes spilled", unit, ",")
    while ((getline line < "tests/cuda/budget.txt") > 0) {
      split(line, f, " ")
      for (k = 3; k <= 5; k++) most[f[1], f[2], k] = f[k]
    }
  }
  !(($1, $2, 3) in most) {
    print "FAILED  " $1 " " $2 ": not in tests/cuda/budget.txt (" $3 " registers, " $4 " bytes of stack, " $5 " spilled)"
    failed++
    next
  }
  {
    for (k = 3; k <= 5; k++)
      if ($k + 0 <= most[$1, $2, k] + 0) passed++
      else {
        print "FAILED  " $1 " " $2 ": " $k " " unit[k - 2] ", allowed are " most[$1, $2, k]
        failed++
      }
  }
  # where there are no figures, that there is no warning
  END { printf "%d passed, %d failed\n", passed + (failed + passed == 0), failed; exit failed > 0 }'
