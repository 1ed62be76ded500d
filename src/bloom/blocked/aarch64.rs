//! Lines as four vectors of NEON, which every 64-bit Arm processor has.

use core::arch::{aarch64::*, asm};

use super::{Look, Words};
use crate::{bloom::shape::Shape, table::Table};

pub(super) fn look_up(table: &Table, shape: &Shape, cached: bool, hashes: &[u64], found: &mut [bool]) {
    super::look_up::<Neon>(table, shape, cached, hashes, found);
}

struct Neon;

impl Look for Neon {
    #[inline(always)]
    fn all_set(words: &Words, bits: u64) -> bool {
        let base = words.as_ptr();
        let (a, b, c, d): (uint64x2_t, uint64x2_t, uint64x2_t, uint64x2_t);
        // SAFETY: NEON is part of the target. Reads the 64 bytes of the line, see `blocked` for why it may be torn. That it reads memory is all that the compiler has to know: it
        // orders nothing (`bloom`, "Orderings").
        unsafe {
            asm!(
                "ldp {a:q}, {b:q}, [{base}]",
                "ldp {c:q}, {d:q}, [{base}, #32]",
                base = in(reg) base,
                a = out(vreg) a,
                b = out(vreg) b,
                c = out(vreg) c,
                d = out(vreg) d,
                options(nostack, preserves_flags, readonly),
            );
            let bits = vdupq_n_u64(bits);
            let (six, one) = (vdupq_n_u64(63), vdupq_n_u64(1));
            let missing = |words, first: i64| {
                // A shift to the left by a negative number is one to the right.
                let shifts =
                    vcombine_s64(vcreate_s64((-first).cast_unsigned()), vcreate_s64((-first - 6).cast_unsigned()));
                let which = vandq_u64(vshlq_u64(bits, shifts), six);
                vbicq_u64(vshlq_u64(one, vreinterpretq_s64_u64(which)), words)
            };
            let low = vorrq_u64(missing(a, 16), missing(b, 28));
            let all = vorrq_u64(low, vorrq_u64(missing(c, 40), missing(d, 52)));
            vgetq_lane_u64::<0>(all) | vgetq_lane_u64::<1>(all) == 0
        }
    }
}
