//! A check and its result.

/// The result of a check, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No problem.
    Ok,
    /// pmmpi works, but some values are missing or vary more than necessary, or pmmpi cannot measure some
    /// programs.
    Limits,
    /// A part of pmmpi does not work.
    Broken,
}

impl Status {
    /// Best first.
    #[cfg(test)]
    pub const ALL: [Status; 3] = [Status::Ok, Status::Limits, Status::Broken];

    /// The name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Limits => "limits",
            Status::Broken => "broken",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name for scripts.
    pub name: &'static str,
    pub status: Status,
    /// The state of the machine.
    pub found: String,
    /// The effect on a measurement.
    pub meaning: String,
    /// Shell commands that fix it. Lines that start with `#` say where to run them, or what else to do.
    pub fix: Option<String>,
}

impl Check {
    /// A result without a problem.
    pub fn ok(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), meaning: meaning.into(), fix: None }
    }

    /// A result that limits measurements.
    pub fn limits(
        name: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Limits, fix: Some(fix.into()), ..Self::ok(name, found, meaning) }
    }

    /// A result that prevents measurements.
    pub fn broken(
        name: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Broken, ..Self::limits(name, found, meaning, fix) }
    }
}

/// The results of all checks on one node.
pub struct DoctorReport {
    pub node: String,
    /// In the order of [`super::CHECKS`].
    pub checks: Vec<Check>,
}

impl DoctorReport {
    /// The worst status of its checks.
    pub fn status(&self) -> Status {
        self.checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok)
    }

    /// The number of checks with this status.
    pub fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }
}

/// The commands that set a kernel parameter now and after a boot.
pub fn sysctl(name: &str, value: impl std::fmt::Display) -> String {
    format!(
        "sysctl -w {name}={value}\n\
         # to keep the value after a reboot:\n\
         echo {name}={value} >> /etc/sysctl.d/60-pmmpi.conf"
    )
}
