//! The counts of a node.

use std::borrow::Cow;

/// The names that a decomposition or a cause needs: see [`Counted`].
pub const NAMES: [&str; 22] = [
    "cpus",
    "tsc",
    "task_clock_ns",
    "task_clock_ns_most",
    "cycles",
    "cycles_user",
    "cycles_kernel",
    "ref_cycles",
    "ref_cycles_most",
    "ref_cycles_user",
    "ref_cycles_user_most",
    "instructions",
    "instructions_user",
    "instructions_kernel",
    "ranks",
    "steal_ns",
    "context_switches",
    "page_faults",
    "system_read_bytes",
    "dram_bytes",
    "dram_read_bytes",
    "snoop_filter_evictions",
];

/// If these counts are missing, there is no explanation. The report names the first of them that has a
/// reason.
pub const MISSED: [&str; 3] = ["task_clock_ns", "instructions", "cycles"];

/// Values of one node in one run, by name: sums over its ranks. [`super::terms`], [`super::term_parts`] and
/// [`super::cause`] know these names:
///
/// | name | |
/// |---|---|
/// | `cpus` | hardware threads that its ranks may use |
/// | `tsc` | elapsed ticks of the time stamp counter; they count once per node |
/// | `task_clock_ns` | time that its threads were on a processor |
/// | `cycles`, `ref_cycles`, `instructions` | of its threads; `_user` after the name: in user mode only |
/// | `cycles_kernel`, `instructions_kernel` | the part of `cycles` and `instructions` in the Linux kernel |
/// | `ranks` | number of its ranks |
/// | `ref_cycles_most`, `ref_cycles_user_most`, `task_clock_ns_most` | the largest value of one rank |
/// | `steal_ns` | time that a hypervisor took from its hardware threads while they had work |
/// | `context_switches`, `page_faults` | of its threads |
/// | `system_read_bytes` | bytes read into its L2 caches |
/// | `dram_bytes` | bytes read from and written to its memory |
/// | `dram_read_bytes` | bytes read from its memory |
/// | `snoop_filter_evictions` | lines that its snoop filters evicted |
///
/// A factor that is the same for all nodes of a class changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// In the order of the names.
    values: Vec<(Name, f64)>,
    /// The missing values with their reasons, in the order of the names.
    absent: Vec<(Name, String)>,
}

/// A name; one of [`NAMES`] takes no memory of its own, because there may be millions of [`Counted`].
type Name = Cow<'static, str>;

fn at<T>(list: &[(Name, T)], name: &str) -> Result<usize, usize> {
    list.binary_search_by(|(known, _)| (**known).cmp(name))
}

fn put<T>(list: &mut Vec<(Name, T)>, name: Name, value: T) {
    // Most callers know the names in order.
    if list.last().is_none_or(|(last, _)| *last < name) {
        list.push((name, value));
        return;
    }
    match at(list, &name) {
        Ok(known) => list[known].1 = value,
        Err(place) => list.insert(place, (name, value)),
    }
}

fn remove<T>(list: &mut Vec<(Name, T)>, name: &str) {
    if let Ok(known) = at(list, name) {
        list.remove(known);
    }
}

impl Counted {
    /// From names and values. Values that are NaN, infinite or negative are absent.
    pub fn new<N: Into<Name>>(values: impl IntoIterator<Item = (N, f64)>) -> Self {
        let mut counted = Self::default();
        values.into_iter().for_each(|(name, value)| counted.set(name, value));
        counted
    }

    /// No values yet, with room for this number of them.
    pub fn with_capacity(values: usize) -> Self {
        Self { values: Vec::with_capacity(values), absent: Vec::new() }
    }

    /// The geometric mean of the values of two runs. A value that one of them lacks is absent.
    pub fn middle(one: &Self, other: &Self) -> Self {
        let mut both = Self::default();
        for (name, value) in &one.values {
            if let Some(other) = other.get(name) {
                both.set(name.clone(), (value * other).sqrt());
            }
        }
        let absent = one.absent.iter().chain(&other.absent);
        absent.for_each(|(name, reason)| both.lack(name.clone(), reason));
        both
    }

    /// Sets a value and replaces an earlier one. A value that is NaN, infinite or negative is no count: then the value is
    /// absent, without a reason.
    pub fn set(&mut self, name: impl Into<Name>, value: f64) {
        let name = name.into();
        remove(&mut self.absent, &name);
        match value.is_finite() && value >= 0.0 {
            true => put(&mut self.values, name, value),
            false => remove(&mut self.values, &name),
        }
    }

    /// Gives the reason for a missing value.
    pub fn lack(&mut self, name: impl Into<Name>, reason: impl Into<String>) {
        let name = name.into();
        remove(&mut self.values, &name);
        put(&mut self.absent, name, reason.into());
    }

    /// Finite and not below zero.
    pub fn get(&self, name: &str) -> Option<f64> {
        at(&self.values, name).ok().map(|known| self.values[known].1)
    }

    /// A value above 0, by which a caller may divide.
    pub fn positive(&self, name: &str) -> Option<f64> {
        self.get(name).filter(|value| *value > 0.0)
    }

    /// Why there is no value, if a reason is known.
    pub fn why_not(&self, name: &str) -> Option<&str> {
        at(&self.absent, name).ok().map(|known| self.absent[known].1.as_str())
    }

    /// The first of [`MISSED`] that is missing, and why it is missing.
    pub fn most_missed(&self) -> Option<(&'static str, &str)> {
        MISSED.iter().find_map(|name| Some((*name, self.why_not(name)?)))
    }

    /// All values, by name.
    pub fn values(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (&**name, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_count_is_absent() {
        let columns = [("a", 1.0), ("b", f64::NAN), ("c", -1.0), ("d", f64::INFINITY), ("e", 0.0)];
        let mut counted = Counted::new(columns);
        assert_eq!(counted.values().collect::<Vec<_>>(), [("a", 1.0), ("e", 0.0)]);
        assert_eq!(
            (counted.positive("a"), counted.positive("e"), counted.get("e")),
            (Some(1.0), None, Some(0.0))
        );
        assert_eq!((counted.get("b"), counted.why_not("b")), (None, None));
        counted.set("a", f64::NAN);
        assert_eq!(counted.get("a"), None);
        counted.set("a", 1.0);
        let other = Counted::new([("a", 4.0), ("e", 0.0), ("x", 1.0)]);
        assert_eq!(Counted::middle(&counted, &other).values().collect::<Vec<_>>(), [("a", 2.0), ("e", 0.0)]);
        counted.lack("a", "denied");
        counted.set("b", 2.0);
        assert_eq!((counted.get("a"), counted.why_not("a")), (None, Some("denied")));
        assert_eq!((counted.get("b"), counted.why_not("b")), (Some(2.0), None));
    }
}
