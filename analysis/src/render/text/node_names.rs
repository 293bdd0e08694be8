//! Names of nodes in a column of a table: a long name is cut in the middle, and never pushes the next column away.

use std::collections::{BTreeSet, HashMap};

/// The column of names that leaves room for the others in 80 columns of text.
const WIDTH: usize = 18;
const CUT: &str = "..";

/// The names of one table, as the table shows them.
pub struct NodeNames {
    shown: HashMap<String, String>,
    /// The width of the column, in characters.
    pub width: usize,
}

impl NodeNames {
    /// Names of at most 18 characters stay as they are. Two different names never look the same: if a cut at 18
    /// characters cannot tell them apart, the column becomes wider.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        // Names that end with a domain differ in their head, names that end with a number differ in their tail.
        let widths =
            [WIDTH, WIDTH * 3 / 2, WIDTH * 2, WIDTH * 3].into_iter().filter(|width| *width < longest);
        let cuts = widths.flat_map(|width| [5, 0, width - CUT.len()].map(|tail| (width, tail)));
        let shown = cuts.map(|(width, tail)| cut_all(&names, width, tail)).find(|shown| {
            let different: BTreeSet<&String> = shown.values().collect();
            different.len() == names.len()
        });
        let shown = shown.unwrap_or_else(|| cut_all(&names, longest, 0));
        let width = shown.values().map(|name| name.chars().count()).max().unwrap_or(0).max(WIDTH);
        Self { shown, width }
    }

    /// The name as the table shows it.
    pub fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.shown.get(name).map_or(name, String::as_str)
    }
}

fn cut_all(names: &BTreeSet<&str>, width: usize, tail: usize) -> HashMap<String, String> {
    names.iter().map(|name| ((*name).to_owned(), cut(name, width, tail))).collect()
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

    #[test]
    fn a_long_name_is_cut_where_the_names_do_not_differ() {
        let of = |names: &[&str]| {
            let cut = NodeNames::of(names.iter().copied());
            (cut.width, names.iter().map(|name| cut.shown(name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["n1", "n2"]), (18, vec!["n1".into(), "n2".into()]));
        let domain = ["n1", "ip-10-0-14-17.eu.compute.internal", "ip-10-0-15-17.eu.compute.internal"];
        assert_eq!(
            of(&domain),
            (18, vec!["n1".into(), "ip-10-0-14-..ernal".into(), "ip-10-0-15-..ernal".into()])
        );
        let head = ["ip-10-100-214-17.internal", "ip-10-100-214-18.internal"];
        assert_eq!(of(&head), (18, vec!["ip-10-100-214-17..".into(), "ip-10-100-214-18..".into()]));
        // A cut at 18 characters shows the difference in neither head nor tail.
        let middle =
            ["some-long-name-of-1-very-large-cluster-01", "some-long-name-of-2-very-large-cluster-01"];
        assert_eq!(
            of(&middle),
            (27, vec!["some-long-name-of-1-..er-01".into(), "some-long-name-of-2-..er-01".into()])
        );
        let number = ["some-long-name-of-a-cluster-0001", "some-long-name-of-a-cluster-0002"];
        assert_eq!(of(&number), (18, vec!["some-long-n..-0001".into(), "some-long-n..-0002".into()]));
    }

    proptest! {
        #[test]
        fn different_names_look_different(names in prop::collection::btree_set("[a-c]{15,40}|é{1,60}|n[0-9]{1,30}", 0..40)) {
            let cut = NodeNames::of(names.iter().map(String::as_str));
            let shown: BTreeSet<&str> = names.iter().map(|name| cut.shown(name)).collect();
            prop_assert_eq!(shown.len(), names.len());
            prop_assert!(shown.iter().all(|name| name.chars().count() <= cut.width));
        }
    }
}
