//! Reads the output of HPL (`HPL.out`) and of HPC Challenge (`hpccoutf.txt`), which contains HPL's output: one row
//! per line of results.
//!
//! HPC Challenge appends to its file. Each of its headings begins a part with its own host and start time.
//!
//! ```text
//! T/V                N    NB     P     Q               Time                 Gflops
//! WR11C2R4        1000    80     1     2               0.05              1.234e+01
//! ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   0.0051 ...... PASSED
//! ```

use super::building::{Building, shown};
use super::lines::{LineRead, read_line};
use super::row::ResultRow;
use super::{ImportFault, ImportOptions, REJECTED_KEPT, path_pattern};
use std::io::{BufReader, Read};

/// File names that do not name a node.
const GENERIC: [&str; 5] = ["hpl", "hpccoutf", "hpl_results", "xhpl", "hpcc"];

/// Reads the results of a file. Rejects a result if its residual failed, or if the residual is missing although the
/// file says that HPL checks residuals.
pub(super) fn read(
    source: impl Read,
    options: &ImportOptions,
    building: &mut Building,
) -> Result<(), ImportFault> {
    let place = options.place(building.path())?;
    let mut output = Output { parts: vec![Part::default()], ..Output::default() };
    let mut source = BufReader::new(source);
    let (mut line, mut number) = (Vec::new(), 0);
    while !matches!(read_line(&mut source, &mut line)?, LineRead::End) {
        number += 1;
        output.line(number, String::from_utf8_lossy(&line).trim());
    }
    output.end(number);
    let only = output.solved.len() == 1;
    for (i, solved) in output.solved.iter().enumerate() {
        let part = &output.parts[solved.part];
        let node = match (&place.node, &part.hostname) {
            (Some(node), _) => node.clone(),
            (None, Some(hostname)) => hostname.clone(),
            (None, None) => building.guess_node(&GENERIC)?,
        };
        let class = place.class.clone().unwrap_or_else(|| solved.class());
        let session = place.session.as_deref().unwrap_or_default();
        let run = match &place.run {
            Some(run) if only => run.clone(),
            Some(run) => format!("{run}.{}", i + 1),
            None => match building.next_run(&node, session) {
                Ok(run) => run,
                Err(reason) => {
                    building.reject(solved.line, reason);
                    continue;
                }
            },
        };
        let alone = output.solved.iter().filter(|other| other.part == solved.part).count() == 1;
        let row = ResultRow {
            line: solved.line,
            node: &node,
            run: &run,
            class: &class,
            session,
            started_unix_ns: part.started_unix_ns,
            ..ResultRow::default()
        };
        let elapsed_s = match solved.seconds(part.time_s.filter(|_| alone)) {
            Ok(elapsed_s) => elapsed_s,
            Err(reason) => {
                building.reject_row(&row, reason);
                continue;
            }
        };
        let added = building.add(&ResultRow { elapsed_s, ..row });
        if let Some(at) = added {
            for (name, value) in solved.counters() {
                building.set_by_name(name, at, value);
            }
        }
    }
    for (at, (part, line, reason)) in output.wrong.iter().enumerate() {
        let node = match (&place.node, &output.parts[*part].hostname) {
            (Some(node), _) => Ok(node.clone()),
            (None, Some(hostname)) => Ok(hostname.clone()),
            (None, None) => path_pattern::node_of(building.path(), &GENERIC),
        };
        if let Ok(node) = node {
            let session = place.session.as_deref().unwrap_or_default();
            let run = place.run.as_ref().map(|run| format!("{run}.wrong-{}", at + 1)).unwrap_or_default();
            let row = ResultRow {
                line: *line,
                node: &node,
                run: &run,
                session,
                started_unix_ns: output.parts[*part].started_unix_ns,
                ..ResultRow::default()
            };
            building.wrong(&row, reason);
        }
    }
    for (line, reason) in output.rejected {
        building.reject(line, reason);
    }
    building.reject_unnamed(output.more_rejected);
    Ok(())
}

/// What the reader has read so far.
#[derive(Default)]
struct Output {
    solved: Vec<Solved>,
    rejected: Vec<(u64, String)>,
    /// Results whose residual failed: the part, the line, and what is wrong. They are also rejected.
    wrong: Vec<(usize, u64, String)>,
    /// Number of rejected rows beyond those in `rejected`.
    more_rejected: u64,
    state: State,
    /// A larger residual fails. HPL prints no threshold if it checks no residual.
    threshold: Option<f64>,
    /// The last one is the current part.
    parts: Vec<Part>,
    /// Number of tests that HPL reports, including skipped tests.
    tests: Option<u64>,
}

/// One run of HPC Challenge, or a whole file of HPL.
#[derive(Default)]
struct Part {
    hostname: Option<String>,
    started_unix_ns: Option<i64>,
    /// HPL_time in the summary; it has more digits than the table.
    time_s: Option<f64>,
}

