//! A filter that doubles: the operations of [`crate::raw`] on one table, or on two while the older one is being drained. Section "Growth" of
//! `docs/design.md` has the arguments.
//!
//! # Protocol
//!
//! - Classes are those of the base buckets, in every generation. The sequence counters, the claims and the event counters belong to the filter;
//!   a table and its progress in draining are a [`Generation`].
//! - A growth publishes `{double, current}`. Then every fingerprint of the older table is copied to the newer one, and its old slot *sealed*
//!   ([`drain`]). When all slots are sealed the older table is retired.
//! - Every operation loads the state, visits the older table first, then the newer one. "Not there" and "no room" are believed only if the state is
//!   still the same afterwards.
//! - While draining, an insert first drains its own two old buckets, and a kick the old bucket behind each bucket that it uses: so the fingerprints
//!   of an old bucket find room in the two new ones.
//! - A thread that finds a copy gone which it wanted to seal or clear takes any other of that class, loading the state again in every round.
//! - Whatever changes more than one word, or the state, does so inside the [`Gate`], which it enters once.

mod drain;
#[cfg(loom)]
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "not public: each method is the operation of its name"
)]
pub(crate) mod model;
mod plan;
mod shrink;
mod snapshot;
#[allow(unsafe_code, reason = "the pointer to the tables")]
mod state;
#[cfg(all(test, not(loom)))]
mod tests;

use alloc::sync::Arc;
use core::{convert::Infallible, ptr};

use crossbeam_utils::Backoff;

use crate::{
    batch::{self, Backend, TwoTables},
    cells::Cells,
    claim::Claims,
    error::{BuildError, InsertError, InsertHashesError},
    gate::Gate,
    hash::{Class, Doubled, Geometry},
    kick::{self, Surroundings},
    memory::AllocError,
    seq::{Sequences, Stripes},
    stats::Event,
    sync::{self, AtomicBool, Ordering},
    word::{self, Slot},
    words::{Common, Shared},
};
pub(crate) use plan::GrowthPlan;
use state::{Generation, State, StateCell};

#[derive(Debug)]
pub(crate) struct Growing {
    pub(crate) plan: GrowthPlan,
    geometry: Geometry,
    pub(crate) common: Common,
    claims: Claims,
    gate: Gate,
    state: StateCell,
    /// Set while one thread allocates the next table: so that there are never more than two.
    growing: AtomicBool,
    huge_pages: bool,
}

/// The tables as one thread sees them, and how to work on each.
#[derive(Clone, Copy)]
struct View<'g> {
    state: &'g State,
    current: &'g Generation,
    new: Cells<'g, Doubled>,
    old: Option<Old<'g>>,
}

/// The table that is being drained.
#[derive(Clone, Copy)]
struct Old<'g> {
    generation: &'g Generation,
    cells: Cells<'g, Doubled>,
}

impl Old<'_> {
    /// Whether both buckets of the class are known to be sealed: then this table has no copy of it, for ever.
    #[inline]
    fn has_lost(&self, class: Class) -> bool {
        self.generation.is_sealed(self.cells.home(class)) && self.generation.is_sealed(self.cells.away(class))
    }
}

impl Growing {
    pub(crate) fn new(plan: GrowthPlan, seed: u64, huge_pages: bool) -> Result<Self, BuildError> {
        Self::beginning_with(plan, seed, Generation::new(plan.base, plan.layout, 0, huge_pages)?, huge_pages)
    }

    fn beginning_with(plan: GrowthPlan, seed: u64, current: Generation, huge_pages: bool) -> Result<Self, BuildError> {
        let stripes = Stripes::for_growth(plan.base);
        let current = Arc::new(current);
        Ok(Self {
            plan,
            geometry: Geometry::new(plan.base, plan.layout, seed),
            common: Common::new(stripes, plan.base << plan.doublings)?,
            claims: Claims::new(stripes)?,
            gate: Gate::for_buckets(plan.base << plan.doublings)?,
            state: StateCell::new(State::new(current, None)),
            growing: AtomicBool::new(false),
            huge_pages,
        })
    }

