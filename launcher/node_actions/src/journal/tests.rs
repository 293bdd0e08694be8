use super::*;
use crate::fake::{Fake, node, unknown_cluster};
use crate::own_marks::OwnMark;
use crate::settings::Action;
use proptest::prelude::*;
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log");
    (folder, path)
}

/// On a cluster whose name is unknown.
fn open(path: &Path) -> std::result::Result<Journal, Error> {
    Journal::open(path, &unknown_cluster())
}

/// The same.
fn check(path: &Path) -> std::result::Result<(), Error> {
    check_log(path, &Fake::new([]))
}

fn drain() -> Act {
    Act::Drain("pmmpi: slow".to_owned())
}

fn cause(reason: &str) -> MarkCause {
    MarkCause { reason: reason.to_owned(), found_by: Vec::new() }
}

fn outcome(id: u64) -> Entry {
    let before = Some(Box::new(node("a", "IDLE", None)));
    let after = Some(Box::new(node("a", "IDLE+DRAIN", Some("pmmpi: slow"))));
    Entry::Outcome { id, node: "a".to_owned(), result: Result::Done, note: None, before, after }
}

#[test]
fn an_intent_is_open_until_its_outcome() {
    let (_folder, path) = place();
    let mut journal = open(&path).unwrap();
    assert!(journal.open_intents().is_empty());
    let ids = ["a", "b", "c"].map(|name| journal.intend(name, &drain(), None).unwrap());
    journal.append(outcome(ids[1])).unwrap();
    drop(journal);
    let mut journal = open(&path).unwrap();
    let open: Vec<(&str, u64)> =
        journal.open_intents().iter().map(|open| (&open.node[..], open.id)).collect();
    assert_eq!(open, [("a", ids[0]), ("c", ids[2])]);
    assert_eq!(journal.open_intents()[0].act, drain());
    assert!(journal.intend("d", &Act::Resume, None).unwrap() > ids[2]);
}

/// Also of a run that another one has to finish.
#[test]
fn the_last_mark_on_a_node_is_known() {
    let (_folder, path) = place();
    assert_eq!(Journal::read_marks(&path, &ListedNodes::new()).unwrap().0.mark("a", &Action::Drain), None);
    let of = |marks: &OwnMarks, action| marks.mark("a", &action).and_then(OwnMark::reason).map(str::to_owned);
    let mut journal = open(&path).unwrap();
    let ended = |id, result| Entry::Outcome {
        id,
        node: "a".to_owned(),
        result,
        note: None,
        before: None,
        after: None,
    };
    let id = journal.intend("a", &drain(), None).unwrap();
    journal.append(outcome(id)).unwrap();
    for result in [Result::Skipped, Result::FoundNotDone, Result::NodeGone] {
        let id = journal.intend("a", &Act::Drain("pmmpi: other".to_owned()), None).unwrap();
        journal.append(ended(id, result)).unwrap();
    }
    let id = journal.intend("a", &Act::Resume, None).unwrap();
    journal.append(ended(id, Result::Failed)).unwrap();
    let noisy = cause("pmmpi: noisy");
    journal.intend("a", &Act::AddFeature("pmmpi_slow".to_owned()), Some(&noisy)).unwrap();
    drop(journal);
    let mut journal = open(&path).unwrap();
    assert_eq!(of(journal.marks(), Action::Drain).as_deref(), Some("pmmpi: slow"));
    assert_eq!(of(journal.marks(), Action::feature()), None);
    let open = journal.open_intents()[0].clone();
    journal.close(&open, Result::FoundDone);
    assert_eq!(of(journal.marks(), Action::feature()).as_deref(), Some("pmmpi: noisy"));
    journal.append(ended(open.id, Result::FoundDone)).unwrap();
    let id = journal.intend("a", &Act::Resume, None).unwrap();
    journal.append(ended(id, Result::Done)).unwrap();
    let (marks, _) = Journal::read_marks(&path, &ListedNodes::new()).unwrap();
    assert_eq!(of(&marks, Action::Drain), None);
    assert_eq!(of(&marks, Action::feature()).as_deref(), Some("pmmpi: noisy"));
}

