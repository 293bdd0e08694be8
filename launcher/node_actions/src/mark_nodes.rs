//! The order of the work: lock the journal, read all nodes, decide, and then change one node after another.

use crate::cause::MarkCause;
use crate::decide::{self, Skip, Wish};
use crate::error::{Error, ToolError};
use crate::gate_cover::GateCover;
use crate::journal::{self, Entry, Journal};
use crate::limit;
use crate::measurement::Measurement;
use crate::node_name;
use crate::node_state::NodeState;
use crate::one_change::Act;
use crate::own_marks::OwnMarks;
use crate::reason;
use crate::report::{ActionsReport, Decision, Recovered};
use crate::scontrol::{ListedNodes, Slurm};
use crate::settings::{ActionSettings, Finding};
use crate::slurm_names::SlurmNames;
use std::collections::{BTreeMap, BTreeSet};

/// Marks the nodes with findings, and removes the mark from nodes that passed.
///
/// An error means that pmmpi acted on no node. A problem with one node is a [`Decision`], and pmmpi continues with
/// the other nodes. If Slurm does not answer in time, or the journal cannot be written, pmmpi changes no more nodes
/// ([`ActionsReport::stopped`]).
pub fn run(
    findings: &[Finding],
    passed: &[String],
    settings: &ActionSettings,
    slurm: &dyn Slurm,
) -> Result<ActionsReport, Error> {
    settings.check()?;
    let mut journal = match settings.apply {
        // Slurm tells the name before the lock, so that the journal says at once who has the lock.
        true => Some(Journal::open(&settings.log, &slurm.cluster())?),
        false => {
            journal::check_log(&settings.log, slurm)?;
            None
        }
    };
    let mut listed = slurm.nodes()?;
    let mut report = ActionsReport::default();
    if let Some(journal) = &mut journal {
        journal.require_seen_mark(&listed)?;
        report.recovered = recover(journal, &listed)?;
    }
    let names = SlurmNames::of(&listed);
    let mut without_node: BTreeMap<String, Skip> = BTreeMap::new();
    let mut name = |host: &String| match names.of_host(host) {
        Ok(node) => node.to_owned(),
        Err(skip) => {
            without_node.insert(host.clone(), skip);
            host.clone()
        }
    };
    let named = |finding: &Finding| Finding { node: name(&finding.node), ..finding.clone() };
    let findings: Vec<Finding> = findings.iter().map(named).collect();
    let passed: Vec<String> = passed.iter().map(name).collect();
    let (own_marks, open) = match &journal {
        Some(journal) => (journal.marks().clone(), journal.open_intents().to_vec()),
        None => Journal::read_marks(&settings.log, &listed)?,
    };
    let found: BTreeSet<&str> = findings.iter().map(|finding| finding.node.as_str()).collect();
    let is_open = |name: &str| {
        open.iter().any(|open| open.node == name && open.act.changes() == (settings.action.clone(), true))
    };
    let is_marked = |name: &str, state: &Result<NodeState, String>| match state {
        Ok(node) => decide::is_marked(&settings.action, node),
        // As the log has it.
        Err(_) => own_marks.mark(name, &settings.action).is_some() || is_open(name),
    };
    let marked = listed.iter().filter(|(name, state)| is_marked(name, state));
    let marked = marked.map(|(name, _)| name.as_str()).collect();
    report.over_limit = limit::check(&found, &marked, settings.max_nodes, settings.fleet).err();
    for (node, wish) in wishes(&findings, &passed, settings, &own_marks) {
        let wish = match without_node.remove(&node) {
            Some(skip) => wish.and(Err(skip)),
            None => wish,
        };
        // Also if the limit allows no mark: this finding needs none.
        if let Ok(Wish::Mark(cause)) = &wish
            && report.stopped.is_none()
            && let (Some(journal), Some(Ok(state))) = (&mut journal, listed.get(&node))
            && let Err(error) = journal.keep_further(state, cause)
        {
            report.stopped = Some(error.to_string());
        }
        let planned = match wish {
            Ok(Wish::Mark(_)) if report.over_limit.is_some() => Err(Skip::OverLimit),
            Ok(wish) => plan(settings, &wish, &node, &mut listed).map(|(act, state)| (act, state, wish)),
            Err(skip) => Err(skip),
        };
        let decision = match (planned, &mut journal, &report.stopped) {
            (Err(why), ..) => Decision::Skipped { node, why },
            (Ok((act, state, _)), None, _) => Decision::WouldRun { node, arguments: act.arguments(&state) },
            (Ok(_), _, Some(why)) => Decision::Skipped { node, why: Skip::Stopped(why.clone()) },
            (Ok((act, _, wish)), Some(journal), None) => {
                let mut one = One { settings, slurm, journal, stop: &mut report.stopped, node: &node };
                one.perform(&wish, act)
            }
        };
        report.decisions.push(decision);
    }
    Ok(report)
}

