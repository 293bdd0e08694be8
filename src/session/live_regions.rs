//! A rank's regions during the measurement: a fixed table in memory that outlives the rank.

use crate::counters::counter_table::CounterTable;
use crate::counters::open_counters::Opened;
use crate::ids::RankId;
use crate::regions::{At, MOST, RegionTotals, Regions, Whereabouts};
use crate::text::of_bytes;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::mem::size_of;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Bytes of a region's name that distinguish it.
pub const NAME_BYTES: usize = 63;
const NAME_WORDS: usize = (NAME_BYTES + 1) / size_of::<u64>();
type Name = [u64; NAME_WORDS];

/// The entries of one rank's regions, in memory that outlives the rank.
#[derive(Debug)]
#[repr(C)]
pub struct RegionTable {
    used: AtomicU64,
    /// Entries that found no free slot, were nested too deeply, or had a failed barrier.
    unrecorded: AtomicU64,
    /// Time between MPI_Pcontrol(0) and MPI_Pcontrol(1), ns of its own clock.
    paused_ns: AtomicI64,
    /// When the last pause began; 0 outside of pauses.
    paused_since_ns: AtomicI64,
    slots: [Slot; MOST],
    /// Where the rank is: the name of a region, and in `now` 1 + [`At`]; `now` is 0 outside of regions.
    now_name: [AtomicU64; NAME_WORDS],
    now: AtomicU64,
}

#[derive(Debug)]
#[repr(C)]
struct Slot {
    name: [AtomicU64; NAME_WORDS],
    entries: AtomicU64,
    which: AtomicU64,
    start_barrier_ns: AtomicI64,
    inner_ns: AtomicI64,
    end_barrier_ns: AtomicI64,
    shortest_ns: AtomicI64,
    longest_ns: AtomicI64,
}

impl Slot {
    const fn unused() -> Self {
        Self {
            name: [const { AtomicU64::new(0) }; NAME_WORDS],
            entries: AtomicU64::new(0),
            which: AtomicU64::new(0),
            start_barrier_ns: AtomicI64::new(0),
            inner_ns: AtomicI64::new(0),
            end_barrier_ns: AtomicI64::new(0),
            shortest_ns: AtomicI64::new(0),
            longest_ns: AtomicI64::new(0),
        }
    }
}

impl RegionTable {
    /// The table of programs without regions. All of them share it, and write only the zeros that it already holds.
    pub fn unused() -> &'static Self {
        static UNUSED: RegionTable = RegionTable {
            used: AtomicU64::new(0),
            unrecorded: AtomicU64::new(0),
            paused_ns: AtomicI64::new(0),
            paused_since_ns: AtomicI64::new(0),
            slots: [const { Slot::unused() }; MOST],
            now_name: [const { AtomicU64::new(0) }; NAME_WORDS],
            now: AtomicU64::new(0),
        };
        &UNUSED
    }

    /// A new table for one rank.
    pub fn boxed() -> Box<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: every field is an atomic integer, for which zeros are valid. The memory has the type's layout and
        // belongs to the box.
        unsafe {
            let table = alloc_zeroed(layout);
            if table.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(table.cast())
        }
    }

    /// Stops recording on this rank.
    pub fn pause(&self, now_ns: i64) {
        // The first of two pauses in a row counts.
        let _ = self.paused_since_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
    }

    /// Continues recording.
    pub fn resume(&self, now_ns: i64) {
        let since_ns = self.paused_since_ns.swap(0, Relaxed);
        if since_ns != 0 {
            self.paused_ns.fetch_add(now_ns - since_ns, Relaxed);
        }
    }

    fn is_paused(&self) -> bool {
        self.paused_since_ns.load(Relaxed) != 0
    }

    /// In which region the rank is, if it is in one.
    pub fn whereabouts(&self) -> Option<Whereabouts> {
        let at = match self.now.load(Acquire) {
            1 => At::Begin,
            2 => At::Inside,
            3 => At::End,
            _ => return None,
        };
        Some(Whereabouts { region: text(&self.now_name), at })
    }

    fn note(&self, name: &Name, at: At) {
        self.now_name.iter().zip(name).for_each(|(word, name)| word.store(*name, Relaxed));
        self.now.store(1 + at as u64, Release);
    }

    /// The regions in this table, as those of the rank `rank`.
    pub fn regions(&self, rank: RankId) -> Regions {
        let used = (self.used.load(Acquire) as usize).min(MOST);
        let mut regions = Regions { unrecorded: self.unrecorded.load(Relaxed), ..Regions::default() };
        for (number, slot) in self.slots[..used].iter().enumerate() {
            regions.names.push(slot.name());
            regions.totals.push(RegionTotals {
                rank,
                region: number as u32,
                entries: slot.entries.load(Acquire),
                which: slot.which.load(Relaxed) as u32,
                start_barrier_ns: slot.start_barrier_ns.load(Relaxed),
                inner_ns: slot.inner_ns.load(Relaxed),
                end_barrier_ns: slot.end_barrier_ns.load(Relaxed),
                shortest_ns: slot.shortest_ns.load(Relaxed),
                longest_ns: slot.longest_ns.load(Relaxed),
            });
        }
        let paused_ns = self.paused_ns.load(Relaxed);
        regions.paused.extend((paused_ns != 0).then_some((rank, paused_ns)));
        regions
    }

    /// The slot of this name and its number, if there is one or room for it.
    fn slot(&self, name: &Name) -> Option<(usize, &Slot)> {
        let used = (self.used.load(Relaxed) as usize).min(MOST);
        if let Some(known) = self.slots[..used].iter().position(|slot| slot.is(name)) {
            return Some((known, &self.slots[known]));
        }
        let slot = self.slots.get(used)?;
        slot.name.iter().zip(name).for_each(|(word, name)| word.store(*name, Relaxed));
        slot.shortest_ns.store(i64::MAX, Relaxed);
        self.used.store(used as u64 + 1, Release);
        Some((used, slot))
    }
}

