//! What a thread has recorded of its probes, in memory that other threads can read.

use super::ticks::{Tick, UNKNOWN};
use crate::counters::count_and_quality::Gap;
use crate::probes::{BUCKETS, Discarded, MOST, ProbeTotals, Spread, bucket};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

/// The probes of one thread. Only this thread writes.
#[derive(Debug)]
pub(super) struct Accounts {
    used: AtomicUsize,
    all: [OnceLock<Box<Account>>; MOST],
    /// Entries that found no account, were nested too deeply, or had no end.
    pub unrecorded: AtomicU64,
    /// Why the thread has no counts.
    pub uncounted: OnceLock<Gap>,
    /// Ticks that one entry without content takes, begin and end together.
    pub cost_ticks: AtomicU64,
}

/// One probe of one thread.
#[derive(Debug)]
pub(super) struct Account {
    pub name: Box<[u8]>,
    entries: AtomicU64,
    negative: AtomicU64,
    moved: AtomicU64,
    rate: AtomicU64,
    ticks: LiveSpread,
    counted: AtomicU64,
    cycles: LiveSpread,
    instructions: LiveSpread,
    times: [AtomicU32; BUCKETS],
}

/// A [`Spread`] that grows.
#[derive(Debug)]
struct LiveSpread {
    sum: AtomicU64,
    least: AtomicU64,
    most: AtomicU64,
}

/// A reading of the clock and of the counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeReading {
    pub tick: Tick,
    /// Cycles and instructions in user mode.
    pub counts: Option<[u64; 2]>,
}

impl ProbeReading {
    /// Before any reading.
    pub const NONE: Self = Self { tick: Tick { ticks: 0, thread: UNKNOWN }, counts: None };
}

/// pmmpi's own constant part of each entry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Own {
    pub ticks: u64,
    pub counts: [u64; 2],
}

/// Cycles per tick of a thread's last short entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usual {
    /// 0 before the first entry.
    rate: f64,
    /// An entry of fewer ticks is too short to have a rate. A longer entry may well contain work of the kernel.
    within_ticks: [u64; 2],
}

impl Usual {
    /// A rate that differs by more from the usual one is not usual.
    const TOLERANCE: f64 = 0.05;
    /// One entry moves the usual rate by this part at most. So one odd entry does not make the next ones odd, and after
    /// a lasting change the entries count again soon.
    const STEP: f64 = 0.02;

    /// Not known yet, for entries of so many ticks: from the first number on, below the second.
    pub fn within(within_ticks: [u64; 2]) -> Self {
        Self { rate: 0.0, within_ticks }
    }

    /// True if the frequency changed in this entry, or the kernel took time.
    fn is_odd(&mut self, ticks: u64, cycles: u64) -> bool {
        let [least, most] = self.within_ticks;
        if ticks < least || ticks >= most {
            return false;
        }
        let rate = cycles as f64 / ticks as f64;
        if self.rate == 0.0 {
            self.rate = rate;
            return false;
        }
        let change = (rate - self.rate) / self.rate;
        self.rate *= 1.0 + change.clamp(-Self::STEP, Self::STEP);
        change.is_nan() || change.abs() > Self::TOLERANCE
    }
}

impl Default for Accounts {
    fn default() -> Self {
        Self {
            used: AtomicUsize::new(0),
            all: [const { OnceLock::new() }; MOST],
            unrecorded: AtomicU64::new(0),
            uncounted: OnceLock::new(),
            cost_ticks: AtomicU64::new(0),
        }
    }
}

impl Accounts {
    /// The account with this number, if there is one.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&Account> {
        self.all.get(number)?.get().map(|account| &**account)
    }

    /// The number of the account with this name, which may be `last` again. Makes the account if there is room.
    #[inline]
    pub fn number(&self, name: &[u8], last: usize) -> Option<usize> {
        let is_named = |number: usize| self.get(number).is_some_and(|account| *account.name == *name);
        if is_named(last) {
            return Some(last);
        }
        let used = self.used.load(Relaxed);
        (0..used).find(|number| is_named(*number)).or_else(|| self.add(name, used))
    }

    #[cold]
    fn add(&self, name: &[u8], used: usize) -> Option<usize> {
        let place = self.all.get(used)?;
        place.set(Box::new(Account::new(name))).ok()?;
        self.used.store(used + 1, Release);
        Some(used)
    }

    /// All accounts so far.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        (0..self.used.load(Acquire)).filter_map(|number| self.get(number))
    }
}

