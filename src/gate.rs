//! The gate that a snapshot closes, so that what takes more than one word to change holds still while the words are copied.
//!
//! # Protocol
//!
//! - Whoever is about to change more than one word *enters*: counts itself in (its own cache line, mostly), then, after a full fence, looks whether the gate is closed.
//!   If it is, it counts itself out again, and waits. It counts itself out when it has cleaned up, too.
//! - A snapshot closes the gate, then, after a full fence, waits until every count is 0. It copies, and opens the gate.
//! - Who waits is noted in the word that says whether the gate is closed, and the gate is closed only while nobody is noted: those who waited for one snapshot
//!   go before the next.
//!
//! The two fences are Dekker's argument: of a thread that has counted itself in and a snapshot that has closed the gate, at least one sees the other.
//!
//! An operation enters once, at its outermost level: one that entered again inside would wait for a snapshot that waits for it. Nobody who is inside waits for
//! someone outside. No code of the user runs inside, nor while the gate is closed.
//!
//! # Orderings
//!
//! What was written by those inside is visible to the snapshot: their counting out is Release (the shared counts are only changed by read-modify-writes), and
//! the snapshot's look is Acquire. What was read by the snapshot is read before anybody enters: opening is Release, and the look at the gate is Acquire.

use alloc::boxed::Box;

use crossbeam_utils::Backoff;

use crate::{
    memory::{AllocError, try_box},
    shards::Sharded,
    sync::{self, AtomicUsize, Ordering, fence},
};

/// Set while a snapshot holds the gate closed.
const CLOSED: usize = 1;
/// One who waits.
const WAITING: usize = 2;

/// In a cache line of its own, and not within the filter: what is there never changes, which the compiler knows, and keeps in registers.
#[derive(Debug)]
#[repr(align(64))]
struct State(AtomicUsize);

#[derive(Debug)]
pub(crate) struct Gate {
    /// [`CLOSED`], and a number of [`WAITING`]s.
    state: Box<[State; 1]>,
    /// Operations inside: in the shard of one thread 0 or 1, else any number.
    inside: Sharded<AtomicUsize>,
    /// Models without snapshots leave the gate out: it would multiply what they have to explore and can only add order. All that is left of it then are its
    /// fences and how many are inside, of which loom does not know.
    #[cfg(loom)]
    in_use: bool,
    #[cfg(loom)]
    uncounted: core::sync::atomic::AtomicUsize,
}

/// An operation that is inside.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    count: &'a AtomicUsize,
    alone: bool,
    /// Of a gate that is left out.
    #[cfg(loom)]
    uncounted: Option<&'a core::sync::atomic::AtomicUsize>,
}

/// The gate while it is closed: opens on drop.
#[derive(Debug)]
pub(crate) struct Closed<'a>(&'a Gate);

impl Gate {
    pub(crate) fn for_buckets(buckets: usize) -> Result<Self, AllocError> {
        Ok(Self {
            state: try_box(State(AtomicUsize::new(0)))?,
            // Half as many shards as the statistics have: entering is rarer, and filters of a few kilobytes promise not to waste any.
            inside: Sharded::for_buckets(buckets / 2)?,
            #[cfg(loom)]
            in_use: false,
            #[cfg(loom)]
            uncounted: core::sync::atomic::AtomicUsize::new(0),
        })
    }

    /// For models with snapshots.
    #[cfg(loom)]
    pub(crate) fn put_to_use(&mut self) {
        self.in_use = true;
    }

