//! The value of a counter, and its quality.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why an event was not counted, or only a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Gap {
    /// Neither this machine's processor nor its kernel counts it: the errno of perf_event_open(2).
    Unsupported(i32),
    /// This user may not count it: the errno.
    Denied(i32),
    /// It could be counted, but was not.
    Unavailable(WhyUnavailable),
    /// Only user mode was counted: this user may not count the kernel.
    UserModeOnly,
    /// Only one kind of core counted it, and the program also ran on other kinds.
    OneKindOfCore,
}

/// Why an event was not counted although the machine can count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WhyUnavailable {
    /// Another user holds the processor's counters: the NMI watchdog, another tool.
    Busy,
    /// No descriptor or memory was left: the errno.
    NoRoom(i32),
    /// perf_event_open(2) failed in some other way: the errno.
    Open(i32),
    /// No counter is open: the program closed the descriptor, or the counter could not be opened at this place.
    Closed,
    /// This user may execute the program's file but not read it, so the kernel does not count it.
    Unreadable,
    /// It was never on the processor while the work ran.
    NeverScheduled,
    /// The rank did not reach the second snapshot, or not even the first.
    NoSnapshot,
    /// The program never ran on the kind of core that counts the event, or there were more events than counters.
    NotOnItsCores,
    /// This node has no such hardware thread, for example no second one of a core.
    NoSuchThread,
    /// The user turned the counters off.
    Off,
    /// The event is in no register, or the kernel does not let programs read the register.
    NotReadable,
}

/// The quality of a value, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// Counted all the time.
    Exact,
    /// Counted for a part of the time, because events shared counters, and extrapolated.
    Scaled,
    /// Covers only a part of what the event's name says.
    Partial,
    /// This machine cannot count it.
    Unsupported,
    /// This user may not count it.
    Denied,
    /// Possible, but not counted.
    Unavailable,
    /// The count ran over, or went backwards.
    Overflowed,
}

impl Quality {
    /// All qualities, in the order of their declaration.
    pub const ALL: [Self; 7] = [
        Self::Exact,
        Self::Scaled,
        Self::Partial,
        Self::Unsupported,
        Self::Denied,
        Self::Unavailable,
        Self::Overflowed,
    ];

    /// The quality with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quality| quality.name() == name)
    }

    /// True if there is a value.
    pub fn has_value(self) -> bool {
        matches!(self, Quality::Exact | Quality::Scaled | Quality::Partial)
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Quality::Exact => "exact",
            Quality::Scaled => "scaled",
            Quality::Partial => "partial",
            Quality::Unsupported => "unsupported",
            Quality::Denied => "denied",
            Quality::Unavailable => "unavailable",
            Quality::Overflowed => "overflowed",
        }
    }
}

impl Gap {
    /// From the errno of perf_event_open(2).
    pub fn of_errno(errno: i32) -> Self {
        match errno {
            libc::EACCES | libc::EPERM => Gap::Denied(errno),
            // EINVAL: a kernel older than the option, or a PMU that cannot leave out a mode.
            libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENXIO => {
                Gap::Unsupported(errno)
            }
            libc::EBUSY => Gap::Unavailable(WhyUnavailable::Busy),
            libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOSPC => {
                Gap::Unavailable(WhyUnavailable::NoRoom(errno))
            }
            _ => Gap::Unavailable(WhyUnavailable::Open(errno)),
        }
    }

    /// The quality of a value with this gap.
    pub fn quality(self) -> Quality {
        match self {
            Gap::Unsupported(_) => Quality::Unsupported,
            Gap::Denied(_) => Quality::Denied,
            Gap::Unavailable(_) => Quality::Unavailable,
            Gap::UserModeOnly | Gap::OneKindOfCore => Quality::Partial,
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::Unsupported(libc::ENOENT) => {
                f.write_str("not counted by this processor and Linux kernel (a virtual machine without \
                             counters?)")
            }
            // pmmpi sets ENODEV itself, where sysfs has no PMU for the event's name.
            Gap::Unsupported(libc::ENODEV) => f.write_str(
                "this machine has no PMU for this event (a virtual machine, or a driver that \
                             is not loaded?)",
            ),
            Gap::Unsupported(errno) => {
                write!(f, "not counted by this processor and Linux kernel (errno {errno})")
            }
            // On Debian's kernels CAP_PERFMON has no effect from level 3 on.
            Gap::Denied(_) => f.write_str(
                "not allowed: lower kernel.perf_event_paranoid, or start pmmpi with CAP_PERFMON (if the setting \
                 is above 2, with CAP_SYS_ADMIN); a container must also allow perf_event_open",
            ),
            Gap::Unavailable(cause) => cause.fmt(f),
            Gap::UserModeOnly => f.write_str(
                "user mode only: to count the Linux kernel's part, too, lower \
                             kernel.perf_event_paranoid to 1",
            ),
            Gap::OneKindOfCore => f.write_str(
                "counted only for a part of the time: the program also ran on other kinds of cores, or there \
                 were more events than free counters. Bind the program to one kind of core, or name the \
                 event without a PMU",
            ),
        }
    }
}

