#!/bin/sh
# Makes a virtual environment with the programs that `make bench` compares with pmmpi. Nothing else needs it. If this
# script cannot make it, `make bench` says what it did not measure.
#
# usage: venv.sh FOLDER
set -eu
folder=$1
wanted=$(dirname "$0")/requirements.txt
cmp -s "$wanted" "$folder/requirements.txt" && exit 0

rm -rf "$folder"
mkdir -p "$folder"
log=$folder/log
make_it() {
    python3 -c 'import ensurepip' || "$(dirname "$0")/../../tests/rig/deps.sh" python3-venv || return
    python3 -m venv "$folder" || return
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$wanted"
}
if make_it > "$log" 2>&1; then
    cp "$wanted" "$folder"
else
    echo "the Python packages of $wanted could not be installed (no network?), so pmmpi-bench does not measure them:" >&2
    tail -3 "$log" >&2
    rm -rf "$folder"
fi
