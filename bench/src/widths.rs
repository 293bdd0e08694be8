//! The distance between the two bounds of a job, by number of ranks. The hosts have clocks of their own, and one rank
//! comes so late that the others sleep.

use crate::paired::{Spread, Way, in_turns};
use crate::{Folder, must_succeed, pmmpi, run_file};
use pmmpi::record::run_file;
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: [usize; 7] = [2, 3, 4, 5, 6, 7, 8];
const HOSTS: usize = 4;
const ROUNDS: usize = 15;
/// Each rank works 50 ms, and the last rank 350 ms more: a waiting rank sleeps after 100 ms.
const WORK_MS: &str = "50";
const LATE_MS: &str = "350";

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let hosts = Hosts::new(folder.path())?;
    let (tool, out) = (pmmpi()?, folder.path().join("widths"));
    let mut text = format!(
        "## Difference of the bounds, up to {HOSTS} hosts with clocks hours apart ({ROUNDS} rounds)\n\n\
         The last rank works {LATE_MS} ms longer than the others.\n\n\
         | ranks | Open MPI, us | relative to 4 ranks | MPICH, us | relative to 4 ranks |\n|---|---|---|---|---|\n"
    );
    let mut columns = Vec::new();
    for (compiler, launch) in [("mpicc.openmpi", Hosts::open_mpi as Launch), ("mpicc.mpich", Hosts::mpich)] {
        let program = folder.compile_test(compiler, "late")?;
        let once = |ranks: usize| {
            let (hosts, tool, out, program) = (&hosts, &tool, &out, &program);
            move || {
                let mut command = launch(hosts, ranks)?;
                command.arg(tool).arg("--quiet").arg("--out").arg(out).arg(program);
                must_succeed(command.args([WORK_MS, &(ranks - 1).to_string(), LATE_MS]))?;
                let file = run_file(out)?;
                let bounds = run_file::read(&file)?.elapsed().ok_or("a rank is missing in the run file")?;
                fs::remove_file(file)?;
                Ok((bounds.upper_ns - bounds.lower_ns) as f64)
            }
        };
        let mut ways: Vec<Way<f64>> = RANKS.iter().map(|ranks| Way::new("", once(*ranks))).collect();
        columns.push(in_turns(&mut ways, ROUNDS)?);
    }
    let four = RANKS.iter().position(|ranks| *ranks == 4).unwrap_or_default();
    for (at, ranks) in RANKS.iter().enumerate() {
        let cells = columns.iter().map(|table| {
            let width = Spread::of(table, |row| row[at]);
            let ratio = width.median / Spread::of(table, |row| row[four]).median;
            format!("{} | {ratio:.2}", width.text(1e-3, 0))
        });
        text += &format!("| {ranks} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(text)
}

type Launch = fn(&Hosts, usize) -> Result<Command, Box<dyn Error>>;

/// Hosts that a launcher reaches through the test rig's remote shell.
struct Hosts {
    names: Vec<String>,
    folder: PathBuf,
}

impl Hosts {
    fn new(folder: &Path) -> Result<Self, Box<dyn Error>> {
        const HOUR_NS: usize = 3_600_000_000_000;
        let own = std::env::current_exe()?;
        let host = own.parent().ok_or("no folder")?.join("pmmpi-rig-host");
        let names: Vec<String> = (0..HOSTS).map(|host| format!("node{host}")).collect();
        let line = |(at, name): (usize, &String)| format!("{name} {}\n", (at * at + 1) * HOUR_NS + at);
        fs::write(folder.join("table"), names.iter().enumerate().map(line).collect::<String>())?;
        let shell = folder.join("shell");
        let script =
            format!("#!/bin/sh\nexec {} --rsh {} \"$@\"\n", host.display(), folder.join("table").display());
        fs::write(&shell, script)?;
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))?;
        Ok(Self { names, folder: folder.to_owned() })
    }

    /// The hosts of a job, and the largest number of ranks per host.
    fn of(&self, ranks: usize) -> (&[String], usize) {
        let hosts = &self.names[..ranks.min(HOSTS)];
        (hosts, ranks.div_ceil(hosts.len()))
    }

    fn open_mpi(&self, ranks: usize) -> Result<Command, Box<dyn Error>> {
        let (hosts, each) = self.of(ranks);
        let file = self.folder.join("hosts");
        fs::write(&file, hosts.iter().map(|host| format!("{host} slots={each}\n")).collect::<String>())?;
        let mut command = crate::jobs::mpirun(&ranks.to_string(), None);
        command.arg("--hostfile").arg(file).args(["--map-by", "slot", "--mca", "plm", "rsh"]);
        command.args(["--mca", "plm_rsh_agent"]).arg(self.folder.join("shell"));
        Ok(command)
    }

    fn mpich(&self, ranks: usize) -> Result<Command, Box<dyn Error>> {
        let (hosts, each) = self.of(ranks);
        let mut command = Command::new("mpiexec.hydra");
        command.args(["-launcher", "ssh", "-launcher-exec"]).arg(self.folder.join("shell"));
        command.args(["-hosts", &hosts.join(","), "-ppn", &each.to_string(), "-n", &ranks.to_string()]);
        Ok(command)
    }
}
