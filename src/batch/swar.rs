//! The portable backend, one key at a time, and the reference for the others.

#[cfg(feature = "growth")]
use super::TwoTables;
use super::{Probes, Vector};
#[cfg(feature = "growth")]
use crate::words::Live;
use crate::{
    cells::Cells,
    sync::{AtomicU64, AtomicWord, Ordering},
    words::Readable,
};

pub(super) fn look_up<G: Readable>(cells: &Cells<G>, cached: bool, hashes: &[u64], found: &mut [bool]) {
    super::look_up::<u64, G>(cells, cached, hashes, found);
}

pub(super) fn look_up_bits(probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    super::probes::look_up::<u64>(probes, hashes, found);
}

#[cfg(feature = "growth")]
pub(super) fn look_up_in_two<G: Live>(
    tables: &TwoTables<'_, G>,
    hashes: &[u64],
    found: &mut [bool],
    again: &dyn Fn(u64) -> bool,
) {
    super::two_tables::look_up::<u64, G>(tables, hashes, found, again);
}

impl Vector for u64 {
    const LANES: usize = 1;

    #[inline(always)]
    fn splat(value: u64) -> Self {
        value
    }

    #[inline(always)]
    fn load(values: &[u64]) -> Self {
        values[0]
    }

    #[inline(always)]
    fn store(self, values: &mut [u64]) {
        values[0] = self;
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn not_and(self, other: Self) -> Self {
        !self & other
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn shift_left<const BITS: u32>(self) -> Self {
        self << BITS
    }

    #[inline(always)]
    fn shift_right<const BITS: u32>(self) -> Self {
        self >> BITS
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn shift_right_by(self, bits: Self) -> Self {
        self >> bits
    }

    #[inline(always)]
    fn mul_low_halves(self, other: Self) -> Self {
        u64::from(self as u32) * u64::from(other as u32)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn nonzero(self) -> u32 {
        u32::from(self != 0)
    }

    #[inline(always)]
    fn gather_words(words: &[AtomicWord], indices: Self) -> Self {
        words[indices as usize].load()
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn gather_either(first: &[AtomicWord], second: &[AtomicWord], indices: Self, mask: Self) -> Self {
        let words = if mask != 0 { second } else { first };
        words[indices as usize].load()
    }

    #[inline(always)]
    fn gather_frozen(words: &[[u8; 8]], indices: Self) -> Self {
        u64::from_le_bytes(words[indices as usize])
    }

    #[inline(always)]
    fn gather_counters(counters: &[AtomicU64], indices: Self) -> Self {
        // Acquire: pairs with `Sequences::advance`, as in `Sequences::before`.
        counters[indices as usize].load(Ordering::Acquire)
    }
}