impl fmt::Display for WhyUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyUnavailable::Busy => f.write_str(
                "the counters are in use elsewhere, for example by the NMI \
                                                 watchdog or another profiler",
            ),
            WhyUnavailable::NoRoom(libc::EMFILE) => f.write_str(
                "there were too few file descriptors for this counter and the program's own files: raise the \
                 hard limit on open files (ulimit -Hn)",
            ),
            WhyUnavailable::NoRoom(errno) => write!(
                f,
                "no file descriptor, memory or breakpoint was free, or the limit on file sizes (ulimit -f) \
                 is too small (errno {errno})"
            ),
            WhyUnavailable::Open(errno) => write!(f, "pmmpi could not open the counter (errno {errno})"),
            WhyUnavailable::Closed => f.write_str(
                "no counter is open: the program closed the counter's descriptor, or pmmpi could not open \
                 the counter at this place",
            ),
            WhyUnavailable::Unreadable => f.write_str(
                "this user can execute the program's file but cannot read it, so the Linux kernel counts no \
                 events of the program",
            ),
            WhyUnavailable::NeverScheduled => f.write_str(
                "never counted: there were more events than free counters, or the program started another \
                 program, whose file this user cannot read (the Linux kernel counts no events of such a program)",
            ),
            WhyUnavailable::NoSnapshot => f.write_str("the rank did not complete its work"),
            WhyUnavailable::NotOnItsCores => f.write_str(
                "the program never ran on this kind of core, or there were more events than \
                 free counters",
            ),
            WhyUnavailable::NoSuchThread => f.write_str(
                "the event needs hardware threads that pmmpi did not find on this node (SMT is off, the \
                 processor has no SMT, or the Linux kernel does not show which hardware threads share a \
                 core)",
            ),
            WhyUnavailable::Off => f.write_str("counters were off (--counters off)"),
            WhyUnavailable::NotReadable => f.write_str(
                "no counter was free, or the Linux kernel does not let programs read the counters' registers \
                 (to allow it: on x86, write 1 to /sys/bus/event_source/devices/cpu/rdpmc; on Arm, set \
                 kernel.perf_user_access to 1)",
            ),
        }
    }
}

/// One event between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The raw count, before any scaling.
    pub count: u64,
    /// How long the event was enabled (ns), summed over all threads.
    pub enabled_ns: u64,
    /// How long it was counting (ns), summed over all threads.
    pub running_ns: u64,
    /// Why there is no value, or only a part of it.
    pub gap: Option<Gap>,
}

impl Reading {
    /// A reading of an event that was not counted.
    pub fn missing(gap: Gap) -> Self {
        Self { count: 0, enabled_ns: 0, running_ns: 0, gap: Some(gap) }
    }

    /// The quality of the value.
    pub fn quality(&self) -> Quality {
        match self.gap {
            Some(gap) if !gap.quality().has_value() => gap.quality(),
            _ if self.scaled().is_none_or(|count| count > MOST) => Quality::Overflowed,
            // The event never ran. The kernel also stops counting a program that the user may execute but not read.
            _ if self.running_ns == 0 => Quality::Unavailable,
            Some(gap) => gap.quality(),
            None if self.running_ns < self.enabled_ns => Quality::Scaled,
            None => Quality::Exact,
        }
    }

    /// The count; if it was counted for a part of the time, extrapolated: count x enabled / running.
    pub fn value(&self) -> Option<u64> {
        self.scaled().filter(|_| self.quality().has_value())
    }

