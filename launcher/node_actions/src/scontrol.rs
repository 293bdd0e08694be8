//! Slurm, as pmmpi uses it: reads nodes and changes one node.

mod cluster;
mod rights;

use crate::error::{ScontrolFailure, ToolError};
use crate::node_state::{self, NodeState};
use crate::process::{self, ProgramEnd};
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const PROGRAM: &str = "scontrol";
/// scontrol gives up after 10 s by default (MessageTimeout), for each controller.
const LIMIT: Duration = Duration::from_secs(30);
/// Variables that change what scontrol prints.
const CONFUSING: [&str; 3] = ["SLURM_TIME_FORMAT", "SCONTROL_FEDERATION", "SCONTROL_FUTURE"];

/// All nodes by name, or the text that says why pmmpi cannot read a node's record.
pub type ListedNodes = BTreeMap<String, Result<NodeState, String>>;

/// What pmmpi needs of Slurm.
pub trait Slurm {
    /// The name of the cluster, in lower case, or why pmmpi cannot find it out.
    fn cluster(&self) -> Result<String, ToolError>;

    /// Reads all nodes.
    fn nodes(&self) -> Result<ListedNodes, ToolError>;

    /// Reads one node.
    fn node(&self, name: &str) -> Result<NodeState, ToolError>;

    /// Runs scontrol with these arguments, which change one node. Slurm makes the whole change or none. `lock` is open
    /// in scontrol, too, so that a lock of this file lasts until the change is over, even if this process is killed.
    fn update(&self, arguments: &[String], lock: &File) -> Result<(), ToolError>;
}

/// The command of the real Slurm.
#[derive(Clone, Debug)]
pub struct Scontrol {
    program: PathBuf,
    /// The longest time for one call; 30 s by default.
    pub limit: Duration,
    /// The first answer: a pmmpi that waits for the journal does not ask again and again.
    cluster: OnceLock<Result<String, ToolError>>,
}

impl Scontrol {
    /// Finds scontrol in PATH.
    pub fn find() -> Result<Self, ToolError> {
        let path = env::var_os("PATH").unwrap_or_default();
        // A relative folder would depend on the folder in which an operator, often root, calls pmmpi.
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        let program = folders.map(|folder| folder.join(PROGRAM)).find(|path| is_executable(path));
        let missing = || ToolError { command: PROGRAM.to_owned(), why: ScontrolFailure::Missing };
        Ok(Self { program: program.ok_or_else(missing)?, limit: LIMIT, cluster: OnceLock::new() })
    }

    fn call(&self, arguments: &[&str], lock: Option<&File>) -> Result<String, ToolError> {
        let fail = |why| Err(ToolError { command: command_line(arguments), why });
        let mut command = Command::new(&self.program);
        command.args(arguments).env("LC_ALL", "C");
        CONFUSING.iter().for_each(|name| _ = command.env_remove(name));
        match process::run(&mut command, self.limit, lock) {
            ProgramEnd::NotStarted(reason) => {
                fail(ScontrolFailure::NotStarted(format!("{}: {reason}", self.program.display())))
            }
            ProgramEnd::TooLong => fail(ScontrolFailure::TooLong(self.limit)),
            ProgramEnd::TooMuch => fail(ScontrolFailure::Unreadable("the output is too long".to_owned())),
            ProgramEnd::Ended { success: true, stdout, .. } => {
                Ok(String::from_utf8_lossy(&stdout).into_owned())
            }
            ProgramEnd::Ended { success: false, stdout, stderr } => {
                fail(ScontrolFailure::Failed(complaint(&stdout, &stderr)))
            }
        }
    }

    fn show(&self, arguments: &[&str]) -> Result<ListedNodes, ToolError> {
        let output = self.call(arguments, None)?;
        node_state::read_all(&output).map_err(|what| ToolError {
            command: command_line(arguments),
            why: ScontrolFailure::Unreadable(what),
        })
    }
}

impl Slurm for Scontrol {
    fn cluster(&self) -> Result<String, ToolError> {
        // Not from a variable of the job: this answer is of the cluster whose nodes scontrol changes.
        let question = ["show", "config"];
        let nameless = || ToolError {
            command: command_line(&question),
            why: ScontrolFailure::Unreadable("the output has no ClusterName".to_owned()),
        };
        let ask = || {
            let config = self.call(&question, None)?;
            cluster::of_config(&config).ok_or_else(nameless)
        };
        self.cluster.get_or_init(ask).clone()
    }

    fn nodes(&self) -> Result<ListedNodes, ToolError> {
        // Also nodes of hidden partitions.
        self.show(&["--all", "show", "node"])
    }

    fn node(&self, name: &str) -> Result<NodeState, ToolError> {
        let arguments = ["--all", "show", "node", name];
        let unreadable =
            |what| ToolError { command: command_line(&arguments), why: ScontrolFailure::Unreadable(what) };
        let mut nodes = self.show(&arguments)?;
        match (nodes.remove(name), nodes.is_empty()) {
            (Some(node), true) => node.map_err(unreadable),
            _ => Err(unreadable(format!("the output has other nodes than {name}"))),
        }
    }

    fn update(&self, arguments: &[String], lock: &File) -> Result<(), ToolError> {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.call(&arguments, Some(lock)).map(|_| ())
    }
}

