//! Fields of a PMU's events: which bits take a value.

/// The bits for a field's value, as a file in `format` lists them: "config:0-7,32-35".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// 0 for config, 1 for config1, 2 for config2.
    word: usize,
    /// Its bits. The lowest bit of the value goes into the lowest of these.
    mask: u64,
}

/// The fields of every PMU, for users who know the code.
pub const WORDS: [&str; 3] = ["config", "config1", "config2"];

impl Field {
    /// From the text of a file in `format`.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.split_once(':')?;
        let word = WORDS.iter().position(|name| *name == word)?;
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && last < 64).then(|| u64::MAX >> (63 - (last - first)) << first)
        };
        let mask = ranges.split(',').try_fold(0, |mask, item| Some(mask | range(item)?))?;
        Some(Self { word, mask })
    }

    /// Writes a value into the field's bits and replaces their content; false if the value does not fit.
    pub fn set(self, config: &mut [u64; 3], value: u64) -> bool {
        let bits = self.mask.count_ones();
        if bits < 64 && value >> bits != 0 {
            return false;
        }
        let (mut left, mut value, mut placed) = (self.mask, value, 0);
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            placed |= if value & 1 == 1 { lowest } else { 0 };
            (left, value) = (left ^ lowest, value >> 1);
        }
        config[self.word] = config[self.word] & !self.mask | placed;
        true
    }

    /// The largest value that fits.
    pub fn largest(self) -> u64 {
        u64::MAX.checked_shr(64 - self.mask.count_ones()).unwrap_or(0)
    }

    /// How many bits it has.
    pub fn bits(self) -> u32 {
        self.mask.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(format: &str, value: u64) -> Option<[u64; 3]> {
        let mut config = [0; 3];
        Field::parse(format).unwrap().set(&mut config, value).then_some(config)
    }

    #[test]
    fn bits_are_where_the_format_says() {
        assert_eq!(written("config:0-7", 0xc0), Some([0xc0, 0, 0]));
        // Event select 0x4E0 of the AMD note: four of its bits lie 24 bits higher.
        assert_eq!(written("config:0-7,32-35", 0x4e0), Some([0x4_0000_00e0, 0, 0]));
        assert_eq!(written("config1:0-63", u64::MAX), Some([0, u64::MAX, 0]));
        assert_eq!(written("config2:63", 1), Some([0, 0, 1 << 63]));
        assert_eq!(written("config:0-7", 0x100), None);
        for bad in
            ["", "config", "config:", "config:8-7", "config:0-64", "config3:0", "config:a", "config:0-7-8"]
        {
            assert_eq!(Field::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_value_that_fits_changes_its_own_bits_and_no_other(
            mask in any::<u64>(), before in any::<u64>(), value in any::<u64>()
        ) {
            let field = Field { word: 1, mask };
            let value = value & field.largest();
            let mut config = [before; 3];
            prop_assert!(field.set(&mut config, value));
            prop_assert_eq!((config[0], config[2], config[1] & !mask), (before, before, before & !mask));
            // Read back bit by bit, by the definition.
            let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
            let read = bits.enumerate().fold(0, |read, (at, bit)| read | (config[1] >> bit & 1) << at);
            prop_assert_eq!(read, value);
        }

        #[test]
        fn no_format_is_too_strange(text in "(config[0-3]?:)?[0-9,:-]{0,20}|.*") {
            let _ = Field::parse(&text);
        }
    }
}
