//! Paths that differ in a part that pmmpi did not read: several nodes may then look like one node.

use crate::input::importers::GuessedNode;
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::{count, printable};
use std::collections::BTreeSet;
use std::path::Path;

/// More parts of a path than this are not looked at.
const MOST_PARTS: usize = 8;
/// Number of texts that a message names.
const NAMED: usize = 3;

/// Warns if the names of nodes come from paths, and the paths differ in another part, too.
pub fn warning(guessed: &[GuessedNode]) -> Option<Warning> {
    let first = guessed.first()?;
    let read = place_of_node(first);
    let parts: Vec<Vec<String>> = guessed.iter().map(|guessed| from_the_end(&guessed.path)).collect();
    let depth = parts.iter().map(Vec::len).min()?.min(MOST_PARTS);
    let texts = |at: &usize| parts.iter().map(|parts| parts[*at].as_str()).collect::<BTreeSet<&str>>();
    let unread = (1..depth).filter(|at| *at != read).find(|at| texts(at).len() > 1)?;
    let texts = texts(&unread);
    let named: Vec<String> = texts.iter().take(NAMED).map(|text| printable(text)).collect();
    let more = if texts.len() > NAMED { ", ..." } else { "" };
    let pattern: Vec<&str> = (0..=unread.max(read))
        .rev()
        .map(|at| match at {
            _ if at == unread => "{node}",
            _ if at == read => "{run}",
            0 => parts[0][0].as_str(),
            _ => "*",
        })
        .collect();
    let message = format!(
        "pmmpi took the names of nodes from the paths of {} ({}: node {}), but another part of these paths differs, too: \
         {}{more}; if this part is the node, use --path-pattern '{}'",
        count(guessed.len(), "file"),
        printable(&first.path.display().to_string()),
        printable(&first.node),
        named.join(", "),
        printable(&pattern.join("/"))
    );
    Some(Warning::new(WarningCode::UnreadPath, message))
}

/// 0 if the node is the name of the file, 1 if it is that of its folder.
fn place_of_node(guessed: &GuessedNode) -> usize {
    let is_file =
        guessed.path.file_stem().is_some_and(|stem| stem.to_string_lossy() == guessed.node.as_str());
    usize::from(!is_file)
}

/// The parts of a path: the file, its folder, and so on.
fn from_the_end(path: &Path) -> Vec<String> {
    path.components().rev().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[(&str, &str)]) -> Option<String> {
        let guessed: Vec<GuessedNode> = paths
            .iter()
            .map(|(path, node)| GuessedNode { path: path.into(), node: (*node).to_owned() })
            .collect();
        warning(&guessed).map(|warning| warning.message)
    }

    #[test]
    fn a_part_that_nothing_read_is_named() {
        let folders = of(&[("hpl/cn1/run1/HPL.out", "run1"), ("hpl/cn2/run1/HPL.out", "run1")]).unwrap();
        assert!(
            folders.contains("(hpl/cn1/run1/HPL.out: node run1)") && folders.contains("too: cn1, cn2; if")
        );
        assert!(folders.ends_with("--path-pattern '{node}/{run}/HPL.out'"), "{folders}");
        let files = of(&[("s1/cn1/r1.out", "r1"), ("s1/cn2/r1.out", "r1")]).unwrap();
        assert!(files.ends_with("--path-pattern '{node}/{run}'"), "{files}");
        let far = of(&[("2026/x/cn1/HPL.out", "cn1"), ("2027/x/cn1/HPL.out", "cn1")]).unwrap();
        assert!(far.ends_with("--path-pattern '{node}/*/{run}/HPL.out'"), "{far}");
    }

    #[test]
    fn paths_that_are_read_as_a_whole_are_fine() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("hpl/cn1/HPL.out", "cn1"), ("hpl/cn2/HPL.out", "cn2")]), None);
        assert_eq!(of(&[("out/cn1.out", "cn1"), ("out/cn2.out", "cn2")]), None);
        assert_eq!(of(&[("a/cn1/HPL.out", "cn1")]), None);
    }
}