impl Slot {
    fn is(&self, name: &Name) -> bool {
        self.name.iter().zip(name).all(|(word, name)| word.load(Relaxed) == *name)
    }

    fn name(&self) -> String {
        text(&self.name)
    }

    fn add(&self, number: u64, t_ns: [i64; 4]) {
        let [t0, t1, t2, t3] = t_ns;
        let inner_ns = t2 - t1;
        self.start_barrier_ns.fetch_add(t1 - t0, Relaxed);
        self.inner_ns.fetch_add(inner_ns, Relaxed);
        self.end_barrier_ns.fetch_add(t3 - t2, Relaxed);
        self.shortest_ns.fetch_min(inner_ns, Relaxed);
        self.longest_ns.fetch_max(inner_ns, Relaxed);
        self.which.fetch_add(mixed(number), Relaxed);
        self.entries.fetch_add(1, Release);
    }
}

fn text(name: &[AtomicU64; NAME_WORDS]) -> String {
    let bytes: Vec<u8> = name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
    of_bytes(&bytes).trim_end_matches('\0').to_owned()
}

/// The regions that a rank is in, innermost last.
#[derive(Debug)]
pub struct Recorder<'a> {
    table: &'a RegionTable,
    counters: CounterTable<'a>,
    opened: Opened,
    /// The snapshot at the end of the entry that ends now.
    stop: Vec<AtomicU64>,
    open: Vec<Open>,
    begun: u64,
    /// Entries that are open beyond [`DEEPEST`] and are not recorded.
    deeper: u64,
}

/// Deepest nesting of regions. A program that exceeds it begins entries and never ends them.
const DEEPEST: usize = 64;

#[derive(Debug)]
struct Open {
    /// The entry's number. It is the same on all ranks, because every entry begins with a barrier.
    number: u64,
    name: Name,
    t0_ns: i64,
    t1_ns: i64,
    /// The snapshot at its begin.
    start: Vec<AtomicU64>,
    /// It began in a pause.
    paused: bool,
    proved: bool,
}

impl<'a> Recorder<'a> {
    /// A recorder outside of regions. It adds the counts of entries to `counters`.
    pub fn new(table: &'a RegionTable, counters: CounterTable<'a>, opened: Opened) -> Self {
        let (open, stop) = (Vec::with_capacity(DEEPEST), words(counters.region_words()));
        Self { table, counters, opened, stop, open, begun: 0, deeper: 0 }
    }

    /// A recorder for a rank without counters.
    #[cfg(test)]
    pub(crate) fn without_counters(table: &'a RegionTable) -> Self {
        Self::new(table, CounterTable::default(), Opened::default())
    }