    #[inline(always)]
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline(always)]
    pub(crate) fn class(&self, hash: u64) -> Class {
        self.geometry.class(hash)
    }

    #[inline(always)]
    fn cells<'g>(&'g self, generation: &'g Generation) -> Cells<'g, Doubled> {
        Cells {
            words: Shared { table: &generation.table, common: &self.common },
            layout: &self.plan.layout,
            geometry: &self.geometry,
            generation: generation.place,
        }
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        self.view_of(self.state.load())
    }

    /// The view for those who may replace the state.
    #[inline(always)]
    fn view_to_change(&self) -> View<'_> {
        self.view_of(self.state.peek())
    }

    #[inline(always)]
    fn view_of<'g>(&'g self, state: &'g State) -> View<'g> {
        let current = &*state.current;
        let old = state.draining.as_deref();
        let old = old.map(|generation| Old { generation, cells: self.cells(generation) });
        View { state, current, new: self.cells(current), old }
    }

    /// Whether what was not found in this view is nowhere.
    #[inline(always)]
    fn is_current(&self, view: &View<'_>) -> bool {
        self.is_still(view.state)
    }

    /// Whether the state is still this one.
    #[inline(always)]
    fn is_still(&self, state: &State) -> bool {
        mutated!("grow_without_state_check") || ptr::eq(self.state.load(), state)
    }

    /// The cells of the newest table.
    #[inline(always)]
    fn newest<'g>(&'g self, state: &'g State) -> Cells<'g, Doubled> {
        self.cells(&state.current)
    }

    // This, and the first steps of inserts and removals, do without a `View`: half of it would be made for nothing, and wherever a reference to it
    // is handed on, even in a branch that is never taken, it has to be in memory.
    #[inline]
    pub(crate) fn contains(&self, class: Class) -> bool {
        loop {
            let state = self.state.load();
            let found = match &state.draining {
                None => self.contains_newest(state, class),
                Some(_) => self.contains_draining(state, class),
            };
            if found || self.is_still(state) {
                return found;
            }
        }
    }

    #[inline(always)]
    fn contains_newest(&self, state: &State, class: Class) -> bool {
        let cells = self.newest(state);
        if state.current.cached { cells.contains_both(class) } else { cells.contains_home_first(class) }
    }

    #[inline(never)]
    fn contains_draining(&self, state: &State, class: Class) -> bool {
        let view = self.view_of(state);
        let Some(old) = &view.old else { return self.contains_newest(state, class) };
        if old.has_lost(class) {
            return self.contains_newest(state, class);
        }
        let layout = &self.plan.layout;
        let older = old.cells.candidates(class);
        let newer = view.new.candidates(class);
        let mut new_home = 0;
        if mutated!("new_before_old") {
            new_home = view.new.word(newer.home).load();
        }
        let old_home = old.cells.word(older.home).load();
        if !mutated!("new_before_old") {
            new_home = view.new.word(newer.home).load();
        }
        if old.cells.has_at_home(old_home, &older) || view.new.has_at_home(new_home, &newer) {
            return true;
        }
        // At the instant of the first load the old table had no copy of the class and nothing displaced of this home, and never has again; at the
        // instant of the second neither had the new one.
        if layout.is_sealed(old_home) && word::displaced_count(old_home) == 0 && word::displaced_count(new_home) == 0 {
            return false;
        }
        loop {
            let before = self.common.sequences.before(class.home);
            if old.cells.shows(&older, old.cells.seen(&older)) || view.new.shows(&newer, view.new.seen(&newer)) {
                return true;
            }
            if self.common.sequences.after(class.home) == before {
                return false;
            }
            view.new.note_retry();
        }
    }

    /// Whether the class has a key. See [`Cells::has_key`].
    fn has_key(&self, class: Class) -> bool {
        let backoff = Backoff::new();
        loop {
            let view = self.view();
            let before = self.common.sequences.before(class.home);
            let found = view.tables().any(|cells| {
                let candidates = cells.candidates(class);
                cells.shows(&candidates, cells.seen(&candidates))
            });
            let unchanged = self.common.sequences.after(class.home) == before && self.is_current(&view);
            if unchanged && (!found || Sequences::is_quiet(before)) {
                return found;
            }
            view.new.note_retry();
            if found {
                sync::snooze(&backoff);
            }
        }
    }

    /// Copies of the class. One that is being moved may be counted twice.
    pub(crate) fn count(&self, class: Class) -> usize {
        loop {
            let view = self.view();
            let before = self.common.sequences.before(class.home);
            let copies = view.tables().map(|cells| {
                let candidates = cells.candidates(class);
                cells.copies(&candidates, cells.seen(&candidates))
            });
            let copies = copies.sum();
            if self.common.sequences.after(class.home) == before && self.is_current(&view) {
                return copies;
            }
            view.new.note_retry();
        }
    }

    #[inline]
    pub(crate) fn insert(&self, class: Class) -> Result<(), InsertError> {
        let state = self.state.load();
        let cells = self.newest(state);
        // Without another table this is all that most inserts do.
        let placed = state.draining.is_none()
            && !self.state.has_left()
            && cells.place(cells.home(class), Slot::at_home(class.fingerprint))
            && (self.is_still(state) || !self.took_late_copy(state, class));
        if !placed {
            self.insert_or_grow(class)?;
        }
        self.common.counters.add(Event::Inserted);
        Ok(())
    }

    /// Takes back a copy that was placed in the only table of a state which is not that of now; `false` if that is not needed.
    ///
    /// If the table is in use the copy was placed before its slot was sealed, and is as good as any. If it is not, all its slots were sealed before it was left. So either
    /// the copy was moved before that, and is not there any more; or it was placed in a page that had been given back, where nobody will ever look for it.
    #[cold]
    #[inline(never)]
    fn took_late_copy(&self, state: &State, class: Class) -> bool {
        let cells = self.newest(state);
        !mutated!("trust_late_copies")
            && !self.state.load().has(&state.current)
            && cells.clear_home(&cells.candidates(class))
    }

    #[inline(never)]
    fn insert_or_grow(&self, class: Class) -> Result<(), InsertError> {
        // Whoever waits below waits for threads that are inside too.
        let inside = self.gate.enter();
        if self.state.has_left() {
            self.state.give_back(&self.gate, &inside);
        }
        let backoff = Backoff::new();
        loop {
            let view = self.view_to_change();
            if view.old.is_some() {
                self.help(&view);
            }
            let around = Around { filter: self, view: &view };
            let candidates = view.new.candidates(class);
            // Both, whether or not both are needed; and one of them is enough.
            let home = around.is_ready(candidates.home);
            let away = around.is_ready(candidates.away);
            if home && view.new.place(candidates.home, Slot::at_home(class.fingerprint)) {
                return Ok(());
            }
            if home | away && kick::place_or_kick(&view.new, &candidates, &around, &self.common.counters).is_ok() {
                return Ok(());
            }
            let filled = view.new.is_filled_by(&candidates);
            if !ptr::eq(self.state.peek(), view.state) && !mutated!("grow_without_state_check") {
                continue;
            }
            if view.old.is_some() {
                // Room is behind buckets whose draining another thread has not finished.
                sync::snooze(&backoff);
                continue;
            }
            let refusal = if filled { Some(InsertError::TooManyCopies) } else { self.grow(&view, &backoff).err() };
            if let Some(error) = refusal {
                self.common.counters.add(Event::Refused);
                return Err(error);
            }
        }
    }

    pub(crate) fn insert_if_absent(&self, class: Class) -> Result<bool, InsertError> {
        let _claim = self.claims.claim(class.home);
        if self.has_key(class) {
            return Ok(false);
        }
        self.insert(class).map(|()| true)
    }

    #[inline]
    pub(crate) fn remove(&self, class: Class) -> bool {
        let taken = self.take_from_new_home(class).unwrap_or_else(|| {
            let _inside = self.gate.enter();
            self.common.sequences.advance(class.home);
            self.take(class)
        });
        if taken {
            self.common.counters.add(Event::Removed);
        }
        taken
    }

    /// Takes an undisplaced copy by the current home word alone, if that decides. See [`Cells::take_from_home_alone`].
    #[inline]
    fn take_from_new_home(&self, class: Class) -> Option<bool> {
        let state = self.state.load();
        if let Some(old) = &state.draining {
            let old = Old { generation: old, cells: self.cells(old) };
            // All copies are in the new table, and its home word knows of them, only if there is nothing in the old one.
            let home = old.cells.word(old.cells.home(class)).load();
            let empty = self.plan.layout.is_sealed(home) && word::displaced_count(home) == 0;
            if !empty && !old.has_lost(class) {
                return None;
            }
        }
        let cells = self.newest(state);
        let taken = cells.take_from_home_alone(&cells.candidates(class))?;
        (taken || self.is_still(state)).then_some(taken)
    }

    /// Takes one copy of the class from wherever it is; `false` if a validated read finds none. The caller has advanced the sequence, once.
    fn take(&self, class: Class) -> bool {
        loop {
            let view = self.view();
            let before = self.common.sequences.before(class.home);
            if view.tables().any(|cells| cells.clear_any(&cells.candidates(class))) {
                return true;
            }
            if self.common.sequences.after(class.home) == before && self.is_current(&view) {
                return false;
            }
            view.new.note_retry();
        }
    }

    /// Takes a copy that is one too many. See [`Surroundings::settle`].
    fn settle(&self, class: Class) {
        if !self.take(class) {
            self.common.counters.add(Event::Inserted);
        }
    }

    /// Publishes a table of twice the size, or waits for the thread that is about to. The view has but one table, which is full.
    fn grow(&self, view: &View<'_>, backoff: &Backoff) -> Result<(), InsertError> {
        let doublings = view.current.place.doublings();
        let slots = view.current.buckets() * self.plan.layout.slots();
        // Below half load it is keys of nearly equal hashes that fill a place of the table, and would fill it again after any growth.
        if doublings == self.plan.doublings || self.common.counters.keys(slots) < slots / 2 {
            return Err(InsertError::Full);
        }
        self.double(view, backoff).map_err(|AllocError { bytes }| InsertError::Alloc { bytes })
    }

    fn double(&self, view: &View<'_>, backoff: &Backoff) -> Result<(), AllocError> {
        // Acquire: the state that the last grower published is visible. Pairs with the Release of `GrowingFlag`.
        if self.growing.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            sync::snooze(backoff);
            return Ok(());
        }
        let _flag = GrowingFlag(&self.growing);
        if ptr::eq(self.state.peek(), view.state) {
            let doublings = view.current.place.doublings() + 1;
            let double = Generation::new(self.plan.base, self.plan.layout, doublings, self.huge_pages)?;
            let draining = Some(Arc::clone(&view.state.current));
            self.state.replace(view.state, State::new(Arc::new(double), draining));
        }
        Ok(())
    }

    /// Grows until the table has room for so many keys more.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), InsertError> {
        let backoff = Backoff::new();
        let wanted = self.keys().saturating_add(additional);
        if self.plan.max_capacity() < wanted {
            return Err(InsertError::Full);
        }
        loop {
            let inside = self.gate.enter();
            let view = self.view_to_change();
            let doublings = view.current.place.doublings();
            if self.plan.capacity(doublings) >= wanted {
                return Ok(());
            }
            if doublings == self.plan.doublings {
                return Err(InsertError::Full);
            }
            if view.old.is_some() {
                drop(inside);
                self.finish_draining();
            } else {
                self.double(&view, &backoff).map_err(|AllocError { bytes }| InsertError::Alloc { bytes })?;
            }
        }
    }

    /// [`contains`](Self::contains) for many hashes.
    pub(crate) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        let view = self.view();
        match &view.old {
            None => batch::contains(&view.new, view.current.cached, hashes, found),
            Some(old) => self.contains_hashes_draining(Backend::best(), &view, old, hashes, found),
        }
        if !self.is_current(&view) {
            // A few of these answers may be wrong, and growth is rare.
            for (hash, found) in hashes.iter().zip(found) {
                *found = *found || self.contains(self.class(*hash));
            }
        }
    }

    fn contains_hashes_draining<'g>(
        &'g self,
        backend: Backend,
        view: &View<'g>,
        old: &Old<'g>,
        hashes: &[u64],
        found: &mut [bool],
    ) {
        // Before the words of either table.
        let sealed = old.generation.sealed_buckets();
        let tables = TwoTables { old: old.cells, new: view.new, sealed, begun: old.generation.begun_marks() };
        batch::contains_in_two(backend, &tables, hashes, found, &|hash| self.contains(self.class(hash)));
    }

    /// [`insert`](Self::insert) for many hashes.
    pub(crate) fn insert_hashes(&self, hashes: &[u64]) -> Result<(), InsertHashesError> {
        // The words of this view are only asked for: if the filter grows meanwhile they are the wrong ones, which costs time and nothing else.
        let view = self.view();
        let full = |home| self.plan.layout.is_full(home);
        let look_ahead = |class| {
            if !view.current.cached {
                kick::look_ahead(&view.new, class);
            }
        };
        batch::staged(&view.new, hashes, full, look_ahead, |_, class| self.insert(class))
            .map_err(|(inserted, error)| InsertHashesError { inserted, error })
    }

    /// [`remove`](Self::remove) for many hashes.
    pub(crate) fn remove_hashes(&self, hashes: &[u64], removed: &mut [bool]) {
        let view = self.view();
        let remove = |index: usize, class| {
            removed[index] = self.remove(class);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = batch::staged(&view.new, hashes, |home| word::displaced_count(home) != 0, |_| {}, remove)
            .map_err(|(_, never): (usize, Infallible)| never);
    }

    /// Keys that are in.
    pub(crate) fn keys(&self) -> usize {
        self.common.counters.keys(self.slots())
    }

    /// Slots of the larger table.
    pub(crate) fn slots(&self) -> usize {
        self.buckets() * self.plan.layout.slots()
    }

    pub(crate) fn doublings(&self) -> u32 {
        self.view().current.place.doublings()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.view().current.buckets()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.view().old.is_some()
    }

    /// All words of all tables, the older one first, each read at a moment of its own.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.view().tables().flat_map(|cells| cells.words())
    }

    /// Bytes on the heap and in maps, those of tables that were left included as long as they are not given back.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.state.load().tables().map(Generation::memory_bytes).sum::<usize>()
            + self.common.memory_bytes()
            + self.claims.memory_bytes()
            + self.gate.memory_bytes()
    }

    /// Empties the filter, in a table of the size it has.
    pub(crate) fn clear(&mut self) {
        let current = Arc::clone(&self.state.load().current);
        current.clear();
        self.state = StateCell::new(State::new(current, None));
        self.common.counters.reset();
    }
}

impl<'g> View<'g> {
    /// The older table first.
    fn tables(&self) -> impl Iterator<Item = Cells<'g, Doubled>> + use<'g> {
        self.old.map(|old| old.cells).into_iter().chain([self.new])
    }
}

/// What a kick in the newer table has to know of the older one.
struct Around<'a> {
    filter: &'a Growing,
    view: &'a View<'a>,
}

impl Surroundings for Around<'_> {
    /// Drains the old bucket behind this one.
    #[inline]
    fn is_ready(&self, bucket: usize) -> bool {
        match &self.view.old {
            Some(old) if !mutated!("place_before_drain") => {
                old.generation.is_sealed(bucket >> 1) || self.filter.drain_bucket(self.view, old, bucket >> 1)
            }
            _ => true,
        }
    }

    fn settle(&self, class: Class) {
        self.filter.settle(class);
    }
}

/// Clears the flag of the thread that grows.
struct GrowingFlag<'a>(&'a AtomicBool);

impl Drop for GrowingFlag<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `double`.
        self.0.store(false, Ordering::Release);
    }
}
