//! What the runs of a series show together: median, interval, spread, the slowest run.

use pmmpi::order_statistics::{FEWEST_OF_INTERVAL, interval, middle, of_ascending};
use pmmpi::record::{End, Run};
use pmmpi::text::{count, seconds_between};
use std::collections::BTreeMap;

/// The runs of a series, as far as they were measured.
pub struct SeriesSummary {
    /// Number of runs that the user asked for.
    asked: u32,
    /// By number of the run, from 0.
    runs: BTreeMap<u32, Outcome>,
}

/// What became of a run. If a number has several outcomes, the last in this order counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// It ended well, but its file was not found.
    NotFound,
    /// It ended well. The bounds of its elapsed time (ns); the slower of two runs counts.
    Timed {
        upper_ns: i64,
        lower_ns: i64,
    },
    /// The clocks of its nodes contradict one another.
    WithoutTime,
    Failed,
}

/// A run that ended well.
struct TimedRun {
    number: u32,
    lower_ns: f64,
    upper_ns: f64,
}

impl TimedRun {
    fn middle_ns(&self) -> f64 {
        middle(self.lower_ns, self.upper_ns)
    }
}

impl SeriesSummary {
    /// A series of `asked` runs, before the first.
    pub fn new(asked: u32) -> Self {
        Self { asked, runs: BTreeMap::new() }
    }

    /// A series without a fixed number of runs.
    pub fn open() -> Self {
        Self::new(0)
    }

    /// Adds a run after all others.
    pub fn push(&mut self, run: &Run) {
        self.add(self.asked, run);
        self.asked += 1;
    }

    /// Adds run `number` (from 0).
    pub fn add(&mut self, number: u32, run: &Run) {
        let elapsed = run.elapsed().filter(|elapsed| elapsed.consistent);
        self.set(
            number,
            match elapsed {
                _ if !run.end().is_some_and(End::is_success) => Outcome::Failed,
                Some(e) => Outcome::Timed { upper_ns: e.upper_ns, lower_ns: e.lower_ns },
                None => Outcome::WithoutTime,
            },
        );
    }

    /// Run `number` ended like this; [`SeriesSummary::add`] may add its record later.
    pub fn add_end(&mut self, number: u32, end: End) {
        self.set(number, if end.is_success() { Outcome::NotFound } else { Outcome::Failed });
    }

    /// Number of runs that ended well, but whose record was not added.
    pub fn not_found(&self) -> usize {
        self.number_of(Outcome::NotFound)
    }

    fn set(&mut self, number: u32, outcome: Outcome) {
        let known = self.runs.entry(number).or_insert(outcome);
        *known = outcome.max(*known);
    }

    fn number_of(&self, outcome: Outcome) -> usize {
        self.runs.values().filter(|other| **other == outcome).count()
    }

    fn timed(&self) -> Vec<TimedRun> {
        let timed = |(number, outcome): (&u32, &Outcome)| match *outcome {
            Outcome::Timed { upper_ns, lower_ns } => {
                Some(TimedRun { number: *number, lower_ns: lower_ns as f64, upper_ns: upper_ns as f64 })
            }
            _ => None,
        };
        self.runs.iter().filter_map(timed).collect()
    }

