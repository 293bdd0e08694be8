//! The one line that a measurement prints, and durations as people read them.

use crate::metrics;
use crate::record::{End, Run};
use crate::trust::Trust;
use std::fmt;
use std::path::Path;

/// "elapsed between LOWER and UPPER, R ranks on N nodes, FILE". Of a run that did not end well: "END, after LOWER to
/// UPPER", so that nobody takes its time for a result.
pub struct Summary<'a> {
    /// What was measured.
    pub run: &'a Run,
    /// Where it is kept, if it is.
    pub file: Option<&'a Path>,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bad_end = self.run.telling_rank().filter(|(.., end)| !end.is_success());
        if let Some((rank, node, end)) = bad_end {
            write!(f, "{}", in_words(end))?;
            if self.run.size > 1 {
                write!(f, " on {} (rank {rank})", self.run.nodes[node as usize].key.hostname)?;
            }
        }
        let is_bad = bad_end.is_some();
        match self.run.elapsed() {
            Some(e) if e.consistent => {
                let (lower, upper) = seconds_between(e.lower_ns, e.upper_ns);
                match is_bad {
                    true => write!(f, ", after {lower} to {upper} s")?,
                    false => write!(f, "elapsed between {lower} and {upper} s")?,
                }
            }
            Some(_) => {
                let comma = if is_bad { ", " } else { "" };
                write!(
                    f,
                    "{comma}elapsed unknown: the nodes' clocks contradict one another (see `pmmpi report`)"
                )?
            }
            None if is_bad => {}
            None => f.write_str("no rank was measured")?,
        }
        let (ranks, hosts) = (self.run.ranks.len(), self.run.host_count());
        write!(f, ", {} on {}", count(ranks, "rank"), count(hosts, "node"))?;
        for metric in in_short(self.run) {
            write!(f, ", {metric}")?;
        }
        match self.file {
            Some(file) => write!(f, ", {}", file.display()),
            None => f.write_str(", not saved"),
        }
    }
}

/// How a run ended that did not end well.
fn in_words(end: End) -> String {
    match end {
        End::Exited(code) => format!("failed with exit status {code}"),
        End::Signaled(signal) => format!("killed by signal {signal}"),
        End::Aborted(code) => format!("aborted with code {code}"),
        End::NotStarted(errno) => format!("not started: {}", std::io::Error::from_raw_os_error(errno)),
        End::TimedOut => "timed out".to_owned(),
        End::Interrupted(_) | End::Lost | End::Finalized => end.to_string(),
    }
}

/// Three numbers that say most, of those that were counted. Of a run that is over in no time none: it is not worth the
/// time to compute them, and `pmmpi report` has them all.
fn in_short(run: &Run) -> Vec<String> {
    const SHORT_NS: i64 = 100_000_000;
    if run.ranks.iter().map(|rank| rank.stamps.inner_ns()).max().unwrap_or(0) < SHORT_NS {
        return Vec::new();
    }
    let values = metrics::of_ranks(run, &Trust::default());
    let of = |name: &str| values.iter().find(|value| value.metric.name == name)?.value();
    let texts = [
        of("task_utilisation").map(|share| format!("{:.0} % busy", share * 100.0)),
        of("frequency_active").map(|hz| format!("{:.2} GHz", hz * 1e-9)),
        of("ipc").map(|ipc| format!("{ipc:.2} instructions a cycle")),
    ];
    texts.into_iter().flatten().collect()
}

/// "1 rank", "2 ranks".
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `text` for a terminal: names of programs, files and hosts may hold what would command it, or turn the text around.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if (c.is_control() && c != '\n') || turns(c) { '?' } else { c }).collect()
}

/// Unicode's Bidi_Control, and its separators of lines and paragraphs.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Two bounds in seconds, the first rounded down and the second up, with the digits that tell them apart
/// and three at least.
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
    use crate::bounds::Stamps;
    use crate::node::NodeKey;
    use crate::record::{Mode, RankRecord, RunHeader};

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
    fn a_run_that_did_not_end_well_is_no_result() {
        let line = |end| {
            let mut run = Run::empty(RunHeader::new("r".into(), vec!["p".into()], Mode::Plain, 0), 1);
            run.add_node(NodeKey::own().clone());
            let stamps = Stamps::new(0, 0, 1_500_000_000, 1_500_000_000).unwrap();
            run.ranks.push(RankRecord { stamps, ..RankRecord::unmeasured(end) });
            Summary { run: &run, file: None }.to_string()
        };
        assert!(line(End::Exited(0)).starts_with("elapsed between 1.49"));
        for (end, words) in [
            (End::Exited(3), "failed with exit status 3, after 1.49"),
            (End::Signaled(11), "killed by signal 11, after 1.49"),
            (End::Interrupted(15), "interrupted by signal 15, after 1.49"),
            (End::TimedOut, "timed out, after 1.49"),
        ] {
            let line = line(end);
            assert!(line.starts_with(words) && !line.contains("elapsed"), "{line}");
        }
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!((count(1, "rank"), count(2, "rank")), ("1 rank".into(), "2 ranks".into()));
    }
}
