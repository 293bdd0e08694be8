//! The content of messages. It depends on the pair, the direction and the number. So the receiver notices each
//! flipped bit, and each message in a wrong place.

/// A message or burst of messages.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub channel: u16,
    pub from: u32,
    pub to: u32,
    pub number: u32,
}

const WORD_BYTES: usize = size_of::<u64>();
/// Odd, so that equal words are 2^64 words apart (the golden ratio).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Message {
    /// Its first word.
    pub fn word(self) -> u64 {
        let way = u64::from(self.from) << 32 | u64::from(self.to);
        mix(mix(way) ^ (u64::from(self.channel) << 32 | u64::from(self.number)))
    }

    /// Writes the content.
    pub fn fill(self, bytes: &mut [u8]) {
        let mut word = self.word();
        let (words, rest) = bytes.as_chunks_mut::<WORD_BYTES>();
        for place in words {
            *place = word.to_le_bytes();
            word = word.wrapping_add(STEP);
        }
        rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
    }

    /// The place of the first wrong byte.
    pub fn first_wrong(self, bytes: &[u8]) -> Option<usize> {
        let first = self.word();
        let expected = |at: usize| first.wrapping_add(STEP.wrapping_mul(at as u64)).to_le_bytes();
        let wrong = |(at, bytes): (usize, &[u8])| {
            let expected = expected(at);
            let within = bytes.iter().zip(expected).position(|(byte, expected)| *byte != expected)?;
            Some(at * WORD_BYTES + within)
        };
        bytes.chunks(WORD_BYTES).enumerate().find_map(wrong)
    }
}

/// SplitMix64's output function: each bit of the result depends on each bit of the number. Source: G. L. Steele, D. Lea
/// and C. H. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(STEP);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Message = Message { channel: 3, from: 1, to: 2, number: 9 };

    #[test]
    fn each_flipped_bit_is_found() {
        for length in [0, 1, 8, 13, 64] {
            let mut bytes = vec![0; length];
            MESSAGE.fill(&mut bytes);
            assert_eq!(MESSAGE.first_wrong(&bytes), None);
            for bit in 0..8 * length {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(MESSAGE.first_wrong(&bytes), Some(bit / 8));
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn another_message_or_place_is_wrong() {
        let mut bytes = [0; 64];
        for other in [
            Message { channel: 4, ..MESSAGE },
            Message { from: 2, to: 1, ..MESSAGE },
            Message { number: 10, ..MESSAGE },
            Message { from: 0, ..MESSAGE },
        ] {
            other.fill(&mut bytes);
            assert!(MESSAGE.first_wrong(&bytes).is_some());
        }
        MESSAGE.fill(&mut bytes);
        bytes.rotate_left(8);
        assert_eq!(MESSAGE.first_wrong(&bytes), Some(0));
    }
}
