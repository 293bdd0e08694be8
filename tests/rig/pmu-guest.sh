#!/bin/sh
# Runs pmmpi-rig-pmu, and with it pmmpi, on a processor with counters: an aarch64 guest under qemu, whose PMUv3
# counts every instruction. All software comes from Debian's packages; those of the guest are unpacked, not installed.
#
# usage: pmu-guest.sh FOLDER [checks | cost]     FOLDER keeps the unpacked and built files
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
what=${2:-checks}
cd "$(dirname "$0")/../.."

say() { echo "pmu-guest: $*" >&2; }
fail() { say "$*"; exit 1; }

packages="build-essential qemu-system-arm gcc-aarch64-linux-gnu libc6-dev-arm64-cross cpio"
command -v dpkg-query > /dev/null || fail "not a Debian system: this test unpacks Debian's packages"
missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' \
        || missing="$missing $package"
done
if [ -n "$missing" ]; then
    say "installing$missing"
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    $as_root apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $missing >&2
fi

new=$folder/new.$$
trap 'rm -rf "$new"' EXIT

# Unpacks kernel, shell and Rust into $folder/guest and $folder/rust.
unpack() {
    host=$(dpkg --print-architecture)
    mkdir -p "$new/lists/partial" "$new/cache/archives/partial" "$new/debs" "$new/guest" "$new/rust"
    # A private apt with the machine's own sources, which also supports arm64.
    cat > "$new/apt.conf" << END
Dir::State::lists "$new/lists";
Dir::Cache "$new/cache";
APT::Architectures { "$host"; "arm64"; };
APT::Sandbox::User "root";
END
    export APT_CONFIG="$new/apt.conf"
    # Other package sources than Debian's may fail; only the packages must be found.
    apt-get -q update > "$new/log" 2>&1 || true
    first() { apt-cache depends "$1" | sed -n "s/^ *Depends: <*\($2[^:>]*\).*/\1/p" | head -1; }
    version() { apt-cache show --no-all-versions "$1" 2> /dev/null | sed -n 's/^Version: //p' | head -1; }

    kernel=$(first linux-image-cloud-arm64:arm64 linux-image-)
    rust=$(version libstd-rust-web-dev:arm64)
    [ -n "$kernel" ] && [ -n "$rust" ] || {
        cat "$new/log" >&2
        fail "apt has no linux-image-cloud-arm64 or no libstd-rust-web-dev for arm64: it needs Debian 12's sources"
    }
    dpkg --compare-versions "$rust" ge 1.88 \
        || fail "rustc-web is $rust, and 1.88 is needed: is bookworm-security among apt's sources?"
    library=$(first "libstd-rust-web-dev:$host" libstd-rust-web-)
    llvm=$(first "$library:$host" libllvm)
    say "unpacking $kernel and Rust $rust"
    (cd "$new/debs" && apt-get -q download "$kernel:arm64" busybox-static:arm64 "rustc-web:$host=$rust" \
        "$library:$host=$rust" "libstd-rust-web-dev:$host=$rust" "libstd-rust-web-dev:arm64=$rust") > "$new/log" 2>&1 \
        || { cat "$new/log" >&2; fail "a package could not be downloaded"; }
    # LLVM with the dependencies that this machine lacks. Nothing is installed, so dpkg's locks are not needed.
    apt-get -q install -y --download-only --no-install-recommends -o Debug::NoLocking=true "$llvm" > "$new/log" 2>&1 \
        || { cat "$new/log" >&2; fail "$llvm could not be downloaded"; }

    member() { dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards "$2"; }
    member "$new"/debs/linux-image-* './boot/vmlinuz*' > "$new/guest/kernel"
    member "$new"/debs/busybox-static* ./bin/busybox > "$new/guest/busybox"
    for package in "$new"/debs/rustc-web* "$new"/debs/libstd-rust-web* "$new"/cache/archives/*.deb; do
        [ ! -e "$package" ] || dpkg-deb -x "$package" "$new/rust"
    done
    [ -s "$new/guest/kernel" ] && [ -s "$new/guest/busybox" ] || fail "no kernel in $kernel, or no busybox"
    cat > "$new/rust/rustc" << END
#!/bin/sh
export LD_LIBRARY_PATH="$folder/rust/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
exec "$folder/rust/usr/bin/rustc" "\$@"
END
    chmod +x "$new/rust/rustc"
    rm -rf "$folder/rust" "$folder/guest"
    mv "$new/rust" "$new/guest" "$folder"
    unset APT_CONFIG
}
[ -f "$folder/guest/kernel" ] && [ -x "$folder/rust/rustc" ] || unpack
"$folder/rust/rustc" --version >&2 || fail "Debian's rustc does not start: remove $folder/rust"

say "building pmmpi and its tests for aarch64"
target=aarch64-unknown-linux-gnu
export RUSTC="$folder/rust/rustc" RUSTFLAGS="-C target-feature=+crt-static" \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
for_guest() {
    command=$1
    shift
    "${CARGO:-cargo}" "$command" --release --locked --target $target --target-dir "$folder/target" "$@"
}
for_guest build -p pmmpi-tests --bin pmmpi-rig-pmu -p pmmpi-launcher --bin pmmpi >&2
stepped=$(for_guest test --no-run -p pmmpi-kernels --test stepped --message-format json \
    | sed -n 's|.*"executable":"\([^"]*/stepped-[^"]*\)".*|\1|p')
[ -x "$stepped" ] || fail "the test stepped was not built"

root=$new/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
install "$folder/guest/busybox" "$root/bin/busybox"
install --strip --strip-program=aarch64-linux-gnu-strip "$folder/target/$target/release/pmmpi-rig-pmu" \
    "$folder/target/$target/release/pmmpi" "$root/bin"
install --strip --strip-program=aarch64-linux-gnu-strip "$stepped" "$root/bin/stepped"
cat > "$root/init" << 'END'
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
/bin/pmmpi-rig-pmu "$@"
echo "pmmpi-rig-pmu ended with $?"
/bin/busybox poweroff -f
END
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) > "$new/initrd"

# Runs pmmpi-rig-pmu with these arguments in a guest whose processor has these options.
guest() {
    options=$1
    shift
    say "starting the guest"
    # With two processors, the PMU of one would also count the other's instructions.
    # shellcheck disable=SC2086 # several words
    timeout 600 qemu-system-aarch64 -M virt -cpu neoverse-n1 $options -smp 1 -m 512 -nic none -display none \
        -monitor none -serial stdio -no-reboot -kernel "$folder/guest/kernel" -initrd "$new/initrd" \
        -append "console=ttyAMA0 quiet panic=-1 -- $*" < /dev/null | sed -u 's|\r||' | tee "$folder/output"
    status=$(sed -n 's/^pmmpi-rig-pmu ended with \([0-9]*\)$/\1/p' "$folder/output")
    [ -n "$status" ] || fail "the guest did not come to its end: see $folder/output"
    return "$status"
}
# One instruction per virtual nanosecond: the PMU counts every instruction, and time does not depend on this machine.
counting="-icount shift=0"
case "$what" in
    checks) guest "$counting" ;;
    cost)
        echo "Each instruction takes a nanosecond:"
        guest "$counting" cost
        echo "Each instruction takes as long as its emulation:"
        guest "" cost
        ;;
    *) fail "usage: pmu-guest.sh FOLDER [checks | cost]" ;;
esac
