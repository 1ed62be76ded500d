//! Where the words of a table are: shared with writers, or frozen in the bytes of a snapshot. Look-ups, single and in batches, are generic over it, so that
//! both are read by the same code.
//!
//! Frozen words never change, so there are no sequence counters to look at: any two looks at one agree.

use crate::{
    hash::{Doubled, Generation, Only},
    memory::AllocError,
    seq::{Sequences, Stripes},
    stats::{Counters, Event},
    sync::{AtomicU64, AtomicWord},
    table::{self, Table},
};

/// What a look-up reads.
pub(crate) trait Words<'a>: Copy + core::fmt::Debug {
    /// The word of a bucket.
    fn load(self, bucket: usize) -> u64;
    /// Asks for the cache line of this word; no effect but speed.
    fn prefetch(self, bucket: usize);
    /// See [`Sequences::before`].
    fn before(self, home: usize) -> u64;
    /// See [`Sequences::after`].
    fn after(self, home: usize) -> u64;
    /// Notes that both words are read again, because the counter has changed in between.
    fn note_retry(self);
    /// All words, to be gathered.
    fn stored(self) -> Stored<'a>;
    /// All counters, to be gathered, and the mask that turns a home bucket into the index of its own; `None` if nothing ever changes.
    fn counters(self) -> Option<(&'a [AtomicU64], usize)>;
}

/// The words of a table in the form in which they lie there. Which it is follows from the type of the table, so that no code is left of the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored<'a> {
    Shared(&'a [AtomicWord]),
    /// Little-endian, at any address.
    Frozen(&'a [[u8; 8]]),
}

impl Stored<'_> {
    #[inline(always)]
    pub(crate) fn load(self, bucket: usize) -> u64 {
        match self {
            Self::Shared(words) => words[bucket].load(),
            Self::Frozen(words) => u64::from_le_bytes(words[bucket]),
        }
    }
}

/// What all tables of a filter have in common: the counters that tell when copies are taken, and those of events.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) sequences: Sequences,
    pub(crate) counters: Counters,
}

impl Common {
    /// For tables of up to so many buckets.
    pub(crate) fn new(stripes: Stripes, buckets: usize) -> Result<Self, AllocError> {
        Ok(Self { sequences: Sequences::new(stripes)?, counters: Counters::for_buckets(buckets)? })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes() + self.counters.memory_bytes()
    }
}

/// The words of a filter's table, with what it has in common with others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) table: &'a Table,
    pub(crate) common: &'a Common,
}

impl<'a> Words<'a> for Shared<'a> {
    #[inline(always)]
    fn load(self, bucket: usize) -> u64 {
        self.stored().load(bucket)
    }

    #[inline(always)]
    fn prefetch(self, bucket: usize) {
        self.table.prefetch(bucket);
    }

    #[inline(always)]
    fn before(self, home: usize) -> u64 {
        self.common.sequences.before(home)
    }

    #[inline(always)]
    fn after(self, home: usize) -> u64 {
        self.common.sequences.after(home)
    }

    fn note_retry(self) {
        self.common.counters.add_rare(Event::ReadAgain);
    }

    #[inline(always)]
    fn stored(self) -> Stored<'a> {
        Stored::Shared(self.table.words())
    }

    #[inline(always)]
    fn counters(self) -> Option<(&'a [AtomicU64], usize)> {
        Some(self.common.sequences.parts())
    }
}

/// The words of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frozen<'a>(pub(crate) &'a [[u8; 8]]);

impl<'a> Words<'a> for Frozen<'a> {
    #[inline(always)]
    fn load(self, bucket: usize) -> u64 {
        self.stored().load(bucket)
    }

    #[inline(always)]
    fn prefetch(self, bucket: usize) {
        debug_assert!(bucket < self.0.len());
        table::prefetch(self.0.as_ptr().wrapping_add(bucket));
    }

    #[inline(always)]
    fn before(self, _home: usize) -> u64 {
        0
    }

    #[inline(always)]
    fn after(self, _home: usize) -> u64 {
        0
    }

    fn note_retry(self) {}

    #[inline(always)]
    fn stored(self) -> Stored<'a> {
        Stored::Frozen(self.0)
    }

    #[inline(always)]
    fn counters(self) -> Option<(&'a [AtomicU64], usize)> {
        None
    }
}

/// A table of which the words are frozen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot<G>(pub(crate) G);

impl<G: Generation> Generation for Snapshot<G> {
    #[inline(always)]
    fn factors(self) -> Option<(u64, u64)> {
        self.0.factors()
    }

    #[inline(always)]
    fn bucket(self, base: usize, fingerprint: u32) -> usize {
        self.0.bucket(base, fingerprint)
    }

    #[inline(always)]
    fn base(self, bucket: usize) -> usize {
        self.0.base(bucket)
    }
}

/// A table that can be read.
pub(crate) trait Readable: Generation {
    /// Where its words are.
    type Words<'a>: Words<'a>;
}

/// A table that can also be written to.
pub(crate) trait Live: for<'a> Readable<Words<'a> = Shared<'a>> {}

impl<G: for<'a> Readable<Words<'a> = Shared<'a>>> Live for G {}

impl Readable for Only {
    type Words<'a> = Shared<'a>;
}

impl Readable for Doubled {
    type Words<'a> = Shared<'a>;
}

impl<G: Generation> Readable for Snapshot<G> {
    type Words<'a> = Frozen<'a>;
}
