#!/bin/sh
# One training by 1, 3, 4, 7 and 12 processes, with the same bits; what ends it, and how it goes on:
#   sh tests/ranks/mpi.sh CQLUA
# With the packages libopenmpi-dev and openmpi-bin; more processes than cores are started.
set -eu
cqlua=$(readlink -f "$1")
tree=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d /tmp/cqlua-mpi-XXXXXX)
finish() {
  code=$?
  [ $code = 0 ] || { echo "the last words:"; cat "$folder/words" 2>/dev/null || true; } >&2
  rm -rf "$folder"
  exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM
cd "$folder"
cp "$tree/tests/ranks/train.lua" .
# a second is short for who saves on a busy disk
root="--mca odls_base_sigkill_timeout 5"
[ "$(id -u)" != 0 ] || root="$root --allow-run-as-root"
# shellcheck disable=SC2086
ranks() { count=$1; shift; timeout 120 mpirun $root --oversubscribe -n "$count" "$cqlua" "$@" > words 2>&1; }
fails() { if ranks "$@"; then echo "it did not fail: $*" >&2; exit 1; fi; }
says() { grep -F -q -- "$1" words || { echo "it does not say: $1" >&2; exit 1; }; }
# every number of the best parameters; saved.bin also has the command and the date
best() {
  "$cqlua" -e "for _, leaf in ipairs(require('cq.tensor').leaves.list(cq.load('$1').parameters)) do
    for k = 1, leaf.tensor.count do print(('%s %d %.17g'):format(leaf.path, k, leaf.tensor:data()[k - 1])) end end"
}
same() { cmp "$1/params.bin" alone/params.bin; best "$1" > best.1; best alone > best.2; [ -s best.2 ]; cmp best.1 best.2; }

# without MPI, and by any number of processes
"$cqlua" train.lua --alone --out alone > words 2>&1
cp words alone.words
"$cqlua" train.lua --out single > words 2>&1
says "not started by mpirun: this process computes all scenes"
same single
for count in 1 3 4 7 12; do
  ranks $count train.lua --out "of$count"
  same "of$count"
  [ "$(grep -c "told once" words)" = 1 ]
  [ "$(grep "^mean" words)" = "$(grep "^mean" alone.words)" ]
  [ "$(grep "^loss" words)" = "$(grep "^loss" alone.words)" ]
  [ "$(cut -d, -f1-3 "of$count/history.csv")" = "$(cut -d, -f1-3 alone/history.csv)" ]
  [ -s "of$count/three.png" ] && [ ! -d "of$count-earlier-1" ]
  grep -q "\"ranks\": $count" "of$count/manifest.json"
done
says "12 ranks for 9 scenes: 3 have nothing to do; start at most 9"

# constraints are means over scenes, too
"$cqlua" train.lua --alone --constrained yes --out kept > words 2>&1
cp words kept.words
for count in 1 2 3; do
  ranks $count train.lua --constrained yes --out "kept$count"
  cmp "kept$count/params.bin" kept/params.bin
  [ "$(grep "^loss" words)" = "$(grep "^loss" kept.words)" ]
  [ "$(cut -d, -f1-6 "kept$count/history.csv")" = "$(cut -d, -f1-6 kept/history.csv)" ]
done
head -n 1 kept/history.csv | grep -q rest

# one fails: all end, the sentence is told once, and stands in the manifest; fewer go on
fails 4 train.lua --out failed --fail 2
[ "$(grep -c "rank 2 of 4 (.*): goal [0-9]* is nowhere (scene [0-9]* of 9) (iteration 6 of 12)" words)" = 1 ]
grep -q '"status": "failed"' failed/manifest.json
grep -q '"problem": "rank 2 of 4' failed/manifest.json
cp failed/script.lua train.lua
ranks 2 train.lua --out failed --resume
says "going on after iteration 5 of the run in failed"
same failed

# one is killed: mpirun says which, the first saves what it has, and fewer go on, or one without mpirun
fails 4 train.lua --out killed --kill 3
says "rank 3"
ranks 3 train.lua --out killed --resume --iterations 9
"$cqlua" train.lua --out killed --resume > words 2>&1
same killed

# another problem is refused by all of them, another manner is told once
sed 's/steps = 20/steps = 21/' train.lua > longer.lua
fails 3 longer.lua --out killed --resume --iterations 14
says "control steps was 20 and is 21; go on with the same one"
sed 's/rate = 0.01/rate = 0.02/' train.lua > faster.lua
ranks 3 faster.lua --out killed --resume --iterations 14
[ "$(grep -c "optimizer.rate was 0.01 and is 0.02" words)" = 1 ]

# each is killed once, at any iteration
for rank in 0 1 2; do
  fails 3 train.lua --out "dead$rank" --kill $rank --at $((rank * 3 + 2))
  if [ -f "dead$rank/optimizer.bin" ]; then resume=--resume; else resume=; fi
  # shellcheck disable=SC2086
  ranks 2 train.lua --out "dead$rank" $resume
  same "dead$rank"
done

# Ctrl-C: what was computed is kept
# shellcheck disable=SC2086
# to mpirun alone, as a terminal does: a second signal would kill the ranks before they save
timeout --foreground -s INT 4 mpirun $root --oversubscribe -n 3 "$cqlua" train.lua --iterations 100000 --out stopped > words 2>&1 || true
for _ in $(seq 100); do
  ! grep -q '"status": "interrupted"' stopped/manifest.json || break
  sleep 0.2
done
grep -q '"status": "interrupted"' stopped/manifest.json
done=$(sed -n 's/.*"iterations_done": \([0-9]*\).*/\1/p' stopped/manifest.json)
[ "$done" -gt 0 ]
ranks 2 train.lua --iterations $((done + 2)) --out stopped --resume
says "going on after iteration $done of the run in stopped"

# others than the first must run the same, from the same numbers
sed 's/seed = cq.option("goals", 1)/seed = 2/' train.lua > other.lua
# shellcheck disable=SC2086
if timeout 120 mpirun $root --oversubscribe -n 1 "$cqlua" train.lua --out a : -n 1 "$cqlua" other.lua --out a > words 2>&1; then
  exit 1
fi
says "rank 1 of 2"
says "runs another script than rank 0, or has other options"
cat > own.lua <<'END'
local cq = require "cq"
local ranks = cq.Ranks.mpi()
local p = cq.param(cq.random { seed = cq.option("same", false) and 1 or ranks.rank }:normal { 5 })
local how = cq.option("how", "")
if how == "leave" and ranks.rank == 1 then return end
if how == "outside" and ranks.rank == 2 then error("beside all scenes", 0) end
local loss = ranks:value_and_grad(6, function(q, k) return (q * k):square():sum() end)(p)
if how == "after" and ranks.rank == 1 then error("after all scenes", 0) end
print(("%.17g"):format(loss))
END
fails 3 own.lua
says "the parameters of rank 1 of 3"
fails 3 own.lua --same --how leave
says "has come to its end and rank 0 to compute gradients"
fails 3 own.lua --same --how outside
says "beside all scenes"
fails 3 own.lua --same --how after
says "after all scenes"
ranks 3 own.lua --same
"$cqlua" own.lua --same 2> /dev/null | cmp - words

# a script that does not ask, started as if it had
cat > plain.lua <<'END'
local run = require("cq").Run.open { iterations = 1 }
os.execute "sleep 1"
run:record { loss = 1 }
END
fails 2 plain.lua
says "a script that is to be one of them asks for cq.Ranks.mpi()"
OMPI_COMM_WORLD_SIZE=3 "$cqlua" -e "cq.Ranks.mpi()" > words 2>&1 && exit 1
says "3 processes were started, and each finds itself alone: the launcher is not that of"
echo "1 passed, 0 failed: ranks over MPI"
