//! The marks that pmmpi itself has set, as the journal has them. A reason that begins with `pmmpi:` does not show that the
//! mark is unchanged: somebody may have added words for other people to it.

use crate::one_change::Act;
use crate::settings::Action;
use std::collections::BTreeMap;

/// The reason of the last mark of each kind on each node.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnMarks(BTreeMap<String, Vec<(Action, String)>>);

impl OwnMarks {
    /// Notes an act that is done. `reason` is that of a feature.
    pub(crate) fn note(&mut self, node: &str, act: &Act, reason: Option<&str>) {
        let (action, is_mark) = act.changes();
        let marks = self.0.entry(node.to_owned()).or_default();
        marks.retain(|(set, _)| *set != action);
        if let Some(reason) = act.reason().or(reason).filter(|_| is_mark) {
            marks.push((action, reason.to_owned()));
        }
    }

    /// The reason of the mark of this kind that pmmpi set last, unless pmmpi has removed the mark since.
    pub(crate) fn reason(&self, node: &str, action: &Action) -> Option<&str> {
        let (_, reason) = self.0.get(node)?.iter().find(|(set, _)| set == action)?;
        Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_counts_until_it_is_removed() {
        let mut marks = OwnMarks::default();
        let drain = |reason: &str| Act::Drain(reason.to_owned());
        marks.note("a", &drain("pmmpi: 1"), None);
        marks.note("a", &drain("pmmpi: 2"), None);
        assert_eq!(marks.reason("a", &Action::Drain), Some("pmmpi: 2"));
        assert_eq!((marks.reason("b", &Action::Drain), marks.reason("a", &Action::Comment)), (None, None));
        marks.note("a", &Act::Resume, None);
        assert_eq!(marks.reason("a", &Action::Drain), None);
    }

    #[test]
    fn each_kind_of_mark_has_its_reason() {
        let mut marks = OwnMarks::default();
        let feature = Act::AddFeature("pmmpi_slow".to_owned());
        marks.note("a", &Act::AddComment("pmmpi: 1".to_owned()), None);
        marks.note("a", &feature, Some("pmmpi: 2"));
        marks.note("a", &Act::RemoveComment, None);
        assert_eq!(marks.reason("a", &Action::Comment), None);
        assert_eq!(marks.reason("a", &Action::feature()), Some("pmmpi: 2"));
        assert_eq!(marks.reason("a", &Action::Feature("pmmpi_other".to_owned())), None);
        // An older log has no reason of a feature.
        marks.note("a", &feature, None);
        assert_eq!(marks.reason("a", &Action::feature()), None);
    }
}
