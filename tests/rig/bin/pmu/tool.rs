//! Checks the tool itself on this machine: `pmmpi` is beside this program.

use crate::{Check, LOOP, TURNS, is_near, unless};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::record::Run;
use pmmpi_events::metrics;
use pmmpi_events::totals::totals;
use pmmpi_events::validation::Trust;
use rig::tool::Folder;
use serde_json::Value;
use std::process::{Command, Output};

/// Runs `pmmpi` with these arguments; `more` may configure the command further.
pub fn pmmpi(args: &[&str], more: impl FnOnce(&mut Command)) -> Result<Output, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("pmmpi");
    let mut command = Command::new(&program);
    more(command.args(args));
    command.output().map_err(|e| format!("{}: {e}", program.display()))
}

/// The JSON that the command printed.
pub fn json(output: &Output) -> Result<Value, String> {
    let said = || format!("{}, {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).map_err(|e| format!("{e}: {}", said()))
}

/// The element of a list with this name.
pub fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value, String> {
    let found = elements(list).iter().find(|one| one["name"] == name);
    found.ok_or_else(|| format!("there is no {name}"))
}

pub fn elements(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The values of these keys as text.
fn says(value: &Value, keys: &[&str]) -> String {
    let of = |key: &&str| value[*key].as_str().map_or_else(|| value[*key].to_string(), str::to_owned);
    keys.iter().map(of).collect::<Vec<_>>().join(" ")
}

pub fn doctor() -> Check {
    let found = json(&pmmpi(&["doctor", "--format", "json"], |_| ())?)?;
    let (pmu, software) = (named(&found["checks"], "pmu")?, named(&found["checks"], "software_events")?);
    let said = format!("{}; {}", says(pmu, &["status", "found"]), says(software, &["status", "found"]));
    let pmu = pmu["found"].as_str().unwrap_or_default();
    let has_pmu = pmu.starts_with("pmmpi can count 4 of 5 events; ref_cycles: not counted by this processor");
    unless(!has_pmu || software["status"] != "ok", said)
}

/// Events that the processor counts open; events that it lacks have a reason.
pub fn events() -> Check {
    let found = json(&pmmpi(&["list", "events", "--format", "json"], |_| ())?)?;
    let opening = ["instructions", "cycles", "page_faults", "armv8_pmuv3/inst_retired/"];
    let lacking = ["branches", "branch-misses", "L1-dcache-loads", "LLC-load-misses", "ref_cycles"];
    let mut said = Vec::new();
    let mut wrong = Vec::new();
    for (name, opens) in opening.map(|name| (name, true)).into_iter().chain(lacking.map(|name| (name, false)))
    {
        let event = named(&found["events"], name)?;
        let line = says(event, &["name", "quality", "reason"]);
        let is_right = event["opens"] == opens && event["reason"].is_null() == opens;
        if is_right { &mut said } else { &mut wrong }.push(line);
    }
    unless(!wrong.is_empty(), if wrong.is_empty() { said.join("; ") } else { wrong.join("; ") })
}

const THREADS: u64 = 3;
const CHILDREN: u64 = 3;

/// Measures this program's `work` with the tool. Returns the run and the tool's messages.
fn measured(turns: u64, options: &[&str]) -> Result<(Run, String), String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let folder = Folder::new("runs");
    let output = pmmpi(&[options, &["--events", "instructions:u", "--out"]].concat(), |command| {
        command
            .arg(folder.path())
            .arg(own)
            .arg("work")
            .args([THREADS, CHILDREN, turns].map(|number| number.to_string()));
    })?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match folder.runs().pop() {
        Some(run) if output.status.success() => Ok((run, said.lines().last().unwrap_or_default().to_owned())),
        _ => Err(format!("{}: {said}", output.status)),
    }
}

fn counted(run: &Run, event: &str) -> Result<u64, String> {
    let totals = totals(&run.counts, |_| true);
    let total = totals.iter().find(|total| total.event.name == event);
    let total = total.ok_or_else(|| format!("{event} was not asked for"))?;
    let why = || {
        format!(
            "{event} {}: {}",
            total.quality.name(),
            total.reason.as_ref().map(ToString::to_string).unwrap_or_default()
        )
    };
    total.count.filter(|_| total.quality == Quality::Exact).ok_or_else(why)
}

/// A plain program with threads and children, with the default set and an additional event.
pub fn a_run() -> Check {
    let ((less, _), (more, said)) = (measured(TURNS, &[])?, measured(2 * TURNS, &[])?);
    let loops = 1 + THREADS + CHILDREN;
    let in_user_mode = counted(&more, "instructions:u")?;
    let grown = in_user_mode - counted(&less, "instructions:u")?;
    let (all, kernel) = (counted(&more, "instructions")?, counted(&more, "instructions_kernel")?);
    let cycles = counted(&more, "cycles")?;
    let (clock_ns, record) = (counted(&more, "task_clock_ns")?, &more.ranks[0]);
    let cpu_ns = (record.cpu_user_ns + record.cpu_system_ns) as u64;
    let values = metrics::of_run(&more, &Trust::default());
    let ipc = values.iter().find(|value| value.metric.name == "ipc").ok_or("there is no metric ipc")?;
    let found = format!(
        "{grown} instructions more in {loops} loops; {in_user_mode} in user mode, {} by the difference; ipc {:?}; \
         task clock {clock_ns} ns, wait4 {cpu_ns} ns; {said}",
        all - kernel,
        ipc.value(),
    );
    let wrong = !is_near(grown, loops * LOOP, 20)
        // The kernel starts the two counters one after the other.
        || (all - kernel).abs_diff(in_user_mode) > 10_000
        || ipc.value() != Some(all as f64 / cycles as f64)
        || ipc.quality() != Quality::Exact
        || !said.contains("instructions per cycle")
        || counted(&more, "ref_cycles").is_ok()
        || !is_near(clock_ns, cpu_ns, 20_000);
    unless(wrong, found)
}

/// The row of the hardware thread has what all programs execute there: beside the loops, the same in both runs.
pub fn the_row_of_a_hardware_thread() -> Check {
    let row = |turns: u64| -> Result<u64, String> {
        let (run, _) = measured(turns, &["--scope", "core"])?;
        let counts = run.counts.only(|row| row.cpu == Some(0));
        let totals = totals(&counts, |_| true);
        let total = totals.iter().find(|total| total.event.name == "instructions:u");
        let total = total.ok_or("hardware thread 0 has no row of instructions:u")?;
        total.count.filter(|_| total.places == 1).ok_or_else(|| format!("{:?}", total.reason))
    };
    let (less, more) = (row(TURNS)?, row(2 * TURNS)?);
    let (grown, loops) = (more - less, 1 + THREADS + CHILDREN);
    unless(!is_near(grown, loops * LOOP, 20), format!("{less}, then {more}: {grown} more in {loops} loops"))
}

/// `pmmpi repeat --groups` counts in each launch what a launch with this group alone counts, within 20 ppm: the start of a
/// program takes some more or fewer instructions each time.
pub fn groups_in_turn() -> Check {
    const GROUPS: [&str; 3] = ["efficiency", "noise", "frequency"];
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let tool = own.with_file_name("pmmpi");
    let work = |command: &mut Command, folder: &Folder, group: Option<&str>| {
        command.args(group.map(|group| ["--group", group]).into_iter().flatten());
        command.args(["--events", "instructions:u", "--out"]).arg(folder.path()).arg(&own);
        command.args(["work", "0", "0", &TURNS.to_string()]);
    };
    let in_turn = Folder::new("turns");
    let list = GROUPS.join(",");
    let output = pmmpi(&["repeat", "--runs", "2", "--groups", &list, "--"], |command| {
        work(command.arg(&tool), &in_turn, None);
    })?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let of = |run: &Run| {
        let asked = run.asked.iter().find_map(|asked| asked.typed.strip_prefix("--group "));
        Ok((asked.unwrap_or_default().to_owned(), counted(run, "instructions:u")?))
    };
    let mut runs = in_turn.runs();
    runs.sort_by_key(|run| run.header.series.as_ref().map(|series| series.round));
    let turns = runs.iter().map(of).collect::<Result<Vec<_>, String>>()?;
    let mut alone = Vec::new();
    for group in GROUPS {
        let folder = Folder::new("alone");
        pmmpi(&[], |command| work(command, &folder, Some(group)))?;
        alone.extend(folder.runs().iter().map(of).collect::<Result<Vec<_>, String>>()?);
    }
    // The second round is in the reverse order, but its runs have the same numbers.
    let expected: Vec<_> = alone.iter().chain(&alone).cloned().collect();
    let same = |(a, b): (&(String, u64), &(String, u64))| a.0 == b.0 && is_near(a.1, b.1, 20);
    let wrong = turns.len() != expected.len() || !turns.iter().zip(&expected).all(same);
    unless(wrong, format!("in turn {turns:?}; alone {alone:?}"))
}
