//! The description of one PMU in sysfs.

use super::error::NameError;
use super::fields::Field;
use super::places::Places;
use super::sysfs;
use pmmpi::node::CpuSet;
use std::path::{Path, PathBuf};

/// One PMU. It reads fields and events only on request: a server has a hundred PMUs.
#[derive(Clone, Debug)]
pub struct Pmu {
    pub name: String,
    folder: PathBuf,
    /// perf_event_attr.type of its events.
    pub kind: u32,
    pub places: Places,
}

/// An event that the PMU has a name for.
pub struct DescribedEvent {
    /// Its fields, as a user would write them.
    pub terms: String,
    /// A value is count x scale.
    pub scale: f64,
    /// The unit of a value.
    pub unit: String,
}

/// More hardware threads than any machine has.
const MOST_CPUS: u32 = 1 << 20;

/// The files in `events` that describe another file there.
const BESIDE: [&str; 4] = [".scale", ".unit", ".per-pkg", ".snapshot"];

/// True if the PMU has a name for this event.
pub fn has_event(devices: &Path, pmu: &str, event: &str) -> bool {
    let described = BESIDE.iter().any(|ending| event.ends_with(ending));
    sysfs::is_name(event) && !described && devices.join(pmu).join("events").join(event).is_file()
}

impl Pmu {
    /// Reads a PMU that sysfs lists.
    pub fn read(devices: &Path, name: &str) -> Result<Self, NameError> {
        let folder = devices.join(name);
        let file = folder.join("type");
        let kind = sysfs::text(&file).and_then(|text| text.parse().ok());
        let kind = kind.ok_or_else(|| NameError::unreadable(&file, "the number of a PMU"))?;
        let cpus = |file: &str| {
            let file = folder.join(file);
            if !file.exists() {
                return Ok(None);
            }
            let set = sysfs::text(&file).and_then(|text| CpuSet::parse(&text)).filter(is_sound);
            set.map(Some).ok_or_else(|| NameError::unreadable(&file, "a list of hardware threads"))
        };
        let places = match (cpus("cpus")?, cpus("cpumask")?) {
            (None, Some(mask)) => Places::Socket(mask),
            (cpus, _) => Places::Threads(cpus),
        };
        Ok(Self { name: name.to_owned(), folder, kind, places })
    }

    /// The bits of one of its fields; `None` if it has no such field.
    pub fn field(&self, name: &str) -> Result<Option<Field>, NameError> {
        let file = self.folder.join("format").join(name);
        if !sysfs::is_name(name) || !file.exists() {
            return Ok(None);
        }
        let field = sysfs::text(&file).and_then(|text| Field::parse(&text));
        field.map(Some).ok_or_else(|| NameError::unreadable(&file, "bits such as config:0-7,32-35"))
    }

    /// The names of its fields.
    pub fn fields(&self) -> Vec<String> {
        sysfs::names(&self.folder.join("format"))
    }

    /// The names of its events.
    pub fn events(&self) -> Vec<String> {
        let mut names = sysfs::names(&self.folder.join("events"));
        names.retain(|name| !BESIDE.iter().any(|ending| name.ends_with(ending)));
        names
    }

    /// See [`has_event`].
    pub fn has_event(&self, name: &str) -> bool {
        self.folder.parent().is_some_and(|devices| has_event(devices, &self.name, name))
    }

    /// One of its events; `None` if it has no such event.
    pub fn event(&self, name: &str) -> Result<Option<DescribedEvent>, NameError> {
        if !self.has_event(name) {
            return Ok(None);
        }
        let file = self.folder.join("events").join(name);
        let beside = |ending: &str| self.folder.join("events").join(format!("{name}.{ending}"));
        let terms = sysfs::text(&file).ok_or_else(|| NameError::unreadable(&file, "an event's fields"))?;
        let (scale_file, unit_file) = (beside("scale"), beside("unit"));
        let scale = if scale_file.exists() {
            let scale = sysfs::text(&scale_file).and_then(|text| text.parse::<f64>().ok());
            let sound = scale.filter(|scale| scale.is_finite() && *scale > 0.0);
            sound.ok_or_else(|| NameError::unreadable(&scale_file, "a scale factor"))?
        } else {
            1.0
        };
        let unit = if unit_file.exists() {
            let sound = |unit: &String| unit.len() <= 32 && !unit.contains('\n');
            let unit = sysfs::text(&unit_file).filter(sound);
            unit.ok_or_else(|| NameError::unreadable(&unit_file, "a unit"))?
        } else {
            String::new()
        };
        let (unit, factor) = base_unit(&unit);
        Ok(Some(DescribedEvent { terms, scale: scale * factor, unit }))
    }
}

/// Converts to base units: the kernel uses MiB where pmmpi uses bytes.
fn base_unit(unit: &str) -> (String, f64) {
    let (name, factor) = match unit {
        "KiB" => ("bytes", 1024.0),
        "MiB" => ("bytes", 1024.0 * 1024.0),
        "GiB" => ("bytes", 1024.0 * 1024.0 * 1024.0),
        "Bytes" => ("bytes", 1.0),
        "Joules" => ("J", 1.0),
        other => (other, 1.0),
    };
    (name.to_owned(), factor)
}

fn is_sound(set: &CpuSet) -> bool {
    set.0.iter().all(|(first, last)| first <= last && *last < MOST_CPUS)
        && set.0.windows(2).all(|pair| pair[0].1 < pair[1].0)
}
