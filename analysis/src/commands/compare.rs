//! `pmmpi compare`.

use crate::cli::compare_status;
use crate::cli::exit_statuses::PARTIAL;
use crate::cli::failure::Failure;
use crate::cli::inputs::{fraction, nothing, paths, reading};
use crate::cli::options::{CompareArgs, CompareFormat};
use crate::cli::outputs::{for_place, json, named, write};
use pmmpi_analysis::comparison::selector::Selector;
use pmmpi_analysis::comparison::{Comparison, Inputs};
use pmmpi_analysis::input::Input;
use pmmpi_analysis::input::importers::{self, Decoding};
use pmmpi_analysis::render::{comparison, sentences};
use pmmpi_analysis::report;
use pmmpi_analysis::report::run::Details;
use pmmpi_analysis::stats::two_sets::CompareSettings;
use pmmpi_analysis::table::node_class::{ClassBy, Key};
use pmmpi_events::validation::{self, Trust};

/// Compares two sets of runs.
pub fn compare(options: &CompareArgs, decoding: Decoding) -> Result<u8, Failure> {
    let names = [options.a.as_str(), options.b.as_str()];
    let selector = |name: &str| name.parse::<Selector>().map_err(|e| Failure::usage(format!("{name}: {e}")));
    let selectors = [selector(names[0])?, selector(names[1])?];
    let labels = selectors.iter().filter_map(|selector| match selector {
        Selector::Label(key, _) => Some(Key::Named(key.clone())),
        _ => None,
    });
    let by = labels.fold(options.class_by.clone().unwrap_or_default(), ClassBy::and);
    let q = fraction("fdr", options.fdr, 50.0)?;
    let from = importers::ImportOptions {
        keep_parts: true,
        ..reading(&options.of_others, &options.select, Some(by.clone()), decoding)
    };
    let trust = validation::folder().map(|folder| Trust::read(&folder)).unwrap_or_default();
    let read = |selector: &Selector| -> Result<Input<_>, Failure> {
        let paths = match selector {
            Selector::Path(path) => vec![path.clone()],
            _ => paths("compare", &options.of)?,
        };
        let input = report::read(&paths, &from, &trust, Details::Shown);
        if input.is_empty() { Err(nothing("compare", &input, &options.select)) } else { Ok(input) }
    };
    let inputs = match selectors.iter().all(Selector::is_part) {
        true => Inputs(vec![read(&selectors[0])?]),
        false => Inputs(vec![read(&selectors[0])?, read(&selectors[1])?]),
    };
    let settings = CompareSettings { q, ..CompareSettings::default() };
    let [a, b] = &selectors;
    let mut warnings = inputs.warnings();
    sentences::sort_warnings(&mut warnings);
    warnings.dedup_by_key(|warning| (warning.code(), warning.to_string()));
    let compared =
        Comparison::new(&inputs, warnings, names, [a, b], &by, &settings).map_err(Failure::usage)?;
    let rendered = match options.format {
        CompareFormat::Text => for_place(comparison::text(&compared, options.top), named(&options.output)),
        CompareFormat::Json => json(&compared)?,
        CompareFormat::Csv => comparison::csv(&compared).map_err(|e| Failure {
            code: PARTIAL,
            message: format!("pmmpi cannot write the comparison as CSV: {e}"),
        })?,
        CompareFormat::Md => comparison::markdown(&compared, options.top),
    };
    write(&rendered, named(&options.output))?;
    Ok(compare_status::of(&compared, &options.fail_on, inputs.is_partial()))
}
