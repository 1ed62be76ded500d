//! How full a table gets: a filter of capacity n takes n distinct keys with every seed, and the load at the first failure is as documented.

use koel::{CuckooFilter, InsertError};

#[test]
fn capacity_n_takes_n_keys() {
    let sizes = (0..300).chain([500, 512, 999, 1_000, 1_024, 1_025, 4_096, 10_000, 65_536]);
    for capacity in sizes {
        for slots in [None, Some(2), Some(3), Some(4), Some(5), Some(6)] {
            for seed in 0..20 {
                let builder = CuckooFilter::<u64>::builder().capacity(capacity).seed(seed);
                let builder = match slots {
                    Some(slots) => builder.slots_per_bucket(slots),
                    None => builder,
                };
                let filter = builder.build().unwrap();
                for key in 0..capacity as u64 {
                    assert_eq!(filter.insert(&key), Ok(()), "key {key} of {capacity}, {slots:?} slots, seed {seed}");
                }
                assert_eq!(filter.len(), capacity);
                assert!((0..capacity as u64).all(|key| filter.contains(&key)));
            }
        }
    }
}

/// The same for rates, where the load follows from the rate, and for large tables.
#[test]
#[ignore = "takes minutes without optimisation: cargo test --release -- --ignored capacity"]
fn large_capacities_take_their_keys() {
    for (capacity, seeds) in [(100_000, 20), (1_000_000, 20), (20_000_000, 2)] {
        for rate in [0.5, 0.01, 0.003, 0.001, 1e-5, 1e-8] {
            for seed in 0..seeds {
                let builder = CuckooFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate);
                let filter = builder.seed(seed).build().unwrap();
                (0..capacity as u64).for_each(|key| filter.insert_hash(key).unwrap());
                assert!(filter.false_positive_rate() <= rate);
            }
        }
    }
}

/// The sizing table of the README: load and relocations of a table of a million slots.
#[test]
fn load_at_first_failure() {
    for (slots, expected) in [(2, 0.86), (3, 0.92), (4, 0.95), (5, 0.96), (6, 0.96)] {
        let capacity = match slots {
            2 => 1e6 * 0.83,
            3 => 1e6 * 0.915,
            4 => 1e6 * 0.945,
            5 => 1e6 * 0.955,
            _ => 1e6 * 0.96,
        };
        let builder = CuckooFilter::<u64>::builder().capacity(capacity as usize).slots_per_bucket(slots).seed(1);
        let filter = builder.build().unwrap();
        let room = filter.buckets() * slots;
        assert!((990_000..1_010_000).contains(&room), "{room} slots");
        let mut keys = 0;
        let error = loop {
            match filter.insert_hash(keys) {
                Ok(()) => keys += 1,
                Err(error) => break error,
            }
            if slots == 4 && keys as usize == room / 100 * 95 {
                let stats = filter.stats();
                let moved = stats.relocations as f64 / keys as f64;
                println!("{stats}\n{moved:.3} relocations per key on the way to 95%");
                assert!(moved <= 0.2, "{moved} relocations per key on the way to 95%");
            }
        };
        assert_eq!(error, InsertError::Full);
        let bits = filter.memory_bytes() as f64 * 8.0 / keys as f64;
        let (load, rate) = (filter.load_factor(), filter.false_positive_rate());
        println!("{slots} slots: {load:.4} at the first failure, rate {rate:.1e}, {bits:.1} bits per key");
        assert!(load >= expected, "{slots} slots: full at {load}");
        assert!((0..keys).all(|key| filter.contains_hash(key)), "a refused insert loses nothing");
    }
}

#[test]
fn memory_is_as_promised() {
    let bytes = |capacity| CuckooFilter::<u64>::with_capacity(capacity).memory_bytes();
    assert!(bytes(1_000) < 6 << 10, "{}", bytes(1_000));
    assert!(bytes(10) < 1 << 10, "{}", bytes(10));
    assert!(bytes(0) < 1 << 10, "{}", bytes(0));
    for (slots, full) in [(3, 22.8), (4, 16.7), (5, 13.2), (6, 11.0)] {
        let bytes = |capacity| {
            CuckooFilter::<u64>::builder().capacity(capacity).slots_per_bucket(slots).build().unwrap().memory_bytes()
        };
        for capacity in [10_000, 12_345, 16_385, 100_000, 131_073, 1_000_000, (1 << 20) + 1, 5_000_000] {
            let bits = bytes(capacity) as f64 * 8.0 / capacity as f64;
            assert!(bits <= 1.06 * full, "{slots} slots, capacity {capacity}: {bits} bits per key");
        }
        for capacity in 0..10_000 {
            let most = 1.06 * full / 8.0 * capacity as f64 + 2048.0;
            assert!(bytes(capacity) as f64 <= most, "{slots} slots, capacity {capacity}: {} bytes", bytes(capacity));
        }
    }
}
