//! Shows the result of `pmmpi screen`.

use super::{all_nodes, line, table, warnings};
use crate::render::against_baseline;
use crate::render::answer::own_history;
use crate::render::nhc;
use crate::render::node_names::NodeNames;
use crate::render::screen::{answer, gate, kernels, links, measured, nodes, wrong_links};
use crate::render::sentences::drain_command;
use crate::report::Report;
use crate::report::host_names::is_host_name;
use crate::report::screen::{ScreenReport, Suggestion};
use crate::table::slurm_host_list::compressed;
use pmmpi::text::shell_line;

/// The result; with `suggest`, also commands and lines that keep jobs away from nodes.
pub fn screen(report: &Report, suggest: bool, top: usize) -> String {
    let mut text = String::new();
    if let Some(screen) = &report.screen {
        let names = NodeNames::of(all_nodes(report));
        result(&mut text, screen, &own_history::classes(report), &names, top);
        if suggest {
            suggestions(&mut text, screen);
        }
    }
    warnings(&mut text, report);
    text
}

/// What was measured, the answer, and the tables. `more` are further sentences of the answer.
pub fn result(text: &mut String, screen: &ScreenReport, more: &[String], names: &NodeNames, top: usize) {
    line(text, &measured(screen));
    line(text, "");
    gate(screen).iter().for_each(|sentence| line(text, sentence));
    answer(screen).iter().chain(more).for_each(|sentence| line(text, sentence));
    table(text, &nodes(screen, top), names);
    table(text, &links(screen, top), names);
    table(text, &wrong_links(screen, top), names);
    table(text, &kernels(screen), names);
    table(text, &against_baseline::table(screen), names);
}

fn suggestions(text: &mut String, screen: &ScreenReport) {
    line(text, "");
    if screen.suggestions.is_empty() {
        line(text, "no node should be drained");
        return;
    }
    line(text, "commands that drain the nodes with the advice \"drain it\":");
    for suggestion in &screen.suggestions {
        line(text, &drain_command(suggestion));
    }
    // Lists and patterns of hosts have no quotes for other names.
    let is_listed = |suggestion: &&Suggestion| is_host_name(suggestion.node.as_str());
    let listed: Vec<&Suggestion> = screen.suggestions.iter().filter(is_listed).collect();
    if listed.is_empty() {
        return;
    }
    let names = listed.iter().map(|suggestion| screen.names_in_slurm.of_host(suggestion.node.as_str()));
    line(text, "");
    line(text, "option of sbatch and srun to avoid these nodes:");
    line(text, &shell_line([format!("--exclude={}", compressed(names))]));
    line(text, "");
    line(text, "lines for nhc.conf (LBNL Node Health Check):");
    for suggestion in listed {
        line(text, &nhc::line(suggestion.node.as_str(), &suggestion.reason.to_string()));
    }
}
