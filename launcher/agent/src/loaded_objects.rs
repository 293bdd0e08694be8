//! The program and the loaded libraries of this process.

use pmmpi::transport::mpi_family::is_mpi_library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// A program or a library in this process.
#[derive(Default)]
struct Object {
    /// The path as the loader knows it; empty for the program.
    path: CString,
    soname: Vec<u8>,
    /// Names of the libraries that it directly needs.
    needed: Vec<Vec<u8>>,
}

impl Object {
    fn is_mpi(&self) -> bool {
        is_mpi_library(&file_name(&self.path))
    }

    fn is(&self, name: &[u8]) -> bool {
        self.soname == name || self.path.to_bytes() == name || file_name(&self.path).as_bytes() == name
    }
}

/// The paths of the MPI libraries in this process.
pub fn mpi_libraries() -> Vec<CString> {
    let mut paths: Vec<CString> = Vec::new();
    each(&mut |info| {
        paths.extend(path_of(info).filter(|path| is_mpi_library(&file_name(path))).map(CStr::to_owned))
    });
    paths
}

/// True if the program needs an MPI library, directly or through a library that it needs. False if only another
/// preloaded library needs the MPI library.
pub fn program_needs_mpi() -> bool {
    if mpi_libraries().is_empty() {
        return false; // the fast path for most processes
    }
    let mut objects: Vec<Object> = Vec::new();
    each(&mut |info| objects.push(described(info)));
    let mut reached = vec![false; objects.len()];
    let mut waiting = vec![0]; // the program comes first (dl_iterate_phdr(3))
    while let Some(number) = waiting.pop() {
        let Some(object) = objects.get(number) else { break };
        if object.is_mpi() {
            return true;
        }
        for name in &object.needed {
            let found = objects.iter().position(|other| other.is(name)).filter(|found| !reached[*found]);
            waiting.extend(found.inspect(|found| reached[*found] = true));
        }
    }
    false
}

pub fn file_name(path: &CStr) -> String {
    let bytes = path.to_bytes();
    let name = bytes.rsplit(|b| *b == b'/').next().unwrap_or(bytes);
    String::from_utf8_lossy(name).into_owned()
}

fn described(info: &libc::dl_phdr_info) -> Object {
    let mut object = Object { path: path_of(info).unwrap_or_default().to_owned(), ..Object::default() };
    // SAFETY: the loader gives `dlpi_phnum` headers and maps a dynamic section that ends with DT_NULL. Its names are C
    // strings in its string table.
    unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
            return object;
        };
        let section = (info.dlpi_addr + header.p_vaddr) as *const Dynamic;
        let entries = || (0..).map(|at| *section.add(at)).take_while(|entry| entry.tag != 0);
        let Some(table) = entries().find(|entry| entry.tag == DT_STRTAB) else { return object };
        // glibc replaces the value by an address; with other loaders and in the vDSO, it is an offset from the base.
        let table = if table.value < info.dlpi_addr { table.value + info.dlpi_addr } else { table.value };
        for entry in entries().filter(|entry| entry.tag == DT_NEEDED || entry.tag == DT_SONAME) {
            let name = CStr::from_ptr((table + entry.value) as *const c_char).to_bytes().to_vec();
            if entry.tag == DT_SONAME { object.soname = name } else { object.needed.push(name) }
        }
    }
    object
}

/// Elf64_Dyn (elf(5)).
#[derive(Clone, Copy)]
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;
const DT_SONAME: i64 = 14;

fn path_of(info: &libc::dl_phdr_info) -> Option<&CStr> {
    // SAFETY: a name that is not null is a C string and lives as long as the object.
    (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) })
}

fn each(visit: &mut dyn FnMut(&libc::dl_phdr_info)) {
    let mut visit: &mut dyn FnMut(&libc::dl_phdr_info) = visit;
    // SAFETY: the callback gets the address of `visit` and runs only during this call.
    unsafe { libc::dl_iterate_phdr(Some(call), (&raw mut visit).cast()) };
}

unsafe extern "C" fn call(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info, and `visit` is that of `each`.
    unsafe { (*visit.cast::<&mut dyn FnMut(&libc::dl_phdr_info)>())(&*info) };
    0
}
