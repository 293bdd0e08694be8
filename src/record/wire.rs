//! The wire form: bytes between ranks and in run files. Only this module uses bincode.
//!
//! Decoding has an upper limit. So a length in damaged or hostile input cannot make this process allocate much more
//! than the input itself is long. Decoding must use every byte.

use bincode::error::DecodeError;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// No gather or run file may be longer. 1,000,000 ranks take about 0.2 GiB of these 4 GiB, and 0.035 GiB more for
/// each region.
pub const LIMIT_BYTES: usize = 1 << 32;

/// An error of encoding or decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

/// Limits on what an input may claim to hold. A limit is part of bincode's types, so there are three fixed ones.
const SMALL: usize = 1 << 24;
const LARGE: usize = 1 << 30;
const LARGEST: usize = LIMIT_BYTES * MOST_PER_BYTE;
/// One byte in wire form may stand for a number of 8 bytes, and bincode counts it as 8.
const MOST_PER_BYTE: usize = 16;

fn config<const LIMIT: usize>() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<LIMIT>()
}

/// The compact binary form of `value`.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    bincode::serde::encode_to_vec(value, config::<LARGEST>()).map_err(|e| WireError(e.to_string()))
}

/// The value from which [`encode`] made `bytes`.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (value, rest) = decode_first(bytes)?;
    end(rest).map(|()| value)
}

/// An error if `rest` is not empty.
pub fn end(rest: &[u8]) -> Result<(), WireError> {
    match rest.len() {
        0 => Ok(()),
        more => Err(WireError(format!("there are {more} bytes more than expected"))),
    }
}

/// The value whose [`encode`]d form is at the start of `bytes`, and the bytes after it.
pub fn decode_first<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), WireError> {
    use bincode::serde::decode_from_slice as read;
    let most = bytes.len().saturating_mul(MOST_PER_BYTE);
    let (value, used) = if most <= SMALL {
        read(bytes, config::<SMALL>())
    } else if most <= LARGE {
        read(bytes, config::<LARGE>())
    } else {
        read(bytes, config::<LARGEST>())
    }
    .map_err(|e| WireError(in_words(e)))?;
    Ok((value, &bytes[used..]))
}

/// What is wrong with the bytes. The library's own text is for programmers.
fn in_words(error: DecodeError) -> String {
    let text = match error {
        DecodeError::UnexpectedEnd { .. } => "the bytes end too early",
        DecodeError::LimitExceeded => "a length is too large for the number of bytes",
        DecodeError::UnexpectedVariant { .. } => "a value is of an unknown kind",
        DecodeError::Utf8 { .. } => "a text is not valid UTF-8",
        // Types of pmmpi say in words why they refuse a value.
        DecodeError::OtherString(why) => return why,
        _ => "a value is not valid",
    };
    text.to_owned()
}

/// Decodes a list of ranks or nodes (`deserialize_with`). For a list, serde reserves 1 MiB at most, and a list that
/// grows is copied several times.
pub fn long_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    /// The claimed length may be wrong. The kernel gives no memory for what is not written.
    const RESERVED_BYTES: usize = 64 << 20;
    struct Items<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let most = RESERVED_BYTES / size_of::<T>().max(1);
            let mut list = Vec::with_capacity(items.size_hint().unwrap_or(0).min(most));
            while let Some(item) = items.next_element()? {
                list.push(item);
            }
            Ok(list)
        }
    }
    from.deserialize_seq(Items(PhantomData))
}

/// Joins several byte strings into one; the inverse is [`split`].
pub fn join(parts: &[Vec<u8>]) -> Result<Vec<u8>, WireError> {
    encode(&parts)
}

/// The inverse of [`join`].
pub fn split(bytes: &[u8]) -> Result<Vec<Vec<u8>>, WireError> {
    decode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_nothing_more() {
        let bytes = encode(&("rank", 7u32)).unwrap();
        assert_eq!(decode::<(String, u32)>(&bytes).unwrap(), ("rank".into(), 7));
        let longer = [&bytes[..], &[0]].concat();
        assert!(decode::<(String, u32)>(&longer).unwrap_err().to_string().contains("there are 1 bytes more"));
        let said = |error: WireError| error.to_string();
        assert_eq!(said(decode::<(String, u32)>(&bytes[..2]).unwrap_err()), "the bytes end too early");
        assert_eq!(said(decode::<Option<u8>>(&[7, 0]).unwrap_err()), "a value is of an unknown kind");
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
