//! Plain programs in rounds: alone, under each MPI's launcher, and with repeated launches.

use pmmpi::record::{End, Mode, Run};
use rig::cluster::{Cluster, Job, machine};
use rig::tool::{Folder, Output, pmmpi, run, start};
use rig::{FOR_ROOT, Mpi, programs};
use std::path::Path;
use std::process::Command;

fn alone(out: &Folder, args: &[&str]) -> Output {
    run(Command::new(pmmpi()).arg("--out").arg(out.path()).args(args))
}

fn numbers(runs: &[Run]) -> Vec<u32> {
    runs.iter().map(|run| run.header.series.as_ref().expect("a series").round).collect()
}

fn assert_one_series(runs: &[Run]) {
    let id = |run: &Run| run.header.series.as_ref().map(|series| series.id.clone());
    assert!(runs.iter().all(|run| id(run) == id(&runs[0])));
}

#[test]
fn several_runs_alone_share_a_series() {
    let out = Folder::new("series");
    let output =
        alone(&out, &["--runs", "3", "--warmup", "2", "--label", "a=b", "sh", "-c", "echo run"]).success();
    assert_eq!(output.out().lines().count(), 5);
    let runs = out.runs();
    assert_eq!(numbers(&runs), [0, 1, 2]);
    assert_one_series(&runs);
    assert!(output.err().contains("[1/3] elapsed between") && output.err().contains("[3/3]"));
    let summary: Vec<String> = output.err().lines().rev().take(2).map(str::to_owned).collect();
    assert!(summary[1].starts_with("pmmpi: 3 runs: median between "), "{summary:?}");
    assert!(summary[0].starts_with("pmmpi: spread ") && summary[0].contains(" of 3, is "), "{summary:?}");
    let quiet = alone(&out, &["--quiet", "--runs", "3", "true"]).success();
    assert_eq!(quiet.err(), "");
    let single = alone(&out, &["true"]).success();
    assert!(!single.err().contains("median"), "{}", single.err());
    for run in &runs {
        assert_eq!((run.header.mode, run.end(), run.ranks.len()), (Mode::Plain, Some(End::Exited(0)), 1));
        assert!(run.nodes[0].facts.is_some() && run.nodes[0].topology.is_some());
        assert!(run.ranks[0].cpu_user_ns + run.ranks[0].cpu_system_ns > 0);
    }
}

#[test]
fn a_failure_stops_the_rounds_or_not_as_told() {
    let out = Folder::new("failure");
    let output = alone(&out, &["--runs", "3", "sh", "-c", "exit 4"]);
    assert_eq!((output.code(), out.runs().len()), (4, 1));
    assert!(output.err().contains("exited 4") && output.err().contains("--on-failure"), "{}", output.err());
    assert!(
        output.err().ends_with("pmmpi: 0 of 3 runs count (1 failed, 2 not started)\n"),
        "{}",
        output.err()
    );
    let output = alone(&out, &["--runs", "3", "--on-failure", "continue", "sh", "-c", "exit 4"]);
    assert_eq!((output.code(), out.runs().len()), (4, 4));
}

