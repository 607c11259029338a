#!/bin/sh
# Starts a PostgreSQL server of its own and has it keep studies:     sh tests/study/postgres.sh CQLUA
set -eu
cqlua=$(readlink -f "$1")
tree=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d /tmp/cqlua-postgres-XXXXXX)
chmod 755 "$folder"
stop() {
  code=$?
  server stop immediate 2>/dev/null || true
  [ $code = 0 ] || tail -n 20 "$folder/data/log" >&2 || true
  rm -rf "$folder"
  exit $code
}
trap stop EXIT INT TERM
. "$tree/tests/study/server.sh"
cd "$tree"
"$cqlua" tests/study/claims.lua --workers 16 --claims 10000 --server "$address"

cd "$folder"
cat > s.lua <<END
local cq = require "cq"
local pause = require "cq.study.process"
return cq.Study { name = "s", trials = 60, sampler = cq.option("sampler", "tpe"),
  pruner = cq.option("sampler", "tpe") == "tpe" and cq.Pruner.median { warmup = 2 } or nil,
  space = { x = cq.Space.uniform(-2, 2), kind = cq.Space.integer(1, 2) },
  run = function(p, trial)
    for i = 1, 4 do
      pause.poll({}, 0.03)
      trial.report(i, p.x ^ 2 + 1 / i)
    end
    return { loss = p.x ^ 2 + (p.kind) }
  end }
END
# two workers as on two machines, and a server that goes away in the middle
"$cqlua" study run s.lua --jobs 2 --quiet --store "$address" --out a > one 2>&1 &
first=$!
sleep 0.2
"$cqlua" study run s.lua --jobs 2 --quiet --store "$address" --out a > two 2>&1 &
second=$!
sleep 0.6
server stop immediate
sleep 1.5
server start
wait $first || { cat one; exit 1; }
wait $second || { cat two; exit 1; }
"$cqlua" study status s.lua --store "$address" --out a
"$cqlua" study export s.lua --store "$address" --out a > table.csv
[ "$(grep -c -E ",(done|pruned)," table.csv)" = 60 ]
"$cqlua" study plot s.lua --store "$address" --out a | grep -q slices.png
"$cqlua" study show s.lua 3 --store "$address" --out a | grep -q "trial 3: "

# workers that a launch starts, of a study that cannot be split
if command -v parallel > /dev/null; then
  "$cqlua" study run s.lua --launch ssh : --workers 2 --quiet --store "$address" --out a --force-new
  "$cqlua" study export s.lua --store "$address" --out a > table.csv
  [ "$(grep -c -E ",(done|pruned)," table.csv)" = 60 ]
fi

# the same points as on one machine: the strategy goes by generations
for place in server file; do
  if [ $place = server ]; then store="--store $address"; else store=; fi
  # shellcheck disable=SC2086
  "$cqlua" study run s.lua --sampler cma_es --jobs 2 --quiet --out $place $store --force-new
  # shellcheck disable=SC2086
  "$cqlua" study export s.lua --sampler cma_es --out $place $store | cut -d, -f1-7 > $place.csv
done
cmp server.csv file.csv
[ "$(wc -l < file.csv)" = 61 ]
echo "1 passed, 0 failed: claims, a server that went away, and studies on it"
