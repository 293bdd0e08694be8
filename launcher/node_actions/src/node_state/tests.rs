use super::*;
use proptest::prelude::*;

/// Slurm 22.05 of Debian 12.
const SLURM_22_05: &str = "NodeName=node0 Arch=x86_64 CoresPerSocket=1 
   CPUAlloc=0 CPUEfctv=1 CPUTot=1 CPULoad=0.68
   AvailableFeatures=a,b,pmmpi_slow
   ActiveFeatures=(null)
   Gres=(null)
   NodeAddr=127.0.0.1 NodeHostName=vm Port=19010 Version=22.05.8
   OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0 
   RealMemory=1 AllocMem=0 FreeMem=20789 Sockets=1 Boards=1
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=main 
   BootTime=2026-11-25T09:26:08 SlurmdStartTime=2026-11-26T02:06:16
   LastBusyTime=2026-11-26T02:06:17
   CfgTRES=cpu=1,mem=1M,billing=1
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
   Reason=pmmpi: slow-memory: +8.1 % (at least 7.4 %) [root@2026-11-26T02:09:12]
   Comment=rack 7, \"quoted\" [by eva]
   Extra=x y

";

fn one(output: &str) -> Result<NodeState, String> {
    let nodes = read_all(output)?;
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    nodes.into_values().next().unwrap()
}

/// A record with these lines at its end.
fn record(name: &str, state: &str, more: &[&str]) -> String {
    let more: String = more.iter().map(|line| format!("\n{line}")).collect();
    format!(
        "NodeName={name} Arch=x86_64 \n   CPUAlloc=0\n   AvailableFeatures=(null)\n   ActiveFeatures=\n   \
         State={state} Weight=1 \n   AllocTRES={more}\n\n"
    )
}

#[test]
fn a_record_of_slurm_22_05_is_read() {
    let node = one(SLURM_22_05).unwrap();
    assert_eq!((node.name.as_str(), node.state_text().as_str()), ("node0", "IDLE+DRAIN"));
    assert_eq!(node.host_name.as_deref(), Some("vm"));
    let reason = node.reason.as_ref().unwrap();
    assert_eq!(reason.text, "pmmpi: slow-memory: +8.1 % (at least 7.4 %)");
    assert_eq!(reason.set_by.as_deref(), Some("root@2026-11-26T02:09:12"));
    assert_eq!(node.comment, "rack 7, \"quoted\" [by eva]");
    assert_eq!(node.available_features, ["a", "b", "pmmpi_slow"]);
    assert!(node.active_features.is_empty() && node.has_our_reason());
    assert_eq!(node.service(), Service::Drained);
}

/// Fields of newer versions, before and after the texts.
#[test]
fn a_record_of_a_newer_slurm_is_read() {
    let output =
        SLURM_22_05.replace("   CapWatts=n/a\n", "").replace("   Gres=", "   GresDrain=N/A\n   Gres=");
    let output = output.replace(
        "   Extra=x y\n",
        "   Extra=x y\n   InstanceId=i-1 InstanceType=m5\n   ReservationName=maint\n",
    );
    assert_eq!(one(&output), one(SLURM_22_05));
}

#[test]
fn several_records_are_told_apart() {
    let output = record("a", "IDLE", &[]) + &record("b", "DOWN", &["   Reason=x"]) + SLURM_22_05;
    let nodes = read_all(&output).unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["a", "b", "node0"]);
    assert!(nodes.values().all(Result::is_ok));
    assert_eq!(nodes["b"].as_ref().unwrap().reason.as_ref().unwrap().text, "x");
    let twice = record("a", "IDLE", &[]) + &record("a", "DOWN", &[]);
    assert!(read_all(&twice).unwrap()["a"].is_err());
}

#[test]
fn reasons_of_others_are_not_ours() {
    let reason = |lines: &[&str]| one(&record("a", "IDLE+DRAIN", lines)).unwrap().reason.unwrap();
    assert!(reason(&["   Reason=pmmpi: slow [root@2026-11-26T02:09:12]"]).is_ours());
    assert!(reason(&["   Reason=pmmpi: slow"]).is_ours());
    for lines in [
        &["   Reason=bad DIMM [root@2026-11-26T02:09:12]"][..],
        &["   Reason=not pmmpi: slow"],
        // Somebody extended our reason.
        &["   Reason=pmmpi: slow [root@2026-11-26T02:09:12]", "          see ticket 7"],
    ] {
        assert!(!reason(lines).is_ours(), "{lines:?}");
    }
    // The time may have any format.
    assert_eq!(reason(&["   Reason=a [b] [eva@26 Nov 02:09]"]).text, "a [b]");
    assert_eq!(reason(&["   Reason=a [b]"]).text, "a [b]");
}