/// Like a shell and every launcher (execvp(3)): a file that the kernel cannot execute is a shell script.
#[test]
fn a_script_without_a_first_line_runs() {
    let out = Folder::new("script");
    let script = out.path().join("script");
    std::fs::write(&script, "echo run $1\nexit 3\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&script)).success();
    let alone = alone(&out, &[script.to_str().unwrap(), "x"]);
    assert_eq!((alone.code(), alone.out()), (3, "run x\n".to_owned()));
    for mpi in Mpi::ALL {
        let job = Job::local(mpi, 1).arg(pmmpi()).args(["--mode", "plain", "--out"]).arg(out.path());
        let output = job.arg(&script).arg("x").run();
        assert_eq!(output.code(), 3);
        assert!(output.out().starts_with("run x\n"), "{mpi:?} {}", output.out());
    }
    assert_eq!(out.runs().len(), 3);
}

/// Nothing ran, so there is no run.
#[test]
fn a_program_that_cannot_start_leaves_no_run() {
    let out = Folder::new("foreign");
    let program = out.path().join("program");
    std::fs::write(&program, "#!/nonexistent/shell\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&program)).success();
    let output = alone(&out, &[program.to_str().unwrap()]);
    assert!(!output.err().contains("elapsed"), "{}", output.err());
    assert_eq!((output.code(), out.runs().len()), (127, 0));
}

#[test]
fn rounds_that_are_interrupted_keep_what_they_have() {
    let out = Folder::new("interrupted");
    let mut command = Command::new(pmmpi());
    command.args(["--runs", "1000", "--out"]).arg(out.path()).args(["sh", "-c", "echo ready; sleep 0.05"]);
    let started = start(&mut command);
    started.wait_for("ready", 3);
    started.signal_group(libc::SIGINT);
    let output = started.finish();
    assert_eq!(output.code(), 128 + libc::SIGINT);
    let kept = out.runs().len();
    // Many of the thousand runs remain, however late the signal came.
    assert!((2..1000).contains(&kept), "{kept} runs");
}

/// A plain program under a rank has no access to its process manager, and no descriptors of the tool or of MPI.
#[test]
fn a_plain_program_under_mpi_cannot_join_its_job() {
    let script = "env | grep -E '^(PMI_(FD|PORT)|PMIX_(NAMESPACE|SERVER)|OMPI_MCA_(ess|pmix|orte)|HYDI_|PMMPI|LD_PRELOAD)' | sort; \
                  for f in /proc/self/fd/*; do readlink $f; done | grep -cE 'memfd|socket|eventfd|eventpoll'; true";
    for mpi in Mpi::ALL {
        let out = Folder::new("scrubbed");
        let bare = Job::local(mpi, 1).args(["sh", "-c", script]).run().success().out();
        let job = Job::local(mpi, 1).arg(pmmpi()).args(["--mode", "plain", "--out"]).arg(out.path());
        let output = job.args(["sh", "-c", script]).run().success();
        let descriptors = |text: &str| text.lines().last().unwrap().parse::<u32>().unwrap();
        assert_eq!(output.out().lines().count(), 1, "{mpi:?} {}", output.out());
        assert!(descriptors(&output.out()) <= descriptors(&bare), "{mpi:?}\n{bare}\n{}", output.out());
    }
}

#[test]
fn rounds_under_mpi_are_bracketed_by_barriers() {
    for mpi in Mpi::ALL {
        for (ranks, hosts) in [(1, 1), (2, 2), (3, 3), (6, 3)] {
            let out = Folder::new("bracketed");
            let script = "echo .; sleep 0.06";
            let cluster = Cluster::hours_apart(hosts);
            let job = cluster.mpirun(mpi, ranks).arg(pmmpi());
            let job = job.args(["--mode", "plain", "--runs", "3", "--warmup", "1", "--out"]).arg(out.path());
            let output = job.args(["--", "sh", "-c", script]).run().success();
            assert_eq!(output.out().lines().count(), 4 * ranks, "{mpi:?}");
            let runs = out.runs();
            assert_eq!(numbers(&runs), [0, 1, 2]);
            assert_one_series(&runs);
            for run in &runs {
                assert_eq!(
                    (run.ranks.len(), run.nodes.len(), run.end()),
                    (ranks, hosts, Some(End::Exited(0)))
                );
                let bounds = run.elapsed().unwrap();
                assert!(bounds.consistent && bounds.lower_ns >= 59_000_000, "{mpi:?} {bounds:?}");
                assert!(run.nodes.iter().all(|node| node.facts.is_some()));
                assert!(run.header.mpi_library.is_some());
                let real = |which: usize| run.ranks.iter().map(move |rank| rank.real_ns[which]);
                assert!(real(1).max().unwrap() - real(0).min().unwrap() <= bounds.upper_ns);
            }
            // Rounds follow one another: no rank begins a round before every rank has ended the previous round.
            for pair in runs.windows(2) {
                let end = pair[0].ranks.iter().map(|rank| rank.real_ns[1]).max().unwrap();
                assert!(pair[1].ranks.iter().all(|rank| rank.real_ns[0] >= end));
            }
        }
    }
}

#[test]
fn a_rank_that_fails_is_recorded_and_ends_the_job_as_it_would() {
    for mpi in Mpi::ALL {
        let out = Folder::new("failed");
        let script = "case $(uname -n) in node1) exit 5;; esac";
        let cluster = Cluster::hours_apart(2);
        let bare = cluster.mpirun(mpi, 2).args(["sh", "-c", script]).run();
        let job = cluster.mpirun(mpi, 2).arg(pmmpi()).args(["--mode", "plain", "--runs", "3", "--out"]);
        let output = job.arg(out.path()).args(["sh", "-c", script]).run();
        assert_eq!(output.code(), bare.code(), "{mpi:?}");
        let runs = out.runs();
        assert_eq!(runs.len(), 1);
        let ends: Vec<End> = runs[0].ranks.iter().map(|rank| rank.end).collect();
        assert_eq!(ends, [End::Exited(0), End::Exited(5)]);
        assert!(output.err().contains("failed on node1 (rank 1): exited 5"), "{}", output.err());
    }
}

/// A, B, B, A, and so on: what drifts is the same for both. `compare` finds the difference between them.
#[test]
fn two_launches_take_turns() {
    for mpi in Mpi::ALL {
        let (out, program) = (Folder::new("compare"), programs::mpi(mpi, "truth"));
        let _alone = machine();
        let launch = |ms: u32| {
            let [pmmpi, out, program] =
                [&pmmpi(), out.path(), &program].map(|path| path.display().to_string());
            format!("mpirun.{} -n 2 '{pmmpi}' --out '{out}' {program} {out} {ms} 1", mpi.name())
        };
        let mut command = Command::new(pmmpi());
        command.args(["repeat", "--runs", "5", "--compare"]).args([launch(60), launch(150)]).envs(FOR_ROOT);
        if mpi == Mpi::OpenMpi {
            command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        }
        let output = run(&mut command).success();
        assert!(
            output.err().contains("launch 2 B of 5") && output.err().contains("10 of 10 launches succeeded")
        );
        let mut runs = out.runs();
        runs.sort_by_key(|run| run.header.started_unix_ns);
        for set in ["A", "B"] {
            let summary = format!("pmmpi: {set}: 5 runs: median between ");
            assert!(output.err().contains(&summary), "{}", output.err());
        }
        let label = |run: &Run| run.header.labels.iter().find(|(key, _)| key == "compare").unwrap().1.clone();
        let order: String =
            runs.iter().map(|run| label(run).rsplit_once('.').unwrap().1.to_owned()).collect();
        assert_eq!(order, "abbaabbaab", "{mpi:?} {}", output.err());
        assert_eq!(numbers(&runs), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        let hint = output.err();
        let hint = hint
            .lines()
            .find_map(|line| line.strip_prefix("pmmpi: to compare A and B: pmmpi compare "))
            .unwrap();
        let mut command = Command::new(pmmpi());
        command.arg("compare").args(hint.split(' '));
        command.args(["--fail-on", "slower:30%"]);
        let output = run(&mut command);
        assert_eq!(output.code(), 3, "{} {}", output.out(), output.err());
        assert!(
            output.out().contains("class 1: B is ") && !output.out().contains("not-in-turns"),
            "{}",
            output.out()
        );
    }
    let wrong = |b: &str| {
        run(Command::new(pmmpi()).args(["repeat", "--runs", "2", "--compare", "srun pmmpi ./a", b]))
    };
    for (b, message) in [
        ("srun ./b", "pmmpi would measure nothing"),
        ("srun pmmpi './b", "a quote is not closed"),
        ("A=1 srun pmmpi ./b", "write `env A=1 srun"),
        ("LIBS=/opt/lib srun pmmpi ./b", "write `env LIBS=/opt/lib srun"),
    ] {
        let output = wrong(b);
        assert!(output.code() == 125 && output.err().contains(message), "{}", output.err());
    }
}

/// Each launch counts one group; the report shows the metrics of all of them.
#[test]
fn groups_of_events_take_turns() {
    let out = Folder::new("groups");
    let mut command = Command::new(pmmpi());
    command.args(["repeat", "--runs", "2", "--warmup", "1", "--groups", "cache,branch", "--"]).arg(pmmpi());
    let said = run(command.args(["--out"]).arg(out.path()).args(["sleep", "0.01"])).success().err();
    for part in [
        "pmmpi: warm-up launch 1 of 1\n",
        "pmmpi: launch 2 of 4, --group branch\n",
        "pmmpi: launch 4 of 4, --group branch\n",
        "pmmpi: 4 of 4 launches succeeded",
        "pmmpi: 4 runs: median between ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let mut runs = out.runs();
    runs.sort_by_key(|run| run.header.started_unix_ns);
    let typed: Vec<&str> = runs.iter().map(|run| run.asked[0].typed.as_str()).collect();
    assert_eq!(typed, ["--group branch", "--group cache", "--group cache", "--group branch"]);
    assert_eq!(numbers(&runs), [1, 0, 2, 3]);
    let report = |format: &str| {
        run(Command::new(pmmpi()).args(["report", "--format", format]).arg(out.path())).success().out()
    };
    let found: serde_json::Value = serde_json::from_str(&report("json")).unwrap();
    let series = &found["series"];
    assert_eq!((&series[0]["runs"], &series[1]), (&4.into(), &serde_json::Value::Null));
    let metrics = series[0]["metrics"].as_array().unwrap();
    for metric in ["dc_miss_ratio", "branch_rate", "busy_threads"] {
        assert!(metrics.iter().any(|found| found["name"] == metric), "{metric}: {metrics:#?}");
    }
    let text = report("text");
    assert!(
        text.contains("metrics of the last run's series: its 4 runs did not all count the same events"),
        "{text}"
    );
    // Both groups in one run.
    let both = Folder::new("both");
    run(Command::new(pmmpi()).args(["--group", "cache,tlb", "--out"]).arg(both.path()).arg("true")).success();
    let typed: Vec<String> = both.runs()[0].asked.iter().map(|asked| asked.typed.clone()).collect();
    assert_eq!(typed, ["--group cache", "--group tlb"]);
}

/// The runs may be on another node's disk, or nowhere.
#[test]
fn repeat_says_which_runs_it_cannot_see() {
    let out = Folder::new("unseen");
    let repeat = |options: &[&str]| {
        let mut command = Command::new(pmmpi());
        command.args(["repeat", "--runs", "2", "--", "env", "-C"]).arg(out.path()).arg(pmmpi());
        run(command.args(options).arg("true")).success().err()
    };
    let unseen = repeat(&["--out", "relative"]);
    assert!(unseen.contains("pmmpi: 0 of 2 runs count (2 without a run file)\n"), "{unseen}");
    assert!(unseen.contains("this machine does not see the files of some runs in relative"), "{unseen}");
    let unsaved = repeat(&["--no-save"]);
    assert!(unsaved.contains("no summary, because the launches save no run files"), "{unsaved}");
    let elsewhere = out.path().join("relative").display().to_string();
    let seen = repeat(&["--out", &elsewhere]);
    assert!(seen.contains("pmmpi: 2 runs: median between "), "{seen}");
}

/// The numbers of the runs overlap: launch 2 begins with run 2, which is also the second run of launch 1.
#[test]
fn each_run_of_a_launch_with_rounds_counts() {
    let out = Folder::new("inner");
    let mut command = Command::new(pmmpi());
    command.args(["repeat", "--runs", "3", "--"]).arg(pmmpi()).args(["--runs", "2", "--out"]);
    let said = run(command.arg(out.path()).args(["sleep", "0.01"])).success().err();
    assert!(said.contains("pmmpi: 6 runs: median between "), "{said}");
    assert_eq!(out.runs().len(), 6);
}

/// A terminal shows the time left; the line of a launch stays in place, because the launch writes there, too.
#[test]
fn a_terminal_shows_the_time_left() {
    let out = Folder::new("terminal");
    let (tool, folder) = (pmmpi().display().to_string(), out.path().display().to_string());
    let script = format!("'{tool}' repeat --runs 2 -- env '{tool}' -q --out '{folder}' sleep 0.01");
    let shown = run(Command::new("script").args(["-qec", &script, "/dev/null"])).success().out();
    assert!(shown.contains("launch 2 of 2, about ") && shown.contains(" left\r\n"), "{shown}");
}

#[test]
fn a_whole_launch_is_repeated() {
    for mpi in Mpi::ALL {
        let (out, program) = (Folder::new("repeat"), programs::mpi(mpi, "truth"));
        let _alone = machine();
        let repeat = |args: &[&str], program: &Path| {
            let mut command = Command::new(pmmpi());
            command.arg("repeat").args(args).arg("--").arg(format!("mpirun.{}", mpi.name()));
            command.args(["-n", "2"]).arg(pmmpi()).arg("--out").arg(out.path()).arg(program);
            command.arg(out.path()).args(["5", "1"]).envs(FOR_ROOT);
            if mpi == Mpi::OpenMpi {
                command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
            }
            run(&mut command)
        };
        let output = repeat(&["--runs", "3", "--warmup", "1"], &program).success();
        let runs = out.runs();
        assert_eq!(numbers(&runs), [0, 1, 2], "{mpi:?} {}", output.err());
        assert_one_series(&runs);
        assert!(runs.iter().all(|run| run.header.mode == Mode::Mpi && run.ranks.len() == 2));
        assert!(output.err().contains("launch 3 of 3") && output.err().contains("3 of 3 launches succeeded"));
        assert!(output.err().contains("pmmpi: 3 runs: median between "), "{}", output.err());
        assert!(!output.err().contains("left"), "the time left is for terminals: {}", output.err());
        let output = repeat(&["--runs", "3"], Path::new("/nonexistent"));
        assert!(!output.status.success() && output.err().contains("0 of 3 launches succeeded"));
        assert!(output.err().contains("0 of 3 runs count (1 failed, 2 not started)"), "{}", output.err());
        assert_eq!(output.err().matches("/nonexistent: not found").count(), 2, "{}", output.err());
        let output = repeat(&["--runs", "2", "--on-failure", "continue"], Path::new("/nonexistent"));
        assert!(output.err().contains("launch 2 of 2"));
    }
    // Two programs in one job, and a folder with the same name as the tool.
    let out = Folder::new("mpmd");
    let place = out.path().join("pmmpi");
    std::fs::create_dir(&place).unwrap();
    let mut command = Command::new(pmmpi());
    command.args(["repeat", "--runs", "2", "--", "mpirun.mpich", "-wdir"]).arg(&place);
    for (part, ms) in ["10", "20"].into_iter().enumerate() {
        command.args(&[":"][..part]).args(["-n", "1"]).arg(pmmpi()).arg("--out").arg(out.path());
        command.arg(programs::mpi(Mpi::Mpich, "truth")).arg(out.path()).args([ms, "0"]);
    }
    let output = run(&mut command).success();
    assert_eq!(numbers(&out.runs()), [0, 1], "{}", output.err());
    assert!(out.runs().iter().all(|run| run.ranks.len() == 2));
    let output = run(Command::new(pmmpi()).args(["repeat", "--runs", "2", "--", "mpirun", "./hpl"]));
    assert!(output.code() == 125 && output.err().contains("pmmpi would measure nothing"));
}
