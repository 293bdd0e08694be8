//! Why a name is not an event on this machine, and the message for the user.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a name is not an event on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The text has a syntax error.
    Syntax {
        /// The part with the error.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// This machine does not know the name.
    Unknown {
        /// As it was typed, without modes.
        name: String,
        /// Similar names.
        like: Vec<String>,
        /// Why no vendor's names were looked up.
        vendor: Option<String>,
        /// Why no tracepoints were looked up.
        tracepoints: Option<String>,
    },
    /// There is no such PMU.
    UnknownPmu {
        /// As it was typed.
        name: String,
        /// Similar names.
        like: Vec<String>,
        /// All PMUs of this machine.
        pmus: Vec<String>,
    },
    /// The PMU has neither a field nor an event of this name.
    UnknownTerm {
        /// The PMU.
        pmu: String,
        /// As it was typed.
        term: String,
        /// Its fields.
        fields: Vec<String>,
        /// Similar names of its events.
        like: Vec<String>,
    },
    /// A term with an impossible value.
    Term {
        /// The PMU.
        pmu: String,
        /// As it was typed.
        term: String,
        /// What is wrong.
        problem: String,
    },
    /// PMUs of different kinds have an event of this name.
    Ambiguous {
        /// As it was typed.
        name: String,
        /// Those PMUs.
        pmus: Vec<String>,
    },
    /// The event cannot be counted in the requested modes.
    Modes {
        /// As it was typed.
        event: String,
        /// Why.
        problem: &'static str,
    },
    /// Its PMU names no hardware thread to count on.
    Nowhere {
        /// As it was typed.
        event: String,
    },
    /// The event cannot be counted in the requested scope.
    Scope {
        /// Its name.
        event: String,
        /// The scope in which it can be counted.
        instead: &'static str,
    },
    /// Events in braces that no kernel can count at the same instants.
    Apart {
        /// One of the events.
        one: String,
        /// An event of another PMU.
        other: String,
    },
    /// A vendor's tables have the event, but refuse this form of it.
    Vendor {
        /// As it was typed.
        name: String,
        /// The reason that they give.
        why: String,
    },
    /// A file of the kernel does not have the expected content.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
}

impl NameError {
    pub(super) fn syntax(text: &str, problem: &str) -> Self {
        Self::Syntax { text: text.to_owned(), problem: problem.to_owned() }
    }

    pub(super) fn unreadable(file: &Path, expected: &'static str) -> Self {
        Self::Unreadable { file: file.to_owned(), expected }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let maybe = |like: &[String]| match like {
            [] => String::new(),
            like => format!("; did you mean {}?", like.join(" or ")),
        };
        match self {
            Self::Syntax { text, problem } => write!(f, "events `{text}`: {problem}"),
            Self::Unknown { name, like, vendor, tracepoints } => {
                write!(
                    f,
                    "unknown event {name}{} `pmmpi list events` shows all events except tracepoints",
                    maybe_end(&maybe(like))
                )?;
                for (what, why) in [("event names of vendors", vendor), ("tracepoints", tracepoints)] {
                    if let Some(why) = why {
                        write!(f, " (pmmpi did not look up {what}: {why})")?;
                    }
                }
                Ok(())
            }
            Self::UnknownPmu { name, like, pmus } => {
                let here = if pmus.is_empty() { "none".to_owned() } else { pmus.join(", ") };
                write!(f, "unknown PMU {name}{} PMUs of this machine: {here}", maybe_end(&maybe(like)))
            }
            Self::UnknownTerm { pmu, term, fields, like } => {
                let fields = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
                let like = maybe_end(&maybe(like));
                write!(f, "the PMU {pmu} has no event or field {term}{like} Fields of {pmu}: {fields}")
            }
            Self::Term { pmu, term, problem } => write!(f, "{pmu}/{term}/: {problem}"),
            Self::Ambiguous { name, pmus } => {
                let ways: Vec<String> = pmus.iter().map(|pmu| format!("{pmu}/{name}/")).collect();
                write!(f, "event {name} is ambiguous: write {}", ways.join(" or "))
            }
            Self::Modes { event, problem } => {
                write!(
                    f,
                    "pmmpi cannot count {event} in this mode, because {problem}. Leave out u, k or uk at the \
                     end"
                )
            }
            Self::Nowhere { event } => {
                write!(
                    f,
                    "pmmpi cannot count {event}: the PMU names no hardware thread (its file cpus or \
                     cpumask is empty)"
                )
            }
            Self::Scope { event, instead } => {
                write!(f, "pmmpi can count {event} only with --scope {instead}")
            }
            Self::Apart { one, other } => {
                write!(
                    f,
                    "{{{one},{other}}}: events of different PMUs cannot form an event group. Remove the \
                     braces"
                )
            }
            Self::Vendor { name, why } => write!(f, "event {name}: {why}"),
            Self::Unreadable { file, expected } => {
                write!(f, "{}: pmmpi cannot read {expected} from this file", file.display())
            }
        }
    }
}

impl std::error::Error for NameError {}

fn maybe_end(question: &str) -> String {
    if question.is_empty() { ".".to_owned() } else { question.to_owned() }
}

/// Up to three names that are nearest to a mistyped one. The user may have typed a name without its PMU or table.
pub fn closest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const MOST: usize = 3;
    // Longer texts are not names, and the distance takes time proportional to the square of the length.
    const LONGEST: usize = 128;
    if typed.len() > LONGEST {
        return Vec::new();
    }
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let wanted = plain(typed);
    let allowed = 1 + wanted.chars().count() / 4;
    let near = |name: &'a str| {
        if name.len() > LONGEST {
            return None;
        }
        let of_pmu = name.split_once('/').map_or(name, |(_, event)| event.trim_end_matches('/'));
        let of_table = name.split_once("::").map_or(name, |(_, event)| event);
        let distances = [name, of_pmu, of_table].map(|name| strsim::osa_distance(&wanted, &plain(name)));
        let distance = distances.into_iter().min().filter(|distance| *distance <= allowed)?;
        Some((distance, name))
    };
    let mut near: Vec<(usize, &str)> = names.into_iter().filter_map(near).collect();
    near.sort_unstable();
    near.dedup();
    let least = near.first().map_or(0, |(distance, _)| *distance);
    let nearest = near.into_iter().take_while(|(distance, _)| *distance == least);
    nearest.take(MOST).map(|(_, name)| name.to_owned()).collect()
}
