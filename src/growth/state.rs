//! Which tables a growing filter has: one pointer, replaced as a whole, and read under the protection of an epoch.
//!
//! All unsafe code of growth is here. A [`State`] is never changed after it was published. Whoever holds a [`Guard`] may go on using a state that
//! has been replaced; it is dropped, and with it the table that only it still held, when every guard of that time is gone
//! (Fraser, "Practical lock-freedom", 2004, as implemented by `crossbeam-epoch`).

use alloc::{boxed::Box, sync::Arc};
use core::fmt;

use crossbeam_epoch::{Atomic, Guard, Owned, Shared};

use crate::{
    hash::Doubled,
    memory::{AllocError, try_boxed},
    raw::is_cached,
    sync::{AtomicU64, AtomicUsize, Ordering},
    table::Table,
    word::Layout,
};

/// Buckets that are drained at a time, and that one bit of [`Generation::sealed`] stands for: four cache lines.
pub(super) const CHUNK: usize = if cfg!(loom) { 1 } else { 32 };

/// Buckets in a huge page.
const PAGE: usize = (2 << 20) / size_of::<u64>();

/// A table of a growing filter, with the progress of its draining.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) table: Table,
    pub(super) place: Doubled,
    /// Whether the table counts as cached, see `raw::CACHED_BYTES`.
    pub(super) cached: bool,
    /// The next chunk to be drained: a hint, so that several threads drain different ones.
    next: AtomicUsize,
    /// The next huge page to be touched, a hint as well.
    next_page: AtomicUsize,
    huge_pages: bool,
    /// One bit for each chunk all of whose buckets were seen sealed, which they then are for ever.
    sealed: Box<[AtomicU64]>,
    /// How many of those bits are set.
    done: AtomicUsize,
}

impl Generation {
    pub(super) fn new(base: usize, layout: Layout, doublings: u32, huge_pages: bool) -> Result<Self, AllocError> {
        Self::of(Table::new(base << doublings, huge_pages)?, layout, doublings, huge_pages)
    }

    /// With a table that there is already.
    pub(super) fn of(table: Table, layout: Layout, doublings: u32, huge_pages: bool) -> Result<Self, AllocError> {
        let buckets = table.words().len();
        let chunks = buckets.div_ceil(CHUNK);
        Ok(Self {
            table,
            place: Doubled::new(layout, doublings),
            cached: is_cached(buckets),
            next: AtomicUsize::new(0),
            next_page: AtomicUsize::new(0),
            huge_pages,
            sealed: try_boxed(chunks.div_ceil(64), || AtomicU64::new(0))?,
            done: AtomicUsize::new(0),
        })
    }

    pub(super) fn buckets(&self) -> usize {
        self.table.words().len()
    }

    fn chunks(&self) -> usize {
        self.buckets().div_ceil(CHUNK)
    }

    /// The buckets of a chunk.
    pub(super) fn chunk(&self, chunk: usize) -> core::ops::Range<usize> {
        chunk * CHUNK..self.buckets().min((chunk + 1) * CHUNK)
    }

    /// A chunk that is worth draining: first each once, then those that are still not known to be sealed.
    pub(super) fn next_chunk(&self) -> Option<usize> {
        // Relaxed: a hint, nothing is concluded from it.
        if self.next.load(Ordering::Relaxed) < self.chunks() {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk < self.chunks() {
                return Some(chunk);
            }
        }
        self.sealed.iter().enumerate().find_map(|(index, bits)| {
            let chunk = index * 64 + bits.load(Ordering::Acquire).trailing_ones() as usize;
            (chunk < self.chunks() && chunk / 64 == index).then_some(chunk)
        })
    }

    /// Writes to one huge page that nobody has touched this way before; `false` if there is none, or there are no huge pages.
    pub(super) fn touch_page(&self) -> bool {
        // Relaxed: as in `next_chunk`.
        if !self.huge_pages || self.next_page.load(Ordering::Relaxed) * PAGE >= self.buckets() {
            return false;
        }
        let bucket = self.next_page.fetch_add(1, Ordering::Relaxed) * PAGE;
        if bucket < self.buckets() {
            let word = &self.table.words()[bucket];
            // Whatever stands there, it stays: this only has to be a write.
            let current = word.load();
            let _ = word.compare_exchange(current, current);
        }
        bucket < self.buckets()
    }

    /// Whether this bucket is known to be sealed. If it is, all that was done before its last slot was sealed is visible.
    #[inline]
    pub(super) fn is_sealed(&self, bucket: usize) -> bool {
        let chunk = bucket / CHUNK;
        // Acquire: pairs with `set_sealed`.
        self.sealed[chunk / 64].load(Ordering::Acquire) >> (chunk % 64) & 1 != 0
    }

