//! The order in which rows are judged. It does not depend on the order of reading.

use super::{Numbers, RunTable, UNDATED};
use hashbrown::HashMap;
use rayon::prelude::*;

/// Rows by class, session in the order of time, node, time and run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Row numbers.
    pub rows: Vec<u32>,
    /// The end, in `rows`, of each group with the same node, class and session.
    ends: Vec<u32>,
    /// True if the start of every session is known: then sessions are in the order of time. Otherwise they are in the
    /// order of their names. Both only up to [`RunTable::last_sessions`].
    pub sessions_are_dated: bool,
    /// The rank of each session in the order of time, by its number in the table.
    pub session_ranks: Vec<u32>,
    /// Number of sessions; rows without a session count as one.
    pub sessions: usize,
}

impl Order {
    /// The order of all rows of a table. The time is proportional to the number of rows: names are sorted, rows are
    /// counted.
    pub fn of(table: &RunTable) -> Self {
        let (session, sessions, sessions_are_dated) = session_ranks(table);
        let class = table.classes.ranks(|_, _| ());
        let node = table.nodes.ranks(|_, _| ());
        let mut rows: Vec<u32> = (0..table.len() as u32).collect();
        let mut ends = Vec::new();
        let session_ranks = session.clone();
        let digits = [(&table.node, node), (&table.session, session), (&table.class, class)];
        let groups = digits.iter().try_fold(1usize, |all, (_, ranks)| all.checked_mul(ranks.len()));
        if let Some(groups) = groups.filter(|groups| *groups <= table.len()) {
            let rank = |row: usize, (numbers, ranks): &(&Numbers, Vec<u32>)| ranks[numbers.at(row) as usize];
            let key =
                |row| digits.iter().rfold(0, |key, digit| key * digit.1.len() as u32 + rank(row, digit));
            let keys: Vec<u32> = (0..table.len()).into_par_iter().map(key).collect();
            ends = sort_by_key(&mut rows, groups, |row| keys[row as usize]);
            // Most keys may have no row.
            ends.dedup();
            ends.retain(|end| *end > 0);
        } else {
            // The last pass has the highest priority.
            for (numbers, ranks) in &digits {
                sort_by_key(&mut rows, ranks.len(), |row| ranks[numbers.at(row as usize) as usize]);
            }
            let groups = rows.chunk_by(|a, b| group(table, *a) == group(table, *b));
            ends.extend(groups.scan(0, |end, group| {
                *end += group.len() as u32;
                Some(*end)
            }));
        }
        let (mut groups, mut left) = (Vec::with_capacity(ends.len()), rows.as_mut_slice());
        for size in sizes(&ends) {
            groups.push(left.split_off_mut(..size).unwrap_or_default());
        }
        groups.into_par_iter().for_each(|group| {
            // Times are positive, so their bits have the same order as their values.
            let time = |row: u32| table.elapsed_s[row as usize].to_bits();
            let name = |row: u32| table.runs.get(table.run.at(row as usize));
            group.sort_unstable_by(|a, b| {
                (time(*a).cmp(&time(*b))).then_with(|| name(*a).cmp(&name(*b))).then_with(|| a.cmp(b))
            });
        });
        Self { rows, ends, sessions_are_dated, session_ranks, sessions }
    }

    /// The rows of each node in a class and session.
    pub fn groups(&self) -> Vec<&[u32]> {
        let mut left = self.rows.as_slice();
        sizes(&self.ends).map(|size| left.split_off(..size).unwrap_or_default()).collect()
    }

