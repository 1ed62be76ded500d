//! The older relatives of the cuckoo filter: Bloom filters, for comparison, and for what they do better.
//!
//! | | takes | grows | removes | counts |
//! |---|---|---|---|---|
//! | [`BloomFilter`] | any number of keys, at a rate that rises | no | no | no |
//! | [`CountingBloomFilter`] | likewise, in 2 to 8 times the memory | no | yes | up to the maximum of a counter |
//! | [`ScalableBloomFilter`] | thousands of times its capacity, at the rate asked for | by layers | no | no |
//! | [`ScalableCountingBloomFilter`] | likewise | by layers | unless it is ambiguous | in all layers |
//! | [`CuckooFilter`](crate::CuckooFilter) | its capacity, then refuses | no | yes | copies |
//! | `GrowableCuckooFilter` | its largest capacity, then refuses | one table | yes | copies |
//!
//! All work through `&self` from any number of threads, wait for nobody (those that remove: but for snapshots that are being taken), and have the same hashing, seeds, batches and conventions. [`MembershipFilter`] is what they have in common.
//! `docs/choosing.md` in the repository says which is for what, with measurements.
//!
//! # Orderings
//!
//! A key is found if each of its bits is set (or each of its counters above 0), and that is a matter of one word at a time. Every change of a word is a read-modify-write, so all threads agree
//! on the order of its values; a thread that learns of an insert reads, of each word, the value that the insert left there, or that it found there with the bit set already, or a later one
//! (coherence). Bits that are set stay set; why counters stay above 0 is said in `src/bloom/counters.rs`. So Relaxed accesses are enough for "no false negatives". They order nothing else: that
//! a key is found does not make visible what its inserter did before, as it does in a cuckoo filter.
//!
//! # Papers
//!
//! - Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970;
//! - Fan, Cao, Almeida and Broder, "Summary cache: a scalable wide-area web cache sharing protocol", 2000: counters;
//! - Kirsch and Mitzenmacher, "Less hashing, same performance: building a better Bloom filter", 2006: all probes from one hash;
//! - Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007: one cache line for a key;
//! - Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom filters", 2007: layers.

mod bits;
#[allow(unsafe_code, reason = "vector instructions, and vectors of shared words")]
mod blocked;
mod builder;
mod counters;
mod counting;
mod filter;
mod layers;
mod member;
mod methods;
#[cfg(loom)]
#[allow(missing_docs, clippy::missing_panics_doc, reason = "not public: each method is the operation of its name")]
pub(crate) mod model;
mod scalable;
mod scalable_counting;
mod shape;
#[allow(unsafe_code, reason = "the pointer to a layer")]
mod slot;
mod snapshot;
mod standard;

pub use builder::{
    BloomFilterBuilder, CountingBloomFilterBuilder, ScalableBloomFilterBuilder, ScalableCountingBloomFilterBuilder,
};
pub use counting::CountingBloomFilter;
pub use filter::BloomFilter;
pub use member::MembershipFilter;
pub use scalable::ScalableBloomFilter;
pub use scalable_counting::{Removal, ScalableCountingBloomFilter};
