//! A picture of slow runs and slow nodes: the measure behind the cause at each core, socket or rank, as a multiple of what is
//! usual there.

use super::{escaped, style_of};
use crate::render::where_slow::in_words;
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::slow_places::{PlaceOfRun, SlowPlaces};

/// Width of the picture, in its own units.
const WIDTH: f64 = 760.0;
const MARGIN: f64 = 20.0;
/// Height of the columns of one run.
const HEIGHT: f64 = 40.0;
const LINE: f64 = 16.0;
/// Space between sockets, in columns.
const GAP: f64 = 1.0;
/// The table has the others.
const MOST: usize = 8;

/// One picture of several slow runs or nodes, each with its name; empty without places. The first ones are shown.
pub fn of<'a>(slow: impl Iterator<Item = (String, &'a SlowPlaces)>) -> String {
    let slow: Vec<(String, &SlowPlaces)> = slow.filter(|(_, places)| places.all.len() > 1).collect();
    let shown = &slow[..slow.len().min(MOST)];
    if shown.is_empty() {
        return String::new();
    }
    let more =
        if slow.len() > MOST { format!(" (the first {MOST} of {})", slow.len()) } else { String::new() };
    let title =
        format!("Slow places: the value of each place, divided by the usual value of this place{more}");
    let high = HEIGHT + 2.5 * LINE;
    let rows: String =
        shown.iter().enumerate().map(|(at, (name, places))| of_one(name, places, at as f64 * high)).collect();
    format!(
        "<figure>\n<figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title>\n{rows}</svg>\n</figure>\n",
        high * shown.len() as f64
    )
}

/// The columns of one run. A line marks what is usual.
fn of_one(name: &str, places: &SlowPlaces, top: f64) -> String {
    let bottom = top + LINE + HEIGHT;
    let most =
        places.all.iter().map(|place| place.ratio).filter(|ratio| ratio.is_finite()).fold(1.0, f64::max);
    let gaps = places.all.windows(2).filter(|pair| pair[0].socket != pair[1].socket).count();
    let wide = (WIDTH - 2.0 * MARGIN) / (places.all.len() as f64 + GAP * gaps as f64);
    let (what, _) = in_words(places.measure);
    let least = places.places.iter().map(|place| place.ratio).fold(f64::INFINITY, f64::min);
    let far = if least < 1.0 { format!("down to {least:.2}") } else { format!("up to {most:.2}") };
    let mut text = format!(
        "<text x=\"{MARGIN}\" y=\"{:.1}\">{}: {what}, {far} times the usual value</text>\n",
        top + LINE * 0.8,
        escaped(name)
    );
    let mut left = MARGIN;
    for (at, place) in places.all.iter().enumerate() {
        if at > 0 && places.all[at - 1].socket != place.socket {
            left += GAP * wide;
        }
        let is_slow = places.places.iter().any(|slow| is_same(slow, place));
        let style = style_of(if is_slow { Verdict::Slow } else { Verdict::Ok });
        let ratio = if place.ratio.is_finite() { place.ratio } else { 0.0 };
        let high = (HEIGHT * ratio / most).max(1.0);
        text += &format!(
            "<rect class=\"{style}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{high:.1}\"><title>{}: \
             {ratio:.2}</title></rect>\n",
            left + wide * 0.1,
            bottom - high,
            wide * 0.8,
            place_name(place)
        );
        left += wide;
    }
    let usual = bottom - HEIGHT / most;
    text += &format!(
        "<line class=\"axis\" x1=\"{MARGIN}\" y1=\"{usual:.1}\" x2=\"{:.1}\" y2=\"{usual:.1}\"/>\n\
         <text x=\"{MARGIN}\" y=\"{:.1}\">{} to {}; the line is the usual value</text>\n",
        WIDTH - MARGIN,
        bottom + LINE,
        places.all.first().map(place_name).unwrap_or_default(),
        places.all.last().map(place_name).unwrap_or_default(),
    );
    text
}

fn is_same(a: &PlaceOfRun, b: &PlaceOfRun) -> bool {
    (a.socket, a.core, a.rank) == (b.socket, b.core, b.rank)
}

fn place_name(place: &PlaceOfRun) -> String {
    match (place.rank, place.core, place.socket) {
        (Some(rank), ..) => format!("rank {rank}"),
        (_, Some(core), Some(socket)) => format!("core {core} of socket {socket}"),
        (_, Some(core), None) => format!("core {core}"),
        (_, None, Some(socket)) => format!("socket {socket}"),
        _ => "unknown place".to_owned(),
    }
}