#[derive(Default)]
enum State {
    /// Between results.
    #[default]
    Idle,
    /// The heading of a table was read, but no result line yet.
    Announced(u64),
    /// A result line was read, but no residual yet.
    Unchecked(Solved),
    /// A residual passed. Older versions of HPL print three.
    Checked(Solved),
    /// A residual failed, and the result is already rejected.
    Failed,
}

/// One line of results.
struct Solved {
    part: usize,
    line: u64,
    variant: String,
    n: f64,
    nb: f64,
    p: f64,
    q: f64,
    /// As printed, with two decimals.
    time: Printed,
    gflops: Printed,
    residual: Option<f64>,
}

/// A number and half the value of its last digit.
#[derive(Clone, Copy)]
struct Printed {
    value: f64,
    half_digit: f64,
}

impl Output {
    fn line(&mut self, number: u64, text: &str) {
        let mut words = text.split_whitespace();
        if words.next() == Some("T/V") && words.next() == Some("N") {
            self.settle(number);
            self.state = State::Announced(number);
        } else if is_result(text) {
            if !matches!(self.state, State::Announced(_)) {
                self.settle(number);
            }
            self.state = match Solved::parse(self.parts.len() - 1, number, text) {
                Ok(solved) => State::Unchecked(solved),
                Err(reason) => {
                    self.reject(number, reason);
                    State::Failed
                }
            };
        } else if text.starts_with("||Ax-b||") && text.contains('=') {
            self.residual(number, text);
        } else if text.ends_with("Skip.") {
            self.reject(number, format!("HPL skipped this test: {}", shown(text.as_bytes())));
        } else if let Some(rest) =
            text.strip_prefix("- Computational tests pass if scaled residuals are less than")
        {
            self.threshold = rest.trim().parse().ok();
        } else if let Some((count, _)) =
            text.strip_prefix("Finished").and_then(|rest| rest.split_once(" tests with the following"))
        {
            let count = count.trim().parse::<u64>().unwrap_or(0);
            self.tests = Some(self.tests.unwrap_or(0).saturating_add(count));
        } else if text.starts_with("HPLinpack ") {
            self.settle(number);
            self.threshold = None;
        } else if text.contains("HPC Challenge Benchmark version") {
            self.settle(number);
            self.parts.push(Part::default());
        } else if let Some(part) = self.parts.last_mut() {
            part.line(text);
        }
    }

    fn reject(&mut self, line: u64, reason: impl Into<String>) {
        match self.rejected.len() < REJECTED_KEPT {
            true => self.rejected.push((line, reason.into())),
            false => self.more_rejected += 1,
        }
    }

    /// Finishes the pending result.
    fn settle(&mut self, number: u64) {
        match std::mem::take(&mut self.state) {
            State::Idle | State::Failed => {}
            State::Announced(line) => {
                self.reject(line, format!("this heading has no result before line {number}"))
            }
            State::Checked(solved) => self.solved.push(solved),
            State::Unchecked(solved) if self.threshold.is_none_or(|threshold| threshold <= 0.0) => {
                self.solved.push(solved);
            }
            State::Unchecked(solved) => {
                self.reject(
                    solved.line,
                    "the residual of this result is missing, so pmmpi does not know \
                                          whether the solution is right",
                );
            }
        }
    }

    fn residual(&mut self, number: u64, text: &str) {
        let passed = text.ends_with("PASSED");
        let value =
            text.rsplit('=').next().and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        self.state = match std::mem::take(&mut self.state) {
            State::Unchecked(solved) | State::Checked(solved) if passed => {
                State::Checked(Solved { residual: value, ..solved })
            }
            State::Unchecked(solved) | State::Checked(solved) => {
                let what = if text.ends_with("FAILED") { "FAILED" } else { "is neither PASSED nor FAILED" };
                let value = value.map_or_else(|| "(not a number)".into(), |value| value.to_string());
                let reason = format!("the residual {value} of this result {what} (line {number})");
                if self.wrong.len() < REJECTED_KEPT {
                    self.wrong.push((solved.part, solved.line, reason.clone()));
                }
                self.reject(solved.line, reason);
                State::Failed
            }
            State::Failed => State::Failed,
            State::Announced(line) => {
                self.reject(
                    line,
                    format!("there is no result between this line and the residual in line {number}"),
                );
                State::Failed
            }
            State::Idle => {
                self.reject(number, "this residual belongs to no result");
                State::Failed
            }
        };
    }

