#!/bin/sh
# Has GNU parallel run the workers of a study, here in the place of hosts:      sh tests/study/parallel.sh CQLUA
set -eu
cqlua=$(readlink -f "$1")
folder=$(mktemp -d /tmp/cqlua-parallel-XXXXXX)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > s.lua <<END
local cq = require "cq"
return cq.Study { name = "s", trials = 20, space = { x = cq.Space.uniform(0, 1) }, run = function(p) return p.x end }
END
"$cqlua" study run s.lua --launch ssh : --workers 3 --quiet
"$cqlua" study merge s.lua
[ "$("$cqlua" study export s.lua | grep -c ",done,")" = 20 ]
echo "1 passed, 0 failed: 20 trials by 3 workers of GNU parallel"
