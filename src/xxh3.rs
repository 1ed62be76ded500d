//! The default hasher: XXH3 in its one-shot form, fast on short keys and the same everywhere.

use core::hash::{BuildHasher, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Builds hashers that use XXH3 (64 bits): the default of [`CuckooFilter`](crate::CuckooFilter).
///
/// The hash of a key is the same in every process and on every platform: integers are hashed as little-endian bytes, `usize` and
/// `isize` as 64 bits. (One exception lies in the standard library, which hands *slices of integers* wider than a byte to every
/// hasher as bytes of the machine's own order and width.)
///
/// A key that writes once, such as an integer, hashes to `xxh3_64_with_seed(bytes, seed)`. A key that writes several times (a
/// string writes its bytes and then the byte `0xff`) chains: each write is hashed with the hash so far as its seed. There is no
/// streaming state of some hundred bytes to set up.
///
/// XXH3 is not made to withstand keys chosen by an adversary who can compute it; for those use
/// [`std::hash::RandomState`](https://doc.rust-lang.org/std/hash/struct.RandomState.html) as the hasher of the filter.
///
/// ```
/// use std::hash::BuildHasher;
/// use koel::Xxh3;
///
/// assert_eq!(Xxh3::new().hash_one(42_usize), Xxh3::new().hash_one(42_u64));
/// assert_ne!(Xxh3::new().hash_one(42_u64), Xxh3::with_seed(1).hash_one(42_u64));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xxh3 {
    seed: u64,
}

impl Xxh3 {
    /// With seed 0.
    ///
    /// ```
    /// assert_eq!(koel::Xxh3::new(), koel::Xxh3::with_seed(0));
    /// ```
    pub const fn new() -> Self {
        Self::with_seed(0)
    }

    /// With the given seed. A filter remixes every hash with a seed of its own, so few users need another one here.
    ///
    /// ```
    /// assert_ne!(koel::Xxh3::with_seed(1), koel::Xxh3::with_seed(2));
    /// ```
    pub const fn with_seed(seed: u64) -> Self {
        Self { seed }
    }
}

impl Xxh3 {
    /// The seed, as it was given.
    ///
    /// ```
    /// assert_eq!(koel::Xxh3::with_seed(5).seed(), 5);
    /// ```
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

impl BuildHasher for Xxh3 {
    type Hasher = Xxh3Hasher;

    #[inline]
    fn build_hasher(&self) -> Xxh3Hasher {
        Xxh3Hasher { hash: self.seed }
    }
}

/// The hasher that [`Xxh3`] builds.
#[derive(Clone, Debug)]
pub struct Xxh3Hasher {
    /// The hash of all that was written so far, the seed of what follows.
    hash: u64,
}

macro_rules! write_little_endian {
    ($($method:ident: $integer:ty => $as:ty),* $(,)?) => {
        $(#[inline]
        fn $method(&mut self, integer: $integer) {
            self.write(&(integer as $as).to_le_bytes());
        })*
    };
}

impl Hasher for Xxh3Hasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.hash = xxh3_64_with_seed(bytes, self.hash);
    }

    write_little_endian! {
        write_u16: u16 => u16, write_u32: u32 => u32, write_u64: u64 => u64, write_u128: u128 => u128, write_usize: usize => u64,
        write_i16: i16 => i16, write_i32: i32 => i32, write_i64: i64 => i64, write_i128: i128 => i128, write_isize: isize => i64,
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use core::hash::BuildHasher;

    use super::Xxh3;

    /// Values that another implementation (Python's `xxhash`, chained by hand) gave. They may never change: filters outlive their process.
    #[test]
    fn golden_hashes() {
        let xxh3 = Xxh3::new();
        assert_eq!(xxh3.hash_one(0_u64), 0xc77b_3abb_6f87_acd9);
        assert_eq!(xxh3.hash_one(0_u64), xxhash_rust::xxh3::xxh3_64(&[0; 8]));
        assert_eq!(xxh3.hash_one(1_usize), xxh3.hash_one(1_u64));
        assert_eq!(xxh3.hash_one(-1_isize), xxh3.hash_one(-1_i64));
        assert_eq!(xxh3.hash_one("koel"), 0xf55f_7a00_de8f_25de);
        assert_eq!(xxh3.hash_one((1_u8, 2_u32, "x")), 0xcfb4_41f7_8e1a_9091);
    }

    #[test]
    fn borrowed_forms_hash_alike() {
        let xxh3 = Xxh3::with_seed(7);
        assert_eq!(xxh3.hash_one("key"), xxh3.hash_one(alloc::string::String::from("key")));
        assert_eq!(xxh3.hash_one([1_u8, 2].as_slice()), xxh3.hash_one(alloc::vec![1_u8, 2]));
    }
}
