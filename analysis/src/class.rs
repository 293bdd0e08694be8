//! Which nodes ought to be equal. A class is read from the records, never inferred from timing: a
//! faulty fast node looks like a healthy slow one.

use pmmpi::node::Hardware;
use pmmpi::record::Run;

/// The class of the node number `node` in `run`: processor, microcode, memory, kernel, and what was run
/// how. What a record does not say is "unknown".
pub fn of(run: &Run, node: u32) -> String {
    let facts = run.nodes.get(node as usize).and_then(|n| n.facts.as_ref());
    let here = run.ranks.iter().filter(|rank| rank.node == node).count();
    let hardware = facts.map_or_else(|| "unknown node".to_owned(), |facts| hardware(&facts.hardware));
    format!("{hardware}; {} ({here} of {} ranks)", command(run), run.size)
}

fn hardware(facts: &Hardware) -> String {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let number = |value: Option<u32>| value.map_or_else(|| "?".into(), |v| v.to_string());
    let memory = facts.memory_bytes.map_or_else(|| "unknown memory".into(), gibibytes);
    format!(
        "{} ({}/{}/{}), microcode {}, {memory}, Linux {}",
        or_unknown(&facts.cpu_model_name),
        number(facts.cpu_family),
        number(facts.cpu_model),
        number(facts.cpu_stepping),
        or_unknown(&facts.microcode),
        or_unknown(&facts.kernel),
    )
}

/// Whole GiB: the kernel's own share differs by some MiB from boot to boot.
fn gibibytes(bytes: u64) -> String {
    format!("{} GiB", (bytes + (1 << 29)) >> 30)
}

/// The command as a shell would show it, quoted where it must be.
pub fn command(run: &Run) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    run.header.command.iter().map(quote).collect::<Vec<_>>().join(" ")
}
