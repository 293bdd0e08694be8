//! The first few of a list that may be long.

/// The first few of a list, and how long it is: a run may have a million ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstFew<T> {
    /// The first ones.
    pub first: Vec<T>,
    /// Number of all.
    pub all: usize,
}

impl<T> FirstFew<T> {
    /// At most `most` of these, and the number of all. Only those that it keeps go through `keep`, which may copy them.
    pub fn of<I>(mut items: impl Iterator<Item = I>, most: usize, keep: impl FnMut(I) -> T) -> Self {
        let first: Vec<T> = items.by_ref().take(most).map(keep).collect();
        let all = first.len() + items.count();
        Self { first, all }
    }

    /// Number of the others.
    pub fn more(&self) -> usize {
        self.all.saturating_sub(self.first.len())
    }
}
