//! `pmmpi show` and `pmmpi diff`: two jobs that differ in one thing differ in exactly that.

use rig::cluster::Job;
use rig::tool::{Folder, pmmpi, run};
use rig::{Mpi, programs};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

const MPI: Mpi = Mpi::OpenMpi;

/// The Linux kernel counts the memory of all programs: two tests that compare these counts must not run at once.
static COUNTS_OF_MEMORY: Mutex<()> = Mutex::new(());
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Measures the same program on two ranks; `before` stands before pmmpi on each rank.
fn measure(folder: &Folder, name: &str, env: &[(&str, &str)], before: &[&str]) -> PathBuf {
    let out = folder.path().join(name);
    let job = env.iter().fold(Job::local(MPI, 2), |job, (name, value)| job.env(name, value));
    let job = job.args(before).arg(pmmpi()).arg("--out").arg(&out);
    job.arg(programs::mpi(MPI, "truth")).arg(folder.path()).args(["1", "1"]).run().success();
    run_file(&out)
}

/// The run file in a folder.
fn run_file(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|e| e == "pmr")).unwrap()
}

/// Section and name of each difference.
fn differences(a: &Path, b: &Path) -> Vec<(String, String)> {
    let output =
        run(Command::new(pmmpi()).args(["diff", "--format", "json", "--fail-on", "different"]).args([a, b]));
    let found: Value = serde_json::from_str(&output.out()).unwrap();
    let found = found["differences"].as_array().unwrap();
    assert_eq!(output.code(), if found.is_empty() { 0 } else { 3 });
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found.iter().map(|of| (text(&of["section"]), text(&of["name"]))).collect()
}

