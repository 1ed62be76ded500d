//! The payload: all words, little-endian, with a checksum for each chunk; and what has to hold of the words.

use xxhash_rust::xxh3::xxh3_64;

use super::{
    Head,
    error::DecodeError,
    header::{Header, Kind},
};
use crate::{
    displaced::{self, Displaced, Single},
    hash::Only,
    sync::AtomicWord,
    table::Table,
    word::{self, Layout, SATURATED},
};

/// Bytes of a chunk (the last may have fewer): so many are read before the first damage is noticed.
pub(crate) const CHUNK: usize = 1 << 16;

/// Writes the checksums of a payload, and counts its keys.
pub(crate) fn seal(payload: &[u8], checksums: &mut [u8], layout: Layout) -> u64 {
    let mut keys = 0;
    seal_and(payload, checksums, |words| keys += layout.taken_in(words, u64::from_le_bytes));
    keys
}

/// Writes the checksums of a payload, and hands over its words, chunk by chunk.
pub(crate) fn seal_and(payload: &[u8], checksums: &mut [u8], mut take: impl FnMut(&[[u8; 8]])) {
    for (chunk, checksum) in payload.chunks(CHUNK).zip(checksums.as_chunks_mut().0) {
        *checksum = xxh3_64(chunk).to_le_bytes();
        take(chunk.as_chunks().0);
    }
}

/// Checks what has to hold of the words.
pub(crate) trait Check {
    /// Looks at the next words.
    fn look_at(&mut self, words: impl Iterator<Item = u64>) -> Result<(), DecodeError>;
    /// Looks at all words once more.
    fn finish(self, words: impl Iterator<Item = u64>) -> Result<(), DecodeError>;
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

/// The words of a chunk.
pub(crate) fn words(chunk: &[u8]) -> impl Iterator<Item = u64> {
    chunk.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// Checks what holds of the words of any filter that nobody is working on, and what all that it does later relies on: no slot is sealed, every fingerprint is in a bucket
/// that its topmost bits choose, none that is displaced could be at home in the same bucket, every displaced count is exact or saturated, and the keys are as many as the header says.
///
/// A wrong displaced count is worse than a key that is missing: keys that come later would be lost by it.
pub(crate) struct Audit<'h> {
    header: &'h Header,
    displaced: Displaced,
    keys: u64,
    /// The first bucket that was not looked at yet.
    next: usize,
}

impl<'h> Audit<'h> {
    pub(crate) fn new(header: &'h Header) -> Result<Self, DecodeError> {
        let displaced = Displaced::new(header.sizes().words()?, header.layout, header.geometry())?;
        Ok(Self { header, displaced, keys: 0, next: 0 })
    }

    fn look_at_part(&mut self, part: &[u64]) -> Result<(), DecodeError> {
        let layout = self.header.layout;
        self.keys += layout.taken_in(part, |word| word);
        if part.iter().fold(0, |sealed, word| sealed | layout.sealed_slots(*word)) != 0 {
            let at = part.iter().position(|word| layout.has_sealed(*word)).unwrap_or(0);
            let reason = "a slot has the value 1, which only tables have that a filter has left";
            return Err(invalid(self.next + at, part[at], reason));
        }
        if self.header.kind == Kind::Growing {
            let doublings = self.header.doublings;
            // Of the bucket number, those that the fingerprint chooses.
            let low = |at: usize| (self.next + at) as u64 & ((1 << doublings) - 1);
            let is_misplaced = |(at, word): (usize, &u64)| layout.has_other_top(*word, doublings, low(at));
            if let Some(at) = part.iter().enumerate().position(is_misplaced) {
                return Err(invalid(
                    self.next + at,
                    part[at],
                    "a fingerprint whose topmost bits choose another bucket",
                ));
            }
        }
        let counted = match self.header.kind {
            Kind::Fixed => self.displaced.count(part, self.next, Only),
            Kind::Growing => self.displaced.count(part, self.next, self.header.generation()),
        };
        counted.map_err(|Single { bucket }| {
            let reason = "a displaced fingerprint that has but one bucket";
            invalid(bucket, part[bucket - self.next], reason)
        })
    }
}

impl Check for Audit<'_> {
    /// Looks at the words of the next buckets.
    fn look_at(&mut self, mut words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        let mut part = [0; displaced::PART];
        loop {
            let mut len = 0;
            for (place, word) in part.iter_mut().zip(words.by_ref()) {
                *place = word;
                len += 1;
            }
            if len == 0 {
                return Ok(());
            }
            self.look_at_part(&part[..len])?;
            self.next += len;
        }
    }

    /// Looks at all words once more, now that all displaced fingerprints are counted.
    fn finish(self, words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        for (bucket, (word, displaced)) in words.zip(self.displaced.counts()).enumerate() {
            let count = word::displaced_count(word);
            if count != u64::from(*displaced) && count != SATURATED {
                return Err(invalid(bucket, word, "the displaced count is neither exact nor 15"));
            }
        }
        let (stored, counted) = (self.header.keys, self.keys);
        if counted == stored { Ok(()) } else { Err(DecodeError::WrongKeyCount { stored, counted }) }
    }
}

fn invalid(bucket: usize, word: u64, reason: &'static str) -> DecodeError {
    DecodeError::InvalidWord { bucket: bucket as u64, word, reason }
}

/// The words of a table that nobody is working on.
pub(crate) fn of_table(table: &Table) -> impl Iterator<Item = u64> {
    table.words().iter().map(AtomicWord::load)
}
