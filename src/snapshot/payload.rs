//! The payload: all words, little-endian, with a checksum for each chunk; and what has to hold of the words.

use alloc::boxed::Box;

use xxhash_rust::xxh3::xxh3_64;

use super::{
    Head,
    error::DecodeError,
    header::{Header, Kind},
};
use crate::{
    hash::{Generation, Geometry, Only},
    memory::try_boxed,
    sync::AtomicWord,
    table::{self, Table},
    word::{self, Layout, SATURATED, Tally},
};

/// Bytes of a chunk (the last may have fewer): so many are read before the first damage is noticed.
pub(crate) const CHUNK: usize = 1 << 16;

/// Writes the checksums of a payload, and counts its keys.
pub(crate) fn seal(payload: &[u8], checksums: &mut [u8], layout: Layout) -> u64 {
    let mut keys = Tally::new(layout);
    seal_and(payload, checksums, |word| keys.add(word));
    keys.total()
}

/// Writes the checksums of a payload, and hands over its words.
pub(crate) fn seal_and(payload: &[u8], checksums: &mut [u8], mut take: impl FnMut(u64)) {
    for (chunk, checksum) in payload.chunks(CHUNK).zip(checksums.as_chunks_mut().0) {
        *checksum = xxh3_64(chunk).to_le_bytes();
        words(chunk).for_each(&mut take);
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

/// Checks what holds of the words of any filter that nobody is working on, and what all that it does later relies on: no slot is sealed, none that is displaced could be
/// at home in the same bucket, every displaced count is exact or saturated, and the keys are as many as the header says.
///
/// A wrong displaced count is worse than a key that is missing: keys that come later would be lost by it.
pub(crate) struct Audit<'h> {
    header: &'h Header,
    /// Displaced fingerprints of each home, up to 255.
    displaced: Box<[u8]>,
    geometry: Geometry,
    keys: Tally,
    /// The first bucket that was not looked at yet.
    next: usize,
}

/// Words that are looked at together.
const PART: usize = 256;

impl<'h> Audit<'h> {
    pub(crate) fn new(header: &'h Header) -> Result<Self, DecodeError> {
        let displaced = try_boxed(header.sizes().words()?, || 0)?;
        Ok(Self { header, displaced, geometry: header.geometry(), keys: Tally::new(header.layout), next: 0 })
    }

    /// With a layout that the compiler knows: this takes most of the time of loading.
    fn look_at_part(&mut self, part: &[u64], generation: impl Generation) -> Result<(), DecodeError> {
        match self.header.layout.slots() {
            2 => self.look_at_slots::<2>(part, generation),
            3 => self.look_at_slots::<3>(part, generation),
            4 => self.look_at_slots::<4>(part, generation),
            5 => self.look_at_slots::<5>(part, generation),
            _ => self.look_at_slots::<6>(part, generation),
        }
    }

    #[inline(never)]
    fn look_at_slots<const SLOTS: usize>(
        &mut self,
        part: &[u64],
        generation: impl Generation,
    ) -> Result<(), DecodeError> {
        let layout = const { Layout::new(SLOTS) };
        let geometry = self.geometry;
        let displaced = &mut *self.displaced;
        let mut keys = self.keys;
        // Those that have displaced slots, with their places: without a branch that would be mispredicted for every other word.
        let mut crowded = [(0_u64, 0_u32); PART];
        let (mut len, mut sealed) = (0, 0);
        for (at, word) in part.iter().enumerate() {
            sealed |= layout.sealed_slots(*word);
            keys.add(*word);
            // Written always, kept only if it counts.
            crowded[len] = (*word, at as u32);
            len += usize::from(layout.is_any_displaced(*word));
        }
        self.keys = keys;
        // Their homes, asked for before the first is counted: they lie anywhere.
        let mut homes = [0_u32; PART * *Layout::SLOTS.end()];
        let (mut count, mut single) = (0, None);
        for (word, at) in &crowded[..len] {
            let bucket = self.next + *at as usize;
            let base = generation.base(bucket);
            for slot in layout.displaced(*word) {
                let fingerprint = slot.fingerprint();
                let home = generation.bucket(geometry.other(base, fingerprint), fingerprint);
                if home == bucket {
                    single = single.or(Some((bucket, *word)));
                }
                table::prefetch(&raw const displaced[home]);
                homes[count] = home as u32;
                count += 1;
            }
        }
        if sealed != 0 {
            let at = part.iter().position(|word| layout.has_sealed(*word)).unwrap_or(0);
            let reason = "a slot has the value 1, which only tables have that a filter has left";
            return Err(invalid(self.next + at, part[at], reason));
        }
        if let Some((bucket, word)) = single {
            return Err(invalid(bucket, word, "a displaced fingerprint that has but one bucket"));
        }
        for home in &homes[..count] {
            let count = &mut displaced[*home as usize];
            *count = count.saturating_add(1);
        }
        Ok(())
    }
}

impl Check for Audit<'_> {
    /// Looks at the words of the next buckets.
    fn look_at(&mut self, mut words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        let mut part = [0; PART];
        loop {
            let mut len = 0;
            for (place, word) in part.iter_mut().zip(words.by_ref()) {
                *place = word;
                len += 1;
            }
            if len == 0 {
                return Ok(());
            }
            let part = &part[..len];
            match self.header.kind {
                Kind::Fixed => self.look_at_part(part, Only),
                Kind::Growing => self.look_at_part(part, self.header.generation()),
            }?;
            self.next += len;
        }
    }

    /// Looks at all words once more, now that all displaced fingerprints are counted.
    fn finish(self, words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        for (bucket, (word, displaced)) in words.zip(&*self.displaced).enumerate() {
            let count = word::displaced_count(word);
            if count != u64::from(*displaced) && count != SATURATED {
                return Err(invalid(bucket, word, "the displaced count is neither exact nor 15"));
            }
        }
        let (stored, counted) = (self.header.keys, self.keys.total());
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
