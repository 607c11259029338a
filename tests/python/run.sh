#!/bin/sh
# run: cqlua env from Python: Gymnasium's own check_env, PPO of Stable-Baselines3, and what goes wrong.
#   sh tests/python/run.sh -b build [-f FOLDER]        as tests/python/venv.sh says
set -eu
. tests/python/venv.sh
venv python "gymnasium, stable_baselines3" "gymnasium stable-baselines3" "$@"
CQLUA=$build/cqlua "$python" tests/python/check.py
