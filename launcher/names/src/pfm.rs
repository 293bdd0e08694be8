//! The functions of libpfm4 that pmmpi needs, declared as in perfmon/pfmlib.h and perfmon/pfmlib_perf_event.h of
//! version 4.

use libloading::Library as Loaded;
use perf_event_open_sys::bindings::perf_event_attr;
use pmmpi::counters::event::{Encoding, Modes};
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;

/// The library's name since version 4.0 (2010). Its interface has only grown since then.
const FILE: &str = "libpfm.so.4";

/// The loaded and initialised library.
pub struct PfmLibrary {
    functions: Functions,
    /// Keeps the library, and so the functions, loaded.
    _loaded: Loaded,
}

struct Functions {
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    get_pmu_info: unsafe extern "C" fn(c_int, *mut PmuInfo) -> c_int,
    get_event_next: unsafe extern "C" fn(c_int) -> c_int,
    get_event_info: unsafe extern "C" fn(c_int, c_int, *mut EventInfo) -> c_int,
    get_event_attr_info: unsafe extern "C" fn(c_int, c_int, c_int, *mut AttributeInfo) -> c_int,
    find_event: unsafe extern "C" fn(*const c_char) -> c_int,
    get_os_event_encoding: unsafe extern "C" fn(*const c_char, c_int, c_int, *mut EncodeArgument) -> c_int,
}

const SUCCESS: c_int = 0; // PFM_SUCCESS
const NOT_SUPPORTED: c_int = -1; // PFM_ERR_NOTSUPP
const INVALID: c_int = -2; // PFM_ERR_INVAL
const NOT_FOUND: c_int = -4; // PFM_ERR_NOTFOUND
const IN_KERNEL_AND_USER_MODE: c_int = 0x01 | 0x08; // PFM_PLM0 | PFM_PLM3
const FOR_PERF_EVENTS: c_int = 1; // PFM_OS_PERF_EVENT
const UNIT_MASK: c_int = 1; // PFM_ATTR_UMASK
/// Above PFM_PMU_MAX of every version; it is 400 in 4.13.
const MOST_PMUS: c_int = 4096;

#[repr(C)]
struct PmuInfo {
    name: *const c_char,
    description: *const c_char,
    size: usize,
    pmu: c_int,
    kind: c_int,
    events: c_int,
    first_event: c_int,
    max_encoding: c_int,
    counters: c_int,
    fixed_counters: c_int,
    /// Bit 0: present on this machine.
    flags: u32,
}

#[repr(C)]
struct EventInfo {
    name: *const c_char,
    description: *const c_char,
    equivalent: *const c_char,
    size: usize,
    code: u64,
    pmu: c_int,
    data_type: c_int,
    index: c_int,
    attributes: c_int,
    reserved: c_int,
    flags: u32,
}

#[repr(C)]
struct AttributeInfo {
    name: *const c_char,
    description: *const c_char,
    equivalent: *const c_char,
    size: usize,
    code: u64,
    kind: c_int,
    index: c_int,
    control: c_int,
    flags: u32,
    default: u64,
}

#[repr(C)]
struct EncodeArgument {
    attributes: *mut perf_event_attr,
    full_name: *mut *mut c_char,
    size: usize,
    index: c_int,
    cpu: c_int,
    flags: c_int,
    padding: c_int,
}

/// Extra space, because the library's perf_event_attr may be longer than that of this program.
#[repr(C)]
struct Room {
    attributes: perf_event_attr,
    more: [u64; 64],
}

/// An event of one of this processor's tables.
pub struct PfmEvent {
    /// The name with its table: "skx::INST_RETIRED".
    pub name: String,
    pub description: String,
    /// Its unit masks, with their descriptions.
    pub masks: Vec<(String, String)>,
}

/// An error of the library.
#[derive(Debug)]
pub struct PfmError {
    code: c_int,
    message: String,
}

impl PfmError {
    /// True if no table has the event or the text is not the name of an event.
    pub fn is_not_found(&self) -> bool {
        matches!(self.code, NOT_FOUND | NOT_SUPPORTED | INVALID)
    }
}

impl fmt::Display for PfmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PfmError {}

impl PfmLibrary {
    /// Loads the system's library.
    pub fn load() -> Result<Self, PfmError> {
        let failed = |e: libloading::Error| PfmError {
            code: NOT_SUPPORTED,
            message: format!(
                "pmmpi cannot load libpfm4 ({e}), so pmmpi does not know the event names of vendors. Install libpfm4 \
             (Debian: apt install libpfm4; RHEL and Fedora: dnf install libpfm)"
            ),
        };
        // SAFETY: the library's initialisers do not depend on this program; the signatures match its headers.
        unsafe {
            let loaded = Loaded::new(FILE).map_err(failed)?;
            macro_rules! function {
                ($name:literal) => {
                    *loaded.get(concat!($name, "\0").as_bytes()).map_err(failed)?
                };
            }
            let initialize: unsafe extern "C" fn() -> c_int = function!("pfm_initialize");
            let functions = Functions {
                strerror: function!("pfm_strerror"),
                get_pmu_info: function!("pfm_get_pmu_info"),
                get_event_next: function!("pfm_get_event_next"),
                get_event_info: function!("pfm_get_event_info"),
                get_event_attr_info: function!("pfm_get_event_attr_info"),
                find_event: function!("pfm_find_event"),
                get_os_event_encoding: function!("pfm_get_os_event_encoding"),
            };
            let library = Self { functions, _loaded: loaded };
            library.check(initialize())?;
            Ok(library)
        }
    }

