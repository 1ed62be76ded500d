//! Draining: moving the fingerprints of the older table into the newer one, which is a relocation whose target is the next generation.
//!
//! # Protocol, for one old bucket
//!
//! 1. Seal its empty slots.
//! 2. For each copy in it: place one in the new table (a displaced one after raising the new home's count), advance the sequence, replace the
//!    old slot by *sealed*, and if it was displaced lower the old home's count.
//! 3. Until all slots are sealed: removers may have emptied some.
//!
//! Sealed slots stay so: whoever was stopped in the middle of anything, for however many growths, finds nowhere to put an old copy. Several
//! threads may drain one bucket; each copy that one of them placed but did not seal is one too many, and it takes one.
//!
//! A displaced copy goes to its home bucket, if that has room in the new table and its old bucket is sealed.
//!
//! Before all that, where both new buckets are still empty, the whole word is tried at once, its empty slots included.

use core::ops::Range;

use crossbeam_utils::Backoff;

use super::{Growing, Old, State, View};
use crate::{
    hash::{Class, Generation as _},
    seq::UnderWay,
    sync,
    word::{Layout, Slot},
};

/// The mutation that leaves free slots behind in the older table.
fn clears() -> bool {
    mutated!("drain_clears_instead_of_sealing")
}

/// The mutation that forgets what I2 asks for.
fn is_uncounted() -> bool {
    mutated!("drain_uncounted")
}

impl Growing {
    /// Drains a chunk, as a small contribution of an operation that has something else to do; or, as long as the newer table has huge pages that
    /// were never written to, has the system make one of them, which takes it about as long: copies from one chunk go to many pages.
    pub(super) fn help(&self, view: &View<'_>) {
        if let Some(old) = &view.old {
            if view.current.touch_page() {
                return;
            }
            match old.generation.next_chunk() {
                Some(chunk) => self.drain_chunk(view, old, chunk),
                None => 0,
            };
            self.retire(view);
        }
    }

    /// Drains about so many buckets, and says how many; 0 if there is nothing to drain.
    pub(crate) fn drain(&self, max_buckets: usize) -> usize {
        let mut drained = 0;
        while drained < max_buckets {
            // Anew for each chunk: a snapshot need not wait for all.
            let _inside = self.gate.enter();
            let buckets = self.drain_next();
            if buckets == 0 {
                break;
            }
            drained += buckets;
        }
        if !self.is_draining() {
            self.give_back();
        }
        drained
    }

    /// Drains a chunk; how many buckets, 0 if there is nothing to drain now. Inside the gate, or behind it.
    pub(super) fn drain_next(&self) -> usize {
        let view = self.view_to_change();
        let Some(old) = &view.old else { return 0 };
        let Some(chunk) = old.generation.next_chunk() else { return 0 };
        let buckets = self.drain_chunk(&view, old, chunk);
        if buckets != 0 {
            self.retire(&view);
        }
        buckets
    }

    /// Drains until there is but one table.
    pub(crate) fn finish_draining(&self) {
        let backoff = Backoff::new();
        while self.is_draining() {
            if self.drain(usize::MAX) == 0 {
                // What is left is being drained by other threads.
                {
                    let _inside = self.gate.enter();
                    self.retire(&self.view_to_change());
                }
                sync::snooze(&backoff);
            }
        }
        self.give_back();
    }

    /// Gives back the memory of the tables that were left, as far as nobody can be writing to it any more.
    fn give_back(&self) {
        let backoff = Backoff::new();
        while self.state.has_left() {
            // Anew for each slice, as in `drain`.
            let given = self.state.give_back(&self.gate, &self.gate.enter());
            if !given && (cfg!(loom) || backoff.is_completed()) {
                // Later inserts do the rest.
                return;
            }
            if !given {
                sync::snooze(&backoff);
            }
        }
    }

    /// Leaves the older table if it is drained.
    pub(super) fn retire(&self, view: &View<'_>) {
        if view.old.is_some_and(|old| old.generation.is_drained()) {
            let current = view.state.current.clone();
            // `false`: another thread was faster.
            self.state.replace(view.state, State::new(current, None));
        }
    }