#[test]
fn what_differs_is_named_and_nothing_else() {
    let _alone = COUNTS_OF_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("recorded");
    let threads = [("OMP_NUM_THREADS", "2")];
    let base = measure(&folder, "base", &threads, &[]);
    let again = measure(&folder, "again", &threads, &[]);
    assert_eq!(differences(&base, &again), []);

    let pair = |section: &str, name: &str| (section.to_owned(), name.to_owned());
    let more = measure(&folder, "environment", &[("OMP_NUM_THREADS", "3")], &[]);
    assert_eq!(differences(&base, &more), [pair("environment", "OMP_NUM_THREADS")]);
    // What the library chose is seen, whoever asked for it.
    let chosen = ["mpi_components", "transports"].map(|name| pair("node", name));
    let transport = measure(&folder, "transport", &[threads[0], ("OMPI_MCA_btl", "tcp,self")], &[]);
    let of_variable = [&[pair("environment", "OMPI_MCA_btl")], &chosen[..]].concat();
    assert_eq!(differences(&base, &transport), of_variable);
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join(".openmpi")).unwrap();
    std::fs::write(home.join(".openmpi/mca-params.conf"), "btl = tcp,self\n").unwrap();
    let of_file = measure(&folder, "file", &[threads[0], ("HOME", home.to_str().unwrap())], &[]);
    assert_eq!(differences(&base, &of_file), chosen);
    let bound = measure(&folder, "binding", &threads, &["taskset", "-c", "0"]);
    let of_binding = ["rank 0", "rank 1", "ranks_are_bound_to"].map(|name| pair("binding", name));
    assert_eq!(differences(&base, &bound), of_binding);
    let limited = "ulimit -s 4096 && exec \"$@\"";
    let inherited: [(&str, &[&str]); 3] = [
        ("stack_limit", &["sh", "-c", limited, "sh"]),
        ("scheduling", &["nice", "-n", "5"]),
        ("memory_policy", &["numactl", "--interleave=0"]),
    ];
    // Linux without NUMA has no memory policies.
    let has_policies = Path::new("/proc/self/numa_maps").exists();
    for (name, before) in inherited.into_iter().filter(|(name, _)| *name != "memory_policy" || has_policies) {
        let other = measure(&folder, name, &threads, before);
        assert_eq!(differences(&base, &other), [pair("node", name)]);
    }
    let counted = |events: &str| {
        let out = folder.path().join(events.replace(',', "-"));
        run(Command::new(pmmpi()).args(["--quiet", "--events", events, "--out"]).arg(&out).arg("true"))
            .success();
        run_file(&out)
    };
    let events = pair("options", "--events");
    let of = ["page-faults", "page-faults,context-switches"].map(counted);
    assert_eq!(differences(&of[0], &of[1]), [events]);
    if Path::new(HUGE_PAGES).exists() {
        let now = std::fs::read_to_string(HUGE_PAGES).unwrap();
        let other =
            if now.contains("[never]") { "[always] madvise never\n" } else { "always madvise [never]\n" };
        let file = folder.path().join("enabled");
        std::fs::write(&file, other).unwrap();
        let script = format!("mount --bind {} {HUGE_PAGES} && exec \"$@\"", file.display());
        let huge = measure(&folder, "pages", &threads, &["unshare", "--mount", "sh", "-c", &script, "sh"]);
        assert_eq!(differences(&base, &huge), [pair("node", "transparent_hugepage")]);
    }

    let text = run(Command::new(pmmpi()).arg("diff").args([&base, &more])).success().out();
    let expected = "environment: OMP_NUM_THREADS\n  < 2\n  > 3\n";
    assert!(text.ends_with(expected), "{text}");
    let shown = run(Command::new(pmmpi()).arg("show").arg(&base)).success().out();
    let has_threads = |line: &str| line.trim().starts_with("OMP_NUM_THREADS ") && line.ends_with(" 2");
    assert!(shown.lines().any(has_threads), "{shown}");
    for expected in ["  launcher ", "  mpi_library ", "Open MPI", "  rank 1 ", "sockets"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

/// The kernel gives a program huge pages or not, whatever the settings say.
#[test]
fn pages_that_the_program_got_differ() {
    let settings = std::fs::read_to_string(HUGE_PAGES).unwrap_or_default();
    if settings.is_empty() || settings.contains("[never]") {
        eprintln!("skipped: this machine has no transparent huge pages");
        return;
    }
    let _alone = COUNTS_OF_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, program) = (Folder::new("recorded"), programs::plain("huge_pages"));
    let measured = |name: &str, of: &[(&str, &str)]| {
        let out = folder.path().join(name);
        let mut command = Command::new(pmmpi());
        command.args(["--quiet", "--out"]).arg(&out).arg(&program).envs(of.iter().copied());
        run(&mut command).success();
        run_file(&out)
    };
    let [small, again] = ["small", "again"].map(|name| measured(name, &[]));
    assert_eq!(differences(&small, &again), []);
    let found = differences(&small, &measured("huge", &[("HUGE", "1")]));
    // Without free memory in one piece, the kernel falls back to small pages, and counts this.
    let counts =
        ["huge_page_bytes", "huge_page_fallbacks"].map(|name| ("counts of nodes".into(), name.into()));
    assert!(!found.is_empty() && found.iter().all(|of| counts.contains(of)), "{found:?}");
}

/// Bad input gets a message and a status, and the good runs are shown.
#[test]
fn what_is_no_run_is_said() {
    let folder = Folder::new("recorded");
    let file = folder.path().join("broken.pmr");
    std::fs::write(&file, "no run").unwrap();
    for command in [&["show"][..], &["diff", "/nonexistent.pmr"]] {
        let output = run(Command::new(pmmpi()).args(command).arg(&file));
        assert_eq!(output.code(), 2, "{}", output.err());
        assert!(output.err().starts_with("pmmpi: /"), "{}", output.err());
    }
    run(Command::new(pmmpi()).arg("--quiet").arg("--out").arg(folder.path()).arg("true")).success();
    let good = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let good =
        good.filter(|path| *path != file).find(|path| path.extension().is_some_and(|e| e == "pmr")).unwrap();
    let output = run(Command::new(pmmpi()).arg("show").args([&file, &good]));
    assert_eq!(output.code(), 1);
    assert!(output.out().contains("as a child process, without the agent"), "{}", output.out());
}