    /// The summary, for the user.
    pub fn lines(&self) -> Vec<String> {
        let timed = self.timed();
        let which = self.which(timed.len());
        let ascending = |of: &dyn Fn(&TimedRun) -> f64| {
            let mut values: Vec<f64> = timed.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        // The k-th smallest lower bound is a lower bound of the k-th smallest time; upper bounds likewise.
        let (lower, upper) = (ascending(&|run| run.lower_ns), ascending(&|run| run.upper_ns));
        let middles = ascending(&TimedRun::middle_ns);
        let (Some(low), Some(high), Some(median)) =
            (of_ascending(&lower), of_ascending(&upper), of_ascending(&middles))
        else {
            return vec![which];
        };
        let seconds = |lower: f64, upper: f64| seconds_between(lower as i64, upper.ceil() as i64);
        let (from, to) = seconds(low, high);
        let of_median = interval(timed.len()).map_or_else(
            || format!("an interval needs {FEWEST_OF_INTERVAL} runs"),
            |(first, last, coverage)| {
                let (low, _) = seconds(lower[first], upper[first]);
                let (_, high) = seconds(lower[last], upper[last]);
                format!("interval {low} to {high} s ({:.1} %)", coverage * 100.0)
            },
        );
        let mut lines = vec![format!("{which}: median between {from} and {to} s; {of_median}")];
        let slowest = timed.iter().max_by(|a, b| a.middle_ns().total_cmp(&b.middle_ns()));
        if let Some(slowest) = slowest.filter(|_| timed.len() > 1 && median > 0.0) {
            let spread = (slowest.middle_ns() - middles[0]) / median;
            lines.push(format!(
                "spread {:.1} %; the slowest run, {} of {}, is {:.1} % slower than the median",
                spread * 100.0,
                slowest.number + 1,
                self.asked,
                (slowest.middle_ns() / median - 1.0) * 100.0
            ));
        }
        lines
    }

    /// "7 runs", or "5 of 7 runs count (2 failed)".
    fn which(&self, timed: usize) -> String {
        let asked = self.asked as usize;
        if timed == asked {
            return count(asked, "run");
        }
        let others = [
            (self.number_of(Outcome::Failed), "failed"),
            (self.number_of(Outcome::WithoutTime), "without a time"),
            (self.not_found(), "without a run file"),
            (asked.saturating_sub(self.runs.len()), "not started"),
        ];
        let others = others.iter().filter(|(number, _)| *number > 0);
        let others: Vec<String> = others.map(|(number, what)| format!("{number} {what}")).collect();
        format!("{timed} of {} count ({})", count(asked, "run"), others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::Stamps;
    use pmmpi::node::NodeKey;
    use pmmpi::record::{Mode, NodeRecord, RankRecord, RunHeader, run_file};
    use std::path::Path;

    fn run(ms: i64, end: End) -> Run {
        let mut run = Run::empty(RunHeader::new("r".into(), vec!["p".into()], Mode::Plain, 0), 1);
        run.nodes.push(NodeRecord::new(NodeKey::own().clone()));
        let stamps = Stamps::new(0, 0, ms * 1_000_000, ms * 1_000_000).unwrap();
        run.ranks.push(RankRecord { stamps, ..RankRecord::unmeasured(end) });
        run
    }

    fn summary(asked: u32, ms: &[i64]) -> SeriesSummary {
        let mut series = SeriesSummary::new(asked);
        for (number, ms) in ms.iter().enumerate() {
            series.add(number as u32, &run(*ms, End::Exited(0)));
        }
        series
    }

    /// The bounds of a run of 1 s are 0.1 ms from its stamps: clocks may be 100 ppm wrong.
    #[test]
    fn a_series_has_a_median_its_interval_and_its_slowest_run() {
        assert_eq!(
            summary(5, &[1020, 1000, 1100, 1010, 1030]).lines(),
            [
                "5 runs: median between 1.01989 and 1.02011 s; interval 0.99990 to 1.10012 s (93.8 %)",
                "spread 9.8 %; the slowest run, 3 of 5, is 7.8 % slower than the median",
            ]
        );
    }

    #[test]
    fn the_sample_in_the_docs_is_what_is_printed() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let files = std::fs::read_dir(docs.join("samples/demo")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        let mut series = SeriesSummary::new(files.len() as u32);
        for (number, file) in (0..).zip(&files) {
            series.add(number, &run_file::read(file).unwrap());
        }
        let lines: String = series.lines().iter().map(|line| format!("pmmpi: {line}\n")).collect();
        let page = std::fs::read_to_string(docs.join("measuring.md")).unwrap();
        assert!(page.contains(&format!("<!-- sample: series demo -->\n```\n{lines}```\n")), "{lines}");
    }

    #[test]
    fn few_runs_have_no_interval() {
        assert_eq!(
            summary(2, &[1000, 1000]).lines()[0],
            "2 runs: median between 0.99990 and 1.00011 s; an interval needs 5 runs"
        );
        assert_eq!(summary(2, &[1000]).lines().len(), 1, "one run has no spread");
    }

    #[test]
    fn runs_that_do_not_count_are_counted() {
        let mut series = summary(7, &[1000, 1000]);
        series.add(2, &run(500, End::Exited(3)));
        series.add_end(3, End::Exited(0));
        for number in [1, 4] {
            series.add_end(number, End::Signaled(9)); // the launch of run 1 failed after its end
        }
        let lines = series.lines();
        assert!(
            lines[0].starts_with("1 of 7 runs count (3 failed, 1 without a run file, 2 not started): median"),
            "{lines:?}"
        );
        assert_eq!(series.not_found(), 1);
        series.add(3, &run(1000, End::Exited(0)));
        series.add(3, &run(2000, End::Exited(0)));
        assert!(
            series.lines()[1].contains("the slowest run, 4 of 7, is 33.3 % slower"),
            "{:?}",
            series.lines()
        );
        assert_eq!(SeriesSummary::new(3).lines(), ["0 of 3 runs count (3 not started)"]);
    }
}
