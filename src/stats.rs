//! Event counters that cost an insert next to nothing: sharded, and without a lock prefix where a shard has one writer.
//!
//! With `std`, every live thread holds a number (at most [`IDS`] at once; the number returns when the thread ends). Thread
//! number *i* is the only writer of shard *i*, so it adds with a plain load and store; the hand-over of a number from an
//! ended thread to a new one synchronises. Threads without a number, and those whose number is beyond the private
//! shards of a (small) filter, add atomically to one of the shared shards. Without `std` there are no numbers: all shards are
//! shared, and a thread adds to the one that the address of its stack picks, so that threads mostly use different ones.
//!
//! A sum is exact when nobody is writing; otherwise each shard is a moment of its own. All accesses are Relaxed: counters
//! order nothing, and whoever wants an exact sum has synchronised with the writers (joined them) already.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::memory::{AllocError, try_boxed};

/// The most shards that a filter has.
const MAX_SHARDS: usize = 72;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A key went in.
    Inserted,
    /// A key went out.
    Removed,
    /// A fingerprint moved to its other bucket.
    Relocated,
    /// A search for a path of relocations.
    Searched,
    /// A path that was given up because a bucket on it had changed.
    Retried,
    /// An insert that was refused.
    Refused,
}

const EVENTS: usize = 6;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard([AtomicUsize; EVENTS]);

#[derive(Debug)]
pub(crate) struct Counters {
    shards: Box<[Shard]>,
    /// Shards from this one on may have several writers.
    private: usize,
}

impl Counters {
    /// As many shards as a 128th of the table pays for.
    pub(crate) fn for_buckets(buckets: usize) -> Result<Self, AllocError> {
        let len = (buckets / 1024).clamp(1, MAX_SHARDS);
        let private = if cfg!(all(feature = "std", not(loom))) { len - len.div_ceil(9) } else { 0 };
        Ok(Self { shards: try_boxed(len, Shard::default)?, private })
    }

    #[inline(always)]
    pub(crate) fn add(&self, event: Event) {
        let id = thread_id();
        if id < self.private {
            let counter = &self.shards[id].0[event as usize];
            counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
        } else {
            self.add_shared(id, event);
        }
    }

    #[inline(never)]
    fn add_shared(&self, id: usize, event: Event) {
        let shard = self.private + id % (self.shards.len() - self.private);
        self.shards[shard].0[event as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn sum(&self, event: Event) -> usize {
        self.shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.0[event as usize].load(Relaxed)))
    }

    /// Keys that are in: inserted less removed. Never negative and never more than there are slots, whatever other threads do between the
    /// looks at the two.
    pub(crate) fn keys(&self, slots: usize) -> usize {
        let removed = self.sum(Event::Removed);
        let difference = self.sum(Event::Inserted).wrapping_sub(removed);
        if difference > isize::MAX as usize { 0 } else { difference.min(slots) }
    }

    pub(crate) fn reset(&mut self) {
        self.shards.iter_mut().for_each(|shard| *shard = Shard::default());
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.shards)
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

#[cfg(all(test, not(loom)))]
mod tests {
    // Tests are run by it, whether the crate has the feature or not.
    extern crate std;

    use alloc::sync::Arc;

    use super::{Counters, Event};

    #[test]
    fn sums_are_exact_after_many_threads() {
        for buckets in [1, 1000, 2000, 5000, 1_000_000] {
            let counters = Counters::for_buckets(buckets).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..100 {
                    scope.spawn(|| {
                        (0..1000).for_each(|_| counters.add(Event::Inserted));
                        (0..500).for_each(|_| counters.add(Event::Removed));
                    });
                }
            });
            assert_eq!(counters.sum(Event::Inserted), 100_000, "{buckets}");
            assert_eq!(counters.keys(usize::MAX), 50_000, "{buckets}");
            assert_eq!(counters.keys(10), 10, "{buckets}");
        }
    }

    /// With `std` every thread has a number of its own; without, stacks have to do.
    #[test]
    #[cfg(not(feature = "std"))]
    fn threads_spread_over_shards_by_their_stacks() {
        const THREADS: usize = 32;
        let counters = Counters::for_buckets(1_000_000).unwrap();
        // All are alive at once, so that no stack is used twice.
        let all_there = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    all_there.wait();
                    counters.add(Event::Inserted);
                    all_there.wait();
                });
            }
        });
        let used =
            counters.shards.iter().filter(|shard| shard.0[Event::Inserted as usize].load(super::Relaxed) != 0).count();
        // About 26 of 72 at random.
        assert!(used >= THREADS / 2, "{THREADS} threads count in {used} shards");
    }

    #[test]
    fn a_thread_that_ends_may_still_count() {
        struct CountsOnDrop(Arc<Counters>);
        impl Drop for CountsOnDrop {
            fn drop(&mut self) {
                self.0.add(Event::Inserted);
            }
        }
        std::thread_local! {
            static EARLY: core::cell::RefCell<Option<CountsOnDrop>> = const { core::cell::RefCell::new(None) };
        }
        let counters = Arc::new(Counters::for_buckets(1_000_000).unwrap());
        for first in [false, true] {
            let before = counters.sum(Event::Inserted);
            let counters_of_thread = Arc::clone(&counters);
            let counts = move || {
                if first {
                    counters_of_thread.add(Event::Inserted);
                }
                EARLY.set(Some(CountsOnDrop(Arc::clone(&counters_of_thread))));
                if !first {
                    counters_of_thread.add(Event::Inserted);
                }
            };
            std::thread::spawn(counts).join().unwrap();
            assert_eq!(counters.sum(Event::Inserted), before + 2);
        }
    }
}
