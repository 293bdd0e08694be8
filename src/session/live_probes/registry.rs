//! The probes of all threads of a process.

use super::CALIBRATION;
use super::count_or_discard::{Account, Accounts};
use crate::counters::count_and_quality::Gap;
use crate::ids::RankId;
use crate::probes::{BUCKETS, ProbeTotals, Probes, Times, limits};
use crate::text::of_bytes;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

pub(super) static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    running: Vec::new(),
    ended: Sums { of: Vec::new(), unrecorded: 0, uncounted: None, cost_ticks: 0 },
});

/// The threads that have entered a probe.
pub(super) struct Registry {
    running: Vec<Arc<Accounts>>,
    /// What threads recorded that have ended.
    ended: Sums,
}

#[derive(Clone)]
struct Sums {
    of: Vec<Sum>,
    unrecorded: u64,
    uncounted: Option<Gap>,
    cost_ticks: u64,
}

/// One probe of several threads.
#[derive(Clone)]
struct Sum {
    name: Box<[u8]>,
    /// With times in ticks.
    totals: ProbeTotals,
    times: Vec<u64>,
}

impl Registry {
    /// A thread enters its first probe.
    pub fn add(&mut self, accounts: &Arc<Accounts>) {
        self.running.push(Arc::clone(accounts));
    }

    /// A thread ends.
    pub fn end(&mut self, accounts: &Arc<Accounts>) {
        self.running.retain(|known| !Arc::ptr_eq(known, accounts));
        self.ended.add(accounts);
    }

    /// The sums over all threads so far, as those of the rank `rank`.
    pub fn probes(&self, rank: RankId, ps_per_tick: f64) -> Probes {
        let mut sums = self.ended.clone();
        self.running.iter().for_each(|accounts| sums.add(accounts));
        let ps = |ticks: u64| (ticks as f64 * ps_per_tick) as u64;
        let mut probes = Probes {
            unrecorded: sums.unrecorded,
            uncounted: sums.uncounted,
            tick_ps: ps(1).max(1),
            cost_ps: ps(sums.cost_ticks),
            ..Probes::default()
        };
        for (number, Sum { name, totals, times: in_ticks }) in sums.of.into_iter().enumerate() {
            let mut times = Times::default();
            for (bucket, entries) in in_ticks.into_iter().enumerate().filter(|(_, entries)| *entries > 0) {
                let [from, to] = limits(bucket).map(ps);
                times.add(from.midpoint(to), entries);
            }
            let time_ps = totals.time_ps.map(ps);
            probes.names.push(of_bytes(&name));
            probes.totals.push(ProbeTotals { rank, probe: number as u32, time_ps, ..totals });
            probes.times.push(times);
        }
        probes
    }
}

impl Sums {
    fn add(&mut self, accounts: &Accounts) {
        let unrecorded = accounts.unrecorded.load(Relaxed);
        self.unrecorded = self.unrecorded.saturating_add(unrecorded);
        self.uncounted = self.uncounted.or(accounts.uncounted.get().copied());
        self.cost_ticks = self.cost_ticks.max(accounts.cost_ticks.load(Relaxed));
        accounts
            .iter()
            .filter(|account| *account.name != *CALIBRATION)
            .for_each(|account| self.add_account(account));
    }

    fn add_account(&mut self, account: &Account) {
        let totals = account.totals();
        if totals.entries == 0 && totals.discarded.all() == 0 {
            return;
        }
        let known = self.of.iter().position(|sum| sum.name == account.name);
        let at = known.unwrap_or_else(|| {
            let name = account.name.clone();
            self.of.push(Sum { name, totals: ProbeTotals::default(), times: vec![0; BUCKETS] });
            self.of.len() - 1
        });
        let sum = &mut self.of[at];
        sum.totals.join(&totals);
        sum.times.iter_mut().zip(account.times()).for_each(|(sum, entries)| *sum += entries);
    }
}
