//! Finds all processes that a child has started, even if they have another parent now.
//!
//! timeout(1) makes a process group and signals it. With a group of its own, the child would leave the terminal's
//! foreground and the group that an MPI launcher signals. So pmmpi finds the descendants one by one.

use crate::proc_stat::ProcStat;
use std::collections::HashMap;
use std::fs;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Children that do not belong to the program: those from before [`adopt`], and those of [`leave`].
static OTHERS: OnceLock<Mutex<Vec<libc::pid_t>>> = OnceLock::new();

/// Makes this process the new parent of each descendant whose parent ends (prctl(2), PR_SET_CHILD_SUBREAPER), so that
/// [`living`] still finds it. Call it before the child starts.
pub fn adopt() {
    // SAFETY: the call accesses no memory. Linux has this since 3.4; on older kernels, `living` misses orphans.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    OTHERS.get_or_init(|| Mutex::new(own_children(&mut processes().0)));
}

/// `None` before [`adopt`].
fn others() -> Option<MutexGuard<'static, Vec<libc::pid_t>>> {
    OTHERS.get().map(|others| others.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes [`living`] leave out these processes, which no signal ends: they do not belong to the next program.
pub(crate) fn leave(processes: &[libc::pid_t]) {
    if let Some(mut others) = others() {
        others.extend(processes);
    }
}

/// `child` and its living descendants, each parent before its children. Leaves out zombies.
pub fn living(child: libc::pid_t) -> Vec<libc::pid_t> {
    let (mut children, ended) = processes();
    let others = others();
    let mut found = match &others {
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

/// All processes by parent, and the zombies.
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

/// Sends `signal` to each process.
pub fn signal(processes: &[libc::pid_t], signal: libc::c_int) {
    for process in processes {
        // SAFETY: the call accesses no memory. The number can belong to another process only if the descendant ended,
        // its parent waited for it, and the kernel has since used all other numbers.
        unsafe { libc::kill(*process, signal) };
    }
}

/// Waits for ended orphans that this process adopted and for ended children from before [`adopt`], because no other
/// code does. Stops at `child`.
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
        // SAFETY: the process has ended, so this does not block.
        unsafe { libc::waitpid(ended, std::ptr::null_mut(), libc::WNOHANG) };
        // Another process may get its number.
        if let Some(mut others) = others() {
            others.retain(|other| *other != ended);
        }
    }
}
