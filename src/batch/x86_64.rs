//! The backends of x86-64: AVX2, four keys at a time, and AVX-512 (F and DQ), eight.
//!
//! # Why the vectors' methods are safe to call
//!
//! They use instructions that not every processor has, so they may only run where that was detected. Their types are private to this
//! module, and only the functions that say `target_feature` name them, into which the generic algorithm is inlined as a whole.
//!
//! # Gathering words that others write
//!
//! A gather is no atomic access in Rust's terms, so it stands in `asm!`, with its default clobber of memory: to the compiler an opaque access
//! that happens where it stands. To the processor it is a load of each 8-byte element; aligned ones are read as a whole (Intel SDM, volume 3,
//! "Guaranteed Atomic Operations"; elements of a gather are separate loads), and x86 never lets a load overtake an older load, which is
//! what Acquire asks for; between the elements of one gather the algorithm needs no order.

use core::arch::{asm, x86_64::*};

#[cfg(feature = "growth")]
use super::TwoTables;
use super::{Probes, Vector};
#[cfg(feature = "growth")]
use crate::words::Live;
use crate::{
    cells::Cells,
    sync::{AtomicU64, AtomicWord},
    words::Readable,
};

#[target_feature(enable = "avx2")]
pub(super) fn look_up_avx2<G: Readable>(cells: &Cells<G>, cached: bool, hashes: &[u64], found: &mut [bool]) {
    super::look_up::<Four, G>(cells, cached, hashes, found);
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn look_up_avx512<G: Readable>(cells: &Cells<G>, cached: bool, hashes: &[u64], found: &mut [bool]) {
    super::look_up::<Eight, G>(cells, cached, hashes, found);
}

#[target_feature(enable = "avx2")]
pub(super) fn look_up_bits_avx2(probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    super::probes::look_up::<Four>(probes, hashes, found);
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn look_up_bits_avx512(probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    super::probes::look_up::<Eight>(probes, hashes, found);
}

#[cfg(feature = "growth")]
#[target_feature(enable = "avx2")]
pub(super) fn look_up_in_two_avx2<G: Live>(
    tables: &TwoTables<'_, G>,
    hashes: &[u64],
    found: &mut [bool],
    again: &dyn Fn(u64) -> bool,
) {
    super::two_tables::look_up::<Four, G>(tables, hashes, found, again);
}

#[cfg(feature = "growth")]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn look_up_in_two_avx512<G: Live>(
    tables: &TwoTables<'_, G>,
    hashes: &[u64],
    found: &mut [bool],
    again: &dyn Fn(u64) -> bool,
) {
    super::two_tables::look_up::<Eight, G>(tables, hashes, found, again);
}

/// Four lanes, AVX2.
#[derive(Clone, Copy)]
struct Four(__m256i);

/// Eight lanes, AVX-512.
#[derive(Clone, Copy)]
struct Eight(__m512i);

/// How many words further on the second table lies, modulo 2<sup>61</sup>: both are aligned to words.
#[cfg(feature = "growth")]
#[inline(always)]
fn distance(first: &[AtomicWord], second: &[AtomicWord]) -> u64 {
    // Exposed: assembly reads the second table by addresses that it makes of the first.
    let (first, second) = (first.as_ptr().expose_provenance(), second.as_ptr().expose_provenance());
    (second.wrapping_sub(first) / size_of::<AtomicWord>()) as u64
}

/// One method that is one intrinsic.
macro_rules! lanewise {
    ($type:ident: $($method:ident($($operand:ident),*) = $intrinsic:expr;)*) => {
        $(#[inline(always)]
        fn $method(self $(, $operand: Self)*) -> Self {
            // SAFETY: only runs where the features were detected, see the module.
            $type(unsafe { $intrinsic(self.0 $(, $operand.0)*) })
        })*
    };
}

impl Four {
    /// The 8-byte elements with these indices.
    ///
    /// # Safety
    ///
    /// All indices are in range of what `base` points to.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn gather(base: *const u8, indices: Self) -> Self {
        let gathered: __m256i;
        // SAFETY: reads 8 bytes within the caller's slice for each lane; the mask is all ones and is consumed.
        unsafe {
            // The mask lies in ymm4 so that the indices never do: QEMU 7.2 takes that for "no index" and reads the first element in every lane.
            asm!(
                "vpcmpeqd ymm4, ymm4, ymm4",
                "vpgatherqq {gathered:y}, [{base} + {indices:y} * 8], ymm4",
                base = in(reg) base,
                indices = in(ymm_reg) indices.0,
                gathered = out(ymm_reg) gathered,
                out("ymm4") _,
                options(nostack, preserves_flags),
            );
        }
        Self(gathered)
    }
}

