//! Which signals this process owes its child: those that it got itself, without those that the child got as well.
//!
//! The kernel does not say whether kill(2) named a process or its group. The witness, a process that is in each group
//! and tree where this process and its child are, tells: what this process and the witness both got from one sender
//! the child got, too; what only this process got is to be passed on.

use libc::{c_int, pid_t};

/// A signal, as who gets it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub number: c_int,
    /// Who sent it, or [`KERNEL`].
    pub sender: pid_t,
}

/// The sender of what a terminal or a timer sends.
pub(crate) const KERNEL: pid_t = -1;

/// A signal that this process got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub signal: Signal,
    /// Whom to pass it on to; 0 where there was no child yet: it gets the signal by other means.
    pub child: pid_t,
    /// The child is in this process's group.
    pub in_group: bool,
}

/// Who signals the processes of a job one after the other (slurmstepd with proctrack/linuxproc) is done by then.
const TOGETHER_NS: i64 = 25_000_000;
/// On a crowded node this process may learn of a signal so much later than the witness.
const LATE_NS: i64 = 1_000_000_000;
/// More signals at once are passed on without waiting.
const PLACES: usize = 64;
const NUMBERS: usize = 65;
/// The kernel queues these; of any other one is pending at most.
const FIRST_REAL_TIME: c_int = 32;

/// See the module.
pub(crate) struct Ledger {
    /// In the order in which they came.
    owed: [Option<Owed>; PLACES],
    witnessed: [Witnessed; NUMBERS],
}

#[derive(Clone, Copy)]
struct Owed {
    got: Got,
    due_ns: i64,
}

/// What the witness got last of a signal.
#[derive(Clone, Copy)]
struct Witnessed {
    sender: pid_t,
    at_ns: i64,
    /// So many are known from the witness alone: this process is about to say that it got them.
    unclaimed: u32,
}

impl Ledger {
    pub fn new() -> Self {
        let none = Witnessed { sender: 0, at_ns: i64::MIN / 2, unclaimed: 0 };
        Self { owed: [None; PLACES], witnessed: [none; NUMBERS] }
    }

    /// The witness got a signal, and so did the child.
    pub fn witnessed(&mut self, signal: Signal, now_ns: i64) {
        // A process that goes on has lost the stop that was pending.
        if signal.number == libc::SIGCONT {
            self.strike(usize::MAX, |owed| owed.signal.number == libc::SIGTSTP);
        }
        // One that is not queued comes after all that this process got before: it stands for them, too.
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

    /// This process got a signal. Gives one that is to be passed on at once, if any.
    pub fn got(&mut self, got: Got, now_ns: i64) -> Option<Got> {
        let claimed = self.claim(got.signal, now_ns);
        if got.child == 0 {
            return None;
        }
        // A child that has left the group did not get what was sent to the group. A launcher that looks for its
        // child's group would have found the new one; a terminal would not.
        if !got.in_group && got.signal.sender != KERNEL {
            return Some(got);
        }
        let undone = got.signal.number == libc::SIGTSTP && self.went_on(now_ns);
        if claimed || undone { None } else { self.owe(got, now_ns) }
    }

    /// One that is to be passed on now, if any. Ask only when the witness has nothing more to tell.
    pub fn due(&mut self, now_ns: i64) -> Option<Got> {
        let first = self.owed[0].filter(|owed| owed.due_ns <= now_ns)?;
        self.strike(1, |_| true);
        Some(first.got)
    }

    /// How long from now until one is due; `None` where nothing is owed.
    pub fn wait_ns(&self, now_ns: i64) -> Option<i64> {
        self.owed[0].map(|owed| (owed.due_ns - now_ns).max(0))
    }

    /// Whether the child has this one from its sender already.
    fn claim(&mut self, signal: Signal, now_ns: i64) -> bool {
        let Some(last) = self.witnessed.get_mut(signal.number as usize) else { return false };
        // timeout(1) signals its child and then the group: a program sees that once, unless signals queue.
        let merges = signal.number < FIRST_REAL_TIME && last.is_of(signal, now_ns, TOGETHER_NS);
        let claims = last.unclaimed > 0 && last.is_of(signal, now_ns, LATE_NS);
        if claims {
            last.unclaimed -= 1;
        }
        merges || claims
    }

    /// The whole group has just been told to go on: a stop from before that is no longer one.
    fn went_on(&self, now_ns: i64) -> bool {
        now_ns - self.witnessed[libc::SIGCONT as usize].at_ns <= TOGETHER_NS
    }

    /// Where there is no more room, the oldest is due.
    fn owe(&mut self, got: Got, now_ns: i64) -> Option<Got> {
        let crowded = self.owed[PLACES - 1].and(self.owed[0]);
        if crowded.is_some() {
            self.strike(1, |_| true);
        }
        let free = self.owed.iter_mut().find(|place| place.is_none())?;
        *free = Some(Owed { got, due_ns: now_ns + TOGETHER_NS });
        crowded.map(|owed| owed.got)
    }

    /// Takes out the first `most` that `is_one` holds for, and says how many there were.
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

    /// What is passed on by then.
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
                // The next one, to this process alone, is another one.
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

    /// timeout(1): its child, and then the group that both are in.
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

    /// A stop that came after its own end would last for ever.
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
