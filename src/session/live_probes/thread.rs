//! One thread that enters and leaves probes.

use super::count_or_discard::{Accounts, Own, ProbeReading, Usual};
use super::registry::REGISTRY;
use super::ticks::{Tick, fence};
use super::{CALIBRATION, gate, now};
use crate::counters::count_and_quality::{Gap, WhyUnavailable};
use crate::counters::event::{Encoding, Modes, kind};
use crate::counters::thread_counter::{CounterPage, ThreadCounter};
use std::cell::{Cell, OnceCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

/// Deepest nesting of probes of a thread.
const DEEPEST: usize = 32;

thread_local! {
    static LOCAL: OnceCell<Local> = const { OnceCell::new() };
    /// True while the thread makes its `LOCAL`, which a signal handler must not do again.
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// What only the thread itself uses.
pub(super) struct Local {
    accounts: Arc<Accounts>,
    counters: ManuallyDrop<Option<[CounterPage; 2]>>,
    own: Cell<Own>,
    usual: Cell<Usual>,
    /// Number of the account of the last entry: the next entry is often of the same one.
    last: Cell<usize>,
    /// How many probes the thread is in; more than [`DEEPEST`] are not recorded.
    depth: Cell<usize>,
    open: [Cell<Open>; DEEPEST],
}

/// An entry that has not ended.
#[derive(Clone, Copy, Default)]
struct Open {
    account: usize,
    start: ProbeReading,
}

/// Calls `act` with the state of this thread. False if it has none yet.
#[inline(always)]
pub(super) fn with(act: impl FnOnce(&Local)) -> bool {
    // A thread that ends has no state any more, and needs none.
    LOCAL.try_with(|local| local.get().map(act).is_some()).unwrap_or(true)
}

/// Makes the state of this thread. `calibrate` makes entries without content, and returns their time in ticks.
pub(super) fn start(counts: bool, ticks_per_ms: u64, calibrate: impl FnOnce() -> u64) {
    if STARTING.replace(true) {
        return;
    }
    let is_new = LOCAL.try_with(|local| local.get().is_none() && local.set(Local::new(counts)).is_ok());
    if is_new == Ok(true) {
        let cost_ticks = calibrate();
        with(|local| local.begin(ticks_per_ms, cost_ticks));
    }
    STARTING.set(false);
}

impl Local {
    fn new(counts: bool) -> Self {
        let accounts = Arc::new(Accounts::default());
        let counters = if counts { counters() } else { Err(Gap::Unavailable(WhyUnavailable::Off)) };
        if let Err(gap) = counters {
            let _ = accounts.uncounted.set(gap); // nothing else sets it
        }
        REGISTRY.lock().unwrap_or_else(PoisonError::into_inner).add(&accounts);
        Self {
            accounts,
            counters: ManuallyDrop::new(counters.ok()),
            own: Cell::default(),
            usual: Cell::default(),
            last: Cell::new(0),
            depth: Cell::new(0),
            open: [const { Cell::new(Open { account: 0, start: ProbeReading::NONE }) }; DEEPEST],
        }
    }

    /// The calibration is over: from now on its least values are subtracted.
    fn begin(&self, ticks_per_ms: u64, cost_ticks: u64) {
        const LEAST_TICKS: u64 = 100;
        let calibrated = self.accounts.iter().find(|account| *account.name == *CALIBRATION);
        self.own.set(calibrated.map(|account| account.least()).unwrap_or_default());
        // From one microsecond to one millisecond.
        let within_ticks = [(ticks_per_ms / 1000).max(LEAST_TICKS), ticks_per_ms];
        self.usual.set(Usual::within(within_ticks));
        self.accounts.cost_ticks.store(cost_ticks, Relaxed);
    }

    #[inline(always)]
    pub fn enter(&self, name: &[u8], gate: u32) {
        let Some(account) = self.accounts.number(name, self.last.get()) else {
            return self.not_recorded(1);
        };
        self.last.set(account);
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        let Some(place) = self.open.get(depth) else { return self.not_recorded(1) };
        let counts = self.counts();
        // As late as possible.
        let tick = now(gate);
        place.set(Open { account, start: ProbeReading { tick, counts } });
    }

    #[inline(always)]
    pub fn leave(&self, name: &[u8], tick: Tick) {
        let stop = ProbeReading { tick, counts: self.counts() };
        let depth = self.depth.get();
        if depth > DEEPEST {
            return self.depth.set(depth - 1);
        }
        let open = self.open.get(..depth).unwrap_or(&[]);
        let found = open.iter().enumerate().rev().find_map(|(at, open)| {
            let open = open.get();
            let account = self.accounts.get(open.account).filter(|account| *account.name == *name)?;
            Some((at, open.start, account))
        });
        let Some((at, start, account)) = found else { return };
        if at + 1 < depth {
            self.not_recorded((depth - at - 1) as u64); // the program did not end them
        }
        self.depth.set(at);
        let mut usual = self.usual.get();
        account.add(start, stop, self.own.get(), &mut usual);
        self.usual.set(usual);
    }

    #[inline(always)]
    fn counts(&self) -> Option<[u64; 2]> {
        let [cycles, instructions] = self.counters.as_ref()?;
        fence();
        Some([cycles.read()?, instructions.read()?])
    }

    #[cold]
    fn not_recorded(&self, entries: u64) {
        self.accounts.unrecorded.fetch_add(entries, Relaxed);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // A forked child has no pages of counters, and another thread of the parent may have held the lock. Then, and
        // after the measurement, the accounts stay as they are.
        if gate() == 0 {
            return;
        }
        // SAFETY: the value is not used again.
        unsafe { ManuallyDrop::drop(&mut self.counters) };
        REGISTRY.lock().unwrap_or_else(PoisonError::into_inner).end(&self.accounts);
    }
}

/// Counters of this thread's cycles and instructions in user mode, without descriptors that the program could close.
fn counters() -> Result<[CounterPage; 2], Gap> {
    // linux/perf_event.h, enum perf_hw_id.
    const CYCLES: u64 = 0;
    const INSTRUCTIONS: u64 = 1;
    let open = |event| {
        let encoding = Encoding::new(kind::HARDWARE, event).in_modes(Modes::User);
        let page = ThreadCounter::open(encoding)?.into_page();
        match page.register() {
            Some(_) => Ok(page),
            None => Err(Gap::Unavailable(WhyUnavailable::NotReadable)),
        }
    };
    Ok([open(CYCLES)?, open(INSTRUCTIONS)?])
}
