//! The marks that pmmpi itself has set, as the journal has them. A reason that begins with `pmmpi:` does not show that the
//! mark is unchanged: somebody may have added words for other people to it.

use crate::cause::MarkCause;
use crate::one_change::Act;
use crate::settings::Action;
use std::collections::BTreeMap;

/// A mark on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnMark {
    /// The act that set it.
    pub act: Act,
    /// Why it is there: the finding that set it, and each further finding.
    pub causes: Vec<MarkCause>,
}

impl OwnMark {
    /// The reason that Slurm shows, or for a feature the first reason in the log.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.act.reason().or_else(|| self.causes.first().map(|cause| cause.reason.as_str()))
    }

    fn is_of(&self, action: &Action) -> bool {
        self.act.changes().0 == *action
    }
}

/// The last mark of each kind on each node.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnMarks(BTreeMap<String, Vec<OwnMark>>);

impl OwnMarks {
    /// Notes an act that is done. `cause` is that of a mark; that of a feature is `None` in older logs.
    pub(crate) fn note(&mut self, node: &str, act: &Act, cause: Option<MarkCause>) {
        let (action, is_mark) = act.changes();
        let marks = self.0.entry(node.to_owned()).or_default();
        marks.retain(|mark| !mark.is_of(&action));
        if let Some(cause) = cause.filter(|_| is_mark) {
            marks.push(OwnMark { act: act.clone(), causes: vec![cause] });
        }
    }

    /// Notes a further finding on a node that has the mark of this act.
    pub(crate) fn note_further(&mut self, node: &str, act: &Act, cause: MarkCause) {
        let (action, _) = act.changes();
        let marks = self.0.entry(node.to_owned()).or_default();
        match marks.iter_mut().find(|mark| mark.is_of(&action)) {
            Some(mark) => mark.causes.push(cause),
            None => marks.push(OwnMark { act: act.clone(), causes: vec![cause] }),
        }
    }

    /// All marks, each with its node.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &OwnMark)> {
        self.0.iter().flat_map(|(node, marks)| marks.iter().map(move |mark| (node.as_str(), mark)))
    }

    /// All marks on a node.
    pub(crate) fn of_node(&self, node: &str) -> &[OwnMark] {
        self.0.get(node).map_or(&[][..], Vec::as_slice)
    }

    /// The mark of this kind that pmmpi set last, unless pmmpi has removed it since.
    pub(crate) fn mark(&self, node: &str, action: &Action) -> Option<&OwnMark> {
        self.of_node(node).iter().find(|mark| mark.is_of(action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(reason: &str) -> MarkCause {
        MarkCause { reason: reason.to_owned(), found_by: Vec::new() }
    }

    fn drain(reason: &str) -> Act {
        Act::Drain(reason.to_owned())
    }

    fn reason<'a>(marks: &'a OwnMarks, node: &str, action: &Action) -> Option<&'a str> {
        marks.mark(node, action).and_then(OwnMark::reason)
    }

    #[test]
    fn the_last_mark_counts_until_it_is_removed() {
        let mut marks = OwnMarks::default();
        marks.note("a", &drain("pmmpi: 1"), Some(cause("pmmpi: 1")));
        marks.note("a", &drain("pmmpi: 2"), Some(cause("pmmpi: 2")));
        assert_eq!(reason(&marks, "a", &Action::Drain), Some("pmmpi: 2"));
        assert_eq!((marks.mark("b", &Action::Drain), marks.mark("a", &Action::Comment)), (None, None));
        marks.note("a", &Act::Resume, None);
        assert_eq!(marks.mark("a", &Action::Drain), None);
    }

    #[test]
    fn each_kind_of_mark_has_its_reason() {
        let mut marks = OwnMarks::default();
        let feature = Act::AddFeature("pmmpi_slow".to_owned());
        marks.note("a", &Act::AddComment("pmmpi: 1".to_owned()), Some(cause("pmmpi: 1")));
        marks.note("a", &feature, Some(cause("pmmpi: 2")));
        marks.note("a", &Act::RemoveComment, None);
        assert_eq!(marks.mark("a", &Action::Comment), None);
        assert_eq!(reason(&marks, "a", &Action::feature()), Some("pmmpi: 2"));
        assert_eq!(marks.mark("a", &Action::Feature("pmmpi_other".to_owned())), None);
        // An older log has no reason of a feature.
        marks.note("a", &feature, None);
        assert_eq!(marks.mark("a", &Action::feature()), None);
    }

    #[test]
    fn further_findings_count_until_the_mark_is_removed() {
        let mut marks = OwnMarks::default();
        for act in [drain("pmmpi: 1"), Act::AddFeature("pmmpi_slow".to_owned())] {
            let (action, _) = act.changes();
            marks.note("a", &act, Some(cause("pmmpi: 1")));
            marks.note_further("a", &act, cause("pmmpi: 2"));
            assert_eq!(reason(&marks, "a", &action), Some("pmmpi: 1"));
            assert_eq!(marks.mark("a", &action).unwrap().causes, [cause("pmmpi: 1"), cause("pmmpi: 2")]);
        }
        marks.note("a", &Act::Resume, None);
        marks.note("a", &drain("pmmpi: 3"), Some(cause("pmmpi: 3")));
        assert_eq!(marks.mark("a", &Action::Drain).unwrap().causes, [cause("pmmpi: 3")]);
        assert_eq!(marks.of_node("a").len(), 2);
    }
}
