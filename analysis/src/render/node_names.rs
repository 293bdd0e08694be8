//! Names in the columns of tables. Long names are cut where they do not differ, and a node looks the same in all tables
//! of a report.

use super::one_line;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The column of nodes that leaves room for the others in 80 columns of text.
const WIDTH: usize = 18;
/// The widest column is this many times wider.
const WIDEST: usize = 3;
const CUT: &str = "..";

/// The names of a report's nodes, as all its tables show them.
pub struct NodeNames {
    shown: HashMap<String, String>,
    /// The width of the column, in characters.
    pub width: usize,
}

impl NodeNames {
    /// Names of at most 18 characters stay as they are. If each cut at 18 characters makes two names equal, the column
    /// is wider, up to 54 characters; names that are equal even then get a number.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::within(WIDTH, names)
    }

    /// The same for columns of another width.
    pub fn within<'a>(most: usize, names: impl IntoIterator<Item = &'a str>) -> Self {
        // A node in many classes comes many times.
        let names: hashbrown::HashSet<&str> = names.into_iter().collect();
        let printed: BTreeMap<&str, String> = names.iter().map(|name| (*name, one_line(name))).collect();
        let longest = printed.values().map(|name| name.chars().count()).max().unwrap_or(0);
        let shown = if longest <= most {
            printed.into_iter().map(|(name, printed)| (name.to_owned(), printed)).collect()
        } else {
            shortest(&printed, most)
        };
        let width = shown.values().map(|name: &String| name.chars().count()).max().unwrap_or(0).max(most);
        Self { shown, width }
    }

    /// True if this is one of the names.
    pub fn has(&self, name: &str) -> bool {
        self.shown.contains_key(name)
    }

    /// The name as tables show it.
    pub fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.shown.get(name).map_or(name, String::as_str)
    }
}

/// What a cut leaves of a long name.
#[derive(Clone, Copy)]
enum Kept {
    /// The beginning, and this many characters of the end.
    Ends { tail: usize },
    /// The characters from this one on.
    Middle { from: usize },
}

/// The narrowest cut that tells the names apart.
fn shortest(printed: &BTreeMap<&str, String>, most: usize) -> HashMap<String, String> {
    let widths = [most, most * 3 / 2, most * 2, most * WIDEST];
    let all = |(width, kept): (usize, Kept)| -> HashMap<String, String> {
        printed.iter().map(|(name, printed)| ((*name).to_owned(), cut(printed, width, kept))).collect()
    };
    let differ =
        |shown: &HashMap<String, String>| shown.values().collect::<BTreeSet<_>>().len() == printed.len();
    let cuts = widths.into_iter().flat_map(|width| cuts(printed, width).map(move |kept| (width, kept)));
    cuts.map(all).find(differ).unwrap_or_else(|| {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let numbered = printed.iter().map(|(name, printed)| {
            let short = cut(printed, most * WIDEST - 8, Kept::Ends { tail: 5 });
            let number = seen.entry(short.clone()).or_default();
            *number += 1;
            ((*name).to_owned(), if *number == 1 { short } else { format!("{short}~{number}") })
        });
        numbered.collect()
    })
}

/// Names that end with a domain differ in their head, names that end with a number differ in their tail, and names with
/// both differ in the middle.
fn cuts(printed: &BTreeMap<&str, String>, width: usize) -> impl Iterator<Item = Kept> {
    let ends = [5, 0, width - CUT.len()].map(|tail| Kept::Ends { tail });
    ends.into_iter().chain(std::iter::once_with(move || middle(printed, width)).flatten())
}

/// The middle that tells long names apart: it has every place where two neighbours of the alphabetical order part, with
/// as much before as behind. `None` if these places are too far from one another.
fn middle(printed: &BTreeMap<&str, String>, width: usize) -> Option<Kept> {
    let is_long = |name: &&str| name.chars().count() > width;
    let mut long: Vec<&str> = printed.values().map(String::as_str).filter(is_long).collect();
    long.sort_unstable();
    let alike = |pair: &[&str]| pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b).count();
    let parting: Vec<usize> = long.windows(2).map(alike).collect();
    let (first, last) = (parting.iter().min()?, parting.iter().max()?);
    let room = (width - 2 * CUT.len()).checked_sub(last - first + 1)?;
    Some(Kept::Middle { from: first.saturating_sub(room / 2) })
}

/// The beginning and the end of a text that has more than `width` characters; `width` is more than 2.
pub fn without_middle(text: &str, width: usize) -> String {
    cut(text, width, Kept::Ends { tail: (width - CUT.len()) / 2 })
}