#[test]
fn a_comment_is_no_reason() {
    let node = one(&record("a", "IDLE", &["   Comment=x Reason=pmmpi: slow State=DOWN"])).unwrap();
    assert_eq!((node.reason, node.comment.as_str()), (None, "x Reason=pmmpi: slow State=DOWN"));
    let node = one(&record("a", "IDLE", &["   Comment=x", "second line", ""])).unwrap();
    assert_eq!(node.comment, "x\nsecond line\n");
    // pmmpi cannot know the meaning of these.
    for lines in [
        &["   Comment=x", "   Reason=pmmpi: slow"][..],
        &["   Extra=x", "   Reason=pmmpi: slow"],
        &["   Reason=x", "   Reason=pmmpi: slow"],
        &["   Reason=x", "   State=IDLE"],
        &["   Reason=x", "   NodeAddr=a NodeHostName=a"],
        &["   Comment=x", "   Comment=y"],
        &["no field"],
    ] {
        assert!(one(&record("a", "IDLE+DRAIN", lines)).is_err(), "{lines:?}");
    }
}

/// A cut record could lack the reason of somebody else's drain.
#[test]
fn what_is_no_whole_record_is_refused() {
    for output in ["", "\n\n", "Node a not found\n", "NodeName=a\n\n", "rubbish\n\nNodeName=a State=IDLE\n\n"]
    {
        assert!(one(output).is_err(), "{output:?}");
    }
    for length in 0..SLURM_22_05.len() {
        assert!(one(&SLURM_22_05[..length]).is_err(), "{length}");
    }
}

#[test]
fn only_known_states_are_in_service() {
    let service = |state: &str| one(&record("a", state, &[])).unwrap().service();
    for state in ["IDLE", "ALLOCATED", "MIXED+PLANNED", "IDLE+RESERVED", "ALLOCATED+COMPLETING", "IDLE+CLOUD"]
    {
        assert_eq!(service(state), Service::In, "{state}");
    }
    for state in ["IDLE+DRAIN", "MIXED+DRAIN", "ALLOCATED+DRAIN+RESERVED", "IDLE+CLOUD+DRAIN"] {
        assert_eq!(service(state), Service::Drained, "{state}");
    }
    for state in [
        "DOWN",
        "DOWN+DRAIN",
        "DOWN*+DRAIN",
        "IDLE*",
        "IDLE+DRAIN+NOT_RESPONDING",
        "IDLE+MAINTENANCE+RESERVED",
        "IDLE+FAIL",
        "FAIL",
        "FAILING",
        "ERROR",
        "UNKNOWN",
        "FUTURE",
        "IDLE+POWERED_DOWN",
        "IDLE+DRAIN+REBOOT_ISSUED",
        "DRAINED",
        "DRAINING",
        "IDLE+A_FLAG_OF_THE_FUTURE",
        "",
    ] {
        assert_eq!(service(state), Service::Out, "{state}");
    }
}

proptest! {
    #[test]
    fn no_output_is_too_odd(output in any::<String>()) {
        let _ = read_all(&output);
    }

    #[test]
    fn no_record_is_too_odd(lines in prop::collection::vec("( {0,4})(Reason=|Comment=|State=|NodeName=|Extra=)?.{0,9}", 0..9)) {
        let output = record("a", "IDLE", &lines.iter().map(String::as_str).collect::<Vec<_>>());
        let _ = read_all(&output);
    }

    /// Texts of one line, as scontrol prints them.
    #[test]
    fn texts_are_read_back(reason in "[ -~é]{1,40}", comment in "[ -~é]{0,40}") {
        let lines = [format!("   Reason={reason} [eva@2026-11-26T02:09:12]"), format!("   Comment={comment}")];
        let node = one(&record("a", "IDLE+DRAIN", &[&lines[0], &lines[1]])).unwrap();
        prop_assert_eq!(node.reason.unwrap().text, reason);
        prop_assert_eq!(node.comment, comment);
    }
}
