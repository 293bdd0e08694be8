//! Labels that put each run in a separate class, such as the number of a job: then no runs are compared.

use super::run::RunReport;
use crate::verdicts::class_report::ClassReport;
use crate::warnings::ClassWarning;
use std::collections::{BTreeMap, BTreeSet};

/// With fewer values, the user may want to separate the runs by this label.
const FEWEST_VALUES: usize = 3;

/// Warns of the first label that has almost as many values as there are runs of the same work.
pub fn warning(runs: &[RunReport], classes: &[ClassReport]) -> Option<ClassWarning> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.labels.keys()).collect();
    keys.into_iter().find_map(|key| about(key, runs, classes))
}

fn about(key: &String, runs: &[RunReport], classes: &[ClassReport]) -> Option<ClassWarning> {
    // Runs that are equal in all but this label.
    let mut same: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for (run, value) in runs.iter().filter_map(|run| Some((run, run.labels.get(key)?))) {
        let others: Vec<(&String, &String)> =
            run.labels.iter().filter(|(other, _)| *other != key && *other != "session").collect();
        same.entry((&run.command, run.ranks, others)).or_default().push(value);
    }
    let ((command, ..), values) = same.into_iter().max_by_key(|(_, values)| values.len())?;
    let different: BTreeSet<&str> = values.iter().copied().collect();
    let splits = |value: &&str| classes.iter().any(|class| class.class.contains(&format!("{key}={value}")));
    let splitting = different.iter().filter(|value| splits(value)).count();
    let is_split = splitting >= FEWEST_VALUES && 2 * splitting > values.len();
    is_split.then(|| ClassWarning::SplitByLabel {
        label: key.clone(),
        values: splitting,
        runs: values.len(),
        command: command.clone(),
    })
}
