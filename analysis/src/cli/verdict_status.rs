//! The exit status of a report: what it found, for scripts and for monitoring.

use super::exit_statuses::{COULD_NOT_JUDGE, FOUND, PARTIAL};
use super::options::FailOn;
use clap::ValueEnum;
use pmmpi_analysis::render::screen as screen_sentences;
use pmmpi_analysis::report::Report;
use pmmpi_analysis::report::accounted::NodeGroup;
use pmmpi_analysis::report::against_baseline::{AgainstBaseline, KernelAgainst};
use pmmpi_analysis::report::screen::ScreenReport;
use pmmpi_analysis::stats::own_history::OwnVerdict;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_analysis::verdicts::fitness::Fitness;
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;
use pmmpi_analysis::verdicts::node_report::{NodeReport, Presence};
use pmmpi_analysis::warnings::WarningCode;

/// The status with `--fail-on`; `partial` if a part of the input could not be used.
pub fn plain(report: &Report, fail_on: &[FailOn], partial: bool) -> u8 {
    if fail_on.iter().any(|what| is_found(report, *what)) {
        return FOUND;
    }
    // A check that cannot compare any node must not succeed.
    let looks_at_nodes = fail_on.iter().any(|what| matches!(what, FailOn::Slow | FailOn::Suspect));
    let is_open = (fail_on.contains(&FailOn::Unjudged) && unjudged(report) > 0)
        || (looks_at_nodes && is_nothing_judged(report))
        || is_baseline_open(report.screen.as_ref(), fail_on);
    match is_open {
        true => COULD_NOT_JUDGE,
        false => u8::from(partial),
    }
}

/// The same for a screen: only its own nodes count, each with the verdict from all kernels. A node without a result has not
/// passed.
pub fn screen(report: &Report, screen: &ScreenReport, fail_on: &[FailOn], partial: bool) -> u8 {
    if fail_on.iter().any(|what| is_found_in(report, screen, *what)) {
        return FOUND;
    }
    match is_open(report, screen, fail_on) {
        true => COULD_NOT_JUDGE,
        false => u8::from(partial),
    }
}

/// Says why "no slow node was found" proves nothing for this screen. `None` if a node was found, if the screen does
/// prove that no node is slow, or if pmmpi compared no node ([`advice`]).
pub fn advice_on_screen(report: &Report, screen: &ScreenReport, fail_on: &[FailOn]) -> Option<String> {
    let asked = fail_on.iter().find(|what| matches!(what, FailOn::Slow | FailOn::Suspect))?;
    if fail_on.iter().any(|what| is_found_in(report, screen, *what)) {
        return None;
    }
    let name = asked.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    Some(format!("--fail-on {name}: {}", screen_sentences::without_result(screen)?))
}

fn is_found_in(report: &Report, screen: &ScreenReport, what: FailOn) -> bool {
    use ScreenVerdict::{Failed, Slow, SlowTail, Slowed, Suspect, Unusual, Wrong};
    let any = |of: &[ScreenVerdict]| {
        screen.screened.iter().filter_map(|node| node.verdict).any(|verdict| of.contains(&verdict))
    };
    match what {
        FailOn::Slow => any(&[Wrong, Slow, SlowTail, Slowed]),
        FailOn::Suspect => any(&[Wrong, Slow, SlowTail, Slowed, Failed, Suspect, Unusual]),
        other => is_found(report, other),
    }
}

fn is_open(report: &Report, screen: &ScreenReport, fail_on: &[FailOn]) -> bool {
    let looks_at_nodes = fail_on.iter().any(|what| matches!(what, FailOn::Slow | FailOn::Suspect));
    let is_nothing_judged = screen.screened.iter().all(|node| node.verdict.is_none());
    let is_unjudged = screen.screened.iter().any(|node| node.not_compared().next().is_some());
    let has_no_result = screen_sentences::without_result(screen).is_some();
    is_baseline_open(Some(screen), fail_on)
        || (fail_on.contains(&FailOn::Moved) && is_without_earlier_screen(report, screen))
        || (looks_at_nodes && (is_nothing_judged || has_no_result))
        || (fail_on.contains(&FailOn::Unjudged) && (is_unjudged || has_no_result))
}