    /// Rejects the tests that HPL reports but that the file does not contain.
    fn end(&mut self, last: u64) {
        self.settle(last);
        let found = (self.solved.len() + self.rejected.len()) as u64 + self.more_rejected;
        match self.tests {
            Some(tests) => {
                for _ in found..tests.min(found + 1000) {
                    let reason =
                        format!("HPL finished {tests} tests, but the file contains only {found} of them");
                    self.reject(last, reason);
                }
            }
            None if found == 0 => self.reject(last, "the file has no result: HPL ended too early"),
            None => {}
        }
    }
}

impl Part {
    fn line(&mut self, text: &str) {
        if let Some(name) = text.strip_prefix("Hostname:") {
            let name = name.trim().trim_matches(['\'', '"']);
            self.hostname = self.hostname.take().or_else(|| (!name.is_empty()).then(|| name.to_owned()));
        } else if let Some(rest) = text.strip_prefix("Current time (") {
            let s = rest.split(')').next().and_then(|s| s.parse::<i64>().ok());
            self.started_unix_ns = self.started_unix_ns.or_else(|| s?.checked_mul(1_000_000_000));
        } else if let Some(value) = text.strip_prefix("HPL_time=") {
            self.time_s = value.parse().ok();
        }
    }
}

/// Result lines begin like `WR11C2R4`: W, the order of the process grid, then digits and letters for the algorithm.
/// HPC Challenge also prints lines that begin with WALL.
fn is_result(text: &str) -> bool {
    matches!(text.as_bytes(), [b'W', b'R' | b'C', digit, ..] if digit.is_ascii_digit())
}

impl Solved {
    fn parse(part: usize, line: u64, text: &str) -> Result<Self, String> {
        let mut fields = text.split_whitespace();
        let variant = fields.next().unwrap_or_default().to_owned();
        let mut number = |name: &str| {
            let field = fields.next().ok_or_else(|| format!("{name} is missing"))?;
            Printed::parse(field)
                .ok_or_else(|| format!("{name}: `{}` is not a number", shown(field.as_bytes())))
        };
        let mut whole = |name: &str| {
            let printed = number(name)?;
            let value = printed.value;
            match value >= 1.0 && value.fract() == 0.0 && value <= 1e12 {
                true => Ok(value),
                false => Err(format!("{name}: {value} is not a whole number from 1 to 1e12")),
            }
        };
        let (n, nb, p, q) = (whole("N")?, whole("NB")?, whole("P")?, whole("Q")?);
        let (time, gflops) = (number("Time")?, number("Gflops")?);
        // HPL versions of some vendors add the rate of a GPU in parentheses.
        match fields.next() {
            Some(more) if !more.starts_with('(') => {
                Err(format!("`{}` after Gflops is an unexpected field", shown(more.as_bytes())))
            }
            _ => Ok(Self { part, line, variant, n, nb, p, q, time, gflops, residual: None }),
        }
    }

    /// The class: parameters that must be equal in compared runs.
    fn class(&self) -> String {
        format!("HPL N={} NB={} P={} Q={} {}", self.n, self.nb, self.p, self.q, self.variant)
    }

    fn counters(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("gflops", Some(self.gflops.value)),
            ("hpl_n", Some(self.n)),
            ("hpl_nb", Some(self.nb)),
            ("hpl_p", Some(self.p)),
            ("hpl_q", Some(self.q)),
            ("hpl_residual", self.residual.filter(|value| value.is_finite())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// The time, from the source with the most digits: HPC Challenge's summary, Gflops (HPL_pdtest.c: 2/3 N^3 + 3/2
    /// N^2 operations), or Time, which has few digits for short runs. All printed values must agree.
    fn seconds(&self, summary_s: Option<f64>) -> Result<f64, String> {
        let (time, rate) = (self.time, self.gflops);
        if !(time.value.is_finite() && time.value >= 0.0 && rate.value.is_finite() && rate.value > 0.0) {
            return Err(format!("Time {} or Gflops {} is not valid", time.value, rate.value));
        }
        let operations = self.n * self.n * (2.0 / 3.0 * self.n + 1.5);
        let by_rate = operations / (rate.value * 1e9);
        let share = rate.half_digit / rate.value;
        // Vendors' versions differ in how they count operations of the order N^2.
        let tolerance = time.half_digit + by_rate * (share + 2.0 / self.n + 1e-3);
        if (by_rate - time.value).abs() > tolerance {
            return Err(format!("Time {} s and Gflops {} contradict one another", time.value, rate.value));
        }
        if let Some(s) = summary_s.filter(|s| (s - by_rate).abs() <= tolerance) {
            return Ok(s);
        }
        Ok(if time.half_digit <= share * time.value { time.value } else { by_rate })
    }
}

impl Printed {
    fn parse(text: &str) -> Option<Self> {
        let value = text.parse::<f64>().ok()?;
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len()).min(300) as i32;
        let half_digit = 0.5 * 10f64.powi(exponent.parse::<i32>().ok()?.clamp(-300, 300) - decimals);
        Some(Self { value, half_digit })
    }
}
