//! MPI libraries by their files' names and by what they say of themselves.

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
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH and what is built from it (the MPICH ABI Compatibility Initiative).
    Mpich,
    /// Those that speak the ABI of MPI 5.0, whoever made them.
    StandardAbi,
}

impl Family {
    /// Of the library whose MPI_Get_library_version says `version`, whose MPI_Abi_get_version gives the major
    /// version `abi_major` (`None`: it has no such function), and whose functions lie in `file_name`.
    ///
    /// The ABI comes first: MPICH's libmpi_abi says "MPICH" and Open MPI's says "Open MPI", as their native
    /// libraries do. These have the function too, from MPI 5.0 on, and give -1 (MPI 5.0, chapter "Application
    /// Binary Interface", MPI_ABI_GET_VERSION; src/binding/c/abi_api.txt of MPICH 5.0.1,
    /// ompi/mpi/c/abi_get_version.c.in of Open MPI 6).
    pub fn of(version: &str, abi_major: Option<i32>, file_name: &str) -> Option<Self> {
        match abi_major {
            Some(1) => return Some(Family::StandardAbi),
            // An ABI with other constants than those that are known.
            Some(0..) => return None,
            // A draft of the ABI, as in MPICH 4.3: MPI_ERRORS_RETURN had another value.
            _ if is_standard_abi(file_name) => return None,
            _ => {}
        }
        if version.contains("Open MPI") {
            return Some(Family::OpenMpi);
        }
        let derived = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"];
        derived.iter().any(|name| version.contains(name)).then_some(Family::Mpich)
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

    #[test]
    fn the_standard_abi_comes_before_whose_it_is() {
        for version in [OPEN_MPI, MPICH, "MPI ABI 1.0", ""] {
            for file in ["libmpi_abi.so.1", "libpmpi_abi.so.1", "libmpi_abi.so.0", "libmuk.so", ""] {
                assert_eq!(Family::of(version, Some(1), file), Some(Family::StandardAbi), "{version} {file}");
            }
        }
    }

    #[test]
    fn native_libraries_are_known_by_what_they_say() {
        for abi in [None, Some(-1)] {
            assert_eq!(Family::of(OPEN_MPI, abi, "libmpi.so.40"), Some(Family::OpenMpi));
            assert_eq!(Family::of(MPICH, abi, "libmpi.so.12"), Some(Family::Mpich));
            assert_eq!(Family::of(MPICH, abi, "libmpich.so.12"), Some(Family::Mpich));
            assert_eq!(Family::of("Intel(R) MPI Library 2021.9", abi, "libmpi.so.12"), Some(Family::Mpich));
            // MPICH and Open MPI where it is not known which file their functions are in.
            assert_eq!(Family::of(MPICH, abi, ""), Some(Family::Mpich));
            assert_eq!(Family::of("Wi4MPI", abi, "libmpi.so.1"), None);
        }
    }

    #[test]
    fn other_abis_than_that_of_mpi_5_are_not_guessed() {
        for version in [OPEN_MPI, MPICH, "MPI ABI 2.0"] {
            assert_eq!(Family::of(version, Some(2), "libmpi_abi.so.2"), None);
            assert_eq!(Family::of(version, Some(0), "libmpi_abi.so.0"), None);
            for file in ["libmpi_abi.so.1", "libmpi_abi.so.12", "libpmpi_abi.so.1"] {
                assert_eq!(Family::of(version, None, file), None, "MPICH 4.3's draft: {file}");
                assert_eq!(Family::of(version, Some(-1), file), None);
            }
        }
    }
}
