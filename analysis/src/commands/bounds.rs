//! `pmmpi bounds`.

use crate::cli::exit_statuses::PARTIAL;
use crate::cli::failure::{Failure, say};
use crate::cli::options::{BoundsArgs, BoundsFormat};
use crate::cli::outputs::{for_place, json, named, write};
use pmmpi::bounds::MaxDrift;
use pmmpi::text::count;
use pmmpi_analysis::input::importers::open_file;
use pmmpi_analysis::render::text;
use pmmpi_analysis::stamps_csv;
use std::io::{self, BufReader};

/// Computes bounds of the elapsed time from a CSV file of stamps.
pub fn bounds(options: &BoundsArgs) -> Result<u8, Failure> {
    let name = options.stamps.display().to_string();
    let drift = MaxDrift::from_ppm(options.max_drift_ppm)
        .ok_or_else(|| Failure::usage("--max-drift-ppm: expected a number from 0 to 100000"))?;
    let source: Box<dyn io::Read> = if name == "-" {
        Box::new(io::stdin())
    } else {
        let file = open_file::open(&options.stamps);
        let file = file.map_err(|e| Failure::usage(format!("{name}: cannot be read: {e}")))?;
        Box::new(BufReader::new(file))
    };
    let stamped = stamps_csv::read(source, drift).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let rendered = match options.format {
        BoundsFormat::Text => for_place(text::bounds(&stamped, &name), named(&options.output)),
        BoundsFormat::Json if stamped.several => json(&stamped.bounds)?,
        BoundsFormat::Json => json(&stamped.bounds[0])?,
    };
    write(&rendered, named(&options.output))?;
    for row in stamped.rejected.iter().filter(|_| options.format == BoundsFormat::Json) {
        say(&format!("line {} of {name} was left out: {}", row.line, row.reason));
    }
    let more = stamped.rejected_rows - stamped.rejected.len() as u64;
    if more > 0 && options.format == BoundsFormat::Json {
        let were = if more == 1 { "was" } else { "were" };
        say(&format!("{} of {name} {were} left out", count(more as usize, "more row")));
    }
    Ok(if stamped.rejected_rows > 0 { PARTIAL } else { 0 })
}
