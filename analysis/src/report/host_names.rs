//! Names of hosts. A host often has its domain in its name, where users and Slurm leave it out.

use crate::table::slurm_host_list::LONGEST_NAME;

/// True for a name that a list of nodes can contain.
pub fn is_host_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    name.len() <= LONGEST_NAME
        && name.contains(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
        && !name.starts_with('-')
}

/// The name without its domain.
pub fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// The name among `names` that means the same host: the equal one, or else the only one that differs by a domain at the
/// end of one of both.
pub fn same<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut others = Vec::new();
    for other in names.filter(|other| short(other) == short(name)) {
        if other == name {
            return Some(other);
        }
        if short(other) == other || short(name) == name {
            others.push(other);
        }
    }
    if others.len() == 1 { others.pop() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_has_a_letter_or_a_digit() {
        for name in ["n1", "7", "a_b.example-1.org", &"n".repeat(255)] {
            assert!(is_host_name(name), "{name}");
        }
        for wrong in ["", "..", "_", "-n1", "n 1", "n/1", &"n".repeat(256)] {
            assert!(!is_host_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_domain_is_no_other_host() {
        let same = |name: &str, names: &[&'static str]| same(name, names.iter().copied());
        assert_eq!(same("n1", &["n2", "n1.a", "n1"]), Some("n1"));
        assert_eq!(same("n1", &["n2", "n1.a"]), Some("n1.a"));
        assert_eq!(same("n1.a", &["n2", "n1"]), Some("n1"));
        assert_eq!(same("n1.a", &["n1.b", "n11", "n2.a"]), None);
        assert_eq!(same("n1", &["n1.a", "n1.b"]), None);
        assert_eq!(same("n1.a", &["n1.b", "n1"]), Some("n1"));
        assert_eq!(same("n1", &[]), None);
    }
}
