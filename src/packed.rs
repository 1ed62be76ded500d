//! Filters of a set of hashes that is known beforehand, packed more tightly than one that is filled step by step.
//!
//! 1. The hashes are remixed and sorted, repeats dropped. The remixed hash decides everything, and a larger one has no smaller home: so the table does not depend on the
//!    order in which the hashes come, and its homes are filled from the first to the last.
//! 2. The table is as large as README's table of sizes says for a full one.
//! 3. As many as fit go home, of the rest as many as fit away. What is left walks: it takes the place of another that walks on, until one comes to an empty slot. Nobody else is there, so a
//!    fingerprint may be in hand; that is why it can be packed more tightly than step by step.
//! 4. If one finds no place all begins again with a table a little larger, up to the size that a filter of that capacity has.

use alloc::{boxed::Box, vec::Vec};
use core::hint;

use crate::{
    displaced::{self, Displaced},
    error::BuildError,
    hash::{Geometry, Only},
    memory::{AllocError, try_boxed},
    raw::RawFilter,
    sizing::{self, Plan},
    sync::AtomicWord,
    table::{self, Scratch},
    word::{self, Layout, Slot, with_slots},
};

/// Fingerprints that take a step together: as many words are asked for at a time.
const TOGETHER: usize = 64;
/// Steps after which a walk has found no place.
const LONGEST_WALK: u32 = 2_000;

/// A fingerprint on its way to a bucket, which is full.
#[derive(Clone, Copy)]
struct Walk {
    bucket: usize,
    carried: Slot,
}

/// A filter of a set of hashes, for as many keys, and how many these are. Hashes that repeat are one key.
pub(crate) fn build(
    hashes: &[u64],
    capacity: usize,
    rate: Option<f64>,
    slots: Option<usize>,
    seed: u64,
    huge_pages: bool,
) -> Result<(RawFilter, usize), BuildError> {
    let (sorted, len) = sorted_set(hashes, &Geometry::mixer(seed))?;
    let mixed = &sorted[..len];
    let capacity = capacity.max(mixed.len());
    let largest = sizing::plan(capacity, rate, slots)?;
    // Room for keys that come later, step by step, takes the table that a filter of that capacity has.
    let mut plan = if capacity > mixed.len() { largest } else { sizing::packed(capacity, rate, largest) };
    loop {
        let geometry = Geometry::new(plan.buckets, plan.layout, seed);
        let mut raw = RawFilter::new(plan.layout, geometry, huge_pages)?;
        if fill(&mut raw, &geometry, mixed)? {
            raw.common.counters.set_keys(mixed.len());
            return Ok((raw, capacity));
        }
        if plan == largest {
            return Err(BuildError::HashesTooAlike { hashes: mixed.len(), buckets: plan.buckets });
        }
        plan = Plan {
            buckets: largest.buckets.min(sizing::even_above(plan.buckets as f64 * (1.0 + 1.0 / 256.0)) as usize),
            ..plan
        };
    }
}

/// Fills an empty table with keys, remixed and sorted; `false` if one finds no place.
fn fill(raw: &mut RawFilter, geometry: &Geometry, mixed: &[u64]) -> Result<bool, AllocError> {
    let layout = *raw.cells().layout;
    let slots = layout.slots();
    let mut packing =
        Packing { words: raw.words_mut(), free: Scratch::new(geometry.buckets())?, layout, geometry, random: 1 };
    packing.free.fill(slots as u8);
    let mut rest: Vec<Walk> = Vec::new();
    // The home that is being filled, its word and how many are in it.
    let (mut bucket, mut word, mut len) = (0, 0, 0);
    for class in mixed.iter().map(|mixed| geometry.class_of_mixed(*mixed)) {
        if class.home != bucket {
            packing.begin(bucket, word, len);
            (bucket, word, len) = (class.home, 0, 0);
        }
        if len < slots as u32 {
            word = layout.pushed(word, len, Slot::at_home(class.fingerprint));
            len += 1;
        } else {
            rest.try_reserve(1).map_err(|_| AllocError { bytes: 2 * size_of_val(&*rest) })?;
            rest.push(Walk { bucket: class.home, carried: Slot::at_home(class.fingerprint) });
        }
    }
    packing.begin(bucket, word, len);
    if !with_slots!(slots, SLOTS => packing.place_all::<SLOTS>(&mut rest)) {
        return Ok(false);
    }
    packing.count_displaced()?;
    Ok(true)
}

/// A table that is being filled, by nobody else. Its displaced counts come last.
struct Packing<'a> {
    words: &'a mut [AtomicWord],
    /// Empty slots of each bucket.
    free: Scratch<u8>,
    layout: Layout,
    geometry: &'a Geometry,
    random: u64,
}