    /// Rows with the node, class, session and run of an earlier row, each with the first of these rows; in the order
    /// of reading. The id alone identifies a run of pmmpi on a node, whatever its class and session are.
    pub(crate) fn repeated(&self, table: &RunTable) -> Vec<(usize, usize)> {
        let of_group = |(mut repeated, mut runs): (Vec<_>, Vec<_>), rows: &[u32]| {
            if is_distinct(rows.iter().map(|row| table.run.at(*row as usize))) {
                return (repeated, runs);
            }
            runs.clear();
            let is_other = |row: usize| !table.is_own(row) && table.median_of(row).is_none();
            let others = rows.iter().filter(|row| is_other(**row as usize));
            runs.extend(others.map(|row| (table.run.at(*row as usize), *row)));
            runs.sort_unstable();
            for of_run in runs.chunk_by(|(a, _), (b, _)| a == b) {
                let first = of_run[0].1 as usize;
                repeated.extend(of_run[1..].iter().map(|(_, row)| (*row as usize, first)));
            }
            (repeated, runs)
        };
        let groups = self.groups().into_par_iter();
        let parts = groups.fold(Default::default, of_group).map(|(repeated, _)| repeated);
        let mut repeated: Vec<(usize, usize)> = parts.flatten_iter().collect();
        let mut own: HashMap<[u32; 2], usize> = HashMap::new();
        for row in (0..table.len()).filter(|row| table.is_own(*row)) {
            let first = *own.entry([table.run.at(row), table.node.at(row)]).or_insert(row);
            if first != row {
                repeated.push((row, first));
            }
        }
        repeated.sort_unstable();
        repeated
    }
}

/// True if there are few numbers and all differ; false may also mean that there are many. Most nodes have few runs in
/// a session.
fn is_distinct(numbers: impl ExactSizeIterator<Item = u32> + Clone) -> bool {
    const FEW: usize = 16;
    let differs = |(at, number): (usize, u32)| numbers.clone().take(at).all(|other| other != number);
    numbers.len() <= FEW && numbers.clone().enumerate().all(differs)
}

/// Rows with equal values belong to one node in one class and session.
fn group(table: &RunTable, row: u32) -> [u32; 3] {
    let row = row as usize;
    [table.class.at(row), table.session.at(row), table.node.at(row)]
}

fn sizes(ends: &[u32]) -> impl Iterator<Item = usize> {
    let before = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(before).map(|(end, start)| (end - start) as usize)
}

/// Stable sort by keys below `most`. Returns the end of the rows of each key.
fn sort_by_key(rows: &mut Vec<u32>, most: usize, key: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut starts = vec![0u32; most + 1];
    rows.iter().for_each(|row| starts[key(*row) as usize + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let ends = starts[1..].to_vec();
    if rows.is_sorted_by_key(|row| key(*row)) {
        return ends;
    }
    let mut sorted = vec![0; rows.len()];
    for row in rows.iter() {
        let place = &mut starts[key(*row) as usize];
        sorted[*place as usize] = *row;
        *place += 1;
    }
    *rows = sorted;
    ends
}

/// The rank of each session, by start if all starts are known, with [`RunTable::last_sessions`] at the end; the number
/// of sessions with rows, because all rows of a session may have been rejected; and whether all starts are known.
fn session_ranks(table: &RunTable) -> (Vec<u32>, usize, bool) {
    let mut began: Vec<Option<i64>> = vec![None; table.sessions.len()];
    for (session, started) in table.session.iter().zip(&table.started_unix_ns) {
        let earliest = began[session as usize].get_or_insert(*started);
        *earliest = (*earliest).min(*started);
    }
    let dated = began.iter().flatten().all(|began| *began != UNDATED);
    // A session may have nothing but wrong results.
    let of_wrong = table.wrong.iter().map(|((_, session), wrong)| (*session, wrong.started_unix_ns));
    let of_wrong: HashMap<u32, i64> = of_wrong.collect();
    let first =
        |number: u32| began[number as usize].or_else(|| of_wrong.get(&number).copied()).filter(|_| dated);
    let is_last = |number: u32| table.last_sessions.contains(&number);
    let ranks = table.sessions.ranks(|number, name| (is_last(number), first(number), natural(name)));
    (ranks, began.iter().flatten().count(), dated)
}

/// A sort key with leading zeros in each number, so that s9 comes before s10.
fn natural(name: &str) -> String {
    const DIGITS: usize = 20;
    let is_digit = |c: char| c.is_ascii_digit();
    let parts = name.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let part = |part: &[u8]| {
        let part = String::from_utf8_lossy(part);
        if part.starts_with(is_digit) { format!("{part:0>DIGITS$}") } else { part.into_owned() }
    };
    parts.map(part).collect()
}
