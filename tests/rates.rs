//! Measured false-positive rates are those of the formula, for the kinds of keys that people have.

use koel::CuckooFilter;

mod common;
use common::assert_rate;

/// FNV-1a, as many programs carry it: a weak hash that callers hand in.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Inserts the first `keys` hashes and looks up the rest, which are all absent.
fn check(what: &str, slots: usize, keys: u64, tries: u64, hash: impl Fn(&CuckooFilter<str>, u64) -> u64) {
    let filter =
        CuckooFilter::<str>::builder().capacity(keys as usize).slots_per_bucket(slots).seed(11).build().unwrap();
    (0..keys).for_each(|key| filter.insert_hash(hash(&filter, key)).unwrap());
    (0..keys).for_each(|key| assert!(filter.contains_hash(hash(&filter, key))));
    let hits = (keys..keys + tries).filter(|key| filter.contains_hash(hash(&filter, *key))).count();
    assert_rate(&format!("{what}, {slots} slots, {keys} keys"), hits as u64, tries, filter.false_positive_rate(), 5.0);
}

#[test]
fn rates_are_those_of_the_formula() {
    for slots in 2..=6 {
        for keys in [10, 1_000, 100_000] {
            let tries = 400_000;
            check("integers as their own hash", slots, keys, tries, |_, key| key);
            check("integers in the high bits", slots, keys, tries, |_, key| key << 40);
            check("integers", slots, keys, tries, |_, key| koel_hash(&key));
            check("short strings", slots, keys, tries, |filter, key| filter.hash_of(&format!("{key:x}")[..]));
            check("URLs", slots, keys, tries, |filter, key| {
                filter.hash_of(&format!("https://www.example.com/catalogue/items?page=1&item={key}")[..])
            });
            check("FNV of strings", slots, keys, tries, |_, key| fnv(key.to_string().as_bytes()));
            check("FNV of bytes", slots, keys, tries, |_, key| fnv(&key.to_le_bytes()));
        }
    }
}

/// Very many keys, as their own hashes: bucket and fingerprint stay independent.
#[test]
#[ignore = "takes minutes without optimisation: cargo test --release --test rates -- --ignored"]
fn rates_hold_for_a_hundred_million_keys() {
    for slots in [3, 4, 6] {
        check("sequential integers", slots, 100_000_000, 20_000_000, |_, key| key);
    }
}

fn koel_hash(key: &u64) -> u64 {
    std::hash::BuildHasher::hash_one(&koel::Xxh3::new(), key)
}

/// The rate asked for holds at capacity, whatever is asked, and the reported one says what is measured.
#[test]
fn rates_asked_for_hold_at_capacity() {
    for rate in [0.3, 0.05, 0.01, 0.005, 0.001, 1e-4, 1e-5] {
        for keys in [1_u64, 100, 20_000] {
            let filter = CuckooFilter::<u64>::builder()
                .capacity(keys as usize)
                .false_positive_rate(rate)
                .seed(3)
                .build()
                .unwrap();
            (0..keys).for_each(|key| filter.insert(&key).unwrap());
            assert!(filter.false_positive_rate() <= rate);
            let tries = 1_000_000;
            let hits = (keys..keys + tries).filter(|key| filter.contains(key)).count() as u64;
            assert_rate(&format!("{keys} keys at {rate}"), hits, tries, filter.false_positive_rate(), 5.0);
        }
    }
}

/// After many turnovers at a high load the rate is that of the formula still: displaced fingerprints do not raise it.
#[test]
fn rates_do_not_drift() {
    let filter = CuckooFilter::<u64>::builder().capacity(50_000).slots_per_bucket(5).seed(8).build().unwrap();
    let (keys, turnovers) = (45_000_u64, 10);
    (0..keys).for_each(|key| filter.insert_hash(key).unwrap());
    for key in 0..keys * turnovers {
        assert!(filter.remove_hash(key));
        filter.insert_hash(key + keys).unwrap();
    }
    let tries = 1_000_000;
    let hits = (1 << 40..(1 << 40) + tries).filter(|key| filter.contains_hash(*key)).count() as u64;
    assert_rate("after turnovers", hits, tries, filter.false_positive_rate(), 5.0);
    assert_eq!(filter.len() as u64, keys);
}
