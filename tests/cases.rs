//! Faults that users of other filters have met, each with the right answer; and the edges of the interface.

use std::hash::RandomState;

use koel::{BuildError, CuckooFilter, InsertError, MergeError, Xxh3};

mod common;
use common::{assert_rate, mixed};

#[test]
fn a_key_inserted_twice_is_removed_twice() {
    let filter = CuckooFilter::<str>::with_capacity(10);
    filter.insert("key").unwrap();
    filter.insert("key").unwrap();
    assert_eq!(filter.count("key"), 2);
    assert!(filter.remove("key"));
    assert!(filter.contains("key"));
    assert!(filter.remove("key"));
    assert!(!filter.contains("key"));
    assert!(!filter.remove("key"));
    assert_eq!((filter.count("key"), filter.len()), (0, 0));
}

/// Two sets of keys: deleting the second loses nothing of the first.
#[test]
fn deleting_one_set_leaves_the_other() {
    let filter = CuckooFilter::<String>::with_capacity(30_000);
    let key = |set: char, index: usize| format!("{set}{index}");
    for set in ['a', 'b'] {
        (0..15_000).for_each(|index| filter.insert(&key(set, index)).unwrap());
    }
    assert!((0..15_000).all(|index| filter.remove(&key('b', index))));
    assert!((0..15_000).all(|index| filter.contains(&key('a', index))));
    assert_eq!(filter.len(), 15_000);
}

/// Removing what was never inserted takes out other keys, unavoidably: at the false-positive rate, and `len` says so.
#[test]
fn removing_absent_keys_takes_others_at_the_stated_rate() {
    let filter = CuckooFilter::<u64>::builder().capacity(50_000).slots_per_bucket(5).seed(6).build().unwrap();
    (0..50_000).for_each(|key| filter.insert_hash(key).unwrap());
    let rate = filter.false_positive_rate();
    let tries = 100_000_u64;
    let taken = (1 << 32..(1 << 32) + tries).filter(|key| filter.remove_hash(*key)).count() as u64;
    // The rate sinks a little as keys go: by less than the taken share.
    assert_rate("removals of absent keys", taken, tries, rate, 6.0);
    assert_eq!(filter.len() as u64, 50_000 - taken);
    let lost = (0..50_000).filter(|key| !filter.contains_hash(*key)).count() as u64;
    assert!(lost <= taken && lost >= taken / 2, "{lost} keys lost by {taken} wrong removals");
}

/// Holes in buckets hide nothing.
#[test]
fn every_third_removed() {
    let filter = CuckooFilter::<u32>::with_capacity(5_000);
    (0..5_000_u32).for_each(|key| filter.insert(&key).unwrap());
    assert!((0..5_000_u32).step_by(3).all(|key| filter.remove(&key)));
    assert!((0..5_000_u32).filter(|key| key % 3 != 0).all(|key| filter.contains(&key)));
}

/// Thousands of refused inserts lose no key, and leave `len` alone.
#[test]
fn refused_inserts_change_nothing() {
    for slots in 2..=6 {
        let filter = CuckooFilter::<u64>::builder().capacity(4_096).slots_per_bucket(slots).seed(9).build().unwrap();
        let mut inside = Vec::new();
        let mut refused = 0;
        for key in (0..).map(mixed) {
            let before = (filter.len(), filter.count_hash(key));
            match filter.insert_hash(key) {
                Ok(()) => inside.push(key),
                Err(error) => {
                    assert_eq!(error, InsertError::Full);
                    assert_eq!((filter.len(), filter.count_hash(key)), before);
                    refused += 1;
                    if refused == 5_000 {
                        break;
                    }
                }
            }
        }
        assert_eq!(filter.len(), inside.len());
        assert!(inside.iter().all(|key| filter.contains_hash(*key)));
        assert!(inside.iter().all(|key| filter.remove_hash(*key)));
        assert!(filter.is_empty() && filter.words().all(|word| word << 4 == 0));
    }
}

/// One key added again and again is refused; all others still go in.
#[test]
fn only_the_key_with_too_many_copies_is_refused() {
    for slots in 2..=6 {
        let filter = CuckooFilter::<u64>::builder().capacity(1_000).slots_per_bucket(slots).seed(4).build().unwrap();
        let copies = (0..80).filter(|_| filter.insert(&7).is_ok()).count();
        assert!(copies == 2 * slots || copies == slots);
        assert_eq!(filter.insert(&7), Err(InsertError::TooManyCopies));
        assert_eq!(filter.count(&7), copies);
        // All but those few that have the same two buckets: about 3 in the square of the number of buckets.
        let refused = (1_000..1_950 - copies as u64).filter(|key| filter.insert(key).is_err()).count();
        assert!(refused <= 1, "{refused} other keys refused");
        (0..copies).for_each(|_| assert!(filter.remove(&7)));
        assert!(!filter.contains(&7));
    }
}

