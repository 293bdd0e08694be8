//! The one line that a measurement prints.

use crate::metrics;
use crate::validation::Trust;
use pmmpi::record::{End, Run};
use pmmpi::text::{count, seconds_between};
use std::fmt;
use std::path::Path;

/// "elapsed between LOWER and UPPER, R ranks on N nodes, FILE". For a run that did not end well: "END, after LOWER
/// to UPPER", so that users do not take its time for a result.
pub struct Summary<'a> {
    /// The measured run.
    pub run: &'a Run,
    /// The file of the run, if it was saved.
    pub file: Option<&'a Path>,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bad_end = self.run.telling_rank().filter(|(.., end)| !end.is_success());
        if let Some((rank, node, end)) = bad_end {
            write!(f, "{}", in_words(end))?;
            if self.run.size > 1 {
                write!(f, " on {} (rank {rank})", self.run.nodes[node.index()].key.hostname)?;
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
                    "{comma}elapsed unknown: the ranks' stamps contradict one another (see `pmmpi report`)"
                )?
            }
            None if is_bad => {}
            None => f.write_str("elapsed unknown: not every rank completed the measurement")?,
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

/// The words for a bad end.
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

/// The three most useful metrics, if they were counted. Empty for a run shorter than 0.1 s: computing them is not
/// worth the time, and `pmmpi report` has them all.
fn in_short(run: &Run) -> Vec<String> {
    const SHORT_NS: i64 = 100_000_000;
    if run.ranks.iter().map(|rank| rank.stamps.inner_ns()).max().unwrap_or(0) < SHORT_NS {
        return Vec::new();
    }
    let values = metrics::of_ranks(run, &Trust::default());
    let of = |name: &str| values.iter().find(|value| value.metric.name == name)?.value();
    let each = if run.ranks.len() > 1 { " per rank" } else { "" };
    let texts = [
        of("busy_threads").map(|threads| format!("{threads:.2} threads busy{each}")),
        of("frequency_active").map(|hz| format!("{:.2} GHz", hz * 1e-9)),
        of("ipc").map(|ipc| format!("{ipc:.2} instructions per cycle")),
    ];
    texts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::bounds::Stamps;
    use pmmpi::node::NodeKey;
    use pmmpi::record::{Mode, NodeRecord, RankRecord, RunHeader};

    #[test]
    fn a_run_that_did_not_end_well_is_no_result() {
        let line = |end| {
            let mut run = Run::empty(RunHeader::new("r".into(), vec!["p".into()], Mode::Plain, 0), 1);
            run.nodes.push(NodeRecord::new(NodeKey::own().clone()));
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
}
