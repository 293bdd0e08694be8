//! Rings of pointers that are larger than a cache or a TLB, so that a known part of the loads misses it.
//!
//! A load that follows a ring of W entries meets each entry again after W loads. Of such a cyclic order, a cache of C
//! entries serves at most the part C / W of the loads, whatever it replaces: also with Belady's optimal replacement (L. A.
//! Belady: A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5, 1966). So at least
//! the part (W - C) / W of the loads misses. A prefetcher cannot predict the order, and the lines beside an entry, which
//! some prefetchers fetch too, hold no entry.

/// Sizes of the data caches of a hardware thread (bytes); 0 if unknown, or if the processor has no such cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// The first level.
    pub l1_bytes: u64,
    /// The second level.
    pub l2_bytes: u64,
    /// The third level.
    pub l3_bytes: u64,
}

/// What a ring does not fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// It fits into the second-level cache, but not into the first-level cache.
    BeyondL1,
    /// It fits into the third-level cache or into memory, but not into the second-level cache.
    BeyondL2,
    /// One entry per page, on more pages than any TLB knows.
    BeyondTlb,
}

/// An event that counts the loads of a ring that miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingEvent {
    /// It counts each load that misses the cache or TLB.
    Misses(&'static str),
    /// It counts each load that the next level serves. Pages lie anywhere in physical memory, so more lines than fit may
    /// meet in some sets of that level.
    ServedByNext(&'static str),
}

/// Distance of entries in caches: four lines, so that no prefetch of a neighbour fetches an entry.
const SPACING_BYTES: u64 = 256;
/// Pages of the ring beyond the TLB: 128 MiB of pages of 4 KiB.
const PAGES: u64 = 1 << 15;
/// Of the data TLBs of the processors in pmmpi's tables, the largest has so many entries (AMD's Zen 5: Software
/// Optimization Guide, publication 58455).
const LARGEST_TLB: u64 = 4096;
/// A page of this size; larger pages would need too much memory.
const PAGE_BYTES: u64 = 4096;

impl Ring {
    /// Number of entries, and their distance (bytes). With unknown caches the ring has a size that the code can run on,
    /// but nothing is known of its misses.
    pub(crate) fn shape(self, caches: &Caches, page_bytes: u64) -> [u64; 2] {
        let bytes = match self {
            Ring::BeyondL1 if caches.l2_bytes > 0 => caches.l2_bytes / 2,
            Ring::BeyondL1 => 256 << 10,
            Ring::BeyondL2 => {
                let wanted = if caches.l2_bytes > 0 { 8 * caches.l2_bytes } else { 8 << 20 };
                if caches.l3_bytes > 0 { wanted.min(caches.l3_bytes / 2) } else { wanted }
            }
            // Larger pages take the same memory, so there are fewer of them.
            Ring::BeyondTlb => return [PAGES * PAGE_BYTES / page_bytes.max(PAGE_BYTES), page_bytes],
        };
        // More than any ring needs: a wrong size in sysfs must not use up the memory.
        [(bytes.min(256 << 20) / SPACING_BYTES).max(2), SPACING_BYTES]
    }

    /// The least part of the loads that misses. `None` if the sizes are unknown, or too close to one another.
    pub fn least_misses(self, caches: &Caches, page_bytes: u64) -> Option<f64> {
        let [entries, spacing] = self.shape(caches, page_bytes);
        let held = match self {
            Ring::BeyondL1 if caches.l2_bytes > 0 => caches.l1_bytes / spacing,
            Ring::BeyondL1 => 0,
            Ring::BeyondL2 => caches.l2_bytes / spacing,
            Ring::BeyondTlb => LARGEST_TLB,
        };
        let least = 1.0 - held as f64 / entries as f64;
        // With less than half, a counter that counts something else could agree.
        (held > 0 && least >= 0.5).then_some(least)
    }
}

impl RingEvent {
    /// Its name, and the least and the largest count per load.
    pub(crate) fn range(self, least_misses: f64) -> (&'static str, [f64; 2]) {
        // The first loads of a section may find what the end of the section before left behind.
        match self {
            RingEvent::Misses(event) => (event, [0.95 * least_misses, 1.05]),
            RingEvent::ServedByNext(event) => (event, [0.9 * least_misses, 1.05]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn caches(l1: u64, l2: u64, l3: u64) -> Caches {
        Caches { l1_bytes: l1 * KIB, l2_bytes: l2 * KIB, l3_bytes: l3 * KIB }
    }

    /// The share of loads that miss a cache of `held` entries in a ring of `entries`, with the best replacement: keep what
    /// is used next (Belady).
    fn misses(entries: usize, held: usize, rounds: usize) -> f64 {
        let mut cached: Vec<usize> = Vec::new();
        let mut missed = 0;
        for at in (0..rounds * entries).map(|load| load % entries) {
            if !cached.contains(&at) {
                missed += 1;
                if cached.len() == held {
                    // The entry whose next use is farthest away.
                    let farthest = |entry: &usize| (entry + entries - at - 1) % entries;
                    let worst = (0..cached.len()).max_by_key(|slot| farthest(&cached[*slot])).unwrap();
                    // Belady may also leave the new entry out.
                    if farthest(&cached[worst]) < entries - 1 {
                        cached[worst] = at;
                    }
                } else {
                    cached.push(at);
                }
            }
        }
        missed as f64 / (rounds * entries) as f64
    }

    #[test]
    fn no_replacement_serves_more_than_the_bound() {
        for (entries, held) in [(64, 8), (64, 32), (100, 33), (16, 15)] {
            let bound = 1.0 - held as f64 / entries as f64;
            let best = misses(entries, held, 200);
            assert!(best >= bound && best < bound + 0.05, "{entries} {held}: {best} {bound}");
        }
    }

    #[test]
    fn rings_are_larger_than_what_they_miss() {
        let (zen3, skylake) = (caches(32, 512, 32 * KIB), caches(32, 1024, 33 * KIB));
        assert_eq!(Ring::BeyondL1.shape(&zen3, 4096), [1024, 256]);
        assert_eq!(Ring::BeyondL1.least_misses(&zen3, 4096), Some(0.875));
        assert_eq!(Ring::BeyondL2.shape(&skylake, 4096), [32 * KIB, 256]);
        assert_eq!(Ring::BeyondL2.least_misses(&skylake, 4096), Some(0.875));
        assert_eq!(Ring::BeyondTlb.least_misses(&Caches::default(), 4096), Some(0.875));
        assert_eq!(Ring::BeyondTlb.shape(&Caches::default(), 65_536), [2048, 65_536]);
        // Without an L3 cache the ring lies in memory.
        assert_eq!(Ring::BeyondL2.shape(&caches(32, 1024, 0), 4096), [32 * KIB, 256]);
    }

    #[test]
    fn nothing_is_known_of_unknown_or_similar_caches() {
        let none = Caches::default();
        assert_eq!(Ring::BeyondL1.least_misses(&none, 4096), None);
        assert_eq!(Ring::BeyondL2.least_misses(&none, 4096), None);
        assert_eq!(Ring::BeyondTlb.least_misses(&none, 65_536), None);
        // The L2 cache is as large as the L1 cache, or the L3 cache as the L2 cache.
        assert_eq!(Ring::BeyondL1.least_misses(&caches(64, 128, 0), 4096), None);
        assert_eq!(Ring::BeyondL2.least_misses(&caches(32, 1024, 2 * KIB), 4096), None);
        assert_eq!(Ring::BeyondL1.least_misses(&caches(0, 512, 0), 4096), None);
    }
}
