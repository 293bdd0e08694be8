//! Everything that a child has started, whoever its parent is by now.
//!
//! timeout(1) makes a process group and signals that. A group of its own would take the child out of a
//! terminal's foreground and out of the group that an MPI launcher signals; so the descendants are found
//! one by one.

use crate::proc_stat::ProcStat;
use std::collections::HashMap;
use std::fs;
use std::sync::OnceLock;

/// This process's children from before [`adopt`]: not the program's.
static OTHERS: OnceLock<Vec<libc::pid_t>> = OnceLock::new();

/// To be called before there is a child. From then on this process is the parent of a descendant whose own
/// parent has ended (prctl(2), PR_SET_CHILD_SUBREAPER), so that it is not lost sight of.
pub fn adopt() {
    // SAFETY: no memory is involved. Linux has this since 3.4; without it orphans are not found.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    OTHERS.get_or_init(|| own_children(&mut processes().0));
}

/// `child` and those of its descendants that are left, a parent before its children. What has ended and is
/// not waited for is not left.
pub fn living(child: libc::pid_t) -> Vec<libc::pid_t> {
    let (mut children, ended) = processes();
    let mut found = match OTHERS.get() {
        Some(others) => own_children(&mut children).into_iter().filter(|c| !others.contains(c)).collect(),
        None => vec![child],
    };
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found.retain(|process| !ended.contains(process));
    found
}

type Children = HashMap<libc::pid_t, Vec<libc::pid_t>>;

fn own_children(children: &mut Children) -> Vec<libc::pid_t> {
    children.remove(&(std::process::id() as libc::pid_t)).unwrap_or_default()
}

/// All processes by their parent, and those that have ended.
fn processes() -> (Children, Vec<libc::pid_t>) {
    let mut children = Children::new();
    let mut ended = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = ProcStat::read(process) else { continue };
        children.entry(stat.parent).or_default().push(process);
        if stat.state == 'Z' || stat.state == 'X' {
            ended.push(process);
        }
    }
    (children, ended)
}

/// Each of them gets `signal`.
pub fn signal(processes: &[libc::pid_t], signal: libc::c_int) {
    for process in processes {
        // SAFETY: no memory is involved. A number is another process's only if the descendant ended, was
        // waited for, and all other numbers were used since the look a moment ago.
        unsafe { libc::kill(*process, signal) };
    }
}

/// What has ended of orphans that this process adopted and of what it started before [`adopt`]: no other code waits for these.
pub fn reap_all_but(child: libc::pid_t) {
    if OTHERS.get().is_none() {
        return;
    }
    loop {
        // SAFETY: an all-zero siginfo is valid, and waitid fills it in.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut info, options) == 0 { info.si_pid() } else { 0 }
        };
        if ended == 0 || ended == child {
            return;
        }
        // SAFETY: it has ended, so this does not wait.
        unsafe { libc::waitpid(ended, std::ptr::null_mut(), libc::WNOHANG) };
    }
}
