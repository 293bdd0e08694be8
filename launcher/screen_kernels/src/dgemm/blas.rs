//! A BLAS library that the user names.

use crate::error::Error;
use libloading::Library;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROW_MAJOR: c_int = 101;
const NO_TRANSPOSE: c_int = 111;

/// `cblas_dgemm`. The dimensions are 32-bit numbers in most libraries and 64-bit numbers in others (ILP64). On x86_64
/// and aarch64, each argument has 64 bits of its own. So a library that reads only 32 bits reads the same number.
type CblasDgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    i64,
    i64,
    i64,
    f64,
    *const f64,
    i64,
    *const f64,
    i64,
    f64,
    *mut f64,
    i64,
);

/// Functions that set the number of a library's threads.
const SET_THREADS: [&str; 5] = [
    "openblas_set_num_threads",
    "MKL_Set_Num_Threads",
    "bli_thread_set_num_threads",
    "nvpl_blas_set_num_threads",
    "omp_set_num_threads",
];

/// A BLAS library.
#[derive(Clone, Debug)]
pub struct Blas {
    path: PathBuf,
    dgemm: CblasDgemm,
    /// The code of `dgemm`.
    _library: Arc<Library>,
}

impl Blas {
    /// Loads a shared library with `cblas_dgemm`, and lets it use one thread per call. Multiplies two small matrices
    /// to test the library.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        if cfg!(target_feature = "crt-static") {
            return Err(Error::Setting(format!(
                "Cannot load the BLAS library {shown}: this program is statically linked"
            )));
        }
        // SAFETY: runs the initialisation of a library that the user chose to run.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            Error::Setting(format!(
                "Cannot load the BLAS library {shown}: {error}; give the path of a shared library (.so) and load the \
                 modules that it needs"
            ))
        })?;
        // SAFETY: the type is that of this function in every CBLAS.
        let dgemm = unsafe { library.get::<CblasDgemm>(b"cblas_dgemm\0") }.map_err(|_| {
            Error::Setting(format!(
                "The library {shown} has no function cblas_dgemm; give a BLAS library with the C interface, for \
                 example libopenblas.so or libmkl_rt.so"
            ))
        })?;
        let dgemm = *dgemm;
        for name in SET_THREADS {
            // SAFETY: all these functions take the number of threads. `bli_thread_set_num_threads` takes 64 bits, see
            // `CblasDgemm`.
            if let Ok(set_threads) = unsafe { library.get::<unsafe extern "C" fn(i64)>(name.as_bytes()) } {
                // SAFETY: as above.
                unsafe { set_threads(1) };
            }
        }
        let blas = Self { path: path.to_owned(), dgemm, _library: Arc::new(library) };
        blas.try_out()?;
        Ok(blas)
    }

    /// The file name of the library.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// C = C + A B, all row by row. `sizes` are the rows of C, the columns of C, and the columns of A.
    pub(super) fn add_product(&self, sizes: [usize; 3], a: &[f64], b: &[f64], c: &mut [f64]) {
        let [rows, columns, inner] = sizes;
        assert!(a.len() >= rows * inner && b.len() >= inner * columns && c.len() >= rows * columns);
        let [rows, columns, inner] = sizes.map(|size| size as i64);
        // SAFETY: the matrices have these sizes.
        unsafe {
            (self.dgemm)(
                ROW_MAJOR,
                NO_TRANSPOSE,
                NO_TRANSPOSE,
                rows,
                columns,
                inner,
                1.0,
                a.as_ptr(),
                inner,
                b.as_ptr(),
                columns,
                1.0,
                c.as_mut_ptr(),
                columns,
            );
        }
    }

    fn try_out(&self) -> Result<(), Error> {
        let mut c = [10.0; 4];
        self.add_product([2, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut c);
        if c == [32.0, 38.0, 59.0, 74.0] {
            return Ok(());
        }
        Err(Error::Setting(format!(
            "The BLAS library {} multiplies two small matrices wrongly: {c:?}; use another library",
            self.path.display()
        )))
    }
}
