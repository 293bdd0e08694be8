//! Descriptors that MPI opens or gets from its process manager: the measured program must not inherit them.

/// Variables in which a process manager gives the descriptor of its connection to a rank.
const CONNECTIONS: [&str; 2] = ["PMI_FD", "HYDI_CONTROL_FD"];

/// The descriptors that were open before MPI_Init.
pub struct Descriptors(Vec<i32>);

impl Descriptors {
    /// The open descriptors of this process, except those of the process manager and of pmmpi's shared memory.
    pub fn open_now() -> Self {
        let own = |fd: &i32| !is_spool(*fd) && !connections().any(|connection| connection == *fd);
        Self(list().into_iter().filter(own).collect())
    }

    /// Marks all other open descriptors, so that future children do not inherit them.
    pub fn keep_the_rest_from_children(&self) {
        for fd in list().into_iter().filter(|fd| !self.0.contains(fd)) {
            keep_from_children(fd);
        }
    }
}

/// Marks a descriptor, so that future children do not inherit it.
pub fn keep_from_children(fd: i32) {
    // SAFETY: sets a flag; for a closed descriptor, the call only gives an error.
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
    // One descriptor belonged to the directory listing and is closed now.
    // SAFETY: reads flags.
    let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    listed.into_iter().filter(is_open).collect()
}
