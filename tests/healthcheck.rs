//! slurm/healthcheck.sh, with which idle nodes of a Slurm cluster measure themselves.

use rig::slurm::{NODES, read, script_path, text};
use rig::slurm_site::{Site, WAIT};
use rig::tool::{self, Folder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// slurmd itself calls the program on each node.
#[test]
fn an_idle_node_measures_itself_and_stops_for_a_job() {
    let Some(site) = Site::new() else { return };
    let state = |node: &str, name: &str| read(site.file(&format!("state-{node}/{name}")));
    let environment = site.command("true", &[]);
    let value = |wanted: &str| {
        let value = environment.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        value.expect("a variable").display().to_string()
    };
    let conf = format!(
        "PATH={}\nSLURM_CONF={}\nPMMPI={}\nPMMPI_STATE={}/state-$(uname -n)\nPMMPI_RESULTS={}\nPMMPI_OPTIONS='--kernels fma'\n",
        value("PATH"),
        value("SLURM_CONF"),
        text(site.file("bin/pmmpi")),
        text(site.folder.path()),
        text(site.file("results"))
    );
    let set = |more: &str| fs::write(site.file("conf"), format!("{conf}{more}\n")).unwrap();
    set("PMMPI_ROUNDS=5");
    fs::set_permissions(site.file("conf"), fs::Permissions::from_mode(0o644)).unwrap();
    let script =
        format!("PMMPI_CONF={} exec {} \"$@\"", text(site.file("conf")), script_path("healthcheck.sh"));
    let check = text(site.program("healthcheck", &script));
    // As slurmd calls it, on one node.
    let host = text(tool::target().join("release/pmmpi-rig-host"));
    let on_node1 =
        |args: &[&str]| site.run(&host, &[&["node1", "1", "--", &check], args].concat()).success().out();
    let begun = |node: &str| site.file(&format!("state-{node}/begun")).exists();

    // Slurm does not answer, or the node has a job: no measurement begins, and the program ends although sinfo does not.
    for (answer, at) in
        [("echo $$ > asked; sleep 1000", "asked"), ("echo allocated; echo > asked-2", "asked-2")]
    {
        site.program("bin/sinfo", &format!("cd {}; {answer}", text(site.folder.path())));
        assert_eq!(on_node1(&[]), "pmmpi: node1: no result yet\n");
        assert!(tool::is_over_within(WAIT, || site.file(at).exists()));
        assert!(tool::is_over_within(WAIT, || on_node1(&["stop"]).is_empty() && is_free(&site, "node1")));
        assert!(!begun("node1"));
    }
    fs::remove_file(site.file("bin/sinfo")).unwrap();
    // Others could write the settings of a program that runs as root.
    fs::set_permissions(site.file("conf"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(on_node1(&[]).contains("must belong to root"));
    fs::set_permissions(site.file("conf"), fs::Permissions::from_mode(0o644)).unwrap();

    site.configure(&format!("HealthCheckProgram={check}\nHealthCheckInterval=1\nHealthCheckNodeState=IDLE"));
    for node in ["node0", "node1", "node2", "node3"] {
        assert!(
            tool::is_over_within(WAIT, || state(node, "result").contains("measured 20")),
            "{node}: {}",
            state(node, "screen.txt")
        );
    }
    // The last node was compared with the others.
    let results = ["node0", "node1", "node2", "node3"].map(|node| state(node, "result"));
    assert!(results.iter().any(|result| !result.starts_with("not compared")), "{results:?}");
    let said = on_node1(&[]);
    assert!(said.starts_with("pmmpi: node1: ") && said.contains("measured 20"), "{said}");
    let runs =
        fs::read_dir(site.file("results")).unwrap().flatten().filter_map(|of| fs::read_dir(of.path()).ok());
    assert_eq!(runs.flatten().count(), NODES);

    // A measurement that lasts until a job begins.
    set("PMMPI_ROUNDS=10000");
    let remove = |name: &str| {
        (0..NODES).for_each(|node| _ = fs::remove_file(site.file(&format!("state-node{node}/{name}"))))
    };
    let is_measured = |node: &str| {
        let unfinished = site.file(&format!("results/.unfinished-{node}"));
        fs::read_dir(unfinished).is_ok_and(|mut runs| runs.next().is_some())
    };
    remove("begun");
    remove("result");
    assert!(tool::is_over_within(WAIT, || is_measured("node1") && !is_free(&site, "node1")));
    site.run("srun", &["-w", "node1", "-N1", "-n1", "sleep", "4"]).success();
    assert!(tool::is_over_within(WAIT, || is_free(&site, "node1")));
    // Until the next hour, no measurement begins.
    assert!(begun("node1") && state("node1", "result").is_empty());

    // A prolog ends a measurement.
    // Other nodes keep theirs: they still measure, and must not begin again when they are stopped.
    fs::remove_file(site.file("state-node1/begun")).unwrap();
    assert!(tool::is_over_within(WAIT, || !is_free(&site, "node1") && !state("node1", "group").is_empty()));
    assert!(tool::is_over_within(WAIT, || !tool::processes_with(&text(
        site.file("results/.unfinished-node1")
    ))
    .is_empty()));
    on_node1(&["stop"]);
    assert!(is_free(&site, "node1"));
    assert!(tool::processes_with(&text(site.file("results/.unfinished-node1"))).is_empty());
    for node in ["node0", "node2", "node3"] {
        site.run(&host, &[node, "1", "--", &check, "stop"]).success();
        assert!(tool::is_over_within(WAIT, || is_free(&site, node)));
    }
    assert_eq!(site.states().matches("idle").count(), NODES, "{}", site.states());
}

/// With cgroup v2, slurmd keeps a process `slurmstepd infinity`, which is no job. Scripts replace pmmpi and sinfo.
#[test]
fn only_a_job_or_stop_ends_a_measurement() {
    let folder = Folder::new("healthcheck");
    let file = |name: &str| folder.path().join(name);
    let write = |name: &str, mode: u32, contents: String| {
        fs::write(file(name), contents).unwrap();
        fs::set_permissions(file(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    write("sinfo", 0o755, "#!/bin/sh\necho idle\n".to_owned());
    // The watcher looks for a job once per second.
    write("pmmpi", 0o755, format!("#!/bin/sh\nsleep 2.5\necho > {}\n", text(file("ended"))));
    let state = text(file("state"));
    write("conf", 0o644, format!("PATH={}:/usr/bin:/bin\nPMMPI_STATE={state}\n", text(folder.path())));
    std::os::unix::fs::symlink("/usr/bin/sleep", file("slurmstepd")).unwrap();
    let slurmstepd = |argument: &str| tool::start(Command::new(file("slurmstepd")).arg(argument));
    let check = |args: &[&str]| {
        let mut bash = Command::new("bash");
        bash.arg(script_path("healthcheck.sh")).args(args).env("PMMPI_CONF", file("conf"));
        tool::run(&mut bash).success();
    };
    let lock = text(file("state/lock"));
    let is_free = || tool::run(Command::new("flock").args(["--nonblock", &lock, "true"])).status.success();
    let exists = |name: &str| file(name).exists();

    let _of_slurmd = slurmstepd("infinity");
    check(&[]);
    assert!(tool::is_over_within(WAIT, || exists("ended")));

    assert!(tool::is_over_within(WAIT, is_free));
    for name in ["ended", "state/begun"] {
        fs::remove_file(file(name)).unwrap();
    }
    let job = slurmstepd("100");
    check(&[]);
    assert!(tool::is_over_within(WAIT, || exists("state/begun")));
    assert!(tool::is_over_within(WAIT, is_free));
    assert!(!exists("ended"));
    drop(job);

    // Slurm answers after `stop` has ended.
    fs::remove_file(file("state/begun")).unwrap();
    write("sinfo", 0o755, format!("#!/bin/sh\necho > {}\nsleep 4\necho idle\n", text(file("asked"))));
    check(&[]);
    assert!(tool::is_over_within(WAIT, || exists("asked")));
    check(&["stop"]);
    assert!(tool::is_over_within(WAIT, is_free));
    assert!(!exists("state/begun") && !exists("ended"));
}

/// True if no measurement of the node has the lock.
fn is_free(site: &Site, node: &str) -> bool {
    let lock = text(site.file(&format!("state-{node}/lock")));
    tool::run(Command::new("flock").args(["--nonblock", &lock, "true"])).status.success()
}
