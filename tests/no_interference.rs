//! The tool does not affect the workload: its output and its end are the same, and the tool does nothing between the
//! snapshots.

use rig::cluster::{Job, machine};
use rig::tool::{Folder, Output, pmmpi, run};
use rig::{Mpi, programs};
use std::path::Path;
use std::process::Command;

fn bare(program: &Path) -> Command {
    Command::new(program)
}

fn measured(program: &Path, out: &Folder) -> Command {
    let mut command = Command::new(pmmpi());
    command.args(["--quiet", "--out"]).arg(out.path()).arg("--").arg(program);
    command
}

/// Equal byte for byte. A difference is shown without the first 4096 bytes, which are not text.
fn assert_same(bare: &Output, measured: &Output) {
    let readable = |bytes: &[u8]| String::from_utf8_lossy(&bytes[4096..]).into_owned();
    assert_eq!(readable(&bare.stdout), readable(&measured.stdout));
    assert_eq!(readable(&bare.stderr), readable(&measured.stderr));
    assert!(bare.stdout == measured.stdout && bare.stderr == measured.stderr);
}

#[test]
fn every_exit_code_passes_through() {
    let (program, out) = (programs::plain("noisy"), Folder::new("codes"));
    for code in 0..=255 {
        let code = code.to_string();
        let (bare, measured) = (run(bare(&program).arg(&code)), run(measured(&program, &out).arg(&code)));
        assert_eq!(bare.status, measured.status);
        assert_same(&bare, &measured);
    }
    assert_eq!(out.runs().len(), 256);
}

#[test]
fn every_deadly_signal_passes_through() {
    let (program, out) = (programs::plain("noisy"), Folder::new("signals"));
    let deadly = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31, 34];
    for signal in deadly {
        let end = format!("-{signal}");
        let (bare, measured) = (run(bare(&program).arg(&end)), run(measured(&program, &out).arg(&end)));
        assert_eq!(bare.code(), measured.code(), "signal {signal}");
        assert_eq!(bare.code(), 128 + signal);
        assert_same(&bare, &measured);
    }
    assert_eq!(out.runs().len(), deadly.len());
}

/// The ranks of an MPI program get the same from launch and MPI with and without the tool. They write to pipes of one
/// mpirun, so the test compares each output stream separately.
#[test]
fn an_mpi_program_says_the_same() {
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "noisy");
        for end in ["0", "1", "7", "77", "126", "255"] {
            let out = Folder::new("noisy");
            let bare = Job::local(mpi, 1).arg(&program).arg(end).run();
            let job = Job::local(mpi, 1).arg(pmmpi()).arg("--quiet").arg("--out").arg(out.path());
            let measured = job.arg(&program).arg(end).run();
            assert_eq!(bare.code(), measured.code(), "{mpi:?} {end}");
            assert!(bare.stdout[..4096] == measured.stdout[..4096]);
            let (bare_lines, mut lines) =
                (without_pids(&bare.stdout[4096..]), without_pids(&measured.stdout[4096..]));
            // The tool's counters, which the process itself reads, have descriptors far above a program's own.
            let number = |line: &String| line.strip_prefix("descriptor ")?.parse::<u32>().ok();
            let is_counter = |line: &String| number(line).is_some_and(|number| number >= 600);
            assert!(lines.iter().filter(|line| is_counter(line)).count() <= 9, "{lines:?}");
            lines.retain(|line| !is_counter(line));
            assert_eq!(bare_lines, lines, "{mpi:?} {end}");
            assert!(bare.stderr[..4096] == measured.stderr[..4096]);
            assert_eq!(out.runs().len(), 1, "the run was complete before the program failed");
        }
    }
}

/// mpirun's own banner about a failed rank contains its process id.
fn without_pids(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    text.lines().filter(|line| !line.contains("PID")).map(str::to_owned).collect()
}

/// With one rank only: if two ranks die, MPICH's mpirun reports either of them, and sometimes 255.
#[test]
fn a_signal_ends_an_mpi_job_as_it_would_alone() {
    for mpi in Mpi::ALL {
        let (program, out) = (programs::mpi(mpi, "noisy"), Folder::new("killed"));
        for end in ["-11", "-9", "-15"] {
            let bare = Job::local(mpi, 1).arg(&program).arg(end).run();
            let job = Job::local(mpi, 1).arg(pmmpi()).arg("--quiet").arg("--out").arg(out.path());
            assert_eq!(job.arg(&program).arg(end).run().code(), bare.code(), "{mpi:?} {end}");
        }
    }
}

