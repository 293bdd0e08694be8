//! The fields of /proc/PID/stat (proc_pid_stat(5)) that pmmpi needs.

use std::io;

/// A snapshot of one process.
#[derive(Clone, Debug)]
pub struct ProcStat {
    /// The name of its file or of its main thread, at most 15 bytes.
    pub name: String,
    /// Its state as in ps(1): 'R', 'S', 'Z'.
    pub state: char,
    /// Its parent; 0 if the parent is in another PID namespace.
    pub parent: libc::pid_t,
    /// Its start time in the kernel's clock ticks.
    pub began: u64,
}

impl ProcStat {
    /// Reads a living process or a zombie. An error if there is no such process, or if it is hidden because it
    /// belongs to another user.
    pub fn read(process: libc::pid_t) -> io::Result<Self> {
        let stat = std::fs::read(format!("/proc/{process}/stat"))?;
        Self::parse(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        let stat = String::from_utf8_lossy(stat);
        // The name may contain any characters, even parentheses.
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_ascii_whitespace(); // from the third field on
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let began = fields.nth(17)?.parse().ok()?;
        Some(Self { name: name.to_owned(), state, parent, began })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let text = b"77 (a) S 1 (b) S 42 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 2";
        let stat = ProcStat::parse(text).unwrap();
        assert_eq!(
            (stat.name.as_str(), stat.state, stat.parent, stat.began),
            ("a) S 1 (b", 'S', 42, 123_456)
        );
        assert!(ProcStat::parse(b"").is_none() && ProcStat::parse(b"1 (x) S").is_none());
        let own = ProcStat::read(std::process::id() as libc::pid_t).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id() as libc::pid_t);
    }
}
