#!/bin/bash
# For Slurm's HealthCheckProgram: prints the last result of this node, and measures the node when it is idle.
#
#   slurm.conf:   HealthCheckProgram=/etc/slurm/pmmpi-healthcheck.sh   HealthCheckInterval=600   HealthCheckNodeState=IDLE
#   prolog:       /etc/slurm/pmmpi-healthcheck.sh stop                 ends a measurement before a job starts
#   by hand:      healthcheck.sh                                       the exit status is always 0
#
# This program ends at once: it prints the last result, and starts the measurement in the background. It does not change
# the state of the node in Slurm. A measurement starts only if Slurm says that the node is idle. If Slurm does not
# answer, no measurement starts. At most one measurement runs at a time. `stop` ends the measurement, and waits up to
# two seconds until it has ended. If this program is waiting for Slurm's answer when you call `stop`, no measurement
# starts. Without `stop`, the measurement ends within two seconds after a job starts.
#
# The settings are lines NAME=VALUE in /etc/pmmpi/healthcheck.conf. This file must belong to root, and other users must
# not be able to write it. slurmd starts this script without your environment variables. So if sinfo is in an unusual
# folder, also set PATH in this file. If slurm.conf is in an unusual folder, also set SLURM_CONF. Defaults are in
# parentheses:
#   PMMPI            the executable of pmmpi (pmmpi in PATH)
#   PMMPI_STATE      folder on a disk of the node, only for root (/var/lib/pmmpi/healthcheck)
#   PMMPI_RESULTS    folder for the runs of all nodes, on a shared file system ($PMMPI_STATE/results). If each node
#                    has a separate folder, pmmpi cannot compare the nodes.
#   PMMPI_EVERY_H    hours between two measurements (168); 0: do not measure
#   PMMPI_ROUNDS     rounds of a measurement (7)
#   PMMPI_OPTIONS    more options of pmmpi screen, without spaces inside an option
#   PMMPI_ON_SLOW    a program of the site. If the node is slow or has a wrong result, this script starts the program
#                    with two arguments: the node, and its result (verdict, time, folder). The script itself does
#                    not act on nodes.

conf=${PMMPI_CONF:-/etc/pmmpi/healthcheck.conf}
# slurmd starts this program without PATH. bash then uses a default PATH, which may end with the current folder.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ -r "$conf" ]; then
    # This program executes $conf as root. If other users could write this file, they could become root.
    case $(stat -Lc '%u %A' "$conf") in
        "0 -"????"-"??"-"?)
            set -a
            # shellcheck source=/dev/null
            . "$conf"
            set +a ;;
        *) echo "pmmpi: $conf must belong to root, and others must not be able to write it"; exit 0 ;;
    esac
fi
pmmpi=${PMMPI:-pmmpi}
state=${PMMPI_STATE:-/var/lib/pmmpi/healthcheck}
results=${PMMPI_RESULTS:-$state/results}
every_h=${PMMPI_EVERY_H:-168}
host=$(uname -n)
node=${SLURMD_NODENAME:-${host%%.*}}

# is_young FILE MINUTES: true if the file is younger than MINUTES.
is_young() { [ -n "$(find "$1" -mmin "-$2" 2> /dev/null)" ]; }

# True if Slurm says that the node is idle. False if Slurm says something else, or does not answer.
is_idle() { [ "$(timeout -k 1 5 sinfo --noheader --Node --nodes="$node" --format=%T 2> /dev/null | sort -u)" = idle ]; }

# True if a job has begun on this host: slurmstepd runs. With cgroup v2, slurmd also keeps a process `slurmstepd infinity`,
# which belongs to no job.
has_job() {
    local pid words
    for pid in $(pgrep --ns $$ --nslist uts -x slurmstepd); do
        words=()
        mapfile -d '' words < "/proc/$pid/cmdline"
        [ "${words[1]:-}" = infinity ] || return 0
    done
    return 1
}

