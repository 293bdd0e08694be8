//! Which nodes ought to be equal. A class is read from the records, never inferred from timing: a
//! faulty fast node looks like a healthy slow one.

use pmmpi::node::Hardware;
use pmmpi::record::{NodeRecord, Run};
use std::collections::HashSet;
use std::rc::Rc;

/// The class of each node record in `run`: processor, microcode, memory, kernel, and what was run how.
/// What a record does not say is "unknown". Nodes of one class share one string.
pub fn of_nodes(run: &Run) -> Vec<Rc<str>> {
    let mut ranks = vec![0; run.nodes.len()];
    for rank in &run.ranks {
        ranks[rank.node as usize] += 1;
    }
    let (command, size) = (command(run), run.size);
    let mut known: HashSet<Rc<str>> = HashSet::new();
    let class = |(node, here): (&NodeRecord, usize)| {
        let facts = node.facts.as_ref();
        let hardware = facts.map_or_else(|| "unknown node".to_owned(), |facts| hardware(&facts.hardware));
        let class: Rc<str> = format!("{hardware}; {command} ({here} of {size} ranks)").into();
        known.get(&class).cloned().unwrap_or_else(|| {
            known.insert(class.clone());
            class
        })
    };
    run.nodes.iter().zip(ranks).map(class).collect()
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
