//! A screen next to its baseline, in sentences and as a table.

use super::cells::{percent, shortened};
use super::sentences;
use super::tabular::{Cell, Table, left, name, or_dash, right, words};
use crate::report::against_baseline::KernelAgainst;
use crate::report::screen::ScreenReport;
use crate::table::instant;
use pmmpi::text::count;

/// One sentence for each class that moved or could not be compared, one for all other kernels, and one for small classes.
pub fn sentences(screen: &ScreenReport) -> Vec<String> {
    let kernels: Vec<Vec<&KernelAgainst>> = classes_of_kernels(screen);
    let each = || kernels.iter().flat_map(|classes| classes.iter().map(move |of| (*of, classes.as_slice())));
    let mut sentences: Vec<String> =
        each().filter(|(of, _)| of.moved == Some(true)).filter_map(|(of, all)| moved(of, all)).collect();
    let is_same = |classes: &&Vec<&KernelAgainst>| {
        let has = |moved| classes.iter().any(|of| of.moved == Some(moved));
        has(false) && !has(true)
    };
    let same: Vec<String> =
        kernels.iter().filter(is_same).map(|classes| shortened(&classes[0].kernel)).collect();
    if !same.is_empty() {
        sentences
            .push(format!("kernels without a certain difference from the baseline: {}", same.join(", ")));
    }
    sentences.extend(each().filter_map(|(of, all)| {
        let why = of.null_reasons.get("moved")?;
        let class = difference(of, all).map(|class| format!(" ({class})")).unwrap_or_default();
        Some(format!(
            "pmmpi cannot find out whether the class of {}{class} changed: {why}",
            shortened(&of.kernel)
        ))
    }));
    sentences.extend(too_small(screen));
    sentences
}

/// The classes of each kernel that has one to compare.
fn classes_of_kernels(screen: &ScreenReport) -> Vec<Vec<&KernelAgainst>> {
    let kernels = screen.against.iter().flat_map(|against| against.by_kernel());
    let large = kernels.map(|classes| classes.iter().filter(|of| !of.too_small).collect::<Vec<_>>());
    large.filter(|classes| !classes.is_empty()).collect()
}

/// For example "classes too small to compare with the baseline: dgemm (1 node), triad (1 node)".
fn too_small(screen: &ScreenReport) -> Option<String> {
    let of_kernel = |classes: &[KernelAgainst]| {
        let small = classes.iter().filter(|of| of.too_small);
        let nodes: usize = small.map(|of| of.nodes_in_screen).sum();
        (nodes > 0).then(|| format!("{} ({})", shortened(&classes[0].kernel), count(nodes, "node")))
    };
    let kernels = screen.against.iter().flat_map(|against| against.by_kernel());
    let kernels: Vec<String> = kernels.filter_map(of_kernel).collect();
    (!kernels.is_empty())
        .then(|| format!("classes too small to compare with the baseline: {}", kernels.join(", ")))
}

/// For example "the class of triad (48 nodes) as a whole is 3.1 % slower than in the baseline (2.9 % .. 3.3 %)". `all` are
/// the classes of the kernel.
fn moved(of: &KernelAgainst, all: &[&KernelAgainst]) -> Option<String> {
    let change = of.change?;
    let how = if change < 0.0 { "faster" } else { "slower" };
    let mut interval = of.ci?.map(f64::abs);
    interval.sort_unstable_by(f64::total_cmp);
    let [low, high] = interval.map(sentences::percent);
    let class = difference(of, all).map(|class| format!(", {class}")).unwrap_or_default();
    Some(format!(
        "the class of {} ({}{class}) as a whole is {} {how} than in the baseline ({low} .. {high})",
        shortened(&of.kernel),
        count(of.nodes, "node"),
        sentences::percent(change.abs())
    ))
}

/// What tells the class from the other classes of its kernel, for example "192 GiB"; `None` if the kernel has one class.
fn difference(of: &KernelAgainst, all: &[&KernelAgainst]) -> Option<String> {
    let class = of.class.as_deref().filter(|_| all.len() > 1)?;
    let others = || all.iter().filter_map(|other| other.class.as_deref()).filter(|other| *other != class);
    let is_shared = |part: &&str| others().all(|other| parts(other).any(|of_other| of_other == *part));
    let own: Vec<&str> = parts(class).filter(|part| !is_shared(part)).collect();
    Some(shortened(&if own.is_empty() { class.to_owned() } else { own.join(", ") }))
}

/// The facts, the work and the labels in the name of a class.
fn parts(class: &str) -> impl Iterator<Item = &str> {
    class.split("; ").flat_map(|part| part.split(", "))
}

/// One row per kernel and class.
pub fn table(screen: &ScreenReport) -> Table {
    let kernels = classes_of_kernels(screen);
    let has_classes = kernels.iter().any(|classes| classes.len() > 1);
    let rows = kernels.iter().flat_map(|all| all.iter().map(move |of| row(of, all, has_classes)));
    let first = [left("Against baseline")].into_iter().chain(has_classes.then(|| left("Class")));
    let others = [
        right("Nodes"),
        right("Slower"),
        right("Interval"),
        left("Class changed"),
        left("Baseline session"),
        left("Baseline began (UTC)"),
    ];
    Table { columns: first.chain(others).collect(), rows: rows.collect(), ..Table::default() }
}

fn row(of: &KernelAgainst, all: &[&KernelAgainst], has_classes: bool) -> Vec<Cell> {
    let interval = of.ci.map(|[low, high]| format!("{} .. {}", percent(low, 1), percent(high, 1)));
    let earlier = of.earlier.as_ref();
    let session = earlier.and_then(|screen| screen.session.as_deref());
    let began = earlier.map(|screen| instant::utc(screen.started_unix_ns).join(" "));
    let class = has_classes.then(|| name(difference(of, all).as_deref().unwrap_or("-")));
    let others = [
        words(match of.nodes == of.nodes_in_screen {
            true => of.nodes.to_string(),
            false => format!("{} of {}", of.nodes, of.nodes_in_screen),
        }),
        or_dash(of.change, |change| percent(change, 1)),
        words(interval.unwrap_or_else(|| "-".to_owned())),
        words(match of.moved {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        }),
        name(session.unwrap_or("-")),
        words(began.unwrap_or_else(|| "-".to_owned())),
    ];
    [name(&of.kernel)].into_iter().chain(class).chain(others).collect()
}
