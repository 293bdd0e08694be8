//! pmmpi's own files and the folder for run files.

use super::check::Check;
use super::machine::Machine;
use pmmpi::node::Topology;
use pmmpi::record::wire;
use pmmpi::text::count;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The fix for an incomplete installation.
fn reinstall(machine: &dyn Machine) -> String {
    let own = machine.own_folder().and_then(|folder| folder.parent().map(Path::to_owned));
    let prefix = own.map_or("PREFIX".into(), |prefix| prefix.display().to_string());
    let override_ = match machine.variable("PMMPI_LIBDIR") {
        Some(folder) => format!("unset PMMPI_LIBDIR   # its value is {}\n# or, ", folder.display()),
        None => "# ".to_owned(),
    };
    format!("{override_}in pmmpi's sources:\nmake install PREFIX={prefix}")
}

fn missing(machine: &dyn Machine, file: &str) -> String {
    let folders: Vec<String> =
        machine.libraries().iter().map(|folder| folder.display().to_string()).collect();
    match folders.is_empty() {
        true => {
            format!("cannot look for {file}: pmmpi cannot read its own path, because /proc is not mounted")
        }
        false => format!("no {file} in {}", folders.join(" or ")),
    }
}

/// The library that pmmpi preloads into MPI programs.
pub fn agent(machine: &dyn Machine) -> Check {
    const NAME: &str = "agent";
    const FILE: &str = "libpmmpi_agent.so";
    let costs =
        "pmmpi cannot use the agent to measure an MPI program: such a measurement ends with exit status 125";
    let Some(agent) = machine.library(FILE) else {
        return Check::broken(NAME, missing(machine, FILE), costs, reinstall(machine));
    };
    let shown = agent.display().to_string();
    // LD_PRELOAD is a list separated by spaces or colons (ld.so(8)).
    if shown.contains([':', ' ']) {
        return Check::broken(
            NAME,
            format!("{shown}: the loader cannot preload a path with a space or a colon"),
            costs,
            "make install PREFIX=$HOME/.local   # or any folder without spaces and colons in its path",
        );
    }
    // Any dynamic program serves: the loader lists its libraries and does not start it.
    let program = machine.program("true").unwrap_or_else(|| "/bin/true".into());
    let variables = [("LD_PRELOAD", agent.as_os_str()), ("LD_TRACE_LOADED_OBJECTS", OsStr::new("1"))];
    let said = machine.ask(&program, &[], &variables);
    let complaint = said.ok().and_then(|said| {
        let text = said.text();
        let complaint =
            text.lines().find(|line| line.contains("cannot be preloaded") || line.contains("not found"));
        complaint.map(|line| line.trim().to_owned())
    });
    match complaint {
        Some(complaint) => Check::broken(NAME, complaint, costs, reinstall(machine)),
        None => Check::ok(NAME, shown, "pmmpi measures unchanged MPI programs with the agent"),
    }
}

/// The program that reads the node's topology.
pub fn topology(machine: &dyn Machine) -> Check {
    const NAME: &str = "topology";
    const FILE: &str = "pmmpi-topology";
    let costs = "runs do not show the core, the socket and the NUMA node of each rank";
    let Some(program) = machine.library(FILE) else {
        return Check::broken(NAME, missing(machine, FILE), costs, reinstall(machine));
    };
    let said = machine.ask(&program, &[], &[]).map_err(|silent| silent.to_string());
    let said = said.and_then(|said| if said.success { Ok(said.stdout) } else { Err(said.complaint()) });
    let read = said.and_then(|bytes| {
        wire::decode::<Topology>(&bytes).map_err(|_| "this file is from another version of pmmpi".to_owned())
    });
    match read {
        Ok(topology) => {
            let sockets: BTreeSet<u32> = topology.threads.iter().map(|thread| thread.socket).collect();
            let (threads, sockets) =
                (count(topology.threads.len(), "hardware thread"), count(sockets.len(), "socket"));
            let found = format!("{}: {threads}, {sockets}", topology.source);
            Check::ok(NAME, found, "runs show the core, the socket and the NUMA node of each rank")
        }
        Err(why) => Check::broken(
            NAME,
            format!("{}: {why}", program.display()),
            costs,
            format!("apt install libhwloc15   # if libhwloc is missing\n{}", reinstall(machine)),
        ),
    }
}

