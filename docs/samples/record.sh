#!/bin/sh
# Measures the runs of the samples in README.md and docs:
#   demo      `make demo`: Debian's HPC Challenge on two hosts whose clocks are two hours apart
#   fleet     the same program on each of 24 hosts alone, in seven rounds; on n07 another process runs on the same core
#   regions   a program with regions, on two such hosts
#   probes    a program with probes, on this machine
# Then copy the new output into the pages: `cargo test --test samples` shows it.
#
# usage: record.sh BIN RIG_HOST     BIN: the folder of pmmpi; RIG_HOST: the rig's program that makes hosts
set -eu
bin=$(realpath "$1")
rig_host=$(realpath "$2")
PATH=$bin:$PATH
cd "$(dirname "$0")"
here=$PWD
source=$(realpath ../..)
work=$(mktemp -d "${TMPDIR:-/tmp}/samples.XXXXXX")
other=
trap '[ -z "$other" ] || kill $other; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

TMPDIR=$work "$source/tests/rig/demo.sh" "$bin" "$rig_host"
cd "$work"/*demo*
mkdir "$work/new" "$work/new/demo"
cp pmmpi-results/*.pmr "$work/new/demo"

mpicc.openmpi -I "$source/launcher/agent/include" "$source/tests/programs/regions.c" -o solver
PMMPI_OUT=$work/new/regions OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$PWD/rsh" mpirun.openmpi -n 2 --hostfile hostfile \
    --bind-to none pmmpi ./solver . 3 10
rm -rf "$work/new/regions/.nodes"

mpicc.openmpi -O2 -pthread -I "$source/launcher/agent/include" "$source/tests/programs/probes.c" -o probes
PMMPI_OUT=$work/new/probes mpirun.openmpi -n 2 --oversubscribe --bind-to none pmmpi --expect kernel:instructions=4000 \
    ./probes 2000
rm -rf "$work/new/probes/.nodes"

# In rounds over the hosts, so that what changes with time is no property of a host.
sed -i -e '6s/^[0-9]*/1000/' -e '11s/^[0-9]*/1/' -e '12s/^[0-9]*/1/' hpccinf.txt
export PMMPI_OUT="$work/fleet"
for round in 1 2 3 4 5 6 7; do
    for node in $(seq -w 24); do
        if [ $node = 07 ]; then
            nice -n 5 taskset -c 1 sh -c 'while :; do :; done' &
            other=$!
        fi
        "$rig_host" "n$node" "${node#0}0000000000000" -- taskset -c 1 mpirun.openmpi -n 1 --bind-to none pmmpi hpcc \
            > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
        [ -z "$other" ] || kill $other
        wait
        other=
        rm -f hpccoutf.txt
    done
    echo "round $round of 7"
done
pmmpi export -o "$work/new/fleet" "$PMMPI_OUT"
rm -rf "$here/demo" "$here/fleet" "$here/regions" "$here/probes"
mv "$work/new/"* "$here"
