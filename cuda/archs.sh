#!/bin/sh
# The GPUs that the CUDA device is compiled for: compute capabilities without their dot, lowest first. The Makefile
# embeds PTX of the last one, which later GPUs translate when they first load it.
#   sh cuda/archs.sh NVCC             the GPUs of this machine; one architecture where there is none
#   sh cuda/archs.sh NVCC all         every architecture of the list below that this nvcc knows
#   sh cuda/archs.sh NVCC 75 90 ...   these
set -u
every="75 80 86 89 90 100 120"
without_gpu=90
nvcc=$1
shift

known=$("$nvcc" --list-gpu-code 2>/dev/null | sed -n 's/^sm_\([0-9]*\)$/\1/p' | sort -n)

# the newest that nvcc knows and that a GPU of capability $1 can run; the oldest known where the GPU is older than all
nearest() {
  best=
  for arch in $known; do
    if [ -z "$best" ] || [ "$arch" -le "$1" ]; then best=$arch; fi
  done
  echo "$best"
}

case ${1:-} in
  all)
    for arch in $known; do
      case " $every " in *" $arch "*) echo "$arch" ;; esac
    done
    ;;
  '')
    gpus=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | grep '^[0-9][0-9]*$')
    for gpu in ${gpus:-$without_gpu}; do nearest "$gpu"; done
    ;;
  *) for arch in "$@"; do echo "$arch"; done ;;
esac | sort -nu | tr '\n' ' ' | sed 's/ *$//'
