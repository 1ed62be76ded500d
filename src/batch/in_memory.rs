//! The way of a batch through a table in memory: a pipeline, in which every word is asked for well before it is read.
//!
//! 1. *Ask*: hash a vector of keys and prefetch their home words.
//! 2. *Decide*, [`AHEAD`] keys later: the home words answer most keys by themselves, with a match or with count 0. The others queue up, and their
//!    away words are prefetched.
//! 3. *Finish*, when [`LAG`] more have queued up: look those up in both words, validated, like a batch in a table in cache.
//!
//! The stages take turns after every vector, not after every group of keys, so that prefetches come one by one: a processor has a few dozen
//! misses under way at most, and in a burst some prefetches wait or are dropped (measured on AMD's Zen: groups of 64 keys were half as fast).

use super::{Constants, Vector, spread};
use crate::{cells::Cells, hash::Generation, word};

/// Keys between a prefetch and its use.
const AHEAD: usize = 48;

/// Queued keys between the same for away words.
const LAG: usize = 8;

/// Places for keys under way, more than any vector adds to [`AHEAD`] or twice to [`LAG`].
const RING: usize = 64;

/// Lanes of the widest vector.
const MOST_LANES: usize = 8;

/// Keys whose home words are asked for: base buckets and fingerprints, key `k` in place `k % RING`.
struct Asked {
    homes: [u64; RING],
    fingerprints: [u64; RING],
}

/// Keys that need both words, in the order in which their away words are asked for, the `n`th in place `n % RING`.
struct Queue {
    hashes: [u64; RING],
    keys: [usize; RING],
    /// How many there were.
    len: usize,
    /// How many of those are answered: whole vectors.
    done: usize,
}

#[inline(always)]
pub(super) fn look_up<V: Vector, G: Generation>(cells: &Cells<G>, hashes: &[u64], found: &mut [bool]) {
    let constants = Constants::<V>::new(cells);
    let mut asked = Asked { homes: [0; RING], fingerprints: [0; RING] };
    let mut queue = Queue { hashes: [0; RING], keys: [0; RING], len: 0, done: 0 };
    let (whole, rest) = hashes.split_at(hashes.len() - hashes.len() % V::LANES);
    rest.iter().for_each(|hash| cells.prefetch(cells.home(cells.geometry.class(*hash))));
    for key in (0..whole.len() + AHEAD).step_by(V::LANES) {
        if key < whole.len() {
            asked.ask(&constants, cells, key, &whole[key..]);
        }
        if key >= AHEAD {
            let key = key - AHEAD;
            // Fewer keys than are asked for ahead leave nothing to decide in the first rounds after the last.
            if key < whole.len() {
                asked.decide(&constants, cells, key, &whole[key..][..V::LANES], &mut found[key..], &mut queue);
            }
        }
        if queue.len - queue.done >= LAG + V::LANES {
            queue.finish(&constants, cells, found);
        }
    }
    while queue.len - queue.done >= V::LANES {
        queue.finish(&constants, cells, found);
    }
    for place in (queue.done..queue.len).map(|place| place % RING) {
        found[queue.keys[place]] = cells.contains_both(cells.geometry.class(queue.hashes[place]));
    }
    for (hash, found) in rest.iter().zip(&mut found[whole.len()..]) {
        *found = cells.contains_home_first(cells.geometry.class(*hash));
    }
}

impl Asked {
    /// First stage, for the vector of keys from `key` on.
    #[inline(always)]
    fn ask<V: Vector, G: Generation>(
        &mut self,
        constants: &Constants<'_, V>,
        cells: &Cells<G>,
        key: usize,
        hashes: &[u64],
    ) {
        let place = key % RING;
        let (home, fingerprint) = constants.classes(V::load(hashes));
        home.store(&mut self.homes[place..]);
        fingerprint.store(&mut self.fingerprints[place..]);
        let mut buckets = [0; MOST_LANES];
        constants.bucket(home, fingerprint).store(&mut buckets);
        buckets[..V::LANES].iter().for_each(|bucket| cells.prefetch(*bucket as usize));
    }

    /// Second stage, for the same keys.
    #[inline(always)]
    fn decide<V: Vector, G: Generation>(
        &self,
        constants: &Constants<'_, V>,
        cells: &Cells<G>,
        key: usize,
        hashes: &[u64],
        found: &mut [bool],
        queue: &mut Queue,
    ) {
        let place = key % RING;
        let (home, fingerprint) = (V::load(&self.homes[place..]), V::load(&self.fingerprints[place..]));
        let away = constants.bucket(constants.other(home, fingerprint), fingerprint);
        let at_home = constants.pattern(fingerprint.add(fingerprint));
        let home = constants.bucket(home, fingerprint);
        let words = V::gather_words(constants.words, home);
        let hits = constants.zeros(words.xor(at_home)).nonzero();
        spread(hits, &mut found[..V::LANES]);
        let undecided = words.shift_right::<{ word::SLOT_BITS }>().nonzero() & !hits;
        let (mut homes, mut aways) = ([0; MOST_LANES], [0; MOST_LANES]);
        home.store(&mut homes);
        away.store(&mut aways);
        for (lane, hash) in hashes.iter().enumerate() {
            let undecided = undecided >> lane & 1 != 0;
            // Written always, kept only if it counts, and a word that is there is asked for instead: no branch to mispredict.
            queue.hashes[queue.len % RING] = *hash;
            queue.keys[queue.len % RING] = key + lane;
            queue.len += usize::from(undecided);
            let bucket = core::hint::select_unpredictable(undecided, aways[lane], homes[lane]);
            cells.prefetch(bucket as usize);
        }
    }
}

impl Queue {
    /// Third stage, for the first vector of keys in the queue. Their home words are read again: only after the first look at the counter do they
    /// prove anything.
    #[inline(always)]
    fn finish<V: Vector, G: Generation>(&mut self, constants: &Constants<'_, V>, cells: &Cells<G>, found: &mut [bool]) {
        let place = self.done % RING;
        let hashes = &self.hashes[place..][..V::LANES];
        let keys = &self.keys[place..][..V::LANES];
        let hits = if cfg!(koel_mutation = "batch_reuses_home_word") {
            let displaced = |lane: &usize| cells.contains_displaced(cells.geometry.class(hashes[*lane]));
            (0..V::LANES).filter(displaced).fold(0, |hits, lane| hits | 1 << lane)
        } else {
            constants.contains_both(cells, hashes)
        };
        for (lane, key) in keys.iter().enumerate() {
            found[*key] = hits >> lane & 1 != 0;
        }
        self.done += V::LANES;
    }
}
