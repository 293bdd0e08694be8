//! The process that started this rank: the launcher, or the launcher's daemon on this node. Shells and wrappers may be
//! between it and this process.

use pmmpi_workload::proc_stat::ProcStat;
use std::ffi::OsString;
use std::io::{ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

#[derive(Clone, Debug)]
pub struct Starter {
    process: i32,
    /// Its start time in the kernel's clock ticks; 0 if unknown.
    began: u64,
    /// True if it is the parent of this process.
    pub is_parent: bool,
}

/// More than any chain of wrappers.
const DEEPEST: u32 = 64;

impl Starter {
    /// The nearest ancestor that has one of these names ([`super::is_named`]) or that started without at least one of
    /// these variables. The launcher sets the variables for its children, so a shell or wrapper in between starts with
    /// them. `None` if no visible ancestor is certainly the starter.
    pub fn find(names: &[&str], variables: &[(&str, OsString)]) -> Option<Self> {
        let mut process = i32::try_from(std::os::unix::process::parent_id()).ok()?;
        for depth in 0..DEEPEST {
            // A parent in another PID namespace has no PID here.
            if process <= 0 {
                return None;
            }
            // An unreadable process belongs to another user, on a system that hides them (proc(5), hidepid): it is a
            // daemon.
            let stat = ProcStat::read(process).ok();
            let starter =
                Self { process, began: stat.as_ref().map_or(0, |stat| stat.began), is_parent: depth == 0 };
            let Some(stat) = stat else { return Some(starter).filter(|_| process > 1) };
            if super::is_named(&stat.name, names) {
                return Some(starter);
            }
            // Process 1 adopts orphans; it did not start the rank.
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

    /// Identifies this process on the node: all ranks that it starts get the same text.
    pub fn identity(&self) -> String {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
        format!("{}-{}-{namespace}", self.process, self.began)
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
    fn who_did_not_have_the_variables_set_them() {
        // No process has this variable, so the nearest ancestor, the parent, counts as the starter.
        let starter = Starter::find(&[], &[("PMMPI_TEST_RANK", "1".into())]).unwrap();
        assert!(starter.is_parent && starter.began > 0);
        let parent = ProcStat::read(starter.process).unwrap();
        assert!(Starter::find(&[&parent.name], &[]).unwrap().is_parent);
    }

    #[test]
    fn variables_are_compared_whole() {
        let mut child =
            std::process::Command::new("sleep").arg("100").env_clear().env("PMI_RANK", "12").spawn().unwrap();
        // The parent goes on before the kernel has stored the child's environment.
        while std::fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let with = |name, value: &str| was_started_with(child.id() as i32, &[(name, value.into())]).unwrap();
        assert_eq!([with("PMI_RANK", "12"), with("PMI_RANK", "1"), with("PMI", "12")], [true, false, false]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
