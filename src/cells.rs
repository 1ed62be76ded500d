//! The table with what is needed to read and change it step by step: the primitives that every operation is made of.
//!
//! # Protocol
//!
//! - A class has its copies in two words: undisplaced in the home word, displaced in the away word. The home word also counts the
//!   displaced ones of all its classes. A word is only ever changed by a compare-and-swap of the whole word.
//! - A count is raised *before* the copy it stands for is placed, and lowered *after* that copy was taken (I2 of
//!   `docs/design.md`). So a home word without a match and with count 0 proves absence by itself.
//! - A copy is taken only after [`Sequences::advance`] was called for it once (I4), unless the home word says in that very
//!   compare-and-swap that no displaced copy exists. So two words without a match prove absence if the counter of their
//!   stripe is the same before and after ([`Cells::validated`]).
//!
//! What may go wrong: a copy that one wanted to clear is already gone, because someone removed or moved it. Copies of a class
//! are alike; then one takes any other of them ([`Cells::take`]).

use crossbeam_utils::Backoff;

use crate::{
    hash::{Class, Geometry, Only},
    seq::Sequences,
    stats::Event,
    sync::{self, AtomicWord},
    word::{self, Layout, Pattern, Slot},
    words::{Live, Readable, Words},
};

/// One table of a filter and what is needed to work on it.
///
/// Whatever is not inlined into a look-up or a removal takes it by value: a reference would force it into memory even where the call is not made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells<'a, G: Readable = Only> {
    pub(crate) words: G::Words<'a>,
    pub(crate) layout: &'a Layout,
    pub(crate) geometry: &'a Geometry,
    pub(crate) generation: G,
}

/// A class with all that is needed to work on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    pub(crate) class: Class,
    /// The home bucket in this table.
    pub(crate) home: usize,
    /// The away bucket in this table. Equal to `home` for a few classes, which then have no displaced copies.
    pub(crate) away: usize,
    at_home: Pattern,
    displaced: Pattern,
}

impl Candidates {
    /// Whether the class has but one bucket.
    #[inline(always)]
    pub(crate) fn is_single(&self) -> bool {
        self.home == self.away
    }
}

/// Both candidate words of a class at one time during which no copy of it was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) home: u64,
    pub(crate) away: u64,
}

/// Why one attempt did not place anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPlaced {
    /// The bucket has no free slot.
    NoRoom,
    /// Another thread changed the bucket in between.
    Overtaken,
}

