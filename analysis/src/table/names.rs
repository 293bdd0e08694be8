//! Stores each name once, because names occur in many rows.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Names, numbered from 0 in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct NamePool {
    /// All names, one after another: an archive of a large cluster has millions.
    text: String,
    /// The end of each name in `text`.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The number that [`Self::find_again`] found last: neighbouring rows often have the same name.
    last: u32,
}

impl NamePool {
    /// The name of a number.
    pub fn get(&self, number: u32) -> Option<&str> {
        let at = number as usize;
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        self.text.get(start..*self.ends.get(at)?)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no name.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All names, by number.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map_while(|number| self.get(number))
    }

    /// The number of a name.
    pub fn find(&self, name: &str) -> Option<u32> {
        let is_it = |number: &u32| self.get(*number) == Some(name);
        self.numbers.find(self.hasher.hash_one(name), is_it).copied()
    }

    /// Like [`Self::find`], but faster for the name that was searched last.
    pub fn find_again(&mut self, name: &str) -> Option<u32> {
        if self.get(self.last) != Some(name) {
            self.last = self.find(name)?;
        }
        Some(self.last)
    }

    /// The number of a name; adds the name if it is new. At most 2^32 - 1 names fit.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.find_again(name) {
            return number;
        }
        let number = self.ends.len() as u32;
        self.text.push_str(name);
        self.ends.push(self.text.len());
        let Self { text, ends, numbers, hasher, .. } = self;
        let hash_of = |number: &u32| {
            let at = *number as usize;
            let start = if at == 0 { 0 } else { ends[at - 1] };
            hasher.hash_one(&text[start..ends[at]])
        };
        numbers.insert_unique(hasher.hash_one(name), number, hash_of);
        number
    }

    /// The rank of each name when the names are sorted by `first` and then as text.
    pub(crate) fn ranks<K: Ord>(&self, first: impl Fn(u32, &str) -> K) -> Vec<u32> {
        let mut order: Vec<(K, &str, u32)> =
            self.iter().zip(0..).map(|(name, number)| (first(number, name), name, number)).collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        order.iter().zip(0..).for_each(|((.., number), rank)| ranks[*number as usize] = rank);
        ranks
    }
}

impl PartialEq for NamePool {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.ends) == (&other.text, &other.ends)
    }
}
