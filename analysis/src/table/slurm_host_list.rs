//! Lists of host names in Slurm's syntax, such as `n[001-003,017],m5`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::str::FromStr;

/// A longer list is a typing error.
const MOST_NAMES: usize = 1 << 20;

/// The names that a list stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList(BTreeSet<String>);

impl HostList {
    /// True if the list has this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// All names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromStr for HostList {
    type Err = String;

    /// Reads a list with any number of brackets in a name.
    fn from_str(list: &str) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        for part in parts(list)? {
            names.extend(expanded(part)?);
            if names.len() > MOST_NAMES {
                return Err(format!("the list has more than {MOST_NAMES} nodes"));
            }
        }
        Ok(Self(names))
    }
}

/// The parts between commas that are not in brackets.
fn parts(list: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if !is_inside => is_inside = true,
            ']' if is_inside => is_inside = false,
            '[' | ']' => return Err(format!("the brackets of `{list}` do not match")),
            ',' if !is_inside => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    match (is_inside, parts.iter().any(|part| part.is_empty())) {
        (true, _) => Err(format!("the brackets of `{list}` do not match")),
        (_, true) => Err("a name is empty".to_owned()),
        _ => Ok(parts),
    }
}

/// The names of a part such as `r[1-2]n[08-09]`.
fn expanded(part: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = part.split_once('[') else { return Ok(vec![part.to_owned()]) };
    let (numbers, after) = rest.split_once(']').unwrap_or((rest, ""));
    let after = if after.is_empty() { vec![String::new()] } else { expanded(after)? };
    let mut names = Vec::new();
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| format!("`{range}` in `{part}` is not a range of numbers"))
        };
        let (width, first, last) = (first.trim().len(), number(first)?, number(last)?);
        if first > last {
            return Err(format!("`{range}` in `{part}` begins with the larger number"));
        }
        let count = (last - first) as usize;
        if count.saturating_add(1).saturating_mul(after.len()).saturating_add(names.len()) > MOST_NAMES {
            return Err(format!("`{part}` stands for more than {MOST_NAMES} nodes"));
        }
        for number in first..=last {
            names.extend(after.iter().map(|after| format!("{before}{number:0width$}{after}")));
        }
    }
    Ok(names)
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

    #[test]
    fn lists_are_read() {
        let names = |list: &str| list.parse::<HostList>().map(|list| list.0.into_iter().collect::<Vec<_>>());
        for (list, expected) in [
            ("n[001-003,017]", &["n001", "n002", "n003", "n017"][..]),
            ("n[9-11], login", &["login", "n10", "n11", "n9"]),
            ("r[1-2]n[08-09]-ib", &["r1n08-ib", "r1n09-ib", "r2n08-ib", "r2n09-ib"]),
            ("n7", &["n7"]),
        ] {
            assert_eq!(names(list).unwrap(), expected, "{list}");
        }
        for wrong in [
            "",
            "n[1",
            "n1]",
            "n[]",
            "n[1-]",
            "n[a-b]",
            "n[3-1]",
            "a,,b",
            "n[[1]]",
            "n[1-9999999999]",
            "n[0-999]x[0-999]y[0-9]",
        ] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_list_stands_for_its_names(names in proptest::collection::btree_set("[an][0-9]{0,3}(-x)?", 1..40)) {
            let list = compressed(names.iter().map(String::as_str));
            prop_assert_eq!(list.parse::<HostList>(), Ok(HostList(names)));
        }
    }
}
