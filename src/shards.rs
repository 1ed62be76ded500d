//! One value for each thread, more or less: what many threads write to often lies in lines of their own.
//!
//! With `std`, every live thread holds a number (at most [`IDS`](ids) at once; the number returns when the thread ends). Thread
//! number *i* is the only writer of shard *i*, so it writes without a lock prefix; the hand-over of a number from an
//! ended thread to a new one synchronises. Threads without a number, and those whose number is beyond the private
//! shards of a (small) filter, share the rest. Without `std` there are no numbers: all shards are
//! shared, and a thread takes the one that the address of its stack picks, so that threads mostly use different ones.

use alloc::boxed::Box;

use crate::memory::{AllocError, try_boxed};

/// The most shards that a filter has.
const MAX_SHARDS: usize = 72;

/// A shard, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

/// The shards of a filter.
#[derive(Debug)]
pub(crate) struct Sharded<T> {
    shards: Box<[Line<T>]>,
    /// Shards from this one on may have several writers.
    private: usize,
}

impl<T: Default> Sharded<T> {
    /// As many shards as a 128th of a table of so many buckets pays for.
    pub(crate) fn for_buckets(buckets: usize) -> Result<Self, AllocError> {
        let len = (buckets / 1024).clamp(1, MAX_SHARDS);
        let private = if cfg!(all(feature = "std", not(loom))) { len - len.div_ceil(9) } else { 0 };
        Ok(Self { shards: try_boxed(len, Line::default)?, private })
    }

    pub(crate) fn reset(&mut self) {
        self.shards.iter_mut().for_each(|shard| *shard = Line::default());
    }
}

impl<T> Sharded<T> {
    /// The shard of this thread, if no other thread writes to it, now or as long as this one lives.
    #[inline(always)]
    pub(crate) fn own(&self) -> Result<&T, Crowd<'_, T>> {
        let id = thread_id();
        if id < self.private { Ok(&self.shards[id].0) } else { Err(Crowd { shards: self, id }) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.shards.iter().map(|shard| &shard.0)
    }

    /// The first shard, of a filter that nobody else uses.
    pub(crate) fn first_mut(&mut self) -> &mut T {
        &mut self.shards[0].0
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.shards)
    }
}

/// The shards that may have several writers, as a thread sees them that has none of its own.
#[derive(Debug)]
pub(crate) struct Crowd<'a, T> {
    shards: &'a Sharded<T>,
    id: usize,
}

impl<'a, T> Crowd<'a, T> {
    /// One of them, mostly the same for the same thread.
    pub(crate) fn shard(&self) -> &'a T {
        let Sharded { shards, private } = self.shards;
        &shards[private + self.id % (shards.len() - private)].0
    }
}

#[cfg(all(feature = "std", not(loom)))]
use ids::thread_id;

/// Threads have stacks of their own, so the page of a local variable tells most of them apart. It is no more than a hint: frames of one
/// thread may lie in several pages, and small stacks of several threads in one. Sums are right whichever shard is added to.
#[cfg(not(any(feature = "std", loom)))]
#[inline(always)]
fn thread_id() -> usize {
    let local = 0_u8;
    let page = (&raw const local).addr() >> 12;
    // Stacks lie at regular distances: Fibonacci hashing, of which the upper half is the well mixed one.
    ((page as u32).wrapping_mul(0x9e37_79b9) >> 16) as usize
}

/// A model has one shard.
#[cfg(loom)]
#[inline(always)]
fn thread_id() -> usize {
    0
}

#[cfg(all(feature = "std", not(loom)))]
mod ids {
    use core::{
        cell::Cell,
        sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    };

    /// Numbers that are handed out at a time.
    const IDS: usize = 64;
    /// A thread that has not asked yet.
    const NONE: usize = usize::MAX;

    /// Bit *i* is set while a live thread holds number *i*.
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    /// Spreads threads without a number over the shared shards.
    static OTHERS: AtomicUsize = AtomicUsize::new(0);

    std::thread_local! {
        static ID: Cell<usize> = const { Cell::new(NONE) };
        /// Returns the number when the thread ends. Apart from `ID`, which thus needs no check for destruction.
        static HOLDER: Cell<Option<Holder>> = const { Cell::new(None) };
    }

    struct Holder(usize);

    impl Drop for Holder {
        fn drop(&mut self) {
            // From here on this thread (in the destructors of its other thread-locals) counts in shared shards.
            ID.set(shared());
            // Release: what this thread counted is visible to the next holder. Pairs with the Acquire in `register`.
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }

    #[inline(always)]
    pub(super) fn thread_id() -> usize {
        match ID.get() {
            NONE => register(),
            id => id,
        }
    }

    fn shared() -> usize {
        IDS + OTHERS.fetch_add(1, Ordering::Relaxed) % IDS
    }

    #[cold]
    fn register() -> usize {
        let mut id = shared();
        // Acquire: pairs with the Release in `Holder::drop`.
        let mut taken = TAKEN.load(Ordering::Acquire);
        while taken != u64::MAX {
            let free = taken.trailing_ones() as usize;
            match TAKEN.compare_exchange(taken, taken | 1 << free, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    // If the thread is already ending, the new holder is dropped right here and the number returned.
                    let new = Holder(free);
                    let kept = HOLDER.try_with(|holder| holder.set(Some(new)));
                    id = if kept.is_ok() { free } else { shared() };
                    break;
                }
                Err(now) => taken = now,
            }
        }
        ID.set(id);
        id
    }
}
