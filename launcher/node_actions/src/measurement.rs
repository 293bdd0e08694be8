//! What finds a node slow or wrong: a kernel with its options, or the user's program with its arguments. A gate shows that
//! the node is repaired only if it ran the same, on nodes that were as warm.

use pmmpi::text::shell_line;
use serde::{Deserialize, Serialize};

/// A kernel with its options, or the user's program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The name of the kernel, or the program as the user typed it.
    pub kernel: String,
    /// The options of `pmmpi screen` that change what this kernel measures, for example `--memory 85%`, or the arguments
    /// of the program.
    #[serde(default)]
    pub options: Vec<String>,
    /// True for the user's program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
    /// True if the kernel used only the cores to which its rank was bound (`--cores rank`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_on_cores_of_rank: bool,
    /// For so long at least, the nodes were warmed up (`--soak`, in seconds).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak_s: u64,
}

/// The kernel whose only option is a folder. The folder often has the number of a job in its name.
const DISK: &str = "disk";

impl Measurement {
    /// True if nodes that pass `gate` are repaired, if this measurement found them slow or wrong.
    pub(crate) fn is_repeated_by(&self, gate: &Self) -> bool {
        let what = |of: &Self| (of.kernel.clone(), of.is_program, of.is_on_cores_of_rank);
        let is_disk = self.kernel == DISK && !self.is_program;
        let is_same = what(self) == what(gate) && (is_disk || self.options == gate.options);
        // Some faults appear only on hot nodes.
        is_same && self.soak_s <= gate.soak_s
    }

    /// The options with which `pmmpi screen` measures this, as a shell reads them.
    pub(crate) fn of_screen(&self) -> String {
        let soak = format!("{}s", self.soak_s);
        let mut others: Vec<&str> = Vec::new();
        if self.is_on_cores_of_rank {
            others.extend(["--cores", "rank"]);
        }
        if self.soak_s > 0 {
            others.extend(["--soak", soak.as_str()]);
        }
        let (kernel, options) = (self.kernel.as_str(), self.options.iter().map(String::as_str));
        match self.is_program {
            true => shell_line(others.into_iter().chain(["--", kernel]).chain(options)),
            false => shell_line(["--kernels", kernel].into_iter().chain(options).chain(others)),
        }
    }
}

fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_can_type_the_options() {
        let of = |kernel: &str, options: &[&str], is_program| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            Measurement { kernel: kernel.to_owned(), options, is_program, ..Measurement::default() }
        };
        let typed = |kernel: &str, options: &[&str], is_program| of(kernel, options, is_program).of_screen();
        assert_eq!(typed("fma", &[], false), "--kernels fma");
        assert_eq!(typed("triad", &["--memory", "85%"], false), "--kernels triad --memory 85%");
        assert_eq!(typed("/opt/solver", &["a case", "-n"], true), "-- /opt/solver 'a case' -n");
        let hot = |of: Measurement| Measurement { is_on_cores_of_rank: !of.is_program, soak_s: 1200, ..of };
        let triad = hot(of("triad", &["--memory", "85%"], false)).of_screen();
        assert_eq!(triad, "--kernels triad --memory 85% --cores rank --soak 1200s");
        assert_eq!(hot(of("solver", &["-n"], true)).of_screen(), "--soak 1200s -- solver -n");
    }

    #[test]
    fn a_gate_measures_the_same_on_nodes_that_are_as_warm() {
        let fma = || Measurement { kernel: "fma".to_owned(), ..Measurement::default() };
        let of_rank = || Measurement { is_on_cores_of_rank: true, ..fma() };
        let hot = |soak_s| Measurement { soak_s, ..fma() };
        for (found, gate, is_repeated) in [
            (fma(), fma(), true),
            (hot(1200), hot(1199), false),
            (hot(1200), hot(1200), true),
            (hot(1200), fma(), false),
            (fma(), hot(1200), true),
            (of_rank(), fma(), false),
            (fma(), of_rank(), false),
            (of_rank(), of_rank(), true),
        ] {
            assert_eq!(found.is_repeated_by(&gate), is_repeated, "{found:?} {gate:?}");
        }
    }

    #[test]
    fn programs_have_paths_and_the_folder_of_disk_may_differ() {
        let of = |kernel: &str, options: &[&str], is_program| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            Measurement { kernel: kernel.to_owned(), options, is_program, ..Measurement::default() }
        };
        let disk = |folder, is_program| of("disk", &["--disk", folder], is_program);
        assert!(disk("/scratch/1", false).is_repeated_by(&disk("/scratch/2", false)));
        assert!(!disk("/scratch/1", true).is_repeated_by(&disk("/scratch/2", true)));
        assert!(!disk("/scratch/1", false).is_repeated_by(&of("triad", &[], false)));
        assert!(!of("/a/dgemm", &[], true).is_repeated_by(&of("/b/dgemm", &[], true)));
        assert!(of("/a/dgemm", &["4"], true).is_repeated_by(&of("/a/dgemm", &["4"], true)));
    }

    #[test]
    fn a_log_of_before_has_a_cold_measurement() {
        let read: Measurement = serde_json::from_str(r#"{"kernel": "fma", "options": []}"#).unwrap();
        assert_eq!(read, Measurement { kernel: "fma".to_owned(), ..Measurement::default() });
        let written = serde_json::to_value(Measurement { soak_s: 60, ..read }).unwrap();
        assert_eq!(written, serde_json::json!({"kernel": "fma", "options": [], "soak_s": 60}));
    }
}
