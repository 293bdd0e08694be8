//! Names of runs as people type them: `--run`, and short ids in tables.

use std::collections::{BTreeSet, HashSet};
use std::str::FromStr;

/// Part of the id of a run of pmmpi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName(String);

impl FromStr for RunName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.is_empty() {
            true => Err(
                "expected a run id, the beginning of a run id, or the short id from the column RUN of the \
                     report"
                    .to_owned(),
            ),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl RunName {
    /// The text that the user typed.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// True if it may name this run.
    pub fn may_be(&self, run_id: &str) -> bool {
        self.is_short_of(run_id) || run_id.starts_with(&self.0)
    }

    fn is_short_of(&self, run_id: &str) -> bool {
        random_part(run_id).is_some_and(|part| part.starts_with(&self.0))
    }

    /// The runs that it names: the run with this id; or else the runs with this short id; or else the runs whose id
    /// begins with it.
    fn named<'a>(&self, ids: &BTreeSet<&'a str>) -> Vec<&'a str> {
        let all = |is: &dyn Fn(&str) -> bool| ids.iter().copied().filter(|id| is(id)).collect::<Vec<_>>();
        let exact = all(&|id| id == self.0);
        let short = if exact.is_empty() { all(&|id| self.is_short_of(id)) } else { exact };
        if short.is_empty() { all(&|id| id.starts_with(&self.0)) } else { short }
    }
}

/// The runs that some names chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenRuns {
    /// Their ids.
    pub ids: HashSet<String>,
    /// The names that no run has.
    pub unknown: Vec<String>,
}

impl ChosenRuns {
    /// Finds the run of each name. The error lists the runs between which a name does not decide.
    pub fn of(names: &[RunName], ids: &BTreeSet<&str>) -> Result<Self, String> {
        const LISTED: usize = 5;
        let mut chosen = Self::default();
        for name in names {
            match name.named(ids)[..] {
                [] => chosen.unknown.push(name.0.clone()),
                [id] => _ = chosen.ids.insert(id.to_owned()),
                ref several => {
                    let listed: Vec<&str> = several.iter().take(LISTED).copied().collect();
                    let more = several.len().saturating_sub(LISTED);
                    let more = if more > 0 { format!("\n       and {more} more") } else { String::new() };
                    return Err(format!(
                        "--run {}: the ids of {} runs match. Type more of the id:\n       {}{more}",
                        name.0,
                        several.len(),
                        listed.join("\n       ")
                    ));
                }
            }
        }
        Ok(chosen)
    }
}

/// The 16 hexadecimal digits at the end of an id that pmmpi made: see `pmmpi::record::new_run_id`.
fn random_part(run_id: &str) -> Option<&str> {
    let (_, part) = run_id.rsplit_once('-')?;
    let is_random = part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random.then_some(part)
}

/// Short ids of some runs, all different.
pub struct ShortIds {
    /// Number of digits.
    length: usize,
}

impl ShortIds {
    /// The shortest ids, of at least four digits, that tell these runs apart.
    pub fn of<'a>(ids: impl Iterator<Item = &'a str>) -> Self {
        const LEAST: usize = 4;
        let mut parts: Vec<&str> = ids.filter_map(random_part).collect();
        parts.sort_unstable();
        let alike = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        let most = parts.windows(2).map(alike).max().unwrap_or_default();
        Self { length: (most + 1).max(LEAST) }
    }

    /// The short id of one of the runs; an id that pmmpi did not make stays whole.
    pub fn short<'a>(&self, run_id: &'a str) -> &'a str {
        random_part(run_id).and_then(|part| part.get(..self.length)).unwrap_or(run_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDS: [&str; 4] = [
        "20261123T061541.754971819Z-605ee3dd5f8f573f",
        "20261123T061544.364571789Z-97b55c04b9864506",
        "20261124T061544.364571789Z-97b5ffffffffffff",
        "by-hand",
    ];

    fn named(text: &str) -> Result<Vec<String>, String> {
        let chosen = ChosenRuns::of(&[text.parse().unwrap()], &IDS.into())?;
        assert_eq!(chosen.unknown.len(), usize::from(chosen.ids.is_empty()));
        Ok(chosen.ids.into_iter().collect())
    }

    #[test]
    fn a_run_has_a_short_id_the_beginning_of_its_id_or_all_of_it() {
        for (text, at) in [("605e", 0), ("97b55", 1), ("20261124", 2), ("by-hand", 3), ("by", 3)] {
            assert_eq!(named(text), Ok(vec![IDS[at].to_owned()]), "{text}");
        }
        assert_eq!(named(IDS[1]), Ok(vec![IDS[1].to_owned()]));
        assert_eq!(named("5ee3"), Ok(vec![]), "not the middle");
        let error = named("97b5").unwrap_err();
        assert!(error.contains("2 runs") && error.contains(IDS[1]) && error.contains(IDS[2]), "{error}");
        assert!("".parse::<RunName>().is_err());
    }

    #[test]
    fn short_ids_have_four_digits_or_as_many_as_needed() {
        let short = |ids: &[&'static str]| {
            let of = ShortIds::of(ids.iter().copied());
            ids.iter().map(|id| of.short(id)).collect::<Vec<_>>()
        };
        assert_eq!(short(&IDS[..2]), ["605e", "97b5"]);
        assert_eq!(short(&IDS), ["605ee", "97b55", "97b5f", "by-hand"]);
    }

    proptest! {
        /// What a table shows can be typed.
        #[test]
        fn each_short_id_names_its_run(
            parts in proptest::collection::btree_set("20[0-2][0-9a-f]{2}0{10}[0-9a-f]", 1..20), year in 2000..2030
        ) {
            let ids: Vec<String> = parts.iter().map(|part| format!("{year}0101T000000.000000000Z-{part}")).collect();
            let shorts = ShortIds::of(ids.iter().map(String::as_str));
            for id in &ids {
                let name: RunName = shorts.short(id).parse().unwrap();
                let chosen = ChosenRuns::of(&[name], &ids.iter().map(String::as_str).collect()).unwrap();
                prop_assert_eq!(chosen.ids, [id.clone()].into());
            }
        }
    }
}
