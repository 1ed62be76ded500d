//! The standard form: the bits of a key lie anywhere, most in cache lines of their own.
//!
//! A single look-up stops at the first bit that is not set: of an absent key the second, in the mean, when half of the bits are set. Batches are in `batch/probes.rs`.
//!
//! An insert reads the words first, and sets only the bits that are missing: a bit that is set already costs no exclusive access to its line, which others may be reading. Which are
//! missing is found without a branch, as every second is when the filter is full.

use super::shape::{NEXT_PROBE, Shape};
use crate::{
    batch::{self, Backend, GROUP, Probes},
    table::Table,
};

/// The word of a bit, and the bit in it.
#[inline(always)]
fn place(bit: u64) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// Probes whose words an insert reads before it sets a bit in one of them.
const AT_ONCE: usize = 8;

/// Sets the bits of a key; how many were not set.
#[inline]
pub(super) fn insert(table: &Table, shape: &Shape, mixed: u64) -> u32 {
    let words = table.words();
    let mut set = 0;
    let mut probes = shape.probes(mixed);
    let mut missing = [0; AT_ONCE];
    let mut left = shape.probes as usize;
    while left > 0 {
        let mut len = 0;
        for bit in probes.by_ref().take(AT_ONCE) {
            // Written always, kept only if it counts.
            missing[len] = bit;
            let (word, bit) = place(bit);
            len += usize::from(words[word].peek_alone() & bit == 0);
        }
        for bit in &missing[..len] {
            let (word, bit) = place(*bit);
            // Another thread, or an equal probe, may have set it in between: it counts once.
            set += u32::from(words[word].set_bits(bit) & bit == 0);
        }
        left -= left.min(AT_ONCE);
    }
    set
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
    let probes = Probes { table, cached, key: shape.key(), factor: NEXT_PROBE, count: shape.probes };
    batch::contains_bits(backend, probes, hashes, found);
}

pub(super) fn insert_batch(table: &Table, shape: &Shape, cached: bool, hashes: &[u64]) {
    // Fewer at a time than look-ups have: all lines of each are asked for.
    const KEYS: usize = GROUP / 4;
    let mut mixed = [0; KEYS];
    for hashes in hashes.chunks(KEYS) {
        for (mixed, hash) in mixed.iter_mut().zip(hashes) {
            *mixed = shape.mixed(*hash);
            if !cached {
                shape.probes(*mixed).for_each(|bit| table.prefetch(place(bit).0));
            }
        }
        for mixed in &mixed[..hashes.len()] {
            insert(table, shape, *mixed);
        }
    }
}
