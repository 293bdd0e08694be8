//! The table of nodes that are compared with their own earlier sessions.

use crate::own_history::{self, Fleet, REFERENCE, Truth};
use crate::promises::Rate;

/// The method was chosen on other seeds.
const FIRST_SEED: u64 = 8_000_000;

/// A row, and how many fleets it has.
fn rows() -> Vec<(&'static str, Fleet, u64)> {
    let of = REFERENCE;
    let small = Fleet { nodes: 5, ..of };
    let alone = Fleet { nodes: 1, common_sd: 0.0, ..of };
    vec![
        ("2 sessions", Fleet { sessions: 2, ..of }, 100),
        ("3 sessions", Fleet { sessions: 3, ..of }, 100),
        ("6 sessions", Fleet { sessions: 6, ..of }, 100),
        ("12 sessions", Fleet { sessions: 12, ..of }, 100),
        ("52 sessions", Fleet { sessions: 52, ..of }, 100),
        ("6 sessions of 3 runs", Fleet { sessions: 6, runs: 3, ..of }, 100),
        ("6 sessions of 1 run", Fleet { sessions: 6, runs: 1, ..of }, 100),
        (
            "6 sessions, 20 nodes, 5 % of the nodes change",
            Fleet { sessions: 6, nodes: 20, changed: 0.05, ..of },
            1000,
        ),
        ("6 sessions, 10 % of the nodes change", Fleet { sessions: 6, changed: 0.1, ..of }, 100),
        ("6 sessions, single bad sessions (t3)", Fleet { sessions: 6, has_bad_sessions: true, ..of }, 100),
        ("6 sessions, nodes become faster", Fleet { sessions: 6, by: (-0.12, -0.01), ..of }, 100),
        ("6 sessions, each with 60 % of the nodes", Fleet { sessions: 6, measured: 0.6, ..of }, 100),
        ("2 sessions, 5 nodes, healthy", Fleet { changed: 0.0, ..small }, 2000),
        ("6 sessions, 5 nodes, healthy", Fleet { sessions: 6, changed: 0.0, ..small }, 2000),
        ("2 sessions, 5 nodes, 20 % of the nodes change", Fleet { changed: 0.2, ..small }, 2000),
        ("2 sessions, 1 node, which changes in half of the fleets", Fleet { changed: 0.5, ..alone }, 2000),
        (
            "12 sessions, slow in every second session",
            Fleet { sessions: 12, course: Truth::Unsteady, ..of },
            100,
        ),
        ("12 sessions, slower little by little", Fleet { sessions: 12, course: Truth::Creep, ..of }, 100),
        ("12 sessions, one of them bad", Fleet { sessions: 12, course: Truth::OneSession, ..of }, 100),
    ]
}