    /// Notes that all buckets of this chunk were seen sealed.
    pub(super) fn set_sealed(&self, chunk: usize) {
        let bit = 1 << (chunk % 64);
        // Release: whoever sees the bit sees the copies that were placed in the new table before. Acquire and Release on `done`: so does whoever
        // sees that all are done.
        if self.sealed[chunk / 64].fetch_or(bit, Ordering::AcqRel) & bit == 0 {
            self.done.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether every bucket was seen sealed.
    pub(super) fn is_drained(&self) -> bool {
        // Acquire: pairs with `set_sealed`.
        self.done.load(Ordering::Acquire) == self.chunks()
    }

    /// Makes it an empty table that is not being drained. Nobody else is using it, but states that were replaced may still hold it.
    pub(super) fn clear(&self) {
        self.table.reset();
        // Relaxed: as in `AtomicWord::reset`.
        self.next.store(0, Ordering::Relaxed);
        self.next_page.store(0, Ordering::Relaxed);
        self.sealed.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
        self.done.store(0, Ordering::Relaxed);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.table.memory_bytes() + size_of_val(&*self.sealed)
    }
}

/// The tables at one time.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) current: Arc<Generation>,
    /// The table before, while its fingerprints are moved to the current one.
    pub(super) draining: Option<Arc<Generation>>,
}

/// The pointer to the state.
pub(super) struct StateCell {
    state: Atomic<State>,
    /// What was replaced under a guard without a collector, see [`unguarded`].
    #[cfg(loom)]
    replaced: std::sync::Mutex<alloc::vec::Vec<Owned<State>>>,
}

impl StateCell {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Atomic::new(state),
            #[cfg(loom)]
            replaced: Default::default(),
        }
    }

    /// The state now. Valid as long as the guard.
    ///
    /// Also for asking whether the state that was seen before is still the same. For that Relaxed would do: the loads of words before are Acquire, so
    /// it is not made earlier, and if one of them saw what a thread did that had seen a newer state, this load sees that or a newer one. (A state is
    /// not freed and its address used again while this guard lives.)
    #[inline(always)]
    pub(super) fn load<'g>(&self, guard: &'g Guard) -> StateRef<'g> {
        // Acquire: the tables that it points to are there, and whatever their creator saw. Pairs with `replace`.
        StateRef(self.state.load(Ordering::Acquire, guard))
    }

    /// The same as [`load`](Self::load), where a [`replace`](Self::replace) by the same thread may follow: loom needs to know
    /// (`AtomicWord::peek`).
    #[inline(always)]
    pub(super) fn peek<'g>(&self, guard: &'g Guard) -> StateRef<'g> {
        #[cfg(not(loom))]
        return self.load(guard);
        #[cfg(loom)]
        // Acquire on failure, as in `load`; it is never null.
        match self.state.compare_exchange(Shared::null(), Shared::null(), Ordering::Acquire, Ordering::Acquire, guard) {
            Ok(_) => unreachable!("never null"),
            Err(error) => StateRef(error.current),
        }
    }

    /// Replaces `old` by `new`; `false` if it is not the state any more.
    pub(super) fn replace(&self, old: StateRef<'_>, new: State, guard: &Guard) -> bool {
        // AcqRel: pairs with `load`.
        let replaced =
            self.state.compare_exchange(old.0, Owned::new(new), Ordering::AcqRel, Ordering::Acquire, guard).is_ok();
        if replaced {
            #[cfg(loom)]
            if guard.collector().is_none() {
                // SAFETY: the pointer is an owned one and this thread has just taken it out; who still uses it does so before this cell is dropped.
                self.replaced.lock().unwrap().push(unsafe { old.0.into_owned() });
                return true;
            }
            #[cfg(koel_mutation = "free_at_once")]
            // SAFETY: none: it is what the models have to notice.
            drop(unsafe { old.0.into_owned() });
            #[cfg(not(koel_mutation = "free_at_once"))]
            // SAFETY: the pointer was made by `Owned::new` (or `Atomic::new`) and this thread has just taken it out, so nobody who pins from now
            // on can reach it, and nobody else retires it.
            unsafe {
                guard.defer_destroy(old.0)
            };
            // A table is large: let it go soon.
            guard.flush();
        }
        replaced
    }

    /// The state, of a filter that nobody else uses.
    pub(super) fn get_mut(&mut self) -> &mut State {
        // SAFETY: `&mut self` is exclusive: no other thread loads, replaces or retires the pointer, which is never null, and no reference from
        // `load` is alive, since those borrow a guard of a call that borrowed the filter.
        unsafe { self.state.load(Ordering::Relaxed, crossbeam_epoch::unprotected()).as_raw().cast_mut().as_mut() }
            .expect("never null")
    }
}

impl Drop for StateCell {
    fn drop(&mut self) {
        // SAFETY: `&mut self` is exclusive, and the pointer owns its state.
        drop(unsafe { core::mem::replace(&mut self.state, Atomic::null()).into_owned() });
    }
}

impl fmt::Debug for StateCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateCell").finish_non_exhaustive()
    }
}

/// A guard for models in which a filter keeps all its states until it is dropped: most of them are about words, and to explore what the
/// collector does would take them too long.
#[cfg(loom)]
pub(super) fn unguarded() -> &'static Guard {
    // SAFETY: what is replaced under this guard is not dropped by it, see `replace`.
    unsafe { crossbeam_epoch::unprotected() }
}

/// A state that was current at some moment since its guard was pinned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StateRef<'g>(Shared<'g, State>);

impl<'g> StateRef<'g> {
    #[inline(always)]
    pub(super) fn get(self) -> &'g State {
        // SAFETY: the pointer came from `StateCell`, never null, under a guard that lives as long as `'g`; it was reachable then, so it is
        // destroyed only after that guard.
        unsafe { self.0.deref() }
    }
}
