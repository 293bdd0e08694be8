//! Processors with several kinds of cores.
//!
//! An event of one kind of core follows a program everywhere, but counts only on cores of its kind. On other cores
//! the kernel leaves it inactive: `visit_groups_merge` of kernel/events/core.c asks the PMU's filter, which is
//! `intel_pmu_filter` of arch/x86/events/intel/core.c or `armpmu_filter` of drivers/perf/arm_pmu.c (before Linux
//! 6.2 `pmu_filter_match` asked `intel_pmu_filter_match` or `armpmu_filter_match`). The time of an inactive event
//! is enabled and not running (`__perf_update_times`). So count x enabled / running would extrapolate to cores on
//! which the event does not happen.
//!
//! Let E be the time for which the event of each kind was enabled, and R the total time for which the events of all
//! kinds were running. If R is less than E, events shared counters. Which kind shared more is unknown, so each
//! count is scaled by E / R.

use pmmpi::counters::count_and_quality::{Gap, Reading, WhyUnavailable};
use pmmpi::counters::event::{Event, Modes, kind};
use pmmpi::counters::open_counters::{Scope, Set};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The PMUs of a node's kinds of cores; empty if there is one kind. (On another node they have other numbers.)
#[derive(Debug, Default)]
pub(crate) struct CoreKinds<'a> {
    /// Names by number.
    pmus: BTreeMap<u32, Option<&'a str>>,
    /// False if some nodes have one kind of core: there, another PMU has this number.
    everywhere: bool,
}

/// The same event of several kinds: the name after the PMU's, the modes, and a number that tells repetitions apart.
type Family<'a> = (&'a str, Modes, usize);

impl<'a> CoreKinds<'a> {
    /// From the sets that were counted on the node.
    pub(crate) fn of(sets: impl IntoIterator<Item = &'a Set>) -> Self {
        let mut kinds = Self { pmus: BTreeMap::new(), everywhere: true };
        let tasks = sets.into_iter().filter(|set| set.scope == Scope::Task);
        for (event, _) in tasks.flat_map(|set| &set.events) {
            match (event.encoding.kind, pmu_type(event)) {
                (_, Some(number)) => {
                    let name = kinds.pmus.entry(number).or_default();
                    *name = name.or(parts(&event.name).0);
                }
                (kind::HARDWARE | kind::CACHE, None) => kinds.everywhere = false,
                _ => {}
            }
        }
        kinds
    }

    /// True if there is one kind.
    pub(crate) fn is_one(&self) -> bool {
        self.pmus.is_empty()
    }

    /// The kind of core that counts an event; `None` if all kinds do.
    fn of_event(&self, event: &Event) -> Option<u32> {
        let number = match event.encoding.kind {
            kind::HARDWARE | kind::CACHE => return pmu_type(event),
            kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT => return None,
            number => number,
        };
        let is_its = match (self.pmus.get(&number), parts(&event.name).0) {
            (Some(Some(pmu)), Some(named)) => *pmu == named,
            (Some(_), None) => self.everywhere,
            // RAW is the number of none of the kinds' PMUs: the kernel chose one of them.
            (None, None) => number == kind::RAW && self.everywhere,
            _ => false,
        };
        is_its.then_some(number)
    }

    /// Replaces times on one kind of core by times on the processor. `readings` belong to one row of a program's
    /// own threads.
    pub(crate) fn put_together(&self, readings: &mut [(&Event, Reading)]) {
        if self.is_one() {
            return;
        }
        let mut families: HashMap<Family, Vec<(usize, u32)>> = HashMap::new();
        let mut known: HashMap<(&str, Modes, u32), usize> = HashMap::new();
        for (at, (event, _)) in readings.iter().enumerate() {
            let Some(kind) = self.of_event(event) else { continue };
            let (terms, modes) = (parts(&event.name).1, event.encoding.modes);
            // Several groups may count the same event.
            let nth = known.entry((terms, modes, kind)).or_default();
            families.entry((terms, modes, *nth)).or_default().push((at, kind));
            *nth += 1;
        }
        for mut members in families.into_values() {
            members.retain(|(at, _)| was_counted(&readings[*at].1));
            let running_ns = members.iter().map(|(at, _)| readings[*at].1.running_ns);
            let running_ns = running_ns.fold(0, u64::saturating_add);
            let counting: HashSet<u32> = members.iter().map(|(_, kind)| *kind).collect();
            let all_count = self.pmus.keys().all(|kind| counting.contains(kind));
            for (at, _) in members {
                let reading = &mut readings[at].1;
                *reading = on_the_processor(*reading, running_ns, all_count);
            }
        }
    }
}