pub fn print() {
    println!("\n## Each node against its own history\n");
    println!(
        "Each fleet has 1000 nodes, with 7 runs per node and session. ln T has a normal distribution. The"
    );
    println!(
        "standard deviation is 1.5 % between nodes, 0.3 % between the sessions of a node, and 0.3 % between"
    );
    println!(
        "the runs of a node in a session. In addition, each session makes all nodes slower or faster by the"
    );
    println!(
        "same factor. The logarithm of this factor has a standard deviation of 2 % (0 % in the row with 1"
    );
    println!(
        "node). The simulation makes 1 % of the runs 10 to 30 % slower. 1 % of the nodes are 1 to 12 % slower"
    );
    println!(
        "from a random session on. If a row uses other values, its first column names them. \"t3\" means that"
    );
    println!(
        "the deviations of a node's sessions have a t distribution with 3 degrees of freedom, so that some"
    );
    println!(
        "nodes have single bad sessions. Most rows have 100 fleets. The row with 20 nodes has 1000 fleets,"
    );
    println!("and the rows with 5 nodes or 1 node have 2000 fleets.");
    println!();
    println!(
        "Precision and recall refer to the verdict SLOWED. In the row \"nodes become faster\", they refer to"
    );
    println!(
        "FASTER; there, read \"faster\" instead of \"slower\" in the column heads. \"By class\": of the changed"
    );
    println!(
        "nodes, the share that the comparison with the class finds SLOW or SLOW-TAIL in the latest session."
    );
    println!(
        "\"Since right\": of the found changes above 3 %, the share for which the report gives the right first"
    );
    println!(
        "session. \"At least true\": of the found changes, the share that is really at least as large as the"
    );
    println!(
        "lower bound in the report (`history_at_least`). The last three columns show how many healthy nodes"
    );
    println!(
        "of a fleet have the verdict SLOWED, FASTER or SUSPECT (mean over the fleets). In healthy fleets,"
    );
    println!(
        "each finding is false, so the precision is 0. In the row \"one of them bad\", a changed node is slow"
    );
    println!(
        "in only one session, and this session is not the latest. The node should not be SLOWED, so a recall"
    );
    println!("of 0 is right. A dash means that there is nothing to count.\n");
    println!(
        "| fleets | precision | recall | recall, 2-3 % slower | recall, 3-5 % slower | recall, > 5 % slower | by class | since right | at least true | SLOWED \
         per fleet | FASTER | SUSPECT |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut courses = Vec::new();
    for (name, fleet, fleets) in rows() {
        let rates = own_history::of(fleet, FIRST_SEED..FIRST_SEED + fleets);
        let columns = [
            "precision",
            "recall",
            "of 2-3 %",
            "of 3-5 %",
            "of > 5 %",
            "SLOW by class",
            "since right",
            "at least true",
            "false SLOWED",
            "false FASTER",
            "false SUSPECT",
        ];
        let cells: Vec<String> = columns.iter().map(|column| shown(&rates, column)).collect();
        println!("| {name} | {} |", cells.join(" | "));
        if fleet.course != Truth::Step || fleet.has_bad_sessions || name == "12 sessions" {
            let columns =
                ["STEP or LATEST", "UNSTEADY", "CREEP", "bad session named", "healthy with a bad session"];
            let cells: Vec<String> = columns.iter().map(|column| shown(&rates, column)).collect();
            courses.push(format!("| {name} | {} |", cells.join(" | ")));
        }
    }
    println!(
        "\nThe next table shows the kinds of the changes (column HOW in the report). The columns \"STEP or"
    );
    println!(
        "LATEST\", \"UNSTEADY\" and \"CREEP\" show shares of the found nodes; the other found nodes are STEPS. The"
    );
    println!(
        "column \"the bad session is named\" counts only the changed nodes that are not SLOWED. Of these nodes,"
    );
    println!(
        "it shows the share for which the report names exactly one bad session, and this session is the first"
    );
    println!(
        "changed session. The last column shows for which share of the healthy nodes the report names a bad"
    );
    println!("session.\n");
    println!(
        "| fleets | STEP or LATEST | UNSTEADY | CREEP | the bad session is named | healthy nodes with a bad session |"
    );
    println!("|---|---|---|---|---|---|");
    courses.iter().for_each(|course| println!("{course}"));
    println!(
        "\nIn the row with \"t3\", a healthy node is SLOWED if its latest session is clearly bad. The kind of the"
    );
    println!("change is then LATEST, and the first table counts this verdict as false. After the next good");
    println!("session, the node is no longer SLOWED.\n");
    whole_class();
}

fn whole_class() {
    println!(
        "The whole class: each session makes all nodes slower or faster by the same factor. The logarithm of"
    );
    println!(
        "this factor has a normal distribution; the spread is the standard deviation of this logarithm. Each"
    );
    println!(
        "cell comes from 200 healthy classes of 50 nodes, and shows in which share of these classes the"
    );
    println!(
        "report finds a change of the class. Such a change is real, because all nodes show it, but it does"
    );
    println!("not last.\n");
    println!("| spread of the sessions | 2 sessions | 3 | 6 | 12 | 52 |\n|---|---|---|---|---|---|");
    for common_sd in [0.002, 0.005, 0.01, 0.02] {
        let share = |sessions: usize| {
            let fleet = Fleet { nodes: 50, sessions, common_sd, changed: 0.0, ..REFERENCE };
            shown(&own_history::of(fleet, FIRST_SEED..FIRST_SEED + 200), "class moved")
        };
        let cells = [2, 3, 6, 12, 52].map(share);
        println!("| {:.1} % | {} |", common_sd * 100.0, cells.join(" | "));
    }
}

fn shown(rates: &[Rate], column: &str) -> String {
    rates.iter().find(|(name, _)| *name == column).map_or("-".to_owned(), |(_, rate)| format!("{rate:.3}"))
}