/// What the caller wants for each node, once per node: first the nodes that passed, then those with findings.
fn wishes(
    findings: &[Finding],
    passed: &[String],
    settings: &ActionSettings,
    own_marks: &OwnMarks,
) -> Vec<(String, Result<Wish, Skip>)> {
    let mut found: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        found.entry(finding.node.as_str()).or_default().push(finding);
    }
    let passed: BTreeSet<&str> = passed.iter().map(String::as_str).collect();
    let cover = |node: &str| GateCover::new(own_marks.mark(node, &settings.action), &settings.kernels);
    let unmark = passed.iter().map(|&node| match found.contains_key(node) {
        true => (node, Err(Skip::Contradiction)),
        false => (node, Ok(Wish::Unmark(cover(node)))),
    });
    let mark = found.iter().filter(|(node, _)| !passed.contains(*node));
    let mark = mark.map(|(node, findings)| (*node, Ok(Wish::Mark(merged(findings)))));
    let named = |(node, wish): (&str, Result<Wish, Skip>)| {
        (node.to_owned(), if node_name::is_valid(node) { wish } else { Err(Skip::BadName) })
    };
    unmark.chain(mark).map(named).collect()
}

/// All findings on one node together.
fn merged(findings: &[&Finding]) -> MarkCause {
    let (mut reasons, mut found_by): (Vec<&str>, Vec<Measurement>) = (Vec::new(), Vec::new());
    for finding in findings {
        if !reasons.contains(&finding.reason.as_str()) {
            reasons.push(&finding.reason);
        }
        for measurement in &finding.found_by {
            if !found_by.contains(measurement) {
                found_by.push(measurement.clone());
            }
        }
    }
    MarkCause { reason: reason::cleaned(&reasons.join("; ")), found_by }
}

/// The act on a node in the state that was read first.
fn plan(
    settings: &ActionSettings,
    wish: &Wish,
    node: &str,
    listed: &mut ListedNodes,
) -> Result<(Act, NodeState), Skip> {
    let state = listed.remove(node).ok_or(Skip::Unknown)?.map_err(Skip::Unreadable)?;
    Ok((decide::decide(&settings.action, wish, &state)?, state))
}

/// Writes an outcome for each intent that has none. An intent stays open while pmmpi cannot read its node.
fn recover(journal: &mut Journal, listed: &ListedNodes) -> Result<Vec<Recovered>, Error> {
    let mut recovered = Vec::new();
    for open in journal.open_intents().to_vec() {
        let Some(result) = open.result(listed) else { continue };
        let (found, after) = match listed.get(&open.node) {
            Some(Ok(state)) => {
                let not = if result == journal::Result::FoundDone { "" } else { "not " };
                let found = format!("the change is {not}done: {}", open.act.seen(state));
                (found, Some(Box::new(state.clone())))
            }
            _ => ("Slurm no longer has this node".to_owned(), None),
        };
        let note = Some("an earlier pmmpi wrote no outcome".to_owned());
        journal.close(&open, result);
        let journal::Open { id, node, act, time, .. } = open;
        journal.append(Entry::Outcome { id, node: node.clone(), result, note, before: None, after })?;
        recovered.push(Recovered { node, act, time, found });
    }
    Ok(recovered)
}

