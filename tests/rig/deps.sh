#!/bin/sh
# Installs the Debian packages that building, testing and the demo need, or those given, if any is missing.
set -eu

packages="${*:-build-essential pkg-config libhwloc-dev libudev-dev libclang-dev libpfm4
    openmpi-bin libopenmpi-dev mpich libmpich-dev hpcc libblas3 strace musl-tools
    gfortran python3-mpi4py python3-pip python3-statsmodels python3-prometheus-client numactl
    procps slurmctld slurmd slurm-client slurm-wlm-basic-plugins}"

if ! command -v cargo > /dev/null; then
    echo "pmmpi needs Rust 1.88 or later: see https://rustup.rs" >&2
    exit 1
fi
if ! command -v dpkg-query > /dev/null; then
    echo "not a Debian system: install the counterparts of" $packages >&2
    exit 0
fi

missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

echo "installing:$missing"
as_root=""
[ "$(id -u)" -eq 0 ] || as_root=sudo
$as_root apt-get update -q
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends $missing
