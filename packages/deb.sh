#!/bin/sh
# Makes a Debian package of the staged files. usage: deb.sh STAGE INTO VERSION
set -eu
stage=$1
into=$2
version=$3
cd "$(dirname "$0")/.."
root=$(mktemp -d "${TMPDIR:-/tmp}/deb.XXXXXX")
trap 'rm -rf "$root"' EXIT
tree=$root/tree
make --no-print-directory -s install-staged STAGE="$stage" DESTDIR="$tree" PREFIX=/usr
gzip -9n "$tree"/usr/share/man/man1/*.1
gzip -9n "$tree"/usr/share/doc/pmmpi/CHANGELOG.md
cat LICENSE-MIT LICENSE-APACHE > "$tree/usr/share/doc/pmmpi/copyright"
rm "$tree"/usr/share/doc/pmmpi/LICENSE-*
chmod -R go=rX,u=rwX "$tree"

# The Debian package depends on the packages with the linked libraries. But it only recommends the MPIs of the runners,
# because pmmpi measures MPI programs without a runner.
mkdir "$root/debian"
printf 'Source: pmmpi\n' > "$root/debian/control"
links() {
    (cd "$root" && dpkg-shlibdeps -O --ignore-missing-info "$@" 2> /dev/null | sed -n 's/^shlibs:Depends=//p')
}
needed=$(links "$tree/usr/bin/pmmpi-report" "$tree"/usr/lib/pmmpi/pmmpi-topology "$tree"/usr/lib/pmmpi/pmmpi-names "$tree"/usr/lib/pmmpi/pmmpi-gpus \
    "$tree"/usr/lib/pmmpi/pmmpi-dynamic)
runners=$(links "$tree"/usr/lib/pmmpi/pmmpi-runner-* || true)

mkdir "$tree/DEBIAN"
{
    echo "Package: pmmpi"
    echo "Version: $version"
    echo "Architecture: $(dpkg --print-architecture)"
    echo "Maintainer: The pmmpi developers <pmmpi@localhost>"
    echo "Section: science"
    echo "Priority: optional"
    echo "Installed-Size: $(du -sk "$tree/usr" | cut -f1)"
    [ -z "$needed" ] || echo "Depends: $needed"
    [ -z "$runners" ] || echo "Recommends: $runners"
    echo "Suggests: libpfm4"
    echo "Description: MPI-aware cluster measurement tool"
    echo " Measures how long an MPI job really took, with provable bounds, counts what its cores did,"
    echo " and finds slow nodes and slow runs."
} > "$tree/DEBIAN/control"
mkdir -p "$into"
dpkg-deb --root-owner-group --build "$tree" "$into/pmmpi_${version}_$(dpkg --print-architecture).deb"
