//! The libraries that a program's file needs: PT_INTERP and DT_NEEDED (elf(5)). The search follows libraries as the
//! dynamic loader does (ld.so(8)).

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef, StringTable};
use object::{Endianness, FileKind, Object, ObjectSymbol};
use pmmpi::transport::mpi_family::is_mpi_library;
use std::collections::{HashSet, VecDeque};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
pub enum Binary {
    /// Not an ELF file, or a damaged one.
    Other,
    /// Statically linked: it has no loader, so it cannot preload the agent. True if it contains MPI_Init.
    Static(bool),
    /// It needs an MPI library.
    Mpi {
        library: String,
        /// The library of the program that needs the MPI library; `None` if the program itself needs it.
        through: Option<String>,
    },
    /// Dynamically linked, without an MPI library.
    Dynamic,
}

/// Reads the file at `path` and the libraries that it needs, until it finds an MPI library.
pub fn inspect(path: &Path) -> Binary {
    let Some(object) = ElfFile::read(path) else { return Binary::Other };
    if object.interpreter.is_none() {
        return Binary::Static(defines_mpi_init(path));
    }
    let mut search = None;
    let mut seen: HashSet<String> = HashSet::new();
    let mut queue = VecDeque::from([(object, None::<String>)]);
    while let Some((object, through)) = queue.pop_front() {
        if let Some(library) = object.needed.iter().find(|name| is_mpi_library(file_name(name))) {
            return Binary::Mpi { library: library.clone(), through };
        }
        for name in &object.needed {
            if !is_systems(file_name(name)) && seen.insert(name.clone()) {
                let search = search.get_or_insert_with(|| Search::new(&object));
                queue.extend(search.find(name, &object).map(|found| (found, Some(name.clone()))));
            }
        }
    }
    Binary::Dynamic
}

/// True if the program needs the loader of musl.
pub fn is_for_musl(path: &Path) -> bool {
    let loader = ElfFile::read(path).and_then(|file| file.interpreter).unwrap_or_default();
    file_name(&loader).starts_with("ld-musl-")
}

/// True for the C and C++ run-time libraries. They need no MPI library, so the search does not open them.
fn is_systems(library: &str) -> bool {
    let stem = library.split(".so").next().unwrap_or(library);
    let systems = ["libc", "libm", "libdl", "librt", "libpthread", "libgcc_s", "libstdc++", "linux-vdso"];
    systems.contains(&stem) || library.starts_with("ld-linux")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The parts of an ELF file that the search needs.
struct ElfFile {
    path: PathBuf,
    /// Class and machine. The search skips libraries of another class or machine.
    kind: (u8, u16),
    /// Path of the loader; `None` in a library and in a static program.
    interpreter: Option<String>,
    needed: Vec<String>,
    rpath: Vec<String>,
    runpath: Vec<String>,
}

impl ElfFile {
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        match FileKind::parse(&cache).ok()? {
            FileKind::Elf64 => Self::parse::<FileHeader64<Endianness>, _>(path, &cache),
            FileKind::Elf32 => Self::parse::<FileHeader32<Endianness>, _>(path, &cache),
            _ => None,
        }
    }

    fn parse<'data, H: FileHeader, R: ReadRef<'data>>(path: &Path, data: R) -> Option<Self> {
        const USUAL_TEXT_BYTES: u64 = 256;
        let header = H::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, data).ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut file = Self {
            path: path.to_owned(),
            kind: (header.e_ident().class, header.e_machine(endian)),
            interpreter: segments.iter().find_map(|s| s.interpreter(endian, data).ok().flatten()).map(text),
            needed: Vec::new(),
            rpath: Vec::new(),
            runpath: Vec::new(),
        };
        let Some(entries) = segments.iter().find_map(|s| s.dynamic(endian, data).ok().flatten()) else {
            return Some(file);
        };
        let value = |tag| entries.iter().find(|e| e.tag(endian) == tag).map(|e| e.val(endian));
        let (address, size) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
        let start = segments.iter().find_map(|s| {
            let within = address.checked_sub(s.p_vaddr(endian).into())?;
            let is_loaded = s.p_type(endian) == elf::PT_LOAD && within < s.p_filesz(endian).into();
            is_loaded.then(|| s.p_offset(endian).into().checked_add(within)).flatten()
        })?;
        let end = start.checked_add(size)?;
        let strings = StringTable::new(data, start, end);
        for entry in entries.iter().take_while(|e| e.tag(endian) != elf::DT_NULL) {
            let text = || {
                let offset = u32::try_from(entry.val(endian)).ok()?;
                let at = start.checked_add(offset.into())?;
                // StringTable asks the processor for its features first (CPUID), which is slow in a virtual machine.
                // So only texts longer than this piece use it.
                let piece = data.read_bytes_at(at, end.checked_sub(at)?.min(USUAL_TEXT_BYTES)).ok()?;
                let text = match CStr::from_bytes_until_nul(piece) {
                    Ok(text) => text.to_bytes(),
                    Err(_) => strings.get(offset).ok()?,
                };
                Some(String::from_utf8_lossy(text).into_owned())
            };
            let list = |text: String| text.split(':').map(str::to_owned).collect::<Vec<_>>();
            match entry.tag(endian) {
                elf::DT_NEEDED => file.needed.extend(text()),
                elf::DT_RPATH => file.rpath = text().map(list).unwrap_or_default(),
                elf::DT_RUNPATH => file.runpath = text().map(list).unwrap_or_default(),
                _ => {}
            }
        }
        Some(file)
    }

    /// Replaces $ORIGIN, $LIB and $PLATFORM.
    fn expand(&self, folder: &str) -> PathBuf {
        if !folder.contains('$') {
            return PathBuf::from(folder);
        }
        let own = self.path.canonicalize().ok();
        let origin = own.as_deref().and_then(Path::parent).map(Path::to_string_lossy).unwrap_or_default();
        let lib = if self.kind.0 == elf::ELFCLASS64 { "lib64" } else { "lib" };
        let tokens = [("ORIGIN", origin.as_ref()), ("LIB", lib), ("PLATFORM", std::env::consts::ARCH)];
        let replace = |text: String, (token, value): (&str, &str)| {
            text.replace(&format!("${{{token}}}"), value).replace(&format!("${token}"), value)
        };
        PathBuf::from(tokens.into_iter().fold(folder.to_owned(), replace))
    }
}

