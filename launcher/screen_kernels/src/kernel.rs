//! What all kernels have in common.

use crate::error::Error;
use crate::team::{Span, Team};

/// A quantity that a kernel measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The quantity's name, for example `triad`.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// True if a larger value is better.
    pub larger_is_better: bool,
}

/// The value of a measure in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureValue {
    /// What the value is.
    pub measure: Measure,
    /// The value of the whole node.
    pub node: f64,
    /// The value of each hardware thread, in the order of [`Team::hardware_threads`]; empty if the measure has no values
    /// of hardware threads.
    pub threads: Vec<f64>,
}

/// One timed repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// From the earliest start to the latest end of any thread.
    pub elapsed_ns: u64,
    /// A value for each of [`ScreenKernel::measures`], in their order.
    pub values: Vec<MeasureValue>,
}

/// A kernel. The caller prepares it once, runs it as often as needed, and checks it at the end; [`repeat`] does this.
pub trait ScreenKernel {
    /// The name that users type.
    fn name(&self) -> &'static str;

    /// What the kernel measures. The first measure stands for the kernel.
    fn measures(&self) -> &'static [Measure];

    /// Allocates the memory. The pinned thread that uses a page is the first thread that touches this page.
    fn prepare(&mut self, team: &Team) -> Result<(), Error>;

    /// Runs one timed repetition.
    fn run(&mut self, team: &Team) -> Result<Repetition, Error>;

    /// Checks the results of all repetitions since [`ScreenKernel::prepare`] that [`ScreenKernel::run`] did not check
    /// itself.
    fn check(&mut self, team: &Team) -> Result<(), Error>;

    /// How many instructions the loops of one thread execute in a repetition; `None` if this is not known.
    fn expected_instructions(&self) -> Option<u64> {
        None
    }

    /// What the reader of the values must know, for example that the system gave no huge pages.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Prepares a kernel, runs it, and returns the repetitions only if all results are right. The warm-ups come first and
/// return no values: in them the processor leaves its sleep states and raises its frequency.
pub fn repeat(
    kernel: &mut dyn ScreenKernel,
    team: &Team,
    warm_ups: usize,
    repetitions: usize,
) -> Result<Vec<Repetition>, Error> {
    kernel.prepare(team)?;
    for _ in 0..warm_ups {
        kernel.run(team)?;
    }
    let done = (0..repetitions).map(|_| kernel.run(team)).collect::<Result<Vec<_>, _>>()?;
    kernel.check(team)?;
    Ok(done)
}

/// Rates in units per nanosecond (1e9 per second). Each thread has the rate `thread` / its time. The node has the
/// rate `thread` x the number of threads / the time from the earliest start to the latest end.
pub(crate) fn rate(measure: Measure, thread: f64, spans: &[Span]) -> MeasureValue {
    let threads: Vec<f64> = spans.iter().map(|span| thread / span.elapsed_ns() as f64).collect();
    let node = thread * spans.len() as f64 / Span::of_all(spans).elapsed_ns() as f64;
    MeasureValue { measure, node, threads }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_as_slow_as_its_last_thread() {
        let measure = Measure { name: "copy", unit: "GB/s", larger_is_better: true };
        let spans = [Span { start_ns: 100, end_ns: 200 }, Span { start_ns: 150, end_ns: 500 }];
        let value = rate(measure, 1000.0, &spans);
        assert_eq!(value.threads, [10.0, 1000.0 / 350.0]);
        assert_eq!(value.node, 2000.0 / 400.0);
    }
}
