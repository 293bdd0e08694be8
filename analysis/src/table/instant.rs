//! Points in time in the form of RFC 3339.

use super::UNDATED;
use pmmpi::record::civil_from_days;

/// YYYY-MM-DD (UTC); `None` for an unknown time.
pub(crate) fn date(unix_ns: i64) -> Option<String> {
    let [date, _] = utc(unix_ns);
    (unix_ns != UNDATED).then_some(date)
}

/// Nanoseconds since 1970-01-01T00:00:00Z of a text like `2026-11-21T20:35:00.25+01:00`. A space may replace `T`, and
/// small letters are allowed for `T` and `Z` (RFC 3339, 5.6). `None` if the text is not such a time, or before 1678
/// or after 2261. A leap second equals the first second of the next minute.
pub(crate) fn unix_ns(text: &[u8]) -> Option<i64> {
    let digits = |from: usize, count: usize| {
        let part = text.get(from..from + count)?;
        part.iter().try_fold(0i64, |sum, c| c.is_ascii_digit().then(|| sum * 10 + i64::from(c - b'0')))
    };
    let is = |at: usize, expected: &[u8]| text.get(at).is_some_and(|byte| expected.contains(byte));
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    let separated = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let exists = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !separated || !exists || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut ns = 0;
    if is(at, b".") {
        let fraction = &text[at + 1..];
        let count = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        // Digits after nanoseconds are dropped.
        ns = (0..9).fold(0, |sum, i| sum * 10 + if i < count { i64::from(fraction[i] - b'0') } else { 0 });
        at += 1 + count;
    }
    let offset_s = match text.get(at)? {
        b'Z' | b'z' if text.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if text.len() == at + 6 && is(at + 3, b":") => {
            let (hours, minutes) = (digits(at + 1, 2)?, digits(at + 4, 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let s = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    s.checked_mul(1_000_000_000)?.checked_add(ns)
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, days_from_civil.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date and the time of the day (UTC): 2026-11-21 and 20:35:00.
pub(crate) fn utc(unix_ns: i64) -> [String; 2] {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    [format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}")]
}

/// Nanoseconds since 1970. A date, such as 2026-11-21, means its first moment in UTC.
pub(crate) fn of_date_or_instant(text: &str) -> Option<i64> {
    let is_date = text.len() == "2026-11-21".len();
    let whole = if is_date { format!("{text}T00:00:00Z") } else { text.to_owned() };
    unix_ns(whole.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instants_are_those_of_date() {
        // date -u -d TEXT +%s
        for (text, s) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T20:35:00Z", 1_795_293_300),
            ("2026-11-21 21:35:00+01:00", 1_795_293_300),
            ("2024-02-29t12:00:00z", 1_709_208_000),
            ("1969-12-31T23:59:59-00:00", -1),
            ("2016-12-31T23:59:60Z", 1_483_228_800),
            ("2000-03-01T00:00:00-05:30", 951_888_600),
        ] {
            assert_eq!(unix_ns(text.as_bytes()), Some(s * 1_000_000_000), "{text}");
        }
        assert_eq!(unix_ns(b"1970-01-01T00:00:00.25Z"), Some(250_000_000));
        assert_eq!(unix_ns(b"1970-01-01T00:00:00.1234567899Z"), Some(123_456_789));
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T20:35:00",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T20:35:00.Z",
            "2026-11-21T20:35:00Zx",
            "2026-11-21T20:35:00+0100",
            "2026/11/21T20:35:00Z",
            "9999-01-01T00:00:00Z",
            "1795293300",
        ] {
            assert_eq!(unix_ns(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_instant_is_read_as_it_is_written(seconds in -8_000_000_000i64..8_000_000_000) {
            let [date, time] = utc(seconds * 1_000_000_000 + 1);
            let text = format!("{date}T{time}Z");
            prop_assert_eq!(unix_ns(text.as_bytes()), Some(seconds * 1_000_000_000), "{}", text);
        }

        #[test]
        fn bytes_are_never_a_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            unix_ns(&text);
        }

        #[test]
        fn a_day_later_is_a_day_later(days in 0i64..80_000) {
            let civil = |days: i64| {
                // By counting, not by the formula.
                let (mut year, mut month, mut left) = (1970, 1, days);
                while left >= 365 + i64::from(days_in(year, 2) == 29) {
                    left -= 365 + i64::from(days_in(year, 2) == 29);
                    year += 1;
                }
                while left >= days_in(year, month) {
                    left -= days_in(year, month);
                    month += 1;
                }
                (year, month, left + 1)
            };
            let (year, month, day) = civil(days);
            prop_assert_eq!(days_since_1970(year, month, day), days);
        }
    }
}
