//! Facts that limit the result of a screen.

use super::common::*;
use super::made::*;
use pmmpi::record::Run;

fn healthy(_: At<'_>) -> Outcome {
    Outcome::Times(1.0)
}

/// The option of a screen is --rounds, not --runs.
#[test]
fn too_few_rounds_are_named_with_the_option_of_a_screen() {
    let folder = Folder::new();
    let files = Screen { rounds: 0..2, ..Screen::of(0, 5) }.write(folder.path(), healthy);
    for command in ["screen", "report"] {
        let text = out(&report(&words(&[command], &files)));
        let told = "warning: nodes with fewer than 3 runs of a kernel: n00 (2 runs), n01 (2 runs), n02 (2 runs) and 2 \
                    more nodes [few-rounds]\n         Screen more rounds: --rounds 3+4 ";
        assert!(text.contains(told) && !text.contains("--runs"), "{text}");
    }
    let one = Screen { rounds: 0..1, ..Screen::of(0, 1) }.write(&folder.path().join("one"), healthy);
    let text = out(&screen_report(&one, &[]));
    assert!(text.contains("n00 has only 1 run of a kernel, but the report needs 3 [few-rounds]"), "{text}");
    let enough = Screen::of(0, 5).write(&folder.path().join("enough"), healthy);
    let text = out(&screen_report(&enough, &[]));
    assert!(!text.contains("few-r"), "{text}");
}

/// The options or the site are the likely reason, not the nodes.
#[test]
fn a_kernel_that_fails_on_all_nodes_in_all_rounds_is_named() {
    let folder = Folder::new();
    let told = |name: &str, nodes: u32, has_failed: &dyn Fn(At<'_>) -> bool| {
        let outcome = |at: At<'_>| if has_failed(at) { Outcome::Fails } else { Outcome::Times(1.0) };
        let screen = Screen { kernels: vec!["triad", "dgemm"], ..Screen::of(0, nodes) };
        let text = out(&screen_report(&screen.write(&folder.path().join(name), outcome), &[]));
        let warning = text.lines().filter(|line| line.contains("[kernel-failed-everywhere]"));
        warning.map(str::to_owned).collect::<Vec<String>>()
    };
    let of = |nodes: &str| {
        let failed = format!("the kernel dgemm failed on {nodes} in all rounds; on n00: no memory");
        [format!("warning: {failed} [kernel-failed-everywhere]")]
    };
    assert_eq!(told("all", 4, &|at| at.kernel == "dgemm"), of("all 4 nodes"));
    assert_eq!(told("alone", 1, &|at| at.kernel == "dgemm"), of("the only node"));
    // A node or a round with a time shows that the options are right.
    assert_eq!(told("nodes", 4, &|at| at.kernel == "dgemm" && at.node > 0), [""; 0]);
    assert_eq!(told("rounds", 4, &|at| at.kernel == "dgemm" && at.round > 0), [""; 0]);
}

fn with_threads(run: &mut Run, used: impl Fn(usize) -> u32, online: impl Fn(usize) -> u32) {
    for (place, result) in run.screened.as_mut().unwrap().results.iter_mut().enumerate() {
        result.threads = (0..used(place)).map(|number| (number, 1.0)).collect();
    }
    for (place, node) in run.nodes.iter_mut().enumerate() {
        node.facts.as_mut().unwrap().inventory.set("hardware_threads", online(place).to_string());
    }
}

/// Half of the cores of n01 and n04 are offline, or a cgroup forbids them: their class has other nodes.
#[test]
fn different_numbers_of_cores_in_a_class_are_named() {
    let folder = Folder::new();
    let half = |place: usize| if [1, 4].contains(&place) { 4 } else { 8 };
    let screen = Screen { kernels: vec!["triad", "dgemm"], ..Screen::of(0, 6) };
    let of = |name: &str, change: &dyn Fn(&mut Run)| {
        screen.write_changed(&folder.path().join(name), healthy, change)
    };
    let told = |files: &[String], args: &[&str]| {
        let text = out(&screen_report(files, args));
        let warning = text.lines().filter(|line| line.contains("[cores-differ]"));
        warning.map(str::to_owned).collect::<Vec<String>>()
    };
    let numbers =
        "different numbers of hardware threads: 8 on 4 nodes, 4 on 2 nodes (n01, n04) [cores-differ]";
    let forbidden = of("cgroup", &|run| with_threads(run, half, |_| 8));
    assert_eq!(told(&forbidden, &[]), [format!("warning: nodes of a class use {numbers}")]);
    let offline = of("offline", &|run| with_threads(run, half, half));
    assert_eq!(told(&offline, &[]), [format!("warning: nodes of a class use {numbers}")]);
    // A program of the user does not say what it uses.
    let unknown = of("unknown", &|run| with_threads(run, |_| 0, half));
    assert_eq!(told(&unknown, &[]), [format!("warning: nodes of a class have {numbers}")]);
    let keys = "cpu,microcode,memory,kernel,command,ranks,labels,hardware_threads";
    assert_eq!(told(&offline, &["--class-by", keys]), [""; 0]);
    let equal = of("equal", &|run| with_threads(run, |_| 8, |_| 8));
    assert_eq!(told(&equal, &[]), [""; 0]);
}

/// The version of the Linux kernel makes up the class: nodes with another one are never compared.
#[test]
fn another_linux_kernel_is_another_class() {
    let folder = Folder::new();
    let slower = |at: At<'_>| Outcome::Times(if at.node < 3 { 1.0 } else { 1.2 });
    let files = Screen { rounds: 0..7, ..Screen::of(0, 6) }.write_changed(folder.path(), slower, |run| {
        for node in &mut run.nodes[3..] {
            node.facts.as_mut().unwrap().hardware.kernel = Some("6.2.0".to_owned());
        }
    });
    let found = json(&screen_report(&files, &["--format", "json"]));
    let classes: Vec<&str> =
        found["classes"].as_array().unwrap().iter().map(|class| class["class"].as_str().unwrap()).collect();
    assert!(
        classes.len() == 2 && classes[0].contains("Linux 6.1.0") && classes[1].contains("Linux 6.2.0"),
        "{classes:?}"
    );
    let nodes = found["screened"].as_array().unwrap();
    assert!(nodes.len() == 6 && nodes.iter().all(|node| node["verdict"] == "OK"), "{nodes:?}");
}