    /// Drains the buckets of a chunk; how many, 0 if some could not be drained now.
    fn drain_chunk(&self, view: &View<'_>, old: &Old<'_>, chunk: usize) -> usize {
        // The next chunk is mostly the next to be drained, by this thread or by another: by then the words are there.
        self.look_ahead(view, old, old.generation.chunk(chunk + 1));
        let buckets = old.generation.chunk(chunk);
        let len = buckets.len();
        let mut sealed = true;
        let mut buckets = buckets.peekable();
        while let Some(first) = buckets.peek() {
            let base = old.cells.generation.base(*first);
            let _under_way = self.common.sequences.relocation(base);
            while let Some(bucket) = buckets.next_if(|bucket| old.cells.generation.base(*bucket) == base) {
                sealed &= self.drain_announced(view, old, bucket);
            }
        }
        if !sealed {
            return 0;
        }
        old.generation.set_sealed(chunk);
        len
    }

    /// Asks for the words whose counts change when the displaced copies of these buckets move: they lie anywhere. A hint, nothing depends on it.
    fn look_ahead(&self, view: &View<'_>, old: &Old<'_>, buckets: Range<usize>) {
        // In models these loads would hide what comes after them (`AtomicWord::peek`).
        if cfg!(loom) {
            return;
        }
        for bucket in buckets {
            let word = old.cells.word(bucket).load();
            for slot in self.plan.layout.taken(word).filter(|slot| slot.is_displaced()) {
                let class = self.class_of(old, bucket, slot);
                old.cells.prefetch(old.cells.home(class));
                view.new.prefetch(view.new.home(class));
            }
        }
    }

    /// Drains one bucket. `false` if that is not possible now: the new buckets have no room, because another thread has placed a copy there
    /// that it has not sealed here yet.
    pub(super) fn drain_bucket(&self, view: &View<'_>, old: &Old<'_>, bucket: usize) -> bool {
        let _under_way = self.common.sequences.relocation(old.cells.generation.base(bucket));
        self.drain_announced(view, old, bucket)
    }

    /// The same, by a caller who has announced relocations of this base bucket.
    fn drain_announced(&self, view: &View<'_>, old: &Old<'_>, bucket: usize) -> bool {
        let layout = &self.plan.layout;
        let cells = &old.cells;
        if !mutated!("drain_unmarked") {
            old.generation.set_begun(bucket);
        }
        let word = cells.word(bucket).peek();
        if layout.is_sealed(word) || !clears() && self.drain_word(view, old, bucket, word) {
            return true;
        }
        loop {
            if !clears() {
                cells.update(bucket, |word| {
                    let sealed = layout.sealed_empties(word);
                    (sealed != word).then_some(sealed)
                });
            }
            let word = cells.word(bucket).peek();
            if layout.is_sealed(word) || clears() && layout.is_empty(word) {
                return true;
            }
            for slot in layout.taken(word) {
                if !self.drain_slot(view, old, bucket, slot) {
                    return false;
                }
            }
        }
    }

    /// The class of a slot in a bucket of the older table.
    fn class_of(&self, old: &Old<'_>, bucket: usize, slot: Slot) -> Class {
        let base = old.cells.generation.base(bucket);
        let fingerprint = slot.fingerprint();
        let home = if slot.is_displaced() { self.geometry.other(base, fingerprint) } else { base };
        Class { home, fingerprint }
    }

    /// Places a displaced copy in its home bucket of the newer table, if it has room and nothing is drained into it any more. Copies of the older table were
    /// displaced when that was full; left away, they would cost every look-up of their home a second word.
    fn place_at_home(&self, view: &View<'_>, old: &Old<'_>, class: Class) -> bool {
        old.generation.is_sealed(old.cells.home(class))
            && view.new.place(view.new.home(class), Slot::at_home(class.fingerprint))
    }

