//! Decides which signals to pass on to the child: those that this process got, except those that the child got, too.
//!
//! The kernel does not show whether kill(2) named a process or its group. The witness is a process in the same
//! groups and process trees as this process and its child. If this process and the witness get the same signal from
//! one sender, the child got it, too. If only this process gets it, it must be passed on.

use libc::{c_int, pid_t};

/// A signal as its receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub number: c_int,
    /// The sender, or [`KERNEL`].
    pub sender: pid_t,
}

/// The sender of signals from a terminal or a timer.
pub(crate) const KERNEL: pid_t = -1;

/// A signal that this process got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub signal: Signal,
    /// The process to which to pass it on; 0 if there was no child yet (then the child gets it when it starts).
    pub child: pid_t,
    /// True if the child is in this process's group.
    pub in_group: bool,
}

/// The longest time in which a sender that signals the processes of a job one by one (slurmstepd with
/// proctrack/linuxproc) reaches all of them.
const TOGETHER_NS: i64 = 25_000_000;
/// The longest delay, on a busy node, from the witness's receipt of a signal to this process's.
const LATE_NS: i64 = 1_000_000_000;
/// Signals that can wait at the same time; the oldest one is passed on when more come.
const PLACES: usize = 64;
const NUMBERS: usize = 65;
/// The kernel queues signals from this number on; of every other signal, at most one is pending.
const FIRST_REAL_TIME: c_int = 32;

/// The signals that are still to decide, and those that the witness got. See the module.
pub(crate) struct Ledger {
    /// In order of arrival.
    owed: [Option<Owed>; PLACES],
    witnessed: [Witnessed; NUMBERS],
}

#[derive(Clone, Copy)]
struct Owed {
    got: Got,
    due_ns: i64,
}

/// The last signal of one number that the witness got.
#[derive(Clone, Copy)]
struct Witnessed {
    sender: pid_t,
    at_ns: i64,
    /// How many only the witness has got so far: this process will soon get them, too.
    unclaimed: u32,
}

impl Ledger {
    pub fn new() -> Self {
        let none = Witnessed { sender: 0, at_ns: i64::MIN / 2, unclaimed: 0 };
        Self { owed: [None; PLACES], witnessed: [none; NUMBERS] }
    }

    /// Notes a signal that the witness got, and so the child, too.
    pub fn witnessed(&mut self, signal: Signal, now_ns: i64) {
        // SIGCONT discards a pending stop signal.
        if signal.number == libc::SIGCONT {
            self.strike(usize::MAX, |owed| owed.signal.number == libc::SIGTSTP);
        }
        // A signal that the kernel does not queue stands for all earlier ones of its number.
        let is_queued = signal.number >= FIRST_REAL_TIME;
        let most = if is_queued { 1 } else { usize::MAX };
        let struck = self.strike(most, |owed| owed.signal == signal);
        let Some(last) = self.witnessed.get_mut(signal.number as usize) else { return };
        let before = if is_queued && last.is_of(signal, now_ns, LATE_NS) { last.unclaimed } else { 0 };
        *last = Witnessed {
            sender: signal.sender,
            at_ns: now_ns,
            unclaimed: before.saturating_add(u32::from(struck == 0)),
        };
    }

    /// Notes a signal that this process got. Gives a signal to pass on at once, if there is one.
    pub fn got(&mut self, got: Got, now_ns: i64) -> Option<Got> {
        let claimed = self.claim(got.signal, now_ns);
        if got.child == 0 {
            return None;
        }
        // A child in another group did not get a signal to this group. Pass it on: without pmmpi, a launcher would have
        // signalled the child's own group. A terminal would not have, so do not pass on its signals.
        if !got.in_group && got.signal.sender != KERNEL {
            return Some(got);
        }
        let undone = got.signal.number == libc::SIGTSTP && self.went_on(now_ns);
        if claimed || undone { None } else { self.owe(got, now_ns) }
    }

    /// A signal to pass on now, if there is one. Call this only when the witness has no more pending signals.
    pub fn due(&mut self, now_ns: i64) -> Option<Got> {
        let first = self.owed[0].filter(|owed| owed.due_ns <= now_ns)?;
        self.strike(1, |_| true);
        Some(first.got)
    }

