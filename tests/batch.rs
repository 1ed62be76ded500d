//! Batches are equal to single calls, in order, on every backend, for any length.
//!
//! `KOEL_REQUIRE_BACKENDS=swar,avx2,avx512` names the backends that have to be there; without it a missing one is skipped.

use std::sync::atomic::{AtomicBool, Ordering};

use koel::{Backend, CuckooFilter, InsertError};

mod common;
use common::{Random, mixed};

/// The backends of this processor; those that are required are among them.
fn backends() -> Vec<Backend> {
    let required = std::env::var("KOEL_REQUIRE_BACKENDS").unwrap_or_default();
    for name in required.split(',').filter(|name| !name.is_empty()) {
        let backend = Backend::ALL.into_iter().find(|backend| format!("{backend:?}").eq_ignore_ascii_case(name));
        assert!(backend.is_some_and(Backend::is_available), "backend {name} is required and not available");
    }
    Backend::ALL.into_iter().filter(|backend| backend.is_available()).collect()
}

fn filter(slots: usize, capacity: usize, seed: u64) -> CuckooFilter<u64> {
    CuckooFilter::builder().capacity(capacity).slots_per_bucket(slots).seed(seed).build().unwrap()
}

/// The filter as it is, then going the way of large ones even if it is small.
fn both_ways(mut filter: CuckooFilter<u64>, mut check: impl FnMut(&CuckooFilter<u64>)) {
    check(&filter);
    filter.count_as_cached(false);
    check(&filter);
}

/// All backends against single calls, at several loads; half of the keys looked up are present.
fn compare(slots: usize, capacity: usize, lengths: &[usize]) {
    for (seed, share) in [(1, 0.0), (2, 0.3), (3, 0.75), (4, 1.0)] {
        let filter = filter(slots, capacity, seed);
        let keys = (capacity as f64 * share) as u64;
        (0..keys).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
        let mut random = Random::new(seed);
        both_ways(filter, |filter| {
            for length in lengths.iter().copied() {
                let hashes: Vec<u64> = (0..length).map(|_| mixed(random.below(2 * keys.max(1)))).collect();
                let single: Vec<bool> = hashes.iter().map(|hash| filter.contains_hash(*hash)).collect();
                for backend in backends() {
                    // Starts wrong everywhere, so that an answer left out shows.
                    let mut found: Vec<bool> = single.iter().map(|found| !found).collect();
                    filter.contains_hashes_with(backend, &hashes, &mut found);
                    assert!(found == single, "{backend:?}, {slots} slots, capacity {capacity}, {length} hashes");
                }
                let mut found = vec![false; length];
                filter.contains_hashes(&hashes, &mut found);
                assert!(found == single);
                let mut selected = vec![7];
                filter.select_hashes(&hashes, &mut selected);
                let expected = (0..length).filter(|index| single[*index]).map(|index| index as u32);
                assert!(selected[0] == 7 && selected[1..].iter().copied().eq(expected), "{length} hashes selected");
            }
        });
    }
}

#[test]
fn equal_to_single_look_ups_in_cache() {
    let short: Vec<usize> = (0..200).chain([1_000, 4_095, 4_096, 4_097, 10_000]).collect();
    for slots in 2..=6 {
        for capacity in [0, 1, 100, 5_000] {
            compare(slots, capacity, &short);
        }
    }
}

#[test]
fn equal_to_single_look_ups_in_memory() {
    for slots in 2..=6 {
        // Above 4 MiB of table.
        compare(slots, 560_000 * slots, &[0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 5_000, 100_001]);
    }
}

#[test]
fn keys_are_hashed_like_single_ones() {
    let filter = CuckooFilter::<str>::builder().capacity(3_000).seed(1).build().unwrap();
    let keys: Vec<String> = (0..5_000).map(|key| format!("key {key}")).collect();
    keys.iter().step_by(2).for_each(|key| filter.insert(key.as_str()).unwrap());
    let mut found = vec![false; keys.len()];
    filter.contains_many(&keys, &mut found);
    assert!(keys.iter().zip(&found).all(|(key, found)| filter.contains(key.as_str()) == *found));
    let borrowed: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut again = vec![false; keys.len()];
    filter.contains_many(&borrowed, &mut again);
    assert_eq!(found, again);
}

