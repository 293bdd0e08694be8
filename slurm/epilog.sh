#!/bin/bash
# For Slurm's Epilog: after each job, writes one line with the memory errors and the throttling that this node has
# counted since it booted. If a node becomes slow, these lines show after which job a count grew.
#
#   slurm.conf:   Epilog=/etc/slurm/pmmpi-epilog.sh, or call this program at the end of your epilog
#   a line:       2026-11-26T03:20:01Z,job 4711,memory_corrected 0,memory_uncorrected 0,throttled 12
#
# Slurm drains a node if its epilog fails, so this program always exits with 0, after at most two seconds. It calls no
# command of Slurm, because slurmctld may wait for the epilog. It does not measure the node, because the next job may
# start. PMMPI_EPILOG_LOG names the file (default: /var/log/pmmpi-epilog.csv). When this file reaches 1 MB, the program
# renames it to FILE.1, and begins a new file.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin

record() {
    local log=${PMMPI_EPILOG_LOG:-/var/log/pmmpi-epilog.csv} sys=${PMMPI_SYS:-/sys/devices/system}
    # Prints the sum of the numbers in the files, or - if none of the files exists.
    sum() { cat "$@" 2> /dev/null | awk '{ sum += $1 } END { print NR ? sum : "-" }'; }
    local cpu first throttled=()
    for cpu in "$sys"/cpu/cpu[0-9]*; do
        # All hardware threads of a core show the same count, that of the core. So the sum takes the count of only the
        # first hardware thread of each core.
        { IFS=,- read -r first _ < "$cpu/topology/thread_siblings_list"; } 2> /dev/null || continue
        [ "$cpu" != "$sys/cpu/cpu$first" ] || throttled+=("$cpu/thermal_throttle/core_throttle_count")
    done
    [ "$(stat -c %s "$log" 2> /dev/null || echo 0)" -lt 1000000 ] || mv -f "$log" "$log.1"
    printf '%s,job %s,memory_corrected %s,memory_uncorrected %s,throttled %s\n' \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "${SLURM_JOB_ID:--}" \
        "$(sum "$sys"/edac/mc/mc*/ce_count)" "$(sum "$sys"/edac/mc/mc*/ue_count)" \
        "$(sum "${throttled[@]}" < /dev/null)" >> "$log"
}

if [ "${1:-}" = record ]; then
    record
    exit 0
fi

bash "$0" record > /dev/null 2>&1 < /dev/null &
# A process that waits for broken hardware cannot be killed. So this loop never waits for more than two seconds.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 $! 2> /dev/null || exit 0
    sleep 0.2
done
kill -KILL $! 2> /dev/null
exit 0