/// One act on one node.
struct One<'a> {
    settings: &'a ActionSettings,
    slurm: &'a dyn Slurm,
    journal: &'a mut Journal,
    /// Set if pmmpi must change no more nodes.
    stop: &'a mut Option<String>,
    node: &'a str,
}

impl One<'_> {
    /// Writes the intent, reads the node again, acts if the node still allows it, reads the node once more, and writes
    /// the outcome.
    fn perform(&mut self, wish: &Wish, planned: Act) -> Decision {
        let cause = if let Wish::Mark(cause) = wish { Some(cause) } else { None };
        let id = match self.journal.intend(self.node, &planned, cause) {
            Ok(id) => id,
            // Without an intent on disk there is no act.
            Err(error) => {
                let why = error.to_string();
                *self.stop = Some(why.clone());
                return self.skipped(Skip::Stopped(why));
            }
        };
        let before = match self.slurm.node(self.node) {
            Ok(before) => before,
            Err(error) => {
                self.note(&error);
                self.outcome(id, journal::Result::Skipped, Some(error.to_string()), None, None);
                return self.skipped(Skip::Unreadable(error.to_string()));
            }
        };
        let act = match decide::decide(&self.settings.action, wish, &before) {
            Ok(act) => act,
            Err(skip) => {
                let note = Some(format!("the node has changed since the first read: {skip}"));
                self.outcome(id, journal::Result::Skipped, note, Some(before), None);
                return self.skipped(skip);
            }
        };
        let failure = self.slurm.update(&act.arguments(&before), self.journal.lock()).err();
        if let Some(failure) = &failure {
            self.note(failure);
        }
        let said = failure.as_ref().map(ToolError::to_string);
        let because = |found: String| said.clone().into_iter().chain([found]).collect::<Vec<_>>().join("; ");
        let after = match self.slurm.node(self.node) {
            Ok(after) => after,
            // The intent stays open, so that the next run writes what it finds.
            Err(error) => {
                self.note(&error);
                let why = because(format!("pmmpi does not know whether the change is done: {error}"));
                return Decision::Failed { node: self.node.to_owned(), act, why };
            }
        };
        let Err(found) = act.check(&before, &after) else {
            self.outcome(id, journal::Result::Done, said, Some(before), Some(after));
            return Decision::Done { node: self.node.to_owned(), act };
        };
        let why = because(found);
        // Slurm may have the request, and may execute it later. So the intent stays open in this case, too.
        if !failure.is_some_and(|failure| failure.is_general()) {
            self.outcome(id, journal::Result::Failed, Some(why.clone()), Some(before), Some(after));
        }
        Decision::Failed { node: self.node.to_owned(), act, why }
    }

    /// If this fails, the intent stays open, and the next run writes the outcome.
    fn outcome(
        &mut self,
        id: u64,
        result: journal::Result,
        note: Option<String>,
        before: Option<NodeState>,
        after: Option<NodeState>,
    ) {
        let node = self.node.to_owned();
        let [before, after] = [before, after].map(|state| state.map(Box::new));
        if let Err(error) = self.journal.append(Entry::Outcome { id, node, result, note, before, after }) {
            *self.stop = Some(error.to_string());
        }
    }

    /// Stops the run if the next call of scontrol will probably fail, too.
    fn note(&mut self, error: &ToolError) {
        if error.is_general() {
            *self.stop = Some(error.to_string());
        }
    }

    fn skipped(&self, why: Skip) -> Decision {
        Decision::Skipped { node: self.node.to_owned(), why }
    }
}

#[cfg(test)]
mod tests;
