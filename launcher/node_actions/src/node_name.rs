//! Decides whether a text may be the name of one node on scontrol's command line.

/// The longest host name of the domain name system.
const MOST_BYTES: usize = 253;

/// Slurm reads other texts as options, as lists of hosts (`n[1-9]`, `a,b`), or as every node (`ALL`).
pub(crate) fn is_valid(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    name.len() <= MOST_BYTES
        && name.bytes().all(is_plain)
        && name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && !name.eq_ignore_ascii_case("all")
        && !name.eq_ignore_ascii_case("default")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_one_host_has_a_name() {
        for name in ["n1", "node-7.cluster.example", "R12_a", "10.0.0.1", "allnodes"] {
            assert!(is_valid(name), "{name}");
        }
        for name in [
            "", "-n1", "--all", "ALL", "all", "default", "n[1-9]", "a,b", "a b", "a=b", "n1\n", "n1;x", "é",
            "..",
        ] {
            assert!(!is_valid(name), "{name}");
        }
        assert!(!is_valid(&"n".repeat(254)));
    }

    proptest! {
        #[test]
        fn a_valid_name_is_one_word_for_slurm_and_for_a_shell(name in any::<String>()) {
            let quoted = pmmpi::text::shell_line([&name]);
            prop_assert!(!is_valid(&name) || quoted == name && !name.contains([',', '[', ' ', '=']));
        }
    }
}
