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
pub(super) const AHEAD: usize = 48;

/// Places for keys whose home words are asked for: as many, and a vector.
pub(super) const RING: usize = 64;

/// Queued keys between the same for away words.
pub(super) const LAG: usize = 8;

/// Room for queued keys. Those that are left, here fewer than [`LAG`] and two vectors, in `two_tables` fewer than all of it, move to the front when it is used up.
pub(super) const QUEUE: usize = 128;

/// Keys whose home words are asked for: home buckets and fingerprints, key `k` in place `k % RING`.
struct Asked {
    homes: [u64; RING],
    fingerprints: [u64; RING],
}

/// Keys that need more words, in order.
pub(super) struct Queue {
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
    let mut queue = Queue::new();
    let (whole, rest) = hashes.split_at(hashes.len() - hashes.len() % V::LANES);
    rest.iter().for_each(|hash| cells.prefetch(cells.home(cells.geometry.class(*hash))));
    for key in (0..whole.len() + AHEAD).step_by(V::LANES) {
        if key < whole.len() {
            asked.ask(&constants, cells, key, &whole[key..]);
        }
        if key >= AHEAD {
            let key = key - AHEAD;
            let undecided = asked.decide(&constants, key, &mut found[key..][..V::LANES]);
            queue.push(V::load(&whole[key..]), V::splat(key as u64).add(constants.lanes), undecided);
        }
        if let Some((hashes, _)) = queue.ask_next::<V>() {
            let (home, fingerprint) = constants.classes(hashes);
            prefetch(cells, constants.bucket(constants.other(home, fingerprint), fingerprint));
        }
        if queue.asked - queue.done >= LAG + V::LANES {
            finish(&mut queue, &constants, cells, found);
        }
    }
    while queue.has(V::LANES) {
        finish(&mut queue, &constants, cells, found);
    }
    for (hash, key) in queue.left() {
        found[key as usize] = cells.contains_both(cells.geometry.class(hash));
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

/// Fourth stage. The home words are read again: only after the first look at the counter do they prove anything.
#[inline(always)]
fn finish<V: Vector, G: Readable>(
    queue: &mut Queue,
    constants: &Constants<'_, V>,
    cells: &Cells<G>,
    found: &mut [bool],
) {
    let (hashes, keys) = queue.next::<V>();
    let hits = if mutated!("batch_reuses_home_word") {
        let displaced = |lane: &usize| cells.contains_displaced(cells.geometry.class(hashes[*lane]));
        (0..V::LANES).filter(displaced).fold(0, |hits, lane| hits | 1 << lane)
    } else {
        constants.contains_both(cells, hashes)
    };
    for (lane, key) in keys.iter().enumerate() {
        found[*key as usize] = hits >> lane & 1 != 0;
    }
}

impl Queue {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { hashes: [0; QUEUE], keys: [0; QUEUE], len: 0, asked: 0, done: 0 }
    }

    /// Takes those keys that `which` names.
    #[inline(always)]
    pub(super) fn push<V: Vector>(&mut self, hashes: V, keys: V, which: u32) {
        if self.len + V::LANES > QUEUE {
            self.hashes.copy_within(self.done..self.len, 0);
            self.keys.copy_within(self.done..self.len, 0);
            (self.len, self.asked, self.done) = (self.len - self.done, self.asked - self.done, 0);
        }
        hashes.store_some(which, &mut self.hashes[self.len..]);
        keys.store_some(which, &mut self.keys[self.len..]);
        self.len += which.count_ones() as usize;
    }

    /// The next vector of keys whose words are to be asked for, if there is a whole one.
    #[inline(always)]
    pub(super) fn ask_next<V: Vector>(&mut self) -> Option<(V, V)> {
        if self.len - self.asked < V::LANES {
            return None;
        }
        let first = self.asked;
        self.asked += V::LANES;
        Some((V::load(&self.hashes[first..]), V::load(&self.keys[first..])))
    }

    /// Whether there are so many keys.
    #[inline(always)]
    pub(super) fn has(&self, keys: usize) -> bool {
        self.len - self.done >= keys
    }

    /// The hashes and the keys of the next vector, which is there.
    #[inline(always)]
    pub(super) fn next<V: Vector>(&mut self) -> (&[u64], &[u64]) {
        let first = self.done;
        self.done += V::LANES;
        // At the end nothing is asked for any more.
        self.asked = self.asked.max(self.done);
        (&self.hashes[first..][..V::LANES], &self.keys[first..][..V::LANES])
    }

    /// Hashes and keys of those that are left.
    pub(super) fn left(&self) -> impl Iterator<Item = (u64, u64)> {
        self.hashes[self.done..self.len].iter().copied().zip(self.keys[self.done..self.len].iter().copied())
    }
}
