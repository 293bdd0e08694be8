//! Shows the result of `pmmpi bounds`.

use super::line;
use crate::stamps_csv::{Stamped, StampedBounds};
use pmmpi::bounds::NO_RATE_PPM;
use pmmpi::text::{count, seconds_between};

/// The bounds of each run or region in the stamps file, then rejected rows.
pub fn bounds(stamped: &Stamped, name: &str) -> String {
    let mut text = String::new();
    for job in &stamped.bounds {
        let title = [("run", &job.run), ("region", &job.region)];
        let title: Vec<_> =
            title.iter().filter_map(|(key, v)| v.as_ref().map(|v| format!("{key} {v}"))).collect();
        if !title.is_empty() {
            line(&mut text, &format!("{}:", title.join(", ")));
        }
        job_bounds(&mut text, job);
    }
    if stamped.rejected_rows > 0 {
        line(&mut text, "");
        line(
            &mut text,
            &format!(
                "warning: pmmpi left out {} of {name} [rejected-rows]",
                count(stamped.rejected_rows as usize, "row")
            ),
        );
        for row in &stamped.rejected {
            line(&mut text, &format!("         line {}: {}", row.line, row.reason));
        }
        let more = stamped.rejected_rows as usize - stamped.rejected.len();
        if more > 0 {
            line(&mut text, &format!("         ... and {more} more"));
        }
    }
    text
}

fn job_bounds(text: &mut String, job: &StampedBounds) {
    let elapsed = &job.elapsed;
    let places = format!("{} on {}", count(job.ranks as usize, "rank"), count(job.nodes, "node"));
    if elapsed.consistent {
        let (lower, upper) = seconds_between(elapsed.lower_ns, elapsed.upper_ns);
        line(text, &format!("elapsed between {lower} and {upper} s, {places}"));
    } else {
        line(text, &format!("elapsed unknown, {places}: the stamps contradict one another"));
    }
    let (longest, outer) = seconds_between(elapsed.rank_lower_ns, elapsed.rank_upper_ns);
    line(text, &format!("  longest t2 - t1 of a rank: {longest} s; shortest t3 - t0 of a rank: {outer} s"));
    let rate = elapsed.rho_min_ppm;
    if elapsed.consistent {
        line(
            text,
            &match rate >= 0.0005 {
                true => {
                    format!("  consistent: with clock rate errors of {rate:.3} ppm, the stamps fit together")
                }
                false => "  consistent: without any clock rate error, the stamps fit together".to_owned(),
            },
        );
        return;
    }
    let suspects = if job.suspects.is_empty() { "unknown".to_owned() } else { job.suspects.join(", ") };
    let why = match rate < NO_RATE_PPM {
        true => format!("only clock rate errors of at least {rate:.3} ppm explain the stamps"),
        false => "no clock rate errors explain the stamps".to_owned(),
    };
    line(text, &format!("  {why}; suspects: {suspects}"));
    line(
        text,
        "  a clock jumped, or a barrier let a rank through too early: check the time service of \
         the suspect nodes",
    );
}