#[test]
fn lines_are_json_that_other_programs_can_read() {
    let (_folder, path) = place();
    let mut journal = open(&path).unwrap();
    let id = journal.intend("a", &drain(), None).unwrap();
    journal.append(outcome(id)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(text.lines().all(|line| line.as_bytes().starts_with(MARK)));
    assert_eq!((&lines[0]["entry"], &lines[0]["process"]), (&"begin".into(), &std::process::id().into()));
    assert_eq!(
        (&lines[1]["entry"], &lines[1]["act"], &lines[1]["node"]),
        (&"intent".into(), &"drain".into(), &"a".into())
    );
    assert_eq!(lines[1]["text"], "pmmpi: slow");
    assert_eq!((&lines[2]["result"], &lines[2]["after"]["state"][1]), (&"done".into(), &"DRAIN".into()));
}

#[test]
fn a_second_pmmpi_hears_who_holds_the_journal() {
    let (_folder, path) = place();
    let first = open(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    let holder = format!("process {} of user ", std::process::id());
    assert!(matches!(error, Error::Held { .. }) && error.to_string().contains(&holder), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(first);
    assert!(open(&path).is_ok());
}

/// Also while a run has the lock.
#[test]
fn a_log_of_another_cluster_is_refused() {
    let (_folder, path) = place();
    let name = |name: &str| Ok(name.to_owned());
    let first = Journal::open(&path, &name("alpha")).unwrap();
    let before = fs::read(&path).unwrap();
    let log = path.display();
    let told = format!(
        "cannot use {log} as log: it is the log of the cluster alpha, but this is the cluster beta; each cluster needs \
         its own log, so name another file with --log. If you have renamed the cluster alpha, change its name in all \
         entries `begin` of the log"
    );
    let told_if_unknown = format!(
        "cannot use {log} as log: it is the log of the cluster alpha, and pmmpi could not find out with `scontrol show \
         config` whether this cluster is alpha (no answer); run this command by hand to find the problem"
    );
    let slurm = Fake::new([]);
    slurm.is_cluster(Some("beta"));
    for held in [Some(first), None] {
        let opened = Journal::open(&path, &name("alpha"));
        assert_eq!(opened.is_ok(), held.is_none());
        assert!(opened.is_ok() || matches!(opened, Err(Error::Held { .. })));
        drop(opened);
        fs::write(&path, &before).unwrap();
        assert_eq!(Journal::open(&path, &name("beta")).unwrap_err().to_string(), told);
        assert_eq!(check_log(&path, &slurm).unwrap_err().to_string(), told);
        assert_eq!(open(&path).unwrap_err().to_string(), told_if_unknown);
        assert_eq!(check(&path).unwrap_err().to_string(), told_if_unknown);
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

/// Somebody may have written the name by hand.
#[test]
fn the_case_of_a_name_and_an_empty_name_mean_nothing() {
    let (_folder, path) = place();
    drop(Journal::open(&path, &Ok("alpha".to_owned())).unwrap());
    let log = fs::read_to_string(&path).unwrap();
    let with = |name: &str| log.replace("\"cluster\":\"alpha\"", &format!("\"cluster\":\"{name}\""));
    for (written, own, is_accepted) in [
        ("ALPHA", "alpha", true),
        ("alpha", "Alpha", true),
        ("Alpha", "beta", false),
        ("", "beta", true),
        (" ", "beta", true),
    ] {
        fs::write(&path, with(written)).unwrap();
        let opened = Journal::open(&path, &Ok(own.to_owned()));
        assert_eq!(opened.is_ok(), is_accepted, "{written:?} {own}");
    }
    fs::write(&path, with("")).unwrap();
    open(&path).unwrap();
}

#[test]
fn a_log_is_checked_without_a_change() {
    let (_folder, path) = place();
    check(&path).unwrap();
    assert!(!path.exists());
    let journal = open(&path).unwrap();
    let before = fs::read(&path).unwrap();
    check(&path).unwrap();
    drop(journal);
    assert_eq!(fs::read(&path).unwrap(), before);
    // Of runs that were killed during their first write.
    for content in ["", "{", "{\n{\"pmm"] {
        fs::write(&path, content).unwrap();
        check(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        drop(open(&path).unwrap());
        check(&path).unwrap();
    }
}

/// A kill or a full disk may cut the last line anywhere.
#[test]
fn a_cut_line_is_ignored() {
    let (_folder, path) = place();
    let mut journal = open(&path).unwrap();
    let id = journal.intend("a", &drain(), None).unwrap();
    journal.append(outcome(id)).unwrap();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        // Twice: the cut line is then in the middle.
        for _ in 0..2 {
            let journal = open(&path).unwrap();
            let is_open = length >= ends[1] && length < ends[2];
            assert_eq!(journal.open_intents().len(), usize::from(is_open), "{length}");
        }
    }
}

#[test]
fn other_files_are_left_alone() {
    let (folder, path) = place();
    let other_version = "{\"pmmpi_node_actions\":2,\"x\":1}\n";
    let after_cut = "{\n{\"pmmpi_node_actions\":2,\"x\":1}\n";
    let json = "{\n  \"nodes\": 4\n}\n";
    for content in
        ["important,data\n", "no end of line", other_version, after_cut, "\n", "\nno log\n", "{ ", json]
    {
        fs::write(&path, content).unwrap();
        assert!(matches!(check(&path), Err(Error::NoJournal(..))), "{content}");
        assert!(matches!(open(&path), Err(Error::NoJournal(..))), "{content}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    assert!(matches!(open(Path::new("/dev/null")), Err(Error::NoJournal(..))));
    assert!(matches!(check(Path::new("/dev/null")), Err(Error::NoJournal(..))));
    assert!(matches!(open(folder.path()), Err(Error::Journal { .. })));
    assert!(matches!(open(Path::new("/proc/nowhere/log")), Err(Error::Journal { .. })));
}

#[test]
fn a_moved_journal_ends_the_run() {
    let (folder, path) = place();
    let mut journal = open(&path).unwrap();
    fs::rename(&path, folder.path().join("log.1")).unwrap();
    assert!(journal.intend("a", &drain(), None).is_err());
    fs::write(&path, "").unwrap();
    assert!(journal.intend("a", &drain(), None).is_err());
}

/// Only a feature needs the key `reason` for that of the mark. A log of an older pmmpi has none of the other keys.
#[test]
fn an_intent_has_what_found_the_node() {
    let (_folder, path) = place();
    let mut journal = open(&path).unwrap();
    let options = vec!["--memory".to_owned(), "85%".to_owned()];
    let found_by = vec![Measurement { kernel: "triad".to_owned(), options, ..Measurement::default() }];
    let slow = MarkCause { found_by, ..cause("pmmpi: slow") };
    let id = journal.intend("a", &drain(), Some(&slow)).unwrap();
    journal.append(outcome(id)).unwrap();
    drop(journal);
    let mut journal = open(&path).unwrap();
    journal.keep_further(&node("a", "IDLE+DRAIN", Some("pmmpi: slow")), &cause("pmmpi: wrong")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let measured = serde_json::json!([{"kernel": "triad", "options": ["--memory", "85%"]}]);
    assert_eq!((&lines[1]["found_by"], lines[1].get("reason")), (&measured, None));
    let further = ["entry", "act", "text", "reason"].map(|key| lines[4][key].as_str().unwrap());
    assert_eq!(further, ["finding", "drain", "pmmpi: slow", "pmmpi: wrong"]);
    let (marks, _) = Journal::read_marks(&path, &ListedNodes::new()).unwrap();
    assert_eq!(marks.mark("a", &Action::Drain).unwrap().causes, [slow, cause("pmmpi: wrong")]);
}

/// The next run could not read it.
#[test]
fn an_entry_that_is_too_long_is_refused() {
    let (_folder, path) = place();
    let mut journal = open(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let options = vec!["x".repeat(1 << 20)];
    let found_by = vec![Measurement { kernel: "solver".to_owned(), options, ..Measurement::default() }];
    let error =
        journal.intend("a", &drain(), Some(&MarkCause { found_by, ..cause("pmmpi: slow") })).unwrap_err();
    assert!(error.to_string().contains("this entry is longer than 1 MiB"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    journal.intend("a", &drain(), Some(&cause("pmmpi: slow"))).unwrap();
}

/// As a dry run reads them.
#[test]
fn an_act_without_outcome_is_as_the_node_shows_it() {
    let (_folder, path) = place();
    open(&path).unwrap().intend("a", &drain(), Some(&cause("pmmpi: slow"))).unwrap();
    let before = fs::read(&path).unwrap();
    for (state, reason, is_marked) in [("IDLE+DRAIN", Some("pmmpi: slow"), true), ("IDLE", None, false)] {
        let listed = ListedNodes::from([("a".to_owned(), Ok(node("a", state, reason)))]);
        let (marks, _) = Journal::read_marks(&path, &listed).unwrap();
        assert_eq!(marks.mark("a", &Action::Drain).is_some(), is_marked, "{state}");
    }
    let unread = ListedNodes::from([("a".to_owned(), Err("cut".to_owned()))]);
    for (listed, still_open) in [(ListedNodes::new(), 0), (unread, 1)] {
        let (marks, open) = Journal::read_marks(&path, &listed).unwrap();
        assert_eq!((marks.of_node("a").len(), open.len()), (0, still_open));
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

proptest! {
    #[test]
    fn no_content_is_too_odd(lines in prop::collection::vec(".{0,40}", 0..5)) {
        let (_folder, path) = place();
        let text: String = lines.iter().map(|line| format!("{{\"pmmpi_node_actions\":{line}\n")).collect();
        fs::write(&path, text).unwrap();
        let _ = open(&path);
    }
}
