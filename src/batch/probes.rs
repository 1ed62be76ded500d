//! Bits that lie anywhere: batches of look-ups in the standard form of a Bloom filter.
//!
//! A group of keys at a time, each step for a vector of them at once:
//!
//! 1. (In memory: the words of the first few bits are asked for.)
//! 2. Those bits are looked at, without a branch that depends on a key. That tells most absent keys; the others move together.
//! 3. (In memory: the words of the rest of their bits are asked for.)
//! 4. Those bits are looked at, until none of the vector has all of them so far.
//!
//! Any 64-bit number has probes that are in range, so vectors may be filled up with what was there before. Bits are only ever set, so the order in which they are read does not
//! matter (`bloom`, "Orderings").

use super::{GROUP, MOST_LANES, Vector, mix, spread};
use crate::{hash::REMIX, sync::AtomicWord, table::Table};

/// Bits that are looked at before the keys that are absent are sorted out. In memory lines count: for an absent key two are touched in the mean, when every second bit is set.
const FIRST: u32 = 2;

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
struct Constants<V> {
    len: V,
    key: V,
    remix: V,
    factor: V,
    /// The number of each lane.
    lanes: V,
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
    let (table, words) = (probes.table, probes.table.words());
    let first = probes.count.min(FIRST);
    let others = probes.count - first;
    let mut states = [0; GROUP];
    // Those that are left, and their numbers; with room for a vector behind them.
    let mut left = [0; GROUP + MOST_LANES];
    let mut keys = [0; GROUP + MOST_LANES];
    for (hashes, found) in hashes.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
        states[..hashes.len()].copy_from_slice(hashes);
        let vectors = (0..hashes.len()).step_by(V::LANES);
        for key in vectors.clone() {
            let state = constants.mixed(V::load(&states[key..]));
            state.store(&mut states[key..]);
            if !CACHED {
                constants.ask(table, state, first, V::LANES);
            }
        }
        let mut len = 0;
        for key in vectors {
            let (mut hits, state) = constants.look(words, V::load(&states[key..]), first);
            let found = &mut found[key..];
            let lanes = V::LANES.min(found.len());
            hits &= (1 << lanes) - 1;
            spread(hits, &mut found[..lanes]);
            state.store_some(hits, &mut left[len..]);
            V::splat(key as u64).add(constants.lanes).store_some(hits, &mut keys[len..]);
            len += hits.count_ones() as usize;
        }
        if others == 0 {
            continue;
        }
        let vectors = (0..len).step_by(V::LANES);
        if !CACHED {
            for key in vectors.clone() {
                constants.ask(table, V::load(&left[key..]), others, V::LANES.min(len - key));
            }
        }
        for key in vectors {
            let hits = constants.look(words, V::load(&left[key..]), others).0;
            for (lane, key) in keys[key..len].iter().take(V::LANES).enumerate() {
                found[*key as usize] = hits >> lane & 1 != 0;
            }
        }
    }
}

impl<V: Vector> Constants<V> {
    #[inline(always)]
    fn new(probes: &Probes<'_>) -> Self {
        Self {
            len: V::splat(probes.table.words().len() as u64),
            key: V::splat(probes.key),
            remix: V::splat(REMIX),
            factor: V::splat(probes.factor),
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

    /// One bit for each lane of which so many probes, from this one on, find their bits set; and the probe after those, if there is such a lane.
    #[inline(always)]
    fn look(&self, words: &[AtomicWord], mut state: V, count: u32) -> (u32, V) {
        let mut hits = (1 << V::LANES) - 1;
        if !count.is_multiple_of(2) {
            hits = V::bits(words, self.place(state));
            state = state.mul(self.factor);
        }
        // Two at a time: a branch for each would take longer than what it saves.
        for _ in 0..count / 2 {
            if hits == 0 {
                break;
            }
            let next = state.mul(self.factor);
            hits &= V::bits(words, self.place(state)) & V::bits(words, self.place(next));
            state = next.mul(self.factor);
        }
        (hits, state)
    }

    /// Asks for the words of so many probes, from this one on, of the first `len` lanes.
    #[inline(always)]
    fn ask(&self, table: &Table, mut state: V, count: u32, len: usize) {
        for _ in 0..count {
            let mut words = [0; MOST_LANES];
            self.place(state).shift_right::<32>().store(&mut words);
            words[..len].iter().for_each(|word| table.prefetch(*word as usize));
            state = state.mul(self.factor);
        }
    }
}
