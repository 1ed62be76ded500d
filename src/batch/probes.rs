//! Bits that lie anywhere: batches of look-ups in the standard form of a Bloom filter, many keys at a time, the same probe of each.
//!
//! 1. *Ask* (in memory): hash a vector of keys and prefetch the words of their first probes.
//! 2. *Decide*, [`AHEAD`] keys later: those first probes tell most absent keys. The others queue up.
//! 3. *Ask again* (in memory), for each full vector of the queue: prefetch the words of all other probes.
//! 4. *Finish*, [`LAG`] keys of the queue later: the other probes, until no key of the vector is left.
//!
//! In cache nothing is asked for, and each stage follows the one before at once.
//!
//! Any 64-bit number has probes that are in range, so the last vector of a batch, and of the queue, may be filled up with what was there before. Bits are only ever set, so the
//! order in which they are read does not matter (`bloom`, "Orderings").

use super::{MOST_LANES, Vector, mix, spread};
use crate::{hash::REMIX, sync::AtomicWord, table::Table};

/// Probes that are looked at before the keys that are absent are sorted out.
const FIRST: u32 = 2;

/// Keys between a prefetch and its use.
const AHEAD: usize = 32;

/// Places for keys whose first words are asked for: as many, and a vector.
const RING: usize = 64;

/// Queued keys between the same for the other words.
const LAG: usize = 8;

/// Room for queued keys. Those that are left, fewer than [`LAG`] and four vectors, move to the front when it is used up.
const QUEUE: usize = 128;

/// Where the bits of a hash are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probes<'a> {
    pub(crate) table: &'a Table,
    /// Whether the table counts as cached.
    pub(crate) cached: bool,
    /// What hashes are combined with before they are mixed.
    pub(crate) key: u64,
    /// From a probe to the next.
    pub(crate) factor: u64,
    pub(crate) count: u32,
}

/// What every vector needs, see `super::Constants`.
struct Constants<'a, V> {
    words: &'a [AtomicWord],
    len: V,
    key: V,
    remix: V,
    factor: V,
    /// From the first probe to the first of the others.
    skip: V,
    one: V,
    bits: V,
    lanes: V,
}

/// Keys that have the bits of their first probes, in order.
struct Queue {
    // With room for a vector that begins at the last of them.
    states: [u64; QUEUE + MOST_LANES],
    keys: [u64; QUEUE + MOST_LANES],
    len: usize,
    /// How many of them have their other words asked for: whole vectors.
    asked: usize,
    /// How many of those are answered: whole vectors.
    done: usize,
}

#[inline(always)]
pub(super) fn look_up<V: Vector>(probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    if probes.cached {
        look_up_in::<V, true>(probes, hashes, found)
    } else {
        look_up_in::<V, false>(probes, hashes, found)
    }
}

#[inline(always)]
fn look_up_in<V: Vector, const CACHED: bool>(probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    let constants = Constants::<V>::new(&probes);
    let ahead = if CACHED { 0 } else { AHEAD };
    let first = FIRST.min(probes.count);
    let others = probes.count - first;
    let mut states = [0; RING];
    let mut queue = Queue { states: [0; QUEUE + MOST_LANES], keys: [0; QUEUE + MOST_LANES], len: 0, asked: 0, done: 0 };
    let vectors = hashes.len().next_multiple_of(V::LANES);
    for key in (0..vectors + ahead).step_by(V::LANES) {
        if key < vectors {
            let state = constants.mixed(load(&hashes[key..]));
            state.store(&mut states[key % RING..]);
            if !CACHED {
                constants.prefetch(probes.table, state, first);
            }
        }
        if key >= ahead {
            let key = key - ahead;
            let state = V::load(&states[key % RING..]);
            let len = V::LANES.min(found.len() - key);
            let hits = constants.look(state, first) & ((1 << len) - 1);
            spread(hits, &mut found[key..][..len]);
            if others > 0 {
                queue.push(&constants, key, state, hits);
            }
        }
        if !CACHED && queue.len - queue.asked >= V::LANES {
            queue.ask(&constants, probes.table, others);
        }
        let (asked, lag) = if CACHED { (queue.len, 0) } else { (queue.asked, LAG) };
        if asked - queue.done >= lag + V::LANES {
            queue.finish(&constants, others, found);
        }
    }
    while queue.done < queue.len {
        queue.finish(&constants, others, found);
    }
}

