#!/bin/sh
# Screens four hosts of the rig, node0 to node3, which share this machine. The rank of node2 may use only one core. The
# script needs no cluster and leaves nothing behind except its folder.
#
# usage: screen-demo.sh BIN RIG_HOST [OPTION...]
#        BIN: the folder of pmmpi; RIG_HOST: the rig's program that makes hosts; OPTION: more options of pmmpi screen
set -eu
bin=$1
rig_host=$2
shift 2

folder=$(mktemp -d "${TMPDIR:-/tmp}/pmmpi-screen.XXXXXX")
cd "$folder"

printf 'node0 0\nnode1 7200000000000\nnode2 3600000000123\nnode3 80000000000000\n' > hosts
printf 'node0 slots=1\nnode1 slots=1\nnode2 slots=1\nnode3 slots=1\n' > hostfile
printf '#!/bin/sh\nexec "%s" --rsh "%s/hosts" "$@"\n' "$rig_host" "$folder" > rsh
# shellcheck disable=SC2016 # the hosts expand it
printf '#!/bin/sh\n[ "$(uname -n)" = node2 ] && taskset -p -c 0 $$ > /dev/null\nexec "%s/pmmpi" "$@"\n' "$bin" > pmmpi
chmod +x rsh pmmpi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$folder/rsh" OMPI_MCA_mpi_yield_when_idle=1
PATH=$folder:$PATH

set -- mpirun.openmpi -n 4 --hostfile hostfile --map-by slot --bind-to none \
    pmmpi screen --kernels triad,dgemm,net --memory 256M --cores rank --suggest "$@"
echo "\$ $*"
"$@"
echo
echo "The run files are in $folder/pmmpi-results"