/// Reading.
impl<G: Readable> Cells<'_, G> {
    /// The word of a bucket.
    #[inline(always)]
    pub(crate) fn load(&self, bucket: usize) -> u64 {
        self.words.load(bucket)
    }

    /// The home bucket of a class.
    #[inline(always)]
    pub(crate) fn home(&self, class: Class) -> usize {
        self.generation.bucket(class.home, class.fingerprint)
    }

    /// The away bucket of a class.
    #[inline(always)]
    pub(crate) fn away(&self, class: Class) -> usize {
        self.generation.bucket(self.geometry.other(class.home, class.fingerprint), class.fingerprint)
    }

    /// The other candidate bucket of a fingerprint that sits in `bucket`.
    #[inline(always)]
    pub(crate) fn other(&self, bucket: usize, fingerprint: u32) -> usize {
        self.away(Class { home: self.generation.base(bucket), fingerprint })
    }

    /// Notes that a pair of words is read again.
    #[inline(always)]
    pub(crate) fn note_retry(&self) {
        self.words.note_retry();
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, bucket: usize) {
        self.words.prefetch(bucket);
    }

    #[inline(always)]
    pub(crate) fn candidates(&self, class: Class) -> Candidates {
        Candidates {
            class,
            home: self.home(class),
            away: self.away(class),
            at_home: self.layout.pattern(Slot::at_home(class.fingerprint)),
            displaced: self.layout.pattern(Slot::away(class.fingerprint)),
        }
    }

    /// Whether the class has a copy, for tables in memory: looks into the home bucket first, and only asks for the away bucket
    /// if the home bucket has displaced fingerprints.
    #[inline(always)]
    pub(crate) fn contains_home_first(&self, class: Class) -> bool {
        let home = self.load(self.home(class));
        if self.layout.contains(home, self.layout.pattern(Slot::at_home(class.fingerprint))) {
            return true;
        }
        // I2: count 0 proves that there is no displaced copy at the instant of this load.
        word::displaced_count(home) != 0 && self.contains_away(class)
    }

    #[inline(never)]
    fn contains_away(self, class: Class) -> bool {
        self.contains_both(class)
    }

    /// Whether the class has a copy, for tables in cache: reads both words always, since a branch on the displaced count would be
    /// mispredicted more dearly than a cached word is read.
    #[inline(always)]
    pub(crate) fn contains_both(&self, class: Class) -> bool {
        let at = self.candidates(class);
        let before = self.words.before(class.home);
        // In this order or the other: the argument does not depend on it.
        if self.shows(&at, self.seen(&at)) {
            return true;
        }
        // I4: no copy was taken between the reads. The displaced count is not asked, it would be one more branch to mispredict.
        let moved = self.words.after(class.home) != before;
        moved && !mutated!("read_without_validation") && self.contains_again(class)
    }

    /// Half a look-up, for the mutation of the batch that forgets the other half.
    pub(crate) fn contains_displaced(&self, class: Class) -> bool {
        let class = self.candidates(class);
        self.layout.contains(self.load(class.away), class.displaced)
    }

    /// The look-up for those whose stripe has changed under them.
    ///
    /// Goes round only if a relocation of the same stripe began or ended meanwhile, or a copy was removed there.
    #[cold]
    #[inline(never)]
    fn contains_again(self, class: Class) -> bool {
        self.note_retry();
        let class = self.candidates(class);
        self.shows(&class, self.validated(&class))
    }

    /// How many copies the class has. A copy that is being relocated may be seen in both places.
    pub(crate) fn count(&self, class: &Candidates) -> usize {
        self.copies(class, self.validated(class))
    }

    /// How many copies of the class these words hold.
    pub(crate) fn copies(&self, class: &Candidates, seen: Seen) -> usize {
        let at_home = self.layout.matches_exact(seen.home, class.at_home);
        let displaced = if class.is_single() { 0 } else { self.layout.matches_exact(seen.away, class.displaced) };
        (at_home.count_ones() + displaced.count_ones()) as usize
    }

    /// Both words, the away word first; whoever needs more than that they were read in this order looks at the sequence before and after.
    #[inline(always)]
    pub(crate) fn seen(&self, class: &Candidates) -> Seen {
        let away = self.load(class.away);
        let home = self.load(class.home);
        Seen { home, away }
    }

    /// Whether these words hold a copy of the class.
    #[inline(always)]
    pub(crate) fn shows(&self, class: &Candidates, seen: Seen) -> bool {
        self.layout.matches(seen.home, class.at_home) | self.layout.matches(seen.away, class.displaced) != 0
    }

    /// Reads both words until no copy of their stripe was taken in between.
    fn validated(&self, class: &Candidates) -> Seen {
        loop {
            let before = self.words.before(class.class.home);
            let seen = self.seen(class);
            if self.words.after(class.class.home) == before || mutated!("look_again_only_once") {
                return seen;
            }
            self.note_retry();
        }
    }

    /// Whether the class has a key. Unlike [`contains_both`](Self::contains_both) it is not deceived by the copy that a relocation is about to take
    /// back: it waits for relocations of the stripe if it sees a copy.
    pub(crate) fn has_key(&self, class: Class) -> bool {
        let candidates = self.candidates(class);
        let backoff = Backoff::new();
        loop {
            let before = self.words.before(class.home);
            let found = self.shows(&candidates, self.seen(&candidates));
            if self.words.after(class.home) == before && (!found || Sequences::is_quiet(before)) {
                return found;
            }
            self.note_retry();
            if found {
                sync::snooze(&backoff);
            }
        }
    }

    /// Whether both candidate buckets hold nothing but this class.
    pub(crate) fn is_filled_by(&self, class: &Candidates) -> bool {
        let seen = self.validated(class);
        let all = self.layout.slots() as u32;
        self.layout.matches_exact(seen.home, class.at_home).count_ones() == all
            && (class.is_single() || self.layout.matches_exact(seen.away, class.displaced).count_ones() == all)
    }

    /// Whether the home word `word` of this class holds a copy of it.
    #[inline(always)]
    pub(crate) fn has_at_home(&self, word: u64, class: &Candidates) -> bool {
        self.layout.contains(word, class.at_home)
    }
}

