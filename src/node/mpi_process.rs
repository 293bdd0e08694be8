//! What the Linux kernel shows of the first MPI process of a node: its settings, and how it communicates.

mod transports;

use super::inventory::Inventory;
use super::process_settings;
use std::fs;
use std::io::Read;
use std::path::Path;

/// The facts of the process `pid`, below `root` (normally "/"). `own_file` is a file that the process has mapped: a process
/// that has not is another one, because numbers of processes differ between containers. Nothing if the process cannot be
/// read.
pub fn of_process(root: &Path, pid: u32, own_file: (u64, u64)) -> Inventory {
    let mut facts = Inventory::default();
    let Some(maps) = beginning(&root.join(format!("proc/{pid}/maps"))) else { return facts };
    let mappings: Vec<Mapping<'_>> = maps.lines().filter_map(Mapping::parse).collect();
    let (own, others): (Vec<_>, Vec<_>) =
        mappings.into_iter().partition(|mapping| (mapping.device, mapping.inode) == own_file);
    if !own.is_empty() {
        facts.join(transports::of_process(root, pid, &others));
        facts.join(process_settings::of_process(root, &pid.to_string()));
    }
    facts
}

/// The first megabytes of a file of /proc: the program waits for the answer. Bytes that are not UTF-8 are replaced.
fn beginning(path: &Path) -> Option<String> {
    const MOST_BYTES: u64 = 4 << 20;
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line of /proc/PID/maps (proc(5)).
struct Mapping<'a> {
    is_shared: bool,
    device: u64,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (_, rights, _) = (fields.next()?, fields.next()?, fields.next()?);
        let (major, minor) = fields.next()?.split_once(':')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        let device = libc::makedev(number(major)?, number(minor)?);
        let inode = fields.next()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_start();
        Some(Self { is_shared: rights.ends_with('s'), device, inode, path })
    }
}
