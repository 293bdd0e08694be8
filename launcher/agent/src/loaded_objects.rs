//! The files that this process is made of: its program and the libraries that are loaded.

use pmmpi::transport::mpi_family::is_mpi_library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// A program or a library in this process.
#[derive(Default)]
struct Object {
    /// Its path as the loader has it; the program's is empty.
    path: CString,
    soname: Vec<u8>,
    /// Names of the libraries that it needs itself.
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

/// The MPI libraries among this process's objects.
pub fn mpi_libraries() -> Vec<CString> {
    let mut paths: Vec<CString> = Vec::new();
    each(&mut |info| {
        paths.extend(path_of(info).filter(|path| is_mpi_library(&file_name(path))).map(CStr::to_owned))
    });
    paths
}

/// True if the program needs an MPI library, itself or through a library that it needs. Not where one is only there
/// because another preloaded library needs it.
pub fn program_needs_mpi() -> bool {
    if mpi_libraries().is_empty() {
        return false; // as in most processes, at once
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

/// The last part of a path.
pub fn file_name(path: &CStr) -> String {
    let bytes = path.to_bytes();
    let name = bytes.rsplit(|b| *b == b'/').next().unwrap_or(bytes);
    String::from_utf8_lossy(name).into_owned()
}

fn described(info: &libc::dl_phdr_info) -> Object {
    let mut object = Object { path: path_of(info).unwrap_or_default().to_owned(), ..Object::default() };
    // SAFETY: the loader gives as many headers as it says, and maps a dynamic section that ends with DT_NULL and
    // whose names are C strings in the table that it names.
    unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
            return object;
        };
        let section = (info.dlpi_addr + header.p_vaddr) as *const Dynamic;
        let entries = || (0..).map(|at| *section.add(at)).take_while(|entry| entry.tag != 0);
        let Some(table) = entries().find(|entry| entry.tag == DT_STRTAB) else { return object };
        // glibc makes an address of it; other loaders, and the vDSO, leave the distance from the base.
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
    // SAFETY: a name that is not null is a C string that lives as long as the object.
    (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) })
}

fn each(visit: &mut dyn FnMut(&libc::dl_phdr_info)) {
    let mut visit: &mut dyn FnMut(&libc::dl_phdr_info) = visit;
    // SAFETY: the callback gets the address of `visit` back and runs only during this call.
    unsafe { libc::dl_iterate_phdr(Some(call), (&raw mut visit).cast()) };
}

unsafe extern "C" fn call(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info, and `visit` is that of `each`.
    unsafe { (*visit.cast::<&mut dyn FnMut(&libc::dl_phdr_info)>())(&*info) };
    0
}
