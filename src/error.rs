//! What can go wrong, each with the value at fault and the limit that it broke.

use core::{error::Error, fmt};

/// Why a filter could not be built.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The false-positive rate is not a number greater than 0 and less than 1.
    InvalidRate {
        /// The rate asked for.
        rate: f64,
    },
    /// No layout (or not the one asked for) reaches so low a false-positive rate.
    RateTooLow {
        /// The rate asked for.
        rate: f64,
        /// The lowest rate that can be had.
        lowest: f64,
        /// The layout asked for, `None` if any would do.
        slots_per_bucket: Option<usize>,
    },
    /// There is no layout with so many slots in a bucket: 2, 3, 4, 5 or 6.
    InvalidSlotsPerBucket {
        /// The number asked for.
        slots_per_bucket: usize,
    },
    /// There are no counters of so many bits: 2, 4 or 8.
    InvalidCounterBits {
        /// The number asked for.
        bits: u32,
    },
    /// The layers of a scalable filter cannot grow by such a factor: 1 to 1,024.
    InvalidGrowthFactor {
        /// The factor asked for.
        factor: f64,
    },
    /// The rates of the layers of a scalable filter have to fall by a ratio greater than 0 and less than 1.
    InvalidTighteningRatio {
        /// The ratio asked for.
        ratio: f64,
    },
    /// The capacity takes more buckets than a table can have.
    CapacityTooLarge {
        /// The capacity asked for.
        capacity: usize,
        /// The largest capacity with this layout and rate.
        largest: usize,
    },
    /// The initial capacity of a growing filter is above its maximum.
    InitialAboveMax {
        /// The initial capacity asked for.
        initial_capacity: usize,
        /// The maximum asked for.
        max_capacity: usize,
    },
    /// Each doubling of a growing filter doubles its false-positive rate, and no layout has fingerprints long enough for so many.
    GrowthTooFar {
        /// The initial capacity asked for.
        initial_capacity: usize,
        /// The maximum asked for.
        max_capacity: usize,
        /// The rate asked for.
        rate: f64,
        /// The lowest rate that can be had with these capacities, `None` if none can.
        lowest: Option<f64>,
        /// The smallest initial capacity that can be had with this maximum and rate.
        smallest_initial_capacity: usize,
    },
    /// So many of the hashes that a filter is to be built of are alike that they do not find room: they were chosen to be.
    HashesTooAlike {
        /// How many different hashes there are.
        hashes: usize,
        /// Buckets of the largest table that was tried.
        buckets: usize,
    },
    /// The memory could not be allocated.
    Alloc {
        /// Bytes asked of the allocator.
        bytes: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InvalidRate { rate } => {
                write!(f, "false-positive rate {rate} is not greater than 0 and less than 1")
            }
            Self::RateTooLow { rate, lowest, slots_per_bucket: None } => {
                write!(f, "false-positive rate {rate:e} is below {lowest:e}, the lowest that any layout reaches")
            }
            Self::RateTooLow { rate, lowest, slots_per_bucket: Some(slots) } => {
                write!(f, "false-positive rate {rate:e} is below {lowest:e}, the lowest with {slots} slots in a bucket")
            }
            Self::InvalidSlotsPerBucket { slots_per_bucket } => {
                write!(f, "{slots_per_bucket} slots in a bucket, where 2 to 6 are possible")
            }
            Self::InvalidCounterBits { bits } => write!(f, "counters of {bits} bits, where 2, 4 and 8 are possible"),
            Self::InvalidGrowthFactor { factor } => {
                write!(f, "growth factor {factor} is not a number from 1 to 1024")
            }
            Self::InvalidTighteningRatio { ratio } => {
                write!(f, "tightening ratio {ratio} is not greater than 0 and less than 1 (by 2^-32 at least)")
            }
            Self::CapacityTooLarge { capacity, largest } => {
                write!(
                    f,
                    "capacity {capacity} is above {largest}, the largest with this layout and false-positive rate"
                )
            }
            Self::InitialAboveMax { initial_capacity, max_capacity } => {
                write!(f, "the initial capacity {initial_capacity} is above the maximum of {max_capacity}")
            }
            Self::GrowthTooFar { initial_capacity, max_capacity, rate, lowest, smallest_initial_capacity } => {
                write!(
                    f,
                    "no layout holds false-positive rate {rate:e} while growing from {initial_capacity} to {max_capacity} keys; \
                     possible is an initial capacity of {smallest_initial_capacity}"
                )?;
                match lowest {
                    Some(lowest) => write!(f, ", or a rate of {lowest:e}"),
                    None => Ok(()),
                }
            }
            Self::HashesTooAlike { hashes, buckets } => {
                write!(f, "{hashes} hashes do not find room in {buckets} buckets: too many of them are alike")
            }
            Self::Alloc { bytes } => write!(f, "could not allocate {bytes} bytes"),
        }
    }
}

impl Error for BuildError {}

impl From<crate::memory::AllocError> for BuildError {
    fn from(error: crate::memory::AllocError) -> Self {
        Self::Alloc { bytes: error.bytes }
    }
}

/// Why a key could not be inserted. The filter is as it was before: every other key is found, the number of keys is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InsertError {
    /// Both buckets of the key are full, and no chain of relocations within the bounds of the search makes room. (Close to full it may be for the moment: a
    /// relocation of another thread takes one slot more until it is done.)
    Full,
    /// Both buckets of the key hold nothing but copies of its own class, so no relocation makes room for another. (A copy that is just being relocated by another thread counts twice.)
    TooManyCopies,
    /// A growing filter needs a larger table now, and its memory could not be allocated. It goes on with the table that it has.
    Alloc {
        /// Bytes asked of the allocator.
        bytes: usize,
    },
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the filter is full"),
            Self::TooManyCopies => f.write_str("both buckets of this key are filled by copies of it"),
            Self::Alloc { bytes } => write!(f, "could not allocate {bytes} bytes to grow"),
        }
    }
}

impl Error for InsertError {}

/// Why [`insert_hashes`](crate::CuckooFilter::insert_hashes) stopped, and after how many hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct InsertHashesError {
    /// How many hashes, from the first on, went in.
    pub inserted: usize,
    /// Why the next one did not.
    pub error: InsertError,
}

impl fmt::Display for InsertHashesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} hashes: {}", self.inserted, self.error)
    }
}

impl Error for InsertHashesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
