#!/bin/sh
# Makes the archives and the Debian package, installs them and uses them as a site would. Runs as root. Tests the binary
# archive in a root file system with Debian 11 (glibc 2.31, Open MPI 4.1.0), and the package in a root file system with
# Debian 12, the release on which this script runs.
#
# usage: test.sh BUILD_FOLDER VERSION
set -eu
build=$1
version=$2
cd "$(dirname "$0")/.."
dist=$build/dist
machine=$(uname -m)
binary=pmmpi-$version-$machine
source=pmmpi-$version-source
tests/rig/deps.sh test
tests/rig/deps.sh mmdebstrap
work=$(mktemp -d "${TMPDIR:-/tmp}/packages.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
    echo "packages: $1" >&2
    exit 1
}
step() {
    echo "== $1"
}

# Makes a small Debian in a folder. Keeps this folder for later calls, because its packages come from the network.
debian() { # RELEASE PACKAGES
    [ -d "$build/roots/$1" ] && return
    mkdir -p "$build/roots"
    rm -rf "$build/roots/$1.new"
    mmdebstrap -q --variant=minbase --mode=root --include="$2" "$1" "$build/roots/$1.new"
    mv "$build/roots/$1.new" "$build/roots/$1"
}
# Runs a command in such a Debian. No process outside sees the mounts.
inside() { # RELEASE COMMAND
    unshare --mount --pid --fork sh -euc '
        mount --make-rprivate /
        mount --bind "$1" "$1"
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mount --rbind /sys "$1/sys"
        exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 sh -euc "$2"
    ' sh "$build/roots/$1" "$2"
}
# Commands that must succeed with an installed pmmpi in PATH.
uses="
    rm -rf /tmp/runs
    pmmpi --version
    pmmpi --out /tmp/runs /bin/true
    cd /tmp
    mpirun -n 3 pmmpi --out /tmp/runs python3 -m mpi4py.bench helloworld
    pmmpi report /tmp/runs --format json > report.json
    python3 -c 'import json; runs = json.load(open(\"report.json\"))[\"runs\"]; \
        print([(run[\"ranks\"], run[\"elapsed\"] is not None) for run in runs])' | tee sizes
    grep -q '(1, ' sizes && grep -q '(3, True)' sizes
    pmmpi report /tmp/runs
    test -z \"\$(ls -d /tmp/runs/*.partial 2> /dev/null)\"
    pmmpi doctor > doctor.txt || true
    grep -E '^(ok|limits|broken) +topology' doctor.txt
"

# SKIP=archives uses the archives of the last call.
step "archives"
[ "${SKIP-}" = archives ] || CARGO=${CARGO:-cargo} packages/archives.sh "$build" "$version"
for file in bin/pmmpi bin/pmmpi-report lib/pmmpi/pmmpi-topology lib/pmmpi/pmmpi-names lib/pmmpi/pmmpi-gpus \
    lib/pmmpi/pmmpi-dynamic lib/pmmpi/libpmmpi_agent.so; do
    tar -xJf "$dist/$binary.tar.xz" -C "$work" "$binary/$file"
    newest=$(objdump -T "$work/$binary/$file" 2> /dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
    echo "$file: ${newest:-static}"
    case ${newest:-static} in
        static | GLIBC_2.2.5 | GLIBC_2.[3-9] | GLIBC_2.1[0-7]) ;;
        *) fail "$file needs $newest; 2.17 is the limit" ;;
    esac
done

step "binary archive in Debian 11, moved, with its module"
debian bullseye openmpi-bin,python3-mpi4py,environment-modules
root=$build/roots/bullseye
rm -rf "$root/opt" && mkdir -p "$root/opt/somewhere"
tar -xJf "$dist/$binary.tar.xz" -C "$root/opt"
mv "$root/opt/$binary" "$root/opt/somewhere/else"
inside bullseye ". /etc/profile.d/modules.sh
    module use /opt/somewhere/else/share/modulefiles
    module load pmmpi/$version
    test \"\$PMMPI_ROOT\" = /opt/somewhere/else
    $uses"

step "Debian package"
packages/deb.sh "$build/pmmpi" "$dist" "$version"
debian bookworm openmpi-bin,python3-mpi4py
root=$build/roots/bookworm
cp "$dist/pmmpi_${version}_$(dpkg --print-architecture).deb" "$root/tmp/pmmpi.deb"
cp /etc/resolv.conf "$root/etc/resolv.conf"
inside bookworm "apt-get install -y -q --no-install-recommends /tmp/pmmpi.deb > /tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
    $uses
    mpirun -n 2 pmmpi --runs 2 --out /tmp/plain /bin/true
    test \$(ls /tmp/plain/*.pmr | wc -l) = 2
    apt-get remove -y -q pmmpi > /tmp/apt.log 2>&1
    ! ls -d /usr/bin/pmmpi* /usr/lib/pmmpi 2> /dev/null"

step "source archive, without a network"
tar -xJf "$dist/$source.tar.xz" -C "$work"
# Builds all programs that a rank needs. FULL=1 also builds pmmpi-report, which takes much longer.
what="-p pmmpi-launcher -p pmmpi-agent -p pmmpi-topology"
[ -z "${FULL-}" ] || what="--workspace --exclude pmmpi-runner --lib --bins"
(
    cd "$work/$source" # its .cargo/config.toml names the folder with the sources of all crates
    unshare --net env CARGO_HOME="$work/cargo" CARGO_TARGET_DIR="$work/target" "${CARGO:-cargo}" build --release --locked --offline $what
)
"$work/target/release/pmmpi" --out "$work/runs" /bin/true
unshare --net env CARGO_HOME="$work/cargo" PATH="$PATH" make -C "$work/$source" --no-print-directory runner MPICC=mpicc.openmpi \
    CARGO_TARGET_DIR="$work/target" PREFIX="$work/prefix"
test -x "$work/prefix/lib/pmmpi/pmmpi-runner-openmpi"

echo "packages: all of them work"
