//! Event names of vendors' manuals. The program `pmmpi-names` looks them up in libpfm4.

use crate::own_files;
use pmmpi::record::wire;
use pmmpi_events::names::{VendorAnswer, VendorEvent};
use std::process::{Command, Stdio};

/// One answer per name, in the same order. The error says why the look-up did not work.
pub fn resolve(names: &[String]) -> Result<Vec<VendorAnswer>, String> {
    wire::decode(&ask("resolve", names)?).map_err(|e| e.to_string())
}

/// All events in libpfm4's tables for this processor.
pub fn described() -> Result<Vec<VendorEvent>, String> {
    wire::decode(&ask("list", &[])?).map_err(|e| e.to_string())
}

fn ask(command: &str, names: &[String]) -> Result<Vec<u8>, String> {
    let program = own_files::names().map_err(|e| e.to_string())?;
    let mut asked = Command::new(program);
    asked.arg(command).args(names).env_remove("LD_PRELOAD").stdin(Stdio::null());
    let output = asked.output().map_err(|e| format!("pmmpi-names: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(if said.is_empty() { format!("pmmpi-names: {}", output.status) } else { said });
    }
    Ok(output.stdout)
}
