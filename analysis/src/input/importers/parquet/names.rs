//! Maps the texts of a column to numbers of names, and looks at few of the texts.

use crate::input::importers::building::Building;
use crate::input::importers::row::{NameColumn, WRONG};
use polars::prelude::{Column as Values, DataType, PolarsResult};

/// For each row, the number of its text among the names of `column`. A missing text counts as an empty text.
pub(super) fn numbers(
    values: &Values,
    column: NameColumn,
    building: &mut Building,
) -> PolarsResult<Vec<u32>> {
    map(values, |text| building.number(column, text).unwrap_or(WRONG))
}

/// For each row, the result of `number` for its text. The function may call `number` more than once for a text.
pub(super) fn map(values: &Values, mut number: impl FnMut(&str) -> u32) -> PolarsResult<Vec<u32>> {
    let mut numbers = Vec::with_capacity(values.len());
    let mut cache = Cache::new();
    if values.dtype().is_integer() && *values.dtype() != DataType::UInt64 {
        cache.clear();
        for value in values.cast(&DataType::Int64)?.i64()?.iter() {
            numbers.push(match value {
                Some(value) => cache.get(value as u128, || number(&value.to_string())),
                None => number(""),
            });
        }
        return Ok(numbers);
    }
    if values.dtype().is_float() {
        cache.clear();
        for value in values.cast(&DataType::Float64)?.f64()?.iter() {
            numbers.push(match value {
                Some(value) => cache.get(value.to_bits().into(), || number(&value.to_string())),
                None => number(""),
            });
        }
        return Ok(numbers);
    }
    let values = values.cast(&DataType::String)?;
    let texts = values.str()?;
    for (array, chunk) in texts.downcast_iter().zip(texts.chunks()) {
        // A long text is identified by its position, which is unique only within this array.
        cache.clear();
        let valid = chunk.validity();
        for (row, view) in array.views().iter().enumerate() {
            if valid.is_some_and(|valid| !valid.get_bit(row)) {
                numbers.push(number(""));
                continue;
            }
            numbers.push(cache.get(view.as_u128(), || number(array.value(row))));
        }
    }
    Ok(numbers)
}

/// The numbers of recent texts.
struct Cache {
    slots: Vec<Option<(u128, u32)>>,
    /// Most rows have the text of the row before.
    last: Option<(u128, u32)>,
}

impl Cache {
    /// Large enough for the node names of a large cluster.
    const BITS: u32 = 15;

    fn new() -> Self {
        Self { slots: Vec::new(), last: None }
    }

    fn clear(&mut self) {
        self.last = None;
        self.slots.clear();
        self.slots.resize(1 << Self::BITS, None);
    }

    fn get(&mut self, text: u128, number: impl FnOnce() -> u32) -> u32 {
        if let Some((last, number)) = self.last
            && last == text
        {
            return number;
        }
        // Fibonacci hashing: D. E. Knuth, The Art of Computer Programming 3, 6.4.
        let folded = (text as u64) ^ (text >> 64) as u64;
        let slot = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::BITS);
        let slot = &mut self.slots[slot as usize];
        if slot.is_none_or(|(known, _)| known != text) {
            *slot = Some((text, number()));
        }
        self.last = *slot;
        slot.map_or(0, |(_, number)| number)
    }
}
