#!/bin/sh
# networks.sh SLOW RATE HOSTS COMMAND...: makes a network of these hosts, and runs COMMAND in it. Each host has an
# interface eth0 on one bridge. The link of the host SLOW carries at most RATE in each direction (tc-tbf(8)). HOSTS are
# separated by commas. Call it in network and mount namespaces of its own (unshare --net --mount).
set -eu
slow=$1 rate=$2 hosts=$3
shift 3
mount -t tmpfs none /run/netns 2>/dev/null || { mkdir -p /run/netns; mount -t tmpfs none /run/netns; }
ip link set lo up
ip link add hub type bridge
ip address add 10.77.0.254/24 dev hub
ip link set hub up
number=0
for host in $(echo "$hosts" | tr , ' '); do
    number=$((number + 1))
    ip netns add "$host"
    ip link add "to$number" type veth peer name eth0 netns "$host"
    ip link set "to$number" master hub up
    ip -n "$host" address add "10.77.0.$number/24" dev eth0
    ip -n "$host" link set eth0 up
    ip -n "$host" link set lo up
    if [ "$host" = "$slow" ]; then
        tc qdisc add dev "to$number" root tbf rate "$rate" burst 256k latency 50ms
        tc -n "$host" qdisc add dev eth0 root tbf rate "$rate" burst 256k latency 50ms
    fi
done
exec "$@"
