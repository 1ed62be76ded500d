//! Sequence counters: how a reader that looked at two words knows that nothing moved between them.
//!
//! Each home bucket belongs to one stripe. Whoever takes a copy of a fingerprint out of a bucket (a relocation, a removal that
//! the home word alone does not decide) first increments the counter of its home's stripe, after the copy that replaces it is
//! visible. A reader that finds neither candidate bucket matching believes it only if the counter is the same before and after.
//!
//! The low bits of a counter say how many relocations of its stripe are under way. Between its copy and its take a relocation leaves one copy more
//! than there are keys, which only `insert_if_absent` cares about: it must not take that copy for a key ([`Sequences::is_quiet`]). Readers compare the
//! whole number: if it is the same, nothing was taken.
//!
//! Counters are never locked: a stalled writer blocks no reader. The 48 high bits only count up, and do not wrap.

use alloc::boxed::Box;

use crate::{
    memory::{AllocError, try_boxed},
    sync::{AtomicU64, Ordering},
};

/// The most stripes that a filter has: 8 KiB, so that they stay in the first-level cache.
const MAX_STRIPES: usize = 1024;

/// One in the part that counts takes; below are the relocations under way, of which there are at most as many as threads.
const TAKE: u64 = 1 << 16;

/// Maps home buckets to stripes; the number of stripes is a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripes {
    mask: usize,
}

impl Stripes {
    /// One stripe for 128 buckets, so that counters and claims cost less than a hundredth of the table.
    pub(crate) const fn for_buckets(buckets: usize) -> Self {
        let wanted = if buckets / 128 < MAX_STRIPES { buckets / 128 } else { MAX_STRIPES };
        Self { mask: if wanted < 2 { 0 } else { (1 << wanted.ilog2()) - 1 } }
    }

    /// For a filter that grows from so many buckets on: as many as a large one has, since it may become one.
    #[cfg(feature = "growth")]
    pub(crate) const fn for_growth(base: usize) -> Self {
        // Fewer only in models, whose filters are tiny.
        let wanted = if base < MAX_STRIPES { base } else { MAX_STRIPES };
        Self { mask: (1 << wanted.ilog2()) - 1 }
    }

    pub(crate) const fn len(self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    pub(crate) const fn of(self, home: usize) -> usize {
        home & self.mask
    }
}

/// The sequence counters of a filter.
#[derive(Debug)]
pub(crate) struct Sequences {
    counters: Box<[AtomicU64]>,
    stripes: Stripes,
}

impl Sequences {
    pub(crate) fn new(stripes: Stripes) -> Result<Self, AllocError> {
        Ok(Self { counters: try_boxed(stripes.len(), || AtomicU64::new(0))?, stripes })
    }

    #[inline(always)]
    fn counter(&self, home: usize) -> &AtomicU64 {
        &self.counters[self.stripes.of(home)]
    }

    /// The counter of this home before its words are read.
    #[inline(always)]
    pub(crate) fn before(&self, home: usize) -> u64 {
        // Acquire: the word loads that follow are not made earlier, and they see every copy placed before an increment
        // that this load sees. Pairs with `advance`.
        self.counter(home).load(Ordering::Acquire)
    }

    /// The counter of this home after its words were read.
    #[inline(always)]
    pub(crate) fn after(&self, home: usize) -> u64 {
        // Relaxed: the word loads before this are Acquire, so this load is not made earlier; and if one of them saw a
        // slot cleared, it synchronised with the clearing CAS, which comes after `advance`: this load sees it.
        self.counter(home).load(Ordering::Relaxed)
    }

    /// Announces that a copy of a class of this home is about to be taken.
    #[inline]
    pub(crate) fn advance(&self, home: usize) {
        // AcqRel: releases the copy placed before to `before`; and the CAS that takes a copy, being later and releasing,
        // carries this increment to every reader that sees the copy gone (`after`).
        self.counter(home).fetch_add(TAKE, Ordering::AcqRel);
    }

    /// Announces a relocation of a class of this home, until the returned guard is dropped: from before its copy is placed until one was taken.
    #[inline]
    pub(crate) fn relocation(&self, home: usize) -> UnderWay<'_> {
        let counter = self.counter(home);
        // Relaxed: the CAS that places the copy comes later and releases this to whoever sees the copy (`after`).
        counter.fetch_add(1, Ordering::Relaxed);
        UnderWay(counter)
    }

    /// Whether no relocation was under way when the counter had this value. If both looks at the counter gave it, each copy that was seen in between
    /// belongs to a key, or to a removal that has not returned.
    #[inline]
    pub(crate) fn is_quiet(before: u64) -> bool {
        before.is_multiple_of(TAKE) || mutated!("trust_owed_copies")
    }

    /// All counters, and the mask that turns a home bucket into the index of its own.
    pub(crate) fn parts(&self) -> (&[AtomicU64], usize) {
        (&self.counters, self.stripes.mask)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counters)
    }
}

/// A relocation under way.
#[derive(Debug)]
pub(crate) struct UnderWay<'a>(&'a AtomicU64);

impl Drop for UnderWay<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: whoever sees this (`before`) sees the copy taken.
        self.0.fetch_sub(1, Ordering::Release);
    }
}
