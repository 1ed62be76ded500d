//! The standard form: the bits of a key lie anywhere, most in cache lines of their own.
//!
//! A single look-up stops at the first bit that is not set: of an absent key the second, in the mean, when half of the bits are set. A batch looks at the first bits of all its keys
//! without a branch that depends on one, and goes on with the few that are left; in memory the lines of each round are asked for before the first is needed.
//!
//! An insert reads each word before it sets a bit there: a bit that is set already costs no exclusive access to its line, which others may be reading.

use super::shape::{MAX_PROBES, Shape};
use crate::{batch::GROUP, table::Table};

/// Bits that a batch looks at before it sorts out the keys that are absent.
const FIRST: usize = 2;

/// The word of a bit, and the bit in it.
#[inline(always)]
fn place(bit: u64) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// Sets the bits of a key; how many were not set.
#[inline]
pub(super) fn insert(table: &Table, shape: &Shape, mixed: u64) -> u32 {
    let words = table.words();
    shape.probes(mixed).fold(0, |set, bit| {
        let (word, bit) = place(bit);
        // Another thread may set it in between: it counts for one of them.
        let is_new = words[word].peek_alone() & bit == 0 && words[word].set_bits(bit) & bit == 0;
        set + u32::from(is_new)
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

/// Asks for the lines of some probes of a key.
#[inline(always)]
fn prefetch(table: &Table, shape: &Shape, mixed: u64, probes: core::ops::Range<usize>) {
    shape.probes(mixed).skip(probes.start).take(probes.len()).for_each(|bit| table.prefetch(place(bit).0));
}

/// Whether some probes of a key find their bits set, without a branch.
#[inline(always)]
fn all_set(table: &Table, shape: &Shape, mixed: u64, probes: core::ops::Range<usize>) -> bool {
    let words = table.words();
    let bits = shape.probes(mixed).skip(probes.start).take(probes.len());
    bits.fold(true, |set, bit| {
        let (word, bit) = place(bit);
        set & (words[word].load_alone() & bit != 0)
    })
}

pub(super) fn contains_batch(table: &Table, shape: &Shape, cached: bool, hashes: &[u64], found: &mut [bool]) {
    let mut mixed = [0; GROUP];
    let mut left = [0_u8; GROUP];
    let all = MAX_PROBES as usize;
    for (hashes, found) in hashes.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
        for (mixed, hash) in mixed.iter_mut().zip(hashes) {
            *mixed = shape.mixed(*hash);
            if !cached {
                prefetch(table, shape, *mixed, 0..FIRST);
            }
        }
        let mut len = 0;
        for (key, (mixed, found)) in mixed.iter().zip(found.iter_mut()).enumerate() {
            *found = all_set(table, shape, *mixed, 0..FIRST);
            // Written always, kept only if it counts.
            left[len] = key as u8;
            len += usize::from(*found);
        }
        if !cached {
            for key in &left[..len] {
                prefetch(table, shape, mixed[usize::from(*key)], FIRST..all);
            }
        }
        for key in &left[..len] {
            let key = usize::from(*key);
            found[key] = all_set(table, shape, mixed[key], FIRST..all);
        }
    }
}

pub(super) fn insert_batch(table: &Table, shape: &Shape, cached: bool, hashes: &[u64]) {
    // Fewer at a time than look-ups have: all lines of each are asked for.
    const KEYS: usize = GROUP / 4;
    let mut mixed = [0; KEYS];
    for hashes in hashes.chunks(KEYS) {
        for (mixed, hash) in mixed.iter_mut().zip(hashes) {
            *mixed = shape.mixed(*hash);
            if !cached {
                prefetch(table, shape, *mixed, 0..MAX_PROBES as usize);
            }
        }
        for mixed in &mixed[..hashes.len()] {
            insert(table, shape, *mixed);
        }
    }
}