/// The first lanes of `values`, or as many as there are.
#[inline(always)]
fn load<V: Vector>(values: &[u64]) -> V {
    if values.len() >= V::LANES {
        return V::load(values);
    }
    let mut lanes = [0; MOST_LANES];
    lanes[..values.len()].copy_from_slice(values);
    V::load(&lanes)
}

impl<'a, V: Vector> Constants<'a, V> {
    #[inline(always)]
    fn new(probes: &Probes<'a>) -> Self {
        let words = probes.table.words();
        Self {
            words,
            len: V::splat(words.len() as u64),
            key: V::splat(probes.key),
            remix: V::splat(REMIX),
            factor: V::splat(probes.factor),
            skip: V::splat((0..FIRST).fold(1, |product: u64, _| product.wrapping_mul(probes.factor))),
            one: V::splat(1),
            bits: V::splat(63),
            lanes: V::load(&[0, 1, 2, 3, 4, 5, 6, 7]),
        }
    }

    #[inline(always)]
    fn mixed(&self, hashes: V) -> V {
        mix(hashes.xor(self.key), self.remix)
    }

    /// The probe of a state as a fixed-point number: the high half is the word, and what follows the bit in it. There are less than 2<sup>32</sup> words, so the product with
    /// 64 bits comes from two of 32.
    #[inline(always)]
    fn place(&self, state: V) -> V {
        state.shift_right::<32>().mul_low_halves(self.len).add(state.mul_low_halves(self.len).shift_right::<32>())
    }

    /// One bit for each lane of which so many probes, from this one on, find their bits set.
    #[inline(always)]
    fn look(&self, mut state: V, count: u32) -> u32 {
        let mut hits = (1 << V::LANES) - 1;
        for _ in 0..count {
            let place = self.place(state);
            let words = V::gather_words(self.words, place.shift_right::<32>());
            hits &= words.shift_right_by(place.shift_right::<26>().and(self.bits)).and(self.one).nonzero();
            if hits == 0 {
                break;
            }
            state = state.mul(self.factor);
        }
        hits
    }

    #[inline(always)]
    fn prefetch(&self, table: &Table, mut state: V, count: u32) {
        for _ in 0..count {
            let mut lanes = [0; MOST_LANES];
            self.place(state).shift_right::<32>().store(&mut lanes);
            lanes[..V::LANES].iter().for_each(|word| table.prefetch(*word as usize));
            state = state.mul(self.factor);
        }
    }
}

impl Queue {
    /// Takes those keys of the vector from `key` on that `hits` names.
    #[inline(always)]
    fn push<V: Vector>(&mut self, constants: &Constants<'_, V>, key: usize, state: V, hits: u32) {
        if self.len + V::LANES > QUEUE {
            self.states.copy_within(self.done..self.len, 0);
            self.keys.copy_within(self.done..self.len, 0);
            (self.len, self.asked, self.done) = (self.len - self.done, self.asked.saturating_sub(self.done), 0);
        }
        state.mul(constants.skip).store_some(hits, &mut self.states[self.len..]);
        V::splat(key as u64).add(constants.lanes).store_some(hits, &mut self.keys[self.len..]);
        self.len += hits.count_ones() as usize;
    }

    /// Third stage.
    #[inline(always)]
    fn ask<V: Vector>(&mut self, constants: &Constants<'_, V>, table: &Table, others: u32) {
        constants.prefetch(table, V::load(&self.states[self.asked..]), others);
        self.asked += V::LANES;
    }

    /// Fourth stage.
    #[inline(always)]
    fn finish<V: Vector>(&mut self, constants: &Constants<'_, V>, others: u32, found: &mut [bool]) {
        let hits = constants.look(V::load(&self.states[self.done..]), others);
        let len = V::LANES.min(self.len - self.done);
        for (lane, key) in self.keys[self.done..][..len].iter().enumerate() {
            found[*key as usize] = hits >> lane & 1 != 0;
        }
        self.done += len;
    }
}
