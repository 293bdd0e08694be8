//! Names of nodes in the columns of tables. Long names are cut, and look the same in all tables of a report.

use crate::render::one_line;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The column of names that leaves room for the others in 80 columns of text.
const WIDTH: usize = 18;
/// The widest column.
const WIDEST: usize = 3 * WIDTH;
const CUT: &str = "..";

/// The names of a report's nodes, as all its tables show them.
pub struct NodeNames {
    shown: HashMap<String, String>,
    /// The width of the column, in characters.
    pub width: usize,
}

impl NodeNames {
    /// Names of at most 18 characters stay as they are. If a cut at 18 characters makes two names equal, the column is
    /// wider, up to 54 characters; names that are equal even then get a number.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        // A node in many classes comes many times.
        let names: hashbrown::HashSet<&str> = names.into_iter().collect();
        let printed: BTreeMap<&str, String> = names.iter().map(|name| (*name, one_line(name))).collect();
        let longest = printed.values().map(|name| name.chars().count()).max().unwrap_or(0);
        let shown = if longest <= WIDTH {
            printed.into_iter().map(|(name, printed)| (name.to_owned(), printed)).collect()
        } else {
            shortest(&printed)
        };
        let width = shown.values().map(|name: &String| name.chars().count()).max().unwrap_or(0).max(WIDTH);
        Self { shown, width }
    }

    /// The name as tables show it.
    pub fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.shown.get(name).map_or(name, String::as_str)
    }
}

/// The narrowest cut that tells the names apart.
fn shortest(printed: &BTreeMap<&str, String>) -> HashMap<String, String> {
    // Names that end with a domain differ in their head, names that end with a number differ in their tail.
    let cuts = [WIDTH, WIDTH * 3 / 2, WIDTH * 2, WIDEST]
        .into_iter()
        .flat_map(|width| [5, 0, width - CUT.len()].map(|tail| (width, tail)));
    let all = |(width, tail): (usize, usize)| -> HashMap<String, String> {
        printed.iter().map(|(name, printed)| ((*name).to_owned(), cut(printed, width, tail))).collect()
    };
    let differ =
        |shown: &HashMap<String, String>| shown.values().collect::<BTreeSet<_>>().len() == printed.len();
    cuts.map(all).find(differ).unwrap_or_else(|| {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let numbered = printed.iter().map(|(name, printed)| {
            let short = cut(printed, WIDEST - 8, 5);
            let number = seen.entry(short.clone()).or_default();
            *number += 1;
            ((*name).to_owned(), if *number == 1 { short } else { format!("{short}~{number}") })
        });
        numbered.collect()
    })
}

fn cut(name: &str, width: usize, tail: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let head = name.chars().take(width - CUT.len() - tail);
    head.chain(CUT.chars()).chain(name.chars().skip(length - tail)).collect()
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
        // A cut at 18 characters shows the difference in neither head nor tail.
        is(
            &["some-long-name-of-1-very-large-cluster-01", "some-long-name-of-2-very-large-cluster-01"],
            27,
            &["some-long-name-of-1-..er-01", "some-long-name-of-2-..er-01"],
        );
    }

    #[test]
    fn no_name_makes_a_column_of_any_width() {
        let long = |middle: &str| format!("{}{middle}{}", "a".repeat(2000), "b".repeat(2000));
        let (width, shown) = of(&[&long("1"), &long("2"), "n1"]);
        assert!(width <= WIDEST && shown[1].ends_with("~2") && shown[0] != shown[1], "{shown:?}");
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
            prop_assert!(cut.width <= WIDEST);
            for name in &names {
                prop_assert!(cut.shown(name).chars().count() <= cut.width);
                prop_assert!(name.chars().count() > WIDTH || cut.shown(name) == name);
            }
        }
    }
}
