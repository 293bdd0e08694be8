//! The kernel's tracepoints, by perf's names: `sched:sched_switch`.

use super::error::NameError;
use super::sysfs;
use std::io::ErrorKind;
use std::path::Path;

/// Where the kernel shows tracepoints: the file system's own place, and the one below debugfs
/// (Documentation/trace/ftrace.rst).
const PLACES: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// The result of looking up a name.
#[derive(Debug, PartialEq)]
pub enum Tracepoint {
    /// Its number: the configuration of its event.
    Known(u64),
    /// No tracepoint has this name.
    Unknown,
    /// The user cannot read the tracepoints, for this reason.
    Hidden(String),
}

/// The tracepoint of this name, in the machine below `root`. If the subsystem exists without this tracepoint, that
/// is an error.
pub fn find(root: &Path, name: &str) -> Result<Tracepoint, NameError> {
    let Some((subsystem, event)) = parts(name) else { return Ok(Tracepoint::Unknown) };
    let mut why =
        "tracefs is not mounted (to mount it: mount -t tracefs tracefs /sys/kernel/tracing)".to_owned();
    for place in PLACES {
        let events = root.join(place).join("events");
        let folder = events.join(subsystem);
        match std::fs::metadata(&events).and_then(|_| std::fs::metadata(&folder)) {
            Ok(_) => {
                let file = folder.join(event).join("id");
                if std::fs::symlink_metadata(&file).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
                    let names = sysfs::names(&folder);
                    let like = super::closest(event, names.iter().map(String::as_str));
                    let like = like.into_iter().map(|name| format!("{subsystem}:{name}")).collect();
                    let name = name.to_owned();
                    return Err(NameError::Unknown { name, like, vendor: None, tracepoints: None });
                }
                let number = sysfs::text(&file).and_then(|text| text.parse().ok());
                let number =
                    number.ok_or_else(|| NameError::unreadable(&file, "the number of a tracepoint"))?;
                return Ok(Tracepoint::Known(number));
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                why = format!(
                    "only root may read /{place} (to allow all users: mount -o remount,mode=755 /{place})"
                );
                break;
            }
            Err(_) if events.is_dir() => return Ok(Tracepoint::Unknown),
            Err(_) => {}
        }
    }
    Ok(Tracepoint::Hidden(why))
}

/// Splits a name into subsystem and event. Vendors' names have capitals or two colons, and give `None`.
fn parts(name: &str) -> Option<(&str, &str)> {
    let (subsystem, event) = name.split_once(':')?;
    let is_lower = !subsystem.bytes().any(|b| b.is_ascii_uppercase());
    (is_lower && sysfs::is_name(subsystem) && sysfs::is_name(event)).then_some((subsystem, event))
}
