//! Common parts of the JSON readers.

use super::ImportFault;
use serde_json::Value;
use std::io::Read;

/// Reads a whole JSON document.
pub(super) fn document(mut source: impl Read) -> Result<Value, ImportFault> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    value(bytes).map_err(ImportFault::NoJson)
}

/// Parses JSON as Python writes it: `NaN` and `Infinity`, which JSON does not have, become null.
pub(super) fn value(bytes: &[u8]) -> serde_json::Result<Value> {
    let has = |text: &[u8]| memchr::memmem::find(bytes, text).is_some();
    match has(b"NaN") || has(b"Infinity") {
        true => serde_json::from_slice(&without_pythons_own(bytes)),
        false => serde_json::from_slice(bytes),
    }
}

fn without_pythons_own(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut rest, mut quoted) = (bytes, false);
    while let Some((&byte, after)) = rest.split_first() {
        let own =
            [&b"NaN"[..], b"-Infinity", b"Infinity"].into_iter().find(|own| !quoted && rest.starts_with(own));
        if let Some(own) = own {
            out.extend_from_slice(b"null");
            rest = &rest[own.len()..];
            continue;
        }
        out.push(byte);
        rest = after;
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => {
                // An escaped quote does not end a text.
                if let Some((&escaped, after)) = rest.split_first() {
                    out.push(escaped);
                    rest = after;
                }
            }
            _ => {}
        }
    }
    out
}

/// A list in an object.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], ImportFault> {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).ok_or_else(|| ImportFault::OtherForm(format!("`{key}` is not a list")))
}

/// A text in an object; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Seconds since 1970 as nanoseconds.
pub(super) fn unix_ns(seconds: &Value) -> Option<i64> {
    let ns = seconds.as_f64()? * 1e9;
    (ns.is_finite() && ns.abs() < i64::MAX as f64).then_some(ns as i64)
}

/// A time in seconds, from a value in a unit as tools write it. `None` if it is not a unit of time.
pub(super) fn seconds(value: f64, unit: &str) -> Option<f64> {
    match unit.trim() {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(value),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Some(value / 1e3),
        "us" | "µs" | "μs" | "usec" | "usecs" | "microsecond" | "microseconds" => Some(value / 1e6),
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => Some(value / 1e9),
        "min" | "mins" | "minute" | "minutes" => Some(value * 60.0),
        "h" | "hr" | "hour" | "hours" => Some(value * 3600.0),
        _ => None,
    }
}
