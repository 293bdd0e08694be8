//! Whose fault it is that data arrive wrong, from the results of the kernel `net` of `pmmpi screen`.
//!
//! Both nodes of a pair say that data arrived wrong, although only one of them or the link is faulty. A faulty node has
//! wrong data with more than half of its partners, which have no wrong data with each other. Wrong pairs here and there may
//! come from a faulty link between switches.

use crate::ids::RankId;
use crate::record::{KernelResult, Run};
use crate::slow_links;
use crate::text::count;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A node is faulty if at least this number of partners have wrong data with faulty nodes only, and with this one.
const FEWEST_PARTNERS: usize = 2;
/// A text names at most this number of partners. The others name this node themselves.
const MOST_NAMES: usize = 3;

const BETWEEN: &str = "; ";
const RANK: &str = " (rank ";
const IS_WRONG: &str = " is wrong";

/// What a node says of wrong data that it exchanged with a partner.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// The partner's host name.
    pub hostname: &'a str,
    /// The partner's rank.
    pub rank: RankId,
    /// What this node received; `None` if only the partner received something wrong.
    pub received: Option<&'a str>,
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hostname, rank, received } = self;
        match received {
            Some(what) => write!(f, "{what} from {hostname}{RANK}{rank}){IS_WRONG}"),
            None => write!(f, "{hostname}{RANK}{rank}) received something wrong from this node"),
        }
    }
}

/// The text of [`KernelResult::wrong`](crate::record::KernelResult::wrong); `None` if nothing is wrong. [`partners`]
/// reads it.
pub fn text(notices: &[Notice]) -> Option<String> {
    let named: Vec<String> = notices.iter().take(MOST_NAMES).map(Notice::to_string).collect();
    let more = notices.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 {
        format!("{BETWEEN}wrong data with {}", count(more, "more partner"))
    } else {
        String::new()
    };
    (!notices.is_empty()).then(|| named.join(BETWEEN) + &more)
}

/// The partners that a [`text`] names; with each, true if the node itself received something wrong.
pub fn partners(text: &str) -> impl Iterator<Item = (RankId, bool)> {
    // Most nodes have nothing to say, and a search in an empty text is not free.
    let notices = (!text.is_empty()).then(|| text.split(BETWEEN));
    notices.into_iter().flatten().filter_map(|notice| {
        let (_, rest) = notice.rsplit_once(RANK)?;
        let (rank, rest) = rest.split_once(')')?;
        Some((RankId(rank.parse().ok()?), rest == IS_WRONG))
    })
}

/// The host names between which data arrived wrong in a round: from, to. Both nodes of a pair may say so.
pub fn transfers(run: &Run) -> impl Iterator<Item = [&str; 2]> {
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    results.flat_map(move |result| {
        let text = result.wrong.as_deref().unwrap_or_default();
        partners(text).filter_map(move |(partner, is_received)| {
            let (own, partner) = (run.host_of(result.rank)?, run.host_of(partner)?);
            let transfer = if is_received { [partner, own] } else { [own, partner] };
            (own != partner).then_some(transfer)
        })
    })
}

/// The part of a node in wrong data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartInWrongData {
    /// The node is faulty.
    Faulty,
    /// All its wrong data came from faulty nodes or went to them.
    Partner,
    /// It has wrong data with a node that is not faulty, so the link or one of the two is.
    OfLink,
}

impl PartInWrongData {
    /// True if a node has a time in spite of this result: the data of its healthy partners were right.
    pub fn has_time(self, result: &KernelResult) -> bool {
        self == Self::Partner && !result.links.is_empty()
    }
}

/// What the exchanges of any number of rounds show.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongData<N> {
    /// All nodes with wrong data.
    pub parts: BTreeMap<N, PartInWrongData>,
    /// Wrong data between two nodes that are not faulty: from, to.
    pub links: BTreeSet<[N; 2]>,
}

