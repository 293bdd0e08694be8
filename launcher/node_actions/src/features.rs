//! pmmpi's feature in a node's lists of features. The other features belong to others, and keep their order.

/// The list with this feature. If the list does not have the feature yet, the feature is at its end.
pub(crate) fn with(features: &[String], name: &str) -> Vec<String> {
    let mut features = features.to_vec();
    if !has(&features, name) {
        features.push(name.to_owned());
    }
    features
}

/// The list without this feature.
pub(crate) fn without(features: &[String], name: &str) -> Vec<String> {
    features.iter().filter(|feature| *feature != name).cloned().collect()
}

/// True if the list has this feature.
pub(crate) fn has(features: &[String], name: &str) -> bool {
    features.iter().any(|feature| feature == name)
}

/// A list as scontrol prints it; `(null)` is an empty list.
pub(crate) fn read(text: &str) -> Vec<String> {
    let text = if text == "(null)" { "" } else { text };
    text.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read() {
        assert!(read("(null)").is_empty() && read("").is_empty());
        assert_eq!(read("a,b=c,(d)"), ["a", "b=c", "(d)"]);
    }

    proptest! {
        #[test]
        fn other_features_stay(others in prop::collection::vec("[a-z]{1,5}", 0..6)) {
            let marked = with(&others, "pmmpi_slow");
            prop_assert_eq!(&marked[..others.len()], &others[..]);
            prop_assert_eq!(with(&marked, "pmmpi_slow"), marked.clone());
            prop_assert_eq!(without(&marked, "pmmpi_slow"), others);
        }
    }
}
