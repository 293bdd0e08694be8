//! The reasons and the commands that drain nodes.

use crate::report::screen::{DrainReason, Suggestion};
use pmmpi::text::shell_line;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt::{Display, Formatter, Result};

impl Display for DrainReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::WrongResult { kernel, run_id } => {
                write!(f, "pmmpi: wrong-result: {} {run_id}", kernel.as_deref().unwrap_or("a kernel"))
            }
            Self::Slow { area, slowdown, slower_by_at_least, run_id } => {
                write!(f, "pmmpi: slow-{area}: +{:.1} %", slowdown * 100.0)?;
                if let Some(least) = slower_by_at_least {
                    write!(f, " (at least {:.1} %)", least * 100.0)?;
                }
                write!(f, " {run_id}")
            }
        }
    }
}

/// An object with node, reason and command.
impl Serialize for Suggestion {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Suggestion", 3)?;
        object.serialize_field("node", &self.node)?;
        object.serialize_field("reason", &self.reason)?;
        object.serialize_field("command", &drain_command(self))?;
        object.end()
    }
}

/// The command for Slurm that drains the node, quoted for a shell.
pub fn drain_command(suggestion: &Suggestion) -> String {
    shell_line([
        "scontrol".to_owned(),
        "update".to_owned(),
        format!("NodeName={}", suggestion.name_in_slurm),
        "State=DRAIN".to_owned(),
        format!("Reason={}", suggestion.reason),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_reason_in_quotes() {
        let run_id = "20261127T0119.5Z-8f".to_owned();
        let slow = |slower_by_at_least| DrainReason::Slow {
            area: "memory".to_owned(),
            slowdown: 0.081,
            slower_by_at_least,
            run_id: run_id.clone(),
        };
        let of = |reason| Suggestion { node: "n1.cluster".into(), name_in_slurm: "n1".to_owned(), reason };
        assert_eq!(
            serde_json::to_string(&of(slow(Some(0.074)))).unwrap(),
            "{\"node\":\"n1.cluster\",\"reason\":\"pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261127T0119.5Z-8f\",\
             \"command\":\"scontrol update NodeName=n1 State=DRAIN \
             'Reason=pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261127T0119.5Z-8f'\"}"
        );
        assert_eq!(slow(None).to_string(), "pmmpi: slow-memory: +8.1 % 20261127T0119.5Z-8f");
        let wrong = |kernel: Option<&str>| DrainReason::WrongResult {
            kernel: kernel.map(str::to_owned),
            run_id: run_id.clone(),
        };
        assert_eq!(wrong(Some("fma")).to_string(), "pmmpi: wrong-result: fma 20261127T0119.5Z-8f");
        assert_eq!(wrong(None).to_string(), "pmmpi: wrong-result: a kernel 20261127T0119.5Z-8f");
    }
}
