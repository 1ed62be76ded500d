//! The backend of 64-bit Arm: NEON, two keys at a time. Every such processor has it, so nothing is detected.
//!
//! NEON has no gather: the words are read one by one, as atomics, and put together in a register.

use core::arch::aarch64::*;

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
    super::look_up::<Two, G>(cells, cached, hashes, found);
}

pub(super) fn look_up_bits(probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    super::probes::look_up::<Two>(probes, hashes, found);
}

#[cfg(feature = "growth")]
pub(super) fn look_up_in_two<G: Live>(
    tables: &TwoTables<'_, G>,
    hashes: &[u64],
    found: &mut [bool],
    again: &dyn Fn(u64) -> bool,
) {
    super::two_tables::look_up::<Two, G>(tables, hashes, found, again);
}

/// Two lanes.
#[derive(Clone, Copy)]
struct Two(uint64x2_t);

impl Two {
    #[inline(always)]
    fn new(low: u64, high: u64) -> Self {
        // SAFETY: NEON is part of the target.
        Self(unsafe { vcombine_u64(vcreate_u64(low), vcreate_u64(high)) })
    }

    #[inline(always)]
    fn lanes(self) -> [u64; 2] {
        // SAFETY: NEON is part of the target.
        unsafe { [vgetq_lane_u64::<0>(self.0), vgetq_lane_u64::<1>(self.0)] }
    }
}

/// One method that is one intrinsic.
macro_rules! lanewise {
    ($($method:ident = $intrinsic:ident;)*) => {
        $(#[inline(always)]
        fn $method(self, other: Self) -> Self {
            // SAFETY: NEON is part of the target.
            Self(unsafe { $intrinsic(self.0, other.0) })
        })*
    };
}

impl Vector for Two {
    const LANES: usize = 2;

    lanewise! {
        and = vandq_u64;
        or = vorrq_u64;
        xor = veorq_u64;
        add = vaddq_u64;
        sub = vsubq_u64;
    }

    #[inline(always)]
    fn splat(value: u64) -> Self {
        Self::new(value, value)
    }

    #[inline(always)]
    fn load(values: &[u64]) -> Self {
        Self::new(values[0], values[1])
    }

    #[inline(always)]
    fn store(self, values: &mut [u64]) {
        values[..2].copy_from_slice(&self.lanes());
    }

    #[inline(always)]
    fn not_and(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        Self(unsafe { vbicq_u64(other.0, self.0) })
    }

    #[inline(always)]
    fn shift_left<const BITS: u32>(self) -> Self {
        // SAFETY: NEON is part of the target.
        Self(unsafe { vshlq_u64(self.0, vdupq_n_s64(i64::from(BITS))) })
    }

    #[inline(always)]
    fn shift_right<const BITS: u32>(self) -> Self {
        // SAFETY: NEON is part of the target.
        Self(unsafe { vshlq_u64(self.0, vdupq_n_s64(-i64::from(BITS))) })
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn shift_right_by(self, bits: Self) -> Self {
        // SAFETY: NEON is part of the target.
        Self(unsafe { vshlq_u64(self.0, vnegq_s64(vreinterpretq_s64_u64(bits.0))) })
    }

    #[inline(always)]
    fn mul_low_halves(self, other: Self) -> Self {
        // SAFETY: NEON is part of the target.
        Self(unsafe { vmull_u32(vmovn_u64(self.0), vmovn_u64(other.0)) })
    }

    #[inline(always)]
    fn nonzero(self) -> u32 {
        let [low, high] = self.lanes();
        u32::from(low != 0) | u32::from(high != 0) << 1
    }

    #[inline(always)]
    fn gather_words(words: &[AtomicWord], indices: Self) -> Self {
        let [low, high] = indices.lanes();
        Self::new(words[low as usize].load(), words[high as usize].load())
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn gather_either(first: &[AtomicWord], second: &[AtomicWord], indices: Self, mask: Self) -> Self {
        let load = |index: u64, mask: u64| {
            let words = if mask != 0 { second } else { first };
            words[index as usize].load()
        };
        let ([low, high], [low_mask, high_mask]) = (indices.lanes(), mask.lanes());
        Self::new(load(low, low_mask), load(high, high_mask))
    }

    #[inline(always)]
    fn gather_frozen(words: &[[u8; 8]], indices: Self) -> Self {
        let [low, high] = indices.lanes();
        let load = |index: u64| u64::from_le_bytes(words[index as usize]);
        Self::new(load(low), load(high))
    }

    #[inline(always)]
    fn gather_counters(counters: &[AtomicU64], indices: Self) -> Self {
        let [low, high] = indices.lanes();
        // Acquire: pairs with `Sequences::advance`, as in `Sequences::before`.
        let load = |index: u64| counters[index as usize].load(Ordering::Acquire);
        Self::new(load(low), load(high))
    }
}
