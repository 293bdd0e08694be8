#!/bin/sh
# Records the run files in tests/runs/vN from real jobs, for a new schema version: two hosts with their own clocks,
# regions, a plain program under an MPI launcher, a program that a signal killed, a program that received SIGTERM, and
# programs with more requested counters than the machine has, or with none.
#
# usage: record.sh BIN RIG_HOST FOLDER
# BIN: the folder of pmmpi; RIG_HOST: the rig's program that makes hosts; FOLDER: tests/runs/vN
set -eu
bin=$1
rig_host=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
PATH=$bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/test-record.XXXXXX")
trap 'rm -rf "$work"' EXIT
TMPDIR=$work RUNS=3 "$(dirname "$0")/../rig/demo.sh" "$bin" "$rig_host"
cp "$work"/*/pmmpi-results/*.pmr "$folder"

export PMMPI_OUT="$folder"
# A program with regions, and pings between the hosts.
here=$(cd "$(dirname "$0")/../.." && pwd)
mpicc.openmpi -I "$here/launcher/agent/include" "$here/tests/programs/regions.c" -o "$work/regions"
cd "$work"/*/
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$PWD/rsh" mpirun.openmpi -n 2 --hostfile hostfile --bind-to none \
    pmmpi --sync pingpong "$work/regions" . 3 10
for launch in 1 2; do
    mpirun.mpich -n 3 pmmpi --mode plain --label kind=plain sleep 0.05
done
pmmpi sh -c 'kill -9 $$' || true
timeout 0.45 pmmpi --runs 3 sh -c 'trap "exit 0" TERM; sleep 0.3 & wait' || true
# More counters than the machine has, and none.
pmmpi --group smt --events cycles,page-faults sleep 0.05
pmmpi --counters off sleep 0.05
rm -r "$folder/.nodes"
