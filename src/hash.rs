//! From a 64-bit hash to a class: home bucket, fingerprint, and back and forth between home and away.
//!
//! 1. The hash is remixed with the seed, so that sequential integers, hashes with only high bits and hashes from a
//!    weak function are as good as random ones.
//! 2. The home bucket is the high half of `remixed * buckets` (Lemire's multiply-shift reduction): any bucket count works.
//! 3. The fingerprint is the low half of the remixed hash reduced to `1..=2^bits - 1` in the same way.
//! 4. The away bucket is `(H(fingerprint) - home) mod buckets`, the same function in both directions: it is its own
//!    inverse for any bucket count. `H` depends on the fingerprint alone, so a stored fingerprint is enough to move it.
//!    If the number of buckets is even, as that of every planned table is, `H` is odd: then home and away are never the same.
//!
//! Everything is built from shifts, exclusive or, additions and multiplications, so that a batch computes it in vectors.

use crate::word::Layout;

/// The most buckets that a table can have: bucket numbers fit 32 bits.
pub(crate) const MAX_BUCKETS: u64 = u32::MAX as u64;

/// The remixing constant of Degski's 64-bit mixer (`x ^= x >> 32` around two multiplications).
pub(crate) const REMIX: u64 = 0xd6e8_feb8_6659_fd93;

/// The factors of the spread of fingerprints, a permutation since the first is even and the second odd.
pub(crate) const SPREAD_SQUARE: u32 = 0x9e37_79b2;
pub(crate) const SPREAD_LINEAR: u32 = 0x85eb_ca77;

/// So that the seed 0 is as good as any.
pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where a key belongs. Keys of equal class cannot be told apart by the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    pub(crate) home: usize,
    pub(crate) fingerprint: u32,
}

/// Which table of a filter it is: the bucket of a class in it follows from the base bucket and the fingerprint.
pub(crate) trait Generation: Copy + core::fmt::Debug {
    /// The two factors of the bucket number, see [`Doubled`]; `None` if every base bucket is its own bucket.
    fn factors(self) -> Option<(u64, u64)>;
    /// The bucket of this fingerprint at this base bucket.
    fn bucket(self, base: usize, fingerprint: u32) -> usize;
    /// The base bucket that a bucket belongs to.
    fn base(self, bucket: usize) -> usize;
}

/// The only table of a filter that does not grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Only;

impl Generation for Only {
    #[inline(always)]
    fn factors(self) -> Option<(u64, u64)> {
        None
    }

    #[inline(always)]
    fn bucket(self, base: usize, _fingerprint: u32) -> usize {
        base
    }

    #[inline(always)]
    fn base(self, bucket: usize) -> usize {
        bucket
    }
}

/// The table of a growing filter after some doublings: a bucket number is that of the base bucket, followed by the top bits of the fingerprint.
///
/// So bucket `i` of one table splits into `2 i` and `2 i + 1` of the next, and each doubling spends a bit of the fingerprint. Done with
/// multiplications, which vectors have: `bucket = base * scale + high half of (fingerprint * fraction)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubled {
    doublings: u32,
    /// 2<sup>32</sup> shifted down by the bits of the fingerprint that are not spent.
    fraction: u64,
}

impl Doubled {
    /// Leaves at least one bit of the fingerprint.
    pub(crate) const fn new(layout: Layout, doublings: u32) -> Self {
        let left = layout.fingerprint_bits() - doublings;
        assert!(left > 0);
        Self { doublings, fraction: 1 << (32 - left) }
    }

    #[cfg(feature = "growth")]
    pub(crate) const fn doublings(self) -> u32 {
        self.doublings
    }
}

impl Generation for Doubled {
    #[inline(always)]
    fn factors(self) -> Option<(u64, u64)> {
        Some((1 << self.doublings, self.fraction))
    }

    #[inline(always)]
    fn bucket(self, base: usize, fingerprint: u32) -> usize {
        (base << self.doublings) + ((u64::from(fingerprint) * self.fraction) >> 32) as usize
    }

    #[inline(always)]
    fn base(self, bucket: usize) -> usize {
        bucket >> self.doublings
    }
}

/// The numbers that turn hashes into classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    buckets: u64,
    fingerprints: u64,
    seed: u64,
    /// The seed, mixed: neighbouring seeds give unrelated tables.
    key: u64,
    /// What makes `H` odd: 1 if the number of buckets is even. (If it is odd each fingerprint has a bucket that is its own away bucket, whatever `H` is.)
    odd: u64,
}

impl Geometry {
    pub(crate) const fn new(buckets: usize, layout: Layout, seed: u64) -> Self {
        assert!(buckets > 0 && buckets as u64 <= MAX_BUCKETS);
        let buckets = buckets as u64;
        let odd = 1 - buckets % 2;
        Self { buckets, fingerprints: layout.fingerprints() as u64, seed, key: mix(seed ^ SEED), odd }
    }

