//! A plot of the runs of a class: the share of runs that are slower than the fastest run by at most a given percentage.

use super::escaped;
use crate::render::cells::percent;
use crate::verdicts::class_report::RunSpread;
use pmmpi::text::count;

/// Width of the picture, in its own units.
const WIDTH: f64 = 760.0;
/// Height of the curve alone.
const HEIGHT: f64 = 120.0;
const MARGIN: f64 = 40.0;
const LINE: f64 = 16.0;
/// Parts of the runs that have a line of their own.
const PARTS: [(f64, &str); 3] = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %")];

/// The plot of the class with this number; `None` if all runs took the same time.
pub fn of_class(number: usize, spread: &RunSpread) -> Option<String> {
    let most = spread.ecdf.last().copied().filter(|most| *most > 0.0)?;
    let x = |slowdown: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * slowdown / most;
    let bottom = LINE + HEIGHT;
    let y = |share: f64| bottom - HEIGHT * share;
    let mut body = String::new();
    for (share, name) in PARTS {
        // The line of 99 % is at the top, where the name of 90 % is close: names alternate between the sides.
        let (at, anchor) = if share == 0.9 { (WIDTH - MARGIN + 4.0, "start") } else { (MARGIN - 4.0, "end") };
        body += &format!(
            "<line class=\"leader\" x1=\"{MARGIN}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\"/>\n\
             <text x=\"{at:.1}\" y=\"{2:.1}\" text-anchor=\"{anchor}\">{name}</text>\n",
            y(share),
            WIDTH - MARGIN,
            y(share) + 4.0,
        );
    }
    // Steps: a part of the runs is at most as slow as its slowest run.
    let last = spread.ecdf.len().saturating_sub(1).max(1) as f64;
    let mut path = format!("M{:.1} {:.1}", x(0.0), y(0.0));
    for (at, slowdown) in spread.ecdf.iter().enumerate() {
        path += &format!("H{:.1}V{:.1}", x(*slowdown), y(at as f64 / last));
    }
    body += &format!("<path class=\"curve\" d=\"{path}\"/>\n");
    let below = bottom + LINE;
    body += &format!(
        "<line class=\"axis\" x1=\"{MARGIN}\" y1=\"{bottom:.1}\" x2=\"{:.1}\" y2=\"{bottom:.1}\"/>\n\
         <text x=\"{MARGIN}\" y=\"{below:.1}\" text-anchor=\"start\">fastest run</text>\n\
         <text x=\"{:.1}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>\n",
        WIDTH - MARGIN,
        WIDTH - MARGIN,
        percent(most, 1),
    );
    let session = spread.session.as_deref().map(|name| format!(" of {}", escaped(name))).unwrap_or_default();
    let title = format!(
        "Class {number}, {}{session}. The horizontal axis shows how much slower a run is than the fastest \
         run; the vertical axis shows the share of the runs that are slower by at most this value.",
        count(spread.runs, "run")
    );
    Some(format!(
        "<figure>\n<figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title>\n{body}</svg>\n</figure>\n",
        bottom + 2.0 * LINE
    ))
}
