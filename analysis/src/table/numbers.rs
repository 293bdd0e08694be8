//! A column of small numbers.

/// Numbers of names, one per row. Each takes two bytes as long as all of them fit: archives have many rows and few names.
#[derive(Clone, Debug)]
pub struct Numbers(Width);

#[derive(Clone, Debug)]
enum Width {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

use Width::{Narrow, Wide};

impl Numbers {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.0 {
            Narrow(numbers) => numbers.len(),
            Wide(numbers) => numbers.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in a row.
    #[inline]
    pub fn at(&self, row: usize) -> u32 {
        match &self.0 {
            Narrow(numbers) => numbers[row].into(),
            Wide(numbers) => numbers[row],
        }
    }

    /// All numbers, by row.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|row| self.at(row))
    }

    /// Adds a row.
    pub fn push(&mut self, number: u32) {
        self.extend(&[number]);
    }

    /// Adds rows.
    pub fn extend(&mut self, more: &[u32]) {
        if let Narrow(numbers) = &mut self.0 {
            let before = numbers.len();
            for number in more {
                match u16::try_from(*number) {
                    Ok(number) => numbers.push(number),
                    Err(_) => break,
                }
            }
            return match numbers.len() - before {
                added if added == more.len() => {}
                added => {
                    self.widen();
                    self.extend(&more[added..]);
                }
            };
        }
        if let Wide(numbers) = &mut self.0 {
            numbers.extend_from_slice(more);
        }
    }

    /// Replaces the number in a row.
    pub fn set(&mut self, row: usize, number: u32) {
        match (&mut self.0, u16::try_from(number)) {
            (Narrow(numbers), Ok(number)) => numbers[row] = number,
            (Wide(numbers), _) => numbers[row] = number,
            (Narrow(_), Err(_)) => {
                self.widen();
                self.set(row, number);
            }
        }
    }

    /// Reserves memory for more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match &mut self.0 {
            Narrow(numbers) => numbers.reserve(rows),
            Wide(numbers) => numbers.reserve(rows),
        }
    }

    /// Keeps the rows for which `kept` is true.
    pub(crate) fn retain(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        match &mut self.0 {
            Narrow(numbers) => numbers.retain(|_| kept.next() == Some(&true)),
            Wide(numbers) => numbers.retain(|_| kept.next() == Some(&true)),
        }
    }

    fn widen(&mut self) {
        let capacity = match &self.0 {
            Narrow(numbers) => numbers.capacity(),
            Wide(_) => return,
        };
        let mut wide = Vec::with_capacity(capacity);
        wide.extend(self.iter());
        self.0 = Wide(wide);
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self(Narrow(Vec::new()))
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![0..5u32, 65_534..65_538u32, Just(u32::MAX)]
    }

    proptest! {
        /// The same as a column of u32, whatever is done with it.
        #[test]
        fn large_numbers_change_nothing(
            parts in proptest::collection::vec(proptest::collection::vec(number(), 0..4), 0..6),
            (row, other) in (0usize..20, number()),
            kept in proptest::collection::vec(any::<bool>(), 20)
        ) {
            let (mut numbers, mut expected) = (Numbers::default(), Vec::new());
            for part in parts {
                numbers.extend(&part);
                expected.extend(part);
            }
            if row < expected.len() {
                numbers.set(row, other);
                expected[row] = other;
            }
            prop_assert!(numbers.iter().eq(expected.iter().copied()));
            numbers.retain(&kept[..expected.len()]);
            let mut kept = kept.iter();
            expected.retain(|_| *kept.next().unwrap());
            prop_assert!(numbers.iter().eq(expected.iter().copied()));
            prop_assert_eq!((numbers.len(), numbers.is_empty()), (expected.len(), expected.is_empty()));
        }
    }
}