/// The program that reads and reports run files.
pub fn report(machine: &dyn Machine) -> Check {
    const NAME: &str = "report";
    const FILE: &str = "pmmpi-report";
    let costs =
        "the commands report, compare, export, bounds, show, diff and screen fail; pmmpi still saves runs";
    let beside = machine.own_folder().map(|folder| folder.join(FILE)).filter(|path| path.is_file());
    let Some(program) = beside.or_else(|| machine.program(FILE)) else {
        return Check::broken(
            NAME,
            format!("no {FILE} in pmmpi's folder or in PATH"),
            costs,
            reinstall(machine),
        );
    };
    let said = machine.ask(&program, &["--version"], &[]).map_err(|silent| silent.to_string());
    match said.and_then(|said| if said.success { Ok(said.text()) } else { Err(said.complaint()) }) {
        Err(why) => Check::broken(NAME, format!("{}: {why}", program.display()), costs, reinstall(machine)),
        Ok(version) if version.split_ascii_whitespace().last() == Some(env!("CARGO_PKG_VERSION")) => {
            Check::ok(NAME, program.display().to_string(), "pmmpi can read and report runs")
        }
        Ok(version) => Check::broken(
            NAME,
            format!(
                "{} is {}, but this is pmmpi {}",
                program.display(),
                version.trim(),
                env!("CARGO_PKG_VERSION")
            ),
            "this pmmpi-report may be unable to read the run files of this pmmpi",
            reinstall(machine),
        ),
    }
}

/// The folder for run files.
pub fn out(machine: &dyn Machine) -> Check {
    const NAME: &str = "out";
    /// Space for a run of many ranks and its parts.
    const LITTLE_BYTES: u64 = 64 << 20;
    let folder = machine.out();
    let nearest = nearest_existing(&folder);
    let (shown, parent) = (folder.display(), nearest.display());
    let made = if nearest == folder { String::new() } else { format!(" (to be created in {parent})") };
    let fix = "export PMMPI_OUT=$HOME/pmmpi-results   # a folder that all nodes see; or --out DIR";
    if folder.exists() && !folder.is_dir() {
        let costs = "pmmpi cannot save runs, so it ends with exit status 125 before the program starts";
        return Check::broken(NAME, format!("{shown} is not a folder"), costs, fix);
    }
    match machine.try_writing(&nearest) {
        Err(e) => Check::broken(
            NAME,
            format!("pmmpi cannot write to {shown}{made}: {e}"),
            "pmmpi cannot save runs, so it ends with exit status 125 before the program starts",
            fix,
        ),
        Ok(free) if free < LITTLE_BYTES => Check::limits(
            NAME,
            format!("{shown}{made}: {} MiB free", free >> 20),
            "a run of many ranks might need more space: then pmmpi ends with exit status 125 before the program starts",
            fix,
        ),
        Ok(free) => Check::ok(
            NAME,
            format!("{shown}{made}: {} GiB free", tenths_of_gib(free)),
            "pmmpi saves runs here",
        ),
    }
}

fn tenths_of_gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 30))
}