/// System calls and threads between two marks in an MPI program; the marks are after t1 and before t2.
#[test]
fn nothing_happens_between_the_snapshots() {
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "quiet");
        let folder = Folder::new("trace");
        let trace = folder.path().join("trace");
        let strace = |trace: &Path| {
            let flags = ["-f", "-qq", "-e", "signal=none", "-o"].map(str::to_owned);
            flags.into_iter().chain([trace.display().to_string()]).collect::<Vec<_>>()
        };
        let _alone = machine();
        let mut command = Command::new("strace");
        command.args(strace(&trace)).arg(pmmpi()).args(["--quiet", "--out"]).arg(folder.path()).arg(&program);
        run(command.envs(rig::FOR_ROOT)).success();
        let text = std::fs::read_to_string(&trace).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mark = |mark: &str| lines.iter().position(|line| line.contains(mark)).expect("a mark");
        let (begin, end) = (mark("\"BEGIN\""), mark("\"END\""));
        let process = lines[begin].split(' ').next().unwrap();
        let between: Vec<_> = lines[begin + 1..end].iter().filter(|line| line.starts_with(process)).collect();
        assert!(between.is_empty(), "{mpi:?}: {between:#?}");
        assert_eq!(folder.runs().len(), 1);
        // Meanwhile the launcher sleeps in wait4 and makes no call either.
        let launcher = lines[0].split(' ').next().unwrap();
        assert!(!lines[begin..end].iter().any(|line| line.starts_with(&format!("{launcher} "))));
    }
}

#[test]
fn an_mpi_program_has_the_threads_that_it_would_have() {
    for mpi in Mpi::ALL {
        let (program, out) = (programs::mpi(mpi, "threads"), Folder::new("count"));
        let bare = Job::local(mpi, 1).arg(&program).run().success();
        let job = Job::local(mpi, 1).arg(pmmpi()).arg("--out").arg(out.path()).arg(&program);
        assert_eq!(bare.out(), job.run().success().out(), "{mpi:?}");
    }
}

#[test]
fn nothing_is_said_when_told_so_and_one_line_else() {
    let (program, out) = (programs::mpi(Mpi::Mpich, "quiet"), Folder::new("quiet"));
    let job = || Job::local(Mpi::Mpich, 2).arg(pmmpi()).arg("--out").arg(out.path());
    assert_eq!(job().arg("-q").arg(&program).run().success().err(), "");
    let said = job().arg(&program).run().success().err();
    assert!(said.starts_with("pmmpi: elapsed between ") && said.lines().count() == 1, "{said}");
    assert!(said.contains(" s, 2 ranks on 1 node, ") && said.trim_end().ends_with(".pmr"), "{said}");
}

#[test]
fn what_cannot_be_measured_is_said_before_the_workload_starts() {
    let folder = Folder::new("refused");
    let mark = folder.path().join("mark");
    let try_with = |out: &str| run(Command::new(pmmpi()).args(["--out", out, "touch"]).arg(&mark));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for out in ["/proc/nothing", file.to_str().unwrap(), "/dev/null/x"] {
        let output = try_with(out);
        assert_eq!((output.code(), output.out()), (125, String::new()));
        assert!(output.err().contains("cannot save runs in"), "{}", output.err());
        assert!(!mark.exists());
    }
    // In a job no rank may wait for the rank that gave up.
    for (mpi, mode) in Mpi::ALL.into_iter().flat_map(|mpi| [(mpi, "mpi"), (mpi, "plain")]) {
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["--out", "/proc/nothing", "--mode", mode]);
        let output = job.arg(programs::mpi(mpi, "quiet")).run();
        assert_eq!(output.code(), 125, "{mpi:?} {mode} {}", output.err());
        assert!(output.err().contains("cannot save runs in"), "{}", output.err());
    }
    let codes = |args: &[&str]| run(Command::new(pmmpi()).arg("--out").arg(folder.path()).args(args)).code();
    assert_eq!(codes(&["--runs", "2", "/nonexistent"]), 127);
    assert_eq!(codes(&["/etc/passwd"]), 126);
    assert_eq!(codes(&["--runs", "0", "true"]), 125);
    assert_eq!(codes(&["--label", "x", "true"]), 125);
    assert_eq!(codes(&["--label", "x=1", "--label", "x=2", "true"]), 125);
    assert_eq!(codes(&["--no-save", "report"]), 127);
    assert_eq!(codes(&["--max-drift-ppm", "-1", "true"]), 125);
    assert_eq!(codes(&["--nonsense"]), 125);
    for (typed, said) in [
        (&["reprot"][..], "Did you mean the command report? pmmpi report --help"),
        (&["help", "report"], "For help, type pmmpi report --help"),
        (&["help"], "For help, type pmmpi --help"),
        (&["--quiet", "report"], "Write the command as the first word"),
    ] {
        let output = run(Command::new(pmmpi()).args(typed));
        assert!(output.code() == 127 && output.err().contains(said), "{}", output.err());
    }
    assert_eq!(codes(&[]), 125);
    let mpi = programs::mpi(Mpi::Mpich, "quiet");
    let several = run(Command::new(pmmpi()).args(["--runs", "2"]).arg(mpi));
    assert!(several.code() == 125 && several.err().contains("pmmpi repeat"), "{}", several.err());
}

