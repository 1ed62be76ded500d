//! The payload: all words, little-endian, with a checksum for each chunk; and what has to hold of the words.

use alloc::boxed::Box;

use xxhash_rust::xxh3::xxh3_64;

use super::{
    error::DecodeError,
    header::{Header, Kind},
};
use crate::{
    hash::{Generation, Geometry, Only},
    memory::try_boxed,
    sync::AtomicWord,
    table::{self, Table},
    word::{self, Layout, SATURATED, Slot},
};

/// Bytes of a chunk (the last may have fewer): so many are read before the first damage is noticed.
pub(crate) const CHUNK: usize = 1 << 16;

/// Writes the checksums of a payload, and counts its keys.
pub(crate) fn seal(payload: &[u8], checksums: &mut [u8], layout: Layout) -> u64 {
    let mut keys = 0;
    for (chunk, checksum) in payload.chunks(CHUNK).zip(checksums.as_chunks_mut().0) {
        *checksum = xxh3_64(chunk).to_le_bytes();
        keys += layout.taken_in(chunk.as_chunks().0, u64::from_le_bytes);
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
    keys: u64,
    /// The first bucket that was not looked at yet.
    next: usize,
    scratch: Scratch,
}

/// Words that are looked at together: their places have eight bits.
const PART: usize = 1 << u8::BITS;

/// Lists of the part that is being looked at. Their ends are written to always and kept only if it counts: a branch would be mispredicted for every other word.
struct Scratch {
    words: [u64; PART],
    /// Places of words that have displaced slots.
    crowded: [u8; PART],
    /// Displaced slots, with the places of their words.
    slots: [(Slot, u32); PART * *Layout::SLOTS.end()],
    /// Their homes.
    homes: [u32; PART * *Layout::SLOTS.end()],
}

impl<'h> Audit<'h> {
    pub(crate) fn new(header: &'h Header) -> Result<Self, DecodeError> {
        let displaced = try_boxed(header.sizes().words()?, || 0)?;
        const MOST: usize = PART * *Layout::SLOTS.end();
        let scratch =
            Scratch { words: [0; PART], crowded: [0; PART], slots: [(Slot::at_home(0), 0); MOST], homes: [0; MOST] };
        Ok(Self { header, displaced, geometry: header.geometry(), keys: 0, next: 0, scratch })
    }

    /// Looks at the words of the next buckets.
    pub(crate) fn look_at(&mut self, mut words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        loop {
            let mut len = 0;
            for (place, word) in self.scratch.words.iter_mut().zip(words.by_ref()) {
                *place = word;
                len += 1;
            }
            if len == 0 {
                return Ok(());
            }
            match self.header.kind {
                Kind::Fixed => self.look_at_part(len, Only),
                Kind::Growing => self.look_at_part(len, self.header.generation()),
            }?;
            self.next += len;
        }
    }

    /// With a layout that the compiler knows: this takes most of the time of loading.
    fn look_at_part(&mut self, len: usize, generation: impl Generation) -> Result<(), DecodeError> {
        match self.header.layout.slots() {
            2 => self.look_at_slots::<2>(len, generation),
            3 => self.look_at_slots::<3>(len, generation),
            4 => self.look_at_slots::<4>(len, generation),
            5 => self.look_at_slots::<5>(len, generation),
            _ => self.look_at_slots::<6>(len, generation),
        }
    }

    #[inline(never)]
    fn look_at_slots<const SLOTS: usize>(
        &mut self,
        len: usize,
        generation: impl Generation,
    ) -> Result<(), DecodeError> {
        let layout = const { Layout::new(SLOTS) };
        let Self { geometry, displaced, next, scratch, .. } = self;
        let words = &scratch.words[..len];
        self.keys += layout.taken_in(words, |word| word);
        let sealed = words.iter().fold(0, |sealed, word| sealed | layout.sealed_slots(*word));
        let mut crowded = 0;
        for (at, word) in words.iter().enumerate() {
            scratch.crowded[crowded] = at as u8;
            crowded += usize::from(layout.is_any_displaced(*word));
        }
        let mut count = 0;
        for at in &scratch.crowded[..crowded] {
            layout.each_displaced(scratch.words[usize::from(*at)], |slot, is_one| {
                scratch.slots[count] = (slot, u32::from(*at));
                count += usize::from(is_one);
            });
        }
        let (geometry, first) = (*geometry, *next);
        let home_of = |slot: Slot, bucket| {
            let fingerprint = slot.fingerprint();
            generation.bucket(geometry.other(generation.base(bucket), fingerprint), fingerprint)
        };
        // Their homes, asked for before the first is counted: they lie anywhere.
        let mut single = false;
        for ((slot, at), home) in scratch.slots[..count].iter().zip(&mut scratch.homes) {
            let bucket = first + *at as usize;
            let found = home_of(*slot, bucket);
            single |= found == bucket;
            table::prefetch(&raw const displaced[found]);
            *home = found as u32;
        }
        if sealed != 0 {
            let reason = "a slot has the value 1, which only tables have that a filter has left";
            return Err(self.invalid_among(len, reason, |_, word| layout.has_sealed(word)));
        }
        if single {
            let reason = "a displaced fingerprint that has but one bucket";
            let is_single = |bucket, word| layout.displaced(word).any(|slot| home_of(slot, bucket) == bucket);
            return Err(self.invalid_among(len, reason, is_single));
        }
        for home in &scratch.homes[..count] {
            let count = &mut displaced[*home as usize];
            *count = count.saturating_add(1);
        }
        Ok(())
    }

    /// The error of the first bucket of this part whose word is wrong.
    #[cold]
    fn invalid_among(&self, len: usize, reason: &'static str, is_wrong: impl Fn(usize, u64) -> bool) -> DecodeError {
        let words = &self.scratch.words[..len];
        let at = (0..len).find(|at| is_wrong(self.next + at, words[*at])).unwrap_or(0);
        invalid(self.next + at, words[at], reason)
    }

    /// Looks at all words once more, now that all displaced fingerprints are counted.
    pub(crate) fn finish(self, words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        for (bucket, (word, displaced)) in words.zip(&*self.displaced).enumerate() {
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
