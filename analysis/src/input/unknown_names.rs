//! Warnings of names that the user asked for and no input has: nodes, labels and keys of classes.

use super::{Input, importers};
use crate::table::node_class::Key;
use crate::table::slurm_host_list::HostList;
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::count;

impl<T> Input<T> {
    /// Warns of selected nodes without a run: a list with a wrong name must not lose a node without a word.
    fn about_nodes(&mut self, options: &importers::ImportOptions) {
        const NAMED: usize = 3;
        let selected = options.selection.nodes.iter().flat_map(HostList::names);
        let unknown: Vec<&str> = selected.filter(|name| !self.hosts.contains(*name)).collect();
        // Without any run, there is no report.
        if unknown.is_empty() || self.hosts.is_empty() {
            return;
        }
        let more = if unknown.len() > NAMED { ", ..." } else { "" };
        let named = unknown[..unknown.len().min(NAMED)].join(", ");
        let message =
            format!("--node: there is no selected run on {}: {named}{more}", count(unknown.len(), "node"));
        self.warnings.push(Warning::new(WarningCode::UnknownNode, message));
    }

    /// Warns of keys that no input has: they are probably misspelt.
    pub(super) fn about_keys(&mut self, options: &importers::ImportOptions) {
        if options.class_by.is_chosen() && self.results.without_parts {
            self.warnings
                .push(Warning::new(WarningCode::ArchivedClasses, WarningCode::ArchivedClasses.example()));
        }
        self.about_nodes(options);
        for label in options.selection.unknown(&self.results.class_keys) {
            let message = format!(
                "--where {label}: no run has a label of this name, and no file has a column of this name"
            );
            self.warnings.push(Warning::new(WarningCode::UnknownLabel, message));
        }
        for key in options.class_by.asked() {
            // Runs of pmmpi have these keys, and other runs may do without.
            let is_recorded = key.is_fact() || matches!(key, Key::Fact(_));
            if !(matches!(key, Key::Named(_)) || is_recorded) || (is_recorded && !self.runs.is_empty()) {
                continue;
            }
            let name = key.name();
            if !self.results.class_keys.contains(name) {
                self.warnings.push(Warning::new(
                    WarningCode::UnknownClassKey,
                    format!(
                        "--class-by {name}: no run has a label, fact or setting of this name, and no file has a \
                         column of this name with text or numbers"
                    ),
                ));
            }
        }
    }
}
