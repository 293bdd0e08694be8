//! The actions of `launcher/node_actions` on a real Slurm with four nodes, through the example `act`. Each test gets a
//! new cluster, because Slurm 22.05 needs some time until a resumed node is idle again.

use rig::slurm::{NODES, Slurm, Turn, read, text};
use rig::tool::{self, Folder, Output, Started};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const REASON: &str = "pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz";
/// The kernel of nodes that passed, and what it measures.
const KERNEL: [&str; 2] = ["triad", "memory"];
const WAIT: Duration = Duration::from_secs(60);

/// A cluster for one test, and the files of the example.
struct Site {
    slurm: Turn,
    folder: Folder,
}

impl Site {
    fn new() -> Self {
        let mut slurm = Slurm::turn();
        slurm.spoil();
        Self { slurm, folder: Folder::new("act") }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The example with these findings, nodes that passed, and options.
    fn command(&self, slow: &[(&str, &str)], passed: &[&str], options: &[&str]) -> Command {
        self.command_after(KERNEL, slow, passed, options)
    }

    /// The same; the nodes have passed this kernel.
    fn command_after(
        &self,
        [kernel, area]: [&str; 2],
        slow: &[(&str, &str)],
        passed: &[&str],
        options: &[&str],
    ) -> Command {
        let findings: Vec<_> =
            slow.iter().map(|(node, reason)| serde_json::json!({"node": node, "reason": reason})).collect();
        let kernels = [serde_json::json!({"kernel": kernel, "area": area})];
        let input =
            serde_json::json!({"findings": findings, "passed": passed, "kernels": kernels, "fleet": NODES});
        fs::write(self.file("input.json"), input.to_string()).unwrap();
        let example = tool::target().join("release/examples/act");
        assert!(example.exists(), "{} is missing: `make test` builds it", example.display());
        let arguments = [&["input.json", "--log", "log"], options].concat();
        self.slurm.command(self.folder.path(), &text(example), &arguments)
    }

    /// The example with a finding for node0, started by another program.
    fn wrapped(&self, wrapper: &[&str], options: &[&str]) -> Command {
        let act = self.command(&slow(&["node0"]), &[], options);
        let words = std::iter::once(act.get_program()).chain(act.get_args());
        let words = words.map(|word| word.to_str().expect("UTF-8"));
        let words: Vec<&str> = wrapper[1..].iter().copied().chain(words).collect();
        self.slurm.command(self.folder.path(), wrapper[0], &words)
    }

    fn act(&self, slow: &[(&str, &str)], passed: &[&str], options: &[&str]) -> Output {
        tool::run(&mut self.command(slow, passed, options))
    }

    /// Also when scontrol of a killed run still holds the log for a moment.
    fn act_when_free(&self, slow: &[(&str, &str)], passed: &[&str], options: &[&str]) -> Output {
        let output = RefCell::new(self.act(slow, passed, options));
        tool::is_over_within(WAIT, || {
            let is_held = output.borrow().err().contains("another pmmpi");
            if is_held {
                output.replace(self.act(slow, passed, options));
            }
            !is_held
        });
        output.into_inner()
    }

    fn scontrol(&self, arguments: &[&str]) -> String {
        self.slurm.run(self.folder.path(), "scontrol", arguments).success().out()
    }

    fn update(&self, node: &str, fields: &[&str]) {
        self.scontrol(&[&["update", &format!("NodeName={node}")], fields].concat());
    }

    /// A field of `scontrol show node`, up to the end of its line; empty if it is missing.
    fn field(&self, node: &str, field: &str) -> String {
        let shown = self.scontrol(&["show", "node", node]);
        let value = shown.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{field}=")));
        value.unwrap_or_default().trim_end().to_owned()
    }

    fn state(&self, node: &str) -> String {
        self.field(node, "State").split(' ').next().unwrap_or_default().to_owned()
    }

    /// What pmmpi could change of a node. The reason includes the user and the time.
    fn about(&self, node: &str) -> [String; 5] {
        let [reason, comment, available, active] =
            ["Reason", "Comment", "AvailableFeatures", "ActiveFeatures"].map(|field| self.field(node, field));
        [self.state(node), reason, comment, available, active]
    }

    /// Puts this script in front of scontrol, and returns PATH. In the script, `$real` is scontrol.
    fn with_scontrol(&self, script: &str) -> String {
        let real = tool::run(Command::new("sh").args(["-c", "command -v scontrol"])).success().out();
        let program = self.file("bin/scontrol");
        fs::create_dir_all(self.file("bin")).unwrap();
        fs::write(&program, format!("#!/bin/sh\nreal={real}\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        format!("{}:{}", self.file("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    /// "intent drain", "outcome done", ... without the lines "begin".
    fn log(&self) -> Vec<String> {
        let lines = read(self.file("log"));
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let word = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let lines = lines.filter(|line| line["entry"] != "begin");
        lines
            .map(|line| word(&line, "entry") + " " + &(word(&line, "act") + &word(&line, "result")))
            .collect()
    }
}

fn slow<'a>(nodes: &[&'a str]) -> Vec<(&'a str, &'static str)> {
    nodes.iter().map(|node| (*node, REASON)).collect()
}

const DRAIN: [&str; 4] = ["--apply", "drain", "--max-nodes", "4"];

#[test]
fn a_slow_node_is_drained_with_its_reason() {
    let site = Site::new();
    let dry = site.act(&slow(&["node0"]), &[], &["--dry-run", "--apply", "drain"]).success();
    let line = format!("node0: would run: scontrol update NodeName=node0 State=DRAIN 'Reason={REASON}'\n");
    assert_eq!((dry.out(), site.state("node0").as_str(), site.file("log").exists()), (line, "IDLE", false));
    // A shell or scontrol could misread this reason.
    let odd = "it's \"slow\" $(id) `id` a=b [c]\nState=DOWN \\ é";
    let output = site.act(&[("node0", REASON), ("node1", odd)], &[], &DRAIN).success();
    assert!(output.out().contains("node0: done: drain"), "{}", output.out());
    assert_eq!(site.state("node0"), "IDLE+DRAIN");
    assert!(site.field("node0", "Reason").starts_with(&format!("{REASON} [root@")));
    assert_eq!(site.state("node1"), "IDLE+DRAIN");
    let reason = "pmmpi: it's 'slow' $(id) `id` a=b (c) State=DOWN / ? [root@";
    assert!(site.field("node1", "Reason").starts_with(reason), "{}", site.field("node1", "Reason"));
    assert_eq!(site.state("node2"), "IDLE");
    assert_eq!(site.log(), ["intent drain", "outcome done", "intent drain", "outcome done"]);
    let log = read(site.file("log"));
    assert!(log.lines().next().is_some_and(|begin| begin.contains("\"cluster\":\"rig\"")), "{log}");
    // The dry run showed a command that a shell runs as pmmpi does.
    let line = dry.out();
    let line = line.trim().strip_prefix("node0: would run: ").unwrap().replace("=node0", "=node2");
    tool::run(&mut site.slurm.command(site.folder.path(), "sh", &["-c", &line])).success();
    assert!(site.field("node2", "Reason").starts_with(&format!("{REASON} [root@")));
}

/// Before the first round, and not in a dry run, which needs no right.
#[test]
fn a_user_who_may_not_change_nodes_is_told_so() {
    let site = Site::new();
    let pmmpi = text(tool::for_anybody(&site.folder));
    fs::set_permissions(site.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let screen = |user: &str| {
        let id = [format!("--reuid={user}"), format!("--regid={user}")];
        let screen = ["--clear-groups", &pmmpi, "screen", "--rounds", "1", "--warmup", "0", "--out", "runs"];
        let apply = ["--apply", "drain", "--log", "log", "--", "true"];
        let words = [&[id[0].as_str(), &id[1]], &screen[..], &apply].concat();
        tool::run(&mut site.slurm.command(site.folder.path(), "setpriv", &words))
    };
    const NOBODY: &str = "65534";
    screen(NOBODY).success();
    fs::write(site.file("log"), "").unwrap();
    fs::set_permissions(site.file("log"), fs::Permissions::from_mode(0o666)).unwrap();
    let refused = screen(NOBODY);
    let told = "--apply: this user has no right to change nodes in Slurm (answer of scontrol: ";
    assert!(refused.code() == 2 && refused.err().contains(told), "{} {}", refused.code(), refused.err());
    screen("0").success();
    assert_eq!(tool::runs_in(&site.file("runs")).len(), 2);
}

/// Also with a mark of pmmpi's in the comment and the features, and also if the node passed.
#[test]
fn a_node_that_others_took_is_left_alone() {
    let site = Site::new();
    site.update("node0", &["State=DRAIN", "Reason=bad DIMM", "Comment=[pmmpi: slow]"]);
    site.update("node1", &["State=DOWN", "Reason=pmmpi: not quite", "AvailableFeatures=pmmpi_slow"]);
    site.update("node2", &["State=FAIL", "Reason=watch this fan"]);
    let maintenance =
        ["create", "reservation", "starttime=now", "duration=10", "nodes=node3", "users=root", "flags=maint"];
    site.scontrol(&maintenance);
    let is_reserved = || site.state("node3").contains("MAINT");
    assert!(tool::is_over_within(WAIT, is_reserved), "{}", site.state("node3"));
    let nodes = ["node0", "node1", "node2", "node3"];
    let before = nodes.map(|node| site.about(node));
    for action in ["drain", "comment", "feature"] {
        for is_slow in [true, false] {
            let (found, passed) = if is_slow { (&nodes[..], &[][..]) } else { (&[][..], &nodes[..]) };
            let output = site.act(&slow(found), passed, &["--apply", action, "--max-nodes", "9"]).success();
            assert_eq!(output.out().matches(": not changed: ").count(), NODES, "{}", output.out());
        }
    }
    assert_eq!(nodes.map(|node| site.about(node)), before);
    assert!(site.log().is_empty());
}

#[test]
fn too_many_slow_nodes_are_left_alone() {
    let site = Site::new();
    let nodes = ["node0", "node1"];
    // 5 % of four nodes is one.
    let output = site.act(&slow(&nodes), &[], &["--apply", "drain"]);
    assert_eq!((output.code(), nodes.map(|node| site.state(node))), (1, ["IDLE"; 2].map(String::from)));
    assert!(output.out().contains("the screen found 2 slow nodes; the limit is 1 "), "{}", output.out());
    site.act(&slow(&["node0"]), &[], &["--apply", "drain"]).success();
    // The second node of one run after the other is one too many, too.
    let output = site.act(&slow(&["node1"]), &[], &["--apply", "drain"]);
    assert_eq!((output.code(), site.state("node1").as_str()), (1, "IDLE"), "{}", output.out());
    site.act(&slow(&["node1"]), &[], &["--apply", "drain", "--max-nodes", "2"]).success();
    assert_eq!(site.state("node1"), "IDLE+DRAIN");
}

#[test]
fn only_a_drain_of_pmmpi_is_resumed() {
    let site = Site::new();
    site.act(&slow(&["node0", "node1"]), &[], &DRAIN).success();
    site.update("node2", &["State=DRAIN", "Reason=bad DIMM"]);
    let others = ["node1", "node2", "node3"].map(|node| site.about(node));
    let output = site.act(&[], &["node0", "node2", "node3"], &DRAIN).success();
    assert!(output.out().contains("node0: done: resume"), "{}", output.out());
    assert!(!site.state("node0").contains("DRAIN") && site.field("node0", "Reason").is_empty());
    assert_eq!(["node1", "node2", "node3"].map(|node| site.about(node)), others);
    assert!(tool::is_over_within(WAIT, || site.state("node0") == "IDLE"), "{}", site.state("node0"));
}

/// Also a drain with a reason that begins with `pmmpi:` may be there for somebody else.
#[test]
fn a_drain_that_the_log_does_not_explain_stays() {
    let site = Site::new();
    site.act(&slow(&["node0", "node1"]), &[], &DRAIN).success();
    let longer = format!("{REASON} EVA: vendor on site, DIMM pulled, do not return");
    site.update("node0", &["State=DRAIN", &format!("Reason={longer}")]);
    site.update("node2", &["State=DRAIN", "Reason=pmmpi: slow-memory: by hand"]);
    let nodes = ["node0", "node1", "node2"];
    let before = nodes.map(|node| site.about(node));
    let output = site.act(&[], &["node0", "node2"], &DRAIN);
    assert_eq!(output.code(), 1, "{}", output.out());
    let said = output.out();
    assert!(said.contains(&format!("changed the text of the mark: Slurm shows `{longer}`")), "{said}");
    assert!(
        said.contains(
            "node2: not changed: the node passed --gate and has a mark, but the log does not have this mark"
        ),
        "{said}"
    );
    // The gate measured something else.
    let compute = tool::run(&mut site.command_after(["fma", "compute"], &[], &["node1"], &DRAIN));
    assert_eq!(compute.code(), 1, "{}", compute.out());
    let why = "node1: not changed: the node passed --gate, but the gate did not repeat the measurements that found a \
               problem on this node";
    assert!(compute.out().contains(&format!("{why}: `{REASON}`.")), "{}", compute.out());
    assert_eq!(nodes.map(|node| site.about(node)), before);
    // Somebody restores the reason.
    site.update("node0", &["State=DRAIN", &format!("Reason={REASON}")]);
    let output = site.act(&[], &["node0", "node1"], &DRAIN).success();
    assert_eq!(output.out().matches(": done: resume").count(), 2, "{}", output.out());
}

#[test]
fn a_job_outlives_drain_and_resume() {
    let site = Site::new();
    let job = ["-w", "node0", "-N1", "-n1", "sh", "-c", "echo begins; sleep 1000"];
    let job = tool::start(&mut site.slurm.command(site.folder.path(), "srun", &job));
    job.wait_for("begins", 1);
    site.act(&slow(&["node0"]), &[], &DRAIN).success();
    assert_eq!(site.state("node0"), "MIXED+DRAIN");
    site.act(&[], &["node0"], &DRAIN).success();
    assert!(tool::is_over_within(WAIT, || site.state("node0") == "MIXED"), "{}", site.state("node0"));
    job.assert_running();
    assert!(site.slurm.run(site.folder.path(), "squeue", &["-h", "-o", "%T"]).out().contains("RUNNING"));
}

#[test]
fn the_comment_of_others_stays() {
    let site = Site::new();
    let (comment, options) = ("rack 7: \"new\" fan [eva], x=y", ["--apply", "comment", "--max-nodes", "4"]);
    site.update("node0", &[&format!("Comment={comment}")]);
    site.update("node2", &["Comment=first\nsecond"]);
    let before = ["node0", "node1"].map(|node| site.about(node));
    let output = site.act(&slow(&["node0", "node1", "node2"]), &[], &options).success();
    assert!(
        output.out().contains("node2: not changed: the node's comment begins with a quote"),
        "{}",
        output.out()
    );
    assert_eq!(site.field("node0", "Comment"), format!("{comment} [{REASON}]"));
    assert_eq!(site.field("node1", "Comment"), format!("[{REASON}]"));
    assert_eq!(["node0", "node1"].map(|node| site.state(node)), ["IDLE"; 2]);
    site.act(&[], &["node0", "node1"], &options).success();
    assert_eq!(["node0", "node1"].map(|node| site.about(node)), before);
}

#[test]
fn the_features_of_others_stay() {
    let site = Site::new();
    let options = ["--apply", "feature", "--max-nodes", "4"];
    site.update("node0", &["AvailableFeatures=gpu,big", "ActiveFeatures=gpu"]);
    site.act(&slow(&["node0", "node1"]), &[], &options).success();
    let features = |node: &str| ["AvailableFeatures", "ActiveFeatures"].map(|field| site.field(node, field));
    assert_eq!(features("node0"), ["gpu,big,pmmpi_slow", "gpu,pmmpi_slow"]);
    assert_eq!(features("node1"), ["pmmpi_slow", "pmmpi_slow"]);
    site.act(&[], &["node0", "node1"], &options).success();
    assert_eq!(features("node0"), ["gpu,big", "gpu"]);
    // Slurm shows an empty list in one of two ways.
    assert!(features("node1").iter().all(|list| list.is_empty() || list == "(null)"));
    let refused = site.act(&slow(&["node0"]), &[], &["--apply", "feature=gpu"]);
    assert!(refused.code() == 1 && refused.err().contains("must begin with pmmpi"), "{}", refused.err());
}

/// Starts to drain node0 with this scontrol, kills pmmpi when the file `at` has the number of scontrol's process, and
/// checks that no other pmmpi can act until scontrol has ended, too.
fn killed_at(site: &Site, script: &str) {
    let path = site.with_scontrol(script);
    let started = tool::start(site.command(&slow(&["node0"]), &[], &DRAIN).env("PATH", path));
    let scontrol = || read(site.file("at")).trim().parse::<i32>().ok();
    assert!(tool::is_over_within(WAIT, || scontrol().is_some()));
    started.signal(libc::SIGKILL);
    assert_eq!(started.finish().code(), 128 + libc::SIGKILL);
    assert_eq!(site.log(), ["intent drain"]);
    let held = site.act(&slow(&["node1"]), &[], &DRAIN);
    assert!(held.code() == 1 && held.err().contains("another pmmpi is changing nodes"), "{}", held.err());
    assert_eq!(site.state("node1"), "IDLE");
    // SAFETY: pmmpi started it in a group of its own, and it waits for this signal.
    unsafe { libc::kill(-scontrol().unwrap(), libc::SIGKILL) };
}

#[test]
fn a_kill_between_intent_and_act_leaves_the_node_alone() {
    let site = Site::new();
    killed_at(&site, "[ \"$1\" = update ] && echo $$ > at && sleep 1000\nexec $real \"$@\"");
    assert_eq!((site.state("node0").as_str(), site.field("node0", "Reason").as_str()), ("IDLE", ""));
    let output = site.act_when_free(&[], &[], &DRAIN).success();
    assert!(output.out().contains("node0: an earlier pmmpi began a change"), "{}", output.out());
    assert!(output.out().contains("the change is not done: state IDLE, no reason"), "{}", output.out());
    assert_eq!(site.log(), ["intent drain", "outcome found_not_done"]);
    site.act(&slow(&["node0"]), &[], &DRAIN).success();
    assert_eq!(site.state("node0"), "IDLE+DRAIN");
}

#[test]
fn a_kill_between_act_and_outcome_is_found() {
    let site = Site::new();
    killed_at(&site, "$real \"$@\"\n[ \"$1\" = update ] && echo $$ > at && sleep 1000\ntrue");
    assert_eq!(site.state("node0"), "IDLE+DRAIN");
    let output = site.act_when_free(&slow(&["node0"]), &[], &DRAIN).success();
    assert!(output.out().contains("the change is done: state IDLE+DRAIN"), "{}", output.out());
    assert!(
        output.out().contains("node0: not changed: pmmpi has already marked this node"),
        "{}",
        output.out()
    );
    assert_eq!(site.log(), ["intent drain", "outcome found_done"]);
}

/// A kill after a few milliseconds more for each node.
#[test]
fn a_kill_at_any_time_leaves_no_node_between() {
    let site = Site::new();
    for (number, node) in ["node0", "node1", "node2", "node3"].into_iter().enumerate() {
        let started = tool::start(&mut site.command(&slow(&[node]), &[], &DRAIN));
        std::thread::sleep(Duration::from_millis(10 + 15 * number as u64));
        started.signal(libc::SIGKILL);
        started.finish();
        let output = site.act_when_free(&[], &[], &DRAIN).success();
        let (state, reason) = (site.state(node), site.field(node, "Reason"));
        let is_drained = state == "IDLE+DRAIN" && reason.starts_with(REASON);
        assert!(is_drained || (state == "IDLE" && reason.is_empty()), "{state} {reason} {}", output.out());
        let log = site.log().join(" ");
        assert_eq!(log.matches("intent").count(), log.matches("outcome").count(), "{log}");
    }
}

#[test]
fn a_scontrol_that_fails_marks_no_node() {
    let site = Site::new();
    for (script, said) in [
        ("echo 'Unable to contact slurm controller' >&2; exit 1", "Unable to contact slurm controller"),
        ("echo rubbish", "pmmpi does not understand the output of `scontrol --all show node`"),
        ("true", "it printed nothing"),
        ("cat /dev/zero", "`scontrol --all show node`"),
        // Cut, so that the reason of the last node may be missing.
        ("$real \"$@\" | head -c 1000", "pmmpi does not understand"),
        ("sleep 1000", "did not end within 2 s"),
    ] {
        let path = site.with_scontrol(script);
        let options = [&DRAIN[..], &["--limit", "2"]].concat();
        let output = tool::run(site.command(&slow(&["node0"]), &["node1"], &options).env("PATH", path));
        assert_eq!((output.code(), output.out().as_str()), (1, ""), "{script}");
        assert!(output.err().contains(said), "{script} {}", output.err());
    }
    let output = tool::run(site.command(&slow(&["node0"]), &[], &DRAIN).env("PATH", site.file("empty")));
    assert!(output.code() == 1 && output.err().contains("is in no folder of PATH"), "{}", output.err());
    assert_eq!(site.state("node0"), "IDLE");
    assert!(site.log().is_empty());
}

#[test]
fn a_node_that_fails_does_not_stop_the_others() {
    let site = Site::new();
    let refuse = "case \"$*\" in update*node0*) echo 'Invalid user id' >&2; exit 1;; esac";
    let path = site.with_scontrol(&format!("{refuse}\nexec $real \"$@\""));
    let nodes = slow(&["node0", "node1", "nowhere", "node[2-3]"]);
    let output = tool::run(site.command(&nodes, &[], &DRAIN).env("PATH", path));
    let said = output.out();
    assert_eq!(output.code(), 1);
    assert!(said.contains("node0: FAILED: drain") && said.contains("Invalid user id"), "{said}");
    assert!(said.contains("nowhere: not changed: Slurm has no node"), "{said}");
    assert!(said.contains("node[2-3]: not changed: this is not the name of a single host"), "{said}");
    let states = ["node0", "node1", "node2", "node3"].map(|node| site.state(node));
    assert_eq!(states, ["IDLE", "IDLE+DRAIN", "IDLE", "IDLE"]);
    assert_eq!(site.log(), ["intent drain", "outcome failed", "intent drain", "outcome done"]);
}

/// pmmpi cannot know whether Slurm will still act, so it does not go on, and the next run finds out.
#[test]
fn an_update_that_hangs_stops_the_run() {
    let site = Site::new();
    let path = site.with_scontrol("[ \"$1\" = update ] && sleep 1000\nexec $real \"$@\"");
    let options = [&DRAIN[..], &["--limit", "10"]].concat();
    let output = tool::run(site.command(&slow(&["node0", "node1"]), &[], &options).env("PATH", path));
    assert!(output.code() == 1 && output.out().contains("pmmpi stopped"), "{}", output.out());
    assert_eq!(["node0", "node1"].map(|node| site.state(node)), ["IDLE"; 2]);
    assert_eq!(site.log(), ["intent drain"]);
    site.act(&[], &[], &DRAIN).success();
    assert_eq!(site.log(), ["intent drain", "outcome found_not_done"]);
}

#[test]
fn a_second_pmmpi_does_not_act() {
    let site = Site::new();
    let path = site.with_scontrol("[ \"$2\" = config ] && exec $real \"$@\"\necho $$ > at; sleep 1000");
    let first: Started = tool::start(site.command(&slow(&["node0"]), &[], &DRAIN).env("PATH", path));
    assert!(tool::is_over_within(WAIT, || read(site.file("at")).ends_with('\n')));
    let second = site.act(&slow(&["node1"]), &[], &DRAIN);
    let holder = format!(": process {} of user 0 on ", first.id());
    assert!(second.code() == 1 && second.err().contains(&holder), "{}", second.err());
    assert_eq!((site.state("node1").as_str(), site.log().len()), ("IDLE", 0));
    // A dry run needs no lock.
    assert!(site.act(&slow(&["node1"]), &[], &["--dry-run"]).success().out().contains("would run"));
    let scontrol: i32 = read(site.file("at")).trim().parse().unwrap();
    // SAFETY: pmmpi started it in a group of its own, and it waits for this signal.
    unsafe { libc::kill(-scontrol, libc::SIGKILL) };
    let first = first.finish();
    assert!(first.code() == 1 && first.err().contains("scontrol"), "{}", first.err());
}

/// Room for the intent, but perhaps not for the outcome.
#[test]
fn on_an_almost_full_disk_pmmpi_does_not_act() {
    let site = Site::new();
    let small = site.file("small");
    fs::create_dir(&small).unwrap();
    let script = "mount -t tmpfs -o size=16k none small && cd small && cp ../input.json . && exec \"$@\"";
    let output = tool::run(&mut site.wrapped(&["unshare", "--mount", "sh", "-c", script, "sh"], &DRAIN));
    assert!(
        output.code() == 1 && output.out().contains("cannot reserve room for the log"),
        "{} {}",
        output.out(),
        output.err()
    );
    assert_eq!(site.state("node0"), "IDLE");
}

/// The disk is full after so many bytes of the log: at the begin, the intent or the outcome.
#[test]
fn on_a_full_disk_no_act_goes_unlogged() {
    const MOST_BYTES: usize = 16 << 10;
    let site = Site::new();
    let options = ["--apply", "comment", "--max-nodes", "4"];
    let mut seen = [false; 2];
    for free_bytes in (0..1600).step_by(100) {
        site.act(&[], &[], &options).success();
        let begin = read(site.file("log")).lines().next().unwrap().to_owned() + "\n";
        let mut log = begin.repeat(MOST_BYTES / begin.len());
        log.truncate((MOST_BYTES - free_bytes) / begin.len() * begin.len());
        fs::write(site.file("log"), log).unwrap();
        // In blocks of 512 bytes. Without the trap, the signal would kill pmmpi.
        let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", MOST_BYTES / 512);
        let output = tool::run(&mut site.wrapped(&["sh", "-c", &limited, "sh"], &options));
        let (is_marked, log) = (!site.field("node0", "Comment").is_empty(), site.log().join(", "));
        assert_eq!(is_marked, log.starts_with("intent add_comment"), "{free_bytes} {log} {}", output.err());
        assert_eq!(output.code() == 0, log.ends_with("outcome done"), "{free_bytes} {log} {}", output.out());
        seen[usize::from(is_marked)] = true;
        site.act(&[], &["node0"], &options).success();
        assert_eq!(site.field("node0", "Comment"), "", "{free_bytes}");
        let log = site.log().join(", ");
        assert_eq!(log.matches("intent").count(), log.matches("outcome").count(), "{free_bytes} {log}");
    }
    assert_eq!(seen, [true, true]);
}
