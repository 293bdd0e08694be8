//! What finds a node slow or wrong: a kernel with its options, or the user's program with its arguments. A gate shows that
//! the node is repaired only if it ran the same.

use pmmpi::text::shell_line;
use serde::{Deserialize, Serialize};

/// A kernel with its options, or the user's program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The name of the kernel, or the file name of the program.
    pub kernel: String,
    /// The options of `pmmpi screen` that change what this kernel measures, for example `--memory 85%`, or the arguments
    /// of the program.
    #[serde(default)]
    pub options: Vec<String>,
    /// True for the user's program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
}

impl Measurement {
    /// The options with which `pmmpi screen` measures this, as a shell reads them.
    pub(crate) fn of_screen(&self) -> String {
        let begin = if self.is_program { "--" } else { "--kernels" };
        let options = self.options.iter().map(String::as_str);
        shell_line([begin, self.kernel.as_str()].into_iter().chain(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_can_type_the_options() {
        let of = |kernel: &str, options: &[&str], is_program| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            Measurement { kernel: kernel.to_owned(), options, is_program }.of_screen()
        };
        assert_eq!(of("fma", &[], false), "--kernels fma");
        assert_eq!(of("triad", &["--memory", "85%"], false), "--kernels triad --memory 85%");
        assert_eq!(of("solver", &["a case", "-n"], true), "-- solver 'a case' -n");
    }
}
