//! `pmmpi-rig-host NAME OFFSET_NS -- COMMAND...` runs COMMAND on a simulated host: with this host name, and with
//! clocks since boot that are off by OFFSET_NS. CLOCK_REALTIME stays that of the machine.
//!
//! `pmmpi-rig-host --rsh TABLE [ssh's options] NAME COMMAND...` does the same like a remote shell; TABLE is a file of
//! lines `NAME OFFSET_NS`.
//!
//! If the variable PMMPI_RIG_NETWORKS is set, the host also has a network of its own: the one that networks.sh made.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("--rsh") => remote_shell(&args[1..]),
        _ => on_host(&args),
    };
    eprintln!("pmmpi-rig-host: {}", result.err().unwrap_or_default());
    ExitCode::FAILURE
}

fn on_host(args: &[String]) -> Result<(), String> {
    match args {
        [name, offset, separator, command @ ..] if separator == "--" && !command.is_empty() => {
            let offset_ns = offset.parse().map_err(|e| format!("{offset}: {e}"))?;
            enter(name, offset_ns).map_err(|(step, e)| format!("host {name}, {step}: {e}"))?;
            Err(format!("{}: {}", command[0], Command::new(&command[0]).args(&command[1..]).exec()))
        }
        _ => Err("usage: pmmpi-rig-host NAME OFFSET_NS -- COMMAND...".into()),
    }
}

fn remote_shell(args: &[String]) -> Result<(), String> {
    let (table, rest) = args.split_first().ok_or("--rsh needs a table of hosts")?;
    let [name, command @ ..] = after_options(rest) else { return Err("--rsh: no host".into()) };
    let hosts = fs::read_to_string(table).map_err(|e| format!("{table}: {e}"))?;
    let offset = hosts.lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' '));
    let offset = offset.ok_or_else(|| format!("{name} is not in {table}"))?;
    let script = command.join(" ");
    on_host(&[name, offset, "--", "sh", "-c", &script].map(str::to_owned))
}

/// The words from the first one that is neither an option of ssh(1) nor an option's value: `-x -o K=V HOST ...`.
fn after_options(mut words: &[String]) -> &[String] {
    const TAKE_A_VALUE: &str = "BbcDEeFIiJLlmOopQRSWw";
    while let [option, rest @ ..] = words
        && option.starts_with('-')
    {
        // In `-xoK=V` the value is in the same word; in `-xo K=V` it is the next word.
        let value_is_next = option.find(|c| TAKE_A_VALUE.contains(c)) == Some(option.len() - 1);
        words = &rest[usize::from(value_is_next).min(rest.len())..];
    }
    words
}

const CLONE_NEWTIME: libc::c_int = 0x80;

/// The step that failed, and why.
type Failure = (&'static str, io::Error);

fn enter(name: &str, offset_ns: i64) -> Result<(), Failure> {
    // SAFETY: geteuid has no preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if std::env::var_os("PMMPI_RIG_NETWORKS").is_some() {
        let network = fs::File::open(format!("/run/netns/{name}")).map_err(|e| ("open its network", e))?;
        // SAFETY: the descriptor is open.
        check("enter its network", unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })?;
    }
    let spaces = libc::CLONE_NEWUTS | CLONE_NEWTIME | if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: unshare changes this process only, which has one thread.
    check("unshare", unsafe { libc::unshare(spaces) })?;
    if user != 0 {
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("0 {user} 1"))?;
        write("/proc/self/gid_map", &format!("0 {group} 1"))?;
    }
    let (seconds, nanos) = (offset_ns.div_euclid(1_000_000_000), offset_ns.rem_euclid(1_000_000_000));
    // ERANGE: the clock would show a time below zero.
    write(
        "/proc/self/timens_offsets",
        &format!("monotonic {seconds} {nanos}\nboottime {seconds} {nanos}\n"),
    )?;
    // SAFETY: the name is valid for its length; the descriptor is open while setns uses it.
    unsafe {
        check("sethostname", libc::sethostname(name.as_ptr().cast(), name.len()))?;
        // New kernels enter it at exec, older ones only at fork.
        let path = c"/proc/self/ns/time_for_children";
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        check("open time_for_children", fd)?;
        check("setns", libc::setns(fd, CLONE_NEWTIME))?;
    }
    // The variable that a login on that host would set.
    // SAFETY: this process has one thread.
    unsafe { std::env::set_var("HOSTNAME", OsString::from(name)) };
    Ok(())
}

fn check(step: &'static str, code: libc::c_int) -> Result<(), Failure> {
    if code < 0 { Err((step, io::Error::last_os_error())) } else { Ok(()) }
}

fn write(path: &'static str, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| (path, e))
}