/// True if the user asks whether a class became slower, and the baseline leaves this open for at least one kernel.
fn is_baseline_open(screen: Option<&ScreenReport>, fail_on: &[FailOn]) -> bool {
    let against = screen.and_then(|screen| screen.against.as_ref());
    fail_on.contains(&FailOn::Moved) && against.is_some_and(AgainstBaseline::is_open)
}

/// True if there is no baseline, and no earlier screen with which a class of this screen can be compared.
fn is_without_earlier_screen(report: &Report, screen: &ScreenReport) -> bool {
    let mut of_screen =
        report.classes.iter().filter(|class| screen.kernel_of_class.contains_key(&class.class));
    screen.against.is_none() && !of_screen.any(|class| class.shows_change)
}

/// Says that "no class became slower" proves nothing, because pmmpi has no earlier screens to compare with.
pub fn advice_on_moved(report: &Report, screen: &ScreenReport, fail_on: &[FailOn]) -> Option<String> {
    let is_asked =
        fail_on.contains(&FailOn::Moved) && !fail_on.iter().any(|what| is_found_in(report, screen, *what));
    (is_asked && is_without_earlier_screen(report, screen)).then(|| {
        "--fail-on moved: pmmpi could compare no class with earlier screens. To compare a class, pmmpi needs \
         earlier screens of the same work. They must contain at least 5 (and at least half) of the class's nodes \
         in this screen. For each node, only screens after its last maintenance count"
            .to_owned()
    })
}

/// The status of `pmmpi screen --gate`: 0 if all nodes are fit to return, 3 if one is not, else 4.
pub fn gate(screen: &ScreenReport) -> u8 {
    let any = |fitness| screen.gate.iter().any(|asked| asked.answer == fitness);
    match () {
        () if any(Fitness::NotFit) => FOUND,
        () if any(Fitness::Undecided) => COULD_NOT_JUDGE,
        () => 0,
    }
}

/// The more important one of two statuses. The order: something was found; something could not be judged; a part of the
/// input could not be used.
pub fn worse(a: u8, b: u8) -> u8 {
    [FOUND, COULD_NOT_JUDGE, PARTIAL].into_iter().find(|status| [a, b].contains(status)).unwrap_or(0)
}

/// What to do if pmmpi could judge no node: "no slow node was found" then proves nothing.
pub fn advice(report: &Report, fail_on: &[FailOn], delta_percent: f64) -> Option<String> {
    let asked = fail_on.iter().find(|what| matches!(what, FailOn::Slow | FailOn::Suspect))?;
    if fail_on.iter().any(|what| is_found(report, *what)) || !is_nothing_judged(report) {
        return None;
    }
    let name = asked.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let what = match () {
        () if report.nodes.is_empty() => {
            "no run has a valid elapsed time. To find failed runs, use: --fail-on failed".to_owned()
        }
        () if report.accounted.alone + report.accounted.few_runs == 0 => {
            "no node has a valid time in its latest session".to_owned()
        }
        () => {
            let why = match (report.accounted.alone, report.accounted.few_runs) {
                (_, 0) => "no node was measured together with another node of its class",
                (0, _) => "no node has enough runs (--min-runs)",
                _ => {
                    "each node was measured without other nodes of its class, or has too few runs (--min-runs)"
                }
            };
            format!(
                "{why}. To compare nodes with their own earlier runs, use: \
                 pmmpi compare EARLIER NEW --fail-on slower:{delta_percent}%"
            )
        }
    };
    Some(format!("--fail-on {name}: the report judged no node, because {what}"))
}

