//! What finds a node slow or wrong: a kernel with its options, or the user's program with its arguments. A gate shows that
//! the node is repaired only if it ran the same, on as much of the node, and on nodes that were as warm.

use pmmpi::text::{count, shell_line};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A kernel with its options, or the user's program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The name of the kernel, or the absolute path of the program.
    pub kernel: String,
    /// The options of `pmmpi screen` that change what this kernel measures, for example `--memory 85%`, or the arguments
    /// of the program.
    #[serde(default)]
    pub options: Vec<String>,
    /// True for the user's program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
    /// Hardware threads of the node that the kernel used; 0 if that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads: usize,
    /// Ranks of the user's program on the node; 0 if that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ranks: usize,
    /// For so long at least, the nodes were warmed up (`--soak`, in seconds).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak_s: u64,
    /// All kernels of this warm-up: some make a node hotter than others.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub soaked: BTreeSet<String>,
}

/// The kernel whose option is a folder.
const DISK: &str = "disk";

impl Measurement {
    /// True if nodes that pass `gate` are repaired, if this measurement found them slow or wrong.
    pub(crate) fn is_repeated_by(&self, gate: &Self) -> bool {
        let is_same =
            self.kernel == gate.kernel && self.is_program == gate.is_program && self.options == gate.options;
        // One of the cores may be faulty. Several ranks share the caches and the memory of the node.
        let is_on_as_much = self.threads <= gate.threads && (self.ranks == 0 || self.ranks == gate.ranks);
        // Some faults appear only on hot nodes.
        let is_as_warm = self.soak_s == 0 || (self.soak_s <= gate.soak_s && self.soaked == gate.soaked);
        is_same && is_on_as_much && is_as_warm
    }

    /// The options with which `pmmpi screen` measures this, as a shell reads them, and what else it needs, in words.
    pub(crate) fn needed(&self) -> String {
        let mut needed = format!("`{}`", self.as_options());
        if self.threads > 0 {
            needed += &format!(" on at least {} of the node", count(self.threads, "hardware thread"));
        }
        if self.ranks > 0 {
            needed += &format!(" with {} per node", count(self.ranks, "rank"));
        }
        if self.kernel == DISK && !self.is_program {
            needed += " (with exactly this folder; for later screens, choose a folder that has the same name in each job)";
        }
        needed
    }

    fn as_options(&self) -> String {
        let kernels = if self.soaked.is_empty() { self.kernel.clone() } else { self.soaked_kernels() };
        let time = format!("{}s", self.soak_s);
        let mut words: Vec<&str> = if self.is_program { Vec::new() } else { vec!["--kernels", &kernels] };
        let options = self.options.iter().map(String::as_str);
        let soak = ["--soak", &time].into_iter().filter(|_| self.soak_s > 0);
        if self.is_program {
            words.extend(soak.chain(["--", &self.kernel]).chain(options));
        } else {
            words.extend(options.chain(soak));
        }
        shell_line(words)
    }