    /// Moves one copy. `false` if there is no room for it.
    fn drain_slot(&self, view: &View<'_>, old: &Old<'_>, bucket: usize, slot: Slot) -> bool {
        let class = self.class_of(old, bucket, slot);
        let _under_way = slot.is_displaced().then(|| self.common.sequences.relocation(class.home));
        let placed = if slot.is_displaced() {
            self.place_at_home(view, old, class) || self.place_away(view, class)
        } else {
            view.new.place(view.new.home(class), slot)
        };
        if placed {
            self.common.sequences.advance(class.home);
            self.seal(old, bucket, slot, class);
            return true;
        }
        let pattern = self.plan.layout.pattern(slot);
        !self.plan.layout.contains(old.cells.word(bucket).load(), pattern)
    }

    /// Places a displaced copy in its away bucket of the newer table, counted before.
    fn place_away(&self, view: &View<'_>, class: Class) -> bool {
        let home = view.new.home(class);
        if !is_uncounted() {
            view.new.count_up(home, |_| true);
        }
        let placed = view.new.place(view.new.away(class), Slot::away(class.fingerprint));
        if !placed {
            view.new.count_down(home);
        }
        placed
    }

    /// Seals a copy in the older table of which there is one in the newer table now; the sequence was advanced.
    fn seal(&self, old: &Old<'_>, bucket: usize, slot: Slot, class: Class) {
        if !old.cells.seal(bucket, slot) {
            // Someone took it: there is one copy too many.
            if !mutated!("keep_extra_copy") {
                self.settle(class);
            }
        } else if slot.is_displaced() {
            old.cells.count_down(old.cells.home(class));
        }
    }

    /// Moves the copies of a bucket, whose word is this one, all at once; `false` if that does not work, then some may have been moved.
    fn drain_word(&self, view: &View<'_>, old: &Old<'_>, bucket: usize, word: u64) -> bool {
        let layout = &self.plan.layout;
        let targets = [2 * bucket, 2 * bucket + 1];
        let before = targets.map(|to| view.new.word(to).peek());
        if !before.iter().all(|word| layout.is_empty(*word)) {
            return false;
        }
        let base = old.cells.generation.base(bucket);
        let (mut after, mut len) = ([0_u64; 2], [0_u32; 2]);
        let mut copies = [const { None }; *Layout::SLOTS.end()];
        for (copy, slot) in copies.iter_mut().zip(layout.taken(word)) {
            let class = self.class_of(old, bucket, slot);
            let under_way = slot.is_displaced().then(|| self.common.sequences.relocation(class.home));
            let half = if slot.is_displaced() && self.place_at_home(view, old, class) {
                None
            } else {
                if slot.is_displaced() && !is_uncounted() {
                    view.new.count_up(view.new.home(class), |_| true);
                }
                let half = view.new.generation.bucket(base, slot.fingerprint()) & 1;
                after[half] = layout.pushed(after[half], len[half], slot);
                len[half] += 1;
                Some(half)
            };
            *copy = Some(Copy { slot, class, half, _under_way: under_way });
        }
        let copies = || copies.iter().flatten();
        // The counts of these words may change between the look at them and here, which is why they are looked at again.
        let place = |half: usize| {
            len[half] == 0 || view.new.update(targets[half], |word| layout.is_empty(word).then_some(word | after[half]))
        };
        let placed = [place(0), place(1)];
        if layout.displaced_slots(word) < layout.taken_count(word) {
            self.common.sequences.advance(base);
        }
        copies()
            .filter(|copy| copy.slot.is_displaced())
            .for_each(|copy| self.common.sequences.advance(copy.class.home));
        let whole = placed == [true; 2];
        if whole && old.cells.swap(bucket, word, layout.sealed_all(word)).is_ok() {
            for copy in copies().filter(|copy| copy.slot.is_displaced()) {
                old.cells.count_down(old.cells.home(copy.class));
            }
            return true;
        }
        // Those that were placed are each sealed or taken back; those that were not are not counted either.
        for Copy { slot, class, half, .. } in copies() {
            if half.is_none_or(|half| placed[half]) {
                self.seal(old, bucket, *slot, *class);
            } else if slot.is_displaced() {
                view.new.count_down(view.new.home(*class));
            }
        }
        false
    }
}

/// A copy that moves with others of its word.
struct Copy<'a> {
    slot: Slot,
    class: Class,
    /// Which of the two new buckets below its old one it goes to; `None` if it is in its home bucket already.
    half: Option<usize>,
    _under_way: Option<UnderWay<'a>>,
}
