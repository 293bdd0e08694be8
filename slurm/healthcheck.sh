#!/bin/bash
# For Slurm's HealthCheckProgram: prints the last result of this node, and measures the node when it is idle.
#
#   slurm.conf:   HealthCheckProgram=/etc/slurm/pmmpi-healthcheck.sh   HealthCheckInterval=600   HealthCheckNodeState=IDLE
#   prolog:       /etc/slurm/pmmpi-healthcheck.sh stop                 ends a measurement before a job starts
#   by hand:      healthcheck.sh                                       exit status 0, whatever the result is
#
# It returns at once: it reads one file, and starts the rest in the background. It changes no state of the node. A
# measurement starts only if Slurm says that the node is idle. If Slurm does not answer, no measurement starts.
# At most one measurement runs. It ends at once with `stop`, and otherwise within two seconds after a job starts.
#
# Settings, as lines NAME=VALUE in /etc/pmmpi/healthcheck.conf, which only root may change. slurmd passes no variables on,
# so this file also needs PATH, if sinfo is in an unusual folder, and SLURM_CONF, if slurm.conf is:
#   PMMPI            the program (pmmpi in PATH)
#   PMMPI_STATE      folder on a disk of the node, only for root (/var/lib/pmmpi/healthcheck)
#   PMMPI_RESULTS    folder for the runs of all nodes, on a shared file system ($PMMPI_STATE/results). In a folder of its
#                    own, a node is compared with nothing.
#   PMMPI_EVERY_H    hours between two measurements (168); 0: none
#   PMMPI_ROUNDS     rounds of a measurement (7)
#   PMMPI_OPTIONS    more options of pmmpi screen, without spaces inside an option
#   PMMPI_ON_SLOW    a program of the site that gets the node and the result if the node is slow. pmmpi itself does nothing.

conf=${PMMPI_CONF:-/etc/pmmpi/healthcheck.conf}
# slurmd starts this program without PATH, and then bash takes a PATH that may end with the current folder.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ -r "$conf" ]; then
    # As root, a file that others can write would be a way to become root.
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

# True if the file is younger than so many minutes.
is_young() { [ -n "$(find "$1" -mmin "-$2" 2> /dev/null)" ]; }

# True if Slurm says that the node is idle. Any other answer, and no answer, is false.
is_idle() { [ "$(timeout -k 1 5 sinfo --noheader --Node --nodes="$node" --format=%T 2> /dev/null | sort -u)" = idle ]; }

# Ends the measurement. The lock shows that there is one, so the number in the file is its number.
stop() {
    local i group
    for i in 1 2 3 4 5 6 7 8 9 10; do
        flock --nonblock "$state/lock" true 2> /dev/null && return
        group=$(cat "$state/group" 2> /dev/null)
        case $group in *[!0-9]* | "" | 0 | 1) ;; *)
            # pmmpi ends its kernels on SIGTERM; after one second nothing may be left.
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
    rm -f "$state/group"
    is_idle || return
    touch "$state/begun"
    setsid nice -n 19 bash "$0" measure > /dev/null 2>&1 &
    echo $! > "$state/group"
    # Also without a prolog that calls `stop`: a step daemon of Slurm on this host means that a job has begun.
    while kill -0 $! 2> /dev/null; do
        ! pgrep --ns $$ --nslist uts -x slurmstepd > /dev/null || kill -TERM -- "-$!"
        sleep 1
    done
}

# In a group of its own, with the lock.
measure() {
    local session verdict line
    session=health-$(($(date +%s) / (every_h * 3600)))
    read -ra more <<< "${PMMPI_OPTIONS:-}"
    # In the folder of unfinished nodes until the last round has ended.
    rm -rf "${results:?}/.unfinished-$host"
    "$pmmpi" screen --rounds "${PMMPI_ROUNDS:-7}" --quiet --label "session=$session" --out "$results/.unfinished-$host" --timeout 5m \
        "${more[@]}" > "$state/screen.txt" 2>&1 || return
    mkdir -p "$results/$session"
    mv -T "$results/.unfinished-$host" "$results/$session/$host.$(date +%s)" || return
    # The verdict on this node among all nodes of the session.
    timeout --foreground 60 "$pmmpi" report --format openmetrics -o "$state/report.prom" "$results/$session"/* \
        2>> "$state/screen.txt" || return
    verdict=$(sed -n "s/^pmmpi_node_verdict{node=\"$host\",.*verdict=\"\([A-Z-]*\)\"} 1.*/\1/p" "$state/report.prom" |
        sort -u | paste -sd,)
    line="${verdict:-not compared with other nodes yet}, measured $(date -u +%Y-%m-%dT%H:%M:%SZ), $results/$session"
    echo "$line" > "$state/result.new" && mv "$state/result.new" "$state/result"
    case $verdict in *SLOW*) [ -z "${PMMPI_ON_SLOW:-}" ] || timeout --foreground 60 "$PMMPI_ON_SLOW" "$node" "$line" ;; esac
}

umask 077
mkdir -p "$state" 2> /dev/null || exit 0

case ${1:-} in
    stop | watch | measure)
        "$1"
        exit 0 ;;
esac

read -r last < "$state/result" 2> /dev/null || last="no result yet"
echo "pmmpi: $node: $last"
# After a measurement that did not end, the next one begins at least an hour later.
if [ "$every_h" -gt 0 ] && ! is_young "$state/result" $((every_h * 60)) && ! is_young "$state/begun" 60; then
    # In a session of its own, and without the pipes of slurmd: slurmd waits for these, and ends the group of this program.
    setsid bash "$0" watch > /dev/null 2>&1 < /dev/null &
fi
exit 0
