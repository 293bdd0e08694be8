//! The order in which rows are judged. It is the same whatever order they were read in.

use super::{RunTable, UNDATED};

/// Rows by class, session in the order of time, node, time and run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Numbers of rows.
    pub rows: Vec<u32>,
    /// True where it is known of each session when it began: they are in that order then, else in that of their
    /// names.
    pub sessions_are_dated: bool,
}

impl Order {
    /// Of all rows of a table. Takes time in proportion to their number: the names are sorted, rows are counted.
    pub fn of(table: &RunTable) -> Self {
        let (session, sessions_are_dated) = session_ranks(table);
        let class = table.classes.ranks(|_, _| ());
        let node = table.nodes.ranks(|_, _| ());
        let mut rows: Vec<u32> = (0..table.len() as u32).collect();
        // The last pass counts most.
        sort_by_number(&mut rows, &table.node, &node);
        sort_by_number(&mut rows, &table.session, &session);
        sort_by_number(&mut rows, &table.class, &class);
        let key = |row: &u32| group(table, *row);
        for group in rows.chunk_by_mut(|a, b| key(a) == key(b)) {
            // Times are positive: their bits are in the order of their values.
            let time = |row: u32| table.elapsed_s[row as usize].to_bits();
            let name = |row: u32| table.runs.get(table.run[row as usize]);
            group.sort_unstable_by(|a, b| {
                (time(*a).cmp(&time(*b))).then_with(|| name(*a).cmp(&name(*b))).then_with(|| a.cmp(b))
            });
        }
        Self { rows, sessions_are_dated }
    }

    /// Rows with node, class, session and run of another that was read before them, each with the first of these; in
    /// the order in which they were read.
    pub(crate) fn repeated(&self, table: &RunTable) -> Vec<(usize, usize)> {
        let mut repeated = Vec::new();
        let mut of_group: Vec<(u32, u32)> = Vec::new();
        for rows in self.rows.chunk_by(|a, b| group(table, *a) == group(table, *b)) {
            of_group.clear();
            of_group.extend(rows.iter().map(|row| (table.run[*row as usize], *row)));
            of_group.sort_unstable();
            for of_run in of_group.chunk_by(|(a, _), (b, _)| a == b) {
                let first = of_run[0].1 as usize;
                repeated.extend(of_run[1..].iter().map(|(_, row)| (*row as usize, first)));
            }
        }
        repeated.sort_unstable();
        repeated
    }
}

/// Rows with the same are of one node in one class and session.
pub(crate) fn group(table: &RunTable, row: u32) -> [u32; 3] {
    let row = row as usize;
    [table.class[row], table.session[row], table.node[row]]
}

/// By the rank of each row's number. Stable.
fn sort_by_number(rows: &mut Vec<u32>, numbers: &[u32], ranks: &[u32]) {
    let bucket = |row: u32| ranks[numbers[row as usize] as usize] as usize;
    if rows.is_sorted_by_key(|row| bucket(*row)) {
        return;
    }
    let mut starts = vec![0u32; ranks.len() + 1];
    rows.iter().for_each(|row| starts[bucket(*row) + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut sorted = vec![0; rows.len()];
    for row in rows.iter() {
        let place = &mut starts[bucket(*row)];
        sorted[*place as usize] = *row;
        *place += 1;
    }
    *rows = sorted;
}

/// By when each session began, if that is known of all.
fn session_ranks(table: &RunTable) -> (Vec<u32>, bool) {
    let mut began = vec![UNDATED; table.sessions.len()];
    for (session, started) in table.session.iter().zip(&table.started_unix_ns) {
        let earliest = &mut began[*session as usize];
        *earliest = (*earliest).min(*started);
    }
    let dated = began.iter().all(|began| *began != UNDATED);
    let ranks = table.sessions.ranks(|number, name| (dated.then(|| began[number as usize]), natural(name)));
    (ranks, dated)
}

/// With each number as long as any: s9 comes before s10.
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