    /// The time until the next signal is due; `None` if no signal waits.
    pub fn wait_ns(&self, now_ns: i64) -> Option<i64> {
        self.owed[0].map(|owed| (owed.due_ns - now_ns).max(0))
    }

    /// True if the child already has this signal from its sender.
    fn claim(&mut self, signal: Signal, now_ns: i64) -> bool {
        let Some(last) = self.witnessed.get_mut(signal.number as usize) else { return false };
        // timeout(1) signals its child and then the group. A program sees these as one signal, unless they queue.
        let merges = signal.number < FIRST_REAL_TIME && last.is_of(signal, now_ns, TOGETHER_NS);
        let claims = last.unclaimed > 0 && last.is_of(signal, now_ns, LATE_NS);
        if claims {
            last.unclaimed -= 1;
        }
        merges || claims
    }

    /// True if the whole group got SIGCONT a moment ago, which cancels an earlier stop signal.
    fn went_on(&self, now_ns: i64) -> bool {
        now_ns - self.witnessed[libc::SIGCONT as usize].at_ns <= TOGETHER_NS
    }

    /// Adds a signal that waits for the witness. If the table is full, gives the oldest one to pass on now.
    fn owe(&mut self, got: Got, now_ns: i64) -> Option<Got> {
        let crowded = self.owed[PLACES - 1].and(self.owed[0]);
        if crowded.is_some() {
            self.strike(1, |_| true);
        }
        let free = self.owed.iter_mut().find(|place| place.is_none())?;
        *free = Some(Owed { got, due_ns: now_ns + TOGETHER_NS });
        crowded.map(|owed| owed.got)
    }

    /// Removes the first `most` signals for which `is_one` is true; gives their number.
    fn strike(&mut self, most: usize, is_one: impl Fn(&Got) -> bool) -> usize {
        let mut struck = 0;
        let mut kept = 0;
        for at in 0..PLACES {
            let Some(owed) = self.owed[at].take() else { break };
            if struck < most && is_one(&owed.got) {
                struck += 1;
            } else {
                self.owed[kept] = Some(owed);
                kept += 1;
            }
        }
        struck
    }
}