/// The folders in which the loader looks, in its order.
struct Search {
    kind: (u8, u16),
    /// DT_RPATH of the program is valid for its libraries, too.
    rpath: Vec<PathBuf>,
    environment: Vec<PathBuf>,
    system: Vec<PathBuf>,
}

impl Search {
    fn new(program: &ElfFile) -> Self {
        let environment = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let split = |list: &OsStr| {
            let folders = list.as_bytes().split(|b| *b == b':' || *b == b';').filter(|f| !f.is_empty());
            folders.map(|f| PathBuf::from(OsStr::from_bytes(f))).collect()
        };
        let mut system = Vec::new();
        read_loader_configuration(Path::new("/etc/ld.so.conf"), 0, &mut system);
        system.extend(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
        Self {
            kind: program.kind,
            rpath: own_rpath(program).collect(),
            environment: split(&environment),
            system,
        }
    }

    fn find(&self, name: &str, needed_by: &ElfFile) -> Option<ElfFile> {
        if name.contains('/') {
            return ElfFile::read(Path::new(name));
        }
        let folders = own_rpath(needed_by)
            .chain(self.rpath.iter().filter(|_| needed_by.runpath.is_empty()).cloned())
            .chain(self.environment.iter().cloned())
            .chain(needed_by.runpath.iter().map(|folder| needed_by.expand(folder)))
            .chain(self.system.iter().cloned());
        let mut files = folders.filter_map(|folder| ElfFile::read(&folder.join(name)));
        files.find(|file| file.kind == self.kind)
    }
}

/// The folders of DT_RPATH; none if the file has a DT_RUNPATH (ld.so(8)).
fn own_rpath(file: &ElfFile) -> impl Iterator<Item = PathBuf> {
    file.rpath.iter().filter(|_| file.runpath.is_empty()).map(|folder| file.expand(folder))
}

/// Adds the folders of ldconfig(8)'s configuration.
fn read_loader_configuration(path: &Path, depth: u32, folders: &mut Vec<PathBuf>) {
    const DEEPEST_INCLUDE: u32 = 4;
    let Ok(text) = std::fs::read_to_string(path) else { return };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or(line).trim();
        match line.strip_prefix("include") {
            Some(pattern) if depth < DEEPEST_INCLUDE => {
                for included in glob_one_level(Path::new(pattern.trim())) {
                    read_loader_configuration(&included, depth + 1, folders);
                }
            }
            _ if line.starts_with('/') => folders.push(PathBuf::from(line)),
            _ => {}
        }
    }
}

/// The files that match `folder/*suffix`, the only form of pattern that distributions use.
fn glob_one_level(pattern: &Path) -> Vec<PathBuf> {
    let suffix = pattern.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix('*'));
    let (Some(folder), Some(suffix)) = (pattern.parent(), suffix) else { return vec![pattern.to_owned()] };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    files.sort();
    files
}

fn defines_mpi_init(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let parsed = object::File::parse(&cache);
    parsed.is_ok_and(|object| {
        object.symbols().any(|symbol| matches!(symbol.name(), Ok("MPI_Init" | "PMPI_Init")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_for_what_they_are() {
        assert_eq!(inspect(Path::new("/bin/sh")), Binary::Dynamic);
        assert_eq!(inspect(Path::new("/etc/passwd")), Binary::Other);
        assert_eq!(inspect(Path::new("/nonexistent")), Binary::Other);
    }

    #[test]
    fn damaged_files_are_no_reason_to_panic() {
        let whole = std::fs::read("/bin/sh").unwrap();
        let path = std::env::temp_dir().join(format!("test-elf-{}", std::process::id()));
        for end in [4, 63, 64, 200, 1000, whole.len() / 2] {
            std::fs::write(&path, &whole[..end]).unwrap();
            inspect(&path);
        }
        for at in (0..1000).step_by(3) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            std::fs::write(&path, &damaged).unwrap();
            inspect(&path);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
