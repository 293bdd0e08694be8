//! The reason that pmmpi gives to Slurm.

use std::iter;

/// Each reason of pmmpi begins with this text, and no other reason does. So pmmpi recognises its own drains.
pub(crate) const OURS: &str = "pmmpi:";
/// Slurm's accounting database keeps this many bytes of a reason (the type tinytext).
const MOST_BYTES: usize = 255;
const CUT: &str = "...";
/// Begins the reason of a node with a wrong result. The name of the kernel follows.
pub(crate) const WRONG: &str = "wrong-result:";

/// One line of plain ASCII that begins with `pmmpi:`. scontrol removes quotes around a reason, and shows the user and
/// the time in brackets behind it: so the text has neither `"` nor brackets.
pub(crate) fn cleaned(text: &str) -> String {
    let plain = |c: char| match c {
        '"' => '\'',
        '[' => '(',
        ']' => ')',
        '\\' => '/',
        c if c.is_ascii_graphic() => c,
        c if c.is_whitespace() => ' ',
        _ => '?',
    };
    let text: String = text.chars().map(plain).collect();
    let words = text.trim().strip_prefix(OURS).unwrap_or(&text).split(' ').filter(|word| !word.is_empty());
    let mut cleaned = iter::once(OURS).chain(words).collect::<Vec<_>>().join(" ");
    if cleaned == OURS {
        cleaned.push_str(" no reason given");
    }
    if cleaned.len() > MOST_BYTES {
        cleaned.truncate(MOST_BYTES - CUT.len());
        cleaned.truncate(cleaned.trim_end().len());
        cleaned.push_str(CUT);
    }
    cleaned
}

/// What a reason is about, without numbers: `slow-memory:` or `wrong-result: triad`.
pub(crate) fn subject(reason: &str) -> &str {
    let text = reason.strip_prefix(OURS).unwrap_or(reason).trim_start();
    let words = if text.starts_with(WRONG) { 2 } else { 1 };
    let end = text.match_indices(' ').map(|(at, _)| at).nth(words - 1);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reason_is_one_plain_line() {
        let text = "pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz";
        assert_eq!(cleaned(text), text);
        assert_eq!(cleaned(" a\nb\t\x1b[2J \"c\" [d] \\ é\u{202e}"), "pmmpi: a b ?(2J 'c' (d) / ??");
        assert_eq!(cleaned("pmmpi:x"), "pmmpi: x");
        assert_eq!(cleaned(""), "pmmpi: no reason given");
        let long = cleaned(&"x".repeat(1000));
        assert!(long.len() == MOST_BYTES && long.ends_with("x..."));
    }

    #[test]
    fn a_subject_has_no_numbers() {
        for (reason, about) in [
            ("pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz", "slow-memory:"),
            ("pmmpi: wrong-result: triad 20261126-xyz", "wrong-result: triad"),
            ("pmmpi: wrong-result: triad", "wrong-result: triad"),
            ("pmmpi: noisy", "noisy"),
            ("", ""),
        ] {
            assert_eq!(subject(reason), about);
        }
    }

    proptest! {
        #[test]
        fn every_text_becomes_a_reason_of_ours(text in any::<String>()) {
            let reason = cleaned(&text);
            prop_assert!(reason.starts_with(OURS) && reason.len() <= MOST_BYTES);
            prop_assert!(reason.bytes().all(|b| b == b' ' || b.is_ascii_graphic()));
            prop_assert!(!reason.contains(['"', '[', ']', '\\']) && reason.trim() == reason);
            prop_assert_eq!(cleaned(&reason), reason);
        }
    }
}
