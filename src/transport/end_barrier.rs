//! The messages of a barrier that its last rank leaves at once, for any number of ranks.
//!
//! Ranks that wait at the end sleep between two checks of their messages, so that they leave their cores to ranks
//! that still work. The last rank to arrive must not wait for one of them to wake up: its quick exit makes the
//! upper bound tight (a minimum over nodes, see [`crate::bounds`]).
//!
//! A dissemination barrier (Hensgen, Finkel and Manber 1988; MPI libraries use it) does this only for powers of
//! two. Otherwise its last message reaches the last rank through ranks that wait for this very rank. Here, no
//! message that a rank needs depends on the rank itself. Let the arc `(s, 2^j)` be the ranks s, s+1, .. s+2^j-1,
//! modulo the number of ranks n.
//! - At level j rank s knows that all ranks of `(s, 2^j)` have arrived. It tells this to s-2^j, which then knows
//!   `(s-2^j, 2^(j+1))`. The number of levels is the largest number with 2^levels <= n.
//! - The remaining arc of n - 2^levels ranks is the sum of arcs whose lengths are powers of two, one for each bit
//!   of its length. At level j rank s also tells `(s, 2^j)` to the rank for which it is one of these arcs.
//!
//! No arc contains the rank that receives its message. A rank that knows all arcs may leave. It sends and receives
//! at most 2 log2(n) messages.

/// A rank tells rank `to` that its arc of 2^`level` ranks has arrived, and rank `from` tells it the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Level of the arc.
    pub level: u32,
    /// The rank that receives the message.
    pub to: u32,
    /// The rank whose arc follows the known ranks.
    pub from: u32,
}

/// True if the barriers of MPI libraries let their last rank leave at once.
pub fn is_tight_already(size: u32) -> bool {
    size.is_power_of_two()
}

/// One exchange per level. A rank sends at a level only after it has received at the level before.
pub fn levels(rank: u32, size: u32) -> impl Iterator<Item = Exchange> {
    (0..size.max(1).ilog2()).map(move |level| exchange(rank, size, level, 1 << level))
}

/// The exchanges for the remaining arc. A rank sends each at its level, and waits for all of them at the end.
pub fn rest(rank: u32, size: u32) -> impl Iterator<Item = Exchange> {
    let (levels, mut known) = (size.max(1).ilog2(), 1u32 << size.max(1).ilog2());
    let left = size - known;
    (0..levels).rev().filter(move |level| left & 1 << level != 0).map(move |level| {
        let distance = known;
        known += 1 << level;
        exchange(rank, size, level, distance)
    })
}

/// The exchange with the ranks at this distance, which must be less than `size`.
fn exchange(rank: u32, size: u32, level: u32, distance: u32) -> Exchange {
    let modulo = |number: u64| (number % u64::from(size)) as u32;
    let (rank, size_and_more) = (u64::from(rank), u64::from(size) + u64::from(rank));
    Exchange {
        level,
        to: modulo(size_and_more - u64::from(distance)),
        from: modulo(rank + u64::from(distance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A model of ranks that pass messages as the agent does.
    struct Ranks {
        size: u32,
        arrived: Vec<bool>,
        /// Number of levels that each rank has received.
        heard: Vec<u32>,
        /// Sent messages: from, to, true for a level and false for the rest, and the level.
        sent: HashSet<(u32, u32, bool, u32)>,
    }

    impl Ranks {
        fn new(size: u32) -> Self {
            let ranks = size as usize;
            Self { size, arrived: vec![false; ranks], heard: vec![0; ranks], sent: HashSet::new() }
        }

        fn say(&mut self, rank: u32, level: u32) {
            let own = |exchange: &Exchange| exchange.level == level;
            let levels = levels(rank, self.size).filter(own).map(|e| (rank, e.to, true, level));
            let rest = rest(rank, self.size).filter(own).map(|e| (rank, e.to, false, level));
            self.sent.extend(levels.chain(rest));
        }

        /// Does everything that `rank` can do now. True if something has changed.
        fn look(&mut self, rank: u32) -> bool {
            let at = rank as usize;
            if !self.arrived[at] {
                return false;
            }
            let before = (self.sent.len(), self.heard[at]);
            self.say(rank, self.heard[at]);
            while let Some(next) = levels(rank, self.size).nth(self.heard[at] as usize)
                && self.sent.contains(&(next.from, rank, true, next.level))
            {
                self.heard[at] += 1;
                self.say(rank, self.heard[at]);
            }
            before != (self.sent.len(), self.heard[at])
        }

        /// Repeats this for all ranks until nothing changes.
        fn settle(&mut self) {
            while (0..self.size).filter(|rank| self.look(*rank)).count() > 0 {}
        }

        fn may_go(&self, rank: u32) -> bool {
            let all = self.heard[rank as usize] as usize == levels(rank, self.size).count();
            let mut rest = rest(rank, self.size);
            all && self.arrived[rank as usize]
                && rest.all(|e| self.sent.contains(&(e.from, rank, false, e.level)))
        }
    }

    #[test]
    fn the_last_rank_goes_at_once_and_no_rank_before_it() {
        for size in (1..40).chain([63, 64, 65, 100]) {
            for last in 0..size {
                let mut ranks = Ranks::new(size);
                (0..size).filter(|rank| *rank != last).for_each(|rank| ranks.arrived[rank as usize] = true);
                ranks.settle();
                assert!((0..size).all(|rank| !ranks.may_go(rank)), "{last} of {size} is not there");
                ranks.arrived[last as usize] = true;
                ranks.look(last); // no other rank acts
                assert!(ranks.may_go(last), "{last} of {size}");
                ranks.settle();
                assert!((0..size).all(|rank| ranks.may_go(rank)));
            }
        }
    }

    #[test]
    fn messages_are_few_and_each_is_waited_for() {
        for size in (1..300).chain([1_000_000, u32::MAX]) {
            let ranks: Vec<u32> = if size < 300 { (0..size).collect() } else { vec![0, size / 3, size - 1] };
            for rank in ranks {
                let all: Vec<Exchange> = levels(rank, size).chain(rest(rank, size)).collect();
                assert!(all.len() <= 2 * size.ilog2() as usize);
                for (at, e) in all.iter().enumerate() {
                    assert!(e.to < size && e.from < size && e.to != rank && e.from != rank);
                    let is_level = at < levels(rank, size).count();
                    let theirs = |rank| match is_level {
                        true => levels(rank, size).collect::<Vec<_>>(),
                        false => rest(rank, size).collect(),
                    };
                    assert!(theirs(e.to).contains(&Exchange { from: rank, ..of(&theirs(e.to), e.level) }));
                }
            }
        }
    }

    fn of(exchanges: &[Exchange], level: u32) -> Exchange {
        *exchanges.iter().find(|exchange| exchange.level == level).unwrap()
    }
}
