#!/bin/bash
# Compares the nodes that slurm/screen-array.sbatch measured with one job per node. This script does not measure nodes.
#
#   slurm/screen-join.sh SESSION        also as a job: sbatch --dependency=afterany:JOB slurm/screen-join.sh SESSION
#
# Variables: PMMPI_SCREEN is the folder of screen-array.sbatch (default: pmmpi-screen). With PMMPI_FAIL_ON=slow,wrong,
# the exit status is 3 if a node is slow or has a wrong result. With slow, suspect or unjudged in PMMPI_FAIL_ON, a node
# without a result gives exit status 4; status 3 has priority over 4. After `sbatch --array`, this script does not know
# which nodes have no result. Unlike `pmmpi screen --apply`, this script does not mark slow nodes in Slurm: for a mark,
# one job must have measured the slow node together with other nodes.

set -eu
folder=${PMMPI_SCREEN:-pmmpi-screen}
session=${1:?usage: screen-join.sh SESSION}
results=$folder/results/$session

# Only nodes with a complete screen are compared. Until the screen of a node is complete, the name of the node's folder
# begins with a dot.
finished=()
for node in "$results"/*; do
    [ ! -d "$node" ] || finished+=("$node")
done
[ ${#finished[@]} -gt 0 ] || { echo "no node of session $session has a result in $results" >&2; exit 4; }

# If a file is damaged, each command below uses the other files, and exits with 1 (or, with --fail-on, 3 or 4).
failed=0
pmmpi report --format exclude -o "$results/exclude.txt" "${finished[@]}" || failed=$?
pmmpi report --format csv -o "$results/nodes.csv" "${finished[@]}" || failed=$?
pmmpi export -o "$folder/archive-alone" "${finished[@]}" || failed=$?
pmmpi report ${PMMPI_FAIL_ON:+--fail-on "$PMMPI_FAIL_ON"} "${finished[@]}" || failed=$?
echo "nodes to avoid: $(cat "$results/exclude.txt")"
if [ -f "$results/nodes" ]; then
    # A node has no result if it was down or drained, if its job failed, or if the job has not run.
    missing=$(sort -u "$results/nodes" | while read -r node; do [ -d "$results/$node" ] || echo "$node"; done)
    if [ -n "$missing" ]; then
        echo "nodes without a result: $(paste -sd, <<< "$missing")"
        # A node without a result has not passed, as in `pmmpi screen --fail-on slow`. Other statuses have priority.
        case "$failed ,${PMMPI_FAIL_ON:-}," in
            [01]\ *,slow,* | [01]\ *,suspect,* | [01]\ *,unjudged,*) failed=4 ;;
        esac
    fi
fi
exit "$failed"
