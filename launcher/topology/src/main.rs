//! Reads this node's topology with hwloc and writes it to stdout in wire form.
//!
//! It is a separate program, so that the launcher, which runs on every rank, links no hwloc, and so that a crash while
//! hwloc reads a machine's tables ends only this process.

use hwlocality::Topology as Machine;
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::{CacheType, ObjectType};
use hwlocality::topology::builder::BuildFlags;
use pmmpi::node::{CacheLevel, HwThread, NumaNode, Topology};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pmmpi-topology: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> Result<(), Box<dyn Error>> {
    let bytes = pmmpi::record::wire::encode(&describe(&read()?))?;
    Ok(std::io::stdout().write_all(&bytes)?)
}

/// Reads the whole node, even if this job may use only a part of it. Leaves out hwloc's x86 component: it binds the
/// process to each core in turn to read its CPUID, and the kernel's tables contain the same facts.
fn read() -> Result<Machine, Box<dyn Error>> {
    Ok(Machine::builder().with_flags(BuildFlags::INCLUDE_DISALLOWED)?.without_component("x86")?.build()?)
}

fn describe(machine: &Machine) -> Topology {
    let mut threads: Vec<HwThread> = machine.objects_with_type(ObjectType::PU).filter_map(place).collect();
    threads.sort_by_key(|thread| thread.cpu);
    let memory = |node: &TopologyObject| match node.attributes() {
        Some(ObjectAttributes::NUMANode(numa)) => Some(NumaNode {
            numa: number(node.os_index()?),
            memory_bytes: numa.local_memory().map_or(0, |bytes| bytes.get()),
        }),
        _ => None,
    };
    let mut memories: Vec<NumaNode> =
        machine.objects_with_type(ObjectType::NUMANode).filter_map(memory).collect();
    memories.sort_by_key(|memory| memory.numa);
    let api = hwlocality::hwloc_api_version();
    Topology {
        source: format!("hwloc API {}.{}.{}", api >> 16, api >> 8 & 0xff, api & 0xff),
        threads,
        memories,
        caches: caches(machine),
    }
}

fn place(thread: &TopologyObject) -> Option<HwThread> {
    let ancestor = |kind| thread.first_ancestor_with_type(kind).map(|o| number(o.logical_index()));
    let last_level_cache = thread.ancestors().filter(|o| o.object_type().is_cpu_cache()).last();
    let numa = thread.nodeset()?.iter_set().next().map_or(0, usize::from);
    Some(HwThread {
        cpu: number(thread.os_index()?),
        core: ancestor(ObjectType::Core).unwrap_or_else(|| number(thread.logical_index())),
        socket: ancestor(ObjectType::Package).unwrap_or(0),
        numa: number(numa),
        last_level_cache: last_level_cache.map(|cache| number(cache.logical_index())),
    })
}

fn caches(machine: &Machine) -> Vec<CacheLevel> {
    let mut counts: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for object in machine.objects() {
        if let Some(ObjectAttributes::Cache(cache)) = object.attributes()
            && cache.cache_type() != CacheType::Instruction
        {
            let size_bytes = cache.size().map_or(0, |bytes| bytes.get());
            *counts.entry((number(cache.depth()), size_bytes)).or_default() += 1;
        }
    }
    let row = |((level, size_bytes), count)| CacheLevel { level, size_bytes, count };
    counts.into_iter().map(row).collect()
}

/// No machine has more than 2^32 of the objects that this program counts.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