/// The reading of one kind's event for the whole processor. All readings of the same event were running for
/// `running_ns` together; `all_count` is true if they cover all kinds.
fn on_the_processor(reading: Reading, running_ns: u64, all_count: bool) -> Reading {
    let all_the_time = running_ns.saturating_add(apart_ns(reading.enabled_ns)) >= reading.enabled_ns;
    match () {
        () if running_ns > 0 && all_the_time => Reading { running_ns: reading.enabled_ns, ..reading },
        () if running_ns > 0 && all_count => Reading { running_ns, ..reading },
        // Time on other kinds looks the same as time without a counter.
        () if reading.running_ns > 0 => Reading { gap: Some(Gap::OneKindOfCore), ..reading },
        () if !all_count => Reading { gap: Some(Gap::Unavailable(WhyUnavailable::NotOnItsCores)), ..reading },
        () => reading,
    }
}

/// Allowed difference (ns). Groups are read one after the other, so their times end some microseconds apart on each
/// thread.
fn apart_ns(enabled_ns: u64) -> u64 {
    const ONE_THREAD_NS: u64 = 20_000;
    ONE_THREAD_NS.max(enabled_ns / 10_000)
}

fn was_counted(reading: &Reading) -> bool {
    reading.gap.is_none_or(|gap| gap.quality().has_value())
}

/// The PMU of an event that every kernel knows (linux/perf_event.h, PERF_PMU_TYPE_SHIFT); `None` if any PMU counts
/// it.
fn pmu_type(event: &Event) -> Option<u32> {
    let encoding = event.encoding;
    let number = (encoding.config[0] >> 32) as u32;
    (matches!(encoding.kind, kind::HARDWARE | kind::CACHE) && number != 0).then_some(number)
}

