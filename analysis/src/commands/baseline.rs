//! `--against`: the baseline of a screen.

use crate::cli::failure::Failure;
use crate::cli::inputs::reads_a_pipe;
use pmmpi::record::Run;
use pmmpi_analysis::comparison::with_baseline;
use pmmpi_analysis::input::importers::ImportOptions;
use pmmpi_analysis::input::{self, Input, input_warnings};
use pmmpi_analysis::render::one_line;
use pmmpi_analysis::report::against_baseline::AgainstBaseline;
use pmmpi_analysis::report::run::RunReport;
use pmmpi_analysis::table::selection::RunSelection;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_events::validation::Trust;
use std::path::PathBuf;

/// The runs of the baseline. pmmpi only reads it.
pub struct Baseline {
    paths: Vec<String>,
    input: Input<()>,
}

impl Baseline {
    /// Reads all of `paths`; `None` if there are none. If a part of the baseline cannot be used, a change could be due to
    /// what is missing.
    pub fn read(paths: &[PathBuf], from: &ImportOptions, trust: &Trust) -> Result<Option<Self>, Failure> {
        if paths.is_empty() {
            return Ok(None);
        }
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let unusable = |why: &str| unusable(&named, why);
        if reads_a_pipe(paths) {
            return Err(unusable("A baseline cannot be a pipe: name files or folders"));
        }
        // The user selects runs of the screen. The baseline has a path of its own.
        let from = ImportOptions {
            selection: RunSelection::default(),
            screen: None,
            with_medians: false,
            path: None,
            node: None,
            metric: None,
            progress: Default::default(),
            ..from.clone()
        };
        let input = input::read(paths, &from, trust, |_: &Run| ());
        if input.is_partial() || input.is_empty() {
            let all = input.warnings.iter().cloned().chain(input_warnings::of_results(&input.results));
            let all = all.map(|warning| format!("{warning}\n       {}", warning.code().advice()));
            return Err(unusable(&all.collect::<Vec<_>>().join("\n       ")));
        }
        if !with_baseline::has_screen(&input) {
            return Err(unusable(
                "The baseline has no run of pmmpi screen with a time. Name the run files or the archive of \
                 pmmpi screen",
            ));
        }
        Ok(Some(Self { paths: named, input }))
    }

    /// Refuses a baseline without a time of any of these commands of a new screen, because nothing could be compared.
    pub fn check_works(&self, works: &[String]) -> Result<(), Failure> {
        if works.is_empty() || with_baseline::has_any(&self.input, works) {
            return Ok(());
        }
        let names: Vec<String> = works.iter().map(|work| name(work)).collect();
        Err(unusable(
            &self.paths,
            &format!(
                "The baseline has no time of {} that was measured with the options and the ranks per node of this \
                 screen. Start the screen with the kernels and options of the baseline, or name another baseline",
                names.join(", ")
            ),
        ))
    }

    /// The latest screen in `input`, next to this baseline. `from` is how `input` was read.
    pub fn next_to(
        &self,
        input: &Input<RunReport>,
        from: &ImportOptions,
        settings: &JudgeSettings,
    ) -> AgainstBaseline {
        AgainstBaseline {
            baseline: self.paths.clone(),
            kernels: with_baseline::of_latest_screen(input, &self.input, &from.class_by, settings),
        }
    }
}

fn unusable(paths: &[String], why: &str) -> Failure {
    Failure::usage(format!("--against {}: pmmpi cannot use this baseline\n       {why}", paths.join(", ")))
}

/// The kernel of a command, or the command of the user's program, which may be long.
fn name(work: &str) -> String {
    const MOST: usize = 200;
    let of_kernel = work.strip_prefix("pmmpi screen-kernel ");
    let name = of_kernel.map_or(work, |words| words.split(' ').next().unwrap_or(words));
    let more = if name.chars().count() > MOST { " ..." } else { "" };
    one_line(&name.chars().take(MOST).collect::<String>()) + more
}