    /// Enters, after a snapshot that is being copied. Before anything that the operation bases its changes on is read.
    #[inline]
    pub(crate) fn enter(&self) -> Inside<'_> {
        let (count, alone) = match self.inside.own() {
            Ok(count) => (count, true),
            Err(crowd) => (crowd.shard(), false),
        };
        #[cfg(loom)]
        if !self.in_use {
            self.uncounted.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            return Inside { count, alone, uncounted: Some(&self.uncounted) };
        }
        let inside = Inside {
            count,
            alone,
            #[cfg(loom)]
            uncounted: None,
        };
        inside.announce();
        if self.look() & CLOSED != 0 {
            self.wait(&inside);
        }
        inside
    }

    #[inline(always)]
    fn state(&self) -> &AtomicUsize {
        &self.state[0].0
    }

    #[inline(always)]
    fn look(&self) -> usize {
        // Acquire: pairs with the Release in `Closed::drop`.
        #[cfg(not(loom))]
        return self.state().load(Ordering::Acquire);
        #[cfg(loom)]
        // Under loom a read-modify-write, since the same thread may change it next; see `AtomicWord::peek`.
        match self.state().compare_exchange(usize::MAX, usize::MAX, Ordering::Acquire, Ordering::Acquire) {
            Ok(state) | Err(state) => state,
        }
    }

    /// Goes out again, waits until the gate is open, and is inside.
    #[cold]
    #[inline(never)]
    fn wait(&self, inside: &Inside<'_>) {
        let backoff = Backoff::new();
        loop {
            inside.leave();
            // Noted only if it is closed in that very step: then no other snapshot can come before this thread.
            let mut state = self.look();
            while state & CLOSED != 0 {
                // AcqRel: as in `look`; nothing is released yet.
                match self.state().compare_exchange(state, state + WAITING, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        while self.look() & CLOSED != 0 {
                            sync::snooze(&backoff);
                        }
                        inside.announce();
                        // Release: whoever closes the gate, which takes seeing that nobody is noted, sees this thread inside. Pairs with the
                        // Acquire in `close`.
                        self.state().fetch_sub(WAITING, Ordering::AcqRel);
                        return;
                    }
                    Err(now) => state = now,
                }
            }
            inside.announce();
            if self.look() & CLOSED == 0 {
                return;
            }
        }
    }

    /// Closes the gate, and waits until nobody is inside. Waits for other snapshots and those who waited for them.
    pub(crate) fn close(&self) -> Closed<'_> {
        let backoff = Backoff::new();
        // Acquire: pairs with the Release of those who waited, and of the last snapshot. Relaxed on failure: nothing is read then.
        while self.state().compare_exchange(0, CLOSED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            sync::snooze(&backoff);
        }
        // From here on opened by drop.
        let closed = Closed(self);
        // Between closing and looking who is inside: the other half of `Inside::announce`.
        fence(Ordering::SeqCst);
        if !mutated!("snapshot_without_gate") {
            backoff.reset();
            for count in self.inside.iter() {
                // Acquire: what those did who have left is visible. Pairs with `Inside::leave`.
                while count.load(Ordering::Acquire) != 0 {
                    sync::snooze(&backoff);
                }
            }
        }
        closed
    }

    /// Whether all have left who were inside when this was first called with one `seen`, which has to be 0 then; apart from the caller, who is `inside`. It does not wait: `seen`
    /// is how many shards were seen empty so far, each once, which is enough.
    ///
    /// Whoever the caller's first look does not find has counted itself in after that, or out before. With the fence here and that of [`Inside::announce`] the former sees everything that
    /// the caller did and saw before: Dekker again.
    #[cfg(feature = "growth")]
    pub(crate) fn has_emptied(&self, inside: &Inside<'_>, seen: &AtomicUsize) -> bool {
        #[cfg(loom)]
        if !self.in_use {
            fence(Ordering::SeqCst);
            return self.uncounted.load(Ordering::SeqCst) == 1;
        }
        if !mutated!("gate_without_fence") {
            fence(Ordering::SeqCst);
        }
        // Acquire: whoever goes on where another stopped has seen what that one has. Pairs with the Release below.
        let from = seen.load(Ordering::Acquire);
        let mut empty = from;
        for count in self.inside.iter().skip(from) {
            // Acquire: what those did who have left is over. Pairs with `Inside::leave`.
            let others = count.load(Ordering::Acquire) - usize::from(core::ptr::eq(count, inside.count));
            if others != 0 {
                break;
            }
            empty += 1;
        }
        if empty != from {
            seen.fetch_max(empty, Ordering::AcqRel);
        }
        empty == self.inside.iter().count()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.state) + self.inside.memory_bytes()
    }
}

impl Inside<'_> {
    /// Counts in, so that a look at the gate may follow.
    #[inline(always)]
    fn announce(&self) {
        // Relaxed: the fence orders them.
        if self.alone {
            self.count.store(1, Ordering::Relaxed);
        } else {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        // Between counting in and looking at the gate: a store and a later load, which only a full fence keeps in order. Either the snapshot sees the
        // count, or this thread sees the gate closed.
        if !mutated!("gate_without_fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Counts out.
    #[inline(always)]
    fn leave(&self) {
        // Release: pairs with the Acquire in `Gate::close`.
        if self.alone {
            self.count.store(0, Ordering::Release);
        } else {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(loom)]
        if let Some(uncounted) = self.uncounted {
            uncounted.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        self.leave();
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        // Release: what was read of the words is read before others change them. Pairs with the Acquire in `Gate::look`.
        self.0.state().fetch_sub(CLOSED, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::{panic, thread};

    use super::Gate;

    #[test]
    fn nobody_is_inside_while_it_is_closed() {
        // One shard for all, and one for each thread.
        for buckets in [1, 100_000] {
            let gate = Gate::for_buckets(buckets).unwrap();
            let (inside, stop, entries) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while !stop.load(SeqCst) {
                            let _inside = gate.enter();
                            inside.fetch_add(1, SeqCst);
                            inside.fetch_sub(1, SeqCst);
                            entries.fetch_add(1, SeqCst);
                        }
                    });
                }
                // Closed without a pause, by two: those who wait get their turn all the same.
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        drop(gate.close());
                    }
                });
                let mut closings = 0;
                while closings < 2_000 || entries.load(SeqCst) < 2_000 {
                    let _closed = gate.close();
                    assert_eq!(inside.load(SeqCst), 0);
                    closings += 1;
                }
                stop.store(true, SeqCst);
            });
        }
    }

    #[test]
    fn it_opens_when_a_snapshot_unwinds() {
        let gate = Gate::for_buckets(1).unwrap();
        let unwound = panic::catch_unwind(panic::AssertUnwindSafe(|| {
            let _closed = gate.close();
            panic!("a snapshot that fails");
        }));
        assert!(unwound.is_err());
        drop(gate.enter());
        drop(gate.close());
    }
}
