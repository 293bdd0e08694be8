//! Names of runs.

/// A unique name that sorts by its start time (UTC) and ends with 64 random bits:
/// `20261121T011903.123456789Z-4f1d09c3a7b25e68`
pub fn new_run_id(started_unix_ns: i64) -> String {
    let (seconds, nanos) =
        (started_unix_ns.div_euclid(1_000_000_000), started_unix_ns.rem_euclid(1_000_000_000));
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let random = random_u64();
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{nanos:09}Z-{random:016x}")
}

/// Year, month and day of the Gregorian calendar, from days since 1970-01-01: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms". Not gmtime_r, which reads the time zone from disk.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let since_march_0 = days + 719_468;
    let era = since_march_0.div_euclid(146_097);
    let day_of_era = since_march_0.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// 64 bits that are different in every process.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is valid for its length. GRND_NONBLOCK: an old kernel's pool may not be ready at boot.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got == bytes.len() as isize {
        return u64::from_le_bytes(bytes);
    }
    // Fall back to the process and the instant, hashed with a random seed.
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

    #[test]
    fn days_are_those_of_the_calendar() {
        use super::civil_from_days;
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(-1), (1969, 12, 31));
        assert_eq!(civil_from_days(11_016), (2000, 2, 29));
        assert_eq!(civil_from_days(47_540), (2100, 2, 28));
        assert_eq!(civil_from_days(47_541), (2100, 3, 1));
    }
}
