#!/bin/sh
# Starts Slurm on this machine alone and has it run a study, and ranks of one experiment where cqlua-mpi.so is:
#   sh tests/study/slurm.sh CQLUA
# Root, with the packages slurm-wlm, munge and postgresql; its files and its daemons live in a folder of their own and
# are gone at the end. No systemd is needed.
set -eu
cqlua=$(readlink -f "$1")
tree=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d /tmp/cqlua-slurm-XXXXXX)
chmod 755 "$folder"
export SLURM_CONF="$folder/slurm.conf"
started=
stop() {
  code=$?
  server stop immediate 2>/dev/null || true
  for pid in $started $(cat "$folder"/*.pid 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
  sleep 1
  [ $code = 0 ] || tail -n 20 "$folder"/*.log >&2 || true
  rm -rf "$folder"
  exit $code
}
trap stop EXIT INT TERM

# munge vouches for who asks; one with a socket of its own disturbs none that runs
mkdir "$folder/munge"
head -c 1024 /dev/urandom > "$folder/munge/key"
chmod 400 "$folder/munge/key"
chown -R munge "$folder/munge"
runuser -u munge -- /usr/sbin/munged --force --foreground --key-file="$folder/munge/key" \
  --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" \
  --seed-file="$folder/munge/seed" > "$folder/munged.log" 2>&1 &
started="$started $!"

name=$(hostname -s)
cat > "$SLURM_CONF" <<END
ClusterName=cqlua
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MaxArraySize=4
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
mkdir "$folder/state" "$folder/spool"
slurmctld -D -L "$folder/slurmctld.log" > /dev/null 2>&1 &
started="$started $!"
slurmd -D -N "$name" -L "$folder/slurmd.log" > /dev/null 2>&1 &
started="$started $!"
tries=0
until sinfo -h -o %t 2>/dev/null | grep -q idle; do
  tries=$((tries + 1))
  [ $tries -lt 60 ] || { echo "Slurm did not come up" >&2; exit 1; }
  sleep 0.5
done

cat > "$folder/s.lua" <<END
local cq = require "cq"
return cq.Study { name = "slurm", trials = 12, repeats = 2, space = { x = cq.Space.uniform(0, 1) },
run = function(p, trial)
  return { loss = p.x + trial.seed, task = tonumber(os.getenv "SLURM_ARRAY_TASK_ID") }
end }
END
cd "$folder"
. "$tree/tests/study/server.sh"
study() { action=$1; shift; "$cqlua" study "$action" s.lua --store "$address" "$@"; }
# five workers: an array of three and one of two, for the site takes three
study run --launch slurm --workers 5 --jobs 1 > submitted
cat submitted
[ "$(grep -c "submitted job" submitted)" = 2 ]
tries=0
until study status | grep -q "24/24  done 24"; do
  tries=$((tries + 1))
  [ $tries -lt 120 ] || { study status; squeue; cat runs/slurm/launch/*.log; exit 1; }
  sleep 0.5
done
study status
study export > table.csv
[ "$(grep -c ",done," table.csv)" = 24 ]
echo "24 trials by 5 workers of two Slurm arrays"

# srun starts ranks as mpirun does, with the same bits
if [ ! -f "$(dirname "$cqlua")/cqlua-mpi.so" ]; then
  echo "cqlua-mpi.so was not built: srun starts no ranks here"
elif ! srun --mpi=list 2>&1 | grep -q pmix; then
  echo "this Slurm has no pmix: srun starts no ranks here"
else
  cp "$tree/tests/ranks/train.lua" .
  "$cqlua" train.lua --alone --out alone > alone.words 2>&1
  for count in 2 3; do
    timeout 120 srun --mpi=pmix --overcommit -n $count "$cqlua" train.lua --out "of$count" > words 2>&1 \
      || { cat words >&2; exit 1; }
    cmp "of$count/params.bin" alone/params.bin
    [ "$(grep "^loss" words)" = "$(grep "^loss" alone.words)" ]
    grep -q "\"ranks\": $count" "of$count/manifest.json"
  done
  echo "2 and 3 ranks by srun, with the bits of one process"
fi
echo "1 passed, 0 failed: Slurm"
