//! Finds node, run, class and session in a file's path: `{session}/{node}/hpl-{run}.out`.

use super::{ImportFault, ImportOptions};
use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

/// A pattern for the last parts of a path. `{node}`, `{run}`, `{class}` and `{session}` each match and name one or
/// more characters within one part; `*` matches without a name. A match from the left is as long as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    parts: Vec<Vec<Piece>>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Any(Option<Field>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Node,
    Run,
    Class,
    Session,
}

/// What a path says about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PathParts {
    pub node: Option<String>,
    pub run: Option<String>,
    pub class: Option<String>,
    pub session: Option<String>,
}

impl FromStr for PathPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split('/').filter(|part| !part.is_empty()).map(pieces);
        let parts = parts.collect::<Result<Vec<_>, _>>().map_err(|e| format!("`{text}`: {e}"))?;
        let named: Vec<Field> = parts.iter().flatten().filter_map(|piece| piece.field()).collect();
        if named.is_empty() {
            return Err(format!(
                "`{text}` has no placeholder: use {{node}}, {{run}}, {{class}} or {{session}}"
            ));
        }
        if (1..named.len()).any(|i| named[..i].contains(&named[i])) {
            return Err(format!("`{text}` contains a placeholder twice"));
        }
        Ok(Self { parts, text: text.to_owned() })
    }
}

fn pieces(part: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = part;
    while let Some(at) = rest.find(['{', '*']) {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].to_owned()));
        }
        if pieces.last().is_some_and(|last| matches!(last, Piece::Any(_))) {
            return Err("there is no text between two placeholders".into());
        }
        if rest[at..].starts_with('*') {
            pieces.push(Piece::Any(None));
            rest = &rest[at + 1..];
            continue;
        }
        let end = rest[at..].find('}').ok_or("a { has no }")? + at;
        let field = match &rest[at + 1..end] {
            "node" => Field::Node,
            "run" => Field::Run,
            "class" => Field::Class,
            "session" => Field::Session,
            other => {
                return Err(format!(
                    "{{{other}}} is not a placeholder: use {{node}}, {{run}}, {{class}} or {{session}}"
                ));
            }
        };
        pieces.push(Piece::Any(Some(field)));
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

impl Piece {
    fn field(&self) -> Option<Field> {
        match self {
            Self::Any(field) => *field,
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PathPattern {
    pub(super) fn find(&self, path: &Path) -> Option<PathParts> {
        let names: Vec<String> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
                _ => None,
            })
            .collect();
        let first = names.len().checked_sub(self.parts.len())?;
        let mut place = PathParts::default();
        for (pieces, name) in self.parts.iter().zip(&names[first..]) {
            for (field, value) in matched(pieces, name)? {
                let value = Some(value.to_owned());
                match field {
                    Field::Node => place.node = value,
                    Field::Run => place.run = value,
                    Field::Class => place.class = value,
                    Field::Session => place.session = value,
                }
            }
        }
        Some(place)
    }
}

/// The values of the placeholders if `name` matches. Each placeholder matches at least one character.
fn matched<'a>(pieces: &[Piece], name: &'a str) -> Option<Vec<(Field, &'a str)>> {
    match pieces {
        [] => name.is_empty().then(Vec::new),
        [Piece::Text(text), rest @ ..] => matched(rest, name.strip_prefix(text.as_str())?),
        [Piece::Any(field), rest @ ..] => {
            let ends = name.char_indices().map(|(at, c)| at + c.len_utf8()).collect::<Vec<_>>();
            ends.into_iter().rev().find_map(|end| {
                let mut found = matched(rest, &name[end..])?;
                found.extend(field.map(|field| (field, &name[..end])));
                Some(found)
            })
        }
    }
}

impl ImportOptions {
    /// What the path of a file says. If the path names no node, uses the given node.
    pub(super) fn place(&self, path: &Path) -> Result<PathParts, ImportFault> {
        let mut place = match &self.path {
            None => PathParts::default(),
            Some(pattern) => {
                pattern.find(path).ok_or_else(|| ImportFault::OtherPath(format!("`{pattern}`")))?
            }
        };
        if place.node.is_none() {
            place.node.clone_from(&self.node);
        }
        Ok(place)
    }
}

/// The node of a file if there is no pattern: the file name without its extension. If the file name only says which
/// tool wrote it, uses the name of the file's folder.
pub(super) fn node_of(path: &Path, generic: &[&str]) -> Result<String, ImportFault> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match generic.iter().any(|generic| stem.eq_ignore_ascii_case(generic)) {
        true => folder_of(path),
        false => (stem != "-").then_some(stem),
    };
    name.filter(|name| !name.is_empty()).ok_or_else(|| {
        ImportFault::OtherForm(
            "the file names no node: give --default-node, or a --path-pattern with {node}".into(),
        )
    })
}

/// The name of the file's folder.
pub(super) fn folder_of(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    Some(path.parent()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(pattern: &str, path: &str) -> Option<[String; 4]> {
        let place = pattern.parse::<PathPattern>().unwrap().find(Path::new(path))?;
        Some([place.node, place.run, place.class, place.session].map(Option::unwrap_or_default))
    }

    #[test]
    fn a_path_says_what_a_pattern_names() {
        let of = |values: [&str; 4]| Some(values.map(str::to_owned));
        assert_eq!(find("{node}/HPL.out", "/a/n01/HPL.out"), of(["n01", "", "", ""]));
        assert_eq!(find("{node}-{run}.out", "x/n-01-3.out"), of(["n-01", "3", "", ""]));
        assert_eq!(find("{session}/*/{class}.{node}", "mon/x/big.n1"), of(["n1", "", "big", "mon"]));
        assert_eq!(find("{node}/HPL.out", "HPL.out"), None);
        assert_eq!(find("{node}/HPL.out", "n01/hpl.out"), None);
        assert_eq!(find("n{node}", "n"), None);
    }

    #[test]
    fn a_pattern_that_says_nothing_is_refused() {
        for text in ["", "*", "{node", "{host}", "{node}{run}", "{node}/{node}"] {
            assert!(text.parse::<PathPattern>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_path_of_the_form_is_found(node in "[a-z][a-z0-9é]{0,8}", run in "[0-9]{1,4}") {
            let found = find("{node}/run-{run}.out", &format!("some/where/{node}/run-{run}.out"));
            prop_assert_eq!(found, Some([node, run, String::new(), String::new()]));
        }
    }
}