fn cut(name: &str, width: usize, kept: Kept) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    match kept {
        Kept::Ends { tail } => {
            let head = name.chars().take(width - CUT.len() - tail);
            head.chain(CUT.chars()).chain(name.chars().skip(length - tail)).collect()
        }
        Kept::Middle { from } => {
            let room = width - 2 * CUT.len();
            let middle: String = name.chars().skip(from).take(room).collect();
            let before = if from > 0 { CUT } else { "" };
            let after = if from + room < length { CUT } else { "" };
            format!("{before}{middle}{after}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(names: &[&str]) -> (usize, Vec<String>) {
        let cut = NodeNames::of(names.iter().copied());
        (cut.width, names.iter().map(|name| cut.shown(name).to_owned()).collect())
    }

    #[test]
    fn a_long_name_is_cut_where_the_names_do_not_differ() {
        let is = |names: &[&str], width: usize, shown: &[&str]| {
            assert_eq!(of(names), (width, shown.iter().map(|name| (*name).to_owned()).collect()));
        };
        is(&["n1", "n2"], 18, &["n1", "n2"]);
        is(
            &["n1", "ip-10-0-14-17.eu.compute.internal", "ip-10-0-15-17.eu.compute.internal"],
            18,
            &["n1", "ip-10-0-14-..ernal", "ip-10-0-15-..ernal"],
        );
        is(
            &["ip-10-100-214-17.internal", "ip-10-100-214-18.internal"],
            18,
            &["ip-10-100-214-17..", "ip-10-100-214-18.."],
        );
        is(
            &["some-long-name-of-a-cluster-0001", "some-long-name-of-a-cluster-0002"],
            18,
            &["some-long-n..-0001", "some-long-n..-0002"],
        );
        // Neither head nor tail shows the difference.
        is(
            &["some-long-name-of-1-very-large-cluster-01", "some-long-name-of-2-very-large-cluster-01"],
            18,
            &["..me-of-1-very-l..", "..me-of-2-very-l.."],
        );
    }

    #[test]
    fn a_text_without_its_middle_has_both_ends() {
        for (width, shown) in [(8, "abc..xyz"), (9, "abcd..xyz"), (26, "abcdefghijklmnopqrstuvwxyz")] {
            assert_eq!(without_middle("abcdefghijklmnopqrstuvwxyz", width), shown);
        }
    }

    /// Names of 60 characters and more, which differ at the end, in the middle or at the start; of two nodes or of many.
    #[test]
    fn names_of_any_length_keep_what_tells_them_apart() {
        const SITE: &str = "supercomputing-centre-of-the-north.example.org";
        let end = |node: usize| format!("{SITE}-partition-a-{node:04}");
        let middle = |node: usize| format!("cluster-of-{SITE}-cabinet-{node:03}-partition-a.{SITE}");
        let start = |node: usize| format!("{node:04}-partition-a.{SITE}");
        for name in [&end as &dyn Fn(usize) -> String, &middle, &start] {
            for nodes in [2, 700] {
                let names: Vec<String> = (0..nodes).map(name).collect();
                let (width, shown) = of(&names.iter().map(String::as_str).collect::<Vec<_>>());
                let different: BTreeSet<&String> = shown.iter().collect();
                assert_eq!((width, different.len()), (WIDTH, nodes), "{shown:?}");
                assert!(shown.iter().all(|name| name.chars().count() <= WIDTH), "{shown:?}");
            }
        }
        // Racks and nodes are too far apart for 18 characters, but not for more.
        let names: Vec<String> = (0..40)
            .map(|node| format!("{SITE}-rack-{}-of-row-4-node-{}.{SITE}", node / 8, node % 8))
            .collect();
        let (width, shown) = of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(width, WIDTH * 3 / 2, "{shown:?}");
        assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), names.len(), "{shown:?}");
    }

    #[test]
    fn no_name_makes_a_column_of_any_width() {
        let long =
            |start: &str, middle: &str| format!("{start}{}{middle}{}", "a".repeat(2000), "b".repeat(2000));
        let (width, shown) = of(&[&long("", "1"), &long("", "2"), "n1"]);
        assert!(width == WIDTH && shown[0].contains("a1b") && shown[1].contains("a2b"), "{shown:?}");
        // Their differences are too far apart for any column.
        let (width, shown) = of(&[&long("1", "1"), &long("1", "2"), &long("2", "1")]);
        assert!(width <= WIDEST * WIDTH && shown[1].ends_with("~2") && shown[0] != shown[1], "{shown:?}");
        // Names that differ in characters that no terminal shows.
        let (_, shown) = of(&["a\u{1}-and-more-than-18-characters", "a\u{2}-and-more-than-18-characters"]);
        assert_ne!(shown[0], shown[1]);
    }

    proptest! {
        #[test]
        fn different_names_look_different(
            names in prop::collection::btree_set("[a-c]{15,40}|é{1,60}|n[0-9]{1,30}|a{0,90}b{0,90}", 0..40)
        ) {
            let cut = NodeNames::of(names.iter().map(String::as_str));
            let shown: BTreeSet<&str> = names.iter().map(|name| cut.shown(name)).collect();
            prop_assert_eq!(shown.len(), names.len());
            prop_assert!(cut.width <= WIDEST * WIDTH);
            for name in &names {
                prop_assert!(cut.shown(name).chars().count() <= cut.width);
                prop_assert!(name.chars().count() > WIDTH || cut.shown(name) == name);
            }
        }
    }
}
