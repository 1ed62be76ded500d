//! The counters of a [`CountingBloomFilter`](super::CountingBloomFilter), or of a layer of a scalable one (Fan, Cao, Almeida and Broder, "Summary cache", 2000): `64 / bits` in each word.
//!
//! # Rules
//!
//! 1. **A key counts once in each of its counters**, however many of its probes meet there: they are sorted out alike on insert and remove.
//! 2. **A counter that has reached its maximum stays there.** It stands for any number from there on, so it can neither be raised nor lowered: no overflow, and no counter that is lowered
//!    more often than it was raised.
//! 3. **Remove looks before it takes.** If a counter of the key is 0 the key is surely absent, and nothing changes.
//! 4. **Remove takes all or nothing.** If it finds a counter at 0 while it takes (which only over-removal leads to: two threads that remove a key which is in once), it puts back what it
//!    has taken.
//! 5. **A snapshot has a key wholly or not at all**: inserts and removals go through the [gate](crate::gate) that it closes while it copies. A key that was copied by half would be found
//!    if others happen to share the counters that it lacks, and its removal from the copy would then lower theirs.
//!
//! # Why no key is missed
//!
//! Take one counter, and the order in which it changes, which all threads agree on. Every key raises it before its insert returns, and lowers it only after its remove began. So
//! at each point of the order after a key was inserted and before it is removed, those who raised it are more than those who lowered it, by that key at least: the counter is
//! above 0, or at its maximum for ever. Whoever learns of the insert reads the counter at such a point. No order between different counters is needed, so all accesses are Relaxed.

use super::{
    layers::Cells as _,
    shape::{MAX_PROBES, Shape},
};
use crate::{
    batch::GROUP,
    gate::{Closed, Gate, Inside},
    memory::AllocError,
    sync::AtomicWord,
    table::Table,
};

#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) table: Table,
    pub(crate) shape: Shape,
    gate: Gate,
}

/// A counter: its word, and its lowest bit there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Place {
    word: usize,
    shift: u32,
}

/// The counters of a key, each once.
struct Places {
    places: [Place; MAX_PROBES as usize],
    len: usize,
}

impl Places {
    fn of(counters: &Counters, hash: u64) -> Self {
        let mut places = Self { places: [Place::default(); MAX_PROBES as usize], len: 0 };
        for cell in counters.shape.probes(counters.shape.mixed(hash)) {
            let place = counters.place(cell);
            if mutated!("count_probes_twice") || !places.all().contains(&place) {
                places.places[places.len] = place;
                places.len += 1;
            }
        }
        places
    }

    fn all(&self) -> &[Place] {
        &self.places[..self.len]
    }
}

impl Counters {
    /// With a table that there is already.
    pub(crate) fn of(table: Table, shape: Shape) -> Result<Self, AllocError> {
        Ok(Self { table, shape, gate: Gate::for_buckets(shape.words)? })
    }

    /// For models with snapshots.
    #[cfg(loom)]
    pub(crate) fn put_gate_to_use(&mut self) {
        self.gate.put_to_use();
    }

