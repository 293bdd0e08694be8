//! The findings as text.

use super::findings::{EventCheck, EventFinding, MemoryFindings, OnKind, StoredAt, ValidationFindings};
use pmmpi::text::{count, lines, printable};
use pmmpi_events::validation::{EventVerdict, TRUSTED};
use std::fmt::Write;

pub fn render(findings: &ValidationFindings) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = head(&mut text, findings);
    let _ = events(&mut text, findings);
    let _ = kernels(&mut text, findings);
    let _ = ceilings(&mut text, findings);
    let _ = tail(&mut text, findings);
    text
}

fn head(text: &mut String, findings: &ValidationFindings) -> std::fmt::Result {
    let cpu = &findings.cpu;
    let name = printable(cpu.model_name.as_deref().unwrap_or("unknown model"));
    let machine = if cpu.hypervisor { ", a virtual machine" } else { "" };
    writeln!(text, "processor  {name}{machine}\n           {}", printable(&cpu.name))?;
    let release = printable(findings.os_release.as_deref().unwrap_or("unknown"));
    writeln!(text, "kernel     Linux {release}")?;
    let on = match findings.cores.as_slice() {
        [] => findings.hardware_thread.to_string(),
        cores => {
            let one = |core: &OnKind| format!("{} ({})", core.hardware_thread, printable(&core.pmu));
            cores.iter().map(one).collect::<Vec<_>>().join(" and ")
        }
    };
    let (repeats, indent) = (findings.repeats, "           ");
    let how = format!(
        "on hardware thread {on}: median of {repeats} repeats, minus the cost of reading the counters"
    );
    writeln!(text, "measured   {}", wrapped(&how, indent))?;
    if let Some(MemoryFindings { cache_bytes: Some(cache), array_bytes: Some(array), reason: None }) =
        &findings.memory
    {
        let [cache, array] = [cache, array].map(|bytes| bytes >> 20);
        writeln!(
            text,
            "memory     three arrays of {array} MiB each, caches of {cache} MiB; bytes at the\n           \
             memory controllers of the socket, minus the traffic of other programs"
        )?;
    }
    writeln!(text)
}

fn events(text: &mut String, findings: &ValidationFindings) -> std::fmt::Result {
    // After a longer name, such as a vendor's, the rest goes to the next line.
    const WIDEST: usize = 30;
    let widths = findings.events.iter().map(|event| event.name.len()).filter(|width| *width <= WIDEST);
    let width = widths.max().unwrap_or(0).max("EVENT".len());
    writeln!(text, "{:width$}  {:16}  STANDS FOR", "EVENT", "VERDICT")?;
    for event in &findings.events {
        let mapping = findings.mappings.iter().find(|mapping| mapping.event == event.name);
        let stands_for = mapping.map_or("", |mapping| &mapping.stands_for);
        let mut name = event.name.as_str();
        if name.len() > width {
            writeln!(text, "{name}")?;
            name = "";
        }
        let line = format!("{name:width$}  {:16}  {}", words(event), printable(stands_for));
        writeln!(text, "{}", line.trim_end())?;
    }
    // Each reason appears once, with all its events.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for event in &findings.events {
        let Some(reason) = event.reason.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&event.name),
            None => reasons.push((reason, vec![&event.name])),
        }
    }
    for (reason, names) in reasons {
        writeln!(text, "\n{}:\n  {}", wrapped(&names.join(", "), ""), wrapped(reason, "  "))?;
    }
    errata(text, findings)?;
    writeln!(text)
}

/// Prints each erratum of the events once.
fn errata(text: &mut String, findings: &ValidationFindings) -> std::fmt::Result {
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    for event in &findings.events {
        let mappings = findings.mappings.iter().filter(|mapping| mapping.event == event.name);
        for erratum in mappings.flat_map(|mapping| &mapping.errata) {
            match known.iter_mut().find(|(said, _)| said == erratum) {
                Some((_, names)) => names.push(&event.name),
                None => known.push((erratum, vec![&event.name])),
            }
        }
    }
    if !known.is_empty() {
        writeln!(text, "\nnumbers of the manufacturer's errata (see the documents below):")?;
    }
    for (erratum, names) in known {
        writeln!(text, "  {}", wrapped(&format!("{}: {erratum}", names.join(", ")), "    "))?;
    }
    Ok(())
}

fn words(event: &EventFinding) -> String {
    match event.deviation {
        Some(deviation) if event.verdict == EventVerdict::Within(deviation).name() => {
            format!("within {:.1} %", deviation * 100.0)
        }
        _ => event.verdict.to_owned(),
    }
}

