#!/bin/sh
# Installs Debian packages that are missing. usage: deps.sh build | demo | screen | test | PACKAGE...
set -eu

build="build-essential pkg-config libhwloc-dev libudev-dev libclang-dev"
demo="$build openmpi-bin hpcc"
case ${1-} in
    build) packages=$build ;;
    demo) packages=$demo ;;
    screen) packages="$build openmpi-bin libopenmpi-dev" ;;
    test) packages="$demo libopenmpi-dev mpich libmpich-dev libpfm4 libblas3 strace musl-tools gfortran
        iproute2 python3-mpi4py python3-pip python3-statsmodels python3-prometheus-client numactl procps environment-modules
        slurmctld slurmd slurm-client slurm-wlm-basic-plugins default-jre-headless shellcheck" ;;
    *) packages="$*" ;;
esac

if ! command -v cargo > /dev/null; then
    echo "pmmpi needs Rust 1.95 or later: see https://rustup.rs" >&2
    exit 1
fi
if ! command -v dpkg-query > /dev/null; then
    echo "This is no Debian system. Install the counterparts of:" $packages >&2
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
