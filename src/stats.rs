//! Event counters that cost an insert next to nothing: sharded ([`crate::shards`]), and without a lock prefix where a shard has one writer.
//!
//! A sum is exact when nobody is writing; otherwise each shard is a moment of its own. All accesses are Relaxed: counters
//! order nothing, and whoever wants an exact sum has synchronised with the writers (joined them) already.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{
    memory::AllocError,
    shards::{Crowd, Sharded},
};

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
    /// A compare-and-swap of a word that another thread had changed since it was read.
    SwappedAgain,
    /// A pair of words that was read again, because a copy was taken meanwhile in their stripe.
    ReadAgain,
}

const EVENTS: usize = 8;

type Events = [AtomicUsize; EVENTS];

#[derive(Debug)]
pub(crate) struct Counters(Sharded<Events>);

impl Counters {
    pub(crate) fn for_buckets(buckets: usize) -> Result<Self, AllocError> {
        Sharded::for_buckets(buckets).map(Self)
    }

    #[inline(always)]
    pub(crate) fn add(&self, event: Event) {
        match self.0.own() {
            Ok(shard) => {
                let counter = &shard[event as usize];
                counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
            }
            Err(crowd) => Self::add_shared(&crowd, event),
        }
    }

    /// [`add`](Self::add) for what happens so rarely that no way should be cleared for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn add_rare(&self, event: Event) {
        self.add(event);
    }

    #[inline(never)]
    fn add_shared(crowd: &Crowd<'_, Events>, event: Event) {
        crowd.shard()[event as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn sum(&self, event: Event) -> usize {
        self.0.iter().fold(0, |sum, shard| sum.wrapping_add(shard[event as usize].load(Relaxed)))
    }

    /// Keys that are in: inserted less removed. Never negative and never more than there are slots, whatever other threads do between the
    /// looks at the two.
    pub(crate) fn keys(&self, slots: usize) -> usize {
        let removed = self.sum(Event::Removed);
        let difference = self.sum(Event::Inserted).wrapping_sub(removed);
        if difference > isize::MAX as usize { 0 } else { difference.min(slots) }
    }

    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    /// Counts so many keys as inserted, in a filter that nobody else uses.
    pub(crate) fn set_keys(&mut self, keys: usize) {
        self.0.reset();
        self.0.first_mut()[Event::Inserted as usize] = AtomicUsize::new(keys);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
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
        let used = counters.0.iter().filter(|shard| shard[Event::Inserted as usize].load(super::Relaxed) != 0).count();
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
