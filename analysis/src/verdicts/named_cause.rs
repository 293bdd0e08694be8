//! The cause of a slow node or a slow run: its name, and its share of the slowdown.

use super::unusual_health::{HealthKind, UnusualHealth};
use crate::stats::cause::{Cause, CauseKind, NoCause};

/// Among what something is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Among {
    /// A node, by its median run.
    NodesOfClass,
    /// A run.
    RunsOfNode,
}

/// A cause from counters, from the counts of the node's kernel, or from both.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCause {
    /// What the counters show. `None` if they show no single term and the kernel's counts are the cause.
    counted: Option<Cause>,
    /// The unusual counts of the node's kernel. The first one gives the name if `counted` is `None`.
    unusual: Vec<UnusualHealth>,
    /// Among what the node or the run is slow.
    among: Among,
}

impl NamedCause {
    /// The cause from counters, and what the kernel counted. Without a single term, the kernel's count is the cause.
    pub fn of(
        cause: Result<Cause, NoCause>,
        unusual: Vec<UnusualHealth>,
        among: Among,
    ) -> Result<Self, NoCause> {
        let counted = match cause {
            Ok(cause) if unusual.is_empty() || is_single_term(&cause) => Some(cause),
            Err(none) if unusual.is_empty() => return Err(none),
            _ => None,
        };
        Ok(Self { counted, unusual, among })
    }

    /// What the counters show, the unusual counts of the node's kernel, and among what the node or the run is slow. One of
    /// the first two is there.
    pub fn parts(&self) -> (Option<&Cause>, &[UnusualHealth], Among) {
        (self.counted.as_ref(), &self.unusual, self.among)
    }

    /// A stable name for scripts.
    pub fn name(&self) -> &'static str {
        let throttles = self.unusual.iter().any(|unusual| unusual.kind == HealthKind::Throttling);
        match self.counted.as_ref().map(|cause| &cause.kind) {
            // Less time on the processor, or a lower frequency: throttling is the reason behind it.
            Some(CauseKind::Frequency) if throttles => "frequency/throttling",
            Some(CauseKind::NetFrequency) if throttles => "net-frequency/throttling",
            Some(CauseKind::OnCpu) if throttles => "on-cpu/throttling",
            Some(kind) => kind.name(),
            None => self.unusual.first().map_or("", |unusual| unusual.kind.name()),
        }
    }

    /// The term's part of the slowdown; `None` without a single term.
    pub fn share(&self) -> Option<f64> {
        self.counted.as_ref().filter(|cause| is_single_term(cause)).map(|cause| cause.share)
    }
}

fn is_single_term(cause: &Cause) -> bool {
    !matches!(cause.kind, CauseKind::Mixed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counts_are_named_with_the_term_or_alone() {
        let unusual = vec![UnusualHealth {
            kind: HealthKind::Throttling,
            name: "socket_throttles",
            own: 214.0,
            usual: 0.0,
        }];
        let cause = |kind| Ok(Cause { kind, difference: 0.1, share: 0.9, score: 9.0 });
        let named = |cause, unusual: &[UnusualHealth]| {
            NamedCause::of(cause, unusual.to_vec(), Among::NodesOfClass).unwrap()
        };
        let frequency = named(cause(CauseKind::Frequency), &unusual);
        assert_eq!((frequency.name(), frequency.share()), ("frequency/throttling", Some(0.9)));
        assert_eq!(frequency.unusual, unusual);
        assert_eq!(named(cause(CauseKind::Cpi), &unusual).name(), "cpi");
        for none in [Err(NoCause::NothingCounted), cause(CauseKind::Mixed(Vec::new()))] {
            let alone = named(none, &unusual);
            assert_eq!((alone.name(), alone.share()), ("throttling", None));
            assert_eq!((alone.counted, alone.unusual), (None, unusual.clone()));
        }
        let mixed = named(cause(CauseKind::Mixed(Vec::new())), &[]);
        assert_eq!((mixed.name(), mixed.share()), ("mixed", None));
        let none = NamedCause::of(Err(NoCause::NothingCounted), Vec::new(), Among::NodesOfClass);
        assert_eq!(none, Err(NoCause::NothingCounted));
    }
}