/// Changing.
impl<'a, G: Live> Cells<'a, G> {
    #[inline(always)]
    pub(crate) fn word(&self, bucket: usize) -> &'a AtomicWord {
        &self.words.table.words()[bucket]
    }

    /// The sequence counters of the filter.
    #[inline(always)]
    pub(crate) fn sequences(&self) -> &'a Sequences {
        &self.words.common.sequences
    }

    /// Replaces the word `current` of a bucket, or says what stands there instead.
    #[inline(always)]
    pub(crate) fn swap(&self, bucket: usize, current: u64, new: u64) -> Result<(), u64> {
        let swapped = self.word(bucket).compare_exchange(current, new);
        if swapped.is_err() {
            self.note_overtaken();
        }
        swapped
    }

    /// Notes that a compare-and-swap is done again.
    #[inline(always)]
    pub(crate) fn note_overtaken(&self) {
        self.words.common.counters.add_rare(Event::SwappedAgain);
    }

    /// Replaces the word of a bucket by what `change` makes of it, however often others change it first; `false` if `change` makes nothing of it.
    #[inline(always)]
    pub(crate) fn update(&self, bucket: usize, change: impl Fn(u64) -> Option<u64>) -> bool {
        let mut current = self.word(bucket).peek();
        while let Some(new) = change(current) {
            match self.swap(bucket, current, new) {
                Ok(()) => return true,
                Err(now) => current = now,
            }
        }
        false
    }

    /// One attempt at what [`place`](Self::place) does.
    #[inline(always)]
    pub(crate) fn place_once(&self, bucket: usize, slot: Slot) -> Result<(), NotPlaced> {
        let word = self.word(bucket);
        let current = word.peek();
        let new = self.layout.placed(current, slot).ok_or(NotPlaced::NoRoom)?;
        word.compare_exchange(current, new).map_err(|_| NotPlaced::Overtaken)
    }

    /// Puts `slot` into a free slot of `bucket`; `false` if there is none.
    #[inline]
    pub(crate) fn place(&self, bucket: usize, slot: Slot) -> bool {
        self.update(bucket, |word| self.layout.placed(word, slot))
    }

    /// Clears one undisplaced copy of the class; `false` if there is none. The caller has advanced the sequence.
    #[inline]
    pub(crate) fn clear_home(&self, class: &Candidates) -> bool {
        self.clear(class.home, class.at_home)
    }

    /// Clears one displaced copy of the class, without lowering the count; `false` if there is none. The caller has advanced
    /// the sequence.
    #[inline]
    pub(crate) fn clear_away(&self, class: &Candidates) -> bool {
        !class.is_single() && self.clear(class.away, class.displaced)
    }

    /// Clears one copy of the class wherever it is, and keeps the count; `false` if there is none at the time of looking at each bucket.
    /// The caller has advanced the sequence.
    #[inline]
    pub(crate) fn clear_any(&self, class: &Candidates) -> bool {
        if self.clear_home(class) {
            return true;
        }
        let cleared = self.clear_away(class);
        if cleared {
            self.count_down(class.home);
        }
        cleared
    }

    /// Seals the slot of one copy in `bucket`, which belongs to a table that is being left; `false` if there is none. Without lowering the
    /// count. The caller has advanced the sequence.
    #[cfg(feature = "growth")]
    pub(crate) fn seal(&self, bucket: usize, slot: Slot) -> bool {
        let pattern = self.layout.pattern(slot);
        if mutated!("drain_clears_instead_of_sealing") {
            return self.clear(bucket, pattern);
        }
        self.update(bucket, |word| self.layout.sealed(word, pattern))
    }

    #[inline]
    fn clear(&self, bucket: usize, pattern: Pattern) -> bool {
        self.update(bucket, |word| self.layout.cleared(word, pattern))
    }

    /// Raises the displaced count of `home`, as long as the word is one that `wanted` agrees to; `false` if it does not.
    #[inline]
    pub(crate) fn count_up(&self, home: usize, wanted: impl Fn(u64) -> bool) -> bool {
        let mut current = self.word(home).peek();
        loop {
            if !wanted(current) {
                return false;
            }
            let Some(new) = word::counted_up(current) else { return true };
            match self.swap(home, current, new) {
                Ok(()) => return true,
                Err(now) => current = now,
            }
        }
    }

    /// Lowers the displaced count of `home`, after the copy it stood for is gone.
    #[inline]
    pub(crate) fn count_down(&self, home: usize) {
        // `false` if it is saturated: then there is nothing to do.
        self.update(home, word::counted_down);
    }

    /// Takes one undisplaced copy of the class with a single compare-and-swap if the home word alone decides: a copy and no
    /// displaced ones (taken), or neither (absent). `None` if it takes more.
    ///
    /// Needs no sequence: at the instant of that compare-and-swap all copies of the class are in this word. Those that it leaves are found
    /// there; if it leaves none the class has no keys at that instant, and a reader that answers "absent" because of it is right.
    #[inline]
    pub(crate) fn take_from_home_alone(&self, class: &Candidates) -> Option<bool> {
        let mut current = self.word(class.home).peek();
        while word::displaced_count(current) == 0 {
            let Some(new) = self.layout.cleared(current, class.at_home) else { return Some(false) };
            match self.swap(class.home, current, new) {
                Ok(()) => return Some(true),
                Err(now) => current = now,
            }
        }
        None
    }

    /// Takes one copy of the class from wherever it is; `false` if a validated read finds none. The caller has advanced the
    /// sequence, once.
    ///
    /// Goes round again only if a relocation of the same stripe began or ended meanwhile, or a copy was removed there.
    pub(crate) fn take(self, class: &Candidates) -> bool {
        loop {
            let before = self.words.before(class.class.home);
            if self.clear_any(class) {
                return true;
            }
            if self.words.after(class.class.home) == before {
                return false;
            }
            self.note_retry();
        }
    }

    /// All words, each read at a moment of its own.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + use<'a, G> {
        self.words.table.words().iter().map(AtomicWord::load)
    }
}