#[test]
fn inserts_and_removals_are_those_of_single_calls() {
    for slots in 2..=6 {
        for length in [0, 1, 63, 64, 65, 1_000, 20_000] {
            let hashes: Vec<u64> = (0..length).map(mixed).collect();
            // Removed twice: once too often, so that the answer is no, unless another key has the class.
            let twice: Vec<u64> = hashes.iter().flat_map(|hash| [*hash, *hash]).collect();
            both_ways(filter(slots, 20_000, 9), |batch| {
                let single = filter(slots, 20_000, 9);
                batch.insert_hashes(&hashes).unwrap();
                hashes.iter().for_each(|hash| single.insert_hash(*hash).unwrap());
                assert!(batch.words().eq(single.words()), "the same table");
                assert_eq!(batch.len(), single.len());
                let mut removed = vec![false; twice.len()];
                batch.remove_hashes(&twice, &mut removed);
                let expected: Vec<bool> = twice.iter().map(|hash| single.remove_hash(*hash)).collect();
                assert_eq!(removed, expected);
                assert!(batch.words().eq(single.words()) && batch.len() == single.len());
                assert!(batch.is_empty());
            });
        }
    }
}

#[test]
fn a_refused_insert_says_how_many_went_in() {
    let filter = filter(4, 1_000, 5);
    let hashes: Vec<u64> = (0..5_000).map(mixed).collect();
    let error = filter.insert_hashes(&hashes).unwrap_err();
    assert_eq!((error.inserted, error.error), (filter.len(), InsertError::Full));
    assert!(error.inserted >= 1_000);
    let mut found = vec![false; error.inserted];
    filter.contains_hashes(&hashes[..error.inserted], &mut found);
    assert!(found.into_iter().all(|found| found));
    assert!(error.to_string().contains(&format!("after {} hashes", filter.len())));
}

#[test]
#[should_panic(expected = "3 keys, but room for 2 answers")]
fn lengths_of_keys_must_match() {
    filter(4, 10, 1).contains_many(&[1, 2, 3], &mut [false; 2]);
}

#[test]
#[should_panic(expected = "1 keys, but room for 2 answers")]
fn lengths_of_removals_must_match() {
    filter(4, 10, 1).remove_hashes(&[1], &mut [false; 2]);
}

#[test]
#[should_panic(expected = "3 keys, but room for 2 answers")]
fn lengths_must_match() {
    filter(4, 10, 1).contains_hashes(&[1, 2, 3], &mut [false; 2]);
}

/// Present keys are never missed by any backend while other keys come, go and relocate.
#[test]
fn present_keys_are_never_missed() {
    let millis = std::env::var("KOEL_STRESS_MILLIS").ok().and_then(|millis| millis.parse().ok()).unwrap_or(1_500);
    for backend in backends() {
        for buckets in [50, 2_000, 600_000] {
            let slots = 4;
            let filter = filter(slots, buckets * slots * 9 / 10, 1);
            let resident = (filter.buckets() as f64 * slots as f64 * 0.8) as u64;
            (0..resident).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut random = Random::new(1);
                    let room = filter.buckets() * slots * 12 / 100;
                    let mut keys = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let key = mixed(1 << 40 | random.below(1 << 30));
                        if keys.len() >= room.max(1) {
                            let gone = keys.swap_remove(random.below(keys.len() as u64) as usize);
                            assert!(filter.remove_hash(gone), "a present key was not removed");
                        }
                        if filter.insert_hash(key).is_ok() {
                            keys.push(key);
                        }
                    }
                });
                let started = std::time::Instant::now();
                let mut random = Random::new(2);
                let mut found = vec![false; 500];
                while started.elapsed().as_millis() < millis / 5 {
                    let hashes: Vec<u64> = (0..found.len()).map(|_| mixed(random.below(resident))).collect();
                    filter.contains_hashes_with(backend, &hashes, &mut found);
                    assert!(found.iter().all(|found| *found), "false negative, {backend:?}, {buckets} buckets");
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
    }
}
