//! Differential fuzzing: a sequence of operations runs on a filter and on a model of it, and all answers have to agree.
//!
//! The model is a multiset of classes (home bucket and fingerprint), for the filter cannot tell the keys of a class apart. So every
//! answer is known exactly: there are no false positives by class. What the model does not know is where a copy sits, hence
//! it takes the filter's word for "full" but checks that nothing has changed then and that the home bucket really has no room.
//!
//! Shared by the fuzz target `ops` and by `tests/fuzz_corpus.rs`, which replays the corpus.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Unstructured};
use koel::{BuildError, CuckooFilter, InsertError};

/// A filter and what is done to it.
#[derive(Arbitrary, Debug)]
pub(crate) struct Case {
    setup: Setup,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
struct Setup {
    /// Small, so that a few operations fill the filter.
    #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(0..=300))]
    capacity: usize,
    /// Also a few numbers that are refused.
    #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(0..=8))]
    slots: usize,
    rate: Rate,
    seed: u64,
    /// Where the eight bits of a [`Key`] stand in its hash; the higher, the fewer different hashes.
    #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(0..=62))]
    shift: u32,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Rate {
    Default,
    /// 0.5 to the power of this number.
    Power(u8),
    Any(f64),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Key(u8);

/// Consecutive keys: fills a filter with few bytes of input.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Keys {
    first: Key,
    more: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Insert(Key),
    InsertAll(Keys),
    InsertIfAbsent(Key),
    InsertAllIfAbsent(Keys),
    Contains(Key),
    Count(Key),
    Remove(Key),
    RemoveAll(Keys),
    Clear,
    Check,
}

/// Runs a case, and panics where filter and model differ.
pub(crate) fn run(case: &Case) {
    let Some(mut pair) = Pair::new(&case.setup) else { return };
    for op in &case.ops {
        pair.apply(*op);
        assert_eq!(pair.filter.len(), pair.len, "len after {op:?}");
        if std::mem::take(&mut pair.refused) {
            pair.check();
        }
    }
    pair.check();
    pair.remove_everything();
}

type Class = (usize, u32);

/// The filter and its model.
struct Pair {
    filter: CuckooFilter<u64>,
    /// Copies by class; a class without copies has no entry.
    copies: HashMap<Class, usize>,
    /// The sum of all copies.
    len: usize,
    shift: u32,
    /// Whether the last operation had an insert refused, after which everything must be as before.
    refused: bool,
}

impl Pair {
    /// `None` if the builder refuses, with good reason.
    fn new(setup: &Setup) -> Option<Self> {
        let mut builder = CuckooFilter::builder().capacity(setup.capacity).seed(setup.seed);
        if setup.slots != 0 {
            builder = builder.slots_per_bucket(setup.slots);
        }
        match setup.rate {
            Rate::Default => {}
            Rate::Power(power) => builder = builder.false_positive_rate(0.5_f64.powi(power.into())),
            Rate::Any(rate) => builder = builder.false_positive_rate(rate),
        }
        let filter = match builder.build() {
            Ok(filter) => filter,
            Err(BuildError::InvalidSlotsPerBucket { slots_per_bucket }) => {
                assert!(!(2..=6).contains(&slots_per_bucket));
                return None;
            }
            Err(BuildError::InvalidRate { rate }) => {
                assert!(!(rate > 0.0 && rate < 1.0));
                return None;
            }
            Err(BuildError::RateTooLow { rate, lowest, .. }) => {
                assert!(rate < lowest);
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        Some(Self { filter, copies: HashMap::new(), len: 0, shift: setup.shift, refused: false })
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(key) => self.insert(key),
            Op::InsertAll(keys) => keys.into_iter().for_each(|key| self.insert(key)),
            Op::InsertIfAbsent(key) => self.insert_if_absent(key),
            Op::InsertAllIfAbsent(keys) => keys.into_iter().for_each(|key| self.insert_if_absent(key)),
            Op::Contains(key) => {
                assert_eq!(self.filter.contains_hash(self.hash(key)), self.copies_of(key) != 0);
            }
            Op::Count(key) => assert_eq!(self.filter.count_hash(self.hash(key)), self.copies_of(key)),
            Op::Remove(key) => self.remove(key),
            Op::RemoveAll(keys) => keys.into_iter().for_each(|key| self.remove(key)),
            Op::Clear => {
                self.filter.clear();
                self.copies.clear();
                self.len = 0;
                assert!(self.filter.words().all(|word| word == 0));
            }
            Op::Check => self.check(),
        }
    }

    fn hash(&self, key: Key) -> u64 {
        u64::from(key.0) << self.shift
    }

    fn class(&self, key: Key) -> Class {
        self.filter.class_of_hash(self.hash(key))
    }

    fn copies_of(&self, key: Key) -> usize {
        self.copies.get(&self.class(key)).copied().unwrap_or(0)
    }

    fn insert(&mut self, key: Key) {
        match self.filter.insert_hash(self.hash(key)) {
            Ok(()) => self.count_insert(key),
            Err(error) => self.check_refusal(key, error),
        }
    }

    fn insert_if_absent(&mut self, key: Key) {
        match self.filter.insert_if_absent_hash(self.hash(key)) {
            Ok(inserted) => {
                assert_eq!(inserted, self.copies_of(key) == 0);
                if inserted {
                    self.count_insert(key);
                }
            }
            Err(error) => {
                assert_eq!(self.copies_of(key), 0, "refused a key that is in");
                self.check_refusal(key, error);
            }
        }
    }

    fn count_insert(&mut self, key: Key) {
        *self.copies.entry(self.class(key)).or_insert(0) += 1;
        self.len += 1;
        assert!(self.copies_of(key) <= 2 * self.filter.slots_per_bucket(), "more copies than two buckets hold");
        assert!(self.filter.contains_hash(self.hash(key)));
    }

    /// There was a reason to refuse the insert.
    fn check_refusal(&mut self, key: Key, error: InsertError) {
        let slots = self.filter.slots_per_bucket();
        let copies = self.copies_of(key);
        let (home, _) = self.class(key);
        let home_word = self.filter.words().nth(home).unwrap();
        assert_eq!(self.taken(home_word).count(), slots, "{error:?} with room in the home bucket");
        match error {
            // A class whose two buckets are one and the same fills only one.
            InsertError::TooManyCopies => assert!(copies == 2 * slots || copies == slots, "{copies} copies"),
            InsertError::Full => assert!(copies < 2 * slots, "{copies} copies"),
            _ => panic!("{error}"),
        }
        self.refused = true;
    }

    /// Removes only what is in by class: anything else answers `false` and changes nothing.
    fn remove(&mut self, key: Key) {
        let class = self.class(key);
        let copies = self.copies_of(key);
        assert_eq!(self.filter.remove_hash(self.hash(key)), copies != 0);
        match copies {
            0 => return,
            1 => drop(self.copies.remove(&class)),
            _ => drop(self.copies.insert(class, copies - 1)),
        }
        self.len -= 1;
    }

    /// Compares the filter with the model as a whole.
    fn check(&self) {
        for key in (0..=u8::MAX).map(Key) {
            let (hash, copies) = (self.hash(key), self.copies_of(key));
            assert_eq!(self.filter.count_hash(hash), copies, "{key:?}");
            assert_eq!(self.filter.contains_hash(hash), copies != 0, "{key:?}");
        }
        assert_eq!(self.filter.len(), self.len);
        assert_eq!(self.filter.is_empty(), self.len == 0);

        let slots = || self.filter.words().flat_map(|word| self.taken(word));
        assert_eq!(slots().count(), self.len, "taken slots");
        let displaced = slots().filter(|slot| slot & 1 == 1).count() as u64;
        let counted: u64 = self.filter.words().map(displaced_count).sum();
        if self.filter.words().any(is_saturated) {
            assert!(counted <= displaced + 15 * self.filter.buckets() as u64);
        } else {
            assert_eq!(counted, displaced, "displaced counts");
        }
    }

    /// The slots of a word that are taken.
    fn taken(&self, word: u64) -> impl Iterator<Item = u64> + use<> {
        let slots = self.filter.slots_per_bucket();
        let width = 60 / slots;
        (0..slots).map(move |slot| word >> (slot * width) & ((1 << width) - 1)).filter(|slot| *slot != 0)
    }

    /// Nothing is left when everything is taken out, except displaced counts that saturated.
    fn remove_everything(&mut self) {
        for key in (0..=u8::MAX).map(Key) {
            while self.copies_of(key) != 0 {
                self.remove(key);
            }
            assert!(!self.filter.remove_hash(self.hash(key)));
        }
        assert_eq!((self.filter.len(), self.len), (0, 0));
        for word in self.filter.words() {
            assert!(word == 0 || (is_saturated(word) && word << 4 == 0), "{word:#018x} left");
        }
    }
}

impl IntoIterator for Keys {
    type Item = Key;
    type IntoIter = std::iter::Map<std::ops::RangeInclusive<u16>, fn(u16) -> Key>;

    fn into_iter(self) -> Self::IntoIter {
        let first = u16::from(self.first.0);
        (first..=first + u16::from(self.more)).map(|key| Key(key as u8))
    }
}

/// How many fingerprints a word says are displaced from it.
fn displaced_count(word: u64) -> u64 {
    word >> 60
}

/// Whether a displaced count has stopped counting, for good.
fn is_saturated(word: u64) -> bool {
    displaced_count(word) == 15
}
