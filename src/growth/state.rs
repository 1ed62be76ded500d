//! Which tables a growing filter has: one pointer, replaced as a whole.
//!
//! All unsafe code of growth is here. A [`State`] is never changed after it was published, and lives until the filter is dropped, or changed by someone who has it for
//! himself: the states form a list from the newest to the first, two for each doubling. With them live their tables. So everybody may read any state and table that
//! the filter ever had, without saying so. The *memory* of a table that was left is given back all the same: its pages, while its addresses stay. They
//! read as zeros from then on, which are empty buckets ([`Generation::give_back`], and section 8 of `docs/design.md`).

use alloc::{boxed::Box, sync::Arc};
use core::{fmt, iter, ptr};

use crate::{
    batch::Marks,
    gate::{Gate, Inside},
    hash::Doubled,
    memory::{AllocError, try_boxed},
    raw::is_cached,
    sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
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
    /// One bit for each chunk of which a bucket may have been begun to be drained.
    begun: Box<[AtomicU64]>,
    /// One bit for each chunk all of whose buckets were seen sealed, which they then are for ever.
    sealed: Box<[AtomicU64]>,
    /// So many words of these bits from the first on are known to have all set.
    all_sealed: AtomicUsize,
    /// How many of the bits are set.
    done: AtomicUsize,
    /// The shards of the gate that were seen empty since the table was left.
    seen_empty: AtomicUsize,
    /// The next slice of its memory to be given back, and how many were.
    next_slice: AtomicUsize,
    returned: AtomicUsize,
}

impl Generation {
    pub(super) fn new(base: usize, layout: Layout, doublings: u32, huge_pages: bool) -> Result<Self, AllocError> {
        // Filters that never grow are often small and many: their table may be on the heap. That of one that grew can be given back.
        let new = if doublings == 0 { Table::new } else { Table::new_mapped };
        Self::of(new(base << doublings, huge_pages)?, layout, doublings, huge_pages)
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
            begun: try_boxed(chunks.div_ceil(64), || AtomicU64::new(0))?,
            sealed: try_boxed(chunks.div_ceil(64), || AtomicU64::new(0))?,
            all_sealed: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            seen_empty: AtomicUsize::new(0),
            next_slice: AtomicUsize::new(0),
            returned: AtomicUsize::new(0),
        })
    }

    pub(super) fn buckets(&self) -> usize {
        self.table.words().len()
    }

    fn chunks(&self) -> usize {
        self.buckets().div_ceil(CHUNK)
    }

    /// The buckets of a chunk; none if there is no such chunk.
    pub(super) fn chunk(&self, chunk: usize) -> core::ops::Range<usize> {
        self.buckets().min(chunk * CHUNK)..self.buckets().min((chunk + 1) * CHUNK)
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

    /// So many buckets from the first on are known to be sealed. All that was done before their last slots were sealed is visible.
    pub(super) fn sealed_buckets(&self) -> usize {
        // Acquire: whoever noted this had seen the bits. Pairs with the store below.
        let noted = self.all_sealed.load(Ordering::Acquire);
        let mut full = noted;
        let rest = loop {
            // Acquire: pairs with `set_sealed`.
            match self.sealed.get(full).map(|bits| bits.load(Ordering::Acquire)) {
                Some(u64::MAX) => full += 1,
                Some(bits) => break bits.trailing_ones() as usize,
                None => break 0,
            }
        };
        if full != noted {
            // Release: pairs with the load. If another thread has noted more meanwhile, then less is noted now, which is true as well.
            self.all_sealed.store(full, Ordering::Release);
        }
        self.buckets().min((full * 64 + rest) * CHUNK)
    }

    /// Which chunks the draining of some bucket may have begun in. Whoever sees anything that was done in draining a bucket, and looks afterwards, finds it among them.
    pub(super) fn begun_marks(&self) -> Marks<'_> {
        Marks { bits: &self.begun, chunk_bits: CHUNK.ilog2() }
    }

    /// Notes that this bucket is about to be drained.
    #[inline]
    pub(super) fn set_begun(&self, bucket: usize) {
        let chunk = bucket / CHUNK;
        let bit = 1 << (chunk % 64);
        let begun = &self.begun[chunk / 64];
        // Relaxed: what is done to words afterwards releases the bit, no matter who set it, to whoever acquires those words.
        if begun.load(Ordering::Relaxed) & bit == 0 {
            begun.fetch_or(bit, Ordering::Relaxed);
        }
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

    /// Gives a slice of the memory back to the system, of a table that is in no state any more; `None` if there is none left, or someone may still be writing to it: only
    /// those inside the gate do, and those who were inside when it was left have to have gone. Otherwise whether it was the last. The caller, who is `inside`, has not looked
    /// at an older state.
    pub(super) fn give_back(&self, gate: &Gate, inside: &Inside<'_>) -> Option<bool> {
        let slices = self.table.slices();
        // Relaxed: which slice is whose is all that these two say.
        if self.next_slice.load(Ordering::Relaxed) >= slices {
            return None;
        }
        if !gate.has_emptied(inside, &self.seen_empty) && !mutated!("give_back_at_once") {
            return None;
        }
        let slice = self.next_slice.fetch_add(1, Ordering::Relaxed);
        if slice >= slices {
            return None;
        }
        self.table.give_back(slice);
        Some(self.returned.fetch_add(1, Ordering::Relaxed) + 1 == slices)
    }

    /// Whether the system could get its memory back before it is dropped.
    pub(super) fn can_be_given_back(&self) -> bool {
        self.table.slices() != 0
    }

    /// Makes it an empty table that is not being drained. Nobody else is using it.
    pub(super) fn clear(&self) {
        self.table.reset();
        // Relaxed: as in `AtomicWord::reset`.
        self.next.store(0, Ordering::Relaxed);
        self.next_page.store(0, Ordering::Relaxed);
        self.sealed.iter().chain(&self.begun).for_each(|bits| bits.store(0, Ordering::Relaxed));
        self.all_sealed.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.seen_empty.store(0, Ordering::Relaxed);
        debug_assert_eq!(self.next_slice.load(Ordering::Relaxed), 0, "a table in use");
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.table.memory_bytes() + size_of_val(&*self.sealed) + size_of_val(&*self.begun)
    }
}