# Ends the measurement. While the lock is held, `watch` waits for Slurm's answer, or a measurement runs. In a
# measurement, the file `group` has its process group. When the file `stop` appears, `watch` starts no measurement.
stop() {
    local i group
    touch "$state/stop" 2> /dev/null
    for i in 1 2 3 4 5 6 7 8 9 10; do
        flock --nonblock "$state/lock" true 2> /dev/null && return
        group=$(cat "$state/group" 2> /dev/null)
        case $group in *[!0-9]* | "" | 0 | 1) ;; *)
            # At SIGTERM, pmmpi ends its kernels. After one second, SIGKILL ends all processes that are left.
            [ "$i" -lt 6 ] && kill -TERM -- "-$group" 2> /dev/null
            [ "$i" -lt 6 ] || kill -KILL -- "-$group" 2> /dev/null ;;
        esac
        sleep 0.2
    done
}

# In the background: takes the lock, starts the measurement, and ends it if a job starts.
watch() {
    exec 9> "$state/lock"
    flock --nonblock 9 || return
    # An old `stop` does not count. A job that called it has the node already, so Slurm does not call the node idle.
    rm -f "$state/group" "$state/stop"
    { is_idle && [ ! -e "$state/stop" ]; } || return
    touch "$state/begun"
    setsid nice -n 19 bash "$0" measure > /dev/null 2>&1 &
    echo $! > "$state/group"
    # `stop` may have given up before it saw the group. And some sites have no prolog that calls `stop`.
    while kill -0 $! 2> /dev/null; do
        { [ ! -e "$state/stop" ] && ! has_job; } || kill -TERM -- "-$!"
        sleep 1
    done
}

# Runs in a separate process group, and holds the lock.
measure() {
    local session verdict line
    session=health-$(($(date +%s) / (every_h * 3600)))
    read -ra more <<< "${PMMPI_OPTIONS:-}"
    # Until the last round has ended, the runs are in a folder for unfinished measurements.
    rm -rf "${results:?}/.unfinished-$host"
    "$pmmpi" screen --rounds "${PMMPI_ROUNDS:-7}" --quiet --label "session=$session" --out "$results/.unfinished-$host" --timeout 5m \
        "${more[@]}" > "$state/screen.txt" 2>&1
    case $? in 0 | 3 | 4) ;; *) return ;; esac # 3 and 4: results of --fail-on
    mkdir -p "$results/$session"
    mv -T "$results/.unfinished-$host" "$results/$session/$host.$(date +%s)" || return
    # Compares this node with all nodes of the session.
    timeout --foreground 60 "$pmmpi" report --format openmetrics -o "$state/report.prom" "$results/$session"/* \
        2>> "$state/screen.txt" || return
    # A node on which all kernels computed wrong results has no time, and so no pmmpi_node_verdict.
    verdict=$(sed -n -e "s/^pmmpi_node_verdict{node=\"$host\",.*verdict=\"\([A-Z-]*\)\"} 1.*/\1/p" \
        -e "s/^pmmpi_screen_verdict{node=\"$host\",verdict=\"\(WRONG\)\".*/\1/p" "$state/report.prom" | sort -u | paste -sd,)
    line="${verdict:-not compared with other nodes yet}, measured $(date -u +%Y-%m-%dT%H:%M:%SZ), $results/$session"
    echo "$line" > "$state/result.new" && mv "$state/result.new" "$state/result"
    case $verdict in *SLOW* | *WRONG*) [ -z "${PMMPI_ON_SLOW:-}" ] || timeout --foreground 60 "$PMMPI_ON_SLOW" "$node" "$line" ;; esac
}

umask 077
mkdir -p "$state" 2> /dev/null || exit 0

case ${1:-} in
    stop | watch | measure)
        "$1"
        exit 0 ;;
esac

read -r last 2> /dev/null < "$state/result" || last="no result yet"
echo "pmmpi: $node: $last"
# If a measurement stopped early, the next measurement begins at least an hour later.
if [ "$every_h" -gt 0 ] && ! is_young "$state/result" $((every_h * 60)) && ! is_young "$state/begun" 60; then
    # slurmd waits until its pipes are closed, and then ends the process group of this program. So the watcher starts
    # without these pipes, and in a separate session.
    setsid bash "$0" watch > /dev/null 2>&1 < /dev/null &
fi
exit 0
