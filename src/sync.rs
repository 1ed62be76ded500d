//! The atomics that the rest of the crate is built from; the only file that names loom.
//!
//! [`AtomicWord`] is one bucket. All its accesses have one order each, argued here once:
//!
//! # Orderings
//!
//! - Loads are Acquire and every write is a compare-and-swap with AcqRel, so whoever sees a word also sees
//!   everything that its writer did before: a reader that sees a slot cleared also sees the copy that was placed
//!   elsewhere before (`kick::relocate`), and the increment of the sequence counter that came before the clearing
//!   (`cells::Cells::take`). Both pair with the loads in `cells::Cells::validated`.
//! - All writes are read-modify-writes, hence each word carries one unbroken release sequence.

pub(crate) use core::sync::atomic::Ordering;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, fence};
#[cfg(not(loom))]
pub(crate) use {
    core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence},
    portable_atomic::AtomicU64,
};

/// Lets other threads run, longer each time.
pub(crate) fn snooze(backoff: &crossbeam_utils::Backoff) {
    #[cfg(not(loom))]
    backoff.snooze();
    #[cfg(loom)]
    {
        let _ = backoff;
        loom::thread::yield_now();
    }
}

/// A bucket: a 64-bit word shared between threads. Zero bytes are an empty bucket.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct AtomicWord(AtomicU64);

impl AtomicWord {
    /// An empty bucket.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Reads the word.
    #[inline(always)]
    pub(crate) fn load(&self) -> u64 {
        // Acquire: pairs with the AcqRel of `compare_exchange`, see the module's orderings.
        self.0.load(Ordering::Acquire)
    }

    /// Reads the word where a [`compare_exchange`](Self::compare_exchange) of the same word follows.
    ///
    /// The same as [`load`](Self::load), except under loom, which does not explore a concurrent reader between a
    /// load and a later write of one thread to one object unless the load is itself a read-modify-write. The value
    /// compared with stands for a saturated word of all-ones fingerprints, which no model builds.
    #[inline(always)]
    pub(crate) fn peek(&self) -> u64 {
        #[cfg(not(loom))]
        return self.load();
        #[cfg(loom)]
        // Acquire on failure: the same pairing as `load`.
        match self.0.compare_exchange(u64::MAX, u64::MAX, Ordering::Acquire, Ordering::Acquire) {
            Ok(word) | Err(word) => word,
        }
    }

    /// Replaces `current` by `new`, or says what stands there instead. Never fails spuriously.
    #[inline(always)]
    pub(crate) fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
        // AcqRel/Acquire: releases what this thread did before to `load` and `peek`, acquires the same of others.
        self.0.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    /// Reads a word of a Bloom filter: its bits are only ever set, its counters stay above 0 while a key of theirs is in, so the order of changes to the one word is all that
    /// anybody relies on (`bloom`, "Orderings").
    #[inline(always)]
    pub(crate) fn load_alone(&self) -> u64 {
        // Relaxed: coherence of this one word.
        self.0.load(Ordering::Relaxed)
    }

    /// As [`load_alone`](Self::load_alone), where a write of the same word follows: loom needs to know, see [`peek`](Self::peek).
    #[inline(always)]
    pub(crate) fn peek_alone(&self) -> u64 {
        #[cfg(not(loom))]
        return self.load_alone();
        #[cfg(loom)]
        self.peek()
    }

    /// Sets bits of a word of a Bloom filter; what stood there before.
    #[inline(always)]
    pub(crate) fn set_bits(&self, bits: u64) -> u64 {
        // Relaxed: as in `load_alone`.
        self.0.fetch_or(bits, Ordering::Relaxed)
    }

    /// Changes counters of a word of a Bloom filter, or says what stands there instead.
    #[inline(always)]
    pub(crate) fn replace_alone(&self, current: u64, new: u64) -> Result<(), u64> {
        if mutated!("counter_without_compare") {
            self.0.store(new, Ordering::Relaxed);
            return Ok(());
        }
        // Relaxed: as in `load_alone`.
        self.0.compare_exchange_weak(current, new, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    /// Empties the bucket, of a table that nobody else is using.
    pub(crate) fn reset(&self) {
        // Relaxed: whoever uses the table next was told so by other means.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Empties the bucket as a page is that was given back: whoever sees it sees what was done before.
    #[cfg(loom)]
    pub(crate) fn give_back(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Gives the bucket this word; nobody else can be looking.
    #[inline]
    pub(crate) fn set(&mut self, new: u64) {
        #[cfg(not(loom))]
        {
            *self.0.get_mut() = new;
        }
        #[cfg(loom)]
        self.0.with_mut(|word| *word = new);
    }
}