impl Account {
    fn new(name: &[u8]) -> Self {
        Self {
            name: name.into(),
            entries: AtomicU64::new(0),
            negative: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            ticks: LiveSpread::new(),
            counted: AtomicU64::new(0),
            cycles: LiveSpread::new(),
            instructions: LiveSpread::new(),
            times: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    /// Adds an entry, or discards it.
    #[inline]
    pub fn add(&self, start: ProbeReading, stop: ProbeReading, own: Own, usual: &mut Usual) {
        let ticks = stop.tick.ticks.wrapping_sub(start.tick.ticks);
        if (ticks as i64) < 0 {
            return bump(&self.negative, 1);
        }
        let threads = [start.tick.thread, stop.tick.thread];
        if threads[0] != threads[1] && !threads.contains(&UNKNOWN) {
            return bump(&self.moved, 1);
        }
        let ticks = ticks.saturating_sub(own.ticks);
        let counts = match (start.counts, stop.counts) {
            (Some([a, b]), Some([c, d])) => {
                let [cycles, instructions] = [c.wrapping_sub(a), d.wrapping_sub(b)];
                Some([cycles.saturating_sub(own.counts[0]), instructions.saturating_sub(own.counts[1])])
            }
            _ => None,
        };
        if let Some([cycles, instructions]) = counts {
            if usual.is_odd(ticks, cycles) {
                return bump(&self.rate, 1);
            }
            self.cycles.add(cycles);
            self.instructions.add(instructions);
            bump(&self.counted, 1);
        }
        self.ticks.add(ticks);
        if let Some(times) = self.times.get(bucket(ticks)) {
            times.store(times.load(Relaxed).saturating_add(1), Relaxed);
        }
        bump(&self.entries, 1);
    }

    /// The least time and counts of an entry.
    pub fn least(&self) -> Own {
        let [ticks, cycles, instructions] =
            [&self.ticks, &self.cycles, &self.instructions].map(|of| of.spread().least);
        Own { ticks, counts: [cycles, instructions] }
    }

    /// The sums, with times in ticks.
    pub fn totals(&self) -> ProbeTotals {
        let load = |of: &AtomicU64| of.load(Relaxed);
        let discarded =
            Discarded { negative: load(&self.negative), moved: load(&self.moved), rate: load(&self.rate) };
        ProbeTotals {
            threads: 1,
            entries: load(&self.entries),
            discarded,
            time_ps: self.ticks.spread(),
            counted: load(&self.counted),
            cycles: self.cycles.spread(),
            instructions: self.instructions.spread(),
            ..ProbeTotals::default()
        }
    }

    /// Entries in each bucket.
    pub fn times(&self) -> impl Iterator<Item = u64> {
        self.times.iter().map(|entries| entries.load(Relaxed).into())
    }
}

impl LiveSpread {
    fn new() -> Self {
        Self { sum: AtomicU64::new(0), least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }

    #[inline]
    fn add(&self, value: u64) {
        bump(&self.sum, value);
        if value < self.least.load(Relaxed) {
            self.least.store(value, Relaxed);
        }
        if value > self.most.load(Relaxed) {
            self.most.store(value, Relaxed);
        }
    }

    fn spread(&self) -> Spread {
        let [sum, least, most] = [&self.sum, &self.least, &self.most].map(|of| of.load(Relaxed));
        Spread { sum, least: if least == u64::MAX { 0 } else { least }, most }
    }
}

/// Adds to a number that only this thread writes: a load and a store cost less than an atomic addition.
#[inline]
fn bump(number: &AtomicU64, by: u64) {
    number.store(number.load(Relaxed).wrapping_add(by), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64, thread: u32, counts: Option<[u64; 2]>) -> ProbeReading {
        ProbeReading { tick: Tick { ticks, thread }, counts }
    }

    fn usual() -> Usual {
        Usual::within([100, 10_000])
    }

    #[test]
    fn an_entry_is_kept_or_discarded_for_a_reason() {
        let (accounts, mut usual) = (Accounts::default(), usual());
        let own = Own { ticks: 10, counts: [20, 5] };
        let number = accounts.number(b"a", 0).unwrap();
        let account = accounts.get(number).unwrap();
        let mut add = |start, stop| account.add(start, stop, own, &mut usual);
        add(at(1000, 3, Some([0, 0])), at(2010, 3, Some([2020, 105])));
        add(at(1000, 3, Some([0, 0])), at(999, 3, Some([2020, 105])));
        add(at(1000, 3, Some([0, 0])), at(2010, 4, Some([2020, 105])));
        add(at(1000, 3, Some([0, 0])), at(2010, 3, Some([1020, 105])));
        // Without counts, and where the hardware thread is unknown, less is known.
        add(at(1000, UNKNOWN, None), at(1005, 4, None));
        let totals = account.totals();
        assert_eq!(totals.discarded, Discarded { negative: 1, moved: 1, rate: 1 });
        assert_eq!((totals.entries, totals.counted), (2, 1));
        assert_eq!(totals.time_ps, Spread { sum: 1000, least: 0, most: 1000 });
        assert_eq!(totals.instructions, Spread { sum: 100, least: 100, most: 100 });
        assert_eq!(account.times().sum::<u64>(), 2);
    }

    #[test]
    fn a_lasting_change_of_the_frequency_becomes_usual() {
        let mut usual = usual();
        let mut odd = |cycles: u64| usual.is_odd(1000, cycles);
        assert!(!odd(2000) && !odd(2090));
        // One odd entry among usual ones.
        assert!(odd(1000) && !odd(2000));
        let changed = (0..100).filter(|_| odd(3000)).count();
        assert!((2..40).contains(&changed), "{changed}");
        assert!(!odd(3000) && odd(2000));
        // Too short, and so long that the kernel may work.
        let mut other = Usual { rate: 1.0, ..usual };
        assert!(!other.is_odd(99, 10) && !other.is_odd(10_000, 10));
    }

    #[test]
    fn there_is_room_for_so_many_names() {
        let accounts = Accounts::default();
        let number = |at: usize| accounts.number(format!("{at}").as_bytes(), 0);
        assert!((0..MOST).all(|at| number(at) == Some(at)));
        assert_eq!((number(MOST), number(7)), (None, Some(7)));
        assert_eq!(accounts.iter().count(), MOST);
    }
}
