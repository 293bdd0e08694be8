//! Checks `pmmpi validate` on a processor that counts each instruction once: the verdicts are known in advance.

use crate::tool::{elements, json, named, pmmpi};
use crate::{Check, unless};
use pmmpi_events::validation::{self, EventVerdict, Trust};
use rig::tool::Folder;
use serde_json::Value;
use std::sync::LazyLock;

/// What it printed, what it stored, and its exit status.
type Found = (Value, Trust, Option<i32>);

/// Runs all kernels, only once.
static FOUND: LazyLock<Result<Found, String>> = LazyLock::new(|| {
    let folder = Folder::new("trust");
    let output = pmmpi(&["validate", "--format", "json"], |command| {
        command.env(validation::FOLDER_VARIABLE, folder.path());
    })?;
    Ok((json(&output)?, Trust::read(folder.path()), output.status.code()))
});

fn found() -> Result<&'static Found, String> {
    FOUND.as_ref().map_err(Clone::clone)
}

fn check<'a>(found: &'a Value, kernel: &str, event: &str) -> Result<&'a Value, String> {
    let checks = elements(&named(&found["kernels"], kernel)?["checks"]);
    let check = checks.iter().find(|check| check["event"] == event);
    check.ok_or_else(|| format!("{event} is not held against {kernel}"))
}

/// The counts of kernels that stay in user mode: the instructions of their code, plus those of interrupts.
pub fn instructions() -> Check {
    let (found, ..) = found()?;
    let (mut largest, mut held) = (0.0f64, 0);
    let runs = |kernel: &&pmmpi_kernels::Kernel| kernel.stays_in_user_mode && !kernel.without_prefetch;
    for kernel in pmmpi_kernels::all().iter().filter(runs) {
        let check = check(found, kernel.name, "instructions")?;
        let paper = kernel.body.instructions.of(kernel.trips);
        let measured = check["measured"].as_f64().unwrap_or(0.0);
        let off = (measured - paper) / paper;
        if check["expected"] != serde_json::json!([paper, paper]) || !(0.0..=0.01).contains(&off) {
            return Err(format!("{}: {check}", kernel.name));
        }
        (largest, held) = (largest.max(off), held + 1);
    }
    unless(held == 0, format!("{held} kernels, with at most {:.3} % of interrupts", largest * 100.0))
}

/// Exact counts.
pub fn to_the_last_one() -> Check {
    let (found, ..) = found()?;
    let mut said = Vec::new();
    for (kernel, event) in [("page-touch", "page_faults"), ("sleeps", "context_switches")] {
        let (check, trips) = (check(found, kernel, event)?, &named(&found["kernels"], kernel)?["trips"]);
        if check["measured"].as_f64() != trips.as_f64() {
            return Err(format!("{kernel}: {check}"));
        }
        said.push(format!("{trips} {event}"));
    }
    // The guest has one hardware thread.
    let skipped = named(&found["kernels"], "migrations")?["skipped"].as_str().unwrap_or_default();
    unless(!skipped.contains("two hardware threads"), format!("{}; migrations: {skipped}", said.join(", ")))
}

/// Counted events are trusted, uncounted events have no verdict, and the exit status shows no problem.
pub fn verdicts() -> Check {
    let (found, kept, status) = found()?;
    let cpu = found["cpu"]["name"].as_str().unwrap_or_default();
    let (mut trusted, mut absent) = (Vec::new(), Vec::new());
    for event in elements(&found["events"]) {
        let name = event["name"].as_str().unwrap_or_default();
        match kept.of(cpu, name) {
            EventVerdict::Trusted => trusted.push(name),
            EventVerdict::Unknown if event["reason"].is_string() && event["deviation"].is_null() => {
                absent.push(name)
            }
            _ => return Err(event.to_string()),
        }
    }
    trusted.sort_unstable();
    let mut expected =
        ["cycles", "context_switches", "instructions", "instructions_kernel", "page_faults", "task_clock_ns"];
    expected.sort_unstable();
    let said = format!("{cpu}: trusted {}; not counted here {}", trusted.join(", "), absent.join(", "));
    unless(trusted != expected || absent.is_empty() || *status != Some(0), said)
}
