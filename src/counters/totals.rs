//! What all ranks of a run counted, together.

use super::counts::{Counts, Row};
use super::event::Event;
use super::probe::Scope;
use super::reading::{Quality, Reading};

/// One event, summed.
#[derive(Clone, Debug, PartialEq)]
pub struct Total<'a> {
    /// Where it was counted.
    pub scope: Scope,
    /// Which.
    pub event: &'a Event,
    /// The sum over all places; `None` where one of them has no value: what is missing is not 0.
    pub count: Option<u64>,
    /// The worst of all places.
    pub quality: Quality,
    /// Why it is no better, of the first place of that quality: which rank, and what it says.
    pub reason: Option<String>,
    /// The least part of the time that it was counted at a place.
    pub running_share: Option<f64>,
}

impl Total<'_> {
    /// In the event's unit.
    pub fn value(&self) -> Option<f64> {
        self.count.map(|count| count as f64 * self.event.scale)
    }
}

impl Counts {
    /// Every event of every set, over the rows for which `of` is true. An event of several sets (nodes that differ) is
    /// one total where its name, unit and scale are the same.
    pub fn totals(&self, of: impl Fn(&Row) -> bool) -> Vec<Total<'_>> {
        let mut totals: Vec<Total> = Vec::new();
        for row in self.rows.iter().filter(|row| of(row)) {
            let scope = self.sets[row.set as usize].scope;
            // Rows of one set follow one another, in the set's own order.
            for (at, (event, reading)) in self.readings(row).enumerate() {
                let is_same = |total: &Total| total.scope == scope && same_count(total.event, event);
                let near = totals.get(at).is_some_and(is_same).then_some(at);
                match near.or_else(|| totals.iter().position(is_same)) {
                    Some(known) => totals[known].add(row, &reading),
                    None => totals.push(Total::of(scope, event, row, &reading)),
                }
            }
        }
        totals
    }
}

fn same_count(a: &Event, b: &Event) -> bool {
    (&a.name, &a.unit, a.scale) == (&b.name, &b.unit, b.scale)
}

impl<'a> Total<'a> {
    fn of(scope: Scope, event: &'a Event, row: &Row, reading: &Reading) -> Self {
        Self {
            scope,
            event,
            count: reading.value(),
            quality: reading.quality(),
            reason: reason(row, reading),
            running_share: reading.running_share(),
        }
    }

    fn add(&mut self, row: &Row, reading: &Reading) {
        let sum = self.count.zip(reading.value()).and_then(|(a, b)| a.checked_add(b));
        let ran_over = self.count.is_some() && reading.value().is_some() && sum.is_none();
        let quality = if ran_over { Quality::Overflowed } else { reading.quality() };
        if quality > self.quality {
            (self.quality, self.reason) = (quality, reason(row, reading));
        }
        self.count = sum;
        let shares = [self.running_share, reading.running_share()];
        self.running_share = shares.into_iter().flatten().reduce(f64::min);
    }
}

fn reason(row: &Row, reading: &Reading) -> Option<String> {
    let reason = reading.reason()?;
    Some(match row.cpu {
        Some(cpu) => format!("hardware thread {cpu} of rank {}'s node: {reason}", row.rank),
        None => format!("rank {}: {reason}", row.rank),
    })
}

#[cfg(test)]
mod tests {
    use super::super::counts::GroupCounts;
    use super::super::event::Encoding;
    use super::super::probe::Set;
    use super::super::reading::Gap;
    use super::*;

    fn set(gap: Option<Gap>) -> Set {
        let event = |name| Event::counted(name, Encoding::new(0, 0));
        let groups = if gap.is_none() { vec![vec![0, 1]] } else { vec![vec![0]] };
        Set { events: vec![(event("cycles"), None), (event("instructions"), gap)], groups, ..Set::default() }
    }

    fn row(rank: u32, set: u32, times: [u64; 2], counts: &[u64]) -> Row {
        let [enabled_ns, running_ns] = times;
        let group = GroupCounts { enabled_ns, running_ns, counts: counts.to_vec() };
        Row { rank, cpu: None, set, region: None, groups: vec![Some(group)] }
    }

    #[test]
    fn a_sum_is_worth_what_its_worst_part_is() {
        let counts = Counts {
            sets: vec![set(None), set(Some(Gap::Denied(13)))],
            rows: vec![row(0, 0, [9, 9], &[100, 7]), row(1, 0, [8, 4], &[50, 1]), row(2, 1, [9, 9], &[1])],
            ..Counts::default()
        };
        let totals = counts.totals(|row| row.rank < 2);
        assert_eq!((totals[0].count, totals[0].quality), (Some(200), Quality::Scaled));
        assert_eq!(totals[0].running_share, Some(0.5));
        assert!(totals[0].reason.as_deref().unwrap().starts_with("rank 1: counted 50.0 %"));
        assert_eq!(totals[1].count, Some(9));
        // Ranks of another kind of node.
        let totals = counts.totals(|_| true);
        assert_eq!(totals.len(), 2);
        assert_eq!((totals[0].count, totals[0].quality), (Some(201), Quality::Scaled));
        assert_eq!((totals[1].count, totals[1].quality), (None, Quality::Denied));
        assert!(totals[1].reason.as_deref().unwrap().starts_with("rank 2: not allowed"));
    }

    #[test]
    fn a_sum_that_runs_over_is_none() {
        let most = (1 << 62) - 1;
        let rows = (0..5).map(|rank| row(rank, 0, [1, 1], &[most, 0])).collect();
        let counts = Counts { sets: vec![set(None)], rows, ..Counts::default() };
        let totals = counts.totals(|_| true);
        assert_eq!((totals[0].count, totals[0].quality), (None, Quality::Overflowed));
        assert_eq!(totals[1].count, Some(0));
    }
}
