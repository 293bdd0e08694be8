//! Lines for a terminal that is narrower than they are.

/// Breaks each line that is longer than `width` characters at spaces. A longer word, such as a path, stays whole, so
/// that the user can copy it.
///
/// The rest of a warning is indented below its text. The rest of other text is indented by two spaces. A line with
/// several spaces between words is the row of a table: only its last column breaks, and its rest stays below this
/// column. A row without room there does not break.
pub fn folded(text: &str, width: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.lines() {
        match Layout::of(line, width) {
            Some(layout) => fold(&mut folded, line, width, layout),
            None => folded.push_str(line),
        }
        folded.push('\n');
    }
    folded
}

/// The words of `text` in lines of at most `width` characters. A longer word has a line of its own.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// How a long line breaks.
struct Layout {
    /// Bytes that stay on the first line.
    fixed: usize,
    /// Spaces before the rest.
    indent: usize,
}

/// The last column of a row breaks if it has at least this many characters.
const COLUMN: usize = 30;

impl Layout {
    /// `None` if the line fits, or cannot break.
    fn of(line: &str, width: usize) -> Option<Self> {
        line.char_indices().nth(width)?;
        let lead = line.len() - line.trim_start_matches(' ').len();
        match line[lead..].trim_end().rfind("  ") {
            None if line.starts_with("warning: ") => Some(Self { fixed: lead, indent: 9 }),
            None => Some(Self { fixed: lead, indent: lead + 2 }),
            Some(at) => {
                let fixed = lead + at + 2;
                let indent = line[..fixed].chars().count();
                (indent + COLUMN <= width).then_some(Self { fixed, indent })
            }
        }
    }
}

fn fold(folded: &mut String, line: &str, width: usize, Layout { fixed, indent }: Layout) {
    let (mut rest, mut columns, mut fixed) = (line, width, fixed);
    while let Some(end) = place(rest, fixed, columns) {
        folded.push_str(rest[..end].trim_end_matches(' '));
        folded.push('\n');
        folded.extend(std::iter::repeat_n(' ', indent));
        rest = rest[end..].trim_start_matches(' ');
        (columns, fixed) = (width.saturating_sub(indent), 0);
    }
    folded.push_str(rest);
}

/// The byte of the space at which to break: the last one within `columns` characters and after `fixed` bytes, else the
/// first one after that. `None` if the line fits, or has no such space between words.
fn place(line: &str, fixed: usize, columns: usize) -> Option<usize> {
    let (limit, next) = line.char_indices().nth(columns)?;
    let is_break = |at: &usize| *at > fixed && !line[*at..].trim_start_matches(' ').is_empty();
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
            "warning: much too\n         long a text\n         Do this and\n           that.\n"
        );
        assert_eq!(
            folded("see /a/very/long/path/of/a/file for it\n", 10),
            "see\n  /a/very/long/path/of/a/file\n  for it\n"
        );
        assert_eq!(folded("exactly 10\n", 10), "exactly 10\n");
    }

    #[test]
    fn rows_of_tables_stay_below_their_columns() {
        let row = "ipc   1  Instructions per cycle, of all threads\n";
        assert_eq!(folded(row, 39), "ipc   1  Instructions per cycle, of all\n         threads\n");
        // No room for a column.
        assert_eq!(folded(row, 38), row);
        assert_eq!(
            folded("node0                  1    7    1.91970\n", 20),
            "node0                  1    7    1.91970\n"
        );
    }

    #[test]
    fn a_text_becomes_lines() {
        assert_eq!(lines("one  two\nthree 1234567890 é ü", 8), ["one two", "three", "1234567890", "é ü"]);
        assert_eq!(lines("", 8), [""]);
    }

    proptest! {
        /// Words and their order stay; only rows and single words are longer than the width.
        #[test]
        fn no_word_is_lost(text in "(([a-zé]{1,12}| ){0,40}\n){0,5}", width in 0..60usize) {
            let folded = folded(&text, width);
            prop_assert!(folded.split_whitespace().eq(text.split_whitespace()));
            for line in folded.lines().filter(|line| !line.trim().contains("  ")) {
                let lead = line.len() - line.trim_start_matches(' ').len();
                let alone = line.split_whitespace().count() == 1;
                prop_assert!(line.trim_end().chars().count() <= width || alone || lead + 2 >= width, "{line:?}");
            }
        }
    }
}
