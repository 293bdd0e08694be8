//! The process that made this one a rank: its launcher, or the launcher's daemon on this node. Shells and
//! wrappers may stand between the two.

use std::ffi::OsString;
use std::io::{ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// A process that started a rank.
#[derive(Clone, Debug)]
pub struct Starter {
    process: i32,
    /// When it began, in the kernel's clock ticks; 0 where that cannot be read.
    began: u64,
    /// It started this process itself.
    pub is_parent: bool,
}

/// Deeper than any chain of wrappers.
const DEEPEST: u32 = 64;

impl Starter {
    /// The nearest ancestor that has one of these names ([`super::is_named`]), or that was not started with all these variables: a launcher
    /// sets them for what it starts, and a shell or wrapper in between has them from there. `None` where no process
    /// that this one can see is known to be it.
    pub fn find(names: &[&str], variables: &[(&str, OsString)]) -> Option<Self> {
        let mut process = i32::try_from(std::os::unix::process::parent_id()).ok()?;
        for depth in 0..DEEPEST {
            let stat = match (process, std::fs::read(format!("/proc/{process}/stat"))) {
                // A parent in another PID namespace has no number here.
                (..=0, _) => return None,
                (_, Ok(stat)) => Stat::parse(&stat),
                // Another user's, on a system that hides them (proc(5), hidepid): a daemon.
                (_, Err(_)) => None,
            };
            let starter =
                Self { process, began: stat.as_ref().map_or(0, |stat| stat.began), is_parent: depth == 0 };
            let Some(stat) = stat else { return Some(starter).filter(|_| process > 1) };
            if super::is_named(&stat.name, names) {
                return Some(starter);
            }
            // Who adopts orphans started none of them.
            if process == 1 {
                return None;
            }
            match was_started_with(process, variables) {
                Ok(true) => process = stat.parent,
                Ok(false) => return Some(starter),
                Err(e) if e.kind() == ErrorKind::PermissionDenied => return Some(starter),
                Err(_) => return None,
            }
        }
        None
    }

    /// The same text for all ranks that it starts, and another one for every other process of this node.
    pub fn identity(&self) -> String {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
        format!("{}-{}-{namespace}", self.process, self.began)
    }
}

/// What /proc/PID/stat says of a process (proc_pid_stat(5)).
struct Stat {
    /// At most 15 bytes.
    name: String,
    parent: i32,
    began: u64,
}

impl Stat {
    fn parse(stat: &[u8]) -> Option<Self> {
        let stat = String::from_utf8_lossy(stat);
        // The name may have anything in it, parentheses too.
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_ascii_whitespace(); // from the third on
        let parent = fields.nth(1)?.parse().ok()?;
        let began = fields.nth(17)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, began })
    }
}

fn was_started_with(process: i32, variables: &[(&str, OsString)]) -> Result<bool> {
    let environment = std::fs::read(format!("/proc/{process}/environ"))?;
    let has = |(name, value): &(&str, OsString)| {
        environment.split(|byte| *byte == 0).any(|entry| {
            let rest = entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            rest == Some(value.as_bytes())
        })
    };
    Ok(variables.iter().all(has))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let text = b"77 (a) S 1 (b) S 42 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 2";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.began), ("a) S 1 (b", 42, 123_456));
        assert!(Stat::parse(b"").is_none() && Stat::parse(b"1 (x) S").is_none());
        let own = Stat::parse(&std::fs::read("/proc/self/stat").unwrap()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id() as i32);
    }

    #[test]
    fn who_did_not_have_the_variables_set_them() {
        // Nobody was started with this one: the parent set it.
        let starter = Starter::find(&[], &[("PMMPI_TEST_RANK", "1".into())]).unwrap();
        assert!(starter.is_parent && starter.began > 0);
        let parent = Stat::parse(&std::fs::read(format!("/proc/{}/stat", starter.process)).unwrap()).unwrap();
        assert!(Starter::find(&[&parent.name], &[]).unwrap().is_parent);
    }

    #[test]
    fn variables_are_compared_whole() {
        let mut child =
            std::process::Command::new("sleep").arg("100").env_clear().env("PMI_RANK", "12").spawn().unwrap();
        let with = |name, value: &str| was_started_with(child.id() as i32, &[(name, value.into())]).unwrap();
        assert_eq!([with("PMI_RANK", "12"), with("PMI_RANK", "1"), with("PMI", "12")], [true, false, false]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
