//! The facts of a node that do not make up its class. In the table, one text holds all these facts, because nearly
//! all nodes of a class have the same text.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values by name.
pub type FactValues = BTreeMap<String, String>;

/// All facts of a node as a JSON object with texts as values; empty if no fact is known. An archive has it in the column
/// `facts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FactsText(Arc<str>);

impl FactsText {
    /// From names and values.
    pub fn of(facts: &BTreeMap<&str, String>) -> Self {
        match facts.is_empty() {
            true => Self::default(),
            // A map of texts can always be written.
            false => Self(serde_json::to_string(facts).unwrap_or_default().into()),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The values in a text: texts and numbers of a JSON object. Another program may have written others, which say nothing.
pub fn values(text: &str) -> FactValues {
    let all: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let known = all.into_iter().filter_map(|(name, value)| match value {
        Value::String(value) => Some((name, value)),
        Value::Number(value) => Some((name, value.to_string())),
        _ => None,
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_all_values() {
        let facts = BTreeMap::from([("dimms", "8 x \"65536\" MiB".to_owned()), ("smt", "on".to_owned())]);
        let read = values(FactsText::of(&facts).as_str());
        assert_eq!(read, facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        assert!(FactsText::of(&BTreeMap::new()).as_str().is_empty());
        assert!(["", "[]", "{\"a\": null}", "nonsense"].into_iter().all(|text| values(text).is_empty()));
        let mixed = values("{\"numa_nodes\": 2, \"smt\": \"off\", \"more\": [1]}");
        assert_eq!(
            mixed.into_iter().collect::<Vec<_>>(),
            [("numa_nodes", "2"), ("smt", "off")].map(|(a, b)| (a.into(), b.into()))
        );
    }
}
