//! `pmmpi-rig-named COMMAND...` runs COMMAND without unnamed files, as on NFS and Lustre: open(2) with O_TMPFILE
//! gives EOPNOTSUPP on any file system. A filter of system calls (seccomp(2)) does this for COMMAND and all its
//! children.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let why = match args.split_first() {
        None => "usage: pmmpi-rig-named COMMAND...".to_owned(),
        Some((command, rest)) => match refuse_unnamed_files() {
            Ok(()) => format!("{command:?}: {}", Command::new(command).args(rest).exec()),
            Err(e) => format!("no filter: {e}"),
        },
    };
    eprintln!("pmmpi-rig-named: {why}");
    ExitCode::FAILURE
}

// struct seccomp_data: the number of the system call, and the lower half of the third argument, openat's flags.
const NUMBER: u32 = 0;
const FLAGS: u32 = 16 + 2 * 8;

fn refuse_unnamed_files() -> io::Result<()> {
    let unnamed = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32;
    let mut filter = [
        step(load, NUMBER, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_openat as u32, 0, 3),
        step(load, FLAGS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, unnamed, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, refused, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program lives while the kernel reads it.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
