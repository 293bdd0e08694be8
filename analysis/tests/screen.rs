//! Verdicts on nodes of a screen, in which all nodes run the same kernel round by round.

use pmmpi::bounds::Stamps;
use pmmpi::node::NodeKey;
use pmmpi::record::{
    End, KernelMeasure, KernelResult, Mode, NodeRecord, RankRecord, Run, RunHeader, Screened, Series,
};
use pmmpi::{NodeId, RankId};
use pmmpi_analysis::input::importers::ImportOptions;
use pmmpi_analysis::report::screen::{ScreenReport, ScreenedNode};
use pmmpi_analysis::report::{self, PlaceSettings, Report};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;
use pmmpi_events::validation::Trust;

const BEGIN_NS: i64 = 1_000_000;

#[derive(Clone)]
enum Outcome {
    Seconds(f64),
    NoTime(KernelResult),
}

/// A round of the kernel fma, with its outcome on each node.
fn round(number: u32, outcomes: &[Outcome]) -> Run {
    let header = RunHeader {
        series: Some(Series { id: "screen".to_owned(), round: number }),
        ..RunHeader::new(
            format!("run-{number}"),
            vec!["fma".to_owned()],
            Mode::Plain,
            i64::from(number) * 60_000_000_000,
        )
    };
    let mut run = Run::empty(header, outcomes.len() as u32);
    let unit = KernelMeasure { name: "fma".to_owned(), unit: "GFLOP/s".to_owned(), larger_is_better: true };
    let kernel = Some("fma".to_owned());
    let mut screened = Screened { kernel, measures: vec![unit], ..Screened::default() };
    let end_ns = |outcome: &Outcome| {
        let seconds = if let Outcome::Seconds(seconds) = outcome { *seconds } else { 0.1 };
        BEGIN_NS + (seconds * 1e9) as i64
    };
    let last_ns = outcomes.iter().map(end_ns).max().expect("nodes");
    for (node, outcome) in (0..).zip(outcomes) {
        run.nodes.push(NodeRecord::new(NodeKey { hostname: format!("n{node}"), ..NodeKey::own().clone() }));
        let stamps = Stamps::new(0, BEGIN_NS, end_ns(outcome), last_ns + 1).expect("stamps");
        let record = RankRecord::unmeasured(End::Exited(0));
        run.ranks.push(RankRecord { rank: RankId(node), node: NodeId(node), stamps, ..record });
        let result = match outcome {
            Outcome::Seconds(seconds) => {
                KernelResult { values: vec![1.0 / seconds], work: 1.0, ..KernelResult::default() }
            }
            Outcome::NoTime(result) => result.clone(),
        };
        screened.results.push(KernelResult { rank: RankId(node), ..result });
    }
    run.screened = Some(screened);
    run
}

fn screen(runs: &[Run]) -> ScreenReport {
    let trust = Trust::default();
    let input = report::of_runs(runs, &ImportOptions::default(), &trust);
    let report = Report::new(input, &trust, &JudgeSettings::default(), &PlaceSettings::default());
    report.screen.expect("a screen")
}

fn node<'a>(screen: &'a ScreenReport, name: &str) -> &'a ScreenedNode {
    screen.screened.iter().find(|node| &*node.node == name).expect("the node")
}

/// The rounds differ by 3 %, the same on all nodes, and differ slowly: without a correction, successive runs of a node look
/// alike, as if seven runs were one.
#[test]
fn a_slow_node_is_found_whatever_the_rounds_have_in_common() {
    let mut random = Random::new(1);
    let rounds = [0.749, 0.752, 0.761, 0.776, 0.785, 0.791, 0.794];
    let runs: Vec<Run> = (0..)
        .zip(rounds)
        .map(|(number, seconds)| {
            let time = |node: usize| {
                let slow = if node == 2 { 2.27 } else { 1.0 };
                Outcome::Seconds(seconds * slow * (1.0 + 0.0005 * random.normal()))
            };
            round(number, &(0..5).map(time).collect::<Vec<_>>())
        })
        .collect();
    let screen = screen(&runs);
    let slow = node(&screen, "n2");
    assert_eq!(slow.verdict, Some(ScreenVerdict::SlowTail), "{slow:?}");
    assert!(slow.suggests_drain && slow.slower_by_at_least > Some(1.2), "{slow:?}");
    for other in ["n0", "n1", "n3", "n4"] {
        assert_eq!(node(&screen, other).verdict, Some(ScreenVerdict::Ok));
    }
}

#[test]
fn a_failure_or_a_wrong_result_in_any_round_decides() {
    let failed = KernelResult { failed: Some("no memory".to_owned()), ..KernelResult::default() };
    let wrong = KernelResult { wrong: Some("element 3 is wrong".to_owned()), ..KernelResult::default() };
    let runs: Vec<Run> = (0..7)
        .map(|number| {
            let time = |node: i32| Outcome::Seconds(1.0 + 0.001 * f64::from((node + number) % 3));
            let mut outcomes: Vec<Outcome> = (0..6).map(time).collect();
            if number == 1 {
                outcomes[4] = Outcome::NoTime(failed.clone());
            }
            if number == 5 {
                outcomes[1] = Outcome::NoTime(wrong.clone());
            }
            round(number as u32, &outcomes)
        })
        .collect();
    let screen = screen(&runs);
    let (of_failed, of_wrong) = (node(&screen, "n4"), node(&screen, "n1"));
    assert_eq!((of_failed.verdict, of_failed.suggests_drain), (Some(ScreenVerdict::Failed), false));
    assert_eq!((of_wrong.verdict, of_wrong.suggests_drain), (Some(ScreenVerdict::Wrong), true));
    assert_eq!(of_failed.kernels["fma"].failed_runs, 1);
    let drained: Vec<&str> = screen.suggestions.iter().map(|of| &*of.node).collect();
    assert_eq!(drained, ["n1"]);
    assert!(screen.suggestions[0].reason.starts_with("pmmpi: wrong-result: fma "));
    for other in ["n0", "n2", "n3", "n5"] {
        assert_eq!(node(&screen, other).verdict, Some(ScreenVerdict::Ok));
    }
}
