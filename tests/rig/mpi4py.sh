#!/bin/sh
# Installs mpi4py for MPICH into a folder, because Debian ships it only for Open MPI. The published wheel
# opens libmpi.so.12 on import; Debian's name of that library is libmpich.so.12.
#
# usage: mpi4py.sh FOLDER
set -eu
folder=$1
[ -e "$folder/lib/libmpi.so.12" ] && exit 0

new=$folder.new.$$
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/lib"
/usr/bin/python3 -m pip install --quiet --no-deps --target "$new/python" mpi4py==4.1.2 2> "$new/log" || { cat "$new/log" >&2; exit 1; }
library=$(mpicc.mpich -show | tr ' ' '\n' | sed -n 's/^-L//p' | while read -r place; do
    [ -e "$place/libmpich.so.12" ] && echo "$place/libmpich.so.12" && break
done)
[ -n "$library" ] || library=$(ldconfig -p | sed -n 's/.*libmpich.so.12 .*=> //p' | head -1)
[ -n "$library" ] || { echo "libmpich.so.12 was not found" >&2; exit 1; }
ln -s "$library" "$new/lib/libmpi.so.12"
rm -rf "$folder"
mv "$new" "$folder"
