//! What A and B are on the command line: a path, or a part of the runs that `--in` names.

use crate::table::instant;
use std::path::PathBuf;
use std::str::FromStr;

/// One of the two sets.
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    /// A file, folder or archive.
    Path(PathBuf),
    /// `session:NAME`.
    Session(String),
    /// `label:KEY=VALUE`.
    Label(String, String),
    /// `time:FROM..TO`: runs that started from FROM on and before TO (ns since 1970). Either may be missing.
    Time(Option<i64>, Option<i64>),
}

impl FromStr for Selector {
    type Err = String;

    /// `./session:x` is the path of a file with such a name.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("session:") {
            return Ok(Self::Session(name.to_owned()));
        }
        if let Some(label) = text.strip_prefix("label:") {
            let (key, value) =
                label.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected label:KEY=VALUE")?;
            return Ok(Self::Label(key.to_owned(), value.to_owned()));
        }
        if let Some(range) = text.strip_prefix("time:") {
            let (from, to) =
                range.split_once("..").ok_or("expected time:FROM..TO, for example time:2026-11-01..")?;
            return Ok(Self::Time(moment(from)?, moment(to)?));
        }
        Ok(Self::Path(text.into()))
    }
}

/// `None` for an empty text.
fn moment(text: &str) -> Result<Option<i64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match instant::of_date_or_instant(text) {
        Some(moment) => Ok(Some(moment)),
        None => Err(format!("expected 2026-11-21 or 2026-11-21T20:35:00+01:00, not `{text}`")),
    }
}

impl Selector {
    /// True for a part of the runs that `--in` names.
    pub fn is_part(&self) -> bool {
        !matches!(self, Self::Path(_))
    }

    /// True if the set is defined by this label.
    pub fn names(&self, label: &str) -> bool {
        matches!(self, Self::Label(key, _) if key == label)
    }

    /// True if the user asks what time changed.
    pub fn is_of_time(&self) -> bool {
        matches!(self, Self::Session(_) | Self::Time(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_names() {
        let parsed = |text: &str| text.parse::<Selector>();
        assert_eq!(parsed("before/"), Ok(Selector::Path("before/".into())));
        assert_eq!(parsed("session:a:b"), Ok(Selector::Session("a:b".into())));
        assert_eq!(parsed("label:blas=mkl=1"), Ok(Selector::Label("blas".into(), "mkl=1".into())));
        assert_eq!(parsed("time:1970-01-02..1970-01-03T00:00:00Z"), {
            Ok(Selector::Time(Some(86_400_000_000_000), Some(172_800_000_000_000)))
        });
        assert_eq!(parsed("time:.."), Ok(Selector::Time(None, None)));
        for wrong in ["label:blas", "label:=x", "time:2026-11-01", "time:yesterday.."] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
