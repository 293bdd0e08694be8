//! Lines for a terminal that is narrower than they are.

/// Breaks each line that is longer than `width` characters at spaces. The rest is indented, below the text of a
/// warning. A longer word, such as a path, stays whole, so that the user can copy it.
pub fn folded(text: &str, width: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let indent = indent + if line.starts_with("warning: ") { 9 } else { 2 };
        let mut rest = line;
        let mut columns = width;
        while let Some(end) = place(rest, columns) {
            folded.push_str(rest[..end].trim_end_matches(' '));
            folded.push('\n');
            folded.extend(std::iter::repeat_n(' ', indent));
            rest = rest[end..].trim_start_matches(' ');
            columns = width.saturating_sub(indent);
        }
        folded.push_str(rest);
        folded.push('\n');
    }
    folded
}

/// The byte of the space at which to break: the last one within `columns` characters, else the first one after them.
/// `None` if the line fits, or has no space between words.
fn place(line: &str, columns: usize) -> Option<usize> {
    let (limit, next) = line.char_indices().nth(columns)?;
    let first = line.len() - line.trim_start_matches(' ').len();
    let is_break = |at: &usize| *at > first && !line[*at..].trim_start_matches(' ').is_empty();
    let at_limit = (next == ' ').then_some(limit).filter(is_break);
    let before = || line[..limit].rmatch_indices(' ').map(|(at, _)| at).find(is_break);
    let after = || line[limit..].match_indices(' ').map(|(at, _)| limit + at).find(is_break);
    at_limit.or_else(before).or_else(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_lines_break_between_words() {
        assert_eq!(folded("short\n\nline\n", 20), "short\n\nline\n");
        assert_eq!(folded("one two three four\n", 9), "one two\n  three\n  four\n");
        assert_eq!(
            folded("warning: much too long a text\n         Do this and that.\n", 20),
            concat!("warning: much too\n         long a text\n", "         Do this and\n           that.\n",)
        );
        assert_eq!(
            folded("see /a/very/long/path/of/a/file for it\n", 10),
            "see\n  /a/very/long/path/of/a/file\n  for it\n"
        );
        assert_eq!(folded("exactly 10\n", 10), "exactly 10\n");
    }

    proptest! {
        /// Words and their order stay; only longer words are longer than the width.
        #[test]
        fn no_word_is_lost(text in "(([a-zé]{1,12}| ){0,40}\n){0,5}", width in 1..60usize) {
            let folded = folded(&text, width);
            prop_assert!(folded.split_whitespace().eq(text.split_whitespace()));
            for line in folded.lines() {
                let alone = line.split_whitespace().count() == 1;
                prop_assert!(line.trim_end().chars().count() <= width || alone || width < 12, "{line:?}");
            }
        }
    }
}
