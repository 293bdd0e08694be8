//! Paths that differ in a part that pmmpi did not read: several nodes may then look like one node.

use crate::input::importers::GuessedNode;
use crate::warnings::of_input::NAMED;
use crate::warnings::{FirstFew, InputWarning};
use std::collections::BTreeSet;
use std::path::Path;

/// More parts of a path than this are not looked at.
const MOST_PARTS: usize = 8;

/// Warns if the names of nodes come from paths, and the paths differ in another part, too.
pub fn warning(guessed: &[GuessedNode]) -> Option<InputWarning> {
    let first = guessed.first()?;
    let read = place_of_node(first);
    let parts: Vec<Vec<String>> = guessed.iter().map(|guessed| from_the_end(&guessed.path)).collect();
    let depth = parts.iter().map(Vec::len).min()?.min(MOST_PARTS);
    let texts = |at: &usize| parts.iter().map(|parts| parts[*at].as_str()).collect::<BTreeSet<&str>>();
    let unread = (1..depth).filter(|at| *at != read).find(|at| texts(at).len() > 1)?;
    let pattern: Vec<&str> = (0..=unread.max(read))
        .rev()
        .map(|at| match at {
            _ if at == unread => "{node}",
            _ if at == read => "{run}",
            0 => parts[0][0].as_str(),
            _ => "*",
        })
        .collect();
    Some(InputWarning::UnreadPath {
        files: guessed.len(),
        path: first.path.clone(),
        node: first.node.clone(),
        parts: FirstFew::of(texts(&unread).into_iter(), NAMED, str::to_owned),
        pattern: pattern.join("/"),
    })
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

    fn of(paths: &[(&str, &str)]) -> Option<InputWarning> {
        let guessed: Vec<GuessedNode> = paths
            .iter()
            .map(|(path, node)| GuessedNode { path: path.into(), node: (*node).to_owned() })
            .collect();
        warning(&guessed)
    }

    /// The warning of two such files.
    fn unread((path, node): (&str, &str), parts: [&str; 2], pattern: &str) -> Option<InputWarning> {
        Some(InputWarning::UnreadPath {
            files: 2,
            path: path.into(),
            node: node.to_owned(),
            parts: FirstFew::of(parts.into_iter(), NAMED, str::to_owned),
            pattern: pattern.to_owned(),
        })
    }

    #[test]
    fn a_part_that_nothing_read_is_named() {
        let folders = [("hpl/cn1/run1/HPL.out", "run1"), ("hpl/cn2/run1/HPL.out", "run1")];
        assert_eq!(of(&folders), unread(folders[0], ["cn1", "cn2"], "{node}/{run}/HPL.out"));
        let files = [("s1/cn1/r1.out", "r1"), ("s1/cn2/r1.out", "r1")];
        assert_eq!(of(&files), unread(files[0], ["cn1", "cn2"], "{node}/{run}"));
        let far = [("2026/x/cn1/HPL.out", "cn1"), ("2027/x/cn1/HPL.out", "cn1")];
        assert_eq!(of(&far), unread(far[0], ["2026", "2027"], "{node}/*/{run}/HPL.out"));
    }

    #[test]
    fn paths_that_are_read_as_a_whole_are_fine() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("hpl/cn1/HPL.out", "cn1"), ("hpl/cn2/HPL.out", "cn2")]), None);
        assert_eq!(of(&[("out/cn1.out", "cn1"), ("out/cn2.out", "cn2")]), None);
        assert_eq!(of(&[("a/cn1/HPL.out", "cn1")]), None);
    }
}
