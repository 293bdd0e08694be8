//! Lists of host names in Slurm's syntax, such as `n[001-003,017],m5`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::str::FromStr;

/// A longer list is a typing error.
const MOST_NAMES: usize = 1 << 20;

/// The longest name of a host (bytes), as in DNS and POSIX.
pub const LONGEST_NAME: usize = 255;

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

    /// Reads a list of at most this many nodes. A node counts again each time it is named. A longer list is refused
    /// before its ranges become names, so it takes little memory.
    pub fn at_most(list: &str, most: usize) -> Result<Self, String> {
        let parts = parts(list)?.into_iter().map(Part::of).collect::<Result<Vec<_>, String>>()?;
        let count = parts.iter().fold(0, |count: u64, part| count.saturating_add(part.count()));
        if count > most as u64 {
            return Err(format!("the list has more than {most} nodes"));
        }
        if parts.iter().any(|part| !part.brackets.is_empty() && part.longest() > LONGEST_NAME) {
            return Err(format!("a name has more than {LONGEST_NAME} bytes"));
        }
        Ok(Self(parts.iter().flat_map(Part::names).collect()))
    }
}

impl FromStr for HostList {
    type Err = String;

    /// Reads a list with any number of brackets in a name.
    fn from_str(list: &str) -> Result<Self, String> {
        Self::at_most(list, MOST_NAMES)
    }
}

/// The parts between commas that are not in brackets.
fn parts(list: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if !is_inside => is_inside = true,
            ']' if is_inside => is_inside = false,
            '[' | ']' => return Err(format!("the brackets of `{list}` do not match, or are nested")),
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

/// A part of a list, such as `r[1-2]n[08-09]`.
struct Part<'a> {
    /// The text before the brackets: `r`.
    before: &'a str,
    brackets: Vec<Brackets<'a>>,
}

struct Brackets<'a> {
    ranges: Vec<Numbers>,
    /// The text until the next brackets, or until the end.
    after: &'a str,
}

/// Such as `08-09`.
struct Numbers {
    /// The fewest digits of a number.
    width: usize,
    first: u64,
    last: u64,
}

impl<'a> Part<'a> {
    /// The brackets of `part` match, and are not nested.
    fn of(part: &'a str) -> Result<Self, String> {
        let mut pieces = part.split('[');
        let before = pieces.next().unwrap_or_default();
        let brackets: Result<Vec<Brackets<'a>>, String> =
            pieces.map(|piece| Brackets::of(piece, part)).collect();
        Ok(Self { before, brackets: brackets? })
    }

    /// How many names it stands for.
    fn count(&self) -> u64 {
        self.brackets.iter().fold(1, |count: u64, brackets| count.saturating_mul(brackets.count()))
    }

    /// The length of its longest name (bytes).
    fn longest(&self) -> usize {
        self.before.len() + self.brackets.iter().map(Brackets::longest).sum::<usize>()
    }

    /// All its names.
    fn names(&self) -> Vec<String> {
        let mut names = vec![self.before.to_owned()];
        for Brackets { ranges, after } in &self.brackets {
            let mut longer = Vec::new();
            for &Numbers { width, first, last } in ranges {
                for number in first..=last {
                    longer.extend(names.iter().map(|name| format!("{name}{number:0width$}{after}")));
                }
            }
            names = longer;
        }
        names
    }
}

impl<'a> Brackets<'a> {
    /// `piece` is the text after `[`; `part` is for the messages.
    fn of(piece: &'a str, part: &str) -> Result<Self, String> {
        let (ranges, after) = piece.split_once(']').unwrap_or((piece, ""));
        let ranges: Result<Vec<Numbers>, String> =
            ranges.split(',').map(|range| Numbers::of(range, part)).collect();
        Ok(Self { ranges: ranges?, after })
    }

    fn count(&self) -> u64 {
        self.ranges.iter().fold(0, |count: u64, numbers| count.saturating_add(numbers.count()))
    }

    /// The most bytes of a number, and of the text after it.
    fn longest(&self) -> usize {
        self.after.len() + self.ranges.iter().map(Numbers::longest).max().unwrap_or_default()
    }
}

impl Numbers {
    /// `part` is for the messages.
    fn of(range: &str, part: &str) -> Result<Self, String> {
        /// More digits do not fit a number.
        const MOST_DIGITS: usize = 20;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let text = text.trim();
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!("`{range}` in `{part}` is not a range of numbers"));
            }
            if text.len() > MOST_DIGITS {
                return Err(format!("a number in brackets has more than {MOST_DIGITS} digits"));
            }
            text.parse::<u64>().map_err(|_| format!("`{text}` in `{part}` is too large"))
        };
        let (width, first, last) = (first.trim().len(), number(first)?, number(last)?);
        if first > last {
            return Err(format!("`{range}` in `{part}` begins with the larger number"));
        }
        Ok(Self { width, first, last })
    }

    fn count(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// The most digits of a number.
    fn longest(&self) -> usize {
        self.width.max(self.last.to_string().len())
    }
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
            "n[+1-3]",
            "n[1-+3]",
            "n[0-99999999999999999999]",
            &"n[0-9999999999]".repeat(30),
        ] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_that_needs_much_memory_is_refused() {
        let why = |list: &str| HostList::at_most(list, 10).unwrap_err();
        assert_eq!(HostList::at_most("n[1-5]x[1-2]", 10).unwrap().names().count(), 10);
        for list in ["n[1-11]", "n[1-5]x[1-2],m", "n[1-6],n[1-6]", "n[0-18446744073709551615]x[0-1]"] {
            assert_eq!(why(list), "the list has more than 10 nodes", "{list}");
        }
        assert_eq!(HostList::at_most(&format!("n[{}1]", "0".repeat(19)), 10).unwrap().names().count(), 1);
        let zeros = format!("n[{}]", "0".repeat(70_000));
        assert_eq!(why(&zeros), "a number in brackets has more than 20 digits");
        for long in ["n[1]".repeat(50_000), format!("{}[1-2]", "n".repeat(255))] {
            assert_eq!(why(&long), "a name has more than 255 bytes");
        }
        assert_eq!(HostList::at_most(&format!("{}[1-2]", "n".repeat(254)), 10).unwrap().names().count(), 2);
    }

    proptest! {
        #[test]
        fn a_list_stands_for_its_names(names in proptest::collection::btree_set("[an][0-9]{0,3}(-x)?", 1..40)) {
            let list = compressed(names.iter().map(String::as_str));
            prop_assert_eq!(list.parse::<HostList>(), Ok(HostList(names)));
        }
    }
}
