//! The payload: all words, little-endian, with a checksum for each chunk; and what has to hold of the words.

use xxhash_rust::xxh3::xxh3_64;

use super::{error::DecodeError, header::Header};
use crate::{
    hash::Generation as _,
    memory::try_boxed,
    table::Table,
    word::{self, Layout, SATURATED},
};

/// Bytes of a chunk (the last may have fewer): so many are read before the first damage is noticed.
pub(crate) const CHUNK: usize = 1 << 16;

/// Writes the checksums of a payload, and counts its keys.
pub(crate) fn seal(payload: &[u8], checksums: &mut [u8], layout: Layout) -> u64 {
    let mut keys = 0;
    for (chunk, checksum) in payload.chunks(CHUNK).zip(checksums.as_chunks_mut().0) {
        *checksum = xxh3_64(chunk).to_le_bytes();
        let words = chunk.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        keys += words.map(|word| layout.taken_count(word) as u64).sum::<u64>();
    }
    keys
}

/// Compares a chunk with its checksum in the list.
pub(crate) fn check_chunk(chunk: usize, bytes: &[u8], checksums: &[u8]) -> Result<(), DecodeError> {
    let stored = u64::from_le_bytes(checksums.as_chunks().0[chunk]);
    let computed = xxh3_64(bytes);
    if stored == computed {
        return Ok(());
    }
    Err(DecodeError::ChunkChecksum { chunk: chunk as u64, stored, computed })
}

/// Words that are gone through twice.
pub(crate) trait Readout {
    fn each(&self) -> impl Iterator<Item = u64>;
}

impl Readout for Table {
    fn each(&self) -> impl Iterator<Item = u64> {
        self.words().iter().map(crate::sync::AtomicWord::load)
    }
}

impl Readout for &[[u8; 8]] {
    fn each(&self) -> impl Iterator<Item = u64> {
        self.iter().map(|word| u64::from_le_bytes(*word))
    }
}

/// Checks what holds of the words of any filter that nobody is working on, and what all that it does later relies on: no slot is sealed, none that is displaced could be
/// at home in the same bucket, every displaced count is exact or saturated, and the keys are as many as the header says.
///
/// A wrong displaced count is worse than a key that is missing: keys that come later would be lost by it.
pub(crate) fn audit(header: &Header, words: &impl Readout) -> Result<(), DecodeError> {
    let (layout, geometry, generation) = (header.layout, header.geometry(), header.generation());
    let invalid = |bucket: usize, word, reason| DecodeError::InvalidWord { bucket: bucket as u64, word, reason };
    let mut displaced = try_boxed(header.sizes().words()?, || 0_u8)?;
    let mut keys = 0;
    for (bucket, word) in words.each().enumerate() {
        if layout.has_sealed(word) {
            return Err(invalid(bucket, word, "a slot has the value 1, which only tables have that a filter has left"));
        }
        keys += layout.taken_count(word) as u64;
        if layout.displaced_slots(word) != 0 {
            for slot in layout.taken(word).filter(|slot| slot.is_displaced()) {
                let fingerprint = slot.fingerprint();
                let home = generation.bucket(geometry.other(generation.base(bucket), fingerprint), fingerprint);
                if home == bucket {
                    return Err(invalid(bucket, word, "a displaced fingerprint that has but one bucket"));
                }
                displaced[home] = displaced[home].saturating_add(1);
            }
        }
    }
    for (bucket, (word, displaced)) in words.each().zip(&*displaced).enumerate() {
        let count = word::displaced_count(word);
        if count != u64::from(*displaced) && count != SATURATED {
            return Err(invalid(bucket, word, "the displaced count is neither exact nor 15"));
        }
    }
    if keys == header.keys { Ok(()) } else { Err(DecodeError::WrongKeyCount { stored: header.keys, counted: keys }) }
}
