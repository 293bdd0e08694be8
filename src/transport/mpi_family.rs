//! MPI libraries by their files' names, by what they define and by what they say of themselves.

/// True for the file name of a library that an MPI program is linked with: libmpi.so.40 (Open MPI),
/// libmpich.so.12 (Debian's MPICH), libmpi.so.12 (MPICH, Intel MPI), libmpi_cray.so.12, libmpi_abi.so.1,
/// libmpifort.so.12, libmpi_mpifh.so.40, ...
pub fn is_mpi_library(file_name: &str) -> bool {
    let Some(stem) = stem(file_name) else { return false };
    let named = ["mpi", "mpich", "mpifort", "mpicxx", "mpichfort", "mpichcxx", "mpichf90", "mpigf", "mpigc4"];
    named.contains(&stem) || stem.starts_with("mpi_")
}

/// True for a library that is named as the standard wants one of its ABI to be (MPI 5.0, "The MPI ABI Header
/// File and Shared Library"). MPICH may have its PMPI_ functions in a library beside it.
fn is_standard_abi(file_name: &str) -> bool {
    matches!(stem(file_name), Some("mpi_abi" | "pmpi_abi"))
}

/// libSTEM.so.1, libSTEM-gfortran.so.
fn stem(file_name: &str) -> Option<&str> {
    let (stem, _) = file_name.strip_prefix("lib")?.split_once(".so")?;
    stem.split('-').next()
}

/// Libraries with the same handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH and what is built from it (the MPICH ABI Compatibility Initiative).
    Mpich,
    /// Those that speak the ABI of MPI 5.0, whoever made them.
    StandardAbi,
}

/// Open MPI's MPI_COMM_WORLD is the address of this object (mpi.h), in what others make from it, too: Spectrum MPI,
/// Fujitsu MPI, Bull's.
const OPEN_MPIS_WORLD: &str = "ompi_mpi_comm_world";
/// MPI_DUP_FN of MPICH's mpi.h, in what others make from it, too: MVAPICH, Intel MPI, ParaStation MPI, Cray MPICH. It is part
/// of their common ABI, as their handles are.
const MPICHS_DUP_FN: &str = "MPIR_Dup_fn";

