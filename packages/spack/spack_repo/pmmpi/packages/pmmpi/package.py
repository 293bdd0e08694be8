# To install pmmpi: `spack repo add packages/spack/spack_repo/pmmpi`, then `spack install --no-checksum pmmpi` in the
# folder of pmmpi-VERSION-source.tar.xz. Spack 1.0 or later requires this layout of folders.

import os

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Pmmpi(MakefilePackage):
    """MPI-aware cluster measurement tool: how long a job really took, with provable bounds, and
    which nodes and runs were slow."""

    manual_download = True
    url = f"file://{os.getcwd()}/pmmpi-0.1.0-source.tar.xz"

    license("MIT OR Apache-2.0")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("llvm+clang", type="build")  # rsmpi reads mpi.h with libclang
    depends_on("hwloc@2.1:2")
    depends_on("mpi")

    @property
    def build_targets(self):
        # DEPS=: make installs no dependencies, because Spack installs them. MPIS=: make builds no runner, because
        # install() builds the runner for Spack's MPI.
        return ["tool", "DEPS=:", "MPIS="]

    def setup_build_environment(self, env):
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def install(self, spec, prefix):
        make("install-staged", f"PREFIX={prefix}")
        make("runner", f"MPICC={spec['mpi'].mpicc}", f"PREFIX={prefix}")

    def check(self):
        """Spack would call `make test`, which needs root and packages of Debian. See check_install()."""

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.pmmpi)("--out", self.stage.path, "/bin/true")
