//! Warnings of names that the user asked for and no input has: nodes, labels and keys of classes.

use super::{Input, importers};
use crate::table::node_class::Key;
use crate::table::slurm_host_list::HostList;
use crate::warnings::of_input::NAMED;
use crate::warnings::{FirstFew, InputWarning};

impl<T> Input<T> {
    /// Warns of selected nodes without a run: a list with a wrong name must not lose a node without a word.
    fn about_nodes(&mut self, options: &importers::ImportOptions) {
        let selected = options.selection.nodes.iter().flat_map(HostList::names);
        let unknown = selected.filter(|name| !self.hosts.contains(*name));
        let nodes = FirstFew::of(unknown, NAMED, str::to_owned);
        // Without any run, there is no report.
        if nodes.all > 0 && !self.hosts.is_empty() {
            self.warnings.push(InputWarning::UnknownNode { nodes }.into());
        }
    }

    /// Warns of keys that no input has: they are probably misspelt.
    pub(super) fn about_keys(&mut self, options: &importers::ImportOptions) {
        if options.class_by.is_chosen() && self.results.without_parts {
            self.warnings.push(InputWarning::ArchivedClasses.into());
        }
        self.about_nodes(options);
        for label in options.selection.unknown(&self.results.class_keys) {
            self.warnings.push(InputWarning::UnknownLabel { label }.into());
        }
        for key in options.class_by.asked() {
            // Runs of pmmpi have these keys, and other runs may do without.
            let is_recorded = key.is_fact() || matches!(key, Key::Fact(_));
            if !(matches!(key, Key::Named(_)) || is_recorded) || (is_recorded && !self.runs.is_empty()) {
                continue;
            }
            let name = key.name();
            if !self.results.class_keys.contains(name) {
                self.warnings.push(InputWarning::UnknownClassKey { key: name.to_owned() }.into());
            }
        }
    }
}
