#!/bin/sh
# Measures Debian's HPC Challenge (which includes HPL) several times on two hosts of the rig, node0 and node1, and
# makes a report. The hosts' clocks since boot are two hours apart. The script needs no cluster and leaves nothing
# behind except its folder.
#
# usage: demo.sh BIN RIG_HOST     BIN: the folder of pmmpi; RIG_HOST: the rig's program that makes hosts
set -eu
bin=$1
rig_host=$2
runs=${RUNS:-7}

folder=$(mktemp -d "${TMPDIR:-/tmp}/pmmpi-demo.XXXXXX")
cd "$folder"

cat > hosts << END
node0 0
node1 7200000000000
END
printf 'node0 slots=1\nnode1 slots=1\n' > hostfile
printf '#!/bin/sh\nexec "%s" --rsh "%s/hosts" "$@"\n' "$rig_host" "$folder" > rsh
chmod +x rsh

# hpcc's own example, with a problem that takes one second: N = 400 on 1 x 2 ranks.
sed -e '6s/^[0-9]*/400/' -e '11s/^[0-9]*/1/' -e '12s/^[0-9]*/2/' \
    /usr/share/doc/hpcc/examples/_hpccinf.txt > hpccinf.txt

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$folder/rsh" OMPI_MCA_mpi_yield_when_idle=1
PATH=$bin:$PATH

set -- pmmpi repeat --runs "$runs" --warmup 1 -- mpirun.openmpi -n 2 --hostfile hostfile --bind-to none pmmpi hpcc
echo "\$ $*"
"$@" > hpcc.log || { cat hpcc.log; exit 1; }
echo "\$ pmmpi report"
pmmpi report
echo
echo "The run files are in $folder/pmmpi-results"
