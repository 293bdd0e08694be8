#!/bin/sh
# Builds HPC Challenge for MPICH from the source of Debian's package, because Debian ships it only for Open MPI.
#
# usage: hpcc-mpich.sh PROGRAM     does nothing if PROGRAM exists
set -eu
program=$1
[ -x "$program" ] && exit 0
folder=$(mktemp -d "${TMPDIR:-/tmp}/test-hpcc.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir -p lists/partial cache/archives/partial parts

# apt's own sources, as sources of source packages. The script does not change the machine's apt.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >> parts/debian.list
done
for list in /etc/apt/sources.list.d/*.sources; do
    [ -f "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" > "parts/${list##*/}"
done
apt="apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$folder/parts
    -o Dir::State::lists=$folder/lists -o Dir::Cache=$folder/cache -o APT::Sandbox::User=root"
# Other package sources than Debian's may fail; only hpcc must be found.
$apt update > update.log 2>&1 || true
$apt source --tar-only hpcc > source.log 2>&1 || { cat update.log source.log >&2; exit 1; }
tar xzf hpcc_*.orig.tar.gz
cd hpcc-*/

cat > hpl/Make.mpich << 'END'
SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir -p
RM = /bin/rm -f
TOUCH = touch
ARCH = $(arch)
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
LAlib = -l:libblas.so.3
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) $(LAlib) -lm
HPL_DEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle -DHPL_CALL_FBLAS $(HPL_INCLUDES)
CC = mpicc.mpich
CCNOOPT = $(HPL_DEFS)
CCFLAGS = $(HPL_DEFS) -O2 -fcommon -w
LINKER = mpicc.mpich
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = echo
END
make arch=mpich > build.log 2>&1 || { tail -20 build.log >&2; exit 1; }
mkdir -p "$(dirname "$program")"
mv hpcc "$program"
