//! The way of a batch through a table in memory: a pipeline, in which every word is asked for well before it is read.
//!
//! 1. *Ask*: hash a vector of keys and prefetch their home words.
//! 2. *Decide*, [`AHEAD`] keys later: the home words answer most keys by themselves, with a match or with count 0. The others queue up.
//! 3. *Ask again*, for each full vector of the queue: prefetch their away words.
//! 4. *Finish*, [`LAG`] keys of the queue later: look those up in both words, validated, like a batch in a table in cache.
//!
//! The stages take turns after every vector, not after every group of keys, so that prefetches come one by one: a processor has a few dozen
//! misses under way at most, and in a burst some prefetches wait or are dropped (measured on AMD's Zen: groups of 64 keys were half as fast).

use super::{Constants, MOST_LANES, Vector, spread};
use crate::{cells::Cells, word, words::Readable};

/// Keys between a prefetch and its use.
const AHEAD: usize = 48;

/// Places for keys whose home words are asked for: as many, and a vector.
const RING: usize = 64;

/// Queued keys between the same for away words.
const LAG: usize = 8;

/// Room for queued keys. Those that are left, fewer than [`LAG`] and two vectors, move to the front when it is used up.
const QUEUE: usize = 128;

/// Keys whose home words are asked for: home buckets and fingerprints, key `k` in place `k % RING`.
struct Asked {
    homes: [u64; RING],
    fingerprints: [u64; RING],
}

/// Keys that need both words, in order.
struct Queue {
    hashes: [u64; QUEUE],
    keys: [u64; QUEUE],
    len: usize,
    /// How many of them have their away words asked for: whole vectors.
    asked: usize,
    /// How many of those are answered: whole vectors.
    done: usize,
}

#[inline(always)]
pub(super) fn look_up<V: Vector, G: Readable>(cells: &Cells<G>, hashes: &[u64], found: &mut [bool]) {
    let constants = Constants::<V>::new(cells);
    let mut asked = Asked { homes: [0; RING], fingerprints: [0; RING] };
    let mut queue = Queue { hashes: [0; QUEUE], keys: [0; QUEUE], len: 0, asked: 0, done: 0 };
    let (whole, rest) = hashes.split_at(hashes.len() - hashes.len() % V::LANES);
    rest.iter().for_each(|hash| cells.prefetch(cells.home(cells.geometry.class(*hash))));
    for key in (0..whole.len() + AHEAD).step_by(V::LANES) {
        if key < whole.len() {
            asked.ask(&constants, cells, key, &whole[key..]);
        }
        if key >= AHEAD {
            let key = key - AHEAD;
            let undecided = asked.decide(&constants, key, &mut found[key..][..V::LANES]);
            queue.push(&constants, key, &whole[key..], undecided);
        }
        if queue.len - queue.asked >= V::LANES {
            queue.ask(&constants, cells);
        }
        if queue.asked - queue.done >= LAG + V::LANES {
            queue.finish(&constants, cells, found);
        }
    }
    while queue.len - queue.done >= V::LANES {
        queue.finish(&constants, cells, found);
    }
    for place in queue.done..queue.len {
        found[queue.keys[place] as usize] = cells.contains_both(cells.geometry.class(queue.hashes[place]));
    }
    for (hash, found) in rest.iter().zip(&mut found[whole.len()..]) {
        *found = cells.contains_home_first(cells.geometry.class(*hash));
    }
}

/// Prefetches the words of these buckets.
#[inline(always)]
fn prefetch<V: Vector, G: Readable>(cells: &Cells<G>, buckets: V) {
    let mut lanes = [0; MOST_LANES];
    buckets.store(&mut lanes);
    lanes[..V::LANES].iter().for_each(|bucket| cells.prefetch(*bucket as usize));
}

impl Asked {
    /// First stage, for the vector of keys from `key` on.
    #[inline(always)]
    fn ask<V: Vector, G: Readable>(
        &mut self,
        constants: &Constants<'_, V>,
        cells: &Cells<G>,
        key: usize,
        hashes: &[u64],
    ) {
        let place = key % RING;
        let (home, fingerprint) = constants.classes(V::load(hashes));
        let home = constants.bucket(home, fingerprint);
        home.store(&mut self.homes[place..]);
        fingerprint.store(&mut self.fingerprints[place..]);
        prefetch(cells, home);
    }

    /// Second stage, for the same keys: answers them, and says which need both words.
    #[inline(always)]
    fn decide<V: Vector>(&self, constants: &Constants<'_, V>, key: usize, found: &mut [bool]) -> u32 {
        let place = key % RING;
        let (home, fingerprint) = (V::load(&self.homes[place..]), V::load(&self.fingerprints[place..]));
        let at_home = constants.pattern(fingerprint.add(fingerprint));
        let words = constants.gather(home);
        let hits = constants.zeros(words.xor(at_home)).nonzero();
        spread(hits, found);
        words.shift_right::<{ word::SLOT_BITS }>().nonzero() & !hits
    }
}

impl Queue {
    /// Takes those keys of the vector from `key` on that `undecided` names.
    #[inline(always)]
    fn push<V: Vector>(&mut self, constants: &Constants<'_, V>, key: usize, hashes: &[u64], undecided: u32) {
        if self.len + V::LANES > QUEUE {
            self.hashes.copy_within(self.done..self.len, 0);
            self.keys.copy_within(self.done..self.len, 0);
            (self.len, self.asked, self.done) = (self.len - self.done, self.asked - self.done, 0);
        }
        V::load(hashes).store_some(undecided, &mut self.hashes[self.len..]);
        V::splat(key as u64).add(constants.lanes).store_some(undecided, &mut self.keys[self.len..]);
        self.len += undecided.count_ones() as usize;
    }

    /// Third stage.
    #[inline(always)]
    fn ask<V: Vector, G: Readable>(&mut self, constants: &Constants<'_, V>, cells: &Cells<G>) {
        let (home, fingerprint) = constants.classes(V::load(&self.hashes[self.asked..]));
        prefetch(cells, constants.bucket(constants.other(home, fingerprint), fingerprint));
        self.asked += V::LANES;
    }

    /// Fourth stage. The home words are read again: only after the first look at the counter do they prove anything.
    #[inline(always)]
    fn finish<V: Vector, G: Readable>(&mut self, constants: &Constants<'_, V>, cells: &Cells<G>, found: &mut [bool]) {
        let hashes = &self.hashes[self.done..][..V::LANES];
        let keys = &self.keys[self.done..][..V::LANES];
        let hits = if cfg!(koel_mutation = "batch_reuses_home_word") {
            let displaced = |lane: &usize| cells.contains_displaced(cells.geometry.class(hashes[*lane]));
            (0..V::LANES).filter(displaced).fold(0, |hits, lane| hits | 1 << lane)
        } else {
            constants.contains_both(cells, hashes)
        };
        for (lane, key) in keys.iter().enumerate() {
            found[*key as usize] = hits >> lane & 1 != 0;
        }
        self.done += V::LANES;
    }
}
