//! Room for the descriptors of counters: one per event and hardware thread. The program must still be able to open
//! as many files as without pmmpi.

use std::os::fd::RawFd;

/// pmmpi takes descriptors from this number on even below the soft limit. A program that uses so many itself has a
/// large descriptor table, which each fork copies slowly.
const FAR: u64 = 65_536;
/// Counters keep descriptors below this number; higher ones move away, to leave room for this process's own files.
const NEAR: u64 = 100;

/// A program with a soft limit of at least this can spare a sixteenth of it.
const MANY: u64 = 4096;

/// How many descriptors the program could not use itself.
fn beyond(soft: u64, hard: u64) -> u64 {
    hard.saturating_sub(soft.min(FAR))
}

/// The number of counter descriptors that a program may inherit under these limits: the descriptors that the program
/// could not use itself, but at least a sixteenth of a high soft limit. (Many sites set a high soft limit that equals
/// the hard one.)
pub fn to_inherit(soft: u64, hard: u64) -> u64 {
    let part = if soft < MANY { 0 } else { soft / 16 };
    beyond(soft, hard).max(part)
}

/// Lets this process use all of its hard RLIMIT_NOFILE while this value lives. Dropping it restores the soft limit,
/// which the program inherits; open descriptors stay open.
pub struct DescriptorRoom {
    limit: libc::rlimit,
    raised: bool,
}

impl DescriptorRoom {
    /// Raises the soft limit to the hard one.
    pub fn make() -> Self {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls read or write a live local.
        let raised = unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0
                && libc::setrlimit(
                    libc::RLIMIT_NOFILE,
                    &libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max },
                ) == 0
        };
        Self { limit, raised }
    }

    /// How many descriptors the program may inherit.
    pub fn to_inherit(&self) -> u64 {
        to_inherit(self.limit.rlim_cur, self.limit.rlim_max)
    }

    /// The first of `count` descriptors for the program to inherit. They lie beyond those that the program may open
    /// itself. If the limits leave no room there, they are the last ones that it could open.
    pub fn first(&self, count: u64) -> RawFd {
        let (soft, hard) = (self.limit.rlim_cur, self.limit.rlim_max);
        let first = if count <= beyond(soft, hard) { soft.min(FAR) } else { hard.saturating_sub(count) };
        RawFd::try_from(first).unwrap_or(RawFd::MAX)
    }

    /// The first descriptor that counters leave to this process's own files.
    pub fn near(&self) -> RawFd {
        NEAR.min(self.limit.rlim_cur / 2) as RawFd
    }
}

impl Drop for DescriptorRoom {
    fn drop(&mut self) {
        if self.raised {
            // SAFETY: the call reads a live value. The limit was valid before, so it still is.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &self.limit) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(soft: u64, hard: u64) -> DescriptorRoom {
        DescriptorRoom { limit: libc::rlimit { rlim_cur: soft, rlim_max: hard }, raised: false }
    }

    #[test]
    fn a_program_keeps_all_that_it_may_open() {
        for (soft, hard, count, first) in [
            (1024, 524_288, 512, 1024),
            (64, 4096, 2, 64),
            (65_536, 65_538, 2, 65_536),
            // Too little room beyond the soft limit: the last ones.
            (1024, 1024, 2, 1022),
            (64, 65, 2, 63),
            // Limits as in containers, and no limit.
            (1_048_576, 1_048_576, 512, 65_536),
            (libc::RLIM_INFINITY, libc::RLIM_INFINITY, 512, 65_536),
            (1024, libc::RLIM_INFINITY, 512, 1024),
        ] {
            assert_eq!(limited(soft, hard).first(count), first, "{soft} {hard} {count}");
        }
        assert_eq!(
            [to_inherit(1024, 1500), to_inherit(1024, 1024), to_inherit(20_000, 20_000)],
            [476, 0, 1250]
        );
        assert_eq!(limited(20_000, 20_000).first(4), 19_996);
    }

    #[test]
    fn this_process_keeps_some_for_its_own_files() {
        assert_eq!([limited(64, 4096).near(), limited(1024, 4096).near()], [32, 100]);
    }
}
