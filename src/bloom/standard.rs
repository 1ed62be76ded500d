//! The standard form: the bits of a key lie anywhere, most in cache lines of their own.
//!
//! A single look-up stops at the first bit that is not set: of an absent key the second, in the mean, when half of the bits are set. Batches are in `batch/probes.rs`.
//!
//! An insert looks for the first bit that is not set. If there is none it writes nothing, and takes no line away from others that read it. Else it sets that bit and all that follow, whether they were
//! set or not: a branch for each would be mispredicted every second time when the filter is full, which takes longer than a locked instruction.

use core::iter;

use super::shape::{NEXT_PROBE, Shape};
use crate::{
    batch::{self, Backend, Probes},
    sync::AtomicWord,
    table::Table,
};

/// Keys whose words are asked for together.
const INSERTED: usize = 16;

/// The word of a bit, and the bit in it.
#[inline(always)]
fn place(bit: u64) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

#[inline(always)]
fn is_set(words: &[AtomicWord], bit: u64) -> bool {
    let (word, bit) = place(bit);
    words[word].load_alone() & bit != 0
}

/// Sets the bits of a key; how many were not set.
#[inline]
pub(super) fn insert(table: &Table, shape: &Shape, mixed: u64) -> u32 {
    let words = table.words();
    let mut probes = shape.probes(mixed);
    let Some(first) = probes.find(|bit| !is_set(words, *bit)) else { return 0 };
    iter::once(first).chain(probes).fold(0, |set, bit| {
        let (word, bit) = place(bit);
        set + u32::from(words[word].set_bits(bit) & bit == 0)
    })
}

#[inline]
pub(super) fn contains(table: &Table, shape: &Shape, mixed: u64) -> bool {
    let words = table.words();
    shape.probes(mixed).all(|bit| is_set(words, bit))
}

/// Answers for each hash, on a backend that has to be available.
pub(super) fn contains_batch(
    backend: Backend,
    table: &Table,
    shape: &Shape,
    cached: bool,
    hashes: &[u64],
    found: &mut [bool],
) {
    batch::contains_bits(backend, probes(table, shape, cached), hashes, found);
}

/// Sets the bits of each hash. In memory the words of several are asked for together.
pub(super) fn insert_batch(table: &Table, shape: &Shape, cached: bool, hashes: &[u64]) {
    for hashes in hashes.chunks(INSERTED) {
        let mixed = hashes.iter().map(|hash| shape.mixed(*hash));
        if !cached {
            mixed.clone().flat_map(|mixed| shape.probes(mixed)).for_each(|bit| table.prefetch(place(bit).0));
        }
        mixed.for_each(|mixed| _ = insert(table, shape, mixed));
    }
}

fn probes<'a>(table: &'a Table, shape: &Shape, cached: bool) -> Probes<'a> {
    Probes { table, cached, key: shape.key(), factor: NEXT_PROBE, count: shape.probes }
}
