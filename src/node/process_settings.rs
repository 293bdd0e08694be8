//! Settings that a process inherits and that change how fast it is: where its memory comes from, its stack, its priority.

use super::inventory::Inventory;
use super::kernel_files::{long_text, text};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The facts `memory_policy`, `allowed_numa_nodes`, `stack_limit` and `scheduling` of a process, below `root` (normally "/").
/// `process` is a number or "self". What cannot be read is absent.
pub fn of_process(root: &Path, process: &str) -> Inventory {
    let of = |file: &str| format!("proc/{process}/{file}");
    let mut facts = Inventory::default();
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.set(name, value);
        }
    };
    set("memory_policy", first_line(&root.join(of("numa_maps"))).and_then(|line| memory_policy(&line)));
    set("allowed_numa_nodes", long_text(root, &of("status")).and_then(|status| numa_nodes(&status)));
    set("stack_limit", text(root, &of("limits")).and_then(|limits| stack_limit(&limits)));
    set("scheduling", text(root, &of("stat")).and_then(|stat| scheduling(&stat)));
    facts
}

/// The first line of a file that is long to make: for each line of numa_maps, the kernel walks over the pages of a mapping.
/// A read that a part of a line satisfies makes no other line.
fn first_line(path: &Path) -> Option<String> {
    const LONGEST: usize = 4096;
    let mut file = File::open(path).ok()?;
    let (mut line, mut part) = (Vec::new(), [0u8; 16]);
    while line.len() < LONGEST && !line.contains(&b'\n') {
        match file.read(&mut part).ok()? {
            0 => break,
            read => line.extend_from_slice(&part[..read]),
        }
    }
    Some(String::from_utf8_lossy(&line).lines().next()?.to_owned())
}

/// The policy in a line of numa_maps (numa_maps(5), and mpol_to_str in the kernel's mm/mempolicy.c). The first mapping is the
/// program itself, which has the policy of the process.
fn memory_policy(line: &str) -> Option<String> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let policy = match words.next()? {
        "local" => "default", // both take memory of the NUMA node on which the thread runs
        policy => policy,
    };
    // "prefer (many):0-1", "weighted interleave:0-1"
    let second = words.next().filter(|word| policy == "weighted" || word.starts_with('('));
    Some(second.map_or_else(|| policy.to_owned(), |second| format!("{policy} {second}")))
}

fn numa_nodes(status: &str) -> Option<String> {
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// The soft limit (getrlimit(2)).
fn stack_limit(limits: &str) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max stack size"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some("unlimited".to_owned()),
        bytes => Some(format!("{} KiB", bytes.parse::<u64>().ok()? >> 10)),
    }
}

/// The policy of the scheduler and the priority (proc_pid_stat(5), sched(7)).
fn scheduling(stat: &str) -> Option<String> {
    // The name of the program, in parentheses, may have any bytes. The state follows, which is field 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let nice = field(19)?;
    let policy = match field(41)? {
        "0" => "SCHED_OTHER",
        "1" => return Some(format!("SCHED_FIFO, priority {}", field(40)?)),
        "2" => return Some(format!("SCHED_RR, priority {}", field(40)?)),
        "3" => "SCHED_BATCH",
        "5" => return Some("SCHED_IDLE".to_owned()),
        other => return Some(format!("policy {other}")),
    };
    Some(format!("{policy}, nice {nice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_may_have_two_words() {
        let policy = |line: &str| memory_policy(line).unwrap();
        assert_eq!(policy("00400000 default file=/usr/bin/x mapped=7 N0=7 kernelpagesize_kB=4"), "default");
        assert_eq!(policy("7f0000000000 local"), "default");
        assert_eq!(policy("00400000 interleave:0-1,3 file=/opt/(x)"), "interleave:0-1,3");
        assert_eq!(policy("00400000 prefer (many):0-1 anon=3"), "prefer (many):0-1");
        assert_eq!(policy("00400000 weighted interleave:0-1 anon=3"), "weighted interleave:0-1");
        assert_eq!(policy("00400000 bind=static:0 anon=3"), "bind=static:0");
        assert_eq!(memory_policy("00400000"), None);
    }

    #[test]
    fn the_name_of_a_program_is_no_field() {
        let stat = |priority: u32, nice: i32, policy: u32| {
            let before: Vec<String> = (4..=18).map(|field| field.to_string()).collect();
            let after: Vec<String> = (20..=39).map(|field| field.to_string()).collect();
            format!("12 (a) 0 (b c) R {} {nice} {} {priority} {policy} 0", before.join(" "), after.join(" "))
        };
        assert_eq!(scheduling(&stat(0, 5, 0)).as_deref(), Some("SCHED_OTHER, nice 5"));
        assert_eq!(scheduling(&stat(0, -5, 3)).as_deref(), Some("SCHED_BATCH, nice -5"));
        assert_eq!(scheduling(&stat(50, 0, 1)).as_deref(), Some("SCHED_FIFO, priority 50"));
        assert_eq!(scheduling("12 (a) R 1 2"), None);
    }

    #[test]
    fn the_stack_has_its_soft_limit() {
        let limits = |soft: &str| {
            format!("Limit   Soft Limit   Hard Limit   Units\nMax stack size   {soft}   unlimited   bytes\n")
        };
        assert_eq!(stack_limit(&limits("8388608")).as_deref(), Some("8192 KiB"));
        assert_eq!(stack_limit(&limits("unlimited")).as_deref(), Some("unlimited"));
    }

    /// The kernel really writes what this module reads: this process has the priority of its parent.
    #[test]
    fn this_process_has_settings() {
        let facts = of_process(Path::new("/"), "self");
        let of =
            |name: &str| facts.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
        // SAFETY: getpriority(2) reads one number.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        assert!(of("scheduling").unwrap().ends_with(&nice.to_string()), "{facts:?}");
        assert!(of("stack_limit").is_some() && of("allowed_numa_nodes").is_some(), "{facts:?}");
        assert!(of_process(Path::new("/nonexistent"), "1").is_empty());
    }
}