    /// `None` on overflow. An event that never ran keeps its count.
    fn scaled(&self) -> Option<u64> {
        let all = self.running_ns >= self.enabled_ns || self.gap == Some(Gap::OneKindOfCore);
        if all || self.running_ns == 0 {
            return Some(self.count);
        }
        let (count, enabled, running) =
            (self.count.into(), self.enabled_ns.into(), u128::from(self.running_ns));
        u64::try_from((u128::checked_mul(count, enabled)? + running / 2) / running).ok()
    }

    /// Share of the enabled time in which it was counted, 0 to 1; `None` if it was never enabled.
    pub fn running_share(&self) -> Option<f64> {
        (self.enabled_ns > 0).then(|| self.running_ns as f64 / self.enabled_ns as f64)
    }

    /// Why there is no value, or only a part of it.
    pub fn reason(&self) -> Option<String> {
        match (self.quality(), self.gap) {
            (Quality::Exact, _) => None,
            (Quality::Scaled, _) => {
                let share = self.running_share().unwrap_or(0.0) * 100.0;
                Some(format!("counted {share:.1} % of the time: more events than free counters"))
            }
            (Quality::Overflowed, _) => Some("the count overflowed, or went backwards".to_owned()),
            (Quality::Unavailable, None) => Some(WhyUnavailable::NeverScheduled.to_string()),
            (_, gap) => gap.map(|gap| gap.to_string()),
        }
    }
}

/// The largest possible count between two snapshots: 2^62 is 36 years at 4 GHz. A larger value is the difference of
/// two counts that went backwards.
const MOST: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(count: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading { count, enabled_ns, running_ns, gap: None }
    }

    #[test]
    fn a_value_says_what_it_is_worth() {
        let exact = counted(7, 100, 100);
        assert_eq!((exact.quality(), exact.value(), exact.reason()), (Quality::Exact, Some(7), None));
        let scaled = counted(7, 100, 25);
        assert_eq!((scaled.quality(), scaled.value()), (Quality::Scaled, Some(28)));
        assert!(scaled.reason().unwrap().contains("25.0 %"));
        let never = counted(0, 100, 0);
        assert_eq!((never.quality(), never.value()), (Quality::Unavailable, None));
        assert!(never.reason().unwrap().contains("never"));
        // An event that was never enabled.
        assert_eq!((counted(0, 0, 0).quality(), counted(0, 0, 0).value()), (Quality::Unavailable, None));
        for (errno, quality) in [
            (libc::ENOENT, Quality::Unsupported),
            (libc::EACCES, Quality::Denied),
            (libc::EPERM, Quality::Denied),
            (libc::EBUSY, Quality::Unavailable),
            (libc::EMFILE, Quality::Unavailable),
        ] {
            let reading = Reading::missing(Gap::of_errno(errno));
            assert_eq!((reading.quality(), reading.value()), (quality, None));
            assert!(reading.reason().is_some());
        }
        let part = Reading { gap: Some(Gap::UserModeOnly), ..exact };
        assert_eq!((part.quality(), part.value()), (Quality::Partial, Some(7)));
        // Only user mode, and only a part of the time.
        let both = Reading { gap: Some(Gap::UserModeOnly), ..scaled };
        assert_eq!((both.quality(), both.value()), (Quality::Partial, Some(28)));
    }

    #[test]
    fn counts_beyond_48_bits_are_counts_and_those_that_went_backwards_are_none() {
        assert_eq!(counted(1 << 48, 1, 1).value(), Some(1 << 48));
        assert_eq!(counted((1 << 62) - 1, 1, 1).value(), Some((1 << 62) - 1));
        let backwards = 5u64.wrapping_sub(6);
        assert_eq!(counted(backwards, 1, 1).quality(), Quality::Overflowed);
        assert_eq!(counted(backwards, 1, 1).value(), None);
    }

    proptest! {
        #[test]
        fn scaling_keeps_the_rate(count in 0u64..1 << 50, running in 1u64..1 << 40, more in 0u64..1 << 40) {
            let reading = counted(count, running + more, running);
            let expected = count as f64 * (running + more) as f64 / running as f64;
            match reading.value() {
                Some(value) => prop_assert!((value as f64 - expected).abs() <= expected * 1e-9 + 1.0),
                None => {
                    prop_assert_eq!(reading.quality(), Quality::Overflowed);
                    prop_assert!(expected > 0.999 * MOST as f64);
                }
            }
        }
    }
}
