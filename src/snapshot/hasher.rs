//! Hashers whose hashes outlive the process.

use core::hash::BuildHasher;

use super::error::DecodeError;
use crate::Xxh3;

/// A hasher whose hashes are the same in every process, so that a filter can be saved and its keys be found after loading it.
///
/// Whatever the keys write to the hasher has to count the same on every machine: the standard library's `write_u32` and its likes hand over the bytes of an integer in the
/// order of the machine, and those of a `usize` as many as it has, unless the hasher has methods of its own for them, as the one below.
///
/// A snapshot holds the [`ALGORITHM`](Self::ALGORITHM), the [`seed`](Self::seed) and, to be safe from an algorithm that has changed without a new number, a hash
/// that the hasher made; loading fails with [`DecodeError::OtherHasher`] unless all three are right. (What is hashed for it is a `u64`: how other types are hashed it cannot tell.) [`Xxh3`] has an implementation.
/// [`RandomState`](https://doc.rust-lang.org/std/hash/struct.RandomState.html) can have none: its hashes are those of one process, so a filter with it cannot be saved:
///
/// ```compile_fail,E0599
/// let filter = koel::CuckooFilter::<u64>::builder().hasher(std::hash::RandomState::new()).build().unwrap();
/// filter.to_bytes();
/// ```
///
/// # Examples
///
/// FNV-1a, which has no seed:
///
/// ```
/// use std::hash::{BuildHasher, Hasher};
/// use koel::{CuckooFilter, StableBuildHasher};
///
/// #[derive(Clone, Copy)]
/// struct Fnv;
///
/// struct FnvHasher(u64);
///
/// impl Hasher for FnvHasher {
///     fn write(&mut self, bytes: &[u8]) {
///         for byte in bytes {
///             self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
///         }
///     }
///
///     // On machines of any byte order and width the same. (Those for signed integers call these.)
///     fn write_u16(&mut self, integer: u16) {
///         self.write(&integer.to_le_bytes());
///     }
///     fn write_u32(&mut self, integer: u32) {
///         self.write(&integer.to_le_bytes());
///     }
///     fn write_u64(&mut self, integer: u64) {
///         self.write(&integer.to_le_bytes());
///     }
///     fn write_u128(&mut self, integer: u128) {
///         self.write(&integer.to_le_bytes());
///     }
///     fn write_usize(&mut self, integer: usize) {
///         self.write_u64(integer as u64);
///     }
///
///     fn finish(&self) -> u64 {
///         self.0
///     }
/// }
///
/// impl BuildHasher for Fnv {
///     type Hasher = FnvHasher;
///
///     fn build_hasher(&self) -> FnvHasher {
///         FnvHasher(0xcbf2_9ce4_8422_2325)
///     }
/// }
///
/// impl StableBuildHasher for Fnv {
///     const ALGORITHM: u64 = u64::from_be_bytes(*b"FNV-1a64");
///
///     fn from_seed(seed: u64) -> Option<Self> {
///         (seed == 0).then_some(Self)
///     }
/// }
///
/// let filter = CuckooFilter::<u64>::builder().capacity(100).hasher(Fnv).build()?;
/// filter.insert(&7).unwrap();
/// let bytes = filter.to_bytes();
/// assert!(CuckooFilter::<u64, Fnv>::from_bytes(&bytes).unwrap().contains(&7));
/// assert!(CuckooFilter::<u64>::from_bytes(&bytes).is_err(), "not the hasher it was saved with");
/// # Ok::<(), koel::BuildError>(())
/// ```
pub trait StableBuildHasher: BuildHasher + Sized {
    /// A number for the algorithm, which stands for it for ever: for example the first eight letters of its name. Numbers below 2<sup>32</sup> belong to this crate.
    const ALGORITHM: u64;

    /// What the hashes depend on besides the algorithm. It is stored in snapshots: of a secret key, a fingerprint.
    fn seed(&self) -> u64 {
        0
    }

    /// The hasher with this seed, for loading; `None` if there is none, or if it takes more than the seed to make one (then loading needs to be given the hasher).
    fn from_seed(seed: u64) -> Option<Self>;
}

impl StableBuildHasher for Xxh3 {
    const ALGORITHM: u64 = 1;

    fn seed(&self) -> u64 {
        Self::seed(self)
    }

    fn from_seed(seed: u64) -> Option<Self> {
        Some(Self::with_seed(seed))
    }
}

/// What is hashed for [`Id::check`].
const CHECKED: u64 = 0x6b6f_656c;

/// What a snapshot holds of a hasher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) algorithm: u64,
    pub(crate) seed: u64,
    /// The hash of [`CHECKED`].
    pub(crate) check: u64,
}

impl Id {
    pub(crate) fn of<S: StableBuildHasher>(hasher: &S) -> Self {
        Self { algorithm: S::ALGORITHM, seed: hasher.seed(), check: hasher.hash_one(CHECKED) }
    }

    /// Whether a hasher is the one that this stands for.
    pub(crate) fn agrees_with(self, given: Self) -> Result<(), DecodeError> {
        let fields = [
            ("hash algorithm", self.algorithm, given.algorithm),
            ("hash seed", self.seed, given.seed),
            ("hash check", self.check, given.check),
        ];
        match fields.into_iter().find(|(_, stored, given)| stored != given) {
            None => Ok(()),
            Some((field, stored, given)) => Err(DecodeError::OtherHasher { field, stored, given }),
        }
    }
}

/// The hasher that a snapshot was made with.
pub(crate) fn restored<S: StableBuildHasher>(stored: Id) -> Result<S, DecodeError> {
    // The algorithm first: the seed says nothing to another.
    if stored.algorithm != S::ALGORITHM {
        return Err(DecodeError::OtherHasher {
            field: "hash algorithm",
            stored: stored.algorithm,
            given: S::ALGORITHM,
        });
    }
    let hasher = S::from_seed(stored.seed).ok_or(DecodeError::UnknownHashSeed { stored: stored.seed })?;
    stored.agrees_with(Id::of(&hasher))?;
    Ok(hasher)
}

/// A hasher that is given, if it is the one that a snapshot was made with.
pub(crate) fn checked<S: StableBuildHasher>(stored: Id, hasher: S) -> Result<S, DecodeError> {
    stored.agrees_with(Id::of(&hasher))?;
    Ok(hasher)
}