    /// The table with the recorded entries.
    pub fn table(&self) -> &'a RegionTable {
        self.table
    }

    /// A barrier of this region failed, so its innermost entry proves nothing.
    pub fn disprove(&mut self, name: &[u8]) {
        let name = padded(name);
        if let Some(open) = self.open.iter_mut().rfind(|open| open.name == name) {
            open.proved = false;
        }
    }

    /// The rank reaches the barrier that begins or ends this region.
    pub fn arrive(&self, name: &[u8], at: At) {
        self.table.note(&padded(name), at);
    }

    /// The rank has left that barrier.
    fn go_on(&self) {
        match self.open.last() {
            Some(open) => self.table.note(&open.name, At::Inside),
            None => self.table.now.store(0, Release),
        }
    }

    /// True if an entry of this region can end.
    pub fn is_in(&self, name: &[u8]) -> bool {
        let name = padded(name);
        self.deeper > 0 || self.open.iter().any(|open| open.name == name)
    }

    /// Begins an entry, whose barrier was entered at t0 and left at t1. Returns the place for its snapshot; `None`
    /// if the entry is not recorded.
    pub fn begin(&mut self, name: &[u8], t0_ns: i64, t1_ns: i64) -> Option<&[AtomicU64]> {
        let number = self.begun;
        self.begun += 1;
        if self.open.len() < DEEPEST {
            let paused = self.table.is_paused();
            let (name, start) = (padded(name), words(self.counters.region_words()));
            self.open.push(Open { number, name, t0_ns, t1_ns, start, paused, proved: true });
            self.go_on();
            self.open.last().map(|open| &open.start[..])
        } else {
            self.deeper += 1;
            self.table.unrecorded.fetch_add(1, Relaxed);
            self.go_on();
            None
        }
    }

    /// The place for the snapshot at the end of an entry, or of all entries.
    pub fn ending(&self) -> &[AtomicU64] {
        &self.stop
    }

    /// Ends the innermost entry of this region, whose barrier was entered at t2 and left at t3. Does nothing if the
    /// rank is not in such a region.
    pub fn end(&mut self, name: &[u8], t2_ns: i64, t3_ns: i64) {
        let name = padded(name);
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            let open = self.open.remove(at);
            self.add(&open, t2_ns, t3_ns);
        }
        self.go_on();
    }

    /// The work is over: ends all open entries.
    pub fn end_all(&mut self, t2_ns: i64, t3_ns: i64) {
        while let Some(open) = self.open.pop() {
            self.add(&open, t2_ns, t3_ns);
        }
        self.table.resume(t2_ns);
        self.go_on();
    }

    fn add(&self, open: &Open, t2_ns: i64, t3_ns: i64) {
        // Of nested entries of one region only the outermost counts, so that no time counts twice.
        let is_inner = self.open.iter().any(|outer| outer.name == open.name);
        if is_inner || open.paused || self.table.is_paused() {
            return;
        }
        match self.table.slot(&open.name).filter(|_| open.proved) {
            Some((number, slot)) => {
                slot.add(open.number, [open.t0_ns, open.t1_ns, t2_ns, t3_ns]);
                CounterTable::add(&self.opened, self.counters.of_region(number), &open.start, &self.stop);
            }
            None => _ = self.table.unrecorded.fetch_add(1, Relaxed),
        }
    }
}

/// A hash of an entry's number. For different sets of entries, the sums of hashes differ, except in one case in
/// 2^32 (G. Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014: SplitMix64).
fn mixed(number: u64) -> u64 {
    let z = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn words(number: usize) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default).take(number).collect()
}

