//! Counts equal values: "2 x a, 1 x b".

use std::collections::BTreeMap;

/// "2 x a, 1 x b": equal values with their number, the most frequent first. `None` without values.
pub fn counted(values: impl IntoIterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    values.into_iter().for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let texts: Vec<String> = counts.into_iter().map(|(value, count)| format!("{count} x {value}")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
