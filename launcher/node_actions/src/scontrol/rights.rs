//! Whether this user may change nodes. Slurm answers this only by a change, so pmmpi reads who may change nodes.

use super::Scontrol;
use crate::process::{self, End};
use std::process::Command;

/// The command that knows Slurm's administrators. It is in the folder of scontrol.
const SACCTMGR: &str = "sacctmgr";
/// The user id of root, who may change all nodes.
const ROOT: u32 = 0;

impl Scontrol {
    /// Why this user certainly may not change nodes. `None` if the user may, or if pmmpi cannot find this out. Changes
    /// nothing.
    pub fn why_not_allowed(&self) -> Option<String> {
        // SAFETY: the call reads a number of this process, and cannot fail.
        let user = unsafe { libc::geteuid() };
        if user == ROOT { None } else { self.why_user_is_not_allowed(user) }
    }

    /// The same for a user who is not root.
    fn why_user_is_not_allowed(&self, user: u32) -> Option<String> {
        let config = self.call(&["show", "config"], None).ok()?;
        let slurm_user = value(&config, "SlurmUser")?;
        if id_of(slurm_user)? == user {
            return None;
        }
        let neither = format!("the user with the id {user} is neither root nor SlurmUser ({slurm_user})");
        match value(&config, "AccountingStorageType")? {
            // Without accounting, Slurm has no administrators.
            "accounting_storage/none" | "(null)" => Some(neither),
            _ if self.is_no_administrator(user) => {
                Some(format!("{neither}, and the AdminLevel of this user is None"))
            }
            _ => None,
        }
    }

    /// True if the accounting of Slurm says so. A higher AdminLevel may have the right; this depends on the version of
    /// Slurm.
    fn is_no_administrator(&self, user: u32) -> bool {
        let of_name = |name: String| {
            let name = format!("name={}", name.trim());
            let mut ask = Command::new(self.program.with_file_name(SACCTMGR));
            ask.args(["--readonly", "--noheader", "--parsable2", "show", "user", &name, "format=AdminLevel"]);
            self.answer(&mut ask)
        };
        // The variable USER may have the name of another user, for example after su.
        let name = self.answer(Command::new("id").args(["-n", "-u", &user.to_string()]));
        let levels = name.and_then(of_name).unwrap_or_default();
        !levels.trim().is_empty() && levels.lines().all(|level| level.trim() == "None")
    }

    /// What a command prints; `None` if it fails.
    fn answer(&self, command: &mut Command) -> Option<String> {
        match process::run(command.env("LC_ALL", "C"), self.limit, None) {
            End::Ended { success: true, stdout, .. } => Some(String::from_utf8_lossy(&stdout).into_owned()),
            _ => None,
        }
    }
}

/// The value of a line such as `SlurmUser               = slurm(64030)`.
fn value<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let of_line = |line: &'a str| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim())
    };
    config.lines().find_map(of_line)
}

/// The number in `slurm(64030)`.
fn id_of(user: &str) -> Option<u32> {
    user.strip_suffix(')')?.rsplit_once('(')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;
    use tempfile::TempDir;

    /// An ordinary user that every system has.
    const NOBODY: u32 = 65534;

    /// Why nobody may not change nodes: `config` is what scontrol shows, and `sacctmgr` a script.
    fn why(config: &str, sacctmgr: Option<&str>) -> Option<String> {
        let folder = TempDir::new().unwrap();
        let program = |name: &str, script: &str| {
            let program = folder.path().join(name);
            fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            program
        };
        fs::write(folder.path().join("config"), config).unwrap();
        let shows = format!("[ \"$*\" = 'show config' ] && cat {}/config", folder.path().display());
        let scontrol = Scontrol { program: program("scontrol", &shows), limit: Duration::from_secs(60) };
        if let Some(script) = sacctmgr {
            program(SACCTMGR, script);
        }
        scontrol.why_user_is_not_allowed(NOBODY)
    }

    fn config(slurm_user: &str, accounting: &str) -> String {
        format!(
            "Configuration data as of 2026-11-27T04:00:00\nAccountingStorageUser   = N/A\n\
             AccountingStorageType   = {accounting}\nSlurmUser               = {slurm_user}\n\
             SlurmdUser              = root(0)\n\nSlurmctld(primary) at head is UP\n"
        )
    }

    #[test]
    fn only_root_and_slurm_user_may_without_accounting() {
        for accounting in ["accounting_storage/none", "(null)"] {
            let told = why(&config("slurm(64030)", accounting), None);
            let expected = "the user with the id 65534 is neither root nor SlurmUser (slurm(64030))";
            assert_eq!(told.as_deref(), Some(expected));
            assert_eq!(why(&config("nobody(65534)", accounting), None), None);
        }
    }

    #[test]
    fn administrators_may() {
        let config = config("slurm(64030)", "accounting_storage/slurmdbd");
        let asked = "case \"$*\" in *'show user name='*' format=AdminLevel') ;; *) exit 1 ;; esac";
        let told = why(&config, Some(&format!("{asked}\necho None")));
        assert!(told.is_some_and(|told| told.ends_with("and the AdminLevel of this user is None")));
        for level in ["Operator", "Administrator"] {
            assert_eq!(why(&config, Some(&format!("{asked}\necho {level}"))), None, "{level}");
        }
    }

    #[test]
    fn what_pmmpi_cannot_find_out_is_no_reason() {
        let known = config("slurm(64030)", "accounting_storage/slurmdbd");
        for sacctmgr in [None, Some("exit 1"), Some("true")] {
            assert_eq!(why(&known, sacctmgr), None, "{sacctmgr:?}");
        }
        let without_number = config("slurm", "accounting_storage/none");
        for config in ["", "SlurmUser = slurm(64030)\n", &without_number] {
            assert_eq!(why(config, Some("echo None")), None, "{config}");
        }
    }
}
