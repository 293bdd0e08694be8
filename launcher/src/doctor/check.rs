//! What was looked at, and what came of it.

/// What a check came to, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing stands in the way.
    Ok,
    /// Measurements work; something cannot be measured, or varies by more than it need.
    Limits,
    /// What pmmpi needs does not work.
    Broken,
}

impl Status {
    /// In their order.
    #[cfg(test)]
    pub const ALL: [Status; 3] = [Status::Ok, Status::Limits, Status::Broken];

    /// As it is printed, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Limits => "limits",
            Status::Broken => "broken",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What scripts know it by.
    pub name: &'static str,
    /// What it came to.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What that costs a measurement, or gives it.
    pub meaning: String,
    /// Lines of a shell that mend it; those that begin with `#` say where, or what else to do.
    pub fix: Option<String>,
}

impl Check {
    /// Nothing to mend.
    pub fn ok(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), meaning: meaning.into(), fix: None }
    }

    /// Less can be measured than might be.
    pub fn limits(
        name: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Limits, fix: Some(fix.into()), ..Self::ok(name, found, meaning) }
    }

    /// pmmpi does not work.
    pub fn broken(
        name: &'static str,
        found: impl Into<String>,
        meaning: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Broken, ..Self::limits(name, found, meaning, fix) }
    }
}

/// All that was looked at on one node.
pub struct DoctorReport {
    /// The node's name.
    pub node: String,
    /// In the order of [`super::CHECKS`].
    pub checks: Vec<Check>,
}

impl DoctorReport {
    /// The worst of its checks.
    pub fn status(&self) -> Status {
        self.checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok)
    }

    /// How many came to that.
    pub fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }
}

/// A kernel parameter, now and after a boot.
pub fn sysctl(name: &str, value: impl std::fmt::Display) -> String {
    format!(
        "sysctl -w {name}={value}\n# and after a boot:\necho {name}={value} >> /etc/sysctl.d/60-pmmpi.conf"
    )
}
