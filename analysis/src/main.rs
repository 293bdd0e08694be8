//! `pmmpi-report`: does the work of `pmmpi report`, `export`, `compare`, `show`, `diff` and `bounds`, and reports on
//! the runs of `pmmpi screen`.

mod cli;
mod commands;

use clap::Parser;
use cli::failure::code;
use cli::inputs::reads_a_pipe;
use cli::options::{Command, ExitStyle, Options};
use cli::restart_after_crash::{crashed, supervise};
use cli::usage::usage;
use cli::{allocator, nagios};
use commands::bounds::bounds;
use commands::compare::compare;
use commands::export::export;
use commands::report::{ReportView, report};
use commands::show_and_diff::{diff, show};
use std::path::PathBuf;
use std::process::ExitCode;

/// The system's allocator would return the pages of large columns to the kernel each time they are freed.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    allocator::prepare();
    let options = Options::try_parse().unwrap_or_else(|e| usage(&e));
    ExitCode::from(match options.command {
        Command::Report(options) => {
            let done = |decoding| {
                let done = report(&options, decoding, ReportView::Report);
                match (done, options.exit) {
                    (Err(failure), ExitStyle::Nagios) => nagios::unknown(&failure.message),
                    (done, _) => code(done),
                }
            };
            let give_up = match options.exit {
                ExitStyle::Nagios => nagios::unknown,
                ExitStyle::Plain => crashed,
            };
            supervise(reads_a_pipe(&options.paths), done, give_up)
        }
        Command::Screen(options) => {
            let done = |decoding| code(report(&options.report, decoding, ReportView::Screen(&options)));
            supervise(reads_a_pipe(&options.report.paths), done, crashed)
        }
        Command::Export(options) => {
            supervise(reads_a_pipe(&options.paths), |decoding| code(export(&options, decoding)), crashed)
        }
        Command::Compare(options) => {
            let sides = [&options.a, &options.b].map(PathBuf::from);
            let paths: Vec<PathBuf> = sides.into_iter().chain(options.of.iter().cloned()).collect();
            supervise(reads_a_pipe(&paths), |decoding| code(compare(&options, decoding)), crashed)
        }
        Command::Show(options) => code(show(&options)),
        Command::Diff(options) => code(diff(&options)),
        Command::Bounds(options) => code(bounds(&options)),
    })
}
