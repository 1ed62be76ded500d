#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod batch;
mod batched;
mod builder;
mod cells;
mod claim;
mod error;
mod filter;
mod hash;
mod kick;
mod memory;
mod raw;
mod report;
mod seq;
mod sizing;
mod stats;
mod sync;
mod table;
mod word;
mod xxh3;

#[cfg(loom)]
#[doc(hidden)]
pub mod model;

#[doc(hidden)]
pub use batch::Backend;
pub use builder::CuckooFilterBuilder;
pub use error::{BuildError, InsertError, InsertHashesError};
pub use filter::CuckooFilter;
pub use report::Stats;
pub use xxh3::{Xxh3, Xxh3Hasher};
