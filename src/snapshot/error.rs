//! What can be wrong with bytes that should be a snapshot: which field, what stands there, and why that cannot be.

use core::{error::Error, fmt};

/// Why bytes are not a snapshot that can be used. Each kind names the field at fault, what stands there and what would be right.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Fewer bytes than a header has, or than the header says that there are.
    TooShort {
        /// Bytes that are there.
        len: u64,
        /// Bytes that have to be there.
        expected: u64,
    },
    /// More bytes than the header says that there are.
    TrailingBytes {
        /// Bytes that are there.
        len: u64,
        /// Bytes that the snapshot has.
        expected: u64,
    },
    /// The first eight bytes are not those of a snapshot.
    NotASnapshot {
        /// What they are.
        found: [u8; 8],
    },
    /// A version of the format that this version of the crate does not know.
    UnknownVersion {
        /// The version.
        version: u16,
    },
    /// The checksum of the header is wrong: some byte of it has changed.
    HeaderChecksum {
        /// The checksum that stands there.
        stored: u64,
        /// That of the bytes before it.
        computed: u64,
    },
    /// The checksum of the list of checksums is wrong.
    ListChecksum {
        /// The checksum that stands in the header.
        stored: u64,
        /// That of the list.
        computed: u64,
    },
    /// The checksum of a chunk of the payload is wrong.
    ChunkChecksum {
        /// Which chunk, counted from 0.
        chunk: u64,
        /// The checksum that stands in the list.
        stored: u64,
        /// That of the chunk.
        computed: u64,
    },
    /// A snapshot of a filter of another type.
    OtherKind {
        /// The kind that stands there: 1 does not grow, 2 grows, 3 to 6 are Bloom filters, counting, scalable, and scalable counting ones.
        stored: u8,
        /// The kind that was expected.
        expected: u8,
    },
    /// A field of the header has a value that no filter has.
    InvalidField {
        /// Its name in `docs/format.md`.
        field: &'static str,
        /// The value.
        value: u64,
        /// What it has to be.
        allowed: &'static str,
    },
    /// The false-positive rate is neither 0 (none was asked for) nor a number between 0 and 1.
    InvalidRate {
        /// What stands there.
        rate: f64,
    },
    /// The false-positive rate does not hold at the capacity.
    RateTooLow {
        /// What stands there.
        rate: f64,
        /// The rate at that capacity.
        at_capacity: f64,
    },
    /// The keys were hashed otherwise than by the hasher that is to be used.
    OtherHasher {
        /// What differs: `hash algorithm`, `hash seed` or `hash check`.
        field: &'static str,
        /// What stands there.
        stored: u64,
        /// What the hasher has.
        given: u64,
    },
    /// The type of the hasher cannot make a hasher of this seed: it has to be given.
    UnknownHashSeed {
        /// What stands there.
        stored: u64,
    },
    /// A word that no filter has.
    InvalidWord {
        /// Its bucket.
        bucket: u64,
        /// The word.
        word: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The number of keys is not that of the slots that are taken, or, of a filter of the Bloom family, of its cells.
    WrongKeyCount {
        /// The number that stands in the header.
        stored: u64,
        /// The slots that are taken.
        counted: u64,
    },
    /// The memory could not be allocated.
    Alloc {
        /// Bytes asked of the allocator.
        bytes: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { len, expected } => write!(f, "{len} bytes, where a snapshot has {expected}"),
            Self::TrailingBytes { len, expected } => {
                write!(f, "{len} bytes, of which only {expected} are the snapshot")
            }
            Self::NotASnapshot { found } => {
                write!(f, "not a snapshot of a filter: it begins with {}", found.escape_ascii())
            }
            Self::UnknownVersion { version } => write!(f, "version {version} of the format is not known"),
            Self::HeaderChecksum { stored, computed } => {
                write!(f, "header checksum {stored:#018x}, but the header has {computed:#018x}")
            }
            Self::ListChecksum { stored, computed } => {
                write!(f, "list checksum {stored:#018x}, but the list of checksums has {computed:#018x}")
            }
            Self::ChunkChecksum { chunk, stored, computed } => {
                write!(f, "checksum {stored:#018x} of chunk {chunk}, but the chunk has {computed:#018x}")
            }
            Self::OtherKind { stored, expected } => {
                write!(
                    f,
                    "kind {stored}, where {expected} was expected (1 is a filter that does not grow, 2 one that does, 3 to 6 are the Bloom family)"
                )
            }
            Self::InvalidField { field, value, allowed } => write!(f, "{field} {value}, which has to be {allowed}"),
            Self::InvalidRate { rate } => {
                write!(f, "false-positive rate {rate}, which has to be 0, or greater than 0 and less than 1")
            }
            Self::RateTooLow { rate, at_capacity } => {
                write!(f, "false-positive rate {rate:e}, but at the capacity it is {at_capacity:e}")
            }
            Self::OtherHasher { field, stored, given } => {
                write!(f, "{field} {stored:#x}, but the hasher has {given:#x}: it would not find the keys")
            }
            Self::UnknownHashSeed { stored } => {
                write!(f, "hash seed {stored:#x}, of which the hasher's type cannot make one: it has to be given")
            }
            Self::InvalidWord { bucket, word, reason } => write!(f, "word {word:#018x} of bucket {bucket}: {reason}"),
            Self::WrongKeyCount { stored, counted } => write!(f, "keys {stored}, but {counted} slots are taken"),
            Self::Alloc { bytes } => write!(f, "could not allocate {bytes} bytes"),
        }
    }
}

impl Error for DecodeError {}

impl From<crate::memory::AllocError> for DecodeError {
    fn from(error: crate::memory::AllocError) -> Self {
        Self::Alloc { bytes: error.bytes as u64 }
    }
}

impl From<crate::BuildError> for DecodeError {
    /// Of building a filter whose numbers have been checked only this can fail.
    fn from(error: crate::BuildError) -> Self {
        match error {
            crate::BuildError::Alloc { bytes } => Self::Alloc { bytes: bytes as u64 },
            _ => unreachable!("{error}"),
        }
    }
}