impl<N: Ord + Clone> WrongData<N> {
    /// `wrong` are nodes between which data arrived wrong: from, to. `right` are pairs of nodes whose exchange was right,
    /// in any order.
    pub fn of(wrong: impl IntoIterator<Item = [N; 2]>, right: impl IntoIterator<Item = [N; 2]>) -> Self {
        let transfers: BTreeSet<[N; 2]> = wrong.into_iter().collect();
        if transfers.is_empty() {
            return Self { parts: BTreeMap::new(), links: BTreeSet::new() };
        }
        let pairs = Pairs::of(&transfers, right);
        let faulty = pairs.faulty();
        let has_faulty = |transfer: &[N; 2]| transfer.iter().any(|node| faulty.contains(node));
        let links: BTreeSet<[N; 2]> =
            transfers.iter().filter(|transfer| !has_faulty(transfer)).cloned().collect();
        let mut parts: BTreeMap<N, PartInWrongData> =
            pairs.wrong.into_keys().map(|node| (node, PartInWrongData::Partner)).collect();
        parts.extend(links.iter().flatten().map(|node| (node.clone(), PartInWrongData::OfLink)));
        parts.extend(faulty.into_iter().map(|node| (node, PartInWrongData::Faulty)));
        Self { parts, links }
    }

    /// `None` for a node without wrong data.
    pub fn part_of(&self, node: &N) -> Option<PartInWrongData> {
        self.parts.get(node).copied()
    }
}

impl<'r> WrongData<&'r str> {
    /// What one round shows.
    pub fn of_run(run: &'r Run) -> Self {
        let right = slow_links::readings(run).map(|reading| [reading.node, reading.partner]);
        Self::of(transfers(run), right)
    }
}

struct Pairs<N> {
    /// The partners with which a node has wrong data, in whatever direction and round.
    wrong: BTreeMap<N, BTreeSet<N>>,
    /// The partners with which a node has right data, and no wrong ones.
    right: BTreeMap<N, BTreeSet<N>>,
}

impl<N: Ord + Clone> Pairs<N> {
    fn of(transfers: &BTreeSet<[N; 2]>, right: impl IntoIterator<Item = [N; 2]>) -> Self {
        let mut wrong: BTreeMap<N, BTreeSet<N>> = BTreeMap::new();
        for [from, to] in transfers {
            wrong.entry(from.clone()).or_default().insert(to.clone());
            wrong.entry(to.clone()).or_default().insert(from.clone());
        }
        let is_wrong =
            |[a, b]: &[N; 2]| wrong.get(a).is_some_and(|partners: &BTreeSet<N>| partners.contains(b));
        let right: Vec<[N; 2]> = right.into_iter().filter(|pair| !is_wrong(pair)).collect();
        let mut partners: BTreeMap<N, BTreeSet<N>> = BTreeMap::new();
        for [a, b] in right {
            partners.entry(a.clone()).or_default().insert(b.clone());
            partners.entry(b).or_default().insert(a);
        }
        Self { wrong, right: partners }
    }

    fn partners(&self, node: &N) -> impl Iterator<Item = &N> {
        self.wrong.get(node).into_iter().flatten()
    }

    fn number(&self, node: &N) -> usize {
        self.wrong.get(node).map_or(0, BTreeSet::len)
    }

    /// The largest set of nodes that explains enough: each of its nodes has enough partners that are right with others,
    /// and have wrong data with nodes of the set only.
    fn faulty(&self) -> BTreeSet<N> {
        let mut faulty: BTreeSet<N> =
            self.wrong.keys().filter(|node| self.stands_out(node)).cloned().collect();
        loop {
            let is_faulty = |node: &&N| self.healthy_partners(node, &faulty) >= FEWEST_PARTNERS;
            let kept: BTreeSet<N> = faulty.iter().filter(is_faulty).cloned().collect();
            if kept.len() == faulty.len() {
                return kept;
            }
            faulty = kept;
        }
    }

    /// True if the node has wrong data with more than half of its partners, and enough of them have wrong data with fewer
    /// nodes than this node.
    fn stands_out(&self, node: &N) -> bool {
        let number = self.number(node);
        let right = self.right.get(node).map_or(0, BTreeSet::len);
        let fewer = self.partners(node).filter(|partner| self.number(partner) < number).count();
        number > right && fewer >= FEWEST_PARTNERS
    }

    /// How many partners of a node are healthy, if `faulty` are the faulty nodes.
    fn healthy_partners(&self, node: &N, faulty: &BTreeSet<N>) -> usize {
        let is_healthy = |partner: &&N| {
            let mut others = self.partners(partner);
            self.right.contains_key(*partner)
                && !faulty.contains(*partner)
                && others.all(|other| faulty.contains(other))
        };
        self.partners(node).filter(is_healthy).count()
    }
}

#[cfg(test)]
mod tests;