/// True if the report found `what`, a condition of `--fail-on`. Always false for `Unjudged`, which has its own exit
/// status.
pub fn is_found(report: &Report, what: FailOn) -> bool {
    match what {
        FailOn::Slow => {
            report.nodes.iter().any(|node| is_slow(node, false)) || is_screened_out(report, false)
        }
        FailOn::Suspect => {
            report.nodes.iter().any(|node| is_slow(node, true)) || is_screened_out(report, true)
        }
        FailOn::Moved => is_class_slower(report),
        FailOn::Odd => {
            report.nodes.iter().any(|node| node.presence == Presence::Present && !node.odd.is_empty())
        }
        FailOn::Flaky => report.flaky_now().next().is_some(),
        FailOn::Missing => report.accounted.missing > 0,
        FailOn::Gone => report.accounted.gone > 0,
        FailOn::Wrong => report.accounted.wrong > 0,
        FailOn::Failed => {
            let failed = [WarningCode::FailedRun, WarningCode::IncompleteRun];
            let warnings = || report.runs.iter().flat_map(|run| &run.warnings);
            // An archive has no warnings of runs.
            report.failed_runs > 0 || warnings().any(|warning| failed.contains(&warning.code()))
        }
        // It has a status of its own.
        FailOn::Unjudged => false,
    }
}

/// True if a screen found a wrong result; with `also_failed`, also if a kernel failed.
fn is_screened_out(report: &Report, also_failed: bool) -> bool {
    let nodes = report.screen.iter().flat_map(|screen| &screen.screened);
    let mut verdicts = nodes.filter_map(|node| node.verdict);
    verdicts
        .any(|verdict| verdict == ScreenVerdict::Wrong || (also_failed && verdict == ScreenVerdict::Failed))
}

/// Number of nodes that could not be judged.
fn unjudged(report: &Report) -> usize {
    let accounted = &report.accounted;
    accounted.alone + accounted.few_runs + accounted.unmeasured
}

/// True if nothing shows whether a node is slow: no node was compared with others, nor with its own earlier sessions.
pub fn is_nothing_judged(report: &Report) -> bool {
    let accounted = &report.accounted;
    let few = accounted.nodes.get(&NodeGroup::FewRuns);
    let is_judged = |node: &NodeReport| {
        let is_compared = node.as_member_of.is_some() || node.history.verdict.is_some();
        is_compared && node.is_current() && few.is_none_or(|few| !few.contains(node.node.as_str()))
    };
    accounted.judged + accounted.own_history == 0 && !report.nodes.iter().any(is_judged)
}

/// True if a whole class is slower than before or than in the baseline. Also true if nodes became slower after a
/// maintenance or after a change of their facts.
fn is_class_slower(report: &Report) -> bool {
    /// A change of the times of many nodes, after a change of their facts, counts only if it is larger than this.
    const LEAST: f64 = 0.01;
    let moved = report.classes_now().filter_map(|class| class.moved.as_ref());
    let is_slower_since_maintenance = |node: &NodeReport| {
        let maintenance = node.history.events.maintenance.as_ref().filter(|_| node.is_current());
        maintenance.is_some_and(|maintenance| maintenance.is_certain && maintenance.change > 0.0)
    };
    let mut next_to_baseline =
        report.screen.iter().filter_map(|screen| screen.against.as_ref()).flat_map(|of| &of.kernels);
    moved.into_iter().any(|moved| moved.change > 0.0)
        || next_to_baseline.any(KernelAgainst::is_slower)
        || report.nodes.iter().any(is_slower_since_maintenance)
        || report
            .reconfigured
            .iter()
            .any(|facts| facts.change > LEAST && facts.ci.is_some_and(|ci| ci[0] > 0.0))
}

/// True if a node is slower than its class, or than before; with `may_be`, also if this is not certain.
fn is_slow(node: &NodeReport, may_be: bool) -> bool {
    if !node.is_current() {
        return false;
    }
    let of_class = [node.verdict, node.as_member_of.as_ref().and_then(|member| member.verdict)];
    let of_class = of_class.into_iter().flatten().any(|verdict| match verdict {
        Verdict::Slow | Verdict::SlowTail => true,
        Verdict::Suspect | Verdict::Unusual => may_be,
        // A wrong result is no slow one: --fail-on wrong.
        Verdict::Ok | Verdict::Fast | Verdict::Wrong => false,
    });
    let of_history = match node.history.verdict {
        Some(OwnVerdict::Slowed) => true,
        Some(OwnVerdict::Suspect) => may_be,
        Some(OwnVerdict::Same | OwnVerdict::Faster) | None => false,
    };
    of_class || of_history
}