/// For each set of four lanes: which 32-bit halves to take, so that the lanes of the set stand in front.
const HALVES_TO_FRONT: [[u32; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut lane, mut len) = (0, 0);
        while lane < 4 {
            if set >> lane & 1 != 0 {
                table[set][2 * len] = 2 * lane;
                table[set][2 * len + 1] = 2 * lane + 1;
                len += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
};

impl Vector for Four {
    const LANES: usize = 4;

    lanewise! { Four:
        and(other) = _mm256_and_si256;
        or(other) = _mm256_or_si256;
        xor(other) = _mm256_xor_si256;
        not_and(other) = _mm256_andnot_si256;
        add(other) = _mm256_add_epi64;
        sub(other) = _mm256_sub_epi64;
        mul_low_halves(other) = _mm256_mul_epu32;
    }

    #[inline(always)]
    fn splat(value: u64) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm256_set1_epi64x(value.cast_signed()) })
    }

    #[inline(always)]
    fn load(values: &[u64]) -> Self {
        let values: &[u64; 4] = values.first_chunk().expect("as many values as lanes");
        // SAFETY: as above; 32 readable bytes, of any alignment.
        Self(unsafe { _mm256_loadu_si256(values.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, values: &mut [u64]) {
        let values: &mut [u64; 4] = values.first_chunk_mut().expect("as many values as lanes");
        // SAFETY: as above; 32 writable bytes, of any alignment.
        unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn shift_left<const BITS: u32>(self) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm256_sll_epi64(self.0, _mm_cvtsi32_si128(BITS.cast_signed())) })
    }

    #[inline(always)]
    fn shift_right<const BITS: u32>(self) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(BITS.cast_signed())) })
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn shift_right_by(self, bits: Self) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm256_srlv_epi64(self.0, bits.0) })
    }

    #[inline(always)]
    fn nonzero(self) -> u32 {
        // SAFETY: only runs where the features were detected, see the module.
        let zero =
            unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(self.0, _mm256_setzero_si256()))) };
        !zero.cast_unsigned() & 0xf
    }

    #[inline(always)]
    fn store_some(self, mask: u32, values: &mut [u64]) {
        let halves = &HALVES_TO_FRONT[mask as usize & 0xf];
        // SAFETY: only runs where the features were detected, see the module; 32 readable bytes, of any alignment.
        Self(unsafe { _mm256_permutevar8x32_epi32(self.0, _mm256_loadu_si256(halves.as_ptr().cast())) }).store(values);
    }

    #[inline(always)]
    fn gather_words(words: &[AtomicWord], indices: Self) -> Self {
        // SAFETY: the trait's contract, indices are in range.
        unsafe { Self::gather(words.as_ptr().cast(), indices) }
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn gather_either(first: &[AtomicWord], second: &[AtomicWord], indices: Self, mask: Self) -> Self {
        let indices = indices.add(mask.and(Self::splat(distance(first, second))));
        // SAFETY: the trait's contract, indices are in range of the table that the mask names; that of the second is counted from the first, modulo 2^64, as addresses are.
        unsafe { Self::gather(first.as_ptr().cast(), indices) }
    }

    #[inline(always)]
    fn gather_frozen(words: &[[u8; 8]], indices: Self) -> Self {
        // SAFETY: the trait's contract, indices are in range; an element may lie at any address.
        unsafe { Self::gather(words.as_ptr().cast(), indices) }
    }

    #[inline(always)]
    fn gather_counters(counters: &[AtomicU64], indices: Self) -> Self {
        // SAFETY: the trait's contract, indices are in range.
        unsafe { Self::gather(counters.as_ptr().cast(), indices) }
    }
}

