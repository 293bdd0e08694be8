//! The pairs of leaders that exchange data in each step. No leader has two partners at a time.
//!
//! All leaders compute the same schedule from the same seed, without messages.

use fastrand::Rng;

/// Partners of each leader in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partners {
    /// Every other leader, in a random order.
    All,
    /// This number of other leaders, chosen at random; or all of them, if there are fewer.
    Random(u32),
}

/// The pairs of leaders for each step.
///
/// The circle method of round-robin tournaments: number the leaders from 0 to n - 1, with n even. On day d the leaders
/// i and j with i + j = d modulo n - 1 meet; the one with 2i = d meets the last leader. After n - 1 days each pair has met
/// once. Here each leader gets a random number, and the days come in a random order. So a few days are a random choice
/// of pairs in which each leader has one partner per day, and rounds with different seeds load the network in different
/// ways. Source: C. C. Lindner and C. A. Rodger, "Design Theory", 2nd ed., section 5.1; for pairs of nodes also
/// NVIDIA's ClusterKit.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The leader with each number.
    order: Vec<u32>,
    /// The day of each step.
    days: Vec<u32>,
}

impl Schedule {
    /// The schedule of leaders 0 to `leaders - 1`.
    pub fn new(leaders: u32, partners: Partners, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut order: Vec<u32> = (0..leaders).collect();
        random.shuffle(&mut order);
        let mut days: Vec<u32> = (0..if leaders > 1 { seats(leaders) - 1 } else { 0 }).collect();
        random.shuffle(&mut days);
        if let Partners::Random(wanted) = partners {
            days.truncate(wanted as usize);
        }
        Self { order, days }
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.days.len()
    }

    /// The partner of `leader` in each step. `None`: it pauses, because the number of leaders is odd.
    pub fn partners_of(&self, leader: u32) -> Vec<Option<u32>> {
        let number = self.order.iter().position(|of| *of == leader);
        let number = number.and_then(|number| u32::try_from(number).ok());
        let partner =
            |day: &u32| self.order.get(opponent(number?, *day, self.order.len() as u32) as usize).copied();
        self.days.iter().map(partner).collect()
    }
}

/// The leaders, and one that does not exist if their number is odd.
fn seats(leaders: u32) -> u32 {
    leaders.next_multiple_of(2)
}

/// The partner of `number` on `day`; if it is `leaders` or more, `number` has none.
fn opponent(number: u32, day: u32, leaders: u32) -> u32 {
    let days = u64::from(seats(leaders)) - 1;
    let (own, day) = (u64::from(number), u64::from(day));
    let other = match own == days {
        // The last leader meets the one with 2i = d. The number of days is odd, so (days + 1) / 2 is the inverse of 2.
        true => day * days.div_ceil(2) % days,
        false => (day + days - own) % days,
    };
    // Both are below 2^32.
    if other == own { days as u32 } else { other as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The pairs of all steps. Checks that the schedule is symmetric and that a leader that pauses is alone in that.
    fn pairs(leaders: u32, schedule: &Schedule) -> Vec<(u32, u32)> {
        let partners: Vec<Vec<Option<u32>>> =
            (0..leaders).map(|leader| schedule.partners_of(leader)).collect();
        let mut pairs = Vec::new();
        for step in 0..schedule.steps() {
            let in_step: Vec<Option<u32>> = partners.iter().map(|of| of[step]).collect();
            let mut pauses = 0;
            for leader in 0..leaders {
                let Some(partner) = in_step[leader as usize] else {
                    pauses += 1;
                    continue;
                };
                assert_ne!(leader, partner);
                assert_eq!(in_step[partner as usize], Some(leader), "step {step} of {leaders}");
                pairs.extend((leader < partner).then_some((leader, partner)));
            }
            assert_eq!(pauses, leaders % 2);
        }
        pairs
    }

    #[test]
    fn all_pairs_meet_once() {
        for leaders in (0..=40).chain([99, 128]) {
            let schedule = Schedule::new(leaders, Partners::All, u64::from(leaders));
            let pairs = pairs(leaders, &schedule);
            assert_eq!(pairs.len() as u32, leaders * leaders.saturating_sub(1) / 2);
            assert_eq!(pairs.iter().collect::<HashSet<_>>().len(), pairs.len());
            let least_steps = if leaders > 1 { leaders - 1 + leaders % 2 } else { 0 };
            assert_eq!(schedule.steps() as u32, least_steps);
        }
    }

    #[test]
    fn random_partners_are_different_ones() {
        for (leaders, wanted) in [(2, 8), (3, 8), (8, 8), (9, 8), (10, 8), (101, 8), (1000, 3), (500, 0)] {
            let schedule = Schedule::new(leaders, Partners::Random(wanted), 5);
            let steps = wanted.min(leaders - 1 + leaders % 2);
            assert_eq!(schedule.steps() as u32, steps);
            let pairs = pairs(leaders, &schedule);
            assert_eq!(pairs.iter().collect::<HashSet<_>>().len(), pairs.len());
            for leader in 0..leaders {
                let partners = pairs.iter().filter(|(a, b)| *a == leader || *b == leader).count() as u32;
                // With an odd number each leader pauses once at most.
                assert!(partners == steps || (leaders % 2 == 1 && partners + 1 == steps));
            }
        }
    }

    #[test]
    fn ten_thousand_leaders_have_one_partner_per_step() {
        for leaders in [10_000, 10_001] {
            let schedule = Schedule::new(leaders, Partners::Random(8), 1);
            // Each search for a leader's number is a pass over all leaders, so this test asks a few leaders only.
            for leader in (0..leaders).step_by(997) {
                let partners = schedule.partners_of(leader);
                for (step, partner) in partners.iter().enumerate() {
                    let Some(partner) = partner else { continue };
                    assert_eq!(schedule.partners_of(*partner)[step], Some(leader));
                }
                assert!(partners.iter().flatten().collect::<HashSet<_>>().len() >= 7);
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| Schedule::new(100, Partners::Random(8), seed).partners_of(7);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// Further rounds: the suspects and at least five other nodes, all of whose pairs meet.
    #[test]
    fn suspects_meet_all_nodes_beside_them() {
        for suspects in [1, 2, 7, 40] {
            let schedule = Schedule::new(suspects + 5, Partners::All, 3);
            for suspect in 0..suspects {
                let partners = schedule.partners_of(suspect);
                assert_eq!(partners.iter().flatten().filter(|partner| **partner >= suspects).count(), 5);
            }
        }
    }

    #[test]
    fn who_is_no_leader_has_no_partner() {
        assert!(Schedule::new(4, Partners::All, 1).partners_of(4).iter().all(Option::is_none));
        assert_eq!(Schedule::new(1, Partners::All, 1).partners_of(0), []);
    }
}
