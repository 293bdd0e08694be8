//! Formats durations, counts and foreign names for a terminal.

mod wrap_lines;

pub use wrap_lines::{folded, lines};

/// "1 rank", "2 ranks", "2 classes".
pub fn count(number: usize, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with('s') || noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// Replaces characters that control a terminal or change the direction of text: names of programs, files and hosts
/// may contain them.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if (c.is_control() && c != '\n') || turns(c) { '?' } else { c }).collect()
}

/// True for Unicode's Bidi_Control and its separators of lines and paragraphs.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of bytes that anyone may have chosen. Bytes that are not UTF-8 become \xNN, so that different names stay
/// different.
pub fn of_bytes(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

/// A command line as a shell reads it: words with other characters are in quotes.
pub fn shell_line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let quoted = |word: W| match word.as_ref() {
        word if !word.is_empty() && word.chars().all(is_plain) => word.to_owned(),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Two bounds in seconds, the first rounded down and the second up, with enough digits to tell them apart, and at
/// least three.
pub fn seconds_between(lower_ns: i64, upper_ns: i64) -> (String, String) {
    let width = upper_ns.saturating_sub(lower_ns).saturating_abs().max(1);
    // One decimal more than the first in which the width shows, and three significant ones of the value.
    let place = |ns: i64| ns.max(1).ilog10() as i32;
    let decimals =
        (10 - place(width)).max(11 - place(upper_ns.max(lower_ns.saturating_abs()))).clamp(0, 9) as u32;
    let unit = 10i64.pow(9 - decimals);
    let down = lower_ns.div_euclid(unit);
    let up = upper_ns.div_euclid(unit) + i64::from(upper_ns.rem_euclid(unit) != 0);
    (fixed(down, decimals), fixed(up, decimals))
}

fn fixed(units: i64, decimals: u32) -> String {
    let scale = 10u64.pow(decimals);
    let (sign, units) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
    match decimals {
        0 => format!("{sign}{units}"),
        _ => format!("{sign}{}.{:0width$}", units / scale, units % scale, width = decimals as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_outward_to_what_tells_them_apart() {
        let text = |lower, upper| seconds_between(lower, upper);
        assert_eq!(text(1_603_012_345, 1_603_345_678), ("1.60301".into(), "1.60335".into()));
        assert_eq!(text(999_900_000, 1_000_100_000), ("0.99990".into(), "1.00010".into()));
        assert_eq!(text(5, 5), ("0.000000005".into(), "0.000000005".into()));
        assert_eq!(text(123_456_789, 123_456_789), ("0.123456789".into(), "0.123456789".into()));
        assert_eq!(text(-1_500_000_000, 0), ("-1.50".into(), "0.00".into()));
        assert_eq!(text(86_400_000_000_000, 86_408_640_000_000), ("86400.0".into(), "86408.7".into()));
    }

    #[test]
    fn a_terminal_is_not_commanded() {
        assert_eq!(printable("a\x1b[2J\u{9b}b\r\nc"), "a?[2J?b?\nc");
        // "user", turned around, looks like "resu"; letters of every direction stay.
        assert_eq!(
            printable("\u{202e}user\u{2069}\u{2028}\u{5d0}\u{645}\u{e9}"),
            "?user??\u{5d0}\u{645}\u{e9}"
        );
    }

    #[test]
    fn a_shell_reads_the_words_again() {
        assert_eq!(shell_line(["a", "-b=c", "", "it's $HOME"]), r"a -b=c '' 'it'\''s $HOME'");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!((count(1, "rank"), count(2, "rank")), ("1 rank".into(), "2 ranks".into()));
        assert_eq!((count(1, "launch"), count(2, "class")), ("1 launch".into(), "2 classes".into()));
    }
}
