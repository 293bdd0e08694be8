//! How an MPI process communicates, as the Linux kernel shows it: devices and sockets that the process has open, memory
//! that it shares, and the transport components that its MPI library has loaded.
//!
//! Settings say what a user wants; these facts say what the process has open, for MPI or for something else. A copy
//! between two processes without a device (process_vm_readv(2), "CMA") leaves no trace.

use super::{Mapping, beginning};
use crate::node::Inventory;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What processes open, or map, to communicate. The first text that a path contains counts.
const DEVICES: [(&str, &str); 17] = [
    ("/dev/infiniband/uverbs", "verbs"),
    ("/dev/infiniband/", ""), // the connection manager, which other libraries open, too
    ("/dev/cxi", "cxi"),
    ("/dev/hfi1", "hfi1"),
    ("/dev/ipath", "psm"),
    ("/dev/kgni", "gni"),
    ("/dev/tofu", "tofu"),
    ("/dev/bxi", "bxi"),
    ("/dev/xpmem", "xpmem"),
    ("/dev/knem", "knem"),
    ("/dev/gdrdrv", "gdrcopy"),
    ("/dev/shm/sem.", ""), // semaphores
    ("/dev/shm/cuda", ""),
    ("/dev/shm/", SHARED_MEMORY),
    ("/SYSV", SHARED_MEMORY),
    ("vader_segment", SHARED_MEMORY), // Open MPI's segments in a session folder
    ("sm_segment", SHARED_MEMORY),
];
const SHARED_MEMORY: &str = "shared memory";

/// Libraries beneath an MPI library, by the beginning of their names. libfabric's providers have names of their own.
const LIBRARIES: [(&str, &str); 9] = [
    ("libucp.so", "ucx"),
    ("libfabric.so", "libfabric"),
    ("libpsm2.so", "psm2"),
    ("libportals.so", "portals"),
    ("libhcoll.so", "hcoll"),
    ("libsharp.so", "sharp"),
    ("libxpmem.so", "xpmem"),
    ("libnccl.so", "nccl"),
    ("librccl.so", "rccl"),
];
/// Kinds of Open MPI's components that move data. As separate files, it unloads those that it cannot use.
const COMPONENTS: [&str; 3] = ["pml", "btl", "mtl"];