/// The command line with these arguments, as a shell reads it.
pub(crate) fn command_line(arguments: &[impl AsRef<str>]) -> String {
    let arguments = arguments.iter().map(AsRef::as_ref);
    pmmpi::text::shell_line(std::iter::once(PROGRAM).chain(arguments))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// The first lines of stderr, or of stdout, where scontrol prints that a node does not exist.
fn complaint(stdout: &[u8], stderr: &[u8]) -> String {
    let texts = [stderr, stdout].map(|text| String::from_utf8_lossy(text).trim().to_owned());
    let text = texts.into_iter().find(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| "it printed no message".to_owned());
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const RECORD: &str = "NodeName=a x\\n   AvailableFeatures=\\n   ActiveFeatures=\\n   State=IDLE w\\n\\n";

    /// A scontrol that is this shell script.
    fn scripted(script: &str) -> (TempDir, Scontrol) {
        let folder = TempDir::new().unwrap();
        let program = folder.path().join("scontrol");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, Scontrol { program, limit: Duration::from_secs(60), cluster: OnceLock::new() })
    }

    fn why(script: &str) -> ScontrolFailure {
        scripted(script).1.node("a").unwrap_err().why
    }

    #[test]
    fn a_node_is_read() {
        let (_folder, slurm) =
            scripted(&format!("[ \"$LC_ALL $*\" = 'C --all show node a' ] && printf '{RECORD}'"));
        assert_eq!(slurm.node("a").unwrap().state, ["IDLE"]);
    }

    #[test]
    fn the_cluster_is_asked_for_once() {
        let (folder, slurm) = scripted(
            "[ \"$LC_ALL $*\" = 'C show config' ] && echo asked >> \"$0.calls\" && echo 'ClusterName  = alpha'",
        );
        for _ in 0..2 {
            assert_eq!(slurm.cluster(), Ok("alpha".to_owned()));
        }
        assert_eq!(fs::read_to_string(folder.path().join("scontrol.calls")).unwrap(), "asked\n");
        for (script, why) in [
            ("echo 'ClusterName = alpha'; exit 1", "ClusterName = alpha"),
            ("echo 'no answer' >&2; exit 1", "no answer"),
            ("echo rubbish", "the output has no ClusterName"),
            ("true", "the output has no ClusterName"),
        ] {
            assert_eq!(scripted(script).1.cluster().unwrap_err().why.brief(), why, "{script}");
        }
    }

    #[test]
    fn failures_name_the_command_and_what_to_do() {
        assert_eq!(
            why("echo 'Node a not found'; exit 1"),
            ScontrolFailure::Failed("Node a not found".to_owned())
        );
        assert_eq!(why("exit 1"), ScontrolFailure::Failed("it printed no message".to_owned()));
        assert!(matches!(why("echo rubbish"), ScontrolFailure::Unreadable(_)));
        assert!(matches!(why("true"), ScontrolFailure::Unreadable(_)));
        // A name of several nodes, or of another node.
        assert!(matches!(
            why(&format!("printf '{RECORD}{}'", RECORD.replace("=a", "=b"))),
            ScontrolFailure::Unreadable(_)
        ));
        assert!(matches!(
            why(&format!("printf '{}'", RECORD.replace("=a", "=b"))),
            ScontrolFailure::Unreadable(_)
        ));
        let (_folder, mut slurm) = scripted("sleep 1000");
        slurm.limit = Duration::from_millis(50);
        let error = slurm.node("a").unwrap_err();
        assert!(error.is_general());
        assert_eq!(
            error.to_string(),
            "`scontrol --all show node a` did not end within 0.05 s, and pmmpi ended it; check with `scontrol ping` \
             that Slurm's controller answers"
        );
        slurm.program = "/nonexistent/scontrol".into();
        assert!(matches!(slurm.node("a").unwrap_err().why, ScontrolFailure::NotStarted(_)));
    }

    #[test]
    fn only_a_refusal_of_slurm_shows_a_missing_right() {
        for (message, is_refusal) in [
            ("slurm_update error: Invalid user id", true),
            ("slurm_update error: Access/permission denied", true),
            ("slurm_update error: Invalid node name specified", false),
            ("scontrol: error: cannot open /etc/slurm/slurm.conf: Permission denied", false),
        ] {
            let (_folder, slurm) = scripted(&format!("echo '{message}' >&2; exit 1"));
            assert_eq!(slurm.why_not_allowed(), is_refusal.then(|| message.to_owned()), "{message}");
        }
        let refuses_others = "[ \"$*\" = 'update NodeName=pmmpi-asks-for-the-right State=RESUME' ] && exit 0\n\
                              echo 'Invalid user id' >&2; exit 1";
        assert_eq!(scripted(refuses_others).1.why_not_allowed(), None);
    }

    #[test]
    fn the_lock_lasts_until_scontrol_ends() {
        let folder = TempDir::new().unwrap();
        let lock = File::create(folder.path().join("lock")).unwrap();
        let (_folder, slurm) = scripted("readlink /proc/self/fd/* | grep -q '/lock$'");
        assert_eq!(slurm.update(&[], &lock), Ok(()));
        assert!(slurm.call(&[], None).is_err());
    }
}
