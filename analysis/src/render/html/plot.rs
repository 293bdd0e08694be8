//! A plot of a class: how many nodes are slower than its median by how much, and which nodes are not OK.

use super::{escaped, style_of};
use crate::render::cells::percent;
use crate::render::node_names::NodeNames;
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::NodeReport;
use pmmpi::text::count;

/// Width of the picture, in its own units.
const WIDTH: f64 = 760.0;
/// Height of the columns alone.
const HEIGHT: f64 = 90.0;
/// Space left and right of the columns.
const MARGIN: f64 = 20.0;
const COLUMNS: usize = 90;
/// One node among thousands must stay visible.
const LEAST_HEIGHT: f64 = 4.0;
/// The number of slowest nodes that are not OK and get a label; each label has its own line.
const NAMED: usize = 5;
const LINE: f64 = 16.0;
/// A smaller class is easier to read in the table.
const LEAST_NODES: usize = 3;

/// A node that was compared with its class.
struct Point<'a> {
    node: &'a NodeReport,
    slowdown: f64,
    verdict: Verdict,
}

impl<'a> Point<'a> {
    fn of(node: &'a NodeReport) -> Option<Self> {
        let slowdown = node.slowdown.filter(|slowdown| slowdown.is_finite())?;
        Some(Self { node, slowdown, verdict: node.verdict? })
    }
}

/// The plot; `None` if there are too few nodes. `nodes` begins with the slowest; `names` has the names for labels.
pub fn of_class(number: usize, nodes: &[&NodeReport], names: &NodeNames) -> Option<String> {
    let points: Vec<Point> = nodes.iter().filter_map(|node| Point::of(node)).collect();
    if points.len() < LEAST_NODES {
        return None;
    }
    let least = points.iter().map(|point| point.slowdown).fold(0.0, f64::min);
    let most = points.iter().map(|point| point.slowdown).fold(0.0, f64::max);
    // Halves, because the difference of the two largest numbers would be infinite.
    let part = |slowdown: f64| (slowdown / 2.0 - least / 2.0) / (most / 2.0 - least / 2.0).max(1e-6);
    let column = |point: &Point| ((part(point.slowdown) * COLUMNS as f64) as usize).min(COLUMNS - 1);
    let left = |column: usize| MARGIN + (WIDTH - 2.0 * MARGIN) * column as f64 / COLUMNS as f64;
    let wide = left(1) - left(0);
    let named: Vec<&Point> = points.iter().filter(|point| point.verdict != Verdict::Ok).take(NAMED).collect();
    let top = LINE * named.len() as f64 + LINE / 2.0;
    let bottom = top + HEIGHT;
    let mut body = String::new();
    for (line, point) in named.iter().enumerate() {
        let name = names.shown(&point.node.node);
        body += &label(point, name, left(column(point)) + wide / 2.0, LINE * (line + 1) as f64, bottom);
    }
    let mut stacks: Vec<Vec<Verdict>> = vec![Vec::new(); COLUMNS];
    points.iter().for_each(|point| stacks[column(point)].push(point.verdict));
    let tallest = stacks.iter().map(Vec::len).max().unwrap_or(1) as f64;
    for (at, stack) in stacks.iter_mut().enumerate() {
        stack.sort_unstable();
        let mut above = bottom;
        for equal in stack.chunk_by(|a, b| a == b) {
            let high = (HEIGHT * equal.len() as f64 / tallest).max(LEAST_HEIGHT);
            above -= high;
            body += &format!(
                "<rect class=\"{}\" x=\"{:.1}\" y=\"{above:.1}\" width=\"{:.1}\" height=\"{high:.1}\"/>\n",
                style_of(equal[0]),
                left(at) + 0.5,
                wide - 1.0
            );
        }
    }
    body += &axis(MARGIN + part(0.0) * (WIDTH - 2.0 * MARGIN), bottom, [least, most]);
    let title = format!(
        "Class {number}: slowdown of {}, each relative to the median of the other nodes",
        count(points.len(), "node")
    );
    Some(format!(
        "<figure>\n<figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title>\n{body}</svg>\n</figure>\n",
        bottom + 2.0 * LINE
    ))
}

/// A name with a line down to its column, on the side that has more room.
fn label(point: &Point, name: &str, x: f64, y: f64, bottom: f64) -> String {
    let (anchor, beside) = if x > WIDTH / 2.0 { ("end", -4.0) } else { ("start", 4.0) };
    let slower = percent(point.slowdown, 1);
    format!(
        "<line class=\"leader\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\n\
         <text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{} {slower} {}</text>\n",
        y - LINE / 2.0,
        x + beside,
        escaped(name),
        point.verdict.name()
    )
}

/// The axis with the median of the class and its two ends.
fn axis(median: f64, bottom: f64, [least, most]: [f64; 2]) -> String {
    let below = bottom + LINE;
    let end = |x: f64, anchor: &str, slowdown: f64| match slowdown {
        0.0 => String::new(),
        _ => format!(
            "<text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            percent(slowdown, 1)
        ),
    };
    // The median's label is below the labels of the ends, because it may be close to either.
    let of_median = below + LINE * 0.8;
    format!(
        "<line class=\"axis\" x1=\"{MARGIN}\" y1=\"{bottom:.1}\" x2=\"{:.1}\" y2=\"{bottom:.1}\"/>\n\
         <line class=\"axis\" x1=\"{median:.1}\" y1=\"{bottom:.1}\" x2=\"{median:.1}\" y2=\"{:.1}\"/>\n\
         {}{}<text x=\"{median:.1}\" y=\"{of_median:.1}\" text-anchor=\"middle\">median</text>\n",
        WIDTH - MARGIN,
        bottom + 4.0,
        end(MARGIN, "start", least),
        end(WIDTH - MARGIN, "end", most),
    )
}
