//! From a 64-bit hash to a class: home bucket, fingerprint, and back and forth between home and away.
//!
//! 1. The hash is remixed with the seed, so that sequential integers, hashes with only high bits and hashes from a
//!    weak function are as good as random ones.
//! 2. The home bucket is the high half of `remixed * buckets` (Lemire's multiply-shift reduction): any bucket count works.
//! 3. The fingerprint is the low half of the remixed hash reduced to `1..=2^bits - 1` in the same way.
//! 4. The away bucket is `(H(fingerprint) - home) mod buckets`, the same function in both directions: it is its own
//!    inverse for any bucket count. `H` depends on the fingerprint alone, so a stored fingerprint is enough to move it.
//!
//! Everything is built from shifts, exclusive or, additions and multiplications, so that a batch computes it in vectors.

use crate::word::Layout;

/// The most buckets that a table can have: bucket numbers fit 32 bits.
pub(crate) const MAX_BUCKETS: u64 = u32::MAX as u64;

/// The remixing constant of Degski's 64-bit mixer (`x ^= x >> 32` around two multiplications).
const REMIX: u64 = 0xd6e8_feb8_6659_fd93;

/// Where a key belongs. Keys of equal class cannot be told apart by the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    pub(crate) home: usize,
    pub(crate) fingerprint: u32,
}

/// The numbers that turn hashes into classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    buckets: u64,
    fingerprints: u64,
    seed: u64,
    /// The seed, mixed: neighbouring seeds give unrelated tables.
    key: u64,
}

impl Geometry {
    pub(crate) const fn new(buckets: usize, layout: Layout, seed: u64) -> Self {
        assert!(buckets > 0 && buckets as u64 <= MAX_BUCKETS);
        Self {
            buckets: buckets as u64,
            fingerprints: layout.fingerprints() as u64,
            seed,
            key: mix(seed ^ 0x9e37_79b9_7f4a_7c15),
        }
    }

    pub(crate) const fn buckets(&self) -> usize {
        self.buckets as usize
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The class of a key with this hash.
    #[inline(always)]
    pub(crate) const fn class(&self, hash: u64) -> Class {
        let mixed = mix(hash ^ self.key);
        let home = (mixed as u128 * self.buckets as u128) >> 64;
        let fingerprint = 1 + ((mixed as u32 as u64 * self.fingerprints) >> 32);
        Class { home: home as usize, fingerprint: fingerprint as u32 }
    }

    /// The other candidate bucket of a fingerprint that sits in `bucket`.
    #[inline(always)]
    pub(crate) const fn other(&self, bucket: usize, fingerprint: u32) -> usize {
        let spread = (self.spread(fingerprint) * self.buckets) >> 32;
        let difference = spread.wrapping_sub(bucket as u64);
        let wrapped = if spread < bucket as u64 { difference.wrapping_add(self.buckets) } else { difference };
        wrapped as usize
    }

    /// The fingerprint spread over 32 bits: a quadratic permutation (even times the square, odd times the value).
    ///
    /// A mere multiplication spreads as evenly, but the difference of two products depends on the difference of the fingerprints
    /// alone; then few buckets can be reached by a chain of relocations, and large tables with 9-bit fingerprints take 1% less.
    #[inline(always)]
    const fn spread(&self, fingerprint: u32) -> u64 {
        let slope = fingerprint.wrapping_mul(0x9e37_79b2).wrapping_add(0x85eb_ca77);
        fingerprint.wrapping_mul(slope) as u64
    }
}

#[inline(always)]
const fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(REMIX);
    x ^= x >> 32;
    x = x.wrapping_mul(REMIX);
    x ^ x >> 32
}
