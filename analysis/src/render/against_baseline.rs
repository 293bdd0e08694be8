//! A screen next to its baseline, in sentences and as a table.

use super::cells::{percent, shortened};
use super::tabular::{Table, left, name, or_dash, right, words};
use crate::report::against_baseline::KernelAgainst;
use crate::report::screen::ScreenReport;
use crate::table::instant;
use crate::warning_codes;
use pmmpi::text::count;

/// One sentence for each kernel whose class moved or could not be compared, and one for all other kernels.
pub fn sentences(screen: &ScreenReport) -> Vec<String> {
    let kernels = || screen.against.iter().flat_map(|against| &against.kernels);
    let mut sentences: Vec<String> =
        kernels().filter(|of| of.moved == Some(true)).filter_map(moved).collect();
    let mut same: Vec<String> =
        kernels().filter(|of| of.moved == Some(false)).map(|of| shortened(&of.kernel)).collect();
    same.dedup();
    if !same.is_empty() {
        sentences.push(format!(
            "kernels in which no class certainly differs from the baseline: {}",
            same.join(", ")
        ));
    }
    sentences.extend(kernels().filter_map(|of| {
        let why = of.null_reasons.get("moved")?;
        Some(format!("pmmpi cannot tell whether the class of {} changed: {why}", shortened(&of.kernel)))
    }));
    sentences
}

/// For example "the class of triad (48 nodes) as a whole is 3.1 % slower than in the baseline (2.9 % .. 3.3 %)".
fn moved(of: &KernelAgainst) -> Option<String> {
    let change = of.change?;
    let how = if change < 0.0 { "faster" } else { "slower" };
    let mut interval = of.ci?.map(f64::abs);
    interval.sort_unstable_by(f64::total_cmp);
    let [low, high] = interval.map(warning_codes::percent);
    Some(format!(
        "the class of {} ({}) as a whole is {} {how} than in the baseline ({low} .. {high})",
        shortened(&of.kernel),
        count(of.nodes, "node"),
        warning_codes::percent(change.abs())
    ))
}

/// One row per kernel and class.
pub fn table(screen: &ScreenReport) -> Table {
    let row = |of: &KernelAgainst| {
        let interval = of.ci.map(|[low, high]| format!("{} .. {}", percent(low, 1), percent(high, 1)));
        let began = of.earlier.as_ref().map(|screen| instant::utc(screen.started_unix_ns).join(" "));
        vec![
            name(&of.kernel),
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
            words(began.unwrap_or_else(|| "-".to_owned())),
        ]
    };
    Table {
        columns: vec![
            left("Against baseline"),
            right("Nodes"),
            right("Slower"),
            right("Interval"),
            left("Class changed"),
            left("Baseline began (UTC)"),
        ],
        rows: screen.against.iter().flat_map(|against| &against.kernels).map(row).collect(),
        ..Table::default()
    }
}
