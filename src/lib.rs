#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[macro_use]
mod mutation;

#[allow(unsafe_code, reason = "vector instructions, and gathers of shared words")]
mod batch;
pub mod bloom;
mod builder;
mod cells;
mod claim;
mod classes;
mod displaced;
mod error;
mod filter;
mod gate;
#[cfg(feature = "growth")]
mod growable;
#[cfg(feature = "growth")]
mod growable_builder;
#[cfg(feature = "growth")]
mod growth;
mod hash;
mod kick;
#[cfg(feature = "mmap")]
#[allow(unsafe_code, reason = "the promise that a mapped file does not change")]
mod mapped;
mod memory;
mod packed;
mod raw;
mod report;
mod seq;
mod shards;
mod sizing;
mod snapshot;
mod stats;
mod sync;
#[allow(unsafe_code, reason = "the allocation of the words")]
mod table;
mod word;
mod words;
mod xxh3;

#[cfg(loom)]
#[doc(hidden)]
pub mod model;

#[doc(hidden)]
pub use batch::Backend;
pub use bloom::MembershipFilter;
pub use builder::CuckooFilterBuilder;
pub use classes::MergeError;
pub use error::{BuildError, InsertError, InsertHashesError};
pub use filter::CuckooFilter;
#[cfg(feature = "growth")]
pub use growable::GrowableCuckooFilter;
#[cfg(feature = "growth")]
pub use growable_builder::GrowableCuckooFilterBuilder;
#[cfg(feature = "mmap")]
pub use mapped::MappedFilter;
pub use report::Stats;
#[cfg(feature = "std")]
pub use snapshot::io::LoadError;
pub use snapshot::{
    error::DecodeError,
    hasher::StableBuildHasher,
    view::{FilterRef, FilterView},
};
pub use xxh3::{Xxh3, Xxh3Hasher};
