#!/bin/sh
# Builds pmmpi-runner for one MPI. Under this MPI's launcher, the runner measures plain programs, and makes the
# measurements of `pmmpi screen`.
#
# usage: build-runner.sh MPICC BUILD_FOLDER INTO     installs INTO/pmmpi-runner-openmpi or INTO/pmmpi-runner-mpich
set -eu
mpicc=$1
build=$2
into=$3
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

if ! command -v "$mpicc" > /dev/null; then
    echo "build-runner: $mpicc: not found. Give the compiler wrapper of the MPI: MPICC=/path/to/mpicc" >&2
    exit 1
fi
family=$("$mpicc" -E -P -x c - << 'END' | sed -n 's/^family //p'
#include <mpi.h>
#if defined OPEN_MPI
family openmpi
#elif defined MPICH_VERSION || defined MPICH_NAME || defined I_MPI_VERSION
family mpich
#endif
END
)
if [ -z "$family" ]; then
    echo "build-runner: $mpicc: its mpi.h belongs neither to Open MPI nor to the MPICH family (MPICH, Intel MPI, MVAPICH, Cray)." >&2
    echo "              Without a runner, pmmpi measures MPI programs as usual, but it measures each rank of a plain" >&2
    echo "              program alone, and cannot screen several nodes." >&2
    exit 1
fi

# The runner stores the path of an MPI that is outside of the system's folders. The loader searches LD_LIBRARY_PATH
# before this path (DT_RUNPATH), so that a module with another version of the same MPI has priority.
rpaths=""
for option in $("$mpicc" -show 2> /dev/null); do
    case $option in
        -L/usr/lib* | -L/lib*) ;;
        -L/*) rpaths="$rpaths -C link-arg=-Wl,--enable-new-dtags,-rpath,${option#-L}" ;;
    esac
done

# Both runners share nearly all crates, so the second build begins with a copy of the first build. Cargo does not
# notice that the copy is for another MPI, or that the wrapper belongs to another MPI than at the last build. So this
# script removes mpi-sys if the options of the wrapper have changed since the last build.
for other in openmpi mpich; do
    [ -d "$build/$family" ] || [ ! -d "$build/$other/release" ] || cp -a "$build/$other" "$build/$family"
done
if [ "$("$mpicc" -show 2> /dev/null)" != "$(cat "$build/$family/mpicc" 2> /dev/null)" ]; then
    rm -rf "$build/$family"/release/.fingerprint/mpi-sys-* "$build/$family"/release/build/mpi-sys-*
    mkdir -p "$build/$family"
    "$mpicc" -show 2> /dev/null > "$build/$family/mpicc"
fi
MPICC=$mpicc "$cargo" rustc --release --locked -p pmmpi-runner --bin pmmpi-runner --target-dir "$build/$family" -- $rpaths
install -d "$into"
install --strip "$build/$family/release/pmmpi-runner" "$into/pmmpi-runner-$family"