impl Eight {
    /// The 8-byte elements with these indices.
    ///
    /// # Safety
    ///
    /// All indices are in range of what `base` points to.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather(base: *const u8, indices: Self) -> Self {
        let gathered: __m512i;
        // SAFETY: reads 8 bytes within the caller's slice for each lane; the mask is all ones and is consumed.
        unsafe {
            asm!(
                "kxnorw {mask}, {mask}, {mask}",
                "vpgatherqq {gathered} {{{mask}}}, [{base} + {indices} * 8]",
                base = in(reg) base,
                indices = in(zmm_reg) indices.0,
                mask = out(kreg) _,
                gathered = out(zmm_reg) gathered,
                options(nostack, preserves_flags),
            );
        }
        Self(gathered)
    }
}

impl Vector for Eight {
    const LANES: usize = 8;

    lanewise! { Eight:
        and(other) = _mm512_and_si512;
        or(other) = _mm512_or_si512;
        xor(other) = _mm512_xor_si512;
        not_and(other) = _mm512_andnot_si512;
        add(other) = _mm512_add_epi64;
        sub(other) = _mm512_sub_epi64;
        mul_low_halves(other) = _mm512_mul_epu32;
        mul(other) = _mm512_mullo_epi64;
    }

    #[inline(always)]
    fn splat(value: u64) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm512_set1_epi64(value.cast_signed()) })
    }

    #[inline(always)]
    fn load(values: &[u64]) -> Self {
        let values: &[u64; 8] = values.first_chunk().expect("as many values as lanes");
        // SAFETY: as above; 64 readable bytes, of any alignment.
        Self(unsafe { _mm512_loadu_si512(values.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store(self, values: &mut [u64]) {
        let values: &mut [u64; 8] = values.first_chunk_mut().expect("as many values as lanes");
        // SAFETY: as above; 64 writable bytes, of any alignment.
        unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn shift_left<const BITS: u32>(self) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm512_slli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn shift_right<const BITS: u32>(self) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm512_srli_epi64::<BITS>(self.0) })
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn shift_right_by(self, bits: Self) -> Self {
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm512_srlv_epi64(self.0, bits.0) })
    }

    #[inline(always)]
    fn nonzero(self) -> u32 {
        // SAFETY: only runs where the features were detected, see the module.
        u32::from(unsafe { _mm512_test_epi64_mask(self.0, self.0) })
    }

    #[inline(always)]
    fn store_some(self, mask: u32, values: &mut [u64]) {
        // Compressed in a register and stored as a whole: AMD's Zen takes a hundred cycles to compress into memory.
        // SAFETY: only runs where the features were detected, see the module.
        Self(unsafe { _mm512_maskz_compress_epi64(mask as u8, self.0) }).store(values);
    }

    /// Here it is faster to gather them.
    #[inline(always)]
    fn bits(words: &[AtomicWord], places: Self) -> u32 {
        let words = Self::gather_words(words, places.shift_right::<32>());
        // SAFETY: only runs where the features were detected, see the module.
        unsafe {
            // The count modulo 64.
            let bits = _mm512_rorv_epi64(words.0, places.shift_right::<26>().0);
            _mm512_test_epi64_mask(bits, _mm512_set1_epi64(1)).into()
        }
    }

    #[inline(always)]
    fn gather_words(words: &[AtomicWord], indices: Self) -> Self {
        // SAFETY: the trait's contract, indices are in range.
        unsafe { Self::gather(words.as_ptr().cast(), indices) }
    }

    #[cfg(feature = "growth")]
    #[inline(always)]
    fn gather_either(first: &[AtomicWord], second: &[AtomicWord], indices: Self, mask: Self) -> Self {
        let indices = indices.add(mask.and(Self::splat(distance(first, second))));
        // SAFETY: the trait's contract, indices are in range of the table that the mask names; that of the second is counted from the first, modulo 2^64, as addresses are.
        unsafe { Self::gather(first.as_ptr().cast(), indices) }
    }

    #[inline(always)]
    fn gather_frozen(words: &[[u8; 8]], indices: Self) -> Self {
        // SAFETY: the trait's contract, indices are in range; an element may lie at any address.
        unsafe { Self::gather(words.as_ptr().cast(), indices) }
    }

    #[inline(always)]
    fn gather_counters(counters: &[AtomicU64], indices: Self) -> Self {
        // SAFETY: the trait's contract, indices are in range.
        unsafe { Self::gather(counters.as_ptr().cast(), indices) }
    }
}
