//! pmmpi's part of a node's comment: `[pmmpi: ...]`. The rest belongs to others, and stays as it is.

use crate::reason::OURS;

/// The comment with pmmpi's part at its end.
pub(crate) fn with(comment: &str, reason: &str) -> String {
    let space = if comment.is_empty() { "" } else { " " };
    format!("{comment}{space}[{reason}]")
}

/// The comment without pmmpi's parts, and without the space that [`with`] added.
pub(crate) fn without(comment: &str) -> String {
    let mut rest = comment.to_owned();
    while let Some((mut start, mut end)) = part(&rest) {
        if rest[..start].ends_with(' ') {
            start -= 1;
        } else if start == 0 && rest[end..].starts_with(' ') {
            end += 1;
        }
        rest.replace_range(start..end, "");
    }
    rest
}

/// True if pmmpi has a part in the comment.
pub(crate) fn has(comment: &str) -> bool {
    part(comment).is_some()
}

/// True if pmmpi's part still has exactly this reason.
pub(crate) fn is_as_set(comment: &str, reason: &str) -> bool {
    has(comment) && !has(&comment.replacen(&format!("[{reason}]"), "", 1))
}

/// False if scontrol may not write the comment back exactly as it is: scontrol removes quotes around a text, and a
/// comment of several lines cannot be told from other lines of its output.
pub(crate) fn can_be_kept(comment: &str) -> bool {
    !comment.starts_with('"')
        && !comment.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
        && comment.trim() == comment
}

/// Where the first part of pmmpi's begins and ends.
fn part(comment: &str) -> Option<(usize, usize)> {
    let start = comment.find(&format!("[{OURS}"))?;
    let length = comment[start..].find(']')?;
    Some((start, start + length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason;
    use proptest::prelude::*;

    #[test]
    fn only_our_part_goes() {
        assert_eq!(with("", "pmmpi: slow"), "[pmmpi: slow]");
        assert_eq!(with("rack 7", "pmmpi: slow"), "rack 7 [pmmpi: slow]");
        assert_eq!(without("[pmmpi: slow]"), "");
        assert_eq!(without("[pmmpi: slow] seen by eva"), "seen by eva");
        assert_eq!(without("a [pmmpi: slow] b [pmmpi: x] [c]"), "a b [c]");
        assert_eq!(without("pmmpi: my own words [pmmpi: no end"), "pmmpi: my own words [pmmpi: no end");
        assert!(!has("pmmpi: my own words") && has("x [pmmpi: slow]"));
    }

    #[test]
    fn a_changed_part_is_known() {
        let is_as_set = |comment| is_as_set(comment, "pmmpi: slow");
        assert!(is_as_set("[pmmpi: slow]") && is_as_set("rack 7 [pmmpi: slow] seen by eva"));
        for changed in
            ["", "rack 7", "[pmmpi: slow, DIMM pulled]", "[pmmpi: slow] [pmmpi: slow]", "[pmmpi: x]"]
        {
            assert!(!is_as_set(changed), "{changed}");
        }
    }

    #[test]
    fn comments_that_scontrol_would_change_are_known() {
        assert!(can_be_kept("") && can_be_kept("a \"b\" [c] = é"));
        for comment in ["\"a\"", "a\nb", "a\r", " a", "a ", "a\u{fffd}"] {
            assert!(!can_be_kept(comment), "{comment:?}");
        }
    }

    proptest! {
        #[test]
        fn the_words_of_others_stay(comment in any::<String>(), text in any::<String>()) {
            prop_assume!(!comment.contains("[pmmpi:"));
            let marked = with(&comment, &reason::cleaned(&text));
            prop_assert!(has(&marked) && marked.starts_with(&comment));
            prop_assert_eq!(without(&marked), comment);
        }

        #[test]
        fn no_comment_is_too_odd(comment in "(\\[pmmpi:|\\]| |é|a){0,20}") {
            prop_assert!(!has(&without(&comment)));
        }
    }
}
