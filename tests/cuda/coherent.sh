#!/bin/sh
# The kernels that stay on the GPU (cuda/resident.inl) read what other blocks wrote since they began. So nvcc must load nothing in
# them past the cache that a barrier renews, as it does where __ldg or __restrict__ allow it: ld.global.nc. The emulation has one
# memory, and does not see this.
#   sh tests/cuda/coherent.sh                make cuda-budget, and make tests where nvcc is
set -u
cd "$(dirname "$0")/../.." || exit 1
nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc)} || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# loads of global memory in each kernel that stays, and in the functions that it calls: all, and those past that cache
for dim in 2 3; do
  for bytes in 4 8; do
    "$nvcc" -std=c++17 -O3 -Iengine -DCQ_DIM=$dim -DCQ_REAL_BYTES=$bytes -arch=compute_90 -ptx cuda/kernels.cu -o "$folder/ptx" || exit 1
    awk -v object="kernels.$dim.$bytes" '
      /\.(entry|func) / { name = /resident_adj/ ? "resident_adj" : /resident/ ? "resident" : /\.func/ ? "a function" : "" }
      name && /ld\.global/ { loads[name]++; if (/\.nc/) past[name]++ }
      END { for (k = split("resident,resident_adj,a function", names, ","); k > 0; k--) print object, loads[names[k]] + 0, past[names[k]] + 0, names[k] }' \
      "$folder/ptx"
  done
done | awk '
  { name = $1 " " $4 " " $5 }
  # those of functions are of all memories
  $2 == 0 && $4 != "a" { print "FAILED  " name ": no load of global memory was found"; failed++; next }
  $3 > 0 { print "FAILED  " name ": " $3 " of " $2 " loads of global memory are ld.global.nc; nothing may be __restrict__ or __ldg there"; failed++; next }
  { passed++ }
  END { printf "%d passed, %d failed\n", passed, failed; exit passed != 12 }'