    /// Until this is dropped no counter changes. Waits for inserts and removals that have begun.
    pub(crate) fn hold_still(&self) -> Closed<'_> {
        self.gate.close()
    }

    /// Which counters a hash has.
    #[cfg(loom)]
    pub(crate) fn cells(&self, hash: u64) -> alloc::vec::Vec<usize> {
        let cell = |place: &Place| (64 * place.word + place.shift as usize) / self.shape.cell_bits as usize;
        Places::of(self, hash).all().iter().map(cell).collect()
    }

    /// The largest value of a counter.
    pub(crate) fn max(&self) -> u64 {
        (1 << self.shape.cell_bits) - 1
    }

    #[inline(always)]
    fn place(&self, cell: u64) -> Place {
        // 32, 16 or 8 counters in a word.
        let in_word = 6 - self.shape.cell_bits.trailing_zeros();
        let within = cell as u32 & ((1 << in_word) - 1);
        Place { word: (cell >> in_word) as usize, shift: within * self.shape.cell_bits }
    }

    #[inline(always)]
    fn read(&self, place: Place) -> u64 {
        self.table.words()[place.word].load_alone() >> place.shift & self.max()
    }

    /// Changes a counter, unless it is at its maximum or `change` has nothing for its value; the value before, if it changed.
    #[inline(always)]
    fn update(&self, place: Place, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let word = &self.table.words()[place.word];
        let mut current = word.peek_alone();
        loop {
            let value = current >> place.shift & self.max();
            let Some(new) = change(value).filter(|_| value != self.max()) else { return Err(value) };
            match word.replace_alone(current, current ^ (value ^ new) << place.shift) {
                Ok(()) => return Ok(value),
                Err(now) => current = now,
            }
        }
    }

    /// Raises the counters of a hash; how many were 0.
    pub(crate) fn insert(&self, hash: u64) -> u32 {
        self.insert_inside(hash, &self.gate.enter())
    }

    #[inline]
    fn insert_inside(&self, hash: u64, _inside: &Inside<'_>) -> u32 {
        Places::of(self, hash).all().iter().fold(0, |new, place| new + u32::from(self.raise(*place) == Ok(0)))
    }

    fn raise(&self, place: Place) -> Result<u64, u64> {
        self.update(place, |value| Some(value + 1))
    }

    /// Lowers the counters of a hash. `true` with how many more are 0 now; `false` if it is surely absent: then nothing has changed, but what other threads have done meanwhile may make that
    /// number, which is the change of all counters that are 0, another than 0.
    pub(crate) fn remove(&self, hash: u64) -> (bool, i32) {
        let places = Places::of(self, hash);
        let places = places.all();
        // Before the gate: what it says is asked again below, of each counter that changes.
        if places.iter().any(|place| self.read(*place) == 0) {
            return (false, 0);
        }
        let _inside = self.gate.enter();
        let mut emptied = 0;
        for (index, place) in places.iter().enumerate() {
            match self.update(*place, |value| value.checked_sub(1)) {
                Ok(value) => emptied += i32::from(value == 1),
                // At its maximum: it stays.
                Err(value) if value != 0 => {}
                Err(_) => {
                    // Those that are at their maximum now were not taken, or were raised since: they stay too.
                    for place in &places[..index] {
                        emptied -= i32::from(self.raise(*place) == Ok(0));
                    }
                    return (false, emptied);
                }
            }
        }
        (true, emptied)
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.shape.probes(self.shape.mixed(hash)).all(|cell| self.read(self.place(cell)) != 0)
    }

    /// The lowest of the counters of a hash.
    pub(crate) fn count(&self, hash: u64) -> u64 {
        let counts = self.shape.probes(self.shape.mixed(hash)).map(|cell| self.read(self.place(cell)));
        counts.min().unwrap_or(0)
    }

    pub(crate) fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        for (hashes, found) in hashes.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            hashes.iter().for_each(|hash| self.ask(*hash, 2));
            for (found, hash) in found.iter_mut().zip(hashes) {
                *found = self.contains(*hash);
            }
        }
    }

    pub(crate) fn insert_batch(&self, hashes: &[u64]) {
        for hashes in hashes.chunks(GROUP / 4) {
            hashes.iter().for_each(|hash| self.ask(*hash, MAX_PROBES as usize));
            // Once for all of them: a snapshot waits for some microseconds.
            let inside = self.gate.enter();
            for hash in hashes {
                self.insert_inside(*hash, &inside);
            }
        }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.table.words().iter().map(AtomicWord::load_alone)
    }

    /// Counters above 0, and counters at their maximum.
    pub(crate) fn tally(&self) -> (u64, u64) {
        tally(self.words(), self.shape.cell_bits)
    }

    pub(crate) fn clear(&mut self) {
        self.table.reset();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.gate.memory_bytes()
    }
}

/// Counters above 0 in these words, and those at their maximum.
pub(crate) fn tally(words: impl Iterator<Item = u64>, bits: u32) -> (u64, u64) {
    // The lowest bit of each counter.
    let ones = u64::MAX / ((1 << bits) - 1);
    let count = |bits: u64| u64::from((bits & ones).count_ones());
    words.fold((0, 0), |(taken, full), word| {
        let (mut any, mut all) = (word, word);
        for bit in 1..bits {
            any |= word >> bit;
            all &= word >> bit;
        }
        (taken + count(any), full + count(all))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tallies() {
        for bits in [2, 4, 8] {
            let max = (1_u64 << bits) - 1;
            // Counters 0, 1, the half, one less than the maximum, the maximum, and 0 for the rest.
            let values = [0, 1, max.div_ceil(2), max - 1, max];
            let word = values.iter().rev().fold(0, |word, value| word << bits | value);
            let taken = values.iter().filter(|value| **value != 0).count() as u64;
            let full = values.iter().filter(|value| **value == max).count() as u64;
            assert_eq!(tally([word].into_iter(), bits), (taken, full), "{bits}");
            assert_eq!(tally([u64::MAX, 0].into_iter(), bits), (64 / u64::from(bits), 64 / u64::from(bits)));
        }
    }

    /// In a filter of one word most keys meet a counter twice.
    #[test]
    fn all_that_was_inserted_can_be_removed() {
        for bits in [2, 4, 8] {
            for words in [1, 2, 5] {
                let counters = Counters::new(Shape::new(false, words, bits, 10, 3), false).unwrap();
                for hash in 0..1000 {
                    let taken = counters.insert(hash);
                    assert!(counters.contains(hash));
                    assert_eq!(counters.remove(hash), (true, taken as i32));
                    assert_eq!(counters.remove(hash), (false, 0));
                    assert_eq!(counters.tally(), (0, 0), "{bits} {words} {hash}");
                }
            }
        }
    }

    #[test]
    fn full_counters_stay() {
        for bits in [2, 4, 8] {
            let counters = Counters::new(Shape::new(false, 4, bits, 5, 3), false).unwrap();
            for _ in 0..1 << bits {
                counters.insert(7);
            }
            for _ in 0..1 << bits {
                assert_eq!(counters.remove(7), (true, 0));
            }
            assert_eq!(counters.count(7), counters.max());
        }
    }
}
