//! What the Linux kernels of the nodes counted during a run: faults, and what the nodes sent and used.

use super::{Compared, Named, of_all};
use pmmpi::node::HealthCount;
use pmmpi::record::Run;

/// Counts of memory, in which two runs of one program may differ: with fewer huge pages, a run is slower. Such a count
/// differs if it is more than twice the other and this number, on the worst node of each run.
const OF_MEMORY: [(&str, f64); 4] = [
    ("huge_page_bytes", 64.0 * 1024.0 * 1024.0),
    ("huge_page_fallbacks", 32.0),
    ("numa_spills", 1000.0),
    ("pages_swapped", 1000.0),
];

/// What was added on each node, and where.
pub(super) fn of(run: &Run) -> Vec<Named> {
    let of = |count: &HealthCount| {
        let at: Vec<String> =
            count.added_at.iter().map(|(place, added)| format!("{added} at {place}")).collect();
        let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(", ")) };
        Some((count.name.to_string(), format!("{}{at}", count.added?)))
    };
    let nodes = run.nodes.iter();
    let named =
        of_all(nodes.map(|node| (node.key.hostname.as_str(), node.health.iter().filter_map(of).collect())));
    let worst = |name: &str| {
        let counts = run.nodes.iter().flat_map(|node| &node.health).filter(|count| count.name == name);
        let counts = counts.filter_map(|count| count.added).map(|added| added as f64);
        match name {
            "huge_page_bytes" => counts.fold(f64::INFINITY, f64::min),
            _ => counts.fold(0.0, f64::max),
        }
    };
    let compared = |name: &str| {
        let least = OF_MEMORY.iter().find(|(of, _)| *of == name).map(|(_, least)| *least);
        least.map_or(Compared::Nothing, |least| Compared::Amount { amount: worst(name), least })
    };
    named.into_iter().map(|named| Named { compared: compared(&named.name), ..named }).collect()
}
