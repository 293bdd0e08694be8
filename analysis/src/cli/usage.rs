//! Help, version, and a command line that is not valid.

use super::exit_statuses::USAGE;
use super::failure::{code, say};
use super::{nagios, outputs};

/// Help and version end with exit status 0, or 1 if pmmpi could not write them.
pub fn usage(error: &clap::Error) -> ! {
    if error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        if is_for_nagios() {
            std::process::exit(nagios::unknown(text).into())
        }
        say(text);
        std::process::exit(USAGE.into())
    }
    let written = outputs::write(&error.render().to_string(), None);
    std::process::exit(code(written.map(|()| 0)).into())
}

/// True if the command line asks for the exit statuses of Nagios, whatever else is wrong with it.
fn is_for_nagios() -> bool {
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    args.iter().any(|arg| arg == "--exit=nagios") || args.windows(2).any(|pair| pair == ["--exit", "nagios"])
}