    pub(crate) const fn buckets(&self) -> usize {
        self.buckets as usize
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// What `H` is combined with.
    pub(crate) const fn odd(&self) -> u64 {
        self.odd
    }

    /// What hashes are combined with before they are mixed.
    pub(crate) const fn key(&self) -> u64 {
        self.key
    }

    /// The class of a key with this hash.
    #[inline(always)]
    pub(crate) const fn class(&self, hash: u64) -> Class {
        self.class_of_mixed(mix(hash ^ self.key))
    }

    /// What remixes hashes with a seed: one to one, and of two results the larger one has no smaller home.
    pub(crate) fn mixer(seed: u64) -> impl Fn(u64) -> u64 {
        let key = mix(seed ^ SEED);
        move |hash| mix(hash ^ key)
    }

    /// The class of a key whose hash was remixed already.
    #[inline(always)]
    pub(crate) const fn class_of_mixed(&self, mixed: u64) -> Class {
        let home = (mixed as u128 * self.buckets as u128) >> 64;
        let fingerprint = 1 + ((mixed as u32 as u64 * self.fingerprints) >> 32);
        Class { home: home as usize, fingerprint: fingerprint as u32 }
    }

    /// The other candidate bucket of a fingerprint that sits in `bucket`.
    #[inline(always)]
    pub(crate) const fn other(&self, bucket: usize, fingerprint: u32) -> usize {
        let spread = (self.spread(fingerprint) * self.buckets) >> 32 | self.odd;
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
        let slope = fingerprint.wrapping_mul(SPREAD_SQUARE).wrapping_add(SPREAD_LINEAR);
        fingerprint.wrapping_mul(slope) as u64
    }
}

#[inline(always)]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(REMIX);
    x ^= x >> 32;
    x = x.wrapping_mul(REMIX);
    x ^ x >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAYOUTS: [Layout; 5] = [Layout::new(2), Layout::new(3), Layout::new(4), Layout::new(5), Layout::new(6)];

    #[test]
    fn other_is_its_own_inverse_for_every_bucket_count() {
        for buckets in 1..=5000 {
            let layout = LAYOUTS[buckets % LAYOUTS.len()];
            let geometry = Geometry::new(buckets, layout, 0);
            let fingerprints =
                [1, 2, 3, 5, layout.fingerprints() / 2, layout.fingerprints() - 1, layout.fingerprints()];
            for fingerprint in fingerprints {
                for bucket in 0..buckets {
                    let other = geometry.other(bucket, fingerprint);
                    assert!(other < buckets);
                    assert_eq!(geometry.other(other, fingerprint), bucket);
                    assert!(other != bucket || buckets % 2 != 0);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn classes_are_in_range(hash: u64, seed: u64, buckets in 1..=MAX_BUCKETS as usize, layout in 0..LAYOUTS.len()) {
            let layout = LAYOUTS[layout];
            let geometry = Geometry::new(buckets, layout, seed);
            let class = geometry.class(hash);
            prop_assert!(class.home < buckets);
            prop_assert!((1..=layout.fingerprints()).contains(&class.fingerprint));
            let away = geometry.other(class.home, class.fingerprint);
            prop_assert!(away < buckets);
            prop_assert_eq!(geometry.other(away, class.fingerprint), class.home);
            prop_assert!(away != class.home || buckets % 2 != 0);
        }
    }

    /// The spread of fingerprints is a permutation, so that no two of a home share an away bucket more than they must.
    #[test]
    fn fingerprints_spread_without_collision() {
        let geometry = Geometry::new(1, Layout::new(3), 0);
        let mut spread: alloc::vec::Vec<_> = (1..1 << 19).map(|fingerprint| geometry.spread(fingerprint)).collect();
        spread.sort_unstable();
        assert!(spread.windows(2).all(|pair| pair[0] != pair[1]));
    }

    /// Weak hashes are as good as any: sequential ones, and those that differ in few bits, high or low, fill buckets and
    /// fingerprints evenly. Chi-square over 256 cells; 400 is about 6 sigma above the mean of 255.
    #[test]
    fn weak_hashes_are_remixed() {
        let keys = 1 << 16;
        for seed in [0, 1, u64::MAX] {
            let geometry = Geometry::new(1 << 16, Layout::new(4), seed);
            let shifts = (0..=48).step_by(4);
            for weak in shifts.map(|shift| move |key: u64| key << shift) {
                let mut by_home = [0_u32; 256];
                let mut by_fingerprint = [0_u32; 256];
                let mut by_both = [0_u32; 256];
                for class in (0..keys).map(|key| geometry.class(weak(key))) {
                    by_home[class.home >> 8] += 1;
                    by_fingerprint[class.fingerprint as usize >> 6] += 1;
                    by_both[class.home >> 12 << 4 | class.fingerprint as usize >> 10] += 1;
                }
                for cells in [by_home, by_fingerprint, by_both] {
                    let mean = keys as f64 / 256.0;
                    let chi: f64 =
                        cells.iter().map(|cell| (f64::from(*cell) - mean) * (f64::from(*cell) - mean) / mean).sum();
                    assert!(chi < 400.0, "seed {seed}: chi-square {chi}");
                }
            }
        }
    }
}
