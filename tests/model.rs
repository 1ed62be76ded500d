//! Random operations on a filter and on a multiset of classes: all answers, counts and `len` are equal, for every layout, from empty to
//! full and back. (The fuzz target does the same on tiny tables.)

use std::collections::HashMap;

use koel::{CuckooFilter, InsertError};

mod common;
use common::{Random, mixed};

/// Keys are inserted and removed so that the load wanders between nothing and more than fits.
fn run(slots: usize, capacity: usize, seed: u64) {
    let filter = CuckooFilter::<u64>::builder().capacity(capacity).slots_per_bucket(slots).seed(seed).build().unwrap();
    let room = filter.buckets() * slots;
    let mut random = Random::new(seed);
    let mut copies: HashMap<(usize, u32), usize> = HashMap::new();
    // All keys that are in, with repeats, so that one can be drawn.
    let mut keys: Vec<u64> = Vec::new();
    let (mut refused, mut fullest) = (0, 0);

    for step in 0..12 * room {
        // Two fillings and two drainings.
        let filling = (step / (3 * room)).is_multiple_of(2);
        // A domain that is small enough for repeats and for classes that share a bucket.
        let key = mixed(random.below(2 * room as u64));
        let class = filter.class_of_hash(key);
        let there = copies.get(&class).copied().unwrap_or(0);
        match random.below(10) {
            0 => assert_eq!(filter.contains_hash(key), there > 0),
            1 => assert_eq!(filter.count_hash(key), there),
            2 => {
                let answer = filter.insert_if_absent_hash(key);
                if answer == Ok(true) {
                    copies.insert(class, 1);
                    keys.push(key);
                }
                assert!(answer == Ok(there == 0) || (there == 0 && answer == Err(InsertError::Full)));
            }
            3 if there == 0 => assert!(!filter.remove_hash(key), "nothing to remove"),
            action if (action < 9) == filling => match filter.insert_hash(key) {
                Ok(()) => {
                    *copies.entry(class).or_default() += 1;
                    keys.push(key);
                }
                Err(error) => {
                    refused += 1;
                    assert_eq!(filter.count_hash(key), there);
                    assert_eq!(error == InsertError::TooManyCopies, there == 2 * slots);
                }
            },
            _ if !keys.is_empty() => {
                let key = keys.swap_remove(random.below(keys.len() as u64) as usize);
                assert!(filter.remove_hash(key), "a present key is removed");
                let class = filter.class_of_hash(key);
                let left = copies[&class] - 1;
                if left == 0 {
                    copies.remove(&class)
                } else {
                    copies.insert(class, left)
                };
            }
            _ => {}
        }
        fullest = fullest.max(keys.len());
        assert_eq!(filter.len(), keys.len());
        if step.is_multiple_of(room / 2) {
            keys.iter().for_each(|key| assert!(filter.contains_hash(*key), "false negative"));
            copies_agree(&filter, &keys, &copies);
        }
    }
    assert!(fullest as f64 > 0.8 * room as f64, "{slots} slots: only {fullest} of {room} slots were ever taken");
    assert!(refused > 0, "{slots} slots: never full");
    for key in keys.drain(..) {
        assert!(filter.remove_hash(key));
    }
    assert!(filter.is_empty());
    assert!(filter.words().all(|word| word << 4 == 0 && matches!(word >> 60, 0 | 15)), "counts are exact at the end");
}

fn copies_agree(filter: &CuckooFilter<u64>, keys: &[u64], copies: &HashMap<(usize, u32), usize>) {
    for key in keys {
        assert_eq!(filter.count_hash(*key), copies[&filter.class_of_hash(*key)]);
    }
}

#[test]
fn every_layout_agrees_with_a_multiset() {
    for slots in 2..=6 {
        for seed in 0..3 {
            // One bucket more or less, prime or power of two: any count has to work.
            for capacity in [1, 10, 255, 256, 2_000] {
                run(slots, capacity, seed);
            }
        }
    }
}

/// The look-up of tables too large for the cache takes another path: the same test, shorter, on one of those.
#[test]
fn large_tables_agree_with_a_set() {
    let filter = CuckooFilter::<u64>::builder().capacity(2_500_000).slots_per_bucket(4).seed(5).build().unwrap();
    assert!(filter.memory_bytes() > 5 << 20);
    let keys = 2_500_000_u64;
    let mut copies: HashMap<(usize, u32), usize> = HashMap::new();
    for key in (0..keys).map(mixed) {
        filter.insert_hash(key).unwrap();
        *copies.entry(filter.class_of_hash(key)).or_default() += 1;
    }
    for key in (0..keys).step_by(3).map(mixed) {
        assert!(filter.remove_hash(key));
        *copies.get_mut(&filter.class_of_hash(key)).unwrap() -= 1;
    }
    for key in (0..2 * keys).map(mixed) {
        let there = copies.get(&filter.class_of_hash(key)).copied().unwrap_or(0);
        assert_eq!(filter.contains_hash(key), there > 0);
        assert_eq!(filter.count_hash(key), there);
    }
    assert_eq!(filter.len() as u64, keys - keys.div_ceil(3));
}