/// The tables at one time.
#[derive(Debug)]
pub(super) struct State {
    pub(super) current: Arc<Generation>,
    /// The table before, while its fingerprints are moved to the current one.
    pub(super) draining: Option<Arc<Generation>>,
    /// The state that this one replaced; null for the first.
    before: *const Self,
}

// SAFETY: its tables may be used from any thread, and the state before, which it points to, is only read.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    pub(super) fn new(current: Arc<Generation>, draining: Option<Arc<Generation>>) -> Self {
        Self { current, draining, before: ptr::null() }
    }

    /// Whether this table is still in use.
    pub(super) fn has(&self, generation: &Generation) -> bool {
        ptr::eq(&*self.current, generation) || self.draining.as_deref().is_some_and(|old| ptr::eq(old, generation))
    }

    /// All tables that there are, in use or not, from the newest on.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Generation> {
        // SAFETY: a state outlives those that replaced it.
        let states = iter::successors(Some(self), |state| unsafe { state.before.as_ref() });
        let mut last = ptr::null();
        // Each table was the current one from some state on until the next table was.
        states
            .map(|state| &*state.current)
            .filter(move |table| !ptr::eq(ptr::from_ref(*table), core::mem::replace(&mut last, *table)))
    }
}

/// The pointer to the state.
pub(super) struct StateCell {
    state: AtomicPtr<State>,
    /// How many tables that are in no state any more have memory that can be given back: about, since it is changed after the state.
    left: AtomicUsize,
}

impl StateCell {
    pub(super) fn new(state: State) -> Self {
        Self { state: AtomicPtr::new(Box::into_raw(Box::new(state))), left: AtomicUsize::new(0) }
    }

    /// The state now.
    ///
    /// Also for asking whether the state that was seen before is still the same, since no two states ever have the same address. For that Relaxed would do: the loads
    /// of words before are Acquire, so it is not made earlier, and if one of them saw what a thread did that had seen a newer state, this load sees that or a newer
    /// one. So it does if one of them saw a zero of a page that was given back: the system changes its tables of pages in the order in which it is asked to.
    #[inline(always)]
    pub(super) fn load(&self) -> &State {
        // Acquire: the tables that it points to are there, and whatever their creator saw. Pairs with `replace`.
        let state = self.state.load(Ordering::Acquire);
        // SAFETY: the pointer was made of a box, and states live as long as the cell.
        unsafe { &*state }
    }

    /// The same as [`load`](Self::load), where a [`replace`](Self::replace) by the same thread may follow: loom needs to know
    /// (`AtomicWord::peek`).
    #[inline(always)]
    pub(super) fn peek(&self) -> &State {
        #[cfg(not(loom))]
        return self.load();
        #[cfg(loom)]
        // Acquire on failure, as in `load`; it is never null.
        match self.state.compare_exchange(ptr::null_mut(), ptr::null_mut(), Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => unreachable!("never null"),
            // SAFETY: as in `load`.
            Err(state) => unsafe { &*state },
        }
    }

    /// Replaces `old` by `new`; `false` if it is not the state any more.
    pub(super) fn replace(&self, old: &State, new: State) -> bool {
        let before = ptr::from_ref(old);
        let leaves = old.draining.as_deref().is_some_and(|left| !new.has(left) && left.can_be_given_back());
        let new = Box::into_raw(Box::new(State { before, ..new }));
        // AcqRel: pairs with `load`.
        let replaced = self.state.compare_exchange(before.cast_mut(), new, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !replaced {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
        } else if leaves {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
        replaced
    }

    /// Whether there is memory to be given back: a hint.
    #[inline(always)]
    pub(super) fn has_left(&self) -> bool {
        // Relaxed: nothing is concluded from it.
        self.left.load(Ordering::Relaxed) != 0
    }

    /// Gives back a slice of what can be given back, if there is any; whether there was.
    #[cold]
    pub(super) fn give_back(&self, gate: &Gate, inside: &Inside<'_>) -> bool {
        let state = self.load();
        let last = state.tables().filter(|table| !state.has(table)).find_map(|table| table.give_back(gate, inside));
        if last == Some(true) {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        last.is_some()
    }
}

impl Drop for StateCell {
    fn drop(&mut self) {
        let mut state = ptr::from_ref(self.load()).cast_mut();
        while !state.is_null() {
            // SAFETY: `&mut self` is exclusive, and each state was made of a box, of which the list has the only pointer.
            let owned = unsafe { Box::from_raw(state) };
            state = owned.before.cast_mut();
        }
    }
}

impl fmt::Debug for StateCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateCell").finish_non_exhaustive()
    }
}
