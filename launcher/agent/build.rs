//! Links the agent so that it loads on every machine and in every container.
//!
//! - The C library: a stub replaces this machine's library. The stub has the functions that the agent and Rust's
//!   standard library need, with the versions that they have in glibc 2.17 (2012). So the agent loads wherever a
//!   program of the last ten years loads. Newer functions are in src/older_libc.rs, or the agent looks them up at run
//!   time.
//! - The stack unwinder: Rust's standard library asks for libgcc_s.so. The measurement must not change the unwinder of
//!   a program that has another one or none. So a linker script with that name links the static unwinder instead.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Functions by their version in x86-64 glibc. On other machines, each of these functions has the version with which
/// glibc started there.
const FUNCTIONS: [(&str, &str); 9] = [
    (
        "GLIBC_2.2.5",
        "__cxa_finalize __errno_location _exit abort bcmp bind calloc close closedir connect dirfd \
         dl_iterate_phdr fcntl fflush flock free fstatvfs64 fsync ftruncate64 getcwd getenv geteuid gethostname getpid \
         getppid getrlimit getrusage getsockopt getuid ioctl kill link listen lseek64 madvise malloc memchr memcmp memmove memset \
         mkdir mmap mmap64 mprotect munmap nanosleep open64 opendir poll posix_memalign prctl pread64 \
         pthread_setcancelstate pwrite64 raise read readdir64 readlink realloc recv recvfrom recvmsg rename rmdir sched_yield \
         send sendmsg sendto setenv setsockopt shutdown socket strlen symlink syscall sysconf unlink unsetenv write writev",
    ),
    ("GLIBC_2.3", "__tls_get_addr realpath"),
    ("GLIBC_2.3.4", "__xpg_strerror_r"),
    ("GLIBC_2.4", "fdopendir openat64 unlinkat"),
    ("GLIBC_2.6", "sched_getcpu"),
    ("GLIBC_2.10", "accept4 fallocate64"),
    ("GLIBC_2.14", "memcpy"),
    ("GLIBC_2.16", "getauxval"),
    ("GLIBC_2.17", "clock_gettime"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("libgcc_s.so"), "INPUT ( -lgcc_eh )\n").expect("OUT_DIR can be written");
    println!("cargo::rustc-link-search=native={}", out.display());
    let for_agent = |argument: &str| println!("cargo::rustc-link-arg-cdylib={argument}");
    let folder = out.join("libc");
    match stand_in_for_libc(&folder) {
        Ok(()) => {
            for_agent(&format!("-L{}", folder.display()));
            // Another Rust toolchain may need another function. The agent then needs this machine's C library; a
            // test in tests/structure.rs reports that.
            if let Some(own) = own_libc() {
                for_agent(&own);
            }
        }
        Err(why) => println!(
            "cargo::warning=the agent will need a C library at least as new as that of this machine, \
             because {why}"
        ),
    }
    for name in ["dlsym", "dlopen", "dladdr"] {
        for_agent(&format!("-Wl,--wrap={name}")); // see src/loader.rs
    }
}

/// The path of this machine's C library, from the compiler.
fn own_libc() -> Option<String> {
    let output = Command::new(compiler()).arg("-print-file-name=libc.so.6").output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    Path::new(&path).is_absolute().then_some(path)
}

fn compiler() -> OsString {
    env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into())
}

/// Makes a libc.so for the linker only: its functions have names and versions, and do nothing.
fn stand_in_for_libc(out: &Path) -> Result<(), String> {
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("ENV") != "gnu" {
        return Err("the C library is not glibc".to_owned());
    }
    let first = match target("ARCH").as_str() {
        "x86_64" => None,
        "aarch64" => Some("GLIBC_2.17"),
        other => return Err(format!("pmmpi does not know the symbol versions of glibc on {other}")),
    };
    let (mut source, mut versions) = (String::new(), String::new());
    for (version, names) in FUNCTIONS {
        for name in names.split_whitespace() {
            source += &format!(".globl {name}\n.type {name}, %function\n{name}:\n");
        }
        let version = first.unwrap_or(version);
        let globals = names.split_whitespace().map(|name| format!("{name}; ")).collect::<String>();
        versions += &match first {
            Some(_) => globals,
            None => format!("{version} {{ global: {globals}}};\n"),
        };
    }
    if let Some(first) = first {
        versions = format!("{first} {{ global: {versions}}};\n");
    }
    source.insert_str(0, ".text\n");
    fs::create_dir_all(out).map_err(|e| e.to_string())?;
    let write = |name: &str, text: &str| fs::write(out.join(name), text).map_err(|e| format!("{name}: {e}"));
    write("libc.s", &source)?;
    write("libc.map", &versions)?;
    let compiler = compiler();
    let mut command = Command::new(&compiler);
    command.current_dir(out).args(["-shared", "-nostdlib", "-Wl,-soname,libc.so.6"]);
    command.args(["-Wl,--version-script=libc.map", "-o", "libc.so", "libc.s"]);
    let compiler = compiler.display().to_string();
    let status = command.status().map_err(|e| format!("{compiler}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{compiler} cannot build a stub of the C library: {status}"))
    }
}
