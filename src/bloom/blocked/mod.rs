//! The blocked form: the bits of a key lie in one cache line, one or two in each of its eight words.
//!
//! A key takes one line from memory, and is looked up with a few vector instructions. The line is the high half of `mixed * lines`; the bits are six bits each of products of the
//! mixed hash with two constants, of which the high bits depend on all of it.
//!
//! # Why vectors may read live lines
//!
//! A line that is being written to is read as a whole in `asm!`, which Rust's memory model does not look into. It may be torn anywhere, even within words, and the answer is right:
//! bits are only ever set, so every part that is read, whenever it is read, has the bits that were set before.

#[cfg(all(target_arch = "aarch64", target_endian = "little", not(loom)))]
mod aarch64;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod x86_64;

use super::shape::{LINE, LINE_FACTORS, Shape};
use crate::{
    batch::{Backend, GROUP},
    hash::mix,
    sync::AtomicWord,
    table::Table,
};

/// The words of a line.
pub(super) type Words = [AtomicWord; LINE];

/// How a backend looks at a line.
pub(super) trait Look {
    /// Whether the bits that six bits each of `bits`, from the highest on, name are set in these words.
    fn all_set(words: &Words, bits: u64) -> bool;
}

/// Which bit of word number `word`.
#[inline(always)]
fn bit(bits: u64, word: usize) -> u64 {
    1 << (bits >> (6 * word + 16) & 63)
}

/// The words as lines.
#[inline(always)]
fn lines(table: &Table) -> &[Words] {
    table.words().as_chunks().0
}

/// The line of a mixed hash: there are fewer than 2<sup>32</sup>, so products of 32 bits do, which vectors have.
#[inline(always)]
fn line(mixed: u64, lines: u64) -> usize {
    let low = ((mixed & 0xffff_ffff) * lines) >> 32;
    (((mixed >> 32) * lines + low) >> 32) as usize
}

/// Sets the bits of a key; how many were not set. Only the words that lack a bit are written to, and which do is found without a branch.
#[inline]
pub(super) fn insert(table: &Table, shape: &Shape, mixed: u64) -> u32 {
    let words = &lines(table)[line(mixed, shape.lines())];
    let mut set = 0;
    for factor in &LINE_FACTORS[..shape.probes as usize / LINE] {
        let bits = mixed.wrapping_mul(*factor);
        let mut missing = words.iter().enumerate().fold(0_u32, |missing, (index, word)| {
            missing | u32::from(word.peek_alone() & bit(bits, index) == 0) << index
        });
        while missing != 0 {
            let index = missing.trailing_zeros() as usize;
            let bit = bit(bits, index);
            // Another thread may have set it in between: it counts for one of them.
            set += u32::from(words[index].set_bits(bit) & bit == 0);
            missing &= missing - 1;
        }
    }
    set
}

#[inline]
pub(super) fn contains(table: &Table, shape: &Shape, mixed: u64) -> bool {
    let words = &lines(table)[line(mixed, shape.lines())];
    LINE_FACTORS[..shape.probes as usize / LINE].iter().all(|factor| Swar::all_set(words, mixed.wrapping_mul(*factor)))
}

/// One word at a time.
struct Swar;

impl Look for Swar {
    #[inline(always)]
    fn all_set(words: &Words, bits: u64) -> bool {
        let missing = words.iter().enumerate().fold(0, |missing, (index, word)| {
            let bit = bit(bits, index);
            missing | (!word.load_alone() & bit)
        });
        missing == 0
    }
}

pub(super) fn insert_batch(table: &Table, shape: &Shape, cached: bool, hashes: &[u64]) {
    let mut mixed = [0; GROUP];
    for hashes in hashes.chunks(GROUP) {
        for (mixed, hash) in mixed.iter_mut().zip(hashes) {
            *mixed = shape.mixed(*hash);
            if !cached {
                table.prefetch(line(*mixed, shape.lines()) * LINE);
            }
        }
        for mixed in &mixed[..hashes.len()] {
            insert(table, shape, *mixed);
        }
    }
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
    assert!(backend.is_available(), "{backend:?} is not available");
    match backend {
        Backend::Swar => look_up::<Swar>(table, shape, cached, hashes, found),
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(loom)))]
        Backend::Neon => aarch64::look_up(table, shape, cached, hashes, found),
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: the backend is available, so the processor has its features.
        Backend::Avx2 => unsafe { x86_64::look_up_avx2(table, shape, cached, hashes, found) },
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: as above.
        Backend::Avx512 => unsafe { x86_64::look_up_avx512(table, shape, cached, hashes, found) },
        #[allow(unreachable_patterns, reason = "which are left depends on the target")]
        Backend::Neon | Backend::Avx2 | Backend::Avx512 => unreachable!("{backend:?} is not available"),
    }
}

/// What the backends wrap.
#[inline(always)]
fn look_up<L: Look>(table: &Table, shape: &Shape, cached: bool, hashes: &[u64], found: &mut [bool]) {
    if shape.probes as usize == LINE {
        look_up_rounds::<L, 1>(table, shape, cached, hashes, found);
    } else {
        look_up_rounds::<L, 2>(table, shape, cached, hashes, found);
    }
}

#[inline(always)]
fn look_up_rounds<L: Look, const ROUNDS: usize>(
    table: &Table,
    shape: &Shape,
    cached: bool,
    hashes: &[u64],
    found: &mut [bool],
) {
    let lines = lines(table);
    let (count, key) = (lines.len() as u64, shape.key());
    let mut mixed = [0; GROUP];
    let mut of_key = [0; GROUP];
    for (hashes, found) in hashes.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
        // Loops that the compiler makes vectors of.
        for (mixed, hash) in mixed.iter_mut().zip(hashes) {
            *mixed = mix(*hash ^ key);
        }
        for (of_key, mixed) in of_key.iter_mut().zip(&mixed) {
            *of_key = line(*mixed, count);
        }
        if !cached {
            of_key[..hashes.len()].iter().for_each(|line| table.prefetch(line * LINE));
        }
        for ((found, mixed), line) in found.iter_mut().zip(&mixed).zip(&of_key) {
            let words = &lines[*line];
            // Without a branch that depends on a key.
            *found = LINE_FACTORS[..ROUNDS]
                .iter()
                .fold(true, |set, factor| set & L::all_set(words, mixed.wrapping_mul(*factor)));
        }
    }
}