/// The facts `transports` and `mpi_components` of the process `pid`, below `root` (normally "/"). `mappings` are those of the
/// process, except pmmpi's own. Nothing if the process cannot be read.
pub(super) fn of_process(root: &Path, pid: u32, mappings: &[Mapping<'_>]) -> Inventory {
    let mut facts = Inventory::default();
    let Some(open) = open_files(root, pid) else { return facts };
    let mut transports = BTreeSet::new();
    let mut device = |path: &str| {
        let found = DEVICES.iter().find(|(part, _)| path.contains(part)).map(|(_, name)| *name);
        transports.extend(found.filter(|name| !name.is_empty()));
    };
    mappings.iter().filter(|mapping| mapping.is_shared).for_each(|it| device(it.path));
    open.iter().filter(|path| !path.starts_with("/dev/shm/")).for_each(|path| device(path));
    let sockets: BTreeSet<&str> = open.iter().filter_map(|path| inode_of_socket(path)).collect();
    transports.extend(has_tcp(root, pid, &sockets).then_some("tcp"));
    let list = |names: BTreeSet<&str>| {
        if names.is_empty() { "none".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
    };
    let components: BTreeSet<String> = mappings.iter().filter_map(|it| component(it.path)).collect();
    facts.set("transports", list(transports));
    facts.set("mpi_components", list(components.iter().map(String::as_str).collect()));
    facts
}

/// What the descriptors of the process lead to; `None` if it may not be read.
fn open_files(root: &Path, pid: u32) -> Option<Vec<String>> {
    const MOST: usize = 16_384;
    let entries = fs::read_dir(root.join(format!("proc/{pid}/fd"))).ok()?;
    let targets = entries.take(MOST).flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    Some(targets.map(|path| path.to_string_lossy().into_owned()).collect())
}

fn inode_of_socket(path: &str) -> Option<&str> {
    path.strip_prefix("socket:[")?.strip_suffix(']')
}

/// True if a socket of the process is connected with another address than the loopback: launchers use the loopback, too.
fn has_tcp(root: &Path, pid: u32, sockets: &BTreeSet<&str>) -> bool {
    const ESTABLISHED: &str = "01";
    let of_file = |name: &str| beginning(&root.join(format!("proc/{pid}/net/{name}"))).unwrap_or_default();
    !sockets.is_empty()
        && ["tcp", "tcp6"].into_iter().map(of_file).any(|table| {
            // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode (proc_net_tcp.rst)
            table.lines().skip(1).any(|line| {
                let fields: Vec<&str> = line.split_ascii_whitespace().collect();
                let [_, _, remote, state, _, _, _, _, _, inode, ..] = fields[..] else { return false };
                state == ESTABLISHED && !is_loopback(remote) && sockets.contains(inode)
            })
        })
}

/// The address is hexadecimal, in the byte order of the machine.
fn is_loopback(address: &str) -> bool {
    let address = address.split(':').next().unwrap_or_default();
    let Ok(last_word) =
        u32::from_str_radix(address.get(address.len().saturating_sub(8)..).unwrap_or_default(), 16)
    else {
        return false;
    };
    let bytes = last_word.to_ne_bytes();
    match address.len() {
        8 => bytes[0] == 127,
        // ::1, or ::ffff:127.x.x.x
        _ => match address.get(..24).unwrap_or_default() {
            "000000000000000000000000" => bytes == [0, 0, 0, 1],
            _ => address.starts_with("0000000000000000") && bytes[0] == 127,
        },
    }
}

/// "pml/ob1" of .../mca_pml_ob1.so, "ucx" of libucp.so.0.
fn component(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    if let Some((kind, component)) =
        name.strip_prefix("mca_").and_then(|name| name.strip_suffix(".so")?.split_once('_'))
    {
        return COMPONENTS.contains(&kind).then(|| format!("{kind}/{component}"));
    }
    let library = LIBRARIES.iter().find(|(beginning, _)| name.starts_with(beginning));
    library.map(|(_, library)| (*library).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::of_process;
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const OWN: (u64, u64) = (0x1a, 77);

    /// A process whose mappings and descriptors are these; descriptor 9 is a socket with inode 555.
    fn process(maps: &str, descriptors: &[&str], tcp: &str) -> TempDir {
        let root = TempDir::with_prefix("test-transports-").unwrap();
        let folder = root.path().join("proc/12");
        fs::create_dir_all(folder.join("fd")).unwrap();
        fs::create_dir_all(folder.join("net")).unwrap();
        let own = "7f0000000000-7f0000001000 rw-s 00000000 00:1a 77    /memfd:pmmpi (deleted)\n";
        fs::write(folder.join("maps"), format!("{own}{maps}")).unwrap();
        fs::write(folder.join("net/tcp"), format!("  sl  local_address rem_address   st ...\n{tcp}"))
            .unwrap();
        for (number, target) in descriptors.iter().enumerate() {
            symlink(target, folder.join("fd").join(number.to_string())).unwrap();
        }
        root
    }

    fn facts(root: &TempDir) -> Vec<String> {
        of_process(root.path(), 12, OWN).iter().map(|(_, value)| value.to_owned()).collect()
    }

    #[test]
    fn what_a_library_chose_is_seen() {
        let maps = "7f1000000000-7f1000001000 r-xp 00000000 08:01 9 /usr/lib/openmpi/mca_pml_ucx.so\n\
                    7f1000002000-7f1000003000 r-xp 00000000 08:01 10 /usr/lib/openmpi/mca_coll_tuned.so\n\
                    7f1000004000-7f1000005000 r-xp 00000000 08:01 11 /opt/a folder/libucp.so.0\n\
                    7f1000006000-7f1000007000 rw-s 00000000 00:1b 12 /dev/infiniband/uverbs0\n";
        let root = process(maps, &["/dev/null", "/dev/infiniband/rdma_cm", "socket:[555]"], "");
        assert_eq!(facts(&root), ["pml/ucx, ucx", "verbs"]);
    }

    #[test]
    fn sockets_count_if_they_lead_out_of_the_node() {
        let line = |remote: &str, state: &str, inode: u32| {
            format!(
                "   0: 0100000A:C350 {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 x\n"
            )
        };
        let address = |bytes: [u8; 4]| format!("{:08X}:1F90", u32::from_ne_bytes(bytes));
        let (remote, loopback) = (address([10, 0, 0, 2]), address([127, 0, 0, 1]));
        let shown = |tcp: String| facts(&process("", &["socket:[555]"], &tcp))[1].clone();
        assert_eq!(shown(line(&loopback, "01", 555) + &line(&remote, "01", 555)), "tcp");
        assert_eq!(shown(line(&loopback, "01", 555)), "none");
        assert_eq!(shown(line(&remote, "0A", 555)), "none", "it listens only");
        assert_eq!(shown(line(&remote, "01", 556)), "none", "it belongs to another process");
        assert!(
            is_loopback(&format!("0000000000000000{}0100007F", "FFFF0000")) || cfg!(target_endian = "big")
        );
        assert!(!is_loopback(&remote) && !is_loopback("") && !is_loopback("zz"));
    }

    #[test]
    fn segments_in_shared_memory_are_seen_and_own_memory_is_not() {
        let maps = "7f1000000000-7f1000001000 rw-s 00000000 00:18 5 /dev/shm/vader_segment.n1.0\n";
        assert_eq!(facts(&process(maps, &["/dev/shm/of_pmmpi"], "")), ["none", "shared memory"]);
        assert_eq!(facts(&process("", &["/dev/shm/of_pmmpi"], "")), ["none", "none"]);
    }

    #[test]
    fn another_process_gives_nothing() {
        let root = process("", &["/dev/infiniband/uverbs0"], "");
        assert!(of_process(root.path(), 12, (0x1a, 78)).is_empty());
        assert!(of_process(root.path(), 13, OWN).is_empty());
        fs::write(root.path().join("proc/12/maps"), "nonsense\n7f zz\n").unwrap();
        assert!(of_process(root.path(), 12, OWN).is_empty());
    }
}