/// A limit on file sizes costs the run file, but never the workload.
#[test]
fn a_limit_on_file_sizes_does_no_harm() {
    let out = Folder::new("limit");
    // The output goes through a pipe, because the limit holds for files.
    let limited = |blocks: u32, args: &str| {
        let command = format!("exec {} --out {} {args}", pmmpi().display(), out.path().display());
        let script = format!("(ulimit -f {blocks}; {command}) 2>&1 | cat; exit ${{PIPESTATUS[0]}}");
        run(Command::new("bash").args(["-c", &script]).envs(rig::FOR_ROOT))
    };
    let none = limited(0, "sh -c 'exit 0'");
    assert!(none.code() == 125 && none.out().contains("could not save the run"), "{}", none.out());
    let failed = limited(0, "sh -c 'exit 5'");
    assert!(failed.code() == 5 && failed.out().contains("could not save the run"), "{}", failed.out());
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "threads").display().to_string();
        // Open MPI itself writes a file of some MB.
        let some = limited(30_000, &program);
        assert_eq!(some.code(), 0, "{mpi:?} {}", some.out());
        assert!(some.out().contains("threads") && some.out().contains("ulimit -f"), "{mpi:?} {}", some.out());
    }
    assert!(out.runs().is_empty());
}

/// If stdin, stdout or stderr is closed at the start, the program finds it closed, and no message of the tool goes to
/// a file with its number.
#[test]
fn closed_descriptors_stay_closed() {
    let folder = Folder::new("closed");
    let list = |name: &str| folder.path().join(name).display().to_string();
    let script = |name: &str| format!("ls /proc/self/fd > {}; exit 3", list(name));
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"] {
        let tool =
            format!("{} --out {} sh -c '{}' {closed}", pmmpi().display(), list("runs"), script("measured"));
        assert_eq!(run(Command::new("sh").args(["-c", &tool])).code(), 3);
        let bare = format!("sh -c '{}' {closed}", script("bare"));
        assert_eq!(run(Command::new("sh").args(["-c", &bare])).code(), 3);
        let read = |name: &str| std::fs::read_to_string(list(name)).unwrap();
        assert_eq!(read("bare"), read("measured"), "{closed}");
    }
    assert_eq!(rig::tool::runs_in(&folder.path().join("runs")).len(), 4);
}

#[test]
fn help_fits_a_screen() {
    let commands = ["repeat", "doctor", "list", "validate", "screen"].map(|command| [command, "--help"]);
    let commands: Vec<&[&str]> = commands.iter().map(|words| &words[..]).collect();
    for args in [&[&["--help"][..], &["-h"], &["-q", "--help"]], &commands[..]].concat() {
        let output = run(Command::new(pmmpi()).args(args).env("COLUMNS", "80")).success();
        let lines: Vec<String> = output.out().lines().map(str::to_owned).collect();
        assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("Example")), "{lines:#?}");
    }
}

#[test]
fn help_is_never_lost() {
    for args in ["--help", "--version", "run --help", "doctor --help", "report --help"] {
        let script = format!("{} {args} > /dev/full", pmmpi().display());
        let full = run(Command::new("sh").args(["-c", &script]));
        assert_eq!(full.code(), 1, "{args}: {}", full.err());
        assert!(full.err().contains("cannot write the result to stdout: No space left"), "{}", full.err());
        let is_of_report = args.starts_with("report");
        assert!(is_of_report || full.err().starts_with("pmmpi: cannot write"), "{}", full.err());
        // A reader that closes the pipe early.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = Command::new(pmmpi()).args(args.split(' ')).stdout(writer).output().unwrap();
        assert_eq!((closed.status.code(), closed.stderr), (Some(0), Vec::new()), "{args}");
    }
}

/// A full disk costs the run file, not the program's result. Here the run is longer than the reserved space. With
/// more events than the default set, the reserved space does not include labels.
#[test]
fn a_full_disk_is_said_and_nothing_is_half_written() {
    let folder = Folder::new("full");
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k,nr_inodes=10 none {0} && {1} --events minor-faults --label a=$(printf %0100000d 0) --out {0} \
         sh -c 'head -c 256k /dev/zero > {0}/full; exit 0'; echo code $?; ls -A {0}",
        disk.display(),
        pmmpi().display()
    );
    // In a mount namespace of its own, so nothing stays mounted.
    let output = run(Command::new("unshare").args(["--mount", "--map-root-user", "sh", "-c", &script]));
    assert!(output.err().contains("could not save the run"), "{}", output.err());
    assert!(output.err().contains("elapsed between") && output.err().contains("not saved"));
    assert!(output.out().contains("code 125") && !output.out().contains(".pmr"), "{}", output.out());
    // With the default set, the tool reserved space for the whole run.
    let script = script.replace("--events minor-faults ", "");
    let output = run(Command::new("unshare").args(["--mount", "--map-root-user", "sh", "-c", &script]));
    assert!(
        output.out().contains("code 0") && output.out().contains(".pmr"),
        "{} {}",
        output.out(),
        output.err()
    );
}