impl MpiFamily {
    /// Of the library in which the functions of `file_name` lie, which `defines` names or does not, whose
    /// MPI_Abi_get_version gives the major version `abi_major` (`None`: it has no such function), and whose
    /// MPI_Get_library_version says `version`.
    ///
    /// The ABI comes first: MPICH's libmpi_abi says "MPICH" and Open MPI's says "Open MPI", as their native
    /// libraries do. These have the function too, from MPI 5.0 on, and give -1 (MPI 5.0, chapter "Application
    /// Binary Interface", MPI_ABI_GET_VERSION; src/binding/c/abi_api.txt of MPICH 5.0.1,
    /// ompi/mpi/c/abi_get_version.c.in of Open MPI 6). Then what the library is made of, for it may call itself
    /// anything; its words are believed where it has neither name.
    pub fn of(
        defines: impl Fn(&str) -> bool,
        version: &str,
        abi_major: Option<i32>,
        file_name: &str,
    ) -> Option<Self> {
        match abi_major {
            Some(1) => return Some(MpiFamily::StandardAbi),
            // An ABI with other constants than those that are known.
            Some(0..) => return None,
            // A draft of the ABI, as in MPICH 4.3: MPI_ERRORS_RETURN had another value.
            _ if is_standard_abi(file_name) => return None,
            _ => {}
        }
        match (defines(OPEN_MPIS_WORLD), defines(MPICHS_DUP_FN)) {
            (true, false) => return Some(MpiFamily::OpenMpi),
            (false, true) => return Some(MpiFamily::Mpich),
            // A layer between the two, which may have the handles of either.
            (true, true) => return None,
            (false, false) => {}
        }
        if version.contains("Open MPI") {
            return Some(MpiFamily::OpenMpi);
        }
        let derived = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"];
        derived.iter().any(|name| version.contains(name)).then_some(MpiFamily::Mpich)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_is_known_by_its_names() {
        for name in ["libmpi.so.40", "libmpich.so.12", "libmpi.so", "libmpi_mpifh.so.40", "libmpi_abi.so.1"] {
            assert!(is_mpi_library(name), "{name}");
        }
        for name in ["libmpir.so.23", "libc.so.6", "libmpfr.so.6", "mpi.so", "libmpi.a", "libmpicalc.so"] {
            assert!(!is_mpi_library(name), "{name}");
        }
    }

    const OPEN_MPI: &str = "Open MPI v6.0.0, package: Debian";
    const MPICH: &str = "MPICH Version:      5.0.1";

    fn nothing(_: &str) -> bool {
        false
    }

    #[test]
    fn the_standard_abi_comes_before_whose_it_is() {
        for version in [OPEN_MPI, MPICH, "MPI ABI 1.0", ""] {
            for file in ["libmpi_abi.so.1", "libpmpi_abi.so.1", "libmpi_abi.so.0", "libmuk.so", ""] {
                for defines in [nothing, |_: &str| true, |name: &str| name == OPEN_MPIS_WORLD] {
                    let family = MpiFamily::of(defines, version, Some(1), file);
                    assert_eq!(family, Some(MpiFamily::StandardAbi), "{version} {file}");
                }
            }
        }
    }

    /// Whatever they call themselves.
    #[test]
    fn native_libraries_are_known_by_what_they_are_made_of() {
        for abi in [None, Some(-1)] {
            for version in
                [OPEN_MPI, MPICH, "IBM Spectrum MPI 10.4", "Fujitsu MPI Library 4.0.1", "HPE MPT 2.25", ""]
            {
                let of = |name: &'static str| {
                    MpiFamily::of(move |other| other == name, version, abi, "libmpi.so.12")
                };
                assert_eq!(of(OPEN_MPIS_WORLD), Some(MpiFamily::OpenMpi), "{version}");
                assert_eq!(of(MPICHS_DUP_FN), Some(MpiFamily::Mpich), "{version}");
                assert_eq!(MpiFamily::of(|_| true, version, abi, "libmpi.so.12"), None);
            }
        }
    }

    #[test]
    fn a_library_without_either_name_is_known_by_what_it_says() {
        for abi in [None, Some(-1)] {
            let of = |version: &str, file: &str| MpiFamily::of(nothing, version, abi, file);
            assert_eq!(of(OPEN_MPI, "libmpi.so.40"), Some(MpiFamily::OpenMpi));
            assert_eq!(of(MPICH, "libmpich.so.12"), Some(MpiFamily::Mpich));
            assert_eq!(of("Intel(R) MPI Library 2021.9", "libmpi.so.12"), Some(MpiFamily::Mpich));
            // Where it is not known which file their functions are in.
            assert_eq!(of(MPICH, ""), Some(MpiFamily::Mpich));
            assert_eq!(of("Wi4MPI", "libmpi.so.1"), None);
            assert_eq!(of("HPE MPT 2.25", "libmpi.so"), None);
        }
    }

    #[test]
    fn other_abis_than_that_of_mpi_5_are_not_guessed() {
        for defines in [nothing, |_: &str| true, |name: &str| name == MPICHS_DUP_FN] {
            for version in [OPEN_MPI, MPICH, "MPI ABI 2.0"] {
                assert_eq!(MpiFamily::of(defines, version, Some(2), "libmpi_abi.so.2"), None);
                assert_eq!(MpiFamily::of(defines, version, Some(0), "libmpi_abi.so.0"), None);
                for file in ["libmpi_abi.so.1", "libmpi_abi.so.12", "libpmpi_abi.so.1"] {
                    assert_eq!(
                        MpiFamily::of(defines, version, None, file),
                        None,
                        "MPICH 4.3's draft: {file}"
                    );
                    assert_eq!(MpiFamily::of(defines, version, Some(-1), file), None);
                }
            }
        }
    }
}
