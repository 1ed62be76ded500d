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
#[ignore = "takes minutes without optimisation: cargo test --release -- --ignored capacities"]
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

/// How often a small filter refuses a key early: what the documentation says of it.
#[test]
#[ignore = "takes a minute: cargo test --release --test load -- --ignored --nocapture small"]
fn small_filters_hardly_ever_refuse_a_key() {
    for slots in 2..=6 {
        let (mut filters, mut refusing) = (0, 0);
        for capacity in (1..=10).chain([12, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000]) {
            for seed in 0..20_000_000 / (capacity as u64 + 100) {
                let filter = CuckooFilter::<u64>::builder()
                    .capacity(capacity)
                    .slots_per_bucket(slots)
                    .seed(seed)
                    .build()
                    .unwrap();
                filters += 1;
                refusing += u32::from((0..capacity as u64).any(|key| filter.insert(&key).is_err()));
            }
        }
        println!("{slots} slots: {refusing} of {filters} filters refused a key");
        assert!(refusing <= filters / 1_000_000, "{slots} slots: {refusing} of {filters}");
    }
}

/// A filter of about so many slots.
fn with_room(slots: usize, room: f64, seed: u64) -> CuckooFilter<u64> {
    let load = match slots {
        2 => 0.83,
        3 => 0.915,
        4 => 0.945,
        5 => 0.955,
        _ => 0.96,
    };
    let builder = CuckooFilter::<u64>::builder().capacity((room * load) as usize).slots_per_bucket(slots).seed(seed);
    let filter = builder.build().unwrap();
    let slots = (filter.buckets() * slots) as f64;
    assert!((0.99..1.01).contains(&(slots / room)), "{slots} slots");
    filter
}

/// Load and relocations of a table of a million slots, with one seed.
#[test]
fn load_at_first_failure() {
    for (slots, expected) in [(2, 0.86), (3, 0.92), (4, 0.95), (5, 0.96), (6, 0.96)] {
        let filter = with_room(slots, 1e6, 1);
        let room = filter.buckets() * slots;
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
        let load = filter.load_factor();
        println!("{slots} slots: {load:.4} at the first failure");
        assert!(load >= expected, "{slots} slots: full at {load}");
        assert!((0..keys).all(|key| filter.contains_hash(key)), "a refused insert loses nothing");
    }
}

/// The sizing tables of the README and of `docs/design.md`: means over seeds.
#[test]
#[ignore = "takes minutes, and half a gigabyte: cargo test --release --test load -- --ignored --nocapture mean"]
fn mean_load_at_first_failure() {
    for (room, seeds) in [(1e5, 100), (1e6, 20), (1e7, 5), (1e8, 1)] {
        for slots in 2..=6 {
            let (mut load, mut square, mut rate, mut bits) = (0.0, 0.0, 0.0, 0.0);
            for seed in 0..seeds {
                let filter = with_room(slots, room, seed);
                let keys = (0..).find(|key| filter.insert_hash(*key).is_err()).unwrap();
                load += filter.load_factor() / seeds as f64;
                square += filter.load_factor().powi(2) / seeds as f64;
                rate += filter.false_positive_rate() / seeds as f64;
                bits += filter.memory_bytes() as f64 * 8.0 / keys as f64 / seeds as f64;
            }
            let scatter = (square - load * load).max(0.0).sqrt();
            println!(
                "{room:.0e} slots, {slots} in a bucket, {seeds} seeds: {load:.4} (standard deviation {scatter:.4}) at the first failure, \
                 rate {rate:.2e}, {bits:.1} bits per key"
            );
        }
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
