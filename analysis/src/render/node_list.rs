//! The nodes to avoid, for users without the right to drain nodes: Slurm's compressed list for `--exclude`, or one node per line.

use super::cells::percent;
use crate::report::Report;
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::NodeReport;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Slurm's compressed list, such as `n[001-003,017],m5`, with a line end; empty without a node.
pub fn exclude(report: &Report) -> String {
    let list = compressed(avoided(report).into_keys());
    if list.is_empty() { list } else { list + "\n" }
}

/// One node per line, by name.
pub fn nodefile(report: &Report) -> String {
    avoided(report).into_keys().map(|node| format!("{node}\n")).collect()
}

/// Why each node is in the list, one line per node; and which nodes cannot be in a list.
pub fn reasons(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> =
        avoided(report).into_iter().map(|(node, reason)| format!("{node}: {reason}")).collect();
    let named: BTreeSet<&str> =
        report.nodes.iter().filter(|node| reason(node).is_some()).map(|node| node.node.as_str()).collect();
    let left_out = named.into_iter().filter(|node| !is_host_name(node));
    lines.extend(left_out.map(|node| format!("{node} is not one host name: it is not in the list")));
    lines
}

/// The nodes with the strongest reason of each.
fn avoided(report: &Report) -> BTreeMap<&str, String> {
    let mut avoided = BTreeMap::new();
    let current = report.nodes.iter().filter(|node| node.is_current() && is_host_name(&node.node));
    for node in current {
        if let Some(reason) = reason(node) {
            // Reports are in the order of their weight.
            avoided.entry(node.node.as_str()).or_insert(reason);
        }
    }
    for wrong in report.wrong.iter().filter(|wrong| wrong.is_latest && is_host_name(&wrong.node)) {
        avoided.entry(&wrong.node).or_insert_with(|| "WRONG: a result failed its own check".to_owned());
    }
    avoided
}

/// Why a node should be avoided, and how sure that is.
fn reason(node: &NodeReport) -> Option<String> {
    let member = node.as_member_of.as_ref();
    let of_class = [
        (node.verdict, node.slowdown, node.slower_by_at_least),
        (
            member.and_then(|of| of.verdict),
            member.and_then(|of| of.slowdown),
            member.and_then(|of| of.slower_by_at_least),
        ),
    ];
    let of_class = of_class.into_iter().find_map(|(verdict, slowdown, least)| match verdict? {
        Verdict::Wrong => Some("WRONG: a result failed its own check".to_owned()),
        verdict @ (Verdict::Slow | Verdict::SlowTail) => Some(format!(
            "{}: {} against its class (with a probability of 99 % at least {})",
            verdict.name(),
            percent(slowdown?, 1),
            percent(least.unwrap_or_default(), 1)
        )),
        _ => None,
    });
    let slowed = || {
        let history = Some(&node.history).filter(|history| history.verdict == Some(OwnVerdict::Slowed))?;
        let since = history.since.as_deref().unwrap_or("an earlier session");
        Some(format!(
            "SLOWED: {} against what it was, since {since} (with a probability of 99 % at least {})",
            percent(history.change?, 1),
            percent(history.at_least?, 1)
        ))
    };
    of_class.or_else(slowed)
}

/// True for a name that a list of nodes can contain.
fn is_host_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with('-')
}

/// Host names in Slurm's syntax. Names that end in digits and are equal before them become ranges; numbers with leading
/// zeros are apart from others.
pub fn compressed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    /// More digits do not fit a number.
    const MOST_DIGITS: usize = 18;
    let mut groups: BTreeMap<&str, BTreeMap<usize, BTreeSet<u64>>> = BTreeMap::new();
    let mut plain: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        match digits.parse() {
            Ok(number) if digits.len() <= MOST_DIGITS => {
                // Without leading zeros 9 and 10 are one range, so such numbers have the width 0.
                let width = if digits.len() > 1 && digits.starts_with('0') { digits.len() } else { 0 };
                groups.entry(prefix).or_default().entry(width).or_default().insert(number);
            }
            _ => _ = plain.insert(name),
        }
    }
    let mut parts: Vec<String> =
        groups.into_iter().flat_map(|(prefix, widths)| of_prefix(prefix, widths)).collect();
    parts.extend(plain.into_iter().map(str::to_owned));
    parts.join(",")
}

/// One part per width: `n[001-003]`, or `n7`.
fn of_prefix(prefix: &str, widths: BTreeMap<usize, BTreeSet<u64>>) -> Vec<String> {
    let mut widths = widths;
    join_widths(&mut widths);
    let of_width = |(width, numbers): (usize, BTreeSet<u64>)| {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let mut list = String::new();
        for (first, last) in &ranges {
            let comma = if list.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(list, "{comma}{first:0width$}");
            let _ = if last > first { write!(list, "-{last:0width$}") } else { Ok(()) };
        }
        let is_one = matches!(ranges[..], [(first, last)] if first == last);
        if is_one { format!("{prefix}{list}") } else { format!("{prefix}[{list}]") }
    };
    widths.into_iter().map(of_width).collect()
}

/// Numbers such as 100 belong to 098 and 099, if these have three digits, too.
fn join_widths(widths: &mut BTreeMap<usize, BTreeSet<u64>>) {
    let Some(mut without) = widths.remove(&0) else { return };
    for (width, numbers) in widths.iter_mut() {
        let has_width = |number: &u64| number.to_string().len() == *width;
        let joined: Vec<u64> = without.iter().copied().filter(has_width).collect();
        joined.iter().for_each(|number| _ = without.remove(number));
        numbers.extend(joined);
    }
    if !without.is_empty() {
        widths.insert(0, without);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_those_of_slurm() {
        for (names, expected) in [
            (&["n001", "n002", "n003", "n017"][..], "n[001-003,017]"),
            (&["n098", "n099", "n100", "n101"], "n[098-101]"),
            (&["n9", "n10", "n11"], "n[9-11]"),
            (&["n7"], "n7"),
            (&["n007", "login", "a-b", "x5-ib"], "n007,a-b,login,x5-ib"),
            (&["m1", "n1", "m2"], "m[1-2],n1"),
            (&["1", "2"], "[1-2]"),
            (&[], ""),
        ] {
            assert_eq!(compressed(names.iter().copied()), expected);
        }
    }

    /// All names that a list stands for.
    fn expanded(list: &str) -> BTreeSet<String> {
        let (mut names, mut rest) = (BTreeSet::new(), list);
        while !rest.is_empty() {
            let end = rest.find(',').unwrap_or(rest.len());
            match rest.find('[').filter(|open| *open < end) {
                None => {
                    names.insert(rest[..end].to_owned());
                    rest = rest[end..].trim_start_matches(',');
                }
                Some(open) => {
                    let close = rest.find(']').unwrap();
                    for range in rest[open + 1..close].split(',') {
                        let (first, last) = range.split_once('-').unwrap_or((range, range));
                        let width = first.len();
                        let numbers = first.parse::<u64>().unwrap()..=last.parse().unwrap();
                        names.extend(numbers.map(|number| format!("{}{number:0width$}", &rest[..open])));
                    }
                    rest = rest[close + 1..].trim_start_matches(',');
                }
            }
        }
        names
    }

    proptest! {
        #[test]
        fn a_list_stands_for_its_names(names in proptest::collection::btree_set("[an][0-9]{0,3}(-x)?", 0..40)) {
            prop_assert_eq!(expanded(&compressed(names.iter().map(String::as_str))), names);
        }
    }
}