/// The form in which names are compared and stored.
fn padded(name: &[u8]) -> Name {
    let mut bytes = [0u8; NAME_WORDS * size_of::<u64>()];
    let length = name.len().min(NAME_BYTES);
    bytes[..length].copy_from_slice(&name[..length]);
    let mut words = [0; NAME_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_add_up_in_a_fixed_place() {
        let table = RegionTable::boxed();
        assert_eq!(table.regions(RankId(4)), Regions::default());
        let mut recorder = Recorder::without_counters(&table);
        recorder.begin(b"outer", 0, 5);
        for at in 1..=10_000 {
            recorder.begin(b"solve", at * 100, at * 100 + 3);
            recorder.end(b"solve", at * 100 + 53, at * 100 + 60);
        }
        recorder.end(b"never begun", 1, 2);
        table.pause(10);
        table.pause(15);
        for name in [&b"solve"[..], b"unseen"] {
            recorder.begin(name, 0, 1);
            recorder.end(name, 2, 3);
        }
        table.resume(30);
        recorder.end_all(2_000_000, 2_000_007);
        let regions = table.regions(RankId(4));
        assert_eq!(regions.names, ["solve", "outer"]);
        let solve = RegionTotals {
            rank: RankId(4),
            region: 0,
            entries: 10_000,
            which: regions.totals[0].which,
            start_barrier_ns: 30_000,
            inner_ns: 500_000,
            end_barrier_ns: 70_000,
            shortest_ns: 50,
            longest_ns: 50,
        };
        assert_eq!(regions.totals[0], solve);
        assert_eq!((regions.totals[1].inner_ns, regions.totals[1].outer_ns()), (1_999_995, 2_000_007));
        assert_eq!((regions.paused, regions.unrecorded), (vec![(RankId(4), 20)], 0));
    }

    #[test]
    fn it_is_known_where_a_rank_is() {
        let table = RegionTable::boxed();
        let mut recorder = Recorder::without_counters(&table);
        let at = |table: &RegionTable| table.whereabouts().map(|at| at.to_string());
        assert_eq!(at(&table), None);
        recorder.arrive(b"outer", At::Begin);
        assert_eq!(at(&table).unwrap(), "at the start of region `outer`");
        recorder.begin(b"outer", 0, 1);
        recorder.begin(b"inner", 0, 1);
        assert_eq!(at(&table).unwrap(), "in region `inner`");
        assert!(recorder.is_in(b"outer") && !recorder.is_in(b"other"));
        recorder.arrive(b"inner", At::End);
        assert_eq!(at(&table).unwrap(), "at the end of region `inner`");
        recorder.end(b"inner", 2, 3);
        assert_eq!(at(&table).unwrap(), "in region `outer`");
        recorder.end_all(2, 3);
        assert_eq!(at(&table), None);
    }

    #[test]
    fn there_is_room_for_so_many_names() {
        let table = RegionTable::boxed();
        let mut recorder = Recorder::without_counters(&table);
        for number in 0..MOST + 3 {
            let name = format!("{number:03}{}", "x".repeat(100));
            recorder.begin(name.as_bytes(), 0, 1);
            recorder.end(name.as_bytes(), 2, 3);
        }
        let regions = table.regions(RankId(0));
        assert_eq!((regions.names.len(), regions.unrecorded), (MOST, 3));
        assert!(regions.names.iter().all(|name| name.len() == NAME_BYTES));
    }

    /// A rank of the same user may write anything there.
    #[test]
    fn whatever_is_in_the_memory_can_be_read() {
        const WORDS: usize = size_of::<RegionTable>() / size_of::<u64>();
        let table = RegionTable::boxed();
        // SAFETY: the table is made of atomics of 8 bytes, without gaps.
        let words: &[AtomicU64; WORDS] = unsafe { &*std::ptr::from_ref(&*table).cast() };
        words.iter().for_each(|word| word.store(u64::MAX, Relaxed));
        assert_eq!((table.regions(RankId(0)).names.len(), table.whereabouts()), (MOST, None));
    }

    #[test]
    fn entries_in_one_another_count_once_and_not_without_end() {
        let table = RegionTable::boxed();
        let mut recorder = Recorder::without_counters(&table);
        for at in 0..3 {
            recorder.begin(b"f", at, at);
        }
        for at in 0..3 {
            recorder.end(b"f", 10 + at, 10 + at);
        }
        assert_eq!(
            (table.regions(RankId(0)).totals[0].entries, table.regions(RankId(0)).totals[0].inner_ns),
            (1, 12)
        );
        for at in 0..1000 {
            recorder.begin(b"never ended", at, at);
            recorder.end(b"misspelt", at, at);
        }
        assert_eq!(table.regions(RankId(0)).unrecorded, 1000 - DEEPEST as u64);
        // Latin-1, which is not UTF-8.
        for name in [&b"B\xe4r"[..], b"B\xf6r"] {
            let mut recorder = Recorder::without_counters(&table);
            recorder.begin(name, 0, 1);
            recorder.end(name, 2, 3);
        }
        assert_eq!(table.regions(RankId(0)).names[1..], ["B\\xe4r", "B\\xf6r"]);
    }
}
