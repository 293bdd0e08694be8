//! Names of runs.

use std::fs::File;
use std::io::Read;

/// A name that sorts by its start time (UTC) and that no other job takes: 64 random bits follow.
/// `20261121T011903.123456789Z-4f1d09c3a7b25e68`
pub fn new_run_id(started_unix_ns: i64) -> String {
    let (seconds, nanos) =
        (started_unix_ns.div_euclid(1_000_000_000), started_unix_ns.rem_euclid(1_000_000_000));
    // SAFETY: an all-zero tm is valid; gmtime_r fills it in and fails only for years beyond an int.
    let tm = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut tm);
        tm
    };
    let (year, month) = (tm.tm_year + 1900, tm.tm_mon + 1);
    let (day, hour, minute, second) = (tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    let random = random_u64();
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{nanos:09}Z-{random:016x}")
}

fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    let filled = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    if filled.is_ok() {
        return u64::from_le_bytes(bytes);
    }
    // A chroot without /dev: the host, the process and the instant together are still nobody else's.
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_i64(crate::clock::monotonic_ns());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::new_run_id;

    #[test]
    fn names_sort_by_time_and_differ_within_one_instant() {
        let at = 1_795_223_943_123_456_789;
        let id = new_run_id(at);
        assert!(id.starts_with("20261121T011903.123456789Z-"), "{id}");
        assert_ne!(id, new_run_id(at));
        assert!(new_run_id(at - 1) < id);
        assert!(id < new_run_id(at + 1));
    }
}