    fn check(&self, code: c_int) -> Result<(), PfmError> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function gives a constant string for any number.
        let message = unsafe { text((self.functions.strerror)(code)) };
        Err(PfmError { code, message })
    }

    /// The kernel's encoding of an event, and its full name.
    pub fn encode(&self, name: &str) -> Result<(Encoding, String), PfmError> {
        let name = CString::new(name).map_err(|e| PfmError {
            code: NOT_FOUND,
            message: format!("an event name must not contain a zero byte: {e}"),
        })?;
        let mut room = Room { attributes: perf_event_attr::default(), more: [0; 64] };
        let mut full_name: *mut c_char = std::ptr::null_mut();
        let mut argument = EncodeArgument {
            // The pointer must cover the whole structure, not only its first field.
            attributes: (&raw mut room).cast(),
            full_name: &mut full_name,
            size: size_of::<EncodeArgument>(),
            index: 0,
            cpu: 0,
            flags: 0,
            padding: 0,
        };
        // SAFETY: all pointers are to live values with the headers' types. The library writes only within them, and
        // gives a string from malloc or null.
        let (code, full_name) = unsafe {
            let code = (self.functions.get_os_event_encoding)(
                name.as_ptr(),
                IN_KERNEL_AND_USER_MODE,
                FOR_PERF_EVENTS,
                &mut argument,
            );
            let whole = text(full_name);
            libc::free(full_name.cast());
            (code, whole)
        };
        self.check(code)?;
        let attributes = &room.attributes;
        let modes = match (attributes.exclude_user(), attributes.exclude_kernel()) {
            (0, 0) => Modes::All,
            (0, _) => Modes::User,
            (_, 0) => Modes::Kernel,
            _ => {
                return Err(PfmError {
                    code,
                    message: "the event excludes both user mode and kernel mode".to_owned(),
                });
            }
        };
        // SAFETY: every variant of these unions is a 64-bit number.
        let (config1, config2) =
            unsafe { (attributes.__bindgen_anon_3.config1, attributes.__bindgen_anon_4.config2) };
        let encoding =
            Encoding { kind: attributes.type_, config: [attributes.config, config1, config2], modes };
        Ok((encoding, full_name))
    }

    /// The unit masks of the event at the start of a name.
    pub fn masks_of(&self, name: &str) -> Vec<String> {
        let (table, event) = name.split_once("::").map_or(("", name), |(table, event)| (table, event));
        let event = event.split(':').next().unwrap_or_default();
        let name = if table.is_empty() { event.to_owned() } else { format!("{table}::{event}") };
        let Ok(name) = CString::new(name) else { return Vec::new() };
        // SAFETY: the pointer is to a live string.
        let index = unsafe { (self.functions.find_event)(name.as_ptr()) };
        let info = if index < 0 { None } else { self.event(index) };
        info.map_or(Vec::new(), |info| self.masks(&info).into_iter().map(|(mask, _)| mask).collect())
    }

    /// The events of all tables for this processor.
    pub fn events(&self) -> Vec<PfmEvent> {
        let mut all = Vec::new();
        for pmu in 0..MOST_PMUS {
            let Some(info) = self.pmu(pmu) else { continue };
            // SAFETY: the name is a constant string of the library.
            let table = unsafe { text(info.name) };
            // pmmpi knows the kernel's own names without these tables.
            if info.flags & 1 == 0 || matches!(table.as_str(), "perf" | "perf_raw") {
                continue;
            }
            let mut index = info.first_event;
            while index >= 0 {
                if let Some(event) = self.event(index) {
                    // SAFETY: both are constant strings of the library.
                    let (name, description) = unsafe { (text(event.name), text(event.description)) };
                    let name = format!("{table}::{name}");
                    all.push(PfmEvent { name, description, masks: self.masks(&event) });
                }
                // SAFETY: the function accepts any number.
                index = unsafe { (self.functions.get_event_next)(index) };
            }
        }
        all
    }

    fn pmu(&self, pmu: c_int) -> Option<PmuInfo> {
        let mut info = PmuInfo {
            name: std::ptr::null(),
            description: std::ptr::null(),
            size: size_of::<PmuInfo>(),
            pmu: 0,
            kind: 0,
            events: 0,
            first_event: -1,
            max_encoding: 0,
            counters: 0,
            fixed_counters: 0,
            flags: 0,
        };
        // SAFETY: the field `size` is the size of the structure.
        (unsafe { (self.functions.get_pmu_info)(pmu, &mut info) } == SUCCESS).then_some(info)
    }

    fn event(&self, index: c_int) -> Option<EventInfo> {
        let mut info = EventInfo {
            name: std::ptr::null(),
            description: std::ptr::null(),
            equivalent: std::ptr::null(),
            size: size_of::<EventInfo>(),
            code: 0,
            pmu: 0,
            data_type: 0,
            index: 0,
            attributes: 0,
            reserved: 0,
            flags: 0,
        };
        // SAFETY: as above.
        let code = unsafe { (self.functions.get_event_info)(index, FOR_PERF_EVENTS, &mut info) };
        (code == SUCCESS).then_some(info)
    }

    fn masks(&self, event: &EventInfo) -> Vec<(String, String)> {
        let mask = |number| {
            let mut info = AttributeInfo {
                name: std::ptr::null(),
                description: std::ptr::null(),
                equivalent: std::ptr::null(),
                size: size_of::<AttributeInfo>(),
                code: 0,
                kind: 0,
                index: 0,
                control: 0,
                flags: 0,
                default: 0,
            };
            // SAFETY: as above; the strings are constants of the library.
            unsafe {
                let code =
                    (self.functions.get_event_attr_info)(event.index, number, FOR_PERF_EVENTS, &mut info);
                (code == SUCCESS && info.kind == UNIT_MASK).then(|| (text(info.name), text(info.description)))
            }
        };
        (0..event.attributes).filter_map(mask).collect()
    }
}

/// # Safety
/// `string` must be a C string or null.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees a C string.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}