impl Packing<'_> {
    /// The first word of a bucket, and how many slots of it are taken.
    #[inline]
    fn begin(&mut self, bucket: usize, word: u64, taken: u32) {
        self.words[bucket].set(word);
        self.free[bucket] = (self.layout.slots() as u32 - taken) as u8;
    }

    /// Places fingerprints whose homes are full; `false` if one finds no place. All take a step, then all that are left the next, so that the words for a step of many are asked for
    /// together; and what a step does is as good as drawn by lot, so no branch depends on it.
    fn place_all<const SLOTS: usize>(&mut self, walks: &mut [Walk]) -> bool {
        let mut left = self.send_away::<SLOTS>(walks);
        let mut steps = 0;
        while left > 0 && steps < LONGEST_WALK {
            left = self.step_all::<SLOTS>(&mut walks[..left]);
            steps += 1;
        }
        left == 0
    }

    /// Sends away from home those that find an empty slot there. The others come to the front: how many these are.
    fn send_away<const SLOTS: usize>(&mut self, walks: &mut [Walk]) -> usize {
        let mut left = 0;
        let mut buckets = [0; TOGETHER];
        for first in (0..walks.len()).step_by(TOGETHER) {
            let part = first..walks.len().min(first + TOGETHER);
            for (away, walk) in buckets.iter_mut().zip(&walks[part.clone()]) {
                *away = self.geometry.other(walk.bucket, walk.carried.fingerprint());
                self.prefetch(*away);
            }
            for (at, away) in part.zip(buckets) {
                let walk = walks[at];
                let placed = self.put_if_free::<SLOTS>(away, walk.carried.elsewhere());
                walks[left] = walk;
                left += usize::from(!placed);
            }
        }
        left
    }

    /// One step of each walk, to a full bucket: whichever fingerprint could move from there to a bucket with an empty slot does; if there is none, one that is drawn at random moves all
    /// the same, and takes the place of another in turn. How many walks have not ended by that: they come to the front.
    fn step_all<const SLOTS: usize>(&mut self, walks: &mut [Walk]) -> usize {
        let layout = const { Layout::new(SLOTS) };
        let mut left = 0;
        let mut words = [0; TOGETHER];
        let mut others = [[0; SLOTS]; TOGETHER];
        let mut lanes = [0; TOGETHER];
        for first in (0..walks.len()).step_by(TOGETHER) {
            let part = first..walks.len().min(first + TOGETHER);
            walks[part.clone()].iter().for_each(|walk| table::prefetch(&raw const self.words[walk.bucket]));
            for ((word, others), walk) in words.iter_mut().zip(&mut others).zip(&walks[part.clone()]) {
                *word = self.words[walk.bucket].load();
                for (other, lane) in others.iter_mut().zip(0..) {
                    *other = self.geometry.other(walk.bucket, layout.slot(*word, lane).fingerprint());
                    table::prefetch(&raw const self.free[*other]);
                }
            }
            for (chosen, others) in lanes.iter_mut().zip(&others).take(part.len()) {
                // A linear congruential generator (Knuth's constants): its high bits are the random ones.
                self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let mut lane = (((self.random >> 32) * SLOTS as u64) >> 32) as usize;
                for (candidate, other) in others.iter().enumerate() {
                    lane = hint::select_unpredictable(self.free[*other] > 0, candidate, lane);
                }
                *chosen = lane;
                self.prefetch(others[lane]);
            }
            for (at, (lane, (word, others))) in part.zip(lanes.into_iter().zip(words.into_iter().zip(&others))) {
                let (walk, slot, other) = (walks[at], layout.slot(word, lane as u32), others[lane]);
                if self.words[walk.bucket].load() != word || other == walk.bucket {
                    // Another of these took the place, or the fingerprint has but one bucket: once more.
                    walks[left] = walk;
                    left += 1;
                    continue;
                }
                self.words[walk.bucket].set(layout.replaced(word, lane as u32, walk.carried));
                let placed = self.put_if_free::<SLOTS>(other, slot.elsewhere());
                walks[left] = Walk { bucket: other, carried: slot.elsewhere() };
                left += usize::from(!placed);
            }
        }
        left
    }

    #[inline]
    fn prefetch(&self, bucket: usize) {
        table::prefetch(&raw const self.words[bucket]);
        table::prefetch(&raw const self.free[bucket]);
    }

    /// Into a bucket, if that has an empty slot.
    #[inline(always)]
    fn put_if_free<const SLOTS: usize>(&mut self, bucket: usize, slot: Slot) -> bool {
        let layout = const { Layout::new(SLOTS) };
        let (word, free) = (&mut self.words[bucket], &mut self.free[bucket]);
        let fits = *free > 0;
        // Without an empty slot it is not used.
        let taken = (SLOTS as u32 - u32::from(*free)).min(SLOTS as u32 - 1);
        let old = word.load();
        word.set(hint::select_unpredictable(fits, layout.pushed(old, taken, slot), old));
        *free -= u8::from(fits);
        fits
    }

    /// Gives each bucket the number of its fingerprints that are displaced.
    fn count_displaced(self) -> Result<(), AllocError> {
        let Self { words, free, layout, geometry, .. } = self;
        drop(free);
        let mut displaced = Displaced::new(words.len(), layout, *geometry)?;
        let mut part = [0; displaced::PART];
        for (number, words) in words.chunks(part.len()).enumerate() {
            let part = &mut part[..words.len()];
            part.iter_mut().zip(words).for_each(|(place, word)| *place = word.load());
            let counted = displaced.count(part, number * displaced::PART, Only);
            debug_assert!(counted.is_ok(), "{counted:?} was packed");
        }
        for (word, displaced) in words.iter_mut().zip(displaced.counts()) {
            word.set(word::with_displaced_count(word.load(), u64::from(*displaced).min(word::SATURATED)));
        }
        Ok(())
    }
}