fn nearest_existing(folder: &Path) -> PathBuf {
    let existing = folder.ancestors().find(|path| path.exists());
    match existing {
        Some(path) if !path.as_os_str().is_empty() => path.to_owned(),
        // A relative path starts in the current folder.
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::command::{CommandOutput, Silent};
    use super::super::machine::tests::Fake;
    use super::*;
    use pmmpi::node::HwThread;

    const AGENT: &str = "lib/pmmpi/libpmmpi_agent.so";
    const TOPOLOGY: &str = "lib/pmmpi/pmmpi-topology";
    const REPORT: &str = "bin/pmmpi-report";

    fn saying(stdout: impl Into<Vec<u8>>) -> Result<CommandOutput, Silent> {
        Ok(CommandOutput { success: true, stdout: stdout.into(), ..CommandOutput::default() })
    }

    fn complaining(stderr: &str) -> Result<CommandOutput, Silent> {
        Ok(CommandOutput { stderr: stderr.into(), ..CommandOutput::default() })
    }

    #[test]
    fn an_agent_is_one_that_the_loader_takes() {
        let fine = Fake::new().file(AGENT, "").program("true", "\tlibc.so.6 => /lib/libc.so.6 (0x7)\n");
        assert_eq!(agent(&fine).status, Status::Ok);
        let line =
            "ERROR: ld.so: object 'a.so' from LD_PRELOAD cannot be preloaded (invalid ELF header): ignored.";
        let refused = Fake::new().file(AGENT, "").answering("bin/true", complaining(line));
        let check = agent(&refused);
        assert!(check.status == Status::Broken && check.found.contains("invalid ELF header"), "{check:?}");
    }

    #[test]
    fn a_missing_file_says_where_it_was_looked_for_and_why_there() {
        for check in [agent(&Fake::new()), topology(&Fake::new())] {
            assert!(check.status == Status::Broken && check.found.contains("lib/pmmpi"), "{check:?}");
            assert!(check.fix.unwrap().contains("make install PREFIX=/"));
        }
        let fix = agent(&Fake::new().variable("PMMPI_LIBDIR", "/nowhere")).fix.unwrap();
        assert!(fix.starts_with("unset PMMPI_LIBDIR   # its value is /nowhere\n"), "{fix}");
        assert_eq!(report(&Fake::new()).status, Status::Broken);
    }

    #[test]
    fn topology_must_be_read_and_understood() {
        let thread = HwThread { cpu: 0, core: 0, socket: 1, numa: 0, last_level_cache: None };
        let read =
            Topology { source: "hwloc API 2.9.0".into(), threads: vec![thread], ..Topology::default() };
        let bytes = wire::encode(&read).unwrap();
        let check = topology(&Fake::new().answering(TOPOLOGY, saying(bytes)));
        assert_eq!(check.status, Status::Ok);
        assert_eq!(check.found, "hwloc API 2.9.0: 1 hardware thread, 1 socket");
        let missing = "error while loading shared libraries: libhwloc.so.15";
        for (answer, why) in [(complaining(missing), "libhwloc.so.15"), (saying("?"), "another version")] {
            let check = topology(&Fake::new().answering(TOPOLOGY, answer));
            assert!(check.status == Status::Broken && check.found.contains(why), "{check:?}");
        }
    }

    #[test]
    fn the_report_is_of_the_same_version() {
        let own = format!("pmmpi {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(report(&Fake::new().answering(REPORT, saying(own))).status, Status::Ok);
        for (answer, why) in [(saying("pmmpi 99.0.0\n"), "99.0.0, but"), (complaining("x"), "x")] {
            let check = report(&Fake::new().answering(REPORT, answer));
            assert!(check.status == Status::Broken && check.found.contains(why), "{check:?}");
        }
    }

    #[test]
    fn runs_need_a_folder_that_can_be_written() {
        let check = out(&Fake::new().file("x", "").space(Ok(3 << 30)));
        assert_eq!(check.status, Status::Ok);
        assert!(
            check.found.contains("(to be created in /") && check.found.ends_with("3.0 GiB free"),
            "{check:?}"
        );
        let check = out(&Fake::new().file("out/run.pmr", "").space(Ok(5 << 20)));
        assert!(check.status == Status::Limits && check.found.ends_with("/out: 5 MiB free"), "{check:?}");
        let check = out(&Fake::new().space(Err(libc::EROFS)));
        assert_eq!(check.status, Status::Broken);
        assert!(check.fix.unwrap().contains("export PMMPI_OUT="));
        let check = out(&Fake::new().file("out", "").space(Ok(1 << 40)));
        assert!(check.status == Status::Broken && check.found.ends_with("is not a folder"), "{check:?}");
    }

    #[test]
    fn what_is_relative_lies_here() {
        assert_eq!(nearest_existing(Path::new("no/such/folder")), Path::new("."));
        assert_eq!(nearest_existing(Path::new("/no/such")), Path::new("/"));
    }
}
