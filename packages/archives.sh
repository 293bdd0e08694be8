#!/bin/sh
# Makes the archives of a release in BUILD_FOLDER/dist:
#   pmmpi-VERSION-source.tar.xz    the sources of pmmpi and of all crates: the build needs no network
#   pmmpi-VERSION-MACHINE.tar.xz   programs for Linux on this kind of machine, with glibc 2.17 (2012) or later. Runners
#                                  link the MPI of a site, so each site builds them from the sources: make runner
#
# usage: archives.sh BUILD_FOLDER VERSION [source | binary]
set -eu
build=$1
version=$2
which=${3:-all}
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
machine=$(uname -m)
dist=$build/dist
mkdir -p "$dist"
work=$(mktemp -d "${TMPDIR:-/tmp}/dist.XXXXXX")
trap 'rm -rf "$work"' EXIT

pack() { # NAME: packs $work/NAME; the same files give the same bytes
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -c "$1" \
        | xz -T0 -6 > "$dist/$1.tar.xz"
    (cd "$dist" && sha256sum "$1.tar.xz" > "$1.tar.xz.sha256" && du -h "$1.tar.xz")
}

source_archive() {
    name=pmmpi-$version-source
    git archive --prefix="$name/" HEAD | tar -x -C "$work"
    echo "sources of all crates ..."
    mkdir "$work/$name/.cargo"
    (cd "$work/$name" && "$cargo" vendor --locked --versioned-dirs vendor > .cargo/config.toml 2> vendor.log || { cat vendor.log; exit 1; }; rm vendor.log)
    pack "$name"
}

binary_archive() {
    name=pmmpi-$version-$machine
    stage=$work/stage
    mkdir -p "$stage/lib/pmmpi"
    cp -r "$build/pmmpi/include" "$build/pmmpi/share" "$stage"
    install -D "$build/pmmpi/bin/pmmpi" "$stage/bin/pmmpi" # static
    install "$build/pmmpi/lib/pmmpi/libpmmpi_agent.so" "$stage/lib/pmmpi" # links glibc 2.17: see launcher/agent/build.rs

    # pmmpi-report and pmmpi-topology load no library at run time, so they can be static. pmmpi-topology links hwloc,
    # which asks libudev for the names of disks. Debian has no static libudev, and pmmpi does not use the names, so a
    # stub that finds no disk replaces libudev.
    echo "static programs ..."
    for function in udev_new udev_unref udev_device_new_from_subsystem_sysname udev_device_get_property_value \
        udev_device_unref udev_device_new_from_syspath udev_device_get_sysattr_value; do
        echo "void *$function(void) { return 0; }"
    done > "$work/udev.c"
    cc -O2 -c -o "$work/udev.o" "$work/udev.c"
    ar crs "$work/libudev.a" "$work/udev.o"
    for program in pmmpi-analysis:pmmpi-report pmmpi-topology:pmmpi-topology; do
        static "${program%:*}" "${program#*:}"
    done

    # At run time, pmmpi-names loads libpfm4, pmmpi-gpus loads NVIDIA's library, and pmmpi-dynamic loads the library of
    # `pmmpi screen --blas`. So these programs cannot be static. They link an old C library, so that they also run on
    # old systems.
    echo "programs for glibc 2.17 ..."
    [ -x "$build/zig/bin/cargo-zigbuild" ] || {
        python3 -c 'import ensurepip' 2> /dev/null || tests/rig/deps.sh python3-venv
        python3 -m venv "$build/zig"
        "$build/zig/bin/pip" install -q -r packages/requirements.txt
    }
    PATH=$build/zig/bin:$PATH "$cargo" zigbuild -q --release --locked -p pmmpi-names -p pmmpi-gpus -p pmmpi-launcher \
        --target "$machine-unknown-linux-gnu.2.17" --target-dir "$build/zig/target"
    for program in pmmpi-names pmmpi-gpus; do
        install --strip "$build/zig/target/$machine-unknown-linux-gnu/release/$program" "$stage/lib/pmmpi"
    done
    install --strip "$build/zig/target/$machine-unknown-linux-gnu/release/pmmpi" "$stage/lib/pmmpi/pmmpi-dynamic"

    make --no-print-directory -s install-staged STAGE="$stage" DESTDIR="$work/$name" PREFIX=
    pack "$name"
}

static() { # PACKAGE PROGRAM
    "$cargo" rustc -q --release --locked -p "$1" --bin "$2" --target-dir "$build/portable" -- \
        -C target-feature=+crt-static -L "$work"
    case $2 in
        pmmpi-report) install --strip "$build/portable/release/$2" "$stage/bin" ;;
        *) install --strip "$build/portable/release/$2" "$stage/lib/pmmpi" ;;
    esac
}

[ "$which" = binary ] || source_archive
[ "$which" = source ] || binary_archive
