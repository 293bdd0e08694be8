//! Signals from any sender, in any way: the workload gets each signal once, as it would without the tool.
//!
//! tests/programs/signals.c prints "NUMBERxTIMES" for each signal that it received.

use rig::cluster::Job;
use rig::tool::{self, Folder, Started, pmmpi, run, start};
use rig::{Mpi, programs};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A command line that measures tests/programs/signals.c; `before` stands in front of it.
fn counting(before: &[&str], arguments: &[&str]) -> Command {
    let tool = [pmmpi(), "--no-save".into(), "--quiet".into(), programs::plain("signals")];
    let tool = tool.map(|word| word.display().to_string());
    let tool = tool.iter().map(String::as_str);
    let words: Vec<&str> = before.iter().copied().chain(tool).chain(arguments.iter().copied()).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn started(before: &[&str]) -> Started {
    let started = start(&mut counting(before, &[]));
    started.wait_for("ready", 1);
    started
}

/// The received signals in the order of their numbers.
fn counts(started: Started) -> String {
    let output = started.finish();
    let text = output.out();
    text.strip_prefix("ready\n").unwrap_or_else(|| panic!("{text}{}", output.err())).trim().to_owned()
}

/// Longer than the time within which two signals count as one.
fn pause() {
    std::thread::sleep(Duration::from_millis(500));
}

#[test]
fn a_process_and_its_group_are_told_apart() {
    let started = started(&[]);
    started.signal(libc::SIGUSR1);
    started.signal_group(libc::SIGUSR2);
    started.signal_group(libc::SIGALRM);
    started.signal_group(libc::SIGRTMIN());
    pause();
    // The same sender signals in both ways.
    started.signal(libc::SIGUSR2);
    started.signal(libc::SIGALRM);
    pause();
    started.signal_group(libc::SIGALRM);
    started.signal(libc::SIGTERM);
    assert_eq!(counts(started), "10x1 12x2 14x3 15x1 34x1");
}

/// Some sites give jobs no time to end. A signal that pmmpi has received reaches the workload nevertheless.
#[test]
fn a_signal_just_before_the_kill_is_passed_on() {
    for _ in 0..5 {
        let folder = Folder::new("kill");
        let started =
            start(&mut counting(&[], &[&libc::SIGTERM.to_string(), folder.path().to_str().unwrap()]));
        started.wait_for("ready", 1);
        started.signal(libc::SIGTERM);
        // Its handler has run: no signal is pending, and it sleeps.
        let status = || std::fs::read_to_string(format!("/proc/{}/status", started.id())).unwrap_or_default();
        let is_done =
            |status: &str| !status.contains("ShdPnd:\t0000000000004") && status.contains("State:\tS");
        while !is_done(&status()) {
            started.assert_running();
            std::thread::sleep(Duration::from_micros(100));
        }
        started.signal(libc::SIGKILL);
        started.finish();
        let counts = || {
            let file = std::fs::read_dir(folder.path()).unwrap().flatten().next();
            file.map(|file| std::fs::read_to_string(file.path()).unwrap()).unwrap_or_default()
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while counts().is_empty() {
            assert!(Instant::now() < deadline, "the workload got nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(counts().trim(), "15x1");
    }
}

/// One process after another, like slurmstepd with proctrack/linuxproc.
#[test]
fn each_process_of_a_group_in_turn_is_one_signal() {
    let started = started(&[]);
    for signal in ["-USR1", "-USR2", "-HUP", "-RTMIN"] {
        run(Command::new("pkill").args([signal, "-g", &started.id().to_string()])).success();
    }
    started.signal_group(libc::SIGTERM);
    assert_eq!(counts(started), "1x1 10x1 12x1 15x1 34x1");
}

#[test]
fn a_shell_that_signals_its_own_group_does_so_once() {
    let folder = Folder::new("zero");
    let script = "trap : USR1; log=$1; shift; \"$@\" > $log & until grep -q ready $log; do sleep 0.01; done
        kill -USR1 0; sleep 0.5; kill -TERM $!; while kill -0 $! 2>/dev/null; do wait; done; cat $log";
    let log = folder.path().join("log").display().to_string();
    let output = run(&mut counting(&["sh", "-c", script, "sh", &log], &[]));
    assert_eq!(output.out(), "ready\n10x1 15x1\n", "{}", output.err());
}

#[test]
fn a_workload_that_signals_its_own_group_does_so_once() {
    let script = "trap 'echo got' USR1; kill -USR1 0; sleep 0.2; sleep 0.2";
    let mut command = Command::new(pmmpi());
    let output = run(command.args(["--no-save", "--quiet", "sh", "-c", script])).success();
    assert_eq!(output.out(), "got\n");
}

/// timeout signals its child and then the group of both; with --foreground it signals only its child.
#[test]
fn timeout_is_heard_once() {
    for (options, expected) in
        [(&["timeout"][..], "10x1 15x1 18x2"), (&["timeout", "--foreground"], "10x1 15x1")]
    {
        let started = started(&[options, &["--signal=USR1", "300"]].concat());
        started.signal(libc::SIGUSR1);
        pause();
        started.signal(libc::SIGTERM);
        assert_eq!(counts(started), expected, "{options:?}");
    }
}

/// A typed signal goes to all processes in the foreground, a hang-up only to the leader of the session.
#[test]
fn a_terminal_is_heard_once() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/terminal.py").display().to_string();
    for (actions, last, expected) in [("wqc", libc::SIGINT, "2x1 3x1 28x1"), ("h", libc::SIGHUP, "1x1 18x1")]
    {
        let folder = Folder::new("terminal");
        let log = folder.path().join("log").display().to_string();
        let mut command = counting(&["python3", &script, actions, &log], &[&last.to_string()]);
        let output = start(&mut command).within(Duration::from_secs(30)).finish();
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text, format!("ready\n{expected}\n"), "{}", output.err());
    }
}

/// After any end of a job with several rounds, and of reading for a report.
#[test]
fn no_progress_is_left_on_a_terminal() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/terminal.py").display().to_string();
    let folder = Folder::new("bar");
    let log = folder.path().join("log").display().to_string();
    let show = |shown: &str, words: &[&str]| {
        let tool = pmmpi().display().to_string();
        let mut command = Command::new("python3");
        command
            .args([script.as_str(), "c", &log, &tool])
            .args(words)
            .env("SHOWN", shown)
            .env("TERM", "xterm");
        let output = start(&mut command).within(Duration::from_secs(60)).finish();
        assert_eq!(output.code(), 256 - libc::SIGINT, "{}", output.err());
        output.out()
    };
    // After the last progress line there is the sequence that erases it, and what is printed at the end.
    let rest = |text: &str, shown: &str| text.rsplit(shown).next().unwrap().replace("^C", "");
    let text = show("measuring", &["--no-save", "--runs", "3", "sleep", "100"]);
    assert!(text.contains("stopped by signal 2 after 1 of 3 runs"), "{text:?}");
    let summary = "\r\x1b[2Kpmmpi: 0 of 3 runs count (1 failed, 2 not started)\r\n";
    assert_eq!(rest(&text, "measuring").trim_matches(' '), summary, "{text:?}");
    // Many files of one run: reading them takes more than a second.
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs/v5");
    let stored = std::fs::read_dir(stored).unwrap().flatten().map(|entry| entry.path());
    let run = stored.into_iter().find(|path| path.extension().is_some_and(|e| e == "pmr")).unwrap();
    std::fs::copy(run, runs.join("0.pmr")).unwrap();
    (1..60_000)
        .for_each(|at| std::fs::hard_link(runs.join("0.pmr"), runs.join(format!("{at}.pmr"))).unwrap());
    let text = show("reading: ", &["report", runs.to_str().unwrap()]);
    assert!(rest(&text, "reading: ").ends_with("\r\x1b[K"), "{text:?}");
}

/// As with a launcher, its variables are set and the sender is the parent, in another group.
#[test]
fn a_program_that_measures_in_a_session_of_its_own_ends_it() {
    let script = "import subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, start_new_session=True, close_fds=False)
p.stdout.readline()
p.terminate()
print(p.stdout.read().decode().strip(), p.wait())";
    for mpi in Mpi::ALL {
        let _alone = rig::cluster::machine();
        let job = Job::local(mpi, 1).args(["python3", "-c", script]).arg(pmmpi());
        let job = job.args(["--no-save", "--quiet"]).arg(programs::plain("signals"));
        let output = job.start().within(Duration::from_secs(60)).finish();
        assert_eq!(output.out(), "15x1 0\n", "{mpi:?} {}", output.err());
    }
}

/// A search for the tool by name finds one process.
#[test]
fn a_name_is_one_process() {
    let folder = Folder::new("name");
    let name = format!("named{}", std::process::id() % 1_000_000);
    let tool = folder.path().join(&name);
    // Another process copies it: otherwise a process that this one starts meanwhile could inherit the file, open for
    // writing.
    run(Command::new("cp").arg(pmmpi()).arg(&tool)).success();
    let libraries = pmmpi().ancestors().nth(2).unwrap().join("lib/pmmpi");
    let mut command = Command::new(&tool);
    command.args(["--no-save", "--quiet"]).arg(programs::plain("signals")).env("PMMPI_LIBDIR", libraries);
    let started = start(&mut command);
    started.wait_for("ready", 1);
    run(Command::new("pkill").args(["-USR1", "-x", &name])).success();
    run(Command::new("pkill").args(["-USR2", "-f"]).arg(&tool)).success();
    pause();
    started.signal(libc::SIGTERM);
    assert_eq!(counts(started), "10x1 12x1 15x1");
}

/// As a job of a shell: both the workload and the shell notice the stop.
#[test]
fn a_stop_reaches_the_workload_and_stops_the_tool() {
    type Send = fn(&Started, i32);
    for send in [Started::signal as Send, Started::signal_group] {
        let started = started(&[]);
        send(&started, libc::SIGTSTP);
        wait_for_state(started.id(), 'T');
        pause();
        send(&started, libc::SIGCONT);
        wait_for_state(started.id(), 'S');
        pause();
        started.signal(libc::SIGTERM);
        assert_eq!(counts(started), "15x1 18x1 20x1");
    }
}

/// A workload that does not handle the signal stops, and later continues.
#[test]
fn a_workload_stops_and_goes_on_with_the_tool() {
    let started = start(Command::new(pmmpi()).args(["--no-save", "--quiet", "sleep", "300"]));
    let workload = child(started.id(), "sleep");
    for (signal, state) in [(libc::SIGTSTP, 'T'), (libc::SIGCONT, 'S'), (libc::SIGTSTP, 'T')] {
        started.signal(signal);
        wait_for_state(workload, state);
    }
    started.signal(libc::SIGTERM);
    started.signal(libc::SIGCONT);
    assert_eq!(started.finish().code(), 128 + libc::SIGTERM);
}

#[test]
fn none_of_many_is_lost_or_doubled() {
    const TIMES: usize = 500;
    let started = started(&[]);
    for _ in 0..TIMES {
        started.signal(libc::SIGRTMIN() + 1);
        started.signal_group(libc::SIGRTMIN() + 2);
    }
    pause();
    started.signal(libc::SIGTERM);
    assert_eq!(counts(started), format!("15x1 35x{TIMES} 36x{TIMES}"));
}

/// Without the witness a signal comes twice at worst.
#[test]
fn nothing_is_lost_without_the_witness() {
    for harm in [libc::SIGKILL, libc::SIGSTOP] {
        let started = started(&[]);
        let witness = child(started.id(), "signal-witness");
        send(witness, harm);
        wait_for_state(witness, if harm == libc::SIGKILL { 'Z' } else { 'T' });
        started.signal(libc::SIGUSR1);
        pause();
        started.signal(libc::SIGTERM);
        assert_eq!(counts(started), "10x1 15x1", "{harm}");
    }
}

/// The witness holds nothing that others wait for. It ends with the tool, however the tool ends.
#[test]
fn the_witness_harms_nobody() {
    let started = started(&[]);
    let witness = child(started.id(), "signal-witness");
    // It closes its descriptors before it sleeps.
    wait_for_state(witness, 'S');
    assert_eq!(std::fs::read_dir(format!("/proc/{witness}/fd")).unwrap().count(), 0);
    let workload = child(started.id(), "signals");
    started.signal(libc::SIGKILL);
    assert_eq!(started.finish().code(), 128 + libc::SIGKILL);
    let deadline = Instant::now() + Duration::from_secs(60);
    while tool::processes_with("signals").contains(&witness) {
        assert!(Instant::now() < deadline, "the witness is left");
        std::thread::sleep(Duration::from_millis(10));
    }
    send(workload, libc::SIGKILL);
}

/// A child's message goes to the reader of the pipe, which must not wait for another process.
#[test]
fn a_workload_in_a_group_of_its_own_hears_all() {
    let started =
        start(Command::new(pmmpi()).args(["--no-save", "--quiet", "setsid"]).arg(programs::plain("signals")));
    started.wait_for("ready", 1);
    started.signal(libc::SIGUSR1);
    started.signal_group(libc::SIGUSR2);
    pause();
    started.signal(libc::SIGTERM);
    assert_eq!(counts(started), "10x1 12x1 15x1");
}

fn send(process: i32, signal: i32) {
    // SAFETY: a process that this test has started.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

/// State, parent and name of a process.
fn status(process: i32) -> Option<(char, i32, String)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (name, rest) = text.split_once('(')?.1.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?, name.to_owned()))
}

fn wait_for_state(process: i32, state: char) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while status(process).is_none_or(|(now, ..)| now != state) {
        assert!(Instant::now() < deadline, "{process} does not come to {state}: {:?}", status(process));
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn child(parent: i32, name: &str) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_it = |process: &i32| status(*process).is_some_and(|(_, p, n)| p == parent && n == name);
        if let Some(process) = processes.find(is_it) {
            return process;
        }
        assert!(Instant::now() < deadline, "{parent} has no child {name}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
