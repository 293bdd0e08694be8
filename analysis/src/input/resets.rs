//! Reads the file of `--resets`: which nodes were repaired, and when.

use crate::table::instant;
use crate::table::{RunTable, UNDATED};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

/// Nodes and the instants of their maintenance (ns since 1970).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resets(Vec<(String, i64)>);

/// The file is a list: nothing of this size is one.
const MOST_BYTES: u64 = 64 << 20;

impl Resets {
    /// Reads a CSV file with the columns `node` and `when`: RFC 3339, or a date, which means its first moment in UTC.
    /// The error says what is wrong and where.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let mut text = String::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        match read {
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                return Err(format!("{name}: is not UTF-8 text"));
            }
            Err(e) => return Err(format!("{name}: {e}")),
            Ok(bytes) if bytes as u64 == MOST_BYTES => {
                return Err(format!("{name}: has {} MiB or more", MOST_BYTES >> 20));
            }
            Ok(_) => {}
        }
        Self::of(&text).map_err(|reason| format!("{name}{reason}"))
    }

    fn of(text: &str) -> Result<Self, String> {
        let mut reader =
            csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|e| format!(": {e}"))?.clone();
        let column = |name: &str| header.iter().position(|found| found.eq_ignore_ascii_case(name));
        let (Some(node), Some(when)) = (column("node"), column("when")) else {
            return Err(":1: expected a first line with the columns node,when".to_owned());
        };
        let mut resets = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| format!(": {e}"))?;
            let line = record.position().map_or(0, csv::Position::line);
            let [node, when] = [node, when].map(|at| record.get(at).unwrap_or_default());
            if record.iter().any(|field| field.contains('\n')) {
                return Err(format!(":{line}: a quote is not closed"));
            }
            if node.is_empty() {
                return Err(format!(":{line}: node is empty"));
            }
            let instant = instant::of_date_or_instant(when).ok_or_else(|| {
                let shown: String = when.chars().take(40).collect();
                format!(":{line}: when: expected 2026-11-21 or 2026-11-21T20:35:00+01:00, not `{shown}`")
            })?;
            resets.push((node.to_owned(), instant));
        }
        Ok(Self(resets))
    }

    /// Adds the maintenance to the table.
    pub fn add_to(&self, table: &mut RunTable) -> WithoutEffect {
        let mut without = WithoutEffect::default();
        let mut last: BTreeMap<&str, i64> = BTreeMap::new();
        for (node, instant) in &self.0 {
            let last = last.entry(node).or_insert(*instant);
            *last = (*last).max(*instant);
            if let Some(number) = table.nodes.find(node) {
                table.maintenance.add_instant(number, *instant);
            }
        }
        let mut latest: BTreeMap<u32, i64> = BTreeMap::new();
        for (node, started) in table.node.iter().zip(&table.started_unix_ns) {
            if table.maintenance.last_instant(node).is_some() {
                let latest = latest.entry(node).or_insert(i64::MIN);
                *latest = (*latest).max(*started);
            }
        }
        // Runs that failed and rows without a valid time have no row in the table.
        let hosts: BTreeSet<&str> = table.hosts().collect();
        for (node, last) in last {
            let list = match table.nodes.find(node).and_then(|number| latest.get(&number)) {
                None if hosts.contains(node) => &mut without.not_measured,
                None => &mut without.unknown,
                Some(&UNDATED) => &mut without.undated,
                Some(latest) if *latest < last => &mut without.not_measured,
                Some(_) => continue,
            };
            list.push(node.to_owned());
        }
        without
    }
}

/// Nodes whose maintenance does not change the report, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WithoutEffect {
    /// The input does not have them.
    pub unknown: Vec<String>,
    /// The starts of their runs are not known.
    pub undated: Vec<String>,
    /// They have no time after their last maintenance.
    pub not_measured: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_instants_are_read() {
        let resets = Resets::of("When, node, by\n2026-11-21,n1,me\n\n1970-01-01T00:00:01Z, n2\n").unwrap();
        assert_eq!(
            resets.0,
            [("n1".to_owned(), 1_795_219_200_000_000_000), ("n2".to_owned(), 1_000_000_000)]
        );
        assert_eq!(Resets::of("node,when\n"), Ok(Resets::default()));
    }

    #[test]
    fn an_error_says_where() {
        for (text, expected) in [
            ("", ":1: expected a first line"),
            ("n1,2026-11-21", ":1: expected a first line"),
            ("node,when\nn1,2026-11-21\nn2,yesterday\n", ":3: when: expected 2026-11-21 or"),
            ("node,when\n,2026-11-21\n", ":2: node is empty"),
            ("node,when\n\"n1,2026-11-21\nn2,2026-11-21\n", ":2: a quote is not closed"),
            ("node,when\nn1\n", ":2: when: expected"),
            ("node,when\nn1,2026-02-30\n", ":2: when: expected"),
        ] {
            let found = Resets::of(text).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