/// In the smallest tables both buckets of a class can be one and the same.
#[test]
fn count_is_exact_when_both_buckets_are_one() {
    for seed in 0..200 {
        let filter = CuckooFilter::<u64>::builder().seed(seed).build().unwrap();
        filter.insert(&1).unwrap();
        assert_eq!(filter.count(&1), 1);
        filter.insert(&1).unwrap();
        assert_eq!(filter.count(&1), 2);
    }
}

/// Saturated displaced counts are never lowered: crowd one home bucket, then take everything out again.
#[test]
fn saturated_counts_hide_nothing() {
    let filter = CuckooFilter::<u64>::builder().capacity(1_000).slots_per_bucket(4).seed(2).build().unwrap();
    let crowd: Vec<u64> = (0..).map(mixed).filter(|key| filter.class_of_hash(*key).0 == 5).take(40).collect();
    let inside: Vec<u64> = crowd.iter().copied().take_while(|key| filter.insert_hash(*key).is_ok()).collect();
    assert!(filter.stats().saturated_buckets > 0, "{} keys of one home do not saturate it", inside.len());
    for (index, key) in inside.iter().enumerate() {
        assert!(inside[index..].iter().all(|key| filter.contains_hash(*key)));
        assert!(filter.remove_hash(*key));
    }
    assert!(filter.is_empty() && !filter.contains_hash(inside[0]));
}

#[test]
fn capacity_zero_is_a_minimal_filter() {
    let filter = CuckooFilter::<u64>::with_capacity(0);
    assert_eq!((filter.capacity(), filter.len(), filter.load_factor()), (0, 0, 0.0));
    assert!(!filter.contains(&1) && !filter.remove(&1));
    assert_eq!(filter.insert(&1), Ok(()));
    assert!(filter.contains(&1));
}

/// Memory follows the capacity smoothly: no powers of two.
#[test]
fn memory_has_no_cliffs() {
    let bytes = |capacity| CuckooFilter::<u64>::with_capacity(capacity).memory_bytes() as f64;
    for exponent in 10..22 {
        let power = 1_usize << exponent;
        assert!(bytes(power + 1) <= bytes(power - 1) * 1.02 + 64.0);
    }
}

