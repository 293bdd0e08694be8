//! Sets of hardware threads, as the Linux kernel lists them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Hardware threads by the kernel's numbers, as ranges with both ends included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CpuSet(pub Vec<(u32, u32)>);

impl CpuSet {
    /// From the kernel's list format, "0-3,8".
    pub fn parse(list: &str) -> Option<Self> {
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let items = list.trim().split(',').filter(|item| !item.is_empty());
        items.map(range).collect::<Option<Vec<_>>>().map(Self)
    }

    /// True if the set contains this number.
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// All numbers of the set.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The hardware threads that the calling thread may run on: sched_getaffinity(2).
    pub fn allowed() -> Self {
        const WORDS: usize = 1024; // 65,536 hardware threads
        let mut mask = [0u64; WORDS];
        // SAFETY: the system call writes at most the size that it is given and returns how much.
        let bytes = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, std::mem::size_of_val(&mask), mask.as_mut_ptr())
        };
        let cpus = usize::try_from(bytes).unwrap_or(0) * 8;
        Self::from_numbers((0..cpus as u32).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1))
    }

    /// All numbers of several sets. Takes no longer for wide ranges, which a damaged file may have.
    pub fn union<'a>(sets: impl Iterator<Item = &'a Self>) -> Self {
        let mut all: Vec<(u32, u32)> = sets.flat_map(|set| &set.0).copied().collect();
        all.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (first, last) in all {
            match ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => ranges.push((first, last)),
            }
        }
        Self(ranges)
    }

    /// From ascending numbers.
    pub fn from_numbers(numbers: impl Iterator<Item = u32>) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        Self(ranges)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sets_print_as_the_kernel_does() {
        assert_eq!(CpuSet::from_numbers([0, 1, 2, 5, 7, 8].into_iter()).to_string(), "0-2,5,7-8");
        assert_eq!(CpuSet::parse("x"), None);
        assert!(!CpuSet::allowed().0.is_empty());
    }
}
