//! What `pmmpi` asks of the runner.

use crate::plan::RoundsPlan;
use crate::screen_plan::ScreenPlan;
use serde::{Deserialize, Serialize};

/// The work of the runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunnerPlan {
    /// Rounds of a plain program.
    Rounds(Box<RoundsPlan>),
    /// Rounds of `pmmpi screen`.
    Screen(Box<ScreenPlan>),
}

impl RunnerPlan {
    /// The settings that all kinds of rounds have.
    pub fn rounds(&self) -> &RoundsPlan {
        match self {
            Self::Rounds(plan) => plan,
            Self::Screen(plan) => &plan.rounds,
        }
    }

    /// The same, to change them.
    pub fn rounds_mut(&mut self) -> &mut RoundsPlan {
        match self {
            Self::Rounds(plan) => plan,
            Self::Screen(plan) => &mut plan.rounds,
        }
    }
}
