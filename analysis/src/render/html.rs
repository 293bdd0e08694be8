//! The report as one HTML file without scripts and external content; its security policy would block both. It is also
//! well-formed XML, and the tests read it as such.

mod ecdf_plot;
mod places_plot;
mod plot;

use super::md_and_html_tables;
use super::node_names::NodeNames;
use super::origin::ReportOrigin;
use super::tabular::{Cell, Table};
use super::{answer, cells, first_warnings, one_line, screen, where_slow};
use crate::report::Report;
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::class_report::ClassReport;
use crate::verdicts::node_report::NodeReport;
use std::collections::{BTreeMap, BTreeSet};

const STYLE: &str = include_str!("html/style.css");
/// The names of nodes in pictures have at most this many characters, if that tells them apart.
const LONGEST_NAME: usize = 40;

/// A report with at most `top` rows per table (0: all).
pub fn report(report: &Report, origin: &ReportOrigin, top: usize) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"generator\" content=\"pmmpi {}\"/>\n<title>pmmpi report</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n",
        env!("CARGO_PKG_VERSION")
    );
    let sentences = screen::sentences(report).into_iter().chain(answer::of(report));
    for (number, sentence) in sentences.enumerate() {
        let element = if number == 0 { "h1" } else { "p" };
        text += &format!("<{element}>{}</{element}>\n", escaped(&sentence));
    }
    if let Some(selected) = &report.selected {
        text += &format!("<p>Selected: <code>{}</code></p>\n", escaped(&selected.to_string()));
    }
    text += &plots(report);
    for (number, table) in md_and_html_tables::of(report, top).iter().enumerate() {
        text += &of_table(table);
        if number == 0 {
            text += &meanings(report);
        }
    }
    let warnings: Vec<String> = first_warnings::few(report)
        .into_iter()
        .map(|warning| {
            let (message, advice) = (escaped(&warning.message), escaped(warning.code.advice()));
            format!("<li>{message} <code>{}</code><br/><small>{advice}</small></li>\n", warning.code.name())
        })
        .collect();
    if !warnings.is_empty() {
        text += &format!("<h2>Warnings</h2>\n<ul>\n{}</ul>\n", warnings.concat());
    }
    let sources: Vec<String> =
        origin.sources.iter().map(|source| format!("<code>{}</code>", escaped(source))).collect();
    text += &format!("<p><small>{} {}</small></p>\n", escaped(&origin.sentence()), sources.join(", "));
    text + "</body>\n</html>\n"
}

/// Plots of the first classes that have enough nodes to compare.
fn plots(report: &Report) -> String {
    const MOST: usize = 6;
    let names = names_in_pictures(report);
    let numbers = cells::class_numbers(&report.nodes);
    let mut classes: BTreeMap<usize, Vec<&NodeReport>> = BTreeMap::new();
    for node in &report.nodes {
        classes.entry(numbers[node.class.as_str()]).or_default().push(node);
    }
    let plot_of = |(number, nodes): (usize, Vec<&NodeReport>)| plot::of_class(number, &nodes, &names);
    let of_classes: String = classes.into_iter().filter_map(plot_of).take(MOST).collect();
    let spread = |class: &ClassReport| {
        ecdf_plot::of_class(*numbers.get(class.class.as_str())?, class.run_spread.as_ref()?)
    };
    let of_runs: String = report.classes.iter().filter_map(spread).take(MOST).collect();
    let nodes = report.nodes.iter();
    let nodes = nodes.filter_map(|node| Some((names.shown(&node.node).to_owned(), node.places.as_deref()?)));
    let runs = report.slow_runs.iter();
    let runs = runs
        .filter_map(|run| Some((where_slow::name_of_run(run, names.shown(&run.node)), run.places.as_ref()?)));
    of_classes + &of_runs + &places_plot::of(nodes) + &places_plot::of(runs)
}

/// A node looks the same in all pictures.
fn names_in_pictures(report: &Report) -> NodeNames {
    let nodes = report.nodes.iter().map(|node| node.node.as_str());
    let of_runs = report.slow_runs.iter().map(|run| run.node.as_str());
    NodeNames::within(LONGEST_NAME, nodes.chain(of_runs))
}

fn of_table(table: &Table) -> String {
    let side = |is_right: bool| if is_right { " class=\"number\"" } else { "" };
    let mut text: String =
        table.before.iter().map(|before| format!("<p>{}</p>\n", escaped(before))).collect();
    text += "<table>\n<thead><tr>";
    for column in &table.columns {
        text += &format!("<th scope=\"col\"{}>{}</th>", side(column.is_right), column.title);
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        text += "<tr>";
        for (value, column) in row.iter().zip(&table.columns) {
            text += &match value {
                Cell::Name(name) => format!("<td><code>{}</code></td>", escaped(name)),
                Cell::Text(text) | Cell::Words(text) => {
                    format!("<td{}>{}</td>", side(column.is_right), escaped(text))
                }
                Cell::Verdict(None) => "<td>-</td>".to_owned(),
                Cell::Verdict(Some(verdict)) => {
                    format!("<td class=\"{}\">{}</td>", style_of(*verdict), verdict.name())
                }
            };
        }
        text += "</tr>\n";
    }
    text += "</tbody>\n</table>\n";
    for after in table.more.iter().chain(&table.notes) {
        text += &format!("<p>{}</p>\n", escaped(after));
    }
    text
}

/// Explains the verdicts that occur.
fn meanings(report: &Report) -> String {
    let verdicts: BTreeSet<Verdict> =
        report.nodes.iter().filter_map(|node| node.among_peers().verdict).collect();
    let say = |verdict: &Verdict| {
        let meaning = answer::meaning(*verdict)?;
        Some(format!("<dt class=\"{}\">{}</dt><dd>{meaning}</dd>\n", style_of(*verdict), verdict.name()))
    };
    let all: String = verdicts.iter().rev().filter_map(say).collect();
    if all.is_empty() { all } else { format!("<dl>\n{all}</dl>\n") }
}

/// The verdict's CSS class.
fn style_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Fast => "fast",
        Verdict::Wrong => "wrong",
        Verdict::Unusual => "unusual",
        Verdict::Suspect => "suspect",
        Verdict::SlowTail => "slow-tail",
        Verdict::Slow => "slow",
    }
}

/// For text and attribute values.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // These are not characters, and XML forbids them.
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}