    fn soaked_kernels(&self) -> String {
        let names: Vec<&str> = self.soaked.iter().map(String::as_str).collect();
        names.join(",")
    }
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kernel: &str, options: &[&str]) -> Measurement {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Measurement { kernel: kernel.to_owned(), options, ..Measurement::default() }
    }

    fn program(path: &str, arguments: &[&str]) -> Measurement {
        Measurement { is_program: true, ..of(path, arguments) }
    }

    fn hot(of: Measurement, soak_s: u64, soaked: &[&str]) -> Measurement {
        Measurement { soak_s, soaked: soaked.iter().map(|kernel| (*kernel).to_owned()).collect(), ..of }
    }

    #[test]
    fn a_user_can_type_the_options() {
        let triad = || of("triad", &["--memory", "85%"]);
        assert_eq!(of("fma", &[]).needed(), "`--kernels fma`");
        assert_eq!(triad().needed(), "`--kernels triad --memory 85%`");
        assert_eq!(program("/opt/solver", &["a case", "-n"]).needed(), "`-- /opt/solver 'a case' -n`");
        let soaked = hot(triad(), 1200, &["fma", "triad"]).needed();
        assert_eq!(soaked, "`--kernels fma,triad --memory 85% --soak 1200s`");
        let soaked = hot(program("solver", &["-n"]), 1200, &["solver"]);
        assert_eq!(soaked.needed(), "`--soak 1200s -- solver -n`");
        let on_64 = Measurement { threads: 64, ..of("fma", &[]) };
        assert_eq!(on_64.needed(), "`--kernels fma` on at least 64 hardware threads of the node");
        let of_2 = Measurement { ranks: 2, ..program("solver", &[]) };
        assert_eq!(of_2.needed(), "`-- solver` with 2 ranks per node");
        let disk = of("disk", &["--disk", "/local"]).needed();
        assert!(disk.starts_with("`--kernels disk --disk /local` (with exactly this folder; "), "{disk}");
    }

    #[test]
    fn a_gate_measures_the_same_on_nodes_that_are_as_warm() {
        let fma = |soak_s, soaked: &[&str]| hot(of("fma", &[]), soak_s, soaked);
        let cold = || fma(0, &[]);
        for (found, gate, is_repeated) in [
            (cold(), cold(), true),
            (fma(1200, &["fma"]), fma(1199, &["fma"]), false),
            (fma(1200, &["fma"]), fma(1200, &["fma"]), true),
            (fma(1200, &["fma"]), cold(), false),
            (cold(), fma(1200, &["fma"]), true),
            // The cores of this gate are cool for most of the time.
            (fma(1200, &["fma"]), fma(1200, &["disk", "fma", "net"]), false),
            (fma(1200, &["fma", "triad"]), fma(1200, &["triad", "fma"]), true),
        ] {
            assert_eq!(found.is_repeated_by(&gate), is_repeated, "{found:?} {gate:?}");
        }
    }

    #[test]
    fn a_gate_uses_as_much_of_the_node() {
        let threads = |threads| Measurement { threads, ..of("fma", &[]) };
        let ranks = |ranks| Measurement { ranks, ..program("solver", &[]) };
        for (found, gate, is_repeated) in [
            (threads(64), threads(64), true),
            (threads(64), threads(2), false),
            (threads(2), threads(64), true),
            (threads(64), threads(0), false),
            (threads(0), threads(2), true),
            (ranks(64), ranks(64), true),
            (ranks(64), ranks(1), false),
            (ranks(1), ranks(64), false),
            // The nodes of the gate had different numbers of ranks.
            (ranks(64), ranks(0), false),
            (ranks(0), ranks(1), true),
        ] {
            assert_eq!(found.is_repeated_by(&gate), is_repeated, "{found:?} {gate:?}");
        }
    }

    #[test]
    fn programs_have_paths_and_the_folder_of_disk_counts() {
        let disk = |folder| of("disk", &["--disk", folder]);
        assert!(disk("/local").is_repeated_by(&disk("/local")));
        assert!(!disk("/local").is_repeated_by(&disk("/dev/shm")));
        assert!(!program("/a/dgemm", &[]).is_repeated_by(&program("/b/dgemm", &[])));
        assert!(!program("dgemm", &[]).is_repeated_by(&of("dgemm", &[])));
        assert!(program("/a/dgemm", &["4"]).is_repeated_by(&program("/a/dgemm", &["4"])));
    }

    #[test]
    fn a_log_of_before_has_a_cold_measurement() {
        let read: Measurement = serde_json::from_str(r#"{"kernel": "fma", "options": []}"#).unwrap();
        assert_eq!(read, of("fma", &[]));
        let written = serde_json::to_value(Measurement { threads: 8, ..hot(read, 60, &["fma"]) }).unwrap();
        let all = serde_json::json!({
            "kernel": "fma", "options": [], "threads": 8, "soak_s": 60, "soaked": ["fma"]
        });
        assert_eq!(written, all);
    }
}