#[test]
fn bad_settings_are_typed_errors_that_name_the_value_and_the_limit() {
    let build = |rate: f64| CuckooFilter::<u64>::builder().capacity(100).false_positive_rate(rate).build().unwrap_err();
    for rate in [0.0, 1.0, 2.0, -0.1, f64::INFINITY] {
        assert_eq!(build(rate), BuildError::InvalidRate { rate });
        assert!(build(rate).to_string().contains(&rate.to_string()), "{}", build(rate));
    }
    assert!(build(f64::NAN).to_string().contains("NaN"));
    let BuildError::RateTooLow { rate: 1e-20, lowest, .. } = build(1e-20) else { panic!("{}", build(1e-20)) };
    let message = build(1e-20).to_string();
    assert!(message.contains("1e-20") && message.contains(&format!("{lowest:e}")), "{message}");
    // The limit as it is printed is one that works.
    let printed: f64 = message.split("is below ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(CuckooFilter::<u64>::builder().capacity(100).false_positive_rate(printed).build().is_ok(), "{message}");

    let slots = CuckooFilter::<u64>::builder().slots_per_bucket(7).build().unwrap_err();
    assert_eq!(slots, BuildError::InvalidSlotsPerBucket { slots_per_bucket: 7 });
    assert!(slots.to_string().contains('7') && slots.to_string().contains("2 to 6"));

    for capacity in [usize::MAX, usize::MAX - 1, usize::MAX / 2, usize::MAX / 16] {
        let error = CuckooFilter::<u64>::builder().capacity(capacity).build().unwrap_err();
        assert!(matches!(error, BuildError::CapacityTooLarge { .. }), "{error}");
        assert!(error.to_string().contains(&capacity.to_string()));
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn memory_that_is_not_to_be_had_is_an_error() {
    // 32 GiB or so in one piece: refused, or granted on machines that have it; never an abort.
    for huge_pages in [false, true] {
        match CuckooFilter::<u64>::builder().capacity(16_000_000_000).huge_pages(huge_pages).build() {
            Ok(filter) => assert!(filter.insert(&1).is_ok()),
            Err(error) => assert!(matches!(error, BuildError::Alloc { bytes } if bytes > 30 << 30), "{error}"),
        }
    }
}

/// The same where the system surely refuses: in a process of its own, with a limit.
#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn memory_beyond_the_limit_of_a_process_is_an_error() {
    if std::env::var_os("KOEL_LIMITED").is_none() {
        let test = "ulimit -v 2000000 && exec \"$0\" --exact memory_beyond_the_limit_of_a_process_is_an_error";
        let program = std::env::current_exe().unwrap();
        let output = std::process::Command::new("sh").args(["-c", test]).arg(program).env("KOEL_LIMITED", "").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    for huge_pages in [false, true] {
        let built = CuckooFilter::<u64>::builder().capacity(2_000_000_000).huge_pages(huge_pages).build();
        assert!(matches!(built, Err(BuildError::Alloc { bytes }) if bytes > 3 << 30), "{built:?}");
    }
    let hashes = vec![1; 40_000_000];
    let built = CuckooFilter::<u64>::builder().capacity(1_000_000_000).build_from_hashes(&hashes);
    assert!(matches!(built, Err(BuildError::Alloc { .. })), "{built:?}");
}

#[test]
#[should_panic(expected = "capacity 18446744073709551615 is above")]
#[cfg(target_pointer_width = "64")]
fn with_capacity_panics_on_overflow() {
    let _ = CuckooFilter::<u64>::with_capacity(usize::MAX);
}

/// The same seed and the same calls give the same table, another seed another one.
#[test]
fn tables_are_deterministic() {
    let words = |seed: u64, threads: bool| {
        let fill = move || {
            let filter =
                CuckooFilter::<u64>::builder().capacity(10_000).slots_per_bucket(4).seed(seed).build().unwrap();
            (0..10_000).for_each(|key| filter.insert(&key).unwrap());
            assert!((0..3_000).all(|key| filter.remove(&key)));
            (20_000..23_000).for_each(|key| filter.insert(&key).unwrap());
            filter.words().collect::<Vec<_>>()
        };
        if threads { std::thread::spawn(fill).join().unwrap() } else { fill() }
    };
    assert_eq!(words(1, false), words(1, true));
    assert_ne!(words(1, false), words(2, false));
}

/// Without `std` the seed is a constant.
#[test]
#[cfg(feature = "std")]
fn seeds_are_random_unless_given() {
    let seeds: std::collections::HashSet<u64> =
        (0..100).map(|_| CuckooFilter::<u64>::with_capacity(1).seed()).collect();
    assert_eq!(seeds.len(), 100);
    assert_eq!(CuckooFilter::<u64>::builder().seed(5).build().unwrap().seed(), 5);
}

#[test]
fn keys_may_be_borrowed_forms() {
    let filter = CuckooFilter::<String>::with_capacity(10);
    filter.insert("a").unwrap();
    assert!(filter.contains(&String::from("a")) && filter.contains("a"));
    let bytes = CuckooFilter::<[u8]>::with_capacity(10);
    bytes.insert(b"a".as_slice()).unwrap();
    assert!(bytes.contains(&b"a"[..]));
    let vectors = CuckooFilter::<Vec<u8>>::with_capacity(10);
    vectors.insert(&[1_u8, 2][..]).unwrap();
    assert!(vectors.contains(&vec![1_u8, 2]));
}

#[test]
fn hashers_can_be_chosen() {
    let filter = CuckooFilter::<str>::builder().capacity(10).hasher(RandomState::new()).build().unwrap();
    filter.insert("a").unwrap();
    assert!(filter.contains("a") && filter.contains_hash(filter.hash_of("a")));
    let filter = CuckooFilter::<u64>::builder().hasher(Xxh3::with_seed(3)).build().unwrap();
    assert_eq!(filter.hasher(), &Xxh3::with_seed(3));
}

#[test]
fn clear_forgets_everything() {
    let mut filter = CuckooFilter::<u64>::builder().capacity(1_000).seed(1).build().unwrap();
    let fresh: Vec<u64> = filter.words().collect();
    while filter.insert(&filter.len().try_into().unwrap()).is_ok() {}
    filter.clear();
    assert!(filter.is_empty() && filter.words().eq(fresh));
    assert_eq!(filter.stats().relocations, 0);
    (0..1_000).for_each(|key| filter.insert(&key).unwrap());
}

#[test]
fn debug_is_short() {
    let filter = CuckooFilter::<u64>::with_capacity(100_000);
    let shown = format!("{filter:?}");
    assert!(shown.len() < 200 && shown.contains("capacity: 100000"), "{shown}");
}

#[test]
fn statistics_add_up() {
    let filter = CuckooFilter::<u64>::builder().capacity(1_000).slots_per_bucket(4).seed(1).build().unwrap();
    let mut keys = 0;
    while filter.insert_hash(keys).is_ok() {
        keys += 1;
    }
    let stats = filter.stats();
    assert_eq!((stats.keys, stats.failures, stats.retries), (keys, 1, 0));
    assert_eq!((stats.cas_retries, stats.sequence_retries), (0, 0), "nobody else is here");
    assert!((stats.load_factor - filter.load_factor()).abs() < 1e-12);
    assert!(stats.relocations > 0 && stats.searches > 1);
    assert!((0.1..0.6).contains(&stats.displaced_share));
    assert!(stats.to_string().contains(&format!("{keys} keys")));
}

/// Merging takes what the other holds, key by key and copy by copy, and loses nothing when there is no room.
#[test]
fn merged_filters_hold_both() {
    let build =
        |capacity| CuckooFilter::<u64>::builder().capacity(capacity).seed(3).slots_per_bucket(4).build().unwrap();
    let (one, other) = (build(12_000), build(12_000));
    (0..4_000).for_each(|key| one.insert(&key).unwrap());
    (2_000..8_000).for_each(|key| other.insert(&key).unwrap());
    let before: Vec<u64> = other.words().collect();
    one.merge_from(&other).unwrap();
    assert_eq!((one.len(), other.len()), (10_000, 6_000));
    assert!((0..8_000).all(|key| one.contains(&key)));
    assert!((2_000..4_000).all(|key| one.count(&key) >= 2));
    assert!(other.words().eq(before));
    let mut classes: Vec<_> = one.iter_classes().collect();
    let mut expected: Vec<_> =
        (0..4_000).chain(2_000..8_000).map(|key: u64| one.class_of_hash(one.hash_of(&key))).collect();
    classes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(classes, expected);

    // No room: refused at once.
    assert_eq!(one.merge_from(&other), Err(MergeError::Insert { merged: 0, error: InsertError::Full }),);
    assert_eq!(one.len(), 10_000);
    // Room by number, but not for all: what went in stays, and nothing is lost.
    let crowded = build(10_000);
    let mut keys = 20_000;
    while crowded.insert(&keys).is_ok() {
        keys += 1;
    }
    let few = build(10_000);
    let free = crowded.buckets() * 4 - crowded.len();
    (50_000..50_000 + free as u64).for_each(|key| few.insert(&key).unwrap());
    let error = crowded.merge_from(&few).unwrap_err();
    let MergeError::Insert { merged, error: InsertError::Full } = error else { panic!("{error}") };
    assert_eq!(crowded.len(), (keys - 20_000) as usize + merged);
    assert!((20_000..keys).all(|key| crowded.contains(&key)));

    for (field, other) in [
        ("slots", CuckooFilter::<u64>::builder().capacity(12_000).seed(3).slots_per_bucket(5).build().unwrap()),
        ("buckets", build(12_100)),
        ("seed", CuckooFilter::<u64>::builder().capacity(12_000).seed(4).slots_per_bucket(4).build().unwrap()),
    ] {
        let error = one.merge_from(&other).unwrap_err();
        assert!(matches!(error, MergeError::Mismatch { field: named, .. } if named == field), "{error}");
    }
    let builder = CuckooFilter::<u64>::builder().capacity(12_000).seed(3).slots_per_bucket(4);
    let error = one.merge_from(&builder.hasher(Xxh3::with_seed(8)).build().unwrap()).unwrap_err();
    assert_eq!(error, MergeError::Mismatch { field: "hash seed", here: 0, there: 8 });
}

/// Counters, gate and all: small filters stay small.
#[test]
fn small_filters_take_little_memory() {
    assert!(CuckooFilter::<u64>::with_capacity(10).memory_bytes() < 1024);
    assert!(CuckooFilter::<u64>::with_capacity(1_000).memory_bytes() < 6 * 1024);
}