impl Witnessed {
    fn is_of(&self, signal: Signal, now_ns: i64, within_ns: i64) -> bool {
        self.sender == signal.sender && now_ns - self.at_ns <= within_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const CHILD: pid_t = 7;
    const REAL_TIME: c_int = 40;
    const NONE: [c_int; 0] = [];

    fn signal(number: c_int) -> Signal {
        Signal { number, sender: 99 }
    }

    fn of(number: c_int) -> Got {
        Got { signal: signal(number), child: CHILD, in_group: true }
    }

    /// The signals passed on up to this time.
    fn passed(ledger: &mut Ledger, now_ms: i64) -> Vec<c_int> {
        std::iter::from_fn(|| ledger.due(now_ms * MS)).map(|got| got.signal.number).collect()
    }

    #[test]
    fn what_came_to_this_process_alone_is_passed_on_in_its_order() {
        let mut ledger = Ledger::new();
        for number in [libc::SIGTERM, libc::SIGUSR1, REAL_TIME, libc::SIGTERM] {
            assert_eq!(ledger.got(of(number), 0), None);
        }
        assert_eq!(ledger.wait_ns(5 * MS), Some(20 * MS));
        assert_eq!(passed(&mut ledger, 24), NONE);
        assert_eq!(passed(&mut ledger, 25), [libc::SIGTERM, libc::SIGUSR1, REAL_TIME, libc::SIGTERM]);
        assert_eq!(ledger.wait_ns(0), None);
    }

    #[test]
    fn what_the_group_got_is_not_passed_on_whoever_learns_of_it_first() {
        for number in [libc::SIGINT, REAL_TIME] {
            for (witnessed_ms, got_ms) in [(0, 0), (0, 900), (20, 0)] {
                let mut ledger = Ledger::new();
                let mut acts = [(witnessed_ms, true), (got_ms, false)];
                acts.sort_by_key(|(ms, is_witness)| (*ms, !is_witness));
                for (ms, is_witness) in acts {
                    match is_witness {
                        true => ledger.witnessed(signal(number), ms * MS),
                        false => assert_eq!(ledger.got(of(number), ms * MS), None),
                    }
                }
                assert_eq!(passed(&mut ledger, 5000), NONE, "{number} {witnessed_ms} {got_ms}");
                // A later signal to this process only is a new signal.
                ledger.got(of(number), (got_ms + 100) * MS);
                assert_eq!(passed(&mut ledger, 5000), [number], "{number} {witnessed_ms} {got_ms}");
            }
        }
    }

    #[test]
    fn another_sender_sent_another_signal() {
        let mut ledger = Ledger::new();
        ledger.witnessed(Signal { sender: 98, ..signal(libc::SIGUSR1) }, 0);
        ledger.got(of(libc::SIGUSR1), MS);
        assert_eq!(passed(&mut ledger, 100), [libc::SIGUSR1]);
    }

    /// timeout(1) signals its child and then the group of both.
    #[test]
    fn a_process_and_then_its_group_is_one_signal_unless_signals_queue() {
        for (number, owed) in [(libc::SIGTERM, vec![]), (REAL_TIME, vec![REAL_TIME])] {
            let orders =
                [["got", "witnessed", "got"], ["witnessed", "got", "got"], ["got", "got", "witnessed"]];
            for order in orders {
                let mut ledger = Ledger::new();
                for act in order {
                    match act {
                        "got" => assert_eq!(ledger.got(of(number), 0), None),
                        _ => ledger.witnessed(signal(number), 0),
                    }
                }
                assert_eq!(passed(&mut ledger, 100), owed, "{order:?}");
            }
        }
    }

    #[test]
    fn each_of_many_is_counted_where_signals_queue() {
        let mut ledger = Ledger::new();
        (0..5).for_each(|_| ledger.witnessed(signal(REAL_TIME), 0));
        (0..8).for_each(|_| assert_eq!(ledger.got(of(REAL_TIME), MS), None));
        assert_eq!(passed(&mut ledger, 100), [REAL_TIME; 3]);
    }

    #[test]
    fn where_there_is_no_room_the_oldest_goes_first() {
        let mut ledger = Ledger::new();
        let at_once: Vec<_> =
            (0..PLACES + 3).filter_map(|n| ledger.got(of(n as c_int % 30 + 1), 0)).collect();
        assert_eq!(at_once.iter().map(|got| got.signal.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(passed(&mut ledger, 100).len(), PLACES);
    }

    #[test]
    fn a_child_in_a_group_of_its_own_is_told_unless_a_terminal_spoke() {
        let mut ledger = Ledger::new();
        ledger.witnessed(signal(libc::SIGTERM), 0);
        let alone = Got { in_group: false, ..of(libc::SIGTERM) };
        assert_eq!(ledger.got(alone, 0), Some(alone));
        let typed = Signal { number: libc::SIGINT, sender: KERNEL };
        ledger.witnessed(typed, 0);
        assert_eq!(ledger.got(Got { signal: typed, ..alone }, 0), None);
        assert_eq!(passed(&mut ledger, 100), NONE);
    }

    #[test]
    fn what_came_before_the_child_is_not_owed_and_not_mistaken_for_a_later_one() {
        let mut ledger = Ledger::new();
        ledger.witnessed(signal(libc::SIGTERM), 0);
        assert_eq!(ledger.got(Got { child: 0, ..of(libc::SIGTERM) }, 0), None);
        ledger.got(of(libc::SIGTERM), 100 * MS);
        assert_eq!(passed(&mut ledger, 200), [libc::SIGTERM]);
    }

    /// A stop signal passed on after SIGCONT would stop the child forever.
    #[test]
    fn a_stop_is_not_passed_on_after_the_group_went_on() {
        for stop_first in [true, false] {
            let mut ledger = Ledger::new();
            if stop_first {
                ledger.got(of(libc::SIGTSTP), 0);
            }
            ledger.witnessed(signal(libc::SIGCONT), 0);
            if !stop_first {
                ledger.got(of(libc::SIGTSTP), 0);
            }
            ledger.got(of(libc::SIGCONT), 0);
            assert_eq!(passed(&mut ledger, 100), NONE);
        }
    }
}
