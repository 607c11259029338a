#!/bin/sh
# The kernels that stay on the GPU (cuda/resident.inl) read what other blocks wrote since they began. So nvcc must
# load nothing in them past the cache that a barrier renews, as it does where __ldg or __restrict__ allow it:
# ld.global.nc. The emulation has one memory, and does not see this. Reads the PTX that the build left beside its
# objects, for every GPU that it was built for.
#   sh tests/cuda/coherent.sh [build]        make cuda-budget, and make tests where nvcc is
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build}
files=$(ls "$build"/cuda/kernels.*.cuda.o.ptx/*.ptx 2>/dev/null)
[ -n "$files" ] || { echo "coherent: there is no PTX of nvcc in $build/cuda; make cuda leaves it there" >&2; exit 1; }

# loads of global memory in each kernel that stays, and in the functions that it calls: all, and those past that cache
for file in $files; do
  object=$(basename "$(dirname "$file")" .cuda.o.ptx)
  awk -v object="$object" '
    /^\.target/ { object = object ", " $2; sub(/,$/, "", object); gsub(/ /, "_", object) }
    /\.(entry|func) / {
      name = /resident_adj/ ? "resident_adj" : /resident/ ? "resident" : /\.func/ ? "a function" : ""
    }
    name && /ld\.global/ { loads[name]++; if (/\.nc/) past[name]++ }
    END {
      # backward only 2D has a kernel that stays
      for (k = split("a function,resident" (object ~ /kernels\.2/ ? ",resident_adj" : ""), names, ","); k > 0; k--)
        print object, loads[names[k]] + 0, past[names[k]] + 0, names[k]
    }' "$file"
done | awk '
  { name = $1 " " $4 " " $5; lines++ }
  # those of functions are of all memories
  $2 == 0 && $4 != "a" { print "FAILED  " name ": no load of global memory was found"; failed++; next }
  $3 > 0 {
    print "FAILED  " name ": " $3 " of " $2 " loads of global memory are ld.global.nc; nothing may be __restrict__ " \
      "or __ldg there"
    failed++
    next
  }
  { passed++ }
  END { printf "%d passed, %d failed\n", passed, failed; exit lines == 0 || passed != lines }'
