//! The standard form: the bits of a key lie anywhere, most in cache lines of their own.
//!
//! A single look-up stops at the first bit that is not set: of an absent key the second, in the mean, when half of the bits are set. Batches are in `batch/probes.rs`.
//!
//! An insert looks whether the key is in already: then it writes nothing, and takes no line away from others that read it. Else it sets all bits, whether they were set or not: a branch for
//! each would be mispredicted every second time when the filter is full, which takes longer than a locked instruction.

use super::shape::{NEXT_PROBE, Shape};
use crate::{
    batch::{self, Backend, Probes},
    table::Table,
};

/// The word of a bit, and the bit in it.
#[inline(always)]
fn place(bit: u64) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// Sets the bits of a key; how many were not set.
#[inline]
pub(super) fn insert(table: &Table, shape: &Shape, mixed: u64) -> u32 {
    if contains(table, shape, mixed) {
        return 0;
    }
    let words = table.words();
    shape.probes(mixed).fold(0, |set, bit| {
        let (word, bit) = place(bit);
        set + u32::from(words[word].set_bits(bit) & bit == 0)
    })
}

#[inline]
pub(super) fn contains(table: &Table, shape: &Shape, mixed: u64) -> bool {
    let words = table.words();
    shape.probes(mixed).all(|bit| {
        let (word, bit) = place(bit);
        words[word].load_alone() & bit != 0
    })
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

/// On a backend that has to be available.
pub(super) fn insert_batch(backend: Backend, table: &Table, shape: &Shape, cached: bool, hashes: &[u64]) {
    batch::insert_bits(backend, probes(table, shape, cached), hashes);
}

fn probes<'a>(table: &'a Table, shape: &Shape, cached: bool) -> Probes<'a> {
    Probes { table, cached, key: shape.key(), factor: NEXT_PROBE, count: shape.probes }
}
