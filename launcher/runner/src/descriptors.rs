//! Descriptors that MPI opens or was given: the measured program must not inherit them.

/// How a process manager hands its own connection to a rank.
const CONNECTIONS: [&str; 2] = ["PMI_FD", "HYDI_CONTROL_FD"];

/// What was open before MPI was initialised.
pub struct Descriptors(Vec<i32>);

impl Descriptors {
    /// Of this process; without the process manager's, and the shared memory's with its launcher gone.
    pub fn open_now() -> Self {
        let own = |fd: &i32| !is_spool(*fd) && !connections().any(|connection| connection == *fd);
        Self(list().into_iter().filter(own).collect())
    }

    /// Closes all others in every child that is started from now on.
    pub fn keep_the_rest_from_children(&self) {
        for fd in list().into_iter().filter(|fd| !self.0.contains(fd)) {
            keep_from_children(fd);
        }
    }
}

/// Closes it in every child that is started from now on.
pub fn keep_from_children(fd: i32) {
    // SAFETY: sets a flag; a descriptor that was closed meanwhile gives an error and no harm.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

fn connections() -> impl Iterator<Item = i32> {
    CONNECTIONS.iter().filter_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn is_spool(fd: i32) -> bool {
    let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    target.as_os_str().to_string_lossy().starts_with("/memfd:pmmpi")
}

fn list() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let listed: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // One of them was the list's own, closed by now.
    // SAFETY: asks for flags.
    let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    listed.into_iter().filter(is_open).collect()
}
