//! Reads lines of text files. No line takes more memory than the longest one that a reader uses.

use std::io::{self, BufRead, BufReader, Read};

/// The longest line that readers use (bytes). No line of HPL or of perf's header is longer: the command line and the
/// processor's list of threads are the longest.
pub(super) const LINE_MAX_BYTES: u64 = 1 << 20;

/// What [`read_line`] found.
pub(super) enum LineRead {
    /// A line, with its line end unless the file ends there.
    Whole,
    /// The first [`LINE_MAX_BYTES`] of a longer line.
    Cut,
    /// The end of the file.
    End,
}

/// Reads one line in place of the content of `line`, and goes to the start of the next one.
pub(super) fn read_line(source: &mut BufReader<impl Read>, line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    let read = source.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(LineRead::End);
    }
    if read as u64 == LINE_MAX_BYTES && !line.ends_with(b"\n") {
        source.skip_until(b'\n')?;
        return Ok(LineRead::Cut);
    }
    Ok(LineRead::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_read() {
        let longest = LINE_MAX_BYTES as usize;
        let text = ["x".repeat(longest - 1), "y".repeat(longest + 5), "last".to_owned()].join("\n");
        let (mut source, mut line) = (BufReader::new(text.as_bytes()), Vec::new());
        let mut next = || read_line(&mut source, &mut line).map(|read| (read, line.len())).unwrap();
        assert!(matches!(next(), (LineRead::Whole, length) if length == longest));
        assert!(matches!(next(), (LineRead::Cut, length) if length == longest));
        assert!(matches!(next(), (LineRead::Whole, 4)));
        assert!(matches!(next(), (LineRead::End, 0)));
    }
}
