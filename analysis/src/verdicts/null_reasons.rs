//! Why values of a node's report are null.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The reason of each null, by its key. Equal ones can share their memory: a fleet may have a million nodes and classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NullReasons(Arc<BTreeMap<&'static str, Cow<'static, str>>>);

impl NullReasons {
    /// Adds a reason, or replaces it.
    pub fn insert(&mut self, key: &'static str, reason: Cow<'static, str>) {
        Arc::make_mut(&mut self.0).insert(key, reason);
    }

    /// Removes the reason of a value that is not null any more.
    pub fn remove(&mut self, key: &str) {
        if self.0.contains_key(key) {
            Arc::make_mut(&mut self.0).remove(key);
        }
    }

    /// If `known` has equal reasons, uses their memory; otherwise adds these reasons to `known`.
    pub fn share(&mut self, known: &mut BTreeSet<Self>) {
        match known.get(self) {
            Some(equal) => *self = equal.clone(),
            None => {
                known.insert(self.clone());
            }
        }
    }
}

impl Serialize for NullReasons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_shared_reasons_changes_only_its_own() {
        let reasons = || {
            let mut reasons = NullReasons::default();
            reasons.insert("verdict", "alone".into());
            reasons
        };
        let (mut a, mut b, mut known) = (reasons(), reasons(), BTreeSet::new());
        a.share(&mut known);
        b.share(&mut known);
        assert!(Arc::ptr_eq(&a.0, &b.0));
        b.remove("verdict");
        assert_eq!((a, b), (reasons(), NullReasons::default()));
    }
}
