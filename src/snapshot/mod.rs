//! Snapshots: a filter as bytes, and back. `docs/format.md` describes them byte by byte, for whoever wants to read them without this crate.
//!
//! - [`header`] has the fixed-size beginning: what the filter is, checked field by field.
//! - [`payload`] has the words, with a checksum for each chunk, and what words can be.
//! - [`view`] looks keys up straight in the bytes.
//! - [`file`](mod@file) puts them into files and gets them from there.
//!
//! # Protocol of taking one
//!
//! 1. Room for all of it is made, and written to, so that no page has to be made while others wait.
//! 2. The gate is closed ([`crate::gate`]): nobody changes more than one word (in a filter that counts, any), and a filter that grows has one table. The words are copied. The gate is opened.
//!    (A filter of bits, which are only ever set, has no gate.)
//! 3. Keys are counted, checksums are made, all in the copy.

pub(crate) mod error;
#[cfg(feature = "std")]
pub(crate) mod file;
pub(crate) mod hasher;
pub(crate) mod header;
#[cfg(feature = "std")]
pub(crate) mod io;
pub(crate) mod methods;
pub(crate) mod payload;
#[cfg(feature = "serde")]
pub(crate) mod serde;
pub(crate) mod view;

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use error::DecodeError;
use header::{HEADER, Sizes};
use payload::Check;

use crate::table::Table;

/// The words of a table are not as many as there is room for: so many are they.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherSize {
    pub(crate) words: usize,
}

/// A header: of a cuckoo filter, or of one of the Bloom family.
pub(crate) trait Head: Sized {
    /// What checks the words.
    type Check<'h>: Check
    where
        Self: 'h;

    /// Reads and checks the header that `bytes` begin with.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>;
    fn sizes(&self) -> Sizes;
    /// The checksum of the list of checksums.
    fn list(&self) -> u64;
    fn check(&self) -> Result<Self::Check<'_>, DecodeError>;
    /// The header's bytes, with what the payload tells of the filter, and the list of checksums.
    fn sealed(self, doublings: u32, payload: &[u8], checksums: &mut [u8]) -> [u8; HEADER];

    /// Whether the list of checksums is the one that belongs to this header.
    fn check_list(&self, checksums: &[u8]) -> Result<(), DecodeError> {
        let (stored, computed) = (self.list(), xxh3_64(checksums));
        if stored == computed { Ok(()) } else { Err(DecodeError::ListChecksum { stored, computed }) }
    }
}

/// What a snapshot is taken of.
pub(crate) trait Source {
    type Head: Head;

    /// What the filter is. What is counted is filled in later.
    fn header(&self) -> Self::Head;
    /// How many words there are now.
    fn words(&self) -> usize;
    /// Copies all words, behind the closed gate; how often the table has doubled.
    fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize>;
}

/// Copies all words of a source, with room made beforehand; how often its table has doubled.
pub(crate) fn copy_after(out: &mut Vec<u8>, source: &impl Source, before: impl Fn(Sizes) -> usize) -> (Sizes, u32) {
    let start = out.len();
    let mut words = source.words();
    loop {
        let sizes = Sizes::of(words as u64);
        let skipped = start + before(sizes);
        // Written to, not only reserved: the pages are there when the gate is closed.
        out.resize(skipped + 8 * words, 0);
        match source.copy(out[skipped..].as_chunks_mut().0) {
            Ok(doublings) => return (sizes, doublings),
            Err(now) => words = now.words,
        }
    }
}

/// Puts a snapshot at the end of `out`.
pub(crate) fn append(source: &impl Source, out: &mut Vec<u8>) {
    let start = out.len();
    let (sizes, doublings) = copy_after(out, source, |sizes| sizes.payload_at());
    let (front, payload) = out[start..].split_at_mut(sizes.payload_at());
    let (head, checksums) = front.split_at_mut(HEADER);
    head.copy_from_slice(&source.header().sealed(doublings, payload, checksums));
}

/// Reads a snapshot that is all of `bytes`: its header, checked, and its words, checked; and what `accept` makes of the header, before anything else is looked at.
pub(crate) fn decode<H: Head, A>(
    bytes: &[u8],
    accept: impl FnOnce(&H) -> Result<A, DecodeError>,
) -> Result<(H, Table, A), DecodeError> {
    let header = H::decode(bytes)?;
    let accepted = accept(&header)?;
    let sizes = header.sizes();
    sizes.check(bytes.len() as u64)?;
    let (front, payload) = bytes.split_at(sizes.payload_at());
    let checksums = &front[HEADER..];
    header.check_list(checksums)?;
    let mut table = Table::to_fill(sizes.words()?)?;
    let mut audit = header.check()?;
    let chunks = payload.chunks(payload::CHUNK).zip(table.words_mut().chunks_mut(payload::CHUNK / 8));
    for (chunk, (bytes, words)) in chunks.enumerate() {
        payload::check_chunk(chunk, bytes, checksums)?;
        words.iter_mut().zip(payload::words(bytes)).for_each(|(word, read)| word.set(read));
        audit.look_at(payload::words(bytes))?;
    }
    audit.finish(payload::of_table(&table))?;
    Ok((header, table, accepted))
}