/// Splits "cpu_core/cycles/u" into the PMU "cpu_core" and "cycles/u".
fn parts(name: &str) -> (Option<&str>, &str) {
    name.split_once('/').map_or((None, name), |(pmu, rest)| (Some(pmu), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readings::readings;
    use crate::totals::{Total, sums, totals};
    use pmmpi::RankId;
    use pmmpi::counters::count_and_quality::Quality;
    use pmmpi::counters::counts::{CountRow, Counts, GroupCounts};
    use pmmpi::counters::event::Encoding;
    use proptest::prelude::*;

    /// PMUs of a processor with three kinds of cores: name and number.
    const PMUS: [(&str, u32); 3] = [("cpu_core", 4), ("cpu_atom", 10), ("cpu_lowpower", 11)];
    const MS: u64 = 1_000_000;

    fn cycles([name, modes]: [&str; 2], number: u32) -> Event {
        let encoding = Encoding::new(kind::HARDWARE, u64::from(number) << 32);
        Event::counted(&format!("{name}/cycles/{modes}"), encoding)
    }

    /// Each event in a group of its own.
    fn set(events: Vec<Event>) -> Set {
        let groups = (0..events.len() as u32).map(|at| vec![at]).collect();
        Set { events: events.into_iter().map(|event| (event, None)).collect(), groups, ..Set::default() }
    }

    /// One rank; for each group: ns enabled, ns running, and the count.
    fn counts(sets: Vec<Set>, groups: &[[u64; 3]]) -> Counts {
        let group = |[enabled_ns, running_ns, count]: &[u64; 3]| {
            Some(GroupCounts { enabled_ns: *enabled_ns, running_ns: *running_ns, counts: vec![*count] })
        };
        let groups = groups.iter().map(group).collect();
        let row = CountRow { rank: RankId(0), cpu: None, set: 0, region: None, groups };
        Counts { sets, rows: vec![row], ..Counts::default() }
    }

    fn of_kinds(kinds: usize, groups: &[[u64; 3]]) -> Counts {
        let events = PMUS[..kinds].iter().map(|(name, number)| cycles([name, ""], *number));
        counts(vec![set(events.collect())], groups)
    }

    fn values(counts: &Counts) -> Vec<(Option<u64>, Quality)> {
        readings(counts, &counts.rows[0]).map(|(_, reading)| (reading.value(), reading.quality())).collect()
    }

    #[test]
    fn time_on_other_cores_is_no_missing_time() {
        // 30 ms on one kind, 70 ms on the other: nothing to scale.
        let moved = of_kinds(2, &[[100 * MS, 30 * MS, 900], [100 * MS, 70 * MS, 140]]);
        assert_eq!(values(&moved), [(Some(900), Quality::Exact), (Some(140), Quality::Exact)]);
        // Never on the second kind: its count is exactly 0.
        let stayed = of_kinds(2, &[[100 * MS, 100 * MS, 900], [100 * MS, 0, 0]]);
        assert_eq!(values(&stayed), [(Some(900), Quality::Exact), (Some(0), Quality::Exact)]);
        // The events had counters for half of the time.
        let shared = of_kinds(2, &[[100 * MS, 15 * MS, 450], [100 * MS, 35 * MS, 70]]);
        assert_eq!(values(&shared), [(Some(900), Quality::Scaled), (Some(140), Quality::Scaled)]);
        let shares: Vec<_> = readings(&shared, &shared.rows[0]).map(|(_, r)| r.running_share()).collect();
        assert_eq!(shares, [Some(0.5); 2]);
        // Groups are read some microseconds apart.
        let apart = of_kinds(2, &[[100 * MS, 30 * MS, 900], [100 * MS + 5000, 70 * MS - 3000, 140]]);
        assert_eq!(values(&apart), [(Some(900), Quality::Exact), (Some(140), Quality::Exact)]);
        let never = of_kinds(2, &[[100 * MS, 0, 0], [100 * MS, 0, 0]]);
        assert_eq!(values(&never), [(None, Quality::Unavailable); 2]);
        let three = of_kinds(3, &[[9 * MS, 3 * MS, 5], [9 * MS, 2 * MS, 6], [9 * MS, 4 * MS, 7]]);
        assert!(values(&three).iter().all(|(_, quality)| *quality == Quality::Exact));
    }

    #[test]
    fn what_is_stored_stays_as_it_was_counted() {
        let counts = of_kinds(2, &[[100, 30, 900], [100, 0, 0]]);
        let stored = counts.clone();
        assert_eq!(values(&counts).len(), 2);
        assert_eq!(counts, stored);
    }

    /// The default set has events of both kinds; the raw event is of only one kind.
    #[test]
    fn one_kind_alone_is_a_part_and_is_not_extrapolated() {
        let one = |enabled, running, count| {
            let both = set(PMUS[..2].iter().map(|(name, number)| cycles([name, ""], *number)).collect());
            let raw = set(vec![Event::counted("cpu_core/r1c0/", Encoding::new(4, 0x1c0))]);
            let mut counts = counts(vec![raw, both], &[[enabled, running, count]]);
            counts.rows.push(CountRow { set: 1, groups: Vec::new(), ..counts.rows[0].clone() });
            let (_, reading) = readings(&counts, &counts.rows[0]).next().unwrap();
            (reading.value(), reading.quality(), reading.reason())
        };
        let (value, quality, reason) = one(100 * MS, 30 * MS, 900);
        assert_eq!((value, quality), (Some(900), Quality::Partial));
        assert!(reason.unwrap().starts_with("counted only for a part of the time"));
        assert_eq!(one(100 * MS, 100 * MS, 900), (Some(900), Quality::Exact, None));
        let (value, quality, reason) = one(100 * MS, 0, 0);
        assert_eq!((value, quality), (None, Quality::Unavailable));
        assert!(reason.unwrap().starts_with("the program never ran on this kind of core"));
    }

    /// Each node's kernel numbers its PMUs itself.
    #[test]
    fn another_node_has_other_numbers() {
        let here = of_kinds(2, &[[100 * MS, 15 * MS, 450], [100 * MS, 35 * MS, 70]]);
        let events = [("cpu_core", 4), ("cpu_atom", 8)].map(|(name, number)| cycles([name, ""], number));
        let mut there =
            counts(vec![set(events.into())], &[[100 * MS, 20 * MS, 600], [100 * MS, 30 * MS, 60]]);
        there.rows[0].rank = RankId(1);
        let mut both = here.clone();
        both.join(there);
        let of = |row: usize| -> Vec<_> {
            readings(&both, &both.rows[row])
                .map(|(_, reading)| (reading.value(), reading.quality()))
                .collect()
        };
        assert_eq!(of(0), values(&here));
        assert_eq!(of(1), [(Some(1200), Quality::Scaled), (Some(120), Quality::Scaled)]);
        let totals = totals(&both, |_| true);
        assert_eq!(totals.iter().map(|total| total.count).collect::<Vec<_>>(), [Some(2100), Some(260)]);
    }

    /// An event that one kind could not open makes the others partial.
    #[test]
    fn a_kind_that_does_not_count_makes_the_others_a_part() {
        let mut counts = of_kinds(2, &[[100 * MS, 30 * MS, 900], [100 * MS, 70 * MS, 140]]);
        counts.sets[0].events[1].1 = Some(Gap::Unsupported(libc::ENOENT));
        counts.sets[0].groups.truncate(1);
        counts.rows[0].groups.truncate(1);
        assert_eq!(values(&counts), [(Some(900), Quality::Partial), (None, Quality::Unsupported)]);
        let totals = totals(&counts, |_| true);
        let sum = &sums(&totals)[0];
        assert_eq!((sum.count, sum.quality), (None, Quality::Unsupported));
        // User mode alone on every kind: each count is partial, and together they cover the whole time.
        let mut user = of_kinds(2, &[[100 * MS, 15 * MS, 450], [100 * MS, 35 * MS, 70]]);
        user.sets[0].events.iter_mut().for_each(|(_, gap)| *gap = Some(Gap::UserModeOnly));
        assert_eq!(values(&user), [(Some(900), Quality::Partial), (Some(140), Quality::Partial)]);
    }

    #[test]
    fn each_mode_and_each_group_is_on_its_own() {
        let mut events = Vec::new();
        for modes in ["", "u", ""] {
            for (name, number) in &PMUS[..2] {
                let mut event = cycles([name, modes], *number);
                event.encoding.modes = if modes == "u" { Modes::User } else { Modes::All };
                events.push(event);
            }
        }
        let e = 100 * MS;
        // All of the time, half of it, and a quarter of it.
        let groups = [
            [e, 40 * MS, 40],
            [e, 60 * MS, 60],
            [e, 20 * MS, 2],
            [e, 30 * MS, 3],
            [e, 10 * MS, 10],
            [e, 15 * MS, 15],
        ];
        let found: Vec<_> = values(&counts(vec![set(events)], &groups)).iter().map(|(v, _)| *v).collect();
        assert_eq!(found, [40, 60, 4, 6, 40, 60].map(Some));
    }

    /// A processor with one kind of core may use the same numbers and names for other PMUs.
    #[test]
    fn other_nodes_are_not_meant() {
        let hybrid = set(PMUS[..2].iter().map(|(name, number)| cycles([name, ""], *number)).collect());
        let plain = set(vec![
            Event::counted("cycles", Encoding::new(kind::HARDWARE, 0)),
            Event::counted("r1c0", Encoding::new(kind::RAW, 0x1c0)),
            Event::counted("cpu/event=0xc0/", Encoding::new(kind::RAW, 0xc0)),
        ]);
        let counts = counts(vec![plain, hybrid], &[[100 * MS, 25 * MS, 10]; 3]);
        assert_eq!(values(&counts), [(Some(40), Quality::Scaled); 3]);
    }

    #[test]
    fn sums_say_of_what() {
        let moved = of_kinds(2, &[[100 * MS, 15 * MS, 450], [100 * MS, 35 * MS, 70]]);
        let parts = totals(&moved, |_| true);
        let all = sums(&parts);
        let [sum] = &all[..] else { panic!("{all:?}") };
        assert_eq!((sum.name.as_str(), sum.count, sum.quality), ("cycles", Some(1040), Quality::Scaled));
        assert_eq!((sum.running_share, sum.value()), (Some(0.5), Some(1040.0)));
        let said =
            "the sum of cpu_core/cycles/ and cpu_atom/cycles/; cpu_core/cycles/: rank 0: counted 50.0 %";
        assert!(sum.reason.starts_with(said), "{}", sum.reason);
        // Nodes of one kind of core count the same event by its plain name.
        let plain = set(vec![Event::counted("cycles", Encoding::new(kind::HARDWARE, 0))]);
        let plain = counts(vec![plain], &[[MS, MS, 8]]);
        let mut cluster = of_kinds(2, &[[MS, MS, 450], [MS, 0, 0]]);
        cluster.join(plain);
        let parts = totals(&cluster, |_| true);
        let all = sums(&parts);
        let [sum] = &all[..] else { panic!("{all:?}") };
        assert_eq!((sum.count, sum.quality, sum.of.len()), (Some(458), Quality::Exact, 3));
        assert!(parts.iter().filter(|total| sum.is_named_like(total)).count() == 1);
        assert_eq!(sum.reason, "the sum of cpu_core/cycles/, cpu_atom/cycles/ and cycles");
        // Memory controllers. An event with another unit is another event.
        let controller = |at: u32, unit: &str| Event {
            unit: unit.into(),
            scale: 64.0,
            ..Event::counted(&format!("uncore_imc_{at}/cas_count_read/"), Encoding::new(20 + at, 0x304))
        };
        let mut events: Vec<Event> = (0..6).map(|at| controller(at, "bytes")).collect();
        events.push(controller(6, "lines"));
        let totals: Vec<Total> = events
            .iter()
            .map(|event| Total {
                scope: Scope::Socket,
                event,
                count: Some(2),
                quality: Quality::Exact,
                reason: None,
                running_share: Some(1.0),
                places: 1,
                most: Some(2),
                user_mode_only: false,
            })
            .collect();
        let all = sums(&totals);
        let [sum] = &all[..] else { panic!("{all:?}") };
        assert_eq!((sum.name.as_str(), sum.value()), ("uncore_imc/cas_count_read/", Some(768.0)));
        let said = "the sum of uncore_imc_0/cas_count_read/ to uncore_imc_5/cas_count_read/ (6 events)";
        assert_eq!(sum.reason, said);
        let mut most = totals.clone();
        most.iter_mut().for_each(|total| total.count = Some(u64::MAX));
        assert_eq!((sums(&most)[0].count, sums(&most)[0].quality), (None, Quality::Overflowed));
    }

    proptest! {
        /// A task moves between kinds, with a counter for all of the time or a part of it.
        #[test]
        fn what_happened_is_what_is_said(
            stays in prop::collection::vec((0usize..3, 1u64..400), 1..20),
            per_us in prop::array::uniform3(1u64..5000),
            shared in prop::option::of(1u64..100),
        ) {
            let mut truth = [0u64; 3];
            let (mut enabled, mut running, mut counted) = (0, [0u64; 3], [0u64; 3]);
            for (kind, time) in stays {
                let ns = time * 10_000_000;
                // `shared` hundredths of each stay.
                let here = ns / 100 * shared.unwrap_or(100);
                enabled += ns;
                running[kind] += here;
                counted[kind] += here / 1000 * per_us[kind];
                truth[kind] += ns / 1000 * per_us[kind];
            }
            let groups = [0, 1, 2].map(|kind| [enabled, running[kind], counted[kind]]);
            for (kind, (value, quality)) in values(&of_kinds(3, &groups)).into_iter().enumerate() {
                let value = value.unwrap();
                prop_assert!(value.abs_diff(truth[kind]) <= 1, "{} {}", value, truth[kind]);
                prop_assert_eq!(quality, if shared.is_some() { Quality::Scaled } else { Quality::Exact });
            }
        }

        /// No panic, and no value from nothing.
        #[test]
        fn any_numbers_are_read(
            groups in prop::collection::vec(prop::array::uniform3(any::<u64>()), 3),
            kinds in 1usize..4,
        ) {
            let counts = of_kinds(kinds, &groups[..kinds]);
            let nothing = groups[..kinds].iter().all(|[_, running, _]| *running == 0);
            let values = values(&counts);
            prop_assert!(!nothing || values.iter().all(|(value, _)| value.is_none()));
            sums(&totals(&counts, |_| true));
        }
    }
}
