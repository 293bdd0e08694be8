//! Runs without a usable time: they are not rows of the table, but their nodes must not vanish.

use super::RunTable;
use hashbrown::HashSet;
use hashbrown::hash_map::{Entry, HashMap};

/// Why a run on a node has no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoTime {
    /// A run of pmmpi failed or is not complete.
    Failed,
    /// A run of pmmpi succeeded, but its time on the node is unknown: the clock was stepped, or shows no time.
    Unknown,
    /// The result failed its own check.
    Wrong,
    /// The row of another tool is not valid.
    Invalid,
}

impl NoTime {
    const ALL: [Self; 4] = [Self::Failed, Self::Unknown, Self::Wrong, Self::Invalid];

    /// As in an archive.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::Invalid => "invalid",
        }
    }

    /// The opposite of [`Self::name`].
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.name() == name)
    }
}

/// A run on a node without a usable time. Numbers are those of the table's names.
#[derive(Clone, Debug, PartialEq)]
pub struct WithoutTime {
    /// The node; the empty name if a run of pmmpi failed before any node was known.
    pub node: u32,
    /// The run.
    pub run: u32,
    /// True if pmmpi measured the run.
    pub is_own: bool,
    /// The class.
    pub class: u32,
    /// The class that identifies the run.
    pub declared: u32,
    /// See [`RunTable::parts`].
    pub parts: u32,
    /// The session.
    pub session: u32,
    /// See [`RunTable::started_unix_ns`].
    pub started_unix_ns: i64,
    /// See [`RunTable::facts`].
    pub facts: u32,
    /// Index of the file.
    pub source: u32,
    /// Why it has no time.
    pub why: NoTime,
    /// The reason in words.
    pub reason: String,
}

impl WithoutTime {
    /// Equal for entries of one run on one node: see [`RunTable`].
    fn identity(&self) -> [u32; 5] {
        match self.is_own {
            true => [1, self.node, self.run, 0, 0],
            false => [0, self.node, self.run, self.session, self.declared],
        }
    }
}

impl RunTable {
    /// Keeps one entry per run and node. If a run of pmmpi has a time, its entry goes: pmmpi exported the run before it was
    /// complete. Returns, for each entry that was already in another file, the index of that file.
    pub(crate) fn settle_without_time(&mut self) -> Vec<u32> {
        if self.without_time.is_empty() {
            return Vec::new();
        }
        let of_own = |entry: &WithoutTime| entry.is_own.then_some([entry.node, entry.run]);
        let asked: HashSet<[u32; 2]> = self.without_time.iter().filter_map(of_own).collect();
        let own_rows = (0..self.len()).filter(|row| !asked.is_empty() && self.is_own(*row));
        let timed: HashSet<[u32; 2]> = own_rows
            .map(|row| [self.node.at(row), self.run.at(row)])
            .filter(|run| asked.contains(run))
            .collect();
        let mut known: HashMap<[u32; 5], u32> = HashMap::new();
        let mut repeated = Vec::new();
        self.without_time.retain(|entry| {
            if of_own(entry).is_some_and(|run| timed.contains(&run)) {
                return false;
            }
            match known.entry(entry.identity()) {
                Entry::Vacant(free) => {
                    free.insert(entry.source);
                    true
                }
                Entry::Occupied(first) => {
                    repeated.extend(Some(*first.get()).filter(|first| *first != entry.source));
                    false
                }
            }
        });
        repeated
    }
}
