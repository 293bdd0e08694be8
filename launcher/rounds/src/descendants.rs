//! Everything that a child has started, whoever its parent is by now.
//!
//! timeout(1) makes a process group and signals that. A group of its own would take the child out of a
//! terminal's foreground and out of the group that an MPI launcher signals; so the descendants are found
//! one by one.

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
        let Some((state, parent)) = status(process) else { continue };
        children.entry(parent).or_default().push(process);
        if state == 'Z' || state == 'X' {
            ended.push(process);
        }
    }
    (children, ended)
}

/// State and parent, as proc(5) has them in /proc/PID/stat: the command between may hold anything.
fn status(process: libc::pid_t) -> Option<(char, libc::pid_t)> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let rest = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut words = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Each of them gets `signal`.
pub fn signal(processes: &[libc::pid_t], signal: libc::c_int) {
    for process in processes {
        // SAFETY: no memory is involved. A number is another process's only if the descendant ended, was
        // waited for, and all other numbers were used since the look a moment ago.
        unsafe { libc::kill(*process, signal) };
    }
}

/// Orphans that this process adopted and that have ended: nobody else waits for them.
pub fn reap_all_but(child: libc::pid_t) {
    let Some(others) = OTHERS.get() else { return };
    loop {
        // SAFETY: an all-zero siginfo is valid, and waitid fills it in.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut info, options) == 0 { info.si_pid() } else { 0 }
        };
        if ended == 0 || ended == child || others.contains(&ended) {
            return;
        }
        // SAFETY: it has ended, so this does not wait.
        unsafe { libc::waitpid(ended, std::ptr::null_mut(), libc::WNOHANG) };
    }
}
