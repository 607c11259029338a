#!/bin/sh
# The best instruction set of this machine that kernels are built for: 4 (AVX-512), 3 (AVX2) or 1, the baseline. The
# same choice as cq_kernels_find makes at run time.
has() {
  for flag in "$@"; do
    grep -m 1 '^flags' /proc/cpuinfo 2>/dev/null | grep -qw "$flag" || return 1
  done
}
if has avx2 fma avx512f avx512vl avx512dq avx512bw; then echo 4
elif has avx2 fma; then echo 3
else echo 1
fi
