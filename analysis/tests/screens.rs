//! `pmmpi-report screen`, as `pmmpi screen` starts it and as users do: files of screens, with and without an archive.

mod common;
#[path = "screens/made.rs"]
mod made;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

#[path = "screens/against.rs"]
mod against;
#[path = "screens/gate.rs"]
mod gate;
#[path = "screens/history.rs"]
mod history;
#[path = "screens/later.rs"]
mod later;
#[path = "screens/lists.rs"]
mod lists;
#[path = "screens/rounds.rs"]
mod rounds;
#[path = "screens/sessions.rs"]
mod sessions;
#[path = "screens/statuses.rs"]
mod statuses;
#[path = "screens/verdicts.rs"]
mod verdicts;
#[path = "screens/warnings.rs"]
mod warnings;
#[path = "screens/wrong_data.rs"]
mod wrong_data;
