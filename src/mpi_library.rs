//! Which file names are those of an MPI library.

/// True for the file name of a library that an MPI program is linked with: libmpi.so.40 (Open MPI),
/// libmpich.so.12 (Debian's MPICH), libmpi.so.12 (MPICH, Intel MPI), libmpi_cray.so.12, libmpi_abi.so.0,
/// libmpifort.so.12, libmpi_mpifh.so.40, ...
pub fn is_mpi_library(file_name: &str) -> bool {
    let Some((stem, _)) = file_name.strip_prefix("lib").and_then(|rest| rest.split_once(".so")) else {
        return false;
    };
    let stem = stem.split('-').next().unwrap_or(stem);
    let named = ["mpi", "mpich", "mpifort", "mpicxx", "mpichfort", "mpichcxx", "mpichf90", "mpigf", "mpigc4"];
    named.contains(&stem) || stem.starts_with("mpi_")
}

#[cfg(test)]
mod tests {
    use super::is_mpi_library;

    #[test]
    fn mpi_is_known_by_its_names() {
        for name in ["libmpi.so.40", "libmpich.so.12", "libmpi.so", "libmpi_mpifh.so.40", "libmpi_abi.so.0"] {
            assert!(is_mpi_library(name), "{name}");
        }
        for name in ["libmpir.so.23", "libc.so.6", "libmpfr.so.6", "mpi.so", "libmpi.a", "libmpicalc.so"] {
            assert!(!is_mpi_library(name), "{name}");
        }
    }
}
