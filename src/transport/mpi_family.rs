//! Recognises MPI libraries by their file names, by their symbols and by their version texts.

/// True for the file name of a library that an MPI program is linked with: libmpi.so.40 (Open MPI),
/// libmpich.so.12 (Debian's MPICH), libmpi.so.12 (MPICH, Intel MPI), libmpi_cray.so.12, libmpi_abi.so.1,
/// libmpifort.so.12, libmpi_mpifh.so.40, ...
pub fn is_mpi_library(file_name: &str) -> bool {
    let Some(stem) = stem(file_name) else { return false };
    let named = ["mpi", "mpich", "mpifort", "mpicxx", "mpichfort", "mpichcxx", "mpichf90", "mpigf", "mpigc4"];
    named.contains(&stem) || stem.starts_with("mpi_")
}

/// True for the file name that the standard gives to a library of its ABI (MPI 5.0, "The MPI ABI Header File and
/// Shared Library"). MPICH may have its PMPI_ functions in a second library.
fn is_standard_abi(file_name: &str) -> bool {
    matches!(stem(file_name), Some("mpi_abi" | "pmpi_abi"))
}

/// The STEM of libSTEM.so.1 and of libSTEM-gfortran.so.
fn stem(file_name: &str) -> Option<&str> {
    let (stem, _) = file_name.strip_prefix("lib")?.split_once(".so")?;
    stem.split('-').next()
}

/// Libraries with the same handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH and libraries built from it (the MPICH ABI Compatibility Initiative).
    Mpich,
    /// Libraries of any vendor with the ABI of MPI 5.0.
    StandardAbi,
}

/// Open MPI's MPI_COMM_WORLD is the address of this object (mpi.h). So it is in libraries that derive from Open
/// MPI: Spectrum MPI, Fujitsu MPI, Bull's.
const OPEN_MPIS_WORLD: &str = "ompi_mpi_comm_world";
/// MPI_DUP_FN of MPICH's mpi.h. Libraries that derive from MPICH also have it: MVAPICH, Intel MPI, ParaStation MPI,
/// Cray MPICH. It is part of their common ABI, like their handles.
const MPICHS_DUP_FN: &str = "MPIR_Dup_fn";

impl MpiFamily {
    /// The family of the library `file_name`, which has the MPI functions. `defines` shows whether the library has
    /// a symbol. `abi_major` is the major version from its MPI_Abi_get_version (`None`: it has no such function).
    /// `version` is the text from its MPI_Get_library_version.
    ///
    /// The ABI comes first: MPICH's libmpi_abi reports "MPICH" and Open MPI's reports "Open MPI", as their native
    /// libraries do. From MPI 5.0 on the native libraries also have the function, and return -1 (MPI 5.0, chapter
    /// "Application Binary Interface", MPI_ABI_GET_VERSION; src/binding/c/abi_api.txt of MPICH 5.0.1,
    /// ompi/mpi/c/abi_get_version.c.in of Open MPI 6). The symbols come next, because a library may call itself
    /// anything. The version text decides only if the library has neither symbol.
    pub fn of(
        defines: impl Fn(&str) -> bool,
        version: &str,
        abi_major: Option<i32>,
        file_name: &str,
    ) -> Option<Self> {
        match abi_major {
            Some(1) => return Some(MpiFamily::StandardAbi),
            // An ABI with unknown constants.
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

    /// Whatever their version texts are.
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
            // If the file with the functions is unknown.
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
