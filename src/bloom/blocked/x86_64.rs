//! Lines as two vectors of AVX2, or as one of AVX-512.
//!
//! The methods use instructions that not every processor has; their types are private to this module, and only [`look_up_avx2`] and [`look_up_avx512`] name them, into which the
//! generic algorithm is inlined as a whole.

use core::arch::{asm, x86_64::*};

use super::{Look, Words};
use crate::{bloom::shape::Shape, table::Table};

#[target_feature(enable = "avx2")]
pub(super) fn look_up_avx2(table: &Table, shape: &Shape, cached: bool, hashes: &[u64], found: &mut [bool]) {
    super::look_up::<Avx2>(table, shape, cached, hashes, found);
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn look_up_avx512(table: &Table, shape: &Shape, cached: bool, hashes: &[u64], found: &mut [bool]) {
    super::look_up::<Avx512>(table, shape, cached, hashes, found);
}

struct Avx2;
struct Avx512;

/// Reads a line. It may be torn, see `blocked`. That it reads memory is all that the compiler has to know: it orders nothing (`bloom`, "Orderings").
#[inline]
#[target_feature(enable = "avx2")]
fn load_avx2(words: &Words) -> [__m256i; 2] {
    let (low, high);
    // SAFETY: reads the 64 bytes of the words.
    unsafe {
        asm!(
            "vmovdqu {low:y}, [{base}]",
            "vmovdqu {high:y}, [{base} + 32]",
            base = in(reg) words.as_ptr(),
            low = out(ymm_reg) low,
            high = out(ymm_reg) high,
            options(nostack, preserves_flags, readonly),
        );
    }
    [low, high]
}

/// As [`load_avx2`].
#[inline]
#[target_feature(enable = "avx512f")]
fn load_avx512(words: &Words) -> __m512i {
    let line;
    // SAFETY: reads the 64 bytes of the words.
    unsafe {
        asm!(
            "vmovdqu64 {line}, [{base}]",
            base = in(reg) words.as_ptr(),
            line = out(zmm_reg) line,
            options(nostack, preserves_flags, readonly),
        );
    }
    line
}

impl Look for Avx2 {
    #[inline(always)]
    fn all_set(words: &Words, bits: u64) -> bool {
        // SAFETY: only runs where the features were detected, see the module.
        unsafe {
            let [low, high] = load_avx2(words);
            let bits = _mm256_set1_epi64x(bits.cast_signed());
            let (six, one) = (_mm256_set1_epi64x(63), _mm256_set1_epi64x(1));
            let mask = |shifts| _mm256_sllv_epi64(one, _mm256_and_si256(_mm256_srlv_epi64(bits, shifts), six));
            let missing_low = _mm256_andnot_si256(low, mask(_mm256_setr_epi64x(16, 22, 28, 34)));
            let missing_high = _mm256_andnot_si256(high, mask(_mm256_setr_epi64x(40, 46, 52, 58)));
            let missing = _mm256_or_si256(missing_low, missing_high);
            _mm256_testz_si256(missing, missing) != 0
        }
    }
}

impl Look for Avx512 {
    #[inline(always)]
    fn all_set(words: &Words, bits: u64) -> bool {
        // SAFETY: only runs where the features were detected, see the module.
        unsafe {
            let line = load_avx512(words);
            let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
            let which = _mm512_srlv_epi64(_mm512_set1_epi64(bits.cast_signed()), shifts);
            let mask = _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_and_si512(which, _mm512_set1_epi64(63)));
            _mm512_testn_epi64_mask(line, mask) == 0
        }
    }
}
