//! The only place that knows bincode: bytes between ranks and in run files.
//!
//! Decoding takes an upper limit, so that a length in a damaged or hostile input cannot make this
//! process allocate more than that, and every byte must be used.

use serde::{Serialize, de::DeserializeOwned};
use std::fmt;

/// No record, gather or run file may claim more than this (1 GiB: 1,000,000 ranks take about 0.2).
pub const LIMIT_BYTES: usize = 1 << 30;

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<LIMIT_BYTES>()
}

/// The compact binary form of `value`.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    bincode::serde::encode_to_vec(value, config()).map_err(|e| WireError(e.to_string()))
}

/// The value that [`encode`] made `bytes` of.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (value, used) =
        bincode::serde::decode_from_slice(bytes, config()).map_err(|e| WireError(e.to_string()))?;
    all_used(bytes, used)?;
    Ok(value)
}

/// One byte string of the ranks' byte strings; the inverse is [`split`].
pub fn join(parts: &[Vec<u8>]) -> Result<Vec<u8>, WireError> {
    bincode::encode_to_vec(parts, config()).map_err(|e| WireError(e.to_string()))
}

/// The ranks' byte strings again.
pub fn split(bytes: &[u8]) -> Result<Vec<Vec<u8>>, WireError> {
    let (parts, used) = bincode::decode_from_slice(bytes, config()).map_err(|e| WireError(e.to_string()))?;
    all_used(bytes, used)?;
    Ok(parts)
}

fn all_used(bytes: &[u8], used: usize) -> Result<(), WireError> {
    if used == bytes.len() {
        return Ok(());
    }
    Err(WireError(format!("{} bytes follow the {used} that were expected", bytes.len() - used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_nothing_more() {
        let bytes = encode(&("rank", 7u32)).unwrap();
        assert_eq!(decode::<(String, u32)>(&bytes).unwrap(), ("rank".into(), 7));
        let longer = [&bytes[..], &[0]].concat();
        assert!(decode::<(String, u32)>(&longer).unwrap_err().to_string().contains("1 bytes follow"));
        assert!(decode::<(String, u32)>(&bytes[..2]).is_err());
        let parts = vec![vec![1, 2, 3], vec![], vec![255; 300]];
        assert_eq!(split(&join(&parts).unwrap()).unwrap(), parts);
    }

    #[test]
    fn a_claimed_length_is_not_allocated() {
        // A varint length of 2^62 elements.
        let hostile = [253, 0, 0, 0, 0, 0, 0, 0, 64];
        assert!(decode::<Vec<u64>>(&hostile).is_err());
        assert!(split(&hostile).is_err());
    }
}