/// Keys of a part that is sorted at once: they and their counts stay in the second-level cache.
const PART: usize = 1 << 12;
/// The most parts: more, and their ends would not stay in the first-level cache.
const MOST_PARTS: u32 = 11;
/// Keys that are compared with each other.
const FEW: u32 = 1;

/// More that fall together were not spread evenly.
const MANY: usize = 64;

/// Sorts numbers that are at most [`MANY`] places from where they belong.
fn sort_nearly_sorted(numbers: &mut [u64]) {
    for end in 1..numbers.len() {
        let number = numbers[end];
        let mut at = end;
        while at > 0 && numbers[at - 1] > number {
            numbers[at] = numbers[at - 1];
            at -= 1;
        }
        numbers[at] = number;
    }
}

/// All remixed hashes, sorted, each once: the first so many of what is returned. Two rounds of distributing by the highest bits, which are evenly spread (unless somebody chose the hashes, then it is
/// slower, but not by much), and then only a few keys to compare.
fn sorted_set(hashes: &[u64], mix: &impl Fn(u64) -> u64) -> Result<(Scratch<u64>, usize), AllocError> {
    let mut sorted = Scratch::new(hashes.len())?;
    let bits = (hashes.len() / PART).checked_ilog2().map_or(0, |bits| (bits + 1).min(MOST_PARTS));
    let parts = distribute(hashes.iter().map(|hash| mix(*hash)), bits, 0, &mut sorted)?;
    let mut scratch = Vec::new();
    let (mut start, mut len) = (0, 0);
    for end in parts {
        let part = &mut sorted[start..end];
        let bytes = size_of_val(part);
        scratch.clear();
        scratch.try_reserve(part.len()).map_err(|_| AllocError { bytes })?;
        scratch.extend_from_slice(part);
        let fine = (part.len() as u32 / FEW).checked_ilog2().unwrap_or(0).min(64 - bits);
        let ends = distribute(scratch.iter().copied(), fine, bits, part)?;
        let largest = ends.iter().scan(0, |last, end| Some(end - core::mem::replace(last, *end))).max();
        if largest <= Some(MANY) {
            sort_nearly_sorted(part);
        } else {
            part.sort_unstable();
        }
        // While it is in cache; equal hashes are in one part. Most sets have none.
        if start == len && !part.windows(2).fold(false, |repeats, two| repeats | (two[0] == two[1])) {
            len = end;
        } else {
            for at in start..end {
                let number = sorted[at];
                // Written always, kept only if it counts.
                sorted[len] = number;
                len += usize::from(at == start || number != sorted[len - 1]);
            }
        }
        start = end;
    }
    Ok((sorted, len))
}

/// Distributes numbers by so many bits below the highest `skipped`, keeping the order within a part; where each part ends.
fn distribute(
    numbers: impl Iterator<Item = u64> + Clone,
    bits: u32,
    skipped: u32,
    into: &mut [u64],
) -> Result<Box<[usize]>, AllocError> {
    let mut ends = try_boxed(1 << bits, || 0_usize)?;
    if bits == 0 {
        into.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
        ends[0] = into.len();
        return Ok(ends);
    }
    let part = |number: u64| (number << skipped >> (64 - bits)) as usize;
    numbers.clone().for_each(|number| ends[part(number)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += core::mem::replace(end, sum);
    }
    for number in numbers {
        let place = &mut ends[part(number)];
        into[*place] = number;
        *place += 1;
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_is_sorting() {
        let scramble = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7;
        for len in [0, 1, 2, 7, 8, 9, 100, 5_000, 16_383, 16_384, 40_000, 300_000] {
            // Spread evenly, with repeats; and all in one place.
            for (mask, shift) in [(u64::MAX, 0), (0xff, 20), (u64::MAX, 50)] {
                let numbers: Vec<u64> = (0..len).map(|number| (scramble(number) & mask) >> shift).collect();
                let mut expected = numbers.clone();
                expected.sort_unstable();
                expected.dedup();
                let (sorted, distinct) = sorted_set(&numbers, &|number| number).unwrap();
                assert_eq!(sorted[..distinct], expected, "{len}");
            }
        }
    }
}