fn kernels(text: &mut String, findings: &ValidationFindings) -> std::fmt::Result {
    writeln!(text, "{:42} {:>16} {:>10} {:>8}", "TEST LOOP, EVENT", "EXPECTED", "MEASURED", "OFF BY")?;
    for held in &findings.kernels {
        let counted: Vec<&EventCheck> = held.checks.iter().filter(|check| check.measured.is_some()).collect();
        if counted.is_empty() && held.skipped.is_none() {
            continue;
        }
        let title = format!("{} ({}), {} trips", held.name, held.about, held.trips);
        writeln!(text, "{}", wrapped(&title, "  "))?;
        if let Some(why) = &held.skipped {
            writeln!(text, "  {}", wrapped(&format!("not run: {}", printable(why)), "  "))?;
        }
        for check in counted {
            let shown: fn(f64) -> String = if check.event.ends_with(BYTES) { gigabytes } else { whole };
            let expected = check.expected.map_or_else(String::new, |expected| range(expected, shown));
            let off =
                check.deviation.map_or_else(String::new, |deviation| format!("{:.2} %", deviation * 100.0));
            let measured = check.measured.map_or_else(String::new, shown);
            writeln!(text, "  {:40} {expected:>16} {measured:>10} {off:>8}", check.event)?;
        }
    }
    let nothing: Vec<&str> = findings
        .kernels
        .iter()
        .filter(|held| held.skipped.is_none() && held.checks.iter().all(|check| check.measured.is_none()))
        .map(|held| held.name)
        .collect();
    if !nothing.is_empty() {
        writeln!(
            text,
            "test loops not run, because pmmpi cannot count any of their events here:\n  {}",
            wrapped(&nothing.join(", "), "  ")
        )?;
    }
    writeln!(text)
}

/// Wraps text to the width of a terminal. Lines after the first start with `indent`; the caller writes at most as
/// many columns before the first.
fn wrapped(words: &str, indent: &str) -> String {
    // One column of the terminal's 80 is left for a colon.
    lines(words, 79 - indent.len()).join(&format!("\n{indent}"))
}

/// The end of the names of events that count bytes.
const BYTES: &str = "_bytes";

fn whole(count: f64) -> String {
    format!("{count:.0}")
}

fn gigabytes(bytes: f64) -> String {
    format!("{:.3}G", bytes / 1e9)
}

fn range([low, high]: [f64; 2], shown: fn(f64) -> String) -> String {
    if (high - low).abs() < 0.5 { shown(low) } else { format!("{} .. {}", shown(low), shown(high)) }
}

/// Attainable bandwidth and latency of each socket.
fn ceilings(text: &mut String, findings: &ValidationFindings) -> std::fmt::Result {
    for of in &findings.ceilings {
        let cores = count(of.hardware_threads.len(), "core");
        writeln!(
            text,
            "\nceilings of socket {} (one thread on each of {cores}, best of 9 repetitions)",
            of.socket
        )?;
        if let Some(why) = &of.reason {
            writeln!(text, "  {}", wrapped(&format!("not measured: {}", printable(why)), "  "))?;
        }
        if !of.bandwidth.is_empty() {
            writeln!(text, "{:10} {:14} {:>12} {:>18}", "LOOP", "STORES", "GB/s", "GB/s OF MEMORY")?;
        }
        for rate in &of.bandwidth {
            let [stream, memory] = [rate.gigabytes_per_s, rate.memory_gigabytes_per_s];
            writeln!(text, "{:10} {:14} {stream:>12.2} {memory:>18.2}", rate.name, rate.stores)?;
        }
        if let Some((latency, lines)) = of.latency_ns.zip(of.lines_in_flight) {
            writeln!(text, "latency of memory, one core: {latency:.1} ns per load")?;
            let law = format!(
                "concurrency: for the highest of these rates, {lines:.0} cache lines must be in flight, \
                 {:.1} per core (Little's law: bandwidth x latency / 64 bytes)",
                lines / of.hardware_threads.len() as f64
            );
            writeln!(text, "{}", wrapped(&law, "  "))?;
        }
        for note in &of.notes {
            writeln!(text, "{}", wrapped(&format!("note: {}", printable(note)), "  "))?;
        }
    }
    Ok(())
}

fn tail(text: &mut String, findings: &ValidationFindings) -> std::fmt::Result {
    let at_most = TRUSTED * 100.0;
    writeln!(text, "trusted: off by at most {at_most} %. Documents of the manufacturer about the events")?;
    writeln!(text, "and their known errors:")?;
    for document in &findings.documents {
        let title = format!("{}: {}", document.step, document.title);
        writeln!(text, "  {}\n    {}", wrapped(&title, "    "), document.url)?;
    }
    if findings.documents.is_empty() {
        writeln!(text, "  pmmpi knows no document for this processor")?;
    }
    match &findings.kept {
        StoredAt::In(path) => writeln!(text, "saved in {}", printable(&path.display().to_string())),
        StoredAt::NotAll => {
            writeln!(text, "not saved: --kernel selects test loops, or pmmpi used only some kinds of cores")
        }
        StoredAt::Not(_) => Ok(()), // `run` prints a warning
    }
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    /// With the indent before the first line and a colon after the last, no line is wider than a terminal.
    #[test]
    fn lines_fit_a_terminal() {
        let words =
            "on hardware thread 1: median of 7 repeats, minus the cost of reading the counters".repeat(3);
        for indent in ["", "  ", "           "] {
            let text = format!("{indent}{}:", wrapped(&words, indent));
            let widths: Vec<usize> = text.lines().map(str::len).collect();
            assert!(widths.len() > 2 && widths.iter().all(|width| *width <= 80), "{widths:?}\n{text}");
        }
    }
}
